"""Requests to a server with the OpenAI API, with retries and within the allowance."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Self, SupportsInt

import httpx2
import openai
import orjson

from mast_tui.judges.llm.client.api_capabilities import ApiCapabilities, Part, RequestForm
from mast_tui.judges.llm.client.api_errors import (
    ApiError,
    ErrorKind,
    answer_room,
    context_limit,
    error_kind_of,
    longest_answer,
    read_api_error,
)
from mast_tui.judges.llm.client.bounded_http import openai_client
from mast_tui.judges.llm.client.budget import Budget, Reserved
from mast_tui.judges.llm.client.endpoint import NO_KEY, Endpoint, KeyFilter, scrub
from mast_tui.judges.llm.client.rate_limiter import RateLimiter, back_off
from mast_tui.judges.llm.client.replies import LEAST_CHECKED, UnusableReply, read_reply, was_cut
from mast_tui.judges.llm.prompt.prompt import messages
from mast_tui.judges.llm.request import (
    AskError,
    ContextOverflow,
    Correction,
    ModelClient,
    Parameters,
    Reply,
    Request,
    RunStops,
    Unanswered,
    differ_clearly,
    is_context_size,
)
from mast_tui.safe_text import one_line

TRIES: Final = 6

TIMEOUTS: Final = 2
"""The most timed-out tries of a request. Each may cost money."""

FREE_WAIT_SECONDS: Final = 900.0
"""The most seconds of waits that do not count as failed tries. The server asked for these waits."""

LOADING_WAIT: Final = 5.0
"""The seconds between two requests to a server that loads its model."""

MAX_UNPROVEN: Final = 8
"""The most requests before the first usable answer. They are enough to learn the parameters that
the server refuses, and more would fail alike."""

MAX_WAIT: Final = 600.0
"""The most seconds of a wait, even if a server asks for more."""

LONG_WAIT: Final = 10.0
"""The fewest seconds of a wait that is reported to the user."""

NAMES_TIMEOUT: Final = 5.0
"""The most seconds in which a server may list its models for an error message."""

MAX_NAMES: Final = 5

CUT_FACTOR: Final = 1.2
"""The ratio of estimated to counted tokens that shows a cut request, if the count is a context
size. For 19 of 20 requests, the ratio is lower."""

RESTART: Final = 120.0
"""The most seconds that a server may take to restart."""

MIN_RESTART_WAIT: Final = 1.0
MAX_RESTART_WAIT: Final = 15.0
"""The bounds of a wait for a restarting server, in seconds."""

LONG_ANSWER: Final = 100_000
"""The fewest code points of an answer from which another thread searches for the key."""

_KEY_REFUSED: Final = "{host} refuses the key in {variable}: {reason}"
_STOP_MESSAGES: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.KEY: _KEY_REFUSED,
    ErrorKind.DENIED: _KEY_REFUSED,
    ErrorKind.MONEY: "there is no credit left at {host}: {reason}",
    ErrorKind.ANSWER_TOO_LONG: (
        "{host} does not allow answers of this length; allow fewer tokens: {reason}"
    ),
    ErrorKind.REDIRECT: (
        "{host} redirects to {target}, to which neither traces nor the key are sent; set that "
        "address if it is right"
    ),
}
"""The messages for errors of the server that stop the run."""

_REFUSED_PARTS: Final[Mapping[ErrorKind, Part]] = {
    ErrorKind.FORM: "answer_format",
    ErrorKind.SYSTEM: "system",
    ErrorKind.LIMIT: "limit",
    ErrorKind.TEMPERATURE: "temperature",
}
_PASSING_ERRORS: Final = (ErrorKind.BUSY, ErrorKind.TEMPORARY, ErrorKind.LOADING)
"""The errors after which the same request may succeed later."""

AWAY_STATUS: Final = (502, 503)
"""The HTTP status of a gateway without its server, and of a server that is not ready."""

_UNREACHED_ERRORS: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
"""The errors of connections that were never established."""


@dataclass(frozen=True, slots=True)
class _FailedTry:
    """A failed try that may be repeated.

    Attributes:
        reason: The reason, for a person.
        server_reached: True if there was a connection.
        answer_lost: True if the server may have answered, but the answer did not arrive.
        answer_late: True if the answer did not arrive in time.
        server_busy: True if the server only had too many requests.
        wait: The seconds that all tasks wait before the next try.
        model_loading: True if the server is loading its model.
        server_away: True if the server seems to be down, as during a restart.
        form_changed: True if the request is sent again at once in another form.
    """

    reason: str
    server_reached: bool = True
    answer_lost: bool = False
    answer_late: bool = False
    server_busy: bool = False
    wait: float = 0.0
    model_loading: bool = False
    server_away: bool = False
    form_changed: bool = False


@dataclass(slots=True)
class _FailedTries:
    """The counts of the failed tries of one request.

    Attributes:
        sent: All tries.
        failed: The tries that count against the limit.
        unreached: The tries without a connection.
        late: The tries whose answer did not arrive in time.
        waited_seconds: The total of the waits that the server asked for.
    """

    sent: int = 0
    failed: int = 0
    unreached: int = 0
    late: int = 0
    waited_seconds: float = 0.0

    def add(self, failed_try: _FailedTry, *, others_answered: bool) -> None:
        """Count a failed try.

        Args:
            failed_try: The try.
            others_answered: True if the server answered other requests meanwhile.
        """
        self.sent += 1
        if failed_try.form_changed:
            return
        self.unreached += not failed_try.server_reached
        self.late += failed_try.answer_late
        self.waited_seconds += failed_try.wait
        wait_is_free = failed_try.wait and self.waited_seconds <= FREE_WAIT_SECONDS
        only_busy = failed_try.server_busy and others_answered
        if not wait_is_free and not only_busy:
            self.failed += 1


class Client(ModelClient):
    """A client for one model of one server, shared by the tasks of one event loop.

    Args:
        parameters: The model and its settings.
        endpoint: The server.
        budget: The allowance.
        limiter: The limit of concurrent requests.
        tries: The most tries of a request.
        on_wait: Receives a message about each long wait.
        on_remark: Receives a message about each parameter that the server refuses.

    Raises:
        RunStops: The address or the name of the model cannot be used.
    """

    def __init__(
        self,
        parameters: Parameters,
        endpoint: Endpoint,
        *,
        budget: Budget | None = None,
        limiter: RateLimiter | None = None,
        tries: int = TRIES,
        on_wait: Callable[[str], None] = lambda _: None,
        on_remark: Callable[[str], None] = lambda _: None,
    ) -> None:
        if not parameters.model or not parameters.model.isprintable():
            raise RunStops(f"“{one_line(parameters.model, 80)}” cannot be the name of a model")
        self._model = parameters.model
        self._endpoint = endpoint
        self._host = endpoint.host
        self._tries = tries
        self._budget = budget or Budget()
        self.limiter = limiter or RateLimiter()
        """The limit of concurrent requests."""
        self._on_wait = on_wait
        self.capabilities = ApiCapabilities(parameters, endpoint.host, on_remark)
        """The parameters that the server is known to accept."""
        self._boundary_secret = secrets.token_bytes(32)
        self._answer_count = 0
        self._unproven_count = 0
        """The number of requests before the first usable answer, without those that only had to
        wait."""
        self._in_flight_count = 0
        self._response_arrived = asyncio.Event()
        self._last_problem = ""
        self._first_request_by_count: dict[int, tuple[str, int]] = {}
        """The fingerprint and estimated tokens of the first request with each token count."""
        self._highest_count = 0
        """The highest token count of a request."""
        self._away_since: float | None = None
        """The time of the first failed request while the server is away; None otherwise."""
        self._stop_reason: str | None = None
        self._stop_lock = asyncio.Lock()
        self._openai = openai_client(endpoint)
        self._key_filter = KeyFilter(endpoint.api_key)
        self._key_filter.watch()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; no further request can be sent."""
        await self._openai.close()
        self._key_filter.leave()

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Ask the model, and try again after a passing error.

        Args:
            request: The request.
            answer_tokens: The token limit of the answer.
            correction: The previous unusable answer and its problem, if there is one.

        Raises:
            ContextOverflow: The request is too long, or the server read only a part of it.
            Unanswered: All allowed tries failed, or the server refused the request.
            RunStops: No request will be answered, or the allowance is spent.
        """
        tries = _FailedTries()
        while True:
            answer_count_before = self._answer_count
            outcome = await self._send_once(request, answer_tokens, correction)
            if isinstance(outcome, Reply):
                return outcome
            if _leaves_server_unproven(outcome):
                self._unproven_count -= 1
            if isinstance(outcome, AskError):
                self._last_problem = str(outcome)
                raise outcome
            self._last_problem = outcome.reason
            tries.add(outcome, others_answered=self._answer_count > answer_count_before)
            give_up_error = self._give_up_error(tries, outcome)
            if give_up_error is not None:
                raise give_up_error
            if outcome.answer_late:
                self._on_wait(f"{self._host}: {outcome.reason}; retrying")
            if not outcome.wait and not outcome.form_changed:
                timing = self.limiter.timing
                await timing.sleep(back_off(max(tries.failed, 1), timing.random()))

    def _give_up_error(self, tries: _FailedTries, last_try: _FailedTry) -> AskError | None:
        """Return the error if the request must not be tried again, otherwise None.

        If no try reached the server, the error stops the run.
        """
        if last_try.server_away and not last_try.wait:
            count = tries.sent
        elif tries.failed >= self._tries or tries.late >= TIMEOUTS:
            count = tries.failed
        else:
            return None
        if tries.unreached == count:
            return RunStops(
                f"no answer from {self._host}: {last_try.reason}; "
                "the same command continues the run"
            )
        counted_tries = "1 try" if count == 1 else f"{count} tries"
        return Unanswered(
            f"{self._host} gave no usable answer in {counted_tries}; "
            f"the last problem: {last_try.reason}"
        )

    async def _send_once(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None
    ) -> Reply | _FailedTry | AskError:
        """Send a request once, and count the tokens that it used.

        Returns:
            The reply, the failed try if the request may be sent again, or the error to raise.
        """
        async with self.limiter.turn() as slow_downs_before:
            await self._await_permission()
            if self._stop_reason is not None:
                return RunStops(self._stop_reason)
            # Other answers may have changed the limit while this request waited, so read it late.
            answer_limit = int(answer_tokens)
            reserved = await self._budget.reserve(request.tokens, answer_limit)
            try:
                request_form = self.capabilities.request_form
                chat_messages = messages(request, self._boundary_secret, correction)
                body = self.capabilities.body(
                    request_form, chat_messages, request.schema, answer_limit
                )
                self._in_flight_count += 1
                try:
                    response = await self._post_request(body)
                finally:
                    self._in_flight_count -= 1
                    self._response_arrived.set()
                received = (
                    read_reply(
                        response, form=request_form.answer_format, sent_tokens=request.tokens
                    )
                    if isinstance(response, str)
                    else response
                )
                self._count_tokens(received, reserved)
            finally:
                self._budget.release(reserved)
            if isinstance(received, Reply):
                return await self._checked_reply(received, chat_messages, request)
            outcome: Reply | _FailedTry | AskError
            if isinstance(received, UnusableReply):
                outcome = self._unusable_outcome(received)
            elif isinstance(received, ApiError):
                outcome = await self._error_outcome(received, request_form, body, slow_downs_before)
            else:
                outcome = received
            if isinstance(outcome, _FailedTry) and outcome.server_away:
                return self._wait_for_restart(outcome, slow_downs_before)
            self._away_since = None
            return outcome

    def _count_tokens(
        self, received: Reply | UnusableReply | ApiError | _FailedTry, reserved: Reserved
    ) -> None:
        """Count the tokens of a request that may have to be paid.

        If the tokens of an unusable or lost answer are unknown, count the reserved tokens.
        """
        if isinstance(received, Reply | UnusableReply) and received.tokens_in:
            cached_tokens = received.tokens_cached if isinstance(received, Reply) else 0
            self._budget.settle(reserved, received.tokens_in, received.tokens_out, cached_tokens)
        elif isinstance(received, UnusableReply) or (
            isinstance(received, _FailedTry) and received.answer_lost
        ):
            self._budget.lose(reserved)

    def _wait_for_restart(self, outcome: _FailedTry, slow_downs_before: int) -> _FailedTry:
        """Make all tasks wait for a server that seems to restart.

        ``slow_downs_before`` is the limiter's count when the request was sent: of several requests
        that failed at once, only the first one slows down.

        Returns:
            The failed try with its wait; without a wait if the server has been away too long.
        """
        now = self.limiter.timing.now()
        if self._away_since is None:
            self._away_since = now
        away_seconds = now - self._away_since
        if away_seconds >= RESTART:
            return outcome
        wait = min(max(away_seconds, MIN_RESTART_WAIT), MAX_RESTART_WAIT)
        is_longer = self.limiter.slow_down(slow_downs_before, wait)
        if is_longer:
            self._on_wait(
                f"{self._host} is not ready: {outcome.reason}; retrying in {wait:,.0f} s, for "
                f"at most {RESTART / 60:g} minutes"
            )
        return replace(outcome, wait=wait)

    def record_problem(self, problem: str | None) -> None:
        """Record the problem of an answer; a usable answer opens the limiter.

        Args:
            problem: The reason why the answer was not usable; None for a usable answer.
        """
        if problem is None:
            self.limiter.open()
        else:
            self._last_problem = problem

    async def _await_permission(self) -> None:
        """Wait until a new request is allowed, and count it.

        Only ``MAX_UNPROVEN`` requests are allowed before the first usable answer. If they all end
        without one, the run stops.
        """
        while (
            not self.limiter.opened
            and self._unproven_count >= MAX_UNPROVEN
            and self._stop_reason is None
        ):
            if not self._in_flight_count:
                self._stop_run(
                    f"none of {self._unproven_count} requests to {self._host} brought a usable"
                    f" answer; the last problem: {self._last_problem}"
                )
                return
            self._response_arrived.clear()
            await self._response_arrived.wait()
        self._unproven_count += 1

    async def _post_request(self, body: dict[str, object]) -> str | ApiError | _FailedTry:
        """Send a request, and return the text of a successful response or its error."""
        try:
            async with asyncio.timeout(self._endpoint.timeout):
                return await self._openai.post(
                    "/chat/completions", cast_to=str, content=orjson.dumps(body)
                )
        except openai.APIStatusError as error:
            response = error.response
            return read_api_error(response.status_code, response.headers, response.content)
        except TimeoutError:
            return _FailedTry(
                f"no complete answer within {self._endpoint.timeout:,g} s",
                answer_lost=True,
                answer_late=True,
            )
        except openai.APIConnectionError as error:
            return self._connection_failure(error)
        except (openai.OpenAIError, httpx2.HTTPError, OSError, ValueError) as error:
            return _FailedTry(self._endpoint.clean(str(error)) or type(error).__name__)

    def _connection_failure(self, error: openai.APIConnectionError) -> _FailedTry:
        """Return the failed try of a connection that broke or was never established."""
        cause = error.__cause__ or error
        reached = not isinstance(cause, _UNREACHED_ERRORS)
        reason = self._endpoint.clean(str(cause)) or "the connection was lost"
        is_late = isinstance(error, openai.APITimeoutError)
        if is_late:
            reason = "no answer in time" if reached else "no connection in time"
        # A server that answered before is probably restarting.
        is_away = not reached and self._answer_count > 0
        return _FailedTry(
            reason,
            server_reached=reached,
            answer_lost=reached,
            answer_late=is_late and reached,
            server_away=is_away,
        )

    async def _checked_reply(
        self, reply: Reply, chat_messages: Sequence[Mapping[str, str]], request: Request
    ) -> Reply | ContextOverflow:
        """Return a reply without the API key, or an overflow if the server cut the request."""
        self._answer_count += 1
        self._away_since = None
        self.limiter.request_succeeded()
        if self._is_cut_to_context(reply, request) or was_cut(reply, chat_messages, request.tokens):
            return ContextOverflow(
                f"{self._host} read only {reply.tokens_in:,} tokens of about "
                f"{request.tokens:,}: it cuts off text beyond its context (for Ollama set "
                "OLLAMA_CONTEXT_LENGTH=32768)",
                context_limit=reply.tokens_in,
                truncated_usage=reply.usage,
            )
        if len(reply.text) < LONG_ANSWER:
            text = scrub(reply.text, self._endpoint.api_key)
        else:  # a hostile answer may take seconds
            text = await asyncio.to_thread(scrub, reply.text, self._endpoint.api_key)
        return reply if text == reply.text else replace(reply, text=text)

    def _is_cut_to_context(self, reply: Reply, request: Request) -> bool:
        """Check whether the server cut a request to the size of its context.

        The count of tokens shows a cut if it is lower than the estimate and one of these holds:

        - The count is a usual context size. It is also the count of another request, or much lower
          than the estimate.
        - Another request with a clearly different estimate has the same count.

        A higher count of another request shows that the server has a larger context.
        """
        count = reply.tokens_in
        if not reply.counted or count < LEAST_CHECKED:
            return False
        server_has_read_more = count < self._highest_count
        self._highest_count = max(count, self._highest_count)
        fingerprint = replace(request, sample=0).fingerprint  # samples repeat a request
        first_fingerprint, first_tokens = self._first_request_by_count.setdefault(
            count, (fingerprint, request.tokens)
        )
        if server_has_read_more or request.tokens <= count:
            return False
        if is_context_size(count):
            return first_fingerprint != fingerprint or request.tokens > CUT_FACTOR * count
        return differ_clearly(first_tokens, request.tokens)

    def _unusable_outcome(self, reply: UnusableReply) -> _FailedTry | RunStops:
        """Return the failed try of a reply; stop the run if the first reply is a web page."""
        if reply.is_web_page and not self._answer_count:
            return self._stop_run(
                f"{self._host} answers with a web page, so it is not an OpenAI API; most API "
                "addresses end in /v1"
            )
        return _FailedTry(f"the response contained {reply.content}")

    async def _error_outcome(
        self,
        api_error: ApiError,
        request_form: RequestForm,
        body: Mapping[str, object],
        slow_downs_before: int,
    ) -> Reply | _FailedTry | AskError:
        """Handle an error of the server, and return the outcome of the try.

        A refused parameter changes the form of later requests. A busy server slows down all tasks.
        An error that concerns all requests stops the run.
        """
        message = self._endpoint.clean(api_error.message)
        if api_error.is_web_page:
            message = "a web page"
        reason = f"{message} ({api_error.status})"
        error_kind = error_kind_of(api_error)
        part = _REFUSED_PARTS.get(error_kind)
        if part is not None:
            if self.capabilities.change_form(request_form, part):
                return _FailedTry(reason, form_changed=True)
            return Unanswered(f"{self._host} refuses the request: {reason}")
        if error_kind in _PASSING_ERRORS:
            return self._passing_failure(error_kind, api_error, reason, slow_downs_before)
        if error_kind is ErrorKind.OVERFLOW:
            return ContextOverflow(
                f"the request is too long for {self._host}: {reason}",
                answer_room=answer_room(api_error),
                context_limit=context_limit(api_error),
            )
        if error_kind is ErrorKind.ANSWER_TOO_LONG:
            sent_limit = body.get(request_form.limit or "")
            if self.capabilities.lower_answer_limit(sent_limit, longest_answer(api_error)):
                return _FailedTry(reason, form_changed=True)
        if error_kind is ErrorKind.FILTERED:
            return Reply(message, "refusal", request_form.answer_format, 0, 0, counted=False)
        # A key that was accepted before is valid, so only this request is denied.
        is_denied_alone = error_kind is ErrorKind.DENIED and self._answer_count
        if error_kind is ErrorKind.REFUSED or is_denied_alone:
            return Unanswered(f"{self._host} refuses the request: {reason}")
        async with self._stop_lock:
            if self._stop_reason is None:
                return self._stop_run(await self._stop_message(error_kind, api_error, reason))
        return RunStops(self._stop_reason)

    def _passing_failure(
        self, error_kind: ErrorKind, api_error: ApiError, reason: str, slow_downs_before: int
    ) -> _FailedTry:
        """Return the failed try of a passing error; make all tasks wait if the server asks."""
        is_busy = error_kind is ErrorKind.BUSY
        is_loading = error_kind is ErrorKind.LOADING
        wait = api_error.wait or (LOADING_WAIT if is_loading else None)
        if is_loading:
            self._on_wait(f"{self._host} is loading the model; retrying every {wait:,g} s")
        if is_busy or wait:
            self._slow_down_all(slow_downs_before, wait)
        return _FailedTry(
            reason,
            server_busy=is_busy,
            model_loading=is_loading,
            server_away=not wait and api_error.status in AWAY_STATUS,
            wait=wait or 0.0,
        )

    def _slow_down_all(self, slow_downs_before: int, wait: float | None) -> None:
        """Lower the limit of concurrent requests, and make all tasks wait if ``wait`` is given.

        A long wait is reported unless an earlier wait is as long.
        """
        allowed_wait = None if wait is None else min(wait, MAX_WAIT)
        is_longer = self.limiter.slow_down(slow_downs_before, allowed_wait)
        if wait is None or not is_longer or wait < LONG_WAIT:
            return
        message = f"{self._host} asked to wait {wait:,.0f} s"
        if wait > MAX_WAIT:
            message += f"; retrying after {MAX_WAIT:,.0f} s"
        self._on_wait(message)

    def _stop_run(self, reason: str) -> RunStops:
        self._stop_reason = reason
        return RunStops(reason)

    async def _stop_message(self, error_kind: ErrorKind, api_error: ApiError, reason: str) -> str:
        """Return the message for an error of the server that stops the run."""
        variable = self._endpoint.key_variable
        if error_kind is ErrorKind.KEY and self._endpoint.api_key == NO_KEY:
            return f"{self._host} needs a key: set {variable} ({api_error.status})"
        message = _STOP_MESSAGES.get(error_kind)
        if message is None:
            return await self._not_found_message(error_kind, reason)
        target = self._endpoint.clean(api_error.location) or "elsewhere"
        return message.format(host=self._host, variable=variable, reason=reason, target=target)

    async def _not_found_message(self, error_kind: ErrorKind, reason: str) -> str:
        """Return the message that the model is unknown, or that the address is no API."""
        names: list[str] = []
        with suppress(RunStops):  # if the server cannot be asked, list no names
            names = await self.models()
        model = self._endpoint.clean(self._model)
        if names and self._model not in names:
            name_list = ", ".join(names[:MAX_NAMES])
            if len(names) > MAX_NAMES:
                name_list += f" and {len(names) - MAX_NAMES} more"
            return f"{self._host} has no model “{model}”; it has {name_list}"
        if error_kind is ErrorKind.NO_MODEL:
            return f"{self._host} has no model “{model}”: {reason}"
        return (
            f"{self._host} is not an OpenAI API at this address; most addresses end in /v1: "
            f"{reason}"
        )

    async def models(self) -> list[str]:
        """Return the names of the server's models; empty if the server does not list them.

        Raises:
            RunStops: The server cannot be reached, or refuses the key.
        """
        try:
            async with asyncio.timeout(NAMES_TIMEOUT):
                document = orjson.loads(await self._openai.get("/models", cast_to=str))
        except openai.APIStatusError as error:
            response = error.response
            api_error = read_api_error(response.status_code, response.headers, response.content)
            error_kind = error_kind_of(api_error)
            if error_kind in (ErrorKind.KEY, ErrorKind.DENIED, ErrorKind.REDIRECT):
                reason = f"{self._endpoint.clean(api_error.message)} ({api_error.status})"
                message = await self._stop_message(error_kind, api_error, reason)
                raise RunStops(message) from error
            return []
        except TimeoutError as error:
            raise RunStops(f"{self._host} did not answer within {NAMES_TIMEOUT:g} s") from error
        except openai.APIConnectionError as error:
            raise RunStops(
                f"{self._host} cannot be reached: {self._connection_failure(error).reason}"
            ) from error
        except (openai.OpenAIError, orjson.JSONDecodeError):
            return []
        models = document.get("data") if isinstance(document, dict) else None
        if not isinstance(models, list):
            return []
        names = (model.get("id") for model in models if isinstance(model, dict))
        return [self._endpoint.clean(name) for name in names if isinstance(name, str)]


def _leaves_server_unproven(outcome: _FailedTry | AskError) -> bool:
    """Check whether an outcome says nothing on the server's ability to answer.

    Such an outcome is a wait for the server, or a request that is too long.
    """
    if isinstance(outcome, _FailedTry):
        return bool(outcome.wait) and (outcome.model_loading or outcome.server_away)
    return isinstance(outcome, ContextOverflow)

"""Requests to a server with the OpenAI API, with retries and within the allowance."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
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
from mast_tui.judges.llm.client.bounded_http import connected
from mast_tui.judges.llm.client.budget import Budget
from mast_tui.judges.llm.client.endpoint import Endpoint
from mast_tui.judges.llm.client.keys import NO_KEY, KeyFilter, scrub
from mast_tui.judges.llm.client.rate_limiter import RateLimiter, back_off
from mast_tui.judges.llm.client.replies import LEAST_LOOKED_AT, UnusableReply, read_reply, was_cut
from mast_tui.judges.llm.errors import AskError, ContextOverflow, RunStops, Unanswered
from mast_tui.judges.llm.prompt.prompt import boundary_of, messages
from mast_tui.judges.llm.request import (
    Correction,
    ModelClient,
    Parameters,
    Reply,
    Request,
    differ_clearly,
    is_context_size,
)
from mast_tui.safe_text import one_line

TRIES: Final = 6

TIMEOUTS: Final = 2
"""The most tries of a request that times out: each may cost money."""

FREE_WAIT_SECONDS: Final = 900.0
"""The total seconds of requested waits that use up no tries."""

LOADING_WAIT: Final = 5.0
"""The seconds between two requests to a server that loads its model."""

MAX_UNPROVEN: Final = 8
"""The most requests before a first usable answer: more would fail alike, and these are enough to
learn which parameters the server refuses."""

MAX_WAIT: Final = 600.0
"""The longest wait in seconds, even if a server asks for more."""

LONG_WAIT: Final = 10.0
"""Longer waits, in seconds, are reported to the user."""

NAMES_TIMEOUT: Final = 5.0
"""The seconds that a server has to list its models for an error message."""

MAX_NAMES: Final = 5

CUT_FACTOR: Final = 1.2
"""A request counts as cut if its estimate is this many times its count and the count is a context
size: 19 of 20 estimates are nearer."""

RESTART: Final = 120.0
"""The seconds that a gateway or a server may take to restart."""

MIN_RESTART_WAIT: Final = 1.0
MAX_RESTART_WAIT: Final = 15.0
"""The bounds of the wait for a restarting server, which is as long as it has been away."""

LONG_ANSWER: Final = 100_000
"""Answers with more code points are searched for the key in another thread."""

_REFUSED_PARTS: Final[Mapping[ErrorKind, Part]] = {
    ErrorKind.FORM: "form",
    ErrorKind.SYSTEM: "system",
    ErrorKind.LIMIT: "limit",
    ErrorKind.TEMPERATURE: "temperature",
}
AWAY_STATUS: Final = (502, 503)
"""The status of a gateway whose server is away, and of a server that is not ready."""

_UNREACHED_ERRORS: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
"""The errors of connections that were never established."""


@dataclass(frozen=True, slots=True)
class _FailedTry:
    """A failed try that may be repeated.

    Attributes:
        words: The reason, for a person.
        reached: There was a connection.
        lost: The server may have answered all the same.
        late: The answer did not arrive in time.
        busy: The server only had too many requests.
        wait: The seconds that it asked to wait; all tasks wait.
        loading: The server has not loaded its model.
        away: The server, or the server behind it, is not there, as during a restart.
        learned: The request is sent again at once in another form.
    """

    words: str
    reached: bool = True
    lost: bool = False
    late: bool = False
    busy: bool = False
    wait: float = 0.0
    loading: bool = False
    away: bool = False
    learned: bool = False


class Client(ModelClient):
    """Requests to one server for one model, by the tasks of one event loop.

    Proxies of the environment are used, but not for this machine.

    Args:
        parameters: The model and its parameters.
        endpoint: The server.
        budget: The allowance.
        limiter: The limit of simultaneous requests.
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
        """The limit of simultaneous requests."""
        self._on_wait = on_wait
        self.capabilities = ApiCapabilities(parameters, endpoint.host, on_remark)
        """The parameters that the server accepts, as far as is known."""
        self._secret = secrets.token_bytes(32)
        self._answered = 0
        self._unproven = 0
        self._in_flight = 0
        self._returned = asyncio.Event()
        self._last_problem = ""
        self._counts: dict[int, tuple[str, int]] = {}
        """The first request with each token count: its fingerprint and estimate."""
        self._most_counted = 0
        """The highest token count of a request."""
        self._away_since: float | None = None
        """The time of the first failed request while the server is away; None otherwise."""
        self._stopped: str | None = None
        self._stopping = asyncio.Lock()
        self._openai = connected(endpoint)
        self._hidden = KeyFilter(endpoint.api_key)
        self._hidden.watch()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; no request can be sent any more."""
        await self._openai.close()
        self._hidden.leave()

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Ask the model, as ``ModelClient`` defines.

        Args:
            request: The request.
            answer_tokens: The most tokens of the answer.
            correction: The problem of an earlier answer, which the model is to correct.

        Raises:
            ContextOverflow: The request is too long, or the server read only a part of it.
            Unanswered: There was no usable answer in the allowed tries, or the request was refused.
            RunStops: No request will be answered, or the allowance is spent.
        """
        failures = 0
        unreached = 0
        late = 0
        sent = 0
        waited = 0.0
        while True:
            answered_before = self._answered
            outcome = await self._try(request, answer_tokens, correction)
            sent += 1
            if isinstance(outcome, Reply):
                return outcome
            if isinstance(outcome, AskError):
                self._last_problem = str(outcome)
                if isinstance(outcome, ContextOverflow):  # a shorter request may be answered
                    self._unproven -= 1
                raise outcome
            self._last_problem = outcome.words
            if outcome.learned:
                continue
            if outcome.wait and (outcome.loading or outcome.away):
                self._unproven -= 1
            waited += outcome.wait
            others_answered = outcome.busy and self._answered > answered_before
            if not others_answered and (not outcome.wait or waited > FREE_WAIT_SECONDS):
                failures += 1
            late += outcome.late
            unreached += not outcome.reached
            if outcome.away and not outcome.wait:
                raise self._given_up(outcome, sent, unreached=unreached == sent)
            if failures >= self._tries or late >= TIMEOUTS:
                raise self._given_up(outcome, failures, unreached=unreached == failures)
            if outcome.late:
                self._on_wait(f"{self._host}: {outcome.words}; it is asked again")
            if not outcome.wait:
                await self.limiter.timing.sleep(
                    back_off(max(failures, 1), self.limiter.timing.random())
                )

    def _given_up(self, last: _FailedTry, failures: int, *, unreached: bool) -> AskError:
        if unreached:
            return RunStops(
                f"no answer from {self._host}: {last.words}; the same command continues the run"
            )
        tries = "1 try" if failures == 1 else f"{failures} tries"
        return Unanswered(
            f"{self._host} gave no usable answer in {tries}; the last problem: {last.words}"
        )

    async def _try(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None
    ) -> Reply | _FailedTry | AskError:
        """Send a request once."""
        async with self.limiter.turn() as turn:
            await self._prove()
            if self._stopped is not None:
                return RunStops(self._stopped)
            room = int(answer_tokens)
            reserved = await self._budget.reserve(request.tokens, room)
            try:
                request_form = self.capabilities.request_form
                texts = messages(request, boundary_of(request, self._secret), correction)
                body = self.capabilities.body(request_form, texts, request.schema, room)
                self._in_flight += 1
                try:
                    sent = await self._send(body)
                finally:
                    self._in_flight -= 1
                    self._returned.set()
                received = (
                    read_reply(sent, form=request_form.form, sent_tokens=request.tokens)
                    if isinstance(sent, str)
                    else sent
                )
                if isinstance(received, Reply | UnusableReply) and received.tokens_in:
                    cached = received.tokens_cached if isinstance(received, Reply) else 0
                    self._budget.settle(reserved, received.tokens_in, received.tokens_out, cached)
                elif isinstance(received, UnusableReply) or (
                    isinstance(received, _FailedTry) and received.lost
                ):
                    self._budget.lose(reserved)
            finally:
                self._budget.release(reserved)
            if isinstance(received, Reply):
                return await self._replied(received, texts, request)
            outcome: Reply | _FailedTry | AskError
            if isinstance(received, UnusableReply):
                outcome = self._unusable(received)
            elif isinstance(received, ApiError):
                outcome = await self._refused(received, request_form, body, turn)
            else:
                outcome = received
            if isinstance(outcome, _FailedTry) and outcome.away:
                return self._while_away(outcome, turn)
            self._away_since = None
            return outcome

    def _while_away(self, outcome: _FailedTry, turn: int) -> _FailedTry:
        """Make all tasks wait for a server that restarts."""
        now = self.limiter.timing.now()
        if self._away_since is None:
            self._away_since = now
        away = now - self._away_since
        if away >= RESTART:
            return outcome
        wait = min(max(away, MIN_RESTART_WAIT), MAX_RESTART_WAIT)
        if self.limiter.slow_down(turn, wait):
            self._on_wait(
                f"{self._host} is not ready: {outcome.words}; it is asked again in"
                f" {wait:,.0f} s, for {RESTART / 60:g} minutes at most"
            )
        return replace(outcome, wait=wait)

    def note(self, problem: str | None) -> None:
        """Record that an answer was usable, so that all tasks may send; or why it was not."""
        if problem is None:
            self.limiter.open()
        else:
            self._last_problem = problem

    async def _prove(self) -> None:
        """Count a request before the first usable answer, and stop after too many.

        Requests in flight may still get a usable answer, so they are awaited first.
        """
        while not self.limiter.opened and self._unproven >= MAX_UNPROVEN and self._stopped is None:
            if not self._in_flight:
                self._stop(
                    f"none of {self._unproven} requests to {self._host} brought a usable answer;"
                    f" the last problem: {self._last_problem}"
                )
                return
            self._returned.clear()
            await self._returned.wait()
        self._unproven += 1

    async def _send(self, body: dict[str, object]) -> str | ApiError | _FailedTry:
        """Return the text of a successful response, or the error; raise nothing."""
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
                f"no whole answer within {self._endpoint.timeout:,g} s", lost=True, late=True
            )
        except openai.APIConnectionError as error:
            return self._lost(error)
        except (openai.OpenAIError, httpx2.HTTPError, OSError, ValueError) as error:
            return _FailedTry(self._endpoint.clean(str(error)) or type(error).__name__)

    def _lost(self, error: openai.APIConnectionError) -> _FailedTry:
        """Return the failed try for a lost connection."""
        cause = error.__cause__ or error
        reached = not isinstance(cause, _UNREACHED_ERRORS)
        reason = self._endpoint.clean(str(cause)) or "the connection broke off"
        late = isinstance(error, openai.APITimeoutError)
        if late:
            reason = "no answer in time" if reached else "no connection in time"
        away = not reached and self._answered > 0
        return _FailedTry(reason, reached=reached, lost=reached, late=late and reached, away=away)

    async def _replied(
        self, reply: Reply, texts: Sequence[Mapping[str, str]], request: Request
    ) -> Reply | ContextOverflow:
        self._answered += 1
        self._away_since = None
        self.limiter.request_succeeded()
        if self._is_cut_to_context(reply, request) or was_cut(
            reply, (text["content"] for text in texts), request.tokens
        ):
            return ContextOverflow(
                f"{self._host} read only {reply.tokens_in:,} tokens of about {request.tokens:,}:"
                " it cuts what is longer than its context (for Ollama set"
                " OLLAMA_CONTEXT_LENGTH=32768)",
                context_limit=reply.tokens_in,
                truncated_usage=reply.usage,
            )
        if len(reply.text) < LONG_ANSWER:
            text = scrub(reply.text, self._endpoint.api_key)
        else:  # a hostile answer may take seconds
            text = await asyncio.to_thread(scrub, reply.text, self._endpoint.api_key)
        return reply if text == reply.text else replace(reply, text=text)

    def _is_cut_to_context(self, reply: Reply, request: Request) -> bool:
        """Return whether a request's token count is the most that the server reads of any request.

        Different requests with the same count were cut to it if one is clearly shorter, or if the
        count is a power of two, as context sizes are. A single request was cut if its estimate is
        clearly more than such a count. A higher count of another request proves a larger context.
        """
        count = reply.tokens_in
        if not reply.counted or count < LEAST_LOOKED_AT:
            return False
        reads_more = count < self._most_counted
        self._most_counted = max(count, self._most_counted)
        fingerprint = replace(request, sample=0).fingerprint  # samples repeat a request
        first_fingerprint, first_tokens = self._counts.setdefault(
            count, (fingerprint, request.tokens)
        )
        if reads_more or request.tokens <= count:
            return False
        if is_context_size(count):
            return first_fingerprint != fingerprint or request.tokens > CUT_FACTOR * count
        return differ_clearly(first_tokens, request.tokens)

    def _unusable(self, reply: UnusableReply) -> _FailedTry | RunStops:
        if reply.page and not self._answered:
            return self._stop(
                f"{self._host} answers with a web page, so it is not an OpenAI API;"
                " most addresses end in /v1"
            )
        return _FailedTry(f"the response held {reply.content}")

    async def _refused(
        self,
        refusal: ApiError,
        request_form: RequestForm,
        body: Mapping[str, object],
        turn: int,
    ) -> Reply | _FailedTry | AskError:
        """Return the consequence of an error of the server."""
        message = self._endpoint.clean(refusal.message)
        if refusal.page:
            message = "a web page"
        reason = f"{message} ({refusal.status})"
        error_kind = error_kind_of(refusal)
        if (part := _REFUSED_PARTS.get(error_kind)) is not None:
            if self.capabilities.refused(request_form, part):
                return _FailedTry(reason, learned=True)
            return Unanswered(f"{self._host} refuses the request: {reason}")
        if error_kind in (ErrorKind.BUSY, ErrorKind.AGAIN, ErrorKind.LOADING):
            busy = error_kind is ErrorKind.BUSY
            loading = error_kind is ErrorKind.LOADING
            wait = refusal.wait or (LOADING_WAIT if loading else None)
            if loading:
                self._on_wait(
                    f"{self._host} is loading the model; it is asked again every {wait:,g} s"
                )
            if busy or wait:
                self._slow_down(turn, wait)
            away = not wait and refusal.status in AWAY_STATUS
            return _FailedTry(reason, busy=busy, loading=loading, away=away, wait=wait or 0.0)
        if error_kind is ErrorKind.OVERFLOW:
            return ContextOverflow(
                f"the request is too long for {self._host}: {reason}",
                answer_room=answer_room(refusal),
                context_limit=context_limit(refusal),
            )
        if error_kind is ErrorKind.ANSWER_TOO_LONG:
            sent = body.get(request_form.limit or "")
            if self.capabilities.answer_was_too_long(sent, longest_answer(refusal)):
                return _FailedTry(reason, learned=True)
        if error_kind is ErrorKind.FILTERED:
            return Reply(message, "refusal", request_form.form, 0, 0, counted=False)
        if error_kind is ErrorKind.REFUSED or (error_kind is ErrorKind.DENIED and self._answered):
            return Unanswered(f"{self._host} refuses the request: {reason}")
        async with self._stopping:
            if self._stopped is None:
                return self._stop(await self._why_stopped(error_kind, refusal, reason))
        return RunStops(self._stopped)

    def _slow_down(self, turn: int, wait: float | None) -> None:
        is_longer = self.limiter.slow_down(turn, None if wait is None else min(wait, MAX_WAIT))
        if wait is None or not is_longer or wait < LONG_WAIT:
            return
        message = f"{self._host} asked to wait {wait:,.0f} s"
        if wait > MAX_WAIT:
            message += f"; it is asked again after {MAX_WAIT:,.0f} s"
        self._on_wait(message)

    def _stop(self, reason: str) -> RunStops:
        """Stop all further requests."""
        self._stopped = reason
        return RunStops(reason)

    async def _why_stopped(self, error_kind: ErrorKind, refusal: ApiError, reason: str) -> str:
        variable = self._endpoint.key_variable
        if error_kind is ErrorKind.KEY and self._endpoint.api_key == NO_KEY:
            return f"{self._host} needs a key: set {variable} to it ({refusal.status})"
        if error_kind in (ErrorKind.KEY, ErrorKind.DENIED):
            return f"{self._host} refuses the key that {variable} holds: {reason}"
        if error_kind is ErrorKind.MONEY:
            return f"there is no credit left at {self._host}: {reason}"
        if error_kind is ErrorKind.ANSWER_TOO_LONG:
            return (
                f"{self._host} allows no answers of this length; allow fewer tokens for them: "
                f"{reason}"
            )
        if error_kind is ErrorKind.REDIRECT:
            target = self._endpoint.clean(refusal.location) or "elsewhere"
            return (
                f"{self._host} redirects to {target}, to which neither traces nor the key are sent;"
                " put that address in the settings if it is right"
            )
        return await self._why_not_found(error_kind, reason)

    async def _why_not_found(self, error_kind: ErrorKind, reason: str) -> str:
        """Say that the model is unknown, or that the address is not an API."""
        names = await self._models()
        model = self._endpoint.clean(self._model)
        if names and self._model not in names:
            listed = ", ".join(names[:MAX_NAMES])
            more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
            return f"{self._host} has no model “{model}”; it has {listed}{more}"
        if error_kind is ErrorKind.NO_MODEL:
            return f"{self._host} has no model “{model}”: {reason}"
        return f"{self._host} is not an OpenAI API at this address; most end in /v1: {reason}"

    async def models(self) -> list[str]:
        """List the models of the server; empty if it does not list them.

        Raises:
            RunStops: The server cannot be reached, or refuses the key.
        """
        try:
            async with asyncio.timeout(NAMES_TIMEOUT):
                listed = orjson.loads(await self._openai.get("/models", cast_to=str))
        except openai.APIStatusError as error:
            response = error.response
            refusal = read_api_error(response.status_code, response.headers, response.content)
            error_kind = error_kind_of(refusal)
            if error_kind in (ErrorKind.KEY, ErrorKind.DENIED, ErrorKind.REDIRECT):
                reason = f"{self._endpoint.clean(refusal.message)} ({refusal.status})"
                message = await self._why_stopped(error_kind, refusal, reason)
                raise RunStops(message) from error
            return []
        except TimeoutError as error:
            raise RunStops(f"{self._host} does not answer within {NAMES_TIMEOUT:g} s") from error
        except openai.APIConnectionError as error:
            raise RunStops(f"{self._host} cannot be reached: {self._lost(error).words}") from error
        except (openai.OpenAIError, orjson.JSONDecodeError):
            return []
        models = listed.get("data") if isinstance(listed, dict) else None
        if not isinstance(models, list):
            return []
        names = (model.get("id") for model in models if isinstance(model, dict))
        return [self._endpoint.clean(name) for name in names if isinstance(name, str)]

    async def _models(self) -> list[str]:
        """List the models for an error message; empty if the server cannot be asked."""
        try:
            return await self.models()
        except RunStops:
            return []

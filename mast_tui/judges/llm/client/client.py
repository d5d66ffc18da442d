"""Asking a server that speaks the OpenAI API: patient with it, and within what may be spent."""

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
"""So often a request whose answer does not come in time is sent: each may have to be paid."""

MOST_WAITED: Final = 900.0
"""Seconds; waits that a server asks for use up no tries until they are longer than this in all."""

LOADING_WAIT: Final = 5.0
"""Seconds after which a server that loads its model is asked again."""

UNPROVEN: Final = 8
"""So many requests are sent at most before an answer could be used: more would fail alike. They are
enough to learn all that a server does not take."""

MOST_WAIT: Final = 600.0
"""Seconds; a server that asks to wait for longer is tried again after these."""

LONG_WAIT: Final = 10.0
"""Seconds; a person is told of longer waits."""

NAMES_WITHIN: Final = 5.0
"""Seconds in which a server must list its models to have them named in an error."""

NAMES_SHOWN: Final = 5

CLEARLY_MORE: Final = 1.2
"""So many times the count of a request its estimate is, where that count is just what a context
holds and the request is taken for one that was cut: of 20 estimates 19 are nearer."""

RESTART: Final = 120.0
"""Seconds that a gateway or a server takes to restart."""

LEAST_RESTART_WAIT: Final = 1.0
MOST_RESTART_WAIT: Final = 15.0
"""Seconds after which a server that restarts is asked again: as long as it is away by then, within
these bounds."""

LONG_ANSWER: Final = 100_000
"""Code points; a longer answer is looked through for the key beside the loop."""

_PARTS: Final[Mapping[ErrorKind, Part]] = {
    ErrorKind.FORM: "form",
    ErrorKind.SYSTEM: "system",
    ErrorKind.LIMIT: "limit",
    ErrorKind.TEMPERATURE: "temperature",
}
AWAY: Final = (502, 503)
"""What a gateway says while the server behind it is away, and a server that is not ready yet."""

_NOT_REACHED: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
"""A connection that never was."""


@dataclass(frozen=True, slots=True)
class _Again:
    """A try that failed and may be repeated.

    ``reached`` says whether there was a connection, ``lost`` that the server may have answered
    all the same, ``late`` that it did not in time, ``busy`` that it only had too much to do.
    ``wait`` are the seconds that it asked to wait, which all tasks do alike; ``loading`` says that
    it has no model yet, ``away`` that it or what stands behind it is not there, as while it
    restarts, ``learned`` that it is asked in another manner at once.
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
    """Sends requests to one server, for one model; for the tasks of one event loop.

    Proxies of the environment are used, but not for this machine. ``tries`` is how often a request
    is sent at most. ``on_wait`` is told of long waits, ``on_remark`` of what the server does not
    take; both get words for a person.

    Raises:
        RunStops: the address cannot be asked, in words.
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
            raise RunStops(f"“{one_line(parameters.model, 80)}” can be no name of a model")
        self._model = parameters.model
        self._endpoint, self._host = endpoint, endpoint.host
        self._tries = tries
        self._budget = budget or Budget()
        self.limiter = limiter or RateLimiter()
        """How many requests are under way."""
        self._on_wait = on_wait
        self.capabilities = ApiCapabilities(parameters, endpoint.host, on_remark)
        """What the server takes, as far as that is known."""
        self._secret = secrets.token_bytes(32)
        self._answered = 0
        self._unproven = 0
        self._out = 0
        self._back = asyncio.Event()
        self._last_words = ""
        self._counts: dict[int, tuple[str, int]] = {}
        """The first request that the server counted with so many tokens: fingerprint, estimate."""
        self._most_counted = 0
        """The most tokens that the server has counted for a request."""
        self._away_since: float | None = None
        """When a server that is away was first asked in vain; None where it is there."""
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
        """Ask the model, as ``ModelClient`` says.

        Raises:
            ContextOverflow: The request is too long, or the server read only a part of it.
            Unanswered: No usable answer in so many tries, or the request was refused.
            RunStops: No request will be answered, or the allowance is spent.
        """
        failures = 0
        unreached = 0
        late = 0
        sent = 0
        waited = 0.0
        while True:
            before = self._answered
            outcome = await self._try(request, answer_tokens, correction)
            sent += 1
            if isinstance(outcome, Reply):
                return outcome
            if isinstance(outcome, AskError):
                self._last_words = str(outcome)
                if isinstance(outcome, ContextOverflow):  # a shorter request may well be answered
                    self._unproven -= 1
                raise outcome
            self._last_words = outcome.words
            if outcome.learned:
                continue
            if outcome.wait and (outcome.loading or outcome.away):
                self._unproven -= 1
            waited += outcome.wait
            others = outcome.busy and self._answered > before
            if not others and (not outcome.wait or waited > MOST_WAITED):
                failures += 1
            late += outcome.late
            unreached += not outcome.reached
            if outcome.away and not outcome.wait:
                raise self._given_up(outcome, sent, nobody=unreached == sent)
            if failures >= self._tries or late >= TIMEOUTS:
                raise self._given_up(outcome, failures, nobody=unreached == failures)
            if outcome.late:
                self._on_wait(f"{self._host}: {outcome.words}; it is asked once more")
            if not outcome.wait:
                await self.limiter.timing.sleep(
                    back_off(max(failures, 1), self.limiter.timing.random())
                )

    def _given_up(self, last: _Again, failures: int, *, nobody: bool) -> AskError:
        if nobody:
            return RunStops(
                f"no answer from {self._host}: {last.words};"
                " the same command goes on where it stopped"
            )
        tries = "1 try" if failures == 1 else f"{failures} tries"
        return Unanswered(f"{self._host} gave no usable answer in {tries}, at last: {last.words}")

    async def _try(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None
    ) -> Reply | _Again | AskError:
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
                self._out += 1
                try:
                    sent = await self._send(body)
                finally:
                    self._out -= 1
                    self._back.set()
                got = (
                    read_reply(sent, form=request_form.form, sent_tokens=request.tokens)
                    if isinstance(sent, str)
                    else sent
                )
                if isinstance(got, Reply | UnusableReply) and got.tokens_in:
                    cached = got.tokens_cached if isinstance(got, Reply) else 0
                    self._budget.settle(reserved, got.tokens_in, got.tokens_out, cached)
                elif isinstance(got, UnusableReply) or (isinstance(got, _Again) and got.lost):
                    self._budget.lose(reserved)
            finally:
                self._budget.release(reserved)
            if isinstance(got, Reply):
                return await self._replied(got, texts, request)
            outcome: Reply | _Again | AskError = (
                self._unusable(got)
                if isinstance(got, UnusableReply)
                else await self._refused(got, request_form, body, turn)
                if isinstance(got, ApiError)
                else got
            )
            if isinstance(outcome, _Again) and outcome.away:
                return self._while_away(outcome, turn)
            self._away_since = None
            return outcome

    def _while_away(self, outcome: _Again, turn: int) -> _Again:
        """Have all tasks wait for a server that restarts, for as long as that takes."""
        now = self.limiter.timing.now()
        if self._away_since is None:
            self._away_since = now
        away = now - self._away_since
        if away >= RESTART:
            return outcome
        wait = min(max(away, LEAST_RESTART_WAIT), MOST_RESTART_WAIT)
        if self.limiter.slow_down(turn, wait):
            self._on_wait(
                f"{self._host} is not ready: {outcome.words}; it is asked again in"
                f" {wait:,.0f} s, for {RESTART / 60:g} minutes at most"
            )
        return replace(outcome, wait=wait)

    def note(self, problem: str | None) -> None:
        """Take in that an answer could be used, so that all may ask at once; or why not."""
        if problem is None:
            self.limiter.open()
        else:
            self._last_words = problem

    async def _prove(self) -> None:
        """Count a request that is sent before an answer could be used; stop where too many were.

        What is still under way may yet be of use, so that is waited for.
        """
        while not self.limiter.opened and self._unproven >= UNPROVEN and self._stopped is None:
            if not self._out:
                self._stop(
                    f"none of {self._unproven} requests to {self._host} brought an answer that can"
                    f" be used; at last: {self._last_words}"
                )
                return
            self._back.clear()
            await self._back.wait()
        self._unproven += 1

    async def _send(self, body: dict[str, object]) -> str | ApiError | _Again:
        """The text of a right response, or what came in its place; raises nothing."""
        try:
            async with asyncio.timeout(self._endpoint.timeout):
                return await self._openai.post(
                    "/chat/completions", cast_to=str, content=orjson.dumps(body)
                )
        except openai.APIStatusError as error:
            response = error.response
            return read_api_error(response.status_code, response.headers, response.content)
        except TimeoutError:
            return _Again(
                f"no whole answer within {self._endpoint.timeout:,g} s", lost=True, late=True
            )
        except openai.APIConnectionError as error:
            return self._lost(error)
        except (openai.OpenAIError, httpx2.HTTPError, OSError, ValueError) as error:
            return _Again(self._endpoint.clean(str(error)) or type(error).__name__)

    def _lost(self, error: openai.APIConnectionError) -> _Again:
        """A request whose connection failed."""
        cause = error.__cause__ or error
        reached = not isinstance(cause, _NOT_REACHED)
        said = self._endpoint.clean(str(cause)) or "the connection broke off"
        late = isinstance(error, openai.APITimeoutError)
        if late:
            said = "no answer in time" if reached else "no connection in time"
        away = not reached and self._answered > 0
        return _Again(said, reached=reached, lost=reached, late=late and reached, away=away)

    async def _replied(
        self, reply: Reply, texts: Sequence[Mapping[str, str]], request: Request
    ) -> Reply | ContextOverflow:
        self._answered += 1
        self._away_since = None
        self.limiter.went_well()
        if self._reads_no_more(reply, request) or was_cut(
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
        else:  # seconds, where somebody means ill
            text = await asyncio.to_thread(scrub, reply.text, self._endpoint.api_key)
        return reply if text == reply.text else replace(reply, text=text)

    def _reads_no_more(self, reply: Reply, request: Request) -> bool:
        """Return whether the count of a request is all that the server reads of any request.

        Different requests with one count were cut to it, where one is clearly shorter than the
        other, or where the count is a power of two, as contexts are. Such a count of a single
        request whose estimate is clearly more is no chance either. A server that has counted more
        for another request reads more than that.
        """
        count = reply.tokens_in
        if not reply.counted or count < LEAST_LOOKED_AT:
            return False
        reads_more = count < self._most_counted
        self._most_counted = max(count, self._most_counted)
        asked = replace(request, sample=0).fingerprint  # samples ask the same
        other, tokens = self._counts.setdefault(count, (asked, request.tokens))
        if reads_more or request.tokens <= count:
            return False
        if is_context_size(count):
            return other != asked or request.tokens > CLEARLY_MORE * count
        return differ_clearly(tokens, request.tokens)

    def _unusable(self, got: UnusableReply) -> _Again | RunStops:
        if got.page and not self._answered:
            return self._stop(
                f"{self._host} answers with a web page, which is no OpenAI API;"
                " most addresses end in /v1"
            )
        return _Again(f"the response held {got.content}")

    async def _refused(
        self,
        refusal: ApiError,
        request_form: RequestForm,
        body: Mapping[str, object],
        turn: int,
    ) -> Reply | _Again | AskError:
        """What follows from an error of the server."""
        words = self._endpoint.clean(refusal.message)
        if refusal.page:
            words = "a web page"
        said = f"{words} ({refusal.status})"
        error_kind = error_kind_of(refusal)
        if (part := _PARTS.get(error_kind)) is not None:
            if self.capabilities.refused(request_form, part):
                return _Again(said, learned=True)
            return Unanswered(f"{self._host} refuses the request: {said}")
        if error_kind in (ErrorKind.BUSY, ErrorKind.AGAIN, ErrorKind.LOADING):
            busy, loading = error_kind is ErrorKind.BUSY, error_kind is ErrorKind.LOADING
            wait = refusal.wait or (LOADING_WAIT if loading else None)
            if loading:
                self._on_wait(f"{self._host} loads the model; it is asked again every {wait:,g} s")
            if busy or wait:
                self._slow_down(turn, wait)
            away = not wait and refusal.status in AWAY
            return _Again(said, busy=busy, loading=loading, away=away, wait=wait or 0.0)
        if error_kind is ErrorKind.OVERFLOW:
            return ContextOverflow(
                f"the request is too long for {self._host}: {said}",
                answer_room=answer_room(refusal),
                context_limit=context_limit(refusal),
            )
        if error_kind is ErrorKind.ANSWER_TOO_LONG:
            sent = body.get(request_form.limit or "")
            if self.capabilities.answer_was_too_long(sent, longest_answer(refusal)):
                return _Again(said, learned=True)
        if error_kind is ErrorKind.FILTERED:
            return Reply(words, "refusal", request_form.form, 0, 0, counted=False)
        if error_kind is ErrorKind.REFUSED or (error_kind is ErrorKind.DENIED and self._answered):
            return Unanswered(f"{self._host} refuses the request: {said}")
        async with self._stopping:
            if self._stopped is None:
                return self._stop(await self._why_stopped(error_kind, refusal, said))
        return RunStops(self._stopped)

    def _slow_down(self, turn: int, wait: float | None) -> None:
        news = self.limiter.slow_down(turn, None if wait is None else min(wait, MOST_WAIT))
        if wait is None or not news or wait < LONG_WAIT:
            return
        words = f"{self._host} asked to wait {wait:,.0f} s"
        if wait > MOST_WAIT:
            words += f"; it is asked again after {MOST_WAIT:,.0f} s"
        self._on_wait(words)

    def _stop(self, words: str) -> RunStops:
        """From now on nothing is sent any more."""
        self._stopped = words
        return RunStops(words)

    async def _why_stopped(self, error_kind: ErrorKind, refusal: ApiError, said: str) -> str:
        variable = self._endpoint.key_variable
        if error_kind is ErrorKind.KEY and self._endpoint.api_key == NO_KEY:
            return f"{self._host} wants a key: set {variable} to one ({refusal.status})"
        if error_kind in (ErrorKind.KEY, ErrorKind.DENIED):
            return f"{self._host} refuses the key that {variable} holds: {said}"
        if error_kind is ErrorKind.MONEY:
            return f"there is no credit left at {self._host}: {said}"
        if error_kind is ErrorKind.ANSWER_TOO_LONG:
            return f"{self._host} gives no answers so long; allow fewer tokens for them: {said}"
        if error_kind is ErrorKind.REDIRECT:
            where = self._endpoint.clean(refusal.location) or "elsewhere"
            return (
                f"{self._host} sends on to {where}, where neither traces nor the key are sent;"
                " put that address in the settings if it is right"
            )
        return await self._why_not_found(error_kind, said)

    async def _why_not_found(self, error_kind: ErrorKind, said: str) -> str:
        """Whether it is the model that is unknown, or the address that is no API."""
        names = await self._models()
        model = self._endpoint.clean(self._model)
        if names and self._model not in names:
            shown = ", ".join(names[:NAMES_SHOWN])
            more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
            return f"{self._host} knows no model “{model}”; it has {shown}{more}"
        if error_kind is ErrorKind.NO_MODEL:
            return f"{self._host} knows no model “{model}”: {said}"
        return f"{self._host} is no OpenAI API at this address; most end in /v1: {said}"

    async def models(self) -> list[str]:
        """List the models that the server has; none where it does not tell.

        Raises:
            RunStops: It cannot be reached, or refuses the key.
        """
        try:
            async with asyncio.timeout(NAMES_WITHIN):
                listed = orjson.loads(await self._openai.get("/models", cast_to=str))
        except openai.APIStatusError as error:
            response = error.response
            refusal = read_api_error(response.status_code, response.headers, response.content)
            error_kind = error_kind_of(refusal)
            if error_kind in (ErrorKind.KEY, ErrorKind.DENIED, ErrorKind.REDIRECT):
                said = f"{self._endpoint.clean(refusal.message)} ({refusal.status})"
                words = await self._why_stopped(error_kind, refusal, said)
                raise RunStops(words) from error
            return []
        except TimeoutError as error:
            raise RunStops(f"{self._host} does not answer within {NAMES_WITHIN:g} s") from error
        except openai.APIConnectionError as error:
            raise RunStops(f"{self._host} is not reached: {self._lost(error).words}") from error
        except (openai.OpenAIError, orjson.JSONDecodeError):
            return []
        models = listed.get("data") if isinstance(listed, dict) else None
        if not isinstance(models, list):
            return []
        names = (model.get("id") for model in models if isinstance(model, dict))
        return [self._endpoint.clean(name) for name in names if isinstance(name, str)]

    async def _models(self) -> list[str]:
        """The same to explain a refusal, where a server that does not tell is no news."""
        try:
            return await self.models()
        except RunStops:
            return []

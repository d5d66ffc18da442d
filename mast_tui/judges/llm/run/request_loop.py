"""The loop for one request: a stored answer, or a new one with another try if it is unusable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeVar

from mast_tui.judges.llm.answer.parsing import Malformed
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.request import (
    ContextOverflow,
    Correction,
    Form,
    ModelClient,
    Reply,
    Request,
    TraceFails,
    Unanswered,
)
from mast_tui.safe_text import one_line
from mast_tui.workspace import Usage

A = TypeVar("A")

MOST_REFUSAL_CHARS: Final = 200
"""The most characters of a refusal that a message quotes."""

MOST_ANSWER_CHARS: Final = 80
"""The most characters of an unusable answer that a message quotes."""

MOST_ROOM: Final = 32_000
"""The most tokens that an answer may get beyond the setting, for a model that thinks for long."""

HARDLY_BEGUN: Final = 0.25
"""The share of text in a cut answer below which thinking used up the tokens."""

_CUT_SHORT: Final = 0.9
"""The share of its token limit below which an answer was not cut by that limit."""

_CONTEXT_UNIT: Final = 256
_SLACK: Final = 2
"""The tokens by which request and cut answer together may differ from a context size."""

_PROBLEMS: Final = {"length": "the answer was cut", "refusal": "the model refused"}


class AnswerStore(Protocol):
    """A store of answers, so that no answer is paid for twice."""

    async def find_answer(self, key: str) -> Reply | None:
        """Return the last usable answer of a key, or None if there is none or it was rejected."""
        ...

    async def keep(self, key: str, reply: Reply, usable: bool, sent: int = 0) -> None:
        """Store an answer, even if the waiting task is cancelled.

        Args:
            key: The key of the request.
            reply: The answer.
            usable: True if the answer need not be requested again.
            sent: The estimated tokens of the request.
        """
        ...

    async def reject(self, key: str) -> None:
        """Mark the last answer of a key as unusable."""
        ...

    async def take_back(self, limit: int, sent: int) -> None:
        """Withdraw the answers to requests that the server truncated.

        Args:
            limit: The number of tokens that the server read.
            sent: The estimated tokens of the request that showed the truncation.
        """
        ...


class AnswerLimits:
    """The token limit of an answer, shared by all traces of a run; it grows if a model needs more.

    Args:
        asked_for: The limit in the settings.
        raised_for_all: True if one trace may raise the limit for all traces.
    """

    def __init__(self, asked_for: int, *, raised_for_all: bool = True) -> None:
        self._raised_for_all = raised_for_all
        self.current = asked_for
        """The limit for the next request."""
        # The setting may be doubled at least once.
        largest = max(MOST_ROOM, 2 * asked_for)
        self.all: tuple[int, ...] = tuple(
            sorted({min(asked_for * 2**doublings, largest) for doublings in range(8)})
        )
        """All limits that may be used, in ascending order."""
        self._first_answer_lock = asyncio.Lock()
        self._has_usable_answer = False

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the first usable answer, or hold the only turn until then."""
        if not self._has_usable_answer:
            async with self._first_answer_lock:
                if not self._has_usable_answer:
                    yield
                    return
        yield

    def record_usable_answer(self) -> None:
        self._has_usable_answer = True

    def more_tokens(self, limit: int, *, thinking: bool) -> int | None:
        """Return the limit after an answer was too long; None if it already had the largest limit.

        Thinking may also raise the limit for all further requests.

        Args:
            limit: The limit that was too low.
            thinking: True if thinking used up the tokens.
        """
        if limit == self.all[-1]:
            return None
        factor = 4 if thinking else 2
        tokens = min(limit * factor, self.all[-1])
        if thinking and self._raised_for_all:
            self.current = max(self.current, tokens)
        return tokens


class _RequestRoom:
    """The token limit of the answer to one request, read from the run's limit when it is sent."""

    def __init__(self, limits: AnswerLimits) -> None:
        self._limits = limits
        self._fewest_tokens = 0
        """The lowest limit of the next try, after an earlier try had too few tokens."""
        self.tokens = limits.current
        """The limit with which the request was sent last."""

    def __int__(self) -> int:
        self.tokens = max(self._limits.current, self._fewest_tokens)
        return self.tokens

    def widen(self, *, thinking: bool) -> bool:
        """Raise the limit for the next try; return False if it is the largest."""
        tokens = self._limits.more_tokens(self.tokens, thinking=thinking)
        if tokens is None:
            return False
        self._fewest_tokens = tokens
        return True


class _NextTry:
    """The changes to a request for its next try.

    Args:
        subject: The spans of the request, for messages.
        room: The token limit of the answer.
    """

    def __init__(self, subject: str, room: _RequestRoom) -> None:
        self._subject = subject
        self.room = room
        self.correction: Correction | None = None
        """The unusable answer that the model must correct, and its problem."""
        self._was_cut = False

    def prepare(self, reply: Reply, problem: str) -> None:
        """Allow more tokens after a cut answer, or ask for a correction of an unreadable one.

        Args:
            reply: The unusable reply.
            problem: The reason why it is unusable.

        Raises:
            TraceFails: The request must not be tried again; the message says why.
        """
        if reply.finish == "refusal":
            reason = one_line(reply.text.strip(), MOST_REFUSAL_CHARS) or "it gave no reason"
            raise TraceFails(f"the model refused to judge {self._subject}: {reason}")
        if reply.finish == "length":
            self._allow_more_tokens(reply)
        elif self.correction is not None:
            raise Unanswered(
                f"the answer about {self._subject} was unusable twice: "
                f"{problem}{_quoted_beginning(reply.text)}",
                cause=problem,
            )
        else:
            self.correction = Correction(reply.text, problem)

    def _allow_more_tokens(self, reply: Reply) -> None:
        """Allow a longer answer: once, or more often if thinking used up the tokens."""
        thinking = _is_only_thought(reply)
        has_more_room = self.room.widen(thinking=thinking)
        if not has_more_room or (self._was_cut and not thinking):
            raise Unanswered(
                _cut_message(self._subject, reply, self.room.tokens, thinking),
                cause=_cut_message("a trace", reply, self.room.tokens, thinking),
            )
        self._was_cut = True


class RequestLoop:
    """A source of usable answers, stored or new.

    Args:
        client: Sends the requests.
        store: Stores the answers.
        limits: The token limit of an answer.
        key_of: Returns the key of a request with a token limit for its answer.
    """

    def __init__(
        self,
        client: ModelClient,
        store: AnswerStore,
        limits: AnswerLimits,
        key_of: Callable[[Request, int], str],
    ) -> None:
        self._client = client
        self._store = store
        self._limits = limits
        self._key_of = key_of
        self.forms: set[Form] = set()
        """The forms of the usable answers."""
        self.has_used_note = False
        """True if an overflow note was used: a stored record that a request is too long."""
        self._trusts_notes = True
        """False if overflow notes are ignored because they may be out of date."""
        self._shortest_overflow: int | None = None
        """The fewest tokens of a request that was too long."""

    async def answer(self, request: Request, parse: Callable[[str], A], subject: str) -> A:
        """Return a usable answer, stored or new.

        A new answer is stored before it is read.

        Args:
            request: The request.
            parse: Reads the answer from its text; raises ``Malformed`` if the text is no answer.
            subject: The spans of the request, for messages.

        Raises:
            ContextOverflow: The request is too long for the model.
            TraceFails: There is no usable answer; the message says why.
            RunStops: No request will get an answer.
        """
        # A request that cannot fit would only cost money.
        if self._shortest_overflow is not None and request.tokens >= self._shortest_overflow:
            raise ContextOverflow("a shorter request exceeded the model's context")
        # The keys of overflow notes that a new answer must replace.
        ignored_notes: set[str] = set()
        stored_answer = await self._stored_answer(request, parse, ignored_notes)
        if stored_answer is not None:
            return stored_answer
        return await self._new_answer(request, parse, subject, ignored_notes)

    def forget_limits(self) -> None:
        """Ignore overflow notes from now on, and send requests again that were too long."""
        self._trusts_notes = False
        self.has_used_note = False
        self._shortest_overflow = None

    async def _stored_answer(
        self, request: Request, parse: Callable[[str], A], ignored_notes: set[str]
    ) -> A | None:
        """Return the stored answer to a request, or None, and add the keys of ignored notes.

        Raises:
            ContextOverflow: An overflow note says that the request is too long.
        """
        # The key of a request depends on the token limit of its answer.
        for answer_limit in self._limits.all:
            key = self._key_of(request, answer_limit)
            reply = await self._store.find_answer(key)
            if reply is None:
                continue
            if _is_overflow_note(reply):
                if not self._trusts_notes:
                    ignored_notes.add(key)
                    continue
                self.has_used_note = True
                self._record_overflow(request, answer_limit)
                raise ContextOverflow("the request exceeds the model's context")
            answer, _ = _read_answer(reply, parse)
            if answer is not None:
                for note_key in ignored_notes:  # the next run would use the note again
                    await self._store.keep(note_key, reply, usable=True)
                self.forms.add(reply.form)
                return answer
        return None

    async def _new_answer(
        self, request: Request, parse: Callable[[str], A], subject: str, ignored_notes: set[str]
    ) -> A:
        """Request an answer until it is usable.

        A cut answer is requested again with more tokens. The model may correct an unreadable answer
        once.

        Raises:
            ContextOverflow: The request is too long for the model.
            TraceFails: There is no usable answer; the message says why.
        """
        next_try = _NextTry(subject, _RequestRoom(self._limits))
        while True:
            async with self._limits.turn():
                reply = await self._request_reply(request, next_try.room, next_try.correction)
                key = self._key_of(request, next_try.room.tokens)
                answer, problem = await self._store_and_read(
                    reply, request, parse, key, replaces_note=key in ignored_notes
                )
                if answer is not None:
                    self.forms.add(reply.form)
                    self._limits.record_usable_answer()
                    self._client.record_problem(None)
                    return answer
                self._client.record_problem(_PROBLEMS.get(reply.finish, problem))
                next_try.prepare(reply, problem)

    async def _store_and_read(
        self,
        reply: Reply,
        request: Request,
        parse: Callable[[str], A],
        key: str,
        *,
        replaces_note: bool,
    ) -> tuple[A | None, str]:
        """Store a reply, and return its answer and an empty text, or None and the problem.

        With ``replaces_note``, an overflow note is stored under the key. An unusable reply replaces
        it too, or the next run would find the note again.
        """
        if not reply.kept:
            usable = replaces_note or reply.finish == "stop"
            await self._store.keep(key, reply, usable, request.tokens)
        answer, problem = _read_answer(reply, parse)
        may_be_rejected = reply.finish == "stop" and not replaces_note and not reply.kept
        if answer is None and may_be_rejected:
            await self._store.reject(key)
        return answer, problem

    async def _request_reply(
        self, request: Request, room: _RequestRoom, correction: Correction | None
    ) -> Reply:
        """Send a request, and store an overflow note if it is too long.

        Raises:
            ContextOverflow: The request is too long.
        """
        try:
            return await self._request_fitting_reply(request, room, correction)
        except ContextOverflow as error:
            if error.truncated_usage is not None:  # earlier requests may be truncated too
                await self._store.take_back(error.truncated_usage.tokens_in, request.tokens)
            note = _overflow_note(min(self.forms, default="json_schema"), error.truncated_usage)
            await self._store.keep(self._key_of(request, room.tokens), note, usable=True)
            self._record_overflow(request, room.tokens)
            raise

    async def _request_fitting_reply(
        self, request: Request, room: _RequestRoom, correction: Correction | None
    ) -> Reply:
        """Send a request; if the context has little room for the answer, allow a shorter one.

        Raises:
            ContextOverflow: The context has too little room for the request and an answer.
        """
        try:
            reply = await self._client.ask(request, room, correction)
            allowed = room.tokens
        except ContextOverflow as error:
            if error.answer_room is None or error.answer_room >= room.tokens:
                raise
            allowed = error.answer_room
            reply = await self._client.ask(request, allowed, correction)
        if allowed < room.tokens or _has_filled_context(reply, allowed):
            await self._raise_if_cut(reply, self._key_of(request, room.tokens))
        return reply

    async def _raise_if_cut(self, reply: Reply, key: str) -> None:
        """Raise an error if the context had too little room and the answer was cut.

        Raises:
            ContextOverflow: The answer was cut; a shorter request leaves more room.
        """
        if reply.finish != "length" or not reply.counted:  # only counts add up to the limit
            return
        if not reply.kept:  # the answer must be paid, so its usage is recorded
            await self._store.keep(key, reply, usable=False)
        limit = reply.tokens_in + reply.tokens_out
        raise ContextOverflow(
            f"the answer got only {reply.tokens_out:,} of the {limit:,} tokens for request and "
            "answer together",
            context_limit=limit,
        )

    def _record_overflow(self, request: Request, answer_limit: int) -> None:
        """Skip requests of this length from now on, unless the limit of the answer was raised."""
        if answer_limit == self._limits.all[0]:
            self._shortest_overflow = min(request.tokens, self._shortest_overflow or request.tokens)


def _has_filled_context(reply: Reply, allowed: int) -> bool:
    """Check whether the full context of the server cut an answer.

    Request and answer then fill the context together. Its size is a multiple of 256 tokens.
    """
    if reply.finish != "length" or reply.tokens_out >= _CUT_SHORT * allowed:
        return False
    # The sum may be up to ``_SLACK`` tokens below or above a multiple.
    remainder = (reply.tokens_in + reply.tokens_out + _SLACK) % _CONTEXT_UNIT
    return reply.counted and remainder <= 2 * _SLACK


def _is_only_thought(reply: Reply) -> bool:
    """Check whether thinking used up the tokens of a cut answer."""
    return estimate(reply.text) < HARDLY_BEGUN * reply.tokens_out


def _cut_message(subject: str, reply: Reply, limit: int, thinking: bool) -> str:
    """Return the message that an answer was cut, with the settings that the user can change."""
    if thinking:
        return (
            f"the model's reasoning about {subject} used up the {limit:,} tokens of an answer; "
            "allow more (--answer-tokens), or reduce its reasoning"
        )
    if reply.tokens_out < _CUT_SHORT * limit:
        return (
            f"the answer about {subject} was cut twice, the second time at "
            f"{reply.tokens_out:,} of {limit:,} allowed tokens; send less at a time "
            "(--window-tokens)"
        )
    return (
        f"the answer about {subject} was cut twice, the second time at {limit:,} tokens; allow "
        "longer answers (--answer-tokens) or send less at a time (--window-tokens)"
    )


def _quoted_beginning(text: str) -> str:
    beginning = one_line(text.strip(), MOST_ANSWER_CHARS)
    return f"; it began “{beginning}”" if beginning else ""


def _overflow_note(form: Form, usage: Usage | None) -> Reply:
    """Return the record that a request was too long: a cut reply without a text.

    ``usage`` is the usage of a request that the server truncated.
    """
    spent = usage or Usage()
    return Reply(
        "", "length", form, spent.tokens_in, spent.tokens_out, tokens_cached=spent.tokens_cached
    )


def _is_overflow_note(reply: Reply) -> bool:
    """Check whether a stored answer is the record that its request was too long."""
    return reply.finish == "length" and not reply.text


def _read_answer(reply: Reply, parse: Callable[[str], A]) -> tuple[A | None, str]:
    """Return the answer and an empty text, or None and the problem.

    A cut answer is not read, even if its JSON could be repaired.
    """
    if reply.finish != "stop":
        return None, reply.finish
    try:
        return parse(reply.text), ""
    except Malformed as error:
        return None, one_line(str(error), MOST_REFUSAL_CHARS)

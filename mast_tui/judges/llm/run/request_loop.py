"""The loop for one request: a stored answer, or a new one, with a second try if it is unusable."""

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
"""The most characters of a refusal in a message."""

MOST_ANSWER_CHARS: Final = 80
"""The most characters of an unusable answer in a message."""

MOST_ROOM: Final = 32_000
"""The token limit of an answer that a model gets by itself if it thinks for long."""

HARDLY_BEGUN: Final = 0.25
"""The share of text in a cut answer below which the tokens went into thinking."""

_CUT_SHORT: Final = 0.9
"""The share of its limit below which an answer was not cut by that limit."""

_CONTEXT_UNIT: Final = 256
_SLACK: Final = 2
"""The tokens by which request and cut answer together may differ from the size of a context."""

_PROBLEMS: Final = {"length": "the answer was cut", "refusal": "the model refused"}


class AnswerStore(Protocol):
    """A store of answers, so that no answer is paid for twice."""

    async def find_answer(self, key: str) -> Reply | None:
        """Return the last usable answer of a key, unless it was rejected; None if there is none."""
        ...

    async def keep(self, key: str, reply: Reply, usable: bool, sent: int = 0) -> None:
        """Store an answer, also if the waiting task is cancelled; return when it is stored.

        Args:
            key: The key of the request.
            reply: The answer.
            usable: True if the answer need not be requested again.
            sent: An estimate of the tokens of the request.
        """
        ...

    async def reject(self, key: str) -> None:
        """Mark the last answer of a key as unusable."""
        ...

    async def take_back(self, limit: int, sent: int) -> None:
        """Withdraw the answers to requests that the server truncated.

        Args:
            limit: The number of tokens that the server read.
            sent: An estimate of the tokens of the request that showed the truncation.
        """
        ...


class AnswerLimits:
    """The token limit of an answer: the setting, and more for models that need it.

    All traces of a run share one such object.

    Args:
        asked_for: The setting.
        raised_for_all: True if the need of one trace raises the tokens for all traces.
    """

    def __init__(self, asked_for: int, *, raised_for_all: bool = True) -> None:
        self._raised_for_all = raised_for_all
        self.current = asked_for
        """The tokens for the next request."""
        # The setting is doubled until the largest number, which allows at least one doubling.
        largest = max(MOST_ROOM, 2 * asked_for)
        self.all: tuple[int, ...] = tuple(
            sorted({min(asked_for * 2**doublings, largest) for doublings in range(8)})
        )
        """All numbers of tokens that may be used, in ascending order."""
        self._first_answer_lock = asyncio.Lock()
        self._has_usable_answer = False

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Return a context in which a task may send: one task at a time until a usable answer."""
        if not self._has_usable_answer:
            async with self._first_answer_lock:
                if not self._has_usable_answer:
                    yield
                    return
        yield

    def record_usable_answer(self) -> None:
        """Record that there was a usable answer."""
        self._has_usable_answer = True

    def more_tokens(self, room: int, *, thinking: bool) -> int | None:
        """Return the tokens to allow after an answer had too few; None if it had the most.

        They are twice as many, or four times as many if thinking used up the tokens. With
        ``raised_for_all``, thinking raises the tokens of all further requests too.

        Args:
            room: The tokens that were too few.
            thinking: True if thinking used them up.
        """
        if room == self.all[-1]:
            return None
        factor = 4 if thinking else 2
        tokens = min(room * factor, self.all[-1])
        if thinking and self._raised_for_all:
            self.current = max(self.current, tokens)
        return tokens


class _RequestRoom:
    """The token limit of the answer to one request, which may grow while the request waits.

    They are the tokens that the run allows when the request is sent, or more.
    """

    def __init__(self, room: AnswerLimits) -> None:
        self._room = room
        self._fewest_tokens = 0
        """The limit that this request was widened to; the run may allow more meanwhile."""
        self.tokens = room.current
        """The tokens with which the request was sent last."""

    def __int__(self) -> int:
        self.tokens = max(self._room.current, self._fewest_tokens)
        return self.tokens

    def widen(self, *, thinking: bool) -> bool:
        """Allow more tokens for the next try; return False if there are no more."""
        tokens = self._room.more_tokens(self.tokens, thinking=thinking)
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
        """The problem of an answer that the model is to correct."""
        self._was_cut = False

    def prepare(self, reply: Reply, problem: str) -> None:
        """Allow more tokens after a cut answer, or ask for a correction of an unreadable one.

        Args:
            reply: The unusable reply.
            problem: The reason why it is unusable.

        Raises:
            TraceFails: The request is not tried again; the message says why.
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
        room: The token limit of an answer.
        key_of: Returns the key of a request with a number of tokens for its answer.
    """

    def __init__(
        self,
        client: ModelClient,
        store: AnswerStore,
        room: AnswerLimits,
        key_of: Callable[[Request, int], str],
    ) -> None:
        self._client = client
        self._store = store
        self._room = room
        self._key_of = key_of
        self.forms: set[Form] = set()
        """The forms of the usable answers."""
        self.has_used_note = False
        """True if an overflow note was used: the stored answer that a request is too long."""
        self._trusts_notes = True
        """False once overflow notes are ignored, since they may be out of date."""
        self._shortest_overflow: int | None = None
        """The fewest tokens of a request that was too long."""

    async def answer(self, request: Request, parse: Callable[[str], A], subject: str) -> A:
        """Return a usable answer, stored or new.

        A new answer is stored before it is read. If the request is too long, an overflow note is
        stored in place of an answer.

        Args:
            request: The request.
            parse: Reads the answer, which is not None, from its text; raises ``Malformed`` if the
                text is no answer.
            subject: The spans of the request, for messages.

        Raises:
            ContextOverflow: The request is too long for the model.
            TraceFails: There is no usable answer; the message says why.
            RunStops: No request will get an answer.
        """
        # Save the cost of a request that cannot fit.
        if self._shortest_overflow is not None and request.tokens >= self._shortest_overflow:
            raise ContextOverflow("a shorter request exceeded the model's context")
        # The keys of overflow notes that may be out of date; the answer will replace these notes.
        ignored_notes: set[str] = set()
        stored_answer = await self._stored_answer(request, parse, ignored_notes)
        if stored_answer is not None:
            return stored_answer
        return await self._new_answer(request, parse, subject, ignored_notes)

    def forget_limits(self) -> None:
        """Ignore the overflow notes from now on, and send requests again that were too long."""
        self._trusts_notes = False
        self.has_used_note = False
        self._shortest_overflow = None

    async def _stored_answer(
        self, request: Request, parse: Callable[[str], A], ignored_notes: set[str]
    ) -> A | None:
        """Return the stored answer to a request, or None.

        Args:
            request: The request.
            parse: Reads the answer from its text.
            ignored_notes: Receives the keys of overflow notes that are ignored.

        Raises:
            ContextOverflow: An overflow note says that the request is too long.
        """
        # The key of a request depends on the token limit of its answer.
        for answer_limit in self._room.all:
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
                for note_key in ignored_notes:  # replace the note, which the next run would use
                    await self._store.keep(note_key, reply, usable=True)
                self.forms.add(reply.form)
                return answer
        return None

    async def _new_answer(
        self, request: Request, parse: Callable[[str], A], subject: str, ignored_notes: set[str]
    ) -> A:
        """Request an answer until it is usable.

        - A cut answer is requested again with more tokens: once, or more often after thinking.
        - An answer that cannot be read is corrected by the model, once.

        Args:
            request: The request.
            parse: Reads the answer from its text.
            subject: The spans of the request, for messages.
            ignored_notes: The keys of stored notes that the request was too long, which may be out
                of date.

        Raises:
            ContextOverflow: The request is too long for the model.
            TraceFails: There is no usable answer; the message says why.
        """
        next_try = _NextTry(subject, _RequestRoom(self._room))
        while True:
            async with self._room.turn():
                reply = await self._request_reply(request, next_try.room, next_try.correction)
                key = self._key_of(request, next_try.room.tokens)
                answer, problem = await self._store_and_read(
                    reply, request, parse, key, replaces_note=key in ignored_notes
                )
                if answer is not None:
                    self.forms.add(reply.form)
                    self._room.record_usable_answer()
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
        """Store a reply, and then return its answer and an empty text, or None and the problem.

        A complete answer that cannot be read is marked as unusable afterwards.

        Args:
            reply: The reply.
            request: The request.
            parse: Reads the answer from its text.
            key: The key of the request.
            replaces_note: True if an overflow note is stored under the key. Any reply replaces it,
                and is stored as usable even if it is cut or unreadable, or the next run would find
                the note again.
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
            ContextOverflow: The request is too long; later runs find the note and do not send it.
        """
        try:
            return await self._request_fitting_reply(request, room, correction)
        except ContextOverflow as error:
            if error.truncated_usage is not None:  # then earlier requests may be truncated too
                await self._store.take_back(error.truncated_usage.tokens_in, request.tokens)
            note = _overflow_note(min(self.forms, default="json_schema"), error.truncated_usage)
            await self._store.keep(self._key_of(request, room.tokens), note, usable=True)
            self._record_overflow(request, room.tokens)
            raise

    async def _request_fitting_reply(
        self, request: Request, room: _RequestRoom, correction: Correction | None
    ) -> Reply:
        """Send a request; if its answer would exceed the context, send it again with less room.

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
        """Raise an error if an answer was cut because the server's context had too little room.

        Raises:
            ContextOverflow: The answer was cut; a shorter request leaves more room.
        """
        if reply.finish != "length" or not reply.counted:  # the sum of the counts is the limit
            return
        if not reply.kept:  # the answer is paid for, so its usage is recorded
            await self._store.keep(key, reply, usable=False)
        limit = reply.tokens_in + reply.tokens_out
        raise ContextOverflow(
            f"the answer got only {reply.tokens_out:,} of the {limit:,} tokens for request and "
            "answer together",
            context_limit=limit,
        )

    def _record_overflow(self, request: Request, room: int) -> None:
        """Skip requests of this length from now on, unless the room for the answer was enlarged."""
        if room == self._room.all[0]:
            self._shortest_overflow = min(request.tokens, self._shortest_overflow or request.tokens)


def _has_filled_context(reply: Reply, allowed: int) -> bool:
    """Check whether an answer was cut by the server's full context, before its own limit.

    Request and answer then fill the context together, and its size is a multiple of 256 tokens.
    This can be checked only if the server counted the tokens.
    """
    if reply.finish != "length" or reply.tokens_out >= _CUT_SHORT * allowed:
        return False
    # The sum may be up to ``_SLACK`` tokens below or above a multiple.
    remainder = (reply.tokens_in + reply.tokens_out + _SLACK) % _CONTEXT_UNIT
    return reply.counted and remainder <= 2 * _SLACK


def _is_only_thought(reply: Reply) -> bool:
    """Check whether thinking used up the tokens of a cut answer."""
    return estimate(reply.text) < HARDLY_BEGUN * reply.tokens_out


def _cut_message(subject: str, reply: Reply, room: int, thinking: bool) -> str:
    """Return the message that the answer was cut, with the reason and what the user can change."""
    if thinking:
        return (
            f"the model's reasoning about {subject} used up the {room:,} tokens of an answer; "
            "allow more (--answer-tokens), or reduce its reasoning"
        )
    if reply.tokens_out < _CUT_SHORT * room:
        return (
            f"the answer about {subject} was cut twice, the second time at "
            f"{reply.tokens_out:,} of {room:,} allowed tokens; send less at a time "
            "(--window-tokens)"
        )
    return (
        f"the answer about {subject} was cut twice, the second time at {room:,} tokens; allow "
        "longer answers (--answer-tokens) or send less at a time (--window-tokens)"
    )


def _quoted_beginning(text: str) -> str:
    beginning = one_line(text.strip(), MOST_ANSWER_CHARS)
    return f"; it began “{beginning}”" if beginning else ""


def _overflow_note(form: Form, usage: Usage | None) -> Reply:
    """Return the note that a request was too long: a cut reply without a text.

    Args:
        form: The form of the answers of the run.
        usage: The tokens of the request if the server read a part of it.
    """
    spent = usage or Usage()
    return Reply(
        "", "length", form, spent.tokens_in, spent.tokens_out, tokens_cached=spent.tokens_cached
    )


def _is_overflow_note(reply: Reply) -> bool:
    """Check whether a stored answer is the note that its request was too long."""
    return reply.finish == "length" and not reply.text


def _read_answer(reply: Reply, parse: Callable[[str], A]) -> tuple[A | None, str]:
    """Return the answer and an empty text, or None and the problem.

    A truncated answer is not read, even if its JSON could be repaired.
    """
    if reply.finish != "stop":
        return None, reply.finish
    try:
        return parse(reply.text), ""
    except Malformed as error:
        return None, one_line(str(error), MOST_REFUSAL_CHARS)

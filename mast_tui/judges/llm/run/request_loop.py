"""One question until its answer can be used: kept answers first, once more where it was no good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Generic, Protocol, TypeVar

from mast_tui.judges.llm.answer.json_object import Malformed
from mast_tui.judges.llm.errors import ContextOverflow, TraceFails, Unanswered
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.request import Correction, Form, ModelClient, Reply, Request
from mast_tui.safe_text import one_line

A = TypeVar("A")

MOST_WORDS: Final = 200
"""A refusal is told in at most so many characters."""

MOST_SAID: Final = 80
"""Of an answer that cannot be used so many characters are told."""

MOST_ROOM: Final = 32_000
"""Tokens; so much room a model gets by itself that thinks for long before it answers."""

HARDLY_BEGUN: Final = 0.25
"""The share of the tokens of a cut answer under which its text had hardly begun."""


_CUT_SHORT: Final = 0.9
"""The share of its limit under which an answer was not cut by that limit."""

_CONTEXT_UNIT: Final = 256
_SLACK: Final = 2
"""Tokens by which the sum of a request and a cut answer may differ from the size of a context."""

_PROBLEMS: Final = {"length": "the answer was cut", "refusal": "the model refused"}


class AnswerStore(Protocol):
    """Where answers are kept, so that none is paid for twice.

    ``keep`` returns when the answer is kept, and keeps it also where the waiting task is cancelled.
    Only a ``usable`` answer is ``known`` afterwards, unless it is rejected; a later one under the
    same key counts. ``sent`` is an estimate of the request's tokens.
    """

    async def known(self, key: str) -> Reply | None: ...
    async def keep(self, key: str, reply: Reply, usable: bool, sent: int = 0) -> None: ...

    async def reject(self, key: str) -> None:
        """Note that the answer that was kept last under a key turned out to be of no use."""
        ...

    async def take_back(self, limit: int, sent: int) -> None:
        """Take back the answers to requests that the server cut.

        Args:
            limit: The number of tokens to which it cut them.
            sent: An estimate of the tokens of the request by which that was noticed.
        """
        ...


class AnswerRoom:
    """How many tokens an answer may take: what was asked for, and more where that is too little.

    One for a run: what one trace has taught holds for the others, where it ``learns``.
    """

    def __init__(self, asked_for: int, *, learns: bool = True) -> None:
        self._learns = learns
        self.now = asked_for
        """For the next question."""
        most = max(MOST_ROOM, 2 * asked_for)
        self.all: tuple[int, ...] = tuple(
            sorted({min(asked_for * 2**step, most) for step in range(8)})
        )
        """Every room that may be given, from the least."""
        self._proving = asyncio.Lock()
        self._proven = False

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the turn to ask: one task at a time until an answer could be used."""
        if not self._proven:
            async with self._proving:
                if not self._proven:
                    yield
                    return
        yield

    def prove(self) -> None:
        """Note that an answer could be used."""
        self._proven = True

    def wider(self, room: int, *, thought: bool) -> int | None:
        """Give more room than was too little; None where there is no more.

        Args:
            room: What was too little, in tokens.
            thought: Whether it was used up before the answer began. Then there is four times as
                much, from now on for all questions, else twice as much for this one.

        Returns:
            The tokens that the answer may take now.
        """
        if room == self.all[-1]:
            return None
        wider = min(room * (4 if thought else 2), self.all[-1])
        if thought and self._learns:
            self.now = max(self.now, wider)
        return wider


class _RoomToAsk:
    """The room for the answer to one request: that of the run when the request is sent, or more."""

    def __init__(self, room: AnswerRoom) -> None:
        self._room = room
        self._least = 0
        self.tokens = room.now
        """The room with which the request was sent last."""

    def __int__(self) -> int:
        self.tokens = max(self._room.now, self._least)
        return self.tokens

    def widen(self, *, thought: bool) -> bool:
        """Give the next try more room than the last one had; return whether there is more."""
        wider = self._room.wider(self.tokens, thought=thought)
        if wider is not None:
            self._least = wider
        return wider is not None


class RequestLoop(Generic[A]):
    """Gets usable answers, with as much room as they turn out to take.

    ``key_of`` gives the key for a request and a number of tokens. ``forms`` are those of
    the answers that were taken. ``believed`` says whether a kept note that a request was too long
    was taken for an answer.
    """

    def __init__(
        self,
        asks: ModelClient,
        ledger: AnswerStore,
        room: AnswerRoom,
        key_of: Callable[[Request, int], str],
    ) -> None:
        self._asks = asks
        self._ledger = ledger
        self._room = room
        self._key_of = key_of
        self.forms: set[Form] = set()
        self.believed = False
        self._believes = True
        self._doubted: set[str] = set()
        self._too_long: int | None = None

    async def answer(self, request: Request, read: Callable[[str], A], about: str) -> A:
        """The answer as ``read`` takes it from its text; ``about`` names the spans, for people.

        ``read`` raises ``Malformed`` where a text is no answer. Every answer is kept before it is
        read. That a request was too long is kept as well.

        Raises:
            ContextOverflow: the request is longer than the model reads.
            TraceFails: no usable answer, in words.
            RunStops: no request will get an answer.
        """
        if self._too_long is not None and request.tokens >= self._too_long:
            raise ContextOverflow("a shorter request was longer than the model reads")
        known = await self._known(request, read)
        return known[0] if known else await self._asked(request, read, about)

    def forget_limits(self) -> None:
        """From now on believe no note, and ask also what is as long as what was too long."""
        self._believes = self.believed = False
        self._too_long = None

    async def _known(self, request: Request, read: Callable[[str], A]) -> tuple[A] | None:
        doubted: set[str] = set()
        for room in self._room.all:
            key = self._key_of(request, room)
            reply = await self._ledger.known(key)
            if reply is None:
                continue
            if _tells_overflow(reply):
                if not self._believes:
                    doubted.add(key)
                    continue
                self.believed = True
                self._note_too_long(request, room)
                raise ContextOverflow("the request is longer than the model reads")
            answer, _ = _read(reply, read)
            if answer is not None:
                for note in doubted:  # or the next reading would believe it, and go another way
                    await self._ledger.keep(note, reply, True)
                self.forms.add(reply.form)
                return answer
        self._doubted = doubted
        return None

    async def _asked(self, request: Request, read: Callable[[str], A], about: str) -> A:
        room = _RoomToAsk(self._room)
        cut = False
        correction: Correction | None = None
        while True:
            async with self._room.turn():
                reply = await self._reply(request, room, correction)
                key = self._key_of(request, room.tokens)
                # Any answer to what had been too long takes the place of the note of that.
                stays = key in self._doubted
                if not reply.kept:
                    await self._ledger.keep(
                        key, reply, stays or reply.finish == "stop", request.tokens
                    )
                answer, problem = _read(reply, read)
                if answer is None and reply.finish == "stop" and not (stays or reply.kept):
                    await self._ledger.reject(key)
                if answer is not None:
                    self.forms.add(reply.form)
                    self._room.prove()
                    self._asks.note(None)
                    return answer[0]
                self._asks.note(_PROBLEMS.get(reply.finish, problem))
                if reply.finish == "refusal":
                    words = one_line(reply.text.strip(), MOST_WORDS) or "it gave no reason"
                    raise TraceFails(f"the model refused to judge {about}: {words}")
                if reply.finish == "length":
                    thought = _only_thought(reply)
                    if not room.widen(thought=thought) or (cut and not thought):
                        raise Unanswered(_too_little_room(about, reply, room.tokens, thought))
                    cut = True
                elif correction is not None:
                    raise Unanswered(
                        f"the answer about {about} could not be used, twice: {problem}"
                        f"{_as_said(reply.text)}"
                    )
                else:
                    correction = Correction(reply.text, problem)

    async def _reply(
        self, request: Request, room: _RoomToAsk, correction: Correction | None
    ) -> Reply:
        try:
            try:
                reply = await self._asks.ask(request, room, correction)
                allowed = room.tokens
            except ContextOverflow as error:
                if error.answer_room is None or error.answer_room >= room.tokens:
                    raise
                allowed = error.answer_room
                reply = await self._asks.ask(request, allowed, correction)
            if allowed < room.tokens or _filled_context(reply, allowed):
                await self._check_whole(reply, self._key_of(request, room.tokens))
            return reply
        except ContextOverflow as error:
            form: Form = min(self.forms, default="json_schema")
            note = Reply("", "length", form, 0, 0)
            usage = error.truncated_usage
            if usage is not None:
                note = Reply(
                    "",
                    "length",
                    form,
                    usage.tokens_in,
                    usage.tokens_out,
                    tokens_cached=usage.tokens_cached,
                )
                await self._ledger.take_back(usage.tokens_in, request.tokens)
            await self._ledger.keep(self._key_of(request, room.tokens), note, True)
            self._note_too_long(request, room.tokens)
            raise

    async def _check_whole(self, reply: Reply, key: str) -> None:
        """See that an answer came to its end in what the request left of the server's context.

        Raises:
            ContextOverflow: It did not: a shorter request leaves more.
        """
        if reply.finish != "length" or not reply.counted:
            return
        if not reply.kept:
            await self._ledger.keep(key, reply, False)
        limit = reply.tokens_in + reply.tokens_out
        raise ContextOverflow(
            f"the answer had only {reply.tokens_out:,} tokens of the {limit:,} that request and"
            " answer may take together",
            context_limit=limit,
        )

    def _note_too_long(self, request: Request, room: int) -> None:
        """What is as long need not be tried; nothing follows where only more room was too much."""
        if room == self._room.all[0]:
            self._too_long = min(request.tokens, self._too_long or request.tokens)


def _filled_context(reply: Reply, allowed: int) -> bool:
    """Return whether an answer was cut by the server's full context, before its own limit.

    Request and answer then take what a context holds, which is a multiple of 256 tokens.
    """
    if reply.finish != "length" or reply.tokens_out >= _CUT_SHORT * allowed:
        return False
    over = (reply.tokens_in + reply.tokens_out + _SLACK) % _CONTEXT_UNIT
    return reply.counted and over <= 2 * _SLACK


def _only_thought(reply: Reply) -> bool:
    """Whether an answer that was cut had hardly begun: the room went into what was thought."""
    return estimate(reply.text) < HARDLY_BEGUN * reply.tokens_out


def _too_little_room(about: str, reply: Reply, room: int, thought: bool) -> str:
    if thought:
        return (
            f"the model thought about {about} until the {room:,} tokens that an answer may take"
            " were used up; allow more (--answer-tokens), or have it think less"
        )
    if reply.tokens_out < _CUT_SHORT * room:
        return (
            f"the answer about {about} was cut twice, the second time at {reply.tokens_out:,}"
            f" tokens of the {room:,} allowed; ask about less at a time (--window-tokens)"
        )
    return (
        f"the answer about {about} was cut twice, the second time at {room:,} tokens; allow"
        " longer answers (--answer-tokens) or ask about less at a time (--window-tokens)"
    )


def _as_said(text: str) -> str:
    """The beginning of what was said, for people."""
    said = one_line(text.strip(), MOST_SAID)
    return f"; it began “{said}”" if said else ""


def _tells_overflow(reply: Reply) -> bool:
    """Whether a kept answer is the note that its request was too long."""
    return reply.finish == "length" and not reply.text


def _read(reply: Reply, read: Callable[[str], A]) -> tuple[tuple[A] | None, str]:
    """The answer, in a tuple as it may be falsy, or why there is none.

    What was cut is not guessed at, even where it can be read.
    """
    if reply.finish != "stop":
        return None, reply.finish
    try:
        return (read(reply.text),), ""
    except Malformed as error:
        return None, one_line(str(error), MOST_WORDS)

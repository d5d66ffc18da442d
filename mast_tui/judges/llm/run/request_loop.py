"""The loop for one request: a stored answer, or a new one, with a second try if it is unusable."""

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
"""The most characters of a refusal in a message."""

MOST_SAID: Final = 80
"""The most characters of an unusable answer in a message."""

MOST_ROOM: Final = 32_000
"""The most tokens of an answer that a model gets by itself if it thinks for long."""

HARDLY_BEGUN: Final = 0.25
"""The share of text in a cut answer below which the tokens went into thinking."""

_CUT_SHORT: Final = 0.9
"""The share of its limit below which an answer was not cut by that limit."""

_CONTEXT_UNIT: Final = 256
_SLACK: Final = 2
"""The tokens by which request and cut answer together may differ from the size of a context."""

_PROBLEMS: Final = {"length": "the answer was cut", "refusal": "the model refused"}


class AnswerStore(Protocol):
    """A store of answers, so that none is paid for twice.

    ``keep`` returns when the answer is stored; it is stored also if the waiting task is cancelled.
    ``known`` returns the last ``usable`` answer of a key, unless it was rejected. ``sent`` is an
    estimate of the tokens of the request.
    """

    async def known(self, key: str) -> Reply | None: ...
    async def keep(self, key: str, reply: Reply, usable: bool, sent: int = 0) -> None: ...

    async def reject(self, key: str) -> None:
        """Mark the last answer of a key as unusable."""
        ...

    async def take_back(self, limit: int, sent: int) -> None:
        """Withdraw the answers to requests that the server truncated.

        Args:
            limit: The number of tokens to which it truncated them.
            sent: An estimate of the tokens of the request that showed it.
        """
        ...


class AnswerRoom:
    """The most tokens of an answer: the setting, and more for models that need it.

    A run has one. If it ``learns``, the need of one trace raises the tokens for all.
    """

    def __init__(self, asked_for: int, *, learns: bool = True) -> None:
        self._learns = learns
        self.current = asked_for
        """The tokens for the next request."""
        most = max(MOST_ROOM, 2 * asked_for)
        self.all: tuple[int, ...] = tuple(
            sorted({min(asked_for * 2**step, most) for step in range(8)})
        )
        """All numbers of tokens that may be used, in ascending order."""
        self._proving = asyncio.Lock()
        self._proven = False

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the turn to send: one task at a time until the first usable answer."""
        if not self._proven:
            async with self._proving:
                if not self._proven:
                    yield
                    return
        yield

    def prove(self) -> None:
        """Record that there was a usable answer."""
        self._proven = True

    def wider(self, room: int, *, thought: bool) -> int | None:
        """Return more tokens than were too few, or None if there are no more.

        Args:
            room: The tokens that were too few.
            thought: Whether thinking used them up. Then the result is four times as many, from now
                on for all requests, else twice as many for this one.
        """
        if room == self.all[-1]:
            return None
        wider = min(room * (4 if thought else 2), self.all[-1])
        if thought and self._learns:
            self.current = max(self.current, wider)
        return wider


class _RoomToAsk:
    """The most tokens of the answer to one request: those of the run at the time, or more."""

    def __init__(self, room: AnswerRoom) -> None:
        self._room = room
        self._least = 0
        self.tokens = room.current
        """The tokens with which the request was sent last."""

    def __int__(self) -> int:
        self.tokens = max(self._room.current, self._least)
        return self.tokens

    def widen(self, *, thought: bool) -> bool:
        """Allow more tokens for the next try; return False if there are no more."""
        wider = self._room.wider(self.tokens, thought=thought)
        if wider is not None:
            self._least = wider
        return wider is not None


class RequestLoop(Generic[A]):
    """A source of usable answers, with as many tokens as they need.

    ``key_of`` returns the key of a request with a number of tokens. ``forms`` are those of the
    answers. ``believed`` tells whether a stored note that a request was too long was used.
    """

    def __init__(
        self,
        client: ModelClient,
        store: AnswerStore,
        room: AnswerRoom,
        key_of: Callable[[Request, int], str],
    ) -> None:
        self._client = client
        self._store = store
        self._room = room
        self._key_of = key_of
        self.forms: set[Form] = set()
        self.believed = False
        self._believes = True
        self._too_long: int | None = None

    async def answer(self, request: Request, read: Callable[[str], A], about: str) -> A:
        """Get a usable answer.

        Every answer is stored before it is read, and so is a refusal for the length of the request.

        Args:
            request: The request.
            read: Reads the answer from its text; raises ``Malformed`` for a text that is none.
            about: The spans of the request, for messages.

        Raises:
            ContextOverflow: The request is too long for the model.
            TraceFails: There is no usable answer; the message says why.
            RunStops: No request will get an answer.
        """
        if self._too_long is not None and request.tokens >= self._too_long:
            raise ContextOverflow("a shorter request was longer than the model reads")
        doubted: set[str] = set()
        stored = await self._stored_answer(request, read, doubted)
        return stored[0] if stored else await self._new_answer(request, read, about, doubted)

    def forget_limits(self) -> None:
        """Ignore the stored notes from now on, and send requests that were too long again."""
        self._believes = False
        self.believed = False
        self._too_long = None

    async def _stored_answer(
        self, request: Request, read: Callable[[str], A], doubted: set[str]
    ) -> tuple[A] | None:
        """Return the stored answer, if there is one; add the notes to ``doubted`` that are not
        believed."""
        for room in self._room.all:
            key = self._key_of(request, room)
            reply = await self._store.known(key)
            if reply is None:
                continue
            if _is_overflow_note(reply):
                if not self._believes:
                    doubted.add(key)
                    continue
                self.believed = True
                self._note_too_long(request, room)
                raise ContextOverflow("the request is longer than the model reads")
            answer, _ = _read(reply, read)
            if answer is not None:
                for note in doubted:  # replace the note, which the next run would use
                    await self._store.keep(note, reply, True)
                self.forms.add(reply.form)
                return answer
        return None

    async def _new_answer(
        self, request: Request, read: Callable[[str], A], about: str, doubted: set[str]
    ) -> A:
        room = _RoomToAsk(self._room)
        cut = False
        correction: Correction | None = None
        while True:
            async with self._room.turn():
                reply = await self._reply(request, room, correction)
                key = self._key_of(request, room.tokens)
                # Any answer replaces a note that its request was too long.
                replaces_note = key in doubted
                if not reply.kept:
                    usable = replaces_note or reply.finish == "stop"
                    await self._store.keep(key, reply, usable, request.tokens)
                answer, problem = _read(reply, read)
                is_new = not (replaces_note or reply.kept)
                if answer is None and reply.finish == "stop" and is_new:
                    await self._store.reject(key)
                if answer is not None:
                    self.forms.add(reply.form)
                    self._room.prove()
                    self._client.note(None)
                    return answer[0]
                self._client.note(_PROBLEMS.get(reply.finish, problem))
                if reply.finish == "refusal":
                    reason = one_line(reply.text.strip(), MOST_WORDS) or "it gave no reason"
                    raise TraceFails(f"the model refused to judge {about}: {reason}")
                if reply.finish == "length":
                    thought = _only_thought(reply)
                    if not room.widen(thought=thought) or (cut and not thought):
                        raise Unanswered(_too_little_room(about, reply, room.tokens, thought))
                    cut = True
                elif correction is not None:
                    raise Unanswered(
                        f"the answer about {about} could not be used, twice: {problem}"
                        f"{_beginning(reply.text)}"
                    )
                else:
                    correction = Correction(reply.text, problem)

    async def _reply(
        self, request: Request, room: _RoomToAsk, correction: Correction | None
    ) -> Reply:
        try:
            try:
                reply = await self._client.ask(request, room, correction)
                allowed = room.tokens
            except ContextOverflow as error:
                if error.answer_room is None or error.answer_room >= room.tokens:
                    raise
                allowed = error.answer_room
                reply = await self._client.ask(request, allowed, correction)
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
                await self._store.take_back(usage.tokens_in, request.tokens)
            await self._store.keep(self._key_of(request, room.tokens), note, True)
            self._note_too_long(request, room.tokens)
            raise

    async def _check_whole(self, reply: Reply, key: str) -> None:
        """Check that the server's context was not full before the answer ended.

        Raises:
            ContextOverflow: It was; a shorter request leaves more room.
        """
        if reply.finish != "length" or not reply.counted:
            return
        if not reply.kept:
            await self._store.keep(key, reply, False)
        limit = reply.tokens_in + reply.tokens_out
        raise ContextOverflow(
            f"the answer had only {reply.tokens_out:,} tokens of the {limit:,} that request and"
            " answer may take together",
            context_limit=limit,
        )

    def _note_too_long(self, request: Request, room: int) -> None:
        """Skip longer requests from now on, unless only the room for the answer was too much."""
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
    """Check whether thinking used up the tokens of a cut answer."""
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


def _beginning(text: str) -> str:
    beginning = one_line(text.strip(), MOST_SAID)
    return f"; it began “{beginning}”" if beginning else ""


def _is_overflow_note(reply: Reply) -> bool:
    """Check whether a stored answer is the note that its request was too long."""
    return reply.finish == "length" and not reply.text


def _read(reply: Reply, read: Callable[[str], A]) -> tuple[tuple[A] | None, str]:
    """Return the answer in a tuple, or None and the problem.

    A cut answer is not read, even if that is possible.
    """
    if reply.finish != "stop":
        return None, reply.finish
    try:
        return (read(reply.text),), ""
    except Malformed as error:
        return None, one_line(str(error), MOST_WORDS)

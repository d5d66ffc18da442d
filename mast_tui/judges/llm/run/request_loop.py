"""One question until its answer can be used: kept answers first, once more where it was no good."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from mast_tui.judges.llm.answer.parsing import Malformed
from mast_tui.judges.llm.errors import ContextOverflow, TraceFails
from mast_tui.judges.llm.model import Asks, Form, Reply, Request
from mast_tui.safe_text import one_line

A = TypeVar("A")

MOST_WORDS: Final = 200
"""A refusal is told in at most so many characters."""


class Ledger(Protocol):
    """Where answers are kept, so that none is paid for twice.

    ``keep`` returns when the answer is kept, and keeps it also where whoever waits is cancelled.
    Only a ``usable`` answer is ``known`` afterwards; a later one under the same key counts.
    """

    async def known(self, key: str) -> Reply | None: ...
    async def keep(self, key: str, reply: Reply, usable: bool) -> None: ...


def answer_key(
    request: Request,
    answer_tokens: int,
    *,
    model: str,
    temperature: float | None,
    taxonomy_hash: str,
    prompt_hash: str,
) -> str:
    """The SHA-256 (hex) of all that an answer depends on, under which it is kept."""
    parts = (
        request.fingerprint(),
        model,
        "" if temperature is None else repr(float(temperature)),
        str(answer_tokens),
        taxonomy_hash,
        prompt_hash,
    )
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


class RequestLoop(Generic[A]):
    """Gets usable answers, of at most ``answer_tokens`` tokens or, after a cut one, twice as many.

    ``key_of`` gives the key for a request and a number of tokens. ``forms`` are those of
    the answers that were taken. ``believed`` says whether a kept note that a request was too long
    was taken for an answer.
    """

    def __init__(
        self,
        asks: Asks,
        ledger: Ledger,
        answer_tokens: int,
        key_of: Callable[[Request, int], str],
    ) -> None:
        self._asks = asks
        self._ledger = ledger
        self._rooms = (answer_tokens, 2 * answer_tokens)
        self._key_of = key_of
        self.forms: set[Form] = set()
        self.believed = False
        self._believes = True
        self._doubted: set[str] = set()
        self._too_long: int | None = None

    async def answer(self, request: Request, read: Callable[[str], A], about: str) -> A:
        """The answer as ``read`` takes it from its text; ``about`` names the spans, for people.

        ``read`` raises ``Malformed`` where a text is no answer. Every answer is kept before
        anything else is done with it. That a request was too long is kept as well.

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
        for room in self._rooms:
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
        room, doubled = self._rooms
        unusable = False
        while True:
            reply = await self._reply(request, room)
            answer, problem = _read(reply, read)
            key = self._key_of(request, room)
            # Whatever was said to what had been too long takes the place of the note of that.
            await self._ledger.keep(key, reply, answer is not None or key in self._doubted)
            if answer is not None:
                self.forms.add(reply.form)
                return answer[0]
            if reply.finish == "refusal":
                words = one_line(reply.text.strip(), MOST_WORDS) or "it gave no reason"
                raise TraceFails(f"the model refused to judge {about}: {words}")
            if reply.finish == "length":
                if room == doubled:
                    raise TraceFails(
                        f"the answer about {about} was cut twice, the second time at {doubled:,}"
                        " tokens; allow longer answers or ask with smaller windows"
                    )
                room = doubled
            elif unusable:
                raise TraceFails(f"the answer about {about} could not be used, twice: {problem}")
            else:
                unusable = True

    async def _reply(self, request: Request, room: int) -> Reply:
        try:
            return await self._asks.ask(request, room)
        except ContextOverflow:
            form: Form = min(self.forms, default="json_schema")
            note = Reply("", "length", form, 0, 0)
            await self._ledger.keep(self._key_of(request, room), note, True)
            self._note_too_long(request, room)
            raise

    def _note_too_long(self, request: Request, room: int) -> None:
        """What is as long need not be tried; nothing follows where only more room was too much."""
        if room == self._rooms[0]:
            self._too_long = min(request.tokens, self._too_long or request.tokens)


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

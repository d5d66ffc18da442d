"""The steps of a trace as the rules see them: kinds, the ends of their texts, an agent's own words.

Of a text only its head and tail are kept, so a trace of 20,000 spans with texts of any length
stays small. Offsets are code points into ``trace.text(i)`` all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from mast_tui.traces.model import Role, Span, SpanKind, Trace

HEAD: Final = 2400
TAIL: Final = 1600
"""How many code points of a text are kept from its beginning and from its end."""

QUOTED: Final = 240
"""A quote has at most so many code points."""

_SPOKEN_KINDS: Final = (SpanKind.MESSAGE, SpanKind.REASONING)
_SENTENCE: Final = re.compile(r"[^.!?\n]+(?:[.!?](?=[^\s\"')\]*])[^.!?\n]*)*[.!?]*")
_LINE: Final = re.compile(r"[^\n]*\S[^\n]*")
_SHORTEST_HARNESS_LINE: Final = 24
# A comment in code, also where the code stands escaped in a JSON string.
_COMMENT: Final = re.compile(r"(?:^|\n|\\n|\")[ \t]*#[ \t]*(?P<words>(?:[^\n\\\"]|\\[^n])+)")


class Finder(Protocol):
    """What finds places in a text: a compiled pattern, for one."""

    def finditer(self, text: str, /) -> Iterator[re.Match[str]]: ...


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of one span: its index and key, and where the words stand in its text."""

    index: int
    key: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """One span with the head of its text, and the tail where the text is longer than both.

    ``tail_at`` is the tail's offset in the whole text, ``length`` the whole text's. ``spoken``
    are the sentences of an agent's own words, with their offsets: its messages and thoughts
    without the lines that the harness put there, and the comments in the code that it runs.
    """

    span: Span
    head: str
    tail: str
    tail_at: int
    length: int
    spoken: tuple[tuple[int, str], ...] = ()

    @property
    def index(self) -> int:
        return self.span.index

    @property
    def number(self) -> str:
        """The step as people name it: ``#1`` is the first."""
        return f"#{self.span.index + 1}"

    @property
    def says(self) -> bool:
        """Whether the step is an agent's message or thought."""
        return self.span.role is Role.AGENT and self.span.kind in _SPOKEN_KINDS

    @property
    def tells(self) -> bool:
        """Whether the step is an agent's message, and so more than a thought."""
        return self.span.role is Role.AGENT and self.span.kind is SpanKind.MESSAGE

    @property
    def said(self) -> str:
        """The agent's own words, for comparing."""
        return " ".join(sentence for _, sentence in self.spoken)

    @property
    def text(self) -> str:
        """What is known of the text, for comparing: head and tail."""
        return self.head if not self.tail else f"{self.head}\n{self.tail}"

    def pieces(self) -> Iterator[tuple[int, str]]:
        """The known parts of the text with their offsets in it."""
        yield 0, self.head
        if self.tail:
            yield self.tail_at, self.tail

    def quote(self, start: int, end: int) -> Quote:
        """The words from offset ``start`` to ``end``, without white space at the edges.

        The range must begin within one of the known parts; it is cut after ``QUOTED``.
        """
        at, piece = next((p for p in self.pieces() if p[0] <= start < p[0] + len(p[1])), (0, ""))
        words = piece[start - at : min(end, start + QUOTED) - at]
        start += len(words) - len(words.lstrip())
        words = words.strip()
        return Quote(self.index, self.span.key, start, start + len(words), words)

    def find_last(self, pattern: Finder) -> Quote | None:
        """The last place that the pattern matches, or None."""
        for at, piece in reversed(list(self.pieces())):
            matches = [match for match in pattern.finditer(piece) if match[0].strip()]
            if matches:
                return self.quote(at + matches[-1].start(), at + matches[-1].end())
        return None

    def first_words(self) -> Quote | None:
        """The first of the agent's own sentences that has some length, or the first of all."""
        if not self.spoken:
            return None
        start, words = next((s for s in self.spoken if len(s[1]) >= 30), self.spoken[0])
        return self.quote(start, start + len(words))


def read_steps(trace: Trace) -> tuple[Step, ...]:
    """All steps of a trace, each text read once; ``OSError`` where the source cannot be read."""
    steps = [_step(trace, index) for index in range(len(trace))]
    return _with_own_words(steps)


def _step(trace: Trace, index: int) -> Step:
    text = trace.text(index)
    span = trace.span(index)
    if len(text) <= HEAD + TAIL:
        return Step(span, text, "", len(text), len(text))
    tail_at = len(text) - TAIL
    return Step(span, text[:HEAD], text[tail_at:], tail_at, len(text))


def _with_own_words(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with the agents' own words marked.

    A line belongs to whoever wrote it first: frameworks print their prompt again with each turn,
    and log again what an agent has said.
    """
    owned_by_agents: dict[str, bool] = {}
    spoken = []
    for step in steps:
        agent = step.says
        if agent or step.span.role in (Role.SYSTEM, Role.USER, Role.LOG):
            for _, line in _lines(step):
                if len(line) >= _SHORTEST_HARNESS_LINE:
                    owned_by_agents.setdefault(line.strip(), agent)
        spoken.append(_own_words(step, owned_by_agents))
    return tuple(
        replace(step, spoken=words) if words else step
        for step, words in zip(steps, spoken, strict=True)
    )


def _own_words(step: Step, owned_by_agents: Mapping[str, bool]) -> tuple[tuple[int, str], ...]:
    if step.says:
        lines = [own for own in _lines(step) if owned_by_agents.get(own[1].strip(), True)]
    elif step.span.kind is SpanKind.TOOL_CALL and "#" in step.head:
        lines = [(m.start("words"), m["words"]) for m in _COMMENT.finditer(step.head)]
    else:
        return ()
    return tuple(
        (at + match.start(), match[0])
        for at, line in lines
        for match in _SENTENCE.finditer(line)
        if match[0].strip()
    )


def _lines(step: Step) -> Iterator[tuple[int, str]]:
    for at, piece in step.pieces():
        for match in _LINE.finditer(piece):
            yield at + match.start(), match[0]

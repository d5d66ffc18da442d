"""The message that holds the record: marked lines of our own, and between them verbatim text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.judges.llm.prompt import prompt_text
from mast_tui.judges.llm.prompt.redacted_view import RedactedSpan, RedactedView, fit
from mast_tui.judges.llm.prompt.token_budget import (
    FRAME_TOKENS,
    HEADER_TOKENS,
    allotted,
    digest_room,
    shortened,
    task_room,
    weight,
)
from mast_tui.judges.llm.prompt.tokens import BOUNDARY_TOKENS, estimate
from mast_tui.judges.llm.request import Fact, Request, Window

MOST_FACTS: Final = 20
"""Of so many findings of the rules a request tells, from the first on."""

MOST_FACT: Final = 300
"""In so many characters each."""

_MOST_NAMED: Final = 8
"""Of so many shortened texts a remark names each."""


@dataclass(frozen=True, slots=True)
class Section:
    """Foreign text under a line of our own, behind the spans."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class DataSection:
    """The pieces of the message, between which the boundary belongs, and what was shortened."""

    pieces: tuple[str, ...]
    remarks: tuple[str, ...]


class SystemMessage:
    """The first message, the same for all requests of a kind: what to do."""

    def __init__(self, *sections: str) -> None:
        """Write it; between its pieces the boundary belongs."""
        first = fit("\n\n".join((*sections, prompt_text.BOUNDARY[0])))
        self.pieces = (first, *prompt_text.BOUNDARY[1:])
        self.tokens = sum(map(estimate, self.pieces))

    def request(
        self, data: DataSection, schema: Mapping[str, object], about: str, sample: int = 0
    ) -> Request:
        """Make a question of it.

        Args:
            data: The second message.
            schema: That of the answer.
            about: The trace's id.
            sample: Which reading of the trace it is for.
        """
        marks = len(data.pieces) + len(self.pieces) - 2
        return Request(
            system=self.pieces,
            user=data.pieces,
            schema=schema,
            tokens=self.tokens + estimate("".join(data.pieces)) + marks * BOUNDARY_TOKENS,
            remarks=data.remarks,
            sample=sample,
            about=about,
        )


def data_section(
    view: RedactedView,
    window: Window,
    digest: str,
    budget: int,
    asked: str,
    facts: Sequence[tuple[str, Fact]] = (),
    sections: Sequence[Section] = (),
) -> DataSection:
    """Write the data of a window, and after them what is asked.

    Args:
        view: The trace as it is sent.
        window: What of it is shown.
        digest: What was said of the spans before, or empty.
        budget: About the most that the data may take, in tokens.
        asked: What is asked about them.
        facts: What rules have found in these spans, each with its mode's code.
        sections: What else was said of them.

    Returns:
        The message, and what was shortened in it.
    """
    data = _Data(view, window)
    data.mark(prompt_text.DATA_BEGINS)
    used = FRAME_TOKENS + data.add_task(task_room(budget))
    used += data.add_digest(digest, digest_room(budget))
    used += data.add_facts(facts)
    data.add_spans(budget - used)
    if window.final:
        data.mark(prompt_text.RUN_ENDS)
    else:
        data.mark(prompt_text.RUN_GOES_ON.format(number=view.number(len(view) - 1)))
    for section in sections:
        data.mark(section.label)
        data.text(section.text)
    data.mark(prompt_text.DATA_ENDS)
    data.text(asked)
    return data.end()


def asked_about(window: Window, codes: Sequence[str]) -> str:
    """What is asked about a window: the modes with these codes, and notes where the run goes on."""
    sentences = [prompt_text.ASKED.format(codes=", ".join(codes)), prompt_text.ASKED_LAST]
    if not window.final:
        sentences.insert(1, prompt_text.ASKED_PART)
    return " ".join(sentences)


class _Data:
    """The data of a window, as they grow line by line; a line of our own begins with a mark.

    What is added tells how many tokens it takes.
    """

    def __init__(self, view: RedactedView, window: Window) -> None:
        self._view, self._window = view, window
        self._remarks: list[str] = []
        self._done: list[str] = []
        self._open: list[str] = []

    def mark(self, label: str, rest: str = "") -> None:
        """A line of our own: boundary and ``label`` in brackets, then the rest."""
        self._open.append("[")
        self._done.append("".join(self._open))
        self._open = [f" {label}] {rest}\n" if rest else f" {label}]\n"]

    def text(self, text: str) -> None:
        """Foreign text, on lines of its own."""
        self._open += (text, "" if text.endswith("\n") else "\n")

    def end(self) -> DataSection:
        """All that was added."""
        return DataSection((*self._done, "".join(self._open)), tuple(self._remarks))

    def add_task(self, room: int) -> int:
        """The task, where no span of the window is the task."""
        view, at = self._view, self._view.task_span
        if not view.task.strip():
            return 0
        if at is not None and self._window.first <= at <= self._window.last:
            self.mark(prompt_text.TASK_IS_SPAN.format(number=view.number(at)))
            return 0
        tokens = estimate(view.task)
        text, count = (view.task, 0) if tokens <= room else shortened(view.task, tokens, room)
        if count:
            self._remarks.append(f"the task is shortened by {count:,} characters")
        self.mark(prompt_text.TASK)
        self.text(text)
        return min(tokens, room)

    def add_digest(self, digest: str, room: int) -> int:
        """Where the window stands in the run, and what was before."""
        first = self._window.first
        if first:
            self.mark(prompt_text.PART_BEGINS.format(number=self._view.number(first)))
        digest = digest.strip()
        if not digest:
            return 0
        tokens = estimate(digest)
        self.mark(prompt_text.SO_FAR)
        self.text(digest if tokens <= room else shortened(digest, tokens, room)[0])
        return min(tokens, room)

    def add_facts(self, facts: Sequence[tuple[str, Fact]]) -> int:
        """What rules have found, a line each."""
        if not facts:
            return 0
        self.mark(prompt_text.FACTS)
        text = "\n".join(
            f"- {code}, {self._view.named(fact.first, fact.last)}: {fact.words[:MOST_FACT]}"
            for code, fact in facts[:MOST_FACTS]
        )
        self.text(text)
        return estimate(text)

    def add_spans(self, room: int) -> None:
        """The spans, with as much of each text as fits."""
        view, window = self._view, self._window
        indices = range(window.first, window.last + 1)
        spans = view.spans(window.first, window.last)
        tokens = view.tokens[window.first : window.last + 1]
        weights = [weight(index, len(view)) for index in indices]
        most = allotted(tokens, weights, max(0, room - HEADER_TOKENS * len(indices)))
        cut: list[tuple[int, int]] = []
        facts: dict[tuple[object, ...], str] = {}
        for span, wanted, allowed in zip(spans, tokens, most, strict=True):
            self.mark(f"#{view.number(span.index)}", _known_facts(view, span, facts))
            text, count = span.text, 0
            if allowed < wanted:
                text, count = shortened(text, wanted, allowed)
            if count:
                cut.append((span.index, count))
            if text:
                self.text(text)
        if cut:
            self._remarks.append(_cut_remark(cut))


def _cut_remark(cut: Sequence[tuple[int, int]]) -> str:
    named = ", ".join(f"#{index + 1} by {count:,}" for index, count in cut[:_MOST_NAMED])
    more = f" and {len(cut) - _MOST_NAMED:,} more" if len(cut) > _MOST_NAMED else ""
    return f"shortened, in characters: {named}{more}"


def _known_facts(
    view: RedactedView, span: RedactedSpan, known: dict[tuple[object, ...], str]
) -> str:
    """The facts of a span, made once for all that are of the same shape and answer nothing."""
    if span.answers is not None:
        return _facts(view, span)
    shape = (span.kind, span.role, span.agent, span.tool, span.failed)
    facts = known.get(shape)
    if facts is None:
        facts = known[shape] = _facts(view, span)
    return facts


def _facts(view: RedactedView, span: RedactedSpan) -> str:
    """What is known of a span; foreign names are one line without ``|``.

    A result right behind its call has the call's agent and tool.
    """
    facts = [prompt_text.KINDS.get(span.kind) or prompt_text.MESSAGE.format(role=span.role.value)]
    if span.answers is None or span.answers != span.index - 1:
        if span.agent and span.agent.casefold() != span.role.value:
            facts.append(span.agent)
        if span.tool:
            facts.append(span.tool)
        if span.answers is not None:
            facts.append(prompt_text.RESULT_OF.format(number=view.number(span.answers)))
    if span.failed:
        facts.append(prompt_text.FAILED)
    return " | ".join(facts)

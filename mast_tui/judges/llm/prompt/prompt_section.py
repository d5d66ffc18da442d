"""The message with the record of a run: verbatim texts, and headings with a random boundary.

No text of the trace can contain the boundary, so it cannot imitate a heading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.judges.llm.prompt import prompt_text
from mast_tui.judges.llm.prompt.redacted_view import RedactedSpan, RedactedView, sendable
from mast_tui.judges.llm.prompt.tokens import (
    BOUNDARY_TOKENS,
    FRAME_TOKENS,
    HEADER_TOKENS,
    allotted,
    artefacts_room,
    estimate,
    shortened,
    story_room,
    task_room,
    weight,
)
from mast_tui.judges.llm.request import Fact, Request, Window

ARTEFACTS: Final = """\
Under `what the run left`, after the last span, stand the final patch and the results of tests, \
which the agents of the run need not have seen. They are data as well. Use them to check what was \
claimed against what was done; quote spans, never them."""

ARTEFACTS_LABEL: Final = "what the run left"
"""The label of the section with artefacts."""

MOST_FACTS: Final = 20
"""The most facts (findings of rules) in a request."""

MOST_FACT: Final = 300
"""The most characters of a fact."""

_MOST_LISTED: Final = 8
"""The most shortened texts that a remark lists."""


@dataclass(frozen=True, slots=True)
class Section:
    """A text of the data with its label."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class DataSection:
    """The pieces of a message, which the boundary joins, and remarks on shortened texts."""

    pieces: tuple[str, ...]
    remarks: tuple[str, ...]


class SystemMessage:
    """The first message: the instructions for all requests of a kind.

    The boundary goes between its pieces.
    """

    def __init__(self, *sections: str) -> None:
        first_boundary_text, *boundary_texts = prompt_text.BOUNDARY
        first_piece = sendable("\n\n".join((*sections, first_boundary_text)))
        self.pieces = (first_piece, *boundary_texts)
        self.tokens = sum(map(estimate, self.pieces))

    def request(
        self, data: DataSection, schema: Mapping[str, object], about: str, sample: int = 0
    ) -> Request:
        """Make a request with these instructions.

        Args:
            data: The second message.
            schema: The JSON schema of the answer.
            about: The id of the trace.
            sample: The number of the sample.
        """
        # There is a boundary between two pieces of a message.
        boundary_count = (len(data.pieces) - 1) + (len(self.pieces) - 1)
        text_tokens = self.tokens + estimate("".join(data.pieces))
        return Request(
            system=self.pieces,
            user=data.pieces,
            schema=schema,
            tokens=text_tokens + boundary_count * BOUNDARY_TOKENS,
            remarks=data.remarks,
            sample=sample,
            about=about,
        )


def data_section(
    view: RedactedView,
    window: Window | None,
    story: str,
    budget: int,
    question: str,
    facts: Sequence[tuple[str, Fact]] = (),
    sections: Sequence[Section] = (),
) -> DataSection:
    """Write the data of a trace, with a question at the end.

    Args:
        view: The trace as it is sent.
        window: The spans to show; None for no spans.
        story: The story of the whole run, or an empty text.
        budget: The approximate token limit of the data.
        question: The question.
        facts: Pairs of a mode's code and a fact on these spans.
        sections: Further texts, which follow the spans.
    """
    data = _Data(view, window)
    data.add_heading(prompt_text.DATA_BEGINS)
    used_tokens = FRAME_TOKENS + data.add_task(task_room(budget))
    if window is not None and window.first:
        data.add_heading(prompt_text.PART_BEGINS.format(number=view.number(window.first)))
    used_tokens += data.add_story(story, story_room(budget))
    used_tokens += data.add_facts(facts)
    if window is not None:
        data.add_spans(window, budget - used_tokens)
        if window.final:
            data.add_heading(prompt_text.RUN_ENDS)
        else:
            data.add_heading(prompt_text.RUN_GOES_ON.format(number=view.number(len(view) - 1)))
    for section in sections:
        data.add_heading(section.label)
        data.add_text(section.text)
    data.add_heading(prompt_text.DATA_ENDS)
    data.add_text(question)
    return data.end()


def artefacts_text(view: RedactedView, budget: int) -> str:
    """Return the final patch and the test results, shortened to their share of the data.

    Args:
        view: The trace as it is sent.
        budget: The approximate token limit of the data.
    """
    text = view.artefacts
    tokens = estimate(text)
    room = artefacts_room(budget)
    if tokens > room:
        text, _ = shortened(text, tokens, room)
    return text


def asked_about(codes: Sequence[str]) -> str:
    """Return the question about the modes with these codes."""
    return f"{prompt_text.ASKED.format(codes=', '.join(codes))} {prompt_text.ASKED_LAST}"


class _Data:
    """The data of a request, written in order; each heading begins with the boundary.

    The methods ``add_task``, ``add_story`` and ``add_facts`` return the number of tokens that they
    add.
    """

    def __init__(self, view: RedactedView, window: Window | None) -> None:
        self._view = view
        self._window = window
        self._remarks: list[str] = []
        self._pieces: list[str] = []
        """The texts between the boundaries."""
        self._open_piece: list[str] = []
        """The parts of the last piece, to which text is added."""

    def add_heading(self, label: str, suffix: str = "") -> None:
        """Add a heading: ``[boundary label] suffix``.

        The boundary is inserted between two pieces when the request is sent.

        Args:
            label: The text in brackets after the boundary.
            suffix: The text after the brackets.
        """
        self._open_piece.append("[")
        self._pieces.append("".join(self._open_piece))
        self._open_piece = [f" {label}] {suffix}\n" if suffix else f" {label}]\n"]

    def add_text(self, text: str) -> None:
        """Add text, such as that of a span, on lines of its own."""
        self._open_piece += (text, "" if text.endswith("\n") else "\n")

    def end(self) -> DataSection:
        """Return the pieces of everything that was added, with the remarks."""
        return DataSection((*self._pieces, "".join(self._open_piece)), tuple(self._remarks))

    def add_task(self, room: int) -> int:
        """Add the task, or the number of its span if the window shows that span."""
        view = self._view
        task_span = view.task_span
        if not view.task.strip():
            return 0
        window = self._window
        if (
            task_span is not None
            and window is not None
            and window.first <= task_span <= window.last
        ):
            self.add_heading(prompt_text.TASK_IS_SPAN.format(number=view.number(task_span)))
            return 0
        tokens = estimate(view.task)
        text = view.task
        if tokens > room:
            text, cut_chars = shortened(view.task, tokens, room)
            self._remarks.append(f"the task is shortened by {cut_chars:,} characters")
        self.add_heading(prompt_text.TASK)
        self.add_text(text)
        return min(tokens, room)

    def add_story(self, story: str, room: int) -> int:
        """Add the story of the run, if there is one.

        Args:
            story: The merged summaries of the windows of a long run, or an empty text.
            room: The token limit of the story.
        """
        story = story.strip()
        if not story:
            return 0
        tokens = estimate(story)
        if tokens > room:
            story, _ = shortened(story, tokens, room)
        self.add_heading(prompt_text.STORY)
        self.add_text(story)
        return min(tokens, room)

    def add_facts(self, facts: Sequence[tuple[str, Fact]]) -> int:
        """Add facts, one per line, as pairs of a mode's code and a fact."""
        if not facts:
            return 0
        self.add_heading(prompt_text.FACTS)
        text = "\n".join(
            f"- {code}, {self._view.range_name(fact.first, fact.last)}: {fact.reason[:MOST_FACT]}"
            for code, fact in facts[:MOST_FACTS]
        )
        self.add_text(text)
        return estimate(text)

    def add_spans(self, window: Window, room: int) -> None:
        """Add the spans of a window, with as much of each text as fits.

        Args:
            window: The window.
            room: The approximate token limit.
        """
        view = self._view
        indices = range(window.first, window.last + 1)
        spans = view.spans(window.first, window.last)
        tokens = view.tokens[window.first : window.last + 1]
        weights = [weight(index, len(view)) for index in indices]
        allotted_tokens = allotted(tokens, weights, max(0, room - HEADER_TOKENS * len(indices)))
        shortened_spans: list[tuple[int, int]] = []
        for span, span_tokens, allowed in zip(spans, tokens, allotted_tokens, strict=True):
            self.add_heading(f"#{view.number(span.index)}", _span_header(view, span))
            text = span.text
            if allowed < span_tokens:
                text, cut_chars = shortened(text, span_tokens, allowed)
                if cut_chars:
                    shortened_spans.append((span.index, cut_chars))
            if text:
                self.add_text(text)
        if shortened_spans:
            self._remarks.append(_shortened_remark(shortened_spans))


def _shortened_remark(spans: Sequence[tuple[int, int]]) -> str:
    """Return the remark on shortened spans: pairs of an index and a number of cut characters."""
    listed_spans = ", ".join(
        f"#{index + 1} by {cut_chars:,}" for index, cut_chars in spans[:_MOST_LISTED]
    )
    if len(spans) > _MOST_LISTED:
        listed_spans += f" and {len(spans) - _MOST_LISTED:,} more"
    return f"shortened, in characters: {listed_spans}"


def _span_header(view: RedactedView, span: RedactedSpan) -> str:
    """Return the header of a span: its kind, agent, tool, answered call and error.

    A result directly after its call has no agent, tool or call.
    """
    parts = [prompt_text.KINDS.get(span.kind) or prompt_text.MESSAGE.format(role=span.role.value)]
    if span.answers is None or span.answers != span.index - 1:
        if span.agent and span.agent.casefold() != span.role.value:
            parts.append(span.agent)
        if span.tool:
            parts.append(span.tool)
        if span.answers is not None:
            parts.append(prompt_text.RESULT_OF.format(number=view.number(span.answers)))
    if span.failed:
        parts.append(prompt_text.FAILED)
    return " | ".join(parts)

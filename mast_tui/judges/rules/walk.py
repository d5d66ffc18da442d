"""The steps of a trace for the rules, and its calls with their results and effects.

Only the head and tail of a text are kept, to save memory. Offsets are code points in the whole
text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import Final

from mast_tui.judges.rules.effects import Effect, command_of, effect_of
from mast_tui.labels import Evidence, Finding
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.traces.pictures import is_picture_note, may_have_pictures

HEAD: Final = 2400
TAIL: Final = 1600
"""The code points that are kept from the beginning and the end of a text."""

QUOTED: Final = 240
"""The most code points of a quote."""

FINAL_MESSAGE: Final = "final message"
"""The key of a last message that the trace does not have yet."""

_SPOKEN_KINDS: Final = (SpanKind.MESSAGE, SpanKind.REASONING)
_SENTENCE: Final = re.compile(r"[^.!?\n]+(?:[.!?](?=[^\s\"')\]*])[^.!?\n]*)*[.!?]*")
_LINE: Final = re.compile(r"[^\n]*\S[^\n]*")
_SHORTEST_HARNESS_LINE: Final = 24
_NOT_SHORT: Final = 30
"""The fewest characters of a sentence that is not short."""

VIEW_HEADER: Final = re.compile(
    r"\AAddress: \S[^\n]*\n(?:[^\n]*\n){0,3}?Viewport position: [^\n]*"
    r"|\A[^\n]{0,300}\s+Here is a screenshot of \[[^\n]*\. The viewport shows [^\n]*"
)
"""The beginning of a browsing agent's message: the action, the page, and the position on it."""

_OUTPUT_BEGINNING: Final = re.compile(
    r"\s*(?:exitcode|exit code|execution (?:output|succeeded|failed)|<returncode>|output:|traceback"
    r"|code (?:execution )?output|the (?:script|code) (?:ran|exited)|no output\b|there is no code)",
    re.IGNORECASE,
)

# A comment in code, which may be escaped in a JSON string.
_COMMENT: Final = re.compile(r"(?:^|\n|\\n|\")[ \t]*#[ \t]*(?P<words>(?:[^\n\\\"]|\\[^n])+)")


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of one span: its key, and the range of the words in its text."""

    key: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class RuleStep:
    """One span with the ends of its text.

    Attributes:
        span: The span.
        head: The beginning of the text, or the whole text if it is short.
        tail: The end of a long text; empty for a short text.
        tail_offset: The offset of the tail in the whole text.
        length: The length of the whole text.
        line_owners: The owners of the lines of all steps.
    """

    span: Span
    head: str
    tail: str
    tail_offset: int
    length: int
    line_owners: _LineOwners

    @property
    def index(self) -> int:
        return self.span.index

    @property
    def number(self) -> str:
        """The number of the step in the timeline, ``#1`` for the first."""
        return f"#{self.span.index + 1}"

    @property
    def is_speech(self) -> bool:
        """True for an agent's message or thought."""
        return self.span.role is Role.AGENT and self.span.kind in _SPOKEN_KINDS

    @property
    def is_message(self) -> bool:
        """True for an agent's message."""
        return self.span.role is Role.AGENT and self.span.kind is SpanKind.MESSAGE

    @property
    def is_output(self) -> bool:
        """True if the text begins like the output of code."""
        return _OUTPUT_BEGINNING.match(self.head) is not None

    @property
    def is_statement(self) -> bool:
        """True for an agent's message that is neither output of code nor a view of a web page."""
        return self.is_message and not self.is_output and VIEW_HEADER.match(self.head) is None

    @cached_property
    def sentences(self) -> tuple[tuple[int, str], ...]:
        """The agent's own sentences with their offsets.

        They are the sentences of its messages and thoughts without the lines of the harness, and
        the comments in the code that it runs.
        """
        if self.is_speech:
            lines = [
                (offset, line)
                for offset, line in self.lines()
                if self.line_owners.is_agents(line.strip(), self.index)
            ]
        elif self.span.kind is SpanKind.TOOL_CALL and "#" in self.head:
            lines = [
                (comment.start("words"), comment["words"])
                for comment in _COMMENT.finditer(self.head)
            ]
        else:
            return ()
        return tuple(
            (offset + match.start(), match[0])
            for offset, line in lines
            for match in _SENTENCE.finditer(line)
            if match[0].strip()
        )

    @cached_property
    def own_text(self) -> str:
        """The agent's own sentences, for comparison."""
        return " ".join(sentence for _, sentence in self.sentences)

    @property
    def has_picture(self) -> bool:
        """True if a line of the text is a note of a picture, such as a screenshot."""
        return may_have_pictures(self.text) and any(map(is_picture_note, self.text.split("\n")))

    @property
    def text(self) -> str:
        """Head and tail of the text, for comparison."""
        return self.head if not self.tail else f"{self.head}\n{self.tail}"

    def pieces(self) -> Iterator[tuple[int, str]]:
        """Yield head and tail with their offsets in the whole text."""
        yield 0, self.head
        if self.tail:
            yield self.tail_offset, self.tail

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines of head and tail that are not blank, with their offsets."""
        for offset, piece in self.pieces():
            for match in _LINE.finditer(piece):
                yield offset + match.start(), match[0]

    def quote(self, start: int, end: int) -> Quote:
        """Return the quote of a range, without white space at its ends and cut to ``QUOTED``.

        The quote is empty if the range begins neither in the head nor in the tail.

        Args:
            start: The offset at which the range begins.
            end: The offset after the range.
        """
        for offset, piece in self.pieces():
            if offset <= start < offset + len(piece):
                quoted = piece[start - offset : min(end, start + QUOTED) - offset]
                start += len(quoted) - len(quoted.lstrip())
                quoted = quoted.strip()
                return Quote(self.span.key, start, start + len(quoted), quoted)
        return Quote(self.span.key, start, start, "")

    def find_last(self, pattern: re.Pattern[str]) -> Quote | None:
        """Return the last match of a pattern that is not blank, or None."""
        for offset, piece in reversed(list(self.pieces())):
            matches = [match for match in pattern.finditer(piece) if match[0].strip()]
            if matches:
                return self.quote(offset + matches[-1].start(), offset + matches[-1].end())
        return None

    def first_sentence(self) -> Quote | None:
        """Return the agent's first sentence that is not short, or else its first sentence."""
        long_sentences = [item for item in self.sentences if len(item[1]) >= _NOT_SHORT]
        candidates = long_sentences or self.sentences
        if not candidates:
            return None
        start, sentence = candidates[0]
        return self.quote(start, start + len(sentence))


class _LineOwners:
    """The owners of the lines of all steps: an agent, or the harness that runs the agents.

    A line belongs to an agent if the first step with that line is speech of an agent. Later steps
    do not count, because harnesses repeat prompts and log messages again.
    """

    def __init__(self, steps: Sequence[RuleStep]) -> None:
        self._steps = steps

    def is_agents(self, line: str, index: int) -> bool:
        """Check whether a line is an agent's own: the harness did not write it in an earlier step.

        Short lines count as the agent's own.

        Args:
            line: The line.
            index: The index of the step with the line.
        """
        return index < self._first_harness_step.get(line, inf)

    @cached_property
    def _first_harness_step(self) -> Mapping[str, float]:
        """The first step in which each long line is the harness's; infinity for an agent's line."""
        first_harness_step: dict[str, float] = {}
        for step in self._steps:
            is_harness = step.span.role in (Role.SYSTEM, Role.USER, Role.LOG)
            if step.is_speech or is_harness:
                first_step = inf if step.is_speech else step.index
                for _, line in step.lines():
                    if len(line) >= _SHORTEST_HARNESS_LINE:
                        first_harness_step.setdefault(line.strip(), first_step)
        return first_harness_step


def read_steps(trace: Trace, final_message: str) -> tuple[RuleStep, ...]:
    """Read the steps of a trace; the text of each span is read only once.

    A final message that differs from the last step becomes a step of the last agent.

    Args:
        trace: The trace.
        final_message: The last message of a session, if its file may lack it; may be empty.

    Raises:
        OSError: The source of the trace cannot be read.
    """
    steps: list[RuleStep] = []
    line_owners = _LineOwners(steps)
    last_text = ""
    for index in range(len(trace)):
        last_text = trace.text(index)
        steps.append(_make_step(trace.span(index), last_text, line_owners))
    agent_spans = (step.span for step in reversed(steps) if step.span.role is Role.AGENT)
    agent_span = next(agent_spans, None)
    if final_message.strip() not in ("", last_text.strip()) and agent_span is not None:
        final_span = replace(
            agent_span,
            index=len(steps),
            key=FINAL_MESSAGE,
            kind=SpanKind.MESSAGE,
            name=None,
            parent=None,
        )
        steps.append(_make_step(final_span, final_message, line_owners))
    return tuple(steps)


def _make_step(span: Span, text: str, line_owners: _LineOwners) -> RuleStep:
    if len(text) <= HEAD + TAIL:
        return RuleStep(span, text, "", len(text), len(text), line_owners)
    tail_offset = len(text) - TAIL
    return RuleStep(span, text[:HEAD], text[tail_offset:], tail_offset, len(text), line_owners)


def is_one_sentence(text: str) -> bool:
    """Check whether a text is one sentence."""
    return sum(bool(match[0].strip()) for match in _SENTENCE.finditer(text)) == 1


_QUOTED_CHARS: Final = 160

_HARNESS_HEADER: Final = re.compile(r"(?:Chunk ID|Wall time|Exit code):.*?\bOutput:\n", re.DOTALL)
_JSON_OUTPUT: Final = re.compile(r"\{\"output\":\s*\"(?P<output>.*?)\",\s*\"metadata\":", re.DOTALL)
_VOLATILE: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"  # time stamps
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"  # times of day
    r"|\b(?:\d+(?:\.\d+)?(?:ms|[smhdµ]))+\b"  # ages and durations
)
_SPACE: Final = re.compile(r"\s+")
_LINE_WITH_WORD: Final = re.compile(r".*\w.*")


@dataclass(frozen=True)
class Call:
    """A tool call, or a block of code that another agent runs, with its result."""

    step: RuleStep
    result: RuleStep | None
    tool: str
    command: str
    effect: Effect

    @property
    def index(self) -> int:
        return self.step.index

    @property
    def agent(self) -> str:
        return self.step.span.agent

    @property
    def last_index(self) -> int:
        """The index of the result, or of the call without a result."""
        return self.index if self.result is None else max(self.index, self.result.index)

    @property
    def failed(self) -> bool:
        """True if the result has the status error."""
        return self.result is not None and self.result.span.status is SpanStatus.ERROR

    @property
    def changed(self) -> bool:
        """True if the call is known to change something and did not fail."""
        return self.effect >= Effect.RECORDS and not self.failed

    @property
    def works(self) -> bool:
        """True unless the call only thinks, waits or hands over."""
        return self.effect is not Effect.NONE

    @cached_property
    def answer(self) -> str | None:
        """The text of the result in a form for comparison; None without a result.

        The header of the agent's harness, times and ages are removed, and white space is
        normalised.
        """
        if self.result is None:
            return None
        text = self.result.text
        header = _HARNESS_HEADER.match(text)
        json_output = _JSON_OUTPUT.match(text)
        if header is not None:
            text = text[header.end() :]
        elif json_output is not None:
            text = json_output["output"]
        return _SPACE.sub(" ", _VOLATILE.sub("~", text)).strip()

    def quote(self) -> Quote:
        """Return the first line of the command that has a word, or the beginning of the text."""
        line = _LINE_WITH_WORD.search(self.command)
        first_line = "" if line is None else line[0].strip()[:_QUOTED_CHARS]
        start = max(0, self.step.head.find(first_line))
        return self.step.quote(start, start + (len(first_line) or _QUOTED_CHARS))


@dataclass(frozen=True, slots=True)
class Walk:
    """All steps of a trace, and its calls.

    Attributes:
        steps: The steps.
        calls: The calls, in their order.
        text_of: Reads the whole text of a step, by its index.
    """

    steps: tuple[RuleStep, ...]
    calls: tuple[Call, ...]
    text_of: Callable[[int], str]

    @property
    def last_message(self) -> RuleStep | None:
        """The last message of an agent."""
        return next((step for step in reversed(self.steps) if step.is_message), None)

    def steps_with_calls(self) -> Iterator[tuple[RuleStep, Call | None]]:
        """Yield each step with its call, or None."""
        call_by_index = {call.index: call for call in self.calls}
        for step in self.steps:
            yield step, call_by_index.get(step.index)

    def finding(
        self,
        mode: str,
        spans: tuple[int, int],
        quote: Quote,
        rationale: str,
        confidence: float,
    ) -> Finding:
        """Make a finding on a range of steps, with a quote as its evidence.

        Args:
            mode: The slug of the mode.
            spans: The indices of the first and last step.
            quote: The evidence.
            rationale: The reason, as a sentence.
            confidence: The confidence, from 0 to 1.
        """
        first, last = spans
        return Finding(
            mode=mode,
            first=self.steps[first].span.key,
            last=self.steps[last].span.key,
            rationale=rationale,
            confidence=round(confidence, 2),
            evidence=Evidence(
                key=quote.key, quote=quote.text, char_start=quote.start, char_end=quote.end
            ),
        )

    def calls_between(self, start: int, end: int) -> list[Call]:
        """Return the calls between two steps that do more than think, wait or hand over.

        Args:
            start: The index of the step before the first call.
            end: The index of the step after the last call.
        """
        first_call = bisect_right(self.calls, start, key=attrgetter("index"))
        end_call = bisect_left(self.calls, end, key=attrgetter("index"))
        return [call for call in self.calls[first_call:end_call] if call.works]


def walk(trace: Trace, final_message: str = "") -> Walk:
    """Read the steps and calls of a trace.

    Args:
        trace: The trace.
        final_message: The last message of a session, if its file may lack it.

    Raises:
        OSError: The source of the trace cannot be read.
    """
    steps = read_steps(trace, final_message)

    def text_of(index: int) -> str:
        return trace.text(index) if index < len(trace) else final_message

    return Walk(steps, tuple(_find_calls(steps)), text_of)


_CODE_BLOCK: Final = re.compile(
    r"```(?P<language>python|py|sh|bash|shell|console)[^\n]*\n(?P<code>.+?)(?:```|\Z)", re.DOTALL
)
_SHELL_LANGUAGES: Final = ("sh", "bash", "shell", "console")


def _find_calls(steps: Sequence[RuleStep]) -> Iterator[Call]:
    """Yield the calls of tools, and the messages with code that the next step runs.

    The result of a call is the first result that names it, or else a result without a call in the
    next step.
    """
    # In reversed order, the first result of a call is set last.
    result_by_call = {
        step.span.parent: step
        for step in reversed(steps)
        if step.span.kind is SpanKind.TOOL_RESULT and step.span.parent is not None
    }
    for index, step in enumerate(steps):
        next_step = steps[index + 1] if index + 1 < len(steps) else None
        if step.span.kind is SpanKind.TOOL_CALL:
            result = result_by_call.get(step.span.key)
            if (
                result is None
                and next_step is not None
                and next_step.span.kind is SpanKind.TOOL_RESULT
                and next_step.span.parent is None
            ):
                result = next_step
            yield _make_call(step, result, step.span.name or "", step.head)
        elif step.is_message:
            block = _CODE_BLOCK.search(step.head)
            if block is not None and next_step is not None and _runs_code(step, next_step):
                tool = "shell" if block["language"] in _SHELL_LANGUAGES else "python"
                yield _make_call(step, next_step, tool, block["code"])


def _runs_code(step: RuleStep, next_step: RuleStep) -> bool:
    """Check whether the step after a message with code is the output of the code."""
    if next_step.span.kind is SpanKind.TOOL_RESULT:
        return True
    return next_step.span.agent != step.span.agent and next_step.is_output


def _make_call(step: RuleStep, result: RuleStep | None, tool: str, arguments: str) -> Call:
    command = command_of(tool, arguments)
    return Call(step, result, tool, command, effect_of(tool, arguments, command))

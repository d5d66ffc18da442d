"""The steps of a trace for the rules, and its calls with their results and effects."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Final

from mast_tui.judges.rules.effects import Effect, command_of, effect_of
from mast_tui.judges.rules.steps import Quote, RuleStep, read_steps
from mast_tui.labels import Evidence, Finding
from mast_tui.traces.model import SpanKind, SpanStatus, Trace

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

"""The steps of a trace, and its calls paired with their results and effects, for the rules."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.judges.rules.effects import Effect, command_of, effect_of
from mast_tui.judges.rules.steps import Quote, RuleStep, read_steps
from mast_tui.labels import Evidence, Finding
from mast_tui.traces.model import SpanKind, SpanStatus, Trace


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call (or a block of code that another agent runs) with its result, if it has one."""

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
        """The index of the result, or of the call where there is none."""
        return self.index if self.result is None else max(self.index, self.result.index)

    @property
    def failed(self) -> bool:
        """True if the result has the status error."""
        return self.result is not None and self.result.span.status is SpanStatus.ERROR

    @property
    def changed(self) -> bool:
        """True if the call is known to change something and did not fail."""
        return self.effect is Effect.CHANGES and not self.failed

    @property
    def works(self) -> bool:
        """True unless the call only thinks, waits or hands over."""
        return self.effect is not Effect.NONE

    def quote(self) -> Quote:
        """Return the first line of the command in the text of the span, or the text's beginning."""
        text = self.step.head
        first = self.command.strip().split("\n", 1)[0][:160]
        start = max(0, text.find(first))
        return self.step.quote(start, start + (len(first) or 160))


@dataclass(frozen=True, slots=True)
class Walk:
    """All steps of a trace, and its calls in order.

    ``text_of`` reads a step's whole text by its index.
    """

    steps: tuple[RuleStep, ...]
    calls: tuple[Call, ...]
    text_of: Callable[[int], str]

    def finding(
        self,
        mode: str,
        spans: tuple[int, int],
        quote: Quote,
        rationale: str,
        confidence: float,
    ) -> Finding:
        """Make a suggestion with its evidence.

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
        """Return the working calls that begin between two indices, both excluded.

        Args:
            start: The index before the first call.
            end: The index after the last call.
        """
        first = bisect_right(self.calls, start, key=_index_of)
        last = bisect_left(self.calls, end, key=_index_of)
        return [call for call in self.calls[first:last] if call.works]


def _index_of(call: Call) -> int:
    return call.index


def walk(trace: Trace, final_message: str = "") -> Walk:
    """Read the steps and calls of a trace.

    Args:
        trace: The trace.
        final_message: The last message of a session whose file does not have it yet.

    Raises:
        OSError: The source of the trace cannot be read.
    """
    steps = read_steps(trace, final_message)

    def text_of(index: int) -> str:
        return trace.text(index) if index < len(trace) else final_message

    return Walk(steps, tuple(_calls(steps)), text_of)


_CODE_BLOCK: Final = re.compile(
    r"```(?P<language>python|py|sh|bash|shell|console)[^\n]*\n(?P<code>.+?)(?:```|\Z)", re.DOTALL
)
_SHELL_LANGUAGES: Final = ("sh", "bash", "shell", "console")
_RAN: Final = re.compile(
    r"\s*(?:exitcode|exit code|execution (?:output|succeeded|failed)|<returncode>|output:|traceback"
    r"|code (?:execution )?output|the (?:script|code) (?:ran|exited)|no output\b|there is no code)",
    re.IGNORECASE,
)


def _calls(steps: Sequence[RuleStep]) -> Iterator[Call]:
    results = {
        step.span.parent: step
        for step in reversed(steps)
        if step.span.kind is SpanKind.TOOL_RESULT and step.span.parent is not None
    }
    for index, step in enumerate(steps):
        following = steps[index + 1] if index + 1 < len(steps) else None
        if step.span.kind is SpanKind.TOOL_CALL:
            result = results.get(step.span.key)
            if result is None and following is not None and _orphan_result(following):
                result = following
            yield _call(step, result, step.span.name or "", step.head)
        elif step.is_message:
            block = _CODE_BLOCK.search(step.head)
            if block is not None and following is not None and _runs_code(step, following):
                tool = "shell" if block["language"] in _SHELL_LANGUAGES else "python"
                yield _call(step, following, tool, block["code"])


def _orphan_result(step: RuleStep) -> bool:
    return step.span.kind is SpanKind.TOOL_RESULT and step.span.parent is None


def _runs_code(step: RuleStep, following: RuleStep) -> bool:
    """Check whether the step after a message with code is the output of the code."""
    if following.span.kind is SpanKind.TOOL_RESULT:
        return True
    return following.span.agent != step.span.agent and is_output(following)


def is_output(step: RuleStep) -> bool:
    """Check whether a message is the output of code."""
    return _RAN.match(step.head) is not None


def _call(step: RuleStep, result: RuleStep | None, tool: str, arguments: str) -> Call:
    command = command_of(arguments)
    return Call(
        step=step,
        result=result,
        tool=tool,
        command=command,
        effect=effect_of(tool, arguments),
    )


_HARNESS_HEADER: Final = re.compile(r"(?:Chunk ID|Wall time|Exit code):.*?\bOutput:\n", re.DOTALL)
_JSON_OUTPUT: Final = re.compile(r"\{\"output\":\s*\"(?P<output>.*?)\",\s*\"metadata\":", re.DOTALL)
_VOLATILE: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"  # time stamps
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"  # times of day
    r"|\b(?:\d+(?:\.\d+)?(?:ms|[smhdµ]))+\b"  # ages and durations
)
_SPACE: Final = re.compile(r"\s+")


def answer_of(result: RuleStep) -> str:
    """Return the text of a result for comparison.

    The header of the harness, times, ages and white space are removed, so that results with the
    same content are equal. Results with different counters differ.
    """
    text = result.text
    header = _HARNESS_HEADER.match(text)
    if header is not None:
        text = text[header.end() :]
    elif (wrapped := _JSON_OUTPUT.match(text)) is not None:
        text = wrapped["output"]
    return _SPACE.sub(" ", _VOLATILE.sub("~", text)).strip()

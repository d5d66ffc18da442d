"""The windows of a trace: the spans of each request, so that it fits into the model's context."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final

from mast_tui.judges.llm.errors import TraceFails
from mast_tui.judges.llm.prompt.prompt import Prompt
from mast_tui.judges.llm.prompt.prompt_section import artefacts_text
from mast_tui.judges.llm.prompt.redacted_view import RedactedSpan, RedactedView
from mast_tui.judges.llm.prompt.token_budget import (
    FRAME_TOKENS,
    HEADER_TOKENS,
    spans_room,
    story_room,
    task_room,
    unit,
    weight,
)
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.request import MOST_STEPS, Parameters, Window
from mast_tui.traces.model import Role, SpanKind

LEAST_TOKENS: Final = 256
"""The fewest tokens of a window."""

_OVERLAP: Final = 10  # a tenth of the room is for spans that the window before has shown
_SMALLER: Final = 0.6  # of what did not fit: a half, and some for the overlap


def plan(view: RedactedView, prompt: Prompt, parameters: Parameters) -> tuple[Window, ...]:
    """Plan the windows of a trace, in their order; every span is in a window.

    A trace that fits is one window. Otherwise the last window is filled from the end of the run
    backwards, the others from its beginning; each begins with some spans of the previous one. If
    all modes are judged at the end of a run, there is only the last window.

    Args:
        view: The trace as it is sent.
        prompt: The prompt with its modes.
        parameters: The settings with the size of a window.

    Returns:
        The windows; none for a trace without spans.
    """
    spans = len(view)
    if not spans:
        return ()
    budget = parameters.window_tokens
    if parameters.artefacts:
        budget -= estimate(artefacts_text(view, budget))
    texts = sum(view.tokens) + HEADER_TOKENS * spans
    if texts <= spans_room(view, budget, alone=True):
        if parameters.decisive == "step by step" and spans <= MOST_STEPS:
            return _steps(view, prompt)
        return (Window(0, spans - 1, True, prompt.modes),)
    return _several(view, prompt, budget)


def _steps(view: RedactedView, prompt: Prompt) -> tuple[Window, ...]:
    """Return a window for each step of an agent, with the run up to that step."""
    last = len(view) - 1
    steps = [span.index for span in view.spans(0, last) if _is_step(span)] or range(last + 1)
    return tuple(Window(0, step, step == last, prompt.modes, step=step) for step in steps)


def _is_step(span: RedactedSpan) -> bool:
    """Whether an agent did it, which could have done otherwise."""
    if span.kind is SpanKind.MESSAGE:
        return span.role not in (Role.USER, Role.SYSTEM)
    return span.kind in (SpanKind.REASONING, SpanKind.TOOL_CALL)


def _several(view: RedactedView, prompt: Prompt, budget: int) -> tuple[Window, ...]:
    room = spans_room(view, budget, alone=False)
    last = len(view) - 1
    costs = _Costs(view, unit(budget), 0, last)
    final_first = costs.back_from(last, room)
    windows: list[Window] = []
    first = 0 if prompt.window_modes else final_first
    while first < final_first:
        end = costs.on_from(first, room)
        if end >= final_first - 1:
            end = min(end, costs.on_from(final_first, room // _OVERLAP, least=0))
            windows.append(Window(first, end, False, prompt.window_modes))
            break
        windows.append(Window(first, end, False, prompt.window_modes))
        first = max(first + 1, costs.back_from(end, room // _OVERLAP, least=0))
        if costs.on_from(first, room) <= end:
            first = end + 1
    windows.append(Window(final_first, last, True, prompt.modes))
    return tuple(windows)


class _Costs:
    """The tokens of spans, of a long text as many as it gets when windows are planned."""

    def __init__(self, view: RedactedView, unit: int, first: int, last: int) -> None:
        spans = len(view)
        each = (
            HEADER_TOKENS + min(view.tokens[index], unit * weight(index, spans))
            for index in range(first, last + 1)
        )
        self._first = first
        self._last = last
        self._sums = array("Q", accumulate(each, initial=0))

    def of(self, first: int, last: int) -> int:
        """Return the tokens of the spans from ``first`` to ``last``."""
        return self._sums[last + 1 - self._first] - self._sums[first - self._first]

    def on_from(self, first: int, room: int, least: int = 1) -> int:
        """Return the last span that fits with those from ``first``.

        Args:
            first: The first span.
            room: The most tokens.
            least: The number of spans that are included in any case.
        """
        last = first + least - 1
        while last < self._last and self.of(first, last + 1) <= room:
            last += 1
        return last

    def back_from(self, last: int, room: int, least: int = 1) -> int:
        """Return the first span that fits with those up to ``last``.

        Args:
            last: The last span.
            room: The most tokens.
            least: The number of spans that are included in any case.
        """
        first = last - least + 1
        while first > self._first and self.of(first - 1, last) <= room:
            first -= 1
        return first


def split(
    window: Window, view: RedactedView, prompt: Prompt, parameters: Parameters
) -> tuple[Window, ...]:
    """Split a window that is too long for the model.

    The result is two windows with less room each, or for a single span one with less of its text.
    A window is always split in the same way.

    Args:
        window: The window.
        view: The trace as it is sent.
        prompt: The prompt with its modes.
        parameters: The settings with the size of a window.

    Raises:
        TraceFails: The window cannot be smaller; the message says why.
    """
    if window.step is not None:
        raise TraceFails("the model reads too little to be asked step by step")
    budget = min(window.tokens or parameters.window_tokens, _needed(window, view, parameters))
    smaller = int(budget * (_SMALLER if window.first < window.last else 0.5))
    if smaller < LEAST_TOKENS:
        raise TraceFails(
            f"the model reads too little for #{window.first + 1} of this trace, even shortened"
        )
    if window.first == window.last:
        return (replace(window, tokens=smaller),)
    costs = _Costs(view, unit(smaller), window.first, window.last)
    middle = _middle(costs, window)
    overlap = spans_room(view, smaller, alone=False) // _OVERLAP
    second = max(window.first + 1, costs.back_from(middle, overlap, least=0))
    inner = tuple(mode for mode in window.modes if mode in prompt.window_modes)
    second_half = Window(second, window.last, window.final, window.modes, smaller)
    if not inner:
        return (second_half,)
    return (Window(window.first, middle, False, inner, smaller), second_half)


def _needed(window: Window, view: RedactedView, parameters: Parameters) -> int:
    """Return the tokens of the data of a window if no text is shortened."""
    budget = parameters.window_tokens
    tokens: Sequence[int] = view.tokens[window.first : window.last + 1]
    around = FRAME_TOKENS + min(estimate(view.task), task_room(budget)) + story_room(budget)
    return around + sum(tokens) + HEADER_TOKENS * len(tokens)


def _middle(costs: _Costs, window: Window) -> int:
    """Return the last span of the first half by tokens; both halves have at least one span."""
    return costs.on_from(window.first, costs.of(window.first, window.last) // 2)

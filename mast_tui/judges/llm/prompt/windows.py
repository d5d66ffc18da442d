"""The windows of a trace: ranges of spans that each fit into one request."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final

from mast_tui.judges.llm.prompt.prompt import Prompt
from mast_tui.judges.llm.prompt.prompt_section import artefacts_text
from mast_tui.judges.llm.prompt.redacted_view import RedactedSpan, RedactedView
from mast_tui.judges.llm.prompt.tokens import (
    FRAME_TOKENS,
    HEADER_TOKENS,
    estimate,
    story_room,
    task_room,
    unit,
    weight,
)
from mast_tui.judges.llm.request import MOST_STEPS, Parameters, TraceFails, Window
from mast_tui.traces.model import Role, SpanKind

LEAST_TOKENS: Final = 256
"""The fewest tokens of a window."""

_OVERLAP_DIVISOR: Final = 10
"""The divisor of a window's room that gives the room for spans of the previous window."""

_SPLIT_SHARE: Final = 0.6
"""The share of a window's tokens for each of its two parts: a half, and some overlap."""

_SHORTENED_SHARE: Final = 0.5
"""The share of a window's tokens that it keeps if it has a single span."""


def plan(view: RedactedView, prompt: Prompt, parameters: Parameters) -> tuple[Window, ...]:
    """Plan the windows of a trace, in their order.

    - A trace that fits is one window. With the setting ``step by step``, a short trace has a window
      for each step.
    - In a longer trace, the last window is filled backwards from the end of the run. The other
      windows are filled from the beginning and overlap a little.
    - If all modes are judged at the end of a run, there is only the last window.

    Args:
        view: The trace as it is sent.
        prompt: The prompt with its modes.
        parameters: The settings with the size of a window.
    """
    span_count = len(view)
    if not span_count:
        return ()
    budget = parameters.window_tokens
    if parameters.artefacts:
        budget -= estimate(artefacts_text(view, budget))
    needed_tokens = sum(view.tokens) + HEADER_TOKENS * span_count
    if needed_tokens <= _spans_room(view, budget, alone=True):
        if parameters.decisive == "step by step" and span_count <= MOST_STEPS:
            return _step_windows(view, prompt)
        return (Window(0, span_count - 1, final=True, modes=prompt.modes),)
    return _window_sequence(view, prompt, budget)


def _step_windows(view: RedactedView, prompt: Prompt) -> tuple[Window, ...]:
    """Return a window for each step of an agent, with the run up to that step.

    Without steps of agents, each span counts as a step.
    """
    last = len(view) - 1
    steps = [span.index for span in view.spans(0, last) if _is_step(span)] or range(last + 1)
    return tuple(
        Window(0, step, final=step == last, modes=prompt.modes, step=step) for step in steps
    )


def _is_step(span: RedactedSpan) -> bool:
    """Check whether a span is an agent's own act: a message, a thought or a call."""
    if span.kind is SpanKind.MESSAGE:
        return span.role not in (Role.USER, Role.SYSTEM)
    return span.kind in (SpanKind.REASONING, SpanKind.TOOL_CALL)


def _window_sequence(view: RedactedView, prompt: Prompt, budget: int) -> tuple[Window, ...]:
    """Return the windows of a trace that does not fit into one window."""
    room = _spans_room(view, budget, alone=False)  # room for the story of the run is set aside
    last_span = len(view) - 1
    costs = _SpanCosts(view, unit(budget), 0, last_span)
    final_first = costs.first_fitting(last_span, room)  # the first span of the final window
    overlap = room // _OVERLAP_DIVISOR
    windows: list[Window] = []
    # Without modes to judge on every window, only the final window is needed.
    first = 0 if prompt.window_modes else final_first
    while first < final_first:
        last = costs.last_fitting(first, room)
        reaches_final_window = last >= final_first - 1
        if reaches_final_window:  # at most ``overlap`` tokens are in both windows
            last = min(last, costs.last_fitting(final_first, overlap, least=0))
            windows.append(Window(first, last, final=False, modes=prompt.window_modes))
            break
        windows.append(Window(first, last, final=False, modes=prompt.window_modes))
        first = max(first + 1, costs.first_fitting(last, overlap, least=0))
        if costs.last_fitting(first, room) <= last:  # the overlap leaves no room for a new span
            first = last + 1
    windows.append(Window(final_first, last_span, final=True, modes=prompt.modes))
    return tuple(windows)


class _SpanCosts:
    """The token costs of a range of spans; a long text costs as much as its part in a request."""

    def __init__(self, view: RedactedView, unit: int, first: int, last: int) -> None:
        """Compute the costs of the spans ``first`` to ``last``.

        ``unit`` is the token limit of a text of weight 1.
        """
        span_count = len(view)
        costs = (
            HEADER_TOKENS + min(view.tokens[index], unit * weight(index, span_count))
            for index in range(first, last + 1)
        )
        self._first = first
        self._last = last
        # Item i is the sum of the first i costs.
        self._sums = array("Q", accumulate(costs, initial=0))

    def range_tokens(self, first: int, last: int) -> int:
        """Return the tokens of a range of spans.

        Args:
            first: The index of the first span.
            last: The index of the last span.
        """
        return self._sums[last + 1 - self._first] - self._sums[first - self._first]

    def last_fitting(self, first: int, room: int, least: int = 1) -> int:
        """Return the index of the last span that fits together with all spans from ``first``.

        Args:
            first: The index of the first span.
            room: The token limit.
            least: The number of spans to include in any case.
        """
        last = first + least - 1
        while last < self._last and self.range_tokens(first, last + 1) <= room:
            last += 1
        return last

    def first_fitting(self, last: int, room: int, least: int = 1) -> int:
        """Return the index of the first span that fits together with all spans up to ``last``.

        Args:
            last: The index of the last span.
            room: The token limit.
            least: The number of spans to include in any case.
        """
        first = last - least + 1
        while first > self._first and self.range_tokens(first - 1, last) <= room:
            first -= 1
        return first


def split(
    window: Window, view: RedactedView, prompt: Prompt, parameters: Parameters
) -> tuple[Window, ...]:
    """Split a window that is too long for the model; the result is always the same.

    A window of one span keeps this span with less of its text. Other windows are split into two.
    The first half is dropped if all its modes are judged at the end of the run.

    Args:
        window: The window.
        view: The trace as it is sent.
        prompt: The prompt with its modes.
        parameters: The settings with the size of a window.

    Raises:
        TraceFails: The window cannot be smaller; the message says why.
    """
    if window.step is not None:
        raise TraceFails("the model's context is too small to ask step by step")
    budget = min(
        window.tokens or parameters.window_tokens, _needed_tokens(window, view, parameters)
    )
    is_single_span = window.first == window.last
    part_tokens = int(budget * (_SHORTENED_SHARE if is_single_span else _SPLIT_SHARE))
    if part_tokens < LEAST_TOKENS:
        raise TraceFails(
            f"the model's context is too small for #{window.first + 1} of this trace, even "
            "shortened"
        )
    if is_single_span:
        return (replace(window, tokens=part_tokens),)
    costs = _SpanCosts(view, unit(part_tokens), window.first, window.last)
    # The last span of the first half by tokens; each half has at least one span.
    middle = costs.last_fitting(window.first, costs.range_tokens(window.first, window.last) // 2)
    overlap = _spans_room(view, part_tokens, alone=False) // _OVERLAP_DIVISOR
    second_first = max(window.first + 1, costs.first_fitting(middle, overlap, least=0))
    second_half = Window(
        second_first, window.last, final=window.final, modes=window.modes, tokens=part_tokens
    )
    first_half_modes = tuple(mode for mode in window.modes if mode in prompt.window_modes)
    if not first_half_modes:
        return (second_half,)
    return (
        Window(window.first, middle, final=False, modes=first_half_modes, tokens=part_tokens),
        second_half,
    )


def _spans_room(view: RedactedView, budget: int, *, alone: bool) -> int:
    """Return the tokens of a request for spans and their headers.

    Args:
        view: The trace as it is sent.
        budget: The token limit of the request.
        alone: True if the request has all spans, so that it needs no story of the run.
    """
    room = budget - FRAME_TOKENS - min(estimate(view.task), task_room(budget))
    if not alone:
        room -= story_room(budget)
    return max(0, room)


def _needed_tokens(window: Window, view: RedactedView, parameters: Parameters) -> int:
    """Return the tokens of a window's data without any shortening."""
    budget = parameters.window_tokens
    tokens: Sequence[int] = view.tokens[window.first : window.last + 1]
    task_tokens = min(estimate(view.task), task_room(budget))
    span_tokens = sum(tokens) + HEADER_TOKENS * len(tokens)
    return FRAME_TOKENS + task_tokens + story_room(budget) + span_tokens

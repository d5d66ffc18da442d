"""The tokens and minutes of failed runs before and after their first fatal failure.

The use after the first span of that failure counts for the failure's mode. If several fatal
failures begin at that span, it is divided evenly among their modes. So the modes add up to
``after``, and ``without_fatal`` + ``before_first_fatal`` + ``after`` is the total.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Floats
from mast_tui.figures.record import PAIR, Figure
from mast_tui.figures.signatures.model import Flags, GroupScope, SignatureInput
from mast_tui.figures.signatures.onset import first_fatal
from mast_tui.traces.model import Span, Trace


@dataclass(frozen=True, slots=True, eq=False)
class SpanUsage:
    """The tokens and minutes of each span of a run, in reading order; None if not recorded.

    ``tokens`` is spans × (input tokens, output tokens), ``minutes`` the time until the next span.
    """

    tokens: NDArray[np.int64] | None
    minutes: Floats | None

    def amounts(self) -> dict[str, NDArray[Any]]:
        """Return the recorded amounts of each span, by their names in ``AMOUNTS``."""
        amounts: dict[str, NDArray[Any]] = {}
        if self.tokens is not None:
            input_tokens, output_tokens = self.tokens.T
            amounts["tokens"] = input_tokens + output_tokens
            amounts["input_tokens"] = input_tokens
            amounts["output_tokens"] = output_tokens
        if self.minutes is not None:
            amounts["minutes"] = self.minutes
        return amounts


UsageOf = Callable[[str], SpanUsage | None]
"""Returns the tokens and minutes of a trace by its id; None if its file cannot be read."""


AMOUNTS: Final = ("tokens", "input_tokens", "output_tokens", "minutes")
"""The amounts that runs use; ``tokens`` are input and output tokens together."""


def costs(
    inputs: SignatureInput,
    usage_of: UsageOf,
    is_counted: Flags,
    fatal_by_definition: Mapping[str, Flags],
    group: GroupScope,
) -> Iterator[Figure]:
    """Yield the tokens and minutes of the chosen traces before and after a fatal failure.

    There is a set of figures for each definition of a fatal label. ``at_hand`` counts the traces
    with readable files.

    Args:
        inputs: The labels and traces of the report.
        usage_of: Returns the tokens and minutes of a trace; called once for each trace.
        is_counted: A mask of the chosen traces.
        fatal_by_definition: A mask of the fatal labels in ``inputs.places``, for each definition of
            a fatal label.
        group: The group of the traces.
    """
    rows = np.flatnonzero(is_counted).tolist()
    usage_by_row = {
        row: usage for row in rows if (usage := usage_of(inputs.traces[row])) is not None
    }
    for definition, is_fatal in fatal_by_definition.items():
        yield from _cost_figures(inputs, is_fatal, rows, usage_by_row, group, definition)


def _cost_figures(
    inputs: SignatureInput,
    is_fatal: Flags,
    rows: Sequence[int],
    usage_by_row: Mapping[int, SpanUsage],
    group: GroupScope,
    definition: str,
) -> Iterator[Figure]:
    """Yield the counts of traces and the sums of each amount, by one definition of fatal labels.

    ``is_fatal`` is a mask of the fatal labels in ``inputs.places``. ``rows`` are the indices of the
    chosen traces. ``usage_by_row`` has the traces with readable files, by the same indices.
    """
    first_fatal_spans = first_fatal(inputs, is_fatal).first
    places = inputs.places
    is_first_fatal = is_fatal & (places.first == first_fatal_spans[places.trace])
    # The modes of the labels that begin at the first fatal span of each trace.
    fatal_modes: dict[int, set[int]] = defaultdict(set)
    label_rows = places.trace[is_first_fatal].tolist()
    label_modes = places.mode[is_first_fatal].tolist()
    for row, mode in zip(label_rows, label_modes, strict=True):
        fatal_modes[row].add(mode)
    scope = group.scope("bill")
    yield from scope.counts(
        {
            "traces": len(rows),
            "with_fatal": sum(row in fatal_modes for row in rows),
            "at_hand": len(usage_by_row),
        },
        condition=definition,
    )
    codes = [mode.code for mode in inputs.modes]
    amounts_by_row = {row: usage.amounts() for row, usage in usage_by_row.items()}
    for name in AMOUNTS:
        runs = [
            _Run(amounts[name], int(first_fatal_spans[row]), sorted(fatal_modes.get(row, ())))
            for row, amounts in amounts_by_row.items()
            if name in amounts
        ]
        yield from _amount_figures(runs, codes, group, f"{definition}{PAIR}{name}")


class _Run(NamedTuple):
    """The use of each span of a run, with the first span and the modes of its first fatal failure.

    The run has no modes without a fatal failure.
    """

    by_span: NDArray[Any]
    first_fatal_span: int
    modes: Sequence[int]


def _amount_figures(
    runs: Sequence[_Run], codes: Sequence[str], group: GroupScope, condition: str
) -> Iterator[Figure]:
    """Yield the sums of one amount, such as tokens, before and after the first fatal failure.

    ``condition`` names the amount. The amount after the failure is divided evenly among its modes.
    """
    if not runs:
        return
    total: float = 0
    without_fatal: float = 0
    before_fatal: float = 0
    after_by_mode: list[float] = [0] * len(codes)
    for run in runs:
        run_total = run.by_span.sum().item()
        total += run_total
        if not run.modes:
            without_fatal += run_total
            continue
        run_before_fatal = run.by_span[: run.first_fatal_span].sum().item()
        before_fatal += run_before_fatal
        for mode in run.modes:
            after_by_mode[mode] += (run_total - run_before_fatal) / len(run.modes)
    used_after = total - without_fatal - before_fatal
    scope = group.scope("bill")
    yield from scope.counts(
        {
            "used_total": total,
            "used_without_fatal": without_fatal,
            "used_before_first_fatal": before_fatal,
            "used_after": used_after,
            "used_share_after": used_after / total if total else None,
        },
        condition=condition,
        n=len(runs),
    )
    for code, value in zip(codes, after_by_mode, strict=True):
        if value:
            mode_scope = group.scope("bill", code, code, outcome="failed")
            yield mode_scope.number("used_after", value, condition=condition)


def usage_from(trace_of: Callable[[str], Trace | None]) -> UsageOf:
    """Return a function that returns the tokens and minutes of a trace by its id.

    Args:
        trace_of: Returns a trace that was read to its end, or None if its file cannot be read.
    """

    def usage_of(trace_id: str) -> SpanUsage | None:
        trace = trace_of(trace_id)
        return None if trace is None else usage_in(trace)

    return usage_of


def usage_in(trace: Trace) -> SpanUsage:
    """Return the tokens and minutes of each span of a trace, as far as the trace has been read.

    The minutes of a span are those from its start to the start of the next span.
    """
    spans = [trace.span(index) for index in range(len(trace))]
    return SpanUsage(_tokens_by_span(spans), _minutes_by_span(spans))


def _tokens_by_span(spans: list[Span]) -> NDArray[np.int64] | None:
    """Return spans × (input tokens, output tokens); None if no span records tokens."""
    if all(span.tokens is None for span in spans):
        return None
    rows = [
        (0, 0) if span.tokens is None else (span.tokens.input or 0, span.tokens.output or 0)
        for span in spans
    ]
    return np.array(rows, dtype=np.int64)


def _minutes_by_span(spans: list[Span]) -> Floats | None:
    """Return the minutes from the start of each span to the next start; None without times."""
    times = [time for span in spans for time in (span.start, span.end) if time is not None]
    if not times:
        return None
    # An unknown start, or one before the previous start, is replaced by the previous start.
    starts = [min(times)]
    for span in spans[1:]:
        start = span.end if span.start is None else span.start
        starts.append(starts[-1] if start is None else max(starts[-1], start))
    return np.diff([*starts, max(times)]) / 60

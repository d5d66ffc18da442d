"""Figures on places: the position of the first failure, the order of modes, the spans after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np

from mast_tui.figures.bootstrap import Floats
from mast_tui.figures.intervals import rate
from mast_tui.figures.record import PAIR, Figure, FigureScope
from mast_tui.figures.signatures.model import Flags, GroupScope, Integers, SignatureInput


@dataclass(frozen=True, slots=True, eq=False)
class Onsets:
    """The onsets: the first span of each mode in each trace, sorted by trace, span and mode.

    Attributes:
        trace: The row of the trace.
        mode: The column of the mode.
        first: The index of the first span.
        step: The number of the first span among the different first spans of the trace, from 0.
    """

    trace: Integers
    mode: Integers
    first: Integers
    step: Integers

    def in_traces(self, traces: Flags) -> Onsets:
        """Return the onsets in the traces of a mask."""
        rows = traces[self.trace]
        return Onsets(self.trace[rows], self.mode[rows], self.first[rows], self.step[rows])


@dataclass(frozen=True, slots=True, eq=False)
class FirstFatal:
    """The first and last span of the first fatal failure of each trace, -1 without one."""

    first: Integers
    last: Integers


def onsets(inputs: SignatureInput) -> Onsets:
    """Return the onsets of all traces: the first span of each mode in each trace."""
    places = inputs.places
    by_mode = np.lexsort((places.first, places.mode, places.trace))
    # Of the labels of one mode in a trace, keep the first.
    starts_mode = _row_changes(places.trace[by_mode]) | _row_changes(places.mode[by_mode])
    rows = by_mode[starts_mode]
    # ``Onsets`` are sorted by trace, span and mode.
    rows = rows[np.lexsort((places.mode[rows], places.first[rows], places.trace[rows]))]
    trace = places.trace[rows]
    first = places.first[rows]
    return Onsets(trace, places.mode[rows], first, _step_numbers(trace, first))


def _row_changes(column: Integers) -> Flags:
    """Return a mask of the rows that differ from the row before; the first row is included."""
    differs = np.ones(len(column), dtype=bool)
    differs[1:] = column[1:] != column[:-1]
    return differs


def _step_numbers(trace: Integers, first: Integers) -> Integers:
    """Number the different first spans within each trace, from 0.

    The rows are sorted by trace, then by first span.
    """
    starts_trace = _row_changes(trace)
    running_count = np.cumsum(starts_trace | _row_changes(first))
    count_at_start = np.maximum.accumulate(np.where(starts_trace, running_count, 0))
    return np.asarray(running_count - count_at_start, dtype=np.int64)


def first_fatal(inputs: SignatureInput, fatal: Flags) -> FirstFatal:
    """Return the spans of the first fatal failure of each trace.

    Of fatal failures that begin at the same span, the one that ends first counts.

    Args:
        inputs: The labels and traces of the report.
        fatal: A mask of the fatal labels in ``inputs.places``.
    """
    places = inputs.places
    labels = np.flatnonzero(fatal)
    # Sort by trace, first and last span.
    labels = labels[np.lexsort((places.last[labels], places.first[labels], places.trace[labels]))]
    trace = places.trace[labels]
    first = places.first[labels]
    last = places.last[labels]
    is_first = _row_changes(trace)
    first_spans = np.full(len(inputs.traces), -1, dtype=np.int64)
    last_spans = first_spans.copy()
    first_spans[trace[is_first]] = first[is_first]
    last_spans[trace[is_first]] = last[is_first]
    return FirstFatal(first_spans, last_spans)


BINS: Final = 10
MOST_CHAINS: Final = 20
"""The number of listed chains, the most frequent ones."""


def places_figures(
    inputs: SignatureInput,
    all_onsets: Onsets,
    is_counted: Flags,
    with_mode_count: int,
    side: str,
    group: GroupScope,
    fatal: Mapping[str, FirstFatal],
) -> Iterator[Figure]:
    """Yield the figures on the places and the order of the onsets in the chosen traces.

    Args:
        inputs: The labels and traces of the report.
        all_onsets: The onsets of all traces: the first span of each mode.
        is_counted: A mask of the chosen traces.
        with_mode_count: The number of chosen traces with any mode.
        side: The set of chosen traces: ``failed`` or ``all``.
        group: The group of the traces.
        fatal: The first fatal failure of each trace, for each definition of a fatal label.
    """
    codes = [mode.code for mode in inputs.modes]
    trace_onsets = all_onsets.in_traces(is_counted)
    scope = group.scope(f"places_{side}")
    yield scope.number("traces", len(np.unique(trace_onsets.trace)))
    yield scope.number("showing", with_mode_count)
    yield from _first_onset_figures(scope, trace_onsets, inputs.spans)
    for definition, failures in fatal.items():
        yield from _spans_after_fatal(scope, definition, failures, inputs.spans, is_counted)
    yield from _mode_onset_figures(trace_onsets, inputs.spans, codes, side, group)
    yield from _order_figures(trace_onsets, codes, side, group)
    for pair, count in _transition_counts(trace_onsets, codes):
        pair_key = PAIR.join(pair)
        yield group.scope(f"transitions_{side}", pair_key, step=pair_key).number(
            "transitions", count
        )
    chain_counts = Counter(chains(trace_onsets, codes).values())
    by_frequency = sorted(chain_counts.items(), key=lambda item: (-item[1], item[0]))
    for chain, count in by_frequency[:MOST_CHAINS]:
        text = chain_text(chain)
        chain_codes = [code for step in chain for code in step]
        yield group.scope(f"chains_{side}", text, *chain_codes, chain=text).number("chains", count)


def _first_onset_figures(
    scope: FigureScope, trace_onsets: Onsets, span_counts: Integers
) -> Iterator[Figure]:
    """Yield the position of the first onset of each trace, and the numbers of unclear cases.

    ``uncounted`` counts traces with an unknown number of spans. ``tied`` counts traces in which
    several modes begin first. ``span_counts`` has the number of spans of each trace of the report.
    """
    # Several modes may share step 0.
    first_step = trace_onsets.step == 0
    traces, first_rows, modes_at_first_step = np.unique(
        trace_onsets.trace[first_step], return_index=True, return_counts=True
    )
    lengths = span_counts[traces]
    yield scope.number("uncounted", int((lengths < 1).sum()))
    yield scope.number("tied", int((modes_at_first_step > 1).sum()))
    yield from position_figures(scope, trace_onsets.first[first_step][first_rows], lengths)


def _mode_onset_figures(
    trace_onsets: Onsets, span_counts: Integers, codes: list[str], side: str, group: GroupScope
) -> Iterator[Figure]:
    """Yield how often each mode begins first, then the positions at which each mode begins.

    ``span_counts`` has the number of spans of each trace of the report.
    """
    trace_count = len(np.unique(trace_onsets.trace))
    first_modes = trace_onsets.mode[trace_onsets.step == 0]
    first_counts = np.bincount(first_modes, minlength=len(codes)).tolist()
    for code, count in zip(codes, first_counts, strict=True):
        if count:
            scope = group.scope(f"first_mode_{side}", code, code, first=code)
            yield rate(scope, "", count, trace_count)
    for mode, code in enumerate(codes):
        has_mode = trace_onsets.mode == mode
        if has_mode.any():
            scope = group.scope(f"onset_{side}", code, code, placed="yes")
            lengths = span_counts[trace_onsets.trace[has_mode]]
            yield from position_figures(scope, trace_onsets.first[has_mode], lengths)


def position_figures(scope: FigureScope, first: Integers, lengths: Integers) -> Iterator[Figure]:
    """Yield the quartiles, the mean and the tenths of positions of spans in their runs.

    A position is the index of a span divided by the number of spans: at least 0 and below 1.

    Args:
        scope: The scope of the figures.
        first: The index of a span in each run.
        lengths: The number of spans of each run; unknown if below 1.
    """
    has_length = lengths > 0
    # A run may have grown after its spans were counted.
    positions = np.minimum(first[has_length] / lengths[has_length], np.nextafter(1.0, 0.0))
    yield from spread_figures(scope, "position", positions)
    counts_by_tenth = np.bincount((positions * BINS).astype(np.int64), minlength=BINS).tolist()
    for tenth, count in enumerate(counts_by_tenth):
        if count:
            sources = scope.sources and scope.sources.narrowed("tenth", str(tenth))
            yield replace(scope, sources=sources).number(
                "position_tenth", count, condition=str(tenth), n=len(positions)
            )


def spread_figures(
    scope: FigureScope, statistic: str, values: Floats | Integers, condition: str = ""
) -> Iterator[Figure]:
    """Yield the median, with both quartiles as its interval, and the mean.

    Args:
        scope: The scope of the figures.
        statistic: The name of the median; the mean has the same name with ``_mean``.
        values: One value for each trace.
        condition: The condition of the figures.
    """
    value_count = len(values)
    if not value_count:
        yield scope.number(statistic, None, condition=condition, n=0, reason="no_places")
        return
    low, median, high = (float(end) for end in np.quantile(values, [0.25, 0.5, 0.75]))
    yield scope.figure(
        statistic, Figure(value=median, interval=(low, high), n=value_count), condition=condition
    )
    yield scope.number(
        f"{statistic}_mean", float(values.mean()), condition=condition, n=value_count
    )


def _order_figures(
    trace_onsets: Onsets, codes: list[str], side: str, group: GroupScope
) -> Iterator[Figure]:
    """Yield for each pair of modes the numbers of traces by the mode that begins first.

    The condition is ``before`` if the first mode of the pair begins first, else ``after`` or
    ``together``.
    """
    no_span = np.iinfo(np.int64).max
    traces, row_of_onset = np.unique(trace_onsets.trace, return_inverse=True)
    # Traces × modes.
    first_spans = np.full((len(traces), len(codes)), no_span)
    first_spans[row_of_onset, trace_onsets.mode] = trace_onsets.first
    for columns in combinations(range(len(codes)), 2):
        has_both = (first_spans[:, columns] != no_span).all(axis=1)
        first, second = first_spans[has_both][:, columns].T
        n = len(first)
        counts = {
            "before": int((first < second).sum()),
            "after": int((first > second).sum()),
            "together": int((first == second).sum()),
        }
        pair = [codes[column] for column in columns]
        scope = group.scope(f"order_{side}", PAIR.join(pair), *pair, placed="yes")
        for condition, count in counts.items() if n else ():
            yield scope.number("sets_on", count, condition=condition, n=n)


def _transition_counts(
    trace_onsets: Onsets, codes: list[str]
) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield pairs of modes that begin at successive steps, with their numbers of traces.

    Steps are the different spans at which modes begin.
    """
    counts: Counter[tuple[int, int]] = Counter()
    # Rows are sorted by trace and step, and a trace has each mode once. So the distance between the
    # rows of such a pair is below the number of modes.
    for distance in range(1, len(codes)):
        earlier_rows = slice(None, -distance)
        later_rows = slice(distance, None)
        is_next = (trace_onsets.trace[earlier_rows] == trace_onsets.trace[later_rows]) & (
            trace_onsets.step[earlier_rows] + 1 == trace_onsets.step[later_rows]
        )
        pair_numbers = (
            trace_onsets.mode[earlier_rows][is_next] * len(codes)
            + trace_onsets.mode[later_rows][is_next]
        )
        different_numbers, trace_counts = np.unique(pair_numbers, return_counts=True)
        for number, count in zip(different_numbers.tolist(), trace_counts.tolist(), strict=True):
            counts[divmod(number, len(codes))] += count
    for (earlier_mode, later_mode), count in sorted(
        counts.items(), key=lambda item: (-item[1], item[0])
    ):
        yield (codes[earlier_mode], codes[later_mode]), count


Chain = tuple[tuple[str, ...], ...]
"""The modes of a trace in the order of their onsets; modes with the same onset are one step."""


def chain_text(chain: Chain) -> str:
    """Return a chain as the key of its figures, such as ``1.1|1.3 2.6``."""
    return " ".join(PAIR.join(step) for step in chain)


def chain_of(text: str) -> Chain:
    """Return the chain of a key from ``chain_text``."""
    return tuple(tuple(step.split(PAIR)) for step in text.split(" "))


def chains(trace_onsets: Onsets, codes: list[str]) -> dict[int, Chain]:
    """Return the chain of each trace by its index: its modes in the order of their onsets.

    Args:
        trace_onsets: The onsets, sorted by trace and step.
        codes: The codes of the modes.
    """
    steps_by_trace: dict[int, list[list[str]]] = {}
    columns = zip(
        trace_onsets.trace.tolist(),
        trace_onsets.mode.tolist(),
        trace_onsets.step.tolist(),
        strict=True,
    )
    for trace, mode, step in columns:
        steps = steps_by_trace.setdefault(trace, [])
        if step == len(steps):
            steps.append([])
        steps[step].append(codes[mode])
    return {trace: tuple(tuple(step) for step in steps) for trace, steps in steps_by_trace.items()}


def _spans_after_fatal(
    scope: FigureScope, definition: str, failures: FirstFatal, lengths: Integers, is_counted: Flags
) -> Iterator[Figure]:
    """Yield the spread of the number of spans after the first fatal failure, and of their share.

    ``spans_after`` counts the spans after the failure's last span, ``spans_after_onset`` those
    after its first span. ``definition`` names the rule for fatal labels.
    """
    has_failure = is_counted & (failures.first >= 0) & (lengths > 0)
    # At least 0, because a run may have grown after its spans were counted.
    after_last = np.maximum(lengths[has_failure] - 1 - failures.last[has_failure], 0)
    after_first = np.maximum(lengths[has_failure] - 1 - failures.first[has_failure], 0)
    yield from spread_figures(scope, "spans_after", after_last, definition)
    yield from spread_figures(scope, "spans_after_onset", after_first, definition)
    yield from spread_figures(scope, "share_after", after_last / lengths[has_failure], definition)

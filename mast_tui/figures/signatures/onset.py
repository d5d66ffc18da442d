"""Figures on places: the position of the first failure, the order of modes, the spans after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.intervals import rate
from mast_tui.figures.record import PAIR, Figure, FigureScope
from mast_tui.figures.signatures.model import Flags, GroupScope, SignatureInput, Whole


@dataclass(frozen=True, slots=True, eq=False)
class Onsets:
    """The first span of each mode in each trace, sorted by trace, span and mode.

    ``step`` numbers the different spans within a trace from 0: modes with the same first span share
    a step.
    """

    trace: Whole
    mode: Whole
    first: Whole
    step: Whole

    def in_traces(self, traces: Flags) -> Onsets:
        """Return the onsets in the flagged traces."""
        rows = traces[self.trace]
        return Onsets(self.trace[rows], self.mode[rows], self.first[rows], self.step[rows])


@dataclass(frozen=True, slots=True, eq=False)
class FirstFatal:
    """The first and last span of the first fatal failure of each trace, -1 if it has none."""

    first: Whole
    last: Whole


def onsets(inputs: SignatureInput) -> Onsets:
    """Return the onsets of every trace with places."""
    places = inputs.places
    order = np.lexsort((places.first, places.mode, places.trace))
    # The first span of each mode in each trace.
    order = order[_changes(places.trace[order]) | _changes(places.mode[order])]
    order = order[np.lexsort((places.mode[order], places.first[order], places.trace[order]))]
    trace = places.trace[order]
    first = places.first[order]
    return Onsets(trace, places.mode[order], first, _steps(trace, first))


def _changes(column: Whole) -> Flags:
    """Return a flag for each row that differs from the previous one; the first row does."""
    changes = np.ones(len(column), dtype=bool)
    changes[1:] = column[1:] != column[:-1]
    return changes


def _steps(trace: Whole, first: Whole) -> Whole:
    opens = _changes(trace)
    counted = np.cumsum(opens | _changes(first))
    begins = np.maximum.accumulate(np.where(opens, counted, 0))
    return np.asarray(counted - begins, dtype=np.int64)


def first_fatal(inputs: SignatureInput, fatal: Flags) -> FirstFatal:
    """Return the first fatal failure of each trace.

    If several begin at the same span, it is the one that ends first.

    Args:
        inputs: The input of the report.
        fatal: A flag for each label with a place that is fatal.
    """
    places = inputs.places
    labels = np.flatnonzero(fatal)
    order = np.lexsort((places.last[labels], places.first[labels], places.trace[labels]))
    labels = labels[order]
    trace = places.trace[labels]
    first = places.first[labels]
    last = places.last[labels]
    opens = _changes(trace)
    begin = np.full(len(inputs.traces), -1, dtype=np.int64)
    end = begin.copy()
    begin[trace[opens]] = first[opens]
    end[trace[opens]] = last[opens]
    return FirstFatal(begin, end)


BINS: Final = 10
MOST_CHAINS: Final = 20
"""The number of chains that are listed, the most frequent ones."""


def places_figures(
    inputs: SignatureInput,
    all_onsets: Onsets,
    chosen: Flags,
    showing: int,
    side: str,
    group: GroupScope,
    fatal: Mapping[str, FirstFatal],
) -> Iterator[Figure]:
    """Yield the figures on places of the chosen traces.

    Traces whose spans were not counted (``uncounted``) have no position. If several modes share the
    first place of a trace, each of them is first (``tied`` counts these traces).

    Args:
        inputs: The input of the report.
        all_onsets: The onsets of all traces.
        chosen: A flag for each trace that counts.
        showing: The number of chosen traces with any mode.
        side: ``failed`` or ``all``: the kind of these traces.
        group: The group of the traces.
        fatal: The first fatal failures by definition of fatal labels.
    """
    codes = [mode.code for mode in inputs.modes]
    in_traces = all_onsets.in_traces(chosen)
    traces = len(np.unique(in_traces.trace))
    opening = in_traces.step == 0
    starts, opening_rows, ties = np.unique(
        in_traces.trace[opening], return_index=True, return_counts=True
    )
    lengths = inputs.spans[starts]
    firsts = np.bincount(in_traces.mode[opening], minlength=len(codes)).tolist()
    scope = group.scope(f"places_{side}")
    yield scope.number("traces", traces)
    yield scope.number("showing", showing)
    yield scope.number("uncounted", int((lengths < 1).sum()))
    yield scope.number("tied", int((ties > 1).sum()))
    yield from position(scope, in_traces.first[opening][opening_rows], lengths)
    for cause, failures in fatal.items():
        yield from _after(scope, cause, failures, inputs.spans, chosen)
    for i, code in enumerate(codes):
        if firsts[i]:
            yield rate(
                group.scope(f"first_mode_{side}", code, code, first=code), "", firsts[i], traces
            )
    for i, code in enumerate(codes):
        rows = in_traces.mode == i
        if rows.any():
            onset = group.scope(f"onset_{side}", code, code, placed="yes")
            yield from position(onset, in_traces.first[rows], inputs.spans[in_traces.trace[rows]])
    for order in _order(in_traces, codes):
        scope = group.scope(f"order_{side}", PAIR.join(order.codes), *order.codes, placed="yes")
        counts = {
            "before": order.earlier,
            "after": order.later,
            "together": order.n - order.earlier - order.later,
        }
        for condition, count in counts.items():
            yield scope.number("sets_on", count, condition=condition, n=order.n)
    for pair, count in _transitions(in_traces, codes):
        step = PAIR.join(pair)
        yield group.scope(f"transitions_{side}", step, step=step).number("transitions", count)
    for chain, count in _chains(in_traces, codes):
        text = chain_text(chain)
        modes = [code for step in chain for code in step]
        yield group.scope(f"chains_{side}", text, *modes, chain=text).number("chains", count)


def position(scope: FigureScope, first: Whole, lengths: Whole) -> Iterator[Figure]:
    """Yield the positions of spans in their runs; runs whose spans were not counted are left out.

    A position is the index of a span by the number of spans, from 0 up to below 1.

    Args:
        scope: The scope of the figures.
        first: The indices of the spans.
        lengths: The numbers of spans of their runs.
    """
    counted = lengths > 0
    # A label may name a span that came after the spans were counted.
    shares = np.minimum(first[counted] / lengths[counted], np.nextafter(1.0, 0.0))
    yield from spread(scope, "position", shares)
    bins = np.bincount((shares * BINS).astype(np.int64), minlength=BINS).tolist()
    for tenth, count in enumerate(bins):
        if count:
            number = scope.number("position_tenth", count, condition=str(tenth), n=len(shares))
            yield number.narrowed("tenth", str(tenth))


def spread(
    scope: FigureScope, statistic: str, values: NDArray[np.float64] | Whole, condition: str = ""
) -> Iterator[Figure]:
    """Yield the median with its quartiles (linear between neighbours), and the mean.

    Args:
        scope: What the figures are about.
        statistic: The name of the median.
        values: One value for each trace.
        condition: What narrows the statistic.
    """
    n = len(values)
    if not n:
        yield scope.figure(statistic, None, condition=condition, n=0, reason="no_places")
        return
    low, middle, high = (float(x) for x in np.quantile(values, [0.25, 0.5, 0.75]))
    yield scope.figure(statistic, middle, condition=condition, interval=(low, high), n=n)
    yield scope.number(f"{statistic}_mean", float(values.mean()), condition=condition, n=n)


class _PairOrder(NamedTuple):
    """The numbers of traces with both modes of a pair, and with either one first."""

    codes: tuple[str, str]
    earlier: int
    later: int
    n: int


def _order(in_traces: Onsets, codes: list[str]) -> Iterator[_PairOrder]:
    """Yield the order of each pair of modes that occur together."""
    never = np.iinfo(np.int64).max
    traces, row = np.unique(in_traces.trace, return_inverse=True)
    first = np.full((len(traces), len(codes)), never)
    first[row, in_traces.mode] = in_traces.first
    for i, code in enumerate(codes):
        for j in range(i + 1, len(codes)):
            both = (first[:, i] != never) & (first[:, j] != never)
            n = int(both.sum())
            if n:
                earlier = int((first[both, i] < first[both, j]).sum())
                later = int((first[both, i] > first[both, j]).sum())
                yield _PairOrder((code, codes[j]), earlier, later, n)


def _transitions(in_traces: Onsets, codes: list[str]) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the steps from every mode of one onset to every mode of the next, with their traces."""
    counts: Counter[tuple[int, int]] = Counter()
    # Steps are short: neighbours further apart in a row than there are modes are never of one pair.
    for apart in range(1, len(codes)):
        earlier = slice(None, -apart)
        later = slice(apart, None)
        follows = (in_traces.trace[earlier] == in_traces.trace[later]) & (
            in_traces.step[earlier] + 1 == in_traces.step[later]
        )
        pairs = in_traces.mode[earlier][follows] * len(codes) + in_traces.mode[later][follows]
        numbers, times = np.unique(pairs, return_counts=True)
        for number, count in zip(numbers.tolist(), times.tolist(), strict=True):
            counts[divmod(number, len(codes))] += count
    for (a, b), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield (codes[a], codes[b]), count


Chain = tuple[tuple[str, ...], ...]
"""The modes of a trace in the order of their onsets; modes of one span are together."""


def chain_text(chain: Chain) -> str:
    """Return a chain as the key of its figures: ``1.1|1.3 2.6``; no code has such separators."""
    return " ".join(PAIR.join(step) for step in chain)


def chain_of(text: str) -> Chain:
    """Return the chain of a key that ``chain_text`` made."""
    return tuple(tuple(step.split(PAIR)) for step in text.split(" "))


def _chains(in_traces: Onsets, codes: list[str]) -> list[tuple[Chain, int]]:
    counts = Counter(chains(in_traces, codes).values())
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_CHAINS]


def chains(in_traces: Onsets, codes: list[str]) -> dict[int, Chain]:
    """Return the chain of modes of each trace, by the row of the trace.

    Args:
        in_traces: The onsets.
        codes: The codes of the modes.
    """
    steps_by_trace: dict[int, list[list[str]]] = {}
    columns = zip(
        in_traces.trace.tolist(), in_traces.mode.tolist(), in_traces.step.tolist(), strict=True
    )
    for trace, mode, step in columns:
        steps = steps_by_trace.setdefault(trace, [])
        if step == len(steps):
            steps.append([])
        steps[step].append(codes[mode])
    return {trace: tuple(tuple(step) for step in steps) for trace, steps in steps_by_trace.items()}


def _after(
    scope: FigureScope, cause: str, failures: FirstFatal, spans: Whole, chosen: Flags
) -> Iterator[Figure]:
    """Yield the number of spans after the first fatal failure, from its last and its first span."""
    rows = chosen & (failures.first >= 0) & (spans > 0)
    ends = np.maximum(spans[rows] - 1 - failures.last[rows], 0)
    begins = np.maximum(spans[rows] - 1 - failures.first[rows], 0)
    yield from spread(scope, "spans_after", ends, cause)
    yield from spread(scope, "spans_after_onset", begins, cause)
    yield from spread(scope, "share_after", ends / spans[rows], cause)

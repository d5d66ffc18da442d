"""What places tell: where a run first fails, what comes first, what follows, and for how long."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.intervals import RateJson, rate
from mast_tui.figures.signatures.model import Flags, SignatureInput, Whole


@dataclass(frozen=True, slots=True, eq=False)
class Onsets:
    """The first place of each mode in each trace, by trace, place and mode.

    ``step`` numbers the different places within a trace from 0: modes that set on at the same span
    share a step.
    """

    trace: Whole
    mode: Whole
    first: Whole
    step: Whole

    def of(self, traces: Flags) -> Onsets:
        """Those of some of the traces, given as a flag per trace."""
        kept = traces[self.trace]
        return Onsets(self.trace[kept], self.mode[kept], self.first[kept], self.step[kept])


@dataclass(frozen=True, slots=True, eq=False)
class FirstFatal:
    """Per trace the first and last span of its first fatal failure, -1 where there is none."""

    first: Whole
    last: Whole


def onsets(given: SignatureInput) -> Onsets:
    """The onsets of every trace with places."""
    places = given.places
    order = np.lexsort((places.first, places.mode, places.trace))
    trace, mode, first = places.trace[order], places.mode[order], places.first[order]
    opens = _changes(trace) | _changes(mode)
    trace, mode, first = trace[opens], mode[opens], first[opens]
    order = np.lexsort((mode, first, trace))
    trace, mode, first = trace[order], mode[order], first[order]
    return Onsets(trace, mode, first, _steps(trace, first))


def _changes(column: Whole) -> Flags:
    """Whether each row differs from the one before; the first one does."""
    found = np.ones(len(column), dtype=bool)
    found[1:] = column[1:] != column[:-1]
    return found


def _steps(trace: Whole, first: Whole) -> Whole:
    opens = _changes(trace)
    counted = np.cumsum(opens | _changes(first))
    begins = np.maximum.accumulate(np.where(opens, counted, 0))
    return np.asarray(counted - begins, dtype=np.int64)


def first_fatal(given: SignatureInput, fatal: Flags) -> FirstFatal:
    """Per trace its earliest failure among the places that are flagged as fatal.

    Of several that begin at one span it is the one that ends first.
    """
    places = given.places
    trace, first, last = places.trace[fatal], places.first[fatal], places.last[fatal]
    order = np.lexsort((last, first, trace))
    trace, first, last = trace[order], first[order], last[order]
    opens = _changes(trace)
    begin = np.full(len(given.traces), -1, dtype=np.int64)
    end = begin.copy()
    begin[trace[opens]] = first[opens]
    end[trace[opens]] = last[opens]
    return FirstFatal(begin, end)


BINS: Final = 10
MOST_CHAINS: Final = 20
"""Of whole chains the most frequent are listed."""


class SpreadJson(TypedDict):
    """How figures of ``n`` traces lie; all null where there is none."""

    n: int
    median: float | None
    quartiles: list[float] | None
    mean: float | None
    undefined: NotRequired[str]


class PositionJson(SpreadJson):
    """Positions in the run: the index of a span by the number of spans, 0 up to below 1.

    ``bins`` counts the traces per tenth of the run.
    """

    bins: list[int]


class OrderJson(TypedDict):
    """In how many of ``n`` traces with both modes which of them set on first, or both at once."""

    modes: list[str]
    n: int
    before: int
    after: int
    together: int


class TransitionJson(TypedDict):
    """In how many traces the onset of one mode was the next after that of another."""

    modes: list[str]
    count: int


class ChainJson(TypedDict):
    """Modes by their onset, those of one span together, and how many traces show just that."""

    steps: list[list[str]]
    count: int


class AfterFatalJson(TypedDict):
    """How many spans followed the first fatal failure.

    ``by`` says what made it fatal: what was said of the ``labels``, or the ``class`` of the mode in
    the group. ``spans_after`` counts from the failure's last span, ``spans_after_onset`` from its
    first; ``share_after`` is the former by the spans of the run.
    """

    by: str
    spans_after: SpreadJson
    spans_after_onset: SpreadJson
    share_after: SpreadJson


class PlacesJson(TypedDict):
    """What the places tell of ``traces`` with any, of ``of`` traces that show a failure.

    ``uncounted`` have places but nobody counted their spans, so no position. Where several modes
    set on at the first span each of them is first (``tied`` counts those traces).
    """

    traces: int
    of: int
    uncounted: int
    first_failure: PositionJson
    first_mode: dict[str, RateJson]
    tied: int
    onset: dict[str, PositionJson]
    order: list[OrderJson]
    transitions: list[TransitionJson]
    chains: list[ChainJson]
    after_fatal: list[AfterFatalJson]


def places_table(
    given: SignatureInput,
    found: Onsets,
    chosen: Flags,
    showing: int,
    fatal: dict[str, FirstFatal],
) -> PlacesJson:
    """Make the table of what places tell of some traces.

    Args:
        given: The input of the report.
        found: Where each mode sets on, of all traces.
        chosen: Which traces count, a flag for each.
        showing: How many of them have any mode.
        fatal: The first fatal failure of every trace, by what made it fatal.
    """
    codes = [mode.code for mode in given.modes]
    here = found.of(chosen)
    traces = np.unique(here.trace)
    opening = here.step == 0
    first_of = here.first[opening]
    starts, place, ties = np.unique(here.trace[opening], return_index=True, return_counts=True)
    lengths = given.spans[starts]
    n = len(traces)
    firsts = np.bincount(here.mode[opening], minlength=len(codes)).tolist()
    return {
        "traces": n,
        "of": showing,
        "uncounted": int((lengths < 1).sum()),
        "first_failure": position(first_of[place], lengths),
        "first_mode": {code: rate(firsts[i], n) for i, code in enumerate(codes) if firsts[i]},
        "tied": int((ties > 1).sum()),
        "onset": _onset(given, here, codes),
        "order": _order(here, codes),
        "transitions": _transitions(here, codes),
        "chains": _chains(here, codes),
        "after_fatal": [_after(by, one, given.spans, chosen) for by, one in fatal.items()],
    }


def position(first: Whole, lengths: Whole) -> PositionJson:
    """Where spans stand in runs of so many spans; runs that nobody counted are left out."""
    counted = lengths > 0
    # A label may name a span that came after the spans were counted.
    shares = np.minimum(first[counted] / lengths[counted], np.nextafter(1.0, 0.0))
    bins = np.bincount((shares * BINS).astype(np.int64), minlength=BINS)
    return {**spread(shares), "bins": bins.tolist()}


def spread(values: NDArray[np.float64] | Whole) -> SpreadJson:
    """Median, quartiles (linear between neighbours) and mean."""
    if not len(values):
        nothing = "no_places"
        return {"n": 0, "median": None, "quartiles": None, "mean": None, "undefined": nothing}
    low, middle, high = (float(x) for x in np.quantile(values, [0.25, 0.5, 0.75]))
    return {
        "n": len(values),
        "median": middle,
        "quartiles": [low, high],
        "mean": float(values.mean()),
    }


def _onset(given: SignatureInput, here: Onsets, codes: list[str]) -> dict[str, PositionJson]:
    """Where each mode sets on."""
    found = {}
    for i, code in enumerate(codes):
        rows = here.mode == i
        if rows.any():
            found[code] = position(here.first[rows], given.spans[here.trace[rows]])
    return found


def _order(here: Onsets, codes: list[str]) -> list[OrderJson]:
    never = np.iinfo(np.int64).max
    traces, row = np.unique(here.trace, return_inverse=True)
    first = np.full((len(traces), len(codes)), never)
    first[row, here.mode] = here.first
    rows: list[OrderJson] = []
    for i, code in enumerate(codes):
        for j in range(i + 1, len(codes)):
            both = (first[:, i] != never) & (first[:, j] != never)
            n = int(both.sum())
            if n:
                before = int((first[both, i] < first[both, j]).sum())
                after = int((first[both, i] > first[both, j]).sum())
                rows.append(
                    {
                        "modes": [code, codes[j]],
                        "n": n,
                        "before": before,
                        "after": after,
                        "together": n - before - after,
                    }
                )
    return rows


def _transitions(here: Onsets, codes: list[str]) -> list[TransitionJson]:
    """From every mode of a step to every mode of the next one."""
    counts: Counter[tuple[int, int]] = Counter()
    # Steps are short: neighbours further apart in a row than there are modes are never of one pair.
    for apart in range(1, len(codes)):
        earlier, later = slice(None, -apart), slice(apart, None)
        follows = (here.trace[earlier] == here.trace[later]) & (
            here.step[earlier] + 1 == here.step[later]
        )
        pairs = here.mode[earlier][follows] * len(codes) + here.mode[later][follows]
        numbers, times = np.unique(pairs, return_counts=True)
        for number, count in zip(numbers.tolist(), times.tolist(), strict=True):
            counts[divmod(number, len(codes))] += count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"modes": [codes[a], codes[b]], "count": count} for (a, b), count in ordered]


def _chains(here: Onsets, codes: list[str]) -> list[ChainJson]:
    counts = Counter(chains(here, codes).values())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_CHAINS]
    return [{"steps": [list(step) for step in steps], "count": n} for steps, n in ordered]


Chain = tuple[tuple[str, ...], ...]


def chains(here: Onsets, codes: list[str]) -> dict[int, Chain]:
    """The modes of each trace by their onset, those of one span together; by the trace's row."""
    found: dict[int, list[list[str]]] = {}
    columns = zip(here.trace.tolist(), here.mode.tolist(), here.step.tolist(), strict=True)
    for trace, mode, step in columns:
        steps = found.setdefault(trace, [])
        if step == len(steps):
            steps.append([])
        steps[step].append(codes[mode])
    return {trace: tuple(tuple(step) for step in steps) for trace, steps in found.items()}


def _after(by: str, found: FirstFatal, spans: Whole, chosen: Flags) -> AfterFatalJson:
    rows = chosen & (found.first >= 0) & (spans > 0)
    ends = np.maximum(spans[rows] - 1 - found.last[rows], 0)
    begins = np.maximum(spans[rows] - 1 - found.first[rows], 0)
    return {
        "by": by,
        "spans_after": spread(ends),
        "spans_after_onset": spread(begins),
        "share_after": spread(ends / spans[rows]),
    }

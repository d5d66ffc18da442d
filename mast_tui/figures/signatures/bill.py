"""The tokens and minutes of failed runs before and after their decisive failure.

A run is lost with its first fatal failure. What it used from the first span of that failure on is
put to the failure's mode; where several fatal failures set on at that span, to their modes in equal
parts. So for each run, and for all of them, ``without_fatal`` + ``before_first_fatal`` + ``after``
is the total, and the modes add up to ``after``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.record import PAIR, Figure
from mast_tui.figures.signatures.model import Flags, GroupScope, SignatureInput
from mast_tui.figures.signatures.onset import first_fatal
from mast_tui.traces.model import Span, Trace


@dataclass(frozen=True, slots=True, eq=False)
class Spent:
    """The tokens and minutes of each span of a run, in reading order.

    ``tokens`` (spans × 2) are those taken in and given out, ``minutes`` how long it was until the
    next span; None where the run's source tells nothing of it.
    """

    tokens: NDArray[np.int64] | None
    minutes: NDArray[np.float64] | None


SpentOf = Callable[[str], Spent | None]
"""What a trace used up, by its id; None where the trace is not at hand."""


AMOUNTS: Final = ("tokens", "input_tokens", "output_tokens", "minutes")
"""What runs use up; tokens are those taken in and given out together."""


def costs(
    inputs: SignatureInput,
    spent_of: SpentOf,
    chosen: Flags,
    fatal: Mapping[str, Flags],
    group: GroupScope,
) -> Iterator[Figure]:
    """Yield what some traces used up, once for each entry of ``fatal``.

    ``at_hand`` are the traces whose files could be read; an amount that no trace tells of has no
    figures.

    Args:
        inputs: The input of the report.
        spent_of: What each trace used up; asked once for each.
        chosen: Which traces count, a flag for each.
        fatal: Which labels with places are fatal, a flag for each, by what makes them so.
        group: The group of the traces.
    """
    rows = np.flatnonzero(chosen).tolist()
    used = {row: spent for row in rows if (spent := spent_of(inputs.traces[row])) is not None}
    for by, flags in fatal.items():
        yield from _costs(inputs, flags, rows, used, group, by)


def _costs(
    inputs: SignatureInput,
    fatal: Flags,
    rows: Sequence[int],
    used: Mapping[int, Spent],
    group: GroupScope,
    by: str,
) -> Iterator[Figure]:
    firsts = first_fatal(inputs, fatal).first
    places = inputs.places
    opening = fatal & (places.first == firsts[places.trace])
    blamed: dict[int, set[int]] = {}
    columns = places.trace[opening].tolist(), places.mode[opening].tolist()
    for row, mode in zip(*columns, strict=True):
        blamed.setdefault(row, set()).add(mode)
    runs: dict[str, list[_Run]] = {name: [] for name in AMOUNTS}
    for row, spent in used.items():
        at = int(firsts[row])
        modes = sorted(blamed.get(row, ()))
        if spent.tokens is not None:
            taken_in, given_out = spent.tokens.T
            amounts = (taken_in + given_out, taken_in, given_out)
            for name, amount in zip(AMOUNTS, amounts, strict=False):
                runs[name].append((amount, at, modes))
        if spent.minutes is not None:
            runs["minutes"].append((spent.minutes, at, modes))
    scope = group.scope("bill")
    yield scope.number("traces", len(rows), condition=by)
    yield scope.number("with_fatal", sum(row in blamed for row in rows), condition=by)
    yield scope.number("at_hand", len(used), condition=by)
    codes = [mode.code for mode in inputs.modes]
    for name in AMOUNTS:
        yield from _sums(runs[name], codes, group, f"{by}{PAIR}{name}")


_Run = tuple[NDArray[np.int64] | NDArray[np.float64], int, list[int]]
"""What the spans of a run used, the first span of its first fatal failure, and its modes there."""


def _sums(
    runs: Sequence[_Run], codes: Sequence[str], group: GroupScope, condition: str
) -> Iterator[Figure]:
    """Yield the sums of one amount over runs; nothing where no run tells of it."""
    if not runs:
        return
    total: float = 0
    without: float = 0
    before: float = 0
    by_mode: list[float] = [0] * len(codes)
    for amounts, at, modes in runs:
        used = amounts.sum().item()
        total += used
        if not modes:
            without += used
            continue
        until = amounts[:at].sum().item()
        before += until
        for mode in modes:
            by_mode[mode] += (used - until) / len(modes)
    after = total - without - before
    scope = group.scope("bill")
    sums = {"total": total, "without_fatal": without, "before_first_fatal": before, "after": after}
    for statistic, value in sums.items():
        yield scope.number(f"used_{statistic}", value, condition=condition, n=len(runs))
    share = after / total if total else None
    yield scope.number("used_share_after", share, condition=condition, n=len(runs))
    for code, value in zip(codes, by_mode, strict=True):
        if value:
            of_mode = group.scope("bill", code, code, outcome="failed")
            yield of_mode.number("used_after", value, condition=condition)


def spent_from(trace_of: Callable[[str], Trace | None]) -> SpentOf:
    """Tell what traces used up; ``trace_of`` gives one, wholly read, where it is at hand."""

    def spent_of(trace_id: str) -> Spent | None:
        trace = trace_of(trace_id)
        return None if trace is None else spent_in(trace)

    return spent_of


def spent_in(trace: Trace) -> Spent:
    """Tell what each span of a trace used up, as far as the trace has been read.

    Minutes are from one span's start to the next one's, from the run's first moment to its last;
    a span without a time takes none, and neither does one that began before the span above it.
    """
    spans = [trace.span(index) for index in range(len(trace))]
    return Spent(_tokens(spans), _minutes(spans))


def _tokens(spans: list[Span]) -> NDArray[np.int64] | None:
    if all(span.tokens is None for span in spans):
        return None
    rows = [
        (0, 0) if span.tokens is None else (span.tokens.input or 0, span.tokens.output or 0)
        for span in spans
    ]
    return np.array(rows, dtype=np.int64)


def _minutes(spans: list[Span]) -> NDArray[np.float64] | None:
    times = [time for span in spans for time in (span.start, span.end) if time is not None]
    if not times:
        return None
    begin, end = min(times), max(times)
    moments = [begin]
    for span in spans[1:]:
        moment = span.end if span.start is None else span.start
        moments.append(moments[-1] if moment is None else max(moments[-1], moment))
    return np.diff([*moments, end]) / 60

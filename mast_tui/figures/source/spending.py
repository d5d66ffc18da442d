"""What the spans of a trace used up, as its file tells."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.signatures.bill import Spent, SpentOf
from mast_tui.traces.model import Span, Trace


def spent_from(trace_of: Callable[[str], Trace | None]) -> SpentOf:
    """Tell what traces used up.

    Args:
        trace_of: Gives a trace, wholly read, by its id; None where it is not at hand.
    """

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

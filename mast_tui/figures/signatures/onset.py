"""Where each mode first stands in each trace: the columns behind onset, order and chains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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

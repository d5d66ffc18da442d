"""Which spans of a trace were read."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Final

from mast_tui.traces.model import Trace
from mast_tui.workspace.events.types import SpansRead

SHORT_RUN: Final = 16
"""Spans up to which a run is written key by key."""


class ReadSpans(Set[str]):
    """The keys of the spans that were read: single ones as such, long runs by their two ends.

    People read single spans by the thousand, but a fold of equal steps may stand for a million,
    so what is held grows with the reading and not with the trace. A key that the trace does not
    have (yet) is held all the same. ``len`` and iteration go through the runs.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._keys: set[str] = set()
        self._runs: dict[tuple[str, str], range | None] = {}

    def take(self, read: SpansRead) -> None:
        """Take in what was read."""
        self._keys.update(read.keys)
        for run in read.runs:
            self._runs.setdefault(run, None)

    def __contains__(self, key: object) -> bool:
        if key in self._keys:
            return True
        if not self._runs or not isinstance(key, str):
            return False
        index = self._trace.index_of(key)
        return index is not None and any(index in run for run in self._placed())

    def has_run(self, first: int, end: int) -> bool:
        """Whether the spans from ``first`` up to ``end`` (exclusive) lie in a run that was read."""
        return any(run.start <= first and end <= run.stop for run in self._placed())

    def __iter__(self) -> Iterator[str]:
        yield from self._keys
        for stretch in _merged(self._placed()):
            for index in stretch:
                key = self._trace.span(index).key
                if key not in self._keys:
                    yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def stretches(self) -> list[range]:
        """Where in the trace as it is loaded the spans stand that were read, in order.

        Costs as much as was read, however long the trace is.
        """
        places = (self._trace.index_of(key) for key in self._keys)
        single = [range(index, index + 1) for index in places if index is not None]
        return _merged([*single, *self._placed()])

    def unread(self) -> tuple[range, ...]:
        """The stretches between them: the spans of the trace as it is loaded that were not read."""
        found, end = [], 0
        for stretch in self.stretches():
            if stretch.start > end:
                found.append(range(end, stretch.start))
            end = stretch.stop
        if end < len(self._trace):
            found.append(range(end, len(self._trace)))
        return tuple(found)

    def _placed(self) -> list[range]:
        """The runs of which both ends are known by now."""
        for (first, last), known in self._runs.items():
            if known is None:
                one, other = self._trace.index_of(first), self._trace.index_of(last)
                if one is not None and other is not None:
                    self._runs[first, last] = range(min(one, other), max(one, other) + 1)
        return [run for run in self._runs.values() if run is not None]


def _merged(stretches: list[range]) -> list[range]:
    """The same indices in order, each once, in as few stretches as can be."""
    found: list[range] = []
    for stretch in sorted(stretches, key=lambda one: one.start):
        if found and stretch.start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, stretch.stop))
        else:
            found.append(stretch)
    return found

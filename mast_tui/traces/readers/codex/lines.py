"""Spans of which two may lie on one line: a call and its result that one record tells of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import eq
from typing import ClassVar

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.model import Shape, SpanKind


class RewordedLines(SpanTable):
    """A table in which some spans' texts are the reader's own words rather than their lines'.

    Those are logs, and calls and results that share a line.
    """

    reworded: ClassVar[frozenset[SpanKind]] = frozenset({SpanKind.LOG})

    def rows_with(self, prefilter: Prefilter, first: int, end: int) -> Sequence[int]:
        """Also those that the reader tells in its own words."""
        begin = max(first - 1, 0)
        lines = self.lines[0][begin : end + 1]
        calls = list(compress(range(begin, end), map(eq, lines, lines[1:])))
        shared = {one for call in calls for one in (call, call + 1) if first <= one < end}
        return sorted({*super().rows_with(prefilter, first, end), *shared})

    def _tells(self, shape: Shape, prefilter: Prefilter) -> bool:
        return shape[0] in self.reworded or super()._tells(shape, prefilter)

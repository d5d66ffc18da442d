"""Spans of which two lie on one line: a call and its result that one record tells of."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.blocks import Block
from mast_tui.traces.index.span_table import BlockStart, SpanTable
from mast_tui.traces.model import Shape, SpanKind


class SharedLines(SpanTable):
    """A table that also knows which spans share a line; others have it to themselves."""

    def __init__(self) -> None:
        super().__init__()
        self._sharing = array("I")
        self._begin = array("Q")
        self._length = array("Q")
        self._whole = array("Q")

    def _now(self) -> BlockStart:
        return super()._now()._replace(sharing=len(self._sharing))

    def block(self) -> Block:
        """All that has come since the block before, for ``append_block`` of another table."""
        begin = 0 if self._block_start is None else self._block_start.sharing
        shared = {
            "sharing": self._sharing[begin:],
            "share_begin": self._begin[begin:],
            "share_length": self._length[begin:],
            "share_whole": self._whole[begin:],
        }
        facts, columns = super().block()
        return Block(facts, {**columns, **shared})

    def append_block(self, block: Block) -> None:
        """Append what another table, which was like this one, has told as a block."""
        columns = block.columns
        self._begin.extend(columns["share_begin"])
        self._length.extend(columns["share_length"])
        self._whole.extend(columns["share_whole"])
        self._sharing.extend(columns["sharing"])
        super().append_block(block)

    def share(self, call: int | None, result: int, call_chars: int, result_chars: int) -> None:
        """The text of the line is that of a call with that of its result behind it.

        ``call`` is None where the call itself is shown by another line. Both are the last that
        were added.
        """
        whole = call_chars + result_chars
        if call is not None:
            self._cut(call, 0, call_chars, whole)
        self._cut(result, call_chars, result_chars, whole)

    def rows_with(self, prefilter: Prefilter, first: int, end: int) -> Sequence[int]:
        """Also those that the reader tells in its own words: logs, and reports of calls."""
        low, high = (bisect_left(self._sharing, index) for index in (first, end))
        return sorted({*super().rows_with(prefilter, first, end), *self._sharing[low:high]})

    def _tells(self, shape: Shape, prefilter: Prefilter) -> bool:
        return shape[0] is SpanKind.LOG or super()._tells(shape, prefilter)

    def _place(self, index: int) -> int | None:
        place = bisect_left(self._sharing, index)
        return place if place < len(self._sharing) and self._sharing[place] == index else None

    def _cut(self, index: int, begin: int, length: int, whole: int) -> None:
        self._begin.append(begin)
        self._length.append(length)
        self._whole.append(whole)
        self._sharing.append(index)

    def part(self, index: int, text: str) -> str:
        """Of the text of its line what belongs to the span at ``index``."""
        place = self._place(index)
        if place is None or len(text) != self._whole[place]:  # else the file has changed
            return text
        begin = self._begin[place]
        return text[begin : begin + self._length[place]]

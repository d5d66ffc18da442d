"""What a label would point at: the span under the cursor, a range, a quote, or the whole trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_tui.traces.model import Trace
from mast_tui.ui.text.word_motions import QuoteCursor
from mast_tui.ui.trace_view.folding import Fold

if TYPE_CHECKING:
    from mast_tui.labels import Target


@dataclass(frozen=True, slots=True)
class Selection:
    """At most one of the fields is set; with none the span under the cursor is meant."""

    range_from: int | None = None
    quote: QuoteCursor | None = None
    whole: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether just the span under the cursor is meant."""
        return self.range_from is None and self.quote is None and not self.whole

    def span_range(self, cursor: int) -> tuple[int, int] | None:
        """First and last span of the range that is being marked."""
        if self.range_from is None:
            return None
        return min(self.range_from, cursor), max(self.range_from, cursor)


PLAIN = Selection()


def target_of(
    selection: Selection, trace: Trace, cursor: int, fold: Fold | None, text: str
) -> Target:
    """The target that a label would have now.

    ``fold`` is the one whose line the cursor stands on; a label there means all of it.
    ``text`` is the text of the span under the cursor, for a quote.
    """
    from mast_tui.labels import WHOLE_TRACE, Target

    if selection.whole:
        return WHOLE_TRACE
    marked = selection.span_range(cursor)
    if marked is not None:
        first, last = marked
        return Target(trace.span(first).key, trace.span(last).key)
    key = trace.span(cursor).key
    if selection.quote is not None:
        start, end = selection.quote.start, selection.quote.end
        return Target(key, key, text[start:end], start, end)
    if fold is not None:
        return Target(trace.span(fold.first).key, trace.span(fold.end - 1).key)
    return Target(key, key)

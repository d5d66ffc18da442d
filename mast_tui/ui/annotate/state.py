"""What is open on the annotate screen, for all of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mast_tui.labels import WHOLE_TRACE, Label, Target, VerdictValue
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.ui.annotate.search import Hits
from mast_tui.ui.text.layout import QuoteCursor
from mast_tui.ui.trace_view.folding import Fold
from mast_tui.ui.trace_view.span_view import SpanText
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.wording import place_words

if TYPE_CHECKING:
    from mast_tui.session import Session  # it brings the workspace, which opens behind the screen


@dataclass(frozen=True, slots=True)
class Selection:
    """What the next label would point at.

    At most one of the fields is set; with none the span under the cursor is meant.
    """

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


@dataclass(frozen=True, slots=True)
class NotedSpan:
    """A note on a span (by its key), on no label."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class ModeSaid:
    """A verdict on a mode (a slug) that no label says."""

    mode: str
    value: VerdictValue


Entry = Label | NotedSpan | ModeSaid
"""One thing that an annotator has said of a trace."""


def target_of(
    selection: Selection, trace: Trace, cursor: int, fold: Fold | None, text: str
) -> Target:
    """Return the target that a label would have now.

    Args:
        selection: What is marked.
        trace: The trace that is open.
        cursor: The span under the cursor.
        fold: The one whose line the cursor stands on; a label there means all of it.
        text: The text of the span under the cursor, for a quote.
    """
    if selection.whole:
        return WHOLE_TRACE
    marked = selection.span_range(cursor)
    if marked is not None:
        first, last = marked
        return Target(trace.span(first).key, trace.span(last).key)
    key = trace.span(cursor).key
    if selection.quote is not None:
        start, end = selection.quote.start, selection.quote.end
        return Target(key, key, quote=text[start:end], char_start=start, char_end=end)
    if fold is not None:
        return Target(trace.span(fold.first).key, trace.span(fold.end - 1).key)
    return Target(key, key)


class AnnotateState:
    """The trace that is open, the annotator's session on it, the cursor, and what is marked.

    All that several parts of the screen need; what only one needs is in that part.
    """

    def __init__(self, taxonomy: Taxonomy, timeline: Timeline, texts: SpanText) -> None:
        """Begin without a trace.

        Args:
            taxonomy: What is labelled with.
            timeline: Whose cursor it is.
            texts: Reads the text of the span under it.
        """
        self.taxonomy = taxonomy
        self.trace: Trace | None = None
        self.session: Session | None = None
        """None until the workspace is open."""
        self.selection = PLAIN
        self.needle = ""
        """What is looked for."""
        self.hits = Hits()
        """Where it was found so far."""
        self.set_last: Literal["search", "filter"] = "search"
        """Which of the two Escape leaves first."""
        self.texts = texts
        self._timeline = timeline

    def show(self, trace: Trace) -> None:
        """Open another trace; its session follows."""
        self.trace, self.session = trace, None
        self.selection = PLAIN
        self.texts.forget()

    @property
    def index(self) -> int:
        """The span under the cursor."""
        return self._timeline.index

    @property
    def has_spans(self) -> bool:
        """Whether there is a span to stand on."""
        return self.trace is not None and len(self.trace) > 0

    def text_here(self) -> str:
        """Return the text of the span under the cursor; empty where it cannot be read any more."""
        assert self.trace is not None
        return self.texts.text_of(self.trace, self.index)

    def target_here(self) -> Target:
        """Return where a label would point now."""
        assert self.trace is not None
        text = "" if self.selection.quote is None else self.text_here()
        return target_of(
            self.selection, self.trace, self.index, self._timeline.fold_at_cursor, text
        )

    def labels_here(self) -> tuple[Label, ...]:
        """Return one's own labels on the span under the cursor, or, while that is what is meant,
        on the whole trace."""
        if self.session is None or not self.has_spans:
            return ()
        return self.labels_on(self.session, self.index, whole=self.selection.whole)

    def labels_on(self, session: Session, index: int, *, whole: bool) -> tuple[Label, ...]:
        """Return one's own labels on a span or on the whole trace, in the taxonomy's order."""
        assert self.trace is not None
        if whole:
            labels = tuple(label for label in session.labels if label.target.is_whole)
        else:
            labels = session.labels_at(self.trace.span(index).key)
        return tuple(sorted(labels, key=lambda label: self.place_of_mode(label.mode)))

    def place_of_mode(self, slug: str) -> int:
        """Return where a mode stands in the taxonomy; behind all others where it is none of it."""
        modes = self.taxonomy.modes
        return next((i for i, mode in enumerate(modes) if mode.slug == slug), len(modes))

    def where_words(self, target: Target) -> str:
        """Return a target in a few words, such as ``#13 to #18``."""
        assert self.trace is not None
        return place_words(target, self.trace.index_of)

"""The state of the annotate screen that several of its parts share."""

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
    """The target that the user has marked for the next label.

    At most one field is set. If none is set, the target is the span under the cursor.

    Attributes:
        range_from: The index of the span where a range begins; it ends at the cursor.
        quote: The words of the text that are marked.
        whole: True if the target is the whole trace.
    """

    range_from: int | None = None
    quote: QuoteCursor | None = None
    whole: bool = False

    @property
    def is_plain(self) -> bool:
        """True if the target is the span under the cursor."""
        return self.range_from is None and self.quote is None and not self.whole

    def span_range(self, cursor: int) -> tuple[int, int] | None:
        """Return the first and last span of the marked range, or None if no range is marked."""
        if self.range_from is None:
            return None
        return min(self.range_from, cursor), max(self.range_from, cursor)


PLAIN = Selection()


@dataclass(frozen=True, slots=True)
class NotedSpan:
    """A note on a span (by its key), without a label."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class ModeVerdict:
    """A verdict on a mode (a slug) without labels."""

    mode: str
    value: VerdictValue


Entry = Label | NotedSpan | ModeVerdict
"""A label, note or verdict of the annotator."""


def target_of(
    selection: Selection, trace: Trace, cursor: int, fold: Fold | None, text: str
) -> Target:
    """Return the target of a label made now.

    Args:
        selection: The target that is marked.
        trace: The open trace.
        cursor: The span under the cursor.
        fold: The fold under the cursor; a label there covers all of its spans.
        text: The text of the span under the cursor, for a quote.
    """
    if selection.whole:
        return WHOLE_TRACE
    span_range = selection.span_range(cursor)
    if span_range is not None:
        first, last = span_range
        return Target(trace.span(first).key, trace.span(last).key)
    key = trace.span(cursor).key
    if selection.quote is not None:
        start = selection.quote.start
        end = selection.quote.end
        return Target(key, key, quote=text[start:end], char_start=start, char_end=end)
    if fold is not None:
        return Target(trace.span(fold.first).key, trace.span(fold.end - 1).key)
    return Target(key, key)


class AnnotateState:
    """The open trace, the session on it, the cursor, the marked target and the search."""

    def __init__(self, taxonomy: Taxonomy, timeline: Timeline, texts: SpanText) -> None:
        """Begin without a trace.

        Args:
            taxonomy: The taxonomy to label with.
            timeline: The timeline with the cursor.
            texts: The reader of the text under the cursor.
        """
        self.taxonomy = taxonomy
        self.trace: Trace | None = None
        self.session: Session | None = None
        """None until the workspace is open."""
        self.selection = PLAIN
        self.needle = ""
        """The text of the search."""
        self.hits = Hits()
        """The matches so far."""
        self.newest_filter: Literal["search", "filter"] = "search"
        """The newer one of search and filter, which Escape removes first."""
        self.texts = texts
        self._timeline = timeline

    def show(self, trace: Trace) -> None:
        """Open another trace; its session follows."""
        self.trace = trace
        self.session = None
        self.selection = PLAIN
        self.texts.forget()

    @property
    def index(self) -> int:
        """The span under the cursor."""
        return self._timeline.index

    @property
    def has_spans(self) -> bool:
        """True if the open trace has a span for the cursor."""
        return self.trace is not None and len(self.trace) > 0

    def text_at_cursor(self) -> str:
        """Return the text of the span under the cursor; empty if it cannot be read."""
        assert self.trace is not None
        return self.texts.text_of(self.trace, self.index)

    def current_target(self) -> Target:
        """Return the target of a label made now."""
        assert self.trace is not None
        text = "" if self.selection.quote is None else self.text_at_cursor()
        return target_of(
            self.selection, self.trace, self.index, self._timeline.fold_at_cursor, text
        )

    def labels_at_cursor(self) -> tuple[Label, ...]:
        """Return the annotator's labels on the span under the cursor.

        If the whole trace is marked, return the labels on the whole trace instead.
        """
        if self.session is None or not self.has_spans:
            return ()
        return self.labels_on(self.session, self.index, on_whole_trace=self.selection.whole)

    def labels_on(self, session: Session, index: int, *, on_whole_trace: bool) -> tuple[Label, ...]:
        """Return the annotator's labels on a span, in the order of the taxonomy.

        Args:
            session: The session on the trace.
            index: The span.
            on_whole_trace: True to return the labels on the whole trace instead.
        """
        assert self.trace is not None
        if on_whole_trace:
            labels = tuple(label for label in session.labels if label.target.is_whole)
        else:
            labels = session.labels_at(self.trace.span(index).key)
        return tuple(sorted(labels, key=lambda label: self.rank_of_mode(label.mode)))

    def rank_of_mode(self, slug: str) -> int:
        """Return the position of a mode in the taxonomy; a mode that it lacks comes last."""
        modes = self.taxonomy.modes
        return next((rank for rank, mode in enumerate(modes) if mode.slug == slug), len(modes))

    def target_text(self, target: Target) -> str:
        """Return a short text for a target, such as ``#13 to #18``."""
        assert self.trace is not None
        return place_words(target, self.trace.index_of)

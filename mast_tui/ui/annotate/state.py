"""The state shared by the parts of the annotate screen, with the target of the next label.

A target is a range of spans, a quote from a text, or the whole trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from mast_tui.labels import WHOLE_TRACE, Label, Target, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.ui.annotate.part import ScreenPart
from mast_tui.ui.annotate.search import Hits
from mast_tui.ui.text.layout import QuoteCursor
from mast_tui.ui.trace_view.folding import Fold
from mast_tui.ui.trace_view.gutter import GLYPHS, MarkKind
from mast_tui.ui.trace_view.span_view import SpanText
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.wording import place_text

if TYPE_CHECKING:
    from mast_tui.session import Session  # it brings the workspace, which opens behind the screen
    from mast_tui.ui.annotate.screen import AnnotateScreen


class Selection(Struct, frozen=True):
    """The target that the user has marked for the next label.

    At most one field is set. Without any, the target is the span under the cursor.

    Attributes:
        range_from: The index of the first span of a range. The range ends at the cursor.
        quote: The marked words of the text.
        whole_trace: True if the target is the whole trace.
    """

    range_from: int | None = None
    quote: QuoteCursor | None = None
    whole_trace: bool = False

    @property
    def is_plain(self) -> bool:
        """True if the target is the span under the cursor."""
        return self.range_from is None and self.quote is None and not self.whole_trace

    def span_range(self, cursor: int) -> tuple[int, int] | None:
        """Return the first and last span of the marked range, or None without a range."""
        if self.range_from is None:
            return None
        return min(self.range_from, cursor), max(self.range_from, cursor)


PLAIN = Selection()


class NotedSpan(Struct, frozen=True):
    """A note on a span, given by its key."""

    key: str
    text: str


class ModeVerdict(Struct, frozen=True):
    """A verdict on a mode (slug) without labels."""

    mode: str
    value: VerdictValue


Entry = Label | NotedSpan | ModeVerdict
"""A label, note or verdict of the annotator."""


def target_of(
    selection: Selection, trace: Trace, cursor: int, fold: Fold | None, text: str
) -> Target:
    """Return the target of a label made now.

    Args:
        selection: The marked target.
        trace: The open trace.
        cursor: The span under the cursor.
        fold: The fold under the cursor. A label covers the whole fold.
        text: The text of the span under the cursor, used for a quote.
    """
    if selection.whole_trace:
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
            texts: The reader of texts of spans.
        """
        self.taxonomy = taxonomy
        self.trace: Trace | None = None
        self.session: Session | None = None
        """The session on the trace; None until the workspace is open."""
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
        """Open another trace, without a session."""
        self.trace = trace
        self.session = None
        self.selection = PLAIN
        self.texts.discard_text()

    @property
    def open_trace(self) -> Trace:
        """The open trace, for callers that know that there is one."""
        assert self.trace is not None
        return self.trace

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
        return self.texts.text_of(self.open_trace, self.index)

    def current_target(self) -> Target:
        """Return the target of a label made now."""
        text = "" if self.selection.quote is None else self.text_at_cursor()
        return target_of(
            self.selection, self.open_trace, self.index, self._timeline.fold_at_cursor, text
        )

    def labels_at_cursor(self) -> tuple[Label, ...]:
        """Return the annotator's labels on the span under the cursor.

        If the whole trace is marked, return the labels on it instead.
        """
        if self.session is None or not self.has_spans:
            return ()
        return self.labels_on(self.session, self.index, on_whole_trace=self.selection.whole_trace)

    def labels_on(self, session: Session, index: int, *, on_whole_trace: bool) -> tuple[Label, ...]:
        """Return the annotator's labels on a span, in the order of the taxonomy.

        Args:
            session: The session on the trace.
            index: The span.
            on_whole_trace: True to return the labels on the whole trace instead.
        """
        if on_whole_trace:
            labels = tuple(label for label in session.labels if label.target.is_whole)
        else:
            labels = session.labels_at(self.open_trace.span(index).key)
        return tuple(sorted(labels, key=lambda label: self.rank_of_mode(label.mode)))

    def codes_on_whole_trace(self) -> tuple[str, ...]:
        """Return the codes of labels on the whole trace, those of others with their sign."""
        if self.session is None or not self.has_spans:
            return ()
        own_labels = self.labels_on(self.session, 0, on_whole_trace=True)
        others_labels = [label for label in self.session.others if label.target.is_whole]
        signed_labels = [(label, "") for label in own_labels]
        signed_labels += [(label, f" {GLYPHS[MarkKind.OTHER]}") for label in others_labels]
        return tuple(
            one_line(self.taxonomy.mode(label.mode).code) + sign for label, sign in signed_labels
        )

    def rank_of_mode(self, slug: str) -> int:
        """Return the position of a mode in the taxonomy; an unknown mode comes last."""
        modes = self.taxonomy.modes
        return next((rank for rank, mode in enumerate(modes) if mode.slug == slug), len(modes))

    def target_text(self, target: Target) -> str:
        """Return a short text for a target, such as ``#13 to #18``."""
        return place_text(target, self.open_trace.index_of)


DIGITS_HINT: Final = "two digits label"
RANGE_MOVES: Final = ("up", "down")
"""The actions that move an end of a range."""
QUOTE_MOVES: Final = ("word_left", "word_right", *RANGE_MOVES)
"""The actions that move by words or lines while a quote is being marked."""
LABEL_CHANGES: Final = ("note", "severity", "confidence", "remove")
"""The actions that change a label on the whole trace."""


class Marking(ScreenPart):
    """The marked target, shown in the timeline, the text and the last line."""

    def __init__(self, screen: AnnotateScreen) -> None:
        """Begin without a marked target."""
        super().__init__(screen)
        self.keys_to_use_target = DIGITS_HINT
        """The end of the message about a marked target, which says how to use it."""

    def mark(self, selection: Selection) -> None:
        """Replace the marked target, and show it with the keys that change or use it."""
        state = self._state
        drops_range = state.selection.range_from is not None
        state.selection = selection
        self._timeline.show_range(selection.span_range(state.index) if state.has_spans else None)
        self._screen.show_highlights()
        self._hints.clear()
        if selection.range_from is not None:
            self._show_range()
        elif selection.quote is not None:
            if selection.quote.extends:
                effect = "move to the last word"
            else:
                effect = f"move to the first word, then {self._key_of('annotate.range')}"
            self._hints.prompt(
                f"quote: {self._keys_text(QUOTE_MOVES)} {effect} · {self.keys_to_use_target} · "
                f"{self._key_of('everywhere.back')} cancels"
            )
        elif selection.whole_trace:
            title = "whole trace, not the range" if drops_range else "whole trace"
            self._hints.prompt(
                f"{title}: {self.keys_to_use_target} · change its labels with "
                f"{self._keys_text(LABEL_CHANGES)} · {self._key_of('everywhere.back')} cancels"
            )

    def _keys_text(self, actions: Sequence[str]) -> str:
        """Return the keys of actions, with spaces between them."""
        return " ".join(self._key_of(f"annotate.{name}") for name in actions)

    def _show_range(self) -> None:
        """Show the marked range, and the keys that change it."""
        span_range = self._state.selection.span_range(self._state.index)
        self._timeline.show_range(span_range)
        if span_range is not None:
            first, last = span_range
            range_text = f"#{first + 1} to #{last + 1}" if last > first else f"#{first + 1}"
            self._hints.prompt(
                f"range {range_text}: {self._keys_text(RANGE_MOVES)} move · "
                f"{self._key_of('annotate.other_end')} other end · {self.keys_to_use_target} · "
                f"{self._key_of('everywhere.back')} cancels"
            )

    def follow_cursor(self) -> None:
        """Extend a range to the cursor, or drop a quote after a move to another span."""
        if self._state.selection.quote is not None:
            self.mark(PLAIN)
        elif self._state.selection.range_from is not None:
            self._show_range()

    def toggle_range(self) -> None:
        """Begin or end a range at the cursor.

        While a quote is marked, begin a new quote at the word under the cursor instead.
        """
        state = self._state
        if not state.has_spans:
            return
        if state.selection.quote is not None:
            self.mark(Selection(quote=state.selection.quote.begun_at_cursor()))
            return
        has_range = state.selection.range_from is not None
        self.mark(PLAIN if has_range else Selection(range_from=state.index))

    def toggle_whole_trace(self) -> None:
        """Mark the whole trace, or the span again."""
        if self._state.has_spans:
            self.mark(PLAIN if self._state.selection.whole_trace else Selection(whole_trace=True))

    def mark_target(self, target: Target) -> None:
        """Mark the target of a label, and go to the end of its range that is nearer to the cursor.

        Change nothing if a span of the target was not read yet.
        """
        state = self._state
        if target.first is None or target.last is None:
            self.mark(Selection(whole_trace=True))
            return
        first = state.open_trace.index_of(target.first)
        last = state.open_trace.index_of(target.last)
        if first is None or last is None:
            return
        near_end, far_end = sorted((last, first), key=lambda end: abs(state.index - end))
        self._screen.go_to(near_end)
        if target.char_start is not None and target.char_end is not None:
            self.quote_between(target.char_start, target.char_end)
        elif first != last:
            self.mark(Selection(range_from=far_end))

    def go_to_other_end(self) -> None:
        """Go to the other end of the marked range."""
        other_end = self._state.selection.range_from
        if other_end is None:
            self._hints.say(f"No range is marked; {self._key_of('annotate.range')} begins one")
            return
        cursor = self._state.index
        self.mark(PLAIN)  # while the cursor moves, no range is shown
        self._screen.go_to(other_end)
        self.mark(Selection(range_from=cursor))

    def begin_quote(self) -> None:
        """Begin to mark words at the first visible word of the text.

        If a quote is marked, go to its next word. Without a word, show an error.
        """
        state = self._state
        if not state.has_spans:
            return
        quote = state.selection.quote
        if quote is not None:
            self.move_word(quote, 1)
            return
        self._screen.catch_up()
        view = self._screen.span_view
        word = view.word_at(view.first_offset_on_screen)
        if word is None:
            is_unreadable = state.texts.unreadable is not None
            reason = "cannot be read any more" if is_unreadable else "has no text to quote"
            self._hints.say(f"This span {reason}", error=True)
            return
        self.mark(Selection(quote=QuoteCursor(word, word)))

    def quote_between(self, start: int, end: int) -> None:
        """Mark the words from one offset in the text to another.

        Args:
            start: The first code point.
            end: The end (exclusive).
        """
        view = self._screen.span_view
        first_word = view.word_at(start)
        last_word = view.word_at(end - 1)
        if first_word is not None and last_word is not None:
            self.mark(Selection(quote=QuoteCursor(first_word, last_word, extends=True)))

    def move_word(self, quote: QuoteCursor, step: int) -> None:
        """Move the end of a quote that follows the cursor by one word.

        Args:
            quote: The quote.
            step: 1 for the next word, -1 for the previous one.
        """
        view = self._screen.span_view
        word_start, word_end = quote.head
        word = view.next_word(word_end) if step > 0 else view.previous_word(word_start)
        self.mark(Selection(quote=quote.at(word)))

    def move_line(self, quote: QuoteCursor, delta: int) -> None:
        """Move the end of a quote that follows the cursor by lines of the text.

        Args:
            quote: The quote.
            delta: The number of lines; negative to move up.
        """
        view = self._screen.span_view
        word_start, _ = quote.head
        offset = view.vertical_neighbour(word_start, delta)
        self.mark(Selection(quote=quote.at(view.word_at(offset))))

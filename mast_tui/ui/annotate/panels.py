"""What the panes of the annotate screen show: title, marks, modes, text, suggestion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from textual.timer import Timer

from mast_tui.safe_text import one_line
from mast_tui.traces.awaited import awaited_words
from mast_tui.traces.model import Outcome, Span, SpanKind, Trace
from mast_tui.ui import clock
from mast_tui.ui.annotate.suggestions import Suggesting
from mast_tui.ui.services.workspace_writer import Holds
from mast_tui.ui.suggestion_words import source_words, warnings_on
from mast_tui.ui.titles import origin_title, plain_title, trace_title
from mast_tui.ui.trace_view.gutter import Mark, MarkKeeper, MarkKind, Marks, Noted, Pointing
from mast_tui.ui.trace_view.span_view import Highlight
from mast_tui.ui.widgets.taxonomy_panel import ModeState, definition_of

if TYPE_CHECKING:
    from mast_tui.session import Session

SPAN_WAIT: Final = 0.05
"""Seconds for which the cursor must rest until the text of its span follows a burst of moves."""


class Panels(Suggesting):
    """Draws the panes from the trace, the session and the cursor; changes neither."""

    _moves: Timer | None = None
    _keeper: tuple[Session, MarkKeeper] | None = None

    def show_title(self) -> None:
        """What is open, and who works."""
        trace = self.trace
        if trace is None:
            return
        session = self.session
        told = session is not None and session.hidden_visible
        outcome = trace.meta.outcome if told else Outcome.UNKNOWN
        left = trace_title(trace, outcome, awaited_words(trace))
        if self.timeline.duration:
            left.append(clock.duration(self.timeline.duration))
        if problems := len(trace.problems):
            left.append(f"{problems} problem{'' if problems == 1 else 's'} in the file")
        self.title_bar.show(tuple(left), self.who())

    def still_reading(self, words: str) -> None:
        """Tell how far the reading of the one big document that was named has come."""
        if self.trace is None:
            self.title_bar.show((words,), ())

    # What depends on labels

    def show_state(self) -> None:
        """Marks, modes, suggestions: after a change of the session."""
        session, trace = self.session, self.trace
        if session is None or trace is None:
            return
        if session.suggestions:
            note = partial(self._attempt, lambda s: s.note_suggestions_on_screen(), session)
            self.writes.do(note, Holds.NOTHING)
        self.timeline.show_marks(self._marks_of(session, trace))
        own, pending = session.labels_of_modes, Counter(s.mode for s in session.pending)
        self.modes.show_states(
            {
                mode.slug: ModeState(
                    own.get(mode.slug, 0), session.verdict(mode.slug), pending[mode.slug]
                )
                for mode in self.taxonomy.modes
            }
        )
        self.timeline.show_read(session.read)
        self.show_title()
        self.show_suggestion_panel()
        self.show_highlights()

    def _marks_of(self, session: Session, trace: Trace) -> Marks:
        """Own labels, suggestions, others' labels and notes, where they stand by now."""
        from mast_tui.labels import Target

        if self._keeper is None or self._keeper[0] is not session:
            self._keeper = (session, MarkKeeper(self._mark, trace.index_of))
        shown: dict[MarkKind, Mapping[str, Pointing]] = {
            MarkKind.OWN: session.labels_by_id,
            MarkKind.SUGGESTION: session.pending_by_id,
            MarkKind.OTHER: {label.id: label for label in session.others},
            MarkKind.NOTE: {key: Noted(Target(key, key)) for key in session.span_notes},
        }
        return self._keeper[1].follow(shown, len(trace))

    def _mark(self, slug: str, kind: MarkKind) -> Mark:
        if kind is MarkKind.NOTE:
            return Mark("", kind)
        return Mark(self._code(slug), kind, self.place_of_mode(slug))

    def _code(self, slug: str) -> str:
        mode = next((m for m in self.taxonomy.modes if m.slug == slug), None)
        if mode is None:
            return one_line(slug, 8)
        return mode.code if len(mode.code) <= 8 else mode.code[:7] + "…"

    # What depends on the cursor

    def show_span_soon(self) -> None:
        """After a move of the cursor: its span at once, or when a burst of moves is over.

        What a key would answer follows the cursor at once; only the text waits.
        """
        trace = self.trace
        if self._moves is None or self._in_view == self.index or trace is None or not len(trace):
            self.show_span()
        else:
            self._pick_suggestion(trace.span(self.index))
            self.show_suggestion_panel()
        if self._moves is not None:
            self._moves.stop()
        self._moves = self.set_timer(SPAN_WAIT, self._moves_over)

    def _moves_over(self) -> None:
        self._moves = None
        self.catch_up()

    @property
    def text_waits(self) -> bool:
        """Whether the span view still shows another span than the one under the cursor."""
        return self._moves is not None and self.has_spans and self._in_view != self.index

    def show_span(self) -> None:
        """The text of the span under the cursor, with what is quoted in it."""
        trace = self.trace
        if trace is None:
            return
        if not len(trace):
            self.span_view.show_titles(None)
            self.span_view.show_text("", empty="This trace has no spans.")
            return
        span = trace.span(self.index)
        self.span_view.show_titles(plain_title(self._span_title(span)), origin_title(span))
        self._pick_suggestion(span)
        if self._in_view == self.index:
            # Who reads on in a long text stays there, whatever else has changed.
            self.span_view.show_highlights(self._highlights())
        else:
            self._in_view = self.index
            text = self.text_here()
            self.span_view.show_text(
                text, self._highlights(), empty=self.span_text.words_on_nothing
            )
        self.show_suggestion_panel()

    def _span_title(self, span: Span) -> str:
        parts = [f"#{span.index + 1} {span.kind.replace('_', ' ')}", span.agent]
        if span.name:
            parts.append(span.name)
        if span.parent is not None and span.kind is SpanKind.TOOL_RESULT:
            assert self.trace is not None
            call = self.trace.index_of(span.parent)
            if call is not None:
                parts.append(f"of #{call + 1}")
        if span.start is not None and span.end is not None and span.end > span.start:
            parts.append(clock.duration(span.end - span.start))
        if span.status == "error":
            parts.append("error")
        return " · ".join(parts)

    def _pick_suggestion(self, span: Span) -> None:
        """The suggestion that stands at the cursor; the one gone to stays while it is there."""
        session = self.session
        if session is None:
            self.suggestion_id = None
            return
        here = self.pending_on(session, span.index)
        if not any(s.id == self.suggestion_id for s in here):
            # What has no place of its own stands at the beginning only once it is gone to.
            placed = (s.id for s in here if not s.doubt or s.evidence_key is not None)
            self.suggestion_id = next(placed, None)

    def show_suggestion_panel(self) -> None:
        """The suggestion under the cursor, or how to get to one."""
        session = self.session
        for panel in self.suggestion_panels:
            if session is None:
                refused = "Without a workspace there are none"
                panel.idle(
                    "Suggestions", refused if self.workspace_refused else "Opening the workspace …"
                )
                continue
            suggestion = self.suggestion_here()
            pending = session.pending
            if suggestion is None:
                count = len(pending)
                words = (
                    f"{count} wait{'s' if count == 1 else ''} for an answer: ] goes to the next"
                    if count
                    else self.no_suggestion_words(session)
                )
                panel.idle("Suggestions", words)
                continue
            place = next(i for i, s in enumerate(pending) if s.id == suggestion.id)
            mode = next((m for m in self.taxonomy.modes if m.slug == suggestion.mode), None)
            name = f"{mode.code} {mode.name}" if mode else suggestion.mode
            assert self.trace is not None
            index_of = self.trace.index_of
            panel.show(
                f"Suggestion {place + 1} of {len(pending)}",
                name,
                source_words(suggestion, index_of),
                warnings_on(suggestion, index_of),
                suggestion.rationale,
            )

    def show_highlights(self) -> None:
        """Show in the text what is quoted, found or marked, without moving."""
        quote = self.selection.quote
        if not self.has_spans or (self.text_waits and quote is None):
            return
        self.catch_up()
        self.span_view.show_highlights(self._highlights())
        if quote is not None:
            self.span_view.reveal(quote.head[0], quote.head[1])

    def _highlights(self) -> list[Highlight]:
        assert self.trace is not None
        key = self.trace.span(self.index).key
        found: list[Highlight] = []
        suggestion = self.suggestion_here()
        if suggestion is not None and suggestion.evidence_key == key and suggestion.quote_offsets:
            start, end = suggestion.quote_offsets
            found.append(Highlight(start, end, "evidence"))
        for label in self.labels_here():
            target = label.target
            if target.first == key and target.char_start is not None:
                found.append(Highlight(target.char_start, target.char_end or 0, "own"))
        found += [Highlight(start, end, "match") for start, end in self.matches_shown()]
        quote = self.selection.quote
        if quote is not None:
            found.append(Highlight(quote.start, quote.end, "selection"))
        return found

    def show_definition(self) -> None:
        """What the taxonomy says of the mode under its cursor."""
        mode = self.modes.mode
        if mode is not None:
            self.definition.border_title = plain_title(f"{mode.code} {mode.name}")
            self.definition.show_text(definition_of(mode, self.taxonomy))

    def who(self) -> tuple[str, ...]:
        """Who works, how, and how far the queue is done."""
        raise NotImplementedError

"""The annotate screen: the trace as a timeline on one side, the taxonomy on the other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.timer import Timer
from textual.worker import get_current_worker

from mast_tui.safe_text import one_line
from mast_tui.traces.model import Outcome, Span, SpanKind, Trace
from mast_tui.ui import clock
from mast_tui.ui.actions import Where, bindings_for
from mast_tui.ui.marks import Mark, MarkKind, marks_by_span
from mast_tui.ui.screens.annotate_finish import Finishing
from mast_tui.ui.screens.annotate_moves import Moving
from mast_tui.ui.screens.annotate_search import SearchInput, finds
from mast_tui.ui.selection import PLAIN, Selection
from mast_tui.ui.titles import plain_title
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.span_view import Highlight, SpanView
from mast_tui.ui.widgets.suggestion_panel import SuggestionPanel
from mast_tui.ui.widgets.taxonomy_panel import ModeState, TaxonomyPanel, definition_of
from mast_tui.ui.widgets.timeline import Timeline
from mast_tui.ui.widgets.title_bar import TitleBar
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.words import QuoteCursor, word_at

if TYPE_CHECKING:
    from mast_tui.session import Session
    from mast_tui.ui.app import MastApp
    from mast_tui.ui.background import Judged

READ_EVERY = 0.4
"""Seconds between writes of what was read: one transaction for many moves."""


class AnnotateScreen(Moving, Finishing):
    """One trace, one annotator. Panes post where their cursor is; the screen holds the state."""

    CSS_PATH = "annotate.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    AUTO_FOCUS = "#timeline"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.ANNOTATE, Where.EVERYWHERE)
    where = Where.ANNOTATE

    @dataclass
    class Grown(Message):
        """The index of a trace has come further."""

        trace: Trace

    _shown_version = -1
    _reading: Timer | None = None

    def compose(self) -> ComposeResult:
        """The panes."""
        yield TitleBar()
        with Horizontal(id="panes"):
            with Vertical(id="left"):
                yield Timeline(id="timeline")
                yield SpanView(id="span")
                yield SuggestionPanel(id="suggestion-below", markup=False)
            with Vertical(id="side"):
                yield TaxonomyPanel(id="modes")
                yield SpanView(id="definition")
                yield SuggestionPanel(id="suggestion", markup=False)
        yield SearchInput(placeholder="find in all spans; Enter keeps, Esc leaves", id="search")
        yield HintBar(self.where)

    def on_mount(self) -> None:
        """Name the panes and say what is awaited."""
        self.timeline.border_title = plain_title("Timeline")
        self.modes.border_title = plain_title(self.taxonomy.name)
        self.modes.show_taxonomy(self.taxonomy)
        self.call_after_refresh(self._show_definition)
        self.query_one(SearchInput).display = False
        self._reading = self.set_interval(READ_EVERY, self.write_read)
        if self.trace is not None:
            self.show_trace(self.trace)
        else:
            self.title_bar.show(("Reading …",), ())

    # The trace and the session

    def show_trace(self, trace: Trace) -> None:
        """Show another trace; its session follows with ``sit``."""
        self.write_read()
        self.workers.cancel_group(self, "index")
        self.trace, self.session = trace, None
        self.selection, self.suggestion_id = PLAIN, None
        self.needle, self.matches = "", []
        self._text = (-1, "")
        self._shown_version = -1
        if not self.is_mounted:
            return
        self.timeline.show_trace(trace)
        self.modes.show_states({})
        self.show_title()
        self.show_span()
        if not trace.loaded.complete:
            self._index(trace)

    @work(thread=True, group="index", exclusive=True)
    def _index(self, trace: Trace) -> None:
        worker = get_current_worker()
        while not worker.is_cancelled and trace.advance():
            self.post_message(self.Grown(trace))
        self.post_message(self.Grown(trace))

    def on_annotate_screen_grown(self, message: Grown) -> None:
        """Take in what the index has gained."""
        if message.trace is self.trace and self.timeline.trace is self.trace:
            self.timeline.grown()
            self.show_title()
            self.show_state()

    def sit(self, session: Session) -> None:
        """The workspace is open: show the labels, and do what keys have asked for meanwhile."""
        self.session = session
        waiting, self._waiting = self._waiting, []
        self.show_state()
        self.show_span()
        self.hints.clear()
        for step in waiting:
            step(session)

    def show_title(self) -> None:
        """What is open, and who works."""
        trace = self.trace
        if trace is None:
            return
        meta = trace.meta
        session = self.session
        left = [one_line(trace.identity.trace_id)]
        left += [one_line(part, 40) for part in (meta.model or meta.system,) if part]
        if meta.outcome is not Outcome.UNKNOWN and session is not None and session.hidden_visible:
            left.append(str(meta.outcome))
        count = len(trace)
        left.append(f"{count} span{'' if count == 1 else 's'}")
        if not trace.loaded.complete:
            share = trace.loaded.done / max(1, trace.loaded.total)
            left.append(f"{share:.0%} read")
        if self.timeline.duration:
            left.append(clock.duration(self.timeline.duration))
        self.title_bar.show(tuple(left), self.who())

    # What depends on labels

    def show_state(self) -> None:
        """Marks, modes, suggestions: after a change of the session."""
        session, trace = self.session, self.trace
        if session is None or trace is None:
            return
        if session.suggestions:
            session.note_suggestions_on_screen()
        targets = [
            (label.target, Mark(self._code(label.mode), MarkKind.OWN)) for label in session.labels
        ]
        targets += [
            (s.target, Mark(self._code(s.mode), MarkKind.SUGGESTION)) for s in session.pending
        ]
        if session.others_shown:
            targets += [
                (label.target, Mark(self._code(label.mode), MarkKind.OTHER))
                for label in session.others
            ]
        marks = marks_by_span(targets, trace.index_of)
        for key in session.span_notes:
            index = trace.index_of(key)
            if index is not None:
                marks[index] = (*marks.get(index, ()), Mark("", MarkKind.NOTE))
        self.timeline.show_marks(marks)
        own = Counter(label.mode for label in session.labels)
        pending = Counter(s.mode for s in session.pending)
        self.modes.show_states(
            {
                mode.slug: ModeState(own[mode.slug], session.verdict(mode.slug), pending[mode.slug])
                for mode in self.taxonomy.modes
            }
        )
        if session.read != self.timeline.read:
            self.timeline.read = set(session.read)
            self.timeline.rows_changed()
        self.show_title()
        self.show_suggestion_panel()
        self.show_highlights()

    def _code(self, slug: str) -> str:
        mode = next((m for m in self.taxonomy.modes if m.slug == slug), None)
        if mode is None:
            return one_line(slug, 8)
        return mode.code if len(mode.code) <= 8 else mode.code[:7] + "…"

    # What depends on the cursor

    def show_span(self) -> None:
        """The text of the span under the cursor, with what is quoted in it."""
        trace = self.trace
        if trace is None:
            return
        if not len(trace):
            self.span_view.border_title = None
            self.span_view.show_text("", empty="This trace has no spans.")
            return
        span = trace.span(self.index)
        self.span_view.border_title = plain_title(self._span_title(span))
        self.span_view.border_subtitle = plain_title(span.place)
        self._pick_suggestion(span)
        self.span_view.show_text(
            self.text_here(), self._highlights(), empty="This step has no text."
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
        here = [s for s in session.pending if self.index_of_suggestion(s) == span.index]
        if not any(s.id == self.suggestion_id for s in here):
            self.suggestion_id = here[0].id if here else None

    def show_suggestion_panel(self) -> None:
        """The suggestion under the cursor, or how to get to one."""
        session = self.session
        for panel in self.suggestion_panels:
            if session is None:
                panel.idle("Suggestions", "Opening the workspace …")
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
            judge = suggestion.judge.removeprefix("judge:")
            confidence = f"  {suggestion.confidence:.2f}" if suggestion.confidence else ""
            panel.show(
                f"Suggestion {place + 1} of {len(pending)}",
                name,
                f"{judge}{confidence} · {self.where_words(suggestion.target)}",
                suggestion.rationale,
            )

    def show_highlights(self) -> None:
        """Show in the text what is quoted, found or marked, without moving."""
        if self.has_spans:
            self.span_view.show_highlights(self._highlights())
            quote = self.selection.quote
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
        if self.needle:
            at = finds(self.text_here(), self.needle)
            if at >= 0:
                found.append(Highlight(at, at + len(self.needle), "match"))
        quote = self.selection.quote
        if quote is not None:
            found.append(Highlight(quote.start, quote.end, "selection"))
        return found

    @on(VirtualLines.Moved, "#timeline")
    def _cursor_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        if self.selection.quote is not None:
            self.set_selection(PLAIN)
        elif self.selection.range_from is not None:
            self.timeline.show_range(self.selection.span_range(self.index))
        self.show_span()
        if self.selection.is_plain and not self.entry.begun and self._choice is None:
            self.hints.clear()

    @on(VirtualLines.Moved, "#modes")
    def _mode_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self._show_definition()

    @on(VirtualLines.Chosen, "#modes")
    def _mode_chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        mode = self.modes.mode
        if mode is not None and self.has_spans:
            self.label_with(mode)

    @on(SpanView.Quoted, "#span")
    def _quoted(self, event: SpanView.Quoted) -> None:
        first = word_at(self.text_here(), event.start)
        last = word_at(self.text_here(), event.end - 1)
        if first is not None and last is not None:
            self.set_selection(Selection(quote=QuoteCursor(first, last, True)))

    def _show_definition(self) -> None:
        mode = self.modes.mode
        if mode is not None:
            self.definition.border_title = plain_title(f"{mode.code} {mode.name}")
            self.definition.show_text(definition_of(mode, self.taxonomy))

    # The queue

    @property
    def mast(self) -> MastApp:
        """The app, with what it shares."""
        from mast_tui.ui.app import MastApp

        assert isinstance(self.app, MastApp)
        return self.app

    def who(self) -> tuple[str, ...]:
        """Who works, how, and how far the queue is done."""
        session, desk = self.session, self.mast.desk
        if session is None or desk is None:
            return ("opening the workspace …",)
        sight = "blind" if session.blind else "assisted"
        words = [one_line(session.annotator), sight]
        if session.finished:
            words[1] += " · finished"
        if len(self.mast.catalog.traces) > 1:
            words.append(
                f"{self.mast.finished_count()} of {len(self.mast.catalog.traces)} finished"
            )
        return tuple(words)

    def leave(self) -> None:
        """Back to the library."""
        self.write_read()
        self.mast.action_library()

    def other_trace(self, step: int) -> None:
        """Open the next or previous trace of the queue."""
        trace = self.mast.neighbour(self.trace, step)
        if trace is None:
            self.hints.say("This is the only trace" if step else "")
            return
        self.mast.open_trace(trace)

    def finished_one(self) -> None:
        """The queue is one shorter."""
        self.mast.count_finished()
        self.show_title()

    def run_judge(self) -> None:
        """Run the rules judge on this trace in the background."""
        desk, trace = self.mast.desk, self.trace
        if desk is None or trace is None:
            return
        self.hints.say("The rules judge looks at this trace …")
        self.mast.run_rules([trace], desk)

    def judged(self, message: Judged) -> None:
        """The judge is through: read its suggestions."""
        if message.problem is not None:
            self.hints.say(one_line(message.problem), error=True)
        elif message.done and self.session is not None:
            self.session.refresh_suggestions()
            self.show_state()
            self.show_span()
            pending = len(self.session.pending)
            if self.session.blind and not self.session.finished:
                self.hints.say("The judge has looked; its suggestions are shown after you finish")
            else:
                self.hints.say(f"{pending} suggestions wait: ] goes to the next")

    # What was read

    def write_read(self) -> None:
        """Write what has been on screen since the last time, in one transaction."""
        session, trace = self.session, self.trace
        if session is None or trace is None or not len(trace) or self.app.screen is not self:
            return
        keys = [trace.span(self.index).key, *self.timeline.fully_shown()]
        fold = self.timeline.folds.folded_at(self.index)
        if fold is not None:
            keys += [trace.span(i).key for i in range(fold.first, fold.end)]
        new = [key for key in keys if key not in session.read]
        if new and self._attempt(lambda s: s.mark_read(new), session) is None:
            self.timeline.read = set(session.read)
            for key in new:
                index = trace.index_of(key)
                if index is not None:
                    self.timeline.redraw_span(index)

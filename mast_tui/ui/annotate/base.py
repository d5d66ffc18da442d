"""What all parts of the annotate screen share: the trace, the session, the panes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from textual.screen import Screen

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.annotate.mode_code_entry import DigitEntry
from mast_tui.ui.annotate.selection import PLAIN, Selection, target_of
from mast_tui.ui.annotate.suggestion_panel import SuggestionPanel
from mast_tui.ui.context import context_of
from mast_tui.ui.input_priority import Courtesy
from mast_tui.ui.place_words import place_words
from mast_tui.ui.services.workspace_writer import Holds, Writes
from mast_tui.ui.trace_view.searching import Hits
from mast_tui.ui.trace_view.span_text import SpanText
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.render_cache import KnownLooks
from mast_tui.ui.widgets.taxonomy_panel import TaxonomyPanel
from mast_tui.ui.widgets.title_bar import TitleBar

if TYPE_CHECKING:
    from mast_tui.labels import Label, Target
    from mast_tui.session import Change, Session, Suggestion

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a key has asked for on a trace before there was a session on it.

    With ``here`` it only makes sense while that trace is on screen.
    """

    trace: Trace
    work: Callable[[Session], None]
    here: bool


class AnnotateBase(Screen[None], KnownLooks):
    """State of the annotate screen and the few steps that its parts build on."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        super().__init__()
        self.taxonomy = taxonomy
        self.trace: Trace | None = None
        self.session: Session | None = None
        self.selection: Selection = PLAIN
        self.entry = DigitEntry()
        self.suggestion_id: str | None = None
        self.matches = Hits()
        self.needle = ""
        self.set_last: Literal["search", "filter"] = "search"
        self._waiting: list[Waiting] = []
        self._serving: Session | None = None
        self._shown: set[str] = set()
        self.span_text = SpanText(self)
        """The text of the span under the cursor, and why it cannot be read."""
        self._in_view = -1
        self.timeline = Timeline(id="timeline")
        """The spans."""
        self.span_view = SpanView(id="span", sets_out_json=True)
        """The text of the span under the cursor."""
        self.modes = TaxonomyPanel(id="modes")
        """The taxonomy."""
        self.definition = SpanView(id="definition")
        """The definition of the mode under the cursor."""
        self.hints = HintBar(Where.ANNOTATE)
        """The last line."""
        self.title_bar = TitleBar()
        """The first line."""
        self.suggestion_panels = (
            SuggestionPanel(id="suggestion-below"),
            SuggestionPanel(id="suggestion"),
        )
        """The suggestion under the cursor: under the timeline where it is narrow, else beside."""

    @property
    def courtesy(self) -> Courtesy:
        """By which work in threads stands back while a key is answered."""
        return context_of(self).courtesy

    @property
    def index(self) -> int:
        """The span under the cursor."""
        return self.timeline.index

    @property
    def has_spans(self) -> bool:
        """Whether there is a span to stand on."""
        return self.trace is not None and len(self.trace) > 0

    def text_here(self) -> str:
        """The text of the span under the cursor; empty where it cannot be read any more."""
        assert self.trace is not None
        return self.span_text.of(self.trace, self.index)

    def target_here(self) -> Target:
        """Where a label would point now."""
        assert self.trace is not None
        text = "" if self.selection.quote is None else self.text_here()
        return target_of(self.selection, self.trace, self.index, self.timeline.fold_here, text)

    def with_session(self, work: Callable[[Session], None], *, here: bool = False) -> None:
        """Do ``work`` with the session, now or as soon as the workspace is open, in order.

        Where the trace has been left by then, it is done without being shown; with ``here`` it
        is left undone, and that is said.
        """
        if self.trace is None:
            return
        if self.session is None and self.workspace_refused:
            self.hints.say("No workspace is open, so nothing can be labelled", error=True)
        elif self.session is None:
            self._waiting.append(Waiting(self.trace, work, here))
            self.hints.say("Opening the workspace; keys wait their turn")
        else:
            self.writes.do(partial(self._attempt, work, self.session))

    @property
    def writes(self) -> Writes:
        """What is written to the workspace, in order."""
        return context_of(self).writes

    @property
    def on_stage(self) -> bool:
        """Whether what is done is shown: not so for a trace that was left meanwhile."""
        return self._serving is None

    @property
    def workspace_refused(self) -> bool:
        """Whether there is no workspace to wait for."""
        raise NotImplementedError

    def change(self, command: Callable[[Session], Change | None], holds: Holds = Holds.ALL) -> None:
        """Run one command of the session in its turn, and show what it did."""
        self.writes.do(partial(self.changed, command), holds)

    def changed(self, command: Callable[[Session], Change | None]) -> Change | None:
        """Run one command of the session and show what it did; errors are said in words.

        Only called once the session is there, and as a part of what is done in its turn.
        """
        session = self._serving or self.session
        assert session is not None
        change = self._attempt(command, session)
        if change is not None and self.on_stage and session is self.session:
            self.show_state()
            if not self.entry.begun:  # else the next label is being typed already
                self.hints.say(one_line(change.message))
        return change

    def _attempt(self, command: Callable[[Session], Result], session: Session) -> Result | None:
        from mast_tui.session import ChangedMeanwhile

        if not self.on_stage:
            return command(session)
        try:
            return self.kept(partial(command, session))
        except MastError as error:
            if isinstance(error, ChangedMeanwhile) and session is self.session:
                self.show_state()
            self.hints.say(one_line(str(error)), error=True)
            return None

    def kept(self, step: Callable[[], Result]) -> Result:
        """Do ``step``; where the workspace has gone, ask where to go on, and do it there."""
        raise NotImplementedError

    def show_state(self) -> None:
        """Draw anew what depends on labels, verdicts and suggestions."""
        raise NotImplementedError

    def show_span(self) -> None:
        """Draw anew what depends on the cursor."""
        raise NotImplementedError

    def forget_message(self) -> None:
        """Take back what was said: it belongs to where one was."""
        raise NotImplementedError

    def catch_up(self) -> None:
        """Show the span under the cursor now, where the span view shows another one."""
        if self.has_spans and self._in_view != self.index:
            self.show_span()

    def matches_shown(self) -> Sequence[tuple[int, int]]:
        """Where what is looked for is to be marked in the text under the cursor."""
        raise NotImplementedError

    def search_changed(self) -> None:
        """What is looked for has been found everywhere, or is looked for no longer."""
        raise NotImplementedError

    def show_highlights(self) -> None:
        """Show in the text what is quoted, found or marked."""
        raise NotImplementedError

    def set_selection(self, selection: Selection) -> None:
        """Mark something else for the next label, and show it."""
        raise NotImplementedError

    def labels_here(self) -> tuple[Label, ...]:
        """One's own labels on the span under the cursor, or, while that is what is meant, on the
        whole trace."""
        if self.session is None or not self.has_spans:
            return ()
        return self.labels_on(self.session, self.index, whole=self.selection.whole)

    def labels_on(self, session: Session, index: int, *, whole: bool) -> tuple[Label, ...]:
        """One's own labels on a span or on the whole trace, in the taxonomy's order."""
        assert self.trace is not None
        if whole:
            labels = tuple(label for label in session.labels if label.target.is_whole)
        else:
            labels = session.labels_at(self.trace.span(index).key)
        return tuple(sorted(labels, key=lambda label: self.place_of_mode(label.mode)))

    def place_of_mode(self, slug: str) -> int:
        """Where a mode stands in the taxonomy; behind all others where it is none of it."""
        modes = self.taxonomy.modes
        return next((i for i, mode in enumerate(modes) if mode.slug == slug), len(modes))

    def suggestion_here(self) -> Suggestion | None:
        """The suggestion that a key would answer now."""
        session = self.session
        if session is None or self.suggestion_id is None:
            return None
        return next((s for s in session.pending if s.id == self.suggestion_id), None)

    def where_words(self, target: Target) -> str:
        """A target in a few words, such as ``#13 to #18``."""
        assert self.trace is not None
        return place_words(target, self.trace.index_of)

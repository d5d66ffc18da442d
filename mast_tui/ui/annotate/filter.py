"""Narrowing the timeline to some spans of the trace."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from time import sleep
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static
from textual.worker import get_current_worker

from mast_tui.safe_text import one_line
from mast_tui.traces.model import SpanKind
from mast_tui.ui.annotate.span_filter import (
    EVERYTHING,
    KIND_NAMES,
    Marked,
    Narrowing,
    SpanFilter,
    Stretches,
)
from mast_tui.ui.dialogs.dialog import KeyDialog, KeyRow
from mast_tui.ui.trace_view.gutter import place_of
from mast_tui.ui.wording import plain_title

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen

KIND_KEYS: Final[dict[SpanKind, str]] = {
    SpanKind.MESSAGE: "m",
    SpanKind.REASONING: "r",
    SpanKind.TOOL_CALL: "c",
    SpanKind.TOOL_RESULT: "o",
    SpanKind.LOG: "g",
}
MOST_AGENTS: Final = 9
"""So many agents have a digit for a key."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Something to choose: its key, its name, whether it is chosen, and what choosing it does."""

    key: str
    name: str
    chosen: Callable[[SpanFilter], bool]
    toggled: Callable[[SpanFilter], SpanFilter]


def offers(
    agents: Sequence[str], *, labelled: bool, suggested: bool, matches: bool
) -> tuple[Offer, ...]:
    """What there is to choose; labels, suggestions and matches only where one may see some."""
    rows = [_kind_offer(kind, name) for kind, name in KIND_NAMES.items()]
    flags = [("n", "all but log records", "no_logs"), ("e", "errors", "errors")]
    flags += [("l", "labelled by you", "labelled")] if labelled else []
    flags += [("s", "suggested, not answered", "suggested")] if suggested else []
    flags += [("/", "matches of the search", "matches")] if matches else []
    rows += [
        Offer(key, name, attrgetter(flag), partial(SpanFilter.toggled, flag=flag))
        for key, name, flag in flags
    ]
    if len(agents) > 1:
        rows += [_agent_offer(str(n), agent) for n, agent in enumerate(agents[:MOST_AGENTS], 1)]
    return tuple(rows)


def _kind_offer(kind: SpanKind, name: str) -> Offer:
    return Offer(KIND_KEYS[kind], name, lambda f: kind in f.kinds, lambda f: f.with_kind(kind))


def _agent_offer(key: str, agent: str) -> Offer:
    name = f"by {one_line(agent, 24)}"
    return Offer(key, name, lambda f: agent in f.agents, lambda f: f.with_agent(agent))


class FilterChoice(KeyDialog[bool]):
    """Gives back True where the choice is kept; every change is told to ``changed`` at once."""

    default = "enter"
    dialog_keys: ClassVar = (("x", "clears"), ("Enter", "keeps"), ("Esc", "shows all"))

    def __init__(
        self,
        rows: Sequence[Offer],
        chosen: SpanFilter,
        changed: Callable[[SpanFilter], None],
    ) -> None:
        super().__init__()
        self.chosen = chosen
        self._offers = {row.key: row for row in rows}
        self._offered = {row.key: KeyRow(row.key, classes="offer") for row in rows}
        self._changed = changed
        self._words = ""

    def compose(self) -> ComposeResult:
        """A row for each that can be chosen."""
        with Vertical(classes="dialog filter") as box:
            box.border_title = plain_title("Show only")
            yield from self._offered.values()
            yield Static(classes="hint", id="remaining")

    def on_mount(self) -> None:
        """Show what is chosen."""
        self._show()
        self.say(self._words)

    def say(self, words: str) -> None:
        """Tell how many spans remain."""
        self._words = words
        if self.is_mounted:
            keys = "x clears · Enter keeps · Esc shows all"
            self.query_one("#remaining", Static).update(Content(f"{words}\n{keys}"))

    def _choose(self, chosen: SpanFilter) -> None:
        self.chosen = chosen
        self._show()
        self._changed(chosen)

    def _show(self) -> None:
        for key, offer in self._offers.items():
            mark = "x" if offer.chosen(self.chosen) else " "
            self._offered[key].show(f"[{mark}] {offer.name}")

    def take(self, key: str) -> bool:
        """Toggle the row of a key; Enter keeps the choice."""
        offer = self._offers.get(key)
        if offer is not None:
            self._choose(offer.toggled(self.chosen))
        elif key == "x":
            self._choose(EVERYTHING)
        elif key == "enter":
            self.dismiss(True)
        else:
            return False
        return True


SLICE: Final = 5000
"""Spans looked at in one step."""

NOTHING: Final = "no span is left"


class Filter:
    """Shows only some spans. Labels and suggestions count as they were when they were chosen."""

    def __init__(self, screen: AnnotateScreen) -> None:
        self.chosen: SpanFilter = EVERYTHING
        """What is shown."""
        self._screen = screen
        self._state = screen.state
        self._timeline = screen.timeline
        self._hints = screen.hints
        self._narrowing: Narrowing | None = None
        self._narrows = False
        self._applied = False
        self._said = ""
        self._shown_only: array[int] | None = None
        self._choice: FilterChoice | None = None

    def choose(self) -> None:
        """Choose which spans are shown."""
        if not self._state.has_spans:
            return
        came_from = self._state.index
        session = self._state.session
        rows = offers(
            self._timeline.facts.agents,
            labelled=session is not None,
            # Whoever works blind is offered nothing that would tell of suggestions.
            suggested=session is not None and session.hidden_visible and bool(session.suggestions),
            matches=bool(self._state.needle),
        )
        choice = FilterChoice(rows, self.chosen, self.show_only)
        self._choice = choice

        def answered(kept: bool | None) -> None:
            self._choice = None
            if kept:
                self._state.set_last = "filter"
                self._settle()
            else:
                self.show_only(EVERYTHING)
                self._timeline.go_to(came_from)
                self._hints.say("All spans are shown")
            self._screen.show_span()

        self._screen.app.push_screen(choice, answered)
        choice.say(self._remaining())

    def show_only(self, chosen: SpanFilter) -> None:
        """Show what is chosen, as soon as all spans have been looked at."""
        self._screen.stop_background("filter")
        trace = self._state.trace
        self.chosen = chosen
        self._narrowing, self._narrows, self._applied = None, False, False
        if chosen.shows_all or trace is None:
            self._shown_only = None
            if self._timeline.filtered:
                self._timeline.set_filter(None)
            self.show()
            self._screen.catch_up()
            return
        self._shown_only = array("Q")
        self._narrowing = Narrowing(trace, chosen, self._marked())
        self._narrow_on()
        self.show()

    def drop(self) -> None:
        """Begin with another trace, of which everything is shown."""
        self._screen.stop_background("filter")
        self.chosen, self._narrowing, self._shown_only = EVERYTHING, None, None
        self._narrows = self._applied = False

    def _marked(self) -> Marked:
        trace, session = self._state.trace, self._state.session
        assert trace is not None
        if session is None:
            return Marked(matches=self._state.hits)
        labelled = [place_of(label.target, trace.index_of) for label in session.labels]
        suggested = [place_of(one.target, trace.index_of) for one in session.pending]
        for suggestion in session.pending:
            key = suggestion.evidence_key
            at = None if key is None else trace.index_of(key)
            suggested.append(None if at is None else (at, at))
        return Marked(
            Stretches(filter(None, labelled)), Stretches(filter(None, suggested)), self._state.hits
        )

    def grown(self) -> None:
        """Look at what is new, as the index has come further."""
        if self._narrowing is not None and not self._narrows:
            self._narrow_on()

    def search_changed(self) -> None:
        """What is looked for, or where it was found, has changed."""
        if not self.chosen.matches:
            return
        if self._state.needle:
            self.show_only(self.chosen)
        else:
            self._leave("nothing is looked for any more")

    def _narrow_on(self) -> None:
        assert self._narrowing is not None
        self._narrows = True
        self._screen.in_background(partial(self._narrow, self._narrowing), "filter")

    def _narrow(self, narrowing: Narrowing) -> None:
        worker = get_current_worker()
        indices = array("Q")
        over = False
        while not over and not worker.is_cancelled:
            indices += narrowing.step(SLICE)
            over = narrowing.seen >= len(narrowing.trace)
            sleep(0)  # others have their turn
        if not worker.is_cancelled:
            self._screen.call_later(self._take_narrowed, narrowing, indices, narrowing.seen)

    def _take_narrowed(self, narrowing: Narrowing, indices: array[int], seen: int) -> None:
        """Show these spans, of the first ``seen`` ones, once all have been looked at: so the
        cursor finds the one next to it."""
        if narrowing is not self._narrowing or self._shown_only is None:
            return
        self._shown_only.extend(indices)
        first, self._applied, self._narrows = not self._applied, True, False
        self._timeline.set_filter(self._shown_only)
        self.show()
        self._screen.catch_up()
        if first and self._choice is None:
            self._settle()
        if seen < len(narrowing.trace):
            self.grown()

    def show(self) -> None:
        """Tell in the timeline's title what is shown, and how much that is; in the overview, what
        of the run is on screen now."""
        words = self._remaining() if not self.chosen.shows_all else ""
        title = f"Timeline · {words}" if words else "Timeline"
        self._timeline.border_title = plain_title(title)
        if self._choice is not None:
            self._choice.say(self._remaining())
        if self._timeline.filtered:
            self._screen.call_after_refresh(self._screen.show_place)

    def _remaining(self) -> str:
        known = 0 if self._state.trace is None else len(self._state.trace)
        if self.chosen.shows_all or self._shown_only is None:
            return f"all {known:,} spans"
        count = f"{len(self._shown_only):,}"
        return f"{one_line(self.chosen.words, 60)} · {count} of {known:,}"

    def _settle(self) -> None:
        """The choice is made: say what is shown, once that is known; never show nothing."""
        if self.chosen.shows_all:
            self._hints.say("All spans are shown")
        elif self._applied and not self._shown_only:
            self._leave(NOTHING)
        elif self._applied and not self._screen.search.is_open:
            key_of = self._screen.context.key_of
            self._hints.say(
                f"Shown: {self._remaining()} · {key_of('annotate.filter')} changes that · "
                f"{key_of('everywhere.back')} shows all"
            )
            self._said = self._hints.message

    def forget(self) -> bool:
        """Show everything again; False where that is so already."""
        if self.chosen.shows_all:
            return False
        self.show_only(EVERYTHING)
        self._screen.show_span()
        return True

    def notice(self) -> None:
        """Whoever goes to a span that is not shown leaves the filter, and is told so."""
        if self._applied and not self._timeline.filtered:
            self._leave(f"#{self._state.index + 1} is not in it")

    def _leave(self, why: str) -> None:
        self.show_only(EVERYTHING)
        self._screen.call_later(self._say_left, f"Filter left: {why}")

    def _say_left(self, words: str) -> None:
        """Said before whatever was said of the place that was gone to."""
        said = self._hints.message
        self._hints.say(f"{words} · {said}" if said not in ("", self._said) else words)

"""The filter of the timeline, with its dialog and its application in the background."""

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
    IDLE_SECONDS,
    KIND_NAMES,
    SLOW_SECONDS,
    FilterScan,
    MarkedSpans,
    SpanFilter,
    SpanRanges,
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
MAX_AGENTS: Final = 9
"""The number of agents that have a digit as their key."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A condition in the dialog: its key, its name, and how it is read and switched."""

    key: str
    name: str
    chosen: Callable[[SpanFilter], bool]
    toggled: Callable[[SpanFilter], SpanFilter]


def offers(
    agents: Sequence[str], *, labelled: bool, suggested: bool, matches: bool
) -> tuple[Offer, ...]:
    """Return the conditions to choose from.

    Args:
        agents: The agents of the trace.
        labelled: Whether to offer spans with labels.
        suggested: Whether to offer spans with suggestions.
        matches: Whether to offer matches of the search.
    """
    rows = [_kind_offer(kind, name) for kind, name in KIND_NAMES.items()]
    flags = [
        ("n", "all but log records", "no_logs"),
        ("e", "errors", "errors"),
        ("w", f"slow: took {SLOW_SECONDS:.0f} s or more", "slow"),
        ("i", f"idle: {IDLE_SECONDS:.0f} s without a step before", "idle"),
    ]
    flags += [("l", "labelled by you", "labelled")] if labelled else []
    flags += [("s", "suggested, not answered", "suggested")] if suggested else []
    flags += [("/", "matches of the search", "matches")] if matches else []
    rows += [
        Offer(key, name, attrgetter(flag), partial(SpanFilter.toggled, flag=flag))
        for key, name, flag in flags
    ]
    if len(agents) > 1:
        rows += [_agent_offer(str(n), agent) for n, agent in enumerate(agents[:MAX_AGENTS], 1)]
    return tuple(rows)


def _kind_offer(kind: SpanKind, name: str) -> Offer:
    return Offer(KIND_KEYS[kind], name, lambda f: kind in f.kinds, lambda f: f.with_kind(kind))


def _agent_offer(key: str, agent: str) -> Offer:
    name = f"by {one_line(agent, 24)}"
    return Offer(key, name, lambda f: agent in f.agents, lambda f: f.with_agent(agent))


class FilterChoice(KeyDialog[bool]):
    """The dialog of the filter. It returns True if the user keeps the choice.

    ``changed`` is called with every new choice at once.
    """

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
        self._key_rows = {row.key: KeyRow(row.key, classes="offer") for row in rows}
        self._changed = changed
        self._status = ""

    def compose(self) -> ComposeResult:
        """Yield a row for each condition."""
        with Vertical(classes="dialog filter") as box:
            box.border_title = plain_title("Show only")
            yield from self._key_rows.values()
            yield Static(classes="hint", id="remaining")

    def on_mount(self) -> None:
        """Show the choice."""
        self._show()
        self.say(self._status)

    def say(self, status: str) -> None:
        """Show how many spans remain."""
        self._status = status
        if self.is_mounted:
            keys = "x clears · Enter keeps · Esc shows all"
            self.query_one("#remaining", Static).update(Content(f"{status}\n{keys}"))

    def _choose(self, chosen: SpanFilter) -> None:
        self.chosen = chosen
        self._show()
        self._changed(chosen)

    def _show(self) -> None:
        for key, offer in self._offers.items():
            mark = "x" if offer.chosen(self.chosen) else " "
            self._key_rows[key].show(f"[{mark}] {offer.name}")

    def take(self, key: str) -> bool:
        """Switch the condition of a key; Enter keeps the choice."""
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
"""The number of spans that one step checks."""

NO_MATCH: Final = "no span matches"


class Filter:
    """The filter of the timeline. Labels and suggestions count as they were when it was chosen."""

    def __init__(self, screen: AnnotateScreen) -> None:
        self.chosen: SpanFilter = EVERYTHING
        """The present filter."""
        self._screen = screen
        self._state = screen.state
        self._timeline = screen.timeline
        self._hints = screen.hints
        self._scan: FilterScan | None = None
        self._scanning = False
        self._applied = False
        self._last_message = ""
        self._visible: array[int] | None = None
        self._choice: FilterChoice | None = None

    def choose(self) -> None:
        """Ask which spans to show."""
        if not self._state.has_spans:
            return
        origin = self._state.index
        session = self._state.session
        rows = offers(
            self._timeline.facts.agents,
            labelled=session is not None,
            # A blind annotator must not learn whether there are suggestions.
            suggested=session is not None and session.hidden_visible and bool(session.suggestions),
            matches=bool(self._state.needle),
        )
        choice = FilterChoice(rows, self.chosen, self.apply)
        self._choice = choice

        def answered(keep: bool | None) -> None:
            self._choice = None
            if keep:
                self._state.newest_filter = "filter"
                self._report_choice()
            else:
                self.apply(EVERYTHING)
                self._timeline.go_to(origin)
                self._hints.say("All spans are shown")
            self._screen.show_span()

        self._screen.app.push_screen(choice, answered)
        choice.say(self._status())

    def apply(self, chosen: SpanFilter) -> None:
        """Show the spans that pass, as soon as all have been checked."""
        self._screen.stop_background("filter")
        trace = self._state.trace
        self.chosen = chosen
        self._scan = None
        self._scanning = False
        self._applied = False
        if chosen.shows_all or trace is None:
            self._visible = None
            if self._timeline.filtered:
                self._timeline.set_filter(None)
            self.show_titles()
            self._screen.catch_up()
            return
        self._visible = array("Q")
        self._scan = FilterScan(trace, chosen, self._marked_spans())
        self._continue_scan()
        self.show_titles()

    def reset(self) -> None:
        """Show all spans of another trace."""
        self._screen.stop_background("filter")
        self.chosen = EVERYTHING
        self._scan = None
        self._visible = None
        self._scanning = False
        self._applied = False

    def _marked_spans(self) -> MarkedSpans:
        """Return the spans with labels, suggestions and matches, as the session has them now."""
        trace = self._state.trace
        session = self._state.session
        assert trace is not None
        if session is None:
            return MarkedSpans(matches=self._state.hits)
        labelled = [place_of(label.target, trace.index_of) for label in session.labels]
        suggested = [place_of(suggestion.target, trace.index_of) for suggestion in session.pending]
        for suggestion in session.pending:
            key = suggestion.evidence_key
            index = None if key is None else trace.index_of(key)
            suggested.append(None if index is None else (index, index))
        return MarkedSpans(
            SpanRanges(filter(None, labelled)),
            SpanRanges(filter(None, suggested)),
            self._state.hits,
        )

    def grown(self) -> None:
        """Check the spans that the trace has gained."""
        if self._scan is not None and not self._scanning:
            self._continue_scan()

    def search_changed(self) -> None:
        """Apply the filter again after the search or its matches have changed."""
        if not self.chosen.matches:
            return
        if self._state.needle:
            self.apply(self.chosen)
        else:
            self._remove("the search has ended")

    def _continue_scan(self) -> None:
        assert self._scan is not None
        self._scanning = True
        self._screen.in_background(partial(self._scan_in_background, self._scan), "filter")

    def _scan_in_background(self, scan: FilterScan) -> None:
        """Check the spans that the trace has now, and pass on those that match."""
        worker = get_current_worker()
        indices = array("Q")
        over = False
        while not over and not worker.is_cancelled:
            indices += scan.step(SLICE)
            over = scan.seen >= len(scan.trace)
            sleep(0)  # let other threads run
        if not worker.is_cancelled:
            self._screen.call_later(self._show_scanned, scan, indices, scan.seen)

    def _show_scanned(self, scan: FilterScan, indices: array[int], seen: int) -> None:
        """Show the spans that pass among the first ``seen`` ones.

        They are added only when all have been checked, so that the cursor finds the nearest one.
        """
        if scan is not self._scan or self._visible is None:
            return
        self._visible.extend(indices)
        first = not self._applied
        self._applied = True
        self._scanning = False
        self._timeline.set_filter(self._visible)
        self.show_titles()
        self._screen.catch_up()
        if first and self._choice is None:
            self._report_choice()
        if seen < len(scan.trace):
            self.grown()

    def show_titles(self) -> None:
        """Show the filter and the number of spans in the title, and the visible part in the
        overview.
        """
        status = self._status() if not self.chosen.shows_all else ""
        title = f"Timeline · {status}" if status else "Timeline"
        self._timeline.border_title = plain_title(title)
        if self._choice is not None:
            self._choice.say(self._status())
        if self._timeline.filtered:
            self._screen.call_after_refresh(self._screen.show_position)

    def _status(self) -> str:
        total = 0 if self._state.trace is None else len(self._state.trace)
        if self.chosen.shows_all or self._visible is None:
            return f"all {total:,} spans"
        count = f"{len(self._visible):,}"
        return f"{one_line(self.chosen.description, 60)} · {count} of {total:,}"

    def _report_choice(self) -> None:
        """Say what is shown, once that is known; remove a filter that no span passes."""
        if self.chosen.shows_all:
            self._hints.say("All spans are shown")
        elif self._applied and not self._visible:
            self._remove(NO_MATCH)
        elif self._applied and not self._screen.search.is_open:
            key_of = self._screen.context.key_of
            self._hints.say(
                f"Shown: {self._status()} · {key_of('annotate.filter')} changes that · "
                f"{key_of('everywhere.back')} shows all"
            )
            self._last_message = self._hints.message

    def forget(self) -> bool:
        """Remove the filter; return False if there is none."""
        if self.chosen.shows_all:
            return False
        self.apply(EVERYTHING)
        self._screen.show_span()
        return True

    def remove_if_left(self) -> None:
        """Remove the filter if the cursor went to a span that it excludes."""
        if self._applied and not self._timeline.filtered:
            self._remove(f"#{self._state.index + 1} does not match")

    def _remove(self, reason: str) -> None:
        self.apply(EVERYTHING)
        self._screen.call_later(self._report_removal, f"Filter removed: {reason}")

    def _report_removal(self, text: str) -> None:
        """Show a message before the one of the key that moved the cursor."""
        message = self._hints.message
        self._hints.say(f"{text} · {message}" if message not in ("", self._last_message) else text)

"""Choosing which spans the timeline shows: each row is a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mast_tui.safe_text import one_line
from mast_tui.traces.model import SpanKind
from mast_tui.ui.annotate.span_filter import EVERYTHING, KIND_NAMES, SpanFilter
from mast_tui.ui.dialogs.dialog import KeyDialog, KeyRow
from mast_tui.ui.wording import plain_title

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

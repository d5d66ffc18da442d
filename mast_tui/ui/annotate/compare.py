"""Showing what differs between a step and the earlier one that it repeats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from mast_tui.traces.model import Trace
from mast_tui.ui.dialogs.dialog import LinesDialog
from mast_tui.ui.text.differences import MOST_LINES, Comparison, compare
from mast_tui.ui.trace_view.repeats import twin_of
from mast_tui.ui.trace_view.span_view import Highlight, SpanView
from mast_tui.ui.wording import plain_title

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen

AT_ONCE_CHARS: Final = 1 << 16
"""Texts that are longer together are compared in the background."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A step of a trace and the earlier one that it repeats, by their indices."""

    trace: Trace
    earlier: int
    later: int


class CompareScreen(LinesDialog):
    """The lines that differ, the earlier ones with ``-`` and the later ones with ``+``."""

    dialog_keys: ClassVar = (("j k", "scroll"), ("d b", "pages"), ("Esc", "closes"))
    BINDINGS: ClassVar[list[BindingType]] = [Binding("equals_sign,enter", "close", show=False)]

    def __init__(self, title: str, found: Comparison) -> None:
        super().__init__()
        self._title = title
        self._found = found
        self.lines: SpanView = SpanView(id="differences")

    def compose(self) -> ComposeResult:
        """The lines."""
        with Vertical(classes="dialog tall wide") as box:
            box.border_title = plain_title(self._title)
            cut = f"the first {MOST_LINES:,} lines · " if self._found.cut else ""
            box.border_subtitle = f"{cut}Esc closes"
            yield self.lines

    def on_mount(self) -> None:
        """Fill in the lines."""
        self.lines.show_text(
            self._found.text,
            [Highlight(first, end, "evidence") for first, end in self._found.changed],
            empty="Nothing differs so far.",
            written="diff",
        )


class StepComparison:
    """A dialog with the lines that differ; where none does that is only said."""

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state
        self._hints = screen.hints

    def show(self) -> None:
        """Show what differs between the step under the cursor and the one that it repeats."""
        if not self._state.has_spans:
            return
        assert self._state.trace is not None
        index = self._state.index
        twin = twin_of(self._state.trace, index)
        if twin is None:
            self._hints.say(f"#{index + 1} repeats no step before it")
            return
        pair = Pair(self._state.trace, twin, index)
        try:
            earlier, later = self._state.trace.text(twin), self._state.trace.text(index)
        except OSError as error:
            self._hints.say(f"They cannot be compared: {error.strerror or error}", error=True)
            return
        if len(earlier) + len(later) <= AT_ONCE_CHARS:
            self._tell(pair, compare(earlier, later))
        else:
            self._hints.say(f"Comparing #{twin + 1} with #{index + 1} …")
            work = partial(self._compare, pair, earlier, later)
            self._screen.in_background(work, "compare")

    def _compare(self, pair: Pair, earlier: str, later: str) -> None:
        self._screen.call_later(self._take_compared, pair, compare(earlier, later))

    def _take_compared(self, pair: Pair, found: Comparison) -> None:
        """Show it to whoever has waited for it."""
        if (
            pair.trace is self._state.trace
            and pair.later == self._state.index
            and self._screen.is_current
        ):
            self._hints.clear()
            self._tell(pair, found)

    def _tell(self, pair: Pair, found: Comparison) -> None:
        earlier, later = f"#{pair.earlier + 1}", f"#{pair.later + 1}"
        if found.equal:
            self._hints.say(f"{later} is the same as {earlier} to the letter")
        else:
            self._screen.app.push_screen(CompareScreen(f"{earlier} and then {later}", found))

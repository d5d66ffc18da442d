"""Showing what differs between a step and the earlier one that it repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual import work
from textual.message import Message

from mast_tui.ui.annotate.base import AnnotateBase

if TYPE_CHECKING:
    from mast_tui.traces.model import Trace
    from mast_tui.ui.text.differences import Comparison

AT_ONCE_CHARS: Final = 1 << 16
"""Texts that are longer together are compared in the background."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A step of a trace and the earlier one that it repeats, by their indices."""

    trace: Trace
    earlier: int
    later: int


class Comparing(AnnotateBase):
    """A dialog with the lines that differ; where none does that is only said."""

    @dataclass
    class Compared(Message):
        """What differs in two steps."""

        pair: Pair
        found: Comparison

    def action_compare(self) -> None:
        """Show what differs between the step under the cursor and the one that it repeats."""
        if not self.has_spans:
            return
        assert self.trace is not None
        from mast_tui.ui.text.differences import compare
        from mast_tui.ui.trace_view.repeats import twin_of

        index = self.index
        twin = twin_of(self.trace, index)
        if twin is None:
            self.hints.say(f"#{index + 1} repeats no step before it")
            return
        pair = Pair(self.trace, twin, index)
        try:
            earlier, later = self.trace.text(twin), self.trace.text(index)
        except OSError as error:
            self.hints.say(f"They cannot be compared: {error.strerror or error}", error=True)
            return
        if len(earlier) + len(later) <= AT_ONCE_CHARS:
            self._show_difference(pair, compare(earlier, later))
        else:
            self.hints.say(f"Comparing #{twin + 1} with #{index + 1} …")
            self._compare(pair, earlier, later)

    @work(thread=True, group="compare", exclusive=True)
    def _compare(self, pair: Pair, earlier: str, later: str) -> None:
        from mast_tui.ui.text.differences import compare

        self.post_message(self.Compared(pair, compare(earlier, later)))

    def on_comparing_compared(self, message: Compared) -> None:
        """Show it to whoever has waited for it."""
        pair = message.pair
        if pair.trace is self.trace and pair.later == self.index and self.is_current:
            self.hints.clear()
            self._show_difference(pair, message.found)

    def _show_difference(self, pair: Pair, found: Comparison) -> None:
        from mast_tui.ui.annotate.comparison_dialog import CompareScreen

        earlier, later = f"#{pair.earlier + 1}", f"#{pair.later + 1}"
        if found.equal:
            self.hints.say(f"{later} is the same as {earlier} to the letter")
        else:
            self.app.push_screen(CompareScreen(f"{earlier} and then {later}", found))

"""Showing what differs between a step and the earlier one that it repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from mast_tui.ui.dialogs.dialog import LinesDialog
from mast_tui.ui.text.differences import MOST_LINES, TextComparison, compare
from mast_tui.ui.text.highlighting import TextPart
from mast_tui.ui.trace_view.repeats import earlier_repetition
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.wording import plain_title

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen

AT_ONCE_CHARS: Final = 1 << 16
"""Texts that are longer together are compared in the background."""


class CompareScreen(LinesDialog):
    """The lines that differ, the earlier ones with ``-`` and the later ones with ``+``."""

    dialog_keys: ClassVar = (("j k", "scroll"), ("d b", "pages"), ("Esc", "closes"))
    BINDINGS: ClassVar[list[BindingType]] = [Binding("equals_sign,enter", "close", show=False)]

    def __init__(self, title: str, found: TextComparison) -> None:
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
            [TextPart(first, end, "evidence") for first, end in self._found.changed],
            empty="Nothing differs so far.",
            text_format="diff",
        )


def compare_step(screen: AnnotateScreen) -> None:
    """Show what differs between the step under the cursor and the one that it repeats.

    Where nothing differs that is only said.
    """
    state, hints = screen.state, screen.hints
    trace, index = state.trace, state.index
    if trace is None or not state.has_spans:
        return
    twin = earlier_repetition(trace, index)
    if twin is None:
        hints.say(f"#{index + 1} repeats no step before it")
        return
    try:
        earlier, later = trace.text(twin), trace.text(index)
    except OSError as error:
        hints.say(f"They cannot be compared: {error.strerror or error}", error=True)
        return

    def tell(found: TextComparison) -> None:
        if found.equal:
            hints.say(f"#{index + 1} is the same as #{twin + 1} to the letter")
        else:
            screen.app.push_screen(CompareScreen(f"#{twin + 1} and then #{index + 1}", found))

    def tell_whoever_waits(found: TextComparison) -> None:
        if trace is state.trace and index == state.index and screen.is_current:
            hints.clear()
            tell(found)

    def compare_long() -> None:
        screen.call_later(tell_whoever_waits, compare(earlier, later))

    if len(earlier) + len(later) <= AT_ONCE_CHARS:
        tell(compare(earlier, later))
    else:
        hints.say(f"Comparing #{twin + 1} with #{index + 1} …")
        screen.in_background(compare_long, "compare")

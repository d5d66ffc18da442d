"""The differences between a step and the earlier one that it repeats."""

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
"""The length of both texts up to which they are compared at once."""


class CompareScreen(LinesDialog):
    """The lines that differ: earlier ones with ``-``, later ones with ``+``."""

    dialog_keys: ClassVar = (("j k", "scroll"), ("d b", "pages"), ("Esc", "closes"))
    BINDINGS: ClassVar[list[BindingType]] = [Binding("equals_sign,enter", "close", show=False)]

    def __init__(self, title: str, comparison: TextComparison) -> None:
        super().__init__()
        self._title = title
        self._comparison = comparison
        self.lines: SpanView = SpanView(id="differences")

    def compose(self) -> ComposeResult:
        """Yield the lines."""
        with Vertical(classes="dialog tall wide") as box:
            box.border_title = plain_title(self._title)
            cut = f"the first {MOST_LINES:,} lines · " if self._comparison.cut else ""
            box.border_subtitle = f"{cut}Esc closes"
            yield self.lines

    def on_mount(self) -> None:
        """Fill in the lines."""
        self.lines.show_text(
            self._comparison.text,
            [TextPart(first, end, "evidence") for first, end in self._comparison.changed],
            empty="No differences so far.",
            text_format="diff",
        )


def compare_step(screen: AnnotateScreen) -> None:
    """Show the differences between the step under the cursor and the one that it repeats."""
    state = screen.state
    hints = screen.hints
    trace = state.trace
    index = state.index
    if trace is None or not state.has_spans:
        return
    earlier_index = earlier_repetition(trace, index)
    if earlier_index is None:
        hints.say(f"#{index + 1} repeats no step before it")
        return
    try:
        earlier = trace.text(earlier_index)
        later = trace.text(index)
    except OSError as error:
        hints.say(f"They cannot be compared: {error.strerror or error}", error=True)
        return

    def show(comparison: TextComparison) -> None:
        if comparison.equal:
            hints.say(f"#{index + 1} is identical to #{earlier_index + 1}")
        else:
            screen.app.push_screen(
                CompareScreen(f"#{earlier_index + 1} and then #{index + 1}", comparison)
            )

    def show_if_unmoved(comparison: TextComparison) -> None:
        if trace is state.trace and index == state.index and screen.is_current:
            hints.clear()
            show(comparison)

    def compare_long() -> None:
        screen.call_later(show_if_unmoved, compare(earlier, later))

    if len(earlier) + len(later) <= AT_ONCE_CHARS:
        show(compare(earlier, later))
    else:
        hints.say(f"Comparing #{earlier_index + 1} with #{index + 1} …")
        screen.in_background(compare_long, "compare")

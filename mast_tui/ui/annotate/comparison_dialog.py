"""What differs between a step and the earlier one that it repeats."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from mast_tui.ui.styles import DIALOGS
from mast_tui.ui.text.differences import MOST_LINES, Comparison
from mast_tui.ui.titles import plain_title
from mast_tui.ui.trace_view.span_view import Highlight, SpanView


class CompareScreen(ModalScreen[None]):
    """The lines that differ, the earlier ones with ``-`` and the later ones with ``+``."""

    CSS_PATH = DIALOGS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,equals_sign,q,Q,enter", "leave", show=False),
        Binding("down,j", "scroll_text(1)", show=False),
        Binding("up,k", "scroll_text(-1)", show=False),
        Binding("pagedown,space,d", "scroll_text(15)", show=False),
        Binding("pageup,b", "scroll_text(-15)", show=False),
    ]

    def __init__(self, title: str, found: Comparison) -> None:
        super().__init__()
        self._title = title
        self._found = found

    def compose(self) -> ComposeResult:
        """The lines."""
        with Vertical(classes="dialog tall wide") as box:
            box.border_title = plain_title(self._title)
            cut = f"the first {MOST_LINES:,} lines · " if self._found.cut else ""
            box.border_subtitle = f"{cut}Esc closes"
            yield SpanView(id="differences")

    def on_mount(self) -> None:
        """Fill in the lines."""
        self.query_one(SpanView).show_text(
            self._found.text,
            [Highlight(first, end, "evidence") for first, end in self._found.changed],
            empty="Nothing differs so far.",
        )

    def action_scroll_text(self, rows: int) -> None:
        """Scroll."""
        self.query_one(SpanView).move_by(rows)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)

"""What all dialogs share, and those that show a text to scroll."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from mast_tui.ui.styles import DIALOGS
from mast_tui.ui.widgets.virtual_lines import VirtualLines

Result = TypeVar("Result")


class Dialog(ModalScreen[Result | None]):
    """A dialog that Escape leaves without an answer."""

    CSS_PATH = DIALOGS
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def action_leave(self) -> None:
        """No answer."""
        self.dismiss(None)


class LinesDialog(Dialog[None]):
    """Lines to scroll, by the keys that move on every screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,Q", "close", show=False),
        Binding("down,j", "scroll_by(1)", show=False),
        Binding("up,k", "scroll_by(-1)", show=False),
        Binding("pagedown,space,d", "scroll_pages(1)", show=False),
        Binding("pageup,b", "scroll_pages(-1)", show=False),
        Binding("ctrl+d", "scroll_halves(1)", show=False),
        Binding("ctrl+u", "scroll_halves(-1)", show=False),
        Binding("g,home", "scroll_to_start", show=False),
        Binding("G,end", "scroll_to_last", show=False),
    ]

    @property
    @abstractmethod
    def lines(self) -> VirtualLines:
        """What is scrolled."""

    def action_close(self) -> None:
        """Close, whatever is looked for."""
        self.dismiss(None)

    def action_scroll_by(self, rows: int) -> None:
        """Scroll by rows."""
        self.lines.move_by(rows)

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll by screens."""
        self.lines.move_page(pages)

    def action_scroll_halves(self, halves: int) -> None:
        """Scroll by half screens."""
        self.lines.move_half(halves)

    def action_scroll_to_start(self) -> None:
        """Go to the first row."""
        self.lines.move_to(0)

    def action_scroll_to_last(self) -> None:
        """Go to the last row."""
        self.lines.move_to_end()

"""All keys of a screen, from the registry of actions."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from mast_tui.ui.actions.registry import Keymap, Where, actions_for, keys_of, shown
from mast_tui.ui.services.judging import HOW_TO_HAVE_A_MODEL
from mast_tui.ui.styles import DIALOGS
from mast_tui.ui.trace_view.span_view import SpanView

RUNS_A_JUDGE: Final = (Where.LIBRARY, Where.ANNOTATE, Where.RUNS)
"""Screens on which J runs a judge; elsewhere it tells what one has said."""


def help_text(where: Where, keymap: Keymap) -> str:
    """The keys of one screen and those that work everywhere, a line each; where a judge can be run
    also how a model is configured."""
    lines: list[str] = []
    for place in dict.fromkeys((where, Where.EVERYWHERE)):
        if lines:
            lines.append("")
        lines.append(place.value.capitalize().replace("_", " "))
        digits_shown = False
        for action in actions_for(place):
            keys = "  ".join(shown(key) for key in keys_of(action, keymap))
            if action.name.startswith(("digit_", "side_")):
                if digits_shown:
                    continue
                digits_shown = True
                keys = "0…9  0…9" if action.name.startswith("digit_") else "1…9"
            lines.append(f"  {keys:<12} {action.help}")
    if where in RUNS_A_JUDGE:
        lines += ["", HOW_TO_HAVE_A_MODEL]
    return "\n".join(lines)


class HelpScreen(ModalScreen[None]):
    """Any of the keys that open or leave it closes it."""

    CSS_PATH = DIALOGS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,q,Q,enter", "leave", show=False),
        Binding("down,j", "scroll_text(1)", show=False),
        Binding("up,k", "scroll_text(-1)", show=False),
        Binding("pagedown,space,d", "scroll_text(15)", show=False),
        Binding("pageup,b", "scroll_text(-15)", show=False),
    ]

    def __init__(self, where: Where, keymap: Keymap) -> None:
        super().__init__()
        self._where = where
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        """The keys."""
        with Vertical(classes="dialog tall") as box:
            box.border_title = "Keys"
            box.border_subtitle = "Esc closes"
            yield SpanView(id="keys")

    def on_mount(self) -> None:
        """Fill in the keys."""
        self.query_one(SpanView).show_text(help_text(self._where, self._keymap))

    def action_scroll_text(self, rows: int) -> None:
        """Scroll."""
        self.query_one(SpanView).move_by(rows)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)

"""Going to a number, a span's key, a mode or an action by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_tui.ui.actions.registry import Where, actions_for, keys_of, shown
from mast_tui.ui.dialogs.finder import Choice, Finder

if TYPE_CHECKING:
    from mast_tui.ui.navigation import Rooms


def go_somewhere(app: Rooms) -> None:
    """Ask where to go, and go there."""
    screen = app.screen
    where = getattr(screen, "where", Where.EVERYWHERE)
    choices = [
        Choice(
            f"action {action.command}",
            shown(keys_of(action, app.keys_set)[0]) if keys_of(action, app.keys_set) else "",
            action.help,
            action.title,
        )
        for action in (*actions_for(where), *actions_for(Where.EVERYWHERE))
        if not action.name.startswith(("digit_", "side_"))
    ]

    async def chosen(value: str | None) -> None:
        if value is None:
            return
        if value.startswith("action "):
            await screen.run_action(value.removeprefix("action "))
            return
        go = getattr(screen, "go_to_place", None)
        if go is None or not go(value):
            app.complain(f"There is no place and no action {value!r} here")

    app.push_screen(
        Finder("Go to", choices, placeholder="#number, a span's key, or an action", free=True),
        chosen,
    )

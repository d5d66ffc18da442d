"""Going to a number, a span's key, a mode or an action by name."""

from __future__ import annotations

from textual.screen import Screen

from mast_tui.ui.actions.registry import Where, actions_for, keys_of, shown
from mast_tui.ui.context import context_of
from mast_tui.ui.dialogs.finder import Choice, Finder


def go_somewhere(screen: Screen[object]) -> None:
    """Ask where to go, and go there."""
    context = context_of(screen)
    where = getattr(screen, "where", Where.EVERYWHERE)
    choices = [
        Choice(
            f"action {action.command}",
            shown(keys[0]) if (keys := keys_of(action, context.keys_set)) else "",
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
            context.complain(f"There is no place and no action {value!r} here")

    screen.app.push_screen(
        Finder("Go to", choices, placeholder="#number, a span's key, or an action", free=True),
        chosen,
    )

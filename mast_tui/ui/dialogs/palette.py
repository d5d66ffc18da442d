"""Every action by name, with its keys, and the places of a screen by number or key."""

from __future__ import annotations

from mast_tui.ui.actions.registry import Keymap, Where, actions_for, keys_of, shown
from mast_tui.ui.dialogs.finder import Choice, Finder


class Palette(Finder):
    """Gives back the id of an action, or what was typed where that is a place, or None."""

    def __init__(self, where: Where, keymap: Keymap) -> None:
        """List what can be done on a screen.

        Args:
            where: Which screen it is.
            keymap: Keys that the person has set.
        """
        choices = [
            Choice(action.id, " ".join(map(shown, keys_of(action, keymap))), action.help)
            for place in dict.fromkeys((where, Where.EVERYWHERE))
            for action in actions_for(place)
            if not action.name.startswith(("digit_", "side_"))
        ]
        hint = "what to do, a #number or a span's key"
        super().__init__("Go to", choices, placeholder=hint, free=True)

"""What keys do, once: bindings, footer, help, palette and docs/keys.md come from here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from textual.binding import Binding, BindingType

from mast_tui.ui.actions.action import Action as Action
from mast_tui.ui.actions.action import Where as Where
from mast_tui.ui.actions.adjudicate import ADJUDICATE
from mast_tui.ui.actions.annotate import ANNOTATE
from mast_tui.ui.actions.everywhere import EVERYWHERE
from mast_tui.ui.actions.judge_runs import COMPARISON, RUN, RUNS
from mast_tui.ui.actions.library import LIBRARY
from mast_tui.ui.actions.open_codes import OPEN_CODES
from mast_tui.ui.actions.reports import (
    AGREEMENT,
    AGREEMENT_TRACES,
    SIGNATURE_TRACES,
    SIGNATURES,
)
from mast_tui.ui.actions.side_by_side import SIDE_BY_SIDE
from mast_tui.ui.actions.study import GUIDELINES, STUDY

Keymap = Mapping[str, tuple[str, ...]]
"""Keys that a person has set, by action id."""


ACTIONS: Final[tuple[Action, ...]] = (
    EVERYWHERE
    + LIBRARY
    + ANNOTATE
    + ADJUDICATE
    + AGREEMENT
    + AGREEMENT_TRACES
    + RUNS
    + RUN
    + COMPARISON
    + SIGNATURES
    + SIGNATURE_TRACES
    + GUIDELINES
    + STUDY
    + OPEN_CODES
    + SIDE_BY_SIDE
)
"""Every action, in the order in which help and docs/keys.md show them."""

_SHOWN: Final = {
    "up": "↑", "down": "↓", "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End",
    "escape": "Esc", "enter": "Enter", "space": "Space", "tab": "Tab", "backspace": "⌫",
    "f1": "F1", "left": "←", "right": "→",
}  # fmt: skip


def shown(key: str) -> str:
    """How a key is written for people."""
    for modifier, sign in (("ctrl+", "^"), ("shift+", "⇧")):
        if key.startswith(modifier):
            return sign + shown(key.removeprefix(modifier))
    return _SHOWN.get(key, key)


def actions_for(where: Where) -> tuple[Action, ...]:
    """The actions of one screen, without those that work everywhere."""
    return tuple(action for action in ACTIONS if action.where is where)


def keys_of(action: Action, keymap: Keymap) -> tuple[str, ...]:
    """The keys that run the action, with those that a person has set in place of our own."""
    return keymap.get(action.id, action.keys)


def key_shown(action_id: str, keymap: Keymap) -> str:
    """Return the first key that runs an action, as it is written for people.

    Args:
        action_id: The action, such as ``everywhere.export``.
        keymap: The keys that the user has set.

    Returns:
        The key; nothing where the user has taken all keys off the action.

    Raises:
        KeyError: There is no such action.
    """
    action = find_action(action_id)
    if action is None:
        raise KeyError(action_id)
    return next((shown(key) for key in keys_of(action, keymap)), "")


def _joined(keys: Iterable[str]) -> str:
    """Keys as Textual takes them: separated by commas, so that a comma goes by its name."""
    return ",".join("comma" if key == "," else key for key in keys)


def bindings_for(*places: Where) -> list[BindingType]:
    """Textual bindings for the actions of these places; a keymap may change their keys later."""
    return [
        Binding(
            _joined(action.keys),
            action.command,
            action.title,
            show=False,
            tooltip=action.help,
            priority=action.priority,
            id=action.id,
        )
        for action in ACTIONS
        if action.where in places
    ]


def textual_keymap(keymap: Keymap) -> dict[str, str]:
    """A person's keys for ``App.set_keymap``, which knows characters by their names only."""
    return {
        name: ",".join(made.key for made in Binding.make_bindings([Binding(_joined(keys), "")]))
        for name, keys in keymap.items()
    }


def share_a_screen(one: str, other: str) -> bool:
    """Whether two different actions can be taken on one screen, given their ids."""
    places = {one.partition(".")[0], other.partition(".")[0]}
    return one != other and (len(places) == 1 or Where.EVERYWHERE in places)


def find_action(command_id: str) -> Action | None:
    """The action with this id, or None."""
    return next((action for action in ACTIONS if action.id == command_id), None)

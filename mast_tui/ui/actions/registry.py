"""What keys do, once: bindings, footer, help, palette and docs/keys.md come from here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from textual.binding import Binding, BindingType

from mast_tui.ui.actions.tables import (
    ADJUDICATE,
    AGREEMENT,
    AGREEMENT_TRACES,
    ANNOTATE,
    COMPARISON,
    EVERYWHERE,
    GUIDELINES,
    LIBRARY,
    OPEN_CODES,
    RUN,
    RUNS,
    SIDE_BY_SIDE,
    SIGNATURE_TRACES,
    SIGNATURES,
    STUDY,
    TEACHING,
)
from mast_tui.ui.actions.tables import KeyAction as KeyAction
from mast_tui.ui.actions.tables import Where as Where

Keymap = Mapping[str, tuple[str, ...]]
"""Keys that a person has set, by action id."""

KeyOf = Callable[[str], str]
"""A function that returns how the key of an action is shown, given the id of the action."""

ACTIONS: Final[tuple[KeyAction, ...]] = (
    EVERYWHERE
    + LIBRARY
    + ANNOTATE
    + ADJUDICATE
    + AGREEMENT
    + AGREEMENT_TRACES
    + RUNS
    + RUN
    + COMPARISON
    + TEACHING
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
    "left": "←", "right": "→",
}  # fmt: skip

_FUNCTION_KEY: Final = re.compile(r"f\d{1,2}")


def shown(key: str) -> str:
    """How a key is written for people."""
    for modifier, sign in (("ctrl+", "^"), ("shift+", "⇧")):
        if key.startswith(modifier):
            return sign + shown(key.removeprefix(modifier))
    if _FUNCTION_KEY.fullmatch(key):
        return key.upper()
    return _SHOWN.get(key, key)


def actions_for(where: Where) -> tuple[KeyAction, ...]:
    """The actions of one screen, without those that work everywhere."""
    return tuple(action for action in ACTIONS if action.where is where)


def keys_of(action: KeyAction, keymap: Keymap) -> tuple[str, ...]:
    """The keys that run the action, with those that a person has set in place of our own."""
    return keymap.get(action.id, action.keys)


def key_of(action_id: str, keymap: Keymap) -> str:
    """Return how the footer and messages show the key of an action.

    Some terminals keep control and function keys for themselves, so another key of the action is
    shown where it has one.

    Args:
        action_id: The id of the action, such as ``annotate.finish``.
        keymap: The keys that the user has set.

    Returns:
        One key of the action, or nothing where it has none.

    Raises:
        ValueError: There is no such action.
    """
    action = find_action(action_id)
    if action is None:
        raise ValueError(f"there is no action {action_id}")
    keys = keys_of(action, keymap)
    plain = (
        key for key in keys if not key.startswith("ctrl+") and not _FUNCTION_KEY.fullmatch(key)
    )
    return shown(next(plain, keys[0])) if keys else ""


def key_while_typing(action_id: str, keymap: Keymap) -> str:
    """Return how a key of an action is shown that works on a line of text.

    Args:
        action_id: The id of the action.
        keymap: The keys that the user has set.

    Returns:
        A key that types nothing, or nothing where the action has none.
    """
    action = find_action(action_id)
    keys = () if action is None else keys_of(action, keymap)
    return next((shown(key) for key in keys if len(key) > 1 and key != "space"), "")


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


def find_action(command_id: str) -> KeyAction | None:
    """The action with this id, or None."""
    return next((action for action in ACTIONS if action.id == command_id), None)

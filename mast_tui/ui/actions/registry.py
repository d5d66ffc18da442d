"""The registry of actions, from which bindings, footer, help, palette and docs/keys.md are made."""

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
"""The keys that the user has set, by action id."""

KeyOf = Callable[[str], str]
"""A function that returns the text of the key of an action, given the id of the action."""

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

_KEY_SIGNS: Final = {
    "up": "↑", "down": "↓", "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End",
    "escape": "Esc", "enter": "Enter", "space": "Space", "tab": "Tab", "backspace": "⌫",
    "left": "←", "right": "→",
}  # fmt: skip

_FUNCTION_KEY: Final = re.compile(r"f\d{1,2}")


def key_text(key: str) -> str:
    """Return the text of a key on screen: ``^p`` for ``ctrl+p``."""
    for modifier, sign in (("ctrl+", "^"), ("shift+", "⇧")):
        if key.startswith(modifier):
            return sign + key_text(key.removeprefix(modifier))
    if _FUNCTION_KEY.fullmatch(key):
        return key.upper()
    return _KEY_SIGNS.get(key, key)


def actions_for(where: Where) -> tuple[KeyAction, ...]:
    """Return the actions of one screen, without the actions that all screens have."""
    return tuple(action for action in ACTIONS if action.where is where)


def keys_of(action: KeyAction, keymap: Keymap) -> tuple[str, ...]:
    """Return the keys of an action: the keys that the user has set, or the default keys.

    Args:
        action: The action.
        keymap: The keys that the user has set.
    """
    return keymap.get(action.id, action.keys)


def key_of(action_id: str, keymap: Keymap) -> str:
    """Return the text of one key of an action, for the footer and for messages.

    Some terminals keep control and function keys for themselves, so another key of the action is
    preferred.

    Args:
        action_id: The id of the action, such as ``annotate.finish``.
        keymap: The keys that the user has set.

    Returns:
        The text of the key; empty if the action has no key.

    Raises:
        ValueError: There is no such action.
    """
    action = find_action(action_id)
    if action is None:
        raise ValueError(f"there is no action {action_id}")
    keys = keys_of(action, keymap)
    plain_keys = (
        key for key in keys if not key.startswith("ctrl+") and not _FUNCTION_KEY.fullmatch(key)
    )
    return key_text(next(plain_keys, keys[0])) if keys else ""


def key_while_typing(action_id: str, keymap: Keymap) -> str:
    """Return the text of a key of an action that works while the user types.

    Args:
        action_id: The id of the action.
        keymap: The keys that the user has set.

    Returns:
        The text of a key that types no character; empty if the action has no such key.
    """
    action = find_action(action_id)
    keys = () if action is None else keys_of(action, keymap)
    return next((key_text(key) for key in keys if len(key) > 1 and key != "space"), "")


def _textual_keys(keys: Iterable[str]) -> str:
    """Return keys as Textual expects them: separated by commas, a comma itself by its name."""
    return ",".join("comma" if key == "," else key for key in keys)


def bindings_for(*screens: Where) -> list[BindingType]:
    """Return the Textual bindings for the actions of some screens, with their default keys."""
    return [
        Binding(
            _textual_keys(action.keys),
            action.command,
            action.title,
            show=False,
            tooltip=action.help,
            priority=action.priority,
            id=action.id,
        )
        for action in ACTIONS
        if action.where in screens
    ]


def textual_keymap(keymap: Keymap) -> dict[str, str]:
    """Return the user's keys for ``App.set_keymap``, which expects names for characters."""
    texts_by_action = {}
    for action_id, keys in keymap.items():
        bindings = Binding.make_bindings([Binding(_textual_keys(keys), "")])
        texts_by_action[action_id] = ",".join(binding.key for binding in bindings)
    return texts_by_action


def share_a_screen(action_id: str, other_id: str) -> bool:
    """Return whether two actions are different and can be run on the same screen.

    Args:
        action_id: The id of an action.
        other_id: The id of another action.
    """
    screen, _, _ = action_id.partition(".")
    other_screen, _, _ = other_id.partition(".")
    is_same_screen = screen == other_screen or Where.EVERYWHERE in (screen, other_screen)
    return action_id != other_id and is_same_screen


def find_action(action_id: str) -> KeyAction | None:
    """Return the action with an id, or None."""
    return next((action for action in ACTIONS if action.id == action_id), None)

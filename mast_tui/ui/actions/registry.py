"""The registry of actions, from which bindings, footer, help, palette and docs/keys.md are made.

It also checks the actions, keys and themes of ``config.toml``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from textual.binding import Binding, BindingType
from textual.keys import KEY_NAME_REPLACEMENTS, Keys
from textual.theme import BUILTIN_THEMES

from mast_tui.configuration import Configuration, DottedKey, name_hint
from mast_tui.ui.actions.tables import ACTIONS as ACTIONS
from mast_tui.ui.actions.tables import KeyAction as KeyAction
from mast_tui.ui.actions.tables import Where as Where

Keymap = Mapping[str, tuple[str, ...]]
"""The keys that the user has set, by action id."""

KeyOf = Callable[[str], str]
"""A function that returns the text of an action's key, given the id of the action."""

_KEY_SIGNS: Final = {
    "up": "↑", "down": "↓", "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End",
    "escape": "Esc", "enter": "Enter", "space": "Space", "tab": "Tab", "backspace": "⌫",
    "left": "←", "right": "→",
}  # fmt: skip

_FUNCTION_KEY: Final = re.compile(r"f\d{1,2}")

_ACTION_BY_ID: Final = {action.id: action for action in ACTIONS}


def key_text(key: str) -> str:
    """Return the text of a key on screen: ``^p`` for ``ctrl+p``."""
    for modifier, sign in (("ctrl+", "^"), ("shift+", "⇧")):
        if key.startswith(modifier):
            return sign + key_text(key.removeprefix(modifier))
    if _FUNCTION_KEY.fullmatch(key):
        return key.upper()
    return _KEY_SIGNS.get(key, key)


def actions_for(where: Where) -> tuple[KeyAction, ...]:
    """Return the actions of one screen, without those of all screens."""
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

    Keys without Ctrl and function keys come first, because some terminals use those themselves.

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
    """Return the text of an action's key that works while the user types.

    Args:
        action_id: The id of the action.
        keymap: The keys that the user has set.

    Returns:
        A key that types no character; empty if the action has none.
    """
    action = find_action(action_id)
    keys = () if action is None else keys_of(action, keymap)
    return next((key_text(key) for key in keys if len(key) > 1 and key != "space"), "")


def hint_while_typing(action_id: str, effect: str, keymap: Keymap) -> str:
    """Return the end of a message about an action's key that works while the user types.

    Args:
        action_id: The id of the action.
        effect: The effect of the key.
        keymap: The keys that the user has set.

    Returns:
        A text such as `` · ^r leaves``; empty if the action has no such key.
    """
    key = key_while_typing(action_id, keymap)
    return f" · {key} {effect}" if key else ""


def _textual_keys(keys: Iterable[str]) -> str:
    """Return keys as Textual expects them: separated by commas, with a comma itself by name."""
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
    """Return the user's keys for ``App.set_keymap``, which takes names instead of characters."""
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
    return _ACTION_BY_ID.get(action_id)


_MODIFIERS: Final = re.compile(r"(?:(?:ctrl|alt|shift|super|meta|hyper)\+)+(?=.)")

_SCROLL: Final = {"text_down": ("f8",), "text_up": ("f7",)}
"""The keys of the preset ``plain`` for actions with nothing but letters as default keys."""

_MOTIONS: Final = {
    *("up", "down", "top", "bottom", "left", "right"),
    *("page_up", "page_down", "half_up", "half_down"),
}


def preset_keys(preset: str) -> Keymap:
    """Return the keys of a preset that differ from those of the preset ``vim``, by action id."""
    if preset != "plain":
        return {}
    scroll_keys = {action.id: _SCROLL[action.name] for action in ACTIONS if action.name in _SCROLL}
    # One letter is the name of a letter key, and letters move the cursor only in ``vim``.
    return scroll_keys | {
        action.id: tuple(key for key in action.keys if len(key) > 1)
        for action in ACTIONS
        if action.name in _MOTIONS
    }


def checked(configuration: Configuration) -> Configuration:
    """Return the configuration with the keys of its preset and with its problems.

    Unknown actions, keys and themes are left out.
    """
    problems: list[tuple[DottedKey, str]] = []
    valid_keys: dict[str, tuple[str, ...]] = {}
    for name, keys in configuration.keys.items():
        problem = _key_problem(name, keys)
        if problem is None:
            valid_keys[name] = keys
        else:
            problems.append((_location_of(configuration, name), problem))
    keymap = {**preset_keys(configuration.preset), **valid_keys}
    problems += [
        (_location_of(configuration, name), text) for name, text in _duplicate_keys(keymap)
    ]
    theme = configuration.theme
    if theme is not None and theme not in BUILTIN_THEMES:
        problems.append(
            (("theme",), f'there is no theme "{theme}"{name_hint(theme, BUILTIN_THEMES)}')
        )
        theme = None
    return configuration.with_problems(problems, keys=keymap, theme=theme)


def _key_problem(name: str, keys: Sequence[str]) -> str | None:
    """Return why keys cannot be set for an action, or None if they can."""
    if find_action(name) is None:
        action_ids = (action.id for action in ACTIONS)
        hint = name_hint(name, action_ids, "the palette (ctrl+p) names them all")
        return f"there is no action {name}{hint}"
    unknown_key = next((key for key in keys if not _is_key(key)), None)
    if unknown_key is None:
        return None
    example = 'a key is written as in "m", "ctrl+n" or "pageup"'
    hint = name_hint(unknown_key, (key.value for key in Keys), example)
    return f'{name}: there is no key "{unknown_key}"{hint}'


class KeySetting(NamedTuple):
    """The keys of an action.

    Attributes:
        name: The id of the action.
        keys: The keys.
        is_custom: Whether the user has set the keys.
        help: The effect of the action.
    """

    name: str
    keys: tuple[str, ...]
    is_custom: bool
    help: str


def key_settings(configuration: Configuration) -> list[KeySetting]:
    """Return the keys of every action in a checked configuration."""
    preset = preset_keys(configuration.preset)
    settings = []
    for action in ACTIONS:
        keys = keys_of(action, configuration.keys)
        is_custom = keys != preset.get(action.id, action.keys)
        settings.append(KeySetting(action.id, keys, is_custom, action.help))
    return settings


def _location_of(configuration: Configuration, name: str) -> DottedKey:
    """Return the dotted key of an action's keys in the file.

    The id of the action may be one key (``"annotate.finish"``) or two.
    """
    quoted_key = ("keys", name)
    return quoted_key if quoted_key in configuration.lines else ("keys", *name.split("."))


def _is_key(key: str) -> bool:
    """Return whether a text is a key of Textual, perhaps with modifiers."""
    name = _MODIFIERS.sub("", key)
    if len(name) == 1:
        return not name.isspace()
    key_names = {*KEY_NAME_REPLACEMENTS.values(), *(key.value for key in Keys)}
    return name in key_names or _is_character(name)


def _is_character(name: str) -> bool:
    """Return whether a text is Textual's name of a character, such as ``question_mark``."""
    try:
        return name.islower() and bool(unicodedata.lookup(name.replace("_", " ")))
    except KeyError:
        return False


def _duplicate_keys(keymap: Keymap) -> Iterator[tuple[str, str]]:
    """Yield the action id and the problem of each set key that is used twice on a screen.

    A pair of set actions is reported once, for the action with the smaller id.
    """
    for name, keys in keymap.items():
        for other_action in ACTIONS:
            is_reported_there = other_action.id in keymap and other_action.id <= name
            if not is_reported_there and share_a_screen(name, other_action.id):
                for key in sorted(set(keys) & set(keys_of(other_action, keymap))):
                    yield name, f'"{key}" is a key of both {name} and {other_action.id}'

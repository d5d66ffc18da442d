"""The settings of ``config.toml`` that only the screens can check: actions, keys, themes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from textual.keys import KEY_NAME_REPLACEMENTS, Keys
from textual.theme import BUILTIN_THEMES

from mast_tui.configuration import Configuration, DottedKey, name_hint
from mast_tui.ui.actions.registry import ACTIONS, Keymap, find_action, keys_of, share_a_screen

_MODIFIERS: Final = re.compile(r"(?:(?:ctrl|alt|shift|super|meta|hyper)\+)+(?=.)")

_SCROLL: Final = {"text_down": ("f8",), "text_up": ("f7",)}
"""The keys of the plain preset for actions that otherwise have only letters."""

_MOTIONS: Final = {
    *("up", "down", "top", "bottom", "left", "right"),
    *("page_up", "page_down", "half_up", "half_down"),
}


def preset_keys(preset: str) -> Keymap:
    """Return the keys of a preset that differ from the default keys, by action id.

    The default keys are those of the preset ``vim``.
    """
    if preset != "plain":
        return {}
    scroll_keys = {action.id: _SCROLL[action.name] for action in ACTIONS if action.name in _SCROLL}
    return scroll_keys | {
        action.id: tuple(key for key in action.keys if len(key) > 1)
        for action in ACTIONS
        if action.name in _MOTIONS
    }


def checked(configuration: Configuration) -> Configuration:
    """Return the configuration with the keys of its preset and the problems of its keys and theme.

    Unknown actions, keys and themes are left out.
    """
    problems: list[tuple[DottedKey, str]] = []
    valid_keys: dict[str, tuple[str, ...]] = {}
    for name, keys in configuration.keys.items():
        location = _location_of(configuration, name)
        unknown_key = next((key for key in keys if not _is_key(key)), None)
        if find_action(name) is None:
            action_ids = (action.id for action in ACTIONS)
            hint = name_hint(name, action_ids, "the palette (ctrl+p) names them all")
            problems.append((location, f"there is no action {name}{hint}"))
        elif unknown_key is not None:
            key_names = (key.value for key in Keys)
            example = 'one is written such as "m", "ctrl+n" or "pageup"'
            hint = name_hint(unknown_key, key_names, example)
            problems.append((location, f'{name}: there is no key "{unknown_key}"{hint}'))
        else:
            valid_keys[name] = keys
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

    The id of the action may be written as one key (``"annotate.finish"``) or as two.
    """
    quoted_key = ("keys", name)
    return quoted_key if quoted_key in configuration.lines else ("keys", *name.split("."))


def _is_key(key: str) -> bool:
    """Return whether a text is a key of Textual: a character or a name, perhaps with modifiers."""
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
    """Yield an action id and a problem for each set key that another action of the screen has.

    If both actions are in the keymap, only the action with the smaller id is reported.
    """
    for name, keys in keymap.items():
        for other_action in ACTIONS:
            is_reported_there = other_action.id in keymap and other_action.id <= name
            if not is_reported_there and share_a_screen(name, other_action.id):
                shared_keys = set(keys) & set(keys_of(other_action, keymap))
                for key in sorted(shared_keys):
                    yield name, f"{key} of {name} is also the key of {other_action.id}"

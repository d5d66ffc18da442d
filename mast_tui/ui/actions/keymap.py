"""The settings of ``config.toml`` that only the screens can check: actions, keys, themes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from textual.keys import KEY_NAME_REPLACEMENTS, Keys
from textual.theme import BUILTIN_THEMES

from mast_tui.configuration import Configuration, KeyPath, name_hint
from mast_tui.ui.actions.registry import ACTIONS, Keymap, find_action, keys_of, share_a_screen

_MODIFIERS: Final = re.compile(r"(?:(?:ctrl|alt|shift|super|meta|hyper)\+)+(?=.)")

_SCROLL: Final = {"text_down": ("f8",), "text_up": ("f7",)}
"""The keys of the plain preset for actions that otherwise have only letters."""

_MOTIONS: Final = {
    *("up", "down", "top", "bottom", "left", "right"),
    *("page_up", "page_down", "half_up", "half_down"),
}


def preset_keys(preset: str) -> Keymap:
    """Return the keys of a preset that differ from the registry, whose keys are those of
    ``vim``.
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
    """Return the configuration with the keys of its preset, without unknown actions, keys and
    themes.
    """
    problems: list[tuple[KeyPath, str]] = []
    valid_keys: dict[str, tuple[str, ...]] = {}
    for name, keys in configuration.keys.items():
        location = _location_of(configuration, name)
        unknown = [key for key in keys if not _is_key(key)]
        if find_action(name) is None:
            ids = (action.id for action in ACTIONS)
            hint = name_hint(name, ids, "the palette (ctrl+p) names them all")
            problems.append((location, f"there is no action {name}{hint}"))
        elif unknown:
            names = (key.value for key in Keys)
            hint = name_hint(unknown[0], names, 'one is written such as "m", "ctrl+n" or "pageup"')
            problems.append((location, f'{name}: there is no key "{unknown[0]}"{hint}'))
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
    return configuration.without(problems, keys=keymap, theme=theme)


class KeySetting(NamedTuple):
    """The keys of an action; ``is_custom`` tells whether the user has set them."""

    name: str
    keys: tuple[str, ...]
    is_custom: bool
    help: str


def key_settings(configuration: Configuration) -> list[KeySetting]:
    """Return the keys of every action in a checked configuration."""
    preset = preset_keys(configuration.preset)
    return [
        KeySetting(action.id, keys, keys != preset.get(action.id, action.keys), action.help)
        for action in ACTIONS
        for keys in (keys_of(action, configuration.keys),)
    ]


def _location_of(configuration: Configuration, name: str) -> KeyPath:
    """Return where the keys of an action are in the file: its id may be one key or two."""
    whole_name = ("keys", name)
    return whole_name if whole_name in configuration.lines else ("keys", *name.split("."))


def _is_key(key: str) -> bool:
    """Return whether Textual may send a key: a character or a name, with modifiers before it."""
    name = _MODIFIERS.sub("", key)
    if len(name) == 1:
        return not name.isspace()
    key_names = {*KEY_NAME_REPLACEMENTS.values(), *(key.value for key in Keys)}
    return name in key_names or _is_character(name)


def _is_character(name: str) -> bool:
    """Return whether a name is that of a character in Textual (``question_mark``)."""
    try:
        return name.islower() and bool(unicodedata.lookup(name.replace("_", " ")))
    except KeyError:
        return False


def _duplicate_keys(keymap: Keymap) -> Iterator[tuple[str, str]]:
    """Yield the keys that the user has set although another action of the screen has them."""
    for name, keys in keymap.items():
        for other in ACTIONS:
            is_reported = other.id in keymap and other.id <= name
            if not is_reported and share_a_screen(name, other.id):
                shared = set(keys) & set(keys_of(other, keymap))
                for key in sorted(shared):
                    yield name, f"{key} of {name} is also the key of {other.id}"

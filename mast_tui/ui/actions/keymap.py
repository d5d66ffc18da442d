"""What of ``config.toml`` only the screens know: actions, keys, presets of keys, themes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from textual.keys import KEY_NAME_REPLACEMENTS, Keys
from textual.theme import BUILTIN_THEMES

from mast_tui.configuration import Configuration, Place, meant
from mast_tui.ui.actions.registry import ACTIONS, Keymap, find_action, keys_of, share_a_screen

_MODIFIERS: Final = re.compile(r"(?:(?:ctrl|alt|shift|super|meta|hyper)\+)+(?=.)")

_SCROLL: Final = {"text_down": ("f8",), "text_up": ("f7",)}
"""Keys of the plain preset for what letters alone do else."""

_MOTIONS: Final = {
    *("up", "down", "top", "bottom", "left", "right"),
    *("page_up", "page_down", "half_up", "half_down"),
}


def preset_keys(preset: str) -> Keymap:
    """The keys of a preset that are not those of the registry, which is ``vim``."""
    if preset != "plain":
        return {}
    own = {action.id: _SCROLL[action.name] for action in ACTIONS if action.name in _SCROLL}
    return own | {
        action.id: tuple(key for key in action.keys if len(key) > 1)
        for action in ACTIONS
        if action.name in _MOTIONS
    }


def checked(found: Configuration) -> Configuration:
    """The configuration with the keys of its preset, and without what names nothing there is."""
    wrong: list[tuple[Place, str]] = []
    own: dict[str, tuple[str, ...]] = {}
    for name, keys in found.keys.items():
        place = _place(found, name)
        unknown = [key for key in keys if not _is_key(key)]
        if find_action(name) is None:
            ids = (action.id for action in ACTIONS)
            hint = meant(name, ids, "the palette (ctrl+p) names them all")
            wrong.append((place, f"there is no action {name}{hint}"))
        elif unknown:
            names = (key.value for key in Keys)
            hint = meant(unknown[0], names, 'one is written such as "m", "ctrl+n" or "pageup"')
            wrong.append((place, f'{name}: there is no key "{unknown[0]}"{hint}'))
        else:
            own[name] = keys
    keymap = {**preset_keys(found.preset), **own}
    wrong += [(_place(found, name), text) for name, text in _taken_twice(keymap)]
    theme = found.theme
    if theme is not None and theme not in BUILTIN_THEMES:
        wrong.append((("theme",), f'there is no theme "{theme}"{meant(theme, BUILTIN_THEMES)}'))
        theme = None
    return found.without(wrong, keys=keymap, theme=theme)


class KeySetting(NamedTuple):
    """The keys of an action as they are set, and whether the person has set them (``own``)."""

    name: str
    keys: tuple[str, ...]
    own: bool
    help: str


def key_settings(found: Configuration) -> list[KeySetting]:
    """What a checked configuration says of the keys of every action."""
    preset = preset_keys(found.preset)
    return [
        KeySetting(action.id, keys, keys != preset.get(action.id, action.keys), action.help)
        for action in ACTIONS
        for keys in (keys_of(action, found.keys),)
    ]


def _place(found: Configuration, name: str) -> Place:
    """Where the keys of an action stand: its id may be one name or two."""
    whole = ("keys", name)
    return whole if whole in found.lines else ("keys", *name.split("."))


def _is_key(key: str) -> bool:
    """Whether Textual may send it: one character, or a name, with modifiers before it."""
    name = _MODIFIERS.sub("", key)
    if len(name) == 1:
        return not name.isspace()
    known = name in KEY_NAME_REPLACEMENTS.values() or name in {one.value for one in Keys}
    return known or _is_character(name)


def _is_character(name: str) -> bool:
    """Whether it is the name of a character, as Textual has them (``question_mark``)."""
    try:
        return name.islower() and bool(unicodedata.lookup(name.replace("_", " ")))
    except KeyError:
        return False


def _taken_twice(keymap: Keymap) -> Iterator[tuple[str, str]]:
    """Keys with which a person has covered another action of the same screen."""
    for name, keys in keymap.items():
        for other in ACTIONS:
            told = other.id in keymap and other.id <= name
            if not told and share_a_screen(name, other.id):
                both = set(keys) & set(keys_of(other, keymap))
                yield from (
                    (name, f"{key} of {name} is also the key of {other.id}") for key in sorted(both)
                )

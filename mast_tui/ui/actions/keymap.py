"""Where a person's configuration lies: keys of their own, their name, their theme."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from mast_tui.ui.actions.registry import ACTIONS, Keymap, find_action, keys_of, share_a_screen

_KEY: Final = r"\S|(?:(?:ctrl|alt|shift|super|meta|hyper)\+)*(?:[a-z0-9_]+|[^\s,])"
"""A key as Textual names it: one character, or a name, with modifiers before it."""


class Configuration(NamedTuple):
    """What ``config.toml`` says; ``problem`` is set where it could not be read."""

    annotator: str | None = None
    keys: Keymap = MappingProxyType({})
    problem: str | None = None
    theme: str | None = None


def configuration_path() -> Path:
    """``config.toml`` in the user's configuration folder for mast_tui."""
    from platformdirs import user_config_path

    return user_config_path("mast-tui") / "config.toml"


def read_configuration(path: Path) -> Configuration:
    """Read the configuration; a missing file is an empty one, a wrong one says what is wrong."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Configuration()
    except (OSError, UnicodeDecodeError) as error:
        return Configuration(problem=f"{path}: {error}; our own keys are used")
    import tomllib  # nobody needs it who has set nothing

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Configuration(problem=f"{path}: {error}; our own keys are used")
    problems: list[str] = []
    annotator = data.get("annotator")
    if annotator is not None and not isinstance(annotator, str):
        problems.append("annotator is no text")
        annotator = None
    theme = data.get("theme")
    if theme is not None and not isinstance(theme, str):
        problems.append('theme is no text; "textual-light" is one')
        theme = None
    table = data.get("keys", {})
    if not isinstance(table, dict):
        problems.append("keys is no table; write [keys] and below it one line an action")
        table = {}
    keys: dict[str, tuple[str, ...]] = {}
    for name, value in _flat(table):
        pressed = [value] if isinstance(value, str) else value
        if find_action(name) is None:
            problems.append(f"there is no action {name}; the palette (ctrl+p) names them all")
        elif not (isinstance(pressed, list) and pressed and all(map(_is_key, pressed))):
            problems.append(f'{name} wants a key such as "m" or "ctrl+n", or a list of keys')
        else:
            keys[name] = tuple(pressed)
    problems += _taken_twice(keys)
    problem = f"{path}: {'; '.join(problems)}" if problems else None
    return Configuration(annotator, keys, problem, theme)


def _flat(table: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Each action with its keys: ``annotate.note`` without quotes is a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", keys) for inner, keys in value.items())
        else:
            yield name, value


def _is_key(value: object) -> bool:
    import re

    return isinstance(value, str) and re.fullmatch(_KEY, value) is not None


def _taken_twice(keymap: Keymap) -> list[str]:
    """Keys with which a person has covered another action of the same screen."""
    found = []
    for name, keys in keymap.items():
        for other in ACTIONS:
            told = other.id in keymap and other.id <= name
            if not told and share_a_screen(name, other.id):
                both = set(keys) & set(keys_of(other, keymap))
                found += [f"{key} of {name} is also the key of {other.id}" for key in sorted(both)]
    return found

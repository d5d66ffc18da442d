"""Values that Python printed where JSON was meant: ``[{'content': 'it\\'s', 'ok': True}]``."""

from __future__ import annotations

import ast
import re
from typing import Final

MOST_CHARS: Final = 32 << 20
"""Longer texts are not read: the parser takes many times their size."""

DEEPEST: Final = 100
"""The deepest nesting that a record of a run may have."""

_BEGINS: Final = re.compile(
    r"""\s*[\[(]?\s*\{\s*(?:'|"[^"\n]{0,200}"\s*:\s*(?:'|True|False|None))"""
)


def python_literal(text: str) -> object | None:
    """Read a text of Python's literals as what the same would be in JSON.

    Args:
        text: The whole text.

    Returns:
        The value with texts for keys, and lists for tuples and sets; None for a text that is none,
        is too long or nested too deeply. Nothing in it is ever run.
    """
    if _BEGINS.match(text) is None:
        return None
    try:
        return _as_json(read_literal(text, MOST_CHARS), 0)
    except (ValueError, RecursionError):
        return None


def read_literal(text: str, most_chars: int = 1 << 20) -> object:
    """Read a text of Python's literals as what it is there; nothing in it is ever run.

    Args:
        text: The whole text.
        most_chars: The most characters that it may have.

    Returns:
        The value; None for a text that is none, or is too long.
    """
    if len(text) > most_chars:
        return None
    try:
        value: object = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return value


def _as_json(value: object, depth: int) -> object:
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {_key(name): _as_json(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, set):
        value = sorted(value, key=repr)  # else the order would be another one each time
    if isinstance(value, list | tuple):
        return [_as_json(inner, depth + 1) for inner in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def _key(name: object) -> str:
    if isinstance(name, bool) or name is None:
        return {True: "true", False: "false", None: "null"}[name]
    return name if isinstance(name, str) else str(name)

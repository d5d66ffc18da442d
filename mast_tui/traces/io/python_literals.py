"""Values that a Python program printed instead of JSON: ``[{'content': 'it\\'s', 'ok': True}]``."""

from __future__ import annotations

import ast
import re
from typing import Final

MOST_CHARS: Final = 32 << 20
"""The longest text that is read: the parser needs many times its size."""

DEEPEST: Final = 100
"""The deepest nesting that a record of a run may have."""

_BEGINNING: Final = re.compile(
    r"""\s*[\[(]?\s*\{\s*(?:'|"[^"\n]{0,200}"\s*:\s*(?:'|True|False|None))"""
)


def python_literal(text: str) -> object | None:
    """Return the value of a Python literal in types that JSON has; no code in it is run.

    Args:
        text: The whole text.

    Returns:
        The value, with texts for keys, and lists for tuples and sets. None if the text is no
        literal with objects, is too long or nested too deeply.
    """
    if _BEGINNING.match(text) is None:
        return None
    try:
        return _json_value(read_literal(text, MOST_CHARS), 0)
    except (ValueError, RecursionError):
        return None


def read_literal(text: str, most_chars: int = 1 << 20) -> object:
    """Return the value of a Python literal; no code in it is run.

    Args:
        text: The whole text.
        most_chars: The most characters of the text.

    Returns:
        The value; None if the text is no literal, or is too long.
    """
    if len(text) > most_chars:
        return None
    try:
        value: object = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return value


def _json_value(value: object, depth: int) -> object:
    """Return a Python value with only the types that JSON has; other types become text.

    Raises:
        ValueError: The value is nested too deeply.
    """
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {_json_key(name): _json_value(member, depth + 1) for name, member in value.items()}
    if isinstance(value, set):
        value = sorted(value, key=repr)  # otherwise the order would vary
    if isinstance(value, list | tuple):
        return [_json_value(item, depth + 1) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def _json_key(name: object) -> str:
    """Return the text that ``json.dumps`` writes for a key."""
    if isinstance(name, bool) or name is None:
        return {True: "true", False: "false", None: "null"}[name]
    return name if isinstance(name, str) else str(name)

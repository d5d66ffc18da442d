"""A TOML parser with a limit for the depth of the values."""

from __future__ import annotations

import re
from typing import Any, Final

MOST_LEVELS: Final = 50
"""The most levels of nested tables and lists, because the parser and its callers recurse."""

_LONG_KEY: Final = (
    r"(?m)^[ \t]*\[{0,2}[ \t]*"
    rf"(?:(?:[\w\"'-]+\.){{{MOST_LEVELS}}}|(?:[\w\"'-]+[ \t]*\.[ \t]*){{500}})"
)
"""A key of very many parts. With blanks between the parts, many more are needed, as in prose."""


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document.

    Args:
        text: The content of the file.

    Raises:
        tomllib.TOMLDecodeError: The text is not TOML, or is nested too deeply.
    """
    import tomllib  # start-up: a user without settings does not need it

    too_deep = f"tables or lists are nested more than {MOST_LEVELS} deep"
    if re.search(_LONG_KEY, text):  # the parser takes seconds for a key of 20,000 parts
        raise tomllib.TOMLDecodeError(too_deep)
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError(too_deep) from None
    values: list[Any] = [document]  # the tables and lists of one level
    for _ in range(MOST_LEVELS + 1):
        members: list[Any] = []
        for value in values:
            if isinstance(value, dict):
                members.extend(value.values())
            elif isinstance(value, list):
                members.extend(value)
        values = [member for member in members if isinstance(member, dict | list)]
        if not values:
            return document
    raise tomllib.TOMLDecodeError(too_deep)

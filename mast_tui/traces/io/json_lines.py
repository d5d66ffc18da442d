"""How JSON lines are told from one JSON document, even where some of them are broken."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from mast_tui.traces.io.json_values import InvalidJSON, load_json, without_surrogates

LINES_LOOKED_AT: Final = 20

_MANY: Final = 3
_SPACE: Final = 16
_GOES_ON: Final = ("{", "[", ",", ":")


def first_lines(text: str, most: int = LINES_LOOKED_AT) -> list[str]:
    """The first lines that are not blank, split at ``\\n`` only; the rest is not looked at."""
    lines = text.lstrip().split("\n", most)[:most]
    return [line for line in lines if line.strip()]


def is_json_lines(lines: Sequence[str]) -> bool:
    """Whether the first lines of a text are JSON lines, some of which may be broken.

    The first line is a record by itself and another follows; or it is broken, does not look as if
    it went on in the next one, and half of the lines are records.
    """
    return len(lines) > 1 and bool(json_records(lines))


def json_records(lines: Sequence[str]) -> list[object]:
    """The values of the first lines of a text; empty where they are no JSON lines."""
    looked_at = lines[:LINES_LOOKED_AT]
    values = [value for line in looked_at if (value := _value(line)) is not None]
    if not values or not isinstance(values[0], dict | list):
        return []
    if _value(looked_at[0]) is None:
        records = sum(isinstance(value, dict | list) for value in values)
        few = records < _MANY and looked_at[0].rstrip().endswith(_GOES_ON)
        if few or 2 * records < len(looked_at):
            return []
    return values


def _value(line: str) -> object | None:
    try:
        return load_json(line)
    except InvalidJSON:
        return None


def glued_records(text: str, *, cut_off: bool = False) -> list[object]:
    """Return the objects in a text that has lost the line feeds between them.

    Args:
        text: A line, or a text of several documents.
        cut_off: Whether the text may end within an object, which is left out.

    Returns:
        The objects; none where the text holds anything else, or a single object.
    """
    values: list[object] = []
    decoder = json.JSONDecoder()
    pos = 0
    while pos < len(text):
        try:
            value, pos = decoder.raw_decode(text, pos)
        except (ValueError, RecursionError):
            if not cut_off:
                return []
            break
        values.append(without_surrogates(value))
        if not isinstance(value, dict):
            return []
        pos += len(text[pos : pos + _SPACE]) - len(text[pos : pos + _SPACE].lstrip())
    return values if len(values) > 1 else []

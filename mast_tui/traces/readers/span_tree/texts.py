"""What the inputs and outputs of timed calls say, without what is wrapped around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from mast_tui.traces.io.json_values import InvalidJSON, as_text, content_text, dump_text, load_json

_SAYING: Final = (
    "output",
    "input",
    "answer",
    "result",
    "response",
    "content",
    "text",
    "question",
    "query",
    "task",
)
_LOOKED_INTO: Final = 16 * 1024


def plain_text(value: object) -> str | None:
    """The text that an input or output is, or that it holds in its only or its telling field.

    None for anything with more structure than that, and for what is blank.
    """
    for _wrapping in range(3):
        if isinstance(value, str):
            if value.lstrip()[:1] not in ("{", "["):
                return as_text(value)
            try:
                parsed = load_json(value)
            except InvalidJSON:
                return value
            value = parsed
        if not isinstance(value, Mapping):
            return None
        if len(value) == 1:
            (value,) = value.values()
        else:
            value = next((value[name] for name in _SAYING if as_text(value.get(name))), None)
    return None


def output_text(value: object) -> str:
    """The text of a tool's output: its text parts where it is a list of parts, else all of it."""
    if isinstance(value, list) and value and all(map(_is_part, value)):
        return content_text(value)
    return dump_text(value)


def holds(text: str, texts: Iterable[str]) -> bool:
    """Whether one of the texts is ``text``, or has it somewhat after its beginning.

    Of a long one only so much is looked at that the cost stays within that of reading ``text``.
    """
    wanted = text.strip()
    return any(one.find(wanted, 0, len(wanted) + _LOOKED_INTO) >= 0 for one in texts)


def _is_part(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and value.get("type") == "text"
        and isinstance(value.get("text"), str)
    )

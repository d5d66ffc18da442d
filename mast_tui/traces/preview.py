"""The one-line preview of a span's text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import orjson

from mast_tui.traces.io.json_values import dump_text
from mast_tui.traces.model import PREVIEW_CHARS, shortened

TASK_CHARS: Final = 2000
"""The most code points of a run's task."""

_EXAMINED_CHARS: Final = 16 * PREVIEW_CHARS
_WINDOW_SIZES: Final = (PREVIEW_CHARS + PREVIEW_CHARS // 8, 2 * PREVIEW_CHARS, _EXAMINED_CHARS)
"""The lengths of the beginnings of a text that are tried until one fills a preview."""
_MOST_PARSED_CHARS: Final = 64 * 1024
_COMMAND_KEYS: Final = ("command", "cmd", "code", "script", "query")
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh"})
_FIRST_VISIBLE: Final = re.compile(r"\S")


def task_of_text(text: str) -> str:
    """Return a run's task, cut to ``TASK_CHARS``."""
    return shortened(text, TASK_CHARS)


def preview(text: str, lead: int = 0) -> tuple[str, bool]:
    """Return the beginning of a text on one line, and whether the line is the whole text.

    Each run of whitespace becomes one space, and ``PREVIEW_CHARS`` code points are kept. The time
    does not depend on the length of the text.

    Args:
        text: The text.
        lead: The number of code points to leave out at the beginning, unless only whitespace
            follows.
    """
    first_match = _FIRST_VISIBLE.search(text, lead)
    if first_match is None:
        return preview(text) if lead else ("", True)
    begin = first_match.start()
    for size in _WINDOW_SIZES:  # mostly the first one is enough
        line = " ".join(text[begin : begin + size].split())
        if len(line) > PREVIEW_CHARS or len(text) <= begin + size:
            break
    is_complete = len(line) <= PREVIEW_CHARS and len(text) <= begin + _EXAMINED_CHARS
    return line[:PREVIEW_CHARS], is_complete and not text[:lead].strip()


def call_preview(arguments: str) -> tuple[str, bool]:
    """Return the preview of a tool call, and whether it is complete.

    A command is shown as it was typed, and other arguments as ``name=value``. Arguments that are
    very long or no JSON object are shown unchanged.
    """
    if not arguments.startswith("{") or len(arguments) > _MOST_PARSED_CHARS:
        return preview(arguments)
    try:
        values = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return preview(arguments)
    if not isinstance(values, Mapping) or not values:
        return preview(arguments)
    for key in _COMMAND_KEYS:
        command = _command_text(values.get(key))
        if command:
            line, is_complete = preview(command)
            return line, is_complete and len(values) == 1
    return preview("  ".join(f"{name}={_argument_text(value)}" for name, value in values.items()))


def _command_text(value: object) -> str:
    """Return a command as it was typed; empty for other values."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        return ""
    if len(value) == 3 and value[0] in _SHELLS and value[1].startswith("-"):
        return str(value[2])
    return " ".join(value)


def _argument_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # nested more deeply than orjson writes
        return dump_text(value)

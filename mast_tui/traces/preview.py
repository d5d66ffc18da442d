"""The one-line preview of a span's text.

Span keys are made unique in ``keys.py``; JSON values become text in ``json_values.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import orjson

from mast_tui.traces.io.json_values import dump_text
from mast_tui.traces.model import PREVIEW_CHARS, shortened

TASK_CHARS: Final = 2000
"""Length up to which a run's task is kept, in code points."""

_LOOKED_AT: Final = 16 * PREVIEW_CHARS
_NEAR: Final = (PREVIEW_CHARS + PREVIEW_CHARS // 8, 2 * PREVIEW_CHARS, _LOOKED_AT)
"""So much of a text is looked at in turn until it fills a preview: mostly the first will do."""
_PARSED_AT_MOST: Final = 64 * 1024
_COMMAND_KEYS: Final = ("command", "cmd", "code", "script", "query")
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh"})
_FIRST_VISIBLE: Final = re.compile(r"\S")


def task_of_text(text: str) -> str:
    """Return a run's task, with … where it is cut."""
    return shortened(text, TASK_CHARS)


def preview(text: str, lead: int = 0) -> tuple[str, bool]:
    """Return the beginning of ``text`` on one line, and whether that is all of it.

    Each run of whitespace becomes one space, and the line is cut at ``PREVIEW_CHARS`` code
    points. The flag is true when nothing but whitespace was left out. The cost does not grow with
    the text: only its beginning is looked at (and leading whitespace is passed over).

    Args:
        text: The text.
        lead: The number of code points that the line leaves out at the beginning, unless nothing
            follows there.
    """
    first = _FIRST_VISIBLE.search(text, lead)
    if first is None:
        return preview(text) if lead else ("", True)
    begin = first.start()
    for near in _NEAR:
        line = " ".join(text[begin : begin + near].split())
        if len(line) > PREVIEW_CHARS or len(text) <= begin + near:
            break
    whole = len(line) <= PREVIEW_CHARS and len(text) <= begin + _LOOKED_AT
    return line[:PREVIEW_CHARS], whole and not text[:lead].strip()


def call_preview(arguments: str) -> tuple[str, bool]:
    """Return the preview of a tool call: its arguments without the JSON around them.

    A command is shown as it was typed (``["bash", "-lc", "ls"]`` is ``ls``), other arguments as
    ``name=value``. Arguments that are no JSON object, or very long, are shown as they are.
    """
    if not arguments.startswith("{") or len(arguments) > _PARSED_AT_MOST:
        return preview(arguments)
    try:
        values = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return preview(arguments)
    if not isinstance(values, Mapping) or not values:
        return preview(arguments)
    for key in _COMMAND_KEYS:
        command = _command(values.get(key))
        if command:
            line, whole = preview(command)
            return line, whole and len(values) == 1
    return preview("  ".join(f"{name}={_argument(value)}" for name, value in values.items()))


def _command(value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        return ""
    if len(value) == 3 and value[0] in _SHELLS and value[1].startswith("-"):
        return str(value[2])
    return " ".join(value)


def _argument(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # nested more deeply than orjson writes
        return dump_text(value)

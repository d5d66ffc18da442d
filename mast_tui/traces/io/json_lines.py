"""JSON lines: recognised, and cut out of files that separate records in other ways."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import InvalidJSON, load_json, without_surrogates

LINES_LOOKED_AT: Final = 20

NUL_BYTES: Final = "NUL bytes, as a crash leaves them, are left out"
"""The problem of a line with NUL bytes."""

_MANY: Final = 3
_SPACE: Final = 16
_GOES_ON: Final = ("{", "[", ",", ":")

_EVENT_FIELD: Final = re.compile(r"^(?:data: ?|(?:event|id|retry):.*|:.*)", re.MULTILINE)
_BEGINS: Final = re.compile(r"[\s\0\x1e\ufeff]*(?:[{\[]|(?:data|event|id|retry)?:)")
_RECORD: Final = re.compile(r"[{\[]")
_OBJECT: Final = re.compile(r'\{(?=\s*")')
_MOST_TRIES: Final = 100
"""The most beginnings of a record that are tried on a broken line."""

_MOST_BROKEN: Final = 10_000
"""The most broken records that are passed over; later ones are left out."""

_FORGOTTEN_CHARS: Final = 1 << 20
"""The length at which text that has been read is cut off: an error of the decoder counts all line
feeds before it."""

TEXT_AFTER_DOCUMENT: Final = "characters behind the end of the document are left out"
"""The end of a problem that names what follows a document."""


def first_lines(text: str, most: int = LINES_LOOKED_AT) -> list[str]:
    r"""Return the first lines that are not blank, split at ``\\n`` only.

    Args:
        text: The text.
        most: The number of lines to look at.
    """
    lines = text.lstrip().split("\n", most)[:most]
    return [line for line in lines if line.strip()]


def is_json_lines(lines: Sequence[str]) -> bool:
    """Return whether the first lines of a text are JSON lines, some of which may be broken.

    The first line is a record by itself and another follows; or it is broken, does not look as if
    it went on in the next one, and half of the lines are records.
    """
    return len(lines) > 1 and bool(json_records(lines))


def json_records(lines: Sequence[str]) -> list[object]:
    """Return the values of the first lines of a text; empty if they are no JSON lines."""
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


def glued_records(line: str) -> list[object]:
    """Return the objects on a line that has lost line feeds; empty if it is anything else."""
    values: list[object] = []
    decoder = json.JSONDecoder()
    pos = 0
    while pos < len(line):
        try:
            value, pos = decoder.raw_decode(line, pos)
            values.append(without_surrogates(value))
        except (ValueError, RecursionError):
            return []
        if not isinstance(value, dict):
            return []
        pos += len(line[pos : pos + _SPACE]) - len(line[pos : pos + _SPACE].lstrip())
    return values if len(values) > 1 else []


def split_records(data: bytes) -> list[bytes]:
    """Return the JSON objects and lists of a file, whatever is between them.

    Read are records on lines or one after the other, over several lines or glued together, JSON
    text sequences (RFC 7464), the ``data:`` lines of server-sent events, UTF-16 and UTF-32, and
    files with NUL bytes between or in records. A broken record is left out as far as its line
    goes; a whole record behind it on the same line is kept.

    Args:
        data: The content of the file.

    Returns:
        The text of each record on one line, as UTF-8; none where the file does not begin as such.
    """
    text = as_utf8(data).decode("utf-8", "replace")
    if _BEGINS.match(text) is None:
        return []
    text = text.replace("\0", "").replace("\x1e", "\n").removeprefix("\ufeff")
    if text.lstrip()[:1] not in ("{", "["):
        text = _EVENT_FIELD.sub("", text)
    records: list[bytes] = []
    decoder = json.JSONDecoder()
    pos = 0
    broken = 0
    while broken < _MOST_BROKEN and (begin := _RECORD.search(text, pos)) is not None:
        if begin.start() > _FORGOTTEN_CHARS:
            text = text[begin.start() :]
            pos = 0
            continue
        end = _end_of_record(decoder, text, begin.start())
        if end is None:
            broken += 1
            pos = _after_broken(decoder, text, begin.start())
            continue
        pos = end
        # A line feed in JSON is never part of a text.
        one_line = text[begin.start() : end].replace("\r", " ").replace("\n", " ")
        records.append(one_line.encode("utf-8", "replace"))
    return records


def _end_of_record(decoder: json.JSONDecoder, text: str, begin: int) -> int | None:
    try:
        return decoder.raw_decode(text, begin)[1]
    except (ValueError, RecursionError):
        return None


def _after_broken(decoder: json.JSONDecoder, text: str, begin: int) -> int:
    """Return the offset after a broken record: of a whole object on its line, else the next line.

    An object counts only if it reaches to the end of the line, as one inside the broken record
    does not.
    """
    line_end = text.find("\n", begin)
    line_end = len(text) if line_end < 0 else line_end
    line = text[begin:line_end]
    pos = begin + 1
    for _ in range(_MOST_TRIES):
        match = _OBJECT.search(text, pos, line_end)
        if match is None:
            break
        end = _end_of_record(decoder, line, match.start() - begin)
        if end is not None and not line[end:].strip():
            return match.start()
        pos = match.end()
    return line_end

"""The recognition of JSON lines, and the splitting of files with other separators into records."""

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

_ENOUGH_RECORDS: Final = 3
_MOST_SPACE_CHARS: Final = 16
_CONTINUATIONS: Final = ("{", "[", ",", ":")

_EVENT_FIELD: Final = r"(?m)^(?:data: ?|(?:event|id|retry):.*|:.*)"
_STRING_WITH_DOCUMENT: Final = rb'\s*"(?:\s|\\[nrt])*[{\[]'
_HEAD_BYTES: Final = 1024
_BEGINNING: Final = r"""[\s\0\x1e\ufeff]*(?:[{"]|\[(?=\s*[]\[{"'\d-])|(?:data|event|id|retry)?:)"""
_LOG_BEGINNING: Final = rb"\s*\[(?:\d+[-:/]\d[^\]\n]*|[A-Z]+)\]"
_JSON_LINE: Final = re.compile(r'(?m)^(?:\{\s*"|\[\s*[\[{"])')
_MOST_TEXT_BEFORE: Final = 1 << 16
"""The most characters before the first record."""

_LEAST_SHARE: Final = 0.75
"""The least share of the records in a file that begins with text."""

_RECORD: Final = re.compile(r"[{\[]")
_RECORD_IN_TEXT: Final = re.compile(r'[{\[](?=\s*["{\[\]}])')
_OBJECT: Final = re.compile(r'\{(?=\s*")')
_MOST_TRIES: Final = 100
"""The most beginnings of a record that are tried on a broken line."""

_MOST_BROKEN_RECORDS: Final = 10_000
"""The number of broken records after which nothing more is read."""

_MOST_PASSED_CHARS: Final = 1 << 20
"""The length at which text that was read is cut off, because an error of the decoder counts all
line feeds before it."""

TEXT_AFTER_DOCUMENT: Final = "characters after the end of the document are left out"
"""The end of a message about text after a document."""


def first_lines(text: str, most: int = LINES_LOOKED_AT) -> list[str]:
    r"""Return the first lines of a text except blank ones, split at ``\\n`` only.

    Args:
        text: The text; leading white space is ignored.
        most: The number of lines to examine, with blank ones.
    """
    lines = text.lstrip().split("\n", most)[:most]
    return [line for line in lines if line.strip()]


def is_json_lines(lines: Sequence[str]) -> bool:
    """Return whether the first lines of a text are JSON lines, some perhaps broken."""
    return len(lines) > 1 and bool(json_records(lines))


def json_records(lines: Sequence[str]) -> list[object]:
    """Return the values of the first lines of a text; empty if these are not JSON lines.

    Broken lines are left out. The lines are not JSON lines if

    - the first intact line is neither object nor list,
    - the second line begins with a comma, as in a list without brackets,
    - the first line is broken, and most lines are no records,
    - the first line is broken and seems to continue on the second, and there are few records.
    """
    value_by_line = [_value_or_none(line) for line in lines[:LINES_LOOKED_AT]]
    values = [value for value in value_by_line if value is not None]
    is_list_without_brackets = len(lines) > 1 and lines[1].startswith(",")
    if not values or not isinstance(values[0], dict | list) or is_list_without_brackets:
        return []
    if value_by_line[0] is None:  # the first line is broken
        record_count = sum(isinstance(value, dict | list) for value in values)
        seems_to_continue = lines[0].rstrip().endswith(_CONTINUATIONS)
        if seems_to_continue and record_count < _ENOUGH_RECORDS:
            return []
        if 2 * record_count < len(value_by_line):
            return []
    return values


def _value_or_none(line: str) -> object | None:
    try:
        return load_json(line)
    except InvalidJSON:
        return None


def glued_records(line: str) -> list[object]:
    """Return the JSON objects on one line without line feeds between them.

    The list is empty if the line has only one object, or anything else.
    """
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
        # Move past white space, in a slice because the rest of the line may be long.
        next_chars = line[pos : pos + _MOST_SPACE_CHARS]
        pos += len(next_chars) - len(next_chars.lstrip())
    return values if len(values) > 1 else []


def split_records(data: bytes) -> list[bytes]:
    """Return the JSON objects and lists of a file, with any separators between them.

    The records may be on lines or over several lines, without separators, JSON text sequences (RFC
    7464) or ``data:`` lines of server-sent events. Of a line with a broken record, only a complete
    record at its end is kept.

    Args:
        data: The content of the file.

    Returns:
        The text of each record on one line, as UTF-8; empty if most of the file is other text.
    """
    text = as_utf8(data).decode("utf-8", "replace")
    least_chars = 0.0
    record_start = _RECORD
    if begins_with_text(data[:_HEAD_BYTES]):
        least_chars = _LEAST_SHARE * len(text)
        record_start = _RECORD_IN_TEXT
        first_line = _JSON_LINE.search(text, 0, _MOST_TEXT_BEFORE)
        text = "" if first_line is None else text[first_line.start() :]
    else:
        text = _without_event_fields(text)
    record_chars = 0
    records: list[bytes] = []
    decoder = json.JSONDecoder()
    pos = 0
    broken_count = 0
    while broken_count < _MOST_BROKEN_RECORDS:
        if record_chars + len(text) - pos < least_chars:
            return []  # at once, because most logs have some JSON
        bracket = record_start.search(text, pos)
        if bracket is None:
            break
        begin = bracket.start()
        if begin > _MOST_PASSED_CHARS:  # errors of the decoder take longer in long text
            text = text[begin:]
            pos = 0
            continue
        end = _end_of_record(decoder, text, begin)
        if end is None:
            broken_count += 1
            pos = _next_start(decoder, text, begin)
            continue
        pos = end
        # JSON strings escape their line feeds, so these are white space.
        record = text[begin:end].replace("\r", " ").replace("\n", " ")
        records.append(record.encode("utf-8", "replace"))
        record_chars += len(record)
    return [] if record_chars < least_chars else records


def begins_with_text(head: bytes) -> bool:
    """Return whether a file begins with other text than JSON or events, such as a log's."""
    return is_no_json(head) or not re.match(_BEGINNING, as_utf8(head).decode("utf-8", "replace"))


def is_no_json(head: bytes) -> bool:
    """Return whether content begins like a log, with a time or a level in brackets."""
    return re.match(_LOG_BEGINNING, head) is not None


def _without_event_fields(text: str) -> str:
    """Return the text of a file without marks and the fields of server-sent events."""
    text = text.replace("\0", "").replace("\x1e", "\n").removeprefix("\ufeff")
    is_event_stream = text.lstrip()[:1] not in ("{", "[", '"')
    return re.sub(_EVENT_FIELD, "", text) if is_event_stream else text


def document_in_string(data: bytes) -> bytes | None:
    """Return the JSON document in a file that is one JSON string; None for any other file.

    Programs write such a file if they convert to JSON twice.
    """
    if re.match(_STRING_WITH_DOCUMENT, as_utf8(data[:_HEAD_BYTES])) is None:
        return None
    try:
        value = load_json(as_utf8(data).decode("utf-8", "replace"))
    except InvalidJSON:
        return None
    return value.encode("utf-8", "replace") if isinstance(value, str) else None


def _end_of_record(decoder: json.JSONDecoder, text: str, begin: int) -> int | None:
    """Return the end of the record that begins at an offset; None if it is broken."""
    try:
        _value, end = decoder.raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None
    return end


def _next_start(decoder: json.JSONDecoder, text: str, begin: int) -> int:
    """Return the offset at which to continue after a broken record.

    It is the beginning of an intact object at the end of the line, or else the end of the line. An
    object before the end may be a part of the broken record.
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

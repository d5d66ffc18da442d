"""The two ways in which JSON files hold records: one document, or one record a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.decoding import as_utf8, decode
from mast_tui.traces.json_values import InvalidJSON, load_json
from mast_tui.traces.model import Problem
from mast_tui.traces.source import Source

_OPENINGS: Final = ("{", "[")
_HEAD_VALUES: Final = 20


@dataclass(frozen=True, slots=True)
class Line:
    """The value on one line of a JSONL file.

    ``number`` counts all lines from 1, ``record`` from 0 those that are not blank: a broken line
    has its record number too, so that mending it moves no other.
    """

    number: int
    record: int
    value: object


def json_lines_head(source: Source) -> list[object]:
    """The first values of a JSONL file; empty where the file is no JSONL.

    A file is JSONL when its first line is a JSON object or list by itself and another line
    follows. Only the head is looked at, unless it ends within the first line.
    """
    data = as_utf8(source.head)
    if len(source.head) < source.size:
        if b"\n" not in data.lstrip():
            data = as_utf8(source.data)
        data = data[: data.rfind(b"\n") + 1]
    lines = [line for line in data.split(b"\n") if line.strip()][: _HEAD_VALUES + 1]
    if not lines or (len(lines) == 1 and len(source.head) == source.size):
        return []
    values: list[object] = []
    for line in lines[:_HEAD_VALUES]:
        try:
            values.append(load_json(line))
        except InvalidJSON:
            if not values:
                return []
    return values if isinstance(values[0], dict | list) else []


def read_document(source: Source) -> object | None:
    """The file as one JSON document, in any UTF encoding; None where it is not one."""
    if source.json is not None:
        return source.json
    head, _problem = decode(source.head)
    if head.lstrip()[:1] not in _OPENINGS:
        return None
    text, _problem = decode(source.data)
    try:
        return load_json(text)
    except InvalidJSON:
        return None


def read_lines(source: Source, problems: list[Problem]) -> Iterator[Line]:
    """The values of a JSONL file, split at ``\\n`` only; broken lines go to ``problems``."""
    raw_lines = as_utf8(source.data).split(b"\n")
    record = -1
    for number, raw in enumerate(raw_lines, 1):
        text = raw.strip()
        if not text:
            continue
        record += 1
        try:
            yield Line(number, record, load_json(text))
        except InvalidJSON as error:
            if number == len(raw_lines):
                message = "the last line is cut off; everything before it was read"
            else:
                message = f"not JSON, left out: {error}"
            problems.append(Problem(f"line {number}", message))

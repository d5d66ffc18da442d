"""The two ways in which JSON files hold records: one document, or one record a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_lines import glued_records
from mast_tui.traces.io.json_repair import repair
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Problem
from mast_tui.traces.readers.base import CUT_OFF


@dataclass(frozen=True, slots=True)
class Line:
    """The value on one line of a JSONL file.

    ``number`` counts all lines from 1, ``record`` from 0 those that are not blank: a broken line
    has its record number too, so that mending it moves no other.
    """

    number: int
    record: int
    value: object


def read_lines(source: Source, problems: list[Problem]) -> Iterator[Line]:
    """The values of a JSONL file, split at ``\\n`` only; what is broken goes to ``problems``.

    Records that have lost the line feed between them are read one by one. Of a broken line that
    holds a list of records those that are intact are read.
    """
    raw_lines = as_utf8(source.data).split(b"\n")
    record = -1
    for number, raw in enumerate(raw_lines, 1):
        text = raw.strip()
        if not text:
            continue
        record += 1
        try:
            yield Line(number, record, load_json(text))
            continue
        except InvalidJSON as error:
            reason = str(error)
        place = f"line {number}"
        decoded = text.decode("utf-8", "replace")
        if values := glued_records(decoded):
            problems.append(Problem(place, f"{len(values)} records on one line"))
            for value in values:
                yield Line(number, record, value)
                record += 1
            record -= 1
            continue
        salvaged = repair(decoded)
        if salvaged is not None and _holds_records(salvaged.value):
            words = "; ".join(dict.fromkeys(problem.message for problem in salvaged.problems))
            problems.append(Problem(place, f"damaged, read as far as it goes: {words}"))
            yield Line(number, record, salvaged.value)
        elif number == len(raw_lines):
            problems.append(Problem(place, CUT_OFF))
        else:
            problems.append(Problem(place, f"not JSON, left out: {reason}"))


def _holds_records(value: dict[str, object] | list[object]) -> bool:
    """Whether there is a list of objects in the record, so that some of them are worth having."""
    lists = [value] if isinstance(value, list) else list(value.values())
    return any(isinstance(one, list) and any(isinstance(r, dict) for r in one) for one in lists)

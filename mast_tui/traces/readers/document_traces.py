"""The records of a file that is read as a whole, and the traces of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_lines import glued_records
from mast_tui.traces.io.json_repair import repair
from mast_tui.traces.io.json_values import (
    INVALID_ESCAPE,
    InvalidJSON,
    canonical_bytes,
    load_json,
)
from mast_tui.traces.io.regular_files import BESIDE_BYTES, UnreadableFile, read_beside
from mast_tui.traces.io.source import Source, value_with_invalid_escapes
from mast_tui.traces.model import FileReport, Problem, Trace, TraceMeta
from mast_tui.traces.readers.base import CUT_OFF, Reader, identity_of


@dataclass(frozen=True, slots=True)
class Record:
    """A JSON value that may be a run.

    Attributes:
        value: The value.
        number: The number of the record in the file from 0 on; None for the whole file.
        prefix: The text before a JSON pointer in a location in the file.
    """

    value: object
    number: int | None = None
    prefix: str = ""

    @property
    def location(self) -> str:
        """The location of the record in the file."""
        return self.prefix.strip() or "/"

    def content(self, source: Source) -> bytes:
        """Return the bytes that identify the record."""
        return source.data if self.number is None else canonical_bytes(self.value)


def records_in(source: Source, problems: list[Problem]) -> Iterator[Record]:
    """Yield the records of a JSON file: its lines, the items of its list, or its only document.

    Args:
        source: The file.
        problems: The list to which problems are added.
    """
    if source.json_lines:
        yield from records_by_line(source, problems)
    elif isinstance(document := source.json, list):
        yield from records_of_list(document)
    else:
        yield Record(document)


def records_by_line(source: Source, problems: list[Problem]) -> Iterator[Record]:
    r"""Yield the records of a JSONL file, split at ``\n`` only.

    - A broken line counts as a record, so that a repair does not change the other numbers.
    - Several records on a line that has lost its line feeds are read one by one.
    - A broken line with a list of records is read as far as the records are intact.
    - Any other broken line is a problem.

    Args:
        source: The file.
        problems: The list to which problems are added.
    """
    lines = as_utf8(source.data).split(b"\n")
    next_record_number = 0
    for line_number, line in enumerate(lines, 1):
        data = line.strip()
        if not data:
            continue
        location = f"line {line_number}"
        try:
            values: Sequence[object] = [load_json(data)]
        except InvalidJSON as error:
            reason = CUT_OFF if line_number == len(lines) else f"not JSON, left out: {error}"
            text = data.decode("utf-8", "replace")
            values, problem = _values_on_broken_line(text, error, reason)
            problems.append(Problem(location, problem))
        for number, value in enumerate(values, next_record_number):
            yield Record(value, number, f"{location} ")
        next_record_number += len(values) or 1


def _values_on_broken_line(
    text: str, error: InvalidJSON, reason: str
) -> tuple[Sequence[object], str]:
    """Return the values that can be read on a line that is not JSON, and the line's problem.

    ``reason`` is the problem of a line without values.
    """
    value = value_with_invalid_escapes(text, error)
    if value is not None:
        return [value], INVALID_ESCAPE
    if values := glued_records(text):
        return values, f"{len(values)} records on one line"
    repaired_record = repair(text)
    if repaired_record is None or not _has_records(repaired_record.value):
        return [], reason
    messages = "; ".join(dict.fromkeys(problem.message for problem in repaired_record.problems))
    return [repaired_record.value], f"damaged, read as far as it goes: {messages}"


def neighbour_bytes(
    path: Path, location: str, problems: list[Problem], max_bytes: int = BESIDE_BYTES
) -> bytes | None:
    """Return the bytes of a file beside a run; None if it is missing or cannot be read.

    Args:
        path: The file.
        location: The name of the file in a problem.
        problems: The list to which an unreadable file is added.
        max_bytes: The maximum size of the file in bytes.
    """
    try:
        return read_beside(path, max_bytes)
    except UnreadableFile as error:
        problems.append(Problem(location, f"not read: {error.strerror}"))
        return None


def neighbour_json(
    path: Path, location: str, problems: list[Problem], max_bytes: int
) -> tuple[bytes, object]:
    """Return the content of a JSON file beside a run, and its value.

    Both are empty for a missing or unreadable file. The value of a file that is no JSON is None.

    Args:
        path: The file.
        location: The name of the file in a problem.
        problems: The list to which an unreadable or broken file is added.
        max_bytes: The maximum size of the file in bytes.
    """
    content = neighbour_bytes(path, location, problems, max_bytes)
    if content is None:
        return b"", None
    data = as_utf8(content)
    try:
        return data, load_json(data)
    except InvalidJSON as error:
        problems.append(Problem(location, f"not JSON, left out: {error}"))
    return data, None


def _has_records(value: dict[str, object] | list[object]) -> bool:
    """Return whether a value, or one of its fields, is a list with an object."""
    candidates = [value] if isinstance(value, list) else list(value.values())
    lists = (candidate for candidate in candidates if isinstance(candidate, list))
    return any(isinstance(item, dict) for items in lists for item in items)


def records_of_list(values: Iterable[object], pointer: str = "") -> Iterator[Record]:
    """Yield the records in a list.

    Args:
        values: The list.
        pointer: The JSON pointer to the list.
    """
    for record_number, value in enumerate(values):
        yield Record(value, record_number, f"{pointer}/{record_number}")


class RunOrigin(NamedTuple):
    """The reader, the file and the identity of a run.

    Attributes:
        reader: The reader.
        path: The file of the run.
        content: The bytes that identify the run if it has no native id.
        record: The number of the run in the file; None for the only run.
        native: The id of the run in the file, if it has one.
    """

    reader: Reader
    path: Path
    content: bytes
    record: int | None = None
    native: str | None = None


def trace_of_steps(
    origin: RunOrigin, steps: StepList, meta: TraceMeta, problems: Iterable[Problem] = ()
) -> Trace:
    """Return the trace of a run that was read as a whole.

    Args:
        origin: The reader, the file and the identity of the run.
        steps: The spans of the run.
        meta: The facts of the run.
        problems: The problems of the run.
    """
    reader, path, content, record, native = origin
    identity = identity_of(reader, path, content, record=record, native=native)
    spans = StepSpans(steps.steps)
    return Trace(identity, path, spans, record=record, meta=meta, problems=problems)


def report_of(
    reader: Reader,
    source: Source,
    traces: Iterable[Trace],
    problems: Iterable[Problem] = (),
    name: str | None = None,
) -> FileReport:
    """Return the report on a file.

    Args:
        reader: The reader.
        source: The file.
        traces: The traces of the file.
        problems: The problems of the file.
        name: The name of the format; by default the reader's name.
    """
    return FileReport(source.path, name or reader.name, tuple(traces), tuple(problems))

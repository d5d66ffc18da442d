"""What a reader of one format offers, and what it calls its traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from mast_tui.traces.index.span_table import list_problem
from mast_tui.traces.io.json_lines import glued_records, split_records
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.io.source import Source
from mast_tui.traces.keys import identity_by_content
from mast_tui.traces.model import FileReport, Problem, TraceIdentity

CUT_OFF: Final = "the last line is cut off; everything before it was read"
"""What is said of a file whose last line is no whole record."""

NUL_BYTES: Final = "NUL bytes, as a crash leaves them, are left out"
"""The problem of a line with NUL bytes."""


class Reader(Protocol):
    """Recognises one format by content and reads it.

    ``key_scheme`` numbers the way span keys are made; labels depend on it, so it changes only
    together with a migration.
    """

    @property
    def name(self) -> str: ...
    @property
    def key_scheme(self) -> int: ...
    def recognises(self, source: Source) -> bool:
        """Whether the file is of this format, by its content."""

    def read(self, source: Source) -> FileReport:
        """The file's traces and problems; broken parts are reported, never raised."""


def identity_of(
    reader: Reader,
    path: Path,
    content: bytes,
    *,
    record: int | None = None,
    native: str | None = None,
) -> TraceIdentity:
    """Tell by what a trace is known: the id that it brings, else one made of its content.

    Args:
        reader: Who reads it.
        path: The file that it is read from.
        content: The bytes by which it is known again.
        record: Its number among the runs of the file; None for the only one.
        native: The id that it brings itself, if any.
    """
    found = identity_by_content(
        path, record, content, reader=reader.name, key_scheme=reader.key_scheme
    )
    return found._replace(trace_id=native, native=True) if native else found


def record_on(
    line: bytes, number: int, cut_off: bool, problems: list[Problem]
) -> Mapping[str, object] | None:
    """Read the JSON object on a line.

    Args:
        line: What stands on it.
        number: Which line of the file it is.
        cut_off: Whether it is a last line without its line feed.
        problems: Where it is noted that there is none.

    Returns:
        The object; None where there is none.
    """
    try:
        value = load_json(line)
    except InvalidJSON as error:
        list_problem(problems, number, CUT_OFF if cut_off else f"not JSON, left out: {error}")
        return None
    if not isinstance(value, Mapping):
        list_problem(problems, number, "not a JSON object, left out")
        return None
    return value


def records_on(
    line: bytes,
    number: int,
    ends_open: bool,
    problems: list[Problem],
    is_record: Callable[[Mapping[str, object]], bool],
) -> list[Mapping[str, object]]:
    """Return the JSON objects on a line: one, or several that have lost the line feed between.

    Args:
        line: The line.
        number: Its number, counted from 1.
        ends_open: Whether it is a last line without its line feed.
        problems: The list for problems with the line.
        is_record: Tells a record from an object within one, on a damaged line.

    Returns:
        The objects; of a damaged line those that are whole.
    """
    try:
        value = load_json(line)
    except InvalidJSON as error:
        return _records_on_damaged(line, number, str(error), ends_open, problems, is_record)
    if b"\0" in line:
        list_problem(problems, number, NUL_BYTES)
    if isinstance(value, Mapping):
        return [value]
    list_problem(problems, number, "not a JSON object, left out")
    return []


def _records_on_damaged(
    line: bytes,
    number: int,
    reason: str,
    ends_open: bool,
    problems: list[Problem],
    is_record: Callable[[Mapping[str, object]], bool],
) -> list[Mapping[str, object]]:
    if b"\0" in line:
        list_problem(problems, number, NUL_BYTES)
        line = line.replace(b"\0", b"")
    if not line.strip():
        return []
    values = glued_records(line.decode("utf-8", "replace"))
    if values:
        list_problem(problems, number, f"{len(values)} records on one line")
        return [value for value in values if isinstance(value, Mapping)]
    values = [load_json(record) for record in split_records(line)]
    records = [value for value in values if isinstance(value, Mapping) and is_record(value)]
    if records:
        count = "1 record" if len(records) == 1 else f"{len(records)} records"
        message = f"damaged, only {count} of the line could be read"
    else:
        message = CUT_OFF if ends_open else f"not JSON, left out: {reason}"
    list_problem(problems, number, message)
    return records

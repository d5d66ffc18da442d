"""The interface of a reader of one format, and the identities of its traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from mast_tui.counts import counted
from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lines import FIRST_SLICE, LineParser, LineSpans, feed_lines
from mast_tui.traces.index.span_table import list_problem
from mast_tui.traces.io.json_lines import NUL_BYTES, glued_records, split_records
from mast_tui.traces.io.json_values import INVALID_ESCAPE, InvalidJSON, load_json
from mast_tui.traces.io.source import Source, value_with_invalid_escapes
from mast_tui.traces.keys import identity_by_content
from mast_tui.traces.model import FileReport, Problem, Trace, TraceIdentity
from mast_tui.traces.readers.json_fields import Fields, fields_of

CUT_OFF: Final = "the last line is cut off; everything before it was read"
"""The problem of a file whose last line is not a complete record."""


class Reader(Protocol):
    """Recognises one format by content and reads it.

    ``key_scheme`` is the version of the span keys. Labels depend on the keys, so it changes only
    together with a migration.
    """

    @property
    def name(self) -> str: ...
    @property
    def key_scheme(self) -> int: ...
    def recognises(self, source: Source, /) -> bool:
        """Return whether the file is of this format, by its content."""

    def read(self, source: Source, /) -> FileReport:
        """Return the file's traces and problems; broken parts are problems, never exceptions."""


class FormatReader(Struct, frozen=True):
    """A ``Reader`` that is made of two functions."""

    name: str
    recognises: Callable[[Source], bool]
    read: Callable[[Source], FileReport]
    key_scheme: int = 1


def extended_range(line_range: tuple[int, int] | None, number: int) -> tuple[int, int]:
    """Return the range of some adjacent lines, extended by the next line.

    Args:
        line_range: The numbers of the first and the last line; None without lines.
        number: The number of the next line.
    """
    first_number = number if line_range is None else line_range[0]
    return first_number, number


def identity_of(
    reader: Reader,
    path: Path,
    content: bytes,
    *,
    record: int | None = None,
    native: str | None = None,
) -> TraceIdentity:
    """Return the identity of a trace: its native id, else an id made of its content.

    Args:
        reader: The reader.
        path: The file of the trace.
        content: The bytes that identify the trace.
        record: The number of the trace in the file; None for the only trace.
        native: The id of the trace in the file, if it has one.
    """
    identity = identity_by_content(
        path, record, content, reader=reader.name, key_scheme=reader.key_scheme
    )
    return identity._replace(trace_id=native, native=True) if native else identity


def trace_of_lines(
    reader: Reader,
    source: Source,
    parser: LineParser,
    native: Callable[[], str | None] = lambda: None,
) -> Trace:
    """Return the trace that a parser makes of a file's lines; later lines are read on demand.

    Args:
        reader: The reader.
        source: The file.
        parser: The parser.
        native: Returns the id of the trace in the first lines, if they have one.
    """
    index = LineIndex.of_source(source)
    feed_lines(index, parser, FIRST_SLICE)
    identity = identity_of(reader, source.path, source.head, native=native())
    return Trace(identity, source.path, LineSpans(index, parser))


def records_on_damaged_line(
    line: bytes,
    number: int,
    cut_off: bool,
    problems: list[Problem],
    is_record: Callable[[Mapping[str, object]], bool],
) -> Sequence[Mapping[str, object]]:
    """Return the JSON objects on a line that is not a single object.

    A line may have several objects without line feeds between them, a complete object after a
    broken one, or NUL bytes, which are left out.

    Args:
        line: The content of the line.
        number: The number of the line in the file.
        cut_off: Whether the line is the last one and has no line feed.
        problems: The list to which the damage is added.
        is_record: Returns whether an object is a complete record, not a part of a broken one.
    """
    if b"\0" in line:
        list_problem(problems, number, NUL_BYTES)
        line = line.replace(b"\0", b"")
    if not line.strip():
        return ()

    glued_values = glued_records(line.decode("utf-8", "replace"))
    if glued_values:
        list_problem(problems, number, f"{len(glued_values)} records on one line")
        return [value for value in glued_values if isinstance(value, Mapping)]

    reason = "not a JSON object, left out"
    try:
        value = load_json(line)
    except InvalidJSON as error:
        reason = CUT_OFF if cut_off else f"not JSON, left out: {error}"
        value = value_with_invalid_escapes(line.decode("utf-8", "replace"), error)
        if isinstance(value, Mapping):
            list_problem(problems, number, INVALID_ESCAPE)
            return (value,)
    else:
        if isinstance(value, Mapping):
            return (value,)

    values = [load_json(text) for text in split_records(line)]
    records = [value for value in values if isinstance(value, Mapping) and is_record(value)]
    if records and not cut_off:
        count = counted(len(records), "record")
        reason = f"a broken record, left out; {count} beside it read"
    list_problem(problems, number, reason)
    return records


def is_gemini_shaped(record: Fields) -> bool:
    """Return whether a record is Qwen Code's, with ``parts`` in its messages as in Gemini's."""
    message = fields_of(record.get("message"))
    return "systemPayload" in record or isinstance(message.get("parts"), list)

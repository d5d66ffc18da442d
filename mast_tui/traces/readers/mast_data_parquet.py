"""Parquet tables with one run a row: MAST-Data, and published data sets of message lists.

Needs pyarrow, which comes with the extra ``parquet``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from io import BytesIO
from itertools import chain, islice
from typing import Any, Final

from mast_tui.traces.io.json_values import replace_surrogates
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem
from mast_tui.traces.readers import mast_data
from mast_tui.traces.readers.base import FormatReader
from mast_tui.traces.readers.chat.containers import conversation_in
from mast_tui.traces.readers.chat.reader import READER as MESSAGE_LISTS
from mast_tui.traces.readers.chat.reader import format_of, traces_of
from mast_tui.traces.readers.document_traces import Record, report_of
from mast_tui.traces.readers.json_fields import Fields

MAX_BYTES: Final = 256 << 20
"""The maximum size of an unpacked table."""

_FIRST_BYTES: Final = b"PAR1"
_NEEDS_EXTRA: Final = (
    "Parquet needs more packages; install them with: pip install 'mast-tui[parquet]'"
)
_ROWS_AT_ONCE: Final = 16
_COMPARED_ROWS: Final = 20
_MAX_DEPTH: Final = 64
_FIELDS_WITH_NULL: Final = frozenset({"content"})

Row = tuple[int, Fields]
"""A row's number, from 0, and its values by column."""

Table = Any
"""A table of pyarrow, which has no type stubs."""


def _read(source: Source) -> FileReport:
    """Return one trace for each row; skip the file if pyarrow is missing or no row is a run."""
    try:
        from pyarrow import ArrowException, parquet  # an extra
    except ImportError:
        return FileReport(source.path, skipped=_NEEDS_EXTRA)
    if source.size > MAX_BYTES:
        return FileReport(source.path, skipped=_size_message(source.size))
    row_problems: list[Problem] = []
    try:
        file = open_regular(source.path) if source.packing is None else BytesIO(source.data)
        table: Table = parquet.ParquetFile(file)
        groups = map(table.metadata.row_group, range(table.metadata.num_row_groups))
        if (size := sum(group.total_byte_size for group in groups)) > MAX_BYTES:
            return FileReport(source.path, skipped=_size_message(size))
    except (ArrowException, OSError, ValueError) as error:
        return FileReport(source.path, failed=f"not readable as Parquet: {_error_text(error)}")

    report = _read_rows(source, _rows_of_table(table, ArrowException, row_problems))
    if report.format is None and row_problems:
        return FileReport(source.path, failed=row_problems[0].message)
    return report._replace(problems=(*report.problems, *row_problems))


READER: Final = FormatReader(
    "parquet",
    lambda source: source.head.startswith(_FIRST_BYTES),
    _read,
    key_scheme=MESSAGE_LISTS.key_scheme,
)
"""Reads Parquet tables row by row; span keys are those of the reader of the row's format.

A place begins with the number of the row from 1 on: ``row 12 /messages/3``.
"""


def _size_message(size: int) -> str:
    max_megabytes = MAX_BYTES >> 20
    return (
        f"a Parquet table of {size >> 20} MB; tables of more than {max_megabytes} MB are not read"
    )


def _rows_of_table(
    table: Table, arrow_error: type[Exception], problems: list[Problem]
) -> Iterator[Row]:
    """Yield the rows of a table; report rows that cannot be read.

    Args:
        arrow_error: The exception that pyarrow raises for a broken table.
        problems: The list to which unreadable rows are added.
    """
    row_index = 0
    try:
        for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE):
            for offset in range(batch.num_rows):
                location = f"row {row_index + 1}"
                # Rows are converted one by one, so that a broken value costs only its own row.
                try:
                    (row,) = batch.slice(offset, 1).to_pylist()
                except (ValueError, OverflowError) as error:  # an invalid text, time or number
                    problems.append(Problem(location, f"left out: {_error_text(error)}"))
                else:
                    yield row_index, {name: _json_value(value, 1) for name, value in row.items()}
                row_index += 1
    except (arrow_error, OSError, ValueError) as error:
        message = f"cannot be read from here on: {_error_text(error)}"
        problems.append(Problem(f"row {row_index + 1}", message))


def _error_text(error: Exception) -> str:
    return " ".join(str(error).split())


def _read_rows(source: Source, rows: Iterator[Row]) -> FileReport:
    """Read all rows in the format of the first rows; skip a table without a run in these."""
    first_rows = list(islice(rows, _COMPARED_ROWS))
    all_rows = chain(first_rows, rows)
    records = (Record(row, row_index, f"row {row_index + 1} ") for row_index, row in all_rows)
    problems: list[Problem] = []
    if any(mast_data.is_record(row) for _row_index, row in first_rows):
        traces = mast_data.traces_of_records(source, records, problems)
        format_name = mast_data.READER.name
    elif any(conversation_in(row) is not None for _row_index, row in first_rows):
        traces = traces_of(source.path, records, problems)
        format_name = format_of(traces)
    else:
        return FileReport(source.path, skipped="a Parquet table without traces")
    return report_of(READER, source, traces, problems, format_name)


def _json_value(value: object, depth: int) -> object:
    """Return a value of a table as JSON; a field of a row has depth 1.

    Null fields of objects are left out, because a table has every field in every row. Only a
    message's null content is kept.
    """
    if depth > _MAX_DEPTH:
        return "(nested too deeply)"
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return replace_surrogates(value)
        case Mapping():
            return {
                str(name): _json_value(field_value, depth + 1)
                for name, field_value in value.items()
                if field_value is not None or name in _FIELDS_WITH_NULL
            }
        case list() | tuple():
            return [_json_value(item, depth + 1) for item in value]
        case bytes():
            return _text_of_bytes(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return float(value)
        case _:
            return str(value)


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"[{len(value)} bytes]"

"""Parquet tables, one run a row: MAST-Data, and message lists as data sets are published.

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
from mast_tui.traces.readers.chat.containers import conversation_in
from mast_tui.traces.readers.chat.reader import READER as MESSAGE_LISTS
from mast_tui.traces.readers.chat.reader import format_of, traces_of
from mast_tui.traces.readers.document_traces import Record, report_of
from mast_tui.traces.readers.json_fields import Fields

MOST_BYTES: Final = 256 << 20
"""Size of a table, unpacked, from which on it is not read."""

_MAGIC: Final = b"PAR1"
_NEEDS_EXTRA: Final = "Parquet needs an extra: pip install 'mast-tui[parquet]'"
_ROWS_AT_ONCE: Final = 16
_LOOKED_AT: Final = 20
_DEEPEST: Final = 64
_REQUIRED_COLUMNS: Final = frozenset({"content"})

Row = tuple[int, Fields]
"""A row's number, from 0, and its values by column."""

Table = Any
"""A table as pyarrow reads it, which has no type stubs."""


class ParquetReader:
    """Reads Parquet tables row by row; span keys are those of the reader of the row's format.

    A place begins with the row, counted from 1: ``row 12 /messages/3``.
    """

    name: Final = "parquet"
    key_scheme: Final = MESSAGE_LISTS.key_scheme

    def recognises(self, source: Source) -> bool:
        """Return whether the file begins as Parquet files do."""
        return source.head.startswith(_MAGIC)

    def read(self, source: Source) -> FileReport:
        """Return one trace per row; ``skipped`` without pyarrow, and where no row is a run."""
        try:
            from pyarrow import ArrowException, parquet  # an extra
        except ImportError:
            return FileReport(source.path, skipped=_NEEDS_EXTRA)
        if source.size > MOST_BYTES:
            return FileReport(source.path, skipped=_too_big(source.size))
        rows_end: list[Problem] = []
        try:
            file = open_regular(source.path) if source.packing is None else BytesIO(source.data)
            table: Table = parquet.ParquetFile(file)
            groups = map(table.metadata.row_group, range(table.metadata.num_row_groups))
            if (size := sum(group.total_byte_size for group in groups)) > MOST_BYTES:
                return FileReport(source.path, skipped=_too_big(size))
        except (ArrowException, OSError, ValueError) as error:
            return FileReport(source.path, failed=f"not readable as Parquet: {_one_line(error)}")
        report = _read(source, _rows(table, ArrowException, rows_end))
        if report.format is None and rows_end:
            return FileReport(source.path, failed=rows_end[0].message)
        return report._replace(problems=(*report.problems, *rows_end))


READER: Final = ParquetReader()


def _too_big(size: int) -> str:
    most = MOST_BYTES >> 20
    return f"a Parquet table of {size >> 20} MB; tables of more than {most} MB are not read"


def _rows(table: Table, broken: type[Exception], problems: list[Problem]) -> Iterator[Row]:
    """Yield the rows; rows that cannot be read are added to ``problems``."""
    number = 0
    try:
        for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE):
            for offset in range(batch.num_rows):
                try:
                    (row,) = batch.slice(offset, 1).to_pylist()
                except (ValueError, OverflowError) as error:  # what is no text, time or number
                    problems.append(Problem(f"row {number + 1}", f"left out: {_one_line(error)}"))
                else:
                    yield number, {name: _plain(value, 1) for name, value in row.items()}
                number += 1
    except (broken, OSError, ValueError) as error:
        message = f"cannot be read from here on: {_one_line(error)}"
        problems.append(Problem(f"row {number + 1}", message))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _read(source: Source, rows: Iterator[Row]) -> FileReport:
    """Read all rows by the format of the first ones."""
    first = list(islice(rows, _LOOKED_AT))
    records = (Record(row, number, f"row {number + 1} ") for number, row in chain(first, rows))
    problems: list[Problem] = []
    if any(mast_data.is_record(row) for _number, row in first):
        traces = mast_data.traces_of_records(source, records, problems)
        format_name = mast_data.READER.name
    elif any(conversation_in(row) is not None for _number, row in first):
        traces = traces_of(source.path, records, problems)
        format_name = format_of(traces)
    else:
        return FileReport(source.path, skipped="a Parquet table without traces")
    return report_of(READER, source, traces, problems, format_name)


def _plain(value: object, depth: int) -> object:
    """Return a table's value as JSON has it.

    Tables fill in null wherever other rows have a field: such fields of an object are left out.
    """
    if depth > _DEEPEST:
        return "(nested too deeply)"
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return replace_surrogates(value)
        case Mapping():
            return {
                str(name): _plain(inner, depth + 1)
                for name, inner in value.items()
                if inner is not None or name in _REQUIRED_COLUMNS
            }
        case list() | tuple():
            return [_plain(inner, depth + 1) for inner in value]
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

"""Reading and making CSV as Python, R and spreadsheets agree on it.

UTF-8 (a byte order mark is read and not written), comma (semicolon and tab are read too), double
quotes where needed, one heading row. Cells are data and stay as they are, also those that a
spreadsheet would take for a formula.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from mast_tui.exchange.errors import ExchangeError, RowProblem
from mast_tui.traces.io.decoding import csv_separator
from mast_tui.traces.readers.run_facts import trial_number

_MAX_CELL: Final = 1 << 30
_ROWS_AT_ONCE: Final = 500


class CsvRow(NamedTuple):
    """One row: its texts (missing ones are empty) and the line on which it begins."""

    file: Path
    line: int
    columns: tuple[str, ...]
    texts: list[str]

    @property
    def cells(self) -> Mapping[str, str]:
        """The texts by column."""
        return dict(zip(self.columns, self.texts, strict=True))

    @property
    def place(self) -> str:
        """The location of the row, in words."""
        return _location(self.line)

    def problem(self, reason: object) -> RowProblem:
        """Return a problem at this row."""
        return RowProblem.of(self.file, self.place, reason)


def _table(path: Path) -> tuple[tuple[str, ...], Iterator[CsvRow | RowProblem]]:
    """Return a file's columns and an iterator of its rows; a broken row is a problem."""
    text = _text(path)
    lines_of_text = io.StringIO(text, newline="")
    reader = csv.reader(lines_of_text, strict=True, delimiter=csv_separator(text))
    lines = _lines(reader)
    _, heading = next(lines, (0, None))
    if not isinstance(heading, list) or not any(heading):
        raise ExchangeError(f"{path}: no heading row; the first row names the columns")
    columns = tuple(name.strip() for name in heading)
    doubled = sorted({name for name in columns if columns.count(name) > 1})
    if doubled:
        raise ExchangeError(f"{path}: column {doubled[0]!r} stands twice in the heading row")
    return columns, _rows(path, columns, lines)


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ExchangeError(
            f"{path}: line {line}: not UTF-8; save the file as 'CSV UTF-8'"
        ) from None


def _rows(
    path: Path, columns: tuple[str, ...], lines: Iterator[tuple[int, list[str] | str]]
) -> Iterator[CsvRow | RowProblem]:
    width = len(columns)
    for line, cells in lines:
        if isinstance(cells, str):
            yield RowProblem(path, _location(line), cells)
        elif len(cells) > width:
            reason = f"{len(cells)} cells under {width} headings; quote cells with commas"
            yield RowProblem(path, _location(line), reason)
        elif any(map(str.strip, cells)):
            cells += [""] * (width - len(cells))
            yield CsvRow(path, line, columns, cells)


def _location(line: int) -> str:
    return f"line {line}"


def _lines(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str] | str]]:
    """Yield each row with its first line; a message in place of a broken row."""
    begins = 1
    ended = False
    while not ended:
        some = list[tuple[int, list[str] | str]]()
        limit = csv.field_size_limit(_MAX_CELL)  # of the whole program, so not while others run
        try:
            while len(some) < _ROWS_AT_ONCE:
                try:
                    some.append((begins, next(reader)))
                except csv.Error as error:
                    some.append((begins, f"not CSV: {error}"))
                begins = reader.line_num + 1  # type: ignore[attr-defined]
        except StopIteration:
            ended = True
        finally:
            csv.field_size_limit(limit)
        yield from some


def stream_rows(
    files: Sequence[Path],
    problems: list[RowProblem],
    *,
    allowed: Iterable[str],
    needed: Iterable[str],
) -> Iterator[CsvRow]:
    """Yield the rows of several files, whose headings are all checked before the first row.

    Args:
        files: The files.
        problems: Takes the rows that cannot be taken apart.
        allowed: The columns that somebody reads.
        needed: Those that must be there.

    Raises:
        ExchangeError: A file is no such table.
    """
    tables: list[Iterator[CsvRow | RowProblem]] = []
    for file in files:
        columns, rows = _table(file)
        _check_columns(columns, file, allowed=allowed, needed=needed)
        tables.append(rows)
    return _sound(chain.from_iterable(tables), problems)


def read_rows(path: Path, *, allowed: Iterable[str], needed: Iterable[str]) -> list[CsvRow]:
    """Return the rows of a small file, as ``stream_rows`` checks them; none may be broken.

    Args:
        path: The file's path.
        allowed: The allowed columns.
        needed: The columns that must be there.
    """
    problems: list[RowProblem] = []
    rows = list(stream_rows([path], problems, allowed=allowed, needed=needed))
    if problems:
        raise ExchangeError(str(problems[0]))
    return rows


def _sound(rows: Iterable[CsvRow | RowProblem], problems: list[RowProblem]) -> Iterator[CsvRow]:
    for row in rows:
        if isinstance(row, CsvRow):
            yield row
        else:
            problems.append(row)


def _check_columns(
    columns: tuple[str, ...], path: Path, *, allowed: Iterable[str], needed: Iterable[str]
) -> None:
    """Refuse a heading row that lacks a needed column or has one that nobody would read."""
    for name in needed:
        if name not in columns:
            raise ExchangeError(f"{path}: column {name!r} is missing")
    allowed_names = set(allowed)
    for name in columns:
        if name not in allowed_names:
            subject = f"column {name!r}" if name else "a column without a heading"
            raise ExchangeError(f"{path}: {subject} is unknown; known are {', '.join(allowed)}")


def trial_in(text: str) -> int | None:
    """Return the number of a trial in a cell, None in an empty one; raises ``ValueError``."""
    trial = trial_number(text.strip()) if text.strip() else None
    if text.strip() and trial is None:
        raise ValueError(f"trial is {text!r}; it is a whole number from 0")
    return trial


def share_in(name: str, text: str) -> float | None:
    """Return the number from 0 to 1 in a cell of the column ``name``, None in an empty one.

    Raises ``ValueError`` for anything else.

    Args:
        name: The column's name.
        text: The cell's text.
    """
    if not text.strip():
        return None
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, not a number") from None
    if not 0 <= number <= 1:
        raise ValueError(f"{name} is {text}; it lies between 0 and 1")
    return number

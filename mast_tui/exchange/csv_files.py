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
        """Where it stands, in words."""
        return _place(self.line)

    def problem(self, reason: object) -> RowProblem:
        """Return a problem at this row."""
        return RowProblem.of(self.file, self.place, reason)


def _table(path: Path) -> tuple[tuple[str, ...], Iterator[CsvRow | RowProblem]]:
    """A file's columns, and its rows as they are asked for: a problem where one is broken."""
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
    wanted = len(columns)
    for line, cells in lines:
        if isinstance(cells, str):
            yield RowProblem(path, _place(line), cells)
        elif len(cells) > wanted:
            reason = f"{len(cells)} cells under {wanted} headings; quote cells with commas"
            yield RowProblem(path, _place(line), reason)
        elif any(map(str.strip, cells)):
            cells += [""] * (wanted - len(cells))
            yield CsvRow(path, line, columns, cells)


def _place(line: int) -> str:
    return f"line {line}"


def _lines(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str] | str]]:
    """Each row with the line on which it begins; a message in place of a row that is broken."""
    begins, ended = 1, False
    while not ended:
        some = list[tuple[int, list[str] | str]]()
        before = csv.field_size_limit(_MAX_CELL)  # of the whole program, so not while others run
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
            csv.field_size_limit(before)
        yield from some


def stream_rows(
    files: Sequence[Path],
    problems: list[RowProblem],
    *,
    known: Iterable[str],
    needed: Iterable[str],
) -> Iterator[CsvRow]:
    """The rows of several files, whose headings are all checked before the first row.

    Args:
        files: The files.
        problems: Takes the rows that cannot be taken apart.
        known: The columns that somebody reads.
        needed: Those that must be there.

    Raises:
        ExchangeError: A file is no such table.
    """
    tables: list[Iterator[CsvRow | RowProblem]] = []
    for file in files:
        columns, rows = _table(file)
        _check_columns(columns, file, known=known, needed=needed)
        tables.append(rows)
    return _sound(chain.from_iterable(tables), problems)


def read_rows(path: Path, *, known: Iterable[str], needed: Iterable[str]) -> list[CsvRow]:
    """The rows of a small file, as ``stream_rows`` checks them, in which none may be broken."""
    problems: list[RowProblem] = []
    rows = list(stream_rows([path], problems, known=known, needed=needed))
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
    columns: tuple[str, ...], path: Path, *, known: Iterable[str], needed: Iterable[str]
) -> None:
    """Refuse a heading row that lacks a needed column or has one that nobody would read."""
    for name in needed:
        if name not in columns:
            raise ExchangeError(f"{path}: column {name!r} is missing")
    wanted = set(known)
    for name in columns:
        if name not in wanted:
            what = f"column {name!r}" if name else "a column without a heading"
            raise ExchangeError(f"{path}: {what} is unknown; known are {', '.join(known)}")


def share_in(name: str, text: str) -> float | None:
    """The number from 0 to 1 in a cell of the column ``name``, None in an empty one.

    Raises ``ValueError`` for anything else.
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

"""Reading of CSV in the form that Python, R and spreadsheets share.

It is UTF-8 with commas, double quotes where needed, and one heading row. A byte order mark,
semicolons and tabs are also read. Cells stay unchanged, even if a spreadsheet would read them as a
formula.
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
    """A row with the number of its first line.

    Missing cells are empty.
    """

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
        return _line_location(self.line)

    def problem(self, reason: object) -> RowProblem:
        """Return a problem at this row."""
        return RowProblem.of(self.file, self.place, reason)


def _columns_and_rows(
    path: Path, problems: list[RowProblem]
) -> tuple[tuple[str, ...], Iterator[CsvRow]]:
    """Return the columns of a file, and an iterator of its rows.

    Broken rows are added to ``problems`` during the iteration.
    """
    text = _decoded_text(path)
    text_file = io.StringIO(text, newline="")
    reader = csv.reader(text_file, strict=True, delimiter=csv_separator(text))
    numbered_rows = _numbered_rows(reader)
    _, heading = next(numbered_rows, (0, None))
    # A broken row is a message instead of a list of cells.
    if not isinstance(heading, list) or not any(heading):
        raise ExchangeError(f"{path}: no heading row; the first row must name the columns")
    columns = tuple(name.strip() for name in heading)
    duplicate_names = sorted({name for name in columns if name and columns.count(name) > 1})
    if duplicate_names:
        raise ExchangeError(
            f"{path}: column {duplicate_names[0]!r} appears twice in the heading row"
        )
    return columns, _checked_rows(path, columns, numbered_rows, problems)


def _decoded_text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ExchangeError(
            f"{path}: line {line}: not UTF-8; save the file as 'CSV UTF-8'"
        ) from None


def _checked_rows(
    path: Path,
    columns: tuple[str, ...],
    lines: Iterator[tuple[int, list[str] | str]],
    problems: list[RowProblem],
) -> Iterator[CsvRow]:
    """Yield the rows that are not empty, and add broken rows to ``problems``.

    ``lines`` holds each row's first line number with its cells, or with a message for a broken row.
    """
    width = len(columns)
    for line, cells in lines:
        if isinstance(cells, str):
            message = cells
            problems.append(RowProblem(path, _line_location(line), message))
        elif len(cells) > width:
            reason = f"{len(cells)} cells under {width} headings; quote cells with commas"
            problems.append(RowProblem(path, _line_location(line), reason))
        elif any(map(str.strip, cells)):
            cells += [""] * (width - len(cells))
            yield CsvRow(path, line, columns, cells)


def _line_location(line: int) -> str:
    return f"line {line}"


def _numbered_rows(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str] | str]]:
    """Yield each row's first line number with its cells, or with a message for a broken row."""
    first_line = 1
    has_ended = False
    while not has_ended:
        batch = list[tuple[int, list[str] | str]]()
        # The limit is global to the process, so it is restored before each ``yield``.
        limit = csv.field_size_limit(_MAX_CELL)
        try:
            while len(batch) < _ROWS_AT_ONCE:
                try:
                    batch.append((first_line, next(reader)))
                except csv.Error as error:
                    batch.append((first_line, f"not CSV: {error}"))
                first_line = reader.line_num + 1  # type: ignore[attr-defined]
        except StopIteration:
            has_ended = True
        finally:
            csv.field_size_limit(limit)
        yield from batch


def stream_rows(
    files: Sequence[Path],
    problems: list[RowProblem],
    *,
    allowed: Iterable[str],
    needed: Iterable[str],
) -> Iterator[CsvRow]:
    """Yield the rows of several files.

    All headings are checked before the first row.

    Args:
        files: The files.
        problems: Receives the broken rows.
        allowed: The columns that a file may have.
        needed: The columns that a file must have.

    Raises:
        ExchangeError: A file is not a CSV table with these columns.
    """
    tables: list[Iterator[CsvRow]] = []
    for file in files:
        columns, rows = _columns_and_rows(file, problems)
        _check_columns(columns, file, allowed=allowed, needed=needed)
        tables.append(rows)
    return chain.from_iterable(tables)


def read_rows(path: Path, *, allowed: Iterable[str], needed: Iterable[str]) -> list[CsvRow]:
    """Return all rows of a file.

    Args:
        path: The file's path.
        allowed: The columns that the file may have.
        needed: The columns that the file must have.

    Raises:
        ExchangeError: The file is not a CSV table with these columns, or a row is broken.
    """
    problems: list[RowProblem] = []
    rows = list(stream_rows([path], problems, allowed=allowed, needed=needed))
    if problems:
        raise ExchangeError(str(problems[0]))
    return rows


def _check_columns(
    columns: tuple[str, ...], path: Path, *, allowed: Iterable[str], needed: Iterable[str]
) -> None:
    """Check that all needed columns are present and that all columns are allowed."""
    for name in needed:
        if name not in columns:
            raise ExchangeError(f"{path}: column {name!r} is missing")
    allowed_names = set(allowed)
    for name in columns:
        if name not in allowed_names:
            subject = f"column {name!r}" if name else "a column without a heading"
            raise ExchangeError(f"{path}: {subject} is unknown; expected {', '.join(allowed)}")


def trial_in(text: str) -> int | None:
    """Return the number of a trial in a cell; None if it is empty.

    Raises:
        ValueError: The cell is not a whole number from 0.
    """
    if not text.strip():
        return None
    trial = trial_number(text.strip())
    if trial is None:
        raise ValueError(f"trial is {text!r}; expected a whole number from 0")
    return trial


def share_in(name: str, text: str) -> float | None:
    """Return the number in a cell; None if it is empty.

    Args:
        name: The column's name.
        text: The cell's text.

    Raises:
        ValueError: The text is not a number from 0 to 1.
    """
    if not text.strip():
        return None
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, not a number") from None
    if not 0 <= number <= 1:
        raise ValueError(f"{name} is {text}; expected 0 to 1")
    return number

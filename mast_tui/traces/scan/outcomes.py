"""The rows of ``outcomes.csv``: outcomes for the traces beside it that have none of their own.

Columns: ``trace`` (a file name, ``file#record`` with the record's number from 0, or a trace id),
``outcome`` (``failed``, ``succeeded`` or empty), ``score`` in [0, 1], ``system``, ``model``,
``benchmark``, ``version`` (of the system), ``date`` (ISO 8601, by itself or with a time; without a
zone UTC), ``task_id`` (the name of the task) and ``trial`` (the number of this run of the task);
all but ``trace`` are optional.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from mast_tui.counts import counted
from mast_tui.traces.io.decoding import csv_separator, decode
from mast_tui.traces.io.regular_files import UnreadableFile, read_beside
from mast_tui.traces.model import FileReport, Outcome, Problem, Trace, TraceMeta
from mast_tui.traces.readers.run_facts import trial_number
from mast_tui.traces.times import unix_seconds

FILE_NAME: Final = "outcomes.csv"

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "unknown": Outcome.UNKNOWN,
    "failed": Outcome.FAILED,
    "succeeded": Outcome.SUCCEEDED,
    "success": Outcome.SUCCEEDED,
}


class Outcomes(NamedTuple):
    """The rows of one ``outcomes.csv``, each with its cell ``trace`` as its name.

    Attributes:
        facts: The facts of each row, by its name.
        problems: The problems of the file.
        unread: The reason why the whole file cannot be read; None if it was read.
        lines: The line of each row, by its name.
    """

    facts: Mapping[str, TraceMeta]
    problems: tuple[Problem, ...] = ()
    unread: str | None = None
    lines: Mapping[str, int] = {}

    def description(self, unmatched: tuple[Problem, ...] = ()) -> str:
        """Describe the number of rows and the problems of the file, or why it was not read.

        Args:
            unmatched: The problems of the rows that match no trace.
        """
        if self.unread is not None:
            return f"outcomes that are not read: {self.unread}"
        row_count = len(self.facts)
        text = f"outcomes of {counted(row_count, 'trace')}"
        if unmatched:
            matched_count = row_count - len(unmatched)
            matches = counted(matched_count, "matches", "match")
            text = f"{counted(row_count, 'row')} of outcomes, of which {matches} a trace"
        problems = (*self.problems, *unmatched)
        if problems:
            first = problems[0]
            text += (
                f"; {counted(len(problems), 'problem')}, the first: {first.place}: {first.message}"
            )
        return text

    def rows_of(self, trace_id: str, file: str, record: int | None) -> Iterator[str]:
        """Yield the names of the rows for a trace, the most exact name first.

        Args:
            trace_id: The id of the trace.
            file: The name of its file, without the folder.
            record: The number of the trace in the file; None if the file is one trace.
        """
        names = () if record is None else (f"{file}#{record}",)
        return (name for name in (*names, trace_id, file) if name in self.facts)

    def unmatched(self, matched_rows: Container[str]) -> tuple[Problem, ...]:
        """Return a problem for each row that matches no trace."""
        return tuple(
            Problem(f"line {self.lines[name]}", f"{name!r} is not a file here or a trace id")
            for name in self.facts
            if name not in matched_rows
        )

    def add_facts_to(self, report: FileReport) -> FileReport:
        """Return the report with unknown facts of its traces taken from their rows."""
        if not self.facts or not report.traces:
            return report
        return report._replace(traces=tuple(map(self._added_to_trace, report.traces)))

    def add_problem_to(self, report: FileReport) -> FileReport:
        """Return the report with a problem if this ``outcomes.csv`` cannot be read."""
        if self.unread is None or not report.traces:
            return report
        problem = Problem(FILE_NAME, f"not read: {self.unread}")
        return report._replace(problems=(*report.problems, problem))

    def _added_to_trace(self, trace: Trace) -> Trace:
        row = next(rows_of_trace(self, trace), None)
        return trace if row is None else trace.with_facts(self.facts[row])


def rows_of_trace(outcomes: Outcomes, trace: Trace) -> Iterator[str]:
    """Yield the names of the rows for a trace.

    Args:
        outcomes: The rows.
        trace: The trace.
    """
    return outcomes.rows_of(trace.identity.trace_id, trace.path.name, trace.record)


NO_OUTCOMES: Final = Outcomes({})


def load_outcomes(folder: Path) -> Outcomes:
    """Return the outcomes in ``folder``; empty if the file is missing or cannot be read."""
    try:
        data = read_beside(folder / FILE_NAME)
    except UnreadableFile as error:
        return Outcomes({}, unread=error.strerror)
    return NO_OUTCOMES if data is None else parse_outcomes(data)


def parse_outcomes(data: bytes) -> Outcomes:
    """Return the facts in the bytes of an ``outcomes.csv``; invalid cells become problems."""
    import csv

    text, problem = decode(data)
    problems = [] if problem is None else [problem]
    facts: dict[str, TraceMeta] = {}
    line_numbers: dict[str, int] = {}
    lines = text.splitlines(keepends=True)
    rows = csv.DictReader(lines, restval="", delimiter=csv_separator(text))
    try:
        if "trace" not in (rows.fieldnames or ()):
            return Outcomes({}, (Problem("line 1", "there is no column named 'trace'"),))
        for row in rows:
            cells = {name: value.strip() for name, value in row.items() if isinstance(value, str)}
            name = cells.get("trace")
            if name:
                facts[name] = _facts_of_row(cells, f"line {rows.line_num}", problems)
                line_numbers[name] = rows.line_num
    except csv.Error as error:
        problems.append(Problem(f"line {rows.line_num}", f"not CSV: {error}"))
    return Outcomes(facts, tuple(problems), lines=line_numbers)


def _facts_of_row(cells: Mapping[str, str], location: str, problems: list[Problem]) -> TraceMeta:
    """Return the facts of a row; invalid cells become problems."""
    values = {}
    for column, (value_of, expected) in _CHECKED_COLUMNS.items():
        cell = cells.get(column)
        values[column] = value_of(cell) if cell else None
        if cell and values[column] is None:
            problems.append(Problem(location, f"{column} is {cell!r}; expected {expected}"))
    return TraceMeta(
        system=cells.get("system") or None,
        model=cells.get("model") or None,
        benchmark=cells.get("benchmark") or None,
        outcome=values["outcome"] or Outcome.UNKNOWN,
        score=values["score"],
        version=cells.get("version") or None,
        started=values["date"],
        task_id=cells.get("task_id") or None,
        trial=values["trial"],
    )


def _score_of_cell(cell: str) -> float | None:
    """Return the number in a cell; None if it is no number from 0 to 1."""
    with suppress(ValueError):
        score = float(cell)
        if 0 <= score <= 1:
            return score
    return None


_CHECKED_COLUMNS: Final[Mapping[str, tuple[Callable[[str], Any], str]]] = {
    "outcome": (lambda cell: _OUTCOMES.get(cell.lower()), "failed, succeeded or empty"),
    "score": (_score_of_cell, "a number from 0 to 1"),
    "date": (unix_seconds, "a date such as 2026-03-31"),
    "trial": (trial_number, "a whole number from 0"),
}
"""For each column, a function that returns the value of a cell (None if invalid), and the valid
values in words."""

"""``outcomes.csv``: how the runs beside it ended, for traces whose own file cannot tell.

Columns: ``trace`` (a file name, or ``file#record`` with the record's number from 0), ``outcome``
(``failed``, ``succeeded`` or empty), ``score`` in [0, 1], ``system``, ``model``, ``benchmark``; all
but ``trace`` are optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mast_tui.traces.decoding import decode
from mast_tui.traces.model import FileReport, Outcome, Problem, Trace, TraceMeta
from mast_tui.traces.regular_files import UnreadableFile, read_beside

FILE_NAME: Final = "outcomes.csv"

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "": Outcome.UNKNOWN,
    "unknown": Outcome.UNKNOWN,
    "failed": Outcome.FAILED,
    "succeeded": Outcome.SUCCEEDED,
    "success": Outcome.SUCCEEDED,
}


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The facts of one ``outcomes.csv`` by trace, and what in it could not be read.

    ``unread`` says why there are none, where the whole file cannot be read.
    """

    facts: Mapping[str, TraceMeta]
    problems: tuple[Problem, ...] = ()
    unread: str | None = None

    @property
    def words(self) -> str:
        """What the file holds, and what of it could not be read."""
        if self.unread is not None:
            return f"outcomes that are not read: {self.unread}"
        words = f"outcomes of {len(self.facts)} traces"
        if self.problems:
            first = self.problems[0]
            words += f"; {len(self.problems)} problems, the first: {first.place}: {first.message}"
        return words

    def added_to(self, report: FileReport) -> FileReport:
        """The report with traces that know these facts too."""
        if not self.facts or not report.traces:
            return report
        return replace(report, traces=tuple(map(self._added_to_trace, report.traces)))

    def told_in(self, report: FileReport) -> FileReport:
        """The report with the problem that the file beside it cannot be read."""
        if self.unread is None or not report.traces:
            return report
        problem = Problem(FILE_NAME, f"not read: {self.unread}")
        return replace(report, problems=(*report.problems, problem))

    def _added_to_trace(self, trace: Trace) -> Trace:
        name = trace.path.name
        facts = None if trace.record is None else self.facts.get(f"{name}#{trace.record}")
        facts = facts or self.facts.get(name)
        if facts is None:
            return trace
        from mast_tui.traces.overlay import OverlaidTrace

        return OverlaidTrace(trace, facts=facts)


NO_OUTCOMES: Final = Outcomes({})


def load_outcomes(folder: Path) -> Outcomes:
    """The outcomes that lie in ``folder``; none where there is no such file or it is unreadable."""
    try:
        data = read_beside(folder / FILE_NAME)
    except UnreadableFile as error:
        return Outcomes({}, unread=error.strerror)
    return NO_OUTCOMES if data is None else parse_outcomes(data)


def parse_outcomes(data: bytes) -> Outcomes:
    """The facts in the bytes of an ``outcomes.csv``; bad cells are left out and listed."""
    import csv

    text, problem = decode(data)
    problems = [] if problem is None else [problem]
    facts: dict[str, TraceMeta] = {}
    rows = csv.DictReader(text.splitlines(keepends=True), restval="")
    try:
        if "trace" not in (rows.fieldnames or ()):
            return Outcomes({}, (Problem("line 1", "there is no column named 'trace'"),))
        for row in rows:
            cells = {name: value.strip() for name, value in row.items() if isinstance(value, str)}
            if cells.get("trace"):
                facts[cells["trace"]] = _facts(cells, f"line {rows.line_num}", problems)
    except csv.Error as error:
        problems.append(Problem(f"line {rows.line_num}", f"not CSV: {error}"))
    return Outcomes(facts, tuple(problems))


def _facts(cells: Mapping[str, str], place: str, problems: list[Problem]) -> TraceMeta:
    outcome = _OUTCOMES.get(cells.get("outcome", "").lower())
    if outcome is None:
        message = f"outcome is {cells['outcome']!r}; it must be failed, succeeded or empty"
        problems.append(Problem(place, message))
    return TraceMeta(
        system=cells.get("system") or None,
        model=cells.get("model") or None,
        benchmark=cells.get("benchmark") or None,
        outcome=outcome or Outcome.UNKNOWN,
        score=_score(cells.get("score", ""), place, problems),
    )


def _score(cell: str, place: str, problems: list[Problem]) -> float | None:
    if not cell:
        return None
    try:
        score = float(cell)
    except ValueError:
        score = -1.0
    if not 0 <= score <= 1:
        problems.append(Problem(place, f"score is {cell!r}; it must be a number from 0 to 1"))
        return None
    return score

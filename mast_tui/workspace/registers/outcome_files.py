"""The outcomes in ``outcomes.csv`` files beside the traces of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mast_tui.grouping import values_by_key
from mast_tui.traces.library import read_file
from mast_tui.traces.model import Outcome, TraceMeta
from mast_tui.traces.scan.outcomes import FILE_NAME, NO_OUTCOMES, Outcomes, load_outcomes
from mast_tui.workspace.records import TraceRecord

if TYPE_CHECKING:
    from mast_tui.workspace.store import Workspace

_ROWS_NAMED: Final = 3
"""The number of unmatched rows in a message; the others are counted."""

_TEXT_FACTS: Final = ("system", "model", "benchmark", "version", "task_id")
_NUMBER_FACTS: Final = ("started", "score", "trial")


@dataclass(frozen=True, slots=True)
class _StoredFacts:
    """A trace with a file, and its stored facts that an ``outcomes.csv`` may have."""

    trace_id: str
    path: Path
    record: int | None
    facts: TraceMeta


def update_outcomes(workspace: Workspace) -> list[str]:
    """Update the stored outcomes of traces from the ``outcomes.csv`` in their folders.

    If a row differs from the stored facts, the file of the trace is read again, because its facts
    take precedence. Empty cells change nothing.

    Args:
        workspace: The workspace.

    Returns:
        A sentence for each problem of these files.
    """
    folders = values_by_key(
        (stored.path.parent, stored) for stored in _read_stored_facts(workspace)
    )
    messages: list[str] = []
    for folder in sorted(folders):
        outcomes = load_outcomes(folder)
        if outcomes is NO_OUTCOMES:
            continue
        matched_rows: set[str] = set()
        changed_paths: set[Path] = set()
        for stored in folders[folder]:
            rows = list(outcomes.rows_of(stored.trace_id, stored.path.name, stored.record))
            matched_rows.update(rows)
            # The first of several matching rows names the trace most exactly.
            if rows and _states_other_facts(outcomes.facts[rows[0]], stored.facts):
                changed_paths.add(stored.path)
        for path in sorted(changed_paths):
            _read_again(workspace, path)
        messages += _problem_sentences(folder, outcomes, matched_rows)
    return messages


def _read_stored_facts(workspace: Workspace) -> list[_StoredFacts]:
    """Read the stored facts of all traces with a file."""
    fact_columns = (*_TEXT_FACTS, *_NUMBER_FACTS, "outcome")

    def facts_of_rows(rows: Iterator[tuple[Any, ...]]) -> list[_StoredFacts]:
        return [
            _StoredFacts(
                trace_id,
                workspace.resolve_trace_path(path),
                record,
                _meta_of_facts(dict(zip(fact_columns, values, strict=True))),
            )
            for trace_id, path, record, *values in rows
        ]

    return workspace.read_columns(
        "traces", ("id", "path", "record", *fact_columns), facts_of_rows, not_null="path"
    )


def _meta_of_facts(facts: dict[str, Any]) -> TraceMeta:
    return TraceMeta(**{**facts, "outcome": Outcome(facts["outcome"])})


def _states_other_facts(row: TraceMeta, stored: TraceMeta) -> bool:
    """Return whether a row of ``outcomes.csv`` has a fact that differs from the stored one."""
    # An empty cell is no fact, but 0 is one.
    stated_names = [name for name in _TEXT_FACTS if getattr(row, name)]
    stated_names += [name for name in _NUMBER_FACTS if getattr(row, name) is not None]
    if row.outcome is not Outcome.UNKNOWN:
        stated_names.append("outcome")
    return any(getattr(row, name) != getattr(stored, name) for name in stated_names)


def _read_again(workspace: Workspace, path: Path) -> None:
    for trace in read_file(path, named=True).traces:
        record = TraceRecord.from_trace(trace)
        if workspace.find_trace(record) is not None:
            workspace.register_trace(record)


def _problem_sentences(folder: Path, outcomes: Outcomes, matched_rows: set[str]) -> Iterator[str]:
    """Yield a sentence for each problem of an ``outcomes.csv``, then one for unmatched rows."""
    file = folder / FILE_NAME
    if outcomes.unread is not None:
        yield f"{file}: not read: {outcomes.unread}"
    for problem in outcomes.problems:
        yield f"{file}: {problem.place}: {problem.message}"
    # A row may name a file that the workspace does not know yet.
    named_files = {name for name in outcomes.facts if _is_file(folder, name)}
    unmatched = outcomes.unmatched(matched_rows | named_files)
    if unmatched:
        rows = [f"{problem.place}: {problem.message}" for problem in unmatched[:_ROWS_NAMED]]
        if len(unmatched) > _ROWS_NAMED:
            rows.append(f"and {len(unmatched) - _ROWS_NAMED} more")
        yield (
            f"{file}: {len(unmatched)} of {len(outcomes.facts)} rows match no file and no trace of "
            f"this workspace: {'; '.join(rows)}"
        )


def _is_file(folder: Path, name: str) -> bool:
    try:
        return (folder / name).is_file() or (folder / name.rpartition("#")[0]).is_file()
    except (OSError, ValueError):
        return False

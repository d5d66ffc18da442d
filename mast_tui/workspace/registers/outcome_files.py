"""The current content of ``outcomes.csv`` beside known traces, for the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mast_tui.traces.library import read_file
from mast_tui.traces.model import Outcome, TraceMeta
from mast_tui.traces.scan.outcomes import FILE_NAME, NO_OUTCOMES, Outcomes, load_outcomes
from mast_tui.workspace.records import TraceRecord

if TYPE_CHECKING:
    from mast_tui.workspace.store import Workspace

_NAMED: Final = 3
"""How many rows that match nothing are named."""


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """The stored facts of a trace with a file, as far as an ``outcomes.csv`` may have them."""

    trace_id: str
    path: Path
    record: int | None
    facts: TraceMeta


def take_outcomes(workspace: Workspace) -> list[str]:
    """Update the known traces from the ``outcomes.csv`` in their folders.

    A trace is read again only if such a file differs from the stored record, since the trace's own
    file takes precedence. Traces without a file, and empty cells, keep the stored values.

    Args:
        workspace: The workspace.

    Returns:
        A sentence for each problem of those files: bad cells, and rows that match no trace.
    """
    folders: dict[Path, list[RecordedOutcome]] = {}
    for recorded in _recorded_outcomes(workspace):
        folders.setdefault(recorded.path.parent, []).append(recorded)
    messages: list[str] = []
    for folder in sorted(folders):
        outcomes = load_outcomes(folder)
        if outcomes is NO_OUTCOMES:
            continue
        matched: set[str] = set()
        differing: set[Path] = set()
        for recorded in folders[folder]:
            rows = list(outcomes.rows_of(recorded.trace_id, recorded.path.name, recorded.record))
            matched.update(rows)
            if rows and _has_differing_facts(outcomes.facts[rows[0]], recorded.facts):
                differing.add(recorded.path)
        for path in sorted(differing):
            _update_traces(workspace, path)
        messages += _problem_texts(folder, outcomes, matched)
    return messages


def _recorded_outcomes(workspace: Workspace) -> list[RecordedOutcome]:
    """Return the stored facts of the traces that have a file."""
    facts = (
        *("system", "model", "benchmark", "outcome", "score"),
        *("version", "started", "task_id", "trial"),
    )

    def take(rows: Iterator[tuple[Any, ...]]) -> list[RecordedOutcome]:
        return [
            RecordedOutcome(
                trace_id,
                workspace.resolve_trace_path(path),
                record,
                _meta(dict(zip(facts, values, strict=True))),
            )
            for trace_id, path, record, *values in rows
        ]

    return workspace.read_columns("traces", ("id", "path", "record", *facts), take, not_null="path")


def _meta(facts: dict[str, Any]) -> TraceMeta:
    return TraceMeta(**{**facts, "outcome": Outcome(facts["outcome"])})


def _has_differing_facts(read_meta: TraceMeta, recorded_meta: TraceMeta) -> bool:
    """Check whether a row has a fact that differs from the stored one; empty cells are ignored."""
    names = [
        name
        for name in ("system", "model", "benchmark", "version", "task_id")
        if getattr(read_meta, name)
    ]
    names += [
        name for name in ("started", "score", "trial") if getattr(read_meta, name) is not None
    ]
    if read_meta.outcome is not Outcome.UNKNOWN:
        names.append("outcome")
    return any(getattr(read_meta, name) != getattr(recorded_meta, name) for name in names)


def _update_traces(workspace: Workspace, path: Path) -> None:
    """Read a file again, and store the facts of those of its traces that are known."""
    for trace in read_file(path, named=True).traces:
        record = TraceRecord.from_trace(trace)
        if workspace.find_trace(record) is not None:
            workspace.register_trace(record)


def _problem_texts(folder: Path, outcomes: Outcomes, matched: set[str]) -> Iterator[str]:
    """Yield a sentence for each problem, and one about the rows outside ``matched``."""
    file = folder / FILE_NAME
    if outcomes.unread is not None:
        yield f"{file}: not read: {outcomes.unread}"
    for problem in outcomes.problems:
        yield f"{file}: {problem.place}: {problem.message}"
    # A file without labels is not in the workspace yet; its row is valid.
    named_files = {name for name in outcomes.facts if _is_file(folder, name)}
    unmatched = outcomes.unmatched(matched | named_files)
    if unmatched:
        named = "; ".join(f"{problem.place}: {problem.message}" for problem in unmatched[:_NAMED])
        more = len(unmatched) - _NAMED
        yield (
            f"{file}: {len(unmatched)} of {len(outcomes.facts)} rows match no file and no trace of "
            f"this workspace: {named}{f'; and {more} more' if more > 0 else ''}"
        )


def _is_file(folder: Path, name: str) -> bool:
    try:
        return (folder / name).is_file() or (folder / name.rpartition("#")[0]).is_file()
    except (OSError, ValueError):
        return False

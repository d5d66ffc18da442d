"""``csv-wide``: one row per annotator and trace, one column per mode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from mast_tui.exchange.csv_files import share_in, stream_rows, trial_in
from mast_tui.exchange.import_batch import Gathered, ImportedWork, Incoming, joined
from mast_tui.exchange.names import annotator_of, check_one_name
from mast_tui.labels import TraceWork, VerdictValue, annotator_kind
from mast_tui.reports.render.csv import csv_text
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Outcome
from mast_tui.traces.times import unix_seconds
from mast_tui.workspace.records import TraceRecord

FACTS: Final = ("system", "model", "benchmark", "outcome")
SCORE: Final = "score"
VERSION: Final = "version"
DATE: Final = "date"
TASK_ID: Final = "task_id"
TRIAL: Final = "trial"
VERDICT_BY_CELL: Final[Mapping[str, VerdictValue | None]] = {
    "1": VerdictValue.PRESENT,
    "0": VerdictValue.ABSENT,
    "?": VerdictValue.UNSURE,
    "": None,
    # What a column of numbers with holes becomes in pandas.
    "1.0": VerdictValue.PRESENT,
    "0.0": VerdictValue.ABSENT,
}
CELL_BY_VERDICT: Final = {
    VerdictValue.PRESENT: "1",
    VerdictValue.ABSENT: "0",
    VerdictValue.UNSURE: "?",
    None: "",
}
NUMBERS: Final[Mapping[VerdictValue | None, int]] = {
    VerdictValue.PRESENT: 1,
    VerdictValue.ABSENT: 0,
}
"""The number of a verdict; unsure and open have none."""

_OUTCOMES: Final = {
    "": Outcome.UNKNOWN,
    "failed": Outcome.FAILED,
    "succeeded": Outcome.SUCCEEDED,
    "success": Outcome.SUCCEEDED,
}


def read_csv_wide(
    files: Sequence[Path], *, taxonomy: Taxonomy, annotator: str | None = None
) -> Incoming:
    """Read rows of verdicts; each is one finished first pass, its labels on the whole trace.

    A bad row is a problem.

    Args:
        files: The files and folders.
        taxonomy: The taxonomy of the columns.
        annotator: The name of the one author of all rows, None if the rows name them.

    Raises:
        ExchangeError: A file is no such table.
    """
    codes = [mode.code for mode in taxonomy.modes]
    allowed = ("trace_id", "annotator", *FACTS, *codes, SCORE, VERSION, DATE, TASK_ID, TRIAL)
    needed = ("trace_id", *(() if annotator else ("annotator",)))
    batch = Gathered({taxonomy.ref: taxonomy})
    names = set[str]()
    for row in stream_rows(files, batch.problems, allowed=allowed, needed=needed):
        cells = row.cells
        names.add(cells.get("annotator", ""))
        try:
            trace = _trace_in(cells)
            earlier = batch.traces.get(trace.trace_id)
            trace = trace if earlier is None else joined(earlier, trace)
            name = annotator_of(cells.get("annotator", ""), annotator)
            draft = ImportedWork(
                name,
                trace.trace_id,
                taxonomy.ref,
                annotator_kind(name),
                finished_at="",
                file=row.file,
            )
            _add_verdicts(draft, cells, taxonomy)
            earlier_draft = batch.drafts.get(draft.key)
            if earlier_draft is not None and replace(earlier_draft, file=draft.file) != draft:
                raise ValueError(f"a second row of {name} for {trace.trace_id}, with other cells")
        except ValueError as error:
            batch.problems.append(row.problem(error))
            continue
        batch.keep(draft)
        batch.traces[trace.trace_id] = trace
    check_one_name(annotator, names)
    return batch.done()


def _add_verdicts(draft: ImportedWork, cells: Mapping[str, str], taxonomy: Taxonomy) -> None:
    """Add the verdict in a row's cell for each mode to a draft.

    Raises:
        ValueError: A cell has another text than ``1``, ``0``, ``?`` or nothing.
    """
    for mode in taxonomy.modes:
        cell = cells.get(mode.code, "").strip()
        if cell not in VERDICT_BY_CELL:
            raise ValueError(f"{mode.code} is {cell!r}; a cell is 1, 0, ? or empty")
        value = VERDICT_BY_CELL[cell]
        if value is VerdictValue.PRESENT:
            draft.add_label(draft.label(mode.slug))
        elif value is not None:
            draft.add_verdict(mode.slug, value)


def _trace_in(cells: Mapping[str, str]) -> TraceRecord:
    """Return the record of the trace that a row is about.

    Raises:
        ValueError: A cell is not valid.
    """
    trace_id = cells["trace_id"].strip()
    if not trace_id:
        raise ValueError("'trace_id' is empty")
    outcome = cells.get("outcome", "").strip().lower()
    if outcome not in _OUTCOMES:
        raise ValueError(f"outcome is {outcome!r}; it is failed, succeeded or empty")
    return TraceRecord(
        trace_id=trace_id,
        system=cells.get("system", "").strip() or None,
        model=cells.get("model", "").strip() or None,
        benchmark=cells.get("benchmark", "").strip() or None,
        outcome=_OUTCOMES[outcome],
        score=share_in(SCORE, cells.get(SCORE, "").strip()),
        version=cells.get(VERSION, "").strip() or None,
        started=_start_time_in(cells.get(DATE, "").strip()),
        task_id=cells.get(TASK_ID, "").strip() or None,
        trial=trial_in(cells.get(TRIAL, "")),
    )


def _start_time_in(text: str) -> float | None:
    """Return the time in a cell in Unix seconds, None if the cell is empty.

    Raises:
        ValueError: The cell is no time.
    """
    if not text:
        return None
    start_time = unix_seconds(text)
    if start_time is None:
        raise ValueError(f"date is {text!r}; it must be as in 2026-03-31")
    return start_time


def write_csv_wide(
    all_work: Iterable[TraceWork], records: Mapping[str, TraceRecord], taxonomy: Taxonomy
) -> str:
    """Return the rows of ``csv-wide``, in the order of traces and annotators.

    Args:
        all_work: The work of annotators under the taxonomy.
        records: The known facts of traces by id.
        taxonomy: The taxonomy, with a column for each of its modes.
    """
    rows = [
        (work, records.get(work.trace_id, TraceRecord(work.trace_id)))
        for work in sorted(all_work, key=lambda work: (work.trace_id, work.annotator))
    ]
    codes = tuple(mode.code for mode in taxonomy.modes)
    optional_columns = [
        *([SCORE] if any(trace.score is not None for _, trace in rows) else ()),
        *([VERSION] if any(trace.version is not None for _, trace in rows) else ()),
        *([TASK_ID] if any(trace.task_id is not None for _, trace in rows) else ()),
        *([TRIAL] if any(trace.trial is not None for _, trace in rows) else ()),
    ]
    columns = ("trace_id", "annotator", *FACTS, *codes, *optional_columns)
    return csv_text(columns, (_row_cells(work, trace, taxonomy) for work, trace in rows))


def _row_cells(work: TraceWork, trace: TraceRecord, taxonomy: Taxonomy) -> dict[str, str]:
    """Return the cells of a work by column, also those of columns that may be left out."""
    return {
        "trace_id": trace.trace_id,
        "annotator": work.annotator,
        "system": trace.system or "",
        "model": trace.model or "",
        "benchmark": trace.benchmark or "",
        "outcome": "" if trace.outcome is Outcome.UNKNOWN else trace.outcome,
        **{mode.code: CELL_BY_VERDICT[work.verdict(mode.slug)] for mode in taxonomy.modes},
        SCORE: "" if trace.score is None else repr(trace.score),
        VERSION: trace.version or "",
        TASK_ID: trace.task_id or "",
        TRIAL: "" if trace.trial is None else str(trace.trial),
    }

"""Who&When: runs with the agent and the step of their decisive error.

``mistake_step`` is a text and counts from 0, unlike the step numbers of AgentRx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from mast_tui.exchange.errors import RowProblem
from mast_tui.exchange.import_batch import (
    Gathered,
    ImportedWork,
    Incoming,
    shipped_taxonomy,
)
from mast_tui.exchange.trace_files import (
    files_under,
    message_spans,
    read_each,
    read_json,
    read_traces,
)
from mast_tui.labels import AnnotatorKind, Target
from mast_tui.parallel import LostItem, Workers, each
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.workspace.records import TraceRecord

ANNOTATOR: Final = "who-and-when"
MODE: Final = "decisive_error"


def read_who_and_when(
    files: Sequence[Path], annotator: str | None = None, workers: Workers | None = None
) -> Incoming:
    """Read the labels in Who&When files, each on the span of its step.

    If the span is of another agent than the label names, the notes of the import and of the label
    report it.

    Args:
        files: The files and folders.
        annotator: The annotator's name, None for the usual one.
        workers: The processes that read files, None for this process alone.
    """
    taxonomy = shipped_taxonomy("who_and_when")
    traces: dict[str, TraceRecord] = {}
    work: dict[str, ImportedWork] = {}
    problems: list[RowProblem] = []
    notes = ["mistake_step counts from 0"]
    paths = [*files_under(files, (".json", ".jsonl"))]
    read = partial(_read_files, annotator or ANNOTATOR, taxonomy)
    for file, file_batch in zip(paths, each(read, paths, workers), strict=True):
        if isinstance(file_batch, LostItem):
            problems.append(RowProblem(file, "file", file_batch.reason))
            continue
        traces |= {trace.trace_id: trace for trace in file_batch.traces}
        work |= {file_work.trace_id: file_work for file_work in file_batch.work}
        problems += file_batch.problems
        notes += file_batch.notes
    return Incoming(
        taxonomies=(taxonomy,),
        traces=tuple(traces.values()),
        work=tuple(work.values()),
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _read_files(name: str, taxonomy: Taxonomy, files: Sequence[Path]) -> list[Incoming]:
    """Return the labels of each file; its notes name agents that differ from those in the trace."""
    return [_read_file(name, taxonomy, file) for file in files]


def _read_file(name: str, taxonomy: Taxonomy, file: Path) -> Incoming:
    """Return the labels of a file; records that are not valid become problems."""
    batch = Gathered()
    for _, labelled in read_each([file], batch.problems, _labelled_traces):
        for trace, record in labelled:
            kind = AnnotatorKind.IMPORTED
            trace_id = trace.identity.trace_id
            draft = ImportedWork(name, trace_id, taxonomy.ref, kind, finished_at="", file=file)
            try:
                mismatch = _add_record_label(draft, trace, record)
            except ValueError as error:
                location = "file" if trace.record is None else f"record {trace.record}"
                batch.wrong(file, location, error)
                continue
            if mismatch:
                batch.notes.append(f"{file}: {mismatch}")
            batch.keep(draft)
            batch.traces[trace_id] = TraceRecord.from_trace(trace)
    return batch.done()


def _labelled_traces(file: Path) -> list[tuple[Trace, Mapping[str, object]]]:
    """Return the traces of a file, each with its labelled record.

    Raises:
        ValueError: No trace was recognised, or a record has no ``mistake_step``.
    """
    document = read_json(file)
    records = document if isinstance(document, list) else [document]
    traces = read_traces(file)
    if not traces:
        raise ValueError("no trace was recognised in the file")
    labelled = []
    for trace in traces:
        record = records[trace.record or 0]
        if not isinstance(record, Mapping) or "mistake_step" not in record:
            raise ValueError("no 'mistake_step' in the record; this is no file of Who&When")
        labelled.append((trace, record))
    return labelled


def _add_record_label(
    draft: ImportedWork, trace: Trace, record: Mapping[str, object]
) -> str | None:
    """Add a record's label; return a sentence if the step is by another agent, otherwise None."""
    step = _step_number(record["mistake_step"])
    spans = message_spans(trace, step)
    if spans is None:
        raise ValueError(f"mistake_step is {step}, but the run has no step {step} (from 0)")
    index = trace.index_of(spans[0])
    span_agent = trace.span(index).agent if index is not None else ""
    label_agent = str(record.get("mistake_agent") or "")
    note = str(record.get("mistake_reason") or "")
    mismatch = None
    if _plain_agent_name(label_agent) != _plain_agent_name(span_agent):
        mismatch = f"step {step} is by {span_agent!r}, the label names {label_agent!r}"
        note = f"{note}\n({mismatch})".strip()
    draft.add_label(draft.label(MODE, Target(*spans), note))
    return mismatch


def _step_number(value: object) -> int:
    """Return a step number, which may be a number or its digits.

    Raises:
        ValueError: It is another value.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        return int(value)
    raise ValueError(f"mistake_step is {value!r}, not a number from 0")


def _plain_agent_name(agent: str) -> str:
    """Return an agent's name without the remark in brackets that hand-crafted runs add."""
    return agent.split("(")[0].strip().casefold()

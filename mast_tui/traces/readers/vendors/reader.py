"""Runs exported from LangSmith, Langfuse, MLflow, Weave, Braintrust and OpenAI's Agents SDK.

All keep timed calls in a tree; ``tables`` has the paths to the fields of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.traces.index.document import Step
from mast_tui.traces.io.json_values import as_text, canonical_bytes
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import AnswerKey, FileReport, Problem, Trace, TraceMeta
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft
from mast_tui.traces.readers.document_traces import report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import text_in, value_in
from mast_tui.traces.readers.run_facts import task_of
from mast_tui.traces.readers.span_tree.rows import RowKind, SpanRow
from mast_tui.traces.readers.span_tree.steps import observed_steps
from mast_tui.traces.readers.vendors.records import (
    TraceRecords,
    VendorRecord,
    text_at,
    traces_in,
    value_at,
    vendor_of,
)
from mast_tui.traces.readers.vendors.rows import is_judgement, rows_of
from mast_tui.traces.readers.vendors.tables import Vendor

_QUESTION_FIELDS: Final = ("input", "question", "query", "task", "prompt", "request")


class VendorExportReader:
    """Reads the exports of tracing vendors; keys begin with the vendor's ids."""

    name: Final = "vendor-export"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return whether the first records of the file are those of one of the vendors."""
        return vendor_of(source) is not None

    def read(self, source: Source) -> FileReport:
        """Return a trace for each trace id in the file; the only trace of a file has no number."""
        vendor = vendor_of(source)
        if vendor is None:
            return FileReport(source.path, skipped="no records of a known vendor")
        problems: list[Problem] = []
        runs = traces_in(source, vendor, problems)
        traces = [
            self._trace_of_records(source, vendor, records, run_index if len(runs) > 1 else None)
            for run_index, records in enumerate(runs)
        ]
        return report_of(self, source, traces, problems, vendor.name)

    def _trace_of_records(
        self, source: Source, vendor: Vendor, records: TraceRecords, record_number: int | None
    ) -> Trace:
        """Return the trace of some records; calls that scored the run go to the answer key.

        Args:
            source: The file.
            vendor: The vendor.
            records: The records of the trace.
            record_number: The number of the trace in the file; None for the only one, which the
                bytes of the file identify.
        """
        scoring_calls = _scoring_calls(vendor, records)
        run_records = [
            record for record in records.by_id.values() if record.id not in scoring_calls
        ]
        rows = rows_of(vendor, run_records) or [_trace_row(records)]
        problems: list[Problem] = []
        steps = observed_steps(rows, problems=problems)
        meta = TraceMeta(
            task=_task_of_root(rows, steps.steps),
            system=text_at(records.head, vendor.trace_name) or _root_row(rows).name,
            model=next((row.model for row in rows if row.model), None),
            answer_key=_answer_key(vendor, records, scoring_calls),
            version=_system_version(vendor, records),
        )
        values = [records.head, *(record.value for record in records.by_id.values())]
        content = source.data if record_number is None else canonical_bytes(values)
        return trace_of_steps(
            self,
            source.path,
            content,
            steps,
            meta=meta,
            record=record_number,
            native=records.id,
            problems=problems,
        )


READER: Final = VendorExportReader()


def _trace_row(records: TraceRecords) -> SpanRow:
    """Return a row for a trace whose records are not in the export, from the trace's own facts."""
    return SpanRow(
        id=records.id or records.location,
        parent=None,
        kind=RowKind.OTHER,
        name=as_text(records.head.get("name")) or "trace",
        location=records.location,
        input=records.head.get("input"),
        output=records.head.get("output"),
    )


def _scoring_calls(vendor: Vendor, records: TraceRecords) -> dict[str, VendorRecord]:
    """Return the calls that scored the run and the calls nested in them, by id."""
    if not vendor.scoring_types:
        return {}
    scoring_calls: dict[str, VendorRecord] = {}
    stack = [record for record in records.by_id.values() if is_judgement(vendor, record)]
    children: dict[str, list[VendorRecord]] = {}
    for record in records.by_id.values():
        if record.parent is not None:
            children.setdefault(record.parent, []).append(record)
    while stack:
        record = stack.pop()
        if record.id not in scoring_calls:
            scoring_calls[record.id] = record
            stack.extend(children.get(record.id, ()))
    return scoring_calls


def _answer_key(
    vendor: Vendor, records: TraceRecords, scoring_calls: Mapping[str, VendorRecord]
) -> AnswerKey:
    """Return the scores and expected answers of the trace and of its calls."""
    draft = AnswerKeyDraft()
    for path in vendor.hidden_paths:
        name = path.rpartition("/")[2]
        for value in (records.head, *(record.value for record in records.by_id.values())):
            draft.add_value(name, value_at(value, (path,)))
    for record in scoring_calls.values():
        if is_judgement(vendor, record):
            name = text_at(record.value, vendor.fields.name) or "score"
            draft.add_score(name, value_at(record.value, vendor.fields.output))
    return draft.key()


def _system_version(vendor: Vendor, records: TraceRecords) -> str | None:
    """Return the version of the system in the trace's facts or in a record; None without one."""
    values = (records.head, *(record.value for record in records.by_id.values()))
    return next(filter(None, (text_at(value, vendor.version) for value in values)), None)


def _root_row(rows: Sequence[SpanRow]) -> SpanRow:
    """Return the first row whose parent is not among the rows, else the first row."""
    ids = {row.id for row in rows}
    return next((row for row in rows if row.parent not in ids), rows[0])


def _task_of_root(rows: Sequence[SpanRow], steps: Sequence[Step]) -> str | None:
    """Return the question in the input of the root row, else the first message of a user."""
    root_input = value_in(_root_row(rows).input)
    if isinstance(root_input, Mapping):
        root_input = text_in(root_input, *_QUESTION_FIELDS)
    return task_of(root_input, steps=steps)

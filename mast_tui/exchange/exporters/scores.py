"""Labels as scores of traces and spans, for the tools that recorded the traces.

A verdict is a score of the trace, and a label is a score of its first span. The formats are request
bodies for the APIs of the tools. Nothing is sent. Traces and spans have the ids of the tool.

``langfuse``: JSON lines for ``POST /api/public/scores``. The fields are those of
``CreateScoreRequest`` in the public API (Python client 4.14.3). A score replaces an earlier one
with the same ``id``.

``langsmith``: JSON lines for ``POST /api/v1/feedback``. The fields are those of ``FeedbackCreate``
in the Python SDK 0.11.1, but ``source_info`` is ``feedback_source.metadata`` in the API. Feedback
replaces earlier feedback with the same ``id``.

``phoenix``: the bodies of ``POST /v1/span_annotations`` and ``/v1/trace_annotations``. The fields
are those of ``SpanAnnotationData`` and ``TraceAnnotationData`` in arize-phoenix 20.3. An annotation
replaces an earlier one with the same name, span and ``identifier``.

``inspect-scores``: JSON lines for ``inspect_ai.log.edit_score``. The fields are its arguments, and
those of ``ScoreEdit`` and ``ProvenanceData`` in inspect_ai 0.3.260. A score is of a sample; its
metadata has the labels. Values are numbers, since Inspect's metrics read other values as 0. So
``unsure`` is not written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal

from mast_tui.adjudication.trace_files import TraceOf, traces_from_files
from mast_tui.exchange.csv_labels import NUMBERS
from mast_tui.exchange.import_batch import label_id, lasting_id
from mast_tui.exchange.jsonl import json_document, json_line
from mast_tui.labels import GOLD, JUDGE_PREFIX, AnnotatorKind, Label, TraceWork, VerdictValue
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.traces.io.json_values import as_count, as_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Trace, TraceIdentity
from mast_tui.traces.readers.inspect import reader as inspect
from mast_tui.traces.readers.otel.reader import layout_of, raw_spans
from mast_tui.traces.readers.otel.spans import span_id, span_of
from mast_tui.traces.readers.vendors.records import text_at, traces_in, vendor_of
from mast_tui.workspace import TraceRecord, Workspace

Tool = Literal["otel", "langfuse", "langsmith", "inspect"]

_READERS_OF_OTEL: Final = ("otel", "trail")
_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")
_SPAN_ID: Final = re.compile(r"[0-9a-f]{16}")
_KEY: Final = re.compile(r"([0-9a-f]{16})(?:[/~].*)?", re.DOTALL)
"""A key that begins with the OpenTelemetry id of its span."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of an Inspect log.

    ``id`` and ``epoch`` identify it in the log. Old logs have no ``uuid``.
    """

    log: Path
    id: str | int
    epoch: int
    uuid: str | None


@dataclass(frozen=True, slots=True)
class NativeTrace:
    """A trace with the ids of the tool that recorded it.

    Attributes:
        span: Returns the tool's id of a span by its key; None if there is none. For Inspect the
            result is the key.
        projects: The projects of LangSmith by the id of the run.
        sample: The sample of Inspect; None for other tools.
    """

    tool: Tool
    id: str
    span: Callable[[str], str | None]
    projects: Mapping[str, str] = field(default_factory=dict)
    sample: Sample | None = None


NativeOf = Callable[[str], NativeTrace | None]
"""Returns a trace by its id in the workspace; None if the tool's id is unknown."""


def native_from_files(workspace: Workspace) -> NativeOf:
    """Return a function that finds the tool's ids of a trace.

    The workspace has the trace ids of OpenTelemetry. For other tools the file of the trace is read.
    """
    return _NativeTraceFinder(workspace).trace


@dataclass(frozen=True, slots=True)
class _NativeIds:
    """The ids in one file.

    ``ids`` are ids of spans by place, ``projects`` are ids of projects by run id, and ``samples``
    are by record index.
    """

    tool: str
    ids: Mapping[str, str]
    projects: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[int, Sample] = field(default_factory=dict)

    def id_of(self, trace: Trace, key: str) -> str | None:
        """Return the id of a span; None if the file has none.

        Args:
            trace: The trace.
            key: The key of the span.
        """
        index = trace.index_of(key)
        return None if index is None else self.ids.get(trace.span(index).place)


class _NativeTraceFinder:
    """A finder of native traces.

    It keeps the ids of the last file, since a file may have many traces.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._records = {record.trace_id: record for record in workspace.traces()}
        self._trace_of: TraceOf = traces_from_files(workspace)
        self._ids_in_file = lru_cache(maxsize=1)(_ids_in_file)

    def trace(self, trace_id: str) -> NativeTrace | None:
        """Return a trace with the tool's ids; None if they are unknown."""
        record = self._records.get(trace_id, TraceRecord(trace_id))
        identity = record.identity
        # A native trace has the id of its tool. Samples in old logs of Inspect have no such id, but
        # can be found by their names.
        if identity is None or not (identity.native or identity.reader == inspect.READER.name):
            return None
        if identity.reader in _READERS_OF_OTEL:
            return self._otel_trace(trace_id, identity)
        trace, native_ids = self._trace_and_ids(trace_id)
        if trace is None or native_ids is None:
            return None
        id_of = partial(native_ids.id_of, trace)
        match native_ids.tool:
            case "langfuse":
                return NativeTrace("langfuse", identity.trace_id, id_of)
            case "langsmith":
                return NativeTrace("langsmith", identity.trace_id, id_of, native_ids.projects)
            case "inspect" if trace.record is not None and trace.record in native_ids.samples:
                sample = native_ids.samples[trace.record]
                # Inspect scores whole samples, so no id of a span is needed.
                return NativeTrace("inspect", identity.trace_id, span=str, sample=sample)
        return None

    def _otel_trace(self, trace_id: str, identity: TraceIdentity) -> NativeTrace | None:
        """Return the ids of an OpenTelemetry trace; None if its id has another form."""
        if not _TRACE_ID.fullmatch(identity.trace_id):
            return None

        def span(key: str) -> str | None:
            """Return the OpenTelemetry id of a span by its key; None if it is unknown."""
            match = _KEY.fullmatch(key)
            if match is not None:
                return match[1]  # the key begins with the id
            trace, native_ids = self._trace_and_ids(trace_id)
            if trace is None or native_ids is None:
                return None
            span_id = native_ids.id_of(trace, key)
            return span_id if span_id is not None and _SPAN_ID.fullmatch(span_id) else None

        return NativeTrace("otel", identity.trace_id, span)

    def _trace_and_ids(self, trace_id: str) -> tuple[Trace | None, _NativeIds | None]:
        """Return a trace and the ids in its file; None for each that is not available."""
        trace = self._trace_of(trace_id)
        return trace, None if trace is None else self._ids_in_file(trace.path)


def _ids_in_file(path: Path) -> _NativeIds | None:
    """Return the ids in a file of one of the tools; None for another file."""
    source = Source(path)
    if inspect.READER.recognises(source):
        return _ids_of_inspect(source, inspect.samples_in(source))
    if source.is_binary:
        return None
    vendor = vendor_of(source)
    if vendor is not None:
        spans = [
            span for records in traces_in(source, vendor, []) for span in records.by_id.values()
        ]
        # A span without an id has its location as id.
        ids = {span.location: span.id for span in spans if span.id != span.location}
        projects = {}
        for span in spans:
            project = text_at(span.value, ("session_id",))  # LangSmith's name for a project
            if project:
                projects[span.id] = project
        return _NativeIds(vendor.name, ids, projects)
    if layout_of(source) is not None:
        return _NativeIds("otel", _ids_of_otel(source))
    return None


def _ids_of_inspect(
    source: Source, samples: Iterable[tuple[int, Mapping[str, object]]]
) -> _NativeIds:
    """Return the samples of an Inspect log with their ids and epochs."""
    samples_by_record = {}
    for record, sample in samples:
        name = sample.get("id")
        epoch = as_count(sample.get("epoch"))
        if isinstance(name, str | int) and not isinstance(name, bool) and epoch is not None:
            samples_by_record[record] = Sample(
                source.path, name, epoch, as_text(sample.get("uuid"))
            )
    return _NativeIds("inspect", {}, samples=samples_by_record)


def _ids_of_otel(source: Source) -> dict[str, str]:
    """Return the ids of spans by location in the file."""
    ids = {}
    for raw in raw_spans(source, []):
        if not isinstance(raw.value, Mapping):
            continue
        if raw.is_log:
            native_id = span_id(raw.value.get("spanId", raw.value.get("span_id")))
        else:
            native_id = span_of(raw.value, raw.location).id
        if native_id is not None:
            ids[raw.location] = native_id
    return ids


@dataclass(frozen=True, slots=True)
class Score:
    """An annotator's verdict on a mode in a trace, or a label of the mode on a span.

    Attributes:
        id: The id, the same in every export.
        span: The tool's id of the span; None for a score of the trace.
        name: The name of the score, made from the mode.
        labels: The label on the span, or all labels of the whole trace.
        time: The time as ISO 8601 in UTC; empty if unknown.
    """

    id: str
    trace: NativeTrace
    span: str | None
    work: TraceWork
    kind: AnnotatorKind
    mode: Mode
    name: str
    value: VerdictValue
    labels: Sequence[Label]
    time: str

    @property
    def comment(self) -> str:
        """The notes of the labels, one per line."""
        return "\n".join(label.note for label in self.labels if label.note)

    @property
    def facts(self) -> dict[str, Any]:
        """Further facts for the tool's metadata."""
        return {
            "taxonomy": self.work.taxonomy,
            "mode": self.mode.code,
            "mode_name": self.mode.name,
            "annotator": self.work.annotator,
            "annotator_kind": self.kind.value,
            **(self.label_facts(self.labels[0]) if len(self.labels) == 1 else {}),
        }

    def label_facts(self, label: Label) -> dict[str, Any]:
        """Return the known details of a label by name."""
        target = label.target
        facts = {
            "span_first": target.first,
            "span_last": target.last,
            "quote": target.quote,
            "char_start": target.char_start,
            "char_end": target.char_end,
            "severity": label.severity and label.severity.value,
            "confidence": label.confidence,
            "origin": label.origin.value,
            "saw_suggestions": label.saw_suggestions,
            "merged": True if label.id in self.work.merged else None,
        }
        return {name: value for name, value in facts.items() if value is not None}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The traces without a tool's id, and the spans without one as trace id and key.

    The mappings are ordered sets.
    """

    traces: dict[str, None] = field(default_factory=dict)
    spans: dict[tuple[str, str], None] = field(default_factory=dict)


def scores_of(
    all_work: Iterable[TraceWork],
    taxonomy: Taxonomy,
    native_of: NativeOf,
    kinds: Mapping[str, AnnotatorKind],
    tools: Container[Tool],
) -> tuple[list[Score], LeftOut]:
    """Return the scores for a tool, and the traces and spans without an id in it.

    Scores are sorted by trace, annotator and mode. The score of a trace comes before those of its
    spans.

    Args:
        all_work: The work of annotators under the taxonomy.
        taxonomy: The taxonomy.
        native_of: Returns a trace with the ids of the tool that recorded it.
        kinds: The kinds of annotators by name. Others count as people.
        tools: The recording tools with ids that the target tool accepts.
    """
    scores: list[Score] = []
    left_out = LeftOut()
    for work in sorted(all_work, key=lambda work: (work.trace_id, work.annotator)):
        trace = native_of(work.trace_id)
        if trace is None or trace.tool not in tools:
            left_out.traces[work.trace_id] = None
            continue
        kind = kinds.get(work.annotator, AnnotatorKind.HUMAN)
        for score, key in _scores_of_work(work, taxonomy, trace, kind):
            if key is not None and score.span is None:
                left_out.spans[work.trace_id, key] = None
            else:
                scores.append(score)
    return scores, left_out


def _scores_of_work(
    work: TraceWork, taxonomy: Taxonomy, trace: NativeTrace, kind: AnnotatorKind
) -> Iterator[tuple[Score, str | None]]:
    """Yield a score for each verdict and each label on spans, with the key of its span.

    The key is None for a verdict.
    """
    for mode in taxonomy.modes:
        labels = work.labels_of(mode.slug)
        value = work.verdict(mode.slug)
        if value is None:
            continue
        trace_score = Score(
            id=lasting_id("score", trace.id, work.annotator, taxonomy.ref, mode.slug),
            trace=trace,
            span=None,
            work=work,
            kind=kind,
            mode=mode,
            name=f"{taxonomy.id}.{mode.slug}",
            value=value,
            labels=[label for label in labels if label.target.is_whole],
            time=work.finished_at or "",
        )
        yield trace_score, None
        for label in labels:
            key = label.target.first
            if key is not None:
                label_score = replace(
                    trace_score,
                    id=_label_score_id(work, label),
                    span=trace.span(key),
                    labels=[label],
                    time=label.created_at,
                )
                yield label_score, key


def _label_score_id(work: TraceWork, label: Label) -> str:
    """Return the id of a label's score.

    The ids of gold labels change between exports, so theirs is made from the content.
    """
    if work.annotator == GOLD:
        gold_label_id = label_id(GOLD, work.trace_id, work.taxonomy, label.mode, label.target)
        return lasting_id("score", gold_label_id)
    return lasting_id("score", label.id)


TOOLS: Final[Mapping[str, tuple[Tool, ...]]] = {
    "langfuse": ("langfuse", "otel"),
    "phoenix": ("otel",),
    "langsmith": ("langsmith",),
    "inspect-scores": ("inspect",),
}
"""The tools with ids that each format accepts. Langfuse keeps the ids of OpenTelemetry."""

_CODE_JUDGES: Final = (f"{JUDGE_PREFIX}rules@", f"{JUDGE_PREFIX}twins@")
"""The beginnings of the names of judges without a model."""


def score_text(scores: Iterable[Score], file_format: str) -> str:
    """Return the text of a file of scores.

    Args:
        scores: The scores, sorted by trace, annotator and mode.
        file_format: ``phoenix``, ``langfuse``, ``langsmith`` or ``inspect-scores``.
    """
    bodies: Iterable[Mapping[str, Any]]
    match file_format:
        case "phoenix":
            return json_document(_phoenix_document(scores))
        case "langfuse":
            bodies = map(_langfuse_body, scores)
        case "langsmith":
            bodies = map(_langsmith_body, scores)
        case _:
            bodies = _edits_for_inspect(scores)
    return "".join(map(json_line, bodies))


def _without_none(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _langfuse_body(score: Score) -> dict[str, Any]:
    """Return the body for Langfuse's scores API.

    The value is a category, because Langfuse's type ``BOOLEAN`` has no ``unsure``.
    """
    return _without_none(
        {
            "dataType": "CATEGORICAL",
            "id": score.id,
            "traceId": score.trace.id,
            "observationId": score.span,
            "name": score.name,
            "value": score.value.value,
            "comment": score.comment or None,
            "metadata": dict(score.facts),
        }
    )


def _langsmith_body(score: Score) -> dict[str, Any]:
    """Return the body for LangSmith's feedback API.

    A score of the trace is one of its root run, which has the id of the trace.
    """
    run = score.span or score.trace.id
    return _without_none(
        {
            "feedback_source": {
                "type": "api" if score.kind.is_person else "model",
                "metadata": dict(score.facts),
            },
            "id": score.id,
            "run_id": run,
            "trace_id": score.trace.id,
            "session_id": score.trace.projects.get(run),
            "created_at": score.time or None,
            "key": score.name,
            "score": NUMBERS.get(score.value),
            "value": score.value.value,
            "comment": score.comment or None,
        }
    )


def _phoenix_document(scores: Iterable[Score]) -> dict[str, Any]:
    """Return the annotations of spans and traces, by the last part of their API path."""
    spans = []
    traces = []
    for score in scores:
        if score.span is None:
            traces.append({"trace_id": score.trace.id, **_phoenix_annotation(score)})
        else:
            spans.append({"span_id": score.span, **_phoenix_annotation(score)})
    return {"span_annotations": {"data": spans}, "trace_annotations": {"data": traces}}


def _phoenix_annotation(score: Score) -> Mapping[str, Any]:
    """Return the common fields of Phoenix's annotations of spans and traces."""
    kind = "HUMAN"
    if not score.kind.is_person:
        kind = "CODE" if score.work.annotator.startswith(_CODE_JUDGES) else "LLM"
    return {
        "name": score.name,
        "annotator_kind": kind,
        "result": {
            "label": score.value.value,
            "score": NUMBERS.get(score.value),
            "explanation": score.comment or None,
        },
        "metadata": dict(score.facts),
        "identifier": score.id,
    }


def _edits_for_inspect(scores: Iterable[Score]) -> Iterator[dict[str, Any]]:
    """Yield the edits of Inspect's scores, one per sample, annotator and mode."""
    for _, group in groupby(
        scores, lambda score: (score.trace.id, score.work.annotator, score.name)
    ):
        # The score of the trace is sorted before those of its labels.
        trace_score, *label_scores = group
        sample = trace_score.trace.sample
        number = NUMBERS.get(trace_score.value)
        if sample is not None and number is not None:
            yield _edit_for_inspect(sample, trace_score, label_scores, number)


def _edit_for_inspect(
    sample: Sample, trace_score: Score, label_scores: Sequence[Score], number: int
) -> dict[str, Any]:
    """Return the edit that sets a sample's score, with the labels in its metadata."""
    all_scores = [trace_score, *label_scores]
    labels = [label for score in all_scores for label in score.labels]
    notes = [
        label.note if label.target.is_whole else f"{label.target.first}: {label.note}"
        for label in labels
        if label.note
    ]
    times = [score.time for score in all_scores if score.time]
    name = trace_score.name
    annotator = trace_score.work.annotator
    return {
        "score_name": name if annotator == GOLD else f"{name} ({annotator})",
        "log": str(sample.log.absolute()),
        "sample_id": sample.id,
        "epoch": sample.epoch,
        "sample_uuid": sample.uuid,
        "edit": {
            "value": number,
            "answer": trace_score.value.value,
            "explanation": "\n".join(notes) or None,
            "metadata": {
                **trace_score.facts,
                "labels": [
                    {**trace_score.label_facts(label), "note": label.note} for label in labels
                ],
            },
            "provenance": {
                **({"timestamp": max(times)} if times else {}),
                "author": annotator,
                "reason": f"labelled for the failure modes of {trace_score.work.taxonomy}",
            },
        },
    }

"""Tasks for Label Studio, and the import of its JSON export.

A task is a trace with its spans as paragraphs of a dialogue. Labels on spans are regions of
``ParagraphLabels``. Labels on the whole trace and the verdicts absent and unsure are choices.
``meta`` has the original work. Label Studio returns it unchanged, so that an import can find the
changes.

A region is from one paragraph to another (numbers from 0, both included), with offsets in UTF-16
code units, as in a browser.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from msgspec import Struct, structs, to_builtins
from msgspec import field as struct_field

from mast_tui.counts import counted
from mast_tui.exchange.import_batch import (
    ImportedWork,
    Incoming,
    IncomingBuilder,
    annotator_of,
    check_one_name,
    label_id,
    label_in_work,
    taxonomy_named,
)
from mast_tui.exchange.trace_files import TextsOf, TextSpan, read_records
from mast_tui.grouping import values_by_key
from mast_tui.labels import (
    GOLD,
    AnnotatorKind,
    Label,
    Origin,
    Target,
    TraceWork,
    VerdictValue,
    WholeNumber,
    checked_person,
    label_origin,
)
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.workspace.events.codec import label_to_values, read
from mast_tui.workspace.records import TraceRecord

Values = dict[str, Any]
Document = Mapping[str, Any]
HasWork = Callable[[str, str, str], bool]
"""Checks whether an annotator has work on a trace under a taxonomy in this workspace."""

META: Final = "mast_tui"
"""The name of our part of ``meta``."""

VERSION: Final = 1
TRACE: Final = "trace"
MODES: Final = "modes"
WHOLE: Final = "whole_trace"
ABSENT: Final = "absent"
UNSURE: Final = "unsure"
CONFIG_MARK: Final = f'<Choices name="{WHOLE}" toName="{TRACE}" '
"""A line near the beginning of all labelling configurations."""
CHANGED_THERE: Final = " (label-studio)"
"""The suffix for an annotator with labels that were changed in Label Studio."""

NO_TEXT: Final = "(the text of this span is not available)"

_CHOICES: Final = (
    (WHOLE, "In the trace as a whole"),
    (ABSENT, "Does not show"),
    (UNSURE, "Unsure"),
)
# Label Studio's numbers are JavaScript numbers, which are exact up to 2 ** 53.
_ID_BITS: Final = 52


def label_name(mode: Mode) -> str:
    """Return the name of a mode in Label Studio: ``1.3 Step repetition``."""
    return one_line(f"{mode.code} {mode.name}")


def label_config(taxonomy: Taxonomy) -> str:
    """Return the labelling configuration (XML) of a project."""
    lines = ["<View>"]
    for name, title in _CHOICES:
        lines.append(f"  <Header value={quoteattr(title)} size={quoteattr('6')}/>")
        lines.append(
            f'  <Choices name="{name}" toName="{TRACE}" choice="multiple" layout="select">'
        )
        lines += [
            f"    <Choice value={quoteattr(label_name(mode))}/>" for mode in taxonomy.all_modes
        ]
        lines.append("  </Choices>")
    lines.append(f'  <ParagraphLabels name="{MODES}" toName="{TRACE}" choice="single">')
    lines += [f"    <Label value={quoteattr(label_name(mode))}/>" for mode in taxonomy.all_modes]
    lines.append("  </ParagraphLabels>")
    lines.append(
        f'  <Paragraphs name="{TRACE}" value="$spans" layout="dialogue" nameKey="author" '
        'textKey="text" savetextresult="no"/>'
    )
    return "\n".join([*lines, "</View>", ""])


def label_studio_tasks(
    all_work: Iterable[TraceWork],
    taxonomy: Taxonomy,
    records: Mapping[str, TraceRecord],
    kinds: Mapping[str, AnnotatorKind],
    texts: TextsOf,
) -> list[Values]:
    """Return a task for each trace, sorted by trace id.

    Without the file of a trace, its task has only the labelled spans, without texts.

    Args:
        all_work: The work of annotators under the taxonomy.
        taxonomy: The taxonomy.
        records: The known facts of traces by id.
        kinds: The kinds of annotators by name. Others, such as gold, count as imported.
        texts: Returns the spans of a trace with their texts by its id; None without a file.
    """
    work_by_trace = values_by_key((work.trace_id, work) for work in all_work)
    return [
        _task_values(
            records.get(trace_id, TraceRecord(trace_id)),
            work_by_trace[trace_id],
            taxonomy,
            kinds,
            texts,
        )
        for trace_id in sorted(work_by_trace)
    ]


def _task_values(
    record: TraceRecord,
    all_work: Sequence[TraceWork],
    taxonomy: Taxonomy,
    kinds: Mapping[str, AnnotatorKind],
    spans_of: TextsOf,
) -> Values:
    """Return the task of a trace."""
    spans = spans_of(record.trace_id)
    has_texts = spans is not None
    if spans is None:
        spans = _labelled_spans(all_work)
    annotations: list[Values] = []
    predictions: list[Values] = []
    values_by_number: Values = {}
    for work in sorted(all_work, key=lambda work: work.annotator):
        kind = kinds.get(work.annotator, AnnotatorKind.IMPORTED)
        number = _work_number(work)
        results, details = _results_and_details(work, taxonomy, spans, number)
        values_by_number[number] = _import_values(work, kind, details, taxonomy)
        if not kind.is_person:
            predictions.append(_prediction_values(work, results))
        else:
            annotations.append(
                {
                    "id": int(number),
                    "result": results,
                    "was_cancelled": False,
                    "ground_truth": work.annotator == GOLD,
                }
            )
    facts = {"system": record.system, "model": record.model, "benchmark": record.benchmark}
    data = {"trace_id": record.trace_id, **{k: v for k, v in facts.items() if v is not None}}
    paragraphs = [{"key": s.key, "author": one_line(s.author), "text": s.text} for s in spans]
    meta = {
        "version": VERSION,
        "taxonomy": taxonomy.ref,
        "texts": has_texts,
        "by": values_by_number,
    }
    return {
        "data": data | {"spans": paragraphs},
        "meta": {META: meta},
        "annotations": annotations,
        "predictions": predictions,
    }


def _import_values(
    work: TraceWork, kind: AnnotatorKind, details: Sequence[Values], taxonomy: Taxonomy
) -> Values:
    """Return the values of a work for our own import, as ``_WorkDocument`` reads them."""
    verdicts = work.verdicts_without_label(taxonomy)
    values: Values = {
        "annotator": work.annotator,
        "kind": kind.value,
        "labels": details,
        "verdicts": {mode: value.value for mode, value in verdicts.items()},
    }
    if work.notes:
        values["span_notes"] = dict(sorted(work.notes.items()))
    if work.finished_at is not None:
        values["finished_at"] = work.finished_at
    return values


def _labelled_spans(all_work: Sequence[TraceWork]) -> tuple[TextSpan, ...]:
    """Return the first and last spans of all labels, sorted by key, with a placeholder text."""
    keys = {
        key
        for work in all_work
        for label in work.labels.values()
        for key in (label.target.first, label.target.last)
        if key is not None
    }
    return tuple(TextSpan(key, NO_TEXT, author=key) for key in sorted(keys))


def _work_number(work: TraceWork) -> str:
    """Return a number for a work, the same in every export."""
    name = "\n".join(work.key)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    first_64_bits = int.from_bytes(digest[:8])
    return str(first_64_bits >> (64 - _ID_BITS))


def _results_and_details(
    work: TraceWork, taxonomy: Taxonomy, spans: Sequence[TextSpan], number: str
) -> tuple[list[Values], list[Values]]:
    """Return the results for Label Studio, and the original labels with their regions.

    A label without a region and a verdict without a label become choices.
    """
    mode_names = {mode.slug: label_name(mode) for mode in taxonomy.all_modes}
    slugs = list(mode_names)
    labels = sorted(work.labels.values(), key=lambda label: (slugs.index(label.mode), label.id))
    results: list[Values] = []
    details: list[Values] = []
    choices: list[tuple[str, str]] = []
    """The names of choices, each with the name of a mode."""
    for label in labels:
        name = mode_names[label.mode]
        detail: Values = {"label": label_to_values(label)}
        if label.id in work.merged:
            detail["merged"] = True
        region_value = region_of(label.target, spans)
        if region_value is None:
            choices.append((WHOLE, name))
        else:
            region = _region_result(label, region_value, name, number)
            results.append(region)
            detail |= {"region": region["id"], "value": region_value | {"name": name}}
        details.append(detail)
    choices += (
        (ABSENT if value is VerdictValue.ABSENT else UNSURE, mode_names[slug])
        for slug, value in work.verdicts_without_label(taxonomy).items()
    )
    names_by_choice = values_by_key(dict.fromkeys(choices))
    results += (
        _choice_result(choice, names_by_choice[choice], number)
        for choice, _ in _CHOICES
        if choice in names_by_choice
    )
    return results, details


def _region_result(label: Label, region_value: Values, name: str, number: str) -> Values:
    """Return the result of a label on spans.

    ``number`` is that of the work (``_work_number``).
    """
    digest = hashlib.sha256(f"{number}\n{label.id}".encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "id": digest[:12],
        "from_name": MODES,
        "to_name": TRACE,
        "type": "paragraphlabels",
        "value": region_value | {"paragraphlabels": [name]},
        "meta": {META: number, **({"text": [label.note]} if label.note else {})},
    }


def _choice_result(name: str, mode_names: Sequence[str], number: str) -> Values:
    """Return the result of the field ``name`` with its chosen modes.

    ``number`` is that of the work (``_work_number``).
    """
    return {
        "id": f"{name}-{number}",
        "from_name": name,
        "to_name": TRACE,
        "type": "choices",
        "value": {"choices": list(mode_names)},
        "meta": {META: number},
    }


def _prediction_values(work: TraceWork, results: list[Values]) -> Values:
    scores = [label.confidence for label in work.labels.values() if label.confidence is not None]
    prediction: Values = {"model_version": work.annotator, "result": results}
    return prediction | ({"score": max(scores)} if scores else {})


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units of a text.

    A lone surrogate is one unit.
    """
    return len(text) + sum(char > "\uffff" for char in text)


def code_points(text: str, units: int, *, up: bool = False) -> int:
    """Return the number of code points in the first UTF-16 code units of a text.

    Args:
        text: The text.
        units: The number of UTF-16 code units.
        up: Count a character that ``units`` cuts in half.
    """
    unit_count = 0
    for index, char in enumerate(text):
        if unit_count >= units:
            return index
        unit_count += 2 if char > "\uffff" else 1
        if unit_count > units:
            return index + 1 if up else index
    return len(text)


def region_of(target: Target, spans: Sequence[TextSpan]) -> Values | None:
    """Return the region of a target; None for the whole trace and for missing spans.

    The region of a quote is its range in the span. Without a quote in the text, it is the whole
    spans.

    Args:
        target: The target.
        spans: The spans of the trace.
    """
    span_range = span_indices(target, spans)
    if span_range is None:
        return None
    first, last = span_range
    quoted = quote_range(target, spans[first].text)
    if quoted is not None:
        text = spans[first].text
        start, end = (utf16_length(text[:position]) for position in quoted)
    else:
        start = 0
        end = utf16_length(spans[last].text)
    return {"start": str(first), "end": str(last), "startOffset": start, "endOffset": end}


def span_indices(target: Target, spans: Sequence[TextSpan]) -> tuple[int, int] | None:
    """Return the indices of a target's first and last span; None if they are missing.

    Args:
        target: The target.
        spans: The spans of the trace.
    """
    index_by_key = {span.key: index for index, span in enumerate(spans)}
    if target.first not in index_by_key or target.last not in index_by_key:
        return None
    # A target can name its spans in reverse order.
    first, last = sorted((index_by_key[target.first], index_by_key[target.last]))
    return first, last


def quote_range(target: Target, text: str) -> tuple[int, int] | None:
    """Return the start and end of a target's quote in a text, in code points.

    The result is None for a missing or empty quote.

    Args:
        target: The target.
        text: The text of the target's span.
    """
    if target.quote is None:
        return None
    start = target.char_start
    end = target.char_end
    if start is not None and end is not None and text[start:end] == target.quote:
        return start, end
    start = text.find(target.quote)
    return None if start < 0 or not target.quote else (start, start + len(target.quote))


def target_of(value: Mapping[str, object], spans: Sequence[TextSpan]) -> Target:
    """Return the target of a region.

    Words in one paragraph are a quote. Other regions are ranges of whole spans, since a quote must
    be inside one span.

    Args:
        value: The region's value.
        spans: The spans of the trace.

    Raises:
        ValueError: The region is outside the trace or empty, or a number is not valid.
    """
    first = _whole_number(value, "start")
    last = _whole_number(value, "end")
    if not 0 <= first <= last < len(spans):
        raise ValueError(f"covers paragraphs {first} to {last}, but the task has {len(spans)}")
    first_span = spans[first]
    last_span = spans[last]
    if "startOffset" not in value and "endOffset" not in value:
        return Target(first_span.key, last_span.key)
    start = code_points(first_span.text, _whole_number(value, "startOffset"))
    end = code_points(last_span.text, _whole_number(value, "endOffset"), up=True)
    if first != last or (start == 0 and end == len(first_span.text)):
        return Target(first_span.key, last_span.key)
    if start >= end:
        raise ValueError(f"is empty: it begins at {start} and ends at {end} of paragraph {first}")
    return Target(first_span.key, first_span.key, first_span.text[start:end], start, end)


def region_numbers(value: Mapping[str, object]) -> tuple[int, ...]:
    """Return the start, the end and the offsets of a region.

    Raises:
        ValueError: A number is missing or not valid.
    """
    return tuple(
        _whole_number(value, name) for name in ("start", "end", "startOffset", "endOffset")
    )


def _whole_number(value: Mapping[str, object], name: str) -> int:
    """Return a field as an integer from 0.

    It can be a text of digits.

    Raises:
        ValueError: The field has another value.
    """
    number = value.get(name)
    if isinstance(number, str) and number.isascii() and number.isdigit():
        return int(number)
    if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
        return number
    raise ValueError(f"{name!r} is {number!r}, not a number from 0")


class ExportedWork(TraceWork):
    """An annotator's work as it was exported.

    Attributes:
        regions: The labels with a region, and the region, by the region's id.
        without_region: The labels without a region.
    """

    regions: dict[str, tuple[Label, Document]] = struct_field(default_factory=dict)
    without_region: list[Label] = struct_field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Task:
    """A task. ``exported_work`` is by the number of the work."""

    file: Path
    place: str
    trace_id: str
    taxonomy: Taxonomy
    spans: tuple[TextSpan, ...]
    exported_work: Mapping[str, ExportedWork]

    def mode(self, name: str) -> Mode:
        """Return the mode with this name in Label Studio, or with the code before it.

        Raises:
            ValueError: The taxonomy has no such mode.
        """
        for mode in self.taxonomy.all_modes:
            if label_name(mode) == name:
                return mode
        # The name after the code may have been edited.
        code = name.partition(" ")[0]
        match = self.taxonomy.find(name) or self.taxonomy.find(code)
        if match is None:
            raise ValueError(f"{name!r} is not a mode of {self.taxonomy.ref}")
        return match


def read_task(
    file: Path,
    location: str,
    value: object,
    taxonomy: Taxonomy,
    find_taxonomy: Callable[[str], Taxonomy | None],
) -> Task:
    """Read a task with its exported work.

    Args:
        file: The file.
        location: The location of the task in the file.
        value: The task as JSON.
        taxonomy: The default taxonomy.
        find_taxonomy: Returns a taxonomy by ``id@version``; None if it is unknown.

    Raises:
        ValueError: A field of the task is missing or not valid.
    """
    document = read(value, _TaskDocument, location)
    if document.data is None or document.data.trace_id is None:
        raise ValueError(
            "has no 'trace_id' in its data; import Label Studio's JSON export of tasks that "
            "'mast-tui export --format label-studio' wrote"
        )
    trace_id = document.data.trace_id
    meta = None if document.meta is None else document.meta.mast_tui
    task_taxonomy = taxonomy_named(None if meta is None else meta.taxonomy, taxonomy, find_taxonomy)
    exported_work = {}
    if meta is not None:
        exported_work = {
            number: _exported_work(work, trace_id, task_taxonomy)
            for number, work in meta.work_by_number.items()
        }
    return Task(file, location, trace_id, task_taxonomy, document.data.spans, exported_work)


class _DataDocument(Struct):
    trace_id: str | None = None
    spans: tuple[TextSpan, ...] = ()


class _PlaceDocument(Struct, rename="camel"):
    """The position of a region, and the name of its mode."""

    start: str
    end: str
    start_offset: WholeNumber
    end_offset: WholeNumber
    name: str


class _LabelDocument(Struct):
    label: dict[str, Any]
    region: str | None = None
    value: _PlaceDocument | None = None


class _WorkDocument(Struct):
    """The exported work of an annotator on a task."""

    annotator: str
    kind: AnnotatorKind
    finished_at: str | None = None
    labels: tuple[_LabelDocument, ...] = ()
    verdicts: dict[str, VerdictValue | None] | None = None
    span_notes: dict[str, str] = {}


class _OursDocument(Struct):
    taxonomy: str | None = None
    work_by_number: dict[str, _WorkDocument] = struct_field(default_factory=dict, name="by")


class _MetaDocument(Struct):
    mast_tui: _OursDocument | None = None


class _TaskDocument(Struct):
    """The needed fields of a task."""

    data: _DataDocument | None = None
    meta: _MetaDocument | None = None


class _ResultValue(Struct):
    """The value of a result in one of our controls."""

    paragraphlabels: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


def _exported_work(document: _WorkDocument, trace_id: str, taxonomy: Taxonomy) -> ExportedWork:
    """Return the work of an annotator in an exported task.

    Raises:
        ValueError: The work is not valid.
    """
    work = ExportedWork(
        document.annotator,
        trace_id,
        taxonomy.ref,
        document.kind,
        notes=document.span_notes,
        finished_at=document.finished_at,
    )
    for detail in document.labels:
        # A suggestion of the exporting workspace may be unknown here.
        label = structs.replace(label_in_work(detail.label, work, taxonomy), suggestion=None)
        work.labels[label.id] = label
        if detail.region is None:
            work.without_region.append(label)
        elif detail.value is None:
            raise ValueError(f"the label of region {detail.region!r} has no 'value'")
        else:
            work.regions[detail.region] = (label, to_builtins(detail.value))
    verdicts = document.verdicts or {}
    for mode in taxonomy.modes:
        value = verdicts.get(mode.slug)
        if value is not None:
            work.verdicts[mode.slug] = value
    return work


@dataclass(slots=True)
class _LabelStudioBuilder(IncomingBuilder):
    """The tasks so far.

    Attributes:
        has_work: Checks whether an annotator has work on a trace under a taxonomy.
        author: The author of all annotations; None if they name their authors.
        here_already: The number of unchanged annotations with work in this workspace.
        changed: The annotators of changed annotations.
        skipped: The number of annotations that were skipped in Label Studio.
    """

    has_work: HasWork = field(kw_only=True)
    author: str | None = field(kw_only=True)
    here_already: int = 0
    changed: list[str] = field(default_factory=list)
    skipped: int = 0

    def add_annotation(self, task: Task, location: str, annotation: Document) -> None:
        """Add the work of an annotation.

        Skipped annotations and unchanged ones with work in this workspace are only counted.

        Args:
            task: The task.
            location: The location of the annotation in the file.
            annotation: The annotation or prediction.

        Raises:
            ValueError: The annotation is not valid, or the annotator has another one on the trace.
        """
        if annotation.get("was_cancelled") is True:
            self.skipped += 1
            return
        exported_work = _exported_work_of(task, annotation)
        draft = self._draft_of(task, location, annotation, exported_work)
        if exported_work is None:
            draft.finished_at = _labelled_at(annotation)
        elif draft.labels == exported_work.labels and draft.verdicts == exported_work.verdicts:
            draft.finished_at = exported_work.finished_at
            draft.notes = dict(exported_work.notes)
            if self.has_work(*draft.key):
                self.here_already += 1
                return
        else:
            draft = _changed_work(draft, exported_work, annotation)
            self.changed.append(draft.annotator)
        if draft.key in self.drafts:
            raise ValueError(f"{draft.annotator} has labelled this trace twice in Label Studio")
        self.add_work(draft)

    def _draft_of(
        self, task: Task, location: str, annotation: Document, exported_work: ExportedWork | None
    ) -> ImportedWork:
        """Return the labels and verdicts of an annotation; invalid ones become problems."""
        if exported_work is None:
            name = _author_name(annotation, self.author)
            kind = AnnotatorKind.IMPORTED
        else:
            name = exported_work.annotator
            kind = exported_work.author_kind
        draft = ImportedWork(name, task.trace_id, task.taxonomy.ref, kind, file=task.file)
        results = annotation.get("result")
        if not isinstance(results, list):
            raise ValueError("'result' is not a list")
        for number, result in enumerate(results, start=1):
            result_location = f"{location}, result {number}"
            with self.errors_as_problem(task.file, result_location):
                _add_result(draft, task, exported_work, result, result_location)
        return draft


def read_label_studio(
    files: Sequence[Path],
    *,
    taxonomy: Taxonomy,
    find_taxonomy: Callable[[str], Taxonomy | None],
    has_work: HasWork,
    annotator: str | None = None,
) -> Incoming:
    """Read tasks with their annotations (of people) and predictions (of models).

    An unchanged exported annotation keeps its annotator. It is left out if this workspace has the
    work. A changed one belongs to the imported annotator ``NAME (label-studio)``. A new one belongs
    to its user in Label Studio. An invalid part becomes a problem.

    Args:
        files: The files and folders.
        taxonomy: The default taxonomy.
        find_taxonomy: Returns a taxonomy by ``id@version``; None if it is unknown.
        has_work: Checks whether an annotator has work on a trace under a taxonomy.
        annotator: The author of all annotations; None if they name their authors.
    """
    builder = _LabelStudioBuilder(has_work=has_work, author=annotator)
    for file, tasks in read_records(files, builder.problems):
        for number, value in enumerate(tasks, start=1):
            location = f"task {number}"
            with builder.errors_as_problem(file, location):
                task = read_task(file, location, value, taxonomy, find_taxonomy)
                builder.traces.setdefault(task.trace_id, TraceRecord(task.trace_id))
                builder.taxonomies[task.taxonomy.ref] = task.taxonomy
                for annotation_location, annotation in _task_annotations(value, location):
                    with builder.errors_as_problem(file, annotation_location):
                        builder.add_annotation(task, annotation_location, annotation)
    if annotator is not None:
        check_one_name(annotator, (name for name, _, _ in builder.drafts))
    return _finished_import(builder)


def _finished_import(builder: _LabelStudioBuilder) -> Incoming:
    """Return the import with notes, under the name of the author if there is one."""
    notes = builder.notes
    if builder.here_already:
        notes.append(
            f"{counted(builder.here_already, 'annotation')} unchanged, already in the workspace"
        )
    if builder.changed:
        names = ", ".join(dict.fromkeys(builder.changed))
        notes.append(f"changed in Label Studio, imported as separate annotators: {names}")
    if builder.skipped:
        notes.append(
            f"{counted(builder.skipped, 'annotation')} left out, as skipped in Label Studio"
        )
    incoming = builder.to_incoming()
    if builder.author is None:
        return incoming
    return replace(
        incoming, work=tuple(_work_under_name(work, builder.author) for work in incoming.work)
    )


def _work_under_name(work: ImportedWork, name: str) -> ImportedWork:
    """Return the work and its labels under another annotator's name.

    The work of a judge becomes imported work.
    """
    labels = {}
    for label in work.labels.values():
        new_id = label_id(name, label.trace_id, label.taxonomy, label.mode, label.target)
        origin = label_origin(name, label.origin)
        labels[new_id] = structs.replace(label, annotator=name, id=new_id, origin=origin)
    kind = work.author_kind if work.author_kind.is_person else AnnotatorKind.IMPORTED
    return structs.replace(work, annotator=name, author_kind=kind, labels=labels)


def _task_annotations(task: object, location: str) -> Iterator[tuple[str, Document]]:
    assert isinstance(task, Mapping)
    for name in ("annotations", "predictions"):
        values = task.get(name)
        singular = name.removesuffix("s")
        if isinstance(values, list):
            for number, value in enumerate(values, start=1):
                if isinstance(value, Mapping):
                    yield f"{location}, {singular} {number}", value


def _changed_work(
    draft: ImportedWork, exported_work: ExportedWork, annotation: Document
) -> ImportedWork:
    """Return changed work under the name of its annotator with a suffix.

    Notes on spans are left out.
    """
    return structs.replace(
        _work_under_name(draft, exported_work.annotator + CHANGED_THERE),
        author_kind=AnnotatorKind.IMPORTED,
        finished_at=_labelled_at(annotation) or exported_work.finished_at or "",
        notes={},
        places={},
    )


def _exported_work_of(task: Task, annotation: Document) -> ExportedWork | None:
    """Return the exported work of an annotation; None for a new one.

    A prediction is found by its model, and an annotation by its number or that in its regions.
    """
    if "model_version" in annotation:
        model = annotation["model_version"]
        return next((work for work in task.exported_work.values() if work.annotator == model), None)
    numbers = [str(annotation.get("import_id")), str(annotation.get("id"))]
    results = annotation.get("result")
    for result in results if isinstance(results, list) else ():
        meta = result.get("meta") if isinstance(result, Mapping) else None
        if isinstance(meta, Mapping):
            numbers.append(str(meta.get(META)))
    return next(
        (task.exported_work[number] for number in numbers if number in task.exported_work), None
    )


def _author_name(annotation: Document, author: str | None) -> str:
    """Return the name of an annotation's author.

    It is ``author``, the model, or the mail address or number in Label Studio.

    Raises:
        ValueError: The annotation names no author, or the name is not valid.
    """
    if author is not None:
        return annotator_of("", author)
    model = annotation.get("model_version")
    if isinstance(model, str) and model:
        # Commas and bars separate names in lists.
        return checked_person(f"label-studio {model}".replace("|", " ").replace(",", " "))
    name = annotation.get("completed_by")
    if isinstance(name, Mapping):
        name = name.get("email") or name.get("id")
    if isinstance(name, int):
        name = f"label-studio user {name}"
    if not isinstance(name, str) or not name.strip():
        raise ValueError("does not name its annotator; give --annotator NAME")
    return checked_person(name)


def _labelled_at(annotation: Document) -> str:
    """Return the time of the last change or the creation; empty if unknown."""
    for name in ("updated_at", "created_at"):
        if isinstance(annotation.get(name), str):
            return str(annotation[name])
    return ""


def _add_result(
    draft: ImportedWork,
    task: Task,
    exported_work: ExportedWork | None,
    result: object,
    location: str,
) -> None:
    """Add the labels or verdicts of a result, the input in one control, to a draft.

    Raises:
        ValueError: The result is not valid.
    """
    result = read(result, dict[str, Any], "result")
    control = result.get("from_name")
    if result.get("value") is None or control not in (MODES, WHOLE, ABSENT, UNSURE):
        return  # It is a relation, or from another control.
    value = read(result["value"], _ResultValue, "result.value")
    if control == MODES:
        for name in value.paragraphlabels:
            draft.add_label(
                _label_of_region(draft, task, exported_work, result, task.mode(name)), location
            )
        return
    for name in value.choices:
        mode = task.mode(name)
        if control != WHOLE:
            draft.add_verdict(mode.slug, VerdictValue(control))
            continue
        # A choice has only the mode. The exported labels have more details.
        without_region = exported_work.without_region if exported_work else ()
        exported_labels = [label for label in without_region if label.mode == mode.slug]
        new_label = draft.label(mode.slug)
        for label in exported_labels or [new_label]:
            draft.add_label(label)


def _label_of_region(
    draft: ImportedWork,
    task: Task,
    exported_work: ExportedWork | None,
    result: Document,
    mode: Mode,
) -> Label:
    """Return the label of a region: the exported label with its changes, or a new one."""
    region_id = str(result.get("id"))
    exported = None if exported_work is None else exported_work.regions.get(region_id)
    value = result["value"]
    note = _region_note(result)
    if exported is None:
        return draft.label(mode.slug, target_of(value, task.spans), note or "")
    label, exported_region = exported
    # An unmoved region keeps the exact target.
    if region_numbers(exported_region) != region_numbers(value):
        label = structs.replace(label, target=target_of(value, task.spans), origin=Origin.IMPORTED)
    if mode.slug != label.mode:
        label = structs.replace(label, mode=mode.slug, origin=Origin.IMPORTED)
    if note is not None:
        label = structs.replace(label, note=note)
    new_id = label_id(draft.annotator, draft.trace_id, draft.taxonomy, label.mode, label.target)
    return structs.replace(label, id=new_id)


def _region_note(result: Document) -> str | None:
    """Return the note on a region; None without ``meta``."""
    meta = result.get("meta")
    if not isinstance(meta, Mapping):
        return None
    text = meta.get("text") or []
    lines = text if isinstance(text, list) else [text]
    return "\n".join(line for line in lines if isinstance(line, str))

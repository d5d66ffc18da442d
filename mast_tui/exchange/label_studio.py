"""``label-studio``: tasks for Label Studio, and the labels of its JSON export.

One task per trace; its spans are the paragraphs of a dialogue. A label of spans or words is a
region of ``ParagraphLabels``; labels of the whole trace and the verdicts absent and unsure are
choices. What Label Studio has no field for is kept in the task's ``meta``, which it returns
unchanged, so that an import can separate what was changed there from what was not.

A region begins and ends in a paragraph (by its number, from 0, the end one included) and there at
an offset in UTF-16 code units, since that is how strings count in a browser.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from msgspec import Struct, structs, to_builtins

from mast_tui.counts import counted
from mast_tui.exchange.errors import RowProblem
from mast_tui.exchange.import_batch import (
    Gathered,
    ImportedWork,
    Incoming,
    label_id,
    taxonomy_named,
)
from mast_tui.exchange.names import annotator_of, check_one_name
from mast_tui.exchange.trace_files import TextsOf, TextSpan, read_each, read_json
from mast_tui.labels import (
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
from mast_tui.workspace.events.codec import label_from_values, label_to_values, read
from mast_tui.workspace.records import TraceRecord

Values = dict[str, Any]
Document = Mapping[str, Any]
HasWork = Callable[[str, str, str], bool]
"""Whether an annotator has worked on a trace under a taxonomy in this workspace."""

META: Final = "mast_tui"
"""The name under which everything of ours stands in ``meta``."""

VERSION: Final = 1
TRACE: Final = "trace"
MODES: Final = "modes"
WHOLE: Final = "whole_trace"
ABSENT: Final = "absent"
UNSURE: Final = "unsure"
CONFIG_MARK: Final = f'<Choices name="{WHOLE}" toName="{TRACE}" '
"""What stands near the beginning of every labelling configuration."""
CHANGED_THERE: Final = " (label-studio)"
"""The suffix for the name of an annotator whose labels were changed in Label Studio."""

NO_TEXT: Final = "(the text of this span is not at hand)"

_CHOICES: Final = (
    (WHOLE, "Shows in the trace as a whole"),
    (ABSENT, "Does not show"),
    (UNSURE, "Unsure"),
)
# Label Studio's own numbers go through JavaScript, which counts exactly up to 2 ** 53 only.
_ID_BITS: Final = 52


def label_name(mode: Mode) -> str:
    """Return the name of a mode in Label Studio: ``1.3 Step repetition``."""
    return one_line(f"{mode.code} {mode.name}")


def label_config(taxonomy: Taxonomy) -> str:
    """Return the labelling configuration (XML) of a project that takes the tasks."""
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
    """Return the tasks, by trace id.

    Of a trace without its file only the spans with labels are there, without their text.

    Args:
        all_work: The work of annotators under the taxonomy.
        taxonomy: The taxonomy.
        records: The known facts of traces by id.
        kinds: The kinds of annotators by name. An author without a kind, as gold, is an imported
            annotator to a workspace that reads the tasks.
        texts: Returns the texts of a trace by its id.
    """
    by_trace: dict[str, list[TraceWork]] = defaultdict(list)
    for work in all_work:
        by_trace[work.trace_id].append(work)
    return [
        _task(
            records.get(trace_id, TraceRecord(trace_id)),
            by_trace[trace_id],
            taxonomy,
            kinds,
            texts,
        )
        for trace_id in sorted(by_trace)
    ]


def _task(
    record: TraceRecord,
    all_work: Sequence[TraceWork],
    taxonomy: Taxonomy,
    kinds: Mapping[str, AnnotatorKind],
    texts: TextsOf,
) -> Values:
    spans = texts(record.trace_id)
    at_hand = spans is not None
    if spans is None:
        spans = _labelled_spans(all_work)
    annotations: list[Values] = []
    predictions: list[Values] = []
    by_number: Values = {}
    for work in sorted(all_work, key=lambda work: work.annotator):
        kind = kinds.get(work.annotator, AnnotatorKind.IMPORTED)
        number = _number_of(work)
        results, details = _results(work, taxonomy, spans, number)
        by_number[number] = {
            "annotator": work.annotator,
            "kind": kind.value,
            "labels": details,
            "verdicts": {
                mode: value.value for mode, value in work.verdicts_without_label(taxonomy).items()
            },
        }
        if work.notes:
            by_number[number]["span_notes"] = dict(sorted(work.notes.items()))
        if work.finished_at is not None:
            by_number[number]["finished_at"] = work.finished_at
        if not kind.is_person:
            predictions.append(_prediction(work, results))
        else:
            annotations.append(
                {
                    "id": int(number),
                    "result": results,
                    "was_cancelled": False,
                    "ground_truth": work.annotator == "gold",
                }
            )
    facts = {"system": record.system, "model": record.model, "benchmark": record.benchmark}
    data = {"trace_id": record.trace_id, **{k: v for k, v in facts.items() if v is not None}}
    paragraphs = [{"key": s.key, "author": one_line(s.author), "text": s.text} for s in spans]
    ours = {"version": VERSION, "taxonomy": taxonomy.ref, "texts": at_hand, "by": by_number}
    return {
        "data": data | {"spans": paragraphs},
        "meta": {META: ours},
        "annotations": annotations,
        "predictions": predictions,
    }


def _labelled_spans(all_work: Sequence[TraceWork]) -> tuple[TextSpan, ...]:
    """Return the spans that labels name, in an order without meaning, without their text."""
    keys = {
        key
        for work in all_work
        for label in work.labels.values()
        for key in (label.target.first, label.target.last)
        if key is not None
    }
    return tuple(TextSpan(key, key, NO_TEXT) for key in sorted(keys))


def _number_of(work: TraceWork) -> str:
    """Return the lasting number of an annotator's work on a trace."""
    name = "\n".join(work.key)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return str(int.from_bytes(digest[:8]) >> (64 - _ID_BITS))


def _results(
    work: TraceWork, taxonomy: Taxonomy, spans: Sequence[TextSpan], number: str
) -> tuple[list[Values], list[Values]]:
    """Return the results, and each label as it is in the workspace with the region it became."""
    modes = {mode.slug: mode for mode in taxonomy.all_modes}
    results: list[Values] = []
    details: list[Values] = []
    chosen: dict[str, list[str]] = {name: [] for name, _ in _CHOICES}
    for label in sorted(work.labels.values(), key=lambda x: (list(modes).index(x.mode), x.id)):
        name = label_name(modes[label.mode])
        region_value = region_of(label.target, spans)
        detail: Values = {"label": label_to_values(label)}
        if label.id in work.merged:
            detail["merged"] = True
        if region_value is None:
            if name not in chosen[WHOLE]:
                chosen[WHOLE].append(name)
            details.append(detail)
            continue
        region = _region(label, region_value, name, number)
        detail |= {"region": region["id"], "value": region_value | {"name": name}}
        results.append(region)
        details.append(detail)
    for slug, value in work.verdicts_without_label(taxonomy).items():
        chosen[ABSENT if value is VerdictValue.ABSENT else UNSURE].append(label_name(modes[slug]))
    for name, values in chosen.items():
        if values:
            results.append(_choice(name, values, number))
    return results, details


def _region(label: Label, region_value: Values, name: str, number: str) -> Values:
    digest = hashlib.sha256(f"{number}\n{label.id}".encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "id": digest[:12],
        "from_name": MODES,
        "to_name": TRACE,
        "type": "paragraphlabels",
        "value": region_value | {"paragraphlabels": [name]},
        "meta": {META: number, **({"text": [label.note]} if label.note else {})},
    }


def _choice(name: str, values: Sequence[str], number: str) -> Values:
    return {
        "id": f"{name}-{number}",
        "from_name": name,
        "to_name": TRACE,
        "type": "choices",
        "value": {"choices": list(values)},
        "meta": {META: number},
    }


def _prediction(work: TraceWork, results: list[Values]) -> Values:
    scores = [label.confidence for label in work.labels.values() if label.confidence is not None]
    prediction: Values = {"model_version": work.annotator, "result": results}
    return prediction | ({"score": max(scores)} if scores else {})


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units of a text; a lone surrogate is one."""
    return len(text) + sum(char > "\uffff" for char in text)


def code_points(text: str, units: int, *, up: bool = False) -> int:
    """Return the number of code points in the first ``units`` UTF-16 code units of a text.

    Within a pair the place is that before the pair, or with ``up`` that after it.

    Args:
        text: The text.
        units: The number of UTF-16 code units.
        up: Whether a place within a pair moves to its end.
    """
    counted = 0
    for index, char in enumerate(text):
        if counted >= units:
            return index
        counted += 2 if char > "\uffff" else 1
        if counted > units:
            return index + 1 if up else index
    return len(text)


def region_of(target: Target, spans: Sequence[TextSpan]) -> Values | None:
    """Return the place of a target, None for the whole trace and where its spans are not there.

    A quote whose place is unknown is looked for in its span; where it is not there the region is
    the whole span.

    Args:
        target: The target.
        spans: The spans of the trace.
    """
    places = {span.key: number for number, span in enumerate(spans)}
    if target.first not in places or target.last not in places:
        return None
    first, last = sorted((places[target.first], places[target.last]))
    bounds = _quote(target, spans[first].text)
    if bounds is not None:
        text = spans[first].text
        start, end = (utf16_length(text[:position]) for position in bounds)
    else:
        start = 0
        end = utf16_length(spans[last].text)
    return {"start": str(first), "end": str(last), "startOffset": start, "endOffset": end}


def _quote(target: Target, text: str) -> tuple[int, int] | None:
    if target.quote is None:
        return None
    start = target.char_start
    end = target.char_end
    if start is not None and end is not None and text[start:end] == target.quote:
        return start, end
    position = text.find(target.quote)
    return None if position < 0 or not target.quote else (position, position + len(target.quote))


def target_of(value: Mapping[str, object], spans: Sequence[TextSpan]) -> Target:
    """Return the target that a region marks; raises ``ValueError`` where it lies outside the trace.

    Whole paragraphs are a range of spans, words of one paragraph a quote. Words over several
    paragraphs are the range of these, since a quote stands inside one span.

    Args:
        value: The region's value.
        spans: The spans of the trace.
    """
    first = _number(value, "start")
    last = _number(value, "end")
    if not 0 <= first <= last < len(spans):
        raise ValueError(f"lies on paragraphs {first} to {last}, but the task has {len(spans)}")
    first_span = spans[first]
    last_span = spans[last]
    if "startOffset" not in value and "endOffset" not in value:
        return Target(first_span.key, last_span.key)
    start = code_points(first_span.text, _number(value, "startOffset"))
    end = code_points(last_span.text, _number(value, "endOffset"), up=True)
    if first != last or (start == 0 and end == len(first_span.text)):
        return Target(first_span.key, last_span.key)
    if start >= end:
        raise ValueError(f"is empty: it begins at {start} and ends at {end} of paragraph {first}")
    return Target(first_span.key, first_span.key, first_span.text[start:end], start, end)


def place_of(value: Mapping[str, object]) -> tuple[int, ...]:
    """Return comparable numbers of a region's place; raises ``ValueError``."""
    return tuple(_number(value, name) for name in ("start", "end", "startOffset", "endOffset"))


def _number(value: Mapping[str, object], name: str) -> int:
    number = value.get(name)
    if isinstance(number, str) and number.isascii() and number.isdigit():
        return int(number)
    if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
        return number
    raise ValueError(f"{name!r} is {number!r}, not a number from 0")


@dataclass(slots=True)
class WrittenWork(TraceWork):
    """One annotator's work as it was written: ``regions`` are the labels with a place by region."""

    regions: dict[str, tuple[Label, Document]] = field(default_factory=dict)
    placeless: list[Label] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Task:
    """A task: its trace, the taxonomy, the spans, and the written work by its number."""

    file: Path
    place: str
    trace_id: str
    taxonomy: Taxonomy
    spans: tuple[TextSpan, ...]
    written: Mapping[str, WrittenWork]

    def mode(self, name: str) -> Mode:
        """Return the mode that is called so there; raises ``ValueError``."""
        for mode in self.taxonomy.all_modes:
            if label_name(mode) == name:
                return mode
        code = name.partition(" ")[0]
        match = self.taxonomy.find(name) or self.taxonomy.find(code)
        if match is None:
            raise ValueError(f"{name!r} is no mode of {self.taxonomy.ref}")
        return match


def read_task(
    file: Path,
    location: str,
    value: object,
    taxonomy: Taxonomy,
    find_taxonomy: Callable[[str], Taxonomy | None],
) -> Task:
    """Return the task.

    Args:
        file: The file.
        location: The location in the file.
        value: The task as JSON.
        taxonomy: The taxonomy of a task without one.
        find_taxonomy: Returns a taxonomy by ``id@version``, None if it is not known.

    Raises:
        ValueError: Something is missing or not valid.
    """
    document = read(value, _TaskDocument, location)
    if document.data is None or document.data.trace_id is None:
        raise ValueError(
            "has no 'trace_id' in its data; read what Label Studio exports as JSON of tasks that "
            "'mast-tui export --format label-studio' wrote"
        )
    trace_id = document.data.trace_id
    ours = None if document.meta is None else document.meta.mast_tui
    chosen = taxonomy_named(None if ours is None else ours.taxonomy, taxonomy, find_taxonomy)
    spans = tuple(TextSpan(span.key, span.author, span.text) for span in document.data.spans)
    written_work = {}
    if ours is not None:
        written_work = {
            number: _written_work(work, trace_id, chosen) for number, work in ours.by.items()
        }
    return Task(file, location, trace_id, chosen, spans, written_work)


class _SpanDocument(Struct, kw_only=True):
    key: str
    author: str = ""
    text: str


class _DataDocument(Struct):
    trace_id: str | None = None
    spans: tuple[_SpanDocument, ...] = ()


class _PlaceDocument(Struct, rename="camel"):
    """The place of a region, and the name of its mode."""

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
    """The work of one annotator on a task, as it was in the workspace."""

    annotator: str
    kind: AnnotatorKind
    finished_at: str | None = None
    labels: tuple[_LabelDocument, ...] = ()
    verdicts: dict[str, VerdictValue | None] | None = None
    span_notes: dict[str, str] = {}


class _OursDocument(Struct):
    taxonomy: str | None = None
    by: dict[str, _WorkDocument] = {}


class _MetaDocument(Struct):
    mast_tui: _OursDocument | None = None


class _TaskDocument(Struct):
    """A task, as far as it is read here."""

    data: _DataDocument | None = None
    meta: _MetaDocument | None = None


class _ResultValue(Struct):
    """The value of a result of one of our controls."""

    paragraphlabels: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


def _written_work(document: _WorkDocument, trace_id: str, taxonomy: Taxonomy) -> WrittenWork:
    name = document.annotator
    context = {
        "annotator": name,
        "trace_id": trace_id,
        "taxonomy": taxonomy.ref,
        "pass_number": 1,
    }
    work = WrittenWork(
        name,
        trace_id,
        taxonomy.ref,
        document.kind,
        notes=document.span_notes,
        finished_at=document.finished_at,
    )
    for detail in document.labels:
        label = label_from_values(detail.label, context)
        if all(mode.slug != label.mode for mode in taxonomy.all_modes):
            raise ValueError(f"{label.mode!r} is no mode of {taxonomy.ref}")
        target_id = label_id(name, trace_id, taxonomy.ref, label.mode, label.target)
        origin = label_origin(name, label.origin)
        label = structs.replace(label, id=target_id, suggestion=None, origin=origin)
        work.labels[target_id] = label
        if detail.region is None:
            work.placeless.append(label)
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
class _LabelStudioBatch(Gathered):
    """The tasks that were read so far."""

    here_already: int = 0
    changed: list[str] = field(default_factory=list)
    skipped: int = 0


def read_label_studio(
    files: Sequence[Path],
    *,
    taxonomy: Taxonomy,
    find_taxonomy: Callable[[str], Taxonomy | None],
    has_work: HasWork,
    annotator: str | None = None,
) -> Incoming:
    """Read tasks with their annotations and predictions.

    Work that comes back as it was written keeps its annotator, and is left out where that one has
    worked on the trace here. Changed work is that of an imported annotator, ``NAME
    (label-studio)``; work that began in Label Studio is that of its user there. A bad task,
    annotation or region is a problem.

    Args:
        files: The files and folders.
        taxonomy: The taxonomy of tasks without one.
        find_taxonomy: Returns a taxonomy by ``id@version``, None if it is not known.
        has_work: Returns whether an annotator has worked on a trace under a taxonomy.
        annotator: The name of the one author of all rows, None if the rows name them.
    """
    batch = _LabelStudioBatch()
    for file, document in read_each(files, batch.problems, read_json):
        tasks = document if isinstance(document, list) else [document]
        for number, value in enumerate(tasks, start=1):
            location = f"task {number}"
            try:
                task = read_task(file, location, value, taxonomy, find_taxonomy)
            except ValueError as error:
                batch.wrong(file, location, error)
                continue
            batch.traces.setdefault(task.trace_id, TraceRecord(task.trace_id))
            batch.taxonomies[task.taxonomy.ref] = task.taxonomy
            for where, annotation in _annotations(value, location):
                _read_annotation(task, where, annotation, has_work, annotator, batch)
    if annotator is not None:
        check_one_name(annotator, (name for name, _, _ in batch.drafts))
    return _incoming(batch, annotator)


def _incoming(batch: _LabelStudioBatch, annotator: str | None) -> Incoming:
    notes = batch.notes
    if batch.here_already:
        notes.append(
            f"{counted(batch.here_already, 'annotation')} came back unchanged, already here"
        )
    if batch.changed:
        names = ", ".join(dict.fromkeys(batch.changed))
        notes.append(f"changed in Label Studio, kept as imported annotators: {names}")
    if batch.skipped:
        notes.append(f"{counted(batch.skipped, 'annotation')} left out, skipped there")
    incoming = batch.done()
    if annotator is None:
        return incoming
    return replace(
        incoming, work=tuple(_renamed(work_item, annotator) for work_item in incoming.work)
    )


def _renamed(work: ImportedWork, name: str) -> ImportedWork:
    labels = {}
    for label in work.labels.values():
        new_id = label_id(name, label.trace_id, label.taxonomy, label.mode, label.target)
        origin = label_origin(name, label.origin)
        labels[new_id] = structs.replace(label, annotator=name, id=new_id, origin=origin)
    kind = work.author_kind if work.author_kind.is_person else AnnotatorKind.IMPORTED
    return replace(work, annotator=name, author_kind=kind, labels=labels)


def _annotations(task: object, location: str) -> Iterator[tuple[str, Document]]:
    """Yield the annotations and predictions of a task, each with its place."""
    assert isinstance(task, Mapping)
    for name in ("annotations", "predictions"):
        values = task.get(name)
        if isinstance(values, list):
            for number, value in enumerate(values, start=1):
                if isinstance(value, Mapping):
                    yield f"{location}, {name[:-1]} {number}", value


def _read_annotation(
    task: Task,
    location: str,
    annotation: Document,
    has_work: HasWork,
    author: str | None,
    batch: _LabelStudioBatch,
) -> None:
    if annotation.get("was_cancelled") is True:
        batch.skipped += 1
        return
    written = _written_before(task, annotation)
    try:
        name = written.annotator if written is not None else _author_name(annotation, author)
        kind = written.author_kind if written is not None else AnnotatorKind.IMPORTED
        draft = ImportedWork(name, task.trace_id, task.taxonomy.ref, kind, file=task.file)
        _add_results(draft, task, written, annotation, location, batch.problems)
    except ValueError as error:
        batch.wrong(task.file, location, error)
        return
    if written is None:
        draft.finished_at = _time(annotation)
    elif draft.labels == written.labels and draft.verdicts == written.verdicts:
        draft.finished_at = written.finished_at
        draft.notes = dict(written.notes)
        if has_work(name, task.trace_id, task.taxonomy.ref):
            batch.here_already += 1
            return
    else:
        draft = _changed(draft, written, annotation)
        batch.changed.append(draft.annotator)
    if draft.key in batch.drafts:
        batch.wrong(task.file, location, f"{draft.annotator} has labelled this trace twice there")
        return
    batch.keep(draft)


def _changed(draft: ImportedWork, written: WrittenWork, annotation: Document) -> ImportedWork:
    return replace(
        _renamed(draft, written.annotator + CHANGED_THERE),
        author_kind=AnnotatorKind.IMPORTED,
        finished_at=_time(annotation) or written.finished_at or "",
        notes={},
        places={},
    )


def _written_before(task: Task, annotation: Document) -> WrittenWork | None:
    """Return the written form of this annotation, by its number or by the mark on its regions."""
    if "model_version" in annotation:
        return next(
            (k for k in task.written.values() if k.annotator == annotation["model_version"]), None
        )
    numbers = [str(annotation.get("import_id")), str(annotation.get("id"))]
    results = annotation.get("result")
    for result in results if isinstance(results, list) else ():
        meta = result.get("meta") if isinstance(result, Mapping) else None
        if isinstance(meta, Mapping):
            numbers.append(str(meta.get(META)))
    return next((task.written[number] for number in numbers if number in task.written), None)


def _author_name(annotation: Document, author: str | None) -> str:
    """Return an annotator's name in Label Studio: the mail address, or the user's number."""
    if author is not None:
        return annotator_of("", author)
    model = annotation.get("model_version")
    if isinstance(model, str) and model:
        return checked_person(f"label-studio {model}".replace("|", " ").replace(",", " "))
    name = annotation.get("completed_by")
    if isinstance(name, Mapping):
        name = name.get("email") or name.get("id")
    if isinstance(name, int):
        name = f"label-studio user {name}"
    if not isinstance(name, str) or not name.strip():
        raise ValueError("does not say who labelled it; name one with --annotator NAME")
    return checked_person(name)


def _time(annotation: Document) -> str:
    for name in ("updated_at", "created_at"):
        if isinstance(annotation.get(name), str):
            return str(annotation[name])
    return ""


def _add_results(
    draft: ImportedWork,
    task: Task,
    written: WrittenWork | None,
    annotation: Document,
    location: str,
    problems: list[RowProblem],
) -> None:
    results = annotation.get("result")
    if not isinstance(results, list):
        raise ValueError("'result' is no list")
    for number, result in enumerate(results, start=1):
        where = f"{location}, result {number}"
        try:
            _add_result(draft, task, written, result, where)
        except ValueError as error:
            problems.append(RowProblem(task.file, where, str(error)))


def _add_result(
    draft: ImportedWork, task: Task, written: WrittenWork | None, result: object, location: str
) -> None:
    result = read(result, dict[str, Any], "result")
    control = result.get("from_name")
    if result.get("value") is None or control not in (MODES, WHOLE, ABSENT, UNSURE):
        return  # A control of the user's own, or a relation: not ours to read.
    value = read(result["value"], _ResultValue, "result.value")
    if control == MODES:
        for name in value.paragraphlabels:
            draft.add_label(_label(draft, task, written, result, task.mode(name)), location)
        return
    for name in value.choices:
        mode = task.mode(name)
        if control != WHOLE:
            draft.add_verdict(mode.slug, VerdictValue(control))
            continue
        earlier = [x for x in (written.placeless if written else ()) if x.mode == mode.slug]
        for label in earlier or [draft.label(mode.slug)]:
            draft.add_label(label)


def _label(
    draft: ImportedWork, task: Task, written: WrittenWork | None, result: Document, mode: Mode
) -> Label:
    earlier = None if written is None else written.regions.get(str(result.get("id")))
    value = result["value"]
    note = _note(result)
    if earlier is None:
        return draft.label(mode.slug, target_of(value, task.spans), note or "")
    label, region = earlier
    if place_of(region) != place_of(value):
        label = structs.replace(label, target=target_of(value, task.spans), origin=Origin.IMPORTED)
    if mode.slug != label.mode:
        label = structs.replace(label, mode=mode.slug, origin=Origin.IMPORTED)
    if note is not None:
        label = structs.replace(label, note=note)
    name = label_id(draft.annotator, draft.trace_id, draft.taxonomy, label.mode, label.target)
    return structs.replace(label, id=name)


def _note(result: Document) -> str | None:
    """Return the note on a region; None where the region has nothing noted beside it at all."""
    meta = result.get("meta")
    if not isinstance(meta, Mapping):
        return None
    text = meta.get("text") or []
    lines = text if isinstance(text, list) else [text]
    return "\n".join(line for line in lines if isinstance(line, str))

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
from mast_tui.exchange.csv_long import LongWork
from mast_tui.exchange.errors import RowProblem
from mast_tui.exchange.import_batch import (
    Gathered,
    Incoming,
    IncomingWork,
    WorkDraft,
    label_id,
    taxonomy_named,
)
from mast_tui.exchange.names import annotator_of, one_name
from mast_tui.exchange.trace_files import TextsOf, TextSpan, read_each, read_json
from mast_tui.labels import (
    AnnotatorKind,
    Label,
    Origin,
    Target,
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
Here = Callable[[str, str, str], bool]
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
    """What a mode is called in Label Studio: ``1.3 Step repetition``."""
    return one_line(f"{mode.code} {mode.name}")


def label_config(taxonomy: Taxonomy) -> str:
    """The labelling configuration (XML) of a project that takes the tasks."""
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
    work: Iterable[LongWork],
    records: Mapping[str, TraceRecord],
    kinds: Mapping[str, AnnotatorKind],
    texts: TextsOf,
) -> list[Values]:
    """The tasks, by trace id; all the work is under one taxonomy.

    Whoever has no kind, as gold, is an imported annotator to a workspace that reads the tasks.

    Of a trace that is not at hand only the spans with labels are there, without their text.
    """
    by_trace: dict[str, list[LongWork]] = defaultdict(list)
    for one in work:
        by_trace[one.trace_id].append(one)
    return [
        _task(records.get(trace_id, TraceRecord(trace_id)), by_trace[trace_id], kinds, texts)
        for trace_id in sorted(by_trace)
    ]


def _task(
    record: TraceRecord,
    work: Sequence[LongWork],
    kinds: Mapping[str, AnnotatorKind],
    texts: TextsOf,
) -> Values:
    spans = texts(record.trace_id)
    at_hand = spans is not None
    if spans is None:
        spans = _named_spans(work)
    annotations: list[Values] = []
    predictions: list[Values] = []
    kept: Values = {}
    for one in sorted(work, key=lambda w: w.annotator):
        kind = kinds.get(one.annotator, AnnotatorKind.IMPORTED)
        name = _number_of(one)
        results, details = _results(one, spans, name)
        kept[name] = {
            "annotator": one.annotator,
            "kind": kind.value,
            "labels": details,
            "verdicts": {mode: value.value for mode, value in one.not_present.items()},
        }
        if one.notes:
            kept[name]["span_notes"] = dict(sorted(one.notes.items()))
        if one.finished_at is not None:
            kept[name]["finished_at"] = one.finished_at
        if kind is AnnotatorKind.JUDGE:
            predictions.append(_prediction(one, results))
        else:
            annotations.append(
                {
                    "id": int(name),
                    "result": results,
                    "was_cancelled": False,
                    "ground_truth": one.annotator == "gold",
                }
            )
    facts = {"system": record.system, "model": record.model, "benchmark": record.benchmark}
    data = {"trace_id": record.trace_id, **{k: v for k, v in facts.items() if v is not None}}
    paragraphs = [{"key": s.key, "author": one_line(s.author), "text": s.text} for s in spans]
    ours = {"version": VERSION, "taxonomy": work[0].taxonomy.ref, "texts": at_hand, "by": kept}
    return {
        "data": data | {"spans": paragraphs},
        "meta": {META: ours},
        "annotations": annotations,
        "predictions": predictions,
    }


def _named_spans(work: Sequence[LongWork]) -> tuple[TextSpan, ...]:
    """The spans that labels name, in no order that would mean anything, without their text."""
    keys = {
        key
        for one in work
        for label in one.labels
        for key in (label.target.first, label.target.last)
        if key is not None
    }
    return tuple(TextSpan(key, key, NO_TEXT) for key in sorted(keys))


def _number_of(work: LongWork) -> str:
    """The lasting number of somebody's work on a trace."""
    name = "\n".join((work.annotator, work.trace_id, work.taxonomy.ref))
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return str(int.from_bytes(digest[:8]) >> (64 - _ID_BITS))


def _results(
    work: LongWork, spans: Sequence[TextSpan], number: str
) -> tuple[list[Values], list[Values]]:
    """The results, and beside them each label as it is here with the region it became."""
    modes = {mode.slug: mode for mode in work.taxonomy.all_modes}
    results: list[Values] = []
    details: list[Values] = []
    chosen: dict[str, list[str]] = {name: [] for name, _ in _CHOICES}
    for label in sorted(work.labels, key=lambda x: (list(modes).index(x.mode), x.id)):
        name = label_name(modes[label.mode])
        place = region_of(label.target, spans)
        detail: Values = {"label": label_to_values(label)}
        if label.id in work.merged:
            detail["merged"] = True
        if place is None:
            if name not in chosen[WHOLE]:
                chosen[WHOLE].append(name)
            details.append(detail)
            continue
        region = _region(label, place, name, number)
        detail |= {"region": region["id"], "value": place | {"name": name}}
        results.append(region)
        details.append(detail)
    for slug, value in work.not_present.items():
        chosen[ABSENT if value is VerdictValue.ABSENT else UNSURE].append(label_name(modes[slug]))
    for name, values in chosen.items():
        if values:
            results.append(_choice(name, values, number))
    return results, details


def _region(label: Label, place: Values, name: str, number: str) -> Values:
    digest = hashlib.sha256(f"{number}\n{label.id}".encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "id": digest[:12],
        "from_name": MODES,
        "to_name": TRACE,
        "type": "paragraphlabels",
        "value": place | {"paragraphlabels": [name]},
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


def _prediction(work: LongWork, results: list[Values]) -> Values:
    scores = [label.confidence for label in work.labels if label.confidence is not None]
    prediction: Values = {"model_version": work.annotator, "result": results}
    return prediction | ({"score": max(scores)} if scores else {})


def utf16_length(text: str) -> int:
    """How many UTF-16 code units a text takes; a lone surrogate is one."""
    return len(text) + sum(char > "\uffff" for char in text)


def code_points(text: str, units: int, *, up: bool = False) -> int:
    """How many code points the first ``units`` UTF-16 code units of a text are.

    Within a pair the place is that before the pair, or with ``up`` that after it.
    """
    counted = 0
    for place, char in enumerate(text):
        if counted >= units:
            return place
        counted += 2 if char > "\uffff" else 1
        if counted > units:
            return place + 1 if up else place
    return len(text)


def region_of(target: Target, spans: Sequence[TextSpan]) -> Values | None:
    """The place of a target, None for the whole trace and where its spans are not there.

    A quote whose place is unknown is looked for in its span; where it is not there the region is
    the whole span.
    """
    places = {span.key: number for number, span in enumerate(spans)}
    if target.first not in places or target.last not in places:
        return None
    first, last = places[target.first], places[target.last]
    if first > last:
        first, last = last, first
    found = _quote(target, spans[first].text)
    if found is not None:
        text = spans[first].text
        start, end = (utf16_length(text[:place]) for place in found)
    else:
        start, end = 0, utf16_length(spans[last].text)
    return {"start": str(first), "end": str(last), "startOffset": start, "endOffset": end}


def _quote(target: Target, text: str) -> tuple[int, int] | None:
    if target.quote is None:
        return None
    start, end = target.char_start, target.char_end
    if start is not None and end is not None and text[start:end] == target.quote:
        return start, end
    place = text.find(target.quote)
    return None if place < 0 or not target.quote else (place, place + len(target.quote))


def target_of(value: Mapping[str, object], spans: Sequence[TextSpan]) -> Target:
    """The target that a region marks; raises ``ValueError`` where it lies outside the trace.

    Whole paragraphs are a range of spans, words of one paragraph a quote. Words over several
    paragraphs are the range of these, since a quote stands inside one span.
    """
    first, last = _number(value, "start"), _number(value, "end")
    if not 0 <= first <= last < len(spans):
        raise ValueError(f"lies on paragraphs {first} to {last}, but the task has {len(spans)}")
    one, other = spans[first], spans[last]
    if "startOffset" not in value and "endOffset" not in value:
        return Target(one.key, other.key)
    start = code_points(one.text, _number(value, "startOffset"))
    end = code_points(other.text, _number(value, "endOffset"), up=True)
    if first != last or (start == 0 and end == len(one.text)):
        return Target(one.key, other.key)
    if start >= end:
        raise ValueError(f"is empty: it begins at {start} and ends at {end} of paragraph {first}")
    return Target(one.key, one.key, one.text[start:end], start, end)


def place_of(value: Mapping[str, object]) -> tuple[int, ...]:
    """What of a region says where it is, to be compared; raises ``ValueError``."""
    return tuple(_number(value, name) for name in ("start", "end", "startOffset", "endOffset"))


def _number(value: Mapping[str, object], name: str) -> int:
    number = value.get(name)
    if isinstance(number, str) and number.isascii() and number.isdigit():
        return int(number)
    if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
        return number
    raise ValueError(f"{name!r} is {number!r}, not a number from 0")


@dataclass(frozen=True, slots=True)
class Kept:
    """What was written of one annotator's work: each label with the region it became."""

    annotator: str
    kind: AnnotatorKind
    finished_at: str | None
    labels: tuple[Label, ...]
    regions: Mapping[str, tuple[Label, Document]]
    placeless: tuple[Label, ...]
    verdicts: Mapping[str, VerdictValue]
    notes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Task:
    """A task: its trace, the taxonomy, the spans, and what of it was written here."""

    file: Path
    place: str
    trace_id: str
    taxonomy: Taxonomy
    spans: tuple[TextSpan, ...]
    kept: Mapping[str, Kept]

    def mode(self, name: str) -> Mode:
        """The mode that is called so there; raises ``ValueError``."""
        for mode in self.taxonomy.all_modes:
            if label_name(mode) == name:
                return mode
        found = self.taxonomy.find(name) or self.taxonomy.find(name.partition(" ")[0])
        if found is None:
            raise ValueError(f"{name!r} is no mode of {self.taxonomy.ref}")
        return found


def read_task(
    file: Path,
    place: str,
    value: object,
    taxonomy: Taxonomy,
    known: Callable[[str], Taxonomy | None],
) -> Task:
    """The task; raises ``ValueError`` where something is missing or cannot be.

    ``taxonomy`` is that of a task which names none, ``known`` finds one by its reference.
    """
    document = read(value, _TaskDocument, place)
    if document.data is None or document.data.trace_id is None:
        raise ValueError(
            "has no 'trace_id' in its data; read what Label Studio exports as JSON of tasks that "
            "'mast-tui export --format label-studio' wrote"
        )
    trace_id = document.data.trace_id
    ours = None if document.meta is None else document.meta.mast_tui
    chosen = taxonomy_named(None if ours is None else ours.taxonomy, taxonomy, known)
    spans = tuple(TextSpan(span.key, span.author, span.text) for span in document.data.spans)
    kept = {}
    if ours is not None:
        kept = {number: _kept(one, trace_id, chosen) for number, one in ours.by.items()}
    return Task(file, place, trace_id, chosen, spans, kept)


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


def _kept(work: _WorkDocument, trace_id: str, taxonomy: Taxonomy) -> Kept:
    name = work.annotator
    context = {
        "annotator": name,
        "trace_id": trace_id,
        "taxonomy": taxonomy.ref,
        "pass_number": 1,
    }
    labels: list[Label] = []
    placeless: list[Label] = []
    regions: dict[str, tuple[Label, Document]] = {}
    for detail in work.labels:
        label = label_from_values(detail.label, context)
        if all(mode.slug != label.mode for mode in taxonomy.all_modes):
            raise ValueError(f"{label.mode!r} is no mode of {taxonomy.ref}")
        target_id = label_id(name, trace_id, taxonomy.ref, label.mode, label.target)
        origin = label_origin(name, label.origin)
        label = structs.replace(label, id=target_id, suggestion=None, origin=origin)
        labels.append(label)
        if detail.region is None:
            placeless.append(label)
        elif detail.value is None:
            raise ValueError(f"the label of region {detail.region!r} has no 'value'")
        else:
            regions[detail.region] = (label, to_builtins(detail.value))
    verdicts = work.verdicts or {}
    return Kept(
        annotator=name,
        kind=work.kind,
        finished_at=work.finished_at,
        labels=tuple(labels),
        regions=regions,
        placeless=tuple(placeless),
        verdicts={
            mode.slug: verdict
            for mode in taxonomy.modes
            if (verdict := verdicts.get(mode.slug)) is not None
        },
        notes=work.span_notes,
    )


@dataclass(slots=True)
class _Found(Gathered):
    """What has been read so far."""

    here_already: int = 0
    changed: list[str] = field(default_factory=list)
    skipped: int = 0


def read_label_studio(
    files: Sequence[Path],
    *,
    taxonomy: Taxonomy,
    known: Callable[[str], Taxonomy | None],
    here: Here,
    annotator: str | None = None,
) -> Incoming:
    """Read tasks with their annotations and predictions.

    Work that comes back as it was written keeps its annotator, and is left out where that one has
    worked on the trace here. Changed work is that of an imported annotator, ``NAME
    (label-studio)``; work that began there is that of who did it there. ``annotator`` names the
    one person whose work all of it is. ``taxonomy`` is that of tasks which name none, ``known``
    finds one by its reference. A bad task, annotation or region is a problem.
    """
    found = _Found()
    for file, document in read_each(files, found.problems, read_json):
        tasks = document if isinstance(document, list) else [document]
        for number, value in enumerate(tasks, start=1):
            place = f"task {number}"
            try:
                task = read_task(file, place, value, taxonomy, known)
            except ValueError as error:
                found.wrong(file, place, error)
                continue
            found.traces.setdefault(task.trace_id, TraceRecord(task.trace_id))
            found.taxonomies[task.taxonomy.ref] = task.taxonomy
            for where, words in _words(value, place):
                _read_words(task, where, words, here, annotator, found)
    if annotator is not None:
        one_name(annotator, (name for name, _, _ in found.drafts))
    return _incoming(found, annotator)


def _incoming(found: _Found, annotator: str | None) -> Incoming:
    notes = found.notes
    if found.here_already:
        notes.append(
            f"{counted(found.here_already, 'annotation')} came back unchanged, already here"
        )
    if found.changed:
        who = ", ".join(dict.fromkeys(found.changed))
        notes.append(f"changed in Label Studio, kept as imported annotators: {who}")
    if found.skipped:
        notes.append(f"{counted(found.skipped, 'annotation')} left out, skipped there")
    incoming = found.done()
    if annotator is None:
        return incoming
    return replace(incoming, work=tuple(_renamed(one, annotator) for one in incoming.work))


def _renamed(work: IncomingWork, name: str) -> IncomingWork:
    labels = [
        structs.replace(
            x,
            annotator=name,
            id=label_id(name, x.trace_id, x.taxonomy, x.mode, x.target),
            origin=label_origin(name, x.origin),
        )
        for x in work.labels
    ]
    kind = AnnotatorKind.IMPORTED if work.kind is AnnotatorKind.JUDGE else work.kind
    return replace(work, annotator=name, kind=kind, labels=tuple(labels))


def _words(task: object, place: str) -> Iterator[tuple[str, Document]]:
    """The annotations and predictions of a task, each with its place."""
    assert isinstance(task, Mapping)
    for name in ("annotations", "predictions"):
        values = task.get(name)
        if isinstance(values, list):
            for number, value in enumerate(values, start=1):
                if isinstance(value, Mapping):
                    yield f"{place}, {name[:-1]} {number}", value


def _read_words(
    task: Task, place: str, words: Document, here: Here, given: str | None, found: _Found
) -> None:
    if words.get("was_cancelled") is True:
        found.skipped += 1
        return
    kept = _written_before(task, words)
    try:
        name = kept.annotator if kept is not None else _somebody(words, given)
        kind = kept.kind if kept is not None else AnnotatorKind.IMPORTED
        draft = WorkDraft(name, kind, task.trace_id, task.taxonomy.ref, task.file)
        _add_results(draft, task, kept, words, place, found.problems)
    except ValueError as error:
        found.wrong(task.file, place, error)
        return
    if kept is None:
        draft.finished_at = _time(words)
    elif set(draft.labels.values()) == set(kept.labels) and draft.verdicts == kept.verdicts:
        draft.finished_at = kept.finished_at
        draft.notes = dict(kept.notes)
        if here(name, task.trace_id, task.taxonomy.ref):
            found.here_already += 1
            return
    else:
        draft = _changed(draft, kept, words)
        found.changed.append(draft.annotator)
    if draft.key in found.drafts:
        found.wrong(task.file, place, f"{draft.annotator} has labelled this trace twice there")
        return
    found.keep(draft)


def _changed(draft: WorkDraft, kept: Kept, words: Document) -> WorkDraft:
    name = kept.annotator + CHANGED_THERE
    done = _renamed(draft.done(), name)
    changed = WorkDraft(name, AnnotatorKind.IMPORTED, draft.trace_id, draft.taxonomy, draft.file)
    changed.labels = {label.id: label for label in done.labels}
    changed.verdicts = draft.verdicts
    changed.saw_suggestions = draft.saw_suggestions
    changed.finished_at = _time(words) or kept.finished_at or ""
    return changed


def _written_before(task: Task, words: Document) -> Kept | None:
    """What was written of this annotation, found by its number or by the mark on its regions."""
    if "model_version" in words:
        return next((k for k in task.kept.values() if k.annotator == words["model_version"]), None)
    numbers = [str(words.get("import_id")), str(words.get("id"))]
    results = words.get("result")
    for result in results if isinstance(results, list) else ():
        meta = result.get("meta") if isinstance(result, Mapping) else None
        if isinstance(meta, Mapping):
            numbers.append(str(meta.get(META)))
    return next((task.kept[number] for number in numbers if number in task.kept), None)


def _somebody(words: Document, given: str | None) -> str:
    """Who labelled in Label Studio: the mail address, else the user's number."""
    if given is not None:
        return annotator_of("", given)
    model = words.get("model_version")
    if isinstance(model, str) and model:
        return checked_person(f"label-studio {model}".replace("|", " ").replace(",", " "))
    who = words.get("completed_by")
    if isinstance(who, Mapping):
        who = who.get("email") or who.get("id")
    if isinstance(who, int):
        who = f"label-studio user {who}"
    if not isinstance(who, str) or not who.strip():
        raise ValueError("does not say who labelled it; name one with --annotator NAME")
    return checked_person(who)


def _time(words: Document) -> str:
    for name in ("updated_at", "created_at"):
        if isinstance(words.get(name), str):
            return str(words[name])
    return ""


def _add_results(
    draft: WorkDraft,
    task: Task,
    kept: Kept | None,
    words: Document,
    place: str,
    problems: list[RowProblem],
) -> None:
    results = words.get("result")
    if not isinstance(results, list):
        raise ValueError("'result' is no list")
    for number, result in enumerate(results, start=1):
        where = f"{place}, result {number}"
        try:
            _add_result(draft, task, kept, result, where)
        except ValueError as error:
            problems.append(RowProblem(task.file, where, str(error)))


def _add_result(
    draft: WorkDraft, task: Task, kept: Kept | None, result: object, place: str
) -> None:
    result = read(result, dict[str, Any], "result")
    control = result.get("from_name")
    if result.get("value") is None or control not in (MODES, WHOLE, ABSENT, UNSURE):
        return  # A control of the user's own, or a relation: not ours to read.
    value = read(result["value"], _ResultValue, "result.value")
    if control == MODES:
        for name in value.paragraphlabels:
            draft.add_label(_label(draft, task, kept, result, task.mode(name)), place)
        return
    for name in value.choices:
        mode = task.mode(name)
        if control != WHOLE:
            draft.add_verdict(mode.slug, VerdictValue(control))
            continue
        before = [x for x in (kept.placeless if kept else ()) if x.mode == mode.slug]
        for label in before or [draft.label(mode.slug)]:
            draft.add_label(label)


def _label(draft: WorkDraft, task: Task, kept: Kept | None, result: Document, mode: Mode) -> Label:
    before = None if kept is None else kept.regions.get(str(result.get("id")))
    value = result["value"]
    note = _note(result)
    if before is None:
        return draft.label(mode.slug, target_of(value, task.spans), note or "")
    label, written = before
    if place_of(written) != place_of(value):
        label = structs.replace(label, target=target_of(value, task.spans), origin=Origin.IMPORTED)
    if mode.slug != label.mode:
        label = structs.replace(label, mode=mode.slug, origin=Origin.IMPORTED)
    if note is not None:
        label = structs.replace(label, note=note)
    name = label_id(draft.annotator, draft.trace_id, draft.taxonomy, label.mode, label.target)
    return structs.replace(label, id=name)


def _note(result: Document) -> str | None:
    """The note on a region; None where the region has nothing noted beside it at all."""
    meta = result.get("meta")
    if not isinstance(meta, Mapping):
        return None
    text = meta.get("text") or []
    lines = text if isinstance(text, list) else [text]
    return "\n".join(line for line in lines if isinstance(line, str))

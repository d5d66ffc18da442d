"""``label-studio``: what Label Studio's JSON export gives back of tasks written for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.exchange.errors import RowProblem
from mast_tui.exchange.exporters.label_studio_export import (
    ABSENT,
    META,
    MODES,
    UNSURE,
    WHOLE,
    label_name,
)
from mast_tui.exchange.exporters.trace_texts import SpanText
from mast_tui.exchange.import_batch import (
    Gathered,
    Incoming,
    IncomingWork,
    WorkDraft,
    label_id,
    taxonomy_named,
)
from mast_tui.exchange.label_studio_places import place_of, target_of
from mast_tui.exchange.names import annotator_of, one_name
from mast_tui.exchange.trace_files import read_each, read_json
from mast_tui.labels import (
    AnnotatorKind,
    Label,
    Origin,
    VerdictValue,
    checked_person,
    label_origin,
)
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.workspace.events.codec import LABEL
from mast_tui.workspace.events.fields import Fields
from mast_tui.workspace.records import TraceRecord


@dataclass(frozen=True, slots=True)
class Kept:
    """What was written of one annotator's work: each label with the region it became."""

    annotator: str
    kind: AnnotatorKind
    finished_at: str | None
    labels: tuple[Label, ...]
    regions: Mapping[str, tuple[Label, Values]]
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
    spans: tuple[SpanText, ...]
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
    fields = Fields(value, place)
    data = fields.child_or_none("data")
    if data is None or data.text_or_none("trace_id") is None:
        raise ValueError(
            "has no 'trace_id' in its data; read what Label Studio exports as JSON of tasks that "
            "'mast-tui export --format label-studio' wrote"
        )
    meta = fields.child_or_none("meta")
    ours = None if meta is None else meta.child_or_none(META)
    ref = None if ours is None else ours.text_or_none("taxonomy")
    chosen = taxonomy_named(ref, taxonomy, known)
    trace_id = data.text("trace_id")
    spans = tuple(
        SpanText(span.text("key"), span.text("author", ""), span.text("text"))
        for span in data.children("spans")
    )
    kept = {} if ours is None else _kept_by(value, trace_id, chosen)
    return Task(file, place, trace_id, chosen, spans, kept)


def _kept_by(value: object, trace_id: str, taxonomy: Taxonomy) -> dict[str, Kept]:
    assert isinstance(value, Mapping)
    by = value["meta"][META].get("by", {})
    if not isinstance(by, Mapping):
        raise ValueError(f"meta.{META}.by is no object; export the task anew")
    return {number: _kept(Fields(one, "by"), trace_id, taxonomy) for number, one in by.items()}


def _kept(fields: Fields, trace_id: str, taxonomy: Taxonomy) -> Kept:
    name = fields.text("annotator")
    given = {
        "annotator": name,
        "trace_id": trace_id,
        "taxonomy": taxonomy.ref,
        "pass_number": 1,
    }
    labels: list[Label] = []
    placeless: list[Label] = []
    regions: dict[str, tuple[Label, Values]] = {}
    for detail in fields.children("labels"):
        label = LABEL.read(detail.child("label"), given)
        if all(mode.slug != label.mode for mode in taxonomy.all_modes):
            raise ValueError(f"{label.mode!r} is no mode of {taxonomy.ref}")
        target_id = label_id(name, trace_id, taxonomy.ref, label.mode, label.target)
        origin = label_origin(name, label.origin)
        label = replace(label, id=target_id, suggestion=None, origin=origin)
        labels.append(label)
        region = detail.text_or_none("region")
        if region is None:
            placeless.append(label)
        else:
            place = detail.child("value")
            numbers = {key: place.whole(key) for key in ("startOffset", "endOffset")}
            ends = {key: place.text(key) for key in ("start", "end")}
            regions[region] = (label, ends | numbers | {"name": place.text("name")})
    verdicts = fields.child_or_none("verdicts")
    return Kept(
        annotator=name,
        kind=fields.word("kind", AnnotatorKind),
        finished_at=fields.text_or_none("finished_at"),
        labels=tuple(labels),
        regions=regions,
        placeless=tuple(placeless),
        verdicts={}
        if verdicts is None
        else {
            mode.slug: VerdictValue(word)
            for mode in taxonomy.modes
            if (word := verdicts.text_or_none(mode.slug)) is not None
        },
        notes=dict(fields.named_texts("span_notes")),
    )


CHANGED_THERE: Final = " (label-studio)"
"""What is put after the name of somebody whose labels come back changed."""

Values = Mapping[str, Any]
Here = Callable[[str, str, str], bool]
"""Whether an annotator has worked on a trace under a taxonomy in this workspace."""


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
        replace(
            x,
            annotator=name,
            id=label_id(name, x.trace_id, x.taxonomy, x.mode, x.target),
            origin=label_origin(name, x.origin),
        )
        for x in work.labels
    ]
    kind = AnnotatorKind.IMPORTED if work.kind is AnnotatorKind.JUDGE else work.kind
    return replace(work, annotator=name, kind=kind, labels=tuple(labels))


def _words(task: object, place: str) -> Iterator[tuple[str, Values]]:
    """The annotations and predictions of a task, each with its place."""
    assert isinstance(task, Mapping)
    for name in ("annotations", "predictions"):
        values = task.get(name)
        if isinstance(values, list):
            for number, value in enumerate(values, start=1):
                if isinstance(value, Mapping):
                    yield f"{place}, {name[:-1]} {number}", value


def _read_words(
    task: Task, place: str, words: Values, here: Here, given: str | None, found: _Found
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


def _changed(draft: WorkDraft, kept: Kept, words: Values) -> WorkDraft:
    name = kept.annotator + CHANGED_THERE
    done = _renamed(draft.done(), name)
    changed = WorkDraft(name, AnnotatorKind.IMPORTED, draft.trace_id, draft.taxonomy, draft.file)
    changed.labels = {label.id: label for label in done.labels}
    changed.verdicts = draft.verdicts
    changed.saw_suggestions = draft.saw_suggestions
    changed.finished_at = _time(words) or kept.finished_at or ""
    return changed


def _written_before(task: Task, words: Values) -> Kept | None:
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


def _somebody(words: Values, given: str | None) -> str:
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


def _time(words: Values) -> str:
    for name in ("updated_at", "created_at"):
        if isinstance(words.get(name), str):
            return str(words[name])
    return ""


def _add_results(
    draft: WorkDraft,
    task: Task,
    kept: Kept | None,
    words: Values,
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
    fields = Fields(result, "result")
    assert isinstance(result, Mapping)
    control = fields.text_or_none("from_name")
    value = fields.child_or_none("value")
    if value is None or control not in (MODES, WHOLE, ABSENT, UNSURE):
        return  # a control of somebody's own, or a relation: not ours to read
    if control == MODES:
        for name in value.texts("paragraphlabels"):
            draft.add_label(_label(draft, task, kept, result, task.mode(name)), place)
        return
    for name in value.texts("choices"):
        mode = task.mode(name)
        if control != WHOLE:
            draft.add_verdict(mode.slug, VerdictValue(control))
            continue
        before = [x for x in (kept.placeless if kept else ()) if x.mode == mode.slug]
        for label in before or [draft.label(mode.slug)]:
            draft.add_label(label)


def _label(draft: WorkDraft, task: Task, kept: Kept | None, result: Values, mode: Mode) -> Label:
    before = None if kept is None else kept.regions.get(str(result.get("id")))
    value = result["value"]
    note = _note(result)
    if before is None:
        return draft.label(mode.slug, target_of(value, task.spans), note or "")
    label, written = before
    if place_of(written) != place_of(value):
        label = replace(label, target=target_of(value, task.spans), origin=Origin.IMPORTED)
    if mode.slug != label.mode:
        label = replace(label, mode=mode.slug, origin=Origin.IMPORTED)
    if note is not None:
        label = replace(label, note=note)
    name = label_id(draft.annotator, draft.trace_id, draft.taxonomy, label.mode, label.target)
    return replace(label, id=name)


def _note(result: Values) -> str | None:
    """The note on a region; None where the region has nothing noted beside it at all."""
    meta = result.get("meta")
    if not isinstance(meta, Mapping):
        return None
    text = meta.get("text") or []
    lines = text if isinstance(text, list) else [text]
    return "\n".join(line for line in lines if isinstance(line, str))

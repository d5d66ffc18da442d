"""From what an importer has read to events in a workspace: checked whole, written in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from time import monotonic
from typing import Final

from msgspec import structs

from mast_tui.exchange.batches import batched, let_others_write, register_traces
from mast_tui.exchange.errors import ExchangeError, RowProblem
from mast_tui.exchange.import_batch import (
    ImportedWork,
    Incoming,
    again_id,
    label_id,
    lasting_id,
    lasting_ids,
    undone_id,
)
from mast_tui.labels import (
    AnnotatorKind,
    Label,
    Pass,
    PassKind,
    Target,
    VerdictValue,
    WorkKey,
    label_origin,
)
from mast_tui.workspace import Event, NewEvent, PersonChanges, TraceRecord, Workspace
from mast_tui.workspace.events.types import (
    Fact,
    Judged,
    LabelAdded,
    PassFinished,
    PassStarted,
    SpanNoteSet,
    SuggestionsSeen,
    VerdictSet,
)
from mast_tui.workspace.judgements import suggestion_id
from mast_tui.workspace.records import HistoryRelation
from mast_tui.workspace.registers.imports import ImportRecord

_SAYING: Final = (LabelAdded, VerdictSet)

EVENTS_AT_ONCE: Final = 18_000
"""Events in one transaction: somewhat less than a second of processor time, as they are planned
before it begins. With more of them each page of the index of ids is written less often."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of an import: ``new`` events, and ``known`` ones that the workspace already had.

    ``differing`` counts those of the known that the file now tells with other details (another
    note, another confidence); what is there stays. ``problems`` holds those of the reader and
    those that showed against the workspace; unless ``written``, nothing has changed. Unless
    ``finished``, somebody went on working here while it was written, and some of it was left out.
    ``people`` says what changed by name, also where it joins what somebody has begun here.
    """

    written: bool
    new: int
    known: int
    differing: int
    problems: tuple[RowProblem, ...]
    people: tuple[PersonChanges, ...] = ()
    finished: bool = True


def apply_incoming(
    incoming: Incoming,
    workspace: Workspace,
    *,
    source: str,
    skip_errors: bool = False,
    files: Sequence[str] = (),
    asked: str | None = None,
    imported_by: str | None = None,
) -> Applied:
    """Write what was read, in batches between which others can write.

    All problems are looked for before the first batch; as long as there is one nothing is written,
    unless ``skip_errors`` leaves out what it stands for. What is atomic then: taxonomies and
    annotators together, and one person's work on one trace, many of them at once. Importing the
    same again writes nothing, or what an import that was broken off has left.

    Args:
        incoming: what was read.
        workspace: what takes it.
        source: the format; it names the import in the workspace's history.
        skip_errors: leave out what cannot be taken.
        files: the names of the files.
        asked: how the import is asked for, see ``Workspace.begin_import``.
        imported_by: who imports, None where nobody is known.

    Returns:
        What was written, and what was wrong.

    Raises:
        ExchangeError: a text cannot be kept; nothing was written.
        WorkspaceError: it cannot be written; the batches before that stay.
    """
    _check_texts(incoming)
    applier = _Applier(incoming, workspace)
    problems = (*incoming.problems, *applier.problems())
    if problems and not skip_errors:
        return Applied(False, 0, applier.known, applier.differing, problems)
    applier = _Applier(incoming, workspace, left_out=applier.left_out)
    record = applier.write(source, files, source if asked is None else asked, imported_by)
    if not applier.late:
        workspace.finish_import(record)
    return Applied(
        written=True,
        new=applier.new,
        known=applier.known,
        differing=applier.differing,
        problems=(*problems, *applier.late),
        people=tuple(change for _, change in sorted(applier.people.items())),
        finished=not applier.late,
    )


def _check_texts(incoming: Incoming) -> None:
    """Refuse what SQLite cannot keep, before anything is written."""
    for work in incoming.work:
        _check_characters(work.file, work.trace_id, *work.notes, *work.notes.values())
        for label in work.labels.values():
            target = label.target
            texts = (label.note, target.first, target.last, target.quote)
            _check_characters(work.file, label.trace_id, *texts)
    for record in incoming.traces:
        facts = (record.trace_id, record.system, record.model, record.benchmark, record.task)
        _check_characters("a trace", record.trace_id, *facts)


def _check_characters(file: object, trace_id: str, *texts: str | None) -> None:
    try:
        "".join(text for text in texts if text is not None).encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):X}"
        raise ExchangeError(
            f"{file}: {trace_id}: a text holds half a character ({half}) and cannot be kept; "
            "nothing was written"
        ) from None


@dataclass(frozen=True, slots=True)
class _Planned:
    """The events of one annotator's work on one trace, or the reason why it is refused."""

    events: Sequence[NewEvent] = ()
    problem: RowProblem | None = None


class _Applier:
    """One import into one workspace."""

    def __init__(
        self, incoming: Incoming, workspace: Workspace, *, left_out: Iterable[int] = ()
    ) -> None:
        self._incoming = incoming
        self._workspace = workspace
        self._counters: dict[str, int] = {}
        self._passes: Mapping[WorkKey, Pass] = {}
        self._free_numbers: Mapping[WorkKey, int] = {}
        self.left_out = set(left_out)
        """The places of works that cannot be taken."""
        self.new = self.known = self.differing = 0
        self.people = dict[str, PersonChanges]()
        self.late = list[RowProblem]()
        self._look()
        self._worked = {name for name, counter in self._counters.items() if counter}

    def problems(self) -> Iterator[RowProblem]:
        """Yield everything here that speaks against what comes; writes nothing.

        Only what its annotators have begun can.
        """
        if not self._passes:
            return
        local_ids = {record.trace_id: self._name_here(record) for record in self._incoming.traces}
        begun = [
            (number, (work, trace_id))
            for number, work in enumerate(self._incoming.work)
            if (trace_id := local_ids[work.trace_id]) is not None
            and (work.annotator, trace_id, work.taxonomy) in self._passes
        ]
        for batch in batched(begun, lambda begun_work: _size(begun_work[1][0]), EVENTS_AT_ONCE):
            planned = self._plan([work for _, work in batch])
            for (number, _), begun_work in zip(batch, planned, strict=True):
                if begun_work.problem is not None:
                    self.left_out.add(number)
                    yield begun_work.problem

    def _name_here(self, record: TraceRecord) -> str | None:
        record_here = self._workspace.find_trace(record)
        return None if record_here is None else record_here.trace_id

    def write(
        self, source: str, files: Sequence[str], asked: str, imported_by: str | None
    ) -> ImportRecord:
        """Register what is new, then append the events, whole works at a time.

        Args:
            source: The format.
            files: The names of the files.
            asked: The request of the import.
            imported_by: The name of the user, None if it is not known.
        """
        works = [w for n, w in enumerate(self._incoming.work) if n not in self.left_out]
        used = {work_item.taxonomy for work_item in self._incoming.work}
        # What may still be refused comes first, and at one go.
        with self._workspace.transaction():
            for taxonomy in self._incoming.taxonomies:
                if taxonomy.ref in used:
                    self._workspace.add_taxonomy(taxonomy, in_use=False)
            for name, kind in sorted(
                {(work_item.annotator, work_item.author_kind) for work_item in self._incoming.work}
            ):
                self._workspace.add_annotator(name, kind)
            record = self._workspace.begin_import(source, files, asked=asked, annotator=imported_by)
        names = register_traces(
            self._incoming.traces, self._workspace.register_trace, self._workspace
        )
        for batch in batched(works, _size, EVENTS_AT_ONCE):
            begun = monotonic()
            counted = (self.known, self.differing)
            batch_work = [(work_item, names[work_item.trace_id]) for work_item in batch]
            planned = self._plan(batch_work)
            let_others_write(begun)
            with self._workspace.transaction(whole=True):
                if self._workspace.counters(self._counters) != self._counters:
                    # One of these people has gone on working here meanwhile.
                    self.known, self.differing = counted
                    self._look()
                    planned = self._plan(batch_work)
                self.late += [
                    work_item.problem for work_item in planned if work_item.problem is not None
                ]
                events = [event for work_item in planned for event in work_item.events]
                self._note(self._workspace.append(events, action=record.action))
        return record

    def _look(self) -> None:
        """Read what these annotators have begun here."""
        names = {work.annotator for work in self._incoming.work}
        self._counters = dict(self._workspace.counters(names))
        self._passes = {}
        self._free_numbers = {}
        if any(self._counters.values()):
            own_passes = [
                own_pass for own_pass in self._workspace.passes() if own_pass.annotator in names
            ]
            self._passes = _last_passes(own_passes)
            # An adjudicator who has not read a trace has a pass on it that takes no labels.
            self._free_numbers = {
                _work_of(own_pass): own_pass.number + 1 for own_pass in own_passes
            }

    def _note(self, recorded: Sequence[Event]) -> None:
        """Count what was recorded, by name; the works come whole."""
        self.new += len(recorded)
        for name, events_by_name in groupby(recorded, key=attrgetter("annotator")):
            events = list(events_by_name)
            self._counters[name] = events[-1].seq
            changes = self.people.get(name)
            if changes is None:
                history = HistoryRelation.LONGER if name in self._worked else HistoryRelation.NEW
                changes = PersonChanges(name, history)
            self.people[name] = _with(changes, events)

    def _plan(self, works: Sequence[tuple[ImportedWork, str]]) -> list[_Planned]:
        """Return the events that are not here yet; each work comes with its trace id here."""
        drafts = []
        for work, trace_id in works:
            where = (work.annotator, trace_id, work.taxonomy)
            last = self._passes.get(where)
            number = self._pass_number(where)
            labels = [
                _at_home(label, where, number, work.author_kind) for label in work.labels.values()
            ]
            drafts.append((work, where, last, dict(_facts(work, where, labels))))
        names, known_facts = self._names([name for *_, facts in drafts for name in facts])
        return [
            self._planned(
                work,
                where,
                last,
                {names[name]: fact for name, fact in facts.items()} if names else facts,
                known_facts,
            )
            for work, where, last, facts in drafts
        ]

    def _pass_number(self, where: WorkKey) -> int:
        """Return the number of the last reading, or of the first one if there is none."""
        last = self._passes.get(where)
        return self._free_numbers.get(where, 1) if last is None else last.number

    def _names(self, ids: Sequence[str]) -> tuple[Mapping[str, str], Mapping[str, Fact]]:
        """Return the ids that are to be others, and what the events say that are here.

        What came with an import that was taken back comes again under another id.
        """
        if not self._worked:
            return {}, {}
        names = {name: name for name in ids}
        known_facts: dict[str, Fact] = {}
        unsettled = list(ids)
        while unsettled:
            present = self._workspace.known_facts([names[name] for name in unsettled])
            undone = self._workspace.known_facts([undone_id(name) for name in present])
            known_facts |= present
            unsettled = [name for name in unsettled if undone_id(names[name]) in undone]
            for name in unsettled:
                names[name] = again_id(names[name])
        return names, known_facts

    def _planned(
        self,
        work: ImportedWork,
        where: WorkKey,
        last: Pass | None,
        planned: Mapping[str, Fact],
        known_facts: Mapping[str, Fact],
    ) -> _Planned:
        fresh = dict(planned)
        for name in planned.keys() & known_facts.keys():
            self.differing += _differs_from(fresh.pop(name), known_facts[name])
        current = (
            None if last is None or not fresh else _CurrentPass.of(self._workspace, where, last)
        )
        if current is not None:
            self.differing += sum(map(current.differs, fresh.values()))
            fresh = current.unsaid(fresh)
        self.known += len(planned) - len(fresh)
        if current is not None and fresh:
            problem = current.contradiction(fresh.values())
            if problem:
                location = f"{work.annotator} on {work.trace_id}"
                return _Planned(problem=RowProblem(work.file, location, problem))
            fresh = {n: f for n, f in fresh.items() if not isinstance(f, PassStarted)}
        annotator, trace_id, taxonomy = where
        number = self._pass_number(where)
        return _Planned(
            [
                NewEvent(annotator, trace_id, taxonomy, number, fact, id=name)
                for name, fact in fresh.items()
            ]
        )


@dataclass(frozen=True, slots=True)
class _CurrentPass:
    """The content of the last pass of a work in this workspace, under ids of its own."""

    last: Pass
    labels: Mapping[tuple[str, Target], Label]
    values: Mapping[str, VerdictValue]
    notes: Mapping[str, str]

    @classmethod
    def of(cls, workspace: Workspace, where: WorkKey, last: Pass) -> _CurrentPass:
        """Read it.

        Args:
            workspace: The workspace.
            where: The annotator, the trace and the taxonomy.
            last: The last pass.
        """
        annotator, trace_id, taxonomy = where
        about = {"annotator": annotator, "trace_id": trace_id, "taxonomy": taxonomy}
        labels = workspace.labels(**about, pass_number=last.number)
        verdicts = workspace.verdicts(**about, pass_number=last.number)
        notes = workspace.span_notes(**about, pass_number=last.number)
        return cls(
            last,
            {(label.mode, label.target): label for label in labels},
            {verdict.mode: verdict.value for verdict in verdicts},
            {note.key: note.text for note in notes},
        )

    def unsaid(self, fresh: Mapping[str, Fact]) -> dict[str, Fact]:
        """Return the facts that the pass does not hold.

        So an export that comes back to its own workspace adds nothing.
        """
        left = {name: fact for name, fact in fresh.items() if not self._is_recorded(fact)}
        # That a pass began says nothing by itself.
        return left if any(not isinstance(f, PassStarted) for f in left.values()) else {}

    def differs(self, fact: Fact) -> bool:
        """Return whether the fact is a label that is here with other details."""
        if not isinstance(fact, LabelAdded):
            return False
        own_label = self.labels.get((fact.label.mode, fact.label.target))
        return own_label is not None and _details(own_label) != _details(fact.label)

    def _is_recorded(self, fact: Fact) -> bool:
        match fact:
            case LabelAdded(label):
                return (label.mode, label.target) in self.labels
            case VerdictSet(mode, _, value):
                return self.values.get(mode) is value
            case Judged(looks_at, absent):
                labelled_modes = {mode for mode, _ in self.labels}
                return self.last.finished and all(
                    mode in labelled_modes
                    or self.values.get(mode)
                    is (VerdictValue.ABSENT if mode in absent else VerdictValue.UNSURE)
                    for mode in looks_at
                )
            case SpanNoteSet(key, _, text):
                return self.notes.get(key) == text
            case PassFinished():
                return self.last.finished
            case SuggestionsSeen():
                return self.last.judge_seen
            case _:
                return False

    def contradiction(self, fresh: Iterable[Fact]) -> str | None:
        """Return the reason why facts cannot be added to it; None if they can."""
        if self.last.finished:
            return (
                "has finished this trace here, and the file says something else; import it under "
                "another name with --annotator"
            )
        for fact in fresh:
            match fact:
                case SpanNoteSet(key) if key in self.notes:
                    return f"the note on span {key!r} is another here"
                case LabelAdded(label):
                    mode = label.mode
                    value = VerdictValue.PRESENT
                case VerdictSet(mode, _, VerdictValue() as value):
                    pass
                case _:
                    continue
            if self.values.get(mode, value) is not value:
                return f"{mode} is {self.values[mode]} here and {value} in the file"
        return None


def _size(work: ImportedWork) -> int:
    """About how many events one person's work on one trace is."""
    return len(work.labels) + len(work.verdicts) + len(work.notes) + 3


def _with(changes: PersonChanges, events: Sequence[Event]) -> PersonChanges:
    """Return the person's changes with those of newly added work."""
    kinds = Counter(type(event.fact) for event in events)
    begun = set[object]()
    joined = set[object]()
    absent = 0
    for event in events:
        fact = event.fact
        if isinstance(fact, PassStarted):
            begun.add((event.trace_id, event.taxonomy))
        elif isinstance(fact, _SAYING):
            joined.add((event.trace_id, event.taxonomy))
        elif isinstance(fact, Judged) and fact.absent:
            joined.add((event.trace_id, event.taxonomy))
            absent += len(fact.absent)
    return replace(
        changes,
        events=changes.events + len(events),
        labels_added=changes.labels_added + kinds[LabelAdded],
        verdicts_added=changes.verdicts_added + kinds[VerdictSet] + absent,
        passes_added=changes.passes_added + len(begun),
        passes_joined=changes.passes_joined + len(joined - begun),
        passes_finished=changes.passes_finished + kinds[Judged] + kinds[PassFinished],
    )


def _differs_from(fact: Fact, recorded: Fact) -> bool:
    if isinstance(fact, LabelAdded) and isinstance(recorded, LabelAdded):
        origin = label_origin(recorded.label.annotator, recorded.label.origin)
        recorded_label = structs.replace(recorded.label, origin=origin)
        return structs.replace(fact.label, pass_number=recorded_label.pass_number) != recorded_label
    return False


def _details(label: Label) -> tuple[object, ...]:
    return label.note, label.confidence, label.severity


def _last_passes(passes: Iterable[Pass]) -> Mapping[WorkKey, Pass]:
    """Return the last reading of each work; passes come by number."""
    return {_work_of(own_pass): own_pass for own_pass in passes if own_pass.kind.is_reading}


def _work_of(trace_pass: Pass) -> WorkKey:
    return trace_pass.annotator, trace_pass.trace_id, trace_pass.taxonomy


def _at_home(label: Label, where: WorkKey, number: int, kind: AnnotatorKind) -> Label:
    """Return the label with the trace id of this workspace, and the label id that follows."""
    annotator, trace_id, taxonomy = where
    is_judge = kind is AnnotatorKind.JUDGE
    if not is_judge and (trace_id, number) == (label.trace_id, label.pass_number):
        return label  # readers name labels by ``label_id``, and it would come to the same
    name = suggestion_id if is_judge else label_id
    own_id = name(annotator, trace_id, taxonomy, label.mode, label.target)
    return structs.replace(label, id=own_id, trace_id=trace_id, pass_number=number)


def _facts(work: ImportedWork, where: WorkKey, labels: list[Label]) -> Iterator[tuple[str, Fact]]:
    """Yield the facts to record, each with its lasting id."""
    of_work = lasting_ids(*where)
    yield (
        of_work("pass started"),
        PassStarted(PassKind.ASSISTED if work.judge_seen else PassKind.BLIND),
    )
    if work.judge_seen:
        yield of_work("suggestions seen"), SuggestionsSeen()
    for label in labels:
        yield lasting_id("label added", label.id), LabelAdded(label)
    # Until a judge has finished a trace, its verdicts count in no figure.
    has_judged = work.author_kind is AnnotatorKind.JUDGE and work.finished_at is not None
    if has_judged:
        yield of_work("judged"), _judged(work)
    for mode, value in work.verdicts.items():
        if not has_judged or value is VerdictValue.UNSURE:
            yield of_work("verdict", mode, value), _verdict(mode, value)
    for key, text in work.notes.items():
        yield of_work("span note", key, text), SpanNoteSet(key, "", text)
    if work.finished_at is not None and work.author_kind is not AnnotatorKind.JUDGE:
        yield of_work("finished"), PassFinished(at=work.finished_at or None)


@lru_cache(maxsize=1000)
def _verdict(mode: str, value: VerdictValue) -> VerdictSet:
    """Return the same few are most of what is said."""
    return VerdictSet(mode, None, value)


def _judged(work: ImportedWork) -> Judged:
    looks_at = dict.fromkeys([*(label.mode for label in work.labels.values()), *work.verdicts])
    absent = [mode for mode, value in work.verdicts.items() if value is VerdictValue.ABSENT]
    return Judged(tuple(looks_at), tuple(absent))

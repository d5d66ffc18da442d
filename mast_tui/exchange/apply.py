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
    Incoming,
    IncomingWork,
    WorkKey,
    again_id,
    label_id,
    lasting_id,
    lasting_ids,
    undone_id,
)
from mast_tui.labels import AnnotatorKind, Label, Pass, Target, VerdictValue, label_origin
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
from mast_tui.workspace.records import History
from mast_tui.workspace.registers.imports import ImportRecord

_SAYING: Final = (LabelAdded, VerdictSet)

EVENTS_AT_ONCE: Final = 18_000
"""Events in one transaction: somewhat less than a second of processor time, as they are planned
before it begins. With more of them each page of the index of ids is written less often."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What an import has done: ``new`` events, and ``known`` ones that were there already.

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
    who: str | None = None,
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
        who: who imports, None where nobody is known.

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
    record = applier.write(source, files, source if asked is None else asked, who)
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
        for label in work.labels:
            place = label.target
            texts = (label.note, place.first, place.last, place.quote)
            _check_characters(work.file, label.trace_id, *texts)
    for record in incoming.traces:
        facts = (record.trace_id, record.system, record.model, record.benchmark, record.task)
        _check_characters("a trace", record.trace_id, *facts)


def _check_characters(file: object, place: str, *texts: str | None) -> None:
    try:
        "".join(text for text in texts if text is not None).encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):X}"
        raise ExchangeError(
            f"{file}: {place}: a text holds half a character ({half}) and cannot be kept; nothing "
            "was written"
        ) from None


@dataclass(frozen=True, slots=True)
class _Planned:
    """What is to be recorded of one person's work on one trace, or why it cannot be."""

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
        """Everything here that speaks against what comes; writes nothing.

        Only what its annotators have begun can.
        """
        if not self._passes:
            return
        here = {record.trace_id: self._name_here(record) for record in self._incoming.traces}
        begun = [
            (place, (work, trace_id))
            for place, work in enumerate(self._incoming.work)
            if (trace_id := here[work.trace_id]) is not None
            and (work.annotator, trace_id, work.taxonomy) in self._passes
        ]
        for batch in batched(begun, lambda one: _size(one[1][0]), EVENTS_AT_ONCE):
            planned = self._plan([work for _, work in batch])
            for (place, _), one in zip(batch, planned, strict=True):
                if one.problem is not None:
                    self.left_out.add(place)
                    yield one.problem

    def _name_here(self, record: TraceRecord) -> str | None:
        known = self._workspace.find_trace(record)
        return None if known is None else known.trace_id

    def write(self, source: str, files: Sequence[str], asked: str, who: str | None) -> ImportRecord:
        """Register what is new, then append the events, whole works at a time."""
        works = [w for n, w in enumerate(self._incoming.work) if n not in self.left_out]
        used = {one.taxonomy for one in self._incoming.work}
        # What may still be refused comes first, and at one go.
        with self._workspace.transaction():
            for taxonomy in self._incoming.taxonomies:
                if taxonomy.ref in used:
                    self._workspace.add_taxonomy(taxonomy, in_use=False)
            for name, kind in sorted({(one.annotator, one.kind) for one in self._incoming.work}):
                self._workspace.add_annotator(name, kind)
            record = self._workspace.begin_import(source, files, asked=asked, annotator=who)
        names = register_traces(
            self._incoming.traces, self._workspace.register_trace, self._workspace
        )
        for batch in batched(works, _size, EVENTS_AT_ONCE):
            begun, counted = monotonic(), (self.known, self.differing)
            wanted = [(one, names[one.trace_id]) for one in batch]
            planned = self._plan(wanted)
            let_others_write(begun)
            with self._workspace.transaction(whole=True):
                if self._workspace.counters(self._counters) != self._counters:
                    # One of these people has gone on working here meanwhile.
                    self.known, self.differing = counted
                    self._look()
                    planned = self._plan(wanted)
                self.late += [one.problem for one in planned if one.problem is not None]
                events = [event for one in planned for event in one.events]
                self._note(self._workspace.append(events, action=record.action))
        return record

    def _look(self) -> None:
        """Read what these annotators have begun here."""
        names = {work.annotator for work in self._incoming.work}
        self._counters = dict(self._workspace.counters(names))
        self._passes = {}
        self._free_numbers = {}
        if any(self._counters.values()):
            own = [one for one in self._workspace.passes() if one.annotator in names]
            self._passes = _last_passes(own)
            # An adjudicator who has not read a trace has a pass on it that takes no labels.
            self._free_numbers = {_work_of(one): one.number + 1 for one in own}

    def _note(self, recorded: Sequence[Event]) -> None:
        """Count what was recorded, by name; the works come whole."""
        self.new += len(recorded)
        for name, own in groupby(recorded, key=attrgetter("annotator")):
            events = list(own)
            self._counters[name] = events[-1].seq
            before = self.people.get(name)
            if before is None:
                history = History.LONGER if name in self._worked else History.NEW
                before = PersonChanges(name, history)
            self.people[name] = _with(before, events)

    def _plan(self, works: Sequence[tuple[IncomingWork, str]]) -> list[_Planned]:
        """The events of works that are not here yet, each with the id that its trace has here."""
        drafts = []
        for work, trace_id in works:
            where = (work.annotator, trace_id, work.taxonomy)
            last = self._passes.get(where)
            number = self._pass_number(where)
            labels = [_at_home(label, where, number, work.kind) for label in work.labels]
            drafts.append((work, where, last, dict(_facts(work, where, labels))))
        names, known = self._names([name for *_, facts in drafts for name in facts])
        return [
            self._planned(
                work,
                where,
                last,
                {names[name]: fact for name, fact in facts.items()} if names else facts,
                known,
            )
            for work, where, last, facts in drafts
        ]

    def _pass_number(self, where: WorkKey) -> int:
        """Return the number of the last reading, or of the first one if there is none."""
        last = self._passes.get(where)
        return self._free_numbers.get(where, 1) if last is None else last.number

    def _names(self, wanted: Sequence[str]) -> tuple[Mapping[str, str], Mapping[str, Fact]]:
        """The ids that are to be others, and what the events say that are here.

        What came with an import that was taken back comes again under another id.
        """
        if not self._worked:
            return {}, {}
        names = {name: name for name in wanted}
        known: dict[str, Fact] = {}
        unsettled = list(wanted)
        while unsettled:
            here = self._workspace.known_facts([names[name] for name in unsettled])
            undone = self._workspace.known_facts([undone_id(name) for name in here])
            known |= here
            unsettled = [name for name in unsettled if undone_id(names[name]) in undone]
            for name in unsettled:
                names[name] = again_id(names[name])
        return names, known

    def _planned(
        self,
        work: IncomingWork,
        where: WorkKey,
        last: Pass | None,
        planned: Mapping[str, Fact],
        known: Mapping[str, Fact],
    ) -> _Planned:
        fresh = dict(planned)
        for name in planned.keys() & known.keys():
            self.differing += _told_differently(fresh.pop(name), known[name])
        here = None if last is None or not fresh else _Here.of(self._workspace, where, last)
        if here is not None:
            self.differing += sum(map(here.differs, fresh.values()))
            fresh = here.unsaid(fresh)
        self.known += len(planned) - len(fresh)
        if here is not None and fresh:
            problem = here.contradiction(fresh.values())
            if problem:
                place = f"{work.annotator} on {work.trace_id}"
                return _Planned(problem=RowProblem(work.file, place, problem))
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
class _Here:
    """What the last pass of a work holds already, made here under ids of its own."""

    last: Pass
    labels: Mapping[tuple[str, Target], Label]
    values: Mapping[str, VerdictValue]
    notes: Mapping[str, str]

    @classmethod
    def of(cls, workspace: Workspace, where: WorkKey, last: Pass) -> _Here:
        """Read it."""
        annotator, trace_id, taxonomy = where
        about = {"annotator": annotator, "trace_id": trace_id, "taxonomy": taxonomy}
        labels = workspace.labels(**about, pass_number=last.number)
        verdicts = workspace.verdicts(**about, pass_number=last.number)
        notes = workspace.span_notes(**about, pass_number=last.number)
        return cls(
            last,
            {(label.mode, label.target): label for label in labels},
            {said.mode: said.value for said in verdicts},
            {note.key: note.text for note in notes},
        )

    def unsaid(self, fresh: Mapping[str, Fact]) -> dict[str, Fact]:
        """What of it is not here, so that an export that comes back to where it was made adds
        nothing."""
        left = {name: fact for name, fact in fresh.items() if not self._is_said(fact)}
        # That a pass began says nothing by itself.
        return left if any(not isinstance(f, PassStarted) for f in left.values()) else {}

    def differs(self, fact: Fact) -> bool:
        """Whether it is a label that is here with other details."""
        if not isinstance(fact, LabelAdded):
            return False
        own = self.labels.get((fact.label.mode, fact.label.target))
        return own is not None and _details(own) != _details(fact.label)

    def _is_said(self, fact: Fact) -> bool:
        match fact:
            case LabelAdded(label):
                return (label.mode, label.target) in self.labels
            case VerdictSet(mode, _, value):
                return self.values.get(mode) is value
            case Judged(looks_at, absent):
                found = {mode for mode, _ in self.labels}
                return self.last.finished and all(
                    mode in found
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
        """Why these facts cannot be added to it; None where they can."""
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
                    mode, value = label.mode, VerdictValue.PRESENT
                case VerdictSet(mode, _, VerdictValue() as value):
                    pass
                case _:
                    continue
            if self.values.get(mode, value) is not value:
                return f"{mode} is {self.values[mode]} here and {value} in the file"
        return None


def _size(work: IncomingWork) -> int:
    """About how many events one person's work on one trace is."""
    return len(work.labels) + len(work.verdicts) + len(work.notes) + 3


def _with(changes: PersonChanges, events: Sequence[Event]) -> PersonChanges:
    """The changes with what an import adds to whole works of the person; it only ever adds."""
    kinds = Counter(type(event.fact) for event in events)
    begun, joined, absent = set[object](), set[object](), 0
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


def _told_differently(fact: Fact, known: Fact) -> bool:
    if isinstance(fact, LabelAdded) and isinstance(known, LabelAdded):
        origin = label_origin(known.label.annotator, known.label.origin)
        there = structs.replace(known.label, origin=origin)
        return structs.replace(fact.label, pass_number=there.pass_number) != there
    return False


def _details(label: Label) -> tuple[object, ...]:
    return label.note, label.confidence, label.severity


def _last_passes(passes: Iterable[Pass]) -> Mapping[WorkKey, Pass]:
    """Return the last reading of each work; passes come by number."""
    return {_work_of(one): one for one in passes if one.kind.is_reading}


def _work_of(one: Pass) -> WorkKey:
    return one.annotator, one.trace_id, one.taxonomy


def _at_home(label: Label, where: WorkKey, number: int, kind: AnnotatorKind) -> Label:
    """The label under the id that its trace has here, and with the id that follows from it."""
    annotator, trace_id, taxonomy = where
    is_judge = kind is AnnotatorKind.JUDGE
    if not is_judge and (trace_id, number) == (label.trace_id, label.pass_number):
        return label  # readers name labels by ``label_id``, and it would come to the same
    name = suggestion_id if is_judge else label_id
    own_id = name(annotator, trace_id, taxonomy, label.mode, label.target)
    return structs.replace(label, id=own_id, trace_id=trace_id, pass_number=number)


def _facts(work: IncomingWork, where: WorkKey, labels: list[Label]) -> Iterator[tuple[str, Fact]]:
    """What is to be recorded, each under its lasting id."""
    of_work = lasting_ids(*where)
    yield of_work("pass started"), PassStarted(work.pass_kind)
    if work.judge_seen:
        yield of_work("suggestions seen"), SuggestionsSeen()
    for label in labels:
        yield lasting_id("label added", label.id), LabelAdded(label)
    # Until a judge has finished a trace, its verdicts count in no figure.
    has_judged = work.kind is AnnotatorKind.JUDGE and work.finished_at is not None
    if has_judged:
        yield of_work("judged"), _judged(work)
    for mode, value in work.verdicts.items():
        if not has_judged or value is VerdictValue.UNSURE:
            yield of_work("verdict", mode, value), _verdict(mode, value)
    for key, text in work.notes.items():
        yield of_work("span note", key, text), SpanNoteSet(key, "", text)
    if work.finished_at is not None and work.kind is not AnnotatorKind.JUDGE:
        yield of_work("finished"), PassFinished(at=work.finished_at or None)


@lru_cache(maxsize=1000)
def _verdict(mode: str, value: VerdictValue) -> VerdictSet:
    """The same few are most of what is said."""
    return VerdictSet(mode, None, value)


def _judged(work: IncomingWork) -> Judged:
    looks_at = dict.fromkeys([*(label.mode for label in work.labels), *work.verdicts])
    absent = [mode for mode, value in work.verdicts.items() if value is VerdictValue.ABSENT]
    return Judged(tuple(looks_at), tuple(absent))

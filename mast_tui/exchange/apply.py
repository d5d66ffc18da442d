"""The writing of imported work into a workspace, as events in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from time import monotonic
from typing import Final, NamedTuple

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
from mast_tui.workspace import Event, NewEvent, PersonChanges, Workspace
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

_LABEL_OR_VERDICT: Final = (LabelAdded, VerdictSet)

EVENTS_AT_ONCE: Final = 18_000
"""Events in one transaction: somewhat less than a second of processor time. Events are planned
before the transaction. More events write each page of the index of ids less often."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of an import.

    Attributes:
        written: True if anything was written.
        new: The number of added events.
        known: The number of events that the workspace had before.
        differing: The number of known labels with other details in the file, such as another note.
            The workspace keeps its own details.
        problems: The problems of the file, and its contradictions with the workspace.
        people: The changes for each annotator.
        finished: False if some work was left out because its annotator changed it during the
            import.
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
    request_key: str | None = None,
    imported_by: str | None = None,
) -> Applied:
    """Write the imported work of annotators in batches.

    Everything is checked before the first batch. Other processes can write between batches. The
    events of an annotator on a trace stay in one batch. A repeated import adds only missing events.

    Args:
        incoming: The contents of the imported files.
        workspace: The workspace that receives the work.
        source: The name of the format.
        skip_errors: Leave out work with problems. Otherwise a problem prevents the import.
        files: The names of the imported files.
        request_key: The text by which a repeated import continues an interrupted one.
        imported_by: The name of the user; None if unknown.

    Returns:
        The counts of the import, and the problems.

    Raises:
        ExchangeError: A text cannot be stored; nothing was written.
        WorkspaceError: The workspace cannot be written; earlier batches stay.
    """
    _check_texts(incoming)
    applier = _Applier(incoming, workspace)
    checked = applier.check()
    problems = (*incoming.problems, *checked.problems.values())
    if problems and not skip_errors:
        return Applied(False, 0, checked.known_events, checked.differing_labels, problems)
    record = applier.register(
        source, files, source if request_key is None else request_key, imported_by
    )
    written = applier.write(record, left_out=checked.problems)
    # With a problem during the writing the import stays unfinished. Its repetition continues it.
    if not written.problems:
        workspace.finish_import(record)
    return Applied(
        written=True,
        new=sum(changes.events for changes in applier.people.values()),
        known=written.known_events,
        differing=written.differing_labels,
        problems=(*problems, *written.problems.values()),
        people=tuple(changes for _, changes in sorted(applier.people.items())),
        finished=not written.problems,
    )


def _check_texts(incoming: Incoming) -> None:
    """Check that SQLite can store every text."""
    for work in incoming.work:
        _check_characters(str(work.file), work.trace_id, *work.notes, *work.notes.values())
        for label in work.labels.values():
            target = label.target
            texts = (label.note, target.first, target.last, target.quote)
            _check_characters(str(work.file), label.trace_id, *texts)
    for record in incoming.traces:
        facts = (record.trace_id, record.system, record.model, record.benchmark, record.task)
        _check_characters("a trace", record.trace_id, *facts)


def _check_characters(origin: str, trace_id: str, *texts: str | None) -> None:
    """Check that no text has half of a surrogate pair, which SQLite cannot store."""
    try:
        "".join(text for text in texts if text is not None).encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):X}"
        raise ExchangeError(
            f"{origin}: {trace_id}: a text contains half a character ({half}) and cannot be "
            "saved; nothing was written"
        ) from None


class _LocalWork(NamedTuple):
    """Imported work with the id of its trace in this workspace."""

    work: ImportedWork
    trace_id: str

    @property
    def key(self) -> WorkKey:
        """The annotator, the trace in this workspace, and the taxonomy."""
        return self.work.annotator, self.trace_id, self.work.taxonomy


@dataclass(frozen=True, slots=True)
class _Plan:
    """The events to write for one work.

    Attributes:
        events: The events that the workspace lacks.
        known_events: The number of the other events.
        differing_labels: The number of known labels with other details in the file.
        problem: The reason to refuse the work; None if it is accepted.
    """

    events: Sequence[NewEvent]
    known_events: int
    differing_labels: int
    problem: RowProblem | None = None


@dataclass(slots=True)
class _PlanCounts:
    """The sums of counts of plans, and their problems by work."""

    known_events: int = 0
    differing_labels: int = 0
    problems: dict[WorkKey, RowProblem] = field(default_factory=dict)

    def add(self, works: Sequence[_LocalWork], plans: Sequence[_Plan]) -> None:
        """Add the counts and problems of plans.

        Args:
            works: The work.
            plans: The plan of each work.
        """
        for local_work, plan in zip(works, plans, strict=True):
            self.known_events += plan.known_events
            self.differing_labels += plan.differing_labels
            if plan.problem is not None:
                self.problems[local_work.work.key] = plan.problem


@dataclass(slots=True)
class _EarlierWork:
    """The work of an import's annotators in the workspace.

    Attributes:
        last_seqs: The sequence number of each annotator's last event, 0 for none. It is updated as
            the import adds events.
        authors: The annotators with events at the time of reading.
        passes: The last labelling pass by annotator, trace and taxonomy.
        next_numbers: The number of the next pass of any kind, by the same keys.
    """

    last_seqs: dict[str, int]
    authors: Collection[str]
    passes: Mapping[WorkKey, Pass]
    next_numbers: Mapping[WorkKey, int]

    @classmethod
    def read(cls, workspace: Workspace, names: Collection[str]) -> _EarlierWork:
        """Read the work of annotators.

        Args:
            workspace: The workspace.
            names: The names of the annotators.
        """
        last_seqs = dict(workspace.last_seqs(names))
        authors = {name for name, seq in last_seqs.items() if seq}
        passes = [
            trace_pass
            for trace_pass in (workspace.passes() if authors else ())
            if trace_pass.annotator in names
        ]
        # Passes are sorted by number, so each mapping keeps the last pass of a key.
        return cls(
            last_seqs,
            authors,
            {
                _work_key_of(trace_pass): trace_pass
                for trace_pass in passes
                if trace_pass.kind.is_labelling
            },
            {_work_key_of(trace_pass): trace_pass.number + 1 for trace_pass in passes},
        )

    def pass_number(self, work_key: WorkKey) -> int:
        """Return the number of the last labelling pass, or without one that of the next pass."""
        last_pass = self.passes.get(work_key)
        return self.next_numbers.get(work_key, 1) if last_pass is None else last_pass.number


class _Applier:
    """One import into one workspace.

    ``people`` are the changes of each annotator's work so far.
    """

    def __init__(self, incoming: Incoming, workspace: Workspace) -> None:
        self._incoming = incoming
        self._workspace = workspace
        self._names = {work.annotator for work in incoming.work}
        self._earlier = _EarlierWork.read(workspace, self._names)
        self.people = dict[str, PersonChanges]()

    def check(self) -> _PlanCounts:
        """Count the known events, and find the work that contradicts the workspace."""
        counts = _PlanCounts()
        if not self._earlier.passes:
            return counts
        known_traces = {
            record.trace_id: self._workspace.find_trace(record) for record in self._incoming.traces
        }
        known_works = [
            _LocalWork(work, known_trace.trace_id)
            for work in self._incoming.work
            if (known_trace := known_traces[work.trace_id]) is not None
        ]
        # Only work on a trace with a pass of its annotator can contradict the workspace.
        works_with_pass = [work for work in known_works if work.key in self._earlier.passes]
        for batch in batched(works_with_pass, _event_estimate, EVENTS_AT_ONCE):
            counts.add(batch, self._plan_works(batch))
        return counts

    def register(
        self, source: str, files: Sequence[str], request_key: str, imported_by: str | None
    ) -> ImportRecord:
        """Register the import, its taxonomies and its annotators.

        Args:
            source: The name of the format.
            files: The names of the files.
            request_key: The key of the request; a repeated request continues its import.
            imported_by: The name of the user; None if unknown.
        """
        needed_taxonomies = {work.taxonomy for work in self._incoming.work}
        authors = {(work.annotator, work.author_kind) for work in self._incoming.work}
        with self._workspace.transaction():
            for taxonomy in self._incoming.taxonomies:
                if taxonomy.ref in needed_taxonomies:
                    # If it is stored already, the stored texts stay.
                    self._workspace.add_taxonomy(taxonomy, in_use=False)
            for name, kind in sorted(authors):
                self._workspace.add_annotator(name, kind)
            return self._workspace.begin_import(
                source, files, request_key=request_key, annotator=imported_by
            )

    def write(self, record: ImportRecord, *, left_out: Collection[WorkKey]) -> _PlanCounts:
        """Register the traces, then append the events of the work in batches.

        Args:
            record: The registered import.
            left_out: The keys of the work to leave out.

        Returns:
            The counts, and the problems since the check.
        """
        local_ids = register_traces(
            self._incoming.traces, self._workspace.register_trace, self._workspace
        )
        works = [
            _LocalWork(work, local_ids[work.trace_id])
            for work in self._incoming.work
            if work.key not in left_out
        ]
        counts = _PlanCounts()
        for batch in batched(works, _event_estimate, EVENTS_AT_ONCE):
            started_at = monotonic()
            plans = self._plan_works(batch)
            let_others_write(started_at)
            # An error ends the import, so no savepoint is needed.
            with self._workspace.transaction(without_savepoints=True):
                if self._workspace.last_seqs(self._names) != self._earlier.last_seqs:
                    # One of the annotators has worked since the plan was made.
                    self._earlier = _EarlierWork.read(self._workspace, self._names)
                    plans = self._plan_works(batch)
                events = [event for plan in plans for event in plan.events]
                self._note_recorded(self._workspace.append(events, action=record.action))
            counts.add(batch, plans)
        return counts

    def _note_recorded(self, recorded: Sequence[Event]) -> None:
        """Update the counts and the last sequence number of each annotator."""
        for name, events_by_name in groupby(recorded, key=attrgetter("annotator")):
            events = list(events_by_name)
            self._earlier.last_seqs[name] = events[-1].seq
            had_events = name in self._earlier.authors
            history = HistoryRelation.LONGER if had_events else HistoryRelation.NEW
            changes = self.people.get(name) or PersonChanges(name, history)
            self.people[name] = _with_events(changes, events)

    def _plan_works(self, works: Sequence[_LocalWork]) -> list[_Plan]:
        facts_by_work = [
            dict(_facts_to_record(local_work, self._earlier.pass_number(local_work.key)))
            for local_work in works
        ]
        new_ids, known_facts = self._ids_and_known_facts(
            [event_id for facts in facts_by_work for event_id in facts]
        )
        return [
            self._plan_work(
                local_work,
                {new_ids[event_id]: fact for event_id, fact in facts.items()},
                known_facts,
            )
            for local_work, facts in zip(works, facts_by_work, strict=True)
        ]

    def _ids_and_known_facts(
        self, ids: Sequence[str]
    ) -> tuple[Mapping[str, str], Mapping[str, Fact]]:
        """Return the id to write for each event id, and the recorded facts by id.

        An event gets a new id if its import was undone. The id of the undoing event is derived from
        the event's id (``undone_id``).
        """
        new_ids = {event_id: event_id for event_id in ids}
        known_facts: dict[str, Fact] = {}
        # Without earlier events of its annotators, no event of the import is known.
        ids_to_check = list(ids) if self._earlier.authors else []
        # An event may have been imported and undone several times, so new ids are checked too.
        while ids_to_check:
            recorded = self._workspace.known_facts([new_ids[event_id] for event_id in ids_to_check])
            undoing = self._workspace.known_facts([undone_id(event_id) for event_id in recorded])
            known_facts |= recorded
            ids_to_check = [
                event_id for event_id in ids_to_check if undone_id(new_ids[event_id]) in undoing
            ]
            for event_id in ids_to_check:
                new_ids[event_id] = again_id(new_ids[event_id])
        return new_ids, known_facts

    def _plan_work(
        self, local_work: _LocalWork, facts: Mapping[str, Fact], known_facts: Mapping[str, Fact]
    ) -> _Plan:
        """Return the plan of a work.

        ``facts`` and ``known_facts`` are by event id.
        """
        missing = {
            event_id: fact for event_id, fact in facts.items() if event_id not in known_facts
        }
        differing_count = sum(
            _is_differing_label(facts[event_id], known_facts[event_id])
            for event_id in facts.keys() - missing.keys()
        )
        last_pass = self._earlier.passes.get(local_work.key)
        if last_pass is None or not missing:
            return _Plan(
                self._new_events(local_work, missing), len(facts) - len(missing), differing_count
            )
        current_pass = _CurrentPass.of(self._workspace, local_work.key, last_pass)
        differing_count += sum(map(current_pass.has_other_details, missing.values()))
        missing = current_pass.missing_facts(missing)
        known_count = len(facts) - len(missing)
        reason = current_pass.contradiction(missing.values()) if missing else None
        if reason is not None:
            work = local_work.work
            location = f"{work.annotator} on {work.trace_id}"
            return _Plan((), known_count, differing_count, RowProblem(work.file, location, reason))
        # The pass exists already, so its start is not recorded again.
        added = {
            event_id: fact
            for event_id, fact in missing.items()
            if not isinstance(fact, PassStarted)
        }
        return _Plan(self._new_events(local_work, added), known_count, differing_count)

    def _new_events(self, local_work: _LocalWork, facts: Mapping[str, Fact]) -> list[NewEvent]:
        number = self._earlier.pass_number(local_work.key)
        # Files do not say when a pass began; it cannot begin after its end.
        started_at = local_work.work.finished_at or None
        return [
            NewEvent(
                *local_work.key,
                number,
                fact,
                id=event_id,
                at=started_at if isinstance(fact, PassStarted) else None,
            )
            for event_id, fact in facts.items()
        ]


@dataclass(frozen=True, slots=True)
class _CurrentPass:
    """The content of an annotator's last labelling pass over a trace.

    ``labels`` are by mode and target, ``values`` are verdicts by mode, and ``notes`` are by span
    key.
    """

    last_pass: Pass
    labels: Mapping[tuple[str, Target], Label]
    values: Mapping[str, VerdictValue]
    notes: Mapping[str, str]

    @classmethod
    def of(cls, workspace: Workspace, work_key: WorkKey, last_pass: Pass) -> _CurrentPass:
        """Read the content of a pass.

        Args:
            workspace: The workspace.
            work_key: The annotator, the trace and the taxonomy.
            last_pass: The pass.
        """
        annotator, trace_id, taxonomy = work_key
        filters = {"annotator": annotator, "trace_id": trace_id, "taxonomy": taxonomy}
        labels = workspace.labels(**filters, pass_number=last_pass.number)
        verdicts = workspace.verdicts(**filters, pass_number=last_pass.number)
        notes = workspace.span_notes(**filters, pass_number=last_pass.number)
        return cls(
            last_pass,
            {(label.mode, label.target): label for label in labels},
            {verdict.mode: verdict.value for verdict in verdicts},
            {note.key: note.text for note in notes},
        )

    def missing_facts(self, facts_by_id: Mapping[str, Fact]) -> dict[str, Fact]:
        """Return the facts that the pass lacks, by event id."""
        missing = {
            event_id: fact for event_id, fact in facts_by_id.items() if not self._is_recorded(fact)
        }
        # ``PassStarted`` always counts as missing. Alone it adds nothing, so a workspace that
        # imports its own export gets no event.
        has_content = any(not isinstance(fact, PassStarted) for fact in missing.values())
        return missing if has_content else {}

    def has_other_details(self, fact: Fact) -> bool:
        """Check for a fact that adds an existing label with other details."""
        if not isinstance(fact, LabelAdded):
            return False
        own_label = self.labels.get((fact.label.mode, fact.label.target))
        return own_label is not None and _compared_details(own_label) != _compared_details(
            fact.label
        )

    def _is_recorded(self, fact: Fact) -> bool:
        """Check whether the pass has the content of a fact."""
        match fact:
            case LabelAdded(label):
                return (label.mode, label.target) in self.labels
            case VerdictSet(mode, _, value):
                return self.values.get(mode) is value
            case Judged(looks_at, absent):
                # A judged mode without a label is absent or unsure.
                judged_values = {
                    mode: VerdictValue.ABSENT if mode in absent else VerdictValue.UNSURE
                    for mode in looks_at
                }
                labelled_modes = {mode for mode, _ in self.labels}
                return self.last_pass.finished and all(
                    mode in labelled_modes or self.values.get(mode) is value
                    for mode, value in judged_values.items()
                )
            case SpanNoteSet(key, _, text):
                return self.notes.get(key) == text
            case PassFinished():
                return self.last_pass.finished
            case SuggestionsSeen():
                return self.last_pass.judge_seen
            case _:
                return False

    def contradiction(self, new_facts: Iterable[Fact]) -> str | None:
        """Return the reason why missing facts cannot be added; None if they can."""
        if self.last_pass.finished:
            # The message begins with the annotator's name.
            return (
                "has finished this trace here, and the file differs; import it under another "
                "name with --annotator"
            )
        for fact in new_facts:
            match fact:
                case SpanNoteSet(key) if key in self.notes:
                    return f"the note on span {key!r} differs here"
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


def _event_estimate(local_work: _LocalWork) -> int:
    work = local_work.work
    return len(work.labels) + len(work.verdicts) + len(work.notes) + 3


def _with_events(changes: PersonChanges, events: Sequence[Event]) -> PersonChanges:
    """Return an annotator's changes with the counts of more events."""
    counts_by_type = Counter(type(event.fact) for event in events)
    started_passes = {
        (event.trace_id, event.taxonomy) for event in events if isinstance(event.fact, PassStarted)
    }
    # A judge's absent verdicts are in one fact.
    absent_counts = [len(event.fact.absent) for event in events if isinstance(event.fact, Judged)]
    passes_with_additions = {
        (event.trace_id, event.taxonomy)
        for event in events
        if isinstance(event.fact, _LABEL_OR_VERDICT)
        or (isinstance(event.fact, Judged) and event.fact.absent)
    }
    # Passes that started before these events.
    joined_passes = passes_with_additions - started_passes
    return structs.replace(
        changes,
        events=changes.events + len(events),
        labels_added=changes.labels_added + counts_by_type[LabelAdded],
        verdicts_added=changes.verdicts_added + counts_by_type[VerdictSet] + sum(absent_counts),
        passes_added=changes.passes_added + len(started_passes),
        passes_joined=changes.passes_joined + len(joined_passes),
        passes_finished=changes.passes_finished
        + counts_by_type[Judged]
        + counts_by_type[PassFinished],
    )


def _is_differing_label(fact: Fact, recorded: Fact) -> bool:
    """Check for a recorded label of the same id with different content."""
    if isinstance(fact, LabelAdded) and isinstance(recorded, LabelAdded):
        # Earlier versions recorded origins that do not fit the author.
        origin = label_origin(recorded.label.annotator, recorded.label.origin)
        recorded_label = structs.replace(recorded.label, origin=origin)
        # The recorded label may be in a pass of another number.
        return structs.replace(fact.label, pass_number=recorded_label.pass_number) != recorded_label
    return False


def _compared_details(label: Label) -> tuple[object, ...]:
    return label.note, label.confidence, label.severity


def _work_key_of(trace_pass: Pass) -> WorkKey:
    return trace_pass.annotator, trace_pass.trace_id, trace_pass.taxonomy


def _label_in_workspace(label: Label, work_key: WorkKey, number: int, kind: AnnotatorKind) -> Label:
    """Return the label with the trace id, pass number and label id of this workspace."""
    annotator, trace_id, taxonomy = work_key
    is_judge = kind is AnnotatorKind.JUDGE
    if not is_judge and (trace_id, number) == (label.trace_id, label.pass_number):
        return label  # the id is already made from these values
    make_id = suggestion_id if is_judge else label_id
    own_id = make_id(annotator, trace_id, taxonomy, label.mode, label.target)
    return structs.replace(label, id=own_id, trace_id=trace_id, pass_number=number)


def _facts_to_record(local_work: _LocalWork, pass_number: int) -> Iterator[tuple[str, Fact]]:
    """Yield the facts of a work with their lasting ids."""
    work = local_work.work
    id_for = lasting_ids(*local_work.key)
    yield (
        id_for("pass started"),
        PassStarted(PassKind.ASSISTED if work.judge_seen else PassKind.BLIND),
    )
    if work.judge_seen:
        yield id_for("suggestions seen"), SuggestionsSeen()
    for file_label in work.labels.values():
        label = _label_in_workspace(file_label, local_work.key, pass_number, work.author_kind)
        yield lasting_id("label added", label.id), LabelAdded(label)
    # ``Judged`` includes the absent verdicts. It needs a finished trace.
    has_judged = work.author_kind is AnnotatorKind.JUDGE and work.finished_at is not None
    if has_judged:
        yield id_for("judged"), _judged_fact(work)
    for mode, value in work.verdicts.items():
        if not has_judged or value is VerdictValue.UNSURE:
            yield id_for("verdict", mode, value), _shared_verdict(mode, value)
    for key, text in work.notes.items():
        yield id_for("span note", key, text), SpanNoteSet(key, "", text)
    if work.finished_at is not None and work.author_kind is not AnnotatorKind.JUDGE:
        # An empty ``finished_at`` means finished at an unknown time.
        yield id_for("finished"), PassFinished(at=work.finished_at or None)


@lru_cache(maxsize=1000)
def _shared_verdict(mode: str, value: VerdictValue) -> VerdictSet:
    """Return a verdict.

    Equal verdicts share one object, which saves memory.
    """
    return VerdictSet(mode, None, value)


def _judged_fact(work: ImportedWork) -> Judged:
    labelled_modes = [label.mode for label in work.labels.values()]
    looks_at = dict.fromkeys([*labelled_modes, *work.verdicts])
    absent = [mode for mode, value in work.verdicts.items() if value is VerdictValue.ABSENT]
    # An empty ``finished_at`` means finished at an unknown time.
    return Judged(tuple(looks_at), tuple(absent), judged_at=work.finished_at or None)

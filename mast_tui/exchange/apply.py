"""Imported work as events in a workspace: checked completely, then written in batches."""

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
"""Events in one transaction: somewhat less than a second of processor time, since they are planned
before the transaction begins. A larger number writes each page of the index of ids less often."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of an import.

    Attributes:
        written: True if anything was written. If not, the workspace is unchanged.
        new: The number of added events.
        known: The number of events that the workspace had already.
        differing: The number of known labels that have other details in the file, such as
            another note. The workspace keeps its own details.
        problems: The problems of the file, and its contradictions with the workspace.
        people: The changes for each annotator.
        finished: False if some work was left out because its annotator worked on it during the
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
    """Write the imported work of annotators in batches, between which other processes can write.

    Problems are searched before anything is written. If there is one, nothing is written, unless
    ``skip_errors`` leaves out the work with problems. The events of one annotator on one trace are
    always in the same batch. A repeated import writes only the events that the workspace lacks.

    Args:
        incoming: The contents of the imported files.
        workspace: The workspace that receives the work.
        source: The format, which names the import in the workspace's history.
        skip_errors: Leave out work with problems.
        files: The names of the imported files.
        request_key: The text by which a repeated import continues this one if it is interrupted,
            see ``Workspace.begin_import``.
        imported_by: The name of the user, None if it is not known.

    Returns:
        The counts of the import, and the problems.

    Raises:
        ExchangeError: A text cannot be stored; nothing was written.
        WorkspaceError: The workspace cannot be written; earlier batches stay.
    """
    _check_texts(incoming)
    applier = _Applier(incoming, workspace)
    problems = (*incoming.problems, *applier.problems())
    if problems and not skip_errors:
        return Applied(False, 0, applier.known_event_count, applier.differing_label_count, problems)
    # The search for problems has counted events, so the writing begins with new counts.
    applier = _Applier(incoming, workspace, left_out=applier.left_out)
    record = applier.write(
        source, files, source if request_key is None else request_key, imported_by
    )
    # A problem that appeared during the writing leaves the import unfinished, so that the same
    # import continues when it is repeated.
    if not applier.late_problems:
        workspace.finish_import(record)
    return Applied(
        written=True,
        new=applier.new_event_count,
        known=applier.known_event_count,
        differing=applier.differing_label_count,
        problems=(*problems, *applier.late_problems),
        people=tuple(change for _, change in sorted(applier.people.items())),
        finished=not applier.late_problems,
    )


def _check_texts(incoming: Incoming) -> None:
    """Raise ``ExchangeError`` if there is a text that SQLite cannot store."""
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
    """Raise ``ExchangeError`` if a text has half of a surrogate pair, which cannot be stored."""
    try:
        "".join(text for text in texts if text is not None).encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):X}"
        raise ExchangeError(
            f"{origin}: {trace_id}: a text contains half a character ({half}) and cannot be "
            "saved; nothing was written"
        ) from None


_PlannedWork = list[NewEvent] | RowProblem
"""The events of one annotator's work on one trace, or the reason why it is refused."""


class _Applier:
    """One import into one workspace; the public attributes are its counts so far."""

    def __init__(
        self, incoming: Incoming, workspace: Workspace, *, left_out: Iterable[int] = ()
    ) -> None:
        self._incoming = incoming
        self._workspace = workspace
        self._last_seqs: dict[str, int] = {}
        """The sequence number of each annotator's last event in the workspace, 0 for none."""
        self._passes: Mapping[WorkKey, Pass] = {}
        """The last pass in the workspace for each annotator, trace and taxonomy."""
        self._free_numbers: Mapping[WorkKey, int] = {}
        """The number of the next pass for each annotator, trace and taxonomy with passes."""
        self.left_out = set(left_out)
        """The indices of works that have a problem."""
        self.new_event_count = self.known_event_count = self.differing_label_count = 0
        self.people = dict[str, PersonChanges]()
        self.late_problems = list[RowProblem]()
        """The problems that appeared after writing began."""
        self._read_passes()
        self._annotators_with_history = {name for name, seq in self._last_seqs.items() if seq}

    def problems(self) -> Iterator[RowProblem]:
        """Yield a problem for each work that contradicts its annotator's pass in the workspace.

        The index of each such work is added to ``left_out``.
        """
        if not self._passes:
            return
        known_traces = {
            record.trace_id: self._workspace.find_trace(record) for record in self._incoming.traces
        }
        # Only work on a trace on which the annotator has a pass can contradict the workspace.
        works_with_pass = []
        for index, work in enumerate(self._incoming.work):
            known_trace = known_traces[work.trace_id]
            if known_trace is None:
                continue
            if (work.annotator, known_trace.trace_id, work.taxonomy) in self._passes:
                works_with_pass.append((index, work, known_trace.trace_id))
        for batch in batched(
            works_with_pass, lambda entry: _event_estimate(entry[1]), EVENTS_AT_ONCE
        ):
            planned_works = self._plan_works([(work, trace_id) for _, work, trace_id in batch])
            for (index, _, _), planned_work in zip(batch, planned_works, strict=True):
                if isinstance(planned_work, RowProblem):
                    self.left_out.add(index)
                    yield planned_work

    def write(
        self, source: str, files: Sequence[str], request_key: str, imported_by: str | None
    ) -> ImportRecord:
        """Register taxonomies, annotators and traces, then append the events of the work.

        Each transaction appends all events of several works. Works in ``left_out`` are not written.

        Args:
            source: The format.
            files: The names of the imported files.
            request_key: The text by which a repeated import continues this one.
            imported_by: The name of the user, None if it is not known.
        """
        works = [
            work for index, work in enumerate(self._incoming.work) if index not in self.left_out
        ]
        needed_taxonomies = {work.taxonomy for work in self._incoming.work}
        authors = {(work.annotator, work.author_kind) for work in self._incoming.work}
        # These steps may still be refused, so they come first, in one transaction.
        with self._workspace.transaction():
            for taxonomy in self._incoming.taxonomies:
                if taxonomy.ref in needed_taxonomies:
                    # A taxonomy that is already stored keeps its texts.
                    self._workspace.add_taxonomy(taxonomy, in_use=False)
            for name, kind in sorted(authors):
                self._workspace.add_annotator(name, kind)
            record = self._workspace.begin_import(
                source, files, request_key=request_key, annotator=imported_by
            )
        local_ids = register_traces(
            self._incoming.traces, self._workspace.register_trace, self._workspace
        )
        for batch in batched(works, _event_estimate, EVENTS_AT_ONCE):
            started_at = monotonic()
            earlier_counts = (self.known_event_count, self.differing_label_count)
            batch_works = [(work, local_ids[work.trace_id]) for work in batch]
            planned_works = self._plan_works(batch_works)
            let_others_write(started_at)
            # An error ends the import, so no part of the transaction needs a savepoint.
            with self._workspace.transaction(without_savepoints=True):
                if self._workspace.last_seqs(self._last_seqs) != self._last_seqs:
                    # One of these annotators has worked in the workspace since the plan was made,
                    # so it is made again, and replaces the counts of the first plan.
                    self.known_event_count, self.differing_label_count = earlier_counts
                    self._read_passes()
                    planned_works = self._plan_works(batch_works)
                events: list[NewEvent] = []
                for planned_work in planned_works:
                    if isinstance(planned_work, RowProblem):
                        self.late_problems.append(planned_work)
                    else:
                        events += planned_work
                self._record_changes(self._workspace.append(events, action=record.action))
        return record

    def _read_passes(self) -> None:
        """Read the last event's number and the last passes of each annotator of this import."""
        names = {work.annotator for work in self._incoming.work}
        self._last_seqs = dict(self._workspace.last_seqs(names))
        self._passes = {}
        self._free_numbers = {}
        if any(self._last_seqs.values()):
            # Passes are sorted by number, so the mappings keep the last one of each key.
            own_passes = [
                own_pass for own_pass in self._workspace.passes() if own_pass.annotator in names
            ]
            self._passes = {
                _work_key_of(own_pass): own_pass
                for own_pass in own_passes
                if own_pass.kind.is_reading
            }
            # Adjudications and retests, which are no readings, have numbers too.
            self._free_numbers = {
                _work_key_of(own_pass): own_pass.number + 1 for own_pass in own_passes
            }

    def _record_changes(self, recorded: Sequence[Event]) -> None:
        """Count the recorded events, in all and by annotator.

        Also keep the number of each annotator's last event, with which the next batch is checked.
        """
        self.new_event_count += len(recorded)
        for name, events_by_name in groupby(recorded, key=attrgetter("annotator")):
            events = list(events_by_name)
            self._last_seqs[name] = events[-1].seq
            changes = self.people.get(name)
            if changes is None:
                had_events = name in self._annotators_with_history
                history = HistoryRelation.LONGER if had_events else HistoryRelation.NEW
                changes = PersonChanges(name, history)
            self.people[name] = _with_events(changes, events)

    def _plan_works(self, works: Sequence[tuple[ImportedWork, str]]) -> list[_PlannedWork]:
        """Return the events to write for each work, or its problem, and count the known events.

        ``works`` has pairs of a work and the id of its trace in this workspace.
        """
        drafts = []
        for work, trace_id in works:
            work_key = (work.annotator, trace_id, work.taxonomy)
            last_pass = self._passes.get(work_key)
            number = self._pass_number(work_key)
            labels = [
                _label_in_workspace(label, work_key, number, work.author_kind)
                for label in work.labels.values()
            ]
            drafts.append(
                (work, work_key, last_pass, dict(_facts_to_record(work, work_key, labels)))
            )
        event_ids = [event_id for _, _, _, facts in drafts for event_id in facts]
        new_ids, known_facts = self._ids_and_known_facts(event_ids)
        planned_works = []
        for work, work_key, last_pass, facts in drafts:
            # If no annotator of the import has events here, ``new_ids`` is empty and all ids stay.
            if new_ids:
                facts = {new_ids[event_id]: fact for event_id, fact in facts.items()}
            planned_works.append(self._plan_work(work, work_key, last_pass, facts, known_facts))
        return planned_works

    def _pass_number(self, work_key: WorkKey) -> int:
        """Return the number of the last reading, or of the first one if there is none."""
        last_pass = self._passes.get(work_key)
        return self._free_numbers.get(work_key, 1) if last_pass is None else last_pass.number

    def _ids_and_known_facts(
        self, ids: Sequence[str]
    ) -> tuple[Mapping[str, str], Mapping[str, Fact]]:
        """Return the id to write for each event id, and the facts of known events by their ids.

        An event whose import was undone gets a new id, any other event keeps its id. An import is
        undone by events whose ids follow from those of its own events (``undone_id``). Both
        mappings are empty if no annotator of the import has events in the workspace.
        """
        if not self._annotators_with_history:
            return {}, {}
        new_ids = {event_id: event_id for event_id in ids}
        known_facts: dict[str, Fact] = {}
        ids_to_check = list(ids)
        # An event may have been imported and undone several times, so each new id is checked too.
        while ids_to_check:
            recorded = self._workspace.known_facts([new_ids[event_id] for event_id in ids_to_check])
            undoing = self._workspace.known_facts([undone_id(event_id) for event_id in recorded])
            known_facts |= recorded
            undone_ids = [
                event_id for event_id in ids_to_check if undone_id(new_ids[event_id]) in undoing
            ]
            for event_id in undone_ids:
                new_ids[event_id] = again_id(new_ids[event_id])
            ids_to_check = undone_ids
        return new_ids, known_facts

    def _plan_work(
        self,
        work: ImportedWork,
        work_key: WorkKey,
        last_pass: Pass | None,
        facts: Mapping[str, Fact],
        known_facts: Mapping[str, Fact],
    ) -> _PlannedWork:
        """Return the events of a work that the workspace lacks.

        Return a problem instead if these events contradict the current pass of the workspace. Add
        the other events to the count of known ones, and labels with other details to the count of
        differing ones. ``facts`` holds the work's facts by event id, ``known_facts`` those in the
        workspace.
        """
        new_facts = dict(facts)
        for event_id in facts.keys() & known_facts.keys():
            fact = new_facts.pop(event_id)
            self.differing_label_count += _is_differing_label(fact, known_facts[event_id])
        current_pass = None
        if last_pass is not None and new_facts:
            current_pass = _CurrentPass.of(self._workspace, work_key, last_pass)
            self.differing_label_count += sum(
                map(current_pass.has_other_details, new_facts.values())
            )
            new_facts = current_pass.missing_facts(new_facts)
        self.known_event_count += len(facts) - len(new_facts)
        if current_pass is not None and new_facts:
            problem = current_pass.contradiction(new_facts.values())
            if problem:
                location = f"{work.annotator} on {work.trace_id}"
                return RowProblem(work.file, location, problem)
            # The facts are added to the pass that this workspace has.
            new_facts = {
                event_id: fact
                for event_id, fact in new_facts.items()
                if not isinstance(fact, PassStarted)
            }
        annotator, trace_id, taxonomy = work_key
        number = self._pass_number(work_key)
        return [
            NewEvent(annotator, trace_id, taxonomy, number, fact, id=event_id)
            for event_id, fact in new_facts.items()
        ]


@dataclass(frozen=True, slots=True)
class _CurrentPass:
    """The content of the last pass of a work in this workspace.

    ``labels`` are by mode and target, ``values`` are verdicts by mode, ``notes`` by span key.
    """

    last_pass: Pass
    labels: Mapping[tuple[str, Target], Label]
    values: Mapping[str, VerdictValue]
    notes: Mapping[str, str]

    @classmethod
    def of(cls, workspace: Workspace, work_key: WorkKey, last_pass: Pass) -> _CurrentPass:
        """Return the content of the last pass of an annotator on a trace.

        Args:
            workspace: The workspace.
            work_key: The annotator, the trace and the taxonomy.
            last_pass: The last pass.
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
        """Return the facts that the pass does not hold, by event id."""
        missing = {
            event_id: fact for event_id, fact in facts_by_id.items() if not self._is_recorded(fact)
        }
        # ``_is_recorded`` is never true for ``PassStarted``. Alone it says nothing new, so a
        # workspace that imports its own export gets no events.
        has_content = any(not isinstance(fact, PassStarted) for fact in missing.values())
        return missing if has_content else {}

    def has_other_details(self, fact: Fact) -> bool:
        """Check whether the pass has the label that a fact adds, but with other details."""
        if not isinstance(fact, LabelAdded):
            return False
        own_label = self.labels.get((fact.label.mode, fact.label.target))
        return own_label is not None and _compared_details(own_label) != _compared_details(
            fact.label
        )

    def _is_recorded(self, fact: Fact) -> bool:
        """Check whether the pass already holds the content of a fact."""
        match fact:
            case LabelAdded(label):
                return (label.mode, label.target) in self.labels
            case VerdictSet(mode, _, value):
                return self.values.get(mode) is value
            case Judged(looks_at, absent):
                # A judge looked at these modes. Those without a label are absent or unsure.
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
        """Return the reason why facts that the pass lacks cannot be added; None if they can."""
        if self.last_pass.finished:
            # The problem names the annotator before this reason.
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


def _event_estimate(work: ImportedWork) -> int:
    """Return about how many events one annotator's work on one trace becomes."""
    return len(work.labels) + len(work.verdicts) + len(work.notes) + 3


def _with_events(changes: PersonChanges, events: Sequence[Event]) -> PersonChanges:
    """Return an annotator's changes, increased by the counts of newly added events."""
    counts_by_type = Counter(type(event.fact) for event in events)
    started_passes = set[object]()
    passes_with_additions = set[object]()
    absent_count = 0
    for event in events:
        fact = event.fact
        if isinstance(fact, PassStarted):
            started_passes.add((event.trace_id, event.taxonomy))
        elif isinstance(fact, _LABEL_OR_VERDICT):
            passes_with_additions.add((event.trace_id, event.taxonomy))
        elif isinstance(fact, Judged) and fact.absent:
            # A judge's absent verdicts are a part of this fact, not facts of their own.
            passes_with_additions.add((event.trace_id, event.taxonomy))
            absent_count += len(fact.absent)
    # Passes that started before these events.
    joined_passes = passes_with_additions - started_passes
    return replace(
        changes,
        events=changes.events + len(events),
        labels_added=changes.labels_added + counts_by_type[LabelAdded],
        verdicts_added=changes.verdicts_added + counts_by_type[VerdictSet] + absent_count,
        passes_added=changes.passes_added + len(started_passes),
        passes_joined=changes.passes_joined + len(joined_passes),
        passes_finished=changes.passes_finished
        + counts_by_type[Judged]
        + counts_by_type[PassFinished],
    )


def _is_differing_label(fact: Fact, recorded: Fact) -> bool:
    """Check whether a fact adds a label that differs from the recorded label of the same id."""
    if isinstance(fact, LabelAdded) and isinstance(recorded, LabelAdded):
        # Earlier versions recorded origins that do not fit the author.
        origin = label_origin(recorded.label.annotator, recorded.label.origin)
        recorded_label = structs.replace(recorded.label, origin=origin)
        # The label may have been imported into a pass that has another number here.
        return structs.replace(fact.label, pass_number=recorded_label.pass_number) != recorded_label
    return False


def _compared_details(label: Label) -> tuple[object, ...]:
    return label.note, label.confidence, label.severity


def _work_key_of(trace_pass: Pass) -> WorkKey:
    return trace_pass.annotator, trace_pass.trace_id, trace_pass.taxonomy


def _label_in_workspace(label: Label, work_key: WorkKey, number: int, kind: AnnotatorKind) -> Label:
    """Return the label with the trace id and pass number of this workspace, and the id for them."""
    annotator, trace_id, taxonomy = work_key
    is_judge = kind is AnnotatorKind.JUDGE
    if not is_judge and (trace_id, number) == (label.trace_id, label.pass_number):
        return label  # its id is already ``label_id`` of the same arguments
    make_id = suggestion_id if is_judge else label_id
    own_id = make_id(annotator, trace_id, taxonomy, label.mode, label.target)
    return structs.replace(label, id=own_id, trace_id=trace_id, pass_number=number)


def _facts_to_record(
    work: ImportedWork, work_key: WorkKey, labels: list[Label]
) -> Iterator[tuple[str, Fact]]:
    """Yield the facts of a work to record, each with its lasting id."""
    id_for = lasting_ids(*work_key)
    yield (
        id_for("pass started"),
        PassStarted(PassKind.ASSISTED if work.judge_seen else PassKind.BLIND),
    )
    if work.judge_seen:
        yield id_for("suggestions seen"), SuggestionsSeen()
    for label in labels:
        yield lasting_id("label added", label.id), LabelAdded(label)
    # ``Judged`` holds the absent verdicts, and makes the verdicts count. It needs a finished trace.
    has_judged = work.author_kind is AnnotatorKind.JUDGE and work.finished_at is not None
    if has_judged:
        yield id_for("judged"), _judged_fact(work)
    for mode, value in work.verdicts.items():
        if not has_judged or value is VerdictValue.UNSURE:
            yield id_for("verdict", mode, value), _shared_verdict(mode, value)
    for key, text in work.notes.items():
        yield id_for("span note", key, text), SpanNoteSet(key, "", text)
    if work.finished_at is not None and work.author_kind is not AnnotatorKind.JUDGE:
        # An empty ``finished_at`` is a finished work whose time is not known.
        yield id_for("finished"), PassFinished(at=work.finished_at or None)


@lru_cache(maxsize=1000)
def _shared_verdict(mode: str, value: VerdictValue) -> VerdictSet:
    """Return a verdict; equal verdicts share one object, since most verdicts are the same few."""
    return VerdictSet(mode, None, value)


def _judged_fact(work: ImportedWork) -> Judged:
    labelled_modes = [label.mode for label in work.labels.values()]
    looks_at = dict.fromkeys([*labelled_modes, *work.verdicts])
    absent = [mode for mode, value in work.verdicts.items() if value is VerdictValue.ABSENT]
    return Judged(tuple(looks_at), tuple(absent))

"""From what an importer has read to events in a workspace, all of it or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mast_tui.exchange.errors import RowProblem
from mast_tui.exchange.incoming import Incoming, IncomingWork, label_id, lasting_id
from mast_tui.labels import AnnotatorKind, Label, Pass, VerdictValue
from mast_tui.workspace import History, NewEvent, PersonChanges, Workspace
from mast_tui.workspace.changes import NOTHING, compare
from mast_tui.workspace.facts import (
    Fact,
    Judged,
    LabelAdded,
    PassFinished,
    PassStarted,
    SuggestionsSeen,
    VerdictSet,
)
from mast_tui.workspace.judgements import suggestion_id

_Work = tuple[str, str, str]
"""Annotator, trace id and taxonomy."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What an import has done: ``new`` events, and ``known`` ones that were there already.

    ``differing`` counts those of the known that the file now tells with other details (another
    note, another confidence); what is there stays. ``problems`` holds those of the reader and
    those that showed against the workspace; unless ``written``, nothing has changed. ``people``
    says what changed by name, also where it joins what somebody has begun here.
    """

    written: bool
    new: int
    known: int
    differing: int
    problems: tuple[RowProblem, ...]
    people: tuple[PersonChanges, ...] = ()


class _Refused(Exception):
    """Takes the transaction back."""


def apply_incoming(
    incoming: Incoming, workspace: Workspace, *, source: str, skip_errors: bool = False
) -> Applied:
    """Write what was read, in one transaction.

    As long as there is a problem nothing is written, unless ``skip_errors`` leaves out what it
    stands for. Importing the same again writes nothing. ``source`` names the import in the
    workspace's history. Raises ``WorkspaceError``.
    """
    applier = _Applier(incoming, workspace)
    try:
        with workspace.transaction():
            applied = applier.apply(source)
            if applied.problems and not skip_errors:
                raise _Refused
    except _Refused:
        return replace(applied, written=False, new=0, people=())
    return applied


class _Applier:
    """One import into one workspace."""

    def __init__(self, incoming: Incoming, workspace: Workspace) -> None:
        self._incoming = incoming
        self._workspace = workspace
        self._problems = list(incoming.problems)
        self._known = 0
        self._differing = 0
        self._worked = set[str]()
        """Who has worked here before."""

    def apply(self, source: str) -> Applied:
        """Register what is new and append the events; runs within a transaction."""
        used = {work.taxonomy for work in self._incoming.work}
        for taxonomy in self._incoming.taxonomies:
            if taxonomy.ref in used:
                self._workspace.add_taxonomy(taxonomy)
        names = {
            record.trace_id: self._workspace.register_trace(record)
            for record in self._incoming.traces
        }
        for name, kind in {(work.annotator, work.kind) for work in self._incoming.work}:
            self._workspace.add_annotator(name, kind)
        passes = _last_passes(self._workspace.passes())
        known = self._known_facts()
        events: list[NewEvent] = []
        for work in self._incoming.work:
            trace_id = names[work.trace_id]
            where = (work.annotator, trace_id, work.taxonomy)
            events += self._events(work, where, passes.get(where), known)
        before = {event.annotator: NOTHING for event in events}
        before |= {name: self._workspace.standing(name) for name in before.keys() & self._worked}
        new = self._workspace.append(events, action=f"import:{source}:{self._workspace.new_id()}")
        people = tuple(
            compare(
                name,
                History.LONGER if name in self._worked else History.NEW,
                before[name],
                self._workspace.standing(name),
                events=count,
            )
            for name, count in sorted(Counter(event.annotator for event in new).items())
        )
        problems = tuple(self._problems)
        return Applied(True, len(new), self._known, self._differing, problems, people)

    def _known_facts(self) -> Mapping[str, Fact]:
        """What these annotators' events say that are here already, by id."""
        known = {}
        for name in {work.annotator for work in self._incoming.work}:
            for event in self._workspace.events(annotator=name):
                known[event.id] = event.fact
                self._worked.add(name)
        return known

    def _events(
        self, work: IncomingWork, where: _Work, last: Pass | None, known: Mapping[str, Fact]
    ) -> list[NewEvent]:
        """The events of one person's work on one trace that are not here yet."""
        number = 1 if last is None else last.number
        labels = [_at_home(label, where, number, work.kind) for label in work.labels]
        planned = dict(_facts(work, where, labels))
        fresh = {name: fact for name, fact in planned.items() if name not in known}
        self._differing += sum(_told_differently(f, known.get(n)) for n, f in planned.items())
        if last is not None and fresh:
            fresh = self._not_said_yet(where, last, fresh)
        self._known += len(planned) - len(fresh)
        if last is not None and fresh:
            problem = self._contradiction(work, where, last, fresh.values())
            if problem:
                place = f"{work.annotator} on {work.trace_id}"
                self._problems.append(RowProblem(work.file, place, problem))
                return []
            fresh = {n: f for n, f in fresh.items() if not isinstance(f, PassStarted)}
        annotator, trace_id, taxonomy = where
        return [
            NewEvent(annotator, trace_id, taxonomy, number, fact, id=name)
            for name, fact in fresh.items()
        ]

    def _not_said_yet(self, where: _Work, last: Pass, fresh: Mapping[str, Fact]) -> dict[str, Fact]:
        """What of it the last pass does not hold already, made here under ids of its own.

        So an export that comes back to where it was made adds nothing.
        """
        here = {"annotator": where[0], "trace_id": where[1], "taxonomy": where[2]}
        labels = {
            (label.mode, label.target): label
            for label in self._workspace.labels(**here, pass_number=last.number)
        }
        values = {
            said.mode: said.value
            for said in self._workspace.verdicts(**here, pass_number=last.number)
        }

        def is_said(fact: Fact) -> bool:
            match fact:
                case LabelAdded(label):
                    own = labels.get((label.mode, label.target))
                    self._differing += own is not None and _details(own) != _details(label)
                    return own is not None
                case VerdictSet(mode, _, value):
                    return values.get(mode) is value
                case Judged(looks_at, absent):
                    found = {mode for mode, _ in labels}
                    return all(
                        mode in found
                        or values.get(mode)
                        is (VerdictValue.ABSENT if mode in absent else VerdictValue.UNSURE)
                        for mode in looks_at
                    )
                case PassFinished():
                    return last.finished
                case SuggestionsSeen():
                    return last.judge_seen
                case _:
                    return False

        left = {name: fact for name, fact in fresh.items() if not is_said(fact)}
        # That a pass began says nothing by itself.
        return left if any(not isinstance(f, PassStarted) for f in left.values()) else {}

    def _contradiction(
        self, work: IncomingWork, where: _Work, last: Pass, fresh: Iterable[Fact]
    ) -> str | None:
        """Why these facts cannot be added to what the annotator has here."""
        if last.finished:
            return (
                "has finished this trace here, and the file says something else; import it under "
                "another name with --annotator"
            )
        annotator, trace_id, taxonomy = where
        said = {
            verdict.mode: verdict.value
            for verdict in self._workspace.verdicts(
                trace_id=trace_id, annotator=annotator, taxonomy=taxonomy, pass_number=last.number
            )
        }
        for fact in fresh:
            mode, value = _says(fact)
            if mode is not None and said.get(mode, value) is not value:
                return f"{mode} is {said[mode]} here and {value} in the file"
        return None


def _told_differently(fact: Fact, known: Fact | None) -> bool:
    if isinstance(fact, LabelAdded) and isinstance(known, LabelAdded):
        return replace(fact.label, pass_number=known.label.pass_number) != known.label
    return False


def _details(label: Label) -> tuple[object, ...]:
    return label.note, label.confidence, label.severity


def _says(fact: Fact) -> tuple[str | None, VerdictValue | None]:
    match fact:
        case LabelAdded(label):
            return label.mode, VerdictValue.PRESENT
        case VerdictSet(mode, _, value):
            return mode, value
        case _:
            return None, None


def _last_passes(passes: Iterable[Pass]) -> Mapping[_Work, Pass]:
    """The last reading of each work; they come by number."""
    return {
        (one.annotator, one.trace_id, one.taxonomy): one for one in passes if one.kind.is_reading
    }


def _at_home(label: Label, where: _Work, number: int, kind: AnnotatorKind) -> Label:
    """The label under the id that its trace has here, and with the id that follows from it."""
    annotator, trace_id, taxonomy = where
    name = suggestion_id if kind is AnnotatorKind.JUDGE else label_id
    return replace(
        label,
        id=name(annotator, trace_id, taxonomy, label.mode, label.target),
        trace_id=trace_id,
        pass_number=number,
    )


def _facts(work: IncomingWork, where: _Work, labels: list[Label]) -> Iterator[tuple[str, Fact]]:
    """What is to be recorded, each under its lasting id."""
    yield lasting_id("pass started", *where), PassStarted(work.pass_kind)
    if work.judge_seen:
        yield lasting_id("suggestions seen", *where), SuggestionsSeen()
    for label in labels:
        yield lasting_id("label added", label.id), LabelAdded(label)
    if work.kind is AnnotatorKind.JUDGE:
        yield lasting_id("judged", *where), _judged(work)
    for mode, value in work.verdicts.items():
        if work.kind is not AnnotatorKind.JUDGE or value is VerdictValue.UNSURE:
            yield lasting_id("verdict", *where, mode, value), VerdictSet(mode, None, value)
    if work.finished_at is not None and work.kind is not AnnotatorKind.JUDGE:
        yield lasting_id("finished", *where), PassFinished(at=work.finished_at or None)


def _judged(work: IncomingWork) -> Judged:
    looks_at = dict.fromkeys([*(label.mode for label in work.labels), *work.verdicts])
    absent = [mode for mode, value in work.verdicts.items() if value is VerdictValue.ABSENT]
    return Judged(tuple(looks_at), tuple(absent))

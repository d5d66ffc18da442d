"""What an importer has read, before anything is written to a workspace."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, TypedDict, TypeVar, Unpack

from mast_tui.counts import counted
from mast_tui.exchange.errors import RowProblem
from mast_tui.labels import (
    WHOLE_TRACE,
    AnnotatorKind,
    Evidence,
    Label,
    Origin,
    PassKind,
    Severity,
    Target,
    VerdictValue,
    annotator_kind,
    label_origin,
)
from mast_tui.taxonomy.loader import load_taxonomy
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.traces.model import Outcome, Trace
from mast_tui.workspace.ids import uuid5
from mast_tui.workspace.records import TraceRecord

_IDS: Final = uuid.UUID("5f0d2a3c-6f0b-5c55-9a55-3a1f5d2f6c10").bytes
_ENCODER: Final = json.JSONEncoder(default=str)


def lasting_id(*parts: object) -> str:
    """A UUIDv5 of the parts: the same content gets the same id at every import, anywhere."""
    return uuid5(_IDS, f"[{_listed(parts)}]")


def lasting_ids(*about: object) -> Callable[..., str]:
    """Make what gives the ids of things about the same: ``lasting_id(kind, *about, *rest)``."""
    said = _listed(about)

    def make(kind: str, *rest: object) -> str:
        before, after = _around(kind, *rest)
        return uuid5(_IDS, f"{before}{said}{after}")

    return make


@lru_cache(maxsize=1000, typed=True)
def _around(kind: str, *rest: object) -> tuple[str, str]:
    """What stands before and behind what many ids in a row are about."""
    return f"[{_json_of(kind)}, ", f", {_listed(rest)}]" if rest else "]"


def _listed(parts: Iterable[object]) -> str:
    return ", ".join(map(_json_of, parts))


@lru_cache(maxsize=1000, typed=True)
def _json_of(part: object) -> str:
    """Most parts are those of the id before, or one of a few."""
    return _ENCODER.encode(part)


def undone_id(event: str) -> str:
    """The id of the event that takes one back which came with an import, the same anywhere."""
    return lasting_id("undone", event)


def again_id(event: str) -> str:
    """The id under which an event comes once more whose import was taken back."""
    return lasting_id("again", event)


def joined(known: TraceRecord, new: TraceRecord) -> TraceRecord:
    """The facts that two rows tell of a trace; raises ``ValueError`` where they contradict."""
    outcomes = {known.outcome, new.outcome} - {Outcome.UNKNOWN}
    if len(outcomes) > 1:
        raise ValueError("outcome is failed in one row and succeeded in another")
    return replace(
        known,
        system=_one_of("system", known.system, new.system),
        model=_one_of("model", known.model, new.model),
        benchmark=_one_of("benchmark", known.benchmark, new.benchmark),
        score=_one_of("score", known.score, new.score),
        version=_one_of("version", known.version, new.version),
        started=_one_of("date", known.started, new.started),
        outcome=outcomes.pop() if outcomes else Outcome.UNKNOWN,
    )


_Fact = TypeVar("_Fact", str, float)


def _one_of(name: str, first: _Fact | None, second: _Fact | None) -> _Fact | None:
    if first is not None and second is not None and first != second:
        raise ValueError(f"{name} is {first!r} in one row and {second!r} in another")
    return second if first is None else first


@dataclass(frozen=True, slots=True)
class IncomingWork:
    """One annotator's work on one trace under one taxonomy, and the file that names it first.

    ``verdicts`` hold absent and unsure; a mode with a label is present. ``finished_at`` is None if
    the trace is not finished (ISO 8601 in UTC, or empty if the time is not known). ``notes`` are
    those on spans, by the span's key. ``places`` names where in the file labels and notes are, by
    label id and span key, if the importer records it.
    """

    annotator: str
    kind: AnnotatorKind
    trace_id: str
    taxonomy: str
    labels: tuple[Label, ...]
    verdicts: Mapping[str, VerdictValue]
    finished_at: str | None
    file: Path
    pass_kind: PassKind = PassKind.BLIND
    judge_seen: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Incoming:
    """All that one import has read; ``notes`` are sentences for the user."""

    taxonomies: tuple[Taxonomy, ...]
    traces: tuple[TraceRecord, ...]
    work: tuple[IncomingWork, ...]
    problems: tuple[RowProblem, ...] = ()
    notes: tuple[str, ...] = ()


WorkKey = tuple[str, str, str]
"""Annotator, trace id and taxonomy."""


class LabelDetails(TypedDict, total=False):
    """The fields of an imported label that a format may lack."""

    confidence: float | None
    severity: Severity | None
    saw_suggestions: bool
    created_at: str
    evidence: Evidence | None


@dataclass(slots=True)
class WorkDraft:
    """An annotator's work on a trace while rows of it are still coming in."""

    annotator: str
    kind: AnnotatorKind
    trace_id: str
    taxonomy: str
    file: Path
    labels: dict[str, Label] = field(default_factory=dict)
    verdicts: dict[str, VerdictValue] = field(default_factory=dict)
    finished_at: str | None = None
    saw_suggestions: bool = False
    notes: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def label(
        self,
        mode: str,
        target: Target = WHOLE_TRACE,
        note: str = "",
        *,
        origin: Origin = Origin.IMPORTED,
        **details: Unpack[LabelDetails],
    ) -> Label:
        """Make the imported label of a mode at a place; it is not added yet."""
        return Label(
            id=label_id(self.annotator, self.trace_id, self.taxonomy, mode, target),
            annotator=self.annotator,
            trace_id=self.trace_id,
            taxonomy=self.taxonomy,
            mode=mode,
            target=target,
            note=note,
            origin=label_origin(self.annotator, origin),
            **details,
        )

    def join_label(self, label: Label) -> None:
        """Add a label; of two of one mode at one place one is kept, with both notes."""
        known = self.labels.get(label.id)
        if known is not None:
            notes = [known.note, *([label.note] if label.note not in known.note else [])]
            note = "\n".join(filter(None, notes))
            label = replace(known, note=note, severity=known.severity or label.severity)
        self.labels[label.id] = label

    def add_label(self, label: Label, place: str = "") -> None:
        """Add a label.

        Args:
            label: The label.
            place: Its place in the file, for problems with its spans.

        Raises:
            ValueError: It contradicts what came before.
        """
        said = self.verdicts.get(label.mode)
        if said is not None:
            raise ValueError(f"{label.mode} is both present and {said}")
        known = self.labels.get(label.id)
        if known is not None and known != label:
            raise ValueError(f"the same label of {label.mode} comes twice with other details")
        self.labels[label.id] = label
        if place and not label.target.is_whole:
            self.places.setdefault(label.id, place)
        self.saw_suggestions = self.saw_suggestions or label.saw_suggestions

    def add_verdict(self, mode: str, value: VerdictValue) -> None:
        """Add absent or unsure; raises ``ValueError`` where it contradicts what came before."""
        said = self.verdicts.get(mode)
        for label in self.labels.values():
            if label.mode == mode:
                said = VerdictValue.PRESENT
        if said is not None and said is not value:
            raise ValueError(f"{mode} is both {said} and {value}")
        self.verdicts[mode] = value

    def add_note(self, key: str, text: str, place: str = "") -> None:
        """Add a note on a span.

        Args:
            key: The span's key.
            text: The note.
            place: Its place in the file, for problems with its span.

        Raises:
            ValueError: There is another note on the span.
        """
        if self.notes.setdefault(key, text) != text:
            raise ValueError(f"span {key!r} has two notes of one annotator")
        if place:
            self.places.setdefault(key, place)

    @property
    def key(self) -> WorkKey:
        """Whose work it is, on which trace, under which taxonomy."""
        return self.annotator, self.trace_id, self.taxonomy

    def finish(self, at: str) -> None:
        """Note when the trace was finished, empty where nobody knows."""
        self.finished_at = at

    def done(self) -> IncomingWork:
        """The work as it stands."""
        return IncomingWork(
            annotator=self.annotator,
            kind=self.kind,
            trace_id=self.trace_id,
            taxonomy=self.taxonomy,
            labels=tuple(self.labels.values()),
            verdicts=self.verdicts,
            finished_at=self.finished_at,
            file=self.file,
            pass_kind=PassKind.ASSISTED if self.saw_suggestions else PassKind.BLIND,
            judge_seen=self.saw_suggestions,
            notes=self.notes,
            places=self.places,
        )


@dataclass(slots=True)
class Gathered:
    """What one import has read so far, as ``Incoming`` has it at the end."""

    taxonomies: dict[str, Taxonomy] = field(default_factory=dict)
    traces: dict[str, TraceRecord] = field(default_factory=dict)
    drafts: dict[WorkKey, WorkDraft] = field(default_factory=dict)
    problems: list[RowProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def keep(self, draft: WorkDraft) -> None:
        """Keep work on a trace; what came before of the same goes."""
        self.drafts[draft.key] = draft
        self.traces.setdefault(draft.trace_id, TraceRecord(draft.trace_id))

    def wrong(self, file: Path, place: str, reason: object) -> None:
        """Note a row that could not be read.

        Args:
            file: The file.
            place: The place in it.
            reason: The error, or a text.
        """
        self.problems.append(RowProblem.of(file, place, reason))

    def done(self) -> Incoming:
        """Everything that was read."""
        return Incoming(
            taxonomies=tuple(self.taxonomies.values()),
            traces=tuple(self.traces.values()),
            work=tuple(draft.done() for draft in self.drafts.values()),
            problems=tuple(self.problems),
            notes=tuple(self.notes),
        )


class LabelledRuns(Gathered):
    """What one annotator says of runs under one taxonomy, while it is being read."""

    def __init__(
        self,
        name: str,
        annotator: str | None,
        spelling: Callable[[str], str],
        note: str,
        *,
        by_code: bool = False,
    ) -> None:
        """Begin with nothing.

        Args:
            name: What the set, its taxonomy and whoever has labelled it go by.
            annotator: Who has labelled it, where that is told otherwise.
            spelling: What is left of the name of a mode where it is spelled in several ways.
            note: What a person should know of the set.
            by_code: Whether a mode may be named by its code as well.
        """
        taxonomy = shipped_taxonomy(name)
        super().__init__({taxonomy.ref: taxonomy}, notes=[note])
        self._taxonomy = taxonomy
        self._annotator = annotator or name
        self._spelling = spelling
        self._modes: dict[str, Mode] = {}
        for mode in taxonomy.modes:
            names = [mode.name, *(alias.name for alias in mode.aliases)]
            for known in [*names, mode.code] if by_code else names:
                self._modes.setdefault(spelling(known), mode)

    def mode(self, field: str, name: str) -> Mode:
        """The mode that a field names; raises ``ValueError`` where there is none."""
        mode = self._modes.get(self._spelling(name))
        if mode is None:
            names = ", ".join(mode.name for mode in self._taxonomy.modes)
            raise ValueError(f"{field} {name!r} is none of {names}")
        return mode

    def work(self, file: Path, native: str, trace: Trace | None, *, anew: bool) -> WorkDraft:
        """The finished work on a run, to which labels are added.

        Args:
            file: the labels' file.
            native: the id that the labels give; theirs where there is no trace.
            trace: the run's trace, where it was found.
            anew: whether what came before of the same run goes.
        """
        if trace is None:
            self.notes.append(f"{native}: trace not found; labels kept under this id")
        trace_id = native if trace is None else trace.identity.trace_id
        self.traces[trace_id] = TraceRecord(trace_id) if trace is None else TraceRecord.of(trace)
        kind, ref = AnnotatorKind.IMPORTED, self._taxonomy.ref
        draft = WorkDraft(self._annotator, kind, trace_id, ref, file, finished_at="")
        if anew or draft.key not in self.drafts:
            self.keep(draft)
        return self.drafts[draft.key]


def complete_judge_tables(incoming: Incoming, *, finished: bool) -> Incoming:
    """Complete the tables of judges that write down findings only.

    A judge without an ``absent`` row but with ``finished`` rows has looked for every mode that it
    names somewhere: in its finished traces, those without a finding are absent. One with
    ``absent`` but without ``finished`` rows has finished the traces of which it calls a mode
    absent or is unsure. A judge with neither is refused, since all of its verdicts would be
    ``present``.

    Args:
        incoming: What was read.
        finished: Whether the user declares that each judge has looked for all modes of the
            taxonomy in each trace that it names.

    Returns:
        The same with the absent verdicts that follow, a note for each judge that got some, and a
        problem for each that is refused.
    """
    tables: dict[tuple[str, str], list[IncomingWork]] = {}
    for work in incoming.work:
        if work.kind is AnnotatorKind.JUDGE:
            tables.setdefault((work.annotator, work.taxonomy), []).append(work)
    taxonomies = {taxonomy.ref: taxonomy for taxonomy in incoming.taxonomies}
    completions = {
        (name, ref): _completion(name, works, taxonomies[ref], finished=finished)
        for (name, ref), works in tables.items()
    }
    completed_work = []
    for work in incoming.work:
        completion = completions.get((work.annotator, work.taxonomy), _UNCHANGED)
        if completion.problem is not None:
            continue
        if completion.modes is not None:
            work = _finished_by_judge(work, completion.modes, finished=finished)
        completed_work.append(work)
    problems = [done.problem for done in completions.values() if done.problem is not None]
    notes = [done.note for done in completions.values() if done.note is not None]
    return replace(
        incoming,
        work=tuple(completed_work),
        problems=(*incoming.problems, *problems),
        notes=(*incoming.notes, *notes),
    )


class _Completion(NamedTuple):
    """The completion of one judge's table.

    ``modes`` are those that are absent where a finished trace has no row for them, None where the
    table stays as it is. ``note`` says so to the user; ``problem`` is why the table is refused.
    """

    modes: Sequence[str] | None = None
    note: str | None = None
    problem: RowProblem | None = None


_UNCHANGED: Final = _Completion()


def _completion(
    name: str, works: Sequence[IncomingWork], taxonomy: Taxonomy, *, finished: bool
) -> _Completion:
    """Return the completion of a judge's table."""
    if finished:
        return _Completion([mode.slug for mode in taxonomy.modes])
    has_finished_rows = any(work.finished_at is not None for work in works)
    if any(work.verdicts for work in works):
        if has_finished_rows:
            return _UNCHANGED
        count = sum(bool(work.verdicts) for work in works)
        note = (
            f"{name} has no 'finished' row: the {counted(count, 'trace')} with an absent "
            "or unsure row count as finished, and in them the modes that have a row"
        )
        # No mode becomes absent: the traces only count as finished.
        return _Completion([], note)
    named = {label.mode for work in works for label in work.labels}
    if not named:
        return _UNCHANGED
    if has_finished_rows:
        modes = [mode for mode in taxonomy.modes if mode.slug in named]
        codes = ", ".join(mode.code for mode in modes)
        note = (
            f"{name} has no absent row: of the modes that it names ({codes}), those without a "
            "finding are absent in the traces that it has finished"
        )
        return _Completion([mode.slug for mode in modes], note)
    reason = (
        "has only findings, so it would seem to be right about every failure. Add a "
        "'finished' row for each trace that it has looked at, also those without a "
        "finding; or say --finished if it has looked for all modes in each trace here"
    )
    return _Completion(problem=RowProblem(works[0].file, name, reason))


def _finished_by_judge(work: IncomingWork, modes: Sequence[str], *, finished: bool) -> IncomingWork:
    """Return a judge's work as finished, with absent for the modes on which it has no verdict."""
    is_listed = bool(work.verdicts) and not modes
    if work.finished_at is None and not finished and not is_listed:
        return work
    judged_modes = {label.mode for label in work.labels} | work.verdicts.keys()
    absent = {mode: VerdictValue.ABSENT for mode in modes if mode not in judged_modes}
    return replace(work, verdicts={**work.verdicts, **absent}, finished_at=work.finished_at or "")


def shipped_taxonomy(name: str) -> Taxonomy:
    """The taxonomy of a tool or a set, which comes with the package."""
    return load_taxonomy(Path(__file__).with_name("taxonomies") / f"{name}.toml")


def imported_kind(name: str) -> AnnotatorKind:
    """The kind of whoever says what a tool or a set says: a judge by its name, else imported."""
    kind = annotator_kind(name)
    return AnnotatorKind.IMPORTED if kind is AnnotatorKind.HUMAN else kind


def taxonomy_named(
    ref: object, default: Taxonomy, known: Callable[[str], Taxonomy | None]
) -> Taxonomy:
    """The taxonomy of a row or record.

    Args:
        ref: What it names, None where it names none.
        default: That of whatever names none.
        known: Finds a taxonomy by its reference.

    Raises:
        ValueError: It names one that is not known.
    """
    found = default if ref in (None, default.ref) else known(str(ref))
    if found is None:
        raise ValueError(f"taxonomy {ref!r} is unknown here; give its file with --taxonomy")
    return found


def label_id(annotator: str, trace_id: str, taxonomy: str, mode: str, target: Target) -> str:
    """The lasting id of an imported label: an annotator has one per trace, mode and target."""
    place = (target.first, target.last, target.quote, target.char_start, target.char_end)
    return lasting_ids(annotator, trace_id, taxonomy)("label", mode, *place)

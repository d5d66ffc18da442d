"""The contents of imported files before they are written, and the names of their authors."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, TypedDict, TypeVar, Unpack

from msgspec import field as struct_field
from msgspec import structs

from mast_tui.counts import counted
from mast_tui.exchange.errors import ExchangeError, RowProblem
from mast_tui.grouping import values_by_key
from mast_tui.labels import (
    AGENT_PREFIX,
    WHOLE_TRACE,
    AnnotatorKind,
    Evidence,
    InvalidName,
    Label,
    Origin,
    ReservedName,
    Severity,
    Target,
    TraceWork,
    VerdictValue,
    WorkKey,
    annotator_kind,
    checked_agent,
    checked_person,
    is_judge,
    label_origin,
)
from mast_tui.taxonomy.loader import load_taxonomy
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.traces.model import Outcome, Trace
from mast_tui.workspace.events.codec import label_from_values
from mast_tui.workspace.events.model import uuid5
from mast_tui.workspace.records import TraceRecord

_IDS: Final = uuid.UUID("5f0d2a3c-6f0b-5c55-9a55-3a1f5d2f6c10").bytes
_ENCODER: Final = json.JSONEncoder(default=str)

UNKNOWN_TIME: Final = ""
"""The unknown time of a finish."""


def lasting_id(*parts: object) -> str:
    """Return a UUIDv5 of the parts.

    The same parts have the same id on every machine.
    """
    return uuid5(_IDS, f"[{_json_items(parts)}]")


def lasting_ids(*about: object) -> Callable[..., str]:
    """Return a fast function for ``lasting_id(kind, *about, *parts)``."""
    subject = _json_items(about)

    def id_for(kind: str, *parts: object) -> str:
        before, after = _id_text_around(kind, *parts)
        return uuid5(_IDS, f"{before}{subject}{after}")

    return id_for


@lru_cache(maxsize=1000, typed=True)
def _id_text_around(kind: str, *parts: object) -> tuple[str, str]:
    """Return the parts of an id's source text before and after the subject.

    The subject is ``about`` of ``lasting_ids``.
    """
    return f"[{_json_of(kind)}, ", f", {_json_items(parts)}]" if parts else "]"


def _json_items(parts: Iterable[object]) -> str:
    return ", ".join(map(_json_of, parts))


@lru_cache(maxsize=1000, typed=True)
def _json_of(part: object) -> str:
    """Return a part as JSON.

    Most parts repeat, so the cache helps.
    """
    return _ENCODER.encode(part)


def undone_id(event: str) -> str:
    """Return the id of the event that undoes an imported event.

    It is the same on every machine.
    """
    return lasting_id("undone", event)


def again_id(event: str) -> str:
    """Return the id of an event that is imported again after an undone import."""
    return lasting_id("again", event)


def merged_facts(earlier: TraceRecord, new: TraceRecord) -> TraceRecord:
    """Return the record of a trace with the facts of two rows.

    Args:
        earlier: The facts in earlier rows.
        new: The facts in the new row.

    Raises:
        ValueError: The rows contradict each other.
    """
    outcomes = {earlier.outcome, new.outcome} - {Outcome.UNKNOWN}
    if len(outcomes) > 1:
        raise ValueError("outcome is failed in one row and succeeded in another")
    return structs.replace(
        earlier,
        system=_one_of("system", earlier.system, new.system),
        model=_one_of("model", earlier.model, new.model),
        benchmark=_one_of("benchmark", earlier.benchmark, new.benchmark),
        score=_one_of("score", earlier.score, new.score),
        version=_one_of("version", earlier.version, new.version),
        started=_one_of("date", earlier.started, new.started),
        task_id=_one_of("task_id", earlier.task_id, new.task_id),
        trial=_one_of("trial", earlier.trial, new.trial),
        outcome=outcomes.pop() if outcomes else Outcome.UNKNOWN,
    )


_Fact = TypeVar("_Fact", str, float, int)


def _one_of(name: str, first: _Fact | None, second: _Fact | None) -> _Fact | None:
    if first is not None and second is not None and first != second:
        raise ValueError(f"{name} is {first!r} in one row and {second!r} in another")
    return second if first is None else first


@dataclass(frozen=True, slots=True)
class Incoming:
    """The contents of an import. ``notes`` are sentences for the user."""

    taxonomies: tuple[Taxonomy, ...]
    traces: tuple[TraceRecord, ...]
    work: tuple[ImportedWork, ...]
    problems: tuple[RowProblem, ...] = ()
    notes: tuple[str, ...] = ()


class LabelDetails(TypedDict, total=False):
    """The optional fields of an imported label."""

    confidence: float | None
    severity: Severity | None
    saw_suggestions: bool
    created_at: str
    evidence: Evidence | None


class ImportedWork(TraceWork, kw_only=True):
    """An annotator's work on a trace, built row by row.

    ``file`` is the first file with this work. ``places`` has the known locations of labels by id,
    and of notes by span key.
    """

    file: Path
    places: dict[str, str] = struct_field(default_factory=dict)

    def label(
        self,
        mode: str,
        target: Target = WHOLE_TRACE,
        note: str = "",
        *,
        origin: Origin = Origin.IMPORTED,
        **details: Unpack[LabelDetails],
    ) -> Label:
        """Return a new label of a mode.

        It is not added to the work.

        Args:
            mode: The mode's slug.
            target: The target.
            note: The note.
            origin: The origin.
            details: Further fields of the label.
        """
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
        """Add a label, or join it to the label of the same mode and target."""
        earlier = self.labels.get(label.id)
        self.labels[label.id] = label if earlier is None else joined_label(earlier, label)

    def add_label(self, label: Label, location: str = "") -> None:
        """Add a label.

        Args:
            label: The label.
            location: The location of the label in the file, for messages.

        Raises:
            ValueError: The label contradicts an earlier verdict or label.
        """
        verdict = self.verdicts.get(label.mode)
        if verdict is not None:
            raise ValueError(f"{label.mode} is both present and {verdict}")
        earlier = self.labels.get(label.id)
        if earlier is not None and earlier != label:
            raise ValueError(f"the same label of {label.mode} appears twice with different details")
        self.labels[label.id] = label
        if location and not label.target.is_whole:
            self.places.setdefault(label.id, location)
        self.judge_seen = self.judge_seen or label.saw_suggestions

    def add_verdict(self, mode: str, value: VerdictValue) -> None:
        """Add the verdict absent or unsure.

        Args:
            mode: The mode's slug.
            value: Absent or unsure.

        Raises:
            ValueError: The verdict contradicts an earlier verdict or label.
        """
        is_labelled = any(label.mode == mode for label in self.labels.values())
        earlier = VerdictValue.PRESENT if is_labelled else self.verdicts.get(mode)
        if earlier is not None and earlier is not value:
            raise ValueError(f"{mode} is both {earlier} and {value}")
        self.verdicts[mode] = value

    def add_note(self, key: str, text: str, location: str = "") -> None:
        """Add a note on a span.

        Args:
            key: The span's key.
            text: The note.
            location: The location of the note in the file, for messages.

        Raises:
            ValueError: There is another note on the span.
        """
        if self.notes.setdefault(key, text) != text:
            raise ValueError(f"span {key!r} has two notes by one annotator")
        if location:
            self.places.setdefault(key, location)

    def finish(self, time: str) -> None:
        """Record the time of the finish; empty if unknown."""
        self.finished_at = time


def joined_label(label: Label, other: Label) -> Label:
    """Return a label with the note of another label of the same mode and target added to its own.

    The severity of the other label counts if the label has none.

    Args:
        label: The label.
        other: The other label.
    """
    note = label.note
    if other.note not in note:
        note = "\n".join(filter(None, (note, other.note)))
    return structs.replace(label, note=note, severity=label.severity or other.severity)


@dataclass(slots=True)
class IncomingBuilder:
    """The contents of an import so far."""

    taxonomies: dict[str, Taxonomy] = field(default_factory=dict)
    traces: dict[str, TraceRecord] = field(default_factory=dict)
    drafts: dict[WorkKey, ImportedWork] = field(default_factory=dict)
    problems: list[RowProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_work(self, draft: ImportedWork) -> None:
        """Add an annotator's work on a trace, or replace it."""
        self.drafts[draft.key] = draft
        self.traces.setdefault(draft.trace_id, TraceRecord(draft.trace_id))

    def add_problem(self, file: Path, location: str, reason: object) -> None:
        """Add a problem.

        Args:
            file: The file.
            location: The location in the file.
            reason: The error, or its text.
        """
        self.problems.append(RowProblem.of(file, location, reason))

    @contextmanager
    def errors_as_problem(self, file: Path, location: str) -> Iterator[None]:
        """Turn a ``ValueError`` in the ``with`` block into a problem.

        Args:
            file: The file.
            location: The location in the file.
        """
        try:
            yield
        except ValueError as error:
            self.add_problem(file, location, error)

    def to_incoming(self) -> Incoming:
        """Return everything that was read."""
        return Incoming(
            taxonomies=tuple(self.taxonomies.values()),
            traces=tuple(self.traces.values()),
            work=tuple(self.drafts.values()),
            problems=tuple(self.problems),
            notes=tuple(self.notes),
        )


class AnnotatorBuilder(IncomingBuilder):
    """The labels of one annotator under a taxonomy of the package, built file by file."""

    def __init__(self, taxonomy: Taxonomy, annotator: str, *notes: str) -> None:
        """Create an empty builder.

        Args:
            taxonomy: The taxonomy.
            annotator: The name of the annotator.
            notes: Notes for the user.
        """
        super().__init__({taxonomy.ref: taxonomy}, notes=[*notes])
        self._taxonomy = taxonomy
        self._annotator = annotator

    def finished_work(self, file: Path, trace_id: str, *, replaces: bool = True) -> ImportedWork:
        """Return the annotator's finished work on a trace, without labels at first.

        Args:
            file: The file of the labels.
            trace_id: The id of the trace.
            replaces: Replace earlier work on the trace; otherwise continue it.
        """
        kind = imported_kind(self._annotator)
        ref = self._taxonomy.ref
        draft = ImportedWork(
            self._annotator, trace_id, ref, kind, finished_at=UNKNOWN_TIME, file=file
        )
        if replaces or draft.key not in self.drafts:
            self.add_work(draft)
        return self.drafts[draft.key]


class LabelledRuns(AnnotatorBuilder):
    """One annotator's labels of runs from a labelled set.

    The names of modes may vary in spelling.
    """

    def __init__(
        self,
        name: str,
        annotator: str | None,
        spelling: Callable[[str], str],
        note: str,
        *,
        by_code: bool = False,
    ) -> None:
        """Create an empty builder for a labelled set.

        Args:
            name: The name of the set and of its taxonomy.
            annotator: The name of the annotator; None for the name of the set.
            spelling: Returns the common spelling for all spellings of a name.
            note: A note for the user.
            by_code: Also accept codes of modes as names.
        """
        super().__init__(shipped_taxonomy(name), annotator or name, note)
        self._spelling = spelling
        self._modes: dict[str, Mode] = {}
        for mode in self._taxonomy.modes:
            names = [mode.name, *(alias.name for alias in mode.aliases)]
            if by_code:
                names.append(mode.code)
            for mode_name in names:
                self._modes.setdefault(spelling(mode_name), mode)

    def mode(self, field: str, name: str) -> Mode:
        """Return the mode of a name.

        Args:
            field: The name of the field, for messages.
            name: The name in the field.

        Raises:
            ValueError: There is no such mode.
        """
        mode = self._modes.get(self._spelling(name))
        if mode is None:
            names = ", ".join(mode.name for mode in self._taxonomy.modes)
            raise ValueError(f"{field} {name!r} is not one of {names}")
        return mode

    def work(self, file: Path, run_id: str, trace: Trace | None, *, replaces: bool) -> ImportedWork:
        """Return the annotator's finished work on a run, and add it with its trace.

        If the trace was not found, this is noted.

        Args:
            file: The file of the labels.
            run_id: The id of the run in the file. It is the trace id if there is no trace.
            trace: The trace of the run; None if it was not found.
            replaces: Replace earlier work on the run; otherwise continue it.
        """
        if trace is None:
            self.notes.append(f"{run_id}: trace not found; labels are kept under this id")
        trace_id = run_id if trace is None else trace.identity.trace_id
        self.traces[trace_id] = (
            TraceRecord(trace_id) if trace is None else TraceRecord.from_trace(trace)
        )
        return self.finished_work(file, trace_id, replaces=replaces)


def complete_judge_tables(incoming: Incoming, *, declared_finished: bool) -> Incoming:
    """Add the absent verdicts and finished traces that the tables of judges imply.

    In a table with ``finished`` rows and only findings, each mode that has any finding is absent
    from the other finished traces.

    In a table with absent or unsure rows and no ``finished`` rows, the traces of these rows are
    finished.

    A table of findings alone is refused.

    Args:
        incoming: The contents of the import.
        declared_finished: The judges have looked for all modes in all traces of their tables. Then
            all modes without a row are absent.

    Returns:
        The import with a note for each completed table, and a problem for each refused table.
    """
    tables = values_by_key(
        ((work.annotator, work.taxonomy), work)
        for work in incoming.work
        if work.author_kind is AnnotatorKind.JUDGE
    )
    taxonomies = {taxonomy.ref: taxonomy for taxonomy in incoming.taxonomies}
    completions = {
        (name, ref): _every_trace_finished(taxonomies[ref])
        if declared_finished
        else _table_completion(name, works, taxonomies[ref])
        for (name, ref), works in tables.items()
    }
    completed_work = [
        completions.get((work.annotator, work.taxonomy), _UNCHANGED).completed(work)
        for work in incoming.work
    ]
    problems = [completion.problem for completion in completions.values() if completion.problem]
    notes = [completion.note for completion in completions.values() if completion.note]
    return replace(
        incoming,
        work=tuple(work for work in completed_work if work is not None),
        problems=(*incoming.problems, *problems),
        notes=(*incoming.notes, *notes),
    )


class _Completion(NamedTuple):
    """The completion of a judge's table.

    Attributes:
        absent_modes: The modes that become absent in finished traces without a row for them.
        finishes: Returns whether further work on a trace becomes finished.
        note: A note for the user.
        problem: The reason to refuse the table; None if it is accepted.
    """

    absent_modes: Sequence[str] = ()
    finishes: Callable[[ImportedWork], bool] = lambda work: False
    note: str | None = None
    problem: RowProblem | None = None

    def completed(self, work: ImportedWork) -> ImportedWork | None:
        """Return the work on a trace with its implied verdicts and finish; None if refused."""
        if self.problem is not None:
            return None
        if work.finished_at is None and not self.finishes(work):
            return work
        judged_modes = {label.mode for label in work.labels.values()} | work.verdicts.keys()
        absent = {m: VerdictValue.ABSENT for m in self.absent_modes if m not in judged_modes}
        return structs.replace(
            work, verdicts={**work.verdicts, **absent}, finished_at=work.finished_at or UNKNOWN_TIME
        )


_UNCHANGED: Final = _Completion()


def _every_trace_finished(taxonomy: Taxonomy) -> _Completion:
    """Return the completion for a judge that looked for all modes in all traces of its table."""
    return _Completion([mode.slug for mode in taxonomy.modes], lambda work: True)


def _table_completion(name: str, works: Sequence[ImportedWork], taxonomy: Taxonomy) -> _Completion:
    """Return the completion of a judge's table, from its rows."""
    has_finished_rows = any(work.finished_at is not None for work in works)
    # Present is recorded as a label, so ``verdicts`` are only absent and unsure.
    verdict_count = sum(bool(work.verdicts) for work in works)
    named_modes = {label.mode for work in works for label in work.labels.values()}
    if verdict_count and not has_finished_rows:
        note = (
            f"{name} has no 'finished' row: the {counted(verdict_count, 'trace')} with an absent "
            "or unsure row count as finished for the modes that have a row"
        )
        return _Completion(finishes=lambda work: bool(work.verdicts), note=note)
    if verdict_count or not named_modes:
        return _UNCHANGED
    if has_finished_rows:
        modes = [mode for mode in taxonomy.modes if mode.slug in named_modes]
        codes = ", ".join(mode.code for mode in modes)
        note = (
            f"{name} has no absent row: in its finished traces, modes that it reports "
            f"elsewhere ({codes}) count as absent where it has no finding"
        )
        return _Completion([mode.slug for mode in modes], note=note)
    reason = (
        "has only findings, so its false alarms and misses cannot be measured. Add a "
        "'finished' row for each trace that it has checked, even without findings; or use "
        "--finished if it has checked all modes in each of these traces"
    )
    return _Completion(problem=RowProblem(works[0].file, name, reason))


def shipped_taxonomy(name: str) -> Taxonomy:
    """Return a taxonomy of the package by the name of a tool or set."""
    return load_taxonomy(Path(__file__).with_name("taxonomies") / f"{name}.toml")


def imported_kind(name: str) -> AnnotatorKind:
    """Return the kind of a source's annotator: a judge by its name, else imported."""
    kind = annotator_kind(name)
    return AnnotatorKind.IMPORTED if kind is AnnotatorKind.HUMAN else kind


def taxonomy_named(
    ref: object, default: Taxonomy, find_taxonomy: Callable[[str], Taxonomy | None]
) -> Taxonomy:
    """Return the taxonomy of a row by its reference ``id@version``.

    Args:
        ref: The reference; None for the default.
        default: The default taxonomy.
        find_taxonomy: Finds a taxonomy by its reference.

    Raises:
        ValueError: The taxonomy is unknown.
    """
    taxonomy = default if ref in (None, default.ref) else find_taxonomy(str(ref))
    if taxonomy is None:
        raise ValueError(
            f"taxonomy {ref!r} is not in this workspace; give its file with --taxonomy"
        )
    return taxonomy


def label_id(annotator: str, trace_id: str, taxonomy: str, mode: str, target: Target) -> str:
    """Return the lasting id of an imported label.

    Args:
        annotator: The annotator's name.
        trace_id: The trace's id.
        taxonomy: The taxonomy.
        mode: The mode's slug.
        target: The target.
    """
    target_values = (target.first, target.last, target.quote, target.char_start, target.char_end)
    return lasting_ids(annotator, trace_id, taxonomy)("label", mode, *target_values)


def label_in_work(values: object, work: TraceWork, taxonomy: Taxonomy) -> Label:
    """Return a label of imported work from its JSON values, with the id of an imported label.

    Args:
        values: The values, made by ``label_to_values``.
        work: The work. Its trace may have had another id in the values.
        taxonomy: The taxonomy of the work.

    Raises:
        ValueError: The values are not a label, or the taxonomy lacks its mode.
    """
    context = {
        "annotator": work.annotator,
        "trace_id": work.trace_id,
        "taxonomy": taxonomy.ref,
        "pass_number": 1,
    }
    label = label_from_values(values, context)
    if all(mode.slug != label.mode for mode in taxonomy.all_modes):
        raise ValueError(f"{label.mode!r} is not a mode of {taxonomy.ref}")
    new_id = label_id(*work.key, label.mode, label.target)
    return structs.replace(label, id=new_id, origin=label_origin(work.annotator, label.origin))


def check_one_name(annotator: str | None, names: Iterable[str]) -> None:
    """Check that ``--annotator`` does not rename several authors.

    Args:
        annotator: The name of the option; None without it.
        names: The names in the rows.

    Raises:
        ExchangeError: A name is given, and the rows have several names.
    """
    if annotator is None:
        return
    authors = sorted({name.strip() for name in names} - {""})
    if len(authors) > 1:
        raise ExchangeError(
            f"the rows are by {', '.join(authors)}; --annotator accepts rows by one annotator only"
        )


def annotator_of(cell: str, given_name: str | None) -> str:
    """Return the annotator of a row: the name of the option, else that in the row.

    Args:
        cell: The name in the row.
        given_name: The name of ``--annotator``; None without the option.

    Raises:
        ValueError: The name is missing or not valid.
    """
    name = (given_name or cell).strip()
    if not name:
        raise InvalidName("'annotator' is empty; fill it in, or give --annotator NAME")
    if is_judge(name):
        return checked_judge(name)
    if name.startswith(AGENT_PREFIX):
        return checked_agent(name)
    try:
        return checked_person(name)
    except ReservedName:
        if given_name is not None:
            raise
        # The name is from the file, so the option is the remedy.
        raise ReservedName(
            f'"{name}" is reserved; import under another name with --annotator NAME'
        ) from None


def checked_judge(name: str) -> str:
    """Return a judge's name if it is valid, else raise ``ValueError``."""
    if len(name) > 128 or not name.isprintable() or "|" in name or "," in name:
        raise ValueError(
            f"{name!r} cannot be a judge's name; use at most 128 printable characters, without "
            "',' and '|'"
        )
    return name

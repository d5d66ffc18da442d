"""Whose words an export holds: one annotator's, everybody's, or the gold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from mast_tui.adjudication import SpanOrders, words_by_trace
from mast_tui.counts import counted
from mast_tui.exchange.csv_long import LongWork
from mast_tui.exchange.errors import UnorderedSpans
from mast_tui.exchange.exporters.gold_document import GoldEntry
from mast_tui.exchange.exporters.working_time import minutes_worked
from mast_tui.gold import GoldTrace
from mast_tui.gold.sources import only_settled
from mast_tui.labels import Label, Origin, Pass, PassKind, VerdictValue
from mast_tui.passes import Which, counted_passes
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import TraceRecord, Workspace, WorkspaceError
from mast_tui.workspace.registers.pseudonyms import Pseudonyms

GOLD: Final = "gold"
ALL: Final = "all"

_NAMED: Final = 3
"""So many paths and ids are named at most."""


def selected_work(
    workspace: Workspace,
    taxonomy: Taxonomy,
    labels: str,
    *,
    which: Which,
    finished_only: bool,
) -> list[LongWork]:
    """Return the words of all annotators, or of the one named, per annotator and trace.

    Args:
        workspace: Where they are.
        taxonomy: Under which taxonomy.
        labels: ``all`` or a name.
        which: Whether the first or the last pass counts.
        finished_only: Whether unfinished passes are left out.

    Raises:
        WorkspaceError: Nobody here has this name.
    """
    names = [info.name for info in workspace.annotators()]
    if labels != ALL and labels not in names:
        there = ", ".join([GOLD, ALL, *names])
        raise WorkspaceError(f"--labels {labels!r} is nobody in this workspace; there are: {there}")
    wanted = names if labels == ALL else [labels]
    passes = [p for p in workspace.passes(taxonomy=taxonomy.ref) if p.annotator in wanted]
    chosen = counted_passes(passes, which) if finished_only else _begun_passes(passes, which)
    return _work_of(workspace, taxonomy, chosen.values())


def gold_work(entries: Iterable[GoldEntry], taxonomy: Taxonomy) -> list[LongWork]:
    """Return the gold as the words of somebody called ``gold``, per trace."""
    return [_gold_as_work(entry.trace.trace_id, entry.gold, taxonomy) for entry in entries]


def check_ordered(entries: Iterable[GoldEntry]) -> None:
    """Raise ``UnorderedSpans`` where the order of labelled spans matters and is not known."""
    unordered = [entry for entry in entries if entry.unordered]
    if not unordered:
        return
    labels = sum(entry.unordered for entry in unordered)
    records = [entry.trace for entry in unordered]
    nowhere = [record.trace_id for record in records if record.path is None]
    paths = {record.path: record.path.exists() for record in records if record.path is not None}
    sentences = [
        f"The order of {counted(labels, 'labelled span')} in {counted(len(records), 'trace')} is "
        "unknown, so that places may overlap unseen; nothing was written."
    ]
    if lost := [str(path) for path, there in paths.items() if not there]:
        sentences.append(f"Their trace files were not found (looked in {_some(lost)}).")
    if nowhere:
        sentences.append(f"No file is known of {_some(nowhere)}.")
    if without := [str(path) for path, there in paths.items() if there]:
        sentences.append(f"The spans are not in the traces there ({_some(without)}).")
    raise UnorderedSpans(" ".join(sentences))


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def pseudonymous(work: Iterable[LongWork], pseudonyms: Pseudonyms) -> list[LongWork]:
    """The same words under letters, with ids that no name can be tried on."""
    return [
        replace(
            one,
            annotator=pseudonyms.name(one.annotator),
            labels=[
                structs.replace(
                    label,
                    annotator=pseudonyms.name(label.annotator),
                    id=pseudonyms.id(label.id),
                    suggestion=label.suggestion and pseudonyms.id(label.suggestion),
                )
                for label in one.labels
            ],
            merged=frozenset(map(pseudonyms.id, one.merged)),
        )
        for one in work
    ]


def _begun_passes(passes: Iterable[Pass], which: Which) -> dict[tuple[str, str], Pass]:
    """The first or last reading of each, finished or not; what is no reading is nobody's word."""
    chosen: dict[tuple[str, str], Pass] = {}
    for one in passes:  # they come by number
        key = (one.annotator, one.trace_id)
        if not one.kind.is_reading or (which == "first" and key in chosen):
            continue
        if which == "last" or one.kind is not PassKind.SECOND_LOOK:
            chosen[key] = one
    return chosen


def _work_of(workspace: Workspace, taxonomy: Taxonomy, passes: Iterable[Pass]) -> list[LongWork]:
    labels: dict[tuple[str, str, int], list[Label]] = defaultdict(list)
    for label in workspace.labels(taxonomy=taxonomy.ref, pass_number=None):
        labels[label.annotator, label.trace_id, label.pass_number].append(label)
    verdicts: dict[tuple[str, str, int], dict[str, VerdictValue]] = defaultdict(dict)
    for said in workspace.verdicts(taxonomy=taxonomy.ref, pass_number=None):
        verdicts[said.annotator, said.trace_id, said.pass_number][said.mode] = said.value
    notes = _span_notes(workspace, taxonomy)
    return [
        LongWork(
            annotator=one.annotator,
            trace_id=one.trace_id,
            taxonomy=taxonomy,
            labels=labels[one.annotator, one.trace_id, one.number],
            verdicts=verdicts[one.annotator, one.trace_id, one.number],
            finished_at=one.finished_at,
            notes=notes[one.annotator, one.trace_id, one.number],
        )
        for one in passes
    ]


def _span_notes(
    workspace: Workspace, taxonomy: Taxonomy
) -> Mapping[tuple[str, str, int], Mapping[str, str]]:
    """The notes on spans by annotator, trace and pass, then by the span's key."""
    notes: dict[tuple[str, str, int], dict[str, str]] = defaultdict(dict)
    for note in workspace.span_notes(taxonomy=taxonomy.ref, pass_number=None):
        notes[note.annotator, note.trace_id, note.pass_number][note.key] = note.text
    return notes


def gold_entries(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    annotators: Sequence[str] | None = None,
    majority: bool = False,
    settled_only: bool = False,
) -> list[GoldEntry]:
    """The gold of every trace that somebody finished or adjudicated, by trace id.

    With ``settled_only`` one person's word is left out, and with it every trace of which nothing
    remains.
    """
    orders = SpanOrders(workspace)
    records = {record.trace_id: record for record in workspace.traces()}
    notes = _span_notes(workspace, taxonomy)
    minutes = minutes_worked(workspace, taxonomy)
    entries = [
        GoldEntry(
            trace=records.get(trace_id, TraceRecord(trace_id)),
            gold=words.gold(taxonomy, orders(trace_id), majority=majority),
            sides=words.sides,
            passes=words.passes,
            order=orders(trace_id),
            notes={name: notes[name, trace_id, done.number] for name, done in words.passes.items()},
            minutes={
                name: minutes[name, trace_id, done.number]
                for name, done in words.passes.items()
                if (name, trace_id, done.number) in minutes
            },
            unordered=len(words.unordered(taxonomy, orders(trace_id))),
        )
        for trace_id, words in words_by_trace(workspace, taxonomy, annotators=annotators).items()
    ]
    if not settled_only:
        return entries
    settled = [replace(entry, gold=only_settled(entry.gold)) for entry in entries]
    return [
        entry
        for entry in settled
        if entry.gold.conflicts or any(one.value is not None for one in entry.gold.verdicts)
    ]


def _gold_as_work(trace_id: str, gold: GoldTrace, taxonomy: Taxonomy) -> LongWork:
    """Gold as if somebody called ``gold`` had said it; finished where nothing is left to decide."""
    ids = [f"{label.mode}@{number}" for number, label in enumerate(gold.labels)]
    labels = [
        Label(
            id=label_id,
            annotator=GOLD,
            trace_id=trace_id,
            taxonomy=taxonomy.ref,
            mode=label.mode,
            target=label.target,
            note="\n".join(note for _, note in label.notes),
            severity=label.severity,
            origin=Origin.IMPORTED,
            saw_suggestions=label.judge_seen,
            created_at=label.decided_at or "",
        )
        for label_id, label in zip(ids, gold.labels, strict=True)
    ]
    merged = (label_id for label_id, label in zip(ids, gold.labels, strict=True) if label.merged)
    settled = {v.mode: v.value for v in gold.verdicts if v.value is not None}
    return LongWork(
        annotator=GOLD,
        trace_id=trace_id,
        taxonomy=taxonomy,
        labels=labels,
        verdicts=settled,
        finished_at=None if gold.conflicts else "",
        merged=frozenset(merged),
    )

"""The work of annotators on which the gold of a trace depends, and letters in place of names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from string import ascii_uppercase
from typing import Literal

from mast_tui.gold import Decision, GoldTrace, Order, gold_of_trace, no_order
from mast_tui.gold.overlaps import unordered_labels
from mast_tui.grouping import values_by_key
from mast_tui.labels import (
    Label,
    Pass,
    SpanNote,
    TraceWork,
    Verdict,
    annotator_kind,
    counted_passes,
)
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace.queries import OfPass
from mast_tui.workspace.store import Workspace


@dataclass(frozen=True, slots=True)
class TraceSides:
    """The work of annotators (the sides) on one trace, and the decisions of adjudicators.

    ``boundaries`` is True if overlapping places with different ends are a conflict.
    """

    trace_id: str
    sides: tuple[TraceWork, ...] = ()
    passes: Mapping[str, Pass] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    boundaries: bool = False

    def gold(
        self,
        taxonomy: Taxonomy,
        order: Order = no_order,
        *,
        majority: bool = False,
    ) -> GoldTrace:
        """Return the gold of the trace.

        Args:
            taxonomy: The taxonomy.
            order: Returns the index of a span by its key; None if unknown.
            majority: True if a majority resolves a verdict.
        """
        modes = [mode.slug for mode in taxonomy.modes]
        return gold_of_trace(
            self.sides,
            self.decisions,
            modes,
            order,
            majority=majority,
            boundaries=self.boundaries,
        )

    def labels_of_unknown_order(self, taxonomy: Taxonomy, order: Order) -> tuple[Label, ...]:
        """Return the labels with unknown overlaps, because the order of spans is unknown.

        Args:
            taxonomy: The taxonomy.
            order: Returns the index of a span by its key; None if unknown.
        """
        modes = [mode.slug for mode in taxonomy.modes]
        return unordered_labels(self.sides, self.decisions, modes, order)


def read_work_by_trace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    annotators: Collection[str] | None = None,
    trace_id: str | None = None,
) -> dict[str, TraceSides]:
    """Return the annotators' work on each finished or adjudicated trace, by trace id.

    A side of a trace is an annotator's last finished pass. Without ``annotators`` the sides are all
    people in the taxonomy's study, or all people without a study. Decisions from before a study, by
    people outside it, do not count if the study names adjudicators.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        annotators: The names of the sides; None for all people.
        trace_id: Only this trace; None for all.
    """
    ref = taxonomy.ref
    study = workspace.study(ref)
    passes = counted_passes(workspace.passes(trace_id=trace_id, taxonomy=ref), "last")
    outside = workspace.outside_study(ref)

    def is_side(work: TraceWork) -> bool:
        if annotators is not None:
            return work.annotator in annotators
        return work.author_kind.is_person and work.annotator not in outside

    sorted_passes = [finished_pass for _key, finished_pass in sorted(passes.items())]
    works = work_of_passes(workspace, ref, sorted_passes, pass_number="finished", trace_id=trace_id)
    decisions = {
        trace: tuple(
            decision
            for decision in trace_decisions
            if study is None or study.counts_decisions_of(decision.decided_by)
        )
        for trace, trace_decisions in workspace.all_decisions(ref, trace_id=trace_id).items()
    }
    sides_by_trace: dict[str, list[TraceWork]] = {
        trace: [] for trace, counted_decisions in decisions.items() if counted_decisions
    }
    sides_by_trace |= values_by_key((work.trace_id, work) for work in works if is_side(work))
    return {
        trace: TraceSides(
            trace,
            tuple(sides),
            {side.annotator: passes[side.annotator, trace] for side in sides},
            decisions.get(trace, ()),
            boundaries=study is not None and study.boundaries,
        )
        for trace, sides in sorted(sides_by_trace.items())
    }


def read_sides(
    workspace: Workspace,
    taxonomy: Taxonomy,
    trace_id: str,
    *,
    annotators: Collection[str] | None = None,
) -> TraceSides:
    """Return the annotators' work on one trace, without sides if no one has finished it.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        trace_id: The trace.
        annotators: The names of the sides; None for all people.
    """
    work_by_trace = read_work_by_trace(
        workspace, taxonomy, annotators=annotators, trace_id=trace_id
    )
    return work_by_trace.get(trace_id, TraceSides(trace_id))


def work_of_passes(
    workspace: Workspace,
    taxonomy: str,
    passes: Iterable[Pass],
    *,
    pass_number: Literal["finished"] | None,
    trace_id: str | None = None,
) -> list[TraceWork]:
    """Return the labels, verdicts and notes of passes, in the order of ``passes``.

    Args:
        workspace: The workspace.
        taxonomy: The reference of the taxonomy of the passes.
        passes: The passes.
        pass_number: ``finished`` if all ``passes`` are last finished passes, which is faster; None
            for other passes.
        trace_id: Only this trace; None for all.
    """
    kinds = {info.name: info.kind for info in workspace.annotators()}
    works = {
        (trace_pass.annotator, trace_pass.trace_id, trace_pass.number): TraceWork(
            trace_pass.annotator,
            trace_pass.trace_id,
            taxonomy,
            kinds.get(trace_pass.annotator, annotator_kind(trace_pass.annotator)),
            finished_at=trace_pass.finished_at,
            judge_seen=trace_pass.judge_seen,
        )
        for trace_pass in passes
    }
    filters: OfPass = {"trace_id": trace_id, "taxonomy": taxonomy, "pass_number": pass_number}
    for label in workspace.labels(**filters):
        if (work := works.get(_pass_key(label))) is not None:
            work.labels[label.id] = label
    for verdict in workspace.verdicts(**filters):
        if (work := works.get(_pass_key(verdict))) is not None:
            work.verdicts[verdict.mode] = verdict.value
    for note in workspace.span_notes(**filters):
        if (work := works.get(_pass_key(note))) is not None:
            work.notes[note.key] = note.text
    return list(works.values())


def _pass_key(row: Label | Verdict | SpanNote) -> tuple[str, str, int]:
    return row.annotator, row.trace_id, row.pass_number


def letters(trace_id: str, names: Iterable[str], seed: int = 0) -> dict[str, str]:
    """Return a letter from ``A`` on for each name, in a random order for this trace.

    The order follows from the trace, the names and ``seed``, so it is the same on every machine.

    Args:
        trace_id: The trace's id.
        names: The names of the sides.
        seed: A number that determines the order.
    """
    shuffled_names = sorted(
        set(names), key=lambda name: sha256(f"{seed}\n{trace_id}\n{name}".encode()).digest()
    )
    return {name: _letter_at(index) for index, name in enumerate(shuffled_names)}


def _letter_at(index: int) -> str:
    """Return the letter at an index: ``A`` to ``Z``, then ``A2`` to ``Z2`` and so on."""
    round_index, letter_index = divmod(index, len(ascii_uppercase))
    suffix = str(round_index + 1) if round_index else ""
    return ascii_uppercase[letter_index] + suffix

"""The verdicts of a judge, and the reference that it is compared with: gold, or one annotator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_tui.errors import WorkspaceError
from mast_tui.figures.record import FigureScope, Sources
from mast_tui.gold.model import GoldTrace, Resolution
from mast_tui.gold.overlaps import Order, no_orders
from mast_tui.gold.sources import only_settled
from mast_tui.labels import (
    AnnotatorKind,
    Label,
    Pass,
    PassKind,
    Review,
    Target,
    VerdictValue,
    annotator_kind,
)
from mast_tui.passes import Which, counted_passes, finished_by
from mast_tui.study import Study

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

GOLD = "gold"

Unit = tuple[str, str]
"""A trace id and the slug of a mode."""

ModeNames = tuple[str, str, str]
"""The slug, code and name of a mode."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The verdicts and places that a judge is compared with.

    ``seen`` are the units whose verdict was made with a judge on screen. ``places`` are the labels'
    places, without those on whole traces. ``unresolved`` are the units on which annotators differ
    and no one has decided. ``sources`` tells how verdicts of gold came about, and ``sides`` who
    gave them; with ``settled_only`` verdicts of one annotator were left out. ``not_in_study``
    counts the finished traces of annotators outside the study, who are no sides of the gold.
    ``merged`` are the places that join different places of several annotators.
    """

    name: str
    verdicts: Mapping[Unit, VerdictValue]
    seen: frozenset[Unit] = frozenset()
    places: Mapping[Unit, tuple[Target, ...]] = field(default_factory=dict)
    unresolved: frozenset[Unit] = frozenset()
    sources: Mapping[Unit, Resolution] = field(default_factory=dict)
    sides: Mapping[Unit, tuple[str, ...]] = field(default_factory=dict)
    settled_only: bool = False
    not_in_study: Mapping[str, int] = field(default_factory=dict)
    merged: Mapping[Unit, frozenset[Target]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AssistedPass:
    """The finished first pass of an annotator in a study that shows suggestions.

    With ``withheld`` they were hidden, with ``judge_seen`` some were on screen. ``labels`` counts
    the annotator's labels by mode.
    """

    annotator: str
    trace_id: str
    withheld: bool
    judge_seen: bool
    verdicts: Mapping[str, VerdictValue]
    labels: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class JudgedBeyond:
    """The verdicts of a judge on ``traces`` that are not in the workspace.

    ``verdicts`` counts by the slug of a mode the traces called present, absent and unsure.
    """

    traces: int = 0
    verdicts: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgeInput:
    """The input of a report on one judge.

    ``modes`` are in the taxonomy's order. ``verdicts`` are the judge's, on the modes that it judges
    only; ``suggestions`` are its labels and ``reviews`` annotators' answers to them. ``examples``
    are the traces in its prompt, which do not count. ``unlabelled`` are the traces that only the
    judge has judged. ``order_of`` returns the order of a trace's spans. ``study`` has the chances
    with which traces were drawn. ``beyond`` counts verdicts on traces that are only in shards.
    ``unfinished`` counts the traces that the judge has begun and not finished; only its suggestions
    on them count.
    """

    taxonomy_ref: str
    modes: tuple[ModeNames, ...]
    judge: str
    verdicts: Mapping[Unit, VerdictValue]
    reference: Reference
    suggestions: tuple[Label, ...] = ()
    reviews: tuple[Review, ...] = ()
    examples: frozenset[str] = frozenset()
    unlabelled: frozenset[str] = frozenset()
    passes: tuple[AssistedPass, ...] = ()
    order_of: Callable[[str], Order] = no_orders
    study: Study | None = None
    beyond: JudgedBeyond = field(default_factory=JudgedBeyond)
    unfinished: int = 0

    @property
    def slugs(self) -> list[str]:
        """The slugs of the modes."""
        return [slug for slug, _, _ in self.modes]

    def scope(
        self, name: str, slugs: Sequence[str], *, mode: str = "", group: str = ""
    ) -> FigureScope:
        """Return a scope of figures on this judge.

        Args:
            name: The name of the scope.
            slugs: The modes whose traces its figures rest on.
            mode: The code of a mode.
            group: The bin of confidence, or the group of traces.
        """
        subject = (self.judge,)
        sources = Sources("judge", tuple(slugs), subject, group)
        return FigureScope(name, self.taxonomy_ref, group, mode, subject, sources)


def judge_input_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    judge: str,
    against: str = GOLD,
    *,
    gold: Mapping[str, GoldTrace] | None = None,
    order_of: Callable[[str], Order] = no_orders,
    which: Which = "first",
    traces: Container[str] | None = None,
    settled_only: bool = False,
) -> JudgeInput:
    """Read the verdicts of a judge, and the gold or one annotator's finished passes.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        judge: The name of the judge.
        against: The reference: ``gold``, or the name of an annotator.
        gold: The gold by trace id, for the reference ``gold``.
        order_of: Returns the order of a trace's spans.
        which: The pass of an annotator that counts.
        traces: The ids of the traces on which labels of others may be shown; None for all.
        settled_only: Whether verdicts of one annotator are left out of the gold.

    Raises:
        WorkspaceError: There is no such annotator, or it is no judge.
        ValueError: The reference is gold, and ``gold`` is missing.
    """
    if against == GOLD and gold is None:
        raise ValueError("a judge can be compared with gold only if the gold is given")
    _check(workspace, judge, against)
    ref = taxonomy.ref
    passes = workspace.passes(taxonomy=ref)
    outside = workspace.outside_study(ref) - {against}
    of_people = [labelling for labelling in passes if annotator_kind(labelling.annotator).is_person]
    # A trace that anyone has labelled is no longer the judge's alone, even if it is hidden.
    labelled = {labelling.trace_id for labelling in of_people if labelling.finished}
    visible = [
        labelling for labelling in of_people if traces is None or labelling.trace_id in traces
    ]
    people = [labelling for labelling in visible if labelling.annotator not in outside]
    judged = {
        (judgement.trace_id, mode)
        for judgement in workspace.judgements(annotator=judge, taxonomy=ref)
        for mode in judgement.looks_at
    }
    judged_traces = {trace for trace, _ in judged}
    verdicts = {
        (verdict.trace_id, verdict.mode): verdict.value
        for verdict in workspace.verdicts(annotator=judge, taxonomy=ref)
        if (verdict.trace_id, verdict.mode) in judged
    }
    if against == GOLD:
        gold = gold or {}
        chosen = {
            trace: of_trace for trace, of_trace in gold.items() if traces is None or trace in traces
        }
        not_in_study = finished_by(outside, counted_passes(visible, "last"))
        reference = _reference_of_gold(chosen, settled_only, not_in_study)
        labelled |= gold.keys()
    else:
        reference = _reference_of_person(workspace, ref, against, people, which)
    return JudgeInput(
        taxonomy_ref=ref,
        modes=tuple((mode.slug, mode.code, mode.name) for mode in taxonomy.modes),
        judge=judge,
        verdicts=verdicts,
        reference=reference,
        suggestions=workspace.labels(annotator=judge, taxonomy=ref),
        reviews=tuple(
            review
            for review in workspace.reviews(taxonomy=ref, pass_number=None)
            if traces is None or review.trace_id in traces
        ),
        examples=workspace.run_examples(judge),
        unlabelled=frozenset(judged_traces - labelled),
        passes=_assisted(workspace, ref, people),
        order_of=order_of,
        study=workspace.study(ref),
        unfinished=len(
            {labelling.trace_id for labelling in passes if labelling.annotator == judge}
            - judged_traces
        ),
    )


def _check(workspace: Workspace, judge: str, against: str) -> None:
    kinds = {info.name: info.kind for info in workspace.annotators()}
    if kinds.get(judge) is not AnnotatorKind.JUDGE:
        judges = ", ".join(name for name, kind in kinds.items() if kind is AnnotatorKind.JUDGE)
        raise WorkspaceError(
            f"no judge {judge!r} in this workspace; there are: {judges or 'none yet'}"
        )
    if against != GOLD and against not in kinds:
        names = ", ".join(kinds) or "nobody yet"
        raise WorkspaceError(f"no annotator {against!r} in this workspace; there are: {names}")
    if against != GOLD and not kinds[against].is_person:
        raise WorkspaceError(
            f"{against}: the labels of judges and agents are no reference; name gold or a person"
        )


def _reference_of_gold(
    gold: Mapping[str, GoldTrace], settled_only: bool, not_in_study: Mapping[str, int]
) -> Reference:
    verdicts: dict[Unit, VerdictValue] = {}
    places: dict[Unit, tuple[Target, ...]] = {}
    merged: dict[Unit, frozenset[Target]] = {}
    seen: set[Unit] = set()
    unresolved: set[Unit] = set()
    sources: dict[Unit, Resolution] = {}
    sides: dict[Unit, tuple[str, ...]] = {}
    for trace_id, whole_gold in gold.items():
        settled = only_settled(whole_gold) if settled_only else whole_gold
        for verdict in settled.verdicts:
            unit = (trace_id, verdict.mode)
            if verdict.value is not None:
                verdicts[unit] = verdict.value
                sources[unit] = verdict.source
                sides[unit] = tuple(
                    name for name, value in verdict.sides.items() if value is not None
                )
                if verdict.judge_seen:
                    seen.add(unit)
            elif verdict.source is not Resolution.SINGLE and any(
                value is not None for value in verdict.sides.values()
            ):
                unresolved.add(unit)
        for label in settled.labels:
            if not label.target.is_whole:
                unit = (trace_id, label.mode)
                places[unit] = (*places.get(unit, ()), label.target)
                if label.merged:
                    merged[unit] = merged.get(unit, frozenset()) | {label.target}
    return Reference(
        GOLD,
        verdicts,
        frozenset(seen),
        places,
        frozenset(unresolved),
        sources,
        sides,
        settled_only,
        not_in_study,
        merged,
    )


def _reference_of_person(
    workspace: Workspace, ref: str, name: str, passes: list[Pass], which: Which
) -> Reference:
    of_person = [labelling for labelling in passes if labelling.annotator == name]
    counted = {
        trace_id: labelling for (_, trace_id), labelling in counted_passes(of_person, which).items()
    }
    verdicts = {
        (verdict.trace_id, verdict.mode): verdict.value
        for verdict in workspace.verdicts(annotator=name, taxonomy=ref, pass_number=None)
        if verdict.trace_id in counted and counted[verdict.trace_id].number == verdict.pass_number
    }
    places: dict[Unit, tuple[Target, ...]] = {}
    seen = {unit for unit in verdicts if counted[unit[0]].judge_seen}
    for label in workspace.labels(annotator=name, taxonomy=ref, pass_number=None):
        labelling = counted.get(label.trace_id)
        if labelling is None or labelling.number != label.pass_number:
            continue
        unit = (label.trace_id, label.mode)
        if label.saw_suggestions:
            seen.add(unit)
        if not label.target.is_whole:
            places[unit] = (*places.get(unit, ()), label.target)
    return Reference(name, verdicts, frozenset(seen), places)


def _assisted(workspace: Workspace, ref: str, passes: list[Pass]) -> tuple[AssistedPass, ...]:
    """Return the finished first passes of annotators who had suggestions hidden on some trace."""
    assisted = [labelling for labelling in passes if labelling.kind is PassKind.ASSISTED]
    first = counted_passes(assisted, "first")
    names = {name for (name, _), labelling in first.items() if labelling.withheld}
    verdicts: dict[Unit, dict[str, VerdictValue]] = {}
    labels: dict[Unit, Counter[str]] = {}
    for name in sorted(names):
        for verdict in workspace.verdicts(annotator=name, taxonomy=ref, pass_number=None):
            key = (name, verdict.trace_id)
            if key in first and first[key].number == verdict.pass_number:
                verdicts.setdefault(key, {})[verdict.mode] = verdict.value
        for label in workspace.labels(annotator=name, taxonomy=ref, pass_number=None):
            key = (name, label.trace_id)
            if key in first and first[key].number == label.pass_number:
                labels.setdefault(key, Counter())[label.mode] += 1
    return tuple(
        AssistedPass(
            name,
            trace,
            labelling.withheld,
            labelling.judge_seen,
            verdicts.get((name, trace), {}),
            labels.get((name, trace), Counter()),
        )
        for (name, trace), labelling in sorted(first.items())
        if name in names
    )

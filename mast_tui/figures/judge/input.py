"""The verdicts of a judge and of its reference: the gold, or one annotator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from mast_tui.errors import WorkspaceError
from mast_tui.figures.record import FigureScope, Sources
from mast_tui.gold.model import GoldLabel, GoldTrace, Resolution, only_settled
from mast_tui.gold.overlaps import Order, no_orders
from mast_tui.labels import (
    GOLD,
    AnnotatorKind,
    Label,
    Pass,
    PassKind,
    Review,
    Target,
    Verdict,
    VerdictValue,
    Which,
    annotator_kind,
    counted_passes,
    finished_by,
)
from mast_tui.study import Study

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Mode, Taxonomy
    from mast_tui.workspace import Workspace

Unit = tuple[str, str]
"""A trace id and the slug of a mode."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The verdicts and places of a judge's reference. A unit is (trace id, mode).

    Attributes:
        name: ``gold``, or the name of a person.
        verdicts: The verdict on each unit.
        seen: The units whose verdict was made with a judge on screen.
        places: The places of labels, without labels on whole traces.
        unresolved: The units on which annotators differ and no one has decided.
        sources: The way in which each gold verdict was reached.
        sides: The annotators who gave a verdict on each unit.
        settled_only: Whether verdicts of a single annotator were left out.
        not_in_study: The number of finished traces of each annotator outside the study.
        merged: The places that join different places of several annotators.
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
    """The finished first pass of an annotator in a study that shows or hides suggestions.

    Attributes:
        annotator: The name of the annotator.
        trace_id: The id of the trace.
        withheld: Whether suggestions were hidden.
        judge_seen: Whether some suggestions were on screen.
        verdicts: The verdict on each mode.
        labels: The number of labels of each mode.
        number: The number of the pass.
        minutes: The minutes of work; None if they are unknown or were not read.
        suggested: The modes that a judge suggests in the trace; None if no judge has judged it, or
            if suggestions were not read.
    """

    annotator: str
    trace_id: str
    withheld: bool
    judge_seen: bool
    verdicts: Mapping[str, VerdictValue]
    labels: Mapping[str, int]
    number: int = 1
    minutes: float | None = None
    suggested: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class JudgedOutsideWorkspace:
    """The verdicts of a judge on traces that are not in the workspace.

    ``verdicts`` has the numbers of traces called present, absent and unsure, by the slug of the
    mode.
    """

    traces: int = 0
    verdicts: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgeInput:
    """The input of a report on one judge.

    Attributes:
        taxonomy_ref: The taxonomy, as ``id@version``.
        modes: The modes, in the taxonomy's order.
        judge: The name of the judge.
        verdicts: The judge's verdicts, on the modes that it judges.
        reference: The verdicts that the judge is compared with.
        suggestions: The judge's labels.
        reviews: The answers of annotators to the suggestions.
        examples: The traces in the judge's prompt, which do not count.
        unlabelled: The traces that only the judge has judged.
        passes: The annotators' passes in a study that shows or hides suggestions.
        order_of: Returns the order of a trace's spans by the trace's id.
        study: The study, which has the chances with which traces were drawn.
        outside_workspace: The judge's verdicts on traces that are only in shards.
        unfinished: The number of traces that the judge has begun and not finished.
    """

    taxonomy_ref: str
    modes: tuple[Mode, ...]
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
    outside_workspace: JudgedOutsideWorkspace = field(default_factory=JudgedOutsideWorkspace)
    unfinished: int = 0

    @property
    def slugs(self) -> list[str]:
        """The slugs of the modes."""
        return [mode.slug for mode in self.modes]

    def scope(
        self, name: str, slugs: Sequence[str], *, mode: str = "", group: str = ""
    ) -> FigureScope:
        """Return a scope of figures on this judge.

        Args:
            name: The name of the scope.
            slugs: The slugs of the modes on which its figures rest.
            mode: The code of a mode; empty for figures over several modes.
            group: A range of confidence, or a group of traces; empty for all.
        """
        subject = (self.judge,)
        sources = Sources("judge", tuple(slugs), subject, group)
        return FigureScope(name, self.taxonomy_ref, group, mode, subject, sources)


@dataclass(frozen=True, slots=True)
class GoldReference:
    """The gold by trace id, as the reference of a judge.

    ``settled_only`` leaves out verdicts of a single annotator.
    """

    gold: Mapping[str, GoldTrace]
    settled_only: bool = False


def judge_input_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    judge: str,
    against: GoldReference | str,
    *,
    order_of: Callable[[str], Order] = no_orders,
    which: Which = "first",
    traces: Container[str] | None = None,
    viewer: str | None = None,
) -> JudgeInput:
    """Read the verdicts of a judge and of its reference: the gold, or an annotator's passes.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        judge: The name of the judge.
        against: The reference: the gold, or the name of an annotator.
        order_of: Returns the order of a trace's spans, by the trace's id.
        which: The pass of the annotator that counts; the gold always rests on last passes.
        traces: The ids of the traces whose labels by people may be shown; None for all.
        viewer: The annotator for whom the figures are, whose own answers always count.

    Raises:
        WorkspaceError: There is no such judge, or ``against`` is no person.
    """
    _check_names(workspace, judge, against)
    ref = taxonomy.ref
    passes = workspace.passes(taxonomy=ref)
    passes_of_people = [
        labelling for labelling in passes if annotator_kind(labelling.annotator).is_person
    ]
    visible_passes = [
        labelling
        for labelling in passes_of_people
        if traces is None or labelling.trace_id in traces
    ]
    # Labels of people outside the study do not count, unless one of them is the reference.
    outside_names = {name for name in workspace.outside_study(ref) if name != against}
    study_passes = [
        labelling for labelling in visible_passes if labelling.annotator not in outside_names
    ]
    if isinstance(against, GoldReference):
        not_in_study = finished_by(outside_names, counted_passes(visible_passes, "last"))
        reference = _reference_of_gold(against, traces, not_in_study)
    else:
        reference = _reference_of_person(workspace, ref, against, study_passes, which)
    judged_modes = {
        judgement.trace_id: judgement.looks_at
        for judgement in workspace.judgements(annotator=judge, taxonomy=ref)
        if judgement.looks_at
    }
    # An interrupted judge has a pass on the trace, but no judgement.
    begun_traces = {labelling.trace_id for labelling in passes if labelling.annotator == judge}
    return JudgeInput(
        taxonomy_ref=ref,
        modes=taxonomy.modes,
        judge=judge,
        verdicts={
            (verdict.trace_id, verdict.mode): verdict.value
            for verdict in workspace.verdicts(annotator=judge, taxonomy=ref)
            if verdict.mode in judged_modes.get(verdict.trace_id, ())
        },
        reference=reference,
        suggestions=workspace.labels(annotator=judge, taxonomy=ref),
        reviews=tuple(
            review
            for review in workspace.reviews(taxonomy=ref, pass_number=None)
            if traces is None or review.trace_id in traces or review.annotator == viewer
        ),
        examples=workspace.unmeasured_traces(judge),
        unlabelled=frozenset(judged_modes.keys() - _labelled_traces(passes_of_people, against)),
        passes=assisted_passes(workspace, ref, study_passes, only_if_some_hidden=True),
        order_of=order_of,
        study=workspace.study(ref),
        unfinished=len(begun_traces - judged_modes.keys()),
    )


def _check_names(workspace: Workspace, judge: str, against: GoldReference | str) -> None:
    """Raise WorkspaceError if ``judge`` is no judge, or ``against`` neither gold nor a person."""
    kinds = {info.name: info.kind for info in workspace.annotators()}
    if kinds.get(judge) is not AnnotatorKind.JUDGE:
        judges = ", ".join(name for name, kind in kinds.items() if kind is AnnotatorKind.JUDGE)
        raise WorkspaceError(
            f"no judge {judge!r} in this workspace; there are: {judges or 'none yet'}"
        )
    if isinstance(against, GoldReference):
        return
    workspace.check_annotators(against)
    if not kinds[against].is_person:
        raise WorkspaceError(
            f"{against}: a judge or an agent cannot be the reference; name gold or a person"
        )


def _labelled_traces(passes_of_people: Iterable[Pass], against: GoldReference | str) -> set[str]:
    """Return the traces that people have finished, and those of the gold.

    Hidden traces are among them, so that no trace counts as unlabelled by mistake.
    """
    finished = {labelling.trace_id for labelling in passes_of_people if labelling.finished}
    return finished | against.gold.keys() if isinstance(against, GoldReference) else finished


def _reference_of_gold(
    against: GoldReference, visible: Container[str] | None, not_in_study: Mapping[str, int]
) -> Reference:
    """Collect the verdicts, places and sources of the visible gold, and the unresolved units."""
    counted_gold = {
        trace_id: only_settled(gold_trace) if against.settled_only else gold_trace
        for trace_id, gold_trace in against.gold.items()
        if visible is None or trace_id in visible
    }
    all_verdicts = {
        (trace_id, verdict.mode): verdict
        for trace_id, gold_trace in counted_gold.items()
        for verdict in gold_trace.verdicts
    }
    verdicts = {
        unit: verdict for unit, verdict in all_verdicts.items() if verdict.value is not None
    }
    labels = [
        (trace_id, label) for trace_id in counted_gold for label in counted_gold[trace_id].labels
    ]
    merged = [(trace_id, label) for trace_id, label in labels if label.merged]
    return Reference(
        name=GOLD,
        verdicts={unit: verdict.value for unit, verdict in verdicts.items() if verdict.value},
        seen=frozenset(unit for unit, verdict in verdicts.items() if verdict.judge_seen),
        places=_places_by_unit(labels),
        # Annotators differ, and no one has decided. A mode that all left open is no disagreement.
        unresolved=frozenset(
            unit
            for unit, verdict in all_verdicts.items()
            if verdict.value is None
            and verdict.source is not Resolution.SINGLE
            and any(value is not None for value in verdict.sides.values())
        ),
        sources={unit: verdict.source for unit, verdict in verdicts.items()},
        sides={
            unit: tuple(name for name, value in verdict.sides.items() if value is not None)
            for unit, verdict in verdicts.items()
        },
        settled_only=against.settled_only,
        not_in_study=not_in_study,
        merged={unit: frozenset(places) for unit, places in _places_by_unit(merged).items()},
    )


def _places_by_unit(
    labels: Iterable[tuple[str, Label | GoldLabel]],
) -> dict[Unit, tuple[Target, ...]]:
    """Return the places of labels, without labels on whole traces; each label has its trace id."""
    places: dict[Unit, tuple[Target, ...]] = {}
    for trace_id, label in labels:
        if not label.target.is_whole:
            unit = (trace_id, label.mode)
            places[unit] = (*places.get(unit, ()), label.target)
    return places


_Record = TypeVar("_Record", Label, Verdict)


def _in_passes(records: Iterable[_Record], passes: Mapping[str, Pass]) -> Iterator[_Record]:
    """Yield the labels or verdicts of one annotator in the passes that count, given by trace id."""
    for record in records:
        labelling = passes.get(record.trace_id)
        if labelling is not None and labelling.number == record.pass_number:
            yield record


def _reference_of_person(
    workspace: Workspace, ref: str, name: str, passes: list[Pass], which: Which
) -> Reference:
    """Collect one person's verdicts and places of labels from the passes that count."""
    own_passes = [labelling for labelling in passes if labelling.annotator == name]
    pass_by_trace = {
        trace_id: labelling
        for (_, trace_id), labelling in counted_passes(own_passes, which).items()
    }
    all_verdicts = workspace.verdicts(annotator=name, taxonomy=ref, pass_number=None)
    verdicts = {
        (verdict.trace_id, verdict.mode): verdict.value
        for verdict in _in_passes(all_verdicts, pass_by_trace)
    }
    all_labels = workspace.labels(annotator=name, taxonomy=ref, pass_number=None)
    labels = [(label.trace_id, label) for label in _in_passes(all_labels, pass_by_trace)]
    in_seen_passes = {unit for unit in verdicts if pass_by_trace[unit[0]].judge_seen}
    with_seen_labels = {(trace, label.mode) for trace, label in labels if label.saw_suggestions}
    return Reference(
        name, verdicts, frozenset(in_seen_passes | with_seen_labels), _places_by_unit(labels)
    )


def assisted_passes(
    workspace: Workspace, ref: str, passes: Iterable[Pass], *, only_if_some_hidden: bool = False
) -> tuple[AssistedPass, ...]:
    """Return the finished first passes of a study that shows or hides a judge's suggestions.

    Args:
        workspace: The workspace.
        ref: The taxonomy, as ``id@version``.
        passes: The passes to choose from.
        only_if_some_hidden: Whether to leave out annotators without hidden suggestions.
    """
    assisted = [labelling for labelling in passes if labelling.kind is PassKind.ASSISTED]
    passes_by_name: dict[str, dict[str, Pass]] = {}
    for (name, trace_id), labelling in sorted(counted_passes(assisted, "first").items()):
        passes_by_name.setdefault(name, {})[trace_id] = labelling
    study_passes: list[AssistedPass] = []
    for name, pass_by_trace in passes_by_name.items():
        hides_some = any(labelling.withheld for labelling in pass_by_trace.values())
        if hides_some or not only_if_some_hidden:
            study_passes += _assisted_passes_of(workspace, ref, name, pass_by_trace)
    return tuple(study_passes)


def _assisted_passes_of(
    workspace: Workspace, ref: str, name: str, pass_by_trace: Mapping[str, Pass]
) -> Iterator[AssistedPass]:
    """Yield the passes of one annotator with their verdicts and numbers of labels."""
    verdicts: dict[str, dict[str, VerdictValue]] = {trace_id: {} for trace_id in pass_by_trace}
    all_verdicts = workspace.verdicts(annotator=name, taxonomy=ref, pass_number=None)
    for verdict in _in_passes(all_verdicts, pass_by_trace):
        verdicts[verdict.trace_id][verdict.mode] = verdict.value
    label_counts: dict[str, Counter[str]] = {trace_id: Counter() for trace_id in pass_by_trace}
    all_labels = workspace.labels(annotator=name, taxonomy=ref, pass_number=None)
    for label in _in_passes(all_labels, pass_by_trace):
        label_counts[label.trace_id][label.mode] += 1
    for trace_id, labelling in pass_by_trace.items():
        yield AssistedPass(
            annotator=name,
            trace_id=trace_id,
            withheld=labelling.withheld,
            judge_seen=labelling.judge_seen,
            verdicts=verdicts[trace_id],
            labels=label_counts[trace_id],
            number=labelling.number,
        )

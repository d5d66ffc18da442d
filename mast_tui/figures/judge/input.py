"""What a judge said and what it is measured by: gold, or one person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_tui.errors import WorkspaceError
from mast_tui.figures.record import FigureScope, Sources
from mast_tui.gold.model import GoldTrace, Source
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
    """The word that a judge is measured by.

    ``seen`` are the verdicts that somebody came to with a judge on screen. ``places`` are where
    the modes show, without labels on whole traces. ``unresolved`` is what people have spoken of and
    nobody has settled. ``sources`` says how verdicts of gold came about, and ``sides`` whose they
    are; with ``settled_only`` those of one person were left out. ``not_in_study`` is how many
    traces those have finished who have no part in the study, and so none in gold.
    ``merged`` are those of the places that cover different ones of several annotators.
    """

    name: str
    verdicts: Mapping[Unit, VerdictValue]
    seen: frozenset[Unit] = frozenset()
    places: Mapping[Unit, tuple[Target, ...]] = field(default_factory=dict)
    unresolved: frozenset[Unit] = frozenset()
    sources: Mapping[Unit, Source] = field(default_factory=dict)
    sides: Mapping[Unit, tuple[str, ...]] = field(default_factory=dict)
    settled_only: bool = False
    not_in_study: Mapping[str, int] = field(default_factory=dict)
    merged: Mapping[Unit, frozenset[Target]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AssistedPass:
    """One person's finished first pass in a study that shows suggestions.

    ``withheld`` says that they were kept back, ``judge_seen`` that some were on screen. ``labels``
    counts the person's labels by mode.
    """

    annotator: str
    trace_id: str
    withheld: bool
    judge_seen: bool
    verdicts: Mapping[str, VerdictValue]
    labels: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class JudgedBeyond:
    """What a judge said of ``traces`` that are not in the workspace.

    ``verdicts`` are by the slug of a mode how many it calls present and absent, and of how many it
    is unsure.
    """

    traces: int = 0
    verdicts: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgeInput:
    """All that a report on one judge rests on.

    ``modes`` are (slug, code, name) in the taxonomy's order. ``verdicts`` are the judge's, on the
    modes that it looks at only; ``suggestions`` its labels and ``reviews`` people's answers to
    them. ``examples`` are the traces that stood in its prompt; nothing of them is counted.
    ``unlabelled`` are the traces that only the judge has judged:
    nobody has finished them. ``order_of`` gives the order of a
    trace's spans. ``study`` tells with which chances traces were drawn. ``beyond`` counts what the
    judge said of traces that are only in shards. ``unfinished`` counts the traces that the judge
    has begun and not finished; nothing of them is counted but its suggestions.
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
    """Read a judge beside the gold, or beside one person's finished passes.

    Args:
        workspace: Where their words are.
        taxonomy: Under which taxonomy.
        judge: The judge's name.
        against: ``gold``, or a person's name.
        gold: The gold of every trace that has any, by trace id; needed where it is measured by it.
        order_of: Gives the order of a trace's spans.
        which: Which pass of a person counts.
        traces: Those of which others' words may be seen; None for all.
        settled_only: Whether what is one person's word is left out of the gold.

    Raises:
        WorkspaceError: Nobody here has such a name, or it is no judge's.
        ValueError: The gold that is asked for was not given.
    """
    if against == GOLD and gold is None:
        raise ValueError("a judge can be held against gold only where the gold is given")
    _check(workspace, judge, against)
    ref = taxonomy.ref
    passes = workspace.passes(taxonomy=ref)
    outside = workspace.outside_study(ref) - {against}
    of_people = [
        one
        for one in passes
        if annotator_kind(one.annotator).is_person and (traces is None or one.trace_id in traces)
    ]
    people = [one for one in of_people if one.annotator not in outside]
    # What anybody has labelled is no longer the judge's alone, whoever may see it.
    met = {
        one.trace_id for one in passes if one.finished and annotator_kind(one.annotator).is_person
    }
    looked = {
        (one.trace_id, mode)
        for one in workspace.judgements(annotator=judge, taxonomy=ref)
        for mode in one.looks_at
    }
    said = workspace.verdicts(annotator=judge, taxonomy=ref)
    verdicts = {(v.trace_id, v.mode): v.value for v in said if (v.trace_id, v.mode) in looked}
    if against == GOLD:
        chosen = {t: g for t, g in (gold or {}).items() if traces is None or t in traces}
        not_in_study = finished_by(outside, counted_passes(of_people, "last"))
        reference = _reference_of_gold(chosen, settled_only, not_in_study)
        met |= (gold or {}).keys()
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
        unlabelled=frozenset(trace for trace, _ in looked) - met,
        passes=_assisted(workspace, ref, people),
        order_of=order_of,
        study=workspace.study(ref),
        unfinished=len(
            {mine.trace_id for mine in passes if mine.annotator == judge}
            - {trace for trace, _ in looked}
        ),
    )


def _check(workspace: Workspace, judge: str, against: str) -> None:
    known = {info.name: info.kind for info in workspace.annotators()}
    if known.get(judge) is not AnnotatorKind.JUDGE:
        there = ", ".join(n for n, kind in known.items() if kind is AnnotatorKind.JUDGE)
        raise WorkspaceError(
            f"no judge {judge!r} in this workspace; there are: {there or 'none yet'}"
        )
    if against != GOLD and against not in known:
        there = ", ".join(known) or "nobody yet"
        raise WorkspaceError(f"no annotator {against!r} in this workspace; there are: {there}")


def _reference_of_gold(
    gold: Mapping[str, GoldTrace], settled_only: bool, not_in_study: Mapping[str, int]
) -> Reference:
    verdicts: dict[Unit, VerdictValue] = {}
    places: dict[Unit, tuple[Target, ...]] = {}
    merged: dict[Unit, frozenset[Target]] = {}
    seen: set[Unit] = set()
    unresolved: set[Unit] = set()
    sources: dict[Unit, Source] = {}
    sides: dict[Unit, tuple[str, ...]] = {}
    for trace_id, whole in gold.items():
        settled = only_settled(whole) if settled_only else whole
        for verdict in settled.verdicts:
            unit = (trace_id, verdict.mode)
            if verdict.value is not None:
                verdicts[unit] = verdict.value
                sources[unit] = verdict.source
                sides[unit] = tuple(n for n, v in verdict.sides.items() if v is not None)
                if verdict.judge_seen:
                    seen.add(unit)
            elif verdict.source is not Source.SINGLE and any(
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
    own = counted_passes([one for one in passes if one.annotator == name], which)
    counted = {trace_id: one for (_, trace_id), one in own.items()}
    verdicts = {
        (v.trace_id, v.mode): v.value
        for v in workspace.verdicts(annotator=name, taxonomy=ref, pass_number=None)
        if v.trace_id in counted and counted[v.trace_id].number == v.pass_number
    }
    places: dict[Unit, tuple[Target, ...]] = {}
    seen = {unit for unit in verdicts if counted[unit[0]].judge_seen}
    for label in workspace.labels(annotator=name, taxonomy=ref, pass_number=None):
        one = counted.get(label.trace_id)
        if one is None or one.number != label.pass_number:
            continue
        unit = (label.trace_id, label.mode)
        if label.saw_suggestions:
            seen.add(unit)
        if not label.target.is_whole:
            places[unit] = (*places.get(unit, ()), label.target)
    return Reference(name, verdicts, frozenset(seen), places)


def _assisted(workspace: Workspace, ref: str, passes: list[Pass]) -> tuple[AssistedPass, ...]:
    """The finished first passes of all who had suggestions kept back somewhere."""
    first = counted_passes([one for one in passes if one.kind is PassKind.ASSISTED], "first")
    names = {name for (name, _), one in first.items() if one.withheld}
    verdicts: dict[Unit, dict[str, VerdictValue]] = {}
    labels: dict[Unit, Counter[str]] = {}
    for name in sorted(names):
        for said in workspace.verdicts(annotator=name, taxonomy=ref, pass_number=None):
            key = (name, said.trace_id)
            if key in first and first[key].number == said.pass_number:
                verdicts.setdefault(key, {})[said.mode] = said.value
        for label in workspace.labels(annotator=name, taxonomy=ref, pass_number=None):
            key = (name, label.trace_id)
            if key in first and first[key].number == label.pass_number:
                labels.setdefault(key, Counter())[label.mode] += 1
    return tuple(
        AssistedPass(
            name,
            trace,
            one.withheld,
            one.judge_seen,
            verdicts.get((name, trace), {}),
            labels.get((name, trace), Counter()),
        )
        for (name, trace), one in sorted(first.items())
        if name in names
    )

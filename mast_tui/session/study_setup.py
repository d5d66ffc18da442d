"""Setting a study up, and changing it as long as that does not change its figures."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap
from typing import Final

from msgspec.structs import replace

from mast_tui.errors import SessionError
from mast_tui.labels import AnnotatorKind
from mast_tui.session.progress import anybody_finished
from mast_tui.study import (
    Assignment,
    Draw,
    Membership,
    Release,
    Study,
    annotators_of,
    assigned,
    changes_to_figures,
    stratified_sample,
    weighted_sample,
)
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import StudySet
from mast_tui.workspace.records import TraceRecord


def set_study(workspace: Workspace, who: str, study: Study) -> bool:
    """Set a study up under its taxonomy, or change it; returns whether anything changed.

    ``who`` does it and is recorded. Raises ``SessionError`` for a change to what figures rest on
    once an annotator has finished a trace, and for a trace that is not known here.
    """
    with workspace.transaction():
        before = workspace.study(study.taxonomy)
        if before == study:
            return False
        _check_traces(workspace, study)
        check_changes(workspace, study)
        for name in study.participants:
            workspace.add_annotator(name, AnnotatorKind.HUMAN)
        workspace.append(
            [
                NewEvent(
                    annotator=who,
                    trace_id=None,
                    taxonomy=study.taxonomy,
                    pass_number=None,
                    fact=StudySet(before, study),
                )
            ]
        )
    return True


def check_changes(workspace: Workspace, study: Study) -> None:
    """Refuse a study that would change what figures rest on already.

    Args:
        workspace: Where it is to be set up.
        study: The study as it is to be.

    Raises:
        SessionError: An annotator has finished a trace under another protocol.
    """
    before = workspace.study(study.taxonomy)
    if before is None or not anybody_finished(workspace, before):
        return
    changed = changes_to_figures(before, study)
    if changed:
        raise SessionError(
            f"traces have been finished under this study, so {_listed(changed)} can no longer "
            "change: its figures would rest on two protocols. Set the other study up in a "
            "workspace of its own (--workspace PATH); traces can be taken in here as before, and "
            "adjudicators, retests and how adjudication goes can change"
        )


def count_reassigned_traces(workspace: Workspace, study: Study) -> dict[str, int]:
    """Count by name the traces that somebody has begun and that a changed study gives to others.

    Args:
        workspace: Where the study is set up.
        study: The study as it is to be.
    """
    before = workspace.study(study.taxonomy)
    found: dict[str, set[str]] = {}
    if before is None:
        return {}
    for one in workspace.passes(taxonomy=study.taxonomy):
        if (
            one.kind.is_reading
            and one.annotator in annotators_of(before, one.trace_id)
            and one.annotator not in annotators_of(study, one.trace_id)
        ):
            found.setdefault(one.annotator, set()).add(one.trace_id)
    return {name: len(traces) for name, traces in found.items()}


KINDS_OF_TRACES: Final = ("system", "model", "benchmark", "outcome", "length")
"""What a sample can be drawn over."""

_LENGTHS: Final = 4
"""Traces are cut into so many classes of about equal size by how many spans they have."""


def with_sample(
    study: Study, traces: Iterable[TraceRecord], n: int, *, by: Sequence[str] = ()
) -> Study:
    """Take in one more lot: a sample, by the study's seed, of the traces that are not in it yet.

    Args:
        study: The study as it is.
        traces: What is drawn from.
        n: How many are drawn.
        by: Which of ``KINDS_OF_TRACES`` the sample is to be spread over evenly.

    Raises:
        SessionError: There are fewer traces, or there is no such kind.
    """
    for name in by:
        if name not in KINDS_OF_TRACES:
            raise SessionError(
                f"a sample cannot be drawn over {name!r}; there are: {', '.join(KINDS_OF_TRACES)}"
            )
    there = frozenset(study.traces)
    records = [one for one in traces if one.trace_id not in there]
    _check_enough(n, len(records))
    lengths = sorted(one.spans for one in records if one.spans is not None)
    strata: dict[str, list[str]] = defaultdict(list)
    for one in records:
        longer = 0 if one.spans is None else bisect_left(lengths, one.spans)
        values = {
            "system": one.system,
            "model": one.model,
            "benchmark": one.benchmark,
            "outcome": one.outcome.value,
            "length": None if one.spans is None else f"{_LENGTHS * longer // len(lengths)}",
        }
        strata["\0".join(values[name] or "" for name in by)].append(one.trace_id)
    kinds = {name: tuple(ids) for name, ids in strata.items()}
    lot = len(study.batches)
    chosen = stratified_sample(kinds, n, study.seed, batch_number=lot)
    draw = Draw(lot, len(records), tuple(by), study.seed)
    return replace(study, batches=(*study.batches, chosen), draws=(*study.draws, draw))


def with_worth(study: Study, worth: Mapping[str, float], n: int, *, judge: str) -> Study:
    """Take in one more lot: traces drawn with more chance the more their labels would tell.

    Args:
        study: The study as it is.
        worth: How much a label would tell, by the ids of the traces that are drawn from.
        n: How many are drawn.
        judge: By whose words that is known.

    Raises:
        SessionError: There are fewer traces.
    """
    there = frozenset(study.traces)
    sizes = {trace_id: size for trace_id, size in worth.items() if trace_id not in there}
    _check_enough(n, len(sizes))
    lot = len(study.batches)
    chances = weighted_sample(sizes, n, study.seed, batch_number=lot)
    draw = Draw(
        lot=lot, of=len(sizes), by=(), seed=study.seed, chances=tuple(chances.values()), judge=judge
    )
    return replace(study, batches=(*study.batches, tuple(chances)), draws=(*study.draws, draw))


def _check_enough(n: int, there: int) -> None:
    if n > there:
        raise SessionError(f"{n} traces cannot be drawn from {there}")


def sample_texts(study: Study) -> list[str]:
    """Tell which lots are samples of what, and where a share over all lots is of no whole."""
    lines = []
    for draw in study.draws:
        whole = len(study.batches) == 1
        over = f", spread evenly over {', '.join(draw.by)}" if draw.by else ""
        if draw.chances:
            over = f", those rather on which {draw.judge} leaves most in doubt"
        lines.append(
            f"{'a' if whole else f'lot {draw.lot + 1} is a'} random sample: "
            f"{len(study.batches[draw.lot])} of {draw.of} traces{over}; drawn by {draw.seed}"
        )
    if study.chances_alike:
        return lines
    if study.trace_weights(study.traces) is not None:
        lines.append(
            "chances differ and are kept: signatures (mast-tui report) and the prevalence over all "
            "traces (mast-tui agree --judge) are weighted by them"
        )
    else:
        lines.append(
            "the lots came in with different chances: a share over all of them is not that of "
            "the traces they were drawn from"
        )
    return lines


def with_traces(study: Study, trace_ids: Iterable[str]) -> Study:
    """The study with one more lot: those of the traces that are not in it yet, if any."""
    known = frozenset(study.traces)
    new = tuple(sorted(set(trace_ids) - known))
    return replace(study, batches=(*study.batches, new)) if new else study


def with_annotator(study: Study, name: str, *, weight: float = 1.0) -> Study:
    """Have somebody join: they are dealt traces of the lots to come, and what others give back.

    Args:
        study: The study as it is.
        name: Who joins, or comes back.
        weight: How much they are dealt beside somebody with 1.

    Raises:
        SessionError: They are there already.
    """
    if name in study.present:
        raise SessionError(f"{name} is an annotator of this study already")
    joined = Membership(name, len(study.batches), None, weight)
    return replace(
        study,
        annotators=tuple(dict.fromkeys((*study.annotators, name))),
        memberships=(*study.memberships, joined),
    )


def with_weights(study: Study, weights: Mapping[str, float]) -> Study:
    """Deal out in proportion to weights.

    Args:
        study: The study as it is.
        weights: By the names of annotators; whoever is not named keeps theirs.

    Raises:
        SessionError: Somebody is no annotator of the study now.
    """
    for name in weights:
        if name not in study.present:
            raise SessionError(f"{name} is no annotator of this study now, and has no weight")
    told = {one.annotator for one in study.memberships}
    new = (Membership(name, 0) for name in weights if name not in told)
    return replace(
        study,
        memberships=tuple(
            replace(one, weight=weights.get(one.annotator, one.weight)) if one.end is None else one
            for one in (*study.memberships, *new)
        ),
    )


def with_assignments(study: Study, assigned: Mapping[str, Sequence[str]]) -> Study:
    """Fix by name who labels which traces; all others are dealt as before.

    Args:
        study: The study as it is.
        assigned: The annotators of each trace, by its id; both are in the study.
    """
    fixed = {trace_id: tuple(sorted(names)) for trace_id, names in assigned.items()}
    # What stays the same stays in its place, so that nothing seems to change.
    before = {one.trace_id: one.annotators for one in study.assignments}
    return replace(study, assignments=tuple(starmap(Assignment, (before | fixed).items())))


def without_annotator(workspace: Workspace, study: Study, name: str) -> Study:
    """Have somebody leave: what they have finished stays, the rest goes to the others.

    Args:
        workspace: Where the study is kept.
        study: The study as it is.
        name: Who leaves.

    Raises:
        SessionError: They are not there, or nobody else is.
    """
    given = with_released_traces(workspace, study, name)
    if study.present == (name,):
        raise SessionError(f"{name} is the last annotator; let somebody join before")
    told = [one for one in study.memberships if one.annotator == name] or [Membership(name, 0)]
    others = [one for one in study.memberships if one.annotator != name]
    ended = [replace(one, end=len(study.batches)) if one.end is None else one for one in told]
    return replace(given, memberships=(*others, *ended))


def with_released_traces(workspace: Workspace, study: Study, name: str) -> Study:
    """Give what somebody has not finished to the others; they stay, and get of later lots.

    Args:
        workspace: Where the study is kept.
        study: The study as it is.
        name: Whose traces they are.

    Raises:
        SessionError: They are no annotator of the study now.
    """
    if name not in study.present:
        there = ", ".join(study.present)
        raise SessionError(f"{name} is no annotator of this study now; there are {there}")
    finished = workspace.finished_traces(name, study.taxonomy)
    left = tuple(one for one in assigned(study, name) if one not in finished)
    return replace(study, releases=(*study.releases, Release(name, left))) if left else study


def _check_traces(workspace: Workspace, study: Study) -> None:
    here = {record.trace_id for record in workspace.traces()}
    for trace_id in study.traces:
        if trace_id not in here:
            raise SessionError(
                f"trace {trace_id!r} is not known in this workspace; take it in with "
                "mast-tui study add PATH"
            )


def _listed(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

"""Changes of a study that keep its figures valid."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mast_tui.counts import counted, joined_names
from mast_tui.errors import SessionError
from mast_tui.labels import AnnotatorKind, counted_passes, finished_by
from mast_tui.session.progress import finished_in_study
from mast_tui.session.viewer import checked_new_name
from mast_tui.session.visibility import trace_masks
from mast_tui.study import (
    Assignment,
    Draw,
    Membership,
    Study,
    annotators_of,
    assigned,
    changes_to_figures,
    stratified_sample,
    weighted_sample,
    with_release,
    withheld_traces,
)
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import StudySet
from mast_tui.workspace.records import TraceRecord
from mast_tui.workspace.registers.pseudonyms import mask_key


def set_study(workspace: Workspace, actor: str, study: Study) -> bool:
    """Save a study under its taxonomy, and return whether anything changed.

    Args:
        workspace: The workspace.
        actor: The recorded name of the person who changes the study.
        study: The study.

    Raises:
        SessionError: A trace is not in the workspace, or figures depend on a changed setting.
        RedactionError: The study masks texts, and a library for that is missing.
    """
    if study.redact and not study.redact_key:
        study = replace(study, redact_key=mask_key(workspace).hex())
    with workspace.transaction():
        previous = workspace.study(study.taxonomy)
        if previous == study:
            return False
        _check_traces_registered(workspace, study)
        check_changes(workspace, study)
        for name in study.participants:
            workspace.add_annotator(name, AnnotatorKind.HUMAN)
        workspace.append(
            [
                NewEvent(
                    annotator=actor,
                    trace_id=None,
                    taxonomy=study.taxonomy,
                    pass_number=None,
                    fact=StudySet(previous, study),
                )
            ]
        )
    return True


def check_changes(workspace: Workspace, study: Study) -> None:
    """Refuse a study that cannot be set up, or that would make its existing figures invalid.

    Args:
        workspace: The workspace of the study.
        study: The new or changed study.

    Raises:
        SessionError: An annotator has finished a trace under the previous settings.
        RedactionError: The study masks texts, and a library for that is missing.
        MastError: A name is not valid, or looks like that of another annotator.
    """
    trace_masks(study)
    for name in study.participants:
        checked_new_name(workspace, name)
    previous = workspace.study(study.taxonomy)
    finished = frozenset[tuple[str, str]]()
    if previous is not None:
        finished = finished_in_study(workspace, previous)
    if previous is None or not finished:
        return
    changed = changes_to_figures(previous, study) or _changes_to_finished(previous, study, finished)
    if changed:
        raise SessionError(
            f"traces of this study have been finished, so {joined_names(changed)} can no "
            "longer change, as the figures would mix two protocols. Set up another study in "
            "its own workspace (--workspace PATH); here you can still add traces and annotators, "
            "and change adjudicators, retests and the settings of adjudication"
        )


def _changes_to_finished(
    previous: Study, study: Study, finished: Iterable[tuple[str, str]]
) -> tuple[str, ...]:
    """Name a change that takes finished traces from their annotators or changes their conditions.

    ``finished`` has the annotator and the id of each finished trace.
    """
    titles: dict[str, None] = {}
    for name, trace_id in finished:
        if name in annotators_of(previous, trace_id):
            if name not in annotators_of(study, trace_id):
                titles["the assignments"] = None
            elif (trace_id in withheld_traces(previous, name)) != (
                trace_id in withheld_traces(study, name)
            ):
                titles["the finished traces without suggestions"] = None
    return tuple(titles)


def count_reassigned_traces(workspace: Workspace, study: Study) -> dict[str, int]:
    """Count the begun traces that a changed study takes from each annotator.

    Args:
        workspace: The workspace of the study.
        study: The changed study.
    """
    previous = workspace.study(study.taxonomy)
    if previous is None:
        return {}
    reassigned: dict[str, set[str]] = {}
    for trace_pass in workspace.passes(taxonomy=study.taxonomy):
        name = trace_pass.annotator
        trace_id = trace_pass.trace_id
        if (
            trace_pass.kind.is_labelling
            and name in annotators_of(previous, trace_id)
            and name not in annotators_of(study, trace_id)
        ):
            reassigned.setdefault(name, set()).add(trace_id)
    return {name: len(traces) for name, traces in reassigned.items()}


def outside_work(workspace: Workspace, study: Study) -> dict[str, int]:
    """Count the finished traces of each person outside a study.

    Args:
        workspace: The workspace of the study.
        study: The study, which may still be planned.
    """
    outside_names = {
        info.name
        for info in workspace.annotators()
        if info.kind.is_person and info.name not in study.participants
    }
    return finished_by(
        outside_names, counted_passes(workspace.passes(taxonomy=study.taxonomy), "last")
    )


def outside_work_text(workspace: Workspace, study: Study | None) -> str:
    """Return sentences on finished traces of people outside a study; empty without any.

    Args:
        workspace: The workspace of the study.
        study: The study, which may still be planned; None for no study.
    """
    counts_text = "" if study is None else _counts_text(outside_work(workspace, study))
    if not counts_text:
        return ""
    return (
        f"Work outside the study counts in no figure and no gold: {counts_text}. To count it, name "
        "these people as annotators of the study, and those who decided as adjudicators."
    )


def earlier_work_text(workspace: Workspace, study: Study) -> str:
    """Return a sentence on traces that annotators finished before the study; empty without any.

    Args:
        workspace: The workspace of the study.
        study: The study, which is not saved yet.
    """
    traces = frozenset(study.traces)
    finished = {
        key: trace_pass
        for key, trace_pass in counted_passes(
            workspace.passes(taxonomy=study.taxonomy), "last"
        ).items()
        if key[0] in study.annotators and key[1] in traces
    }
    if not finished:
        return ""
    shown_count = sum(trace_pass.judge_seen for trace_pass in finished.values())
    return (
        f"Finished already: {_counts_text(finished_by(study.annotators, finished))}; with "
        f"suggestions on screen: {shown_count} of {len(finished)}. This work counts in the study. "
        "So once the study is saved, the settings that figures depend on are fixed. To begin "
        "without it, choose other traces or another workspace (--workspace PATH)."
    )


def _counts_text(counts: Mapping[str, int]) -> str:
    """Return the number of traces that each person has finished: ``ann 3 traces, ben 1 trace``."""
    return ", ".join(f"{name} {counted(count, 'trace')}" for name, count in counts.items())


STRATA: Final = ("system", "model", "benchmark", "outcome", "length")
"""The properties by which a sample can be stratified."""

LOST_RETEST_NOTE: Final = (
    "A retest is not possible once the annotator has changed the labels or seen those of others."
)

_LENGTHS: Final = 4
"""The number of classes of trace length, which are about equally large."""


def with_sample(
    study: Study, traces: Iterable[TraceRecord], n: int, *, by: Sequence[str] = ()
) -> Study:
    """Add a batch to the study: a random sample of traces outside the study.

    Args:
        study: The study.
        traces: The traces to draw from.
        n: The size of the sample.
        by: The ``STRATA`` over which the sample is spread evenly.

    Raises:
        SessionError: There are fewer traces than ``n``, or no such stratum.
    """
    for stratum in by:
        if stratum not in STRATA:
            raise SessionError(
                f"a sample cannot be spread over {stratum!r}; there are: {', '.join(STRATA)}"
            )
    study_traces = frozenset(study.traces)
    records = [record for record in traces if record.trace_id not in study_traces]
    _check_enough(n, len(records))
    batch_number = len(study.batches)
    strata = _ids_by_stratum(records, by)
    batch = stratified_sample(strata, n, study.seed, batch_number=batch_number)
    draw = Draw(
        batch_number=batch_number, population=len(records), strata=tuple(by), seed=study.seed
    )
    return replace(study, batches=(*study.batches, batch), draws=(*study.draws, draw))


def _ids_by_stratum(
    records: Sequence[TraceRecord], properties: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """Group the ids of traces by their values of some of the ``STRATA``."""
    lengths = sorted(record.spans for record in records if record.spans is not None)
    ids_by_stratum: dict[str, list[str]] = defaultdict(list)
    for record in records:
        values = {
            "system": record.system,
            "model": record.model,
            "benchmark": record.benchmark,
            "outcome": record.outcome.value,
            "length": _length_class(record.spans, lengths),
        }
        ids_by_stratum["\0".join(values[name] or "" for name in properties)].append(record.trace_id)
    return ids_by_stratum


def _length_class(spans: int | None, sorted_lengths: Sequence[int]) -> str | None:
    """Return the class of a trace's length among sorted lengths; None if the length is unknown."""
    if spans is None:
        return None
    return str(_LENGTHS * bisect_left(sorted_lengths, spans) // len(sorted_lengths))


def with_worth(study: Study, worth: Mapping[str, float], n: int, *, judge: str) -> Study:
    """Add a batch to the study: a sample in which labels are likely to be most useful.

    Args:
        study: The study.
        worth: The expected value of labels on each trace, by its id.
        n: The size of the batch.
        judge: The judge whose verdicts determine these values.

    Raises:
        SessionError: There are fewer traces than ``n``.
    """
    study_traces = frozenset(study.traces)
    weights = {trace_id: value for trace_id, value in worth.items() if trace_id not in study_traces}
    _check_enough(n, len(weights))
    batch_number = len(study.batches)
    # The chance of each drawn trace, by its id.
    chances = weighted_sample(weights, n, study.seed, batch_number=batch_number)
    draw = Draw(
        batch_number=batch_number,
        population=len(weights),
        strata=(),
        seed=study.seed,
        chances=tuple(chances.values()),
        judge=judge,
    )
    return replace(study, batches=(*study.batches, tuple(chances)), draws=(*study.draws, draw))


def _check_enough(n: int, available: int) -> None:
    """Raise ``SessionError`` if there are fewer than ``n`` traces."""
    if n > available:
        raise SessionError(f"{n} traces cannot be drawn from {available}")


def annotator_counts_text(study: Study) -> str:
    """Return how many traces have how many annotators: ``traces to label: 36 by 3, 24 by one``."""
    counts = Counter(len(annotators_of(study, trace_id)) for trace_id in study.traces)
    names = {0: "no one", len(study.annotators): "every annotator", 1: "one"}
    texts = [f"{counts[count]:,} by {names.get(count, count)}" for count in sorted(counts)[::-1]]
    return f"traces to label: {', '.join(texts) or 'none'}"


def sample_texts(study: Study) -> list[str]:
    """Describe a study's random samples, with a note about unequal chances."""
    lines = []
    for draw in study.draws:
        subject = "a" if len(study.batches) == 1 else f"batch {draw.batch_number + 1} is a"
        method = f", each {' × '.join(draw.strata)} with its share" if draw.strata else ""
        if draw.chances:
            method = f", preferring traces on which {draw.judge} is least certain"
        lines.append(
            f"{subject} random sample: {len(study.batches[draw.batch_number])} of "
            f"{draw.population} traces{method}"
            + (f"; seed {draw.seed}" if draw.seed != study.seed else "")
        )
    if study.chances_alike:
        return lines
    if study.trace_weights(study.traces) is not None:
        lines.append(
            "traces had different chances to be drawn: signatures (mast-tui report) and the "
            "prevalence over all traces (mast-tui agree --judge) allow for that"
        )
    else:
        lines.append(
            "the batches were drawn with different chances: a share over all of them is not the "
            "share of the traces from which they were drawn"
        )
    return lines


def with_traces(study: Study, trace_ids: Iterable[str]) -> Study:
    """Add a batch to the study with those of the traces that are not in the study yet.

    Args:
        study: The study; it is returned unchanged if all traces are in it.
        trace_ids: The ids of the traces.
    """
    batch = tuple(sorted(set(trace_ids).difference(study.traces)))
    return replace(study, batches=(*study.batches, batch)) if batch else study


def with_annotator(study: Study, name: str, *, weight: float = 1.0) -> Study:
    """Add an annotator to the study, who gets traces of later batches and releases.

    Args:
        study: The study.
        name: The person who joins, or joins again.
        weight: The share of traces relative to annotators with the weight 1.

    Raises:
        SessionError: This person is an annotator already.
    """
    if name in study.present:
        raise SessionError(f"{name} is already an annotator of this study")
    joined = Membership(name, len(study.batches), None, weight)
    return replace(
        study,
        annotators=tuple(dict.fromkeys((*study.annotators, name))),
        memberships=(*study.memberships, joined),
    )


def with_weights(study: Study, weights: Mapping[str, float]) -> Study:
    """Change the weights of annotators of the study.

    Args:
        study: The study.
        weights: The weights by name; others stay unchanged.

    Raises:
        SessionError: A name is not a present annotator.
    """
    for name in weights:
        if name not in study.present:
            raise SessionError(
                f"{name} is not an annotator of this study now, so a weight has no effect"
            )
    members = {membership.annotator for membership in study.memberships}
    # An annotator without a membership has taken part since the first batch.
    added_memberships = (Membership(name, 0) for name in weights if name not in members)
    memberships = [
        replace(membership, weight=weights.get(membership.annotator, membership.weight))
        if membership.end is None
        else membership
        for membership in (*study.memberships, *added_memberships)
    ]
    return replace(study, memberships=tuple(memberships))


def with_assignments(study: Study, assigned: Mapping[str, Sequence[str]]) -> Study:
    """Change the annotators of some traces of the study, and fix those of all traces.

    Args:
        study: The study.
        assigned: The annotators by trace id, all of them in the study.

    Returns:
        The changed study; the same study if no trace gets other annotators.
    """
    present_annotators = {
        trace_id: names for trace_id in study.traces if (names := annotators_of(study, trace_id))
    }
    fixed_annotators = present_annotators | {
        trace_id: tuple(sorted(names)) for trace_id, names in assigned.items()
    }
    if fixed_annotators == present_annotators:
        return study
    # Unchanged entries keep their position, so that equal studies compare equal.
    previous_annotators = {
        assignment.trace_id: assignment.annotators for assignment in study.assignments
    }
    assignments = [
        Assignment(trace_id, annotators)
        for trace_id, annotators in (previous_annotators | fixed_annotators).items()
    ]
    return replace(study, assignments=tuple(assignments))


def without_annotator(workspace: Workspace, study: Study, name: str) -> Study:
    """Remove an annotator from the study, and give the unfinished traces to others.

    Args:
        workspace: The workspace of the study.
        study: The study.
        name: The annotator who leaves.

    Raises:
        SessionError: This person is no annotator now, or the only one.
    """
    released = with_released_traces(workspace, study, name)
    if study.present == (name,):
        raise SessionError(f"{name} is the last annotator; add another one first")
    own_memberships = [
        membership for membership in study.memberships if membership.annotator == name
    ] or [Membership(name, 0)]  # an annotator from the first batch on
    other_memberships = [
        membership for membership in study.memberships if membership.annotator != name
    ]
    ended_memberships = [
        replace(membership, end=len(study.batches)) if membership.end is None else membership
        for membership in own_memberships
    ]
    return replace(released, memberships=(*other_memberships, *ended_memberships))


def with_released_traces(workspace: Workspace, study: Study, name: str) -> Study:
    """Give an annotator's unfinished traces to others.

    The annotator stays and gets traces of later batches.

    Args:
        workspace: The workspace of the study.
        study: The study.
        name: The annotator.

    Raises:
        SessionError: This person is no annotator now.
    """
    if name not in study.present:
        present = ", ".join(study.present)
        raise SessionError(f"{name} is not an annotator of this study now; there are {present}")
    finished = workspace.finished_traces(name, study.taxonomy)
    unfinished = tuple(trace_id for trace_id in assigned(study, name) if trace_id not in finished)
    if not unfinished:
        return study
    return with_release(study, name, unfinished)


def _check_traces_registered(workspace: Workspace, study: Study) -> None:
    """Raise ``SessionError`` if a trace of the study is not in the workspace."""
    registered = {record.trace_id for record in workspace.traces()}
    for trace_id in study.traces:
        if trace_id not in registered:
            raise SessionError(
                f"trace {trace_id!r} is not in this workspace; add it with mast-tui study add PATH"
            )

"""The progress of annotators in a study and a workspace, with their retests.

A retest is a finished trace that an annotator labels again under a study. The annotator is told
once the retest is due, and the first labels are hidden. A retest is lost if the annotator has
meanwhile seen others' labels or revised the own labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct

from mast_tui.grouping import values_by_key
from mast_tui.labels import AnnotatorKind, Pass, PassKind
from mast_tui.study import (
    Study,
    assigned,
    is_expected,
    overlap_traces,
    retest_traces,
    retests_due,
    withheld_traces,
)
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Workspace


class Retests(Struct, frozen=True):
    """The state of an annotator's retests, by trace id.

    Attributes:
        due: Retests that are due and not begun, the earliest finished trace first.
        begun: Retests that are begun and not finished.
        done: Finished retests.
        to_come: Retests that will become due later.
        lost: Retests that can no longer be done.
    """

    due: tuple[str, ...] = ()
    begun: frozenset[str] = frozenset()
    done: frozenset[str] = frozenset()
    to_come: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()

    @property
    def current(self) -> frozenset[str]:
        """The traces that are due or begun, on which the first labels are hidden."""
        return self.begun.union(self.due)

    @property
    def protected(self) -> frozenset[str]:
        """The traces of current and future retests, on which others' labels are hidden."""
        return self.current | self.to_come


def by_trace(passes: Iterable[Pass]) -> dict[str, list[Pass]]:
    """Group one annotator's passes by trace; each list is sorted by number."""
    sorted_passes = sorted(passes, key=attrgetter("trace_id", "number"))
    return values_by_key((trace_pass.trace_id, trace_pass) for trace_pass in sorted_passes)


def first_finish(passes: Iterable[Pass]) -> str | None:
    """Return the time at which an annotator first finished a trace; None if never.

    Retests and adjudications do not count.
    """
    times = [
        trace_pass.finished_at
        for trace_pass in passes
        if trace_pass.kind.is_labelling and trace_pass.finished_at is not None
    ]
    return min(times, default=None)


def retest_open(passes: Sequence[Pass]) -> bool:
    """Return whether the last pass is an unfinished retest."""
    return bool(passes) and passes[-1].kind is PassKind.RETEST and not passes[-1].finished


def retests_of(
    study: Study | None, annotator: str, passes_by_trace: Mapping[str, Sequence[Pass]]
) -> Retests:
    """Return the state of an annotator's retests.

    A begun retest stays in ``begun`` even if the study no longer plans it.

    Args:
        study: The study, if there is one.
        annotator: The annotator.
        passes_by_trace: All passes of the annotator, from ``by_trace``.
    """
    begun = frozenset(
        trace_id for trace_id, passes in passes_by_trace.items() if retest_open(passes)
    )
    if study is None:
        return Retests(begun=begun)
    planned = frozenset(retest_traces(study, annotator)) - begun
    done = frozenset(
        trace_id
        for trace_id in planned
        if any(
            trace_pass.kind is PassKind.RETEST and trace_pass.finished
            for trace_pass in passes_by_trace.get(trace_id, ())
        )
    )
    lost = frozenset(
        trace_id
        for trace_id in planned - done
        if any(map(_spoils_retest, passes_by_trace.get(trace_id, ())))
    )
    not_begun = planned - done - lost
    due: tuple[str, ...] = ()
    if not_begun:
        finished_traces = _in_order_of_finish(passes_by_trace)
        due = retests_due(study, annotator, finished_traces, retested=begun | done | lost)
    return Retests(due=due, begun=begun, done=done, to_come=not_begun.difference(due), lost=lost)


def _in_order_of_finish(passes_by_trace: Mapping[str, Sequence[Pass]]) -> list[str]:
    """Return the ids of the finished traces, sorted by the time of the first finish."""
    finish_times = ((first_finish(passes), id) for id, passes in passes_by_trace.items())
    return [id for _, id in sorted((time, id) for time, id in finish_times if time is not None)]


def _spoils_retest(trace_pass: Pass) -> bool:
    """Return whether a pass makes a later retest invalid."""
    return (
        trace_pass.kind in (PassKind.SECOND_LOOK, PassKind.ADJUDICATION, PassKind.RETEST)
        or trace_pass.revealed_at is not None
    )


def retest_progress(workspace: Workspace, annotator: str, taxonomy: str) -> Retests:
    """Return the state of an annotator's retests under the study of a taxonomy.

    Args:
        workspace: The workspace.
        annotator: The annotator.
        taxonomy: The taxonomy, as ``id@version``.
    """
    passes_by_trace = by_trace(workspace.passes(annotator=annotator, taxonomy=taxonomy))
    return retests_of(workspace.study(taxonomy), annotator, passes_by_trace)


class StudyProgress(Struct, frozen=True):
    """One annotator's share of a study, in traces.

    Attributes:
        name: The annotator.
        assigned: The number of assigned traces.
        shared: The number of traces that others label too.
        withheld: The number of traces without suggestions.
        finished: The number of finished traces.
        begun: The number of traces that are begun and not finished.
        planned: The number of traces that the study plans to retest.
        retests: The progress of the retests, which only the study's lead may see.
    """

    name: str
    assigned: int
    shared: int
    withheld: int
    finished: int
    begun: int
    planned: int
    retests: Retests

    @property
    def left(self) -> int:
        """The number of unfinished traces."""
        return self.assigned - self.finished


def progress(workspace: Workspace, study: Study) -> tuple[StudyProgress, ...]:
    """Return the progress of all annotators, in the order of the study.

    Args:
        workspace: The workspace of the study.
        study: The study.
    """
    passes_by_name: dict[str, list[Pass]] = {name: [] for name in study.annotators}
    for trace_pass in workspace.passes(taxonomy=study.taxonomy):
        if trace_pass.annotator in passes_by_name:
            passes_by_name[trace_pass.annotator].append(trace_pass)
    shared_traces = frozenset(overlap_traces(study))
    return tuple(
        _progress_of(study, name, shared_traces, passes) for name, passes in passes_by_name.items()
    )


def finished_in_study(workspace: Workspace, study: Study) -> frozenset[tuple[str, str]]:
    """Return the traces of the study that annotators have finished, each with the annotator.

    Args:
        workspace: The workspace of the study.
        study: The study.
    """
    traces = frozenset(study.traces)
    return frozenset(
        (trace_pass.annotator, trace_pass.trace_id)
        for trace_pass in workspace.passes(taxonomy=study.taxonomy)
        if trace_pass.finished
        and trace_pass.kind.is_labelling
        and trace_pass.annotator in study.annotators
        and trace_pass.trace_id in traces
    )


def _progress_of(
    study: Study, name: str, shared_traces: frozenset[str], passes: list[Pass]
) -> StudyProgress:
    """Return an annotator's progress from all passes of the annotator under the study."""
    passes_by_trace = by_trace(passes)
    ids = assigned(study, name)
    finished_traces = [
        trace_id for trace_id in ids if first_finish(passes_by_trace.get(trace_id, ())) is not None
    ]
    begun_traces = [
        trace_id
        for trace_id in ids
        if any(trace_pass.kind.is_labelling for trace_pass in passes_by_trace.get(trace_id, ()))
    ]
    return StudyProgress(
        name,
        assigned=len(ids),
        shared=len(shared_traces.intersection(ids)),
        withheld=len(withheld_traces(study, name)),
        finished=len(finished_traces),
        begun=len(set(begun_traces).difference(finished_traces)),
        planned=len(retest_traces(study, name)),
        retests=retests_of(study, name, passes_by_trace),
    )


class AnnotatorStatus(Struct, frozen=True):
    """The number of an annotator's finished traces, and of traces with an unfinished last pass.

    A finished trace with an unfinished second look counts in both numbers.
    """

    name: str
    kind: AnnotatorKind
    finished: int
    open: int


class StatusReport(Struct, frozen=True):
    """The status of all annotators except judges, sorted by name."""

    taxonomy: str
    traces: int
    annotators: tuple[AnnotatorStatus, ...]


def status(workspace: Workspace, taxonomy: Taxonomy) -> StatusReport:
    """Count the finished and the open traces of each annotator.

    A finished trace with an unfinished last pass counts as both.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
    """
    study = workspace.study(taxonomy.ref)
    passes_by_name = values_by_key(
        (trace_pass.annotator, trace_pass)
        for trace_pass in workspace.passes(taxonomy=taxonomy.ref)
        if trace_pass.kind.is_labelling
    )
    rows = []
    for info in workspace.annotators():
        if info.kind is not AnnotatorKind.JUDGE:
            passes_by_trace = by_trace(passes_by_name.get(info.name, ()))
            finished = sum(first_finish(passes) is not None for passes in passes_by_trace.values())
            unfinished = sum(
                not passes[-1].finished
                # A finished trace with an unfinished second look has several passes.
                and (len(passes) > 1 or is_expected(study, info.name, trace_id))
                for trace_id, passes in passes_by_trace.items()
            )
            rows.append(AnnotatorStatus(info.name, info.kind, finished, unfinished))
    return StatusReport(taxonomy.ref, len(workspace.traces()), tuple(rows))

"""The progress of annotators, under a study and in a workspace."""

from __future__ import annotations

from dataclasses import dataclass

from mast_tui.labels import AnnotatorKind, Pass
from mast_tui.session.retests import Retests, by_trace, first_finish, retests_of
from mast_tui.study import Study, assigned, overlap_traces, retest_traces, withheld_traces
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Workspace


@dataclass(frozen=True, slots=True)
class StudyProgress:
    """One annotator's share of a study, in traces.

    Attributes:
        name: The annotator.
        assigned: The number of assigned traces.
        shared: The number of traces that others label too.
        withheld: The number of traces without suggestions.
        finished: The number of finished traces.
        begun: The number of traces that are begun and not finished.
        planned: The number of traces that the study plans to retest.
        retests: The progress of retests, which only the study's lead may see.
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
    """Return the progress of all annotators, in the order of the study, from one query.

    Args:
        workspace: The workspace of the study.
        study: The study.
    """
    passes_by_name: dict[str, list[Pass]] = {name: [] for name in study.annotators}
    for reading in workspace.passes(taxonomy=study.taxonomy):
        if reading.annotator in passes_by_name:
            passes_by_name[reading.annotator].append(reading)
    shared_traces = frozenset(overlap_traces(study))
    return tuple(
        _progress_of(study, name, shared_traces, passes) for name, passes in passes_by_name.items()
    )


def anybody_finished(workspace: Workspace, study: Study) -> bool:
    """Return whether an annotator has finished a trace of the study; then it has figures.

    Args:
        workspace: The workspace of the study.
        study: The study.
    """
    traces = frozenset(study.traces)
    return any(
        work.finished
        and work.kind.is_reading
        and work.annotator in study.annotators
        and work.trace_id in traces
        for work in workspace.passes(taxonomy=study.taxonomy)
    )


def _progress_of(
    study: Study, name: str, shared_traces: frozenset[str], passes: list[Pass]
) -> StudyProgress:
    """Return the progress of an annotator, from all passes of this annotator under the study."""
    passes_by_trace = by_trace(passes)
    ids = assigned(study, name)
    finished_traces = [
        trace_id for trace_id in ids if first_finish(passes_by_trace.get(trace_id, ())) is not None
    ]
    begun_traces = [
        trace_id
        for trace_id in ids
        if any(work.kind.is_reading for work in passes_by_trace.get(trace_id, ()))
    ]
    return StudyProgress(
        name,
        assigned=len(ids),
        shared=sum(trace_id in shared_traces for trace_id in ids),
        withheld=len(withheld_traces(study, name)),
        finished=len(finished_traces),
        begun=len(set(begun_traces).difference(finished_traces)),
        planned=len(retest_traces(study, name)),
        retests=retests_of(study, name, passes_by_trace),
    )


@dataclass(frozen=True, slots=True)
class AnnotatorStatus:
    """The number of an annotator's finished traces, and of traces whose last pass is unfinished.

    A trace with an unfinished second look counts twice: as finished, as figures use its finished
    pass, and as open.
    """

    name: str
    kind: AnnotatorKind
    finished: int
    open: int


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The status of all annotators but judges, by name, and the number of all traces."""

    taxonomy: str
    traces: int
    annotators: tuple[AnnotatorStatus, ...]


def status(workspace: Workspace, taxonomy: Taxonomy) -> StatusReport:
    """Return the status of all annotators under a taxonomy.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
    """
    readings_by_name: dict[str, dict[str, list[Pass]]] = {}
    for reading in workspace.passes(taxonomy=taxonomy.ref):
        if reading.kind.is_reading:
            readings_by_trace = readings_by_name.setdefault(reading.annotator, {})
            readings_by_trace.setdefault(reading.trace_id, []).append(reading)
    rows = []
    for info in workspace.annotators():
        if info.kind is AnnotatorKind.JUDGE:
            continue
        all_readings = readings_by_name.get(info.name, {}).values()
        finished = sum(any(reading.finished for reading in readings) for readings in all_readings)
        unfinished = sum(
            not max(readings, key=lambda reading: reading.number).finished
            for readings in all_readings
        )
        rows.append(AnnotatorStatus(info.name, info.kind, finished, unfinished))
    return StatusReport(taxonomy.ref, len(workspace.traces()), tuple(rows))

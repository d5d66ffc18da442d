"""How far everybody is, and the annotators of a study with what is theirs."""

from __future__ import annotations

from dataclasses import dataclass

from mast_tui.labels import AnnotatorKind, Pass
from mast_tui.session.retests import Retests, by_trace, first_finish, retests_of
from mast_tui.study import Study, assigned, overlap_traces, retest_traces, withheld_traces
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Progress:
    """One annotator's share of a study, in traces.

    Of the ``assigned``, ``shared`` are labelled by others too and in ``withheld`` no suggestions
    are shown. ``finished`` are done, ``begun`` are not finished, and the rest is untouched.
    ``planned`` come back once finished; how far these are is for whoever runs the study, not for
    the annotator.
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
        """How many are not finished."""
        return self.assigned - self.finished


def progress(workspace: Workspace, study: Study) -> tuple[Progress, ...]:
    """How far everybody is, in the order of the study; one query."""
    passes: dict[str, list[Pass]] = {name: [] for name in study.annotators}
    for one in workspace.passes(taxonomy=study.taxonomy):
        if one.annotator in passes:
            passes[one.annotator].append(one)
    shared = frozenset(overlap_traces(study))
    return tuple(_progress(study, name, shared, own) for name, own in passes.items())


def anybody_finished(workspace: Workspace, study: Study) -> bool:
    """Whether an annotator of the study has finished any of its traces, so that its figures have
    begun."""
    traces = frozenset(study.traces)
    return any(
        one.finished
        and one.kind.is_reading
        and one.annotator in study.annotators
        and one.trace_id in traces
        for one in workspace.passes(taxonomy=study.taxonomy)
    )


def _progress(study: Study, name: str, shared: frozenset[str], passes: list[Pass]) -> Progress:
    own = by_trace(passes)
    ids = assigned(study, name)
    finished = [one for one in ids if first_finish(own.get(one, ())) is not None]
    begun = [one for one in ids if any(p.kind.is_reading for p in own.get(one, ()))]
    return Progress(
        name,
        assigned=len(ids),
        shared=sum(one in shared for one in ids),
        withheld=len(withheld_traces(study, name)),
        finished=len(finished),
        begun=len(set(begun).difference(finished)),
        planned=len(retest_traces(study, name)),
        retests=retests_of(study, name, own),
    )


@dataclass(frozen=True, slots=True)
class AnnotatorStatus:
    """The traces of an annotator: how many are finished, and how many have an open pass.

    A trace with an open second look counts as both: its finished pass counts in all figures, and
    something is left to do.
    """

    name: str
    kind: AnnotatorKind
    finished: int
    open: int


@dataclass(frozen=True, slots=True)
class StatusReport:
    """Everybody but judges, by name, and how many traces the workspace knows."""

    taxonomy: str
    traces: int
    annotators: tuple[AnnotatorStatus, ...]


def status(workspace: Workspace, taxonomy: Taxonomy) -> StatusReport:
    """Return how far the annotators are under a taxonomy."""
    passes: dict[str, dict[str, list[Pass]]] = {}
    for one in workspace.passes(taxonomy=taxonomy.ref):
        if one.kind.is_reading:
            passes.setdefault(one.annotator, {}).setdefault(one.trace_id, []).append(one)
    rows = []
    for info in workspace.annotators():
        if info.kind is AnnotatorKind.JUDGE:
            continue
        work = passes.get(info.name, {}).values()
        finished = sum(any(one.finished for one in mine) for mine in work)
        unfinished = sum(not max(mine, key=lambda one: one.number).finished for mine in work)
        rows.append(AnnotatorStatus(info.name, info.kind, finished, unfinished))
    return StatusReport(taxonomy.ref, len(workspace.traces()), tuple(rows))

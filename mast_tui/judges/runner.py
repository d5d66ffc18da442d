"""Running a judge over many traces: resumable, one trace after the other, each kept at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.judges.protocol import Judge, Judgement
from mast_tui.labels import Finding
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import RunTrace, TraceRecord, WorkspaceError, store_judgement
from mast_tui.workspace.records import Judgement as Judged
from mast_tui.workspace.records import SpanIndex, indices_in

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


CANCELLED: Final = "cancelled"
"""Why a run was broken off that somebody cancelled."""


class Step(StrEnum):
    """What became of one trace."""

    JUDGED = "judged"
    KNOWN = "known"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """One trace is through: the ``done``-th so far, with so many suggestions.

    ``problem`` says why it failed.
    """

    done: int
    trace_id: str
    path: Path
    step: Step
    suggestions: int = 0
    problem: str | None = None


@dataclass(slots=True)
class RunSummary:
    """What came of a run, as far as it is; ``run_id`` is None where there was nothing to judge.

    ``by_mode`` counts this run's suggestions by slug; ``stopped`` says why somebody broke it off.
    """

    judge: str
    taxonomy: str
    run_id: str | None = None
    by_mode: Counter[str] = field(default_factory=Counter)
    steps: Counter[Step] = field(default_factory=Counter)
    failed: list[Progress] = field(default_factory=list)
    stopped: str | None = None

    @property
    def suggestions(self) -> int:
        """How many suggestions were made now."""
        return self.by_mode.total()

    def add(self, progress: Progress) -> Progress:
        """Count a trace that is through, and give it its number."""
        self.steps[progress.step] += 1
        progress = replace(progress, done=self.steps.total())
        if progress.step is Step.FAILED:
            self.failed.append(progress)
        return progress


@dataclass(frozen=True, slots=True)
class Look:
    """What a judge found when it looked at a trace, wherever that was.

    ``judgement`` is None where it was not judged, as it was known; ``problem`` says why it could
    not be read. ``indices`` are those of the spans of its findings, by key, where the trace was
    there.
    """

    path: Path
    record: TraceRecord
    judgement: Judgement | None
    problem: str | None = None
    indices: Mapping[str, SpanIndex] = field(default_factory=dict)


def finding_indices(trace: Trace, findings: Iterable[Finding]) -> dict[str, SpanIndex]:
    """Return where the spans of findings stand in their trace, by key."""
    keys = (key for one in findings for key in (one.first, one.last) if key is not None)
    return indices_in(trace, dict.fromkeys(keys, False))


Known = tuple[str, str | None, int | None]
"""By which other processes know a trace that was judged: id, hash of the content, spans."""


def _known(record: TraceRecord) -> Known:
    content = None if record.identity is None else record.identity.content_hash
    return record.trace_id, content, record.spans


def judged_before(
    judge: Judge, taxonomy: Taxonomy, workspace: Workspace, covered_by: Collection[str] = ()
) -> frozenset[Known]:
    """The traces that ``run_judge`` would pass over, for those who look elsewhere.

    Args:
        judge: Who looks.
        taxonomy: Only its modes count.
        workspace: Where it was kept.
        covered_by: Judges that say all that this one would.
    """
    names = (judge.name, *covered_by)
    run = _Run(judge, taxonomy, workspace, names)
    kept: dict[str, list[Judged]] = {}
    for name in names:
        for one in workspace.judgements(annotator=name, taxonomy=taxonomy.ref):
            kept.setdefault(one.trace_id, []).append(one)
    told = (one for one in workspace.traces() if run.has_said_all(kept.get(one.trace_id, ())))
    return frozenset(map(_known, told))


@dataclass(frozen=True, slots=True)
class Looking:
    """Has a judge look at traces without a workspace, in any process.

    ``known`` are traces that it need not look at again, as ``judged_before`` finds them.
    """

    judge: Judge
    known: frozenset[Known] = frozenset()

    def __call__(self, trace: Trace) -> Look:
        """Read a trace to its end, and judge it."""
        return self.unless(trace, lambda record: _known(record) in self.known)

    def unless(self, trace: Trace, known: Callable[[TraceRecord], bool]) -> Look:
        """Read a trace to its end, and judge it unless it is known.

        Args:
            trace: Of which the first spans are read.
            known: Whether nothing more need be said of it.
        """
        try:
            read_fully(trace)
            record = TraceRecord.of(trace)
            judgement = None if known(record) else self.judge.judge(trace)
        except OSError as error:
            problem = error.strerror or str(error)
            return Look(trace.path, TraceRecord.of(trace), None, problem)
        indices = {} if judgement is None else finding_indices(trace, judgement.findings)
        return Look(trace.path, record, judgement, indices=indices)


def run_judge(
    judge: Judge,
    taxonomy: Taxonomy,
    traces: Iterable[Trace | Look],
    workspace: Workspace,
    *,
    covered_by: Collection[str] | None = (),
    on_progress: Callable[[Progress], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> RunSummary:
    """Let a judge look at traces and keep what it suggests, each trace in one transaction.

    A trace that this version of the judge has seen with as many spans is passed over, so a run
    that was broken off goes on where it ended. A trace that cannot be read is noted and the run
    goes on.

    Args:
        judge: Who looks.
        taxonomy: Only its modes count.
        traces: What is looked at, one after the other, or what the judge has said of it before.
        workspace: Where it is kept.
        covered_by: Judges that say all that this one would; a trace that one of them has seen is
            passed over too. None judges every trace again, also one that this judge has seen.
        on_progress: Told of each trace that is through.
        stop: Asked before each trace whether to break off.

    Raises:
        WorkspaceError: The workspace fails, or the judge knows no mode of the taxonomy.
    """
    names = None if covered_by is None else (judge.name, *covered_by)
    run = _Run(judge, taxonomy, workspace, names)
    for trace in traces:
        if stop():
            run.summary.stopped = CANCELLED
            break
        on_progress(run.one(trace))
    return run.end()


class _Run:
    """A run as far as it has come; it is noted in the workspace with its first new trace."""

    def __init__(
        self,
        judge: Judge,
        taxonomy: Taxonomy,
        workspace: Workspace,
        names: Sequence[str] | None,
    ) -> None:
        known = {mode.slug for mode in taxonomy.modes}
        self._looks_at = tuple(slug for slug in judge.looks_at if slug in known)
        if not self._looks_at:
            raise WorkspaceError(
                f"{judge.name} knows no mode of {taxonomy.ref}; it was made for another taxonomy"
            )
        workspace.add_taxonomy(taxonomy)
        self._judge = judge
        self._taxonomy = taxonomy.ref
        self._workspace = workspace
        self._names = names
        self.summary = RunSummary(judge.name, taxonomy.ref)

    def one(self, trace: Trace | Look) -> Progress:
        """Judge one trace and keep the result."""
        if isinstance(trace, Look):
            known = trace.problem is None and self._is_known(trace.record)
            return self._keep(replace(trace, judgement=None) if known else trace)
        return self._keep(Looking(self._judge).unless(trace, self._is_known))

    def _is_known(self, record: TraceRecord) -> bool:
        if self._names is None:
            return False
        before = self._workspace.find_trace(record)
        return before is not None and self._has_judged(before, record)

    def _keep(self, look: Look) -> Progress:
        """Keep what came of one trace, in one transaction."""
        with self._workspace.transaction():
            return self._keep_look(look)

    def _keep_look(self, look: Look) -> Progress:
        trace_id = self._workspace.register_trace(look.record)
        suggestions = 0
        if look.problem is not None:
            step = Step.FAILED
            self._workspace.note_run_trace(self._run_id(), RunTrace(trace_id, 0, look.problem))
        elif look.judgement is None:
            step = Step.KNOWN
        else:
            step = Step.JUDGED
            suggestions = self._store(trace_id, look.judgement, look.indices)
        return self.summary.add(Progress(0, trace_id, look.path, step, suggestions, look.problem))

    def end(self) -> RunSummary:
        """Note the end of the run, unless it was broken off, and sum it up."""
        if self.summary.run_id is not None and self.summary.stopped is None:
            self._workspace.finish_run(self.summary.run_id)
        return self.summary

    def _run_id(self) -> str:
        if self.summary.run_id is None:
            self.summary.run_id = self._workspace.start_run(self._judge.name, self._taxonomy)
        return self.summary.run_id

    def _has_judged(self, before: TraceRecord, now: TraceRecord) -> bool:
        kept = [
            judgement
            for name in self._names or ()
            for judgement in self._workspace.judgements(
                trace_id=before.trace_id, annotator=name, taxonomy=self._taxonomy
            )
        ]
        grown = before.spans is not None and before.spans != now.spans
        return not grown and self.has_said_all(kept)

    def has_said_all(self, kept: Iterable[Judged]) -> bool:
        """Whether what was said of a trace covers all that this run would say."""
        return any(
            one.looks_at == self._looks_at
            if one.judge == self._judge.name
            else set(self._looks_at) <= set(one.looks_at)
            for one in kept
        )

    def _store(self, trace_id: str, judgement: Judgement, indices: Mapping[str, SpanIndex]) -> int:
        judged = self._looks_at
        if judgement.judged is not None:
            judged = tuple(slug for slug in judged if slug in judgement.judged)
        findings = [finding for finding in judgement.findings if finding.mode in judged]
        count = store_judgement(
            self._workspace,
            judge=self._judge.name,
            taxonomy=self._taxonomy,
            trace_id=trace_id,
            looks_at=judged,
            findings=findings,
            run_id=self._run_id(),
            indices=indices,
        )
        self.summary.by_mode.update(finding.mode for finding in findings)
        return count

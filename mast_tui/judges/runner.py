"""Runs of a judge over many traces; each result is stored at once, so that a run can resume."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from mast_tui.labels import Finding, Judgement
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import RunTrace, TraceRecord, WorkspaceError, store_judgement
from mast_tui.workspace.records import JudgementRecord, SpanIndex, indices_in

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


CANCELLED: Final = "cancelled"
"""The reason of a run that the user stopped."""


class Judge(Protocol):
    """A reader of traces that suggests failure modes.

    ``name`` is the annotator of the judge's labels, such as ``judge:rules@1``. Each version of a
    judge has its own name. ``looks_at`` holds the slugs of the modes that the judge gives verdicts
    on.
    """

    @property
    def name(self) -> str: ...
    @property
    def looks_at(self) -> tuple[str, ...]: ...
    def judge(self, trace: Trace, /) -> Judgement:
        """Judge a trace whose index is complete (``trace.loaded.complete``).

        Raises:
            OSError: the trace's source could not be read.
        """


class TraceStatus(StrEnum):
    """The result of a run for one trace; ``KNOWN`` if the judge had judged it before."""

    JUDGED = "judged"
    KNOWN = "known"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """A report on one trace of a run.

    Attributes:
        done: The number of the trace in the run, from 1.
        trace_id: The id of the trace in the workspace.
        path: The file of the trace.
        status: The result of the run for the trace.
        suggestions: The number of suggestions on the trace.
        problem: The reason if the trace could not be judged, otherwise None.
    """

    done: int
    trace_id: str
    path: Path
    status: TraceStatus
    suggestions: int = 0
    problem: str | None = None


@dataclass(slots=True)
class RunSummary:
    """The counts of a run so far.

    Attributes:
        judge: The name of the judge.
        taxonomy: The reference of the taxonomy.
        run_id: The id of the run; None if there was no new trace to judge.
        by_mode: The number of suggestions of this run, by slug.
        traces: The number of traces, by status.
        failed: The reports on the traces that could not be judged.
        stopped: The reason if the run was stopped early, otherwise None.
    """

    judge: str
    taxonomy: str
    run_id: str | None = None
    by_mode: Counter[str] = field(default_factory=Counter)
    traces: Counter[TraceStatus] = field(default_factory=Counter)
    failed: list[Progress] = field(default_factory=list)
    stopped: str | None = None

    @property
    def suggestions(self) -> int:
        """The number of suggestions of this run."""
        return self.by_mode.total()

    def add(self, progress: Progress) -> Progress:
        """Count a trace, and return its report with the number of the trace."""
        self.traces[progress.status] += 1
        progress = replace(progress, done=self.traces.total())
        if progress.status is TraceStatus.FAILED:
            self.failed.append(progress)
        return progress


@dataclass(frozen=True, slots=True)
class JudgedTrace:
    """The result of a judge on a trace.

    Attributes:
        record: The record of the trace, with its file.
        judgement: The judgement; None if the trace was judged before or could not be judged.
        problem: The reason if the trace could not be judged, otherwise None.
        indices: The indices of the spans of the findings, by key.
    """

    record: TraceRecord
    judgement: Judgement | None = None
    problem: str | None = None
    indices: Mapping[str, SpanIndex] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The file of the trace."""
        assert self.record.path is not None, "a judge reads traces from files"
        return self.record.path


def finding_indices(trace: Trace, findings: Iterable[Finding]) -> dict[str, SpanIndex]:
    """Return the indices of the first and last spans of findings, by span key.

    Args:
        trace: The trace, with a complete index.
        findings: The findings on the trace.
    """
    keys = (key for finding in findings for key in (finding.first, finding.last) if key is not None)
    return indices_in(trace, dict.fromkeys(keys, False))  # False: without text lengths


TraceKey = tuple[str, str | None, int | None]
"""The id, content hash and number of spans of a trace: a trace with the same key is not judged
again."""


def _trace_key(record: TraceRecord) -> TraceKey:
    content = None if record.identity is None else record.identity.content_hash
    return record.trace_id, content, record.spans


def judged_traces(
    judge: Judge, taxonomy: Taxonomy, workspace: Workspace, covered_by: Collection[str] = ()
) -> frozenset[TraceKey]:
    """Return the keys of the traces that ``run_judge`` would skip.

    Args:
        judge: The judge.
        taxonomy: The taxonomy whose modes count.
        workspace: The workspace with the earlier judgements.
        covered_by: The names of judges whose verdicts include the verdicts of this judge.
    """
    names = (judge.name, *covered_by)
    run = _Run(judge, taxonomy, workspace, names)
    judgements_by_trace: dict[str, list[JudgementRecord]] = {}
    for name in names:
        for judgement in workspace.judgements(annotator=name, taxonomy=taxonomy.ref):
            judgements_by_trace.setdefault(judgement.trace_id, []).append(judgement)
    return frozenset(
        _trace_key(record)
        for record in workspace.traces()
        if run.is_covered(judgements_by_trace.get(record.trace_id, ()))
    )


@dataclass(frozen=True, slots=True)
class TraceJudging:
    """A function that judges a trace without a workspace, in any process.

    ``skipped`` holds the keys of the traces to skip.
    """

    judge: Judge
    skipped: frozenset[TraceKey] = frozenset()

    def __call__(self, trace: Trace) -> JudgedTrace:
        """Read a trace to its end, and judge it."""
        return self.judge_unless(trace, lambda record: _trace_key(record) in self.skipped)

    def judge_unless(self, trace: Trace, is_judged: Callable[[TraceRecord], bool]) -> JudgedTrace:
        """Read a trace to its end, and judge it unless it was judged before.

        Args:
            trace: The trace.
            is_judged: Checks whether the trace was judged before.
        """
        try:
            read_fully(trace)
            record = TraceRecord.from_trace(trace)
            if is_judged(record):
                return JudgedTrace(record)
            judgement = self.judge.judge(trace)
        except OSError as error:
            problem = error.strerror or str(error)
            return JudgedTrace(TraceRecord.from_trace(trace), problem=problem)
        indices = finding_indices(trace, judgement.findings)
        return JudgedTrace(record, judgement, indices=indices)


def run_judge(
    judge: Judge,
    taxonomy: Taxonomy,
    traces: Iterable[Trace | JudgedTrace],
    workspace: Workspace,
    *,
    covered_by: Collection[str] | None = (),
    on_progress: Callable[[Progress], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> RunSummary:
    """Judge traces and store the suggestions, each trace in one transaction.

    A trace that was judged before with the same number of spans is skipped, so a stopped run can
    resume. A trace that cannot be read is recorded, and the run continues.

    Args:
        judge: The judge.
        taxonomy: The taxonomy whose modes count.
        traces: The traces, or the results of the judge on them.
        workspace: The workspace in which the suggestions are stored.
        covered_by: The names of judges whose verdicts include the verdicts of this judge; their
            traces are skipped too. None judges all traces again.
        on_progress: Called after each trace.
        stop: Called before each trace; a true value ends the run.

    Raises:
        WorkspaceError: The workspace fails, or the judge knows no mode of the taxonomy.
    """
    names = None if covered_by is None else (judge.name, *covered_by)
    run = _Run(judge, taxonomy, workspace, names)
    for trace in traces:
        if stop():
            run.summary.stopped = CANCELLED
            break
        on_progress(run.add(trace))
    return run.end()


class _Run:
    """The state of a run; the workspace records a run when its first trace is stored."""

    def __init__(
        self,
        judge: Judge,
        taxonomy: Taxonomy,
        workspace: Workspace,
        judge_names: Sequence[str] | None,
    ) -> None:
        slugs = {mode.slug for mode in taxonomy.modes}
        self._judged_modes = tuple(slug for slug in judge.looks_at if slug in slugs)
        if not self._judged_modes:
            raise WorkspaceError(
                f"{judge.name} supports no mode of {taxonomy.ref}; it was made for another taxonomy"
            )
        workspace.add_taxonomy(taxonomy)
        self._judge = judge
        self._taxonomy = taxonomy.ref
        self._workspace = workspace
        # None judges all traces again.
        self._judge_names = judge_names
        self.summary = RunSummary(judge.name, taxonomy.ref)

    def add(self, trace: Trace | JudgedTrace) -> Progress:
        """Judge one trace and store the result; a ready result is stored if it is new."""
        if not isinstance(trace, JudgedTrace):
            judged = TraceJudging(self._judge).judge_unless(trace, self._is_known)
        elif trace.problem is None and self._is_known(trace.record):
            judged = replace(trace, judgement=None)  # the stored judgement stays
        else:
            judged = trace
        with self._workspace.transaction():
            return self._store_result(judged)

    def _is_known(self, record: TraceRecord) -> bool:
        if self._judge_names is None:
            return False
        stored_record = self._workspace.find_trace(record)
        return stored_record is not None and self._was_judged(stored_record, record)

    def _store_result(self, judged: JudgedTrace) -> Progress:
        """Store the result of a trace, and return the progress of the run."""
        trace_id = self._workspace.register_trace(judged.record)
        suggestions = 0
        if judged.problem is not None:
            status = TraceStatus.FAILED
            self._workspace.note_run_trace(
                self._run_id(), RunTrace(trace_id, findings=0, problem=judged.problem)
            )
        elif judged.judgement is None:
            # The trace was judged before.
            status = TraceStatus.KNOWN
        else:
            status = TraceStatus.JUDGED
            suggestions = self._store_suggestions(trace_id, judged.judgement, judged.indices)
        # ``RunSummary.add`` replaces the 0 by the number of the trace.
        return self.summary.add(
            Progress(0, trace_id, judged.path, status, suggestions, judged.problem)
        )

    def end(self) -> RunSummary:
        """Record the end of the run unless it was stopped, and return its counts."""
        if self.summary.run_id is not None and self.summary.stopped is None:
            self._workspace.finish_run(self.summary.run_id)
        return self.summary

    def _run_id(self) -> str:
        if self.summary.run_id is None:
            self.summary.run_id = self._workspace.start_run(self._judge.name, self._taxonomy)
        return self.summary.run_id

    def _was_judged(self, stored_record: TraceRecord, current_record: TraceRecord) -> bool:
        """Check whether a trace was judged on the modes of this run and has no new spans since."""
        judgements = [
            judgement
            for name in self._judge_names or ()
            for judgement in self._workspace.judgements(
                trace_id=stored_record.trace_id, annotator=name, taxonomy=self._taxonomy
            )
        ]
        return not stored_record.has_grown(current_record) and self.is_covered(judgements)

    def is_covered(self, judgements: Iterable[JudgementRecord]) -> bool:
        """Check whether one of a trace's judgements includes all verdicts of this run.

        A judgement of the same judge must be on exactly the modes of this run. A judgement of
        another judge may be on more modes.
        """
        for judgement in judgements:
            if judgement.judge == self._judge.name:
                includes_verdicts = judgement.looks_at == self._judged_modes
            else:
                includes_verdicts = set(self._judged_modes) <= set(judgement.looks_at)
            if includes_verdicts:
                return True
        return False

    def _store_suggestions(
        self, trace_id: str, judgement: Judgement, indices: Mapping[str, SpanIndex]
    ) -> int:
        """Store the findings on the modes of this run, and return their number."""
        modes = self._judged_modes
        if judgement.judged_modes is not None:
            modes = tuple(slug for slug in modes if slug in judgement.judged_modes)
        findings = [finding for finding in judgement.findings if finding.mode in modes]
        count = store_judgement(
            self._workspace,
            judge=self._judge.name,
            taxonomy=self._taxonomy,
            trace_id=trace_id,
            looks_at=modes,
            findings=findings,
            run_id=self._run_id(),
            indices=indices,
        )
        self.summary.by_mode.update(finding.mode for finding in findings)
        return count

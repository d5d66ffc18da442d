"""What a workspace knows besides labels: traces, annotators, runs of judges, merges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mast_tui.labels import AnnotatorKind
from mast_tui.traces.model import Outcome, Trace, TraceIdentity


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """A trace as the workspace knows it.

    ``trace_id`` is the native or made-up id; among traces of one id with different content the
    workspace's own is ``id~2`` and so on. ``identity`` is None where only labels of the trace are
    known and never its content. ``path`` is where it was last seen, never a part of what it is;
    ``record`` its place in that file. ``spans`` is None while nobody has counted them all.
    """

    trace_id: str
    identity: TraceIdentity | None = None
    path: Path | None = None
    record: int | None = None
    spans: int | None = None
    task: str | None = None
    system: str | None = None
    model: str | None = None
    benchmark: str | None = None
    outcome: Outcome = Outcome.UNKNOWN
    score: float | None = None

    @classmethod
    def of(cls, trace: Trace) -> TraceRecord:
        """The record of a trace that a reader has read, as far as it has come."""
        meta = trace.meta
        return cls(
            trace_id=trace.identity.trace_id,
            identity=trace.identity,
            path=trace.path,
            record=trace.record,
            spans=len(trace) if trace.loaded.complete else None,
            task=meta.task,
            system=meta.system,
            model=meta.model,
            benchmark=meta.benchmark,
            outcome=meta.outcome,
            score=meta.score,
        )


@dataclass(frozen=True, slots=True)
class AnnotatorInfo:
    """Somebody who labels; ``blind`` is None until it was said how they work."""

    name: str
    kind: AnnotatorKind
    blind: bool | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """That a judge has looked at a trace, and at which modes; ``run`` is the run's id."""

    judge: str
    trace_id: str
    taxonomy: str
    looks_at: tuple[str, ...]
    at: str
    run: str | None = None


@dataclass(frozen=True, slots=True)
class RunTrace:
    """What a run of a judge did with one trace; ``problem`` is why it failed there."""

    trace_id: str
    findings: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a judge over traces; ``finished_at`` is None where it was broken off."""

    id: str
    judge: str
    taxonomy: str
    started_at: str
    finished_at: str | None = None
    note: str = ""
    traces: tuple[RunTrace, ...] = ()

    @property
    def findings(self) -> int:
        """How many suggestions it made."""
        return sum(trace.findings for trace in self.traces)


@dataclass(frozen=True, slots=True)
class EventConflict:
    """Events that an annotator counted alike in two copies of a workspace, with other content.

    All of them are kept and count, in the order of their ids.
    """

    annotator: str
    seq: int
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What came of merging: ``added`` events, ``known`` ones, and what does not fit together.

    ``altered`` are ids of events that are here with other content; ours were kept.
    """

    added: int
    known: int
    altered: tuple[str, ...] = ()
    conflicts: tuple[EventConflict, ...] = ()

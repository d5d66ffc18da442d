"""A trace under another id, or with facts that its own file does not tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mast_tui.traces.index.pending import awaited_words, stop_waiting
from mast_tui.traces.index.span_columns import Glances, glances
from mast_tui.traces.index.trace_summary import Facts, anew, facts_of
from mast_tui.traces.io.opened_file import changed
from mast_tui.traces.model import Loaded, Outcome, Problem, Span, Trace, TraceIdentity, TraceMeta
from mast_tui.traces.search.byte_prefilter import Sieve, Sifted, sift


def fill_in(meta: TraceMeta, also: TraceMeta) -> TraceMeta:
    """``meta`` with what it lacks taken from ``also``."""
    return replace(
        meta,
        task=meta.task or also.task,
        system=meta.system or also.system,
        model=meta.model or also.model,
        benchmark=meta.benchmark or also.benchmark,
        outcome=also.outcome if meta.outcome is Outcome.UNKNOWN else meta.outcome,
        score=also.score if meta.score is None else meta.score,
        answer_key=meta.answer_key.with_all_of(also.answer_key),
        version=meta.version or also.version,
        started=also.started if meta.started is None else meta.started,
    )


class OverlaidTrace:
    """``trace`` with another id or with facts that fill its gaps; all else is its own."""

    def __init__(
        self, trace: Trace, *, trace_id: str | None = None, facts: TraceMeta | None = None
    ) -> None:
        self._trace = trace
        self._trace_id = trace_id
        self._facts = facts

    @property
    def identity(self) -> TraceIdentity:
        """By which the trace is known again."""
        identity = self._trace.identity
        return identity if self._trace_id is None else replace(identity, trace_id=self._trace_id)

    @property
    def meta(self) -> TraceMeta:
        """What the source tells about the run, and what was filled in."""
        meta = self._trace.meta
        return meta if self._facts is None else fill_in(meta, self._facts)

    @property
    def facts(self) -> Facts:
        """What is known of the trace without its spans: as ``identity`` and ``meta`` tell it."""
        known, also = facts_of(self._trace), self._facts
        if self._trace_id is not None:
            known = known._replace(trace_id=self._trace_id)
        if also is None:
            return known
        unknown = known.outcome == Outcome.UNKNOWN
        return known._replace(
            task=known.task or also.task,
            system=known.system or also.system,
            model=known.model or also.model,
            benchmark=known.benchmark or also.benchmark,
            outcome=also.outcome.value if unknown else known.outcome,
            score=also.score if known.score is None else known.score,
        )

    @property
    def path(self) -> Path:
        """The file the trace is read from."""
        return self._trace.path

    @property
    def record(self) -> int | None:
        """The place of the trace among those of its file."""
        return self._trace.record

    @property
    def problems(self) -> Sequence[Problem]:
        """What of the trace could not be read."""
        return self._trace.problems

    @property
    def loaded(self) -> Loaded:
        """How far the index has come."""
        return self._trace.loaded

    def __len__(self) -> int:
        return len(self._trace)

    def span(self, index: int, /) -> Span:
        """The span at ``index``."""
        return self._trace.span(index)

    def text(self, index: int, /) -> str:
        """The whole text of the span at ``index``."""
        return self._trace.text(index)

    def changed(self) -> str | None:
        """Say why the file is not what was read; None where it is."""
        return changed(self._trace)

    def sift(self, sieve: Sieve | None, begin: int, limit: int, max_bytes: int, /) -> Sifted:
        """The texts that may hold what the sieve is for."""
        return sift(self._trace, sieve, begin, limit, max_bytes)

    def glances(self, first: int, end: int, /) -> Glances:
        """What is known of the spans from ``first`` up to ``end`` (exclusive)."""
        return glances(self._trace, first, end)

    def index_of(self, key: str, /) -> int | None:
        """The index of the span with this key, or None."""
        return self._trace.index_of(key)

    def advance(self, max_bytes: int = 1 << 20, /) -> bool:
        """Read on; False when nothing is left."""
        return self._trace.advance(max_bytes)

    @property
    def awaited(self) -> str | None:
        """How far another process has come with the file; None where none is reading it."""
        return awaited_words(self._trace)

    def stop_waiting(self) -> None:
        """End the process that reads the file."""
        stop_waiting(self._trace)

    def anew(self) -> OverlaidTrace:
        """The same trace without its spans, where it can read them again."""
        return OverlaidTrace(anew(self._trace), trace_id=self._trace_id, facts=self._facts)

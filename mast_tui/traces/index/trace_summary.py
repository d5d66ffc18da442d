"""Reports as they lie on the shelf: everything of a trace but its spans, which are read later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable
from weakref import ReferenceType, ref

import orjson

from mast_tui.traces.index import cached_values as kept_values
from mast_tui.traces.index.big_documents import BIG_DOCUMENTS
from mast_tui.traces.index.span_columns import Glances, glances
from mast_tui.traces.io.opened_file import changed
from mast_tui.traces.model import (
    FileReport,
    Loaded,
    Outcome,
    Problem,
    Span,
    Trace,
    TraceIdentity,
    TraceMeta,
)
from mast_tui.traces.search.byte_prefilter import Sieve, Sifted, sift

if TYPE_CHECKING:
    from mast_tui.traces.index.document_process import DocumentProcess

_TASK_CHARS: Final = 400
"""How much of a task is kept on the shelf."""

_PATIENCE: Final = 0.1
"""Seconds for which ``advance`` waits for the process that reads a big document."""

_OUTCOMES: Final = frozenset(outcome.value for outcome in Outcome)


class Facts(NamedTuple):
    """What is known of a trace without its spans.

    ``outcome`` is the value of an ``Outcome``; ``spans`` is how many were found and ``all_spans``
    whether those were all; ``total`` is its size in bytes; ``problems`` are places and messages.
    """

    trace_id: str
    content_hash: str
    content_bytes: int
    reader: str
    key_scheme: int
    native: bool
    task: str | None
    system: str | None
    model: str | None
    benchmark: str | None
    outcome: str
    score: float | None
    spans: int
    all_spans: bool
    total: int
    problems: tuple[tuple[str, str], ...]


def facts_of(trace: Trace) -> Facts:
    """What is known of a trace."""
    known = getattr(trace, "facts", None)
    if isinstance(known, Facts):
        return known
    identity, meta, loaded = trace.identity, trace.meta, trace.loaded
    return Facts(
        identity.trace_id,
        identity.content_hash,
        identity.content_bytes,
        identity.reader,
        identity.key_scheme,
        identity.native,
        None if meta.task is None else meta.task[:_TASK_CHARS],
        meta.system,
        meta.model,
        meta.benchmark,
        meta.outcome.value,
        meta.score,
        max(len(trace), loaded.spans),
        loaded.complete or loaded.all_spans,
        loaded.total,
        tuple((problem.place, problem.message) for problem in trace.problems),
    )


def facts_from(values: Sequence[Any]) -> Facts:
    """The facts that were kept as a list; what many traces share is kept in memory once.

    Raises ``TypeError`` or ``ValueError`` where that is no list of such facts.
    """
    task, system, model, benchmark, outcome, score, spans, all_spans, total, problems = values[6:]
    if outcome not in _OUTCOMES:
        raise ValueError(f"no outcome: {outcome}")
    identity = kept_values.identity(values[:6])
    return Facts(
        identity.trace_id,
        identity.content_hash,
        identity.content_bytes,
        intern(identity.reader),
        identity.key_scheme,
        identity.native,
        _shared(task),
        _shared(system),
        _shared(model),
        _shared(benchmark),
        intern(outcome),
        kept_values.score_or_none(score),
        kept_values.count(spans),
        kept_values.flag(all_spans),
        kept_values.count(total),
        kept_values.pairs(problems),
    )


def _shared(value: object) -> str | None:
    text = kept_values.text_or_none(value)
    return None if text is None else intern(text)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _Reading:
    """One reading of a file."""

    report: FileReport


class FileToRead:
    """A file that is read when a trace of it is opened, with those of its sub-agents.

    Traces of one file that are open together share one reading; with the last it is gone from
    memory.
    """

    __slots__ = ("_last", "_read", "as_told", "members", "path")

    def __init__(
        self,
        path: str,
        members: Sequence[str],
        read: Callable[[], FileReport],
        *,
        as_told: bool = False,
    ) -> None:
        """Keep in mind how the file is read.

        Args:
            path: The file, or a folder that holds one run.
            members: The files of its sub-agents.
            read: Reads it.
            as_told: Whether there is more to reading it than the paths tell.
        """
        self.path = path
        self.members = tuple(members)
        self.as_told = as_told
        self._read = read
        self._last: ReferenceType[_Reading] | None = None

    def read(self) -> _Reading:
        """What the file holds, read now where it was not for a trace that is open still, or where
        it has changed since."""
        reading = None if self._last is None else self._last()
        if reading is None or any(map(changed, reading.report.traces[:1])):
            reading = _Reading(self._read())
            self._last = ref(reading)
        return reading


class ShelvedTrace:
    """A trace known from an earlier look; its file is read when it is asked to ``advance``.

    Until then it has no spans, but ``loaded.spans`` says how many there will be. A big document
    that is not kept is read by another process meanwhile: ``advance`` looks how far that is.
    """

    __slots__ = (
        "__weakref__",
        "_facts",
        "_file",
        "_gone",
        "_process",
        "_reading",
        "_record",
        "_trace",
    )

    def __init__(self, file: FileToRead, record: int | None, facts: Facts) -> None:
        self._file = file
        self._record = record
        self._facts = facts
        self._gone = False
        self._process: DocumentProcess | None = None
        self._reading: _Reading | None = None
        self._trace: Trace | None = None

    @property
    def facts(self) -> Facts:
        """What is known of the trace without its spans."""
        return self._facts if self._trace is None else facts_of(self._trace)

    @property
    def file(self) -> FileToRead:
        """The file to read, with those of its sub-agents."""
        return self._file

    @property
    def identity(self) -> TraceIdentity:
        """By which the trace is known again."""
        return TraceIdentity(*self._facts[:6]) if self._trace is None else self._trace.identity

    @property
    def path(self) -> Path:
        """The file the trace is read from."""
        return Path(self._file.path)

    @property
    def record(self) -> int | None:
        """The place of the trace among those of its file."""
        return self._record

    @property
    def meta(self) -> TraceMeta:
        """What the source tells about the run."""
        if self._trace is not None:
            return self._trace.meta
        facts = self._facts
        return TraceMeta(
            facts.task,
            facts.system,
            facts.model,
            facts.benchmark,
            Outcome(facts.outcome),
            facts.score,
        )

    @property
    def problems(self) -> Sequence[Problem]:
        """What of the trace could not be read."""
        if self._trace is not None:
            return self._trace.problems
        return tuple(Problem(place, message) for place, message in self._facts.problems)

    @property
    def loaded(self) -> Loaded:
        """How far the index has come: not begun before the first ``advance``."""
        if self._trace is not None:
            return self._trace.loaded
        facts = self._facts
        if self._gone:
            return Loaded(0, 0, complete=True)
        process = self._process
        if process is not None:
            progress = process.progress
            return Loaded(progress.done, progress.total, False, facts.spans, facts.all_spans)
        return Loaded(0, facts.total, False, facts.spans, facts.all_spans)

    def __len__(self) -> int:
        return 0 if self._trace is None else len(self._trace)

    def span(self, index: int, /) -> Span:
        """The span at ``index``."""
        return self._opened(index).span(index)

    def text(self, index: int, /) -> str:
        """The whole text of the span at ``index``."""
        return self._opened(index).text(index)

    def changed(self) -> str | None:
        """Say why the file is not what was read; None where it is, or has not been read yet."""
        return None if self._trace is None else changed(self._trace)

    def sift(self, sieve: Sieve | None, begin: int, limit: int, max_bytes: int, /) -> Sifted:
        """The texts that may hold what the sieve is for."""
        return sift(self._opened(begin), sieve, begin, limit, max_bytes)

    def glances(self, first: int, end: int, /) -> Glances:
        """What is known of the spans from ``first`` up to ``end`` (exclusive)."""
        return glances(self._opened(first), first, end)

    def index_of(self, key: str, /) -> int | None:
        """The index of the span with this key, or None."""
        return None if self._trace is None else self._trace.index_of(key)

    def advance(self, max_bytes: int = 1 << 20, /) -> bool:
        """Read the file, and after that as much of the trace; False when nothing is left."""
        if self._trace is not None:
            return self._trace.advance(max_bytes)
        if self._gone:
            return False
        process = self._process or BIG_DOCUMENTS.begin(self.path)
        self._process = process
        if process is not None:
            if not process.wait(_PATIENCE):
                return True
            self._process = None
            if process.failed is not None:
                self._lose(process.failed)
                return False
        reading = self._file.read()
        report = reading.report
        trace = next((one for one in report.traces if one.record == self._record), None)
        if trace is None:
            self._lose(report.failed or report.skipped or "it holds other traces now")
            return False
        self._reading, self._trace = reading, trace
        return not trace.loaded.complete

    @property
    def awaited(self) -> str | None:
        """How far another process has come with the file; None where none is reading it."""
        process = self._process
        return None if process is None else process.progress.words

    def stop_waiting(self) -> None:
        """End the process that reads the file; the next ``advance`` begins another.

        To be called from the thread that advances, as that is what waits.
        """
        process, self._process = self._process, None
        if process is not None:
            process.stop()
            process.wait()

    def _lose(self, reason: str) -> None:
        broken = ("whole file", f"cannot be read any more: {reason}")
        self._facts = self._facts._replace(problems=(*self._facts.problems, broken), spans=0)
        self._gone = True

    def anew(self) -> ShelvedTrace:
        """The same trace without its spans, with all that is known of it by now."""
        return ShelvedTrace(self._file, self._record, self.facts)

    def _opened(self, index: int) -> Trace:
        if self._trace is None:
            raise IndexError(f"no span {index} in a trace that has not been read")
        return self._trace


@runtime_checkable
class Rereadable(Protocol):
    """A trace that can be had again without its spans, which are then read anew."""

    def anew(self) -> Trace: ...


def anew(trace: Trace) -> Trace:
    """The trace without its spans where it can read them again, else the trace itself."""
    return trace.anew() if isinstance(trace, Rereadable) else trace


def without_spans(report: FileReport, file: FileToRead) -> FileReport:
    """The report with traces that keep nothing of the file in memory until they are read."""
    traces = tuple(
        trace
        if isinstance(trace, ShelvedTrace)
        else ShelvedTrace(file, trace.record, facts_of(trace))
        for trace in report.traces
    )
    return replace(report, traces=traces)


def report_to_bytes(report: FileReport) -> bytes:
    """The report as bytes for the shelf."""
    thread = report.thread
    return orjson.dumps(
        (
            report.format,
            report.skipped,
            [(problem.place, problem.message) for problem in report.problems],
            None if thread is None else (thread.id, thread.parent),
            [(trace.record, tuple(facts_of(trace))) for trace in report.traces],
        )
    )


def report_from_bytes(path: Path, data: bytes, file: FileToRead) -> FileReport | None:
    """The report that the bytes hold; None where they hold none."""
    try:
        format_name, skipped, problems, thread, traces = kept_values.sequence(orjson.loads(data))
        if (format_name is None) == (skipped is None) or (traces and format_name is None):
            return None
        return FileReport(
            path,
            format=kept_values.text_or_none(format_name),
            skipped=kept_values.text_or_none(skipped),
            problems=kept_values.problems(problems),
            thread=kept_values.thread(thread),
            traces=tuple(
                ShelvedTrace(file, kept_values.count_or_none(record), facts_from(values))
                for record, values in map(kept_values.sequence, kept_values.sequence(traces))
            ),
        )
    except (orjson.JSONDecodeError, TypeError, ValueError):
        return None

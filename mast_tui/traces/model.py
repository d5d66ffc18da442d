"""The data model of traces, which every reader creates and all other packages use."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msgspec import Struct

from mast_tui.traces.io.remote import trace_path

if TYPE_CHECKING:
    from mast_tui.traces.byte_prefilter import Prefilter
    from mast_tui.traces.index.span_totals import SpanTotals
    from mast_tui.traces.io.opened_file import OpenedFile

PREVIEW_CHARS = 200
"""The most code points of a span's preview."""

_TASK_CHARS: Final = 400
"""The most characters of a task in a summary."""

_TEXTS_AT_ONCE: Final = 512
"""The most texts in memory that are searched in one slice."""


def shortened(text: str, most: int) -> str:
    """Return a text, cut to at most ``most`` characters with an ellipsis at the end.

    Args:
        text: The text.
        most: The most characters to return.
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


class SpanKind(StrEnum):
    """The kind of a span."""

    MESSAGE = "message"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    LOG = "log"


class Role(StrEnum):
    """The side that acts in a span."""

    SYSTEM = "system"
    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    LOG = "log"


class SpanStatus(StrEnum):
    """The result of a step, if the source states it."""

    OK = "ok"
    ERROR = "error"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """The result of a run by the benchmark's own check."""

    FAILED = "failed"
    SUCCEEDED = "succeeded"
    UNKNOWN = "unknown"


class Tokens(NamedTuple):
    """The tokens that a model call read and wrote; None if unknown."""

    input: int | None = None
    output: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """One step of a run, without its text.

    Attributes:
        index: The position in reading order, from 0.
        key: The lasting name that labels refer to.
        kind: The kind.
        role: The side that acts.
        agent: The name of the acting agent, person or tool.
        name: The name of the tool, for calls and results.
        parent: The key of the span above it; for a tool result, the key of its call.
        start: The start in Unix seconds; None if unknown.
        end: The end in Unix seconds; None if unknown.
        status: The result of the step.
        place: The location of the span in its source: ``line 380`` or a JSON pointer.
        preview: The beginning of the text on one line, at most ``PREVIEW_CHARS`` code points.
        preview_is_complete: True if the preview is the entire text.
        tokens: The tokens of a model call, set only on the last span that the call made.
    """

    index: int
    key: str
    kind: SpanKind
    role: Role
    agent: str
    name: str | None
    parent: str | None
    start: float | None
    end: float | None
    status: SpanStatus
    place: str
    preview: str
    preview_is_complete: bool
    tokens: Tokens | None = None


class Problem(NamedTuple):
    """The location and the reason of a part of a source that could not be read."""

    place: str
    message: str


Named = tuple[tuple[str, str], ...]
"""Texts under their names, in the order of the source."""


class AnswerKey(NamedTuple):
    """The expected course of a run, and its scores.

    An annotator who works blind must not see any of it.

    Attributes:
        expected_actions: Tool calls: the tool's name with its arguments as JSON.
        reference: The text of a right answer.
        scores: Rewards, their parts, and every other verdict by number or word.
        explanations: A scorer's reasons for the scores.
        step_scores: Scores by the key or the number of the span.
        patch: The submitted diff and the right diff.
        tests: The tests that were run, with their results.
        failures: Labels of failures by other people.
        other: All other facts that a benchmark keeps.
    """

    expected_actions: Named = ()
    reference: Named = ()
    scores: Named = ()
    explanations: Named = ()
    step_scores: Named = ()
    patch: Named = ()
    tests: Named = ()
    failures: Named = ()
    other: Named = ()

    def sections(self) -> Iterator[tuple[str, Named]]:
        """Yield the name and the entries of each filled section."""
        return ((name, entries) for name, entries in self._asdict().items() if entries)

    def entries(self) -> Named:
        """Return the entries of all sections."""
        return tuple(entry for _name, section in self.sections() for entry in section)

    def with_all_of(self, other: AnswerKey) -> AnswerKey:
        """Return a copy with the missing entries of ``other`` at the end of each section."""
        sections = {}
        for name, entries in other.sections():
            own_entries = getattr(self, name)
            new_entries = (entry for entry in entries if entry not in own_entries)
            sections[name] = (*own_entries, *new_entries)
        return self._replace(**sections)


class TraceMeta(NamedTuple):
    """The facts of a run as a whole; None for unknown facts.

    Attributes:
        task: The words of the task.
        system: The agent program that ran.
        model: The language model of the agent program.
        benchmark: The benchmark of the task.
        outcome: The result by the benchmark's own check.
        score: A number in [0, 1].
        answer_key: Everything that an annotator working blind must not see.
        version: The version of the system.
        started: The start of the run in Unix seconds, from ``outcomes.csv``; mostly the spans have
            the times instead.
        task_id: The benchmark's name for the task.
        trial: The benchmark's number of this run among several runs of the task.
    """

    task: str | None = None
    system: str | None = None
    model: str | None = None
    benchmark: str | None = None
    outcome: Outcome = Outcome.UNKNOWN
    score: float | None = None
    answer_key: AnswerKey = AnswerKey()
    version: str | None = None
    started: float | None = None
    task_id: str | None = None
    trial: int | None = None

    @property
    def hidden(self) -> Named:
        """All entries that an annotator working blind must not see."""
        return self.answer_key.entries()

    @property
    def task_key(self) -> tuple[str, str] | None:
        """A value that is equal for runs of one task; None if the task is unknown."""
        return task_key(self.benchmark, self.task_id, self.task)


def task_key(
    benchmark: str | None, task_id: str | None, task: str | None
) -> tuple[str, str] | None:
    """Return a value that is equal for runs of one task; None if the task is unknown.

    Args:
        benchmark: The benchmark of the task.
        task_id: The benchmark's name for the task.
        task: The words of the task, the second choice.
    """
    name = " ".join((task_id or task or "").split())
    return (benchmark or "", name) if name else None


_NO_META: Final = TraceMeta()


class TraceIdentity(NamedTuple):
    """The identity of a trace, which does not depend on the path of its file.

    Attributes:
        trace_id: The id from the file if the format makes it unique, else ``<stem>[:<record>]-<8
            hex of the content hash>``.
        content_hash: The SHA-256 of the content, in hex.
        content_bytes: The number of bytes of the content.
        reader: The name of the reader.
        key_scheme: The number of the scheme by which the reader makes span keys.
        native: True if the id is from the file.
    """

    trace_id: str
    content_hash: str
    content_bytes: int
    reader: str
    key_scheme: int
    native: bool


class Loaded(NamedTuple):
    """The progress of reading a trace.

    Attributes:
        done: The number of bytes that were read.
        total: The number of all bytes.
        complete: True if everything was read.
        spans: The number of spans at an earlier reading; 0 if there was none.
        all_spans: True if an earlier reading has counted all spans.
    """

    done: int
    total: int
    complete: bool
    spans: int = 0
    all_spans: bool = False


class Thread(NamedTuple):
    """The part of a run that one file holds, if sub-agents have files of their own.

    Attributes:
        id: The id of the thread. The keys of a sub-agent's spans begin with ``<id>/``.
        parent: The id of the thread that started this one; None for the main thread.
        system: The agent program; equal ids of two programs are different threads.
    """

    id: str
    parent: str | None = None
    system: str = ""


STATUSES: Final = (SpanStatus.UNKNOWN, SpanStatus.OK, SpanStatus.ERROR)
"""The statuses by their numbers in ``SpanColumns.statuses``."""

Shape = tuple[SpanKind, Role, str, str | None]
"""The kind, role, agent and tool name of a span; the spans of a trace share few combinations."""


class SpanColumns(Struct, frozen=True):
    """The fields of a range of spans without their texts, as columns of equal length.

    Attributes:
        first: The index of the first span.
        shapes: For each span an index into ``shape_list``.
        shape_list: The shapes of all spans of the trace; the list only grows.
        statuses: For each span an index into ``STATUSES``.
        starts: The starts in Unix seconds; NaN if unknown.
        ends: The ends in Unix seconds; NaN if unknown.
    """

    first: int
    shapes: Sequence[int]
    shape_list: Sequence[Shape]
    statuses: bytes
    starts: array[float]
    ends: array[float]

    def __len__(self) -> int:
        return len(self.statuses)

    def kind_at(self, row: int) -> SpanKind:
        """Return the kind of a span, by its offset from the first span."""
        kind, _role, _agent, _name = self.shape_list[self.shapes[row]]
        return kind


class Candidates(NamedTuple):
    """The texts of a slice of spans that may match a search.

    Every other span of the slice is ruled out, by its text and by its row (preview and name).

    Attributes:
        end: The index after the last span of the slice.
        texts: The index and the text of each candidate in reading order, read during iteration.
    """

    end: int
    texts: Iterable[tuple[int, str]]


class Growth(Enum):
    """The change of a trace whose file may have grown."""

    NONE = "none"
    MORE = "more"
    """The file has grown, and ``advance`` can read the new end."""
    ANEW = "anew"
    """The file has grown, and must be read again from its beginning."""


class Spans(ABC):
    """The source of a trace's spans: lines of a file, steps in memory, other traces.

    Callers pass only indices below ``len``. Only one thread calls ``advance`` at a time. Other
    threads may call the other methods meanwhile.
    """

    __slots__ = ()

    @property
    def loaded(self) -> Loaded | None:
        """The progress of reading; None for a source that was complete from the beginning."""
        return None

    @property
    def meta(self) -> TraceMeta:
        """The facts of the run from the part of the source that was read."""
        return _NO_META

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems of the part of the source that was read."""
        return ()

    @property
    def spawned(self) -> Mapping[str, str]:
        """By the thread id of each sub-agent, the key of the span before which its spans belong."""
        return {}

    @property
    def totals(self) -> SpanTotals | None:
        """A new copy of the stored totals of the first spans; None if none are stored."""
        return None

    @property
    def waiting(self) -> str | None:
        """The progress of another process that reads the file, in words; None without one."""
        return None

    @property
    def opened(self) -> Trace | None:
        """The trace from the file, for spans that were unread before; None for all others."""
        return None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def span(self, index: int, /) -> Span:
        """Return the span at ``index``."""

    @abstractmethod
    def text(self, index: int, /) -> str:
        """Return the whole text of the span at ``index``.

        Raises:
            OSError: The text cannot be read any more.
        """

    @abstractmethod
    def index_of(self, key: str, /) -> int | None:
        """Return the index of the span with this key; None if no such span is known yet."""

    def source_lines(self, _index: int, /) -> bytes | None:
        """Return the lines of the file that hold the span; None for a source without lines.

        Raises:
            OSError: The lines cannot be read any more.
        """
        return None

    def advance(self, _max_bytes: int, /) -> bool:
        """Read about so many more bytes of the source; return False if nothing is left."""
        return False

    @abstractmethod
    def columns(self, first: int, end: int, /) -> SpanColumns:
        """Return the fields of a range of spans as columns.

        Args:
            first: The index of the first span.
            end: The index after the last span; greater than ``first``.
        """

    def has_one_thread(self, _first: int, _end: int, /) -> bool:
        """Return True if all spans surely belong to one agent, the main agent or one sub-agent.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        return False

    def candidates(
        self, _prefilter: Prefilter | None, begin: int, limit: int, max_bytes: int, /
    ) -> Candidates:
        """Return the texts in a slice of spans that may match a search; leave out unreadable texts.

        Args:
            prefilter: The filter for the searched text, ignored for texts in memory; None for all
                texts.
            begin: The index of the first span; the slice has at least one span.
            limit: The greatest index at which the slice may end.
            max_bytes: The approximate number of bytes to read.
        """
        texts: list[tuple[int, str]] = []
        chars = 0
        end = begin
        while end < min(limit, begin + _TEXTS_AT_ONCE) and chars < max_bytes:
            with suppress(OSError):
                text = self.text(end)
                texts.append((end, text))
                chars += len(text)
            end += 1
        return Candidates(end, texts)

    def change_reason(self) -> str | None:
        """Return why a file beside the trace's file has changed (not only grown), else None."""
        return None

    def has_grown(self) -> bool:
        """Return whether a file beside the trace's file has grown.

        Raises:
            OSError: The file was replaced.
        """
        return False

    def resume(self, _size: int, /) -> bool:
        """Prepare ``advance`` to continue in a file that has grown to ``_size`` bytes.

        Return False if the file must be read again from its beginning.
        """
        return False

    def load_totals(self) -> None:  # noqa: B027 - most sources store nothing
        """Load the stored totals of all spans, which takes less time than ``load_cached``.

        Only the thread that advances calls it.
        """

    def load_cached(self) -> None:  # noqa: B027 - most sources store nothing
        """Load the index that an earlier reading has stored.

        Only the thread that advances calls it.
        """

    def read_in_background(self) -> None:  # noqa: B027 - most sources need no process
        """Start another process that reads the rest of a long source.

        ``advance`` then adds the spans that the process has read. Only the thread that advances
        calls this method; it calls ``stop_background_read`` if it stops before the end.
        """

    def stop_background_read(self) -> None:  # noqa: B027 - most sources need no process
        """Stop the process that reads the file; only the thread that advances calls this method."""


class TraceMasks(Protocol):
    """Masks that replace personal data and secrets in the texts of a trace."""

    def text(self, text: str, /) -> str:
        """Return a text with masks."""

    def spans(self, spans: Spans, /) -> Spans:
        """Return spans with masks in their texts."""

    def meta(self, meta: TraceMeta, /) -> TraceMeta:
        """Return facts with masks in their texts."""


_FORMATS: Final[Mapping[tuple[str, str | None], str]] = {
    ("message-list", "tau-bench"): "tau-bench",
    ("message-list", "Who&When"): "who-and-when",
}
"""The names of formats by reader and benchmark."""

_COPIED_FACTS: Final = ("task", "system", "model", "benchmark", "score", "task_id", "trial")
"""The facts of a run that its summary holds unchanged."""


class TraceSummary(NamedTuple):
    """The facts of a trace without its spans.

    Fields with a name of ``TraceIdentity`` or ``TraceMeta`` have its meaning. The others are:

    Attributes:
        outcome: The value of an ``Outcome``.
        spans: The number of spans that were read.
        all_spans: True if these are all spans of the trace.
        total: The size of the source in bytes.
        problems: The locations and messages of the problems.
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
    task_id: str | None = None
    trial: int | None = None

    @property
    def identity(self) -> TraceIdentity:
        """The facts that identify the trace."""
        return TraceIdentity(
            trace_id=self.trace_id,
            content_hash=self.content_hash,
            content_bytes=self.content_bytes,
            reader=self.reader,
            key_scheme=self.key_scheme,
            native=self.native,
        )

    @property
    def meta(self) -> TraceMeta:
        """The facts of the run."""
        return TraceMeta(
            task=self.task,
            system=self.system,
            model=self.model,
            benchmark=self.benchmark,
            outcome=Outcome(self.outcome),
            score=self.score,
            task_id=self.task_id,
            trial=self.trial,
        )

    def with_read_problems(self, problems: Iterable[Problem]) -> TraceSummary:
        """Return the summary with the problems of a file that can no longer be read, and no spans.

        Without problems, return the summary unchanged.
        """
        read_problems = tuple((problem.place, problem.message) for problem in problems)
        if not read_problems:
            return self
        return self._replace(problems=(*self.problems, *read_problems), spans=0)

    def filled_in(self, other: TraceMeta) -> TraceSummary:
        """Return the summary with unknown facts taken from ``other``."""
        meta = fill_in(self.meta, other)
        facts = {name: getattr(meta, name) for name in _COPIED_FACTS}
        return self._replace(outcome=meta.outcome.value, **facts)


class UnreadSpans(Spans):
    """The spans of a file that the first call of ``advance`` reads; until then there are none."""

    __slots__ = ()

    @abstractmethod
    def unread_again(self, summary: TraceSummary, /) -> UnreadSpans:
        """Return new unread spans of the same file, with the facts of a newer summary."""


class Trace:
    """A recorded run: spans in reading order, whose texts are read on demand.

    - ``span`` is cheap. ``text`` may read the disk, and raises ``OSError`` if that fails, because a
      note instead of the text could be quoted or sent to a judge.
    - While ``loaded.complete`` is false, ``advance`` reads more of the source. ``len`` only grows.
    - Only one thread calls ``advance`` at a time. Other threads may call the other methods
      meanwhile.
    - Indices outside ``range(len(trace))`` raise ``IndexError``. Keys are unique in a trace.

    Attributes:
        file: The path of the trace's file, or of the folder that holds it.
        record: The number of the trace in its file; None if the file is one trace.
        opened: The state of the file when it was read; None if unknown.
    """

    __slots__ = (
        "__weakref__",
        "_added_facts",
        "_identity",
        "_masked_meta",
        "_masks",
        "_meta",
        "_new_id",
        "_problems",
        "_spans",
        "_summary",
        "_unmasked_spans",
        "_unread",
        "file",
        "opened",
        "record",
    )

    def __init__(
        self,
        identity: TraceIdentity | None,
        path: Path | str,
        spans: Spans,
        *,
        record: int | None = None,
        meta: TraceMeta | None = None,
        problems: Iterable[Problem] = (),
    ) -> None:
        """Create a trace from the results of a reader.

        Args:
            identity: The identity; None for an unread trace, whose summary has it.
            path: The file that was read.
            spans: The source of the spans.
            record: The number of the trace in the file; None if the file is one trace.
            meta: The facts of the run; None if ``spans`` read them later.
            problems: Problems of the source, in addition to those of ``spans``.
        """
        self.file = os.fspath(path)
        self.record = record
        self.opened: OpenedFile | None = None
        self._masks: TraceMasks | None = None
        self._masked_meta: tuple[TraceMeta, TraceMeta] | None = None
        """The facts without and with masks, from the last use of ``meta``."""
        self._take_spans(spans)
        self._identity = identity
        self._meta = meta
        self._problems = tuple(problems)
        self._added_facts: TraceMeta | None = None
        self._new_id: str | None = None
        self._summary: TraceSummary | None = None
        self._unread: UnreadSpans | None = None

    @classmethod
    def unread(
        cls, summary: TraceSummary, path: str, record: int | None, spans: UnreadSpans
    ) -> Trace:
        """Create a trace from the facts of an earlier reading.

        It has no spans until ``advance`` reads its file.

        Args:
            summary: The facts from the earlier reading.
            path: The path of the file.
            record: The number of the trace in the file; None if the file is one trace.
            spans: The unread spans of the file.
        """
        trace = cls(None, path, spans, record=record)
        trace._unread = spans
        trace._summary = summary
        return trace

    @property
    def identity(self) -> TraceIdentity:
        """The identity of the trace, from its file or from the facts of an earlier reading."""
        identity = self._identity
        return self.summary.identity if identity is None else identity

    @property
    def format(self) -> str:
        """The name of its format: its benchmark's, if that has one, or else its reader's."""
        reader = self.identity.reader
        return _FORMATS.get((reader, self.meta.benchmark), reader)

    @property
    def path(self) -> Path:
        """The file or folder from which the trace is read."""
        return trace_path(self.file)

    @property
    def meta(self) -> TraceMeta:
        """The facts of the run from its file and from other files, with masks if there are any."""
        meta = self._read_meta()
        if self._masks is None:
            return meta
        # Masking takes time, so its result is kept while the facts stay the same.
        if self._masked_meta is None or self._masked_meta[0] != meta:
            self._masked_meta = (meta, self._masks.meta(meta))
        return self._masked_meta[1]

    def _read_meta(self) -> TraceMeta:
        """Return the facts of the run without masks."""
        summary = self._summary
        meta = self._meta
        if summary is not None:
            meta = summary.meta
        elif meta is None:
            meta = self._spans.meta
        return meta if self._added_facts is None else fill_in(meta, self._added_facts)

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems of the trace and of its spans, with masks if there are any."""
        summary = self._summary
        problems = self._problems
        if summary is not None:
            problems = tuple(Problem(location, message) for location, message in summary.problems)
        problems = (*problems, *self._spans.problems)
        if self._masks is None:
            return problems
        mask = self._masks.text
        return tuple(Problem(mask(place), mask(message)) for place, message in problems)

    @property
    def spawned(self) -> Mapping[str, str]:
        """By the thread id of each sub-agent, the key of the span before which its spans belong.

        Sub-agents with unread spans are missing.
        """
        return self._spans.spawned

    @property
    def loaded(self) -> Loaded:
        """The progress of reading the spans."""
        loaded = self._spans.loaded
        if loaded is None:  # they were complete from the beginning
            size = self.identity.content_bytes
            return Loaded(size, size, complete=True)
        return loaded

    @property
    def summary(self) -> TraceSummary:
        """The facts of the trace without its spans, with masks if there are any."""
        summary = self._read_summary()
        if self._masks is None:
            return summary
        meta = self.meta
        return summary._replace(
            task=None if summary.task is None else shortened(meta.task or "", _TASK_CHARS),
            system=meta.system,
            model=meta.model,
            benchmark=meta.benchmark,
        )

    def _read_summary(self) -> TraceSummary:
        """Return the facts of the trace without its spans and without masks."""
        if self._summary is not None:  # the file is unread
            return self._summary.with_read_problems(self._spans.problems)
        identity = self.identity
        meta = self._read_meta()
        loaded = self.loaded
        return TraceSummary(
            trace_id=identity.trace_id,
            content_hash=identity.content_hash,
            content_bytes=identity.content_bytes,
            reader=identity.reader,
            key_scheme=identity.key_scheme,
            native=identity.native,
            task=None if meta.task is None else shortened(meta.task, _TASK_CHARS),
            system=meta.system,
            model=meta.model,
            benchmark=meta.benchmark,
            outcome=meta.outcome.value,
            score=meta.score,
            spans=max(len(self), loaded.spans),
            all_spans=loaded.complete or loaded.all_spans,
            total=loaded.total,
            problems=tuple((problem.place, problem.message) for problem in self.problems),
            task_id=meta.task_id,
            trial=meta.trial,
        )

    def __len__(self) -> int:
        return len(self._spans)

    def span(self, index: int, /) -> Span:
        """Return the span at ``index``."""
        if not 0 <= index < len(self._spans):
            raise self._index_error(index)
        return self._spans.span(index)

    def text(self, index: int, /) -> str:
        """Return the whole text of the span at ``index``."""
        if not 0 <= index < len(self._spans):
            raise self._index_error(index)
        return self._spans.text(index)

    def text_chars(self, index: int, /) -> int | None:
        """Return the length of a span's text; None if it cannot be read any more."""
        try:
            return len(self.text(index))
        except OSError:
            return None

    def index_of(self, key: str, /) -> int | None:
        """Return the index of the span with this key; None if no such span is known yet."""
        return self._spans.index_of(key)

    def columns(self, first: int, end: int, /) -> SpanColumns:
        """Return the fields of a range of spans as columns, also while another thread advances.

        Args:
            first: The index of the first span.
            end: The index after the last span; greater values mean all spans.
        """
        end = min(end, len(self._spans))
        if first >= end:
            return SpanColumns(
                first=first,
                shapes=(),
                shape_list=[],
                statuses=b"",
                starts=array("d"),
                ends=array("d"),
            )
        return self._spans.columns(first, end)

    def has_one_thread(self, first: int, end: int, /) -> bool:
        """Return True if all spans surely belong to one agent, the main agent or one sub-agent.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        return self._spans.has_one_thread(first, end)

    def candidates(
        self, prefilter: Prefilter | None, begin: int, limit: int, max_bytes: int, /
    ) -> Candidates:
        """Return the texts in a slice of spans that may match a search.

        Args:
            prefilter: The filter for the searched text; None for all texts.
            begin: The index of the first span.
            limit: The greatest index at which the slice may end.
            max_bytes: The approximate number of bytes to read.
        """
        return self._spans.candidates(prefilter, begin, limit, max_bytes)

    def change_reason(self) -> str | None:
        """Return why the file is not the file that was read; None if it is, or has only grown."""
        reason = None if self.opened is None else self.opened.change_reason()
        return reason or self._spans.change_reason()

    @property
    def spans(self) -> Spans:
        """The source of the spans."""
        return self._spans

    @property
    def totals(self) -> SpanTotals | None:
        """A new copy of the stored totals of the first spans; None if none are stored."""
        return self._spans.totals

    def advance(self, max_bytes: int = 1 << 20, /) -> bool:
        """Read about ``max_bytes`` more of the source; return False if nothing is left."""
        has_more = self._spans.advance(max_bytes)
        opened_trace = self._spans.opened
        if opened_trace is not None:  # this trace was unread; its file has now been read
            self._replace_with(opened_trace)
        return has_more

    def has_grown(self) -> bool:
        """Return whether a file of the trace is longer than the part that was read.

        Raises:
            OSError: A file was replaced, or cannot be read.
        """
        if self.opened is not None and self.opened.length() > self.opened.size:
            return True
        return self._spans.has_grown()

    def follow(self) -> Growth:
        """Prepare to read the new end of the file, and return how the file has grown.

        The thread that advances calls this method once ``loaded`` is complete.

        Raises:
            OSError: The file was replaced, or cannot be read.
        """
        opened = self.opened
        if opened is None:
            return Growth.NONE
        size = opened.length()
        if size > opened.size:
            if not self._spans.resume(size):
                return Growth.ANEW
            opened.accept_growth(size)
            return Growth.MORE
        return Growth.ANEW if self._spans.has_grown() else Growth.NONE

    def become(self, reading: Trace) -> None:
        """Take the spans, facts and problems of another reading of the same file."""
        self._problems = reading._problems
        self._meta = reading._meta
        self.opened = reading.opened
        self._take_spans(reading._unmasked_spans)

    def with_facts(self, facts: TraceMeta) -> Trace:
        """Return a copy of the trace with facts from other files in place of unknown ones."""
        trace = copy(self)
        earlier_facts = self._added_facts
        trace._added_facts = facts if earlier_facts is None else fill_in(earlier_facts, facts)
        if self._summary is not None:
            trace._summary = self._summary.filled_in(facts)
        return trace

    def with_id(self, trace_id: str) -> Trace:
        """Return a copy of the trace with another id."""
        trace = copy(self)
        trace._new_id = trace_id
        if self._identity is not None:
            trace._identity = self._identity._replace(trace_id=trace_id)
        if self._summary is not None:
            trace._summary = self._summary._replace(trace_id=trace_id)
        return trace

    @property
    def masks(self) -> TraceMasks | None:
        """The masks over the texts and facts; None if nothing is masked."""
        return self._masks

    def with_masks(self, masks: TraceMasks | None) -> Trace:
        """Return a copy of the trace with masks in its texts and facts; None removes the masks."""
        trace = copy(self)
        trace._masks = masks
        trace._masked_meta = None
        trace._take_spans(self._unmasked_spans)
        return trace

    def _take_spans(self, spans: Spans) -> None:
        """Set the spans, with masks over them if the trace has masks."""
        self._unmasked_spans = spans
        self._spans = spans if self._masks is None else self._masks.spans(spans)

    @property
    def is_unread(self) -> bool:
        """True until ``advance`` has read the file of a trace that ``unread`` created."""
        return self._summary is not None

    @property
    def is_amended(self) -> bool:
        """True if the id or some facts do not come from the file of the trace."""
        return self._added_facts is not None or self._new_id is not None

    def anew(self) -> Trace:
        """Return a copy without spans that reads the file again on ``advance``.

        A trace that ``unread`` did not create is returned unchanged.
        """
        if self._unread is None:
            return self
        summary = self._read_summary()
        trace = Trace.unread(summary, self.file, self.record, self._unread.unread_again(summary))
        trace._added_facts = self._added_facts
        trace._new_id = self._new_id
        return trace if self._masks is None else trace.with_masks(self._masks)

    def _replace_with(self, reading: Trace) -> None:
        """Take the identity, facts and spans of ``reading``, which was read from this trace's file.

        An id and facts that were added to this trace are kept.
        """
        identity = reading.identity
        if self._new_id is not None:
            identity = identity._replace(trace_id=self._new_id)
        facts = reading._added_facts
        if facts is not None:
            earlier_facts = self._added_facts
            self._added_facts = facts if earlier_facts is None else fill_in(facts, earlier_facts)
        self._identity = identity
        self.become(reading)
        self._summary = None  # last, because other threads may read

    def _index_error(self, index: int) -> IndexError:
        return IndexError(f"no span {index} in a trace of {len(self._spans)}")


def fill_in(meta: TraceMeta, other: TraceMeta) -> TraceMeta:
    """Return the facts of ``meta``, with unknown facts taken from ``other``.

    Args:
        meta: The facts.
        other: The facts to fill in; its answer key is added.
    """
    filled_facts = {
        name: getattr(other, name)
        for name, value in meta._asdict().items()
        if value in (None, "") or value is Outcome.UNKNOWN
    }
    return meta._replace(**filled_facts, answer_key=meta.answer_key.with_all_of(other.answer_key))


class FileReport(NamedTuple):
    """The traces and problems from one file.

    Exactly one of ``format``, ``skipped`` and ``failed`` is set.

    Attributes:
        path: The path of the file.
        format: The name of the format.
        traces: The traces.
        problems: The problems of the file that belong to no trace.
        skipped: The reason why the file is no trace.
        failed: The reason why the file could not be read.
        thread: The thread of the trace, for formats with several files in a run.
        is_used: True if the file is no trace, but adds facts to the traces beside it.
    """

    path: Path
    format: str | None = None
    traces: tuple[Trace, ...] = ()
    problems: tuple[Problem, ...] = ()
    skipped: str | None = None
    failed: str | None = None
    thread: Thread | None = None
    is_used: bool = False

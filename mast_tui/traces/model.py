"""The data model of traces: what every reader makes, and all other packages use."""

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
from typing import TYPE_CHECKING, Final, NamedTuple

from mast_tui.traces.io.remote import trace_path

if TYPE_CHECKING:
    from mast_tui.traces.byte_prefilter import Prefilter
    from mast_tui.traces.index.span_totals import SpanTotals
    from mast_tui.traces.io.opened_file import OpenedFile

PREVIEW_CHARS = 200
"""Length up to which a span's preview is cut, in code points."""

_TASK_CHARS: Final = 400
"""The most characters of a task in a summary."""

_TEXTS_AT_ONCE: Final = 512
"""The most texts in memory that are searched at once."""


def shortened(text: str, most: int) -> str:
    """Return the beginning of a text, with … where it is cut.

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
    """The side that a span is of."""

    SYSTEM = "system"
    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    LOG = "log"


class SpanStatus(StrEnum):
    """The result of a step, as far as the source states it."""

    OK = "ok"
    ERROR = "error"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """The result of a run by the benchmark's own check."""

    FAILED = "failed"
    SUCCEEDED = "succeeded"
    UNKNOWN = "unknown"


class Tokens(NamedTuple):
    """The tokens that a model call read and wrote; None if the source does not state them."""

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
        parent: The key of the span that this span belongs to: for a tool result its call.
        start: The time of the beginning in Unix seconds; None if it is unknown.
        end: The time of the end in Unix seconds; None if it is unknown.
        status: The result of the step.
        place: The location of the span in its source: ``line 380`` or a JSON pointer.
        preview: The beginning of the text on one line, at most ``PREVIEW_CHARS`` code points.
        preview_is_complete: True if the preview is the entire text.
        tokens: The tokens of the model call that made the span; if a call made several spans, the
            last one has them.
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
    """Something in a source that could not be read, and its location there."""

    place: str
    message: str


Named = tuple[tuple[str, str], ...]
"""Texts under their names, in the order of the source."""


class AnswerKey(NamedTuple):
    """The expected course of a run, and its scores.

    An annotator working blind must not see any of it. ``expected_actions`` are tool calls, the
    tool's name with its arguments as JSON; ``reference`` is the text of a right answer. ``scores``
    are rewards, their parts and every other verdict by number or word, ``explanations`` a
    scorer's reasons for them. ``step_scores`` go by the key of the span that was scored, or by its
    number. ``patch`` are diffs: the submitted one and the right one. ``tests`` are the tests that
    were run, with their results. ``failures`` are labels of failures by others. ``other`` is all
    else that a benchmark keeps.
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
        """Yield the name and the entries of every section that has some."""
        return ((name, entries) for name, entries in self._asdict().items() if entries)

    def entries(self) -> Named:
        """Return the entries of all sections."""
        return tuple(entry for _name, section in self.sections() for entry in section)

    def with_all_of(self, other: AnswerKey) -> AnswerKey:
        """Return the key with what only ``other`` has at the end of each section."""
        more = {
            name: getattr(self, name) + tuple(e for e in entries if e not in getattr(self, name))
            for name, entries in other.sections()
        }
        return self._replace(**more)


class TraceMeta(NamedTuple):
    """The facts of a run as a whole, as its source states them.

    ``task_id`` is the benchmark's name for the task, ``trial`` the benchmark's number of this run
    among several runs of the task.
    ``answer_key`` holds what an annotator working blind must not see. ``score`` lies in [0, 1].
    ``version`` is that of the system that ran, ``started`` the time when the run began in Unix
    seconds; an ``outcomes.csv`` states them, and in most runs the spans show when they began.
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
    def same_task(self) -> tuple[str, str] | None:
        """A value that is equal for runs of one task; None if the task is unknown.

        It is the benchmark with its name for the task, or else with the task's words.
        """
        return task_key(self.benchmark, self.task_id, self.task)


def task_key(
    benchmark: str | None, task_id: str | None, task: str | None
) -> tuple[str, str] | None:
    """Return a value that is equal for runs of one task; None if the task is unknown.

    Args:
        benchmark: The benchmark; equal names of tasks in two benchmarks are two tasks.
        task_id: The benchmark's name for the task.
        task: The words of the task, which count where it has no name.
    """
    name = task_id or " ".join((task or "").split())
    return (benchmark or "", name) if name else None


_NO_META: Final = TraceMeta()


class TraceIdentity(NamedTuple):
    """The identity of a trace, which does not depend on the path of its file.

    ``trace_id`` is the native id where the format makes it unique, else
    ``<stem>[:<record>]-<8 hex of the content hash>``. ``content_hash`` is the SHA-256 (hex) of
    the record's content and ``content_bytes`` the number of bytes it covers. ``reader`` and
    ``key_scheme`` say how span keys were made; ``native`` whether the id is the format's own.
    """

    trace_id: str
    content_hash: str
    content_bytes: int
    reader: str
    key_scheme: int
    native: bool


class Loaded(NamedTuple):
    """The progress of the index of a trace: ``done`` of ``total`` bytes.

    ``spans`` is the number of spans at an earlier reading, and ``all_spans`` whether those were
    all; they are 0 and False for a trace that is read for the first time.
    """

    done: int
    total: int
    complete: bool
    spans: int = 0
    all_spans: bool = False


class Thread(NamedTuple):
    """The thread of a run that a file holds, where sub-agents have files of their own.

    ``id`` is the thread's own, ``parent`` that of the thread which began it; None for the run
    itself. The keys of a sub-agent's spans begin with ``<id>/``. ``system`` is the agent program:
    equal ids of two programs are different threads.
    """

    id: str
    parent: str | None = None
    system: str = ""


STATUSES: Final = (SpanStatus.UNKNOWN, SpanStatus.OK, SpanStatus.ERROR)
"""The statuses that the numbers in ``SpanColumns.statuses`` mean."""

Shape = tuple[SpanKind, Role, str, str | None]
"""Kind, role, agent and name: of these there are few combinations in a trace."""


@dataclass(frozen=True, slots=True)
class SpanColumns:
    """The fields of a stretch of spans but for their texts, as columns of equal length.

    ``first`` is the index of the first span. ``shapes`` holds for each a number into
    ``shape_list``, which is one list for all stretches of a trace and only ever grows. ``statuses``
    holds 0 for unknown, 1 for ok, 2 for an error; ``starts`` and ``ends`` are Unix seconds, NaN
    where unknown.
    """

    first: int
    shapes: Sequence[int]
    shape_list: Sequence[Shape]
    statuses: bytes
    starts: array[float]
    ends: array[float]

    def __len__(self) -> int:
        return len(self.statuses)


class Candidates(NamedTuple):
    """The texts that may hold a needle, by span, of those up to ``end`` (exclusive).

    They come in reading order, each made on demand. ``rows`` says that no other span has the needle
    in its row either, which is its preview and name.
    """

    end: int
    texts: Iterable[tuple[int, str]]
    rows: bool = False


class Growth(Enum):
    """The change of a trace whose file may have grown."""

    NONE = "none"
    MORE = "more"
    """There is more for ``advance`` to read."""
    ANEW = "anew"
    """It has grown, and has to be read from its beginning."""


class Spans(ABC):
    """The source of a trace's spans: lines of a file, steps in memory, other traces.

    Indices that are asked for are those of spans that are known. ``advance`` is called from one
    thread at a time; the other methods may be called from another thread meanwhile.
    """

    __slots__ = ()

    @property
    def loaded(self) -> Loaded | None:
        """The progress of reading the source; None for one that was read whole before."""
        return None

    @property
    def meta(self) -> TraceMeta:
        """The facts of the run, as far as the source has been read."""
        return _NO_META

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems of the source, as far as it has been read."""
        return ()

    @property
    def spawned(self) -> Mapping[str, str]:
        """The key of the span before which a sub-agent's spans belong, by thread id."""
        return {}

    @property
    def totals(self) -> SpanTotals | None:
        """A new copy of the totals of the first spans, where they were kept."""
        return None

    @property
    def waiting(self) -> str | None:
        """The progress of another process that reads the file, in words; None if none does."""
        return None

    @property
    def opened(self) -> Trace | None:
        """The trace that was there, of a file that was known before it was read; else None."""
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
            OSError: It cannot be read any more.
        """

    @abstractmethod
    def index_of(self, key: str, /) -> int | None:
        """Return the index of the span with this key, or None if no such span is known (yet)."""

    def source_lines(self, _index: int, /) -> bytes | None:
        """Return the lines of the file that hold the span; None if they are not at hand.

        Raises:
            OSError: They cannot be read any more.
        """
        return None

    def advance(self, _max_bytes: int, /) -> bool:
        """Read up to about so many bytes more of the source; False when nothing is left."""
        return False

    @abstractmethod
    def columns(self, first: int, end: int, /) -> SpanColumns:
        """Return columns of spans.

        Args:
            first: The first span.
            end: The span after the last; at least one is asked for.
        """

    def one_thread(self, _first: int, _end: int, /) -> bool:
        """Return whether the keys of the spans name at most one thread; False if unsure.

        Args:
            first: The first span.
            end: The span after the last.
        """
        return False

    def candidates(
        self, _prefilter: Prefilter | None, begin: int, limit: int, max_bytes: int, /
    ) -> Candidates:
        """Return the texts that may hold a needle; a text that cannot be read holds none.

        Args:
            prefilter: The filter for the needle; None for all texts.
            begin: The first span to look at; one at least is.
            limit: The span after the last.
            max_bytes: About how much of the source to read.

        Returns:
            Without a prefilter every text; here too, as they are at hand.
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

    def changed(self) -> str | None:
        """Say why another file than that of the trace is not what was read; None if all is."""
        return None

    def has_grown(self) -> bool:
        """Return whether another file than that of the trace has grown.

        Raises:
            OSError: It was replaced.
        """
        return False

    def resume(self, _size: int, /) -> bool:
        """Go on with ``advance`` in a file that has grown to so many bytes; False if what was
        made of its end would be something else by now."""
        return False

    def load_totals(self) -> None:  # noqa: B027 - of most nothing is kept
        """Load the totals of all spans that an earlier reading has kept.

        It takes less time than ``load_cached``. Called by the thread that advances.
        """

    def load_cached(self) -> None:  # noqa: B027 - of most nothing is kept
        """Load what an earlier reading has kept, which takes no time.

        Called by the thread that advances.
        """

    def read_in_background(self) -> None:  # noqa: B027 - most are read here
        """Have another process read what is not known, where that is worth it.

        Called by the thread that advances: ``advance`` then adds the spans that the process has
        read. A caller that stops before everything is read calls ``stop_background_read``.
        """

    def stop_background_read(self) -> None:  # noqa: B027 - most wait for no process
        """Stop another process that reads the file; called by the thread that advances."""


_COPIED_FACTS: Final = ("task", "system", "model", "benchmark", "score", "task_id", "trial")
"""The facts of a run that its summary copies unchanged."""


class TraceSummary(NamedTuple):
    """The facts of a trace without its spans.

    ``outcome`` is the value of an ``Outcome``; ``spans`` is the number of spans read and
    ``all_spans`` whether those were all; ``total`` is the size in bytes; ``problems`` are locations
    and messages.
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
        """The facts by which the trace is known again."""
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

    def filled_in(self, also: TraceMeta) -> TraceSummary:
        """Return the summary with what it lacks from ``also``."""
        filled = fill_in(self.meta, also)
        same = {name: getattr(filled, name) for name in _COPIED_FACTS}
        return self._replace(outcome=filled.outcome.value, **same)


class UnreadSpans(Spans):
    """Spans of a file that is read when it is asked to ``advance``: until then there are none."""

    __slots__ = ()

    @property
    @abstractmethod
    def was_named(self) -> bool:
        """True if the user named the file, which is then read otherwise than one of a folder."""

    @abstractmethod
    def unread_again(self, summary: TraceSummary, /) -> UnreadSpans:
        """Return the spans as they were before anything was read, with the facts known by now."""


class Trace:
    """A recorded run: spans in reading order, their texts read when asked for.

    ``span`` is cheap. ``text`` may read the disk, and raises ``OSError`` where that cannot be done
    any more: a note in place of a text would be quoted, or sent to a judge. While
    ``loaded.complete`` is false, ``advance`` reads the next slice of the source; ``len`` only ever
    grows. ``advance`` is called from one thread at a time; the other methods may be called from
    another thread meanwhile. Indices outside ``range(len(trace))`` raise ``IndexError``; keys are
    unique in a trace.

    Attributes:
        file: The path of the file it is read from, or of the folder that holds it.
        record: The place of the trace among those of its file; None for a file that is one trace.
        opened: The file as it was when it was read, for ``changed``; None if it is unknown.
    """

    __slots__ = (
        "__weakref__",
        "_also",
        "_identity",
        "_meta",
        "_problems",
        "_renamed",
        "_spans",
        "_summary",
        "_unread",
        "file",
        "opened",
        "record",
    )

    def __init__(
        self,
        identity: TraceIdentity,
        path: Path | str,
        spans: Spans,
        *,
        record: int | None = None,
        meta: TraceMeta | None = None,
        problems: Iterable[Problem] = (),
    ) -> None:
        """Make a trace of what a reader has found.

        Args:
            identity: The identity by which it is known again.
            path: The file it was read from.
            spans: The source of its spans.
            record: Its place among the traces of the file; None if that is one trace.
            meta: The facts of the run; None if ``spans`` read them later.
            problems: Problems of the source, beside those of ``spans``.
        """
        self.file = os.fspath(path)
        self.record = record
        self.opened: OpenedFile | None = None
        self._spans = spans
        self._identity: TraceIdentity | None = identity
        self._meta = meta
        self._problems = tuple(problems)
        self._also: TraceMeta | None = None
        self._renamed: str | None = None
        self._summary: TraceSummary | None = None
        self._unread: UnreadSpans | None = None

    @classmethod
    def unread(
        cls, summary: TraceSummary, path: str, record: int | None, spans: UnreadSpans
    ) -> Trace:
        """Make a trace known from an earlier reading, whose file is read by ``advance``.

        Until then it has no spans, but ``loaded.spans`` says how many there will be.

        Args:
            summary: The facts from the earlier reading.
            path: The path of the file.
            record: The number of the trace in the file; None if the file is one trace.
            spans: Reads the file.
        """
        trace = cls.__new__(cls)
        trace.file = path
        trace.record = record
        trace.opened = None
        trace._spans = trace._unread = spans
        trace._summary = summary
        trace._identity = None
        trace._meta = None
        trace._problems = ()
        trace._also = trace._renamed = None
        return trace

    @property
    def identity(self) -> TraceIdentity:
        """By which the trace is known again."""
        identity = self._identity
        return self.summary.identity if identity is None else identity

    @property
    def path(self) -> Path:
        """The file the trace is read from."""
        return trace_path(self.file)

    @property
    def meta(self) -> TraceMeta:
        """The facts of the run from the source and from other files beside it."""
        summary = self._summary
        meta = self._meta
        if summary is not None:
            meta = summary.meta
        elif meta is None:
            meta = self._spans.meta
        return meta if self._also is None else fill_in(meta, self._also)

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems of the trace."""
        summary = self._summary
        problems = self._problems
        if summary is not None:
            problems = tuple(Problem(location, message) for location, message in summary.problems)
        return (*problems, *self._spans.problems)

    @property
    def spawned(self) -> Mapping[str, str]:
        """The key of the span before which a sub-agent's spans belong, by thread id, so far."""
        return self._spans.spawned

    @property
    def loaded(self) -> Loaded:
        """The progress of the index."""
        loaded = self._spans.loaded
        if loaded is None:
            size = self.identity.content_bytes
            return Loaded(size, size, complete=True)
        return loaded

    @property
    def summary(self) -> TraceSummary:
        """The facts of the trace without its spans."""
        summary = self._summary
        if summary is not None:
            lost = self._spans.problems
            if not lost:
                return summary
            lost_problems = tuple((problem.place, problem.message) for problem in lost)
            return summary._replace(problems=(*summary.problems, *lost_problems), spans=0)
        identity = self.identity
        meta = self.meta
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
            raise self._no_span(index)
        return self._spans.span(index)

    def text(self, index: int, /) -> str:
        """Return the whole text of the span at ``index``, as read."""
        if not 0 <= index < len(self._spans):
            raise self._no_span(index)
        return self._spans.text(index)

    def index_of(self, key: str, /) -> int | None:
        """Return the index of the span with this key, or None if no such span is known (yet)."""
        return self._spans.index_of(key)

    def columns(self, first: int, end: int, /) -> SpanColumns:
        """Return columns of spans; another thread may read on meanwhile.

        Args:
            first: The first span.
            end: The span after the last; later ones than there are count as that.
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

    def one_thread(self, first: int, end: int, /) -> bool:
        """Return whether the keys of the spans name at most one thread; False if unsure.

        Args:
            first: The first span.
            end: The span after the last.
        """
        return self._spans.one_thread(first, end)

    def candidates(
        self, prefilter: Prefilter | None, begin: int, limit: int, max_bytes: int, /
    ) -> Candidates:
        """Return the texts that may hold a needle; see ``Spans.candidates``.

        Args:
            prefilter: The filter for the needle; None for all texts.
            begin: The first span to look at.
            limit: The span after the last.
            max_bytes: About how much of the source to read.
        """
        return self._spans.candidates(prefilter, begin, limit, max_bytes)

    def changed(self) -> str | None:
        """Say why the file is not what was read; None if it is, just has grown, or nobody
        knows."""
        reason = None if self.opened is None else self.opened.changed()
        return reason or self._spans.changed()

    @property
    def spans(self) -> Spans:
        """The source of its spans."""
        return self._spans

    @property
    def totals(self) -> SpanTotals | None:
        """A new copy of the totals of its first spans, where they were kept."""
        return self._spans.totals

    def advance(self, max_bytes: int = 1 << 20, /) -> bool:
        """Read up to about ``max_bytes`` more of the source; False when nothing is left."""
        more = self._spans.advance(max_bytes)
        opened_trace = self._spans.opened
        if opened_trace is not None:
            self._replace_with(opened_trace)
        return more

    def has_grown(self) -> bool:
        """Return whether one of its files is longer than what was read.

        Raises as ``follow`` does.
        """
        opened = self.opened
        grown = opened is not None and opened.length() > opened.size
        return grown or self._spans.has_grown()

    def follow(self) -> Growth:
        """Take in that the file has grown since it was read.

        Called by the thread that advances, once ``loaded`` is complete.

        Raises:
            OSError: It is not the file that was read, or cannot be read.
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
        """Replace the spans with those of another reading of the same file."""
        self._problems = reading._problems
        self._meta = reading._meta
        self.opened = reading.opened
        self._spans = reading._spans

    def with_facts(self, also: TraceMeta) -> Trace:
        """Return the trace with what it lacks from the facts in other files."""
        trace = copy(self)
        trace._also = also if self._also is None else fill_in(self._also, also)
        if self._summary is not None:
            trace._summary = self._summary.filled_in(also)
        return trace

    def with_id(self, trace_id: str) -> Trace:
        """Return the trace under another id."""
        trace = copy(self)
        trace._renamed = trace_id
        if self._identity is not None:
            trace._identity = self._identity._replace(trace_id=trace_id)
        if self._summary is not None:
            trace._summary = self._summary._replace(trace_id=trace_id)
        return trace

    @property
    def is_unread(self) -> bool:
        """True if only facts of an earlier reading are known, and its file has yet to be read."""
        return self._summary is not None

    @property
    def is_amended(self) -> bool:
        """True if its id or its facts are not from its file alone."""
        return self._also is not None or self._renamed is not None

    @property
    def was_named(self) -> bool:
        """True if the user named its file, which is then read otherwise than one of a folder."""
        return self._unread is not None and self._unread.was_named

    def anew(self) -> Trace:
        """Return the trace without its spans, which are then read again; itself where it cannot."""
        if self._unread is None:
            return self
        summary = self.summary
        trace = Trace.unread(summary, self.file, self.record, self._unread.unread_again(summary))
        trace._also = self._also
        trace._renamed = self._renamed
        return trace

    def _replace_with(self, reading: Trace) -> None:
        """Take over the identity, facts and spans from the reading of the file."""
        identity = reading.identity
        if self._renamed is not None:
            identity = identity._replace(trace_id=self._renamed)
        if reading._also is not None:
            self._also = reading._also if self._also is None else fill_in(reading._also, self._also)
        self.opened = reading.opened
        self._meta = reading._meta
        self._problems = reading._problems
        self._identity = identity
        self._spans = reading._spans
        self._summary = None  # the last, as others may ask meanwhile

    def _no_span(self, index: int) -> IndexError:
        return IndexError(f"no span {index} in a trace of {len(self._spans)}")


def fill_in(meta: TraceMeta, also: TraceMeta) -> TraceMeta:
    """Return facts with what they lack from others.

    Args:
        meta: The facts.
        also: The other facts.
    """
    added = {
        name: getattr(also, name)
        for name, value in meta._asdict().items()
        if value in (None, "") or value is Outcome.UNKNOWN
    }
    return meta._replace(**added, answer_key=meta.answer_key.with_all_of(also.answer_key))


class FileReport(NamedTuple):
    """The result of reading one file: its traces and problems.

    Exactly one of ``format``, ``skipped`` and ``failed`` is set: the format's name, the reason
    why the file is no trace, or why it could not be read at all. ``thread`` belongs to the one
    trace of a file that may be part of a run of several files.
    """

    path: Path
    format: str | None = None
    traces: tuple[Trace, ...] = ()
    problems: tuple[Problem, ...] = ()
    skipped: str | None = None
    failed: str | None = None
    thread: Thread | None = None

"""What every trace looks like to the rest of the project, whatever wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

PREVIEW_CHARS = 200
"""Length up to which a span's preview is cut, in code points."""


class SpanKind(StrEnum):
    """What a step of a run is."""

    MESSAGE = "message"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    LOG = "log"


class Role(StrEnum):
    """On whose side a step stands."""

    SYSTEM = "system"
    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    LOG = "log"


class SpanStatus(StrEnum):
    """Whether a step went well, where the source tells."""

    OK = "ok"
    ERROR = "error"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """Whether the run reached its goal by the benchmark's own check."""

    FAILED = "failed"
    SUCCEEDED = "succeeded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a model call took in and gave out, in tokens; None where the source does not tell."""

    input: int | None = None
    output: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """One step of a run, without its text.

    ``index`` counts from 0 in reading order. ``key`` is the lasting name that labels hold on to.
    ``name`` is the tool's name for calls and results. ``parent`` is the key of the span this one
    belongs to: for a tool result its call. ``start`` and ``end`` are Unix seconds. ``place`` is
    where the span stands in its source: ``line 380`` or a JSON pointer. ``preview`` is one line,
    at most ``PREVIEW_CHARS`` code points; ``whole`` says that it is the span's entire text.
    ``tokens`` are those of the model call that the span came from; of several spans of one call
    the last has them.
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
    whole: bool
    tokens: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a source that could not be read, and where it stands."""

    place: str
    message: str


Named = tuple[tuple[str, str], ...]
"""Texts under their names, in the order of the source."""


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """What is known of how a run should have gone and how it was scored.

    An annotator working blind must not see any of it. ``expected_actions`` are tool calls, the
    tool's name with its arguments as JSON; ``reference`` is what a right answer says. ``scores``
    are rewards, their parts and every other verdict by number or word, ``explanations`` a
    scorer's words on them. ``step_scores`` go by the key of the span that was scored, or by its
    number. ``patch`` are diffs: what was handed in, and what would have been right. ``tests``
    say what was run and how it went. ``failures`` are what others say went wrong, their labels.
    ``other`` is what a benchmark keeps beside.
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
        """Yield the name of every section that holds something, and what it holds."""
        for section in fields(self):
            if found := getattr(self, section.name):
                yield section.name, found

    def entries(self) -> Named:
        """Everything in it, one section after the other."""
        return tuple(entry for _name, section in self.sections() for entry in section)

    def with_all_of(self, other: AnswerKey) -> AnswerKey:
        """Add what only ``other`` holds, behind what stands in each section."""
        more = {
            name: getattr(self, name) + tuple(e for e in found if e not in getattr(self, name))
            for name, found in other.sections()
        }
        return replace(self, **more)


@dataclass(frozen=True, slots=True)
class TraceMeta:
    """What the source tells about a run as a whole.

    ``answer_key`` holds what an annotator working blind must not see. ``score`` lies in [0, 1].
    ``version`` is that of the system that ran, ``started`` when the run began in Unix seconds; an
    ``outcomes.csv`` tells them, and of most runs the spans tell when they began.
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

    @property
    def hidden(self) -> Named:
        """All that an annotator working blind must not see, by name."""
        return self.answer_key.entries()


@dataclass(frozen=True, slots=True)
class TraceIdentity:
    """By which a trace is known again, wherever its file lies.

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


@dataclass(frozen=True, slots=True)
class Loaded:
    """How far the index of a trace has come: ``done`` of ``total`` bytes.

    ``spans`` is how many spans an earlier look has found, and ``all_spans`` whether that was all
    of them; both say nothing (0, False) of a trace that is read for the first time.
    """

    done: int
    total: int
    complete: bool
    spans: int = 0
    all_spans: bool = False


@runtime_checkable
class Trace(Protocol):
    """A recorded run: spans in reading order, their texts read when asked for.

    ``span`` is cheap. ``text`` may read the disk, and raises ``OSError`` where that cannot be done
    any more: a note in place of a text would be quoted, or sent to a judge. While
    ``loaded.complete`` is false, ``advance`` reads the next slice of the source; ``len`` only ever
    grows. ``advance`` is called from one thread at a time; the other methods may be called from
    another thread meanwhile. Indices outside ``range(len(trace))`` raise ``IndexError``; keys are
    unique in a trace.
    """

    @property
    def identity(self) -> TraceIdentity: ...
    @property
    def path(self) -> Path: ...
    @property
    def record(self) -> int | None:
        """The place of the trace among those of its file, or None for a file that is one trace."""

    @property
    def meta(self) -> TraceMeta: ...
    @property
    def problems(self) -> Sequence[Problem]: ...
    @property
    def loaded(self) -> Loaded: ...
    def __len__(self) -> int: ...
    def span(self, index: int, /) -> Span: ...
    def text(self, index: int, /) -> str: ...
    def index_of(self, key: str, /) -> int | None:
        """The index of the span with this key, or None where no such span is known (yet)."""

    def advance(self, max_bytes: int = 1 << 20, /) -> bool:
        """Read up to about ``max_bytes`` more of the source; False when nothing is left."""


@dataclass(frozen=True, slots=True)
class Thread:
    """Which thread of a run a file holds, where sub-agents have files of their own.

    ``id`` is the thread's own, ``parent`` that of the thread which began it; None for the run
    itself. The keys of a sub-agent's spans begin with ``<id>/``.
    """

    id: str
    parent: str | None = None


@runtime_checkable
class Spawning(Protocol):
    """A trace that tells where its sub-agents, which lie in other files, were at work."""

    @property
    def spawned(self) -> Mapping[str, str]:
        """By thread id the key of the span before which the sub-agent's spans belong."""


@dataclass(frozen=True, slots=True)
class FileReport:
    """What came of looking at one file: its traces and what could not be read.

    Exactly one of ``format``, ``skipped`` and ``failed`` is set: the format's name, the reason
    why the file is no trace, or why it could not be read at all. ``thread`` belongs to the one
    trace of a file that may be part of a run of several files.
    """

    path: Path
    format: str | None = None
    traces: tuple[Trace, ...] = ()
    problems: tuple[Problem, ...] = field(default=())
    skipped: str | None = None
    failed: str | None = None
    thread: Thread | None = None

"""Records besides labels: traces, annotators, runs of judges, merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import add
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from mast_tui.errors import WorkspaceError
from mast_tui.labels import AnnotatorKind, Count, QuoteCounts
from mast_tui.traces.model import Outcome, Trace, TraceIdentity

_FIRST_SPANS: Final = 8
"""Instructions have no time in some formats; further on nobody looks for one."""


class TeamRole(StrEnum):
    """The role of a member of a team on a server."""

    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"
    LEAD = "lead"
    JUDGE = "judge"


class Member(NamedTuple):
    """Somebody in a team on a server; an annotator who is ``assisted`` sees what judges say."""

    name: str
    role: TeamRole
    assisted: bool = False

    @property
    def sees_all(self) -> bool:
        """True if the server hides nothing from the member."""
        return self.role is not TeamRole.ANNOTATOR


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """A trace as the workspace knows it.

    ``trace_id`` is the native or made-up id; among traces of one id with different content the
    workspace's own is ``id~2`` and so on. ``identity`` is None where only labels of the trace are
    known and never its content. ``path`` is where it was last seen, never a part of what it is;
    ``record`` its place in that file. ``spans`` is None while nobody has counted them all.
    ``version`` is that of the system; ``started`` when the run began, in Unix seconds.
    ``task_id`` is the benchmark's name for the task, ``trial`` the number of this run of it.
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
    version: str | None = None
    started: float | None = None
    task_id: str | None = None
    trial: int | None = None

    @classmethod
    def from_trace(cls, trace: Trace) -> TraceRecord:
        """Make the record of a trace, as far as it was read.

        The run's start comes from ``outcomes.csv``, else from the first span that has a time.
        """
        meta = trace.meta
        started = trace.meta.started
        if started is None:
            first = map(trace.span, range(min(len(trace), _FIRST_SPANS)))
            started = next((span.start for span in first if span.start is not None), None)
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
            version=meta.version,
            started=started,
            task_id=meta.task_id,
            trial=meta.trial,
        )


@dataclass(frozen=True, slots=True)
class SpanIndex:
    """The index of a span in its trace, from when the trace was last read.

    ``index`` is None where the whole trace was read and has no such span. ``text_chars`` is the
    length of the span's text in code points; it is None where nobody has counted it.
    """

    index: int | None
    text_chars: int | None = None


def indices_in(trace: Trace, keys: Mapping[str, bool]) -> dict[str, SpanIndex]:
    """Look up spans of a trace.

    Args:
        trace: The trace, as far as it is read.
        keys: The spans' keys. True asks for the length of the text too.

    Returns:
        The index of each span by its key. A span that is not found is missing while the trace
        is still being read.
    """
    indices = {}
    for key, with_length in keys.items():
        index = trace.index_of(key)
        if index is not None:
            indices[key] = SpanIndex(index, _text_chars(trace, index) if with_length else None)
        elif trace.loaded.complete:
            indices[key] = SpanIndex(None)
    return indices


def _text_chars(trace: Trace, index: int) -> int | None:
    try:
        return len(trace.text(index))
    except OSError:  # The file has gone since; the index is known all the same.
        return None


def missing_indices(
    asked: Mapping[str, bool], known_indices: Mapping[str, SpanIndex]
) -> dict[str, bool]:
    """Return those of the wanted spans whose index, or whose length of text, is not kept.

    Args:
        asked: Keys; True where the length of the text is wanted too.
        known_indices: What is kept of the trace.
    """
    return {
        key: with_length
        for key, with_length in asked.items()
        if (index := known_indices.get(key)) is None
        or (with_length and index.index is not None and index.text_chars is None)
    }


@dataclass(frozen=True, slots=True)
class AnnotatorInfo:
    """Somebody who labels; ``blind`` is None until it was said how they work."""

    name: str
    kind: AnnotatorKind
    blind: bool | None = None


@dataclass(frozen=True, slots=True)
class JudgementRecord:
    """That a judge has looked at a trace, and at which modes; ``run`` is the run's id."""

    judge: str
    trace_id: str
    taxonomy: str
    looks_at: tuple[str, ...]
    at: str
    run: str | None = None


@dataclass(frozen=True, slots=True)
class RunTrace:
    """The result of a judge's run on one trace; ``problem`` is why it failed there.

    ``quotes`` counts the quotes on which its suggestions rest, by how they were found in the trace.
    ``remarks`` say what a person must know of the request or the answer: what was shortened, a
    mode left out, a place mended.
    """

    trace_id: str
    findings: int
    problem: str | None = None
    quotes: QuoteCounts = field(default_factory=QuoteCounts)
    windows: int = 0
    remarks: tuple[str, ...] = ()


class RunSettings(Struct, frozen=True, omit_defaults=True):
    """With what a judge that asks a model was run.

    ``prompt`` is the hash in the judge's name, ``host`` where requests went, ``parameters`` what
    was asked for beside the prompt, by name. ``examples`` are the ids of the traces that stand in
    the prompt; ``price_in`` and ``price_out`` are per million tokens, None where nobody told, and
    ``price_cached`` of those in that the server knew, None where it is that of all others.
    ``form`` says how answers were asked for: ``json_schema``, ``json_object`` or ``text``.
    """

    model: str
    prompt: str
    host: str
    parameters: tuple[tuple[str, str], ...] = ()
    examples: tuple[str, ...] = ()
    price_in: float | None = None
    price_out: float | None = None
    price_cached: float | None = None
    form: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One answered request of a run, good or not: what it said and what it used.

    ``key`` is the hash of all that the answer depends on; ``usable`` whether the answer was taken,
    so that it need not be asked for again. ``finish`` is ``stop``, ``length`` or ``refusal``.
    ``tokens_in``, ``tokens_out`` are as the server counted; ``counted`` is False where it did not
    and they are estimates. ``at`` is ISO 8601 in UTC, set when it is kept.
    """

    run_id: str
    trace_id: str
    key: str
    answer: str
    finish: str
    form: str
    tokens_in: int
    tokens_out: int
    usable: bool
    counted: bool = True
    at: str = ""
    tokens_cached: int = 0


class Usage(Struct, frozen=True, omit_defaults=True):
    """The use of answered requests: their number, and tokens in and out.

    Of those in, ``tokens_cached`` were known to the server from earlier requests.
    """

    requests: Count = 0
    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_cached: Count = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class AnswerStatistics:
    """The tokens that the answers of a model took.

    ``answers`` could be used, with ``tokens_out`` together; the longest of their requests took
    ``longest_request``. ``repeats`` were cut or could not be used, with ``repeats_out`` together.
    ``thought_out`` is the most that an answer took which was cut before it had begun, as the model
    was still thinking. ``overflows`` requests were longer than the server reads.
    """

    answers: int = 0
    tokens_out: int = 0
    longest_request: int = 0
    repeats: int = 0
    repeats_out: int = 0
    thought_out: int = 0
    overflows: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a judge over traces; ``finished_at`` is None where it was broken off.

    ``settings`` and ``usage`` belong to judges that ask a model. ``ending`` says why a run that is
    over did not come to the end of its traces, such as a spent allowance.
    """

    id: str
    judge: str
    taxonomy: str
    started_at: str
    finished_at: str | None = None
    note: str = ""
    traces: tuple[RunTrace, ...] = ()
    settings: RunSettings | None = None
    usage: Usage = field(default_factory=Usage)
    ending: str | None = None

    @property
    def findings(self) -> int:
        """The number of suggestions."""
        return sum(trace.findings for trace in self.traces)

    @property
    def quotes(self) -> QuoteCounts:
        """The quotes on which its suggestions rest, by how they were found in their traces."""
        return sum((trace.quotes for trace in self.traces), QuoteCounts())

    @property
    def cost(self) -> float | None:
        """Return the cost of the requests, None where no price is known."""
        settings = self.settings
        if settings is None or settings.price_in is None or settings.price_out is None:
            return None
        used = self.usage
        cached_price = settings.price_in if settings.price_cached is None else settings.price_cached
        return (
            (used.tokens_in - used.tokens_cached) * settings.price_in
            + used.tokens_cached * cached_price
            + used.tokens_out * settings.price_out
        ) / 1e6


@dataclass(frozen=True, slots=True)
class EventConflict:
    """Events that an annotator counted alike in two copies of a workspace, with other content.

    All of them are kept and count, in the order of their ids.
    """

    annotator: str
    seq: int
    events: tuple[str, ...]


class HistoryRelation(StrEnum):
    """The relation of an annotator's foreign events to those that are here."""

    NEW = "new"
    """There are none here."""
    SAME = "same"
    """Nothing comes that is not here."""
    LONGER = "longer"
    """All that is here comes too, and the rest is later."""
    FORKED = "forked"
    """Both have events that the other lacks."""
    APART = "apart"
    """They share none, or what comes is not whole: counters are missing."""


@dataclass(frozen=True, slots=True)
class PersonChanges:
    """The changes that a merge makes to one annotator's work, all passes together.

    ``events`` are those that were not here. ``verdicts_changed`` counts those taken back too.
    ``passes_joined`` were open and hold more now; ``passes_finished`` are new or were open;
    ``passes_changed`` were finished before and hold or say something else now.
    ``decisions_overruled`` are other people's that no longer count; ``overruled`` counts these,
    guidelines and studies by author and table. ``sight`` is how the annotator works now, True for
    blind, where that changed. ``edited`` counts the events that are here with another content,
    ``broken`` is the counter of the first one whose chain does not fit. ``needs`` are the names
    that ``--replace`` must give; ``refused``: one is missing; ``replaced``: none is.
    """

    annotator: str
    history: HistoryRelation
    events: int = 0
    labels_added: int = 0
    labels_changed: int = 0
    labels_removed: int = 0
    verdicts_added: int = 0
    verdicts_changed: int = 0
    passes_added: int = 0
    passes_joined: int = 0
    passes_finished: int = 0
    passes_reopened: int = 0
    passes_changed: int = 0
    decisions_added: int = 0
    decisions_changed: int = 0
    decisions_taken_back: int = 0
    decisions_overruled: int = 0
    guidelines_written: int = 0
    studies_set: int = 0
    overruled: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    sight: bool | None = None
    edited: int = 0
    broken: int | None = None
    needs: tuple[str, ...] = ()
    refused: bool = False
    replaced: bool = False


class MergeRefused(WorkspaceError):
    """A merge would replace work that is here; nothing was written.

    ``people`` holds the changes that would have been made, by the author of the new events.
    """

    def __init__(self, people: Sequence[PersonChanges]) -> None:
        self.people = tuple(people)
        names = ", ".join(sorted({name for change in self.people for name in change.needs}))
        super().__init__(f"the file would replace work of {names} here; nothing was written")


@dataclass(frozen=True, slots=True)
class MergeReport:
    """The result of a merge: ``added`` events, ``known`` ones, and those in conflict.

    ``altered`` are ids of events that are here with other content. Ours were kept, but for people
    who were to be replaced. ``people`` says by name what changed, of everybody with new events.
    """

    added: int
    known: int
    altered: tuple[str, ...] = ()
    conflicts: tuple[EventConflict, ...] = ()
    people: tuple[PersonChanges, ...] = ()

"""Records other than labels: traces, annotators, runs of judges, merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from operator import add
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import astuple

from mast_tui.errors import WorkspaceError
from mast_tui.labels import AnnotatorKind, Count, QuoteCounts
from mast_tui.traces.model import Outcome, Trace, TraceIdentity

_FIRST_SPANS: Final = 8
"""The number of first spans with possible times; in some formats instructions have no time."""


class TeamRole(StrEnum):
    """The role of a member of a team on a server."""

    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"
    LEAD = "lead"
    JUDGE = "judge"


class Member(NamedTuple):
    """A member of a team on a server; an ``assisted`` annotator may see judges' suggestions."""

    name: str
    role: TeamRole
    assisted: bool = False

    @property
    def sees_all(self) -> bool:
        """True if the server hides nothing from the member."""
        return self.role is not TeamRole.ANNOTATOR


class TraceRecord(Struct, frozen=True):
    """The record of a trace in a workspace.

    ``trace_id`` is the id in the trace, or one made by the program; other traces with the same id
    become ``id~2`` and so on. ``identity`` is None if only labels of the trace are known. ``path``
    is the last known file, ``record`` the position of the trace in it. ``spans`` is None until all
    spans were counted. ``version`` is the version of the system; ``started`` is the start of the
    run in Unix seconds. ``task_id`` is the benchmark's name of the task, ``trial`` the number of
    the run of this task.
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
        """Return the record of a trace, as far as the trace was read."""
        meta = trace.with_masks(None).meta  # without masks for personal data
        started = meta.started
        if started is None:
            first_spans = map(trace.span, range(min(len(trace), _FIRST_SPANS)))
            started = next((span.start for span in first_spans if span.start is not None), None)
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

    def has_grown(self, current: TraceRecord) -> bool:
        """Return whether the number of spans has changed since the trace was stored."""
        return self.spans is not None and self.spans != current.spans


class SpanIndex(Struct, frozen=True):
    """The index of a span in its trace at the last reading.

    ``index`` is None if the whole trace was read and has no such span. ``text_chars`` is the length
    of the span's text in code points; None if unknown.
    """

    index: int | None
    text_chars: int | None = None


def indices_in(trace: Trace, keys: Mapping[str, bool]) -> dict[str, SpanIndex]:
    """Return the indices of spans in a trace by key.

    A missing span has an empty ``SpanIndex`` once the trace is completely read.

    Args:
        trace: The trace, as far as it is read.
        keys: The keys of the spans; True if the length of the text is needed too.
    """
    indices = {}
    for key, with_length in keys.items():
        index = trace.index_of(key)
        if index is not None:
            indices[key] = SpanIndex(index, trace.text_chars(index) if with_length else None)
        elif trace.loaded.complete:
            indices[key] = SpanIndex(None)
    return indices


def missing_indices(
    needed_keys: Mapping[str, bool], known_indices: Mapping[str, SpanIndex]
) -> dict[str, bool]:
    """Return the needed keys without a stored index or without a needed length.

    Args:
        needed_keys: The keys of the spans; True if the length of the text is needed too.
        known_indices: The stored indices of the trace by key.
    """
    missing = {}
    for key, with_length in needed_keys.items():
        stored = known_indices.get(key)
        lacks_length = stored is not None and stored.index is not None and stored.text_chars is None
        if stored is None or (with_length and lacks_length):
            missing[key] = with_length
    return missing


class AnnotatorInfo(Struct, frozen=True):
    """An annotator; ``blind`` is None until the annotator has chosen blind or assisted work."""

    name: str
    kind: AnnotatorKind
    blind: bool | None = None


class JudgementRecord(Struct, frozen=True):
    """A judge's verdicts on some modes of a trace; ``run`` is the id of the run."""

    judge: str
    trace_id: str
    taxonomy: str
    looks_at: tuple[str, ...]
    at: str
    run: str | None = None


class RunTrace(Struct, frozen=True):
    """The result of a judge's run on one trace; ``problem`` is the reason of a failure.

    ``quotes`` counts the quotes of the suggestions. ``remarks`` are sentences about the request or
    the answer, such as a shortened text or a missing mode.
    """

    trace_id: str
    findings: int
    problem: str | None = None
    quotes: QuoteCounts = field(default_factory=QuoteCounts)
    windows: int = 0
    remarks: tuple[str, ...] = ()


class RunSettings(Struct, frozen=True, omit_defaults=True):
    """The settings of a run of a judge that asks a model.

    ``prompt`` is the hash in the judge's name, ``host`` the model's server, ``parameters`` the
    other settings by name. ``examples`` are the ids of the traces in the prompt. ``price_in`` and
    ``price_out`` are per million tokens, None if unknown. ``price_cached`` is the price of cached
    input tokens, None if it equals ``price_in``. ``form`` is the requested form of answers:
    ``json_schema``, ``json_object`` or ``text``. ``chosen`` are the ids of the traces that a taught
    judge got because the judge before it was wrong there, ``chosen_from`` is the judge from whose
    traces they were chosen.
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
    chosen: tuple[str, ...] = ()
    chosen_from: str | None = None


class Asked(Struct, frozen=True):
    """An answered request of a run, with its text and its tokens.

    ``key`` is the hash of everything that the answer depends on. ``usable`` is True if the answer
    was accepted, so that the request need not be repeated. ``finish`` is ``stop``, ``length`` or
    ``refusal``. ``counted`` is True if the server has counted the tokens, False if they are
    estimates. ``at`` is the time of storing, ISO 8601 in UTC.
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
    """The number of answered requests and their tokens.

    ``tokens_cached`` is the part of ``tokens_in`` that the server has kept from earlier requests.
    """

    requests: Count = 0
    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_cached: Count = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, astuple(self), astuple(other)))


class AnswerStatistics(Struct, frozen=True):
    """The tokens of the answers of a model.

    Attributes:
        answers: The number of usable answers.
        tokens_out: The tokens of the usable answers.
        longest_request: The most tokens of a request with a usable answer.
        unusable: The number of answers that were cut off or not usable.
        unusable_tokens_out: The tokens of these answers.
        longest_thought: The most tokens of an answer that was cut off while the model was thinking.
        overflows: The number of requests that were too long for the server.
    """

    answers: int = 0
    tokens_out: int = 0
    longest_request: int = 0
    unusable: int = 0
    unusable_tokens_out: int = 0
    longest_thought: int = 0
    overflows: int = 0


class Run(Struct, frozen=True):
    """A run of a judge over traces; ``finished_at`` is None if it was interrupted.

    ``settings`` and ``usage`` belong to judges that ask a model. ``ending`` is the reason why a
    finished run has stopped early, such as a spent allowance.
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
        """The number of quotes by kind of match."""
        return sum((trace.quotes for trace in self.traces), QuoteCounts())

    @property
    def cost(self) -> float | None:
        """The cost of the requests; None if no price is known."""
        settings = self.settings
        if settings is None or settings.price_in is None or settings.price_out is None:
            return None
        used = self.usage
        cached_price = settings.price_in if settings.price_cached is None else settings.price_cached
        return (
            (used.tokens_in - used.tokens_cached) * settings.price_in
            + used.tokens_cached * cached_price
            + used.tokens_out * settings.price_out
        ) / 1e6  # prices are for a million tokens


class EventConflict(Struct, frozen=True):
    """Events with the same sequence number but different content, after a merge of two copies.

    All of them count, in the order of their ids.
    """

    annotator: str
    seq: int
    events: tuple[str, ...]


class HistoryRelation(StrEnum):
    """The relation of an annotator's foreign events to the stored events."""

    NEW = "new"
    """There are no stored events."""
    SAME = "same"
    """All foreign events are stored."""
    LONGER = "longer"
    """All stored events are among the foreign events, and all other foreign events are later."""
    FORKED = "forked"
    """Both have events that the other lacks."""
    APART = "apart"
    """They share no events, or sequence numbers are missing among the foreign events."""


class PersonChanges(Struct, frozen=True):
    """The changes that a merge makes to one annotator's work, over all passes.

    ``events`` counts the new events. ``verdicts_changed`` includes removed verdicts.
    ``passes_joined`` are open passes with additions. ``passes_finished`` are new passes or were
    open. ``passes_changed`` were finished before and have other content now.
    ``decisions_overruled`` counts decisions of others that lose their effect. ``overruled`` counts
    these decisions, and guidelines and studies, by author and table. ``blind`` is the new setting
    of blind work, if it changed. ``edited`` counts stored events with another content. ``broken``
    is the sequence number of the first event that does not fit its chain. ``needs`` are the names
    that ``--replace`` must give. ``refused`` is True if one is missing, ``replaced`` if all are
    given. ``replaced_under`` are the taxonomies of the replaced work.
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
    blind: bool | None = field(default=None, name="sight")
    edited: int = 0
    broken: int | None = None
    needs: tuple[str, ...] = ()
    refused: bool = False
    replaced: bool = False
    replaced_under: tuple[str, ...] = ()


class MergeRefused(WorkspaceError):
    """A merge that would replace work here; nothing was written.

    ``people`` are the changes by the author of the new events.
    """

    def __init__(self, people: Sequence[PersonChanges]) -> None:
        self.people = tuple(people)
        names = ", ".join(sorted({name for change in self.people for name in change.needs}))
        super().__init__(f"the file would replace work of {names} here; nothing was written")


class MergeReport(Struct, frozen=True):
    """The result of a merge: the numbers of ``added`` and ``known`` events, and conflicts.

    ``altered`` are the ids of stored events with another content in the other workspace. The stored
    content stays unless ``--replace`` names the person. ``people`` are the changes of each
    annotator with new events.
    """

    added: int
    known: int
    altered: tuple[str, ...] = ()
    conflicts: tuple[EventConflict, ...] = ()
    people: tuple[PersonChanges, ...] = ()

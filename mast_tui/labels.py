"""The records of an annotator's work on a trace: labels, verdicts, reviews and passes."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from enum import IntEnum, StrEnum
from operator import add, attrgetter, sub
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, astuple, force_setattr

from mast_tui.errors import MastError
from mast_tui.safe_text import invisible_in, one_line

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy

Value = TypeVar("Value")

GREATEST_WHOLE: Final = (1 << 53) - 1
"""The greatest whole number that all readers of JSON and all databases store exactly."""

WholeNumber = Annotated[int, Meta(ge=-GREATEST_WHOLE, le=GREATEST_WHOLE)]
Count = Annotated[int, Meta(ge=0, le=GREATEST_WHOLE)]


class AnnotatorKind(StrEnum):
    """The kind of a label's author."""

    HUMAN = "human"
    JUDGE = "judge"
    IMPORTED = "imported"
    AGENT = "agent"
    """A program that labels traces as a person does; its labels never become gold."""

    @property
    def is_person(self) -> bool:
        """True if the labels of the annotator can become gold."""
        return self in (AnnotatorKind.HUMAN, AnnotatorKind.IMPORTED)


class VerdictValue(StrEnum):
    """The verdict on a mode in a trace; a mode without a verdict is 'open'."""

    PRESENT = "present"
    ABSENT = "absent"
    UNSURE = "unsure"

    # The hash of the text, which needs no Python call.
    __hash__ = str.__hash__


class Severity(StrEnum):
    """The effect of a failure on the run, as a person judges it."""

    FATAL = "fatal"
    BENIGN = "benign"


class Origin(StrEnum):
    """The ways in which labels are made."""

    MANUAL = "manual"
    ACCEPTED = "accepted"
    EDITED = "edited"
    IMPORTED = "imported"
    SUGGESTED = "suggested"
    """A judge's label; older workspaces and files have ``manual`` instead."""


class PassKind(StrEnum):
    """The conditions under which an annotator worked."""

    BLIND = "blind"
    ASSISTED = "assisted"
    SECOND_LOOK = "second_look"
    ADJUDICATION = "adjudication"
    RETEST = "retest"

    @property
    def is_labelling(self) -> bool:
        """True if the labels of the pass count as the annotator's labels of the trace.

        The labels of an adjudication are gold. A retest repeats the labelling of a trace only to
        measure self-agreement.
        """
        return self not in (PassKind.ADJUDICATION, PassKind.RETEST)


class ReviewAnswer(StrEnum):
    """A person's answer to a suggestion."""

    ACCEPT = "accept"
    EDIT = "edit"
    REJECT = "reject"


class Match(StrEnum):
    """The kind of match between a judge's quote and the text of the trace.

    ``SPACING``: the same words with other white space, punctuation or case. ``REWORDED``: other
    forms of the words. ``IN_PARTS``: a quote with ``…``, found in parts. ``ALTERED``: words of
    another meaning. ``FUZZY``: a similar text, as earlier versions recorded it.
    """

    EXACT = "exact"
    SPACING = "spacing"
    REWORDED = "reworded"
    IN_PARTS = "in_parts"
    ALTERED = "altered"
    FUZZY = "fuzzy"


JUDGE_PREFIX = "judge:"
AGENT_PREFIX = "agent:"


def annotator_kind(name: str) -> AnnotatorKind:
    """Return the kind of an annotator: judge, agent or human, by the prefix of the name."""
    if name.startswith(JUDGE_PREFIX):
        return AnnotatorKind.JUDGE
    return AnnotatorKind.AGENT if name.startswith(AGENT_PREFIX) else AnnotatorKind.HUMAN


def is_judge(name: str) -> bool:
    """Return whether a name is that of a judge, by its prefix."""
    return name.startswith(JUDGE_PREFIX)


def kind_fits_name(kind: str, name: str) -> bool:
    """Return whether an annotator of a kind may have a name.

    A name without a prefix fits every kind of person.

    Args:
        kind: The value of an ``AnnotatorKind``, or an unknown text.
        name: The annotator's name.
    """
    if kind not in set(AnnotatorKind):
        return False
    name_kind = annotator_kind(name)
    return AnnotatorKind(kind).is_person if name_kind.is_person else kind == name_kind


def label_origin(annotator: str, recorded: Origin) -> Origin:
    """Return the recorded origin of a label, or another one that fits the label's author.

    Args:
        annotator: The label's author.
        recorded: The origin in an event, a row or a file.
    """
    if is_judge(annotator):
        return Origin.SUGGESTED if recorded is Origin.MANUAL else recorded
    return Origin.IMPORTED if recorded is Origin.SUGGESTED else recorded


GOLD: Final = "gold"
"""The word for settled labels in the place of an annotator's name."""

ALL: Final = "all"
"""The word for everyone's labels in the place of an annotator's name."""

RESERVED: Final = (GOLD, ALL)
"""The words that no annotator may have as a name."""


_MOST_NAME_CHARS: Final = 64


class InvalidName(MastError, ValueError):
    """A name that no annotator may have."""


class ReservedName(InvalidName):
    """A reserved word as a name."""


def checked_person(name: str) -> str:
    """Return a person's name without surrounding spaces.

    A name has at most 64 printable characters, no prefix of judges or agents, and is not a reserved
    word.

    Raises:
        InvalidName: The name is not valid.
    """
    name = name.strip()
    if not name:
        raise InvalidName("the annotator's name is empty; give --annotator NAME")
    folded = unicodedata.normalize("NFKC", name).casefold()
    if folded.startswith(JUDGE_PREFIX):
        raise InvalidName(f"{name!r} is a judge's name; a person's may not begin with 'judge:'")
    if folded.startswith(AGENT_PREFIX):
        raise InvalidName(f"{name!r} is an agent's name; a person's may not begin with 'agent:'")
    if folded in RESERVED:
        raise ReservedName(f'"{name}" is reserved; choose another name')
    if len(name) > _MOST_NAME_CHARS or not name.isprintable():
        raise InvalidName(f"{name!r} is not a valid name; use at most 64 printable characters")
    if "|" in name or "," in name:
        raise InvalidName(f"{name!r} is not a valid name: '|' and ',' separate names in tables")
    invisible = invisible_in(name)
    if invisible is not None:
        raise InvalidName(f"{one_line(name)} is not a valid name: {invisible} in it is invisible")
    return name


def checked_agent(name: str) -> str:
    """Return an agent's name (``agent:`` before a valid name) without surrounding spaces.

    Raises:
        InvalidName: The name is not valid.
    """
    name = name.strip()
    if not name.startswith(AGENT_PREFIX):
        raise InvalidName(f"{name!r} is not an agent's name; use agent:NAME")
    return AGENT_PREFIX + checked_person(name.removeprefix(AGENT_PREFIX))


def check_unlike(name: str, existing: Iterable[str]) -> None:
    """Refuse a new name that looks like an existing one.

    Names look alike if they differ only by the case or width of letters, by look-alike letters (the
    confusables of Unicode's technical standard 39) or by doubled spaces.

    Args:
        name: The new name, as ``checked_person`` returns it.
        existing: The existing names.

    Raises:
        InvalidName: The name looks like an existing one, or like ``gold`` or ``all``.
    """
    skeletons = _skeletons(name)
    for other in (*RESERVED, *existing):
        if other != name and not skeletons.isdisjoint(_skeletons(other)):
            raise InvalidName(
                f"{name!r} looks like {other!r}, which is another name in this workspace; use that "
                "name, or one that looks different"
            )


def _skeletons(name: str) -> frozenset[str]:
    """Return two skeletons of a name: of the name itself and of its lower case.

    Names that look alike share a skeleton. ``I`` looks like ``l``, but ``i`` does not.
    """
    normalized_name = " ".join(unicodedata.normalize("NFKC", one_line(name)).split())
    return frozenset(
        _confusable_skeleton(text).casefold()
        for text in (normalized_name, normalized_name.casefold())
    )


def _confusable_skeleton(text: str) -> str:
    """Replace each letter by one that stands for all letters of the same look."""
    # Start-up: large tables, which only a new name needs.
    from confusable_homoglyphs.confusables import confusables_data as alike

    def prototype(char: str) -> str:
        # The table has one entry for a letter, its prototype, and many entries for a prototype. If
        # two letters are each other's only entry, the smaller one serves as the prototype. Some
        # entries have a left-to-right mark (U+200E) beside the letter.
        entries: list[str] = [entry["c"].strip("\u200e") for entry in alike.get(char, ())]
        if len(entries) != 1:
            return char
        (entry,) = entries
        is_prototype = len(entry) > 1 or len(alike.get(entry, ())) > 1
        return entry if is_prototype else min(char, entry)

    return "".join(prototype(char) for char in unicodedata.normalize("NFD", text))


CONFIDENCES: Final[Mapping[float | None, str]] = {
    None: "not set",
    1.0: "sure",
    0.75: "fairly sure",
    0.5: "half sure",
    0.25: "doubtful",
}
"""The confidences that a person can give a label, in the order of the key that changes them."""


def next_severity(severity: Severity | None) -> Severity | None:
    """Return the next severity in the order of the key that changes it."""
    order: tuple[Severity | None, ...] = (None, *Severity)
    return _next_in_cycle(order, severity)


def next_confidence(confidence: float | None) -> float | None:
    """Return the next confidence in the order of the key that changes it."""
    return _next_in_cycle(tuple(CONFIDENCES), confidence)


def _next_in_cycle(values: tuple[Value, ...], value: Value) -> Value:
    """Return the value after another one; the first value follows the last."""
    position = values.index(value) if value in values else 0
    return values[(position + 1) % len(values)]


def confidence_words(confidence: float | None) -> str:
    """Describe a confidence in words, or as a number if the words have none for it."""
    return CONFIDENCES.get(confidence) or f"{confidence:.2f}"


class Target(Struct, frozen=True, omit_defaults=True):
    """The part of a trace that a label is about: the whole trace, a range of spans, or a quote.

    The first and last key are None for the whole trace, and equal for a quote. ``char_start`` and
    ``char_end`` are code points in the text of the span (end exclusive).
    """

    first: str | None = None
    _last: str | None = field(default=None, name="last")
    """None if it equals ``first``, so that files store the key once."""

    quote: str | None = None
    char_start: WholeNumber | None = field(default=None, name="start")
    char_end: WholeNumber | None = field(default=None, name="end")

    def __post_init__(self) -> None:
        if self._last is not None and self._last == self.first:
            force_setattr(self, "_last", None)
        if self.first is None and self._last is not None:
            raise ValueError("a target has both a first and a last span, or neither")
        if self.quote is not None and (self.first is None or self._last is not None):
            raise ValueError("a quote is inside one span")
        if (self.char_start is None) != (self.char_end is None):
            raise ValueError("a quote has both a start and an end, or neither")

    @property
    def last(self) -> str | None:
        """The key of the last span."""
        return self.first if self._last is None else self._last

    @property
    def is_whole(self) -> bool:
        """True if the target is the whole trace."""
        return self.first is None


WHOLE_TRACE = Target()


class QuoteDoubt(IntEnum):
    """The doubt about a judge's quote; suggestions with doubtful quotes are shown last."""

    NONE = 0
    ALTERED = 1
    NOT_FOUND = 2


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The quote behind a judge's label.

    Attributes:
        key: The span with the quote. If the quote was not found, the span that the judge named;
            None if it does not exist.
        quote: The quoted words.
        match: The kind of match; None if it was not recorded.
        misnamed_spans: The first and last key of the spans that the judge named, if the quote was
            found in another span.
        wording: The judge's own wording, if it differs from the text of the trace.
        char_start: The first code point of the quote in the span's text; None if it was not found.
        char_end: The code point after the quote; None if it was not found.
    """

    key: str | None = None
    quote: str
    match: Match | None = None
    misnamed_spans: tuple[str, str] | None = field(default=None, name="named")
    wording: str | None = None
    char_start: WholeNumber | None = field(default=None, name="start")
    char_end: WholeNumber | None = field(default=None, name="end")

    def __post_init__(self) -> None:
        if self.placed and self.key is None:
            raise ValueError("evidence with a range of characters needs a span")

    @property
    def placed(self) -> bool:
        """True if the quote was found in the trace, exactly or altered."""
        return self.char_start is not None

    @property
    def doubt(self) -> QuoteDoubt:
        """The reason to doubt that the trace contains the quote."""
        if not self.placed:
            return QuoteDoubt.NOT_FOUND
        return QuoteDoubt.ALTERED if self.match is Match.ALTERED else QuoteDoubt.NONE


class Finding(Struct, frozen=True):
    """A failure mode that a judge finds in a trace, with its span range and quote.

    Models and rules return findings; the workspace stores each as a ``Label``. The evidence of a
    new finding of a model has only the quote. ``quote_anchoring`` adds its position in the text.

    Attributes:
        mode: The slug of the mode.
        first: The key of the first span; None for the whole trace.
        last: The key of the last span; None for the whole trace.
        rationale: The judge's reason, with spans as ``#1``, ``#2`` and so on.
        confidence: A number in [0, 1].
        decisive: True if the failure decided the outcome; None if the judge does not say.
        evidence: The quote; None if nothing can be quoted.
        remedy: The correct action and its result if this is the decisive step of the run; else
            empty.

    Raises:
        ValueError: The confidence is out of range, or the values contradict each other.
    """

    mode: str
    first: str | None
    last: str | None
    rationale: str
    confidence: float
    decisive: bool | None = None
    evidence: Evidence | None = None
    remedy: str = ""

    def __post_init__(self) -> None:
        if not 0.0 <= self.confidence <= 1.0:
            raise ValueError(f"a confidence must be from 0 to 1, not {self.confidence}")
        if (self.first is None) != (self.last is None):
            raise ValueError("a range has both a first and a last span, or neither")
        if self.evidence is None:
            return
        if (self.evidence.char_start is None) != (self.evidence.char_end is None):
            raise ValueError("a quote has both a start and an end, or neither")

    @property
    def target(self) -> Target:
        """The quote if it was found and lies in the range's only span; else the range."""
        quote = self.evidence
        if quote is None or not quote.placed:
            return Target(self.first, self.last)
        if self.first != quote.key or self.last != quote.key:
            return Target(self.first, self.last)
        return Target(self.first, self.last, quote.quote, quote.char_start, quote.char_end)


class Judgement(Struct, frozen=True):
    """The findings and verdicts of a judge on one trace.

    Attributes:
        findings: The findings, in reading order; their modes are present.
        unsure: The modes of which the judge is unsure.
        judged_modes: The modes with a verdict, or None for all modes in ``looks_at``. A judged mode
            without a finding is absent unless it is in ``unsure``.
    """

    findings: tuple[Finding, ...] = ()
    unsure: tuple[str, ...] = ()
    judged_modes: tuple[str, ...] | None = None


class QuoteCounts(Struct, frozen=True, omit_defaults=True):
    """The number of quotes by kind of match; ``unsorted`` were found, without a known kind."""

    exact: Count = 0
    spacing: Count = 0
    reworded: Count = 0
    in_parts: Count = 0
    altered: Count = 0
    not_found: Count = 0
    unsorted: Count = 0

    @classmethod
    def count(cls, evidence: Iterable[Evidence | None]) -> QuoteCounts:
        """Count quotes by kind of match; None is not counted.

        A quote without a recorded match counts as exact, because a rule copied it from the trace.
        """
        counts = Counter(
            _COUNTED_AS[quote.match] if quote.placed else "not_found"
            for quote in evidence
            if quote is not None
        )
        return cls(**counts)

    @property
    def all(self) -> int:
        """The number of all quotes."""
        return self.found + self.in_parts + self.altered + self.not_found

    @property
    def found(self) -> int:
        """The number of quotes that were found with the same words or other forms of them."""
        return self.exact + self.spacing + self.reworded + self.unsorted

    @property
    def summary(self) -> str:
        """The numbers of quotes by kind in one line, without zeros."""
        named = ((name.replace("_", " "), count) for name, count in asdict(self).items())
        return ", ".join(f"{count:,} {name}" for name, count in named if count)

    def __add__(self, other: QuoteCounts) -> QuoteCounts:
        return QuoteCounts(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: QuoteCounts) -> QuoteCounts:
        return QuoteCounts(*map(sub, astuple(self), astuple(other)))


_COUNTED_AS: Final[dict[Match | None, str]] = {
    None: "exact",
    **{match: match.value for match in Match},
    Match.FUZZY: "unsorted",
}


class Label(Struct, frozen=True, omit_defaults=True):
    """A mode that an annotator marks in a part of a trace.

    Attributes:
        taxonomy: ``id@version`` of the taxonomy.
        mode: The slug of the mode.
        suggestion: The id of the judge's label from which this label was made.
        saw_suggestions: True if suggestions were on screen when the label was made.
        created_at: The time, ISO 8601 in UTC.
        evidence: The quote, only in judges' labels.
        confidence: A number in [0, 1].
        decisive: True if the failure decided the outcome, only in judges' labels; None if the judge
            did not say.
        remedy: The correct action and its result, if a judge calls this the decisive step of the
            run; else empty.
    """

    id: str
    annotator: str
    trace_id: str
    taxonomy: str
    mode: str
    target: Target
    note: str = ""
    severity: Severity | None = None
    origin: Origin = field(default_factory=lambda: Origin.MANUAL)
    suggestion: str | None = None
    saw_suggestions: bool = False
    created_at: str = ""
    evidence: Evidence | None = None
    confidence: Annotated[float, Meta(ge=0, le=1)] | None = None
    pass_number: WholeNumber = 1
    decisive: bool | None = None
    remedy: str = ""


class Verdict(Struct, frozen=True):
    """An annotator's verdict on a mode in a trace."""

    annotator: str
    trace_id: str
    taxonomy: str
    mode: str
    value: VerdictValue
    pass_number: int = 1


class Review(Struct, frozen=True):
    """A person's answer to one suggestion, given in one pass over a trace.

    ``label`` is the id of the label that the answer made; None for a rejection.
    """

    annotator: str
    suggestion: str
    answer: ReviewAnswer
    label: str | None = None
    reason: str = ""
    trace_id: str = ""
    taxonomy: str = ""
    pass_number: int = 1


class SpanNote(Struct, frozen=True):
    """An annotator's note on a span, without a label."""

    annotator: str
    trace_id: str
    taxonomy: str
    key: str
    text: str
    pass_number: int = 1


class Pass(Struct, frozen=True):
    """One annotator's work on one trace under one taxonomy, from opening to finishing.

    Attributes:
        finished_at: The time of finishing; None while the pass is open.
        judge_seen: True if a judge's suggestion was on screen.
        read: The number of spans that were read when the pass was finished.
        spans: The number of spans of the trace at that time.
        revealed_at: The time at which something hidden was first shown after finishing. After that
            the pass cannot be reopened.
        withheld: True if a study hid suggestions.
    """

    annotator: str
    trace_id: str
    taxonomy: str
    number: int
    kind: PassKind
    started_at: str
    finished_at: str | None = None
    judge_seen: bool = False
    read: int | None = None
    spans: int | None = None
    revealed_at: str | None = None
    withheld: bool = False

    @property
    def finished(self) -> bool:
        """True if the pass is finished, so that its labels cannot change."""
        return self.finished_at is not None


class TraceWork(Struct):
    """The labels, verdicts and notes of one annotator on one trace, in one pass.

    Attributes:
        labels: The labels by id.
        verdicts: The verdicts by the mode's slug. A mode with a label is present in any case.
        notes: The notes by the span's key.
        finished_at: The time of finishing, ISO 8601 in UTC. Empty if the time is not known; None if
            the trace is not finished.
        judge_seen: True if a judge's suggestion was on screen.
        merged: The ids of gold labels that join span ranges of several annotators.
    """

    annotator: str
    trace_id: str
    taxonomy: str
    author_kind: AnnotatorKind = AnnotatorKind.HUMAN
    labels: dict[str, Label] = field(default_factory=dict)
    verdicts: dict[str, VerdictValue] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    finished_at: str | None = None
    judge_seen: bool = False
    merged: frozenset[str] = frozenset()

    @property
    def key(self) -> WorkKey:
        """The annotator, the trace id and the taxonomy."""
        return self.annotator, self.trace_id, self.taxonomy

    def labels_of(self, mode: str) -> tuple[Label, ...]:
        """Return all labels of a mode."""
        return tuple(label for label in self.labels.values() if label.mode == mode)

    def verdict(self, mode: str) -> VerdictValue | None:
        """Return the verdict on a mode; None while it is open."""
        return VerdictValue.PRESENT if self.labels_of(mode) else self.verdicts.get(mode)

    def verdicts_without_label(self, taxonomy: Taxonomy) -> dict[str, VerdictValue]:
        """Return the verdicts absent and unsure by mode, in the order of a taxonomy's modes."""
        labelled_modes = {label.mode for label in self.labels.values()}
        return {
            mode.slug: self.verdicts[mode.slug]
            for mode in taxonomy.modes
            if mode.slug not in labelled_modes
            and self.verdicts.get(mode.slug) in (VerdictValue.ABSENT, VerdictValue.UNSURE)
        }

    def saw_judge(self, mode: str) -> bool:
        """Return whether a judge may have influenced the verdict on a mode."""
        return (
            self.judge_seen
            or self.author_kind is AnnotatorKind.JUDGE
            or any(label.saw_suggestions for label in self.labels_of(mode))
        )


WorkKey = tuple[str, str, str]
"""The annotator, the trace id and the taxonomy."""


Which = Literal["first", "last"]

_FIRST_LOOKS = (PassKind.BLIND, PassKind.ASSISTED)


def counted_passes(
    passes: Iterable[Pass], which: Which, *, finished_only: bool = True
) -> dict[tuple[str, str], Pass]:
    """Select the pass that counts for each annotator and trace.

    Adjudications and retests never count.

    Args:
        passes: Passes under one taxonomy.
        which: ``first`` for the first blind or assisted pass, made before the annotator saw the
            work of others; ``last`` for the latest pass.
        finished_only: True to leave out unfinished passes.

    Returns:
        The passes by annotator and trace id.
    """
    passes_by_key: dict[tuple[str, str], Pass] = {}
    # The pass that counts comes last in this order and replaces the others.
    ordered_passes = sorted(passes, key=attrgetter("number"), reverse=which == "first")
    for trace_pass in ordered_passes:
        if not trace_pass.kind.is_labelling or (finished_only and not trace_pass.finished):
            continue
        if which == "first" and trace_pass.kind not in _FIRST_LOOKS:
            continue
        passes_by_key[trace_pass.annotator, trace_pass.trace_id] = trace_pass
    return passes_by_key


def finished_by(names: Container[str], finished: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Count the traces that each person has finished, without people that have finished none.

    Args:
        names: The names of the people.
        finished: The annotator and trace id of every finished pass that counts.

    Returns:
        The number of traces by name.
    """
    return dict(sorted(Counter(name for name, _ in finished if name in names).items()))

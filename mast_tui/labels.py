"""The labels, verdicts, reviews and passes of annotators and judges."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from operator import add, sub
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from msgspec import Meta, Struct
from msgspec import field as struct_field
from msgspec.structs import asdict, astuple, force_setattr

from mast_tui.errors import MastError
from mast_tui.safe_text import invisible_in, one_line

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy

Value = TypeVar("Value")

GREATEST_WHOLE: Final = (1 << 53) - 1
"""The greatest whole number that every reader of JSON and every database keeps exactly."""

WholeNumber = Annotated[int, Meta(ge=-GREATEST_WHOLE, le=GREATEST_WHOLE)]
Count = Annotated[int, Meta(ge=0, le=GREATEST_WHOLE)]


class AnnotatorKind(StrEnum):
    """The kind of a label's author."""

    HUMAN = "human"
    JUDGE = "judge"
    IMPORTED = "imported"
    AGENT = "agent"
    """A program that labels trace by trace, as a person does; its labels are never gold."""

    @property
    def is_person(self) -> bool:
        """True if the labels of the annotator can become gold."""
        return self in (AnnotatorKind.HUMAN, AnnotatorKind.IMPORTED)


class VerdictValue(StrEnum):
    """The verdict on a mode in a trace; without a verdict the mode is open."""

    PRESENT = "present"
    ABSENT = "absent"
    UNSURE = "unsure"

    # As of the equal text, and without a Python call for each of very many.
    __hash__ = str.__hash__


class Severity(StrEnum):
    """The effect of a failure on the run, in the opinion of the annotator."""

    FATAL = "fatal"
    BENIGN = "benign"


class Origin(StrEnum):
    """The origin of a label; see ``label_origin``."""

    MANUAL = "manual"
    ACCEPTED = "accepted"
    EDITED = "edited"
    IMPORTED = "imported"
    SUGGESTED = "suggested"
    """Made by a judge; workspaces and files of earlier versions have ``manual`` instead."""


class PassKind(StrEnum):
    """The conditions under which an annotator worked."""

    BLIND = "blind"
    ASSISTED = "assisted"
    SECOND_LOOK = "second_look"
    ADJUDICATION = "adjudication"
    RETEST = "retest"

    @property
    def is_reading(self) -> bool:
        """True if its labels count as the annotator's opinion on the trace.

        The labels of an adjudication are gold. A retest, in which a trace is labelled again without
        the earlier labels on screen, only measures the consistency of an annotator.
        """
        return self not in (PassKind.ADJUDICATION, PassKind.RETEST)


class ReviewAnswer(StrEnum):
    """A person's answer to a suggestion."""

    ACCEPT = "accept"
    EDIT = "edit"
    REJECT = "reject"


class Match(StrEnum):
    """The closeness of a judge's quote to the text where it was found in the trace.

    ``SPACING``: the same words with other white space, punctuation or case. ``REWORDED``: other
    forms of the words. ``IN_PARTS``: the parts before and after a ``…``. ``ALTERED``: words with
    another meaning. ``FUZZY``: a similar text in records of earlier versions, which did not compare
    the words.
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
    """Return the kind of an annotator by the prefix of the name: judge, agent, or human."""
    if name.startswith(JUDGE_PREFIX):
        return AnnotatorKind.JUDGE
    return AnnotatorKind.AGENT if name.startswith(AGENT_PREFIX) else AnnotatorKind.HUMAN


def kind_fits_name(kind: str, name: str) -> bool:
    """Return whether an annotator of this kind can have the name.

    Args:
        kind: The value of an ``AnnotatorKind``, as a file has it.
        name: The annotator's name.
    """
    name_kind = annotator_kind(name)
    return kind in set(AnnotatorKind) and (
        AnnotatorKind(kind).is_person if name_kind.is_person else kind == name_kind
    )


def label_origin(annotator: str, recorded: Origin) -> Origin:
    """Return the origin of a label, whatever was recorded of it.

    Args:
        annotator: The label's author.
        recorded: The origin in an event, a row or a file.
    """
    if annotator_kind(annotator) is AnnotatorKind.JUDGE:
        return Origin.SUGGESTED if recorded is Origin.MANUAL else recorded
    return Origin.IMPORTED if recorded is Origin.SUGGESTED else recorded


RESERVED: Final = ("gold", "all")
"""What stands for settled labels, and for everybody's: nobody's name."""


class InvalidName(MastError, ValueError):
    """A name that no annotator may have."""


class ReservedName(InvalidName):
    """A name that stands for labels of nobody in particular."""


def checked_person(name: str) -> str:
    """Return a person's name, stripped.

    Names are at most 64 printable characters and may not begin like those of judges and agents;
    ``gold`` and ``all`` are reserved. Capitals and wide letters make no difference.

    Raises:
        InvalidName: It cannot be a name.
    """
    name = name.strip()
    if not name:
        raise InvalidName("an annotator's name is empty; give one with --annotator NAME")
    folded = unicodedata.normalize("NFKC", name).casefold()
    if folded.startswith(JUDGE_PREFIX):
        raise InvalidName(f"{name!r} is a judge's name; a person's may not begin with 'judge:'")
    if folded.startswith(AGENT_PREFIX):
        raise InvalidName(f"{name!r} is an agent's name; a person's may not begin with 'agent:'")
    if folded in RESERVED:
        raise ReservedName(f'"{name}" is reserved. Choose another name: --annotator NAME')
    if len(name) > 64 or not name.isprintable():
        raise InvalidName(f"{name!r} is no name: at most 64 printable characters")
    if "|" in name or "," in name:
        raise InvalidName(f"{name!r} is no name: '|' and ',' separate names in tables")
    invisible = invisible_in(name)
    if invisible is not None:
        raise InvalidName(f"{one_line(name)} is no name: {invisible} in it cannot be seen")
    return name


def checked_agent(name: str) -> str:
    """Return an agent's name, stripped: ``agent:`` and what could be a person's name.

    Raises:
        InvalidName: It cannot be an agent's name.
    """
    name = name.strip()
    if not name.startswith(AGENT_PREFIX):
        raise InvalidName(f"{name!r} is not an agent's name; agents are called agent:NAME")
    return AGENT_PREFIX + checked_person(name.removeprefix(AGENT_PREFIX))


def check_unlike(name: str, existing: Iterable[str]) -> None:
    """Check that a new name cannot be mistaken for another one.

    Letter case, width, look-alike letters (by the confusables of Unicode's technical standard 39)
    and doubled spaces do not make a difference.

    Args:
        name: The new name, as ``checked_person`` returns it.
        existing: The names of the other annotators.

    Raises:
        InvalidName: It differs from an existing name, or from ``gold`` or ``all``, only by these.
    """
    looks = _looks(name)
    for other in (*RESERVED, *existing):
        if other != name and not looks.isdisjoint(_looks(other)):
            raise InvalidName(
                f"{name!r} looks like {other!r}, which is another name here; write it as that one, "
                "or so that people can tell the two apart"
            )


def _looks(name: str) -> frozenset[str]:
    """Return keys of a name's appearance: names that look alike share a key.

    There is one for the name and one for its lower case, since ``I`` looks like ``l`` but ``i``
    does not.
    """
    plain = " ".join(unicodedata.normalize("NFKC", one_line(name)).split())
    return frozenset(_skeleton(text).casefold() for text in (plain, plain.casefold()))


def _skeleton(text: str) -> str:
    # The tables are large, so they are imported only for a new name.
    from confusable_homoglyphs.confusables import confusables_data

    def prototype(char: str) -> str:
        # The entry of a letter names only its prototype, that of a prototype each letter like it.
        similar: list[str] = [
            entry["c"].strip("\u200e") for entry in confusables_data.get(char, ())
        ]
        if len(similar) != 1:
            return char
        (other,) = similar
        is_prototype = len(other) > 1 or len(confusables_data.get(other, ())) > 1
        return other if is_prototype else min(char, other)

    return "".join(prototype(char) for char in unicodedata.normalize("NFD", text))


CONFIDENCES: Final[Mapping[float | None, str]] = {
    None: "not said",
    1.0: "sure",
    0.75: "fairly sure",
    0.5: "half sure",
    0.25: "doubtful",
}
"""The confidences that a person can set, in the order in which a key cycles through them."""


def next_severity(severity: Severity | None) -> Severity | None:
    """Return the severity that follows in the cycle of a key."""
    order: tuple[Severity | None, ...] = (None, *Severity)
    return _following(order, severity)


def next_confidence(confidence: float | None) -> float | None:
    """Return the confidence that follows in ``CONFIDENCES``, the first after the last."""
    return _following(tuple(CONFIDENCES), confidence)


def _following(values: tuple[Value, ...], value: Value) -> Value:
    index = values.index(value) if value in values else 0
    return values[(index + 1) % len(values)]


def confidence_words(confidence: float | None) -> str:
    """Return a confidence as a text; a value outside ``CONFIDENCES`` as a number."""
    return CONFIDENCES.get(confidence) or f"{confidence:.2f}"


class Target(Struct, frozen=True, omit_defaults=True):
    """The place in a trace that a label points to: all of it, a range of spans, or a quote.

    Both keys are None for the whole trace. A quote is in one span, so both keys are equal;
    ``char_start`` and ``char_end`` are code points in the span's text as read (end exclusive).
    """

    first: str | None = None
    _last: str | None = struct_field(default=None, name="last")
    """None if it is the first span, so that the key is written once."""

    quote: str | None = None
    char_start: WholeNumber | None = struct_field(default=None, name="start")
    char_end: WholeNumber | None = struct_field(default=None, name="end")

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
    """The doubt that a judge has invented a quote; doubtful quotes are shown last."""

    NONE = 0
    ALTERED = 1
    NOT_FOUND = 2


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The quote that supports a judge's label, in the span ``key``.

    ``char_start`` and ``char_end`` are code points in the span's text as read (end exclusive), both
    None if the quote was not found. ``key`` is None if it was not found and the judge named no
    existing span. ``match`` is the closeness of the match, None if it was not recorded. ``named``
    are the keys of the first and last span that the judge named, if the quote was found in another
    span. ``wording`` is the judge's own text, if it differs from the text of the trace.
    """

    key: str | None = None
    quote: str
    match: Match | None = None
    named: tuple[str, str] | None = None
    wording: str | None = None
    char_start: WholeNumber | None = struct_field(default=None, name="start")
    char_end: WholeNumber | None = struct_field(default=None, name="end")

    def __post_init__(self) -> None:
        if self.placed and self.key is None:
            raise ValueError("evidence with a place in a span names the span")

    @property
    def placed(self) -> bool:
        """True if the quote was found in the trace, in the same or in altered words."""
        return self.char_start is not None

    @property
    def doubt(self) -> QuoteDoubt:
        """The doubt that the judge has invented the quote."""
        if not self.placed:
            return QuoteDoubt.NOT_FOUND
        return QuoteDoubt.ALTERED if self.match is Match.ALTERED else QuoteDoubt.NONE


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure that a judge has found in a trace: its mode, its spans and its quote.

    The evidence of a finding from a model's answer has only the quote. ``quote_anchoring`` finds
    the quote in the trace and corrects the range if the quote is in other spans. The findings of
    rules are complete. The workspace stores a finding as a ``Label``.

    ``mode`` is a slug. ``first`` and ``last`` are the keys of the range's ends, both None for the
    whole trace. ``rationale`` is a reason that a person can check, with spans as ``#1``…
    ``confidence`` is in [0, 1]. ``decisive`` is True if the failure decided the outcome, None if
    the judge does not say. ``remedy`` marks the decisive step of the run: the action that would
    have been right, and its consequence. ``evidence`` is None if nothing can be quoted.

    Raises:
        ValueError: The confidence is out of range, or only one end of a range is given.
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
            raise ValueError(f"a confidence lies between 0 and 1, not at {self.confidence}")
        if (self.first is None) != (self.last is None):
            raise ValueError("a range has both a first and a last span, or neither")
        if self.evidence is None:
            return
        if (self.evidence.char_start is None) != (self.evidence.char_end is None):
            raise ValueError("a quote has both a start and an end, or neither")

    @property
    def target(self) -> Target:
        """The quote, if it was found in the only span of the range; else the range."""
        evidence = self.evidence
        if evidence is None or not evidence.placed or not self.first == self.last == evidence.key:
            return Target(self.first, self.last)
        return Target(self.first, self.last, evidence.quote, evidence.char_start, evidence.char_end)


class QuoteCounts(Struct, frozen=True, omit_defaults=True):
    """The numbers of quotes by kind of match; ``unsorted`` were found without a recorded kind."""

    exact: Count = 0
    spacing: Count = 0
    reworded: Count = 0
    in_parts: Count = 0
    altered: Count = 0
    not_found: Count = 0
    unsorted: Count = 0

    @classmethod
    def count(cls, evidence: Iterable[Evidence | None]) -> QuoteCounts:
        """Count the quotes of labels or findings by kind of match; None is not counted.

        A quote without a recorded match was copied from the trace, as by a rule.
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
        """The number of quotes found in the trace with the same words, in any form."""
        return self.exact + self.spacing + self.reworded + self.unsorted

    @property
    def summary(self) -> str:
        """The numbers of quotes by kind, without kinds that have none."""
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
    """The label of an annotator for a mode on a target in a trace.

    ``taxonomy`` is ``id@version`` and ``mode`` a slug of it. ``confidence`` lies in [0, 1].
    ``suggestion`` is the id of the judge's label from which it was made; ``saw_suggestions`` is
    True if any suggestion was on screen then. ``created_at`` is ISO 8601 in UTC. Only the labels of
    judges have ``evidence``, ``decisive`` (True if the failure decided the outcome, None if the
    judge does not say) and ``remedy`` (see ``Finding``).
    """

    id: str
    annotator: str
    trace_id: str
    taxonomy: str
    mode: str
    target: Target
    note: str = ""
    severity: Severity | None = None
    origin: Origin = struct_field(default_factory=lambda: Origin.MANUAL)
    suggestion: str | None = None
    saw_suggestions: bool = False
    created_at: str = ""
    evidence: Evidence | None = None
    confidence: Annotated[float, Meta(ge=0, le=1)] | None = None
    pass_number: WholeNumber = 1
    decisive: bool | None = None
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of an annotator on a mode in a trace."""

    annotator: str
    trace_id: str
    taxonomy: str
    mode: str
    value: VerdictValue
    pass_number: int = 1


@dataclass(frozen=True, slots=True)
class Review:
    """A person's answer to one suggestion, given in one pass over a trace.

    ``label`` is the person's label made from it, None if the suggestion was rejected.
    """

    annotator: str
    suggestion: str
    answer: ReviewAnswer
    label: str | None = None
    reason: str = ""
    trace_id: str = ""
    taxonomy: str = ""
    pass_number: int = 1


@dataclass(frozen=True, slots=True)
class SpanNote:
    """The note of an annotator on a span, without a label."""

    annotator: str
    trace_id: str
    taxonomy: str
    key: str
    text: str
    pass_number: int = 1


@dataclass(frozen=True, slots=True)
class Pass:
    """One annotator's work on one trace under one taxonomy, from opening to finishing.

    ``finished_at`` is None while it is open. ``judge_seen`` is True if a judge's suggestion was on
    screen during the pass, ``withheld`` if a study hid suggestions. ``read`` of ``spans`` spans
    were read when it was finished. ``revealed_at`` is the time when hidden work was first shown
    after finishing; from then on the pass cannot be reopened.
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
        """True if the pass is finished, so that it can no longer change."""
        return self.finished_at is not None


@dataclass(slots=True)
class TraceWork:
    """One annotator's work on one trace under one taxonomy, as one pass holds it.

    ``labels`` are by id, ``notes`` on spans by the span's key. ``verdicts`` are by a mode's slug; a
    mode with a label is present, whatever they hold. ``finished_at`` is ISO 8601 in UTC, empty if
    the time is not known, and None while the trace is not finished. ``judge_seen`` is whether a
    judge's suggestion was on screen. ``merged`` has the ids of gold labels that cover different
    places of several annotators.
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
        """Return the verdicts absent and unsure on a taxonomy's modes, in their order."""
        labelled = {label.mode for label in self.labels.values()}
        negative = (VerdictValue.ABSENT, VerdictValue.UNSURE)
        return {
            mode.slug: value
            for mode in taxonomy.modes
            if mode.slug not in labelled and (value := self.verdicts.get(mode.slug)) in negative
        }

    def saw_judge(self, mode: str) -> bool:
        """Return whether a judge may have influenced the verdict on a mode."""
        return (
            self.judge_seen
            or self.author_kind is AnnotatorKind.JUDGE
            or any(label.saw_suggestions for label in self.labels_of(mode))
        )


WorkKey = tuple[str, str, str]
"""The annotator, the trace id and the taxonomy of a work."""

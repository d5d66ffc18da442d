"""The records of gold: answers, decisions, conflicts, and the gold of one trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct, field

from mast_tui.labels import Label, Severity, Target, VerdictValue


class Resolution(StrEnum):
    """The way in which a verdict or a place of the gold was resolved."""

    UNANIMOUS = "unanimous"
    MAJORITY = "majority"
    ADJUDICATED = "adjudicated"
    SINGLE = "single"
    UNRESOLVED = "unresolved"


class ConflictKind(StrEnum):
    """The subject of a conflict: if a mode shows, or where."""

    VERDICT = "verdict"
    PLACE = "place"


class Said(Struct, frozen=True, omit_defaults=True):
    """One side's answer on a mode or an item: a verdict, and the places that it marked."""

    annotator: str
    value: VerdictValue | None = None
    targets: tuple[Target, ...] = field(default_factory=lambda: ())


class Decision(Struct, frozen=True, omit_defaults=True):
    """An adjudicator's decision about a mode's verdict or about one item.

    Attributes:
        item: The mode's slug for its verdict, otherwise the id of the item (``item_id``).
        value: The verdict. On an item any other value than present means that the place does
            not count.
        targets: With a present verdict all places of the mode, with an item the places that
            replace it.
        sides: The annotators whose answer was chosen.
        said: The answers of the sides at that time, so that later changes can be found.
    """

    mode: str
    item: str
    value: VerdictValue
    targets: tuple[Target, ...]
    sides: tuple[str, ...]
    said: tuple[Said, ...]
    decided_by: str
    decided_at: str
    judge_seen: bool = False
    reason: str = ""

    @property
    def is_verdict(self) -> bool:
        """True if the mode's verdict was decided, and not a single item."""
        return self.item == self.mode


class Guideline(Struct, frozen=True, omit_defaults=True):
    """An agreement about a mode in general, as an adjudicator wrote it.

    ``trace_id`` and ``item`` name the decision that was its occasion, None if there was none.
    ``written_at`` is ISO 8601 in UTC.
    """

    id: str
    mode: str
    text: str
    written_by: str
    written_at: str
    trace_id: str | None = None
    item: str | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """An open question.

    Attributes:
        id: The ``item`` of a decision on it.
        said: The answers of all sides with a verdict; for a place, of all sides that marked any
            place. A side that did not mark this place has no targets.
        where: The place to look at first.
    """

    id: str
    kind: ConflictKind
    mode: str
    said: tuple[Said, ...]
    labels: tuple[Label, ...]
    where: Target | None


@dataclass(frozen=True, slots=True)
class GoldVerdict:
    """The verdict on one mode, its source, and the verdict of each side.

    Attributes:
        value: The verdict, None while it is unresolved.
        judge_seen: True if a side with a verdict, or the adjudicator, saw a judge's answer.
        changed: True if a side has changed its answer since the decision.
    """

    mode: str
    value: VerdictValue | None
    source: Resolution
    sides: Mapping[str, VerdictValue | None]
    judge_seen: bool = False
    decided_by: str | None = None
    decided_at: str | None = None
    reason: str = ""
    changed: bool = False


@dataclass(frozen=True, slots=True)
class GoldLabel:
    """One place where a mode shows, with the labels from which it follows.

    Attributes:
        merged: True if the target covers different targets of labels.
        labels: The ids of the labels.
        notes: Pairs of annotator and note.
        severity: The severity, if all annotators who gave one agree.
        severity_source: ``unanimous`` if all annotators of the place gave the severity,
            ``majority`` if several did, ``single`` if one did.
        changed: True if a side has changed its answer since the decision.
    """

    mode: str
    target: Target
    source: Resolution
    merged: bool = False
    labels: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    severity: Severity | None = None
    severity_source: Resolution | None = None
    judge_seen: bool = False
    decided_by: str | None = None
    decided_at: str | None = None
    reason: str = ""
    changed: bool = False


@dataclass(frozen=True, slots=True)
class GoldTrace:
    """Gold of one trace: a verdict per mode, the resolved labels, and the open conflicts."""

    verdicts: tuple[GoldVerdict, ...]
    labels: tuple[GoldLabel, ...]
    conflicts: tuple[Conflict, ...]

    def verdict(self, mode: str) -> GoldVerdict:
        """Return the verdict on a mode.

        Raises:
            KeyError: The gold does not have the mode.
        """
        for verdict in self.verdicts:
            if verdict.mode == mode:
                return verdict
        raise KeyError(mode)

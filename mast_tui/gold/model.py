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

    ``item`` is the mode's slug for its verdict, else the id of the item (``item_id``).
    ``targets`` are the places chosen, all of them where the value is present: with a verdict those
    of the mode, with an item what stands in its stead. On an item any other value means that the
    place is not taken. ``sides`` are the annotators whose word was taken, and ``said`` is what the
    sides had said by then, so that later changes can be told.
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

    ``trace_id`` and ``item`` name the decision that gave occasion to it, both None for none.
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
    """An open question. ``id`` is the ``item`` of a decision on it.

    ``said`` holds every side with a verdict, or for a place every side that named places; one
    that did not mark this place has no targets. ``where`` is the place to look at first.
    """

    id: str
    kind: ConflictKind
    mode: str
    said: tuple[Said, ...]
    labels: tuple[Label, ...]
    where: Target | None


@dataclass(frozen=True, slots=True)
class GoldVerdict:
    """The verdict on one mode, how it came about, and what each side said.

    ``value`` is None while it is unresolved. ``judge_seen`` is whether a side with a verdict, or
    the decision, had a judge on screen; ``changed`` whether a side has said something else since
    the decision.
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
    """One place where a mode shows, and whose labels stand behind it.

    ``merged`` says that the target covers different ones. ``labels`` are ids, ``notes`` pairs of
    annotator and note; ``severity`` is what all who gave one agree on. ``severity_source`` is
    ``unanimous`` where all annotators of the place gave it, ``majority`` where several did and
    others left it open, and ``single`` where one did.
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
    """Gold of one trace: a verdict per mode, the settled labels, and what is left to decide."""

    verdicts: tuple[GoldVerdict, ...]
    labels: tuple[GoldLabel, ...]
    conflicts: tuple[Conflict, ...]

    def verdict(self, mode: str) -> GoldVerdict:
        """Return the verdict on a mode; raises ``KeyError`` for one that was not asked about."""
        for verdict in self.verdicts:
            if verdict.mode == mode:
                return verdict
        raise KeyError(mode)

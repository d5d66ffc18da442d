"""What a session shows: suggestions, and what a command has done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mast_tui.labels import Doubt, Evidence, Label, Target


class Keep(Enum):
    """Stands for a value that stays as it is, where None means something."""

    KEEP = "keep"


KEEP = Keep.KEEP


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A judge's label, for a person to answer.

    ``judge`` is the judge's name as an annotator, ``mode`` a slug, ``rationale`` the judge's
    reason; ``confidence`` lies in [0, 1] and is None where the judge gave none. ``decisive`` is
    whether it holds that the failure decided the outcome, None where it said nothing.
    """

    id: str
    judge: str
    mode: str
    target: Target
    rationale: str
    confidence: float | None
    evidence: Evidence | None = None
    decisive: bool | None = None

    @classmethod
    def of(cls, label: Label) -> Suggestion:
        """The suggestion that a judge's label is."""
        return cls(
            label.id,
            label.annotator,
            label.mode,
            label.target,
            label.note,
            label.confidence,
            label.evidence,
            label.decisive,
        )

    @property
    def doubt(self) -> Doubt:
        """Whether the words that it rests on, if any, may be made up."""
        return Doubt.NONE if self.evidence is None else self.evidence.doubt

    @property
    def evidence_key(self) -> str | None:
        """The span to look at first: where the quoted words stand, else the first of the range.

        Where they were not found it is the span in which the judge saw them, if there is such.
        """
        key = None if self.evidence is None else self.evidence.key
        return self.target.first if key is None else key

    @property
    def quote_offsets(self) -> tuple[int, int] | None:
        """Where in the text of that span the quoted words stand (code points, end exclusive)."""
        evidence = self.evidence
        if evidence is None or evidence.char_start is None or evidence.char_end is None:
            return None
        return evidence.char_start, evidence.char_end


@dataclass(frozen=True, slots=True)
class Change:
    """What a command has done, in words, and where to look.

    ``key`` is the span on which the cursor belongs; None where it can stay.
    """

    message: str
    mode: str | None = None
    target: Target | None = None
    key: str | None = None

"""What a judge is: something that reads a trace and suggests failure modes with evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mast_tui.labels import Match
from mast_tui.traces.model import Trace


@dataclass(frozen=True, slots=True)
class Finding:
    """One suggestion: a mode, the spans that show it, and the words that prove it.

    ``mode`` is a slug. ``first`` and ``last`` are the keys of the range's ends, both None for the
    trace as a whole. ``quote`` is verbatim in the text of the span ``evidence_key``, at the code
    points ``char_start`` to ``char_end`` (end exclusive); all four are None where nothing can be
    quoted. Where a quote that a judge gave was not found the offsets are None, and the key as
    well where it named no span that exists. ``match`` says how closely the quote was found,
    ``wording`` what the judge had written where that is not to the letter what stands there, and
    ``named`` which first and last span the judge had named where the quote stands elsewhere.
    ``rationale`` says why in words that a person can check, naming spans as ``#1``…;
    ``confidence`` lies in [0, 1]. ``decisive`` is whether the failure decided the outcome, None
    where the judge does not say.

    Raises:
        ValueError: the confidence is out of range, or the parts do not go together.
    """

    mode: str
    first: str | None
    last: str | None
    evidence_key: str | None
    quote: str | None
    char_start: int | None
    char_end: int | None
    rationale: str
    confidence: float
    decisive: bool | None = None
    match: Match | None = None
    named: tuple[str, str] | None = None
    wording: str | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.confidence <= 1.0:
            raise ValueError(f"a confidence lies between 0 and 1, not at {self.confidence}")
        if (self.first is None) != (self.last is None):
            raise ValueError("a range has both a first and a last span, or neither")
        if self.quote is None and self.evidence_key is not None:
            raise ValueError("a span is named for a quote only")
        if (self.char_start is None) != (self.char_end is None):
            raise ValueError("a quote has both a start and an end, or neither")
        if self.char_start is not None and self.evidence_key is None:
            raise ValueError("offsets without a quote and its span")


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that a judge found in one trace, in reading order.

    ``judged`` are the modes on which it came to a verdict, None for all that it looks at. Such a
    mode that has no finding here and is not in ``unsure`` is absent in its eyes; about every
    other mode it has said nothing.
    """

    findings: tuple[Finding, ...] = ()
    unsure: tuple[str, ...] = ()
    judged: tuple[str, ...] | None = None


class Judge(Protocol):
    """Reads traces and suggests failure modes.

    ``name`` is the annotator under which its labels are kept, such as ``judge:rules@1``; another
    version of the judge has another name. ``looks_at`` are the slugs on which it gives a
    verdict; about every other mode it says nothing.
    """

    @property
    def name(self) -> str: ...
    @property
    def looks_at(self) -> tuple[str, ...]: ...
    def judge(self, trace: Trace, /) -> Judgement:
        """Judge a trace whose index is complete (``trace.loaded.complete``).

        Raises:
            OSError: the trace's source could not be read.
        """

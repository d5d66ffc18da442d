"""What a judge is shown beforehand: places in other runs, and what people said of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mast_tui.judges.llm.prompt.redaction import Numbers, Redaction
from mast_tui.labels import VerdictValue


@dataclass(frozen=True, slots=True)
class Example:
    """A few spans of a trace, and whether a mode shows in them.

    ``trace_id`` is the trace's, for the record of the run only. ``mode`` is a slug. ``excerpt`` is
    the text of the spans, ``quote`` words of it that prove the mode (None where it is absent), and
    ``rationale`` why.
    """

    trace_id: str
    mode: str
    verdict: VerdictValue
    excerpt: str
    quote: str | None = None
    rationale: str = ""

    def redacted(self, redaction: Redaction) -> Example:
        """The same with everything in it redacted; one value has one number in all of it."""
        numbers = Numbers()
        quote = self.quote
        return replace(
            self,
            excerpt=redaction.apply(self.excerpt, numbers).text,
            quote=None if quote is None else redaction.apply(quote, numbers).text,
            rationale=redaction.apply(self.rationale, numbers).text,
        )

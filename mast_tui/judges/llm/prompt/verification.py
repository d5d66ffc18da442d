"""The second look at a finding: its words, what is shown, and reading what comes back.

Whoever read a window had all modes to look for. Here one finding is put before the model with the
definition of its mode and the spans around it, and nothing else to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mast_tui.judges.llm.answer.json_object import Malformed, find_object
from mast_tui.judges.llm.answer.merging import Sample, Sighting
from mast_tui.judges.llm.answer.parsing import (
    RATIONALE_CHARS,
    as_confidence,
    as_text,
    as_verdict,
    object_schema,
    scale_of,
)
from mast_tui.judges.llm.prompt import prompt_text
from mast_tui.judges.llm.prompt.prompt_section import Section, SystemMessage, data_section
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.taxonomy_text import mode_text
from mast_tui.judges.llm.prompt.token_budget import FRAME_TOKENS, HEADER_TOKENS, task_room
from mast_tui.judges.llm.request import Request, Window
from mast_tui.labels import Finding, QuoteDoubt, VerdictValue
from mast_tui.taxonomy.model import Mode, Taxonomy

SHOWN_TOKENS: Final = 3_000
"""The most of a trace that is shown around a finding."""

MODE_TOKENS: Final = 900
"""About what the finding and the definition of its mode take."""

LEAST_SHOWN: Final = 300
"""With less a finding cannot be looked at."""

MOST_OTHERS: Final = 8
"""Of so many other findings on the same spans the model is told."""

_LONG_RANGE: Final = 30
"""Of a range of more spans the place of the quote is shown, or its beginning."""

_WORDS_CHARS: Final = 600

ROLE: Final = """\
A reader of the record of a run of an AI agent, or of several agents that work together, says that \
one failure mode shows in certain spans. You check that, by the record and the definition alone. \
Readers err in both directions: do not follow this one, and do not look for a reason to disagree."""

RULES: Final = """\
# How to check

- Look first at what the spans themselves show; then go through the definition, part by part.
- Each note on what is easily confused sets a boundary. Say which of them applies, if one does: \
where it makes this another mode, the finding does not hold.
- Where the record has other words than the quote, only those of the record count. A quote that \
stands nowhere proves nothing: then the spans must show it without.
- `holds`: the definition is met by these spans. `fails`: it is not, or a boundary note makes it \
another mode. `unsure`: what would settle it is not shown.
- Other findings on the same spans, and readers who found none of it there, are claims like this \
one. Where one occurrence would fit two modes, the boundary notes decide."""

ANSWER: Final = """\
# The answer

Answer with one JSON object and nothing else, in this form:

{"shows": "<what the spans show, with #numbers>", "definition": "<in one or two sentences, which \
part of the definition is met, or is not>", "boundary": "<the code of the mode whose boundary note \
applies, or null>", "verdict": "<holds, fails or unsure>", "confidence": "<0 to 1: how likely a \
careful person would say that the finding holds>"}"""

FINDING: Final = "finding"
OTHERS: Final = "others say"
ASKED: Final = "The mode:\n\n{mode}\n\nDoes the finding hold? Answer with the JSON object."


def all_words() -> tuple[str, ...]:
    """All that shapes the second look, for the hash."""
    return (ROLE, RULES, ANSWER, FINDING, OTHERS, ASKED, str(SHOWN_TOKENS))


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of a second look at a finding.

    ``verdict`` is present where it holds, absent where it does not. ``boundary`` is the code of the
    mode whose boundary note applies, empty for none; ``why`` says which part of the definition is
    met. ``confidence`` is that the finding holds, None where that cannot be read.
    """

    verdict: VerdictValue
    boundary: str
    why: str
    confidence: float | None

    def of(self, finding: Finding) -> Finding:
        """The finding with what the second look says of it."""
        rationale = finding.rationale
        if self.why:
            rationale = f"{rationale} On a second look: {self.why}".strip()[:RATIONALE_CHARS]
        confidence = finding.confidence if self.confidence is None else self.confidence
        return replace(finding, rationale=rationale, confidence=confidence)


SCHEMA: Final = object_schema(
    shows={"type": "string"},
    definition={"type": "string"},
    boundary={"type": ["string", "null"]},
    verdict={"type": "string", "enum": ["holds", "fails", "unsure"]},
    confidence={"type": "number"},
)


class VerificationPrompt:
    """All that is asked whatever the finding: how to check, and each mode with its boundaries."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self.system = SystemMessage(
            ROLE, RULES, prompt_text.DATA_RULES, prompt_text.HEADERS, ANSWER
        )

    def request(
        self, view: RedactedView, seen: Sighting, samples: Sequence[Sample], shown: int
    ) -> Request:
        """Ask whether a finding holds.

        Args:
            view: The trace as it is sent.
            seen: The finding, with its quote looked for.
            samples: All that was said of the trace, of which what is about the same spans is told.
            shown: About the most that the data may take, in tokens.
        """
        finding = seen.finding
        mode = self._taxonomy.mode(finding.mode)
        window = _around(view, seen, shown)
        sections = [Section(FINDING, self._told(view, seen))]
        others = list(self._others(view, seen, samples))[:MOST_OTHERS]
        if others:
            sections.append(Section(OTHERS, "\n".join(others)))
        asked = ASKED.format(mode=mode_text(mode, self._taxonomy))
        data = data_section(view, window, "", shown, asked, sections=sections)
        return self.system.request(data, SCHEMA, view.trace_id)

    def _told(self, view: RedactedView, seen: Sighting) -> str:
        """The finding in words, with its quote as it was given and as the record has it."""
        finding = seen.finding
        lines = [f"{_code(self._taxonomy.mode(finding.mode))}, {_place(view, seen)}"]
        if finding.rationale:
            lines.append(f"because: {_line(view, view.with_numbers_sent(finding.rationale))}")
        words = finding.evidence
        if words is not None:
            lines.append(f"quote: {_line(view, words.wording or words.quote)}")
            if words.doubt is QuoteDoubt.NOT_FOUND:
                lines.append("the record has no such words")
            elif words.wording is not None:
                lines.append(f"the record has: {_line(view, words.quote)}")
        return "\n".join(lines)

    def _others(
        self, view: RedactedView, seen: Sighting, samples: Sequence[Sample]
    ) -> Iterator[str]:
        """What was said of the same spans: other modes, and that this one does not show."""
        if seen.first is None or seen.last is None:
            return
        told = set()
        for part in (part for sample in samples for part in sample):
            for other in part.sightings:
                mode = other.finding.mode
                if mode == seen.finding.mode or other.first is None or other.last is None:
                    continue
                if other.first <= seen.last and other.last >= seen.first and mode not in told:
                    told.add(mode)
                    said = _line(view, view.with_numbers_sent(other.finding.rationale))
                    yield f"{_code(self._taxonomy.mode(mode))}, {_place(view, other)}: {said}"
            shown = part.window.first <= seen.first and part.window.last >= seen.last
            if shown and part.verdicts.get(seen.finding.mode) is VerdictValue.ABSENT:
                spans = view.named(part.window.first, part.window.last)
                yield f"a reader of {spans} found none of this mode there"


def parse_verification(text: str, view: RedactedView) -> Verification:
    """Read what came of a second look.

    Args:
        text: The answer, with whatever stands around its JSON.
        view: The trace as it was sent.

    Raises:
        Malformed: It cannot be read from the text, in words.
    """
    found = find_object(text, lambda value: "verdict" in value, content="verdict").value
    verdict = as_verdict(found.get("verdict"))
    if verdict is None:
        raise Malformed("the verdict is neither holds, fails nor unsure")
    confidence = found.get("confidence")
    boundary = as_text(found.get("boundary")).strip()
    return Verification(
        verdict,
        "" if boundary.casefold() in ("null", "none") else boundary[:80],
        view.with_own_numbers(as_text(found.get("definition")).strip())[:RATIONALE_CHARS],
        as_confidence(confidence, scale_of([confidence])),
    )


def by_doubt(seen: Sighting) -> int:
    """Sorts findings for the second look: altered quotes first, then such that stand nowhere."""
    words = seen.finding.evidence
    doubt = QuoteDoubt.NONE if words is None else words.doubt
    return (QuoteDoubt.ALTERED, QuoteDoubt.NOT_FOUND, QuoteDoubt.NONE).index(doubt)


def _around(view: RedactedView, seen: Sighting, shown: int) -> Window:
    """The spans that are shown: those of the finding, and as many on both sides as there is room.

    Of a long range it is the place of the quote, of a finding on the whole run its end.
    """
    end = len(view) - 1
    first, last = seen.first, seen.last
    if first is None or last is None or last - first >= _LONG_RANGE:
        place = seen.span if seen.span is not None else first
        first = last = end if place is None else place
    room = shown - FRAME_TOKENS - task_room(shown)

    def cost(index: int) -> int:
        return HEADER_TOKENS + min(view.tokens[index], room // 4)

    room -= sum(cost(index) for index in range(first, last + 1))
    sides = [(first, -1), (last, 1)]
    while sides:
        at, step = sides.pop(0)
        at += step
        if not 0 <= at <= end or cost(at) > room:
            continue
        room -= cost(at)
        first, last = min(first, at), max(last, at)
        sides.append((at, step))
    return Window(first, last, last == end, (seen.finding.mode,), shown)


def _place(view: RedactedView, seen: Sighting) -> str:
    if seen.first is None or seen.last is None:
        return "the run as a whole"
    return view.named(seen.first, seen.last)


def _code(mode: Mode) -> str:
    return f"{mode.code} {mode.name}"


def _line(view: RedactedView, words: str) -> str:
    """Foreign words on one line, redacted: what stands in the trace may hold what was taken out."""
    return view.redacted(words)[:_WORDS_CHARS]

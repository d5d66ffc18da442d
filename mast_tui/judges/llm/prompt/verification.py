"""The verification of a finding: its prompt, the spans that it shows, and the parser of its answer.

A verification asks the model about one finding, with the definition of its mode.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from msgspec.structs import replace

from mast_tui.judges.llm.answer.merging import Sample, Sighting
from mast_tui.judges.llm.answer.parsing import (
    RATIONALE_CHARS,
    Malformed,
    as_confidence,
    as_text,
    as_verdict,
    find_object,
    object_schema,
    scale_of,
)
from mast_tui.judges.llm.prompt import prompt_text
from mast_tui.judges.llm.prompt.prompt_section import Section, SystemMessage, data_section
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.taxonomy_text import NO_GUIDELINES, Guidelines, mode_text
from mast_tui.judges.llm.prompt.tokens import FRAME_TOKENS, HEADER_TOKENS, task_room
from mast_tui.judges.llm.request import Request, Window
from mast_tui.labels import Finding, QuoteDoubt, VerdictValue
from mast_tui.taxonomy.model import Mode, Taxonomy

SHOWN_TOKENS: Final = 3_000
"""The token limit of the spans around a finding."""

MODE_TOKENS: Final = 900
"""The approximate tokens of the finding and the definition of its mode."""

LEAST_SHOWN: Final = 300
"""The fewest tokens of spans that a verification needs."""

MOST_OTHERS: Final = 8
"""The most other claims on the same spans in a request."""

_LONG_RANGE: Final = 30
"""The most spans of a range that is shown completely. One span stands for a longer range."""

_SENTENCE_CHARS: Final = 600

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


def all_texts() -> tuple[str, ...]:
    """Return all texts of the verification, for the hash of the prompt."""
    return (ROLE, RULES, ANSWER, FINDING, OTHERS, ASKED, str(SHOWN_TOKENS))


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification.

    Attributes:
        verdict: Present if the finding holds, absent if it does not.
        reason: The part of the definition that is met or missed.
        confidence: The probability that the finding holds; None if the answer has no valid number.
    """

    verdict: VerdictValue
    reason: str
    confidence: float | None

    def apply(self, finding: Finding) -> Finding:
        """Return the finding with the reason and confidence of the verification."""
        rationale = finding.rationale
        if self.reason:
            rationale = f"{rationale} On a second look: {self.reason}".strip()[:RATIONALE_CHARS]
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
    """The prompt of verifications: the instructions, and the question about a finding."""

    def __init__(self, taxonomy: Taxonomy, guidelines: Guidelines = NO_GUIDELINES) -> None:
        self._taxonomy = taxonomy
        self._guidelines = guidelines
        self.system = SystemMessage(
            ROLE, RULES, prompt_text.DATA_RULES, prompt_text.HEADERS, ANSWER
        )

    def request(
        self,
        view: RedactedView,
        sighting: Sighting,
        samples: Sequence[Sample],
        shown_tokens: int,
        story: str = "",
    ) -> Request:
        """Make the request that asks whether a finding holds.

        Args:
            view: The trace as it is sent.
            sighting: The finding, with the indices of its spans.
            samples: The answers on the trace, which may have other claims on the same spans.
            shown_tokens: The approximate token limit of the data.
            story: The story of a run with several windows, otherwise empty.
        """
        finding = sighting.finding
        mode = self._taxonomy.mode(finding.mode)
        window = _window_around(view, sighting, shown_tokens)
        sections = [Section(FINDING, self._finding_text(view, sighting))]
        claims = list(islice(self._claim_lines(view, sighting, samples), MOST_OTHERS))
        if claims:
            sections.append(Section(OTHERS, "\n".join(claims)))
        question = ASKED.format(mode=mode_text(mode, self._taxonomy, self._guidelines))
        data = data_section(view, window, story, shown_tokens, question, sections=sections)
        return self.system.request(data, SCHEMA, view.trace_id)

    def _finding_text(self, view: RedactedView, sighting: Sighting) -> str:
        """Return the text on a finding: mode, spans, reason and quote."""
        finding = sighting.finding
        lines = [f"{_full_name(self._taxonomy.mode(finding.mode))}, {_range_name(view, sighting)}"]
        if finding.rationale:
            lines.append(
                f"because: {_redacted_line(view, view.with_numbers_sent(finding.rationale))}"
            )
        evidence = finding.evidence
        if evidence is not None:
            lines.append(f"quote: {_redacted_line(view, evidence.wording or evidence.quote)}")
            if evidence.doubt is QuoteDoubt.NOT_FOUND:
                lines.append("the record has no such words")
            elif evidence.wording is not None:
                lines.append(f"the record has: {_redacted_line(view, evidence.quote)}")
        return "\n".join(lines)

    def _claim_lines(
        self, view: RedactedView, sighting: Sighting, samples: Sequence[Sample]
    ) -> Iterator[str]:
        """Yield a line for each other claim on the spans of a finding.

        A claim is the first finding of another mode on these spans, or an answer that the mode is
        absent from a window with these spans. A finding on the whole trace has no other claims.
        """
        if sighting.first is None or sighting.last is None:
            return
        claimed_modes = {sighting.finding.mode}
        for answer in chain.from_iterable(samples):
            for other in answer.sightings:
                mode = other.finding.mode
                if mode in claimed_modes or other.first is None or other.last is None:
                    continue
                if other.first <= sighting.last and other.last >= sighting.first:
                    claimed_modes.add(mode)
                    rationale = _redacted_line(
                        view, view.with_numbers_sent(other.finding.rationale)
                    )
                    name = _full_name(self._taxonomy.mode(mode))
                    yield f"{name}, {_range_name(view, other)}: {rationale}"
            window = answer.window
            is_shown = window.first <= sighting.first and window.last >= sighting.last
            if is_shown and answer.verdicts.get(sighting.finding.mode) is VerdictValue.ABSENT:
                spans = view.range_name(window.first, window.last)
                yield f"a reader of {spans} found none of this mode there"


def parse_verification(text: str, view: RedactedView) -> Verification:
    """Read the answer of a verification.

    Args:
        text: The answer, with any text around its JSON.
        view: The trace as it was sent.

    Raises:
        Malformed: The text holds no answer; the message says why.
    """
    fields = find_object(text, lambda value: "verdict" in value, content="verdict").value
    verdict = as_verdict(fields.get("verdict"))
    if verdict is None:
        raise Malformed("the verdict is neither holds, fails nor unsure")
    confidence = fields.get("confidence")
    # The field names the part of the definition that is met or missed.
    reason = view.with_timeline_numbers(as_text(fields.get("definition")).strip())
    return Verification(
        verdict, reason[:RATIONALE_CHARS], as_confidence(confidence, scale_of([confidence]))
    )


def by_doubt(sighting: Sighting) -> int:
    """Return a sort key: altered quotes come first, then quotes that were not found."""
    evidence = sighting.finding.evidence
    doubt = QuoteDoubt.NONE if evidence is None else evidence.doubt
    return (QuoteDoubt.ALTERED, QuoteDoubt.NOT_FOUND, QuoteDoubt.NONE).index(doubt)


def _window_around(view: RedactedView, sighting: Sighting, shown_tokens: int) -> Window:
    """Return the spans of a finding, with as many spans on both sides as fit.

    One span stands for a long range or a whole run: the span of the quote, or else the first or
    last span.
    """
    end = len(view) - 1
    first = sighting.first
    last = sighting.last
    if first is None or last is None or last - first >= _LONG_RANGE:
        centre = first if sighting.quoted_span is None else sighting.quoted_span
        if centre is None:
            centre = end
        first = centre
        last = centre
    room = shown_tokens - FRAME_TOKENS - task_room(shown_tokens)

    def cost(index: int) -> int:
        """Return the tokens of a span, whose text may use a quarter of the remaining room."""
        return HEADER_TOKENS + min(view.tokens[index], room // 4)

    room -= sum(cost(index) for index in range(first, last + 1))
    # Each edge that may still move, and its direction.
    edges = deque([(first, -1), (last, 1)])
    while edges:
        edge, direction = edges.popleft()
        index = edge + direction
        if not 0 <= index <= end or cost(index) > room:
            continue
        room -= cost(index)
        first = min(first, index)
        last = max(last, index)
        edges.append((index, direction))
    return Window(
        first, last, final=last == end, modes=(sighting.finding.mode,), tokens=shown_tokens
    )


def _range_name(view: RedactedView, sighting: Sighting) -> str:
    if sighting.first is None or sighting.last is None:
        return "the run as a whole"
    return view.range_name(sighting.first, sighting.last)


def _full_name(mode: Mode) -> str:
    return f"{mode.code} {mode.name}"


def _redacted_line(view: RedactedView, text: str) -> str:
    """Redact a quote or rationale, because it may repeat a secret of the trace, and shorten it."""
    return view.redacted(text)[:_SENTENCE_CHARS]

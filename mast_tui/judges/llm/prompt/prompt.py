"""The prompt: requests on the windows of a trace, and the messages to send."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from mast_tui.judges.llm.answer.parsing import SMALL_ANSWER, Answer, answer_schema, parse_answer
from mast_tui.judges.llm.prompt import decisive, prompt_text, story, verification
from mast_tui.judges.llm.prompt.prompt_section import (
    ARTEFACTS,
    ARTEFACTS_LABEL,
    Section,
    SystemMessage,
    artefacts_text,
    asked_about,
    data_section,
)
from mast_tui.judges.llm.prompt.redacted_view import RedactedView, sendable
from mast_tui.judges.llm.prompt.taxonomy_text import (
    NO_GUIDELINES,
    Guidelines,
    reordered,
    taxonomy_text,
)
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.request import Correction, Fact, Parameters, Request, Window
from mast_tui.labels import VerdictValue
from mast_tui.redaction.engine import Redaction, SecretNumbers
from mast_tui.taxonomy.model import Taxonomy

BOUNDARY_BYTES: Final = 4
"""The bytes of a boundary. They are random, so the author of a trace cannot guess them."""

MOST_REPEATED: Final = 2_000
"""The most code points of an unusable answer that the model is sent again."""

# The number of starts after which the boundary becomes one digit longer.
_STARTS_OF_WIDTH: Final = 16


@dataclass(frozen=True, slots=True)
class Example:
    """Some spans of a trace with the verdict on a mode in them.

    Attributes:
        trace_id: The id of the trace, which is not sent.
        mode: The slug of the mode.
        verdict: The verdict on the mode.
        excerpt: The text of the spans.
        quote: The words of the excerpt that prove the mode; None if the mode is absent.
        rationale: The reason of the verdict.
    """

    trace_id: str
    mode: str
    verdict: VerdictValue
    excerpt: str
    quote: str | None = None
    rationale: str = ""

    def redacted(self, redaction: Redaction) -> Example:
        """Return the example with redacted texts; equal secrets get equal numbers."""
        numbers = SecretNumbers()
        quote = self.quote
        return replace(
            self,
            excerpt=redaction.apply(self.excerpt, numbers).text,
            quote=None if quote is None else redaction.apply(quote, numbers).text,
            rationale=redaction.apply(self.rationale, numbers).text,
        )


class Prompt:
    """The part of the prompt for all traces: taxonomy, guidelines, instructions, examples.

    Args:
        taxonomy: The taxonomy of the modes.
        parameters: The model and its settings.
        examples: The examples.
        guidelines: The guidelines of the team.
        extra: Further settings to include in the hash.
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        parameters: Parameters,
        examples: Sequence[Example] = (),
        guidelines: Guidelines = NO_GUIDELINES,
        *,
        extra: str = "",
    ) -> None:
        self._parameters = parameters
        self.taxonomy = taxonomy
        ordered = reordered(taxonomy, parameters.mode_order) if parameters.mode_order else taxonomy
        self._codes = {mode.slug: mode.code for mode in ordered.modes}
        self.modes = tuple(self._codes)
        """The slugs of all modes, in the order of the prompt."""
        # A mode of the stage ``post`` alone is judged at the end of the run. The decisive step may
        # be in any window and may show any mode.
        self.window_modes = tuple(
            mode.slug
            for mode in ordered.modes
            if parameters.decisive or "post" not in mode.stages or "pre" in mode.stages
        )
        """The modes that are judged on every window. Other modes are judged on the last window
        only."""
        self.verification = verification.VerificationPrompt(taxonomy, guidelines)
        self.story = story.StoryPrompt()
        if parameters.decisive:
            self.system = _decisive_system_message(ordered, guidelines, parameters)
        else:
            self.system = _system_message(ordered, examples, guidelines, parameters)
        self.hash = self._settings_hash(extra)
        """Eight hex digits that identify all settings that change answers, except the model."""

    def request(
        self,
        view: RedactedView,
        window: Window,
        run_story: str,
        *,
        sample: int = 0,
        facts: Sequence[Fact] = (),
    ) -> Request:
        """Make the request on a window.

        Args:
            view: The trace as it is sent.
            window: The window.
            run_story: The story of the whole run, or an empty text.
            sample: The number of the sample.
            facts: The findings of rules in the trace.
        """
        codes = [self._codes[slug] for slug in window.modes]
        budget = window.tokens or self._parameters.window_tokens
        window_facts = [
            (self._codes[fact.mode], fact)
            for fact in facts
            if fact.mode in window.modes and fact.first <= window.last and fact.last >= window.first
        ]
        if self._parameters.decisive:
            question = decisive.question_text(view, window)
            schema = decisive.schema(codes)
        else:
            question = asked_about(codes)
            tokens = self._parameters.answer_tokens
            schema = answer_schema(codes, tokens=tokens)
        sections: tuple[Section, ...] = ()
        if self._parameters.artefacts and window.final:
            text = artefacts_text(view, budget)
            budget -= estimate(text)
            sections = (Section(ARTEFACTS_LABEL, text),) if text else ()
        data = data_section(
            view, window, run_story, budget, question, facts=window_facts, sections=sections
        )
        return self.system.request(data, schema, view.trace_id, sample)

    def read(self, text: str, view: RedactedView, window: Window) -> Answer:
        """Read the answer of a model on a window.

        Args:
            text: The answer.
            view: The trace as it was sent.
            window: The window.

        Raises:
            Malformed: The text holds no answer; the message says why.
        """
        if self._parameters.decisive:
            return decisive.parse_decisive(text, self.taxonomy, window, view)
        return parse_answer(text, self.taxonomy, window, view)

    def answer_key(self, request: Request, answer_tokens: int) -> str:
        """Return the key of a stored answer: a SHA-256 of everything that the answer depends on.

        Args:
            request: The request.
            answer_tokens: The token limit of the answer.
        """
        temperature = self._parameters.temperature
        parts = (
            request.fingerprint,
            self._parameters.model,
            "" if temperature is None else repr(float(temperature)),
            str(answer_tokens),
            self.taxonomy.content_hash,
            self.hash,
        )
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def _settings_hash(self, extra: str) -> str:
        """Return a hash of all texts and settings that change answers, except the model.

        A newer setting is left out at its default value, so that earlier hashes stay the same.
        """
        parameters = self._parameters
        parts = [
            prompt_text.all_texts(),
            self.taxonomy.content_hash,
            *self.system.pieces,
            repr(parameters.temperature),
            str(parameters.samples),
            str(parameters.window_tokens),
            extra,
            *(["short answers"] if parameters.answer_tokens < SMALL_ANSWER else []),
            *([f"hints {parameters.hints}"] if parameters.hints else []),
            *([ARTEFACTS, ARTEFACTS_LABEL] if parameters.artefacts else []),
            *([f"from #{parameters.first_number}"] if parameters.first_number > 1 else []),
            # These texts always count, because findings may be verified without the setting
            # ``verify``.
            *verification.all_texts(),
            *(["verify"] if parameters.verify else []),
            *story.all_texts(),
            *((parameters.decisive, *decisive.all_texts()) if parameters.decisive else ()),
            *(f"{name} {json.dumps(value)}" for name, value in parameters.extra_body),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


def boundary_of(request: Request, secret: bytes) -> str:
    """Return the boundary of a request: hex digits that occur in none of its pieces.

    Requests on one trace have the same boundary in nearly all cases.

    Args:
        request: The request.
        secret: Random bytes of the run, which the author of the trace cannot know.
    """
    pieces = (*request.system, *request.user)
    digits = hmac.digest(secret, request.about.encode("utf-8", "surrogatepass"), "sha256").hex()
    width = 2 * BOUNDARY_BYTES
    for start in range(len(digits) - width):
        # The boundary grows with ``start``, because fewer texts contain a longer one.
        boundary = digits[start : start + width + start // _STARTS_OF_WIDTH]
        if not any(boundary in piece for piece in pieces):
            return boundary
    return boundary_of(request, hashlib.sha256(secret).digest())


def messages(
    request: Request, secret: bytes, correction: Correction | None = None
) -> list[dict[str, str]]:
    """Return the messages of the chat API, with the boundary between the pieces.

    Args:
        request: The request.
        secret: Random bytes of the run, from which the boundary is made.
        correction: The previous unusable answer and its problem, if there is one.
    """
    boundary = boundary_of(request, secret)
    chat = [
        {"role": "system", "content": sendable(boundary.join(request.system))},
        {"role": "user", "content": sendable(boundary.join(request.user))},
    ]
    if correction is not None:
        chat += [
            {"role": "assistant", "content": sendable(correction.answer[:MOST_REPEATED])},
            {"role": "user", "content": prompt_text.ONCE_MORE.format(problem=correction.problem)},
        ]
    return chat


def _system_message(
    taxonomy: Taxonomy,
    examples: Sequence[Example],
    guidelines: Guidelines,
    parameters: Parameters,
) -> SystemMessage:
    """Return the instructions for verdicts on all modes, with examples if there are any."""
    sections = [
        prompt_text.ROLE,
        prompt_text.RULES,
        prompt_text.DATA_RULES,
        _header_rules(parameters),
        f"# The failure modes: {taxonomy.name}",
        taxonomy_text(taxonomy, guidelines),
    ]
    if examples:
        lines = (_example_line(example, taxonomy) for example in examples)
        sections.append("\n".join((prompt_text.EXAMPLES, "", *lines)))
    answer = prompt_text.ANSWER.replace("FORM", _answer_form(taxonomy))
    return SystemMessage(*sections, answer)


def _header_rules(parameters: Parameters) -> str:
    if parameters.artefacts:
        return f"{prompt_text.HEADERS}\n{ARTEFACTS}"
    return prompt_text.HEADERS


def _decisive_system_message(
    taxonomy: Taxonomy, guidelines: Guidelines, parameters: Parameters
) -> SystemMessage:
    """Return the instructions for the search of the decisive step."""
    return SystemMessage(
        decisive.ROLE,
        f"{decisive.RULES}\n{decisive.QUOTING}",
        prompt_text.DATA_RULES,
        _header_rules(parameters),
        f"# The failure modes: {taxonomy.name}",
        taxonomy_text(taxonomy, guidelines),
        decisive.ANSWER,
    )


def _answer_form(taxonomy: Taxonomy) -> str:
    """Return a sample answer as JSON: placeholders for a present and an absent mode."""
    finding = {
        "rationale": "<why, with #numbers>",
        "quote": "<words of one span>",
        "first": "<number>",
        "last": "<number>",
        "confidence": "<0 to 1>",
        "decisive": "<true, false or null>",
    }
    verdicts: tuple[tuple[str, list[object]], ...] = (("present", [finding]), ("absent", []))
    modes = {
        mode.code: {"notes": "<what comes into question>", "findings": findings, "verdict": verdict}
        # Two modes are enough to show the form.
        for mode, (verdict, findings) in zip(taxonomy.modes, verdicts, strict=False)
    }
    return json.dumps({"modes": modes}, ensure_ascii=False)


def _example_line(example: Example, taxonomy: Taxonomy) -> str:
    """Write an example as one line of JSON, so that none of its text looks like an instruction."""
    fields: dict[str, object] = {
        "spans": example.excerpt,
        "mode": taxonomy.mode(example.mode).code,
        "verdict": example.verdict.value,
    }
    if example.verdict is VerdictValue.PRESENT:
        fields["quote"] = example.quote
    if example.rationale:
        fields["rationale"] = example.rationale
    return json.dumps(fields, ensure_ascii=False)

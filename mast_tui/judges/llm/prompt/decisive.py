"""The decisive step of a run: its prompt, and the parser of its answer.

The prompt follows A2P (abduct, act, predict; West et al., 2025): it asks for the error, the right
step, and its consequence. Who&When (Zhang et al., 2025) describes the question step by step, which
hides the spans after the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mast_tui.judges.llm.answer.parsing import (
    CONFIDENCE_FIELDS,
    RATIONALE_CHARS,
    Answer,
    Malformed,
    as_text,
    find_mode,
    find_object,
    first_of,
    object_schema,
    read_finding,
    read_spans,
    scale_of,
)
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.request import Window
from mast_tui.labels import Finding, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy

ROLE: Final = """\
You examine the record of a run of an AI agent, or of several agents that work together, which did \
not reach its goal or fell short of it. You look for its decisive step. A person checks the place \
and the quote against the record."""

RULES: Final = """\
# The decisive step

It is the earliest step whose correction alone would have saved the run: had it been done right, \
and had everything before it stayed as it is, the run would probably have reached its goal.

- Read first what the goal was and how the run ended. Then go back from there: which steps led to \
that end, and what did each of them rest on?
- Of an error and what followed from it the error counts. An error that was noticed and mended, or \
that did not matter for the end, does not.
- A step is an agent's own: a message, a thought, a call. What a tool answers, what a user says \
and what was asked for are no steps.
- Try it: write what the step should have been instead, as little different as possible, and what \
would have followed. Where the run would have failed all the same it is not the decisive step.
- Where nothing would have to be corrected there is none; so too where the record does not tell.
- Of the failure modes below name the one whose definition the step meets. Where it meets none, \
name the one that comes closest and say so with `fits`: false."""

QUOTING: Final = """\
- `quote`: words out of the text of that step, copied character by character, short and such that \
they prove the point. Leave nothing out of it, mend nothing, add no marks."""

ANSWER: Final = """\
# The answer

Answer with one JSON object and nothing else, in this form:

{"notes": "<what went wrong at the end, and which steps come into question, with #numbers>", \
"decisive": [{"rationale": "<why it is this step, with #numbers>", "quote": "<words of the step>", \
"first": "<its number>", "agent": "<whose it is>", "correction": "<what should have been done \
instead>", "then": "<what would have followed>", "mode": "<a code>", "fits": "<true or false>", \
"confidence": "<0 to 1>"}]}

- `decisive` has one entry, or none. Its `first` is a span number as the headers give it.
- What stands in angle brackets above is put in by you."""

ASKED: Final = "Name the decisive step, if it is among these spans. Answer with the JSON object."
ASKED_STEP: Final = (
    "Is #{number} the decisive step? You cannot see what follows. If it is not, or you cannot "
    "tell, leave `decisive` empty. Answer with the JSON object."
)
NO_MODE: Final = "It meets the definition of no mode; this one comes closest."


def all_texts() -> tuple[str, ...]:
    """Return all texts of the prompt, for its hash."""
    return (ROLE, RULES, QUOTING, ANSWER, ASKED, ASKED_STEP)


def question_text(view: RedactedView, window: Window) -> str:
    """Return the question about a window, or about one step of it.

    Args:
        view: The trace as it is sent.
        window: The window.
    """
    if window.step is not None:
        return ASKED_STEP.format(number=view.number(window.step))
    return ASKED


def schema(codes: Sequence[str]) -> dict[str, object]:
    """Return the JSON schema of an answer on the decisive step, with the codes of the modes."""
    step = object_schema(
        rationale={"type": "string"},
        quote={"type": ["string", "null"]},
        first={"type": "integer"},
        agent={"type": "string"},
        correction={"type": "string"},
        then={"type": "string"},
        mode={"type": "string", "enum": list(codes)},
        fits={"type": "boolean"},
        confidence={"type": "number"},
    )
    return object_schema(
        notes={"type": "string"},
        decisive={"type": "array", "items": step, "maxItems": 1},
    )


def parse_decisive(text: str, taxonomy: Taxonomy, window: Window, view: RedactedView) -> Answer:
    """Read an answer on the decisive step.

    Args:
        text: The answer, with any text around its JSON.
        taxonomy: The taxonomy of the modes.
        window: The window of the request.
        view: The trace as it was sent.

    Returns:
        The answer, with one finding or none.

    Raises:
        Malformed: The text holds no answer; the message says why.
    """
    answer = find_object(text, lambda value: "decisive" in value, content="decisive step").value
    step = answer["decisive"]
    if isinstance(step, list):
        step = step[0] if step else None
    remarks: list[str] = []
    findings: tuple[Finding, ...] = ()
    if step is not None and step is not False:
        if not isinstance(step, Mapping):
            raise Malformed("the decisive step is no object")
        findings = (_decisive_finding(step, taxonomy, window, view, remarks),)
    verdicts = {finding.mode: VerdictValue.PRESENT for finding in findings}
    return Answer(verdicts, findings, tuple(remarks))


def _decisive_finding(
    fields: Mapping[str, object],
    taxonomy: Taxonomy,
    window: Window,
    view: RedactedView,
    remarks: list[str],
) -> Finding:
    """Read the decisive step, and add remarks on its problems.

    Raises:
        Malformed: The object lacks a known mode, an existing span or a correction.
    """
    mode = find_mode(taxonomy, fields.get("mode"))
    if mode is None:
        raise Malformed("the decisive step names no mode of the taxonomy")
    # The decisive step is one span, so a range is cut to its first span.
    spans = read_spans(fields, view, remarks.append)[:1]
    if not spans:
        raise Malformed("the decisive step names no span that exists")
    if window.step is not None and spans != [window.step]:
        remarks.append(f"asked about #{window.step + 1} it named another step, #{spans[0] + 1}")
    remedy = _full_sentence(view, fields.get("correction"))
    if not remedy:
        raise Malformed("the decisive step has no correction")
    consequence = _full_sentence(view, fields.get("then"))
    if consequence:
        remedy = f"{remedy} Then: {consequence}"
    agent = view.span(spans[0]).agent
    answered_agent = as_text(fields.get("agent")).strip()
    if agent and answered_agent and agent.casefold() not in answered_agent.casefold():
        remarks.append(
            f"the decisive step is called {one_line(answered_agent, 40)}'s, "
            f"and is {one_line(agent, 40)}'s"
        )
    scale = scale_of([first_of(fields, CONFIDENCE_FIELDS)])
    finding = read_finding(fields, mode, spans, view, scale, remarks.append)
    rationale = finding.rationale
    if fields.get("fits") is False:
        rationale = f"{rationale} {NO_MODE}".strip()[:RATIONALE_CHARS]
    return replace(finding, rationale=rationale, decisive=True, remedy=remedy[:RATIONALE_CHARS])


def _full_sentence(view: RedactedView, value: object) -> str:
    """Return a text of the answer on one line, with a full stop and the timeline's span numbers."""
    text = " ".join(view.with_timeline_numbers(as_text(value)).split())
    if not text or text[-1] in ".!?…":
        return text
    return f"{text}."

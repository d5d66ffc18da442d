"""Rules on mode 2.2 Fail to ask for clarification: values and inputs that an agent makes up.

Values of calls count if they cannot be derived: identifiers, addresses, account numbers and
placeholders. Messages count if the agent continues as if it had an input that it lacks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import orjson

from mast_tui.judges.rules.speech import Saying, any_of, last_sentence
from mast_tui.judges.rules.walk import Call, Quote, RuleStep, Walk
from mast_tui.labels import Finding
from mast_tui.traces.model import SpanKind

MODE: Final = "fail_to_ask_for_clarification"

_ASKED_FOR: Final = re.compile(
    r"(?:\A|_)(?:e?mail|phone|zip(?:_?code)?|postcode|user|customer|order|account|reservation"
    r"|booking|payment|card|passport|member|ticket|invoice|username|password|api_?key|token)"
    r"(?:_(?:id|number|address|method(?:_id)?|code))?\Z",
    re.IGNORECASE,
)
"""Names of arguments with values that the agent cannot know by itself."""

_IDENTIFIER: Final = re.compile(
    r"[^@\s]+@[^@\s]+\.\w+|(?=\S*\d\S*\d\S*\d)[#A-Za-z]?[\w+-]{3,40}|[+(]?\d[\d() -]{5,20}"
)
_PLACEHOLDER: Final = re.compile(
    r"<[^<>]{2,40}>|\[[A-Z][A-Z_ ]{2,40}\]|your[_ -]\w[\w -]{1,30}|x{3,}|to be determined|tbd"
    r"|placeholder\w*|[\w.+-]+@example\.(?:com|org)|(?:john|jane)[._ ]?doe\S*|123-?456-?7890"
    r"|1234567890|example[_ -]\w+",
    re.IGNORECASE,
)
_SHORTEST_VALUE: Final = 3
_LONGEST_VALUE: Final = 60

_HAVING: Final = (
    "(?:have|had|has|get|got|obtained|downloaded|retrieved|collected|accessed|extracted|found)"
)
_INPUT: Final = (
    "(?:data|dataset|values?|numbers?|figures?|results?|outputs?|inputs?|prices?|paths?|files?"
    "|pdf|documents?|columns?|formats?|content|text|responses?|information)"
)
_ASSUMED: Final = any_of(
    rf"assum(?:e|ing)(?: that)? (?:we|I|you)(?:'ve| already| now)* (?:{_HAVING})",
    rf"assum(?:e|ing)(?: that)? (?:the|this|our) (?:\w+ )?{_INPUT}",
    rf"simulat(?:e|ing) (?:the |some |a )?(?:\w+ ){{0,4}}{_INPUT}",
    # Without such a word before it, 'placeholder text' describes what the agent has read.
    rf"(?:the|use|using|create|generate|make up)(?: an?| some)? (?:hypothetical|placeholder|dummy"
    rf"|mock|fictional|made-up|simulated|fake) {_INPUT}",
    r"(?:some|use|using) (?:sample|example) (?:data|dataset|values?|numbers?)",
)
_LOOKED_UP: Final = any_of(
    r"(?:here (?:is|are)|(?:the )?following (?:is|are|were))(?:[^.:\n]{0,60}) "
    r"(?:data|figures|prices?|values|numbers|records|statistics|populations?|sales)",
    r"(?:data|figures|prices?|values|numbers|records|statistics|populations?|sales)"
    r"(?:[^.:\n]{0,40}) (?:retrieved|obtained|sourced|gathered|collected|taken) (?:from|via)",
)
_FIGURE: Final = re.compile(r"(?<![\w.,/#-])\d(?:[\d,]*\d){3,}(?:\.\d+)?(?![\w/-])")
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d\d")
"""Years need no source, unlike other numbers of four or more digits."""

_HYPOTHESIS: Final = any_of(
    r"if|suppose|(?:do|did|should|must|can|could)(?: not|n't) assume|cannot assume|never assume"
    r"|instead of|rather than|not",
)
"""Words that make an assumption a hypothesis, or reject it."""


def find(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each value in a call that no earlier step contains.

    Only placeholders and values that an agent cannot know by itself are checked. The agent's own
    messages and calls are no source.
    """
    first_uses: dict[str, tuple[Call, str, str]] = {}
    for call in walk.calls:
        if call.step.span.kind is SpanKind.TOOL_CALL:
            for name, value in _argument_values(call.step):
                if _needs_source(name, value):
                    first_uses.setdefault(_plain_form(value), (call, name, value))
    agent_by_value = {plain_value: call.agent for plain_value, (call, *_) in first_uses.items()}
    first_indices = _first_occurrences(walk, agent_by_value)
    for plain_value, (call, name, value) in first_uses.items():
        if first_indices.get(plain_value, call.index) < call.index:
            continue
        start = max(call.step.head.find(value), 0)
        named_value = f"“{value}” as {name}" if name else f"“{value}”"
        yield walk.finding(
            MODE,
            (call.index, call.index),
            call.step.quote(start, start + len(value)),
            f"{call.step.number} passes {named_value}; nobody has named that value before, and "
            "nobody was asked for it.",
            0.6,
        )


find_assumed: Final = Saying(
    MODE,
    _ASSUMED,
    "takes for given what it has not got, and asks nobody for it.",
    0.5,
    without=_HYPOTHESIS,
)


def find_unsourced(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each message that reports numbers as looked up without a source."""
    messages: list[tuple[RuleStep, Quote, list[str]]] = []
    for step in walk.steps:
        if not step.is_statement:
            continue
        quote = last_sentence(step, _LOOKED_UP, without=_HYPOTHESIS)
        if quote is not None:
            numbers = dict.fromkeys(match[0] for match in _FIGURE.finditer(step.own_text))
            figures = [number for number in numbers if not _YEAR.fullmatch(number)]
            messages.append((step, quote, figures))
    plain_figures = {_plain_form(figure): None for _, _, figures in messages for figure in figures}
    first_indices = _first_occurrences(walk, plain_figures)
    for step, quote, figures in messages:
        unsourced = [
            figure
            for figure in figures
            if first_indices.get(_plain_form(figure), step.index) >= step.index
        ]
        if unsourced:
            yield walk.finding(
                MODE,
                (step.index, step.index),
                quote,
                f"{step.number} gives {', '.join(unsourced[:4])} as looked up; nothing before it "
                "holds that.",
                0.6,
            )


def _first_occurrences(walk: Walk, values: Mapping[str, str | None]) -> dict[str, int]:
    """Return the index of the first step with each value.

    ``values`` maps the plain form of a value to the agent whose own messages and calls are skipped,
    or None to search all steps.
    """
    first_index: dict[str, int] = {}
    # Search for all values at once, so that each text is read once.
    pending = dict(values)
    for step in walk.steps:
        if not pending:
            break
        text = _plain_form(walk.text_of(step.index))
        is_by_agent = step.is_speech or step.span.kind is SpanKind.TOOL_CALL
        for value, agent in list(pending.items()):
            if value in text and not (is_by_agent and step.span.agent == agent):
                first_index[value] = step.index
                del pending[value]
    return first_index


def _argument_values(step: RuleStep) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a call's arguments, including nested arguments.

    An item of a list has the name of the list in the singular: ``order_id`` in ``order_ids``.
    """
    try:
        arguments = orjson.loads(step.head)
    except orjson.JSONDecodeError:
        return
    pending = [("", arguments)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list):
            pending += [(name.removesuffix("s"), item) for item in value]
        elif isinstance(value, (str, int)) and not isinstance(value, bool):
            text = str(value).strip()
            if _SHORTEST_VALUE <= len(text) <= _LONGEST_VALUE:
                yield name, text


def _needs_source(name: str, value: str) -> bool:
    """Check whether a value is a placeholder, or one that an agent cannot know by itself."""
    if _PLACEHOLDER.fullmatch(value):
        return True
    return bool(_ASKED_FOR.search(name) and _IDENTIFIER.fullmatch(value))


def _plain_form(text: str) -> str:
    """Return a text in lower case without punctuation and white space."""
    return re.sub(r"[^a-z0-9@]", "", text.lower())

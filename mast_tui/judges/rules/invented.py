"""2.2 Fail to ask for clarification: what nobody gave is made up, or taken as given, unasked.

Of values in calls only those count that cannot be worked out: identifiers, addresses, numbers of
accounts, and placeholders. A value that stands anywhere before the call was given. Of words those
by which an agent goes on as if it had what it has not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import orjson

from mast_tui.judges.rules.phrases import any_of, last_sentence
from mast_tui.judges.rules.steps import Quote, Step
from mast_tui.judges.rules.views import is_view
from mast_tui.judges.rules.walk import Call, Walk, is_output
from mast_tui.labels import Finding
from mast_tui.traces.model import SpanKind

MODE: Final = "fail_to_ask_for_clarification"

_ASKED_FOR: Final = re.compile(
    r"(?:\A|_)(?:e?mail|phone|zip(?:_?code)?|postcode|user|customer|order|account|reservation"
    r"|booking|payment|card|passport|member|ticket|invoice|username|password|api_?key|token)"
    r"(?:_(?:id|number|address|method(?:_id)?|code))?\Z",
    re.IGNORECASE,
)
"""Names of arguments whose values only somebody else can know."""

_IDENTIFIER: Final = re.compile(
    r"[^@\s]+@[^@\s]+\.\w+|(?=\S*\d\S*\d\S*\d)[#A-Za-z]?[\w+-]{3,40}|[+(]?\d[\d() -]{5,20}"
)
_PLACEHOLDER: Final = re.compile(
    r"<[^<>]{2,40}>|\[[A-Z][A-Z_ ]{2,40}\]|your[_ -]\w[\w -]{1,30}|x{3,}|to be determined|tbd"
    r"|placeholder\w*|[\w.+-]+@example\.(?:com|org)|(?:john|jane)[._ ]?doe\S*|123-?456-?7890"
    r"|1234567890|example[_ -]\w+",
    re.IGNORECASE,
)
_LONGEST: Final = 60

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
    rf"(?:hypothetical|placeholder|dummy|mock|fictional|made-up|simulated|fake) {_INPUT}",
    r"(?:some|with|use|using) (?:sample|example) (?:data|dataset|values?|numbers?)",
    hint=r"assum|simulat|hypothetical|placeholder|dummy|mock|fictional|made-up|fake|sample|example",
)
_LOOKED_UP: Final = any_of(
    r"(?:here (?:is|are)|(?:the )?following (?:is|are|were))(?:[^.:\n]{0,60}) "
    r"(?:data|figures|prices?|values|numbers|records|statistics|populations?|sales)",
    r"(?:data|figures|prices?|values|numbers|records|statistics|populations?|sales)"
    r"(?:[^.:\n]{0,40}) (?:retrieved|obtained|sourced|gathered|collected|taken) (?:from|via)",
    hint=r"here\s+(?:is|are)|following|retrieved|obtained|sourced|gathered|collected|taken",
)
_FIGURE: Final = re.compile(r"(?<![\w.,/#-])\d(?:[\d,]*\d){3,}(?:\.\d+)?(?![\w/-])")
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d\d")
"""Numbers of four digits and more; a year may come from anywhere."""

_HYPOTHESIS: Final = any_of(
    r"if|suppose|(?:do|did|should|must|can|could)(?: not|n't) assume|cannot assume|never assume"
    r"|instead of|rather than|not",
)
"""What makes of an assumption one that is weighed, or turned down."""


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest each value that first stands in a call, once.

    Words and calls of the same agent do not make a value known.
    """
    passed: dict[str, tuple[Call, str, str]] = {}
    for call in walk.calls:
        if call.step.span.kind is SpanKind.TOOL_CALL:
            for name, value in _values(call.step):
                if _must_be_given(name, value):
                    passed.setdefault(_plain(value), (call, name, value))
    told = _first_told(walk, {plain: call.agent for plain, (call, _, _) in passed.items()})
    for plain, (call, name, value) in passed.items():
        if told.get(plain, call.index) >= call.index:
            yield _finding(walk, call, name, value)


def find_assumed(walk: Walk) -> Iterator[Finding]:
    """Suggest the first message of a run that goes on as if it had what it has not."""
    for step in walk.steps:
        quote = last_sentence(step, _ASSUMED, without=_HYPOTHESIS) if step.is_message else None
        if quote is None or is_output(step) or is_view(step):
            continue
        yield walk.finding(
            MODE,
            (step.index, step.index),
            quote,
            f"{step.number} takes for given what it has not got, and asks nobody for it.",
            0.5,
        )
        return


def find_unsourced(walk: Walk) -> Iterator[Finding]:
    """Suggest messages that hand over figures as looked up which stand nowhere before."""
    given: list[tuple[Step, Quote, list[str]]] = []
    for step in walk.steps:
        if not step.is_message or is_output(step) or is_view(step):
            continue
        quote = last_sentence(step, _LOOKED_UP, without=_HYPOTHESIS)
        if quote is not None:
            told = dict.fromkeys(match[0] for match in _FIGURE.finditer(step.own_text))
            given.append((step, quote, [one for one in told if not _YEAR.fullmatch(one)]))
    wanted = {_plain(figure): None for _, _, figures in given for figure in figures}
    first = _first_told(walk, wanted)
    for step, quote, figures in given:
        unknown = [one for one in figures if first.get(_plain(one), step.index) >= step.index]
        if unknown:
            yield walk.finding(
                MODE,
                (step.index, step.index),
                quote,
                f"{step.number} gives {', '.join(unknown[:4])} as looked up; nothing before it "
                "holds that.",
                0.6,
            )


def _first_told(walk: Walk, wanted: Mapping[str, str | None]) -> dict[str, int]:
    """Where each value is told first, in whatever spelling; each text is read once.

    Args:
        walk: The run.
        wanted: By value, without signs, the agent whose own words and calls do not count.
    """
    first: dict[str, int] = {}
    open_ = dict(wanted)
    for step in walk.steps:
        if not open_:
            break
        text = _plain(walk.text_of(step.index))
        own = step.is_speech or step.span.kind is SpanKind.TOOL_CALL
        for value, agent in list(open_.items()):
            if value in text and not (own and step.span.agent == agent):
                first[value] = step.index
                del open_[value]
    return first


def _values(step: Step) -> Iterator[tuple[str, str]]:
    """The plain values of a call's arguments, by name."""
    try:
        arguments = orjson.loads(step.head)
    except orjson.JSONDecodeError:
        return
    open_ = [("", arguments)]
    while open_:
        name, value = open_.pop()
        if isinstance(value, dict):
            open_ += value.items()
        elif isinstance(value, list):
            open_ += [(name.removesuffix("s"), one) for one in value]
        elif isinstance(value, (str, int)) and not isinstance(value, bool):
            text = str(value).strip()
            if 3 <= len(text) <= _LONGEST:
                yield name, text


def _must_be_given(name: str, value: str) -> bool:
    if _PLACEHOLDER.fullmatch(value):
        return True
    return bool(_ASKED_FOR.search(name) and _IDENTIFIER.fullmatch(value))


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9@]", "", text.lower())


def _finding(walk: Walk, call: Call, name: str, value: str) -> Finding:
    at = call.step.head.find(value)
    quote = call.step.quote(max(at, 0), max(at, 0) + len(value))
    named = f"“{value}” as {name}" if name else f"“{value}”"
    return walk.finding(
        MODE,
        (call.index, call.index),
        quote,
        f"{call.step.number} passes {named}; nobody has named that value before, and nobody was "
        "asked for it.",
        0.6,
    )

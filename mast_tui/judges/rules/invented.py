"""2.2 Fail to ask for clarification: a value in a call that nobody gave, made up instead of asked.

Only values that cannot be worked out count: identifiers, addresses, numbers of accounts, and
placeholders. A value that stands anywhere before the call was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import orjson

from mast_tui.judges.rules.steps import Step
from mast_tui.judges.rules.walk import Call, Walk
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


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest each value that first stands in a call, once."""
    known: set[str] = set()
    for call in walk.calls:
        if call.step.span.kind is not SpanKind.TOOL_CALL:
            continue
        for name, value in _values(call.step):
            if value.lower() in known or not _must_be_given(name, value):
                continue
            known.add(value.lower())
            if not _was_given(walk, call, value):
                yield _finding(walk, call, name, value)


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


def _was_given(walk: Walk, call: Call, value: str) -> bool:
    """Whether somebody but this call has named the value, in whatever spelling, before it.

    Calls of other agents, and words of the same one, do not make it known.
    """
    plain = _plain(value)
    for step in walk.steps[: call.index]:
        mine = step.span.agent == call.agent and (step.says or step.span.kind is SpanKind.TOOL_CALL)
        if not mine and plain in _plain(walk.text_of(step.index)):
            return True
    return False


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

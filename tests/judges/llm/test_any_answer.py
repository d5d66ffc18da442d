"""Whatever a model writes into a field of its answer, the answer is read or is malformed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, product
from typing import Final

import pytest

from mast_tui.judges.llm.answer.json_object import Malformed
from mast_tui.judges.llm.prompt.prompt import Prompt
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.verification import parse_verification
from mast_tui.judges.llm.request import Parameters, Reply, Window
from mast_tui.judges.llm.run.grouping import read_groups
from mast_tui.redaction.engine import Redaction
from mast_tui.taxonomy.loader import load_mast
from tests.judges.llm.scripted_model import Kept, Model, judge, run_of

MAST = load_mast()
VIEW = RedactedView(run_of(6), Redaction.none())
MODES = tuple(mode.slug for mode in MAST.modes)
WINDOW = Window(0, 3, False, MODES)
PROMPT = Prompt(MAST, Parameters("m"))
DECISIVE = Prompt(MAST, Parameters("m", decisive="whole run"))
NOTES = ("it stopped", "it went on")

ODD: Final = (
    *("null", "true", "false", "0", "-1", "1", "3", "0.5", "2.5", "1e308", "-1e308", "1e999"),
    *("NaN", "Infinity", "-Infinity", "1e-400", "-0.0", "18446744073709551616", "1" + "0" * 18),
    *("9" * 308, "9" * 309, "-" + "9" * 309, "9" * 4_000, "9" * 5_000, "0." + "9" * 5_000),
    *('""', '" "', '"3"', '"#3"', '"3-4"', '"4-3"', '"3 to 99"', '"span 2"', '"1.3"', '"FM-1.3"'),
    *('"' + "9" * 309 + '"', '"' + "٣" * 12 + '"', '"' + "x" * 20_000 + '"', '"NaN"', '"90%"'),
    *('"\\ud83d"', '"\\u0000\\u202e"', '"' + "\\u00e9" * 50 + '"', '"present"', '"absent"', '"#"'),
    *("[]", "[[]]", "[null]", "[3, 4]", "[1e999, 2]", '["3", {}]', "[true]", "[" + "9" * 309 + "]"),
    *("[" * 300 + "]" * 300, "[" * 2_000 + "]" * 2_000, "[" + "0," * 2_000 + "0]"),
    *("{}", '{"": null}', '{"a": {"b": []}}', '{"modes": {}}', '{"verdict": "present"}'),
    *('{"a": ' * 300 + "1" + "}" * 300, '{"a": ' * 2_000 + "1" + "}" * 2_000),
    *("0x" + "f" * 2_000, "1j", "'it'", "b'x'", "{1}", "(1,)", "None", "undefined", "00", "+1"),
)
"""What stands in the place of a value: JSON of all kinds, and what only looks like it."""

FINDING = (
    '{{"rationale": {rationale}, "quote": {quote}, "first": {first}, "last": {last},'
    ' "spans": {spans}, "confidence": {confidence}, "decisive": {decisive}}}'
)
FORMS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "modes": (
        '{{"modes": {modes}, "digest": {digest}}}',
        {"modes": '{"1.3": {"findings": [], "verdict": "absent"}}', "digest": '"so far"'},
    ),
    "mode": (
        '{{"modes": {{"1.3": {{"notes": {notes}, "findings": {findings}, "verdict": {verdict}}},'
        ' "1.1": {other}}}, "digest": ""}}',
        {"notes": '""', "findings": "[]", "verdict": '"absent"', "other": '"absent"'},
    ),
    "finding": (
        f'{{{{"modes": {{{{"1.3": {{{{"findings": [{FINDING}], "verdict": "present"}}}}}}}}}}}}',
        {
            "rationale": '"it shows in #2"',
            "quote": '"step 2 of the work"',
            "first": "null",
            "last": "null",
            "spans": "null",
            "confidence": "0.5",
            "decisive": "true",
        },
    ),
    "list of modes": (
        '{{"modes": [{{"mode": {mode}, "verdict": {verdict}, "findings": {findings}}}]}}',
        {"mode": '"1.3"', "verdict": '"absent"', "findings": "[]"},
    ),
    "decisive": (
        '{{"notes": {notes}, "decisive": [{{"rationale": {rationale}, "quote": {quote}, "first":'
        ' {first}, "agent": {agent}, "correction": {correction}, "then": {then}, "mode": {mode},'
        ' "fits": {fits}, "confidence": {confidence}}}], "digest": {digest}}}',
        {
            "notes": '""',
            "rationale": '"why"',
            "quote": '"step 2"',
            "first": "2",
            "agent": '""',
            "correction": '"Ask."',
            "then": '"It went well."',
            "mode": '"1.3"',
            "fits": "true",
            "confidence": "0.5",
            "digest": '""',
        },
    ),
    "second look": (
        '{{"shows": {shows}, "definition": {definition}, "boundary": {boundary}, "verdict":'
        ' {verdict}, "confidence": {confidence}}}',
        {
            "shows": '"it"',
            "definition": '"met"',
            "boundary": "null",
            "verdict": '"holds"',
            "confidence": "0.5",
        },
    ),
    "groups": (
        '{{"groups": [{{"name": {name}, "notes": {notes}}}, {group}]}}',
        {"name": '"Stops"', "notes": "[1, 2]", "group": '{"name": "Goes on", "notes": [2]}'},
    ),
}
"""A whole answer of each kind, with the value of each field."""


def read_modes(text: str) -> object:
    """Read an answer about the modes."""
    return PROMPT.read(text, view=VIEW, window=WINDOW)


READERS: Final[dict[str, Callable[[str], object]]] = {
    "decisive": lambda text: DECISIVE.read(text, view=VIEW, window=WINDOW),
    "second look": lambda text: parse_verification(text, VIEW),
    "groups": lambda text: read_groups(text, NOTES),
}

AROUND: Final[dict[str, Callable[[str], str]]] = {
    "in a fence": lambda text: f"<think>{{</think> Here:\n```json\n{text}\n```",
    "with a fault": lambda text: f"{text[:-1]},}}",
    "as Python writes it": lambda text: text.replace('"', "'").replace(" null", " None"),
}


def answers(kind: str) -> Iterator[str]:
    """Answers of a kind, each with one odd value in one field, written in two ways."""
    form, values = FORMS[kind]
    ways = cycle(AROUND.values())
    for name, odd in product(values, ODD):
        text = form.format(**{**values, name: odd})
        yield text
        yield next(ways)(text)


def test_every_kind_of_answer_can_be_read() -> None:
    for kind, (form, values) in FORMS.items():
        text = form.format(**values)
        for written in (text, *(way(text) for way in AROUND.values())):
            READERS.get(kind, read_modes)(written)


@pytest.mark.slow
def test_an_odd_value_in_any_field_is_read_or_makes_the_answer_malformed() -> None:
    tried = malformed = 0
    for kind in FORMS:
        reader = READERS.get(kind, read_modes)
        for text in answers(kind):
            tried += 1
            try:
                reader(text)
            except Malformed:
                malformed += 1
    assert tried >= 5_000
    assert 0 < malformed < tried / 2


async def test_an_answer_is_kept_before_it_is_read_whatever_it_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    form, values = FORMS["finding"]
    text = form.format(**{**values, "first": "9" * 4_000})
    model = Model(lambda request, _: Reply(text, "stop", "text", request.tokens, 50))
    result = await judge(run_of(6), model)
    assert any("names a span" in remark for remark in result.remarks)
    ledger = Kept()
    monkeypatch.setattr(Prompt, "read", broken)
    with pytest.raises(ZeroDivisionError):
        await judge(run_of(6), Model(lambda r, _: Reply("{}", "stop", "text", r.tokens, 9)), ledger)
    assert [reply.text for reply, _ in ledger.all] == ["{}"]

"""The schema of an answer: one that structured outputs take, and that says what is asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mast_tui.judges.llm.answer.parsing import answer_schema
from mast_tui.judges.llm.prompt.tokens import estimate
from tests.judges.llm.entries import finding
from tests.judges.llm.views import MAST

CODES = [mode.code for mode in MAST.modes]


def check_strict(schema: Any) -> None:
    """Check that structured outputs take a schema, whose words are few."""
    schema = {name: value for name, value in schema.items() if name != "$defs"}
    if "$ref" in schema:
        assert schema == {"$ref": "#/$defs/mode"}
        return
    assert set(schema) <= {
        "type", "properties", "required", "additionalProperties", "items", "maxItems", "enum",
    }  # fmt: skip
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "object" in kinds:
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        for inner in schema["properties"].values():
            check_strict(inner)
    if "array" in kinds:
        check_strict(schema["items"])


def accepts(schema: Any, value: Any) -> bool:
    return bool(Draft202012Validator(schema).is_valid(value))


def test_the_schema_is_strict() -> None:
    schema: Any = answer_schema(CODES, tokens=4_000)
    Draft202012Validator.check_schema(schema)
    check_strict(schema)
    check_strict(schema["$defs"]["mode"])
    assert accepts(schema, answered())


def entry(verdict: str = "absent", *findings: object) -> dict[str, object]:
    return {"notes": "", "findings": list(findings), "verdict": verdict}


def answered(**said: dict[str, object]) -> dict[str, object]:
    """An answer about all modes, of 1.3 as it is given."""
    return {"modes": {**{code: entry() for code in CODES}, "1.3": said.get("of_1_3", entry())}}


def test_the_schema_takes_what_is_asked_for_and_nothing_else() -> None:
    schema = answer_schema(CODES, tokens=4_000)
    good = answered(of_1_3=entry("present", finding()))
    assert accepts(schema, good)
    assert accepts(schema, answered(of_1_3=entry("present", finding(quote=None))))
    assert not accepts(schema, {**good, "digest": "so far"})
    assert not accepts(schema, {"modes": {**answered(), "9.9": entry()}})
    assert not accepts(schema, {"modes": {"1.3": entry()}}), "no mode may be left out"
    assert not accepts(schema, answered(of_1_3=entry("yes")))
    assert not accepts(schema, answered(of_1_3=entry("present", finding(first="x"))))
    assert not accepts(schema, answered(of_1_3=entry("present", *[finding()] * 6)))


def test_evidence_comes_before_the_verdict() -> None:
    schema: Any = answer_schema(CODES, tokens=4_000)
    mode = schema["$defs"]["mode"]["properties"]
    assert list(mode) == ["notes", "findings", "verdict"]
    assert list(mode["findings"]["items"]["properties"])[:2] == ["rationale", "quote"]


@pytest.mark.parametrize(("tokens", "modes"), [(400, 2), (1_200, 2), (1_999, 6)])
def test_all_of_a_short_answer_fits_into_its_room(tokens: int, modes: int) -> None:
    codes = CODES[:modes]
    schema: Any = answer_schema(codes, tokens=tokens)
    found = schema["$defs"]["mode"]["properties"]
    assert found["findings"]["maxItems"] == 1
    text = "1." * (found["notes"]["maxLength"] // 2)  # as small models write: a token for each
    said = entry("unsure", finding(rationale=text, quote=text)) | {"notes": text}
    answer = {"modes": dict.fromkeys(codes, said)}
    assert accepts(schema, answer)
    texts = 3 * modes * len(text)
    empty = estimate(json.dumps(answer, indent=2).replace(text, ""))
    assert tokens / 2 < texts + empty <= tokens * 1.1


@pytest.mark.parametrize(("tokens", "modes"), [(2_000, 2), (1_999, 14), (300, 2)])
def test_a_longer_answer_and_one_about_too_much_have_no_bounds(tokens: int, modes: int) -> None:
    schema = answer_schema(CODES[:modes], tokens=tokens)
    assert "maxLength" not in json.dumps(schema)
    assert schema == answer_schema(CODES[:modes], tokens=4_000)

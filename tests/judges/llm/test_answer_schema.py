"""The schema of an answer."""

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


def entry(verdict: str = "absent", *findings: object) -> dict[str, object]:
    return {"notes": "", "findings": list(findings), "verdict": verdict}


def answered(**said: dict[str, object]) -> dict[str, object]:
    """An answer about all modes, of 1.3 as it is given."""
    return {"modes": {**{code: entry() for code in CODES}, "1.3": said.get("of_1_3", entry())}}


def test_the_schema_is_strict_and_asks_for_evidence_before_the_verdict() -> None:
    schema: Any = answer_schema(CODES, tokens=4_000)
    Draft202012Validator.check_schema(schema)
    check_strict(schema)
    check_strict(schema["$defs"]["mode"])
    mode = schema["$defs"]["mode"]["properties"]
    assert list(mode) == ["notes", "findings", "verdict"]
    assert list(mode["findings"]["items"]["properties"])[:2] == ["rationale", "quote"]
    good = answered(of_1_3=entry("present", finding()))
    for right in (answered(), good, answered(of_1_3=entry("present", finding(quote=None)))):
        assert accepts(schema, right)
    for wrong in (
        {**good, "digest": "so far"},
        {"modes": {**answered(), "9.9": entry()}},
        {"modes": {"1.3": entry()}},  # without the other modes
        answered(of_1_3=entry("yes")),
        answered(of_1_3=entry("present", finding(first="x"))),
        answered(of_1_3=entry("present", *[finding()] * 6)),
    ):
        assert not accepts(schema, wrong)


@pytest.mark.parametrize(("tokens", "modes"), [(400, 2), (1_200, 2), (1_999, 6)])
def test_a_bounded_answer_fits_its_room(tokens: int, modes: int) -> None:
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
def test_longer_answers_and_those_about_many_modes_are_unbounded(tokens: int, modes: int) -> None:
    schema = answer_schema(CODES[:modes], tokens=tokens)
    assert "maxLength" not in json.dumps(schema)
    assert schema == answer_schema(CODES[:modes], tokens=4_000)

"""Reading a model's answer about modes, in all the shapes that models write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mast_tui.judges.llm.answer.parsing import Answer, Malformed, answer_schema, parse_answer
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.request import Window
from mast_tui.labels import Evidence, Finding
from tests.gold.build import ABSENT, PRESENT, UNSURE
from tests.judges.llm.views import MAST, trace_of, view_of


def claim(**changes: object) -> dict[str, object]:
    return {
        "first": 12,
        "last": 14,
        "quote": "the same call",
        "rationale": "#14 repeats #12.",
        "confidence": 0.8,
        "decisive": True,
    } | changes


def entry(
    mode: object = "1.3", verdict: object = "present", *findings: object
) -> dict[str, object]:
    return {"mode": mode, "verdict": verdict, "findings": list(findings)}


ALL_MODES = tuple(mode.slug for mode in MAST.modes)
CODES = [mode.code for mode in MAST.modes]
FULL_WINDOW = Window(0, 19, True, ALL_MODES)
LAST_WINDOW = Window(10, 19, False, ALL_MODES[:11])
REPEATS = "step_repetition"


def read(answer: object, window: Window = FULL_WINDOW, spans: int = 20) -> Answer:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return parse_answer(text, MAST, window, view_of(trace_of(["x"] * spans)))


def span_range(finding: Finding) -> tuple[int | None, int | None]:
    """Return the indices of a finding's first and last span."""
    keys = finding.first, finding.last
    first, last = (None if key is None else int(key.split()[1]) - 1 for key in keys)
    return first, last


def quote_of(finding: Finding) -> str | None:
    """Return a finding's quote, which is not located yet."""
    if finding.evidence is None:
        return None
    assert finding.evidence == Evidence(key=None, quote=finding.evidence.quote)
    return finding.evidence.quote


def read_claims(*findings: object, **changes: object) -> Answer:
    """Read an answer with these findings of 1.3."""
    return read({"modes": [entry("1.3", changes.get("verdict", "present"), *findings)]})


def test_a_plain_answer_is_read() -> None:
    modes = [entry("1.3", "present", claim()), entry("2.1", "absent"), entry("3.2", "unsure")]
    answer = read({"modes": modes})
    assert answer.verdicts == {
        REPEATS: PRESENT,
        "conversation_reset": ABSENT,
        "no_or_incomplete_verification": UNSURE,
    }
    (finding,) = answer.findings
    assert (finding.mode, span_range(finding)) == (REPEATS, (11, 13))
    assert (quote_of(finding), finding.rationale) == ("the same call", "#14 repeats #12.")
    assert (finding.confidence, finding.decisive) == (0.8, True)
    assert answer.remarks == ()


PLAIN = json.dumps({"modes": [entry("1.3", "present", claim())]})


def test_text_around_the_object_is_ignored() -> None:
    for frame in [
        "  {}\n",
        "```json\n{}\n```",
        "```\n{}\n```\nThat is all.",
        "Here is what I found:\n\n{}",
        '<think>Is it {{"modes": [{{"mode": "1.3"}}]}}? Or {{ else</think>\n{}',
        "no end tag before </think>{}",
        '{{"answer": {}}}',
        'The form is {{"modes": …}}, so:\n{}',
        'An example would be {{}} or {{"a": 1}}. Now the answer: {}',
        "\ufeff{}",
    ]:
        assert read(frame.format(PLAIN)) == read(PLAIN)


def test_modes_are_known_by_code_slug_or_name_in_any_clear_shape() -> None:
    for answer in [
        *({"modes": [entry(name, "absent")]} for name in (
            "1.3", 1.3, "FM-1.3", "fm 1.3", REPEATS, "STEP REPETITION", "1.3 Step repetition",
            "1.3: Step repetition", "FM-1.3: Step repetition", "mode 1.3",
        )),
        {"modes": {"1.3": {"verdict": "absent", "findings": []}}},
        {"modes": {"1.3": "no"}},
        {"1.3": {"verdict": "absent"}},
        {"1.3": False, "digest": "so far"},
        {"result": {"modes": [entry("1.3", "absent")]}},
        {"modes": [{"code": "1.3", "verdict": "absent"}]},
    ]:  # fmt: skip
        assert read(answer).verdicts == {REPEATS: ABSENT}


def test_verdicts_are_read_in_other_words() -> None:
    for wording, value in [
        ("Present", PRESENT), ("YES", PRESENT), (True, PRESENT), ("true.", PRESENT),
        ("ABSENT", ABSENT), ("no", ABSENT), (False, ABSENT), ("not_present", ABSENT),
        ("Unsure", UNSURE), ("unclear", UNSURE),
        ("perhaps not", None), (None, None), (7, None), (["present"], None), ("", None),
    ]:  # fmt: skip
        answer = read({"modes": [entry("1.3", wording), entry("2.1", "absent")]})
        expected = {REPEATS: value, "conversation_reset": ABSENT}
        assert answer.verdicts == {mode: v for mode, v in expected.items() if v is not None}
        assert value is not None or any("1.3" in remark for remark in answer.remarks)


def test_findings_outweigh_the_verdict_and_present_alone_is_a_finding() -> None:
    for verdict in ("absent", "unsure", None, "perhaps"):
        answer = read_claims(claim(), verdict=verdict)
        assert answer.verdicts == {REPEATS: PRESENT}
        assert len(answer.findings) == len(answer.remarks) == 1
    answer = read_claims()
    (finding,) = answer.findings
    assert (span_range(finding), finding.evidence) == ((None, None), None)
    assert answer.verdicts == {REPEATS: PRESENT}
    assert answer.remarks


def test_repeated_modes_are_joined_and_equal_findings_deduplicated() -> None:
    modes = [
        entry("1.3", "absent"),
        entry("1.3", "present", claim(confidence=0.3)),
        entry("1.3", "unsure"),
        entry("1.3", "present", claim(first=2, last=2), claim(confidence=0.9)),
        entry("1.3", "absent", claim(confidence=0.5)),
    ]
    answer = read({"modes": modes})
    assert answer.verdicts == {REPEATS: PRESENT}
    findings = [(span_range(finding)[0], finding.confidence) for finding in answer.findings]
    assert findings == [(11, 0.9), (1, 0.8)]
    assert "1.3 was answered more than once" in answer.remarks


def test_modes_that_were_not_asked_about_are_ignored() -> None:
    modes = [entry("3.1", "present", claim()), entry("9.9", "absent"), entry("1.3", "absent")]
    answer = read({"modes": modes, "digest": "so far"}, LAST_WINDOW)
    assert answer.verdicts == {REPEATS: ABSENT}
    assert answer.findings == ()
    assert any("3.1" in remark for remark in answer.remarks)
    assert any("9.9" in remark for remark in answer.remarks)
    outside = [entry("1.3", "present", claim(first=2, last=3))]  # but inside the trace
    (finding,) = read({"modes": outside, "digest": "x"}, LAST_WINDOW).findings
    assert span_range(finding) == (1, 2)


RANGES: tuple[tuple[object, object, tuple[int | None, int | None]], ...] = (
    (12, 14, (11, 13)), ("12", "#14", (11, 13)), ("span 12", "Spans #14 ", (11, 13)),
    (12.0, 14.0, (11, 13)), (14, 12, (11, 13)), (12, None, (11, 11)), (None, 14, (13, 13)),
    (None, None, (None, None)), (0, 0, (None, None)), (-3, 5, (4, 4)), (18, 21, (17, 17)),
    (21, 99, (None, None)), (1, 20, (0, 19)), (True, False, (None, None)),
    (12.5, "x", (None, None)), (10**30, "9" * 5000, (None, None)),
    # A range in one end keeps the other.
    ("3-4", None, (2, 3)), ("#3 – #4", None, (2, 3)), ("2-3", 5, (1, 4)), ([2, 4], None, (1, 3)),
    (None, "3-4", (2, 3)), (2, "3-4", (1, 3)),
)  # fmt: skip
OTHER_FIELDS: tuple[tuple[dict[str, object], tuple[int | None, int | None]], ...] = (
    ({"span": 3}, (2, 2)), ({"spans": [3, 4]}, (2, 3)), ({"spans": "3-4"}, (2, 3)),
    ({"range": "#3 to #4"}, (2, 3)), ({"step": "#3"}, (2, 2)), ({"spans": []}, (None, None)),
)  # fmt: skip


def test_span_numbers_are_read_as_far_as_the_spans_exist() -> None:
    for first, last, expected in RANGES:
        (finding,) = read_claims(claim(first=first, last=last)).findings
        assert span_range(finding) == expected, (first, last)
    for fields, expected in OTHER_FIELDS:
        bare = {"evidence": "the same call", "reason": "it repeats", **fields}
        (finding,) = read_claims(bare).findings
        assert (span_range(finding), quote_of(finding)) == (expected, "the same call"), fields
        assert finding.rationale == "it repeats"


CONFIDENCES: tuple[tuple[object, float], ...] = (
    (0.8, 0.8), (0, 0.0), (1, 1.0), (80, 0.8), ("0.8", 0.8), ("80%", 0.8), ("1 %", 0.01),
    (100, 1.0), (-1, 0.5), (101, 0.5), ("high", 0.5), (None, 0.5), (True, 0.5), ([1], 0.5),
)  # fmt: skip


def test_confidences_are_read_on_any_scale() -> None:
    for stated, confidence in CONFIDENCES:
        (finding,) = read_claims(claim(confidence=stated)).findings
        assert finding.confidence == pytest.approx(confidence), stated
    for number in ("NaN", "Infinity", "-Infinity", "1e999"):
        answer = read(PLAIN.replace("0.8", number))
        assert answer.findings[0].confidence == 0.5
        assert any("confidence" in remark for remark in answer.remarks)
    for scale, high, low in ((5, 4, 1), (10, 8, 2), (100, 80, 20)):
        answer = read_claims(claim(confidence=high), claim(first=1, last=1, confidence=low))
        confidences = [finding.confidence for finding in answer.findings]
        assert confidences == [high / scale, low / scale]
        assert answer.remarks == (f"confidences are read as numbers from 0 to {scale}",)


def test_quotes_of_any_type_are_read() -> None:
    quotes: tuple[tuple[object, str | None], ...] = (
        ("a\nb", "a\nb"), ("", None), ("  ", None), (None, None), (7, None), (["a", "b"], "a … b"),
    )  # fmt: skip
    for quote, expected in quotes:
        assert quote_of(read_claims(claim(quote=quote)).findings[0]) == expected
    surrogate = quote_of(read(PLAIN.replace("the same call", "a \\ud800 b")).findings[0])
    assert surrogate is not None
    surrogate.encode("utf-8")
    broken = read(PLAIN.replace("the same call", "the same\n\tcall"))
    assert quote_of(broken.findings[0]) == "the same\n\tcall"


def test_unusable_answers_are_refused_briefly() -> None:
    for text, message in [
        ("", "empty"), ("  \n", "empty"), ("I see no failure in this run.", "no JSON object"),
        ("[]", "list"), ('"absent"', "text"), ("null", "bare"), ("{}", "no list of modes"),
        ('{"verdict": "absent"}', "no list of modes"), ('{"modes": []}', "names no mode"),
        ('{"modes": [{"mode": "9.9", "verdict": "absent"}]}', "names no mode"),
        ('{"modes": "none"}', "no list of modes"), (PLAIN[:-1], "at character"),
        (PLAIN[:60], "at character"), (PLAIN + PLAIN[:50], "at character"),
        ("```json\n" + PLAIN[:-20] + "\n```", "at character"),
        ("<think>" + PLAIN + "</think>", "no JSON object"),
        ("<think>Perhaps " + PLAIN, "no JSON object"), ('{"modes":' * 100_000, "deep"),
        ('{"modes": ' + "[" * 100_000, "deep"),
    ]:  # fmt: skip
        with pytest.raises(Malformed, match=message) as caught:
            read(text)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 200


@pytest.mark.slow
@pytest.mark.parametrize("quote", ["the same call", r"the \d+ same call"])  # one has a fault
def test_a_cut_answer_is_never_taken_for_whole(quote: str) -> None:
    modes = [entry(code, "present", claim()) for code in CODES]
    text = json.dumps({"modes": modes, "digest": "so far"}, indent=1)
    text = text.replace("the same call", quote)
    assert read(text).verdicts
    for end in range(0, len(text), 7):
        with pytest.raises(Malformed):
            read(text[:end])


SMALL_FAULTS = {
    "an invalid escape": PLAIN.replace("the same", r"the \d+ same"),
    "a trailing comma": PLAIN.replace("}]}", "},]}"),
    "a comment": PLAIN.replace("}]}", "} // that is all\n]}"),
    "a quote mark that is not escaped": PLAIN.replace("the same call", 'the "same" call'),
    "Python's own way": repr(json.loads(PLAIN)),
    "Python's own way, with both marks": repr(
        json.loads(PLAIN.replace("the same", 'it\'s the \\"same\\"'))
    ),
    "an escaped apostrophe": PLAIN.replace("the same", r"the agent\'s same"),
}


def test_faulty_json_is_repaired_with_a_remark() -> None:
    for name in SMALL_FAULTS:
        for frame in ("{}", "```json\n{}\n```\nThat is all."):
            answer = read(frame.replace("{}", SMALL_FAULTS[name]))
            assert answer.verdicts == {REPEATS: PRESENT}
            quote = quote_of(answer.findings[0]) or ""
            assert "same" in quote
            assert quote.endswith("call")
            assert answer.remarks == ("the answer's JSON had faults, which were repaired",)


def test_findings_are_read_in_other_shapes() -> None:
    for answer in [
        [entry("1.3", "present", claim())],
        {"failure_modes": [entry("1.3", "present", claim())]},
        {"answer": {"modes": [entry("1.3", "present", claim())]}, "meta": {"model": "m"}},
        json.dumps({"modes": {"1.3": {"verdict": "present", "findings": [claim()]}}}),
        {"modes": {"1.3": {"notes": "x", "findings": [claim()], "verdict": "present"}}},
        {"modes": {"1.3": {"verdict": "present", **claim()}}},
    ]:
        parsed = read(json.dumps(answer))
        assert parsed.verdicts == {REPEATS: PRESENT}
        assert [(span_range(finding), quote_of(finding)) for finding in parsed.findings] == [
            ((11, 13), "the same call")
        ]


# The schema


def check_strict(schema: Any) -> None:
    """Check that structured outputs accept a schema."""
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


def mode_answer(verdict: str = "absent", *findings: object) -> dict[str, object]:
    return {"notes": "", "findings": list(findings), "verdict": verdict}


def full_answer(repetition: dict[str, object] | None = None) -> dict[str, object]:
    """Return an answer about all modes in which others than 1.3 are absent."""
    modes = {code: mode_answer() for code in CODES}
    return {"modes": modes | {"1.3": repetition or mode_answer()}}


def test_the_schema_is_strict_and_asks_for_evidence_before_the_verdict() -> None:
    schema: Any = answer_schema(CODES, tokens=4_000)
    Draft202012Validator.check_schema(schema)
    check_strict(schema)
    check_strict(schema["$defs"]["mode"])
    mode = schema["$defs"]["mode"]["properties"]
    assert list(mode) == ["notes", "findings", "verdict"]
    assert list(mode["findings"]["items"]["properties"])[:2] == ["rationale", "quote"]
    good = full_answer(mode_answer("present", claim()))
    for right in (full_answer(), good, full_answer(mode_answer("present", claim(quote=None)))):
        assert accepts(schema, right)
    for wrong in (
        {**good, "digest": "so far"},
        {"modes": {**full_answer(), "9.9": mode_answer()}},
        {"modes": {"1.3": mode_answer()}},  # without the other modes
        full_answer(mode_answer("yes")),
        full_answer(mode_answer("present", claim(first="x"))),
        full_answer(mode_answer("present", *[claim()] * 6)),
    ):
        assert not accepts(schema, wrong)


def test_short_answers_are_bounded_to_their_room_and_long_ones_not() -> None:
    for tokens, modes in [(400, 2), (1_200, 2), (1_999, 6)]:
        codes = CODES[:modes]
        schema: Any = answer_schema(codes, tokens=tokens)
        fields = schema["$defs"]["mode"]["properties"]
        assert fields["findings"]["maxItems"] == 1
        text = "1." * (fields["notes"]["maxLength"] // 2)  # as small models write: a token for each
        longest = mode_answer("unsure", claim(rationale=text, quote=text)) | {"notes": text}
        answer = {"modes": dict.fromkeys(codes, longest)}
        assert accepts(schema, answer)
        texts = 3 * modes * len(text)
        empty = estimate(json.dumps(answer, indent=2).replace(text, ""))
        assert tokens / 2 < texts + empty <= tokens * 1.1
    for tokens, modes in [(2_000, 2), (1_999, 14), (300, 2)]:
        schema = answer_schema(CODES[:modes], tokens=tokens)
        assert "maxLength" not in json.dumps(schema)
        assert schema == answer_schema(CODES[:modes], tokens=4_000)

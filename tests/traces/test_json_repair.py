"""Damaged JSON documents: the records before and after the damage."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.traces.io.json_lines import glued_records, is_json_lines, split_records
from mast_tui.traces.io.json_repair import Repaired, repair

MESSAGES = [
    {
        "role": "user" if number % 2 else "assistant",
        "content": f'number {number} said "so, {{x: {number}}}"\n\tand [more]: ' + "word " * number,
        "tool_calls": [
            {"id": f"c{number}", "function": {"name": "f", "arguments": json.dumps({"a": [1, 2]})}}
        ],
        "at": number,
    }
    for number in range(20)
]
DOCUMENT = {"task": "do it", "messages": MESSAGES, "info": {"a": [1, 2, 3], "b": None}}

LAYOUTS = {
    "pretty": json.dumps(DOCUMENT, indent=2),
    "compact": json.dumps(DOCUMENT),
    "tight": json.dumps(DOCUMENT, separators=(",", ":")),
    "a pretty list": json.dumps(MESSAGES, indent=4),
    "a compact list": json.dumps(MESSAGES),
    "a record a line": "[\n" + ",\n".join(map(json.dumps, MESSAGES)) + "\n]",
}
layouts = pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS.keys())


def repair_damaged(text: str) -> Repaired:
    actual = repair(text)
    assert actual is not None
    assert actual.problems
    json.dumps(actual.value)
    return actual


def intact_numbers(repaired: Repaired) -> list[int]:
    """Return the numbers of the messages that are undamaged."""
    value: object = repaired.value
    messages = value.get("messages") if isinstance(value, Mapping) else value
    assert isinstance(messages, list)
    return [message["at"] for message in messages if message in MESSAGES]


def replace_at(text: str, offset: int, replacement: str, length: int = 1) -> str:
    return text[:offset] + replacement + text[offset + length :]


@pytest.mark.slow
@layouts
@pytest.mark.parametrize("replacement", ["", "~", '"', "\\", "\0", "{", "}", "[", "]", ",", "\n"])
def test_one_damaged_character_loses_only_its_record(text: str, replacement: str) -> None:
    """The damage is within message 9, after its first key and brackets."""
    begin = text.index("number 9 said")
    end = text.index("number 10 said")
    numbers = list(range(20))
    for offset in range(begin, end - 60, 7):
        broken = replace_at(text, offset, replacement)
        try:
            json.loads(broken)
        except ValueError:
            survivors = intact_numbers(repair_damaged(broken))
            lost = [number for number in numbers if number not in survivors]
            assert set(lost) <= {9}, (offset, broken[offset - 40 : offset + 40])


@pytest.mark.slow
@layouts
def test_damage_of_any_kind_loses_few_records(text: str) -> None:
    """Damaged brackets, quotes and commas lose at most two records, in 19 of 20 cases."""
    rng = random.Random(5)
    lost_counts = []
    first = text.index("number 3 said")
    for _ in range(150):
        offset = rng.randrange(first, len(text))
        broken = replace_at(text, offset, rng.choice(['"', "~", "{", "]", ""]), rng.randrange(20))
        try:
            json.loads(broken)
        except ValueError:
            lost_counts.append(20 - len(intact_numbers(repair_damaged(broken))))
    assert len(lost_counts) > 50
    assert sum(number > 2 for number in lost_counts) <= len(lost_counts) / 20


@layouts
def test_a_document_that_is_cut_off_keeps_its_beginning(text: str) -> None:
    for part in range(5, 20):
        cut = len(text) * part // 20
        actual = repair_damaged(text[:cut])
        complete = sum(text.index(f'"c{number}"') + 200 < cut for number in range(20))
        survivors = intact_numbers(actual)
        assert survivors == list(range(len(survivors)))
        assert len(survivors) >= complete
        assert "cut off" in actual.problems[-1].message
        assert actual.problems[-1].place == f"line {text.count(chr(10), 0, cut) + 1}"


def test_a_text_that_is_cut_off_keeps_its_beginning() -> None:
    actual = repair_damaged('{"messages": [{"role": "user", "content": "well begun is \\u00')
    assert actual.value == {"messages": [{"role": "user", "content": "well begun is "}]}
    assert repair_damaged('[{"a": 12, "b": 3').value == [{"a": 12}]
    assert repair_damaged('[{"a": 12}, {"b": tr').value == [{"a": 12}]
    assert repair_damaged('[{"a": 12}, {"b').value == [{"a": 12}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "x, "b": "y"}', {"a": "x", "b": "y"}),
        ('{"a": x", "b": "y"}', {"a": "x", "b": "y"}),
        ('{"a": "he"llo", "b": 1}', {"a": 'he"llo', "b": 1}),
        ('{"a": "x\\q", "b": 1}', {"a": "x\\q", "b": 1}),
        ('{"a": "x\ny", "b": 1}', {"a": "x\ny", "b": 1}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('{"a": 1, "b~ 2, "c": 3}', {"a": 1, "c": 3}),
        ('{"a": 1, "b: 2, "c": 3}', {"a": 1, "b": 2, "c": 3}),
        ('{"a": 1, b": 2, "c": 3}', {"a": 1, "b": 2, "c": 3}),
        ('{"a": 1, "b"; 2, "c": 3}', {"a": 1, "b": 2, "c": 3}),
        ('{"a": 12x4, "b": 2}', {"b": 2}),
        ('{"a": "x"( "b": "y", "c": 3}', {"a": "x", "b": "y", "c": 3}),
        ('{"a": "x"-\n"b": "y", "c": 3}', {"a": "x", "b": "y", "c": 3}),
        ('[{"a": "x"~}, {"a": "y"}]', [{"a": "x"}, {"a": "y"}]),
        ('{"a": ' + "7" * 5000 + ', "b": 2}', {"b": 2}),
        ('{"a": [{"b": 1}, {"b": 2}, "c": 3}', {"a": [{"b": 1}, {"b": 2}], "c": 3}),
        ('{"a": {"b": 1}, {"b": 2}], "c": 3}', {"a": [{"b": 1}, {"b": 2}], "c": 3}),
        ('[{"b": 1}, "b": 2}, {"b": 3}]', [{"b": 1}, {"b": 2}, {"b": 3}]),
        ('[{"b": 1}, {"b": 2, {"b": 3}]', [{"b": 1}, {"b": 2}, {"b": 3}]),
        ('[{"b": 1}, ["b": 2}, {"b": 3}]', [{"b": 1}, {"b": 2}, {"b": 3}]),
        ('[{"b": 1}, {"b": 2}}, {"b": 3}]', [{"b": 1}, {"b": 2}, {"b": 3}]),
        ('{"a": {"b": 1}}, "c": [{"d": 1}]}', {"a": {"b": 1}, "c": [{"d": 1}]}),
        ('{"a": ["x", "y, "z"]}', {"a": ["x", "y", "z"]}),
    ],
)
def test_lost_syntax_is_distinguished_from_lost_text(text: str, value: object) -> None:
    assert repair_damaged(text).value == value


def test_a_problem_names_the_line() -> None:
    text = LAYOUTS["pretty"].replace('"at": 9', '"at": ~~')
    (problem,) = repair_damaged(text).problems
    line = LAYOUTS["pretty"][: LAYOUTS["pretty"].index('"at": 9')].count("\n") + 1
    assert problem.place == f"line {line}"


def test_text_after_a_document_is_a_problem() -> None:
    actual = repair_damaged('{"a":\n[1]} {"b": 2}\n' + "x" * 5)
    assert actual.value == {"a": [1]}
    (problem,) = actual.problems
    assert problem.place == "line 2"
    assert "14 characters" in problem.message


def test_lone_surrogates_are_replaced() -> None:
    actual = repair_damaged('{"a": "\\ud800x", "b": {"\\udfff": "\\ud83d\\ude00"}, "c": ~}')
    assert actual.value == {"a": "\ufffdx", "b": {"\ufffd": "\U0001f600"}}


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"a":[['])
@pytest.mark.parametrize("closed", [True, False])
def test_deep_nesting_is_left_out(opening: str, closed: bool) -> None:
    closing = {"[": "]", '{"a":': "}", '{"a":[[': "]]}"}[opening]
    deep_value = opening * 10_000 + "1" + (closing * 10_000 if closed else "")
    actual = repair_damaged(f'{{"first": {{"x": 1}}, "deep": {deep_value}, "last": {{"y": 2}}}}')
    assert isinstance(actual.value, dict)
    assert actual.value["first"] == {"x": 1}
    assert not closed or actual.value["last"] == {"y": 2}
    assert any("nested too deeply" in problem.message for problem in actual.problems)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{",
        "{\n\n]",
        "[2026-01-01 10:00:00] started",
        "[INFO] {} {} {}",
        "{not json}",
        "just text",
        '{"a": 1}\n{"a": 2}\n{"a" 3}\n',
        '{"a": 1\n{"a": 2}\n{"a": 3}\n',
    ],
)
def test_other_content_is_not_repaired(text: str) -> None:
    assert repair(text) is None


def test_a_broken_first_line_makes_no_document_of_json_lines() -> None:
    assert is_json_lines(['{"a": 1', '{"a": 2}', '{"a": 3}'])
    assert is_json_lines(['{"a": 1}', "{"])
    assert not is_json_lines(["[", '{"a": 2}'])
    assert not is_json_lines(['{"a": 1,', '"b": [', "{}", "]", "}"])
    assert not is_json_lines(['{"a": 1}'])


def test_records_without_a_line_feed_are_separated() -> None:
    assert glued_records('{"a": "}{"}{"b": 2} {"c": 3}') == [{"a": "}{"}, {"b": 2}, {"c": 3}]
    assert glued_records('{"a": 1}') == []
    assert glued_records('{"a": 1}{"b"') == []
    assert glued_records('{"a": 1} 2') == []


@pytest.mark.slow
@pytest.mark.parametrize("indent", [None, 2])
def test_a_big_file_with_a_thousand_damages_is_repaired(indent: int | None) -> None:
    """Parsing the remaining text again after each damage would take an hour."""
    rng = random.Random(3)
    record = {"role": "user", "content": "word " * 60, "calls": [{"args": {"a": [1, {"b": 2}]}}]}
    text = json.dumps({"messages": [{**record, "at": n} for n in range(10_000)]}, indent=indent)
    broken = list(text)
    for offset in rng.sample(range(100, len(text)), 1000):
        broken[offset] = rng.choice('"~\0}')
    actual = repair_damaged("".join(broken))
    assert isinstance(actual.value, dict)
    messages = actual.value["messages"]
    assert isinstance(messages, list)
    assert sum(isinstance(message, dict) and "calls" in message for message in messages) > 9_500
    assert len(actual.problems) <= 202


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        '["a", ' + '"' * 300_000,
        '{"a": ' + '"b":' * 100_000,
        '{"a": 1' + ",    " * 100_000,
        '{"a": ' + '[{"x":' * 50_000,
        '[{"a": 1}, ' + '{"a" 1} ' * 50_000,
        '{"a": [{"a": 1}, ' + "}{]" * 50_000,
        '[\n  {\n"a": 1}, ' + '\n  {\n    "a": "~' * 30_000,
        '{"a": "' + "\\x" * 200_000,
        '{"a": ' + " " * 500_000 + "~",
    ],
)
def test_hostile_text_is_repaired_in_bounded_time(text: str) -> None:
    """Each text would take hours if every opening bracket were followed to its end."""
    actual = repair(text)
    assert actual is None or len(actual.problems) <= 202


TOKENS = st.sampled_from(
    ['"', "\\", "{", "}", "[", "]", ":", ",", "\n", " ", "1", "-", "null", '"a"', '"b":', "~", "\0"]
)


@settings(max_examples=100)
@given(st.lists(TOKENS, max_size=60).map("".join))
def test_any_sequence_of_json_tokens_is_read_or_refused(tokens: str) -> None:
    for beginning in ('{"a": ', "[{}, ", '[\n  {\n    "k": '):
        actual = repair(beginning + tokens)
        if actual is not None:
            json.dumps(actual.value).encode("utf-8")
            assert actual.value


RECORDS = [{"a": 1, "b": "x\u2028y}{"}, {"a": 2, "b": {"c": [1, 'a \\ and "b']}}, {"a": 3}]
ENCODED_RECORDS = [json.dumps(record, ensure_ascii=False) for record in RECORDS]
SPLITS: dict[str, tuple[bytes, list[object]]] = {
    "lines": ("\n".join(ENCODED_RECORDS).encode(), RECORDS),
    "CRLF and a mark": (("\ufeff" + "\r\n".join(ENCODED_RECORDS)).encode(), RECORDS),
    "glued": ("".join(ENCODED_RECORDS).encode(), RECORDS),
    "pretty": ("\n".join(json.dumps(record, indent=2) for record in RECORDS).encode(), RECORDS),
    "text sequence": ("".join(f"\x1e{record}\n" for record in ENCODED_RECORDS).encode(), RECORDS),
    "events": (
        (
            ": hello\n" + "".join(f"event: a\ndata: {record}\n\n" for record in ENCODED_RECORDS)
        ).encode(),
        RECORDS,
    ),
    "NUL bytes": (
        f"{ENCODED_RECORDS[0]}\n".encode() + bytes(99) + ENCODED_RECORDS[1].encode(),
        RECORDS[:2],
    ),
    "UTF-16": ("\n".join(ENCODED_RECORDS).encode("utf-16"), RECORDS),
    "after a cut record": (
        f"{ENCODED_RECORDS[0][:9]}{ENCODED_RECORDS[1]}\n{ENCODED_RECORDS[2]}".encode(),
        RECORDS[1:],
    ),
    "cut end": (f"{ENCODED_RECORDS[0]}\n{ENCODED_RECORDS[1][:9]}".encode(), RECORDS[:1]),
    "no records": (b"a log that says {} now", []),
    "nothing": (b"", []),
    "too deep": (b"[" * 100_000, []),
}


@pytest.mark.parametrize(("data", "records"), SPLITS.values(), ids=SPLITS.keys())
def test_records_are_split_at_any_separator(data: bytes, records: list[object]) -> None:
    split = split_records(data)
    assert [json.loads(record) for record in split] == records
    assert not any(b"\n" in record for record in split)

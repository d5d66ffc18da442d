"""Broken JSON documents: the records before and after a damage."""

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


def salvaged(text: str) -> Repaired:
    actual = repair(text)
    assert actual is not None
    assert actual.problems
    json.dumps(actual.value)
    return actual


def intact(found: Repaired) -> list[int]:
    """The numbers of the messages that are as they were."""
    value: object = found.value
    messages = value.get("messages") if isinstance(value, Mapping) else value
    assert isinstance(messages, list)
    return [message["at"] for message in messages if message in MESSAGES]


def damaged_at(text: str, place: int, instead: str, length: int = 1) -> str:
    return text[:place] + instead + text[place + length :]


@pytest.mark.slow
@layouts
@pytest.mark.parametrize("instead", ["", "~", '"', "\\", "\0", "{", "}", "[", "]", ",", "\n"])
def test_one_damaged_character_loses_only_its_record(text: str, instead: str) -> None:
    """At each of many places within message 9 but where its first key or brackets were hit."""
    begin, end = text.index("number 9 said"), text.index("number 10 said")
    whole = list(range(20))
    for place in range(begin, end - 60, 7):
        broken = damaged_at(text, place, instead)
        try:
            json.loads(broken)
        except ValueError:
            survivors = intact(salvaged(broken))
            lost = [number for number in whole if number not in survivors]
            assert set(lost) <= {9}, (place, broken[place - 40 : place + 40])


@pytest.mark.slow
@layouts
def test_damage_of_any_kind_loses_few_records(text: str) -> None:
    """Brackets, quotes and commas as well: two records at most, but for one time in twenty."""
    draw = random.Random(5)
    lost = []
    first = text.index("number 3 said")
    for _ in range(150):
        place = draw.randrange(first, len(text))
        broken = damaged_at(text, place, draw.choice(['"', "~", "{", "]", ""]), draw.randrange(20))
        try:
            json.loads(broken)
        except ValueError:
            lost.append(20 - len(intact(salvaged(broken))))
    assert len(lost) > 50
    assert sum(number > 2 for number in lost) <= len(lost) / 20


@layouts
def test_a_document_that_is_cut_off_keeps_its_beginning(text: str) -> None:
    for part in range(5, 20):
        place = len(text) * part // 20
        actual = salvaged(text[:place])
        complete = sum(text.index(f'"c{number}"') + 200 < place for number in range(20))
        survivors = intact(actual)
        assert survivors == list(range(len(survivors)))
        assert len(survivors) >= complete
        assert "cut off" in actual.problems[-1].message
        assert actual.problems[-1].place == f"line {text.count(chr(10), 0, place) + 1}"


def test_a_text_that_is_cut_off_keeps_its_beginning() -> None:
    actual = salvaged('{"messages": [{"role": "user", "content": "well begun is \\u00')
    assert actual.value == {"messages": [{"role": "user", "content": "well begun is "}]}
    assert salvaged('[{"a": 12, "b": 3').value == [{"a": 12}]
    assert salvaged('[{"a": 12}, {"b": tr').value == [{"a": 12}]
    assert salvaged('[{"a": 12}, {"b').value == [{"a": 12}]


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
    assert salvaged(text).value == value


def test_a_problem_names_the_line() -> None:
    text = LAYOUTS["pretty"].replace('"at": 9', '"at": ~~')
    (problem,) = salvaged(text).problems
    line = LAYOUTS["pretty"][: LAYOUTS["pretty"].index('"at": 9')].count("\n") + 1
    assert problem.place == f"line {line}"


def test_text_after_a_document_is_a_problem() -> None:
    actual = salvaged('{"a":\n[1]} {"b": 2}\n' + "x" * 5)
    assert actual.value == {"a": [1]}
    (problem,) = actual.problems
    assert problem.place == "line 2"
    assert "14 characters" in problem.message


def test_lone_surrogates_are_replaced() -> None:
    actual = salvaged('{"a": "\\ud800x", "b": {"\\udfff": "\\ud83d\\ude00"}, "c": ~}')
    assert actual.value == {"a": "\ufffdx", "b": {"\ufffd": "\U0001f600"}}


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"a":[['])
@pytest.mark.parametrize("closed", [True, False])
def test_deep_nesting_is_left_out(opening: str, closed: bool) -> None:
    closing = {"[": "]", '{"a":': "}", '{"a":[[': "]]}"}[opening]
    nest = opening * 10_000 + "1" + (closing * 10_000 if closed else "")
    actual = salvaged(f'{{"first": {{"x": 1}}, "deep": {nest}, "last": {{"y": 2}}}}')
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
def test_a_thousand_damages_in_a_big_file_are_read_past(indent: int | None) -> None:
    """Reading the rest anew after each of them would take an hour."""
    draw = random.Random(3)
    record = {"role": "user", "content": "word " * 60, "calls": [{"args": {"a": [1, {"b": 2}]}}]}
    text = json.dumps({"messages": [{**record, "at": n} for n in range(10_000)]}, indent=indent)
    broken = list(text)
    for place in draw.sample(range(100, len(text)), 1000):
        broken[place] = draw.choice('"~\0}')
    actual = salvaged("".join(broken))
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
    """Each of these would take hours if every beginning were followed to the end of the text."""
    actual = repair(text)
    assert actual is None or len(actual.problems) <= 202


PIECES = st.sampled_from(
    ['"', "\\", "{", "}", "[", "]", ":", ",", "\n", " ", "1", "-", "null", '"a"', '"b":', "~", "\0"]
)


@settings(max_examples=100)
@given(st.lists(PIECES, max_size=60).map("".join))
def test_any_sequence_of_json_tokens_is_read_or_refused(pieces: str) -> None:
    for beginning in ('{"a": ', "[{}, ", '[\n  {\n    "k": '):
        actual = repair(beginning + pieces)
        if actual is not None:
            json.dumps(actual.value).encode("utf-8")
            assert actual.value


RECORDS = [{"a": 1, "b": "x\u2028y}{"}, {"a": 2, "b": {"c": [1, 'a \\ and "b']}}, {"a": 3}]
WRITTEN = [json.dumps(record, ensure_ascii=False) for record in RECORDS]
SPLITS: dict[str, tuple[bytes, list[object]]] = {
    "lines": ("\n".join(WRITTEN).encode(), RECORDS),
    "CRLF and a mark": (("\ufeff" + "\r\n".join(WRITTEN)).encode(), RECORDS),
    "glued": ("".join(WRITTEN).encode(), RECORDS),
    "pretty": ("\n".join(json.dumps(each, indent=2) for each in RECORDS).encode(), RECORDS),
    "text sequence": ("".join(f"\x1e{each}\n" for each in WRITTEN).encode(), RECORDS),
    "events": (
        (": hello\n" + "".join(f"event: a\ndata: {each}\n\n" for each in WRITTEN)).encode(),
        RECORDS,
    ),
    "NUL bytes": (f"{WRITTEN[0]}\n".encode() + bytes(99) + WRITTEN[1].encode(), RECORDS[:2]),
    "UTF-16": ("\n".join(WRITTEN).encode("utf-16"), RECORDS),
    "behind a cut one": (f"{WRITTEN[0][:9]}{WRITTEN[1]}\n{WRITTEN[2]}".encode(), RECORDS[1:]),
    "cut end": (f"{WRITTEN[0]}\n{WRITTEN[1][:9]}".encode(), RECORDS[:1]),
    "no records": (b"a log that says {} now", []),
    "nothing": (b"", []),
    "too deep": (b"[" * 100_000, []),
}


@pytest.mark.parametrize(("data", "records"), SPLITS.values(), ids=SPLITS.keys())
def test_records_are_split_at_any_separator(data: bytes, records: list[object]) -> None:
    split = split_records(data)
    assert [json.loads(record) for record in split] == records
    assert not any(b"\n" in record for record in split)

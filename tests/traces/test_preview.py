"""Previews, unique keys, loading of JSON, content hashes and times."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.io.decoding import as_utf8, decode
from mast_tui.traces.io.json_values import (
    InvalidJSON,
    canonical_bytes,
    content_text,
    dump_text,
    load_json,
)
from mast_tui.traces.keys import UniqueKeys
from mast_tui.traces.model import PREVIEW_CHARS
from mast_tui.traces.preview import call_preview, preview
from mast_tui.traces.times import unix_seconds

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.text(max_size=600), st.integers(0, 700))
def test_a_preview_is_the_beginning_on_one_line(text: str, lead: int) -> None:
    line, is_complete = preview(text, lead)
    shown_text = text[lead:] if text[lead:].strip() else text
    folded = " ".join(shown_text.split())
    assert folded.startswith(line)
    assert len(line) == min(len(folded), PREVIEW_CHARS)
    assert is_complete == (line == " ".join(text.split()))


def test_a_preview_examines_only_the_beginning_of_a_text() -> None:
    class UnsplittableText(str):
        def split(self, *_args: object, **_kwargs: object) -> list[str]:
            raise AssertionError("the whole text was split")

    line, is_complete = preview(UnsplittableText("word " * 1_000_000))
    assert line.startswith("word word")
    assert not is_complete


def test_a_preview_of_text_after_long_blank_space_is_not_complete() -> None:
    line, is_complete = preview("seen" + " " * 100_000 + "unseen")
    assert line == "seen"
    assert not is_complete


@given(st.lists(st.sampled_from(["a", "a~2", "a~2~2", "b", ""])))
def test_repeated_keys_become_unique_and_others_stay(requested: list[str]) -> None:
    keys = UniqueKeys()
    unique: list[str] = []
    for request in requested:
        key = keys.take(request)
        assert key not in unique
        assert key == request if request not in unique else key.startswith(f"{request}~")
        unique.append(key)


def test_repeated_keys_are_numbered_from_two() -> None:
    keys = UniqueKeys()
    assert [keys.take("call_1:call") for _ in range(3)] == [
        "call_1:call",
        "call_1:call~2",
        "call_1:call~3",
    ]


@given(JSON)
def test_json_is_loaded_without_loss(value: object) -> None:
    assert load_json(json.dumps(value)) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_loaded_or_refused(data: bytes) -> None:
    try:
        value = load_json(data)
    except InvalidJSON:
        pass
    else:
        canonical_bytes(value).decode()
        dump_text(value).encode()
        content_text(value).encode()


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ('"a\\ud800b"', "a\ufffdb"),
        ('{"\\udfff": 1}', {"\ufffd": 1}),
        (b'"\xff"', "\ufffd"),
        ("123456789012345678901234567890", pytest.approx(123456789012345678901234567890)),
        ('\ufeff{"a": 1}', {"a": 1}),
    ],
)
def test_values_outside_strict_json_are_read(source: str | bytes, value: object) -> None:
    assert load_json(source) == value


@pytest.mark.parametrize("source", ["", "{", "[" * 100_000, "9" * 5000, '{"a": }'])
def test_unreadable_json_has_a_reason(source: str) -> None:
    with pytest.raises(InvalidJSON, match=r"\w"):
        load_json(source)


def test_the_content_hash_ignores_the_order_of_fields() -> None:
    assert canonical_bytes({"a": 1, "b": [2]}) == canonical_bytes({"b": [2], "a": 1})
    assert canonical_bytes({"a": 1}) != canonical_bytes({"a": 2})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("as it is\r\n", "as it is\r\n"),
        (["one", "two"], "one\ntwo"),
        ([{"type": "input_text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"type": "refusal", "refusal": "no"}], "no"),
        ([{"type": "image_url", "image_url": {"url": "data:…"}}], "[image_url]"),
        (7, "7"),
    ],
)
def test_content_of_every_shape_becomes_text(content: object, text: str) -> None:
    assert content_text(content) == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff\0")))
def test_text_in_any_unicode_encoding_is_read(encoding: str, text: str) -> None:
    data = text.encode(encoding)
    assert decode(data) == (text, None)
    assert as_utf8(data) == text.encode()


def test_the_first_badly_encoded_line_is_a_problem() -> None:
    text, problem = decode(b"good\nbad \xe9\nbad again \xe9\n")
    assert text == "good\nbad \ufffd\nbad again \ufffd\n"
    assert problem is not None
    assert problem.place == "line 2"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2026-02-23T11:41:38.500Z", 1771846898.5),
        ("2026-02-23T12:41:38.5+01:00", 1771846898.5),
        ("2026-02-23 11:41:38.500", 1771846898.5),
        (1771846898.5, 1771846898.5),
        (1771846898500, 1771846898.5),
        (1771846898500000000, 1771846898.5),
        ("1771846898.5", 1771846898.5),
        ("1771846898500", 1771846898.5),
        ("Mon, 23 Feb 2026 11:41:38 GMT", 1771846898),
        ("23 Feb 2026 12:41:38 +0100", 1771846898),
        (f"Mon, 23 Feb 2026 11:41:38 +{'9' * 20}", None),
        ("about 1771846898", None),
        (-1, None),
        (True, None),
        (None, None),
    ],
)
def test_times_become_unix_seconds(value: object, seconds: float | None) -> None:
    assert unix_seconds(value) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"command": ["bash", "-lc", "kubectl get pods"], "workdir": "/srv"}', "kubectl get pods"),
        ('{"cmd": "ls -la\\nwc"}', "ls -la wc"),
        ('{"order_id": "#W1", "count": 2}', "order_id=#W1 count=2"),
        ('{"command": 3}', "command=3"),
        ("{broken", "{broken"),
        ("{}", "{}"),
        ("*** Begin Patch", "*** Begin Patch"),
    ],
)
def test_a_call_preview_shows_its_arguments(arguments: str, expected: str) -> None:
    assert call_preview(arguments)[0] == expected

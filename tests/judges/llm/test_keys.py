"""Where the API key comes from, and its removal from texts."""

from __future__ import annotations

import base64
import string
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.judges.llm.client.keys import HIDDEN, LEAST_PART, NO_KEY, SHORTEST, find_key, scrub
from mast_tui.judges.llm.errors import RunStops

HERE = "http://127.0.0.1:8000/v1"
AWAY = "https://api.openai.com/v1"

letters = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
keys = st.text(letters, min_size=SHORTEST, max_size=60).filter(lambda key: key != NO_KEY)


def test_the_key_comes_from_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " sk-one\n")
    monkeypatch.setenv("LAB_KEY", "sk-two")
    assert (find_key(AWAY), find_key(HERE), find_key(AWAY, "LAB_KEY")) == (
        *("sk-one", "sk-one", "sk-two"),
    )
    monkeypatch.delenv("LAB_KEY")
    assert find_key(HERE, "LAB_KEY") == NO_KEY
    with pytest.raises(RunStops, match=r"api\.openai\.com.*LAB_KEY"):
        find_key(AWAY, "LAB_KEY")


@pytest.mark.parametrize("value", ["sk-a b", "sk-a\nX-Evil: 1", "sk-ä", "sk-\x7f"])
def test_an_impossible_key_is_refused_and_not_shown(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", value)
    with pytest.raises(RunStops, match="LAB_KEY") as caught:
        find_key(AWAY, "LAB_KEY")
    assert "sk-" not in str(caught.value)


@given(keys, st.text(max_size=40), st.text(max_size=40))
def test_a_key_is_removed_from_any_text(key: str, before: str, after: str) -> None:
    assert key not in scrub(f"{before}{key}{after}", key) or key in "[key]"


def test_escaped_signs_of_a_key_are_recognised() -> None:
    assert scrub(r"says sk\/ab now", "sk/ab") == "says [key] now"
    assert scrub("asked ?key=sk%2Fab%2Bc%3D now", "sk/ab+c=") == "asked ?key=[key] now"
    assert scrub(f"so {NO_KEY} it is", NO_KEY) == f"so {NO_KEY} it is"


# Disguises

real_keys = st.text(string.ascii_letters + string.digits + "-_", min_size=20, max_size=120).map(
    lambda tail: f"sk-{tail}"
)
parts = st.integers(LEAST_PART, 200)
BETWEEN: Final = " \n\x00\x1b\xad\u200b\u200d\u2060\ufeff\u3164\U000e0020"


def _in_base64(encode: Callable[[bytes], bytes], before: int) -> Callable[[str], str]:
    """Return an encoder to base64 in which so many bytes come before the text."""
    return lambda text: encode(b"\xf0" * before + text.encode()).decode()


WAYS: Final[dict[str, Callable[[str], str]]] = {
    "as it is": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "swapped case": str.swapcase,
    "URL": lambda text: quote(text, safe=""),
    "URL, every character": lambda text: "".join(f"%{ord(char):02X}" for char in text),
    "JSON": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "JSON in JSON": lambda text: "".join(f"\\\\u{ord(char):04X}" for char in text),
    "source code": lambda text: "".join(f"\\x{ord(char):02x}" for char in text),
    "HTML": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "HTML, hexadecimal": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "hex with spaces": lambda text: text.encode().hex(" "),
    "hex with colons": lambda text: text.encode().hex(":"),
    "hex of upper case": lambda text: text.upper().encode().hex(),
    **{f"base64 after {before} bytes": _in_base64(base64.b64encode, before) for before in range(3)},
    **{
        f"base64 for URLs after {before} bytes": _in_base64(base64.urlsafe_b64encode, before)
        for before in range(3)
    },
    "base64 in lines": _in_base64(base64.encodebytes, 0),
    **{f"{char!a} between": char.join for char in BETWEEN},
    "line breaks of JSON between": "\\n".join,
    "escaped marks between": "\\u200b".join,
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=15)
@given(key=real_keys, count=parts, start=st.integers(0, 120))
def test_encoded_keys_and_parts_of_keys_are_removed(
    way: str, key: str, count: int, start: int
) -> None:
    start = min(start, len(key) - LEAST_PART)
    part = key[start : start + count]
    disguised = WAYS[way](part)
    said = scrub(f"({disguised})", key)
    before, hidden, after = said.partition(HIDDEN)
    assert hidden
    # Of base64 the characters at the ends may also stand for what is beside the key.
    left = before.removeprefix("(") + after.removesuffix(")")
    spare = 8 if "base64" in way else 0
    assert len(left.strip()) <= spare
    assert spare or left == ""


@given(st.text(max_size=30), st.text(max_size=30))
def test_text_around_a_removed_key_is_kept(before: str, after: str) -> None:
    key = "sk-q7Zt2Lm9XcV4bN8rTyU1"
    before, after = f"{before}¶", f"¶{after}"
    text = f"{before}{key.upper()}{after}"
    assert scrub(text, key) == f"{before}{HIDDEN}{after}"


@given(st.text(string.ascii_letters + string.digits + " -_%\\u&#;\n", max_size=200))
def test_a_text_without_the_key_is_unchanged(text: str) -> None:
    assert scrub(text, "sk-q7Zt2Lm9XcV4bN8rTyU1") == text


def test_every_occurrence_is_removed_and_short_parts_are_kept() -> None:
    key = "sk-0123456789abcdefghij"
    assert scrub(key[: LEAST_PART - 1], key) == key[: LEAST_PART - 1]
    assert scrub(f"{key[:LEAST_PART]}…", key) == f"{HIDDEN}…"
    text = f"{key} {key.upper()}{key[:15]} x {key.encode().hex()}, {key[5:]}."
    assert scrub(text, key) == f"{HIDDEN} {HIDDEN} x {HIDDEN}, {HIDDEN}."


@given(st.text("ab-", min_size=SHORTEST, max_size=30), st.text("abAB- \n\u200b", max_size=60))
def test_a_key_with_repetitions_is_removed(key: str, text: str) -> None:
    said = scrub(f"{text}{key}{text}", key)
    assert key not in said

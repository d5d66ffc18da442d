"""The key: where it comes from, and that it leaves every text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.judges.llm.errors import RunStops
from mast_tui.judges.llm.keys import NO_KEY, SHORTEST, find_key, scrub

HERE = "http://127.0.0.1:8000/v1"
AWAY = "https://api.openai.com/v1"

letters = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
keys = st.text(letters, min_size=SHORTEST, max_size=60).filter(lambda key: key != NO_KEY)


def test_the_key_comes_from_the_variable_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " sk-one\n")
    monkeypatch.setenv("LAB_KEY", "sk-two")
    assert find_key(AWAY) == "sk-one"
    assert find_key(HERE) == "sk-one"
    assert find_key(AWAY, "LAB_KEY") == "sk-two"


def test_this_machine_needs_no_key_and_others_say_which_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    assert find_key(HERE, "LAB_KEY") == NO_KEY
    with pytest.raises(RunStops, match="LAB_KEY") as caught:
        find_key(AWAY, "LAB_KEY")
    assert "api.openai.com" in str(caught.value)


@pytest.mark.parametrize("value", ["sk-a b", "sk-a\nX-Evil: 1", "sk-ä", "sk-\x7f"])
def test_what_can_be_no_key_is_refused_without_being_shown(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", value)
    with pytest.raises(RunStops, match="LAB_KEY") as caught:
        find_key(AWAY, "LAB_KEY")
    assert "sk-" not in str(caught.value)


@given(keys, st.text(max_size=40), st.text(max_size=40))
def test_a_key_leaves_every_text_that_it_stands_in(key: str, before: str, behind: str) -> None:
    assert key not in scrub(f"{before}{key}{behind}", key) or key in "[key]"


def test_a_key_is_found_where_it_was_written_as_in_a_url() -> None:
    assert scrub("asked ?key=sk%2Fab%2Bc%3D now", "sk/ab+c=") == "asked ?key=[key] now"


@given(st.text(max_size=80))
def test_what_stands_for_no_key_is_no_secret(text: str) -> None:
    assert scrub(text, NO_KEY) == text


@given(st.text("ghpqrs-_XYZ", min_size=SHORTEST, max_size=60), st.data())
def test_a_key_that_is_escaped_in_json_leaves_the_text(key: str, data: st.DataObject) -> None:
    escaped = data.draw(st.lists(st.booleans(), min_size=len(key), max_size=len(key)))
    escaped[0] = True
    forms = (f"\\u{ord(c):04x}" if yes else c for c, yes in zip(key, escaped, strict=True))
    assert scrub(f"<{''.join(forms)}>", key) == "<[key]>"


def test_a_slash_of_a_key_may_be_escaped_in_its_own_way() -> None:
    assert scrub(r"says sk\/ab now", "sk/ab") == "says [key] now"

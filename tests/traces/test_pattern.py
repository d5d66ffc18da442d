"""Regular expressions in linear time with the matches of Python's ``re``."""

from __future__ import annotations

import re
from itertools import count

import pytest

from mast_tui.traces.search.pattern import SECONDS, InvalidPattern, Pattern
from mast_tui.traces.search.text_search import MOST_MATCHES


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("err(or)?", "an Error, an err\nand ERRORS"),
        ("Err", "an Error, an err"),
        (r"\S+@\W", "who@ there"),
        ("^b.*$", "a\nbcd\nbe"),
        ("x*", "aaxxaxa"),
        ("日.|🙂", "a日本 🙂"),
        (r"\d{3}", "404 1234567 ٣٤٥"),
        (r"\w+\s", "né 日本 x\u2003y\x1cz "),
        ("[[a]", "[a"),
        (r"b{,2}c\Z", "bbbc"),
    ],
)
def test_a_pattern_matches_where_python_matches(pattern: str, text: str) -> None:
    compiled = Pattern(pattern)
    flags = re.MULTILINE | (0 if pattern == "Err" else re.IGNORECASE)
    ranges = [m.span() for m in re.finditer(pattern, text, flags) if m.group()]
    assert ranges
    assert list(compiled.match_ranges(text)) == ranges
    assert compiled.count(text, tuple) == len(ranges)
    assert compiled.count("nothing", lambda: ("a row", text)) == 1


@pytest.mark.parametrize("text", ["(", "a{2,1}", "[z-a]", "*", "\\"])
def test_an_invalid_pattern_is_an_error(text: str) -> None:
    with pytest.raises(InvalidPattern, match=r"\w"):
        Pattern(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(?<=a)b", "is a look-around"),
        (r"(a)\1", "is a back-reference"),
        ("(?P<a>a)(?P=a)", "is a back-reference"),
        (r"\bé", "only with the letters a to z"),
        ("a++", "bad repetition"),
    ],
)
def test_unsupported_syntax_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InvalidPattern, match=message):
        Pattern(text)


def test_matching_is_linear_in_the_length_of_the_text() -> None:
    text = "a" * 200_000 + "!"
    assert Pattern("(a+)+$").count(text, tuple) == 0
    assert Pattern("(a|aa)+!").match_ranges(text) == [(0, 200_001)]


def test_searching_matches_stops_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = Pattern("a")
    text = "a" * 2 * MOST_MATCHES
    clock = "mast_tui.traces.search.pattern.monotonic"
    monkeypatch.setattr(clock, lambda: 0.0)
    assert len(pattern.match_ranges(text)) == MOST_MATCHES
    monkeypatch.setattr(clock, count(step=SECONDS / 4).__next__)
    assert len(pattern.match_ranges(text)) == 5


def test_lone_surrogates_and_nulls_are_matched_as_characters() -> None:
    assert Pattern("a.b").match_ranges("\ud800 a\0b") == [(2, 5)]
    assert Pattern("a.b").match_ranges("a\ud800b") == [(0, 3)]

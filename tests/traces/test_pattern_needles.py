"""Patterns in linear time with the matches of Python's ``re``, and their needles."""

from __future__ import annotations

import re
from itertools import count

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mast_tui.traces.byte_prefilter import Prefilter, folded
from mast_tui.traces.search.pattern import SECONDS, InvalidPattern, Pattern, literals_of
from mast_tui.traces.search.text_search import MOST_MATCHES, TextSearch
from tests.traces.rollouts import message, meta
from tests.traces.test_text_search import (
    FULL_PREVIEW,
    all_hits,
    rollout_bytes,
    rollout_of,
    rollouts,
)

PIECES = [
    "pod", "error", "k", "is", "0", "404", "é", "K", "ſ", " ", ".", "-", "_", r"\.", r"\d", r"\w+",
    r"\s", r"\b", r"\x65", r"\u0065", r"\101", r"\x{65}", r"\pL", r"\p{Greek}", "[a-z]", "[]x]",
    "[^]x]", r"[\]x]", "[(|)]", "*", "+", "?", "{2}", "{0,1}", "{1,}", "{", "}", "*?", "|", "(",
    ")", "(?:", "(?P<n>", "(?<m>", "(?i)", "(?-i)", "(?U)", "(?i:e)", "(?-i:", "^", "$", ".*",
    "step 3", "Error", "\\\\",
]  # fmt: skip
patterns = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join)
texts = st.lists(
    st.sampled_from(["pod", "podd", "error", "Error", "k", "\u212a", "İs", "is", "iſ", "404", "0",
                     "é", "step 3", "step  3", "e", "A", ":", "|", "]", "x", ".", "-", "\n", "\\",
                     "(", ")", "a", "#", " "]),
    max_size=8,
).map("".join)  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "needles"),
    [
        (r"kubectl get \w+ -n", ("kubectl get ",)),
        ("colou?r", ("colo",)),
        ("(pod|node) not ready", (" not ready",)),
        ("(?:timeout|refused)", ("timeout", "refused")),
        ("timeout|refused|", None),
        (r"\x41bc", ("bc",)),
        ("(?i)abc", None),
        ("a{2}bc", ("bc",)),
    ],
)
def test_the_needle_is_the_longest_text_of_every_match(
    pattern: str, needles: tuple[str, ...] | None
) -> None:
    assert literals_of(pattern, exact=True) == needles


def test_letters_with_several_cases_are_no_part_of_the_needle() -> None:
    assert literals_of("skipping", exact=False) == ("pp",)
    assert Pattern("skip").match_ranges("\u017f\u212aip")


@settings(max_examples=150)
@given(patterns, texts)
@example("ab{x", "ab{x")
def test_every_match_contains_the_needle(pattern: str, text: str) -> None:
    try:
        matcher = Pattern(pattern)
    except InvalidPattern:
        assume(False)
    needles = literals_of(pattern, exact=matcher.exact)
    if needles is not None and matcher.match_ranges(text):
        assert any(folded(needle) in folded(text) for needle in needles)


class Unfiltered(Pattern):
    """A pattern that is matched against every text."""

    @property
    def prefilter(self) -> Prefilter | None:
        return None


@given(
    rollouts(),
    st.sampled_from(
        ["er+or", "error|404", r"(step|é) \d", r"v1\.5", "1e2", "[0-9]+0", "null|no", r"k\w", "İ",
         "Error", r"a/b.*\d\d", r"100(\.0)?", "日本"]
    ),
    st.integers(0, 30),
)  # fmt: skip
def test_a_prefiltered_search_finds_the_same_hits(data: bytes, pattern: str, start: int) -> None:
    trace = rollout_of(data)[0]
    start = min(start, len(trace))
    filtered = TextSearch(trace, Pattern(pattern), start)
    assert all_hits(filtered, 600) == all_hits(TextSearch(trace, Unfiltered(pattern), start))


def test_most_lines_are_dropped_without_being_parsed() -> None:
    messages = [message("assistant", f"{FULL_PREVIEW} nothing {i}") for i in range(300)]
    messages[77] = message("assistant", f"{FULL_PREVIEW} the zebra-{77} runs")
    trace, _content, parser = rollout_of(rollout_bytes([meta(), *messages]))
    parser.texts_made = 0
    assert len(all_hits(TextSearch(trace, Pattern(r"zebra-\d+"), 0))) == 1
    assert parser.texts_made == 1


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

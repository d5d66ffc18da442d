"""Needles of patterns: texts of every match, which save most of the matching."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mast_tui.traces.byte_prefilter import Prefilter, folded
from mast_tui.traces.search.pattern import InvalidPattern, Pattern, literals_of
from mast_tui.traces.search.text_search import TextSearch
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

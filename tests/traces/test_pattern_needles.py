"""Needles of patterns: texts that every match holds, which spare most of the matching."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mast_tui.traces.byte_prefilter import Prefilter, folded
from mast_tui.traces.search.pattern import InvalidPattern, Pattern, literals_of
from mast_tui.traces.search.text_search import TextSearch
from tests.traces.rollouts import message, meta
from tests.traces.test_text_search import (
    BEHIND_PREVIEW,
    everything,
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
    ("pattern", "needs"),
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
def test_the_longest_text_that_every_match_holds(
    pattern: str, needs: tuple[str, ...] | None
) -> None:
    assert literals_of(pattern, exact=True) == needs


def test_letters_with_several_cases_are_no_part_of_the_needle() -> None:
    assert literals_of("skipping", exact=False) == ("pp",)
    assert Pattern("skip").match_ranges("\u017f\u212aip")


@settings(max_examples=150)
@given(patterns, texts)
@example("ab{x", "ab{x")
def test_every_match_holds_the_needle(pattern: str, text: str) -> None:
    try:
        matcher = Pattern(pattern)
    except InvalidPattern:
        assume(False)
    needs = literals_of(pattern, exact=matcher.exact)
    if needs is not None and matcher.match_ranges(text):
        assert any(folded(need) in folded(text) for need in needs)


class Unsifted(Pattern):
    """A pattern that has every text looked at."""

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
def test_a_prefiltered_search_finds_the_same(data: bytes, pattern: str, start: int) -> None:
    trace = rollout_of(data)[0]
    start = min(start, len(trace))
    sifted = TextSearch(trace, Pattern(pattern), start)
    assert everything(sifted, 600) == everything(TextSearch(trace, Unsifted(pattern), start))


def test_most_lines_are_dropped_without_being_parsed() -> None:
    said = [message("assistant", f"{BEHIND_PREVIEW} nothing {i}") for i in range(300)]
    said[77] = message("assistant", f"{BEHIND_PREVIEW} the zebra-{77} runs")
    trace, _content, parser = rollout_of(rollout_bytes([meta(), *said]))
    parser.made = 0
    assert len(everything(TextSearch(trace, Pattern(r"zebra-\d+"), 0))) == 1
    assert parser.made == 1

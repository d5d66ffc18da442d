"""What the panel says of a suggestion's judge and of the state of its evidence."""

from __future__ import annotations

import pytest

from mast_tui.labels import Evidence, Match, Target
from mast_tui.session import Suggestion
from mast_tui.ui.suggestion_words import MOST_OF_A_NAME, judge_name, source_words, warnings_on

KEYS = {"k3": 3, "k11": 11, "k13": 13}
RANGE = Target("k3", "k11")


def suggested(
    evidence: Evidence | None = None, *, judge: str = "judge:gpt@ab12cd34", decisive: bool = False
) -> Suggestion:
    return Suggestion("id", judge, "mode", RANGE, "because", 0.8, evidence, decisive or None)


def warnings(evidence: Evidence | None, *, decisive: bool = False) -> tuple[str, ...]:
    return warnings_on(suggested(evidence, decisive=decisive), KEYS.get)


@pytest.mark.parametrize("match", [None, Match.EXACT, Match.SPACING])
def test_words_that_stand_where_the_judge_said_need_no_word(match: Match | None) -> None:
    assert warnings(Evidence("k3", "words", 0, 5, match)) == ()
    assert warnings(None) == ()


def test_other_words_are_told() -> None:
    assert warnings(Evidence("k3", "words", 0, 5, Match.FUZZY)) == ("≈ quote found in other words",)


def test_a_mended_place_names_both_places() -> None:
    mended = Evidence("k13", "words", 0, 5, Match.EXACT, ("k11", "k11"))
    assert warnings(mended) == ("↷ place mended: the judge named #12, the words stand in #14",)
    spans = Evidence("k13", "words", 0, 5, Match.FUZZY, ("k3", "k11"))
    assert "named #4 to #12," in warnings(spans)[0]
    assert "other words" in warnings(spans)[1]
    gone = Evidence("k13", "words", 0, 5, None, ("k99\x1b[2J", "k99\x1b[2J"))
    assert "\x1b" not in warnings(gone)[0]


@pytest.mark.parametrize("key", ["k3", None])
def test_words_that_are_not_there_are_shown_with_a_sign_and_a_word(key: str | None) -> None:
    (line,) = warnings(Evidence(key, "made\nup\x1b[31m"))
    assert line == "✗ quote not in the trace: “made⏎up␛[31m”"


def test_decisive_is_told_beside_it() -> None:
    assert warnings(None, decisive=True) == ("! decisive for the outcome, says the judge",)
    assert len(warnings(Evidence(None, "no"), decisive=True)) == 2


def test_whose_it_is_how_sure_and_where() -> None:
    assert source_words(suggested(), KEYS.get) == "gpt@ab12cd34  0.80 · #4 to #12"


def test_a_long_name_keeps_its_prompt() -> None:
    name = judge_name(f"judge:{'vendor/model-' * 9}@ab12cd34")
    assert len(name) <= MOST_OF_A_NAME
    assert name.endswith("…@ab12cd34")
    assert judge_name("judge:rules@1") == "rules@1"

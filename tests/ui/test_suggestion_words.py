"""What the panel says of a suggestion's judge and of the state of its evidence."""

from __future__ import annotations

import pytest

from mast_tui.labels import Evidence, Match, Target
from mast_tui.session import Suggestion
from mast_tui.ui.suggestion_wording import (
    MAX_NAME_CHARS,
    SuggestionLine,
    judge_name,
    source_words,
    warnings_on,
)

KEYS = {"k3": 3, "k11": 11, "k13": 13}
RANGE = Target("k3", "k11")


def suggested(
    evidence: Evidence | None = None, *, judge: str = "judge:gpt@ab12cd34", decisive: bool = False
) -> Suggestion:
    return Suggestion("id", judge, "mode", RANGE, "because", 0.8, evidence, decisive or None)


def warnings(evidence: Evidence | None, *, decisive: bool = False) -> tuple[str, ...]:
    return tuple(line.text for line in lines(evidence, decisive=decisive))


def lines(evidence: Evidence | None, *, decisive: bool = False) -> tuple[SuggestionLine, ...]:
    return warnings_on(suggested(evidence, decisive=decisive), KEYS.get)


def lit(line: SuggestionLine) -> list[str]:
    return [line.text[start:end] for start, end in line.highlights]


@pytest.mark.parametrize("match", [None, Match.EXACT, Match.SPACING])
def test_words_that_stand_where_the_judge_said_need_no_word(match: Match | None) -> None:
    assert warnings(Evidence(key="k3", quote="words", char_start=0, char_end=5, match=match)) == ()
    assert warnings(None) == ()


def test_altered_words_are_named_and_lit_in_both_wordings() -> None:
    standing = "calculateQuote took 1846 ms,\n43 requests waiting"
    quoted = "calculateQuote took 1849 ms, 43\x1b requests not waiting"
    sign, judge, trace = lines(
        Evidence(
            key="k3",
            quote=standing,
            char_start=0,
            char_end=len(standing),
            match=Match.ALTERED,
            wording=quoted,
        )
    )
    assert sign == SuggestionLine("≠ altered: 1849 → 1846; “not” put in")
    assert judge.text == "judge: “calculateQuote took 1849 ms, 43␛ requests not waiting”"
    assert trace.text == "trace: “calculateQuote took 1846 ms,⏎43 requests waiting”"
    assert (lit(judge), lit(trace)) == (["1849", "not"], ["1846"])
    assert (judge.warns, trace.warns) == (False, False)


def test_of_many_altered_words_the_first_are_named() -> None:
    standing = " and ".join(f"part {n}" for n in range(1, 8))
    quoted = " and ".join(f"part {n}0" for n in range(1, 8))
    sign, judge, _ = lines(
        Evidence(
            key="k3", quote=standing, char_start=0, char_end=50, match=Match.ALTERED, wording=quoted
        )
    )
    assert sign.text == "≠ altered: 10 → 1; 20 → 2; 30 → 3; 40 → 4; and 3 more"
    assert len(judge.highlights) == 7


def test_of_long_wordings_what_stands_beside_the_differences_is_shown() -> None:
    same = "and the log went on and on and on without a word on it " * 4
    standing, quoted = f"{same}in 12 {same}by Ann {same}", f"{same}in 13 {same}by Bob {same}"
    sign, judge, trace = lines(
        Evidence(
            key="k3",
            quote=standing,
            char_start=0,
            char_end=len(standing),
            match=Match.ALTERED,
            wording=quoted,
        )
    )
    assert sign.text == "≠ altered: 13 → 12; Bob → Ann"
    assert (lit(judge), lit(trace)) == (["13", "Bob"], ["12", "Ann"])
    assert trace.text == (
        "trace: “[…] on and on without a word on it in 12 and the log went on and on and on "
        "[…] on and on without a word on it by Ann and the log went on and on and on […]”"
    )


def test_reworded_words_are_named_too() -> None:
    found = Evidence(
        key="k3",
        quote="the pods are fine",
        char_start=0,
        char_end=17,
        match=Match.REWORDED,
        wording="the pods were fine",
    )
    assert warnings(found) == (
        "≈ reworded: were → are",
        "judge: “the pods were fine”",
        "trace: “the pods are fine”",
    )


def test_parts_show_what_the_judge_wrote() -> None:
    found = Evidence(
        key="k3",
        quote="a b c d and e f g h",
        char_start=0,
        char_end=19,
        match=Match.IN_PARTS,
        wording="a b c d … e f g h",
    )
    assert warnings(found) == (
        "⋯ quote in parts: the text between them is left out",
        "judge: “a b c d … e f g h”",
    )


def test_an_altered_quote_in_parts_lights_no_words_that_were_left_out() -> None:
    standing = "it was called 12 times and went on and on until 7 of them failed"
    quoted = "it was called 12 times … until 9 of them failed"
    found = Evidence(
        key="k3", quote=standing, char_start=0, char_end=60, match=Match.ALTERED, wording=quoted
    )
    assert warnings(found)[0] == "≠ altered: 9 → 7"


@pytest.mark.parametrize("match", [Match.ALTERED, Match.REWORDED])
def test_a_wording_that_nobody_kept_is_not_shown(match: Match) -> None:
    (line,) = warnings(Evidence(key="k3", quote="words", char_start=0, char_end=5, match=match))
    assert line.endswith(f"{match} quote")


def test_a_quote_of_an_earlier_version_says_that_nobody_has_compared_its_words() -> None:
    assert warnings(
        Evidence(key="k3", quote="words", char_start=0, char_end=5, match=Match.FUZZY)
    ) == ("≈ quote found in other words, which were not compared",)


def test_a_mended_place_names_both_places() -> None:
    mended = Evidence(
        key="k13", quote="words", char_start=0, char_end=5, match=Match.EXACT, named=("k11", "k11")
    )
    assert warnings(mended) == ("↷ place moved: the judge named #12, the quote is in #14",)
    spans = Evidence(
        key="k13", quote="words", char_start=0, char_end=5, match=Match.FUZZY, named=("k3", "k11")
    )
    assert "named #4 to #12," in warnings(spans)[0]
    assert "other words" in warnings(spans)[1]
    gone = Evidence(
        key="k13",
        quote="words",
        char_start=0,
        char_end=5,
        match=None,
        named=("k99\x1b[2J", "k99\x1b[2J"),
    )
    assert "\x1b" not in warnings(gone)[0]


@pytest.mark.parametrize("key", ["k3", None])
def test_words_that_are_not_there_are_shown_with_a_sign_and_a_word(key: str | None) -> None:
    (line,) = warnings(Evidence(key=key, quote="made\nup\x1b[31m"))
    assert line == "✗ quote not in the trace: “made⏎up␛[31m”"


def test_decisive_is_told_beside_it() -> None:
    assert warnings(None, decisive=True) == ("! decisive for the outcome, says the judge",)
    assert len(warnings(Evidence(key=None, quote="no"), decisive=True)) == 2


def test_whose_it_is_how_sure_and_where() -> None:
    assert source_words(suggested(), KEYS.get) == "gpt@ab12cd34  0.80 · #4 to #12"


def test_a_long_name_keeps_its_prompt() -> None:
    name = judge_name(f"judge:{'vendor/model-' * 9}@ab12cd34")
    assert len(name) <= MAX_NAME_CHARS
    assert name.endswith("…@ab12cd34")
    assert judge_name("judge:rules@1") == "rules@1"

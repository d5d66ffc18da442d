"""The texts about the judge and the evidence of a suggestion."""

from __future__ import annotations

from typing import Any

import pytest

from mast_tui.labels import Evidence, Match, Target
from mast_tui.session import Suggestion
from mast_tui.ui.suggestion_wording import (
    MAX_NAME_CHARS,
    SuggestionLine,
    judge_name,
    suggestion_source_text,
    warnings_on,
)

KEYS = {"k3": 3, "k11": 11, "k13": 13}
RANGE = Target("k3", "k11")


def suggested(evidence: Evidence | None = None, *, decisive: bool = False) -> Suggestion:
    judge = "judge:gpt@ab12cd34"
    return Suggestion("id", judge, "mode", RANGE, "because", 0.8, evidence, decisive or None)


def quoted(quote: str = "words", match: Match | None = None, **more: Any) -> Evidence:
    """Return evidence in span #4 by default."""
    offsets = {"char_start": 0, "char_end": len(quote)}
    return Evidence(**{"key": "k3", "quote": quote, "match": match, **offsets, **more})


def warnings(evidence: Evidence | None, *, decisive: bool = False) -> tuple[str, ...]:
    return tuple(line.text for line in lines(evidence, decisive=decisive))


def lines(evidence: Evidence | None, *, decisive: bool = False) -> tuple[SuggestionLine, ...]:
    return warnings_on(suggested(evidence, decisive=decisive), KEYS.get)


def highlighted(line: SuggestionLine) -> list[str]:
    return [line.text[start:end] for start, end in line.highlights]


@pytest.mark.parametrize("match", [None, Match.EXACT, Match.SPACING])
def test_exact_quotes_have_no_warning(match: Match | None) -> None:
    assert (warnings(quoted(match=match)), warnings(None)) == ((), ())


def test_altered_words_are_named() -> None:
    stored = "calculateQuote took 1846 ms,\n43 requests waiting"
    wording = "calculateQuote took 1849 ms, 43\x1b requests not waiting"
    sign, judge, trace = lines(quoted(stored, Match.ALTERED, wording=wording))
    assert sign == SuggestionLine("≠ altered: 1849 → 1846; “not” put in")
    assert judge.text == "judge: “calculateQuote took 1849 ms, 43␛ requests not waiting”"
    assert trace.text == "trace: “calculateQuote took 1846 ms,⏎43 requests waiting”"
    assert (highlighted(judge), highlighted(trace)) == (["1849", "not"], ["1846"])
    assert (judge.warns, trace.warns) == (False, False)
    stored = " and ".join(f"part {n}" for n in range(1, 8))
    wording = " and ".join(f"part {n}0" for n in range(1, 8))
    sign, judge, _ = lines(quoted(stored, Match.ALTERED, wording=wording))
    assert sign.text == "≠ altered: 10 → 1; 20 → 2; 30 → 3; 40 → 4; and 3 more"
    assert len(judge.highlights) == 7
    same = "and the log went on and on and on without a word on it " * 4
    stored = f"{same}in 12 {same}by Ann {same}"
    wording = f"{same}in 13 {same}by Bob {same}"
    sign, judge, trace = lines(quoted(stored, Match.ALTERED, wording=wording))
    assert sign.text == "≠ altered: 13 → 12; Bob → Ann"
    assert (highlighted(judge), highlighted(trace)) == (["13", "Bob"], ["12", "Ann"])
    assert trace.text == (
        "trace: “[…] on and on without a word on it in 12 and the log went on and on and on "
        "[…] on and on without a word on it by Ann and the log went on and on and on […]”"
    )
    stored = "it was called 12 times and went on and on until 7 of them failed"
    wording = "it was called 12 times … until 9 of them failed"
    suggestion = quoted(stored, Match.ALTERED, wording=wording)
    assert warnings(suggestion)[0] == "≠ altered: 9 → 7"


def test_reworded_and_joined_quotes() -> None:
    suggestion = quoted("the pods are fine", Match.REWORDED, wording="the pods were fine")
    assert warnings(suggestion) == (
        "≈ reworded: were → are",
        "judge: “the pods were fine”",
        "trace: “the pods are fine”",
    )
    suggestion = quoted("a b c d and e f g h", Match.IN_PARTS, wording="a b c d … e f g h")
    assert warnings(suggestion) == (
        "⋯ quote in parts: the text between them is left out",
        "judge: “a b c d … e f g h”",
    )
    assert warnings(quoted(match=Match.FUZZY)) == (
        "≈ quote found in other words; the wordings were not compared",
    )


@pytest.mark.parametrize("match", [Match.ALTERED, Match.REWORDED])
def test_a_missing_wording_is_not_shown(match: Match) -> None:
    (line,) = warnings(quoted(match=match))
    assert line.endswith(f"{match} quote")


def test_a_moved_place_names_both_places() -> None:
    mended = quoted(match=Match.EXACT, key="k13", misnamed_spans=("k11", "k11"))
    assert warnings(mended) == ("↷ place moved: the judge named #12, the quote is in #14",)
    spans = quoted(match=Match.FUZZY, key="k13", misnamed_spans=("k3", "k11"))
    assert "named #4 to #12," in warnings(spans)[0]
    assert "other words" in warnings(spans)[1]
    gone = quoted(key="k13", misnamed_spans=("k99\x1b[2J", "k99\x1b[2J"))
    assert "\x1b" not in warnings(gone)[0]


@pytest.mark.parametrize("key", ["k3", None])
def test_missing_quotes_are_shown(key: str | None) -> None:
    (line,) = warnings(Evidence(key=key, quote="made\nup\x1b[31m"))
    assert line == "✗ quote not in the trace: “made⏎up␛[31m”"


def test_source_and_decisive_suggestions() -> None:
    assert warnings(None, decisive=True) == ("! decisive for the outcome, says the judge",)
    assert len(warnings(Evidence(key=None, quote="no"), decisive=True)) == 2
    assert suggestion_source_text(suggested(), KEYS.get) == "gpt@ab12cd34 · sure 80% · #4 to #12"
    name = judge_name(f"judge:{'vendor/model-' * 9}@ab12cd34")
    assert len(name) <= MAX_NAME_CHARS
    assert name.endswith("…@ab12cd34")
    assert judge_name("judge:rules@1") == "rules@1"

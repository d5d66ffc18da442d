"""Matching of quotes: comparison of wordings, and fuzzy search."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.judges.fuzzy_match import QuoteMatch, closest, find_part
from mast_tui.judges.word_comparison import WordLikeness, compare, word_count
from mast_tui.labels import Match


def differences(quote: str, text: str, *, in_parts: bool = False) -> list[tuple[str, str]]:
    """Return the altering differences in both wordings."""
    return [
        (quote[slice(*difference.quote_range)], text[slice(*difference.text_range)])
        for difference in compare(quote, text, in_parts=in_parts).differences
        if difference.alters_meaning
    ]


def test_equal_wordings() -> None:
    for quote, text in [
        ("It Failed, twice!", "it failed twice"),
        ("it's “done” - at last", 'it\'s "done" — at last'),
        ('a\\nb \\u2014 c \\"d\\"', 'a b — c "d"'),
        ("caf\\u00e9 au lait", "café au lait"),
        ("a < b & c", "a &lt; b &amp; c"),
        ("re-run the tool", "rerun the tool"),
        ("the name is here", "the **name** is [here](https://x.io/12)"),
        ("the name is here", 'the <span id="7">name</span> is here'),
        ("do not, can not, will not", "don't, cannot, won't"),
        ("1,234 of 5 %", "1234 of 5%"),
        ("ｆｕｌｌ ﬁle", "full file"),
        ("first second", "1. first\n2. second"),
        ("Ⅻ", "xii"),
        ("cafe\u0301 at I\u0307zmir", "caf\u00e9 at \u0130zmir"),
        ("✅ all tests passed", "✅ all tests passed"),
        ("all tests passed", "✅ all tests passed"),
        ("内存不足", "内存 不足"),
    ]:
        assert compare(quote, text).likeness is WordLikeness.SAME
        assert not compare(quote, text).differences


def test_reworded_wordings() -> None:
    for quote, text in [
        ("the pods were running", "the pods are running"),
        ("valkey refuses every write", "valkey refusing every write"),
        ("I saw [the agent] retry it", "I saw retry it"),
        ("and [the agent] will retry", "and I will retry"),
        ("restarted cart service twice", "restarted the cart service twice"),
        ("the perfromance was fine", "the performance was fine"),
        ("it queries them", "it query them"),
        ("I read it, saw the error and left", "I read it, also saw the error and left"),
    ]:
        assert compare(quote, text).likeness is WordLikeness.REWORDED
        assert not differences(quote, text)


def test_altered_wordings() -> None:
    for quote, text, expected in [
        ("took 1849 ms", "took 1846 ms", [("1849", "1846")]),
        ("took 15 s in all", "took 1.5 s in all", [("15", "1.5")]),
        ("24K views", "2.4K views", [("24K", "2.4K")]),
        ("fell by -5 in all", "fell by 5 in all", [("-5", "5")]),
        ("paid 5 % of it", "paid 5 of it", [("%", "")]),
        ("it is not healthy", "it is healthy", [("not", "")]),
        ("it is healthy", "it isn't healthy", [("", "isn't")]),
        ("it works without it", "it works with it", [("without", "with")]),
        ("a valid answer", "an invalid answer", [("a valid", "an invalid")]),
        ("if ready then go", "if !ready then go", [("", "!")]),
        ("where a > b holds", "where a < b holds", [(">", "<")]),
        ("x == 1", "x != 1", [("==", "!=")]),
        ("asked Maria again", "asked Mario again", [("Maria", "Mario")]),
        ("calls getUsers now", "calls getUser now", [("getUsers", "getUser")]),
        ("reads conf_a.toml", "reads conf_b.toml", [("conf_a", "conf_b")]),
        ("it passed the test", "it failed the test", [("passed", "failed")]),
        ("the first almost failed", "the first failed", [("almost", "")]),
        ("the first failed", "the first almost failed", [("", "almost")]),
        ("Ann gave Bob it", "Bob gave Ann it", [("Ann", "Bob"), ("Bob", "Ann")]),
        ("was [not] done", "was done", [("not", "")]),
        ("ran [3] times", "ran times", [("3", "")]),
        ("❌ all tests", "✅ all tests", [("❌", "✅")]),
        ("内存充足", "内存不足", [("充", "不")]),
        *(("read the orders of it", f"read the {word} orders of it", [("", word)]) for word in (
            *("not", "no", "last", "all", "some", "only", "failed", "invalid", "unpaid", "two"),
            *("12", "Ohio", "order_id", "possible", "almost", "open", "missing", "most"),
            *("fake", "cancelled", "expired", "simulated", "pending", "stale", "dry", "recent"),
        )),
        ("they said that they read the orders", "they also said that they read the recent orders",
         [("", "recent")]),
    ]:  # fmt: skip
        assert compare(quote, text).likeness is WordLikeness.ALTERED
        assert differences(quote, text) == expected


def test_edges_gaps_and_signs() -> None:
    text = "so said they: all three pods are running (as it seems)"
    comparison = compare("all three pods", text)
    assert comparison.likeness is WordLikeness.SAME
    assert text[comparison.start : comparison.end] == "all three pods"
    # A small word too much at an edge may have its counterpart further out, behind a ``not``.
    assert compare("has been satisfied", "been satisfied").likeness is WordLikeness.ALTERED
    # What an ellipsis leaves out is no difference in parts.
    quote = "the tool failed … and gave up"
    text = "the tool failed 12 times and gave up"
    assert compare(quote, text, in_parts=True).likeness is WordLikeness.SAME
    assert differences(quote, text) == [("", "12 times")]
    quote = "the tool failed … and went on"
    assert differences(quote, text, in_parts=True) == [("went on", "gave up")]
    assert compare("--- ***", "---  ***").likeness is WordLikeness.SAME
    assert compare("---", "***").likeness is WordLikeness.ALTERED
    assert word_count("in deployment.yaml, don't") == 5
    assert word_count("内存不足 now") == 5  # sign by sign, where no blanks part them


@given(st.text(max_size=80))
def test_any_text_equals_itself(text: str) -> None:
    comparison = compare(text, text)
    assert comparison.likeness is WordLikeness.SAME
    assert (comparison.start, comparison.end) == (0, len(text))


@given(st.text(max_size=60), st.text(max_size=60))
def test_differences_are_ordered_ranges_of_both_texts(quote: str, text: str) -> None:
    comparison = compare(quote, text)
    for full_text, ranges in (
        (quote, [difference.quote_range for difference in comparison.differences]),
        (text, [difference.text_range for difference in comparison.differences]),
    ):
        offsets = [offset for text_range in ranges for offset in text_range]
        assert offsets == sorted(offsets)
        assert all(0 <= offset <= len(full_text) for offset in offsets)
    assert 0 <= comparison.start <= comparison.end <= len(text)


# Fuzzy search


REPORT = """\
I checked the pods of the cart service again.
All three are running, although valkey still refuses
every write: OOM command not allowed when used memory > 'maxmemory'.
So the cart is not healthy, and I will raise the limit — 内存不足 😀 — before I close this.
"""


def test_absent_and_joined_words_are_not_found() -> None:
    for quote in ["the database was migrated without any loss", "healthz", "three running"]:
        for text in (REPORT, ""):
            assert closest(text, quote, Match.REWORDED) is None
    assert closest("this is the latest of them", "a test", Match.REWORDED) is None
    text = "foo ( bar , baz , qux , quux , more )"
    assert closest(text, "foo(bar, baz, qux, quux, more)", Match.REWORDED) == QuoteMatch(
        0, len(text), Match.SPACING
    )


LONG = "".join(f"step {n}: the answer was {n * n} and the queue went on\n" for n in range(200))


def test_a_long_quote_is_compared_as_a_whole() -> None:
    quote = LONG[500:3500].replace("queue went", "queues went")
    match = closest(LONG, quote, Match.REWORDED)
    assert match == QuoteMatch(500, 3499, Match.REWORDED)
    for old, new in ((" 900 ", " 901 "), ("step 40: the answer was", "step 40: nobody asked")):
        altered = closest(LONG, LONG[500:3500].replace(old, new, 1), Match.REWORDED)
        assert altered == QuoteMatch(500, 3499, Match.ALTERED)
    made_up = "words that nobody has ever written down in any place of this text, not one " * 4
    assert closest(LONG, f"{LONG[500:650]}{made_up}{LONG[950:1100]}", Match.REWORDED) is None


def test_markup_case_and_punctuation_are_ignored() -> None:
    for text, quote in [
        ("It said: **All done** in [the log](http://x.io/a?b=1) now", "All done in the log now"),
        ("| name | state |\n|---|---|\n| cart | failing again |", "name state cart failing again"),
        ("see <b class='x'>all of</b> these three words", "see all of these three words"),
        ("It Has Been Done – “at last”, OK?", 'it has been done - "at last" ok.'),
        ("Straße und GROSSE Häuser in İzmir", "strasse und grosse häuser in i̇zmir"),
    ]:
        match = find_part(f"x1 {text} y2", quote, Match.SPACING)
        assert match is not None
        matched = f"x1 {text} y2"[match.start : match.end]
        assert matched in text
        assert find_part(text, f"{quote} and more", Match.SPACING) is None

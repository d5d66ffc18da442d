"""Fuzzy search of quotes in texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.judges.fuzzy_match import (
    JoinedTexts,
    QuoteMatch,
    closest,
    find_part,
    letters,
    parts,
    readings,
)
from mast_tui.judges.word_comparison import with_plain_signs
from mast_tui.labels import Match

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
    place = closest(LONG, quote, Match.REWORDED)
    assert place == QuoteMatch(500, 3499, Match.REWORDED)
    for said, stands in ((" 900 ", " 901 "), ("step 40: the answer was", "step 40: nobody asked")):
        altered = closest(LONG, LONG[500:3500].replace(said, stands, 1), Match.REWORDED)
        assert altered == QuoteMatch(500, 3499, Match.ALTERED)
    made_up = "words that nobody has ever written down in any place of this text, not one " * 4
    assert closest(LONG, f"{LONG[500:650]}{made_up}{LONG[950:1100]}", Match.REWORDED) is None


def test_wrappings_of_a_quote_are_removed_step_by_step() -> None:
    for quote, barest in [
        ("plain words", "plain words"),
        ('  "wrapped words"\n', "wrapped words"),
        ("`“wrapped twice”`", "wrapped twice"),
        ("```json\nfenced words\n```", "fenced words"),
        ("#12: numbered words", "numbered words"),
        ("[span #12] numbered words", "numbered words"),
        ("[0a1b2c3d #12] tool call | shell\nwords below", "words below"),
        (r"\"escaped\"\twords", '"escaped"\twords'),
        ("Assistant: spoken words", "spoken words"),
        ("**Tool result:** spoken words", "spoken words"),
        ("a &lt;b&gt; &amp; c", "a <b> & c"),
        ("'", "'"),
        ("#1 priority", "#1 priority"),
    ]:
        assert readings(quote)[0] == quote.strip()
        assert readings(quote)[-1] == barest


@given(st.text())
def test_readings_are_stripped_and_not_empty(quote: str) -> None:
    assert all(reading and reading == reading.strip() for reading in readings(quote))
    assert bool(readings(quote)) == bool(quote.strip())


def test_a_quote_is_split_at_its_gaps_and_nowhere_else() -> None:
    for between in [
        " … ",
        "...",
        " [...] ",
        "\n[… 1,234,567 characters left out …]\n",
        "\n[0a1b2c3d #7] log\n",
    ]:
        assert parts(f"…first words{between}second words{between}") == (
            "first words",
            "second words",
        )
    assert parts("see [abc] and #7 or 1.2.3") == ("see [abc] and #7 or 1.2.3",)


@given(st.text("ab“”’—–\\n\t \U0001f600", max_size=80))
def test_plain_signs_keep_offsets(text: str) -> None:
    assert len(with_plain_signs(text)) == len(text)
    assert letters(text) == "".join(map(letters, with_plain_signs(text)))


def test_markup_case_and_punctuation_are_ignored() -> None:
    for text, quote in [
        ("It said: **All done** in [the log](http://x.io/a?b=1) now", "All done in the log now"),
        ("| name | state |\n|---|---|\n| cart | failing again |", "name state cart failing again"),
        ("see <b class='x'>all of</b> these three words", "see all of these three words"),
        ("It Has Been Done – “at last”, OK?", 'it has been done - "at last" ok.'),
        ("Straße und GROSSE Häuser in İzmir", "strasse und grosse häuser in i̇zmir"),
    ]:
        place = find_part(f"x1 {text} y2", quote, Match.SPACING)
        assert place is not None
        found = f"x1 {text} y2"[place.start : place.end]
        assert found in text
        assert find_part(text, f"{quote} and more", Match.SPACING) is None


@given(st.lists(st.text("abc \n", max_size=30), min_size=1, max_size=6).filter(any), st.data())
def test_places_in_joined_texts_map_to_one_text(texts: list[str], data: st.DataObject) -> None:
    together = JoinedTexts(enumerate(texts))
    start = data.draw(st.integers(0, len(together.text) - 1))
    end = data.draw(st.integers(start + 1, len(together.text)))
    found = together.locate(QuoteMatch(start, end, Match.REWORDED))
    if found is None:
        assert not together.text[start:end].strip("\0")
        return
    index, last, place = found
    assert last in (index, index + 1)
    words = together.text[start:end].strip("\0").partition("\0")[0]
    assert texts[index][place.start : place.end] == words

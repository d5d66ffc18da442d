"""Walking over words, for marking a quote by keys."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from mast_tui.ui.text.layout import QuoteCursor, next_word, previous_word, word_at

texts = st.text(st.sampled_from("ab1_é界 .,()\n\t"), max_size=200)
WORD = re.compile(r"\w+|[^\w\s]+")


def words_of(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in WORD.finditer(text)]


@given(texts)
@example("word " + " " * 3000 + "word")
@example("x" * 3000 + " y")
def test_going_forward_visits_every_word_and_going_back_too(text: str) -> None:
    words = words_of(text)
    forward = []
    word = next_word(text, 0)
    while word is not None:
        forward.append(word)
        word = next_word(text, word[1])
    assert forward == words
    backward = []
    word = previous_word(text, len(text))
    while word is not None:
        backward.append(word)
        word = previous_word(text, word[0])
    assert backward == words[::-1]


@given(texts, st.data())
def test_the_word_at_a_place_holds_it_or_comes_next(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    behind = [word for word in words_of(text) if word[1] > offset]
    assert word_at(text, offset) == (behind[0] if behind else None)


@given(texts, st.integers(-5, 205))
def test_any_place_may_be_asked_for(text: str, offset: int) -> None:
    found = word_at(text, offset)
    assert found is None or text[found[0] : found[1]].strip()


@given(texts, st.data())
def test_a_quote_covers_all_words_from_its_first_to_the_cursor(
    text: str, data: st.DataObject
) -> None:
    words = words_of(text)
    if not words:
        return
    word = st.sampled_from(words)
    begin, *path = data.draw(st.lists(word, min_size=1, max_size=6))
    loose = QuoteCursor(begin, begin)
    for step in path:
        loose = loose.at(step)
    assert (loose.start, loose.end) == [begin, *path][-1]
    fixed = loose.fix()
    for step in path:
        fixed = fixed.at(step)
        both = sorted([loose.head, step])
        assert (fixed.start, fixed.end) == (both[0][0], max(both[0][1], both[1][1]))


def test_a_motion_that_finds_no_word_leaves_the_quote() -> None:
    quote = QuoteCursor((2, 4), (5, 9), True)
    assert quote.at(None) == quote

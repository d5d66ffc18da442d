"""The target of a label, and the words of a quote."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from mast_tui.labels import WHOLE_TRACE, Target
from mast_tui.ui.annotate.state import PLAIN, Selection, target_of
from mast_tui.ui.text.layout import QuoteCursor, next_word, previous_word, word_at
from mast_tui.ui.trace_view.folding import FoldedRun
from tests.ui.build import SmallTrace

TRACE = SmallTrace(*(f"step {n}: nothing new" for n in range(10)))
places = st.integers(0, 9)


def target(selection: Selection, cursor: int, fold: FoldedRun | None = None) -> Target:
    return target_of(selection, TRACE, cursor, fold, TRACE.text(cursor))


@given(places, places)
def test_targets_of_selections(begun: int, cursor: int) -> None:
    span_target = Target(f"k{cursor}", f"k{cursor}")
    assert PLAIN.is_plain
    assert (target(PLAIN, cursor), target(Selection(whole_trace=True), cursor)) == (
        span_target,
        WHOLE_TRACE,
    )
    quote = target(Selection(quote=QuoteCursor((5, 6), (8, 15), True)), cursor)
    assert quote == Target(span_target.first, span_target.last, f"{cursor}: nothing", 5, 15)
    selection = Selection(range_from=begun)
    assert not selection.is_plain
    low, high = sorted((begun, cursor))
    assert selection.span_range(cursor) == (low, high)
    assert target(selection, cursor) == Target(f"k{low}", f"k{high}")


def test_targets_on_folds() -> None:
    assert target(PLAIN, 4, FoldedRun(2, 8, 2)) == Target("k2", "k7")
    assert target(Selection(range_from=1), 4, FoldedRun(2, 8, 2)) == Target("k1", "k4")


texts = st.text(st.sampled_from("ab1_é界 .,()\n\t"), max_size=200)
WORD = re.compile(r"\w+|[^\w\s]+")


def words_of(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in WORD.finditer(text)]


@given(texts)
@example("word " + " " * 3000 + "word")
@example("x" * 3000 + " y")
def test_words_are_visited_forward_and_backward(text: str) -> None:
    bounds = words_of(text)
    forward = []
    word = next_word(text, 0)
    while word is not None:
        forward.append(word)
        word = next_word(text, word[1])
    assert forward == bounds
    backward = []
    word = previous_word(text, len(text))
    while word is not None:
        backward.append(word)
        word = previous_word(text, word[0])
    assert backward == bounds[::-1]


@given(texts, st.integers(-5, 205))
def test_the_word_at_an_offset_contains_it_or_follows(text: str, offset: int) -> None:
    bounds = word_at(text, offset)
    if 0 <= offset <= len(text):
        later = [word for word in words_of(text) if word[1] > offset]
        assert bounds == (later[0] if later else None)
    assert bounds is None or text[bounds[0] : bounds[1]].strip()


@given(texts, st.data())
def test_a_quote_covers_the_words_to_the_cursor(text: str, data: st.DataObject) -> None:
    bounds = words_of(text)
    if not bounds:
        return
    word = st.sampled_from(bounds)
    begin, *path = data.draw(st.lists(word, min_size=1, max_size=6))
    loose = QuoteCursor(begin, begin)
    assert loose.at(None) == loose
    for step in path:
        loose = loose.at(step)
    assert (loose.start, loose.end) == [begin, *path][-1]
    fixed = loose.begun_at_cursor()
    for step in path:
        fixed = fixed.at(step)
        both = sorted([loose.head, step])
        assert (fixed.start, fixed.end) == (both[0][0], max(both[0][1], both[1][1]))

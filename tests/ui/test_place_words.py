"""Places in a trace in a few words."""

from __future__ import annotations

from mast_tui.labels import WHOLE_TRACE, Target
from mast_tui.ui.wording import QUOTE_CHARS, place_words
from tests.ui.build import SmallTrace

INDEX_OF = SmallTrace("a", "b", "c", "d").index_of


def test_spans_are_counted_from_one() -> None:
    assert place_words(Target("k0", "k0"), INDEX_OF) == "#1"
    assert place_words(Target("k1", "k3"), INDEX_OF) == "#2 to #4"
    assert place_words(WHOLE_TRACE, INDEX_OF) == "the whole trace"


def test_a_span_that_is_not_here_goes_by_its_key_made_fit_for_display() -> None:
    assert place_words(Target("gone\x1b", "k1"), INDEX_OF) == "gone␛ to #2"


def test_a_quote_stands_before_its_place_where_asked_for() -> None:
    target = Target("k1", "k1", "retry\n" + "x" * 100, 0, 106)
    words = place_words(target, INDEX_OF)
    assert words.startswith("“retry⏎x")
    assert words.endswith("…” in #2")
    assert len(words) == QUOTE_CHARS + len("“” in #2")
    assert place_words(target, INDEX_OF, quoted=False) == "#2"

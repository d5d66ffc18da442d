"""The bounded cache of recently used spans."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.index.lines import LruCache

MAX_CHARS = 20
STEPS = st.lists(st.tuples(st.integers(0, 8), st.text("x", max_size=30)), max_size=60)


@given(STEPS)
def test_only_the_latest_items_are_cached(steps: list[tuple[int, str]]) -> None:
    cache = LruCache(MAX_CHARS, len)
    latest: dict[int, str] = {}
    for index, text in steps:
        cache.add(index, text)
        latest.pop(index, None)
        latest[index] = text
        actual = {number: value for number in latest if (value := cache.get(number)) is not None}
        assert actual[index] == text
        assert all(latest[number] == value for number, value in actual.items())
        assert len(actual) == 1 or sum(map(len, actual.values())) <= MAX_CHARS


def test_recently_used_items_are_cached_longer() -> None:
    cache: LruCache[str] = LruCache(2)
    cache.add(1, "first")
    cache.add(2, "second")
    assert cache.get(1) == "first"
    cache.add(3, "third")
    assert (cache.get(1), cache.get(2), cache.get(3)) == ("first", None, "third")

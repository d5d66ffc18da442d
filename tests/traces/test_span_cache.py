"""The bounded cache of recently used spans."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.index.lines import LruCache

ROOM = 20
STEPS = st.lists(st.tuples(st.integers(0, 8), st.text("x", max_size=30)), max_size=60)


@given(STEPS)
def test_only_the_latest_items_are_kept(
    steps: list[tuple[int, str]],
) -> None:
    kept = LruCache(ROOM, len)
    latest: dict[int, str] = {}
    for index, text in steps:
        kept.add(index, text)
        latest.pop(index, None)
        latest[index] = text
        actual = {number: value for number in latest if (value := kept.get(number)) is not None}
        assert actual[index] == text
        assert all(latest[number] == value for number, value in actual.items())
        assert len(actual) == 1 or sum(map(len, actual.values())) <= ROOM


def test_recently_used_items_are_kept_longer() -> None:
    kept: LruCache[str] = LruCache(2)
    kept.add(1, "first")
    kept.add(2, "second")
    assert kept.get(1) == "first"
    kept.add(3, "third")
    assert (kept.get(1), kept.get(2), kept.get(3)) == ("first", None, "third")

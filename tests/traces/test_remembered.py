"""What is kept of spans that were looked at: the latest, within its room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.index.lines import LruCache

ROOM = 20
STEPS = st.lists(st.tuples(st.integers(0, 8), st.text("x", max_size=30)), max_size=60)


@given(STEPS)
def test_what_was_added_last_is_kept_and_no_more_than_there_is_room_for(
    steps: list[tuple[int, str]],
) -> None:
    kept = LruCache(ROOM, len)
    latest: dict[int, str] = {}
    for index, text in steps:
        kept.add(index, text)
        latest.pop(index, None)
        latest[index] = text
        found = {number: value for number in latest if (value := kept.get(number)) is not None}
        assert found[index] == text
        assert all(latest[number] == value for number, value in found.items())
        assert len(found) == 1 or sum(map(len, found.values())) <= ROOM


def test_what_was_asked_for_stays_longer() -> None:
    kept: LruCache[str] = LruCache(2)
    kept.add(1, "first")
    kept.add(2, "second")
    assert kept.get(1) == "first"
    kept.add(3, "third")
    assert (kept.get(1), kept.get(2), kept.get(3)) == ("first", None, "third")

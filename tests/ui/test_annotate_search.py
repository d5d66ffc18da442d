"""Search on the annotate screen: matches, patterns, and their order."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.search.text_search import pattern_in
from mast_tui.ui.annotate.search import Hits, matcher_for
from tests.ui.stage import Stage, stage, write_trace

TWICE = "The pod fails. Another pod fails. No third one does."


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    """Five spans; #2 and #4 name pods, twice and once."""
    texts = ["Look into it.", TWICE, "Thinking …", "That pod is fine.", "Done."]
    return write_trace(
        tmp_path / "pods.json", [{"role": "assistant", "content": text} for text in texts]
    )


def marked_texts(on: Stage) -> list[str]:
    view = on.annotate.span_view
    return [view.text[h.start : h.end] for h in view.highlights if h.name == "match"]


async def positions_after(on: Stage, *keys: str) -> list[tuple[int, str]]:
    seen = []
    for key in keys:
        await on.press(key)
        seen.append((on.number, on.message.partition(": ")[2].partition(" ·")[0]))
    return seen


async def test_matches_are_counted_and_visited(pods: Path) -> None:
    async with stage(pods) as on:
        await on.press("/", *"pod", "enter")
        assert marked_texts(on) == ["pod", "pod"]
        assert await positions_after(on, "n", "n", "n", "N", "N", "N") == [
            (2, "2 of 3"),
            (4, "3 of 3"),
            (2, "1 of 3"),
            (4, "3 of 3"),
            (2, "2 of 3"),
            (2, "1 of 3"),
        ]
        await on.press("escape", "g")
        await on.press("/", *"pod", "enter", "G", "n")
        assert (on.number, "1 of 3" in on.message) == (2, True)
        await on.press("G", "N")
        assert (on.number, "3 of 3" in on.message) == (4, True)
        await on.press("escape", "g")
        await on.press("/", *"pod", "enter", "G", "k")
        assert str(on.annotate.timeline.border_subtitle) == "“pod” · 3 matches"
        await on.press("escape")
        assert not on.annotate.timeline.border_subtitle
        await on.press("g")
        await on.press("j", "j", "/", *"pod")
        assert on.number == 4
        assert "3 of 3" in on.message
        # What is typed further is looked for from where one stood, not from what was found.
        await on.press(*" f")
        assert on.number == 2
        await on.press("backspace", "backspace")
        assert on.number == 4
        await on.press("enter", "j", "/", *"x", "backspace", *"pod")
        assert on.number == 2
        await on.press("escape")
        assert on.number == 5


async def test_texts_of_timeline_rows_are_found(tmp_path: Path) -> None:
    function = {"name": "get_pods", "arguments": '{"namespace": "shop"}'}
    calls = [{"id": "c", "type": "function", "function": function}]
    path = write_trace(
        tmp_path / "call.json",
        [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": calls}],
    )
    async with stage(path) as on:
        await on.press("/", *"namespace=shop", "enter")
        assert (on.number, "1 of 1" in on.message) == (2, True)
        await on.press("escape", "g", "/", *"get_p", "enter")
        assert (on.number, "1 of 1" in on.message) == (2, True)


async def test_regular_expressions(pods: Path) -> None:
    async with stage(pods) as on:
        for keys in (("/", *"/p.d .a/"), ("ctrl+t", *"p.d .a")):
            await on.press(*keys)
            assert on.number == 2
            assert "/p.d .a/: 1 of 2" in on.message
            assert marked_texts(on) == ["pod fa", "pod fa"]
            await on.press("enter", "n")
            assert "2 of 2" in on.message
            await on.press("escape", "g")
        await on.press("ctrl+t", *"p.d", "escape", "/", *"p.d")
        assert on.lines[-1].strip() == "No span contains “p.d” · Esc leaves"
        await on.press("escape", "g")
        await on.press("ctrl+t", *"po(")
        assert "Not a regular expression yet: missing )" in on.message
        assert not on.annotate.state.hits
        await on.press(*"d|x)")
        assert "1 of 3" in on.message
        # The same once more as plain text.
        await on.press("ctrl+t")
        assert "No span contains “po(d|x)”" in on.message


async def test_another_trace_has_no_search(pods: Path, tmp_path: Path) -> None:
    other = write_trace(tmp_path / "z.json", [{"role": "user", "content": "a pod"}])
    async with stage(pods, other) as on:
        await on.press("enter", "/", *"pod", "enter", ">")
        assert on.annotate.state.needle == ""
        assert not on.annotate.state.hits
        assert marked_texts(on) == []


def test_text_between_slashes_is_a_pattern() -> None:
    assert (pattern_in("/a.b/", False), pattern_in("a.b", True)) == ("a.b", "a.b")
    assert [pattern_in(typed, False) for typed in ("a.b", "/", "//", "/etc")] == [None] * 4
    assert matcher_for("a.b", False).count("a.b axb", tuple) == 1


@given(st.dictionaries(st.integers(0, 40), st.integers(1, 5)), st.integers(0, 41))
def test_hits_are_counted_in_reading_order(times: dict[int, int], start: int) -> None:
    hits = Hits(start)
    order = sorted(times)
    hits.add((i, times[i]) for i in order if i >= start)
    hits.add((i, times[i]) for i in order if i < start)
    assert list(hits.indices) == order
    assert hits.total == sum(times.values())
    assert [hits.match_count(i) for i in range(42)] == [times.get(i, 0) for i in range(42)]
    ranks = [hits.rank(i, nth) for i in order for nth in range(times[i])]
    assert ranks == list(range(1, hits.total + 1))
    for position in range(42):
        if order:
            assert hits.next_to(position, 1) == next((i for i in order if i > position), order[0])
            earlier = [i for i in order if i < position]
            assert hits.next_to(position, -1) == (earlier or order)[-1]


async def test_a_pattern_with_much_backtracking_is_found(tmp_path: Path) -> None:
    texts = ["a" * 60 + "!", "aaa", "a" * 70 + "!"]
    path = write_trace(tmp_path / "a.json", [{"role": "user", "content": t} for t in texts])
    async with stage(path) as on:
        await on.press(*"//(a+)+$/", "enter")
        assert on.number == 2
        assert "1 of 1" in on.message


async def test_a_search_is_kept_while_labelling(pods: Path) -> None:
    async with stage(pods) as on:
        await on.press("/", *"pod", "enter", "n", "1", "3", "n", "n")
        assert (on.labels, (on.number, "1 of 3" in on.message)) == ({("1.3", 2, 2)}, (2, True))
        await on.press("escape", "g")
        on.annotate.timeline.rows.grow(2)
        await on.press("/", *"fine", "enter")
        assert on.number == 4

"""The timeline: filters, folds, sub-agents, and the cursor."""

from __future__ import annotations

from pathlib import Path

from tests.ui.stage import SMALL, Stage, call, missing, stage, write_trace
from tests.ui.test_sub_agents import CALL, RESULT, ListedTrace, Step


def numbers(on: Stage) -> list[int]:
    timeline = on.annotate.timeline
    return [timeline.rows.index_at(row) + 1 for row in range(timeline.row_count)]


async def test_the_cursor_of_a_filtered_timeline(small: Path) -> None:
    async with stage(small) as on:
        timeline = on.annotate.timeline
        await on.press(":", *"9", "enter")
        timeline.set_filter([1, 8, 11])
        await on.press()
        assert timeline.is_filtered
        assert (numbers(on), on.number) == ([2, 9, 12], 9)
        assert "restart it now" in on.text
        await on.press("j", "1", "3")
        assert on.labels == {("1.3", 12, 12)}
        timeline.set_filter(None)
        await on.press()
        assert not timeline.is_filtered
        assert (numbers(on), on.number) == (list(range(1, 13)), 12)
        await on.undo_all()
        await on.press(":", *"9", "enter")
        on.annotate.timeline.set_filter([1, 9])
        await on.press()
        assert on.number == 10
        assert "#10 tool call" in on.text
        on.annotate.timeline.set_filter([1, 5, 9])
        await on.press()
        assert on.number == 10
        on.annotate.timeline.set_filter(None)
        await on.undo_all()
        await on.press(":", *"9", "enter")
        on.annotate.timeline.set_filter([])
        await on.press("j", "G", "space", "1", "3")
        assert on.labels == {("1.3", 9, 9)}
        on.annotate.timeline.set_filter(None)
        await on.press("j")
        assert on.number == 10
        await on.undo_all()
        on.annotate.timeline.set_filter([1, 8])
        await on.press(":", *"9", "enter")
        assert on.annotate.timeline.is_filtered
        await on.press(":", *"7", "enter")
        assert not on.annotate.timeline.is_filtered
        assert on.number == 7


async def test_repeated_steps_are_marked_and_folded(small: Path) -> None:
    async with stage(small) as on:
        timeline = on.annotate.timeline
        timeline.show_trace(on.trace, reads_to_end=True)
        assert timeline.pause_reading()  # while the file is checked for new spans
        timeline.look_for_repeats()
        timeline.resume_reading()
        await on.press()
        assert on.row(3).rstrip().endswith("3× in a row")
        assert "repeated" not in on.row(5)
        await on.press(":", *"6", "enter", "space")
        assert "×2 the same again" in on.text
        assert "3×" not in on.row(3)
        await on.press("space")
        assert on.annotate.timeline.row_count == 12
        assert on.row(3).rstrip().endswith("3× in a row")
        await on.press("g")
        await on.press("j", "j", "space")
        on.annotate.timeline.set_filter([4, 5, 8])
        await on.press()
        assert numbers(on) == [5, 6, 9]
        await on.press("space")
        assert "while only some spans are shown" in on.message
        on.annotate.timeline.set_filter(None)
        await on.press()
        assert on.annotate.timeline.row_count == 7 + 2
        await on.press("g", "j", "j", "space")
        await on.press(":", *"11", "enter", "1", "3", "k", "space")
        assert numbers(on) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]
        assert not missing(on.row(10), "⋮ 1 step", "1.3 ●")
        await on.press("space")
        assert len(numbers(on)) == 12
        assert "⋮" not in on.row(10)
        await on.press("G", "space")
        assert "no sub-steps" in on.message


async def test_a_long_run_is_folded(tmp_path: Path) -> None:
    steps = [call(number, "look", '{"at": 1}') for number in range(5000)]
    path = write_trace(tmp_path / "long.json", [*SMALL[:2], *steps, SMALL[-1]])
    async with stage(path) as on:
        await on.press(":", *"2500", "enter", "space")
        assert (numbers(on), on.number) == ([1, 2, 3, 4, 5003], 4)


async def test_similar_steps_are_folded_and_read_one_by_one(tmp_path: Path) -> None:
    long = "a long text that no row of the timeline can show as a whole " * 9
    steps = [call(number, "read", f'{{"page": {number}, "of": "{long}"}}') for number in range(6)]
    path = write_trace(tmp_path / "near.json", [*steps, SMALL[-1]])
    async with stage(path) as on:
        await on.press("space")
        assert "#1 to #6: nearly equal steps, 6×" in on.message
        assert "×5 nearly the same again" in on.text
        await on.press("G")
        await on.press("D")
        assert "Not read: #2 to #6" in on.text


async def test_steps_of_a_sub_agent_are_folded(tmp_path: Path) -> None:
    trace = ListedTrace(
        Step("u1"),
        Step("c1:call", CALL),
        *(Step(f"t1/{n}", parent="c1:call", agent="helper") for n in range(5)),
        Step("c1:result", RESULT, parent="c1:call"),
        Step("u2"),
    )
    async with stage(write_trace(tmp_path / "small.json")) as on:
        on.annotate.timeline.show_trace(trace)
        await on.press("j", "j", "space")
        assert numbers(on) == [1, 2, 3, 8, 9]
        assert not missing(on.text, "⋮ ", "5 steps of helper (#3 to #7)")
        await on.press("space", "k", "space")
        assert numbers(on) == [1, 2, 9]
        assert "⋮ 6 steps of helper" in on.row(2)


async def test_unfolding_keeps_the_line_of_the_cursor(tmp_path: Path) -> None:
    steps = [call(number, "look", '{"at": 1}') for number in range(300)]
    path = write_trace(tmp_path / "long.json", [*SMALL, *steps, *SMALL])
    async with stage(path) as on:
        timeline = on.annotate.timeline
        await on.press(":", *"200", "enter", "space", "j", "j")
        for _ in range(2):
            line = timeline.cursor - round(timeline.scroll_y)
            number = on.number
            await on.press("k", "k", "space", "j", "j", "k", "k")
            await on.press("space", "j", "j")
            assert (timeline.cursor - round(timeline.scroll_y), on.number) == (line, number)

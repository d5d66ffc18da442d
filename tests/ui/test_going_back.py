"""Jumps back and forth, saved positions, and the title and hints of a trace."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.ui.context import TraceLocation
from mast_tui.ui.trace_view.timeline import Trail
from tests.ui.settle import settle
from tests.ui.stage import SMALL, finding, missing, read_trace, stage, suggest, write_trace


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_the_trail_goes_back_and_forth(jumps: list[int]) -> None:
    trail = Trail()
    position = 0
    passed = [0]
    for target in jumps:
        trail.record_jump(position, target)
        if abs(target - position) > 1:
            passed.append(target)
        position = target
    end = position
    back = []
    while (earlier := trail.back(position)) is not None:
        position = earlier
        back.append(position)
        assert len(back) <= len(jumps) + 1
    assert position == 0 or abs(position) < 2
    forth = []
    while (later := trail.forward(position)) is not None:
        position = later
        forth.append(position)
        assert len(forth) <= len(jumps) + 1
    assert position == end or not back


async def test_keys_go_back_and_forth_between_jumps(small: Path, workspace: Path) -> None:
    trace = read_trace(small)
    suggest(workspace, trace, [finding(trace, "1.3", 8, 8)])
    async with stage(small, workspace=workspace) as on:
        await on.press("]")
        assert on.number == 8
        await on.press(":", *"3", "enter")
        await on.press("/", *"restarted", "enter")
        assert on.number == 11
        await on.press("g", "G")
        seen = []
        for _ in range(6):
            await on.press("h")
            seen.append(on.number)
        assert (seen, on.message) == ([1, 11, 3, 8, 1, 1], "No earlier position")
        await on.press("I", "I", "ctrl+o", "I")
        assert on.number == 3
        # A new jump forgets what was ahead; single steps are no jumps.
        await on.press("j", "j", "G", "I")
        assert (on.number, on.message) == (12, "No later position")
        await on.press("h")
        assert on.number == 5


async def test_labels_from_the_list_and_from_any_pane(small: Path) -> None:
    async with stage(small) as on:
        await on.press("1", "3", "j", "j", "j", "j", "M", "enter")
        assert on.number == 1
        await on.press("h")
        assert on.number == 5
        await on.undo_all()
        for panes in (1, 2):
            await on.press("g", *["tab"] * panes, "v", "j", "j", "1", "3")
            assert on.annotate.focused is on.annotate.timeline
            assert on.labels == {("1.3", 1, 3)}
            await on.press("u", *["tab"] * panes, "escape")
            assert on.annotate.focused is on.annotate.timeline


async def test_a_long_title_is_cut_before_the_number_of_spans(tmp_path: Path) -> None:
    path = write_trace(tmp_path / f"{'replay__marshmallow-code__' * 4}.json")
    async with stage(path, size=(80, 24)) as on:
        assert not missing(on.lines[0], "12 spans", "replay__marsh", "…")


async def test_the_count_of_finished_traces_follows_undo(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_trace(tmp_path / "set" / f"{name}.json", task=name)
    async with stage(tmp_path / "set", workspace=tmp_path / "w.db") as on:
        await on.press("enter")
        await on.press("j")
        await on.press("D")
        assert "1 of 2 finished" in on.lines[0]
        await on.press("u")
        assert "0 of 2 finished" in on.lines[0]
        await on.press("U", "r", "1", "3")
        counted = on.lines[0]
        await on.press("u")
        assert "1 of 2 finished" in on.lines[0]
        await on.press("U")
        assert on.lines[0] == counted


async def test_blind_annotators_see_no_keys_of_suggestions(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json")
    trace = read_trace(path)
    suggest(tmp_path / "w.db", trace, [finding(trace, "1.3", 5, 5)])
    async with stage(path, blind=True, workspace=tmp_path / "w.db", welcomed=False) as on:
        assert "Welcome" in on.text
        assert "next suggestion" not in on.text
        await on.press("space", "space")
        assert "Welcome" not in on.text
        assert "suggestion" not in on.lines[-1]
        assert "label" in on.lines[-1]
        await on.press("D", "j", "r", "y", "j")
        assert "] suggestion" in on.lines[-1]


async def test_a_trace_opens_at_the_saved_position(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace) as on:
        assert on.number == 1
        await on.press(":", *"9", "enter")
        on.annotate.arrival.save_position()
        await on.press()
    async with stage(small, workspace=workspace) as on:
        assert on.number == 9
    async with stage(small, workspace=workspace, annotator="bob") as on:
        assert on.number == 1


async def test_a_move_prevents_the_jump_to_the_saved_position(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db") as on:
        await on.press("G")
        arrival = on.annotate.arrival
        arrival.save_position()
        await on.press("g", "j")
        arrival.begin_trace()
        on.app.writes.do(partial(arrival.go_to_saved_position, on.session))
        await settle(on.pilot)
        assert on.number == 2
        arrival.go_to(TraceLocation("a", key="/messages/9/later", position=40))
        assert on.number == 2
        write_trace(small, [*SMALL, *SMALL, *SMALL, *SMALL])
        on.annotate.show_trace(read_trace(small))
        arrival.go_to(TraceLocation("a", key="/messages/9/later", position=40))
        assert on.number == 41

"""Two runs side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from mast_tui.traces.alignment import Likeness
from mast_tui.ui.dialogs.finder import ChoiceList, FinderDialog
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.ui.services.open_workspace import remember_welcome
from mast_tui.ui.side_by_side import SideBySideScreen
from mast_tui.ui.widgets.bars import HintBar
from tests.ui.settle import settle
from tests.ui.stage import SMALL, Message, Stage, call, result, stage, write_trace
from tests.ui.test_looks import WIDE, Compare, app

OTHERWISE: tuple[Message, ...] = (
    *SMALL[:8],
    {"role": "assistant", "content": "The second pod crashes. I look at its log, as nothing may"},
    call(4, "logs", '{"pod": "checkout-2"}'),
    result(4, "OOMKilled"),
    {"role": "assistant", "content": "The second pod lacks memory: raise its limit."},
)
"""The run that restarts nothing, though that was forbidden."""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A failed run, one of the same task that succeeded, and one of another task."""
    folder = tmp_path / "runs"
    write_trace(folder / "failed.json", SMALL)
    write_trace(folder / "right.json", OTHERWISE)
    write_trace(folder / "a-other.json", [{"role": "user", "content": "Water the plants."}])
    (folder / "outcomes.csv").write_text(
        "trace,outcome\nfailed.json,failed\nright.json,succeeded\n", "utf-8"
    )
    return folder


async def side_by_side(on: Stage, *keys: str) -> SideBySideScreen:
    """Press keys in the library; put the run under the cursor beside the first that is offered."""
    await on.press(*keys, "=")
    assert isinstance(on.app.screen, FinderDialog)
    await on.press("enter")
    screen = on.screen(SideBySideScreen)
    await on.until(lambda: not screen.has_class("-empty"))
    await on.pilot.pause()
    return screen


async def test_runs_of_one_task_are_aligned(runs: Path, tmp_path: Path) -> None:
    async with stage(runs, workspace=tmp_path / "w.db") as on:
        await on.press("j", "=")
        offered = [choice.name for choice in on.app.screen.query_one(ChoiceList).choices]
        assert offered == ["right.json", "a-other.json"]
        await on.press("escape")
        screen = await side_by_side(on)
        pair = screen.main_list.pair
        assert pair is not None
        assert (pair.a, pair.b) == (8, 8)
        assert "- The second pod crashes. I restart it now." in screen.detail.text
        assert "+ The second pod crashes. I look at its log" in screen.detail.text
        about = str(screen.query_one("#about").render())
        assert "They diverge at A #9 and B #9. Before it 4 of 4 actions are the same" in about
        await on.press("]")
        assert screen.main_list.cursor == 9
        await on.press("g", "]")
        assert screen.main_list.cursor == 8
        await on.press("[")
        assert screen.main_list.cursor == 8
        await on.press("G", "f")
        assert screen.main_list.cursor == 8


async def test_either_run_opens_at_its_step(runs: Path, tmp_path: Path) -> None:
    async with stage(runs, workspace=tmp_path / "w.db") as on:
        await on.press("j")
        screen = await side_by_side(on)
        for key, name in (("enter", "failed.json"), ("o", "right.json")):
            await on.press(key)
            assert (on.trace.path.name, on.number) == (name, 9)
            await on.press("escape")
            assert on.app.screen is screen
        await on.press("escape")
        assert isinstance(on.app.screen, LibraryScreen)


async def test_a_step_of_one_run_alone(runs: Path, tmp_path: Path) -> None:
    write_trace(runs / "right.json", OTHERWISE[:10])
    async with stage(runs, workspace=tmp_path / "w.db") as on:
        await on.press("j")
        screen = await side_by_side(on)
        await on.press("G")
        pair = screen.main_list.pair
        assert pair is not None
        assert pair.likeness is Likeness.ONLY_A
        assert screen.detail.text == "Done: the checkout is fast again."
        await on.press("o")
        assert on.app.screen is screen
        assert "B has no step here" in on.app.screen.query_one(HintBar).message


async def test_outcomes_are_hidden_from_blind_annotators(runs: Path, tmp_path: Path) -> None:
    async with stage(runs, workspace=tmp_path / "w.db", blind=True) as on:
        await on.press("j")
        screen = await side_by_side(on)
        heading = str(screen.query_one("#heading").render())
        assert "failed.json" in heading
        assert "succeeded" not in heading
        assert "· failed" not in heading


async def test_one_run_alone_has_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    write_trace(folder / "one.json")
    async with stage(folder, workspace=tmp_path / "w.db") as on:
        await on.press("=")
        assert isinstance(on.app.screen, LibraryScreen)
        assert "no other run" in on.app.screen.query_one(HintBar).message


def test_two_runs_side_by_side(runs: Path, snap_compare: Compare) -> None:
    remember_welcome()
    opened = app(runs, workspace=runs.parent / "w.db")

    async def go_there(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await side_by_side(Stage(opened, pilot), "j")

    assert snap_compare(opened, terminal_size=WIDE, run_before=go_there)

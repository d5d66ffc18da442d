"""The last line: what fits, help always, and every hint under the mouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.ui.dialogs.help import HelpScreen
from tests.ui.stage import stage, write_trace


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The small trace."""
    return write_trace(tmp_path / "small.json")


@pytest.mark.parametrize("width", [30, 60, 80, 120, 200])
async def test_the_way_to_help_is_always_there(small: Path, width: int) -> None:
    async with stage(small, size=(width, 24)) as on:
        assert on.lines[-1].rstrip().endswith("? help")
        await on.press("1", "3")
        assert on.lines[-1].rstrip().endswith("? help")
        assert len(on.lines[-1]) == width
        await on.pilot.click(on.annotate.hints, offset=(width - 4, 0))
        await on.press()
        assert isinstance(on.app.screen, HelpScreen)


async def test_a_hint_is_done_by_a_click(small: Path) -> None:
    async with stage(small) as on:
        at = on.lines[-1].index("v range")
        await on.pilot.click(on.annotate.hints, offset=(at + 3, 0))
        await on.press("j", "1", "3")
        assert on.labels == {("1.3", 1, 2)}
        # What stands before the hints now is no hint.
        await on.pilot.click(on.annotate.hints, offset=(3, 0))
        await on.press("2", "6")
        assert ("2.6", 2, 2) in on.labels


async def test_a_first_digit_is_answered_by_all_that_may_follow(small: Path) -> None:
    async with stage(small, size=(80, 24)) as on:
        await on.press("2")
        for digit in "123456":
            assert f"  {digit} " in on.lines[-1]
        assert len(on.lines[-1].rstrip()) <= 80

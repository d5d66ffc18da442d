"""Where one stands in a trace that is opened again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from mast_tui.ui.context import TraceLocation
from tests.ui.settle import settle
from tests.ui.stage import SMALL, read_trace, stage, write_trace


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace of twelve spans."""
    return write_trace(tmp_path / "a.json")


async def test_a_trace_is_opened_again_where_one_was(trace: Path, tmp_path: Path) -> None:
    place = tmp_path / "w.db"
    async with stage(trace, workspace=place) as on:
        assert on.number == 1
        await on.press(":", *"9", "enter")
        on.annotate.arrival.save_position()
    async with stage(trace, workspace=place) as on:
        assert on.number == 9
    async with stage(trace, workspace=place, annotator="bob") as on:
        assert on.number == 1


async def test_it_is_kept_when_another_trace_is_opened(tmp_path: Path) -> None:
    write_trace(tmp_path / "runs" / "a.json")
    write_trace(tmp_path / "runs" / "b.json", SMALL[:3])
    async with stage(tmp_path / "runs", workspace=tmp_path / "w.db") as on:
        await on.press("enter", "G")
        last = on.number
        assert last > 1
        await on.press("}")
        assert on.number == 1
        await on.press("{")
        assert on.number == last


async def test_who_has_moved_on_is_left_there(trace: Path, tmp_path: Path) -> None:
    async with stage(trace, workspace=tmp_path / "w.db") as on:
        await on.press("G")
        arrival, opened = on.annotate.arrival, on.app.opened
        assert opened is not None
        arrival.save_position()
        await on.press("g", "j")
        arrival.begin()
        on.app.writes.do(partial(arrival.go_to_saved_position, opened))
        await settle(on.pilot)
        assert on.number == 2


async def test_a_span_is_gone_to_once_it_is_known(trace: Path, tmp_path: Path) -> None:
    async with stage(trace, workspace=tmp_path / "w.db") as on:
        arrival = on.annotate.arrival
        arrival.go_to(TraceLocation("a", key="/messages/9/later", position=40))
        assert on.number == 1
        write_trace(trace, [*SMALL, *SMALL, *SMALL, *SMALL])
        on.annotate.show_trace(read_trace(trace))
        arrival.go_to(TraceLocation("a", key="/messages/9/later", position=40))
        assert on.number == 41

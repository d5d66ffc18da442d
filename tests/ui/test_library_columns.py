"""The columns of the library, and its title."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.ui.library.trace_list import LibraryList, LibraryRow
from mast_tui.ui.widgets.virtual_lines import row_strip
from tests.ui.settle import settle
from tests.ui.stage import SMALL, Stage, missing, stage, write_trace

MODEL = "anthropic/claude-sonnet-4-20250514"


def library(on: Stage) -> LibraryScreen:
    return on.screen(LibraryScreen)


async def titles(on: Stage, table: LibraryList, *rows: LibraryRow) -> list[str]:
    table.show(rows)
    await on.pilot.pause()
    return table.heading().split()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A trace by a model of a long name."""
    write_trace(tmp_path / "runs" / "a.json", model=MODEL)
    return tmp_path / "runs"


async def test_columns_without_values_are_hidden(runs: Path, tmp_path: Path) -> None:
    async with stage(runs, workspace=tmp_path / "w.db") as on:
        assert MODEL in on.text
        table = library(on).table
        with_task = LibraryRow(trace_id="y", name="y", task_id="7", trial="3", finished_by=("bob",))
        assert {"task", "trial", "finished"} <= {*await titles(on, table, with_task)}
        assert not {"task", "trial", "finished"} & {
            *await titles(on, table, LibraryRow(trace_id="x", name="x", model="m"))
        }


async def test_numbers_are_never_cut(runs: Path, tmp_path: Path) -> None:
    async with stage(runs, workspace=tmp_path / "w.db") as on:
        table = library(on).table
        row = LibraryRow(
            trace_id="x",
            name="n" * 40,
            system="s" * 14,
            model="m" * 18,
            outcome="succeeded",
            spans=123456789,
            labels=1234567,
        )
        for width in (20, 30, 39, 43, 50, 54, 60, 70, 80):
            await on.pilot.resize_terminal(width, 24)
            await settle(on.pilot)
            assert on.app.size.width == width
            table.show([row])  # nothing is awaited, as the library may list its own rows again
            line = table.render_row(0, table.lines_area.width).text
            numbers = [word for word in line.split() if word.strip("●◌+").isdigit()]
            assert set(numbers) <= {"123456789", "●1234567"}
            assert "123456789" in numbers
            assert len(table.heading()) <= table.lines_area.width


def test_a_cut_row_ends_with_an_ellipsis() -> None:
    parts = [Segment("12 "), Segment("345"), Segment(" ")]
    for width, expected in ((4, "12 …"), (5, "12 3…"), (6, "12 345"), (8, "12 345  ")):
        assert row_strip(parts, width, Style()).text == expected


async def test_equal_runs_are_marked(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    texts = [
        f"I look at the {name} of the checkout, and it is as slow there."
        for name in ("log", "disk", "net")
    ]
    steps = [SMALL[0], *({"role": "assistant", "content": text} for text in texts), SMALL[-1]]
    write_trace(folder / "a.json", steps)
    (folder / "b.json").write_text(json.dumps({"history": steps, "question": SMALL[0]["content"]}))
    async with stage(folder, workspace=tmp_path / "w.db") as on:
        screen = library(on)
        await on.until(lambda: all(row.same_as for row in screen.table.rows))
        assert [row.same_as for row in screen.table.rows] == [("b.json",), ("a.json",)]
        await on.until(lambda: not missing(on.text, "a.json ≡", "≡ The same run as b.json"))


@pytest.mark.parametrize("width", [80, 200])
async def test_names_use_free_columns_while_traces_are_read(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    drawn: list[str] = []
    render_row = LibraryList.render_row

    def render_and_record(table: LibraryList, row: int, cells: int) -> Strip:
        strip = render_row(table, row, cells)
        drawn.append(strip.text)
        return strip

    monkeypatch.setattr(LibraryList, "render_row", render_and_record)
    async with stage(runs, workspace=tmp_path / "w.db", size=(width, 24)) as on:
        screen = library(on)
        table = screen.table
        name = f"{'5d0080c' * 4}.json"
        # The list comes on screen with its first row, and is drawn before it hears of its size.
        table.show(())
        table.display = False
        await on.pilot.pause()
        drawn.clear()
        table.show((LibraryRow(trace_id="x", name=name, spans=44, complete=False),))
        table.display = True
        heading = str(table.heading_line.content)
        table.render_row(0, width - 1)
        await on.pilot.pause()
        assert drawn
        assert all(name in text for text in drawn)
        assert heading.rstrip() == table.heading().rstrip()


async def test_the_title_counts_matches_and_unread_files(runs: Path, tmp_path: Path) -> None:
    write_trace(runs / "b0b1.json")
    (runs / "bad.json").write_text('{"a":,}')
    async with stage(runs, workspace=tmp_path / "w.db") as on:
        assert "Library · 2 traces · 1 file not read" in on.text
        await on.press("/", *"b1.json")
        assert "Library · 1 of 2 traces" in on.lines[0]
        assert "no exact match" not in on.lines[0]
        await on.press(*["backspace"] * 7, *"bb1")
        assert "Library · 1 of 2 traces, no exact match" in on.lines[0]
        table = on.screen(LibraryScreen).table
        row = table.row
        await on.press("enter", "escape")  # all are shown again, with the cursor where it was
        assert (len(table.rows), table.cursor, table.row) == (2, 1, row)

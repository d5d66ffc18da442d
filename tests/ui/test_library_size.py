"""The cost of many traces in the library, counted in rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.scan import scanning
from mast_tui.ui.library import screen as library
from mast_tui.ui.library import trace_list as library_rows
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.ui.library.trace_list import LibraryRow
from mast_tui.ui.services import trace_catalog as catalog
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_scan import CachedTraces, FilesRead
from tests.ui.settle import settle
from tests.ui.stage import Stage, stage, write_runs
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("every_frame")


@pytest.fixture
def row_counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts of the rows that the library makes and of its queries to the workspace."""
    counts: Counter[str] = Counter()
    original = library_rows.row_of
    ask = OpenWorkspace.library_view

    def counted(trace: Trace, *arguments: object, **fields: object) -> LibraryRow:
        counts["rows"] += 1
        return original(trace, *arguments, **fields)  # type: ignore[arg-type]

    def asked(opened: OpenWorkspace) -> object:
        counts["asked"] += 1
        return ask(opened)

    monkeypatch.setattr("mast_tui.ui.library.screen.row_of", counted)
    monkeypatch.setattr(OpenWorkspace, "library_view", asked)
    return counts


def library_screen(on: Stage) -> LibraryScreen:
    return on.screen(LibraryScreen)


def listed_names(on: Stage) -> list[str]:
    return [row.name.removesuffix(".json") for row in library_screen(on).table.rows]


async def test_the_first_frame_shows_cached_traces(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(runs):
        pass
    (runs / "run-2.json").unlink()
    write_runs(runs, "run-20")
    gate = threading.Event()
    walk = scanning.Scan.__iter__

    def wait_and_walk(self: scanning.Scan) -> Iterator[FileReport]:
        assert gate.wait(PATIENCE)
        return walk(self)

    monkeypatch.setattr(scanning.Scan, "__iter__", wait_and_walk)
    async with stage(runs, settled=False) as on:
        await on.until(lambda: isinstance(on.app.screen, LibraryScreen) and listed_names(on))
        assert listed_names(on) == [f"run-{number}" for number in range(11)]
        await on.until(lambda: "checking …" in on.lines[0])
        gate.set()
        await settle(on.pilot)
        assert listed_names(on) == [f"run-{n}" for n in range(21) if n != 2 and (n < 11 or n == 20)]
        assert "checking" not in on.lines[0]


async def add_files(on: Stage, folder: Path, *new_names: str, gone: str | None = None) -> None:
    reports = [
        report
        for report in scanning.Scan([folder], keep_spans=False)
        if report.path.stem in new_names
    ]
    ids = [i for i, trace in on.app.catalog.traces.items() if trace.path.stem == gone]
    on.app.call_later(on.app.traces.take, FilesRead(reports, False, 9999, gone=ids))
    await on.press()


async def test_the_cursor_keeps_its_line_while_traces_arrive(
    tmp_path: Path, row_counts: Counter[str]
) -> None:
    folder = tmp_path / "runs"
    write_runs(folder, *(f"run-{number}" for number in range(100, 160)))
    async with stage(folder) as on:
        table = library_screen(on).table
        await on.press(*"j" * 44)
        assert table.row is not None
        assert table.row.name == "run-144.json"
        line = next(number for number, text in enumerate(on.lines) if "run-144" in text)
        write_runs(folder, "run-1", "run-2", "run-150b", "run-3")
        row_counts.clear()
        await add_files(on, folder, "run-1", "run-2", "run-150b", "run-3", gone="run-105")
        assert (row_counts["rows"], len(table.rows), table.row.name) == (4, 63, "run-144.json")
        assert "run-144" in on.lines[line]
        # Where the cursor is out of sight, what is on screen stays.
        table.scroll_to(y=0, animate=False, immediate=True)
        table.scroll_to(y=5, animate=False, immediate=True)
        await on.press()
        first = table.rows[5].name
        write_runs(folder, "run-4", "run-5")
        await add_files(on, folder, "run-4", "run-5")
        assert table.rows[round(table.scroll_y)].name == first
        assert table.row.name == "run-144.json"


async def test_the_cursor_among_unreadable_and_missing_files(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    write_runs(folder, *(f"run-{number}" for number in range(100, 160)))
    for number in range(50):
        (folder / f"broken-{number}.json").write_text("{")
    async with stage(folder) as on:
        table = library_screen(on).table
        await on.press("G", "k", "k", "k")
        assert table.trouble is not None
        path = table.trouble.path
        line = table.cursor - round(table.scroll_y)
        write_runs(folder, "run-1", "run-2")
        await add_files(on, folder, "run-1", "run-2", gone="run-105")
        assert table.trouble is not None
        assert (table.trouble.path, table.cursor - round(table.scroll_y)) == (path, line)
        await on.press("g", "j", "j", "j")
        await add_files(on, folder, gone="run-101")
        assert table.row is not None
        assert table.row.name == "run-102.json"


async def test_unreadable_files_are_listed_without_drawing_all(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts_read = 0
    text_of: Callable[[catalog.FileProblem], str] = catalog.FileProblem.text.fget  # type: ignore[attr-defined]

    def counted(self: catalog.FileProblem) -> str:
        nonlocal texts_read
        texts_read += 1
        return text_of(self)

    monkeypatch.setattr(catalog.FileProblem, "text", property(counted))
    broken = [FileReport(Path(f"b{number}.json"), failed="not JSON") for number in range(5000)]
    async with stage(runs) as on:
        on.app.call_later(on.app.traces.take, FilesRead(broken, True, 5011))
        await on.pilot.pause()
        drawn: list[int] = []
        table = library_screen(on).table
        render_row = table.render_row

        def recorded(number: int, width: int) -> object:
            drawn.append(number)
            return render_row(number, width)

        monkeypatch.setattr(table, "render_row", recorded)
        await on.press("j")
        assert len(drawn) <= 2
        drawn.clear()
        await on.press("G")
        assert len(drawn) <= 2 * table.size.height
        assert "b4999.json" in on.text
        assert library_screen(on).table.row_count == 11 + 1 + 5000
        on.app.catalog.remove(list(on.app.catalog.traces))
        on.app.show_new_traces()
        await on.pilot.pause()
        assert texts_read <= library.MOST_PROBLEMS


async def test_leaving_does_not_wait_for_a_file(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    begun = threading.Event()
    ended = threading.Event()

    def endless(*_: object) -> Iterator[FilesRead | CachedTraces]:
        yield CachedTraces(())
        begun.set()
        try:
            gate.wait(PATIENCE)
            yield FilesRead([], False, 1)
            raise AssertionError("went on reading")
        finally:
            ended.set()

    monkeypatch.setattr("mast_tui.ui.services.folder_scan.scan_paths", endless)
    async with stage(runs, settled=False) as on:
        await on.until(begun.is_set)
        await on.send("Q")
        assert on.app._exit
        readers = [thread for thread in threading.enumerate() if thread.name == "read"]
        assert all(thread.daemon for thread in readers)
    assert not ended.is_set()
    gate.set()
    assert ended.wait(PATIENCE)

"""Big documents that another process reads: progress, stopping, and failures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from textual.pilot import Pilot

from mast_tui.traces.library import read_file
from mast_tui.traces.readers.codex.reader import CodexParser
from mast_tui.traces.scan.big_documents import BIG_LINE_FILE_BYTES
from mast_tui.traces.scan.document_process import STOPPED, ReadingProgress
from mast_tui.traces.scan.unread import FileToRead, unread_trace
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.app import MastApp
from mast_tui.ui.context import ShowTrace
from mast_tui.ui.dialogs.help import HelpScreen
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.ui.options import AppOptions
from mast_tui.ui.services.open_workspace import remember_welcome
from mast_tui.ui.widgets.bars import TitleBar
from tests import waiting
from tests.benchmarks.rollouts import write_long
from tests.ui.settle import settle
from tests.ui.stage import MAST, SMALL, read_trace, write_trace

WORDS = "reading 37% of 120 MB"


class DocumentProcess:
    """A stand-in for a process that reads a document until the test ends it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.progress = ReadingProgress(37, 100, WORDS)
        self.failed: str | None = None
        self.waited_for = Event()
        self._over = Event()

    def wait(self, seconds: float | None = None) -> bool:
        self.waited_for.set()
        return self._over.wait(seconds)

    def stop(self) -> None:
        self.end(STOPPED)

    def end(self, failed: str | None = None) -> None:
        self.failed = failed
        self._over.set()


class Processes:
    """Starts one process for each file named ``big*``."""

    def __init__(self) -> None:
        self.begun: list[DocumentProcess] = []

    def begin(self, path: Path) -> DocumentProcess | None:
        if not path.name.startswith("big") or any(process.path == path for process in self.begun):
            return None
        self.begun.append(DocumentProcess(path))
        return self.begun[-1]


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    """Replace the processes that read big documents."""
    processes = Processes()
    for module in (
        "mast_tui.ui.services.traces",
        "mast_tui.traces.scan.scanning",
        "mast_tui.traces.scan.unread",
    ):
        monkeypatch.setattr(f"{module}.BIG_DOCUMENTS", processes)
    return processes


def app_on(path: Path) -> MastApp:
    remember_welcome()
    return MastApp(AppOptions((path,), False, None, "tester", None, False, False), MAST)


async def until(pilot: Pilot[None], done: Callable[[], bool]) -> None:
    """Let the app run until a condition holds."""
    for _ in waiting.until(done):
        await pilot.pause(0.01)


def title(app: MastApp) -> str:
    return "".join(bar.render_line(0).text for bar in app.screen.query(TitleBar))


async def test_the_title_shows_the_progress(tmp_path: Path, processes: Processes) -> None:
    app = app_on(write_trace(tmp_path / "big.json"))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: WORDS in title(app))
        await pilot.press("j", "question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("escape")
        processes.begun[0].end()
        await settle(pilot)
        assert isinstance(app.screen, AnnotateScreen)
        assert app.screen.trace is not None
        assert len(app.screen.trace) == len(SMALL)
        assert WORDS not in title(app)


async def test_leaving_stops_the_reading_of_a_file(tmp_path: Path, processes: Processes) -> None:
    app = app_on(write_trace(tmp_path / "big.json"))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: WORDS in title(app))
        await pilot.press("escape")
        await settle(pilot)
        assert processes.begun[0].failed == STOPPED
        assert isinstance(app.screen, LibraryScreen)
        assert [trouble.message for trouble in app.catalog.unreadable] == [STOPPED]


async def test_the_library_works_while_documents_are_read(
    tmp_path: Path, processes: Processes
) -> None:
    folder = tmp_path / "runs"
    write_trace(folder / "a.json", [{"role": "user", "content": "task of a"}, *SMALL[1:]])
    write_trace(folder / "big.json")
    write_trace(folder / "big-2.json")
    app = app_on(folder)
    async with app.run_test(size=(120, 40)) as pilot:

        def listed() -> list[str]:
            assert isinstance(app.screen, LibraryScreen)
            return [row.name for row in app.screen.table.rows]

        await until(pilot, lambda: WORDS in title(app))
        assert listed() == ["a.json"]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AnnotateScreen))
        await pilot.press("L")
        await until(pilot, lambda: bool(processes.begun))
        failing, *_ = processes.begun
        failing.end("the process that read it was killed (SIGKILL)")
        await until(pilot, lambda: len(processes.begun) == 2)
        processes.begun[1].end()
        await settle(pilot)
        assert len(listed()) == 2
        assert [trouble.path for trouble in app.catalog.unreadable] == [failing.path.name]


async def test_leaving_stops_the_reading_of_a_trace(tmp_path: Path, processes: Processes) -> None:
    path = write_trace(tmp_path / "big.json")
    trace = unread_trace(
        FileToRead(str(path), lambda: read_file(path, named=False)), None, read_trace(path).summary
    )
    app = app_on(write_trace(tmp_path / "small.json"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.go(ShowTrace(trace))
        await until(pilot, lambda: WORDS in title(app))
        assert trace.spans.waiting == WORDS
        await pilot.press("escape")
        await until(pilot, lambda: processes.begun[0].failed == STOPPED)
        assert trace.spans.waiting is None
        assert not trace.loaded.complete
        assert not trace.advance()  # it is asked for again, and read
        assert len(trace) == len(SMALL)


async def test_a_long_file_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.jsonl"
    facts = write_long(path, BIG_LINE_FILE_BYTES + 1_000_000, seed=5)
    fed: list[int] = []
    feed = CodexParser.feed

    def counted(self: CodexParser, number: int, line: bytes, cut_off: bool, /) -> None:
        fed.append(number)
        feed(self, number, line, cut_off)

    monkeypatch.setattr(CodexParser, "feed", counted)
    for _ in range(2):
        fed.clear()
        app = app_on(path)
        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot)
            assert isinstance(app.screen, AnnotateScreen)
            trace = app.screen.trace
            assert trace is not None
            assert trace.loaded.complete
            assert len(trace) == facts.spans
            assert f"{facts.spans} spans" in title(app)
            assert len(fed) < facts.lines // 10  # only the first ones are read here
            await pilot.press("G")
            await settle(pilot)
            assert app.screen.timeline.index == facts.spans - 1

"""The files on the way of a key, as docs/architecture.md lists them."""

from __future__ import annotations

import re
import sqlite3
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

import mast_tui
from mast_tui.ui.annotate import screen as annotate
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.writes import Writes
from tests.ui.stage import stage, write_trace

pytestmark = pytest.mark.usefixtures("every_frame")

PACKAGE: Final = Path(mast_tui.__file__).parent
PAGE: Final = PACKAGE.parent / "docs" / "architecture.md"


class CallRecorder:
    """The files of the package that a key press runs in the event loop and the writer thread.

    ``to_disk`` are the files that queue work, then those that call SQLite in the writer thread;
    ``to_screen`` are those that draw a row of the timeline.
    """

    def __init__(self) -> None:
        self.to_disk: list[str] = []
        self.to_screen: list[str] = []

    @contextmanager
    def recording(self, writer: Executor) -> Iterator[None]:
        """Record every call until the end of the block."""
        assert threading.current_thread() is threading.main_thread()
        previous = sys.getprofile()
        sys.setprofile(self._look)
        writer.submit(sys.setprofile, self._look).result()
        try:
            yield
        finally:
            writer.submit(sys.setprofile, previous).result()
            sys.setprofile(previous)

    def _look(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            if frame.f_code.co_name == "render_row" and _is_row_of_timeline(frame):
                self._add(frame, self.to_screen)
            elif frame.f_code is Writes.do.__code__:
                self._add(frame, self.to_disk)
        elif event == "c_call":
            owner = getattr(argument, "__self__", None)
            if isinstance(owner, sqlite3.Connection | sqlite3.Cursor):
                self._add(frame, self.to_disk)

    def _add(self, frame: FrameType | None, way: list[str]) -> None:
        steps = []
        while frame is not None:
            steps.append(_file_of(frame))
            frame = frame.f_back
        for file in reversed(steps):
            if file is not None and file not in (*self.to_disk, *self.to_screen):
                way.append(file)


def _file_of(frame: FrameType) -> str | None:
    path = Path(frame.f_code.co_filename)
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else None


def _is_row_of_timeline(frame: FrameType) -> bool:
    return isinstance(frame.f_locals.get("self"), Timeline)


async def test_the_page_lists_the_files_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What was read, where one stands, and what the file's watcher brings, is no key's doing.
    monkeypatch.setattr(annotate, "READ_EVERY", 3600.0)
    monkeypatch.setattr(annotate, "SAVE_POSITION_EVERY", 3600.0)
    monkeypatch.setattr(annotate.AnnotateScreen, "show_changes_of_others", lambda _: None)
    followed = CallRecorder()
    async with stage(write_trace(tmp_path / "t.json"), workspace=tmp_path / "w.db") as on:
        await on.press("2", "2", "j", "1")
        with followed.recording(on.app.writes._thread):
            await on.send("3")
        assert on.labels == {("2.2", 1, 1), ("1.3", 2, 2)}
    page = PAGE.read_text("utf-8").partition("\n## The way of a key\n")[2].partition("\n## ")[0]
    named = re.findall(r"^(\d+)\. `([\w/]+\.py)`", page, re.MULTILINE)
    assert [int(number) for number, _ in named] == list(range(1, len(named) + 1))
    assert [file for _, file in named] == [*followed.to_disk, *followed.to_screen]

"""The most memory held while a big trace is paged through."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tests.benchmarks.rollouts import FIRST_WORDS
from tests.benchmarks.setting import Setting, attempt, new_home
from tests.benchmarks.start_measures import RAW_LINE
from tests.benchmarks.table import Row
from tests.benchmarks.terminals import Program, TooLate, our_app

PAGE_DOWN = b"\x1b[6~"
PAGES = 50


@dataclass(frozen=True, slots=True)
class Viewer:
    """A program, what is on its first screen, and its keys for the end and the beginning."""

    name: str
    command: Sequence[str]
    text: str
    end: bytes = b"G"
    begin: bytes = b"g"


def measure(setting: Setting) -> list[Row]:
    """Measure the peak memory while paging."""
    rollout = setting.big
    rows: list[Row] = []
    with ExitStack() as stack:
        home = stack.enter_context(new_home())
        ours = our_app(rollout.path, home / "workspace.db")
        viewers = [Viewer("mast_tui", ours, FIRST_WORDS)]
        for name, command in setting.others().items():
            viewers.append(Viewer(name, [command, str(rollout.path)], RAW_LINE))
        for viewer in viewers:

            def page_through(viewer: Viewer = viewer) -> list[Row]:
                with Program(viewer.command, home) as program:
                    return _page_through(setting, viewer, program)

            rows += attempt(viewer.name, page_through)
    return [*_compared(rows, viewers[0].name), *setting.absent()]


def _page_through(setting: Setting, viewer: Viewer, program: Program) -> list[Row]:
    what = f"{viewer.name}, {setting.big_name}"
    program.until_screen(viewer.text, setting.timeout)
    rows = [Row(f"{what}: first screen", (program.memory(),), "MB")]
    program.send(viewer.begin)
    _settle(program)
    for _ in range(PAGES):
        program.send(PAGE_DOWN)
        _settle(program)
    program.send(viewer.end)
    program.until_idle(setting.timeout)
    program.send(viewer.begin)
    program.until_idle(setting.timeout)
    rows.append(Row(f"{what}: {PAGES} pages, end and back", (program.memory(),), "MB"))
    anonymous = program.memory("RssAnon")
    rows.append(Row(f"{what}: of it at the end, without mapped files", (anonymous,), "MB"))
    return rows


def _settle(program: Program) -> None:
    """Wait for the redraw, but not for a program that goes on drawing while it reads."""
    sent = program.send(b"")
    try:
        program.until_quiet(sent, 0.3)
    except TooLate:
        return


def _compared(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the rows, with peaks divided by that of ``name``."""
    own = next((r for r in rows if r.what.startswith(name) and "pages" in r.what), None)
    return [
        Row(r.what, r.values, r.unit, name, own.middle, r.missing, r.note)
        if own is not None and "pages" in r.what and r is not own
        else r
        for r in rows
    ]

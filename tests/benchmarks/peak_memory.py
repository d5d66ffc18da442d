"""The most memory held while a big trace is paged through."""

from __future__ import annotations

from tests.benchmarks.rollouts import FIRST_WORDS
from tests.benchmarks.setting import Setting, ours
from tests.benchmarks.table import Row
from tests.benchmarks.terminals import PAGE_DOWN, Program, TooLate

PAGES = 50


def measure(setting: Setting) -> list[Row]:
    """Measure the peak memory while paging."""
    size = setting.big_name
    with ours(setting.big.path) as program:
        program.until_screen(FIRST_WORDS, setting.timeout)
        rows = [Row(f"{size}: first screen", (program.memory(),), "MB")]
        program.send(b"g")
        _settle(program)
        for _ in range(PAGES):
            program.send(PAGE_DOWN)
            _settle(program)
        for key in (b"G", b"g"):
            program.send(key)
            program.until_idle(setting.timeout)
        rows.append(Row(f"{size}: {PAGES} pages, end and back", (program.memory(),), "MB"))
        anonymous = program.memory("RssAnon")
    rows.append(Row(f"{size}: of it at the end, without mapped files", (anonymous,), "MB"))
    return rows


def _settle(program: Program) -> None:
    """Wait for the redraw, but not for a program that goes on drawing while it reads."""
    sent = program.send(b"")
    try:
        program.until_quiet(sent, 0.3)
    except TooLate:
        return

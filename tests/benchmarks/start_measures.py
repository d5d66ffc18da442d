"""Starts of the app: first spans, whole documents, the whole index, and a big library."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.benchmarks.cursor_moves import press_down
from tests.benchmarks.rollouts import FIRST_WORDS
from tests.benchmarks.setting import BIG, SMALL, Setting, attempt, new_home, ours, size_name
from tests.benchmarks.table import Row, missing, times
from tests.benchmarks.terminals import (
    PAGE_DOWN,
    TRIVIAL_TEXT,
    Program,
    TooLate,
    first_words,
    our_app,
    trivial_app,
)


@dataclass(frozen=True, slots=True)
class Start:
    """A program, and what is on its first screen."""

    what: str
    command: Sequence[str]
    text: str


def starts_in_turn(
    starts: Sequence[Start], home: Path, runs: int, seconds: float
) -> dict[str, list[float] | TooLate]:
    """Return the seconds until each shows its text, started in turn; the first turn warms caches.

    What once came too late is not started again.
    """
    found: dict[str, list[float] | TooLate] = {start.what: [] for start in starts}
    for run in range(runs + 1):
        for start in starts:
            taken = found[start.what]
            if isinstance(taken, TooLate):
                continue
            with Program(start.command, home) as program:
                try:
                    shown = program.until_screen(start.text, seconds)
                except TooLate as error:
                    found[start.what] = error
                    continue
            if run:
                taken.append(shown - program.started)
    return found


def rows_of(found: dict[str, list[float] | TooLate], base: str, note: str = "") -> list[Row]:
    """Return a row for each start, all but the first divided by ``base``."""
    trivial = found[base]
    assert not isinstance(trivial, TooLate)
    against = times(base, trivial)
    rows = [against]
    for what, taken in found.items():
        if isinstance(taken, TooLate):
            rows.append(missing(what, f"given up: {taken}"))
        elif what != base:
            rows.append(times(what, taken, against=against, note=note))
    return rows


def measure_first_spans(setting: Setting) -> list[Row]:
    """Measure from the start of a process to the first spans of a big trace."""
    starts = [Start("trivial Textual app", trivial_app(), TRIVIAL_TEXT)]
    with new_home() as home:
        for megabytes in (SMALL,) if setting.quick else (SMALL, BIG):
            rollout = setting.data.long_rollout(megabytes)
            rollout.warm()
            command = our_app(rollout.path, home / "workspace.db")
            starts.append(Start(f"mast_tui, {size_name(megabytes)}", command, FIRST_WORDS))
        found = starts_in_turn(starts, home, setting.times(7, 3), setting.timeout)
    return rows_of(found, starts[0].what)


DOCUMENT_MEGABYTES = 300
QUICK_DOCUMENT_MEGABYTES = 20
LAYOUT = "atif"
PAGES = 50


def measure_documents(setting: Setting) -> list[Row]:
    """Measure the first spans of a document that must be read whole."""
    megabytes = setting.times(DOCUMENT_MEGABYTES, QUICK_DOCUMENT_MEGABYTES)
    path = setting.data.document(megabytes, LAYOUT)
    words, size = first_words(setting.data.document(1, LAYOUT)), size_name(megabytes)
    with new_home() as home:
        command = our_app(path, home / "workspace.db")
        with Program(command, home) as program:
            shown = program.until_screen(words, setting.timeout)
            first = times(f"{size}, read for the first time", [shown - program.started])
            memory = [Row(f"{size}, read for the first time: the app", (program.memory(),), "MB")]
            for _ in range(PAGES):
                program.send(PAGE_DOWN)
            program.until_idle(setting.timeout)
            program.send(b"G")
            program.until_idle(setting.timeout)
            what = f"{size}: the app after {PAGES} pages and the end"
            memory.append(Row(what, (program.memory(),), "MB"))
        starts = [
            Start("trivial Textual app", trivial_app(), TRIVIAL_TEXT),
            Start(f"{size}, kept from before", command, words),
        ]
        found = starts_in_turn(starts, home, setting.times(7, 3), setting.timeout)
    return [*rows_of(found, starts[0].what), first, *memory]


LIBRARY_TRACES = 10_000
QUICK_LIBRARY_TRACES = 1000


def measure_library(setting: Setting) -> list[Row]:
    """Measure the first rows of a big library that was open before."""
    count = setting.times(LIBRARY_TRACES, QUICK_LIBRARY_TRACES)
    folder = setting.data.library(count)
    with new_home() as home:
        command = our_app(folder, home / "workspace.db")
        starts = [
            Start("trivial Textual app", trivial_app(), TRIVIAL_TEXT),
            Start("first rows from the cache", command, r"rollout-0\d*"),
        ]
        with Program(command, home) as program:
            rows = program.until_screen(r"rollout-0\d*", setting.timeout)
            first = times("first rows, no cache yet", [rows - program.started])
            done = program.until_bytes(_all_listed(count), setting.timeout)
            whole = times("all rows listed, no cache yet", [done - program.started])
            program.until_idle(setting.timeout)
        found = starts_in_turn(starts, home, setting.times(7, 3), setting.timeout)
        again: list[float] = []
        for _ in range(setting.times(5, 2)):
            with Program(command, home) as program:
                done = program.until_bytes(_all_listed(count), setting.timeout)
                again.append(done - program.started)
    rows_found = rows_of(found, starts[0].what, note=f"{count:,} traces")
    return [*rows_found, times("all rows listed from the cache", again), first, whole]


def _all_listed(count: int) -> bytes:
    """Return the title of the list when every trace is listed."""
    return rb"%d traces(?= *\x1b)" % count


def measure_index(setting: Setting) -> list[Row]:
    """Measure until every span of a big trace is known."""
    rollout, runs = setting.big, setting.times(2, 1)
    whole = rb"%d spans" % rollout.facts.spans
    what = f"whole index, {setting.big_name}, {rollout.facts.spans:,} spans"

    def alone() -> list[Row]:
        seconds = []
        for _ in range(runs):
            with ours(rollout.path) as program:
                done = program.until_bytes(whole, setting.timeout)
                seconds.append(done - program.started)
        return [times(what, seconds)]

    rows = [*attempt(what, alone)]
    base = rows[0] if rows[0].values else None

    def with_keys() -> list[Row]:
        seconds, pressed = [], 0
        for _ in range(runs):
            with ours(rollout.path) as program:
                program.until_screen(re.escape(first_words(rollout.path)), setting.timeout)
                for index in count():
                    press_down(program, index)
                    pressed += 1
                    found = re.search(whole, program.raw)
                    if found:
                        break
                    if index % 50 == 0 and program.age > setting.timeout:
                        raise TooLate(f"not whole after {setting.timeout:.0f} s")
                done = program.until_bytes(whole, 0.0)
                seconds.append(done - program.started)
        note = f"{pressed} keys"
        return [times(f"{what}, with keys", seconds, against=base, note=note)]

    def again() -> list[Row]:
        # The strip and the errors come with the last count. The first turn makes the index.
        shown, opened = rf"{rollout.facts.spans} spans", f"{what}, opened again"
        with new_home() as home:
            ours_again = our_app(rollout.path, home / "workspace.db")
            with Program(ours_again, home) as program:
                program.until_bytes(whole, setting.timeout)
                while len(program.processes()) > 1:  # the index is kept last
                    program.drain(0.2)
            starts = [
                Start("trivial Textual app", trivial_app(), TRIVIAL_TEXT),
                Start(opened, ours_again, shown),
            ]
            found = starts_in_turn(starts, home, setting.times(7, 3), setting.timeout)
        return rows_of(found, starts[0].what)

    return [
        *rows,
        *attempt(f"{what}, with keys", with_keys),
        *attempt(f"{what}, opened again", again),
    ]

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

    title: str
    command: Sequence[str]
    text: str


def starts_in_turn(
    starts: Sequence[Start], home: Path, runs: int, seconds: float
) -> dict[str, list[float] | TooLate]:
    """Return the seconds until each shows its text, started in turn; the first turn warms caches.

    What once came too late is not started again.
    """
    results: dict[str, list[float] | TooLate] = {start.title: [] for start in starts}
    for run in range(runs + 1):
        for start in starts:
            seconds_taken = results[start.title]
            if isinstance(seconds_taken, TooLate):
                continue
            with Program(start.command, home) as program:
                try:
                    text_time = program.until_screen(start.text, seconds)
                except TooLate as error:
                    results[start.title] = error
                    continue
            if run:
                seconds_taken.append(text_time - program.started)
    return results


def rows_of(results: dict[str, list[float] | TooLate], base: str, note: str = "") -> list[Row]:
    """Return a row for each start, all but the first divided by ``base``."""
    trivial = results[base]
    assert not isinstance(trivial, TooLate)
    against = times(base, trivial)
    rows = [against]
    for title, seconds in results.items():
        if isinstance(seconds, TooLate):
            rows.append(missing(title, f"given up: {seconds}"))
        elif title != base:
            rows.append(times(title, seconds, against=against, note=note))
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
        results = starts_in_turn(starts, home, setting.times(7, 3), setting.timeout)
    return rows_of(results, starts[0].title)


DOCUMENT_MEGABYTES = 300
QUICK_DOCUMENT_MEGABYTES = 20
LAYOUT = "atif"
PAGES = 50


def measure_documents(setting: Setting) -> list[Row]:
    """Measure the first spans of a document that must be read whole."""
    megabytes = setting.times(DOCUMENT_MEGABYTES, QUICK_DOCUMENT_MEGABYTES)
    path = setting.data.document(megabytes, LAYOUT)
    first_text = first_words(setting.data.document(1, LAYOUT))
    size = size_name(megabytes)
    with new_home() as home:
        command = our_app(path, home / "workspace.db")
        with Program(command, home) as program:
            text_time = program.until_screen(first_text, setting.timeout)
            first = times(f"{size}, read for the first time", [text_time - program.started])
            memory = [Row(f"{size}, read for the first time: the app", (program.memory(),), "MB")]
            for _ in range(PAGES):
                program.send(PAGE_DOWN)
            program.until_idle(setting.timeout)
            program.send(b"G")
            program.until_idle(setting.timeout)
            title = f"{size}: the app after {PAGES} pages and the end"
            memory.append(Row(title, (program.memory(),), "MB"))
        starts = [
            Start("trivial Textual app", trivial_app(), TRIVIAL_TEXT),
            Start(f"{size}, kept from before", command, first_text),
        ]
        results = starts_in_turn(starts, home, setting.times(7, 3), setting.timeout)
    return [*rows_of(results, starts[0].title), first, *memory]


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
            rows_time = program.until_screen(r"rollout-0\d*", setting.timeout)
            first = times("first rows, no cache yet", [rows_time - program.started])
            done = program.until_bytes(_all_listed(count), setting.timeout)
            whole = times("all rows listed, no cache yet", [done - program.started])
            program.until_idle(setting.timeout)
        results = starts_in_turn(starts, home, setting.times(7, 3), setting.timeout)
        restarts: list[float] = []
        for _ in range(setting.times(5, 2)):
            with Program(command, home) as program:
                done = program.until_bytes(_all_listed(count), setting.timeout)
                restarts.append(done - program.started)
    rows = rows_of(results, starts[0].title, note=f"{count:,} traces")
    return [*rows, times("all rows listed from the cache", restarts), first, whole]


def _all_listed(count: int) -> bytes:
    """Return the title of the list when every trace is listed."""
    return rf"{count:,} traces(?= *\x1b)".encode()


def measure_index(setting: Setting) -> list[Row]:
    """Measure until every span of a big trace is known."""
    rollout = setting.big
    runs = setting.times(2, 1)
    whole = rb"%d spans" % rollout.facts.spans
    title = f"whole index, {setting.big_name}, {rollout.facts.spans:,} spans"

    def alone() -> list[Row]:
        seconds = []
        for _ in range(runs):
            with ours(rollout.path) as program:
                done = program.until_bytes(whole, setting.timeout)
                seconds.append(done - program.started)
        return [times(title, seconds)]

    rows = [*attempt(title, alone)]
    base = rows[0] if rows[0].values else None

    def with_keys() -> list[Row]:
        seconds = []
        pressed = 0
        for _ in range(runs):
            with ours(rollout.path) as program:
                program.until_screen(re.escape(first_words(rollout.path)), setting.timeout)
                for index in count():
                    press_down(program, index)
                    pressed += 1
                    match = re.search(whole, program.raw)
                    if match:
                        break
                    if index % 50 == 0 and program.age > setting.timeout:
                        raise TooLate(f"not whole after {setting.timeout:.0f} s")
                done = program.until_bytes(whole, 0.0)
                seconds.append(done - program.started)
        note = f"{pressed} keys"
        return [times(f"{title}, with keys", seconds, against=base, note=note)]

    def restart() -> list[Row]:
        # The strip and the errors come with the last count. The first turn makes the index.
        opened = f"{title}, opened again"
        with new_home() as home:
            ours_again = our_app(rollout.path, home / "workspace.db")
            with Program(ours_again, home) as program:
                program.until_bytes(whole, setting.timeout)
                while len(program.processes()) > 1:  # the index is kept last
                    program.drain(0.2)
            starts = [
                Start("trivial Textual app", trivial_app(), TRIVIAL_TEXT),
                Start(opened, ours_again, rf"{rollout.facts.spans} spans"),
            ]
            results = starts_in_turn(starts, home, setting.times(7, 3), setting.timeout)
        return rows_of(results, starts[0].title)

    return [
        *rows,
        *attempt(f"{title}, with keys", with_keys),
        *attempt(f"{title}, opened again", restart),
    ]

"""From the key of a label until it is on disk, in a workspace that holds many."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, sleep

from tests.benchmarks.data import ANNOTATOR, suggest
from tests.benchmarks.setting import Setting, attempt, new_home
from tests.benchmarks.table import Row, times
from tests.benchmarks.terminals import Program, TooLate, first_words, our_app

LABELS = 100_000
QUICK_LABELS = 10_000
SPANS = 1000
FIRST = b"1"
SECOND = b"3"
ACCEPT = b"a"
REDRAW = 0.3
"""Seconds without a byte after which an answer is on screen, with the suggestion after it."""
LOOK_EVERY = 0.0005
"""Seconds between two looks at the database."""


def measure(setting: Setting) -> list[Row]:
    """Measure the time from the key of a label to its commit."""
    many = setting.times(LABELS, QUICK_LABELS)
    keys = setting.times(50, 15)
    rollout = setting.data.short_rollout(SPANS)
    first_text = first_words(rollout.path)
    rows: list[Row] = []
    with new_home() as home:

        @contextmanager
        def ready(workspace: Path) -> Iterator[Program]:
            with Program(our_app(rollout.path, workspace), home) as program:
                program.until_screen(re.escape(first_text), setting.timeout)
                program.until_bytes(ANNOTATOR.encode(), setting.timeout)
                program.until_idle(setting.timeout)
                yield program

        def plain() -> list[Row]:
            return [times("one row written and synced by itself", _bare_commits(home, keys))]

        def in_workspace(labels: int) -> list[Row]:
            base = rows[0]
            path = home / f"workspace-{labels}.db"
            if labels:
                path = setting.data.workspace(labels, rollout, home)
            with ready(path) as program, _reading(path) as database:
                program.until_quiet(program.send(b"G"))
                second = [_label(program, database, FIRST, SECOND) for _ in range(keys)]
                both = [_label(program, database, b"", FIRST + SECOND) for _ in range(keys)]
            where = f"{labels:,} labels" if labels else "an empty workspace"
            return [
                times(f"second digit → committed, {where}", column(second, 0), against=base),
                times(f"second digit → last byte, {where}", column(second, 1)),
                times(f"both digits at once → committed, {where}", column(both, 0)),
            ]

        def accepted() -> list[Row]:
            # Beside the other copy: that one has left a journal, which belongs to no other file.
            folder = home / "suggestions"
            folder.mkdir()
            path = setting.data.workspace(many, rollout, folder)
            suggest(path, rollout.path, keys + 2)
            with ready(path) as program, _reading(path) as database:
                program.until_quiet(program.send(b"]"))
                answers = [_committed(program, database, ACCEPT) for _ in range(keys)]
            return [
                times(f"suggestion accepted → committed, {many:,} labels", column(answers, 0)),
                times(f"suggestion accepted → last byte, {many:,} labels", column(answers, 1)),
            ]

        rows += plain()
        for labels in (0, many):
            title = f"label key → committed, {labels:,} labels"
            rows += attempt(title, partial(in_workspace, labels))
        rows += attempt("suggestion accepted → committed", accepted)
    return rows


def column(measured: Sequence[tuple[float, float]], index: int) -> list[float]:
    """Return the first or the second value of each."""
    return [values[index] for values in measured]


def _label(
    program: Program, database: sqlite3.Connection, first_digit: bytes, keys: bytes
) -> tuple[float, float]:
    """Label the span above: seconds until it is committed, and until the screen is drawn.

    ``before`` is pressed, and drawn, before the time runs: of two digits only the second one
    commits anything, and a person presses it later. The spans are taken from the end of the
    trace, as the first ones have labels already.
    """
    program.until_quiet(program.send(b"k"), quiet=0.5)
    if first_digit:
        program.until_quiet(program.send(first_digit))
    return _committed(program, database, keys)


def _committed(program: Program, database: sqlite3.Connection, keys: bytes) -> tuple[float, float]:
    """Press keys: seconds until there is another label on disk, and until it is on screen."""
    count_before = _count(database)
    sent = program.send(keys)
    while _count(database) == count_before:
        if perf_counter() - sent > 10:
            raise TooLate("no label in the workspace after 10 s")
        sleep(LOOK_EVERY)
    committed = perf_counter() - sent
    return committed, program.until_quiet(sent, quiet=REDRAW).last


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    with closing(connection):
        yield connection


def _count(database: sqlite3.Connection) -> int:
    """Return the number of the last label's row, which is cheap."""
    (last,) = database.execute("SELECT max(rowid) FROM labels").fetchone()
    return int(last or 0)


def _bare_commits(folder: Path, count: int) -> list[float]:
    """Return the seconds for one row in the journal mode of a workspace."""
    seconds: list[float] = []
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    with closing(connection):
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
        for _ in range(count):
            begun = perf_counter()
            connection.execute("INSERT INTO rows (text) VALUES ('a label, as long as one is')")
            seconds.append(perf_counter() - begun)
    return seconds

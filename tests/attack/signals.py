"""Signals, stops and closed terminals on every main screen."""

from __future__ import annotations

import os
import signal
import sqlite3
import termios
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from tests.attack.kills import ONE, templates
from tests.attack.trying import DB, PLACE, Outcome, Setting, app, end_of, unsound, wait_for
from tests.terminal.screen import Terminal

SCREENS: Final = (
    ("annotate", (), r"Timeline"), ("a dialog", ("D",), r"of \d+ spans read"),
    ("a text field", ("/", "x"), r"x"), ("library", ("escape",), r"Library"),
    ("adjudicate", ("A",), r"Adjudicate"), ("agreement", ("K",), r"Agreement"),
    ("signatures", ("S",), r"Signatures"), ("judge runs", ("R",), r"Judge runs"),
    ("study", ("Y",), r"Study"),
)  # fmt: skip
"""Screens, the keys that lead there from a trace, and a text on them."""

ENDINGS: Final = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT")
WAYS: Final = (*ENDINGS, "a closed terminal", "SIGTSTP and SIGCONT", "SIGTERM twice")

WHOLE: Final = len(WAYS) * len(SCREENS)

BEGIN: Final = b"\x1b[?1049h"
LEFT: Final = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?2004l")
"""Normal screen, cursor, no mouse, no bracketed paste."""


def settings_of(terminal: Terminal) -> list[Any]:
    return termios.tcgetattr(terminal.process.child_fd)


def not_restored(terminal: Terminal, before: list[Any]) -> str:
    """Return what is not restored in the terminal, or an empty text."""
    raw = bytes(terminal.raw)
    begun = raw.rfind(BEGIN)
    if missing := [wanted for wanted in LEFT if raw.rfind(wanted) < begun]:
        return f"the terminal was never told {missing}"
    return "" if settings_of(terminal) == before else "the terminal is set otherwise than before"


def is_stopped(terminal: Terminal) -> bool:
    """Return True if the process is stopped."""
    stat = Path(f"/proc/{terminal.process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


def labels_of(home: Path, who: str) -> int:
    """Return the number of stored labels of an annotator."""
    with closing(sqlite3.connect(home / DB)) as database:
        asked = database.execute("SELECT count(*) FROM labels WHERE annotator = ?", (who,))
        return int(asked.fetchone()[0])


def labelled(terminal: Terminal) -> None:
    """Set a label and wait until it is shown."""
    terminal.until("alice")
    terminal.press("down", "1", "3")
    terminal.until(r"1\.3 [^#]* on #2")


def ends(home: Path, way: str, keys: tuple[str, ...], shown: str) -> str:
    """Label, go to a screen, end the app from outside; return what does not hold."""
    with app(home, *ONE, *PLACE, "--annotator", "alice", columns=120, rows=40) as terminal:
        process = terminal.process
        before = a_new_terminal()
        labelled(terminal)
        terminal.press(*keys)
        terminal.until(shown)
        if way == "a closed terminal":
            os.close(process.child_fd)
            process.child_fd = -1
            process.closed = True
            code = process.code = wait_for(process.pid)
            process.gone = True
            number: int = signal.SIGHUP
        else:
            number = signal.Signals[way.partition(" ")[0]]
            process.kill(number)
            if way.endswith("twice"):
                with suppress(ProcessLookupError):
                    process.kill(number)
            code = end_of(terminal)
            if fell := not_restored(terminal, before):
                return fell
    if code != 128 + number:
        return f"ended with {code}, not with {128 + number}"
    return _kept(home, 1)


def a_new_terminal() -> list[Any]:
    """Return the settings of a new terminal."""
    ours, theirs = os.openpty()
    try:
        return termios.tcgetattr(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def _kept(home: Path, labels: int) -> str:
    found = labels_of(home, "alice")
    if found != labels:
        return f"{found} labels are on the disk, not {labels}"
    if (home / f"{DB}-wal").exists():
        return "the workspace was not closed: there is a log beside it"
    return unsound(home / DB)


def goes_on(home: Path, keys: tuple[str, ...], shown: str) -> str:
    """Stop and continue the app on a screen, and end it by a key."""
    with app(home, *ONE, *PLACE, "--annotator", "alice", columns=120, rows=40) as terminal:
        labelled(terminal)
        terminal.press(*keys)
        terminal.until(shown)
        terminal.process.kill(signal.SIGTSTP)
        terminal.until(lambda _: is_stopped(terminal))
        begun = terminal.raw.count(BEGIN)
        terminal.process.kill(signal.SIGCONT)
        # Before that the line discipline would keep ctrl+q to itself.
        terminal.until(lambda _: terminal.raw.count(BEGIN) > begun)
        terminal.press("ctrl+q")
        code = end_of(terminal)
        if fell := not_restored(terminal, a_new_terminal()):
            return fell
    if code != 0:
        return f"does not go on: ended with {code}\n{terminal.text}"
    return _kept(home, 1)


def tries(setting: Setting) -> Iterator[Outcome]:
    """Every way on every screen; neighbours differ in both."""
    template = templates(setting) if setting.numbers(WHOLE) else Path()
    for number in setting.numbers(WHOLE):
        way = WAYS[number % len(WAYS)]
        name, keys, shown = SCREENS[number % len(SCREENS)]
        with setting.home(template) as home:
            try:
                if way.startswith("SIGTSTP"):
                    fell = goes_on(home, keys, shown)
                else:
                    fell = ends(home, way, keys, shown)
            except AssertionError as error:
                fell = str(error)
        yield Outcome(setting.kind, f"{way} on {len(SCREENS)} screens", fell and f"{name}: {fell}")

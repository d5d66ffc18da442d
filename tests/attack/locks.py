"""Labelling while another process holds the write lock, two seconds of every four."""

from __future__ import annotations

import os
import re
import select
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.workspace import Workspace
from tests.attack.trying import (
    DB,
    PATIENCE,
    SAMPLES,
    Outcome,
    Setting,
    app,
    begin,
    forked,
    said,
    unsound,
    wait_for,
)
from tests.terminal.screen import Terminal
from tests.waiting import until

WHOLE: Final = 10

MOVES: Final = 200
LABELS: Final = 40
BETWEEN_KEYS: Final = 0.025
HELD: Final = 2.0
FREE: Final = 2.0
STALL: Final = 0.3
"""The seconds from which a delay of a move counts as a stall."""

TRACE: Final = "shipping-quote-hpa-stuck.jsonl"
_CURSOR: Final = re.compile(r"^│▌\s*(\d+) ", re.MULTILINE)
_CODES: Final = {mode.slug: mode.code for mode in load_mast().modes}


# The other process


def hold(path: Path, told: int, stop: Path) -> None:
    """Hold and release the write lock in turn, until a file asks to stop."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60.0)) as database:
        while not stop.exists():
            database.execute("BEGIN IMMEDIATE")
            os.write(told, b"+")
            time.sleep(HELD)
            os.write(told, b"-")
            database.execute("COMMIT")
            time.sleep(FREE)


@dataclass(slots=True)
class Holder:
    """The process that holds the lock."""

    pid: int
    told: int
    stop: Path
    held: bool = False
    times: int = 0

    @classmethod
    def begin(cls, home: Path) -> Holder:
        """Start the process and wait until it holds the lock."""
        ours, theirs = os.pipe()
        pid = forked(home, lambda: hold(home / DB, theirs, home / "stop"), name="holder")
        os.close(theirs)
        holder = cls(pid, ours, home / "stop")
        for _ in until(lambda: holder.held):
            holder.look(1.0)
        return holder

    def look(self, seconds: float = 0.0) -> None:
        """Note whether it holds the lock now."""
        while select.select([self.told], [], [], seconds)[0]:
            word = os.read(self.told, 1)
            if not word:
                return
            self.held = word == b"+"
            self.times += self.held
            seconds = 0.0

    def end(self) -> None:
        """End the process."""
        self.stop.touch()
        wait_for(self.pid)
        os.close(self.told)


# The labels


@dataclass(slots=True)
class Story:
    """Moves and labels of an annotator, and when the screen showed them."""

    terminal: Terminal
    holder: Holder
    at: int = 1
    sent: list[tuple[int, float]] = field(default_factory=list)
    """Of each move, the number of the span and the time of the key."""
    drawn: int = 0
    """The number of moves that the screen has shown."""
    waits: list[float] = field(default_factory=list)
    drawn_while_held: int = 0
    told_of_it: bool = False
    labels: set[tuple[int, str]] = field(default_factory=set)

    def move(self, key: str) -> None:
        """Press a key that moves the cursor by one."""
        self.at += 1 if key == "j" else -1
        self.sent.append((self.at, time.monotonic()))
        self.type(key)

    def label(self, code: str) -> None:
        """Label the span under the cursor."""
        self.labels.add((self.at, code))
        for digit in code.replace(".", ""):
            self.type(digit)

    def type(self, key: str) -> None:
        """Type a key, and watch until it is time for the next."""
        os.write(self.terminal.process.child_fd, key.encode())
        until = time.monotonic() + BETWEEN_KEYS
        while time.monotonic() < until:
            self.watch(0.005)

    def watch(self, seconds: float) -> None:
        """Read the screen and note which move it shows."""
        before = len(self.terminal.raw)
        self.terminal.read(seconds)
        self.holder.look()
        if len(self.terminal.raw) == before:
            return
        text = self.terminal.text
        self.told_of_it |= "Waiting for another program" in text
        found = _CURSOR.search(text)
        if found is None:
            return
        now, number = time.monotonic(), int(found[1])
        for index in range(self.drawn, len(self.sent)):
            if self.sent[index][0] == number:
                self.waits += [now - when for _, when in self.sent[self.drawn : index + 1]]
                self.drawn_while_held += (index + 1 - self.drawn) * self.holder.held
                self.drawn = index + 1
                return


def kept(home: Path) -> set[tuple[int, str]]:
    """Return the stored labels: number of the span and code."""
    trace = read_file(home / TRACE, named=True).traces[0]
    read_fully(trace)
    with closing(Workspace.open(home / DB, create=False)) as workspace:
        found = [
            (trace.index_of(label.target.first or ""), _CODES[label.mode])
            for label in workspace.labels(annotator="alice")
        ]
    return {(-1 if index is None else index + 1, code) for index, code in found}


def labelling(setting: Setting, number: int) -> Outcome:
    """Move 200 times and label 40 times, with keys 25 ms apart."""
    chance = setting.draw(number)
    labels = max(6, round(LABELS * min(1.0, setting.share * WHOLE)))
    codes = list(_CODES.values())
    with setting.home() as home:
        shutil.copy(SAMPLES / TRACE, home / TRACE)
        words = (TRACE, "--workspace", DB, "--annotator", "alice")
        with app(home, *words, columns=120, rows=40) as terminal:
            terminal.until("alice")
            terminal.until(r"│▌\s*1 ")
            terminal.press("1", "1")
            terminal.until(r"1\.1 [^#]* on #1")
            story = Story(terminal, Holder.begin(home))
            story.labels.add((1, "1.1"))
            for count in range(labels):
                back = chance.randrange(1, 4)
                for step in range(MOVES // LABELS):
                    story.move("k" if step == back else "j")
                story.label(codes[count % len(codes)])
            try:
                fell = _to_the_end(story)
            finally:
                story.holder.end()
            terminal.press("Q")
            while terminal.read(0.2):
                pass
        if terminal.process.code != 0:
            fell = fell or f"ended with {terminal.process.code}"
        fell = fell or unsound(home / DB) or _wrong(story.labels, kept(home))
    notes = {
        "moves": float(len(story.sent)),
        "labels": float(len(story.labels) - 1),
        "moves drawn while the lock was held": float(story.drawn_while_held),
        "longest wait for a move, in ms": 1000 * max(story.waits, default=0.0),
        f"moves that took more than {1000 * STALL:.0f} ms": float(
            sum(wait > STALL for wait in story.waits)
        ),
    }
    return Outcome(setting.kind, "annotate: moves and labels", fell, notes)


def _to_the_end(story: Story) -> str:
    until = time.monotonic() + PATIENCE
    while story.drawn < len(story.sent) or "not saved" in story.terminal.text:
        story.watch(0.05)
        if time.monotonic() > until:
            return f"move {story.drawn} of {len(story.sent)} is not drawn:\n{story.terminal.text}"
    if not story.drawn_while_held:
        return "no move was drawn while the lock was held"
    if not story.told_of_it:
        return "it was not said that another program is waited for"
    return ""


def _wrong(asked: set[tuple[int, str]], found: set[tuple[int, str]]) -> str:
    if asked == found:
        return ""
    return f"not on the disk: {sorted(asked - found)}; not asked for: {sorted(found - asked)}"


# Commands


COMMANDS: Final = (
    ("judge rules", ("judge", TRACE, "--judge", "rules", "--quiet")),
    ("import csv-long", ("import", "labels.csv", "--format", "csv-long", "--allow-new")),
    ("study set", ("study", "set", TRACE, "--annotators", "alice,bob", "--annotator", "alice")),
)


def waiting(setting: Setting, what: str, words: tuple[str, ...]) -> Outcome:
    """Run a command that writes while the lock is held."""
    with setting.home() as home:
        shutil.copy(SAMPLES / TRACE, home / TRACE)
        table = "trace_id,annotator,mode,value\nt,bob,1.1,present\nt,bob,,finished\n"
        (home / "labels.csv").write_text(table, "utf-8")
        Workspace.open(home / DB).close()
        holder = Holder.begin(home)
        try:
            code = wait_for(begin(home, *words, "--workspace", DB))
        finally:
            holder.end()
        done = said(home, code)
        fell = done.fell or ("" if code == 0 else done.err) or unsound(home / DB)
    return Outcome(setting.kind, f"{what} waits for the lock", fell)


def tries(setting: Setting) -> Iterator[Outcome]:
    """Every other try is somebody who labels, the rest are commands."""
    for number in setting.numbers(WHOLE):
        if number % 2 == 0:
            yield labelling(setting, number)
        else:
            yield waiting(setting, *COMMANDS[number // 2 % len(COMMANDS)])

"""Imports undone after work by annotators and after kills: the workspace is as it was before."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Final

from mast_tui.errors import SessionError
from mast_tui.labels import Target
from mast_tui.session import Session
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace
from tests.attack import imports
from tests.attack.trying import (
    DB,
    PLACE,
    SAMPLES,
    Outcome,
    Setting,
    State,
    command,
    differing,
    kill,
    must,
    standing,
    state,
    unsound,
)

WHOLE: Final = 400

UNDO: Final = ("import", "--undo", *PLACE)
FORMATS: Final = ("csv-long", "jsonl", "csv-wide", "mast-data", "label-studio")
TRACES: Final = ("cart-valkey-noeviction.jsonl", "ad-restart-loop.jsonl")
BEFORE: Final = "alice"
"""The annotator who labelled before the import."""
AFTERWARDS: Final = "dora"
"""An annotator whom no file names."""
IMPORTED: Final = ("mira", "tomas")
"""Annotators whose labels the files have."""

MODES: Final = tuple(mode.slug for mode in load_mast().modes)


def template(setting: Setting) -> Path:
    """Return a home with files of labels, and a workspace in which only a judge and alice are."""
    home = setting.folder / "undo-template"
    if home.exists():
        return home
    files = imports.seeds(setting)
    home.mkdir()
    for name in FORMATS:
        shutil.copy(files / f"good.{name}", home)
    must(home, "judge", str(SAMPLES), "--judge", "rules", "--quiet", *PLACE)
    label(home / DB, BEFORE, random.Random(setting.seed))
    return home


@cache
def trace_of(name: str) -> Trace:
    """Read a sample trace."""
    trace = read_file(SAMPLES / name, named=True).traces[0]
    read_fully(trace)
    return trace


def label(path: Path, annotator: str, draw: random.Random) -> None:
    """Label and perhaps finish traces, as the app does."""
    with closing(Workspace.open(path, create=False)) as workspace:
        for name in draw.sample(TRACES, draw.randrange(1, len(TRACES) + 1)):
            trace = trace_of(name)
            session = Session.open(workspace, trace, load_mast(), annotator, blind=False)
            for _ in range(draw.randrange(1, 5)):
                key = trace.span(draw.randrange(len(trace))).key
                target = Target(key, key)
                session.toggle_label(draw.choice(MODES), target, suggestions_on_screen=False)
            with suppress(SessionError):  # it may be finished already
                if draw.random() < 0.5:
                    session.finish(open_modes=draw.choice(("leave", "absent")))


def _file(home: Path, name: str, draw: random.Random) -> Path:
    data = (home / f"good.{name}").read_bytes()
    lines = data.splitlines(keepends=True)
    if name in ("csv-long", "csv-wide") and len(lines) > 2 and draw.random() < 0.7:
        lines[1:] = draw.sample(lines[1:], draw.randrange(1, len(lines)))
        data = b"".join(lines)
    file = home / f"labels.{name}"
    file.write_bytes(imports.damaged(data, draw) if draw.random() < 0.2 else data)
    return file


def _of(rows: State, annotator: str) -> Mapping[str, tuple[tuple[object, ...], ...]]:
    return {name: tuple(row for row in table if annotator in row) for name, table in rows.items()}


def _undo(home: Path, draw: random.Random) -> tuple[int | None, str]:
    if draw.random() < 0.5:
        killed = kill(home, UNDO, draw, 1.5)
        if killed is not None:
            return killed.code, killed.fell
        if fell := unsound(home / DB, imported=True):
            return None, f"after a kill: {fell}"
    done = command(home, *UNDO)
    if done.code == 1 and "no import" in done.err:
        return 0, done.fell  # the kill came when it was done
    return done.code, done.fell


def attack(home: Path, name: str, work: str, draw: random.Random) -> tuple[str, bool]:
    """Import a file, have people work, take it back; return what fell and if it was imported."""
    file = _file(home, name, draw)
    before = standing(state(home / DB))
    words = ("--format", name, *PLACE)
    skipping = () if name == "jsonl" else ("--allow-new", "--skip-errors")
    done = command(home, "import", str(file), *words, *skipping)
    if done.fell or done.code != 0:
        same = standing(state(home / DB)) == before
        return done.fell or ("" if same else "it was refused, and changed the workspace"), False
    imported = standing(state(home / DB))
    if work == "another annotator works":
        label(home / DB, AFTERWARDS, draw)
    elif work == "an imported annotator works":
        label(home / DB, draw.choice(IMPORTED), draw)
    worked = standing(state(home / DB))
    code, fell = _undo(home, draw)
    after = standing(state(home / DB))
    if fell:
        return fell, True
    if fell := unsound(home / DB, imported=True):
        return fell, True
    if code != 0:
        if after != worked:
            return f"it was refused, and changed {differing(after, worked)}", True
        if work == "an imported annotator works" or imported == before:
            return "", True
        return f"an import on which nothing was built is not taken back: {code}", True
    if _of(after, AFTERWARDS) != _of(worked, AFTERWARDS):
        return f"later work of {AFTERWARDS} is gone", True
    if work == "an imported annotator works":
        new = {name: set(worked[name]) - set(imported[name]) for name in worked}
        gone = {name: rows - set(after[name]) for name, rows in new.items()}
        lost = {name: rows for name, rows in gone.items() if rows and name == "labels"}
        return (f"later labels of an imported annotator are gone: {lost}" if lost else ""), True
    rest = {
        name: tuple(row for row in rows if AFTERWARDS not in row) for name, rows in after.items()
    }
    names = differing(rest, before)
    return f"not as before: {names}" if names else "", True


WORK: Final = ("nobody works afterwards", "another annotator works", "an imported annotator works")


def tries(setting: Setting) -> Iterator[Outcome]:
    """Take imports of each format back, after each kind of work."""
    numbers = setting.numbers(WHOLE)
    if not numbers:
        return
    home = template(setting)
    for number in numbers:
        name = FORMATS[number % len(FORMATS)]
        work = WORK[number % len(WORK)]
        with setting.home(home) as copy:
            fell, taken = attack(copy, name, work, setting.draw(number))
        notes = {"files that were imported": float(taken)}
        what = f"import taken back: {work}"
        yield Outcome(setting.kind, what, fell and f"{name}: {fell}", notes)

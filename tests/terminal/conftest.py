"""The home folder of tests in a terminal, and the program that starts the app there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal.forking import Apps


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home without files, in which the welcome has been shown."""
    data = tmp_path / ".local" / "share" / "mast-tui"
    data.mkdir(parents=True)
    (data / "welcomed").touch()
    return tmp_path


@pytest.fixture(scope="session")
def apps() -> Iterator[Apps]:
    """Starts the app without its imports, for tests that are not about the start or the end."""
    with Apps() as apps:
        yield apps

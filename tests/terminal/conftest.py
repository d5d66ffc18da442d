"""Fixtures of tests in a terminal: a home folder, and a program that starts the app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal.forking import Apps


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home folder in which the welcome screen is not shown again."""
    data = tmp_path / ".local" / "share" / "mast-tui"
    data.mkdir(parents=True)
    (data / "welcomed").touch()
    return tmp_path


@pytest.fixture(scope="session")
def apps() -> Iterator[Apps]:
    """Quick starts of the app, for tests that are not about its start or end."""
    with Apps() as apps:
        yield apps

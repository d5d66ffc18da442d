"""The home folder of tests in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home without files, in which the welcome has been shown."""
    data = tmp_path / ".local" / "share" / "mast-tui"
    data.mkdir(parents=True)
    (data / "welcomed").touch()
    return tmp_path

"""The browser of these tests."""

from __future__ import annotations

import pytest

from tests.browser.chromium import NAMES, chromium_path


@pytest.fixture
def program() -> str:
    """Return the path of a browser; skip the test where none is installed."""
    path = chromium_path()
    if path is None:
        pytest.skip(f"not tested in a browser: none of {', '.join(NAMES)} is installed")
    return path

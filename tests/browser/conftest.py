"""The browser that the tests here look through."""

from __future__ import annotations

import os
import warnings

import pytest

from tests.browser.chromium import NAMES, chromium_path


@pytest.fixture
def program() -> str:
    """The browser; where there is none the test is skipped, but not where CI promises one."""
    found = chromium_path()
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"none of {', '.join(NAMES)} is installed")
        warnings.warn("no Chromium: the app was not looked at in a browser", stacklevel=2)
        pytest.skip("no Chromium")
    return found

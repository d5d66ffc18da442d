"""The page of options is written from the commands."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.slow  # every command is imported

ROOT: Final = Path(__file__).resolve().parent.parent
SCRIPT: Final = runpy.run_path(str(ROOT / "scripts" / "options_page.py"))


def test_the_page_is_up_to_date() -> None:
    """`scripts/options_page.py` rewrites it."""
    page = (ROOT / "docs" / "options.md").read_text("utf-8")
    assert SCRIPT["page"]() == page, "run scripts/options_page.py"


def test_a_row_says_what_an_option_needs_and_excludes() -> None:
    page = SCRIPT["page"]()
    assert "Needs `--judge`." in page
    assert "Not with `--write-batch` or `--read-batch`." in page

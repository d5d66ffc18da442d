"""The page of options is made from the commands."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Final

import pytest

from mast_tui.cli.command_line import COMMANDS

pytestmark = pytest.mark.slow  # every command is imported

ROOT: Final = Path(__file__).resolve().parent.parent
SCRIPT: Final = runpy.run_path(str(ROOT / "scripts" / "options_page.py"))


def test_the_page_has_every_command_and_says_what_an_option_needs_and_excludes() -> None:
    page = SCRIPT["options_page"]()
    assert [name for name in COMMANDS if f"\n## {name}" not in page] == []
    assert "Needs `--judge`." in page
    assert "Not with `--write-batch` or `--read-batch`." in page

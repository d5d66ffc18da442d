"""The page's table of keys is the registry's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from mast_tui.ui.actions.registry import ACTIONS, key_text

ROOT: Final = Path(__file__).resolve().parent.parent


def test_the_table_is_up_to_date_and_names_every_key() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "key_page.py", "--check"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, (
        f"{done.stderr}run scripts/key_page.py: the table in docs/keys.md is out of date"
    )
    page = (ROOT / "docs" / "keys.md").read_text("utf-8")
    table = page.partition("<!-- keys -->")[2].partition("<!-- /keys -->")[0]
    for action in ACTIONS:
        if not action.name.startswith(("digit_", "side_")):
            assert action.help in table
            assert all(f"`{key_text(key)}`" in table for key in action.keys)

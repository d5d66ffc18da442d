"""The README's table of keys is the registry's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from mast_tui.ui.actions.registry import ACTIONS, shown

ROOT: Final = Path(__file__).resolve().parent.parent


def test_the_table_is_up_to_date_and_names_every_key() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "readme_keys.py", "--check"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, (
        f"{done.stderr}run scripts/readme_keys.py: the table of keys in README.md is out of date"
    )
    page = (ROOT / "README.md").read_text("utf-8")
    table = page.partition("<!-- keys -->")[2].partition("<!-- /keys -->")[0]
    for action in ACTIONS:
        if not action.name.startswith(("digit_", "side_")):
            assert action.help in table
            assert all(f"`{shown(key)}`" in table for key in action.keys)

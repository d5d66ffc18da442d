"""The page and the file of keys are made from the registry."""

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
        f"{done.stderr}run scripts/key_page.py: docs/keys.md or docs/keys.csv is out of date"
    )
    table = (ROOT / "docs" / "keys.csv").read_text("utf-8")
    for action in ACTIONS:
        if not action.name.startswith(("digit_", "side_")):
            assert action.help in table.replace('""', '"')
            assert all(key_text(key) in table.replace('""', '"') for key in action.keys)

"""The page and the file of keys are made from the registry."""

from __future__ import annotations

from mast_tui.ui.actions.registry import ACTIONS, key_text
from scripts.key_page import ALL_KEYS, pages


def test_the_table_is_up_to_date_and_names_every_key() -> None:
    for path, text in pages().items():
        assert path.read_text("utf-8") == text, "run scripts/key_page.py"
    table = ALL_KEYS.read_text("utf-8")
    for action in ACTIONS:
        if not action.name.startswith(("digit_", "side_")):
            assert action.help in table.replace('""', '"')
            assert all(key_text(key) in table.replace('""', '"') for key in action.keys)

"""Write the tables of keys in docs/keys.md, and docs/keys.csv, from the registry of actions.

    .venv/bin/python scripts/key_page.py            rewrites the tables
    .venv/bin/python scripts/key_page.py --check    exit code 1 if they are not up to date

The page has the screens on which people label, between two comments; the file has all screens.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mast_tui.ui.actions.registry import KeyAction, Where, actions_for, key_text
from scripts.pages import csv_text, with_table, write_or_check

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "keys.md"
ALL_KEYS: Final = PAGE.with_suffix(".csv")

ON_THE_PAGE: Final = (Where.EVERYWHERE, Where.LIBRARY, Where.ANNOTATE)
SCREENS: Final = tuple(where for where in Where if where is not Where.EVERYWHERE)


def _same(action: KeyAction) -> tuple[str, ...]:
    """Return the keys and the help of an action, by which actions of screens are compared."""
    return (*action.keys, action.help)


def _rows(where: Where) -> Iterator[tuple[str, str]]:
    """Yield the keys and the help of a screen's actions; those of all screens are EVERYWHERE."""
    count = Counter(_same(action) for screen in SCREENS for action in actions_for(screen))
    shared = {same for same, screens in count.items() if screens == len(SCREENS)}
    if where is Where.EVERYWHERE:
        for action in actions_for(SCREENS[0]):
            if _same(action) in shared:
                yield _keys(action), action.help
    digits = False
    for action in actions_for(where):
        if _same(action) in shared:
            continue
        if action.name.startswith(("digit_", "side_")):
            if not digits:
                digits = True
                twice = action.name.startswith("digit_")
                yield ("`0`…`9` twice" if twice else "`1`…`9`"), action.help
            continue
        yield _keys(action), action.help


def _keys(action: KeyAction) -> str:
    return " ".join(f"`{key_text(key)}`" for key in action.keys)


def key_tables() -> str:
    """Return a table for each of the screens on which people label, in Markdown."""
    lines = []
    for where in ON_THE_PAGE:
        heading = where.replace("_", " ").capitalize()
        lines += [f"## {heading}", "", "keys | what they do", "--- | ---"]
        lines += [f"{keys} | {text}" for keys, text in _rows(where)]
        lines.append("")
    return "\n".join(lines[:-1])


def all_keys() -> str:
    """Return the keys of all screens as CSV."""
    rows = (
        (where.replace("_", " "), keys.replace("`", ""), about)
        for where in Where
        for keys, about in _rows(where)
    )
    return csv_text(("screen", "keys", "what they do"), rows)


def pages() -> dict[Path, str]:
    """Return the new text of the page and of the file."""
    return {PAGE: with_table(PAGE, "keys", key_tables()), ALL_KEYS: all_keys()}


if __name__ == "__main__":
    sys.exit(write_or_check(pages()))

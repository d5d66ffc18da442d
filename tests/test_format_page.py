"""The pages of formats are written from their data, and name each format."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Final

import pytest

from mast_tui.traces.readers import readers

ROOT: Final = Path(__file__).resolve().parent.parent
SCRIPT: Final = runpy.run_path(str(ROOT / "scripts" / "format_page.py"))

OF_SEVERAL_NAMES: Final = frozenset({"vendor-export", "otel"})
"""Readers whose traces have the name of a format below them."""


@pytest.mark.parametrize("path", SCRIPT["PAGES"], ids=lambda path: path.name)
def test_the_table_is_up_to_date(path: Path) -> None:
    """`scripts/format_page.py` rewrites it."""
    assert SCRIPT["page_with_table"](path) == path.read_text("utf-8"), "run scripts/format_page.py"


def test_every_reader_is_in_the_table() -> None:
    """A reader needs a row in `mast_tui/traces/readers/formats.toml`."""
    named = {name for row in SCRIPT["format_rows"]() for name in row["names"]}
    all_readers = [*readers(), *readers(binary=True)]
    missing = {reader.name for reader in all_readers} - named - OF_SEVERAL_NAMES
    assert not missing

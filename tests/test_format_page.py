"""The page of formats is written from the data of the readers and names each of them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Final

from mast_tui.traces.readers import readers

ROOT: Final = Path(__file__).resolve().parent.parent
SCRIPT: Final = runpy.run_path(str(ROOT / "scripts" / "format_page.py"))

OF_SEVERAL_NAMES: Final = frozenset({"vendor-export", "otel"})
"""Readers whose traces have the name of a format below them."""


def test_the_table_is_up_to_date() -> None:
    """`scripts/format_page.py` rewrites it."""
    page = (ROOT / "docs" / "formats.md").read_text("utf-8")
    assert SCRIPT["page_with_table"](page) == page, "run scripts/format_page.py"


def test_every_reader_is_in_the_table() -> None:
    """A reader needs a row in `mast_tui/traces/readers/formats.toml`."""
    named = {name for row in SCRIPT["format_rows"]() for name in row["names"]}
    all_readers = [*readers(), *readers(binary=True)]
    missing = {reader.name for reader in all_readers} - named - OF_SEVERAL_NAMES
    assert not missing

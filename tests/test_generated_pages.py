"""Pages and tables of the documentation that scripts write are up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from mast_tui.cli.command_line import COMMANDS
from mast_tui.traces.readers import readers
from scripts.format_page import PAGES, format_rows, page_with_table
from scripts.json_fields import tables
from scripts.options_page import options_page

WITH_SEVERAL_FORMATS: Final = frozenset({"vendor-export", "otel"})
"""Readers of several formats, whose traces have the name of their format."""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_tables_of_formats_are_up_to_date(path: Path) -> None:
    text = page_with_table(path)
    assert text == path.read_text("utf-8"), "run scripts/format_page.py"


def test_the_table_of_formats_has_every_reader() -> None:
    """A reader needs a row in `mast_tui/traces/readers/formats.toml`."""
    named = {name for row in format_rows() for name in row.names}
    all_readers = [*readers(), *readers(binary=True)]
    missing = {reader.name for reader in all_readers} - named - WITH_SEVERAL_FORMATS
    assert not missing


@pytest.mark.slow
def test_the_tables_of_json_fields_are_up_to_date() -> None:
    for path, text in tables().items():
        assert text == path.read_text("utf-8"), "run scripts/json_fields.py"


@pytest.mark.slow
def test_the_page_of_options_has_every_command_and_rule() -> None:
    page = options_page()
    assert [name for name in COMMANDS if f"\n## {name}" not in page] == []
    assert "Needs `--judge`." in page
    assert "Not with `--write-batch` or `--read-batch`." in page

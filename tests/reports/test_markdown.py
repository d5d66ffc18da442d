"""Reports as Markdown."""

from __future__ import annotations

import re
from dataclasses import replace

from mast_tui.reports.model import Report
from mast_tui.reports.render.markdown import plain, render_markdown
from tests.reports import sample


def cells_of(line: str) -> list[str]:
    """Return the cells of a row, separated by bars that are not escaped."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_rows_of_a_table_have_equally_many_cells() -> None:
    text = render_markdown(sample.report())
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 2
    for block in tables:
        rows = [cells_of(line) for line in block.splitlines()]
        assert {len(row) for row in rows} == {9}
        assert rows[1][2] == "---:"
        assert rows[1][1] == "---"


def test_captions_notes_facts_and_names_are_written_as_plain_text() -> None:
    text = render_markdown(sample.report())
    assert "Table: Agreement on whole traces. First pass, 8 traces;" in text
    assert "Table: All numbers." in text, "tables that a page folds are written out"
    assert "- mean score: 0.50 (n 4)" in text
    assert text.index("**Note:** Pairs share few traces") < text.index("| mode |")
    assert "† κ is low although raw agreement is high." in text
    assert "— no variance" in text
    assert "- the paper: https://example.org/a\\_b?c=1\\&d=2" in text
    assert not re.search(r"(?<!\\)<", text)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"\`code\` \*bold\* \[link\](http://x) \#1 \$x\_1^2\$" in text
    assert plain("&lt;b&gt;") == r"\&lt;b\&gt;"
    for about in ("- a", "1. a", "+ a", "=== a", "12) a"):
        line = render_markdown(Report("agreement", "A", about, ())).splitlines()[2]
        assert line.replace("\\", "") == about
        assert not re.match(r"(\d+[.)]|[-+=])", line), "a sentence must not begin a list"


def test_headings_are_lower_within_another_text() -> None:
    lines = render_markdown(sample.report(), level=2).splitlines()
    assert "## Agreement" in lines
    assert not [line for line in lines if line.startswith("# ")]
    alone = replace(sample.report(), sections=sample.report().sections[:1])
    assert [line for line in render_markdown(alone).splitlines() if line.startswith("## ")] == []

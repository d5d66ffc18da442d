"""A report as Markdown: tables that hold, and names that stay names."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mast_tui.reports.render.markdown import plain, render_markdown
from tests.reports import sample


def cells_of(line: str) -> list[str]:
    """The cells of a row, parted where a bar is not escaped."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_every_row_of_a_table_has_as_many_cells() -> None:
    text = render_markdown(sample.report())
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 2
    for block in tables:
        rows = [cells_of(line) for line in block.splitlines()]
        assert {len(row) for row in rows} == {9}
        assert rows[1][2] == "---:"
        assert rows[1][1] == "---"


def test_captions_notes_and_facts_are_told() -> None:
    text = render_markdown(sample.report())
    assert "Table: Agreement on whole traces. First pass, 8 traces;" in text
    assert "Table: All numbers." in text, "what a page folds is written out"
    assert "- mean score: 0.50 (n 4)" in text
    assert text.index("**Note:** Pairs share few traces") < text.index("| mode |")
    assert "† κ is low although raw agreement is high." in text
    assert "— no variance" in text
    assert "- the paper: https://example.org/a\\_b?c=1\\&d=2" in text


def test_nothing_foreign_is_markup() -> None:
    text = render_markdown(sample.report())
    assert not re.search(r"(?<!\\)<", text)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"\`code\` \*bold\* \[link\](http://x) \#1 \$x\_1^2\$" in text


@pytest.mark.parametrize("words", ["- a", "1. a", "+ a", "=== a", "12) a"])
def test_a_sentence_begins_no_list(words: str) -> None:
    report = sample.report()
    told = render_markdown(type(report)("agreement", "A", words, ()))
    assert told.splitlines()[2].replace("\\", "") == words
    assert not re.match(r"(\d+[.)]|[-+=])", told.splitlines()[2])


def test_entities_stay_what_was_written() -> None:
    assert plain("&lt;b&gt;") == r"\&lt;b\&gt;"


def test_as_a_part_of_another_text_its_headings_stand_lower() -> None:
    lines = render_markdown(sample.report(), level=2).splitlines()
    assert "## Agreement" in lines
    assert not [line for line in lines if line.startswith("# ")]
    alone = replace(sample.report(), sections=sample.report().sections[:1])
    assert [line for line in render_markdown(alone).splitlines() if line.startswith("## ")] == []

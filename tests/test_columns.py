"""Columns that share a line: which are cut, left out, or get the free cells."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.columns import (
    ColumnWidth,
    TableColumn,
    fit,
    padded,
    shortened,
    table_lines,
    text_lengths,
)

Record = Mapping[str, str]


def column(title: str, *, right: bool = False, width: ColumnWidth) -> TableColumn[Record]:
    return TableColumn(title, lambda row: row.get(title, ""), width=width, right=right)


NAME = column("name", width=ColumnWidth(cuts=((0, 6), (9, 1)), most=10, spare=3))
COUNT = column("count", right=True, width=ColumnWidth(4))
NOTE = column("note", width=ColumnWidth(2, cuts=((1, 5),), filled=0.5))
MODEL = column("model", width=ColumnWidth(3, least_line=30))
COLUMNS = (NAME, COUNT, NOTE, MODEL)
ROWS: tuple[Record, ...] = (
    {"name": "n" * 14, "count": "12345678", "note": "o" * 9, "model": "mmmm"},
    {"name": "n", "count": "1", "note": "o"},
)


@pytest.mark.parametrize(
    ("line", "widths"),
    [
        (60, {"name": 17, "count": 8, "note": 9, "model": 5}),  # free cells go to the name
        (42, {"name": 14, "count": 8, "note": 9, "model": 5}),
        (40, {"name": 12, "count": 8, "note": 9, "model": 5}),  # more than its most, if free
        (35, {"name": 7, "count": 8, "note": 9, "model": 5}),  # the lowest rank is cut first
        (32, {"name": 6, "count": 8, "note": 7, "model": 5}),
        (30, {"name": 6, "count": 8, "note": 5, "model": 5}),
        (29, {"name": 8, "count": 8, "note": 9}),  # a short line has no model
        (21, {"name": 11, "count": 8}),  # what is left out leaves room
        (9, {"name": 9}),
        (1, {"name": 1}),
    ],
)
def test_columns_give_way_by_rank(line: int, widths: dict[str, int]) -> None:
    lengths = [text_lengths(COLUMNS, row) for row in ROWS]
    fitted = fit(COLUMNS, lengths, line)
    assert {COLUMNS[index].title: cells for index, cells in fitted.items()} == widths


def test_a_column_with_few_texts_is_left_out() -> None:
    rows: tuple[Record, ...] = (*ROWS, {}, {}, {})
    for table_rows in (ROWS, rows, ()):
        fitted = fit(COLUMNS, [text_lengths(COLUMNS, row) for row in table_rows], 80)
        assert (COLUMNS.index(NOTE) in fitted) == (table_rows is ROWS)


@given(
    st.lists(st.fixed_dictionaries({c.title: st.text("mn界", max_size=20) for c in COLUMNS})),
    st.integers(1, 90),
)
def test_a_line_is_never_longer_than_asked(rows: list[dict[str, str]], line: int) -> None:
    fitted = fit(COLUMNS, [text_lengths(COLUMNS, row) for row in rows], line)
    gaps = sum(COLUMNS[index].width.gap for index in list(fitted)[:-1])
    assert sum(fitted.values()) + gaps <= line
    for index, cells in fitted.items():
        for row in rows:
            assert padded(COLUMNS[index].text(row, cells), cells) == COLUMNS[index].text(row, cells)
        assert len(COLUMNS[index].heading(cells)) == cells


@pytest.mark.parametrize(
    ("text", "cells", "short"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("界界", 3, "界…"), ("abc", 0, ""), ("", 0, "")],
)
def test_a_text_that_is_cut_says_so(text: str, cells: int, short: str) -> None:
    assert shortened(text, cells) == short
    assert padded(text, cells + 2).rstrip() == shortened(text, cells + 2).rstrip()


def test_numbers_are_aligned_to_the_right_under_their_heading() -> None:
    assert (COUNT.heading(7), COUNT.text({"count": "12"}, 7)) == ("  count", "     12")
    assert (NAME.heading(7), NAME.text({"name": "ab"}, 7)) == ("name   ", "ab     ")
    assert NAME.heading(3) == "nam"


def test_a_table_is_as_wide_as_its_texts_in_cells() -> None:
    rows: list[Record] = [{"name": "李明", "count": "7"}, {"name": "ann", "count": "123456"}]
    assert list(table_lines((NAME, COUNT), rows, str.upper)) == [
        "NAME   COUNT",
        "李明       7",
        "ANN   123456",
    ]
    assert list(table_lines((NAME, COUNT), [])) == ["name  count"]


def test_a_table_fits_its_line_and_names_the_columns_without_room() -> None:
    rows: list[Record] = [{"name": "a" * 30, "count": "123456"}]
    dropped = replace(COUNT, title="system", width=ColumnWidth(drop_rank=1))
    assert list(table_lines((NAME, COUNT, dropped), rows, line_cells=20)) == [
        "name           count",
        f"{'a' * 11}…  123456",
        "Columns left out (the window is too narrow): system.",
    ]
    assert len(list(table_lines((NAME, COUNT, dropped), rows))) == 2

"""Where a long text breaks into rows: nothing is lost, nothing is too wide, and it is lazy."""

from __future__ import annotations

import re
from typing import SupportsIndex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from mast_tui.safe_text import safe_line
from mast_tui.ui.text.layout import BLOCK_CHARS, TextLayout

JOINER = "\u200d"
TROUBLE = (
    "\t\r\n \u200d\u0301\u202e\x1b\ufe0f界👩🏽",
    "\N{ARABIC LETTER BEH}\N{DEVANAGARI LETTER KA}\N{DEVANAGARI VOWEL SIGN I}[/]",
)
texts = st.text(st.one_of(st.sampled_from("".join(TROUBLE)), st.characters()), max_size=400)
texts_without_context = texts.map(lambda text: text.replace("\r", "").replace(JOINER, ""))
"""Texts of which any part looks like the same part of the whole."""

widths = st.integers(10, 60)
"""Ten cells hold the longest symbol of a hidden character."""


def laid_out(text: str, width: int) -> TextLayout:
    layout = TextLayout(text, width)
    while not layout.complete:
        layout.extend(layout.rows + 1000)
    return layout


class CountingText(str):
    """A text that counts the code points that are taken from it."""

    taken = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        part = super().__getitem__(key)
        self.taken += len(part)
        return part


@given(texts, widths)
@example("", 10)
@example("\n", 10)
@example("a\r\n\r\nb\r", 10)
@example("ten chars! ", 10)
@example("\ufe0f" * 3 + "x" * 30, 10)
@example("e" + "\u0301" * 50, 10)
@example("x" * BLOCK_CHARS + "\r\n" + "y", 10)
@example("x" * (BLOCK_CHARS - 1) + "\r\n" + "y", 10)
@example("👩\u200d" * 40, 10)
def test_the_rows_hold_the_text_in_order_and_nothing_twice(text: str, width: int) -> None:
    layout = laid_out(text, width)
    place = 0
    for index in range(layout.rows):
        row = layout.row(index)
        assert row.start == place
        assert row.start < row.end or row.start == row.end == len(text)
        assert row.shown == safe_line(re.sub(r"\r?\n\Z", "", text[row.start : row.end]))
        place = row.end
    assert place == len(text)


@given(texts, widths)
@example("ten chars! ", 10)
@example("\u202e" * 30, 10)
@example("a" * 9 + "界" * 30, 10)
def test_no_row_is_wider_than_the_width_but_for_a_space_at_its_end(text: str, width: int) -> None:
    layout = laid_out(text, width)
    for index in range(layout.rows):
        shown = layout.row(index).shown
        assert cell_len(shown.removesuffix(" ")) <= width


@given(texts, widths)
def test_every_line_of_the_text_begins_a_row(text: str, width: int) -> None:
    layout = laid_out(text, width)
    starts = {layout.row(index).start for index in range(layout.rows)}
    assert {0, *(place + 1 for place, char in enumerate(text) if char == "\n")} <= starts


@given(st.text("ab \n", max_size=300), widths)
def test_words_that_fit_are_not_cut(text: str, width: int) -> None:
    layout = laid_out(text, width)
    longest = max((len(word) for word in text.split()), default=0)
    for index in range(1, layout.rows) if longest <= width // 2 else ():
        start = layout.row(index).start
        if start < len(text):
            assert text[start - 1] in " \n" or text[start] in " \n"


@given(texts, widths, st.data())
def test_a_code_point_is_found_in_its_row(text: str, width: int, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, max(0, len(text) - 1)))
    layout = TextLayout(text, width)
    row = layout.row(layout.row_of(offset))
    assert row.start <= offset < row.end or not text
    again = laid_out(text, width)
    assert again.row(again.row_of(offset)) == row


@given(texts, widths, st.data())
def test_what_is_shown_of_a_code_point_leads_back_to_it(
    text: str, width: int, data: st.DataObject
) -> None:
    layout = laid_out(text, width)
    row = layout.row(data.draw(st.integers(0, layout.rows - 1)))
    offset = data.draw(st.integers(row.start, max(row.start, row.end - 1)))
    part = row.slice_of(offset, offset + 1)
    if part is None:
        # Nothing stands for a line break, for what tints emoji, and for what joins them.
        char = text[offset : offset + 1]
        assert char in ("", "\n", "\r") or not safe_line(char).strip(JOINER)
        return
    assert row.shown[part[0] : part[1]] == safe_line(text[offset])
    assert {row.offset_at(column) for column in range(*part)} == {offset}


@given(texts_without_context, widths, st.data())
def test_a_quote_is_the_sum_of_its_parts_in_the_rows(
    text: str, width: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    layout = laid_out(text, width)
    shown = []
    for index in range(layout.rows):
        row = layout.row(index)
        part = row.slice_of(start, end)
        if part is not None:
            assert 0 <= part[0] < part[1] <= len(row.shown)
            shown.append(row.shown[part[0] : part[1]])
    assert "".join(shown) == "".join(map(safe_line, text[start:end].split("\n")))


@given(texts, widths, st.integers(0, 3000))
def test_any_column_of_a_row_stands_for_a_code_point_of_it(
    text: str, width: int, column: int
) -> None:
    layout = laid_out(text, width)
    for index in range(layout.rows):
        row = layout.row(index)
        assert row.start <= row.offset_at(column) <= max(row.start, row.end - 1)


@given(st.text("ab \n", max_size=200), st.integers(1, 5), widths)
def test_rows_do_not_depend_on_how_far_one_looks_at_a_time(
    text: str, step: int, width: int
) -> None:
    by_steps = TextLayout(text, width)
    while not by_steps.complete:
        by_steps.extend(by_steps.rows + step)
    whole = laid_out(text, width)
    assert [by_steps.row(i) for i in range(by_steps.rows)] == [
        whole.row(i) for i in range(whole.rows)
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 10_000_000, id="one line of 10 MB"),
        pytest.param("word and " * 1_100_000, id="10 MB of words in one line"),
        pytest.param("a line of a log\n" * 200_000, id="200,000 lines"),
        pytest.param("e" + "\u0301" * 1_000_000, id="one letter with a million accents"),
    ],
)
def test_the_first_screen_looks_at_no_more_than_it_shows(text: str) -> None:
    counted = CountingText(text)
    layout = TextLayout(counted, 80)
    layout.extend(50)
    assert layout.rows >= 50
    assert not layout.complete
    for index in range(50):
        layout.row(index)
    assert counted.taken < 50 * 80 * 4 + 4 * BLOCK_CHARS


def test_a_place_far_down_is_found_without_making_rows_of_what_is_behind_it() -> None:
    text = CountingText("a line of a log\n" * 200_000)
    layout = TextLayout(text, 80)
    offset = 16 * 1000 + 3
    assert layout.row_of(offset) == 1000
    assert text.taken < 2 * offset

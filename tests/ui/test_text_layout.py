"""The rows of a long text: complete, narrow enough, and computed on demand."""

from __future__ import annotations

import re
from itertools import pairwise
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from mast_tui.safe_text import safe_line
from mast_tui.ui.text.layout import BLOCK_CHARS, CHUNK_CHARS, UNWRAPPED_WIDTH, TextLayout, block_at

JOINER = "\u200d"
SPECIAL_CHARACTERS = (
    "\t\r\n \u200d\u0301\u202e\x1b\ufe0f界👩🏽",
    "\N{ARABIC LETTER BEH}\N{DEVANAGARI LETTER KA}\N{DEVANAGARI VOWEL SIGN I}[/]",
)
texts = st.text(
    st.one_of(st.sampled_from("".join(SPECIAL_CHARACTERS)), st.characters()), max_size=400
)
texts_without_context = texts.map(lambda text: text.replace("\r", "").replace(JOINER, ""))
"""Texts of which any part looks like the same part of the whole."""

widths = st.integers(10, 60)
"""Ten cells hold the longest symbol of a hidden character."""


def laid_out(text: str, width: int) -> TextLayout:
    layout = TextLayout(text, width)
    while not layout.complete:
        layout.work_out_next()
    return layout


@given(texts, widths, st.integers(0, 3000))
@example("", 10, 0)
@example("\n", 10, 0)
@example("a\r\n\r\nb\r", 10, 0)
@example("ten chars! ", 10, 0)
@example("\ufe0f" * 3 + "x" * 30, 10, 0)
@example("e" + "\u0301" * 50, 10, 0)
@example("x" * BLOCK_CHARS + "\r\n" + "y", 10, 0)
@example("x" * (BLOCK_CHARS - 1) + "\r\n" + "y", 10, 0)
@example("👩\u200d" * 40, 10, 0)
@example("\u202e" * 30, 10, 0)
@example("a" * 9 + "界" * 30, 10, 0)
def test_rows_hold_the_text_in_order_and_fit(text: str, width: int, column: int) -> None:
    layout = laid_out(text, width)
    offset = 0
    starts = set()
    for index in range(layout.rows):
        row = layout.row(index)
        assert row.start == offset
        assert row.start < row.end or row.start == row.end == len(text)
        assert row.shown == safe_line(re.sub(r"\r?\n\Z", "", text[row.start : row.end]))
        assert cell_len(row.shown.removesuffix(" ")) <= width
        assert row.start <= row.offset_at(column) <= max(row.start, row.end - 1)
        offset = row.end
        starts.add(row.start)
    assert offset == len(text)
    assert {0, *(offset + 1 for offset, char in enumerate(text) if char == "\n")} <= starts


@given(st.text("ab \n", max_size=300), widths)
def test_fitting_words_are_not_cut(text: str, width: int) -> None:
    layout = laid_out(text, width)
    longest = max((len(word) for word in text.split()), default=0)
    for index in range(1, layout.rows) if longest <= width // 2 else ():
        start = layout.row(index).start
        if start < len(text):
            assert text[start - 1] in " \n" or text[start] in " \n"


@given(texts, widths, st.data())
def test_code_points_are_found_in_their_row(text: str, width: int, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, max(0, len(text) - 1)))
    layout = TextLayout(text, width)
    row = layout.row(layout.row_of(offset))
    assert row.start <= offset < row.end or not text
    second_layout = laid_out(text, width)
    assert second_layout.row(second_layout.row_of(offset)) == row


@given(texts, widths, st.data())
def test_cells_lead_back_to_their_code_point(text: str, width: int, data: st.DataObject) -> None:
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
def test_quotes_are_shown_in_parts(text: str, width: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    layout = laid_out(text, width)
    parts = []
    for index in range(layout.rows):
        row = layout.row(index)
        part = row.slice_of(start, end)
        if part is not None:
            assert 0 <= part[0] < part[1] <= len(row.shown)
            parts.append(row.shown[part[0] : part[1]])
    assert "".join(parts) == "".join(map(safe_line, text[start:end].split("\n")))


LINES = (
    "",
    "a line of a log",
    "x" * 300,
    "word and " * 70,
    "x" * (BLOCK_CHARS - 1),
    "y" * BLOCK_CHARS,
    "z" * (BLOCK_CHARS + 1),
    "w" * (BLOCK_CHARS + 2),
    "many words " * 900,
    "界" * 5000,
    "e" + "\u0301" * 6000,
    "👩\u200d" * 3000,
    "\x1b\t" * 40,
)


def mixed_text(seed: int) -> str:
    random = Random(seed)
    parts = []
    for _ in range(80):
        parts += [random.choice(LINES), random.choice(("\n", "\n", "\r\n", "\n\n", "\r"))]
    return "".join(parts)


seeds = pytest.mark.parametrize("seed", range(3))


@pytest.mark.slow
@seeds
def test_blocks_are_the_same_from_any_offset(seed: int) -> None:
    text = mixed_text(seed)
    random = Random(seed)
    expected_start = 0
    while expected_start < len(text):
        start, end = block_at(text, expected_start)
        assert start == expected_start
        assert start < end <= start + 2 * BLOCK_CHARS + 2
        for offset in {end - 1, *(random.randrange(start, end) for _ in range(5))}:
            assert block_at(text, offset) == (start, end)
        expected_start = end


@pytest.mark.slow
@seeds
def test_rows_are_the_same_from_any_offset(seed: int) -> None:
    text = mixed_text(seed)
    whole = laid_out(text, 50)
    rows = [whole.row(i) for i in range(whole.rows)]
    assert rows[0].start == 0
    assert all(a.end == b.start for a, b in pairwise(rows))
    assert rows[-1].end == len(text)
    random = Random(seed)
    for _ in range(20):
        layout = TextLayout(text, 50)
        number = random.randrange(len(rows))
        row = rows[number]
        offset = random.randrange(row.start, row.end)
        assert layout.row_at(offset) == row
        step = random.randrange(-60, 60)
        target_row = rows[max(0, min(number + step, len(rows) - 1))]
        assert layout.step(offset, step) == target_row.start
        assert layout.row(layout.row_of(offset)) == row
    while not layout.complete:
        layout.work_out_next()
    assert [layout.row(i) for i in range(layout.rows)] == rows


@pytest.mark.parametrize("text", ["\n", "\n" * 5000, "x" * CHUNK_CHARS, "x" * CHUNK_CHARS + "\n"])
def test_a_final_line_break_opens_a_row(text: str) -> None:
    layout = laid_out(text, 80)
    rows = [layout.row(i) for i in range(layout.rows)]
    assert sum(row.end - row.start for row in rows) == len(text)
    assert (rows[-1].start == len(text)) is text.endswith("\n")
    assert layout.row_of(len(text)) == len(rows) - 1


def test_unwrapped_lines_are_rows() -> None:
    text = "a\n" + "b" * 3000 + "\n" + "word " * 100 + "\n\nend"
    layout = laid_out(text, UNWRAPPED_WIDTH)
    assert [layout.row(i).shown for i in range(layout.rows)] == text.split("\n")

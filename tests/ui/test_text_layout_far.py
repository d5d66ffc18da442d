"""A text of any length is laid out around what is looked at, and comes out the same anyhow."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from mast_tui.ui.text.layout import BLOCK_CHARS, CHUNK_CHARS, UNWRAPPED, TextLayout, block_at
from tests.ui.counting_text import CountingText

pytestmark = pytest.mark.slow

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
    """Lines of all sorts, around 200,000 code points long."""
    random = Random(seed)
    parts = []
    for _ in range(80):
        parts += [random.choice(LINES), random.choice(("\n", "\n", "\r\n", "\n\n", "\r"))]
    return "".join(parts)


texts = pytest.mark.parametrize("seed", range(6))


def laid_out(text: str, width: int) -> TextLayout:
    layout = TextLayout(text, width)
    while not layout.complete:
        layout.work_out_next()
    return layout


@texts
def test_blocks_are_the_same_from_wherever_one_looks(seed: int) -> None:
    text = mixed_text(seed)
    random = Random(seed)
    place = 0
    while place < len(text):
        start, end = block_at(text, place)
        assert start == place
        assert start < end <= start + 2 * BLOCK_CHARS + 2
        for offset in {end - 1, *(random.randrange(start, end) for _ in range(5))}:
            assert block_at(text, offset) == (start, end)
        place = end


@texts
def test_rows_are_the_same_from_wherever_one_looks(seed: int) -> None:
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
        wanted = rows[max(0, min(number + step, len(rows) - 1))]
        assert layout.step(offset, step) == wanted.start
        assert layout.row(layout.row_of(offset)) == row


@texts
def test_working_out_in_any_order_ends_with_the_same_rows(seed: int) -> None:
    text = mixed_text(seed)
    random = Random(seed)
    layout = TextLayout(text, 50)
    for _ in range(400):
        layout.row_at(random.randrange(len(text)))
        if layout.complete:
            break
    while not layout.complete:
        layout.work_out_next()
    whole = laid_out(text, 50)
    assert layout.rows == whole.rows
    for offset in range(0, len(text), 997):
        assert layout.row_of(offset) == whole.row_of(offset)
        row = whole.row(whole.row_of(offset))
        assert row.start <= offset < row.end


@pytest.mark.parametrize("text", ["\n", "\n" * 5000, "x" * CHUNK_CHARS, "x" * CHUNK_CHARS + "\n"])
def test_a_break_at_the_end_opens_one_more_row(text: str) -> None:
    layout = laid_out(text, 80)
    rows = [layout.row(i) for i in range(layout.rows)]
    assert sum(row.end - row.start for row in rows) == len(text)
    assert (rows[-1].start == len(text)) is text.endswith("\n")
    assert layout.row_of(len(text)) == len(rows) - 1


def test_unwrapped_every_line_is_a_row() -> None:
    text = "a\n" + "b" * 3000 + "\n" + "word " * 100 + "\n\nend"
    layout = laid_out(text, UNWRAPPED)
    assert [layout.row(i).shown for i in range(layout.rows)] == text.split("\n")


LONG = {
    "one line": lambda: "x" * 100_000_000,
    "words": lambda: "word and " * 11_000_000,
    "short lines": lambda: "a line of a log\n" * 6_250_000,
    "wide": lambda: "界面 " * 5_000_000,
}


@pytest.mark.parametrize("name", LONG)
def test_in_a_huge_text_each_step_looks_at_a_few_chunks(name: str) -> None:
    text = CountingText(LONG[name]())
    looked = text.looked
    layout = TextLayout(text, 80)

    def cost() -> int:
        nonlocal looked
        now, looked = text.looked - looked, text.looked
        return now

    few = 12 * CHUNK_CHARS
    assert cost() < few
    end = layout.step(len(text), 0)
    assert cost() < few
    assert layout.row_at(end).end == len(text) or layout.row_at(end).start == len(text)
    cost()
    top = layout.step(end, -40)
    assert top < end
    assert cost() < few
    middle = layout.step(len(text) // 2, 0)
    assert cost() < few
    for _ in range(50):
        middle = layout.step(middle, 39)
    assert cost() < 50 * 2 * CHUNK_CHARS
    layout.row(layout.rows // 3)
    assert cost() < few
    assert not layout.complete
    assert len(layout._cached_starts) <= 16

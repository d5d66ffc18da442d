"""Rendered text: styles of its parts, and the mapping of each cell to the raw text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby, pairwise
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mast_tui.safe_text import safe_line
from mast_tui.ui.text.highlighting import (
    JSON,
    LANGUAGES,
    MARKDOWN,
    OUTPUT,
    PART_NAMES,
    SEGMENT_CHARS,
    Highlighter,
)
from mast_tui.ui.text.layout import BLOCK_CHARS, TextLayout, TextRow
from mast_tui.ui.trace_view.span_view import DisplayedText, SpanView
from tests.ui.counting_text import CountingText

Named = list[tuple[str, str]]


def styled_parts(text: str, written: str) -> Named:
    parts = sorted(Highlighter(text, written).parts(0, len(text)), key=lambda part: part.start)
    return [(text[part.start : part.end], part.name) for part in parts]


def test_each_part_has_a_style() -> None:
    assert {f"span-view--{name}" for name in PART_NAMES} <= SpanView.COMPONENT_CLASSES


def test_markdown() -> None:
    text = (
        "## The plan\nDo **not** call `rm -rf`, *ever*.\n- [ ] one\n  2. two\n> said\n---\n"
        "See [here](http://a.b/c) or https://d.e/f.\n| a | b |\n|---|---|\n"
    )
    assert styled_parts(text, MARKDOWN) == [
        *[("## ", "markup"), ("The plan", "heading")],
        *[("**", "markup"), ("not", "strong"), ("**", "markup")],
        *[("`", "markup"), ("rm -rf", "code"), ("`", "markup")],
        *[("*", "markup"), ("ever", "emphasis"), ("*", "markup")],
        *[("- [ ] ", "bullet"), ("  2. ", "bullet")],
        *[("> ", "markup"), ("said", "cited"), ("---", "markup")],
        *[("[", "markup"), ("here", "link"), ("](http://a.b/c)", "markup")],
        ("https://d.e/f.", "link"),
        *[("|", "markup")] * 3,
        ("|---|---|", "markup"),
    ]
    for plain in (
        "snake_case_name and __init__ stay",
        "2 * 3 * 4 and *args, **kwargs",
        "#hash and C# and a `tick",
        "a - b",
        "*.py and *.txt",
        "x = y ** 2 ** 3",
    ):
        assert styled_parts(plain, MARKDOWN) == []


def test_fences() -> None:
    text = "**a**\n```python\nif x:  # why\n    return '**b**'\n```\n**c**\n"
    assert styled_parts(text, MARKDOWN) == [
        *[("**", "markup"), ("a", "strong"), ("**", "markup")],
        ("```python\n", "markup"),
        *[("if", "keyword"), ("# why", "comment"), ("return", "keyword")],
        *[("'", "string"), ("**b**", "string"), ("'", "string")],
        ("```\n", "markup"),
        *[("**", "markup"), ("c", "strong"), ("**", "markup")],
    ]
    text = "````nosuch\n**a**\n```\nValueError: no\n````\n"
    assert styled_parts(text, MARKDOWN) == [
        ("````nosuch\n", "markup"),
        ("ValueError: no\n", "error"),
        ("````\n", "markup"),
    ]


@pytest.mark.slow
def test_every_language_is_highlighted() -> None:
    for language in sorted(set(LANGUAGES.values())):
        text = f"```{language}\nx = 'a' # 1 <b>{{}}\n```\n"
        assert all(0 <= p.start < p.end for p in Highlighter(text, MARKDOWN).parts(0, len(text)))


HUNK = "@@ -1,2 +1,3 @@ def f\n-old\n+new\n+newer\n same\n"


@pytest.mark.parametrize("written", [MARKDOWN, OUTPUT])
def test_hunks_of_diffs(written: str) -> None:
    text = f"diff --git a/x b/x\n{HUNK}- no part of it\n+ nor this\n"
    parts = [name for name in styled_parts(text, written) if name[1] not in ("bullet", "markup")]
    assert parts == [
        ("diff --git a/x b/x\n", "strong"),
        ("@@ -1,2 +1,3 @@ def f\n", "hunk"),
        *[("-old\n", "removed"), ("+new\n", "added"), ("+newer\n", "added")],
    ]


def test_tracebacks() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/a.py", line 3, in f\n    x()\nKeyError: 1\n'
    )
    assert styled_parts(f"fine\n{text}", OUTPUT) == [
        ("Traceback (most recent call last):\n", "error"),
        ('  File "/a.py", line 3, in f', "place"),
        ("KeyError: 1\n", "error"),
    ]


def styled_json_parts(value: object) -> Named:
    displayed = DisplayedText(json.dumps(value), OUTPUT)
    readable = displayed.displayed
    assert displayed.highlighter is not None
    parts = list(displayed.highlighter.parts(0, len(readable)))
    assert all(first.end <= second.start for first, second in pairwise(parts))
    return [(readable[part.start : part.end].strip(), part.name) for part in parts]


def test_json_tokens() -> None:
    value = {"n": -1.5, "a b": [True, None, "x: 1"], "z": {"path": "a/b.py"}, "zz": "y" * 30}
    assert styled_json_parts(value) == [
        *[('"n"', "key"), ("-1.5", "number"), ('"a b"', "key")],
        *[("true", "number"), ("null", "number"), ('"x: 1"', "string")],
        *[('"z"', "key"), ('"path"', "key"), ('"a/b.py"', "string")],
        *[('"zz"', "key"), (f'"{"y" * 30}"', "string")],
    ]


@pytest.mark.parametrize(
    ("key", "string", "part"),
    [
        ("new_str", "a = None\nb", ("None", "number")),
        ("command", "ls\nif x; then y; fi", ("then", "keyword")),
        ("output", "ls\nKeyError: 1\n", ("KeyError: 1", "error")),
        ("message", "ls\n# Head\n", ("Head", "heading")),
        ("patch", "ls\n+ more\n", ("+ more", "added")),
        ("other", "ls " * 99, None),
    ],
)
def test_strings_in_json_are_highlighted_by_content(
    key: str, string: str, part: tuple[str, str] | None
) -> None:
    value = {"path": "a.py", "x": {"path": "b.py"}, key: string, "n": 1, "m": "2"}
    parts = styled_json_parts(value)
    around = [('"m"', "key"), ('"2"', "string")]
    assert parts[-2:] == around
    assert (f'"{key}"', "key") in parts
    if part is None:
        assert not any("ls" in text for text, _ in parts)
    else:
        assert part in parts


def test_json_in_strings_is_laid_out() -> None:
    inner = json.dumps({"code": 'import os\n\nprint("é", "\\n")', "to": {"a": [1, "b\U0001f600"]}})
    text = json.dumps({"name": "run", "arguments": inner, "x": json.dumps([inner, 2])})
    displayed = DisplayedText(text, OUTPUT).displayed
    assert displayed[:].split("\n")[:13] == [
        "{",
        '  "name": "run",',
        '  "arguments": "{',
        '    "code": "import os',
        "    ",
        r'    print("\u00e9", "\n")",',
        '    "to": {',
        r'      "a": [1, "b\ud83d\ude00"]',
        "    }",
        '  }",',
        '  "x": "["{',
        '      "code": "import os',
        "      ",
    ]


@pytest.mark.parametrize(
    ("codes", "names"),
    [
        ("31", ["red"]),
        ("1;32", ["green", "strong"]),
        ("0;1;33;22", ["yellow"]),
        ("90", ["pale"]),
        ("37;41", ["red"]),
        ("34;41", ["blue"]),
        ("30;40", []),
        ("38;5;208", ["red"]),
        ("38;5;244", ["pale"]),
        ("38;2;10;20;250", ["blue"]),
        ("38:2:200:0:200", ["magenta"]),
        ("38", []),
        ("31;39", []),
        ("31;", []),
        ("8;5;7;4", []),
        ("99999999999", []),
    ],
)
def test_terminal_colours_are_mapped_to_hues(codes: str, names: list[str]) -> None:
    text = f"\x1b[{codes}mwords\x1b[m."
    assert styled_parts(text, OUTPUT) == [("words", name) for name in names]
    row = TextLayout(text, 40, rendered=True).row(0)
    assert row.shown == "words."


SEQUENCES = (
    *("\x1b]0;title\x07", "\x1b[2J", "\x1b[?25l", "\x1b[31"),
    *("\x1b[6n", "\x9b31m", "\x1b[>4;2m", "\x1b"),
)


def test_other_sequences_are_visible() -> None:
    for sequence in SEQUENCES:
        row = TextLayout(f"a{sequence}b", 40, rendered=True).row(0)
        assert row.shown == safe_line(f"a{sequence}b")
        assert row.shown[1] in "␛⟨"


def test_colours_continue_over_lines() -> None:
    assert styled_parts("\x1b[32mone\ntwo\x1b[0m\nthree", OUTPUT) == [("one\ntwo", "green")]
    parts = list(Highlighter("\x1b[32mone\ntwo", OUTPUT).parts(9, 12))
    assert [(part.start, part.end, part.name) for part in parts] == [(9, 12, "green")]


@pytest.mark.parametrize(
    ("line", "indent"),
    [
        ("word " * 30, 0),
        ("- " + "word " * 30, 2),
        ("  10. " + "word " * 30, 6),
        ("    " + "code " * 30, 6),
        ("\t" + "code " * 30, 6),
        ("+        " + "return " * 30, 9),
        (" " * 50 + "deep " * 30, 20),
    ],
)
def test_wrapped_rows_are_indented(line: str, indent: int) -> None:
    text = f"before\n{line}\nafter"
    layout = TextLayout(text, 60, rendered=True)
    layout.extend(100)
    rows = [layout.row(number) for number in range(1, layout.rows - 1)]
    assert len(rows) > 2
    assert (rows[0].indent, {row.indent for row in rows[1:]}) == (0, {indent})
    assert all(row.indent + len(row.shown.rstrip()) <= 60 for row in rows)
    assert layout.row(layout.rows - 1).indent == 0


# Tables

TABLE = """\
| pod | restarts | state |
|---|--:|:-:|
| checkout-1 | 0 | up |
| 東京 | 12 |
| a \\| b | 3 | **gone** | why |
"""
FILLED = """\
| pod        | restarts |  state   |
|------------|---------:|:--------:|
| checkout-1 |        0 |    up    |
| 東京       |       12 |
| a \\| b     |        3 | **gone** | why |
"""


def drawn_rows(text: str, width: int, *, rendered: bool = True) -> str:
    layout = TextLayout(text, width, rendered=rendered)
    layout.extend(10_000)
    rows = [layout.row(number) for number in range(layout.rows)]
    return "\n".join(" " * row.indent + row.shown for row in rows)


def test_tables_are_aligned_and_leave_quotes_in_place() -> None:
    assert drawn_rows(f"Seen:\n{TABLE}So.", 42) == f"Seen:\n{FILLED}So."
    assert drawn_rows(TABLE.replace("\n", "\r\n"), 42) == FILLED
    layout = TextLayout(TABLE, 60, rendered=True)
    for cell in ("checkout-1", "12", "**gone**", "東京", "why"):
        offset = TABLE.index(cell)
        row = layout.row_at(offset)
        part = row.slice_of(offset, offset + len(cell))
        assert part is not None
        assert (row.shown[slice(*part)], row.offset_at(part[0])) == (cell, offset)


def test_other_texts_and_wide_tables_are_not_aligned() -> None:
    for text in (
        TABLE.replace("|---|--:|:-:|", "| no | rule |"),
        "| a | b |\n\n|---|---|\n| longer | c |\n",
        "|---|---|\n| longer | c |\n",
        "| a | b |\n|---|---|\n" + "| longer | c |\n" * 1000,
    ):
        assert drawn_rows(text, 60) == text
    assert (drawn_rows(TABLE, 40), drawn_rows(TABLE, 42, rendered=False)) == (TABLE, TABLE)
    wide = TABLE + f"| {'word ' * 20}|\n"
    assert drawn_rows(wide, 60).startswith(TABLE)


def test_a_long_text_of_bars_is_read_in_part() -> None:
    text = CountingText("| a | b |\n|---|---|\n" * 500_000)
    layout = TextLayout(text, 60, rendered=True)
    for start in (0, 5_000_000, len(text) - 2000):
        offset = layout.step(start, 0)
        looked = text.looked
        for _ in range(40):
            assert layout.row_at(offset).columns is None
            offset = layout.step(offset, 1)
        assert text.looked - looked < 20 * BLOCK_CHARS


# Each cell leads to the raw text, and back

BITS = (
    *("**", "*", "`", "# ", "- ", "```python\n", "```\n", "@@ -1 +1 @@\n", "+", "[a](b)", "|"),
    *("\x1b[31m", "\x1b[0m", "\x1b[2J", "\t", "\u202e", "é", "界", "\ufe0f", "\r\n", "\\n"),
    *("def f", "'", '"', "Traceback (most recent call last):\n", "    ", "words and words "),
)
prose = st.lists(st.sampled_from(BITS) | st.text(max_size=8), max_size=60).map("".join)
strings = st.lists(st.sampled_from(BITS), max_size=12).map("".join)
leaves = strings | st.integers() | st.none()
inner_json = st.dictionaries(st.sampled_from(["code", "a", "content"]), leaves, max_size=3).map(
    json.dumps
)
documents = st.dictionaries(
    st.sampled_from(["arguments", "command", "path", "b"]),
    leaves | inner_json | st.lists(leaves | inner_json, max_size=3),
    max_size=4,
).map(json.dumps)
cells = st.sampled_from(
    ["", " ", "a", "two words", "界", "\x1b[31mred\x1b[0m", r"\|", "**b**", "é"]
)
rules = st.sampled_from(["---", ":-:", " --: ", "-"])


@st.composite
def tables(draw: st.DrawFn) -> str:
    rows = draw(st.lists(st.lists(cells, min_size=1, max_size=4), min_size=1, max_size=5))
    rows.insert(1, draw(st.lists(rules, min_size=1, max_size=4)))
    lines = "".join(f"|{'|'.join(row)}|\n" for row in rows)
    return draw(st.sampled_from(["", "Said:\n"])) + lines + draw(st.sampled_from(["", "**end**"]))


texts = (
    prose
    | tables()
    | tables().map(lambda text: json.dumps({"a": text}))
    | documents
    | documents.map(lambda text: json.dumps({"arguments": text}))
)
formats = st.sampled_from([MARKDOWN, OUTPUT, JSON, "python", "bash"])
widths = st.integers(12, 70)


@dataclass(frozen=True)
class Cell:
    """A cell: its character, its offset in the shown text, and its offset in the raw text."""

    drawn: str
    offset: int
    raw: int


def rows_from(layout: TextLayout, start: int, most: int) -> list[TextRow]:
    rows = [layout.row_at(start)]
    while len(rows) < most and rows[-1].end < len(layout.text):
        rows.append(layout.row_at(rows[-1].end))
    return rows


def check_marking(
    text: str, view: DisplayedText, rows: list[TextRow], cells: list[Cell], first: int, last: int
) -> None:
    """Mark from one cell to another, and check the quote and the highlighted cells."""
    start, end = view.range_to_source(cells[first].offset, cells[last].offset + 1)
    highlighted: set[int] = set()
    index = 0
    for row in rows:
        part = row.slice_of(*view.range_to_shown(start, end))
        if part is not None:
            highlighted |= set(range(index + part[0], index + part[1]))
        index += len(row.shown)
    marked = set(range(first, last + 1))
    # All that was marked lights up, but for white space that has no source.
    assert not "".join(cells[index].drawn for index in sorted(marked - highlighted)).strip()
    # Beyond that only what stands for the same code point does, and such white space.
    ends = (cells[first].raw, cells[last].raw)
    assert all(cells[i].raw in ends or not cells[i].drawn.strip() for i in highlighted - marked)
    # What is quoted begins and ends with what was marked.
    if marked <= highlighted:
        assert start == cells[first].raw
        assert start <= cells[last].raw < end
        assert not text[cells[last].raw + 1 : end] or text[cells[last].raw] == "\\"


@given(texts, formats, widths, st.randoms(use_true_random=False))
@example(json.dumps({"arguments": json.dumps({"code": "a\n\tb" * 20})}), OUTPUT, 30, Random(1))
@example("\x1b[31mred\x1b[0m and \x1b[2J", OUTPUT, 20, Random(1))
@example("|a|bc|\n|-|-:|\n|long|1|\n", MARKDOWN, 30, Random(1))
def test_marked_cells_quote_the_raw_text(
    text: str, written: str, width: int, random: Random
) -> None:
    displayed = DisplayedText(text, written)
    layout = displayed.lay_out(width)
    if displayed.pretty is not None and len(text) < 200_000:
        displayed.pretty.whole()
        layout = displayed.lay_out(width)
    rows = rows_from(layout, random.randrange(len(layout.text) + 1), 400)
    cells = [
        Cell(char, offset, displayed.to_source(offset))
        for row in rows
        for column, char in enumerate(row.shown)
        for offset in [row.offset_at(column)]
    ]
    places = [cell.raw for cell in cells]
    assert places == sorted(places)
    for offset, group in groupby(cells, key=lambda cell: cell.raw):
        raw = text[offset]
        drawn = "".join(cell.drawn for cell in group).strip()
        # An escape shows what it stands for; before it may be white space that is set out.
        is_source = drawn == raw or drawn in safe_line(raw) or raw == "\\"
        # The rule of a table is drawn as wide as its column.
        assert not drawn or is_source or (raw == "-" and set(drawn) == {"-"}), offset
    for _ in range(4 if cells else 0):
        first, last = sorted(random.randrange(len(cells)) for _ in range(2))
        check_marking(text, displayed, rows, cells, first, last)


@given(texts, formats, st.integers(0, 100), st.integers(0, 100))
@example("\x1b[31m\x1b[31m", MARKDOWN, 0, 0)
def test_parts_are_the_same_from_any_offset(text: str, written: str, start: int, end: int) -> None:
    whole = list(Highlighter(text, written).parts(0, len(text)))
    assert all(0 <= part.start < part.end <= len(text) for part in whole)
    assert {part.name for part in whole} <= set(PART_NAMES)
    start = min(start, len(text))
    end = min(end, len(text))
    some = Highlighter(text, written).parts(start, end)
    actual = {(offset, part.name) for part in some for offset in range(part.start, part.end)}
    expected = {
        (offset, part.name)
        for part in whole
        for offset in range(max(part.start, start), min(part.end, end))
    }
    assert actual == expected


def test_a_huge_text_is_highlighted_in_part() -> None:
    text = CountingText("A line of **words**, as many say.\n```python\nx = 1\n```\n" * 200_000)
    assert len(text) > 10_000_000
    for start in (0, 5_000_000, len(text) - 2000):
        looked = text.looked
        parts = list(Highlighter(text, MARKDOWN).parts(start, start + 2000))
        assert {"strong", "markup", "number"} <= {part.name for part in parts}
        assert text.looked - looked < 2 * SEGMENT_CHARS + 40 * 4 * BLOCK_CHARS
    displayed = DisplayedText(text, MARKDOWN)
    looked = text.looked
    assert displayed.highlighter is not None
    for row in range(40):
        list(displayed.highlighter.parts(row * 50, row * 50 + 50))
    assert text.looked - looked < 2 * SEGMENT_CHARS + 40 * 4 * BLOCK_CHARS

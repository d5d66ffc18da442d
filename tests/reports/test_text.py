"""A report as lines: what stands in them, and what goes where there is little room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.cells import cell_len

from mast_tui.reports.model import Column, Estimate, Kind, Note, Report, ReportSection, Row, Table
from mast_tui.reports.render.html import render_html
from mast_tui.reports.render.latex import render_latex
from mast_tui.reports.render.markdown import render_markdown
from mast_tui.reports.render.text import render_text
from mast_tui.safe_text import one_line
from tests.reports import sample


def lines_of(*rows: Row, columns: tuple[Column, ...], width: int | None = None) -> list[str]:
    """The lines of a table alone, below its title."""
    table = Table("t", "Title", columns, (rows,))
    report = Report("agreement", "Head", "", (ReportSection("s", "S", (table,)),))
    lines = render_text(report, width)
    return lines[lines.index("Title") + 1 :]


CODE, NAME = Column("code", "", Kind.TEXT), Column("name", "mode", Kind.TEXT)


def test_every_kind_of_cell() -> None:
    text = "\n".join(render_text(sample.report(), None))
    assert "1234" in text
    assert "0.61 [0.48, 0.72]" in text
    assert "0.00 [-0.10, 0.10]" in text, "a number that rounds to nothing has no sign"
    assert "0.90 [–]" in text
    assert "— no overlap" in text
    assert text.count("— no variance") == 1, "neighbours share one reason"
    assert "12% [5, 30]" in text
    assert "0% [0, 40] n 8" in text
    assert "▊" in text
    assert "+14 [-5, +33]" in text
    assert "<0.001" in text
    assert "empty" not in text, "a column without a cell is left out"


def test_numbers_and_intervals_are_aligned() -> None:
    columns = (NAME, Column("k", "κ"))
    lines = lines_of(
        Row("1", {"name": "a", "k": Estimate(-0.25, (-0.5, 0.0))}),
        Row("2", {"name": "b", "k": Estimate(0.5, (0.25, 0.75))}),
        columns=columns,
    )
    assert lines[2:] == ["a     -0.25 [-0.50, 0.00]", "b      0.50 [0.25, 0.75]"]
    assert lines[0].index("κ") == lines[2].index(" [") - 1, "it stands over the last digit"


def test_warnings_come_before_figures_and_notes_below() -> None:
    lines = render_text(sample.report(), None)
    place = {
        words: next(i for i, line in enumerate(lines) if words in line)
        for words in ("share one block", "lead with", "Disobey task", "† κ is low", "Left out")
    }
    assert place["lead with"] < place["share one block"] < place["Disobey task"]
    assert place["Disobey task"] < place["† κ is low"] < place["Left out"]


def test_what_is_folded_or_drawn_is_left_to_others() -> None:
    text = "\n".join(render_text(sample.report(), None))
    assert "All numbers" not in text
    assert "More to read" not in text
    assert "Shares of" not in text
    assert "Write down who decides." in text


@pytest.mark.parametrize("width", [150, 120, 100, 80, 70, 60])
def test_no_line_is_wider_and_no_number_is_cut(width: int) -> None:
    lines = render_text(sample.report(), width)
    assert max(map(cell_len, lines)) <= width
    text = "\n".join(lines)
    assert "0.61" in text
    assert "1234" in text
    assert text == "\n".join(map(one_line, lines)), "already fit for a terminal"


@pytest.mark.slow
def test_where_there_is_little_room_low_intervals_go_then_names_then_columns() -> None:
    seen = {width: "\n".join(render_text(sample.report(), width)) for width in range(50, 200)}

    def narrowest(words: str) -> int:
        return min(width for width, text in seen.items() if words in text)

    low, name, high = (
        narrowest(words) for words in ("[-5, +33]", "Disobey task specification", "[0.48, 0.72]")
    )
    assert low > name > high > narrowest("<0.001") > narrowest("0.61")
    assert "No room for: Gwet's AC1, p." in seen[60]


def test_intervals_that_had_no_room_are_named() -> None:
    columns = (NAME, Column("k", "κ", keeps=90), Column("a", "α"), Column("p", "P+"))
    withheld = Estimate(0.5, withheld="few_traces")
    row = Row("1", {"name": "x", "k": Estimate(0.5, (0.25, 0.75)), "a": withheld, "p": 0.5})
    lines = lines_of(row, columns=columns, width=26)
    assert "No room for the intervals of: κ." in " ".join(lines)
    assert "No room" not in " ".join(lines_of(row, columns=columns))


def test_what_stands_above_is_not_told_again() -> None:
    tables = tuple(
        Table(name, name, (NAME,), ((Row("1", {"name": "x"}),),), "Whose labels.", notes)
        for name, notes in (("one", (Note("Few traces.", "few"),)),
                            ("two", (Note("Few traces.", "few"), Note("Left out.", "left"))))
    )  # fmt: skip
    report = Report("agreement", "Head", "", (ReportSection("s", "S", tables),))
    lines = render_text(report, None)
    assert [line for line in lines if line.endswith(".")] == [
        "Whose labels.", "Few traces.", "Left out.",
    ]  # fmt: skip


def test_the_whole_table_is_there_without_a_width() -> None:
    text = "\n".join(render_text(sample.report(), None))
    assert "No room" not in text
    assert all(one_line(name) in text for name in sample.HOSTILE)


def test_wide_characters_and_control_characters_keep_columns_in_line() -> None:
    rows = [Row(name, {"name": name, "k": 0.5}) for name in sample.HOSTILE]
    lines = lines_of(*rows, columns=(NAME, Column("k", "κ")))
    assert {cell_len(line) for line in lines[1:]} == {cell_len(lines[1])}


def test_a_long_heading_is_cut_before_columns_go() -> None:
    columns = (NAME, Column("a", "a group with a very long name " * 3), Column("b", "b"))
    lines = lines_of(Row("1", {"name": "x", "a": 0.5, "b": 0.25}), columns=columns, width=40)
    assert lines[0].endswith("b")
    assert "…" in lines[0]
    assert lines[2].split() == ["x", "0.50", "0.25"]


def test_an_empty_table_and_an_empty_report_are_no_trouble() -> None:
    assert lines_of(columns=(CODE, NAME), width=20)[0].split() == ["mode"]
    empty = replace(sample.report(), sections=(), notes=(), facts=())
    assert render_text(empty, 40)[0] == "Agreement"


@pytest.mark.parametrize(
    ("render", "heading", "cell"),
    [
        (lambda report: "\n".join(render_text(report, None)), "new one", "<0.001"),
        (render_markdown, "|  | mode | new one |", r"| Disobey task specification | \<0.001 |"),
        (render_latex, r"mode & new one \\", r"$<$0.001 \\"),
        (render_html, ">new one<", "&lt;0.001"),
    ],
)
def test_a_new_column_is_in_the_table_of_every_format(
    render: Callable[[Report], str], heading: str, cell: str
) -> None:
    columns = (*sample.COLUMNS[:2], Column("p", "new one", Kind.P_VALUE, name="a new statistic"))
    written = render(sample.report(columns=columns))
    assert heading in written
    assert cell in written

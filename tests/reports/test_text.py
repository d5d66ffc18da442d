"""Reports as lines of text, also in little room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.cells import cell_len

from mast_tui.figures.record import Figure
from mast_tui.reports.model import Column, Kind, Note, Report, ReportSection, Row, Table
from mast_tui.reports.render.html import render_html
from mast_tui.reports.render.latex import render_latex
from mast_tui.reports.render.markdown import render_markdown
from mast_tui.reports.render.text import render_text
from mast_tui.safe_text import one_line
from tests.reports import sample


def lines_of(*rows: Row, columns: tuple[Column, ...], width: int | None = None) -> list[str]:
    """Return the lines of a table below its title."""
    table = Table("t", "Title", columns, (rows,))
    report = Report("agreement", "Head", "", (ReportSection("s", "S", (table,)),))
    lines = render_text(report, width)
    return lines[lines.index("Title") + 1 :]


CODE = Column("code", "", Kind.TEXT)
NAME = Column("name", "mode", Kind.TEXT)


def test_lines_have_every_kind_of_cell_and_open_part() -> None:
    lines = render_text(sample.report(), None)
    text = "\n".join(lines)
    for cell in (
        *("1234", "0.61 [0.48, 0.72]", "0.90 [–]", "— no overlap", "12% [5, 30]", "0% [0, 40] n 8"),
        *("▊", "+14 [-5, +33]", "<0.001", "Write down who decides."),
    ):
        assert cell in text
    assert "0.00 [-0.10, 0.10]" in text, "a number that rounds to zero has no sign"
    assert text.count("— no variance") == 1, "neighbours share one reason"
    assert "empty" not in text, "a column without a cell is left out"
    for part in ("All numbers", "More to read", "Shares of", "No room"):
        assert part not in text
    assert all(one_line(name) in text for name in sample.HOSTILE)
    place = {
        part: next(i for i, line in enumerate(lines) if part in line)
        for part in ("share one block", "lead with", "Disobey task", "† κ is low", "Left out")
    }
    assert place["lead with"] < place["share one block"] < place["Disobey task"]
    assert place["Disobey task"] < place["† κ is low"] < place["Left out"]


def test_numbers_and_intervals_are_aligned() -> None:
    columns = (NAME, Column("k", "κ"))
    lines = lines_of(
        Row("1", {"name": "a", "k": Figure(value=-0.25, interval=(-0.5, 0.0))}),
        Row("2", {"name": "b", "k": Figure(value=0.5, interval=(0.25, 0.75))}),
        columns=columns,
    )
    assert lines[2:] == ["a     -0.25 [-0.50, 0.00]", "b      0.50 [0.25, 0.75]"]
    assert lines[0].index("κ") == lines[2].index(" [") - 1, "it stands over the last digit"


def test_narrow_text_drops_low_intervals_then_names_then_columns() -> None:
    widths = range(50, 200, 2)
    texts = {width: "\n".join(render_text(sample.report(), width)) for width in widths}

    def narrowest(part: str) -> int:
        return min(width for width, text in texts.items() if part in text)

    parts = ("[-5, +33]", "Disobey task specification", "[0.48, 0.72]", "<0.001", "0.61")
    order = [narrowest(part) for part in parts]
    assert order == sorted(set(order), reverse=True)
    assert "Columns left out (the window is too narrow): Gwet's AC1, p." in texts[60]
    for width in (150, 120, 100, 80, 70, 60):
        lines = texts[width].splitlines()
        assert max(map(cell_len, lines)) <= width
        assert "0.61" in texts[width]
        assert "1234" in texts[width]
        assert lines == [one_line(line) for line in lines], "already safe for a terminal"


def test_intervals_without_room_are_named() -> None:
    columns = (NAME, Column("k", "κ", priority=90), Column("a", "α"), Column("p", "P+"))
    withheld = Figure(value=0.5, reason="few_traces")
    row = Row(
        "1", {"name": "x", "k": Figure(value=0.5, interval=(0.25, 0.75)), "a": withheld, "p": 0.5}
    )
    lines = lines_of(row, columns=columns, width=26)
    assert "Intervals left out (the window is too narrow): κ." in " ".join(lines)
    assert "No room" not in " ".join(lines_of(row, columns=columns))


def test_notes_are_not_repeated() -> None:
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


def test_wide_and_control_characters_keep_columns_aligned() -> None:
    rows = [Row(name, {"name": name, "k": 0.5}) for name in sample.HOSTILE]
    lines = lines_of(*rows, columns=(NAME, Column("k", "κ")))
    assert {cell_len(line) for line in lines[1:]} == {cell_len(lines[1])}


def test_long_heading_is_cut_before_columns_are_dropped() -> None:
    columns = (NAME, Column("a", "a group with a very long name " * 3), Column("b", "b"))
    lines = lines_of(Row("1", {"name": "x", "a": 0.5, "b": 0.25}), columns=columns, width=40)
    assert lines[0].endswith("b")
    assert "…" in lines[0]
    assert lines[2].split() == ["x", "0.50", "0.25"]


def test_empty_table_and_report_have_headings() -> None:
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
def test_new_column_is_in_the_table_of_every_format(
    render: Callable[[Report], str], heading: str, cell: str
) -> None:
    columns = (*sample.COLUMNS[:2], Column("p", "new one", Kind.P_VALUE, name="a new statistic"))
    written = render(sample.report(columns=columns))
    assert heading in written
    assert cell in written

"""Tables of a report on the screen: columns, cells, the cursor, and details of a row."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from mast_tui.figures.record import Figure, Sources
from mast_tui.reports.model import Cell, Column, Kind, Note, Part, Row, Table, Text
from mast_tui.ui.reports.lines import (
    ReportLines,
    bar,
    fit_columns,
    interval_text,
    row_text,
    row_title,
    value_text,
)
from tests.ui.stage import missing

COLUMNS = (
    Column("code", "", Kind.TEXT, priority=101),
    Column("name", "mode", Kind.TEXT, priority=102),
    Column("n", "n", Kind.COUNT, "compared", priority=97),
    Column("kappa", "κ", name="Cohen's κ", priority=99),
    Column("ac1", "AC1", name="Gwet's AC1", priority=60),
    Column("share", "failed", Kind.SHARE, "share of failed traces", priority=80),
)
EMPTY = Column("nowhere", "nowhere", Kind.COUNT)


def row(number: int, **more: Cell) -> Row:
    cells: dict[str, Cell] = {
        "code": f"1.{number}",
        "name": f"Step repetition of the {number}th kind",
        "n": 10 + number,
        "kappa": Figure(value=0.4, interval=(0.1, 0.7)),
        "ac1": Figure(value=0.5, interval=(-0.2, 0.8)),
        "share": Figure(value=0.5, interval=(0.25, 0.75), n=20),
    }
    return Row(f"m{number}", {**cells, **more}, sources=Sources(f"1.{number}"))


def table(id: str = "modes", rows: int = 3, **more: object) -> Table:
    modes = tuple(row(number) for number in range(rows))
    total = Row("pooled", {"name": "all modes pooled", "n": 99, "kappa": Figure(value=0.45)})
    made = Table(id, "Agreement by mode", (*COLUMNS, EMPTY), (modes, (total,)))
    return replace(made, **more)  # type: ignore[arg-type]


class PartsApp(App[None]):
    """An app that consists of tables."""

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__()
        self.parts = parts

    def compose(self) -> ComposeResult:
        yield ReportLines()

    def on_mount(self) -> None:
        self.lines.show(self.parts)

    @property
    def lines(self) -> ReportLines:
        return self.query_one(ReportLines)

    def text(self, line: int) -> str:
        return self.lines.render_line(line).text.rstrip()


@asynccontextmanager
async def run_parts(*parts: Part, size: tuple[int, int] = (100, 30)) -> AsyncIterator[PartsApp]:
    app = PartsApp(parts)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app
        await pilot.pause()


def test_columns_are_left_out_by_width() -> None:
    widths = []
    for width in range(120, 30, -1):
        layout = fit_columns(table(), width, intervals_pending=False)
        keys = [col.column.key for col in layout.columns]
        intervals = [col.column.key for col in layout.columns if col.interval_cells]
        assert layout.width <= width
        for col in layout.columns:
            if not col.is_text:
                value = value_text(row(0).cells[col.column.key], col.column.kind)
                assert col.value_cells >= len(value)
        names = next(col.value_cells for col in layout.columns if col.column.key == "name")
        widths.append((len(intervals), len(keys), names))
        if intervals:
            assert keys == ["code", "name", "n", "kappa", "ac1", "share"]
        if len(intervals) == 1:
            assert intervals == ["kappa"]
        if names < width // 4:
            assert not intervals
    assert {count for count, _, _ in widths} == {0, 1, 2}
    few = [col.column.key for col in fit_columns(table(), 32, intervals_pending=False).columns]
    assert few == ["code", "name", "n", "kappa"]
    every = [col.column.key for col in fit_columns(table(), 300, intervals_pending=False).columns]
    assert "nowhere" not in every


def test_columns_near_the_chosen_one_are_shown() -> None:
    keys = [f"c{number}" for number in range(30)]
    leads = {key: Sources(key) for key in keys}
    cells: dict[str, Cell] = {"name": "one", **dict.fromkeys(keys, 7)}
    columns = (Column("name", "", Kind.TEXT), *(Column(key, key, Kind.COUNT) for key in keys))
    matrix = Table("matrix", "", columns, ((Row("one", cells, cell_sources=leads),),))
    layout = fit_columns(matrix, 60, chosen_column="c20", intervals_pending=False)
    shown_keys = [col.column.key for col in layout.columns]
    assert {"name", "c19", "c20", "c21"} <= set(shown_keys)
    assert "c0" not in shown_keys


@given(st.integers(0, 200), st.integers(0, 200), st.integers(8, 40))
def test_bars_show_share_and_interval(count: int, more: int, width: int) -> None:
    if not count + more:
        assert not bar(Figure(reason="no_traces"), width)
        return
    share = count / (count + more)
    drawn = bar(Figure(value=share, interval=(share / 2, (1 + share) / 2)), width)
    assert re.fullmatch("█*▓*░*", drawn)
    assert len(drawn) <= width
    seen = len(drawn.rstrip("░"))
    assert (seen > 0) == (count > 0)
    assert abs(seen - width * share) <= 1


def test_values_and_intervals_of_cells() -> None:
    cells: list[tuple[Cell, Kind, str]] = [
        (Figure(value=0.456), Kind.NUMBER, "0.46"),
        (Figure(value=0.456), Kind.SHARE, "46%"),
        (Figure(value=-0.12), Kind.POINTS, "-12"),
        (Figure(value=0.00001), Kind.P_VALUE, "<0.001"),
        (Figure(reason="no_variance"), Kind.NUMBER, "—"),
        (7, Kind.COUNT, "7"),
        ("a\x1bb", Kind.TEXT, "a␛b"),
        (None, Kind.NUMBER, ""),
    ]
    for cell, kind, text in cells:
        assert value_text(cell, kind) == text
    assert (
        interval_text(Figure(value=0.4, interval=(0.1, 0.7)), Kind.NUMBER, intervals_pending=False)
        == "[0.10, 0.70]"
    )
    assert (
        interval_text(Figure(value=0.4, reason="few"), Kind.NUMBER, intervals_pending=True) == "[–]"
    )
    assert interval_text(Figure(value=0.4), Kind.NUMBER, intervals_pending=True) == "…"
    assert interval_text(Figure(value=0.4), Kind.NUMBER, intervals_pending=False) == ""
    assert interval_text(Figure(), Kind.NUMBER, intervals_pending=True) == ""


async def test_figures_are_aligned_with_their_titles() -> None:
    async with run_parts(table()) as app:
        heading, first, rule, total = (app.text(line) for line in (0, 1, 4, 5))
        for title, figure in (("n", "10"), ("κ", "0.40"), ("AC1", "0.50")):
            end = heading.index(f" {title} ") + 1 + len(title)
            assert first[:end].split()[-1] == figure
        assert not missing(first, "0.40 [0.10, 0.70]", "█▓")
        assert set(rule.strip()) == {"─"}
        assert "all modes pooled" in total


async def test_the_cursor_stays_on_its_row() -> None:
    async with run_parts(table("first"), table("second")) as app:
        lines = app.lines
        assert lines.row_key == ("first", "m0")
        for _ in range(3):
            lines.move_by(1)
        assert lines.row_key == ("first", "pooled")
        lines.move_by(1)
        assert lines.row_key == ("second", "m0")
        lines.move_by(-1)
        assert lines.row_key == ("first", "pooled")
        lines.show((table("first", rows=9), table("second")))
        assert lines.row_key == ("first", "pooled")
        lines.move_to(0)
        assert lines.row_key == ("first", "m0")
        lines.move_to(lines.row_count)
        assert lines.row_key == ("second", "pooled")
        lines.show((table("first"),))
        assert lines.row_key == ("first", "pooled")
        lines.show((Table("other", "", COLUMNS, ((row(7), row(8)),)),))
        assert lines.row_key == ("other", "m7")


async def test_titles_of_columns_stay_visible() -> None:
    async with run_parts(table("first", rows=40), table("second", rows=40), size=(100, 20)) as app:
        assert app.text(0).strip() == "Agreement by mode"
        titles = app.text(1)
        for _ in range(30):
            app.lines.move_by(1)
        assert app.lines.scroll_y > 1
        assert app.text(0) == titles
        app.lines.move_to(0)
        assert app.lines.scroll_y == 0


async def test_folded_parts_open_at_their_title() -> None:
    folded = table("second", title="By pair", folded=True)
    helps = Text("helps", "What helps", ("Say who is to decide.",), folded=True)
    async with run_parts(table("first"), folded, helps) as app:
        lines = app.lines
        for _ in range(4):
            lines.move_by(1)
        assert lines.line.foldable_part is folded
        assert app.text(lines.cursor).strip("▌ ") == "▸ By pair"
        count = lines.row_count
        assert lines.toggle_fold()
        assert lines.line.foldable_part is folded
        assert lines.row_count > count
        lines.move_by(1)
        assert lines.row_key == ("second", "m0")
        lines.move_to(lines.row_count)
        assert lines.toggle_fold()
        assert "Say who is to decide." in app.text(lines.row_count - 1)
        lines.move_to(0)
        assert not lines.toggle_fold()


async def test_cells_with_own_sources_are_chosen() -> None:
    leads = {"kappa": Sources("κ of it"), "ac1": Sources("AC1 of it")}
    cells = replace(row(0), cell_sources=leads)
    plain = row(1)
    with_sources = replace(row(2), cell_sources={"kappa": Sources("κ of 2")})
    both = replace(table(), groups=((cells, plain, with_sources),))
    async with run_parts(both) as app:
        lines = app.lines
        assert (lines.chosen_column, lines.sources) == ("kappa", Sources("κ of it"))
        assert lines.move_across(1)
        assert lines.move_across(1)
        assert lines.sources == Sources("AC1 of it")
        lines.move_by(1)
        assert lines.sources == Sources("1.1")
        lines.move_by(1)
        assert lines.sources is None
    async with run_parts(table()) as app:
        assert not app.lines.move_across(1)
        assert app.lines.sources == Sources("1.0")


def test_details_of_a_row() -> None:
    notes = (Note("Nothing was left out.", "left_out"), Note("Look out.", "copied", warning=True))
    made = table(notes=notes, caption="Seed 0.")
    kappa = Figure(value=0.4, reason="few_traces", needs=54)
    entry = replace(
        row(0, ac1=Figure(reason="no_variance"), kappa=kappa), detail=("Nobody said present.",)
    )
    lines = row_text(made, entry, notes=(Note("All of it.", "all"),)).splitlines()
    assert row_title(made, entry) == "1.0 Step repetition of the 0th kind"
    assert [line.split("  ")[0] for line in lines[:4]] == [
        "compared",
        "Cohen's κ",
        "Gwet's AC1",
        "share of failed traces",
    ]
    assert lines[1].endswith("0.40 no interval: it needs 54 traces")
    assert lines[2].endswith("— no variance")
    assert lines[3].endswith("50% [25, 75], n 20")
    assert lines[4:10] == [
        "Nobody said present.",
        "",
        "! Look out.",
        "Bars: the share ends after ▓; ▓ and ░ are its 95 % interval.",
        "Nothing was left out.",
        "All of it.",
    ]
    assert lines[-1] == "Seed 0."
    entry = replace(row(0), detail=("Of the row.",), detail_cells={"kappa": ("Of κ alone.",)})
    assert "Of κ alone.\nOf the row." in row_text(table(), entry, chosen_column="kappa")
    assert "Of κ alone." not in row_text(table(), entry, chosen_column="ac1")
    entry = row(0, kappa=Figure(value=0.4))
    assert "0.40 its interval is being computed" in row_text(table(), entry, intervals_pending=True)
    assert "counted" not in row_text(table(), entry)


async def test_a_new_page_opens_at_its_top_unless_its_first_table_has_the_row() -> None:
    def people(name: str) -> Table:
        return Table(name, name, COLUMNS, ((row(7), row(8)),))

    async with run_parts(people("pairs")) as app:
        app.lines.move_by(1)
        assert app.lines.row_key == ("pairs", "m8")
        app.lines.show((table("spans", rows=2), people("annotators")))
        assert app.lines.row_key == ("spans", "m0")
        app.lines.move_by(1)
        app.lines.show((table("judge", rows=2), people("others")))
        assert app.lines.row_key == ("judge", "m1")

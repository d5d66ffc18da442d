"""Widgets that keep their lines and styles: what is shown is what would be drawn anew."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip

from mast_tui.ui.textual_internals import RenderCache
from mast_tui.ui.widgets.virtual_lines import VirtualLines

HEIGHT = 6


class Numbers(RenderCache):
    """Lines that say how often they were made."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"numbers--part"}
    DEFAULT_CSS = """
    Numbers { height: 8; border: round red; color: #112233; }
    Numbers .numbers--part { color: #445566; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.words = ["a"] * HEIGHT
        self.made: list[int] = []

    def render_line(self, y: int) -> Strip:
        self.made.append(y)
        style = self.rich_style + self.get_component_rich_style("numbers--part", partial=True)
        return Strip([Segment(self.words[y].ljust(self.size.width), style)])


class Bare(App[None]):
    def compose(self) -> ComposeResult:
        yield Numbers()


def shown(widget: Numbers) -> list[str]:
    """The lines as they are kept."""
    return [strip.text for strip in widget.render_lines(widget.outer_size.region)]


async def test_only_a_line_that_has_changed_is_made_again() -> None:
    app = Bare()
    async with app.run_test(size=(20, 10)) as pilot:
        widget = app.query_one(Numbers)
        await pilot.pause()
        widget.made.clear()
        widget.words[2] = "b"
        widget.words[4] = "not asked for"
        widget.refresh(Region(0, 2, 5, 1))
        await pilot.pause()
        assert widget.made == [2]
        lines = shown(widget)
        assert [line[1] for line in lines[1:-1]] == ["a", "a", "b", "a", "a", "a"]


async def test_lines_between_two_that_have_changed_stay_right() -> None:
    app = Bare()
    async with app.run_test(size=(20, 10)) as pilot:
        widget = app.query_one(Numbers)
        await pilot.pause()
        widget.words[0], widget.words[5] = "first", "last"
        widget.refresh(Region(0, 0, 5, 1), Region(0, 5, 5, 1))
        await pilot.pause()
        inner = [line[1:6].strip() for line in shown(widget)[1:-1]]
        assert inner == ["first", "a", "a", "a", "a", "last"]


async def test_all_is_made_again_for_another_size_with_its_border() -> None:
    app = Bare()
    async with app.run_test(size=(20, 10)) as pilot:
        widget = app.query_one(Numbers)
        await pilot.pause()
        widget.made.clear()
        await pilot.resize_terminal(30, 10)
        await pilot.pause()
        assert set(widget.made) == set(range(HEIGHT))
        assert {len(line) for line in shown(widget)} == {30}
        widget.border_title = "Title"
        await pilot.pause()
        assert "Title" in shown(widget)[0]


async def test_styles_are_worked_out_once_until_other_rules_hold() -> None:
    app = Bare()
    async with app.run_test(size=(20, 10)) as pilot:
        widget = app.query_one(Numbers)
        await pilot.pause()
        before = widget.rich_style
        assert widget.rich_style is before
        widget.refresh(Region(0, 1, 5, 1))
        assert widget.rich_style is before
        widget.styles.color = "blue"
        await pilot.pause()
        changed = widget.rich_style
        assert changed.color is not None
        assert changed.color.name == "#0000ff"


async def test_another_theme_changes_what_was_kept() -> None:
    class Themed(Bare):
        CSS = "Numbers { background: $primary; }"

    app = Themed()
    async with app.run_test(size=(20, 10)) as pilot:
        widget = app.query_one(Numbers)
        await pilot.pause()
        before = list(widget.render_lines(widget.outer_size.region))
        app.theme = "textual-light" if app.theme != "textual-light" else "nord"
        await pilot.pause()
        after = widget.render_lines(widget.outer_size.region)
        assert [strip.text for strip in before] == [strip.text for strip in after]
        assert before[3] != after[3]


class Rows(VirtualLines):
    """As high as it has rows."""

    DEFAULT_CSS = "Rows { height: auto; }"
    rows = 2

    @property
    def row_count(self) -> int:
        return self.rows

    def render_row(self, row: int, width: int) -> Strip:
        return Strip.blank(width)


class Auto(App[None]):
    def compose(self) -> ComposeResult:
        yield Rows()


async def test_what_is_laid_out_between_two_changes_of_a_height_does_not_stay() -> None:
    app = Auto()
    async with app.run_test(size=(20, 10)) as pilot:
        await pilot.pause()
        rows = app.query_one(Rows)
        heights = [rows.size.height]
        for count in (5, 3):
            rows.rows = count
            rows.rows_changed()
            # As where another widget asks for it before this one has come to rest.
            app.screen._clear_arrangement_cache()
            app.screen._refresh_layout()
        await pilot.pause()
        assert [*heights, rows.size.height] == [2, 3]

"""The use of Textual's private interface: that it exists, and where it is called."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import ClassVar

import pytest
import textual
from rich import cells
from rich.segment import Segment
from rich.text import Text
from textual._cells import cell_len
from textual.app import ComposeResult
from textual.content import Content
from textual.css.stylesheet import Stylesheet as TextualStylesheet
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Static

from mast_tui.ui import textual_internals
from mast_tui.ui.textual_internals import (
    TITLE_FRAME,
    RenderCache,
    TextualApp,
    active_binding,
    count_spacing_marks,
    set_virtual_size_undrawn,
    terminal_released,
)
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from tests.ui.settle import settle
from tests.ui.stage import WidgetApp, stage


class PlainApp(TextualApp):
    """An app with one line of text."""

    CSS = "Static { height: 1; }"

    def compose(self) -> ComposeResult:
        yield Static("one")


async def test_styles_of_a_screen_are_loaded_before_it_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "one.tcss"
    path.write_text("Static { width: 7; }")

    class Styled(Screen[None]):
        CSS_PATH = path

        def compose(self) -> ComposeResult:
            yield Static("two")

    app = PlainApp()
    async with app.run_test() as pilot:
        await app.push_screen(Styled())
        await settle(pilot)
        assert app.stylesheet.has_source(str(path))
        assert app.screen.query_one(Static).size.width == 7


async def test_titles_draw_their_cells_and_sizes_draw_nothing() -> None:
    app = PlainApp()
    async with app.run_test() as pilot:
        await app.mount(widget := Parts())
        await settle(pilot)
        drawn: list[tuple[Region, ...]] = []
        widget._set_dirty = lambda *regions: drawn.append(regions)  # type: ignore[method-assign]
        widget.border_title = widget.border_subtitle = Text("above")
        widget.border_title = Text("above")
        set_virtual_size_undrawn(widget, Size(3, 400))
        assert widget.virtual_size == Size(3, 400)
        assert (drawn[0], len(drawn)) == ((Region(0, 0, len("above") + TITLE_FRAME, 1),), 2)
        assert not terminal_released(app)


def _private_names() -> set[str]:
    names = set()
    for path in Path(textual.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


class Parts(RenderCache, can_focus=True):
    """A widget with parts of several colours, of which it draws one."""

    COMPONENT_CLASSES = {"parts--one", "parts--two"}
    DEFAULT_CSS = """
    Parts .parts--one { color: red; }
    Parts:focus .parts--one { color: blue; }
    Parts .parts--two { color: green; text-style: bold; }
    """
    drawn = 0

    def render(self) -> Content:
        self.drawn += 1
        return Content.styled("word", self.get_visual_style("parts--one"))


async def test_components_have_the_styles_of_textual() -> None:
    class WithParts(TextualApp):
        AUTO_FOCUS = None

        def compose(self) -> ComposeResult:
            yield Parts()

    app = WithParts()
    async with app.run_test() as pilot:
        await settle(pilot)
        parts = app.query_one(Parts)
        assert list(parts._component_styles) == ["parts--one"]
        drawn = parts.drawn
        red = parts.get_component_styles("parts--one").color
        parts.focus()
        await settle(pilot)
        assert parts.drawn > drawn
        assert parts.get_component_styles("parts--one").color != red
        with pytest.raises(KeyError):
            parts.get_component_styles("parts--three")
        ours = {name: parts.get_component_styles(name) for name in Parts.COMPONENT_CLASSES}
        TextualStylesheet._process_component_classes(app.stylesheet, parts)
        theirs = {name: parts.get_component_styles(name) for name in Parts.COMPONENT_CLASSES}
        assert ours == theirs


@pytest.mark.lint
def test_no_other_module_uses_private_names() -> None:
    private = _private_names()
    uses = []
    root = Path(textual_internals.__file__).parent
    trees = {
        path: ast.parse(path.read_text("utf-8"))
        for path in root.rglob("*.py")
        if path != Path(textual_internals.__file__)
    }
    own_names = {
        name
        for tree in trees.values()
        for node in ast.walk(tree)
        for name in _names_set_by(node)
        if not name.startswith("__")
    }
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os":
                continue
            if isinstance(node, ast.Attribute) and node.attr in private - own_names:
                uses.append(f"{path.relative_to(root)}:{node.lineno}: {node.attr}")
            elif isinstance(node, ast.ImportFrom) and "._" in (node.module or ""):
                uses.append(f"{path.relative_to(root)}:{node.lineno}: {node.module}")
    assert uses == []


def _names_set_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return [node.attr]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


@pytest.mark.parametrize(
    ("text", "width"),
    [("कि", 2), ("កា", 2), ("မေ", 2), ("क्", 1), ("e\u0301", 1), ("한", 2), ("\u302e", 2)],
)
def test_spacing_marks_take_a_cell(text: str, width: int) -> None:
    count_spacing_marks()
    count_spacing_marks()
    assert cells.cell_len(text) == cell_len(text) == width
    assert sum(map(cells.get_character_cell_size, text)) == width


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


def rendered_lines(widget: Numbers) -> list[str]:
    return [strip.text for strip in widget.render_lines(widget.outer_size.region)]


async def test_changed_lines_are_drawn_alone() -> None:
    app = WidgetApp(Numbers())
    async with app.run_test(size=(20, 10)) as pilot:
        widget = app.query_one(Numbers)
        await pilot.pause()
        widget.made.clear()
        widget.words[2] = "b"
        widget.words[4] = "not asked for"
        widget.refresh(Region(0, 2, 5, 1))
        await pilot.pause()
        assert widget.made == [2]
        assert [line[1] for line in rendered_lines(widget)[1:-1]] == ["a", "a", "b", "a", "a", "a"]
        widget.words[0] = "first"
        widget.words[5] = "last"
        widget.refresh(Region(0, 0, 5, 1), Region(0, 5, 5, 1))
        await pilot.pause()
        inner = [line[1:6].strip() for line in rendered_lines(widget)[1:-1]]
        assert inner == ["first", "a", "b", "a", "a", "last"]
        widget.made.clear()
        await pilot.resize_terminal(30, 10)
        await pilot.pause()
        assert set(widget.made) == set(range(HEIGHT))
        assert {len(line) for line in rendered_lines(widget)} == {30}
        widget.border_title = "Title"
        await pilot.pause()
        assert "Title" in rendered_lines(widget)[0]


async def test_another_theme_clears_the_cache() -> None:
    class Themed(WidgetApp):
        CSS = "Numbers { background: $primary; }"

    app = Themed(Numbers())
    async with app.run_test(size=(20, 10)) as pilot:
        widget = app.query_one(Numbers)
        await pilot.pause()
        previous = list(widget.render_lines(widget.outer_size.region))
        app.theme = "textual-light" if app.theme != "textual-light" else "nord"
        await pilot.pause()
        after = widget.render_lines(widget.outer_size.region)
        assert [strip.text for strip in previous] == [strip.text for strip in after]
        assert previous[3] != after[3]


class Rows(VirtualLines):
    """A widget as high as its number of rows."""

    DEFAULT_CSS = "Rows { height: auto; }"
    rows = 2

    @property
    def row_count(self) -> int:
        return self.rows

    def render_row(self, row: int, width: int) -> Strip:
        return Strip.blank(width)


async def test_heights_follow_the_number_of_rows() -> None:
    app = WidgetApp(Rows())
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


async def test_a_key_has_the_binding_of_textual(small: Path) -> None:
    async with stage(small) as on:
        bindings = on.app.screen.active_bindings
        assert bindings == {key: active_binding(on.app.screen, key) for key in bindings}


async def test_a_scroll_bar_is_drawn_only_if_a_size_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Bordered(Rows):
        DEFAULT_CSS = "Bordered { height: 8; border: round red; }"
        rows = 100

    app = WidgetApp(Bordered(), Static("one"))
    async with app.run_test(size=(20, 10)) as pilot:
        await pilot.pause()
        drawn: list[bool] = []
        bar = app.query_one(Bordered).vertical_scrollbar
        assert bar.render_lines(bar.size.region) is bar.render_lines(bar.size.region)
        monkeypatch.setattr(bar, "refresh", lambda *_, **__: drawn.append(True))
        app.query_one(Static).display = False
        await pilot.pause()
        assert not app.query_one(Static).region
        assert not drawn
        app.query_one(Bordered).rows = 50
        app.query_one(Bordered).rows_changed()
        await pilot.pause()
        assert drawn

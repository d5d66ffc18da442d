"""What reaches past Textual's public interface: that it is there, and is called where that is
relied on.

A failure here after an update of Textual says which part of ``mast_tui.ui.textual_internals`` to
look at; nothing else in ``mast_tui.ui`` may reach past Textual.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest
import textual
from rich import cells
from textual._cells import cell_len
from textual.app import App, ComposeResult
from textual.content import Content
from textual.css.stylesheet import Stylesheet as TextualStylesheet
from textual.geometry import Region, Size
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker

from mast_tui import ui
from mast_tui.ui import textual_internals
from mast_tui.ui.textual_internals import (
    RenderCache,
    TextualApp,
    count_spacing_marks,
    set_virtual_size_undrawn,
    show_titles_undrawn,
    terminal_released,
    titles_of,
)
from tests.ui.settle import settle


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        (MessagePump._close_messages_no_wait, ["self"]),
        (App._handle_exception, ["self", "error"]),
        (App._load_screen_css, ["self", "screen"]),
        (TextualStylesheet._process_component_classes, ["self", "node"]),
        (Widget._scroll_update, ["self", "virtual_size"]),
        (Widget._set_dirty, ["self", "regions"]),
    ],
)
def test_what_is_called_or_overridden_takes_what_it_took(
    method: Callable[..., object], parameters: list[str]
) -> None:
    assert list(inspect.signature(method).parameters) == parameters


class Told(TextualApp):
    """An app that notes what it hears."""

    CSS = "Static { height: 1; }"
    BINDINGS = [("x", "note", "note")]

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def compose(self) -> ComposeResult:
        yield Static("one")

    def action_note(self) -> None:
        self.heard.append("x")

    def worker_failed(self, worker: Worker[Any], words: str) -> None:
        self.heard.append(f"{worker.group}: {words.split(';')[0]}")


async def test_an_error_in_a_worker_is_told_and_the_app_goes_on() -> None:
    app = Told()
    async with app.run_test() as pilot:

        def broken() -> None:
            raise KeyError("words of a trace")

        app.run_worker(broken, thread=True, group="some")
        await settle(pilot)
        assert app.heard == ["some: unexpected error (KeyError)"]
        assert app.crash is None
        assert app.is_running
        app._exception = None


async def test_any_other_error_ends_the_app_with_a_log() -> None:
    class Broken(Told):
        def action_note(self) -> None:
            raise KeyError("words of a trace")

    app = Broken()
    async with app.run_test() as pilot:
        await pilot.press("x")
        await settle(pilot)
        assert isinstance(app._exception, KeyError)
        app._exception = None  # run_test would raise it
    assert app.crash is not None
    assert app.crash.startswith("unexpected error (KeyError); the log is ")
    assert app.return_code == 1


async def test_a_screens_styles_are_asked_for_before_it_is_shown(tmp_path: Path) -> None:
    place = tmp_path / "one.tcss"
    place.write_text("Static { width: 7; }")

    class Styled(Screen[None]):
        CSS_PATH = place

        def compose(self) -> ComposeResult:
            yield Static("two")

    app = Told()
    async with app.run_test() as pilot:
        await app.push_screen(Styled())
        await settle(pilot)
        assert app.stylesheet.has_source(str(place))
        assert app.screen.query_one(Static).size.width == 7


async def test_the_border_is_set_without_drawing_and_the_size_that_is_scrolled_over() -> None:
    app = Told()
    async with app.run_test():
        widget = app.query_one(Static)
        drawn: list[tuple[Region, ...]] = []
        widget._set_dirty = lambda *regions: drawn.append(regions)  # type: ignore[method-assign]
        show_titles_undrawn(widget, Content("above"), Content("below"))
        assert titles_of(widget) == (Content("above"), Content("below"))
        assert (widget.border_title, widget.border_subtitle) == ("above", "below")
        assert drawn == []
        set_virtual_size_undrawn(widget, Size(3, 400))
        assert widget.virtual_size == Size(3, 400)


class Lines(RenderCache):
    """A widget that counts how often it is drawn."""

    drawn = 0

    def render(self) -> str:
        type(self).drawn += 1
        return "line"


async def test_a_widget_is_drawn_when_all_of_it_is_to_be_drawn_and_not_else() -> None:
    class OneWidget(App[None]):
        def compose(self) -> ComposeResult:
            yield Lines()

    app = OneWidget()
    async with app.run_test() as pilot:
        await settle(pilot)
        widget = app.query_one(Lines)
        crop = widget.size.region
        before = widget.render_lines(crop)
        assert widget.render_lines(crop) is before
        widget.refresh()
        assert widget.render_lines(crop) is not before


async def test_an_app_without_a_terminal_has_given_none_back() -> None:
    app = Told()
    async with app.run_test():
        assert not terminal_released(app)


def _private_names() -> set[str]:
    """Names with an underscore that Textual's own classes define or set on themselves."""
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


async def test_parts_have_the_styles_that_textual_gives_them_once_they_are_drawn() -> None:
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
def test_nothing_else_reaches_past_textual() -> None:
    """No module of the screens uses a private name of Textual that it has not given itself."""
    private = _private_names()
    found = []
    root = Path(textual_internals.__file__).parent
    trees = {
        path: ast.parse(path.read_text("utf-8"))
        for path in root.rglob("*.py")
        if path != Path(textual_internals.__file__)
    }
    own = {
        name
        for tree in trees.values()
        for node in ast.walk(tree)
        for name in _given(node)
        if not name.startswith("__")
    }
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os":
                continue
            if isinstance(node, ast.Attribute) and node.attr in private - own:
                found.append(f"{path.relative_to(root)}:{node.lineno}: {node.attr}")
            elif isinstance(node, ast.ImportFrom) and "._" in (node.module or ""):
                found.append(f"{path.relative_to(root)}:{node.lineno}: {node.module}")
    assert found == []


def _given(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return [node.attr]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def test_nothing_else_overrides_a_private_method() -> None:
    found = []
    for info in walk_packages(ui.__path__, f"{ui.__name__}."):
        module = import_module(info.name)
        for kind in vars(module).values():
            if not isinstance(kind, type) or kind.__module__ != module.__name__:
                continue
            above = [one for one in kind.__mro__ if one.__module__.startswith("textual.")]
            found += [
                f"{info.name}: {kind.__name__}.{name}"
                for name, value in vars(kind).items()
                if name.startswith("_") and not name.startswith("__") and isfunction(value)
                if any(name in vars(one) for one in above)
                if module is not textual_internals
            ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "width"),
    [("कि", 2), ("កា", 2), ("မေ", 2), ("क्", 1), ("e\u0301", 1), ("한", 2), ("\u302e", 2)],
)
def test_a_spacing_mark_takes_a_cell_as_terminals_have_it(text: str, width: int) -> None:
    count_spacing_marks()
    count_spacing_marks()
    assert cells.cell_len(text) == cell_len(text) == width
    assert sum(map(cells.get_character_cell_size, text)) == width

"""The contrast of texts on all grounds in all themes."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from rich.color import ColorType
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES
from textual.widget import Widget

import mast_tui.ui
from mast_tui.ui.styles import GROUNDS, MIN_CONTRAST, TEXTS, contrast, line_colours
from tests.ui.settle import settle
from tests.ui.stage import Stage, finding, read_trace, stage, suggest, write_trace

MIXED_THEMES: Final = [name for name in BUILTIN_THEMES if not name.startswith("ansi")]
STYLES: Final = sorted(Path(mast_tui.ui.__path__[0]).rglob("*.tcss"))


@pytest.mark.parametrize("name", MIXED_THEMES)
def test_all_texts_have_contrast_on_all_grounds(name: str) -> None:
    theme = BUILTIN_THEMES[name].to_color_system().generate()
    colours = {**theme, **line_colours(theme)}
    for text in TEXTS:
        for ground in GROUNDS:
            pair = Color.parse(colours[text]), Color.parse(colours[ground])
            assert contrast(*pair) >= MIN_CONTRAST, (text, ground)


def test_contrast_is_computed_as_in_wcag() -> None:
    assert contrast(Color.parse("#000"), Color.parse("#fff")) == pytest.approx(21)
    assert contrast(Color.parse("#777777"), Color.parse("#fff")) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.stem)
def test_styles_use_checked_colours_alone(path: Path) -> None:
    rules = path.read_text("utf-8")
    texts = set(re.findall(r"(?<!scrollbar-)(?<!background-)color: \$([\w-]+)", rules))
    grounds = set(re.findall(r"(?<!scrollbar-)background: \$([\w-]+)", rules))
    assert texts <= set(TEXTS)
    assert grounds <= set(GROUNDS)
    assert not re.findall(r"(?:color|background): (?!\$)", rules), "a variable, never a number"


def parts_of(on: Stage) -> list[tuple[Widget, str]]:
    """Return each component of each of the app's widgets on the screen."""
    return [
        (widget, part)
        for widget in on.app.screen.walk_children(Widget)
        if type(widget).__module__.startswith("mast_tui")
        for kind in type(widget).__mro__
        if kind.__module__.startswith("mast_tui")
        for part in sorted(vars(kind).get("COMPONENT_CLASSES", ()))
    ]


def colour_of(style: Style, *, ground: bool) -> Color:
    colour = style.bgcolor if ground else style.color
    assert colour is not None, style
    assert colour.type is ColorType.TRUECOLOR, style
    return Color.from_rich_color(colour)


async def test_texts_on_screens_have_contrast(tmp_path: Path, workspace: Path) -> None:
    small = write_trace(tmp_path / "small.json")
    trace = read_trace(small)
    suggest(workspace, trace, [finding(trace, "1.1", 2, 2, quote="pods")])
    async with stage(small, workspace=workspace) as on:
        await on.press("1", "3")
        for keys in ((), ("?",), ("escape", ":"), ("escape", "L")):
            await on.press(*keys)
            parts = parts_of(on)
            assert parts
            # All pairs of a text and a ground are checked in all themes above.
            for name in ("textual-dark", "textual-light"):
                on.app.theme = name
                await settle(on.pilot)
                for widget, part in parts:
                    base = widget.rich_style
                    style = base + widget.get_component_rich_style(part, partial=True)
                    pair = colour_of(style, ground=False), colour_of(style, ground=True)
                    assert contrast(*pair) >= MIN_CONTRAST, (keys, name, widget, part)


async def test_sixteen_colours_never_hide_text(tmp_path: Path) -> None:
    small = write_trace(tmp_path / "small.json")
    async with stage(small, workspace=tmp_path / "w.db") as on:
        for name in ("ansi-dark", "ansi-light"):
            on.app.theme = name
            await settle(on.pilot)
            styles = [
                (widget, widget.rich_style + widget.get_component_rich_style(part, partial=True))
                for widget, part in parts_of(on)
            ]
            for (widget, text), (other, ground) in product(styles, repeat=2):
                if widget is other and text.color is not None and not text.color.is_default:
                    assert text.color != ground.bgcolor, (name, widget)

"""Every text can be read on every ground, in every theme that Textual ships."""

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
def test_text_can_be_read_on_all_that_it_stands_on(name: str) -> None:
    theme = BUILTIN_THEMES[name].to_color_system().generate()
    colours = {**theme, **line_colours(theme)}
    for text in TEXTS:
        for ground in GROUNDS:
            pair = Color.parse(colours[text]), Color.parse(colours[ground])
            assert contrast(*pair) >= MIN_CONTRAST, (text, ground)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast(Color.parse("#000"), Color.parse("#fff")) == pytest.approx(21)
    assert contrast(Color.parse("#777777"), Color.parse("#fff")) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.stem)
def test_our_styles_name_no_other_text_and_no_other_ground(path: Path) -> None:
    rules = path.read_text("utf-8")
    texts = set(re.findall(r"(?<!scrollbar-)(?<!background-)color: \$([\w-]+)", rules))
    grounds = set(re.findall(r"(?<!scrollbar-)background: \$([\w-]+)", rules))
    assert texts <= set(TEXTS)
    assert grounds <= set(GROUNDS)
    assert not re.findall(r"(?:color|background): (?!\$)", rules), "a variable, never a number"


def parts_of(on: Stage) -> list[tuple[Widget, str]]:
    """Each part of each widget of ours that is on the screen."""
    return [
        (widget, part)
        for widget in on.app.screen.walk_children(Widget)
        if type(widget).__module__.startswith("mast_tui")
        for kind in type(widget).__mro__
        if kind.__module__.startswith("mast_tui")
        for part in sorted(vars(kind).get("COMPONENT_CLASSES", ()))
    ]


def colour_of(style: Style, *, ground: bool) -> Color:
    found = style.bgcolor if ground else style.color
    assert found is not None, style
    assert found.type is ColorType.TRUECOLOR, style
    return Color.from_rich_color(found)


@pytest.mark.parametrize("keys", [(), ("L",), ("?",), (":",)], ids=["", "L", "help", "palette"])
async def test_what_is_on_screen_can_be_read(tmp_path: Path, keys: tuple[str, ...]) -> None:
    small, place = write_trace(tmp_path / "small.json"), tmp_path / "w.db"
    trace = read_trace(small)
    suggest(place, trace, [finding(trace, "1.1", 2, 2, quote="pods")])
    async with stage(small, workspace=place) as on:
        await on.press("1", "3", *keys)
        parts = parts_of(on)
        assert parts
        # All pairs of a text and a ground are looked at in all themes above.
        for name in ("textual-dark", "textual-light"):
            on.app.theme = name
            await settle(on.pilot)
            for widget, part in parts:
                own = widget.rich_style
                style = own + widget.get_component_rich_style(part, partial=True)
                pair = colour_of(style, ground=False), colour_of(style, ground=True)
                assert contrast(*pair) >= MIN_CONTRAST, (name, widget, part)


@pytest.mark.parametrize("name", ["ansi-dark", "ansi-light"])
async def test_sixteen_colours_never_hide_text(tmp_path: Path, name: str) -> None:
    small = write_trace(tmp_path / "small.json")
    async with stage(small, workspace=tmp_path / "w.db") as on:
        on.app.theme = name
        await settle(on.pilot)
        parts = parts_of(on)
        styles = [
            (widget, widget.rich_style + widget.get_component_rich_style(part, partial=True))
            for widget, part in parts
        ]
        for (widget, text), (other, ground) in product(styles, repeat=2):
            if widget is other and text.color is not None and not text.color.is_default:
                assert text.color != ground.bgcolor, widget

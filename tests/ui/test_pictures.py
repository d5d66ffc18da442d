"""Pictures in spans: their size, their drawing, and the system's viewer."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import pytest

from mast_tui.ui.annotate.pictures import PictureError, PictureScreen, decoded, viewer_command
from tests.traces.test_pictures import DARK, RED, anthropic_image, png
from tests.ui.stage import Stage, stage, write_trace
from tests.waiting import until

BROKEN = RED[:60] + "A" * (len(RED) - 60)
"""A picture whose head is intact."""

MESSAGES = (
    {"role": "user", "content": [anthropic_image(RED)]},
    {"role": "user", "content": [{"type": "text", "text": "See both"}, anthropic_image(RED)]},
    {"role": "user", "content": [anthropic_image(RED), anthropic_image(DARK)]},
    {"role": "user", "content": [anthropic_image(BROKEN)]},
    {"role": "user", "content": "no picture [1]"},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "run.json", MESSAGES)


def picture_title(on: Stage) -> str:
    """Return the title of the open picture."""
    return str(on.screen(PictureScreen).query_one(".picture").border_title)


async def test_pictures_are_drawn(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(path) as on:
        assert "PNG, 64 × 48, " in str(on.annotate.span_view.border_subtitle)
        await on.press("z")
        assert picture_title(on).startswith("#1 · PNG, 64 × 48")
        await on.until(lambda: "▀▀▀▀" in on.text)
        await on.press("escape")
        assert on.app.screen is on.annotate
        assert not on.annotate.panes.is_reading
        await on.press("j")
        await on.press("z")
        assert on.annotate.panes.is_reading
        assert "z pictures" in on.lines[-1]
        await on.press("z")
        assert picture_title(on).startswith("#2 · PNG")
        await on.press("escape")
        assert not on.annotate.panes.is_reading
        await on.press("G", "z")
        assert on.annotate.panes.is_reading
        assert "z back" in on.lines[-1]
        await on.press("z")
        assert on.app.screen is on.annotate
        await on.press("g")
        await on.press("j", "j")
        assert "2 pictures" in str(on.annotate.span_view.border_subtitle)
        await on.press("z", "z")
        assert "picture 1 of 2" in picture_title(on)
        await on.press("right_square_bracket")
        assert "picture 2 of 2 · PNG, 32 × 16" in picture_title(on)
        await on.press("right_square_bracket")
        assert "picture 1 of 2 · PNG, 64 × 48" in picture_title(on)
        await on.press("escape", "g")
        await on.press("j", "j", "j", "z")
        await on.until(lambda: "cannot be drawn" in on.text)
        await on.press("escape", "g")
        monkeypatch.setitem(sys.modules, "textual_image.widget", None)
        await on.press("z")
        await on.until(lambda: "pip install 'mast-tui[pictures]'" in on.text)


async def test_a_picture_opens_in_the_viewer(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = tmp_path / "opened"
    viewer = tmp_path / "bin" / "xdg-open"
    viewer.parent.mkdir()
    viewer.write_text(f'#!/bin/sh\n/bin/cp "$1" {opened}.part && /bin/mv {opened}.part {opened}\n')
    viewer.chmod(0o755)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", str(viewer.parent))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    async with stage(path) as on:
        await on.press("z", "z")
        await on.until(lambda: "No viewer here (no display)" in on.text)
        monkeypatch.setenv("DISPLAY", ":0")
        await on.press("z")
        await on.until(lambda: "Opened in the viewer" in on.text)
        for _ in until(opened.exists):
            await on.pilot.pause()
    assert opened.read_bytes() == png(64, 48, 200)


def test_pictures_of_too_many_pixels_are_refused() -> None:
    for side in (8_000, 100_000):
        head = png(1, 1, 0)
        large = head[:16] + side.to_bytes(4) * 2 + head[24:29]
        data = large + zlib.crc32(large[12:29]).to_bytes(4) + head[33:]
        with pytest.raises(PictureError, match="pixels"):
            decoded(data)


def test_the_viewer_is_chosen_by_the_system(tmp_path: Path) -> None:
    for name in ("open", "xdg-open"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    path = {"PATH": str(tmp_path)}
    assert viewer_command(path, "darwin") == str(tmp_path / "open")
    assert viewer_command({**path, "WAYLAND_DISPLAY": "w"}, "linux") == str(tmp_path / "xdg-open")
    with pytest.raises(PictureError, match="no display"):
        viewer_command(path, "linux")
    with pytest.raises(PictureError, match="no xdg-open"):
        viewer_command({"PATH": "", "DISPLAY": ":0"}, "linux")

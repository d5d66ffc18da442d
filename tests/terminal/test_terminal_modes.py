"""The mouse and pictures in a real terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal.screen import Terminal
from tests.traces.test_pictures import RED, anthropic_image
from tests.ui.stage import write_trace

F6 = "\x1b[17~"


@pytest.fixture
def path(home: Path) -> Path:
    """A run whose first step is a picture."""
    steps = [{"role": "user", "content": [anthropic_image(RED)]}]
    return write_trace(home / "run.json", steps)


def test_the_mouse_is_released_and_taken_back(path: Path, home: Path) -> None:
    with Terminal(str(path), "--annotator", "mira", home=home) as app:
        app.until("Timeline")
        for switch, message in (("l", "selects and copies"), ("h", "is the app's again")):
            del app.raw[:]
            app.press(F6)
            app.until(message)
            assert f"\x1b[?1000{switch}\x1b[?1003{switch}".encode() in app.raw


def test_pictures_without_support_are_half_blocks(path: Path, home: Path) -> None:
    with Terminal(str(path), "--annotator", "mira", home=home) as app:
        app.until("PNG, 64 × 48")
        app.press("z")
        app.until("▀▀▀▀")
        app.press("j")
        app.press("escape")
        app.until("Timeline")

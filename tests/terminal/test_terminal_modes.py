"""The mouse, pictures, and encodings without frames in a real terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import pexpect
import pytest

from mast_tui.traces.library import samples_folder
from tests.terminal.screen import TIMEOUT, Terminal, settings
from tests.traces.test_pictures import RED, anthropic_image
from tests.ui.stage import write_trace

F6 = "\x1b[17~"


@pytest.fixture
def path(home: Path) -> Path:
    """A run whose first step is a picture."""
    steps = [{"role": "user", "content": [anthropic_image(RED)]}]
    return write_trace(home / "run.json", steps)


def test_the_mouse_is_released_and_captured_again(path: Path, home: Path) -> None:
    with Terminal(str(path), "--annotator", "mira", home=home) as app:
        app.until("Timeline")
        for switch, message in (("l", "selects and copies"), ("h", "handles the mouse again")):
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


TRACE = samples_folder() / "shipping-quote-hpa-stuck.jsonl"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_frames_are_drawn_in_ascii(tmp_path: Path, encoding: str) -> None:
    process = pexpect.spawn(
        sys.executable,
        ["-m", "mast_tui", str(TRACE), "--annotator", "ann"],
        env={**settings(tmp_path), "PYTHONIOENCODING": encoding},
        dimensions=(40, 120),
        cwd=str(tmp_path),
        timeout=TIMEOUT,
    )
    with Terminal(home=tmp_path, process=process) as terminal:
        terminal.until("any key begins")
        terminal.press("enter")
        text = terminal.until(r"\+-+ Timeline -+\+")
        assert "\\u25" not in text
        terminal.press("1", "3")
        terminal.until(r"1\.3 .*\*")
        terminal.press("ctrl+q")
        assert terminal.ended() == 0
    assert b"\\u25" not in bytes(terminal.raw)
    assert "╭" not in terminal.raw.decode(encoding)

"""The app in a terminal without box-drawing characters."""

from __future__ import annotations

import sys
from pathlib import Path

import pexpect
import pytest

from mast_tui.traces.library import samples_folder
from tests.terminal.screen import TIMEOUT, Terminal, settings

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

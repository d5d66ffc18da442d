"""What a cursor move sends to the terminal, counted in bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.terminal.screen import Terminal

SPANS = 200
ONE_LINE = 1500
"""Bytes for a move between two spans of one line each."""

OTHERWISE = 6000
"""Bytes for a move between any two spans."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A conversation in which every tenth message has many lines."""
    seen = tmp_path / ".local" / "share" / "mast-tui"
    seen.mkdir(parents=True)
    (seen / "welcomed").touch()
    long = "\n".join(f"{place} {'words of a long message ' * 6}" for place in range(60))
    texts = [long if number % 10 == 9 else f"step {number} of a run" for number in range(SPANS)]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([{"role": "assistant", "content": text} for text in texts]))
    return path


def test_a_cursor_move_sends_the_lines_that_have_changed(path: Path) -> None:
    with Terminal(
        str(path), "--workspace", str(path.with_name("w.db")), "--annotator", "a", home=path.parent
    ) as app:
        app.until(r"─ #1 message")
        app.until(r"a · assisted")
        app.press("j")
        app.until(r"─ #2 message")
        sizes: dict[int, int] = {}
        for number in range(3, 60):
            before = len(app.raw)
            app.press("j")
            app.until(rf"─ #{number} message")
            app.read(0.1)
            sizes[number] = len(app.raw) - before
        assert max(sizes.values()) < OTHERWISE, sizes
        # Where the cursor runs against the edge the list scrolls, by a third of the screen.
        short = [size for number, size in sizes.items() if number % 10 not in (0, 1)]
        assert sum(size >= ONE_LINE for size in short) <= len(short) // 6, sizes
        app.press("Q")
        assert app.ended() == 0

"""What a cursor move sends to the terminal, counted in bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.terminal.screen import Terminal

SPANS = 30
LONG = 11
ONE_LINE = 1500
"""Bytes for a move between two spans of one line each."""

OTHERWISE = 6000
"""Bytes for a move between any two spans."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A conversation in which every eleventh message has many lines."""
    seen = tmp_path / ".local" / "share" / "mast-tui"
    seen.mkdir(parents=True)
    (seen / "welcomed").touch()
    long = "\n".join(f"{place} {'words of a long message ' * 6}" for place in range(60))
    texts = [
        long if number % LONG == LONG - 1 else f"step {number} of a run" for number in range(SPANS)
    ]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([{"role": "assistant", "content": text} for text in texts]))
    return path


def rest(app: Terminal) -> None:
    """Wait until nothing is written any more."""
    before = -1
    while before != len(app.raw):
        before = len(app.raw)
        app.read(0.5)


def test_a_cursor_move_sends_the_lines_that_have_changed(path: Path) -> None:
    with Terminal(
        str(path), "--workspace", str(path.with_name("w.db")), "--annotator", "a", home=path.parent
    ) as app:
        app.until(r"─ #1 message")
        app.until(r"a · assisted")
        app.press("j")
        app.until(r"─ #2 message")
        rest(app)
        sizes: dict[int, int] = {}
        for number in range(3, SPANS + 1):
            before = len(app.raw)
            app.press("j")
            app.until(rf"─ #{number} message")
            app.read(0.1)
            sizes[number] = len(app.raw) - before
        # Where the cursor runs against the edge the list scrolls, by a third of the screen.
        short = [size for number, size in sizes.items() if number % LONG not in (0, 1)]
        assert sum(size >= ONE_LINE for size in short) <= 3, sizes
        assert max(sizes.values()) < OTHERWISE, sizes
        app.press("Q")
        assert app.ended() == 0

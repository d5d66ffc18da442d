"""The bytes that a cursor move sends to the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import waiting
from tests.terminal.screen import Terminal

SPANS = 30
LONG = 11
ONE_LINE = 1500
"""Bytes for a move between two spans of one line each."""

WITHOUT_SCROLLING = 6000
"""Bytes for any other move that does not scroll the list."""

SCROLLED = 7000
"""Bytes for a move that scrolls the list, with the marks of read spans."""


@pytest.fixture
def path(home: Path) -> Path:
    """A conversation in which every eleventh message has many lines."""
    long = "\n".join(f"{line_number} {'words of a long message ' * 6}" for line_number in range(60))
    texts = [
        long if number % LONG == LONG - 1 else f"step {number} of a run" for number in range(SPANS)
    ]
    path = home / "talk.json"
    path.write_text(json.dumps([{"role": "assistant", "content": text} for text in texts]))
    return path


def writes(app: Terminal) -> bool:
    size = len(app.raw)
    app.read(0.25)
    return len(app.raw) > size


def wait_until_idle(app: Terminal) -> None:
    """Wait until the app writes no more output."""
    for _ in waiting.until(lambda: not writes(app)):
        pass


def test_cursor_moves_send_changed_lines(path: Path) -> None:
    with Terminal(
        str(path), "--workspace", str(path.with_name("w.db")), "--annotator", "a", home=path.parent
    ) as app:
        app.until(r"─ #1 message")
        app.until(r"a · suggestions shown")
        app.press("j")
        app.until(r"─ #2 message")
        wait_until_idle(app)
        sizes: dict[int, int] = {}
        scrolled: list[int] = []
        for number in range(3, SPANS + 1):
            size_before = len(app.raw)
            top = app.text.splitlines()[2][:40]
            app.press("j")
            app.until(rf"─ #{number} message")
            wait_until_idle(app)
            sizes[number] = len(app.raw) - size_before
            if app.text.splitlines()[2][:40] != top:
                scrolled.append(sizes.pop(number))
        # At the edge of the screen, the list scrolls by a third of the screen.
        short = [size for number, size in sizes.items() if number % LONG not in (0, 1)]
        assert sum(size >= ONE_LINE for size in short) <= 3, sizes
        assert max(sizes.values()) < WITHOUT_SCROLLING, sizes
        assert 1 <= len(scrolled) <= 3
        assert max(scrolled) < SCROLLED, scrolled
        app.press("Q")
        assert app.ended() == 0

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

OTHERWISE = 6000
"""Bytes for a move between any two spans that leaves the list where it is."""

SCROLLED = 7000
"""Bytes for one that scrolls the list, with the numbers of spans that were read by then."""


@pytest.fixture
def path(home: Path) -> Path:
    """A conversation in which every eleventh message has many lines."""
    long = "\n".join(f"{place} {'words of a long message ' * 6}" for place in range(60))
    texts = [
        long if number % LONG == LONG - 1 else f"step {number} of a run" for number in range(SPANS)
    ]
    path = home / "talk.json"
    path.write_text(json.dumps([{"role": "assistant", "content": text} for text in texts]))
    return path


def writes(app: Terminal) -> bool:
    before = len(app.raw)
    app.read(0.25)
    return len(app.raw) > before


def rest(app: Terminal) -> None:
    """Wait until nothing is written any more."""
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
        rest(app)
        sizes: dict[int, int] = {}
        scrolled: list[int] = []
        for number in range(3, SPANS + 1):
            before, top = len(app.raw), app.text.splitlines()[2][:40]
            app.press("j")
            app.until(rf"─ #{number} message")
            rest(app)
            sizes[number] = len(app.raw) - before
            if app.text.splitlines()[2][:40] != top:
                scrolled.append(sizes.pop(number))
        # Where the cursor runs against the edge the list scrolls, by a third of the screen.
        short = [size for number, size in sizes.items() if number % LONG not in (0, 1)]
        assert sum(size >= ONE_LINE for size in short) <= 3, sizes
        assert max(sizes.values()) < OTHERWISE, sizes
        assert 1 <= len(scrolled) <= 3
        assert max(scrolled) < SCROLLED, scrolled
        app.press("Q")
        assert app.ended() == 0

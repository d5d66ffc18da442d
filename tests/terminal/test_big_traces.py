"""Ten megabytes in one span, and twenty thousand spans: the keys do what they always do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from tests.terminal.hostile import gone, until_whole
from tests.terminal.screen import Terminal

MEGABYTES: Final = 10
SPANS: Final = 20_000


def terminal(home: Path, path: Path) -> Terminal:
    """The app with a trace open."""
    return Terminal(str(path), "--workspace", str(home / "w.db"), "--annotator", "alice", home=home)


def test_a_span_of_ten_megabytes_is_read_to_its_end(home: Path) -> None:
    size = MEGABYTES * 1_000_000
    texts = ["x" * size + "§", "word " * (size // 5) + "¶", "short"]
    path = home / "big.json"
    path.write_text(json.dumps([{"role": "assistant", "content": text} for text in texts]))
    with terminal(home, path) as app:
        app.until(r"─ #1 message")
        app.until(r"alice")
        for number, end in ((1, "§"), (2, "¶")):
            app.until(rf"─ #{number} message")
            app.press("tab", "G")
            app.until(end)
            until_whole(app)
            # The words at the end can be quoted, and the cursor goes on as before.
            app.press("w", "v", "w", "1", "3")
            app.until(rf"1\.3 Step repetition on words in #{number} ")
            app.press("g")
            app.until(gone(end))
            app.press("tab", "tab", "down")
        app.until(r"─ #3 message")
        app.press("/", "word ¶", "enter")
        app.until(r"“word ¶”: 1 of 1")
        app.until(r"word ¶ ")
        until_whole(app)
        app.press("Q")
        assert app.ended() == 0


def test_twenty_thousand_spans_are_gone_through_like_a_few(home: Path) -> None:
    path = home / "many.jsonl"
    stamp = "2026-01-02T03:{:02d}:{:02d}.000Z"
    lines = [
        {
            "timestamp": stamp.format(0, 0),
            "type": "session_meta",
            "payload": {
                "id": "11111111-2222-7333-8444-555555555555",
                "cwd": "/",
                "cli_version": "0.98.0",
            },
        }
    ]
    for number in range(1, SPANS + 1):
        content = [{"type": "output_text", "text": f"step {number} of many, mark{number % 7777}"}]
        lines.append(
            {
                "timestamp": stamp.format(number // 600 % 60, number // 10 % 60),
                "type": "response_item",
                "payload": {"type": "message", "role": "assistant", "content": content},
            }
        )
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    with terminal(home, path) as app:
        app.until(r"─ #1 message")
        app.until(rf"{SPANS} spans")
        app.until(r"alice")
        app.press("G")
        app.until(rf"─ #{SPANS} message")
        app.press("1", "3")
        app.until(rf"1\.3 Step repetition on #{SPANS} ")
        app.press(":", "12345", "enter")
        app.until(r"─ #12345 message")
        app.press("v", "down", "down", "2", "6")
        app.until(r"2\.6 Reasoning-action mismatch on #12345 to #12347")
        assert len(re.findall(r"2\.6 ●", app.text)) == 3
        app.press("g", "/", "mark7776", "enter")
        app.until(r"“mark7776”: 1 of 2")
        app.until(r"─ #7776 message")
        app.press("n")
        app.until(r"─ #15553 message")
        until_whole(app)
        app.press("u")
        app.until(r"─ #1234[57] message")
        app.press("D")
        app.until(r"of 20000 spans read")
        app.press("escape")
        app.until(gone("spans read"))
        app.press("Q")
        assert app.ended() == 0

"""Spans of ten megabytes in a real terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.terminal.forking import Apps
from tests.terminal.hostile import gone, until_whole

MEGABYTES: Final = 10


def test_spans_of_ten_megabytes_are_read_to_their_end(apps: Apps, home: Path) -> None:
    size = MEGABYTES * 1_000_000
    texts = ["x" * size + "§", "word " * (size // 5) + "¶", "short"]
    path = home / "big.json"
    path.write_text(json.dumps([{"role": "assistant", "content": text} for text in texts]))
    options = ("--workspace", str(home / "w.db"), "--annotator", "alice")
    with apps.terminal(str(path), *options, home=home) as app:
        app.until(r"─ #1 message")
        app.until(r"alice")
        for number, end in ((1, "§"), (2, "¶")):
            app.until(rf"─ #{number} message")
            app.press("tab", "G")
            app.until(end)
            until_whole(app)
            # The text at the end can be quoted, and the cursor still moves.
            app.press("w", "v", "w", "1", "3")
            app.until(rf"1\.3 Step repetition on a quote in #{number} ")
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

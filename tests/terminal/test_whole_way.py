"""The work of one annotator in a real, narrow terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from mast_tui.traces.library import samples_folder
from tests.terminal.forking import Apps
from tests.terminal.screen import Terminal

TRACE = "ad-restart-loop.jsonl"


def command(home: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mast_tui", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env={"HOME": str(home), "PATH": "", "LANG": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def cursor_number(terminal: Terminal) -> int:
    match = re.search(r"^│▌\s*(\d+) ", terminal.text, re.MULTILINE)
    return int(match[1]) if match is not None else 0


def open_trace(terminal: Terminal, name: str = TRACE) -> None:
    terminal.until(r"· \d+ of \d+")
    terminal.press("/", name.removesuffix(".jsonl"), "enter")
    terminal.until(lambda text: "1 of 16 traces" in text)
    terminal.press("enter")
    terminal.until(r"Timeline")
    terminal.until(r"#\d+ \w+")


def marks_of_span(terminal: Terminal, number: int) -> str:
    row = re.search(rf"^│[▌┃ ]\s*{number} [^│]*", terminal.text, re.MULTILINE)
    return " ".join(re.findall(r"\d\.\d [●◌○]", row[0])) if row is not None else "?"


def bars_of_span(terminal: Terminal, number: int) -> int:
    row = re.search(rf"^│[▌┃ ]\s*{number} .*", terminal.text, re.MULTILINE)
    assert row is not None
    return row[0].count("│")


def test_one_annotator_labels_undoes_and_finishes(apps: Apps, home: Path) -> None:
    workspace = str(home / "workspace.db")
    samples = str(samples_folder())
    command(home, "judge", samples, "--judge", "rules", "--rules", "all", "--workspace", workspace)
    arguments = (samples, "--workspace", workspace, "--annotator", "alice")
    with apps.terminal(*arguments, home=home, columns=80, rows=24) as terminal:
        open_trace(terminal)
        terminal.until(r"wait for an answer")

        # Two keys label the span under the cursor.
        terminal.press("down", "1", "3")
        terminal.until(lambda _: marks_of_span(terminal, 2) == "1.3 ●")
        # A range.
        terminal.press("down", "v", "down", "down", "2", "6")
        terminal.until(lambda _: marks_of_span(terminal, 5) == "2.6 ●")
        assert marks_of_span(terminal, 3) == "2.6 ●"
        assert bars_of_span(terminal, 4) == bars_of_span(terminal, 6) + 1, "the bracket goes on"

        # One key answers a suggestion; the cursor moves to the evidence of the next one.
        terminal.press("]")
        terminal.until(r"Suggestion 1 of (\d)")
        first = cursor_number(terminal)
        terminal.press("a")
        terminal.until(r"Accepted|accepted")
        assert cursor_number(terminal) > first
        terminal.press("x")
        terminal.until(r"[Rr]ejected")

        # Everything is undone and redone.
        terminal.press("u", "u", "u", "u")
        terminal.until(lambda _: cursor_number(terminal) == 2 and not marks_of_span(terminal, 2))
        assert not marks_of_span(terminal, 3)
        terminal.press("u")
        terminal.until(r"Nothing to undo")
        terminal.press("U", "U", "U", "U")
        terminal.press("g")
        terminal.until(
            lambda _: (
                marks_of_span(terminal, 2) == "1.3 ●" and "2.6 ●" in marks_of_span(terminal, 5)
            )
        )

        # Search.
        terminal.press("/", "evidence.md", "enter")
        terminal.until(r"“evidence\.md”: \d+ of \d+")
        match_number = cursor_number(terminal)
        terminal.press("n")
        terminal.until(lambda _: cursor_number(terminal) > match_number)

        # Finish; a dialog asks once about unread spans.
        terminal.press("escape")
        terminal.until(lambda text: "next match" not in text and "n next" not in text)
        terminal.press("D")
        terminal.until(r"of 90 spans read")
        terminal.press("W")
        terminal.until(r"[Ff]inished")
        terminal.press("Q")
        assert terminal.ended() == 0

    with apps.terminal(*arguments, home=home, columns=80, rows=24) as terminal:
        terminal.until(r"1 of 16")
        open_trace(terminal)
        terminal.until(lambda _: marks_of_span(terminal, 2) == "1.3 ●")
        terminal.until(lambda _: "2.6 ●" in marks_of_span(terminal, 5))
        terminal.press("ctrl+q")
        assert terminal.ended() == 0

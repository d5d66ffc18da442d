"""Texts that try to control a terminal, and checks of the output."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tests.terminal.screen import Terminal

TITLE: Final = "\x1b]0;PWNED\x07"
CLIPBOARD: Final = "\x1b]52;c;UFdORUQ=\x07"
LINK: Final = "\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\"
CLEAR: Final = "\x1b[2J\x1b[H\x1bc"
COLOUR: Final = "\x1b[38;5;201;6mHACK"
QUERY: Final = "\x1b[6n\x1b[c\x1bP$qm\x1b\\"
C1: Final = "\x9b2J\x9d0;PWNED\x9c\x90q\x9c"
BIDI: Final = "a\u202eb\u2066c\u2069d\u200fe\u061cf"
HIDDEN: Final = "g\u200bh\U000e0041\ufeffi\u2028j\x00k\x7fl\x08m\rn\x0bo\x0cp"
MARKUP: Final = "[/red] [@click=app.quit]press[/] [bold red]x[/bold red] [link=http://evil]y[/link]"

HOSTILE: Final = " ".join(
    [TITLE, CLIPBOARD, LINK, CLEAR, COLOUR, QUERY, C1, BIDI, HIDDEN, MARKUP, "the end"]
)


def forbidden(raw: bytes) -> list[bytes]:
    """Return the control sequences in output that come from hostile texts."""
    matches = [
        text.encode()
        for text in (
            TITLE,
            CLIPBOARD,
            "\x1b]8;",
            "\x1bc",
            "\x1b[38;5;201;6m",
            "\x1b[6n\x1b[c",
            "\x1bP",
        )
        if text.encode() in raw
    ]
    # The app itself sends only two commands with text: the pointer's shape, and a copied text.
    commands = re.findall(rb"\x1b[\]_^X][^\x07\x1b]{0,40}", raw)
    matches += [c for c in commands if not c.startswith((b"\x1b]22;", b"\x1b]52;c;"))]
    # As UTF-8: C1, bidi controls, invisible characters, tags.
    text = raw.decode("utf-8", "replace")
    hidden = (
        r"[\x80-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
    )
    matches += [match.encode() for match in re.findall(hidden, text)]
    # Single bytes that a terminal without UTF-8 would obey.
    matches += [b"broken UTF-8"] if "\ufffd" in text else []
    matches += re.findall(rb"[\x00-\x06\x0b-\x0c\x0e-\x1a\x1c-\x1f\x7f]", raw)
    return matches


def cell(terminal: Terminal, row: int, column: int) -> str:
    """Return the character of a cell; an empty text for the second half of a wide character."""
    return str(terminal.screen.buffer[row][column].data)


def broken_rows(terminal: Terminal, dialog: str = "") -> list[str]:
    """Return the rows in which a border is not below the one above it.

    Each border is followed from its upper corner down to its lower one. With a ``dialog``, which
    covers other boxes, only the box with this title is checked.
    """
    screen = terminal.screen
    lines = [
        "".join((cell(terminal, row, column) or " ")[0] for column in range(screen.columns))
        for row in range(screen.lines)
    ]
    broken = [] if any(f"╭─ {dialog}" in line for line in lines) else [f"no box {dialog}"]
    for row, line in enumerate(lines):
        corners = [c for c in range(screen.columns) if cell(terminal, row, c) in ("╭", "╮")]
        if dialog:
            left = line.find(f"╭─ {dialog}")
            corners = [c for c in corners if c >= left][:2] if left >= 0 else []
        for column in corners:
            below = row + 1
            while below < screen.lines and cell(terminal, below, column) == "│":
                below += 1
            if below >= screen.lines or cell(terminal, below, column) not in ("╰", "╯"):
                broken.append(f"row {below + 1}, column {column + 1}")
    return broken


def until_whole(terminal: Terminal, dialog: str = "") -> None:
    """Wait until the screen is complete: every border is in its column."""
    try:
        terminal.until(lambda _: not broken_rows(terminal, dialog))
    except AssertionError as error:
        raise AssertionError(f"{broken_rows(terminal, dialog)}\n{terminal.text}") from error


def gone(hidden_text: str) -> Callable[[str], bool]:
    """Return a check that a text has left the screen."""
    return lambda text: hidden_text not in text

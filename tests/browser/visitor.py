"""A user of the app in a browser."""

from __future__ import annotations

import base64
import json
from contextlib import closing
from pathlib import Path
from typing import Final

import pyte

from mast_tui.workspace import Workspace
from tests.browser.chromium import Page

DOOR: Final = "document.querySelector('form button').click()"
ENTER: Final = {"key": "Enter", "text": "\r", "windowsVirtualKeyCode": 13}


class Visitor:
    """A user of a page; ``text`` is what the app has drawn, read from the page's socket."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._seen = len(page.events)
        self._screen = pyte.Screen(200, 100)
        self._stream = pyte.ByteStream(self._screen)

    def enter(self, address: str, name: str, password: str | None = None) -> None:
        """Open the address, and begin under a name, as a team's member with a password."""
        self.page.open(address)
        self.page.value(f"document.querySelector('input[name=name]').value = {name!r}")
        if password is not None:
            field = "document.querySelector('input[name=password]')"
            self.page.value(f"{field}.value = {password!r}")
        self.page.loading(lambda: self.page.value(DOOR))

    @property
    def text(self) -> str:
        """The screen as it is now."""
        for event in self.page.events[self._seen :]:
            if event.get("method") == "Network.webSocketFrameReceived":
                frame = event["params"]["response"]
                if frame["opcode"] == 2:
                    self._stream.feed(base64.b64decode(frame["payloadData"]))
        self._seen = len(self.page.events)
        return "\n".join(self._screen.display)

    def sees(self, words: str) -> None:
        """Wait for a text on the screen."""
        try:
            self.page.until(lambda: words in self.text)
        except AssertionError as error:
            raise AssertionError(f"waited in vain for {words!r} in:\n{self.text}") from error

    def press(self, *keys: str) -> None:
        """Press keys, each a letter, a digit, or Enter."""
        for key in keys:
            known = ENTER if key == "enter" else {"key": key, "text": key}
            self.page.send("Input.dispatchKeyEvent", type="keyDown", **known)
            self.page.send("Input.dispatchKeyEvent", type="keyUp", **known)

    def click(self, words: str) -> None:
        """Click on the first letter of a text."""
        rows = self.text.split("\n")
        row = next(index for index, line in enumerate(rows) if words in line)
        cell = self.page.value(
            "(() => { const box = document.querySelector('.xterm-screen').getBoundingClientRect();"
            "return [box.left, box.top, box.width, box.height] })()"
        )
        columns, lines = self.size()
        at = {
            "x": cell[0] + (rows[row].index(words) + 0.5) * cell[2] / columns,
            "y": cell[1] + (row + 0.5) * cell[3] / lines,
        }
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.page.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def size(self) -> tuple[int, int]:
        """Return the columns and lines that the page has sent to its app last."""
        said = [
            json.loads(event["params"]["response"]["payloadData"])
            for event in self.page.events
            if event.get("method") == "Network.webSocketFrameSent"
        ]
        size = next(about for kind, *about in reversed(said) if kind == "resize")[0]
        return size["width"], size["height"]


def labelled(workspace: Path) -> list[tuple[str, str]]:
    """Return annotators and modes of the labels on disk."""
    with closing(Workspace.open(workspace)) as store:
        return sorted((label.annotator, label.mode) for label in store.labels())

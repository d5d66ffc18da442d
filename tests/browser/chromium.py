"""A headless Chromium that is controlled through a pipe, without network."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.waiting import PATIENCE

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Possible names of the program."""

_OPTIONS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    # No name is looked up and no address is reached but this machine's, whatever a page asks for.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
    "--proxy-server=127.0.0.1:9",
)


def chromium_path() -> str | None:
    """Return the path of the program, None if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """The one page of a browser; ``events`` are those that came so far, by their order."""

    def __init__(self, to_browser: int, from_browser: int, *, offline: bool) -> None:
        self._to, self._from = to_browser, from_browser
        self._kept = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.offline(offline)

    def offline(self, offline: bool) -> None:
        """Take the network away, or give it back."""
        conditions = {"latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        self.send("Network.emulateNetworkConditions", offline=offline, **conditions)

    def send(self, method: str, **params: object) -> dict[str, Any]:
        """Return the browser's answer to a command; fail if it is an error."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._kept:
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([self._from], [], [], left)
            assert ready, f"waited {PATIENCE:g} s for an answer or event of the browser"
            read = os.read(self._from, 1 << 16)
            assert read, "the browser has ended"
            self._kept += read
        message, self._kept = self._kept.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, place: Path | str) -> None:
        """Load a file or an address, and wait until it has loaded with all that belongs to it."""
        address = place if isinstance(place, str) else place.as_uri()
        self.loading(lambda: self.send("Page.navigate", url=address))

    def loading(self, does: Callable[[], object]) -> None:
        """Do what loads a page, and wait until it has loaded with all that belongs to it."""
        before = len(self.events)
        does()
        self.until(
            lambda: any(e.get("method") == "Page.loadEventFired" for e in self.events[before:])
        )

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for events until something holds."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            self.events.append(self._next(deadline))

    def size(self, width: int, height: int = 900, *, phone: bool = False) -> None:
        """Make the window so many CSS pixels large, with the viewport of a phone or a desktop."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def prefer(self, scheme: str) -> None:
        """Ask for ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; fail if it throws."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def said(self) -> list[str]:
        """Return the console messages and errors of the page."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Runtime.consoleAPICalled":
                    found.append(json.dumps(params["args"]))
                case "Runtime.exceptionThrown":
                    found.append(json.dumps(params["exceptionDetails"]))
                case "Log.entryAdded":
                    found.append(params["entry"]["text"])
        return found

    def asked_for(self) -> list[str]:
        """Return the requested addresses."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]


@contextmanager
def browser(program: str, profile: Path, *, offline: bool = True) -> Iterator[Page]:
    """A browser with a new profile in the folder ``profile``; it ends with the block.

    What is not ``offline`` reaches this machine, and no other.
    """
    read_here, write_there = os.pipe()
    read_there, write_here = os.pipe()
    # The browser reads commands from 3 and answers on 4.
    pipes = f'exec "$@" 3</dev/fd/{read_there} 4>/dev/fd/{write_there}'

    process = subprocess.Popen(
        ["sh", "-c", pipes, "sh", program, *_OPTIONS, f"--user-data-dir={profile}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(read_there, write_there),
    )
    os.close(read_there)
    os.close(write_there)
    try:
        yield Page(write_here, read_here, offline=offline)
    finally:
        # Where nobody can tell it anything any more, it ends with all that it has started.
        os.close(write_here)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(read_here)

"""Signals that end the app: the terminal is restored, the workspace closed, the exit code is 128 +
n.

The event loop ends the app as a key would. If the loop cannot (it is stuck, or a terminal that is
gone accepts no output), a second signal or a few seconds end it at once. A call into C that never
returns can only be killed.

Checked against Textual 8.2: ``App.exit`` works under any dialog, and the driver restores the
terminal before ``run_async`` returns. Threads are not waited for: they write one transaction at a
time, and unfinished work is requested again at the next start.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, NoReturn

from textual.app import App

from mast_tui.ui.crashes import log_error
from mast_tui.ui.options import in_browser
from mast_tui.ui.textual_internals import (
    restore_terminal,
    terminal_released,
    writes_to_terminal,
)

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

PATIENCE: Final = 5.0
"""Seconds for the app to end and close its workspace."""

AFTER_ANOTHER: Final = 1.0
"""Seconds that remain after a second signal: a shell that ends sends SIGHUP twice."""

CHECK_TERMINAL_EVERY: Final = 1.0
"""Seconds between two checks that the terminal, or the server of a browser, still exists.

Not every process receives a SIGHUP, and Textual would read from a missing terminal in a loop.
"""


class EndingSignals:
    """Runs the app and ends it on a signal; ``number`` is the signal that arrived.

    Args:
        app: The app.
        close: Closes the workspace; called at the end.
    """

    def __init__(self, app: App[Any], close: Callable[[], object]) -> None:
        self.number: int | None = None
        self._app = app
        self._close = close
        self._restored = False

    async def run(self) -> None:
        """Run the app in the loop of the main thread; end the process if a signal ended it."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._end)
            # Called first, even if the loop is stuck; the handler of the loop is called too.
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, self._on_signal)
        threading.excepthook = self._on_thread_error
        if sys.stdin is not None and (sys.stdin.isatty() or in_browser(os.environ)):
            self._check_terminal(loop, sys.stdin.fileno())
        await self._app.run_async()
        self._restored = True
        if self.number is not None:
            self.leave(128 + self.number)

    def leave(self, code: int) -> NoReturn:
        """Close the workspace and end the process, regardless of its threads."""
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            self._close_safely()
        finally:
            os._exit(code)

    def _close_safely(self) -> None:
        """Close the workspace, and log an error of that."""
        try:
            self._close()
        finally:
            error = sys.exception()
            if error is not None:
                log_error(error)

    def _end(self) -> None:
        if self.number is not None:
            self._app.exit(return_code=128 + self.number)

    def _check_terminal(self, loop: asyncio.AbstractEventLoop, terminal: int) -> None:
        gone = select.poll()
        gone.register(terminal, 0)  # a hang-up is always reported
        if gone.poll(0):
            os.kill(os.getpid(), signal.SIGHUP)
        else:
            loop.call_later(CHECK_TERMINAL_EVERY, self._check_terminal, loop, terminal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        """Note the first signal and start the time limit; end the process when that is over."""
        if number == signal.SIGALRM:
            if not self._restored:
                restore_terminal(self._app)
            os._exit(1 if self.number is None else 128 + self.number)
        elif self.number is None:
            self.number = number
            # A closed terminal sends SIGCONT after SIGHUP, and Textual would start again.
            signal.signal(signal.SIGCONT, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            if terminal_released(self._app) and not self._restored:
                # The app is suspended: the terminal belongs to another program.
                self._restored = True
                self.leave(128 + number)
        else:
            left, _every = signal.getitimer(signal.ITIMER_REAL)
            signal.setitimer(signal.ITIMER_REAL, min(left or AFTER_ANOTHER, AFTER_ANOTHER))

    def _on_thread_error(self, broken: threading.ExceptHookArgs) -> None:
        if writes_to_terminal(broken.thread):
            # The terminal accepts no more output, which would pile up until the app stops.
            os.kill(os.getpid(), signal.SIGHUP)
        elif broken.exc_value is not None:
            log_error(broken.exc_value)

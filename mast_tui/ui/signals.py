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
    """Runs the app and ends it on a signal.

    Attributes:
        number: The signal that has arrived first; None before.

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
        """Run the app in the loop of the main thread; if a signal has ended it, end the process."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._exit_app)
            # Called before the handler of the loop, even if the loop is stuck.
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
        """Close the workspace; if that fails, log the error before it is raised."""
        try:
            self._close()
        finally:
            error = sys.exception()
            if error is not None:
                log_error(error)

    def _exit_app(self) -> None:
        if self.number is not None:
            self._app.exit(return_code=128 + self.number)

    def _check_terminal(self, loop: asyncio.AbstractEventLoop, terminal: int) -> None:
        """Send this process a SIGHUP if the terminal (a descriptor) is gone; else check later."""
        poll = select.poll()
        poll.register(terminal, 0)  # a hang-up is always reported
        if poll.poll(0):
            os.kill(os.getpid(), signal.SIGHUP)
        else:
            loop.call_later(CHECK_TERMINAL_EVERY, self._check_terminal, loop, terminal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        """Handle a signal.

        - The first ending signal is recorded, and starts the time limit ``PATIENCE``.
        - A further ending signal shortens the time limit to ``AFTER_ANOTHER``.
        - SIGALRM, the end of the time limit, restores the terminal and ends the process.
        """
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
            seconds_left, _interval = signal.getitimer(signal.ITIMER_REAL)
            seconds_left = min(seconds_left or AFTER_ANOTHER, AFTER_ANOTHER)
            signal.setitimer(signal.ITIMER_REAL, seconds_left)

    def _on_thread_error(self, arguments: threading.ExceptHookArgs) -> None:
        """Log the error of a thread; end the app if the thread writes to the terminal."""
        if writes_to_terminal(arguments.thread):
            # The terminal accepts no more output, which would pile up until the app stops.
            os.kill(os.getpid(), signal.SIGHUP)
        elif arguments.exc_value is not None:
            log_error(arguments.exc_value)

"""Signals that end the app: the terminal as it was before, the workspace closed, 128 + n as code.

The event loop ends the app as a key would. Where the loop does not get to that (it is stuck, or a
terminal that has gone takes no more output) a second signal, or a few seconds, end it at once. A
call into C that never gives the interpreter back can only be killed.

Checked against Textual 8.2: ``App.exit`` works under any dialog, and the driver restores the
terminal before ``run_async`` returns. Threads are not waited for: what they write is one
transaction at a time, and whatever is under way is asked for again the next time.
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
"""Seconds for the app to end in good order, its workspace closed."""

AFTER_ANOTHER: Final = 1.0
"""Seconds that are left when another signal comes: a shell that goes sends its SIGHUP twice."""

LOOK_EVERY: Final = 1.0
"""Seconds between looks whether the terminal is still there, or the server of a browser: not
everybody is sent a SIGHUP, and Textual would read from one that has gone over and over."""


class EndingSignals:
    """Runs the app, and ends it on a signal; ``number`` is the one that has come.

    Args:
        app: The app that is run.
        close: Puts away what is open, such as the workspace; called on the way out.
    """

    def __init__(self, app: App[Any], close: Callable[[], object]) -> None:
        self.number: int | None = None
        self._app = app
        self._close = close
        self._restored = False

    async def run(self) -> None:
        """Run the app in the main thread's loop; where a signal has ended it, so is the process."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._end)
            # Comes first, and also where the loop is stuck; the loop hears of it all the same.
            signal.signal(number, self._came)
        signal.signal(signal.SIGALRM, self._came)
        threading.excepthook = self._thread_broke
        if sys.stdin is not None and (sys.stdin.isatty() or in_browser(os.environ)):
            self._look_for_terminal(loop, sys.stdin.fileno())
        await self._app.run_async()
        self._restored = True
        if self.number is not None:
            self.leave(128 + self.number)

    def leave(self, code: int) -> NoReturn:
        """End the process, whatever its threads are at, once the terminal is restored."""
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            self._put_away()
        finally:
            os._exit(code)

    def _put_away(self) -> None:
        try:
            self._close()
        finally:
            error = sys.exception()
            if error is not None:
                log_error(error)

    def _end(self) -> None:
        if self.number is not None:
            self._app.exit(return_code=128 + self.number)

    def _look_for_terminal(self, loop: asyncio.AbstractEventLoop, terminal: int) -> None:
        gone = select.poll()
        gone.register(terminal, 0)  # that it has gone is told unasked
        if gone.poll(0):
            os.kill(os.getpid(), signal.SIGHUP)
        else:
            loop.call_later(LOOK_EVERY, self._look_for_terminal, loop, terminal)

    def _came(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGALRM:
            if not self._restored:
                restore_terminal(self._app)
            os._exit(1 if self.number is None else 128 + self.number)
        elif self.number is None:
            self.number = number
            # A terminal that has gone sends this behind SIGHUP, and Textual would begin anew.
            signal.signal(signal.SIGCONT, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            if terminal_released(self._app) and not self._restored:
                # It is suspended: the terminal is somebody else's.
                self._restored = True
                self.leave(128 + number)
        else:
            left, _every = signal.getitimer(signal.ITIMER_REAL)
            signal.setitimer(signal.ITIMER_REAL, min(left or AFTER_ANOTHER, AFTER_ANOTHER))

    def _thread_broke(self, broken: threading.ExceptHookArgs) -> None:
        if writes_to_terminal(broken.thread):
            # The terminal takes no more output, and what is written would pile up until all stops.
            os.kill(os.getpid(), signal.SIGHUP)
        elif broken.exc_value is not None:
            log_error(broken.exc_value)

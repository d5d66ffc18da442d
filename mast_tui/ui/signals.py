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
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final, NoReturn

from textual.app import App
from textual.drivers._writer_thread import WriterThread

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

PATIENCE: Final = 5.0
"""Seconds for the app to end in good order, its workspace closed."""

AFTER_ANOTHER: Final = 1.0
"""Seconds that are left when another signal comes: a shell that goes sends its SIGHUP twice."""

LOOK_EVERY: Final = 1.0
"""Seconds between looks whether the terminal is still there: not everybody is sent a SIGHUP, and
Textual would read from one that has gone over and over."""

RESTORED: Final = (
    b"\x1b[?2026l"  # a frame that is held back is let go
    b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # no mouse
    b"\x1b[?1004l\x1b[?2004l\x1b[?2048l"  # no focus, no marked pastes, no sizes
    b"\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h"  # lines wrap, plain keys, the screen of before, a cursor
)
"""What Textual writes to a terminal when it leaves, in one piece."""


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
        if sys.stdin is not None and sys.stdin.isatty():
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
                from mast_tui.ui.crashes import told

                told(error)

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
            self._restore()
            os._exit(1 if self.number is None else 128 + self.number)
        elif self.number is None:
            self.number = number
            # A terminal that has gone sends this behind SIGHUP, and Textual would begin anew.
            signal.signal(signal.SIGCONT, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            if self._is_suspended:  # the terminal is somebody else's
                self._restored = True
                self.leave(128 + number)
        else:
            left, _every = signal.getitimer(signal.ITIMER_REAL)
            signal.setitimer(signal.ITIMER_REAL, min(left or AFTER_ANOTHER, AFTER_ANOTHER))

    @property
    def _is_suspended(self) -> bool:
        """Whether Textual has given the terminal back to the shell; or has lost it."""
        writer = getattr(self._app._driver, "_writer_thread", None)
        return writer is not None and not writer.is_alive() and not self._restored

    def _restore(self) -> None:
        """Restore the terminal past Textual, whose loop does not do it."""
        driver: Any = self._app._driver
        if self._restored or getattr(driver, "_writer_thread", None) is None:
            return
        if driver.attrs_before is not None:
            with suppress(termios.error):
                termios.tcsetattr(driver.fileno, termios.TCSANOW, driver.attrs_before)
        with suppress(OSError):
            output = sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
            if select.select([], [output], [], 0)[1]:  # one that is held takes nothing
                os.write(output, RESTORED)

    def _thread_broke(self, broken: threading.ExceptHookArgs) -> None:
        if isinstance(broken.thread, WriterThread):
            # The terminal takes no more output, and what is written would pile up until all stops.
            os.kill(os.getpid(), signal.SIGHUP)
        elif broken.exc_value is not None:
            from mast_tui.ui.crashes import told

            told(broken.exc_value)

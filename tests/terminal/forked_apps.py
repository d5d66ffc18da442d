"""A program that starts the app over and over, each time in a process and a terminal of its own.

``python -m tests.terminal.forked_apps FD``: for every line of JSON on the Unix socket FD (folder,
rows, columns, words) it forks, lets the child run ``mast-tui`` with those words in the folder, and
sends back the child's process id with the file descriptor of its terminal. For a process id it
waits for that child's end, and sends back the exit code. What the app needs is imported before, so
that ten starts take no longer than their work.
"""

from __future__ import annotations

import array
import fcntl
import gc
import importlib
import json
import os
import pty
import socket
import sys
import termios
from contextlib import suppress
from typing import Final

from mast_tui.cli import main as mast_tui_main

USED: Final = (
    "mast_tui.cli.start",
    "mast_tui.session",
    "mast_tui.ui.app",
    "mast_tui.ui.services.open_workspace",
    "mast_tui.ui.annotate.screen",
    "mast_tui.ui.trace_view.first_spans",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "textual.drivers.linux_driver",
)
"""Most of the modules that the app imports."""


def child(folder: str, rows: int, columns: int, words: list[str]) -> None:
    """Run the app in the terminal that is there."""
    os.environ["HOME"] = folder
    os.chdir(folder)
    fcntl.ioctl(0, termios.TIOCSWINSZ, array.array("H", [rows, columns, 0, 0]))
    code = 70
    try:
        mast_tui_main(words)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


def main(descriptor: int) -> None:
    """Start what is asked for until nobody asks any more."""
    for name in USED:
        importlib.import_module(name)
    gc.freeze()
    with socket.socket(fileno=descriptor) as asked, asked.makefile() as lines:
        for line in lines:
            order = json.loads(line)
            if isinstance(order, int):
                code = os.waitstatus_to_exitcode(os.waitpid(order, 0)[1])
                asked.sendall(str(code).encode())
                continue
            folder, rows, columns, words = order
            pid, terminal = pty.fork()
            if pid == 0:
                asked.close()
                child(folder, rows, columns, words)
            socket.send_fds(asked, [str(pid).encode()], [terminal])
            os.close(terminal)
    with suppress(ChildProcessError):  # each was killed by whoever asked for it
        while True:
            os.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))

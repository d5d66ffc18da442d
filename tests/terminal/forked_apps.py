"""A program that starts the app many times, each time in a new process with its own terminal.

``python -m tests.terminal.forked_apps FD``: for every line of JSON on the Unix socket FD (folder,
rows, columns, arguments) it forks a child, which runs ``mast-tui`` with these arguments in the
folder, and answers with the child's process id and the file descriptor of its terminal. For a
process id it waits for the child's end, and answers with the exit code. The modules of the app are
imported before, so that a start costs no imports.
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


def child(folder: str, rows: int, columns: int, arguments: list[str]) -> None:
    """Run the app in the terminal of this process."""
    os.environ["HOME"] = folder
    os.chdir(folder)
    fcntl.ioctl(0, termios.TIOCSWINSZ, array.array("H", [rows, columns, 0, 0]))
    code = 70
    try:
        mast_tui_main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


def main(descriptor: int) -> None:
    """Answer requests until the socket is closed."""
    for name in USED:
        importlib.import_module(name)
    gc.freeze()
    with socket.socket(fileno=descriptor) as connection, connection.makefile() as lines:
        for line in lines:
            request = json.loads(line)
            if isinstance(request, int):
                code = os.waitstatus_to_exitcode(os.waitpid(request, 0)[1])
                connection.sendall(str(code).encode())
                continue
            folder, rows, columns, arguments = request
            pid, terminal = pty.fork()
            if pid == 0:
                connection.close()
                child(folder, rows, columns, arguments)
            socket.send_fds(connection, [str(pid).encode()], [terminal])
            os.close(terminal)
    with suppress(ChildProcessError):  # the test has killed every child
        while True:
            os.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))

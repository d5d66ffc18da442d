"""A program that runs the command line over and over, each time in a process of its own.

``python -m tests.judges.llm.forked_runs FOLDER``: for every line of JSON words on stdin it forks,
prints the child's process id, lets the child run ``mast-tui`` with those words in the folder, and
prints how it ended. The first line it runs itself, so that everything is imported once and many
runs take no longer than their work.
"""

from __future__ import annotations

import json
import os
import sys

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run


def into_files() -> None:
    """Redirect output into files of the folder."""
    for number, name in ((1, "out.txt"), (2, "err.txt")):
        os.dup2(os.open(name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644), number)


def child(words: list[str]) -> None:
    into_files()
    code = 70
    try:
        code = run(split_command(words))
    finally:
        sys.stdout.flush()
        os._exit(code)


def main(folder: str) -> None:
    """Run the commands on stdin."""
    os.chdir(folder)
    told = os.fdopen(os.dup(1), "w")
    into_files()
    code = run(split_command(json.loads(sys.stdin.readline())))
    print(code, file=told, flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            child(json.loads(line))
        print(pid, file=told, flush=True)
        _, ended = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(ended), file=told, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

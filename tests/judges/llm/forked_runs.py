"""A program that runs the command line repeatedly, each time in a process of its own.

``python -m tests.judges.llm.forked_runs FOLDER``: for every line of JSON arguments on stdin it
forks, prints the child's process id, lets the child run ``mast-tui`` with the arguments in the
folder, and prints its exit code. It runs the first line itself, so that everything is imported
once and many runs take no longer than their work.
"""

from __future__ import annotations

import json
import os
import sys

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run


def redirect_output() -> None:
    """Redirect output into files of the folder."""
    for number, name in ((1, "out.txt"), (2, "err.txt")):
        os.dup2(os.open(name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644), number)


def run_child(arguments: list[str]) -> None:
    redirect_output()
    code = 70
    try:
        code = run(split_command(arguments))
    finally:
        sys.stdout.flush()
        os._exit(code)


def main(folder: str) -> None:
    os.chdir(folder)
    report = os.fdopen(os.dup(1), "w")
    redirect_output()
    code = run(split_command(json.loads(sys.stdin.readline())))
    print(code, file=report, flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            run_child(json.loads(line))
        print(pid, file=report, flush=True)
        _, wait_status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(wait_status), file=report, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

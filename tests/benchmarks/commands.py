"""Commands measured in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Took:
    """The cost of a command: seconds by the clock and of processors, and peak megabytes.

    ``output`` is what the command printed.
    """

    wall: float
    processor: float
    megabytes: float
    output: str


def timed(*arguments: str) -> Took:
    """Run ``mast-tui`` with these arguments; exit if it fails."""
    plain = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with TemporaryFile("w+") as output:
        begun = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "mast_tui", *arguments],
            stdout=output,
            env=plain | {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": os.devnull},
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode:
        sys.exit(f"{' '.join(arguments)}: exit code {process.returncode}")
    return Took(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text)

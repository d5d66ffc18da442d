"""Time and memory of an import of 20,000 traces × 14 verdicts; run by hand.

    .venv/bin/python -m tests.benchmarks.import_speed [--traces N] [--repeats N]

The files are made from a seed: verdicts of one person on all modes of each trace, as csv-long and
as csv-wide. Each run is the whole command in a process of its own, into an empty workspace.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from mast_tui.taxonomy.loader import load_mast
from tests.benchmarks.commands import Took, timed

TRACES: Final = 20_000
SECONDS: Final = 15
MEGABYTES: Final = 200

_VALUES: Final = {"1": "present", "0": "absent", "?": "unsure"}
_ODDS: Final = (2, 7, 1)


def write_files(folder: Path, traces: int) -> dict[str, Path]:
    """Write the same verdicts in both formats; returns the files by format."""
    codes = [mode.code for mode in load_mast().modes]
    chance = random.Random(7)
    cells = [chance.choices(tuple(_VALUES), _ODDS, k=len(codes)) for _ in range(traces)]
    names = [f"trace-{number:06d}" for number in range(traces)]

    def long() -> Iterator[str]:
        yield "trace_id,annotator,mode,value"
        for name, row in zip(names, cells, strict=True):
            for code, cell in zip(codes, row, strict=True):
                yield f"{name},ann,{code},{_VALUES[cell]}"
            yield f"{name},ann,,finished"

    def wide() -> Iterator[str]:
        yield f"trace_id,annotator,{','.join(codes)}"
        for name, row in zip(names, cells, strict=True):
            yield f"{name},ann,{','.join(row)}"

    files = {form: folder / f"{form}.csv" for form in ("csv-long", "csv-wide")}
    for form, lines in (("csv-long", long()), ("csv-wide", wide())):
        files[form].write_text("".join(line + "\n" for line in lines))
    return files


def take(file_format: str, file: Path) -> Took:
    """Import a file into an empty workspace."""
    with tempfile.TemporaryDirectory(prefix="mast-tui-import-") as folder:
        workspace = f"{folder}/workspace.db"
        arguments = ("import", "--format", file_format, "--allow-new", str(file))
        return timed(*arguments, "--workspace", workspace)


def main() -> None:
    """Make the files, import each in turns, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=TRACES)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), options.traces)
        few = write_files(Path(tempfile.mkdtemp(dir=folder)), 1)["csv-wide"]
        take("csv-wide", few)  # compiles the modules
        for form, file in files.items():
            runs = [take(form, file) for _ in range(options.repeats)]
            print(
                f"{form}, {options.traces} traces: {median(run.wall for run in runs):.1f} s "
                f"(at most {SECONDS}), {median(run.processor for run in runs):.1f} s at work "
                f"({', '.join(f'{run.processor:.1f}' for run in runs)}), "
                f"{max(run.megabytes for run in runs):.0f} MB (at most {MEGABYTES})",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""Speed of the app with big traces: starts, memory, keys, index, labels, search, libraries.

Run by hand on an idle machine:

    .venv/bin/python tests/benchmarks/big_traces.py [--quick] [--only NAME …]

The data is made from a seed at the first run and kept in the user's cache folder (2 GB; ``--data``
names another). The tables are printed as Markdown. ``--quick`` repeats less and uses at most
100 MB. A step that takes longer than ``--timeout`` is given up.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

from tests.benchmarks import cursor_moves, label_commits, peak_memory, start_measures, text_search
from tests.benchmarks.data import Data
from tests.benchmarks.setting import Setting, attempt
from tests.benchmarks.table import Row, machine, section

MEASURES: Final[Mapping[str, tuple[str, Callable[[Setting], list[Row]]]]] = {
    "start": ("From the start to the first spans", start_measures.measure_first_spans),
    "documents": ("A document that must be read whole", start_measures.measure_documents),
    "memory": ("Memory while paging", peak_memory.measure),
    "keys": ("Cursor moves", cursor_moves.measure),
    "index": ("The whole index in the background", start_measures.measure_index),
    "labels": ("Labels", label_commits.measure),
    "search": ("Search of a rare word", text_search.measure),
    "library": ("A big library, opened again", start_measures.measure_library),
}


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, and only 100 MB")
    parser.add_argument("--only", nargs="+", choices=MEASURES, metavar="NAME", help="these alone")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the data is kept")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds (default: 120)")
    options = parser.parse_args()
    setting = Setting(Data(options.data), options.quick, options.timeout)
    print(machine(), flush=True)
    for name in options.only or MEASURES:
        title, measure = MEASURES[name]
        begun = perf_counter()
        rows = attempt(title, partial(measure, setting))
        print(section(title, rows), flush=True)
        print(f"{name}: {perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

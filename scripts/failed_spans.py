"""Print which tool results count as failed in sets of traces, by how their runs ended.

    python scripts/failed_spans.py FOLDER … [--samples N] [--seed N]

For each folder and outcome it prints the number of results, the number that failed by a field of
the format, the number that failed by their text alone (``traces/result_status.py``), and samples of
the latter. A rule that matches successful results shows in successful runs, and in the last lines:
results that succeeded by a field of the format and failed by their text.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from mast_tui.safe_text import one_line
from mast_tui.traces.library import read_fully, scan
from mast_tui.traces.model import SpanKind, SpanStatus, Trace
from mast_tui.traces.result_status import status_of_message, status_of_result

_LONGEST_SAMPLE = 110


@dataclass
class FailedResults:
    """The tool results of the runs in one folder with one outcome."""

    results: int = 0
    failed: int = 0
    by_text: list[str] = field(default_factory=list)


def main() -> None:
    """Read the folders and print the counts and samples."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--samples", type=int, default=5, help="how many to show of each")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    results: dict[tuple[str, str], FailedResults] = defaultdict(FailedResults)
    denied: list[str] = []
    for folder in chosen.folders:
        for report in scan([folder]):
            inside = report.path.relative_to(folder).parts
            name = f"{folder.name}/{inside[0]}" if len(inside) > 1 else str(folder.name)
            for trace in report.traces:
                read_fully(trace)
                count(trace, results[name, trace.meta.outcome.value], denied)
    draw = random.Random(chosen.seed)
    for (name, outcome), counts in sorted(results.items()):
        if not counts.results:
            continue
        share = f"{counts.failed / counts.results:.0%}"
        print(f"{name} {outcome}: {counts.failed} of {counts.results} failed ({share}), ", end="")
        print(f"{len(counts.by_text)} by their text")
        for line in draw.sample(counts.by_text, min(chosen.samples, len(counts.by_text))):
            print(f"    {line}")
    print(f"stated to have gone well, and a failure by their text: {len(denied)}")
    for line in denied:
        print(f"    {line}")


def count(trace: Trace, counts: FailedResults, denied: list[str]) -> None:
    """Count the results of a trace, with the messages of terminals that take part as agents.

    Args:
        trace: The trace.
        counts: The counts to raise.
        denied: The lines of results that failed by their text but not by their format, to extend.
    """
    for index in range(len(trace)):
        span = trace.span(index)
        text = trace.text(index)
        is_result = span.kind is SpanKind.TOOL_RESULT
        by_text = status_of_result(text) if is_result else status_of_message(span.agent, text)
        if not is_result and by_text is SpanStatus.UNKNOWN:
            continue
        line = f"{trace.path.name} {span.place} {span.name or span.agent} | "
        line += one_line(text[:_LONGEST_SAMPLE])
        if len(text) > _LONGEST_SAMPLE:
            line += f" … {one_line(text[-_LONGEST_SAMPLE // 2 :])}"
        counts.results += 1
        counts.failed += span.status is SpanStatus.ERROR
        if by_text is SpanStatus.ERROR and span.status is SpanStatus.ERROR:
            counts.by_text.append(line)
        elif by_text is SpanStatus.ERROR and span.status is SpanStatus.OK:
            denied.append(line)


if __name__ == "__main__":
    main()

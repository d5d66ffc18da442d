"""``mast-tui compare``: align two runs of one task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import hides_outcomes
from mast_tui.cli.shared.common import print_json, print_line, print_table
from mast_tui.columns import TableColumn
from mast_tui.counts import counted
from mast_tui.traces.alignment import Likeness, RunAlignment, align, sentences
from mast_tui.traces.file_places import missing_file_text
from mast_tui.traces.io.named_paths import file_or_record, only_records
from mast_tui.traces.io.remote import is_url, trace_path
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace

CONTEXT_STEPS: Final = 4
"""The number of steps to show before and after the divergence."""

_CELL_WIDTH: Final = 60
_SIGNS: Final = {
    Likeness.SAME: "=",
    Likeness.CHANGED: "~",
    Likeness.OTHER: "≠",
    Likeness.ONLY_A: "<",
    Likeness.ONLY_B: ">",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    """The options of ``mast-tui compare``."""

    a: str = options.argument(metavar="A")
    b: str = options.argument(metavar="B")
    everything: bool = options.option(
        "--all", is_flag=True, help="Print every step, not only those around the divergence."
    )
    common: CommonOptions = options.common(taxonomy=options.NO_LABELS)
    as_json: bool = options.as_json()


@click.command()
@options.takes(CompareRequest)
def compare_command(request: CompareRequest) -> None:
    """Align two runs side by side, and show where they diverge.

    A and B are traces, such as a failed and a successful run of one task. FILE#1 is the second
    trace of a file, as the library names it.

    Example: mast-tui compare failed.jsonl succeeded.jsonl
    """
    hide_outcomes = hides_outcomes(request.common)
    trace_a = _read_trace(request.a)
    trace_b = _read_trace(request.b)
    alignment = align(trace_a, trace_b)
    if request.as_json:
        print_json(_alignment_json(trace_a, trace_b, alignment, hide_outcomes))
        return
    for name, path, trace in (("A", request.a, trace_a), ("B", request.b, trace_b)):
        outcome = "" if hide_outcomes else f", {trace.meta.outcome.value}"
        print_line(f"{name}  {path}: {counted(len(trace), 'span')}{outcome}")
    click.echo()
    click.echo("\n".join(sentences(alignment)))
    click.echo()
    columns: tuple[TableColumn[int], ...] = (
        TableColumn("A", lambda step: _step_cell(trace_a, alignment.pairs[step].a)),
        TableColumn("", lambda step: _step_sign(alignment, step)),
        TableColumn("B", lambda step: _step_cell(trace_b, alignment.pairs[step].b)),
    )
    print_table(columns, _steps_to_print(alignment, request.everything))


def _read_trace(name: str) -> Trace:
    """Read the whole trace of a path, URL or ``FILE#N``.

    Raises:
        click.ClickException: The file is missing, has no trace, or has several.
    """
    address, separator, number = name.rpartition("#")
    # ``file_or_record`` handles the number after a file name, but not after a URL.
    record = int(number) if is_url(name) and separator and number.isdecimal() else None
    if record is not None:
        path = trace_path(address)
    else:
        path = trace_path(name) if is_url(name) else file_or_record(name)
    if not path.exists():
        raise click.ClickException(
            f"{path}: {missing_file_text(path)}; give a trace, or FILE#1 for the second trace of a "
            "file"
        )
    report = read_file(path, named=True)
    if record is not None:
        report = only_records(report, (record,))
    if report.failed is not None or report.skipped is not None:
        raise click.ClickException(f"{path}: {report.failed or report.skipped}")
    if len(report.traces) > 1:
        last = len(report.traces) - 1
        raise click.ClickException(
            f"{path}: contains {last + 1} traces; give one of them, {path}#0 to #{last}"
        )
    trace = report.traces[0]
    read_fully(trace)
    return trace


def _steps_to_print(alignment: RunAlignment, everything: bool) -> range:
    """Return the steps to print: all, or those around the divergence."""
    if everything:
        return range(len(alignment.pairs))
    middle = alignment.fork
    if middle is None:
        middle = alignment.first_difference or 0  # identical runs are printed from their start
    return range(
        max(0, middle - CONTEXT_STEPS), min(len(alignment.pairs), middle + CONTEXT_STEPS + 1)
    )


def _step_sign(alignment: RunAlignment, step: int) -> str:
    mark = "▶" if step == alignment.fork else " "
    return f"{mark}{_SIGNS[alignment.pairs[step].likeness]}"


def _step_cell(trace: Trace, index: int | None) -> str:
    if index is None:
        return ""
    span = trace.span(index)
    kind = span.name or span.kind.value.replace("_", " ")
    text = f"#{index + 1} {kind}: {span.preview}"
    return text if len(text) <= _CELL_WIDTH else f"{text[: _CELL_WIDTH - 1]}…"


def _alignment_json(
    trace_a: Trace, trace_b: Trace, alignment: RunAlignment, hide_outcomes: bool
) -> dict[str, object]:
    """Return the JSON document of a comparison of two runs.

    A place is a row of the alignment: a pair of steps, or a step of one run. ``alike`` counts all
    actions and the equal ones, before the fork and from it on.
    """

    def step_json(step: int | None) -> object:
        if step is None:
            return None
        pair = alignment.pairs[step]
        return {"place": step, "a": pair.a, "b": pair.b}

    alike_parts = {}
    if alignment.fork is not None:
        alike_parts = {
            "before": alignment.count_actions(0, alignment.fork),
            "behind": alignment.count_actions(alignment.fork),
        }
    return {
        "a": _trace_json(trace_a, hide_outcomes),
        "b": _trace_json(trace_b, hide_outcomes),
        "first": step_json(alignment.first_difference),
        "fork": step_json(alignment.fork),
        "cause": step_json(alignment.cause),
        "alike": {
            name: {"same": same_count, "actions": action_count}
            for name, (same_count, action_count) in alike_parts.items()
        },
        "places": [
            {"a": pair.a, "b": pair.b, "likeness": pair.likeness.value, "action": is_action}
            for pair, is_action in zip(alignment.pairs, alignment.action_flags, strict=True)
        ],
    }


def _trace_json(trace: Trace, hide_outcomes: bool) -> dict[str, object]:
    return {
        "id": trace.identity.trace_id,
        "path": str(trace.path),
        "spans": len(trace),
        "outcome": None if hide_outcomes else trace.meta.outcome.value,
    }

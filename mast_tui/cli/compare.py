"""``mast-tui compare``: two runs of one task side by side, and where they part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import hides_outcomes
from mast_tui.cli.shared.common import print_json, print_table
from mast_tui.columns import TableColumn
from mast_tui.counts import counted
from mast_tui.traces.alignment import Alignment, Likeness, align, sentences
from mast_tui.traces.io.named_paths import file_or_record, only_records
from mast_tui.traces.io.remote import is_url, trace_path
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace

AROUND: Final = 4
"""Places shown before and after the one where two runs part."""

_SHOWN: Final = 60
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
        "--all", is_flag=True, help="Every step, not only where they part."
    )
    common: CommonOptions = options.common(taxonomy=options.NO_LABELS)
    as_json: bool = options.as_json()


@click.command()
@options.takes(CompareRequest)
def compare_command(request: CompareRequest) -> None:
    """Put two runs side by side, and say where they part.

    A and B are traces, such as a failed and a successful run of one task. FILE#1 is the second
    trace of a file, as the library names it.
    """
    veil = hides_outcomes(request.common)
    one, other = _trace(request.a), _trace(request.b)
    alignment = align(one, other)
    if request.as_json:
        print_json(_document(one, other, alignment, veil))
        return
    for name, path, trace in (("A", request.a, one), ("B", request.b, other)):
        outcome = "" if veil else f", {trace.meta.outcome.value}"
        click.echo(f"{name}  {path}: {counted(len(trace), 'span')}{outcome}")
    click.echo()
    click.echo("\n".join(sentences(alignment)))
    click.echo()
    columns: tuple[TableColumn[int], ...] = (
        TableColumn("A", lambda step: _cell(one, alignment.pairs[step].a)),
        TableColumn("", lambda step: _sign(alignment, step)),
        TableColumn("B", lambda step: _cell(other, alignment.pairs[step].b)),
    )
    print_table(columns, _steps(alignment, request.everything))


def _trace(named: str) -> Trace:
    """Return the trace that is named, read to its end."""
    address, sign, number = named.rpartition("#")
    record = int(number) if is_url(named) and sign and number.isdecimal() else None
    if record is not None:
        path = trace_path(address)
    else:
        path = trace_path(named) if is_url(named) else file_or_record(named)
    if not path.exists():
        raise click.ClickException(f"{path}: no such file; name a trace, or FILE#1 for its second")
    report = read_file(path, named=True)
    if record is not None:
        report = only_records(report, (record,))
    if report.failed is not None or report.skipped is not None:
        raise click.ClickException(f"{path}: {report.failed or report.skipped}")
    if len(report.traces) > 1:
        last = len(report.traces) - 1
        raise click.ClickException(
            f"{path}: holds {last + 1} traces; name one of them, {path}#0 to #{last}"
        )
    trace = report.traces[0]
    read_fully(trace)
    return trace


def _steps(alignment: Alignment, everything: bool) -> range:
    """Return the steps to print: all, or those around the one where the runs part."""
    if everything:
        return range(len(alignment.pairs))
    middle = alignment.fork if alignment.fork is not None else alignment.first or 0
    return range(max(0, middle - AROUND), min(len(alignment.pairs), middle + AROUND + 1))


def _sign(alignment: Alignment, step: int) -> str:
    mark = "▶" if step == alignment.fork else " "
    return f"{mark}{_SIGNS[alignment.pairs[step].likeness]}"


def _cell(trace: Trace, index: int | None) -> str:
    if index is None:
        return ""
    span = trace.span(index)
    kind = span.name or span.kind.value.replace("_", " ")
    words = f"#{index + 1} {kind}: {span.preview}"
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"


def _document(one: Trace, other: Trace, found: Alignment, veiled: bool) -> dict[str, object]:
    def place(at: int | None) -> object:
        if at is None:
            return None
        pair = found.pairs[at]
        return {"place": at, "a": pair.a, "b": pair.b}

    counts = {}
    if found.fork is not None:
        for name, (alike, actions) in {
            "before": found.alike(0, found.fork),
            "behind": found.alike(found.fork),
        }.items():
            counts[name] = {"same": alike, "actions": actions}
    return {
        "a": _about(one, veiled),
        "b": _about(other, veiled),
        "first": place(found.first),
        "fork": place(found.fork),
        "cause": place(found.cause),
        "alike": counts,
        "places": [
            {"a": pair.a, "b": pair.b, "likeness": pair.likeness.value, "action": acts}
            for pair, acts in zip(found.pairs, found.actions, strict=True)
        ],
    }


def _about(trace: Trace, veiled: bool) -> dict[str, object]:
    return {
        "id": trace.identity.trace_id,
        "path": str(trace.path),
        "spans": len(trace),
        "outcome": None if veiled else trace.meta.outcome.value,
    }

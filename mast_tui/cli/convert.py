"""``mast-tui convert``: traces of any known format as one documented format."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from mast_tui.cli.common import say
from mast_tui.traces.converted import line_of
from mast_tui.traces.library import read_fully, scan
from mast_tui.traces.model import FileReport


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH …")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="OUT.jsonl",
    help="The file to write; an existing one is replaced once everything has been read.",
)
def convert_command(paths: tuple[Path, ...], output: Path) -> int:
    """Write traces as JSON lines, one trace a line.

    Each line holds the trace's id, what is known of the run (task, system, model, benchmark,
    outcome, score) and its spans in reading order with their whole texts. Ids and span keys are
    those of the original, so labels of the one fit the other.
    """
    failed = 0
    reports = _without(output, scan(paths))
    target = output.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    written = Path(name)
    try:
        traces = 0
        with os.fdopen(handle, "wb") as file:
            for report in reports:
                if report.failed is not None:
                    failed += 1
                    say(f"mast-tui convert: {report.path}: {report.failed}")
                for trace in report.traces:
                    read_fully(trace)
                    file.write(line_of(trace))
                    traces += 1
        if traces == 0:
            raise click.ClickException(
                "there are no traces to write; 'mast-tui inspect' says what the files are"
            )
        written.chmod(0o666 & ~_umask())
        written.replace(target)
    finally:
        written.unlink(missing_ok=True)
    say(f"{traces} traces written to {output}")
    return 1 if failed else 0


def _without(output: Path, reports: Iterable[FileReport]) -> Iterator[FileReport]:
    """The reports, an error where the file to be written is one of those that are read."""
    for report in reports:
        if report.traces and output.exists() and report.path.samefile(output):
            raise click.ClickException(
                f"{output} is itself a file of traces that is read here; write to another file"
            )
        yield report


def _umask() -> int:
    """The process's mask for new files, which only setting it tells."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

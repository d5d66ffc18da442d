"""``mast-tui convert``: traces of any known format as one documented format."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from mast_tui.cli.common import NO_LABELS, checked_sight, common_options, say
from mast_tui.traces.converted import OPENING, line_of
from mast_tui.traces.library import read_fully, scan
from mast_tui.traces.source import Source


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH …")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="OUT.jsonl",
    help="The file to write; one of an earlier run is replaced once everything has been read.",
)
@common_options(taxonomy=NO_LABELS)
def convert_command(
    paths: tuple[Path, ...],
    output: Path,
    workspace: str | None,
    annotator: str | None,
    blind: bool,
    assisted: bool,
) -> int:
    """Write traces as JSON lines, one trace a line.

    Each line holds the trace's id, what is known of the run (task, system, model, benchmark,
    outcome, score) and its spans in reading order with their whole texts. Ids and span keys are
    those of the original, so labels of the one fit the other. Outcome, score, reward, ground truth
    and labels carried in the files are left out for whoever works blind: with --blind, or as the
    workspace remembers it.
    """
    checked_sight(blind, assisted)
    from mast_tui.cli.asking import hides_outcomes

    veil = hides_outcomes(workspace, annotator, blind, assisted)
    if veil is not None:
        say(veil)
    _check_replaceable(output)
    failed = 0
    target = output.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    written = Path(name)
    try:
        traces = 0
        with os.fdopen(handle, "wb") as file:
            for report in scan(paths, without=(output,)):
                if report.failed is not None:
                    failed += 1
                    say(f"mast-tui convert: {report.path}: {report.failed}")
                for trace in report.traces:
                    read_fully(trace)
                    file.write(line_of(trace, veiled=veil is not None))
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


def _check_replaceable(output: Path) -> None:
    """Refuse to replace anything but a file that this command has written."""
    if not output.exists() or (output.is_file() and output.stat().st_size == 0):
        return
    if not output.is_file() or not Source(output).head.startswith(OPENING):
        raise click.ClickException(
            f"{output} exists and was not written by 'mast-tui convert'; write to another file"
        )


def _umask() -> int:
    """The process's mask for new files, which only setting it tells."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

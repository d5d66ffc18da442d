"""``mast-tui export``: labels as files for others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mast_tui.cli.agree import split_names
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import asked_by
from mast_tui.cli.shared.common import kept_taxonomy, open_workspace, print_json, say
from mast_tui.exchange.exporters.files import (
    add_workspace,
    check_output,
    left_out_lines,
    written_lines,
)
from mast_tui.exchange.formats import ExportRequest, FormatContent
from mast_tui.exchange.registry import EXPORT_FORMATS
from mast_tui.output_files import is_stdout
from mast_tui.safe_text import one_line
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.pseudonyms import pseudonyms_of

if TYPE_CHECKING:
    from mast_tui.gold import GoldKind
    from mast_tui.passes import Which


@click.command()
@click.option("--format", "file_format", type=click.Choice(list(EXPORT_FORMATS)), required=True)
@options.output(
    "The file to write; for huggingface a folder. gold and label-studio write a second file "
    "beside it.",
    required=True,
)
@click.option(
    "--labels", metavar="gold|NAME|all", help="Whose labels. Default: gold; jsonl holds all."
)
@options.which_pass(
    "Which reading. Default: 1 for csv-wide and for the agreement beside gold, else last."
)
@click.option("--annotators", metavar="A,B,…", help="The sides of the gold. Default: all people.")
@click.option("--majority", is_flag=True, help="Let a majority settle verdicts in the gold.")
@options.gold
@click.option(
    "--datasheet",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Who labelled, licence, contact and such (TOML), for gold and huggingface. Default: "
    "datasheet.toml beside the workspace's database.",
)
@options.pseudonyms
@click.option(
    "--allow-unordered",
    is_flag=True,
    help="Export gold although the order of some labelled spans is unknown; overlaps on them are "
    "then missed.",
)
@options.force
@options.common()
@options.as_json
def export_command(
    file_format: str,
    output: Path,
    labels: str | None,
    which: Which | None,
    annotators: str | None,
    majority: bool,
    gold: GoldKind | None,
    datasheet: Path | None,
    pseudonyms: bool,
    allow_unordered: bool,
    force: bool,
    common: CommonOptions,
    as_json: bool,
) -> None:
    """Export labels: the gold with its sources and figures, or anybody's.

    An earlier export is replaced, and only once the new one is complete. Annotators get their own
    labels, and those of others only on traces that they have finished or adjudicate; this is
    recorded. jsonl is the whole workspace.
    """
    chosen_format = EXPORT_FORMATS[file_format]
    if chosen_format.is_workspace:
        _refuse_for_jsonl(common, pseudonyms)
    names = split_names(annotators)
    of_gold = chosen_format.content is FormatContent.GOLD
    if chosen_format.is_workspace and labels not in (None, "all"):
        raise click.UsageError("jsonl holds the whole workspace; leave out --labels")
    if of_gold and labels not in (None, "gold"):
        raise click.UsageError(f"{file_format} holds gold and its sides; use csv-long for others")
    if gold is not None and not of_gold:
        raise click.UsageError("--gold goes with --format gold and huggingface")
    if chosen_format.content is FormatContent.CODEBOOK and labels is not None:
        raise click.UsageError("codebook holds no labels; leave out --labels")
    if datasheet is not None and not of_gold:
        raise click.UsageError("--datasheet goes with --format gold and huggingface")
    place = open_workspace(common)
    outputs = outputs_beside(place, force=force)
    check_output(outputs, chosen_format, output)
    if chosen_format.writes is None:
        counts = add_workspace(place, outputs, output, say)
    else:
        chosen = kept_taxonomy(place, common.taxonomy)
        request = ExportRequest(
            place,
            chosen,
            asked_by(place, chosen.ref, common),
            chosen_format,
            output,
            labels=labels,
            which=which,
            annotators=names,
            majority=majority,
            gold=gold,
            datasheet=datasheet,
            pseudonyms=pseudonyms_of(place) if pseudonyms else None,
            allow_unordered=allow_unordered,
            say=say,
        )
        counts = chosen_format.writes(request, outputs)
    place.close()
    outputs.commit()
    if as_json:
        print_json({"format": file_format, "output": str(output), **counts})
    else:
        for line in written_lines(str(output), counts):
            click.echo(one_line(line), err=is_stdout(output))
    for line in left_out_lines(counts, file_format, sight=not as_json):
        say(line)


def _refuse_for_jsonl(common: CommonOptions, pseudonyms: bool) -> None:
    """Refuse what a copy of the whole workspace cannot heed, rather than to ignore it."""
    given = {
        "--taxonomy": common.taxonomy is not None,
        "--blind": common.blind,
        "--assisted": common.assisted,
        "--pseudonyms": pseudonyms,
    }
    for option, is_given in given.items():
        if is_given:
            raise click.UsageError(
                f"export --format jsonl does not take {option}: it is the whole workspace, to keep "
                "and to merge; choose another format to look at labels"
            )

"""``mast-tui export``: write labels to files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.agree import split_names
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer
from mast_tui.cli.shared.common import (
    open_workspace,
    print_json,
    print_line,
    say,
    summary_of,
    workspace_taxonomy,
)
from mast_tui.cli.shared.options import OptionRule
from mast_tui.exchange.exporters.files import (
    add_workspace,
    check_path,
    left_out_lines,
    written_lines,
)
from mast_tui.exchange.formats import ExportRequest, FormatContent
from mast_tui.exchange.registry import EXPORT_FORMATS
from mast_tui.exchange.selection import masks_of_files
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.pseudonyms import pseudonyms_of

if TYPE_CHECKING:
    from mast_tui.gold import GoldKind
    from mast_tui.labels import Which


_OF_FIRST_PASSES: Final = ", ".join(
    name for name, row in EXPORT_FORMATS.items() if row.first_passes
)
"""The formats with the first finish of each trace, unless ``--pass`` says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportCommandRequest:
    """The options of ``mast-tui export``."""

    file_format: str = options.option(
        "--format", type=click.Choice(list(EXPORT_FORMATS)), required=True
    )
    output: Path = options.output(
        help="The file to write; for huggingface a folder. gold and label-studio write a second "
        "file beside it.",
        required=True,
    )
    labels: str | None = options.option(
        "--labels",
        metavar="gold|NAME|all",
        help="The labels to export. Default: gold; jsonl contains all.",
    )
    which: Which | None = options.which_pass(
        help=f"{options.WHICH_PASS} Default: 1 for {_OF_FIRST_PASSES}, else the current labels."
    )
    annotators: str | None = options.option(
        "--annotators", metavar="A,B,…", help="The annotators behind the gold. Default: all people."
    )
    majority: bool = options.option(
        "--majority", is_flag=True, help="Resolve verdicts in the gold by majority."
    )
    gold: GoldKind | None = options.gold()
    datasheet: Path | None = options.option(
        "--datasheet",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A TOML file with annotators, licence, contact and more, for gold and huggingface. "
        "Default: datasheet.toml beside the workspace's database.",
    )
    pseudonyms: bool = options.pseudonyms()
    redact: bool = options.redact()
    redact_file: Path | None = options.redact_file()
    allow_unordered: bool = options.option(
        "--allow-unordered",
        is_flag=True,
        help="Export gold even if the order of some labelled spans is unknown; overlaps on these "
        "are missed.",
    )
    force: bool = options.force()
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()

    @property
    def of_gold(self) -> bool:
        """True for a format of gold labels."""
        return EXPORT_FORMATS[self.file_format].content is FormatContent.GOLD


_RULES: Final = (
    options.ONE_OUTPUT_ON_STDOUT,
    OptionRule[ExportCommandRequest](
        "export --format jsonl does not accept {option}: it contains the whole workspace, for "
        "backup and merging; use another format to export a part",
        options=(
            "--taxonomy",
            "--blind",
            "--assisted",
            "--pseudonyms",
            "--redact",
            "--redact-file",
            "--annotators",
            "--majority",
        ),
        when=lambda request: request.file_format == "jsonl",
    ),
    OptionRule[ExportCommandRequest](
        "jsonl contains the whole workspace; leave out --labels",
        when=lambda request: request.file_format == "jsonl" and request.labels not in (None, "all"),
    ),
    OptionRule[ExportCommandRequest](
        "{request.file_format} contains gold and its sources; use csv-long for other labels",
        when=lambda request: request.of_gold and request.labels not in (None, "gold"),
    ),
    OptionRule[ExportCommandRequest](
        "{option} is for --format gold and huggingface",
        options=("--gold", "--datasheet"),
        when=lambda request: not request.of_gold,
    ),
    OptionRule[ExportCommandRequest](
        "codebook contains no labels; leave out {option}",
        options=("--labels", "--annotators", "--majority"),
        when=lambda request: request.file_format == "codebook",
    ),
    OptionRule[ExportCommandRequest](
        "{option} is for gold; leave it out, or export --labels gold",
        options=("--annotators", "--majority"),
        when=lambda request: request.labels not in (None, "gold"),
    ),
)


@click.command()
@options.takes(ExportCommandRequest, _RULES)
def export_command(request: ExportCommandRequest) -> None:
    """Export labels: the gold and its sources, or annotators' own labels.

    An earlier export is replaced once the new one is complete. Annotators get their own labels, and
    those of others only on traces that they have finished or adjudicate; this is recorded. jsonl is
    the whole workspace.

    Example: mast-tui export --format gold -o gold.json
    """
    names = split_names(request.annotators)
    chosen_format = EXPORT_FORMATS[request.file_format]
    workspace = open_workspace(request.common)
    outputs = outputs_beside(workspace, force=request.force)
    check_path(outputs, request.output, chosen_format.is_folder)
    if chosen_format.writes is None:
        counts = add_workspace(workspace, outputs, request.output, say)
    else:
        taxonomy = workspace_taxonomy(workspace, request.common.taxonomy)
        export = ExportRequest(
            workspace,
            taxonomy,
            command_viewer(workspace, taxonomy.ref, request.common),
            chosen_format,
            request.output,
            labels=request.labels,
            which=request.which,
            annotators=names,
            majority=request.majority,
            gold=request.gold,
            datasheet=request.datasheet,
            pseudonyms=pseudonyms_of(workspace) if request.pseudonyms else None,
            masks=masks_of_files(
                workspace,
                workspace.study(taxonomy.ref),
                redact=request.redact,
                patterns=request.redact_file,
            ),
            allow_unordered=request.allow_unordered,
            say=say,
        )
        counts = chosen_format.writes(export, outputs)
    outputs.commit()
    if request.as_json:
        print_json({"format": request.file_format, "output": str(request.output), **counts})
    else:
        with summary_of(request.output):
            for line in written_lines(str(request.output), counts):
                print_line(line)
    for line in left_out_lines(counts, request.file_format, hidden_traces=not request.as_json):
        say(line)

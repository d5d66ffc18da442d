"""``mast-tui page``: write runs as pages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer, existing_workspace, report_hidden_traces
from mast_tui.cli.shared.common import (
    load_taxonomy_or_mast,
    open_workspace,
    say,
    workspace_taxonomy,
)
from mast_tui.counts import counted
from mast_tui.exchange.page.content import RunPages, label_counts_text
from mast_tui.exchange.page.rendering import add_page, add_page_folder
from mast_tui.exchange.selection import masks_of_files
from mast_tui.output_files import Outputs, ReplacementRules
from mast_tui.redaction.masked_trace import requested_masks
from mast_tui.traces.library import read_fully, samples_folder, scan
from mast_tui.traces.model import Trace
from mast_tui.workspace import samples_workspace_path
from mast_tui.workspace.outputs import outputs_beside, reason_to_protect
from mast_tui.workspace.registers.pseudonyms import pseudonyms_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """The options of ``mast-tui page``."""

    paths: tuple[Path, ...] = options.paths(required=True, exist=True)
    output: Path = options.output(
        help="The file to write; for several runs a folder.", required=True
    )
    markdown: bool = options.option(
        "--markdown", is_flag=True, help="Write Markdown instead of HTML."
    )
    pseudonyms: bool = options.pseudonyms()
    redact: bool = options.redact()
    redact_file: Path | None = options.redact_file()
    force: bool = options.force()
    common: CommonOptions = options.common()


@click.command()
@options.takes(PageRequest)
def page_command(request: PageRequest) -> int:
    """Write a run with its labels as one self-contained page.

    It can be read offline, on a phone and on paper. The page shows the run as a conversation, with
    the labels and notes beside it, quotes highlighted, the gold, and a list of all labels. It loads
    nothing and works without JavaScript.
    'mast-tui import FILE --format page' reads the labels back. Several runs become a folder with an
    index. Annotators get what they may see, as in 'mast-tui export'.

    Example: mast-tui page runs/trace.jsonl -o page.html
    """
    workspace = existing_workspace(request.common)
    if workspace is None:
        if samples_workspace_path().exists() and any(map(_is_sample, request.paths)):
            open_workspace(request.common)  # raises an error that names it
        say("there is no workspace here, so the page has no labels; --workspace PATH names one")
        taxonomy = load_taxonomy_or_mast(request.common.taxonomy)
        masks = requested_masks(request.redact, request.redact_file, token_bytes)
        pages = RunPages(taxonomy, blind=request.common.blind, masks=masks)
        outputs = Outputs(ReplacementRules(precious=reason_to_protect, force=request.force))
    else:
        taxonomy = workspace_taxonomy(workspace, request.common.taxonomy)
        viewer = command_viewer(workspace, taxonomy.ref, request.common)
        pseudonyms = pseudonyms_of(workspace) if request.pseudonyms else None
        masks = masks_of_files(
            workspace,
            workspace.study(taxonomy.ref),
            redact=request.redact,
            patterns=request.redact_file,
        )
        pages = RunPages(taxonomy, viewer, pseudonyms=pseudonyms, masks=masks)
        outputs = outputs_beside(workspace, force=request.force)
    traces, failed_count = _readable_traces(request.paths)
    run_pages = [pages.page_of(trace, traces) for trace in traces]
    if len(traces) == 1 and request.paths[0].is_file():
        add_page(outputs, request.output, run_pages[0], markdown=request.markdown)
    else:
        add_page_folder(outputs, request.output, run_pages, markdown=request.markdown)
    outputs.commit()
    if workspace is not None:
        report_hidden_traces(viewer, pages.hidden)
    say(
        f"{request.output}: {counted(len(traces), 'run')} with {label_counts_text(run_pages)} "
        "written"
    )
    return 1 if failed_count else 0


def _is_sample(path: Path) -> bool:
    return path.resolve().is_relative_to(samples_folder())


def _readable_traces(paths: tuple[Path, ...]) -> tuple[list[Trace], int]:
    """Read all traces, and return those with spans and the number of unreadable files."""
    traces: list[Trace] = []
    failed_count = 0
    for report in scan(paths):
        if report.failed is not None:
            failed_count += 1
            say(f"mast-tui page: {report.path}: {report.failed}")
        for trace in report.traces:
            read_fully(trace)
            if len(trace):
                traces.append(trace)
    if not traces:
        raise click.ClickException("there are no traces to write; see 'mast-tui inspect'")
    return traces, failed_count

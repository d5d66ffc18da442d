"""``mast-tui page``: runs as pages to hand over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer, existing_workspace, report_hidden_traces
from mast_tui.cli.shared.common import load_taxonomy_or_mast, say, workspace_taxonomy
from mast_tui.counts import counted
from mast_tui.exchange.page.content import RunPage, RunPages, file_name_of
from mast_tui.exchange.page.rendering import (
    IndexRow,
    render_index,
    render_index_markdown,
    render_page,
    render_page_markdown,
)
from mast_tui.exchange.selection import masks_of_files
from mast_tui.output_files import Outputs, ReplacementRules
from mast_tui.redaction.masked_trace import requested_masks
from mast_tui.traces.library import read_fully, scan
from mast_tui.traces.model import Trace
from mast_tui.workspace.outputs import outputs_beside, reason_to_protect
from mast_tui.workspace.registers.pseudonyms import pseudonyms_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """The options of ``mast-tui page``."""

    paths: tuple[Path, ...] = options.paths(required=True, exist=True)
    output: Path = options.output(
        help="The file to write; a folder where the paths hold several runs.", required=True
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
    """
    workspace = existing_workspace(request.common)
    if workspace is None:
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
    if len(traces) == 1 and request.paths[0].is_file():
        page = pages.page_of(traces[0])
        outputs.add(request.output, _page_bytes(page, request.markdown))
        label_count = len(page.labels)
    else:
        label_count = _add_folder(request, pages, traces, outputs)
    outputs.commit()
    if workspace is not None:
        report_hidden_traces(viewer, pages.hidden)
    say(
        f"{request.output}: {counted(len(traces), 'run')} with {counted(label_count, 'label')} "
        "written"
    )
    return 1 if failed_count else 0


def _readable_traces(paths: tuple[Path, ...]) -> tuple[list[Trace], int]:
    """Return the traces under paths with complete indices, and the number of unreadable files."""
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


def _add_folder(
    request: PageRequest, pages: RunPages, traces: list[Trace], outputs: Outputs
) -> int:
    """Add a page for each trace and an index of them, and return the number of labels."""
    folder = request.output
    outputs.add_folder(folder)
    suffix = "md" if request.markdown else "html"
    rows: list[IndexRow] = []
    used_names: set[str] = {f"index.{suffix}"}
    for trace in traces:
        page = pages.page_of(trace)
        name = _free_name(file_name_of(page.title, suffix), used_names)
        used_names.add(name.lower())
        outputs.add(folder / name, _page_bytes(page, request.markdown))
        rows.append(IndexRow(name, page))
    if request.markdown:
        titles = {row.file: row.page.title for row in rows}
        outputs.add(folder / "index.md", render_index_markdown(titles))
    else:
        outputs.add(folder / "index.html", render_index(rows))
    return sum(len(row.page.labels) for row in rows)


def _free_name(name: str, used_names: set[str]) -> str:
    """Return the name, with a number if another file has it; upper and lower case are the same."""
    stem, _, suffix = name.rpartition(".")
    number = 1
    while name.lower() in used_names:
        number += 1
        name = f"{stem}-{number}.{suffix}"
    return name


def _page_bytes(page: RunPage, markdown: bool) -> Iterator[bytes]:
    """Yield the text of a page when it is written, so that not all pages are in memory."""
    text = render_page_markdown(page) if markdown else render_page(page)
    yield text.encode("utf-8", "replace")

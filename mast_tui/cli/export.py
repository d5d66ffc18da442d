"""``mast-tui export``: labels as files for others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mast_tui.cli.agree import split_names
from mast_tui.cli.common import (
    checked_sight,
    common_options,
    json_option,
    kept_taxonomy,
    open_workspace,
    print_json,
)
from mast_tui.exchange.formats import EXPORT_FORMATS
from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.passes import Which
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


@click.command()
@click.option("--format", "file_format", type=click.Choice(EXPORT_FORMATS), required=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="OUT"
)
@click.option(
    "--labels", metavar="gold|NAME|all", help="Whose labels. Default: gold; jsonl holds all."
)
@click.option(
    "--pass",
    "which",
    type=click.Choice(["1", "last"]),
    help="Which reading. Default: 1 for csv-wide and for the agreement beside gold, else last.",
)
@click.option("--annotators", metavar="A,B,…", help="The sides of the gold. Default: all people.")
@click.option("--majority", is_flag=True, help="Let a majority settle verdicts in the gold.")
@common_options
@json_option
def export_command(
    file_format: str,
    output: Path,
    labels: str | None,
    which: str | None,
    annotators: str | None,
    majority: bool,
    workspace: str | None,
    annotator: str | None,
    taxonomy: Path | None,
    blind: bool,
    assisted: bool,
    as_json: bool,
) -> None:
    """Export labels: the gold with its sources and figures, or anybody's.

    A file that is there is replaced, and only once the new one is complete.
    """
    checked_sight(blind, assisted)
    names = split_names(annotators)
    if file_format == "jsonl" and labels not in (None, "all"):
        raise click.UsageError("jsonl holds the whole workspace; leave out --labels")
    if file_format == "gold" and labels not in (None, "gold"):
        raise click.UsageError("the gold format holds gold labels; use csv-long for others")
    if not output.parent.is_dir():
        raise click.ClickException(f"{output.parent}: no such folder; make it first")
    place = open_workspace(workspace, create=False)
    if file_format == "jsonl":
        counts = _export_workspace(place, output)
    else:
        chosen = kept_taxonomy(place, taxonomy)
        first = which == "1" or (which is None and file_format in ("csv-wide", "gold"))
        request = _Request(place, chosen, labels or "gold", "first" if first else "last", majority)
        if file_format == "gold":
            counts = request.gold(output, names)
        else:
            counts = request.write(file_format, output)
    place.close()
    document = {"format": file_format, "output": str(output), **counts}
    if as_json:
        print_json(document)
    else:
        told = ", ".join(f"{value} {name}" for name, value in counts.items() if name != "taxonomy")
        click.echo(one_line(f"{output}: {told}"))


def _export_workspace(workspace: Workspace, output: Path) -> dict[str, Any]:
    from mast_tui.exchange.csv_files import write_text
    from mast_tui.exchange.jsonl import workspace_lines

    lines = list(workspace_lines(workspace))
    write_text(output, "".join(lines))
    return {"traces": len(workspace.traces()), "lines": len(lines)}


class _Request:
    """What is to be exported under one taxonomy."""

    def __init__(
        self,
        workspace: Workspace,
        taxonomy: Taxonomy,
        labels: str,
        which: Which,
        majority: bool,
    ) -> None:
        self._workspace = workspace
        self._taxonomy = taxonomy
        self._labels = labels
        self._which: Which = which
        self._majority = majority

    def gold(self, output: Path, annotators: list[str] | None) -> dict[str, Any]:
        """Write the gold document."""
        from mast_tui.exchange.csv_files import write_text
        from mast_tui.exchange.selection import gold_export

        document = gold_export(
            self._workspace,
            self._taxonomy,
            annotators=annotators,
            majority=self._majority,
            which=self._which,
        )
        write_text(output, _json(document))
        traces = document["traces"]
        return {
            "taxonomy": self._taxonomy.ref,
            "traces": len(traces),
            "labels": sum(len(trace["labels"]) for trace in traces),
            "unresolved": sum(len(trace["unresolved"]) for trace in traces),
        }

    def write(self, file_format: str, output: Path) -> dict[str, Any]:
        """Write one of the formats that hold anybody's words."""
        from mast_tui.exchange.csv_files import write_text
        from mast_tui.exchange.csv_long import write_csv_long
        from mast_tui.exchange.csv_wide import WideRow, write_csv_wide
        from mast_tui.exchange.mast_data import mast_data_record, mast_data_records
        from mast_tui.exchange.selection import selected_work
        from mast_tui.workspace import TraceRecord

        work = selected_work(
            self._workspace,
            self._taxonomy,
            self._labels,
            which=self._which,
            finished_only=file_format == "csv-wide" and self._labels != "gold",
            majority=self._majority,
        )
        records = {record.trace_id: record for record in self._workspace.traces()}
        with_trace = [(records.get(one.trace_id, TraceRecord(one.trace_id)), one) for one in work]
        match file_format:
            case "csv-long":
                text = write_csv_long(work)
            case "csv-wide":
                rows = [WideRow(trace, one.annotator, one.verdicts) for trace, one in with_trace]
                text = write_csv_wide(rows, self._taxonomy)
            case _:
                data = [
                    mast_data_record(trace, one.annotator, one.verdicts, self._taxonomy)
                    for trace, one in with_trace
                ]
                text = _json(mast_data_records(data))
        write_text(output, text)
        return {
            "taxonomy": self._taxonomy.ref,
            "traces": len({one.trace_id for one in work}),
            "labels": sum(len(one.labels) for one in work),
        }


def _json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"

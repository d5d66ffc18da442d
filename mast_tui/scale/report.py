"""``mast-tui report SHARDS``: the report on all traces of the shards of a judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.shared.asking import why_judges_hidden
from mast_tui.cli.shared.common import print_json, print_table, say
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.columns import TableColumn
from mast_tui.counts import counted
from mast_tui.safe_text import one_line
from mast_tui.scale.figures import Document, shard_report
from mast_tui.scale.shards import ShardFolder

if TYPE_CHECKING:
    from mast_tui.cli.report import ReportRequest
    from mast_tui.figures.signatures.model import Rules

_BARS: Final = "▁▂▃▄▅▆▇█"


def report_shards(request: ReportRequest, rules: Rules) -> None:
    """Print the report on a folder of shards.

    Args:
        request: The options of the command.
        rules: The thresholds of the figures.

    Raises:
        ShardsError: The shards cannot be read.
        click.ClickException: The annotator works blind or without suggestions.
    """
    address = request.shards
    assert address is not None
    folder = ShardFolder(address)
    reason = why_judges_hidden(request.common, folder.manifest().taxonomy)
    if reason is not None:
        raise click.ClickException(f"{address}: judges' findings are hidden, as {reason}")
    with WorkerPool(request.workers) as pool:
        report = shard_report(
            folder,
            group_by=request.by,
            rules=rules,
            failed_below=request.failed_below,
            workers=pool.workers,
            tell=pool.show_progress,
        )
        pool.on_trace(count=report["traces"]["labelled"])
    if request.as_json:
        print_json(report)
        return
    for line in _summary_lines(report):
        click.echo(one_line(line))
    for name, group in report["groups"].items():
        click.echo()
        click.echo(one_line(f"{name}: {_outcome_counts(group)}"))
        codes = [code for code, mode in group["modes"].items() if mode["count"]]
        if codes:
            print_table(_mode_columns(group), codes)
        else:
            click.echo("no mode shows")
    for sentence in report["cannot_say"]:
        say(sentence)


def _summary_lines(report: Document) -> Iterator[str]:
    """Yield sentences on the judge, shards and taxonomy, and on unread and repeated traces."""
    traces = report["traces"]
    shards = report["shards"]
    yield (
        f"{report['labels']} on {counted(traces['labelled'], 'trace')} in "
        f"{counted(shards['done'], 'shard')}, under "
        f"{report['taxonomy']}"
    )
    if traces["unread"]:
        yield f"{counted(traces['unread'], 'trace')} could not be read"
    if traces["twice"]:
        repeated_text = counted(traces["twice"], "trace was", "traces were")
        yield f"{repeated_text} already there; each counts once"


def _outcome_counts(group: Document) -> str:
    return (
        f"{counted(group['traces'], 'trace')}, {group['failed']:,} failed, "
        f"{group['succeeded']:,} succeeded"
    )


def _mode_columns(group: Document) -> tuple[TableColumn[str], ...]:
    """Return the columns of a table with the codes of modes as rows."""
    modes = group["modes"]
    onsets = group["onset"]

    def points(code: str) -> str:
        difference = modes[code]["difference_pp"]
        return "" if difference is None else f"{difference:+.1f}"

    def onset(code: str) -> str:
        return _bar_text(onsets[code]["bins"]) if code in onsets else ""

    return (
        TableColumn("", lambda code: code),
        TableColumn("mode", lambda code: modes[code]["name"]),
        TableColumn("traces", lambda code: f"{modes[code]['count']:,}", right=True),
        TableColumn("all", lambda code: _share_text(modes[code]["all"]), right=True),
        TableColumn("failed", lambda code: _share_text(modes[code]["failed"]), right=True),
        TableColumn("succeeded", lambda code: _share_text(modes[code]["succeeded"]), right=True),
        TableColumn("points", points, right=True),
        TableColumn("", lambda code: modes[code]["severity"], right=True),
        TableColumn("onset", onset, right=True),
    )


def _share_text(rate: Mapping[str, Any]) -> str:
    return "" if rate["rate"] is None else f"{rate['rate']:.1%}"


def _bar_text(bins: list[int]) -> str:
    """Draw a bar for each tenth of the run."""
    largest = max(bins)
    return "".join(_BARS[round(count * (len(_BARS) - 1) / largest)] for count in bins)

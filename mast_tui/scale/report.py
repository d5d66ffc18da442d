"""``mast-tui report SHARDS``: what a judge found in all traces of its shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.shared.asking import judges_hidden
from mast_tui.cli.shared.common import print_json, print_table, say
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.counts import counted
from mast_tui.safe_text import one_line
from mast_tui.scale.figures import shard_report
from mast_tui.scale.folder import ShardFolder

if TYPE_CHECKING:
    from mast_tui.cli.report import ReportRequest
    from mast_tui.figures.intervals import RateJson
    from mast_tui.figures.signatures.model import Rules
    from mast_tui.scale.figures import ShardGroupJson, ShardReport

_BARS: Final = "▁▂▃▄▅▆▇█"


def report_shards(request: ReportRequest, rules: Rules) -> None:
    """Print the report on a folder of shards.

    Args:
        request: The options of the command.
        rules: The thresholds of the figures.

    Raises:
        ShardsError: The shards cannot be read.
        click.ClickException: The annotator works blind here.
    """
    place = request.shards
    assert place is not None
    folder = ShardFolder(place)
    if judges_hidden(request.common, folder.manifest().taxonomy):
        raise click.ClickException(
            f"{place}: what a judge found is hidden while you work blind or without suggestions"
        )
    with WorkerPool(request.workers) as pool:
        report = shard_report(
            folder,
            by=request.by,
            rules=rules,
            failed_below=request.failed_below,
            workers=pool.workers,
            tell=pool.tell,
        )
        pool.on_trace(report["traces"]["labelled"])
    if request.as_json:
        print_json(report)
        return
    for line in _lines(report):
        click.echo(one_line(line))
    for name, group in report["groups"].items():
        click.echo()
        click.echo(one_line(f"{name}: {_sides(group)}"))
        rows = list(_rows(group))
        if len(rows) == 1:
            click.echo("no mode shows")
            continue
        print_table(rows, numbers_from=2)
    for words in report["cannot_say"]:
        say(words)


def _lines(report: ShardReport) -> Iterator[str]:
    traces, shards = report["traces"], report["shards"]
    yield (
        f"{report['labels']} on {counted(traces['labelled'], 'trace')} in "
        f"{counted(shards['done'], 'shard')}, under "
        f"{report['taxonomy']}"
    )
    if traces["unread"]:
        yield f"{counted(traces['unread'], 'trace')} could not be read"
    if traces["twice"]:
        were = counted(traces["twice"], "trace was", "traces were")
        yield f"{were} there before; each counts once"


def _sides(group: ShardGroupJson) -> str:
    return (
        f"{counted(group['traces'], 'trace')}, {group['failed']:,} failed, "
        f"{group['succeeded']:,} succeeded"
    )


def _rows(group: ShardGroupJson) -> Iterator[tuple[str, ...]]:
    yield ("", "mode", "traces", "all", "failed", "succeeded", "points", "", "onset")
    for code, mode in group["modes"].items():
        if not mode["count"]:
            continue
        points = mode["difference_pp"]
        onset = group["onset"].get(code)
        yield (
            code,
            mode["name"],
            f"{mode['count']:,}",
            _share(mode["all"]),
            _share(mode["failed"]),
            _share(mode["succeeded"]),
            "" if points is None else f"{points:+.1f}",
            mode["severity"],
            "" if onset is None else _bars(onset["bins"]),
        )


def _share(rate: RateJson) -> str:
    return "" if rate["rate"] is None else f"{rate['rate']:.1%}"


def _bars(bins: list[int]) -> str:
    """A bar for each tenth of the run."""
    most = max(bins)
    return "".join(_BARS[round(count * (len(_BARS) - 1) / most)] for count in bins)

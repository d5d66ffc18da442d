"""``mast-tui report SHARDS``: what a judge found in all traces of its shards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared.asking import judges_hidden
from mast_tui.cli.shared.common import print_json, print_table, say
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.counts import counted
from mast_tui.safe_text import one_line
from mast_tui.scale.figures import shard_report
from mast_tui.scale.folder import ShardFolder

if TYPE_CHECKING:
    from mast_tui.figures.signatures.model import Rules
    from mast_tui.scale.figures import ShardGroupJson, ShardReport

TAKEN: Final = frozenset(
    {"shards", "by", "failed_below", "alpha", "margin", "least", "annotator", "blind", "assisted"}
    | {"as_json", "wanted_workers"}
)
"""The options that mean something for shards."""

_BARS: Final = "▁▂▃▄▅▆▇█"


def refuse_others(context: click.Context) -> None:
    """Refuse the options that say nothing of shards.

    Args:
        context: The command's.

    Raises:
        click.UsageError: One of them was given.
    """
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in TAKEN:
            raise click.UsageError(
                f"{parameter.opts[0]} is for a workspace; import a part of the shards into one"
            )


def report_shards(
    place: str,
    by: str,
    rules: Rules,
    failed_below: float | None,
    common: CommonOptions,
    wanted_workers: str | None,
    *,
    as_json: bool,
) -> None:
    """Print the report on a folder of shards.

    Args:
        place: The folder's path or URL.
        by: What tells groups apart.
        rules: Where the lines are drawn.
        failed_below: Lets the outcome follow from the score.
        common: Who asks.
        wanted_workers: What ``--workers`` says.
        as_json: Whether one JSON document is printed.

    Raises:
        ShardsError: They cannot be read.
        click.ClickException: Whoever asks works blind here.
    """
    folder = ShardFolder(place)
    if judges_hidden(common, folder.manifest().taxonomy):
        raise click.ClickException(
            f"{place}: what a judge found is hidden while you work blind or without suggestions"
        )
    with WorkerPool(wanted_workers) as pool:
        report = shard_report(
            folder,
            by=by,
            rules=rules,
            failed_below=failed_below,
            workers=pool.workers,
            tell=pool.tell,
        )
        pool.on_trace(report["traces"]["labelled"])
    if as_json:
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


def _share(rate: Mapping[str, Any]) -> str:
    return "" if rate["rate"] is None else f"{rate['rate']:.1%}"


def _bars(bins: list[int]) -> str:
    """A bar for each tenth of the run."""
    most = max(bins)
    return "".join(_BARS[round(count * (len(_BARS) - 1) / most)] for count in bins)

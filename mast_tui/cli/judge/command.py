"""``mast-tui judge``: let a judge look at traces, without the app."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from mast_tui.adjudication import keep_missing_indices
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.judge.options import JudgeCommand, looks_under, model_options, traces_under
from mast_tui.cli.judge.progress import show_trace
from mast_tui.cli.judge.summary import failed_files, print_run, run_document
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import asked_by
from mast_tui.cli.shared.common import open_workspace, say, working_taxonomy
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.judges.rules import RulesJudge, chosen_rules
from mast_tui.judges.runner import JudgedTrace, TraceJudging, judged_traces, run_judge
from mast_tui.judges.twins import TwinsJudge

if TYPE_CHECKING:
    from mast_tui.judges.protocol import Judge
    from mast_tui.traces.model import FileReport, Trace

_BY_MODEL: Final = "mast_tui.cli.judge.llm"
"""Imported where a model is asked: its client takes as long as all else that a command needs."""

_INTO_SHARDS: Final = "mast_tui.scale.command"
_INTO_SHARDS_BY_MODEL: Final = "mast_tui.scale.model_command"
"""The modules behind ``--out``, which the core imports by name alone."""


@click.command()
@options.paths(required=True)
@click.option("--judge", "judge_name", type=click.Choice(["rules", "twins", "llm"]), required=True)
@click.option(
    "--rules",
    "rule_names",
    metavar="all|NAME,…",
    help="Which rules run. Default: two of them; docs/rules.md lists all.",
)
@click.option(
    "--again",
    is_flag=True,
    help="Judge traces anew that this judge has seen; a model is asked again.",
)
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@options.workers
@click.option(
    "--out",
    metavar="FOLDER-or-URL",
    help="Write what is found as shards (Parquet) into this folder, not into a workspace; "
    "the same command goes on where it was broken off. docs/scale.md has more.",
)
@click.option(
    "--shard-files",
    type=click.IntRange(1),
    help="How many files of traces a shard has on average. Default: by their number, up to 512.",
)
@model_options
@options.common()
@options.as_json
@click.pass_context
def judge_command(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    judge_name: str,
    rule_names: str | None,
    again: bool,
    quiet: bool,
    wanted_workers: str | None,
    out: str | None,
    shard_files: int | None,
    common: CommonOptions,
    as_json: bool,
    **asked: Any,
) -> int:
    """Let a judge suggest failure modes in traces.

    'rules' needs no model and no network, nor does 'twins', which compares several runs of one
    task and looks for steps that only failed ones share. 'llm' asks a model at any server that
    speaks the OpenAI API; --dry-run first shows what that would send and cost. Each trace is saved
    at once, and a trace that this version of the judge has seen is skipped (not by 'twins', which
    compares all runs): the same command continues an interrupted run. Blind annotators, and those
    with traces without suggestions in a study, do not see the results.
    """
    if judge_name != "rules" and rule_names is not None:
        raise click.UsageError("--rules is for --judge rules; the other judges have none")
    _refuse_for_others(judge_name, wanted_workers, out)
    if out is not None and (again or common.workspace is not None):
        option = "--again" if again else "--workspace"
        raise click.UsageError(f"{option} is for a workspace; --out writes shards instead")
    command = JudgeCommand(paths, again, quiet, as_json, common)
    if judge_name == "llm":
        if out is None:
            return int(import_module(_BY_MODEL).judge_with_model(command, asked))
        shards: Any = import_module(_INTO_SHARDS_BY_MODEL)
        with WorkerPool(wanted_workers, quiet=quiet) as pool:
            return int(shards.judge_with_model(command, asked, out, shard_files, pool))
    _refuse_model_options(context, judge_name, asked)
    if judge_name == "twins":
        twins = TwinsJudge(traces_under(paths, []))
        if not quiet:
            say(f"mast-tui judge: {twins.summary}")
        return _into_workspace(replace(command, again=True), twins)
    rules = chosen_rules(rule_names or "default")
    with WorkerPool(wanted_workers, quiet=quiet) as pool:
        judge = RulesJudge(rules)
        if out is None:
            return _into_workspace(command, judge, judge.covered_by, pool)
        shards = import_module(_INTO_SHARDS)
        return int(shards.judge_with_rules(command, judge, out, shard_files, pool))


def _refuse_for_others(judge: str, wanted_workers: str | None, out: str | None) -> None:
    """Options for many traces are wrong usage where a judge has no use for them."""
    if judge == "twins" and (wanted_workers is not None or out is not None):
        option = "--out" if wanted_workers is None else "--workers"
        raise click.UsageError(f"{option} is not for twins: they are compared in one place")
    if judge == "llm" and wanted_workers is not None and out is None:
        raise click.UsageError(
            "--workers takes --out with it for a model; into a workspace --concurrency says how "
            "many requests are under way"
        )


def _refuse_model_options(context: click.Context, judge: str, asked: Container[str]) -> None:
    """Options that only make sense with a model are wrong usage without one."""
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if option.name in asked and given:
            raise click.UsageError(f"{option.opts[0]} is for --judge llm; the {judge} ask no model")


def _into_workspace(
    command: JudgeCommand,
    judge: Judge,
    covered_by: tuple[str, ...] = (),
    pool: WorkerPool | None = None,
) -> int:
    """Have a judge look that asks no model; by workers where the pool has some."""
    place = open_workspace(command.common, create=True)
    chosen = working_taxonomy(place, command.common.taxonomy)
    hidden = asked_by(place, chosen.ref, command.common, anybody=True).judges_hidden
    show = partial(show_trace, hidden=hidden)
    reports: list[FileReport] = []
    given: Iterable[Trace | JudgedTrace] = traces_under(command.paths, reports)
    quiet = command.quiet
    if pool is not None and pool.workers is not None:
        quiet = True  # the pool tells how far it is
        known = frozenset() if command.again else judged_traces(judge, chosen, place, covered_by)
        given = looks_under(command.paths, reports, TraceJudging(judge, known), pool)
    summary = run_judge(
        judge,
        chosen,
        given,
        place,
        again=command.again,
        covered_by=covered_by,
        on_progress=(lambda _: None) if quiet else show,
    )
    keep_missing_indices(place)
    place.close()
    document = run_document(summary, reports, chosen)
    return failed_files(print_run(document, chosen, hidden=hidden, as_json=command.as_json))

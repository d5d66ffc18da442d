"""``mast-tui judge``: let a judge look at traces, without the app."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mast_tui.cli.judge.files import readable, traces_under, usual_lengths
from mast_tui.cli.judge.llm import ModelCommand, judge_with_model
from mast_tui.cli.judge.options import model_options
from mast_tui.cli.judge.progress import show_trace
from mast_tui.cli.judge.setup import SetupRequest
from mast_tui.cli.judge.summary import failed_files, print_summary, rules_document, without_findings
from mast_tui.cli.shared.asking import Asks
from mast_tui.cli.shared.common import (
    checked_sight,
    common_options,
    json_option,
    open_workspace,
    print_json,
    say,
    working_taxonomy,
)
from mast_tui.judges.rules import RulesJudge, chosen_rules
from mast_tui.judges.runner import run_judge
from mast_tui.judges.twins import TwinsJudge

if TYPE_CHECKING:
    from mast_tui.judges.protocol import Judge
    from mast_tui.traces.model import FileReport


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH …")
@click.option("--judge", "judge_name", type=click.Choice(["rules", "twins", "llm"]), required=True)
@click.option(
    "--rules",
    "rule_names",
    metavar="all|NAME,…",
    help="Which rules run. Default: those that have earned it; docs/judge.md has them all.",
)
@click.option(
    "--again",
    is_flag=True,
    help="Judge traces anew that this judge has seen; a model is asked again.",
)
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@model_options
@common_options()
@json_option
@click.pass_context
def judge_command(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    judge_name: str,
    rule_names: str | None,
    again: bool,
    quiet: bool,
    workspace: str | None,
    annotator: str | None,
    taxonomy: Path | None,
    blind: bool,
    assisted: bool,
    as_json: bool,
    **asked: Any,
) -> int:
    """Let a judge suggest failure modes in traces.

    'rules' needs no model and no network, nor does 'twins', which compares several runs of one
    task and looks for steps that only failed ones share. 'llm' asks a model at any server that
    speaks the OpenAI API, and --dry-run tells first what that would send and cost. Each trace is
    kept at once, and one that this version of the judge has seen is passed over (not by 'twins',
    whose word rests on all runs): the same command goes on where a run was broken off. What was
    found is not told to whoever works blind or has traces without suggestions in a study: who this
    login works here as, else --annotator.
    """
    checked_sight(blind, assisted)
    asks = Asks(annotator, blind, assisted)
    if judge_name != "rules" and rule_names is not None:
        raise click.UsageError("--rules is for --judge rules; the other judges have none")
    if judge_name == "llm":
        command = ModelCommand(paths, workspace, taxonomy, again, quiet, as_json, asked, asks)
        return judge_with_model(command)
    _refuse_model_options(context, judge_name)
    judge: Judge
    covered_by: tuple[str, ...] = ()
    if judge_name == "twins":
        judge = twins = TwinsJudge(readable(paths))
        again = True
        if not quiet:
            say(f"mast-tui judge: {twins.words}")
    else:
        rules = chosen_rules(rule_names or "default")
        judge = by_rules = RulesJudge(rules, usual_lengths(rules, paths))
        covered_by = by_rules.covered_by
    place = open_workspace(workspace, create=True)
    chosen = working_taxonomy(place, taxonomy)
    hidden = asks.hides_judges(place, chosen)
    show = partial(show_trace, hidden=hidden)
    reports: list[FileReport] = []
    summary = run_judge(
        judge,
        chosen,
        traces_under(paths, reports),
        place,
        again=again,
        covered_by=covered_by,
        on_progress=(lambda _: None) if quiet else show,
    )
    place.close()
    document = rules_document(summary, reports, chosen)
    if hidden:
        document = without_findings(document)
    if as_json:
        print_json(document)
    else:
        print_summary(document, chosen)
    return failed_files(document)


def _refuse_model_options(context: click.Context, judge: str) -> None:
    """Options that only make sense with a model are wrong usage without one."""
    from click.core import ParameterSource

    names = {field.name for field in fields(SetupRequest)}
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if option.name in names and given:
            raise click.UsageError(f"{option.opts[0]} is for --judge llm; the {judge} ask no model")

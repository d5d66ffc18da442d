"""``mast-tui judge``: run a judge on traces, without the app."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from mast_tui.adjudication import keep_missing_indices
from mast_tui.cli.judge.options import JUDGE_RULES, JudgeRequest, judge_under, traces_under
from mast_tui.cli.judge.progress import show_trace
from mast_tui.cli.judge.summary import failed_files, print_run, run_document
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer
from mast_tui.cli.shared.common import open_workspace, say, working_taxonomy
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.judges.rules import RulesJudge, chosen_rules
from mast_tui.judges.runner import JudgedTrace, TraceJudging, judged_traces, run_judge
from mast_tui.judges.twins import TwinsJudge

if TYPE_CHECKING:
    from mast_tui.judges.protocol import Judge
    from mast_tui.traces.model import FileReport, Trace

_BY_MODEL: Final = "mast_tui.cli.judge.llm"
"""Imported only for a model: its client takes as long to import as everything else."""

_INTO_SHARDS: Final = "mast_tui.scale.command"
_INTO_SHARDS_BY_MODEL: Final = "mast_tui.scale.model_command"
"""The modules of ``--out``, which the core imports only by name."""


@click.command()
@options.takes(JudgeRequest, JUDGE_RULES)
def judge_command(request: JudgeRequest) -> int:
    """Let a judge suggest failure modes in traces.

    'rules' needs no model and no network, nor does 'twins', which compares several runs of one
    task and finds steps that only failed runs share. 'llm' asks a model at any server with the
    OpenAI API; --dry-run shows first what is sent and the cost. Each trace is saved at once, and a
    trace that this version of the judge has judged is skipped (not by 'twins', which compares all
    runs): the same command continues an interrupted run. Blind annotators, and those with traces
    without suggestions in a study, do not see the results.
    """
    if request.judge_name == "llm" and request.out is None:
        return int(import_module(_BY_MODEL).judge_with_model(request))
    if request.judge_name == "twins":
        twins = TwinsJudge(traces_under(request.paths, []))
        if not request.quiet:
            say(f"mast-tui judge: {twins.summary}")
        return _judge_into_workspace(replace(request, again=True), twins)
    with WorkerPool(request.workers, quiet=request.quiet) as pool:
        if request.judge_name == "llm":
            return int(import_module(_INTO_SHARDS_BY_MODEL).judge_with_model(request, pool))
        judge = RulesJudge(chosen_rules(request.rule_names or "default"))
        if request.out is None:
            return _judge_into_workspace(request, judge, judge.covered_by, pool)
        return int(import_module(_INTO_SHARDS).judge_with_rules(request, judge, pool))


def _judge_into_workspace(
    request: JudgeRequest,
    judge: Judge,
    covered_by: tuple[str, ...] = (),
    pool: WorkerPool | None = None,
) -> int:
    """Run a judge without a model, save its suggestions, and print a summary.

    The workers of the pool do the work if it has any. Return the exit code.
    """
    workspace = open_workspace(request.common, create=True)
    taxonomy = working_taxonomy(workspace, request.common.taxonomy)
    hidden = command_viewer(
        workspace, taxonomy.ref, request.common, allow_unknown=True
    ).judges_hidden
    show = partial(show_trace, hidden=hidden)
    reports: list[FileReport] = []
    traces: Iterable[Trace | JudgedTrace] = traces_under(request.paths, reports)
    quiet = request.quiet
    if pool is not None and pool.workers is not None:
        quiet = True  # the pool shows the progress
        already_judged = (
            frozenset() if request.again else judged_traces(judge, taxonomy, workspace, covered_by)
        )
        traces = judge_under(request.paths, reports, TraceJudging(judge, already_judged), pool)
    summary = run_judge(
        judge,
        taxonomy,
        traces,
        workspace,
        covered_by=None if request.again else covered_by,
        on_progress=(lambda _: None) if quiet else show,
    )
    keep_missing_indices(workspace)
    workspace.close()
    document = run_document(summary, reports, taxonomy)
    return failed_files(print_run(document, taxonomy, hidden=hidden, as_json=request.as_json))

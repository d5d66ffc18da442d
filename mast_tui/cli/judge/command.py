"""``mast-tui judge``: let a judge look at traces, without the app."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from mast_tui.adjudication import keep_missing_indices
from mast_tui.cli.judge.options import JUDGE_RULES, JudgeRequest, looks_under, traces_under
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
@options.takes(JudgeRequest, JUDGE_RULES)
def judge_command(request: JudgeRequest) -> int:
    """Let a judge suggest failure modes in traces.

    'rules' needs no model and no network, nor does 'twins', which compares several runs of one
    task and looks for steps that only failed ones share. 'llm' asks a model at any server that
    speaks the OpenAI API; --dry-run first shows what that would send and cost. Each trace is saved
    at once, and a trace that this version of the judge has seen is skipped (not by 'twins', which
    compares all runs): the same command continues an interrupted run. Blind annotators, and those
    with traces without suggestions in a study, do not see the results.
    """
    if request.judge_name == "llm" and request.out is None:
        return int(import_module(_BY_MODEL).judge_with_model(request))
    if request.judge_name == "twins":
        twins = TwinsJudge(traces_under(request.paths, []))
        if not request.quiet:
            say(f"mast-tui judge: {twins.summary}")
        return _into_workspace(replace(request, again=True), twins)
    with WorkerPool(request.workers, quiet=request.quiet) as pool:
        if request.judge_name == "llm":
            return int(import_module(_INTO_SHARDS_BY_MODEL).judge_with_model(request, pool))
        judge = RulesJudge(chosen_rules(request.rule_names or "default"))
        if request.out is None:
            return _into_workspace(request, judge, judge.covered_by, pool)
        return int(import_module(_INTO_SHARDS).judge_with_rules(request, judge, pool))


def _into_workspace(
    request: JudgeRequest,
    judge: Judge,
    covered_by: tuple[str, ...] = (),
    pool: WorkerPool | None = None,
) -> int:
    """Have a judge look that asks no model; by workers where the pool has some."""
    place = open_workspace(request.common, create=True)
    chosen = working_taxonomy(place, request.common.taxonomy)
    hidden = asked_by(place, chosen.ref, request.common, anybody=True).judges_hidden
    show = partial(show_trace, hidden=hidden)
    reports: list[FileReport] = []
    given: Iterable[Trace | JudgedTrace] = traces_under(request.paths, reports)
    quiet = request.quiet
    if pool is not None and pool.workers is not None:
        quiet = True  # the pool tells how far it is
        known = frozenset() if request.again else judged_traces(judge, chosen, place, covered_by)
        given = looks_under(request.paths, reports, TraceJudging(judge, known), pool)
    summary = run_judge(
        judge,
        chosen,
        given,
        place,
        covered_by=None if request.again else covered_by,
        on_progress=(lambda _: None) if quiet else show,
    )
    keep_missing_indices(place)
    place.close()
    document = run_document(summary, reports, chosen)
    return failed_files(print_run(document, chosen, hidden=hidden, as_json=request.as_json))

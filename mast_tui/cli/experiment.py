"""``mast-tui experiment``: compare arms over several runs of the same tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import numpy as np

from mast_tui.adjudication import SpanOrders, traces_from_files
from mast_tui.adjudication.for_signatures import gold_of
from mast_tui.cli.agree import find_judge
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.report import FINITE_SCORE, visibility_of_labels, visible_outcomes
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import (
    command_viewer,
    report_hidden_outcomes,
    report_hidden_traces,
)
from mast_tui.cli.shared.common import open_workspace, say, workspace_taxonomy
from mast_tui.cli.shared.options import OptionRule
from mast_tui.cli.shared.report_files import (
    RECORD_RULES,
    SAME_FILE,
    ReportFiles,
    ReportOutput,
)
from mast_tui.configuration import read_judge_configuration
from mast_tui.figures.experiment import Experiment, experiment_figures
from mast_tui.figures.power import power_figures
from mast_tui.figures.record import FigureIndex
from mast_tui.figures.signatures.costs import usage_from
from mast_tui.figures.source.signatures import (
    experiment_of,
    input_from_workspace,
    runs_under,
    traces_in,
    without_outcomes,
)
from mast_tui.figures.source.verdicts import labelled_by
from mast_tui.labels import GOLD
from mast_tui.reports.experiment import experiment_report
from mast_tui.session import Viewer, visibility_json
from mast_tui.traces.io.named_paths import paths_of
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.outcome_files import update_outcomes

if TYPE_CHECKING:
    from mast_tui.gold import GoldKind
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRequest:
    """The options of ``mast-tui experiment``."""

    paths: tuple[Path, ...] = options.paths()
    arms: str = options.option(
        "--arms",
        default="version",
        show_default=True,
        metavar="FIELD[,FIELD]",
        help="The field that forms the arms: version, model, system, benchmark, reader, date, or "
        "several of them.",
    )
    arm: tuple[str, ...] = options.option(
        "--arm",
        multiple=True,
        metavar="NAME=PATH",
        help="An arm, as the file or folder of its runs; repeat it for each arm.",
    )
    baseline: str | None = options.option(
        "--baseline",
        metavar="VALUE",
        help="The arm that the others are compared with. Default: the first one.",
    )
    label_source: str = options.option(
        "--labels",
        default="gold",
        show_default=True,
        metavar="gold|NAME",
        help="The annotator or judge whose labels count.",
    )
    gold: GoldKind | None = options.gold()
    judge: str | None = options.option(
        "--judge",
        metavar="NAME",
        help="A judge that has labelled all runs, if the gold covers a random part of them. Shares "
        "of modes are then the judge's, corrected by its errors on that part.",
    )
    modes: tuple[str, ...] = options.option(
        "--mode",
        multiple=True,
        metavar="CODE",
        help="A mode chosen beforehand for the test; p-values are adjusted over these modes only.",
    )
    change: float = options.option(
        "--change",
        type=click.FloatRange(0, 100, min_open=True),
        default=20.0,
        show_default=True,
        help="The change to plan for, in percentage points.",
    )
    without_power: bool = options.option(
        "--without-power", is_flag=True, help="Leave out the planning, which takes some seconds."
    )
    cost: bool = options.option(
        "--cost",
        is_flag=True,
        help="Also compare tokens, minutes and cost; reads the files of the runs. Costs use the "
        "model prices in the configuration.",
    )
    failed_below: float | None = options.option(
        "--failed-below",
        type=float,
        metavar="X",
        help="Derive the outcome from the score: a run below X has failed.",
    )
    seed: int = options.seed()
    language_files: ReportFiles = options.files_by_language(
        ReportFiles.named,
        html="Write the report as one HTML page.",
        markdown="Write it as Markdown.",
        csv="Write every figure as a row of a table.",
        latex="Write its tables for LaTeX.",
    )
    records: bool = options.option(
        "--records",
        is_flag=True,
        help="Print all figures as flat records, one JSON object a line.",
    )
    output: Path | None = options.output(
        help="With --records: the file for them, by its ending .jsonl, .csv or .parquet."
    )
    force: bool = options.force()
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()

    @property
    def files(self) -> ReportFiles:
        """The files to write."""
        return replace(self.language_files, records=self.output)

    @property
    def arm_paths(self) -> dict[str, tuple[Path, ...]]:
        """The paths of the runs by the name of their arm.

        Raises:
            click.UsageError: An ``--arm`` is not NAME=PATH.
        """
        paths_by_arm: dict[str, tuple[Path, ...]] = {}
        for text in self.arm:
            name, equals, path = text.partition("=")
            if not (name.strip() and equals and path.strip()):
                raise click.UsageError(f"--arm {text}: write it as NAME=PATH")
            paths_by_arm[name.strip()] = (
                *paths_by_arm.get(name.strip(), ()),
                *paths_of(path.strip()),
            )
        return paths_by_arm


_RULES: Final = (
    FINITE_SCORE,
    OptionRule[ExperimentRequest](
        "--arm forms the arms by their paths; leave out {other}",
        options=("--arm",),
        excludes=("--arms",),
    ),
    OptionRule[ExperimentRequest](
        "--judge is used with the gold; leave out --labels",
        options=("--judge",),
        when=lambda request: request.label_source != GOLD,
    ),
    OptionRule[ExperimentRequest](
        "--gold is about the gold labels; leave out --labels",
        options=("--gold",),
        when=lambda request: request.label_source != GOLD,
    ),
    *RECORD_RULES,
    SAME_FILE,
)


@click.command()
@options.takes(ExperimentRequest, _RULES)
def experiment_command(request: ExperimentRequest) -> None:
    """Test whether a change helped: compare arms on the same tasks.

    With PATH … only the runs in these files and folders count. Runs belong to one task if their
    task_id is the same; without a task_id, if the text of the task is the same.

    All runs count for success. For annotators, only labels on runs that they have finished or
    adjudicate count; this is recorded.

    Example: mast-tui experiment --arms version --baseline v1
    """
    arm_paths = request.arm_paths
    files = request.files
    workspace = open_workspace(request.common)
    outputs = outputs_beside(workspace, force=request.force)
    files.check(outputs)
    if request.judge is not None:
        request = replace(request, judge=find_judge(workspace, request.judge))
    taxonomy = workspace_taxonomy(workspace, request.common.taxonomy)
    viewer = command_viewer(workspace, taxonomy.ref, request.common)
    for line in update_outcomes(workspace):
        say(line)
    visibility = visibility_of_labels(viewer, request.label_source)
    visible_traces = None if visibility is None else visibility.visible
    if visible_traces is not None and request.judge is not None:
        judge_visibility = visibility_of_labels(viewer, request.judge)
        assert judge_visibility is not None, "who sees only some labels sees only some judgements"
        visible_traces &= judge_visibility.visible
    viewer.reveal(() if visibility is None else visibility.revealing)
    experiment = _experiment_of_request(
        workspace, taxonomy, viewer, request, arm_paths, visible_traces
    )
    figures = experiment_figures(experiment)
    if not request.without_power:
        figures += power_figures(experiment, seed=request.seed)
    hidden = () if visibility is None else visibility.hidden
    if not request.as_json:
        report_hidden_traces(viewer, hidden)
    report = experiment_report(experiment, FigureIndex(figures))
    document = {**report.document, **visibility_json(viewer, hidden)}
    output = ReportOutput.of_options(files, as_json=request.as_json, records=request.records)
    output.show(report, document, outputs, figures)


def _experiment_of_request(
    workspace: Workspace,
    taxonomy: Taxonomy,
    viewer: Viewer,
    request: ExperimentRequest,
    arm_paths: dict[str, tuple[Path, ...]],
    visible: frozenset[str] | None,
) -> Experiment:
    """Build the experiment from all runs, with the labels that the viewer may see."""
    order_of = SpanOrders(workspace)
    # Only their labels are read, so that the sources of the gold are counted over them alone.
    selections = [
        traces_in(workspace, paths)
        for paths in (request.paths, tuple(chain.from_iterable(arm_paths.values())))
        if paths
    ]
    labelled = selections if visible is None else [*selections, visible]
    inputs = input_from_workspace(
        workspace,
        taxonomy,
        labels=request.label_source,
        by="all" if arm_paths else request.arms,
        failed_below=request.failed_below,
        gold=gold_of(workspace, taxonomy, order_of),
        order_of=order_of,
        traces=frozenset.intersection(*labelled) if labelled else None,
        which=request.gold or "all",
        with_unlabelled=True,
    )
    if request.paths:
        runs_under(workspace, inputs, {"PATH": request.paths})  # refuses paths without a run
        inputs = inputs.only(np.array([trace in selections[0] for trace in inputs.traces]))
    if arm_paths:
        inputs = runs_under(workspace, inputs, arm_paths)
    inputs, hidden_outcomes = without_outcomes(inputs, visible_outcomes(viewer, inputs.traces))
    if not request.as_json:
        report_hidden_outcomes(viewer, hidden_outcomes)
    judge = None
    if request.judge is not None:
        judge = labelled_by(workspace, taxonomy, request.judge, visible)
    return experiment_of(
        inputs,
        baseline=request.baseline,
        tested=request.modes,
        judge=judge,
        usage_of=usage_from(traces_from_files(workspace)) if request.cost else None,
        prices=read_judge_configuration().prices if request.cost else None,
        change=request.change / 100,
    )

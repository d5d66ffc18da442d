"""``mast-tui report``: show how runs fail."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sized
from dataclasses import dataclass, replace
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np

from mast_tui.adjudication import (
    OrderOf,
    SpanOrders,
    keep_missing_indices,
    scores_from_files,
    traces_from_files,
)
from mast_tui.adjudication.for_signatures import corrected_prevalence, extras_for, gold_of
from mast_tui.cli.command_line import CommonOptions
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
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.experiment import Experiment, experiment_figures
from mast_tui.figures.record import FigureIndex
from mast_tui.figures.signatures.costs import usage_from
from mast_tui.figures.signatures.model import Rules, SignatureInput
from mast_tui.figures.signatures.report import SignatureReport, signature_report
from mast_tui.figures.source.signatures import (
    benchmark_scores,
    experiment_of,
    input_from_workspace,
    without_outcomes,
)
from mast_tui.gc_tuning import uncollected
from mast_tui.gold import GoldKind, no_orders
from mast_tui.labels import GOLD
from mast_tui.reports.signatures import signatures_report, what_helps
from mast_tui.session import (
    Viewer,
    VisibleWork,
    finished_or_judged_traces,
    visibility_json,
    visible_work,
)
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.outcome_files import update_outcomes
from mast_tui.workspace.registers.pseudonyms import Pseudonyms, pseudonyms_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

_SHARDS: Final = "mast_tui.scale.report"
"""The module of the report on shards. The core may import it only by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """The options of ``mast-tui report``."""

    shards: str | None = options.argument(required=False, metavar="[SHARDS]")
    by: str = options.option(
        "--by",
        default="model",
        show_default=True,
        metavar="FIELD[,FIELD]|all",
        help="The field that forms the groups: model, system, benchmark, task, reader, version, "
        "date, or several of them; all makes one group. Without --by all traces come first, then "
        "the models with five traces or more.",
    )
    label_source: str = options.option(
        "--labels",
        default="gold",
        show_default=True,
        metavar="gold|NAME",
        help="The annotator or judge whose labels count.",
    )
    gold: GoldKind | None = options.gold()
    failed_below: float | None = options.option(
        "--failed-below",
        type=float,
        metavar="X",
        help="Derive the outcome from the score: a trace below X has failed.",
    )
    compare: str | None = options.option(
        "--compare",
        metavar="A,B",
        help="Compare two groups as the arms of an experiment. Use mast-tui experiment instead: "
        "this option will be removed.",
    )
    paired: str | None = options.option(
        "--paired",
        metavar="MODEL,MODEL",
        help="Compare two models on the tasks that both have run. Use mast-tui experiment instead: "
        "this option will be removed.",
    )
    alpha: float = options.option(
        "--alpha",
        type=float,
        default=0.05,
        show_default=True,
        help="A mode with a smaller adjusted p is fatal.",
    )
    margin: float = options.option(
        "--margin",
        type=float,
        default=10.0,
        show_default=True,
        help="A mode whose interval of the difference is within this many points is benign.",
    )
    least: int = options.option(
        "--least",
        type=int,
        default=5,
        show_default=True,
        help="With fewer failed or successful traces every mode is unclear.",
    )
    isolated: int = options.option(
        "--isolated",
        type=int,
        default=2,
        show_default=True,
        help="The most modes of an isolated failure.",
    )
    cascading: int = options.option(
        "--cascading", type=int, default=4, show_default=True, help="The fewest modes of a cascade."
    )
    rounds: int = options.rounds(help="The number of resamples; 0 gives no intervals.")
    seed: int = options.seed()
    without_places: bool = options.option(
        "--without-places", is_flag=True, help="Leave out the places of labels."
    )
    bill: bool = options.option(
        "--bill",
        is_flag=True,
        help="Count tokens and minutes after the first fatal failure; reads the files of failed "
        "runs.",
    )
    scores: bool = options.option(
        "--scores",
        is_flag=True,
        help="Report the means of further scores of the benchmark, such as entity@k; reads the "
        "files of the runs.",
    )
    language_files: ReportFiles = options.files_by_language(
        ReportFiles.named,
        html="Write the report as one HTML page that needs no network.",
        markdown="Write it as Markdown.",
        csv="Write every figure as a row of a tidy table.",
        latex="Write its tables for LaTeX.",
    )
    figures: Path | None = options.option(
        "--figures",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Write each figure as an image into this folder.",
    )
    image: str = options.option(
        "--figures-format",
        type=click.Choice(["svg", "pdf", "png"]),
        default="svg",
        show_default=True,
        help="The format of the figures; PDF and PNG need mast-tui[figures].",
    )
    bare: bool = options.option(
        "--bare", is_flag=True, help="Leave title and caption out of the figures, for a paper."
    )
    records: bool = options.option(
        "--records",
        is_flag=True,
        help="Print all figures as flat records, one JSON object a line.",
    )
    output: Path | None = options.output(
        help="With --records: the file for them, by its ending .jsonl, .csv or .parquet."
    )
    pseudonyms: bool = options.pseudonyms()
    force: bool = options.force()
    workers: str | None = options.workers()
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()

    @property
    def files(self) -> ReportFiles:
        """The files to write."""
        return replace(
            self.language_files,
            chart_folder=self.figures,
            image_format=self.image,
            without_text=self.bare,
            records=self.output,
        )

    @property
    def rules(self) -> Rules:
        """The thresholds of the figures.

        Raises:
            click.UsageError: A threshold is out of range.
        """
        margin = self.margin / 100
        try:
            return Rules(self.alpha, margin, self.least, self.isolated, self.cascading)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two groups of ``--compare`` or models of ``--paired``; None without these options.

        Raises:
            click.UsageError: The option does not name two groups.
        """
        if self.compare is not None:
            return split_pair(self.compare, "--compare")
        return None if self.paired is None else split_pair(self.paired, "--paired")


_SHARD_OPTIONS: Final = (
    "--by",
    "--failed-below",
    "--alpha",
    "--margin",
    "--least",
    "--annotator",
    "--blind",
    "--assisted",
    "--workers",
    "--json",
)
"""The options that shards accept."""

FINITE_SCORE: Final = OptionRule[Any](
    "--failed-below needs a score, not {request.failed_below:g}",
    options=("--failed-below",),
    when=lambda request: not isfinite(request.failed_below),
)
_RULES: Final = (
    FINITE_SCORE,
    OptionRule[ReportRequest](
        "--bill needs the places of labels; leave out --without-places",
        options=("--bill",),
        excludes=("--without-places",),
    ),
    OptionRule[ReportRequest](
        "--gold selects among the gold labels; leave out --labels",
        options=("--gold",),
        when=lambda request: request.label_source != GOLD,
    ),
    OptionRule[ReportRequest](
        "{option} needs a workspace; import a part of the shards into one",
        options=options.flags_of(ReportRequest, without=_SHARD_OPTIONS),
        when=lambda request: request.shards is not None,
    ),
    OptionRule[ReportRequest](
        "--bare and --figures-format need --figures",
        needs=("--figures",),
        when=lambda request: request.bare or request.image != "svg",
    ),
    *RECORD_RULES,
    SAME_FILE,
    OptionRule[ReportRequest](
        "--paired compares two models; leave out --compare and --by",
        options=("--paired",),
        excludes=("--compare",),
    ),
    OptionRule[ReportRequest](
        "--paired compares two models; leave out --compare and --by",
        options=("--paired",),
        when=lambda request: request.by != "model",
    ),
)


@click.command()
@options.takes(ReportRequest, _RULES)
def report_command(request: ReportRequest) -> None:
    """Show how runs fail: which failure modes, how certain, and where.

    With SHARDS, a folder or URL that 'mast-tui judge --out' has written to, the report is about
    that judge's verdicts on all traces in it, and needs no workspace.

    For annotators, only traces that they have finished or adjudicate count; this is recorded.

    Example: mast-tui report --by system --html report.html
    """
    rules = request.rules
    if request.shards is not None:
        import_module(_SHARDS).report_shards(request, rules)
        return
    _ = request.pair  # reports a wrong pair before anything is read
    output = ReportOutput.of_options(
        request.files, as_json=request.as_json, records=request.records
    )
    workspace = open_workspace(request.common)
    outputs = outputs_beside(workspace, force=request.force)
    output.files.check(outputs)
    taxonomy = workspace_taxonomy(workspace, request.common.taxonomy)
    viewer = command_viewer(workspace, taxonomy.ref, request.common)
    for line in update_outcomes(workspace):
        say(line)
    visibility = visibility_of_labels(viewer, request.label_source)
    inputs, hidden_outcomes = _visible_input(viewer, taxonomy, request, visibility)
    report = compute_report(
        workspace,
        taxonomy,
        inputs,
        request,
        traces=viewer.traces,
        scores=_visible_scores(viewer, inputs) if request.scores else None,
    )
    pseudonyms = pseudonyms_of(workspace) if request.pseudonyms else None
    if pseudonyms is not None:
        report = _with_pseudonyms(report, pseudonyms)
    experiment = None
    if request.pair is not None:
        all_runs, hidden_outcomes = _visible_input(
            viewer, taxonomy, request, visibility, with_unlabelled=True
        )
        # The names of annotators may be pseudonyms.
        names = report.inputs
        runs = replace(all_runs, label_source=names.label_source, gold=names.gold)
        experiment = experiment_of_pair(runs, request)
    # The extras, such as quotes, are not a part of the JSON document.
    extras = None
    if output.files.by_language or output.stdout in (None, "text"):
        extras = extras_for(
            workspace, taxonomy, inputs, places=not request.without_places, letters=pseudonyms
        )
    hidden = frozenset[str]() if visibility is None else visibility.hidden
    if not request.as_json:
        report_hidden_traces(viewer, hidden)
        report_hidden_outcomes(viewer, hidden_outcomes)
    presentation = signatures_report(
        report,
        extras=extras,
        groups_asked="--by" in options.typed_names(),
        experiment=experiment,
    )
    figures = report.figures.figures
    if experiment is not None:
        _arms, experiment_index = experiment
        figures += experiment_index.figures
    document = {
        **presentation.document,
        "revisions": list(workspace.revisions_read(taxonomy.ref)),
        "what_helps": what_helps(taxonomy),
        **_sight_json(viewer, hidden, hidden_outcomes, pseudonyms),
    }
    output.show(presentation, document, outputs, figures)


def _visible_input(
    viewer: Viewer,
    taxonomy: Taxonomy,
    request: ReportRequest,
    visibility: VisibleWork | None,
    *,
    with_unlabelled: bool = False,
) -> tuple[SignatureInput, int]:
    """Read the input that the viewer may see, and count the hidden outcomes.

    The traces on which this shows the viewer others' labels are recorded. With ``with_unlabelled``,
    traces without visible labels are added, as for an experiment.
    """
    visible_traces = None if visibility is None else visibility.visible
    # Workers only read traces for the positions of labels.
    with WorkerPool(None if request.without_places else request.workers) as pool:
        inputs = signature_input(
            viewer.workspace,
            taxonomy,
            request,
            traces=visible_traces,
            pool=pool,
            with_unlabelled=with_unlabelled,
        )
    # After this record, the outcomes of these traces are visible too.
    viewer.reveal(() if visibility is None else visibility.revealing)
    return without_outcomes(inputs, visible_outcomes(viewer, inputs.traces))


def _visible_scores(
    viewer: Viewer, inputs: SignatureInput
) -> Mapping[str, NDArray[np.float64]] | None:
    """Return further scores of the benchmark by metric, without hidden ones."""
    scores_of = scores_from_files(viewer.workspace)
    # A score would reveal a hidden outcome.
    with_outcome = visible_outcomes(viewer, inputs.traces)
    return benchmark_scores(
        inputs.traces,
        lambda trace: scores_of(trace) if with_outcome is None or trace in with_outcome else (),
    )


def _with_pseudonyms(report: SignatureReport, pseudonyms: Pseudonyms) -> SignatureReport:
    inputs = replace(
        report.inputs,
        label_source=pseudonyms.name(report.inputs.label_source),
        gold=pseudonyms.in_document(report.inputs.gold),
    )
    return replace(report, inputs=inputs)


def _sight_json(
    viewer: Viewer, hidden: Sized, hidden_outcomes: int, pseudonyms: Pseudonyms | None
) -> dict[str, Any]:
    """Return the fields of the document about hidden traces and outcomes."""
    fields = visibility_json(viewer, hidden)
    if fields:
        fields["sight"]["outcomes_hidden"] = hidden_outcomes
    return fields if pseudonyms is None else pseudonyms.in_document(fields)


def split_pair(text: str, option: str) -> tuple[str, str]:
    """Split the two names in ``A,B``.

    Args:
        text: The value of the option.
        option: The name of the option, for the error message.

    Raises:
        click.UsageError: There are not two different names.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(names) != 2 or len(set(names)) != 2:
        raise click.UsageError(f"{option} needs two different names, as A,B")
    first, second = names
    return first, second


def compute_report(
    workspace: Workspace,
    taxonomy: Taxonomy,
    inputs: SignatureInput,
    request: ReportRequest,
    *,
    traces: Container[str] | None = None,
    scores: Mapping[str, NDArray[np.float64]] | None = None,
) -> SignatureReport:
    """Compute the report from the input of a workspace.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the labels.
        inputs: The input.
        request: The options of the command.
        traces: The traces that may be seen; None for all.
        scores: Further scores of the benchmark by metric.
    """
    usage_of = usage_from(traces_from_files(workspace)) if request.bill else None
    return signature_report(
        inputs,
        Resampling(request.rounds, request.seed),
        rules=request.rules,
        corrected=corrected_prevalence(workspace, taxonomy, inputs, traces),
        usage_of=usage_of,
        scores=scores,
    )


def experiment_of_pair(
    inputs: SignatureInput, request: ReportRequest
) -> tuple[Experiment, FigureIndex] | None:
    """Return an experiment with the two groups as arms, and its figures; None without a pair.

    Args:
        inputs: The input of the report.
        request: The options of the command.

    Raises:
        click.ClickException: There is no such group, or with ``--paired`` no shared task.
    """
    pair = request.pair
    if pair is None:
        return None
    first, second = pair
    option = "--compare" if request.paired is None else "--paired"
    for name in pair:
        if name not in inputs.group_names:
            names_text = ", ".join(inputs.group_names) or "none"
            raise click.ClickException(
                f"{option}: no {inputs.by} {name!r}; there are: {names_text}"
            )
    say(
        f"{option} will be removed in the next release; use: mast-tui experiment --arms "
        f"{inputs.by} --baseline {second}"
    )
    experiment = experiment_of(
        inputs.only(np.isin(inputs.group, [inputs.group_names.index(name) for name in pair])),
        baseline=second,
    )
    figures = FigureIndex(experiment_figures(experiment))
    shared_count = figures.table("experiment", group=first).count("shared_tasks")
    if request.paired is not None and not (shared_count and inputs.task_numbers is not None):
        raise click.ClickException(f"{option} {first},{second}: no known task was run by both")
    return experiment, figures


def visibility_of_labels(viewer: Viewer, label_source: str) -> VisibleWork | None:
    """Return the traces with labels that the viewer may see; None for all.

    Args:
        viewer: The viewer.
        label_source: ``gold`` or the name of an annotator.
    """
    if viewer.name is None or not viewer.sees_finished_only:
        return None
    return visible_work(
        viewer.workspace,
        viewer.name,
        viewer.taxonomy,
        None if label_source == GOLD else label_source,
        blind=viewer.blind,
        traces_by_author=finished_or_judged_traces(viewer.workspace, viewer.taxonomy),
    )


def visible_outcomes(viewer: Viewer, traces: Iterable[str]) -> frozenset[str] | None:
    """Return the traces with an outcome that the viewer may see; None for all.

    Args:
        viewer: The viewer.
        traces: The ids of the traces.
    """
    if not viewer.blind:
        return None
    return frozenset(filter(viewer.may_see_outcomes(), traces))


@uncollected()
def signature_input(
    workspace: Workspace,
    taxonomy: Taxonomy,
    request: ReportRequest,
    *,
    traces: Container[str] | None = None,
    pool: WorkerPool | None = None,
    with_unlabelled: bool = False,
) -> SignatureInput:
    """Read the input of a report.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the labels.
        request: The options of the command.
        traces: The traces that may be seen; None for all.
        pool: The workers that read traces; None for this process alone.
        with_unlabelled: Whether to add all other traces, with every mode open.
    """
    if pool is not None and pool.workers is not None:
        pool.on_trace(keep_missing_indices(workspace, pool.workers, pool.show_progress))
    order_of: OrderOf = no_orders if request.without_places else SpanOrders(workspace)
    return input_from_workspace(
        workspace,
        taxonomy,
        labels=request.label_source,
        by=request.by,
        failed_below=request.failed_below,
        gold=gold_of(workspace, taxonomy, order_of),
        order_of=order_of,
        traces=traces,
        which=request.gold or "all",
        with_unlabelled=with_unlabelled,
    )

"""``mast-tui agree``: the agreement of annotators, and the quality of a judge."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.adjudication import SpanOrders, read_work_by_trace
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer, report_hidden_traces
from mast_tui.cli.shared.common import (
    open_workspace,
    print_json,
    print_line,
    print_table,
    say,
    workspace_taxonomy,
)
from mast_tui.cli.shared.options import OptionRule
from mast_tui.cli.shared.report_files import RECORD_RULES, SAME_FILE, ReportFiles, ReportOutput
from mast_tui.columns import TableColumn, key_column
from mast_tui.counts import counted
from mast_tui.figures.agreement.drill_down import (
    judged_source_traces,
    source_traces,
)
from mast_tui.figures.agreement.report import (
    Agreement,
    StudyInput,
    agreement_figures,
)
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.judge.compare import judges_compared
from mast_tui.figures.judge.confusion import compared_units
from mast_tui.figures.judge.input import (
    GoldReference,
    JudgedOutsideWorkspace,
    JudgeInput,
    assisted_passes,
    judge_input_from_workspace,
)
from mast_tui.figures.judge.report import judge_report
from mast_tui.figures.judge.thresholds import (
    Thresholds,
    fit_thresholds,
    input_on_traces,
    named_thresholds,
    with_thresholds,
)
from mast_tui.figures.source.agreement import span_input_from_workspace, study_from_workspace
from mast_tui.figures.spans.input import SpanInput
from mast_tui.figures.spans.report import SpanAgreement, span_figures
from mast_tui.figures.time_study import LONGEST_PAUSE, minutes_worked, time_study
from mast_tui.gc_tuning import uncollected
from mast_tui.gold import GoldKind
from mast_tui.labels import (
    Pass,
    Which,
    is_judge,
)
from mast_tui.output_files import Outputs
from mast_tui.reports.agreement import HiddenTraces, agreement_report
from mast_tui.session import Viewer, visibility_json
from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.hold_out import TracePart, trace_part
from mast_tui.workspace.registers.pseudonyms import pseudonyms_of

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy

CountOutsideWorkspace = Callable[[str, Sequence[TraceRecord]], JudgedOutsideWorkspace]
"""Counts the verdicts of the named judge on traces outside the given ones."""


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """The people and judges to compare, and the figures to compute.

    Attributes:
        annotators: The people to compare; None for all.
        judge: The full name of a judge to compare with the reference.
        other_judge: The full name of a second judge, to compare with the first.
        against: The reference: ``gold``, or the name of an annotator.
        gold: The gold labels to use as the reference.
        which: The pass to use: ``first`` or ``last``.
        rounds: The number of resamples for intervals.
        seed: The seed of the resamples.
        places: Also compare the positions of labels in the traces.
        traces: The traces that may be seen; None for all.
        viewer: The person who asks; None if unknown.
        blind: True if the viewer labels blind.
        may_see_judges: Checks whether the viewer may see judges' verdicts on a trace, by its id.
        count_outside_workspace: Counts the judge's verdicts on traces outside the workspace.
        thresholds: Fit thresholds of the judge's confidence on the calibration traces.
    """

    annotators: Sequence[str] | None = None
    judge: str | None = None
    other_judge: str | None = None
    against: str = "gold"
    gold: GoldKind = "all"
    which: Which = "first"
    rounds: int = 2000
    seed: int = 0
    places: bool = True
    traces: Container[str] | None = None
    viewer: str | None = None
    blind: bool = False
    may_see_judges: Callable[[str], bool] = lambda _trace_id: True
    count_outside_workspace: CountOutsideWorkspace | None = None
    thresholds: bool = False


@uncollected()
def compute_agreement(
    workspace: Workspace, taxonomy: Taxonomy, comparison: ComparisonOptions
) -> Agreement:
    """Compute the agreement of people, and on request that of spans and judges.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the labels.
        comparison: The people and judges to compare.

    Raises:
        WorkspaceError: The workspace has no annotator or judge of a requested name.
    """
    passes = workspace.passes(taxonomy=taxonomy.ref)
    people = study_from_workspace(
        workspace,
        taxonomy,
        annotators=comparison.annotators,
        which=comparison.which,
        traces=comparison.traces,
        passes=passes,
    )

    # A wrong name fails before the slow computation of figures.
    judged = judge_input(workspace, taxonomy, comparison)
    other_judged = judge_input(
        workspace, taxonomy, replace(comparison, judge=comparison.other_judge)
    )
    thresholds = None
    if comparison.thresholds and judged is not None:
        judged, thresholds = _with_thresholds(workspace, judged)

    resampling = Resampling(comparison.rounds, comparison.seed)
    report = agreement_figures(people, resampling)
    if comparison.places:
        spans = _span_agreement(workspace, taxonomy, comparison, people, passes)
        report = replace(report, spans=spans)
    if judged is None:
        return report
    judge = judge_report(judged, resampling)
    if comparison.blind:
        # Prevalence would reveal verdicts on traces that the viewer has yet to label.
        judge = judge.without_prevalence()
    return replace(
        report,
        judge=replace(judge, thresholds=thresholds),
        judges=None if other_judged is None else judges_compared(judged, other_judged, resampling),
    )


def judge_input(
    workspace: Workspace, taxonomy: Taxonomy, comparison: ComparisonOptions
) -> JudgeInput | None:
    """Read the verdicts of a judge and of its reference; None without a judge.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the verdicts.
        comparison: The judge, and its reference: the gold or an annotator.

    Raises:
        WorkspaceError: The workspace has no judge or annotator of a requested name.
    """
    if comparison.judge is None:
        return None
    order_of = SpanOrders(workspace)
    against: GoldReference | str = comparison.against
    if comparison.against == "gold":
        gold = {
            trace: work.gold(taxonomy, order_of(trace))
            for trace, work in read_work_by_trace(workspace, taxonomy).items()
        }
        against = GoldReference(gold, settled_only=comparison.gold == "settled")
    judged = judge_input_from_workspace(
        workspace,
        taxonomy,
        comparison.judge,
        against,
        order_of=order_of,
        which=comparison.which,
        traces=comparison.traces,
        viewer=comparison.viewer,
    )
    if comparison.count_outside_workspace is not None:
        # The verdicts outside the workspace are in shards.
        judged_traces = {trace for trace, _ in judged.verdicts}
        records = [record for record in workspace.traces() if record.trace_id in judged_traces]
        judged = replace(
            judged, outside_workspace=comparison.count_outside_workspace(judged.judge, records)
        )
    # The judge's verdicts on traces that are not labelled yet may be hidden from the viewer.
    visible_unlabelled = filter(comparison.may_see_judges, judged.unlabelled)
    return replace(judged, unlabelled=frozenset(visible_unlabelled))


def _with_thresholds(
    workspace: Workspace, judged_input: JudgeInput
) -> tuple[JudgeInput, Thresholds]:
    """Fit thresholds on the calibration traces, store them, and apply them to the other traces.

    Raises:
        click.ClickException: No calibration trace has a verdict of people.
    """
    traces = {trace_id for trace_id, _ in judged_input.reference.verdicts}
    calibration_traces = {
        trace_id for trace_id in traces if trace_part(workspace, trace_id) is TracePart.CALIBRATION
    }
    if not calibration_traces:
        raise click.ClickException(
            "no calibration trace has a person's verdict; 'mast-tui study set --split "
            "0.5,0.2,0.3' sets traces aside for --thresholds"
        )
    threshold_by_slug = fit_thresholds(input_on_traces(judged_input, calibration_traces))
    thresholds = named_thresholds(judged_input, threshold_by_slug, calibration_traces)
    workspace.set_setting(
        f"judge.thresholds:{judged_input.taxonomy_ref}:{judged_input.judge}",
        json.dumps(asdict(thresholds)),
    )
    other_traces_input = input_on_traces(judged_input, traces - calibration_traces)
    return with_thresholds(other_traces_input, threshold_by_slug), thresholds


def _span_agreement(
    workspace: Workspace,
    taxonomy: Taxonomy,
    comparison: ComparisonOptions,
    study: StudyInput,
    passes: Sequence[Pass],
) -> SpanAgreement:
    """Compute the agreement on the positions of labels in the traces."""
    span_input = _input_without_traces(workspace, study)
    if span_input is None:
        orders = SpanOrders(workspace)
        span_input = span_input_from_workspace(
            workspace,
            taxonomy,
            study.annotators,
            order_of=orders.spans_of,
            length_of=orders.length_of,
            which=comparison.which,
            traces=comparison.traces,
            passes=passes,
        )
    return span_figures(span_input, Resampling(comparison.rounds, comparison.seed))


def _input_without_traces(workspace: Workspace, study: StudyInput) -> SpanInput | None:
    """Return an input without spans if no trace of several annotators was ever opened.

    Labels can be imported without the files of their traces. Return None if a trace was opened.
    """
    finished_traces = [study.finished.get(name, frozenset()) for name in study.annotators]
    finish_counts = Counter(trace for traces in finished_traces for trace in traces)
    shared_traces = {trace for trace, count in finish_counts.items() if count > 1}
    # Opening a trace records its number of spans and its path.
    for column in ("spans", "path"):
        rows = workspace.read_columns("traces", ("id",), list, not_null=column)
        if not shared_traces.isdisjoint(trace for (trace,) in rows):
            return None
    return SpanInput(
        study.taxonomy_ref,
        study.modes,
        study.annotators,
        study.pass_label,
        (),
        {name: len(traces) for name, traces in zip(study.annotators, finished_traces, strict=True)},
        not_at_hand=len(shared_traces),
        examples=study.examples,
    )


def judges_beginning(judges: Sequence[str], text: str) -> list[str]:
    """Return the judge of this exact name, or all judges with this beginning of a name.

    Args:
        judges: The full names of the judges.
        text: The name, or the beginning of one, with or without the prefix ``judge:``.
    """
    if text in judges:
        return [text]
    return [name for name in judges if name.startswith((text, f"judge:{text}"))]


def find_judge(workspace: Workspace, text: str) -> str:
    """Find a judge by its name or a unique beginning of it.

    The prefix ``judge:`` may be left out.

    Args:
        workspace: The workspace.
        text: The name, or its beginning.

    Raises:
        click.ClickException: No judge or several judges match.
    """
    judges = workspace.judges()
    matches = judges_beginning(judges, text)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise click.ClickException(
            f"--judge {text!r} matches {', '.join(matches)}; give more of the name"
        )
    hint = f"there are: {', '.join(judges)}" if judges else "run 'mast-tui judge' first"
    raise click.ClickException(f"no judge {text!r} in this workspace; {hint}")


_SHARDS: Final = "mast_tui.scale.figures"
"""The module of ``--shards``. The core may import it only by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreeRequest:
    """The options of ``mast-tui agree``."""

    annotators: str | None = options.option(
        "--annotators",
        metavar="A,B,…",
        help="The annotators to compare. Default: all people with finished traces; judges only by "
        "name.",
    )
    judges: tuple[str, ...] = options.option(
        "--judge",
        multiple=True,
        metavar="NAME",
        help="Measure this judge too; the beginning of its name is enough if it is unique. Twice: "
        "compare two judges on the same traces.",
    )
    against: str | None = options.option(
        "--against", metavar="gold|NAME", help="The reference for the judge. Default: gold."
    )
    gold: GoldKind | None = options.gold()
    shards: str | None = options.option(
        "--shards",
        metavar="FOLDER-or-URL",
        help="With --judge: also count its verdicts on the traces in these shards (docs/scale.md).",
    )
    thresholds: bool = options.option(
        "--thresholds",
        is_flag=True,
        help="With --judge: count a finding only if its confidence reaches the threshold of its "
        "mode. Thresholds are fitted on the calibration traces of 'study set --split'; the judge "
        "is measured on all other traces.",
    )
    which: Which = options.which_pass(default="1")
    rounds: int = options.rounds(
        help="The number of resamples of the traces; 0 gives no intervals."
    )
    seed: int = options.seed()
    no_spans: bool = options.option(
        "--no-spans", is_flag=True, help="Leave out the places of labels."
    )
    time: bool = options.option(
        "--time",
        is_flag=True,
        help="Show instead the minutes per trace and label with and without suggestions, and how "
        "much more often people find a mode present if a judge suggests it.",
    )
    mode: str | None = options.option(
        "--traces",
        metavar="MODE",
        help="List instead the traces behind the figures of a mode, disagreements first.",
    )
    csv_file: Path | None = options.report_file(
        "--csv", help="Also write every figure as one row of a CSV file."
    )
    markdown: str | None = options.option(
        "--markdown",
        metavar="OUT|-",
        help="Also write the tables as Markdown; - prints them instead of the text.",
    )
    latex_file: Path | None = options.report_file("--latex", help="Also write the tables as LaTeX.")
    html_file: Path | None = options.report_file(
        "--html", help="Also write the report as one HTML page."
    )
    methods: bool = options.option(
        "--methods",
        is_flag=True,
        help="Print instead a paragraph for the methods section of a paper.",
    )
    records: bool = options.option(
        "--records",
        is_flag=True,
        help="Print the figures of people as flat records, one JSON object a line.",
    )
    output: Path | None = options.output(
        help="With --records: the file for them, by its ending .jsonl, .csv or .parquet."
    )
    pseudonyms: bool = options.pseudonyms()
    force: bool = options.force()
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()

    @property
    def files(self) -> ReportFiles:
        """The files to write."""
        # ``-`` prints Markdown on stdout instead of writing a file.
        markdown = None if self.markdown in (None, "-") else Path(self.markdown)
        files = ReportFiles.named(
            csv=self.csv_file, markdown=markdown, latex=self.latex_file, html=self.html_file
        )
        return replace(files, records=self.output)

    @property
    def stdout(self) -> str:
        """The form to print on stdout."""
        forms = (
            ("json", self.as_json),
            ("methods", self.methods),
            ("records", self.records),
            ("markdown", self.markdown == "-"),
        )
        return next((form for form, is_chosen in forms if is_chosen), "text")


_RULES: Final = (
    OptionRule[AgreeRequest](
        "at most two judges can be compared; give --judge once or twice",
        when=lambda request: len(request.judges) > 2,
    ),
    OptionRule[AgreeRequest](
        "--against is the reference for a judge; give the judge with --judge",
        options=("--against",),
        needs=("--judge",),
    ),
    OptionRule[AgreeRequest](
        "--shards contains the verdicts of one judge; give its name with --judge",
        options=("--shards",),
        when=lambda request: len(request.judges) != 1,
    ),
    OptionRule[AgreeRequest](
        "--gold selects the gold labels that a judge is compared with; give the judge with "
        "--judge, and leave out --against",
        options=("--gold",),
        when=lambda request: not request.judges or request.against not in (None, "gold"),
    ),
    OptionRule[AgreeRequest](
        "--methods prints one paragraph; leave out --json, --records, --traces and '-'",
        options=("--methods",),
        excludes=("--json", "--records", "--traces"),
    ),
    OptionRule[AgreeRequest](
        "--methods prints one paragraph; leave out --json, --records, --traces and '-'",
        options=("--methods",),
        when=lambda request: request.markdown == "-",
    ),
    OptionRule[AgreeRequest](
        "--thresholds is for one judge; give it with --judge",
        options=("--thresholds",),
        when=lambda request: len(request.judges) != 1,
    ),
    OptionRule[AgreeRequest](
        "--time shows other figures; leave out {other}",
        options=("--time",),
        excludes=(
            "--judge",
            "--traces",
            "--methods",
            "--records",
            "--csv",
            "--markdown",
            "--latex",
            "--html",
            "--pseudonyms",
        ),
    ),
    *RECORD_RULES,
    OptionRule[AgreeRequest](
        "--records prints records; leave out {other}",
        options=("--records",),
        excludes=("--traces",),
    ),
    OptionRule[AgreeRequest](
        "--records prints records; leave out --markdown -",
        options=("--records",),
        when=lambda request: request.markdown == "-",
    ),
    OptionRule[AgreeRequest](
        "--json and --markdown - both print on stdout; give one of them",
        options=("--json",),
        when=lambda request: request.markdown == "-",
    ),
    OptionRule[AgreeRequest](
        "--traces writes no files; leave out the options that do",
        options=("--traces",),
        excludes=("--csv", "--markdown", "--latex", "--html"),
    ),
    OptionRule[AgreeRequest](
        "--traces lists people's verdicts; leave out --pseudonyms and a second --judge",
        options=("--traces",),
        excludes=("--pseudonyms",),
    ),
    OptionRule[AgreeRequest](
        "--traces lists people's verdicts; leave out --pseudonyms and a second --judge",
        options=("--traces",),
        when=lambda request: len(request.judges) > 1,
    ),
    SAME_FILE,
)


@click.command()
@options.takes(AgreeRequest, _RULES)
def agree_command(request: AgreeRequest) -> None:
    """Show how well annotators agree, and how good a judge is.

    The unit is trace × mode: a mode on which both annotators have a verdict in a trace that both
    have finished. Annotators see only the traces that they have finished or adjudicate; this is
    recorded.

    Example: mast-tui agree --annotators alice,bob
    """
    workspace = open_workspace(request.common)
    outputs = outputs_beside(workspace, force=request.force)
    request.files.check(outputs)
    taxonomy = workspace_taxonomy(workspace, request.common.taxonomy)
    viewer = command_viewer(workspace, taxonomy.ref, request.common)
    comparison = _requested_comparison(request, workspace, viewer)
    visibility = visibility_json(viewer, viewer.hidden)

    if request.time:
        _show_time(time_document(workspace, taxonomy, comparison), viewer, request)
        return
    if request.mode is not None:
        traces = traces_document(workspace, taxonomy, comparison, request.mode)
        _reveal_labels(viewer, comparison, request)
        print_traces(traces | visibility, as_json=request.as_json)
        return
    figures = compute_agreement(workspace, taxonomy, comparison)
    _reveal_labels(viewer, comparison, request)
    figures = replace(
        figures,
        only_seen_by=visibility["sight"]["annotator"] if visibility else None,
        revisions=tuple(workspace.revisions_read(taxonomy.ref)),
    )
    if request.pseudonyms:
        pseudonyms = pseudonyms_of(workspace)
        figures = figures.renamed(pseudonyms.letters, pseudonyms.in_document)
        visibility = pseudonyms.in_document(visibility)
    _show_report(figures, visibility, request, outputs)


def _reveal_labels(viewer: Viewer, comparison: ComparisonOptions, request: AgreeRequest) -> None:
    """Record that the viewer sees the compared labels, and report the hidden traces."""
    names = (*(comparison.annotators or ()), comparison.against, comparison.judge or "")
    viewer.reveal(judges=any(is_judge(name) for name in names))
    if not request.as_json:
        report_hidden_traces(viewer, viewer.hidden)


def _show_report(
    figures: Agreement, visibility: Mapping[str, Any], request: AgreeRequest, outputs: Outputs
) -> None:
    """Print the report in the requested form, and write its files."""
    hidden = None
    if figures.only_seen_by is not None:
        hidden = HiddenTraces(figures.only_seen_by, visibility["sight"]["left_out"])
    report = agreement_report(figures, hidden=hidden)
    if request.as_json:
        for note in report.notes:
            if note.reason == "few_annotators":
                say(note.text)
    document = {**report.document, **visibility}
    if not figures.compares_annotators:
        # The tables of agreement need two annotators.
        judge_sections = tuple(section for section in report.sections if section.id == "judge")
        report = replace(report, sections=judge_sections, facts=())
    output = ReportOutput(request.files, request.stdout)
    output.show(report, document, outputs, figures.figures)


def _requested_comparison(
    request: AgreeRequest, workspace: Workspace, viewer: Viewer
) -> ComparisonOptions:
    """Return the requested comparison, limited to the traces that the viewer may see.

    Raises:
        click.ClickException: A judge is not in the workspace, or hidden from the viewer.
    """
    if request.shards is not None and viewer.judges_hidden:
        raise click.ClickException(
            f"{request.shards}: a judge's verdicts are hidden while you work blind or without "
            "suggestions"
        )
    judge_names = [find_judge(workspace, name) for name in request.judges]
    if len(set(judge_names)) < len(judge_names):
        raise click.UsageError(f"--judge names {judge_names[0]!r} twice")
    count_outside_workspace = None
    if request.shards is not None:
        # The core may import the code for shards only by name.
        count_outside_workspace = partial(
            import_module(_SHARDS).judged_outside_workspace, request.shards
        )
    return ComparisonOptions(
        annotators=split_names(request.annotators),
        judge=judge_names[0] if judge_names else None,
        other_judge=judge_names[1] if len(judge_names) > 1 else None,
        against=request.against or "gold",
        gold=request.gold or "all",
        which=request.which,
        rounds=request.rounds,
        seed=request.seed,
        places=not request.no_spans,
        traces=viewer.traces,
        viewer=viewer.name,
        blind=viewer.blind,
        may_see_judges=viewer.may_see_judges(),
        count_outside_workspace=count_outside_workspace,
        thresholds=request.thresholds,
    )


def time_document(
    workspace: Workspace, taxonomy: Taxonomy, comparison: ComparisonOptions
) -> dict[str, Any]:
    """Return the document of ``agree --time``: minutes with and without suggestions.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the labels.
        comparison: The annotators and traces to count.

    Raises:
        click.ClickException: No one has finished a trace in a study that shows suggestions.
    """
    ref = taxonomy.ref
    passes = [
        trace_pass
        for trace_pass in workspace.passes(taxonomy=ref)
        if (comparison.traces is None or trace_pass.trace_id in comparison.traces)
        and (comparison.annotators is None or trace_pass.annotator in comparison.annotators)
    ]
    study_passes = assisted_passes(workspace, ref, passes)
    if not study_passes:
        raise click.ClickException(
            "no one has finished a trace with suggestions shown; 'mast-tui study set --assisted "
            "--withhold 0.5' begins a study in which they are hidden on half of the traces"
        )
    suggested_modes = _suggested_modes(workspace, ref)
    minutes = minutes_worked(workspace, taxonomy)
    timed_passes = [
        replace(
            study_pass,
            minutes=minutes.get((study_pass.annotator, study_pass.trace_id, study_pass.number)),
            suggested=suggested_modes.get(study_pass.trace_id),
        )
        for study_pass in study_passes
    ]
    figures = time_study(timed_passes, taxonomy.modes)
    return {"taxonomy": ref, "longest_pause": LONGEST_PAUSE, **figures}


def _suggested_modes(workspace: Workspace, taxonomy: str) -> dict[str, frozenset[str]]:
    """Return the modes that judges suggest, by trace id.

    A judged trace without suggestions has an empty set.
    """
    modes_by_trace: dict[str, set[str]] = {
        judgement.trace_id: set() for judgement in workspace.judgements(taxonomy=taxonomy)
    }
    for label in workspace.labels(taxonomy=taxonomy, pass_number=None):
        if is_judge(label.annotator):
            modes_by_trace.setdefault(label.trace_id, set()).add(label.mode)
    return {trace_id: frozenset(modes) for trace_id, modes in modes_by_trace.items()}


def _show_time(document: dict[str, Any], viewer: Viewer, request: AgreeRequest) -> None:
    """Print a time study, and record that the viewer has seen it."""
    viewer.reveal(judges=True)
    if request.as_json:
        print_json(document | visibility_json(viewer, viewer.hidden))
        return
    report_hidden_traces(viewer, viewer.hidden)
    print_time(document)


def print_time(document: Mapping[str, Any]) -> None:
    """Print the minutes with and without suggestions, and the effect of suggestions on verdicts.

    Args:
        document: The document of ``agree --time``.
    """
    conditions = (
        {"name": "suggestions shown", **document["shown"]},
        {"name": "suggestions hidden", **document["withheld"]},
    )
    print_table(_TIME_COLUMNS, conditions)
    # The document lists only annotators with passes in both conditions.
    if not document["annotators"]:
        print_line(
            "No annotator has finished traces both with and without suggestions, so the effect of "
            "suggestions cannot be estimated; 'mast-tui study set --withhold SHARE' plans this."
        )
        return
    minutes = figure_text(document["minutes_difference"])
    print_line(f"Minutes per trace, shown minus hidden, within annotators: {minutes}")
    # The effect is anchoring: annotators mark suggested modes as present more often.
    print_line("Share of present verdicts, shown minus hidden, within annotators:")
    rows = [
        document["anchoring"] | {"code": "all modes"},
        *(mode | {"code": code} for code, mode in document["modes"].items()),
    ]
    print_table(_BIAS_COLUMNS, [row for row in rows if row["units"] or row["other_units"]])


def figure_text(figure: Mapping[str, Any]) -> str:
    """Return a figure with its interval as text; a dash if it is undefined."""
    if figure["value"] is None:
        return "—"
    if figure.get("ci") is None:
        return f"{figure['value']:.2f}"
    low, high = figure["ci"]
    return f"{figure['value']:.2f} [{low:.2f}, {high:.2f}]"


def figure_column(key: str, title: str) -> TableColumn[Mapping[str, Any]]:
    """Return a table column for a figure with its interval.

    Args:
        key: The key of the figure in a row.
        title: The heading.
    """
    return TableColumn(title, lambda row: figure_text(row[key]), right=True)


_TIME_COLUMNS: Final = (
    key_column("name", ""),
    key_column("passes", right=True),
    figure_column("minutes_per_trace", "minutes per trace"),
    figure_column("minutes_per_label", "minutes per label"),
)
_BIAS_COLUMNS: Final = (
    key_column("code", "mode"),
    figure_column("suggested", "suggested by a judge"),
    key_column("units", "verdicts", right=True),
    figure_column("other", "not suggested"),
    key_column("other_units", "verdicts", right=True),
)


def split_names(text: str | None) -> list[str] | None:
    """Split the names in ``A,B,…``; None for None.

    Raises:
        click.UsageError: There is no name, or a name twice.
    """
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--annotators is empty; give names as A,B")
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"--annotators names {name!r} twice")
    return names


def print_traces(document: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the verdicts on a mode by trace, disagreements first.

    Args:
        document: The result of ``traces_document``.
        as_json: Print the document itself.
    """
    if as_json:
        print_json(document)
        return
    print_line(f"{document['mode']} {document['name']}: {_trace_count_text(document)}")
    if document["traces"]:
        names = document["annotators"]
        columns: tuple[TableColumn[Mapping[str, Any]], ...] = (
            TableColumn("", lambda row: "≠" if row["disagreement"] else ""),
            key_column("trace"),
            *(_verdict_column(name) for name in names),
        )
        print_table(columns, document["traces"])


def _verdict_column(name: str) -> TableColumn[Mapping[str, Any]]:
    return TableColumn(name, lambda row: _verdict_text(row["said"], name))


def traces_document(
    workspace: Workspace, taxonomy: Taxonomy, comparison: ComparisonOptions, text: str
) -> dict[str, Any]:
    """Return the verdicts on one mode by trace, disagreements first.

    With a judge, compare it with its reference. Without one, compare the people.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the mode.
        comparison: The people, the judge and the traces.
        text: The code, slug or name of the mode.

    Raises:
        click.ClickException: The taxonomy has no such mode.
    """
    mode = taxonomy.find(text)
    if mode is None or mode not in taxonomy.modes:
        codes = ", ".join(candidate.code for candidate in taxonomy.modes)
        raise click.ClickException(f"{taxonomy.ref} has no mode {text!r}; there are: {codes}")
    names: Sequence[str]
    judged = judge_input(workspace, taxonomy, comparison)
    if judged is None:
        study = study_from_workspace(
            workspace,
            taxonomy,
            annotators=comparison.annotators,
            which=comparison.which,
            traces=comparison.traces,
        )
        names = study.annotators
        mode_traces = source_traces(study, mode.slug)
    else:
        names = (judged.judge, judged.reference.name)
        mode_traces = judged_source_traces(judged, compared_units(judged), mode.slug)
    return {
        "taxonomy": taxonomy.ref,
        "pass": "1" if comparison.which == "first" else "last",
        "mode": mode.code,
        "slug": mode.slug,
        "name": mode.name,
        "annotators": list(names),
        "traces": [
            {
                "trace": trace.trace_id,
                "disagreement": trace.disagreement,
                "said": {
                    name: None if verdict is None else verdict.value
                    for name, verdict in trace.verdicts.items()
                },
            }
            for trace in mode_traces
        ],
    }


def _trace_count_text(document: Mapping[str, Any]) -> str:
    traces = document["traces"]
    if not traces:
        return "no trace has verdicts on this mode by two of the compared annotators"
    differing = sum(row["disagreement"] > 0 for row in traces)
    return f"{counted(len(traces), 'trace')}, {differing} with a disagreement"


def _verdict_text(verdicts: Mapping[str, str | None], name: str) -> str:
    """Return an annotator's verdict as text; a dash if the trace is not finished."""
    return (verdicts[name] or "open") if name in verdicts else "—"

"""``mast-tui exam``: compare judges with a labelled set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mast_tui.adjudication import traces_from_files
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer, report_hidden_traces
from mast_tui.cli.shared.common import (
    load_taxonomy_or_mast,
    open_with_taxonomy,
    open_workspace,
    workspace_taxonomy,
)
from mast_tui.cli.shared.options import OptionRule
from mast_tui.cli.shared.report_files import SAME_FILE, ReportFiles, ReportOutput
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.exam.consistency import consistency_of, judges_named, labels_of_judge
from mast_tui.exam.coverage import LEAST_RUNS, LEVEL, StepSets, fit_sets
from mast_tui.exam.figures import Question, StepMarks
from mast_tui.exam.input import (
    SETS,
    ExamSet,
    ExamTrace,
    annotator_named,
    candidate_from_workspace,
    rules_candidate,
    set_from_files,
    set_from_table,
    set_from_workspace,
)
from mast_tui.exam.report import consistency_report, exam_report
from mast_tui.exam.result import ExamResult, exam_result
from mast_tui.figures.bootstrap import Resampling
from mast_tui.judges.rules import RulesJudge, chosen_rules
from mast_tui.labels import GOLD
from mast_tui.output_files import Outputs, ReplacementRules
from mast_tui.session import Viewer, visibility_json
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import Workspace, find_workspace
from mast_tui.workspace.outputs import database_files, outputs_beside, reason_to_protect
from mast_tui.workspace.registers.look_here import LookHere, keep_look_here

if TYPE_CHECKING:
    from mast_tui.reports.model import Report

RULES: Final = "rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamRequest:
    """The options of ``mast-tui exam``."""

    paths: tuple[Path, ...] = options.paths(exist=True)
    set_name: str | None = options.option(
        "--set",
        metavar="SET",
        help=f"The labels that count as the truth. With PATHs: {', '.join(SETS)} for that set's "
        "files, or a csv-long file with labels of these traces. Without PATHs: gold or an "
        "annotator of the workspace. Default: figures of the workspace's judges that need no "
        "truth.",
    )
    judges: tuple[str, ...] = options.option(
        "--judge",
        multiple=True,
        required=True,
        metavar="NAME",
        help="A judge to score; repeat the option for several. With --set: rules, which judges the "
        "files now, or a judge with answers in the workspace. Without --set: all judges whose "
        "names begin with NAME; the one whose last run is oldest is compared with the others.",
    )
    rule_names: str | None = options.option(
        "--rules", metavar="all|NAME,…", help="The rules that run; as for judge."
    )
    crosswalk: Path | None = options.option(
        "--crosswalk",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Translate the set's categories to MAST, as for import: agentrx-to-mast, "
        "trail-to-mast, or your own file.",
    )
    coverage: bool = options.option(
        "--coverage",
        is_flag=True,
        help="Also measure sets of steps meant to contain the decisive step with 90 % probability: "
        "how often they do, and what share of a run they take.",
    )
    keep: bool = options.option(
        "--keep",
        is_flag=True,
        help="Also store the set of steps of each trace in the workspace, from the findings of the "
        "one --judge: the app marks the steps, * goes through them, and the library sorts traces "
        "by their number. Annotators who may not see a judge's findings do not see the steps.",
    )
    rounds: int = options.rounds(
        help="The number of resamples of the traces; 0 gives no intervals."
    )
    seed: int = options.seed()
    files: ReportFiles = options.files_by_language(
        ReportFiles.named,
        markdown="Also write the report as Markdown.",
        html="Also write the report as one HTML page.",
        latex="Also write LaTeX tables.",
        csv="Also write every figure as one row of a CSV file.",
    )
    force: bool = options.force()
    workers: str | None = options.workers()
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()

    @property
    def from_files(self) -> bool:
        """True if the set is read from files, not from the workspace."""
        return self.set_name is not None and (
            self.set_name in SETS or Path(self.set_name).is_file()
        )


_RULES: Final = (
    SAME_FILE,
    OptionRule[ExamRequest](
        "PATHs, --rules, --crosswalk and --coverage need --set",
        options=("paths", "--rules", "--crosswalk", "--coverage"),
        needs=("--set",),
    ),
    OptionRule[ExamRequest](
        "--keep needs --coverage, a --set of the workspace and one --judge",
        options=("--keep",),
        when=lambda request: not request.coverage or request.from_files or len(request.judges) != 1,
    ),
    OptionRule[ExamRequest](
        "--set {request.set_name} needs the files of the set as PATHs",
        needs=("paths",),
        when=lambda request: request.from_files,
    ),
    OptionRule[ExamRequest](
        "--set {request.set_name} is in the workspace; leave out the PATHs",
        options=("paths",),
        when=lambda request: not request.from_files,
    ),
    OptionRule[ExamRequest](
        "--judge names the same judge twice",
        options=("--set",),
        when=lambda request: len(set(request.judges)) < len(request.judges),
    ),
    OptionRule[ExamRequest](
        "--rules needs --judge rules and a set of files",
        options=("--rules",),
        when=lambda request: not request.from_files or RULES not in request.judges,
    ),
    OptionRule[ExamRequest](
        "--crosswalk needs a set that is read from its own files",
        options=("--crosswalk",),
        when=lambda request: request.set_name not in SETS,
    ),
)


@click.command()
@options.takes(ExamRequest, _RULES)
def exam_command(request: ExamRequest) -> None:
    """Score judges against a labelled set, by the set's own measures.

    Decisive steps: how often the step, its agent and its category are right, compared with naming
    any step, the first or the last. Labelled spans: precision, recall and F1 of steps, categories
    and both. Verdicts: rates and κ, mode by mode. --json has everything needed to repeat it: the
    files with their hashes, the seed, and the answers trace by trace.

    Without --set: how often a judge's readings of one trace agree, the share of its quotes that are
    found, and which findings remain when the same model is asked in other ways.

    Example: mast-tui exam runs/ --set labels.csv --judge rules
    """
    output = ReportOutput(request.files, "json" if request.as_json else "text")
    if request.set_name is None:
        _show_consistency(request, output)
        return
    rules = RulesJudge(chosen_rules(request.rule_names or "default"))
    # The answers of other judges than the rules are in the workspace, and so is a set without
    # files.
    needs_workspace = not request.from_files or set(request.judges) != {RULES}
    workspace = open_workspace(request.common) if needs_workspace else None
    outputs = (
        outputs_beside(workspace, force=request.force)
        if workspace
        else _outputs_without_workspace((*request.paths, Path(request.set_name)), request.force)
    )
    request.files.check(outputs)
    exam = None
    if request.from_files:
        exam = _read_set_files(request, rules if RULES in request.judges else None)
    viewer: Viewer | None = None
    may_see: Callable[[str], bool] = _is_always_visible
    if workspace is not None:
        ref = _visibility_taxonomy(workspace, request.common.taxonomy, exam)
        viewer = command_viewer(workspace, ref, request.common)
        may_see = _visibility_check(viewer)
    if exam is None:
        assert workspace is not None
        exam = _read_workspace_set(workspace, request.set_name, request.common.taxonomy, may_see)
    if not exam.questions:
        raise click.ClickException(f"--set {request.set_name}: no trace has labels")
    candidates = [
        rules_candidate(exam, rules)
        if workspace is None or (name == RULES and request.from_files)
        else candidate_from_workspace(workspace, exam, annotator_named(workspace, name), may_see)
        for name in request.judges
    ]
    result = exam_result(
        exam,
        candidates,
        Resampling(request.rounds, request.seed),
        with_coverage=request.coverage,
    )
    if request.keep:
        # The check of the options ensures a workspace and a single judge.
        assert workspace is not None
        result = replace(result, stored_sets=_store_step_sets(workspace, result))
    _show_report(exam_report(result), output, outputs, viewer)


def _show_consistency(request: ExamRequest, output: ReportOutput) -> None:
    """Print the figures of judges that need no labelled set, such as their consistency.

    Raises:
        click.ClickException: The judges have judged no visible trace.
    """
    workspace, taxonomy = open_with_taxonomy(request.common)
    viewer = command_viewer(workspace, taxonomy.ref, request.common)
    outputs = outputs_beside(workspace, force=request.force)
    request.files.check(outputs)
    may_see = _visibility_check(viewer)
    all_labels = [
        labels_of_judge(workspace, taxonomy, name, may_see)
        for name in judges_named(workspace, request.judges)
    ]
    judges = [judge_labels for judge_labels in all_labels if judge_labels.labels]
    if not judges:
        raise click.ClickException(
            f"these judges have judged no trace under {taxonomy.ref} that you may see; give "
            "another taxonomy with --taxonomy"
        )
    resampling = Resampling(request.rounds, request.seed)
    consistency = consistency_of(workspace, taxonomy, judges, resampling)
    _show_report(consistency_report(consistency), output, outputs, viewer)


def _read_set_files(request: ExamRequest, judge: RulesJudge | None) -> ExamSet:
    """Read a labelled set from files; ``judge`` runs on each trace that is read."""
    name = request.set_name
    assert name is not None  # ``from_files`` is true only with a name
    with WorkerPool(request.workers) as pool:
        if name in SETS:  # a published set; else the path of a table of labels
            return set_from_files(name, request.paths, judge, pool, request.crosswalk)
        return set_from_table(
            Path(name), load_taxonomy_or_mast(request.common.taxonomy), request.paths, judge, pool
        )


def _visibility_taxonomy(workspace: Workspace, taxonomy: Path | None, exam: ExamSet | None) -> str:
    """Return the reference of the taxonomy whose finished traces decide what is visible.

    It is the taxonomy of the labelled set if the user names none, and the workspace has several but
    not MAST, as after imports from several tools.
    """
    refs = workspace.current_taxonomies()
    if taxonomy is None and exam is not None and len(refs) > 1 and load_mast().ref not in refs:
        return exam.taxonomy.ref
    return workspace_taxonomy(workspace, taxonomy).ref


def _show_report(
    report: Report, output: ReportOutput, outputs: Outputs, viewer: Viewer | None
) -> None:
    """Write and print a report, with the number of hidden traces in its document.

    The workspace records that the viewer has seen the judges' labels on the visible traces.
    """
    document = dict(report.document)
    if viewer is not None:
        document |= visibility_json(viewer, viewer.hidden)
        viewer.reveal(judges=True)
        if output.stdout != "json":
            report_hidden_traces(viewer, viewer.hidden)
    output.show(replace(report, document=document), document, outputs)


def _read_workspace_set(
    workspace: Workspace, name: str, taxonomy: Path | None, may_see: Callable[[str], bool]
) -> ExamSet:
    """Read gold, or an annotator's labels, as a set.

    If the user names no taxonomy, and all labels of the annotator have the same one, it is used.
    """
    truth = name if name == GOLD else annotator_named(workspace, name)
    used_taxonomy = workspace_taxonomy(workspace, taxonomy)
    label_taxonomies = {reading.taxonomy for reading in workspace.passes(annotator=truth)}
    if taxonomy is None and len(label_taxonomies) == 1:
        used_taxonomy = workspace.taxonomy(label_taxonomies.pop())
    return set_from_workspace(
        workspace, truth, used_taxonomy, traces_from_files(workspace), may_see
    )


def _store_step_sets(workspace: Workspace, result: ExamResult) -> LookHere:
    """Store the likely decisive steps of each trace of the workspace, which the app marks.

    The result has a single judge.

    Raises:
        click.ClickException: There are too few labelled runs.
    """
    exam = result.exam
    [judge] = [candidate.name for candidate in result.candidates]
    figures = result.tables("coverage")[judge]
    run_count = figures.count("labelled_runs")
    mean_share = figures.value("mean_share")
    chance_share = figures.value("chance_share")
    exam_answers = candidate_from_workspace(workspace, exam, judge, _is_always_visible).answers
    sets = fit_sets(exam.questions, exam.features, exam_answers, seed=result.resampling.seed)
    if sets is None or mean_share is None or chance_share is None:
        raise click.ClickException(
            f"--keep needs {LEAST_RUNS} runs with a known decisive or first failing step; there "
            f"are {run_count}"
        )
    keys_by_trace = _step_sets(workspace, exam, judge, sets)
    origin = LookHere(
        hash=sets.hash,
        judge=judge,
        level=LEVEL,
        runs=run_count,
        mean_share=mean_share,
        chance_share=chance_share,
        sizes={trace_id: len(keys) for trace_id, keys in keys_by_trace.items()},
    )
    keep_look_here(workspace, exam.taxonomy.ref, origin, keys_by_trace)
    return origin


def _step_sets(
    workspace: Workspace, exam: ExamSet, judge: str, sets: StepSets
) -> dict[str, tuple[str, ...]]:
    """Return the keys of the spans of likely decisive steps, by trace id.

    The sets are for all traces of the workspace, also without labels.
    """
    find_trace = traces_from_files(workspace)
    traces = dict(exam.traces)
    for record in workspace.traces():
        trace = None if record.trace_id in traces else find_trace(record.trace_id)
        if trace is not None:
            traces[record.trace_id] = ExamTrace.from_trace(trace)
    questions = tuple(Question(trace_id, StepMarks()) for trace_id in traces)
    exam_of_all_traces = replace(exam, questions=questions, traces=traces)
    answers = candidate_from_workspace(
        workspace, exam_of_all_traces, judge, _is_always_visible
    ).answers
    keys_by_trace: dict[str, tuple[str, ...]] = {}
    for trace_id, exam_trace in traces.items():
        steps = sets.steps_of(trace_id, exam_trace.features, answers)
        keys_by_trace[trace_id] = tuple(
            key for key, step in (exam_trace.steps.numbers or {}).items() if step in steps
        )
    return keys_by_trace


def _is_always_visible(_trace_id: str) -> bool:
    return True


def _visibility_check(viewer: Viewer) -> Callable[[str], bool]:
    """Return a function that checks by id whether the labels of others and judges are visible."""
    may_see_judges = viewer.may_see_judges()
    return lambda trace_id: viewer.may_see_others(trace_id) and may_see_judges(trace_id)


def _outputs_without_workspace(set_paths: Sequence[Path], force: bool) -> Outputs:
    """Return outputs that replace neither the nearest workspace nor the files of the set.

    ``set_paths`` are the files and folders of the set.
    """

    def reason_to_keep(target: Path) -> str | None:
        """Return the reason why a file must not be replaced, or None."""
        if target in database_files(find_workspace(None)):
            return "this file contains the labels"
        resolved_target = target.resolve()
        if resolved_target.exists() and any(
            resolved_target.is_relative_to(path.resolve()) for path in set_paths
        ):
            return "it is part of the set, which is never overwritten"
        return None

    return Outputs(ReplacementRules(reason_to_keep, reason_to_protect, force))

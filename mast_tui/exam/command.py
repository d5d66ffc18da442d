"""``mast-tui exam``: how well judges do on a labelled set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui import __version__
from mast_tui.adjudication import traces_from_files
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import asked_by, say_left_out
from mast_tui.cli.shared.common import (
    kept_taxonomy,
    load_chosen_taxonomy,
    open_workspace,
    opened,
    print_json,
    say,
)
from mast_tui.cli.shared.report_files import Files, print_text
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.exam.consistency import consistency_document, judges_named, labels_of_judge
from mast_tui.exam.figures import (
    Answers,
    baselines,
    decisive_cases,
    decisive_figures,
    level_figures,
    places_figures,
)
from mast_tui.exam.input import (
    PUBLISHED_SCORERS,
    SETS,
    ExamCandidate,
    ExamSet,
    annotator_named,
    candidate_from_workspace,
    rules_candidate,
    set_from_files,
    set_from_table,
    set_from_workspace,
)
from mast_tui.exam.report import consistency_report, exam_report
from mast_tui.figures.bootstrap import bootstrap_json
from mast_tui.figures.judge.input import GOLD
from mast_tui.figures.judge.report import judge_report
from mast_tui.judges.rules import RulesJudge, chosen_rules
from mast_tui.output_files import Outputs, Rules
from mast_tui.session import sight_values
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import find_workspace
from mast_tui.workspace.outputs import database_files, outputs_beside, protected_kind

if TYPE_CHECKING:
    from mast_tui.reports.model import Report
    from mast_tui.session import Viewer
    from mast_tui.workspace import Workspace

RULES: Final = "rules"


@click.command()
@options.paths(exist=True)
@click.option(
    "--set",
    "set_name",
    metavar="SET",
    help=f"{', '.join(SETS)}: the set whose files are the PATHs; or a file of labels "
    "(csv-long) of the traces at the PATHs. Else gold, or an annotator of the workspace whose word "
    "counts as the truth. Without it: what needs no truth, of the judges of the workspace.",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    required=True,
    metavar="NAME",
    help="Who sits the exam, once or often: rules (with a set of files they judge now), or "
    "somebody of the workspace: a judge that has run, or whose answers were imported. Without a "
    "set all judges whose names begin so; the first that ran is the one beside which others stand.",
)
@click.option("--rules", "rule_names", metavar="all|NAME,…", help="Which rules run; as for judge.")
@click.option(
    "--crosswalk",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Make modes of MAST of the set's categories, as for import: agentrx-to-mast, "
    "trail-to-mast, or a file of your own.",
)
@options.rounds("Resamples of the traces behind the intervals; 0 gives none.")
@options.seed
@options.report_file("--markdown", "Also write it as Markdown.")
@options.report_file("--html", "Also write it as one page.")
@options.report_file("--latex", "Also write LaTeX tables.")
@options.report_file("--csv", "Also write every figure as one row of a CSV file.")
@options.force
@options.workers
@options.common()
@options.as_json
def exam_command(
    paths: tuple[Path, ...],
    set_name: str | None,
    judges: tuple[str, ...],
    rule_names: str | None,
    crosswalk: Path | None,
    rounds: int,
    seed: int,
    markdown_file: Path | None,
    html_file: Path | None,
    latex_file: Path | None,
    csv_file: Path | None,
    force: bool,
    wanted_workers: str | None,
    common: CommonOptions,
    as_json: bool,
) -> None:
    """Hold judges against a labelled set, each by the set's own scoring.

    Decisive steps: how often the step, its agent and its category are named, beside naming any
    step, the first or the last. Marked places: precision, recall and F1 of steps, categories and
    both. Verdicts: rates and κ, mode by mode. --json has all that it takes to repeat it: the
    files with their hashes, the seed, and what was named trace by trace.

    Without --set: how often a judge's readings of one trace agree, how many of its quotes are
    found, and what stays where the same model was asked otherwise.
    """
    files = _files(markdown=markdown_file, html=html_file, latex=latex_file, csv=csv_file)
    place: Workspace | None = None
    viewer: Viewer | None = None
    may_see: Callable[[str], bool] = _all
    if set_name is None:
        if paths or rule_names is not None or crosswalk is not None:
            raise click.UsageError("PATHs, --rules and --crosswalk go with --set")
        place, chosen = opened(common)
        viewer = asked_by(place, chosen.ref, common)
        files.check(outputs := outputs_beside(place, force=force))
        may_see = _seen_by(viewer)
        judged = [
            labels_of_judge(place, chosen, name, may_see) for name in judges_named(place, judges)
        ]
        judged = [one for one in judged if one.labels]
        if not judged:
            raise click.ClickException(
                f"these judges have judged no trace under {chosen.ref} that you may see; another "
                "taxonomy is named by --taxonomy"
            )
        document = consistency_document(place, chosen, judged, rounds, seed)
        _tell(document, consistency_report, files, outputs, viewer, as_json)
        return
    from_files = set_name in SETS or Path(set_name).is_file()
    _check_usage(set_name, paths, judges, rule_names, from_files=from_files)
    if crosswalk is not None and set_name not in SETS:
        raise click.UsageError("--crosswalk is for the sets that are read from their own files")
    rules = RulesJudge(chosen_rules(rule_names or "default"))
    judged_now = {RULES} & set(judges) if from_files else set()
    if set(judges) - judged_now or not from_files:
        place = open_workspace(common)
    outputs = (
        outputs_beside(place, force=force)
        if place
        else _outputs_alone((*paths, Path(set_name)), force)
    )
    files.check(outputs)
    exam = None
    judge = rules if judged_now else None
    with WorkerPool(wanted_workers if from_files else None) as pool:
        if set_name in SETS:
            exam = set_from_files(set_name, paths, judge, pool, crosswalk)
        elif from_files:
            chosen = load_chosen_taxonomy(common.taxonomy)
            exam = set_from_table(Path(set_name), chosen, paths, judge, pool)
    if place is not None:
        ref = _sight_under(place, common.taxonomy, exam)
        viewer = asked_by(place, ref, common)
        may_see = _seen_by(viewer)
    if exam is None:
        assert place is not None
        exam = _set_of_workspace(place, set_name, common.taxonomy, may_see)
    if not exam.questions:
        raise click.ClickException(f"--set {set_name}: there is no labelled trace to ask about")
    candidates = [
        rules_candidate(exam, rules)
        if place is None or name in judged_now
        else candidate_from_workspace(place, exam, annotator_named(place, name), may_see)
        for name in judges
    ]
    document = exam_document(exam, candidates, rounds, seed)
    _tell(document, exam_report, files, outputs, viewer, as_json)


def _sight_under(place: Workspace, taxonomy: Path | None, exam: ExamSet | None) -> str:
    """Under which taxonomy people must have finished to be told; where none can be told from what
    is kept, as after the imports of several tools, the set's own."""
    used = place.current_taxonomies()
    if taxonomy is None and exam is not None and len(used) > 1 and load_mast().ref not in used:
        return exam.taxonomy.ref
    return kept_taxonomy(place, taxonomy).ref


def _tell(
    document: dict[str, Any],
    report_of: Callable[[dict[str, Any]], Report],
    files: Files,
    outputs: Outputs,
    viewer: Viewer | None,
    as_json: bool,
) -> None:
    """Write and print figures, with what was hidden from whoever asks."""
    if viewer is not None:
        document |= sight_values(viewer, viewer.hidden)
        viewer.reveal(viewer.traces or (), judges=True)
        if not as_json:
            say_left_out(viewer, viewer.hidden)
    report = report_of(document)
    for line in files.write(report, outputs):
        say(line)
    if as_json:
        print_json(document)
    else:
        print_text(report)


def _check_usage(
    set_name: str,
    paths: Sequence[Path],
    judges: Sequence[str],
    rule_names: str | None,
    *,
    from_files: bool,
) -> None:
    """Refuse words that do not go together."""
    if from_files and not paths:
        raise click.UsageError(f"--set {set_name} wants the files of the set as PATHs")
    if paths and not from_files:
        raise click.UsageError(f"--set {set_name} is of the workspace; leave out the PATHs")
    if len(set(judges)) < len(judges):
        raise click.UsageError("--judge names the same one twice")
    if rule_names is not None and not (from_files and RULES in judges):
        raise click.UsageError("--rules goes with --judge rules and a set of files")


def _files(**named: Path | None) -> Files:
    """Where the report is written, by language."""
    whole = {language: file for language, file in named.items() if file is not None}
    if len(set(whole.values())) < len(whole):
        raise click.UsageError("two options name the same file; give each its own")
    return Files(whole, None)


def _set_of_workspace(
    place: Workspace, name: str, taxonomy: Path | None, may_see: Callable[[str], bool]
) -> ExamSet:
    """Gold, or an annotator's word, under the taxonomy that is asked for.

    An imported set brings a taxonomy of its own, and its word counts under that.
    """
    truth = name if name == GOLD else annotator_named(place, name)
    chosen = kept_taxonomy(place, taxonomy)
    own = {one.taxonomy for one in place.passes(annotator=truth)}
    if taxonomy is None and len(own) == 1:
        chosen = place.taxonomy(own.pop())
    return set_from_workspace(place, truth, chosen, traces_from_files(place), may_see)


def exam_document(
    exam: ExamSet, candidates: Sequence[ExamCandidate], rounds: int, seed: int
) -> dict[str, Any]:
    """Score everybody, as ``--json`` prints it; what does not apply is None."""
    decisive, places = "decisive" in exam.scorings, "places" in exam.scorings
    questions = exam.questions
    published = PUBLISHED_SCORERS.get(exam.name)
    return {
        "exam": exam.name,
        "taxonomy": exam.taxonomy.ref,
        "version": __version__,
        "files": exam.hashes(),
        "problems": list(exam.problems),
        "questions": len(questions),
        "modes": None if exam.modes is None else sorted(exam.modes),
        "scored_by": list(exam.scorings),
        "bootstrap": bootstrap_json(rounds, seed),
        "baselines": baselines(questions, published) if decisive else None,
        "judges": {
            one.name: {
                "decisive": decisive_figures(questions, one.answers, published)
                if decisive
                else None,
                "places": places_figures(questions, one.answers, rounds=rounds, seed=seed)
                if places
                else None,
                "verdicts": None
                if one.judged is None
                else judge_report(one.judged, rounds=rounds, seed=seed),
                "categories": one.answers.categories,
                "quotes": one.quotes,
                "cost": one.cost,
                "cases": decisive_cases(questions, one.answers) if decisive else [],
                **_levels(exam, one.answers, rounds, seed),
            }
            for one in candidates
        },
    }


def _levels(exam: ExamSet, answers: Answers, rounds: int, seed: int) -> dict[str, Any]:
    """By category of each level, where the set's taxonomy has several."""
    levels = exam.taxonomy.by_level
    if not levels or not {"decisive", "places"} & set(exam.scorings):
        return {}
    return {
        "levels": {
            name: level_figures(
                exam.questions,
                answers,
                groups,
                scored_by=exam.scorings,
                rounds=rounds,
                seed=seed,
            )
            for name, groups in levels.items()
        }
    }


def _all(_trace_id: str) -> bool:
    return True


def _seen_by(viewer: Viewer) -> Callable[[str], bool]:
    """Of which traces what others and judges say may be told."""
    judges = viewer.may_see_judges()
    return lambda trace_id: viewer.may_see_others(trace_id) and judges(trace_id)


def _outputs_alone(paths: Sequence[Path], force: bool) -> Outputs:
    """The outputs where no workspace is asked: neither it nor the set is ever replaced."""

    def reason(target: Path) -> str | None:
        real = target.resolve()
        if target in database_files(find_workspace(None)):
            return "the labels are kept in this file"
        read = [path.resolve() for path in paths]
        if real.exists() and any(real == path or path in real.parents for path in read):
            return "it is a part of the set, which is never written to"
        return None

    return Outputs(Rules(reason, protected_kind, force))

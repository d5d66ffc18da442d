"""``mast-tui agree``: how far annotators agree, and how good a judge is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.adjudication import SpanOrders, words_by_trace
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import asked_by, say_left_out
from mast_tui.cli.shared.common import (
    kept_taxonomy,
    open_workspace,
    print_json,
    print_line,
    print_table,
    say,
)
from mast_tui.cli.shared.options import OptionRule
from mast_tui.cli.shared.report_files import RECORD_RULES, SAME_FILE, Files, ReportOutput
from mast_tui.columns import TableColumn, key_column
from mast_tui.counts import counted
from mast_tui.exchange.exporters.working_time import LONGEST_PAUSE, minutes_worked
from mast_tui.figures.agreement.drill_down import judged_source_traces, source_traces
from mast_tui.figures.agreement.report import agreement_figures, agreement_json
from mast_tui.figures.judge.compare import judges_compared
from mast_tui.figures.judge.confusion import compared
from mast_tui.figures.judge.input import JudgedBeyond, judge_input_from_workspace
from mast_tui.figures.judge.report import judge_report
from mast_tui.figures.judge.thresholds import (
    ThresholdsJson,
    fit_thresholds,
    on_traces,
    thresholds_json,
    with_thresholds,
)
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.figures.source.spans import span_input_from_workspace
from mast_tui.figures.spans.input import SpanInput
from mast_tui.figures.spans.report import span_figures
from mast_tui.figures.time_study import TimedPass, time_study
from mast_tui.gc_tuning import uncollected
from mast_tui.gold import no_orders
from mast_tui.labels import AnnotatorKind, PassKind, VerdictValue, annotator_kind
from mast_tui.passes import counted_passes
from mast_tui.reports.agreement import agreement_report
from mast_tui.session import sight_values
from mast_tui.workspace import TraceRecord
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.hold_out import TracePart, trace_part
from mast_tui.workspace.registers.pseudonyms import pseudonyms_of

if TYPE_CHECKING:
    from mast_tui.figures.agreement.report import Agreement, StudyInput
    from mast_tui.figures.judge.input import JudgeInput
    from mast_tui.figures.judge.report import JudgeReport
    from mast_tui.figures.spans.report import SpanAgreement
    from mast_tui.gold import GoldKind
    from mast_tui.labels import Pass
    from mast_tui.passes import Which
    from mast_tui.session import Viewer
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

CountBeyond = Callable[[str, Sequence[TraceRecord]], JudgedBeyond]
"""Counts a judge's verdicts on traces that are not among those given."""


def _everywhere(_trace_id: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Without ``annotators`` all people are compared; ``judge`` is a judge's whole name, and
    ``other_judge`` that of one to compare it with. ``against`` is ``gold`` or a name, ``gold`` how
    much of the gold counts. With ``places`` what people and judges marked is compared too.
    ``traces`` are those that may be seen, ``blind`` is whether they are shown to somebody who
    labels blind, and ``may_see_judges`` tells of which traces this person may know what judges
    say. ``count_beyond`` counts what the judge said of other traces than those of the workspace.
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
    blind: bool = False
    may_see_judges: Callable[[str], bool] = _everywhere
    count_beyond: CountBeyond | None = None
    thresholds: bool = False


@uncollected()
def whole_report(workspace: Workspace, taxonomy: Taxonomy, wanted: Wanted) -> Agreement:
    """Compute the figures of ``agree``, with its parts on spans and on a judge.

    Raises ``WorkspaceError`` for a name that nobody here has.
    """
    passes = workspace.passes(taxonomy=taxonomy.ref)
    study = study_input(workspace, taxonomy, wanted, passes)
    # Before the figures, so that a wrong name is told at once.
    judged = judge_input(workspace, taxonomy, wanted)
    other = judge_input(workspace, taxonomy, replace(wanted, judge=wanted.other_judge))
    fitted = None
    if wanted.thresholds and judged is not None:
        judged, fitted = _with_thresholds(workspace, judged)
    report = agreement_figures(study, rounds=wanted.rounds, seed=wanted.seed)
    if wanted.places:
        report = replace(report, spans=_spans(workspace, taxonomy, wanted, study, passes))
    if judged is not None:
        judge_figures = _judge(judged, wanted)
        if fitted is not None:
            judge_figures = replace(judge_figures, thresholds=fitted)
        report = replace(report, judge=judge_figures)
    if judged is not None and other is not None:
        both = judges_compared(judged, other, rounds=wanted.rounds, seed=wanted.seed)
        report = replace(report, judges=both)
    return report


def study_input(
    workspace: Workspace,
    taxonomy: Taxonomy,
    wanted: Wanted,
    passes: Sequence[Pass] | None = None,
) -> StudyInput:
    """The verdicts that are compared; ``passes`` are all of the taxonomy, where they were read."""
    return study_from_workspace(
        workspace,
        taxonomy,
        annotators=wanted.annotators,
        which=wanted.which,
        traces=wanted.traces,
        passes=passes,
    )


def judge_input(workspace: Workspace, taxonomy: Taxonomy, wanted: Wanted) -> JudgeInput | None:
    """The judge beside what it is measured by; None where no judge is asked for."""
    if wanted.judge is None:
        return None
    order_of = SpanOrders(workspace) if wanted.places else no_orders
    gold = None
    if wanted.against == "gold":
        gold = {
            trace: words.gold(taxonomy, order_of(trace))
            for trace, words in words_by_trace(workspace, taxonomy).items()
        }
    found = judge_input_from_workspace(
        workspace,
        taxonomy,
        wanted.judge,
        wanted.against,
        gold=gold,
        order_of=order_of,
        which=wanted.which,
        traces=wanted.traces,
        settled_only=wanted.gold == "settled",
    )
    if wanted.count_beyond is not None:
        judged = {trace for trace, _ in found.verdicts}
        known = [record for record in workspace.traces() if record.trace_id in judged]
        found = replace(found, beyond=wanted.count_beyond(found.judge, known))
    return replace(found, unlabelled=frozenset(filter(wanted.may_see_judges, found.unlabelled)))


def _with_thresholds(workspace: Workspace, given: JudgeInput) -> tuple[JudgeInput, ThresholdsJson]:
    """Fit thresholds on the calibration traces; return the judge on all others, and them."""
    traces = {trace_id for trace_id, _ in given.reference.verdicts}
    calibration = {t for t in traces if trace_part(workspace, t) is TracePart.CALIBRATION}
    if not calibration:
        raise click.ClickException(
            "no calibration trace has a verdict of people; 'mast-tui study set --split 0.5,0.2,0.3'"
            " keeps some traces apart for --thresholds"
        )
    fitted = fit_thresholds(on_traces(given, calibration))
    document = thresholds_json(given, fitted, calibration)
    workspace.set_setting(
        f"judge.thresholds:{given.taxonomy_ref}:{given.judge}", json.dumps(document)
    )
    return with_thresholds(on_traces(given, traces - calibration), fitted), document


def _judge(given: JudgeInput, wanted: Wanted) -> JudgeReport:
    report = judge_report(given, rounds=wanted.rounds, seed=wanted.seed)
    # Prevalences would show a blind annotator what the judge says of traces yet to be labelled.
    return report.without_prevalence() if wanted.blind else report


def _spans(
    workspace: Workspace,
    taxonomy: Taxonomy,
    wanted: Wanted,
    study: StudyInput,
    passes: Sequence[Pass],
) -> SpanAgreement:
    given = _without_orders(workspace, study)
    if given is None:
        orders = SpanOrders(workspace)
        given = span_input_from_workspace(
            workspace,
            taxonomy,
            study.annotators,
            order_of=orders.spans_of,
            length_of=orders.length_of,
            which=wanted.which,
            traces=wanted.traces,
            read_passes=passes,
        )
    return span_figures(given, rounds=wanted.rounds, seed=wanted.seed)


def _without_orders(workspace: Workspace, study: StudyInput) -> SpanInput | None:
    """Return the input where no trace that two have finished was ever read; None where one was.

    Labels are often imported without their traces: then nothing needs to be read once more.
    """
    finished = [study.finished.get(name, frozenset()) for name in study.annotators]
    often = Counter(trace for traces in finished for trace in traces)
    shared = {trace for trace, times in often.items() if times > 1}
    for column in ("spans", "path"):
        read = workspace.read_columns("traces", ("id",), list, not_null=column)
        if not shared.isdisjoint(trace for (trace,) in read):
            return None
    return SpanInput(
        study.taxonomy_ref,
        study.modes,
        study.annotators,
        study.pass_label,
        (),
        {name: len(traces) for name, traces in zip(study.annotators, finished, strict=True)},
        not_at_hand=len(shared),
        examples=study.examples,
    )


def judge_named(workspace: Workspace, text: str) -> str:
    """The judge with this name, or the only one whose name begins so.

    ``judge:`` may be left out. Raises ``ClickException`` where none or several begin so.
    """
    judges = [one.name for one in workspace.annotators() if one.kind is AnnotatorKind.JUDGE]
    if text in judges:
        return text
    found = [name for name in judges if name.startswith((text, f"judge:{text}"))]
    if len(found) == 1:
        return found[0]
    if found:
        raise click.ClickException(f"--judge {text!r} may be {', '.join(found)}; give more of it")
    there = f"there are: {', '.join(judges)}" if judges else "'mast-tui judge' has one look first"
    raise click.ClickException(f"no judge {text!r} in this workspace; {there}")


_SHARDS: Final = "mast_tui.scale.figures"
"""The module behind ``--shards``, which the core imports by name alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreeRequest:
    """The options of ``mast-tui agree``."""

    annotators: str | None = options.option(
        "--annotators",
        metavar="A,B,…",
        help="Who is compared. Default: all people with finished traces; judges only by name.",
    )
    judges: tuple[str, ...] = options.option(
        "--judge",
        multiple=True,
        metavar="NAME",
        help="Measure this judge too; as much of its name will do as no other begins with. Twice: "
        "compare two judges on the same traces.",
    )
    against: str | None = options.option(
        "--against", metavar="gold|NAME", help="What the judge is measured by. Default: gold."
    )
    gold: GoldKind | None = options.gold()
    shards: str | None = options.option(
        "--shards",
        metavar="FOLDER-or-URL",
        help="With --judge: count what it said of the traces in these shards too (docs/scale.md).",
    )
    thresholds: bool = options.option(
        "--thresholds",
        is_flag=True,
        help="With --judge: its findings count from a confidence on that is fitted for each mode "
        "on the calibration traces of 'study set --split', and it is measured on all others.",
    )
    which: Which = options.which_pass(
        help="The first reading, before anybody saw the others, or the last one.", default="1"
    )
    rounds: int = options.rounds(help="Resamples of the traces behind the intervals; 0 gives none.")
    seed: int = options.seed()
    no_spans: bool = options.option("--no-spans", is_flag=True, help="Say nothing of places.")
    time: bool = options.option(
        "--time",
        is_flag=True,
        help="Show the minutes per trace and label with and without suggestions instead, and how "
        "much more often people say present where a judge suggests it.",
    )
    mode: str | None = options.option(
        "--traces",
        metavar="MODE",
        help="List the traces behind the figures of a mode instead, the disagreements first.",
    )
    csv_file: Path | None = options.report_file(
        "--csv", help="Also write every figure as one row of a CSV file."
    )
    markdown: str | None = options.option(
        "--markdown",
        metavar="OUT|-",
        help="Also write tables for a paper; - prints them instead of the text.",
    )
    latex_file: Path | None = options.report_file("--latex", help="Also write the tables as LaTeX.")
    html_file: Path | None = options.report_file(
        "--html", help="Also write the report as one HTML page."
    )
    methods: bool = options.option(
        "--methods",
        is_flag=True,
        help="Print a paragraph for the methods section of a paper instead.",
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
    def files(self) -> Files:
        """The files to write."""
        markdown = None if self.markdown in (None, "-") else Path(self.markdown)
        named = Files.named(
            csv=self.csv_file, markdown=markdown, latex=self.latex_file, html=self.html_file
        )
        return replace(named, records=self.output)

    @property
    def stdout(self) -> str:
        """The form that is printed."""
        forms = (
            ("json", self.as_json),
            ("methods", self.methods),
            ("records", self.records),
            ("markdown", self.markdown == "-"),
        )
        return next((form for form, is_chosen in forms if is_chosen), "text")


_RULES: Final = (
    OptionRule[AgreeRequest](
        "two judges are compared at a time; give --judge once or twice",
        when=lambda request: len(request.judges) > 2,
    ),
    OptionRule[AgreeRequest](
        "--against says what a judge is measured by; name it with --judge",
        options=("--against",),
        needs=("--judge",),
    ),
    OptionRule[AgreeRequest](
        "--shards are what one judge has said; name it with --judge",
        options=("--shards",),
        when=lambda request: len(request.judges) != 1,
    ),
    OptionRule[AgreeRequest](
        "--gold says how much of the gold a judge is measured by; name it with --judge, and leave "
        "out --against",
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
        "--thresholds are those of one judge; name it with --judge",
        options=("--thresholds",),
        when=lambda request: len(request.judges) != 1,
    ),
    OptionRule[AgreeRequest](
        "--time shows figures of its own; leave out {other}",
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
        "--records prints records; leave out --json, --traces and '-'",
        options=("--records",),
        excludes=("--json", "--traces"),
    ),
    OptionRule[AgreeRequest](
        "--records prints records; leave out --json, --traces and '-'",
        options=("--records",),
        when=lambda request: request.markdown == "-",
    ),
    OptionRule[AgreeRequest](
        "--json and --markdown - both print on stdout; give one of them",
        options=("--json",),
        when=lambda request: request.markdown == "-",
    ),
    OptionRule[AgreeRequest](
        "--traces lists traces and writes no files; leave these out",
        options=("--traces",),
        excludes=("--csv", "--markdown", "--latex", "--html"),
    ),
    OptionRule[AgreeRequest](
        "--traces lists what people said; leave out --pseudonyms and a second --judge",
        options=("--traces",),
        excludes=("--pseudonyms",),
    ),
    OptionRule[AgreeRequest](
        "--traces lists what people said; leave out --pseudonyms and a second --judge",
        options=("--traces",),
        when=lambda request: len(request.judges) > 1,
    ),
    SAME_FILE,
)


@click.command()
@options.takes(AgreeRequest, _RULES)
def agree_command(request: AgreeRequest) -> None:
    """Show how far annotators agree, and how good a judge is.

    The unit is trace × mode where both have a verdict, in finished traces. Annotators see only the
    traces that they have finished or adjudicate; this is recorded.
    """
    workspace = open_workspace(request.common)
    outputs = outputs_beside(workspace, force=request.force)
    request.files.check(outputs)
    chosen = kept_taxonomy(workspace, request.common.taxonomy)
    viewer = asked_by(workspace, chosen.ref, request.common)
    compared_work = _comparison(request, workspace, viewer)
    sight = sight_values(viewer, viewer.hidden)
    if request.time:
        _show_time(time_document(workspace, chosen, compared_work), viewer, request)
        return
    if request.mode is not None:
        traces = traces_document(workspace, chosen, compared_work, request.mode)
    else:
        figures = whole_report(workspace, chosen, compared_work)
    people = (*(compared_work.annotators or ()), compared_work.against, compared_work.judge or "")
    judged = any(annotator_kind(name) is AnnotatorKind.JUDGE for name in people)
    viewer.reveal(viewer.traces or (), judges=judged)
    if not request.as_json:
        say_left_out(viewer, viewer.hidden)
    if request.mode is not None:
        print_traces(traces | sight, as_json=request.as_json)
        return
    _say_thresholds(figures)
    if sight:
        figures = replace(figures, only_seen_by=sight["sight"]["annotator"])
    figures = replace(figures, revisions=tuple(workspace.revisions_read(chosen.ref)))
    if request.pseudonyms:
        letters = pseudonyms_of(workspace)
        figures = figures.renamed(letters.letters, letters.in_document)
        sight = letters.in_document(sight)
    report = agreement_report(figures, sight=sight.get("sight"))
    if request.as_json:
        for note in report.notes:
            if note.reason == "few_annotators":
                say(note.text)
    document = agreement_json(figures) | sight
    output = ReportOutput(request.files, request.stdout)
    output.show(report, document, outputs, figures.figures)


def _say_thresholds(figures: Agreement) -> None:
    """Report on stderr the thresholds of a judge, and where they come from."""
    thresholds = None if figures.judge is None else figures.judge.thresholds
    if thresholds is None:
        return
    cuts = ", ".join(
        f"{code} over {mode['value']:.2f}"
        for code, mode in thresholds["modes"].items()
        if mode["value"] > 0
    )
    traces = counted(thresholds["calibration_traces"], "calibration trace")
    say(
        f"thresholds {thresholds['hash']}, fitted on {traces}, which are left out: "
        f"{cuts or 'every finding counts'}"
    )


def _comparison(request: AgreeRequest, workspace: Workspace, viewer: Viewer) -> Wanted:
    """Return what is compared, of which the viewer may see it.

    Raises:
        click.ClickException: A judge is not in the workspace, or hidden from the viewer.
    """
    anybody = partial(asked_by, workspace, viewer.taxonomy, request.common, anybody=True)
    if request.shards is not None and anybody().judges_hidden:
        raise click.ClickException(
            f"{request.shards}: what a judge found is hidden while you work blind or without "
            "suggestions"
        )
    judges = [judge_named(workspace, name) for name in request.judges]
    if len(set(judges)) < len(judges):
        raise click.UsageError(f"--judge names {judges[0]!r} twice")
    count_beyond = None
    if request.shards is not None:
        count_beyond = partial(import_module(_SHARDS).judged_beyond, request.shards)
    return Wanted(
        annotators=split_names(request.annotators),
        judge=judges[0] if judges else None,
        other_judge=judges[1] if len(judges) > 1 else None,
        against=request.against or "gold",
        gold=request.gold or "all",
        which=request.which,
        rounds=request.rounds,
        seed=request.seed,
        places=not request.no_spans,
        traces=viewer.traces,
        blind=viewer.blind,
        may_see_judges=viewer.may_see_judges(),
        count_beyond=count_beyond,
        thresholds=request.thresholds,
    )


def time_document(workspace: Workspace, taxonomy: Taxonomy, wanted: Wanted) -> dict[str, Any]:
    """Return the document of ``agree --time``.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the labels.
        wanted: Whose passes count, and on which traces.

    Raises:
        click.ClickException: Nobody has finished a trace in a study that shows suggestions.
    """
    ref = taxonomy.ref
    passes = [
        each
        for each in workspace.passes(taxonomy=ref)
        if each.kind is PassKind.ASSISTED
        and (wanted.traces is None or each.trace_id in wanted.traces)
        and (wanted.annotators is None or each.annotator in wanted.annotators)
    ]
    counted_first = counted_passes(passes, "first")
    if not counted_first:
        raise click.ClickException(
            "nobody has finished a trace with suggestions shown; 'mast-tui study set --assisted "
            "--withhold 0.5' begins a study in which they are hidden on half of the traces"
        )
    suggested: dict[str, set[str]] = {
        each.trace_id: set() for each in workspace.judgements(taxonomy=ref)
    }
    labels: Counter[tuple[str, str, int]] = Counter()
    for label in workspace.labels(taxonomy=ref, pass_number=None):
        if annotator_kind(label.annotator) is AnnotatorKind.JUDGE:
            suggested.setdefault(label.trace_id, set()).add(label.mode)
        else:
            labels[label.annotator, label.trace_id, label.pass_number] += 1
    verdicts: dict[tuple[str, str, int], dict[str, VerdictValue]] = {}
    for verdict in workspace.verdicts(taxonomy=ref, pass_number=None):
        key = (verdict.annotator, verdict.trace_id, verdict.pass_number)
        verdicts.setdefault(key, {})[verdict.mode] = verdict.value
    minutes = minutes_worked(workspace, taxonomy)
    timed = []
    for (annotator, trace_id), each in sorted(counted_first.items()):
        key = (annotator, trace_id, each.number)
        modes = suggested.get(trace_id)
        timed.append(
            TimedPass(
                annotator,
                trace_id,
                each.withheld,
                minutes.get(key),
                labels[key],
                verdicts.get(key, {}),
                None if modes is None else frozenset(modes),
            )
        )
    slugs = tuple((mode.slug, mode.code, mode.name) for mode in taxonomy.modes)
    return {"taxonomy": ref, "longest_pause": LONGEST_PAUSE, **time_study(timed, slugs)}


def _show_time(document: dict[str, Any], viewer: Viewer, request: AgreeRequest) -> None:
    """Print a time study, and record what it shows to the annotator."""
    viewer.reveal(viewer.traces or (), judges=True)
    if request.as_json:
        print_json(document | sight_values(viewer, viewer.hidden))
        return
    say_left_out(viewer, viewer.hidden)
    print_time(document)


def print_time(document: Mapping[str, Any]) -> None:
    """Print the time with and without suggestions, and the pull of suggestions.

    Args:
        document: The document of ``agree --time``.
    """
    conditions = (("suggestions shown", "shown"), ("suggestions hidden", "withheld"))
    columns: tuple[TableColumn[tuple[str, str]], ...] = (
        TableColumn("", lambda row: row[0]),
        TableColumn("passes", lambda row: str(document[row[1]]["passes"]), right=True),
        TableColumn(
            "minutes per trace",
            lambda row: _time_words(document[row[1]]["minutes_per_trace"]),
            right=True,
        ),
        TableColumn(
            "minutes per label",
            lambda row: _time_words(document[row[1]]["minutes_per_label"]),
            right=True,
        ),
    )
    print_table(columns, conditions)
    if not document["annotators"]:
        print_line(
            "No annotator has finished traces both with and without suggestions, so nothing tells "
            "what these change; 'mast-tui study set --withhold SHARE' plans it."
        )
        return
    minutes = _time_words(document["minutes_difference"])
    print_line(f"Minutes per trace, shown less hidden, within annotators: {minutes}")
    print_line("How much more often people say present with suggestions than without:")
    rows = [("all modes", document["anchoring"]), *document["modes"].items()]
    bias_columns: tuple[TableColumn[tuple[str, Mapping[str, Any]]], ...] = (
        TableColumn("mode", lambda row: row[0]),
        TableColumn(
            "where a judge suggests it", lambda row: _time_words(row[1]["suggested"]), right=True
        ),
        TableColumn("verdicts", lambda row: str(row[1]["units"]), right=True),
        TableColumn("elsewhere", lambda row: _time_words(row[1]["other"]), right=True),
        TableColumn("verdicts", lambda row: str(row[1]["other_units"]), right=True),
    )
    print_table(bias_columns, [row for row in rows if row[1]["units"] or row[1]["other_units"]])


def _time_words(figure: Mapping[str, Any]) -> str:
    if figure["value"] is None:
        return "—"
    if figure.get("ci") is None:
        return f"{figure['value']:.2f}"
    low, high = figure["ci"]
    return f"{figure['value']:.2f} [{low:.2f}, {high:.2f}]"


def split_names(text: str | None) -> list[str] | None:
    """The names in ``A,B,…``; names hold no comma. None where nobody is named."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--annotators names nobody; give them as A,B")
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"--annotators names {name!r} twice")
    return names


def print_traces(document: Mapping[str, Any], *, as_json: bool) -> None:
    """Print who said what of a mode, the disagreements first.

    Args:
        document: What ``traces_document`` made.
        as_json: Print the document itself.
    """
    if as_json:
        print_json(document)
        return
    print_line(f"{document['mode']} {document['name']}: {_summary(document)}")
    if document["traces"]:
        names = document["annotators"]
        columns: tuple[TableColumn[Mapping[str, Any]], ...] = (
            TableColumn("", lambda row: "≠" if row["disagreement"] else ""),
            key_column("trace"),
            *(_answer_column(name) for name in names),
        )
        print_table(columns, document["traces"])


def _answer_column(name: str) -> TableColumn[Mapping[str, Any]]:
    return TableColumn(name, lambda trace: _word(trace["said"], name))


def traces_document(
    workspace: Workspace, taxonomy: Taxonomy, wanted: Wanted, text: str
) -> dict[str, Any]:
    """Gather who said what of a mode in the traces that its figures rest on.

    With a judge these are the traces on which it can be compared, its errors first.

    Args:
        workspace: Where to look.
        taxonomy: The taxonomy of the mode.
        wanted: Who is compared, and on which traces.
        text: The mode, as people name it.

    Raises:
        click.ClickException: The taxonomy has no such mode.
    """
    mode = taxonomy.find(text)
    if mode is None or mode not in taxonomy.modes:
        codes = ", ".join(one.code for one in taxonomy.modes)
        raise click.ClickException(f"{taxonomy.ref} has no mode {text!r}; there are: {codes}")
    judged = judge_input(workspace, taxonomy, wanted)
    if judged is None:
        study = study_input(workspace, taxonomy, wanted)
        names: Sequence[str] = study.annotators
        behind = source_traces(study, mode.slug)
    else:
        names = (judged.judge, judged.reference.name)
        behind = judged_source_traces(judged, compared(judged), mode.slug)
    traces = [
        {
            "trace": one.trace_id,
            "disagreement": one.disagreement,
            "said": {name: value and value.value for name, value in one.verdicts.items()},
        }
        for one in behind
    ]
    return {
        "taxonomy": taxonomy.ref,
        "pass": "1" if wanted.which == "first" else "last",
        "mode": mode.code,
        "slug": mode.slug,
        "name": mode.name,
        "annotators": list(names),
        "traces": traces,
    }


def _summary(document: Mapping[str, Any]) -> str:
    """How many traces there are, and on how many of them they differ."""
    traces = document["traces"]
    if not traces:
        return "no trace has a verdict on it by two of those who are compared"
    differing = sum(one["disagreement"] > 0 for one in traces)
    return f"{counted(len(traces), 'trace')}, {differing} with a disagreement"


def _word(said: Mapping[str, str | None], name: str) -> str:
    """What somebody said: nothing where they have not finished the trace."""
    return (said[name] or "open") if name in said else "—"

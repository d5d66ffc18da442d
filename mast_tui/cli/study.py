"""``mast-tui study``: the settings of a study, its assignments and progress, and its queues."""

from __future__ import annotations

import os
from collections import ChainMap, Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import asdict, replace

from mast_tui.adjudication import keep_missing_indices
from mast_tui.cli.agree import ComparisonOptions, find_judge, judge_input
from mast_tui.cli.command_line import CommonOptions, split_options
from mast_tui.cli.open_codes import notes_command
from mast_tui.cli.report import ReportRequest, signature_input
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer
from mast_tui.cli.shared.common import (
    is_in_parent_folder,
    open_with_taxonomy,
    print_json,
    print_line,
    print_table,
    say,
)
from mast_tui.cli.shared.options import OptionRule
from mast_tui.columns import TableColumn, key_column
from mast_tui.counts import counted
from mast_tui.exchange.csv_files import CsvRow, read_rows
from mast_tui.exchange.errors import ExchangeError
from mast_tui.figures.intervals import MARGIN
from mast_tui.figures.prevalence import worth_of_labels
from mast_tui.figures.signatures.model import ALL
from mast_tui.figures.signatures.modes import counts_by_mode
from mast_tui.grouping import values_by_key
from mast_tui.labels import checked_person
from mast_tui.redaction.engine import read_rules
from mast_tui.reports.render.csv import csv_text
from mast_tui.session import (
    LOST_RETEST_NOTE,
    QueueItem,
    QueueKind,
    StudyProgress,
    Viewer,
    annotator_counts_text,
    check_changes,
    earlier_work_text,
    finished_in_study,
    outside_study_text,
    outside_work,
    outside_work_text,
    progress,
    queue,
    register_opened_trace,
    sample_texts,
    set_study,
    with_annotator,
    with_assignments,
    with_released_traces,
    with_sample,
    with_traces,
    with_weights,
    with_worth,
    without_annotator,
)
from mast_tui.study import (
    Draw,
    Membership,
    OpenModes,
    Study,
    annotators_of,
    assigned,
    overlap_traces,
)
from mast_tui.traces.library import scan
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.paths import FILE, FOLDER, find_workspace, suggested_name
from mast_tui.workspace.records import TraceRecord
from mast_tui.workspace.registers.hold_out import TracePart, set_split, shares_set_aside, trace_part

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


_COLUMNS: Final = ("trace_id", "annotator", "lot")


def assignments_csv(study: Study, annotator: str | None = None) -> str:
    """Return the assignments as CSV text, a row for each trace and annotator.

    Args:
        study: The study.
        annotator: The annotator of the rows; None for all.
    """
    rows = (
        dict(zip(_COLUMNS, (trace_id, name, str(batch_number)), strict=True))
        for batch_number, batch in enumerate(study.batches, start=1)
        for trace_id in batch
        for name in annotators_of(study, trace_id)
        if annotator in (None, name)
    )
    return csv_text(_COLUMNS, rows)


def read_assignments(
    path: Path, study: Study, finished: Collection[str]
) -> Mapping[str, tuple[str, ...]]:
    """Read the annotators of each trace from a table.

    Args:
        path: A table with the columns ``trace_id`` and ``annotator``. The column ``lot`` is
            ignored.
        study: The study.
        finished: The ids of the finished traces.

    Returns:
        The annotators by trace id, for the traces in the table.

    Raises:
        ExchangeError: The table is broken, has a trace or an annotator outside the study, or
            changes the annotators of a finished trace.
    """
    study_traces = frozenset(study.traces)
    names_by_trace: dict[str, dict[str, None]] = {}
    row_by_trace: dict[str, CsvRow] = {}
    for row in read_rows(path, allowed=_COLUMNS, needed=_COLUMNS[:2]):
        trace_id = row.cells["trace_id"].strip()
        name = row.cells["annotator"].strip()
        problem = None
        if trace_id not in study_traces:
            problem = f"trace {trace_id!r} is not in the study; add it with mast-tui study add"
        elif name not in study.annotators:
            problem = (
                f"{name!r} is not an annotator of the study; add one with mast-tui study join; "
                f"there are {', '.join(study.annotators)}"
            )
        elif name in names_by_trace.get(trace_id, {}):
            problem = f"{name} is assigned trace {trace_id!r} twice"
        elif name not in annotators_of(study, trace_id) and any(
            release.annotator == name and trace_id in release.traces for release in study.releases
        ):
            problem = f"{name} has given trace {trace_id!r} back, and cannot get it again"
        if problem is not None:
            raise ExchangeError(str(row.problem(problem)))
        names_by_trace.setdefault(trace_id, {})[name] = None
        row_by_trace[trace_id] = row
    for trace_id, row in row_by_trace.items():
        names = annotators_of(study, trace_id)
        if trace_id in finished and names_by_trace[trace_id].keys() != {*names}:
            problem = (
                f"someone has finished trace {trace_id!r}, so its annotators "
                f"({', '.join(names)}) can no longer change; leave out its rows"
            )
            raise ExchangeError(str(row.problem(problem)))
    if not names_by_trace:
        raise ExchangeError(f"{path}: no row assigns a trace to an annotator")
    return {trace_id: tuple(sorted(names)) for trace_id, names in names_by_trace.items()}


_SHARE: Final = click.FloatRange(0, 1)

_STRATIFY_RULE: Final = OptionRule[Any](
    "--stratify draws a sample: give --sample N too",
    options=("--stratify",),
    needs=("--sample",),
)


_sample: Final = partial(
    options.option,
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="Add N of the traces, drawn at random with equal chances. Default: all.",
)
_stratify: Final = partial(
    options.option,
    "--stratify",
    metavar="A,B,…",
    help="Draw the same share of each combination of these fields: system, model, benchmark, "
    "outcome, length (short to long, in four classes).",
)
_dry_run: Final = partial(
    options.option,
    "--dry-run",
    is_flag=True,
    help="Only show the new assignments; write nothing.",
)


class _StudyGroup(click.Group):
    """A group of subcommands that accepts the common options before their names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the options before the name of a subcommand behind it."""
        options, arguments = split_options(args)
        if options and arguments:
            # Click reads the common options only after the name of a subcommand.
            args = [arguments[0], *options, *arguments[1:]]
        return super().parse_args(ctx, args)


@click.group(cls=_StudyGroup)
def study_command() -> None:
    """Set up a study: who labels which traces, in which order, and how.

    A study is set up once and stored with the labels. Queues, visibility and the figures follow
    from it.

    Example: mast-tui study set runs/ --annotators alice,bob
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySetRequest:
    """The options of ``mast-tui study set``."""

    paths: tuple[Path, ...] = options.paths(exist=True)
    annotators: str | None = options.option("--annotators", metavar="A,B,…", help="Who labels.")
    weights: str | None = options.option(
        "--weights",
        metavar="A=2,…",
        help="The share of traces that each annotator gets: with 2, twice as many as with 1, the "
        "default.",
    )
    adjudicators: str | None = options.option(
        "--adjudicators", metavar="C,…", help="The people who decide where annotators differ."
    )
    per_trace: int | None = options.option(
        "--per-trace",
        type=click.IntRange(1),
        help="The number of annotators per trace of the overlap. Default: 2.",
    )
    overlap: float | None = options.option(
        "--overlap",
        type=_SHARE,
        help="The share of traces that several label; each other trace has one annotator. "
        "Default: 1.",
    )
    seed: int | None = options.option(
        "--seed", type=int, help="The seed of samples, assignments and orders. Default: 0."
    )
    sample: int | None = _sample()
    stratify: str | None = _stratify()
    withheld: float | None = options.option(
        "--withhold",
        type=_SHARE,
        help="In a study that shows suggestions, the share of each annotator's traces that hide "
        "them until the finish, to measure how suggestions influence people. Default: 0.",
    )
    retests: float | None = options.option(
        "--retest",
        type=_SHARE,
        help="The share of each annotator's traces that repeat: they are labelled again later, "
        "with the first labels hidden. Default: 0.",
    )
    split: str | None = options.option(
        "--split",
        metavar="D,C,T",
        help="Permanently divide all traces into three shares, such as 0.5,0.2,0.3: development, "
        "which may teach a judge; calibration, to fit its thresholds; test, to measure it.",
    )
    open_modes: OpenModes | None = options.option(
        "--open-modes",
        type=click.Choice(["ask", "leave", "absent"]),
        callback=lambda _context, _parameter, value: value and OpenModes(value),
        help="The action for open modes (without a verdict) when a trace is finished with unread "
        "spans. Default: ask.",
    )
    names_hidden: bool | None = options.option(
        "--names",
        type=click.Choice(["shown", "hidden"]),
        callback=lambda _context, _parameter, value: value and value == "hidden",
        help="Show annotators' names in adjudication. Default: hidden, until a key shows them.",
    )
    judge_first: bool | None = options.option(
        "--judge-in-adjudication",
        type=click.Choice(["after", "before"]),
        callback=lambda _context, _parameter, value: value and value == "before",
        help="Show a judge only after the decision, or also before it. Default: after.",
    )
    boundaries: bool | None = options.option(
        "--boundaries/--no-boundaries",
        default=None,
        help="Treat overlapping labels of one mode with different ends as a conflict. Labels that "
        "do not overlap always are one. Default: no.",
    )
    reasons: bool | None = options.option(
        "--reasons/--no-reasons",
        default=None,
        help="Ask for a reason with each decision. Default: no.",
    )
    redact: bool | None = options.option(
        "--redact/--no-redact",
        default=None,
        help="Mask personal data and secrets in traces for everyone who works in this workspace. "
        "Default: no.",
    )
    redact_file: Path | None = options.option(
        "--redact-file",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Also mask what the patterns in this file match, one per line.",
    )
    dry_run: bool = _dry_run()
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()


_ROUNDING: Final = 1e-6
"""The largest rounding error in the sum of the shares of ``--split``."""

_SETTINGS: Final = (
    "per_trace",
    "overlap",
    "seed",
    "withheld",
    "retests",
    "open_modes",
    "names_hidden",
    "judge_first",
    "boundaries",
    "reasons",
    "redact",
)
"""The fields of a study with an option of the same name."""


@study_command.command("set")
@options.takes(StudySetRequest, (_STRATIFY_RULE,))
def set_command(request: StudySetRequest) -> None:
    """Set the study up, or change it.

    Settings that you leave out stay unchanged. The traces are those under PATH, else all traces of
    the workspace; with --sample a part of them, which --seed draws. --blind (the default) or
    --assisted sets how the annotators work, unless they choose otherwise. Once a trace is finished,
    settings that figures depend on can no longer change. --annotator is your name.

    Example: mast-tui study set runs/ --annotators alice,bob --sample 50
    """
    workspace, taxonomy = open_with_taxonomy(request.common, create=not request.dry_run)
    previous = workspace.study(taxonomy.ref)
    annotators = _option_names(request.annotators, "--annotators")
    if previous is None and not annotators:
        raise click.UsageError("a new study needs its annotators: --annotators A,B")
    values = {
        "annotators": annotators,
        "adjudicators": _option_names(request.adjudicators, "--adjudicators"),
        "blind": _requested_blind(request.common),
        **{name: getattr(request, name) for name in _SETTINGS},
    }
    if request.redact_file is not None:
        values["redact_patterns"] = _pattern_lines(request.redact_file)

    replaces_traces = (
        request.paths
        or previous is None
        or request.sample is not None
        or request.stratify is not None
    )
    if replaces_traces:
        values |= {"batches": (), "draws": (), "assignments": ()}
    study = with_weights(
        _changed_study(previous, taxonomy.ref, values), _option_weights(request.weights)
    )
    if request.common.workspace is None:
        _check_keeps_people(workspace, find_workspace(None), previous, study)
    if not request.dry_run:
        workspace.add_taxonomy(taxonomy)
    if replaces_traces:
        traces = _traces_under(workspace, request.paths, dry_run=request.dry_run)
        study = _with_batch(study, traces, request.sample, request.stratify)

    shares = None if request.split is None else _split_shares(request.split)
    # A split is permanent, so a refused study must not leave one.
    with workspace.transaction():
        changed = _set_unless_dry(workspace, request, previous, study)
        if shares is not None:
            set_split(workspace, *shares, dry_run=request.dry_run)
    _report_split(workspace, study)
    _print_study(workspace, study, changed=changed, as_json=request.as_json)
    if previous is None or not finished_in_study(workspace, previous):
        earlier_text = earlier_work_text(workspace, study)
        if earlier_text:
            say(earlier_text)


def _check_keeps_people(
    workspace: Workspace, path: Path, previous: Study | None, study: Study
) -> None:
    """Refuse a study that leaves people out, in a workspace that was found in a parent folder.

    Raises:
        click.ClickException: The study leaves out finished work, or people of the previous study.
    """
    if not is_in_parent_folder(path):
        return
    names = outside_work(workspace, study) if previous is None else previous.participants
    left_out = [name for name in names if name not in study.participants]
    if left_out:
        parent = os.path.relpath(path)
        raise click.ClickException(
            f"{parent}: this workspace is in a parent folder, and the study would leave out "
            f"{', '.join(left_out)}, whose work counts there; for a workspace in this folder give "
            f"--workspace {Path(FOLDER, FILE)}, to leave them out give --workspace {parent}"
        )


def _pattern_lines(path: Path) -> tuple[str, ...]:
    """Read the patterns of a file, without comments and empty lines.

    Raises:
        RedactionError: The file cannot be read, or a pattern is not usable.
    """
    read_rules(path)  # raises if a pattern is not usable
    return tuple(
        line
        for line in (line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines())
        if line and not line.startswith("#")
    )


def _split_shares(text: str) -> tuple[float, float]:
    """Return the shares of calibration and test in ``--split``."""
    try:
        development, calibration, test = (float(part) for part in text.split(","))
    except ValueError:
        raise click.UsageError(f"--split {text}: three shares are needed: 0.5,0.2,0.3") from None
    if abs(development + calibration + test - 1) > _ROUNDING:
        raise click.UsageError(f"--split {text}: the three shares add up to 1")
    return calibration, test


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of the commands that change who labels which traces."""

    dry_run: bool = _dry_run()
    common: CommonOptions = options.common_of_study()
    as_json: bool = options.as_json()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAddRequest:
    """The options of ``mast-tui study add``."""

    paths: tuple[Path, ...] = options.paths(exist=True)
    sample: int | None = _sample()
    stratify: str | None = _stratify()
    judge: str | None = options.option(
        "--judge",
        metavar="NAME",
        help="Prefer traces whose labels would be most informative, according to this judge's "
        "answers. Each trace's chance is stored; it weights the prevalence over all traces.",
    )
    mode: str | None = options.option(
        "--mode",
        metavar="MODE",
        help="With --judge: prefer traces informative about this mode. Default: all modes.",
    )
    plan: PlanOptions = options.group(PlanOptions)


_ADD_RULES: Final = (
    OptionRule[StudyAddRequest](
        "--judge draws a sample: give --sample N too",
        options=("--judge",),
        needs=("--sample",),
    ),
    OptionRule[StudyAddRequest](
        "--mode needs --judge",
        options=("--mode",),
        needs=("--judge",),
    ),
    _STRATIFY_RULE,
)


@study_command.command("add")
@options.takes(StudyAddRequest, _ADD_RULES)
def add_command(request: StudyAddRequest) -> None:
    """Add traces to the study, after the earlier ones.

    The traces are those under PATH, else all traces of the workspace; with --sample a part of those
    that are not in the study yet. They follow the earlier traces in every queue, and do not change
    who labels the earlier ones.

    Example: mast-tui study add runs/ --sample 20
    """
    workspace, taxonomy = open_with_taxonomy(request.plan.common)
    previous = workspace.study(taxonomy.ref)
    if previous is None:
        raise click.ClickException(
            f"there is no study under {taxonomy.ref} in the workspace; set one up with "
            "mast-tui study set"
        )
    if request.judge is not None:
        study = _with_judged_sample(workspace, taxonomy, previous, request)
    else:
        traces = _traces_under(workspace, request.paths, dry_run=request.plan.dry_run)
        study = _with_batch(previous, traces, request.sample, request.stratify)
    changed = _set_unless_dry(workspace, request.plan, previous, study)
    _print_study(workspace, study, changed=changed, as_json=request.plan.as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyJoinRequest:
    """The options of ``mast-tui study join``."""

    name: str = options.argument(metavar="NAME")
    weight: float = options.option(
        "--weight",
        type=click.FloatRange(0, min_open=True),
        default=1.0,
        show_default=True,
        help="The share of traces that NAME gets: with 2, twice as many as others.",
    )
    plan: PlanOptions = options.group(PlanOptions)


@study_command.command("join")
@options.takes(StudyJoinRequest)
def join_command(request: StudyJoinRequest) -> None:
    """Add NAME as an annotator, from the next batch on.

    They also get traces that others release from now on. Assignments so far do not change.

    Example: mast-tui study join dora --dry-run
    """
    name = _checked_name(request.name)
    _change_plan(
        request.plan, lambda _workspace, study: with_annotator(study, name, weight=request.weight)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyMemberRequest:
    """The options of ``mast-tui study leave`` and ``study release``."""

    name: str = options.argument(metavar="NAME")
    plan: PlanOptions = options.group(PlanOptions)


@study_command.command("leave")
@options.takes(StudyMemberRequest)
def leave_command(request: StudyMemberRequest) -> None:
    """Remove NAME from the study; the others get the unfinished traces.

    Finished traces stay NAME's. Each other trace goes to the annotator with the fewest traces.
    'study join NAME' adds NAME again.

    Example: mast-tui study leave bob --dry-run
    """
    name = _checked_name(request.name)
    _change_plan(request.plan, lambda workspace, study: without_annotator(workspace, study, name))


@study_command.command("release")
@options.takes(StudyMemberRequest)
def release_command(request: StudyMemberRequest) -> None:
    """Give the unfinished traces of NAME to the others.

    NAME stays in the study and gets traces of later batches. Each trace goes to the annotator with
    the fewest traces.

    Example: mast-tui study release alice --dry-run
    """
    name = _checked_name(request.name)
    _change_plan(
        request.plan, lambda workspace, study: with_released_traces(workspace, study, name)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyExportRequest:
    """The options of ``mast-tui study export``."""

    output: Path = options.output(help="The file to write.", required=True)
    force: bool = options.force()
    common: CommonOptions = options.common_of_study()


@study_command.command("export")
@options.takes(StudyExportRequest)
def export_command(request: StudyExportRequest) -> None:
    """Write the assignments as a table: trace_id,annotator,lot.

    An annotator of the study gets only their own rows.

    Example: mast-tui study export -o who.csv
    """
    workspace, taxonomy, study = open_study(request.common)
    viewer = command_viewer(workspace, taxonomy.ref, request.common)
    annotator = named_annotator(viewer, request.common)
    # Everyone but the study's annotators gets all rows.
    text = assignments_csv(study, annotator if annotator in study.annotators else None)
    outputs = outputs_beside(workspace, force=request.force)
    outputs.add(request.output, text)
    outputs.commit()
    say(f"{request.output}: written")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyImportRequest:
    """The options of ``mast-tui study import``."""

    file: Path = options.argument(type=click.Path(path_type=Path, exists=True, dir_okay=False))
    plan: PlanOptions = options.group(PlanOptions)


@study_command.command("import")
@options.takes(StudyImportRequest)
def import_command(request: StudyImportRequest) -> None:
    """Set the assignments from a table that 'study export' wrote.

    Traces that FILE does not name stay assigned as before. Once someone has finished a trace, its
    annotators can no longer change.

    Example: mast-tui study import who.csv --dry-run
    """

    def _assign(workspace: Workspace, study: Study) -> Study:
        finished = {trace_id for _, trace_id in finished_in_study(workspace, study)}
        return with_assignments(study, read_assignments(request.file, study, finished))

    _change_plan(request.plan, _assign)


def _change_plan(plan: PlanOptions, change: Callable[[Workspace, Study], Study]) -> None:
    """Change the assignments, and print each annotator's number of traces before and after."""
    workspace, _taxonomy, previous = open_study(plan.common)
    study = change(workspace, previous)
    changed = _set_unless_dry(workspace, plan, previous, study)
    rows = [
        {
            "name": name,
            "assigned": len(assigned(study, name)),
            "before": len(assigned(previous, name)) if name in previous.annotators else 0,
            "present": name in study.present,
        }
        for name in study.annotators
    ]
    if plan.as_json:
        print_json({"changed": changed, "people": rows, **plan_document(workspace, study)})
        return
    if not changed:
        click.echo("nothing changed")
    columns: tuple[TableColumn[Mapping[str, Any]], ...] = (
        key_column("name", "annotator"),
        key_column("before", "traces before", right=True),
        key_column("assigned", "traces after", right=True),
        TableColumn("in the study", lambda row: "yes" if row["present"] else "has left"),
    )
    print_table(columns, rows)


def _set_unless_dry(
    workspace: Workspace,
    plan: PlanOptions | StudySetRequest,
    previous: Study | None,
    study: Study,
) -> bool:
    """Write a changed study unless ``--dry-run`` is given, and return if it has changed."""
    if plan.dry_run:
        check_changes(workspace, study)
        if study != previous:
            say("nothing was saved; leave out --dry-run to save the changes")
        return study != previous
    return set_study(workspace, _person_who_changes(workspace, plan.common.annotator), study)


# These are the values of ``QueueKind`` without ``retests``. An import of it would slow ``--help``
# down.
_QUEUE_KINDS = ("mine", "disagreements", "judge", "unsure", "changed", "worth", "sample")
_UNREVEALING_KINDS = ("mine", "worth", "sample")
"""The queues that reveal no labels of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyShowRequest:
    """The options of ``mast-tui study show``."""

    common: CommonOptions = options.common_of_study()
    as_json: bool = options.as_json()


@study_command.command("show")
@options.takes(StudyShowRequest)
def show_command(request: StudyShowRequest) -> None:
    """Show the study's settings and the progress of each annotator.

    Annotators see only their own progress. They do not see planned retests, so that they do not
    expect them.

    Example: mast-tui study show
    """
    workspace, taxonomy, study = open_study(request.common)
    viewer = command_viewer(workspace, taxonomy.ref, request.common)
    annotator = named_annotator(viewer, request.common)
    rows = progress_rows(workspace, taxonomy, study, annotator)
    document = plan_document(workspace, study)
    # The number of needed traces would tell an annotator how often others find a mode present.
    is_lead = viewer.name == workspace.study_leads().get(study.taxonomy)
    is_annotator = annotator in study.annotators or (viewer.sees_finished_only and not is_lead)
    traces_needed = {} if is_annotator else traces_to_label(workspace, taxonomy, study)
    if request.as_json:
        print_json({**document, "progress": rows, "more_traces": traces_needed})
        return
    print_plan(study)
    print_progress(rows)
    if traces_needed:
        print_line(_needed_text(traces_needed, taxonomy))
    _report_split(workspace, study)
    _report_outside_work(workspace, study)


def _report_split(workspace: Workspace, study: Study) -> None:
    """Report on stderr the sizes of the parts of a split, and equal traces in different parts."""
    if not shares_set_aside(workspace):
        return
    part_by_trace = {trace_id: trace_part(workspace, trace_id) for trace_id in study.traces}
    counts = Counter(part_by_trace.values())
    say("split: " + ", ".join(f"{counts[part]} {part}" for part in TracePart))
    parts_by_content = values_by_key(
        (record.identity.content_hash, part_by_trace[record.trace_id])
        for record in workspace.traces()
        if record.identity is not None and record.trace_id in part_by_trace
    )
    divided_count = sum(len(set(parts)) > 1 for parts in parts_by_content.values())
    if divided_count:
        say(
            f"{counted(divided_count, 'run')} in several files, in different parts of the split: "
            "keep one file of each"
        )


def _report_outside_work(workspace: Workspace, study: Study) -> None:
    """Report on stderr work in the workspace that does not count in its study."""
    outside_text = outside_work_text(workspace, study)
    if outside_text:
        say(
            f"{workspace.path}: {outside_text} For a study apart from this work, give --workspace "
            "PATH"
        )


def _needed_text(traces_needed: Mapping[str, int], taxonomy: Taxonomy) -> str:
    points = f"{MARGIN * 100:g}"
    codes_by_count: dict[int, list[str]] = {}
    for code, count in traces_needed.items():
        if count:
            codes_by_count.setdefault(count, []).append(code)
    if not codes_by_count:
        return f"no mode needs more traces for a prevalence within ± {points} points"
    needed_texts = (f"about {n:,} for {', '.join(codes)}" for n, codes in codes_by_count.items())
    unknown = ", ".join(mode.code for mode in taxonomy.modes if mode.code not in traces_needed)
    unknown_text = f"; no estimate yet for {unknown}" if unknown else ""
    return (
        f"traces to add for a prevalence within ± {points} points, by mode: "
        f"{'; '.join(needed_texts)}{unknown_text}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyQueueRequest:
    """The options of ``mast-tui study queue``."""

    kind: str = options.option(
        "--kind",
        type=click.Choice(_QUEUE_KINDS),
        default="mine",
        show_default=True,
        help="mine: unfinished traces. disagreements, judge: finished traces where others, or a "
        "judge, differ (recorded as seen). unsure: traces with a verdict unsure. changed: traces "
        "with a mode that was split later. worth: traces most worth labelling. sample: a random "
        "sample of the annotator's traces.",
    )
    count: int = options.option(
        "-n", type=click.IntRange(1), default=20, help="The size of a sample."
    )
    seed: int | None = options.option(
        "--seed", type=int, help="The seed of the sample. Default: the study's."
    )
    common: CommonOptions = options.common_of_study()
    as_json: bool = options.as_json()


_QUEUE_RULES: Final = (
    OptionRule[StudyQueueRequest](
        "give the annotator of the queue: --annotator NAME", needs=("--annotator",)
    ),
)


@study_command.command("queue")
@options.takes(StudyQueueRequest, _QUEUE_RULES)
def queue_command(request: StudyQueueRequest) -> None:
    """List the next traces for --annotator.

    Prints their ids in order, one per line. Without a study everyone has all traces.

    Example: mast-tui study queue --annotator alice --kind unsure
    """
    annotator = request.common.annotator
    assert annotator is not None  # _QUEUE_RULES require --annotator
    workspace, taxonomy = open_with_taxonomy(request.common)
    workspace.check_annotators(annotator)
    viewer = command_viewer(workspace, taxonomy.ref, request.common)
    if viewer.overridden_name is not None and request.kind not in _UNREVEALING_KINDS:
        raise click.ClickException(
            f"--kind {request.kind} shows others' labels and records that {annotator} has seen "
            f"them, but you are signed in as {viewer.name}"
        )
    study = workspace.study(taxonomy.ref)
    outside_text = outside_study_text(annotator, study)
    if outside_text is not None:
        say(outside_text)
    items = queue(
        workspace, taxonomy, annotator, QueueKind(request.kind), n=request.count, seed=request.seed
    )
    if request.as_json:
        print_json(
            {
                "taxonomy": taxonomy.ref,
                "annotator": annotator,
                "kind": request.kind,
                "study": study is not None,
                "traces": [_queue_item_json(item, taxonomy) for item in items],
            }
        )
        return
    for item in items:
        print_line(item.trace_id)


def _queue_item_json(item: QueueItem, taxonomy: Taxonomy) -> dict[str, Any]:
    codes = [taxonomy.mode(slug).code for slug in item.modes]
    return {"id": item.trace_id, "begun": item.begun, "modes": codes}


def named_annotator(viewer: Viewer, common: CommonOptions) -> str | None:
    """Return the annotator to show; None for everyone.

    A labelling annotator is always shown their own work.

    Args:
        viewer: The viewer of the command.
        common: The common options of the command.
    """
    return viewer.name if viewer.sees_finished_only else common.annotator


def open_study(common: CommonOptions) -> tuple[Workspace, Taxonomy, Study]:
    """Open the workspace, and return it with its study and the study's taxonomy.

    Without ``--taxonomy``, the only study of the workspace is found too.

    Raises:
        click.ClickException: There is no such study.
    """
    workspace, taxonomy = open_with_taxonomy(common)
    study = workspace.study(taxonomy.ref)
    if study is None and common.taxonomy is None:
        studies = [
            (candidate, candidate_study)
            for candidate in workspace.taxonomies()
            if (candidate_study := workspace.study(candidate.ref)) is not None
        ]
        if len(studies) == 1:
            only_taxonomy, only_study = studies[0]
            return workspace, only_taxonomy, only_study
    if study is None:
        raise click.ClickException(
            f"there is no study under {taxonomy.ref} in the workspace; set one up with "
            "mast-tui study set --annotators A,B"
        )
    return workspace, taxonomy, study


def plan_document(workspace: Workspace, study: Study) -> dict[str, Any]:
    """Return the settings of a study as JSON values.

    Args:
        workspace: The workspace of the study.
        study: The study.
    """
    return {
        "workspace": workspace.name,
        "taxonomy": study.taxonomy,
        "study": {
            "annotators": list(study.annotators),
            "present": list(study.present),
            "memberships": [asdict(membership) for membership in study.memberships],
            "releases": [
                {"annotator": release.annotator, "traces": len(release.traces)}
                for release in study.releases
            ],
            "adjudicators": list(study.adjudicators),
            "traces": len(study.traces),
            "batches": [len(batch) for batch in study.batches],
            "draws": [_draw_json(study, draw) for draw in study.draws],
            "chances_alike": study.chances_alike,
            "per_trace": study.per_trace,
            "overlap": study.overlap,
            "overlap_traces": len(overlap_traces(study)),
            "seed": study.seed,
            "blind": study.blind,
            "withheld": study.withheld,
            "retests": study.retests,
            "open_modes": study.open_modes.value,
            "names": "hidden" if study.names_hidden else "shown",
            "judge_in_adjudication": "before" if study.judge_first else "after",
            "boundaries": study.boundaries,
            "reasons": study.reasons,
            "redact": study.redact,
        },
    }


def traces_to_label(workspace: Workspace, taxonomy: Taxonomy, study: Study) -> dict[str, int]:
    """Estimate the further traces that each mode needs for an interval of ± ``MARGIN``.

    Args:
        workspace: The workspace with the labels.
        taxonomy: The taxonomy of the modes. Modes without a verdict are left out.
        study: The study with the traces to count.
    """
    traces = frozenset(study.traces)
    inputs = signature_input(
        workspace, taxonomy, ReportRequest(by=ALL, without_places=True), traces=traces
    )
    counts = counts_by_mode(inputs.verdicts, inputs.weights)
    count_by_code = {
        mode.code: mode_counts.more_labels
        for mode, mode_counts in zip(inputs.modes, counts, strict=True)
    }
    # A mode without a verdict has no estimate.
    return {code: count for code, count in count_by_code.items() if count is not None}


def _draw_json(study: Study, draw: Draw) -> dict[str, Any]:
    """Return the facts of a random draw: its size, probabilities, strata and seed."""
    batch = study.batches[draw.batch_number]
    chances: dict[str, Any] = {"probability": len(batch) / draw.population}
    if draw.chances:
        chances = {"judge": draw.judge, "chances": dict(zip(batch, draw.chances, strict=True))}
    return {
        "lot": draw.batch_number + 1,
        "of": draw.population,
        **chances,
        "by": list(draw.strata),
        "seed": draw.seed,
    }


def progress_rows(
    workspace: Workspace, taxonomy: Taxonomy, study: Study, annotator: str | None
) -> list[dict[str, Any]]:
    """Return the progress of all annotators, or only that of an annotator who asks.

    Args:
        workspace: The workspace of the study.
        taxonomy: The taxonomy of the study.
        study: The study.
        annotator: The user who asks; None if unknown.
    """
    everyone = progress(workspace, study)
    if annotator not in study.annotators:
        return [{**_progress_json(person), "retests": _retests_json(person)} for person in everyone]
    (own_progress,) = (person for person in everyone if person.name == annotator)
    return [{**_progress_json(own_progress), "left": len(queue(workspace, taxonomy, annotator))}]


def _progress_json(person: StudyProgress) -> dict[str, Any]:
    return {
        "name": person.name,
        "assigned": person.assigned,
        "shared": person.shared,
        "withheld": person.withheld,
        "finished": person.finished,
        "open": person.begun,
        "left": person.left,
    }


def _retests_json(person: StudyProgress) -> dict[str, int]:
    return {
        "planned": person.planned,
        "due": len(person.retests.current),
        "done": len(person.retests.done),
        "lost": len(person.retests.lost),
    }


_OPEN_MODES_TEXTS: Final = {
    OpenModes.ASK: "the annotator is asked",
    OpenModes.LEAVE: "stay open",
    OpenModes.ABSENT: "become absent",
}


def print_plan(study: Study) -> None:
    """Print the settings of a study."""
    batches_text = f" in {len(study.batches)} batches" if len(study.batches) > 1 else ""
    lines = [
        f"study under {study.taxonomy}: {counted(len(study.traces), 'trace')}{batches_text}, "
        f"annotators {', '.join(_annotator_text(study, name) for name in study.annotators)}",
        *sample_texts(study),
        f"{annotator_counts_text(study)}; seed {study.seed}",
        "blind: suggestions and outcomes hidden until the annotator finishes and asks for them"
        if study.blind
        else f"suggestions shown, but hidden on {study.withheld:.0%} of each annotator's traces",
        f"retests: {study.retests:.0%} of each annotator's traces",
        "open modes (without a verdict) at a finish with unread spans: "
        f"{_OPEN_MODES_TEXTS[study.open_modes]}",
        f"adjudicators {', '.join(study.adjudicators) or 'not named'}; names "
        f"{'hidden' if study.names_hidden else 'shown'}, judge shown "
        f"{'before' if study.judge_first else 'after'} the decision"
        + (", places that differ only in their ends are conflicts" if study.boundaries else "")
        + (", with reasons" if study.reasons else "")
        + ("; personal data and secrets masked" if study.redact else ""),
    ]
    for line in lines:
        print_line(line)


def _annotator_text(study: Study, name: str) -> str:
    """Return an annotator's name with their batches, departure and weight, if unusual."""
    memberships = [membership for membership in study.memberships if membership.annotator == name]
    notes = []
    if any(membership.first or membership.end is not None for membership in memberships):
        notes.append(", ".join(map(_batches_text, memberships)))
    if name not in study.present:
        notes.append("has left")
    weight = study.weight(name, len(study.batches))
    if weight != 1:
        notes.append(f"weight {weight:g}")
    return f"{name} ({'; '.join(notes)})" if notes else name


def _batches_text(membership: Membership) -> str:
    first_number = membership.first + 1
    # The end is exclusive and counts from 0, so it is the number of the last batch from 1.
    last_number = membership.end
    if last_number is None:
        return f"from batch {first_number} on"
    if last_number < first_number:
        return "no whole batch"
    if last_number == first_number:
        return f"batch {first_number}"
    return f"batches {first_number} to {last_number}"


def print_progress(rows: list[dict[str, Any]]) -> None:
    """Print the progress of each annotator."""
    columns = [
        key_column("name", "annotator"),
        key_column("assigned", right=True),
        key_column("shared", right=True, drop_rank=2),
    ]
    if any(row["withheld"] for row in rows):
        columns.append(key_column("withheld", "without suggestions", right=True, drop_rank=3))
    columns += [
        key_column("finished", right=True),
        key_column("open", "begun", right=True),
        key_column("left", right=True, drop_rank=1),
    ]
    if any(row.get("retests", {}).get("planned") for row in rows):
        columns += [
            _retests_column("planned", "retests"),
            _retests_column("due", "retests due"),
            _retests_column("done", "retests done"),
        ]
    if any(row.get("retests", {}).get("lost") for row in rows):
        say(LOST_RETEST_NOTE)
        columns.append(_retests_column("lost", "not possible"))
    print_table(columns, rows)


def _retests_column(key: str, title: str) -> TableColumn[Mapping[str, Any]]:
    return TableColumn(title, lambda row: str(row["retests"][key]), right=True)


study_command.add_command(notes_command, "notes")


def _requested_blind(common: CommonOptions) -> bool | None:
    """Return True for ``--blind``, False for ``--assisted``, else None."""
    if common.blind:
        return True
    return False if common.assisted else None


def _option_names(text: str | None, option: str) -> tuple[str, ...] | None:
    """Return the names in ``A,B,…``; None for None."""
    if text is None:
        return None
    return tuple(_checked_name(name, option) for name in text.split(",") if name.strip())


def _option_weights(text: str | None) -> dict[str, float]:
    """Return the weights in ``A=2,B=0.5`` by name; empty for None.

    Raises:
        click.UsageError: A part is not a name with a weight above 0.
    """
    weights: dict[str, float] = {}
    for part in (text or "").split(","):
        name, equals, number = part.partition("=")
        if not part.strip():
            continue
        try:
            weight = float(number)
        except ValueError:
            weight = 0.0
        if not equals or not 0 < weight < float("inf"):
            raise click.UsageError(
                f"--weights: {part.strip()!r} is not a name with a weight over 0, such as alice=2"
            )
        weights[_checked_name(name.strip(), "--weights")] = weight
    return weights


def _checked_name(name: str, option: str = "NAME") -> str:
    """Return the name if it is valid for a person, else raise ``UsageError``."""
    try:
        return checked_person(name)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from error


def _changed_study(previous: Study | None, taxonomy: str, values: dict[str, Any]) -> Study:
    """Return the study with new values, or a new study."""
    changes = {name: value for name, value in values.items() if value is not None}
    if previous is not None:
        return replace(previous, **changes)
    changes.setdefault("per_trace", min(2, len(changes["annotators"])))
    # A study that withholds suggestions on some traces shows them on others, so it is not blind.
    changes.setdefault("blind", not changes.get("withheld"))
    return Study(taxonomy, **changes)


def _person_who_changes(workspace: Workspace, annotator: str | None) -> str:
    """Return the name of the user: the server's member, else the option, else the login.

    Raises:
        click.UsageError: Neither gives a name.
    """
    if workspace.member is not None:
        return workspace.member.name
    if annotator is None:
        name = suggested_name(None)
        if not name:
            raise click.UsageError("give your name: --annotator NAME")
        return name
    return _checked_name(annotator, "--annotator")


def _traces_under(
    workspace: Workspace, paths: Sequence[Path], *, dry_run: bool
) -> Sequence[TraceRecord]:
    """Return the traces under the paths, and register them unless this is a dry run.

    Without paths, return all traces.
    """
    if not paths:
        return workspace.traces()
    record_by_id: dict[str, TraceRecord] = {}
    all_by_id = ChainMap(record_by_id, {record.trace_id: record for record in workspace.traces()})
    for report in scan(paths):
        if report.format is None and report.path in paths:
            say(f"{report.path}: contains no known trace; see mast-tui inspect")
        for trace in report.traces:
            if not dry_run:
                register_opened_trace(workspace, trace)
            new_record = TraceRecord.from_trace(trace)
            record = workspace.find_trace(new_record) or _with_free_id(new_record, all_by_id)
            record_by_id[record.trace_id] = record
    if not record_by_id:
        raise click.ClickException("the paths contain no traces")
    if not dry_run:
        keep_missing_indices(workspace)
    return [record_by_id[trace_id] for trace_id in sorted(record_by_id)]


def _with_free_id(new: TraceRecord, record_by_id: Mapping[str, TraceRecord]) -> TraceRecord:
    """Return a trace with the id that it would get; a known trace if its content is the same."""
    record = new
    number = 1
    while (known_record := record_by_id.get(record.trace_id)) is not None:
        if known_record.identity == new.identity:
            return known_record
        number += 1
        record = replace(new, trace_id=f"{new.trace_id}~{number}")
    return record


def _with_batch(
    study: Study, traces: Sequence[TraceRecord], sample: int | None, stratify: str | None
) -> Study:
    """Return the study with another batch: these traces, or a sample of them."""
    if sample is None:
        return with_traces(study, [record.trace_id for record in traces])
    strata = tuple(name.strip() for name in (stratify or "").split(",") if name.strip())
    return with_sample(study, traces, sample, by=strata)


def _with_judged_sample(
    workspace: Workspace,
    taxonomy: Taxonomy,
    study: Study,
    request: StudyAddRequest,
) -> Study:
    """Return the study with another batch: a sample of traces that are worth labelling.

    Labels are worth most where the verdict of the judge is least certain.

    Raises:
        click.UsageError: The taxonomy has no such mode.
    """
    assert request.judge is not None  # the caller has checked it
    assert request.sample is not None  # an option rule requires it
    chosen_mode = None if request.mode is None else taxonomy.find(request.mode)
    if request.mode is not None and chosen_mode is None:
        codes = ", ".join(mode.code for mode in taxonomy.modes)
        raise click.UsageError(f"{taxonomy.ref} has no mode {request.mode!r}; there are: {codes}")
    modes = taxonomy.modes if chosen_mode is None else (chosen_mode,)
    name = find_judge(workspace, request.judge)
    verdicts = judge_input(workspace, taxonomy, ComparisonOptions(judge=name, places=False))
    assert verdicts is not None  # the comparison names a judge
    traces = _traces_under(workspace, request.paths, dry_run=request.plan.dry_run)
    worth_by_trace = worth_of_labels(
        verdicts, [record.trace_id for record in traces], [mode.slug for mode in modes]
    )
    return with_worth(study, worth_by_trace, request.sample, judge=name)


def _print_study(workspace: Workspace, study: Study, *, changed: bool, as_json: bool) -> None:
    if as_json:
        print_json({"changed": changed, **plan_document(workspace, study)})
        return
    if not changed:
        click.echo("nothing changed")
    print_plan(study)
    _report_outside_work(workspace, study)
    if not study.traces:
        say("the study has no traces yet; add some with mast-tui study add PATH")
    print_line("see everyone's progress with mast-tui study show")

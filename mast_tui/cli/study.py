"""``mast-tui study``: who labels what, and how; also as a table ``trace_id,annotator,lot``."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import replace

from mast_tui.adjudication import keep_missing_indices
from mast_tui.cli.agree import Wanted, judge_input, judge_named
from mast_tui.cli.command_line import CommonOptions, split_options
from mast_tui.cli.open_codes import notes_command
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import asked_by
from mast_tui.cli.shared.common import opened, print_json, print_line, print_table, say
from mast_tui.cli.shared.options import OptionRule
from mast_tui.cli.study_shown import (
    NO_SIGHT,
    kept_study,
    plan_document,
    print_plan,
    queue_command,
    show_command,
)
from mast_tui.columns import TableColumn, key_column
from mast_tui.exchange.csv_files import read_rows
from mast_tui.exchange.errors import ExchangeError
from mast_tui.figures.judge.worth import worth
from mast_tui.labels import checked_person
from mast_tui.session import (
    given_back,
    known_trace,
    set_study,
    with_annotator,
    with_assignments,
    with_sample,
    with_traces,
    with_weights,
    with_worth,
    without_annotator,
)
from mast_tui.study import OpenModes, Study, annotators_of, assigned
from mast_tui.traces.library import scan
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.paths import suggested_name
from mast_tui.workspace.registers.hold_out import TracePart, set_split, trace_part

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

_COLUMNS: Final = ("trace_id", "annotator", "lot")


def assignments_csv(study: Study, annotator: str | None = None) -> str:
    """Write who labels which traces, a row for each trace and annotator.

    Args:
        study: The study.
        annotator: Whose rows alone; None for everybody's.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for lot, batch in enumerate(study.batches, start=1):
        for trace_id in batch:
            for name in annotators_of(study, trace_id):
                if annotator in (None, name):
                    writer.writerow((trace_id, name, lot))
    return text.getvalue()


def read_assignments(path: Path, study: Study) -> Mapping[str, tuple[str, ...]]:
    """Read who is to label which traces.

    Args:
        path: A table with the columns ``trace_id`` and ``annotator``; ``lot`` is not looked at.
        study: What it is for.

    Returns:
        The annotators by trace id, of the traces that the table names.

    Raises:
        ExchangeError: The table is broken, or names a trace or a person that the study lacks.
    """
    there = frozenset(study.traces)
    found: dict[str, dict[str, None]] = {}
    for row in read_rows(path, allowed=_COLUMNS, needed=_COLUMNS[:2]):
        trace_id, name = row.cells["trace_id"].strip(), row.cells["annotator"].strip()
        why = None
        if trace_id not in there:
            why = f"trace {trace_id!r} is not in the study; mast-tui study add takes it in"
        elif name not in study.annotators:
            why = (
                f"{name!r} is no annotator of the study; mast-tui study join lets somebody join, "
                f"there are {', '.join(study.annotators)}"
            )
        elif name in found.get(trace_id, {}):
            why = f"{name} is to label trace {trace_id!r} twice"
        if why is not None:
            raise ExchangeError(str(row.problem(why)))
        found.setdefault(trace_id, {})[name] = None
    if not found:
        raise ExchangeError(f"{path}: no row says who labels what")
    return {trace_id: tuple(sorted(names)) for trace_id, names in found.items()}


_SHARE: Final = click.FloatRange(0, 1)

_STRATIFY_RULE: Final = OptionRule[Any](
    "--stratify says how a sample is drawn: give --sample N too",
    options=("--stratify",),
    needs=("--sample",),
)


def _sample() -> Any:
    return options.option(
        "--sample",
        type=click.IntRange(1),
        metavar="N",
        help="Take in N of the traces, drawn at random with the same chance each. Default: all.",
    )


def _stratify() -> Any:
    return options.option(
        "--stratify",
        metavar="A,B,…",
        help="Spread the sample evenly over the traces' system, model, benchmark, outcome, length "
        "(short to long, in four classes).",
    )


class _StudyGroup(click.Group):
    """Subcommands that take the common options, also where these stand before their name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options, rest = split_options(args)
        if options and rest:
            args = [rest[0], *options, *rest[1:]]
        return super().parse_args(ctx, args)


@click.group(cls=_StudyGroup)
def study_command() -> None:
    """Set up a study: who labels which traces, in which order, and how.

    A study is set up once and kept with the labels. Queues, what is hidden from whom, and the
    figures follow from it. 'mast-tui study set --annotators A,B' begins one.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySetRequest:
    """The options of ``mast-tui study set``."""

    paths: tuple[Path, ...] = options.paths(exist=True)
    annotators: str | None = options.option("--annotators", metavar="A,B,…", help="Who labels.")
    weights: str | None = options.option(
        "--weights",
        metavar="A=2,…",
        help="How much each is dealt beside somebody with 1, who is everybody else.",
    )
    adjudicators: str | None = options.option(
        "--adjudicators", metavar="C,…", help="Who decides where annotators differ."
    )
    per_trace: int | None = options.option(
        "--per-trace",
        type=click.IntRange(1),
        help="How many label each trace of the overlap. Default: 2.",
    )
    overlap: float | None = options.option(
        "--overlap",
        type=_SHARE,
        help="The share of traces that several label; each other one has one annotator. Default: "
        "1.",
    )
    seed: int | None = options.option(
        "--seed", type=int, help="Decides who, which and in what order. Default: 0."
    )
    sample: int | None = _sample()
    stratify: str | None = _stratify()
    withheld: float | None = options.option(
        "--withhold",
        type=_SHARE,
        help="The share of each annotator's traces without suggestions before the finish, in a "
        "study that shows them, so that their pull on people can be measured. Default: 0.",
    )
    retests: float | None = options.option(
        "--retest",
        type=_SHARE,
        help="The share of each annotator's traces that repeat: they are labelled again later, "
        "without sight of the first time. Default: 0.",
    )
    split: str | None = options.option(
        "--split",
        metavar="D,C,T",
        help="Keep three shares of all traces apart, once and for all: development, which may "
        "teach a judge; calibration, to fit its thresholds; and test, to measure it. Such as "
        "0.5,0.2,0.3.",
    )
    open_modes: OpenModes | None = options.option(
        "--open-modes",
        type=click.Choice(["ask", "leave", "absent"]),
        callback=lambda _context, _parameter, value: value and OpenModes(value),
        help="What finishing with unread spans does with modes without a verdict. Default: ask.",
    )
    names_hidden: bool | None = options.option(
        "--names",
        type=click.Choice(["shown", "hidden"]),
        callback=lambda _context, _parameter, value: value and value == "hidden",
        help="Whether adjudication names the sides. Default: hidden, until a key shows them.",
    )
    judge_first: bool | None = options.option(
        "--judge-in-adjudication",
        type=click.Choice(["after", "before"]),
        callback=lambda _context, _parameter, value: value and value == "before",
        help="Whether a judge is shown after the decision or before it too. Default: after.",
    )
    boundaries: bool | None = options.option(
        "--boundaries/--no-boundaries",
        default=None,
        help="Whether overlapping places of one mode with different ends are a conflict too. "
        "Separate places always are. Default: no.",
    )
    reasons: bool | None = options.option(
        "--reasons/--no-reasons",
        default=None,
        help="Whether each decision asks for a reason. Default: no.",
    )
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()


_ROUNDING: Final = 1e-6

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
)
"""The fields of a study that are options of the same name."""


@study_command.command("set")
@options.takes(StudySetRequest, (_STRATIFY_RULE,))
def set_command(request: StudySetRequest) -> None:
    """Set the study up, or change it.

    What is not given stays as it is. The traces are those under PATH, else all that the workspace
    knows; with --sample a part of them, which --seed draws. --blind (the default) or --assisted
    says how the annotators work, unless they ask otherwise. Once somebody has finished a trace,
    nothing can change that figures rest on. --annotator says who sets it up.
    """
    place, chosen = opened(request.common, create=True)
    before = place.study(chosen.ref)
    people = _names(request.annotators, "--annotators")
    if before is None and not people:
        raise click.UsageError("a new study needs its annotators: --annotators A,B")
    values = {
        "annotators": people,
        "adjudicators": _names(request.adjudicators, "--adjudicators"),
        "blind": True if request.common.blind else False if request.common.assisted else None,
        **{name: getattr(request, name) for name in _SETTINGS},
    }
    place.add_taxonomy(chosen)
    fresh = (
        request.paths
        or before is None
        or request.sample is not None
        or request.stratify is not None
    )
    if fresh:
        values |= {"batches": (), "draws": (), "assignments": ()}
    study = with_weights(_changed(before, chosen.ref, values), _weights(request.weights))
    if fresh:
        study = _with_lot(place, study, request.paths, request.sample, request.stratify)
    if request.split is not None:
        set_split(place, *_split_shares(request.split))
        parts = Counter(trace_part(place, trace_id) for trace_id in study.traces)
        say("split: " + ", ".join(f"{parts[part]} {part}" for part in TracePart))
    changed = set_study(place, _who(request.common.annotator), study)
    _tell(place, study, changed=changed, as_json=request.as_json)


def _split_shares(text: str) -> tuple[float, float]:
    """Read the shares for calibration and test of ``--split``."""
    try:
        development, calibration, test = (float(part) for part in text.split(","))
    except ValueError:
        raise click.UsageError(f"--split {text}: three shares are needed: 0.5,0.2,0.3") from None
    if abs(development + calibration + test - 1) > _ROUNDING:
        raise click.UsageError(f"--split {text}: the three shares add up to 1")
    return calibration, test


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAddRequest:
    """The options of ``mast-tui study add``."""

    paths: tuple[Path, ...] = options.paths(exist=True)
    sample: int | None = _sample()
    stratify: str | None = _stratify()
    judge: str | None = options.option(
        "--judge",
        metavar="NAME",
        help="Draw with more chance those traces of which labels would tell most, by what this "
        "judge says of them; chances are kept, and prevalences over all traces are weighted by "
        "them.",
    )
    mode: str | None = options.option(
        "--mode", metavar="MODE", help="With --judge: tell most of this mode. Default: of all."
    )
    common: CommonOptions = options.common(blind=NO_SIGHT, assisted=NO_SIGHT)
    as_json: bool = options.as_json()


_ADD_RULES: Final = (
    OptionRule[StudyAddRequest](
        "--judge says how a sample is drawn: give --sample N too",
        options=("--judge",),
        needs=("--sample",),
    ),
    OptionRule[StudyAddRequest](
        "--mode says what --judge is asked about: give both",
        options=("--mode",),
        needs=("--judge",),
    ),
    _STRATIFY_RULE,
)


@study_command.command("add")
@options.takes(StudyAddRequest, _ADD_RULES)
def add_command(request: StudyAddRequest) -> None:
    """Take in more traces, after the earlier ones.

    These are those under PATH, else all that the workspace knows; with --sample a part of those
    that are not in the study yet. They come after the earlier ones in every queue, and change
    nothing about who labels these.
    """
    place, chosen = opened(request.common)
    before = place.study(chosen.ref)
    if before is None:
        raise click.ClickException(
            f"there is no study under {chosen.ref} here; begin one with mast-tui study set"
        )
    if request.judge is not None:
        study = _with_worth(place, chosen, before, request)
    else:
        study = _with_lot(place, before, request.paths, request.sample, request.stratify)
    changed = set_study(place, _who(request.common.annotator), study)
    _tell(place, study, changed=changed, as_json=request.as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of the commands that change who labels which traces."""

    dry_run: bool = options.option(
        "--dry-run", is_flag=True, help="Only tell who would get what; nothing is written."
    )
    common: CommonOptions = options.common(blind=NO_SIGHT, assisted=NO_SIGHT)
    as_json: bool = options.as_json()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyJoinRequest:
    """The options of ``mast-tui study join``."""

    name: str = options.argument(metavar="NAME")
    weight: float = options.option(
        "--weight",
        type=click.FloatRange(0, min_open=True),
        default=1.0,
        show_default=True,
        help="How much NAME is dealt beside somebody with 1.",
    )
    plan: PlanOptions = options.group(PlanOptions)


@study_command.command("join")
@options.takes(StudyJoinRequest)
def join_command(request: StudyJoinRequest) -> None:
    """Let NAME join as an annotator, from the next lot on.

    They also get what others give back from now on. Nothing of what is dealt out changes.
    """
    _change_people(
        request.name,
        request.plan,
        lambda _place, study, who: with_annotator(study, who, weight=request.weight),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyMemberRequest:
    """The options of ``mast-tui study leave`` and ``study release``."""

    name: str = options.argument(metavar="NAME")
    plan: PlanOptions = options.group(PlanOptions)


@study_command.command("leave")
@options.takes(StudyMemberRequest)
def leave_command(request: StudyMemberRequest) -> None:
    """Let NAME leave: what they have finished stays, the rest goes to the others.

    Each trace goes to whoever has fewest. 'study join NAME' lets them come back.
    """
    _change_people(request.name, request.plan, without_annotator)


@study_command.command("release")
@options.takes(StudyMemberRequest)
def release_command(request: StudyMemberRequest) -> None:
    """Give what NAME has not finished to the others; NAME stays, and gets of later lots.

    Each trace goes to whoever has fewest.
    """
    _change_people(request.name, request.plan, given_back)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyExportRequest:
    """The options of ``mast-tui study export``."""

    output: Path = options.output(help="Where to write it.", required=True)
    force: bool = options.force()
    common: CommonOptions = options.common(blind=NO_SIGHT, assisted=NO_SIGHT)


@study_command.command("export")
@options.takes(StudyExportRequest)
def export_command(request: StudyExportRequest) -> None:
    """Write who labels which traces, as a table: trace_id,annotator,lot.

    An annotator of the study is told their own traces alone.
    """
    place, chosen, study = kept_study(request.common)
    viewer = asked_by(place, chosen.ref, request.common)
    whose = viewer.name if viewer.limited else request.common.annotator
    text = assignments_csv(study, whose if whose in study.annotators else None)
    outputs = outputs_beside(place, force=request.force)
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
    """Fix who labels which traces, by a table as 'study export' writes it.

    Traces that FILE does not name are dealt as before. Once somebody has finished a trace only
    those of later lots can be fixed.
    """
    _change_plan(
        request.plan,
        lambda _place, study: with_assignments(study, read_assignments(request.file, study)),
    )


def _change_people(
    name: str, plan: PlanOptions, change: Callable[[Workspace, Study, str], Study]
) -> None:
    """Change who is in the study, and print the traces of each before and after."""
    who = _person(name)
    _change_plan(plan, lambda place, study: change(place, study, who))


def _change_plan(plan: PlanOptions, change: Callable[[Workspace, Study], Study]) -> None:
    """Change who labels what, and print the traces of each before and after."""
    place, _chosen, before = kept_study(plan.common)
    study = change(place, before)
    changed = study != before
    if not plan.dry_run:
        changed = set_study(place, _who(plan.common.annotator), study)
    rows = [
        {
            "name": one,
            "assigned": len(assigned(study, one)),
            "before": len(assigned(before, one)) if one in before.annotators else 0,
            "present": one in study.present,
        }
        for one in study.annotators
    ]
    if plan.as_json:
        print_json({"changed": changed, "people": rows, **plan_document(place, study)})
        return
    if not changed:
        click.echo("nothing changed")
    columns: tuple[TableColumn[Mapping[str, Any]], ...] = (
        key_column("name", "annotator"),
        key_column("assigned", "traces", right=True),
        key_column("before", right=True),
        TableColumn("there", lambda row: "yes" if row["present"] else "has left", right=True),
    )
    print_table(columns, rows)
    if plan.dry_run:
        say("nothing was written; leave --dry-run out to do it")


study_command.add_command(show_command, "show")
study_command.add_command(queue_command, "queue")
study_command.add_command(notes_command, "notes")


def _names(text: str | None, option: str) -> tuple[str, ...] | None:
    """The names in ``A,B,…``, fit for people; None where the option is not given."""
    if text is None:
        return None
    return tuple(_person(name, option) for name in text.split(",") if name.strip())


def _weights(text: str | None) -> dict[str, float]:
    """The weights in ``A=2,B=0.5``."""
    found: dict[str, float] = {}
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
                f"--weights: {part.strip()!r} is no name and weight over 0, such as alice=2"
            )
        found[_person(name.strip(), "--weights")] = weight
    return found


def _person(name: str, option: str = "NAME") -> str:
    """A name that a person can have."""
    try:
        return checked_person(name)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from error


def _changed(before: Study | None, taxonomy: str, values: dict[str, Any]) -> Study:
    """The study with these fields; None keeps what there is."""
    new = {name: value for name, value in values.items() if value is not None}
    if before is not None:
        return replace(before, **new)
    new.setdefault("per_trace", min(2, len(new["annotators"])))
    # A blind study shows no suggestions: who wants some traces without them wants them shown.
    new.setdefault("blind", not new.get("withheld"))
    return Study(taxonomy, **new)


def _who(annotator: str | None) -> str:
    """Who sets the study up."""
    if annotator is None:
        name = suggested_name(None)
        if not name:
            raise click.UsageError("say who sets the study up: --annotator NAME")
        return name
    return _person(annotator, "--annotator")


def _trace_ids(place: Workspace, paths: Sequence[Path]) -> tuple[str, ...]:
    """The ids of the traces under the paths, which are registered, or of all that are known."""
    if not paths:
        return tuple(record.trace_id for record in place.traces())
    found: set[str] = set()
    for report in scan(paths):
        if report.format is None and report.path in paths:
            say(f"{report.path}: no trace is recognised here; see mast-tui inspect")
        found.update(known_trace(place, trace) for trace in report.traces)
    if not found:
        raise click.ClickException("there is no trace under the paths given")
    keep_missing_indices(place)
    return tuple(sorted(found))


def _with_lot(
    place: Workspace,
    study: Study,
    paths: Sequence[Path],
    sample: int | None,
    stratify: str | None,
) -> Study:
    """The study with one more lot: all traces under the paths, or a sample of them."""
    ids = frozenset(_trace_ids(place, paths))
    if sample is None:
        return with_traces(study, ids)
    by = tuple(name.strip() for name in (stratify or "").split(",") if name.strip())
    return with_sample(study, [one for one in place.traces() if one.trace_id in ids], sample, by=by)


def _with_worth(
    place: Workspace,
    taxonomy: Taxonomy,
    study: Study,
    request: StudyAddRequest,
) -> Study:
    """Add a batch to the study: a sample of the traces whose labels would tell most."""
    assert request.judge is not None  # the caller has checked it, and the rules the sample
    assert request.sample is not None
    chosen = None if request.mode is None else taxonomy.find(request.mode)
    if request.mode is not None and chosen is None:
        codes = ", ".join(one.code for one in taxonomy.modes)
        raise click.UsageError(f"{taxonomy.ref} has no mode {request.mode!r}; there are: {codes}")
    modes = taxonomy.modes if chosen is None else (chosen,)
    name = judge_named(place, request.judge)
    given = judge_input(place, taxonomy, Wanted(judge=name, places=False))
    assert given is not None  # a judge was asked for
    found = worth(given, _trace_ids(place, request.paths), [one.slug for one in modes])
    return with_worth(study, found, request.sample, judge=name)


def _tell(place: Workspace, study: Study, *, changed: bool, as_json: bool) -> None:
    if as_json:
        print_json({"changed": changed, **plan_document(place, study)})
        return
    if not changed:
        click.echo("nothing changed")
    print_plan(study)
    if not study.traces:
        say("there are no traces in it yet; take some in with mast-tui study add PATH")
    print_line("mast-tui study show tells how far everybody is")

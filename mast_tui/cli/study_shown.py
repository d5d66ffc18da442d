"""``mast-tui study show`` and ``queue``: what was set up, how far everybody is, what is next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import asdict

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.report import ReportRequest, signature_input
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import asked_by
from mast_tui.cli.shared.common import opened, print_json, print_line, print_table
from mast_tui.cli.shared.options import OptionRule
from mast_tui.columns import TableColumn, key_column
from mast_tui.counts import counted
from mast_tui.figures.intervals import MARGIN
from mast_tui.figures.signatures.model import ALL
from mast_tui.figures.signatures.modes import Counts
from mast_tui.session import QueueKind, progress, queue, sample_words
from mast_tui.study import overlap_traces

if TYPE_CHECKING:
    from mast_tui.session import Progress
    from mast_tui.study import Draw, Study
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

# Written out, so that asking for help imports no floor below; ``retests`` is not for annotators.
_KINDS = ("mine", "disagreements", "judge", "unsure", "changed", "worth", "sample")
_OPEN_KINDS = ("mine", "worth", "sample")
"""Those that tell nothing of what anybody says."""

NO_SIGHT: Final = "the study and the annotators' own choice say who works blind"
"""Why a command on a study takes neither ``--blind`` nor ``--assisted``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyShowRequest:
    """The options of ``mast-tui study show``."""

    common: CommonOptions = options.common(blind=NO_SIGHT, assisted=NO_SIGHT)
    as_json: bool = options.as_json()


@click.command()
@options.takes(StudyShowRequest)
def show_command(request: StudyShowRequest) -> None:
    """Show what was set up, and how far everybody is.

    Its annotators see only their own share, and not which traces are repeats: they must take these
    for ordinary work.
    """
    place, chosen, study = kept_study(request.common)
    viewer = asked_by(place, chosen.ref, request.common)
    whose = viewer.name if viewer.limited else request.common.annotator
    rows = progress_rows(place, chosen, study, whose)
    document = plan_document(place, study)
    # An annotator would learn how often others call a mode present.
    limited = viewer.limited or whose in study.annotators
    more = {} if limited else traces_to_label(place, chosen, study)
    if request.as_json:
        print_json({**document, "progress": rows, "more_traces": more})
        return
    print_plan(study)
    print_progress(rows)
    if more:
        told = ", ".join(f"{code} {count:,}" for code, count in more.items() if count)
        click.echo(
            f"traces still needed for a ±{MARGIN * 100:g}-point interval, by mode, about: {told}"
            if told
            else f"no more traces are needed for ± {MARGIN * 100:g} points of any mode"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyQueueRequest:
    """The options of ``mast-tui study queue``."""

    kind: str = options.option(
        "--kind",
        type=click.Choice(_KINDS),
        default="mine",
        show_default=True,
        help="What is not finished; where others or a judge say otherwise (that you saw so is "
        "recorded); where you said unsure; where the codebook has changed; what is most worth "
        "labelling; or a sample drawn from your traces.",
    )
    count: int = options.option(
        "-n", type=click.IntRange(1), default=20, help="The size of a sample."
    )
    seed: int | None = options.option(
        "--seed", type=int, help="Draws another sample. Default: the study's."
    )
    common: CommonOptions = options.common(blind=NO_SIGHT, assisted=NO_SIGHT)
    as_json: bool = options.as_json()


_QUEUE_RULES: Final = (
    OptionRule[StudyQueueRequest](
        "say whose queue it is: --annotator NAME", needs=("--annotator",)
    ),
)


@click.command()
@options.takes(StudyQueueRequest, _QUEUE_RULES)
def queue_command(request: StudyQueueRequest) -> None:
    """List which traces --annotator is to take next.

    Prints their ids in order, one a line. Without a study all traces are everybody's.
    """
    annotator = request.common.annotator
    assert annotator is not None  # by the rule
    place, chosen = opened(request.common)
    study = place.study(chosen.ref)
    known = {info.name for info in place.annotators()}
    if annotator not in known:
        there = ", ".join(sorted(known)) or "nobody yet"
        raise click.ClickException(
            f"no annotator {annotator!r} in this workspace; there are: {there}"
        )
    viewer = asked_by(place, chosen.ref, request.common)
    if viewer.named is not None and request.kind not in _OPEN_KINDS:
        raise click.ClickException(
            f"--kind {request.kind} shows what others say, and records that {annotator} has seen "
            f"it, but you are signed in as {viewer.name}"
        )
    items = queue(
        place, chosen, annotator, QueueKind(request.kind), n=request.count, seed=request.seed
    )
    if not request.as_json:
        for item in items:
            print_line(item.trace_id)
        return
    codes = {mode.slug: mode.code for mode in chosen.modes}
    print_json(
        {
            "taxonomy": chosen.ref,
            "annotator": annotator,
            "kind": request.kind,
            "study": study is not None,
            "traces": [
                {
                    "id": item.trace_id,
                    "begun": item.begun,
                    "modes": [codes[mode] for mode in item.modes],
                }
                for item in items
            ],
        }
    )


def kept_study(common: CommonOptions) -> tuple[Workspace, Taxonomy, Study]:
    """The workspace, with its study and that one's taxonomy; without --taxonomy the only study."""
    place, chosen = opened(common)
    study = place.study(chosen.ref)
    if study is None and common.taxonomy is None:
        found = [(place, one, kept) for one in place.taxonomies() if (kept := place.study(one.ref))]
        if len(found) == 1:
            return found[0]
    if study is None:
        raise click.ClickException(
            f"there is no study under {chosen.ref} here; begin one with mast-tui study set "
            "--annotators A,B"
        )
    return place, chosen, study


def plan_document(place: Workspace, study: Study) -> dict[str, Any]:
    """What was set up, as plain values."""
    return {
        "workspace": str(place.path),
        "taxonomy": study.taxonomy,
        "study": {
            "annotators": list(study.annotators),
            "present": list(study.present),
            "memberships": [asdict(one) for one in study.memberships],
            "releases": [
                {"annotator": one.annotator, "traces": len(one.traces)} for one in study.releases
            ],
            "adjudicators": list(study.adjudicators),
            "traces": len(study.traces),
            "batches": [len(batch) for batch in study.batches],
            "draws": [_draw(study, draw) for draw in study.draws],
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
        },
    }


def traces_to_label(place: Workspace, taxonomy: Taxonomy, study: Study) -> dict[str, int]:
    """Count by mode how many more traces bring its share in the gold to ``MARGIN`` either way.

    Args:
        place: Where the labels are.
        taxonomy: The modes, of which those that have been judged are told.
        study: Whose traces count.
    """
    traces = frozenset(study.traces)
    given = signature_input(
        place, taxonomy, ReportRequest(by=ALL, without_places=True), traces=traces
    )
    counts = Counts.of(given.verdicts, given.weights)
    needs = {mode.code: counts.more_labels(i) for i, mode in enumerate(given.modes)}
    return {code: more for code, more in needs.items() if more is not None}


def _draw(study: Study, draw: Draw) -> dict[str, Any]:
    """How a lot was drawn; where chances differ, those of its traces by id."""
    batch = study.batches[draw.lot]
    chances: dict[str, Any] = {"probability": len(batch) / draw.of}
    if draw.chances:
        chances = {"judge": draw.judge, "chances": dict(zip(batch, draw.chances, strict=True))}
    return {
        "lot": draw.lot + 1,
        "of": draw.of,
        **chances,
        "by": list(draw.by),
        "seed": draw.seed,
    }


def progress_rows(
    place: Workspace, taxonomy: Taxonomy, study: Study, annotator: str | None
) -> list[dict[str, Any]]:
    """How far everybody is; of an annotator of the study only what that person may know."""
    everybody = progress(place, study)
    if annotator not in study.annotators:
        return [{**_row(one), "retests": _retests(one)} for one in everybody]
    (own,) = (one for one in everybody if one.name == annotator)
    return [{**_row(own), "left": len(queue(place, taxonomy, annotator))}]


def _row(one: Progress) -> dict[str, Any]:
    return {
        "name": one.name,
        "assigned": one.assigned,
        "shared": one.shared,
        "withheld": one.withheld,
        "finished": one.finished,
        "open": one.begun,
        "left": one.left,
    }


def _retests(one: Progress) -> dict[str, int]:
    return {
        "planned": one.planned,
        "due": len(one.retests.now),
        "done": len(one.retests.done),
        "lost": len(one.retests.lost),
    }


def print_plan(study: Study) -> None:
    """Print what was set up, in a few lines."""
    lots = f" in {len(study.batches)} lots" if len(study.batches) > 1 else ""
    shared = len(overlap_traces(study))
    several = "everybody" if study.per_trace == len(study.annotators) else f"{study.per_trace}"
    lines = [
        f"study under {study.taxonomy}: {counted(len(study.traces), 'trace')}{lots}, "
        f"annotators {', '.join(_with_lots(study, name) for name in study.annotators)}",
        *sample_words(study),
        f"{counted(shared, 'trace')} labelled by {several}, {len(study.traces) - shared} by one; "
        f"seed {study.seed}",
        "blind" if study.blind else f"suggestions shown, {study.withheld:.0%} without suggestions",
        f"{study.retests:.0%} repeat once finished; open modes at finishing: "
        f"{study.open_modes.value}",
        f"adjudicators {', '.join(study.adjudicators) or 'not named'}; names "
        f"{'hidden' if study.names_hidden else 'shown'}, judge shown "
        f"{'before' if study.judge_first else 'after'} the decision"
        + (", boundaries decided" if study.boundaries else "")
        + (", with reasons" if study.reasons else ""),
    ]
    for line in lines:
        print_line(line)


def _with_lots(study: Study, name: str) -> str:
    """A name, and of which lots its annotator was dealt traces where that is not all of them."""
    told = [one for one in study.memberships if one.annotator == name]
    spans = []
    for one in told:
        if one.end is None:
            spans.append(f"from lot {one.first + 1} on")
        elif one.end > one.first:
            spans.append(f"lots {one.first + 1} to {one.end}")
        else:
            spans.append("no whole lot")
    left = "" if name in study.present else "; has left"
    return f"{name} ({', '.join(spans)}{left})" if told else name


def print_progress(rows: list[dict[str, Any]]) -> None:
    """Print how far everybody is."""
    columns = [
        key_column("name", "annotator"),
        key_column("assigned", right=True),
        key_column("shared", right=True),
        key_column("withheld", "without suggestions", right=True),
        *(key_column(key, right=True) for key in ("finished", "open", "left")),
    ]
    if any("retests" in row for row in rows):
        columns.append(_retests_column("planned", "repeat"))
        columns += [_retests_column(key, key) for key in ("due", "done", "lost")]
    print_table(columns, rows)


def _retests_column(key: str, title: str) -> TableColumn[Mapping[str, Any]]:
    return TableColumn(title, lambda row: str(row["retests"][key]), right=True)

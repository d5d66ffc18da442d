"""``mast-tui status``: how far everybody is, and what is left to adjudicate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from mast_tui.adjudication import SpanOrders, conflict_groups, words_by_trace
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import asked_by, say_left_out
from mast_tui.cli.shared.common import opened, print_json, print_line, print_table
from mast_tui.cli.study_shown import progress_rows
from mast_tui.columns import key_column
from mast_tui.counts import counted
from mast_tui.session import sight_values, status
from mast_tui.workspace.registers.taxonomies import revision_words

if TYPE_CHECKING:
    from mast_tui.adjudication import ConflictGroup
    from mast_tui.session import AnnotatorStatus, Viewer
    from mast_tui.study import Study
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRequest:
    """The options of ``mast-tui status``."""

    common: CommonOptions = options.common()
    as_json: bool = options.as_json()


@click.command()
@options.takes(StatusRequest)
def status_command(request: StatusRequest) -> None:
    """Show per annotator what is finished, open and left to adjudicate.

    Open traces have a pass that is begun and not finished, which can be a second one.

    Annotators see conflicts only on traces that they have finished or adjudicate; this is recorded.
    --annotator shows that person's row alone. If there is a study, also its progress.
    """
    place, chosen = opened(request.common)
    report = status(place, chosen)
    viewer = asked_by(place, chosen.ref, request.common)
    conflicts, unordered = _conflicts(viewer, chosen)
    study = place.study(chosen.ref)
    whose = viewer.name if viewer.limited else request.common.annotator
    of_study = None if study is None else _study(place, chosen, study, whose, conflicts)
    left_out = viewer.hidden
    revisions = list(place.revisions_read(chosen.ref))
    rows = [
        {
            "name": row.name,
            "kind": row.kind.value,
            "finished": row.finished,
            "open": row.open,
            "conflicts": sum(_concerns(one, row.name) for _, one in conflicts),
        }
        for row in report.annotators
        if row.name == request.common.annotator
        or (request.common.annotator is None and not _only_organises(row, study))
    ]
    if request.common.annotator is not None and not rows:
        raise click.ClickException(f"no annotator {request.common.annotator!r} in this workspace")
    document = {
        "workspace": str(place.path),
        "taxonomy": report.taxonomy,
        "revisions": revisions,
        "traces": report.traces,
        "annotators": rows,
        "conflicts": {
            "left": len(conflicts),
            "verdicts": sum(one.kind.value == "verdict" for _, one in conflicts),
            "places": sum(one.kind.value == "place" for _, one in conflicts),
            "unordered": unordered,
        },
        **({} if of_study is None else {"study": of_study}),
        **sight_values(viewer, left_out),
    }
    if request.as_json:
        print_json(document)
    else:
        _print(document, rows)
        say_left_out(viewer, left_out)


def _conflicts(viewer: Viewer, taxonomy: Taxonomy) -> tuple[list[tuple[str, ConflictGroup]], int]:
    """Return what is left to decide on the traces that the viewer may know of.

    All disputed places of a mode are one conflict, as they are decided in one step.

    Returns:
        The conflicts, each with the id of its trace; and the number of labels of which it is not
        known whether they overlap others.
    """
    place = viewer.workspace
    words = {
        trace_id: said
        for trace_id, said in words_by_trace(place, taxonomy).items()
        if viewer.may_see_others(trace_id)
    }
    viewer.reveal(words)
    orders = SpanOrders(place)
    conflicts: list[tuple[str, ConflictGroup]] = []
    unordered = 0
    for trace_id, said in words.items():
        if len(said.sides) > 1:
            open_conflicts = said.gold(taxonomy, orders(trace_id)).conflicts
            conflicts += ((trace_id, group) for group in conflict_groups(open_conflicts))
        unordered += len(said.unordered(taxonomy, orders(trace_id)))
    return conflicts, unordered


def _study(
    place: Workspace,
    taxonomy: Taxonomy,
    study: Study,
    annotator: str | None,
    conflicts: list[tuple[str, ConflictGroup]],
) -> dict[str, Any]:
    """How far a study is; with an annotator only their own share."""
    traces = frozenset(study.traces)
    return {
        "traces": len(traces),
        "conflicts": sum(trace_id in traces for trace_id, _ in conflicts),
        "annotators": [
            {name: row[name] for name in ("name", "assigned", "finished", "open", "left")}
            for row in progress_rows(place, taxonomy, study, annotator)
            if annotator is None or row["name"] == annotator
        ],
    }


def _only_organises(row: AnnotatorStatus, study: Study | None) -> bool:
    """Check if somebody has a part in the study but labels nothing, such as an adjudicator."""
    if study is None or row.name in study.annotators:
        return False
    return not row.finished and not row.open


def _concerns(conflict: ConflictGroup, name: str) -> bool:
    return any(said.annotator == name for said in conflict.said)


def _print(document: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    print_line(f"{document['workspace']} · {document['taxonomy']}")
    conflicts = counted(document["conflicts"]["left"], "conflict")
    click.echo(f"{counted(document['traces'], 'trace')} · {conflicts} left")
    unordered = document["conflicts"]["unordered"]
    if unordered:
        click.echo(
            f"{counted(unordered, 'labelled span')} of unknown order: some of the conflicts may be "
            "none. Open the traces once"
        )
    if rows:
        counts = (key_column(key, right=True) for key in ("finished", "open", "conflicts"))
        print_table((key_column("name", "annotator"), key_column("kind"), *counts), rows)
    worded = revision_words(document["revisions"])
    if worded:
        click.echo(worded)
    study = document.get("study")
    if study is None:
        return
    conflicts = counted(study["conflicts"], "conflict")
    click.echo(f"study: {counted(study['traces'], 'trace')} · {conflicts} left")
    if study["annotators"]:
        keys = ("assigned", "finished", "open", "left")
        counts = (key_column(key, right=True) for key in keys)
        print_table((key_column("name", "annotator"), *counts), study["annotators"])

"""``mast-tui status``: how far everybody is, and what is left to adjudicate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mast_tui.cli.common import (
    checked_sight,
    common_options,
    json_option,
    kept_taxonomy,
    open_workspace,
    print_json,
    print_table,
)
from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.gold import Conflict
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


@click.command()
@common_options
@json_option
def status_command(
    workspace: str | None,
    annotator: str | None,
    taxonomy: Path | None,
    blind: bool,
    assisted: bool,
    as_json: bool,
) -> None:
    """Show per annotator what is finished, open and left to adjudicate.

    With --annotator only what that person may see: their own count, and the conflicts on traces
    that they have finished or adjudicate.
    """
    checked_sight(blind, assisted)
    from mast_tui.session import status

    place = open_workspace(workspace, create=False)
    chosen = kept_taxonomy(place, taxonomy)
    report = status(place, chosen)
    conflicts = _conflicts(place, chosen, annotator)
    rows = [
        {
            "name": row.name,
            "kind": row.kind.value,
            "finished": row.finished,
            "open": row.open,
            "conflicts": sum(_concerns(one, row.name) for one in conflicts),
        }
        for row in report.annotators
        if annotator in (None, row.name)
    ]
    place.close()
    if annotator is not None and not rows:
        raise click.ClickException(f"no annotator {annotator!r} in this workspace")
    document = {
        "workspace": str(place.path),
        "taxonomy": report.taxonomy,
        "traces": report.traces,
        "annotators": rows,
        "conflicts": {
            "left": len(conflicts),
            "verdicts": sum(one.kind.value == "verdict" for one in conflicts),
            "places": sum(one.kind.value == "place" for one in conflicts),
        },
    }
    if as_json:
        print_json(document)
    else:
        _print(document, rows)


def _conflicts(place: Workspace, taxonomy: Taxonomy, annotator: str | None) -> list[Conflict]:
    """What is left to decide on all traces, or on those that an annotator may know of."""
    from mast_tui.adjudication import orders_from_files, words_by_trace
    from mast_tui.session import record_reveal, visible_traces_for_agreement

    words = words_by_trace(place, taxonomy)
    if annotator is not None:
        visible = visible_traces_for_agreement(place, annotator, taxonomy.ref)
        record_reveal(place, annotator, taxonomy.ref, visible)
        words = {trace_id: said for trace_id, said in words.items() if trace_id in visible}
    order_of = orders_from_files(place)
    return [
        conflict
        for trace_id, said in words.items()
        if len(said.sides) > 1
        for conflict in said.gold(taxonomy, order_of(trace_id)).conflicts
    ]


def _concerns(conflict: Conflict, name: str) -> bool:
    return any(said.annotator == name for said in conflict.said)


def _print(document: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    click.echo(one_line(f"{document['workspace']} · {document['taxonomy']}"))
    click.echo(f"{document['traces']} traces · {document['conflicts']['left']} conflicts left")
    if rows:
        heading = ("annotator", "kind", "finished", "open", "conflicts")
        cells = [
            (row["name"], row["kind"], *(str(row[name]) for name in heading[2:])) for row in rows
        ]
        print_table([heading, *cells], numbers_from=2)

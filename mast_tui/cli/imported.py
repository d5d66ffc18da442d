"""``mast-tui import --list`` and ``--undo``: what was imported, and how to be without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mast_tui.cli.shared.common import print_json, print_table, say
from mast_tui.exchange.undo_import import find_import, undo_import
from mast_tui.safe_text import one_line
from mast_tui.session import known_person

if TYPE_CHECKING:
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.registers.imports import ImportRecord

_HEADINGS = ("import", "when", "who", "format", "events", "traces", "annotators", "state", "files")


def list_imports(workspace: Workspace, as_json: bool) -> int:
    """Show every import with what it brought, the earliest first."""
    documents = [_to_dict(workspace, record) for record in workspace.imports()]
    if as_json:
        print_json({"imports": documents})
        return 0
    if not documents:
        say("nothing was imported here")
        return 0
    rows = [
        (
            one["id"],
            one["at"][:16].replace("T", " "),
            one["who"] or "-",
            one["format"],
            str(one["events"]),
            str(one["traces"]),
            ", ".join(one["annotators"]),
            one["state"],
            ", ".join(one["files"]),
        )
        for one in documents
    ]
    print_table([_HEADINGS, *rows], numbers_from=len(_HEADINGS))
    return 0


def _to_dict(workspace: Workspace, record: ImportRecord) -> dict[str, Any]:
    counts = workspace.import_counts(record)
    return {
        "id": record.id,
        "at": record.at,
        "who": record.who,
        "format": record.format,
        "files": list(record.files),
        "events": counts.events,
        "traces": counts.traces,
        "annotators": list(counts.annotators),
        "state": record.state.value,
        "finished": record.finished_at,
        "undone": record.undone_at,
        "undone_by": record.undone_by,
    }


def take_back(workspace: Workspace, wanted: str, annotator: str | None, as_json: bool) -> int:
    """Take an import back, or say what was built on it."""
    record = find_import(workspace, wanted)
    undone = undo_import(workspace, record, known_person(workspace) or annotator)
    if undone.built_on:
        for told in undone.built_on:
            say(f"mast-tui import: {told}")
        say(
            f"mast-tui import: import {record.id} stays, as something was built on it since; take "
            "that back first"
        )
    if as_json:
        print_json(
            {
                "import": record.id,
                "undone": not undone.built_on,
                "events": undone.events,
                "built_on": list(undone.built_on),
            }
        )
    elif not undone.built_on:
        files = ", ".join(record.files)
        told = f"took back {undone.events} events of import {record.id} ({files})"
        click.echo(one_line(f"{told}; its traces stay known"))
    return 1 if undone.built_on else 0

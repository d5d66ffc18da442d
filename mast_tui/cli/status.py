"""``mast-tui status``: the progress of annotators, and the open conflicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.adjudication import ConflictGroup, SpanOrders, conflict_groups, read_work_by_trace
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer, report_hidden_traces
from mast_tui.cli.shared.common import open_with_taxonomy, print_json, print_line, print_table
from mast_tui.cli.study import named_annotator, progress_rows
from mast_tui.columns import key_column
from mast_tui.counts import counted
from mast_tui.session import AnnotatorStatus, Viewer, status, visibility_json
from mast_tui.workspace.registers.taxonomies import revision_words

if TYPE_CHECKING:
    from mast_tui.study import Study
    from mast_tui.taxonomy.model import Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRequest:
    """The options of ``mast-tui status``."""

    common: CommonOptions = options.common()
    as_json: bool = options.as_json()


@click.command()
@options.takes(StatusRequest)
def status_command(request: StatusRequest) -> None:
    """Show per annotator what is finished, begun and left to adjudicate.

    Begun traces have an unfinished pass, which can be a second one.

    Annotators see conflicts only on traces that they have finished or adjudicate; this is recorded.
    --annotator shows only that person's row. If there is a study, its progress is shown too.

    Example: mast-tui status --annotator alice
    """
    workspace, taxonomy = open_with_taxonomy(request.common)
    report = status(workspace, taxonomy)
    viewer = command_viewer(workspace, taxonomy.ref, request.common)
    conflicts, unordered_count = _open_conflicts(viewer, taxonomy)
    study = workspace.study(taxonomy.ref)
    hidden = viewer.hidden
    rows = [
        _annotator_json(row, conflicts)
        for row in report.annotators
        if row.name == request.common.annotator
        or (request.common.annotator is None and not _only_organises(row, study))
    ]
    if request.common.annotator is not None and not rows:
        raise click.ClickException(f"no annotator {request.common.annotator!r} in this workspace")
    kinds = Counter(group.kind.value for _, group in conflicts)
    document = {
        "workspace": workspace.name,
        "taxonomy": report.taxonomy,
        "revisions": list(workspace.revisions_read(taxonomy.ref)),
        "traces": report.traces,
        "annotators": rows,
        "conflicts": {
            "left": len(conflicts),
            "verdicts": kinds["verdict"],
            "places": kinds["place"],
            "unordered": unordered_count,
        },
        **_study_field(viewer, taxonomy, study, request.common, conflicts),
        **visibility_json(viewer, hidden),
    }
    if request.as_json:
        print_json(document)
    else:
        _print_status(document, rows)
        report_hidden_traces(viewer, hidden)


def _annotator_json(
    row: AnnotatorStatus, conflicts: Iterable[tuple[str, ConflictGroup]]
) -> dict[str, Any]:
    return {
        "name": row.name,
        "kind": row.kind.value,
        "finished": row.finished,
        "open": row.open,
        "conflicts": sum(
            any(side.annotator == row.name for side in group.answers) for _, group in conflicts
        ),
    }


def _open_conflicts(
    viewer: Viewer, taxonomy: Taxonomy
) -> tuple[list[tuple[str, ConflictGroup]], int]:
    """Return the open conflicts that the viewer may see, and the number of unordered labels.

    The disputed labels of a mode in a trace are one conflict. A label is unordered if the order of
    its spans is unknown. The traces are recorded as seen by the viewer.
    """
    workspace = viewer.workspace
    visible_work = {
        trace_id: work
        for trace_id, work in read_work_by_trace(workspace, taxonomy).items()
        if viewer.may_see_others(trace_id)
    }
    viewer.reveal(visible_work)
    orders = SpanOrders(workspace)
    conflicts: list[tuple[str, ConflictGroup]] = []
    unordered_count = 0
    for trace_id, work in visible_work.items():
        if len(work.sides) > 1:
            open_conflicts = work.gold(taxonomy, orders(trace_id)).conflicts
            conflicts += ((trace_id, group) for group in conflict_groups(open_conflicts))
        unordered_count += len(work.labels_of_unknown_order(taxonomy, orders(trace_id)))
    return conflicts, unordered_count


def _study_field(
    viewer: Viewer,
    taxonomy: Taxonomy,
    study: Study | None,
    common: CommonOptions,
    conflicts: list[tuple[str, ConflictGroup]],
) -> dict[str, Any]:
    """Return the progress of a study as a field; nothing without a study.

    A viewer with a limited view sees only their own progress.
    """
    if study is None:
        return {}
    annotator = named_annotator(viewer, common)
    traces = frozenset(study.traces)
    return {
        "study": {
            "traces": len(traces),
            "conflicts": sum(trace_id in traces for trace_id, _ in conflicts),
            "annotators": [
                {name: row[name] for name in ("name", "assigned", "finished", "open", "left")}
                for row in progress_rows(viewer.workspace, taxonomy, study, annotator)
                if annotator is None or row["name"] == annotator
            ],
        }
    }


def _only_organises(row: AnnotatorStatus, study: Study | None) -> bool:
    """Check for a person outside the study's annotators who has labelled nothing."""
    if study is None or row.name in study.annotators:
        return False
    return not row.finished and not row.open


_ANNOTATOR_COLUMNS: Final = (
    key_column("name", "annotator"),
    key_column("kind"),
    key_column("finished", right=True),
    key_column("open", "begun", right=True),
    key_column("conflicts", right=True),
)
_STUDY_COLUMNS: Final = (
    key_column("name", "annotator"),
    key_column("assigned", right=True),
    key_column("finished", right=True),
    key_column("open", "begun", right=True),
    key_column("left", right=True),
)


def _print_status(document: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Print the counts, the annotators, the revisions and the study."""
    print_line(f"{document['workspace']} · {document['taxonomy']}")
    hidden = document.get("sight", {}).get("left_out", 0)
    visible_text = f" on visible traces ({hidden:,} hidden)" if hidden else ""
    conflicts_text = counted(document["conflicts"]["left"], "conflict")
    click.echo(f"{counted(document['traces'], 'trace')} · {conflicts_text} left{visible_text}")
    unordered = document["conflicts"]["unordered"]
    if unordered:
        click.echo(
            f"{counted(unordered, 'labelled span')} of unknown order: some of the conflicts may "
            "not be real. Open the traces once"
        )
    if rows:
        print_table(_ANNOTATOR_COLUMNS, rows)
    revision_text = revision_words(document["revisions"])
    if revision_text:
        click.echo(revision_text)
    study = document.get("study")
    if study is None:
        return
    conflicts_text = counted(study["conflicts"], "conflict")
    click.echo(f"study: {counted(study['traces'], 'trace')} · {conflicts_text} left{visible_text}")
    if study["annotators"]:
        print_table(_STUDY_COLUMNS, study["annotators"])

"""``mast-tui taxonomy agree``: agreement under each version of a codebook, on the same traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.agree import figure_text, split_names
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer, report_hidden_traces
from mast_tui.cli.shared.common import open_workspace, print_json, print_table
from mast_tui.columns import TableColumn, key_column
from mast_tui.exchange.migration.migrate import standing_migrations
from mast_tui.figures.agreement.report import agreement_figures
from mast_tui.figures.record import estimate_json
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.session import QueueKind, queue, visibility_json

if TYPE_CHECKING:
    from mast_tui.figures.agreement.report import StudyInput
    from mast_tui.passes import Which
    from mast_tui.session import Viewer
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

_FIGURES: Final = ("cohen_kappa", "krippendorff_alpha")
_FIGURE_TITLES: Final = dict(zip(_FIGURES, ("κ", "α"), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyAgreeRequest:
    """The options of ``mast-tui taxonomy agree``."""

    versions: tuple[str, ...] = options.argument(nargs=-1, metavar="[VERSION …]")
    annotators: str | None = options.option(
        "--annotators", metavar="A,B,…", help="The annotators to compare. Default: as for 'agree'."
    )
    which: Which = options.which_pass(help="The first reading, or the last one.", default="1")
    rounds: int = options.rounds(help="Resamples of the traces behind the intervals; 0 gives none.")
    seed: int = options.seed()
    common: CommonOptions = options.common(taxonomy="VERSION names the taxonomies, the newest last")
    as_json: bool = options.as_json()


@click.command()
@options.takes(TaxonomyAgreeRequest)
def agree_versions_command(request: TaxonomyAgreeRequest) -> None:
    """Show κ and α of each version of a codebook, also compared with the last version on the same
    traces.

    VERSION is the name id@version of a taxonomy in the workspace, the newest last. Default: all
    taxonomies that labels were migrated from, and the one they were migrated to.
    """
    workspace = open_workspace(request.common)
    taxonomies = _compared_taxonomies(workspace, request.versions)
    names = split_names(request.annotators)
    viewers = [command_viewer(workspace, taxonomy.ref, request.common) for taxonomy in taxonomies]
    studies = [
        study_from_workspace(
            workspace, taxonomy, annotators=names, which=request.which, traces=viewer.traces
        )
        for taxonomy, viewer in zip(taxonomies, viewers, strict=True)
    ]
    last_study = studies[-1]
    document: dict[str, Any] = {
        "annotators": list(last_study.annotators),
        "pass": last_study.pass_label,
        "versions": [
            {
                "taxonomy": taxonomy.ref,
                "modes": len(taxonomy.modes),
                **_agreement_json(study, _shared_traces(study), request.rounds, request.seed),
                "same_traces": None
                if study is last_study
                else _figures_on_same_traces(
                    study, last_study, rounds=request.rounds, seed=request.seed
                ),
                "look_again": _count_look_again(workspace, taxonomy, viewer),
            }
            for taxonomy, study, viewer in zip(taxonomies, studies, viewers, strict=True)
        ],
    }
    for viewer in viewers:
        viewer.reveal(viewer.traces or ())
    hidden = frozenset[str]().union(*(viewer.hidden for viewer in viewers))
    document |= visibility_json(viewers[-1], hidden)
    if request.as_json:
        print_json(document)
        return
    _print_versions(document)
    report_hidden_traces(viewers[-1], hidden)


def _compared_taxonomies(workspace: Workspace, requested: Sequence[str]) -> list[Taxonomy]:
    """Return the taxonomies to compare, the newest last; by default those of migrations.

    Raises:
        click.ClickException: A taxonomy is missing, or no labels were migrated.
        click.UsageError: There are not two different taxonomies.
    """
    stored_by_ref = {taxonomy.ref: taxonomy for taxonomy in workspace.taxonomies()}
    if not requested:
        migrated_refs = [migration.files for migration in standing_migrations(workspace)]
        old_refs = list(dict.fromkeys(old_ref for old_ref, _ in migrated_refs))
        new_refs = list(dict.fromkeys(new_ref for _, new_ref in migrated_refs))
        requested = [*old_refs, *(ref for ref in new_refs if ref not in old_refs)]
        if not requested:
            raise click.ClickException(
                "no labels were migrated in this workspace; name the taxonomies to compare"
            )
    for name in requested:
        if name not in stored_by_ref:
            raise click.ClickException(
                f"{name}: no taxonomy of that name in the workspace; there are "
                f"{', '.join(sorted(stored_by_ref))}"
            )
    # There are fewer than two, or one is named twice.
    if len(set(requested)) < max(2, len(requested)):
        raise click.UsageError("name two different taxonomies at least")
    return [stored_by_ref[name] for name in requested]


def _shared_traces(study: StudyInput) -> frozenset[str]:
    """Return the traces that at least two annotators have finished."""
    counts = Counter(trace for traces in study.finished.values() for trace in traces)
    return frozenset(trace for trace, count in counts.items() if count > 1)


def _agreement_json(
    study: StudyInput, traces: frozenset[str], rounds: int, seed: int
) -> dict[str, Any]:
    """Return the number of traces, and the agreement on all verdicts in them together."""
    finished = {name: finished_traces & traces for name, finished_traces in study.finished.items()}
    agreement = agreement_figures(
        replace(study, finished=finished, rounds={}), rounds=rounds, seed=seed
    )
    pooled = agreement.index.table("pooled")
    return {"traces": len(traces), **{name: estimate_json(pooled[name]) for name in _FIGURES}}


def _figures_on_same_traces(
    study: StudyInput, last_study: StudyInput, *, rounds: int, seed: int
) -> dict[str, Any]:
    """Return the figures of a version and of the last one, on the traces that both have."""
    traces = _shared_traces(study) & _shared_traces(last_study)
    figures, last_figures = (
        _agreement_json(version, traces, rounds, seed) for version in (study, last_study)
    )
    return {
        "traces": len(traces),
        "here": {name: figures[name] for name in _FIGURES},
        "last": {name: last_figures[name] for name in _FIGURES},
    }


def _count_look_again(workspace: Workspace, taxonomy: Taxonomy, viewer: Viewer) -> int:
    """Count the visible traces that annotators must look at again, as a mode was split."""
    names = [annotator.name for annotator in workspace.annotators() if annotator.kind.is_person]
    return sum(
        not viewer.limited or name == viewer.name or viewer.may_see_others(item.trace_id)
        for name in names
        for item in queue(workspace, taxonomy, name, QueueKind.CHANGED)
    )


def _print_versions(document: Mapping[str, Any]) -> None:
    """Print the agreement of each version as a table."""
    last_ref = document["versions"][-1]["taxonomy"]
    columns = (
        key_column("taxonomy", "version"),
        key_column("modes", right=True),
        key_column("traces", right=True),
        *(_figure_column(name, title) for name, title in _FIGURE_TITLES.items()),
        key_column("look_again", "look again", right=True),
        TableColumn(
            "same traces",
            lambda version: str(version["same_traces"]["traces"]) if version["same_traces"] else "",
            right=True,
        ),
        *(
            _same_traces_column(name, key, f"{title} {column}")
            for name, title in _FIGURE_TITLES.items()
            for key, column in (("here", "here"), ("last", last_ref))
        ),
    )
    print_table(columns, document["versions"])
    annotators = ", ".join(document["annotators"]) or "nobody"
    click.echo(f"{annotators}, pass {document['pass']}; over all modes of a version together")


def _figure_column(name: str, title: str) -> TableColumn[Mapping[str, Any]]:
    return TableColumn(title, lambda version: figure_text(version[name]), right=True)


def _same_traces_column(name: str, side: str, title: str) -> TableColumn[Mapping[str, Any]]:
    """Return the column of a figure on the traces that a version shares with the last version."""

    def cell(version: Mapping[str, Any]) -> str:
        comparison = version["same_traces"]
        return "" if comparison is None else figure_text(comparison[side][name])

    return TableColumn(title, cell, right=True)

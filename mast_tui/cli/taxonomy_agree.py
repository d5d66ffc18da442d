"""``mast-tui taxonomy agree``: agreement under each version of a codebook, on the same traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.agree import split_names
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import asked_by, say_left_out
from mast_tui.cli.shared.common import open_workspace, print_json, print_table
from mast_tui.columns import TableColumn, key_column
from mast_tui.exchange.migration.migrate import standing_migrations
from mast_tui.figures.agreement.report import agreement_figures
from mast_tui.figures.record import estimate_json
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.session import QueueKind, queue, sight_values

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
        "--annotators", metavar="A,B,…", help="Who is compared. Default: as 'agree' has it."
    )
    which: Which = options.which_pass(help="The first reading, or the last one.", default="1")
    rounds: int = options.rounds(help="Resamples of the traces behind the intervals; 0 gives none.")
    seed: int = options.seed()
    common: CommonOptions = options.common(taxonomy="VERSION names the taxonomies, the newest last")
    as_json: bool = options.as_json()


@click.command()
@options.takes(TaxonomyAgreeRequest)
def agree_versions_command(request: TaxonomyAgreeRequest) -> None:
    """Show κ and α of each version of a codebook, and beside the last one on the same traces.

    VERSION is a name id@version of a taxonomy in the workspace, the newest last. Default: all that
    labels were carried over from, and the one that they came to.
    """
    place = open_workspace(request.common)
    chosen = _versions(place, request.versions)
    names = split_names(request.annotators)
    viewers = [asked_by(place, one.ref, request.common) for one in chosen]
    studies = [
        study_from_workspace(
            place, one, annotators=names, which=request.which, traces=viewer.traces
        )
        for one, viewer in zip(chosen, viewers, strict=True)
    ]
    last = studies[-1]
    document: dict[str, Any] = {
        "annotators": list(last.annotators),
        "pass": last.pass_label,
        "versions": [
            {
                "taxonomy": one.ref,
                "modes": len(one.modes),
                **_figures(study, _shared(study), request.rounds, request.seed),
                "same_traces": None
                if study is last
                else _beside(study, last, rounds=request.rounds, seed=request.seed),
                "look_again": _look_again(place, one, viewer),
            }
            for one, study, viewer in zip(chosen, studies, viewers, strict=True)
        ],
    }
    for viewer in viewers:
        viewer.reveal(viewer.traces or ())
    left_out = frozenset[str]().union(*(viewer.hidden for viewer in viewers))
    document |= sight_values(viewers[-1], left_out)
    if request.as_json:
        print_json(document)
        return
    _print(document)
    say_left_out(viewers[-1], left_out)


def _versions(place: Workspace, wanted: Sequence[str]) -> list[Taxonomy]:
    """The taxonomies that are compared, the newest last."""
    kept = {one.ref: one for one in place.taxonomies()}
    if not wanted:
        steps = [one.files for one in standing_migrations(place)]
        olds = list(dict.fromkeys(old for old, _ in steps))
        news = list(dict.fromkeys(new for _, new in steps))
        wanted = [*olds, *(new for new in news if new not in olds)]
        if not wanted:
            raise click.ClickException(
                "nothing was carried over to another taxonomy here; name the taxonomies to compare"
            )
    for name in wanted:
        if name not in kept:
            raise click.ClickException(
                f"{name}: no taxonomy of that name here; there are {', '.join(sorted(kept))}"
            )
    if len(set(wanted)) < max(2, len(wanted)):
        raise click.UsageError("name two different taxonomies at least")
    return [kept[name] for name in wanted]


def _shared(study: StudyInput) -> frozenset[str]:
    """The traces that two of the annotators have finished."""
    counts = Counter(trace for traces in study.finished.values() for trace in traces)
    return frozenset(trace for trace, count in counts.items() if count > 1)


def _figures(study: StudyInput, traces: frozenset[str], rounds: int, seed: int) -> dict[str, Any]:
    """How many traces, and what all verdicts on them come to together."""
    finished = {name: done & traces for name, done in study.finished.items()}
    agreement = agreement_figures(
        replace(study, finished=finished, rounds={}), rounds=rounds, seed=seed
    )
    pooled = agreement.index.table("pooled")
    return {"traces": len(traces), **{name: estimate_json(pooled[name]) for name in _FIGURES}}


def _beside(study: StudyInput, last: StudyInput, *, rounds: int, seed: int) -> dict[str, Any]:
    """The figures of a version and of the last one, on the traces that both have."""
    traces = _shared(study) & _shared(last)
    before, after = (_figures(one, traces, rounds, seed) for one in (study, last))
    return {
        "traces": len(traces),
        "here": {name: before[name] for name in _FIGURES},
        "last": {name: after[name] for name in _FIGURES},
    }


def _look_again(place: Workspace, taxonomy: Taxonomy, viewer: Viewer) -> int:
    """How many traces wait for another look of somebody, as a mode was split, that may be told."""
    names = [one.name for one in place.annotators() if one.kind.is_person]
    return sum(
        not viewer.limited or name == viewer.name or viewer.may_see_others(item.trace_id)
        for name in names
        for item in queue(place, taxonomy, name, QueueKind.CHANGED)
    )


def _print(document: Mapping[str, Any]) -> None:
    last = document["versions"][-1]["taxonomy"]
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
            for key, column in (("here", "here"), ("last", last))
        ),
    )
    print_table(columns, document["versions"])
    who = ", ".join(document["annotators"]) or "nobody"
    click.echo(f"{who}, pass {document['pass']}; over all modes of a version together")


def _figure_column(name: str, title: str) -> TableColumn[Mapping[str, Any]]:
    return TableColumn(title, lambda version: _shown(version[name]), right=True)


def _same_traces_column(name: str, side: str, title: str) -> TableColumn[Mapping[str, Any]]:
    def cell(version: Mapping[str, Any]) -> str:
        same = version["same_traces"]
        return "" if same is None else _shown(same[side][name])

    return TableColumn(title, cell, right=True)


def _shown(figure: Mapping[str, Any]) -> str:
    """A figure with its interval, where it has one."""
    if figure["value"] is None:
        return "—"
    interval = figure.get("ci")
    ends = "" if interval is None else f" [{interval[0]:.2f}, {interval[1]:.2f}]"
    return f"{figure['value']:.2f}{ends}"

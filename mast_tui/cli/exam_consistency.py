"""``mast-tui exam`` without a set: how steady judges of a workspace are, which needs no truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from mast_tui import __version__
from mast_tui.adjudication import OrderOf, SpanOrders
from mast_tui.figures.bootstrap import bootstrap_json
from mast_tui.figures.consistency import Beside, beside_figures, samples_figures
from mast_tui.figures.jackknife import share_of_traces
from mast_tui.judges.comparing import Side, compare, side_of
from mast_tui.labels import AnnotatorKind, QuoteCounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_tui.labels import Label
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Run, Workspace


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge, and what it says of the traces that may be seen: its labels by trace.

    ``settings`` are those of its last run, by name; a judge that asks no model has none.
    """

    name: str
    labels: Mapping[str, Sequence[Label]]
    side: Side
    settings: Mapping[str, str]

    @property
    def samples(self) -> int:
        """How often it has read each trace."""
        return int(self.settings.get("samples", "1"))


def judges_named(place: Workspace, texts: Iterable[str]) -> list[str]:
    """All judges with these names, or whose names begin so; those that ran first come first.

    Raises:
        ClickException: None begins so.
    """
    judges = [one.name for one in place.annotators() if one.kind is AnnotatorKind.JUDGE]
    named: set[str] = set()
    for text in texts:
        found = [one for one in judges if one == text] or [
            one for one in judges if one.startswith((text, f"judge:{text}"))
        ]
        if not found:
            raise click.ClickException(
                f"no judge {text!r} in this workspace; there are: {', '.join(judges) or 'none yet'}"
            )
        named.update(found)
    begun = {name: number for number, name in enumerate(run.judge for run in place.runs())}
    return sorted(named, key=lambda name: (begun.get(name, -1), name))


def judged_by(
    place: Workspace, taxonomy: Taxonomy, name: str, may_see: Callable[[str], bool]
) -> Judged:
    """Gather what a judge says under a taxonomy of the traces that may be seen."""
    ref = taxonomy.ref
    traces = [one.trace_id for one in place.judgements(annotator=name, taxonomy=ref)]
    labels: dict[str, list[Label]] = {one: [] for one in sorted(traces) if may_see(one)}
    for label in place.labels(annotator=name, taxonomy=ref):
        if label.trace_id in labels:
            labels[label.trace_id].append(label)
    verdicts = {
        (one.trace_id, one.mode): one.value
        for one in place.verdicts(annotator=name, taxonomy=ref)
        if one.trace_id in labels
    }
    side = side_of((label for found in labels.values() for label in found), verdicts)
    return Judged(name, labels, side, _settings(place.runs(), name))


def _settings(runs: Sequence[Run], name: str) -> dict[str, str]:
    told = [run.settings for run in runs if run.judge == name and run.settings is not None]
    if not told:
        return {}
    examples = {"examples shown": str(len(told[-1].examples))} if told[-1].examples else {}
    return {"model": told[-1].model, **dict(told[-1].parameters), **examples}


def consistency_document(
    place: Workspace, taxonomy: Taxonomy, judges: Sequence[Judged], rounds: int, seed: int
) -> dict[str, Any]:
    """Tell how steady judges are, as ``--json`` prints it; the others stand beside the first."""
    order_of = SpanOrders(place)
    first = judges[0]
    return {
        "exam": None,
        "taxonomy": taxonomy.ref,
        "version": __version__,
        "bootstrap": bootstrap_json(rounds, seed),
        "judges": {one.name: _alone(one, rounds, seed) for one in judges},
        "beside": {
            "first": first.name,
            "others": {
                one.name: {
                    "differs": _differs(first.settings, one.settings),
                    **beside_figures(
                        _traces_beside(first, one, taxonomy, order_of), rounds=rounds, seed=seed
                    ),
                }
                for one in judges[1:]
            },
        },
    }


def _alone(judge: Judged, rounds: int, seed: int) -> dict[str, Any]:
    quotes = [QuoteCounts.of(one.evidence for one in found) for found in judge.labels.values()]
    shares = [[one.confidence or 0.0 for one in found] for found in judge.labels.values()]
    return {
        "traces": len(judge.labels),
        "settings": dict(judge.settings),
        "samples": samples_figures(shares, judge.samples, rounds=rounds, seed=seed)
        if judge.samples > 1
        else None,
        "quotes_found": share_of_traces(
            [(one.found, one.all) for one in quotes], rounds=rounds, seed=seed
        ),
    }


def _differs(first: Mapping[str, str], other: Mapping[str, str]) -> dict[str, list[str | None]]:
    """What was set otherwise, by name: first, then other."""
    names = sorted(first.keys() | other.keys())
    return {
        name: [first.get(name), other.get(name)]
        for name in names
        if first.get(name) != other.get(name)
    }


def _traces_beside(
    first: Judged, other: Judged, taxonomy: Taxonomy, order_of: OrderOf
) -> list[Beside]:
    modes = [mode.slug for mode in taxonomy.modes]
    found = []
    for trace_id in sorted(first.labels.keys() & other.labels.keys()):
        total = compare(first.side, other.side, [trace_id], modes, order_of).total
        steps = [_decisive(one.labels[trace_id]) for one in (first, other)]
        found.append(
            Beside(
                total.both,
                total.first,
                total.second,
                total.neither,
                total.meet,
                total.apart,
                bool(steps[0] & steps[1]) if any(steps) else None,
            )
        )
    return found


def _decisive(labels: Iterable[Label]) -> set[str | None]:
    """The spans at which the run was decided, as the judge says."""
    return {one.target.first for one in labels if one.decisive}

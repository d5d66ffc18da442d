"""``mast-tui exam`` without a set: the consistency of judges, which needs no truth.

A judge whose answer differs when nothing that matters has changed (another reading, smaller
windows, another order of the modes) cannot be right both times. Its readings of one trace are
compared with each other, and with those of another judge. All figures are over traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import click

from mast_tui import __version__
from mast_tui.adjudication import OrderOf, SpanOrders
from mast_tui.figures.agreement.coefficients import CoefficientJson
from mast_tui.figures.bootstrap import bootstrap_json
from mast_tui.figures.jackknife import share_of_traces
from mast_tui.judges.comparing import Side, compare, side_of
from mast_tui.labels import AnnotatorKind, QuoteCounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_tui.labels import Label
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Run, Workspace


@dataclass(frozen=True, slots=True)
class TraceComparison:
    """The verdicts of two judges on one trace, compared.

    ``both``, ``first``, ``second`` and ``neither`` count the modes that they call present, of those
    on which both have a verdict. Of ``both``, ``meet`` counts the modes whose span ranges overlap
    and ``apart`` those whose ranges do not. ``same_step`` is True if they name the same decisive
    step, None if neither names one.
    """

    both: int
    first: int
    second: int
    neither: int
    meet: int
    apart: int
    same_step: bool | None = None


class SamplesJson(TypedDict):
    """The agreement of the readings of one judge.

    ``again``: of the findings of one reading, the share that another has too. ``always``: of all
    findings, the share that every reading has.
    """

    samples: int
    traces: int
    found: int
    again: CoefficientJson
    always: CoefficientJson


class JudgePairJson(TypedDict):
    """The agreement of two judges.

    ``verdicts``: the share of verdicts that are the same. ``modes``: of the modes that either calls
    present, the share on which the other agrees (positive agreement). ``places``: of the modes that
    both call present, the share whose span ranges overlap. ``step``: of the traces in which either
    names a decisive step, the share in which both name the same one.
    """

    n: int
    verdicts: CoefficientJson
    modes: CoefficientJson
    places: CoefficientJson
    step: CoefficientJson


def samples_figures(
    shares_by_trace: Sequence[Sequence[float]], samples: int, *, rounds: int, seed: int
) -> SamplesJson:
    """Compute the agreement of the readings of each trace.

    Args:
        shares_by_trace: For each trace, the share of its readings that has each finding.
        samples: The number of readings of each trace, two or more.
        rounds: The number of resamples of the traces; 0 leaves out the intervals.
        seed: The seed of the resamples.

    Raises:
        ValueError: There was one reading only.
    """
    if samples < 2:
        raise ValueError(f"{samples} reading tells nothing of agreement")
    repeated: list[tuple[int, int]] = []
    in_every_reading: list[tuple[int, int]] = []
    for shares in shares_by_trace:
        counts = [round(share * samples) for share in shares]
        # Of the pairs of readings whose first one has the finding, those whose second has it too.
        pairs = sum(count * (count - 1) for count in counts)
        repeated.append((pairs, sum(counts) * (samples - 1)))
        in_every_reading.append((counts.count(samples), len(counts)))
    return {
        "samples": samples,
        "traces": len(shares_by_trace),
        "found": sum(findings for _, findings in in_every_reading),
        "again": share_of_traces(repeated, rounds=rounds, seed=seed),
        "always": share_of_traces(in_every_reading, rounds=rounds, seed=seed),
    }


def judge_pair_figures(
    comparisons: Sequence[TraceComparison], *, rounds: int, seed: int
) -> JudgePairJson:
    """Compute the agreement of two judges on the traces that both have judged.

    Args:
        comparisons: The comparison of each trace.
        rounds: The number of resamples of the traces; 0 leaves out the intervals.
        seed: The seed of the resamples.
    """

    def _share(
        numerator: Callable[[TraceComparison], int], denominator: Callable[[TraceComparison], int]
    ) -> CoefficientJson:
        counts = [(numerator(trace), denominator(trace)) for trace in comparisons]
        return share_of_traces(counts, rounds=rounds, seed=seed)

    return {
        "n": len(comparisons),
        "verdicts": _share(
            lambda trace: trace.both + trace.neither,
            lambda trace: trace.both + trace.neither + trace.first + trace.second,
        ),
        "modes": _share(
            lambda trace: 2 * trace.both,
            lambda trace: 2 * trace.both + trace.first + trace.second,
        ),
        "places": _share(lambda trace: trace.meet, lambda trace: trace.meet + trace.apart),
        "step": _share(
            lambda trace: trace.same_step is True,
            lambda trace: trace.same_step is not None,
        ),
    }


@dataclass(frozen=True, slots=True)
class JudgeLabels:
    """The labels of a judge on the traces that the user may see, by trace.

    ``settings`` are those of its last run, by name; a judge that asks no model has none.
    """

    name: str
    labels: Mapping[str, Sequence[Label]]
    side: Side
    settings: Mapping[str, str]

    @property
    def samples(self) -> int:
        """The number of readings of each trace."""
        return int(self.settings.get("samples", "1"))


def judges_named(workspace: Workspace, texts: Iterable[str]) -> list[str]:
    """Return the judges with these names, or whose names begin so, in the order of their runs.

    Args:
        workspace: The workspace.
        texts: Names, or beginnings of names.

    Raises:
        ClickException: No judge has such a name.
    """
    judges = [
        annotator.name
        for annotator in workspace.annotators()
        if annotator.kind is AnnotatorKind.JUDGE
    ]
    named: set[str] = set()
    for text in texts:
        matches = [judge for judge in judges if judge == text] or [
            judge for judge in judges if judge.startswith((text, f"judge:{text}"))
        ]
        if not matches:
            raise click.ClickException(
                f"no judge {text!r} in this workspace; there are: {', '.join(judges) or 'none yet'}"
            )
        named.update(matches)
    begun = {name: number for number, name in enumerate(run.judge for run in workspace.runs())}
    return sorted(named, key=lambda name: (begun.get(name, -1), name))


def labels_of_judge(
    workspace: Workspace, taxonomy: Taxonomy, name: str, may_see: Callable[[str], bool]
) -> JudgeLabels:
    """Return the labels of a judge on the traces that the user may see.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the labels and verdicts.
        name: The judge's name.
        may_see: Checks whether the user may see the labels on a trace, by its id.
    """
    ref = taxonomy.ref
    traces = [
        judgement.trace_id for judgement in workspace.judgements(annotator=name, taxonomy=ref)
    ]
    labels: dict[str, list[Label]] = {trace: [] for trace in sorted(traces) if may_see(trace)}
    for label in workspace.labels(annotator=name, taxonomy=ref):
        if label.trace_id in labels:
            labels[label.trace_id].append(label)
    verdicts = {
        (verdict.trace_id, verdict.mode): verdict.value
        for verdict in workspace.verdicts(annotator=name, taxonomy=ref)
        if verdict.trace_id in labels
    }
    side = side_of((label for of_trace in labels.values() for label in of_trace), verdicts)
    return JudgeLabels(name, labels, side, _settings(workspace.runs(), name))


def _settings(runs: Sequence[Run], name: str) -> dict[str, str]:
    """Return the settings of the last run of a judge that asked a model."""
    recorded = [run.settings for run in runs if run.judge == name and run.settings is not None]
    if not recorded:
        return {}
    last = recorded[-1]
    examples = {"examples shown": str(len(last.examples))} if last.examples else {}
    return {"model": last.model, **dict(last.parameters), **examples}


def consistency_document(
    workspace: Workspace, taxonomy: Taxonomy, judges: Sequence[JudgeLabels], rounds: int, seed: int
) -> dict[str, Any]:
    """Return the consistency of judges, as ``--json`` prints it.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the labels and verdicts.
        judges: The judges; the others are compared with the first.
        rounds: The number of resamples of the traces; 0 leaves out the intervals.
        seed: The seed of the resamples.
    """
    order_of = SpanOrders(workspace)
    first = judges[0]
    return {
        "exam": None,
        "taxonomy": taxonomy.ref,
        "version": __version__,
        "bootstrap": bootstrap_json(rounds, seed),
        "judges": {judge.name: _judge_figures(judge, rounds, seed) for judge in judges},
        "beside": {
            "first": first.name,
            "others": {
                judge.name: {
                    "differs": _differs(first.settings, judge.settings),
                    **judge_pair_figures(
                        _compared_traces(first, judge, taxonomy, order_of), rounds=rounds, seed=seed
                    ),
                }
                for judge in judges[1:]
            },
        },
    }


def _judge_figures(judge: JudgeLabels, rounds: int, seed: int) -> dict[str, Any]:
    """Return the agreement of a judge's readings, and the share of its quotes in the trace."""
    quotes = [
        QuoteCounts.count(label.evidence for label in labels) for labels in judge.labels.values()
    ]
    shares = [[label.confidence or 0.0 for label in labels] for labels in judge.labels.values()]
    samples = None
    if judge.samples > 1:
        samples = samples_figures(shares, judge.samples, rounds=rounds, seed=seed)
    return {
        "traces": len(judge.labels),
        "settings": dict(judge.settings),
        "samples": samples,
        "quotes_found": share_of_traces(
            [(counts.found, counts.all) for counts in quotes], rounds=rounds, seed=seed
        ),
    }


def _differs(first: Mapping[str, str], other: Mapping[str, str]) -> dict[str, list[str | None]]:
    """Return the settings that differ, by name: the first judge's value, then the other's."""
    names = sorted(first.keys() | other.keys())
    return {
        name: [first.get(name), other.get(name)]
        for name in names
        if first.get(name) != other.get(name)
    }


def _compared_traces(
    first: JudgeLabels, other: JudgeLabels, taxonomy: Taxonomy, order_of: OrderOf
) -> list[TraceComparison]:
    """Compare two judges on each trace that both have judged."""
    modes = [mode.slug for mode in taxonomy.modes]
    compared = []
    for trace_id in sorted(first.labels.keys() & other.labels.keys()):
        total = compare(first.side, other.side, [trace_id], modes, order_of).total
        steps = [_decisive(judge.labels[trace_id]) for judge in (first, other)]
        compared.append(
            TraceComparison(
                both=total.both,
                first=total.first,
                second=total.second,
                neither=total.neither,
                meet=total.meet,
                apart=total.apart,
                same_step=bool(steps[0] & steps[1]) if any(steps) else None,
            )
        )
    return compared


def _decisive(labels: Iterable[Label]) -> set[str | None]:
    """Return the spans that the judge marked as decisive."""
    return {label.target.first for label in labels if label.decisive}

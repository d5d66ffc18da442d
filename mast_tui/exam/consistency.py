"""``mast-tui exam`` without a set: the consistency of judges, which needs no truth.

A judge whose answer differs when nothing that matters has changed (another reading, smaller
windows, another order of the modes) cannot be right both times. Its readings of one trace are
compared with each other, and with those of another judge. All figures are over traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypedDict

import click

from mast_tui import __version__
from mast_tui.adjudication import OrderOf, SpanOrders
from mast_tui.cli.agree import judge_names
from mast_tui.figures.agreement.coefficients import CoefficientJson
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.jackknife import share_of_traces
from mast_tui.judges.comparing import ModeCounts, Side, compare, side_of
from mast_tui.labels import Label, QuoteCounts

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Run, Workspace


@dataclass(frozen=True, slots=True)
class TraceComparison:
    """The comparison of two judges on one trace.

    Attributes:
        modes: The number of modes by the verdicts of both judges; only modes with both count.
        same_step: True if both judges name the same decisive step; None if neither names a step.
    """

    modes: ModeCounts
    same_step: bool | None = None


class SamplesJson(TypedDict):
    """The agreement of the readings of one judge.

    Attributes:
        samples: The number of readings of each trace.
        traces: The number of traces.
        found: The number of different findings of all readings.
        again: Of the findings of one reading, the share that another reading has too.
        always: Of all findings, the share that every reading has.
    """

    samples: int
    traces: int
    found: int
    again: CoefficientJson
    always: CoefficientJson


class JudgePairJson(TypedDict):
    """The agreement of two judges.

    Attributes:
        n: The number of traces that both judges have judged.
        verdicts: The share of verdicts that are the same.
        modes: Of the modes that one judge calls present, the share on which the other judge agrees
            (positive agreement).
        places: Of the modes that both judges call present, the share whose span ranges overlap.
        step: Of the traces in which a judge names a decisive step, the share in which both judges
            name the same step.
    """

    n: int
    verdicts: CoefficientJson
    modes: CoefficientJson
    places: CoefficientJson
    step: CoefficientJson


def samples_figures(
    shares_by_trace: Sequence[Sequence[float]], samples: int, *, rounds: int, seed: int
) -> SamplesJson:
    """Compute the agreement of a judge's samples, its repeated readings of each trace.

    Args:
        shares_by_trace: For each trace and each finding in it, the share of the samples that have
            the finding.
        samples: The number of samples of each trace, two or more.
        rounds: The number of resamples of the traces; 0 leaves out the intervals.
        seed: The seed of the resamples.

    Raises:
        ValueError: There was only one sample.
    """
    if samples < 2:
        raise ValueError(f"agreement needs two readings or more, not {samples}")
    repeated_counts: list[tuple[int, int]] = []
    constant_counts: list[tuple[int, int]] = []
    for shares in shares_by_trace:
        sample_counts = [round(share * samples) for share in shares]
        # Of the ordered pairs of samples whose first has a finding, those whose second has it too.
        pair_count = sum(count * (count - 1) for count in sample_counts)
        repeated_counts.append((pair_count, sum(sample_counts) * (samples - 1)))
        constant_counts.append((sample_counts.count(samples), len(sample_counts)))
    return {
        "samples": samples,
        "traces": len(shares_by_trace),
        "found": sum(finding_count for _, finding_count in constant_counts),
        "again": share_of_traces(repeated_counts, Resampling(rounds, seed)),
        "always": share_of_traces(constant_counts, Resampling(rounds, seed)),
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

    def share_of(counts_of: Callable[[ModeCounts], tuple[int, int]]) -> CoefficientJson:
        """Return a share over the traces; ``counts_of`` returns its numerator and denominator."""
        return share_of_traces(
            [counts_of(comparison.modes) for comparison in comparisons], Resampling(rounds, seed)
        )

    step_counts = [
        (comparison.same_step is True, comparison.same_step is not None)
        for comparison in comparisons
    ]
    return {
        "n": len(comparisons),
        "verdicts": share_of(lambda modes: (modes.both + modes.neither, modes.compared)),
        # The modes that both call present, twice, among all modes that each calls present.
        "modes": share_of(
            lambda modes: (2 * modes.both, 2 * modes.both + modes.first + modes.second)
        ),
        # Of the modes that both call present, those whose span ranges overlap.
        "places": share_of(lambda modes: (modes.meet, modes.meet + modes.apart)),
        "step": share_of_traces(step_counts, Resampling(rounds, seed)),
    }


@dataclass(frozen=True, slots=True)
class JudgeLabels:
    """The labels of a judge on the traces that the user may see.

    Attributes:
        name: The name of the judge.
        labels: Its labels by trace id; a judged trace without labels has an empty list.
        side: Its labels and verdicts for the comparison with another judge.
        settings: The settings of its last run by name; empty for a judge that asks no model.
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
    """Return the judges whose names are, or begin with, one of some texts.

    Args:
        workspace: The workspace.
        texts: Names, or beginnings of names.

    Returns:
        The names in the order of the judges' last runs, judges without a run first.

    Raises:
        ClickException: No judge has such a name.
    """
    judges = judge_names(workspace)
    matching_judges: set[str] = set()
    for text in texts:
        prefixes = (text, f"judge:{text}")
        matches = (
            [text] if text in judges else [judge for judge in judges if judge.startswith(prefixes)]
        )
        if not matches:
            raise click.ClickException(
                f"no judge {text!r} in this workspace; there are: {', '.join(judges) or 'none yet'}"
            )
        matching_judges.update(matches)
    run_position = {run.judge: position for position, run in enumerate(workspace.runs())}
    return sorted(matching_judges, key=lambda name: (run_position.get(name, -1), name))


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
    return JudgeLabels(
        name,
        labels,
        side_of(chain.from_iterable(labels.values()), verdicts),
        _last_settings(workspace.runs(), name),
    )


def _last_settings(runs: Sequence[Run], name: str) -> dict[str, str]:
    """Return the settings of a judge's last run with a model; empty if there is no such run."""
    all_settings = [run.settings for run in runs if run.judge == name and run.settings is not None]
    if not all_settings:
        return {}
    settings = all_settings[-1]
    examples = {"examples shown": str(len(settings.examples))} if settings.examples else {}
    return {"model": settings.model, **dict(settings.parameters), **examples}


def consistency_document(
    workspace: Workspace, taxonomy: Taxonomy, judges: Sequence[JudgeLabels], rounds: int, seed: int
) -> dict[str, Any]:
    """Return the consistency of judges, as ``--json`` prints it.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the labels and verdicts.
        judges: The judges; each is compared with the first judge.
        rounds: The number of resamples of the traces; 0 leaves out the intervals.
        seed: The seed of the resamples.
    """
    order_of = SpanOrders(workspace)
    first = judges[0]
    return {
        "exam": None,
        "taxonomy": taxonomy.ref,
        "version": __version__,
        "bootstrap": Resampling(rounds, seed).to_json(),
        "judges": {judge.name: _judge_figures(judge, rounds, seed) for judge in judges},
        "beside": {
            "first": first.name,
            "others": {
                judge.name: {
                    "differs": _differing_settings(first.settings, judge.settings),
                    **judge_pair_figures(
                        _compared_traces(first, judge, taxonomy, order_of), rounds=rounds, seed=seed
                    ),
                }
                for judge in judges[1:]
            },
        },
    }


def _judge_figures(judge: JudgeLabels, rounds: int, seed: int) -> dict[str, Any]:
    """Return figures of a judge: agreement of its repeated readings, share of quotes found.

    The agreement is None for a judge that reads a trace once.
    """
    quote_counts = [
        QuoteCounts.count(label.evidence for label in labels) for labels in judge.labels.values()
    ]
    samples = None
    if judge.samples > 1:
        # The confidence of a label is the share of readings that have the finding.
        shares = [[label.confidence or 0.0 for label in labels] for labels in judge.labels.values()]
        samples = samples_figures(shares, judge.samples, rounds=rounds, seed=seed)
    return {
        "traces": len(judge.labels),
        "settings": dict(judge.settings),
        "samples": samples,
        "quotes_found": share_of_traces(
            [(counts.found, counts.all) for counts in quote_counts], Resampling(rounds, seed)
        ),
    }


def _differing_settings(
    first: Mapping[str, str], other: Mapping[str, str]
) -> dict[str, list[str | None]]:
    """Return the settings that differ, by name: the value of the first judge, then of the other."""
    names = sorted(first.keys() | other.keys())
    return {
        name: [first.get(name), other.get(name)]
        for name in names
        if first.get(name) != other.get(name)
    }


def _compared_traces(
    first: JudgeLabels, other: JudgeLabels, taxonomy: Taxonomy, order_of: OrderOf
) -> list[TraceComparison]:
    """Return the comparison of two judges on each trace that both have judged."""
    modes = [mode.slug for mode in taxonomy.modes]
    comparisons = []
    for trace_id in sorted(first.labels.keys() & other.labels.keys()):
        total = compare(first.side, other.side, [trace_id], modes, order_of).total
        spans = _decisive_spans(first.labels[trace_id])
        other_spans = _decisive_spans(other.labels[trace_id])
        # None if neither judge names a step.
        same_step = bool(spans & other_spans) if spans or other_spans else None
        comparisons.append(TraceComparison(total, same_step))
    return comparisons


def _decisive_spans(labels: Iterable[Label]) -> set[str | None]:
    """Return the spans that the judge marked as decisive."""
    return {label.target.first for label in labels if label.decisive}

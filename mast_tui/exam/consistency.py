"""``mast-tui exam`` without a set: the consistency of judges, which needs no true labels.

A judge whose answer changes with another reading, smaller windows or another order of the modes
cannot be right both times. Its readings of one trace are compared with each other, and with those
of another judge. All figures are over traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui import __version__
from mast_tui.adjudication import OrderOf, SpanOrders
from mast_tui.cli.agree import judges_beginning
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.jackknife import share_of_traces
from mast_tui.figures.record import (
    Figure,
    FigureIndex,
    FigureScope,
    insert_figures,
    scope_paths,
)
from mast_tui.judges.comparing import ModeCounts, Side, compare, side_of
from mast_tui.labels import Label, QuoteCounts

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Run, Workspace


@dataclass(frozen=True, slots=True)
class TraceComparison:
    """The comparison of two judges on one trace.

    Attributes:
        modes: The numbers of modes by the verdicts of both judges; only modes with both count.
        same_step: True if both judges name the same decisive step; None if neither names a step.
    """

    modes: ModeCounts
    same_step: bool | None = None


def samples_figures(
    scope: FigureScope,
    shares_by_trace: Sequence[Sequence[float]],
    samples: int,
    resampling: Resampling,
) -> list[Figure]:
    """Compute the agreement of a judge's samples, its repeated readings of each trace.

    Args:
        scope: The scope of the figures.
        shares_by_trace: For each trace and each finding in it, the share of the samples with the
            finding.
        samples: The number of samples of each trace, two or more.
        resampling: The resamples of the traces.
    """
    counts_by_trace = [[round(share * samples) for share in shares] for shares in shares_by_trace]
    # Among ordered pairs of samples whose first sample has a finding, count those whose second
    # sample has it, too.
    repeated_counts = [
        (sum(count * (count - 1) for count in counts), sum(counts) * (samples - 1))
        for counts in counts_by_trace
    ]
    constant_counts = [(counts.count(samples), len(counts)) for counts in counts_by_trace]
    return [
        scope.number("samples", samples),
        scope.number("judged_traces", len(shares_by_trace)),
        scope.number("sampled_findings", sum(map(len, shares_by_trace))),
        scope.figure("again", share_of_traces(repeated_counts, resampling)),
        scope.figure("always", share_of_traces(constant_counts, resampling)),
    ]


def judge_pair_figures(
    scope: FigureScope, comparisons: Sequence[TraceComparison], resampling: Resampling
) -> list[Figure]:
    """Compute the agreement of two judges on the traces that both have judged.

    Args:
        scope: The scope of the figures.
        comparisons: The comparison of each trace.
        resampling: The resamples of the traces.
    """
    modes_by_trace = [comparison.modes for comparison in comparisons]
    hits_and_cases: dict[str, list[tuple[int, int]]] = {
        "same_verdicts": [(modes.both + modes.neither, modes.compared) for modes in modes_by_trace],
        # Twice the modes that both call present, among all modes that each calls present.
        "same_modes": [
            (2 * modes.both, 2 * modes.both + modes.first + modes.second)
            for modes in modes_by_trace
        ],
        # Among modes that both call present, those with overlapping ranges of spans.
        "same_places": [(modes.meet, modes.meet + modes.apart) for modes in modes_by_trace],
        "same_step": [
            (comparison.same_step is True, comparison.same_step is not None)
            for comparison in comparisons
        ],
    }
    return [
        scope.number("n", len(comparisons)),
        *(
            scope.figure(statistic, share_of_traces(counts, resampling))
            for statistic, counts in hits_and_cases.items()
        ),
    ]


@dataclass(frozen=True, slots=True)
class JudgeLabels:
    """The labels of a judge on the traces that the user may see.

    Attributes:
        name: The name of the judge.
        labels: Its labels by trace id; a judged trace without labels has an empty list.
        side: Its labels and verdicts for the comparison with another judge.
        settings: The settings of its last run by name; empty for a judge without a model.
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
    """Return the judges with these names or beginnings of names.

    They are in the order of their last runs, judges without a run first.

    Args:
        workspace: The workspace.
        texts: Names, or beginnings of names.

    Raises:
        ClickException: No judge has such a name.
    """
    judges = workspace.judges()
    matching_judges: set[str] = set()
    for text in texts:
        matches = judges_beginning(judges, text)
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
        may_see: Returns True if the user may see the labels on a trace, by its id.
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
    """Return the settings of a judge's last run with a model; empty without such a run."""
    all_settings = [run.settings for run in runs if run.judge == name and run.settings is not None]
    if not all_settings:
        return {}
    settings = all_settings[-1]
    examples = {"examples shown": str(len(settings.examples))} if settings.examples else {}
    return {"model": settings.model, **dict(settings.parameters), **examples}


@dataclass(frozen=True, slots=True)
class Consistency:
    """The consistency of judges: its figures, and the facts about them.

    Attributes:
        taxonomy: The taxonomy, as ``id@version``.
        judges: The judges; each is compared with the first judge.
        resampling: The resamples of the traces.
        index: The figures.
    """

    taxonomy: str
    judges: Sequence[JudgeLabels]
    resampling: Resampling
    index: FigureIndex

    def differing_settings(self, judge: JudgeLabels) -> dict[str, list[str | None]]:
        """Return the settings that differ: by name, the first judge's value and this judge's."""
        first = self.judges[0].settings
        return {
            name: [first.get(name), judge.settings.get(name)]
            for name in sorted(first.keys() | judge.settings.keys())
            if first.get(name) != judge.settings.get(name)
        }


def consistency_of(
    workspace: Workspace,
    taxonomy: Taxonomy,
    judges: Sequence[JudgeLabels],
    resampling: Resampling,
) -> Consistency:
    """Compute the consistency of judges.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the labels and verdicts.
        judges: The judges; each is compared with the first judge.
        resampling: The resamples of the traces.
    """
    order_of = SpanOrders(workspace)
    figures: list[Figure] = []
    for judge in judges:
        figures += _judge_figures(judge, taxonomy.ref, resampling)
    for judge in judges[1:]:
        scope = FigureScope("beside", taxonomy.ref, subject=(judge.name,))
        comparisons = _compared_traces(judges[0], judge, taxonomy, order_of)
        figures += judge_pair_figures(scope, comparisons, resampling)
    return Consistency(taxonomy.ref, judges, resampling, FigureIndex(figures))


def _judge_figures(judge: JudgeLabels, taxonomy: str, resampling: Resampling) -> Iterator[Figure]:
    """Yield figures of a judge: agreement of its repeated readings, and share of quotes found."""
    scope = FigureScope("judge", taxonomy, subject=(judge.name,))
    yield scope.number("judged_traces", len(judge.labels))
    if judge.samples > 1:
        # The confidence of a label is the share of readings with the finding.
        shares = [[label.confidence or 0.0 for label in labels] for labels in judge.labels.values()]
        samples_scope = replace(scope, name="samples")
        yield from samples_figures(samples_scope, shares, judge.samples, resampling)
    quote_counts = [
        QuoteCounts.count(label.evidence for label in labels) for labels in judge.labels.values()
    ]
    found_counts = [(counts.found, counts.all) for counts in quote_counts]
    yield scope.figure("quotes_found", share_of_traces(found_counts, resampling))


_PATHS: Final = scope_paths("""
    judge   | judges.{subject}         | no n
    samples | judges.{subject}.samples | no n
    beside  | beside.others.{subject}  | no n
""")
"""The locations of the figures in the document of ``exam --json`` without a set."""


def consistency_json(consistency: Consistency) -> dict[str, Any]:
    """Return the consistency of judges as ``exam --json`` prints it."""
    first, *others = consistency.judges
    document = {
        "exam": None,
        "taxonomy": consistency.taxonomy,
        "version": __version__,
        "bootstrap": consistency.resampling.to_json(),
        "judges": {
            judge.name: {"traces": 0, "settings": dict(judge.settings), "samples": None}
            for judge in consistency.judges
        },
        "beside": {
            "first": first.name,
            "others": {
                judge.name: {"differs": consistency.differing_settings(judge)} for judge in others
            },
        },
    }
    return insert_figures(consistency.index.figures, _PATHS, document)


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

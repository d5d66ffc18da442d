"""The report on failure signatures: all figures with their trends, and their inputs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

import numpy as np

from mast_tui.figures.bootstrap import RESAMPLING, Floats, Resampling
from mast_tui.figures.record import OUTCOMES, Figure, FigureIndex, FigureScope, FigureTable
from mast_tui.figures.signatures.costs import UsageOf
from mast_tui.figures.signatures.groups import GroupInputs, group_figures
from mast_tui.figures.signatures.model import (
    ALL,
    FAILED,
    NO_VALUE,
    OVERALL,
    Flags,
    Rules,
    SignatureInput,
)
from mast_tui.figures.signatures.modes import counts_by_mode
from mast_tui.figures.signatures.onset import first_fatal, onsets
from mast_tui.figures.significance import benjamini_hochberg, cochran_armitage
from mast_tui.gold.model import gold_words
from mast_tui.taxonomy.model import Mode

ORDERED: Final = ("version", "date")
"""The fields with ordered values."""

Unit = Literal["day", "step"]
"""The unit of the distances between groups: days between dates, steps between versions."""


@dataclass(frozen=True, slots=True)
class TrendAxis:
    """The ordered groups along which modes are tested for a trend.

    ``scores`` are the days since the first date, or 0, 1, 2, … for versions.
    """

    groups: tuple[str, ...]
    scores: tuple[int, ...]
    unit: Unit


def trend_axis(inputs: SignatureInput) -> TrendAxis | None:
    """Return the groups in the order of their versions or dates, to test modes for a trend.

    The result is None without an order, or for fewer than two groups.
    """
    if inputs.by not in ORDERED:
        return None
    known_values = [name for name in inputs.group_names if name != NO_VALUE]
    groups = sorted(known_values, key=natural_order)
    if len(groups) < 2:
        return None
    if inputs.by != "date":
        return TrendAxis(tuple(groups), tuple(range(len(groups))), "step")
    days = [date.fromisoformat(name).toordinal() for name in groups]
    return TrendAxis(tuple(groups), tuple(day - days[0] for day in days), "day")


def trend_figures(inputs: SignatureInput, axis: TrendAxis) -> Iterator[Figure]:
    """Yield the trend of each mode along the groups, over the failed traces and over all.

    Args:
        inputs: The labels, traces and groups of the report.
        axis: The groups in their order.
    """
    # A mask of the traces for each group.
    groups = [inputs.group == inputs.group_names.index(name) for name in axis.groups]
    without_group = len(inputs.traces) - sum(int(group.sum()) for group in groups)
    yield FigureScope("trend", inputs.taxonomy_ref).number("no_group", without_group)
    failed = inputs.outcome == FAILED
    yield from _mode_trends(inputs, "trend_failed", [group & failed for group in groups], axis)
    yield from _mode_trends(inputs, "trend_all", groups, axis)


def natural_order(version: str) -> list[tuple[int, int, str]]:
    """Return a sort key of a version, in which numbers are compared by size: 1.9 is before 1.10."""
    pieces = re.findall(r"[0-9]+|[^0-9]+", version)
    return [
        (0, int(piece), "") if piece.isascii() and piece.isdigit() else (1, 0, piece)
        for piece in pieces
    ]


def _mode_trends(
    inputs: SignatureInput, scope_name: str, groups: list[Flags], axis: TrendAxis
) -> Iterator[Figure]:
    """Yield for each mode its rate in each group, the slope of the rate, and a test for a trend.

    The test is the Cochran-Armitage test. ``groups`` has a mask of the traces for each group.
    """
    # Modes × groups.
    counts = list(zip(*(counts_by_mode(inputs.verdicts[group]) for group in groups), strict=True))
    hits = [[group.present for group in mode_counts] for mode_counts in counts]
    cases = [[group.judged for group in mode_counts] for mode_counts in counts]
    tests = [
        cochran_armitage(mode_hits, mode_cases, axis.scores)
        for mode_hits, mode_cases in zip(hits, cases, strict=True)
    ]
    adjusted_p_values = benjamini_hochberg(
        [None if test is None else test.p_value for test in tests]
    )
    for index, mode in enumerate(inputs.modes):
        for name, group in zip(axis.groups, counts[index], strict=True):
            yield group.rate(FigureScope(scope_name, inputs.taxonomy_ref, name, mode.code))
        scope = FigureScope(scope_name, inputs.taxonomy_ref, mode=mode.code)
        slope = None
        reason = "not_judged"
        if sum(n > 0 for n in cases[index]) > 1:
            slope = _weighted_slope(hits[index], cases[index], axis.scores)
            reason = "no_variance" if tests[index] is None else ""
        yield scope.number("slope", slope, reason="" if slope is not None else reason)
        z, p_value, method = tests[index] or (None, None, "")
        yield scope.number("z", z, reason=reason)
        yield scope.number("p_value", p_value, condition=method, reason=reason)
        yield scope.number("p_adjusted", adjusted_p_values[index], reason=reason)


def _weighted_slope(hits: Sequence[int], cases: Sequence[int], scores: Sequence[int]) -> float:
    """Return the slope of the shares ``hits / cases`` over the scores, by weighted least squares.

    The weights are ``cases``.
    """
    hit_counts = np.array(hits)
    case_counts = np.array(cases)
    score_values = np.array(scores)
    mean_score = (case_counts * score_values).sum() / case_counts.sum()
    deviations = score_values - mean_score
    return float((hit_counts * deviations).sum() / (case_counts * deviations**2).sum())


CLASSES: Final = ("fatal", "benign", "both")

LEAST_OUTCOMES: Final = 10
"""The fewest traces with a known outcome to compare failed with successful traces."""

LEAST_TRACES: Final = 5
"""The fewest traces of a group that is shown by default."""


@dataclass(frozen=True, slots=True)
class PublishedClasses:
    """The published class of each mode, by slug: ``fatal``, ``benign`` or ``both``."""

    source: str
    classes: Mapping[str, str]


@cache
def claims_document() -> dict[str, Any]:
    """Return the published classes and claims, from ``published_claims.toml``."""
    path = files("mast_tui.figures.signatures").joinpath("published_claims.toml")
    return tomllib.loads(path.read_text("utf-8"))


def are_claims_about(taxonomy_ref: str) -> bool:
    """Return whether the published claims are about the modes of a taxonomy (``id@version``)."""
    document = claims_document()
    return taxonomy_ref == f"{document['taxonomy']}@{document['version']}"


def published_classes(taxonomy_ref: str) -> PublishedClasses | None:
    """Return the published classes of a taxonomy's modes; None if there are none.

    ``taxonomy_ref`` is ``id@version``.
    """
    document = claims_document()
    if not are_claims_about(taxonomy_ref):
        return None
    classes = {slug: class_name for class_name in CLASSES for slug in document[class_name]}
    return PublishedClasses(document["source"], classes)


@dataclass(frozen=True, slots=True, eq=False)
class SignatureReport:
    """The figures of a report on failure signatures, and their inputs.

    Attributes:
        inputs: The labels, the traces and their groups.
        rules: The limits between classes and shapes.
        resampling: The resamples of the traces.
        published: The classes of the modes in a published study.
        figures: All figures; those of all traces together have the group ``OVERALL``.
        axis: The groups along which there is a trend; None if they have no order.
    """

    inputs: SignatureInput
    rules: Rules
    resampling: Resampling
    published: PublishedClasses | None
    figures: FigureIndex
    axis: TrendAxis | None

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return self.inputs.group_names

    def key(self, name: str) -> str:
        """Return the group name in figures; the single group of ``ALL`` is all traces together."""
        return OVERALL if self.inputs.by == ALL and name == ALL else name

    def group(self, name: str) -> FigureTable:
        """Return the figures of a group that are not about a mode.

        Raises:
            KeyError: There is no such group.
        """
        if name != OVERALL and name not in self.groups:
            raise KeyError(name)
        return self.figures.table("group", group=self.key(name))

    def figures_by_key(self, scope: str, name: str) -> dict[str, FigureTable]:
        """Return the figures of a group in a scope, by mode, category or pair.

        Args:
            scope: The name of the scope.
            name: The name of a group, or ``OVERALL``.
        """
        return self.figures.figures_by_key(scope, group=self.key(name))

    def corrected(self, name: str, scope: str = "prevalence") -> dict[str, FigureTable]:
        """Return the prevalences corrected for a judge's errors, by the code of a mode.

        Args:
            name: The name of a group, or ``OVERALL``.
            scope: ``prevalence`` for unlabelled traces, ``prevalence_overall`` for all traces.
        """
        return self.figures.figures_by_key(
            scope, group=self.key(name), subject=(self.inputs.label_source,)
        )

    def published_class(self, mode: Mode) -> str | None:
        """Return the published class of a mode."""
        return None if self.published is None else self.published.classes.get(mode.slug)

    def places(self, name: str, side: str) -> FigureTable | None:
        """Return the figures on places of failures in traces, all modes together, or None.

        Args:
            name: The name of a group, or ``OVERALL``.
            side: ``failed`` or ``all`` traces.
        """
        table = self.figures.table(f"places_{side}", group=self.key(name))
        return table if table.figures else None


def signature_report(
    inputs: SignatureInput,
    resampling: Resampling = RESAMPLING,
    *,
    rules: Rules | None = None,
    corrected: Iterable[Figure] = (),
    usage_of: UsageOf | None = None,
    scores: Mapping[str, Floats] | None = None,
) -> SignatureReport:
    """Compute the figures of a report on failure signatures, without any NaN.

    Args:
        inputs: The verdicts on traces and their groups.
        resampling: The resamples; none for no intervals by resampling.
        rules: The limits of classes and shapes; None for the defaults of ``Rules``.
        corrected: Prevalences that are corrected for a judge's errors.
        usage_of: Returns the tokens and minutes of a trace; None for no costs.
        scores: Further scores by metric: an array with a score for each trace.
    """
    rules = Rules() if rules is None else rules
    context = GroupInputs(
        inputs=inputs,
        onsets=onsets(inputs),
        fatal=first_fatal(inputs, inputs.places.fatal),
        rules=rules,
        resampling=resampling,
        usage_of=usage_of,
        scores=scores or {},
    )
    all_traces = replace(context, inputs=inputs.as_one_group())
    figures = [*group_figures(all_traces, 0, OVERALL)]
    if inputs.fields:
        for number, name in enumerate(inputs.group_names):
            # Each group has its own seed, so that groups are resampled independently.
            figures += group_figures(
                replace(context, resampling=replace(resampling, seed=resampling.seed + number)),
                number,
                name,
            )
    axis = trend_axis(inputs)
    if axis is not None:
        figures += trend_figures(inputs, axis)
    published = published_classes(inputs.taxonomy_ref)
    index = FigureIndex((*figures, *corrected))
    return SignatureReport(inputs, rules, resampling, published, index, axis)


def large_groups(report: SignatureReport) -> list[str]:
    """Return the groups with ``LEAST_TRACES`` or more traces, which are shown by default.

    The result is empty if there is nothing to compare.
    """
    if not report.inputs.fields or len(report.groups) < 2:
        return []
    large = [name for name in report.groups if report.group(name).count("traces") >= LEAST_TRACES]
    return [] if large == [NO_VALUE] else large


def compares_outcomes(group: FigureTable) -> bool:
    """Return whether enough outcomes are known to compare failed with successful traces."""
    return sum(group.count("traces", side) for side in OUTCOMES) >= LEAST_OUTCOMES


def labels_source(inputs: SignatureInput) -> str:
    """Return a text on the source of a report's labels: the gold, or an annotator and the kind.

    Names are not escaped.
    """
    if inputs.gold is not None:
        return gold_words(inputs.gold)
    name = inputs.label_source
    kind = inputs.label_source_kind
    return name if kind == name else f"{name} ({kind})"

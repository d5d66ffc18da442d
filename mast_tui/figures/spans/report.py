"""Agreement of annotators on places: figures about spans and quotes.

``finding`` compares all places of two annotators, whatever their modes. ``finding_and_naming``
matches only places of the same mode. Both are F1 = 2 · pairs / places: the largest number of
one-to-one pairs of overlapping places, at each degree of overlap and exactly. The overlap is the
intersection over union of spans; a quote is a part of its span. F1 is symmetric: no annotator's
places are the truth.

For each mode, α compares the spans that two annotators or more have read, covered by a mark or not.
α_U compares the spans that all annotators have read. A span that was not read has no answer, even
if the annotator has confirmed to have judged the whole trace.

A mode that is called present without a place has an unknown place. Such a trace × mode is left out
on both sides, as are all traces of a mode that an annotator never places. Their numbers are figures
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any, Final

import numpy as np

from mast_tui.figures.bootstrap import RESAMPLING, Floats, Resampling, ratio, resamples
from mast_tui.figures.jackknife import FEWEST, Scale, Spread
from mast_tui.figures.record import (
    PAIR,
    Figure,
    FigureIndex,
    FigureScope,
    NoInterval,
    Sources,
    Undefined,
    insert_figures,
    renamed_figures,
    scope_paths,
)
from mast_tui.figures.spans.input import LEVELS, SpanInput
from mast_tui.figures.spans.sums import (
    LEFT_OUT,
    MARKS,
    PAIRS,
    PreparedTrace,
    SpanSums,
    coverage_alpha,
    finding_sums,
    never_placed_modes,
    span_sums,
)
from mast_tui.figures.spans.unitizing import alpha_u
from mast_tui.taxonomy.model import Mode

LEAST_OVERLAPPING: Final = 3
"""The fewest traces with overlapping places for a valid interval of α, by simulation."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Some figures that are functions of the same sums.

    Attributes:
        features: The values of each trace, traces × columns.
        compute: Returns the figures (resamples × figures, NaN if undefined) from sums of the
            columns (resamples × columns).
        reasons: The reason for each figure if it is undefined.
        lowest: The least possible value of the figures.
        withheld: For each figure the reason for no interval; None if it may have one.
    """

    features: Floats
    compute: Callable[[Floats], Floats]
    reasons: Sequence[Undefined]
    lowest: float
    withheld: Sequence[NoInterval | None]


def estimated_figures(
    figure_groups: Sequence[Figures], resampling: Resampling
) -> list[list[Figure]]:
    """Return figures with 95 % intervals: by the jackknife for few traces, by BCa for many.

    All figures have the same traces and resamples.

    Args:
        figure_groups: Groups of figures, each computed from the same sums.
        resampling: The resamples of the traces; none for no intervals.

    Returns:
        The figures of each group.
    """
    resampled_values: list[list[Floats]] = [[] for _ in figure_groups]
    # Traces with only zeros add nothing.
    rows_with_values = [np.flatnonzero(figures.features.any(axis=1)) for figures in figure_groups]
    for draw_counts in resamples(len(figure_groups[0].features), resampling):
        weights = draw_counts.astype(np.float64)
        for figures, rows, values in zip(
            figure_groups, rows_with_values, resampled_values, strict=True
        ):
            values.append(figures.compute(weights[:, rows] @ figures.features[rows]))
    return [
        _coefficients_of(figures, np.concatenate(values) if values else None)
        for figures, values in zip(figure_groups, resampled_values, strict=True)
    ]


def _coefficients_of(figures: Figures, resampled: Floats | None) -> list[Figure]:
    """Return the figures of a group, with intervals unless ``resampled`` is None.

    ``resampled`` has the values in the resamples, resamples × figures.
    """
    total = figures.features.sum(axis=0)
    values = figures.compute(total[None, :])[0].tolist()
    # The values without each trace in turn.
    left_out = None if resampled is None else figures.compute(total - figures.features)
    coefficients = []
    columns = zip(values, figures.reasons, figures.withheld, strict=True)
    for column, (value, reason, withheld) in enumerate(columns):
        if np.isnan(value):
            coefficient = Figure(reason=reason)
        elif resampled is None or left_out is None:
            coefficient = Figure(value=value)
        else:
            spread = Spread(resampled[:, column], left_out[:, column])
            coefficient = spread.coefficient(value, Scale(figures.lowest), withheld)
        coefficients.append(coefficient)
    return coefficients


_LEAST_TRACES: Final = 20
"""The fewest traces for a valid interval of α or α_U, by simulation."""

THRESHOLDS: Final = tuple(f"{tenths / LEVELS:.1f}" for tenths in range(1, LEVELS + 1))
"""The names of the degrees of overlap: ``0.1`` to ``1.0``."""


PATHS: Final = scope_paths("""
    spans_traces        | traces
    spans_annotator     | annotators.{subject}
    spans               | all                                            | no n
    spans_finding       | all.finding                                    | no n
    spans_naming        | all.finding_and_naming                         | no n
    spans_mode          | all.modes.{mode}                               | no n
    spans_mode_f1       | all.modes.{mode}.f1                            | no n
    spans_pair          | pairs.{subject}                                | no n
    spans_finding_pair  | pairs.{subject}.finding                        | no n
    spans_naming_pair   | pairs.{subject}.finding_and_naming             | no n
    spans_mode_pair     | pairs.{subject}.modes.{mode}                   | no n
    spans_mode_f1_pair  | pairs.{subject}.modes.{mode}.f1                | no n
""")
"""The paths of the figures in the part ``spans`` of the document."""


@dataclass(frozen=True, slots=True)
class SpanAgreement:
    """The figures on places, with the names that belong to them.

    ``never_placed`` has, by annotator, the codes of modes called present but never placed. It has
    all modes for an annotator without any place.
    """

    taxonomy: str
    annotators: tuple[str, ...]
    pass_label: str
    modes: tuple[Mode, ...]
    resampling: Resampling
    never_placed: Mapping[str, tuple[str, ...]]
    index: FigureIndex

    @property
    def compared(self) -> int:
        """The number of traces with known spans that two annotators or more have finished."""
        return self.index.table("spans_traces").count("compared")

    @property
    def not_at_hand(self) -> int:
        """The number of traces with an unknown order of spans."""
        return self.index.table("spans_traces").count("not_at_hand")

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Every pair of annotators."""
        return tuple(combinations(self.annotators, 2))

    def renamed(self, names: Mapping[str, str]) -> SpanAgreement:
        """Return a copy with new names for annotators, sorted by the new names.

        ``names`` has the new names by the old ones.
        """
        # ``never_placed`` has an entry for every annotator.
        codes_by_name = {names.get(name, name): codes for name, codes in self.never_placed.items()}
        return replace(
            self,
            annotators=tuple(sorted(codes_by_name)),
            never_placed={name: codes_by_name[name] for name in sorted(codes_by_name)},
            index=FigureIndex(renamed_figures(self.index.figures, names)),
        )


def spans_json(spans: SpanAgreement) -> dict[str, Any]:
    """Return the agreement on places as the part ``spans`` of the document of ``agree --json``."""
    pair_keys = [PAIR.join(pair) for pair in spans.pairs]
    document: dict[str, Any] = {
        "pass": spans.pass_label,
        "traces": {},
        "thresholds": list(THRESHOLDS),
        "bootstrap": spans.resampling.to_json(),
        "annotators": {name: {} for name in spans.annotators},
        "all": _empty_group(spans),
        "pairs": {key: _empty_group(spans) for key in pair_keys},
    }
    insert_figures(spans.index.figures, PATHS, document)
    for name, codes in spans.never_placed.items():
        document["annotators"][name]["never_placed"] = list(codes)
    return document


def _empty_group(spans: SpanAgreement) -> dict[str, Any]:
    """Return the keys of a group, all annotators or a pair, with empty values."""
    return {
        "traces": 0,
        "spans": 0,
        "no_places": 0,
        "finding": {},
        "finding_and_naming": {},
        "krippendorff_alpha_u": None,
        "modes": {mode.code: {"slug": mode.slug, "name": mode.name} for mode in spans.modes},
    }


def span_figures(span_input: SpanInput, resampling: Resampling = RESAMPLING) -> SpanAgreement:
    """Compute the agreement of annotators on the places of failures, for all of them and each pair.

    F1 of all annotators is computed from sums over the pairs. α and α_U are computed from the
    places of all annotators at once.

    Args:
        span_input: The marked places, in traces with known spans.
        resampling: The resamples of the traces; none for no intervals.
    """
    unplaced_modes = never_placed_modes(span_input.traces, [mode.slug for mode in span_input.modes])
    prepared_traces = [
        PreparedTrace.from_trace(trace, unplaced_modes) for trace in span_input.traces
    ]
    names = span_input.annotators
    scope = FigureScope("spans_traces", span_input.taxonomy_ref)
    counts = (
        scope.number("compared", len(prepared_traces)),
        scope.number("not_at_hand", span_input.not_at_hand),
        *scope.numbers("examples_left_out", span_input.examples),
        *chain.from_iterable(_annotator_counts(span_input, name) for name in names),
    )
    return SpanAgreement(
        taxonomy=span_input.taxonomy_ref,
        annotators=names,
        pass_label=span_input.pass_label,
        modes=span_input.modes,
        resampling=resampling,
        never_placed={
            name: tuple(
                mode.code
                for mode in span_input.modes
                if mode.slug in unplaced_modes.get(name, frozenset())
            )
            for name in names
        },
        index=FigureIndex((*counts, *_figures_of_groups(span_input, prepared_traces, resampling))),
    )


def _figures_of_groups(
    span_input: SpanInput, traces: Sequence[PreparedTrace], resampling: Resampling
) -> Iterator[Figure]:
    """Yield the figures of all annotators, then those of each pair."""
    slugs = [mode.slug for mode in span_input.modes]
    # No annotator has an empty name, so these findings are 0.
    all_findings = finding_sums(traces, ("", ""), slugs)
    figures_by_pair: dict[tuple[str, str], list[Figure]] = {}
    for pair in combinations(span_input.annotators, 2):
        findings = finding_sums(traces, pair, slugs)
        all_findings += findings
        rows = [row for row, trace in enumerate(traces) if len(trace.marks_of(pair)) == 2]
        group = _Group(span_input, pair, [traces[row] for row in rows], findings[rows])
        figures_by_pair[pair] = list(group.figures(resampling))
    if len(figures_by_pair) == 1:
        # With two annotators, the figures of their pair are those of all annotators.
        yield from chain.from_iterable(figures_by_pair.values())
    else:
        group = _Group(span_input, span_input.annotators, traces, all_findings)
        yield from group.figures(resampling)
    for pair, figures in figures_by_pair.items():
        for figure in figures:
            yield _as_pair_figure(figure, pair)


def _as_pair_figure(figure: Figure, pair: tuple[str, str]) -> Figure:
    """Return a figure with a pair as its subject."""
    sources = figure.sources and replace(figure.sources, subject=pair)
    return replace(figure, scope=f"{figure.scope}_pair", subject=pair, sources=sources)


def _annotator_counts(span_input: SpanInput, name: str) -> Iterator[Figure]:
    """Yield the numbers of traces and places of one annotator in the compared traces.

    - ``reading_recorded``: the traces with a record of the spans that were read.
    - ``whole_trace``: the labels on whole traces, which have no place.
    - ``not_found``: the labels on spans that the trace does not have.
    - ``no_places``: the traces × modes that the annotator called present without a place.
    """
    all_marks = [
        trace.marks_by_name[name] for trace in span_input.traces if name in trace.marks_by_name
    ]
    yield from FigureScope("spans_annotator", span_input.taxonomy_ref, subject=(name,)).counts(
        {
            "traces": len(all_marks),
            "reading_recorded": sum(marks.read is not None for marks in all_marks),
            "places": sum(len(places) for marks in all_marks for places in marks.places.values()),
            "whole_trace": sum(marks.whole_trace for marks in all_marks),
            "not_found": sum(marks.not_found for marks in all_marks),
            "no_places": sum(len(marks.unplaced) for marks in all_marks),
        }
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """All annotators or a pair of them, with the traces that two or more have finished.

    Attributes:
        span_input: The places that all annotators marked.
        names: The annotators of the group.
        traces: The traces that two of them or more have finished.
        findings: The sums of findings by trace, from ``finding_sums``.
    """

    span_input: SpanInput
    names: Sequence[str]
    traces: Sequence[PreparedTrace]
    findings: Floats

    def scope(self, name: str, slugs: Sequence[str], mode: str = "") -> FigureScope:
        """Return a scope for figures of the group.

        Args:
            name: The name of the scope.
            slugs: The slugs of the modes on which its figures rest.
            mode: The code of a mode; empty for figures over all modes.
        """
        return FigureScope(
            name, self.span_input.taxonomy_ref, mode=mode, sources=Sources("spans", tuple(slugs))
        )

    def figures(self, resampling: Resampling) -> Iterator[Figure]:
        """Yield F1, α and α_U of all modes and of each mode, with counts.

        The counts of a mode are:

        - ``traces``: the traces in which two annotators or more gave an answer on the mode;
        - ``spans``: the spans on which α is computed; ``spans_left_out``: the other spans;
        - ``units``: the places for α_U; ``positions``: the spans that all have read;
        - ``no_places``: the traces in which an annotator called it present without a place.
        """
        slugs = [mode.slug for mode in self.span_input.modes]
        sums = span_sums(self.traces, self.names, slugs)
        definitions = (
            self._f1_definition(sums),
            self._alpha_definition(sums),
            self._alpha_u_definition(sums),
        )
        f1, alphas, alphas_u = estimated_figures(definitions, resampling)
        all_spans = sum(trace.spans for trace in self.traces)
        total_scope = self.scope("spans", slugs)
        yield from total_scope.counts(
            {
                "traces": len(self.traces),
                "spans": all_spans,
                "no_places": sum(len(trace.unplaced(self.names)) for trace in self.traces),
            }
        )
        # The blocks of columns for F1: finding any mode, finding and naming, then each mode. F1 has
        # a value for each level of overlap.
        blocks = _with_naming(self.findings.sum(axis=0, keepdims=True))[0]
        f1_by_block = [f1[start : start + LEVELS] for start in range(0, len(f1), LEVELS)]
        yield from _f1_figures(self.scope("spans_finding", slugs), blocks[0], f1_by_block[0])
        yield from _f1_figures(self.scope("spans_naming", slugs), blocks[1], f1_by_block[1])
        positions = sum(units.positions for units in sums.units)
        yield total_scope.figure("krippendorff_alpha_u", alphas_u[-1], n=positions)
        compared_counts = sums.coverage[:, :, 0].sum(axis=0)
        for mode_index, mode in enumerate(self.span_input.modes):
            scope = self.scope("spans_mode", [mode.slug], mode.code)
            unplaced = sum(mode.slug in trace.unplaced(self.names) for trace in self.traces)
            yield from scope.counts({"traces": sums.answered[mode_index], "no_places": unplaced})
            f1_scope = self.scope("spans_mode_f1", [mode.slug], mode.code)
            yield from _f1_figures(f1_scope, blocks[mode_index + 2], f1_by_block[mode_index + 2])
            span_count = int(compared_counts[mode_index])
            yield from scope.counts({"spans": span_count, "spans_left_out": all_spans - span_count})
            yield scope.figure("krippendorff_alpha", alphas[mode_index], n=span_count)
            units = sums.units[mode_index]
            yield from scope.counts({"units": units.units, "positions": units.positions})
            yield scope.figure("krippendorff_alpha_u", alphas_u[mode_index], n=units.positions)

    def _f1_definition(self, sums: SpanSums) -> Figures:
        """Define F1 of finding, of finding and naming, and of each mode, by level of overlap."""
        # Over all modes, as many traces are compared as for the mode with most answers.
        most_answered = max(sums.answered, default=0)
        compared = [most_answered, most_answered, *sums.answered]
        row_shape = self.findings.shape[1:]
        return Figures(
            _rows_of_sums(self.findings),
            lambda summed: _rows_of_sums(
                _f1_by_overlap(_with_naming(summed.reshape(-1, *row_shape)))
            ),
            [self._undefined_reason(self._rater_count(), n) for n in compared for _ in THRESHOLDS],
            lowest=0.0,
            withheld=[self._withheld_reason(FEWEST)] * (len(compared) * LEVELS),
        )

    def _alpha_definition(self, sums: SpanSums) -> Figures:
        """Define α of each mode, which compares annotators span by span."""
        row_shape = sums.coverage.shape[1:]
        span_counts = sums.coverage[:, :, 0].sum(axis=0)
        return Figures(
            _rows_of_sums(sums.coverage),
            lambda summed: coverage_alpha(summed.reshape(-1, *row_shape)),
            [
                self._undefined_reason(raters, n)
                for raters, n in zip(sums.rated_by, span_counts, strict=True)
            ],
            lowest=-1.0,
            withheld=self._withheld_by_mode(),
        )

    def _alpha_u_definition(self, sums: SpanSums) -> Figures:
        """Define α_U of each mode, then α_U over all modes."""
        mode_boundaries = np.cumsum([units.features.shape[1] for units in sums.units])[:-1]

        def values_of(summed: Floats) -> Floats:
            sums_by_mode = np.split(summed, mode_boundaries, axis=1)
            disagreements = [
                units.disagreement(mode_sums)
                for units, mode_sums in zip(sums.units, sums_by_mode, strict=True)
            ]
            by_mode = [alpha_u([disagreement]) for disagreement in disagreements]
            return np.stack([*by_mode, alpha_u(disagreements)], axis=1)

        position_counts = [units.positions for units in sums.units]
        reasons = [
            self._undefined_reason(raters, n)
            for raters, n in zip(sums.rated_by, position_counts, strict=True)
        ]
        total_reason = self._undefined_reason(max(sums.rated_by), sum(position_counts))
        return Figures(
            np.hstack([units.features for units in sums.units]),
            values_of,
            [*reasons, total_reason],
            lowest=-1.0,
            withheld=[*self._withheld_by_mode(), self._withheld_reason(_LEAST_TRACES)],
        )

    def _withheld_reason(self, needed_traces: int) -> NoInterval | None:
        """Return the reason for no interval with too few traces, or None."""
        return NoInterval("few_traces", needed_traces) if len(self.traces) < needed_traces else None

    def _withheld_by_mode(self) -> list[NoInterval | None]:
        """Return the reason why α and α_U of each mode have no interval, or None."""
        few_traces = self._withheld_reason(_LEAST_TRACES)
        overlapping_traces = (self.findings[:, 1:, PAIRS] > 0).sum(axis=0).tolist()
        return [
            few_traces
            or (NoInterval("few_places", LEAST_OVERLAPPING) if n < LEAST_OVERLAPPING else None)
            for n in overlapping_traces
        ]

    def _rater_count(self) -> int:
        return sum(self.span_input.finished.get(name, 0) > 0 for name in self.names)

    def _undefined_reason(self, raters: int, compared: float) -> Undefined:
        """Return the reason why a figure is undefined, from its raters and the units compared."""
        if len(self.names) < 2 or raters == 1 or (not self.traces and self._rater_count() < 2):
            return "single_rater"
        return "no_variance" if compared else "no_overlap"


def _rows_of_sums(sums: Floats) -> Floats:
    """Return the sums as a table, with one row for each trace or resample."""
    return sums.reshape(len(sums), int(np.prod(sums.shape[1:])))


def _with_naming(blocks: Floats) -> Floats:
    """Insert the sums of finding and naming, over all modes, in second place."""
    return np.insert(blocks, 1, blocks[:, 1:].sum(axis=1), axis=1)


def _f1_by_overlap(blocks: Floats) -> Floats:
    """Return F1 at each level of overlap from sums of findings; NaN without places."""
    return ratio(2 * blocks[..., PAIRS:], blocks[..., MARKS, None])


def _f1_figures(scope: FigureScope, block: Floats, figures: Sequence[Figure]) -> Iterator[Figure]:
    """Yield F1 of places for an exact match, and for an overlap of at least each threshold.

    ``places`` counts the compared places over all pairs of annotators. ``places_left_out`` counts
    the places on which the other annotator of the pair has no answer. ``block`` has these counts;
    ``figures`` has F1 at each of ``THRESHOLDS``.
    """
    place_count = int(block[MARKS])
    yield from scope.counts({"places": place_count, "places_left_out": int(block[LEFT_OUT])})
    # The last threshold is an overlap of 100 %.
    yield scope.figure("f1_exact", figures[-1], n=place_count)
    for threshold, figure in zip(THRESHOLDS, figures, strict=True):
        yield scope.figure("f1_overlap", figure, condition=threshold, n=place_count)

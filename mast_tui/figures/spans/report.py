"""Agreement of annotators on places: figures about spans and quotes.

Finding is told apart from naming. ``finding`` takes all places of an annotator as one set,
whatever their modes; ``finding_and_naming`` matches places of the same mode only. Both are
F1 = 2 · pairs / places, with as many pairs of overlapping places as can be made one to one, at
each degree of overlap (intersection over union of spans, a quote being its part of one span) and
exactly. F1 is symmetric: nobody's places are the truth.

Per mode there are α over the spans that two annotators or more have read (covered by a mark of
the mode or not) and α_U over the spans that all of them have read. A span that somebody has not
read says nothing about them: unseen is not negative, and that holds also for who has finished
with 'I have judged the whole trace', which answers for modes and not for spans. Who calls a mode
present and marks no place says nothing of where it shows: that trace × mode is left out on both
sides and counted, and so are all traces of a mode of which somebody never says where it shows.
What is left out is said beside each figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import (
    Coefficient,
    Undefined,
    Withheld,
)
from mast_tui.figures.bootstrap import ROUNDS, BootstrapJson, bootstrap_json, ratio, resamples
from mast_tui.figures.jackknife import FEWEST, Scale, spread_coefficient
from mast_tui.figures.record import (
    PAIR,
    Figure,
    FigureIndex,
    FigureScope,
    Sources,
    nested_json,
    renamed,
    scope_paths,
)
from mast_tui.figures.spans.input import LEVELS, SpanInput
from mast_tui.figures.spans.sums import (
    LEFT_OUT,
    MARKS,
    PAIRS,
    LookedTrace,
    SpanSums,
    coverage_alpha,
    finding_sums,
    never_placed,
    span_sums,
)
from mast_tui.figures.spans.unitizing import alpha_u

Floats = NDArray[np.float64]

LEAST_MEETS: Final = 3
"""Traces in which places of two meet, from which on an interval of α holds, by simulation."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Some figures that are functions of the same sums.

    ``features`` are traces × columns. ``compute`` returns figures (resamples × figures, NaN where
    undefined) from sums of the columns (resamples × columns). ``reasons`` tells for each figure
    why it may be undefined, ``lowest`` is the least value of their scale. ``needs`` is the number
    of traces that the interval of each takes. ``meets`` counts the traces in which places of two
    meet; None if an interval does not depend on them.
    """

    features: Floats
    compute: Callable[[Floats], Floats]
    reasons: Sequence[Undefined]
    lowest: float
    needs: Sequence[int]
    meets: Sequence[int | None]


def estimated(several: Sequence[Figures], rounds: int, seed: int) -> list[list[Coefficient]]:
    """Return figures with 95 % intervals: by the jackknife of few traces, of many by BCa.

    All have the same traces, and each resample serves all of them. There is no interval without
    rounds, nor where every resample gives the same figure: resamples of equal traces show nothing
    of other possible traces. Traces of which all columns are zero cost nothing.

    Args:
        several: The figures of several sums.
        rounds: The number of resamples of the traces.
        seed: The seed of the resamples.
    """
    drawn: list[list[Floats]] = [[] for _ in several]
    telling = [np.flatnonzero(figures.features.any(axis=1)) for figures in several]
    for block in resamples(len(several[0].features), rounds, seed):
        weights = block.astype(np.float64)
        for figures, rows, values in zip(several, telling, drawn, strict=True):
            values.append(figures.compute(weights[:, rows] @ figures.features[rows]))
    return [
        _coefficients(figures, np.concatenate(values) if values else None)
        for figures, values in zip(several, drawn, strict=True)
    ]


def _coefficients(figures: Figures, resampled: Floats | None) -> list[Coefficient]:
    """Return the figures with intervals from their values in the resamples."""
    total = figures.features.sum(axis=0)
    values = figures.compute(total[None, :])[0]
    left_out = None if resampled is None else figures.compute(total - figures.features)
    coefficients = []
    of_each = zip(values, figures.reasons, figures.needs, figures.meets, strict=True)
    for number, (value, reason, needs, meets) in enumerate(of_each):
        if np.isnan(value):
            coefficients.append(Coefficient(undefined=reason))
        elif resampled is None or left_out is None:
            coefficients.append(Coefficient(float(value)))
        elif (withheld := _withheld(len(figures.features), needs, meets)) is not None:
            coefficients.append(Coefficient(float(value), withheld=withheld))
        else:
            coefficients.append(
                spread_coefficient(
                    float(value), resampled[:, number], left_out[:, number], Scale(figures.lowest)
                )
            )
    return coefficients


def _withheld(traces: int, needs: int, meets: int | None) -> tuple[Withheld, int] | None:
    if traces < needs:
        return "few_traces", needs
    return ("few_places", LEAST_MEETS) if meets is not None and meets < LEAST_MEETS else None


_LEAST_TRACES: Final = 20
"""Traces from which on an interval of α and α_U holds, by simulation."""

THRESHOLDS: Final = tuple(f"{tenths / LEVELS:.1f}" for tenths in range(1, LEVELS + 1))
"""The degrees of overlap, as they are called in the report: ``0.1`` to ``1.0``."""


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
"""The places of the figures in the part ``spans`` of the document."""


@dataclass(frozen=True, slots=True)
class SpanAgreement:
    """The figures on places, and all that is no figure.

    ``modes`` are (slug, code, name). ``never_placed`` has, by annotator, the codes of the modes
    that they call present but never place; all modes for an annotator without any place.
    """

    taxonomy: str
    annotators: tuple[str, ...]
    pass_label: str
    modes: tuple[tuple[str, str, str], ...]
    bootstrap: BootstrapJson
    never_placed: Mapping[str, tuple[str, ...]]
    index: FigureIndex

    @property
    def compared(self) -> int:
        """The traces that two annotators or more have finished, and whose spans are known."""
        return self.index.table("spans_traces").count("compared")

    @property
    def not_at_hand(self) -> int:
        """The traces of which the order of spans is not known."""
        return self.index.table("spans_traces").count("not_at_hand")

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Every two annotators."""
        return tuple(combinations(self.annotators, 2))

    def renamed(self, names: Mapping[str, str]) -> SpanAgreement:
        """Return the same with other names for annotators, in the order of the new names."""
        new = {names.get(name, name): codes for name, codes in self.never_placed.items()}
        return replace(
            self,
            annotators=tuple(sorted(new)),
            never_placed={name: new[name] for name in sorted(new)},
            index=FigureIndex(renamed(self.index.figures, names)),
        )


def spans_json(spans: SpanAgreement) -> dict[str, Any]:
    """Return the part ``spans`` of the document of ``agree --json``; it never holds NaN."""
    pairs = [PAIR.join(pair) for pair in spans.pairs]
    document: dict[str, Any] = {
        "pass": spans.pass_label,
        "traces": {},
        "thresholds": list(THRESHOLDS),
        "bootstrap": spans.bootstrap,
        "annotators": {name: {} for name in spans.annotators},
        "all": _group_json(spans),
        "pairs": {key: _group_json(spans) for key in pairs},
    }
    nested_json(spans.index.figures, PATHS, document)
    for name, codes in spans.never_placed.items():
        document["annotators"][name]["never_placed"] = list(codes)
    return document


def _group_json(spans: SpanAgreement) -> dict[str, Any]:
    return {
        "traces": 0,
        "spans": 0,
        "no_places": 0,
        "finding": {},
        "finding_and_naming": {},
        "krippendorff_alpha_u": None,
        "modes": {code: {"slug": slug, "name": name} for slug, code, name in spans.modes},
    }


def span_figures(span_input: SpanInput, *, rounds: int = ROUNDS, seed: int = 0) -> SpanAgreement:
    """Compute the agreement on places.

    The figures of all sum F1 over the pairs of annotators and have α and α_U of all of them at
    once; those of pairs are the same for each two. F1 is undefined where neither marked
    anything (``no_variance``), where they share no trace or in none two of them said where modes
    show (``no_overlap``), and for a single annotator (``single_rater``).

    Args:
        span_input: The places that the annotators marked, in traces whose spans are known.
        rounds: How many resamples of the traces. Without any, and where all of them are alike,
            there are no intervals.
        seed: What the resamples are drawn from.
    """
    slugs = [slug for slug, _, _ in span_input.modes]
    silent = never_placed(span_input.traces, slugs)
    looked = [LookedTrace.from_readings(trace, silent) for trace in span_input.traces]
    names = span_input.annotators
    sums_by_pair = {pair: finding_sums(looked, pair, slugs) for pair in combinations(names, 2)}

    def figures() -> Iterator[Figure]:
        scope = FigureScope("spans_traces", span_input.taxonomy_ref)
        yield scope.number("compared", len(looked))
        yield scope.number("not_at_hand", span_input.not_at_hand)
        yield from scope.numbers("examples_left_out", span_input.examples or {})
        for name in names:
            yield from _annotator_counts(span_input, name)
        of_pairs: list[Figure] = []
        for pair, sums in sums_by_pair.items():
            both = [row for row, trace in enumerate(looked) if len(trace.looks_of(pair)) == 2]
            group = _Group(span_input, pair, [looked[row] for row in both], sums[both])
            of_pairs += [_of_pair(figure, pair) for figure in group.figures(rounds, seed)]
        if len(sums_by_pair) == 1:
            # Of two, all is the pair.
            yield from map(_of_all, of_pairs)
        else:
            nothing = finding_sums(looked, ("", ""), slugs)
            every = _Group(span_input, names, looked, sum(sums_by_pair.values(), start=nothing))
            yield from every.figures(rounds, seed)
        yield from of_pairs

    return SpanAgreement(
        taxonomy=span_input.taxonomy_ref,
        annotators=names,
        pass_label=span_input.pass_label,
        modes=span_input.modes,
        bootstrap=bootstrap_json(rounds, seed),
        never_placed={
            name: tuple(
                code for slug, code, _ in span_input.modes if slug in silent.get(name, frozenset())
            )
            for name in names
        },
        index=FigureIndex(figures()),
    )


def _of_pair(figure: Figure, pair: tuple[str, str]) -> Figure:
    sources = figure.sources and replace(figure.sources, subject=pair)
    return replace(figure, scope=f"{figure.scope}_pair", subject=pair, sources=sources)


def _of_all(figure: Figure) -> Figure:
    sources = figure.sources and replace(figure.sources, subject=())
    scope = figure.scope.removesuffix("_pair")
    return replace(figure, scope=scope, subject=(), sources=sources)


def _annotator_counts(span_input: SpanInput, name: str) -> Iterator[Figure]:
    """Yield the numbers of traces and places of one annotator in the compared traces.

    In ``reading_recorded`` of the ``traces`` the read spans are known; the others count as read
    to the end. ``whole_trace`` counts labels without places, ``not_found`` labels on spans that
    the trace does not have, and ``no_places`` the traces × modes that the annotator called
    present without a place.
    """
    readings = [trace.readings[name] for trace in span_input.traces if name in trace.readings]
    counts = {
        "traces": len(readings),
        "reading_recorded": sum(reading.read is not None for reading in readings),
        "places": sum(len(places) for reading in readings for places in reading.places.values()),
        "whole_trace": sum(reading.whole_trace for reading in readings),
        "not_found": sum(reading.not_found for reading in readings),
        "no_places": sum(len(reading.unplaced) for reading in readings),
    }
    scope = FigureScope("spans_annotator", span_input.taxonomy_ref, subject=(name,))
    for statistic, count in counts.items():
        yield scope.number(statistic, count)


@dataclass(frozen=True, slots=True)
class _Group:
    """Some annotators, the traces in which two of them or more can be compared, what they found."""

    span_input: SpanInput
    names: Sequence[str]
    traces: Sequence[LookedTrace]
    findings: Floats

    def scope(self, name: str, slugs: Sequence[str], mode: str = "") -> FigureScope:
        """Return a scope of all of them.

        Args:
            name: The name of the scope.
            slugs: The modes whose traces its figures rest on.
            mode: The code of the mode.
        """
        sources = Sources("spans", tuple(slugs))
        return FigureScope(name, self.span_input.taxonomy_ref, mode=mode, sources=sources)

    def figures(self, rounds: int, seed: int) -> Iterator[Figure]:
        """Yield their figures, as those of all annotators.

        Per mode: ``traces`` are those in which two annotators or more gave an answer on it,
        ``spans`` the units of α, and ``spans_left_out`` the other spans of the traces. α_U rests on
        ``units`` marked by any annotator on ``positions``, the spans that all have read. In
        ``no_places`` traces an annotator called it present without saying where; over all modes
        these are traces × modes.

        Args:
            rounds: How many resamples of the traces.
            seed: What they are drawn from.
        """
        slugs = [slug for slug, _, _ in self.span_input.modes]
        sums = span_sums(self.traces, self.names, slugs)
        each = (self._f1(sums), self._alpha(sums), self._alpha_u(sums))
        f1, alphas, alphas_u = estimated(each, rounds, seed)
        spans = sum(trace.spans for trace in self.traces)
        every = self.scope("spans", slugs)
        yield every.number("traces", len(self.traces))
        yield every.number("spans", spans)
        without_place = sum(len(trace.unplaced(self.names)) for trace in self.traces)
        yield every.number("no_places", without_place)
        blocks = list(_with_naming(self.findings.sum(axis=0)[None])[0])
        by_block = [f1[number * LEVELS : (number + 1) * LEVELS] for number in range(len(blocks))]
        yield from _f1_figures(self.scope("spans_finding", slugs), blocks[0], by_block[0])
        yield from _f1_figures(self.scope("spans_naming", slugs), blocks[1], by_block[1])
        positions = sum(units.positions for units in sums.units)
        yield every.estimate("krippendorff_alpha_u", alphas_u[-1], n=positions)
        compared = sums.coverage[:, :, 0].sum(axis=0)
        for number, (slug, code, _) in enumerate(self.span_input.modes):
            scope = self.scope("spans_mode", [slug], code)
            yield scope.number("traces", sums.answered[number])
            unplaced = sum(slug in trace.unplaced(self.names) for trace in self.traces)
            yield scope.number("no_places", unplaced)
            of_f1 = self.scope("spans_mode_f1", [slug], code)
            yield from _f1_figures(of_f1, blocks[number + 2], by_block[number + 2])
            n = int(compared[number])
            yield scope.number("spans", n)
            yield scope.number("spans_left_out", spans - n)
            yield scope.estimate("krippendorff_alpha", alphas[number], n=n)
            units = sums.units[number]
            yield scope.number("units", units.units)
            yield scope.number("positions", units.positions)
            yield scope.estimate("krippendorff_alpha_u", alphas_u[number], n=units.positions)

    def _f1(self, sums: SpanSums) -> Figures:
        """Return F1 of finding, of finding and naming, and of each mode, by degree of overlap."""
        # Where nobody says where anything shows there is nothing to find either.
        at_all = max(sums.answered, default=0)
        compared = [at_all, at_all, *sums.answered]
        columns = self.findings.shape[1:]
        return Figures(
            _flat(self.findings),
            lambda summed: _flat(_f1(_with_naming(summed.reshape(-1, *columns)))),
            [self._reason(self._raters(), n) for n in compared for _ in THRESHOLDS],
            lowest=0.0,
            needs=[FEWEST] * (len(compared) * LEVELS),
            meets=[None] * (len(compared) * LEVELS),
        )

    def _alpha(self, sums: SpanSums) -> Figures:
        """Return α over spans of each mode."""
        columns = sums.coverage.shape[1:]
        compared = sums.coverage[:, :, 0].sum(axis=0)
        return Figures(
            _flat(sums.coverage),
            lambda summed: coverage_alpha(summed.reshape(-1, *columns)),
            [self._reason(raters, n) for raters, n in zip(sums.rated_by, compared, strict=True)],
            lowest=-1.0,
            needs=[_LEAST_TRACES] * len(sums.rated_by),
            meets=self._meets(),
        )

    def _alpha_u(self, sums: SpanSums) -> Figures:
        """Return α_U of each mode, and at the end over all."""
        ends = np.cumsum([units.features.shape[1] for units in sums.units])[:-1]

        def figures(summed: Floats) -> Floats:
            split = np.split(summed, ends, axis=1)
            modes = [
                units.disagreement(part) for units, part in zip(sums.units, split, strict=True)
            ]
            return np.stack([*(alpha_u([mode]) for mode in modes), alpha_u(modes)], axis=1)

        compared = [units.positions for units in sums.units]
        reasons = [
            self._reason(raters, n) for raters, n in zip(sums.rated_by, compared, strict=True)
        ]
        over_all = self._reason(max(sums.rated_by), sum(compared))
        return Figures(
            np.hstack([units.features for units in sums.units]),
            figures,
            [*reasons, over_all],
            lowest=-1.0,
            needs=[_LEAST_TRACES] * (len(reasons) + 1),
            meets=[*self._meets(), None],
        )

    def _meets(self) -> list[int]:
        """Return in how many traces places of the same mode meet, by mode."""
        return [int(n) for n in (self.findings[:, 1:, PAIRS] > 0).sum(axis=0)]

    def _raters(self) -> int:
        return sum(self.span_input.finished.get(name, 0) > 0 for name in self.names)

    def _reason(self, raters: int, compared: float) -> Undefined:
        """Return why a figure is undefined, from its raters and the units compared."""
        if len(self.names) < 2 or raters == 1 or (not self.traces and self._raters() < 2):
            return "single_rater"
        return "no_variance" if compared else "no_overlap"


def _flat(sums: Floats) -> Floats:
    """Return the sums with one row for each trace or resample, of which there may be none."""
    return sums.reshape(len(sums), int(np.prod(sums.shape[1:])))


def _with_naming(blocks: Floats) -> Floats:
    """Insert the sums of finding and naming, over all modes, in second place."""
    return np.insert(blocks, 1, blocks[:, 1:].sum(axis=1), axis=1)


def _f1(blocks: Floats) -> Floats:
    """Return F1 at each level of overlap from sums of findings, NaN where nothing was marked."""
    return ratio(2 * blocks[..., PAIRS:], blocks[..., MARKS, None])


def _f1_figures(
    scope: FigureScope, block: Floats, figures: Sequence[Coefficient]
) -> Iterator[Figure]:
    """Yield F1 of places, exact and by overlap of at least each of the thresholds.

    ``places`` are those of both sides that were compared, over all pairs of annotators;
    ``places_left_out`` those on whose mode or spans the other side has no answer.
    """
    places = int(block[MARKS])
    yield scope.number("places", places)
    yield scope.number("places_left_out", int(block[LEFT_OUT]))
    yield scope.estimate("f1_exact", figures[-1], n=places)
    for threshold, figure in zip(THRESHOLDS, figures, strict=True):
        yield scope.estimate("f1_overlap", figure, condition=threshold, n=places)

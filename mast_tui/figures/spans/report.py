"""Agreement of annotators on places: the part of the report of ``agree`` about spans.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import (
    Coefficient,
    CoefficientJson,
    Undefined,
    Withheld,
)
from mast_tui.figures.bootstrap import ROUNDS, BootstrapJson, bootstrap_json, ratio, resamples
from mast_tui.figures.jackknife import FEWEST, Scale, spread_coefficient
from mast_tui.figures.spans.input import LEVELS, SpanInput
from mast_tui.figures.spans.sums import (
    LEFT_OUT,
    MARKS,
    PAIRS,
    Looked,
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

    ``features`` are traces × columns, ``of`` makes figures (resamples × figures, NaN where
    undefined) of sums of the columns (resamples × columns), and ``reasons`` says for each figure
    why it is undefined where it is. ``lowest`` is where their scale begins. ``needs`` are how many
    traces each takes for an interval, and ``meets`` in how many places of two meet; an interval
    takes some of these, None where it does not.
    """

    features: Floats
    of: Callable[[Floats], Floats]
    reasons: Sequence[Undefined]
    lowest: float
    needs: Sequence[int]
    meets: Sequence[int | None]


def estimated(several: Sequence[Figures], rounds: int, seed: int) -> list[list[Coefficient]]:
    """The figures of each with a 95 % interval: by the jackknife of few traces, of many by BCa.

    The latter is from ``rounds`` resamples of the traces. All have the same traces, and each
    resample serves all of them. There is no interval without rounds, nor where every resample
    gives the same figure: resampling what is all alike tells nothing of what else there may be.
    Traces of which all columns are zero cost nothing.
    """
    drawn: list[list[Floats]] = [[] for _ in several]
    telling = [np.flatnonzero(one.features.any(axis=1)) for one in several]
    for block in resamples(len(several[0].features), rounds, seed):
        weights = block.astype(np.float64)
        for figures, rows, kept in zip(several, telling, drawn, strict=True):
            kept.append(figures.of(weights[:, rows] @ figures.features[rows]))
    return [
        _coefficients(figures, np.concatenate(kept) if kept else None)
        for figures, kept in zip(several, drawn, strict=True)
    ]


def _coefficients(figures: Figures, resampled: Floats | None) -> list[Coefficient]:
    """The figures themselves, with intervals from what they are in the resamples."""
    total = figures.features.sum(axis=0)
    values = figures.of(total[None, :])[0]
    left_out = None if resampled is None else figures.of(total - figures.features)
    found = []
    of_each = zip(values, figures.reasons, figures.needs, figures.meets, strict=True)
    for place, (value, reason, needs, meets) in enumerate(of_each):
        if np.isnan(value):
            found.append(Coefficient(undefined=reason))
        elif resampled is None or left_out is None:
            found.append(Coefficient(float(value)))
        elif (withheld := _withheld(len(figures.features), needs, meets)) is not None:
            found.append(Coefficient(float(value), withheld=withheld))
        else:
            found.append(
                spread_coefficient(
                    float(value), resampled[:, place], left_out[:, place], Scale(figures.lowest)
                )
            )
    return found


def _withheld(traces: int, needs: int, meets: int | None) -> tuple[Withheld, int] | None:
    if traces < needs:
        return "few_traces", needs
    return ("few_places", LEAST_MEETS) if meets is not None and meets < LEAST_MEETS else None


_LEAST_TRACES: Final = 20
"""Traces from which on an interval of α and α_U holds, by simulation."""

THRESHOLDS: Final = tuple(f"{tenths / LEVELS:.1f}" for tenths in range(1, LEVELS + 1))
"""The degrees of overlap, as they are called in the report: ``0.1`` to ``1.0``."""


class F1Json(TypedDict):
    """F1 of places, exact and by overlap of at least each of the thresholds.

    ``places`` are those of both sides that were compared, over all pairs of annotators;
    ``left_out`` those on whose mode or spans the other side has said nothing.
    """

    places: int
    left_out: int
    exact: CoefficientJson
    overlap: dict[str, CoefficientJson]


class ModeSpansJson(TypedDict):
    """The figures of one mode.

    ``traces`` are those in which two annotators or more gave an answer on it, ``spans`` the units
    of α, and ``spans_left_out`` the other spans of the traces. α_U rests on ``units`` marked by
    anybody on ``positions``, the spans that all have read. In ``no_places`` traces somebody called
    it present without saying where.
    """

    slug: str
    name: str
    traces: int
    no_places: int
    f1: F1Json
    spans: int
    spans_left_out: int
    krippendorff_alpha: CoefficientJson
    units: int
    positions: int
    krippendorff_alpha_u: CoefficientJson


class SpanFiguresJson(TypedDict):
    """The figures of two annotators, or of all; α_U here is over all modes.

    ``no_places`` counts the traces × modes that one of them called present without saying where.
    """

    traces: int
    spans: int
    no_places: int
    finding: F1Json
    finding_and_naming: F1Json
    krippendorff_alpha_u: CoefficientJson
    modes: dict[str, ModeSpansJson]


class AnnotatorSpansJson(TypedDict):
    """What the figures rest on: of one annotator, in the traces that are compared.

    In ``reading_recorded`` of the ``traces`` it is known which spans were read; the others count
    as read from end to end. ``whole_trace`` labels are no places, ``not_found`` ones stand on
    spans that the trace does not have. ``no_places`` counts the traces × modes that they called
    present without saying where, and ``never_placed`` has the codes of the modes of which they
    never say where, though they call them present; with no place at all, of every mode.
    """

    traces: int
    reading_recorded: int
    places: int
    whole_trace: int
    not_found: int
    no_places: int
    never_placed: list[str]


class ComparedJson(TypedDict):
    """The traces that two annotators or more have finished, and those of them without a file."""

    compared: int
    not_at_hand: int
    examples_left_out: NotRequired[dict[str, int]]


# The functional form, since 'pass' is a word of the language.
SpanReport = TypedDict(
    "SpanReport",
    {
        "pass": str,
        "traces": ComparedJson,
        "thresholds": list[str],
        "bootstrap": BootstrapJson,
        "annotators": dict[str, AnnotatorSpansJson],
        "all": SpanFiguresJson,
        "pairs": dict[str, SpanFiguresJson],
    },
)


def span_report(given: SpanInput, *, rounds: int = ROUNDS, seed: int = 0) -> SpanReport:
    """Make the report on spans, ready for any JSON writer; it never holds NaN.

    ``all`` sums F1 over the pairs of annotators and has α and α_U of all of them at once;
    ``pairs`` has the same for each two, under ``A|B``. F1 is undefined where neither marked
    anything (``no_variance``), where they share no trace or in none two of them said where modes
    show (``no_overlap``), and for a single annotator (``single_rater``).

    Args:
        given: Who marked what where, in traces whose spans are known.
        rounds: How many resamples of the traces. Without any, and where all of them are alike,
            intervals are null.
        seed: What the resamples are drawn from.
    """
    slugs = [slug for slug, _, _ in given.modes]
    silent = never_placed(given.traces, slugs)
    looked = [Looked.at(trace, silent) for trace in given.traces]
    names = given.annotators
    found = {pair: finding_sums(looked, pair, slugs) for pair in combinations(names, 2)}
    nothing = finding_sums(looked, ("", ""), slugs)
    everybody = _Group(given, names, looked, sum(found.values(), start=nothing))
    pairs: dict[str, SpanFiguresJson] = {}
    for pair, sums in found.items():
        both = [row for row, trace in enumerate(looked) if len(trace.by(pair)) == 2]
        group = _Group(given, pair, [looked[row] for row in both], sums[both])
        pairs["|".join(pair)] = group.figures(rounds, seed)
    traces: ComparedJson = {"compared": len(looked), "not_at_hand": given.not_at_hand}
    if given.examples:
        traces["examples_left_out"] = dict(given.examples)
    return {
        "pass": given.pass_label,
        "traces": traces,
        "thresholds": list(THRESHOLDS),
        "bootstrap": bootstrap_json(rounds, seed),
        "annotators": {
            name: _rests_on(given, name, silent.get(name, frozenset())) for name in names
        },
        # Of two, all is the pair.
        "all": next(iter(pairs.values())) if len(pairs) == 1 else everybody.figures(rounds, seed),
        "pairs": pairs,
    }


def _rests_on(given: SpanInput, name: str, silent: frozenset[str]) -> AnnotatorSpansJson:
    readings = [trace.readings[name] for trace in given.traces if name in trace.readings]
    return {
        "traces": len(readings),
        "reading_recorded": sum(one.read is not None for one in readings),
        "places": sum(len(places) for one in readings for places in one.places.values()),
        "whole_trace": sum(one.whole_trace for one in readings),
        "not_found": sum(one.not_found for one in readings),
        "no_places": sum(len(one.unplaced) for one in readings),
        "never_placed": [code for slug, code, _ in given.modes if slug in silent],
    }


@dataclass(frozen=True, slots=True)
class _Group:
    """Some annotators, the traces in which two of them or more can be compared, what they found."""

    given: SpanInput
    names: Sequence[str]
    traces: Sequence[Looked]
    found: Floats

    def figures(self, rounds: int, seed: int) -> SpanFiguresJson:
        """Their figures."""
        sums = span_sums(self.traces, self.names, [slug for slug, _, _ in self.given.modes])
        each = (self._f1(sums), self._alpha(sums), self._alpha_u(sums))
        f1, alphas, alphas_u = estimated(each, rounds, seed)
        finding, naming, *by_mode = [
            _f1_json(block, f1[place * LEVELS : (place + 1) * LEVELS])
            for place, block in enumerate(_with_naming(self.found.sum(axis=0)[None])[0])
        ]
        return {
            "traces": len(self.traces),
            "spans": sum(trace.spans for trace in self.traces),
            "no_places": sum(len(trace.unplaced(self.names)) for trace in self.traces),
            "finding": finding,
            "finding_and_naming": naming,
            "krippendorff_alpha_u": alphas_u[-1].to_json(),
            "modes": self._modes(sums, by_mode, alphas, alphas_u),
        }

    def _modes(
        self,
        sums: SpanSums,
        f1: Sequence[F1Json],
        alphas: Sequence[Coefficient],
        alphas_u: Sequence[Coefficient],
    ) -> dict[str, ModeSpansJson]:
        spans = sum(trace.spans for trace in self.traces)
        compared = sums.coverage[:, :, 0].sum(axis=0)
        modes: dict[str, ModeSpansJson] = {}
        for place, (slug, code, name) in enumerate(self.given.modes):
            modes[code] = {
                "slug": slug,
                "name": name,
                "traces": sums.answered[place],
                "no_places": sum(slug in trace.unplaced(self.names) for trace in self.traces),
                "f1": f1[place],
                "spans": int(compared[place]),
                "spans_left_out": spans - int(compared[place]),
                "krippendorff_alpha": alphas[place].to_json(),
                "units": sums.units[place].units,
                "positions": sums.units[place].positions,
                "krippendorff_alpha_u": alphas_u[place].to_json(),
            }
        return modes

    def _f1(self, sums: SpanSums) -> Figures:
        """F1 of finding, of finding and naming, and of each mode, by degree of overlap."""
        # Where nobody says where anything shows there is nothing to find either.
        at_all = max(sums.answered, default=0)
        compared = [at_all, at_all, *sums.answered]
        columns = self.found.shape[1:]
        return Figures(
            _flat(self.found),
            lambda summed: _flat(_f1(_with_naming(summed.reshape(-1, *columns)))),
            [self._reason(self._raters(), n) for n in compared for _ in THRESHOLDS],
            lowest=0.0,
            needs=[FEWEST] * (len(compared) * LEVELS),
            meets=[None] * (len(compared) * LEVELS),
        )

    def _alpha(self, sums: SpanSums) -> Figures:
        """α over spans of each mode."""
        columns = sums.coverage.shape[1:]
        compared = sums.coverage[:, :, 0].sum(axis=0)
        return Figures(
            _flat(sums.coverage),
            lambda summed: coverage_alpha(summed.reshape(-1, *columns)),
            [self._reason(*of) for of in zip(sums.rated_by, compared, strict=True)],
            lowest=-1.0,
            needs=[_LEAST_TRACES] * len(sums.rated_by),
            meets=self._meets(),
        )

    def _alpha_u(self, sums: SpanSums) -> Figures:
        """α_U of each mode, and at the end over all."""
        ends = np.cumsum([one.features.shape[1] for one in sums.units])[:-1]

        def figures(summed: Floats) -> Floats:
            split = np.split(summed, ends, axis=1)
            modes = [one.disagreement(part) for one, part in zip(sums.units, split, strict=True)]
            return np.stack([*(alpha_u([one]) for one in modes), alpha_u(modes)], axis=1)

        compared = [one.positions for one in sums.units]
        reasons = [self._reason(*of) for of in zip(sums.rated_by, compared, strict=True)]
        over_all = self._reason(max(sums.rated_by), sum(compared))
        return Figures(
            np.hstack([one.features for one in sums.units]),
            figures,
            [*reasons, over_all],
            lowest=-1.0,
            needs=[_LEAST_TRACES] * (len(reasons) + 1),
            meets=[*self._meets(), None],
        )

    def _meets(self) -> list[int]:
        """In how many traces places of the same mode meet, by mode."""
        return [int(n) for n in (self.found[:, 1:, PAIRS] > 0).sum(axis=0)]

    def _raters(self) -> int:
        return sum(self.given.finished.get(name, 0) > 0 for name in self.names)

    def _reason(self, raters: int, compared: float) -> Undefined:
        """Why a figure is undefined, where it is, by who said anything and on how much of it."""
        if len(self.names) < 2 or raters == 1 or (not self.traces and self._raters() < 2):
            return "single_rater"
        return "no_variance" if compared else "no_overlap"


def _flat(sums: Floats) -> Floats:
    """The same, with one row per trace or resample, of which there may be none."""
    return sums.reshape(len(sums), int(np.prod(sums.shape[1:])))


def _with_naming(blocks: Floats) -> Floats:
    """Sums of findings with those of finding and naming, all modes together, in second place."""
    return np.insert(blocks, 1, blocks[:, 1:].sum(axis=1), axis=1)


def _f1(blocks: Floats) -> Floats:
    """F1 at each level of overlap from sums of findings, NaN where nothing was marked."""
    return ratio(2 * blocks[..., PAIRS:], blocks[..., MARKS, None])


def _f1_json(block: Floats, figures: Sequence[Coefficient]) -> F1Json:
    return {
        "places": int(block[MARKS]),
        "left_out": int(block[LEFT_OUT]),
        "exact": figures[-1].to_json(),
        "overlap": dict(zip(THRESHOLDS, (figure.to_json() for figure in figures), strict=True)),
    }

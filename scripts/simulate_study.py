"""Print how often the 95 % intervals of a simulated study hold the true value.

    python scripts/simulate_study.py designs [--runs N] [--seed S] [--jobs N] [--traces N …]
        [--rounds N]
    python scripts/simulate_study.py coverage [--runs N] [--seed S] [--jobs N]

``designs``: two annotators, four who all label every trace, or four of whom two label each, on 3 to
300 traces and 14 modes that show in 3 to 50 % of them. A random half of the traces has three times
as many modes as the others, so that the modes of a trace are correlated. A cell of the Markdown
table has how often the intervals hold the true value, in brackets how many figures have one ('none'
of fewer than 2 %), both in %, and the mean error of the figures.

``coverage``: one mode in 3, 20 or 50 % of 20, 50, 200 or 1,000 traces. Two annotators give all
verdicts (``complete``), two or three leave out a tenth of them (``missing``), or four rotate in
pairs. The other figures use gold: a share, the share of a known number of traces of which a fifth
was labelled, the corrected prevalence, the difference of two halves, and the common difference of
failed and successful traces within two models. Each line of the CSV has the studies in which the
figure is defined and has an interval (in % of all studies), how often the interval holds (in %),
and the reasons for missing intervals.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations, product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.counting import (
    ABSENT,
    MISSING,
    PRESENT,
    TableSums,
    VerdictArray,
    macro_coefficients,
    rating_patterns,
    sums_of,
    table_coefficients,
    table_values,
)
from mast_tui.figures.bootstrap import Resampling, mean_of_defined_values
from mast_tui.figures.intervals import rate
from mast_tui.figures.prevalence import corrected_prevalence, prediction_powered
from mast_tui.figures.record import COEFFICIENTS, Figure, FigureScope
from mast_tui.figures.signatures.modes import Stratum, TraceCounts, differences, mantel_haenszel

Flags = NDArray[np.bool_]


class Rates(NamedTuple):
    """The true positive and true negative rates of an annotator or a judge."""

    tpr: float
    tnr: float


SIMULATED: Final = Rates(0.80, 0.90)
Interval = tuple[float, float]


def population(prevalence: float, a: Rates, b: Rates) -> NDArray[np.float64]:
    """Return the probabilities of the four pairs of verdicts.

    Args:
        prevalence: The probability that the mode shows in a trace.
        a: The rates of the first annotator.
        b: The rates of the second annotator.

    Returns:
        The probabilities of both, the first only, the second only and neither saying present.
    """
    shows = np.outer([a.tpr, 1 - a.tpr], [b.tpr, 1 - b.tpr]).ravel()
    shows_not = np.outer([1 - a.tnr, a.tnr], [1 - b.tnr, b.tnr]).ravel()
    return prevalence * shows + (1 - prevalence) * shows_not


def draw_verdicts(random: np.random.Generator, shows: Flags, rates: Rates) -> Flags:
    """Draw the verdicts of an annotator with these rates.

    Args:
        random: The source of random numbers.
        shows: Whether the mode shows, for each trace.
        rates: The annotator's true positive and true negative rates.

    Returns:
        Whether the annotator says present, for each trace.
    """
    luck = random.random(len(shows))
    verdict_flags: Flags = np.where(shows, luck < rates.tpr, luck >= rates.tnr)
    return verdict_flags


class StudyDesign(NamedTuple):
    """The number of annotators, and whether only two of them label each trace."""

    name: str
    people: int
    rotating: bool

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of annotators."""
        return list(combinations(range(self.people), 2))


DESIGNS: Final = (
    StudyDesign("2, both label all", 2, False),
    StudyDesign("4, all label all", 4, False),
    StudyDesign("4, two a trace", 4, True),
)
PEOPLE: Final = (Rates(0.85, 0.95), Rates(0.80, 0.93), Rates(0.90, 0.90), Rates(0.75, 0.97))
SHOWS: Final = (
    *(0.03, 0.04, 0.05, 0.06, 0.08, 0.10),
    *(0.12, 0.15, 0.18, 0.22),
    *(0.28, 0.33, 0.40, 0.50),
)
"""The probabilities of the modes, from rare to common."""

BANDS: Final = {"3–10 %": range(6), "12–22 %": range(6, 10), "28–50 %": range(10, 14)}
POOLED: Final = "pooled"
MACRO: Final = "mean over modes"
LIFT: Final = 0.5
"""The relative rise of a mode's probability in half of the traces, and its fall in the others."""

DESIGN_TRACES: Final = (3, 5, 10, 20, 50, 79, 100, 300)
DESIGN_RUNS: Final = 500
ENDLESS: Final = 1e9
FIGURES: Final = {"cohen_kappa": "κ", "krippendorff_alpha": "α", "gwet_ac1": "AC1"}


def draw_study(design: StudyDesign, traces: int, random: np.random.Generator) -> VerdictArray:
    """Draw the verdicts of one study.

    Args:
        design: The annotators and the traces that each of them labels.
        traces: The number of traces.
        random: The source of random numbers.

    Returns:
        The verdicts by annotator, trace and mode, ``MISSING`` where a trace was not labelled.
    """
    lift = np.where(random.random(traces) < 0.5, 1 + LIFT, 1 - LIFT)
    shows = random.random((traces, len(SHOWS))) < np.array(SHOWS) * lift[:, None]
    table = np.empty((design.people, traces, len(SHOWS)), dtype=np.int8)
    for annotator, rates in enumerate(PEOPLE[: design.people]):
        table[annotator] = np.where(
            draw_verdicts(random, shows.ravel(), rates), PRESENT, ABSENT
        ).reshape(shows.shape)
    if design.rotating:
        table[~_labelled_by_pairs(design.people, traces, random)] = MISSING
    return table


def _labelled_by_pairs(people: int, traces: int, random: np.random.Generator) -> Flags:
    """Return which annotators label which traces, where each pair labels equally many."""
    pairs = np.array(list(combinations(range(people), 2)))
    turns = -(-traces // len(pairs))
    order = np.concatenate([random.permutation(len(pairs)) for _ in range(turns)])[:traces]
    labels = np.zeros((people, traces), dtype=np.bool_)
    labels[pairs[order].T, np.arange(traces)] = True
    return labels


def expected(design: StudyDesign, prevalence: float) -> TableSums:
    """Return the sums of an endless study of one mode.

    Args:
        design: The annotators and the traces that each of them labels.
        prevalence: The probability that the mode shows in a trace.
    """
    people = PEOPLE[: design.people]
    cells = np.array([population(prevalence, people[a], people[b]) for a, b in design.pairs])
    patterns = np.zeros(len(rating_patterns(design.people)))
    kinds = {(n, k): index for index, (n, k) in enumerate(rating_patterns(design.people).tolist())}
    if design.rotating:
        cells /= len(cells)
        both, first, second, neither = cells.sum(axis=0)
        for present, share in enumerate((neither, first + second, both)):
            patterns[kinds[2, present]] = share
    else:
        for answers in product((False, True), repeat=design.people):
            patterns[kinds[design.people, sum(answers)]] += chance_of(answers, prevalence)
    rated = np.ones((design.people, 1), dtype=np.bool_)
    every = tuple(0 for _ in design.pairs)
    return TableSums(cells[None] * ENDLESS, patterns[None] * ENDLESS, rated, 0, every, False, 0)


def chance_of(answers: Sequence[bool], prevalence: float) -> float:
    """Return the probability that the annotators give these answers on one trace.

    Args:
        answers: Whether the verdict is present, for each annotator.
        prevalence: The probability that the mode shows in the trace.
    """
    likely = [prevalence, 1 - prevalence]
    for present, rates in zip(answers, PEOPLE, strict=False):
        likely[0] *= rates.tpr if present else 1 - rates.tpr
        likely[1] *= 1 - rates.tnr if present else rates.tnr
    return sum(likely)


def design_truth(design: StudyDesign) -> dict[tuple[str, int | str], float]:
    """Return the figures of an endless study, by name and mode, ``POOLED`` or ``MACRO``."""
    tables = [expected(design, prevalence) for prevalence in SHOWS]
    modes = [table_values(values) for values in tables]
    first = tables[0]
    pooled = table_values(
        TableSums(
            sum((values.pairs for values in tables), np.zeros_like(first.pairs)),
            sum(
                (values.units_by_pattern for values in tables),
                np.zeros_like(first.units_by_pattern),
            ),
            first.rated, 0, first.pair_trace_counts, False, 0,
        )
    )  # fmt: skip
    truth: dict[tuple[str, int | str], float] = {}
    for name in COEFFICIENTS:
        truth |= {(name, mode): float(values[name][0]) for mode, values in enumerate(modes)}
        truth[name, MACRO] = float(
            mean_of_defined_values(np.array([values[name] for values in modes]), 0)[0]
        )
        truth[name, POOLED] = float(pooled[name][0])
    return truth


def design_run(
    seed: int, design: StudyDesign, traces: int, rounds: int
) -> dict[tuple[str, int | str], Figure]:
    """Compute the figures of one study with their intervals.

    Args:
        seed: The seed of the random numbers and of the resampling.
        design: The annotators and the traces that each of them labels.
        traces: The number of traces.
        rounds: The number of resamples.

    Returns:
        The defined figures, by name and mode, ``POOLED`` or ``MACRO``.
    """
    random = np.random.default_rng([seed, traces, design.people, design.rotating])
    table = draw_study(design, traces, random)
    sums = sums_of(table, range(traces), Resampling(rounds, seed))
    modes = [table_coefficients(sums.of_modes([mode])) for mode in range(len(SHOWS))]
    pooled = table_coefficients(sums.everything())
    macro = macro_coefficients(sums, modes)
    coefficients: dict[tuple[str, int | str], Figure] = {}
    for name in COEFFICIENTS:
        coefficients |= {(name, mode): figures[name] for mode, figures in enumerate(modes)}
        coefficients |= {(name, POOLED): pooled[name], (name, MACRO): macro[name]}
    return {key: figure for key, figure in coefficients.items() if figure.value is not None}


def _design_rows(
    design: StudyDesign, traces: int, runs: range, rounds: int, jobs: int
) -> list[tuple[str, list[str]]]:
    """Return the cells of each figure: the bands of modes, pooled, and the mean over modes."""
    truth = design_truth(design)
    holding: dict[tuple[str, str], list[bool]] = {}
    errors: dict[tuple[str, str], list[float]] = {}
    band = {mode: name for name, modes in BANDS.items() for mode in modes}
    run = partial(design_run, design=design, traces=traces, rounds=rounds)
    with ProcessPoolExecutor(jobs) as pool:
        for coefficients in pool.map(run, runs, chunksize=10):
            for (name, mode), coefficient in coefficients.items():
                cell = name, mode if isinstance(mode, str) else band[mode]
                true = truth[name, mode]
                errors.setdefault(cell, []).append((coefficient.value or 0.0) - true)
                if coefficient.interval is not None:
                    holding.setdefault(cell, []).append(
                        coefficient.interval[0] <= true <= coefficient.interval[1]
                    )
    columns = (*BANDS, POOLED, MACRO)
    sizes = {**{name: len(modes) for name, modes in BANDS.items()}, POOLED: 1, MACRO: 1}
    return [
        (
            name,
            [
                cell_text(
                    holding.get((name, c), []), errors.get((name, c), []), len(runs) * sizes[c]
                )
                for c in columns
            ],
        )
        for name in FIGURES
    ]


def cell_text(holding: Sequence[bool], errors: Sequence[float], studies: int) -> str:
    """Format a cell of the table of designs.

    Args:
        holding: Whether the interval holds the true value, for each interval.
        errors: The errors of the defined figures.
        studies: The number of figures that the studies could have.

    Returns:
        How often the interval holds, how many figures have one (both in %), and the bias.
    """
    if not errors:
        return "–"
    bias = f"{np.mean(errors):+.2f}".replace("-", "−")
    bias = bias[1:] if bias[1:] == "0.00" else bias
    percent_defined = 100 * len(holding) / studies
    if len(holding) < 0.02 * studies or not holding:
        return f"none; {bias}"
    return f"{100 * np.mean(holding):.0f} ({percent_defined:.0f}); {bias}"


def _print_designs(runs: range, traces: Sequence[int], rounds: int, jobs: int) -> None:
    """Print the table of all designs."""
    print("| annotators | traces | figure |", *(f"{c} |" for c in (*BANDS, POOLED, MACRO)))
    print("|---|---:|---|" + "---|" * (len(BANDS) + 2), flush=True)
    for design in DESIGNS:
        for n in traces:
            for name, cells in _design_rows(design, n, runs, rounds, jobs):
                if any(cell != "–" for cell in cells):
                    title = FIGURES[name]
                    if name == "cohen_kappa" and design.people > 2:
                        title = "mean κ"
                    print(f"| {design.name} | {n} | {title} | {' | '.join(cells)} |", flush=True)


COVERAGE_TRACES: Final = (20, 50, 200, 1000)
COVERAGE_SHOWS: Final = (0.03, 0.20, 0.50)
COVERAGE_RUNS: Final = 4000
MISSES: Final = 0.1
"""The share of verdicts that annotators leave out."""

PLANS: Final = {
    "complete, 2": (2, "complete"),
    "missing, 2": (2, "missing"),
    "missing, 3": (3, "missing"),
    "rotating, 4": (4, "rotating"),
}
WHOLE: Final = 5
"""The number of traces as a multiple of the labelled ones."""

AT_ONCE: Final = 50
"""The number of studies that are counted together, as if they were modes of one study."""

StudyOutcome = tuple[bool, Interval | None, str]
Outcomes = dict[str, list[StudyOutcome]]
"""Whether the interval of each study holds, the interval, and why there is none, by figure."""


def many_studies(plan: str, shows: float, traces: int, random: np.random.Generator) -> VerdictArray:
    """Draw the verdicts of ``AT_ONCE`` studies of one mode.

    Args:
        plan: A key of ``PLANS``.
        shows: The probability that the mode shows in a trace.
        traces: The number of traces.
        random: The source of random numbers.

    Returns:
        The verdicts by annotator, trace and study.
    """
    people, kind = PLANS[plan]
    mode_shows = random.random((traces, AT_ONCE)) < shows
    table = np.empty((people, traces, AT_ONCE), dtype=np.int8)
    for annotator, rates in enumerate(PEOPLE[:people]):
        verdicts = draw_verdicts(random, mode_shows.ravel(), rates).reshape(mode_shows.shape)
        table[annotator] = np.where(verdicts, PRESENT, ABSENT)
    if kind == "missing":
        table[random.random(table.shape) < MISSES] = MISSING
    if kind == "rotating":
        table[~_labelled_by_pairs(people, traces, random)] = MISSING
    return table


def _plan_truth(plan: str, shows: float) -> dict[str, float]:
    """Return the figures of a practically endless study."""
    random = np.random.default_rng(1)
    verdict_table = many_studies(plan, shows, 20_000, random)
    table = sums_of(verdict_table, range(verdict_table.shape[1]), Resampling(0, 0)).everything()
    return {name: float(values[0]) for name, values in table_values(table).items()}


def _agreement_cell(
    block: int, *, plan: str, shows: float, traces: int, seed: int, truth: dict[str, float]
) -> Outcomes:
    """Return the outcomes of a block of studies of one plan."""
    random = np.random.default_rng([seed, block, traces, round(100 * shows), *plan.encode()])
    sums = sums_of(many_studies(plan, shows, traces, random), range(traces), Resampling(1, 0))
    results: Outcomes = {}
    for study in range(AT_ONCE):
        for name, coefficient in table_coefficients(sums.of_modes([study])).items():
            if coefficient.value is not None:
                why = coefficient.withheld or "no_spread"
                results.setdefault(name, []).append(
                    _outcome(coefficient.interval, truth[name], why)
                )
    return results


def _outcome(
    interval: Interval | None, truth: float, why: str
) -> tuple[bool, Interval | None, str]:
    """Return whether an interval holds the truth, the interval, and why there is none."""
    if interval is None:
        return False, None, why
    low, high = interval
    return low - 1e-9 <= truth <= high + 1e-9, interval, ""


def _share_cell(block: int, *, shows: float, traces: int, seed: int) -> Outcomes:
    """Return the outcomes of a block of studies for figures that use gold."""
    random = np.random.default_rng([seed, block, traces, round(100 * shows), 7])
    results: Outcomes = {}
    for _ in range(AT_ONCE):
        for name, outcome in (
            *_share_outcomes(shows, traces, random),
            ("difference of halves", _halves_outcome(shows, traces, random)),
            ("difference within two models", _models_outcome(shows, traces, random)),
        ):
            results.setdefault(name, []).append(outcome)
    return results


def _share_outcomes(
    shows: float, traces: int, random: np.random.Generator
) -> Iterator[tuple[str, StudyOutcome]]:
    """Yield the outcomes of shares in one study with a judge of the rates ``SIMULATED``."""
    tpr, tnr = SIMULATED
    cells = (shows * tpr, (1 - shows) * (1 - tnr), shows * (1 - tpr), (1 - shows) * tnr)
    labelled = random.multinomial(traces, cells).astype(np.float64)
    hits = int(labelled[0] + labelled[2])
    unlabelled = random.multinomial((WHOLE - 1) * traces, cells)
    calls = unlabelled.reshape(2, 2).sum(axis=1).astype(np.float64)
    yield "share", _outcome(rate(FigureScope("share"), "", hits, traces).interval, shows, "")
    overall = prediction_powered(labelled, calls)
    share_of_these = (hits + int(unlabelled[0] + unlabelled[2])) / (WHOLE * traces)
    assert overall.share_of_these is not None
    for name, figure, truth in (
        ("share with a judge", overall.powered, shows),
        ("share of these traces", overall.share_of_these, share_of_these),
        ("corrected prevalence", corrected_prevalence(labelled, calls), shows),
    ):
        if figure.value is not None:
            yield name, _outcome(figure.interval, truth, figure.withheld or "no_spread")


def _halves_outcome(shows: float, traces: int, random: np.random.Generator) -> StudyOutcome:
    """Return the outcome of the difference of two halves of a study."""
    first, second = (
        TraceCounts.unweighted(int(random.binomial(size, shows)), size)
        for size in (traces // 2, traces - traces // 2)
    )
    ((plain, *_),) = differences([first], [second], ("first", "second"), [FigureScope("mode")])
    return _outcome(plain.interval, 0.0, plain.reason)


def _models_outcome(shows: float, traces: int, random: np.random.Generator) -> StudyOutcome:
    """Return the outcome of the common difference within two models."""
    first_size = max(1, traces // 4)
    second_size = max(1, traces // 2 - traces // 4)
    strata = [
        Stratum(
            int(random.binomial(first_size, risk)),
            first_size,
            int(random.binomial(second_size, risk)),
            second_size,
        )
        for risk in (0.8 * shows, 1.2 * shows)
    ]
    _, within, _ = mantel_haenszel(strata, FigureScope("mode"))
    return _outcome(within.interval, 0.0, within.withheld or "")


def _print_coverage(runs: int, seed: int, jobs: int) -> None:
    """Print the table of ``coverage`` as CSV."""
    print("design,traces,mode_in_percent,figure,defined,given,holds,withheld", flush=True)
    blocks = range(-(-runs // AT_ONCE))
    with ProcessPoolExecutor(jobs) as pool:
        for plan, shows in product(("gold", *PLANS), COVERAGE_SHOWS):
            truth = _plan_truth(plan, shows) if plan in PLANS else {}
            for traces in COVERAGE_TRACES:
                if plan in PLANS:
                    cell = partial(_agreement_cell, plan=plan, truth=truth)
                else:
                    cell = partial(_share_cell)
                run = partial(cell, shows=shows, traces=traces, seed=seed)
                print_cell(plan, traces, shows, list(pool.map(run, blocks)))


def print_cell(plan: str, traces: int, shows: float, blocks: Sequence[Outcomes]) -> None:
    """Print a row for every figure of one cell.

    Args:
        plan: A key of ``PLANS``, or ``gold``.
        traces: The number of traces.
        shows: The probability that the mode shows in a trace.
        blocks: The outcomes of the blocks of studies.
    """
    studies = AT_ONCE * len(blocks)
    for name in dict.fromkeys(name for block in blocks for name in block):
        rows = [row for block in blocks for row in block.get(name, ())]
        holding = [holds for holds, interval, _ in rows if interval is not None]
        reasons = Counter(why for _, interval, why in rows if interval is None)
        why = " ".join(f"{name}:{100 * n / studies:.0f}" for name, n in reasons.most_common())
        holds = f"{100 * np.mean(holding):.1f}" if holding else ""
        print(
            f'"{plan}",{traces},{100 * shows:.0f},{name},{100 * len(rows) / studies:.0f},'
            f"{100 * len(holding) / studies:.0f},{holds},{why}",
            flush=True,
        )


def main() -> None:
    """Print the table of the chosen simulation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=("designs", "coverage"))
    parser.add_argument("--runs", type=int, help="number of studies (4000; of designs 500)")
    parser.add_argument("--seed", type=int, default=0, help="the first run's seed (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    parser.add_argument("--rounds", type=int, default=500, help="of designs: resamples (500)")
    parser.add_argument(
        "--traces", type=int, nargs="+", default=DESIGN_TRACES, help="of designs: numbers of traces"
    )
    options = parser.parse_args()
    if options.kind == "coverage":
        _print_coverage(options.runs or COVERAGE_RUNS, options.seed, options.jobs)
    else:
        seeds = range(options.seed, options.seed + (options.runs or DESIGN_RUNS))
        _print_designs(seeds, options.traces, options.rounds, options.jobs)


if __name__ == "__main__":
    main()

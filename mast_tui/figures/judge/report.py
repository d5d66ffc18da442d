"""The report on one judge, as ``agree --json`` prints it under ``judge``."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from mast_tui.figures.bootstrap import ROUNDS, BootstrapJson, bootstrap_json
from mast_tui.figures.judge.confusion import (
    Compared,
    JudgeMacroJson,
    JudgeModeJson,
    JudgeTableJson,
    compared,
    figures_by_mode,
    macro_means,
    pooled_table,
    trace_sums,
)
from mast_tui.figures.judge.input import GOLD, JudgeInput, Reference
from mast_tui.figures.judge.suggestion_effect import WithheldJson, withheld
from mast_tui.figures.judge.suggestions import (
    AcceptanceJson,
    CalibrationJson,
    LocalisationJson,
    acceptance,
    calibration,
    localisation,
)
from mast_tui.figures.judge.thresholds import ThresholdsJson
from mast_tui.figures.prevalence import PrevalenceJson, prevalence
from mast_tui.gold import Source
from mast_tui.gold.sources import GoldMixJson, gold_mix


class JudgedTracesJson(TypedDict):
    """How many traces the judge has judged, can be compared on, and alone has judged."""

    judged: int
    compared: int
    unlabelled: int


class JudgeReport(TypedDict):
    """How good a judge is, and all that the figures rest on.

    ``left_out`` counts ``examples`` and ``unfinished`` in traces, everything else in trace × mode;
    with ``judge_seen_counted`` verdicts that came about with a judge on screen are counted after
    all. ``gold`` is what the gold compared is made of, None where the judge is held against
    an annotator. ``thresholds`` are there if they were asked for: the judge's verdicts then follow
    from them. ``answers`` are people's answers to suggestions; ``withheld`` is None where a
    study kept none back.
    """

    taxonomy: str
    judge: str
    against: str
    judge_seen_counted: bool
    gold: GoldMixJson | None
    bootstrap: BootstrapJson
    traces: JudgedTracesJson
    left_out: dict[str, int]
    modes: dict[str, JudgeModeJson]
    macro: JudgeMacroJson
    pooled: JudgeTableJson
    calibration: CalibrationJson
    answers: AcceptanceJson
    localisation: LocalisationJson
    prevalence: dict[str, PrevalenceJson]
    withheld: WithheldJson | None
    thresholds: NotRequired[ThresholdsJson]


def _mix(reference: Reference, found: Compared) -> GoldMixJson | None:
    """What the verdicts that were compared are made of; None where they are no gold's."""
    if reference.name != GOLD:
        return None
    sources: dict[str, list[Source]] = {}
    people: set[str] = set()
    for unit in found.reference:
        if unit in reference.sources:
            sources.setdefault(unit[0], []).append(reference.sources[unit])
            people.update(reference.sides[unit])
    for trace, _ in found.doubtful:
        sources.setdefault(trace, []).append(Source.UNRESOLVED)
    return gold_mix(
        sources,
        people,
        settled_only=reference.settled_only,
        not_in_study=reference.not_in_study,
        merged=sum(len(reference.merged.get(unit, ())) for unit in found.reference),
    )


def judge_report(
    given: JudgeInput, *, rounds: int = ROUNDS, seed: int = 0, with_seen: bool = False
) -> JudgeReport:
    """Make the report on a judge, ready for any JSON writer; it never holds NaN.

    The unit is trace × mode where the judge has a verdict and the reference says present or
    absent.

    Args:
        given: What the judge said, and what it is measured by.
        rounds: How many resamples; 0 leaves out the intervals that need them.
        seed: What the resamples are drawn from.
        with_seen: Whether verdicts count that came about with a judge on screen.
    """
    found = compared(given, with_seen=with_seen)
    sums = trace_sums(found, [slug for slug, _, _ in given.modes], rounds=rounds, seed=seed)
    pooled = pooled_table(found, sums)
    return {
        "taxonomy": given.taxonomy_ref,
        "judge": given.judge,
        "against": given.reference.name,
        "judge_seen_counted": with_seen,
        "gold": _mix(given.reference, found),
        "bootstrap": bootstrap_json(rounds, seed),
        "traces": {
            "judged": len({trace for trace, _ in given.verdicts}) + given.beyond.traces,
            "compared": len(found.traces),
            "unlabelled": len(given.unlabelled - given.examples) + given.beyond.traces,
        },
        "left_out": {
            **pooled["left_out"],
            "examples": found.examples,
            "unfinished": given.unfinished,
        },
        "modes": figures_by_mode(found, sums, given.modes),
        "macro": macro_means(sums),
        "pooled": pooled,
        "calibration": calibration(given, found),
        "answers": acceptance(given),
        "localisation": localisation(given, found),
        "prevalence": prevalence(given, found),
        "withheld": withheld(given, rounds=rounds, seed=seed),
    }

"""How people's labels differ with and without a judge's suggestions on screen.

A study that shows suggestions may keep them back on a share of the traces, chosen at random.
What differs between the two is the pull of the suggestions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

import numpy as np

from mast_tui.figures.agreement.coefficients import Coefficient, CoefficientJson
from mast_tui.figures.bootstrap import interval, ratio, resampled_sums
from mast_tui.figures.judge.input import AssistedPass, JudgeInput
from mast_tui.figures.two_by_two import (
    Figure,
    Tables,
    Values,
    cohen_kappa,
    raw_agreement,
)
from mast_tui.labels import VerdictValue

_SAID: Final = (VerdictValue.PRESENT, VerdictValue.ABSENT)

_LEAST_TRACES: Final = 50
"""Traces below which the percentiles of resamples are too narrow."""

# The columns of one kind of passes: the table of judge and person, then these.
_PASSES, _LABELS, _PRESENT, _VERDICTS, _COLUMNS = 4, 5, 6, 7, 8


class DifferenceJson(TypedDict):
    """A figure with suggestions on screen, without, and the first less the second.

    Each has its interval by resampling traces, or a reason why it is undefined.
    """

    shown: CoefficientJson
    withheld: CoefficientJson
    difference: CoefficientJson


class PullJson(TypedDict):
    """One mode, or all: what was said in passes with and without suggestions.

    ``present_rate`` is the share of present among present and absent, ``labels_per_pass`` the mean
    number of labels; agreement with the judge is over units where both said present or absent.
    """

    present_rate: DifferenceJson
    labels_per_pass: DifferenceJson
    agreement_with_judge: DifferenceJson
    kappa_with_judge: DifferenceJson


class WithheldJson(PullJson):
    """The pull of suggestions over all modes together, and by mode code.

    ``passes`` counts either kind, by people who have both (``annotators``); ``on_screen`` how many
    of those with suggestions had any on screen. ``not_judged`` passes are left out since the judge
    has not judged their trace, ``examples`` since it stood in the judge's prompt.
    """

    annotators: list[str]
    traces: int
    passes: dict[str, int]
    on_screen: int
    not_judged: int
    examples: int
    modes: dict[str, PullJson]


@dataclass(frozen=True, slots=True)
class _Sums:
    """Counts of shown and withheld passes: … × 2 × columns, as they are and in the resamples."""

    total: Tables
    resampled: Tables
    traces: int


def withheld(given: JudgeInput, *, rounds: int, seed: int) -> WithheldJson | None:
    """Passes with suggestions kept back against other passes of the same people.

    None where no suggestions were kept back. Suggestions count as shown in every other pass of an
    assisted study, whether or not the person looked at them, as only that was left to chance.
    """
    if not any(one.withheld for one in given.passes):
        return None
    judged = {trace for trace, _ in given.verdicts}
    usable = [p for p in given.passes if p.trace_id in judged - given.examples]
    names = {p.annotator for p in usable if p.withheld} & {
        p.annotator for p in usable if not p.withheld
    }
    passes = [one for one in usable if one.annotator in names]
    slugs = [slug for slug, _, _ in given.modes]
    cells = _cells(given, passes, slugs)
    drawn = resampled_sums(cells.reshape(len(cells), len(slugs) * 2 * _COLUMNS), rounds, seed)
    total, resampled = cells.sum(axis=0), drawn.reshape(-1, len(slugs), 2, _COLUMNS)
    every = _Sums(total.sum(axis=0), resampled.sum(axis=1), len(cells))
    return {
        "annotators": sorted(names),
        "traces": len(cells),
        "passes": {
            "shown": sum(not one.withheld for one in passes),
            "withheld": sum(one.withheld for one in passes),
        },
        "on_screen": sum(one.judge_seen and not one.withheld for one in passes),
        "not_judged": sum(one.trace_id not in judged for one in given.passes),
        "examples": sum(one.trace_id in given.examples & judged for one in given.passes),
        **_pull(_with_passes_once(every, len(slugs))),
        "modes": {
            code: _pull(_Sums(total[i], resampled[:, i], len(cells)))
            for i, (_, code, _) in enumerate(given.modes)
        },
    }


def _cells(given: JudgeInput, passes: Sequence[AssistedPass], slugs: Sequence[str]) -> Tables:
    """Traces × modes × (shown, withheld) × columns: what each pass adds."""
    rows = {trace: i for i, trace in enumerate(sorted({one.trace_id for one in passes}))}
    cells = np.zeros((len(rows), len(slugs), 2, _COLUMNS))
    for one in passes:
        row = cells[rows[one.trace_id], :, int(one.withheld)]
        row[:, _PASSES] += 1
        for i, slug in enumerate(slugs):
            row[i, _LABELS] += one.labels.get(slug, 0)
            value = one.verdicts.get(slug)
            if value not in _SAID:
                continue
            row[i, _PRESENT] += value is VerdictValue.PRESENT
            row[i, _VERDICTS] += 1
            judge = given.verdicts.get((one.trace_id, slug))
            if judge in _SAID:
                # True and false positives, then false and true negatives.
                absent = value is VerdictValue.ABSENT
                row[i, 2 * (judge is VerdictValue.ABSENT) + absent] += 1
    return cells


def _with_passes_once(sums: _Sums, modes: int) -> _Sums:
    """Of all modes together a pass counts once, so that labels are counted per pass."""
    scale = np.ones(_COLUMNS)
    scale[_PASSES] = 1 / max(1, modes)
    return _Sums(sums.total * scale, sums.resampled * scale, sums.traces)


def _pull(sums: _Sums) -> PullJson:
    return {
        "present_rate": _difference(_share_of(_PRESENT, _VERDICTS), sums),
        "labels_per_pass": _difference(_share_of(_LABELS, _PASSES), sums),
        "agreement_with_judge": _difference(lambda c: raw_agreement(c[..., :4]), sums),
        "kappa_with_judge": _difference(lambda c: cohen_kappa(c[..., :4]), sums),
    }


def _share_of(above: int, below: int) -> Figure:
    return lambda cells: ratio(cells[..., above], cells[..., below])


def _difference(figure: Figure, sums: _Sums) -> DifferenceJson:
    """A figure of both kinds of passes, from the same resamples."""
    shown, held = figure(sums.total)
    drawn = figure(sums.resampled)
    # With units that both judged, only a figure corrected for chance can be undefined.
    compared = sums.total[..., :4].sum(axis=-1) > 0
    return {
        "shown": _coefficient(shown, drawn[:, 0], compared[0], sums.traces),
        "withheld": _coefficient(held, drawn[:, 1], compared[1], sums.traces),
        "difference": _coefficient(
            shown - held, drawn[:, 0] - drawn[:, 1], compared.all(), sums.traces
        ),
    }


def _coefficient(value: float, drawn: Values, compared: bool, traces: int) -> CoefficientJson:
    if np.isnan(value):
        return Coefficient(undefined="no_variance" if compared else "no_overlap").to_json()
    if len(drawn) and traces < _LEAST_TRACES:
        return Coefficient(float(value), withheld=("few_traces", _LEAST_TRACES)).to_json()
    ends = interval(float(value), drawn) if len(drawn) else None
    return Coefficient(float(value), ci=ends).to_json()

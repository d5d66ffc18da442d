"""Agreement of annotators on whole traces: from their verdicts to the report of ``agree``.

The unit is trace × mode where two annotators or more have a verdict, in traces that they have
finished. ``present`` and ``absent`` are the two categories. ``unsure`` is no verdict on either
side: it counts as missing, and how often it was said is reported beside the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import NotRequired, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from mast_tui.agreement.coefficients import (
    MISSING,
    Coefficient,
    CoefficientJson,
    Ratings,
    cohen_kappa,
    cohen_kappa_pairs,
    complete_units,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    mean_of_defined,
    raw_agreement,
    specific_agreement,
)
from mast_tui.labels import VerdictValue

ABSENT, PRESENT = 0, 1
_UNSURE = -2


@dataclass(frozen=True, slots=True)
class StudyInput:
    """Whose verdicts are compared, on which modes, and what they said.

    ``modes`` are (slug, code, name) in the taxonomy's order; ``pass_label`` is what the report
    calls the pass (``1``, ``last``). ``verdicts`` are keyed by (annotator, trace id, slug); one
    that is not there is open. Only verdicts by ``annotators``, on ``modes``, in traces that the
    annotator has ``finished`` are counted. ``examples`` is how many traces were left out of a
    judge's figures because they stood in its prompt. Raises ``ValueError`` where an annotator or
    a mode is named twice, or a name cannot stand in the report.
    """

    taxonomy_ref: str
    modes: tuple[tuple[str, str, str], ...]
    annotators: tuple[str, ...]
    pass_label: str
    verdicts: Mapping[tuple[str, str, str], VerdictValue]
    finished: Mapping[str, frozenset[str]]
    examples: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(set(self.annotators)) < len(self.annotators):
            raise ValueError(f"an annotator is named twice: {', '.join(self.annotators)}")
        for place, what in ((0, "slug"), (1, "code")):
            if len({mode[place] for mode in self.modes}) < len(self.modes):
                raise ValueError(f"two modes of {self.taxonomy_ref} have the same {what}")


class CoefficientsJson(TypedDict):
    """Every coefficient of one table of verdicts."""

    raw_agreement: CoefficientJson
    positive_agreement: CoefficientJson
    negative_agreement: CoefficientJson
    cohen_kappa: CoefficientJson
    fleiss_kappa: CoefficientJson
    krippendorff_alpha: CoefficientJson
    gwet_ac1: CoefficientJson


class PairJson(CoefficientsJson):
    """Two annotators compared; ``prevalence`` is None for one without a verdict among the n."""

    n: int
    prevalence: dict[str, float | None]


class TableJson(PairJson):
    """One mode, or all of them pooled; ``unsure`` counts that verdict in finished traces."""

    unsure: dict[str, int]
    pairs: dict[str, PairJson]


class ModeJson(TableJson):
    """One mode, with what it is called."""

    slug: str
    name: str


class MacroJson(CoefficientsJson):
    """Means over the modes where a coefficient is defined, and how many modes those are."""

    modes_defined: dict[str, int]


class FinishedJson(TypedDict):
    """How many traces every annotator has finished.

    ``examples_left_out`` counts, by judge, those that stood in its prompt; it is there where some
    did.
    """

    finished_by_all: int
    examples_left_out: NotRequired[dict[str, int]]


# The functional form, since 'pass' is a word of the language.
Report = TypedDict(
    "Report",
    {
        "taxonomy": str,
        "annotators": list[str],
        "pass": str,
        "traces": FinishedJson,
        "modes": dict[str, ModeJson],
        "macro": MacroJson,
        "pooled": TableJson,
        "spans": None,
        "judge": None,
    },
)


def agreement_report(study: StudyInput) -> Report:
    """The report of ``agree --json``, ready for any JSON writer; it never holds NaN.

    Per mode, then ``macro`` (means over the modes) and ``pooled`` (all units of traces × modes in
    one table). Every coefficient has a value, or the reason why it is undefined. Fleiss' κ is
    over the units in which nobody's verdict is missing; ``cohen_kappa`` of three annotators or
    more is the mean over the pairs where it is defined.
    """
    cells = _cells(study)
    modes: dict[str, ModeJson] = {}
    per_mode: list[dict[str, Coefficient]] = []
    for place, (slug, code, name) in enumerate(study.modes):
        said = cells[:, :, place]
        per_mode.append(_coefficients(_shared_units(said)))
        modes[code] = {"slug": slug, "name": name, **_table(study.annotators, said)}
    finished = [study.finished.get(name, frozenset()) for name in study.annotators]
    both = frozenset.intersection(*finished) if finished else frozenset()
    traces: FinishedJson = {"finished_by_all": len(both)}
    if study.examples:
        traces["examples_left_out"] = dict(study.examples)
    return {
        "taxonomy": study.taxonomy_ref,
        "annotators": list(study.annotators),
        "pass": study.pass_label,
        "traces": traces,
        "modes": modes,
        "macro": _macro(per_mode),
        "pooled": _table(study.annotators, _pooled(cells)),
        "spans": None,
        "judge": None,
    }


def _cells(study: StudyInput) -> NDArray[np.int_]:
    """Annotators × traces × modes: what each said in the traces that they finished."""
    people = {name: i for i, name in enumerate(study.annotators)}
    modes = {slug: i for i, (slug, _, _) in enumerate(study.modes)}
    finished = {name: study.finished.get(name, frozenset()) for name in people}
    traces = {trace: i for i, trace in enumerate(sorted(frozenset().union(*finished.values())))}
    codes = {
        VerdictValue.ABSENT: ABSENT,
        VerdictValue.PRESENT: PRESENT,
        VerdictValue.UNSURE: _UNSURE,
    }
    cells = np.full((len(people), len(traces), len(modes)), MISSING, dtype=np.int_)
    for (name, trace, slug), value in study.verdicts.items():
        if name in people and slug in modes and trace in finished[name]:
            cells[people[name], traces[trace], modes[slug]] = codes[value]
    return cells


def _pooled(cells: NDArray[np.int_]) -> NDArray[np.int_]:
    """Annotators × (traces · modes): every mode of every trace as a unit of its own."""
    annotators, traces, modes = cells.shape
    return cells.reshape(annotators, traces * modes)


def _shared_units(said: NDArray[np.int_]) -> Ratings:
    """The units with two verdicts or more, unsure ones taken as missing."""
    ratings = np.where(said == _UNSURE, MISSING, said)
    shared: Ratings = ratings[:, (ratings != MISSING).sum(axis=0) > 1]
    # A rater without any verdict must not make 'nobody else was there' look like 'no overlap'.
    return shared if shared.size else ratings


def _coefficients(ratings: Ratings) -> dict[str, Coefficient]:
    pair = len(ratings) == 2
    return {
        "raw_agreement": raw_agreement(ratings),
        "positive_agreement": specific_agreement(ratings, PRESENT),
        "negative_agreement": specific_agreement(ratings, ABSENT),
        "cohen_kappa": cohen_kappa(ratings) if pair else cohen_kappa_pairs(ratings),
        "fleiss_kappa": fleiss_kappa(complete_units(ratings)),
        "krippendorff_alpha": krippendorff_alpha(ratings),
        "gwet_ac1": gwet_ac1(ratings, categories=2),
    }


def _json(coefficients: Mapping[str, Coefficient]) -> CoefficientsJson:
    return cast("CoefficientsJson", {name: c.to_json() for name, c in coefficients.items()})


def _pair(names: tuple[str, ...], said: NDArray[np.int_]) -> PairJson:
    ratings = _shared_units(said)
    shared = ratings[:, (ratings != MISSING).sum(axis=0) > 1]
    prevalence: dict[str, float | None] = {}
    for name, row in zip(names, shared, strict=True):
        given = row[row != MISSING]
        prevalence[name] = float((given == PRESENT).mean()) if given.size else None
    return {"n": shared.shape[1], "prevalence": prevalence, **_json(_coefficients(ratings))}


def _table(names: tuple[str, ...], said: NDArray[np.int_]) -> TableJson:
    pairs = combinations(range(len(names)), 2)
    return {
        **_pair(names, said),
        "unsure": {
            name: int((row == _UNSURE).sum()) for name, row in zip(names, said, strict=True)
        },
        "pairs": {
            f"{names[a]}|{names[b]}": _pair((names[a], names[b]), said[[a, b]]) for a, b in pairs
        },
    }


def _macro(per_mode: list[dict[str, Coefficient]]) -> MacroJson:
    means: dict[str, Coefficient] = {}
    defined: dict[str, int] = {}
    for name in CoefficientsJson.__annotations__:
        means[name], defined[name] = mean_of_defined([mode[name] for mode in per_mode])
    return {**_json(means), "modes_defined": defined}

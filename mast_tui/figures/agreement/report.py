"""Agreement of annotators on whole traces: from their verdicts to the report of ``agree``.

The unit is trace × mode where two annotators or more have a verdict, in traces that they have
finished. ``present`` and ``absent`` are the two categories. ``unsure`` is no verdict on either
side: it counts as missing, and how often it was said is reported beside the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import MISSING
from mast_tui.figures.agreement.duplicated_labels import identical_blocks
from mast_tui.figures.agreement.sets import set_agreement
from mast_tui.figures.agreement.tables import (
    BlockJson,
    BlocksJson,
    BootstrapJson,
    CategoryJson,
    CoefficientsJson,
    FinishedJson,
    HalvingJson,
    LeftOutJson,
    MacroJson,
    ModeJson,
    PairJson,
    RetestJson,
    RoundJson,
    SetsJson,
    TableJson,
    Tables,
    counts_of,
    halving,
    halving_json,
    sets_json,
)
from mast_tui.figures.agreement.verdict_table import UNSURE, VerdictTable, verdict_table
from mast_tui.figures.bootstrap import LEVEL, ROUNDS
from mast_tui.labels import VerdictValue

if TYPE_CHECKING:
    from mast_tui.figures.judge.compare import JudgesComparedJson
    from mast_tui.figures.judge.report import JudgeReport
    from mast_tui.figures.spans.report import SpanReport

__all__ = [
    "CoefficientsJson",
    "MacroJson",
    "ModeJson",
    "PairJson",
    "Report",
    "Retest",
    "StudyInput",
    "TableJson",
    "agreement_report",
    "table_of",
]


@dataclass(frozen=True, slots=True)
class Retest:
    """What one annotator said of some traces at first, and again without sight of that.

    ``first`` and ``again`` are verdicts by (trace id, slug), both on finished ``traces``.
    """

    traces: frozenset[str]
    first: Mapping[tuple[str, str], VerdictValue]
    again: Mapping[tuple[str, str], VerdictValue]


@dataclass(frozen=True, slots=True)
class StudyInput:
    """Whose verdicts are compared, on which modes, and what they said.

    ``modes`` are (slug, code, name) in the taxonomy's order; ``pass_label`` is what the report
    calls the pass (``1``, ``last``). ``verdicts`` are keyed by (annotator, trace id, slug); one
    that is not there is open. Only verdicts by ``annotators``, on ``modes``, in traces that the
    annotator has ``finished`` are counted. ``examples`` is how many traces were left out of a
    judge's figures because they stood in its prompt, ``unfinished`` how many traces an annotator
    has begun without finishing the pass that counts. ``categories`` are (id, name, slugs);
    ``rounds`` the trace ids of each round by its name; ``retests`` come by annotator.
    ``not_in_study`` is how many traces those have finished who are left out, as they have no part
    in the study. Raises ``ValueError`` where an annotator or a mode is named twice.
    """

    taxonomy_ref: str
    modes: tuple[tuple[str, str, str], ...]
    annotators: tuple[str, ...]
    pass_label: str
    verdicts: Mapping[tuple[str, str, str], VerdictValue]
    finished: Mapping[str, frozenset[str]]
    examples: Mapping[str, int] = field(default_factory=dict)
    categories: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    unfinished: Mapping[str, int] = field(default_factory=dict)
    rounds: Mapping[str, frozenset[str]] = field(default_factory=dict)
    retests: Mapping[str, Retest] = field(default_factory=dict)
    not_in_study: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(set(self.annotators)) < len(self.annotators):
            raise ValueError(f"an annotator is named twice: {', '.join(self.annotators)}")
        for place, what in ((0, "slug"), (1, "code")):
            if len({mode[place] for mode in self.modes}) < len(self.modes):
                raise ValueError(f"two modes of {self.taxonomy_ref} have the same {what}")


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
        "spans": "SpanReport | None",
        "judge": "JudgeReport | None",
        "judges": "NotRequired[JudgesComparedJson]",
        "bootstrap": BootstrapJson,
        "categories": dict[str, CategoryJson],
        "sets": SetsJson,
        "blocks": BlocksJson,
        "identical_blocks": list[BlockJson],
        "rounds": dict[str, RoundJson],
        "retests": dict[str, RetestJson],
        "halving": dict[str, HalvingJson],
        "left_out": LeftOutJson,
    },
)


def agreement_report(study: StudyInput, *, rounds: int = ROUNDS, seed: int = 0) -> Report:
    """Make the report of ``agree --json``, ready for any JSON writer; it never holds NaN.

    Per mode, then ``macro`` (means over the modes) and ``pooled`` (all units of traces × modes in
    one table), then per category of modes. Every coefficient has a value, or the reason why it is
    undefined. Fleiss' κ is over the units in which nobody's verdict is missing; ``cohen_kappa``
    of three annotators or more is the mean over the pairs where it is defined.

    Args:
        study: Who said what of which traces.
        rounds: How many resamples of the traces that two annotators or more have finished, the
            same ones for all figures; with none every ``ci`` is None.
        seed: What the resamples are drawn from.

    Returns:
        The document. Its ``spans`` and ``judge`` are None: whoever has the trace files, or a
        judge, fills them in.
    """
    table = table_of(study)
    finished = _finished(study, table)
    shared = np.flatnonzero(finished.sum(axis=0) > 1)
    tables = Tables(study.annotators, table.said, shared.tolist(), rounds, seed)
    blocks = identical_blocks(table.said, finished)
    places = {slug: place for place, (slug, _, _) in enumerate(study.modes)}
    return {
        "taxonomy": study.taxonomy_ref,
        "annotators": list(study.annotators),
        "pass": study.pass_label,
        "traces": _finished_json(study, finished),
        "modes": {
            code: {"slug": slug, "name": name, **tables.mode(places[slug])}
            for slug, code, name in study.modes
        },
        "macro": tables.macro(),
        "pooled": tables.pooled(),
        "spans": None,
        "judge": None,
        "bootstrap": {"rounds": rounds, "seed": seed, "level": LEVEL, "unit": "trace"},
        "categories": _categories(study, tables, places),
        "sets": sets_json(set_agreement(table.said[:, shared], rounds, seed)),
        "blocks": {"traces": blocks.traces, "distinct": blocks.distinct},
        "identical_blocks": [
            {
                "traces": [table.traces[place] for place in block.traces],
                "annotators": [table.annotators[place] for place in block.annotators],
            }
            for block in blocks.identical
        ],
        "rounds": {
            name: _round(table, finished, traces, rounds, seed)
            for name, traces in study.rounds.items()
        },
        "retests": {
            name: _retest(study, retest, rounds, seed)
            for name, retest in study.retests.items()
            if name in study.annotators
        },
        "halving": _halving(study, tables),
        "left_out": _left_out(study, table, finished),
    }


def table_of(study: StudyInput) -> VerdictTable:
    """What each annotator said, over the traces that any of them has finished."""
    slugs = (slug for slug, _, _ in study.modes)
    return verdict_table(study.annotators, slugs, study.finished, study.verdicts)


def _finished(study: StudyInput, table: VerdictTable) -> NDArray[np.bool_]:
    """Annotators × traces: who has finished what."""
    done = [study.finished.get(name, frozenset()) for name in study.annotators]
    rows = [[trace in traces for trace in table.traces] for traces in done]
    return np.array(rows, dtype=np.bool_).reshape(len(done), len(table.traces))


def _finished_json(study: StudyInput, finished: NDArray[np.bool_]) -> FinishedJson:
    traces: FinishedJson = {
        "finished_by_all": int(finished.all(axis=0).sum()) if len(finished) else 0,
        "finished_by_two": int((finished.sum(axis=0) > 1).sum()),
    }
    if study.examples:
        traces["examples_left_out"] = dict(study.examples)
    return traces


def _categories(
    study: StudyInput, tables: Tables, places: Mapping[str, int]
) -> dict[str, CategoryJson]:
    codes = {slug: code for slug, code, _ in study.modes}
    found: dict[str, CategoryJson] = {}
    for ident, name, slugs in study.categories:
        known = [slug for slug in slugs if slug in places]
        found[ident] = {
            "name": name,
            "modes": [codes[slug] for slug in known],
            **tables.pooled([places[slug] for slug in known]),
        }
    return found


def _round(
    table: VerdictTable,
    finished: NDArray[np.bool_],
    traces: frozenset[str],
    rounds: int,
    seed: int,
) -> RoundJson:
    """The figures over some of the traces, resampled among themselves."""
    inside = np.array([trace in traces for trace in table.traces], dtype=np.bool_)
    shared = np.flatnonzero(finished[:, inside].sum(axis=0) > 1)
    tables = Tables(table.annotators, table.said[:, inside], shared.tolist(), rounds, seed)
    return {"traces": len(shared), "macro": tables.macro(), "pooled": tables.pooled()}


def _retest(study: StudyInput, retest: Retest, rounds: int, seed: int) -> RetestJson:
    """An annotator against themselves."""
    slugs = [slug for slug, _, _ in study.modes]
    sides = {"first": retest.first, "retest": retest.again}
    both = {
        (side, trace, slug): value
        for side, said in sides.items()
        for (trace, slug), value in said.items()
    }
    table = verdict_table(sides, slugs, dict.fromkeys(sides, retest.traces), both)
    traces = range(len(table.traces))
    pooled = Tables(table.annotators, table.said, traces, rounds, seed).pooled()
    return {"n_traces": len(table.traces), **pooled["pairs"]["first|retest"]}


def _halving(study: StudyInput, tables: Tables) -> dict[str, HalvingJson]:
    return {
        code: halving_json(halving(tables.coefficients(place)["cohen_kappa"], tables.n(place)))
        for place, (_, code, _) in enumerate(study.modes)
    }


def _left_out(study: StudyInput, table: VerdictTable, finished: NDArray[np.bool_]) -> LeftOutJson:
    names = study.annotators
    alone = finished & (finished.sum(axis=0) == 1)
    opened = (table.said == MISSING) & finished[:, :, None]
    return {
        "unfinished": {name: study.unfinished.get(name, 0) for name in names},
        "examples": {name: study.examples.get(name, 0) for name in names},
        "alone": {name: int(row.sum()) for name, row in zip(names, alone, strict=True)},
        "unsure": counts_of(names, table.said, UNSURE),
        "open": {name: int(row.sum()) for name, row in zip(names, opened, strict=True)},
        "not_in_study": dict(study.not_in_study),
    }

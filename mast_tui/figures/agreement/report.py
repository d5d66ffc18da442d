"""Agreement of annotators on whole traces: from their verdicts to the report of ``agree``.

The unit is trace × mode where two annotators or more have a verdict, in traces that they have
finished. ``present`` and ``absent`` are the two categories. ``unsure`` is no verdict on either
side: it counts as missing, and how often it was said is reported beside the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.capture import CaptureJson, capture_report
from mast_tui.figures.agreement.coefficients import MISSING, Coefficient, CoefficientJson, Undefined
from mast_tui.figures.agreement.counting import (
    Sums,
    TableSums,
    macro_coefficients,
    sums_of,
    table_coefficients,
)
from mast_tui.figures.agreement.duplicated_labels import identical_blocks
from mast_tui.figures.agreement.sets import SetsJson, set_agreement
from mast_tui.figures.agreement.verdict_table import (
    ABSENT,
    PRESENT,
    UNSURE,
    Said,
    VerdictTable,
)
from mast_tui.figures.bootstrap import ROUNDS, BootstrapJson, bootstrap_json
from mast_tui.figures.jackknife import MANY
from mast_tui.taxonomy.model import Group

if TYPE_CHECKING:
    from mast_tui.figures.judge.compare import JudgesComparedJson
    from mast_tui.figures.judge.report import JudgeReport
    from mast_tui.figures.spans.report import SpanReport

NoPlan = Undefined | Literal["no_interval"]


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
    """One mode, or several pooled; ``unsure`` counts that verdict in finished traces.

    ``prevalence_n`` says of how many units each annotator's ``prevalence`` is the share.
    ``n_complete`` are the units that everybody rated, on which alone Fleiss' κ rests.
    ``few_shared_by_pair`` counts the traces in which both of a pair rated a unit; it is None but
    where some two of three or more share few of the traces, so that κ of pairs is pulled down and
    Krippendorff's α is the figure to lead with.
    """

    n_complete: int
    few_shared_by_pair: dict[str, int] | None
    prevalence_n: dict[str, int]
    unsure: dict[str, int]
    pairs: dict[str, PairJson]


class ModeJson(TableJson):
    """One mode, with what it is called."""

    slug: str
    name: str


class CategoryJson(TableJson):
    """The modes of one category pooled: its name, and the codes of its modes."""

    name: str
    modes: list[str]


class MacroJson(CoefficientsJson):
    """Means over the modes where a coefficient is defined, and how many modes those are.

    ``units`` are the traces × modes on which each mean rests.
    """

    modes_defined: dict[str, int]
    units: dict[str, int]


class LevelJson(TypedDict):
    """Categories of one level as they are marked: present where any mode within is, absent where
    all are."""

    categories: dict[str, CategoryJson]
    macro: MacroJson
    pooled: TableJson


class FinishedJson(TypedDict):
    """How many traces every annotator has finished, and how many two or more have.

    ``only_seen_by`` is there where only the traces count that this person may see.
    ``examples_left_out`` counts, by judge, those that stood in its prompt; it is there where some
    did.
    """

    finished_by_all: int
    finished_by_two: int
    only_seen_by: NotRequired[str]
    examples_left_out: NotRequired[dict[str, int]]


class BlockJson(TypedDict):
    """Traces that share one block of verdicts of these annotators."""

    traces: list[str]
    annotators: list[str]


class BlocksJson(TypedDict):
    """How many different blocks of verdicts stand on how many traces that two have finished."""

    traces: int
    distinct: int


class RoundJson(TypedDict):
    """The figures of one round; ``traces`` are those of it that two or more have finished."""

    traces: int
    macro: MacroJson
    pooled: TableJson


class RetestJson(PairJson):
    """An annotator's first pass against their retests, all modes pooled."""

    n_traces: int


class HalvingJson(TypedDict):
    """About how many more traces, labelled twice, would halve the interval of κ."""

    more_traces: int | None
    width: NotRequired[float]
    undefined: NotRequired[NoPlan]


def halving(kappa: Coefficient, n: int) -> HalvingJson:
    """What would halve the interval of a figure that rests on ``n`` traces labelled twice.

    An interval shrinks with one over the square root of the traces, so half of it takes four
    times as many: three times as many more. That holds where the new traces are like the ones
    there are; it is a rule of thumb for planning, not a promise. Undefined for the figure's own
    reason, or with ``no_interval`` where the interval is missing or has no width to halve.
    """
    if kappa.undefined is not None or kappa.ci is None or kappa.ci[1] <= kappa.ci[0]:
        return {"more_traces": None, "undefined": kappa.undefined or "no_interval"}
    return {"more_traces": 3 * n, "width": kappa.ci[1] - kappa.ci[0]}


class LeftOutJson(TypedDict):
    """What no figure rests on, by annotator.

    ``unfinished`` are traces that were begun and have no finished pass of the counted kind,
    ``examples`` those that stood in a judge's prompt, ``alone`` finished ones that no other of the
    annotators has finished. ``unsure`` and ``open`` are verdicts on modes in finished traces.
    ``not_in_study`` are the finished traces of people who have no part in the study, ``open_codes``
    the labels of finished traces that are none of the modes.
    """

    unfinished: dict[str, int]
    examples: dict[str, int]
    alone: dict[str, int]
    unsure: dict[str, int]
    open: dict[str, int]
    not_in_study: dict[str, int]
    open_codes: dict[str, int]


def coefficients_json(coefficients: Mapping[str, Coefficient]) -> CoefficientsJson:
    """The coefficients of a table as JSON objects."""
    return cast("CoefficientsJson", {name: c.to_json() for name, c in coefficients.items()})


class Tables:
    """All tables of what some annotators said, from one counting and the same resamples.

    ``said`` is annotators × traces × modes and ``shared`` says which of the traces two or more
    have finished: these are resampled, ``rounds`` times with ``seed``. ``blocks`` has the same
    number for traces that are copies of each other.
    """

    def __init__(
        self,
        names: Sequence[str],
        said: Said,
        shared: Sequence[int],
        rounds: int,
        seed: int,
        blocks: NDArray[np.int_] | None = None,
    ) -> None:
        self._blocks = blocks
        self._names = tuple(names)
        self._pair_names = tuple(map("|".join, combinations(self._names, 2)))
        self._said = said
        self._sums: Sums = sums_of(said, shared, rounds, seed, blocks=blocks)
        self._alone = self._pairs_alone(shared, rounds, seed)
        self._modes = said.shape[2]
        self._of_mode = [table_coefficients(self._sums.of([m])) for m in range(self._modes)]

    def _pairs_alone(self, shared: Sequence[int], rounds: int, seed: int) -> dict[int, Sums]:
        """The sums over their own traces, of pairs that share fewer than there are.

        Resamples of all the traces, or one of them left out, tell too little of these.
        """
        traces = np.asarray(shared, dtype=np.intp)
        rated = self._said[:, traces] >= 0
        pairs = list(combinations(range(len(self._names)), 2))
        if len(pairs) < 2 or not rounds:
            return {}
        alone: dict[int, Sums] = {}
        for place, (a, b) in enumerate(pairs):
            own = traces[(rated[a] & rated[b]).any(axis=1)]
            if len(own) < min(MANY, len(traces)):
                alone[place] = sums_of(
                    self._said[[a, b]], own.tolist(), rounds, seed, blocks=self._blocks
                )
        return alone

    def halving(self, mode: int) -> HalvingJson:
        """What would halve the interval of one mode's κ."""
        return halving(self._of_mode[mode]["cohen_kappa"], self._sums.of([mode]).n)

    def mode(self, mode: int) -> TableJson:
        """The table of one mode."""
        return self._table([mode], self._of_mode[mode])

    def pooled(self, modes: Sequence[int] | None = None) -> TableJson:
        """Some modes, or all, in one table."""
        chosen = list(range(self._modes)) if modes is None else list(modes)
        return self._table(chosen, table_coefficients(self._sums.of(chosen)))

    def _table(self, chosen: list[int], figures: Mapping[str, Coefficient]) -> TableJson:
        said, table = self._said[:, :, chosen], self._sums.of(chosen)
        pairs = enumerate(combinations(range(len(self._names)), 2))
        shared = zip(self._pair_names, table.pair_traces, strict=True)
        prevalence, prevalence_n = _prevalence(self._names, said)
        return {
            "n": table.n,
            "n_complete": table.complete,
            "prevalence": prevalence,
            "prevalence_n": prevalence_n,
            **coefficients_json(figures),
            "unsure": counts_of(self._names, said, UNSURE),
            "pairs": {
                f"{self._names[a]}|{self._names[b]}": self._pair(
                    self._alone[place].of(chosen) if place in self._alone else table.pair(place),
                    a,
                    b,
                )
                for place, (a, b) in pairs
            },
            "few_shared_by_pair": dict(shared) if table.rotates else None,
        }

    def macro(self) -> MacroJson:
        """The means over the modes."""
        means, defined = macro_coefficients(self._sums, self._of_mode)
        units = {
            name: sum(mode[name].n or 0 for mode in self._of_mode if mode[name].value is not None)
            for name in means
        }
        return {**coefficients_json(means), "modes_defined": defined, "units": units}

    def _pair(self, pair: TableSums, a: int, b: int) -> PairJson:
        both, first, second, _ = pair.pairs[0, 0].tolist()
        n = pair.n
        return {
            "n": n,
            "prevalence": {
                self._names[a]: (both + first) / n if n else None,
                self._names[b]: (both + second) / n if n else None,
            },
            **coefficients_json(table_coefficients(pair)),
        }


def counts_of(names: Sequence[str], said: Said, cell: int) -> dict[str, int]:
    """How often each annotator said one thing."""
    return {name: int((rows == cell).sum()) for name, rows in zip(names, said, strict=True)}


def _prevalence(names: Sequence[str], said: Said) -> tuple[dict[str, float | None], dict[str, int]]:
    """Each annotator's share of 'present' in the units that two or more have rated, and of how
    many of these."""
    rated = said >= 0
    shared = rated.sum(axis=0) > 1
    prevalence: dict[str, float | None] = {}
    units: dict[str, int] = {}
    for name, given, rows in zip(names, rated & shared, said, strict=True):
        n = units[name] = int(given.sum())
        prevalence[name] = int(((rows == PRESENT) & given).sum()) / n if n else None
    return prevalence, units


@dataclass(frozen=True, slots=True)
class StudyInput:
    """Whose verdicts are compared, on which modes, and what they said.

    ``modes`` are (slug, code, name) in the taxonomy's order; ``pass_label`` is what the report
    calls the pass (``1``, ``last``). ``verdicts`` are those of ``annotators`` on ``modes``, over
    the traces that any of them has ``finished``. ``examples`` is how many traces were left out of a
    judge's figures because they stood in its prompt, ``unfinished`` how many traces an annotator
    has begun without finishing the pass that counts. ``categories`` are the topmost
    ones, ``levels`` by name all of each level, none where there is one only; ``rounds`` the trace
    ids of each round by its name; ``retests`` are by annotator their verdicts at first and again,
    without sight of the first, as those of two on the traces that have both.
    ``not_in_study`` is how many traces those have finished who are left out, as they have no part
    in the study, ``open_codes`` how many labels by annotator are none of the modes. ``suggested``
    are the traces, by annotator, in which a judge's suggestions were on screen;
    ``settled_absent`` the traces and modes that were decided to be absent. Raises ``ValueError``
    where an annotator or a mode is named twice.
    """

    taxonomy_ref: str
    modes: tuple[tuple[str, str, str], ...]
    annotators: tuple[str, ...]
    pass_label: str
    verdicts: VerdictTable
    finished: Mapping[str, frozenset[str]]
    examples: Mapping[str, int] = field(default_factory=dict)
    categories: tuple[Group, ...] = ()
    levels: Mapping[str, tuple[Group, ...]] = field(default_factory=dict)
    unfinished: Mapping[str, int] = field(default_factory=dict)
    rounds: Mapping[str, frozenset[str]] = field(default_factory=dict)
    retests: Mapping[str, VerdictTable] = field(default_factory=dict)
    not_in_study: Mapping[str, int] = field(default_factory=dict)
    open_codes: Mapping[str, int] = field(default_factory=dict)
    suggested: Mapping[str, frozenset[str]] = field(default_factory=dict)
    settled_absent: frozenset[tuple[str, str]] = frozenset()

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
        "levels": "NotRequired[dict[str, LevelJson]]",
        "sets": SetsJson,
        "blocks": BlocksJson,
        "identical_blocks": list[BlockJson],
        "rounds": dict[str, RoundJson],
        "retests": dict[str, RetestJson],
        "halving": dict[str, HalvingJson],
        "missed": CaptureJson,
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
    table = study.verdicts
    finished = _finished(study, table)
    shared = np.flatnonzero(finished.sum(axis=0) > 1)
    blocks = identical_blocks(table.said, finished)
    numbers = blocks.numbers(len(table.traces))
    tables = Tables(study.annotators, table.said, shared.tolist(), rounds, seed, numbers)
    places = {slug: place for place, (slug, _, _) in enumerate(study.modes)}
    report: Report = {
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
        "bootstrap": bootstrap_json(rounds, seed),
        "categories": _categories(study, tables, places),
        "sets": set_agreement(table.said[:, shared], rounds, seed, blocks=numbers[shared]),
        "blocks": {"traces": blocks.traces, "distinct": blocks.distinct},
        "identical_blocks": [
            {
                "traces": [table.traces[place] for place in block.traces],
                "annotators": [table.annotators[place] for place in block.annotators],
            }
            for block in blocks.identical
        ],
        "rounds": {
            name: _round(table, finished, traces, rounds, seed, numbers)
            for name, traces in study.rounds.items()
        },
        "retests": {
            name: _retest(retest, rounds, seed)
            for name, retest in study.retests.items()
            if name in study.annotators
        },
        "halving": {code: tables.halving(places[slug]) for slug, code, _ in study.modes},
        "missed": _missed(study, table, intervals=rounds > 0),
        "left_out": _left_out(study, table, finished),
    }
    if study.levels:
        report["levels"] = _levels(study, table, shared.tolist(), rounds, seed, numbers)
    return report


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


def _levels(
    study: StudyInput,
    table: VerdictTable,
    shared: Sequence[int],
    rounds: int,
    seed: int,
    blocks: NDArray[np.int_],
) -> dict[str, LevelJson]:
    """Each level of categories by itself, from the same resamples of traces as the modes."""
    codes = {slug: code for slug, code, _ in study.modes}
    found: dict[str, LevelJson] = {}
    for level, groups in study.levels.items():
        said = [_any_within(table.said[:, :, [slug in of for slug in table.slugs]])
                for _, _, of in groups]  # fmt: skip
        tables = Tables(study.annotators, np.stack(said, axis=2), shared, rounds, seed, blocks)
        found[level] = {
            "categories": {
                ident: {"name": name, "modes": [codes[slug] for slug in of], **tables.mode(place)}
                for place, (ident, name, of) in enumerate(groups)
            },
            "macro": tables.macro(),
            "pooled": tables.pooled(),
        }
    return found


def _any_within(said: Said) -> NDArray[np.int8]:
    """Annotators × traces: what each says of some modes together, open where it depends."""
    present, unsure, open_ = ((said == one).any(axis=2) for one in (PRESENT, UNSURE, MISSING))
    together = np.select([present, open_, unsure], [PRESENT, MISSING, UNSURE], ABSENT)
    return together.astype(np.int8)


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
    blocks: NDArray[np.int_],
) -> RoundJson:
    """The figures over some of the traces, resampled among themselves."""
    inside = np.array([trace in traces for trace in table.traces], dtype=np.bool_)
    shared = np.flatnonzero(finished[:, inside].sum(axis=0) > 1)
    answers = table.said[:, inside]
    tables = Tables(table.annotators, answers, shared.tolist(), rounds, seed, blocks[inside])
    return {"traces": len(shared), "macro": tables.macro(), "pooled": tables.pooled()}


def _retest(table: VerdictTable, rounds: int, seed: int) -> RetestJson:
    """An annotator against themselves."""
    traces = range(len(table.traces))
    pooled = Tables(table.annotators, table.said, traces, rounds, seed).pooled()
    (pair,) = pooled["pairs"].values()
    return {"n_traces": len(table.traces), **pair}


def _missed(study: StudyInput, table: VerdictTable, *, intervals: bool) -> CaptureJson:
    """How many failures nobody found."""
    seen = [study.suggested.get(name, frozenset()) for name in table.annotators]
    suggested = [[trace in traces for trace in table.traces] for traces in seen]
    absent = [[(t, slug) in study.settled_absent for slug in table.slugs] for t in table.traces]
    return capture_report(
        table.annotators,
        {code: place for place, (_, code, _) in enumerate(study.modes)},
        table.said,
        suggested=np.array(suggested, dtype=np.bool_).reshape(table.said.shape[:2]),
        settled_absent=np.array(absent, dtype=np.bool_).reshape(table.said.shape[1:]),
        intervals=intervals,
    )


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
        "open_codes": {name: study.open_codes.get(name, 0) for name in names},
    }

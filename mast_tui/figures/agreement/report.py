"""Agreement of annotators on whole traces.

The unit is trace × mode with verdicts by two annotators or more, in traces that they have finished.
The categories are ``present`` and ``absent``. ``unsure`` counts as missing, and its number is a
figure too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, compress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.capture import Capture, capture
from mast_tui.figures.agreement.counting import (
    ABSENT,
    MISSING,
    PRESENT,
    UNSURE,
    Sums,
    TableSums,
    VerdictArray,
    VerdictTable,
    macro_coefficients,
    numbered_rows,
    sums_of,
    table_coefficients,
)
from mast_tui.figures.agreement.sets import COMPLETE, set_agreement
from mast_tui.figures.bootstrap import RESAMPLING, Resampling
from mast_tui.figures.jackknife import MANY
from mast_tui.figures.judge.compare import JudgeComparison, comparison_json
from mast_tui.figures.judge.report import JudgeReport, judge_json
from mast_tui.figures.record import (
    COEFFICIENTS,
    PAIR,
    Figure,
    FigureIndex,
    FigureScope,
    Sources,
    insert_figures,
    renamed_figures,
    scope_paths,
)
from mast_tui.figures.spans.report import SpanAgreement, spans_json
from mast_tui.taxonomy.model import Group, Mode

PATHS: Final = scope_paths("""
    traces              | traces
    mode                | modes.{mode}
    mode_pair           | modes.{mode}.pairs.{subject}
    macro               | macro                                              | no n
    pooled              | pooled
    pooled_pair         | pooled.pairs.{subject}
    category            | categories.{mode}
    category_pair       | categories.{mode}.pairs.{subject}
    level               | levels.{group}.categories.{mode}
    level_pair          | levels.{group}.categories.{mode}.pairs.{subject}
    level_macro         | levels.{group}.macro                               | no n
    level_pooled        | levels.{group}.pooled
    level_pooled_pair   | levels.{group}.pooled.pairs.{subject}
    sets                | sets                                               | no n
    blocks              | blocks
    round               | rounds.{group}
    round_macro         | rounds.{group}.macro                               | no n
    round_pooled        | rounds.{group}.pooled
    round_pooled_pair   | rounds.{group}.pooled.pairs.{subject}
    retest              | retests.{subject}
    agent               | agents.{subject}
    halving             | halving.{mode}
    missed              | missed.modes.{mode}                                | no n
    missed_pooled       | missed.pooled                                      | no n
    missed_pair         | missed.pairs.{subject}
    missed_together     | missed.together
    missed_left_out     | missed
    left_out            | left_out
""")
"""The paths of the figures in the document of ``agree --json``."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The figures of a study, with the names that belong to them.

    Attributes:
        taxonomy: The taxonomy, as ``id@version``.
        annotators: The names of the compared annotators.
        pass_label: The name of the pass that counts: ``1`` or ``last``.
        modes: The modes.
        categories: The topmost categories with the slugs of their modes.
        levels: All categories of each level by its name; empty for one level only.
        rounds: The names of the rounds.
        retested: The annotators with retests: repeated passes.
        agents: Pairs of an agent and a person who have finished the same traces.
        resampling: The resamples of the intervals.
        identical_blocks: The traces that share one block of verdicts.
        finders: The annotators of the estimate of missed failures.
        finders_dependent: Whether finders depend on each other; None if that cannot be tested.
        finders_alike: Whether finders found more of the same failures than by chance; None if that
            cannot be tested.
        index: The figures of whole traces.
        spans: The figures on places, added by the caller.
        judge: The figures of a judge, added by the caller.
        judges: The comparison of two judges, added by the caller.
        revisions: The changes of the taxonomy, added by the caller.
        only_seen_by: The annotator whose visibility limits the traces.
    """

    taxonomy: str
    annotators: tuple[str, ...]
    pass_label: str
    modes: tuple[Mode, ...]
    categories: tuple[Group, ...]
    levels: Mapping[str, tuple[Group, ...]]
    rounds: tuple[str, ...]
    retested: tuple[str, ...]
    agents: tuple[tuple[str, str], ...]
    resampling: Resampling
    identical_blocks: tuple[VerdictBlock, ...]
    finders: tuple[str, ...]
    finders_dependent: bool | None
    finders_alike: bool | None
    index: FigureIndex
    spans: SpanAgreement | None = None
    judge: JudgeReport | None = None
    judges: JudgeComparison | None = None
    revisions: tuple[Any, ...] | None = None
    only_seen_by: str | None = None

    @property
    def compares_annotators(self) -> bool:
        """True if there are annotators, passes or agents to compare."""
        return bool(len(self.annotators) > 1 or self.retested or self.agents)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The figures of whole traces, then those on places and of judges."""
        parts = (self.spans, self.judge, self.judges)
        figures_of_parts = (part.index.figures for part in parts if part is not None)
        return self.index.figures + tuple(chain.from_iterable(figures_of_parts))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Every pair of annotators."""
        return tuple(combinations(self.annotators, 2))

    def codes(self, slugs: Iterable[str]) -> list[str]:
        """Return the codes of some modes."""
        code_by_slug = {mode.slug: mode.code for mode in self.modes}
        return [code_by_slug[slug] for slug in slugs if slug in code_by_slug]

    def renamed(self, names: Mapping[str, str], in_document: Callable[[Any], Any]) -> Agreement:
        """Return a copy with new names for annotators, sorted by the new names.

        Args:
            names: The new names by the old ones.
            in_document: Replaces the names in a JSON document.
        """

        def sorted_names(old_names: Iterable[str]) -> tuple[str, ...]:
            return tuple(sorted(names.get(name, name) for name in old_names))

        return replace(
            self,
            annotators=sorted_names(self.annotators),
            retested=sorted_names(self.retested),
            agents=tuple((agent, names.get(person, person)) for agent, person in self.agents),
            finders=sorted_names(self.finders),
            identical_blocks=tuple(
                VerdictBlock(block.traces, sorted_names(block.annotators))
                for block in self.identical_blocks
            ),
            index=FigureIndex(renamed_figures(self.index.figures, names)),
            spans=self.spans and self.spans.renamed(names),
            judge=self.judge and self.judge.renamed(names, in_document),
            judges=self.judges and self.judges.renamed(names),
            revisions=in_document(self.revisions),
            only_seen_by=self.only_seen_by and names.get(self.only_seen_by, self.only_seen_by),
        )


def agreement_json(agreement: Agreement) -> dict[str, Any]:
    """Return the JSON document of ``agree --json``, which has no NaN."""
    # Figures replace the zeros and empty objects later.
    document: dict[str, Any] = {
        "taxonomy": agreement.taxonomy,
        "annotators": list(agreement.annotators),
        "pass": agreement.pass_label,
        "traces": {},
        "modes": {
            mode.code: {"slug": mode.slug, "name": mode.name, **_empty_table()}
            for mode in agreement.modes
        },
        "macro": {},
        "pooled": _empty_table(),
        "spans": None if agreement.spans is None else spans_json(agreement.spans),
        "judge": None if agreement.judge is None else judge_json(agreement.judge),
        "bootstrap": agreement.resampling.to_json(),
        "categories": _categories_json(agreement, agreement.categories),
        "sets": {},
        "blocks": {},
        "identical_blocks": [
            {"traces": list(block.traces), "annotators": list(block.annotators)}
            for block in agreement.identical_blocks
        ],
        "rounds": {
            name: {"traces": 0, "macro": {}, "pooled": _empty_table()} for name in agreement.rounds
        },
        "retests": {},
        "agents": {},
        "halving": {},
        "missed": {
            "finders": list(agreement.finders),
            "modes": {},
            "pooled": {},
            "pairs": {},
            "together": {"p_value": None, "alike": agreement.finders_alike},
            "dependent": agreement.finders_dependent,
            "with_suggestions": {},
            "settled_absent": 0,
        },
        "left_out": {name: {} for name in _LEFT_OUT},
    }
    if agreement.levels:
        document["levels"] = {
            level: {
                "categories": _categories_json(agreement, groups),
                "macro": {},
                "pooled": _empty_table(),
            }
            for level, groups in agreement.levels.items()
        }
    insert_figures(agreement.index.figures, PATHS, document)
    if agreement.only_seen_by is not None:
        document["traces"]["only_seen_by"] = agreement.only_seen_by
    if agreement.judges is not None:
        document["judges"] = comparison_json(agreement.judges)
    if agreement.revisions is not None:
        document["revisions"] = list(agreement.revisions)
    return document


_LEFT_OUT: Final = (
    "unfinished", "examples", "alone", "unsure", "open", "not_in_study", "open_codes",
)  # fmt: skip
"""The counts of traces, verdicts and labels that are left out of all figures."""


def _empty_table() -> dict[str, Any]:
    """Return the keys of a table of agreement with empty values."""
    return {
        "n": 0,
        "n_complete": 0,
        "prevalence": {},
        "prevalence_n": {},
        **dict.fromkeys(COEFFICIENTS),
        "unsure": {},
        "pairs": {},
        "few_shared_by_pair": None,
    }


def _categories_json(agreement: Agreement, categories: Iterable[Group]) -> dict[str, Any]:
    """Return categories by id with their names, the codes of their modes, and empty tables."""
    return {
        category_id: {"name": name, "modes": agreement.codes(slugs), **_empty_table()}
        for category_id, name, slugs in categories
    }


def more_traces(scope: FigureScope, kappa: Figure, n: int) -> Iterator[Figure]:
    """Yield the number of further traces, labelled twice, that would halve the interval of κ.

    An interval shrinks with the square root of the number of traces, so half its width needs three
    times as many further traces. This rule of thumb assumes that new traces are like the present
    ones.

    Args:
        scope: The scope of the mode.
        kappa: The κ of the mode.
        n: The number of traces on which κ rests.

    Yields:
        The number of further traces, then the width of the present interval.
    """
    low, high = kappa.interval or (0.0, 0.0)
    if kappa.undefined is not None or high <= low:
        yield scope.number("more_traces", None, reason=kappa.undefined or "no_interval")
        return
    yield scope.number("more_traces", 3 * n, n=n)
    yield scope.number("width", high - low)


class AgreementTables:
    """The tables of some annotators' verdicts, all with the same resamples.

    Args:
        names: The annotators.
        verdicts: The verdicts, annotators × traces × modes.
        shared_traces: The indices of the traces that two annotators or more have finished.
        resampling: The resamples of the shared traces.
        blocks: A number for each trace, the same for copies.
    """

    def __init__(
        self,
        names: Sequence[str],
        verdicts: VerdictArray,
        shared_traces: Sequence[int],
        resampling: Resampling,
        blocks: NDArray[np.int_] | None = None,
    ) -> None:
        self._blocks = blocks
        self._names = tuple(names)
        self._verdicts = verdicts
        self._shared_traces = shared_traces
        self._sums: Sums = sums_of(verdicts, shared_traces, resampling, blocks=blocks)
        self._sums_by_pair = self._sums_of_pairs(shared_traces, resampling)
        self._mode_count = verdicts.shape[2]
        self._coefficients_by_mode = [
            table_coefficients(self._sums.of_modes([mode])) for mode in range(self._mode_count)
        ]

    def _sums_of_pairs(
        self, shared_traces: Sequence[int], resampling: Resampling
    ) -> dict[int, Sums]:
        """Return the sums of the pairs that are resampled over their own traces, by pair index.

        These pairs share neither all traces nor ``MANY``, so resamples of all traces may have too
        few of their traces.
        """
        traces = np.asarray(shared_traces, dtype=np.intp)
        has_verdict = self._verdicts[:, traces] >= 0
        pairs = list(combinations(range(len(self._names)), 2))
        # A single pair shares all traces.
        if len(pairs) < 2 or not resampling.count:
            return {}
        sums_by_pair: dict[int, Sums] = {}
        for pair_number, (first, second) in enumerate(pairs):
            both_rated = has_verdict[first] & has_verdict[second]
            pair_traces = traces[both_rated.any(axis=1)]
            if len(pair_traces) < min(MANY, len(traces)):
                sums_by_pair[pair_number] = sums_of(
                    self._verdicts[[first, second]],
                    pair_traces.tolist(),
                    resampling,
                    blocks=self._blocks,
                )
        return sums_by_pair

    def halving(self, mode: int, scope: FigureScope) -> Iterator[Figure]:
        """Yield the number of further traces that would halve the interval of κ of one mode.

        Args:
            mode: The index of the mode.
            scope: The scope of the figures.
        """
        yield from more_traces(
            scope, self._coefficients_by_mode[mode]["cohen_kappa"], self._sums.of_modes([mode]).n
        )

    def figures(self, scope: FigureScope, modes: Sequence[int] | None = None) -> Iterator[Figure]:
        """Yield the figures of all annotators on some modes together, then those of each pair.

        Args:
            scope: The scope of the figures.
            modes: The indices of the modes; None for all.
        """
        mode_indices = list(range(self._mode_count)) if modes is None else list(modes)
        verdicts = self._verdicts[:, :, mode_indices]
        sums = self._sums.of_modes(mode_indices)
        coefficients = (
            self._coefficients_by_mode[mode_indices[0]]
            if len(mode_indices) == 1
            else table_coefficients(sums)
        )
        yield scope.number("n", sums.n)
        yield scope.number("n_complete", sums.complete_units)
        yield from _prevalence_figures(self._names, verdicts, scope)
        for name, coefficient in coefficients.items():
            yield scope.figure(name, coefficient)
        shared_verdicts = verdicts[:, self._shared_traces]
        yield from scope.numbers("unsure", counts_of(self._names, shared_verdicts, UNSURE))
        for pair_number, pair in enumerate(combinations(self._names, 2)):
            # A pair that shares few of the traces is resampled over its own traces.
            pair_sums = (
                self._sums_by_pair[pair_number].of_modes(mode_indices)
                if pair_number in self._sums_by_pair
                else sums.pair(pair_number)
            )
            yield from _pair_figures(pair_sums, scope.of_pair(pair), pair)
        # Then κ of all annotators has no interval.
        if sums.has_pairs_with_few_traces:
            keys = map(PAIR.join, combinations(self._names, 2))
            yield from scope.numbers(
                "few_shared_by_pair", dict(zip(keys, sums.pair_trace_counts, strict=True))
            )

    def macro(self, scope: FigureScope) -> Iterator[Figure]:
        """Yield the means over the modes, then the numbers of modes and of units of each mean."""
        means = macro_coefficients(self._sums, self._coefficients_by_mode)
        for statistic, mean in means.items():
            yield scope.figure(statistic, mean)
        for statistic, mean in means.items():
            yield scope.number("modes_defined", mean.n, condition=statistic)
        for statistic in means:
            unit_count = sum(
                coefficients[statistic].n or 0
                for coefficients in self._coefficients_by_mode
                if coefficients[statistic].value is not None
            )
            yield scope.number("units", unit_count, condition=statistic)


def _pair_figures(sums: TableSums, scope: FigureScope, names: Sequence[str]) -> Iterator[Figure]:
    """Yield the figures of two annotators."""
    # The first row counts all traces, and the table has a single pair.
    both_count, first_only, second_only, _ = sums.pairs[0, 0].tolist()
    n = sums.n
    yield scope.number("n", n)
    for name, only_count in zip(names, (first_only, second_only), strict=True):
        share = (both_count + only_count) / n if n else None
        yield scope.number(
            "prevalence", share, condition=name, n=n, reason="" if n else "no_overlap"
        )
    for statistic, coefficient in table_coefficients(sums).items():
        yield scope.figure(statistic, coefficient)


def counts_of(names: Sequence[str], verdicts: VerdictArray, cell: int) -> dict[str, int]:
    """Return how often each annotator gave an answer.

    Args:
        names: The annotators.
        verdicts: The verdicts, annotators × traces × modes.
        cell: The answer as a cell of ``verdicts``, such as ``UNSURE``.
    """
    return {name: int((rows == cell).sum()) for name, rows in zip(names, verdicts, strict=True)}


def _prevalence_figures(
    names: Sequence[str], verdicts: VerdictArray, scope: FigureScope
) -> Iterator[Figure]:
    """Yield each annotator's share of present among the shared units that the annotator rated."""
    has_verdict = verdicts >= 0
    is_counted = has_verdict & (has_verdict.sum(axis=0) > 1)
    unit_counts = is_counted.sum(axis=(1, 2)).tolist()
    present_counts = ((verdicts == PRESENT) & is_counted).sum(axis=(1, 2)).tolist()
    for name, n, present_count in zip(names, unit_counts, present_counts, strict=True):
        share = present_count / n if n else None
        yield scope.number(
            "prevalence", share, annotator=name, n=n, reason="" if n else "no_overlap"
        )
    yield from scope.numbers("prevalence_n", dict(zip(names, unit_counts, strict=True)))


@dataclass(frozen=True, slots=True)
class StudyInput:
    """The verdicts of annotators, as the input of the figures of agreement.

    Attributes:
        taxonomy_ref: The taxonomy, as ``id@version``.
        modes: The modes, in the taxonomy's order.
        annotators: The names of the annotators.
        pass_label: The name of the pass that counts: ``1`` or ``last``.
        verdicts: The verdicts on the traces that any annotator has finished.
        finished: The finished traces of each annotator.
        examples: The number of traces of each judge that were examples in its prompt.
        categories: The topmost categories with the slugs of their modes.
        levels: All categories of each level by its name; empty for one level only.
        unfinished: The number of traces that each annotator has begun and not finished.
        rounds: The trace ids of each round by its name.
        retests: The first and the repeated verdicts of each annotator, as two rows of a table.
        agents: For each pair of an agent and a person, the verdicts on the traces that both have
            finished.
        not_in_study: The number of finished traces of each person outside the study.
        open_codes: The number of labels without a mode, by annotator.
        suggested: The traces on which a judge's suggestions were on screen, by annotator.
        settled_absent: The (trace, mode) that were adjudicated as absent.

    Raises:
        ValueError: An annotator or a mode is named twice.
    """

    taxonomy_ref: str
    modes: tuple[Mode, ...]
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
    agents: tuple[VerdictTable, ...] = ()
    not_in_study: Mapping[str, int] = field(default_factory=dict)
    open_codes: Mapping[str, int] = field(default_factory=dict)
    suggested: Mapping[str, frozenset[str]] = field(default_factory=dict)
    settled_absent: frozenset[tuple[str, str]] = frozenset()

    def __post_init__(self) -> None:
        if len(set(self.annotators)) < len(self.annotators):
            raise ValueError(f"an annotator is named twice: {', '.join(self.annotators)}")
        for field_name in ("slug", "code"):
            if len({getattr(mode, field_name) for mode in self.modes}) < len(self.modes):
                raise ValueError(f"two modes of {self.taxonomy_ref} have the same {field_name}")


def agreement_figures(study: StudyInput, resampling: Resampling = RESAMPLING) -> Agreement:
    """Compute the agreement of annotators.

    There are figures for each mode, for ``macro`` (means over the modes), for ``pooled`` (all
    traces × modes in one table), and for each category of modes.

    Args:
        study: The verdicts of the annotators.
        resampling: The resamples of the traces; none for no intervals.
    """
    verdict_table = study.verdicts
    finished_sets = (study.finished.get(name, frozenset()) for name in study.annotators)
    finished_mask = _mask(finished_sets, verdict_table.traces)
    blocks = identical_blocks(verdict_table, finished_mask)
    missed = _missed_failures(study, verdict_table, with_intervals=resampling.count > 0)
    return Agreement(
        taxonomy=study.taxonomy_ref,
        annotators=study.annotators,
        pass_label=study.pass_label,
        modes=study.modes,
        categories=study.categories,
        levels=study.levels,
        rounds=tuple(study.rounds),
        retested=tuple(name for name in study.retests if name in study.annotators),
        # Each of these tables has two annotators: an agent and a person.
        agents=tuple((table.annotators[0], table.annotators[1]) for table in study.agents),
        resampling=resampling,
        identical_blocks=blocks.identical,
        finders=missed.finders,
        finders_dependent=missed.finders_dependent,
        finders_alike=missed.finders_alike,
        index=FigureIndex(
            (
                *_study_figures(_ResampledStudy(study, finished_mask, blocks, resampling)),
                *missed.figures,
            )
        ),
    )


@dataclass(frozen=True, slots=True)
class _ResampledStudy:
    """A study with its finished traces (annotators × traces) and the settings of resampling."""

    study: StudyInput
    finished: NDArray[np.bool_]
    blocks: Blocks
    resampling: Resampling

    @property
    def block_numbers(self) -> NDArray[np.int_]:
        """A number for each trace, the same for copies."""
        return self.blocks.numbers(self.study.verdicts.traces)

    @property
    def shared_traces(self) -> NDArray[np.intp]:
        """The indices of the traces that two annotators or more have finished."""
        return np.flatnonzero(self.finished.sum(axis=0) > 1)

    def tables(self, verdicts: VerdictArray) -> AgreementTables:
        """Return the tables of agreement over verdicts (annotators × all traces × modes)."""
        return AgreementTables(
            names=self.study.annotators,
            verdicts=verdicts,
            shared_traces=self.shared_traces.tolist(),
            resampling=self.resampling,
            blocks=self.block_numbers,
        )

    def scope(
        self,
        name: str,
        slugs: Sequence[str],
        *,
        group: str = "",
        mode: str = "",
        where: tuple[tuple[str, str], ...] = (),
    ) -> FigureScope:
        """Return the scope of figures on the annotators' verdicts.

        Args:
            name: The name of the scope, such as ``pooled``.
            slugs: The slugs of the modes on which its figures rest.
            group: The name of the round or level.
            mode: The code of a mode, or the id of a category.
            where: The conditions of the traces.
        """
        return FigureScope(
            name,
            self.study.taxonomy_ref,
            group,
            mode,
            sources=Sources("people", tuple(slugs), group=group, where=where),
        )


def _study_figures(resampled_study: _ResampledStudy) -> Iterator[Figure]:
    """Yield all figures but those of missed failures, in the order of the document."""
    study = resampled_study.study
    table = study.verdicts
    columns = {mode.slug: column for column, mode in enumerate(study.modes)}
    slugs = tuple(columns)
    yield from _finished_figures(resampled_study)
    tables = resampled_study.tables(table.verdicts)
    for column, mode in enumerate(study.modes):
        scope = resampled_study.scope("mode", [mode.slug], mode=mode.code)
        yield from tables.figures(scope, [column])
    yield from tables.macro(resampled_study.scope("macro", slugs))
    yield from tables.figures(resampled_study.scope("pooled", slugs))
    for category_id, _, modes_of_category in study.categories:
        category_slugs = [slug for slug in modes_of_category if slug in columns]
        scope = resampled_study.scope("category", category_slugs, mode=category_id)
        yield from tables.figures(scope, [columns[slug] for slug in category_slugs])
    yield from set_agreement(
        table.verdicts[:, resampled_study.shared_traces],
        resampled_study.resampling,
        blocks=resampled_study.block_numbers[resampled_study.shared_traces],
        scope=resampled_study.scope("sets", slugs, where=(COMPLETE,)),
    )
    blocks = resampled_study.blocks
    block_counts = {"traces": blocks.traces, "distinct": blocks.distinct}
    yield from resampled_study.scope("blocks", slugs).counts(block_counts)
    for name, traces in study.rounds.items():
        yield from _round_figures(resampled_study, name, traces)
    for name, retest in study.retests.items():
        if name in study.annotators:
            yield from _figures_of_two_rows(resampled_study, "retest", (name,), retest)
    for agent_table in study.agents:
        yield from _figures_of_two_rows(
            resampled_study, "agent", agent_table.annotators, agent_table
        )
    for column, mode in enumerate(study.modes):
        scope = resampled_study.scope("halving", [mode.slug], mode=mode.code)
        yield from tables.halving(column, scope)
    yield from _left_out_figures(resampled_study)
    for level, groups in study.levels.items():
        yield from _level_figures(resampled_study, level, groups)


def _mask(sets: Iterable[Container[str]], items: Sequence[str]) -> NDArray[np.bool_]:
    """Return for each set (row) and item (column) whether the set contains the item."""
    rows = [[item in members for item in items] for members in sets]
    return np.array(rows, dtype=np.bool_).reshape(len(rows), len(items))


def _finished_figures(resampled_study: _ResampledStudy) -> Iterator[Figure]:
    """Yield the numbers of traces finished by all annotators, by two or more, and left out.

    Traces that were examples in the prompt of a judge are left out.
    """
    scope = resampled_study.scope("traces", ())
    finished = resampled_study.finished
    # Without annotators, ``all`` would be true of every trace.
    by_all = int(finished.all(axis=0).sum()) if len(finished) else 0
    yield scope.number("finished_by_all", by_all)
    yield scope.number("finished_by_two", int((finished.sum(axis=0) > 1).sum()))
    yield from scope.numbers("examples_left_out", resampled_study.study.examples)


def _level_figures(
    resampled_study: _ResampledStudy, level: str, groups: Sequence[Group]
) -> Iterator[Figure]:
    """Yield the figures of a level of the taxonomy, where each category counts as one mode."""
    table = resampled_study.study.verdicts
    verdicts_by_category = [
        _verdicts_on_category(table.verdicts[:, :, [slug in slugs for slug in table.slugs]])
        for _, _, slugs in groups
    ]
    tables = resampled_study.tables(np.stack(verdicts_by_category, axis=2))
    for index, (category_id, _, slugs) in enumerate(groups):
        scope = resampled_study.scope("level", slugs, group=level, mode=category_id)
        yield from tables.figures(scope, [index])
    all_slugs = [slug for _, _, slugs in groups for slug in slugs]
    yield from tables.macro(resampled_study.scope("level_macro", all_slugs, group=level))
    yield from tables.figures(resampled_study.scope("level_pooled", all_slugs, group=level))


def _verdicts_on_category(verdicts: VerdictArray) -> NDArray[np.int8]:
    """Join the verdicts on a category's modes into one verdict, as annotators × traces.

    The category is present if any mode is, and absent only if all modes are. An open mode comes
    before an unsure one. ``verdicts`` is annotators × traces × modes.
    """
    is_present, is_open, is_unsure = (
        (verdicts == cell).any(axis=2) for cell in (PRESENT, MISSING, UNSURE)
    )
    category_verdicts = np.select(
        [is_present, is_open, is_unsure], [PRESENT, MISSING, UNSURE], ABSENT
    )
    return category_verdicts.astype(np.int8)


def _round_figures(
    resampled_study: _ResampledStudy, round_name: str, traces: frozenset[str]
) -> Iterator[Figure]:
    """Yield the figures of a round of the study, over its own traces."""
    table = resampled_study.study.verdicts
    in_round = np.array([trace in traces for trace in table.traces], dtype=np.bool_)
    shared_traces = np.flatnonzero(resampled_study.finished[:, in_round].sum(axis=0) > 1)
    tables = AgreementTables(
        names=table.annotators,
        verdicts=table.verdicts[:, in_round],
        shared_traces=shared_traces.tolist(),
        resampling=resampled_study.resampling,
        blocks=resampled_study.block_numbers[in_round],
    )
    yield resampled_study.scope("round", table.slugs, group=round_name).number(
        "traces", len(shared_traces)
    )
    yield from tables.macro(resampled_study.scope("round_macro", table.slugs, group=round_name))
    yield from tables.figures(resampled_study.scope("round_pooled", table.slugs, group=round_name))


def _figures_of_two_rows(
    resampled_study: _ResampledStudy, scope_name: str, subject: tuple[str, ...], table: VerdictTable
) -> Iterator[Figure]:
    """Yield the agreement of the two rows of a table, all modes pooled.

    The rows are the verdicts of an annotator's first pass and retest, or of an agent and a person.
    """
    sums = sums_of(table.verdicts, range(len(table.traces)), resampled_study.resampling)
    scope = replace(resampled_study.scope(scope_name, table.slugs), subject=subject)
    yield scope.number("n_traces", len(table.traces))
    yield from _pair_figures(sums.everything().pair(pair_number=0), scope, table.annotators)


def _missed_failures(study: StudyInput, table: VerdictTable, *, with_intervals: bool) -> Capture:
    """Estimate the number of failures that no annotator found."""
    suggested_traces = (study.suggested.get(name, frozenset()) for name in table.annotators)
    # By trace, the modes that were adjudicated as absent.
    absent_slugs: dict[str, set[str]] = {trace: set() for trace in table.traces}
    for trace, slug in study.settled_absent:
        absent_slugs.setdefault(trace, set()).add(slug)
    return capture(
        table.annotators,
        {mode.code: column for column, mode in enumerate(study.modes)},
        table.verdicts,
        suggested=_mask(suggested_traces, table.traces),
        settled_absent=_mask((absent_slugs[trace] for trace in table.traces), table.slugs),
        with_intervals=with_intervals,
        taxonomy=study.taxonomy_ref,
    )


def _left_out_figures(resampled_study: _ResampledStudy) -> Iterator[Figure]:
    """Yield the numbers of traces, verdicts and labels left out of all figures, by annotator.

    - ``unfinished``: traces that the annotator has begun and not finished.
    - ``examples``: traces that were examples in a judge's prompt.
    - ``alone``: finished traces that no other annotator has finished.
    - ``unsure``: verdicts on modes; ``open``: modes without a verdict in finished traces. Those in
      traces that are left out as ``alone`` are not counted again.
    - ``not_in_study``: finished traces of people outside the study.
    - ``open_codes``: labels in finished traces that have no mode.
    """
    study = resampled_study.study
    names = study.annotators
    finished = resampled_study.finished
    finished_alone = finished & (finished.sum(axis=0) == 1)
    shared_traces = resampled_study.shared_traces
    verdicts = study.verdicts.verdicts[:, shared_traces]
    left_open = (verdicts == MISSING) & finished[:, shared_traces, None]
    by_statistic: dict[str, Mapping[str, int]] = {
        "unfinished": {name: study.unfinished.get(name, 0) for name in names},
        "examples": {name: study.examples.get(name, 0) for name in names},
        "alone": {name: int(row.sum()) for name, row in zip(names, finished_alone, strict=True)},
        "unsure": counts_of(names, verdicts, UNSURE),
        "open": {name: int(row.sum()) for name, row in zip(names, left_open, strict=True)},
        "not_in_study": study.not_in_study,
        "open_codes": {name: study.open_codes.get(name, 0) for name in names},
    }
    scope = resampled_study.scope("left_out", ())
    for statistic in _LEFT_OUT:
        yield from scope.numbers(statistic, by_statistic[statistic])


# Traces that share all verdicts of all annotators, beyond chance.
#
# Records that were copied by mistake, or labelled together, look like perfect agreement. They share
# a block of verdicts: annotators × modes, open and unsure included.
#
# A shared block is reported under two conditions. Two modes or more are present in it, because one
# mode in many traces is no sign of a copy. And with independent modes, as many traces would share a
# block in fewer than one of twenty studies. Correlated modes make shared blocks likelier, so a
# reported block is a reason to look at the traces, not a proof.


_MOST_CHANCE: Final = 0.05
_LEAST_PRESENT: Final = 2


@dataclass(frozen=True, slots=True)
class VerdictBlock:
    """Traces that share one block: all verdicts of these annotators are equal."""

    traces: tuple[str, ...]
    annotators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of verdicts of a study.

    Attributes:
        traces: The number of traces that two annotators or more have finished.
        distinct: The number of different blocks on these traces.
        identical: The blocks that several traces share, the greatest first.
    """

    traces: int
    distinct: int
    identical: tuple[VerdictBlock, ...]

    def numbers(self, traces: Sequence[str]) -> NDArray[np.int_]:
        """Return a number for each trace of the study, the same for traces that share a block."""
        number_by_trace = {trace: number for number, trace in enumerate(traces)}
        for block in self.identical:
            number_by_trace |= dict.fromkeys(block.traces, number_by_trace[block.traces[0]])
        return np.array([number_by_trace[trace] for trace in traces], dtype=np.int_)


def identical_blocks(table: VerdictTable, finished: NDArray[np.bool_]) -> Blocks:
    """Return the blocks of verdicts that several traces share, unless chance explains them.

    A block is all verdicts of all annotators on one trace.

    Args:
        table: The verdicts of the annotators.
        finished: Annotators × traces: whether the annotator has finished the trace.
    """
    mode_count = table.verdicts.shape[2]
    traces = np.flatnonzero(finished.sum(axis=0) > 1)
    if not traces.size or not mode_count:
        return Blocks(len(traces), len(traces), ())
    # Traces × modes × annotators.
    cells = table.verdicts[:, traces].transpose(1, 2, 0)
    has_finished = np.broadcast_to(finished.T[traces][:, None, :], cells.shape)
    # Different from all cells of finished traces, also from those of open and unsure modes.
    unfinished = np.int8(min(MISSING, UNSURE) - 1)
    answers = np.where(has_finished, cells, unfinished)
    # Traces × modes: a number for each joint answer of the annotators.
    answer_numbers = np.stack(
        [numbered_rows(answers[:, mode]) for mode in range(mode_count)], axis=1
    )
    block_numbers = numbered_rows(answer_numbers)
    trace_counts = np.bincount(block_numbers)
    answer_counts = [np.bincount(numbers) for numbers in answer_numbers.T]
    shared_blocks = []
    for block_number in np.flatnonzero(trace_counts > 1).tolist():
        rows_of_block = np.flatnonzero(block_numbers == block_number)
        first_row = int(rows_of_block[0])
        present_mode_count = (answers[first_row] == PRESENT).any(axis=1).sum()
        chance = _chance_of_copies(answer_numbers[first_row], answer_counts, len(rows_of_block))
        # With many blocks, one of them is more often shared by chance (Bonferroni).
        if present_mode_count >= _LEAST_PRESENT and chance * len(trace_counts) < _MOST_CHANCE:
            shared_blocks.append(
                VerdictBlock(
                    tuple(table.traces[trace] for trace in traces[rows_of_block].tolist()),
                    tuple(compress(table.annotators, finished[:, traces[first_row]])),
                )
            )
    shared_blocks.sort(key=lambda block: (-len(block.traces), block.traces))
    return Blocks(len(traces), len(trace_counts), tuple(shared_blocks))


def _chance_of_copies(
    block: NDArray[np.int_], answer_counts: list[NDArray[np.int_]], traces_with_block: int
) -> float:
    """Return a bound on the chance that as many traces have a block, if modes are independent.

    ``block`` has the number of the annotators' joint answer on each mode, and ``answer_counts`` the
    number of traces with each joint answer. Two traces or more have the block.
    """
    trace_count = int(answer_counts[0].sum())
    # The chances are from the traces without the block. One trace with the answer and one without
    # it are added, so that no chance is 0.
    log_chances = [
        math.log(
            (int(counts[answer]) - traces_with_block + 1) / (trace_count - traces_with_block + 2)
        )
        for answer, counts in zip(block.tolist(), answer_counts, strict=True)
    ]
    expected = math.exp(sum(log_chances)) * trace_count
    # Chernoff's bound for a Poisson variable.
    others = traces_with_block - 1
    if expected >= others:
        return 1.0
    return math.exp(others - expected + others * math.log(expected / others))

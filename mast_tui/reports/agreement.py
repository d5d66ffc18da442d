"""Tables and sentences on the agreement of annotators on whole traces.

Agreement on places is in ``span_agreement.py``, that of a judge in ``judge.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from mast_tui import __version__
from mast_tui.counts import counted
from mast_tui.figures.agreement.capture import ALPHA
from mast_tui.figures.agreement.report import Agreement, VerdictBlock, agreement_json
from mast_tui.figures.jackknife import MANY
from mast_tui.figures.record import COEFFICIENTS, PAIR, STATISTICS, Figure, FigureTable
from mast_tui.figures.spans.report import SpanAgreement
from mast_tui.grouping import values_by_key
from mast_tui.reports.judge import judge_section
from mast_tui.reports.model import (
    CODE,
    MODE,
    Cell,
    Column,
    KeyFact,
    Kind,
    Note,
    Report,
    ReportSection,
    Row,
    Table,
    columns,
    existing_parts,
    figure_cell,
    figure_cells,
)
from mast_tui.reports.render.cells import NONE, WITHHELD, fixed_number
from mast_tui.reports.sentences import (
    applicable,
    fact,
    in_words,
    intervals_note,
    joined_names,
    macro_note,
    of_pair,
    p_words,
    paradox_mark,
    paradox_note,
    percent,
    why_undefined,
    withheld_notes,
)
from mast_tui.reports.span_agreement import places_section
from mast_tui.taxonomy.model import Group
from mast_tui.workspace.registers.taxonomies import revision_words

_COLUMNS: Final = tuple(
    Column(one.name, one.title, Kind.NUMBER, one.label, one.priority)
    for one in map(STATISTICS.__getitem__, COEFFICIENTS)
    if one.priority
)
"""The coefficients that tables show, in the order of the columns.

Names of modes are cut to make room for the interval of the coefficient with the highest priority.
"""

_OWN_N_NOTES: Final = {
    "cohen_kappa": ("Mean κ covers only the pairs for which κ is defined", "n_of_pairs"),
    "fleiss_kappa": ("Fleiss' κ covers only units with verdicts by all", "n_complete"),
}
"""The sentence and the reason of the note on a coefficient with another n than the row."""

_LOWERED_BY_FEW_SHARED: Final = ("cohen_kappa", "fleiss_kappa")
"""The coefficients that are too low or undefined if pairs share few traces."""

_LEADS: Final = 99
"""The priority of the most important coefficient."""

_LAST: Final = 41
"""The priority of coefficients that are too low because pairs share few traces."""

_HEADLINE: Final = ("cohen_kappa", "krippendorff_alpha", "gwet_ac1")
_KAPPA: Final = "cohen_kappa"
_FLEISS: Final = "fleiss_kappa"

COPIED: Final = "!"
_COPIED_MARK: Final = Note(
    f"{COPIED} pooled: includes traces with identical sets of verdicts.", "identical_blocks"
)

MOST_NAMED: Final = 12
"""The number of traces of a block that are named."""

_PASSES: Final = {"1": "first finish", "last": "last finish"}

_UNDEFINED: Final = {
    "no_variance": "all verdicts are equal, so agreement cannot be distinguished from chance",
    "no_overlap": "no trace has verdicts by two annotators",
    "single_trace": "chance agreement cannot be estimated from a single trace",
    "single_rater": "only one annotator gave verdicts",
}
_UNDEFINED_SETS: Final = {
    "no_variance": "all sets are equal, so agreement cannot be distinguished from chance",
    "no_overlap": "no trace has verdicts on every mode by two annotators",
    "single_trace": "chance agreement cannot be estimated from a single trace",
    "single_rater": "only one annotator gave verdicts on every mode of a trace",
}
_NO_VARIANCE: Final = {
    "positive agreement": "no annotator gave the verdict present",
    "negative agreement": "no annotator gave the verdict absent",
}

_N: Final = Column("n", "n", Kind.COUNT, "compared (n)", priority=97)
_TRACES: Final = Column("traces", "traces", Kind.COUNT, priority=98)
_LOW_KAPPA: Final = "Pairs share few traces, so κ of a pair is too low."
_N_POOLED: Final = Note("n: traces × modes with verdicts by two or more annotators.", "n")
_ANY_WITHIN: Final = Note(
    "A category is present if any of its modes is present, and absent if all of them are absent.",
    "any_within",
)
_PRESENT: Final = Column(
    "prevalence", "present", Kind.TEXT, "share of present verdicts", priority=40
)
_MISSED: Final = columns("""
    n           | n           | count | traces × modes with verdicts by two or more | 90
    found       | found       | count | failures found by one or more               | 95
    found_once  | by one      | count | failures found by exactly one               | 60
    missed      | missed      | text  | failures missed by all, estimated           | 99
    share_found | share found | share | share of all failures found, estimated      | 98
""")


class HiddenTraces(NamedTuple):
    """The traces left out because an annotator may not see others' labels on them."""

    annotator: str
    trace_count: int


def agreement_report(agreement: Agreement, *, hidden: HiddenTraces | None = None) -> Report:
    """Return the report of the command ``agree``.

    Args:
        agreement: The figures of whole traces, and those of places and of a judge if computed.
        hidden: The traces hidden from the reader; None if nothing is hidden.
    """
    spans = agreement.spans
    judge = agreement.judge
    modes = modes_section(agreement)
    sections = [
        replace(modes, facts=()),  # the facts are at the head of the whole report
        categories_section(agreement),
        pairs_section(agreement),
        None if spans is None else places_section(spans),
        None if judge is None else judge_section(judge, agreement.judges),
    ]
    return Report(
        "agreement",
        "Agreement",
        _report_description(agreement),
        tuple(section for section in sections if section is not None),
        tuple(_report_notes(agreement, hidden)),
        facts=modes.facts,
        methods=methods_paragraph(agreement),
        document=agreement_json(agreement),
    )


def _report_description(agreement: Agreement) -> str:
    """Return a line that names the annotators, the taxonomy, the pass and the compared traces."""
    if not agreement.annotators:
        outside = agreement.index.table("left_out").values("not_in_study")
        if outside:
            names = joined_names(list(outside))
            return f"No one in the study has finished a trace; outside it: {names}."
        return f"No one has finished a trace under {agreement.taxonomy}."
    return (
        f"{_annotators_text(agreement)}; {agreement.taxonomy}, {_pass_text(agreement)}; "
        f"{traces_compared(agreement)}."
    )


def _report_notes(agreement: Agreement, hidden: HiddenTraces | None) -> Iterator[Note]:
    """Yield the notes on the whole report."""
    yield from _nothing_compared_note(agreement)
    if hidden is not None:
        yield _hidden_traces_note(hidden)
    yield from _copied_notes(agreement)
    revisions = revision_words(agreement.revisions or ())
    yield from applicable(
        (revisions, Note(f"{revisions[:1].upper()}{revisions[1:]}.", "revisions")),
        (agreement.spans is None, Note("Places were not compared.", "no_spans")),
    )


def methods_paragraph(agreement: Agreement) -> str:
    """Return a paragraph on agreement for the methods section of a paper.

    It names no annotator, and is empty without shared traces.
    """
    if len(agreement.annotators) < 2 or not _shared_trace_count(agreement):
        return ""
    return " ".join(_methods_sentences(agreement))


def _methods_sentences(agreement: Agreement) -> Iterator[str]:
    """Yield the sentences of the methods paragraph."""
    yield from _data_sentences(agreement)
    yield from _coefficient_sentences(agreement)
    yield _intervals_sentence(agreement)
    yield from _undefined_kappa_sentences(agreement)
    if agreement.spans is not None and agreement.spans.compared:
        yield _places_sentence(agreement.spans)
    if agreement.identical_blocks:
        copied_count = sum(len(block.traces) for block in agreement.identical_blocks)
        copied_text = counted(copied_count, "trace")
        yield f"{copied_text} with identical sets of verdicts are included."
    yield f"Figures were computed with mast-tui {__version__}."


def _data_sentences(agreement: Agreement) -> Iterator[str]:
    """Yield sentences on the annotators, traces, pass, units and missing verdicts."""
    annotator_count = len(agreement.annotators)
    shared_count = _shared_trace_count(agreement)
    yield (
        f"{annotator_count} annotators labelled traces with "
        f"{counted(len(agreement.modes), 'failure mode')} of the taxonomy {agreement.taxonomy}; "
        f"{counted(shared_count, 'trace')} {'was' if shared_count == 1 else 'were'} finished by "
        f"{'both' if annotator_count == 2 else 'two or more annotators'}."
    )
    yield f"The analysis uses the labels of each annotator's {_pass_text(agreement)}."
    left_out = agreement.index.table("left_out")  # by annotator
    missing_counts = [
        f"{sum(int(n or 0) for n in left_out.values(statistic).values()):,} {description}"
        for statistic, description in (("unsure", "'unsure'"), ("open", "open"))
    ]
    unit_count = agreement.index.table("pooled").count("n")
    yield (
        "The unit of analysis is trace × mode, with the verdicts present and absent "
        f"({counted(unit_count, 'unit')} with at least two verdicts). Missing "
        f"verdicts ({' and '.join(missing_counts)}) were excluded."
    )


def _coefficient_sentences(agreement: Agreement) -> Iterator[str]:
    """Yield sentences on the coefficients: their sources, and their pooled values."""
    columns = _TableMaker.from_agreement(agreement).columns
    yield (
        "Agreement is reported per mode, as the mean over modes, and pooled over all units, as "
        f"{joined_names([_name_with_source(column) for column in columns])}."
    )
    pooled = agreement.index.table("pooled")
    figure_texts = [
        f"{column.name} {_number_text(pooled[column.key])}"
        for column in columns
        if pooled.value(column.key) is not None
    ]
    if figure_texts:
        yield f"Pooled over all units: {'; '.join(figure_texts)}."


def _places_sentence(spans: SpanAgreement) -> str:
    """Return the sentence on the agreement of places: F1 and α_U."""
    naming = spans.index.table("spans_naming")
    alpha_u = spans.index.table("spans")["krippendorff_alpha_u"]
    return (
        f"For {counted(naming.count('places'), 'marked place')} in "
        f"{counted(spans.compared, 'trace')}, F1 of places with the same mode is "
        f"{_number_text(naming['f1_exact'])} for exact matches and "
        f"{_number_text(naming.find('f1_overlap', '0.5'))} for an overlap of at least 0.5; "
        f"Krippendorff's α_U (1995, 2004) is {_number_text(alpha_u)}."
    )


def _number_text(figure: Figure) -> str:
    """Return a figure with its interval as text, or ``undefined``."""
    return in_words(replace(figure, reason="")) if figure.value is not None else "undefined"


def _name_with_source(column: Column) -> str:
    source = STATISTICS[column.key].source
    return f"{column.name} ({source})" if source else column.name


def _intervals_sentence(agreement: Agreement) -> str:
    """Return the sentence on the method of the intervals."""
    resampling = agreement.resampling
    if not resampling.count:
        return "No intervals were computed."
    if _shared_trace_count(agreement) < MANY:
        return (
            "Brackets contain 95 % confidence intervals: Wilson's interval with an effective "
            "sample size (Korn and Graubard 1998) from the variance of the jackknife (Tukey 1958), "
            "which removes one trace at a time, with all of its modes."
        )
    return (
        "Brackets contain 95 % confidence intervals from the percentile bootstrap (Efron 1979) "
        f"over whole traces ({resampling.count:,} resamples, seed {resampling.seed})."
    )


def _undefined_kappa_sentences(agreement: Agreement) -> Iterator[str]:
    """Yield a sentence on modes with an undefined κ, and one on modes without an interval of κ."""
    figures_by_code = agreement.index.figures_by_key("mode")
    kappas = [figures[_KAPPA] for figures in figures_by_code.values()]
    reasons_by_text = {
        "is undefined": [kappa.undefined for kappa in kappas],
        "has no interval": [kappa.withheld for kappa in kappas],
    }
    for text, reasons in reasons_by_text.items():
        counts = Counter(reason for reason in reasons if reason is not None)
        if counts:
            reasons_text = "; ".join(
                f"{why.replace('_', ' ')}: {counted(n, 'mode')}" for why, n in counts.items()
            )
            modes_text = f"{sum(counts.values())} of {len(agreement.modes)} modes"
            yield f"κ {text} for {modes_text} ({reasons_text})."


def modes_section(agreement: Agreement) -> ReportSection:
    """Make the section on modes: the table of modes with totals, and related tables."""
    maker = _TableMaker.from_agreement(agreement)
    tables = existing_parts(
        maker.modes(),
        missed_table(agreement),
        maker.sets(),
        maker.rounds(),
        maker.comparison_table(_RETESTS, [(name,) for name in agreement.retested]),
        maker.comparison_table(_AGENTS, agreement.agents),
    )
    notes = (
        *_left_out_notes(agreement),
        *_more_traces_note(agreement),
        *_missed_unknown_note(agreement),
    )
    return ReportSection("modes", "Modes", tables, tuple(maker.facts()), notes)


def missed_table(agreement: Agreement) -> Table | None:
    """Make the table of the estimated number of failures that all annotators missed.

    The result is None if no failure was found.
    """
    index = agreement.index
    pooled = index.table("missed_pooled")
    if not pooled.count("found"):
        return None
    figures_by_code = {mode.code: index.table("missed", mode=mode.code) for mode in agreement.modes}
    rows = [
        _missed_row(mode.slug, {"code": mode.code, "name": mode.name}, figures_by_code[mode.code])
        for mode in agreement.modes
        if figures_by_code[mode.code].count("found")
    ]
    estimator = "Chao's estimator" if len(agreement.finders) > 2 else "Chapman's estimator"
    return Table(
        "missed",
        "Estimated failures that all annotators missed",
        (CODE, MODE, *_MISSED),
        (tuple(rows), (_missed_row("pooled", {"name": "pooled"}, pooled),)),
        f"Capture-recapture estimate ({estimator}; intervals: Sadinle 2009) of the failures that "
        f"{joined_names(agreement.finders)} all missed, from the {_pass_text(agreement)} of "
        f"{_annotators_text(agreement)}.",
        (*_missed_notes(agreement), *withheld_notes(*figures_by_code.values(), pooled)),
    )


def _missed_unknown_note(agreement: Agreement) -> Iterator[Note]:
    """Yield a note if missed failures cannot be estimated because annotators saw suggestions."""
    excluded_counts = agreement.index.table("missed_left_out").values("with_suggestions")
    assisted_names = [name for name, n in excluded_counts.items() if n]
    has_units = agreement.index.table("missed_pooled").count("n") > 0
    if assisted_names and not has_units:
        yield Note(
            "The number of failures that everybody missed cannot be estimated. This needs two "
            "annotators who labelled the same traces without seeing suggestions of a judge; "
            f"{joined_names(assisted_names)} saw suggestions.",
            "missed_untold",
        )


def _missed_row(ident: str, cells: dict[str, Cell], figures: FigureTable) -> Row:
    """Return the row of an estimate of missed failures, with its interval in whole numbers."""
    missed = figures["missed"]
    text = NONE if missed.value is None else f"{missed.value:.0f}"
    if missed.interval is not None:
        low, high = missed.interval
        text += f" [{low:.0f}, {high:.0f}]"
    elif missed.withheld is not None:
        text += f" {WITHHELD}"
    return Row(ident, {**cells, **figure_cells(figures, _MISSED), "missed": text})


def _missed_notes(agreement: Agreement) -> Iterator[Note]:
    """Yield notes on the estimate of missed failures: its assumptions, and what it leaves out."""
    yield Note(
        "missed: estimated from how often annotators found the same failures. The estimate assumes "
        "that annotators are independent, that the failures of a mode are equally hard to find, "
        "and that present verdicts are correct unless adjudicated as absent. It is too low if some "
        "failures are hard to find, and too high if annotators report false ones.",
        "missed",
    )
    yield from _independence_notes(agreement)
    left_out = agreement.index.table("missed_left_out")
    suggested_texts = [
        f"{counted(int(n), 'trace × mode', 'traces × modes')} by {name}"
        for name, n in left_out.values("with_suggestions").items()
        if n
    ]
    suggested_sentence = (
        f"Excluded because a judge's suggestions were on screen: {', '.join(suggested_texts)}."
    )
    absent_count = left_out.count("settled_absent")
    yield from applicable(
        (suggested_texts, Note(suggested_sentence, "suggested")),
        (
            absent_count,
            Note(f"Excluded because adjudicated as absent: {absent_count:,}.", "settled"),
        ),
    )


def _independence_notes(agreement: Agreement) -> Iterator[Note]:
    """Yield notes on whether annotators find failures independently, as the estimate assumes."""
    p_value = agreement.index.table("missed_together").value("p_value")
    if p_value is None:
        yield _untested_independence_note(agreement)
    elif agreement.finders_dependent:
        yield from _dependence_notes(agreement, p_value)
    else:
        yield Note(
            f"The test finds no dependence between annotators ({p_words(p_value)}); with few "
            "failures, it can miss a dependence.",
            "independence",
        )


def _untested_independence_note(agreement: Agreement) -> Note:
    """Return a warning that the independence of annotators cannot be tested."""
    cause = (
        "a third annotator or judge found too few failures"
        if len(agreement.finders) > 2
        else "this needs a third annotator or a judge (list all with --annotators)"
    )
    return Note(
        f"The independence of annotators cannot be tested: {cause}. If they tend to find the "
        "same failures, more were missed than estimated.",
        "independence_untold",
        warning=True,
    )


def _dependence_notes(agreement: Agreement, p_value: float) -> Iterator[Note]:
    """Yield warnings on dependence between annotators: of all together, and of pairs."""
    is_alike = agreement.finders_alike
    yield Note(
        "The annotators are not independent: they found the same failures "
        f"{'more' if is_alike else 'less'} often than expected by chance "
        f"({p_words(p_value)}). Therefore {'more' if is_alike else 'fewer'} failures were "
        "missed than estimated"
        f"{', unless failures found by one annotator alone are false' if is_alike else ''}.",
        "dependent",
        warning=True,
    )
    for pair in agreement.pairs:
        figures = agreement.index.table("missed_pair", subject=pair)
        p_adjusted = figures.value("p_adjusted")
        if p_adjusted is not None and p_adjusted < ALPHA:
            yield _dependent_pair_note(figures, p_adjusted)


def _dependent_pair_note(figures: FigureTable, p_adjusted: float) -> Note:
    """Return a warning that two annotators do not find failures independently."""
    ratio = figures.value("odds_ratio")  # None if they never differ
    is_alike = ratio is None or ratio > 1
    ratio_text = "" if ratio is None else f"odds ratio {fixed_number(ratio)}, "
    return Note(
        f"{joined_names(figures.subject)} are not independent: of the failures that a third "
        f"annotator found, they find {'the same' if is_alike else 'different'} ones more often "
        f"than expected by chance ({ratio_text}{p_words(p_adjusted)}). Therefore "
        f"{'more' if is_alike else 'fewer'} failures were missed than estimated.",
        "dependent_pair",
        warning=True,
    )


def categories_section(agreement: Agreement) -> ReportSection | None:
    """Make the section on categories, with a table for each level; None without categories."""
    if not agreement.categories:
        return None
    maker = _TableMaker.from_agreement(agreement)
    return ReportSection("categories", "Categories", (maker.categories(), *maker.level_tables()))


def pairs_section(agreement: Agreement) -> ReportSection | None:
    """Make the section on pairs of annotators; None for fewer than three annotators."""
    if len(agreement.annotators) < 3:
        return None
    maker = _TableMaker.from_agreement(agreement)
    return ReportSection("pairs", "Pairs", (maker.matrix(), maker.pairs(), *maker.by_pair()))


def few_shared_by_pair(agreement: Agreement) -> Mapping[str, float | None]:
    """Return the number of shared traces of every pair; empty if no pair shares too few."""
    return agreement.index.table("pooled").values("few_shared_by_pair")


def coefficient_columns(annotator_count: int, *, rotating: bool = False) -> tuple[Column, ...]:
    """Make the columns of the coefficients, such as Cohen's κ.

    Args:
        annotator_count: The number of annotators.
        rotating: Whether pairs share few traces. Coefficients that are then too low get a low
            priority.
    """
    chosen_columns = [column for column in _COLUMNS if annotator_count > 2 or column.key != _FLEISS]
    if annotator_count > 2:
        kappa = next(column for column in chosen_columns if column.key == _KAPPA)
        chosen_columns = [
            replace(kappa, title="mean κ", name="mean of Cohen's κ over the pairs")
            if column is kappa
            else column
            for column in chosen_columns
        ]
    if rotating:
        chosen_columns = [
            replace(column, priority=min(column.priority, _LAST))
            if column.key in _LOWERED_BY_FEW_SHARED
            else column
            for column in chosen_columns
        ]
    leading_column = max(chosen_columns, key=lambda column: column.priority)
    return tuple(
        replace(column, priority=_LEADS) if column is leading_column else column
        for column in chosen_columns
    )


@dataclass(frozen=True, slots=True)
class _ComparisonTexts:
    """The texts of a table that compares two sets of verdicts on the same traces, and its scope.

    Attributes:
        id: The id of the table.
        scope: The scope of its figures.
        title: Its title.
        caption: The start of its caption.
        relation: The words that follow the name of a row.
        note: The note on the column of present verdicts.
    """

    id: str
    scope: str
    title: str
    caption: str
    relation: str
    note: str


_RETESTS: Final = _ComparisonTexts(
    "retests",
    "retest",
    "Agreement of annotators with themselves, all modes pooled",
    "Retested traces, labelled again with the first labels hidden",
    ", first and second time",
    "present: share of present verdicts, first / second time.",
)
_AGENTS: Final = _ComparisonTexts(
    "agents",
    "agent",
    "Agreement of agents with people, all modes pooled",
    "Agents label as annotators do, but no figure above includes them",
    "",
    "present: share of present verdicts, agent / person.",
)


@dataclass(frozen=True, slots=True)
class _TableMaker:
    """A maker of the tables of agreement on whole traces.

    Attributes:
        agreement: The figures.
        columns: The coefficients of all annotators together.
        pair_columns: The coefficients of two annotators.
    """

    agreement: Agreement
    columns: tuple[Column, ...]
    pair_columns: tuple[Column, ...]

    @classmethod
    def from_agreement(cls, agreement: Agreement) -> _TableMaker:
        """Choose the columns by the number of annotators and of their shared traces."""
        columns = coefficient_columns(
            len(agreement.annotators), rotating=bool(few_shared_by_pair(agreement))
        )
        if _has_few_complete_traces(agreement):
            # Fleiss' κ needs two traces that all annotators have judged.
            columns = tuple(column for column in columns if column.key != _FLEISS)
        return cls(agreement, columns, coefficient_columns(2))

    @property
    def has_several_pairs(self) -> bool:
        """True if there are three annotators or more."""
        return len(self.agreement.annotators) > 2

    @property
    def figures_by_code(self) -> dict[str, FigureTable]:
        """The figures of each mode, by its code."""
        return self.agreement.index.figures_by_key("mode")

    @property
    def pooled(self) -> FigureTable:
        """The figures of all modes together."""
        return self.agreement.index.table("pooled")

    def facts(self) -> Iterator[KeyFact]:
        """Yield facts over all modes, the most important first."""
        pooled = self.pooled
        yield KeyFact("pooled over", f"{pooled.count('n'):,}", "traces × modes")
        headline_columns = [column for column in self.columns if column.key in _HEADLINE]
        for column in sorted(headline_columns, key=lambda column: column.priority, reverse=True):
            yield fact(column.title, pooled[column.key])

    def _interval_notes(self, *figure_tables: FigureTable) -> tuple[Note, ...]:
        """Return notes on figures without an interval, in these tables or those of their pairs."""
        pair_tables = [
            pair_table
            for figure_table in figure_tables
            for pair_table in self.agreement.index.pairs(figure_table).values()
        ]
        return withheld_notes(*figure_tables, *pair_tables)

    def _figure_notes(
        self, figures_by_name: Mapping[str, FigureTable], *totals: FigureTable
    ) -> tuple[Note, ...]:
        """Return notes on the κ paradox in rows, and on figures without an interval."""
        return (
            *_paradox_note(figures_by_name),
            *self._interval_notes(*figures_by_name.values(), *totals),
        )

    def modes(self) -> Table:
        """Make the table of modes, with their mean and the pooled modes as totals."""
        agreement = self.agreement
        pooled = self.pooled
        macro = agreement.index.table("macro")
        figures_by_code = self.figures_by_code
        rows = [
            self._table_row(
                mode.slug,
                (mode.code, mode.name),
                figures_by_code[mode.code],
                self._more_traces_sentence(mode.code),
                unit="trace",
            )
            for mode in agreement.modes
        ]
        totals = (
            Row("macro", self._macro_cells(macro, figures_by_code.values()), sources=macro.sources),
            self._table_row(
                "pooled",
                ("", "pooled"),
                pooled,
                map(_copied_verdicts_sentence, agreement.identical_blocks),
                mark=COPIED if agreement.identical_blocks else "",
            ),
        )
        pooled_sentence = " pooled: all modes together, with trace × mode as the unit."
        figures_by_name = {**figures_by_code, "pooled": pooled}
        return Table(
            "modes",
            "Agreement on whole traces, by mode",
            (CODE, MODE, _N, _PRESENT, *self.columns),
            (tuple(rows), totals),
            self._caption_text(),
            (
                *self._column_notes(),
                macro_note(
                    macro.values("modes_defined"),
                    len(figures_by_code),
                    self.columns,
                    pooled_sentence,
                ),
                *self._own_n_notes(),
                *_paradox_note(figures_by_name),
                *applicable((agreement.identical_blocks, _COPIED_MARK)),
                *self._interval_notes(*figures_by_code.values(), macro, pooled),
            ),
        )

    def categories(self) -> Table:
        """Make the table of categories, each with its modes pooled."""
        agreement = self.agreement
        figures_by_id = {
            ident: agreement.index.table("category", mode=ident)
            for ident, _, _ in agreement.categories
        }
        rows = [
            self._table_row(
                ident,
                ("", name),
                figures_by_id[ident],
                [f"Pools the modes {joined_names(agreement.codes(slugs))}."],
            )
            for ident, name, slugs in agreement.categories
        ]
        figures_by_name = {name: figures_by_id[ident] for ident, name, _ in agreement.categories}
        return Table(
            "categories",
            "Agreement on whole traces, by category (modes pooled)",
            (replace(MODE, title="category", name="category"), _N, _PRESENT, *self.columns),
            (tuple(rows),),
            self._caption_text(),
            (_N_POOLED, *self._figure_notes(figures_by_name)),
        )

    def level_tables(self) -> Iterator[Table]:
        """Yield a table for each level of categories, if the taxonomy has several levels."""
        for number, (level, categories) in enumerate(self.agreement.levels.items(), start=1):
            yield self._level_table(f"level_{number}", level, categories)

    def _level_table(self, id: str, level: str, categories: Sequence[Group]) -> Table:
        """Make the table of the categories of a level, with their mean and the pooled level."""
        index = self.agreement.index
        macro = index.table("level_macro", group=level)
        pooled = index.table("level_pooled", group=level)
        figures_by_id = {
            ident: index.table("level", group=level, mode=ident) for ident, _, _ in categories
        }
        rows = [
            self._table_row(
                ident,
                ("", name),
                figures_by_id[ident],
                [f"Present if any of {joined_names(self.agreement.codes(slugs))} is present."],
                unit="trace",
            )
            for ident, name, slugs in categories
        ]
        figures_by_name = {name: figures_by_id[ident] for ident, name, _ in categories}
        totals = (
            Row("macro", self._macro_cells(macro, figures_by_name.values())),
            self._table_row("pooled", ("", "pooled"), pooled, unit=f"trace × {level} pair"),
        )
        macro_text = (
            f"macro mean: mean over each {level} for which the figure is defined. "
            "pooled: all of them together."
        )
        return Table(
            id,
            f"Agreement on whole traces, by {level} (present if any mode is)",
            (replace(MODE, title=level, name=level), _N, _PRESENT, *self.columns),
            (tuple(rows), totals),
            self._caption_text(),
            (
                _ANY_WITHIN,
                Note(macro_text, "macro"),
                *self._figure_notes(figures_by_name, macro, pooled),
            ),
        )

    def sets(self) -> Table:
        """Make the table of agreement on the set of modes of a trace."""
        figures = self.agreement.index.table("sets")
        definitions = [figures[name].definition for name in _SETS]
        set_columns = tuple(
            Column(definition.name, definition.title, name=definition.label)
            for definition in definitions
        )
        cells: dict[str, Cell] = {"name": "sets of modes", "n": figures.count("n")}
        cells |= figure_cells(figures, set_columns)
        detail = tuple(
            why_undefined(
                [(definition.label, figures[definition.name]) for definition in definitions],
                _UNDEFINED_SETS,
                {},
            )
        )
        return Table(
            "sets",
            "Agreement on the set of modes of a trace",
            (
                replace(MODE, title="", name="compared"),
                replace(
                    _N, title="traces", name="traces with verdicts on every mode by two or more"
                ),
                *set_columns,
            ),
            ((Row("sets", cells, detail=detail, sources=figures.sources),),),
            self._caption_text(),
            (
                Note(
                    "Compares the sets of modes present in a trace, over traces with verdicts on "
                    "every mode by two or more annotators. Sets with common modes agree in part.",
                    "sets",
                ),
                *withheld_notes(figures),
            ),
        )

    def rounds(self) -> Table | None:
        """Make the table of the batches of a study (``rounds`` in JSON); None if there are none."""
        agreement = self.agreement
        index = agreement.index
        if not agreement.rounds:
            return None
        figures_by_round = {
            name: index.table("round_pooled", group=name) for name in agreement.rounds
        }
        rows = [
            _row(
                name,
                {"round": name, "traces": index.table("round", group=name).count("traces")},
                figures,
                self.columns,
                self._detail_sentences(figures, _UNITS),
            )
            for name, figures in figures_by_round.items()
        ]
        return Table(
            "rounds",
            "Batches of the study, all modes pooled",
            (
                Column("round", "batch", Kind.TEXT, priority=102),
                _TRACES,
                _N,
                _PRESENT,
                *self.columns,
            ),
            (tuple(rows),),
            self._caption_text(),
            self._figure_notes(figures_by_round),
        )

    def comparison_table(
        self, texts: _ComparisonTexts, subjects: Iterable[tuple[str, ...]]
    ) -> Table | None:
        """Make a table that compares two sets of verdicts in each row; None without rows.

        Args:
            texts: The texts of the table, and the scope of its figures.
            subjects: The annotator of each row (the first pass and the retest are compared), or the
                agent and the person.
        """
        figures_by_name = {
            joined_names(subject): self.agreement.index.table(texts.scope, subject=subject)
            for subject in subjects
        }
        if not figures_by_name:
            return None
        rows = [
            _row(
                name,
                {"annotator": name, "traces": figures.count("n_traces")},
                figures,
                self.pair_columns,
                (
                    f"{name}{texts.relation}: {_verdicts_sentence(figures, _UNITS)}",
                    *_undefined_sentences(figures, self.pair_columns),
                ),
            )
            for name, figures in figures_by_name.items()
        ]
        return Table(
            texts.id,
            texts.title,
            (
                Column("annotator", "annotator", Kind.TEXT, priority=102),
                _TRACES,
                _N,
                _PRESENT,
                *self.pair_columns,
            ),
            (tuple(rows),),
            f"{texts.caption} (taxonomy {self.agreement.taxonomy}). {self._intervals_text()}",
            (Note(texts.note, "n"), *self._figure_notes(figures_by_name)),
        )

    def matrix(self) -> Table:
        """Make the matrix of annotators with κ of each pair, all modes pooled."""
        figures_by_pair = self.agreement.index.pairs(self.pooled)
        names = self.agreement.annotators
        rows = []
        for row_number, name in enumerate(names[1:], 1):
            figures_by_column = {
                f"with {other}": figures_by_pair[other, name] for other in names[:row_number]
            }
            kappas = {
                key: figure_cell(figures[_KAPPA]) for key, figures in figures_by_column.items()
            }
            rows.append(
                Row(
                    name,
                    {"name": name, **kappas},
                    cell_sources={
                        key: figures.sources for key, figures in figures_by_column.items()
                    },
                    detail_cells={
                        key: tuple(self._detail_sentences(figures, _UNITS))
                        for key, figures in figures_by_column.items()
                    },
                )
            )
        columns = [Column(f"with {name}", name, name=f"κ with {name}") for name in names[:-1]]
        return Table(
            "pairs_kappa",
            "κ of each pair, all modes pooled",
            (Column("name", "κ", Kind.TEXT, "annotator", priority=102), *columns),
            (tuple(rows),),
            self._caption_text(),
            withheld_notes(*(figures[_KAPPA] for figures in figures_by_pair.values())),
        )

    def pairs(self) -> Table:
        """Return the table of the figures of each pair of annotators."""
        figures_by_pair = self.agreement.index.pairs(self.pooled)
        # The column ``traces`` is empty unless some pair shares few traces.
        shared_counts = few_shared_by_pair(self.agreement)
        rows = [
            replace(
                _row(
                    PAIR.join(pair),
                    {"pair": joined_names(pair), "traces": shared_counts.get(PAIR.join(pair))},
                    figures_by_pair[pair],
                    self.pair_columns,
                    (
                        *self._detail_sentences(figures_by_pair[pair], _UNITS),
                        *_copied_by_pair(self.agreement, pair),
                    ),
                ),
                sources=figures_by_pair[pair].sources,
            )
            for pair in self.agreement.pairs
        ]
        return Table(
            "pairs",
            "All pairs of annotators, all modes pooled",
            (
                Column("pair", "pair", Kind.TEXT, priority=102),
                replace(_TRACES, name="traces with verdicts by both"),
                replace(_N, name="traces × modes with verdicts by both"),
                _PRESENT,
                *self.pair_columns,
            ),
            (tuple(rows),),
            self._caption_text(),
            (
                _N_POOLED,
                *applicable((shared_counts, Note(_LOW_KAPPA, "few_shared_traces"))),
                *self._figure_notes(
                    {joined_names(pair): figures for pair, figures in figures_by_pair.items()}
                ),
            ),
        )

    def by_pair(self) -> Iterator[Table]:
        """Yield a table for each pair with a row for each mode; pages show it folded."""
        agreement = self.agreement
        pooled_by_pair = agreement.index.pairs(self.pooled)
        by_code_and_pair = {
            code: agreement.index.pairs(figures) for code, figures in self.figures_by_code.items()
        }
        for number, pair in enumerate(agreement.pairs, 1):
            pooled = pooled_by_pair[pair]
            pair_figures = {code: by_pair[pair] for code, by_pair in by_code_and_pair.items()}
            rows = [
                self._table_row(
                    mode.slug, (mode.code, mode.name), pair_figures[mode.code], unit="trace"
                )
                for mode in agreement.modes
            ]
            yield Table(
                f"pair_{number}",
                f"{joined_names(pair)}, by mode",
                (CODE, MODE, _N, _PRESENT, *self.pair_columns),
                (tuple(rows), (self._table_row("pooled", ("", "pooled"), pooled),)),
                f"Labels of {joined_names(pair)} (taxonomy {agreement.taxonomy}, "
                f"{_pass_text(agreement)}). {self._intervals_text()}",
                self._figure_notes({**pair_figures, "pooled": pooled}),
                folded=True,
            )

    def _macro_cells(
        self, macro: FigureTable, figures_of_rows: Collection[FigureTable]
    ) -> dict[str, Cell]:
        """Return the cells of the row of macro means: means over the figures of several rows.

        A cell shows its own n if it differs from the sum over these rows.
        """
        cells: dict[str, Cell] = {"name": "macro mean"}
        units_by_figure = macro.values("units")
        for column in self.columns:
            key = column.key
            sum_of_n = sum(
                figures.count("n") for figures in figures_of_rows if figures.value(key) is not None
            )
            own_n = int(units_by_figure.get(key) or 0)
            cells[key] = figure_cell(macro[key], None if own_n == sum_of_n else own_n)
        return cells

    def _table_row(
        self,
        ident: str,
        names: tuple[str, str],
        figures: FigureTable,
        sentences: Iterable[str] = (),
        mark: str = "",
        *,
        unit: str = "",
    ) -> Row:
        """Return the row with the figures of all annotators, or of one pair.

        Args:
            ident: The id of the row.
            names: The code and the name of a mode; the code is empty for a total.
            figures: The figures of all annotators, or of one pair.
            sentences: Further sentences for the row's detail.
            mark: A mark before the mark of the κ paradox.
            unit: The unit of n; by default ``_UNITS``.
        """
        code, name = names
        row = _row(
            ident,
            {"code": code, "name": name},
            figures,
            self.pair_columns if figures.subject else self.columns,
            (*self._detail_sentences(figures, unit or _UNITS), *sentences),
        )
        return replace(row, mark=mark + row.mark, sources=figures.sources)

    def _detail_sentences(self, figures: FigureTable, unit: str) -> Iterator[str]:
        """Yield the sentences of a row's detail: verdicts, undefined figures, κ by pair, unsure."""
        is_of_pair = bool(figures.subject)
        yield _verdicts_sentence(figures, unit)
        yield from _undefined_sentences(figures, self.pair_columns if is_of_pair else self.columns)
        kappas = [
            f"{joined_names(pair)} {in_words(pair_figures[_KAPPA])} (n {pair_figures.count('n')})"
            for pair, pair_figures in self.agreement.index.pairs(figures).items()
        ]
        unsure = [f"{name} {n:,}" for name, n in figures.values("unsure").items() if n]
        yield from applicable(
            (
                self.has_several_pairs and not is_of_pair,
                f"κ by pair: {'; '.join(kappas)}.",
            ),
            (unsure, f"Verdicts 'unsure', counted as missing: {', '.join(unsure)}."),
        )

    def _more_traces_sentence(self, code: str) -> Iterator[str]:
        """Yield a sentence on the number of further traces that would halve the interval of κ."""
        plan = self.agreement.index.table("halving", mode=code)
        trace_count = plan.count("more_traces")
        if trace_count:
            yield (
                f"About {trace_count:,} more traces labelled by two annotators would halve the "
                f"interval of κ (current width {fixed_number(plan.value('width') or 0.0)})."
            )

    def _caption_text(self) -> str:
        """Return the caption: annotators, traces, taxonomy, pass, and method of the intervals."""
        agreement = self.agreement
        if not agreement.annotators:
            return f"There are no labels to compare (taxonomy {agreement.taxonomy})."
        return (
            f"Labels of {_annotators_text(agreement)} on {traces_compared(agreement)} "
            f"(taxonomy {agreement.taxonomy}, {_pass_text(agreement)}). "
            f"{self._intervals_text()}"
        )

    def _intervals_text(self) -> str:
        return intervals_note(self.agreement.resampling, _shared_trace_count(self.agreement))

    def _column_notes(self) -> Iterator[Note]:
        """Yield notes on the columns ``n``, ``present`` and ``mean κ``, with a warning on low κ."""
        raters = "both annotators"
        annotators_of_shares = f"by {' / '.join(self.agreement.annotators) or 'no annotator'}"
        if self.has_several_pairs:
            raters = "two or more annotators"
            annotators_of_shares = "lowest and highest annotator"
        yield Note(
            f"n: traces with verdicts on the mode by {raters}; for several modes, traces × modes. "
            f"present: share of present verdicts, {annotators_of_shares}.",
            "n",
        )
        shared_counts = few_shared_by_pair(self.agreement)
        counts_text = ", ".join(f"{of_pair(key)} {n}" for key, n in shared_counts.items())
        mean_sentence = "mean κ: mean over the pairs for which κ is defined."
        low_sentence = (
            f"Pairs share few traces ({counts_text}), so κ of a pair and mean κ are too low: "
            "prefer Krippendorff's α."
        )
        yield from applicable(
            (self.has_several_pairs, Note(mean_sentence, "mean_kappa")),
            (shared_counts, Note(low_sentence, "few_shared_traces")),
        )

    def _own_n_notes(self) -> Iterator[Note]:
        """Yield a note on each omitted coefficient, and on each one with another n than its row."""
        # With two annotators, all coefficients have the same n.
        if not self.has_several_pairs:
            return
        pooled = self.pooled
        if _has_few_complete_traces(self.agreement):
            trace_words = "only one trace" if pooled.count("n_complete") else "no trace"
            yield Note(
                f"Fleiss' κ is omitted: {trace_words} has verdicts by all annotators.", "n_complete"
            )
        figures_by_name = {**self.figures_by_code, "pooled": pooled}
        for column in self.columns:
            if column.key not in _OWN_N_NOTES:
                continue
            modes_by_n = values_by_key(
                (figures[column.key].n, name)
                for name, figures in figures_by_name.items()
                if figures.value(column.key) is not None
                and figures[column.key].n not in (None, figures.count("n"))
            )
            units = "; ".join(f"{n:,} ({', '.join(names)})" for n, names in modes_by_n.items())
            if units:
                sentence_start, reason = _OWN_N_NOTES[column.key]
                yield Note(f"{sentence_start}: n {units}.", reason)


_UNITS: Final = "trace × mode pair"
"""The unit of a row of several modes."""

_SETS: Final = ("krippendorff_alpha_jaccard", "krippendorff_alpha_masi")


def _has_few_complete_traces(agreement: Agreement) -> bool:
    """Return whether all annotators have judged fewer than two traces, too few for Fleiss' κ."""
    return agreement.index.table("pooled")[_FLEISS].undefined in ("no_overlap", "single_trace")


def _row(
    ident: str,
    names: Mapping[str, Cell],
    figures: FigureTable,
    columns: Iterable[Column],
    sentences: Iterable[str],
) -> Row:
    """Return a row with its names, n, shares and coefficients, and the mark of the κ paradox."""
    return Row(
        ident,
        {**names, **_row_cells(figures, columns)},
        mark=paradox_mark(figures),
        detail=tuple(sentences),
    )


def _row_cells(figures: FigureTable, columns: Iterable[Column]) -> dict[str, Cell]:
    n = figures.count("n")
    cells = figure_cells(figures, columns, lambda figure: None if figure.n == n else figure.n)
    return {"n": n, "prevalence": _present_shares(figures), **cells}


def _present_shares(figures: FigureTable) -> str:
    """Return each annotator's share of present verdicts; for three or more, the range."""
    shares = list(figures.values("prevalence").values())
    if len(shares) > 2:
        defined_shares = [share for share in shares if share is not None]
        return (
            f"{fixed_number(min(defined_shares))}–{fixed_number(max(defined_shares))}"
            if defined_shares
            else NONE
        )
    return "/".join(NONE if share is None else fixed_number(share) for share in shares)


def _verdicts_sentence(figures: FigureTable, unit: str) -> str:
    """Return the sentence on the units with verdicts, and on each annotator's share of present."""
    n = figures.count("n")
    prevalence = figures.values("prevalence")
    raters = "both annotators" if len(prevalence) == 2 else "two or more annotators"
    shares = [f"{name} {percent(share)}" for name, share in prevalence.items() if share is not None]
    shares_text = f"; present: {joined_names(shares)}" if shares else ""
    return f"{counted(n, unit)} with verdicts by {raters}{shares_text}."


def _undefined_sentences(figures: FigureTable, columns: Iterable[Column]) -> Iterator[str]:
    """Yield sentences on why coefficients of a row are undefined."""
    named_figures = [
        (column.name, figures[column.key]) for column in columns if column.key in figures
    ]
    return why_undefined(named_figures, _UNDEFINED, _NO_VARIANCE)


def _annotators_text(agreement: Agreement) -> str:
    return joined_names(agreement.annotators) or "no annotator"


def _pass_text(agreement: Agreement) -> str:
    return _PASSES.get(agreement.pass_label, agreement.pass_label)


def _shared_trace_count(agreement: Agreement) -> int:
    return agreement.index.table("traces").count("finished_by_two")


def traces_compared(agreement: Agreement) -> str:
    """Describe the compared traces, such as ``20 traces finished by two or more, 5 by all``."""
    annotator_count = len(agreement.annotators)
    finished_count = agreement.index.table("traces").count("finished_by_all")
    if annotator_count < 2:
        return f"{counted(finished_count, 'trace')} finished"
    if annotator_count == 2:
        return f"{counted(finished_count, 'trace')} finished by both"
    shared_text = f"{counted(_shared_trace_count(agreement), 'trace')} finished by two or more"
    return f"{shared_text}, {finished_count:,} by all" if finished_count else shared_text


def _paradox_note(figures_by_name: Mapping[str, FigureTable]) -> tuple[Note, ...]:
    """Return a note on the rows with the κ paradox: κ is low because verdicts are nearly equal."""
    return paradox_note(
        figures_by_name,
        ". Nearly all verdicts there are equal, which makes chance agreement high: also read AC1, "
        "P+ and P−.",
    )


_LEFT_OUT: Final = {
    "unfinished": "traces begun but not finished",
    "alone": "traces that no other annotator has finished",
    "examples": "traces in the judge's prompt, or chosen for errors of an earlier version",
    "unsure": "verdicts 'unsure'",
    "open": "open modes in finished traces",
    "open_codes": "labels that name no mode",
}


def left_out_by_annotator(agreement: Agreement, statistic: str) -> str:
    """Return what the figures leave out, by annotator: ``ann 13, bob 2``; empty for nothing.

    Args:
        agreement: The figures.
        statistic: The left-out things, such as ``open``.
    """
    counts = agreement.index.table("left_out").values(statistic)
    return ", ".join(f"{name} {n:,}" for name, n in counts.items() if n)


def _left_out_notes(agreement: Agreement) -> Iterator[Note]:
    """Yield notes on excluded traces, verdicts and annotators."""
    left_out = agreement.index.table("left_out")
    counts_by_description = {
        description: left_out_by_annotator(agreement, statistic)
        for statistic, description in _LEFT_OUT.items()
    }
    parts = [
        f"{description} ({counts_text})"
        for description, counts_text in counts_by_description.items()
        if counts_text
    ]
    not_in_study_texts = [
        f"{name} {counted(int(n or 0), 'trace')}"
        for name, n in left_out.values("not_in_study").items()
    ]
    # ``_hidden_traces_note`` reports the traces that ``only_seen_by`` excludes.
    nothing_excluded = not parts and not not_in_study_texts and agreement.only_seen_by is None
    not_in_study_sentence = (
        f"Excluded because not in the study: {', '.join(not_in_study_texts)}. Include annotators "
        "with --annotators."
    )
    yield from applicable(
        (parts, Note(f"Excluded: {'; '.join(parts)}.", "left_out")),
        (nothing_excluded, Note("Nothing was excluded.", "left_out")),
        (not_in_study_texts, Note(not_in_study_sentence, "not_in_study")),
    )


def _more_traces_note(agreement: Agreement) -> Iterator[Note]:
    """Yield a note on the number of further traces that would halve the interval of κ, by mode."""
    plans = [
        (code, figures["more_traces"])
        for code, figures in agreement.index.figures_by_key("halving").items()
    ]
    codes_by_trace_count = values_by_key(
        (int(plan.value), code) for code, plan in plans if plan.value is not None
    )
    codes_by_reason = values_by_key(
        (plan.reason.replace("_", " "), code) for code, plan in plans if plan.value is None
    )
    if codes_by_trace_count:
        plans_text = "; ".join(
            f"about {trace_count:,} for {', '.join(codes_by_trace_count[trace_count])}"
            for trace_count in sorted(codes_by_trace_count)
        )
        unknown_text = "".join(
            f"; unknown for {', '.join(codes)} ({why})" for why, codes in codes_by_reason.items()
        )
        yield Note(
            "Additional traces, labelled by two annotators, that would halve the interval of κ: "
            f"{plans_text}{unknown_text}.",
            "halving",
        )


def _nothing_compared_note(agreement: Agreement) -> Iterator[Note]:
    """Yield a warning if no two annotators have finished the same trace."""
    if len(agreement.annotators) < 2:
        yield Note(
            "Agreement needs two annotators with finished traces (choose them with --annotators).",
            "few_annotators",
            warning=True,
        )
    elif not _shared_trace_count(agreement):
        yield Note(
            "Agreement needs a trace that two annotators have finished.",
            "nothing_shared",
            warning=True,
        )
    elif not agreement.index.table("pooled").count("n"):
        yield Note(
            "Nothing can be compared: no mode has a verdict (present or absent) by two annotators "
            "in one trace. Open modes are not compared: set a mode absent if you looked for it and "
            "did not find it.",
            "nothing_compared",
            warning=True,
        )


def _hidden_traces_note(hidden: HiddenTraces) -> Note:
    """Return a warning that the figures exclude traces that an annotator may not see."""
    name = hidden.annotator
    text = f"You are {name} here: only labels that {name} may see are included."
    if hidden.trace_count:
        text = (
            f"You are {name} here: only traces that {name} has finished or adjudicates are "
            f"included; {counted(hidden.trace_count, 'other')} excluded."
        )
    return Note(text, "only_seen_by", warning=True)


def _copied_notes(agreement: Agreement) -> Iterator[Note]:
    """Yield warnings on blocks: all verdicts on a trace, which are equal in several traces."""
    blocks = agreement.identical_blocks
    if not blocks:
        return
    trace_count = sum(len(block.traces) for block in blocks)
    block_counts = agreement.index.table("blocks")
    yield Note(
        f"{counted(trace_count, 'trace')} share {counted(len(blocks), 'set')} of verdicts: "
        "every annotator gave the same verdicts on all modes in several traces, which is unlikely "
        "by chance. Check whether they were copied or labelled together; the figures include "
        f"them. In total, {counted(block_counts.count('traces'), 'trace')} have only "
        f"{counted(block_counts.count('distinct'), 'different set')} of verdicts.",
        "identical_blocks",
        warning=True,
    )
    for block in blocks:
        yield Note(
            _copied_verdicts_sentence(block),
            "identical_block",
            warning=True,
        )


def _copied_verdicts_sentence(block: VerdictBlock) -> str:
    """Return a sentence on the traces that share a block of verdicts."""
    first, *others = block.annotators
    also = f", and so did {joined_names(others)}" if others else ""
    return (
        f"{joined_names([first])} gave the same verdicts on all {len(block.traces)} of these "
        f"traces{also}: {_first_traces(block.traces)}."
    )


def _copied_by_pair(agreement: Agreement, pair: tuple[str, str]) -> tuple[str, ...]:
    """Return a sentence if traces of a pair share a block of verdicts."""
    blocks = [block for block in agreement.identical_blocks if set(pair) <= set(block.annotators)]
    traces_text = counted(sum(len(block.traces) for block in blocks), "trace")
    return applicable(
        (blocks, f"{traces_text} of this pair share {counted(len(blocks), 'set')} of verdicts.")
    )


def _first_traces(traces: Sequence[str]) -> str:
    further_count = len(traces) - MOST_NAMED
    return ", ".join(traces[:MOST_NAMED]) + (
        f" and {further_count} more" if further_count > 0 else ""
    )

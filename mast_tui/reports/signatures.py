"""Tables and sentences on failure signatures.

``_Group`` makes the tables of one group of traces, or of all traces. A page shows them group by
group, the screen one group at a time. Failed and successful traces are compared if enough outcomes
are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mast_tui.counts import counted
from mast_tui.figures.prevalence import PREVALENCE_PATHS
from mast_tui.figures.record import OUTCOMES, PAIR, Figure, FigureIndex, FigureTable, Sources
from mast_tui.figures.signatures.model import ALL, OVERALL
from mast_tui.figures.signatures.modes import class_of_mode
from mast_tui.figures.signatures.onset import BINS, chain_of
from mast_tui.figures.signatures.report import (
    LEAST_OUTCOMES,
    LEAST_TRACES,
    SignatureReport,
    compares_outcomes,
    labels_source,
    large_groups,
)
from mast_tui.reports import model
from mast_tui.reports.charts import (
    GroupFigures,
    group_charts,
    group_ids,
    source_words,
)
from mast_tui.reports.experiment import experiment_sections, pair_document
from mast_tui.reports.model import (
    Cell,
    Column,
    KeyFact,
    Kind,
    Note,
    ReportSection,
    Row,
    Table,
    columns,
    existing_parts,
    figure_cell,
    figure_cells,
)
from mast_tui.reports.published import claims_section, published_gains
from mast_tui.reports.sentences import applicable, joined_names, why_no_interval, withheld_notes
from mast_tui.reports.signature_document import (
    cannot_say,
    group_cannot_say,
    is_reversed,
    signature_document,
)

if TYPE_CHECKING:
    from mast_tui.figures.experiment import Experiment
    from mast_tui.figures.signatures.report import TrendAxis
    from mast_tui.reports.examples import Extras, LabelExample
    from mast_tui.taxonomy.model import Group, Mode, Taxonomy

MOST_PAIRS: Final = 6
MOST_STEPS: Final = 8
MOST_HELPED: Final = 4
"""The number of modes with unfolded strategies on a page."""

MOST_QUOTED: Final = 300
"""The most code points of a quoted span."""

HOW_TO_GIVE_OUTCOMES: Final = (
    "Outcomes come from the trace files, from an outcomes.csv beside them (columns trace, outcome "
    "and score), or from imported labels: mast-tui import FILE --format csv-wide (columns outcome "
    "and score). --failed-below X counts traces with a score below X as failed."
)

_BECAUSE: Final[Mapping[str, str]] = {
    "more_in_failed": "more often in failed traces",
    "seen_in_successes": "also in successful traces",
    "too_few_traces": "too few traces",
    "unresolved": "unresolved disagreements",
    "not_told_apart": "neither is shown",
}

_SIDE_WORDS: Final = {
    "failed": "failed trace",
    "succeeded": "successful trace",
}

_FATAL_BY: Final = {"labels": "labelled fatal", "class": "mode of class fatal"}

_MISSING: Final[Mapping[str, str]] = {
    "not_judged": "No trace with a known outcome has a verdict on the mode.",
    **{
        f"no_{side}": f"No {trace} has a verdict on the mode, so there is no difference."
        for side, trace in _SIDE_WORDS.items()
    },
    "no_strata": "No model has both failed and successful traces with verdicts on the mode.",
    "never_seen": "No trace shows the mode, so the risk ratio is undefined.",
    **{
        f"none_in_{side}": f"No {trace} shows the mode, so the risk ratio "
        + ("is undefined." if side == "succeeded" else "has no interval.")
        for side, trace in _SIDE_WORDS.items()
    },
    "no_unlabelled": "People have labelled all traces that the judge labelled.",
    "no_positives": "The gold has no present verdict on the mode in traces of the judge.",
    "no_negatives": "The gold has no absent verdict on the mode in traces of the judge.",
    "no_better_than_chance": "Against the gold, the judge is no better than chance on the mode.",
}

_MODE: Final = columns("""
    code | code | text | | 100
    name | mode | text | | 100
""")
_DIFFERENCE: Final = """
    difference | points | points | {first} minus {second}, points | 90
    risk_ratio | ratio | number | risk ratio | 45
"""
_P_ADJUSTED: Final = "p_adjusted | p adj | p_value | p, adjusted over the modes | 60"
_PUBLISHED: Final = "stated | published | text | published class | 55"

_TABLES: Final[Mapping[str, tuple[str, str]]] = {
    "mode_shares": (
        "How often each mode occurs",
        """
        rate:all | share | share | share of all labelled traces | 95
        rate:all#count | present | count | traces with the mode | 92
        rate:all#n | verdicts | count | traces with a verdict on the mode | 91
        unsure | unsure | count | traces with the verdict unsure | 40
        open | open | count | traces without a verdict | 41
        unresolved | unresolved | count | open because annotators disagree | 42
        more_labels | more for ± 3 | count | further traces to label for ± 3 points | 30
        """,
    ),
    "modes": (
        "Modes in failed and successful traces",
        f"""
        rate:failed | failed | share | share of failed traces | 95
        rate:succeeded | succeeded | share | share of successful traces | 95
        {_DIFFERENCE.strip().format(first="failed", second="successful")}
        {_P_ADJUSTED}
        severity | class | text | | 92
        {_PUBLISHED}
        """,
    ),
    "counts": (
        "Counts and tests of the modes",
        """
        rate:failed#count | failed | count | failed traces with the mode
        rate:failed#n | of | count | failed traces with a verdict on the mode
        rate:succeeded#count | succeeded | count | successful traces with the mode
        rate:succeeded#n | of | count | successful traces with a verdict on the mode
        unsure | unsure | count | traces with the verdict unsure
        open | open | count | traces without a verdict
        unresolved | unresolved | count | open because annotators disagree
        rate:success_if_present | success with mode | share | share of success with the mode
        rate:success_if_absent | without mode | share | share of success without the mode
        p_value | p | p_value | p of Fisher's exact test
        severity_because | reason | text | reason for the class
        """,
    ),
    "stratified": (
        "Difference failed minus successful, stratified by model",
        f"""
        strata | models | count | models with both outcomes | 30
        strata#n | n | count | traces of these models | 40
        {_DIFFERENCE.strip().format(first="failed", second="successful")}
        """,
    ),
    "corrected": (
        "Prevalence corrected for the judge's errors",
        """
        n_unlabelled | traces | count | judged traces that no one has finished
        apparent | uncorrected | share | share of present verdicts of the judge | 80
        corrected | corrected | share | share corrected for the judge's errors
        """,
    ),
    "category_shares": (
        "Shares of the categories",
        """
        name | category | text | | 100
        share:failed | share, failed | share | share of the modes found in failed traces
        rate:failed | traces, failed | share | failed traces with any of its modes | 40
        share:succeeded | share, succeeded | share | share of those in successful traces | 30
        rate:succeeded | traces, succeeded | share | successful traces with any of its modes | 20
        """,
    ),
    "first_failure": (
        "Position of the first failure in the run",
        """
        part | part of the run | text | | 100
        traces | traces | count | | 90
        share | share | share | share of the traces | 80
        """,
    ),
    "first_mode": (
        "Mode that occurs first",
        """
        rate#count | traces | count | traces in which it occurs first | 90
        rate | share | share | share of the traces with a place | 80
        """,
    ),
    "transitions": (
        "Mode that occurs next",
        """
        step | step | text | | 100
        name | next mode | text | | 90
        transitions | traces | count | | 95
        """,
    ),
    "mode_onsets": (
        "Where in the run each mode first occurs",
        """
        position#value | median | share | median position of the first occurrence | 90
        position#low | from | share | lower quartile | 70
        position#high | to | share | upper quartile | 70
        position#n | n | count | traces | 80
        """,
    ),
    "after_fatal": (
        "Length of runs after the first fatal failure",
        """
        by | fatal | text | criterion for fatal | 100
        median | spans | count | spans after the failure, median | 90
        low | from | count | lower quartile | 60
        high | to | count | upper quartile | 60
        share | of the run | share | share of the run, median | 70
        n | n | count | traces | 80
        """,
    ),
    "order_counts": (
        "Order in which two modes first occur",
        """
        pair | modes | text | | 100
        sets_on:before | first earlier | count | | 90
        sets_on:after | second earlier | count | | 90
        sets_on:together | same span | count | | 60
        sets_on:before#n | n | count | traces with both | 80
        """,
    ),
    "chain_counts": (
        "Chains of failure",
        """
        chain | modes in order | text | | 100
        chains | traces | count | | 90
        """,
    ),
    "bill": (
        "Cost of failed runs before and after the first fatal failure",
        """
        by | fatal | text | criterion for fatal | 100
        what | cost | text | | 99
        total | all | count | failed traces in total | 60
        before | before | count | before the first fatal failure | 70
        after | after | count | from the first fatal failure on | 90
        share | share after | share | share from the first fatal failure on | 95
        n | n | count | failed traces with known cost | 80
        """,
    ),
    "pairs": (
        "Pairs of modes that occur together most often",
        """
        pair | modes | text | | 100
        jaccard#count | both | count | {which} with both | 95
        phi#n | compared | count | traces with verdicts on both | 80
        jaccard#value | share of either | share | share of traces with either (Jaccard) | 70
        phi | φ | number | correlation φ | 60
        """,
    ),
    "helps": (
        "What helps",
        """
        decided | decided | count | failed traces that it decided | 90
        showing | found in | count | {which} with the mode | 80
        """,
    ),
}
"""The title and the columns of each table of a group; ``_MODE`` precedes the columns for modes."""

_SCORES: Final = """
    metric | metric | text | | 100
    mean | mean | share | mean over the traces | 95
    n | traces | count | traces with the score | 90
"""
_ALL_SHARES: Final = """
    name | category | text | | 100
    share:all#value | share | share | share of all modes found
    rate:all | traces | share | traces with any of its modes | 40
"""
"""The columns of categories if few outcomes are known."""

_ALONG: Final = f"""
    first | {{first}} | share | share, {{first}} | 80
    last | {{last}} | share | share, {{last}} | 80
    slope | {{slope}} | points | {{slope_words}}
    {_P_ADJUSTED}
"""


_LENGTH_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "length": (
        "Share of runs with the mode, by length of the run",
        "Bins are quartiles of the number of spans. p: test for trend.",
    ),
    "hazard": (
        "Hazard: first occurrences among runs that reached the steps without the mode",
        "Runs with the mode but without its place are excluded.",
    ),
}
"""The title and the explanation of the tables of rates by bins, by scope."""

_MANTEL_HAENSZEL: Final = Note(
    "Mantel-Haenszel estimates with models as strata; intervals of differences: Miettinen and "
    "Nurminen.",
    "mantel_haenszel",
)
_OPPOSITE_SIGN: Final = Note("†: the difference over all models has the opposite sign.", "mark")
_MORE_LABELS: Final = Note(
    "more for ± 3: approximate number of further traces for an interval of ± 3 points.",
    "more_labels",
)


def signatures_report(
    signatures: SignatureReport,
    *,
    extras: Extras | None = None,
    groups_asked: bool = False,
    experiment: tuple[Experiment, FigureIndex] | None = None,
) -> model.Report:
    """Make the report with charts: sections on all traces, each group, and further subjects.

    Args:
        signatures: The figures.
        extras: The taxonomy with its strategies, the numbers of fatal failures, and examples.
        groups_asked: Whether the user asked for groups. Then all groups have sections, and the
            section on all traces has only the shares of modes. Otherwise only groups of
            ``LEAST_TRACES`` or more have sections.
        experiment: Two groups as the arms of an experiment, with its figures.
    """
    grouping = signatures.inputs.by
    by_groups = groups_asked and grouping != ALL
    group_names = list(signatures.groups) if by_groups else large_groups(signatures)
    ids = group_ids(signatures)
    groups = [
        _Group(signatures, name, f"-{ids[name]}", extras=extras) for name in (OVERALL, *group_names)
    ]
    document = signature_document(signatures)
    sections = [
        _shares_section(group) if by_groups and group.name == OVERALL else _group_section(group)
        for group in groups
    ]
    if experiment is not None:
        document |= pair_document(*experiment)
        sections += experiment_sections(*experiment)
    claims = claims_section(signatures)
    if claims is not None:
        sections.append(claims)
    if signatures.axis is not None:
        sections.append(_trend_section(signatures, signatures.axis))
    sections.append(
        ReportSection("method", "Methods", (_method_text(signatures), *_measured_effects(extras)))
    )
    notes = [
        *_limit_notes(cannot_say(signatures.inputs)),
        *_hidden_groups_note(signatures, len(group_names)),
    ]
    return model.Report(
        id="signatures",
        title="Failure signatures" + (f" by {grouping.replace(',', ' and ')}" if by_groups else ""),
        about=_report_description(signatures, grouping if by_groups else ALL),
        sections=tuple(sections),
        notes=tuple(notes),
        document=document,
    )


def _group_section(group: _Group) -> ReportSection:
    """Make the section on a group of traces, with all its charts, tables and texts."""
    return ReportSection(
        f"group{group.suffix}",
        group.title,
        _page_parts(group),
        tuple(_group_facts(group.group)),
        tuple(group.summary_notes()),
    )


def _shares_section(group: _Group) -> ReportSection:
    """Make the section on a group of traces with only the shares of modes."""
    chart = group_charts(group.signatures, group.name).get("occurrence")
    return ReportSection(
        f"group{group.suffix}",
        group.title,
        existing_parts(chart, group.prevalence()),
        tuple(_group_facts(group.group)),
    )


def _hidden_groups_note(signatures: SignatureReport, shown_count: int) -> Iterator[Note]:
    """Yield a note on the groups that are too small for a section."""
    grouping = signatures.inputs.by
    group_count = len(signatures.groups)
    # A single group has all traces, which always have a section.
    hidden_count = group_count - shown_count
    if grouping != ALL and group_count > 1 and hidden_count:
        yield Note(
            f"Without a section: {counted(hidden_count, grouping)} with fewer than {LEAST_TRACES} "
            f"traces (--by {grouping} shows all).",
            "small_groups",
        )


def what_helps(taxonomy: Taxonomy) -> dict[str, Any]:
    """Return the strategies against modes, as ``report --json`` prints them.

    Args:
        taxonomy: The taxonomy with its strategies.

    Returns:
        ``strategies`` by the code of the mode; ``measured``: published effects with their
        ``source``, None unless the taxonomy is MAST.
    """
    measured = None
    if taxonomy.id == "mast":
        gains = published_gains()
        (title, address), *_ = gains.links
        measured = {"text": list(gains.paragraphs), "source": {"title": title, "url": address}}
    return {
        "strategies": {mode.code: list(mode.fixes) for mode in taxonomy.modes if mode.fixes},
        "measured": measured,
    }


def group_report(
    signatures: SignatureReport,
    group: str,
    *,
    over_all_traces: bool = False,
    extras: Extras | None = None,
) -> model.Report:
    """Make the report on one group of traces for a screen, without charts.

    Args:
        signatures: The figures.
        group: The name of a group, or ``OVERALL`` for all traces.
        over_all_traces: Whether the tables on places and on pairs of modes are about all traces
            instead of failed ones.
        extras: As in ``signatures_report``; with a taxonomy there is a section on what helps.

    Raises:
        KeyError: There is no such group.
    """
    group_tables = _Group(
        signatures, group, "", is_page=False, over_all_traces=over_all_traces, extras=extras
    )
    notes = [
        *_limit_notes(group_cannot_say(signatures, group)),
        *_limit_notes(cannot_say(signatures.inputs)),
    ]
    if not group_tables.compares:
        notes.append(Note(HOW_TO_GIVE_OUTCOMES, "no_outcomes"))
    notes += [Note(text, "method") for text in _rule_sentences(signatures)]
    return model.Report(
        id="signatures",
        title=group_tables.title,
        about=_report_description(signatures, signatures.inputs.by),
        sections=tuple(_screen_sections(group_tables)),
        notes=tuple(notes),
        facts=tuple(_group_facts(group_tables.group)),
    )


def _screen_sections(group: _Group) -> Iterator[ReportSection]:
    """Yield the sections on a group for a screen."""
    yield ReportSection(
        "modes",
        "modes",
        existing_parts(
            group.prevalence(),
            group.modes(),
            *group.categories(),
            group.stratified(),
            group.corrected(),
        ),
    )
    onset_notes = () if group.places is not None else (_no_places_note(group.signatures),)
    yield ReportSection("onset", "onset", group.onset_tables(), notes=onset_notes)
    yield ReportSection("together", "together", existing_parts(group.matrix(), group.pairs()))
    strategies = group.strategies_table()
    if strategies is not None:
        yield ReportSection("helps", "what helps", (strategies, *_measured_effects(group.extras)))


def _page_parts(group: _Group) -> tuple[model.Part, ...]:
    """Return the charts, tables and texts of a group's page, in their order."""
    charts = group_charts(group.signatures, group.name)
    return existing_parts(
        charts.get("occurrence"),
        group.prevalence(),
        group.scores(),
        charts.get("prevalence"),
        charts.get("difference"),
        group.modes(),
        group.counts(),
        group.stratified(),
        group.corrected(),
        charts.get("distribution"),
        charts.get("shapes"),
        charts.get("categories"),
        *group.categories(),
        charts.get("onset"),
        charts.get("chains"),
        *group.onset_tables(),
        group.length_table("length", "spans", _P_ADJUSTED),
        group.length_table("hazard", "steps"),
        charts.get("order"),
        charts.get("together"),
        group.pairs(),
        *group.strategy_texts(),
        *group.example_texts(),
    )


def _report_description(signatures: SignatureReport, grouping: str) -> str:
    """Return a line that names the taxonomy, the source of labels, the grouping and outcomes."""
    inputs = signatures.inputs
    overall = signatures.group(OVERALL)
    limit = inputs.failed_below
    outcome_rule = "" if limit is None else f" Traces with a score below {limit:g} count as failed."
    grouping_words = "" if grouping == ALL else f", by {grouping}"
    return (
        f"{inputs.taxonomy_ref}, labels: {labels_source(inputs)}{grouping_words}; "
        f"{counted(len(inputs.traces), 'trace')}: {overall.count('traces', 'failed'):,} failed, "
        f"{overall.count('traces', 'succeeded'):,} succeeded, "
        f"{overall.count('traces', 'unknown'):,} unknown.{outcome_rule}"
    )


def _group_facts(group: FigureTable) -> Iterator[KeyFact]:
    """Yield facts on a group: counts of traces, scores, modes."""
    failed = group.count("traces", "failed")
    unknown_count = group.count("traces", "unknown")
    yield KeyFact("traces", f"{group.count('traces'):,}")
    yield KeyFact("failed", f"{failed:,}")
    yield KeyFact("succeeded", f"{group.count('traces', 'succeeded'):,}")
    yield from applicable((unknown_count, KeyFact("outcome unknown", f"{unknown_count:,}")))
    score = group["mean_score"]
    if score.value is not None:
        comment = "" if score.interval is None else f"{score.low:.3f} to {score.high:.3f}, "
        yield KeyFact("mean score", f"{score.value:.3f}", f"{comment}n {score.n:,}")
    if not compares_outcomes(group):
        return
    mean = group["modes_per_failed_trace"]
    if mean.value is not None:
        comment = ""
        if mean.interval is not None:
            comment = f"{mean.low:.1f} to {mean.high:.1f}"
        if mean.bounds is not None:
            low, high = mean.bounds
            comment = f"bounds {low:.1f} to {high:.1f}, {mean.unresolved:,} unresolved"
        yield KeyFact("modes per failed trace", f"{mean.value:.1f}", comment)
    for shape in ("isolated", "cascading"):
        count = group.count("shape", shape)
        if count:
            yield KeyFact(shape, f"{count:,}", f"{count / failed:.0%} of failed")


def _limit_notes(sentences: Iterable[str]) -> Iterator[Note]:
    return (Note(sentence, "cannot_say") for sentence in sentences)


def _no_places_note(signatures: SignatureReport) -> Note:
    """Return a note on why there are no tables on the positions of failures."""
    sentence = "There are no figures on places: no label is on a span of known position."
    if signatures.inputs.labels_on_unknown_spans:
        sentence += (
            " The labelled traces have not been read with this workspace: open their folder once "
            "with mast-tui FOLDER."
        )
    else:
        sentence += " Label with the cursor on a span; t labels the whole trace."
    return Note(sentence, "no_places")


def _n_of_success(figure: Figure) -> int | None:
    """Return n for a share of success with traces, otherwise None."""
    return figure.n or None if figure.condition.startswith("success_if_") else None


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _without_missing_ratio(cells: dict[str, Cell]) -> dict[str, Cell]:
    """Return the cells without an undefined ratio; a note gives the reason."""
    return {
        key: cell for key, cell in cells.items() if key != "risk_ratio" or not _is_undefined(cell)
    }


def _interval_notes(
    signatures: SignatureReport, name: str, *figure_tables: FigureTable
) -> Iterator[Note]:
    """Yield notes on why figures of modes and corrected prevalences have no interval."""
    corrected_by_scope = [signatures.corrected(name, scope) for scope in PREVALENCE_PATHS]
    corrected = [
        mode_figures for by_mode in corrected_by_scope for mode_figures in by_mode.values()
    ]
    yield from withheld_notes(*figure_tables, *corrected)


def _missing_ratio_notes(
    figures_by_code: Mapping[str, FigureTable], traces_by_reason: Mapping[str, str]
) -> Iterator[Note]:
    """Yield a note for each reason why modes have no risk ratio.

    ``traces_by_reason`` has a phrase such as "no successful trace" for each reason.
    """
    for reason, traces in traces_by_reason.items():
        codes = [
            code
            for code, figures in figures_by_code.items()
            if figures["risk_ratio"].undefined == reason
        ]
        if codes:
            yield Note(
                f"The ratio is undefined if {traces} shows the mode: {', '.join(codes)}.", reason
            )


def _missing_figure_sentences(figures: FigureTable) -> Iterator[str]:
    """Yield each reason why the difference or the ratio of a mode is missing, once."""
    sentences = (
        _MISSING.get(figure.reason, f"The difference has {why_no_interval(figure)}.")
        for figure in (figures["difference"], figures["risk_ratio"])
        if figure.reason
    )
    yield from dict.fromkeys(sentences)


def _is_undefined(cell: Cell) -> bool:
    return isinstance(cell, Figure) and cell.value is None


def _without_undefined_columns(table: Table) -> Table | None:
    """Return a table without the columns of undefined figures; None without any value."""
    cells = [(key, cell) for row in table.rows for key, cell in row.cells.items()]
    keys_with_values = {key for key, cell in cells if not _is_undefined(cell)}
    undefined_keys = {key for key, _ in cells} - keys_with_values
    figure_keys = {key for key, cell in cells if isinstance(cell, Figure | float)}
    if not table.rows or (figure_keys and figure_keys <= undefined_keys):
        return None
    shown_columns = tuple(column for column in table.columns if column.key not in undefined_keys)
    shown_keys = {column.key for column in shown_columns}

    def without_undefined(row: Row) -> Row:
        return replace(
            row,
            cells={key: cell for key, cell in row.cells.items() if key in shown_keys},
            cell_sources={
                key: sources for key, sources in row.cell_sources.items() if key in shown_keys
            },
        )

    return replace(
        table,
        columns=shown_columns,
        groups=tuple(tuple(map(without_undefined, rows)) for rows in table.groups),
    )


class _DecisiveMode(NamedTuple):
    """A mode with the number of failed traces that it decided, and of traces that show it.

    ``decided`` is None if few outcomes are known.
    """

    code: str
    decided: int | None
    showing: int


@dataclass(frozen=True)
class _Group(GroupFigures):
    """The tables of one group.

    Attributes:
        suffix: The suffix of the tables' ids, different for each group.
        is_page: True for a page with charts beside its tables; False for a screen.
        over_all_traces: Whether the tables on places and on pairs of modes are about all traces.
        extras: The taxonomy, the traces that modes decided, and examples.
    """

    suffix: str
    is_page: bool = True
    over_all_traces: bool = False
    extras: Extras | None = None

    def own_n(self, figure: Figure) -> int | None:
        """Return n of a share; None if it is 0, or the number of all traces with the outcome."""
        size = self.trace_counts.get(figure.condition)
        return None if size is None or figure.n in (0, size) else figure.n

    @property
    def places(self) -> FigureTable | None:
        """The figures of all places in the traces of ``side``."""
        return self.signatures.places(self.name, self.side)

    @property
    def side(self) -> str:
        """The traces of the tables on places and on pairs of modes: ``failed`` or ``all``."""
        return self.outcome or "all"

    def figures_of_side(self, scope: str) -> dict[str, FigureTable]:
        """Return figures of the traces of ``side``, by mode or pair."""
        return self.signatures.figures_by_key(f"{scope}_{self.side}", self.name)

    @cached_property
    def outcome(self) -> str | None:
        """``failed`` if the tables on places and on pairs are about failed traces only, else None.

        On a page, they are about all traces if no label of a failed trace has a place.
        """
        if not self.compares or self.over_all_traces:
            return None
        places = self.signatures.places(self.name, "failed") if self.is_page else None
        lacks_places = places is not None and not places.count("traces")
        return None if lacks_places else "failed"

    @property
    def traces_text(self) -> str:
        """The words for the traces of ``side``."""
        return "traces" if self.outcome is None else "failed traces"

    def columns(self, id: str) -> tuple[Column, ...]:
        """Return the columns of a table of ``_TABLES``."""
        return columns(_TABLES[id][1], which=self.traces_text)

    def make_table(
        self,
        id: str,
        rows: Iterable[Row],
        *notes: Note,
        title: str = "",
        columns: Iterable[Column] = (),
        traces: str = "",
        folded: bool = False,
    ) -> Table | None:
        """Make a table of this group, without columns of undefined figures.

        Args:
            id: The key of the table in ``_TABLES``, which has its title and columns.
            rows: The rows; rows with the cell ``code`` are about modes.
            notes: The notes.
            title: Another title than in ``_TABLES``.
            columns: Other columns than in ``_TABLES``.
            traces: The number of traces, in words; by default by outcome.
            folded: Whether a page shows the table folded.

        Returns:
            The table; None without rows or values.
        """
        rows = tuple(rows)
        if not rows:
            return None
        title = title or _TABLES[id][0]
        table_columns = tuple(columns) or self.columns(id)
        if "code" in rows[0].cells:
            table_columns = (*_MODE, *table_columns)
        caption = f"{self.title}: {traces or self.sides_text}."
        if id == "mode_shares":
            caption += f" {source_words(self.signatures)}"
        return _without_undefined_columns(
            Table(f"{id}{self.suffix}", title, table_columns, (rows,), caption, notes, folded)
        )

    def mode_cells(self, code: str) -> dict[str, Cell]:
        """Return the cells that name the row of a mode."""
        return {"code": code, "name": self.modes_by_code[code].name}

    @property
    def sides_text(self) -> str:
        """The numbers of failed and of successful traces, in words."""
        failed = counted(self.trace_counts["failed"], "failed trace")
        return f"{failed} and {counted(self.trace_counts['succeeded'], 'successful trace')}"

    @cached_property
    def modes_by_code(self) -> dict[str, Mode]:
        """The modes by code."""
        return {mode.code: mode for mode in self.signatures.inputs.modes}

    def source_rows(
        self,
        id: str,
        keyed_figures: Iterable[tuple[str, FigureTable]],
        source: str,
        detail: Callable[[FigureTable], Iterable[str]] = lambda _table: (),
    ) -> list[Row]:
        """Make a row for each mode or pair of modes.

        Args:
            id: The key of the table in ``_TABLES``.
            keyed_figures: The code of the mode or the key of the pair of each row, and its figures.
            source: The figure, as ``statistic:condition``, with the source traces of a row.
            detail: Returns the sentences on a row.
        """
        table_columns = self.columns(id)
        statistic, _, condition = source.partition(":")
        rows = []
        for key, figures in keyed_figures:
            codes = key.split(PAIR)
            cells = figure_cells(figures, table_columns)
            if len(codes) == 1:
                cells |= self.mode_cells(key)
            elif table_columns[0].key == "step":  # a mode and the next mode
                cells |= {"step": " → ".join(codes), "name": self.modes_by_code[codes[1]].name}
            else:
                cells["pair"] = " + ".join(codes)
            sources = figures.find(statistic, condition).sources
            ident = f"{id} {' '.join(codes)}"
            rows.append(Row(ident, cells, detail=tuple(detail(figures)), sources=sources))
        return rows

    # Modes in all traces, in failed and in successful ones.

    def sources_of(self, code: str) -> Sources | None:
        """Return the query for the traces that show a mode; None without such traces."""
        figure = self.figures_by_code[code].find("rate", "all")
        return figure.sources if figure.count else None

    def prevalence(self) -> Table | None:
        """Make the table of how often each mode occurs in all traces, whatever their outcome."""
        table_columns = self.columns("mode_shares")
        rows = []
        for code, figures in self.figures_by_code.items():
            cells = self.mode_cells(code) | figure_cells(figures, table_columns)
            if not figures.find("rate", "all").n:
                cells["rate:all"] = Figure(reason="not_judged")
            for key in ("unsure", "open", "unresolved"):
                cells[key] = cells[key] or None  # hide 0
            rows.append(
                Row(
                    code,
                    cells,
                    detail=tuple(self._corrected_sentence(code)),
                    sources=self.sources_of(code),
                )
            )
        known_count = self.trace_counts["failed"] + self.trace_counts["succeeded"]
        few_outcomes = (
            "The comparison of failed with successful traces needs at least "
            f"{LEAST_OUTCOMES} traces with an outcome; {known_count:,} of "
            f"{counted(self.trace_counts['all'], 'trace')} {'has' if known_count == 1 else 'have'} "
            "one."
        )
        notes = applicable(
            (not self.compares and self.trace_counts["all"], Note(few_outcomes, "few_outcomes")),
            (
                any(figures.value("more_labels") for figures in self.figures_by_code.values()),
                _MORE_LABELS,
            ),
        )
        source = counted(self.trace_counts["all"], "labelled trace")
        rates = [figures.find("rate", "all") for figures in self.figures_by_code.values()]
        return self.make_table("mode_shares", rows, *notes, *withheld_notes(*rates), traces=source)

    def modes(self) -> Table | None:
        """Make the table of how often each mode occurs in failed and in successful traces.

        The result is None if few outcomes are known.
        """
        if not self.compares:
            return None
        rows = [self._mode_row(code, figures) for code, figures in self.figures_by_code.items()]
        withheld = _interval_notes(self.signatures, self.name, *self.figures_by_code.values())
        return self.make_table(
            "modes",
            rows,
            *self._judged_on_fewer_note(),
            *_missing_ratio_notes(
                self.figures_by_code,
                {"none_in_succeeded": "no successful trace", "never_seen": "no trace"},
            ),
            *withheld,
        )

    def scores(self) -> Table | None:
        """Make the table of the benchmark's further scores; None without any."""
        rows = tuple(
            Row(metric, {"metric": metric, "mean": figure_cell(figure), "n": figure.n})
            for metric, figure in self.group.by_name("mean_score").items()
        )
        title = "Further scores of the benchmark"
        return Table(f"scores{self.suffix}", title, columns(_SCORES), (rows,)) if rows else None

    def counts(self) -> Table | None:
        """Make the table of counts and tests of the modes."""
        if not self.compares:
            return None
        rows = [
            Row(
                code,
                {
                    **self.mode_cells(code),
                    **figure_cells(figures, self.columns("counts"), _n_of_success),
                    "severity_because": _BECAUSE[
                        class_of_mode(figures, self.signatures.rules).reason
                    ],
                },
            )
            for code, figures in self.figures_by_code.items()
        ]
        return self.make_table(
            "counts",
            rows,
            Note(
                "Success with and without a mode is an association, not an effect of the mode.",
                "no_effect",
            ),
            folded=True,
        )

    def _mode_row(self, code: str, figures: FigureTable) -> Row:
        """Make the row of a mode: its shares by outcome, and its class."""
        rates = {side: figures.find("rate", side) for side in OUTCOMES}
        return Row(
            code,
            {
                **self.mode_cells(code),
                **_without_missing_ratio(figure_cells(figures, self.columns("modes"), self.own_n)),
                "severity": class_of_mode(figures, self.signatures.rules).severity,
                "stated": self.signatures.published_class(self.modes_by_code[code]),
            },
            detail=tuple(self._mode_sentences(figures)),
            sources=self.sources_of(code),
            cell_sources={
                f"rate:{side}": rate.sources for side, rate in rates.items() if rate.count
            },
        )

    def _mode_sentences(self, figures: FigureTable) -> Iterator[str]:
        """Yield the sentences of a mode's detail: its shares, its class, and excluded traces."""
        yield f"Failed: {_rate_words(figures.find('rate', 'failed'))}."
        yield f"Succeeded: {_rate_words(figures.find('rate', 'succeeded'))}."
        yield from _missing_figure_sentences(figures)
        rules = self.signatures.rules
        mode_class = class_of_mode(figures, rules)
        explanation = {
            "more_in_failed": f"it is more frequent in failed traces, adjusted p < {rules.alpha:g}",
            "seen_in_successes": (
                f"at least {rules.least} successful traces show it, and the interval of the "
                f"difference ends at or below {100 * rules.margin:g} points"
            ),
            "too_few_traces": (
                f"fewer than {rules.least} failed or successful traces have a verdict on it"
            ),
            "unresolved": "more than 2 % of the verdicts on it are unresolved disagreements",
            "not_told_apart": "the traces do not show whether it is fatal or benign",
        }[mode_class.reason]
        yield f"Class: {mode_class.severity}; {explanation}."
        unsure, not_judged, unresolved = map(figures.count, ("unsure", "open", "unresolved"))
        left_out = applicable(
            (unsure, f"{counted(unsure, 'trace')} unsure"),
            (not_judged, f"{counted(not_judged, 'trace')} without a verdict"),
            (unresolved, f"{unresolved:,} of them unresolved"),
        )
        yield from applicable((left_out, f"Excluded: {', '.join(left_out)}."))

    def _judged_on_fewer_note(self) -> Iterator[Note]:
        """Yield a note on modes with verdicts on only a part of the failed or successful traces."""
        n_by_code = {
            code: [figures.find("rate", side).n for side in OUTCOMES]
            for code, figures in self.figures_by_code.items()
            if figures.find("rate", "all").n
        }
        parts = [
            f"{code} {failed_n:,}/{succeeded_n:,}"
            for code, (failed_n, succeeded_n) in n_by_code.items()
            if [failed_n, succeeded_n] != [self.trace_counts[side] for side in OUTCOMES]
        ]
        text = f"Modes with verdicts on fewer traces (failed/successful): {', '.join(parts)}."
        yield from applicable((parts, Note(text, "judged_on_fewer")))

    def stratified(self) -> Table | None:
        """Make the table of differences between failed and successful traces within models."""
        figures_by_code = self.signatures.figures_by_key("stratified", self.name)
        if not figures_by_code or not self.compares:
            return None
        reversed_codes = [
            code for code in figures_by_code if is_reversed(self.signatures, self.name, code)
        ]
        rows = [
            Row(
                code,
                self.mode_cells(code) | figure_cells(figures, self.columns("stratified")),
                mark="†" if code in reversed_codes else "",
                detail=tuple(_missing_within_models(figures)),
                sources=figures["strata"].sources,
            )
            for code, figures in figures_by_code.items()
        ]
        return self.make_table(
            "stratified",
            rows,
            *self._stratified_notes(reversed_codes),
            *withheld_notes(*figures_by_code.values()),
        )

    def _stratified_notes(self, reversed_codes: list[str]) -> tuple[Note, ...]:
        """Return the notes on differences within models, and on modes with the opposite sign."""
        paradox = (
            f"For {joined_names(reversed_codes)}, the difference within models has the opposite "
            "sign of the difference over all models, which is therefore misleading (Simpson's "
            "paradox)."
        )
        totals = self.signatures.figures.table("stratified", group=self.signatures.key(self.name))
        unknown_count = totals.count("unknown_model")
        left_out = f"Excluded: {counted(unknown_count, 'trace')} of an unknown model."
        return applicable(
            (reversed_codes, Note(paradox, "reversed", warning=True)),
            (unknown_count, Note(left_out, "left_out")),
            (True, _MANTEL_HAENSZEL),
            (reversed_codes, _OPPOSITE_SIGN),
        )

    def corrected(self) -> Table | None:
        """Make the table of prevalences corrected for the judge's errors."""
        rows = [
            Row(
                code,
                {**self.mode_cells(code), **figure_cells(figures, self.columns("corrected"))},
                detail=tuple(self._corrected_sentence(code)),
            )
            for code, figures in self.signatures.corrected(self.name).items()
        ]
        return self.make_table(
            "corrected",
            rows,
            Note(
                "Judged traces that no one has finished. The correction (Rogan and Gladen) "
                "assumes that the judge makes the same errors on them as on traces with gold.",
                "corrected",
            ),
        )

    def _corrected_sentence(self, code: str) -> Iterator[str]:
        """Yield a mode's share corrected for the judge's errors, or why it cannot be corrected."""
        figures = self.signatures.corrected(self.name).get(code)
        if figures is None:
            return
        corrected = figures["corrected"]
        if corrected.value is None:
            explanation = _MISSING.get(corrected.reason, "There are too few data.")
            yield f"Not corrected for the judge's errors: {explanation[0].lower()}{explanation[1:]}"
            return
        interval_text = ""
        if corrected.interval is not None:
            low, high = map(_percent, corrected.interval)
            interval_text = f" ({low} to {high})"
        if corrected.bounds is not None:
            low, high = map(_percent, corrected.bounds)
            interval_text = f" (bounds {low} to {high}, unresolved disagreements)"
        elif corrected.withheld is not None:
            interval_text = f" ({why_no_interval(corrected)})"
        yield (
            f"Corrected for the judge's errors: {_percent(corrected.value)}{interval_text}; "
            f"uncorrected: {_percent(figures.value('apparent') or 0.0)}; "
            f"{figures.count('n_unlabelled'):,} judged traces that no one has finished."
        )

    def categories(self) -> Iterator[Table | None]:
        """Yield for each level the table of the categories' shares of modes and of traces."""
        for number, (level, scope, groups) in enumerate(self.levels, start=1):
            ident = "category_shares" if number == 1 else f"level_{number}"
            yield self._category_table(ident, scope, groups, level)

    @property
    def levels(self) -> Iterator[tuple[str, str, tuple[Group, ...]]]:
        """Each level of categories: its name (empty for the first), scope, and categories."""
        inputs = self.signatures.inputs
        yield "", "category", inputs.categories
        # ``categories`` are those of the first level.
        for level, groups in list(inputs.levels.items())[1:]:
            yield level, f"level {level}", groups

    def _category_table(
        self, ident: str, scope: str, categories: Iterable[Group], level: str
    ) -> Table | None:
        """Make the table of the shares of the categories of one level.

        ``level`` is the name of the level, empty for the first.
        """
        title, lines = _TABLES["category_shares"]
        table_columns = columns(lines if self.compares else _ALL_SHARES)
        if level:
            table_columns = tuple(
                replace(column, title=level) if column.key == "name" else column
                for column in table_columns
            )
            title = f"{title} ({level})"
        figures_by_id = self.signatures.figures_by_key(scope, self.name)
        rows = [
            Row(
                category.id,
                {
                    "name": category.title,
                    **figure_cells(figures_by_id[category.id], table_columns, self.own_n),
                },
            )
            for category in categories
            if figures_by_id[category.id].count("shown", "all")
        ]
        return self.make_table(ident, rows, title=title, columns=table_columns, folded=self.is_page)

    def onset_tables(self) -> tuple[Table, ...]:
        """Return the tables on the positions and the order of failures, and on what follows them.

        They are missing if no label has a place.
        """
        places = self.places
        if places is None or not places.count("traces"):
            return ()
        return existing_parts(
            self._tenths_table(places),
            self._first_modes_table(places),
            self._transitions_table(),
            self._onsets_table(),
            self._after_fatal_table(places),
            self._cost_table(),
            self._order_table(),
            self._chains_table(),
        )

    def _traces_with_place(self) -> str:
        """Return the words for the traces with a failure and labels on spans."""
        places = self.places
        assert places is not None
        singular = self.traces_text.removesuffix("s")
        return (
            f"{counted(places.count('traces'), singular)} with labels on spans, of "
            f"{places.count('showing'):,} with a failure"
        )

    def summary_notes(self) -> Iterator[Note]:
        """Yield the notes on a group: on its folded tables, and on missing figures."""
        side = "failed" if self.compares else "all"
        for _, scope, categories in self.levels:
            figures_by_id = self.signatures.figures_by_key(scope, self.name)
            shares = {title: figures_by_id[id].value("share", side) for id, title, _ in categories}
            share_texts = [
                f"{name} {_percent(share)}" for name, share in shares.items() if share is not None
            ]
            if share_texts:
                yield Note(
                    f"Categories of the modes found in {side} traces: {', '.join(share_texts)}.",
                    "categories",
                )
        yield from self.first_failure_notes()
        yield from _limit_notes(group_cannot_say(self.signatures, self.name))

    def first_failure_notes(self) -> Iterator[Note]:
        """Yield a note on the position of the first failure; none if no position is known."""
        first = None if self.places is None else self.places["position"]
        if first is not None and first.value is not None and first.interval is not None:
            low, high = map(_percent, first.interval)  # a median has quartiles as its interval
            yield Note(
                f"Median position of the first failure: {_percent(first.value)} of the run "
                f"(quartiles {low} to {high}; {counted(first.n or 0, 'trace')}).",
                "first_failure",
            )

    def _tenths_table(self, places: FigureTable) -> Table | None:
        """Make the table of traces by the tenth of the run in which they first fail."""
        uncounted_count = places.count("uncounted")
        sentence = f"Excluded: {counted(uncounted_count, 'trace')} with an unknown number of spans."
        notes = [
            *self.first_failure_notes(),
            *applicable((uncounted_count, Note(sentence, "uncounted"))),
        ]
        n = places["position"].n
        counts = [places.count("position_tenth", str(tenth)) for tenth in range(BINS if n else 0)]
        figures_by_tenth = places.by_name("position_tenth")
        rows = [
            Row(
                f"tenth {tenth}",
                {
                    "part": f"{10 * tenth}–{10 * tenth + 10} %",
                    "traces": count,
                    "share": count / (n or 1),
                },
                sources=figures_by_tenth[str(tenth)].sources if count else None,
            )
            for tenth, count in enumerate(counts)
        ]
        return self.make_table(
            "first_failure",
            rows,
            *notes,
            traces=self._traces_with_place(),
            # A page shows the same as a chart, and as a note under the group.
            folded=self.is_page,
        )

    def _first_modes_table(self, places: FigureTable) -> Table | None:
        """Make the table of how often each mode is the first in a trace, most frequent first."""
        tied_count = places.count("tied")
        sentence = (
            f"In {counted(tied_count, 'trace')} several modes occur first, at the same span; each "
            "of them counts."
        )
        modes_by_frequency = sorted(
            self.figures_of_side("first_mode").items(),
            key=lambda item: -(item[1]["rate"].count or 0),
        )
        rows = self.source_rows("first_mode", modes_by_frequency, "rate")
        return self.make_table(
            "first_mode",
            rows,
            *applicable((tied_count, Note(sentence, "tied"))),
            traces=self._traces_with_place(),
        )

    def _transitions_table(self) -> Table | None:
        """Make the table of the most frequent transitions, which are called steps on the page.

        A transition is a mode and the next mode that first occurs.
        """
        transitions = self.figures_of_side("transitions")
        most_frequent = list(transitions.items())[:MOST_STEPS]
        rows = self.source_rows(
            "transitions", most_frequent, "transitions", self._transition_sentence
        )
        limit_sentence = f"The {MOST_STEPS} most frequent of {len(transitions)} steps."
        notes = (
            Note("A → B: B is the next mode that first occurs after A.", "transitions"),
            *applicable((len(transitions) > MOST_STEPS, Note(limit_sentence, "most_frequent"))),
        )
        return self.make_table("transitions", rows, *notes, traces=self._traces_with_place())

    def _transition_sentence(self, transition: FigureTable) -> Iterator[str]:
        """Yield a sentence on how often the first mode of a transition precedes the second."""
        first, second = transition.mode.split(PAIR)
        for pair, figures in self.figures_of_side("order").items():
            pair_modes = pair.split(PAIR)
            if set(pair_modes) == {first, second}:
                # "before" counts traces in which the first mode of the pair begins first.
                is_reversed_pair = pair_modes != [first, second]
                earlier = figures.find("sets_on", "after" if is_reversed_pair else "before")
                later = figures.find("sets_on", "before" if is_reversed_pair else "after")
                yield (
                    f"In {counted(earlier.n or 0, 'trace')} with both, {first} first occurs "
                    f"earlier in {earlier.value or 0:,.0f}, later in {later.value or 0:,.0f}, at "
                    f"the same span in {figures.count('sets_on', 'together'):,}."
                )

    def _onsets_table(self) -> Table | None:
        """Make the table of the positions in the run at which each mode begins."""
        onset_figures = [
            (code, figures)
            for code, figures in self.figures_of_side("onset").items()
            if figures.value("position") is not None
        ]
        return self.make_table(
            "mode_onsets",
            self.source_rows("mode_onsets", onset_figures, "position"),
            traces=self._traces_with_place(),
            folded=True,
        )

    def _after_fatal_table(self, places: FigureTable) -> Table | None:
        """Make the table of the spans that followed the first fatal failure."""
        rows = []
        for definition, definition_text in _FATAL_BY.items():
            spans = places.find("spans_after", definition)
            if spans.value is None:
                continue
            cells: dict[str, Cell] = {
                "by": definition_text,
                "median": spans.value,
                "low": spans.low,
                "high": spans.high,
                "share": places.value("share_after", definition),
                "n": spans.n,
            }
            sentence = (
                f"After the first fatal failure ({definition_text}), the median run had "
                f"{spans.value:.0f} more spans (quartiles {spans.low:.0f} to {spans.high:.0f}; "
                f"{spans.n:,} {self.traces_text})."
            )
            rows.append(Row(f"after {definition}", cells, detail=(sentence,)))
        return self.make_table("after_fatal", rows, traces=self._traces_with_place())

    def _order_table(self) -> Table | None:
        """Make the table of how often each mode of a pair first occurs before the other."""
        # ``n`` is the number of traces with both modes.
        pairs_by_frequency = sorted(
            self.figures_of_side("order").items(),
            key=lambda item: -(item[1].find("sets_on", "before").n or 0),
        )
        return self.make_table(
            "order_counts",
            self.source_rows("order_counts", pairs_by_frequency, "sets_on:before"),
            traces=self._traces_with_place(),
            folded=True,
        )

    def _chains_table(self) -> Table | None:
        """Make the table of chains: the modes of a trace in the order in which they first occur."""
        rows = [
            Row(
                f"chain {number}",
                {
                    "chain": " → ".join("+".join(step) for step in chain_of(chain)),
                    "chains": figures.count("chains"),
                },
                sources=figures["chains"].sources,
            )
            for number, (chain, figures) in enumerate(self.figures_of_side("chains").items())
        ]
        return self.make_table(
            "chain_counts",
            rows,
            Note(
                "A → B: B is the next mode that first occurs after A. A+B: both at the same span.",
                "chains",
            ),
            traces=self._traces_with_place(),
            folded=True,
        )

    def _cost_table(self) -> Table | None:
        """Make the table of the tokens and minutes of failed runs around the fatal failure."""
        rows = [
            self._cost_row(definition, amount)
            for definition, amount in product(_FATAL_BY, ("tokens", "minutes"))
        ]
        return self.make_table(
            "bill", filter(None, rows), traces=f"over {self.trace_counts['failed']:,} failed traces"
        )

    def _cost_row(self, definition: str, amount: str) -> Row | None:
        """Return the row of the tokens or minutes of failed runs; None if they are unknown."""
        totals = self.signatures.figures.table("bill", group=self.signatures.key(self.name))
        condition = f"{definition}{PAIR}{amount}"
        total = totals.get("used_total", condition)
        if total is None:
            return None
        cells: dict[str, Cell] = {
            "by": _FATAL_BY[definition],
            "what": amount,
            "total": round(total.value or 0),
            "before": round(totals.value("used_before_first_fatal", condition) or 0),
            "after": round(totals.value("used_after", condition) or 0),
            "share": totals.value("used_share_after", condition),
            "n": total.n,
        }
        used_by_mode = {
            code: figures.value("used_after", condition) or 0
            for code, figures in self.signatures.figures_by_key("bill", self.name).items()
        }
        codes = sorted(used_by_mode, key=lambda code: -used_by_mode[code])
        parts = [f"{code} {used_by_mode[code]:,.0f}" for code in codes if used_by_mode[code]]
        sentence = f"After the first fatal failure, by its mode: {', '.join(parts)}."
        return Row(f"bill {definition} {amount}", cells, detail=applicable((parts, sentence)))

    def _rates_of_shown_modes(self) -> dict[str, Figure]:
        """Return the rate of each mode that any of the traces shows, by code."""
        rates = {code: mode.find("rate", self.side) for code, mode in self.figures_by_code.items()}
        return {code: rate for code, rate in rates.items() if rate.count}

    def matrix(self) -> Table | None:
        """Make a matrix of modes: the number of traces with both modes.

        The diagonal has the number of traces with each mode.
        """
        rates = self._rates_of_shown_modes()
        figures_by_pair = {
            frozenset(pair.split(PAIR)): figures
            for pair, figures in self.figures_of_side("together").items()
        }
        rows = [self._matrix_row(code, rates, figures_by_pair) for code in rates]
        mode_columns = [
            Column(f"with {code}", code, Kind.COUNT, f"{self.traces_text} that also show {code}")
            for code in rates
        ]
        return self.make_table(
            "together",
            rows,
            Note(
                f"Cells: number of {self.traces_text} with both modes; diagonal: with the one "
                "mode.",
                "matrix",
            ),
            title="Modes that occur together",
            columns=mode_columns,
            traces=self._together_source(),
        )

    def _matrix_row(
        self,
        code: str,
        rates: Mapping[str, Figure],
        figures_by_pair: Mapping[frozenset[str], FigureTable],
    ) -> Row:
        """Return the row of a mode in the matrix, with sources and sentences for its cells."""
        pairs_by_column = {
            f"with {other}": figures_by_pair[frozenset((code, other))]
            for other in rates
            if frozenset((code, other)) in figures_by_pair
        }
        # The count of ``jaccard`` is the number of traces with both modes.
        counted_figures = {key: figures["jaccard"] for key, figures in pairs_by_column.items()}
        counted_figures[f"with {code}"] = rates[code]
        cells: dict[str, Cell] = {f"with {other}": 0 for other in rates}
        cells |= {key: figure.count for key, figure in counted_figures.items()}
        return Row(
            code,
            self.mode_cells(code) | cells,
            sources=rates[code].sources,
            cell_sources={
                key: figure.sources for key, figure in counted_figures.items() if figure.count
            },
            detail_cells={
                key: tuple(_pair_sentences(self.traces_text, figures))
                for key, figures in pairs_by_column.items()
            },
        )

    def _together_source(self) -> str:
        return f"over {counted(self.trace_counts[self.side], self.traces_text.removesuffix('s'))}"

    def pairs(self) -> Table | None:
        """Make the table of the pairs of modes that most often occur in the same trace."""
        pairs = [
            (pair, figures)
            for pair, figures in self.figures_of_side("together").items()
            if figures["jaccard"].count
        ]
        # The count of ``jaccard`` is the number of traces with both modes.
        pairs.sort(key=lambda item: -(item[1]["jaccard"].count or 0))
        rows = self.source_rows(
            "pairs", pairs[:MOST_PAIRS], "jaccard", partial(_pair_sentences, self.traces_text)
        )
        limit_note = Note(f"The {MOST_PAIRS} most frequent of {len(pairs)} pairs.", "most_frequent")
        return self.make_table(
            "pairs",
            rows,
            *applicable((len(pairs) > MOST_PAIRS, limit_note)),
            traces=self._together_source(),
        )

    def _decisive_modes(self) -> list[_DecisiveMode]:
        """Return the modes of failed traces, sorted by the number of traces that each one decided.

        A mode decided a failed trace if its labels in the trace are fatal. If labels make no mode
        fatal, a mode of class "fatal" decided all failed traces with it. If few outcomes are known,
        the modes of all traces are returned.
        """
        # ``compares`` is False if few outcomes are known.
        showing_counts = {
            code: figures.find("rate", "failed" if self.compares else "all").count or 0
            for code, figures in self.figures_by_code.items()
        }
        decided_counts = None if self.extras is None else self.extras.fatal_counts.get(self.name)
        if decided_counts is None:
            decided_counts = {
                code: showing_counts[code]
                for code, figures in self.figures_by_code.items()
                if class_of_mode(figures, self.signatures.rules).severity == "fatal"
            }
        modes = [
            _DecisiveMode(code, decided_counts.get(code, 0) if self.compares else None, count)
            for code, count in showing_counts.items()
            if count
        ]
        return sorted(modes, key=lambda mode: (-(mode.decided or 0), -mode.showing))

    def _strategies_for(self, code: str) -> tuple[str, ...]:
        """Return the strategies against a mode, or a sentence that there are none."""
        assert self.extras is not None
        assert self.extras.taxonomy is not None
        mode = self.extras.taxonomy.find(code)
        fixes = () if mode is None else mode.fixes
        return fixes or ("The taxonomy names no strategy.",)

    def _order_sentence(self) -> str:
        """Return sentences on the order of the modes, and on the rule for a mode that decided."""
        if not self.compares:
            return (
                "Ordered by the number of traces with each mode. The strategies come from the "
                "taxonomy."
            )
        rule = (
            "A mode decided a failed trace if its labels there are fatal."
            if self.extras is not None and self.name in self.extras.fatal_counts
            else 'Labels make no mode fatal, so a mode of class "fatal" counts as having decided '
            "the failed traces with it."
        )
        return (
            f"Ordered by the number of failed traces that each mode decided. {rule} The strategies "
            "come from the taxonomy."
        )

    def length_table(self, scope: str, unit: str, *further_columns: str) -> Table | None:
        """Make a table of rates of the modes in bins of the length of runs; None without any.

        Args:
            scope: ``length`` for shares by the length of the run, ``hazard`` for the hazards in
                ranges of span numbers.
            unit: The unit of the bins.
            further_columns: The lines of columns after the bins, as for ``columns``.
        """
        figures_by_code = {
            code: figures
            for code, figures in self.signatures.figures_by_key(scope, self.name).items()
            if any(figure.value is not None for figure in figures.figures)
        }
        if not figures_by_code:
            return None
        bins = [
            figure.condition
            for figure in next(iter(figures_by_code.values())).figures
            if figure.statistic == "rate"
        ]
        lines = [f"rate:{name} | {name} | share | {unit} {name} | 80" for name in bins]
        figure_columns = columns("\n".join([*lines, *further_columns]))
        rows = [
            Row(code, {**self.mode_cells(code), **figure_cells(figures, figure_columns)})
            for code, figures in figures_by_code.items()
        ]
        title, explanation = _LENGTH_TEXTS[scope]
        return Table(
            f"{scope}{self.suffix}",
            title,
            (*_MODE, *figure_columns),
            (tuple(rows),),
            source_words(self.signatures),
            (Note(explanation, scope),),
            folded=scope == "hazard",
        )

    def strategies_table(self) -> Table | None:
        """Make the table of the modes by how many failed traces each decided.

        The detail of a row has the strategies against the mode. Return None without a taxonomy.
        """
        if self.extras is None or self.extras.taxonomy is None:
            return None
        side = "failed" if self.compares else "all"
        rows = [
            Row(
                mode.code,
                {
                    **self.mode_cells(mode.code),
                    "decided": mode.decided,
                    "showing": mode.showing,
                },
                detail=self._strategies_for(mode.code),
                sources=self.figures_by_code[mode.code].find("rate", side).sources,
            )
            for mode in self._decisive_modes()
        ]
        return self.make_table("helps", rows, Note(self._order_sentence(), "decided"))

    def strategy_texts(self) -> Iterator[model.Text]:
        """Yield texts with the strategies against modes; nothing without a taxonomy.

        The modes that decided the most failed traces come first (``_decisive_modes``); the text on
        the others is folded.
        """
        if self.extras is None or self.extras.taxonomy is None:
            return
        traces_text = (
            counted(self.trace_counts["failed"], "failed trace")
            if self.compares
            else counted(self.trace_counts["all"], "trace")
        )
        paragraphs = [
            f"{mode.code} {self.modes_by_code[mode.code].name} "
            + ("" if mode.decided is None else f"decided {mode.decided or 'none'} and ")
            + f"occurs in {mode.showing} of {traces_text}. "
            + " ".join(self._strategies_for(mode.code))
            for mode in self._decisive_modes()
        ]
        if not paragraphs:
            return
        first_paragraphs = (self._order_sentence(), *paragraphs[:MOST_HELPED])
        yield model.Text(f"helps{self.suffix}", "What helps", first_paragraphs)
        if paragraphs[MOST_HELPED:]:
            yield model.Text(
                f"helps-more{self.suffix}",
                "What helps against the other modes",
                tuple(paragraphs[MOST_HELPED:]),
                folded=True,
            )

    def example_texts(self) -> Iterator[model.Text]:
        """Yield a folded text with examples: labels on failed traces, and the text of the spans."""
        if self.extras is None:
            return
        paragraphs = [
            _example_paragraph(f"{example.code} {self.modes_by_code[example.code].name}", example)
            for example in self.extras.examples
            if example.group == self.name and example.code in self.modes_by_code
        ]
        if paragraphs:
            yield model.Text(
                f"examples{self.suffix}",
                "Examples from failed traces",
                tuple(paragraphs),
                folded=True,
            )


def _rate_words(rate: Figure) -> str:
    """Return a share with its count, n and interval as text."""
    ends = rate.interval or rate.bounds
    if rate.value is None or ends is None:
        return "no trace has a verdict"
    low, high = map(_percent, ends)
    unresolved_text = "" if rate.bounds is None else f", bounds for {rate.unresolved:,} unresolved"
    share = _percent(rate.value)
    return f"{rate.count:,} of {rate.n:,} judged, {share} ({low} to {high}{unresolved_text})"


def _missing_within_models(figures: FigureTable) -> Iterator[str]:
    """Yield why a difference or risk ratio within models is undefined or has no interval."""
    reason = figures["difference"].undefined or figures["risk_ratio"].undefined
    if figures.value("risk_ratio") == 0:  # the ratio has no interval
        reason = "none_in_failed"
    if reason:
        yield _MISSING.get(reason, reason)


def _pair_sentences(traces_text: str, figures: FigureTable) -> Iterator[str]:
    """Yield sentences on how often two modes occur together, and on their correlation."""
    first, second = figures.mode.split(PAIR)
    phi = figures["phi"]
    jaccard = figures["jaccard"]
    neither_count = (phi.n or 0) - (jaccard.n or 0)  # the n of jaccard has either mode
    yield (
        f"{first} and {second}: both in {jaccard.count:,} of {phi.n:,} {traces_text} with "
        f"verdicts on both; only {first} in {figures.count('only_first'):,}, only {second} in "
        f"{figures.count('only_second'):,}, neither in {neither_count:,}."
    )
    share = _percent(jaccard.value or 0.0)
    share_sentence = f"Of the traces with either, {share} have both (Jaccard)"
    if phi.value is None:
        yield f"{share_sentence}; φ is undefined because one of them is in every trace."
    else:
        yield f"{share_sentence}; correlation φ {phi.value:+.2f}."


def _example_paragraph(mode: str, example: LabelExample) -> str:
    """Return a label as text: mode, trace and spans, then the quoted text and the note."""
    location = "whole trace" if example.whole else ""
    if example.first is not None:
        location = f"#{example.first}"
        if example.last not in (None, example.first):
            location += f"–#{example.last}"
    head = ", ".join(part for part in (mode, example.trace, location) if part)
    if example.fatal:
        head += ", labelled fatal"
    quote = " ".join(example.text.split())
    if len(quote) > MOST_QUOTED:
        quote = f"{quote[:MOST_QUOTED].rstrip()}…"
    parts = [f"“{quote}”"] if quote else []
    parts += [f"Note: {' '.join(example.note.split())}"] if example.note else []
    return f"{head}: {' '.join(parts)}"


class _TrendScale(NamedTuple):
    """The unit of slopes: its number of steps, its texts, and a sentence on the axis."""

    step_count: int
    slope: str
    slope_words: str
    sentence: str


def _trend_scale(axis: TrendAxis) -> _TrendScale:
    """Return the unit of the slopes along an axis."""
    if axis.unit == "day":
        day_count = axis.scores[-1]
        return _TrendScale(
            day_count,
            f"in {counted(day_count, 'day')}",
            "points from the first to the last date, linear trend",
            "Dates are scaled in days.",
        )
    return _TrendScale(
        1,
        "per step",
        "points per version, linear trend",
        "Versions count as equal steps, in the order of their numbers.",
    )


def _trend_section(signatures: SignatureReport, axis: TrendAxis) -> ReportSection:
    """Make the section on the trend of each mode along ordered groups."""
    scale = _trend_scale(axis)
    table_columns = columns(
        _ALONG,
        first=axis.groups[0],
        last=axis.groups[-1],
        slope=scale.slope,
        slope_words=scale.slope_words,
    )
    left_out = signatures.figures.table("trend").count("no_group")
    excluded = f"Excluded: {counted(left_out, 'trace')} without a group."
    tables = [
        Table(
            id,
            title,
            (*_MODE, *table_columns),
            (tuple(_trend_rows(signatures, axis, f"trend_{side}", table_columns, scale)),),
            f"Groups in order: {', '.join(axis.groups)}. {source_words(signatures)}",
            (
                Note(f"{scale.sentence} p: Cochran-Armitage test for trend.", "trend"),
                *applicable((left_out, Note(excluded, "left_out"))),
            ),
            folded=side == "all",
        )
        for side, id, title in (
            ("failed", "trend", "Trend in failed traces"),
            ("all", "trend-all", "Trend in all traces"),
        )
    ]
    return ReportSection(
        "trend",
        f"Trend by {signatures.inputs.by}",
        existing_parts(*map(_without_undefined_columns, tables)),
    )


def _trend_rows(
    signatures: SignatureReport,
    axis: TrendAxis,
    scope: str,
    table_columns: Iterable[Column],
    scale: _TrendScale,
) -> Iterator[Row]:
    """Yield a row for each mode: its rates in the first and last group, and its slope."""
    for mode in signatures.inputs.modes:
        rates = {
            group: signatures.figures.table(scope, group=group, mode=mode.code)["rate"]
            for group in axis.groups
        }
        figures = signatures.figures.table(scope, mode=mode.code)
        cells: dict[str, Cell] = {"code": mode.code, "name": mode.name}
        for column_key, group in (("first", axis.groups[0]), ("last", axis.groups[-1])):
            cells[column_key] = Figure(
                value=rates[group].value, reason=rates[group].undefined or ""
            )
        cells |= figure_cells(figures, table_columns)
        per_step = figure_cell(figures["slope"])
        if per_step.value is not None:
            cells["slope"] = replace(per_step, value=per_step.value * scale.step_count)
        detail = "; ".join(f"{group} {_rate_words(rate)}" for group, rate in rates.items())
        yield Row(mode.code, cells, detail=(detail,))


def _rule_sentences(signatures: SignatureReport) -> Iterator[str]:
    """Yield sentences on how to read the figures, and the rule for classes."""
    rules = signatures.rules
    yield "Open verdicts, unsure verdicts and unknown outcomes are excluded."
    if signatures.inputs.weights is not None:
        yield (
            "Traces were drawn with unequal probabilities: shares, their differences and means are "
            "weighted by the inverse probability, over the traces of the study. Counts, tests, "
            "co-occurrence, places, trends and figures by task are unweighted."
        )
    yield (
        "Shares are estimates for the population of the traces, not for these traces alone. If "
        "more than 2 % of the verdicts on a mode are unresolved, (a to b) are bounds: all "
        "unresolved verdicts absent, or all present."
    )
    yield (
        "All intervals are 95 %. Shares: Wilson's. Mean scores: Wilson's, with an effective sample "
        "size from the variance between tasks. Differences: Newcombe's. Ratios: Katz's. Modes per "
        "failed trace: percentile bootstrap over traces "
        f"({signatures.resampling.count:,} resamples, seed {signatures.resampling.seed})."
    )
    yield "p: Fisher's exact test, two-sided. p adj: over the modes (Benjamini and Hochberg)."
    yield (
        f"Class: fatal if the mode is more frequent in failed traces with p adj < {rules.alpha:g}; "
        f"benign if at least {rules.least} successful traces show it and the interval of the "
        f"difference ends at or below {100 * rules.margin:g} points; otherwise unclear, as with "
        f"fewer than {rules.least} failed or successful traces."
    )
    if signatures.published is not None:
        yield f"Published: class in {signatures.published.source}; it affects no figure here."
    yield (
        f"Isolated: a failed trace with at most {rules.isolated} modes; cascading: with "
        f"{rules.cascading} or more."
    )


def _method_text(signatures: SignatureReport) -> model.Text:
    """Return the text on the rules, on the intervals, and on the limits of a difference."""
    return model.Text(
        "counted",
        "Rules and intervals",
        (
            *_rule_sentences(signatures),
            "A difference between failed and successful runs does not prove that the mode caused "
            "the failure: hard tasks may cause both.",
        ),
    )


def _measured_effects(extras: Extras | None) -> tuple[model.Text, ...]:
    """Return the published effects of fixes; empty unless the taxonomy is MAST."""
    if extras is None or extras.taxonomy is None or extras.taxonomy.id != "mast":
        return ()
    return (published_gains(),)

"""The report of an exam: the figures of ``exam --json`` as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.figures.jackknife import MANY
from mast_tui.figures.judge.report import JudgeReport
from mast_tui.reports.judge import judge_section, judges_section
from mast_tui.reports.model import (
    Cell,
    Column,
    Estimate,
    Kind,
    Note,
    Report,
    ReportSection,
    Row,
    Table,
    columns,
)
from mast_tui.reports.sentences import applicable

Values = Mapping[str, Any]

_JUDGE: Final = Column("judge", "judge", Kind.TEXT, priority=102)
_N: Final = Column("n", "n", Kind.COUNT, "traces asked about", priority=95)
_DECISIVE: Final = columns("""
    step_0            | step   | share | the decisive step                      | 100
    step_1            | ±1     | share | a step at most 1 off                   | 60
    step_3            | ±3     | share | a step at most 3 off                   | 55
    step_5            | ±5     | share | a step at most 5 off                   | 50
    agent             | agent  | share | the agent of the decisive step         | 99
    category          | categ. | share | the category of the decisive step      | 90
    step_and_category | both   | share | the decisive step and its category     | 80
    published_step    | publ.  | share | the step, by the published scorer      | 70
""")
_MATCH: Final = columns("""
    what      | what      | text   |                                                 | 101
    true      | true      | count  | true ones                                       | 75
    named     | named     | count  | named ones                                      | 75
    right     | right     | count  | named ones that are true                        | 85
    precision | precision | number | the share of the named that is true             | 70
    recall    | recall    | number | the share of the true that is named             | 70
    f1        | F1        | number | F1                                              | 100
    per_trace | per trace | number | recall, mean over the traces (TRAIL's accuracy) | 80
""")
_LEVEL: Final = columns("""
    level             | level   | text   |                                               | 101
    n                 | n       | count  | traces asked about                            | 95
    category          | categ.  | share  | the category of the decisive step             | 90
    step_and_category | both    | share  | the decisive step and its category            | 80
    f1                | F1      | number | F1 of the categories that show in a trace     | 85
    joint             | F1 both | number | F1 of the marked places with their categories | 75
""")
_MATCH_TITLES: Final = {
    "location": "step",
    "category": "category",
    "joint": "step and category",
}
_DECISIVE_NOTE: Final = Note(
    "step: exactly the step that the set calls decisive; ±k: at most k steps off. "
    "A trace for which a judge names no step counts as wrong. If it names "
    "several, the one called decisive counts, else the one with the highest "
    "confidence, else the first. The last rows are baselines: a random step, "
    "always the first, always the last.",
    "decisive",
)
_EXACT: Final = "0"
"""The distance of a step that is exactly right, as a key of the figures."""

_COST: Final = columns("""
    requests   | requests   | number | requests per trace                     | 60
    tokens_in  | tokens in  | count  | tokens in, per trace                   | 80
    tokens_out | tokens out | count  | tokens out, per trace                  | 80
    cost       | cost       | number | cost per trace                         | 90
""")
_QUOTES: Final = columns("""
    exact     | exact     | count | quotes found exactly                   | 70
    spacing   | spacing   | count | quotes with other white space or case  | 60
    reworded  | reworded  | count | quotes in other words                  | 60
    in_parts  | in parts  | count | quotes with omissions                  | 60
    altered   | altered   | count | quotes that say something else         | 90
    not_found | not found | count | quotes not found                       | 90
    unsorted  | found     | count | quotes found, match not recorded       | 40
""")

_COVERAGE: Final = columns("""
    runs         | runs      | count  | runs with a decisive step                     | 90
    value        | inside    | number | runs whose set contains the decisive step     | 100
    mean_share   | share     | number | share of a run's steps in its set             | 100
    chance_share | by chance | number | the same of random steps, with that guarantee | 95
""")

_CONSISTENCY: Final = columns("""
    samples      | samples  | count  | samples of each trace                      | 60
    again        | again    | number | share of one sample's findings in another  | 100
    always       | always   | number | share of all findings in every sample      | 80
    quotes_found | quotes   | number | quotes found in the trace                  | 90
""")
_PAIR: Final = columns("""
    n        | n              | count  | traces judged by both                         | 95
    verdicts | verdicts       | number | verdicts that are the same                    | 100
    modes    | modes          | number | agreement on modes that either calls present  | 95
    places   | places         | number | same places, for modes that both call present | 85
    step     | step           | number | the same decisive step                        | 80
    set      | other settings | text   |                                               | 70
""")


def exam_report(document: Values, reports: Mapping[str, JudgeReport]) -> Report:
    """Return the report of ``exam``, with its figures in tables and sentences.

    Args:
        document: The figures, as ``exam --json`` prints them.
        reports: The figures of verdicts by judge, without the judges that have no verdicts.
    """
    judges = document["judges"]
    sections = [
        _decisive_section(document, judges),
        _places_section(document, judges),
        _levels_section(judges),
        _coverage_section(document),
        *_verdict_sections(reports),
        _cost_section(judges),
    ]
    return Report(
        "exam",
        "Exam",
        f"{document['exam']} ({document['taxonomy']}): {counted(document['questions'], 'trace')}, "
        f"{counted(len(judges), 'judge')}.",
        tuple(section for section in sections if section is not None),
        tuple(_report_notes(document)),
        document=dict(document),
    )


def _estimate_of(figure: Values, row_n: int | None = None) -> Estimate:
    """Return the estimate of a coefficient in a JSON document.

    It shows an n only in a row with an n, ``row_n``, and only if its own n differs from that.
    """
    value = figure["value"]
    low, high = figure.get("ci") or (None, None)
    n = figure.get("n", row_n)
    return Estimate(
        value,
        ci=None if low is None or high is None else (low, high),
        undefined=str(figure.get("undefined", "undefined")) if value is None else None,
        withheld=figure.get("ci_withheld"),
        needs=figure.get("ci_needs"),
        n=None if row_n is None or n == row_n else n,
    )


def _figure_cells(figures: Values, columns: Iterable[Column]) -> dict[str, Cell]:
    """Make the cells of a row from the coefficients, counts and texts of a part of a document.

    A column whose key the part lacks gets no cell.
    """
    cells = {column.key: figures[column.key] for column in columns if column.key in figures}
    return {
        key: _estimate_of(cell, figures.get("n")) if isinstance(cell, Mapping) else cell
        for key, cell in cells.items()
    }


def _coverage_section(document: Values) -> ReportSection | None:
    """Return the section on sets of steps that contain the decisive step with 90 % probability.

    Return None if the coverage was not measured.
    """
    if "coverage" not in document:
        return None
    figures_by_judge = document["coverage"]
    rows = [
        Row(
            judge,
            {
                "judge": judge,
                "runs": figures["runs"],
                **{key: Estimate(figures[key]) for key in ("value", "mean_share", "chance_share")},
            },
        )
        for judge, figures in figures_by_judge.items()
    ]
    table = Table(
        "coverage",
        "Sets of steps with the decisive step",
        (_JUDGE, *_COVERAGE),
        (tuple(rows),),
        "Means over repeated splits of the runs.",
        tuple(_coverage_notes(figures_by_judge, document.get("look_here"))),
    )
    return ReportSection("coverage", "Look here", (table,))


def _coverage_notes(figures_by_judge: Values, stored_sets: Values | None) -> Iterator[Note]:
    """Yield notes on sets of steps: their columns, sets that help little, and stored sets."""
    yield Note(
        "inside: share of runs whose set contains the decisive step, meant to be 90 %; "
        "share: share of a run's steps in its set; by chance: the same for sets of random "
        "steps.",
        "coverage",
    )
    judges_with_large_sets = [
        judge
        for judge, figures in figures_by_judge.items()
        if figures["mean_share"] is not None and figures["mean_share"] > figures["chance_share"] / 2
    ]
    if judges_with_large_sets:
        names = ", ".join(judges_with_large_sets)
        yield Note(f"Sets more than half as large as by chance help little: {names}.", "poor_sets")
    if stored_sets is not None:
        yield Note(
            f"Stored for {counted(stored_sets['traces'], 'trace')} (sets "
            f"{stored_sets['hash']}): the app marks the steps in the timeline.",
            "look_here",
        )


def consistency_report(document: Values) -> Report:
    """Put the consistency of judges, which needs no truth, into tables and sentences.

    Args:
        document: The figures, as ``exam --json`` prints them without ``--set``.
    """
    sections = [ReportSection("steady", "Without a truth", (_single_judges_table(document),))]
    if document["beside"]["others"]:
        sections.append(
            ReportSection(
                "beside", "With other settings", (_judge_pairs_table(document["beside"]),)
            )
        )
    return Report(
        "exam",
        "Exam without labels",
        f"{document['taxonomy']}: {counted(len(document['judges']), 'judge')}.",
        tuple(sections),
        document=dict(document),
    )


def _single_judges_table(document: Values) -> Table:
    """Return the table of the figures that each judge has by itself."""
    return Table(
        "steady",
        "Each by itself",
        (
            _JUDGE,
            Column("traces", "traces", Kind.COUNT, "traces judged", priority=95),
            *_CONSISTENCY,
        ),
        (tuple(_judge_row(name, figures) for name, figures in document["judges"].items()),),
        _interval_caption(document),
        (
            Note(
                "again: the share of one sample's findings that another sample finds too; "
                "always: the share of all findings that every sample finds. Both need "
                "--samples 2 or more. quotes: the share found in the trace; altered quotes and "
                "quotes in parts count as not found.",
                "steady",
            ),
        ),
    )


def _judge_pairs_table(comparisons: Values) -> Table:
    """Return the table that compares the other judges with the first one."""
    rows = [
        Row(name, {"judge": name, **_figure_cells(pair, _PAIR), "set": _changed_settings(pair)})
        for name, pair in comparisons["others"].items()
    ]
    return Table(
        "beside",
        f"Beside {comparisons['first']}",
        (_JUDGE, *_PAIR),
        (tuple(rows),),
        notes=(
            Note(
                "If no setting that matters differs, such as the size of windows, the "
                "differences are the judge's own variation. modes: twice the number of modes "
                "that both call present, divided by the sum of the numbers that each calls "
                "present. step: share of the traces in which either names a decisive step.",
                "beside",
            ),
        ),
    )


def _interval_caption(document: Values) -> str:
    return (
        "In brackets: 95 % intervals over the traces: Student's t and the jackknife, or, with "
        f"{MANY:,} traces or more, the bootstrap (seed {document['bootstrap']['seed']})."
    )


def _judge_row(name: str, figures: Values) -> Row:
    return Row(
        name,
        {
            "judge": name,
            **_figure_cells({**figures, **(figures["samples"] or {})}, _CONSISTENCY),
            "traces": figures["traces"],
        },
    )


def _changed_settings(pair: Values) -> str:
    """List the settings that differ from the first judge's, with the other judge's values."""
    settings = (f"{name} {value or 'none'}" for name, (_, value) in pair["differs"].items())
    return ", ".join(settings) or "the prompt"


def _decisive_section(document: Values, judges: Values) -> ReportSection | None:
    """Return the section on the shares of traces in which each judge names the decisive step.

    Return None if the labelled set is not scored by the decisive step, the one that led to the
    failure.
    """
    figures_by_judge = {
        name: judge["decisive"] for name, judge in judges.items() if judge["decisive"]
    }
    if not figures_by_judge:
        return None
    # A set without agents or categories gives no judge a figure for them.
    columns_with_values = [
        column
        for column in _DECISIVE
        if any(
            (figures.get(column.key) or {}).get("value") is not None
            for figures in figures_by_judge.values()
        )
    ]
    rows = [
        _decisive_row(name, figures, columns_with_values)
        for name, figures in figures_by_judge.items()
    ]
    table = Table(
        "decisive",
        "The decisive step",
        (
            _JUDGE,
            _N,
            *_DECISIVE,
            Column("named", "named", Kind.COUNT, "traces with any step named"),
        ),
        tuple(filter(None, (tuple(rows), tuple(_baseline_rows(document))))),
        "In brackets: Wilson's 95 % intervals.",
        (
            _DECISIVE_NOTE,
            *_published_note(figures_by_judge),
            *_not_asked_notes(figures_by_judge),
        ),
    )
    return ReportSection("decisive", "Decisive step", (table,))


def _decisive_row(name: str, figures: Values, shown_columns: Iterable[Column]) -> Row:
    """Return the row of a judge: the share of right steps by distance, and other shares."""
    steps = {f"step_{distance}": _estimate_of(share) for distance, share in figures["step"].items()}
    return Row(
        name,
        {
            "judge": name,
            "n": figures["n"],
            **steps,
            **_figure_cells(figures, shown_columns),
            "named": figures["named"],
        },
    )


def _published_note(figures_by_judge: Values) -> Iterator[Note]:
    """Yield a note on the set's own scorer, if the set has one.

    The note names the judges whose share differs from the share of exact steps.
    """
    shares_by_judge = {
        judge: (figures["published_step"]["value"], figures["step"][_EXACT]["value"])
        for judge, figures in figures_by_judge.items()
        if figures["published_step"] is not None
    }
    differing = ", ".join(
        f"{judge} ({published:.1%} instead of {exact:.1%})"
        for judge, (published, exact) in shares_by_judge.items()
        if published != exact
    )
    if shares_by_judge:
        yield Note(
            "publ.: the share that the set's own scorer counts as right. It searches the "
            "named step for the digits of the true one, so it finds step 1 in 15. Compare it "
            "only with published figures; step is exact."
            + (f" They differ for {differing}." if differing else ""),
            "published_step",
        )


def _baseline_rows(document: Values) -> Iterator[Row]:
    """Yield the rows of the baselines: a random step, always the first, always the last.

    There are no rows if they have no traces.
    """
    baselines = document["baselines"]
    if baselines is None or not baselines["n"]:
        return
    for name, title in (
        ("random", "by chance"),
        ("first", "the first"),
        ("last", "the last"),
    ):
        cells: dict[str, Cell] = {"judge": title, "n": baselines["n"]}
        for distance, share in baselines[name].items():
            cells[f"step_{distance}"] = Estimate(share)
        if baselines["agent"][name] is not None:
            cells["agent"] = Estimate(baselines["agent"][name])
        if baselines["published_step"] is not None:
            cells["published_step"] = Estimate(baselines["published_step"][name])
        yield Row(name, cells)


def _places_section(document: Values, judges: Values) -> ReportSection | None:
    """Return the section on precision, recall and F1 of the marked locations.

    Return None if the labelled set is not scored by locations.
    """
    figures_by_judge = {name: judge["places"] for name, judge in judges.items() if judge["places"]}
    if not figures_by_judge:
        return None
    groups = tuple(
        tuple(
            Row(
                f"{name}/{key}",
                {
                    "judge": name,
                    "what": title,
                    **_figure_cells(figures[key], _MATCH),
                },
            )
            for key, title in _MATCH_TITLES.items()
            if figures[key]["true"] or figures[key]["named"]
        )
        for name, figures in figures_by_judge.items()
    )
    table = Table(
        "places",
        "All marked places",
        (_JUDGE, *_MATCH),
        groups,
        _interval_caption(document),
        tuple(_not_asked_notes(figures_by_judge)),
    )
    return ReportSection("places", "Places", (table,))


def _levels_section(judges: Values) -> ReportSection | None:
    """Return the section with the score of categories at each level of the taxonomy.

    Return None if there are no levels.
    """
    rows = [
        _level_row(name, level, judge)
        for name, judge in judges.items()
        for level in judge.get("levels", {})
    ]
    if not rows:
        return None
    table = Table("levels", "Categories of each level", (_JUDGE, *_LEVEL), (tuple(rows),))
    return ReportSection("levels", "Levels", (table,))


def _level_row(name: str, level: str, judge: Values) -> Row:
    """Return the row of a judge's figures at one level, without the figures that are None."""
    figures = judge["levels"][level]
    # All levels are measured on the same traces.
    figures_of_all_levels = judge["decisive"] or judge["places"]
    cells: dict[str, Cell] = {"judge": name, "level": level, "n": figures_of_all_levels["n"]}
    estimates = {
        "category": figures["decisive"],  # the category of the decisive step
        "step_and_category": figures["step_and_category"],
        "f1": figures["places"] and figures["places"]["f1"],
        "joint": figures["joint"] and figures["joint"]["f1"],
    }
    for key, estimate in estimates.items():
        if estimate is not None:
            cells[key] = _estimate_of(estimate)
    return Row(f"{name}/{level}", cells)


def _not_asked_notes(figures_by_judge: Values) -> Iterator[Note]:
    """Yield a note for each judge that has not judged all traces of the set."""
    for name, figures in figures_by_judge.items():
        if figures["not_asked"]:
            yield Note(
                f"{name} has not judged {counted(figures['not_asked'], 'trace')} of the set; "
                "its figures leave them out.",
                "not_asked",
            )


def _verdict_sections(reports: Mapping[str, JudgeReport]) -> Iterator[ReportSection]:
    """Yield the report sections on the verdicts of judges.

    A single judge has one section. Several judges have a common section, then one each.
    """
    if len(reports) == 1:
        yield from map(judge_section, reports.values())
    elif reports:
        yield judges_section(reports)
        for number, (name, report) in enumerate(reports.items(), 1):
            # With several judges, each has only the tables of rates and of agreement over chance.
            tables = [
                table
                for table in judge_section(report).tables
                if table.id in ("judge", "judge_chance")
            ]
            # Ids are unique in the report.
            unique_tables = tuple(replace(table, id=f"{table.id}_{number}") for table in tables)
            yield ReportSection(f"judge_{number}", name, unique_tables)


def _cost_section(judges: Values) -> ReportSection | None:
    """Return the section on the mean cost of a trace and the kinds of quotes.

    Return None if no judge has a cost or quotes.
    """
    rows = [
        Row(name, {"judge": name, **_cost_cells(judge["cost"] or {}), **(judge["quotes"] or {})})
        for name, judge in judges.items()
        if judge["cost"] or judge["quotes"]
    ]
    if not rows:
        return None
    table = Table(
        "took",
        "Cost per trace, and matches of quotes",
        (_JUDGE, *_COST, *_QUOTES),
        (tuple(rows),),
    )
    return ReportSection("took", "Cost and quotes", (table,))


def _cost_cells(cost: Values) -> dict[str, Cell]:
    """Return the cells of a cost by column, without the costs that are unknown."""
    return {
        column.key: round(value) if column.kind is Kind.COUNT else Estimate(value)
        for column in _COST
        if (value := cost.get(column.key)) is not None
    }


def _report_notes(document: Values) -> Iterator[Note]:
    """Yield the notes on the whole report: taxonomies, crosswalk, unread traces and files."""
    other_taxonomy = [name for name, judge in document["judges"].items() if not judge["categories"]]
    scores_categories = {"decisive", "places"} & set(document["scored_by"])
    modes = document["modes"]
    yield from applicable(
        (
            other_taxonomy and scores_categories,
            Note(
                f"{', '.join(other_taxonomy)} use another taxonomy than the set; their categories "
                "do not count.",
                "other_taxonomy",
            ),
        ),
        (
            modes is not None,
            Note(
                "A crosswalk translates the set's categories to modes. Only "
                f"{', '.join(modes or ())} can result; all other modes of the set or a judge "
                "do not count.",
                "crosswalk",
            ),
        ),
        (
            document["baselines"] is not None and not document["baselines"]["n"],
            Note(
                "The set's traces are not available, so their numbers of steps are unknown: there "
                "are no baselines and no agents.",
                "no_traces",
            ),
        ),
    )
    for problem in document["problems"]:
        yield Note(f"Not read: {problem}", "problem", warning=True)

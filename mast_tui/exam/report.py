"""The report of an exam: its figures as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Final

from mast_tui.counts import counted
from mast_tui.exam.consistency import Consistency, consistency_json
from mast_tui.exam.coverage import LEAST_RUNS
from mast_tui.exam.input import ExamCandidate
from mast_tui.exam.result import ExamResult, exam_json
from mast_tui.figures.bootstrap import LEVEL, Resampling
from mast_tui.figures.jackknife import MANY
from mast_tui.figures.judge.report import JudgeReport
from mast_tui.figures.record import FigureTable
from mast_tui.reports.judge import judge_section, judges_section
from mast_tui.reports.model import (
    Cell,
    Column,
    Kind,
    Note,
    Report,
    ReportSection,
    Row,
    Table,
    columns,
    figure_cell,
    figure_cells,
)
from mast_tui.reports.sentences import WILSON, applicable, percent
from mast_tui.workspace.registers.look_here import LookHere

_NOT_IN_EXAMS: Final = ("gold", "no_confidence", "no_answers", "no_places", "not_withheld")
"""The reasons of notes on figures that an exam does not measure."""

_JUDGE: Final = Column("judge", "judge", Kind.TEXT, priority=102)
_STEPS: Final = columns("""
    asked  | n    | count | traces asked about   | 95
    step:0 | step | share | the decisive step    | 100
    step:1 | ±1   | share | a step at most 1 off | 60
    step:3 | ±3   | share | a step at most 3 off | 55
    step:5 | ±5   | share | a step at most 5 off | 50
""")
_DECISIVE: Final = columns("""
    agent             | agent  | share | the agent of the decisive step         | 99
    category          | categ. | share | the category of the decisive step      | 90
    step_and_category | both   | share | the decisive step and its category     | 80
    published_step    | publ.  | share | the step, by the published scorer      | 70
""")
_NAMED: Final = Column("named", "named", Kind.COUNT, "traces with any step named")
_MATCH: Final = columns("""
    what               | what      | text   |                                                 | 101
    true_locations     | true      | count  | true ones                                       | 75
    named_locations    | named     | count  | named ones                                      | 75
    matching_locations | right     | count  | named ones that are true                        | 85
    precision          | precision | number | the share of the named that is true             | 70
    recall             | recall    | number | the share of the true that is named             | 70
    f1                 | F1        | number | F1                                              | 100
    per_trace          | per trace | number | recall, mean over the traces (TRAIL's accuracy) | 80
""")
_LEVEL: Final = columns("""
    level             | level   | text   |                                               | 101
    asked             | n       | count  | traces asked about                            | 95
    decisive_category | categ.  | share  | the category of the decisive step             | 90
    step_and_category | both    | share  | the decisive step and its category            | 80
    f1                | F1      | number | F1 of the categories that show in a trace     | 85
    joint             | F1 both | number | F1 of the marked places with their categories | 75
""")
_MATCH_TITLES: Final = {
    "location": "step",
    "category": "category",
    "joint": "step and category",
}
_OPEN_MODES_NOTE: Final = Note(
    "Places of modes that the set leaves open in a trace, or that it has without a place, are "
    "left out.",
    "open_modes",
)
_DECISIVE_NOTE: Final = Note(
    "step: exactly the step that the set calls decisive; ±k: at most k steps off. "
    "A trace for which a judge names no step counts as wrong. If it names "
    "several, the one called decisive counts, else the one with the highest "
    "confidence, else the first. The last rows are baselines: a random step, "
    "always the first, always the last.",
    "decisive",
)
_BASELINES: Final = {"random": "by chance", "first": "the first", "last": "the last"}
"""The names of the baselines in the table."""

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
    labelled_runs | runs      | count  | runs with a decisive step                     | 90
    coverage      | inside    | number | runs whose set contains the decisive step     | 100
    mean_share    | share     | number | share of a run's steps in its set             | 100
    chance_share  | by chance | number | the same of random steps, with that guarantee | 95
""")
_COVERAGE_SHARES: Final = ("coverage", "mean_share", "chance_share")

_CONSISTENCY: Final = columns("""
    judged_traces | traces   | count  | traces judged                              | 95
    samples       | samples  | count  | samples of each trace                      | 60
    again         | again    | number | share of one sample's findings in another  | 100
    always        | always   | number | share of all findings in every sample      | 80
    quotes_found  | quotes   | number | quotes found in the trace                  | 90
""")
_PAIR: Final = columns("""
    n             | n              | count  | traces judged by both                         | 95
    same_verdicts | verdicts       | number | verdicts that are the same                    | 100
    same_modes    | modes          | number | agreement on modes that either calls present  | 95
    same_places   | places         | number | same places, for modes that both call present | 85
    same_step     | step           | number | the same decisive step                        | 80
    set           | other settings | text   |                                               | 70
""")


def exam_report(result: ExamResult) -> Report:
    """Return the report of ``exam``, with its figures in tables and sentences."""
    exam = result.exam
    sections = [
        _decisive_section(result),
        _places_section(result),
        _levels_section(result),
        _coverage_section(result),
        *_verdict_sections(result.verdicts),
        _cost_section(result.candidates),
    ]
    return Report(
        "exam",
        "Exam",
        f"{exam.name} ({exam.taxonomy.ref}): {counted(len(exam.questions), 'trace')}, "
        f"{counted(len(result.candidates), 'judge')}.",
        tuple(section for section in sections if section is not None),
        tuple(_report_notes(result)),
        document=exam_json(result),
    )


def _coverage_section(result: ExamResult) -> ReportSection | None:
    """Return the section on sets of steps that contain the decisive step with 90 % probability.

    Return None if the coverage was not measured.
    """
    figures_by_judge = result.tables("coverage")
    if not figures_by_judge:
        return None
    rows = [
        Row(
            judge,
            {
                "judge": judge,
                "labelled_runs": figures.count("labelled_runs"),
                # NaN has no reason in its cell, because the number of runs explains it.
                **{
                    key: nan if figures.value(key) is None else figures.value(key)
                    for key in _COVERAGE_SHARES
                },
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
        tuple(_coverage_notes(figures_by_judge, result.stored_sets)),
    )
    return ReportSection("coverage", "Look here", (table,))


def _coverage_notes(
    figures_by_judge: Mapping[str, FigureTable], stored_sets: LookHere | None
) -> Iterator[Note]:
    """Yield notes on sets of steps: their columns, sets that help little, and stored sets."""
    yield Note(
        "inside: share of runs whose set contains the decisive step, meant to be 90 %; "
        "share: share of a run's steps in its set; by chance: the same for sets of random "
        "steps.",
        "coverage",
    )
    if any(figures.value("coverage") is None for figures in figures_by_judge.values()):
        yield Note(
            f"Shares need {LEAST_RUNS} runs with a known decisive or first failing step.",
            "few_runs",
        )
    judges_with_large_sets = [
        judge
        for judge, figures in figures_by_judge.items()
        if (figures.value("mean_share") or 0) > (figures.value("chance_share") or 0) / 2
    ]
    if judges_with_large_sets:
        names = ", ".join(judges_with_large_sets)
        yield Note(f"Sets more than half as large as by chance help little: {names}.", "poor_sets")
    if stored_sets is not None:
        yield Note(
            f"Stored for {counted(len(stored_sets.sizes), 'trace')} (sets "
            f"{stored_sets.hash}): the app marks the steps in the timeline.",
            "look_here",
        )


def consistency_report(consistency: Consistency) -> Report:
    """Return the report on the consistency of judges, in tables and sentences."""
    judges = consistency.judges
    sections = [ReportSection("steady", "Without a truth", (_single_judges_table(consistency),))]
    if len(judges) > 1:
        pairs_table = _judge_pairs_table(consistency)
        sections.append(ReportSection("beside", "With other settings", (pairs_table,)))
    return Report(
        "exam",
        "Exam without labels",
        f"{consistency.taxonomy}: {counted(len(judges), 'judge')}.",
        tuple(sections),
        document=consistency_json(consistency),
    )


def _single_judges_table(consistency: Consistency) -> Table:
    """Return the table of the figures of each judge by itself."""
    index = consistency.index
    rows = [
        Row(
            judge.name,
            {
                "judge": judge.name,
                **figure_cells(index.table("samples", subject=(judge.name,)), _CONSISTENCY),
                **figure_cells(index.table("judge", subject=(judge.name,)), _CONSISTENCY),
            },
        )
        for judge in consistency.judges
    ]
    return Table(
        "steady",
        "Each judge by itself",
        (_JUDGE, *_CONSISTENCY),
        (tuple(rows),),
        _interval_caption(consistency.resampling),
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


def _judge_pairs_table(consistency: Consistency) -> Table:
    """Return the table that compares the other judges with the first one."""
    first, *others = consistency.judges
    rows = [
        Row(
            judge.name,
            {
                "judge": judge.name,
                **figure_cells(consistency.index.table("beside", subject=(judge.name,)), _PAIR),
                "set": _settings_text(consistency.differing_settings(judge)),
            },
        )
        for judge in others
    ]
    return Table(
        "beside",
        f"Beside {first.name}",
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


def _interval_caption(resampling: Resampling) -> str:
    return (
        f"[a, b] is a {percent(LEVEL)} confidence interval (jackknife over traces; from {MANY:,} "
        f"traces, bootstrap with seed {resampling.seed})."
    )


def _settings_text(differing_settings: Mapping[str, Sequence[str | None]]) -> str:
    """List the settings that differ from the first judge's, with the other judge's values."""
    settings = (f"{name} {value or 'none'}" for name, (_, value) in differing_settings.items())
    return ", ".join(settings) or "the prompt"


def _decisive_section(result: ExamResult) -> ReportSection | None:
    """Return the section on the shares of traces in which each judge names the decisive step.

    Return None if the set is not scored by the decisive step, the one that led to the failure.
    """
    figures_by_judge = result.tables("decisive")
    if not figures_by_judge:
        return None
    # A set without agents or categories has no figures for them.
    columns_with_values = [
        column
        for column in _DECISIVE
        if any(figures.value(column.key) is not None for figures in figures_by_judge.values())
    ]
    shown_columns = (*_STEPS, *columns_with_values, _NAMED)
    rows = [
        Row(name, {"judge": name, **figure_cells(figures, shown_columns)})
        for name, figures in figures_by_judge.items()
    ]
    table = Table(
        "decisive",
        "The decisive step",
        (_JUDGE, *_STEPS, *_DECISIVE, _NAMED),
        tuple(filter(None, (tuple(rows), tuple(_baseline_rows(result))))),
        WILSON,
        (
            _DECISIVE_NOTE,
            *_published_note(figures_by_judge),
            *_not_asked_notes(figures_by_judge),
        ),
    )
    return ReportSection("decisive", "Decisive step", (table,))


def _published_note(figures_by_judge: Mapping[str, FigureTable]) -> Iterator[Note]:
    """Yield a note on the set's own scorer, if there is one.

    It lists the judges with another share than that of exact steps.
    """
    shares_by_judge = {
        judge: (figures["published_step"].value, figures.value("step", "0"))
        for judge, figures in figures_by_judge.items()
        if "published_step" in figures
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


def _baseline_rows(result: ExamResult) -> Iterator[Row]:
    """Yield the rows of the baselines: a random step, always the first, always the last."""
    figures = result.index.table("baselines")
    if not figures.count("asked"):
        return
    for name, title in _BASELINES.items():
        chances = {
            **{f"step:{limit}": chance for limit, chance in figures.values(f"{name}_step").items()},
            "agent": figures.value("baseline_agent", name),
            "published_step": figures.value("baseline_published", name),
        }
        yield Row(name, {"judge": title, "asked": figures.count("asked"), **chances})


def _places_section(result: ExamResult) -> ReportSection | None:
    """Return the section on precision, recall and F1 of the marked locations.

    Return None if the set is not scored by locations.
    """
    figures_by_judge = result.tables("places")
    if not figures_by_judge:
        return None
    matches_by_part = {part: result.tables("match", group=part) for part in _MATCH_TITLES}
    groups = tuple(
        tuple(
            Row(f"{name}/{part}", {"judge": name, "what": title, **figure_cells(match, _MATCH)})
            for part, title in _MATCH_TITLES.items()
            if (match := matches_by_part[part][name]).count("true_locations")
            or match.count("named_locations")
        )
        for name in figures_by_judge
    )
    table = Table(
        "places",
        "All marked places",
        (_JUDGE, *_MATCH),
        groups,
        _interval_caption(result.resampling),
        (
            *applicable(("verdicts" in result.exam.scorings, _OPEN_MODES_NOTE)),
            *_not_asked_notes(figures_by_judge),
        ),
    )
    return ReportSection("places", "Places", (table,))


def _levels_section(result: ExamResult) -> ReportSection | None:
    """Return the section with the score of categories at each level of the taxonomy, if any."""
    # All levels are measured on the same traces.
    figures_by_judge = result.tables("decisive") or result.tables("places")
    rows = [
        _level_row(result, name, level, figures)
        for name, figures in figures_by_judge.items()
        for level in result.exam.taxonomy.by_level
    ]
    if not rows:
        return None
    table = Table("levels", "Categories of each level", (_JUDGE, *_LEVEL), (tuple(rows),))
    return ReportSection("levels", "Levels", (table,))


def _level_row(result: ExamResult, name: str, level: str, all_levels: FigureTable) -> Row:
    """Return the row of a judge's figures at one level, without the figures that it lacks.

    ``all_levels`` has the figures of the judge that do not depend on the level.
    """
    cells: dict[str, Cell] = {"judge": name, "level": level}
    for scope in ("level", "level_category"):
        figures = result.index.table(scope, group=level, subject=(name,))
        cells |= figure_cells(figures, _LEVEL)
    joint_f1 = result.index.table("level_joint", group=level, subject=(name,)).get("f1")
    if joint_f1 is not None:
        cells["joint"] = figure_cell(joint_f1)
    return Row(f"{name}/{level}", {**cells, "asked": all_levels.count("asked")})


def _not_asked_notes(figures_by_judge: Mapping[str, FigureTable]) -> Iterator[Note]:
    """Yield a note for each judge that has not judged all traces of the set."""
    for name, figures in figures_by_judge.items():
        if figures.count("not_asked"):
            yield Note(
                f"{name} has not judged {counted(figures.count('not_asked'), 'trace')} of the set; "
                "its figures leave them out.",
                "not_asked",
            )


def _verdict_sections(reports: Mapping[str, JudgeReport]) -> Iterator[ReportSection]:
    """Yield the report sections on the verdicts of judges.

    Several judges have a common section, then one each.
    """
    if len(reports) == 1:
        for section in map(judge_section, reports.values()):
            notes = (note for note in section.notes if note.reason not in _NOT_IN_EXAMS)
            yield replace(section, notes=tuple(notes))
    elif reports:
        yield judges_section(reports)
        for number, (name, report) in enumerate(reports.items(), 1):
            # With several judges, each has only the tables of rates and of agreement over chance.
            tables = [
                table
                for table in judge_section(report).tables
                if table.id in ("judge", "judge_chance")
            ]
            # Ids must be unique in the report.
            unique_tables = tuple(replace(table, id=f"{table.id}_{number}") for table in tables)
            yield ReportSection(f"judge_{number}", name, unique_tables)


def _cost_section(candidates: Sequence[ExamCandidate]) -> ReportSection | None:
    """Return the section on the mean cost of a trace and the kinds of quotes.

    Return None if no judge has a cost or quotes.
    """
    rows = [
        Row(
            candidate.name,
            {
                "judge": candidate.name,
                **_cost_cells(candidate.cost or {}),
                **(candidate.quotes or {}),
            },
        )
        for candidate in candidates
        if candidate.cost or candidate.quotes
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


def _cost_cells(cost: Mapping[str, float | None]) -> dict[str, Cell]:
    """Return the known costs by column."""
    return {
        column.key: round(value) if column.kind is Kind.COUNT else value
        for column in _COST
        if (value := cost.get(column.key)) is not None
    }


def _report_notes(result: ExamResult) -> Iterator[Note]:
    """Yield the notes on the whole report: taxonomies, crosswalk, unread traces and files."""
    exam = result.exam
    other_taxonomy = [
        candidate.name for candidate in result.candidates if not candidate.answers.uses_set_taxonomy
    ]
    scores_categories = {"decisive", "places"} & set(exam.scorings)
    baselines = result.index.table("baselines")
    yield from applicable(
        (
            other_taxonomy and scores_categories,
            Note(
                f"{', '.join(other_taxonomy)}: the taxonomy is not that of the set, so categories "
                "do not count.",
                "other_taxonomy",
            ),
        ),
        (
            exam.modes is not None,
            Note(
                "A crosswalk translates the set's categories to modes. Only "
                f"{', '.join(sorted(exam.modes or ()))} can result; all other modes of the set or "
                "a judge do not count.",
                "crosswalk",
            ),
        ),
        (
            baselines.figures and not baselines.count("asked"),
            Note(
                "The set's traces are not available, so their numbers of steps are unknown: there "
                "are no baselines and no agents.",
                "no_traces",
            ),
        ),
    )
    for problem in exam.problems:
        yield Note(f"Not read: {problem}", "problem", warning=True)

"""The result of an exam: the figures of all judges, and the document of ``exam --json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec.structs import asdict

from mast_tui import __version__
from mast_tui.exam.coverage import coverage_figures
from mast_tui.exam.figures import (
    Answers,
    Question,
    baseline_figures,
    decisive_figures,
    level_figures,
    places_figures,
)
from mast_tui.exam.input import PUBLISHED_SCORERS, ExamCandidate, ExamSet
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.judge.report import JudgeReport, judge_json, judge_report
from mast_tui.figures.record import (
    Figure,
    FigureIndex,
    FigureScope,
    FigureTable,
    insert_figures,
    scope_paths,
)
from mast_tui.workspace.registers.look_here import LookHere

FEATURES: Final = "features"
"""The name of the sets of steps from features of the steps alone, without a judge."""

_PATHS: Final = scope_paths("""
    baselines      | baselines                                | no n
    decisive       | judges.{subject}.decisive                | no n
    places         | judges.{subject}.places                  | no n
    match          | judges.{subject}.places.{group}          | no n
    level          | judges.{subject}.levels.{group}          | no n
    level_category | judges.{subject}.levels.{group}.places   | no n
    level_joint    | judges.{subject}.levels.{group}.joint    | no n
    coverage       | coverage.{subject}                       | no n
""")
"""The locations of the figures in the document of ``exam --json``."""


@dataclass(frozen=True, slots=True)
class ExamResult:
    """The figures of an exam, and the facts about them.

    Attributes:
        exam: The labelled set.
        candidates: The judges and their answers.
        resampling: The resamples of the traces.
        verdicts: The figures of the verdicts by judge, without judges that have none.
        index: All other figures.
        stored_sets: The sets of steps that are stored in the workspace, if any.
    """

    exam: ExamSet
    candidates: Sequence[ExamCandidate]
    resampling: Resampling
    verdicts: Mapping[str, JudgeReport]
    index: FigureIndex
    stored_sets: LookHere | None = None

    def tables(self, scope: str, *, group: str = "") -> dict[str, FigureTable]:
        """Return the figures of a scope by judge, without judges that have none.

        Args:
            scope: The name of the scope.
            group: The level, or the part of a location; empty for all.
        """
        tables = {
            name: self.index.table(scope, group=group, subject=(name,))
            for name in (FEATURES, *(candidate.name for candidate in self.candidates))
        }
        return {name: table for name, table in tables.items() if table.figures}


def exam_result(
    exam: ExamSet,
    candidates: Sequence[ExamCandidate],
    resampling: Resampling,
    *,
    with_coverage: bool = False,
) -> ExamResult:
    """Score the answers of judges by a labelled set.

    Args:
        exam: The labelled set.
        candidates: The judges and their answers.
        resampling: The resamples of the traces.
        with_coverage: True to measure sets of steps that contain the decisive step.
    """
    figures = list(_score_figures(exam, candidates, resampling))
    if with_coverage:
        figures += _coverage_figures(exam, candidates, resampling.seed)
    return ExamResult(
        exam,
        candidates,
        resampling,
        verdicts={
            candidate.name: judge_report(candidate.judged, resampling)
            for candidate in candidates
            if candidate.judged is not None
        },
        index=FigureIndex(figures),
    )


def _score_figures(
    exam: ExamSet, candidates: Sequence[ExamCandidate], resampling: Resampling
) -> Iterator[Figure]:
    """Yield the figures of the baselines and of each judge under each scoring of the set."""
    questions = exam.questions
    published_scorer = PUBLISHED_SCORERS.get(exam.name)
    if "decisive" in exam.scorings:
        scope = FigureScope("baselines", exam.taxonomy.ref)
        yield from baseline_figures(scope, questions, published_scorer)
    for candidate in candidates:
        answers = exam.without_open_modes(candidate.answers)
        scope = FigureScope("decisive", exam.taxonomy.ref, subject=(candidate.name,))
        if "decisive" in exam.scorings:
            yield from decisive_figures(scope, questions, answers, published_scorer)
        if "places" in exam.scorings:
            yield from places_figures(replace(scope, name="places"), questions, answers, resampling)
        for level, groups in exam.taxonomy.by_level.items():
            yield from level_figures(
                replace(scope, name="level", group=level),
                questions,
                answers,
                groups,
                scored_by=exam.scorings,
                resampling=resampling,
            )


def _coverage_figures(
    exam: ExamSet, candidates: Sequence[ExamCandidate], seed: int
) -> Iterator[Figure]:
    """Yield how often the predicted set of a run's steps contains the true step.

    The sets under ``FEATURES`` depend on features of the steps alone, those of a judge also on the
    steps that it named.
    """
    answers_by_name = {candidate.name: candidate.answers for candidate in candidates}
    for name, answers in {FEATURES: None, **answers_by_name}.items():
        scope = FigureScope("coverage", exam.taxonomy.ref, subject=(name,))
        yield from coverage_figures(scope, exam.questions, exam.features, answers, seed=seed)


def exam_json(result: ExamResult) -> dict[str, Any]:
    """Return the result of an exam as ``exam --json`` prints it.

    Scorings that do not apply to the set are None.
    """
    exam = result.exam
    document: dict[str, Any] = {
        "exam": exam.name,
        "taxonomy": exam.taxonomy.ref,
        "version": __version__,
        "files": exam.hashes(),
        "problems": list(exam.problems),
        "questions": len(exam.questions),
        "modes": None if exam.modes is None else sorted(exam.modes),
        "scored_by": list(exam.scorings),
        "bootstrap": result.resampling.to_json(),
        "baselines": None,
        "judges": {
            candidate.name: _candidate_json(result, candidate) for candidate in result.candidates
        },
    }
    insert_figures(result.index.figures, _PATHS, document)
    # The document has this key even if the set has no scorer of its own.
    for part in (
        document["baselines"],
        *(judge["decisive"] for judge in document["judges"].values()),
    ):
        if part is not None:
            part.setdefault("published_step", None)
    if result.stored_sets is not None:
        sets = result.stored_sets
        document["look_here"] = {**asdict(sets), "sizes": None, "traces": len(sets.sizes)}
    return document


def _candidate_json(result: ExamResult, candidate: ExamCandidate) -> dict[str, Any]:
    """Return the part of a judge in the document, without its figures of steps and locations."""
    exam = result.exam
    report = result.verdicts.get(candidate.name)
    has_decisive = "decisive" in exam.scorings
    document: dict[str, Any] = {
        "decisive": None,
        "places": None,
        "verdicts": None if report is None else judge_json(report),
        "categories": candidate.answers.uses_set_taxonomy,  # True if its categories count
        "quotes": candidate.quotes,
        "cost": candidate.cost,
        "cases": decisive_cases(exam.questions, candidate.answers) if has_decisive else [],
    }
    if exam.taxonomy.by_level and (has_decisive or "places" in exam.scorings):
        level_keys = ("decisive", "step_and_category", "places", "joint")
        document["levels"] = {name: dict.fromkeys(level_keys) for name in exam.taxonomy.by_level}
    return document


def decisive_cases(questions: Sequence[Question], answers: Answers) -> list[dict[str, Any]]:
    """Return the true and the named decisive step of each judged trace, for the document.

    Args:
        questions: The questions of the set.
        answers: The answers of one judge.
    """
    cases = []
    for question in questions:
        truth = question.truth.decisive
        if truth is None or question.trace_id not in answers.by_trace:
            continue
        named = answers.by_trace[question.trace_id].decisive
        cases.append(
            {
                "trace": question.trace_id,
                "true_step": truth.step,
                "named_step": None if named is None else named.step,
                "off_by": None if named is None else abs(named.step - truth.step),
            }
        )
    return cases

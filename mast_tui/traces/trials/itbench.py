"""ITBench: the workspace of one trial of the SRE agent, and one run of the published trajectories.

The run is the first of these that there is: the agent's own rollout, the output of the program, and
the telemetry of the program. A judge's file in the folder has the scores, or a file in a folder
above that lists many trials. The published set has ``DOMAIN/Scenario-N/RUN/session.jsonl``. There
and in ``INCIDENT/TRIAL`` the folders name the task and the trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mast_tui.traces.io.json_values import as_number, as_text
from mast_tui.traces.model import AnswerKey, Outcome, Problem, TraceMeta
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of
from mast_tui.traces.readers.run_facts import clamp_score, outcome_of_reward
from mast_tui.traces.trials.base import Trial, json_object

_OWN_EVALUATIONS: Final = (
    "judge_output.json",
    "evaluation.json",
    "eval_result.json",
    "evaluation_results.json",
)
_SHARED_EVALUATION: Final = "evaluation_results.json"
_SESSION: Final = "session.jsonl"
_RESULTS: Final = ("agent_output.json", "judge_output.json")
_DOMAINS: Final = frozenset({"sre", "ciso", "finops"})
_FOLDERS_UP: Final = 4
_METRIC: Final = "root_cause_entity"


def find(folder: Path, names: frozenset[str]) -> Trial | None:
    """Return the trial in a folder; None for a folder of another kind.

    Args:
        folder: The folder.
        names: The names of its members.
    """
    session = folder / _SESSION
    program_output = folder / "traces" / "stdout.log"
    telemetry = folder / "traces" / "traces.jsonl"
    is_published = _SESSION in names and not names.isdisjoint(_RESULTS)
    has_traces = "traces" in names and (program_output.is_file() or telemetry.is_file())
    if not (is_published or has_traces or {"agent_output.json", "sessions"} <= names):
        return None
    rollouts = sorted((folder / "sessions").glob("**/rollout-*.jsonl*"))
    problems: list[Problem] = []
    facts, fact_files = _facts_of_evaluation(folder, names, problems)
    runs = (session,) if is_published else tuple(rollouts)
    sources = (runs, (program_output,), (telemetry,))
    return Trial(
        "ITBench trial",
        folder,
        sources,
        _with_task(facts, folder),
        fact_files,
        problems=tuple(problems),
    )


def _with_task(facts: TraceMeta, folder: Path) -> TraceMeta:
    """Return the facts with the domain, task and trial in the names of a run's folders.

    The facts are unchanged if the folder is not the number of a trial.
    """
    if not folder.name.isdecimal():
        return facts
    domain = next((part for part in folder.parts[-5:-1] if part.lower() in _DOMAINS), None)
    return facts._replace(
        benchmark=f"ITBench {domain.lower()}" if domain else "ITBench",
        task_id=folder.parent.name,
        trial=int(folder.name),
    )


def _facts_of_evaluation(
    folder: Path, names: frozenset[str], problems: list[Problem]
) -> tuple[TraceMeta, tuple[Path, ...]]:
    """Return the facts of a trial's evaluation, and the files that hold the evaluation.

    The evaluation is in the trial's folder, or in a file for many trials in a folder above it.
    """
    for name in _OWN_EVALUATIONS:
        if name not in names:
            continue
        scores = _scores_of_evaluation(json_object(folder / name, problems))
        if scores:
            return _facts_of_scores(scores), (folder / name,)
    for outer_folder in folder.parents[:_FOLDERS_UP]:
        path = outer_folder / _SHARED_EVALUATION
        if path.is_file():
            scores = _scores_in_shared_evaluation(json_object(path, problems), folder)
            return (_facts_of_scores(scores) if scores else TraceMeta()), (path,)
    return TraceMeta(), ()


def _scores_of_evaluation(evaluation: Fields) -> Fields:
    """Return the scores by metric in an evaluation or in its ``eval_result``; empty if none."""
    result = fields_of(evaluation.get("eval_result"))
    return fields_of(evaluation.get("scores")) or fields_of(result.get("scores"))


def _scores_in_shared_evaluation(evaluation: Fields, folder: Path) -> Fields:
    """Return the scores of a folder's trial in the evaluation of many trials; empty without any."""
    for result in map(fields_of, items_of(evaluation.get("raw_results"))):
        incident = _name_or_number(result.get("incident_id"))
        trial = _name_or_number(result.get("trial_id"))
        if incident == folder.parent.name and trial == folder.name:
            return _scores_of_evaluation(result)
    return {}


def _name_or_number(value: object) -> str | None:
    return str(value) if isinstance(value, int) else as_text(value)


def _facts_of_scores(scores: Fields) -> TraceMeta:
    """Return the facts in a trial's scores.

    The score is the recall of the root cause. A recall of 1 is success.
    """
    recall = _recall_of_metric(scores.get(_METRIC))
    return TraceMeta(
        benchmark="ITBench",
        outcome=Outcome.UNKNOWN if recall is None else outcome_of_reward(recall),
        score=clamp_score(recall),
        answer_key=_answer_key(scores),
    )


def _answer_key(scores: Fields) -> AnswerKey:
    """Return the scores and reasons of the benchmark's judge for each metric."""
    draft = AnswerKeyDraft()
    for metric, value in scores.items():
        draft.add_score(metric, value)
    return draft.key()


def _recall_of_metric(metric: object) -> float | None:
    """Return the recall from 0 to 1: a number, a computed recall, or a score in percent."""
    if not isinstance(metric, Mapping):
        return as_number(metric)
    recall = as_number(metric.get("calculation_recall"))
    if recall is not None:
        return recall
    percent = as_number(metric.get("score"))
    return None if percent is None else percent / 100

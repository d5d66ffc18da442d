"""ITBench: the workspace of one trial of the SRE agent, and one run of the published trajectories.

The agent's own rollout is the run; where it is missing, the output of the program, and where that
is missing too, the telemetry that was collected from it. A judge's file in the folder has the
scores, or one of a folder above that lists many trials. The published set has
``DOMAIN/Scenario-N/RUN/session.jsonl``; there and in ``INCIDENT/TRIAL`` the folders name the task
and the trial.
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
    printed = folder / "traces" / "stdout.log"
    collected = folder / "traces" / "traces.jsonl"
    is_published = _SESSION in names and not names.isdisjoint(_RESULTS)
    has_traces = "traces" in names and (printed.is_file() or collected.is_file())
    if not (is_published or has_traces or {"agent_output.json", "sessions"} <= names):
        return None
    rollouts = sorted((folder / "sessions").glob("**/rollout-*.jsonl*"))
    problems: list[Problem] = []
    facts, fact_files = _evaluation(folder, names, problems)
    sources = ((session,) if is_published else tuple(rollouts), (printed,), (collected,))
    return Trial(
        "ITBench trial",
        folder,
        sources,
        _with_task(facts, folder),
        fact_files,
        problems=tuple(problems),
    )


def _with_task(facts: TraceMeta, folder: Path) -> TraceMeta:
    """Add the task, the trial and the domain that the folders above a run name."""
    if not folder.name.isdecimal():
        return facts
    domain = next((part for part in folder.parts[-5:-1] if part.lower() in _DOMAINS), None)
    return facts._replace(
        benchmark=f"ITBench {domain.lower()}" if domain else "ITBench",
        task_id=folder.parent.name,
        trial=int(folder.name),
    )


def _evaluation(
    folder: Path, names: frozenset[str], problems: list[Problem]
) -> tuple[TraceMeta, tuple[Path, ...]]:
    """Return the result of the trial, and the file that holds it."""
    for name in _OWN_EVALUATIONS:
        if name in names and (scores := _scores(json_object(folder / name, problems))):
            return _facts(scores), (folder / name,)
    above = folder
    for _ in range(_FOLDERS_UP):
        above = above.parent
        path = above / _SHARED_EVALUATION
        if path.is_file():
            scores = _listed(json_object(path, problems), folder)
            return (_facts(scores), (path,)) if scores else (TraceMeta(), (path,))
    return TraceMeta(), ()


def _scores(evaluation: Fields) -> Fields:
    judged = fields_of(evaluation.get("eval_result"))
    return fields_of(evaluation.get("scores")) or fields_of(judged.get("scores"))


def _listed(evaluation: Fields, folder: Path) -> Fields:
    """Return the scores of this trial in a file for many, by the names of incident and trial."""
    trial_names = (folder.parent.name, folder.name)
    for result in map(fields_of, items_of(evaluation.get("raw_results"))):
        incident, trial = (_name(result.get(name)) for name in ("incident_id", "trial_id"))
        if (incident, trial) == trial_names:
            return _scores(result)
    return {}


def _name(value: object) -> str | None:
    return str(value) if isinstance(value, int) else as_text(value)


def _facts(scores: Fields) -> TraceMeta:
    """Return score and outcome by the recall of the root cause: all of it found is success."""
    recall = _recall(scores.get(_METRIC))
    return TraceMeta(
        benchmark="ITBench",
        outcome=Outcome.UNKNOWN if recall is None else outcome_of_reward(recall),
        score=clamp_score(recall),
        answer_key=_answer_key(scores),
    )


def _answer_key(scores: Fields) -> AnswerKey:
    """Return the verdicts of the benchmark's judge on each metric, and the reasons."""
    draft = AnswerKeyDraft()
    for metric, value in scores.items():
        draft.add_score(metric, value)
    return draft.key()


def _recall(metric: object) -> float | None:
    if not isinstance(metric, Mapping):
        return as_number(metric)
    recall = as_number(metric.get("calculation_recall"))
    if recall is not None:
        return recall
    percent = as_number(metric.get("score"))
    return None if percent is None else percent / 100

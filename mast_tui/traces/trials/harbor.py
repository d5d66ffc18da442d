"""Harbor, which runs Terminal-Bench 2: a folder per trial with ``result.json`` and ``agent/``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mast_tui.traces.io.decoding import decode
from mast_tui.traces.io.json_values import as_number, as_text
from mast_tui.traces.io.regular_files import is_regular
from mast_tui.traces.model import AnswerKey, Problem, TraceMeta
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft
from mast_tui.traces.readers.json_fields import Fields, fields_of
from mast_tui.traces.readers.run_facts import clamp_score, outcome_of_reward, task_id_of
from mast_tui.traces.trials.base import Trial, bytes_of, json_object

_TRAJECTORY: Final = re.compile(r"trajectory(?:\.cont-(\d{1,6}))?\.json")
_MARKS: Final = ("trial_name", "verifier_result", "agent_info")


def find(folder: Path, names: frozenset[str]) -> Trial | None:
    """Return the trial in a folder with the ``result.json`` of an agent and of its verifier.

    Args:
        folder: The folder.
        names: The names of its members.
    """
    if not {"result.json", "agent"} <= names:
        return None
    result = json_object(folder / "result.json", [])  # else it is named as a file
    if not any(mark in result for mark in _MARKS):
        return None
    agent = folder / "agent"
    sessions = tuple(sorted((agent / "sessions").glob("**/*.jsonl*")))
    trajectories = _trajectories(agent)
    other_logs = tuple(sorted({*agent.glob("*.json"), *agent.glob("*.jsonl")} - {*trajectories}))
    sources = (trajectories, sessions, other_logs)
    printed = folder / "verifier" / "test-stdout.txt"
    problems: list[Problem] = []
    data = bytes_of(printed, f"verifier/{printed.name}", problems) or b""
    facts = _facts(result, decode(data)[0])
    fact_files = (folder / "result.json", *((printed,) if is_regular(printed) else ()))
    return Trial(
        "Terminal-Bench trial", folder, sources, facts, fact_files, problems=tuple(problems)
    )


def _trajectories(agent: Path) -> tuple[Path, ...]:
    """Return the trajectory, and those that continue it after its context was cleared."""
    numbered = [
        (int(match[1] or 0), path)
        for path in agent.glob("trajectory*.json")
        if (match := _TRAJECTORY.fullmatch(path.name))
    ]
    return tuple(path for _number, path in sorted(numbered))


def _facts(result: Fields, printed: str) -> TraceMeta:
    verified = fields_of(result.get("verifier_result"))
    agent = fields_of(result.get("agent_info"))
    reward = _reward(fields_of(verified.get("rewards")))
    if reward is None:
        reward = as_number(verified.get("reward"))
    return TraceMeta(
        system=as_text(agent.get("name")),
        model=as_text(fields_of(agent.get("model_info")).get("name")),
        benchmark=as_text(result.get("source")) or "Terminal-Bench",
        outcome=outcome_of_reward(reward),
        score=clamp_score(reward),
        answer_key=_answer_key(result, printed),
        task_id=task_id_of(result.get("task_name")),
    )


def _answer_key(result: Fields, printed: str) -> AnswerKey:
    """Return the verifier's rewards, the output of its tests, and what stopped the run."""
    draft = AnswerKeyDraft()
    verified = result.get("verifier_result")
    if isinstance(verified, Mapping):
        for name, value in verified.items():
            if name == "rewards" and isinstance(value, Mapping):
                for part, reward in value.items():
                    draft.add_score(part, reward)
            else:
                draft.add_value(name, value)
    else:
        draft.add("scores", "verifier_result", verified)
    draft.add("tests", "test-stdout.txt", printed)
    draft.add("explanations", "exception_info", result.get("exception_info"))
    return draft.key()


def _reward(rewards: Fields) -> float | None:
    """Return the reward by that name, else the only one there is."""
    named = as_number(rewards.get("reward"))
    if named is not None or len(rewards) != 1:
        return named
    return as_number(next(iter(rewards.values())))

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

_TRAJECTORY_NAME: Final = re.compile(r"trajectory(?:\.cont-(\d{1,6}))?\.json")
_MARKS: Final = ("trial_name", "verifier_result", "agent_info")


def find(folder: Path, names: frozenset[str]) -> Trial | None:
    """Return the trial in a folder with a ``result.json`` of Harbor; None for any other folder.

    Args:
        folder: The folder.
        names: The names of its members.
    """
    if not {"result.json", "agent"} <= names:
        return None
    # An unreadable file is reported when it is read as a file of its own, so not here.
    result = json_object(folder / "result.json", problems=[])
    if not any(mark in result for mark in _MARKS):
        return None
    agent = folder / "agent"
    sessions = tuple(sorted((agent / "sessions").glob("**/*.jsonl*")))
    trajectories = _trajectory_files(agent)
    other_logs = tuple(sorted({*agent.glob("*.json"), *agent.glob("*.jsonl")} - {*trajectories}))
    sources = (trajectories, sessions, other_logs)
    test_output = folder / "verifier" / "test-stdout.txt"
    problems: list[Problem] = []
    data = bytes_of(test_output, f"verifier/{test_output.name}", problems) or b""
    test_text, _problem = decode(data)
    facts = _facts_of_result(result, test_text)
    fact_files = (folder / "result.json", *((test_output,) if is_regular(test_output) else ()))
    return Trial(
        "Terminal-Bench trial", folder, sources, facts, fact_files, problems=tuple(problems)
    )


def _trajectory_files(agent: Path) -> tuple[Path, ...]:
    """Return the file of the trajectory, then the files that continue it with a cleared context."""
    numbered = [
        (int(match[1] or 0), path)
        for path in agent.glob("trajectory*.json")
        if (match := _TRAJECTORY_NAME.fullmatch(path.name))
    ]
    return tuple(path for _number, path in sorted(numbered))


def _facts_of_result(result: Fields, test_text: str) -> TraceMeta:
    """Return the facts of a trial from its ``result.json`` and the output of its tests."""
    verifier_result = fields_of(result.get("verifier_result"))
    agent = fields_of(result.get("agent_info"))
    reward = _main_reward(fields_of(verifier_result.get("rewards")))
    if reward is None:
        reward = as_number(verifier_result.get("reward"))
    return TraceMeta(
        system=as_text(agent.get("name")),
        model=as_text(fields_of(agent.get("model_info")).get("name")),
        benchmark=as_text(result.get("source")) or "Terminal-Bench",
        outcome=outcome_of_reward(reward),
        score=clamp_score(reward),
        answer_key=_answer_key(result, test_text),
        task_id=task_id_of(result.get("task_name")),
    )


def _answer_key(result: Fields, test_text: str) -> AnswerKey:
    """Return the verifier's rewards, the output of its tests, and the exception of the run."""
    draft = AnswerKeyDraft()
    verifier_result = result.get("verifier_result")
    if isinstance(verifier_result, Mapping):
        for name, value in verifier_result.items():
            if name == "rewards" and isinstance(value, Mapping):
                for reward_name, reward in value.items():
                    draft.add_score(reward_name, reward)
            else:
                draft.add_value(name, value)
    else:
        draft.add("scores", "verifier_result", verifier_result)
    draft.add("tests", "test-stdout.txt", test_text)
    draft.add("explanations", "exception_info", result.get("exception_info"))
    return draft.key()


def _main_reward(rewards: Fields) -> float | None:
    """Return the reward with the name ``reward``, else the only reward; None without both."""
    main_reward = as_number(rewards.get("reward"))
    if main_reward is not None or len(rewards) != 1:
        return main_reward
    (only_reward,) = rewards.values()
    return as_number(only_reward)

"""Terminal-Bench 1: a folder per trial with ``results.json``, the agent's logs and recordings.

The agent of the benchmark itself logs one folder an episode: what it was shown, and its answer in
JSON with the keys to press. Other agents leave logs of their own, and else there is what was
printed in the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.io.decoding import decode
from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.io.regular_files import is_regular
from mast_tui.traces.keys import identity_by_content
from mast_tui.traces.model import (
    AnswerKey,
    FileReport,
    Problem,
    Role,
    SpanKind,
    Trace,
    TraceMeta,
)
from mast_tui.traces.preview import task_of_text
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft
from mast_tui.traces.readers.json_fields import Fields, fields_of, json_in
from mast_tui.traces.readers.run_facts import outcome_of_flag, task_id_of
from mast_tui.traces.trials.base import Trial, bytes_of, json_object

FORMAT: Final = "terminal-bench"
KEY_SCHEME: Final = 1
_MARKS: Final = frozenset({"task_id", "is_resolved"})
_AGENT: Final = "terminus"
_TOOL: Final = "terminal"
_MOST_BYTES: Final = 64 << 20
_EPISODE: Final = re.compile(r"episode-(\d{1,9})")
_FENCED: Final = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_TEXT_FIELDS: Final = ("state_analysis", "analysis", "explanation", "plan")


def find(folder: Path, names: frozenset[str]) -> Trial | None:
    """Return the trial in a folder with a ``results.json`` of one task.

    Args:
        folder: The folder.
        names: The names of its members.
    """
    if "results.json" not in names or not names & {"agent-logs", "sessions", "panes"}:
        return None
    result = json_object(folder / "results.json", [])  # else it is named as a file
    if not result.keys() >= _MARKS:
        return None
    logs = folder / "agent-logs"
    episodes = _episodes(logs)
    sources = () if episodes else _other_logs(folder, logs)
    return Trial(
        "Terminal-Bench trial",
        folder,
        sources,
        _facts(result),
        (
            folder / "results.json",
            *(path for episode in episodes for path in sorted(episode.iterdir())),
        ),
        partial(_read, folder, episodes, result) if episodes else None,
    )


def _episodes(logs: Path) -> list[Path]:
    """Return the folders of the episodes, by their numbers."""
    numbered = [
        (int(match[1]), path)
        for path in logs.glob("episode-*")
        if (match := _EPISODE.fullmatch(path.name)) and path.is_dir()
    ]
    return [path for _number, path in sorted(numbered)]


def _other_logs(folder: Path, logs: Path) -> tuple[tuple[Path, ...], ...]:
    records = tuple(sorted({*logs.glob("**/*.jsonl"), *logs.glob("**/*.json")}))
    texts = tuple(sorted({*logs.glob("**/*.log"), *logs.glob("**/*.txt")}))
    screens = tuple(
        path
        for path in (folder / "sessions" / "agent.log", folder / "panes" / "post-agent.txt")
        if is_regular(path)
    )
    return records, texts, screens[:1]


def _facts(result: Fields) -> TraceMeta:
    task = as_text(result.get("instruction"))
    return TraceMeta(
        task=task_of_text(task) if task else None,
        benchmark="Terminal-Bench",
        outcome=outcome_of_flag(result.get("is_resolved")),
        answer_key=_answer_key(result),
        task_id=task_id_of(result.get("task_id")),
    )


def _answer_key(result: Fields) -> AnswerKey:
    """Return whether the task was solved, the result of each test, and why the harness stopped."""
    draft = AnswerKeyDraft()
    draft.add("scores", "is_resolved", result.get("is_resolved"))
    tests = result.get("parser_results")
    if isinstance(tests, Mapping):
        for name, test_result in tests.items():
            draft.add("tests", name, test_result)
    else:
        draft.add("tests", "parser_results", tests)
    draft.add("explanations", "failure_mode", result.get("failure_mode"))
    return draft.key()


def _read(folder: Path, episodes: list[Path], result: Fields) -> FileReport:
    """Return the trace of a run that is logged one folder an episode."""
    steps = StepList()
    problems: list[Problem] = []
    content: list[bytes] = []
    call: str | None = None
    for episode in episodes:
        prompt = _text(folder, episode / "prompt.txt", content, problems)
        if prompt:
            _add_prompt(steps, episode.name, prompt, call)
        answer = _text(folder, episode / "response.txt", content, problems)
        if answer is not None:
            call = _add_answer(steps, episode.name, answer)
    identity = identity_by_content(
        folder, None, b"\0".join(content), reader=FORMAT, key_scheme=KEY_SCHEME
    )
    trace = Trace(
        identity, folder, StepSpans(steps.steps), meta=TraceMeta(system=_AGENT), problems=problems
    )
    return FileReport(folder, format=FORMAT, traces=(trace,))


def _text(folder: Path, path: Path, content: list[bytes], problems: list[Problem]) -> str | None:
    location = path.relative_to(folder).as_posix()
    data = bytes_of(path, location, problems, _MOST_BYTES)
    if data is None:
        return None
    content.append(data)
    text, problem = decode(data)
    if problem is not None:
        problems.append(Problem(f"{location} {problem.place}", problem.message))
    return text


def _add_prompt(steps: StepList, episode: str, prompt: str, call: str | None) -> None:
    key = f"{episode}/prompt"
    location = f"agent-logs/{key}.txt"
    if call is None:
        steps.add(key, SpanKind.MESSAGE, Role.USER, "user", prompt, place=location)
    else:
        steps.add(
            key, SpanKind.TOOL_RESULT, Role.TOOL, _AGENT, prompt, place=location, name=_TOOL,
            parent=call,
        )  # fmt: skip


def _add_answer(steps: StepList, episode: str, answer: str) -> str | None:
    """Add the agent's text and the keys it presses; return the key of the latter, if any."""
    key = f"{episode}/response"
    location = f"agent-logs/{key}.txt"
    parsed = _json_in(answer)
    commands = parsed.get("commands")
    texts = [f"{name}: {text}" for name in _TEXT_FIELDS if (text := as_text(parsed.get(name)))]
    steps.add(
        key, SpanKind.MESSAGE, Role.AGENT, _AGENT, "\n\n".join(texts) or answer, place=location
    )
    if not isinstance(commands, list) or not commands:
        return None
    return steps.add(
        f"{key}:call", SpanKind.TOOL_CALL, Role.AGENT, _AGENT, _keys_pressed(commands),
        place=location, name=_TOOL,
    )  # fmt: skip


def _keys_pressed(commands: list[object]) -> str:
    pressed = [as_text(fields_of(command).get("keystrokes")) for command in commands]
    if all(keys is not None for keys in pressed):
        return "\n".join(keys.rstrip("\n") for keys in pressed if keys is not None)
    return dump_text(commands)


def _json_in(answer: str) -> Fields:
    """Return the JSON object that an answer is, or holds; empty where there is none."""
    fenced = _FENCED.search(answer)
    for text in (answer, fenced[1] if fenced else "", answer[answer.find("{") :]):
        if fields := fields_of(json_in(text.strip())):
            return fields
    return {}

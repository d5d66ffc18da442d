"""Terminal-Bench 1: a folder per trial with ``results.json``, the agent's logs and recordings.

The benchmark's own agent logs one folder an episode, with its prompt and its answer: JSON with the
keys to press. Other agents have logs of their own; without those, the terminal's output is read.
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
_MAX_BYTES: Final = 64 << 20
_EPISODE_NAME: Final = re.compile(r"episode-(\d{1,9})")
_FENCED_BLOCK: Final = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_TEXT_FIELDS: Final = ("state_analysis", "analysis", "explanation", "plan")


def find(folder: Path, names: frozenset[str]) -> Trial | None:
    """Return the trial in a folder with a ``results.json`` of one task; None for another folder.

    Args:
        folder: The folder.
        names: The names of the files and folders in it.
    """
    if "results.json" not in names or not names & {"agent-logs", "sessions", "panes"}:
        return None
    # An unreadable file is reported when it is read as a file of its own, so not here.
    result = json_object(folder / "results.json", problems=[])
    if not result.keys() >= _MARKS:
        return None
    episodes = _episode_folders(folder)
    episode_files = [path for episode in episodes for path in sorted(episode.iterdir())]
    return Trial(
        "Terminal-Bench trial",
        folder,
        sources=() if episodes else _log_groups(folder),
        facts=_facts_of_result(result),
        fact_files=(folder / "results.json", *episode_files),
        read=partial(_read_episodes, folder, episodes) if episodes else None,
    )


def _episode_folders(folder: Path) -> list[Path]:
    """Return the folders of the episodes in a trial's folder, by their numbers."""
    numbered = [
        (int(match[1]), path)
        for path in (folder / "agent-logs").glob("episode-*")
        if (match := _EPISODE_NAME.fullmatch(path.name)) and path.is_dir()
    ]
    return [path for _number, path in sorted(numbered)]


def _log_groups(folder: Path) -> tuple[tuple[Path, ...], ...]:
    """Return the agent's JSON files, its logs, and the first file of the terminal's output."""
    logs = folder / "agent-logs"
    records = tuple(sorted({*logs.glob("**/*.jsonl"), *logs.glob("**/*.json")}))
    texts = tuple(sorted({*logs.glob("**/*.log"), *logs.glob("**/*.txt")}))
    screens = tuple(
        path
        for path in (folder / "sessions" / "agent.log", folder / "panes" / "post-agent.txt")
        if is_regular(path)
    )
    return records, texts, screens[:1]


def _facts_of_result(result: Fields) -> TraceMeta:
    """Return the facts in a trial's ``results.json``."""
    task = as_text(result.get("instruction"))
    return TraceMeta(
        task=task_of_text(task) if task else None,
        benchmark="Terminal-Bench",
        outcome=outcome_of_flag(result.get("is_resolved")),
        answer_key=_answer_key(result),
        task_id=task_id_of(result.get("task_id")),
    )


def _answer_key(result: Fields) -> AnswerKey:
    """Return the verdict on the task, the result of each test, and the failure of the harness."""
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


def _read_episodes(folder: Path, episodes: list[Path]) -> FileReport:
    """Return the trace of a run that has a folder for each episode."""
    steps = StepList()
    problems: list[Problem] = []
    content: list[bytes] = []
    call_key: str | None = None
    for episode in episodes:
        prompt = _read_text(folder, episode / "prompt.txt", content, problems)
        if prompt:
            _add_prompt(steps, episode.name, prompt, call_key)
        answer = _read_text(folder, episode / "response.txt", content, problems)
        if answer is not None:
            call_key = _add_answer(steps, episode.name, answer)
    identity = identity_by_content(
        folder, None, b"\0".join(content), reader=FORMAT, key_scheme=KEY_SCHEME
    )
    trace = Trace(
        identity, folder, StepSpans(steps.steps), meta=TraceMeta(system=_AGENT), problems=problems
    )
    return FileReport(folder, format=FORMAT, traces=(trace,))


def _read_text(
    folder: Path, path: Path, content: list[bytes], problems: list[Problem]
) -> str | None:
    """Return the text of a file, and add its bytes to ``content``; None if it is unreadable."""
    location = path.relative_to(folder).as_posix()
    data = bytes_of(path, location, problems, _MAX_BYTES)
    if data is None:
        return None
    content.append(data)
    text, problem = decode(data)
    if problem is not None:
        problems.append(Problem(f"{location} {problem.place}", problem.message))
    return text


def _add_prompt(steps: StepList, episode: str, prompt: str, call_key: str | None) -> None:
    """Add a prompt as the result of the call before it, or as a user's message without a call."""
    key = f"{episode}/prompt"
    location = f"agent-logs/{key}.txt"
    if call_key is None:
        steps.add(key, SpanKind.MESSAGE, Role.USER, "user", prompt, place=location)
    else:
        steps.result(key, _AGENT, prompt, place=location, name=_TOOL, parent=call_key)


def _add_answer(steps: StepList, episode: str, answer: str) -> str | None:
    """Add the agent's text and a call with the keys to press; return the call's key, if any."""
    key = f"{episode}/response"
    location = f"agent-logs/{key}.txt"
    fields = _object_in_answer(answer)
    commands = fields.get("commands")
    texts = [f"{name}: {text}" for name in _TEXT_FIELDS if (text := as_text(fields.get(name)))]
    answer_text = "\n\n".join(texts) or answer
    steps.add(key, SpanKind.MESSAGE, Role.AGENT, _AGENT, answer_text, place=location)
    if not isinstance(commands, list) or not commands:
        return None
    keystrokes = _keystrokes_of(commands)
    return steps.call(f"{key}:call", _AGENT, keystrokes, place=location, name=_TOOL)


def _keystrokes_of(commands: list[object]) -> str:
    """Return the keys of all commands, one command a line; the JSON if a command has no keys."""
    keystrokes = [as_text(fields_of(command).get("keystrokes")) for command in commands]
    if all(keys is not None for keys in keystrokes):
        return "\n".join(keys.rstrip("\n") for keys in keystrokes if keys is not None)
    return dump_text(commands)


def _object_in_answer(answer: str) -> Fields:
    """Return the JSON object of an answer; an empty object if there is none.

    The object is the whole answer, in a fenced block, or the text from the first brace on.
    """
    fenced_block = _FENCED_BLOCK.search(answer)
    fenced_text = fenced_block[1] if fenced_block else ""
    for text in (answer, fenced_text, answer[answer.find("{") :]):
        if fields := fields_of(json_in(text.strip())):
            return fields
    return {}

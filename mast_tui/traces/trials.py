"""Folders with one run in several files: the trials of benchmarks, and the sessions of agents.

To add a kind of trial, add its function to ``_KINDS``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.io.decoding import decode
from mast_tui.traces.io.json_values import (
    as_number,
    as_text,
    canonical_bytes,
    dump_text,
)
from mast_tui.traces.io.regular_files import is_regular
from mast_tui.traces.keys import identity_by_content
from mast_tui.traces.model import (
    AnswerKey,
    FileReport,
    Outcome,
    Problem,
    Role,
    SpanKind,
    Trace,
    TraceMeta,
)
from mast_tui.traces.preview import task_of_text
from mast_tui.traces.readers import openhands
from mast_tui.traces.readers.document_traces import neighbour_bytes, neighbour_json
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, json_in
from mast_tui.traces.readers.run_facts import (
    AnswerKeyDraft,
    clamp_score,
    outcome_of_flag,
    outcome_of_reward,
    task_id_of,
)
from mast_tui.traces.readers.sessions.documents import OPENCODE
from mast_tui.traces.readers.sessions.engine import SessionReader, SessionRecord
from mast_tui.traces.readers.sessions.messages import STRANDS
from mast_tui.traces.times import unix_seconds

_NO_FACTS: Final = TraceMeta()
_MAX_BYTES: Final = 64 << 20
"""The most bytes that are read from a file with events, messages or an answer."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run in a folder of files.

    Attributes:
        kind: The name of the kind of trial.
        folder: The folder.
        sources: Groups of files that may hold the run. Only the first group with a trace is read.
        facts: The facts of the run in ``fact_files``.
        fact_files: The other files of the trial.
        read: Reads the run from all of ``fact_files`` together, if no source has a trace.
        problems: The files that could not be read.
    """

    kind: str
    folder: Path
    sources: tuple[tuple[Path, ...], ...]
    facts: TraceMeta = _NO_FACTS
    fact_files: tuple[Path, ...] = ()
    read: Callable[[], FileReport] | None = None
    problems: tuple[Problem, ...] = ()


def _json_object(path: Path, folder: Path, problems: list[Problem]) -> Fields:
    """Return the JSON object in a file below a folder; an unreadable file adds to ``problems``."""
    _, value = neighbour_json(path, str(path.relative_to(folder)), problems, _MAX_BYTES)
    return fields_of(value)


# Harbor, which runs Terminal-Bench 2: a folder per trial with ``result.json`` and ``agent/``.


_HARBOR_TRAJECTORY_NAME: Final = re.compile(r"trajectory(?:\.cont-(\d{1,6}))?\.json")
_HARBOR_FIELDS: Final = ("trial_name", "verifier_result", "agent_info")


def _find_harbor(folder: Path, member_names: frozenset[str]) -> Trial | None:
    """Return the trial in a folder with Harbor's ``result.json``; None for any other folder."""
    if not {"result.json", "agent"} <= member_names:
        return None
    # With an unreadable file the folder is no trial. Its files are then read one by one, and
    # that reports the problem.
    result = _json_object(folder / "result.json", folder, problems=[])
    if not any(mark in result for mark in _HARBOR_FIELDS):
        return None
    agent = folder / "agent"
    sessions = tuple(sorted((agent / "sessions").glob("**/*.jsonl*")))
    trajectories = _trajectory_files(agent)
    other_logs = tuple(sorted({*agent.glob("*.json"), *agent.glob("*.jsonl")} - {*trajectories}))
    sources = (trajectories, sessions, other_logs)
    test_output = folder / "verifier" / "test-stdout.txt"
    problems: list[Problem] = []
    data = neighbour_bytes(test_output, f"verifier/{test_output.name}", problems) or b""
    test_text, _problem = decode(data)
    facts = _facts_of_harbor_result(result, test_text)
    fact_files = (folder / "result.json", *((test_output,) if is_regular(test_output) else ()))
    return Trial(
        "Terminal-Bench trial", folder, sources, facts, fact_files, problems=tuple(problems)
    )


def _trajectory_files(agent: Path) -> tuple[Path, ...]:
    """Return the first file of a trajectory, then the files that continue it in order."""
    numbered = [
        (int(match[1] or 0), path)
        for path in agent.glob("trajectory*.json")
        if (match := _HARBOR_TRAJECTORY_NAME.fullmatch(path.name))
    ]
    return tuple(path for _number, path in sorted(numbered))


def _facts_of_harbor_result(result: Fields, test_text: str) -> TraceMeta:
    verifier_result = fields_of(result.get("verifier_result"))
    agent = fields_of(result.get("agent_info"))
    reward = _main_harbor_reward(fields_of(verifier_result.get("rewards")))
    if reward is None:
        reward = as_number(verifier_result.get("reward"))
    return TraceMeta(
        system=as_text(agent.get("name")),
        model=as_text(fields_of(agent.get("model_info")).get("name")),
        benchmark=as_text(result.get("source")) or "Terminal-Bench",
        outcome=outcome_of_reward(reward),
        score=clamp_score(reward),
        answer_key=_harbor_answer_key(result, test_text),
        task_id=task_id_of(result.get("task_name")),
    )


def _harbor_answer_key(result: Fields, test_text: str) -> AnswerKey:
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


def _main_harbor_reward(rewards: Fields) -> float | None:
    """Return the reward named ``reward``, or else the only reward, if any."""
    main_reward = as_number(rewards.get("reward"))
    if main_reward is not None or len(rewards) != 1:
        return main_reward
    (only_reward,) = rewards.values()
    return as_number(only_reward)


# ITBench: the workspace of one trial of the SRE agent, and one run of the published trajectories.
# The run is in the agent's own rollout, else in the output of the program, else in its telemetry.
# The scores are in a judge's file in the folder, or in a folder above for many trials. The paths
# are ``DOMAIN/Scenario-N/RUN/session.jsonl`` in the published set, else ``INCIDENT/TRIAL``; they
# name the task and the trial.


_ITBENCH_OWN_EVALUATIONS: Final = (
    "judge_output.json",
    "evaluation.json",
    "eval_result.json",
    "evaluation_results.json",
)
_ITBENCH_SHARED_EVALUATION: Final = "evaluation_results.json"
_ITBENCH_SESSION: Final = "session.jsonl"
_ITBENCH_RESULTS: Final = ("agent_output.json", "judge_output.json")
_ITBENCH_DOMAINS: Final = frozenset({"sre", "ciso", "finops"})
_ITBENCH_FOLDERS_UP: Final = 4
_ITBENCH_METRIC: Final = "root_cause_entity"


def _find_itbench(folder: Path, member_names: frozenset[str]) -> Trial | None:
    """Return the ITBench trial in a folder; None for any other folder.

    The folder is a published run, or the workspace of an agent.
    """
    session = folder / _ITBENCH_SESSION
    program_output = folder / "traces" / "stdout.log"
    telemetry = folder / "traces" / "traces.jsonl"
    is_published = _ITBENCH_SESSION in member_names and not member_names.isdisjoint(
        _ITBENCH_RESULTS
    )
    has_traces = "traces" in member_names and (program_output.is_file() or telemetry.is_file())
    if not (is_published or has_traces or {"agent_output.json", "sessions"} <= member_names):
        return None
    rollouts = sorted((folder / "sessions").glob("**/rollout-*.jsonl*"))
    problems: list[Problem] = []
    facts, fact_files = _facts_of_itbench_evaluation(folder, member_names, problems)
    agent_logs = (session,) if is_published else tuple(rollouts)
    sources = (agent_logs, (program_output,), (telemetry,))
    return Trial(
        "ITBench trial",
        folder,
        sources,
        _with_itbench_task(facts, folder),
        fact_files,
        problems=tuple(problems),
    )


def _with_itbench_task(facts: TraceMeta, folder: Path) -> TraceMeta:
    """Return the facts with domain, task and trial from the path ``…/DOMAIN/…/TASK/TRIAL``.

    If the name of the folder is no number, the facts are unchanged.
    """
    if not folder.name.isdecimal():
        return facts
    domain = next((part for part in folder.parts[-5:-1] if part.lower() in _ITBENCH_DOMAINS), None)
    return facts._replace(
        benchmark=f"ITBench {domain.lower()}" if domain else "ITBench",
        task_id=folder.parent.name,
        trial=int(folder.name),
    )


def _facts_of_itbench_evaluation(
    folder: Path, member_names: frozenset[str], problems: list[Problem]
) -> tuple[TraceMeta, tuple[Path, ...]]:
    """Return the facts of a trial's evaluation, and the files that hold it."""
    for name in _ITBENCH_OWN_EVALUATIONS:
        if name not in member_names:
            continue
        scores = _scores_of_itbench_evaluation(_json_object(folder / name, folder, problems))
        if scores:
            return _facts_of_itbench_scores(scores), (folder / name,)
    for outer_folder in folder.parents[:_ITBENCH_FOLDERS_UP]:
        path = outer_folder / _ITBENCH_SHARED_EVALUATION
        if path.is_file():
            scores = _scores_in_shared_itbench_evaluation(
                _json_object(path, outer_folder, problems), folder
            )
            return (_facts_of_itbench_scores(scores) if scores else TraceMeta()), (path,)
    return TraceMeta(), ()


def _scores_of_itbench_evaluation(evaluation: Fields) -> Fields:
    """Return the scores of an evaluation, by metric."""
    result = fields_of(evaluation.get("eval_result"))
    return fields_of(evaluation.get("scores")) or fields_of(result.get("scores"))


def _scores_in_shared_itbench_evaluation(evaluation: Fields, folder: Path) -> Fields:
    """Return the scores of one trial from an evaluation of many trials."""
    for result in map(fields_of, items_of(evaluation.get("raw_results"))):
        incident = _name_or_number_text(result.get("incident_id"))
        trial = _name_or_number_text(result.get("trial_id"))
        if incident == folder.parent.name and trial == folder.name:
            return _scores_of_itbench_evaluation(result)
    return {}


def _name_or_number_text(value: object) -> str | None:
    return str(value) if isinstance(value, int) else as_text(value)


def _facts_of_itbench_scores(scores: Fields) -> TraceMeta:
    """Return the facts in a trial's scores; a recall of 1 for the root cause is success."""
    recall = _recall_of_itbench_metric(scores.get(_ITBENCH_METRIC))
    return TraceMeta(
        benchmark="ITBench",
        outcome=Outcome.UNKNOWN if recall is None else outcome_of_reward(recall),
        score=clamp_score(recall),
        answer_key=_itbench_answer_key(scores),
    )


def _itbench_answer_key(scores: Fields) -> AnswerKey:
    draft = AnswerKeyDraft()
    for metric, value in scores.items():
        draft.add_score(metric, value)
    return draft.key()


def _recall_of_itbench_metric(metric: object) -> float | None:
    """Return the recall (0 to 1) from a number, a computed recall, or a score in percent."""
    if not isinstance(metric, Mapping):
        return as_number(metric)
    recall = as_number(metric.get("calculation_recall"))
    if recall is not None:
        return recall
    percent = as_number(metric.get("score"))
    return None if percent is None else percent / 100


# Sessions of agents that store each event, message or part of a message in its own file.


_MESSAGE_FILE: Final = re.compile(r"message_\d{1,12}\.json")
_MESSAGE_NUMBER: Final = re.compile(r"\d{1,12}")


def _find_openhands(folder: Path, member_names: frozenset[str]) -> Trial | None:
    """Return the conversation in a folder of files such as ``event-00001-….json``, if any."""
    has_event_name = any(map(openhands.EVENT_FILE.fullmatch, member_names))
    files = openhands.event_files(folder) if has_event_name else []
    if not files:
        return None
    return Trial(
        "OpenHands conversation",
        folder,
        sources=(),
        fact_files=tuple(files),
        read=partial(_read_openhands, folder),
    )


def _find_opencode(folder: Path, member_names: frozenset[str]) -> Trial | None:
    """Return OpenCode's storage of sessions as one trial; None for any other folder."""
    if not {"session", "message", "part"} <= member_names:
        return None
    nested_sessions = sorted(folder.glob("session/*/*.json"))
    sessions = (*nested_sessions, *sorted(folder.glob("session/*.json")))
    if not sessions:
        return None
    messages = sorted(folder.glob("message/*/*.json"))
    parts = sorted(folder.glob("part/**/*.json"))
    return Trial(
        "OpenCode storage",
        folder,
        sources=(),
        fact_files=(*sessions, *messages, *parts),
        read=partial(_read_opencode, folder, sessions),
    )


def _find_strands(folder: Path, member_names: frozenset[str]) -> Trial | None:
    """Return the Strands session in the folder of a session, an agent or messages, if any."""
    if {"session.json", "agents"} <= member_names:
        files = folder.glob("agents/*/messages/*.json")
    elif {"agent.json", "messages"} <= member_names:
        files = folder.glob("messages/*.json")
    elif any(map(_MESSAGE_FILE.fullmatch, member_names)):
        files = (path for path in folder.iterdir() if _MESSAGE_FILE.fullmatch(path.name))
    else:
        return None
    messages = tuple(sorted(files, key=_message_sort_key))
    if not messages or "message_id" not in _json_object(messages[0], folder, []):
        return None
    header = folder / "session.json"
    return Trial(
        "Strands session",
        folder,
        sources=(),
        fact_files=((header, *messages) if header.is_file() else messages),
        read=partial(_read_strands, folder, messages),
    )


def _read_openhands(folder: Path) -> FileReport:
    report = openhands.read_event_folder(folder)
    return report or FileReport(folder, failed="its event files can no longer be read")


def _read_opencode(folder: Path, session_files: Sequence[Path]) -> FileReport:
    """Return a trace for each session that has an id and messages."""
    problems: list[Problem] = []
    parts_by_message = _parts_by_message(folder, problems)
    reader = SessionReader(OPENCODE)
    traces = []
    for session_index, session_file in enumerate(session_files):
        session = _json_object(session_file, folder, problems)
        session_id = as_text(session.get("id"))
        if session_id is None:
            continue
        records = []
        for message_file in sorted((folder / "message" / session_id).glob("*.json")):
            info = _json_object(message_file, folder, problems)
            message_id = as_text(info.get("id")) or message_file.stem
            message = {"info": info, "parts": parts_by_message.get(message_id, [])}
            records.append(SessionRecord(message, str(message_file.relative_to(folder))))
        records.sort(key=_time_of_message)
        if records:
            header = {"info": {"sessionID": session_id, **session}}
            traces.append(_trace_of_session(reader, folder, header, records, session_index))
    return FileReport(folder, OPENCODE.name, tuple(traces), tuple(problems))


def _parts_by_message(folder: Path, problems: list[Problem]) -> dict[str, list[object]]:
    """Return the parts of all messages, by message id."""
    parts: dict[str, list[object]] = {}
    for path in sorted((folder / "part").glob("**/*.json")):
        part = _json_object(path, folder, problems)
        if part:
            # Newer versions name the folder after the message; older ones have one folder.
            message_id = as_text(part.get("messageID")) or path.parent.name
            parts.setdefault(message_id, []).append(part)
    return parts


def _time_of_message(record: SessionRecord) -> float:
    times = fields_of(fields_of(record.value.get("info")).get("time"))
    return unix_seconds(times.get("created")) or 0.0


def _read_strands(folder: Path, message_files: Sequence[Path]) -> FileReport:
    """Return the trace of a session; messages of several agents are sorted by time."""
    problems: list[Problem] = []
    header = _json_object(folder / "session.json", folder, problems)
    # Messages have paths such as agents/agent_NAME/messages/message_1.json.
    agent_folders = {path.parent.parent.name for path in message_files}
    records = []
    for path in message_files:
        message = _json_object(path, folder, problems)
        if not message:
            continue
        if len(agent_folders) > 1:
            message = {**message, "agent": path.parent.parent.name.removeprefix("agent_")}
        records.append(SessionRecord(message, str(path.relative_to(folder))))
    if len(agent_folders) > 1:
        records.sort(key=lambda record: unix_seconds(record.value.get("created_at")) or 0.0)
    traces = [_trace_of_session(SessionReader(STRANDS), folder, header, records)] if records else []
    return FileReport(folder, STRANDS.name, tuple(traces), tuple(problems))


def _trace_of_session(
    reader: SessionReader,
    folder: Path,
    header: Fields,
    records: Sequence[SessionRecord],
    session_number: int | None = None,
) -> Trace:
    """Return the trace of a session; ``session_number`` is None for the only one of a folder."""
    content = canonical_bytes([record.value for record in records])
    return reader.trace(folder, content, records, header, session_number)


def _message_sort_key(path: Path) -> tuple[str, int, str]:
    """Return a sort key: the folder of a message file, then the number in its name."""
    number = _MESSAGE_NUMBER.search(path.stem)
    return str(path.parent), int(number[0]) if number else 0, path.name


# Terminal-Bench 1: a folder per trial with ``results.json``, the agent's logs and recordings. The
# benchmark's own agent has one folder an episode, with its prompt and its answer in JSON. Other
# agents have logs of their own; without logs, the terminal's output is read.


FORMAT: Final = "terminal-bench"
_EPISODE_KEY_SCHEME: Final = 1
_TERMINAL_BENCH_FIELDS: Final = frozenset({"task_id", "is_resolved"})
_TERMINAL_BENCH_AGENT: Final = "terminus"
_TERMINAL_BENCH_TOOL: Final = "terminal"
_EPISODE_NAME: Final = re.compile(r"episode-(\d{1,9})")
_FENCED_BLOCK: Final = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_EPISODE_TEXT_FIELDS: Final = ("state_analysis", "analysis", "explanation", "plan")


def _find_terminal_bench(folder: Path, member_names: frozenset[str]) -> Trial | None:
    """Return the trial in a folder with ``results.json`` for one task, if any."""
    if "results.json" not in member_names or not member_names & {"agent-logs", "sessions", "panes"}:
        return None
    # With an unreadable file the folder is no trial. Its files are then read one by one, and
    # that reports the problem.
    result = _json_object(folder / "results.json", folder, problems=[])
    if not result.keys() >= _TERMINAL_BENCH_FIELDS:
        return None
    episodes = _episode_folders(folder)
    episode_files = [path for episode in episodes for path in sorted(episode.iterdir())]
    return Trial(
        "Terminal-Bench trial",
        folder,
        sources=() if episodes else _terminal_bench_logs(folder),
        facts=_facts_of_terminal_bench_result(result),
        fact_files=(folder / "results.json", *episode_files),
        read=partial(_read_episodes, folder, episodes) if episodes else None,
    )


def _episode_folders(folder: Path) -> list[Path]:
    """Return the folders of the episodes, by their numbers."""
    numbered = [
        (int(match[1]), path)
        for path in (folder / "agent-logs").glob("episode-*")
        if (match := _EPISODE_NAME.fullmatch(path.name)) and path.is_dir()
    ]
    return [path for _number, path in sorted(numbered)]


def _terminal_bench_logs(folder: Path) -> tuple[tuple[Path, ...], ...]:
    """Return groups of files: the agent's JSON, its logs, and one file of terminal output."""
    logs = folder / "agent-logs"
    records = tuple(sorted({*logs.glob("**/*.jsonl"), *logs.glob("**/*.json")}))
    texts = tuple(sorted({*logs.glob("**/*.log"), *logs.glob("**/*.txt")}))
    # The second file counts only if the first is missing.
    terminal_files = tuple(
        path
        for path in (folder / "sessions" / "agent.log", folder / "panes" / "post-agent.txt")
        if is_regular(path)
    )
    return records, texts, terminal_files[:1]


def _facts_of_terminal_bench_result(result: Fields) -> TraceMeta:
    task = as_text(result.get("instruction"))
    return TraceMeta(
        task=task_of_text(task) if task else None,
        benchmark="Terminal-Bench",
        outcome=outcome_of_flag(result.get("is_resolved")),
        answer_key=_terminal_bench_answer_key(result),
        task_id=task_id_of(result.get("task_id")),
    )


def _terminal_bench_answer_key(result: Fields) -> AnswerKey:
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
    """Return the trace of a run with a folder for each episode."""
    steps = StepList()
    problems: list[Problem] = []
    content: list[bytes] = []
    call_key: str | None = None  # the next prompt has this call's result
    for episode in episodes:
        prompt = _read_episode_text(folder, episode / "prompt.txt", content, problems)
        if prompt:
            _add_episode_prompt(steps, episode.name, prompt, call_key)
        answer = _read_episode_text(folder, episode / "response.txt", content, problems)
        if answer is not None:
            call_key = _add_episode_answer(steps, episode.name, answer)
    identity = identity_by_content(
        folder, None, b"\0".join(content), reader=FORMAT, key_scheme=_EPISODE_KEY_SCHEME
    )
    trace = Trace(
        identity,
        folder,
        StepSpans(steps.steps),
        meta=TraceMeta(system=_TERMINAL_BENCH_AGENT),
        problems=problems,
    )
    return FileReport(folder, format=FORMAT, traces=(trace,))


def _read_episode_text(
    folder: Path, path: Path, content: list[bytes], problems: list[Problem]
) -> str | None:
    """Return the text of a file and append its bytes to ``content``; None if unreadable."""
    location = path.relative_to(folder).as_posix()
    data = neighbour_bytes(path, location, problems, _MAX_BYTES)
    if data is None:
        return None
    content.append(data)
    text, problem = decode(data)
    if problem is not None:
        problems.append(Problem(f"{location} {problem.place}", problem.message))
    return text


def _add_episode_prompt(steps: StepList, episode: str, prompt: str, call_key: str | None) -> None:
    """Add a prompt as the result of the call before it, or as a user's message without one."""
    key = f"{episode}/prompt"
    location = f"agent-logs/{key}.txt"
    if call_key is None:
        steps.add(key, SpanKind.MESSAGE, Role.USER, "user", prompt, place=location)
    else:
        steps.result(
            key,
            _TERMINAL_BENCH_AGENT,
            prompt,
            place=location,
            name=_TERMINAL_BENCH_TOOL,
            parent=call_key,
        )


def _add_episode_answer(steps: StepList, episode: str, answer: str) -> str | None:
    """Add the agent's text and a call with its keystrokes; return the key of the call."""
    key = f"{episode}/response"
    location = f"agent-logs/{key}.txt"
    fields = _object_in_answer(answer)
    commands = fields.get("commands")
    texts = [
        f"{name}: {text}" for name in _EPISODE_TEXT_FIELDS if (text := as_text(fields.get(name)))
    ]
    answer_text = "\n\n".join(texts) or answer
    steps.add(key, SpanKind.MESSAGE, Role.AGENT, _TERMINAL_BENCH_AGENT, answer_text, place=location)
    if not isinstance(commands, list) or not commands:
        return None
    keystrokes = _keystrokes_of(commands)
    return steps.call(
        f"{key}:call", _TERMINAL_BENCH_AGENT, keystrokes, place=location, name=_TERMINAL_BENCH_TOOL
    )


def _keystrokes_of(commands: list[object]) -> str:
    """Return the keystrokes of all commands, one a line; JSON if a command has none."""
    keystrokes = [as_text(fields_of(command).get("keystrokes")) for command in commands]
    if all(keys is not None for keys in keystrokes):
        return "\n".join(keys.rstrip("\n") for keys in keystrokes if keys is not None)
    return dump_text(commands)


def _object_in_answer(answer: str) -> Fields:
    """Return the JSON object in an answer; empty if there is none."""
    fenced_block = _FENCED_BLOCK.search(answer)
    fenced_text = fenced_block[1] if fenced_block else ""
    for text in (answer, fenced_text, answer[answer.find("{") :]):
        if fields := fields_of(json_in(text.strip())):
            return fields
    return {}


_FOLDERS_ABOVE_RUN: Final = 4
"""The most levels between a run's file and the folder of its trial."""

_KINDS: Final[tuple[Callable[[Path, frozenset[str]], Trial | None], ...]] = (
    _find_itbench,
    _find_harbor,
    _find_terminal_bench,
    _find_openhands,
    _find_opencode,
    _find_strands,
)


def trial_in(folder: Path, member_names: frozenset[str]) -> Trial | None:
    """Return the trial (one run in several files) in a folder; None for any other folder.

    Args:
        folder: The folder.
        member_names: The names of the files and folders in it.
    """
    return next(
        (trial for find in _KINDS if (trial := find(folder, member_names)) is not None), None
    )


def trial_facts(path: Path) -> TraceMeta | None:
    """Return the facts of the trial whose run may be in this file; None without a trial.

    The nearest folder above the file that is a trial decides.
    """
    for folder in path.parents[:_FOLDERS_ABOVE_RUN]:
        try:
            member_names = frozenset(member.name for member in folder.iterdir())
        except OSError:
            return None
        trial = trial_in(folder, member_names)
        if trial is not None:
            may_hold_run = any(path in files for files in trial.sources)
            return trial.facts if may_hold_run else None
    return None

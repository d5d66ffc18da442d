"""SWE-agent's ``.traj`` files, of its 0.x and 1.x releases.

``trajectory`` has the thought, the action and the observation of each step. ``history`` repeats
these as chat messages, so only its first prompts and its names of tools are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.traces.index.document import Step, StepDetails, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import as_number, as_text, content_text, dump_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Role, SpanKind, TraceMeta
from mast_tui.traces.preview import preview
from mast_tui.traces.readers.base import FormatReader
from mast_tui.traces.readers.document_traces import RunOrigin, report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    items_of,
    json_in,
    located_items,
    mostly,
    one_line,
)
from mast_tui.traces.readers.run_facts import AnswerKeyDraft, Section, facts_of_record, task_of
from mast_tui.traces.times import unix_seconds

_COMPARED_TURNS: Final = 3
_DEFAULT_AGENT: Final = "agent"
_STEP_FIELDS: Final = frozenset({"action", "observation"})
_ALL_STEP_FIELDS: Final = _STEP_FIELDS | {"response", "thought", "state"}
_SHOWN_FIELDS: Final = (
    "thought",
    "action",
    "observation",
    "response",
    "execution_time",
    "extra_info",
)
"""The fields of a step that are shown if the step has no message or action of the agent."""

_PATCH_FIELDS: Final[Mapping[str, Section]] = {
    "submission": "patch",
    "model_patch": "patch",
    "test_results": "tests",
}

HistoryMessage = tuple[str, Fields]
"""A JSON pointer to a message of the history, and the message."""


def _recognises(source: Source) -> bool:
    """Return whether the file is one record with a trajectory of actions and observations."""
    head = as_utf8(source.head)
    if not head.lstrip().startswith(b"{") or b'"trajectory"' not in head:
        return False
    return len(source.json_lines) < 2 and _is_run(source.json)


def _read(source: Source) -> FileReport:
    """Return the one trace of the file."""
    record = fields_of(source.json)
    steps = StepList()
    problems: list[Problem] = []
    trajectory = items_of(record.get("trajectory"))
    prompts, turns = _split_history(record, trajectory)
    _pointer, first_message = turns[0] if turns else ("", {})
    # The history may lack the turn of a step.
    default_turn: HistoryMessage = ("", {"agent": _agent_of(first_message)})

    _add_prompts(steps, prompts)
    for pointer, step in located_items(trajectory, "/trajectory"):
        if isinstance(step, Mapping):
            turn = _take_turn(turns, step) or default_turn
            _add_step(steps, step, pointer, turn)
        else:
            steps.log(pointer, dump_text(step))
            problems.append(Problem(pointer, "not a step but a bare value"))

    add_ending(steps, fields_of(record.get("info")), compared_step_count=1)
    attempts = items_of(record.get("attempts"))
    if len(attempts) > 1:
        message = f"the run made {len(attempts)} attempts; only the one it chose is shown"
        problems.append(Problem("/attempts", message))
    meta = _facts_of_record(record, steps.steps)
    trace = trace_of_steps(RunOrigin(READER, source.path, source.data), steps, meta, problems)
    return report_of(READER, source, [trace])


READER: Final = FormatReader("swe-agent", _recognises, _read)
"""Reads ``.traj`` files; span keys are JSON pointers: ``/trajectory/3/action``."""


def add_ending(steps: StepList, info: Fields, compared_step_count: int) -> None:
    """Add the exit status and the patch of a run as logs, unless one of the last steps shows them.

    Args:
        steps: The steps of the run, to which the log spans are added.
        info: The facts about the end of the run.
        compared_step_count: The number of last steps to compare.
    """
    shown_texts = {step.text.strip() for step in steps.steps[-compared_step_count:]}
    for field in ("exit_status", "submission"):
        text = dump_text(info.get(field))
        if text.strip() and text.strip() not in shown_texts:
            steps.log(f"/info/{field}", text, name=field)


def _is_run(document: object) -> bool:
    """Return whether a document is a run, perhaps one that was stopped before its first step."""
    record = fields_of(document)
    steps = record.get("trajectory")
    has_info = isinstance(record.get("info"), Mapping)
    has_history = isinstance(record.get("history"), list)
    # A cut-off file lacks ``info`` and ``history``, so its steps need more fields as proof.
    required_fields = _STEP_FIELDS if has_info or has_history else _ALL_STEP_FIELDS
    if steps == []:
        return has_info and has_history
    return mostly(lambda step: required_fields <= fields_of(step).keys(), items_of(steps))


def _split_history(
    record: Fields, trajectory: Sequence[object]
) -> tuple[list[HistoryMessage], list[HistoryMessage]]:
    """Return the prompts in the history before the agent's first turn, and the agent's turns."""
    first_step = fields_of(trajectory[0]) if trajectory else {}
    # Without a history, the first step may have the prompts.
    messages_by_pointer = {
        "/history": record.get("history"),
        "/trajectory/0/query": first_step.get("query"),
        "/trajectory/0/messages": first_step.get("messages"),
    }
    pointer = next(
        (pointer for pointer, messages in messages_by_pointer.items() if items_of(messages)), ""
    )
    prompts: list[HistoryMessage] = []
    turns: list[HistoryMessage] = []
    for message_index, message in enumerate(items_of(messages_by_pointer.get(pointer))):
        if not isinstance(message, Mapping):
            continue
        message_pointer = f"{pointer}/{message_index}"
        if message.get("role") == "assistant" and not _is_demonstration(message):
            turns.append((message_pointer, message))
        elif not turns and as_text(content_text(message.get("content"))):
            prompts.append((message_pointer, message))
    return prompts, turns


def _is_demonstration(message: Fields) -> bool:
    return message.get("is_demo") is True or message.get("message_type") == "demonstration"


def _add_prompts(steps: StepList, prompts: Sequence[HistoryMessage]) -> None:
    """Add the prompts; the messages of a demonstration become one log at the first of them."""
    demonstration = [message for _pointer, message in prompts if _is_demonstration(message)]
    for pointer, message in prompts:
        text = content_text(message.get("content"))
        if not _is_demonstration(message):
            role = Role.SYSTEM if message.get("role") == "system" else Role.USER
            steps.add(pointer, SpanKind.MESSAGE, role, role.value, text)
        elif message is demonstration[0]:
            if len(demonstration) > 1:
                text = "\n\n".join(
                    f"[{dump_text(message.get('role'))}]\n{content_text(message.get('content'))}"
                    for message in demonstration
                )
            name = "demonstration"
            steps.add(pointer, SpanKind.LOG, Role.SYSTEM, "system", text, name=name)


def _take_turn(turns: list[HistoryMessage], step: Fields) -> HistoryMessage | None:
    """Return the agent's message with the action of a step, and remove all turns up to it.

    The history and the trajectory may each lack turns of the other.
    """
    for turn_index, turn in enumerate(turns[:_COMPARED_TURNS]):
        _pointer, message = turn
        if message.get("action") == step.get("action"):
            del turns[: turn_index + 1]
            return turn
    return None


def _agent_of(message: Fields) -> str:
    return one_line(message.get("agent")) or _DEFAULT_AGENT


def _add_step(steps: StepList, step: Fields, pointer: str, turn: HistoryMessage) -> None:
    """Add the reasoning, text, action and observation of a step, or a log of other fields.

    ``turn`` is the agent's message in the history that has the action of the step.
    """
    step_count_before = len(steps)
    message_pointer, message = turn
    agent = _agent_of(message)
    start = unix_seconds(step.get("timestamp"))

    if thinking := content_text(message.get("thinking_blocks")):
        details = StepDetails(place=f"{message_pointer}/thinking_blocks", start=start)
        key = f"{pointer}/thinking"
        steps.add(key, SpanKind.REASONING, Role.AGENT, agent, thinking, **details)
    field, text = _text_with_action(step)
    if text:
        key = f"{pointer}/{field}"
        steps.add(key, SpanKind.MESSAGE, Role.AGENT, agent, text, start=start)

    duration = as_number(step.get("execution_time"))
    end = None
    if start is not None and duration is not None and duration >= 0:
        end = start + duration
    action = dump_text(step.get("action"))
    call_key = None
    tool_name = None
    if action.strip():
        first_line, _is_entire = preview(action)
        tool_name = _called_tool(message) or first_line.split(" ", 1)[0] or None
        key = f"{pointer}/action"
        call_key = steps.call(key, agent, action, name=tool_name, start=start, end=end)

    observation = step.get("observation")
    # Even an empty result is shown under its call.
    if observation is not None and (call_key or observation != ""):
        key = f"{pointer}/observation"
        observer = agent if call_key else "environment"
        text = content_text(observation)
        steps.result(key, observer, text, name=tool_name, parent=call_key, start=end)

    if len(steps) == step_count_before:
        shown_fields = {field: value for field, value in step.items() if field in _SHOWN_FIELDS}
        steps.log(pointer, dump_text(shown_fields))


def _called_tool(message: Fields) -> str | None:
    """Return the tool of a message's only call."""
    calls = items_of(message.get("tool_calls"))
    return one_line(fields_at(calls[0], "function").get("name")) if len(calls) == 1 else None


def _text_with_action(step: Fields) -> tuple[str, str]:
    """Return the name and the text of the field ``thought`` or ``response`` of a step.

    The text is empty if it repeats the action.
    """
    action = dump_text(step.get("action")).strip()
    thought = content_text(step.get("thought"))
    response = content_text(step.get("response"))
    if thought.strip():
        return "thought", "" if thought.strip() == action else thought
    if response.strip() and not (action and action in response):
        return "response", response
    return "thought", ""


def _facts_of_record(record: Fields, steps: Sequence[Step]) -> TraceMeta:
    """Return the facts of a run, with the patches and tests in the answer key."""
    info = fields_of(record.get("info"))
    meta = facts_of_record(info, steps)
    config = fields_of(json_in(record.get("replay_config")))  # a JSON text
    problem = fields_of(config.get("problem_statement"))
    model = as_text(fields_at(config, "agent", "model").get("name"))
    draft = AnswerKeyDraft()
    for fields in (info, record):
        draft.add_fields(fields, _PATCH_FIELDS)
        for name in ("report", "test_report", "tests_status"):
            draft.add("tests", name, fields.get(name))
    return meta._replace(
        task=task_of(problem.get("text"), problem.get("problem_statement"), steps=steps),
        system="SWE-agent",
        model=model or meta.model,
        answer_key=draft.key(),
    )

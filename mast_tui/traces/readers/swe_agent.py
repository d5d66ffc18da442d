"""SWE-agent's ``.traj`` files, of its 0.x and 1.x releases.

``trajectory`` is the spine: what was thought, done and seen at each step. ``history`` repeats it as
chat messages; of that only the prompts at its beginning are shown, and the names of the tools come
from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.traces.index.document import More, Step, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import as_number, as_text, content_text, dump_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Role, SpanKind, TraceMeta
from mast_tui.traces.preview import preview
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft, Section
from mast_tui.traces.readers.document_traces import report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    items_of,
    json_in,
    mostly,
    one_line,
)
from mast_tui.traces.readers.run_facts import facts_of_record, task_of
from mast_tui.traces.times import unix_seconds

_TURNS_TO_MATCH: Final = 3
_DEFAULT_AGENT: Final = "agent"
_STEP_FIELDS: Final = frozenset({"action", "observation"})
_ALL_STEP_FIELDS: Final = _STEP_FIELDS | {"response", "thought", "state"}
_LOGGED_FIELDS: Final = (
    "thought",
    "action",
    "observation",
    "response",
    "execution_time",
    "extra_info",
)
"""The fields that are shown of a step without a message or an action of the agent."""

_PATCHES: Final[Mapping[str, Section]] = {
    "submission": "patch",
    "model_patch": "patch",
    "test_results": "tests",
}

HistoryMessage = tuple[str, Fields]
"""A JSON pointer to a message of the history, and the message."""


class SweAgentReader:
    """Reads ``.traj`` files; span keys are JSON pointers: ``/trajectory/3/action``."""

    name: Final = "swe-agent"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return true if the file is one record with a trajectory of actions and observations."""
        head = as_utf8(source.head)
        if not head.lstrip().startswith(b"{") or b'"trajectory"' not in head:
            return False
        return len(source.json_lines) < 2 and _is_run(source.json)

    def read(self, source: Source) -> FileReport:
        """Read the file's one trace."""
        record = fields_of(source.json)
        steps = StepList()
        problems: list[Problem] = []
        trajectory = items_of(record.get("trajectory"))
        prompts, turns = _split_history(record, trajectory)
        agent = _agent_of(turns[0][1]) if turns else _DEFAULT_AGENT
        _add_prompts(steps, prompts)
        for number, step in enumerate(trajectory):
            pointer = f"/trajectory/{number}"
            if isinstance(step, Mapping):
                turn = _take_turn(turns, step)
                _add_step(steps, step, pointer, turn or ("", {"agent": agent}))
            else:
                steps.log(pointer, dump_text(step))
                problems.append(Problem(pointer, "not a step but a bare value"))
        add_ending(steps, fields_of(record.get("info")), last_steps=1)
        attempts = items_of(record.get("attempts"))
        if len(attempts) > 1:
            message = f"the run made {len(attempts)} attempts; only the one it chose is shown"
            problems.append(Problem("/attempts", message))
        meta = _facts(record, steps.steps)
        trace = trace_of_steps(self, source.path, source.data, steps, meta=meta, problems=problems)
        return report_of(self, source, [trace])


READER: Final = SweAgentReader()


def add_ending(steps: StepList, info: Fields, last_steps: int) -> None:
    """Add how the run ended, and its patch unless one of the last steps shows just that.

    Args:
        steps: The steps of the run, to which these are added.
        info: The facts about the run's end in the file.
        last_steps: The number of last steps that may show it already.
    """
    texts = {step.text.strip() for step in steps.steps[-last_steps:]}
    for field in ("exit_status", "submission"):
        text = dump_text(info.get(field))
        if text.strip() and text.strip() not in texts:
            steps.log(f"/info/{field}", text, name=field)


def _is_run(document: object) -> bool:
    """Recognise a run, even one that was stopped before its first step.

    A file that is cut off among its steps is recognised by these alone.
    """
    record = fields_of(document)
    steps = record.get("trajectory")
    has_info = isinstance(record.get("info"), Mapping)
    has_history = isinstance(record.get("history"), list)
    fields = _STEP_FIELDS if has_info or has_history else _ALL_STEP_FIELDS
    if steps == []:
        return has_info and has_history
    return mostly(lambda step: fields <= fields_of(step).keys(), items_of(steps))


def _split_history(
    record: Fields, trajectory: Sequence[object]
) -> tuple[list[HistoryMessage], list[HistoryMessage]]:
    """Split the history into the prompts before the first step and the agent's turns.

    A file without a history has the prompts in the query of its first step, if at all.
    """
    first_step = fields_of(trajectory[0]) if trajectory else {}
    lists = {
        "/history": record.get("history"),
        "/trajectory/0/query": first_step.get("query"),
        "/trajectory/0/messages": first_step.get("messages"),
    }
    pointer = next((pointer for pointer, messages in lists.items() if items_of(messages)), "")
    prompts: list[HistoryMessage] = []
    turns: list[HistoryMessage] = []
    for number, message in enumerate(items_of(lists.get(pointer))):
        if not isinstance(message, Mapping):
            continue
        if message.get("role") == "assistant" and not _is_demonstration(message):
            turns.append((f"{pointer}/{number}", message))
        elif not turns and as_text(content_text(message.get("content"))):
            prompts.append((f"{pointer}/{number}", message))
    return prompts, turns


def _is_demonstration(message: Fields) -> bool:
    return message.get("is_demo") is True or message.get("message_type") == "demonstration"


def _add_prompts(steps: StepList, prompts: Sequence[HistoryMessage]) -> None:
    """Add the prompts; all messages of the demonstration become one log."""
    demonstration = [message for _pointer, message in prompts if _is_demonstration(message)]
    for pointer, message in prompts:
        text = content_text(message.get("content"))
        if not _is_demonstration(message):
            role = Role.SYSTEM if message.get("role") == "system" else Role.USER
            steps.add(pointer, SpanKind.MESSAGE, role, role.value, text)
        elif message is demonstration[0]:
            if len(demonstration) > 1:
                text = "\n\n".join(map(_with_role, demonstration))
            name = "demonstration"
            steps.add(pointer, SpanKind.LOG, Role.SYSTEM, "system", text, name=name)


def _with_role(message: Fields) -> str:
    return f"[{dump_text(message.get('role'))}]\n{content_text(message.get('content'))}"


def _take_turn(turns: list[HistoryMessage], step: Fields) -> HistoryMessage | None:
    """Remove the turn with the step's action from the next few turns, and return it.

    Either of trajectory and history may lack some of the other.
    """
    for number, turn in enumerate(turns[:_TURNS_TO_MATCH]):
        if turn[1].get("action") == step.get("action"):
            del turns[: number + 1]
            return turn
    return None


def _agent_of(message: Fields) -> str:
    return one_line(message.get("agent")) or _DEFAULT_AGENT


def _add_step(steps: StepList, step: Fields, pointer: str, turn: HistoryMessage) -> None:
    """Add the thinking, the text, the action and the observation of a step."""
    first = len(steps)
    message_pointer, message = turn
    agent = _agent_of(message)
    start = unix_seconds(step.get("timestamp"))
    if thinking := content_text(message.get("thinking_blocks")):
        more = More(place=f"{message_pointer}/thinking_blocks", start=start)
        key = f"{pointer}/thinking"
        steps.add(key, SpanKind.REASONING, Role.AGENT, agent, thinking, **more)
    field, text = _text_with_action(step)
    if text:
        key = f"{pointer}/{field}"
        steps.add(key, SpanKind.MESSAGE, Role.AGENT, agent, text, start=start)
    duration = as_number(step.get("execution_time"))
    end = None
    if start is not None and duration is not None and duration >= 0:
        end = start + duration
    action = dump_text(step.get("action"))
    call = None
    name = None
    if action.strip():
        name = _tool_of(message) or preview(action)[0].split(" ", 1)[0] or None
        key = f"{pointer}/action"
        call = steps.call(key, agent, action, name=name, start=start, end=end)
    observation = step.get("observation")
    if observation is not None and (call or observation != ""):
        key = f"{pointer}/observation"
        observer = agent if call else "environment"
        text = content_text(observation)
        steps.result(key, observer, text, name=name, parent=call, start=end)
    if len(steps) == first:
        logged = {field: value for field, value in step.items() if field in _LOGGED_FIELDS}
        steps.log(pointer, dump_text(logged))


def _tool_of(message: Fields) -> str | None:
    """Return the name of the only tool that a message calls."""
    calls = items_of(message.get("tool_calls"))
    return one_line(fields_at(calls[0], "function").get("name")) if len(calls) == 1 else None


def _text_with_action(step: Fields) -> tuple[str, str]:
    """Return the field with the text that the agent wrote beside its action, and the text.

    The response holds the thought and the action once more.
    """
    action = dump_text(step.get("action")).strip()
    thought = content_text(step.get("thought"))
    response = content_text(step.get("response"))
    if thought.strip():
        return "thought", "" if thought.strip() == action else thought
    if response.strip() and not (action and action in response):
        return "response", response
    return "thought", ""


def _facts(record: Fields, steps: Sequence[Step]) -> TraceMeta:
    info = fields_of(record.get("info"))
    meta = facts_of_record(info, steps)
    config = fields_of(json_in(record.get("replay_config")))  # JSON within a JSON text
    problem = fields_of(config.get("problem_statement"))
    model = as_text(fields_at(config, "agent", "model").get("name"))
    draft = AnswerKeyDraft()
    for holder in (info, record):
        draft.add_fields(holder, _PATCHES)
        for name in ("report", "test_report", "tests_status"):
            draft.add("tests", name, holder.get(name))
    return meta._replace(
        task=task_of(problem.get("text"), problem.get("problem_statement"), steps=steps),
        system="SWE-agent",
        model=model or meta.model,
        answer_key=draft.key(),
    )

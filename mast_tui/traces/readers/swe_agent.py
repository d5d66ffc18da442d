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
from mast_tui.traces.model import AnswerKey, FileReport, Problem, Role, SpanKind, TraceMeta
from mast_tui.traces.preview import preview
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft
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

_LOOKED_AHEAD: Final = 3
_UNNAMED: Final = "agent"
_STEP: Final = frozenset({"action", "observation"})
_WHOLE_STEP: Final = _STEP | {"response", "thought", "state"}


class SweAgentReader:
    """Reads ``.traj`` files; span keys are JSON pointers: ``/trajectory/3/action``."""

    name: Final = "swe-agent"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Whether the file is one record with a trajectory of actions and observations."""
        head = as_utf8(source.head)
        if not head.lstrip().startswith(b"{") or b'"trajectory"' not in head:
            return False
        return len(source.json_lines) < 2 and _is_run(source.json)

    def read(self, source: Source) -> FileReport:
        """The file's one trace."""
        run = _Run(fields_of(source.json))
        trace = trace_of_steps(
            self, source.path, source.data, run.steps, meta=run.meta, problems=run.problems
        )
        return report_of(self, source, [trace])


READER: Final = SweAgentReader()


def add_ending(steps: StepList, info: Fields, beside: int) -> None:
    """Add how the run ended, and its patch unless one of the last steps shows just that.

    Args:
        steps: Those of the run, to which these are added.
        info: What the file tells of the run's end.
        beside: How many of the last steps may show it already.
    """
    shown = {step.text.strip() for step in steps.steps[-beside:]}
    for field in ("exit_status", "submission"):
        text = dump_text(info.get(field))
        if text.strip() and text.strip() not in shown:
            steps.log(f"/info/{field}", text, name=field)


def _is_run(document: object) -> bool:
    """Whether a document is a run, even one that was stopped before its first step.

    Of a file that is cut off among its steps, these alone must tell.
    """
    record = fields_of(document)
    steps = record.get("trajectory")
    ended = isinstance(record.get("info"), Mapping)
    told = isinstance(record.get("history"), list)
    fields = _STEP if ended or told else _WHOLE_STEP
    if steps == []:
        return ended and told
    return mostly(lambda step: fields <= fields_of(step).keys(), items_of(steps))


_Told = tuple[str, Fields]
"""A message of the history and the JSON pointer to it."""


class _Run:
    """The spans of one run, and what the file tells about it."""

    def __init__(self, record: Fields) -> None:
        self.steps = StepList()
        self.problems: list[Problem] = []
        trajectory = items_of(record.get("trajectory"))
        prompts, turns = _parted(record, trajectory)
        self._agent = _agent(turns[0][1]) if turns else _UNNAMED
        self._prompts(prompts)
        for number, step in enumerate(trajectory):
            pointer = f"/trajectory/{number}"
            if isinstance(step, Mapping):
                self._step(step, pointer, _taken(turns, step))
            else:
                self._log(pointer, step)
                self.problems.append(Problem(pointer, "not a step but a bare value"))
        add_ending(self.steps, fields_of(record.get("info")), beside=1)
        attempts = items_of(record.get("attempts"))
        if len(attempts) > 1:
            message = f"the run made {len(attempts)} attempts; only the one it chose is shown"
            self.problems.append(Problem("/attempts", message))
        self.meta = _facts(record, self.steps.steps)

    def _prompts(self, prompts: Sequence[_Told]) -> None:
        demonstrations = [message for _pointer, message in prompts if _is_demonstration(message)]
        for pointer, message in prompts:
            if not _is_demonstration(message):
                role = Role.SYSTEM if message.get("role") == "system" else Role.USER
                text = content_text(message.get("content"))
                self.steps.add(pointer, SpanKind.MESSAGE, role, role.value, text)
            elif message is demonstrations[0]:
                kind, text = SpanKind.LOG, _as_one(demonstrations)
                self.steps.add(pointer, kind, Role.SYSTEM, "system", text, name="demonstration")

    def _step(self, step: Fields, pointer: str, turn: _Told | None) -> None:
        before = len(self.steps)
        place, message = turn or ("", {})
        agent = _agent(message) if turn else self._agent
        start = unix_seconds(step.get("timestamp"))
        if thinking := content_text(message.get("thinking_blocks")):
            kind, key = SpanKind.REASONING, f"{pointer}/thinking"
            more = More(place=f"{place}/thinking_blocks", start=start)
            self.steps.add(key, kind, Role.AGENT, agent, thinking, **more)
        field, said = _said(step)
        if said:
            key = f"{pointer}/{field}"
            self.steps.add(key, SpanKind.MESSAGE, Role.AGENT, agent, said, start=start)
        end, call, name = _later(start, step), None, None
        if (action := dump_text(step.get("action"))).strip():
            name = _tool(message) or preview(action)[0].split(" ", 1)[0] or None
            key = f"{pointer}/action"
            call = self.steps.call(key, agent, action, name=name, start=start, end=end)
        observation = step.get("observation")
        if observation is not None and (call or observation != ""):
            key, by = f"{pointer}/observation", agent if call else "environment"
            text = content_text(observation)
            self.steps.result(key, by, text, name=name, parent=call, start=end)
        if len(self.steps) == before:
            self._log(pointer, {name: value for name, value in step.items() if name in _TOLD})

    def _log(self, pointer: str, value: object) -> None:
        self.steps.log(pointer, dump_text(value))


_TOLD: Final = ("thought", "action", "observation", "response", "execution_time", "extra_info")


def _agent(message: Fields) -> str:
    return one_line(message.get("agent")) or _UNNAMED


def _taken(turns: list[_Told], step: Fields) -> _Told | None:
    """Take from the turns that are left the one with the step's action, among the next few.

    Either of trajectory and history may lack some of the other.
    """
    for number, turn in enumerate(turns[:_LOOKED_AHEAD]):
        if turn[1].get("action") == step.get("action"):
            del turns[: number + 1]
            return turn
    return None


def _parted(record: Fields, trajectory: Sequence[object]) -> tuple[list[_Told], list[_Told]]:
    """The prompts that stand before the first step, and the agent's turns.

    A file without a history has the prompts in the query of its first step, if at all.
    """
    pointer, messages = "/history", record.get("history")
    if not isinstance(messages, list) or not messages:
        first = fields_of(trajectory[0]) if trajectory else {}
        for field in ("query", "messages"):
            pointer, messages = f"/trajectory/0/{field}", first.get(field)
            if isinstance(messages, list) and messages:
                break
    prompts: list[_Told] = []
    turns: list[_Told] = []
    for number, message in enumerate(items_of(messages)):
        if not isinstance(message, Mapping):
            continue
        place = f"{pointer}/{number}"
        if message.get("role") == "assistant" and not _is_demonstration(message):
            turns.append((place, message))
        elif not turns and as_text(content_text(message.get("content"))):
            prompts.append((place, message))
    return prompts, turns


def _is_demonstration(message: Fields) -> bool:
    return message.get("is_demo") is True or message.get("message_type") == "demonstration"


def _as_one(messages: Sequence[Fields]) -> str:
    """A demonstration as one text; one of several messages says who speaks each."""
    if len(messages) == 1:
        return content_text(messages[0].get("content"))
    return "\n\n".join(
        f"[{dump_text(message.get('role'))}]\n{content_text(message.get('content'))}"
        for message in messages
    )


def _tool(message: Fields) -> str | None:
    """The name of the only tool that a message calls."""
    calls = items_of(message.get("tool_calls"))
    return one_line(fields_at(calls[0], "function").get("name")) if len(calls) == 1 else None


def _said(step: Fields) -> tuple[str, str]:
    """Under which field stands what the agent said beside its action, and that text.

    The response holds the thought and the action once more.
    """
    action = dump_text(step.get("action")).strip()
    thought, response = content_text(step.get("thought")), content_text(step.get("response"))
    if thought.strip():
        return "thought", "" if thought.strip() == action else thought
    if response.strip() and not (action and action in response):
        return "response", response
    return "thought", ""


def _later(start: float | None, step: Fields) -> float | None:
    """When the step's action was over; None where its beginning or its time is not known."""
    took = as_number(step.get("execution_time"))
    return None if start is None or took is None or took < 0 else start + took


def _facts(record: Fields, steps: Sequence[Step]) -> TraceMeta:
    info = fields_of(record.get("info"))
    meta = facts_of_record(info, steps)
    config = fields_of(json_in(record.get("replay_config")))  # JSON within a JSON text
    problem = fields_of(config.get("problem_statement"))
    model = as_text(fields_at(config, "agent", "model").get("name"))
    return meta._replace(
        task=task_of(problem.get("text"), problem.get("problem_statement"), steps=steps),
        system="SWE-agent",
        model=model or meta.model,
        answer_key=_answer_key(record, info),
    )


def _answer_key(record: Fields, info: Fields) -> AnswerKey:
    """The patch that was handed in, and what the tests of the benchmark said of it."""
    draft = AnswerKeyDraft()
    for holder in (info, record):
        draft.fields(
            holder, {"submission": "patch", "model_patch": "patch", "test_results": "tests"}
        )
        for name in ("report", "test_report", "tests_status"):
            draft.add("tests", name, holder.get(name))
    return draft.key()

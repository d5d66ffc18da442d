"""ATIF, the Agent Trajectory Interchange Format, as Harbor, VS Code and others write it.

Versions 1.0 to 1.8 are read, and files that only resemble them. A file holds one trajectory, a list
or bundle of them, or one a line; a trajectory that another of the file refers to is its sub-agent.
"""

from __future__ import annotations

from collections import ChainMap, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from mast_tui.traces.index.document import Step, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import (
    as_text,
    content_text,
    dump_text,
    identifier,
    tokens_of,
)
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    AnswerKey,
    FileReport,
    Problem,
    Role,
    SpanKind,
    SpanStatus,
    Trace,
    TraceMeta,
)
from mast_tui.traces.preview import preview
from mast_tui.traces.readers.answer_keys import answer_key_of
from mast_tui.traces.readers.document_traces import (
    Record,
    records_by_line,
    records_listed,
    report_of,
    trace_of_steps,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    mostly,
    names,
    one_line,
    text_in,
)
from mast_tui.traces.readers.run_facts import facts_of_record, task_of
from mast_tui.traces.result_status import status_of_code
from mast_tui.traces.times import unix_seconds

_AGENT_SOURCES: Final = frozenset({"agent", "assistant", "model"})
_TOOL_SOURCES: Final = frozenset({"tool", "environment", "observation"})
_ROLES: Final[Mapping[str, Role]] = {"system": Role.SYSTEM, "user": Role.USER}
_SOURCES: Final = _AGENT_SOURCES | _TOOL_SOURCES | _ROLES.keys()

_CALL_IDS: Final = ("tool_call_id", "source_call_id", "call_id")
_MARKS: Final = (b"ATIF", b'"steps"', b'"schema_version"', b'"schemaVersion"')
_CONTINUED_PART: Final = "-cont-"
"""A part of the session ids that Terminus gives to the later files of a session."""

_MAX_DEPTH: Final = 16
"""The number of levels of sub-agents that are followed."""

_STEPS_WITH_MODEL: Final = 20
"""The number of steps in which the name of the model is looked for."""

_STANDARD_NAMES: Final[Mapping[str, str]] = {
    name: "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
    for name in names("""
        callId completionTokens continuedTrajectoryRef exitCode functionName inputTokens
        isCopiedContext isError llmCallCount modelName outputTokens promptTokens
        reasoningContent schemaVersion sessionId sourceCallId stepId subagentTrajectories
        subagentTrajectoryRef toolCallId toolCalls trajectoryId trajectoryPath
    """)
}
"""The standard's name of each field that some writers spell in camel case."""

_CAMEL_CASE: Final = frozenset(_STANDARD_NAMES)


def standard_fields(value: object) -> Fields:
    """Return a JSON object with the names of the standard; any other value has no fields."""
    fields = fields_of(value)
    if _CAMEL_CASE.isdisjoint(fields):
        return fields
    renamed = dict(fields)
    for camel_case, name in _STANDARD_NAMES.items():
        if camel_case in fields and fields.get(name) is None:
            renamed[name] = fields[camel_case]
    return renamed


def is_trajectory(value: object) -> bool:
    """Recognise a trajectory by its version, or by its agent and its steps."""
    trajectory = standard_fields(value)
    steps = trajectory.get("steps")
    if not isinstance(steps, list):
        return False
    has_agent = isinstance(trajectory.get("agent"), dict | str)
    return _declares_atif(trajectory) or (has_agent and mostly(_is_step, steps))


def _is_step(value: object) -> bool:
    step = standard_fields(value)
    return step.get("step_id") is not None and _source_of(step) in _SOURCES


def _declares_atif(trajectory: Fields) -> bool:
    return "ATIF" in (as_text(trajectory.get("schema_version")) or "").upper()


def _source_of(step: Fields) -> str:
    """Return the source of a step; empty where the step names none."""
    source = step.get("source")
    if isinstance(source, str) and source in _SOURCES:
        return source
    return preview(text_in(step, "source", "role") or "")[0].lower()


def _ids_of(trajectory: Fields) -> list[str]:
    """Return the ids of a trajectory: its own before that of its session."""
    ids = (identifier(trajectory.get(name)) for name in ("trajectory_id", "session_id"))
    return [trajectory_id for trajectory_id in ids if trajectory_id]


def _call_id_of(record: Fields) -> str | None:
    """Return the id of a tool call, or the id of the call that a result or step names."""
    has_own_id = "content" in record or "source" in record
    for name in _CALL_IDS if has_own_id else (*_CALL_IDS, "id"):
        if (call_id := identifier(record.get(name))) is not None:
            return call_id
    return None


def _extra(record: Fields, name: str) -> str | None:
    """Return a name from ``extra``, the fields that the standard does not define."""
    return one_line(fields_of(record.get("extra")).get(name))


def _status_of(result: Fields) -> SpanStatus:
    """Return the status of a result if its record states one."""
    for record in (result, standard_fields(result.get("extra"))):
        is_error = record.get("is_error")
        if isinstance(is_error, bool):
            return SpanStatus.ERROR if is_error else SpanStatus.OK
        status = status_of_code(record.get("exit_code"))
        if status is not SpanStatus.UNKNOWN:
            return status
    return SpanStatus.UNKNOWN


@dataclass(frozen=True, slots=True)
class SubAgentReference:
    """The ids by which a result refers to a sub-agent's trajectory, and the path of its file."""

    ids: list[str]
    path: str | None = None


def _references_of(result: Fields) -> Iterator[SubAgentReference]:
    references = result.get("subagent_trajectory_ref")
    for reference in references if isinstance(references, list) else [references]:
        if isinstance(reference, dict):
            fields = standard_fields(reference)
            yield SubAgentReference(_ids_of(fields), as_text(fields.get("trajectory_path")))
        elif reference is not None:
            reference_id = identifier(reference)
            yield SubAgentReference([reference_id] if reference_id else [])


class AtifResult:
    """A tool result as read, before its call is known."""

    def __init__(self, fields: Fields, text: str, pointer: str, start: float | None) -> None:
        self.text = text
        self.pointer = pointer
        self.start = start
        self.call_id = _call_id_of(fields)
        self.references = list(_references_of(fields))
        self.status = _status_of(fields)
        self.agent = _extra(fields, "agent")
        self.name = _extra(fields, "name")


class AtifCall:
    """A tool call as read; ``is_object`` is false for a bare value."""

    def __init__(self, value: object, pointer: str) -> None:
        fields = standard_fields(value)
        function = standard_fields(fields.get("function")) or fields
        arguments = first_in(function, "arguments", "args", "input")
        self.pointer = pointer
        self.is_object = isinstance(value, dict)
        self.call_id = _call_id_of(fields)
        self.name = one_line(function.get("function_name")) or one_line(function.get("name"))
        self.text = dump_text(arguments if self.is_object else value)


class AtifStep:
    """A step of a trajectory as read; ``is_object`` is false for a bare value."""

    def __init__(self, value: object, number: int) -> None:
        self.fields = standard_fields(value)
        self.value = value
        self.number = number
        self.pointer = f"/steps/{number}"
        self.is_object = isinstance(value, dict)
        self.is_copied = self.fields.get("is_copied_context") is True
        self.source = _source_of(self.fields)
        self.start = unix_seconds(self.fields.get("timestamp"))
        self.text = content_text(first_in(self.fields, "message", "content"))
        self.call_id = _call_id_of(self.fields)
        self.agent = _extra(self.fields, "agent")
        calls = self.fields.get("tool_calls")
        self.calls = [
            AtifCall(call, f"{self.pointer}/tool_calls/{number}")
            for number, call in enumerate([calls] if isinstance(calls, dict) else items_of(calls))
        ]
        self.results = list(self._results())

    def _results(self) -> Iterator[AtifResult]:
        observation = self.fields.get("observation")
        results = fields_of(observation).get("results")
        pointer = f"{self.pointer}/observation"
        if isinstance(results, list):
            yield from self._listed_results(results, f"{pointer}/results")
        elif isinstance(observation, list):
            yield from self._listed_results(observation, pointer)
        elif observation not in (None, "", {}):
            yield self._result(observation, pointer)

    def _listed_results(self, values: Sequence[object], pointer: str) -> Iterator[AtifResult]:
        for number, value in enumerate(values):
            yield self._result(value, f"{pointer}/{number}")

    def _result(self, value: object, pointer: str) -> AtifResult:
        fields = standard_fields(value if isinstance(value, dict) else {"content": value})
        text = content_text(first_in(fields, "content", "output"))
        return AtifResult(fields, text, pointer, self.start)

    @property
    def is_result(self) -> bool:
        """True for a step that is itself the result of a call."""
        answers_call = self.source == "system" and self.call_id is not None
        return answers_call or self.source in _TOOL_SOURCES

    def as_result(self) -> AtifResult:
        """Return the step as the result of a call."""
        return AtifResult(self.fields, self.text, self.pointer, self.start)

    @property
    def is_log(self) -> bool:
        """True for a line of a log, which ``mast-tui convert`` writes as a step of the system."""
        return self.source == "system" and fields_of(self.fields.get("extra")).get("kind") == "log"

    @property
    def thought(self) -> str:
        """The reasoning of the step; empty if there is none."""
        thought = first_in(self.fields, "reasoning_content", "reasoning")
        text = content_text(thought) if isinstance(thought, str | list) else ""
        return text if text.strip() else ""


class AtifTrajectory:
    """A trajectory as read, and its record in the file."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.place = record.prefix
        self.fields = standard_fields(record.value)
        self.ids = _ids_of(self.fields)
        agent = self.fields.get("agent")
        self.agent = one_line(agent.get("name") if isinstance(agent, dict) else agent)

    @cached_property
    def steps(self) -> list[AtifStep]:
        """The steps; bare values among them too."""
        values = items_of(self.fields.get("steps"))
        return [AtifStep(value, number) for number, value in enumerate(values)]

    @cached_property
    def children(self) -> list[AtifTrajectory]:
        """The trajectories that are embedded in this one."""
        records = records_listed(
            items_of(self.fields.get("subagent_trajectories")),
            f"{self.place}/subagent_trajectories",
        )
        return [AtifTrajectory(record) for record in records if isinstance(record.value, dict)]

    @property
    def referenced_ids(self) -> set[str]:
        """The ids of the sub-agents that it refers to, without its own ids."""
        results = (result for step in self.steps for result in step.results)
        references = (reference for result in results for reference in result.references)
        return {name for reference in references for name in reference.ids}.difference(self.ids)

    @property
    def native_id(self) -> str | None:
        """The trajectory's own id, or that of its session if no other file has the session.

        A file that begins with copied steps continues a session that another file began, unless
        the session's id says which part it is.
        """
        has_own_id = self.fields.get("trajectory_id") is not None
        continues = not has_own_id and any(step.is_copied for step in self.steps)
        if not self.ids or (continues and _CONTINUED_PART not in self.ids[0]):
            return None
        return self.ids[0]

    @property
    def model(self) -> str | None:
        """The model of the agent, or of the first step that names one."""
        agent = standard_fields(self.fields.get("agent"))
        records = (agent, *(step.fields for step in self.steps[:_STEPS_WITH_MODEL]))
        models = (text_in(record, "model_name", "model") for record in records)
        return next(filter(None, models), None)

    def facts(self, steps: Sequence[Step]) -> TraceMeta:
        """Return the facts about the run in the trajectory, its ``extra`` and its spans."""
        extra = self.fields.get("extra")
        has_extra = isinstance(extra, dict)
        meta = facts_of_record(fields_of(extra) if has_extra else self.fields, steps)
        answer_key = answer_key_of(self.fields) if has_extra else AnswerKey()
        version = as_text(fields_of(self.fields.get("agent")).get("version"))
        return meta._replace(
            task=task_of(steps=steps),
            system=self.agent,
            model=self.model,
            version=None if version == "unknown" else version,  # written where there is none
            answer_key=answer_key.with_all_of(meta.answer_key),
        )


def _by_id(
    trajectories: Sequence[AtifTrajectory], without: Sequence[str] = ()
) -> dict[str, AtifTrajectory]:
    """Map each id to the first trajectory that has it, without some ids.

    A sub-agent may have the id of the session that it shares with its caller.
    """
    trajectory_of: dict[str, AtifTrajectory] = {}
    for trajectory in trajectories:
        for name in trajectory.ids:
            if name not in without:
                trajectory_of.setdefault(name, trajectory)
    return trajectory_of


def _results_before_calls(steps: Sequence[AtifStep]) -> dict[int, list[AtifStep]]:
    """Find the steps that are results of the step after them, by the number of that step.

    As many steps of the system as the next step has calls are their results if they name no call,
    come directly before it and after some other step, and no other result answers those calls.
    """
    answered = {step.call_id for step in steps}
    answered.update(result.call_id for step in steps for result in step.results)
    answered.discard(None)
    before: dict[int, list[AtifStep]] = {}
    waiting: list[AtifStep] = []
    for step in steps:
        if _may_be_result(step):
            waiting.append(step)
            continue
        first = step.number - len(waiting)
        is_open = step.source in _AGENT_SOURCES and not step.results
        is_open = is_open and answered.isdisjoint(call.call_id for call in step.calls)
        if is_open and first > 0 and waiting and len(waiting) == len(step.calls):
            before[step.number] = waiting
        waiting = []
    return before


def _may_be_result(step: AtifStep) -> bool:
    is_plain = step.source == "system" and not step.calls and not step.results
    return is_plain and step.call_id is None and not step.is_copied


@dataclass(slots=True)
class _TraceDraft:
    """A trace while it is read.

    ``shown`` holds the places of the trajectories that were read, so that each is shown once.
    """

    shown: set[str]
    steps: StepList = field(default_factory=StepList)
    problems: list[Problem] = field(default_factory=list)


class _TrajectorySpans:
    """Adds the spans of a trajectory, and of its sub-agents, to a trace.

    ``scope`` has the trajectories that this one can refer to; ``thread`` is the id of a sub-agent.
    """

    def __init__(
        self,
        trajectory: AtifTrajectory,
        scope: ChainMap[str, AtifTrajectory],
        draft: _TraceDraft,
        thread: str | None = None,
        depth: int = 0,
    ) -> None:
        self._trajectory = trajectory
        self._scope = scope.new_child(_by_id(trajectory.children, trajectory.ids))
        self._draft = draft
        self._steps = draft.steps
        self._thread = thread
        self._depth = depth
        self._agent = trajectory.agent or thread or "agent"
        self._calls: dict[str, Step] = {}
        # Ordered: a plain dict looks for its first key past all that were taken out before it.
        self._open: OrderedDict[str, Step] = OrderedDict()
        self._postponed: dict[str, list[AtifResult]] = {}
        self._last_caller = {
            call.call_id: step.number
            for step in trajectory.steps
            if not step.is_copied and not step.is_result
            for call in step.calls
        }
        is_standard = _declares_atif(trajectory.fields)
        self._before_calls = {} if is_standard else _results_before_calls(trajectory.steps)

    def read(self) -> None:
        """Add every step, then the sub-agents that no step refers to, and the notes."""
        self._draft.shown.add(self._trajectory.place)
        moved = {step.number for steps in self._before_calls.values() for step in steps}
        copied = 0
        for step in self._trajectory.steps:
            if not step.is_object:
                self._log(step.pointer, step.value)
                self._note(step.pointer, "not a step but a bare value")
            elif step.is_copied:
                copied += 1
            elif step.is_result:
                self._add_after_call(step.as_result(), step.number)
            elif step.number not in moved:
                self._add_step(step)
        for child in self._trajectory.children:
            if child.place not in self._draft.shown:
                message = "no result refers to this sub-agent; shown last"
                self._draft.problems.append(Problem(child.place, message))
                self._add_sub_agent(child)
        if notes := as_text(self._trajectory.fields.get("notes")):
            self._log("/notes", notes, "notes")
        if copied:
            steps = "step is" if copied == 1 else "steps are"
            self._note("/steps", f"{copied} {steps} copied from an earlier context; not shown")
        if continued := self._trajectory.fields.get("continued_trajectory_ref"):
            line = preview(dump_text(continued))[0]
            self._note("/continued_trajectory_ref", f"the run goes on in {line}")

    def _add_step(self, step: AtifStep) -> None:
        keys = []
        if step.thought:
            pointer = f"{step.pointer}/reasoning_content"
            keys.append(self._add_message(step, SpanKind.REASONING, step.thought, pointer))
        if step.text.strip():
            keys.append(self._add_message(step, SpanKind.MESSAGE, step.text, step.pointer))
        calls = [self._add_call(call, step) for call in step.calls]
        metrics = standard_fields(step.fields.get("metrics"))
        has_metrics = step.fields.get("metrics") is not None
        if not keys and not calls and (has_metrics or not step.results):
            keys.append(self._add_message(step, SpanKind.MESSAGE, step.text, step.pointer))
        if (keys or calls) and step.fields.get("llm_call_count") != 0:
            self._steps.steps[-1].tokens = tokens_of(
                metrics.get("prompt_tokens"), metrics.get("completion_tokens")
            ) or tokens_of(metrics.get("input_tokens"), metrics.get("output_tokens"))
        for call in step.calls:
            for result in self._postponed.pop(call.call_id, ()) if call.call_id else ():
                self._add_result(result, self._calls[call.call_id])
        for made, earlier in zip(calls, self._before_calls.get(step.number, ()), strict=False):
            self._add_result(earlier.as_result(), made)
        self._add_results(step, [made for made in calls if made], keys[0] if keys else None)

    def _add_message(self, step: AtifStep, kind: SpanKind, text: str, pointer: str) -> str:
        agent = self._agent if step.source in _AGENT_SOURCES else step.source or self._agent
        return self._steps.add(
            self._key(pointer),
            SpanKind.LOG if step.is_log else kind,
            Role.LOG if step.is_log else _ROLES.get(step.source, Role.AGENT),
            step.agent or agent,
            text,
            place=self._trajectory.place + pointer,
            name=_extra(step.fields, "name") if step.is_log else None,
            start=step.start,
        )

    def _add_call(self, call: AtifCall, step: AtifStep) -> Step | None:
        if not call.is_object:
            self._log(call.pointer, call.text)
            self._note(call.pointer, "not a tool call but a bare value")
            return None
        key = self._steps.call(
            self._call_key(call.call_id, "call") or self._key(call.pointer),
            step.agent or self._agent,
            call.text,
            place=self._trajectory.place + call.pointer,
            name=call.name,
            start=step.start,
        )
        made = self._open[key] = self._steps.steps[-1]
        if call.call_id:
            self._calls[call.call_id] = made
        return made

    def _add_results(self, step: AtifStep, calls: Sequence[Step], parent: str | None) -> None:
        """Add a step's results; those that name no call answer its calls in turn, if they can."""
        by_id = [self._calls.get(result.call_id) for result in step.results if result.call_id]
        answered = {call.key for call in by_id if call}
        waiting = [call for call in calls if call.key not in answered]
        nameless = [result for result in step.results if not result.call_id]
        in_turn = iter(waiting if len(waiting) == len(nameless) else ())
        for result in step.results:
            if result.call_id:
                self._add_after_call(result, step.number)
                continue
            call = next(in_turn, None) or (waiting[0] if len(waiting) == 1 else None)
            if call is None and step.source not in _AGENT_SOURCES:
                call = self._only_open_call()
            self._add_result(result, call, parent, step.source)
        if nameless:  # a result of the step as a whole answers all of its calls
            for call in waiting:
                self._open.pop(call.key, None)

    def _add_after_call(self, result: AtifResult, number: int) -> None:
        """Add a result, or postpone it to the later step that makes its call."""
        if result.call_id is None:
            self._add_result(result, self._only_open_call())
            return
        call = self._calls.get(result.call_id)
        if call is None and self._last_caller.get(result.call_id, -1) > number:
            self._postponed.setdefault(result.call_id, []).append(result)
        else:
            self._add_result(result, call)

    def _only_open_call(self) -> Step | None:
        """Return the call that waits for its result if there is exactly one."""
        return next(iter(self._open.values())) if len(self._open) == 1 else None

    def _add_result(
        self, result: AtifResult, call: Step | None, parent: str | None = None, source: str = ""
    ) -> None:
        """Add a result after the sub-agents that it refers to."""
        for reference in result.references:
            self._add_referenced(reference, result.pointer)
        if result.references and not result.text and not result.call_id and call is None:
            return
        is_log = call is None and source in _ROLES
        agent = result.agent or (call.agent if call else self._agent)
        self._steps.add(
            self._call_key(result.call_id, "result") or self._key(result.pointer),
            SpanKind.LOG if is_log else SpanKind.TOOL_RESULT,
            Role.LOG if is_log else Role.TOOL,
            source if is_log else agent,
            result.text,
            place=self._trajectory.place + result.pointer,
            name=result.name or (call.name if call else None),
            parent=call.key if call else parent,
            start=result.start,
            status=result.status,
        )
        if call:
            self._open.pop(call.key, None)
            if None not in (call.start, result.start) and result.start > call.start:
                call.end = result.start

    def _add_referenced(self, reference: SubAgentReference, pointer: str) -> None:
        """Show the sub-agent that a result refers to, unless it has been shown."""
        for name in reference.ids:
            trajectory = None if name in self._trajectory.ids else self._scope.get(name)
            if trajectory is not None:
                if trajectory.place not in self._draft.shown:
                    self._add_sub_agent(trajectory)
                return
        line = preview(reference.path or "".join(reference.ids[:1]) or "?")[0]
        self._note(pointer, f"the sub-agent's trajectory is not in this file: {line}")

    def _add_sub_agent(self, trajectory: AtifTrajectory) -> None:
        if self._depth >= _MAX_DEPTH:
            message = "sub-agents nested too deeply; left out"
            self._draft.problems.append(Problem(trajectory.place, message))
            return
        name = trajectory.ids[0] if trajectory.ids else f"sub-agent {trajectory.place}"
        thread = preview(name)[0]
        _TrajectorySpans(trajectory, self._scope, self._draft, thread, self._depth + 1).read()

    def _log(self, pointer: str, value: object, name: str | None = None) -> None:
        place = self._trajectory.place + pointer
        self._steps.log(self._key(pointer), dump_text(value), place=place, name=name)

    def _note(self, pointer: str, message: str) -> None:
        self._draft.problems.append(Problem(self._trajectory.place + pointer, message))

    def _key(self, pointer: str) -> str:
        return (self._thread or "") + pointer

    def _call_key(self, call_id: str | None, part: str) -> str | None:
        if not call_id:
            return None
        return f"{self._thread}/{call_id}:{part}" if self._thread else f"{call_id}:{part}"


class AtifReader:
    """Reads ATIF; keys are JSON pointers within the trajectory, calls and results go by their id.

    The keys of a sub-agent's spans begin with its trajectory's id, or that of its session.
    """

    name: Final = "atif"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return true if at least half of the first records are trajectories."""
        head = as_utf8(source.head)
        if head.lstrip()[:1] not in (b"{", b"[") or not any(mark in head for mark in _MARKS):
            return False
        lines = source.json_lines
        if len(lines) > 1 or source.json is None:
            return mostly(is_trajectory, lines)
        return mostly(is_trajectory, (record.value for record in _contained(source.json)))

    def read(self, source: Source) -> FileReport:
        """Read one trace per trajectory that no other refers to."""
        problems: list[Problem] = []
        trajectories = _trajectories(source, problems)
        scope = ChainMap(_by_id(trajectories))
        referenced = {name for each in trajectories for name in each.referenced_ids}
        shown: set[str] = set()
        traces: list[Trace] = []
        # Those that only refer to each other come last.
        for trajectory in sorted(
            trajectories, key=lambda each: not referenced.isdisjoint(each.ids)
        ):
            if trajectory.place not in shown:
                traces.append(self._trace(source, trajectory, scope, shown))
        traces.sort(key=lambda trace: trace.record or 0)
        return report_of(self, source, traces, problems)

    def _trace(
        self,
        source: Source,
        trajectory: AtifTrajectory,
        scope: ChainMap[str, AtifTrajectory],
        shown: set[str],
    ) -> Trace:
        draft = _TraceDraft(shown)
        _TrajectorySpans(trajectory, scope, draft).read()
        return trace_of_steps(
            self,
            source.path,
            trajectory.record.content(source),
            draft.steps,
            meta=trajectory.facts(draft.steps.steps),
            record=trajectory.record.number,
            native=trajectory.native_id,
            problems=draft.problems,
        )


READER: Final = AtifReader()


def _contained(document: object) -> Iterator[Record]:
    """Yield the trajectories of a document: itself, or those in a list."""
    bundle = fields_of(document).get("trajectories")
    if isinstance(document, list):
        yield from records_listed(document)
    elif isinstance(bundle, list) and not is_trajectory(document):
        yield from records_listed(bundle, "/trajectories")
    else:
        yield Record(document)


def _trajectories(source: Source, problems: list[Problem]) -> list[AtifTrajectory]:
    """Return the trajectories of a file; other values become problems."""
    document = source.json if len(source.json_lines) < 2 else None
    records = records_by_line(source, problems) if document is None else _contained(document)
    trajectories = []
    for record in records:
        if is_trajectory(record.value):
            trajectories.append(AtifTrajectory(record))
        else:
            place = record.prefix.strip() or "whole file"
            problems.append(Problem(place, "no trajectory, left out"))
    return trajectories

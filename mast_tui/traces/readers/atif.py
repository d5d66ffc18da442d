"""ATIF, the Agent Trajectory Interchange Format, as Harbor, VS Code and others write it.

Versions 1.0 to 1.8 are read, and files that only resemble them. A file holds one trajectory, a list
or bundle of them, or one a line; a trajectory that another of the file refers to is its sub-agent.
"""

from __future__ import annotations

from collections import ChainMap, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
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
    Tokens,
    Trace,
    TraceMeta,
)
from mast_tui.traces.preview import preview
from mast_tui.traces.readers.answer_keys import answer_key_of
from mast_tui.traces.readers.chat.pieces import Piece, json_log_piece
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
    identifier_in,
    items_of,
    mostly,
    names,
    one_line,
    text_in,
)
from mast_tui.traces.readers.run_facts import facts_of_record, task_of
from mast_tui.traces.result_status import status_of_code, status_of_error_flag
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
    return identifier_in(record, *(_CALL_IDS if has_own_id else (*_CALL_IDS, "id")))


def _extra(record: Fields, name: str) -> str | None:
    """Return a name from ``extra``, the fields that the standard does not define."""
    extra = record.get("extra")
    return one_line(extra.get(name)) if isinstance(extra, dict) else None


def _status_of(result: Fields) -> SpanStatus:
    """Return the status of a result if its record states one."""
    for record in (result, standard_fields(result.get("extra"))):
        for status in (
            status_of_error_flag(record.get("is_error")),
            status_of_code(record.get("exit_code")),
        ):
            if status is not SpanStatus.UNKNOWN:
                return status
    return SpanStatus.UNKNOWN


def _references_of(result: Fields) -> tuple[Fields, ...]:
    """Return the references of a result to sub-agents, each with its ids and its path."""
    references = result.get("subagent_trajectory_ref")
    return tuple(
        standard_fields(reference) or {"trajectory_id": reference}
        for reference in (references if isinstance(references, list) else [references])
        if reference is not None
    )


@dataclass(frozen=True, slots=True)
class AtifResult(Piece):
    """A tool result as read; its agent is empty if it names none."""

    references: tuple[Fields, ...] = ()


class AtifStep:
    """A step of a trajectory as read, taken apart into pieces.

    ``at`` of a piece is its JSON pointer in the trajectory. Its agent is empty if it is that of
    the trajectory. ``early_results`` come before the step in the file, each with the number of the
    call that it answers. A step that is itself a result has neither messages nor calls.
    """

    def __init__(self, value: object, number: int) -> None:
        self.fields = standard_fields(value)
        self.number = number
        self.pointer = f"/steps/{number}"
        self.start = unix_seconds(self.fields.get("timestamp"))
        self.source = _source_of(self.fields)
        self.agent = _extra(self.fields, "agent") or ""
        self.is_copied = self.fields.get("is_copied_context") is True
        self.text = content_text(first_in(self.fields, "message", "content"))
        self.messages: list[Piece] = []
        self.calls: list[Piece] = []
        self.early_results: list[tuple[int, AtifResult]] = []
        answers_call = self.source == "system" and _call_id_of(self.fields) is not None
        if not isinstance(value, dict):
            self.messages = [_bare_value(value, self.pointer, "a step")]
        if answers_call or self.source in _TOOL_SOURCES:
            self.results = [self.as_result()]
        else:
            calls = self.fields.get("tool_calls")
            listed = [calls] if isinstance(calls, dict) else items_of(calls)
            self.calls = [self._call(call, index) for index, call in enumerate(listed)]
            self.results = list(self._results())
            self.messages = self.messages or list(self._messages())
        self.references = [each for result in self.results for each in result.references]

    def as_result(self) -> AtifResult:
        """Return the step as the result of a call."""
        return self._result(self.fields, self.text, self.pointer)

    def _messages(self) -> Iterator[Piece]:
        thought = first_in(self.fields, "reasoning_content", "reasoning")
        reasoning = content_text(thought) if isinstance(thought, str | list) else ""
        if reasoning.strip():
            yield self._message(SpanKind.REASONING, reasoning, "/reasoning_content")
        has_others = reasoning.strip() or self.calls
        has_result = self.results and self.fields.get("metrics") is None
        if self.text.strip() or not (has_others or has_result):
            yield self._message(SpanKind.MESSAGE, self.text)

    def _message(self, kind: SpanKind, text: str, suffix: str = "") -> Piece:
        role = _ROLES.get(self.source, Role.AGENT)
        agent = self.agent or ("" if self.source in _AGENT_SOURCES else self.source)
        piece = Piece(kind, role, agent, text, self.pointer + suffix, start=self.start)
        is_log = fields_of(self.fields.get("extra")).get("kind") == "log"
        if is_log and role is Role.SYSTEM:  # so ``mast-tui convert`` writes the lines of a log
            name = _extra(self.fields, "name")
            return replace(piece, kind=SpanKind.LOG, role=Role.LOG, name=name)
        return piece

    def _call(self, value: object, number: int) -> Piece:
        pointer = f"{self.pointer}/tool_calls/{number}"
        if not isinstance(value, dict):
            return _bare_value(value, pointer, "a tool call")
        call = standard_fields(value)
        function = call.get("function")
        named = standard_fields(function) if isinstance(function, dict) else call
        return Piece(
            SpanKind.TOOL_CALL,
            Role.AGENT,
            self.agent,
            dump_text(first_in(named, "arguments", "args", "input")),
            pointer,
            name=one_line(named.get("function_name")) or one_line(named.get("name")),
            call_id=_call_id_of(call),
            start=self.start,
        )

    def _results(self) -> Iterator[AtifResult]:
        observation = self.fields.get("observation")
        pointer = f"{self.pointer}/observation"
        results = fields_of(observation).get("results")
        if isinstance(results, list):
            observation = results
            pointer += "/results"
        if isinstance(observation, list):
            values = [(f"{pointer}/{number}", value) for number, value in enumerate(observation)]
        else:
            values = [] if observation in (None, "", {}) else [(pointer, observation)]
        for value_pointer, value in values:
            result = standard_fields(value) if isinstance(value, dict) else {"content": value}
            yield self._result(
                result, content_text(first_in(result, "content", "output")), value_pointer
            )

    def _result(self, fields: Fields, text: str, pointer: str) -> AtifResult:
        return AtifResult(
            SpanKind.TOOL_RESULT,
            Role.TOOL,
            _extra(fields, "agent") or "",
            text,
            pointer,
            name=_extra(fields, "name"),
            call_id=_call_id_of(fields),
            status=_status_of(fields),
            start=self.start,
            references=_references_of(fields),
        )

    @property
    def tokens(self) -> Tokens | None:
        """The tokens of the step's model calls; None if it called no model."""
        if self.fields.get("llm_call_count") == 0:
            return None
        metrics = standard_fields(self.fields.get("metrics"))
        return tokens_of(
            metrics.get("prompt_tokens"), metrics.get("completion_tokens")
        ) or tokens_of(metrics.get("input_tokens"), metrics.get("output_tokens"))


def _bare_value(value: object, pointer: str, expected: str) -> Piece:
    return replace(json_log_piece(value, pointer), problem=f"not {expected} but a bare value")


def _pair_by_position(steps: Sequence[AtifStep]) -> None:
    """Move steps that are results to the step after them that makes the calls.

    As many steps of the system as the next step has calls are their results if they name no call,
    come directly before it and after some other step, and no other result answers those calls.
    """
    answered = {result.call_id for step in steps for result in step.results if result.call_id}
    waiting: list[AtifStep] = []
    for step in steps:
        if step.source == "system" and not (step.calls or step.results or step.is_copied):
            waiting.append(step)
            continue
        is_open = step.source in _AGENT_SOURCES and not step.results and not step.is_copied
        is_open = is_open and answered.isdisjoint(call.call_id for call in step.calls)
        if is_open and len(waiting) == len(step.calls) and step.number > len(waiting):
            step.early_results = [(n, result.as_result()) for n, result in enumerate(waiting)]
            for result in waiting:
                result.messages = []
        waiting = []


def _move_early_results(steps: Sequence[AtifStep]) -> None:
    """Move each result that names a call of a later step to that step."""
    callers: dict[str | None, tuple[AtifStep, int]] = {}
    for step in reversed(steps):
        if not step.is_copied:
            callers |= {call.call_id: (step, n) for n, call in enumerate(step.calls)}
    callers.pop(None, None)
    for step in steps:
        for result in [] if step.is_copied else step.results.copy():
            caller, number = callers.get(result.call_id, (step, 0))
            if caller.number > step.number:
                step.results.remove(result)
                caller.early_results.append((number, result))


class AtifTrajectory:
    """A trajectory as read, and its record in the file."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.position = record.prefix
        self.fields = standard_fields(record.value)
        self.ids = _ids_of(self.fields)
        agent = self.fields.get("agent")
        self.agent = one_line(agent.get("name") if isinstance(agent, dict) else agent)

    @cached_property
    def steps(self) -> list[AtifStep]:
        """The steps, with the results that come before their calls moved to those."""
        values = items_of(self.fields.get("steps"))
        steps = [AtifStep(value, number) for number, value in enumerate(values)]
        if not _declares_atif(self.fields):
            _pair_by_position(steps)
        _move_early_results(steps)
        return steps

    @cached_property
    def children(self) -> list[AtifTrajectory]:
        """The trajectories that are embedded in this one."""
        records = records_listed(
            items_of(self.fields.get("subagent_trajectories")),
            f"{self.position}/subagent_trajectories",
        )
        return [AtifTrajectory(record) for record in records if isinstance(record.value, dict)]

    @property
    def referenced_ids(self) -> set[str]:
        """The ids of the sub-agents that it refers to, without its own ids."""
        references = (reference for step in self.steps for reference in step.references)
        return {name for each in references for name in _ids_of(each)}.difference(self.ids)

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


class _TrajectorySpans:
    """Adds the spans of a trajectory, and of its sub-agents, to a trace.

    ``scope`` has the trajectories that this one can refer to. ``visited`` has the positions of
    those that were read, so that each is shown once; the traces of a file share it.
    """

    def __init__(
        self,
        trajectory: AtifTrajectory,
        scope: ChainMap[str, AtifTrajectory],
        visited: set[str],
        caller: _TrajectorySpans | None = None,
    ) -> None:
        visited.add(trajectory.position)
        self._trajectory = trajectory
        self._scope = scope.new_child(_by_id(trajectory.children, trajectory.ids))
        self._visited = visited
        self.steps: StepList = caller.steps if caller else StepList()
        self.problems: list[Problem] = caller.problems if caller else []
        self._depth: int = caller._depth + 1 if caller else 0
        name = trajectory.ids[0] if trajectory.ids else f"sub-agent {trajectory.position}"
        self._thread = preview(name)[0] if caller else ""
        self._agent = trajectory.agent or self._thread or "agent"
        self._calls: dict[str, Step] = {}
        # Ordered: a plain dict looks for its first key past all that were taken out before it.
        self._open: OrderedDict[str, Step] = OrderedDict()
        self._add_steps()

    def _add_steps(self) -> None:
        """Add every step, then the sub-agents that no step refers to, and the notes."""
        for step in self._trajectory.steps:
            if not step.is_copied:
                self._add_step(step)
        for child in self._trajectory.children:
            if child.position not in self._visited:
                self._note(child.position, "no result refers to this sub-agent; shown last")
                self._add_sub_agent(child)
        if notes := as_text(self._trajectory.fields.get("notes")):
            self._add(json_log_piece(notes, "/notes", name="notes"))
        if copied := sum(step.is_copied for step in self._trajectory.steps):
            steps = "step is" if copied == 1 else "steps are"
            message = f"{copied} {steps} copied from an earlier context; not shown"
            self._note(f"{self._trajectory.position}/steps", message)
        if continued := self._trajectory.fields.get("continued_trajectory_ref"):
            position = f"{self._trajectory.position}/continued_trajectory_ref"
            self._note(position, f"the run goes on in {preview(dump_text(continued))[0]}")

    def _add_step(self, step: AtifStep) -> None:
        messages = [self._add(piece) for piece in step.messages]
        calls = [self._add_call(piece) for piece in step.calls]
        if messages or calls:
            self.steps.steps[-1].tokens = step.tokens
        for number, result in sorted(step.early_results, key=itemgetter(0)):
            self._add_result(result, calls[number])
        self._add_results(step, calls, messages[0].key if messages else None)

    def _add_call(self, piece: Piece) -> Step | None:
        call = self._add(piece)
        if piece.kind is not SpanKind.TOOL_CALL:
            return None
        self._open[call.key] = call
        if piece.call_id:
            self._calls[piece.call_id] = call
        return call

    def _add_results(
        self, step: AtifStep, calls: Sequence[Step | None], parent: str | None
    ) -> None:
        """Add a step's results; those that name no call answer its calls in turn, if they can."""
        answered = [self._calls.get(result.call_id) for result in step.results if result.call_id]
        answered_keys = {call.key for call in answered if call}
        waiting = [call for call in calls if call and call.key not in answered_keys]
        nameless = sum(not result.call_id for result in step.results)
        in_turn = iter(waiting if len(waiting) == nameless else ())
        for result in step.results:
            if result.call_id:
                self._add_result(result, self._calls.get(result.call_id))
                continue
            call = next(in_turn, None) or (waiting[0] if len(waiting) == 1 else None)
            if call is None and step.source not in _AGENT_SOURCES:
                call = next(iter(self._open.values())) if len(self._open) == 1 else None
            self._add_result(result, call, parent, step.source)
        if nameless:  # a result of the step as a whole answers all of its calls
            for call in waiting:
                self._open.pop(call.key, None)

    def _add_result(
        self,
        result: AtifResult,
        call: Step | None,
        parent: str | None = None,
        source: str = "",
    ) -> None:
        """Add a result after the sub-agents that it refers to."""
        for reference in result.references:
            self._add_referenced(reference, result.key_suffix)
        if call is None and result.references and not result.text and not result.call_id:
            return
        if call is None and source in _ROLES:
            log = replace(result, kind=SpanKind.LOG, role=Role.LOG, agent=source)
            self._add(log, parent=parent)
            return
        self._add(result, call, parent)
        if call is not None:
            self._open.pop(call.key, None)
            ended = call.start if result.start is None else result.start
            if ended is not None and call.start is not None and ended > call.start:
                call.end = ended

    def _add(self, piece: Piece, call: Step | None = None, parent: str | None = None) -> Step:
        """Add the span of a piece; a result takes from its call what it does not name itself."""
        position = self._trajectory.position + piece.key_suffix
        if piece.problem:
            self._note(position, piece.problem)
        key = self._thread + piece.key_suffix
        if piece.call_id:
            part = "call" if piece.kind is SpanKind.TOOL_CALL else "result"
            key = f"{self._thread}/{piece.call_id}:{part}".removeprefix("" if self._thread else "/")
        self.steps.add(
            key,
            piece.kind,
            piece.role,
            piece.agent or (call.agent if call else self._agent),
            piece.text,
            place=position,
            name=piece.name or (call.name if call else None),
            parent=call.key if call else parent,
            start=piece.start,
            status=piece.status,
        )
        return self.steps.steps[-1]

    def _add_referenced(self, reference: Fields, pointer: str) -> None:
        """Show the sub-agent that a result refers to, unless it has been shown."""
        ids = _ids_of(reference)
        for name in ids:
            trajectory = None if name in self._trajectory.ids else self._scope.get(name)
            if trajectory is not None:
                if trajectory.position not in self._visited:
                    self._add_sub_agent(trajectory)
                return
        line = preview(as_text(reference.get("trajectory_path")) or "".join(ids[:1]) or "?")[0]
        message = f"the sub-agent's trajectory is not in this file: {line}"
        self._note(self._trajectory.position + pointer, message)

    def _add_sub_agent(self, trajectory: AtifTrajectory) -> None:
        if self._depth >= _MAX_DEPTH:
            self._note(trajectory.position, "sub-agents nested too deeply; left out")
        else:
            _TrajectorySpans(trajectory, self._scope, self._visited, self)

    def _note(self, position: str, message: str) -> None:
        self.problems.append(Problem(position, message))


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
        visited: set[str] = set()
        traces: list[Trace] = []
        # Those that only refer to each other come last.
        for trajectory in sorted(trajectories, key=lambda t: not referenced.isdisjoint(t.ids)):
            if trajectory.position not in visited:
                spans = _TrajectorySpans(trajectory, scope, visited)
                trace = trace_of_steps(
                    self,
                    source.path,
                    trajectory.record.content(source),
                    spans.steps,
                    meta=trajectory.facts(spans.steps.steps),
                    record=trajectory.record.number,
                    native=trajectory.native_id,
                    problems=spans.problems,
                )
                traces.append(trace)
        traces.sort(key=lambda trace: trace.record or 0)
        return report_of(self, source, traces, problems)


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
            position = record.prefix.strip() or "whole file"
            problems.append(Problem(position, "no trajectory, left out"))
    return trajectories

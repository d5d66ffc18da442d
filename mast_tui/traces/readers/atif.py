"""ATIF, the Agent Trajectory Interchange Format, as Harbor, VS Code and others write it.

Versions 1.0 to 1.8 are read, and similar files. A file holds one trajectory, a list or bundle of
trajectories, or one trajectory a line. A trajectory that another one in the file refers to is its
sub-agent.
"""

from __future__ import annotations

from collections import ChainMap, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Final

from mast_tui.traces.atif_format import WRITTEN_BY
from mast_tui.traces.index.document import Step, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import as_text, content_text, dump_text, identifier, tokens_of
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
from mast_tui.traces.readers.base import FormatReader
from mast_tui.traces.readers.chat.pieces import Piece, call_piece, json_log_piece
from mast_tui.traces.readers.document_traces import (
    Record,
    RunOrigin,
    records_by_line,
    records_of_list,
    report_of,
    trace_of_steps,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    identifier_in,
    items_of,
    located_items,
    mostly,
    one_line,
    snake_fields,
    text_in,
)
from mast_tui.traces.readers.run_facts import answer_key_of, facts_of_record, task_of
from mast_tui.traces.result_status import first_known_status, status_of_code, status_of_error_flag
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
"""The maximum number of levels of sub-agents."""

_STEPS_WITH_MODEL: Final = 20
"""The number of first steps that may name the model."""


def is_trajectory(value: object) -> bool:
    """Return whether a value is a trajectory of ATIF, by its version or by its agent and steps."""
    trajectory = snake_fields(value)
    steps = trajectory.get("steps")
    if not isinstance(steps, list):
        return False
    has_agent = isinstance(trajectory.get("agent"), dict | str)
    return _declares_atif(trajectory) or (has_agent and mostly(_is_step, steps))


def _is_step(value: object) -> bool:
    step = snake_fields(value)
    return step.get("step_id") is not None and _source_of(step) in _SOURCES


def _declares_atif(trajectory: Fields) -> bool:
    return "ATIF" in (as_text(trajectory.get("schema_version")) or "").upper()


def _source_of(step: Fields) -> str:
    """Return the source of a step; empty if the step names none."""
    # Some writers have other names and spellings.
    source_line, _is_entire = preview(text_in(step, "source", "role") or "")
    return source_line.lower()


def _ids_of(trajectory: Fields) -> list[str]:
    """Return the ids of a trajectory: its own id, then its session's id."""
    ids = (identifier(trajectory.get(name)) for name in ("trajectory_id", "session_id"))
    return [trajectory_id for trajectory_id in ids if trajectory_id]


def _call_id_of(record: Fields) -> str | None:
    """Return the call id of a call, a result or a step."""
    # A result has ``content``, a step ``source``; their ``id`` is not that of a call.
    is_call = "content" not in record and "source" not in record
    id_fields = (*_CALL_IDS, "id") if is_call else _CALL_IDS
    return identifier_in(record, *id_fields)


def _extra_name(record: Fields, name: str) -> str | None:
    """Return a name from ``extra``, the fields that the standard does not define."""
    extra = record.get("extra")
    return one_line(extra.get(name)) if isinstance(extra, dict) else None


def _status_of(result: Fields) -> SpanStatus:
    """Return the status in a result or in its ``extra``."""
    statuses = (
        status
        for record in (result, snake_fields(result.get("extra")))
        for status in (
            status_of_error_flag(record.get("is_error")),
            status_of_code(record.get("exit_code")),
        )
    )
    return first_known_status(*statuses)


def _references_of(result: Fields) -> tuple[Fields, ...]:
    """Return the references of a result to the trajectories of sub-agents, as objects."""
    value = result.get("subagent_trajectory_ref")
    references = value if isinstance(value, list) else [value]
    return tuple(
        snake_fields(reference) or {"trajectory_id": reference}  # a bare id
        for reference in references
        if reference is not None
    )


@dataclass(frozen=True, slots=True)
class AtifResult(Piece):
    """A tool result; its agent is empty if it names none.

    Attributes:
        references: The references to the sub-agents that made the result.
    """

    references: tuple[Fields, ...] = ()


class AtifStep:
    """A step of a trajectory as pieces.

    The ``key_suffix`` of a piece is its JSON pointer in the trajectory. Its agent is empty if it is
    that of the trajectory. A step that is itself a result has neither messages nor calls.

    Attributes:
        is_copied: Whether the step is repeated from an earlier context.
        text: The text of the step's message.
        messages: The reasoning and the text of the step.
        calls: The tool calls of the step.
        results: The results in the step itself.
        early_results: Results before the step in the file, with the indices of their calls.
        references: The references of the results to sub-agents.
    """

    def __init__(self, value: object, index: int) -> None:
        self.fields = snake_fields(value)
        self.index = index
        self.pointer = f"/steps/{index}"
        self.start = unix_seconds(self.fields.get("timestamp"))
        self.source = _source_of(self.fields)
        self.agent = _extra_name(self.fields, "agent") or ""
        self.is_copied = self.fields.get("is_copied_context") is True
        self.text = content_text(first_in(self.fields, "message", "content"))
        self.messages: list[Piece] = []
        self.calls: list[Piece] = []
        self.early_results: list[tuple[int, AtifResult]] = []

        if not isinstance(value, dict):
            log = json_log_piece(value, self.pointer)
            self.messages = [replace(log, problem="not a step but a bare value")]
        names_answered_call = self.source == "system" and _call_id_of(self.fields) is not None
        is_result = names_answered_call or self.source in _TOOL_SOURCES
        if is_result:
            self.results = [self.as_result()]
        else:
            tool_calls = self.fields.get("tool_calls")
            calls = [tool_calls] if isinstance(tool_calls, dict) else items_of(tool_calls)
            located_calls = located_items(calls, f"{self.pointer}/tool_calls")
            self.calls = [self._call_piece(call, pointer) for pointer, call in located_calls]
            self.results = list(self._result_pieces())
            if not self.messages:  # else the step is a bare value
                self.messages = list(self._message_pieces())
        self.references = [reference for result in self.results for reference in result.references]

    def as_result(self) -> AtifResult:
        """Return the step as the result of a call."""
        return self._result_piece(self.fields, self.text, self.pointer)

    def _message_pieces(self) -> Iterator[Piece]:
        """Yield the reasoning and the text of a step.

        A step with nothing but results has neither, unless it has the metrics of a model call. Any
        other step without a piece gets a blank text.
        """
        content = first_in(self.fields, "reasoning_content", "reasoning")
        reasoning = content_text(content) if isinstance(content, str | list) else ""
        if reasoning.strip():
            yield self._message_piece(SpanKind.REASONING, reasoning, "/reasoning_content")
        has_other_pieces = reasoning.strip() or self.calls
        is_only_result = self.results and self.fields.get("metrics") is None
        if self.text.strip() or not (has_other_pieces or is_only_result):
            yield self._message_piece(SpanKind.MESSAGE, self.text)

    def _message_piece(self, kind: SpanKind, text: str, suffix: str = "") -> Piece:
        """Return the piece of a text; ``suffix`` is the text's JSON pointer in the step."""
        role = _ROLES.get(self.source, Role.AGENT)
        default_agent = "" if self.source in _AGENT_SOURCES else self.source
        agent = self.agent or default_agent
        piece = Piece(kind, role, agent, text, self.pointer + suffix, start=self.start)
        # ``mast-tui convert`` writes a log as a step of the system.
        is_log = fields_of(self.fields.get("extra")).get("kind") == "log"
        if is_log and role is Role.SYSTEM:
            name = _extra_name(self.fields, "name")
            return replace(piece, kind=SpanKind.LOG, role=Role.LOG, name=name)
        return piece

    def _call_piece(self, value: object, pointer: str) -> Piece:
        """Return the piece of a tool call, or a log for a value that is no object."""
        call = snake_fields(value)
        name = one_line(call.get("function_name"))
        piece = call_piece(call or value, pointer, self.agent, name=name)
        return replace(piece, call_id=_call_id_of(call), start=self.start)

    def _result_pieces(self) -> Iterator[AtifResult]:
        """Yield the results of a step."""
        observation = self.fields.get("observation")
        pointer = f"{self.pointer}/observation"
        results = fields_of(observation).get("results")
        # Some writers have a single result without a list.
        if isinstance(results, list):
            observation = results
            pointer += "/results"
        is_single = not isinstance(observation, list) and observation not in (None, "", {})
        single_value = [(pointer, observation)] if is_single else []
        for value_pointer, value in single_value or located_items(observation, pointer):
            result = snake_fields(value) if isinstance(value, dict) else {"content": value}
            text = content_text(first_in(result, "content", "output"))
            yield self._result_piece(result, text, value_pointer)

    def _result_piece(self, fields: Fields, text: str, pointer: str) -> AtifResult:
        """Return the piece of a result; ``pointer`` is its JSON pointer in the trajectory."""
        return AtifResult(
            SpanKind.TOOL_RESULT,
            Role.TOOL,
            _extra_name(fields, "agent") or "",
            text,
            pointer,
            name=_extra_name(fields, "name"),
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
        metrics = snake_fields(self.fields.get("metrics"))
        return tokens_of(
            metrics.get("prompt_tokens"), metrics.get("completion_tokens")
        ) or tokens_of(metrics.get("input_tokens"), metrics.get("output_tokens"))


def _pair_results_by_position(steps: Sequence[AtifStep]) -> None:
    """Make system steps before an agent's step the results of its calls.

    This is done if all of these hold:

    - The system steps are directly before the agent's step, and not at the beginning.
    - There are as many system steps as the agent's step has calls.
    - The system steps have neither calls nor results, and name no call.
    - No other result answers a call of the agent's step.
    """
    results = (result for step in steps for result in step.results)
    answered_ids = {result.call_id for result in results if result.call_id}
    system_steps: list[AtifStep] = []
    for step in steps:
        if step.source == "system" and not (step.calls or step.results or step.is_copied):
            system_steps.append(step)
            continue
        lacks_results = step.source in _AGENT_SOURCES and not step.results and not step.is_copied
        if lacks_results and answered_ids.isdisjoint(call.call_id for call in step.calls):
            count = len(system_steps)
            are_at_beginning = step.index <= count
            if count == len(step.calls) and not are_at_beginning:
                step.early_results = [
                    (call_index, system_step.as_result())
                    for call_index, system_step in enumerate(system_steps)
                ]
                for system_step in system_steps:
                    system_step.messages = []
        system_steps = []


def _move_early_results(steps: Sequence[AtifStep]) -> None:
    """Move each result that names a call of a later step to that step, except in copied steps."""
    own_steps = [step for step in steps if not step.is_copied]
    calling_step_by_id: dict[str | None, tuple[AtifStep, int]] = {}
    for step in reversed(own_steps):
        for call_index, call in enumerate(step.calls):
            # The loop is reversed, so the first of several calls with one id is kept.
            calling_step_by_id[call.call_id] = step, call_index
    calling_step_by_id.pop(None, None)  # calls without an id

    for step in own_steps:
        for result in step.results.copy():
            calling_step, call_index = calling_step_by_id.get(result.call_id, (step, 0))
            if calling_step.index > step.index:
                step.results.remove(result)
                calling_step.early_results.append((call_index, result))


class AtifTrajectory:
    """A trajectory and its record in the file; ``position`` is its JSON pointer there."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.position = record.prefix
        self.fields = snake_fields(record.value)
        self.ids = _ids_of(self.fields)
        agent = self.fields.get("agent")
        self.agent = one_line(agent.get("name") if isinstance(agent, dict) else agent)

    @cached_property
    def steps(self) -> list[AtifStep]:
        """The steps; a result before its call in the file is with the step of the call."""
        values = items_of(self.fields.get("steps"))
        steps = [AtifStep(value, index) for index, value in enumerate(values)]
        if not _declares_atif(self.fields):  # results in ATIF name their calls
            _pair_results_by_position(steps)
        _move_early_results(steps)
        return steps

    @cached_property
    def children(self) -> list[AtifTrajectory]:
        """The trajectories that are embedded in this one."""
        records = records_of_list(
            items_of(self.fields.get("subagent_trajectories")),
            f"{self.position}/subagent_trajectories",
        )
        return [AtifTrajectory(record) for record in records if isinstance(record.value, dict)]

    @property
    def referenced_ids(self) -> set[str]:
        """The ids of the sub-agents to which the trajectory refers."""
        references = (reference for step in self.steps for reference in step.references)
        reference_ids = (_ids_of(reference) for reference in references)
        return set().union(*reference_ids).difference(self.ids)

    @property
    def native_id(self) -> str | None:
        """The trajectory's own id, else the id of its session; None if the id is not unique.

        A file with copied steps continues the session of another file. Both have the session's id,
        unless the id names the part of the session.
        """
        if not self.ids:
            return None
        first_id = self.ids[0]
        has_own_id = self.fields.get("trajectory_id") is not None
        is_continuation = not has_own_id and any(step.is_copied for step in self.steps)
        names_part = _CONTINUED_PART in first_id
        return None if is_continuation and not names_part else first_id

    @property
    def model(self) -> str | None:
        """The model in the agent's fields or in one of the first steps."""
        agent = snake_fields(self.fields.get("agent"))
        records = (agent, *(step.fields for step in self.steps[:_STEPS_WITH_MODEL]))
        models = (text_in(record, "model_name", "model") for record in records)
        return next(filter(None, models), None)

    def facts(self, steps: Sequence[Step]) -> TraceMeta:
        """Return the facts of the run that are in the trajectory, its ``extra`` and its spans."""
        extra = self.fields.get("extra")
        has_extra = isinstance(extra, dict)
        meta = facts_of_record(fields_of(extra) if has_extra else self.fields, steps)
        # Without ``extra``, ``meta`` has the answer key of these fields already.
        answer_key = answer_key_of(self.fields) if has_extra else AnswerKey()
        version = as_text(fields_of(self.fields.get("agent")).get("version"))
        is_copy = fields_of(extra).get("written_by") == WRITTEN_BY
        return meta._replace(
            task=meta.task if is_copy else task_of(steps=steps),
            system=self.agent,
            model=self.model,
            version=None if version == "unknown" else version,  # some writers have no version
            answer_key=answer_key.with_all_of(meta.answer_key),
        )


def _first_by_id(
    trajectories: Sequence[AtifTrajectory], excluded_ids: Sequence[str] = ()
) -> dict[str, AtifTrajectory]:
    """Return for each id the first trajectory with it, without the excluded ids."""
    trajectory_by_id: dict[str, AtifTrajectory] = {}
    for trajectory in trajectories:
        for trajectory_id in trajectory.ids:
            if trajectory_id not in excluded_ids:
                trajectory_by_id.setdefault(trajectory_id, trajectory)
    return trajectory_by_id


class _TrajectorySpans:
    """The spans of a trajectory and of its sub-agents.

    ``trajectory_by_id`` has the trajectories to which this trajectory can refer.
    ``shown_positions`` has the positions of the trajectories in the traces of the file, so that
    each is shown once. ``caller`` has the spans of the trajectory that refers to this one, and gets
    the spans of this one too.
    """

    def __init__(
        self,
        trajectory: AtifTrajectory,
        trajectory_by_id: ChainMap[str, AtifTrajectory],
        shown_positions: set[str],
        caller: _TrajectorySpans | None = None,
    ) -> None:
        shown_positions.add(trajectory.position)
        self._trajectory = trajectory
        self._trajectory_by_id = trajectory_by_id.new_child(
            _first_by_id(trajectory.children, trajectory.ids)
        )
        self._shown_positions = shown_positions
        # A sub-agent adds its spans and problems to those of its caller.
        self.steps: StepList = caller.steps if caller else StepList()
        self.problems: list[Problem] = caller.problems if caller else []
        self._depth: int = caller._depth + 1 if caller else 0
        self._key_prefix = ""
        if caller:
            name = trajectory.ids[0] if trajectory.ids else f"sub-agent {trajectory.position}"
            # The preview is short and on one line, like a key.
            self._key_prefix, _is_entire = preview(name)
        self._agent = trajectory.agent or self._key_prefix or "agent"
        self._call_by_id: dict[str, Step] = {}
        # A plain dict finds its first key slowly once many keys before it were removed.
        self._unanswered_calls: OrderedDict[str, Step] = OrderedDict()
        self._add_steps()

    def _add_steps(self) -> None:
        """Add the steps, then the sub-agents to which no result refers, and the notes.

        Copied steps and a reference to a file with the next steps become problems.
        """
        position = self._trajectory.position
        for step in self._trajectory.steps:
            if not step.is_copied:
                self._add_step(step)
        for child in self._trajectory.children:
            if child.position not in self._shown_positions:
                message = "no result refers to this sub-agent; shown last"
                self._report_problem(child.position, message)
                self._add_sub_agent(child)
        if notes := as_text(self._trajectory.fields.get("notes")):
            self._add_span(json_log_piece(notes, "/notes", name="notes"))
        if copied_count := sum(step.is_copied for step in self._trajectory.steps):
            steps_are = "step is" if copied_count == 1 else "steps are"
            message = f"{copied_count} {steps_are} copied from an earlier context; not shown"
            self._report_problem(f"{position}/steps", message)
        if continuation := self._trajectory.fields.get("continued_trajectory_ref"):
            continuation_line, _is_entire = preview(dump_text(continuation))
            message = f"the run continues in {continuation_line}"
            self._report_problem(f"{position}/continued_trajectory_ref", message)

    def _add_step(self, step: AtifStep) -> None:
        """Add the spans of a step; its last message or call has its tokens."""
        messages = [self._add_span(piece) for piece in step.messages]
        calls = [self._add_call(piece) for piece in step.calls]
        if messages or calls:
            self.steps.steps[-1].tokens = step.tokens
        for call_index, result in sorted(step.early_results, key=itemgetter(0)):
            self._add_result(result, calls[call_index])
        self._add_results(step, calls, messages[0].key if messages else None)

    def _add_call(self, piece: Piece) -> Step | None:
        """Add the span of a call and return it; for a value that is no call, add a log."""
        call = self._add_span(piece)
        if piece.kind is not SpanKind.TOOL_CALL:
            return None
        self._unanswered_calls[call.key] = call
        if piece.call_id:
            self._call_by_id[piece.call_id] = call
        return call

    def _add_results(
        self, step: AtifStep, calls: Sequence[Step | None], parent: str | None
    ) -> None:
        """Add the results of a step, each under its call, else under ``parent``.

        The call of a result without a call id is the first of these, without the calls that other
        results name:

        - the call at the same position, if there are as many calls as results without an id
        - the only call of the step
        - the only unanswered call of the trajectory, if the step is not the agent's
        """
        named_ids = [result.call_id for result in step.results if result.call_id]
        named_calls = map(self._call_by_id.get, named_ids)
        keys_of_named_calls = {call.key for call in named_calls if call}
        calls_left = [call for call in calls if call and call.key not in keys_of_named_calls]
        count_without_id = len(step.results) - len(named_ids)

        calls_in_order = iter(calls_left if len(calls_left) == count_without_id else ())
        for result in step.results:
            if result.call_id:
                self._add_result(result, self._call_by_id.get(result.call_id))
                continue
            call = next(calls_in_order, None)
            if call is None and len(calls_left) == 1:
                call = calls_left[0]
            is_of_agent = step.source in _AGENT_SOURCES
            if call is None and not is_of_agent and len(self._unanswered_calls) == 1:
                call = next(iter(self._unanswered_calls.values()))
            self._add_result(result, call, parent, step.source)
        if count_without_id:  # one result may answer all calls of its step
            for call in calls_left:
                self._unanswered_calls.pop(call.key, None)

    def _add_result(
        self,
        result: AtifResult,
        call: Step | None,
        parent: str | None = None,
        source: str = "",
    ) -> None:
        """Add a result after the sub-agents to which it refers, and set the end of its call.

        A result without a call in a step of the system or the user is a log.
        """
        for reference in result.references:
            # A result with nothing but references has no span.
            self._add_referenced_sub_agent(reference, result.key_suffix)
        if call is None and result.references and not result.text and not result.call_id:
            return
        if call is None and source in _ROLES:
            log = replace(result, kind=SpanKind.LOG, role=Role.LOG, agent=source)
            self._add_span(log, parent=parent)
            return
        self._add_span(result, call, parent)
        if call is not None:
            self._unanswered_calls.pop(call.key, None)
            end = call.start if result.start is None else result.start
            if end is not None and call.start is not None and end > call.start:
                call.end = end

    def _add_span(self, piece: Piece, call: Step | None = None, parent: str | None = None) -> Step:
        """Add the span of a piece, and return its step, which the caller may change.

        ``call`` is the call that the piece answers, with the default agent and name.
        """
        position = self._trajectory.position + piece.key_suffix
        if piece.problem:
            self._report_problem(position, piece.problem)
        key = self._key_prefix + piece.key_suffix
        if piece.call_id:
            prefix = f"{self._key_prefix}/" if self._key_prefix else ""
            key = f"{prefix}{piece.call_span_key}"
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

    def _add_referenced_sub_agent(self, reference: Fields, pointer: str) -> None:
        """Add the sub-agent to which a result refers, once; report a missing sub-agent.

        ``pointer`` is the result's JSON pointer in the trajectory.
        """
        ids = _ids_of(reference)
        for trajectory_id in ids:
            if trajectory_id in self._trajectory.ids:  # sub-agents may share their session's id
                continue
            trajectory = self._trajectory_by_id.get(trajectory_id)
            if trajectory is not None:
                if trajectory.position not in self._shown_positions:
                    self._add_sub_agent(trajectory)
                return
        name = as_text(reference.get("trajectory_path")) or next(iter(ids), "?")
        name_line, _is_entire = preview(name)
        message = f"the sub-agent's trajectory is not in this file: {name_line}"
        self._report_problem(self._trajectory.position + pointer, message)

    def _add_sub_agent(self, trajectory: AtifTrajectory) -> None:
        """Add the spans of a sub-agent, or report that it is nested too deeply."""
        if self._depth >= _MAX_DEPTH:
            self._report_problem(trajectory.position, "sub-agents nested too deeply; left out")
        else:
            # The object adds its spans to those of its caller.
            _TrajectorySpans(trajectory, self._trajectory_by_id, self._shown_positions, caller=self)

    def _report_problem(self, position: str, message: str) -> None:
        self.problems.append(Problem(position, message))


def _recognises(source: Source) -> bool:
    """Return whether at least half of the first records are trajectories."""
    head = as_utf8(source.head)
    if head.lstrip()[:1] not in (b"{", b"[") or not any(mark in head for mark in _MARKS):
        return False
    lines = source.json_lines
    # A file with one record on each line is not one document.
    if len(lines) > 1 or source.json is None:
        return mostly(is_trajectory, lines)
    return mostly(is_trajectory, (record.value for record in _records_of_document(source.json)))


def _read(source: Source) -> FileReport:
    """Return one trace for each trajectory to which no other trajectory refers.

    In a circle of references, the first trajectory has a trace.
    """
    problems: list[Problem] = []
    trajectories = _trajectories_of_file(source, problems)
    trajectory_by_id = ChainMap(_first_by_id(trajectories))
    referenced_ids = set().union(*(trajectory.referenced_ids for trajectory in trajectories))
    shown_positions: set[str] = set()
    traces: list[Trace] = []

    # Trajectories without references to them come first. Their spans include those of the others.
    for trajectory in sorted(
        trajectories, key=lambda trajectory: not referenced_ids.isdisjoint(trajectory.ids)
    ):
        if trajectory.position not in shown_positions:
            spans = _TrajectorySpans(trajectory, trajectory_by_id, shown_positions)
            record = trajectory.record
            content = record.content(source)
            origin = RunOrigin(READER, source.path, content, record.number, trajectory.native_id)
            meta = trajectory.facts(spans.steps.steps)
            traces.append(trace_of_steps(origin, spans.steps, meta, spans.problems))
    traces.sort(key=lambda trace: trace.record or 0)
    return report_of(READER, source, traces, problems)


READER: Final = FormatReader("atif", _recognises, _read)
"""Reads ATIF; keys are JSON pointers in the trajectory, or ids of calls.

The keys of a sub-agent's spans begin with its trajectory's id, or its session's id.
"""


def _records_of_document(document: object) -> Iterator[Record]:
    """Yield the items of a list or bundle of trajectories, or the whole document as one record."""
    bundle = fields_of(document).get("trajectories")
    if isinstance(document, list):
        yield from records_of_list(document)
    elif isinstance(bundle, list) and not is_trajectory(document):
        yield from records_of_list(bundle, "/trajectories")
    else:
        yield Record(document)


def _trajectories_of_file(source: Source, problems: list[Problem]) -> list[AtifTrajectory]:
    """Return the trajectories of a file; report other records as problems."""
    # A file with one record on each line is not one document.
    document = source.json if len(source.json_lines) < 2 else None
    records = (
        records_by_line(source, problems) if document is None else _records_of_document(document)
    )
    trajectories = []
    for record in records:
        if is_trajectory(record.value):
            trajectories.append(AtifTrajectory(record))
        else:
            position = record.prefix.strip() or "whole file"
            problems.append(Problem(position, "no trajectory, left out"))
    return trajectories

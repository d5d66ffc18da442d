"""A trace as ATIF, the Agent Trajectory Interchange Format, for other tools.

The version is 1.7, because more tools read it than 1.8, and it has all fields that are used here. A
step is a message of the system or a user, or a turn of an agent: its thought, its message, its
calls and their results. A result is stored with its call, even if other steps came between.

``extra`` has facts for which ATIF has no field. The reader of ATIF restores them:

- the run's task, benchmark, task id and trial;
- ``agent``, if another agent than the trajectory's acted;
- ``kind`` of a log line;
- ``name`` of a log line, or of a tool whose call is missing;
- ``is_error`` of a result;
- the keys of the spans, by which findings of other tools are assigned.

ATIF cannot hold these facts:

- the times of the spans of a turn, because a step has one time;
- tokens of a span that is not a model's;
- the status of a span that is no tool result;
- the role of a log line;
- the arguments of a call that are no JSON object: their text becomes the argument ``input``;
- an empty thought.

Outcome, score and answer key are left out, because they would influence the next judge of the run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from mast_tui.traces.io.json_values import InvalidJSON, dump_line, load_json
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.traces.times import iso_time

SCHEMA: Final = "ATIF-v1.7"
WRITTEN_BY: Final = "mast-tui convert"
ATIF_OPENING: Final = b'{"schema_version":"ATIF-v1.7","extra":{"written_by":"mast-tui convert",'
"""The beginning of every trajectory that this module writes."""

COPY_SUFFIX: Final = ".atif"
"""The end of a trajectory's id, which differs from the trace's id because its span keys differ."""

_SOURCES: Final = {Role.SYSTEM: "system", Role.USER: "user"}

Record = dict[str, object]


def atif_line(trace: Trace) -> bytes:
    """Write a trace as one ATIF trajectory on one line, with its line feed.

    The trace must be read to its end.
    """
    identity = trace.identity
    meta = trace.meta
    spans = map(trace.span, range(len(trace)))
    agent_counts = Counter(span.agent for span in spans if span.role is Role.AGENT)
    agent = meta.system or next((name for name, _ in agent_counts.most_common(1)), "agent")
    facts = {
        "task": meta.task,
        "benchmark": meta.benchmark,
        "task_id": meta.task_id,
        "trial": meta.trial,
    }
    record = {
        "schema_version": SCHEMA,
        "extra": {
            "written_by": WRITTEN_BY,
            "trace": identity.trace_id,
            **{name: value for name, value in facts.items() if value is not None},
        },
        "session_id": identity.trace_id,
        "trajectory_id": identity.trace_id + COPY_SUFFIX,
        "agent": {
            "name": agent,
            "version": meta.version or "unknown",
            **({} if meta.model is None else {"model_name": meta.model}),
        },
        "steps": _StepBuilder(trace, agent).steps,
    }
    return dump_line(record)


class _StepBuilder:
    """A builder of the ATIF steps of a trace, span by span."""

    def __init__(self, trace: Trace, agent: str) -> None:
        self.steps: list[Record] = []
        self._agent = agent
        self._turn: _Turn | None = None
        """The turn of an agent to which the next span may be added."""
        spans = [trace.span(index) for index in range(len(trace))]
        self._call_keys = {span.key for span in spans if span.kind is SpanKind.TOOL_CALL}
        self._call_ids_and_turns: dict[str, tuple[str, _Turn]] = {}
        """The ATIF id and the turn of each call, by the key of its span."""
        self._early_results: dict[str, list[Record]] = {}
        """Results that come before their call, by the key of the call's span."""
        for span in spans:
            self._add_span(span, trace.text(span.index))

    def _add_span(self, span: Span, text: str) -> None:
        if span.kind is SpanKind.TOOL_CALL:
            self._add_call(span, text)
        elif span.kind is SpanKind.TOOL_RESULT or span.role is Role.TOOL:
            self._add_result(span, text)
        elif span.kind is SpanKind.LOG or span.role is Role.LOG:
            name_field = {} if span.name is None else {"name": span.name}
            self._add_step(span, "system", text, kind="log", **name_field)
        elif span.role in _SOURCES and span.kind is SpanKind.MESSAGE:
            self._add_step(span, _SOURCES[span.role], text)
        else:
            self._add_utterance(span, text)

    def _add_utterance(self, span: Span, text: str) -> None:
        """Add the thought or message of an agent.

        A thought and the message after it are one turn. A blank text is a turn of its own.
        """
        is_blank = not text.strip()
        is_thought = span.kind is SpanKind.REASONING
        turn = self._turn
        if is_blank or is_thought or turn is None or turn.agent != span.agent or turn.has_spoken:
            turn = self._begin_turn(span, "" if is_thought else text)
            if is_thought and not is_blank:
                turn.step["reasoning_content"] = text
        else:
            turn.step["message"] = text
            turn.keys.append(span.key)
        turn.has_spoken = not is_thought
        self._turn = None if is_blank else turn
        self._set_token_counts(turn, span)

    def _add_call(self, span: Span, text: str) -> None:
        """Add a tool call to the turn of its agent, and results that came before the call."""
        turn = self._turn
        if turn is None or turn.agent != span.agent:
            turn = self._begin_turn(span, "")
        else:
            turn.keys.append(span.key)
        turn.has_spoken = True
        call_id = f"call_{span.index}"
        turn.calls.append(
            {
                "tool_call_id": call_id,
                "function_name": span.name or "",
                "arguments": _arguments_object(text),
            }
        )
        turn.step["tool_calls"] = turn.calls
        turn.tools[call_id] = span.name
        self._call_ids_and_turns[span.key] = (call_id, turn)
        for result in self._early_results.pop(span.key, ()):
            turn.add_result(result, call_id)
        self._set_token_counts(turn, span)

    def _add_result(self, span: Span, text: str) -> None:
        """Add a result to the turn of its call.

        - If the call comes later in the trace, the result waits for ``_add_call``.
        - A result without a call is a step of its own.
        - A result ends the turn, unless it waits.
        """
        call_id, turn = self._call_ids_and_turns.get(span.parent or "", (None, None))
        extra: Record = {"span": span.key}
        if span.agent != (self._agent if turn is None else turn.agent):
            extra["agent"] = span.agent
        tool = None if turn is None or call_id is None else turn.tools.get(call_id)
        if span.name is not None and span.name != tool:
            extra["name"] = span.name
        if span.status is not SpanStatus.UNKNOWN:
            extra["is_error"] = span.status is SpanStatus.ERROR
        result: Record = {"content": text, "extra": extra}
        if turn is not None:
            turn.add_result(result, call_id)
            self._turn = None
        elif span.parent is not None and span.parent in self._call_keys:
            self._early_results.setdefault(span.parent, []).append(result)
        else:
            self._begin_turn(span, "").add_result(result, None)
            self._turn = None

    def _begin_turn(self, span: Span, text: str) -> _Turn:
        """Add a step of an agent with a message, and return it as the current turn."""
        keys = [span.key]
        self._turn = _Turn(self._add_step(span, "agent", text, spans=keys), span.agent, keys)
        return self._turn

    def _add_step(self, span: Span, source: str, text: str, **extra: object) -> Record:
        """End the current turn, add a step, and return the step."""
        self._turn = None
        step: Record = {"step_id": len(self.steps) + 1}
        timestamp = None if span.start is None else iso_time(span.start)
        if timestamp is not None:
            step["timestamp"] = timestamp
        default_agent = self._agent if source == "agent" else source
        if span.agent != default_agent:
            extra["agent"] = span.agent
        step |= {"source": source, "message": text, "extra": {"spans": [span.key]} | extra}
        self.steps.append(step)
        return step

    def _set_token_counts(self, turn: _Turn, span: Span) -> None:
        """Write the tokens of a span, if any, to the step of its turn, and end the turn.

        The next span belongs to another model call, whose tokens need a step of their own.
        """
        if span.tokens is None:
            return
        counts = {
            "prompt_tokens": span.tokens.input,
            "completion_tokens": span.tokens.output,
        }
        turn.step["metrics"] = {name: n for name, n in counts.items() if n is not None}
        self._turn = None


@dataclass(slots=True)
class _Turn:
    """A step of an agent to which spans may be added.

    Attributes:
        step: The step, as it is written.
        agent: The agent.
        keys: The keys of its spans, a list that the step shares.
        has_spoken: True after a message or call; then only calls may be added.
        calls: Its calls, as they are written.
        tools: The names of the tools, by the id of their call.
        results: Its results, as they are written.
    """

    step: Record
    agent: str
    keys: list[str]
    has_spoken: bool = False
    calls: list[Record] = field(default_factory=list)
    tools: dict[str, str | None] = field(default_factory=dict)
    results: list[Record] = field(default_factory=list)

    def add_result(self, result: Record, call_id: str | None) -> None:
        """Add a result to the step.

        Args:
            result: The result.
            call_id: The id of its call; None for a result without a call.
        """
        self.results.append(result if call_id is None else {"source_call_id": call_id, **result})
        self.step["observation"] = {"results": self.results}


def _arguments_object(text: str) -> Record:
    """Return the arguments of a call as an object, because ATIF requires one."""
    try:
        value = load_json(text) if text.strip() else {}
    except InvalidJSON:
        value = text
    return value if isinstance(value, dict) else {"input": value}

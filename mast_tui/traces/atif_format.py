"""A trace as ATIF, the Agent Trajectory Interchange Format, for tools that read it.

Version 1.7 is declared: it has all that is used here, and more tools take it than take 1.8. A step
is a message of the system or a user, or a turn of an agent: what it thought, what it said, its
calls, and their results. What ATIF has no field for stands in ``extra``, from which the reader of
ATIF takes it back: ``agent`` where another than the trajectory's acted, ``kind`` of a log line,
``name`` of a log line or of a tool whose call is not there, ``is_error``; and the keys of the
spans, by which findings of other tools come back.

It cannot hold when a span of a turn began and ended (a step has one time), tokens of what no model
said, whether what is no tool result went well, the role of a log line, a call whose arguments are
no JSON object (its text becomes the one argument ``input``), and an empty thought. A result stands
at its call, even where other steps came between. Outcome, score and answer key are left out: who
judges the run next should not be told how it went.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from mast_tui.traces.io.json_values import InvalidJSON, dump_line, load_json
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.traces.times import iso_time

SCHEMA: Final = "ATIF-v1.7"
ATIF_OPENING: Final = b'{"schema_version":"ATIF-v1.7","extra":{"written_by":"mast-tui convert",'
"""The beginning of every trajectory that is written here."""

COPY: Final = ".atif"
"""The suffix of the id of the trace whose copy a trajectory is, as its span keys differ."""

_SOURCES: Final = {Role.SYSTEM: "system", Role.USER: "user"}

Record = dict[str, object]


def atif_line(trace: Trace) -> bytes:
    """Write a trace as one ATIF trajectory on one line, with its line feed.

    Args:
        trace: The trace; its index must be complete.
    """
    identity = trace.identity
    meta = trace.meta
    agents = Counter(
        span.agent for span in map(trace.span, range(len(trace))) if span.role is Role.AGENT
    )
    agent = meta.system or next((name for name, _ in agents.most_common(1)), "agent")
    facts = {
        "task": meta.task,
        "benchmark": meta.benchmark,
        "task_id": meta.task_id,
        "trial": meta.trial,
    }
    record = {
        "schema_version": SCHEMA,
        "extra": {
            "written_by": "mast-tui convert",
            "trace": identity.trace_id,
            **{name: value for name, value in facts.items() if value is not None},
        },
        "session_id": identity.trace_id,
        "trajectory_id": identity.trace_id + COPY,
        "agent": {
            "name": agent,
            "version": meta.version or "unknown",
            **({} if meta.model is None else {"model_name": meta.model}),
        },
        "steps": _Steps(trace, agent).steps,
    }
    return dump_line(record)


class _Steps:
    """The steps made of the spans of a trace."""

    def __init__(self, trace: Trace, agent: str) -> None:
        self.steps: list[Record] = []
        self._agent = agent
        self._turn: _Turn | None = None
        """The turn of an agent that the next span may still be a part of."""
        spans = [trace.span(index) for index in range(len(trace))]
        self._called = {span.key for span in spans if span.kind is SpanKind.TOOL_CALL}
        self._calls: dict[str, tuple[str, _Turn]] = {}
        self._early: dict[str, list[Record]] = {}
        """Results that come before their call, by the call's key."""
        for span in spans:
            self._add(span, trace.text(span.index))

    def _add(self, span: Span, text: str) -> None:
        if span.kind is SpanKind.TOOL_CALL:
            self._call(span, text)
        elif span.kind is SpanKind.TOOL_RESULT or span.role is Role.TOOL:
            self._result(span, text)
        elif span.kind is SpanKind.LOG or span.role is Role.LOG:
            name_field = {} if span.name is None else {"name": span.name}
            self._step(span, "system", text, kind="log", **name_field)
        elif span.role in _SOURCES and span.kind is SpanKind.MESSAGE:
            self._step(span, _SOURCES[span.role], text)
        else:
            self._say(span, text)

    def _say(self, span: Span, text: str) -> None:
        """Add the thought or message of an agent; a blank one is a step of its own."""
        blank = not text.strip()
        thought = span.kind is SpanKind.REASONING
        turn = self._turn
        if blank or thought or turn is None or turn.agent != span.agent or turn.spoken:
            turn = self._begin(span, "" if thought else text)
            if thought and not blank:
                turn.step["reasoning_content"] = text
        else:
            turn.step["message"] = text
            turn.keys.append(span.key)
        turn.spoken = not thought
        self._turn = None if blank else turn
        self._count(turn, span)

    def _call(self, span: Span, text: str) -> None:
        turn = self._turn
        if turn is None or turn.agent != span.agent:
            turn = self._begin(span, "")
        else:
            turn.keys.append(span.key)
        turn.spoken = True
        call_id = f"call_{span.index}"
        turn.calls.append(
            {
                "tool_call_id": call_id,
                "function_name": span.name or "",
                "arguments": _arguments(text),
            }
        )
        turn.step["tool_calls"] = turn.calls
        turn.tools[call_id] = span.name
        self._calls[span.key] = (call_id, turn)
        for result in self._early.pop(span.key, ()):
            turn.answer(result, call_id)
        self._count(turn, span)

    def _result(self, span: Span, text: str) -> None:
        """Set a result at its call; one without a call is a step of its own."""
        call = self._calls.get(span.parent or "")
        extra: Record = {"span": span.key}
        if span.agent != (self._agent if call is None else call[1].agent):
            extra["agent"] = span.agent
        if span.name is not None and (call is None or call[1].tools.get(call[0]) != span.name):
            extra["name"] = span.name
        if span.status is not SpanStatus.UNKNOWN:
            extra["is_error"] = span.status is SpanStatus.ERROR
        result: Record = {"content": text, "extra": extra}
        if call is not None:
            call[1].answer(result, call[0])
            self._turn = None
        elif span.parent is not None and span.parent in self._called:
            self._early.setdefault(span.parent, []).append(result)
        else:
            self._begin(span, "").answer(result, None)
            self._turn = None

    def _begin(self, span: Span, text: str) -> _Turn:
        keys = [span.key]
        self._turn = _Turn(self._step(span, "agent", text, spans=keys), span.agent, keys)
        return self._turn

    def _step(self, span: Span, source: str, text: str, **extra: object) -> Record:
        """Add a step, which ends the turn that was open."""
        self._turn = None
        step: Record = {"step_id": len(self.steps) + 1}
        if span.start is not None and (timestamp := iso_time(span.start)) is not None:
            step["timestamp"] = timestamp
        usual = self._agent if source == "agent" else source
        if span.agent != usual:
            extra["agent"] = span.agent
        step |= {"source": source, "message": text, "extra": {"spans": [span.key]} | extra}
        self.steps.append(step)
        return step

    def _count(self, turn: _Turn, span: Span) -> None:
        """Note the tokens of a model call, of which this was the last span."""
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
    """A step of an agent while it is being made; ``spoken`` once only calls may follow."""

    step: Record
    agent: str
    keys: list[str]
    spoken: bool = False
    calls: list[Record] = field(default_factory=list)
    tools: dict[str, str | None] = field(default_factory=dict)
    results: list[Record] = field(default_factory=list)

    def answer(self, result: Record, call_id: str | None) -> None:
        """Add a result to the step.

        Args:
            result: The result.
            call_id: The id of the call that it answers; None for a result without a call.
        """
        self.results.append(result if call_id is None else {"source_call_id": call_id, **result})
        self.step["observation"] = {"results": self.results}


def _arguments(text: str) -> Record:
    """Return the arguments of a call as an object, which ATIF requires."""
    try:
        value = load_json(text) if text.strip() else {}
    except InvalidJSON:
        value = text
    return value if isinstance(value, dict) else {"input": value}

"""A trace as AgentDebugX takes it: an ``AgentTrajectory`` whose events are the trace's spans.

Each event has its span's key for an id, so that what that tool finds comes back to the very span.
Outcome, score and answer key are left out, as in ATIF.
"""

from __future__ import annotations

from typing import Final

from mast_tui.traces.io.json_values import dump_line
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.traces.times import iso_time

AGENTDEBUGX_OPENING: Final = b'{"framework":"mast-tui convert",'
"""What every trajectory begins with that is written here."""

_KINDS: Final = {
    SpanKind.TOOL_CALL: "tool.call",
    SpanKind.TOOL_RESULT: "tool.result",
    SpanKind.REASONING: "reflection",
}
_ROLES: Final = {Role.SYSTEM: "run.start", Role.USER: "observation", Role.LOG: "observation"}

_MOST_OF_AN_ERROR: Final = 500


def agentdebugx_line(trace: Trace) -> bytes:
    """Write a trace as one trajectory on one line, with its line feed.

    Args:
        trace: The trace; its index must be complete.
    """
    own_id = trace.identity.trace_id
    spans = [_event(own_id, trace.span(index), trace.text(index)) for index in range(len(trace))]
    record = {
        "framework": "mast-tui convert",
        "trace_id": own_id,
        "task_id": trace.meta.task_id,
        "goal": trace.meta.task,
        "events": spans,
    }
    return dump_line(record)


def _event(trace_id: str, span: Span, text: str) -> dict[str, object]:
    event: dict[str, object] = {
        "event_id": span.key,
        "trace_id": trace_id,
        "agent_name": span.agent,
        "event_type": _KINDS.get(span.kind) or _ROLES.get(span.role, "agent.step"),
        "step_index": span.index,
    }
    if span.start is not None and (told := iso_time(span.start)) is not None:
        event["timestamp"] = told
    if span.kind is SpanKind.TOOL_CALL:
        event["input"] = {"tool": span.name or "", "args": text}
    else:
        event["output"] = text
    if span.status is SpanStatus.ERROR:
        event["error"] = text[:_MOST_OF_AN_ERROR] or "error"
    return event

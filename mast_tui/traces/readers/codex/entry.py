"""A step as one record of a Codex rollout tells of it, before it becomes a span."""

from __future__ import annotations

from dataclasses import dataclass

from mast_tui.traces.model import Role, SpanKind, SpanStatus


@dataclass(slots=True)  # Not frozen: many are made, and freezing costs time.
class Entry:
    """A step that a record tells of.

    ``agent`` is who acted where that is another than the thread itself. ``event`` marks what a
    response item usually says too, ``parts`` are the texts by which the two are told to be the
    same; ``at_once`` one that is not to wait for its item. ``closes_turn`` marks the end or the
    beginning of a turn, before which no event may be left waiting; its text is empty where it
    says nothing by itself. ``twin`` marks a report on a call that is shown only where no response
    item has that ``call_id``; ``result`` is the answer that it tells of too, ``lasted`` how many
    seconds it took. ``spawned`` is the thread of a sub-agent that the call has begun.
    """

    kind: SpanKind
    role: Role
    text: str
    key: str | None = None
    name: str | None = None
    call_id: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    parts: tuple[str, ...] = ()
    event: bool = False
    closes_turn: bool = False
    agent: str | None = None
    at_once: bool = False
    twin: bool = False
    result: Entry | None = None
    lasted: float | None = None
    spawned: tuple[str, ...] = ()


def reported_call(
    call_id: str | None,
    name: str,
    arguments: str,
    output: str,
    status: SpanStatus,
    *,
    lasted: float | None = None,
    spawned: tuple[str, ...] = (),
) -> Entry:
    """A call with its result, as a report after the event tells of both."""
    result = Entry(SpanKind.TOOL_RESULT, Role.TOOL, output, call_id=call_id, status=status)
    return Entry(
        SpanKind.TOOL_CALL,
        Role.AGENT,
        arguments,
        name=name,
        call_id=call_id,
        status=status,
        twin=True,
        result=result,
        lasted=lasted,
        spawned=spawned,
    )


def log(text: str, name: str | None, status: SpanStatus = SpanStatus.UNKNOWN) -> Entry:
    """A line of the log."""
    return Entry(SpanKind.LOG, Role.LOG, text, name=name, status=status)

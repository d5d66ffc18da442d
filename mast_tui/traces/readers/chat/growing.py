"""Logs of requests to a model, one a line, of which each repeats the history of the one before.

AppWorld's ``lm_calls.jsonl`` and the event log of AutoGen's core are such logs. The requests of one
history are one run: each shows what is new, as the calls of an observed run do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

from mast_tui.traces.io.json_values import as_text, canonical_bytes, tokens_of
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.chat.containers import Conversation
from mast_tui.traces.readers.chat.values import message_text, start_of, usage_of
from mast_tui.traces.readers.document_traces import Record
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, kind_of, short_name
from mast_tui.traces.readers.span_tree.rows import RowKind, SpanRow


@dataclass(slots=True)
class LoggedRun:
    """The lines of one run: requests with their conversations, and tools that ran between them."""

    records: list[Record] = field(default_factory=list)
    conversations: list[Conversation | None] = field(default_factory=list)

    @property
    def is_growing(self) -> bool:
        """True if a request repeats the history of another."""
        return sum(conversation is not None for conversation in self.conversations) > 1

    def rows(self) -> list[SpanRow]:
        """Return the requests and tools as calls of an observed run."""
        return [
            _tool_row(record) if conversation is None else _model_row(record, conversation)
            for record, conversation in zip(self.records, self.conversations, strict=True)
        ]


def logged_runs(lines: Iterable[tuple[Record, Conversation | None]]) -> list[LoggedRun]:
    """Put the lines of a log together that belong to one run.

    A request belongs to the run whose last messages its own begin with. Lines that name an agent of
    AutoGen's core belong together where the agents share a key.

    Args:
        lines: Records with their conversations; None for a tool's call.

    Returns:
        The runs in the order of their first lines.
    """
    runs: list[LoggedRun] = []
    by_history: dict[bytes, LoggedRun] = {}
    by_key: dict[str, LoggedRun] = {}
    for record, conversation in lines:
        key = _agent_key(fields_of(record.value))
        history = [] if conversation is None else _history_hashes(conversation)
        run = by_key.get(key) if key is not None else None
        if run is None:
            beginnings = reversed(history[:-1])
            run = next((by_history[end] for end in beginnings if end in by_history), None)
        if run is None:
            run = LoggedRun()
            runs.append(run)
        run.records.append(record)
        run.conversations.append(conversation)
        if key is not None:
            by_key[key] = run
        if history:
            by_history[history[-1]] = run
    return runs


def is_tool_call(value: object) -> bool:
    """Return whether a line of AutoGen's log is the call of a tool."""
    return kind_of(value) == "ToolCall" and "tool_name" in fields_of(value)


def _agent_key(record: Fields) -> str | None:
    """Return the key in an id such as ``planner/default``, which the agents of one run share."""
    agent = as_text(record.get("agent_id"))
    if agent is None or "/" not in agent:
        return None
    return agent.partition("/")[2]


def _history_hashes(conversation: Conversation) -> list[bytes]:
    """Return a hash for each beginning of a conversation, the whole one last."""
    running = blake2b(digest_size=16)
    hashes: list[bytes] = []
    for _key, message in conversation.messages:
        fields = fields_of(message)
        running.update(canonical_bytes([fields.get("role"), message_text(fields.get("content"))]))
        for call in items_of(fields.get("tool_calls")):
            running.update(canonical_bytes(fields_of(call).get("function")))
        hashes.append(running.digest())
    return hashes


def _model_row(record: Record, conversation: Conversation) -> SpanRow:
    fields = fields_of(record.value)
    counts = tokens_of(fields.get("prompt_tokens"), fields.get("completion_tokens"))
    messages = [fields_of(message) for _key, message in conversation.messages]
    answers = conversation.answers
    if answers == 0 and messages[-1].get("role") == "assistant":
        answers = 1
    asked_count = len(messages) - answers
    return SpanRow(
        id=record.location,
        parent=None,
        kind=RowKind.MODEL,
        name="model",
        location=record.location,
        start=start_of(fields),
        agent=_agent_name(fields),
        model=conversation.model,
        error=conversation.error,
        status=SpanStatus.ERROR if conversation.error else SpanStatus.UNKNOWN,
        tokens=conversation.usage or usage_of(fields) or counts,
        request=tuple(messages[:asked_count]),
        answer=tuple(messages[asked_count:]),
    )


def _tool_row(record: Record) -> SpanRow:
    fields = fields_of(record.value)
    return SpanRow(
        id=record.location,
        parent=None,
        kind=RowKind.TOOL,
        name=short_name(fields.get("tool_name")) or "tool",
        location=record.location,
        start=start_of(fields),
        agent=_agent_name(fields),
        input=fields.get("arguments"),
        output=fields.get("result"),
    )


def _agent_name(record: Fields) -> str | None:
    agent = as_text(record.get("agent_id"))
    return None if agent is None else short_name(agent.partition("/")[0]) or None

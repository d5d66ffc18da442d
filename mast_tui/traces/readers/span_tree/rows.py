"""What every tracing tool records of a run: a tree of timed calls, each with what went in and out.

A vendor's reader turns its records into rows of this one shape; ``observed_steps`` makes spans of
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mast_tui.traces.model import SpanStatus, Tokens

Message = Mapping[str, object]
"""A chat message in a shape that ``MessageMapper`` reads: role, content, tool_calls and so on."""


class RowKind(StrEnum):
    """What was called."""

    MODEL = "model"
    TOOL = "tool"
    AGENT = "agent"
    OTHER = "other"
    """A chain, a workflow, a retriever, an embedding: whatever else is timed."""


@dataclass(frozen=True, slots=True)
class Row:
    """One timed call of a run.

    ``id`` is the tool's own name for it and ``parent`` the id of the row within which it ran;
    an unknown parent counts as none. ``place`` is where the row stands in the file. ``agent`` is
    who acted, where the row itself tells. A model's row has its messages in ``asked`` (the whole
    history, as every call repeats it) and ``answered``; other rows have ``input`` and ``output``
    as JSON values or texts, and so has a model's row whose messages are not told apart.
    ``call_id`` of a tool's row is the id under which a model asked for it. ``start`` and ``end``
    are Unix seconds; ``error`` is what went wrong, as text. ``speaks`` says of an ``OTHER`` row
    that what came out of it is worth reading by itself: a retriever's documents, the verdict of a
    guardrail or an evaluator; it has no meaning for other kinds.
    """

    id: str
    parent: str | None
    kind: RowKind
    name: str
    place: str
    start: float | None = None
    end: float | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    error: str | None = None
    agent: str | None = None
    model: str | None = None
    tokens: Tokens | None = None
    asked: tuple[Message, ...] = ()
    answered: tuple[Message, ...] = ()
    input: object = None
    output: object = None
    call_id: str | None = None
    speaks: bool = False

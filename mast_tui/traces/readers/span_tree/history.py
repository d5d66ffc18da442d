"""The history that every model call repeats: which of its messages were shown before."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from mast_tui.traces.io.json_values import InvalidJSON, canonical_bytes, load_json
from mast_tui.traces.model import Role, SpanKind
from mast_tui.traces.readers.chat.messages import MessageToolCall, OpenCalls
from mast_tui.traces.readers.chat.pieces import Piece
from mast_tui.traces.readers.chat.turns import turn_of
from mast_tui.traces.readers.span_tree.rows import Message

_TELLING_CHARS: Final = 40
"""The length from which on an equal text counts as the same message anywhere."""

_NO_CONTENT: Final = -1

_REPLIES: Final = 8
"""The number of answers to one history among which a repeated one is searched for."""


@dataclass(slots=True)
class ShownCall(MessageToolCall):
    """A tool call that was shown."""

    bare: bool = False
    """True if the arguments were not recorded."""
    result: str | None = None
    """The key of its result, where that was shown too."""


class MessagePart(NamedTuple):
    """One piece of a message, which becomes a span where it is new.

    Attributes:
        piece: The piece.
        start: The time in Unix seconds, where the message has one.
        content: The number of its content: equal for texts that differ in white space only, and
            for calls of the same tool with the same arguments.
    """

    piece: Piece
    start: float | None
    content: int


def normalized_text(text: str) -> str:
    """Return a text without the differences that copying makes: runs of whitespace."""
    return " ".join(text.split())


def canonical_arguments(arguments: object) -> bytes:
    """Return the same bytes for the same arguments, as a value or as JSON text."""
    value = arguments
    if isinstance(arguments, str):
        try:
            value = load_json(arguments)
        except InvalidJSON:
            return normalized_text(arguments).encode("utf-8", "replace")
    return b"" if value in (None, {}, []) else canonical_bytes(value)


class Calls:
    """The tool calls shown so far, by their ids and by what they asked for."""

    def __init__(self) -> None:
        self.by_id: dict[str, ShownCall] = {}
        self._asked: dict[tuple[str, bytes], deque[ShownCall]] = defaultdict(deque)
        self._named: dict[str, deque[ShownCall]] = defaultdict(deque)
        self._performed: dict[tuple[str, bytes], deque[ShownCall]] = defaultdict(deque)
        self._before_model: dict[str, ShownCall] = {}

    def add_model_call(self, call: ShownCall, call_id: str | None, arguments: object) -> None:
        """Record that a model's call was shown, which a tool's row may answer.

        Args:
            call: The call with the key of its span.
            call_id: The id that the model gave it.
            arguments: The arguments of the call.
        """
        if call_id is not None:
            self.by_id[call_id] = call
        if call.name is not None:
            self._asked[call.name, canonical_arguments(arguments)].append(call)
            self._named[call.name].append(call)

    def add_tool_call(self, call: ShownCall, call_id: str | None, arguments: object) -> None:
        """Record that a tool's row was shown without a model's call before it.

        Args:
            call: The call with the key of its span.
            call_id: The id of the call in the row.
            arguments: The input of the row.
        """
        if call_id is not None:
            self.by_id[call_id] = self._before_model[call_id] = call
        elif call.name is not None:
            self._performed[call.name, canonical_arguments(arguments)].append(call)

    def of_row(self, name: str, arguments: object, call_id: str | None) -> ShownCall | None:
        """Return the call that a tool's row carried out: by id, else the oldest like it.

        Args:
            name: The name of the tool.
            arguments: The input of the row.
            call_id: The id of the call in the row.
        """
        if call_id is not None and call_id in self.by_id:
            return self.by_id[call_id]
        same_arguments = canonical_arguments(arguments)
        call = _oldest_open(self._asked.get((name, same_arguments)))
        if call is None:
            candidate = _oldest_open(self._named.get(name))
            if candidate is not None and (candidate.bare or not same_arguments):
                call = candidate
        if call is not None and call_id is not None:
            self.by_id[call_id] = call
        return call

    def performed_before(self, call_id: str | None) -> ShownCall | None:
        """Return the call that a tool's row showed before the model's answer that asks for it."""
        return None if call_id is None else self._before_model.pop(call_id, None)

    def repeated_call(self, part: MessagePart) -> ShownCall | None:
        """Return the shown call that a call in a history repeats, if its tool's row showed it."""
        if part.piece.call_id is not None and part.piece.call_id in self.by_id:
            return self.by_id[part.piece.call_id]
        waiting = self._performed.get((part.piece.name or "", canonical_arguments(part.piece.text)))
        if not waiting:
            return None
        call = waiting.popleft()
        if part.piece.call_id is not None:
            self.by_id[part.piece.call_id] = call
        return call


def _oldest_open(waiting: deque[ShownCall] | None) -> ShownCall | None:
    while waiting:
        if waiting[0].result is None:
            return waiting[0]
        waiting.popleft()
    return None


class Parts:
    """Messages as spans; a message that many calls repeat is taken apart once."""

    def __init__(self) -> None:
        self._cached_parts: dict[bytes, tuple[MessagePart, ...]] = {}
        self._contents: dict[bytes, int] = {}

    def parts_of(self, message: Message) -> tuple[MessagePart, ...]:
        """Return the spans of a message."""
        digest = _digest(canonical_bytes(message))
        parts = self._cached_parts.get(digest)
        if parts is None:
            parts = self._cached_parts[digest] = tuple(self._take_apart(message))
        return parts

    def content(self, kind: SpanKind, text: str, name: str | None = None) -> int:
        """Return the number of a content.

        Args:
            kind: The kind of span that has the content.
            text: Its text.
            name: The name of the tool, of a call.
        """
        if kind is SpanKind.TOOL_CALL:
            data = (
                b"call\0"
                + (name or "").encode("utf-8", "replace")
                + b"\0"
                + canonical_arguments(text)
            )
        else:
            data = normalized_text(text).encode("utf-8", "replace")
            if kind is SpanKind.TOOL_RESULT:
                data = b"result\0" + data
        return self._contents.setdefault(_digest(data), len(self._contents))

    def _take_apart(self, message: Message) -> Iterator[MessagePart]:
        turn = turn_of(message)
        for piece in turn.pieces:
            start = turn.start if piece.start is None else piece.start
            content = self.content(piece.kind, piece.text, piece.name)
            yield MessagePart(piece, start, content)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


class NewPart(NamedTuple):
    """A part of a history that was not shown before.

    Attributes:
        number: Its number among the parts of the history.
        node: Its node in the tree; -1 for reasoning and prompts, which have none.
        call: The call that it answers.
    """

    number: int
    node: int
    call: ShownCall | None


class ShownHistory:
    """All conversations of a run as one tree, which shows what a call repeats.

    The history of a call is followed down the tree as far as it is known; what comes after the end
    of an earlier call is new. Where a history leaves a known one in its middle (it was shortened,
    or begins with what another agent said), only long texts, and texts beside the same neighbour,
    count as known. A system prompt counts as known to the agent that it was shown for.

    Attributes:
        shown: The contents of all spans so far.
    """

    def __init__(self, calls: Calls) -> None:
        self.shown: set[int] = set()
        self._calls = calls
        self._end_node = 0
        self._end_content = _NO_CONTENT
        self._system: set[tuple[str, int]] = set()
        self._next: dict[tuple[int, int], int] = {}
        self._ends: set[int] = set()
        self._neighbours: set[tuple[int, int]] = set()
        self._replies: dict[int, deque[tuple[MessagePart, int]]] = {}
        self._call_at: dict[int, ShownCall] = {}

    def ask(self, parts: Sequence[MessagePart], agent: str) -> Iterator[NewPart]:
        """Yield what is new in the history of a call.

        A call that is shown must be reported to ``show_call`` before the next part is asked for.

        Args:
            parts: The whole history.
            agent: The agent whose call it is.
        """
        node = 0
        previous = _NO_CONTENT
        left_known_path = False
        left_in_middle = False
        recent: OpenCalls[ShownCall] = OpenCalls()
        for number, part in enumerate(parts):
            if not _is_turn(part):
                if self._is_new_aside(part, agent):
                    yield NewPart(number, -1, None)
                continue
            call = self._answered(part, recent)
            child = self._next.get((node, part.content))
            if child is None and not left_known_path:
                child = self._node_of_reply(node, part)
            if child is None and not left_known_path:
                left_known_path = True
                left_in_middle = node not in self._ends
            if child is None:
                child = self._grow(node, part)
                repeated = left_in_middle and self._was_shown(part, previous, parts, number)
                if self._is_new(part, child, call) and not repeated:
                    yield NewPart(number, child, call)
            if part.piece.kind is SpanKind.TOOL_CALL and child in self._call_at:
                recent.add(self._call_at[child])
            self._neighbours.add((previous, part.content))
            node = child
            previous = part.content
        self._end_at(node, previous)

    def answer(self, parts: Sequence[MessagePart]) -> list[int]:
        """Record the answer to the last history; return the nodes of its parts."""
        node = self._end_node
        previous = self._end_content
        nodes = []
        for part in parts:
            if _is_turn(part):
                child = self._grow(node, part)
                self._replies.setdefault(node, deque(maxlen=_REPLIES)).append((part, child))
                self._neighbours.add((previous, part.content))
                node = child
                previous = part.content
            nodes.append(node)
        self._ends.add(node)
        return nodes

    def show_instructions(self, agent: str, content: int) -> bool:
        """Count a system prompt as shown.

        Args:
            agent: The agent whose prompt it is.
            content: The number of its content.

        Returns:
            True if it is new to the agent.
        """
        is_new = (agent, content) not in self._system
        self._system.add((agent, content))
        return is_new

    def show_call(self, node: int, call: ShownCall) -> None:
        """Record that the call at a node was shown.

        Args:
            node: The node.
            call: The call with the key of its span.
        """
        self._call_at[node] = call

    def _end_at(self, node: int, content: int) -> None:
        self._ends.add(node)
        self._end_node = node
        self._end_content = content

    def _grow(self, node: int, part: MessagePart) -> int:
        return self._next.setdefault((node, part.content), len(self._next) + 1)

    def _is_new_aside(self, part: MessagePart, agent: str) -> bool:
        if part.piece.role is Role.SYSTEM:
            is_new = self.show_instructions(agent, part.content)
            return is_new and bool(part.piece.text.strip())
        return part.piece.kind is SpanKind.REASONING and part.content not in self.shown

    def _answered(self, part: MessagePart, recent: OpenCalls[ShownCall]) -> ShownCall | None:
        """Return the call that a result answers; None for any other part."""
        if part.piece.kind is not SpanKind.TOOL_RESULT:
            return None
        return recent.pop_answered(part.piece, self._calls.by_id)

    def _node_of_reply(self, node: int, part: MessagePart) -> int | None:
        """Return the node of an answer that the history repeats in other words, or None."""
        for reply, reply_node in reversed(self._replies.get(node, ())):
            if _is_same_part(reply, part):
                self._next[node, part.content] = reply_node
                return reply_node
        return None

    def _is_new(self, part: MessagePart, node: int, call: ShownCall | None) -> bool:
        if part.piece.kind is SpanKind.TOOL_RESULT:
            if call is not None:
                return call.result is None
            return part.content not in self.shown or len(part.piece.text) < _TELLING_CHARS
        if part.piece.kind is SpanKind.TOOL_CALL:
            repeated = self._calls.repeated_call(part)
            if repeated is not None:
                self._call_at[node] = repeated
            return repeated is None
        return True

    def _was_shown(
        self, part: MessagePart, previous: int, parts: Sequence[MessagePart], number: int
    ) -> bool:
        if part.content not in self.shown:
            return False
        if part.piece.kind is SpanKind.TOOL_CALL or len(part.piece.text) >= _TELLING_CHARS:
            return True
        if (previous, part.content) in self._neighbours:
            return True
        following = parts[number + 1].content if number + 1 < len(parts) else _NO_CONTENT
        return (part.content, following) in self._neighbours


def _is_turn(part: MessagePart) -> bool:
    """Return whether a part is a turn of the conversation, which reasoning and prompts are not."""
    if part.piece.role is Role.SYSTEM or part.piece.kind is SpanKind.REASONING:
        return False
    return part.piece.kind is not SpanKind.MESSAGE or bool(part.piece.text.strip())


def _is_same_part(reply: MessagePart, part: MessagePart) -> bool:
    """Return whether a part of a history repeats a part of an earlier reply."""
    if reply.piece.kind is not part.piece.kind:
        return False
    if reply.piece.kind is SpanKind.TOOL_CALL:
        if reply.piece.call_id is not None and part.piece.call_id is not None:
            return reply.piece.call_id == part.piece.call_id
        return reply.piece.name == part.piece.name
    if part.piece.role is Role.USER:
        return False
    original = normalized_text(reply.piece.text)
    repeated = normalized_text(part.piece.text)
    return repeated in original or original in repeated

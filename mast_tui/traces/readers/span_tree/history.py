"""The history that every model call repeats, and the search for its new messages."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple

from mast_tui.traces.io.json_values import InvalidJSON, canonical_bytes, load_json
from mast_tui.traces.model import Role, SpanKind
from mast_tui.traces.readers.chat.messages import MessageToolCall, OpenCalls
from mast_tui.traces.readers.chat.pieces import Piece
from mast_tui.traces.readers.chat.turns import turn_of
from mast_tui.traces.readers.chat.values import lasting_text
from mast_tui.traces.readers.json_fields import add_new, fields_of, json_in, object_in
from mast_tui.traces.readers.span_tree.rows import Message

_UNMISTAKABLE_CHARS: Final = 40
"""A text of at least this length is the same message wherever it occurs."""

_MOST_COMPARED_CALLS: Final = 8
"""The number of calls of a tool to compare with a tool's row."""

_NO_CONTENT_NUMBER: Final = -1
_ROOT_NODE: Final = 0

_REMEMBERED_REPLIES: Final = 8
"""The number of answers to one history to compare with a repeated answer."""


@dataclass(slots=True)
class ShownCall(MessageToolCall):
    """A tool call that was shown."""

    lacks_arguments: bool = False
    result_key: str | None = None
    """The key of the result's span, if the result was shown."""
    arguments: bytes = b""
    """The canonical arguments of the call in a model's answer."""


class MessagePart(NamedTuple):
    """One piece of a message, which becomes a span if it is new.

    Attributes:
        piece: The piece.
        start: The time in Unix seconds, if the message has one.
        content: A number that pieces of equal content share. White space makes no difference.
    """

    piece: Piece
    start: float | None
    content: int


def normalized_text(text: str) -> str:
    """Return a text with single spaces, for the comparison of copies."""
    return " ".join(lasting_text(text).split())


def canonical_arguments(arguments: object) -> bytes:
    """Return the arguments of a call as bytes that are the same for equal arguments.

    A JSON text is equal to its value. The bytes are empty without arguments.
    """
    value = arguments
    if isinstance(arguments, str):
        try:
            value = load_json(arguments)
        except InvalidJSON:
            return normalized_text(arguments).encode("utf-8", "replace")
    return b"" if value in (None, {}, []) else canonical_bytes(value)


class Calls:
    """The tool calls shown so far.

    A model call here is a call in a model's answer. A tool's row is the record of its execution.

    Attributes:
        by_id: The shown calls by their ids.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, ShownCall] = {}
        self._model_calls: dict[tuple[str, bytes], deque[ShownCall]] = defaultdict(deque)
        """Calls in models' answers, by tool and arguments."""
        self._model_calls_by_tool: dict[str, deque[ShownCall]] = defaultdict(deque)
        self._row_calls_without_id: dict[tuple[str, bytes], deque[ShownCall]] = defaultdict(deque)
        """Calls shown by a tool's row without a call id, by tool and arguments."""
        self._row_call_by_id: dict[str, ShownCall] = {}
        """Calls shown by a tool's row, and not yet by a model's answer, by their ids."""

    def add_model_call(self, call: ShownCall, call_id: str | None, arguments: object) -> None:
        """Record a call in a model's answer, for the tool's row that may follow.

        Args:
            call: The call with the key of its span.
            call_id: The id that the model gave it.
            arguments: The arguments of the call.
        """
        if call_id is not None:
            self.by_id[call_id] = call
        call.arguments = canonical_arguments(arguments)
        if call.name is not None:
            self._model_calls[call.name, call.arguments].append(call)
            self._model_calls_by_tool[call.name].append(call)

    def add_row_call(self, call: ShownCall, call_id: str | None, arguments: object) -> None:
        """Record a call that a tool's row showed before any model's answer.

        Args:
            call: The call with the key of its span.
            call_id: The id of the call in the row.
            arguments: The input of the row.
        """
        if call_id is not None:
            self.by_id[call_id] = self._row_call_by_id[call_id] = call
        elif call.name is not None:
            self._row_calls_without_id[call.name, canonical_arguments(arguments)].append(call)

    def call_of_row(self, name: str, arguments: object, call_id: str | None) -> ShownCall | None:
        """Return the shown call that a tool's row carried out, and record the row's call id for it.

        It is the first of these calls (an open call has no result yet):

        - the call with the same id
        - the oldest open call of the tool with the same arguments
        - the oldest open call of the tool, if that call or the row has no arguments
        - the oldest open call of the tool with a part of the row's arguments

        Args:
            name: The name of the tool.
            arguments: The input of the row.
            call_id: The id of the call in the row.
        """
        if call_id is not None and call_id in self.by_id:
            return self.by_id[call_id]
        row_arguments = canonical_arguments(arguments)
        call = _oldest_open_call(self._model_calls.get((name, row_arguments)))
        if call is None:
            oldest_call = _oldest_open_call(self._model_calls_by_tool.get(name))
            if oldest_call is not None and (oldest_call.lacks_arguments or not row_arguments):
                call = oldest_call
            elif oldest_call is not None:
                oldest_calls = islice(self._model_calls_by_tool[name], _MOST_COMPARED_CALLS)
                open_calls = (each for each in oldest_calls if each.result_key is None)
                call = next(
                    (each for each in open_calls if _are_part_of(each.arguments, row_arguments)),
                    None,
                )
        if call is not None and call_id is not None:
            self.by_id[call_id] = call
        return call

    def pop_row_call(self, call_id: str | None) -> ShownCall | None:
        """Remove and return the call with an id that so far only a tool's row has shown."""
        return None if call_id is None else self._row_call_by_id.pop(call_id, None)

    def repeated_call(self, part: MessagePart) -> ShownCall | None:
        """Return the shown call that a call in a request's history repeats; None if it is new.

        It has the same id, or it is the oldest equal call from a tool's row without an id. The
        latter gets the id of ``part``.
        """
        piece = part.piece
        if piece.call_id is not None and piece.call_id in self.by_id:
            return self.by_id[piece.call_id]
        equal_calls = self._row_calls_without_id.get(
            (piece.name or "", canonical_arguments(piece.text))
        )
        if not equal_calls:
            return None
        call = equal_calls.popleft()
        if piece.call_id is not None:
            self.by_id[piece.call_id] = call
        return call


def _are_part_of(arguments: bytes, row_arguments: bytes) -> bool:
    """Return whether the arguments of a tool's row contain all of a call's arguments."""
    fields = object_in(arguments)
    row_value = json_in(row_arguments.decode("utf-8", "replace"))
    if not fields or row_value is None:
        return False
    # Some rows have only the values of the arguments.
    if isinstance(row_value, list):
        return all(value in row_value for value in fields.values())
    return fields.items() <= fields_of(row_value).items()


def _oldest_open_call(calls: deque[ShownCall] | None) -> ShownCall | None:
    """Return the first call without a result, and remove the answered calls before it."""
    while calls:
        if calls[0].result_key is None:
            return calls[0]
        calls.popleft()
    return None


class Parts:
    """The parts of messages, cached because many model calls repeat a message."""

    def __init__(self) -> None:
        self._cached_parts: dict[bytes, tuple[MessagePart, ...]] = {}
        self._number_by_content: dict[bytes, int] = {}

    def parts_of(self, message: Message) -> tuple[MessagePart, ...]:
        """Return the parts of a message."""
        message_digest = _content_digest(canonical_bytes(message))
        parts = self._cached_parts.get(message_digest)
        if parts is None:
            parts = tuple(self._read_parts(message))
            self._cached_parts[message_digest] = parts
        return parts

    def content_number(self, kind: SpanKind, text: str, name: str | None = None) -> int:
        """Return a number by which contents are compared; equal contents have equal numbers.

        Args:
            kind: The kind of span that has the content.
            text: The text of the span.
            name: The name of the tool, if the span is a call.
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
        next_number = len(self._number_by_content)
        return self._number_by_content.setdefault(_content_digest(data), next_number)

    def _read_parts(self, message: Message) -> Iterator[MessagePart]:
        """Yield the parts of a message; the default time of a part is the message's."""
        turn = turn_of(message)
        for piece in turn.pieces:
            start = turn.start if piece.start is None else piece.start
            content = self.content_number(piece.kind, piece.text, piece.name)
            yield MessagePart(piece, start, content)


def _content_digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


class NewPart(NamedTuple):
    """A part of a history that was not shown before.

    Attributes:
        part_index: The index of the part in the history.
        node: The node of the part in the tree; -1 for reasoning and prompts.
        call: The call that the part answers.
    """

    part_index: int
    node: int
    call: ShownCall | None


class ShownHistory:
    """All conversations of a run as one tree, for the search of new messages.

    A node of the tree is a part of a message. The path to it from the root is the conversation up
    to that part. The history of a model call follows the tree from the root:

    - Parts along a path of the tree are known.
    - Parts after the end of an earlier history or answer are new.
    - A shortened history leaves a path before its end. After that, a long text is known if any span
      has shown it. A short text is known if it also had the same neighbour before.
    - A system prompt is known to the agent for which it was shown.

    Attributes:
        shown_contents: The numbers of the contents of all spans so far.
    """

    def __init__(self, calls: Calls) -> None:
        self.shown_contents: set[int] = set()
        self._calls = calls
        self._end_node = _ROOT_NODE
        """The last node of the latest history."""
        self._end_content = _NO_CONTENT_NUMBER
        """The content of ``_end_node``."""
        self._shown_prompts: set[tuple[str, int]] = set()
        """Agents with the contents of their prompts."""
        self._child_nodes: dict[tuple[int, int], int] = {}
        """Nodes by the node before them and their content."""
        self._end_nodes: set[int] = set()
        """The last nodes of histories and answers."""
        self._neighbours: set[tuple[int, int]] = set()
        """Contents of turns, each with the content of the turn after it."""
        self._replies_by_node: dict[int, deque[tuple[MessagePart, int]]] = {}
        """The last parts of answers after a node, each with its own node."""
        self._call_by_node: dict[int, ShownCall] = {}
        """The shown tool calls by their nodes."""

    def new_request_parts(self, parts: Sequence[MessagePart], agent: str) -> Iterator[NewPart]:
        """Yield the new parts in the history of a model call, and add the history to the tree.

        If the caller shows a tool call, it must report the call by ``set_call`` before the next
        part.

        Args:
            parts: The whole history.
            agent: The agent that makes the model call.
        """
        node = _ROOT_NODE
        previous_content = _NO_CONTENT_NUMBER
        left_known_path = False
        left_in_middle = False
        recent_calls: OpenCalls[ShownCall] = OpenCalls()
        for part_index, part in enumerate(parts):
            if not _is_turn(part):
                if self._is_new_prompt_or_thought(part, agent):
                    yield NewPart(part_index, node=-1, call=None)
                continue
            call = self._pop_answered_call(part, recent_calls)
            child = self._child_nodes.get((node, part.content))
            if child is None and not left_known_path:
                child = self._node_of_reply(node, part)
            if child is None and not left_known_path:
                # All later parts are new if this path ended here. In its middle, some may be known.
                left_known_path = True
                left_in_middle = node not in self._end_nodes
            if child is None:
                child = self._get_or_add_child(node, part)
                is_known = left_in_middle and self._is_known_content(
                    previous_content, parts, part_index
                )
                if self._is_new_turn(part, child, call) and not is_known:
                    yield NewPart(part_index, child, call)

            if part.piece.kind is SpanKind.TOOL_CALL and child in self._call_by_node:
                recent_calls.add(self._call_by_node[child])
            self._neighbours.add((previous_content, part.content))
            node = child
            previous_content = part.content
        self._set_end(node, previous_content)

    def add_answer(self, parts: Sequence[MessagePart]) -> list[int]:
        """Add an answer after the last history in the tree; return the node of each part.

        Reasoning has no node of its own and gets the node of the part before it.
        """
        node = self._end_node
        previous_content = self._end_content
        nodes = []
        for part in parts:
            if _is_turn(part):
                child = self._get_or_add_child(node, part)
                replies = self._replies_by_node.setdefault(node, deque(maxlen=_REMEMBERED_REPLIES))
                replies.append((part, child))
                self._neighbours.add((previous_content, part.content))
                node = child
                previous_content = part.content
            nodes.append(node)
        self._end_nodes.add(node)
        return nodes

    def record_prompt(self, agent: str, content: int) -> bool:
        """Record a system prompt as shown; return whether it is new to the agent.

        Args:
            agent: The agent that has the prompt.
            content: The number of the prompt's content.
        """
        return add_new(self._shown_prompts, (agent, content))

    def set_call(self, node: int, call: ShownCall) -> None:
        """Record that the call at a node was shown.

        Args:
            node: The node.
            call: The call with the key of its span.
        """
        self._call_by_node[node] = call

    def _set_end(self, node: int, content: int) -> None:
        self._end_nodes.add(node)
        self._end_node = node
        self._end_content = content

    def _get_or_add_child(self, node: int, part: MessagePart) -> int:
        """Return the child of ``node`` for a part; create it if there is none."""
        return self._child_nodes.setdefault((node, part.content), len(self._child_nodes) + 1)

    def _is_new_prompt_or_thought(self, part: MessagePart, agent: str) -> bool:
        """Return whether a system prompt or reasoning is new; record a prompt as shown."""
        if part.piece.role is Role.SYSTEM:
            is_new = self.record_prompt(agent, part.content)
            return is_new and bool(part.piece.text.strip())
        return part.piece.kind is SpanKind.REASONING and part.content not in self.shown_contents

    def _pop_answered_call(
        self, part: MessagePart, recent_calls: OpenCalls[ShownCall]
    ) -> ShownCall | None:
        """Remove and return the open call that a result answers; None for any other part."""
        if part.piece.kind is not SpanKind.TOOL_RESULT:
            return None
        return recent_calls.pop_answered_call(part.piece, self._calls.by_id)

    def _node_of_reply(self, node: int, part: MessagePart) -> int | None:
        """Return the node of an earlier answer after ``node`` that a part repeats with changes.

        The node is recorded as the part's node too.
        """
        for reply, reply_node in reversed(self._replies_by_node.get(node, ())):
            if _is_same_part(reply, part):
                self._child_nodes[node, part.content] = reply_node
                return reply_node
        return None

    def _is_new_turn(self, part: MessagePart, node: int, call: ShownCall | None) -> bool:
        """Return whether a part at a new node needs a span.

        - A result needs one if its call has no result yet. Without a known call, it needs one if no
          span has its text, or if the text is short.
        - A call needs one if no span shows it. Otherwise the shown call is recorded for the node.
        - Any other part needs one.
        """
        if part.piece.kind is SpanKind.TOOL_RESULT:
            if call is not None:
                return call.result_key is None
            is_short = len(part.piece.text) < _UNMISTAKABLE_CHARS
            return is_short or part.content not in self.shown_contents
        if part.piece.kind is SpanKind.TOOL_CALL:
            shown_call = self._calls.repeated_call(part)
            if shown_call is not None:
                self._call_by_node[node] = shown_call
            return shown_call is None
        return True

    def _is_known_content(
        self, previous_content: int, parts: Sequence[MessagePart], part_index: int
    ) -> bool:
        """Return whether a span has shown the content of a part.

        A short text may occur twice. So it is known only beside the same part before or after it.
        """
        part = parts[part_index]
        next_index = part_index + 1
        next_content = parts[next_index].content if next_index < len(parts) else _NO_CONTENT_NUMBER
        is_unmistakable = len(part.piece.text) >= _UNMISTAKABLE_CHARS
        return part.content in self.shown_contents and (
            is_unmistakable
            or part.piece.kind is SpanKind.TOOL_CALL
            or (previous_content, part.content) in self._neighbours
            or (part.content, next_content) in self._neighbours
        )


def _is_turn(part: MessagePart) -> bool:
    """Return whether a part is no system prompt, no reasoning and no blank message."""
    if part.piece.role is Role.SYSTEM or part.piece.kind is SpanKind.REASONING:
        return False
    return part.piece.kind is not SpanKind.MESSAGE or bool(part.piece.text.strip())


def _is_same_part(reply: MessagePart, part: MessagePart) -> bool:
    """Return whether a part of a history repeats a part of an earlier reply.

    Calls are compared by their ids, else by their tools. Of two texts, one must contain the other.
    """
    if reply.piece.kind is not part.piece.kind:
        return False
    if reply.piece.kind is SpanKind.TOOL_CALL:
        if reply.piece.call_id is not None and part.piece.call_id is not None:
            return reply.piece.call_id == part.piece.call_id
        return reply.piece.name == part.piece.name
    if part.piece.role is Role.USER:
        return False
    reply_text = normalized_text(reply.piece.text)
    part_text = normalized_text(part.piece.text)
    return part_text in reply_text or reply_text in part_text

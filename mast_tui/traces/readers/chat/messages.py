"""The spans of the messages of a chat transcript, with results assigned to their calls."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from mast_tui.traces.index.document import StepList
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    Piece,
    Speaker,
    Turn,
    json_log_piece,
    result_piece,
    speaker_of,
)
from mast_tui.traces.readers.chat.turns import PLAIN_FIELDS, is_message, turn_of
from mast_tui.traces.readers.chat.values import start_of
from mast_tui.traces.readers.json_fields import (
    Fields,
    add_new,
    fields_of,
    identifier_in,
    located_items,
    name_in,
    object_in,
)
from mast_tui.traces.result_status import status_of_message

_UPDATE_BEGINNING: Final = re.compile(r'\{\s*"[^"\\]{1,80}"\s*:\s*\{\s*"messages"\s*:\s*\[')
_PLAIN_NODE_NAMES: Final = frozenset(
    {"agent", "assistant", "call_model", "model", "model_request", "tools"}
)
"""The nodes of LangGraph's prebuilt agents; these names are no names of agents."""

_CODE_RUN_NAME: Final = re.compile(r"(?P<tool>(?:\w{1,40}_)?execution)_(?P<outcome>success|error)")
"""The name of a message with the output of code that a LangGraph node ran."""


class StreamUpdates:
    """The new messages in the updates of a stream of LangGraph.

    An update is a JSON text with the messages of a node, some of which earlier updates have too.
    """

    def __init__(self) -> None:
        self._seen_names: set[str] = set()

    def turn_of_update(self, message: Fields) -> Turn | None:
        """Return the turn of an update; None for any other message."""
        content = message.get("content")
        update = object_in(content) if isinstance(content, str) and is_update(content) else None
        if update is None:
            return None
        name = name_in(message, "name", "source", "role") or ASSISTANT
        pieces, tokens, model = self._pieces_of_update(update, name)
        if pieces and pieces[0].kind is not SpanKind.TOOL_CALL:
            # Existing labels point to a key without a suffix.
            pieces[0] = replace(pieces[0], key_suffix="")
        return Turn(tuple(pieces), start_of(message), tokens, model)

    def _pieces_of_update(
        self, update: Fields, default_agent: str
    ) -> tuple[list[Piece], Tokens | None, str | None]:
        """Return the pieces of an update's new messages, and its last tokens and model."""
        pieces: list[Piece] = []
        tokens: Tokens | None = None
        model: str | None = None
        for node, node_update in update.items():
            messages = fields_of(node_update).get("messages")
            pointer = f"/content/{node}"
            if not isinstance(messages, list):
                pieces.append(json_log_piece(node_update, pointer, name=node))
                continue
            agent = default_agent if node in _PLAIN_NODE_NAMES else node
            for location, message in located_items(messages, f"{pointer}/messages"):
                if not isinstance(message, Mapping) or not is_message(message):
                    pieces.append(json_log_piece(message, location))
                    continue
                turn = turn_of(message)
                tokens = turn.tokens or tokens
                model = turn.model or model
                pieces += self._new_pieces(message, turn, agent, location)
        return pieces, tokens, model

    def _new_pieces(
        self, message: Fields, turn: Turn, agent: str, location: str
    ) -> Iterator[Piece]:
        """Yield the pieces of a message that no earlier update had."""
        kwargs = fields_of(message.get("kwargs"))
        message_id = identifier_in(message, "id") or identifier_in(kwargs, "id")
        if message_id is not None and not add_new(self._seen_names, f"message {message_id}"):
            return
        for piece in turn.pieces:
            name = f"{piece.kind} {piece.call_id}"
            if piece.call_id is not None and not add_new(self._seen_names, name):
                continue
            if piece.role is Role.AGENT and piece.agent == ASSISTANT:
                piece = replace(piece, agent=agent)
            yield replace(piece, key_suffix=location + piece.key_suffix)


def _turn_of_code_run(message: Fields) -> Turn | None:
    """Return the turn of a message with the output of code that a node ran."""
    content = message.get("content")
    name = message.get("name") or message.get("role")
    code_run = _CODE_RUN_NAME.fullmatch(name) if isinstance(name, str) else None
    if code_run is None or not isinstance(content, str):
        return None
    status = SpanStatus.OK if code_run["outcome"] == "success" else SpanStatus.ERROR
    piece = result_piece({}, content, "", name=code_run["tool"], status=status)
    return Turn((piece,), start_of(message))


def is_update(text: str) -> bool:
    """Return whether a text begins like an update: an object with a node's messages."""
    return text[:1] == "{" and _UPDATE_BEGINNING.match(text) is not None


@dataclass(slots=True)
class MessageToolCall:
    """A tool call that has a span; ``has_id`` is false if the call came without an id."""

    key: str
    agent: str
    name: str | None
    start: float | None = None
    has_id: bool = True


AnyCall = TypeVar("AnyCall", bound=MessageToolCall)


class OpenCalls(Generic[AnyCall]):
    """The calls without a result, oldest first."""

    def __init__(self) -> None:
        # A plain dict finds its first key slowly once many keys before it were removed.
        self._calls_by_key: OrderedDict[str, AnyCall] = OrderedDict()
        self._calls_by_name: dict[str | None, OrderedDict[str, AnyCall]] = defaultdict(OrderedDict)

    def add(self, call: AnyCall) -> None:
        """Add a call that waits for its result."""
        self._calls_by_key[call.key] = call
        self._calls_by_name[call.name][call.key] = call

    def close(self, call: AnyCall) -> None:
        """Remove a call that was answered."""
        self._calls_by_key.pop(call.key, None)
        self._calls_by_name[call.name].pop(call.key, None)

    def oldest(self, name: str | None) -> AnyCall | None:
        """Return the oldest open call of a tool, or of any tool if the name is None."""
        calls = self._calls_by_key if name is None else self._calls_by_name[name]
        return next(iter(calls.values()), None)

    def pop_answered_call(self, result: Piece, by_id: Mapping[str, AnyCall]) -> AnyCall | None:
        """Return the call that a result answers, and close it.

        A result without an id answers the oldest open call of its tool.

        Args:
            result: The result.
            by_id: The calls that have an id, open or not.
        """
        if result.call_id is None:
            call = self.oldest(result.name)
        else:
            call = by_id.get(result.call_id)
            if call is None and result.name is not None:
                # Some programs write ids only into results.
                oldest_of_tool = self.oldest(result.name)
                if oldest_of_tool is not None and not oldest_of_tool.has_id:
                    call = oldest_of_tool
        if call is not None:
            self.close(call)
        return call


class MessageMapper:
    """Adds the spans of one message after the other, and assigns tool results to their calls.

    ``add`` accepts a message of any known shape; ``add_turn`` and ``add_piece`` accept pieces.

    Args:
        steps: The list to which the spans are added.
        by_name: Whether the ``name`` of a message is its speaker (see ``speaks_by_name``).
        prefix: The text before the key of a message in its location in the file.

    Attributes:
        problems: The problems of single messages.
        model: The first model that a message names.
        calls: The tool calls by their ids.
    """

    def __init__(self, steps: StepList, *, by_name: bool = False, prefix: str = "") -> None:
        self.problems: list[Problem] = []
        self.model: str | None = None
        self.calls: dict[str, MessageToolCall] = {}
        self._steps = steps
        self._by_name = by_name
        self._prefix = prefix
        self._open_calls: OpenCalls[MessageToolCall] = OpenCalls()
        self._early_result_by_call_id: dict[str, str] = {}
        """The keys of results that came before their calls."""
        self._last_instructions: str | None = None
        """The text of the last instructions, of which repetitions are left out."""
        self._token_span_key: str | None = None
        """The key of the span that gets the tokens of the next count."""
        self._speaker_by_role: dict[str, Speaker] = {}
        self._stream_updates = StreamUpdates()

    def add(self, message: object, key: str) -> None:
        """Add the spans of a message.

        Args:
            message: The message.
            key: The key of the message: its JSON pointer or its line in the source.
        """
        if not isinstance(message, Mapping):
            self._add_message_piece(json_log_piece(message), key, None)
            self.problems.append(Problem(self._prefix + key, "not a message but a bare value"))
            return
        if message.keys() <= PLAIN_FIELDS and self._add_plain_message(message, key):
            return
        turn = (
            _turn_of_code_run(message)
            or self._stream_updates.turn_of_update(message)
            or turn_of(message, self._by_name)
        )
        # If this message adds no span, its tokens must not go to an earlier span.
        self._token_span_key = None
        self.add_turn(turn, key)

    def add_turn(self, turn: Turn, key: str, location: str | None = None) -> None:
        """Add the spans of a message from its pieces.

        Args:
            turn: The pieces, with the tokens of the model call. The tokens of a turn without pieces
                belong to the previous message.
            key: The key of the message.
            location: The location of the message in its source; by default the key.
        """
        if turn.pieces:
            self._token_span_key = None
        for piece in turn.pieces:
            self._add_message_piece(piece, key, turn.start, location)
        self.model = self.model or turn.model
        self.count_tokens(turn.tokens)

    def count_tokens(self, tokens: Tokens | None) -> None:
        """Set the tokens of a model call on the last span of the last message."""
        if tokens is not None and self._token_span_key is not None:
            self._steps.amend(self._token_span_key, tokens=tokens)

    def _add_plain_message(self, message: Fields, key: str) -> bool:
        """Add the span of a message that is only a role and a text; return False for others.

        Most messages are of this kind, so they have this faster way.
        """
        role = message.get("role")
        text = message.get("content")
        if not isinstance(role, str) or not isinstance(text, str):
            return False
        if is_update(text):  # the text holds messages of a node
            return False
        speaker = self._speaker_by_role.get(role) or speaker_of(message)
        if speaker is None or speaker.role is Role.TOOL:
            return False
        self._speaker_by_role[role] = speaker
        self._token_span_key = self._steps.add(
            key or "/",
            speaker.kind,
            speaker.role,
            speaker.agent,
            text,
            place=self._prefix + (key or "/"),
            status=status_of_message(speaker.agent, text),
        )
        return True

    def _add_message_piece(
        self, piece: Piece, key: str, start: float | None, location: str | None = None
    ) -> None:
        """Add the span of a piece, unless it repeats instructions; a result goes under its call."""
        if piece.is_instructions:
            if piece.text == self._last_instructions:
                return
            self._last_instructions = piece.text
        start = start if piece.start is None else piece.start
        call = self.pop_answered_call(piece) if piece.kind is SpanKind.TOOL_RESULT else None
        if call is not None:
            self._set_end(call, start)
        self.add_piece(piece, key, location=location, start=start, call=call)

    def _set_end(self, call: MessageToolCall, end: float | None) -> None:
        """Set the end of a call, unless a time is unknown or the end is before the start."""
        if end is not None and call.start is not None and end >= call.start:
            self._steps.amend(call.key, end=end)

    def add_piece(
        self,
        piece: Piece,
        key: str,
        *,
        location: str | None = None,
        start: float | None = None,
        call: MessageToolCall | None = None,
    ) -> None:
        """Add the span of a piece.

        Args:
            piece: The piece; the id of a call or a result becomes its key.
            key: The key of the message that the piece is part of, before ``piece.key_suffix``.
            location: The location of the piece in its source, if it is not the key.
            start: The time in Unix seconds.
            call: The call that a result answers, which becomes its parent.
        """
        span_key = (key + piece.key_suffix) or "/"
        location = self._prefix + (span_key if location is None else location)
        if piece.problem:
            self.problems.append(Problem(location, piece.problem))
        agent = piece.agent if call is None else call.agent
        name = piece.name if call is None else call.name or piece.name
        added_key = self._steps.add(
            piece.call_span_key or span_key,
            piece.kind,
            piece.role,
            agent,
            piece.text,
            place=location,
            name=name,
            parent=None if call is None else call.key,
            start=start,
            status=piece.status,
        )
        # The tokens belong to the model's call, so a result has them only until another piece
        # comes.
        if piece.kind is not SpanKind.TOOL_RESULT or self._token_span_key is None:
            self._token_span_key = added_key
        if piece.kind is SpanKind.TOOL_CALL:
            has_id = piece.call_id is not None
            new_call = MessageToolCall(added_key, agent, name, start, has_id)
            self._record_call(new_call, piece.call_id)
        elif piece.kind is SpanKind.TOOL_RESULT and call is None and piece.call_id is not None:
            self._early_result_by_call_id[piece.call_id] = added_key

    def _record_call(self, call: MessageToolCall, call_id: str | None) -> None:
        """Record a call, and assign a result to it that came before the call."""
        if call_id is not None:
            self.calls[call_id] = call
        early_result_key = self._early_result_by_call_id.pop(call_id or "", None)
        if early_result_key is None:
            self._open_calls.add(call)
        else:
            self._steps.move_after_call(early_result_key, call.key)

    def pop_answered_call(self, result: Piece) -> MessageToolCall | None:
        """Return the call that a result answers, and close it."""
        return self._open_calls.pop_answered_call(result, self.calls)

    @property
    def has_open_call(self) -> bool:
        """True if a call has no result yet."""
        return self._open_calls.oldest(None) is not None

    def forget_open_calls(self) -> None:
        """Close all calls; later results find a call only by its id."""
        self._open_calls = OpenCalls()

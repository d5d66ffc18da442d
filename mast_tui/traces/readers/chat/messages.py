"""The messages of a chat transcript to spans, one after the other, calls tied to their results.

``turns`` has the shapes of messages.
"""

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
from mast_tui.traces.readers.chat.turns import BARE, is_message, turn_of
from mast_tui.traces.readers.chat.values import start_of
from mast_tui.traces.readers.json_fields import Fields, fields_of, identifier_in, name_in, object_in
from mast_tui.traces.result_status import status_of_message

_UPDATE: Final = re.compile(r'\{\s*"[^"\\]{1,80}"\s*:\s*\{\s*"messages"\s*:\s*\[')
_NODES: Final = frozenset({"agent", "assistant", "call_model", "model", "model_request", "tools"})
"""Names of nodes that LangGraph's own agents have, which name no agent."""

_RAN: Final = re.compile(r"(?P<tool>(?:\w{1,40}_)?execution)_(?P<went>success|error)")
"""The names under which the code is logged that a node ran."""


class StreamUpdates:
    """Takes messages apart that hold updates; what was passed on already is left out."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def turn(self, message: Fields) -> Turn | None:
        """Take a message apart.

        Args:
            message: Any message of a chat.

        Returns:
            What the updates in it tell, or what came of code that a node ran; None for a message
            that is neither.
        """
        content = message.get("content")
        if not isinstance(content, str):
            return None
        name = message.get("name") or message.get("role")
        if isinstance(name, str) and (ran := _RAN.fullmatch(name)) is not None:
            status = SpanStatus.OK if ran["went"] == "success" else SpanStatus.ERROR
            piece = result_piece({}, content, "", name=ran["tool"], status=status)
            return Turn((piece,), start_of(message))
        if not is_update(content):
            return None
        name = name_in(message, "name", "source", "role") or ASSISTANT
        update = object_in(content)
        if update is None:
            return None
        pieces, tokens, model = self._pieces(update, name)
        if pieces and pieces[0].kind is not SpanKind.TOOL_CALL:
            pieces[0] = replace(
                pieces[0], key_suffix=""
            )  # labels may point to the message as a whole
        return Turn(tuple(pieces), start_of(message), tokens, model)

    def _pieces(self, update: Fields, outer: str) -> tuple[list[Piece], Tokens | None, str | None]:
        """Return the pieces of the new messages of an update, with the tokens and the model."""
        pieces: list[Piece] = []
        tokens: Tokens | None = None
        model: str | None = None
        for node, added in update.items():
            messages = fields_of(added).get("messages")
            pointer = f"/content/{node}"
            if not isinstance(messages, list):
                pieces.append(json_log_piece(added, pointer, name=node))
                continue
            agent = outer if node in _NODES else node
            for number, message in enumerate(messages):
                location = f"{pointer}/messages/{number}"
                if not isinstance(message, Mapping) or not is_message(message):
                    pieces.append(json_log_piece(message, location))
                    continue
                turn = turn_of(message)
                tokens = turn.tokens or tokens
                model = turn.model or model
                pieces += self._new(message, turn, agent, location)
        return pieces, tokens, model

    def _new(self, message: Fields, turn: Turn, agent: str, location: str) -> Iterator[Piece]:
        """Yield the pieces of a message that no update had before."""
        kwargs = fields_of(message.get("kwargs"))
        message_id = identifier_in(message, "id") or identifier_in(kwargs, "id")
        if message_id is not None and self._is_known(f"message {message_id}"):
            return
        for piece in turn.pieces:
            if piece.call_id is not None and self._is_known(f"{piece.kind} {piece.call_id}"):
                continue
            if piece.role is Role.AGENT and piece.agent == ASSISTANT:
                piece = replace(piece, agent=agent)
            yield replace(piece, key_suffix=location + piece.key_suffix)

    def _is_known(self, name: str) -> bool:
        is_known = name in self._seen
        self._seen.add(name)
        return is_known


def is_update(text: str) -> bool:
    """Tell an update by how it begins."""
    return text[:1] == "{" and _UPDATE.match(text) is not None


@dataclass(slots=True)
class MessageToolCall:
    """A tool call that has a span; ``has_id`` is false where its source gave it no id."""

    key: str
    agent: str
    name: str | None
    start: float | None = None
    has_id: bool = True


AnyCall = TypeVar("AnyCall", bound=MessageToolCall)


class OpenCalls(Generic[AnyCall]):
    """The calls that no result has answered yet, oldest first, by the tool's name and all."""

    def __init__(self) -> None:
        # Ordered: a plain dict looks for its first key past all that were taken out before it.
        self._all: OrderedDict[str, AnyCall] = OrderedDict()
        self._named: dict[str | None, OrderedDict[str, AnyCall]] = defaultdict(OrderedDict)

    def add(self, call: AnyCall) -> None:
        """Let a call wait for its result."""
        self._all[call.key] = self._named[call.name][call.key] = call

    def close(self, call: AnyCall) -> None:
        """Let a call that was answered wait no longer."""
        self._all.pop(call.key, None)
        self._named[call.name].pop(call.key, None)

    def oldest(self, name: str | None) -> AnyCall | None:
        """Return the call of this tool, or of any, that has waited longest."""
        calls = self._all if name is None else self._named[name]
        return next(iter(calls.values()), None)

    def pop_answered(self, result: Piece, by_id: Mapping[str, AnyCall]) -> AnyCall | None:
        """Return the call that a result answers, and close it.

        It is the call of the same id, else the oldest open one of the same name. Some programs give
        ids to results alone: those answer calls without an id.

        Args:
            result: The result.
            by_id: The calls that have an id, open or not.
        """
        if result.call_id is None:
            call = self.oldest(result.name)
        else:
            call = by_id.get(result.call_id)
            named = None if call or result.name is None else self.oldest(result.name)
            if named is not None and not named.has_id:
                call = named
        if call is not None:
            self.close(call)
        return call


class MessageMapper:
    """Adds the spans of one message after the other, and ties tool results to their calls.

    ``add`` takes a message of any shape that ``pieces`` knows. A format that knows more of its
    messages takes them apart itself and gives the pieces to ``put``. ``prefix`` goes before the key
    of a message to make its location in the file. With ``by_name`` a message's ``name`` says who
    speaks (see ``speaks_by_name``). ``calls`` are the tool calls by id; ``model`` is the first
    model that a message names.
    """

    def __init__(self, steps: StepList, *, by_name: bool = False, prefix: str = "") -> None:
        self.problems: list[Problem] = []
        self.model: str | None = None
        self.calls: dict[str, MessageToolCall] = {}
        self._steps = steps
        self._by_name = by_name
        self._prefix = prefix
        self._open: OpenCalls[MessageToolCall] = OpenCalls()
        self._early_results: dict[str, str] = {}
        self._standing: str | None = None
        self._last: str | None = None
        self._speakers: dict[str, Speaker] = {}
        self._updates = StreamUpdates()

    def add(self, message: object, key: str) -> None:
        """Add the spans of a message.

        Args:
            message: The message.
            key: Its JSON pointer or line in the source.
        """
        if not isinstance(message, Mapping):
            self._add_piece(json_log_piece(message), key, None)
            self.problems.append(Problem(self._prefix + key, "not a message but a bare value"))
            return
        if message.keys() <= BARE and self._add_plain(message, key):
            return
        turn = self._updates.turn(message) or turn_of(message, self._by_name)
        self._last = None
        self.add_turn(turn, key)

    def add_turn(self, turn: Turn, key: str, location: str | None = None) -> None:
        """Add the spans of a message that was taken apart.

        Args:
            turn: The pieces, with the tokens of the model call. Tokens without pieces are those of
                the message before.
            key: The key of the message.
            location: The location of the message in its source; None where that is the key.
        """
        if turn.pieces:
            self._last = None
        for piece in turn.pieces:
            self._add_piece(piece, key, turn.start, location)
        self.model = self.model or turn.model
        self.count_tokens(turn.tokens)

    def count_tokens(self, tokens: Tokens | None) -> None:
        """Give the tokens of a model call to the last span of the message that was added last."""
        if tokens is not None and self._last is not None:
            self._steps.amend(self._last, tokens=tokens)

    def _add_plain(self, message: Fields, key: str) -> bool:
        """Add a message that is a role and a text, as most are; whether it was that.

        It has one piece and nothing around it, which need not be looked for.
        """
        role = message.get("role")
        text = message.get("content")
        if not isinstance(role, str) or not isinstance(text, str) or is_update(text):
            return False
        speaker = self._speakers.get(role) or speaker_of(message)
        if speaker is None or speaker.role is Role.TOOL:
            return False
        self._speakers[role] = speaker
        self._last = self._steps.add(
            key or "/",
            speaker.kind,
            speaker.role,
            speaker.agent,
            text,
            place=self._prefix + (key or "/"),
            status=status_of_message(speaker.agent, text),
        )
        return True

    def _add_piece(
        self, piece: Piece, key: str, start: float | None, location: str | None = None
    ) -> None:
        """Add a piece and tie it to the call that it answers, but no repeated instructions."""
        if piece.standing:
            if piece.text == self._standing:
                return
            self._standing = piece.text
        start = start if piece.start is None else piece.start
        call = self.pop_answered(piece) if piece.kind is SpanKind.TOOL_RESULT else None
        began = None if call is None else call.start
        if call is not None and start is not None and began is not None and start >= began:
            self._steps.amend(call.key, end=start)
        self.put(piece, key, location=location, start=start, call=call)

    def put(
        self,
        piece: Piece,
        key: str,
        *,
        location: str | None = None,
        start: float | None = None,
        call: MessageToolCall | None = None,
    ) -> str:
        """Add the span of a piece.

        Args:
            piece: The piece; a call or a result that has an id goes by that.
            key: The key of the message that the piece is part of; ``piece.key_suffix`` follows on
                it.
            location: The location of the piece in its source, where it is not the key.
            start: The time in Unix seconds.
            call: The call that a result answers; the result belongs to it.

        Returns:
            The key of the span.
        """
        pointer = key + piece.key_suffix or "/"
        location = self._prefix + (pointer if location is None else location)
        if piece.problem:
            self.problems.append(Problem(location, piece.problem))
        agent = piece.agent
        name = piece.name
        parent = None
        if call is not None:
            agent = call.agent
            name = call.name or name
            parent = call.key
        if piece.call_id is not None:
            pointer = f"{piece.call_id}:{'call' if piece.kind is SpanKind.TOOL_CALL else 'result'}"
        self._last = self._steps.add(
            pointer,
            piece.kind,
            piece.role,
            agent,
            piece.text,
            place=location,
            name=name,
            parent=parent,
            start=start,
            status=piece.status,
        )
        if piece.kind is SpanKind.TOOL_CALL:
            new_call = MessageToolCall(self._last, agent, name, start, piece.call_id is not None)
            early = self._early_results.pop(piece.call_id or "", None)
            if early is None:
                self._open.add(new_call)
            else:
                self._steps.move_after_call(early, new_call.key)
            if piece.call_id is not None:
                self.calls[piece.call_id] = new_call
        elif piece.kind is SpanKind.TOOL_RESULT and call is None and piece.call_id is not None:
            self._early_results[piece.call_id] = self._last
        return self._last

    def pop_answered(self, result: Piece) -> MessageToolCall | None:
        """Return the call that a result answers, and close it."""
        return self._open.pop_answered(result, self.calls)

    @property
    def waits(self) -> bool:
        """True if a call has no result yet."""
        return self._open.oldest(None) is not None

    def forget_open_calls(self) -> None:
        """Let no result answer a call that was made so far, unless it names that by its id."""
        self._open = OpenCalls()

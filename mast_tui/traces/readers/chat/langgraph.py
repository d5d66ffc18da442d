"""Updates of a LangGraph stream that were logged as the text of messages, and what its nodes ran.

Such a text is ``{"agent": {"messages": […]}}``: by the node's name what it added to the state. The
messages in it are LangChain's, and come again wherever a graph around the node passes them on.
Code that a node runs itself is logged as a user's message under a name such as
``python_code_execution_error``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    Piece,
    Turn,
    is_message,
    noted,
    result_piece,
    turn_of,
)
from mast_tui.traces.readers.chat.values import start_of
from mast_tui.traces.readers.json_fields import Fields, fields_of, identifier_in, name_in, object_in

_UPDATE: Final = re.compile(r'\{\s*"[^"\\]{1,80}"\s*:\s*\{\s*"messages"\s*:\s*\[')
_NODES: Final = frozenset({"agent", "assistant", "call_model", "model", "model_request", "tools"})
"""Names of nodes that LangGraph's own agents have, which name no agent."""

_RAN: Final = re.compile(r"(?P<tool>(?:\w{1,40}_)?execution)_(?P<went>success|error)")
"""Under which names code is logged that a node ran."""


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
        found, tokens, model = self._pieces(update, name)
        if found and found[0].kind is not SpanKind.TOOL_CALL:
            found[0] = replace(found[0], at="")  # labels may point to the message as a whole
        return Turn(tuple(found), start_of(message), tokens, model)

    def _pieces(self, update: Fields, outer: str) -> tuple[list[Piece], Tokens | None, str | None]:
        found: list[Piece] = []
        tokens: Tokens | None = None
        model: str | None = None
        for node, added in update.items():
            messages = fields_of(added).get("messages")
            at = f"/content/{node}"
            if not isinstance(messages, list):
                found.append(noted(added, at, name=node))
                continue
            agent = outer if node in _NODES else node
            for number, message in enumerate(messages):
                place = f"{at}/messages/{number}"
                if not isinstance(message, Mapping) or not is_message(message):
                    found.append(noted(message, place))
                    continue
                turn = turn_of(message)
                tokens, model = turn.tokens or tokens, turn.model or model
                found += self._new(message, turn, agent, place)
        return found, tokens, model

    def _new(self, message: Fields, turn: Turn, agent: str, place: str) -> Iterator[Piece]:
        """The pieces of a message that was not passed on before, by whoever wrote it."""
        own = identifier_in(message, "id") or identifier_in(fields_of(message.get("kwargs")), "id")
        if own is not None and self._is_known(f"message {own}"):
            return
        for piece in turn.pieces:
            if piece.call_id is not None and self._is_known(f"{piece.kind} {piece.call_id}"):
                continue
            if piece.role is Role.AGENT and piece.agent == ASSISTANT:
                piece = replace(piece, agent=agent)
            yield replace(piece, at=place + piece.at)

    def _is_known(self, name: str) -> bool:
        known = name in self._seen
        self._seen.add(name)
        return known


def is_update(text: str) -> bool:
    """Tell an update by how it begins."""
    return text[:1] == "{" and _UPDATE.match(text) is not None

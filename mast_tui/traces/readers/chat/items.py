"""OpenAI's response items, which are no messages: reasoning, calls and outputs by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.fields import Fields, fields_of, first_in, kind_of
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    Piece,
    call_piece,
    noted,
    result_piece,
    said,
    status_of_code,
)
from mast_tui.traces.readers.chat.text import output_text, thought_text

_CALLS: Final = frozenset(
    {
        "apply_patch_call",
        "code_interpreter_call",
        "computer_call",
        "custom_tool_call",
        "file_search_call",
        "function_call",
        "image_generation_call",
        "local_shell_call",
        "mcp_call",
        "shell_call",
        "tool_search_call",
        "web_search_call",
    }
)
_NOTES: Final = frozenset(
    {"mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction"}
)
_OUTPUT: Final = "_output"
_OUTPUT_FIELDS: Final = ("output", "results", "outputs", "result")
"""Where an item that is call and result in one keeps the result."""

_ARGUMENTS: Final = ("arguments", "input", "action")
_BESIDE_ARGUMENTS: Final = frozenset(
    {"type", "id", "call_id", "name", "status", "error", "container_id", *_OUTPUT_FIELDS}
)


def is_item(message: Fields) -> bool:
    """Whether a JSON object is a response item other than a message."""
    kind = kind_of(message)
    if kind == "reasoning":
        return "summary" in message or "encrypted_content" in message
    return kind in _NOTES or kind in _CALLS or _is_output(kind)


def item_pieces(item: Fields) -> Iterator[Piece]:
    """The pieces of a response item: one, or two where it holds a call with its result."""
    kind = kind_of(item)
    if kind == "reasoning":
        yield said(Role.AGENT, ASSISTANT, _thought(item), kind=SpanKind.REASONING)
    elif kind in _NOTES:
        yield noted(item, name=kind)
    elif kind in _CALLS:
        yield from _call(item, kind)
    else:
        output = first_in(item, "output", "tools")
        yield result_piece(item, _text(output), "", status=_status(output))


def _is_output(kind: str) -> bool:
    return kind == "tool_search_output" or kind.removesuffix(_OUTPUT) in _CALLS


def _status(output: object) -> SpanStatus | None:
    """How the commands of a shell went that lists them with their exit codes; None if unknown."""
    found = None
    for part in output if isinstance(output, list) else ():
        outcome = fields_of(fields_of(part).get("outcome"))
        status = status_of_code(outcome.get("exit_code"))
        if status is SpanStatus.ERROR or outcome.get("type") == "timeout":
            return SpanStatus.ERROR
        found = found if status is SpanStatus.UNKNOWN else status
    return found


def _thought(item: Fields) -> str:
    texts = (content_text(item.get("summary")), content_text(item.get("content")))
    return "\n".join(text for text in texts if text) or (
        thought_text(item) if as_text(item.get("encrypted_content")) else ""
    )


def _call(item: Fields, kind: str) -> Iterator[Piece]:
    piece = call_piece(item, "", ASSISTANT, name=kind.removesuffix("_call"))
    if not any(item.get(field) is not None for field in _ARGUMENTS):
        rest = {name: value for name, value in item.items() if name not in _BESIDE_ARGUMENTS}
        if rest:
            piece = call_piece({**item, "arguments": rest}, "", ASSISTANT, name=piece.name)
    yield piece
    error = item.get("error")
    output = first_in(item, *_OUTPUT_FIELDS)
    if output is None and error is None:
        return
    is_picture = kind == "image_generation_call" and isinstance(output, str)
    yield result_piece(
        item,
        "[image]" if is_picture else _text(error if output is None else output),
        "/output" if output is not None else "/error",
        name=piece.name,
        call_id=piece.call_id,
        status=SpanStatus.ERROR if error is not None else None,
    )


def _text(output: object) -> object:
    """The logs and texts of a tool that lists what it gave back."""
    if isinstance(output, list):
        texts = [output_text(_said(part)) for part in output]
        return "\n".join(text for text in texts if text)
    return output


def _said(part: object) -> object:
    return part["logs"] if isinstance(part, Mapping) and "logs" in part else part

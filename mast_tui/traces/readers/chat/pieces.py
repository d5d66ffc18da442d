"""The pieces and speakers of a message, from its content in the spelling of every vendor.

A piece is a part of a message that becomes one span. Adjacent texts, pictures and files make one
piece; each call, result and thought is a piece. ``_MAKER_BY_TYPE`` has the parts with a ``type``,
``_MAKER_BY_FIELD`` the parts of Gemini and Bedrock, which are recognised by a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.values import (
    known_part_text,
    message_text,
    output_text,
    thought_text,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    flag_in,
    identifier_in,
    items_of,
    kind_of,
    name_in,
    name_set,
    names,
    snake_case,
    snake_fields,
    text_in,
)
from mast_tui.traces.result_status import status_of_code, status_of_message, worst_status

ASSISTANT: Final = "assistant"
"""The agent of a model's message without a name."""

_ARGUMENT_FIELDS: Final = (
    "arguments",
    "arguments_json",
    "args",
    "input",
    "action",
    "parameters",
    "server_tool_call",
)
_CALL_ID_FIELDS: Final = names("call_id id tool_call_id toolCallId toolUseId tool_use_id")
_RESULT_ID_FIELDS: Final = names("tool_call_id tool_use_id call_id toolCallId toolUseID toolUseId")
_TYPES_WITH_CALL_ID: Final = name_set("""
    tool_call_response server_tool_call_response local_shell_call_output
""")
"""The types of results that have the id of the call in ``id``."""

_ERROR_TYPE_ENDS: Final = ("_error", "error-text", "error-json")
_TOOL_NAME_FIELDS: Final = ("name", "toolName", "tool_name", "tool")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message that becomes one span, before its key is known.

    Attributes:
        key_suffix: The end of the span's key, after the key of the message.
        call_id: The id that a call and its result share.
        start: The time of the piece, if it differs from the message's time.
        is_instructions: Whether the text is instructions, which are shown only when they change.
        problem: The description of a defect of the piece.
    """

    kind: SpanKind
    role: Role
    agent: str
    text: str
    key_suffix: str = ""
    name: str | None = None
    call_id: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    start: float | None = None
    is_instructions: bool = False
    problem: str | None = None

    @property
    def call_span_key(self) -> str | None:
        """The key of the span of a call or result, from its id; None without an id."""
        if self.call_id is None:
            return None
        return f"{self.call_id}:{'call' if self.kind is SpanKind.TOOL_CALL else 'result'}"


@dataclass(frozen=True, slots=True)
class Turn:
    """The pieces of a message, with the time, the tokens and the model of its model call."""

    pieces: tuple[Piece, ...]
    start: float | None = None
    tokens: Tokens | None = None
    model: str | None = None


def json_log_piece(value: object, key_suffix: str = "", *, name: str | None = None) -> Piece:
    """Return the piece of a log entry that shows a value as JSON.

    Args:
        value: The value.
        key_suffix: The end of the span's key, after the key of the message.
        name: The name of the log entry.
    """
    return Piece(SpanKind.LOG, Role.LOG, "log", dump_text(value), key_suffix, name=name)


def log_piece(text: str, name: str | None = None, *, failed: bool = False) -> Piece:
    """Return the piece of a log entry with a text.

    Args:
        text: The text.
        name: The name of the log entry.
        failed: Whether the event is an error.
    """
    status = SpanStatus.ERROR if failed else SpanStatus.UNKNOWN
    return Piece(SpanKind.LOG, Role.LOG, "log", text, name=name, status=status)


def call_piece(call: object, key_suffix: str, agent: str, *, name: str | None = None) -> Piece:
    """Return the piece of a tool call in any vendor's spelling.

    Args:
        call: The call.
        key_suffix: The end of the span's key, after the key of the message.
        agent: The agent that calls.
        name: The name of the tool if the call itself has none.
    """
    if not isinstance(call, Mapping):
        return replace(json_log_piece(call, key_suffix), problem="not a tool call but a bare value")
    # OpenAI has the name and the arguments in a nested object.
    nested_objects = (call.get("function"), call.get("custom"))
    function: Fields = next(
        (nested for nested in nested_objects if isinstance(nested, Mapping)), call
    )
    return Piece(
        SpanKind.TOOL_CALL,
        Role.AGENT,
        agent,
        dump_text(first_in(function, *_ARGUMENT_FIELDS)),
        key_suffix,
        name=name_in(function, *_TOOL_NAME_FIELDS) or name or name_in(call, "type"),
        call_id=identifier_in(call, *_CALL_ID_FIELDS),
    )


def result_piece(
    result: Fields,
    content: object,
    key_suffix: str,
    *,
    name: str | None = None,
    call_id: str | None = None,
    status: SpanStatus = SpanStatus.UNKNOWN,
) -> Piece:
    """Return the piece of a tool's result.

    Args:
        result: The message or block of the result; empty if there is none.
        content: The output of the tool.
        key_suffix: The end of the span's key, after the key of the message.
        name: The name of the tool; by default the one in ``result``.
        call_id: The id of the call; by default the one in ``result``.
        status: The status of the call; by default the one in ``result``.
    """
    text = output_text(content)
    call_id = call_id or identifier_in(result, *_RESULT_ID_FIELDS)
    call_id = call_id or identifier_in(fields_of(result.get("origin")), "id")  # as Haystack writes
    if call_id is None and kind_of(result) in _TYPES_WITH_CALL_ID:
        call_id = identifier_in(result, "id")
    tool_name = name or name_in(result, *_TOOL_NAME_FIELDS)
    return Piece(
        SpanKind.TOOL_RESULT,
        Role.TOOL,
        tool_name or "tool",
        text,
        key_suffix,
        name=tool_name,
        call_id=call_id,
        status=_status_of_result(result, content) if status is SpanStatus.UNKNOWN else status,
    )


def _status_of_result(result: Fields, content: object) -> SpanStatus:
    """Return the status in the fields of a tool's result."""
    if (flag := flag_in(result, "is_error", "isError", "error")) is not None:
        return SpanStatus.ERROR if flag else SpanStatus.OK
    status = result.get("status")
    if status in ("error", "failed", "failure"):
        return SpanStatus.ERROR
    for fields in (result, result.get("metadata"), result.get("extra"), content):
        if isinstance(fields, Mapping):
            exit_code = first_in(fields, "exit_code", "returncode", "return_code")
            exit_status = status_of_code(exit_code)
            if exit_status is not SpanStatus.UNKNOWN:
                return exit_status
            type_name = fields.get("type")
            if isinstance(type_name, str) and type_name.endswith(_ERROR_TYPE_ENDS):
                return SpanStatus.ERROR
    if status in ("ok", "success"):
        return SpanStatus.OK
    # In Microsoft's Agent Framework, each command has an exit code.
    exit_codes = (fields_of(item).get("exit_code") for item in items_of(content))
    return worst_status(*map(status_of_code, exit_codes))


_ROLE_BY_NAME: Final[Mapping[str, Role]] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "human": Role.USER,
    "tool": Role.TOOL,
    "function": Role.TOOL,
    "tool_result": Role.TOOL,
    "toolresult": Role.TOOL,
    "tool-response": Role.TOOL,
    "function_response": Role.TOOL,
    "observation": Role.TOOL,
    "ipython": Role.TOOL,
}
_MODEL_NAMES: Final = frozenset({"gpt", "ai", "model", "chatgpt", "bard", "bing", "bot"})
"""The role names by which vendors call the model; its agent is then ``assistant``."""
_USER_NAMES: Final = frozenset({"user", "human", "user_proxy", "userproxy", "customer"})
_ACTOR_ROLE_NAME: Final = re.compile(r"(?P<actor>.*\S)\s*\((?P<purpose>[^()]*)\)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Speaker:
    """The agent and the role of a message; ``thinks`` is true if the message is a thought."""

    agent: str
    role: Role
    thinks: bool = False

    @property
    def kind(self) -> SpanKind:
        """The kind of a span with a text of this speaker."""
        return SpanKind.REASONING if self.thinks else SpanKind.MESSAGE

    def piece(self, text: str, key_suffix: str = "", *, kind: SpanKind = SpanKind.MESSAGE) -> Piece:
        """Return the piece of a text of this speaker.

        Args:
            text: The text.
            key_suffix: The end of the span's key, after the key of the message.
            kind: The kind of span that it becomes.
        """
        status = status_of_message(self.agent, text)
        return Piece(kind, self.role, self.agent, text, key_suffix, status=status)


THE_MODEL: Final = Speaker(ASSISTANT, Role.AGENT)


def speaks_by_name(messages: Sequence[object]) -> bool:
    """Return whether the speaker of each message is its ``name``, as in transcripts of AG2.

    There ``role`` is only the view of one agent, so it does not tell the speaker.
    """
    names: set[str] = set()
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") in ("system", "developer"):
            continue
        name = as_text(message.get("name"))
        is_result = message.get("role") in ("tool", "function")
        if name is None or is_result:
            return False
        names.add(name)
    return len(names) > 1


def speaker_of(message: Fields, by_name: bool = False) -> Speaker | None:
    """Return the speaker of a chat message; None if the message names none.

    Args:
        message: The message.
        by_name: Whether the speaker is ``name`` and not ``role``; see ``speaks_by_name``.
    """
    name = name_in(message, "name", "source", "author_name")
    role_name = name_in(message, "role", "from")
    if role_name is None:
        if name is None or "content" not in message:
            return None
        return Speaker(name, role_of_name(name))

    role = role_of(role_name)  # None for the role of an agent
    if role is Role.TOOL:
        return Speaker(name or role_name, role)
    if role is None and name is None:
        return _speaker_of_role_name(role_name)
    if by_name and name is not None and role is not Role.SYSTEM:
        return Speaker(name, role_of_name(name))
    return Speaker(name or role_name, role or Role.AGENT)


def role_of(role_name: str) -> Role | None:
    """Return the role for a vendor's role name; None for the name of an agent."""
    return _ROLE_BY_NAME.get(role_name.lower())


def role_of_name(name: str) -> Role:
    """Return the role of a speaker of which only the name is known."""
    return Role.USER if name.lower() in _USER_NAMES else Role.AGENT


def _speaker_of_role_name(role_name: str) -> Speaker:
    """Return the speaker of Magentic-One's roles such as ``Orchestrator (-> WebSurfer)``."""
    if role_name.lower() in _MODEL_NAMES:
        return THE_MODEL
    if match := _ACTOR_ROLE_NAME.fullmatch(role_name):
        return Speaker(match["actor"], Role.AGENT, thinks=match["purpose"].strip() == "thought")
    return Speaker(role_name, Role.AGENT)


PartPieces = Callable[[Fields, str, Speaker], Sequence[Piece]]
"""A function of a part, its JSON pointer and its speaker that returns the part's pieces."""

OUTPUT_FIELDS: Final = names("content output result response outputs server_tool_call_response")
"""The fields with the output of a tool, in the parts and records of results."""
_GOOGLE_CODE_TOOL: Final = "code_execution"
_THOUGHT_TYPES: Final = name_set("""
    think thinking reasoning redacted_thinking redactedThinking text_reasoning
    Microsoft.Extensions.AI.TextReasoningContent
""")
_RESULT_FIELDS: Final = frozenset({"toolResult", "tool_result", "tool_call_result"})
_RESULT_TYPES: Final = name_set("""
    tool_result tool-result tool_call_response server_tool_result tool_call_result function_result
    server_tool_call_response
""")
_TYPES_AS_FIELDS: Final = frozenset({"tool_call", "tool_call_result", "reasoning"})
"""The types of Haystack's parts: objects whose only field has the name of the type."""


def content_pieces(
    content: object, speaker: Speaker, pointer: str, *, without_thoughts: bool = False
) -> Iterator[Piece]:
    """Yield the pieces of a message's content in the order of its parts.

    Adjacent text parts become one piece, with the pointer of the first.

    Args:
        content: A text, a part or a list of parts.
        speaker: The speaker.
        pointer: The JSON pointer from the message to its content.
        without_thoughts: Whether to leave out thoughts.
    """
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list):
        if text := message_text(content):
            yield speaker.piece(text, kind=speaker.kind)
        return

    text_parts: list[object] = []
    text_pointer = ""
    for number, part in enumerate(content):
        pieces = part_pieces(part, f"{pointer}/{number}", speaker)
        if pieces is None:
            if not text_parts:  # a text at the very beginning has the key of its message
                text_pointer = f"{pointer}/{number}" if number else ""
            text_parts.append(part)
            continue
        if text := message_text(text_parts):
            yield speaker.piece(text, text_pointer, kind=speaker.kind)
        text_parts = []
        if not (without_thoughts and kind_of(part) in _THOUGHT_TYPES):
            yield from pieces
    if text := message_text(text_parts):
        yield speaker.piece(text, text_pointer, kind=speaker.kind)


def has_result_parts(content: object) -> bool:
    """Return whether a message's content is a list that has the result of a call."""
    return isinstance(content, list) and any(
        _is_result_type(kind_of(part)) or not _RESULT_FIELDS.isdisjoint(fields_of(part))
        for part in content
    )


def without_dotnet_names(part: object) -> object:
    """Return a part of .NET with the field names of other programs."""
    dotnet_type = text_in(fields_of(part), "$type")
    return part if dotnet_type is None else {**snake_fields(part), "type": snake_case(dotnet_type)}


def part_pieces(part: object, pointer: str, speaker: Speaker) -> Sequence[Piece] | None:
    """Return the pieces of a part; None for a text part, which the caller joins to others.

    A part of an unknown type becomes a log entry with a problem.

    Args:
        part: A part of a message's content.
        pointer: The JSON pointer from the message to the part.
        speaker: The speaker.
    """
    if not isinstance(part, Mapping):
        return None
    part_type = kind_of(part)
    if not part_type and len(part) == 1:
        (field,) = part
        if field in _TYPES_AS_FIELDS:  # Haystack writes the type as the only field
            part_type = field
            part = {**fields_of(part[field]), "type": field}
    make_pieces = _maker_by_type(part_type, part) if part_type else _maker_by_field(part)
    if make_pieces is not None:
        return make_pieces(part, pointer, speaker)
    if known_part_text(part) is not None:
        return None
    name = part_type or next(iter(part), "")
    problem = f"unknown part type `{name}`" if name else "a part without content"
    return [replace(json_log_piece(part, pointer, name=name or None), problem=problem)]


def _maker_by_type(part_type: str, part: Fields) -> PartPieces | None:
    """Return the function that makes the pieces of a part; None for a text or an unknown type."""
    if (maker := _MAKER_BY_TYPE.get(part_type)) is not None:
        return maker
    if _is_result_type(part_type):
        return _result_pieces
    if part_type.endswith("_tool_call"):
        return _hosted_call_pieces
    # Vercel's AI SDK has the name of the tool in the type.
    if "toolCallId" in part and (part_type.startswith("tool-") or part_type == "dynamic-tool"):
        return ui_tool_pieces
    return _log_pieces if part_type.startswith("data-") else None


def _maker_by_field(part: Fields) -> PartPieces | None:
    """Return the function that makes the pieces of a part without a type."""
    if part.get("thought") is True:
        return _thought_pieces
    for field, value in part.items():
        maker = _MAKER_BY_FIELD.get(field)
        if maker is not None and isinstance(value, Mapping):
            return maker
    return None


def _is_result_type(kind: str) -> bool:
    return kind in _RESULT_TYPES or kind.endswith("_tool_result")


def _no_pieces(_part: Fields, _pointer: str, _speaker: Speaker) -> Sequence[Piece]:
    return ()


def _log_pieces(part: Fields, pointer: str, _speaker: Speaker) -> Sequence[Piece]:
    return [json_log_piece(part, pointer, name=kind_of(part))]


def _summary_pieces(part: Fields, pointer: str, _speaker: Speaker) -> Sequence[Piece]:
    log = json_log_piece(part, pointer, name=kind_of(part))
    return [replace(log, text=as_text(part.get("content")) or log.text)]


def _thought_pieces(part: Fields, pointer: str, speaker: Speaker) -> Sequence[Piece]:
    return [speaker.piece(thought_text(part), pointer, kind=SpanKind.REASONING)]


def _call_pieces(part: Fields, pointer: str, speaker: Speaker) -> Sequence[Piece]:
    return [call_piece(part, pointer, speaker.agent)]


def _hosted_call_pieces(part: Fields, pointer: str, speaker: Speaker) -> Sequence[Piece]:
    """Return a call of Microsoft's Agent Framework that has the tool in its type."""
    call = {"arguments": message_text(first_in(part, "commands", "inputs")) or None, **part}
    name = kind_of(part).removesuffix("_tool_call")
    return [call_piece({**call, "type": name}, pointer, speaker.agent)]


def _result_pieces(part: Fields, pointer: str, _speaker: Speaker) -> Sequence[Piece]:
    run = fields_of(part.get("run"))
    if run:  # Amp has the result in this object
        part = {**part, "status": run.get("status"), "result": first_in(run, "result", "error")}
    output = first_in(part, *OUTPUT_FIELDS)
    if exception := text_in(part, "exception"):
        text = output_text(output)
        output = text if exception in text else f"{text}\n{exception}".lstrip()
        part = {**part, "is_error": True}
    return [result_piece(part, output, pointer)]


def _error_pieces(part: Fields, pointer: str, speaker: Speaker) -> Sequence[Piece]:
    text = content_text(first_in(part, "error", "text", "message"))
    status = SpanStatus.ERROR
    return [Piece(SpanKind.LOG, Role.LOG, speaker.agent, text, pointer, status=status)]


def ui_tool_pieces(part: Fields, pointer: str, speaker: Speaker) -> Sequence[Piece]:
    """Return a call of Vercel's AI SDK, and its result if the part has one.

    Args:
        part: The part of the message, or an invocation in older versions.
        pointer: The JSON pointer from the message to the part.
        speaker: The speaker.
    """
    invocation = fields_of(part.get("toolInvocation")) or part
    name = kind_of(part).removeprefix("tool-")
    arguments = first_in(invocation, "input", "args", "rawInput")
    call_id = as_text(invocation.get("toolCallId"))
    call_fields = {**invocation, "arguments": arguments}
    call = call_piece(call_fields, pointer, speaker.agent, name=name)
    call = replace(call, call_id=call_id)

    state = invocation.get("state")
    is_denied = state == "output-denied"
    denial_reason = as_text(fields_of(invocation.get("approval")).get("reason"))
    if is_denied and denial_reason is None:
        return [replace(call, status=SpanStatus.ERROR)]
    error = as_text(invocation.get("errorText")) or (denial_reason if is_denied else None)
    output = first_in(invocation, "output", "result") if error is None else error
    has_result = output is not None or state in ("output-available", "result")
    if not has_result:
        return [call]
    result = result_piece(
        {},
        output,
        f"{pointer}/output" if error is None else f"{pointer}/errorText",
        name=call.name,
        call_id=call_id,
        status=SpanStatus.UNKNOWN if error is None else SpanStatus.ERROR,
    )
    return [call, result]


def _goose_call_pieces(part: Fields, pointer: str, speaker: Speaker) -> Sequence[Piece]:
    """Return the call in a ``toolRequest`` of Goose, with status ERROR if it has an error."""
    request = fields_of(part.get("toolCall"))
    call_fields = {**fields_of(request.get("value")), "id": part.get("id")}
    piece = call_piece(call_fields, pointer, speaker.agent)
    if error := as_text(request.get("error")):
        return [replace(piece, text=piece.text or error, status=SpanStatus.ERROR)]
    return [piece]


def _goose_result_pieces(part: Fields, pointer: str, _speaker: Speaker) -> Sequence[Piece]:
    """Return the result of a call in a ``toolResponse`` of Goose."""
    result = fields_of(part.get("toolResult"))
    value = result.get("value")
    content = value.get("content") if isinstance(value, Mapping) else value
    failed = result.get("status") == "error" or fields_of(value).get("isError") is True
    return [
        result_piece(
            part,
            first_in(result, "error") if content is None else content,
            pointer,
            call_id=as_text(part.get("id")),
            status=SpanStatus.ERROR if failed else SpanStatus.OK,
        )
    ]


def _nested_call_pieces(part: Fields, pointer: str, speaker: Speaker) -> Sequence[Piece]:
    """Return the call in a part of Gemini or Bedrock, which has it in a field."""
    call = first_in(part, "function_call", "functionCall", "toolUse", "tool_use")
    return [call_piece(call, pointer, speaker.agent)]


def _bedrock_result_pieces(part: Fields, pointer: str, _speaker: Speaker) -> Sequence[Piece]:
    result = fields_of(first_in(part, "toolResult", "tool_result"))
    return [result_piece(result, result.get("content"), pointer)]


def _bedrock_thought_pieces(part: Fields, pointer: str, speaker: Speaker) -> Sequence[Piece]:
    """Return a thought in a part of Bedrock, or a note for a redacted thought."""
    reasoning = fields_of(first_in(part, "reasoningContent", "reasoning_content"))
    text = first_in(reasoning, "reasoningText", "reasoning_text", "text")
    thought = "[redacted thinking]" if text is None else thought_text(text)
    return [speaker.piece(thought, pointer, kind=SpanKind.REASONING)]


def _gemini_result_pieces(part: Fields, pointer: str, _speaker: Speaker) -> Sequence[Piece]:
    """Return the result of a call in a part of Gemini."""
    response = fields_of(first_in(part, "function_response", "functionResponse"))
    content = response.get("response")
    # A failed call has ``error`` as the only field of its response.
    failed = isinstance(content, Mapping) and set(content) == {"error"}
    return [
        result_piece(
            response,
            content,
            pointer,
            call_id=as_text(response.get("id")),
            status=SpanStatus.ERROR if failed else SpanStatus.UNKNOWN,
        )
    ]


def _gemini_code_pieces(part: Fields, pointer: str, speaker: Speaker) -> Sequence[Piece]:
    code = fields_of(first_in(part, "executable_code", "executableCode"))
    call = {"arguments": code.get("code")}
    return [call_piece(call, pointer, speaker.agent, name=_GOOGLE_CODE_TOOL)]


def _gemini_code_result_pieces(part: Fields, pointer: str, _speaker: Speaker) -> Sequence[Piece]:
    """Return the result of code that Google ran for a Gemini model."""
    execution = fields_of(first_in(part, "code_execution_result", "codeExecutionResult"))
    has_succeeded = as_text(execution.get("outcome")) == "OUTCOME_OK"
    status = SpanStatus.OK if has_succeeded else SpanStatus.ERROR
    return [
        result_piece(
            execution, execution.get("output") or "", pointer, name=_GOOGLE_CODE_TOOL, status=status
        )
    ]


def _maker_by_each_name(makers: Mapping[str, PartPieces]) -> dict[str, PartPieces]:
    """Split keys of several names; return the functions by single name."""
    return {name: maker for names, maker in makers.items() for name in names.split()}


_MAKER_BY_TYPE: Final = _maker_by_each_name(
    {
        "tool_use tool-call tool_call server_tool_use server_tool_call mcp_tool_use": _call_pieces,
        "function_call input_json_delta toolCall": _call_pieces,
        " ".join(_RESULT_TYPES): _result_pieces,
        " ".join(_THOUGHT_TYPES): _thought_pieces,
        "toolRequest frontendToolRequest": _goose_call_pieces,
        "toolResponse": _goose_result_pieces,
        "tool-invocation": ui_tool_pieces,
        "step-start step-finish token_budget usage": _no_pieces,
        "toolConfirmationRequest actionRequired systemNotification flag": _log_pieces,
        "compaction": _summary_pieces,
        "tool-approval-request tool-approval-response": _log_pieces,
        "tool_approval_request tool_approval_response": _log_pieces,
        "interrupt_request interrupt_response oauth_consent_request": _log_pieces,
        "function_approval_request function_approval_response": _log_pieces,
        "summarizationRequested contextLengthExceeded conversationCompacted": _log_pieces,
        "agent_update": _log_pieces,
        "error": _error_pieces,
    }
)
_MAKER_BY_FIELD: Final = _maker_by_each_name(
    {
        "function_call functionCall toolUse tool_use": _nested_call_pieces,
        "function_response functionResponse": _gemini_result_pieces,
        "executable_code executableCode": _gemini_code_pieces,
        "code_execution_result codeExecutionResult": _gemini_code_result_pieces,
        "toolResult tool_result": _bedrock_result_pieces,
        "reasoningContent reasoning_content": _bedrock_thought_pieces,
        "cachePoint cache_point": _no_pieces,
    }
)

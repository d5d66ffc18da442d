"""mini-swe-agent's trajectories: chat messages with commands in the text or in tool calls.

Since release 1 a file is ``{"info", "messages", "trajectory_format"}``. Before, it was the bare
list of messages, which is recognised by the code blocks with the commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from mast_tui.traces.index.document import Step, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Role, SpanKind, TraceMeta
from mast_tui.traces.readers.base import FormatReader
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    THE_MODEL,
    Piece,
    Speaker,
    Turn,
    json_log_piece,
)
from mast_tui.traces.readers.chat.turns import turn_of
from mast_tui.traces.readers.chat.values import usage_of
from mast_tui.traces.readers.document_traces import RunOrigin, report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    first_in,
    identifier_in,
    items_of,
)
from mast_tui.traces.readers.run_facts import answer_key_of, facts_of_record
from mast_tui.traces.readers.swe_agent import add_ending
from mast_tui.traces.result_status import status_of_code
from mast_tui.traces.times import unix_seconds

_FORMAT: Final = "mini-swe-agent"
_MARKS: Final = {
    b"{": (b'"mini_version"', b'"trajectory_format"', b'"messages"'),
    b"[": (b"```mswea_bash_command", b"<returncode>"),
}
"""The marks in a file by its first byte."""

_OWN_BLOCK: Final = "```mswea_bash_command\n"
_BASH_BLOCK: Final = re.compile(r"```bash[ \t]*\n")
_ANSWER_FIELDS: Final = frozenset(
    {"reasoning_content", "reasoning", "thinking_blocks", "tool_calls"}
)
_MESSAGES_TO_PROBE: Final = 12
_TOOL_NAME: Final = "bash"
_BLOCK_OPENING: Final = re.compile(
    r"```(?:mswea_bash_command|bash)[ \t]*\r?\n|<(?P<tag>mswea_bash_command|bash_code|bash)>"
)
_OBSERVATION: Final = re.compile(
    r"\s*(?P<exception><exception>.*?</exception>\s*)?"
    r"<returncode>(?P<code>-?\d{1,9})</returncode>\s*"
    r"(?:(?P<opening><output>)\n?(?:(?P<output>.*)</output>\s*\Z)?)?",
    re.DOTALL,
)


def _recognises(source: Source) -> bool:
    """Return whether the file is one document that names the format or has its code blocks."""
    head = as_utf8(source.head)
    marks = _MARKS.get(head.lstrip()[:1], ())
    # The whole document is read only after the marks, because that is slow.
    if not any(mark in head for mark in marks) or len(source.json_lines) > 1:
        return False
    return _messages_of_document(source.json) is not None


def _read(source: Source) -> FileReport:
    """Return the file's one trace."""
    record = fields_of(source.json)
    steps = StepList()
    mapper = MessageMapper(steps)
    pointer = "/messages" if record else ""
    for message_index, message in enumerate(_messages_of_document(source.json) or ()):
        _add_message(mapper, message, f"{pointer}/{message_index}")
    info = fields_of(record.get("info"))
    # One of the last two messages may show the exit status or the submission already.
    add_ending(steps, info, compared_step_count=2)
    origin = RunOrigin(READER, source.path, source.data)
    meta = _facts_of_run(info, steps.steps)
    trace = trace_of_steps(origin, steps, meta, mapper.problems)
    return report_of(READER, source, [trace])


READER: Final = FormatReader("mini-swe-agent", _recognises, _read)
"""Reads mini-swe-agent's files; span keys are JSON pointers, or ids of tool calls."""


def _messages_of_document(document: object) -> list[object] | None:
    """Return the messages of a file of this format."""
    if isinstance(document, list):
        return document if _is_bare_run(document) else None
    record = fields_of(document)
    messages = record.get("messages")
    format_name = as_text(record.get("trajectory_format")) or ""
    has_version = "mini_version" in fields_of(record.get("info"))
    is_own = format_name.startswith(_FORMAT) or has_version
    return messages if is_own and isinstance(messages, list) else None


def _is_bare_run(messages: Sequence[object]) -> bool:
    """Return whether the first messages are texts with commands in the format's code blocks.

    One block with the format's own name is enough. Older ``bash`` blocks must have results with the
    format's return code, except the last block.
    """
    command_count = 0
    result_count = 0
    for message in map(fields_of, messages[:_MESSAGES_TO_PROBE]):
        role = message.get("role")
        content = message.get("content")
        if role not in ("system", "user", "assistant") or not isinstance(content, str):
            return False
        if role == "assistant":
            if _OWN_BLOCK in content:
                return True
            if len(_BASH_BLOCK.findall(content)) == 1:
                command_count += 1
        elif role == "user":
            match = _OBSERVATION.match(content)
            if match and match["exception"] is None and match["opening"] is not None:
                result_count += 1
    missing_count = command_count - result_count
    return result_count > 0 and missing_count in (0, 1)


def _facts_of_run(info: Fields, steps: Sequence[Step]) -> TraceMeta:
    """Return the facts of a run in its ``info`` and its steps."""
    meta = facts_of_record(info, steps)
    model = as_text(fields_at(info, "config", "model").get("model_name"))
    answer_key = answer_key_of(info, {"submission": "patch"})
    return meta._replace(system=_FORMAT, model=model or meta.model, answer_key=answer_key)


def _user_pieces(text: str, extra: Fields, *, has_open_call: bool) -> Iterator[Piece]:
    """Yield the pieces of a user's message, which may be the result of a command.

    Args:
        text: The text of the message.
        extra: The field ``extra`` of the message.
        has_open_call: Whether a command before the message has no result.
    """
    # An answer without a valid command is recorded only in this message, which complains about it.
    if refused_answer := as_text(extra.get("model_response")):
        yield THE_MODEL.piece(refused_answer, "/extra/model_response")
    is_result = "returncode" in extra or "raw_output" in extra or _OBSERVATION.match(text)
    is_interruption = "interrupt_type" in extra
    if is_result or (has_open_call and not is_interruption):
        yield _observation_piece({"content": text}, extra)
        return
    yield Speaker("user", Role.USER).piece(text)
    for command_index, command in enumerate(_recorded_commands(extra)):
        piece = _command_piece(command, f"/extra/actions/{command_index}")
        yield replace(piece, role=Role.USER, agent="user")


def _add_message(mapper: MessageMapper, value: object, pointer: str) -> None:
    """Add the spans of a message.

    A result answers the call with its id, or the command before it.
    """
    message = fields_of(value)
    extra = fields_of(message.get("extra"))
    start = unix_seconds(extra.get("timestamp"))
    text = content_text(message.get("content"))
    commands: list[Piece] = []
    tokens = None
    match message.get("role") or message.get("object") or message.get("type"):
        case "assistant" | "response":
            mapper.forget_open_calls()  # later results do not answer earlier commands
            pieces, commands = _answer_pieces(message, extra)
            tokens = usage_of(fields_of(extra.get("response"))) or usage_of(message)
        case "exit":
            ending = text or dump_text(extra.get("submission")) or extra
            pieces = [json_log_piece(ending, name="exit")]
        case "tool" | "function_call_output":
            pieces = [_observation_piece(message, extra)]
        case "user" | "human":
            pieces = [*_user_pieces(text, extra, has_open_call=mapper.has_open_call)]
        case "system":
            pieces = [Speaker("system", Role.SYSTEM).piece(text)]
        case "reasoning" | "function_call":
            pieces = [_with_tool_name(piece) for piece in turn_of(message).pieces]
        case _ if message:
            pieces = [json_log_piece(message)]
        case _:  # a bare value
            mapper.add(value, pointer)
            return

    mapper.add_turn(Turn(tuple(pieces), start), pointer)
    # The commands are in the text of the message, so their location is the message's pointer.
    if commands or tokens:
        mapper.add_turn(Turn(tuple(commands), start, tokens), pointer, location=pointer)


def _answer_pieces(message: Fields, extra: Fields) -> tuple[list[Piece], list[Piece]]:
    """Return the pieces of a model's answer, and the pieces of the commands in its text."""
    output = message.get("output")
    if isinstance(output, list):
        return list(_item_pieces(message, output)), []
    text = content_text(message.get("content"))
    commands: list[str] = []
    if not items_of(message.get("tool_calls")):
        text, commands = _split_commands(text, _recorded_commands(extra))
    fields = {name: value for name, value in message.items() if name in _ANSWER_FIELDS}
    pieces = [
        _with_tool_name(piece)
        for piece in turn_of({**fields, "role": ASSISTANT, "content": text}).pieces
        if piece.text or not commands  # no blank message beside the commands
    ]
    command_pieces = [
        _command_piece(command, f"/action/{command_index}")
        for command_index, command in enumerate(commands)
    ]
    return pieces, command_pieces


def _item_pieces(message: Fields, output: Sequence[object]) -> Iterator[Piece]:
    """Yield the pieces of an answer made of OpenAI's response items, without empty reasoning."""
    if text := as_text(content_text(message.get("content"))):
        yield THE_MODEL.piece(text)
    for item_index, item in enumerate(map(fields_of, output)):
        reasoning = content_text(item.get("summary")) or content_text(item.get("content"))
        if item.get("type") == "reasoning" and not reasoning:
            continue
        is_message = item.get("type") == "message"
        for piece in turn_of({"role": ASSISTANT, **item} if is_message else item).pieces:
            key_suffix = f"/output/{item_index}{piece.key_suffix}"
            yield _with_tool_name(replace(piece, key_suffix=key_suffix))


def _with_tool_name(piece: Piece) -> Piece:
    """Return a piece; the default name of a call is that of the agent's tool."""
    is_nameless = piece.kind is SpanKind.TOOL_CALL and piece.name in (None, "function")
    return replace(piece, name=_TOOL_NAME) if is_nameless else piece


def _observation_piece(message: Fields, extra: Fields) -> Piece:
    """Return the result of a command, with an output and exit code from tags in the text."""
    text = content_text(first_in(message, "content", "output"))
    code = extra.get("returncode")
    if match := _OBSERVATION.match(text):
        code = int(match["code"])
        if match["output"] is not None:
            text = (match["exception"] or "") + match["output"]
    return Piece(
        SpanKind.TOOL_RESULT,
        Role.TOOL,
        "environment",
        text,
        name=_TOOL_NAME,
        call_id=identifier_in(message, "tool_call_id", "call_id"),
        status=status_of_code(code),
    )


def _command_piece(command: str, suffix: str) -> Piece:
    return Piece(SpanKind.TOOL_CALL, Role.AGENT, ASSISTANT, command, suffix, name=_TOOL_NAME)


def _recorded_commands(extra: Fields) -> list[str]:
    """Return the commands in the ``extra`` fields of a message."""
    actions = map(fields_of, items_of(extra.get("actions")))
    return [command for action in actions if (command := as_text(action.get("command")))]


def _split_commands(text: str, recorded_commands: list[str]) -> tuple[str, list[str]]:
    """Return the text of an answer without the commands that ran, and those commands."""
    blocks = list(_command_blocks(text))
    # Without a record, a single command ran. The agent refuses any other answer.
    if recorded_commands:
        blocks = [block for block in blocks if block.command.strip() in recorded_commands]
    elif len(blocks) != 1:
        return text, []

    # The other text is before, between and after the blocks.
    begins = [0, *(block.end for block in blocks)]
    ends = [*(block.start for block in blocks), len(text)]
    other_text = "".join(text[begin:end] for begin, end in zip(begins, ends, strict=True))
    return other_text.strip(), recorded_commands or [blocks[0].command]


class _CommandBlock(NamedTuple):
    """A command, and the range of its code block with the marks around it."""

    start: int
    end: int
    command: str


def _command_blocks(text: str) -> Iterator[_CommandBlock]:
    """Yield the code blocks of a text that have an end, without blocks within another block."""
    block_end = 0
    missing_closings: set[str] = set()  # each is searched for only once
    for opening in _BLOCK_OPENING.finditer(text):
        closing = f"</{opening['tag']}>" if opening["tag"] else "\n```"
        if opening.start() < block_end or closing in missing_closings:
            continue
        command_end = text.find(closing, opening.end())
        if command_end < 0:
            missing_closings.add(closing)
            continue
        block_end = command_end + len(closing)
        yield _CommandBlock(opening.start(), block_end, text[opening.end() : command_end])

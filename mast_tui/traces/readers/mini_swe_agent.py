"""mini-swe-agent's trajectories: chat messages whose commands stand in the text or in tool calls.

Since release 1 a file is ``{"info", "messages", "trajectory_format"}``; before that it was the bare
list of messages, which is known by the code blocks that hold the commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.index.document import Step, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import as_text, content_text, dump_text, tokens_of
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Role, SpanKind, Tokens, TraceMeta
from mast_tui.traces.readers.answer_keys import answer_key_of
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    THE_MODEL,
    Piece,
    Speaker,
    call_piece,
    noted,
)
from mast_tui.traces.readers.document_traces import report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import Fields, fields_at, fields_of, items_of
from mast_tui.traces.readers.run_facts import facts_of_record
from mast_tui.traces.readers.swe_agent import add_ending
from mast_tui.traces.result_status import status_of_code
from mast_tui.traces.times import unix_seconds

_FORMAT: Final = "mini-swe-agent"
_MARKS: Final = {
    b"{": (b'"mini_version"', b'"trajectory_format"', b'"messages"'),
    b"[": (b"```mswea_bash_command", b"<returncode>"),
}
"""What a file holds that begins so."""

_OWN_BLOCK: Final = "```mswea_bash_command\n"
_BLOCK: Final = re.compile(r"```bash[ \t]*\n")
_OBSERVED: Final = re.compile(r"\s*<returncode>-?\d{1,9}</returncode>\s*<output")
_LOOKED_AT: Final = 12
_TOOL: Final = "bash"
_OPENING: Final = re.compile(
    r"```(?:mswea_bash_command|bash)[ \t]*\r?\n|<(?P<tag>mswea_bash_command|bash_code|bash)>"
)
_OBSERVATION: Final = re.compile(
    r"\s*(?P<exception><exception>.*?</exception>\s*)?"
    r"<returncode>(?P<code>-?\d{1,9})</returncode>\s*"
    r"(?:<output>\n?(?P<output>.*)</output>\s*\Z)?",
    re.DOTALL,
)


class MiniSweAgentReader:
    """Reads mini-swe-agent's files; span keys are JSON pointers, tool calls go by their id."""

    name: Final = "mini-swe-agent"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Whether the file names the format, or its messages hold commands as only it has them."""
        head = as_utf8(source.head)
        marks = _MARKS.get(head.lstrip()[:1], ())
        if not any(mark in head for mark in marks) or len(source.json_lines) > 1:
            return False
        return _messages(source.json) is not None

    def read(self, source: Source) -> FileReport:
        """The file's one trace."""
        record, steps = fields_of(source.json), StepList()
        messages = _MessageSpans(steps)
        pointer = "/messages" if record else ""
        for number, message in enumerate(_messages(source.json) or ()):
            messages.add(message, f"{pointer}/{number}")
        info = fields_of(record.get("info"))
        add_ending(steps, info, beside=2)
        meta, problems = _facts(info, steps.steps), messages.problems
        trace = trace_of_steps(self, source.path, source.data, steps, meta=meta, problems=problems)
        return report_of(self, source, [trace])


READER: Final = MiniSweAgentReader()


def _messages(document: object) -> list[object] | None:
    """The messages of a file of this format; None where it is of another."""
    if isinstance(document, list):
        return document if _is_bare_run(document) else None
    record = fields_of(document)
    messages, named = record.get("messages"), as_text(record.get("trajectory_format")) or ""
    ours = named.startswith(_FORMAT) or "mini_version" in fields_of(record.get("info"))
    return messages if ours and isinstance(messages, list) else None


def _is_bare_run(messages: list[object]) -> bool:
    """Whether the first messages are texts with commands in code blocks, and what came of them.

    The name of the block is the format's own; of the older ``bash`` blocks each must be answered
    by the format's own return code.
    """
    asked = answered = 0
    for message in messages[:_LOOKED_AT]:
        if not isinstance(message, Mapping):
            return False
        role, content = message.get("role"), message.get("content")
        if role not in ("system", "user", "assistant") or not isinstance(content, str):
            return False
        if role == "assistant":
            if _OWN_BLOCK in content:
                return True
            asked += len(_BLOCK.findall(content)) == 1
        elif role == "user" and _OBSERVED.match(content):
            answered += 1
    return answered > 0 and asked - 1 <= answered <= asked


def _facts(info: Fields, steps: Sequence[Step]) -> TraceMeta:
    meta = facts_of_record(info, steps)
    name = as_text(fields_at(info, "config", "model").get("model_name"))
    handed_in = answer_key_of(info, {"submission": "patch"})
    return meta._replace(system=_FORMAT, model=name or meta.model, answer_key=handed_in)


class _MessageSpans:
    """Adds the spans of one message after the other, and ties observations to their commands.

    What came of a command is the next message, or it names the call's id.
    """

    def __init__(self, steps: StepList) -> None:
        self._steps = steps
        self._mapper = MessageMapper(steps)
        self.problems = self._mapper.problems

    def add(self, message: object, pointer: str) -> None:
        """Add the spans of the message at this JSON pointer."""
        if not isinstance(message, Mapping):
            self._mapper.add(message, pointer)
            return
        extra = fields_of(message.get("extra"))
        start = unix_seconds(extra.get("timestamp"))
        role, kind = message.get("role"), message.get("type")
        if role == "assistant" or message.get("object") == "response":
            self._turn(message, extra, pointer, start)
        elif role == "exit":
            text = content_text(message.get("content")) or dump_text(extra.get("submission"))
            self._put(noted(text or extra, name="exit"), pointer, start)
        elif role == "tool" or kind == "function_call_output":
            content = message.get("output") if kind == "function_call_output" else None
            call_id = as_text(message.get("tool_call_id")) or as_text(message.get("call_id"))
            self._result(message.get("content", content), extra, pointer, start, call_id)
        elif role == "system":
            text = content_text(message.get("content"))
            self._put(Speaker("system", Role.SYSTEM).says(text), pointer, start)
        elif role in ("user", "human"):
            self._from_user(message, extra, pointer, start)
        elif kind in ("message", "reasoning", "function_call"):
            for piece in _of_item(message, ""):
                self._put(piece, pointer, start)
        else:
            self._put(noted(message), pointer, None)

    def _put(self, piece: Piece, pointer: str, start: float | None) -> None:
        # A command is told within the text of its message.
        place = pointer if piece.at.startswith("/action/") else None
        self._mapper.put(piece, pointer, place=place, start=start)

    def _turn(self, message: Fields, extra: Fields, pointer: str, start: float | None) -> None:
        self._mapper.forget_open_calls()
        pieces: list[Piece] = []
        for field in ("reasoning_content", "reasoning", "thinking_blocks"):
            if thought := _thought(message.get(field), f"/{field}"):
                pieces.append(thought)
                break
        commands = _commands(extra)
        calls, output = message.get("tool_calls"), message.get("output")
        text = content_text(message.get("content"))
        if not calls and not isinstance(output, list):
            text, commands = _parted(text, commands)
        if text.strip():
            pieces.append(THE_MODEL.says(text))
        for number, item in enumerate(items_of(output)):
            if isinstance(item, Mapping):
                pieces += _of_item(item, f"/output/{number}")
        if isinstance(calls, list) and calls:
            for number, call in enumerate(calls):
                pieces.append(call_piece(call, f"/tool_calls/{number}", ASSISTANT, name=_TOOL))
        elif not isinstance(output, list):
            for number, command in enumerate(commands):
                pieces.append(_command(command, f"/action/{number}"))
        for piece in pieces or [THE_MODEL.says(text)]:
            self._put(piece, pointer, start)
        self._mapper.count_tokens(_tokens(message, extra))

    def _from_user(self, message: Fields, extra: Fields, pointer: str, start: float | None) -> None:
        """A prompt, an observation, or a complaint about an answer that is kept beside it."""
        text = content_text(message.get("content"))
        if refused := as_text(extra.get("model_response")):
            self._put(THE_MODEL.says(refused, "/extra/model_response"), pointer, start)
        observed = "returncode" in extra or "raw_output" in extra or _OBSERVATION.match(text)
        if observed or (self._mapper.waits and "interrupt_type" not in extra):
            self._result(text, extra, pointer, start, None)
            return
        self._put(Speaker("user", Role.USER).says(text), pointer, start)
        for number, command in enumerate(_commands(extra)):
            piece = _command(command, f"/extra/actions/{number}")
            self._put(replace(piece, role=Role.USER, agent="user"), pointer, start)

    def _result(
        self, content: object, extra: Fields, pointer: str, start: float | None, call_id: str | None
    ) -> None:
        text, code = content_text(content), extra.get("returncode")
        if match := _OBSERVATION.match(text):
            code = int(match["code"])
            if match["output"] is not None:
                text = (match["exception"] or "") + match["output"]
        result = Piece(
            SpanKind.TOOL_RESULT,
            Role.TOOL,
            "environment",
            text,
            call_id=call_id,
            status=status_of_code(code),
        )
        call = self._mapper.answered(result)
        self._mapper.put(replace(result, name=_TOOL), pointer, start=start, call=call)
        if call is not None:
            self._steps.amend(call.key, end=start)


def _thought(value: object, at: str) -> Piece | None:
    text = content_text(value) if isinstance(value, str | list) else ""
    return THE_MODEL.says(text, at, kind=SpanKind.REASONING) if text else None


def _command(command: str, at: str) -> Piece:
    return Piece(SpanKind.TOOL_CALL, Role.AGENT, ASSISTANT, command, at, name=_TOOL)


def _of_item(item: Fields, at: str) -> Iterator[Piece]:
    """The pieces of an item of OpenAI's responses, whose commands its message tells."""
    match item.get("type"):
        case "function_call":
            yield call_piece(item, at, ASSISTANT, name=_TOOL)
        case "reasoning":
            thought = _thought(item.get("summary"), at) or _thought(item.get("content"), at)
            if thought is not None:
                yield thought
        case "message":
            yield THE_MODEL.says(content_text(item.get("content")), at)
        case _:
            yield noted(item, at)


def _parted(text: str, told: list[str]) -> tuple[str, list[str]]:
    """What was said beside the command, and the command.

    An answer without exactly one command was refused, so it stays whole; where the file tells
    which commands were taken from it, they are what was done.
    """
    blocks = list(_blocks(text))
    if told:
        blocks = [block for block in blocks if block[2].strip() in told]
    elif len(blocks) != 1:
        return text, []
    rest, last = "", 0
    for start, end, _command in blocks:
        rest += text[last:start]
        last = end
    return (rest + text[last:]).strip(), told or [blocks[0][2]]


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """The commands in code blocks: where each begins and ends with its marks, and itself."""
    end = 0
    never_closed: set[str] = set()
    for opening in _OPENING.finditer(text):
        closing = f"</{opening['tag']}>" if opening["tag"] else "\n```"
        if opening.start() < end or closing in never_closed:
            continue
        close = text.find(closing, opening.end())
        if close < 0:
            never_closed.add(closing)
            continue
        end = close + len(closing)
        yield opening.start(), end, text[opening.end() : close]


def _commands(extra: Fields) -> list[str]:
    """The commands that the file says were taken from a message."""
    actions = map(fields_of, items_of(extra.get("actions")))
    return [command for action in actions if (command := as_text(action.get("command")))]


def _tokens(message: Fields, extra: Fields) -> Tokens | None:
    """What the model call behind a message took in and gave out."""
    usage = fields_at(extra, "response", "usage") or fields_of(message.get("usage"))
    return tokens_of(usage.get("prompt_tokens"), usage.get("completion_tokens")) or tokens_of(
        usage.get("input_tokens"), usage.get("output_tokens")
    )

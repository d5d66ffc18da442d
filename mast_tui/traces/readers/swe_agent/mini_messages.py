"""The messages of mini-swe-agent to spans: commands, and what came of them."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.index.document import StepList
from mast_tui.traces.io.json_values import as_text, content_text, dump_text, tokens_of
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.preview import preview
from mast_tui.traces.times import unix_seconds

_AGENT: Final = "assistant"
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


class MiniMessages:
    """Adds the spans of one message after the other, and ties observations to their commands."""

    def __init__(self, steps: StepList) -> None:
        self.problems: list[Problem] = []
        self._steps = steps
        self._calls: dict[str, str] = {}
        self._open: OrderedDict[str, str] = OrderedDict()

    def add(self, message: object, pointer: str) -> None:
        """Add the spans of the message at this JSON pointer."""
        if not isinstance(message, Mapping):
            self._log(pointer, dump_text(message))
            self.problems.append(Problem(pointer, "not a message but a bare value"))
            return
        extra = _mapping(message.get("extra"))
        start = unix_seconds(extra.get("timestamp"))
        role, kind = message.get("role"), message.get("type")
        if role == "assistant" or message.get("object") == "response":
            self._turn(message, extra, pointer, start)
        elif role == "exit":
            text = content_text(message.get("content")) or dump_text(extra.get("submission"))
            self._log(pointer, text or dump_text(extra), "exit", start)
        elif role == "tool" or kind == "function_call_output":
            content = message.get("output") if kind == "function_call_output" else None
            call_id = as_text(message.get("tool_call_id")) or as_text(message.get("call_id"))
            self._result(message.get("content", content), extra, pointer, start, call_id)
        elif role == "system":
            text = content_text(message.get("content"))
            self._say(pointer, Role.SYSTEM, "system", text, pointer, start)
        elif role in ("user", "human"):
            self._from_user(message, extra, pointer, start)
        elif kind in ("message", "reasoning", "function_call"):
            self._item(message, pointer, start)
        else:
            self._log(pointer, dump_text(message))

    def _from_user(
        self,
        message: Mapping[str, object],
        extra: Mapping[str, object],
        pointer: str,
        start: float | None,
    ) -> None:
        """A prompt, an observation, or a complaint about an answer that is kept beside it."""
        text = content_text(message.get("content"))
        if refused := as_text(extra.get("model_response")):
            at = f"{pointer}/extra/model_response"
            self._say(at, Role.AGENT, _AGENT, refused, at, start)
        observed = "returncode" in extra or "raw_output" in extra or _OBSERVATION.match(text)
        if observed or (self._open and "interrupt_type" not in extra):
            self._result(message.get("content"), extra, pointer, start, None)
            return
        self._say(pointer, Role.USER, "user", text, pointer, start)
        for number, command in enumerate(_commands(extra)):
            self._call(f"{pointer}/extra/actions/{number}", command, start, role=Role.USER)

    def _turn(
        self,
        message: Mapping[str, object],
        extra: Mapping[str, object],
        pointer: str,
        start: float | None,
    ) -> None:
        before = len(self._steps)
        self._open.clear()  # what is not answered by now never is, except by its id
        for field in ("reasoning_content", "reasoning", "thinking_blocks"):
            if thought := _thought(message.get(field)):
                at = f"{pointer}/{field}"
                self._say(at, Role.AGENT, _AGENT, thought, at, start, SpanKind.REASONING)
                break
        commands = _commands(extra)
        calls, output = message.get("tool_calls"), message.get("output")
        text = content_text(message.get("content"))
        if not calls and not isinstance(output, list):
            text, commands = _parted(text, commands)
        if text.strip():
            self._say(pointer, Role.AGENT, _AGENT, text, pointer, start)
        for number, item in enumerate(output if isinstance(output, list) else ()):
            if isinstance(item, Mapping):
                self._item(item, f"{pointer}/output/{number}", start)
        if isinstance(calls, list) and calls:
            for number, call in enumerate(calls):
                self._tool_call(call, f"{pointer}/tool_calls/{number}", start)
        elif not isinstance(output, list):
            for number, command in enumerate(commands):
                self._call(f"{pointer}/action/{number}", command, start, place=pointer)
        if len(self._steps) == before:
            self._say(pointer, Role.AGENT, _AGENT, text, pointer, start)
        if tokens := _tokens(message, extra):
            self._steps.amend(self._steps.steps[-1].key, tokens=tokens)

    def _item(self, item: Mapping[str, object], pointer: str, start: float | None) -> None:
        """One item of an answer of the Responses interface."""
        kind = item.get("type")
        if kind == "function_call":
            self._tool_call(item, pointer, start)
        elif kind == "reasoning":
            if thought := _thought(item.get("summary")) or _thought(item.get("content")):
                self._say(pointer, Role.AGENT, _AGENT, thought, pointer, start, SpanKind.REASONING)
        elif kind == "message":
            text = content_text(item.get("content"))
            self._say(pointer, Role.AGENT, _AGENT, text, pointer, start)
        else:
            self._log(pointer, dump_text(item))

    def _tool_call(self, call: object, pointer: str, start: float | None) -> None:
        if not isinstance(call, Mapping):
            self._log(pointer, dump_text(call))
            self.problems.append(Problem(pointer, "not a tool call but a bare value"))
            return
        asked = _mapping(call.get("function")) or call
        call_id = as_text(call.get("call_id")) or as_text(call.get("id"))
        name = as_text(asked.get("name"))
        arguments = dump_text(asked.get("arguments"))
        self._call(pointer, arguments, start, call_id=call_id, name=name)

    def _call(
        self,
        pointer: str,
        text: str,
        start: float | None,
        *,
        call_id: str | None = None,
        name: str | None = None,
        role: Role = Role.AGENT,
        place: str | None = None,
    ) -> None:
        tool = preview(name)[0] if name else _TOOL
        key = self._steps.add(
            f"{call_id}:call" if call_id else pointer,
            SpanKind.TOOL_CALL,
            role,
            _AGENT if role is Role.AGENT else "user",
            text,
            place=place or pointer,
            name=tool,
            start=start,
        )
        if call_id:
            self._calls[call_id] = key
        self._open[key] = tool

    def _result(
        self,
        content: object,
        extra: Mapping[str, object],
        pointer: str,
        start: float | None,
        call_id: str | None,
    ) -> None:
        call, tool = None, _TOOL
        if call_id is not None:
            call = self._calls.get(call_id)
            tool = self._open.pop(call, _TOOL) if call else _TOOL
        elif self._open:
            call, tool = self._open.popitem(last=False)
        text, code = content_text(content), extra.get("returncode")
        if match := _OBSERVATION.match(text):
            code = int(match["code"])
            if match["output"] is not None:
                text = (match["exception"] or "") + match["output"]
        status = SpanStatus.UNKNOWN
        if isinstance(code, int) and not isinstance(code, bool):
            status = SpanStatus.ERROR if code else SpanStatus.OK
        self._steps.add(
            f"{call_id}:result" if call_id else pointer,
            SpanKind.TOOL_RESULT,
            Role.TOOL,
            _AGENT if call else "environment",
            text,
            place=pointer,
            name=tool,
            parent=call,
            start=start,
            status=status,
        )
        if call:
            self._steps.amend(call, end=start)

    def _say(
        self,
        key: str,
        role: Role,
        agent: str,
        text: str,
        place: str,
        start: float | None,
        kind: SpanKind = SpanKind.MESSAGE,
    ) -> None:
        self._steps.add(key, kind, role, agent, text, place=place, start=start)

    def _log(
        self, pointer: str, text: str, name: str | None = None, start: float | None = None
    ) -> None:
        self._steps.add(
            pointer, SpanKind.LOG, Role.LOG, "log", text, place=pointer, name=name, start=start
        )


def _parted(text: str, told: list[str]) -> tuple[str, list[str]]:
    """What was said beside the command, and the command.

    An answer without exactly one command was refused, so it stays whole; where the file tells
    which commands were taken from it, they are what was done.
    """
    blocks = list(_blocks(text))
    if told:
        taken = set(told)
        blocks = [block for block in blocks if block.command.strip() in taken]
    elif len(blocks) != 1:
        return text, []
    rest, end = "", 0
    for block in blocks:
        rest += text[end : block.start]
        end = block.end
    return (rest + text[end:]).strip(), told or [blocks[0].command]


@dataclass(frozen=True, slots=True)
class _Block:
    """A command in a text, and where it stands there with the marks around it."""

    start: int
    end: int
    command: str


def _blocks(text: str) -> Iterator[_Block]:
    """The code blocks that hold commands, each passed over once."""
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
        yield _Block(opening.start(), end, text[opening.end() : close])


def _commands(extra: Mapping[str, object]) -> list[str]:
    """The commands that the file says were taken from a message."""
    actions = extra.get("actions")
    return [
        command
        for action in (actions if isinstance(actions, list) else ())
        if isinstance(action, Mapping) and (command := as_text(action.get("command")))
    ]


def _thought(value: object) -> str:
    return content_text(value) if isinstance(value, str | list) else ""


def _tokens(message: Mapping[str, object], extra: Mapping[str, object]) -> Tokens | None:
    """What the model call behind a message took in and gave out."""
    usage = _mapping(_mapping(extra.get("response")).get("usage")) or _mapping(message.get("usage"))
    for taken_in, given_out in (
        ("prompt_tokens", "completion_tokens"),
        ("input_tokens", "output_tokens"),
    ):
        if tokens := tokens_of(usage.get(taken_in), usage.get(given_out)):
            return tokens
    return None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}

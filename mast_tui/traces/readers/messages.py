"""One message of a chat transcript to its spans: text, thinking, tool calls, tool results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.document import StepList
from mast_tui.traces.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus
from mast_tui.traces.times import unix_seconds

_ROLES: Final[Mapping[str, Role]] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "human": Role.USER,
    "tool": Role.TOOL,
    "function": Role.TOOL,
    "tool_result": Role.TOOL,
}
_USER_NAMES: Final = frozenset({"user", "human", "user_proxy", "userproxy", "customer"})
_CHAIN_TYPES: Final = frozenset({"human", "ai", "tool", "system"})
_CALL_ITEMS: Final = frozenset(
    {"function_call", "custom_tool_call", "mcp_call", "local_shell_call", "web_search_call"}
)
_RESULT_ITEMS: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output"}
)
_CALL_BLOCKS: Final = frozenset({"tool_use", "tool-call", "tool_call", "server_tool_use"})
_RESULT_BLOCKS: Final = frozenset({"tool_result", "tool-result", "tool_call_response"})
_THINKING_BLOCKS: Final = frozenset({"thinking", "reasoning", "redacted_thinking"})
_REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "thinking")
_TIME_FIELDS: Final = ("timestamp", "created_at", "time")

_NAME_CHARS: Final = 100

_ACTOR: Final = re.compile(r"(?P<actor>.*\S)\s*\((?P<aside>[^()]*)\)\s*", re.DOTALL)
_EXIT_CODE: Final = re.compile(
    r"\s*(?:exitcode: (-?\d{1,9}) \(|<returncode>(-?\d{1,9})</returncode>)"
)


def is_message(value: object) -> bool:
    """Whether a JSON value has the shape of a chat message or a response item."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("role"), str):
        return any(field in value for field in ("content", "tool_calls", "function_call", "text"))
    if isinstance(value.get("from"), str) and "value" in value:
        return True
    kind = _type(value)
    if kind in _CALL_ITEMS or kind in _RESULT_ITEMS:
        return True
    if kind in _CHAIN_TYPES or isinstance(value.get("source"), str):
        return "content" in value and kind != ""
    return kind == "reasoning" and "summary" in value


def speaks_by_name(messages: Sequence[object]) -> bool:
    """Whether ``name`` says who speaks, and ``role`` only how one agent sees the other.

    So it is in AG2's transcripts: every message has a name, and there are at least two.
    """
    names: set[str] = set()
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") in ("system", "developer"):
            continue
        name = as_text(message.get("name"))
        if name is None or message.get("role") in ("tool", "function"):
            return False
        names.add(name)
    return len(names) > 1


@dataclass(frozen=True, slots=True)
class _Speaker:
    agent: str
    role: Role
    thinks: bool = False


@dataclass(frozen=True, slots=True)
class _Call:
    key: str
    agent: str
    name: str | None


class MessageMapper:
    """Adds the spans of one message after the other, and ties tool results to their calls.

    ``prefix`` goes before the key of a message to make its place in the file.
    """

    def __init__(self, steps: StepList, *, by_name: bool = False, prefix: str = "") -> None:
        self.problems: list[Problem] = []
        self._steps = steps
        self._by_name = by_name
        self._prefix = prefix
        self._calls: dict[str, _Call] = {}
        self._unanswered: dict[str, _Call] = {}

    def add(self, message: object, key: str) -> None:
        """Add the spans of ``message``; ``key`` is its JSON pointer or line in the source."""
        if not isinstance(message, Mapping):
            self._log(message, key)
            self.problems.append(Problem(self._prefix + key, "not a message but a bare value"))
            return
        start = _start(message)
        kind = "" if isinstance(message.get("role"), str) else _type(message)
        if kind in _CALL_ITEMS:
            self._call(message, key, "assistant", start)
        elif kind in _RESULT_ITEMS:
            self._result(message, message.get("output"), key, start)
        elif kind == "reasoning":
            text = _joined(
                content_text(message.get("summary")), content_text(message.get("content"))
            )
            self._say(_Speaker("assistant", Role.AGENT, thinks=True), text, key, start)
        elif (speaker := self._speaker(message)) is not None:
            self._turn(message, speaker, key, start)
        else:
            self._log(message, key)

    def _speaker(self, message: Mapping[str, object]) -> _Speaker | None:
        name = _name(message, "name", "source")
        said = _name(message, "role", "from")
        if said is None and _type(message) in _CHAIN_TYPES:
            said = _type(message)
        if said is None:
            if name is None or "content" not in message:
                return None
            return _Speaker(name, _role_of_name(name))
        role = _ROLES.get(said.lower())
        if role is Role.TOOL:
            return _Speaker(name or said, role)
        if role is None and name is None:
            return _actor(said)
        if name is not None and self._by_name and role is not Role.SYSTEM:
            return _Speaker(name, _role_of_name(name))
        return _Speaker(name or said, role or Role.AGENT)

    def _turn(
        self, message: Mapping[str, object], speaker: _Speaker, key: str, start: float | None
    ) -> None:
        before = len(self._steps)
        content = message["value"] if "from" in message else message.get("content")
        if content is None:
            content = message.get("text")
        if speaker.role is Role.TOOL and not _has_blocks(content, _RESULT_BLOCKS):
            self._result(message, content, key, start)
            return
        for field in _REASONING_FIELDS:
            thought = message.get(field)
            if isinstance(thought, str | list) and (text := content_text(thought)):
                self._say(speaker, text, f"{key}/{field}", start, SpanKind.REASONING)
                break
        self._content(content, speaker, key, start)
        if refusal := as_text(message.get("refusal")):
            own_key = key if len(self._steps) == before else f"{key}/refusal"
            self._say(speaker, refusal, own_key, start)
        self._tool_calls(message, speaker, key, start)
        if len(self._steps) == before:
            self._say(speaker, "", key, start)

    def _tool_calls(
        self, message: Mapping[str, object], speaker: _Speaker, key: str, start: float | None
    ) -> None:
        calls = message.get("tool_calls")
        if isinstance(calls, Mapping):
            calls = [calls]
        if isinstance(calls, list):
            for number, call in enumerate(calls):
                self._call(call, f"{key}/tool_calls/{number}", speaker.agent, start)
        legacy = message.get("function_call")
        if isinstance(legacy, Mapping):
            self._call(legacy, f"{key}/function_call", speaker.agent, start)

    def _content(self, content: object, speaker: _Speaker, key: str, start: float | None) -> None:
        if not isinstance(content, list) or not _has_blocks(
            content, _CALL_BLOCKS | _RESULT_BLOCKS | _THINKING_BLOCKS
        ):
            if text := content_text(content):
                self._say(speaker, text, key, start)
            return
        texts: list[object] = []
        text_key = key
        for number, block in enumerate([*content, None]):
            kind = _type(block)
            special = kind in _CALL_BLOCKS | _RESULT_BLOCKS | _THINKING_BLOCKS
            if block is not None and not special:
                texts.append(block)
                continue
            if text := content_text(texts):
                self._say(speaker, text, text_key, start)
            texts = []
            text_key = f"{key}/content/{number + 1}"
            if not isinstance(block, Mapping):
                continue
            block_key = f"{key}/content/{number}"
            if kind in _CALL_BLOCKS:
                self._call(block, block_key, speaker.agent, start)
            elif kind in _RESULT_BLOCKS:
                self._result(
                    block,
                    _first(block, "content", "output", "result", "response"),
                    block_key,
                    start,
                )
            else:
                self._say(speaker, content_text(block), block_key, start, SpanKind.REASONING)

    def _say(
        self,
        speaker: _Speaker,
        text: str,
        key: str,
        start: float | None,
        kind: SpanKind | None = None,
    ) -> None:
        if kind is None:
            kind = SpanKind.REASONING if speaker.thinks else SpanKind.MESSAGE
        self._steps.add(
            key,
            kind,
            speaker.role,
            speaker.agent,
            text,
            place=self._prefix + key,
            start=start,
            status=_status_in_text(text),
        )

    def _call(self, call: object, pointer: str, agent: str, start: float | None) -> None:
        if not isinstance(call, Mapping):
            self._log(call, pointer)
            self.problems.append(
                Problem(self._prefix + pointer, "not a tool call but a bare value")
            )
            return
        function = call.get("function")
        asked = function if isinstance(function, Mapping) else call
        name = _name(asked, "name", "toolName", "tool_name") or _name(call, "type")
        arguments = _first(asked, "arguments", "args", "input", "action", "parameters")
        call_id = _identifier(call, "call_id", "id", "tool_call_id", "toolCallId")
        key = self._steps.add(
            f"{call_id}:call" if call_id else pointer,
            SpanKind.TOOL_CALL,
            Role.AGENT,
            agent,
            dump_text(arguments),
            place=self._prefix + pointer,
            name=name,
            start=start,
        )
        made = _Call(key, agent, name)
        self._unanswered[key] = made
        if call_id:
            self._calls[call_id] = made

    def _result(
        self, message: Mapping[str, object], content: object, pointer: str, start: float | None
    ) -> None:
        call_id = _identifier(message, "tool_call_id", "tool_use_id", "call_id", "toolCallId")
        if call_id is None and message.get("type") == "tool_call_response":
            call_id = _identifier(message, "id")
        name = _name(message, "name")
        call = self._answered(call_id, name)
        text = content_text(content)
        self._steps.add(
            f"{call_id}:result" if call_id else pointer,
            SpanKind.TOOL_RESULT,
            Role.TOOL,
            call.agent if call else (name or "tool"),
            text,
            place=self._prefix + pointer,
            name=(call.name if call else None) or name,
            parent=call.key if call else None,
            start=start,
            status=_result_status(message, text),
        )

    def _answered(self, call_id: str | None, name: str | None) -> _Call | None:
        """The call that a result answers: by id, else the oldest open one of that name."""
        if call_id is not None:
            call = self._calls.get(call_id)
        else:
            waiting = self._unanswered.values()
            call = next((one for one in waiting if name in (None, one.name)), None)
        if call is not None:
            self._unanswered.pop(call.key, None)
        return call

    def _log(self, value: object, key: str) -> None:
        self._steps.add(
            key, SpanKind.LOG, Role.LOG, "log", dump_text(value), place=self._prefix + key
        )


def _actor(said: str) -> _Speaker:
    """The speaker of a role such as ``Orchestrator (-> WebSurfer)`` or ``Orchestrator (thought)``.

    Magentic-One writes who acts, and what for, into ``role``.
    """
    if match := _ACTOR.fullmatch(said):
        return _Speaker(match["actor"], Role.AGENT, thinks=match["aside"].strip() == "thought")
    return _Speaker(said, Role.AGENT)


def _role_of_name(name: str) -> Role:
    return Role.USER if name.lower() in _USER_NAMES else Role.AGENT


def _has_blocks(content: object, kinds: frozenset[str]) -> bool:
    return isinstance(content, list) and any(
        isinstance(block, Mapping) and isinstance(block.get("type"), str) and block["type"] in kinds
        for block in content
    )


def _type(value: object) -> str:
    """The ``type`` of a message, item or block; empty where it has none."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind if isinstance(kind, str) else ""


def _name(value: Mapping[str, object], *fields: str) -> str | None:
    """The first field that is a text, on one line and no longer than a name may be."""
    for field in fields:
        if text := as_text(value.get(field)):
            return " ".join(text[: 2 * _NAME_CHARS].split())[:_NAME_CHARS] or None
    return None


def _joined(*texts: str) -> str:
    return "\n".join(text for text in texts if text)


def _first(value: Mapping[str, object], *fields: str) -> object:
    return next((value[field] for field in fields if value.get(field) is not None), None)


def _identifier(value: Mapping[str, object], *fields: str) -> str | None:
    for field in fields:
        found = value.get(field)
        if isinstance(found, int) and not isinstance(found, bool):
            return str(found)
        if text := as_text(found):
            return text
    return None


def _start(message: Mapping[str, object]) -> float | None:
    return next(
        (time for field in _TIME_FIELDS if (time := unix_seconds(message.get(field))) is not None),
        None,
    )


def _result_status(message: Mapping[str, object], text: str) -> SpanStatus:
    """Whether a tool result went well: only what its source says outright."""
    flag = message.get("is_error")
    if isinstance(flag, bool):
        return SpanStatus.ERROR if flag else SpanStatus.OK
    status = message.get("status")
    if status in ("error", "failed", "failure"):
        return SpanStatus.ERROR
    for holder in (message, message.get("metadata"), message.get("extra")):
        if isinstance(holder, Mapping):
            code = _first(holder, "exit_code", "returncode")
            if isinstance(code, int) and not isinstance(code, bool):
                return SpanStatus.ERROR if code else SpanStatus.OK
    if status in ("ok", "success"):
        return SpanStatus.OK
    return _status_in_text(text)


def _status_in_text(text: str) -> SpanStatus:
    if match := _EXIT_CODE.match(text):
        return SpanStatus.OK if int(match[1] or match[2]) == 0 else SpanStatus.ERROR
    return SpanStatus.UNKNOWN

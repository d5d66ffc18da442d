"""What one record of a Codex rollout shows, looked at by itself, and which thread it is of.

Each tells of at most one step: an ``Entry``, before it becomes a span. Most reports on calls (turn
items, and the events at the end of a call) repeat what the response items of the call say. Calls
made from inside another tool, as by Codex's own scripts, have no items of their own and are known
from these reports only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import eq
from typing import ClassVar, Final

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.io.json_values import as_count, as_number, as_text, content_text, dump_text
from mast_tui.traces.model import Role, Shape, SpanKind, SpanStatus, Thread
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    first_in,
    items_of,
    json_in,
    name_set,
    object_in,
    text_in,
    texts_in,
)
from mast_tui.traces.result_status import status_of_code, status_of_result
from mast_tui.traces.times import unix_seconds


class RewordedLines(SpanTable):
    """A table in which some spans' texts are the reader's own words rather than their lines'.

    Those are logs, and calls and results that share a line.
    """

    reworded: ClassVar[frozenset[SpanKind]] = frozenset({SpanKind.LOG})

    def rows_to_check(self, prefilter: Prefilter, first: int, end: int) -> Sequence[int]:
        """Also those that the reader tells in its own words."""
        begin = max(first - 1, 0)
        lines = self.lines[0][begin : end + 1]
        calls = list(compress(range(begin, end), map(eq, lines, lines[1:])))
        shared = {one for call in calls for one in (call, call + 1) if first <= one < end}
        return sorted({*super().rows_to_check(prefilter, first, end), *shared})

    def _tells(self, shape: Shape, prefilter: Prefilter) -> bool:
        return shape[0] in self.reworded or super()._tells(shape, prefilter)


@dataclass(slots=True)  # Not frozen: many are made, and freezing costs time.
class Entry:
    """A step that a record tells of.

    ``agent`` is who acted where that is another than the thread itself. ``event`` marks what a
    response item usually says too, ``parts`` are the texts by which the two are told to be the
    same; ``at_once`` one that is not to wait for its item. ``closes_turn`` marks the end or the
    beginning of a turn, before which no event may be left waiting; its text is empty where it
    says nothing by itself. ``twin`` marks a report on a call that is shown only where no response
    item has that ``call_id``; ``result`` is the answer that it tells of too, ``lasted`` how many
    seconds it took. ``spawned`` is the thread of a sub-agent that the call has begun.
    """

    kind: SpanKind
    role: Role
    text: str
    key: str | None = None
    name: str | None = None
    call_id: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    parts: tuple[str, ...] = ()
    event: bool = False
    closes_turn: bool = False
    agent: str | None = None
    at_once: bool = False
    twin: bool = False
    result: Entry | None = None
    lasted: float | None = None
    spawned: tuple[str, ...] = ()


def log(
    text: str,
    name: str | None,
    status: SpanStatus = SpanStatus.UNKNOWN,
    *,
    closes_turn: bool = False,
) -> Entry:
    """A line of the log."""
    return Entry(SpanKind.LOG, Role.LOG, text, name=name, status=status, closes_turn=closes_turn)


_REPORT_EVENTS: Final = frozenset({"mcp_tool_call_end", "exec_command_end", "patch_apply_end"})
_REPORT_ITEMS: Final = name_set("""
    CommandExecution FileChange McpToolCall DynamicToolCall CollabAgentToolCall Extension
""")
_HEADING: Final = frozenset({"type", "id", "kind", "status"})
_ANSWERS: Final = ("results", "result", "output")
_STREAMS: Final = ("stdout", "stderr")
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def report_of(kind: str, values: Fields, call_id: str | None) -> Entry:
    """The call with its result that an event at its end, or a completed turn item, reports on."""
    asked, lasted = values.get("arguments"), seconds_of(values.get("duration"))
    spawned: tuple[str, ...] = ()
    match kind:
        case "exec_command_end" | "CommandExecution":
            name, asked = "shell", {"command": values.get("command")}
            text = as_text(values.get("aggregated_output")) or texts_in(values, *_STREAMS)
            status = status_or_word(status_of_code(values.get("exit_code")), values)
        case "patch_apply_end" | "FileChange":
            name, asked, text = "apply_patch", values.get("changes"), texts_in(values, *_STREAMS)
            status = status_or_word(status_of_flag(values.get("success")), values)
        case "mcp_tool_call_end":
            invoked = fields_of(values.get("invocation"))
            name, asked = tool_of_mcp(invoked), invoked.get("arguments")
            text, status = _answer_or_error(values.get("result"))
        case "McpToolCall":
            name = tool_of_mcp(values)
            text, status = with_error(values, *answer_of_mcp(values.get("result")))
        case "DynamicToolCall":
            name, given = as_text(values.get("tool")) or "tool", values.get("content_items")
            went = status_of_flag(values.get("success"))
            text, status = with_error(values, content_text(given), went)
        case "CollabAgentToolCall":
            name = _CAPITAL.sub("_", as_text(values.get("tool")) or "agent").lower()
            fields = ("prompt", "receiver_thread_ids", "model")
            asked = {field: values[field] for field in fields if values.get(field)}
            text, status = (
                dump_text(values.get("agents_states")),
                status_of_word(values.get("status")),
            )
            spawned, lasted = receivers_of(values) if name == "spawn_agent" else (), None
        case _:
            name = as_text(values.get("kind")) or "extension"
            text, status = (
                content_text(first_in(values, *_ANSWERS)),
                status_of_word(values.get("status")),
            )
            beside = (*_HEADING, *_ANSWERS)
            asked = {k: v for k, v in values.items() if k not in beside and v is not None}
            lasted = None
    result = Entry(SpanKind.TOOL_RESULT, Role.TOOL, text, call_id=call_id, status=status)
    return Entry(
        SpanKind.TOOL_CALL,
        Role.AGENT,
        dump_text(asked),
        name=name,
        call_id=call_id,
        status=status,
        twin=True,
        result=result,
        lasted=lasted,
        spawned=spawned,
    )


def _answer_or_error(result: object) -> tuple[str, SpanStatus]:
    """The text of an MCP tool's answer as events wrap it, and whether the tool went well."""
    if isinstance(result, Mapping) and "Err" in result:
        return content_text(result["Err"]), SpanStatus.ERROR
    return answer_of_mcp(result.get("Ok", result) if isinstance(result, Mapping) else result)


def with_error(item: Fields, text: str, status: SpanStatus) -> tuple[str, SpanStatus]:
    """The answer of a tool with the error that an item tells beside it, and how the call went."""
    error = item.get("error")
    if error is None:
        return text, status_or_word(status, item)
    message = error.get("message") if isinstance(error, Mapping) else error
    return "\n".join(part for part in (text, content_text(message)) if part), SpanStatus.ERROR


def receivers_of(item: Fields) -> tuple[str, ...]:
    """The threads of the sub-agents that an item speaks to."""
    return tuple(filter(None, map(as_text, items_of(item.get("receiver_thread_ids")))))


def activity(values: Fields, call_id: str | None) -> Entry:
    """What the parent's rollout notes of a sub-agent's life, in one line."""
    thread = as_text(values.get("agent_thread_id"))
    name = as_text(values.get("agent_path")) or thread or "without a name"
    kind = as_text(values.get("kind")) or "active"
    entry = log(f"sub-agent {name}: {kind}", "sub_agent_activity")
    if thread is not None and kind == "started":
        entry.call_id, entry.spawned = call_id, (thread,)
    return entry


def tool_of_mcp(asked: Fields) -> str:
    """The name of an MCP server's tool: ``server.tool``."""
    return texts_in(asked, "server", "tool", between=".") or "mcp"


def answer_of_mcp(result: object) -> tuple[str, SpanStatus]:
    """The text of an MCP tool's answer, and whether the tool went well."""
    if not isinstance(result, Mapping):
        return content_text(result), SpanStatus.UNKNOWN
    text = content_text(result.get("content"))
    for field in ("structured_content", "structuredContent"):
        if not text and result.get(field) is not None:
            text = dump_text(result[field])
    failed = result.get("isError", result.get("is_error"))
    if isinstance(failed, bool):
        return text, SpanStatus.ERROR if failed else SpanStatus.OK
    return text, SpanStatus.UNKNOWN


def status_of_flag(flag: object) -> SpanStatus:
    """Whether a call went well by a flag that is a boolean or its name."""
    if flag in (True, "true"):
        return SpanStatus.OK
    return SpanStatus.ERROR if flag in (False, "false") else SpanStatus.UNKNOWN


def status_of_word(word: object) -> SpanStatus:
    """Whether a call went well by what its ``status`` says."""
    if word == "completed":
        return SpanStatus.OK
    return SpanStatus.ERROR if word in ("failed", "declined", "errored") else SpanStatus.UNKNOWN


def status_or_word(status: SpanStatus, item: Fields) -> SpanStatus:
    """How a call went, by the item's ``status`` where nothing else has told."""
    return status_of_word(item.get("status")) if status is SpanStatus.UNKNOWN else status


def seconds_of(duration: object) -> float | None:
    """Seconds of ``{"secs": 1, "nanos": 500000000}``."""
    if not isinstance(duration, Mapping):
        return None
    whole, rest = as_number(duration.get("secs")), as_number(duration.get("nanos"))
    return None if whole is None or whole < 0 else whole + (rest or 0.0) / 1e9


_SILENT_ITEMS: Final = name_set("""
    additional_tools compaction compaction_summary compaction_trigger configuration_update
    context_compaction ghost_snapshot
""")
"""Response items without anything that a person could read."""
_HARNESS_OPENINGS: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "<recommended_plugins>",
    "<agent_message_board_notification>",
    "<hook_prompt",
    "<INSTRUCTIONS>",
    "# AGENTS.md",
)
_WRAPPED: Final = '{"output":"'
_EXIT_CODE: Final = '","metadata":{"exit_code":'
_WRAPPING_ENDS: Final = re.compile(
    r'(-?(?:0|[1-9][0-9]{0,8})),"duration_seconds":[0-9.]{1,20}\}\}\Z'
)
_ENDING_CHARS: Final = 100
_OK, _ERROR = SpanStatus.OK, SpanStatus.ERROR  # looked up more quickly than a member of an enum
_ENVELOPE: Final = '{"author":'
_ENCRYPTED: Final = '"encrypted_content"'


def item_entry(payload: Fields) -> Entry | None:
    """The step that an item tells of; None for one without anything that could be read."""
    kind = payload.get("type")
    if not isinstance(kind, str):
        return log(dump_text(payload), None)
    if kind == "message":
        return _message(payload)
    if kind == "agent_message":
        return between_agents(payload)
    if kind == "reasoning":
        return reasoning(payload.get("summary"), payload.get("content"), as_text(payload.get("id")))
    if kind in _SILENT_ITEMS:
        return None
    if kind.endswith("_call"):
        call_id, name = id_and_name_of_call(payload)
        text = _arguments(payload)
        return Entry(SpanKind.TOOL_CALL, Role.AGENT, text, name=name, call_id=call_id)
    if kind.endswith("_output"):
        call_id, (text, status) = as_text(payload.get("call_id")), _output(output_of(payload))
        return Entry(SpanKind.TOOL_RESULT, Role.TOOL, text, call_id=call_id, status=status)
    return log(dump_text(payload), kind)


def id_and_name_of_call(payload: Fields) -> tuple[str | None, str]:
    """The id of a call, if it has one, and the name of the tool, else what kind of call it is."""
    call_id = as_text(payload.get("call_id")) or as_text(payload.get("id"))
    return call_id, as_text(payload.get("name")) or str(payload.get("type")).removesuffix("_call")


def output_of(payload: Fields) -> object:
    """What a tool gave, as the item of its result wraps it."""
    return payload.get("output", payload.get("tools"))


def _message(payload: Fields) -> Entry | None:
    text, parts = _text_and_parts(payload.get("content"))
    if not parts:
        return None
    role = payload.get("role")
    key = as_text(payload.get("id"))
    if role == "assistant":
        if text.startswith(_ENVELOPE) and (sent := _sent(text)) is not None:
            return between_agents(sent, key=key)
        return Entry(SpanKind.MESSAGE, Role.AGENT, text, key=key, parts=parts)
    if role == "user" and not (is_harness_text(text) or _is_context(payload)):
        return Entry(SpanKind.MESSAGE, Role.USER, text, key=key, parts=parts)
    return Entry(SpanKind.MESSAGE, Role.SYSTEM, text, key=key, parts=parts)


def is_harness(message: Fields) -> bool:
    """Whether a message item in the user's name was written by the harness."""
    return is_harness_text(content_text(message.get("content"))) or _is_context(message)


def is_harness_text(text: str) -> bool:
    return text.lstrip().startswith(_HARNESS_OPENINGS)


def _is_context(message: Fields) -> bool:
    """Whether newer builds, which note what each part is, note no part as typed by the user."""
    noted = fields_of(message.get("internal_chat_message_metadata_passthrough"))
    kinds = items_of(noted.get("content_item_kinds"))
    return bool(kinds) and all(
        isinstance(kind, str) and "." in kind and kind[:5] != "user." for kind in kinds
    )


def _sent(text: str) -> Fields | None:
    """A message between agents that older builds wrote as JSON in the assistant's name."""
    sent = fields_of(json_in(text))
    return sent if {"author", "recipient", "content"} <= sent.keys() else None


def between_agents(payload: Fields, *, key: str | None = None, event: bool = False) -> Entry:
    """What one agent writes to another; its author acts, whosever rollout it is in."""
    author = as_text(payload.get("author")) or "another agent"
    parts = tuple(text for text in _texts(payload.get("content")) if _ENCRYPTED not in text)
    key = key or as_text(payload.get("id"))
    if not parts:
        recipient = as_text(payload.get("recipient")) or "another agent"
        return log(f"{author} wrote to {recipient}; the text is encrypted", "agent_message")
    return Entry(
        SpanKind.MESSAGE,
        Role.AGENT,
        "\n".join(parts),
        key=key,
        parts=parts,
        agent=author,
        event=event,
        at_once=event,
    )


def thought_of(summary: object, content: object) -> tuple[str, tuple[str, ...]]:
    """What can be read of a thought, as a whole and in its parts, of which there may be none."""
    parts = _texts(summary) + _texts(content)
    return "\n\n".join(parts), parts


def reasoning(
    summary: object, content: object, key: str | None, *, event: bool = False
) -> Entry | None:
    """Readable reasoning; what is only there encrypted shows nothing."""
    text, parts = thought_of(summary, content)
    if not parts:
        return None
    return Entry(SpanKind.REASONING, Role.AGENT, text, key=key, parts=parts, event=event)


def _texts(content: object) -> tuple[str, ...]:
    """The texts of a content's parts that are not blank."""
    if content is None:
        return ()
    text = _only_text(content)
    if text is not None:
        return (text,) if text.strip() else ()
    pieces = content if isinstance(content, list) else [content]
    return tuple(text for piece in pieces if (text := content_text(piece)).strip())


def _text_and_parts(content: object) -> tuple[str, tuple[str, ...]]:
    """The text of a content as a whole, and those of its parts that are not blank."""
    text = _only_text(content)
    if text is not None:
        return text, (text,) if text.strip() else ()
    return content_text(content), _texts(content)


def _only_text(content: object) -> str | None:
    """The text of a content of one part, as nearly every one is; None where it is anything else."""
    if type(content) is list and len(content) == 1 and type(content[0]) is dict:
        text = content[0].get("text")
        return text if type(text) is str else None
    return None


def _arguments(payload: Fields) -> str:
    asked = first_in(payload, "arguments", "input", "action")
    if asked is not None:
        return dump_text(asked)
    known = ("type", "id", "call_id", "name", "status", "result")
    rest = {name: value for name, value in payload.items() if name not in known}
    return dump_text(rest) if rest else ""


def _output(output: object) -> tuple[str, SpanStatus]:
    """The text of a tool's output without its JSON wrapping, and whether the tool went well."""
    if isinstance(output, str):
        if not output.startswith('{"'):
            return output, status_of_result(output)
        inner = object_in(output)
        if inner is not None and isinstance(inner.get("metadata"), dict):
            output = inner
    if isinstance(output, dict):
        said = output.get("output", output.get("content", output.get("content_items")))
        if said is not None:
            return content_text(said), _status_of_fields(output)
    text = content_text(output)
    return text, status_of_result(text)


def status_of_output(output: object) -> SpanStatus:
    """Whether the tool went well that gave this output."""
    if type(output) is str and output.startswith(_WRAPPED):
        # The end of the wrapping tells it without the parsing of what may be a long text.
        place = output.rfind(_EXIT_CODE, max(0, len(output) - _ENDING_CHARS))
        found = _WRAPPING_ENDS.match(output, place + len(_EXIT_CODE)) if place >= 0 else None
        if found is not None:
            return _OK if int(found[1]) == 0 else _ERROR
    return _output(output)[1]


def unwrapped_begins(output: str) -> int:
    """Where in a tool's output the text begins, as far as its JSON wrapping is the usual one."""
    return len(_WRAPPED) if output.startswith(_WRAPPED) else 0


def text_of_output(output: object) -> str:
    """What the tool said that gave this output."""
    return _output(output)[0]


def _status_of_fields(output: Fields) -> SpanStatus:
    status = status_of_code(fields_of(output.get("metadata")).get("exit_code"))
    return status_of_flag(output.get("success")) if status is SpanStatus.UNKNOWN else status


AGENT: Final = "codex"

RECORD_TYPES: Final = name_set("""
    session_meta response_item event_msg turn_context compacted world_state
    inter_agent_communication inter_agent_communication_metadata token_usage_record
""")
_SILENT: Final = name_set("turn_context inter_agent_communication_metadata token_usage_record")

BOOKKEEPING: Final = name_set("""
    token_count session_configured turn_diff agent_message_delta agent_reasoning_delta
    agent_reasoning_section_break context_compacted web_search_begin web_search_end
    exec_command_begin exec_command_output_delta image_generation_begin image_generation_end
    patch_apply_begin mcp_tool_call_begin view_image_tool_call
""")
"""Events that say nothing which a response item or a ``compacted`` record does not say too."""

SAID: Final[Mapping[str, tuple[SpanKind, Role, str]]] = {
    "agent_message": (SpanKind.MESSAGE, Role.AGENT, "message"),
    "user_message": (SpanKind.MESSAGE, Role.USER, "message"),
    "agent_reasoning": (SpanKind.REASONING, Role.AGENT, "text"),
    "agent_reasoning_raw_content": (SpanKind.REASONING, Role.AGENT, "text"),
}
"""Events that repeat what a response item says, and the field in which they do."""

_TURN_BOUNDARIES: Final = name_set("task_started task_complete turn_started turn_complete")
_ERROR_EVENTS: Final = frozenset({"turn_aborted", "error", "stream_error"})
_ITEM_TWINS: Final = name_set("ContextCompaction HookPrompt ImageGeneration ImageView WebSearch")
"""Turn items of which there always is a response item or a ``compacted`` record too."""


def payload_of(record: Fields) -> tuple[str, Fields]:
    """A record's type and payload; a naked response item of the first era is wrapped."""
    kind, payload = record.get("type"), record.get("payload")
    if isinstance(payload, dict) and isinstance(kind, str):  # dict: this is asked of every record
        return kind, payload
    if kind is None and "instructions" in record and "id" in record:
        return "session_meta", record
    if record.get("record_type") is not None:
        return "turn_context", record
    return "response_item", record


def time_of(record: Fields) -> float | None:
    """When the record was written, in Unix seconds."""
    return unix_seconds(record.get("timestamp"))


def entry_of(kind: str, payload: Fields) -> Entry | None:
    """The step that a record of this type tells of; None for mere bookkeeping."""
    if kind == "response_item":
        return item_entry(payload)
    if kind == "event_msg":
        return _event(payload)
    if kind in _SILENT:
        return None
    if kind == "session_meta":
        base = payload.get("base_instructions")
        base = base.get("text") if isinstance(base, Mapping) else base
        text = as_text(base) or as_text(payload.get("instructions")) or ""
        return Entry(SpanKind.MESSAGE, Role.SYSTEM, text) if text.strip() else None
    if kind == "inter_agent_communication":
        return between_agents(payload, event=True)
    if kind == "compacted":
        message = as_text(payload.get("message")) or "the history was compacted"
        return log(message, kind, closes_turn=True)
    return log(dump_text(payload), kind)


def _event(payload: Fields) -> Entry | None:
    kind = payload.get("type")
    if not isinstance(kind, str):
        return log(dump_text(payload), None)
    if kind in BOOKKEEPING:
        return None
    if kind in SAID:
        span, role, field = SAID[kind]
        return _said(span, role, payload.get(field))
    if kind == "item_completed":
        return _completed_item(payload.get("item"))
    if kind in _TURN_BOUNDARIES:
        last = as_text(payload.get("last_agent_message")) or ""
        return Entry(SpanKind.MESSAGE, Role.AGENT, last, closes_turn=True)
    if kind == "turn_aborted":
        why = f"turn aborted: {_reason(payload)}"
        return log(why, kind, SpanStatus.ERROR, closes_turn=True)
    if kind in _REPORT_EVENTS:
        return report_of(kind, payload, as_text(payload.get("call_id")))
    return _note(kind, payload)


def _note(kind: str, payload: Fields) -> Entry:
    """An event that no response item repeats."""
    if kind == "thread_rolled_back":
        return log(_rolled_back(payload), kind, closes_turn=True)
    if kind == "sub_agent_activity":
        return activity(payload, as_text(payload.get("event_id")))
    if kind == "collab_agent_spawn_end":
        thread = as_text(payload.get("new_thread_id"))
        name = text_in(payload, "new_agent_nickname", "new_agent_role", "new_thread_id")
        return Entry(
            SpanKind.LOG,
            Role.LOG,
            f"sub-agent {name}: started" if thread else "no sub-agent was started",
            name=kind,
            call_id=as_text(payload.get("call_id")),
            twin=True,
            spawned=(thread,) if thread else (),
        )
    status = SpanStatus.ERROR if kind in _ERROR_EVENTS else SpanStatus.UNKNOWN
    return log(as_text(payload.get("message")) or dump_text(payload), kind, status)


def _reason(payload: Fields) -> str:
    """Why a turn was aborted; newer builds add the error's own words."""
    reason = as_text(payload.get("reason")) or "no reason given"
    error = payload.get("error")
    if isinstance(error, Mapping):
        error = error.get("message")
    return f"{reason}: {error}" if as_text(error) else reason


def _rolled_back(payload: Fields) -> str:
    turns = as_count(payload.get("num_turns"))
    if turns is None:
        return "rolled back: turns before this were taken out of the history"
    if turns == 1:
        return "rolled back: the last turn before this was taken out of the history"
    return f"rolled back: the last {turns} turns before this were taken out of the history"


def _completed_item(item: object) -> Entry | None:
    """A turn item, as newer builds write it in place of the message events."""
    if not isinstance(item, Mapping):
        return None
    kind = item.get("type")
    if not isinstance(kind, str):
        return log(dump_text(item), None)
    if kind == "Reasoning":
        return reasoning(item.get("summary_text"), item.get("raw_content"), None, event=True)
    text = item.get("text") if kind == "Plan" else content_text(item.get("content"))
    if kind == "UserMessage":
        return _said(SpanKind.MESSAGE, Role.USER, text)
    if kind in ("AgentMessage", "Plan"):
        return _said(SpanKind.MESSAGE, Role.AGENT, text)
    if kind in _ITEM_TWINS:
        return None
    if kind in _REPORT_ITEMS:
        return report_of(kind, item, as_text(item.get("id")))
    if kind == "SubAgentActivity":
        return activity(item, as_text(item.get("id")))
    return log(dump_text(item), kind)


def _said(kind: SpanKind, role: Role, text: object) -> Entry | None:
    if not isinstance(text, str) or not text.strip():
        return None
    if role is Role.USER and is_harness_text(text):
        role = Role.SYSTEM
    return Entry(kind, role, text, event=True)


_ID_FIELDS: Final = ("agent_id", "thread_id", "new_thread_id", "agent_thread_id")
_LONGEST_ANSWER: Final = 10_000
_SHORT_ID: Final = 8


def thread_of(meta: Fields) -> Thread | None:
    """The thread that a ``session_meta`` begins; one begun by the user has no parent."""
    own = text_in(meta, "id", "session_id")
    if own is None:
        return None
    parent = as_text(meta.get("parent_thread_id")) or as_text(
        _spawn_source(meta).get("parent_thread_id")
    )
    return Thread(own, None if parent == own else parent)


def agent_of(meta: Fields, thread: Thread) -> str:
    """What a sub-agent is called: its nickname or role, else the end of its path, else its id."""
    source = _spawn_source(meta)
    for field in ("agent_nickname", "agent_role", "agent_type"):
        if name := as_text(meta.get(field)) or as_text(source.get(field)):
            return " ".join(name.split())
    path = path_of(meta)
    end = path.rstrip("/").rpartition("/")[2].strip() if path else ""
    return end or f"codex {thread.id[:_SHORT_ID]}"


def path_of(meta: Fields) -> str | None:
    """The path by which other agents address this one, from the first agent down."""
    return as_text(meta.get("agent_path")) or as_text(_spawn_source(meta).get("agent_path"))


def thread_in_answer(output: str) -> str | None:
    """The thread that the answer to a spawn call names."""
    if len(output) > _LONGEST_ANSWER:
        return None
    return text_in(fields_of(json_in(output)), *_ID_FIELDS)


def _spawn_source(meta: Fields) -> Fields:
    """What the ``source`` of a sub-agent's thread says of its beginning."""
    return fields_at(meta.get("source"), "subagent", "thread_spawn")

"""The steps that the records of Codex state, each record read by itself.

Rollouts and ``codex exec`` spell the same reports on tools in three ways: as events at the end of a
call, as turn items of rollouts, and as items of ``exec``. ``_REPORTS`` has a reader for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import eq
from typing import ClassVar, Final, NamedTuple

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.io.json_values import as_count, as_number, as_text, content_text, dump_text
from mast_tui.traces.model import Role, Shape, SpanKind, SpanStatus, TraceMeta
from mast_tui.traces.readers.base import records_on_damaged_line
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    json_in,
    kind_of,
    name_set,
    object_in,
    text_in,
    texts_in,
)
from mast_tui.traces.result_status import (
    status_of_code,
    status_of_error_flag,
    status_of_flag,
    status_of_result,
)

AGENT: Final = "codex"


class RewordedLines(SpanTable):
    """A table in which the texts of some spans are the reader's own words, not in their lines.

    Those are logs, and calls and results that share a line.
    """

    reworded: ClassVar[frozenset[SpanKind]] = frozenset({SpanKind.LOG})

    def rows_to_check(self, prefilter: Prefilter, first: int, end: int) -> Sequence[int]:
        """Return also the spans whose texts are not in their lines.

        Args:
            prefilter: The filter for the needle.
            first: The first span.
            end: The span after the last.
        """
        begin = max(first - 1, 0)
        lines = self.lines[0][begin : end + 1]
        pairs = compress(range(begin, end), map(eq, lines, lines[1:]))
        shared = {index for pair in pairs for index in (pair, pair + 1) if first <= index < end}
        return sorted({*super().rows_to_check(prefilter, first, end), *shared})

    def _name_may_match(self, shape: Shape, prefilter: Prefilter) -> bool:
        return shape[0] in self.reworded or super()._name_may_match(shape, prefilter)


RECORD_TYPES: Final = name_set("""
    session_meta response_item event_msg turn_context compacted world_state
    inter_agent_communication inter_agent_communication_metadata token_usage_record
""")
EXEC_EVENTS: Final = ("thread.", "turn.", "item.")


def is_wrapped(record: Fields) -> bool:
    """Return whether a record is typed and wrapped as in rollouts."""
    kind = record.get("type")
    is_typed = isinstance(kind, str) and kind in RECORD_TYPES
    return is_typed and isinstance(record.get("payload"), dict)


def _is_record(record: Fields) -> bool:
    return is_wrapped(record) or kind_of(record).startswith(EXEC_EVENTS)


class CodexLines:
    """The spans of a parser's lines, with what is known of the run.

    A line whose line feeds were lost holds several records. Such lines are rare: a span that is
    not in ``_parts`` belongs to the first record of its line.
    """

    def __init__(self, table: RewordedLines) -> None:
        self.table = table
        self.meta = TraceMeta(system=AGENT)
        self._part = 0  # the number of the record on its line that is read at the moment
        self._parts: dict[int, int] = {}

    def _add(
        self,
        number: int,
        shape: Shape,
        key: str | None,
        time: float | None = None,
        status: SpanStatus = SpanStatus.UNKNOWN,
        parent: int | None = None,
    ) -> int:
        index = self.table.add(number, number, shape, key, parent, time, status)
        if self._part:
            self._parts[index] = self._part
        return index

    def _damaged_records(self, number: int, line: bytes, cut_off: bool) -> Iterator[Fields]:
        """Yield the records of a line that is not a single object."""
        problems = self.table.problems
        records = records_on_damaged_line(line, number, cut_off, problems, _is_record)
        for part, record in enumerate(records):
            self._part = part
            yield record
        self._part = 0

    def _record_of(self, index: int, data: bytes) -> Fields | None:
        """Return the record of a span, or None where its line holds none."""
        record = object_in(data)
        if record is not None:
            return record
        records = records_on_damaged_line(data, 0, False, [], _is_record)
        part = self._parts.get(index, 0)
        return records[part] if part < len(records) else None


@dataclass(slots=True)  # Not frozen: many are made, and freezing costs time.
class RolloutStep:
    """A step that a record of a rollout states.

    Attributes:
        agent: The acting agent, where it is not the one whose rollout it is.
        parts: The texts that records which repeat the step may hold one by one.
        is_event: Whether a response item usually repeats the step.
        ends_turn: Whether no event waits for its item any longer. The text may be empty.
        output: The output of a tool, where the step is a call that has ended.
        only_without_call: Whether the step is shown only if no response item has its ``call_id``.
        seconds: The time that the call took.
        spawned: The threads of the sub-agents that the call began.
    """

    kind: SpanKind
    role: Role
    text: str
    key: str | None = None
    name: str | None = None
    call_id: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    parts: tuple[str, ...] = ()
    agent: str | None = None
    is_event: bool = False
    ends_turn: bool = False
    output: str | None = None
    only_without_call: bool = False
    seconds: float | None = None
    spawned: tuple[str, ...] = ()


def _log(text: str, name: str | None, status: SpanStatus = SpanStatus.UNKNOWN) -> RolloutStep:
    return RolloutStep(SpanKind.LOG, Role.LOG, text, name=name, status=status)


class ToolReport(NamedTuple):
    """A call that has ended, as one record reports it."""

    name: str
    arguments: object
    output: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    spawned: tuple[str, ...] = ()


def _status_of_word(word: object) -> SpanStatus:
    if word == "completed":
        return SpanStatus.OK
    return SpanStatus.ERROR if word in ("failed", "declined", "errored") else SpanStatus.UNKNOWN


_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ANSWERS: Final = ("results", "result", "output")
_NO_ARGUMENTS: Final = frozenset({"type", "id", "kind", "status", *_ANSWERS})


def report_of(kind: str, values: Fields) -> ToolReport | None:
    """Return the report on a call.

    Args:
        kind: The type of the event or the item.
        values: Its fields.

    Returns:
        The report; None for a type that reports on no call.
    """
    tool = as_text(values.get("tool"))
    streams = texts_in(values, "stdout", "stderr")
    success = status_of_flag(values.get("success"))
    arguments = values.get("arguments")
    match kind:
        case "exec_command_end" | "CommandExecution" | "command_execution":
            output = as_text(values.get("aggregated_output")) or streams
            status = status_of_code(values.get("exit_code"))
            report = ToolReport("shell", {"command": values.get("command")}, output, status)
        case "patch_apply_end" | "FileChange":
            report = ToolReport("apply_patch", values.get("changes"), streams, success)
        case "file_change":
            output = as_text(values.get("status")) or ""
            report = ToolReport("file_change", {"changes": values.get("changes")}, output)
        case "mcp_tool_call_end":
            report = _mcp_report(fields_of(values.get("invocation")), values.get("result"))
        case "McpToolCall" | "mcp_tool_call":
            report = _with_error(_mcp_report(values, values.get("result")), values.get("error"))
        case "DynamicToolCall":
            output = content_text(values.get("content_items"))
            report = ToolReport(tool or "tool", arguments, output, success)
            report = _with_error(report, values.get("error"))
        case "CollabAgentToolCall":
            name = _CAPITAL.sub("_", tool or "agent").lower()
            fields = ("prompt", "receiver_thread_ids", "model")
            named = {field: values[field] for field in fields if values.get(field)}
            spawned = _receivers(values) if name == "spawn_agent" else ()
            output = dump_text(values.get("agents_states"))
            report = ToolReport(name, named, output, spawned=spawned)
        case "collab_tool_call":
            report = _collaboration_report(tool or "agent", values)
        case "Extension":
            named = {
                name: value
                for name, value in values.items()
                if name not in _NO_ARGUMENTS and value is not None
            }
            output = content_text(first_in(values, *_ANSWERS))
            report = ToolReport(as_text(values.get("kind")) or "extension", named, output)
        case _:
            return None
    if report.status is SpanStatus.UNKNOWN:
        return report._replace(status=_status_of_word(values.get("status")))
    return report


def _mcp_report(call: Fields, result: object) -> ToolReport:
    """Return the report on a tool of an MCP server; events wrap its answer once more."""
    if isinstance(result, Mapping) and "Err" in result:
        return _with_error(_mcp_report(call, None), result["Err"])
    if isinstance(result, Mapping):
        result = result.get("Ok", result)
    answer = fields_of(result)
    output = content_text(answer.get("content") if answer else result)
    if not output:
        output = dump_text(first_in(answer, "structured_content", "structuredContent"))
    status = status_of_error_flag(answer.get("isError", answer.get("is_error")))
    name = texts_in(call, "server", "tool", between=".") or "mcp"
    return ToolReport(name, call.get("arguments"), output, status)


def _with_error(report: ToolReport, error: object) -> ToolReport:
    """Return the report with the error that a record states beside the output."""
    if error is None:
        return report
    message = content_text(error.get("message") if isinstance(error, Mapping) else error)
    output = "\n".join(text for text in (report.output, message) if text)
    return report._replace(output=output, status=SpanStatus.ERROR)


def _receivers(values: Fields) -> tuple[str, ...]:
    return tuple(filter(None, map(as_text, items_of(values.get("receiver_thread_ids")))))


def _collaboration_report(name: str, values: Fields) -> ToolReport:
    receivers = _receivers(values)
    threads = {"receiver_thread_ids": list(receivers)} if receivers else {}
    prompt = {"prompt": values["prompt"]} if values.get("prompt") else {}
    states = {"agents_states": values.get("agents_states")}
    if name == "spawn_agent":
        return ToolReport(name, prompt, dump_text({**threads, **states}), spawned=receivers)
    return ToolReport(name, {**prompt, **threads}, dump_text(states))


def _report_step(kind: str, values: Fields, call_id: str | None) -> RolloutStep | None:
    report = report_of(kind, values)
    if report is None:
        return None
    step = RolloutStep(SpanKind.TOOL_CALL, Role.AGENT, dump_text(report.arguments))
    step.name = report.name
    step.call_id = call_id
    step.status = report.status
    step.output = report.output or ""
    step.only_without_call = True
    step.seconds = _seconds_of(values.get("duration"))
    step.spawned = report.spawned
    return step


def _seconds_of(duration: object) -> float | None:
    """Return the seconds of ``{"secs": 1, "nanos": 500000000}``."""
    fields = fields_of(duration)
    whole = as_number(fields.get("secs"))
    if whole is None or whole < 0:
        return None
    return whole + (as_number(fields.get("nanos")) or 0.0) / 1e9


SILENT: Final = name_set("""
    turn_context inter_agent_communication_metadata token_usage_record

    token_count session_configured turn_diff agent_message_delta agent_reasoning_delta
    agent_reasoning_section_break context_compacted web_search_begin web_search_end
    exec_command_begin exec_command_output_delta image_generation_begin image_generation_end
    patch_apply_begin mcp_tool_call_begin view_image_tool_call

    ContextCompaction HookPrompt ImageGeneration ImageView WebSearch

    additional_tools compaction compaction_summary compaction_trigger configuration_update
    context_compaction ghost_snapshot
""")
"""The types of records, events, turn items and response items that show nothing.

They have no text, or a response item or a ``compacted`` record has the same text.
"""

SPOKEN: Final[Mapping[str, tuple[SpanKind, Role, str]]] = {
    "agent_message": (SpanKind.MESSAGE, Role.AGENT, "message"),
    "user_message": (SpanKind.MESSAGE, Role.USER, "message"),
    "agent_reasoning": (SpanKind.REASONING, Role.AGENT, "text"),
    "agent_reasoning_raw_content": (SpanKind.REASONING, Role.AGENT, "text"),
}
"""The events that response items repeat, with the fields that hold their texts."""

_TURN_BOUNDARIES: Final = name_set("task_started task_complete turn_started turn_complete")
_ERROR_EVENTS: Final = frozenset({"turn_aborted", "error", "stream_error"})


def payload_of(record: Fields) -> tuple[str, Fields]:
    """Return the type and the payload of a record; bare items of the first era are wrapped."""
    kind = record.get("type")
    payload = record.get("payload")
    if isinstance(payload, dict) and isinstance(kind, str):  # dict: this is asked of every record
        return kind, payload
    if kind is None and "instructions" in record and "id" in record:
        return "session_meta", record
    if record.get("record_type") is not None:
        return "turn_context", record
    return "response_item", record


def step_of(kind: str, payload: Fields) -> RolloutStep | None:
    """Return the step that a record states.

    Args:
        kind: The type of the record.
        payload: Its payload.

    Returns:
        The step; None for a record that shows nothing.
    """
    if kind == "response_item":
        return item_step(payload)
    if kind == "event_msg":
        return _event_step(payload)
    if kind in SILENT:
        return None
    if kind == "session_meta":
        base = payload.get("base_instructions")
        base = base.get("text") if isinstance(base, Mapping) else base
        text = as_text(base) or as_text(payload.get("instructions"))
        return None if text is None else RolloutStep(SpanKind.MESSAGE, Role.SYSTEM, text)
    if kind == "inter_agent_communication":
        return _letter(payload, is_event=True)
    if kind == "compacted":
        step = _log(as_text(payload.get("message")) or "the history was compacted", kind)
        step.ends_turn = True
        return step
    return _log(dump_text(payload), kind)


def _event_step(payload: Fields) -> RolloutStep | None:
    kind = payload.get("type")
    if not isinstance(kind, str):
        return _log(dump_text(payload), None)
    if kind in SILENT:
        return None
    if kind in SPOKEN:
        span_kind, role, field = SPOKEN[kind]
        return _spoken(span_kind, role, payload.get(field))
    if kind == "item_completed":
        item = payload.get("item")
        return _turn_item_step(item) if isinstance(item, Mapping) else None
    if kind in _TURN_BOUNDARIES:
        answer = as_text(payload.get("last_agent_message")) or ""
        return RolloutStep(SpanKind.MESSAGE, Role.AGENT, answer, ends_turn=True)
    if kind in ("turn_aborted", "thread_rolled_back"):
        text = _aborted(payload) if kind == "turn_aborted" else _rolled_back(payload)
        status = SpanStatus.ERROR if kind in _ERROR_EVENTS else SpanStatus.UNKNOWN
        step = _log(text, kind, status)
        step.ends_turn = True
        return step
    if kind == "sub_agent_activity":
        return _activity(payload, as_text(payload.get("event_id")))
    if kind == "collab_agent_spawn_end":
        return _spawn_step(kind, payload)
    report = _report_step(kind, payload, as_text(payload.get("call_id")))
    if report is not None:
        return report
    status = SpanStatus.ERROR if kind in _ERROR_EVENTS else SpanStatus.UNKNOWN
    return _log(as_text(payload.get("message")) or dump_text(payload), kind, status)


def _aborted(payload: Fields) -> str:
    reason = as_text(payload.get("reason")) or "no reason given"
    error = payload.get("error")
    message = error.get("message") if isinstance(error, Mapping) else error
    suffix = f": {message}" if as_text(message) else ""
    return f"turn aborted: {reason}{suffix}"


def _rolled_back(payload: Fields) -> str:
    count = as_count(payload.get("num_turns"))
    turns = "turns before this were"
    if count is not None:
        turns = f"the last {count} turns before this were"
    if count == 1:
        turns = "the last turn before this was"
    return f"rolled back: {turns} taken out of the history"


def _activity(values: Fields, call_id: str | None) -> RolloutStep:
    """Return the log line on a change in a sub-agent's life."""
    thread = as_text(values.get("agent_thread_id"))
    name = as_text(values.get("agent_path")) or thread or "without a name"
    kind = as_text(values.get("kind")) or "active"
    step = _log(f"sub-agent {name}: {kind}", "sub_agent_activity")
    if thread is not None and kind == "started":
        step.call_id = call_id
        step.spawned = (thread,)
    return step


def _spawn_step(kind: str, payload: Fields) -> RolloutStep:
    thread = as_text(payload.get("new_thread_id"))
    name = text_in(payload, "new_agent_nickname", "new_agent_role", "new_thread_id")
    step = _log(f"sub-agent {name}: started" if thread else "no sub-agent was started", kind)
    step.call_id = as_text(payload.get("call_id"))
    step.only_without_call = True
    step.spawned = (thread,) if thread else ()
    return step


def _turn_item_step(item: Fields) -> RolloutStep | None:
    """Return the step of a turn item, which newer builds write in place of events."""
    kind = item.get("type")
    if not isinstance(kind, str):
        return _log(dump_text(item), None)
    if kind in SILENT:
        return None
    item_id = as_text(item.get("id"))
    match kind:
        case "Reasoning":
            text, parts = thought_of(item.get("summary_text"), item.get("raw_content"))
            step = _spoken(SpanKind.REASONING, Role.AGENT, text)
            if step is not None:
                step.parts = parts
            return step
        case "UserMessage":
            return _spoken(SpanKind.MESSAGE, Role.USER, content_text(item.get("content")))
        case "AgentMessage":
            return _spoken(SpanKind.MESSAGE, Role.AGENT, content_text(item.get("content")))
        case "Plan":
            return _spoken(SpanKind.MESSAGE, Role.AGENT, item.get("text"))
        case "SubAgentActivity":
            return _activity(item, item_id)
    return _report_step(kind, item, item_id) or _log(dump_text(item), kind)


def _spoken(kind: SpanKind, role: Role, text: object) -> RolloutStep | None:
    if not isinstance(text, str) or not text.strip():
        return None
    return RolloutStep(kind, speaker_role(role, text), text, is_event=True)


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


def speaker_role(role: Role, text: str) -> Role:
    """Return the role of a speaker; the harness also writes in the user's name.

    Args:
        role: The role that the record states.
        text: The text of the message.
    """
    harness = role is Role.USER and text.lstrip().startswith(_HARNESS_OPENINGS)
    return Role.SYSTEM if harness else role


_ENVELOPE: Final = '{"author":'
_ENCRYPTED: Final = '"encrypted_content"'
_CALL_FIELDS: Final = frozenset({"type", "id", "call_id", "name", "status", "result"})


def item_step(payload: Fields) -> RolloutStep | None:
    """Return the step of a response item; None for an item without readable text."""
    kind = payload.get("type")
    if not isinstance(kind, str):
        return _log(dump_text(payload), None)
    key = as_text(payload.get("id"))
    if kind == "message":
        return _message(payload, key)
    if kind == "agent_message":
        return _letter(payload)
    if kind == "reasoning":
        text, parts = thought_of(payload.get("summary"), payload.get("content"))
        if not parts:
            return None
        return RolloutStep(SpanKind.REASONING, Role.AGENT, text, key=key, parts=parts)
    if kind in SILENT:
        return None
    if kind.endswith("_call"):
        call_id, name = call_id_and_name(payload)
        arguments = first_in(payload, "arguments", "input", "action")
        if arguments is None:
            fields = {name: payload[name] for name in payload if name not in _CALL_FIELDS}
            arguments = fields or None
        text = dump_text(arguments)
        return RolloutStep(SpanKind.TOOL_CALL, Role.AGENT, text, name=name, call_id=call_id)
    if kind.endswith("_output"):
        return RolloutStep(SpanKind.TOOL_RESULT, Role.TOOL, text_of_output(output_of(payload)))
    return _log(dump_text(payload), kind)


def call_id_and_name(payload: Fields) -> tuple[str | None, str]:
    """Return the id of a call and the name of its tool, else the type of the call."""
    call_id = as_text(payload.get("call_id")) or as_text(payload.get("id"))
    return call_id, as_text(payload.get("name")) or str(payload.get("type")).removesuffix("_call")


def output_of(payload: Fields) -> object:
    """Return the output in the item of a result."""
    return payload.get("output", payload.get("tools"))


def _message(payload: Fields, key: str | None) -> RolloutStep | None:
    content = payload.get("content")
    text = _single_text(content)
    parts = _texts(content)
    if text is None:
        text = content_text(content)
    if not parts:
        return None
    role = payload.get("role")
    if role == "assistant":
        if text.startswith(_ENVELOPE):  # older builds wrote letters as JSON in the agent's name
            letter = fields_of(json_in(text))
            if {"author", "recipient", "content"} <= letter.keys():
                return _letter(letter, key=key)
        return RolloutStep(SpanKind.MESSAGE, Role.AGENT, text, key=key, parts=parts)
    is_user = role == "user" and not is_from_harness(payload)
    speaker = Role.USER if is_user else Role.SYSTEM
    return RolloutStep(SpanKind.MESSAGE, speaker, text, key=key, parts=parts)


def is_from_harness(message: Fields) -> bool:
    """Return whether the harness wrote a message in the user's name.

    Newer builds note the kind of each part of a message, such as ``user.text``.
    """
    if speaker_role(Role.USER, content_text(message.get("content"))) is Role.SYSTEM:
        return True
    metadata = fields_of(message.get("internal_chat_message_metadata_passthrough"))
    kinds = items_of(metadata.get("content_item_kinds"))
    return bool(kinds) and all(
        isinstance(kind, str) and "." in kind and not kind.startswith("user.") for kind in kinds
    )


def _letter(payload: Fields, *, key: str | None = None, is_event: bool = False) -> RolloutStep:
    """Return the message of one agent to another; its author acts, whosever rollout it is in."""
    author = as_text(payload.get("author")) or "another agent"
    parts = tuple(text for text in _texts(payload.get("content")) if _ENCRYPTED not in text)
    if not parts:
        recipient = as_text(payload.get("recipient")) or "another agent"
        return _log(f"{author} wrote to {recipient}; the text is encrypted", "agent_message")
    step = RolloutStep(SpanKind.MESSAGE, Role.AGENT, "\n".join(parts), parts=parts)
    step.key = key or as_text(payload.get("id"))
    step.agent = author
    step.is_event = is_event
    return step


def thought_of(summary: object, content: object) -> tuple[str, tuple[str, ...]]:
    """Return the readable text of a thought, and its parts; encrypted ones have none.

    Args:
        summary: The summary of the thought.
        content: The content of the thought.
    """
    parts = _texts(summary) + _texts(content)
    return "\n\n".join(parts), parts


def _texts(content: object) -> tuple[str, ...]:
    """Return the texts of a content's parts that are not blank."""
    if content is None:
        return ()
    text = _single_text(content)
    if text is not None:
        return (text,) if text.strip() else ()
    pieces = content if isinstance(content, list) else [content]
    return tuple(text for piece in pieces if (text := content_text(piece)).strip())


def _single_text(content: object) -> str | None:
    """Return the text of a content of one part, as nearly every content is; None for others."""
    if type(content) is list and len(content) == 1 and type(content[0]) is dict:
        text = content[0].get("text")
        return text if type(text) is str else None
    return None


_WRAPPED: Final = '{"output":"'
_EXIT_CODE: Final = '","metadata":{"exit_code":'
_WRAPPING_END: Final = re.compile(
    r'(-?(?:0|[1-9][0-9]{0,8})),"duration_seconds":[0-9.]{1,20}\}\}\Z'
)
_WRAPPING_CHARS: Final = 100
_LONGEST_ANSWER: Final = 100_000


def text_of_output(output: object) -> str:
    """Return the text of a tool's output without its JSON wrapping."""
    return _unwrapped(output)[0]


def status_of_output(output: object) -> SpanStatus:
    """Return the status of a call by its output."""
    if type(output) is str and output.startswith(_WRAPPED):
        # The end of the wrapping states it without the parsing of what may be a long text.
        begin = output.rfind(_EXIT_CODE, max(0, len(output) - _WRAPPING_CHARS))
        end = _WRAPPING_END.match(output, begin + len(_EXIT_CODE)) if begin >= 0 else None
        if end is not None:
            return SpanStatus.OK if int(end[1]) == 0 else SpanStatus.ERROR
    text, status = _unwrapped(output)
    return status_of_result(text) if status is None else status


def may_be_object(output: object) -> bool:
    """Return whether an output may be a short JSON object, such as one that names a new thread."""
    if type(output) is not str:
        return True
    if len(output) > _LONGEST_ANSWER:
        return False
    begin = len(_WRAPPED) if output.startswith(_WRAPPED) else 0
    first = output[begin : begin + 1]
    return first in ("{", "\\") or first.isspace()


def _unwrapped(output: object) -> tuple[str, SpanStatus | None]:
    """Return the text of an output, and the status that its wrapping states, if it has one."""
    if isinstance(output, str):
        if not output.startswith('{"'):
            return output, None
        wrapping = object_in(output)
        if wrapping is not None and isinstance(wrapping.get("metadata"), dict):
            output = wrapping
    if isinstance(output, dict):
        text = output.get("output", output.get("content", output.get("content_items")))
        if text is not None:
            status = status_of_code(fields_of(output.get("metadata")).get("exit_code"))
            if status is SpanStatus.UNKNOWN:
                status = status_of_flag(output.get("success"))
            return content_text(text), status
    return content_text(output), None

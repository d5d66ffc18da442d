"""The steps in the records of Codex, each record read by itself.

Reports on tools have three forms: events at the end of a call, turn items of rollouts, and items of
``codex exec``. ``report_step_of`` reads all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress
from operator import eq
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct, structs

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
    without,
)
from mast_tui.traces.result_status import (
    first_known_status,
    status_of_code,
    status_of_error_flag,
    status_of_flag,
    status_of_result,
    status_of_word,
)

if TYPE_CHECKING:
    from mast_tui.traces.byte_prefilter import Prefilter

CODEX: Final = "codex"


class RewordedLines(SpanTable):
    """A table in which some spans have texts that are not in their lines.

    These spans are logs with the reader's own words, and calls and results on a common line.

    Attributes:
        reworded_kinds: The kinds of spans with the reader's own words.
    """

    reworded_kinds: ClassVar[frozenset[SpanKind]] = frozenset({SpanKind.LOG})

    def rows_to_check(self, prefilter: Prefilter, first: int, end: int) -> Sequence[int]:
        """Return the rows that may match the searched text although their lines do not.

        Rows with a common line are among them, because the line has the text of only one.

        Args:
            prefilter: The filter for the searched text.
            first: The first row.
            end: The row after the last.
        """
        # Rows of one line are neighbours. A neighbour may be just outside of the range.
        outer_first = max(first - 1, 0)
        first_lines, _last_lines = self.lines
        line_numbers = first_lines[outer_first : end + 1]
        has_line_of_next_row = map(eq, line_numbers, line_numbers[1:])
        rows = set(super().rows_to_check(prefilter, first, end))
        for row in compress(range(outer_first, end), has_line_of_next_row):
            rows.update(index for index in (row, row + 1) if first <= index < end)
        return sorted(rows)

    def _name_may_match(self, shape: Shape, prefilter: Prefilter) -> bool:
        """Return whether a span's name may match; True if its text is the reader's own words."""
        kind, *_ = shape
        return kind in self.reworded_kinds or super()._name_may_match(shape, prefilter)


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
    """The spans of a parser's lines, and the facts of the run.

    A damaged line may hold several records. A span that is not in ``_part_by_span`` belongs to the
    first record of its line.
    """

    def __init__(self, table: RewordedLines) -> None:
        self.table = table
        self.meta = TraceMeta(system=CODEX)
        self._number_on_line = 0
        """The number of the current record on its line, from 0 on."""
        self._part_by_span: dict[int, int] = {}
        """The number of a span's record on its line, by span index; 0 is left out."""

    def _add_span(
        self,
        line_number: int,
        shape: Shape,
        key: str | None,
        time: float | None = None,
        status: SpanStatus = SpanStatus.UNKNOWN,
        parent: int | None = None,
    ) -> int:
        """Add a span of the current record of a line; return the span's index."""
        index = self.table.add(line_number, line_number, shape, key, parent, time, status)
        if self._number_on_line:
            self._part_by_span[index] = self._number_on_line
        return index

    def _damaged_records(self, line_number: int, line: bytes, cut_off: bool) -> Iterator[Fields]:
        """Yield the records on a damaged line, and set ``_number_on_line`` for each."""
        problems = self.table.problems
        records = records_on_damaged_line(line, line_number, cut_off, problems, _is_record)
        for number_on_line, record in enumerate(records):
            self._number_on_line = number_on_line
            yield record
        self._number_on_line = 0

    def _record_of(self, index: int, data: bytes) -> Fields | None:
        """Return the record of a span from the bytes of its line; None if the line lacks it."""
        record = object_in(data)
        if record is not None:
            return record
        # The problems were reported when the line was first read.
        records = records_on_damaged_line(
            data, number=0, cut_off=False, problems=[], is_record=_is_record
        )
        number_on_line = self._part_by_span.get(index, 0)
        return records[number_on_line] if number_on_line < len(records) else None


class RolloutStep(Struct):
    """A step in a record of a rollout.

    Attributes:
        agent: The acting agent, if it is not the agent of the rollout.
        parts: The parts of the text, each of which another record may repeat alone.
        is_event: Whether a response item usually repeats the step.
        ends_turn: Whether the step ends the turn, for which events have waited.
        output: The output of a call that has ended.
        only_without_call_item: Whether a response item with the ``call_id`` hides the step.
        seconds: The duration of the call.
        spawned_threads: The threads of the sub-agents that the call started.
        is_incomplete: Whether a later record has the rest of the step.
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
    only_without_call_item: bool = False
    seconds: float | None = None
    spawned_threads: tuple[str, ...] = ()
    is_incomplete: bool = False


def log_step(text: str, name: str, *, failed: bool = False) -> RolloutStep:
    """Return the step of a log.

    Args:
        text: The text.
        name: The name of the log; may be empty.
        failed: Whether the log is an error.
    """
    status = SpanStatus.ERROR if failed else SpanStatus.UNKNOWN
    return RolloutStep(SpanKind.LOG, Role.LOG, text, name=name or None, status=status)


def _report_step(
    name: str,
    arguments: object,
    output: str | None,
    status: SpanStatus = SpanStatus.UNKNOWN,
    spawned_threads: tuple[str, ...] = (),
) -> RolloutStep:
    """Return the step of a report on a tool call, which a response item with the call hides."""
    return RolloutStep(
        SpanKind.TOOL_CALL,
        Role.AGENT,
        dump_text(arguments),
        name=name,
        output=output,
        status=status,
        only_without_call_item=True,
        spawned_threads=spawned_threads,
    )


_CAPITAL: Final = r"(?<=[a-z])(?=[A-Z])"
_ANSWER_FIELDS: Final = ("results", "result", "output")
_NON_ARGUMENT_FIELDS: Final = frozenset({"type", "id", "kind", "status", *_ANSWER_FIELDS})


def report_step_of(kind: str, values: Fields) -> RolloutStep | None:
    """Return the step of a record that reports both a tool call and its output.

    The result is None for a type that reports on no call.

    Args:
        kind: The type of the event or the item, such as ``exec_command_end``.
        values: The fields of the event or the item.
    """
    report_of = _REPORT_BY_KIND.get(kind)
    if report_of is None:
        return None
    report = report_of(values)
    report.status = first_known_status(report.status, status_of_word(values.get("status")))
    report.seconds = _seconds_of(values.get("duration"))
    return report


def _shell_report(values: Fields) -> RolloutStep:
    output = as_text(values.get("aggregated_output")) or texts_in(values, "stdout", "stderr")
    status = status_of_code(values.get("exit_code"))
    return _report_step("shell", {"command": values.get("command")}, output, status)


def _patch_report(values: Fields) -> RolloutStep:
    output = texts_in(values, "stdout", "stderr")
    status = status_of_flag(values.get("success"))
    return _report_step("apply_patch", values.get("changes"), output, status)


def _file_change_report(values: Fields) -> RolloutStep:
    output = as_text(values.get("status")) or ""
    return _report_step("file_change", {"changes": values.get("changes")}, output)


def _image_view_report(values: Fields) -> RolloutStep:
    """Return the report on a call that showed the model a picture."""
    return _report_step("view_image", {"path": values.get("path")}, output=None)


def _mcp_report(values: Fields) -> RolloutStep:
    """Return the report on a call of an MCP tool."""
    # Events have the call under ``invocation``, and the result under ``Ok`` or ``Err``.
    call = fields_of(values.get("invocation")) or values
    result = values.get("result")
    error = values.get("error")
    if isinstance(result, Mapping):
        error = result.get("Err", error)
        result = None if "Err" in result else result.get("Ok", result)
    result_fields = fields_of(result)
    output = content_text(result_fields.get("content") if result_fields else result)
    if not output:
        output = dump_text(first_in(result_fields, "structured_content", "structuredContent"))
    status = status_of_error_flag(result_fields.get("isError", result_fields.get("is_error")))
    name = texts_in(call, "server", "tool", between=".") or "mcp"
    return _with_error(_report_step(name, call.get("arguments"), output, status), error)


def _with_error(step: RolloutStep, error: object) -> RolloutStep:
    """Return the step with an error added to its output."""
    if error is None:
        return step
    message = content_text(error.get("message") if isinstance(error, Mapping) else error)
    output = "\n".join(text for text in (step.output, message) if text)
    return structs.replace(step, output=output, status=SpanStatus.ERROR)


def _receiver_threads(values: Fields) -> tuple[str, ...]:
    """Return the ids of the threads of the agents that a call addresses."""
    return tuple(filter(None, map(as_text, items_of(values.get("receiver_thread_ids")))))


def _dynamic_tool_report(values: Fields) -> RolloutStep:
    """Return the report on a call of a tool that the client of Codex defined."""
    name = as_text(values.get("tool")) or "tool"
    output = content_text(values.get("content_items"))
    status = status_of_flag(values.get("success"))
    report = _report_step(name, values.get("arguments"), output, status)
    return _with_error(report, values.get("error"))


def _extension_report(values: Fields) -> RolloutStep:
    name = as_text(values.get("kind")) or "extension"
    stated_fields = {field: value for field, value in values.items() if value is not None}
    arguments = without(stated_fields, _NON_ARGUMENT_FIELDS)
    return _report_step(name, arguments, content_text(first_in(values, *_ANSWER_FIELDS)))


def _collaboration_item_report(values: Fields) -> RolloutStep:
    """Return the report of a rollout on a call between agents."""
    name = re.sub(_CAPITAL, "_", as_text(values.get("tool")) or "agent").lower()
    argument_fields = ("prompt", "receiver_thread_ids", "model")
    arguments = {field: values[field] for field in argument_fields if values.get(field)}
    receivers = _receiver_threads(values) if name == "spawn_agent" else ()
    output = dump_text(values.get("agents_states"))
    return _report_step(name, arguments, output, spawned_threads=receivers)


def _collaboration_report(values: Fields) -> RolloutStep:
    """Return the report of ``exec`` on a call between agents."""
    name = as_text(values.get("tool")) or "agent"
    receivers = _receiver_threads(values)
    thread_field = {"receiver_thread_ids": list(receivers)} if receivers else {}
    prompt_field = {"prompt": values["prompt"]} if values.get("prompt") else {}
    states_field = {"agents_states": values.get("agents_states")}
    if name == "spawn_agent":
        # Only this call begins new threads, so they are part of the output.
        output = dump_text({**thread_field, **states_field})
        return _report_step(name, prompt_field, output, spawned_threads=receivers)
    return _report_step(name, {**prompt_field, **thread_field}, dump_text(states_field))


_REPORT_BY_KIND: Final[Mapping[str, Callable[[Fields], RolloutStep]]] = {
    "exec_command_end": _shell_report,
    "CommandExecution": _shell_report,
    "command_execution": _shell_report,
    "patch_apply_end": _patch_report,
    "FileChange": _patch_report,
    "file_change": _file_change_report,
    "mcp_tool_call_end": _mcp_report,
    "McpToolCall": _mcp_report,
    "mcp_tool_call": _mcp_report,
    "DynamicToolCall": _dynamic_tool_report,
    "dynamic_tool_call_response": _dynamic_tool_report,
    "CollabAgentToolCall": _collaboration_item_report,
    "collab_tool_call": _collaboration_report,
    "Extension": _extension_report,
    "view_image_tool_call": _image_view_report,
    "ImageView": _image_view_report,
}
"""The functions that read a report, by the type of the event or the item."""


def hosted_call_step(values: Fields) -> RolloutStep:
    """Return the step of a call that the model's host ran, such as a web search.

    Builds since August 2026 record the results of a search in the event.
    """
    results = items_of(values.get("results"))
    call_id = text_in(values, "call_id", "id")
    action = fields_of(values.get("action"))
    query = text_in(values, "query") or text_in(action, "query", "url")
    arguments = action or {
        name: values[name] for name in ("query", "revised_prompt") if values.get(name)
    }
    return RolloutStep(
        SpanKind.TOOL_CALL,
        Role.AGENT,
        dump_text(arguments),
        name=HOSTED_CALLS[str(values.get("type"))],
        call_id=call_id,
        output=dump_text(results) if results else None,
        # An event and a response item both report the call, with the same query or id.
        parts=tuple(part for part in (query, call_id) if part),
        is_event=not results,
        only_without_call_item=bool(results),
    )


def _seconds_of(duration: object) -> float | None:
    """Return the seconds of a duration such as ``{"secs": 1, "nanos": 500000000}``."""
    fields = fields_of(duration)
    whole_seconds = as_number(fields.get("secs"))
    if whole_seconds is None or whole_seconds < 0:
        return None
    return whole_seconds + (as_number(fields.get("nanos")) or 0.0) / 1e9


SILENT_TYPES: Final = name_set("""
    turn_context world_state inter_agent_communication_metadata token_usage_record

    token_count session_configured thread_settings_applied thread_name_updated turn_diff
    agent_message_delta agent_reasoning_delta agent_reasoning_section_break context_compacted
    web_search_begin
    exec_command_begin exec_command_output_delta image_generation_begin
    patch_apply_begin mcp_tool_call_begin dynamic_tool_call_request

    ContextCompaction HookPrompt

    additional_tools compaction compaction_summary compaction_trigger configuration_update
    context_compaction ghost_snapshot
""")
"""The types of records, events, turn items and response items that are not shown.

They have no text, or a response item or a ``compacted`` record has the same text.
"""

_SPOKEN_EVENTS: Final[Mapping[str, tuple[SpanKind, Role, str]]] = {
    "agent_message": (SpanKind.MESSAGE, Role.AGENT, "message"),
    "user_message": (SpanKind.MESSAGE, Role.USER, "message"),
    "agent_reasoning": (SpanKind.REASONING, Role.AGENT, "text"),
    "agent_reasoning_raw_content": (SpanKind.REASONING, Role.AGENT, "text"),
    "UserMessage": (SpanKind.MESSAGE, Role.USER, "content"),
    "AgentMessage": (SpanKind.MESSAGE, Role.AGENT, "content"),
    "Plan": (SpanKind.MESSAGE, Role.AGENT, "text"),
}
"""The events and turn items that response items repeat, with the names of their text fields."""

HOSTED_CALLS: Final[Mapping[str, str]] = {
    "web_search_call": "web_search",
    "web_search_end": "web_search",
    "WebSearch": "web_search",
    "image_generation_call": "image_generation",
    "image_generation_end": "image_generation",
    "ImageGeneration": "image_generation",
}
"""The tool of a call that the model's host runs, by the type of the item or event."""

_ERROR_EVENTS: Final = frozenset({"error", "stream_error"})


def payload_of(record: Fields) -> tuple[str, Fields]:
    """Return the type and the payload of a record."""
    kind = record.get("type")
    payload = record.get("payload")
    # Not Mapping: that test takes longer, and every record is tested.
    if isinstance(payload, dict) and isinstance(kind, str):
        return kind, payload
    # In the first builds, a record is its own payload.
    if kind is None and "instructions" in record and "id" in record:
        return "session_meta", record
    if record.get("record_type") is not None:
        return "turn_context", record
    return "response_item", record


def step_of(kind: str, payload: Fields) -> RolloutStep | None:
    """Return the step in a record; None for a record that shows nothing.

    Args:
        kind: The type of the record.
        payload: The payload of the record.
    """
    match kind:
        case "response_item":
            return item_step(payload)
        case "event_msg" if payload.get("type") == "item_completed":
            item = payload.get("item")
            return _event_step(item) if isinstance(item, Mapping) else None
        case "event_msg":
            return _event_step(payload)
        case kind if kind in SILENT_TYPES:
            return None
        case "session_meta":
            instructions = payload.get("base_instructions")
            if isinstance(instructions, Mapping):
                instructions = instructions.get("text")
            text = as_text(instructions) or as_text(payload.get("instructions"))
            return None if text is None else RolloutStep(SpanKind.MESSAGE, Role.SYSTEM, text)
        case "inter_agent_communication":
            return _agent_message_step(payload, is_event=True)
        case "compacted":
            text = as_text(payload.get("message")) or "the history was compacted"
            return structs.replace(log_step(text, kind), ends_turn=True)
    return log_step(dump_text(payload), kind)


def _event_step(payload: Fields) -> RolloutStep | None:
    """Return the step of an event; None for an event that shows nothing.

    Newer builds of Codex write a turn item in place of an event, with a type in camel case.
    """
    kind = kind_of(payload)
    if kind in SILENT_TYPES:
        return None
    if kind in _SPOKEN_EVENTS:
        span_kind, role, field = _SPOKEN_EVENTS[kind]
        content = payload.get(field)
        # The item has the same texts, but other notes on pictures.
        texts = [part for part in items_of(content) if "text" in fields_of(part)]
        return _text_event_step(span_kind, role, content_text(content), _nonblank_texts(texts))
    if kind in _STEP_OF_EVENT:
        return _STEP_OF_EVENT[kind](payload)
    step = report_step_of(kind, payload)
    if step is None:
        text = text_in(payload, "message", "rationale", "user_facing_hint") or dump_text(payload)
        step = log_step(text, kind, failed=kind in _ERROR_EVENTS)
        # The item of a call between agents shows the call too.
        step.only_without_call_item = kind.startswith("collab_")
    step.call_id = text_in(payload, *_ID_FIELDS)
    return step


def _reasoning_step(payload: Fields) -> RolloutStep | None:
    text, parts = _thought_of(payload.get("summary_text"), payload.get("raw_content"))
    return _text_event_step(SpanKind.REASONING, Role.AGENT, text, parts)


def _turn_boundary_step(payload: Fields) -> RolloutStep:
    """Return a step with the error that ended a turn, or else with the turn's last message."""
    if error := _error_message(payload):
        return structs.replace(log_step(error, kind_of(payload), failed=True), ends_turn=True)
    answer = as_text(payload.get("last_agent_message")) or ""
    return RolloutStep(SpanKind.MESSAGE, Role.AGENT, answer, ends_turn=True)


def _error_message(payload: Fields) -> str | None:
    error = payload.get("error")
    return as_text(error.get("message") if isinstance(error, Mapping) else error)


def _abort_step(payload: Fields) -> RolloutStep:
    """Return a log step with the reason why a turn was aborted."""
    reason = as_text(payload.get("reason")) or "no reason given"
    error = _error_message(payload)
    error_suffix = f": {error}" if error else ""
    step = log_step(f"turn aborted: {reason}{error_suffix}", "turn_aborted", failed=True)
    return structs.replace(step, ends_turn=True)


def _rollback_step(payload: Fields) -> RolloutStep:
    """Return a log step with the number of turns that a rollback removed from the history."""
    count = as_count(payload.get("num_turns"))
    if count is None:
        turns_phrase = "turns before this were"
    elif count == 1:
        turns_phrase = "the last turn before this was"
    else:
        turns_phrase = f"the last {count} turns before this were"
    text = f"rolled back: {turns_phrase} taken out of the history"
    return structs.replace(log_step(text, "thread_rolled_back"), ends_turn=True)


def _sub_agent_step(values: Fields) -> RolloutStep:
    """Return the log step for a sub-agent's change of state, such as ``started``."""
    thread = as_text(values.get("agent_thread_id"))
    name = as_text(values.get("agent_path")) or thread or "without a name"
    kind = as_text(values.get("kind")) or "active"
    step = log_step(f"sub-agent {name}: {kind}", "sub_agent_activity")
    if thread is not None and kind == "started":
        call_id = text_in(values, *_ID_FIELDS)
        return structs.replace(step, call_id=call_id, spawned_threads=(thread,))
    return step


def _spawn_step(payload: Fields) -> RolloutStep:
    """Return the log step for the end of a call that starts a sub-agent."""
    thread = as_text(payload.get("new_thread_id"))
    name = text_in(payload, "new_agent_nickname", "new_agent_role", "new_thread_id")
    # Without a thread id, no sub-agent was started.
    text = f"sub-agent {name}: started" if thread else "no sub-agent was started"
    return structs.replace(
        log_step(text, "collab_agent_spawn_end"),
        call_id=as_text(payload.get("call_id")),
        only_without_call_item=True,
        spawned_threads=(thread,) if thread else (),
    )


_ID_FIELDS: Final = ("call_id", "event_id", "id")
_STEP_OF_EVENT: Final[Mapping[str, Callable[[Fields], RolloutStep | None]]] = {
    "Reasoning": _reasoning_step,
    **dict.fromkeys(
        ("task_started", "task_complete", "turn_started", "turn_complete"), _turn_boundary_step
    ),
    "turn_aborted": _abort_step,
    "thread_rolled_back": _rollback_step,
    **dict.fromkeys(HOSTED_CALLS, hosted_call_step),
    "sub_agent_activity": _sub_agent_step,
    "SubAgentActivity": _sub_agent_step,
    "collab_agent_spawn_end": _spawn_step,
}
"""The functions that read an event or a turn item, by its type."""


def _text_event_step(
    kind: SpanKind, role: Role, text: str, parts: tuple[str, ...] = ()
) -> RolloutStep | None:
    """Return the step of an event with a message or a thought, unless its text is blank."""
    if not text.strip():
        return None
    return RolloutStep(kind, _speaker_role(role, text), text, parts=parts, is_event=True)


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


def prompt_of(text: str, parts: Sequence[str]) -> str:
    """Return the prompt in a user's message, without texts of the harness before it.

    Args:
        text: The whole text.
        parts: The texts of its parts; the last follows those of the harness.
    """
    return parts[-1] if parts and text.lstrip().startswith(_HARNESS_OPENINGS) else text


def _speaker_role(role: Role, text: str) -> Role:
    """Return the role of a message's writer: SYSTEM for a harness's text in the user's name."""
    is_harness_text = role is Role.USER and text.lstrip().startswith(_HARNESS_OPENINGS)
    return Role.SYSTEM if is_harness_text else role


_ENVELOPE: Final = '{"author":'
_ENCRYPTED: Final = '"encrypted_content"'
_CALL_FIELDS: Final = frozenset({"type", "id", "call_id", "name", "status", "result"})


def item_step(payload: Fields) -> RolloutStep | None:
    """Return the step of a response item, if it has readable text."""
    kind = kind_of(payload) or ("message" if "role" in payload else "")
    key = as_text(payload.get("id"))
    match kind:
        case "message":
            return _message_step(payload, key)
        case "agent_message":
            return _agent_message_step(payload)
        case "reasoning":
            text, parts = _thought_of(payload.get("summary"), payload.get("content"))
            if not parts:
                return None
            return RolloutStep(SpanKind.REASONING, Role.AGENT, text, key=key, parts=parts)
        case kind if kind in SILENT_TYPES:
            return None
    if kind.endswith("_call"):
        call_id, name = call_id_and_name(payload)
        arguments = first_in(payload, "arguments", "input", "action")
        if arguments is None:
            arguments = without(payload, _CALL_FIELDS) or None
        text = dump_text(arguments)
        return RolloutStep(SpanKind.TOOL_CALL, Role.AGENT, text, name=name, call_id=call_id)
    if kind.endswith("_output"):  # its call and status are read by ``_result_digest``
        return RolloutStep(SpanKind.TOOL_RESULT, Role.TOOL, text_of_output(output_of(payload)))
    return log_step(dump_text(payload), kind)


def call_id_and_name(payload: Fields) -> tuple[str | None, str]:
    """Return the id of a call, and the name of its tool, else the type of the call."""
    call_id = as_text(payload.get("call_id")) or as_text(payload.get("id"))
    return call_id, as_text(payload.get("name")) or str(payload.get("type")).removesuffix("_call")


def output_of(payload: Fields) -> object:
    """Return the output in the payload of a result."""
    return payload.get("output", payload.get("tools"))


def _message_step(payload: Fields, key: str | None) -> RolloutStep | None:
    """Return the step of a chat message, if it has a text."""
    content = payload.get("content")
    text = content_text(content)
    parts = _nonblank_texts(content)
    if not parts:
        return None
    role = payload.get("role")
    if role == "assistant":
        if text.startswith(_ENVELOPE):  # older builds: messages between agents
            envelope = fields_of(json_in(text))
            if {"author", "recipient", "content"} <= envelope.keys():
                return _agent_message_step(envelope, key=key)
        return RolloutStep(SpanKind.MESSAGE, Role.AGENT, text, key=key, parts=parts)
    is_user = role == "user" and not is_from_harness(payload)
    speaker = Role.USER if is_user else Role.SYSTEM
    return RolloutStep(SpanKind.MESSAGE, speaker, text, key=key, parts=parts)


def is_from_harness(message: Fields) -> bool:
    """Return whether Codex itself, the model's harness, wrote a message in the user's name.

    Its text begins like one of the harness's texts, and no prompt follows as the last part. In
    newer builds, the recorded kinds of its parts have a dot, and none begins with ``user.``.
    """
    content = message.get("content")
    if _speaker_role(Role.USER, content_text(content)) is Role.SYSTEM:
        return _nonblank_texts(content)[-1].lstrip().startswith(("<", "#"))
    metadata = fields_of(message.get("internal_chat_message_metadata_passthrough"))
    kinds = items_of(metadata.get("content_item_kinds"))
    return bool(kinds) and all(
        isinstance(kind, str) and "." in kind and not kind.startswith("user.") for kind in kinds
    )


def _agent_message_step(
    payload: Fields, *, key: str | None = None, is_event: bool = False
) -> RolloutStep:
    """Return the step of an agent's message to another agent; a log if the text is encrypted."""
    author = as_text(payload.get("author")) or "another agent"
    parts = tuple(
        text for text in _nonblank_texts(payload.get("content")) if _ENCRYPTED not in text
    )
    if not parts:
        recipient = as_text(payload.get("recipient")) or "another agent"
        return log_step(f"{author} wrote to {recipient}; the text is encrypted", "agent_message")
    return RolloutStep(
        SpanKind.MESSAGE,
        Role.AGENT,
        "\n".join(parts),
        key=key or as_text(payload.get("id")),
        parts=parts,
        agent=author,
        is_event=is_event,
    )


def _thought_of(summary: object, content: object) -> tuple[str, tuple[str, ...]]:
    """Return the readable text of a thought, and its parts; both are empty if it is encrypted."""
    parts = _nonblank_texts(summary) + _nonblank_texts(content)
    return "\n\n".join(parts), parts


def _nonblank_texts(content: object) -> tuple[str, ...]:
    """Return the nonblank texts of a content's parts."""
    pieces = content if isinstance(content, list) else [content]
    return tuple(text for piece in pieces if (text := content_text(piece)).strip())


_WRAPPING_START: Final = '{"output":"'
_EXIT_CODE_LABEL: Final = '","metadata":{"exit_code":'
_EXIT_CODE: Final = re.compile(
    r'(?P<code>-?(?:0|[1-9][0-9]{0,8})),"duration_seconds":[0-9.]{1,20}\}\}\Z'
)
_WRAPPING_END_CHARS: Final = 100
_LONGEST_ANSWER: Final = 100_000


def text_of_output(output: object) -> str:
    """Return the text of a tool's output without its JSON wrapping."""
    return _output_text_and_status(output)[0]


def status_of_output(output: object) -> SpanStatus:
    """Return the status of a call from its output: the exit code, the success flag or the text."""
    if type(output) is str and output.startswith(_WRAPPING_START):
        # The end of the wrapping has the exit code, which saves the parsing of a long text.
        search_start = max(0, len(output) - _WRAPPING_END_CHARS)
        label_start = output.rfind(_EXIT_CODE_LABEL, search_start)
        if label_start >= 0:
            exit_code = _EXIT_CODE.match(output, label_start + len(_EXIT_CODE_LABEL))
            if exit_code is not None:
                return SpanStatus.OK if int(exit_code["code"]) == 0 else SpanStatus.ERROR
    text, status = _output_text_and_status(output)
    return status_of_result(text) if status is None else status


def may_be_object(output: object) -> bool:
    """Return whether an output may be a short JSON object, such as the name of a new thread."""
    if type(output) is not str:
        return True
    if len(output) > _LONGEST_ANSWER:
        return False
    content_start = len(_WRAPPING_START) if output.startswith(_WRAPPING_START) else 0
    first_character = output[content_start : content_start + 1]
    # Wrapped content is a JSON string, in which a line feed is an escape.
    return first_character in ("{", "\\") or first_character.isspace()


def _output_text_and_status(output: object) -> tuple[str, SpanStatus | None]:
    """Return the text of an output, and the status in its JSON wrapping."""
    if isinstance(output, str):
        if not output.startswith('{"'):
            return output, None
        wrapping = object_in(output)
        if wrapping is not None and isinstance(wrapping.get("metadata"), dict):
            output = wrapping
    if isinstance(output, dict):
        text = output.get("output", output.get("content", output.get("content_items")))
        if text is not None:
            code = fields_of(output.get("metadata")).get("exit_code")
            flag_status = status_of_flag(output.get("success"))
            error_status = status_of_error_flag(output.get("isError"))
            status = first_known_status(status_of_code(code), flag_status, error_status)
            return content_text(text), None if status is SpanStatus.UNKNOWN else status
    return content_text(output), None

"""What one response item of a Codex rollout shows, looked at by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from mast_tui.traces.io.json_values import InvalidJSON, as_text, content_text, dump_text, load_json
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.codex.entry import Entry, log
from mast_tui.traces.readers.codex.reports import status_of_code, status_of_flag

_SILENT_ITEMS: Final = frozenset(
    {
        "additional_tools",
        "compaction",
        "compaction_summary",
        "compaction_trigger",
        "configuration_update",
        "context_compaction",
        "ghost_snapshot",
    }
)
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
_EXIT_CODE: Final = re.compile(
    r"""\A(?:
        Exit\ code:\ (-?\d{1,9})\b
      | (?:[^\n]*\n){0,6}?Process\ exited\ with\ code\ (-?\d{1,9})\b
      | failed\b[^\n]{0,400}?\bexit\ code:\ (-?\d{1,9})\b
    )""",
    re.VERBOSE,
)
_HEADER_CHARS: Final = 1000
_WRAPPED: Final = '{"output":"'
_WRAPPING_ENDS: Final = re.compile(
    r'","metadata":\{"exit_code":(-?(?:0|[1-9][0-9]{0,8})),"duration_seconds":[0-9.]{1,20}\}\}\Z'
)
_ENDING_CHARS: Final = 100
_ENVELOPE: Final = '{"author":'
_ENCRYPTED: Final = '"encrypted_content"'


def item_entry(payload: Mapping[str, object]) -> Entry | None:
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


def id_and_name_of_call(payload: Mapping[str, object]) -> tuple[str | None, str]:
    """The id of a call, if it has one, and the name of the tool, else what kind of call it is."""
    call_id = as_text(payload.get("call_id")) or as_text(payload.get("id"))
    return call_id, as_text(payload.get("name")) or str(payload.get("type")).removesuffix("_call")


def output_of(payload: Mapping[str, object]) -> object:
    """What a tool gave, as the item of its result wraps it."""
    return payload.get("output", payload.get("tools"))


def _message(payload: Mapping[str, object]) -> Entry | None:
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


def is_harness(message: Mapping[str, object]) -> bool:
    """Whether a message item in the user's name was written by the harness."""
    return is_harness_text(content_text(message.get("content"))) or _is_context(message)


def is_harness_text(text: str) -> bool:
    return text.lstrip().startswith(_HARNESS_OPENINGS)


def _is_context(message: Mapping[str, object]) -> bool:
    """Whether newer builds, which note what each part is, note no part as typed by the user."""
    noted = message.get("internal_chat_message_metadata_passthrough")
    kinds = noted.get("content_item_kinds") if isinstance(noted, Mapping) else None
    if not isinstance(kinds, list) or not kinds:
        return False
    return all(isinstance(kind, str) and "." in kind and kind[:5] != "user." for kind in kinds)


def _sent(text: str) -> Mapping[str, object] | None:
    """A message between agents that older builds wrote as JSON in the assistant's name."""
    try:
        sent = load_json(text)
    except InvalidJSON:
        return None
    if not isinstance(sent, Mapping) or not {"author", "recipient", "content"} <= sent.keys():
        return None
    return sent


def between_agents(
    payload: Mapping[str, object], *, key: str | None = None, event: bool = False
) -> Entry:
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


def _arguments(payload: Mapping[str, object]) -> str:
    for field in ("arguments", "input", "action"):
        if payload.get(field) is not None:
            return dump_text(payload[field])
    known = ("type", "id", "call_id", "name", "status", "result")
    rest = {name: value for name, value in payload.items() if name not in known}
    return dump_text(rest) if rest else ""


def _output(output: object) -> tuple[str, SpanStatus]:
    """The text of a tool's output without its JSON wrapping, and whether the tool went well."""
    if isinstance(output, str):
        if not output.startswith('{"'):
            return output, _status_of_text(output)
        try:
            inner = load_json(output)
        except InvalidJSON:
            inner = None
        if isinstance(inner, dict) and isinstance(inner.get("metadata"), dict):
            output = inner
    if isinstance(output, dict):
        said = output.get("output", output.get("content", output.get("content_items")))
        if said is not None:
            return content_text(said), _status_of_fields(output)
    text = content_text(output)
    return text, _status_of_text(text)


def status_of_output(output: object) -> SpanStatus:
    """Whether the tool went well that gave this output."""
    if type(output) is str and output.startswith(_WRAPPED):
        # The end of the wrapping tells it without the parsing of what may be a long text.
        found = _WRAPPING_ENDS.search(output, max(0, len(output) - _ENDING_CHARS))
        if found is not None:
            return SpanStatus.OK if int(found[1]) == 0 else SpanStatus.ERROR
    return _output(output)[1]


def text_of_output(output: object) -> str:
    """What the tool said that gave this output."""
    return _output(output)[0]


def _status_of_fields(output: Mapping[str, object]) -> SpanStatus:
    metadata = output.get("metadata")
    status = status_of_code(metadata.get("exit_code") if isinstance(metadata, dict) else None)
    return status_of_flag(output.get("success")) if status is SpanStatus.UNKNOWN else status


def _status_of_text(text: str) -> SpanStatus:
    found = _EXIT_CODE.match(text[:_HEADER_CHARS])
    if found is None:
        return SpanStatus.UNKNOWN
    code = next(group for group in found.groups() if group is not None)
    return SpanStatus.OK if int(code) == 0 else SpanStatus.ERROR

"""What most records of a rollout come down to, so that other processes can parse their lines.

Most records are calls, results and thoughts, and events that repeat those. Of such a record a few
values are taken that follow from its line alone. What they mean depends on what came before, which
only ``CodexParser`` knows; so it takes them in the order of the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.model import Role, SpanKind
from mast_tui.traces.preview import task_of_text
from mast_tui.traces.readers.codex.records import (
    BOOKKEEPING,
    SAID,
    Entry,
    id_and_name_of_call,
    item_entry,
    output_of,
    payload_of,
    status_of_output,
    thought_of,
    time_of,
    unwrapped_begins,
)
from mast_tui.traces.readers.codex.told_twice import marks_of, marks_of_text
from mast_tui.traces.readers.json_fields import Fields

Digest = tuple[Any, ...]
"""What takes a record, by its name in ``CodexParser``, and what that needs; empty where nothing
does."""


def digest_of(line: bytes, record: Fields, kind: str, payload: Fields) -> Digest | None:
    """What a record comes down to; None where the whole of it is needed.

    Args:
        line: The line of the record.
        record: What stands on it.
        kind: Its type.
        payload: What it wraps.
    """
    what = payload.get("type")
    if type(what) is not str:
        return None
    usual = _USUAL.get((kind, what))
    if usual is not None:
        return usual(record, payload)
    if kind == "event_msg":
        if what in SAID:
            span, _role, field = SAID[what]
            text = payload.get(field)
            if type(text) is not str or not text.strip():
                return ()
            return "event", line, marks_of_text(span is SpanKind.MESSAGE, text)
        return () if what in BOOKKEEPING else None
    if kind == "response_item" and what.endswith("_call"):
        return _call(record, payload)
    if kind == "response_item" and what.endswith("_output"):
        return _result(record, payload)
    return None


def digest_line(line: bytes) -> Digest | bytes:
    """What the record on a line comes down to, or the line where all of it is needed."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    if type(record) is not dict:
        return line
    kind, payload = record.get("type"), record.get("payload")
    if type(kind) is not str or type(payload) is not dict:
        kind, payload = payload_of(record)
    found = digest_of(line, record, kind, payload)
    return line if found is None else found


def _call(record: Fields, payload: Fields) -> Digest:
    return ("call", time_of(record), *id_and_name_of_call(payload))


def _result(record: Fields, payload: Fields) -> Digest:
    output = output_of(payload)
    status = status_of_output(output)
    answer = output if _may_name_thread(output) else None
    return "result", time_of(record), as_text(payload.get("call_id")), status, answer


def _may_name_thread(output: object) -> bool:
    """Whether an output may be a short JSON object, as that is which names a new thread."""
    if type(output) is not str:
        return True
    if len(output) > _LONGEST_ANSWER:
        return False
    begins = unwrapped_begins(output)
    first = output[begins : begins + 1]
    return first in ("{", "\\") or first.isspace()


_LONGEST_ANSWER: Final = 100_000
"""What ten thousand characters take as JSON, and more."""


def _thought(record: Fields, payload: Fields) -> Digest:
    """A thought, where it can be read."""
    text, parts = thought_of(payload.get("summary"), payload.get("content"))
    if not parts:
        return ()
    return "thought", time_of(record), as_text(payload.get("id")), marks_of_text(False, text, parts)


def _message(record: Fields, payload: Fields) -> Digest | None:
    """A message, unless something else is written as one."""
    entry = item_entry(payload)
    if entry is None:
        return ()
    return message_of(time_of(record), entry) if entry.kind is SpanKind.MESSAGE else None


def message_of(time: float | None, entry: Entry) -> Digest:
    """What a message comes down to."""
    task = task_of_text(entry.text) if entry.role is Role.USER else None
    return "message", time, entry.role, entry.agent, entry.key, marks_of(entry), task


def _counts(record: Fields, payload: Fields) -> Digest:
    """Counts of a model call, compared to tell a new call from one that is told of again."""
    info = payload.get("info")
    if type(info) is not dict:
        return ()
    usage, total = info.get("last_token_usage"), info.get("total_token_usage")
    if type(usage) is not dict:
        return ()
    counts: Digest = (usage.get("input_tokens"), usage.get("output_tokens"))
    if type(total) is dict:
        sums = total.get("total_tokens"), total.get("input_tokens"), total.get("output_tokens")
        counts += sums
    return "counts", record.get("timestamp"), counts


_USUAL: Final[Mapping[tuple[str, str], Callable[[Fields, Fields], Digest | None]]] = {
    ("event_msg", "token_count"): _counts,
    ("response_item", "message"): _message,
    ("response_item", "reasoning"): _thought,
    ("response_item", "function_call"): _call,
    ("response_item", "custom_tool_call"): _call,
    ("response_item", "function_call_output"): _result,
    ("response_item", "custom_tool_call_output"): _result,
}
"""How most records of a rollout are taken, by their types and those of their payloads."""

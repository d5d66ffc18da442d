"""A vendor's record as a row of a trace, and the messages in what its models took and gave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from mast_tui.traces.io.json_values import (
    InvalidJSON,
    as_text,
    content_text,
    dump_text,
    load_json,
    tokens_of,
)
from mast_tui.traces.io.python_literals import literal
from mast_tui.traces.model import Role, SpanStatus
from mast_tui.traces.readers.chat.turns import is_message, unwrap_langchain
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    items_of,
    json_in,
    short_name,
    text_in,
    value_in,
)
from mast_tui.traces.readers.span_tree.rows import Message, Row, RowKind
from mast_tui.traces.readers.vendors.records import Found, text_at, value_at
from mast_tui.traces.readers.vendors.tables import Paths, Vendor
from mast_tui.traces.times import unix_seconds

_OK, _ERROR = SpanStatus.OK, SpanStatus.ERROR
_STATUS: Final = {"success": _OK, "ok": _OK, "error": _ERROR, "failed": _ERROR}
_AGENT_FIELDS: Final = ("lc_agent_name", "agent_name", "agentName", "agent")
_OP: Final = re.compile(r"weave:///.*/op/(?P<name>[^/:]+)(?::[^/]*)?\Z")
_DIGITS: Final = re.compile(r"[0-9]{9,20}\Z")
_STRANGE_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"nrtxuU]")
"""An escape that Python never writes itself, and warns of where it reads one."""
_LITERAL_CHARS: Final = 16 * 1024
_LITERAL_BRACKETS: Final = 200


def rows_of(vendor: Vendor, found: Iterable[Found]) -> list[Row]:
    """The rows of one trace, in the order of its records."""
    rows = [_row(vendor, one) for one in found]
    if vendor.guesses:
        rows = _guessed(rows)
    return _called(rows)


def is_judgement(vendor: Vendor, found: Found) -> bool:
    """Whether a record is of a call that scored the run."""
    return _kind(vendor, _decoded(vendor, found.record)) in vendor.judged


def _row(vendor: Vendor, found: Found) -> Row:
    fields = vendor.fields
    record = _decoded(vendor, found.record)
    told = _kind(vendor, record)
    kind = vendor.kinds.get(told, RowKind.OTHER)
    status, error = _result(vendor, record)
    # A text that happens to be JSON stays a text, unless all of the vendor's are JSON.
    raw = record if vendor.encoded else found.record
    row = Row(
        id=found.id,
        parent=found.parent,
        kind=kind,
        name=_name(text_at(record, fields.name) or kind.value),
        place=found.place,
        start=_time(value_at(record, fields.start)),
        end=_time(value_at(record, fields.end)),
        status=status,
        error=error,
        agent=_agent(value_at(record, fields.metadata), kind),
        input=value_at(raw, fields.input),
        output=value_at(raw, fields.output),
        call_id=text_at(record, fields.call_id),
        speaks=told in vendor.speaks,
    )
    if kind is RowKind.MODEL or (vendor.guesses and has_answer(value_at(record, fields.output))):
        taken_in, given_out = fields.tokens, _given_out(fields.tokens)
        tokens = tokens_of(value_at(record, taken_in), value_at(record, given_out))
        row = replace(row, model=text_at(record, fields.model), tokens=tokens)
    if kind is RowKind.TOOL:
        return _as_tool(row)
    return _as_model(row) if kind is RowKind.MODEL else row


@cache
def _given_out(tokens: Paths) -> Paths:
    """The paths to what a model gave out, beside those to what it took in."""
    return tuple(path.replace("input", "output").replace("prompt", "completion") for path in tokens)


def _decoded(vendor: Vendor, record: Fields) -> Fields:
    """The record with the JSON texts among its fields read, once for all paths."""
    read: dict[str, object] = {name: value_in(value) for name, value in record.items()}
    attributes = read.get("attributes")
    if vendor.encoded and isinstance(attributes, Mapping):
        read["attributes"] = {name: _unquoted(value) for name, value in attributes.items()}
    return read


def _unquoted(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return load_json(value)
    except InvalidJSON:
        return value


def _kind(vendor: Vendor, record: Fields) -> str:
    return (text_at(record, vendor.fields.kind) or "").upper()


def _name(text: str) -> str:
    if match := _OP.match(text):
        text = match["name"]
    return short_name(text) or "call"


def _time(value: object) -> float | None:
    if isinstance(value, str) and _DIGITS.match(value):
        value = int(value)
    return unix_seconds(value)


def _result(vendor: Vendor, record: Fields) -> tuple[SpanStatus, str | None]:
    """How a call ended, where the vendor tells, and what went wrong."""
    said = text_at(record, vendor.fields.status)
    status = SpanStatus.UNKNOWN
    if said:
        status = _STATUS.get(said.lower().removeprefix("status_code_"), status)
    told = value_at(record, vendor.fields.error)
    error = dump_text(told).strip() or None if told not in ({}, [], False) else None
    if error is None or status is SpanStatus.ERROR:
        return status, error
    if vendor.status_decides:
        return status, None  # a message that is no error's
    return SpanStatus.ERROR, error


def _agent(metadata: object, kind: RowKind) -> str | None:
    """Who acted, by what frameworks note beside a call."""
    if not isinstance(metadata, Mapping):
        return None
    if name := text_in(metadata, *_AGENT_FIELDS):
        return _name(name)
    # LangGraph notes the way through nested graphs: researcher:<id>|model:<id>
    way = as_text(metadata.get("langgraph_checkpoint_ns"))
    nodes = [node.partition(":")[0] for node in way.split("|")] if way else []
    if len(nodes) > 1 and nodes[-2].strip():
        return _name(nodes[-2])
    node = as_text(metadata.get("langgraph_node")) if kind is RowKind.MODEL else None
    return _name(node) if node else None


def _as_model(row: Row) -> Row:
    """A model's row with the messages that it was given, and those that it answered."""
    asked = _messages(row.input, _ASKED, "user")
    answered = _messages(_without_choices(row.output), _ANSWERED, "assistant")
    return replace(
        row,
        asked=asked or _one(row.input, "user"),
        answered=answered or _one(row.output, "assistant"),
    )


def _as_tool(row: Row) -> Row:
    """A tool's row with what was asked and answered taken out of its wrapping."""
    asked = value_in(row.input)
    if isinstance(asked, Mapping):
        asked = {
            name: value
            for name, value in asked.items()
            if name != "self" or isinstance(value, int | float)  # the object of a traced method
        }
        if len(asked) == 1 and isinstance(asked.get("input"), str):
            row = replace(row, input=_literal(asked["input"]))
        elif not isinstance(row.input, str):
            row = replace(row, input=asked)
    elif isinstance(asked, str):
        row = replace(row, input=_literal(asked))
    answer = value_in(row.output)
    if (message := tool_message(answer)) is not None:
        status = SpanStatus.ERROR if message.get("status") == "error" else row.status
        return replace(
            row,
            output=content_text(message.get("content")),
            call_id=row.call_id or as_text(message.get("tool_call_id")),
            status=status,
        )
    if isinstance(answer, Mapping) and len(answer) == 1 and "output" in answer:
        return replace(row, output=answer["output"])
    if row.output == "null" and row.error is not None:
        return replace(row, output=None)  # a table's way to say that there is none
    return row


def _literal(text: str) -> object:
    """The arguments in a text such as ``{'city': 'Rome'}``, as LangChain writes them; else it.

    A model's call has them as JSON, and is known again by them.
    """
    if (
        text[:1] != "{"
        or text[-1:] != "}"
        or len(text) > _LITERAL_CHARS
        or isinstance(value_in(text), Mapping)
        or _STRANGE_ESCAPE.search(text)
        or sum(map(text.count, "([{-~")) > _LITERAL_BRACKETS  # would cost the parser's stack
    ):
        return text
    value = literal(text)
    try:
        canonical = load_json(dump_text(value)) if isinstance(value, dict) else None
    except (ValueError, TypeError, RecursionError):
        return text
    return canonical if isinstance(canonical, Mapping) else text


def _guessed(rows: list[Row]) -> list[Row]:
    """The rows with calls of a model told by their answers, where nothing else tells them.

    Of calls within each other, as a client that calls another has them, the innermost counts.
    """
    looks = {
        row.id
        for row in rows
        if row.kind is RowKind.MODEL
        or (row.kind is RowKind.OTHER and has_answer(value_in(row.output)))
    }
    parents = {row.id: row.parent for row in rows}
    around: set[str] = set()
    for name in looks:
        above = parents.get(name)
        while above is not None and above not in around:
            around.add(above)
            above = parents.get(above)
    return [
        _as_model(replace(row, kind=RowKind.MODEL))
        if row.kind is RowKind.OTHER and row.id in looks and row.id not in around
        else row
        for row in rows
    ]


def _called(rows: list[Row]) -> list[Row]:
    """The rows with those told as tools that have the name of a tool which a model asked for.

    So it is where a tool was traced as a plain function; not where another row is the tool's.
    """
    asked_for = {name for row in rows for message in row.answered for name in _tool_names(message)}
    asked_for -= {row.name for row in rows if row.kind is RowKind.TOOL}
    parents = {row.parent for row in rows}
    return [
        _as_tool(replace(row, kind=RowKind.TOOL))
        if row.kind is RowKind.OTHER and row.name in asked_for and row.id not in parents
        else row
        for row in rows
    ]


def _tool_names(message: Fields) -> Iterable[str]:
    calls = (*items_of(message.get("tool_calls")), *items_of(message.get("content")), message)
    for call in map(fields_of, calls):
        function = call.get("function")
        name = as_text((function if isinstance(function, Mapping) else call).get("name"))
        if name is not None and "role" not in call:
            yield name


_MOST_WRAPPERS: Final = 5
_ASKED: Final = ("messages", "input", "inputs", "prompts", "prompt", "contents", "request", "text")
_ANSWERED: Final = ("message", "messages", "output", "outputs", "response", "text", "content")
_SYSTEM: Final = ("system", "instructions", "system_prompt")
_PAIRS: Final = {"human": "user", "ai": "assistant"} | {
    role: role for role in ("user", "assistant", "system")
}
"""The roles in messages that are written as pairs of role and text."""


def tool_message(value: object) -> Message | None:
    """The fields of the tool's message that ``value`` is, or that wraps it; None for others."""
    for _ in range(_MOST_WRAPPERS):
        if isinstance(value, Mapping) and len(value) == 1 and "output" in value:
            value = value["output"]
        elif isinstance(value, list) and len(value) == 1:
            value = value[0]
        else:
            break
    if not isinstance(value, Mapping) or not is_message(value):
        return None
    unwrapped = unwrap_langchain(value)
    if unwrapped is not None:
        return unwrapped[1] if unwrapped[0].role is Role.TOOL else None
    return value if value.get("role") == "tool" else None


def has_answer(value: object) -> bool:
    """Whether a value has the shape of what a model's client returns."""
    if not isinstance(value, Mapping):
        return False
    if any(isinstance(value.get(name), list) for name in ("choices", "generations")):
        return True
    return value.get("object") == "response" or (
        value.get("type") == "message" and value.get("role") == "assistant"
    )


def _messages(value: object, wrappers: Sequence[str], role: str) -> tuple[Message, ...]:
    """The messages in a list, in a list of lists, or under one of the fields ``wrappers``."""
    system: tuple[Message, ...] = ()
    for _ in range(_MOST_WRAPPERS):
        value = value_in(value)
        if isinstance(value, list):
            if len(value) == 1 and isinstance(value[0], list) and _message(value[0], role) is None:
                value = value[0]
                continue
            found = [_message(item, role) for item in value]
            told = [message for message in found if message is not None]
            return (*system, *told) if told and 2 * len(told) >= len(found) else ()
        if (message := _message(value, role)) is not None:
            return (*system, message)
        if not isinstance(value, Mapping):
            return ()
        for field in _SYSTEM:
            if not system and isinstance(value.get(field), str | list) and value[field]:
                system = ({"role": "system", "content": value[field]},)
        held = (inner for field in wrappers if (inner := value.get(field)))
        value = next((inner for inner in held if isinstance(inner, str | list | Mapping)), None)
        if isinstance(value, str) and value.strip() and json_in(value) is None:
            return (*system, *_one(value, role))
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return (*system, *({"role": role, "content": item} for item in value))
    return ()


def _one(value: object, role: str) -> tuple[Message, ...]:
    """One message that says all of a value."""
    text = dump_text(value)
    return ({"role": role, "content": text},) if text.strip() else ()


def _without_choices(value: object) -> object:
    """The messages that a client wraps in ``choices`` or ``generations``, else the value."""
    value = value_in(value)
    wrapped = map(fields_of(value).get, ("choices", "generations"))
    choices = next((one for one in (value, *wrapped) if isinstance(one, list)), None)
    if choices is None:
        return value
    if len(choices) == 1 and isinstance(choices[0], list):
        choices = choices[0]
    unwrapped = []
    for choice in choices:
        inner = choice
        if isinstance(choice, Mapping):
            inner = choice.get("message") or choice.get("delta")
            if inner is None and isinstance(choice.get("text"), str) and "role" not in choice:
                inner = {"role": "assistant", "content": choice["text"]}
        if inner is None:
            return value
        unwrapped.append(inner)
    return unwrapped or value


def _message(value: object, role: str) -> Message | None:
    """The message that a value is; None where it is none."""
    if isinstance(value, list) and len(value) == 2:
        said = _PAIRS.get(as_text(value[0]) or "")
        return {"role": said, "content": value[1]} if said else None
    if not isinstance(value, Mapping):
        return None
    if value.get("type") == "message" and "role" not in value and "content" in value and role:
        return {**value, "role": role}
    return value if is_message(value) else None

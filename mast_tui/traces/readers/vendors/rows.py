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
from mast_tui.traces.io.python_literals import read_literal
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.json_fields import Fields, fields_of, short_name, text_in, value_in
from mast_tui.traces.readers.otel.conventions import bare_name, row_of_attributes
from mast_tui.traces.readers.span_tree.history import canonical_arguments
from mast_tui.traces.readers.span_tree.messages import (
    ToolOutput,
    answer_messages,
    has_answer,
    instructions_in,
    is_system,
    request_messages,
    request_text,
    system_text,
    tool_calls,
    tool_output,
    without_lost_messages,
    worse_status,
)
from mast_tui.traces.readers.span_tree.rows import Message, RowKind, SpanRow
from mast_tui.traces.readers.vendors.records import (
    NOTHING,
    VendorRecord,
    text_at,
    value_at,
    values_at,
)
from mast_tui.traces.readers.vendors.tables import Paths, Vendor
from mast_tui.traces.times import unix_seconds

_OK = SpanStatus.OK
_ERROR = SpanStatus.ERROR
_STATUS: Final = {"success": _OK, "ok": _OK, "error": _ERROR, "failed": _ERROR}
_AGENT_FIELDS: Final = ("lc_agent_name", "agent_name", "agentName", "agent")
_OP: Final = re.compile(r"weave:///.*/op/(?P<name>[^/:]+)(?::[^/]*)?\Z")
_DIGITS: Final = re.compile(r"[0-9]{9,20}\Z")
_TOOL_PREFIX: Final = re.compile(r"(?:execute_tool |running tool: )(?=\S)")
_DOTTED_PREFIX: Final = "tool."
_STRANGE_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"nrtxuU]")
"""An escape that Python never writes itself, and warns of where it reads one."""
_LITERAL_CHARS: Final = 16 * 1024
_LITERAL_BRACKETS: Final = 200


def rows_of(vendor: Vendor, records: Iterable[VendorRecord]) -> list[SpanRow]:
    """Return the rows of one trace, in the order of its records.

    Args:
        vendor: The vendor.
        records: The records.
    """
    records = list(records)
    rows = [_row(vendor, record) for record in records]
    if vendor.guesses:
        rows = _with_guessed_models(rows)
    if vendor.thought:
        rows = _with_thoughts(rows, [text_at(record.value, vendor.thought) for record in records])
    return _with_model_calls(_joined_events(_without_plain_copies(rows)))


def is_judgement(vendor: Vendor, record: VendorRecord) -> bool:
    """Return whether a record is of a call that scored the run.

    Args:
        vendor: The vendor.
        record: The record.
    """
    return _kind(vendor, _with_parsed_fields(vendor, record.value)) in vendor.judged


def _row(vendor: Vendor, record: VendorRecord) -> SpanRow:
    """Return a record as a row of the tree."""
    fields = vendor.fields
    decoded = _with_parsed_fields(vendor, record.value)
    type_name = _kind(vendor, decoded)
    kind = vendor.kinds.get(type_name, RowKind.OTHER)
    status, error = _result(vendor, decoded)
    # A text that happens to be JSON stays a text, unless all of the vendor's are JSON.
    raw = decoded if vendor.encoded else record.value
    output = value_at(raw, fields.output)
    if type_name in vendor.readable_types and output is None:
        output = _facts(value_at(decoded, vendor.facts)) or None
    row = SpanRow(
        id=record.id,
        parent=record.parent,
        kind=kind,
        name=_name(text_at(decoded, fields.name) or kind.value),
        location=record.location,
        start=_time(value_at(decoded, fields.start)),
        end=_time(value_at(decoded, fields.end)),
        status=status,
        error=error,
        agent=_agent(value_at(decoded, fields.metadata), kind),
        input=value_at(raw, fields.input),
        output=output,
        call_id=text_at(decoded, fields.call_id),
        has_readable_output=type_name in vendor.readable_types,
    )
    attribute_row = row_of_attributes(value_at(decoded, vendor.attributes), row.name, row.id)
    if attribute_row is not None:
        row = _with_attributes(row, attribute_row)
        kind = row.kind
    if kind is RowKind.MODEL or (vendor.guesses and has_answer(value_at(decoded, fields.output))):
        output_paths = _output_paths(fields.tokens)
        tokens = tokens_of(value_at(decoded, fields.tokens), value_at(decoded, output_paths))
        row = replace(row, model=text_at(decoded, fields.model), tokens=tokens)
    if kind is RowKind.TOOL:
        return _as_tool(row)
    if kind is RowKind.MODEL:
        return _as_model(row, attribute_row)
    if kind is RowKind.AGENT:
        row = replace(row, agent=row.agent or bare_name(row.name))
    instructions = None if attribute_row is None else attribute_row.instructions
    output = _parsed_arguments(row.output) if isinstance(row.output, str) else row.output
    return replace(row, output=output, instructions=instructions or system_text(row.input))


def _facts(value: object) -> str:
    """Return the fields of a record's own facts, one a line."""
    facts = {name: fact for name, fact in fields_of(value).items() if name != "type"}
    return "\n".join(f"{name}: {dump_text(fact)}" for name, fact in facts.items())


def _with_attributes(row: SpanRow, attribute_row: SpanRow) -> SpanRow:
    """Return a row with the facts from the attributes that its vendor stored.

    Langfuse keeps the attributes of OpenTelemetry, and calls a tool of many frameworks a span.
    """
    if row.kind is RowKind.OTHER and attribute_row.kind is RowKind.TOOL:
        row = replace(row, kind=RowKind.TOOL)
    if row.kind is RowKind.AGENT:
        return replace(row, agent=row.agent or attribute_row.agent)
    if row.kind is not RowKind.TOOL or attribute_row.kind is not RowKind.TOOL:
        return row
    return replace(
        row,
        name=attribute_row.name or row.name,
        input=attribute_row.input if row.input is None else row.input,
        output=attribute_row.output if value_in(row.output) in NOTHING else row.output,
        call_id=row.call_id or attribute_row.call_id,
    )


@cache
def _output_paths(tokens: Paths) -> Paths:
    """Return the paths to the output tokens, beside those to the input tokens."""
    return tuple(path.replace("input", "output").replace("prompt", "completion") for path in tokens)


def _with_parsed_fields(vendor: Vendor, record: Fields) -> Fields:
    """Return a record with the JSON texts among its fields parsed, once for all paths."""
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
    """Return the status of a call and its error."""
    status_name = text_at(record, vendor.fields.status)
    status = SpanStatus.UNKNOWN
    if status_name:
        status = _STATUS.get(status_name.lower().removeprefix("status_code_"), status)
    error_values = values_at(record, vendor.fields.error)
    texts = [_error_text(value).strip() for value in error_values if value not in ({}, [], False)]
    whole = [text for text in texts if not any(text in other and text != other for other in texts)]
    error = "\n".join(dict.fromkeys(filter(None, whole))) or None
    if error is None or status is SpanStatus.ERROR:
        return status, error
    if vendor.status_decides:
        return status, None  # a message that is no error's
    return SpanStatus.ERROR, error


def _error_text(value: object) -> str:
    """Return an error as text; OpenAI's Agents SDK keeps facts in ``data`` beside its message."""
    fields = fields_of(value)
    if not fields or not fields.keys() <= {"message", "data"}:
        return dump_text(value)
    return f"{dump_text(fields.get('message'))}\n{_facts(fields.get('data'))}"


def _agent(metadata: object, kind: RowKind) -> str | None:
    """Return the agent that a framework's metadata of a call name."""
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


def _as_model(row: SpanRow, attribute_row: SpanRow | None = None) -> SpanRow:
    """Return a model's row with its input messages and its output messages.

    Args:
        row: The row with its input and output.
        attribute_row: The row made of the attributes, for messages that the input does not show.
    """
    request, answer = without_lost_messages(row.input, row.output)
    row = replace(row, input=request, output=answer)
    asked = request_messages(row.input)
    answered = answer_messages(row.output)
    standing = instructions_in(row.output)  # as OpenAI's responses repeat them
    system: list[Message] = [{"role": "system", "content": standing}] if standing else []
    if attribute_row is not None:
        asked = asked or attribute_row.request
        answered = answered or attribute_row.answer
        system = system or [message for message in attribute_row.request if is_system(message)]
    asked = asked or request_text(row.input)
    if system and not any(map(is_system, asked)):
        asked = (*system, *asked)
    return replace(row, request=asked, answer=answered)


def _as_tool(row: SpanRow) -> SpanRow:
    """Return a tool's row without what is wrapped around its arguments and its result."""
    arguments = value_in(row.input)
    if isinstance(arguments, Mapping):
        arguments = {
            name: value
            for name, value in arguments.items()
            if name != "self" or isinstance(value, int | float)  # the object of a traced method
        }
        if len(arguments) == 1 and isinstance(arguments.get("input"), str):
            row = replace(row, input=_parsed_arguments(arguments["input"]))
        elif not isinstance(row.input, str):
            row = replace(row, input=arguments)
    elif isinstance(arguments, str):
        row = replace(row, input=_parsed_arguments(arguments))
    tool_result = tool_output(row.output)
    if row.output == "null" and row.error is not None:
        tool_result = ToolOutput(None)  # a table's way to say that there is none
    return replace(
        row,
        output=tool_result.output,
        call_id=row.call_id or tool_result.call_id,
        status=worse_status(row.status, tool_result.status),
    )


def _parsed_arguments(text: str) -> object:
    """Return the arguments in a text such as ``{'city': 'Rome'}`` of LangChain's, else the text.

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
    value = read_literal(text)
    try:
        canonical_arguments = load_json(dump_text(value)) if isinstance(value, dict) else None
    except (ValueError, TypeError, RecursionError):
        return text
    return canonical_arguments if isinstance(canonical_arguments, Mapping) else text


def _with_guessed_models(rows: list[SpanRow]) -> list[SpanRow]:
    """Return the rows with models' calls recognised by their answers.

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


def _without_plain_copies(rows: list[SpanRow]) -> list[SpanRow]:
    """Return the rows without a client's row that repeats as text the model's row around it.

    An integration of a framework separates messages where that of its client writes one text.
    """
    apart = {row.id for row in rows if row.kind is RowKind.MODEL and len(row.request) > 1}
    copies = {
        row.parent: row
        for row in rows
        if row.kind is RowKind.MODEL and row.parent in apart and _is_plain(row)
    }
    result = []
    for row in rows:
        if row.parent is not None and copies.get(row.parent) is row:
            nothing = SpanRow(row.id, row.parent, RowKind.OTHER, row.name, row.location)
            row = replace(nothing, start=row.start, end=row.end)
        elif row.id in copies:
            row = replace(row, tokens=copies[row.id].tokens or row.tokens)
        result.append(row)
    return result


def _is_plain(row: SpanRow) -> bool:
    return isinstance(row.input, str) and len(row.request) == 1 and value_in(row.input) is row.input


def _with_thoughts(rows: list[SpanRow], thoughts: Sequence[str | None]) -> list[SpanRow]:
    """Return the rows with thoughts that no request shows as answers of a model.

    BeeAI traces an event for each part of an answer, all with the thought so far.
    """
    if not any(thoughts):
        return rows
    requests = [dump_text(row.request) for row in rows if row.request]
    shown_thoughts: set[str] = set()
    result: list[SpanRow] = []
    for row, thought in zip(rows, thoughts, strict=True):
        if thought is not None and row.kind is RowKind.OTHER and thought not in shown_thoughts:
            shown_thoughts.add(thought)
            quoted = dump_text(thought).strip('"')
            if not any(quoted in request for request in requests):
                answer = {"role": "assistant", "content": "", "reasoning": thought}
                row = replace(row, kind=RowKind.MODEL, input=None, output=None, answer=(answer,))
        result.append(row)
    return result


def _with_model_calls(rows: list[SpanRow]) -> list[SpanRow]:
    """Return the rows with tools under the names and with the arguments that models asked for.

    A row without a kind is a tool's if it has such a name and no row is under it: it was traced as
    a plain function.
    """
    calls = [call for row in rows for message in row.answer for call in tool_calls(message)]
    asked_for = {name for name, _arguments in calls}
    wrapped = {(name, canonical_arguments(arguments)) for name, arguments in calls}
    traced = {row.name for row in rows if row.kind is RowKind.TOOL}
    parents = {row.parent for row in rows}
    result = []
    for row in rows:
        name = row.name
        if name not in asked_for:
            name = _TOOL_PREFIX.sub("", name)
        if (bare := name.removeprefix(_DOTTED_PREFIX)) in asked_for:
            name = bare
        if row.kind is RowKind.TOOL:
            row = replace(row, name=name)
        elif row.kind is RowKind.OTHER and name in asked_for - traced and row.id not in parents:
            row = _as_tool(replace(row, kind=RowKind.TOOL, name=name))
        inner = _only_input(row) if row.kind is RowKind.TOOL else None
        if inner is not None and (name, canonical_arguments(inner)) in wrapped:
            row = replace(row, input=inner)
        result.append(row)
    return result


def _only_input(row: SpanRow) -> Fields | None:
    """Return the arguments in ``{"input": {…}}``, as a tracer of functions may wrap them."""
    fields = fields_of(value_in(row.input))
    inner = value_in(fields.get("input")) if len(fields) == 1 else None
    return inner if isinstance(inner, Mapping) else None


_EVENT: Final = re.compile(r"(?P<call>.+)\.(?P<event>start|success|error|finish)-(?P<number>\d+)")


def _joined_events(rows: list[SpanRow]) -> list[SpanRow]:
    """Return the rows with one for each call whose start, success and finish BeeAI traces."""
    starts: dict[tuple[str, str], int] = {}
    result: list[SpanRow] = []
    for row in sorted(rows, key=_start_first):
        match = None if row.kind is RowKind.OTHER else _EVENT.fullmatch(row.name)
        if match is None:
            result.append(row)
            continue
        call = match["call"], match["number"]
        if call not in starts:
            starts[call] = len(result)
            result.append(replace(row, name=match["call"].removeprefix(_DOTTED_PREFIX)))
            continue
        first = result[starts[call]]
        result[starts[call]] = replace(
            first,
            end=max(filter(None, (first.end, row.end)), default=None),
            answer=first.answer or _whole_answer(row),
            output=row.output if first.output is None else first.output,
            status=row.status if first.status is SpanStatus.UNKNOWN else first.status,
            error=first.error or row.error,
        )
    return result


def _start_first(row: SpanRow) -> int:
    """Return a sort key that puts the start of a call before its other events."""
    match = _EVENT.fullmatch(row.name)
    return 1 if match is not None and match["event"] != "start" else 0


def _has_call(message: Message) -> bool:
    return next(tool_calls(message), None) is not None


def _whole_answer(row: SpanRow) -> tuple[Message, ...]:
    """Return an answer whose pieces were traced as messages, as one."""
    if len(row.answer) < 2 or any(map(_has_call, row.answer)):
        return row.answer
    text = "".join(content_text(message.get("content")) for message in row.answer)
    return ({"role": "assistant", "content": text},)

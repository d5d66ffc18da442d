"""Runs exported from LangSmith, Langfuse, MLflow, Weave, Braintrust, DeepEval and OpenAI's SDK.

All have timed calls in a tree; ``tables`` has the paths to their fields. A vendor's record becomes
a row of a trace, with the messages in the input and output of its model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from mast_tui.traces.io.json_values import (
    InvalidJSON,
    as_text,
    canonical_bytes,
    content_text,
    dump_text,
    load_json,
    read_literal,
    tokens_of,
)
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import AnswerKey, FileReport, Problem, SpanStatus, Trace, TraceMeta
from mast_tui.traces.readers.base import FormatReader
from mast_tui.traces.readers.document_traces import RunOrigin, report_of
from mast_tui.traces.readers.json_fields import (
    Fields,
    add_new,
    fields_of,
    short_name,
    text_in,
    value_in,
)
from mast_tui.traces.readers.otel.conventions import bare_name, row_of_attributes
from mast_tui.traces.readers.run_facts import AnswerKeyDraft
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
)
from mast_tui.traces.readers.span_tree.rows import Message, RowKind, SpanRow
from mast_tui.traces.readers.span_tree.steps import trace_of_rows
from mast_tui.traces.readers.vendors.records import (
    NOTHING,
    TraceRecords,
    VendorRecord,
    text_at,
    traces_in,
    value_at,
    values_at,
    vendor_of,
)
from mast_tui.traces.readers.vendors.tables import Paths, Vendor
from mast_tui.traces.result_status import first_known_status, status_of_word, worst_status
from mast_tui.traces.times import unix_seconds

_AGENT_FIELDS: Final = ("lc_agent_name", "agent_name", "agentName", "agent")
_WEAVE_OPERATION: Final = re.compile(r"weave:///.*/op/(?P<name>[^/:]+)(?::[^/]*)?\Z")
_TOOL_PREFIX: Final = re.compile(r"(?:execute_tool |running tool: |Function tool: )(?=\S)")
_DOTTED_PREFIX: Final = "tool."
_UNKNOWN_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"nrtxuU]")
"""An escape that Python never writes, and warns about when it reads it."""
_MAX_LITERAL_CHARS: Final = 16 * 1024
_MAX_LITERAL_BRACKETS: Final = 200


def rows_of(vendor: Vendor, records: Iterable[VendorRecord]) -> list[SpanRow]:
    """Return the records of one trace as rows of timed calls.

    Args:
        vendor: The vendor.
        records: The records; their order is kept.
    """
    records = list(records)
    if vendor.step_type:
        records = _with_complete_steps(vendor, records)
    rows = [_row_of_record(vendor, record) for record in records]
    if vendor.lacks_types:
        rows = _with_guessed_models(rows)
    if vendor.thought_paths:
        thoughts = [text_at(record.value, vendor.thought_paths) for record in records]
        rows = _with_thoughts(rows, thoughts)
    rows = _without_copied_calls(rows)
    rows = _with_joined_events(rows)
    return _linked_to_model_calls(rows)


def _with_complete_steps(vendor: Vendor, records: Sequence[VendorRecord]) -> list[VendorRecord]:
    """Return the records; a model's step gets the input and the model of the record around it.

    The texts of ``reasoning`` records within a step become its thought.
    """
    value_by_id = {record.id: record.value for record in records}
    thoughts_by_step: dict[str, list[str]] = {}
    for record in records:
        is_thought = value_at(record.value, ("attributes/chunkType",)) == "reasoning"
        text = as_text(value_at(record.value, ("output/text",)))
        if is_thought and text and record.parent is not None:
            thoughts_by_step.setdefault(record.parent, []).append(text)
    complete_records = []
    for record in records:
        outer = value_by_id.get(record.parent or "")
        if _type_name(vendor, record.value) == vendor.step_type and outer is not None:
            attributes = {
                **fields_of(record.value.get("attributes")),
                "model": value_at(outer, vendor.fields.model),
            }
            thought = "\n".join(thoughts_by_step.get(record.id, ()))
            output = {**fields_of(record.value.get("output")), "reasoning_content": thought}
            changed_fields = {"input": outer.get("input"), "attributes": attributes}
            value = {**record.value, **changed_fields, "output": output}
            record = replace(record, value=value)
        complete_records.append(record)
    return complete_records


def is_judgement(vendor: Vendor, record: VendorRecord) -> bool:
    """Return whether a record is of a call that scored the run.

    Args:
        vendor: The vendor.
        record: The record.
    """
    return _type_name(vendor, _with_parsed_fields(vendor, record.value)) in vendor.scoring_types


def _row_of_record(vendor: Vendor, record: VendorRecord) -> SpanRow:
    """Return a record as a row of the tree of timed calls.

    Attributes of the original OpenTelemetry span complete the row.
    """
    fields = vendor.fields
    parsed_record = _with_parsed_fields(vendor, record.value)
    row = _row_of_fields(vendor, record, parsed_record)
    attribute_row = row_of_attributes(value_at(parsed_record, vendor.attributes), row.name, row.id)
    if attribute_row is not None:
        row = _with_attributes(row, attribute_row)

    # ``_with_guessed_models`` may change a row with an answer to a model's row.
    may_become_model = vendor.lacks_types and has_answer(value_at(parsed_record, fields.output))
    if row.kind is RowKind.MODEL or may_become_model:
        input_tokens = value_at(parsed_record, fields.tokens)
        output_tokens = value_at(parsed_record, _output_paths(fields.tokens))
        tokens = tokens_of(input_tokens, output_tokens)
        row = replace(row, model=text_at(parsed_record, fields.model), tokens=tokens)

    if row.kind is RowKind.TOOL:
        return _tool_row(row)
    if row.kind is RowKind.MODEL:
        if vendor.has_short_items:
            row = replace(row, input=_typed_messages(row.input), output=_typed_messages(row.output))
        return _model_row(row, attribute_row)
    if row.kind is RowKind.AGENT:
        row = replace(row, agent=row.agent or bare_name(row.name))
    instructions = None if attribute_row is None else attribute_row.instructions
    output = _parsed_arguments(row.output) if isinstance(row.output, str) else row.output
    return replace(row, output=output, instructions=instructions or system_text(row.input))


def _row_of_fields(vendor: Vendor, record: VendorRecord, parsed_record: Fields) -> SpanRow:
    """Return the row with the vendor's own fields of a record."""
    fields = vendor.fields
    type_name = _type_name(vendor, parsed_record)
    is_readable = type_name in vendor.readable_types
    kind = vendor.kinds.get(type_name, RowKind.OTHER)
    status, error = _status_and_error(vendor, parsed_record)
    # A text that happens to be JSON stays a text, unless all texts of the vendor are JSON.
    content = parsed_record if vendor.has_json_texts else record.value
    output = value_at(content, fields.output)
    if output is None and is_readable:
        output = _fact_lines(value_at(parsed_record, vendor.facts)) or None
    return SpanRow(
        id=record.id,
        parent=record.parent,
        kind=kind,
        name=_call_name(text_at(parsed_record, fields.name) or kind.value),
        location=record.location,
        start=unix_seconds(value_at(parsed_record, fields.start)),
        end=unix_seconds(value_at(parsed_record, fields.end)),
        status=status,
        error=error,
        agent=_agent_in_metadata(value_at(parsed_record, fields.metadata), kind),
        input=_without_args(vendor, value_at(content, fields.input)),
        output=output,
        call_id=text_at(parsed_record, fields.call_id),
        has_readable_output=is_readable,
    )


def _without_args(vendor: Vendor, value: object) -> object:
    """Return an input without DeepEval's wrapper ``{"args": […]}``."""
    # Only DeepEval has ``has_short_items``.
    fields = fields_of(value)
    args = fields.get("args")
    if not vendor.has_short_items or len(fields) != 1 or not isinstance(args, list):
        return value
    return args[0] if len(args) == 1 and isinstance(args[0], Mapping) else args


def _typed_messages(value: object) -> object:
    """Return the messages in a model's input or output, with the types that DeepEval omits.

    Definitions of tools are left out, and so are results without a call id, as tools' rows have
    them. A plain text is unchanged.
    """
    items = value_in(value)
    if isinstance(items, str) and items.startswith("{'"):  # a Python literal
        items = read_literal(items) or items
    if isinstance(items, Mapping):
        message = _typed_message(items)
        return value if message is items else [message]
    if not isinstance(items, list):
        return value
    return [_typed_message(item) for item in items if not _is_left_out(fields_of(item))]


def _is_left_out(item: Fields) -> bool:
    """Return whether an item is the definition of a tool or a result without a call id."""
    role = item.get("role")
    is_definition = role in ("Tool Input", "Model Request Parameters")
    has_call_id = not item.keys().isdisjoint(("call_id", "tool_call_id"))
    return is_definition or (role == "tool" and not has_call_id)


def _typed_message(item: object) -> object:
    """Return an item as a message with the type or role that it lacks."""
    fields = fields_of(item)
    if fields.keys() >= {"call_id", "name", "arguments"}:
        return {**fields, "type": "function_call"}
    if fields.keys() >= {"call_id", "output"}:
        return {"role": "tool", "tool_call_id": fields["call_id"], "content": fields["output"]}
    content = fields.get("content", item if "toolUse" in fields else None)
    if not isinstance(content, Mapping):
        return item
    parts = content.get("parts", [content])
    return {"role": "assistant", **fields, "content": parts}


def _fact_lines(value: object) -> str:
    """Return the fields of an object except ``type``, one a line."""
    fields = fields_of(value).items()
    return "\n".join(f"{name}: {dump_text(field)}" for name, field in fields if name != "type")


def _with_attributes(row: SpanRow, attribute_row: SpanRow) -> SpanRow:
    """Complete a vendor's row by the row of its OpenTelemetry attributes."""
    # Langfuse records the tools of many frameworks without a type.
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
    """Return the paths to the count of output tokens, from the paths to that of input tokens."""
    return tuple(path.replace("input", "output").replace("prompt", "completion") for path in tokens)


def _with_parsed_fields(vendor: Vendor, record: Fields) -> Fields:
    """Return a record with its JSON texts parsed, which saves repeated parsing."""
    parsed_fields: dict[str, object] = {name: value_in(value) for name, value in record.items()}
    attributes = parsed_fields.get("attributes")
    if vendor.has_json_texts and isinstance(attributes, Mapping):
        parsed_fields["attributes"] = {
            name: _json_or_text(value) for name, value in attributes.items()
        }
    return parsed_fields


def _json_or_text(value: object) -> object:
    """Return the value of a JSON text, even of a number; any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return load_json(value)
    except InvalidJSON:
        return value


def _type_name(vendor: Vendor, record: Fields) -> str:
    return (text_at(record, vendor.fields.kind) or "").upper()


def _call_name(text: str) -> str:
    """Return the short name of a call or an agent, also from Weave's reference to an operation."""
    if match := _WEAVE_OPERATION.match(text):
        text = match["name"]
    return short_name(text) or "call"


def _status_and_error(vendor: Vendor, record: Fields) -> tuple[SpanStatus, str | None]:
    """Return the status of a call and its error."""
    status_name = text_at(record, vendor.fields.status) or ""
    status = status_of_word(status_name.lower().removeprefix("status_code_"))

    # The error may be in several fields, and one text may contain another.
    error_values = values_at(record, vendor.fields.error)
    texts = [_error_text(value).strip() for value in error_values if value not in ({}, [], False)]
    longest_texts = [
        text for text in texts if not any(text in longer and text != longer for longer in texts)
    ]
    error = "\n".join(dict.fromkeys(filter(None, longest_texts))) or None

    if error is None or status is SpanStatus.ERROR:
        return status, error
    if vendor.may_succeed_with_error_text:
        return status, None  # the text is a message of a successful call
    return SpanStatus.ERROR, error


def _error_text(value: object) -> str:
    """Return an error as text; in OpenAI's Agents SDK, its message and the details in ``data``."""
    fields = fields_of(value)
    if not fields or not fields.keys() <= {"message", "data"}:
        return dump_text(value)
    return f"{dump_text(fields.get('message'))}\n{_fact_lines(fields.get('data'))}"


def _agent_in_metadata(metadata: object, kind: RowKind) -> str | None:
    """Return the agent that a framework names in the metadata of a call.

    LangGraph names the nested nodes around a call. The second innermost node is the agent. A single
    node is the agent of a model's call only.
    """
    fields = fields_of(metadata)
    if name := text_in(fields, *_AGENT_FIELDS):
        return _call_name(name)
    # The path through LangGraph's nested graphs is, for example, researcher:<id>|model:<id>
    path = as_text(fields.get("langgraph_checkpoint_ns")) or ""
    nodes = [node.partition(":")[0] for node in path.split("|")]
    if len(nodes) > 1 and nodes[-2].strip():
        return _call_name(nodes[-2])
    node = as_text(fields.get("langgraph_node")) if kind is RowKind.MODEL else None
    return _call_name(node) if node else None


def _model_row(row: SpanRow, attribute_row: SpanRow | None = None) -> SpanRow:
    """Return a model's row with the messages of its request and its answer.

    ``attribute_row`` has the default messages.
    """
    model_input, model_output = without_lost_messages(row.input, row.output)
    request = request_messages(model_input)
    answer = answer_messages(model_output)
    instructions = instructions_in(model_output)  # repeated in OpenAI's responses
    system_messages: list[Message] = []
    if instructions:
        system_messages.append({"role": "system", "content": instructions})

    if attribute_row is not None:
        request = request or attribute_row.request
        answer = answer or attribute_row.answer
        system_messages = system_messages or list(filter(is_system, attribute_row.request))
    request = request or request_text(model_input)
    if not any(map(is_system, request)):
        request = (*system_messages, *request)
    return replace(row, input=model_input, output=model_output, request=request, answer=answer)


def _tool_row(row: SpanRow) -> SpanRow:
    """Return a tool's row without the wrappers of its arguments and its result."""
    arguments = value_in(row.input)
    if isinstance(arguments, Mapping):
        arguments = {
            name: value
            for name, value in arguments.items()
            # A number named ``self`` is an argument; another ``self`` is a traced method's object.
            if name != "self" or isinstance(value, int | float)
        }
        if len(arguments) == 1 and isinstance(arguments.get("input"), str):
            row = replace(row, input=_parsed_arguments(arguments["input"]))
        elif not isinstance(row.input, str):
            row = replace(row, input=arguments)
    elif isinstance(arguments, str):
        row = replace(row, input=_parsed_arguments(arguments))

    tool_result = tool_output(row.output)
    if row.output == "null" and row.error is not None:
        tool_result = ToolOutput(None)  # in a table, a missing output
    return replace(
        row,
        output=tool_result.output,
        call_id=row.call_id or tool_result.call_id,
        status=worst_status(row.status, tool_result.status),
    )


def _parsed_arguments(text: str) -> object:
    """Return the arguments in a Python literal such as LangChain's ``{'city': 'Rome'}``.

    Any other text, and also a JSON text, is unchanged.
    """
    is_short_object = text[:1] == "{" and text[-1:] == "}" and len(text) <= _MAX_LITERAL_CHARS
    if not is_short_object or isinstance(value_in(text), Mapping):
        return text
    # Each of these characters is a level of recursion in the parser.
    nesting_count = sum(map(text.count, "([{-~"))
    if nesting_count > _MAX_LITERAL_BRACKETS or _UNKNOWN_ESCAPE.search(text):
        return text
    value = read_literal(text)
    try:
        arguments = load_json(dump_text(value)) if isinstance(value, dict) else None
    except (ValueError, TypeError, RecursionError):
        return text
    return arguments if isinstance(arguments, Mapping) else text


def _with_guessed_models(rows: list[SpanRow]) -> list[SpanRow]:
    """Return the rows, with a row of an unknown type and an answer as a model's row.

    One client of a model may call another, so of nested rows only the innermost is changed.
    """
    ids_with_answer = {
        row.id
        for row in rows
        if row.kind is RowKind.MODEL
        or (row.kind is RowKind.OTHER and has_answer(value_in(row.output)))
    }
    parents = {row.id: row.parent for row in rows}
    outer_ids: set[str] = set()
    for row_id in ids_with_answer:
        outer_id = parents.get(row_id)
        while outer_id is not None and outer_id not in outer_ids:
            outer_ids.add(outer_id)
            outer_id = parents.get(outer_id)

    innermost_ids = ids_with_answer - outer_ids
    return [
        _model_row(replace(row, kind=RowKind.MODEL))
        if row.kind is RowKind.OTHER and row.id in innermost_ids
        else row
        for row in rows
    ]


def _without_copied_calls(rows: list[SpanRow]) -> list[SpanRow]:
    """Return the rows, with an empty row in place of each copy of the model call around it.

    A framework records a model call with separate messages, and its client records the same call
    with one text. The client's tokens move to the framework's row.
    """
    outer_ids = {row.id for row in rows if row.kind is RowKind.MODEL and len(row.request) > 1}
    copy_by_outer_id = {
        row.parent: row
        for row in rows
        if row.kind is RowKind.MODEL and row.parent in outer_ids and len(row.request) == 1
        # The only message is the input, a plain text.
        if isinstance(row.input, str) and value_in(row.input) is row.input
    }
    kept_rows = []
    for row in rows:
        if row.parent is not None and copy_by_outer_id.get(row.parent) is row:
            empty_row = SpanRow(row.id, row.parent, RowKind.OTHER, row.name, row.location)
            row = replace(empty_row, start=row.start, end=row.end)
        elif row.id in copy_by_outer_id:
            row = replace(row, tokens=copy_by_outer_id[row.id].tokens or row.tokens)
        kept_rows.append(row)
    return kept_rows


def _with_thoughts(rows: list[SpanRow], thoughts: Sequence[str | None]) -> list[SpanRow]:
    """Return the rows; a row with a new thought becomes a model's row with the thought as answer.

    ``thoughts`` has the thought of each row, or None. BeeAI repeats a thought with each part of an
    answer, so only its first row is changed.
    """
    if not any(thoughts):
        return rows
    requests = [dump_text(row.request) for row in rows if row.request]
    shown_thoughts: set[str] = set()
    rows_with_thoughts: list[SpanRow] = []
    for row, thought in zip(rows, thoughts, strict=True):
        is_other = row.kind is RowKind.OTHER
        if thought is not None and is_other and add_new(shown_thoughts, thought):
            # This is the form of the thought within the JSON of a request.
            escaped_thought = json.dumps(thought.strip('"'), ensure_ascii=False)[1:-1]
            if not any(escaped_thought in request for request in requests):
                answer = {"role": "assistant", "content": "", "reasoning": thought}
                row = replace(row, kind=RowKind.MODEL, input=None, output=None, answer=(answer,))
        rows_with_thoughts.append(row)
    return rows_with_thoughts


def _linked_to_model_calls(rows: list[SpanRow]) -> list[SpanRow]:
    """Return the rows, with the names and arguments of the models' calls in tools' rows.

    A tool may be traced as a plain function. Its row, which has the kind ``OTHER``, the tool's name
    and no rows under it, becomes a tool's row.
    """
    calls = [call for row in rows for message in row.answer for call in tool_calls(message)]
    called_names = {name for name, _arguments in calls}
    call_signatures = {(name, canonical_arguments(arguments)) for name, arguments in calls}
    tool_row_names = {row.name for row in rows if row.kind is RowKind.TOOL}
    names_without_row = called_names - tool_row_names
    ids_with_children = {row.parent for row in rows}
    linked_rows = []
    for row in rows:
        # Tracers put a prefix before the name.
        name = row.name
        if name not in called_names:
            name = _TOOL_PREFIX.sub("", name)
        short_tool_name = name.removeprefix(_DOTTED_PREFIX)
        if short_tool_name in called_names:
            name = short_tool_name

        is_function_of_tool = name in names_without_row and row.id not in ids_with_children
        if row.kind is RowKind.TOOL:
            row = replace(row, name=name)
        elif row.kind is RowKind.OTHER and is_function_of_tool:
            row = _tool_row(replace(row, kind=RowKind.TOOL, name=name))
        arguments = _wrapped_input(row) if row.kind is RowKind.TOOL else None
        if arguments is not None and (name, canonical_arguments(arguments)) in call_signatures:
            row = replace(row, input=arguments)
        linked_rows.append(row)
    return linked_rows


def _wrapped_input(row: SpanRow) -> Fields | None:
    """Return the arguments in ``{"input": {…}}``, as tracers of functions wrap them."""
    fields = fields_of(value_in(row.input))
    arguments = value_in(fields.get("input")) if len(fields) == 1 else None
    return arguments if isinstance(arguments, Mapping) else None


_EVENT_NAME: Final = re.compile(
    r"(?P<call>.+)\.(?P<event>start|success|error|finish)-(?P<number>\d+)"
)


def _with_joined_events(rows: list[SpanRow]) -> list[SpanRow]:
    """Return the rows, with the events of a call in BeeAI's traces joined to one row."""
    index_by_call: dict[tuple[str, str], int] = {}
    joined_rows: list[SpanRow] = []
    for row in sorted(rows, key=_event_sort_key):
        # The name of an event has the number of its call, as in tool.search.start-3.
        match = None if row.kind is RowKind.OTHER else _EVENT_NAME.fullmatch(row.name)
        if match is None:
            joined_rows.append(row)
            continue
        numbered_call = match["call"], match["number"]
        if numbered_call not in index_by_call:
            index_by_call[numbered_call] = len(joined_rows)
            joined_rows.append(replace(row, name=match["call"].removeprefix(_DOTTED_PREFIX)))
            continue
        call_index = index_by_call[numbered_call]
        call_row = joined_rows[call_index]
        joined_rows[call_index] = replace(
            call_row,
            end=max(filter(None, (call_row.end, row.end)), default=None),
            answer=call_row.answer or _joined_answer(row),
            output=row.output if call_row.output is None else call_row.output,
            status=first_known_status(call_row.status, row.status),
            error=call_row.error or row.error,
        )
    return joined_rows


def _event_sort_key(row: SpanRow) -> int:
    """Return a sort key that puts the start of a call before its other events."""
    match = _EVENT_NAME.fullmatch(row.name)
    is_later_event = match is not None and match["event"] != "start"
    return 1 if is_later_event else 0


def _joined_answer(row: SpanRow) -> tuple[Message, ...]:
    """Return the messages of an answer joined to one; unchanged if one of them has a tool call."""
    calls = [call for message in row.answer for call in tool_calls(message)]
    if len(row.answer) < 2 or calls:
        return row.answer
    text = "".join(content_text(message.get("content")) for message in row.answer)
    return ({"role": "assistant", "content": text},)


_QUESTION_FIELDS: Final = ("input", "question", "query", "task", "prompt", "request")


def _read(source: Source) -> FileReport:
    """Return a trace for each trace id in the file; the only trace of a file has no number."""
    vendor = vendor_of(source)
    if vendor is None:
        return FileReport(source.path, skipped="no records of a known vendor")
    problems: list[Problem] = []
    runs = traces_in(source, vendor, problems)
    traces = [
        _trace_of_records(source, vendor, records, run_index if len(runs) > 1 else None)
        for run_index, records in enumerate(runs)
    ]
    return report_of(READER, source, traces, problems, vendor.name)


def _trace_of_records(
    source: Source, vendor: Vendor, records: TraceRecords, record_number: int | None
) -> Trace:
    """Return the trace of some records.

    The scores of calls that scored the run are in the answer key, not in spans. The only trace of a
    file has None as ``record_number``, and the bytes of the file as its identity.
    """
    scoring_calls = _scoring_calls(vendor, records)
    run_records = [record for record in records.by_id.values() if record.id not in scoring_calls]
    row_of_trace = SpanRow(
        id=records.id or records.location,
        parent=None,
        kind=RowKind.OTHER,
        name=as_text(records.trace_facts.get("name")) or "trace",
        location=records.location,
        input=records.trace_facts.get("input"),
        output=records.trace_facts.get("output"),
    )
    rows = rows_of(vendor, run_records) or [row_of_trace]
    meta = TraceMeta(
        task=_question_of_root(rows),
        system=text_at(records.trace_facts, vendor.trace_name) or _root_row(rows).name,
        answer_key=_answer_key(vendor, records, scoring_calls),
        version=_system_version(vendor, records),
    )
    content = source.data if record_number is None else canonical_bytes(records.values)
    origin = RunOrigin(READER, source.path, content, record_number, records.id)
    return trace_of_rows(origin, rows, meta)


READER: Final = FormatReader("vendor-export", lambda source: vendor_of(source) is not None, _read)
"""Reads the exports of tracing vendors; keys begin with the vendor's ids."""


def _scoring_calls(vendor: Vendor, records: TraceRecords) -> dict[str, VendorRecord]:
    """Return the calls that scored the run and the calls nested in them, by id."""
    if not vendor.scoring_types:
        return {}
    children: dict[str, list[VendorRecord]] = {}
    for record in records.by_id.values():
        if record.parent is not None:
            children.setdefault(record.parent, []).append(record)

    scoring_calls: dict[str, VendorRecord] = {}
    stack = [record for record in records.by_id.values() if is_judgement(vendor, record)]
    while stack:
        record = stack.pop()
        if record.id not in scoring_calls:
            scoring_calls[record.id] = record
            stack.extend(children.get(record.id, ()))
    return scoring_calls


def _answer_key(
    vendor: Vendor, records: TraceRecords, scoring_calls: Mapping[str, VendorRecord]
) -> AnswerKey:
    """Return the scores and expected answers, hidden from blind annotators."""
    draft = AnswerKeyDraft()
    for path in vendor.hidden_paths:
        name = path.rpartition("/")[2]
        for value in records.values:
            draft.add_value(name, value_at(value, (path,)))
    for record in scoring_calls.values():
        if is_judgement(vendor, record):  # calls nested in a judgement have no score
            name = text_at(record.value, vendor.fields.name) or "score"
            draft.add_score(name, value_at(record.value, vendor.fields.output))
    return draft.key()


def _system_version(vendor: Vendor, records: TraceRecords) -> str | None:
    """Return the version of the system in the trace or one of its records."""
    versions = (text_at(value, vendor.version) for value in records.values)
    return next(filter(None, versions), None)


def _root_row(rows: Sequence[SpanRow]) -> SpanRow:
    """Return the first row without a parent among the rows, else the first row."""
    ids = {row.id for row in rows}
    return next((row for row in rows if row.parent not in ids), rows[0])


def _question_of_root(rows: Sequence[SpanRow]) -> str | None:
    root_input = value_in(_root_row(rows).input)
    if isinstance(root_input, Mapping):
        return text_in(root_input, *_QUESTION_FIELDS)
    return as_text(root_input)

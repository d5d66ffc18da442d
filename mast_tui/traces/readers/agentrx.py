"""Runs in the intermediate form of AgentRx, and runs in the telemetry of its replication.

The intermediate form (``trajectory_ir.json``) has numbered steps; each has substeps with a role and
a text. The replication records runs as ``otel-json-local-v0``: spans in its own schema, with
planted faults and the expected result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.traces.index.document import StepDetails, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import as_number, as_text, content_text, dump_text, tokens_of
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import AnswerKey, FileReport, Outcome, Problem, Role, SpanKind, TraceMeta
from mast_tui.traces.readers.base import FormatReader
from mast_tui.traces.readers.chat.pieces import role_of
from mast_tui.traces.readers.document_traces import RunOrigin, report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    items_of,
    json_in,
    located_items,
    short_name,
)
from mast_tui.traces.readers.run_facts import AnswerKeyDraft, Section, task_of
from mast_tui.traces.result_status import status_of_word

_SCHEMA: Final = "otel-json-local-v0"
_FIELD_LINE: Final = re.compile(r"^(Role|Status|Tool): ([^\n]{1,200})$", re.MULTILINE)
_FIELD_BY_LABEL: Final = {"Role": "role", "Status": "status", "Tool": "tool_name"}
_TOOL_ROLE: Final = "dependency"
"""The role of a tool that an agent has called."""

_OUTCOME_BY_STATUS: Final = {
    "FAILED": Outcome.FAILED,
    "SUCCESS": Outcome.SUCCEEDED,
    "OK": Outcome.SUCCEEDED,
}
_SECTION_BY_TASK_FIELD: Final[dict[str, Section]] = {
    "failure_response": "reference",
    "target_fault_category": "failures",
    "injection_node": "failures",
}
_FAULT_EVENT: Final = "fault.injected"


def _recognises(source: Source) -> bool:
    """Return whether the file is one run in either form."""
    if not any(mark in as_utf8(source.head) for mark in (b'"substeps"', _SCHEMA.encode())):
        return False
    document = source.json
    return _has_substeps(document) or _is_telemetry(document)


def _read(source: Source) -> FileReport:
    """Return the file's one trace."""
    document = fields_of(source.json)
    steps = StepList()
    problems = list[Problem]()
    read_run = _read_telemetry if _is_telemetry(document) else _read_substeps
    meta = read_run(document, steps, problems)
    trace = trace_of_steps(RunOrigin(READER, source.path, source.data), steps, meta, problems)
    return report_of(READER, source, [trace])


READER: Final = FormatReader("agentrx", _recognises, _read)
"""Reads both forms; keys are ``/steps/2/substeps/0``, or begin with the span's id."""


def _has_substeps(document: object) -> bool:
    steps = map(fields_of, items_of(fields_of(document).get("steps")))
    return any(isinstance(step.get("substeps"), list) for step in steps)


def _is_telemetry(document: object) -> bool:
    return fields_of(document).get("schema") == _SCHEMA


def _read_substeps(document: Fields, steps: StepList, problems: list[Problem]) -> TraceMeta:
    """Add the substeps of a run in the intermediate form to ``steps``; return the run's facts."""
    for location, step in located_items(document.get("steps"), "/steps"):
        substeps = fields_of(step).get("substeps")
        if not isinstance(substeps, list):
            problems.append(Problem(location, "no step, left out"))
            continue
        for substep_index, substep in enumerate(substeps):
            _add_substep(steps, fields_of(substep), f"{location}/substeps/{substep_index}")
    return TraceMeta(task=task_of(document.get("instruction"), steps=()))


def _add_substep(steps: StepList, substep: Fields, location: str) -> None:
    """Add a substep as a message, or as a result if its text states the role of a tool."""
    text = content_text(substep.get("content"))
    fields = _substep_fields(text)
    role_name = short_name(substep.get("role")) or "agent"
    role = Role.TOOL if fields.get("role") == _TOOL_ROLE else role_of(role_name) or Role.AGENT
    status = status_of_word(fields.get("status"))
    if role is Role.TOOL:
        name = short_name(fields.get("tool_name")) or None
        steps.result(location, role_name, text, name=name, status=status)
    else:
        steps.add(location, SpanKind.MESSAGE, role, role_name, text, status=status)


def _substep_fields(text: str) -> Fields:
    """Return the fields in a substep: a JSON object, or lines such as ``Role: tool``."""
    if text.startswith("{"):
        return fields_of(json_in(text))
    fields: dict[str, object] = {}
    for label, value in _FIELD_LINE.findall(text):
        # The first of several lines with the same label is used.
        fields.setdefault(_FIELD_BY_LABEL[label], value.strip())
    return fields


def _read_telemetry(document: Fields, steps: StepList, problems: list[Problem]) -> TraceMeta:
    """Add the task and the spans of a run's telemetry to ``steps``; return the run's facts."""
    task = as_text(document.get("task"))
    if task:
        steps.add("/task", SpanKind.MESSAGE, Role.USER, "user", task)
    spans = items_of(document.get("spans"))
    frameworks = [fields_at(span, "attributes").get("gen_ai.agent.framework") for span in spans]
    model = None
    open_calls: dict[str, str] = {}

    starts = [_seconds_at(span, "start") or 0.0 for span in spans]
    indexes_by_start = sorted(range(len(spans)), key=starts.__getitem__)
    for span_index in indexes_by_start:
        span = spans[span_index]
        location = f"/spans/{span_index}"
        if not isinstance(span, Mapping):
            problems.append(Problem(location, "not a span but a bare value, left out"))
            continue
        attributes = fields_of(span.get("attributes"))
        model = model or as_text(attributes.get("gen_ai.request.model"))
        _add_span(steps, span, attributes, location, open_calls)
    return TraceMeta(
        task=task_of(task, steps=()),
        system=next(filter(None, map(as_text, frameworks)), None),
        model=model,
        outcome=_OUTCOME_BY_STATUS.get(str(document.get("status")), Outcome.UNKNOWN),
        answer_key=_answer_key(document, spans),
    )


def _add_span(
    steps: StepList, span: Fields, attributes: Fields, location: str, open_calls: dict[str, str]
) -> None:
    """Add the message and the call of an agent, or a tool's result.

    ``open_calls`` has the key of each tool's last call without a result, and is updated.
    """
    key = as_text(span.get("span_id")) or location
    agent = short_name(attributes.get("gen_ai.agent.name"))
    if not agent:
        return
    start = _seconds_at(span, "start")
    end = _seconds_at(span, "end")
    status = status_of_word(fields_of(span.get("status")).get("status_code"))
    details = StepDetails(place=location, start=start, end=end, status=status)
    tool = short_name(attributes.get("tool.name"))
    output = dump_text(attributes.get("agent.output_message"))

    if attributes.get("experiment.operation_type") == "tool_call":
        result = dump_text(attributes.get("tool.result_json")) or output
        details["name"] = tool or None
        details["parent"] = open_calls.pop(tool, None)
        steps.result(key, agent, result, **details)
        return

    details["tokens"] = tokens_of(
        attributes.get("gen_ai.usage.input_tokens"), attributes.get("gen_ai.usage.output_tokens")
    )
    steps.add(key, SpanKind.MESSAGE, Role.AGENT, agent, output, **details)
    if tool:
        arguments = dump_text(attributes.get("tool.args_json"))
        call_location = f"{location}/attributes/tool.args_json"
        open_calls[tool] = steps.call(
            f"{key}:call", agent, arguments, place=call_location, name=tool, start=end
        )


def _seconds_at(span: object, boundary: str) -> float | None:
    """Return the ``start`` or ``end`` of a span in Unix seconds."""
    nanoseconds = as_number(fields_of(span).get(f"{boundary}_time_unix_ns"))
    return None if nanoseconds is None else nanoseconds / 1e9


def _answer_key(document: Fields, spans: Sequence[object]) -> AnswerKey:
    """Return the expected result, the status of the run, and the planted faults by their spans."""
    draft = AnswerKeyDraft()
    draft.add_fields(fields_of(document.get("task_metadata")), _SECTION_BY_TASK_FIELD)
    draft.add("scores", "status", document.get("status"))
    for span in map(fields_of, spans):
        for event in map(fields_of, items_of(span.get("events"))):
            if event.get("name") == _FAULT_EVENT:
                span_id = as_text(span.get("span_id")) or _FAULT_EVENT
                draft.add("step_scores", span_id, event.get("attributes"))
    return draft.key()

"""Runs as AgentRx's judge is shown them, and the telemetry that such runs were recorded as.

AgentRx turns every format into an intermediate form (``trajectory_ir.json``): numbered steps, each
with substeps of a role and a text. A replication of it records its runs as ``otel-json-local-v0``,
spans of a schema of its own, with what was planted and what was expected beside them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.traces.index.document import More, StepList
from mast_tui.traces.io.json_values import as_number, as_text, content_text, dump_text, tokens_of
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    AnswerKey,
    FileReport,
    Outcome,
    Problem,
    Role,
    SpanKind,
    SpanStatus,
    TraceMeta,
)
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft, Section
from mast_tui.traces.readers.chat.pieces import role_of
from mast_tui.traces.readers.document_traces import report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    items_of,
    json_in,
    short_name,
)
from mast_tui.traces.readers.run_facts import task_of

_SCHEMA: Final = "otel-json-local-v0"
_MARKS: Final = (b'"substeps"', _SCHEMA.encode())
_LINE: Final = re.compile(r"^(Role|Status|Tool): ([^\n]{1,200})$", re.MULTILINE)
_FIELDS: Final = {"Role": "role", "Status": "status", "Tool": "tool_name"}
_A_TOOL: Final = "dependency"
"""The role of a tool, which an agent has called."""

_STATUSES: Final = {"ERROR": SpanStatus.ERROR, "OK": SpanStatus.OK}
_OUTCOMES: Final = {"FAILED": Outcome.FAILED, "SUCCESS": Outcome.SUCCEEDED, "OK": Outcome.SUCCEEDED}
_TASK_KEY: Final[dict[str, Section]] = {
    "failure_response": "reference",
    "target_fault_category": "failures",
    "injection_node": "failures",
}
_FAULT: Final = "fault.injected"


class AgentRxReader:
    """Reads both forms; keys are ``/steps/2/substeps/0``, or begin with the span's id."""

    name: Final = "agentrx"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return whether the file is one run in either form."""
        if not any(mark in source.head for mark in _MARKS):
            return False
        document = source.json
        return _is_intermediate(document) or _is_recorded(document)

    def read(self, source: Source) -> FileReport:
        """Return the file's one trace."""
        document = fields_of(source.json)
        steps = StepList()
        problems = list[Problem]()
        read = _read_recorded if _is_recorded(document) else _read_intermediate
        meta = read(document, steps, problems)
        trace = trace_of_steps(self, source.path, source.data, steps, meta=meta, problems=problems)
        return report_of(self, source, [trace])


READER: Final = AgentRxReader()


def _is_intermediate(document: object) -> bool:
    steps = map(fields_of, items_of(fields_of(document).get("steps")))
    return any(isinstance(step.get("substeps"), list) for step in steps)


def _is_recorded(document: object) -> bool:
    return fields_of(document).get("schema") == _SCHEMA


def _read_intermediate(document: Fields, steps: StepList, problems: list[Problem]) -> TraceMeta:
    for number, step in enumerate(items_of(document.get("steps"))):
        substeps = fields_of(step).get("substeps")
        if not isinstance(substeps, list):
            problems.append(Problem(f"/steps/{number}", "no step, left out"))
            continue
        for inner, substep in enumerate(substeps):
            _add_substep(steps, fields_of(substep), f"/steps/{number}/substeps/{inner}")
    return TraceMeta(task=task_of(document.get("instruction"), steps=()))


def _add_substep(steps: StepList, substep: Fields, location: str) -> None:
    text = content_text(substep.get("content"))
    fields = _substep_fields(text)
    role_name = short_name(substep.get("role")) or "agent"
    role = Role.TOOL if fields.get("role") == _A_TOOL else role_of(role_name) or Role.AGENT
    status = _STATUSES.get(str(fields.get("status")).upper(), SpanStatus.UNKNOWN)
    if role is Role.TOOL:
        name = short_name(fields.get("tool_name")) or None
        steps.result(location, role_name, text, name=name, status=status)
    else:
        steps.add(location, SpanKind.MESSAGE, role, role_name, text, status=status)


def _substep_fields(text: str) -> Fields:
    """Return the fields that a substep states: in lines, or as a JSON object."""
    if text.startswith("{"):
        return fields_of(json_in(text))
    return {_FIELDS[match[1]]: match[2].strip() for match in reversed(list(_LINE.finditer(text)))}


def _read_recorded(document: Fields, steps: StepList, problems: list[Problem]) -> TraceMeta:
    task = as_text(document.get("task"))
    if task:
        steps.add("/task", SpanKind.MESSAGE, Role.USER, "user", task)
    spans = items_of(document.get("spans"))
    frameworks = [fields_at(span, "attributes").get("gen_ai.agent.framework") for span in spans]
    model = None
    open_calls: dict[str, str] = {}
    for number, span in sorted(
        enumerate(spans), key=lambda numbered_span: _seconds(numbered_span[1], "start") or 0.0
    ):
        location = f"/spans/{number}"
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
        outcome=_OUTCOMES.get(str(document.get("status")), Outcome.UNKNOWN),
        answer_key=_answer_key(document, spans),
    )


def _add_span(
    steps: StepList, span: Fields, attributes: Fields, location: str, open_calls: dict[str, str]
) -> None:
    """Add the message and the call of an agent, or a tool's result; other spans are passed over."""
    key = as_text(span.get("span_id")) or location
    agent = short_name(attributes.get("gen_ai.agent.name"))
    if not agent:
        return
    start = _seconds(span, "start")
    end = _seconds(span, "end")
    status_code = fields_of(span.get("status")).get("status_code")
    status = _STATUSES.get(str(status_code), SpanStatus.UNKNOWN)
    more = More(place=location, start=start, end=end, status=status)
    tool = short_name(attributes.get("tool.name"))
    output = dump_text(attributes.get("agent.output_message"))
    if attributes.get("experiment.operation_type") == "tool_call":
        result = dump_text(attributes.get("tool.result_json")) or output
        more["name"] = tool or None
        more["parent"] = open_calls.pop(tool, None)
        steps.result(key, agent, result, **more)
        return
    usage = (attributes.get(f"gen_ai.usage.{way}_tokens") for way in ("input", "output"))
    more["tokens"] = tokens_of(*usage)
    steps.add(key, SpanKind.MESSAGE, Role.AGENT, agent, output, **more)
    if tool:
        arguments = dump_text(attributes.get("tool.args_json"))
        location = f"{location}/attributes/tool.args_json"
        key = f"{key}:call"
        open_calls[tool] = steps.call(key, agent, arguments, place=location, name=tool, start=end)


def _seconds(span: object, when: str) -> float | None:
    number = as_number(fields_of(span).get(f"{when}_time_unix_ns"))
    return None if number is None else number / 1e9


def _answer_key(document: Fields, spans: Sequence[object]) -> AnswerKey:
    """Return the expected result, the end of the run, and the planted faults."""
    draft = AnswerKeyDraft()
    draft.add_fields(fields_of(document.get("task_metadata")), _TASK_KEY)
    draft.add("scores", "status", document.get("status"))
    for span in map(fields_of, spans):
        for event in map(fields_of, items_of(span.get("events"))):
            if event.get("name") == _FAULT:
                step = as_text(span.get("span_id")) or _FAULT
                draft.add("step_scores", step, event.get("attributes"))
    return draft.key()

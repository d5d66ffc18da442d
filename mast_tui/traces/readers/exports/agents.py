"""Runs that agent frameworks save: smolagents, browser-use and CrewAI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import TraceMeta
from mast_tui.traces.readers.exports.engine import ExportedRun, ExportFormat
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    mostly,
    text_in,
    texts_in,
)

Messages = Iterator[tuple[str, Fields]]

_PYTHON_TOOL: Final = "python_interpreter"


def _smolagents_runs(document: object) -> Sequence[ExportedRun]:
    """Return the run in a list of memory steps, or under ``steps`` of an agent's result."""
    listed = document if isinstance(document, list) else fields_of(document).get("steps")
    steps = [fields_of(step) for step in items_of(listed)]
    if not any("step_number" in step and "timing" in step for step in steps):
        return ()
    prefix = "" if isinstance(document, list) else "/steps"
    messages = [
        message
        for number, step in enumerate(steps)
        for message in _smolagents_messages(step, f"{prefix}/{number}")
    ]
    return [ExportedRun(document, messages, meta=TraceMeta(system="smolagents"))]


def _smolagents_messages(step: Fields, pointer: str) -> Messages:
    if text := as_text(step.get("system_prompt")):
        yield f"{pointer}/system_prompt", {"role": "system", "content": text}
    if text := as_text(step.get("task")):
        yield f"{pointer}/task", {"role": "user", "content": text}
    if "step_number" not in step:
        output = first_in(step, "plan", "output", "final_answer")
        if output is not None:
            yield pointer, _timed(step, {"role": "assistant", "content": dump_text(output)})
        return
    calls = items_of(step.get("tool_calls"))
    if not calls and (code := as_text(step.get("code_action"))):
        calls = [{"name": _PYTHON_TOOL, "arguments": code}]
    yield (
        pointer,
        _timed(
            step,
            {
                "role": "assistant",
                "content": first_in(step, "model_output", "llm_output"),
                "tool_calls": calls,
            },
        ),
    )
    yield from _smolagents_result(step, calls, pointer)


def _smolagents_result(step: Fields, calls: Sequence[object], pointer: str) -> Messages:
    """Yield what came of a step: its observations and its error, as the result of its last call."""
    error = fields_of(step.get("error"))
    message = text_in(error, "message") or as_text(step.get("error"))
    texts = (as_text(step.get("observations")), message)
    content = "\n".join(text for text in texts if text)
    if not content:
        content = dump_text(step.get("action_output"))
    if not content and not calls:
        return
    call = fields_of(calls[-1]) if calls else {}
    result: dict[str, object] = {"role": "tool", "tool_call_id": call.get("id"), "content": content}
    if message:
        result["is_error"] = True
    result["timestamp"] = fields_of(step.get("timing")).get("end_time")
    yield f"{pointer}/observations", result


def _timed(step: Fields, message: Fields) -> Fields:
    """Return a message with the start and the tokens of its step."""
    timing = fields_of(step.get("timing"))
    start = first_in(timing, "start_time") or step.get("start_time")
    return {**message, "timestamp": start, "usage": step.get("token_usage")}


SMOLAGENTS: Final = ExportFormat(
    name="smolagents", marks=(b'"step_number"', b'"timing"'), runs=_smolagents_runs
)


def _browser_use_runs(document: object) -> Sequence[ExportedRun]:
    """Return the run in a history of browser-use; success is what the agent itself says."""
    history = items_of(fields_of(document).get("history"))
    steps = [fields_of(step) for step in history]
    if not steps or not mostly(lambda step: "model_output" in fields_of(step), steps):
        return ()
    messages = [
        message
        for number, step in enumerate(steps)
        for message in _browser_use_messages(step, f"/history/{number}")
    ]
    return [ExportedRun(document, messages, meta=TraceMeta(system="browser-use"))]


def _browser_use_messages(step: Fields, pointer: str) -> Messages:
    output = fields_of(step.get("model_output"))
    metadata = fields_of(step.get("metadata"))
    state = fields_of(step.get("state"))
    if page := texts_in(state, "title", "url"):
        yield f"{pointer}/state", {"role": "system", "name": "browser", "content": page}
    thoughts = (output, fields_of(output.get("current_state")))
    texts = [
        texts_in(holder, "thinking", "evaluation_previous_goal", "memory", "next_goal")
        for holder in thoughts
    ]
    actions = [fields_of(action) for action in items_of(output.get("action"))]
    if output:
        yield (
            f"{pointer}/model_output",
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "\n".join(text for text in texts if text),
                "tool_calls": [
                    {"id": f"{pointer[1:]}/action/{number}", **_browser_action(action)}
                    for number, action in enumerate(actions)
                ],
                "timestamp": metadata.get("step_start_time"),
                "usage": {"input_tokens": metadata.get("input_tokens")},
            },
        )
    for number, result in enumerate(map(fields_of, items_of(step.get("result")))):
        error = as_text(result.get("error"))
        content = error or first_in(result, "extracted_content", "long_term_memory")
        message: dict[str, object] = {"role": "tool", "content": content or ""}
        if number < len(actions):
            message["tool_call_id"] = f"{pointer[1:]}/action/{number}"
        message["is_error"] = error is not None
        message["timestamp"] = metadata.get("step_end_time")
        yield f"{pointer}/result/{number}", message


def _browser_action(action: Fields) -> Fields:
    """Return the name and the arguments of an action such as ``{"click": {"index": 3}}``."""
    for name, arguments in action.items():
        if arguments is not None and name != "interacted_element":
            return {"name": name, "arguments": arguments}
    return {"name": "action", "arguments": action}


BROWSER_USE: Final = ExportFormat(
    name="browser-use", marks=(b'"model_output"', b'"history"'), runs=_browser_use_runs
)


def _crewai_runs(document: object) -> Sequence[ExportedRun]:
    """Return the run in the log of tasks that CrewAI writes to its ``output_log_file``."""
    entries = [fields_of(entry) for entry in items_of(document)]
    if not mostly(_is_crewai_entry, entries):
        return ()
    messages = [
        message
        for number, entry in enumerate(entries)
        for message in _crewai_messages(entry, f"/{number}")
    ]
    return [ExportedRun(document, messages, meta=TraceMeta(system="CrewAI"))]


def _is_crewai_entry(entry: object) -> bool:
    fields = fields_of(entry)
    return {"task", "agent", "status"} <= fields.keys() and (
        "task_name" in fields or "output" in fields
    )


def _crewai_messages(entry: Fields, pointer: str) -> Messages:
    time = entry.get("timestamp")
    agent = text_in(entry, "agent") or "agent"
    if entry.get("status") == "started":
        task = {"role": "user", "content": dump_text(entry.get("task")), "timestamp": time}
        yield f"{pointer}/task", task
    if (output := entry.get("output")) not in (None, ""):
        answer = {"role": "assistant", "name": agent, "content": dump_text(output)}
        yield f"{pointer}/output", {**answer, "timestamp": time}


CREWAI: Final = ExportFormat(name="crewai", marks=(b'"task_name"', b'"agent"'), runs=_crewai_runs)

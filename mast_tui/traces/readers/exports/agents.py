"""Runs that agent frameworks save: smolagents, browser-use and CrewAI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import AnswerKey, TraceMeta
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft
from mast_tui.traces.readers.exports.engine import (
    ExportedRun,
    ExportFormat,
    join_distinct_texts,
    objects_in,
    step_lists,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    mostly,
    text_in,
    texts_in,
)

Messages = Iterator[tuple[str, object]]

_PYTHON_TOOL: Final = "python_interpreter"
_SMOLAGENTS_LISTS: Final = ("steps", "messages", "memory.steps")
_BROWSER_USE_LISTS: Final = ("history", "history.history")
_OLD_STEP_FIELDS: Final = frozenset({"model_output", "observations", "tool_calls"})
"""The fields of a step in older files, which have no ``timing``."""


def _smolagents_runs(document: object) -> Iterable[ExportedRun]:
    """Return the runs in lists of memory steps, saved memories and results of runs."""
    return (
        ExportedRun(
            run_steps.run,
            list(_smolagents_run(run_steps.run, run_steps.steps, run_steps.steps_pointer)),
            pointer=run_steps.run_pointer,
            meta=TraceMeta(system="smolagents"),
        )
        for run_steps in step_lists(document, _SMOLAGENTS_LISTS, _is_smolagents_step)
    )


def _is_smolagents_step(step: object) -> bool:
    fields = fields_of(step)
    return "step_number" in fields and ("timing" in fields or fields.keys() >= _OLD_STEP_FIELDS)


def _smolagents_run(value: object, steps: Sequence[object], pointer: str) -> Messages:
    """Yield the messages of a run; its output is the last, unless the message before has it."""
    run = fields_of(value)
    prompt = run.get("system_prompt")
    if text := as_text(prompt) or as_text(fields_of(prompt).get("system_prompt")):
        yield "/system_prompt", {"role": "system", "content": text}
    last_content = ""
    for step_index, step in enumerate(steps):
        for message_pointer, message in _smolagents_messages(step, f"{pointer}/{step_index}"):
            yield message_pointer, message
            last_content = dump_text(fields_of(message).get("content"))
    output = dump_text(run.get("output"))
    if output.strip() and output not in last_content:
        yield "/output", {"role": "assistant", "content": output}


def _smolagents_messages(step: object, pointer: str) -> Messages:
    """Yield the messages of a step: prompt and task, and a plan or an answer with its result."""
    if not isinstance(step, Mapping):
        yield pointer, step
        return
    if text := as_text(step.get("system_prompt")):
        yield f"{pointer}/system_prompt", {"role": "system", "content": text}
    if text := as_text(step.get("task")):
        content = "\n".join((text, *_image_notes(step.get("task_images"))))
        yield f"{pointer}/task", {"role": "user", "content": content}
    if "step_number" not in step:
        plan = texts_in(step, "facts", "plan")
        output = plan or first_in(step, "plan", "output", "final_answer")
        if output is not None:
            yield (
                pointer,
                _with_time_and_usage(step, {"role": "assistant", "content": dump_text(output)}),
            )
        return
    answer = fields_of(step.get("model_output_message"))
    calls = items_of(step.get("tool_calls"))
    if not calls and (code := as_text(step.get("code_action"))):
        calls = [{"name": _PYTHON_TOOL, "arguments": code}]
    yield (
        pointer,
        _with_time_and_usage(
            step,
            {
                "role": "assistant",
                "content": first_in(step, "model_output", "llm_output") or answer.get("content"),
                "tool_calls": calls or items_of(answer.get("tool_calls")),
            },
        ),
    )
    yield from _smolagents_result(step, calls, pointer)


def _smolagents_result(step: Fields, calls: Sequence[object], pointer: str) -> Messages:
    """Yield the observations, output and error of a step as the result of its last call."""
    error = fields_of(step.get("error"))
    error_text = text_in(error, "message") or as_text(step.get("error"))
    output = as_text(step.get("action_output"))
    observations = as_text(step.get("observations"))
    texts = (observations, output, error_text, *_image_notes(step.get("observations_images")))
    content = join_distinct_texts(texts) or dump_text(step.get("action_output"))
    if not content and not calls:
        return
    call_id = fields_of(calls[-1]).get("id") if calls else f"{pointer[1:]}/observations"
    result: dict[str, object] = {"role": "tool", "tool_call_id": call_id, "content": content}
    if error_text:
        result["is_error"] = True
    end = first_in(fields_of(step.get("timing")), "end_time")
    result["timestamp"] = step.get("end_time") if end is None else end
    yield f"{pointer}/observations", result


def _image_notes(images: object) -> list[str]:
    return ["[image]" for _image in items_of(images)]


def _with_time_and_usage(step: Fields, message: Fields) -> Fields:
    """Return a message with the start time and the token counts of its step."""
    timing = fields_of(step.get("timing"))
    start = first_in(timing, "start_time") or step.get("start_time")
    return {**message, "timestamp": start, "usage": step.get("token_usage")}


SMOLAGENTS: Final = ExportFormat(
    name="smolagents", marks=(b'"step_number"',), runs=_smolagents_runs
)


def _browser_use_runs(document: object) -> Iterable[ExportedRun]:
    """Return the runs in histories of browser-use.

    Their outcome stays unknown, because a history has only the agent's own verdict on its success.
    """
    return (
        ExportedRun(
            run_steps.run,
            [
                message
                for index, step in enumerate(run_steps.steps)
                for message in _browser_use_messages(step, f"{run_steps.steps_pointer}/{index}")
            ],
            pointer=run_steps.run_pointer,
            meta=TraceMeta(system="browser-use", answer_key=_judgement_key(run_steps.steps)),
        )
        for run_steps in step_lists(document, _BROWSER_USE_LISTS, _is_browser_use_step)
    )


def _is_browser_use_step(step: object) -> bool:
    fields = fields_of(step)
    return "model_output" in fields and ("result" in fields or "state" in fields)


def _judgement_key(steps: Sequence[object]) -> AnswerKey:
    """Return the answer key with a model's judgements of the run, hidden from the annotator."""
    draft = AnswerKeyDraft()
    for step in steps:
        for result in items_of(fields_of(step).get("result")):
            draft.add("scores", "judgement", fields_of(result).get("judgement"))
    return draft.key()


def _browser_use_messages(step: object, pointer: str) -> Messages:
    """Yield the messages of a step: its web page, the model's answer, and the actions' results.

    The model's answer has its thoughts and its actions. A step that is no object is one message.
    """
    if not isinstance(step, Mapping):
        yield pointer, step
        return
    metadata = fields_of(step.get("metadata"))
    state = fields_of(step.get("state"))
    has_picture = any(as_text(state.get(name)) for name in ("screenshot", "screenshot_path"))
    page = "\n".join((texts_in(state, "title", "url"), "[image]" if has_picture else "")).strip()
    if page:
        yield f"{pointer}/state", {"role": "system", "name": "browser", "content": page}
    output = step.get("model_output")
    actions = _as_list(fields_of(output).get("action"))
    if output:
        yield (
            f"{pointer}/model_output",
            {
                "role": "assistant",
                "content": None if isinstance(output, Mapping) else dump_text(output),
                "reasoning_content": _browser_use_thoughts(fields_of(output)),
                "tool_calls": [
                    {"id": f"{pointer[1:]}/action/{action_index}", **_browser_action(action)}
                    for action_index, action in enumerate(actions)
                ],
                "timestamp": metadata.get("step_start_time"),
                "usage": {"input_tokens": metadata.get("input_tokens")},
            },
        )
    for action_index, result in enumerate(_as_list(step.get("result"))):
        yield (
            f"{pointer}/result/{action_index}",
            {
                "role": "tool",
                "content": _browser_use_result(result),
                "tool_call_id": f"{pointer[1:]}/action/{action_index}",
                "is_error": as_text(fields_of(result).get("error")) is not None,
                "timestamp": metadata.get("step_end_time"),
            },
        )


def _browser_use_thoughts(output: Fields) -> str:
    """Return the texts of the model's thoughts, memories and plans, joined by newlines."""
    records = (output, fields_of(output.get("current_state")))
    texts = [texts_in(record, *record) for record in records]
    return "\n".join(text for text in texts if text)


def _browser_use_result(result: object) -> str:
    """Return the texts of an action's result and the names of its files."""
    if not isinstance(result, Mapping):
        return dump_text(result)
    fields = ("extracted_content", "long_term_memory", "error")
    files = [f"[file {name}]" for name in items_of(result.get("attachments")) if as_text(name)]
    return join_distinct_texts((*map(result.get, fields), *files))


def _browser_action(action: object) -> Fields:
    """Return the name and the arguments of an action such as ``{"click": {"index": 3}}``."""
    for name, arguments in fields_of(action).items():
        if arguments is not None and name != "interacted_element":
            return {"name": name, "arguments": arguments}
    return {"name": "action", "arguments": action}


def _as_list(value: object) -> Sequence[object]:
    """Return a list as it is, null as an empty list, and any other value as a list of one."""
    if isinstance(value, list):
        return value
    return () if value is None else (value,)


BROWSER_USE: Final = ExportFormat(
    name="browser-use", marks=(b'"model_output"', b'"result"'), runs=_browser_use_runs
)


def _crewai_runs(document: object) -> Iterable[ExportedRun]:
    """Return the run in the log of tasks that CrewAI writes to its ``output_log_file``."""
    entries = items_of(document)
    if not mostly(_is_crewai_entry, entries):
        return ()
    shown_tasks: set[str] = set()
    messages: list[tuple[str, object]] = []
    for entry_index, entry in enumerate(entries):
        messages.extend(_crewai_messages(entry, f"/{entry_index}", shown_tasks))
    return [ExportedRun(document, messages, meta=TraceMeta(system="CrewAI"))]


def _is_crewai_entry(entry: object) -> bool:
    fields = fields_of(entry)
    return {"task", "agent", "status"} <= fields.keys() and (
        "task_name" in fields or "output" in fields
    )


def _crewai_messages(entry: object, pointer: str, shown_tasks: set[str]) -> Messages:
    """Yield the task of an entry, its output and its error as messages.

    Args:
        entry: An entry of the log.
        pointer: The JSON pointer of the entry.
        shown_tasks: The tasks of the entries before, to which the entry's task is added. A task in
            it is yielded again only by an entry that starts the task.
    """
    if not isinstance(entry, Mapping):
        yield pointer, entry
        return
    time = entry.get("timestamp")
    agent = text_in(entry, "agent") or "agent"
    task = dump_text(entry.get("task"))
    if task.strip() and (entry.get("status") == "started" or task not in shown_tasks):
        shown_tasks.add(task)
        yield f"{pointer}/task", {"role": "user", "content": task, "timestamp": time}
    if (output := entry.get("output")) not in (None, ""):
        answer = {"role": "assistant", "name": agent, "content": dump_text(output)}
        yield f"{pointer}/output", {**answer, "timestamp": time}
    if error := dump_text(entry.get("error")):
        failure = {"role": "tool", "name": agent, "content": error, "is_error": True}
        yield f"{pointer}/error", {**failure, "timestamp": time}


CREWAI: Final = ExportFormat(name="crewai", marks=(b'"task_name"', b'"agent"'), runs=_crewai_runs)


def _crew_outputs(document: object) -> Iterable[ExportedRun]:
    """Return the runs in saved results of crews, which list the outputs of their tasks."""
    return (
        ExportedRun(
            output, list(_crew_messages(output)), pointer=pointer, meta=TraceMeta(system="CrewAI")
        )
        for pointer, output in objects_in(document)
        if mostly(_is_task_output, items_of(output.get("tasks_output")))
    )


def _is_task_output(task: object) -> bool:
    fields = fields_of(task)
    return {"description", "raw", "agent"} <= fields.keys()


def _crew_messages(output: Fields) -> Messages:
    """Yield each task and its output, and the output of the crew unless a task has the same."""
    task_outputs: list[str] = []
    for task_index, task in enumerate(items_of(output.get("tasks_output"))):
        pointer = f"/tasks_output/{task_index}"
        if not isinstance(task, Mapping):
            yield pointer, task
            continue
        description = texts_in(task, "description", "expected_output")
        yield f"{pointer}/description", {"role": "user", "content": description}
        agent = text_in(task, "agent") or "agent"
        task_output = dump_text(task.get("raw"))
        task_outputs.append(task_output)
        yield f"{pointer}/raw", {"role": "assistant", "name": agent, "content": task_output}
    crew_output = dump_text(output.get("raw"))
    if crew_output.strip() and crew_output not in task_outputs:
        yield "/raw", {"role": "assistant", "content": crew_output}


CREW_OUTPUT: Final = ExportFormat(
    name="crewai", marks=(b'"tasks_output"', b'"raw"'), runs=_crew_outputs
)

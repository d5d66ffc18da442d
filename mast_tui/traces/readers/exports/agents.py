"""Runs that frameworks and benchmarks save, such as smolagents, CrewAI and tau2-bench."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from mast_tui.traces.io.json_values import as_text, canonical_bytes, dump_text
from mast_tui.traces.model import AnswerKey, TraceMeta
from mast_tui.traces.readers.exports.engine import (
    ExportedRun,
    ExportFormat,
    Messages,
    join_distinct_texts,
    messages_of_each,
    objects_in,
    result_message,
    step_lists,
)
from mast_tui.traces.readers.exports.google import in_camel_case
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    first_in,
    items_of,
    json_in,
    kind_of,
    located_items,
    located_objects,
    mostly,
    names,
    snake_fields,
    text_in,
    texts_in,
    without,
)
from mast_tui.traces.readers.run_facts import (
    AnswerKeyDraft,
    clamp_score,
    outcome_of_reward,
    task_id_of,
    trial_of,
)

_PYTHON_TOOL: Final = "python_interpreter"
_OLD_STEP_FIELDS: Final = frozenset({"model_output", "observations", "tool_calls"})
"""The fields of a step in older files, which have no ``timing``."""


def _smolagents_runs(document: object) -> Iterable[ExportedRun]:
    """Return the runs in lists of memory steps, saved memories and results of runs."""
    return (
        ExportedRun(
            run_steps.run,
            list(_smolagents_run(run_steps.run, run_steps.steps, run_steps.steps_pointer)),
            pointer=run_steps.run_pointer,
        )
        for run_steps in step_lists(
            document, ("steps", "messages", "memory.steps"), _is_smolagents_step
        )
    )


def _is_smolagents_step(step: object) -> bool:
    fields = fields_of(step)
    return "step_number" in fields and ("timing" in fields or fields.keys() >= _OLD_STEP_FIELDS)


def _smolagents_run(run: object, steps: Sequence[object], steps_pointer: str) -> Messages:
    """Yield the messages of a run: its system prompt, its steps and its output."""
    run_fields = fields_of(run)
    prompt = run_fields.get("system_prompt")
    if text := as_text(prompt) or as_text(fields_of(prompt).get("system_prompt")):
        yield "/system_prompt", {"role": "system", "content": text}

    messages = messages_of_each(steps, steps_pointer, _smolagents_messages)
    if not text and all(fields_of(message).get("role") != "system" for _, message in messages):
        yield from _first_smolagents_prompt(steps, steps_pointer)
    yield from messages
    last_message = fields_of(messages[-1][1]) if messages else {}
    # The last message of the steps usually contains the output.
    output = dump_text(run_fields.get("output"))
    if output.strip() and output not in dump_text(last_message.get("content")):
        yield "/output", {"role": "assistant", "content": output}


def _first_smolagents_prompt(steps: Sequence[object], steps_pointer: str) -> Messages:
    """Yield the system prompt that the first step with a model call has in its input."""
    for pointer, step in located_objects(steps, steps_pointer):
        path = f"{pointer}/model_input_messages"
        for message_pointer, message in located_objects(step.get("model_input_messages"), path):
            if as_text(message.get("role")) == "system":
                yield message_pointer, {"role": "system", "content": message.get("content")}
                return


def _smolagents_messages(step: Fields, pointer: str) -> Messages:
    """Yield the messages of a step: a prompt and a task, a plan, or an answer with its result."""
    if text := as_text(step.get("system_prompt")):
        yield f"{pointer}/system_prompt", {"role": "system", "content": text}
    if text := as_text(step.get("task")):
        content = "\n".join((text, *_image_notes(step.get("task_images"))))
        yield f"{pointer}/task", {"role": "user", "content": content}

    # Only the steps in which the agent acts have a number.
    if "step_number" not in step:
        plan = texts_in(step, "facts", "plan")
        output = plan or first_in(step, "plan", "output", "final_answer")
        if output is not None:
            plan_or_answer = {"role": "assistant", "content": dump_text(output)}
            yield pointer, _with_time_and_usage(step, plan_or_answer)
        return

    answer = fields_of(step.get("model_output_message"))
    calls = items_of(step.get("tool_calls"))
    if not calls and (code := as_text(step.get("code_action"))):
        calls = [{"name": _PYTHON_TOOL, "arguments": code}]
    message = {
        "role": "assistant",
        "content": first_in(step, "model_output", "llm_output") or answer.get("content"),
        "tool_calls": calls or items_of(answer.get("tool_calls")),
    }
    yield pointer, _with_time_and_usage(step, message)
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

    # Without a call, the result has an id that no call has, so that it answers none.
    call_id = fields_of(calls[-1]).get("id") if calls else f"{pointer[1:]}/observations"
    result = result_message(content, call_id, None, is_error=True if error_text else None)
    end = fields_of(step.get("timing")).get("end_time") or step.get("end_time")
    yield f"{pointer}/observations", {**result, "timestamp": end}


def _image_notes(images: object) -> list[str]:
    return ["[image]" for _image in items_of(images)]


def _with_time_and_usage(step: Fields, message: Fields) -> Fields:
    """Return a message with the start time and the token counts of its step."""
    start = fields_of(step.get("timing")).get("start_time") or step.get("start_time")
    return {**message, "timestamp": start, "usage": step.get("token_usage")}


SMOLAGENTS: Final = ExportFormat(
    name="smolagents", system="smolagents", marks=(b'"step_number"',), runs=_smolagents_runs
)


def _browser_use_runs(document: object) -> Iterable[ExportedRun]:
    """Return the runs in histories of browser-use.

    Their outcome is unknown: a history has only the agent's own verdict.
    """
    return (
        ExportedRun(
            run_steps.run,
            messages_of_each(run_steps.steps, run_steps.steps_pointer, _browser_use_messages),
            pointer=run_steps.run_pointer,
            meta=TraceMeta(answer_key=_judgement_key(run_steps.steps)),
        )
        for run_steps in step_lists(document, ("history", "history.history"), _is_browser_use_step)
    )


def _is_browser_use_step(step: object) -> bool:
    fields = fields_of(step)
    return "model_output" in fields and ("result" in fields or "state" in fields)


def _judgement_key(steps: Sequence[object]) -> AnswerKey:
    """Return the answer key with a model's judgements of the run."""
    draft = AnswerKeyDraft()
    for step in steps:
        for result in items_of(fields_of(step).get("result")):
            draft.add("scores", "judgement", fields_of(result).get("judgement"))
    return draft.key()


def _browser_use_messages(step: Fields, pointer: str) -> Messages:
    """Yield the messages of a step: its web page, the model's answer, and the actions' results."""
    if page := _browser_use_page(fields_of(step.get("state"))):
        yield f"{pointer}/state", {"role": "system", "name": "browser", "content": page}

    metadata = fields_of(step.get("metadata"))
    # An action has no id, so its JSON pointer is the id of its call.
    action_pointer = f"{pointer[1:]}/action"
    if output := step.get("model_output"):
        answer = {
            **_browser_use_answer(output, action_pointer),
            "timestamp": metadata.get("step_start_time"),
            "usage": {"input_tokens": metadata.get("input_tokens")},
        }
        yield f"{pointer}/model_output", answer
    for action_index, result in enumerate(_as_list(step.get("result"))):
        message = {
            "role": "tool",
            "content": _browser_use_result(result),
            "tool_call_id": f"{action_pointer}/{action_index}",
            "is_error": as_text(fields_of(result).get("error")) is not None,
            "timestamp": metadata.get("step_end_time"),
        }
        yield f"{pointer}/result/{action_index}", message


def _browser_use_page(state: Fields) -> str:
    """Return the title and the address of a web page, and a mark for a screenshot."""
    has_picture = any(as_text(state.get(name)) for name in ("screenshot", "screenshot_path"))
    return "\n".join((texts_in(state, "title", "url"), "[image]" if has_picture else "")).strip()


def _browser_use_answer(output: object, action_pointer: str) -> Fields:
    """Return the model's output as an answer with its thoughts, and its actions as calls."""
    actions = _as_list(fields_of(output).get("action"))
    return {
        "role": "assistant",
        "content": None if isinstance(output, Mapping) else dump_text(output),
        "reasoning_content": _browser_use_thoughts(fields_of(output)),
        "tool_calls": [
            {"id": f"{action_pointer}/{action_index}", **_browser_action(action)}
            for action_index, action in enumerate(actions)
        ],
    }


def _browser_use_thoughts(output: Fields) -> str:
    """Return the texts in the model's output, such as its thoughts and its memory."""
    objects = (output, fields_of(output.get("current_state")))
    texts = [texts_in(fields, *fields) for fields in objects]
    return "\n".join(text for text in texts if text)


def _browser_use_result(result: object) -> str:
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
    """Return a list unchanged, null as an empty list, and any other value as a list of one."""
    if isinstance(value, list):
        return value
    return () if value is None else (value,)


BROWSER_USE: Final = ExportFormat(
    name="browser-use",
    system="browser-use",
    marks=(b'"model_output"', b'"result"'),
    runs=_browser_use_runs,
)


def _crewai_runs(document: object) -> Iterable[ExportedRun]:
    """Return the run in the log of tasks that CrewAI writes to its ``output_log_file``."""
    entries = items_of(document)
    if not mostly(_is_crewai_entry, entries):
        return ()
    messages_of = partial(_crewai_messages, set())
    return [ExportedRun(document, messages_of_each(entries, "", messages_of))]


def _is_crewai_entry(entry: object) -> bool:
    fields = fields_of(entry)
    return {"task", "agent", "status"} <= fields.keys() and (
        "task_name" in fields or "output" in fields
    )


def _crewai_messages(shown_tasks: set[str], entry: Fields, pointer: str) -> Messages:
    """Yield the task of an entry, its output and its error as messages.

    A task is yielded when an entry starts it, or when no earlier entry has it.

    Args:
        shown_tasks: The tasks of the earlier entries; the entry's task is added.
        entry: An entry of the log.
        pointer: The JSON pointer of the entry.
    """
    time = entry.get("timestamp")
    agent = text_in(entry, "agent") or "agent"
    task = dump_text(entry.get("task"))
    is_shown = entry.get("status") == "started" or task not in shown_tasks
    if task.strip() and is_shown:
        shown_tasks.add(task)
        yield f"{pointer}/task", {"role": "user", "content": task, "timestamp": time}
    if (output := entry.get("output")) not in (None, ""):
        answer = {"role": "assistant", "name": agent, "content": dump_text(output)}
        yield f"{pointer}/output", {**answer, "timestamp": time}
    if error := dump_text(entry.get("error")):
        failure = {"role": "tool", "name": agent, "content": error, "is_error": True}
        yield f"{pointer}/error", {**failure, "timestamp": time}


def _agentscope_runs(document: object) -> Iterable[ExportedRun]:
    """Yield a run for each agent in a saved session: the messages in the agent's memory."""
    for agent, state in fields_of(document).items():
        # Newer releases have a message as the first element of a list; its labels follow.
        values = [
            value[0] if isinstance(value, list) and value else value
            for value in items_of(fields_at(state, "memory").get("content"))
        ]
        if mostly(lambda value: {"role", "name", "content"} <= fields_of(value).keys(), values):
            messages: list[tuple[str, object]] = []
            if prompt := fields_of(state).get("_sys_prompt"):
                messages.append((f"/{agent}/_sys_prompt", {"role": "system", "content": prompt}))
            messages += messages_of_each(values, f"/{agent}/memory/content", _agentscope_messages)
            yield ExportedRun(state, messages)


def _agentscope_messages(message: Fields, pointer: str) -> Messages:
    """Yield a message with its tool results in Anthropic's form."""
    content = message.get("content")
    blocks = [
        {**block, "tool_use_id": block.get("id"), "content": block.get("output")}
        if kind_of(block) == "tool_result"
        else block
        for block in map(fields_of, items_of(content))
    ]
    yield pointer, {**message, "content": blocks} if isinstance(content, list) else message


AGENTSCOPE: Final = ExportFormat(
    name="agentscope", system="AgentScope", marks=(b'"memory"',), runs=_agentscope_runs
)


def _owl_runs(document: object) -> Iterable[ExportedRun]:
    """Return the run in a list of rounds, each with an instruction, calls and a solution."""
    if isinstance(document, list) and mostly(_is_owl_round, document):
        messages = messages_of_each(document, "", _owl_messages)
        yield ExportedRun(document, messages, meta=TraceMeta(system="OWL"))


def _is_owl_round(value: object) -> bool:
    fields = fields_of(value)
    texts = (fields.get("user"), fields.get("assistant"))
    return all(isinstance(text, str) for text in texts) and "tool_calls" in fields


def _owl_messages(value: object, pointer: str) -> Messages:
    """Yield the messages of a round; yield any other value unchanged."""
    if not _is_owl_round(value):
        yield pointer, value
        return
    fields = fields_of(value)
    yield f"{pointer}/user", {"role": "user", "content": fields["user"]}
    for call_pointer, call in located_objects(fields["tool_calls"], f"{pointer}/tool_calls"):
        call_id = call.get("tool_call_id") or call_pointer
        name = call.get("tool_name")
        tool_call = {"id": call_id, "name": name, "arguments": call.get("args")}
        yield call_pointer, {"role": "assistant", "content": "", "tool_calls": [tool_call]}
        yield f"{call_pointer}/result", result_message(call.get("result"), call_id, name)
    yield f"{pointer}/assistant", {"role": "assistant", "content": fields["assistant"]}


OWL: Final = ExportFormat(
    name="owl", marks=(b'"user"', b'"assistant"', b'"tool_calls"'), runs=_owl_runs
)
CREWAI: Final = ExportFormat(
    name="crewai", system="CrewAI", marks=(b'"task_name"', b'"agent"'), runs=_crewai_runs
)


def _is_task_output(task: object) -> bool:
    fields = fields_of(task)
    return {"description", "raw", "agent"} <= fields.keys()


def _crew_messages(output: Fields) -> Messages:
    """Yield each task and its output, then the crew's output unless a task has the same."""
    messages = messages_of_each(
        items_of(output.get("tasks_output")), "/tasks_output", _crew_task_messages
    )
    yield from messages
    crew_output = dump_text(output.get("raw"))
    contents = (fields_of(message).get("content") for _pointer, message in messages)
    if crew_output.strip() and crew_output not in contents:
        yield "/raw", {"role": "assistant", "content": crew_output}


def _crew_task_messages(task: Fields, pointer: str) -> Messages:
    description = texts_in(task, "description", "expected_output")
    yield f"{pointer}/description", {"role": "user", "content": description}
    answer = {"role": "assistant", "content": dump_text(task.get("raw"))}
    yield f"{pointer}/raw", {**answer, "name": text_in(task, "agent") or "agent"}


CREW_OUTPUT: Final = ExportFormat(
    name="crewai",
    system="CrewAI",
    marks=(b'"tasks_output"', b'"raw"'),
    runs=lambda document: (
        ExportedRun(output, list(_crew_messages(output)), pointer=pointer)
        for pointer, output in objects_in(document)
        if mostly(_is_task_output, items_of(output.get("tasks_output")))
    ),
)


# Results of benchmarks with simulated users: tau2-bench and BFCL.


_SIMULATION_FIELDS: Final = frozenset({"task_id", "messages", "termination_reason"})
_COUNT_FIELDS: Final = frozenset({"input_token_count", "output_token_count", "latency"})
"""The fields of a BFCL result without a log."""

_CHECK_NAMES: Final = names("""
    db_check env_assertions action_checks nl_assertions communicate_checks reward_breakdown
""")


def _tau2_runs(document: object) -> Iterable[ExportedRun]:
    """Return the simulations of tau2-bench.

    A document is a simulation, a list of them, or an object with a list under ``simulations``.
    """
    results = fields_of(document)
    tasks = map(fields_of, items_of(results.get("tasks")))
    task_by_id = {task_id_of(task.get("id")): task for task in tasks}
    simulations = results.get("simulations")
    entries = objects_in(document if simulations is None else simulations)
    prefix = "" if simulations is None else "/simulations"
    return (
        ExportedRun(
            value=simulation,
            messages=messages_of_each(
                items_of(simulation.get("messages")), "/messages", _tau2_messages
            ),
            pointer=prefix + pointer,
            native_id=as_text(simulation.get("id")),
            meta=_tau2_facts(
                fields_of(results.get("info")),
                task_by_id.get(task_id_of(simulation.get("task_id")), {}),
                simulation,
            ),
        )
        for pointer, simulation in entries
        if simulation.keys() >= _SIMULATION_FIELDS
    )


def _tau2_messages(message: Fields, pointer: str) -> Messages:
    """Yield a message, or the results in it; a result has the ``id`` of its call."""
    if results := items_of(message.get("tool_messages")):
        for result_index, result in enumerate(map(fields_of, results)):
            tool_message = {**result, "role": "tool", "tool_call_id": result.get("id")}
            yield f"{pointer}/tool_messages/{result_index}", tool_message
    elif message.get("role") == "tool":
        yield pointer, {**message, "tool_call_id": message.get("id")}
    elif message.get("role") == "user":  # The tokens of the simulated user are not the agent's.
        yield pointer, without(message, ("usage",))
    else:
        yield pointer, message


def _tau2_facts(info: Fields, task: Fields, simulation: Fields) -> TraceMeta:
    """Return the facts of a simulation, from the file's ``info``, the task and the simulation."""
    environment = fields_of(info.get("environment_info"))
    agent = fields_of(info.get("agent_info"))
    domain = text_in(environment, "domain_name")
    reward = fields_of(simulation.get("reward_info")).get("reward")
    return TraceMeta(
        system=text_in(agent, "implementation"),
        model=text_in(agent, "llm"),
        benchmark=f"tau2 {domain}" if domain else "tau2",
        outcome=outcome_of_reward(reward),
        score=clamp_score(reward),
        answer_key=_tau2_answer_key(environment, task, simulation),
        task_id=task_id_of(simulation.get("task_id")),
        trial=trial_of(simulation.get("trial")),
    )


def _tau2_answer_key(environment: Fields, task: Fields, simulation: Fields) -> AnswerKey:
    """Return the answer key: expectations of the task, and scores."""
    draft = AnswerKeyDraft()
    for name, value in fields_of(task.get("evaluation_criteria")).items():
        if name == "actions":
            draft.add_actions(value or [])
        else:
            draft.add("reference", name, value)
    reward_info = fields_of(simulation.get("reward_info"))
    draft.add_score("reward", reward_info.get("reward"))
    for name in _CHECK_NAMES:
        draft.add("scores", name, reward_info.get(name))
    draft.add("explanations", "termination_reason", simulation.get("termination_reason"))
    draft.add("other", "policy", environment.get("policy"))
    draft.add("other", "user scenario", task.get("user_scenario"))
    draft.add("other", "description", task.get("description"))
    return draft.key()


TAU2: Final = ExportFormat(
    name="tau2-bench", marks=(b'"termination_reason"', b'"task_id"'), runs=_tau2_runs
)


def _bfcl_runs(document: object) -> Iterable[ExportedRun]:
    """Return the runs in BFCL's results, which have an ``inference_log`` or token counts."""
    return (
        ExportedRun(
            value=entry,
            messages=list(_bfcl_messages(entry)),
            pointer=pointer,
            meta=TraceMeta(
                benchmark="BFCL",
                task_id=task_id_of(entry.get("id")),
                model=text_in(entry, "model_name", "model"),
            ),
        )
        for pointer, entry in objects_in(document)
        if "result" in entry
        and (isinstance(entry.get("inference_log"), list) or entry.keys() >= _COUNT_FIELDS)
    )


def _bfcl_messages(entry: Fields) -> Messages:
    """Yield the messages of an entry's log, and the entry's result if the log has no answer."""
    has_answer = False
    for pointer, message in _bfcl_log(items_of(entry.get("inference_log"))):
        has_answer = has_answer or fields_of(message).get("role") == "assistant"
        yield pointer, message
    if not has_answer:
        if text := text_in(entry, "reasoning_content"):
            reasoning = {"role": "assistant", "content": None, "reasoning_content": text}
            yield "/reasoning_content", reasoning
        yield from _bfcl_result(entry.get("result"), "/result")
    if text := text_in(entry, "traceback"):
        yield "/traceback", {"role": "system", "name": "traceback", "content": text}


def _bfcl_log(log: Sequence[object]) -> Messages:
    """Yield the messages of all turns in a log.

    A turn is one of these:

    - a list of entries
    - the input of the model
    - an object with a list of entries for each step
    - a single entry, such as the state between turns
    """
    for pointer, turn in located_items(log, "/inference_log"):
        if isinstance(turn, list):
            yield from _bfcl_step(turn, pointer)
        elif fields_of(turn).get("role") == "inference_input":
            messages = fields_at(turn, "content").get("message")
            yield from located_items(messages, f"{pointer}/content/message")
        elif isinstance(turn, Mapping) and "role" not in turn:
            for step_name, entries in turn.items():
                yield from _bfcl_step(items_of(entries), f"{pointer}/{step_name}")
        else:
            yield from _bfcl_step([turn], pointer)


def _bfcl_step(entries: Sequence[object], pointer: str) -> Messages:
    """Yield the messages of a step, with the decoded calls added to its first answer.

    The harness logs these calls in a separate entry.
    """
    decoded_calls: Sequence[object] = ()
    for entry in entries:
        decoded_calls = items_of(fields_of(entry).get("model_response_decoded")) or decoded_calls
    for entry_pointer, entry in located_items(entries, pointer):
        fields = fields_of(entry)
        role = fields.get("role")
        if role == "assistant":
            yield entry_pointer, _bfcl_answer(fields, decoded_calls)
            decoded_calls = ()
        elif role in ("user", "system", "tool") or not fields:
            yield entry_pointer, entry
        # An entry with decoded calls and no error repeats the answer.
        elif role != "inference_input" and not (
            items_of(fields.get("model_response_decoded")) and "error" not in fields
        ):
            yield entry_pointer, _harness_entry(fields)


def _bfcl_result(result: object, pointer: str) -> Messages:
    """Yield the answers in a result: a text, a call, a list of calls, or a list of results."""
    # A text has no items.
    items = [result] if isinstance(result, Mapping) else items_of(result)
    if not all(isinstance(item, Mapping) for item in items):
        for item_index, item in enumerate(items):
            yield from _bfcl_result(item, f"{pointer}/{item_index}")
    elif result not in (None, "", []):
        yield pointer, _bfcl_answer({"content": items or result}, decoded_calls=())


def _bfcl_answer(entry: Fields, decoded_calls: Sequence[object]) -> Fields:
    """Return an answer as a message with calls, without a text that repeats the calls.

    The default calls are the items of the entry's content.
    """
    content = entry.get("content")
    calls = [_bfcl_call(call) for call in decoded_calls or items_of(content)]
    text = content if isinstance(content, str) else None
    if text is not None and calls and _is_text_of_calls(text):
        text = None
    return {
        "role": "assistant",
        "content": text,
        "reasoning_content": entry.get("reasoning_content"),
        "tool_calls": calls,
    }


def _is_text_of_calls(text: str) -> bool:
    """Return whether a text is in brackets or in ``tool_call`` tags, like a text of calls."""
    stripped_text = text.strip()
    return any(
        stripped_text.startswith(opening) and stripped_text.endswith(closing)
        for opening, closing in (("[", "]"), ("<tool_call>", "</tool_call>"))
    )


def _bfcl_call(call: object) -> Fields:
    """Return a call from ``{name: arguments}`` or from a text such as ``cd(folder='a')``."""
    if isinstance(call, str):
        name, bracket, arguments = call.partition("(")
        return {"name": name, "arguments": arguments.removesuffix(")") if bracket else ""}
    for tool, value in fields_of(call).items():
        return {"name": tool, "arguments": value}
    return {"arguments": call}


def _harness_entry(entry: Fields) -> Fields:
    """Return an entry of the harness, such as the state of a file system, as a system message."""
    name = text_in(entry, "class_name", "role") or "harness"
    texts = (dump_text(entry.get("content")), dump_text(entry.get("error")))
    return {"role": "system", "name": name, "content": join_distinct_texts(texts)}


BFCL: Final = ExportFormat(name="bfcl", marks=(b'"result"', b'"id"'), runs=_bfcl_runs)


def _run_state_runs(document: object) -> Iterable[ExportedRun]:
    """Return the runs in saved run states of OpenAI's Agents SDK.

    The messages of nested agents, which the run uses as tools, follow those of the run.
    """
    for pointer, state in objects_in(document):
        states = [("", state)]
        messages: list[tuple[str, object]] = []
        for state_pointer, nested_state in states:  # The list grows in the loop.
            messages += _run_state_messages(nested_state, state_pointer)
            states += _nested_run_states(nested_state, state_pointer)
        if messages:
            yield ExportedRun(state, messages, pointer)


def _run_state_messages(state: Fields, pointer: str) -> Messages:
    """Yield the input and the items of a run, each once."""
    fields = snake_fields(state)
    if "original_input" not in fields or "generated_items" not in fields:
        return
    usage_by_last_item = _usage_by_last_item(items_of(fields.get("model_responses")))
    messages = [
        *_run_input(fields["original_input"], "/original_input"),
        *_run_items(fields, usage_by_last_item),
        *_run_input(fields.get("pending_input"), "/pending_input"),
    ]
    for location, message in messages:
        # The names in a pointer are those in the file, which are in camel case in JavaScript.
        is_python = "original_input" in state
        yield pointer + (location if is_python else in_camel_case(location)), message


def _run_items(state: Fields, usage_by_last_item: dict[bytes, object]) -> Messages:
    """Yield the session items that are not in the input, then the other generated items."""
    references = items_of(state.get("nested_history_owned_session_item_refs"))
    numbers_in_input = [fields_of(reference).get("index") for reference in references]
    session_items = items_of(state.get("session_items"))
    for number, item in enumerate(session_items):
        if number not in numbers_in_input:
            yield f"/session_items/{number}", _with_usage(item, usage_by_last_item)
    session_item_bytes = set(map(canonical_bytes, session_items))
    for number, item in enumerate(items_of(state["generated_items"])):
        if canonical_bytes(item) not in session_item_bytes:
            yield f"/generated_items/{number}", _with_usage(item, usage_by_last_item)


def _usage_by_last_item(responses: Sequence[object]) -> dict[bytes, object]:
    """Map the last item of each response, as bytes, to the tokens of the response."""
    usage_by_last_item: dict[bytes, object] = {}
    for response in map(fields_of, responses):
        for last_item in items_of(response.get("output"))[-1:]:
            usage_by_last_item[canonical_bytes(last_item)] = response.get("usage")
    return usage_by_last_item


def _nested_run_states(state: Fields, pointer: str) -> Iterable[tuple[str, Fields]]:
    """Yield the pointer and the state of each waiting agent that a run uses as a tool."""
    functions = fields_at(state, "last_processed_response").get("functions")
    list_pointer = f"{pointer}/last_processed_response/functions"
    for function_pointer, function in located_items(functions, list_pointer):
        yield f"{function_pointer}/agent_run_state", fields_at(function, "agent_run_state")
    for name, text in fields_of(state.get("pendingAgentToolRuns")).items():
        yield f"{pointer}/pendingAgentToolRuns/{name}", fields_of(json_in(text))


def _run_input(value: object, pointer: str) -> Messages:
    """Yield the messages of an input: a text or a list."""
    if text := as_text(value):
        yield pointer, {"role": "user", "content": text}
    yield from located_items(value, pointer)


def _with_usage(item: object, usage_by_last_item: dict[bytes, object]) -> object:
    """Add a response's tokens to an item if it is the last item of the response."""
    fields = fields_of(item)
    raw_item = fields_of(first_in(fields, "raw_item", "rawItem"))
    # The tokens are removed, so that an equal item does not get them too.
    usage = usage_by_last_item.pop(canonical_bytes(raw_item), None)
    return item if usage is None else {**fields, "raw_item": {**raw_item, "usage": usage}}


AGENTS_RUN_STATE: Final = ExportFormat(
    name="openai-agents-state",
    system="OpenAI Agents SDK",
    marks=(b"$schemaVersion",),
    runs=_run_state_runs,
)

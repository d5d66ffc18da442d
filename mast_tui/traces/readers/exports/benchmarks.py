"""Results of benchmarks with simulated users: tau2-bench and BFCL."""

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
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    items_of,
    names,
    text_in,
)
from mast_tui.traces.readers.run_facts import (
    clamp_score,
    outcome_of_reward,
    task_id_of,
    trial_of,
)

_SIMULATION_FIELDS: Final = frozenset({"task_id", "messages", "termination_reason"})
_COUNT_FIELDS: Final = frozenset({"input_token_count", "output_token_count", "latency"})
"""The fields of a result of BFCL that has no log."""

_CHECK_NAMES: Final = names("""
    db_check env_assertions action_checks nl_assertions communicate_checks reward_breakdown
""")


def _tau2_runs(document: object) -> Iterable[ExportedRun]:
    """Return the simulations of tau2-bench.

    The document has them under ``simulations``, is a list of simulations, or a single simulation.
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
            messages=list(_tau2_messages(simulation)),
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


def _tau2_messages(simulation: Fields) -> Iterator[tuple[str, object]]:
    """Yield the messages of a simulation; messages of the simulated user are without tokens."""
    for message_index, message in enumerate(items_of(simulation.get("messages"))):
        pointer = f"/messages/{message_index}"
        if not isinstance(message, Mapping):
            yield pointer, message
        elif results := items_of(message.get("tool_messages")):
            for result_index, result in enumerate(map(fields_of, results)):
                tool_message = {**result, "role": "tool", "tool_call_id": result.get("id")}
                yield f"{pointer}/tool_messages/{result_index}", tool_message
        elif message.get("role") == "tool":
            yield pointer, {**message, "tool_call_id": message.get("id")}
        elif message.get("role") == "user":
            yield pointer, {name: value for name, value in message.items() if name != "usage"}
        else:
            yield pointer, message


def _tau2_facts(info: Fields, task: Fields, simulation: Fields) -> TraceMeta:
    """Return the facts of a simulation, from the results' ``info``, its task and itself."""
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
    """Return the expected actions, the policy, the user's instructions and the reward's parts."""
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
    """Return the runs in BFCL's results, most of which have an ``inference_log``."""
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


def _bfcl_messages(entry: Fields) -> Iterator[tuple[str, object]]:
    """Yield the messages of an entry's log; if the log has no answer, also the entry's result."""
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


def _bfcl_log(log: Sequence[object]) -> Iterator[tuple[str, object]]:
    """Yield the messages of all turns in a log.

    A turn is one of these:

    - a list of entries
    - the input of the model
    - an object with a list of entries for each step
    - a single entry, such as the state between turns
    """
    for turn_index, turn in enumerate(log):
        pointer = f"/inference_log/{turn_index}"
        if isinstance(turn, list):
            yield from _bfcl_step(turn, pointer)
        elif fields_of(turn).get("role") == "inference_input":
            content = fields_of(turn).get("content")
            input_messages = items_of(fields_of(content).get("message"))
            for message_index, message in enumerate(input_messages):
                yield f"{pointer}/content/message/{message_index}", message
        elif isinstance(turn, Mapping) and "role" not in turn:
            for step_name, entries in turn.items():
                yield from _bfcl_step(items_of(entries), f"{pointer}/{step_name}")
        else:
            yield from _bfcl_step([turn], pointer)


def _bfcl_step(entries: Sequence[object], pointer: str) -> Iterator[tuple[str, object]]:
    """Yield the messages of a step; its first answer has the calls that the last entry decodes."""
    decoded_calls: Sequence[object] = ()
    for entry in entries:
        decoded_calls = items_of(fields_of(entry).get("model_response_decoded")) or decoded_calls
    for entry_index, entry in enumerate(entries):
        entry_pointer = f"{pointer}/{entry_index}"
        fields = fields_of(entry)
        role = fields.get("role")
        if role == "assistant":
            yield entry_pointer, _bfcl_answer(fields, decoded_calls)
            decoded_calls = ()
        elif role in ("user", "system", "tool") or not fields:
            yield entry_pointer, entry
        elif role != "inference_input" and not _only_repeats_calls(fields):
            yield entry_pointer, _harness_entry(fields)


def _bfcl_result(result: object, pointer: str) -> Iterator[tuple[str, object]]:
    """Yield the answers in a result, which is a text, a call, a list of calls or of results."""
    items = [result] if isinstance(result, Mapping) else items_of(result)
    if not all(isinstance(item, Mapping) for item in items):
        for item_index, item in enumerate(items):
            yield from _bfcl_result(item, f"{pointer}/{item_index}")
    elif result not in (None, "", []):
        yield pointer, _bfcl_answer({"content": items or result}, decoded_calls=())


def _only_repeats_calls(entry: Fields) -> bool:
    """Return whether an entry only repeats the calls of a model's answer and has no error."""
    return bool(items_of(entry.get("model_response_decoded"))) and "error" not in entry


def _bfcl_answer(entry: Fields, decoded_calls: Sequence[object]) -> Fields:
    """Return an answer as a message with calls; a text that only repeats the calls is left out.

    The calls are ``decoded_calls``; if there are none, the items of the entry's content.
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
    """Return whether a text is in brackets or in ``tool_call`` tags, as a text of calls is."""
    stripped = text.strip()
    return any(
        stripped.startswith(opening) and stripped.endswith(closing)
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

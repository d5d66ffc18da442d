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

_SIMULATION: Final = frozenset({"task_id", "messages", "termination_reason"})
_COUNTED: Final = frozenset({"input_token_count", "output_token_count", "latency"})
"""The fields of a result of BFCL that has no log."""

_CHECKS: Final = names("""
    db_check env_assertions action_checks nl_assertions communicate_checks reward_breakdown
""")


def _simulations(document: object) -> Iterable[ExportedRun]:
    """Return the simulations of tau2-bench: under ``simulations``, listed, or one by itself."""
    results = fields_of(document)
    tasks = {
        task_id_of(task.get("id")): task for task in map(fields_of, items_of(results.get("tasks")))
    }
    listed = results.get("simulations")
    entries = objects_in(document if listed is None else listed)
    prefix = "" if listed is None else "/simulations"
    return (
        ExportedRun(
            value=simulation,
            messages=list(_messages_of_simulation(simulation)),
            pointer=prefix + pointer,
            native_id=as_text(simulation.get("id")),
            meta=_facts_of_simulation(
                fields_of(results.get("info")),
                tasks.get(task_id_of(simulation.get("task_id")), {}),
                simulation,
            ),
        )
        for pointer, simulation in entries
        if simulation.keys() >= _SIMULATION
    )


def _messages_of_simulation(simulation: Fields) -> Iterator[tuple[str, object]]:
    """Yield the messages; tokens count for the agent's model only, not for the simulated user's."""
    for number, message in enumerate(items_of(simulation.get("messages"))):
        pointer = f"/messages/{number}"
        if not isinstance(message, Mapping):
            yield pointer, message
        elif results := items_of(message.get("tool_messages")):
            for index, result in enumerate(map(fields_of, results)):
                tied = {**result, "role": "tool", "tool_call_id": result.get("id")}
                yield f"{pointer}/tool_messages/{index}", tied
        elif message.get("role") == "tool":
            yield pointer, {**message, "tool_call_id": message.get("id")}
        elif message.get("role") == "user":
            yield pointer, {name: value for name, value in message.items() if name != "usage"}
        else:
            yield pointer, message


def _facts_of_simulation(info: Fields, task: Fields, simulation: Fields) -> TraceMeta:
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
        answer_key=_answer_key_of_simulation(environment, task, simulation),
        task_id=task_id_of(simulation.get("task_id")),
        trial=trial_of(simulation.get("trial")),
    )


def _answer_key_of_simulation(environment: Fields, task: Fields, simulation: Fields) -> AnswerKey:
    """Return expected actions, policy, the user's instructions and the parts of the reward."""
    draft = AnswerKeyDraft()
    for name, value in fields_of(task.get("evaluation_criteria")).items():
        if name == "actions":
            draft.add_actions(value or [])
        else:
            draft.add("reference", name, value)
    rewarded = fields_of(simulation.get("reward_info"))
    draft.add_score("reward", rewarded.get("reward"))
    for name in _CHECKS:
        draft.add("scores", name, rewarded.get(name))
    draft.add("explanations", "termination_reason", simulation.get("termination_reason"))
    draft.add("other", "policy", environment.get("policy"))
    draft.add("other", "user scenario", task.get("user_scenario"))
    draft.add("other", "description", task.get("description"))
    return draft.key()


TAU2: Final = ExportFormat(
    name="tau2-bench", marks=(b'"termination_reason"', b'"task_id"'), runs=_simulations
)


def _bfcl_runs(document: object) -> Iterable[ExportedRun]:
    """Return BFCL's results: most have an ``inference_log`` of turns with steps."""
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
        and (isinstance(entry.get("inference_log"), list) or entry.keys() >= _COUNTED)
    )


def _bfcl_messages(entry: Fields) -> Iterator[tuple[str, object]]:
    """Yield the messages of the log, and the bare result where the log has no answer."""
    answered = False
    for pointer, message in _bfcl_log(items_of(entry.get("inference_log"))):
        answered = answered or fields_of(message).get("role") == "assistant"
        yield pointer, message
    if not answered:
        if text := text_in(entry, "reasoning_content"):
            thought = {"role": "assistant", "content": None, "reasoning_content": text}
            yield "/reasoning_content", thought
        yield from _bfcl_result(entry.get("result"), "/result")
    if text := text_in(entry, "traceback"):
        yield "/traceback", {"role": "system", "name": "traceback", "content": text}


def _bfcl_log(log: Sequence[object]) -> Iterator[tuple[str, object]]:
    """Yield the messages of all turns and steps; the state between turns is a system message."""
    for number, turn in enumerate(log):
        pointer = f"/inference_log/{number}"
        if isinstance(turn, list):
            yield from _bfcl_step(turn, pointer)
        elif fields_of(turn).get("role") == "inference_input":
            content = fields_of(turn).get("content")
            asked = items_of(fields_of(content).get("message"))
            for position, message in enumerate(asked):
                yield f"{pointer}/content/message/{position}", message
        elif isinstance(turn, Mapping) and "role" not in turn:
            for name, entries in turn.items():
                yield from _bfcl_step(items_of(entries), f"{pointer}/{name}")
        else:
            yield from _bfcl_step([turn], pointer)


def _bfcl_step(entries: Sequence[object], pointer: str) -> Iterator[tuple[str, object]]:
    """Yield the messages of a step; the decoded calls belong to the model's answer before them."""
    decoded: Sequence[object] = ()
    for entry in entries:
        decoded = items_of(fields_of(entry).get("model_response_decoded")) or decoded
    for number, entry in enumerate(entries):
        entry_pointer = f"{pointer}/{number}"
        fields = fields_of(entry)
        role = fields.get("role")
        if role == "assistant":
            yield entry_pointer, _bfcl_answer(fields, decoded)
            decoded = ()
        elif role in ("user", "system", "tool") or not fields:
            yield entry_pointer, entry
        elif role != "inference_input" and not _is_success(fields):
            yield entry_pointer, _harness_entry(fields)


def _bfcl_result(result: object, pointer: str) -> Iterator[tuple[str, object]]:
    """Yield the answers in a result: a text, a list of calls, or a list of such answers."""
    listed = [result] if isinstance(result, Mapping) else items_of(result)
    if not all(isinstance(item, Mapping) for item in listed):
        for number, item in enumerate(listed):
            yield from _bfcl_result(item, f"{pointer}/{number}")
    elif result not in (None, "", []):
        yield pointer, _bfcl_answer({"content": listed or result}, ())


def _is_success(entry: Fields) -> bool:
    """Tell the entry that only repeats the calls of a model's answer."""
    return bool(items_of(entry.get("model_response_decoded"))) and "error" not in entry


def _bfcl_answer(entry: Fields, decoded: Sequence[object]) -> Fields:
    """Return an answer as a message with calls; a text that only spells the calls is left out."""
    content = entry.get("content")
    calls = [_bfcl_call(call) for call in decoded or items_of(content)]
    text = content if isinstance(content, str) and not (calls and _spells_calls(content)) else None
    return {
        "role": "assistant",
        "content": text,
        "reasoning_content": entry.get("reasoning_content"),
        "tool_calls": calls,
    }


def _spells_calls(text: str) -> bool:
    stripped = text.strip()
    return any(
        stripped.startswith(first) and stripped.endswith(last)
        for first, last in (("[", "]"), ("<tool_call>", "</tool_call>"))
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

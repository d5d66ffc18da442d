"""Results of benchmarks with simulated users: tau2-bench and BFCL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import AnswerKey, TraceMeta
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft
from mast_tui.traces.readers.exports.engine import ExportedRun, ExportFormat, objects_in
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
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
_DECODED: Final = frozenset({"model_response_decoded"})
_CHECKS: Final = names("""
    db_check env_assertions action_checks nl_assertions communicate_checks reward_breakdown
""")


def _simulations(document: object) -> Sequence[ExportedRun]:
    """Return the simulations of tau2-bench: under ``simulations``, listed, or one by itself."""
    results = fields_of(document)
    tasks = {
        task_id_of(task.get("id")): task for task in map(fields_of, items_of(results.get("tasks")))
    }
    listed = results.get("simulations")
    entries = objects_in(document if listed is None else listed)
    prefix = "" if listed is None else "/simulations"
    return [
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
    ]


def _messages_of_simulation(simulation: Fields) -> Iterator[tuple[str, Fields]]:
    """Yield the messages; tokens count for the agent's model only, not for the simulated user's."""
    for number, message in enumerate(map(fields_of, items_of(simulation.get("messages")))):
        pointer = f"/messages/{number}"
        if message.get("role") == "tool":
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
            draft.actions(value or [])
        else:
            draft.add("reference", name, value)
    rewarded = fields_of(simulation.get("reward_info"))
    draft.scored("reward", rewarded.get("reward"))
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


def _bfcl_runs(document: object) -> Sequence[ExportedRun]:
    """Return BFCL's conversations: each has an ``inference_log`` of turns with steps."""
    return [
        ExportedRun(
            value=entry,
            messages=list(_bfcl_messages(items_of(entry.get("inference_log")))),
            pointer=pointer,
            native_id=None,
            meta=TraceMeta(
                benchmark="BFCL",
                task_id=task_id_of(entry.get("id")),
                model=text_in(entry, "model_name", "model"),
            ),
        )
        for pointer, entry in objects_in(document)
        if "result" in entry and isinstance(entry.get("inference_log"), list)
    ]


def _bfcl_messages(log: Sequence[object]) -> Iterator[tuple[str, Fields]]:
    """Yield the messages of all turns and steps; the state between turns is a system message."""
    for number, turn in enumerate(log):
        pointer = f"/inference_log/{number}"
        for entry_pointer, entry in enumerate(map(fields_of, items_of(turn))):
            yield f"{pointer}/{entry_pointer}", _harness_entry(entry)
        for name, entries in fields_of(turn).items():
            if isinstance(entries, list):
                yield from _bfcl_step([fields_of(entry) for entry in entries], f"{pointer}/{name}")


def _bfcl_step(entries: Sequence[Fields], pointer: str) -> Iterator[tuple[str, Fields]]:
    """Yield the messages of a step; the decoded calls belong to the model's answer before them."""
    decoded: Sequence[object] = ()
    for entry in entries:
        decoded = items_of(entry.get("model_response_decoded")) or decoded
    for number, entry in enumerate(entries):
        entry_pointer = f"{pointer}/{number}"
        role = entry.get("role")
        if role == "assistant":
            yield entry_pointer, _bfcl_answer(entry, decoded)
            decoded = ()
        elif role in ("user", "system", "tool"):
            yield entry_pointer, entry
        elif role == "handler_log" and ("error" in entry or not entry.keys() & _DECODED):
            yield entry_pointer, _harness_entry(entry)


def _bfcl_answer(entry: Fields, decoded: Sequence[object]) -> Fields:
    """Return an answer as a message with calls; a text that only spells the calls is left out."""
    content = entry.get("content")
    calls = [_bfcl_call(call) for call in decoded or items_of(content)]
    spells_calls = isinstance(content, str) and content.lstrip().startswith(("[", "<tool_call>"))
    text = content if isinstance(content, str) and not (calls and spells_calls) else None
    return {
        "role": "assistant",
        "content": text,
        "reasoning_content": entry.get("reasoning_content"),
        "tool_calls": calls,
    }


def _bfcl_call(call: object) -> Fields:
    """Return a call from ``{name: arguments}`` or from a text such as ``cd(folder='a')``."""
    if isinstance(call, str):
        name, bracket, arguments = call.partition("(")
        return {"name": name, "arguments": arguments.rstrip(")") if bracket else ""}
    for tool, value in fields_of(call).items():
        return {"name": tool, "arguments": value}
    return {}


def _harness_entry(entry: Fields) -> Fields:
    """Return an entry of the harness, such as the state of a file system, as a system message."""
    name = text_in(entry, "class_name", "role") or "harness"
    content = first_in(entry, "error", "content")
    return {"role": "system", "name": name, "content": dump_text(content)}


BFCL: Final = ExportFormat(name="bfcl", marks=(b'"inference_log"', b'"result"'), runs=_bfcl_runs)

"""The fields of ATIF records, in the standard's spelling and in those that are met beside it.

Beside ``tool_call_id`` stand ``toolCallId`` and, off the standard, plain ``id``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.io.json_values import as_text, identifier
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.preview import preview
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, mostly, names, one_line
from mast_tui.traces.result_status import status_of_code

AGENT_SOURCES: Final = frozenset({"agent", "assistant", "model"})
TOOL_SOURCES: Final = frozenset({"tool", "environment", "observation"})
SOURCES: Final = AGENT_SOURCES | TOOL_SOURCES | {"system", "user"}
"""Who a step may come from."""

_CALL_IDS: Final = ("tool_call_id", "source_call_id", "call_id")
_ANY_IDS: Final = (*_CALL_IDS, "id")

_CAMEL_CASE: Final[Mapping[str, str]] = {
    "".join(("_" + char.lower()) if char.isupper() else char for char in name): name
    for name in names("""
        callId completionTokens continuedTrajectoryRef exitCode functionName inputTokens
        isCopiedContext isError llmCallCount modelName outputTokens promptTokens
        reasoningContent schemaVersion sessionId sourceCallId stepId subagentTrajectories
        subagentTrajectoryRef toolCallId toolCalls trajectoryId trajectoryPath
    """)
}

# Most records have none of these fields: that is seen at once, not name by name.
_HAVE_ID: Final = frozenset({*_ANY_IDS, *(_CAMEL_CASE[name] for name in _CALL_IDS)})
_HAVE_STATUS: Final = frozenset({"is_error", "isError", "exit_code", "exitCode"})


def field(record: Fields, name: str) -> object:
    """The field under its name or its name in camel case; None where there is neither."""
    value = record.get(name)
    if value is None and (other := _CAMEL_CASE.get(name)) is not None:
        return record.get(other)
    return value


def is_trajectory(value: object) -> bool:
    """Whether a JSON value is an ATIF trajectory, by its version or by its steps."""
    if not isinstance(value, dict) or not isinstance(steps := value.get("steps"), list):
        return False
    return follows_the_standard(value) or (
        isinstance(value.get("agent"), dict | str) and mostly(_is_step, steps)
    )


def _is_step(step: object) -> bool:
    return (
        isinstance(step, dict) and field(step, "step_id") is not None and source_of(step) in SOURCES
    )


def follows_the_standard(record: Fields) -> bool:
    """Whether a trajectory says that it is ATIF, of whatever version."""
    return "ATIF" in (as_text(field(record, "schema_version")) or "").upper()


def steps_of(record: Fields) -> Sequence[object]:
    """The steps of a trajectory."""
    return items_of(record.get("steps"))


def source_of(step: Fields) -> str:
    """Who a step comes from; empty where that is not told."""
    told = step.get("source")
    if type(told) is str and told in SOURCES:
        return told
    source = as_text(told) or as_text(step.get("role")) or ""
    return preview(source)[0].lower()


def calls_of(step: Fields) -> Sequence[object]:
    """The tool calls of a step."""
    calls = field(step, "tool_calls")
    return (calls,) if isinstance(calls, dict) else items_of(calls)


def results_of(step: Fields) -> list[tuple[str, object]]:
    """The results of a step, each under its JSON pointer within the step."""
    observation = step.get("observation")
    if isinstance(observation, dict):
        results = observation.get("results")
        if isinstance(results, list):
            return [(f"/observation/results/{n}", one) for n, one in enumerate(results)]
        return [("/observation", observation)] if observation else []
    if isinstance(observation, list):
        return [(f"/observation/{number}", one) for number, one in enumerate(observation)]
    return [("/observation", observation)] if observation not in (None, "") else []


def call_id_of(value: object) -> str | None:
    """The id of a tool call, or that of the call which a result names."""
    if not isinstance(value, dict) or _HAVE_ID.isdisjoint(value):
        return None
    for name in _CALL_IDS if "content" in value or "source" in value else _ANY_IDS:
        told = field(value, name)
        if told is not None and (found := identifier(told)):
            return found
    return None


def ids_of(record: Fields) -> list[str]:
    """The ids that a trajectory goes by: its own before that of its session."""
    found = (identifier(field(record, name)) for name in ("trajectory_id", "session_id"))
    return [one for one in found if one]


@dataclass(frozen=True, slots=True)
class Reference:
    """The ids by which a result refers to a sub-agent's trajectory, and the path of its file."""

    ids: list[str]
    path: str | None = None


def refers_to(result: Fields) -> list[Reference]:
    """The sub-agents that a result refers to."""
    refs = field(result, "subagent_trajectory_ref")
    if refs is None:
        return []
    found = []
    for ref in refs if isinstance(refs, list) else [refs]:
        if isinstance(ref, dict):
            found.append(Reference(ids_of(ref), as_text(field(ref, "trajectory_path"))))
        elif ref is not None:
            found.append(Reference([one] if (one := identifier(ref)) else []))
    return found


def agent_name(record: Fields) -> str | None:
    """The name of the agent whose trajectory this is."""
    agent = record.get("agent")
    return one_line(agent.get("name") if isinstance(agent, dict) else agent)


def extra_of(record: Fields) -> Fields:
    """What a record holds beside the fields of the standard."""
    return fields_of(record.get("extra"))


def is_log(step: Fields) -> bool:
    """Whether a step is a line of a log, which ``mast-tui convert`` writes as of the system."""
    return source_of(step) == "system" and extra_of(step).get("kind") == "log"


def status_of(result: Fields) -> SpanStatus:
    """Whether a result went well: only what its record says outright."""
    for holder in (result, extra_of(result)):
        if _HAVE_STATUS.isdisjoint(holder):
            continue
        flag = field(holder, "is_error")
        if isinstance(flag, bool):
            return SpanStatus.ERROR if flag else SpanStatus.OK
        if (told := status_of_code(field(holder, "exit_code"))) is not SpanStatus.UNKNOWN:
            return told
    return SpanStatus.UNKNOWN

"""What an OpenHands event is, in both of its generations, and what both share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Unpack

from mast_tui.traces.index.document import More, Step, StepList
from mast_tui.traces.io.json_values import dump_text, identifier
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.json_fields import Fields, fields_of, name_set
from mast_tui.traces.result_status import status_of_code
from mast_tui.traces.times import unix_seconds

DEFAULT_AGENT: Final = "agent"

_SOURCES: Final = frozenset({"agent", "user", "environment"})
_SDK_KINDS: Final = name_set("""
    ACPToolCallEvent ActionEvent AgentErrorEvent Condensation CondensationRequest
    CondensationSummaryEvent ConversationErrorEvent ConversationStateUpdateEvent InterruptEvent
    LLMCompletionLogEvent MessageEvent ObservationEvent PauseEvent StreamingDeltaEvent
    SystemPromptEvent TokenEvent UserRejectObservation
""")


@dataclass(frozen=True, slots=True)
class Event:
    """A JSON value where an event should be; ``key`` names its spans where it has no id."""

    key: str
    place: str
    value: object

    @property
    def fields(self) -> Fields:
        """The event; without fields where the value is none."""
        return fields_of(self.value)

    @property
    def own_key(self) -> str:
        """The event's own id, or its place in the file."""
        return identifier(self.fields.get("id")) or self.key

    @property
    def time(self) -> float | None:
        """When the event was recorded."""
        return unix_seconds(self.fields.get("timestamp"))


def is_old_event(value: object) -> bool:
    """Whether a JSON value is an event of generation 0: an action, or what was observed."""
    if not isinstance(value, Mapping):
        return False
    action, observation = value.get("action"), value.get("observation")
    if isinstance(action, str) == isinstance(observation, str):
        return False
    source = value.get("source")
    if source is not None and (not isinstance(source, str) or source not in _SOURCES):
        return False
    if isinstance(action, str):
        return isinstance(value.get("args"), Mapping) or source is not None
    return "content" in value or isinstance(value.get("extras"), Mapping)


def is_identified_old_event(value: object) -> bool:
    """Whether a value is such an event with its id and source, as the event stream writes it."""
    return is_old_event(value) and {"id", "source"} <= fields_of(value).keys()


def is_sdk_event(value: object) -> bool:
    """Whether a JSON value is an event of generation 1, which the agent SDK writes.

    Of kinds that are not known yet, those count that are named and come as the others do.
    """
    if not isinstance(value, Mapping) or not isinstance(kind := value.get("kind"), str):
        return False
    source = value.get("source")
    like_them = kind.endswith("Event") and "id" in value and isinstance(source, str)
    return kind in _SDK_KINDS or (like_them and source in _SOURCES)


class EventSpans:
    """The spans of one run, which both generations add to, each at the event's time and place."""

    def __init__(self, agent: str | None = None) -> None:
        self.steps = StepList()
        self.problems: list[Problem] = []
        self.agent = agent or DEFAULT_AGENT
        self.model: str | None = None
        self._calls: dict[str, Step] = {}

    def say(
        self,
        event: Event,
        role: Role,
        agent: str,
        text: str,
        kind: SpanKind = SpanKind.MESSAGE,
        part: str = "",
    ) -> None:
        """Append what was said or thought; ``part`` tells it from the rest of the event."""
        self._add(event, event.own_key + part, kind, role, agent, text)

    def log(
        self,
        event: Event,
        text: str,
        name: str | None = None,
        status: SpanStatus = SpanStatus.UNKNOWN,
    ) -> None:
        """Append a log span for an event."""
        more = More(name=name, status=status)
        self._add(event, event.own_key, SpanKind.LOG, Role.LOG, "log", text, **more)

    def call(
        self,
        event: Event,
        call_id: str | None,
        agent: str,
        text: str,
        name: str | None,
        role: Role = Role.AGENT,
    ) -> Step:
        """Append a tool call, which ``call_of`` then knows by its id and by its event's."""
        kind, key = SpanKind.TOOL_CALL, f"{call_id or event.own_key}:call"
        call = self._add(event, key, kind, role, agent, text, name=name)
        self._calls[f"event {event.own_key}"] = call
        if call_id:
            self._calls[f"tool {call_id}"] = call
        return call

    def call_of(self, call_id: str | None, cause: str | None = None) -> Step | None:
        """The call with this id, else the one that this event made."""
        return self._calls.get(f"tool {call_id}") or self._calls.get(f"event {cause}")

    def result(
        self,
        event: Event,
        call: Step | None,
        text: str,
        status: SpanStatus,
        call_id: str | None,
        name: str | None = None,
    ) -> None:
        """Append what came of a call, which was over then; ``name`` where the call has none."""
        key, kind, agent = f"{call_id or event.own_key}:result", SpanKind.TOOL_RESULT, "environment"
        more = More(name=name, status=status)
        if call is not None:
            agent, more["name"], more["parent"] = call.agent, call.name or name, call.key
            call.end = call.end if event.time is None else event.time
        self._add(event, key, kind, Role.TOOL, agent, text, **more)

    def add_problem(self, event: Event, message: str) -> None:
        """Note a problem with an event."""
        self.problems.append(Problem(event.place, message))

    def spent(self, tokens: Tokens | None) -> None:
        """Give the last span the tokens of its model call."""
        if tokens is not None and len(self.steps):
            self.steps.steps[-1].tokens = tokens

    def _add(
        self,
        event: Event,
        key: str,
        kind: SpanKind,
        role: Role,
        agent: str,
        text: str,
        **more: Unpack[More],
    ) -> Step:
        more["place"], more["start"] = event.place, event.time
        self.steps.add(key, kind, role, agent, text, **more)
        return self.steps.steps[-1]


def arguments_text(values: Fields) -> str:
    """The arguments of a call as text; empty where there are none."""
    return dump_text(dict(values)) if values else ""


def status_of_codes(*codes: object) -> SpanStatus:
    """What the first exit code tells; a negative one stands for a command that still runs."""
    told = (one for one in codes if isinstance(one, int) and not isinstance(one, bool))
    code = next(told, -1)
    return SpanStatus.UNKNOWN if code < 0 else status_of_code(code)

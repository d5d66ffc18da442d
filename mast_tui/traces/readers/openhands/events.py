"""What an OpenHands event is, in both of its generations, and what both share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.index.document import StepList
from mast_tui.traces.io.json_values import as_text, dump_text, identifier
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.preview import preview
from mast_tui.traces.readers.json_fields import Fields, fields_of, name_set
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


@dataclass(frozen=True, slots=True)
class Call:
    """What is kept of a tool call until its result comes."""

    key: str
    agent: str
    name: str | None


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
    return is_old_event(value) and isinstance(value, Mapping) and {"id", "source"} <= value.keys()


def is_sdk_event(value: object) -> bool:
    """Whether a JSON value is an event of generation 1, which the agent SDK writes.

    Of kinds that are not known yet, those count that are named and come as the others do.
    """
    if not isinstance(value, Mapping):
        return False
    kind, source = value.get("kind"), value.get("source")
    if not isinstance(kind, str):
        return False
    like_them = kind.endswith("Event") and "id" in value and isinstance(source, str)
    return kind in _SDK_KINDS or (like_them and source in _SOURCES)


class EventSpans:
    """The spans of one run, which both generations add to."""

    def __init__(self, agent: str | None = None) -> None:
        self.steps = StepList()
        self.problems: list[Problem] = []
        self.agent = agent or DEFAULT_AGENT
        self.model: str | None = None

    def add(
        self,
        event: Event,
        key: str,
        kind: SpanKind,
        role: Role,
        agent: str,
        text: str,
        *,
        name: str | None = None,
        parent: str | None = None,
        status: SpanStatus = SpanStatus.UNKNOWN,
    ) -> str:
        """Append a span of an event at the event's time and place; return its key."""
        return self.steps.add(
            key,
            kind,
            role,
            agent,
            text,
            place=event.place,
            name=name,
            parent=parent,
            start=time_of(event),
            status=status,
        )

    def log(
        self,
        event: Event,
        text: str,
        name: str | None = None,
        status: SpanStatus = SpanStatus.UNKNOWN,
    ) -> None:
        """Append a log span for an event."""
        self.add(
            event, base_key(event), SpanKind.LOG, Role.LOG, "log", text, name=name, status=status
        )

    def complain(self, event: Event, message: str) -> None:
        """Note a problem with an event."""
        self.problems.append(Problem(event.place, message))

    def end(self, call: Call | None, event: Event) -> None:
        """Tell that a call was over at the time of this event."""
        if call is not None:
            self.steps.amend(call.key, end=time_of(event))

    def spent(self, tokens: Tokens | None) -> None:
        """Give the last span the tokens of its model call."""
        if tokens is not None and len(self.steps):
            self.steps.amend(self.steps.steps[-1].key, tokens=tokens)


def base_key(event: Event) -> str:
    """The event's own id, or its place in the file."""
    return identifier(mapping(event.value).get("id")) or event.key


def time_of(event: Event) -> float | None:
    """When the event was recorded."""
    return unix_seconds(mapping(event.value).get("timestamp"))


def name_of(value: object) -> str | None:
    """A name on one line; None for anything that is no text."""
    text = as_text(value)
    return preview(text)[0] if text else None


def mapping(value: object) -> Fields:
    """``value`` where it is an object, else an empty one."""
    return fields_of(value)


def arguments_text(values: Fields) -> str:
    """The arguments of a call as text; empty where there are none."""
    return dump_text(dict(values)) if values else ""


def status_of_code(*codes: object) -> SpanStatus:
    """What the first exit code tells; a negative one stands for a command that still runs."""
    for code in codes:
        if isinstance(code, int) and not isinstance(code, bool):
            if code < 0:
                return SpanStatus.UNKNOWN
            return SpanStatus.ERROR if code else SpanStatus.OK
    return SpanStatus.UNKNOWN

"""Events of OpenHands' generation 1, which its agent SDK writes: each says its ``kind``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.traces.index.document import More
from mast_tui.traces.io.json_values import as_text, content_text, dump_text, identifier
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.json_fields import Fields, fields_at, fields_of, one_line
from mast_tui.traces.readers.openhands.events import (
    Event,
    EventSpans,
    arguments_text,
    status_of_codes,
)

_NOISE: Final = frozenset({"TokenEvent", "StreamingDeltaEvent", "LLMCompletionLogEvent"})
_OUTPUTS: Final = ("content", "output", "text", "message", "error")


class SdkEvents:
    """Adds the spans of the events of one run, in order."""

    def __init__(self, spans: EventSpans) -> None:
        self._spans = spans
        self._thoughts: set[str] = set()
        self._reports: dict[str, tuple[int, Fields]] = {}

    def run(self, events: Sequence[Event]) -> None:
        """Add every event; what is of no known kind becomes a log."""
        for number, event in enumerate(events):
            value = event.fields
            if value.get("kind") == "ACPToolCallEvent":
                call_id = identifier(value.get("tool_call_id"))
                self._reports[call_id or event.key] = number, value
        for number, event in enumerate(events):
            self._add(event, event.fields, number)

    def _add(self, event: Event, value: Fields, number: int) -> None:
        kind = as_text(value.get("kind")) or ""
        if kind == "ActionEvent":
            self._action(event, value)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            self._answer(event, value, kind)
        elif kind == "MessageEvent":
            self._message(event, value)
        elif kind == "SystemPromptEvent":
            parts = (content_text(value.get(one)) for one in ("system_prompt", "dynamic_context"))
            text = "\n\n".join(filter(None, parts))
            self._spans.say(event, Role.SYSTEM, "system", text)
        elif kind == "ACPToolCallEvent":
            self._report(event, value, number)
        elif kind == "ConversationStateUpdateEvent":
            llm = fields_at(value.get("value"), "agent", "llm")
            self._spans.model = self._spans.model or as_text(llm.get("model"))
        elif kind == "ConversationErrorEvent":
            parts = (content_text(value.get(one)) for one in ("code", "detail"))
            text = ": ".join(filter(None, parts))
            self._spans.log(event, text, "error", SpanStatus.ERROR)
        elif kind in ("PauseEvent", "InterruptEvent"):
            self._spans.log(event, as_text(value.get("reason")) or kind, one_line(kind))
        elif kind in ("Condensation", "CondensationSummaryEvent", "CondensationRequest"):
            text = content_text(value.get("summary")) or dump_text(event.value)
            self._spans.log(event, text, one_line(kind))
        elif kind not in _NOISE:
            self._spans.log(event, dump_text(event.value), one_line(kind))
            if not value:
                self._spans.add_problem(event, "not an event but a bare value")

    def _message(self, event: Event, value: Fields) -> None:
        said = fields_of(value.get("llm_message"))
        by_agent = value.get("source") == "agent"
        sender = one_line(value.get("sender"))
        agent = (sender or self._spans.agent) if by_agent else "user"
        role = Role.AGENT if by_agent else Role.USER
        if value.get("source") == "environment" or said.get("role") == "system":
            role, agent = Role.SYSTEM, "system"
        if thought := _reasoning(said):
            self._spans.say(event, role, agent, thought, SpanKind.REASONING, "/reasoning")
        self._spans.say(event, role, agent, content_text(said.get("content")))
        if added := content_text(value.get("extended_content")):
            key = f"{event.own_key}/extended_content"
            more = More(place=event.place, start=event.time, name="extended_content")
            self._spans.steps.add(key, SpanKind.LOG, Role.SYSTEM, "system", added, **more)

    def _action(self, event: Event, value: Fields) -> None:
        agent = self._spans.agent
        if thought := _reasoning(value):
            self._spans.say(event, Role.AGENT, agent, thought, SpanKind.REASONING, "/reasoning")
        if (said := content_text(value.get("thought"))).strip():
            self._spans.say(event, Role.AGENT, agent, said, part="/thought")
        call, action = fields_of(value.get("tool_call")), fields_of(value.get("action"))
        asked = fields_of(call.get("function")) or call
        name = one_line(value.get("tool_name")) or one_line(asked.get("name"))
        call_id = identifier(value.get("tool_call_id")) or identifier(call.get("id"))
        if name == "think" and (thought := content_text(action.get("thought"))):
            self._spans.say(event, Role.AGENT, agent, thought, SpanKind.REASONING)
            self._thoughts.update(one for one in (call_id, event.own_key) if one)
            return
        arguments = asked.get("arguments")
        text = dump_text(arguments)
        if arguments is None:
            text = arguments_text({key: one for key, one in action.items() if key != "kind"})
        self._spans.call(event, call_id, agent, text, name)

    def _answer(self, event: Event, value: Fields, kind: str) -> None:
        call_id, cause = identifier(value.get("tool_call_id")), identifier(value.get("action_id"))
        if self._thoughts.intersection(one for one in (call_id, cause) if one):
            return  # the tool for thinking says no more than that it was called
        call = self._spans.call_of(call_id, cause)
        observation = fields_of(value.get("observation"))
        if kind == "ObservationEvent":
            text, status = _output(value.get("observation")), _status(observation)
        else:
            text = content_text(value.get("error")) or content_text(value.get("rejection_reason"))
            status = SpanStatus.ERROR
        self._spans.result(event, call, text, status, call_id, one_line(value.get("tool_name")))

    def _report(self, event: Event, value: Fields, number: int) -> None:
        """A tool of another agent, which is reported several times while it is at work.

        Its call stands where it was reported first, with what the last report tells of it, and its
        result where it was reported last.
        """
        call_id = identifier(value.get("tool_call_id"))
        base = call_id or event.own_key
        last, told = self._reports[call_id or event.key]
        call = self._spans.call_of(base)
        title = one_line(told.get("title"))
        if call is None:
            text = dump_text(told.get("raw_input")) or (title or "")
            name = title or one_line(told.get("tool_kind"))
            call = self._spans.call(event, base, self._spans.agent, text, name)
        output = told.get("raw_output") or told.get("content")
        ended = told.get("status") in ("completed", "failed")
        if number != last or not (ended or output):
            return
        failed = told.get("is_error") is True or told.get("status") == "failed"
        status = SpanStatus.ERROR if failed else SpanStatus.OK
        self._spans.result(event, call, content_text(output), status, base)
        self._spans.steps.steps[-1].name = title


def _reasoning(value: Fields) -> str:
    """What the model thought before it acted, as far as it can be read."""
    if text := as_text(value.get("reasoning_content")):
        return text
    item = fields_of(value.get("responses_reasoning_item"))
    for found in (value.get("thinking_blocks"), item.get("summary"), item.get("content")):
        if isinstance(found, list) and (text := content_text(found)):
            return text
    return ""


def _output(observation: object) -> str:
    """The text of what a tool gave back."""
    if not isinstance(observation, Mapping):
        return content_text(observation)
    for field in _OUTPUTS:
        found = observation.get(field)
        if isinstance(found, str | list) and (text := content_text(found)).strip():
            return text
    if any(field in observation for field in _OUTPUTS[:2]):
        return ""
    return arguments_text({key: one for key, one in observation.items() if key != "kind"})


def _status(observation: Fields) -> SpanStatus:
    flag = observation.get("is_error")
    if flag is True or as_text(observation.get("error")):
        return SpanStatus.ERROR
    metadata = fields_of(observation.get("metadata"))
    codes = (observation.get("exit_code"), metadata.get("exit_code"))
    if any(code is not None for code in codes):
        return status_of_codes(*codes)
    return SpanStatus.OK if flag is False else SpanStatus.UNKNOWN

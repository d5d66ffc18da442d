"""Events of OpenHands' generation 0: actions, and observations that name the action as cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mast_tui.traces.index.document import Step
from mast_tui.traces.io.json_values import as_text, content_text, dump_text, identifier, tokens_of
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    items_of,
    name_set,
    one_line,
)
from mast_tui.traces.readers.openhands.events import (
    DEFAULT_AGENT,
    Event,
    EventSpans,
    arguments_text,
    status_of_codes,
)

_NOISE: Final = frozenset({"null", "change_agent_state", "agent_state_changed"})
_LOGGED: Final = name_set("""
    condensation condensation_request condense loop_detection_recovery loop_recovery recall
    summarize
""")
_NO_ARGUMENTS: Final = frozenset(
    {"thought", "confirmation_state", "is_confirmed", "hidden", "security_risk", "keep_prompt"}
)


class OldEvents:
    """Adds the spans of the events of one run, in order."""

    def __init__(self, spans: EventSpans) -> None:
        self._spans = spans
        self._agents = [spans.agent]
        self._last: Step | None = None
        self._asked = ""
        self._ends_response: dict[str, int] = {}
        self._begun: set[str] = set()

    def run(self, events: Sequence[Event]) -> None:
        """Add every event; values that are none become logs."""
        for number, event in enumerate(events):
            value = event.fields
            if isinstance(value.get("action"), str) and (response := _response_id(value)):
                self._ends_response[response] = number
        for number, event in enumerate(events):
            value = event.fields
            if isinstance(value.get("action"), str):
                self._action(event, value)
                if self._ends_response.get(_response_id(value) or "") == number:
                    usage = fields_of(_response(value).get("usage"))
                    counts = map(usage.get, ("prompt_tokens", "completion_tokens"))
                    self._spans.spent(tokens_of(*counts))
            elif isinstance(value.get("observation"), str):
                self._observation(event, value)
            else:
                self._spans.log(event, dump_text(event.value))
                if not value:
                    self._spans.add_problem(event, "not an event but a bare value")

    def _action(self, event: Event, value: Fields) -> None:
        action, args = one_line(value["action"]) or "", fields_of(value.get("args"))
        self._last = None
        if action in _NOISE:
            return
        if action in _LOGGED:
            self._logged(event, action, args)
        elif action == "message":
            self._message(event, value, args)
        elif action == "system":
            if self._agents == [DEFAULT_AGENT]:
                self._agents = [one_line(args.get("agent_class")) or DEFAULT_AGENT]
            text = content_text(args.get("content")) or content_text(value.get("message"))
            self._spans.say(event, Role.SYSTEM, "system", text)
        else:
            self._work(event, value, action, args)

    def _message(self, event: Event, value: Fields, args: Fields) -> None:
        contents = (args.get("content"), value.get("content"), value.get("message"))
        text = next((text for text in map(content_text, contents) if text.strip()), "")
        if images := items_of(args.get("image_urls")):
            text = "\n".join((text, *["[image]"] * len(images))).lstrip("\n")
        role, agent = self._speaker(value)
        if role is Role.USER:
            self._asked = text.strip()
        self._spans.say(event, role, agent, text)

    def _speaker(self, value: Fields) -> tuple[Role, str]:
        by_user = value.get("source") == "user"
        return (Role.USER, "user") if by_user else (Role.AGENT, self._agents[-1])

    def _logged(self, event: Event, action: str, args: Fields) -> None:
        query = content_text(args.get("query"))
        if action == "recall" and query.strip() == self._asked:
            return  # the framework looks up what the user's message, just shown, calls for
        text = content_text(args.get("summary")) or query or arguments_text(_told(args))
        self._spans.log(event, text, action)

    def _work(self, event: Event, value: Fields, action: str, args: Fields) -> None:
        """A tool call or a thought, after what the model said along with it."""
        role, agent = self._speaker(value)
        response = _response_id(value)
        choices = items_of(_response(value).get("choices"))
        message = fields_at(choices[0], "message") if choices else {}
        reasoning = as_text(message.get("reasoning_content"))
        if reasoning and response not in self._begun:
            self._spans.say(event, role, agent, reasoning, SpanKind.REASONING, "/reasoning")
        if response:
            self._begun.add(response)
        thought = args.get("thought")
        thought_text = content_text(value.get("thought") if thought is None else thought)
        if action == "think":
            text = thought_text or content_text(args.get("content"))
            self._spans.say(event, role, agent, text, SpanKind.REASONING)
            return
        if thought_text.strip():
            self._spans.say(event, role, agent, thought_text, part="/thought")
        metadata = fields_of(value.get("tool_call_metadata"))
        name = one_line(args.get("name")) if action in ("mcp", "call_tool_mcp") else None
        name = name or one_line(metadata.get("function_name")) or action
        text = arguments_text(_told(args))
        if not text and not thought_text.strip():
            text = content_text(value.get("message"))
        call_id = identifier(metadata.get("tool_call_id"))
        self._last = self._spans.call(event, call_id, agent, text, name, role)
        if action == "delegate":
            self._agents.append(one_line(args.get("agent")) or "delegate")

    def _observation(self, event: Event, value: Fields) -> None:
        kind, extras = one_line(value["observation"]) or "", fields_of(value.get("extras"))
        answered, self._last = self._last, None
        if kind == "agent_state_changed" and extras.get("agent_state") == "error":
            if reason := as_text(extras.get("reason")):
                self._spans.log(event, reason, kind, SpanStatus.ERROR)
            return
        if kind in _NOISE or kind == "think":
            return
        text = content_text(value.get("content"))
        if kind in _LOGGED:
            parts = (text, arguments_text(_told(extras)))
            self._spans.log(event, "\n".join(filter(None, parts)), kind)
            return
        if kind == "delegate" and len(self._agents) > 1:
            self._agents.pop()
        call_id = identifier(fields_of(value.get("tool_call_metadata")).get("tool_call_id"))
        cause = identifier(value.get("cause"))
        call = self._spans.call_of(call_id, cause)
        if call is None and not any((cause, call_id, identifier(value.get("id")))):
            call = answered  # the oldest histories have no ids, but pairs
        status = _status(kind, value, extras)
        if call is None and kind in ("error", "user_rejected"):
            self._spans.log(event, text, kind, status)
            return
        if not text.strip() and (outputs := extras.get("outputs")):
            text = dump_text(outputs)
        self._spans.result(event, call, text, status, call_id, None if call else kind)


def _told(args: Fields) -> dict[str, object]:
    """The fields that say something: not the framework's own, and not those left empty."""
    return {
        name: value
        for name, value in args.items()
        if name not in _NO_ARGUMENTS and value not in (None, "", [], {})
    }


def _response(value: Fields) -> Fields:
    """The model's response, which every action that came of it repeats."""
    return fields_at(value.get("tool_call_metadata"), "model_response")


def _response_id(value: Fields) -> str | None:
    """What tells one model response from another; None for an action that came of none."""
    response = _response(value)
    if not response:
        return None
    return identifier(response.get("id")) or f"of event {identifier(value.get('id'))}"


def _status(kind: str, value: Fields, extras: Fields) -> SpanStatus:
    success, failed = value.get("success"), extras.get("error")
    if kind in ("error", "user_rejected") or success is False:
        return SpanStatus.ERROR
    metadata = fields_of(extras.get("metadata"))
    code = status_of_codes(metadata.get("exit_code"), extras.get("exit_code"))
    if code is not SpanStatus.UNKNOWN:
        return code
    if failed is True or as_text(failed):
        return SpanStatus.ERROR
    return SpanStatus.OK if success is True or failed is False else SpanStatus.UNKNOWN

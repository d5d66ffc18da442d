"""Events of CrewAI's event bus, as listeners write them to a file."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Final

from mast_tui.traces.io.json_values import content_text, dump_text
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    Piece,
    Speaker,
    Turn,
    call_piece,
    json_log_piece,
    log_piece,
    result_piece,
)
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    kind_of,
    located_objects,
    name_in,
    name_set,
    text_in,
    texts_in,
    without,
)
from mast_tui.traces.readers.sessions.engine import (
    SYSTEM,
    USER,
    SessionContext,
    SessionFormat,
    SessionRecord,
    new_pieces,
    record_turn,
    turn_without_empty_pieces,
)

_MARKS: Final = name_set("""
    crew_kickoff_started agent_execution_started lite_agent_execution_started tool_usage_finished
""")
_SILENT_SUFFIXES: Final = ("_started", "_chunk", "agent_logs_execution")
"""The ends of the types of events whose texts other events repeat."""
_ENVELOPE_FIELDS: Final = name_set("""
    type timestamp event_id parent_event_id previous_event_id triggered_by_event_id started_event_id
    emission_sequence source_fingerprint source_type fingerprint_metadata task_id task_name agent_id
    agent_role agent task crew crew_name from_agent from_task
""")
_COMPARED_TEXTS: Final = 300
"""The number of earlier texts that may repeat a text; with all, the time would be quadratic."""
_CALLS_OF_TASKS: Final = 16
"""The number of model calls that may have the prompt of a task, as tasks may run side by side."""


def _without_repeated_events(
    records: Sequence[SessionRecord], _problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return the records without those that two listeners wrote in a row."""
    pairs = pairwise(records)
    return [*records[:1], *(record for last, record in pairs if record.value != last.value)]


def _messages_of(record: Fields) -> list[tuple[str, Fields]]:
    """Return the messages of a model call with their JSON pointers."""
    messages = record.get("messages")
    if isinstance(messages, str):
        return [("", {"role": "user", "content": messages})]
    return located_objects(messages, "/messages")


class _CrewTranslator:
    """Makes the turns of a crew's run.

    Each model call repeats the conversation so far, and later events repeat an answer.
    """

    def __init__(self, session: SessionContext) -> None:
        self._shown_texts: deque[str] = deque(maxlen=_COMPARED_TEXTS)
        self._answers: deque[str] = deque(maxlen=_COMPARED_TEXTS)
        self._prompt_counts: Counter[str] = Counter()
        self._last_output = ""
        self._next_calls = deque(
            record for record in session.values if kind_of(record) == "llm_call_started"
        )

    def __call__(self, record: Fields) -> Turn | None:
        """Return the turn of an event that is shown."""
        kind = kind_of(record)
        agent = name_in(record, "agent_role") or name_in(fields_of(record.get("agent")), "role")
        speaker = Speaker(agent or ASSISTANT, Role.AGENT)
        match kind:
            case "task_started":
                task = fields_of(record.get("task")) or record
                is_in_prompt = self._is_in_next_prompts(text_in(task, "description") or "")
                text = "" if is_in_prompt else texts_in(task, "description", "expected_output")
                return turn_without_empty_pieces(record, [USER.piece(text)])
            case "llm_call_started":
                self._next_calls.popleft()
                prompts = new_pieces(self._prompts_of(record, speaker), self._prompt_counts)
                return turn_without_empty_pieces(record, prompts)
            case "llm_call_completed":
                tokens = usage_tokens(record.get("usage"), "prompt_tokens", "completion_tokens")
                pieces = self._answer_pieces(record.get("response"), speaker)
                turn = turn_without_empty_pieces(record, pieces)
                return replace(turn, tokens=tokens, model=name_in(record, "model"))
            case "llm_call_failed":  # later events repeat its error, another call may have it too
                error = dump_text(record.get("error")).strip()
                self._shown_texts.append(error)
                return record_turn(record, log_piece(error or kind, kind, failed=True))
            case "agent_reasoning_completed":
                plan = speaker.piece(self._new_text(record.get("plan")), kind=SpanKind.REASONING)
                return turn_without_empty_pieces(record, [plan])
            case "tool_usage_started":
                return self._call_turn(record, speaker.agent)
            case "tool_usage_finished" | "tool_usage_error":
                return self._result_turn(record)
        if kind.endswith("_completed") and "output" in record:
            output = fields_of(record["output"])
            text = self._new_text(output.get("raw", record["output"]))
            author = Speaker(name_in(output, "agent") or speaker.agent, Role.AGENT)
            return turn_without_empty_pieces(record, [author.piece(text)])
        if kind.endswith(("_failed", "_error")):
            error = self._new_text(record.get("error"))
            return record_turn(record, log_piece(error, kind, failed=True)) if error else None
        if kind.endswith(_SILENT_SUFFIXES):
            return None
        facts = {
            name: value
            for name, value in without(record, _ENVELOPE_FIELDS).items()
            if value not in (None, [], {})
        }
        return record_turn(record, json_log_piece(facts, name=kind)) if facts else None

    def _is_in_next_prompts(self, text: str) -> bool:
        """Return whether one of the next model calls has a text in its messages."""
        calls = islice(self._next_calls, _CALLS_OF_TASKS)
        messages = (message for call in calls for _, message in _messages_of(call))
        return any(text in content_text(message.get("content")) for message in messages)

    def _new_text(self, value: object) -> str:
        """Return a value as text; an empty text if an earlier event has it, or more."""
        text = dump_text(value).strip()
        is_shown = any(text in earlier_text for earlier_text in self._shown_texts)
        self._shown_texts.append(text)
        return "" if is_shown else text

    def _prompts_of(self, record: Fields, speaker: Speaker) -> Iterator[Piece]:
        """Yield the messages of a model call without the answers and results before it."""
        answers = tuple(self._answers)
        for pointer, message in _messages_of(record):
            role = message.get("role")
            text = content_text(message.get("content"))
            # The loop of an agent appends the result of a tool to the answer.
            if role != "tool" and not (role == "assistant" and text.startswith(answers)):
                author = {"system": SYSTEM, "assistant": speaker}.get(str(role), USER)
                yield author.piece(text, pointer)

    def _answer_pieces(self, answer: object, speaker: Speaker) -> Iterator[Piece]:
        """Yield an answer, unless it is the output of a tool; calls have events of their own."""
        text = "" if isinstance(answer, list) else dump_text(answer).strip()
        if text and text != self._last_output:
            self._answers.append(text)
            self._shown_texts.append(text)
            yield speaker.piece(text)

    def _call_turn(self, record: Fields, agent: str) -> Turn:
        arguments = record.get("tool_args")
        values = fields_of(arguments).values()
        self._shown_texts.extend(dump_text(value).strip() for value in values)
        call = {"name": record.get("tool_name"), "arguments": arguments}
        return record_turn(record, call_piece(call, "", agent))

    def _result_turn(self, record: Fields) -> Turn:
        error = record.get("error") or record.get("failure")
        status = SpanStatus.ERROR if error else SpanStatus.UNKNOWN
        output = error if record.get("output") is None else record["output"]
        self._last_output = dump_text(output).strip()
        name = name_in(record, "tool_name")
        return record_turn(record, result_piece({}, output, "", name=name, status=status))


CREWAI_EVENTS: Final = SessionFormat(
    name="crewai-events",
    system="CrewAI",
    typical_bytes=(b'"crew_kickoff_', b'agent_execution_started"', b'"tool_usage_'),
    recognises=lambda records: any(
        kind_of(record) in _MARKS and isinstance(record.get("timestamp"), str | int | float)
        for record in records
    ),
    make_translator=_CrewTranslator,
    select_records=_without_repeated_events,
    list_paths=("events",),
    id_paths="event_id",
    fact_paths={"model": "model"},
)

"""Transcripts that are lists of chat messages, of any program.

tau-bench and Who&When are named as the format of their traces. A file holds one conversation, a
list of conversations, one conversation a line, or one message a line.

A file may also be a log of requests to a model, one a line. Each request repeats the history of the
request before, so only its new messages are shown. Examples are AppWorld's ``lm_calls.jsonl`` and
the event log of AutoGen's core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final

from mast_tui.traces.index.document import Step, StepList
from mast_tui.traces.io.json_values import as_text, canonical_bytes, tokens_of
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    AnswerKey,
    FileReport,
    Outcome,
    Problem,
    Role,
    SpanKind,
    SpanStatus,
    Trace,
    TraceMeta,
)
from mast_tui.traces.readers.base import FormatReader
from mast_tui.traces.readers.chat import a2a
from mast_tui.traces.readers.chat.containers import (
    Conversation,
    Messages,
    conversation_in,
    is_conversation_list,
    mostly_messages,
)
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.chat.pieces import ASSISTANT, Piece, speaks_by_name
from mast_tui.traces.readers.chat.streams import joined_events, joined_updates, response_in_stream
from mast_tui.traces.readers.chat.turns import (
    end_pieces,
    is_task_result,
    turn_of,
    unfinished_messages,
)
from mast_tui.traces.readers.chat.values import (
    lasting_text,
    message_text,
    start_of,
    usage_of,
)
from mast_tui.traces.readers.document_traces import (
    Record,
    RunOrigin,
    records_by_line,
    records_of_list,
    report_of,
    trace_of_steps,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    first_in,
    items_of,
    kind_of,
    short_name,
    text_in,
    value_in,
)
from mast_tui.traces.readers.run_facts import AnswerKeyDraft, facts_of_record, task_of
from mast_tui.traces.readers.span_tree.rows import RowKind, SpanRow
from mast_tui.traces.readers.span_tree.steps import trace_of_rows

_LEAST_TURNS: Final = 2
"""The least number of equal messages that join two requests with different system prompts."""


def _recognises(source: Source) -> bool:
    """Return whether the document, or one of the first lines of JSONL, has chat messages."""
    if head_records := source.json_lines:
        return (
            mostly_messages(head_records)
            or any(map(conversation_in, head_records))
            or any(map(a2a.is_stream_update, head_records))
            or response_in_stream(head_records) is not None
        )
    _pointer, document = _document_in(source)
    return (
        conversation_in(document) is not None
        or is_conversation_list(document)
        or response_in_stream(document) is not None
    )


def _read(source: Source) -> FileReport:
    """Return one trace for each conversation; a record without messages becomes a problem."""
    problems: list[Problem] = []
    whole_conversation: Conversation | None = None
    records: Sequence[Record]
    if source.json_lines:
        records = list(records_by_line(source, problems))
        if mostly_messages(record.value for record in records):
            messages = joined_updates((record.location, record.value) for record in records)
            whole_conversation = Conversation(messages, {})
    else:
        pointer, document = _document_in(source)
        whole_conversation = conversation_in(document)
        records = list(records_of_list(items_of(document), pointer))

    whole_records = joined_events(records, problems)
    if whole_conversation is None:
        # Events of streamed responses were joined if there are fewer records now.
        are_streams = len(whole_records) < len(records)
        traces = traces_of(source.path, whole_records, problems, are_streams=are_streams)
    else:
        traces = [
            trace_of(source.path, whole_conversation, record=None, content=source.data, prefix="")
        ]
    return report_of(READER, source, traces, problems, format_of(traces))


READER: Final = FormatReader("message-list", _recognises, _read)
"""Reads message lists; span keys are JSON pointers within the record, or the ids of calls."""


def _document_in(source: Source) -> tuple[str, object]:
    """Return the document of a file, or the list of requests in a HAR file, with its pointer."""
    entries = fields_at(source.json, "log").get("entries")
    return ("", source.json) if entries is None else ("/log/entries", entries)


def traces_of(
    path: Path, records: Iterable[Record], problems: list[Problem], *, are_streams: bool = False
) -> list[Trace]:
    """Return the traces of records with messages.

    Requests that repeat one history are one trace, with the tool calls between them.

    Args:
        path: The file.
        records: The records of the file.
        problems: The list to which a problem is added for each record without messages.
        are_streams: True if the responses in the records were joined from streams.
    """
    records = list(records)
    if any(a2a.is_stream_update(record.value) for record in records):
        return _traces_of_tasks(path, records)

    entries: list[LogEntry] = []
    for record in records:
        conversation = conversation_in(record.value)
        # AutoGen's log has the calls of tools between the requests.
        is_call = kind_of(record.value) == "ToolCall" and "tool_name" in fields_of(record.value)
        if conversation is None and not is_call:
            problems.append(Problem(record.location, "no list of messages, left out"))
        else:
            entries.append((record, conversation))

    if entries and all(
        conversation is not None
        and (are_streams or conversation.is_streamed)
        and not _has_request(conversation)
        for _record, conversation in entries
    ):
        # The only trace of a file has no number.
        unnumbered = [
            (replace(record, number=None), conversation) for record, conversation in entries
        ]
        return [_trace_of_run(path, LoggedRun(unnumbered))]
    return list(_traces_of_requests(path, entries))


def _traces_of_requests(path: Path, entries: Iterable[LogEntry]) -> Iterator[Trace]:
    """Yield a trace for each run with several requests, and for each other request."""
    for run in _logged_runs(entries):
        if run.is_growing:
            yield _trace_of_run(path, run)
            continue
        for record, conversation in run.entries:
            if conversation is not None:
                content = canonical_bytes(record.value)
                yield trace_of(path, conversation, record.number, content, record.prefix)


def _has_request(conversation: Conversation) -> bool:
    request_count = len(conversation.messages) - conversation.response_count
    request_messages = (
        fields_of(message) for _key, message in conversation.messages[:request_count]
    )
    return any(message.get("role") != "system" for message in request_messages)


def _traces_of_tasks(path: Path, records: Sequence[Record]) -> list[Trace]:
    """Return a trace for each task in a stream of A2A."""
    tasks = a2a.streamed_tasks((record.location, record.value) for record in records)
    return [
        trace_of(
            path,
            Conversation(tuple(task.messages), {"outcome": task.outcome}),
            number if len(tasks) > 1 else None,
            canonical_bytes([message for _location, message in task.messages]),
            prefix="",
        )
        for number, task in enumerate(tasks)
    ]


def _trace_of_run(path: Path, run: LoggedRun) -> Trace:
    """Return the trace of a run, with the repeated history of each request only once."""
    first_record, _conversation = run.entries[0]
    meta = facts_of_record(fields_of(first_record.value), ())
    content = canonical_bytes([record.value for record, _conversation in run.entries])
    origin = RunOrigin(READER, path, content, first_record.number)
    return trace_of_rows(origin, run.rows(), meta, service=ASSISTANT)


def trace_of(
    path: Path, conversation: Conversation, record: int | None, content: bytes, prefix: str
) -> Trace:
    """Return the trace of a conversation.

    Args:
        path: The file.
        conversation: The conversation.
        record: The number of its record in the file; None if it is the only one.
        content: The bytes whose hash identifies the conversation if it has no id.
        prefix: The location of the record in the file, before the pointer in it.
    """
    steps = StepList()
    names_are_speakers = speaks_by_name([message for _key, message in conversation.messages])
    mapper = MessageMapper(steps, by_name=names_are_speakers, prefix=prefix)

    unfinished_by_key = unfinished_messages(conversation.messages)
    for key, message in conversation.messages:
        mapper.add(unfinished_by_key.get(key, message), key)
        if key in unfinished_by_key:
            mapper.problems.append(Problem(prefix + key, "the message was cut off"))
    mapper.count_tokens(conversation.usage)

    if is_task_result(conversation.record):
        for piece in end_pieces(conversation.record):
            mapper.add_piece(piece, "/stop_reason")
    if conversation.error is not None:
        error_piece = Piece(
            SpanKind.LOG, Role.LOG, "error", conversation.error, status=SpanStatus.ERROR
        )
        mapper.add_piece(error_piece, "/error")

    meta = _facts_of_conversation(conversation.record, conversation.messages, steps.steps)
    meta = meta._replace(model=conversation.model or meta.model or mapper.model)
    return trace_of_steps(RunOrigin(READER, path, content, record), steps, meta, mapper.problems)


def format_of(traces: Sequence[Trace]) -> str:
    """Return the name of the benchmark if all traces come from it, else the reader's name."""
    formats = {trace.format for trace in traces}
    return formats.pop() if len(formats) == 1 else READER.name


def _facts_of_conversation(record: Fields, messages: Messages, steps: Sequence[Step]) -> TraceMeta:
    """Return the facts of a run, and the benchmark that the record's fields show."""
    meta = facts_of_record(record, steps)
    system = meta.system or _framework_of_speakers(messages)
    if "history" in record and "mistake_agent" in record:
        # Who&When holds only failed runs, so a correct answer is no success.
        outcome = Outcome.FAILED if meta.outcome is Outcome.FAILED else Outcome.UNKNOWN
        return meta._replace(system=system, benchmark="Who&When", outcome=outcome)
    if "traj" in record and "reward" in record:
        return meta._replace(
            task=task_of(steps=steps),
            system=system,
            benchmark="tau-bench",
            answer_key=meta.answer_key.with_all_of(
                _tau_bench_answer_key(fields_of(record.get("info")))
            ),
        )
    return meta._replace(system=system)


def _tau_bench_answer_key(info: Fields) -> AnswerKey:
    """Return the expected actions and answers of tau-bench, and the parts of its reward."""
    task = fields_of(info.get("task"))
    reward = fields_of(info.get("reward_info"))
    draft = AnswerKeyDraft()
    draft.add_actions(first_in(task, "actions") or first_in(reward, "actions") or [])
    for output in items_of(task.get("outputs")):
        draft.add("reference", "output", output)
    for name, value in fields_of(reward.get("info")).items():
        is_part_of_reward = name.startswith("r_")
        if is_part_of_reward or isinstance(value, bool | Mapping):
            draft.add_score(name, value)
        else:
            draft.add("other", name, value)
    for name, value in task.items():
        if name not in ("actions", "outputs"):
            draft.add("other", f"task {name}", value)
    return draft.key()


def _framework_of_speakers(messages: Messages) -> str | None:
    """Return the framework that uses the name of one of the speakers."""
    speakers = set()
    for _key, message in messages:
        if isinstance(message, Mapping):
            speakers.add(as_text(message.get("role")))
            speakers.add(as_text(message.get("name")))
    if any(speaker and speaker.startswith("Orchestrator (") for speaker in speakers):
        return "Magentic-One"
    return "AG2" if "Computer_terminal" in speakers else None


LogEntry = tuple[Record, Conversation | None]
"""A record of a log with its conversation; the conversation of a tool call is None."""


@dataclass(slots=True)
class LoggedRun:
    """The records of one run, in the order of the file."""

    entries: list[LogEntry] = field(default_factory=list)

    @property
    def is_growing(self) -> bool:
        """True if the run has several requests, so that each repeats the history before."""
        return sum(conversation is not None for _record, conversation in self.entries) > 1

    def rows(self) -> list[SpanRow]:
        """Return a model row for each request, and a tool row for each tool call."""
        return [
            _tool_row(record) if conversation is None else _model_row(record, conversation)
            for record, conversation in self.entries
        ]


def _logged_runs(entries: Iterable[LogEntry]) -> list[LoggedRun]:
    """Group the records of a log by run.

    The runs are in the order of their first records. The requests of a run have one agent key of
    AutoGen, continue each other's responses, or repeat each other's messages.
    """
    runs: list[LoggedRun] = []
    run_by_mark: dict[tuple[str, str | bytes | None], LoggedRun] = {}
    for record, conversation in entries:
        fields = fields_of(record.value)
        agent_key = _agent_key(fields)
        response_id, previous_id = _response_ids(fields)
        messages = () if conversation is None else conversation.messages
        histories = _history_hashes(messages)
        # Some agents change the system prompt in each request, for example its date.
        turns = [(key, each) for key, each in messages if fields_of(each).get("role") != "system"]
        histories_without_prompt = _history_hashes(turns)[_LEAST_TURNS - 1 :]

        # The marks of earlier records of the same run, the most certain first.
        marks: list[tuple[str, str | bytes | None]] = [
            ("agent", agent_key),
            ("response", previous_id),
            *(("history", history) for history in reversed(histories[:-1])),
            *(("turns", history) for history in reversed(histories_without_prompt[:-1])),
        ]
        run = next(filter(None, map(run_by_mark.get, marks)), None)
        if run is None:
            run = LoggedRun()
            runs.append(run)
        run.entries.append((record, conversation))

        if agent_key is not None:
            run_by_mark["agent", agent_key] = run
        if response_id is not None:
            run_by_mark["response", response_id] = run
        if histories:
            run_by_mark["history", histories[-1]] = run
        if histories_without_prompt:
            run_by_mark["turns", histories_without_prompt[-1]] = run
    return runs


def _agent_key(record: Fields) -> str | None:
    """Return the key in AutoGen's agent id ``type/key``; all agents of a run share it."""
    agent = as_text(record.get("agent_id"))
    if agent is None or "/" not in agent:
        return None
    return agent.partition("/")[2]


def _response_ids(record: Fields) -> tuple[str | None, str | None]:
    """Return the ids of the response in a record and of the response before it."""
    records = [record, *(fields_of(record.get(name)) for name in ("request", "response", "body"))]
    responses = (fields for fields in records if fields.get("object") == "response")
    response_id = next((text_in(fields, "id") for fields in responses), None)
    previous_ids = (text_in(fields, "previous_response_id") for fields in records)
    return response_id, next(filter(None, previous_ids), None)


def _history_hashes(messages: Iterable[tuple[str, object]]) -> list[bytes]:
    """Return a hash of each beginning of a conversation: the first message, the first two, …"""
    hasher = blake2b(digest_size=16)
    hashes: list[bytes] = []
    for _key, message in messages:
        fields = fields_of(message)
        hasher.update(canonical_bytes([fields.get("role"), _lasting_content(fields)]))
        for call in items_of(fields.get("tool_calls")):
            function = fields_at(call, "function")
            # The same arguments may be written with other spaces in a later request.
            arguments = value_in(function.get("arguments"))
            hasher.update(canonical_bytes([function.get("name"), arguments]))
        hashes.append(hasher.digest())
    return hashes


def _lasting_content(message: Fields) -> object:
    """Return a message's content without the thoughts, which later requests do not repeat."""
    content = first_in(message, "content", "contents")
    if not isinstance(content, list):
        return lasting_text(message_text(content))
    # The caller hashes the tool calls itself.
    pieces = turn_of({**message, "tool_calls": None}).pieces
    return [
        [piece.kind.value, piece.name, lasting_text(piece.text)]
        for piece in pieces
        if piece.kind is not SpanKind.REASONING
    ]


def _model_row(record: Record, conversation: Conversation) -> SpanRow:
    """Return the row of a model call, from a request and its response."""
    fields = fields_of(record.value)
    record_tokens = tokens_of(fields.get("prompt_tokens"), fields.get("completion_tokens"))
    messages = [fields_of(message) for _key, message in conversation.messages]
    request_count = len(messages) - conversation.response_count

    return SpanRow(
        id=record.location,
        parent=None,
        kind=RowKind.MODEL,
        name="model",
        location=record.location,
        start=start_of({**fields_of(fields.get("request")), **fields}),
        agent=_agent_name(fields),
        model=conversation.model,
        error=conversation.error,
        status=SpanStatus.ERROR if conversation.error else SpanStatus.UNKNOWN,
        tokens=conversation.usage or usage_of(fields) or record_tokens,
        request=tuple(messages[:request_count]),
        answer=tuple(messages[request_count:]),
    )


def _tool_row(record: Record) -> SpanRow:
    """Return the row of a tool call, from a record of AutoGen's log."""
    fields = fields_of(record.value)
    return SpanRow(
        id=record.location,
        parent=None,
        kind=RowKind.TOOL,
        name=short_name(fields.get("tool_name")) or "tool",
        location=record.location,
        start=start_of(fields),
        agent=_agent_name(fields),
        input=fields.get("arguments"),
        output=fields.get("result"),
    )


def _agent_name(record: Fields) -> str | None:
    """Return the type in AutoGen's agent id ``type/key``."""
    agent = as_text(record.get("agent_id"))
    return None if agent is None else short_name(agent.partition("/")[0]) or None

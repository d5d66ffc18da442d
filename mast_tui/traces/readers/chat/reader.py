"""Transcripts that are lists of chat messages, of any program.

Known by name are tau-bench, Who&When and Magentic-One's logs; messages of any other shape that
``pieces`` knows are read the same way. A file holds one conversation, a list of them, one a line,
or one message a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from mast_tui.traces.index.document import Step, StepList
from mast_tui.traces.io.json_values import as_text, canonical_bytes
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
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft
from mast_tui.traces.readers.chat import a2a
from mast_tui.traces.readers.chat.containers import (
    Conversation,
    Messages,
    conversation_in,
    is_set,
    mostly_messages,
)
from mast_tui.traces.readers.chat.growing import LoggedRun, is_tool_call, logged_runs
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.chat.pieces import ASSISTANT, Piece, speaks_by_name
from mast_tui.traces.readers.document_traces import (
    Record,
    records_by_line,
    records_listed,
    report_of,
    trace_of_steps,
)
from mast_tui.traces.readers.json_fields import Fields, fields_of, first_in, items_of
from mast_tui.traces.readers.run_facts import facts_of_record, task_of
from mast_tui.traces.readers.span_tree.steps import observed_steps

_FLAVOURS: Final = {"tau-bench": "tau-bench", "Who&When": "who-and-when"}


class MessageListReader:
    """Reads message lists; span keys are JSON pointers within the record, calls go by their id."""

    name: Final = "message-list"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return whether the file, or the first records of a JSONL file, hold chat messages."""
        if head := source.json_lines:
            return (
                mostly_messages(head)
                or any(map(conversation_in, head))
                or any(map(a2a.is_event, head))
            )
        document = source.json
        return conversation_in(document) is not None or is_set(document)

    def read(self, source: Source) -> FileReport:
        """Return one trace per conversation; elements that are none are listed as problems."""
        problems: list[Problem] = []
        whole: Conversation | None = None
        records: Iterable[Record]
        if source.json_lines:
            records = list(records_by_line(source, problems))
            if mostly_messages(record.value for record in records):
                messages = tuple((record.location, record.value) for record in records)
                whole = Conversation(messages, {})
        else:
            whole = conversation_in(source.json)
            records = records_listed(items_of(source.json))
        if whole is not None:
            traces = [trace_of(source.path, whole, None, source.data, "")]
        else:
            traces = traces_of(source.path, records, problems)
        return report_of(self, source, traces, problems, format_of(traces))


READER: Final = MessageListReader()


def traces_of(path: Path, records: Iterable[Record], problems: list[Problem]) -> list[Trace]:
    """Return the traces of the records that hold messages; list those that hold none as problems.

    Args:
        path: The file.
        records: Its records. Requests that repeat the history of an earlier one are one trace.
        problems: Gets an entry for each record without messages.
    """
    records = list(records)
    if any(a2a.is_event(record.value) for record in records):
        return _traces_of_tasks(path, records)
    lines: list[tuple[Record, Conversation | None]] = []
    for record in records:
        conversation = conversation_in(record.value)
        if conversation is None and not is_tool_call(record.value):
            problems.append(Problem(record.location, "no list of messages, left out"))
        else:
            lines.append((record, conversation))
    traces: list[Trace] = []
    for run in logged_runs(lines):
        if run.is_growing:
            traces.append(_trace_of_run(path, run))
            continue
        for record, conversation in zip(run.records, run.conversations, strict=True):
            if conversation is not None:
                content = canonical_bytes(record.value)
                traces.append(trace_of(path, conversation, record.number, content, record.prefix))
    return traces


def _traces_of_tasks(path: Path, records: Sequence[Record]) -> list[Trace]:
    tasks = a2a.streamed_tasks((record.location, record.value) for record in records)
    return [
        trace_of(
            path,
            Conversation(tuple(task.messages), {"outcome": task.outcome}),
            number if len(tasks) > 1 else None,
            canonical_bytes([message for _location, message in task.messages]),
            "",
        )
        for number, task in enumerate(tasks)
    ]


def _trace_of_run(path: Path, run: LoggedRun) -> Trace:
    rows = run.rows()
    steps = observed_steps(rows, service=ASSISTANT)
    first = run.records[0]
    meta = facts_of_record(fields_of(first.value), steps.steps)
    model = next((row.model for row in rows if row.model), None)
    content = canonical_bytes([record.value for record in run.records])
    return trace_of_steps(
        READER,
        path,
        content,
        steps,
        meta=meta._replace(model=model or meta.model),
        record=first.number,
    )


def trace_of(
    path: Path, conversation: Conversation, record: int | None, content: bytes, prefix: str
) -> Trace:
    """Return the trace of a conversation.

    Args:
        path: The file.
        conversation: The conversation.
        record: Its number in the file; None for the only one.
        content: The bytes by which it is known again.
        prefix: The location of the record.
    """
    steps = StepList()
    by_name = speaks_by_name([message for _key, message in conversation.messages])
    mapper = MessageMapper(steps, by_name=by_name, prefix=prefix)
    for key, message in conversation.messages:
        mapper.add(message, key)
    mapper.count_tokens(conversation.usage)
    if conversation.error is not None:
        failed = Piece(SpanKind.LOG, Role.LOG, "error", conversation.error, status=SpanStatus.ERROR)
        mapper.put(failed, "/error")
    meta = _facts(conversation.record, conversation.messages, steps.steps)
    meta = meta._replace(model=conversation.model or meta.model or mapper.model)
    return trace_of_steps(
        READER, path, content, steps, meta=meta, record=record, problems=mapper.problems
    )


def format_of(traces: Sequence[Trace]) -> str:
    """Return the name of the set that all traces of a file belong to, else the reader's own."""
    formats = {_FLAVOURS.get(trace.meta.benchmark or "", READER.name) for trace in traces}
    return formats.pop() if len(formats) == 1 else READER.name


def _facts(record: Fields, messages: Messages, steps: Sequence[Step]) -> TraceMeta:
    meta = facts_of_record(record, steps)
    system = meta.system or _system(messages)
    if "history" in record and "mistake_agent" in record:
        # A correct answer is no success here: the set holds runs that failed.
        outcome = Outcome.FAILED if meta.outcome is Outcome.FAILED else Outcome.UNKNOWN
        return meta._replace(system=system, benchmark="Who&When", outcome=outcome)
    if "traj" in record and "reward" in record:
        return meta._replace(
            task=task_of(steps=steps),
            system=system,
            benchmark="tau-bench",
            answer_key=meta.answer_key.with_all_of(_tau_bench_key(fields_of(record.get("info")))),
        )
    return meta._replace(system=system)


def _tau_bench_key(info: Fields) -> AnswerKey:
    """Return the actions and answers that tau-bench expects, and the parts of its reward."""
    task = fields_of(info.get("task"))
    reward = fields_of(info.get("reward_info"))
    draft = AnswerKeyDraft()
    draft.add_actions(first_in(task, "actions") or first_in(reward, "actions") or [])
    for output in items_of(task.get("outputs")):
        draft.add("reference", "output", output)
    for name, value in fields_of(reward.get("info")).items():
        if name.startswith("r_") or isinstance(value, bool | Mapping):
            draft.add_score(name, value)
        else:
            draft.add("other", name, value)
    for name, value in task.items():
        if name not in ("actions", "outputs"):
            draft.add("other", f"task {name}", value)
    return draft.key()


def _system(messages: Messages) -> str | None:
    """Return the framework that the names of the speakers are typical of."""
    speakers = set()
    for _key, message in messages:
        if isinstance(message, Mapping):
            speakers.add(as_text(message.get("role")))
            speakers.add(as_text(message.get("name")))
    if any(speaker and speaker.startswith("Orchestrator (") for speaker in speakers):
        return "Magentic-One"
    return "AG2" if "Computer_terminal" in speakers else None

"""Transcripts kept as lists of chat messages, by whatever wrote them.

Known by name are tau-bench, Who&When and Magentic-One's logs; messages of any other shape that
``pieces`` knows are read the same way. A file holds one conversation, a list of them, one a line,
or one message a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

from mast_tui.traces.identity import identity_by_content
from mast_tui.traces.index.document import Step, StepList, StepSpans
from mast_tui.traces.io.json_values import as_text, canonical_bytes
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import AnswerKey, FileReport, Outcome, Problem, Trace, TraceMeta
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft
from mast_tui.traces.readers.chat.containers import (
    Conversation,
    Messages,
    conversation_in,
    is_set,
    mostly_messages,
)
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.chat.pieces import speaks_by_name
from mast_tui.traces.readers.json_documents import read_lines
from mast_tui.traces.readers.json_fields import Fields, fields_of, first_in, items_of
from mast_tui.traces.readers.run_facts import facts_of_record, task_of

NAME: Final = "message-list"
KEY_SCHEME: Final = 1

_FLAVOURS: Final = {"tau-bench": "tau-bench", "Who&When": "who-and-when"}


@dataclass(frozen=True, slots=True)
class MessageListReader:
    """Reads message lists; span keys are JSON pointers within the record, calls go by their id."""

    name: ClassVar[str] = NAME
    key_scheme: ClassVar[int] = KEY_SCHEME

    def recognises(self, source: Source) -> bool:
        """Whether the file, or the first records of a JSONL file, hold chat messages."""
        if head := source.json_lines:
            return mostly_messages(head) or any(map(conversation_in, head))
        document = source.json
        return conversation_in(document) is not None or is_set(document)

    def read(self, source: Source) -> FileReport:
        """One trace per conversation; elements that are none are listed as problems."""
        problems: list[Problem] = []
        if source.json_lines:
            traces = _read_lines(source, problems)
        else:
            document = source.json
            if (conversation := conversation_in(document)) is not None:
                traces = [trace_of(source.path, conversation, None, source.data, "")]
            else:
                traces = _read_set(source, document, problems)
        return FileReport(
            source.path, format=format_of(traces), traces=tuple(traces), problems=tuple(problems)
        )


READER: Final = MessageListReader()


def _read_lines(source: Source, problems: list[Problem]) -> list[Trace]:
    lines = list(read_lines(source, problems))
    if mostly_messages(line.value for line in lines):
        messages = tuple((f"line {line.number}", line.value) for line in lines)
        return [trace_of(source.path, Conversation(messages, {}), None, source.data, "")]
    traces = []
    for line in lines:
        conversation = conversation_in(line.value)
        if conversation is None:
            problems.append(Problem(f"line {line.number}", "no list of messages, left out"))
            continue
        content = canonical_bytes(line.value)
        prefix = f"line {line.number} "
        traces.append(trace_of(source.path, conversation, line.record, content, prefix))
    return traces


def _read_set(source: Source, document: object, problems: list[Problem]) -> list[Trace]:
    traces = []
    for record, value in enumerate(items_of(document)):
        conversation = conversation_in(value)
        if conversation is None:
            problems.append(Problem(f"/{record}", "no list of messages, left out"))
            continue
        content = canonical_bytes(value)
        traces.append(trace_of(source.path, conversation, record, content, f"/{record}"))
    return traces


def trace_of(
    path: Path, conversation: Conversation, record: int | None, content: bytes, prefix: str
) -> Trace:
    """The trace of a conversation with this content; ``prefix`` is the record's place."""
    steps = StepList()
    by_name = speaks_by_name([message for _key, message in conversation.messages])
    mapper = MessageMapper(steps, by_name=by_name, prefix=prefix)
    for key, message in conversation.messages:
        mapper.add(message, key)
    mapper.count_tokens(conversation.usage)
    identity = identity_by_content(path, record, content, reader=NAME, key_scheme=KEY_SCHEME)
    meta = _facts(conversation.record, conversation.messages, steps.steps)
    model = conversation.model or meta.model or mapper.model
    return Trace(
        identity,
        path,
        StepSpans(steps.steps),
        record=record,
        meta=replace(meta, model=model),
        problems=mapper.problems,
    )


def format_of(traces: Sequence[Trace]) -> str:
    """The name of the set that all traces of a file belong to, else the reader's own."""
    formats = {_FLAVOURS.get(trace.meta.benchmark or "", NAME) for trace in traces}
    return formats.pop() if len(formats) == 1 else NAME


def _facts(record: Fields, messages: Messages, steps: Sequence[Step]) -> TraceMeta:
    meta = facts_of_record(record, steps)
    system = meta.system or _system(messages)
    if "history" in record and "mistake_agent" in record:
        # A correct answer is no success here: the set holds runs that failed.
        outcome = Outcome.FAILED if meta.outcome is Outcome.FAILED else Outcome.UNKNOWN
        return replace(meta, system=system, benchmark="Who&When", outcome=outcome)
    if "traj" in record and "reward" in record:
        return replace(
            meta,
            task=task_of(steps=steps),
            system=system,
            benchmark="tau-bench",
            answer_key=meta.answer_key.with_all_of(_tau_bench_key(fields_of(record.get("info")))),
        )
    return replace(meta, system=system)


def _tau_bench_key(info: Fields) -> AnswerKey:
    """The actions and answers that tau-bench expects, and the parts that its reward is made of."""
    task, reward = fields_of(info.get("task")), fields_of(info.get("reward_info"))
    draft = AnswerKeyDraft()
    draft.actions(first_in(task, "actions") or first_in(reward, "actions") or [])
    outputs = task.get("outputs")
    for output in items_of(outputs):
        draft.add("reference", "output", output)
    for name, value in fields_of(reward.get("info")).items():
        if name.startswith("r_") or isinstance(value, bool | Mapping):
            draft.scored(name, value)
        else:
            draft.add("other", name, value)
    for name, value in task.items():
        if name not in ("actions", "outputs"):
            draft.add("other", f"task {name}", value)
    return draft.key()


def _system(messages: Messages) -> str | None:
    """The framework that the speakers give away."""
    speakers = set()
    for _key, message in messages:
        if isinstance(message, Mapping):
            speakers.add(as_text(message.get("role")))
            speakers.add(as_text(message.get("name")))
    if any(speaker and speaker.startswith("Orchestrator (") for speaker in speakers):
        return "Magentic-One"
    return "AG2" if "Computer_terminal" in speakers else None

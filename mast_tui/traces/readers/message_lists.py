"""Transcripts kept as lists of chat messages, by whatever wrote them.

Known by name are tau-bench, Who&When and Magentic-One's logs; anything else with ``role`` and
``content`` is read the same way. A file holds one conversation, a list of them, one a line, or
one message a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from mast_tui.traces.document import DocumentTrace, Step, StepList
from mast_tui.traces.identity import identity_by_content
from mast_tui.traces.json_values import (
    InvalidJSON,
    as_text,
    canonical_bytes,
    content_text,
    dump_text,
    load_json,
)
from mast_tui.traces.model import FileReport, Outcome, Problem, Role, SpanKind, Trace, TraceMeta
from mast_tui.traces.readers.json_documents import json_lines_head, read_document, read_lines
from mast_tui.traces.readers.messages import MessageMapper, is_message, speaks_by_name
from mast_tui.traces.readers.run_facts import facts_of_record, task_of
from mast_tui.traces.source import Source

_CONTAINERS: Final = (
    "messages",
    "history",
    "traj",
    "trajectory",
    "conversation",
    "conversations",
    "input",
    "output",
)
_LOOKED_AT: Final = 20


@dataclass(frozen=True, slots=True)
class _Conversation:
    """A run's messages under their JSON pointers, and the record around them."""

    messages: tuple[tuple[str, object], ...]
    record: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class MessageListReader:
    """Reads message lists; span keys are JSON pointers within the record, calls go by their id."""

    name: ClassVar[str] = "message-list"
    key_scheme: ClassVar[int] = 1

    def recognises(self, source: Source) -> bool:
        """Whether the file, or the first records of a JSONL file, hold chat messages."""
        if head := json_lines_head(source):
            return _mostly_messages(head) or any(map(_conversation, head))
        document = read_document(source)
        return _conversation(document) is not None or _is_set(document)

    def read(self, source: Source) -> FileReport:
        """One trace per conversation; elements that are none are listed as problems."""
        problems: list[Problem] = []
        if json_lines_head(source):
            traces = self._read_lines(source, problems)
        else:
            document = read_document(source)
            if (conversation := _conversation(document)) is not None:
                traces = [self._trace(source, conversation, None, source.data, "")]
            else:
                traces = self._read_set(source, document, problems)
        formats = {_flavour(trace) for trace in traces}
        format_name = formats.pop() if len(formats) == 1 else self.name
        return FileReport(
            source.path, format=format_name, traces=tuple(traces), problems=tuple(problems)
        )

    def _read_lines(self, source: Source, problems: list[Problem]) -> list[DocumentTrace]:
        lines = list(read_lines(source, problems))
        if _mostly_messages([line.value for line in lines]):
            messages = tuple((f"line {line.number}", line.value) for line in lines)
            conversation = _Conversation(messages, {})
            return [self._trace(source, conversation, None, source.data, "")]
        traces = []
        for line in lines:
            conversation_ = _conversation(line.value)
            if conversation_ is None:
                problems.append(Problem(f"line {line.number}", "no list of messages, left out"))
                continue
            content = canonical_bytes(line.value)
            prefix = f"line {line.number} "
            traces.append(self._trace(source, conversation_, line.record, content, prefix))
        return traces

    def _read_set(
        self, source: Source, document: object, problems: list[Problem]
    ) -> list[DocumentTrace]:
        traces = []
        for record, value in enumerate(document if isinstance(document, list) else ()):
            conversation = _conversation(value)
            if conversation is None:
                problems.append(Problem(f"/{record}", "no list of messages, left out"))
                continue
            content = canonical_bytes(value)
            traces.append(self._trace(source, conversation, record, content, f"/{record}"))
        return traces

    def _trace(
        self,
        source: Source,
        conversation: _Conversation,
        record: int | None,
        content: bytes,
        prefix: str,
    ) -> DocumentTrace:
        steps = StepList()
        record_fields = conversation.record
        if system := content_text(record_fields.get("system")):
            steps.add(
                "/system", SpanKind.MESSAGE, Role.SYSTEM, "system", system, place=f"{prefix}/system"
            )
        by_name = speaks_by_name([message for _key, message in conversation.messages])
        mapper = MessageMapper(steps, by_name=by_name, prefix=prefix)
        for key, message in conversation.messages:
            mapper.add(message, key)
        identity = identity_by_content(
            source.path, record, content, reader=self.name, key_scheme=self.key_scheme
        )
        meta = _facts(record_fields, conversation.messages, steps.steps)
        return DocumentTrace(
            identity, source.path, steps.steps, record=record, meta=meta, problems=mapper.problems
        )


READER: Final = MessageListReader()


def _mostly_messages(values: Iterable[object]) -> bool:
    """Whether at least half of the first values are chat messages."""
    looked_at = [value for value, _ in zip(values, range(_LOOKED_AT), strict=False)]
    found = sum(map(is_message, looked_at))
    return found > 0 and 2 * found >= len(looked_at)


def _conversation(value: object) -> _Conversation | None:
    """The messages in a JSON value: a bare list of them, or a record with a list of them."""
    if isinstance(value, list):
        if not _mostly_messages(value):
            return None
        return _Conversation(_pointers("", value), {})
    if not isinstance(value, Mapping):
        return None
    for container in _CONTAINERS:
        messages = _message_list(value.get(container))
        if messages is None:
            continue
        found = _pointers(f"/{container}", messages)
        if container == "input":
            found += _pointers("/output", _message_list(value.get("output")) or ())
        return _Conversation(found, value)
    return None


def _message_list(value: object) -> list[object] | None:
    """The list of messages that ``value`` is, or that it holds as a JSON text."""
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        try:
            value = load_json(value)
        except InvalidJSON:
            return None
    return value if isinstance(value, list) and _mostly_messages(value) else None


def _pointers(container: str, messages: Sequence[object]) -> tuple[tuple[str, object], ...]:
    return tuple((f"{container}/{number}", message) for number, message in enumerate(messages))


def _is_set(document: object) -> bool:
    return isinstance(document, list) and any(map(_conversation, document[:_LOOKED_AT]))


def _flavour(trace: Trace) -> str:
    return {
        "tau-bench": "tau-bench",
        "Who&When": "who-and-when",
    }.get(trace.meta.benchmark or "", MessageListReader.name)


def _facts(
    record: Mapping[str, object], messages: Sequence[tuple[str, object]], steps: Sequence[Step]
) -> TraceMeta:
    meta = facts_of_record(record, steps)
    system = meta.system or _system(messages)
    if "history" in record and "mistake_agent" in record:
        # A correct answer is no success here: the set holds runs that failed.
        outcome = Outcome.FAILED if meta.outcome is Outcome.FAILED else Outcome.UNKNOWN
        return replace(meta, system=system, benchmark="Who&When", outcome=outcome)
    if "traj" in record and "reward" in record:
        hidden = meta.hidden
        info = record.get("info")
        if isinstance(info, Mapping) and info.get("task") is not None:
            hidden += (("task", dump_text(info["task"])),)
        task = task_of(steps=steps)
        return replace(meta, task=task, system=system, benchmark="tau-bench", hidden=hidden)
    return replace(meta, system=system)


def _system(messages: Sequence[tuple[str, object]]) -> str | None:
    """The framework that the speakers give away."""
    speakers = set()
    for _key, message in messages:
        if isinstance(message, Mapping):
            speakers.add(as_text(message.get("role")))
            speakers.add(as_text(message.get("name")))
    if any(speaker and speaker.startswith("Orchestrator (") for speaker in speakers):
        return "Magentic-One"
    return "AG2" if "Computer_terminal" in speakers else None

"""Transcripts kept as lists of chat messages, by whatever wrote them.

Known by name are tau-bench, Who&When and Magentic-One's logs; messages of any other shape that
``message_shapes`` knows are read the same way. A file holds one conversation, a list of them, one
a line, or one message a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from mast_tui.traces.index.document import DocumentTrace
from mast_tui.traces.io.json_values import canonical_bytes
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem
from mast_tui.traces.readers.chat.containers import (
    Conversation,
    conversation_in,
    is_set,
    mostly_messages,
)
from mast_tui.traces.readers.chat.traces import KEY_SCHEME, NAME, format_of, trace_of
from mast_tui.traces.readers.json_documents import json_lines_head, read_document, read_lines


@dataclass(frozen=True, slots=True)
class MessageListReader:
    """Reads message lists; span keys are JSON pointers within the record, calls go by their id."""

    name: ClassVar[str] = NAME
    key_scheme: ClassVar[int] = KEY_SCHEME

    def recognises(self, source: Source) -> bool:
        """Whether the file, or the first records of a JSONL file, hold chat messages."""
        if head := json_lines_head(source):
            return mostly_messages(head) or any(map(conversation_in, head))
        document = read_document(source)
        return conversation_in(document) is not None or is_set(document)

    def read(self, source: Source) -> FileReport:
        """One trace per conversation; elements that are none are listed as problems."""
        problems: list[Problem] = []
        if json_lines_head(source):
            traces = _read_lines(source, problems)
        else:
            document = read_document(source)
            if (conversation := conversation_in(document)) is not None:
                traces = [trace_of(source.path, conversation, None, source.data, "")]
            else:
                traces = _read_set(source, document, problems)
        return FileReport(
            source.path, format=format_of(traces), traces=tuple(traces), problems=tuple(problems)
        )


READER: Final = MessageListReader()


def _read_lines(source: Source, problems: list[Problem]) -> list[DocumentTrace]:
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


def _read_set(source: Source, document: object, problems: list[Problem]) -> list[DocumentTrace]:
    traces = []
    for record, value in enumerate(document if isinstance(document, list) else ()):
        conversation = conversation_in(value)
        if conversation is None:
            problems.append(Problem(f"/{record}", "no list of messages, left out"))
            continue
        content = canonical_bytes(value)
        traces.append(trace_of(source.path, conversation, record, content, f"/{record}"))
    return traces

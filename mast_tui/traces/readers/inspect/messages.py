"""Spans of the chat messages of an Inspect sample, one for all repetitions of a message.

Newer logs have messages in a pool, and the inputs of model calls as index ranges of the pool. A
sample has some texts once and refers to them as ``attachment://<hash>``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final, Unpack

import orjson

from mast_tui.traces.index.document import StepDetails, StepList
from mast_tui.traces.io.json_values import as_count, as_text, dump_text
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.messages import MessageToolCall
from mast_tui.traces.readers.chat.values import known_part_text
from mast_tui.traces.readers.json_fields import (
    Fields,
    add_new,
    fields_of,
    items_of,
    kind_of,
    located_items,
    short_name,
)

_REFERENCE: Final = re.compile(r"(?:attachment|tc)://([0-9A-Za-z_.-]{1,64})")
_QUOTED_REFERENCE: Final = re.compile(r'"(?:attachment|tc)://([0-9A-Za-z_.-]{1,64})"')
_MAX_REFERENCE_CHARS: Final = 80
_MAX_COPIED_CHARS: Final = 64 << 20
_MAX_INDENTED_CHARS: Final = 1 << 20
_MAX_INDENT_FACTOR: Final = 4
_MAX_INDENT_EXTRA: Final = 4 << 10


class Attachments:
    """The attachments of one sample by hash (by number in chunked logs).

    A reference to an unknown attachment stays as it is and is counted in ``missing_count``. A copy
    of an attachment within a longer text counts against ``_MAX_COPIED_CHARS``. References beyond
    the limit stay and are counted in ``skipped_count``.
    """

    def __init__(self, texts: object) -> None:
        if isinstance(texts, list):  # chunked logs, with numbers as references
            self._texts = {str(number): text for number, text in enumerate(texts)}
        else:
            self._texts = dict(texts) if isinstance(texts, Mapping) else {}
        self._copied_chars_left = _MAX_COPIED_CHARS
        self.missing_count = 0
        """The number of references to attachments that the sample lacks."""
        self.skipped_count = 0
        """The number of references beyond the limit."""

    def text(self, text: str) -> str:
        """Return ``text``, or the attachment that it refers to."""
        if len(text) > _MAX_REFERENCE_CHARS:
            return text
        match = _REFERENCE.fullmatch(text)
        return text if match is None else self._attachment_text(match[1]) or text

    def piece(self, value: object) -> str:
        """Return a JSON value as text for use inside a longer text.

        A reference stays if the limit forbids a further copy of its attachment.
        """
        if not isinstance(value, str):
            return self.dumped(value)
        text = self.text(value)
        is_reference = text is not value
        return value if is_reference and not self._reserve_copy(text) else text

    def dumped(self, value: object) -> str:
        """Return a JSON value as text with its attachments filled in."""
        if isinstance(value, str):
            return self.text(value)
        text = json_text(value)
        return text if "://" not in text else _QUOTED_REFERENCE.sub(self._quoted_attachment, text)

    def content(self, content: object) -> str:
        """Return the text of a message's content; parts of a list are joined by newlines."""
        if isinstance(content, str):
            return self.text(content)
        if not isinstance(content, list):
            return "" if content is None else self.part(content)
        if len(content) == 1:
            # An attachment that is the whole text is no copy, so it has no limit.
            return self.part(content[0])
        return "\n".join(self.part(part, is_within_text=True) for part in content)

    def part(self, part: object, *, is_within_text: bool = False) -> str:
        """Return the text of one part of a message, or a note in brackets for a picture or file.

        Args:
            part: The part.
            is_within_text: Whether the text is for use inside a longer text.
        """
        fill_in = self.piece if is_within_text else self.text
        if isinstance(part, str):
            return fill_in(part)
        fields = fields_of(part)
        reasoning = fields.get("reasoning")
        text = reasoning if isinstance(reasoning, str) else known_part_text(fields)
        if text is None or kind_of(part) == "data":  # data may have references within
            return self.dumped(part)
        return fill_in(text)

    def error(self, error: object) -> str:
        """Return the message and the traceback of an error."""
        fields = (as_text(fields_of(error).get(name)) for name in ("message", "traceback"))
        return self.joined(*fields, separator="\n\n") or self.dumped(error)

    def joined(self, *values: object, separator: str = "\n") -> str:
        """Return the texts of JSON values one after the other, without empty ones."""
        return separator.join(self.piece(value) for value in values if value not in (None, ""))

    def with_error(self, text: str, error: object) -> tuple[str, SpanStatus]:
        """Return a tool's output with the error of its call, and the status of the result.

        The error is appended unless the output has it already.

        Args:
            text: The output.
            error: The error, or None.
        """
        if error is None:
            return text, SpanStatus.UNKNOWN
        message = error.get("message") if isinstance(error, Mapping) else error
        error_text = self.piece(error if message is None else message)
        if error_text.strip() and error_text not in text:
            text = f"{text}\n{error_text}" if text else error_text
        return text, SpanStatus.ERROR

    def _quoted_attachment(self, match: re.Match[str]) -> str:
        """Return the attachment of a reference as a JSON string.

        The reference stays if the attachment is missing, or the limit forbids a further copy.
        """
        text = self._attachment_text(match[1])
        if text is None or not self._reserve_copy(text):
            return match[0]
        return orjson.dumps(text).decode()

    def _reserve_copy(self, text: str) -> bool:
        """Count a copy of this text against the limit; return False if the limit forbids it."""
        if len(text) > self._copied_chars_left:
            self.skipped_count += 1
            return False
        self._copied_chars_left -= len(text)
        return True

    def _attachment_text(self, name: str) -> str | None:
        """Return the attachment with this name; count a missing attachment."""
        text = self._texts.get(name)
        if isinstance(text, str):
            return text
        self.missing_count += 1
        return None


def json_text(value: object) -> str:
    """Return a JSON value as text, indented unless it is very large or very deep."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        compact_text = orjson.dumps(value).decode()
    except TypeError:  # orjson refuses deep values
        return dump_text(value)
    if len(compact_text) > _MAX_INDENTED_CHARS:
        return compact_text
    indented_text = dump_text(value)
    most_chars = _MAX_INDENT_FACTOR * len(compact_text) + _MAX_INDENT_EXTRA
    return indented_text if len(indented_text) <= most_chars else compact_text


_MAX_PROBLEMS: Final = 200
_ROLES: Final[Mapping[str, Role]] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
}
_KIND_BY_PART_TYPE: Final = {"reasoning": SpanKind.REASONING, "tool_use": SpanKind.TOOL_CALL}
"""The parts of a model's message other than texts. A ``tool_use`` ran at the provider."""


MessageIdentity = tuple[str, Hashable, tuple[str, ...]]
"""The role, the content, and the ids of the calls that a message makes or answers."""


@dataclass(frozen=True, slots=True)
class SpanContext:
    """The agent, the parent span and the times (Unix seconds) of a span."""

    agent: str = "assistant"
    parent: str | None = None
    start: float | None = None
    end: float | None = None


@dataclass(slots=True)
class History:
    """The messages in the model calls of one agent so far."""

    shown_counts: Counter[MessageIdentity] = field(default_factory=Counter)
    """The number of messages that have spans, by ``MessageSpans.identity``."""
    input_counts: Counter[MessageIdentity] = field(default_factory=Counter)
    """The number of messages in the current input, by ``MessageSpans.identity``."""
    input_ranges: list[tuple[int, int]] = field(default_factory=list)
    """The ranges of the previous input in the message pool."""


class TooManySpans(Exception):
    """A sample with more spans than the limit."""


class MessageSpans:
    """The spans of messages, tool calls and tool results of one sample.

    A span's place is ``prefix`` and a JSON pointer in the sample. Every method that adds a span
    raises ``TooManySpans`` if the sample has ``max_spans`` spans already.
    """

    def __init__(self, attachments: Attachments, prefix: str, max_spans: int) -> None:
        self.steps = StepList()
        self.attachments = attachments
        self._max_spans = max_spans
        self.problems: list[Problem] = []
        self.calls: dict[str, MessageToolCall] = {}
        """The tool calls that have spans, by id."""
        self._prefix = prefix
        self._message_ids: set[str] = set()
        """The ids of the messages that have spans."""
        self._shown_counts: Counter[MessageIdentity] = Counter()
        """The number of messages that have spans, of all agents, by ``identity``."""

    def add_problem(self, pointer: str, message: str) -> None:
        """Record a problem, unless the sample has ``_MAX_PROBLEMS`` problems already.

        Args:
            pointer: The JSON pointer in the sample.
            message: The text of the problem.
        """
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(Problem(self._prefix + pointer, message))

    def identity(self, message: object) -> MessageIdentity:
        """Return a value that is equal for all repetitions of a message, even with other ids.

        The identity of a tool's result is its role and the id of its call. That of any other
        message is its role, its content and the ids of its calls.
        """
        if not isinstance(message, Mapping):
            return json_text(message), "", ()
        role = json_text(message.get("role"))
        call_id = as_text(message.get("tool_call_id"))
        if role == "tool" and call_id:
            return role, "", (call_id,)
        calls = items_of(message.get("tool_calls"))
        call_ids = tuple(json_text(fields_of(call).get("id", call)) for call in calls)
        content = message.get("content")
        if isinstance(content, list):
            return role, tuple(map(self.attachments.part, content)), call_ids
        return role, self.attachments.dumped(content), call_ids

    def is_new(self, message: object, identity: MessageIdentity, history: History) -> bool:
        """Return whether the next message in the input of a model call has no span yet.

        A message whose id has spans is not new. Otherwise equal messages are counted: if three of
        them have spans, the fourth in an input is new.

        Args:
            message: The message.
            identity: The ``identity`` of the message.
            history: The messages of the agent's calls so far; this message is counted in it.
        """
        history.input_counts[identity] += 1
        count = history.input_counts[identity]
        message_id = _message_id(message)
        if message_id is not None and message_id in self._message_ids:
            return False
        if count <= history.shown_counts[identity]:
            return False
        _role, _content, call_ids = identity
        if message_id is not None and not call_ids:
            return True  # equal messages with spans have other ids
        return count > self._shown_counts[identity]

    def first_without_span(self, messages: Sequence[object]) -> int:
        """Return the index after the last message with spans; 0 if no message has any."""
        counts: Counter[MessageIdentity] = Counter()
        first_index = 0
        for message_index, message in enumerate(messages):
            identity = self.identity(message)
            counts[identity] += 1
            has_known_id = _message_id(message) in self._message_ids
            # The first of several equal messages have the spans.
            if has_known_id or counts[identity] <= self._shown_counts[identity]:
                first_index = message_index + 1
        return first_index

    def mark(self, identity: MessageIdentity, history: History, message: object) -> None:
        """Record that a message has spans.

        Args:
            identity: The ``identity`` of the message.
            history: The messages of the agent's calls so far; this message is counted in it.
            message: The message with the id to record.
        """
        history.shown_counts[identity] += 1
        self._shown_counts[identity] += 1
        if (message_id := _message_id(message)) is not None:
            self._message_ids.add(message_id)

    def add(
        self, message: object, pointer: str, context: SpanContext, history: History, key: str | None
    ) -> str | None:
        """Add the spans of a message, and record that the message has spans.

        Args:
            message: The message.
            pointer: The JSON pointer of the message in the sample.
            context: The agent, parent span and times.
            history: The messages of the agent's calls so far; this message is counted in it.
            key: The span key of a message without an id; by default its pointer.

        Returns:
            The key of the last span.
        """
        self.mark(self.identity(message), history, message)
        if not isinstance(message, Mapping):
            self.add_problem(pointer, "not a message but a bare value")
            return self.log(json_text(message), pointer, context, key)
        own_key = _message_id(message) or key or pointer
        role = message.get("role")
        if role == "tool":
            return self._add_tool_message(message, pointer, context)
        if not isinstance(role, str) or not role:
            return self.log(self.attachments.dumped(message), pointer, context, own_key)
        if role == "assistant":
            return self._add_answer(message, pointer, context, own_key)
        text = self.attachments.content(message.get("content"))
        # The end is that of the model call, not of a message that the call has read.
        speaker_context = replace(context, agent=short_name(role), end=None)
        span_role = _ROLES.get(role, Role.AGENT)
        return self._add_span(SpanKind.MESSAGE, text, own_key, pointer, speaker_context, span_role)

    def log(
        self,
        text: str,
        pointer: str,
        context: SpanContext,
        key: str | None = None,
        *,
        name: str = "log",
        status: SpanStatus = SpanStatus.UNKNOWN,
    ) -> str:
        """Add a log span and return its key.

        Args:
            text: The text.
            pointer: The JSON pointer in the sample.
            context: The parent span and the times.
            key: The key of the span; by default the pointer.
            name: The author of the log.
            status: The status of the span.
        """
        log_context = replace(context, agent=short_name(name) or "log")
        return self._add_span(
            SpanKind.LOG, text, key or pointer, pointer, log_context, Role.LOG, status=status
        )

    def call(
        self, call: object, pointer: str, context: SpanContext, start: float | None = None
    ) -> str:
        """Add the span of a tool call and return its key.

        Args:
            call: The call.
            pointer: The JSON pointer in the sample.
            context: The agent, the parent span and the start.
            start: The time of the call; by default the start in ``context``.
        """
        if not isinstance(call, Mapping):
            self.add_problem(pointer, "not a tool call but a bare value")
            return self.log(json_text(call), pointer, context)
        text = self.attachments.dumped(call.get("arguments"))
        if error := as_text(call.get("parse_error")):
            text = f"{text}\n[{self.attachments.piece(error)}]".lstrip()
        call_id = as_text(call.get("id"))
        name = short_name(call.get("function")) or short_name(call.get("name")) or None
        key = self._add_span(
            SpanKind.TOOL_CALL,
            text,
            f"{call_id}:call" if call_id else pointer,
            pointer,
            replace(context, start=context.start if start is None else start, end=None),
            name=name,
        )

        if call_id:
            self.calls[call_id] = MessageToolCall(key, context.agent, name)
        return key

    def result(
        self,
        call_id: str | None,
        text: str,
        pointer: str,
        context: SpanContext,
        *,
        name: str | None = None,
        status: SpanStatus = SpanStatus.UNKNOWN,
        key: str | None = None,
    ) -> str:
        """Add the span of a tool result, set the end of its call, and return the span's key.

        Args:
            call_id: The id of the call.
            text: The result.
            pointer: The JSON pointer in the sample.
            context: The times of the result, and the default parent span.
            name: The default name of the tool.
            status: The status of the result.
            key: The key of a result without ``call_id``; by default the pointer.
        """
        call = self.calls.get(call_id) if call_id else None
        result_context = replace(context, agent=name or "tool", end=None)
        if call is not None:
            if context.end is not None:
                self.steps.amend(call.key, end=context.end)
            result_context = replace(result_context, agent=call.agent, parent=call.key)
            name = call.name or name
        own_key = f"{call_id}:result" if call_id else key or pointer
        return self._add_span(
            SpanKind.TOOL_RESULT,
            text,
            own_key,
            pointer,
            result_context,
            Role.TOOL,
            name=name,
            status=status,
        )

    def _add_span(
        self,
        kind: SpanKind,
        text: str,
        key: str,
        pointer: str,
        context: SpanContext,
        role: Role = Role.AGENT,
        **details: Unpack[StepDetails],
    ) -> str:
        """Add a span and return its key.

        Raises:
            TooManySpans: The sample has ``max_spans`` spans already.
        """
        if len(self.steps) >= self._max_spans:
            raise TooManySpans(
                f"there are more than {self._max_spans} steps; the rest was left out"
            )
        details["parent"] = context.parent
        details["place"] = self._prefix + pointer
        details["start"] = context.start
        details["end"] = context.end
        return self.steps.add(key, kind, role, context.agent, text, **details)

    def _add_tool_message(self, message: Fields, pointer: str, context: SpanContext) -> str:
        """Add the span of a tool's message and return its key."""
        output = self.attachments.content(message.get("content"))
        text, status = self.attachments.with_error(output, message.get("error"))
        return self.result(
            as_text(message.get("tool_call_id")),
            text,
            pointer,
            SpanContext(parent=context.parent),  # a message has no time
            name=short_name(message.get("function")) or None,
            status=status,
            key=_message_id(message),
        )

    def _add_answer(
        self, message: Fields, pointer: str, context: SpanContext, key: str
    ) -> str | None:
        """Add the reasoning, texts and calls of a model's message; return the last span's key."""
        last_key: str | None = None
        reasoning = message.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            text = self.attachments.text(reasoning)
            own_key = f"{key}/reasoning"
            own_pointer = f"{pointer}/reasoning"
            last_key = self._add_span(SpanKind.REASONING, text, own_key, own_pointer, context)

        content = message.get("content")
        if isinstance(content, list):
            last_key = self._add_parts(content, pointer, context, key) or last_key
        elif text := self.attachments.content(content):
            last_key = self._add_span(SpanKind.MESSAGE, text, key, pointer, context)

        for call_pointer, call in located_items(message.get("tool_calls"), f"{pointer}/tool_calls"):
            # A call begins at the end of the model's message.
            last_key = self.call(call, call_pointer, context, context.end)
        if last_key is None:
            last_key = self._add_span(SpanKind.MESSAGE, "", key, pointer, context)
        return last_key

    def _add_parts(
        self, parts: list[object], pointer: str, context: SpanContext, key: str
    ) -> str | None:
        """Add the spans of a message's parts; return the last span's key.

        Adjacent text parts become one message. The first part has ``key`` without a suffix.
        """
        last_key: str | None = None
        for kind, group in groupby(enumerate(parts), _kind_of_numbered_part):
            numbered_parts = list(group)
            if kind is SpanKind.MESSAGE:
                first_index, _part = numbered_parts[0]
                suffix = f"/content/{first_index}" if first_index else ""
                if text := self.attachments.content([part for _index, part in numbered_parts]):
                    last_key = self._add_span(kind, text, key + suffix, pointer + suffix, context)
                continue

            for part_index, part in numbered_parts:
                suffix = f"/content/{part_index}"
                if kind is SpanKind.REASONING:
                    text = self._reasoning_text(fields_of(part))
                    last_key = self._add_span(kind, text, key + suffix, pointer + suffix, context)
                else:
                    last_key = self._add_server_tool(fields_of(part), pointer + suffix, context)
        return last_key

    def _reasoning_text(self, part: Fields) -> str:
        """Return the text of a reasoning part; for a redacted part, its summary or a note."""
        summary = as_text(part.get("summary"))
        if part.get("redacted") is True:
            return self.attachments.text(summary) if summary else "[reasoning hidden]"
        text = as_text(part.get("reasoning")) or summary
        return self.attachments.text(text) if text else ""

    def _add_server_tool(self, part: Fields, pointer: str, context: SpanContext) -> str:
        """Add the call and the result of a provider's tool; return the last span's key."""
        call_key = self.call(part, pointer, context)
        if part.get("result") is None and part.get("error") is None:
            return call_key
        result = self.attachments.dumped(part.get("result"))
        text, status = self.attachments.with_error(result, part.get("error"))
        return self.result(
            as_text(part.get("id")),
            text,
            pointer,
            SpanContext(parent=context.parent, start=context.end, end=context.end),
            name=short_name(part.get("name")) or None,
            status=status,
            key=f"{pointer}/result",
        )


def _kind_of_numbered_part(numbered_part: tuple[int, object]) -> SpanKind:
    """Return the kind of span that a part of a model's message becomes."""
    _index, part = numbered_part
    return _KIND_BY_PART_TYPE.get(kind_of(part), SpanKind.MESSAGE)


def _message_id(message: object) -> str | None:
    return as_text(fields_of(message).get("id"))


_MAX_LOOKUPS: Final = 300_000
_LAST_MESSAGES: Final = 50

Ranges = list[tuple[int, int]]
"""Pairs of first and end index."""


class MessagePool:
    """The pooled messages of one sample.

    Every model call names its whole input, so the common beginning with the previous input is
    skipped. After ``_MAX_LOOKUPS`` lookups, only the last messages of an input are read.
    """

    def __init__(self, sample: Fields, spans: MessageSpans) -> None:
        self._pool: list[object] = []
        self._pool_pointer = ""
        self._spans = spans
        # An identity is costly, so it is computed once for each message of the pool.
        self._identity_by_index: dict[int, MessageIdentity] = {}
        self._reported_messages: set[str] = set()
        data = sample.get("events_data")
        if isinstance(data, Mapping) and isinstance(messages := data.get("messages"), list):
            self._pool = messages
            self._pool_pointer = "/events_data/messages"
        elif isinstance(messages := sample.get("message_pool"), list):
            self._pool = messages
            self._pool_pointer = "/message_pool"
        # The limit is never reached if each message of the pool is looked up once.
        self._lookups_left = _MAX_LOOKUPS + len(self._pool)

    def new_in(
        self, refs: list[object], pointer: str, history: History
    ) -> Iterator[tuple[object, str]]:
        """Yield the messages in the input of a model call that have no spans, with JSON pointers.

        The common beginning with the previous input is skipped.

        Args:
            refs: The ranges of the input in the pool.
            pointer: The JSON pointer of ``refs``, for problems.
            history: The messages of the agent's calls so far; new messages are counted in it.
        """
        ranges = self._merged_ranges(refs, pointer)
        added_ranges = _added_ranges(history.input_ranges, ranges)
        if added_ranges is None:  # the input does not continue the previous input
            history.input_counts = Counter()
            added_ranges = ranges
        history.input_ranges = ranges
        for index in self._indices_within_limit(added_ranges, pointer):
            message = self._pool[index]
            identity = self._identity_by_index.get(index)
            if identity is None:
                identity = self._identity_by_index[index] = self._spans.identity(message)
            if self._spans.is_new(message, identity, history):
                yield message, f"{self._pool_pointer}/{index}"

    def messages(self, refs: list[object], pointer: str) -> list[object]:
        """Return the messages of ranges in the pool, within the limit of lookups.

        Args:
            refs: The ranges.
            pointer: The JSON pointer of ``refs``, for problems.
        """
        ranges = self._merged_ranges(refs, pointer)
        return [self._pool[index] for index in self._indices_within_limit(ranges, pointer)]

    def _indices_within_limit(self, ranges: Ranges, pointer: str) -> Iterator[int]:
        """Yield the indices in some ranges; above the limit only the last, with a problem."""
        count = sum(end - start for start, end in ranges)
        if count > self._lookups_left:
            message = "inputs repeat too much; only the last messages are read"
            self._report_once(message, pointer)
            start, end = ranges[-1]
            ranges = [(max(start, end - _LAST_MESSAGES), end)]
        else:
            self._lookups_left -= count
        for start, end in ranges:
            yield from range(start, end)

    def _merged_ranges(self, refs: list[object], pointer: str) -> Ranges:
        """Return the ranges in ``refs`` with adjacent ones joined; report those beyond the pool."""
        ranges: Ranges = []
        for ref in refs:
            pair = ref if isinstance(ref, list) and len(ref) == 2 else (None, None)
            start, end = map(as_count, pair)
            if start is None or end is None or end > len(self._pool):
                self._report_once("refers to messages that are not in the pool", pointer)
                end = min(end or 0, len(self._pool))
            if start is None or start >= end:
                continue
            # No range begins at -1.
            previous_start, previous_end = ranges[-1] if ranges else (0, -1)
            if previous_end == start:
                ranges[-1] = (previous_start, end)
            else:
                ranges.append((start, end))
        return ranges

    def _report_once(self, message: str, pointer: str) -> None:
        if add_new(self._reported_messages, message):
            self._spans.add_problem(pointer, message)


def _added_ranges(previous_ranges: Ranges, ranges: Ranges) -> Ranges | None:
    """Return the ranges that follow ``previous_ranges`` in ``ranges``.

    The last of the previous ranges may be longer there. The result is None if ``ranges`` does not
    continue the previous ranges.
    """
    if not previous_ranges:
        return None
    last_index = len(previous_ranges) - 1
    if len(ranges) <= last_index or ranges[:last_index] != previous_ranges[:last_index]:
        return None
    previous_start, previous_end = previous_ranges[last_index]
    start, end = ranges[last_index]
    if start != previous_start or end < previous_end:
        return None
    return [(previous_end, end), *ranges[last_index + 1 :]]

"""Spans of the chat messages of an Inspect sample, one for each message that calls repeat.

Newer logs store messages in a pool, and the inputs of model calls as index ranges of the pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Unpack

from mast_tui.traces.index.document import More, StepList
from mast_tui.traces.io.json_values import as_count, as_text
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.messages import MessageToolCall
from mast_tui.traces.readers.inspect.attachments import Attachments, json_text
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, short_name

_LISTED_PROBLEMS: Final = 200
_ROLES: Final[Mapping[str, Role]] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
}


@dataclass(frozen=True, slots=True)
class Acting:
    """The agent, the parent span and the times (Unix seconds) of a span."""

    agent: str = "assistant"
    parent: str | None = None
    start: float | None = None
    end: float | None = None


@dataclass(slots=True)
class History:
    """The messages in the model calls of one agent so far."""

    added: Counter[Hashable] = field(default_factory=Counter)
    """The number of spans by a message's identity."""
    counts: Counter[Hashable] = field(default_factory=Counter)
    """The number of messages in the current input by their identity."""
    ranges: list[tuple[int, int]] = field(default_factory=list)
    """The ranges of the previous input in the message pool."""


class TooManySpans(Exception):
    """A sample with more spans than the limit, which the message names."""


class MessageSpans:
    """The spans of messages, tool calls and tool results of one sample.

    A span's place is ``prefix`` and a JSON pointer within the sample. Beyond ``most`` spans every
    method that adds one raises ``TooManySpans``.
    """

    def __init__(self, attachments: Attachments, prefix: str, most: int) -> None:
        self.steps = StepList()
        self.attachments = attachments
        self._most = most
        self.problems: list[Problem] = []
        self.calls: dict[str, MessageToolCall] = {}
        """The tool calls that have spans, by id."""
        self._prefix = prefix
        self._ids: set[str] = set()
        self._added: Counter[Hashable] = Counter()

    def add_problem(self, pointer: str, message: str) -> None:
        """Record a problem; only the first of a sample are listed.

        Args:
            pointer: The JSON pointer in the sample.
            message: The problem in words.
        """
        if len(self.problems) < _LISTED_PROBLEMS:
            self.problems.append(Problem(self._prefix + pointer, message))

    def identity(self, message: object) -> Hashable:
        """Return what identifies a message that is repeated under another id, or under none."""
        if not isinstance(message, Mapping):
            return json_text(message)
        role = json_text(message.get("role"))
        call_id = as_text(message.get("tool_call_id"))
        if role == "tool" and call_id:
            return role, call_id
        ids = tuple(map(_id_of, items_of(message.get("tool_calls"))))
        content = message.get("content")
        if isinstance(content, list):
            return role, tuple(map(self.attachments.part, content)), ids
        return role, self.attachments.dumped(content), ids

    def is_new(self, message: object, identity: Hashable, history: History) -> bool:
        """Return True if the next message of an input has no span yet.

        Messages that share an identity are counted: as many as have spans are not new.

        Args:
            message: The message.
            identity: Its ``identity``.
            history: The history of the agent; the message is counted in it.
        """
        history.counts[identity] += 1
        message_id = _message_id(message)
        if message_id is not None and message_id in self._ids:
            return False
        if history.counts[identity] <= history.added[identity]:
            return False
        if message_id is not None and not _is_of_a_call(identity):
            return True  # Another agent got the same message.
        return history.counts[identity] > self._added[identity]

    def first_without_span(self, messages: Sequence[object]) -> int:
        """Return the index after the last message that has spans."""
        counts: Counter[Hashable] = Counter()
        first = 0
        for number, message in enumerate(messages):
            identity = self.identity(message)
            counts[identity] += 1
            if _message_id(message) in self._ids or counts[identity] <= self._added[identity]:
                first = number + 1
        return first

    def mark(self, identity: Hashable, history: History, message: object = None) -> None:
        """Record that a message has spans.

        Args:
            identity: The ``identity`` of the message.
            history: The history of the agent that has read it.
            message: The message, for its id.
        """
        history.added[identity] += 1
        self._added[identity] += 1
        if (message_id := _message_id(message)) is not None:
            self._ids.add(message_id)

    def add(
        self, message: object, pointer: str, acting: Acting, history: History, key: str | None
    ) -> str | None:
        """Add the spans of a message.

        Args:
            message: The message.
            pointer: Its JSON pointer within the sample.
            acting: The agent, parent span and times.
            history: The history of the agent.
            key: The span key of a message without an id; its pointer by default.

        Returns:
            The key of the last span, or None without spans.
        """
        self.mark(self.identity(message), history, message)
        if not isinstance(message, Mapping):
            self.add_problem(pointer, "not a message but a bare value")
            return self.log(json_text(message), pointer, acting, key)
        own_key = _message_id(message) or key or pointer
        role = message.get("role")
        if role == "tool":
            return self._tool_message(message, pointer, acting)
        if not isinstance(role, str) or not role:
            return self.log(self.attachments.dumped(message), pointer, acting, own_key)
        if role == "assistant":
            return self._add_answer(message, pointer, acting, own_key)
        text = self.attachments.content(message.get("content"))
        author = replace(acting, agent=short_name(role), end=None)
        side = _ROLES.get(role, Role.AGENT)
        return self._add_span(SpanKind.MESSAGE, text, own_key, pointer, author, side)

    def log(
        self,
        text: str,
        pointer: str,
        acting: Acting,
        key: str | None = None,
        *,
        name: str = "log",
        status: SpanStatus = SpanStatus.UNKNOWN,
    ) -> str:
        """Add a log span and return its key.

        Args:
            text: The text.
            pointer: The JSON pointer in the sample.
            acting: The agent and the times.
            key: The key; None for the pointer.
            name: The name of the author.
            status: The result of the step.
        """
        author = replace(acting, agent=short_name(name) or "log")
        own_key = key or pointer
        return self._add_span(SpanKind.LOG, text, own_key, pointer, author, Role.LOG, status=status)

    def call(self, call: object, pointer: str, acting: Acting, start: float | None = None) -> str:
        """Add the span of a tool call and return its key.

        Args:
            call: The call.
            pointer: The JSON pointer in the sample.
            acting: The agent and the times.
            start: The time of the call where it is not that of ``acting``.
        """
        if not isinstance(call, Mapping):
            self.add_problem(pointer, "not a tool call but a bare value")
            return self.log(json_text(call), pointer, acting)
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
            replace(acting, start=acting.start if start is None else start, end=None),
            name=name,
        )
        if call_id:
            self.calls[call_id] = MessageToolCall(key, acting.agent, name)
        return key

    def result(
        self,
        call_id: str | None,
        text: str,
        pointer: str,
        acting: Acting,
        *,
        name: str | None = None,
        status: SpanStatus = SpanStatus.UNKNOWN,
        key: str | None = None,
    ) -> str:
        """Add the span of a tool result and set the end of its call.

        Args:
            call_id: The id of the call.
            text: The result.
            pointer: The JSON pointer within the sample.
            acting: The agent, parent span and times, where the call has no span.
            name: The tool, where the call has no span.
            status: The status of the result.
            key: The span key of a result without ``call_id``; the pointer by default.
        """
        call = self.calls.get(call_id) if call_id else None
        if call is not None and acting.end is not None:
            self.steps.amend(call.key, end=acting.end)
        acting = replace(acting, agent=name or "tool", end=None)
        if call is not None:
            acting = replace(acting, agent=call.agent, parent=call.key)
            name = call.name or name
        own_key = f"{call_id}:result" if call_id else key or pointer
        return self._add_span(
            SpanKind.TOOL_RESULT,
            text,
            own_key,
            pointer,
            acting,
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
        acting: Acting,
        role: Role = Role.AGENT,
        **more: Unpack[More],
    ) -> str:
        """Add a span and return its key.

        Raises:
            TooManySpans: The sample has as many spans as it may.
        """
        if len(self.steps) >= self._most:
            raise TooManySpans(f"there are more than {self._most} steps; the rest was left out")
        more["parent"] = acting.parent
        more["place"] = self._prefix + pointer
        more["start"] = acting.start
        more["end"] = acting.end
        return self.steps.add(key, kind, role, acting.agent, text, **more)

    def _tool_message(self, message: Fields, pointer: str, acting: Acting) -> str:
        output = self.attachments.content(message.get("content"))
        text, status = self.attachments.with_error(output, message.get("error"))
        return self.result(
            as_text(message.get("tool_call_id")),
            text,
            pointer,
            # A message has no time of its own.
            Acting(acting.agent, acting.parent),
            name=short_name(message.get("function")) or None,
            status=status,
            key=_message_id(message),
        )

    def _add_answer(self, message: Fields, pointer: str, acting: Acting, key: str) -> str | None:
        """Add the thoughts, texts and calls of a model's message; return the last span's key."""
        last: str | None = None
        reasoning = message.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            text = self.attachments.text(reasoning)
            suffix = "/reasoning"
            last = self._add_span(SpanKind.REASONING, text, key + suffix, pointer + suffix, acting)
        content = message.get("content")
        if isinstance(content, list):
            last = self._parts(content, pointer, acting, key) or last
        elif text := self.attachments.content(content):
            last = self._add_span(SpanKind.MESSAGE, text, key, pointer, acting)
        for number, call in enumerate(items_of(message.get("tool_calls"))):
            last = self.call(call, f"{pointer}/tool_calls/{number}", acting, acting.end)
        if last is None:
            last = self._add_span(SpanKind.MESSAGE, "", key, pointer, acting)
        return last

    def _parts(self, parts: list[object], pointer: str, acting: Acting, key: str) -> str | None:
        last: str | None = None
        texts: list[object] = []
        first = 0
        for number, part in enumerate([*parts, None]):
            kind = part.get("type") if isinstance(part, Mapping) else None
            if number < len(parts) and kind not in ("reasoning", "tool_use"):
                if not texts:
                    first = number
                texts.append(part)
                continue
            if text := self.attachments.content(texts):
                suffix = f"/content/{first}" if first else ""
                last = self._add_span(
                    SpanKind.MESSAGE, text, key + suffix, pointer + suffix, acting
                )
            texts = []
            if not isinstance(part, Mapping):
                continue
            part_pointer = f"{pointer}/content/{number}"
            if kind == "reasoning":
                text = self._reasoning(part)
                own_key = f"{key}/content/{number}"
                last = self._add_span(SpanKind.REASONING, text, own_key, part_pointer, acting)
            else:
                last = self._server_tool(part, part_pointer, acting)
        return last

    def _reasoning(self, part: Fields) -> str:
        """Return the text of a reasoning part; of redacted ones the summary, or a note."""
        summary = as_text(part.get("summary"))
        if part.get("redacted") is True:
            return self.attachments.text(summary) if summary else "[reasoning hidden]"
        text = as_text(part.get("reasoning")) or summary
        return self.attachments.text(text) if text else ""

    def _server_tool(self, part: Fields, pointer: str, acting: Acting) -> str:
        """Add call and result of a tool that the model's provider ran: one part holds both."""
        last = self.call(part, pointer, acting)
        if part.get("result") is None and part.get("error") is None:
            return last
        result = self.attachments.dumped(part.get("result"))
        text, status = self.attachments.with_error(result, part.get("error"))
        return self.result(
            as_text(part.get("id")),
            text,
            pointer,
            Acting(acting.agent, acting.parent, acting.end, acting.end),
            name=short_name(part.get("name")) or None,
            status=status,
            key=f"{pointer}/result",
        )


def _message_id(message: object) -> str | None:
    return as_text(fields_of(message).get("id"))


def _is_of_a_call(identity: Hashable) -> bool:
    """Return True if an identity holds ids of tool calls, so that no other message has it."""
    return isinstance(identity, tuple) and bool(identity[-1])


def _id_of(call: object) -> str:
    return json_text(call.get("id") if isinstance(call, Mapping) else call)


_MOST_LOOKUPS: Final = 300_000
_LAST_OF_AN_INPUT: Final = 50

Ranges = list[tuple[int, int]]
"""Pairs of first and end index."""


class MessagePool:
    """The pooled messages of one sample.

    Every call names its whole input, so that looking up each message would cost the square of the
    run's length. What an input shares with the previous one is skipped, and after
    ``_MOST_LOOKUPS`` only the last messages of an input are looked up.
    """

    def __init__(self, sample: Fields, spans: MessageSpans) -> None:
        self._pool: list[object] = []
        self._pointer = ""
        self._spans = spans
        self._identities: dict[int, Hashable] = {}
        self._reported: set[str] = set()
        data = sample.get("events_data")
        if isinstance(data, Mapping) and isinstance(messages := data.get("messages"), list):
            self._pool = messages
            self._pointer = "/events_data/messages"
        elif isinstance(messages := sample.get("message_pool"), list):
            self._pool = messages
            self._pointer = "/message_pool"
        self._left = _MOST_LOOKUPS + len(self._pool)

    def new_in(
        self, refs: list[object], pointer: str, history: History
    ) -> Iterator[tuple[object, str]]:
        """Yield the messages of an input that have no spans, with their pointers in the sample.

        Args:
            refs: The ranges of the input in the pool.
            pointer: The JSON pointer of ``refs``, for problems.
            history: The history of the agent.
        """
        ranges = self._ranges(refs, pointer)
        added = _continuation(history.ranges, ranges)
        if added is None:
            history.counts = Counter()
            added = ranges
        history.ranges = ranges
        for index in self._indices(added, pointer):
            message = self._pool[index]
            identity = self._identities.get(index)
            if identity is None:
                identity = self._identities[index] = self._spans.identity(message)
            if self._spans.is_new(message, identity, history):
                yield message, f"{self._pointer}/{index}"

    def messages(self, refs: list[object], pointer: str) -> list[object]:
        """Return the messages of ranges in the pool, within the limit of lookups.

        Args:
            refs: The ranges.
            pointer: The JSON pointer of ``refs``, for problems.
        """
        return [self._pool[index] for index in self._indices(self._ranges(refs, pointer), pointer)]

    def _indices(self, ranges: Ranges, pointer: str) -> Iterator[int]:
        count = sum(last - first for first, last in ranges)
        if count > self._left:
            self._report("inputs repeat too much; only the last messages are looked at", pointer)
            ranges = _last_of(ranges, _LAST_OF_AN_INPUT)
        else:
            self._left -= count
        for first, last in ranges:
            yield from range(first, last)

    def _ranges(self, refs: list[object], pointer: str) -> Ranges:
        ranges: Ranges = []
        for ref in refs:
            pair = ref if isinstance(ref, list) and len(ref) == 2 else (None, None)
            first, last = map(as_count, pair)
            if first is None or last is None or last > len(self._pool):
                self._report("refers to messages that are not in the pool", pointer)
                last = min(last or 0, len(self._pool))
            if first is None or first >= last:
                continue
            if ranges and ranges[-1][1] == first:
                ranges[-1] = (ranges[-1][0], last)
            else:
                ranges.append((first, last))
        return ranges

    def _report(self, message: str, pointer: str) -> None:
        if message not in self._reported:
            self._reported.add(message)
            self._spans.add_problem(pointer, message)


def _continuation(previous: Ranges, ranges: Ranges) -> Ranges | None:
    """Return the ranges that extend ``previous``; None if ``ranges`` does not begin with it."""
    if not previous:
        return None
    last = len(previous) - 1
    if len(ranges) <= last or ranges[:last] != previous[:last]:
        return None
    if ranges[last][0] != previous[last][0] or ranges[last][1] < previous[last][1]:
        return None
    return [(previous[last][1], ranges[last][1]), *ranges[last + 1 :]]


def _last_of(ranges: Ranges, number: int) -> Ranges:
    selected: Ranges = []
    for first, last in reversed(ranges):
        if number <= 0:
            break
        selected.append((max(first, last - number), last))
        number -= last - selected[-1][0]
    return selected[::-1]

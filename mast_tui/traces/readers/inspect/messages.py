"""Chat messages of an Inspect sample to spans, each shown once however often a call repeats it.

Newer logs keep messages in a pool, and the inputs of model calls as ranges of its numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Unpack

from mast_tui.traces.index.document import More, StepList
from mast_tui.traces.io.json_values import as_count, as_text
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.messages import Call
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
    """Who acts in a stretch of the run, within which span, and when; times are Unix seconds."""

    agent: str = "assistant"
    parent: str | None = None
    start: float | None = None
    end: float | None = None


@dataclass(slots=True)
class History:
    """What one agent's model calls have brought so far."""

    shown: Counter[Hashable] = field(default_factory=Counter)
    """How often a message of this content was shown."""
    counts: Counter[Hashable] = field(default_factory=Counter)
    """How often a message of this content stands in the input that is being looked at."""
    ranges: list[tuple[int, int]] = field(default_factory=list)
    """The last input as ranges of the pool, where messages are pooled."""


class TooManySpans(Exception):
    """A sample has more spans than are kept in memory; the message says how many."""


class MessageSpans:
    """Adds the spans of messages, tool calls and tool results of one sample.

    ``prefix`` goes before a JSON pointer within the sample to make a place. Beyond ``most`` spans
    every method that adds one raises ``TooManySpans``.
    """

    def __init__(self, attachments: Attachments, prefix: str, most: int) -> None:
        self.steps = StepList()
        self.attachments = attachments
        self._most = most
        self.problems: list[Problem] = []
        self.calls: dict[str, Call] = {}
        """By their ids the tool calls that have spans."""
        self._prefix = prefix
        self._ids: set[str] = set()
        self._shown: Counter[Hashable] = Counter()

    def add_problem(self, pointer: str, message: str) -> None:
        """Note a problem; of a sample that is broken all over only the first are listed."""
        if len(self.problems) < _LISTED_PROBLEMS:
            self.problems.append(Problem(self._prefix + pointer, message))

    def identity(self, message: object) -> Hashable:
        """By which a message is known again where it is repeated under no id, or a new one."""
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
        """Whether the next message of an input has not been shown yet.

        Of messages that share their content as many count as shown as were.
        """
        history.counts[identity] += 1
        message_id = _message_id(message)
        if message_id is not None and message_id in self._ids:
            return False
        if history.counts[identity] <= history.shown[identity]:
            return False
        if message_id is not None and not _is_of_a_call(identity):
            return True  # another agent was told the same
        return history.counts[identity] > self._shown[identity]

    def unshown_end(self, messages: Sequence[object]) -> int:
        """From which number on nobody was shown these messages; their length where all were."""
        counts: Counter[Hashable] = Counter()
        first = 0
        for number, message in enumerate(messages):
            identity = self.identity(message)
            counts[identity] += 1
            known = _message_id(message) in self._ids or counts[identity] <= self._shown[identity]
            if known:
                first = number + 1
        return first

    def mark(self, identity: Hashable, history: History, message: object = None) -> None:
        """Note that a message was shown."""
        history.shown[identity] += 1
        self._shown[identity] += 1
        if (message_id := _message_id(message)) is not None:
            self._ids.add(message_id)

    def add(
        self, message: object, pointer: str, acting: Acting, history: History, key: str | None
    ) -> str | None:
        """Add the spans of a message and return the key of the last; None where it has none.

        A message without an id goes by ``key``, or by its pointer.
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
            return self._assistant(message, pointer, acting, own_key)
        text = self.attachments.content(message.get("content"))
        side, told = _ROLES.get(role, Role.AGENT), replace(acting, end=None)
        return self._put(SpanKind.MESSAGE, side, short_name(role), text, own_key, pointer, told)

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
        """Add a log span; ``name`` is who wrote it."""
        teller = short_name(name) or "log"
        own_key = key or pointer
        return self._put(
            SpanKind.LOG, Role.LOG, teller, text, own_key, pointer, acting, status=status
        )

    def call(self, call: object, pointer: str, acting: Acting, start: float | None = None) -> str:
        """Add the span of a tool call and return its key."""
        if not isinstance(call, Mapping):
            self.add_problem(pointer, "not a tool call but a bare value")
            return self.log(json_text(call), pointer, acting)
        text = self.attachments.dumped(call.get("arguments"))
        if error := as_text(call.get("parse_error")):
            text = f"{text}\n[{self.attachments.piece(error)}]".lstrip()
        call_id = as_text(call.get("id"))
        name = short_name(call.get("function")) or short_name(call.get("name")) or None
        key = self._put(
            SpanKind.TOOL_CALL,
            Role.AGENT,
            acting.agent,
            text,
            f"{call_id}:call" if call_id else pointer,
            pointer,
            replace(acting, start=acting.start if start is None else start, end=None),
            name=name,
        )
        if call_id:
            self.calls[call_id] = Call(key, acting.agent, name)
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
        """Add what a tool gave back, and tell its call when that was, where it is known."""
        call = self.calls.get(call_id) if call_id else None
        if call is not None and acting.end is not None:
            self.steps.amend(call.key, end=acting.end)
        more = More(name=name, status=status)
        if call is not None:
            more["name"], more["parent"] = call.name or name, call.key
        return self._put(
            SpanKind.TOOL_RESULT,
            Role.TOOL,
            (name or "tool") if call is None else call.agent,
            text,
            f"{call_id}:result" if call_id else key or pointer,
            pointer,
            replace(acting, end=None),
            **more,
        )

    def _say(self, kind: SpanKind, text: str, key: str, pointer: str, acting: Acting) -> str:
        return self._put(kind, Role.AGENT, acting.agent, text, key, pointer, acting)

    def _put(
        self,
        kind: SpanKind,
        role: Role,
        agent: str,
        text: str,
        key: str,
        pointer: str,
        acting: Acting,
        **more: Unpack[More],
    ) -> str:
        if len(self.steps) >= self._most:
            raise TooManySpans(f"there are more than {self._most} steps; the rest was left out")
        more.setdefault("parent", acting.parent)
        more["place"], more["start"], more["end"] = self._prefix + pointer, acting.start, acting.end
        return self.steps.add(key, kind, role, agent, text, **more)

    def _tool_message(self, message: Fields, pointer: str, acting: Acting) -> str:
        said = self.attachments.content(message.get("content"))
        text, failed = self.attachments.with_error(said, message.get("error"))
        return self.result(
            as_text(message.get("tool_call_id")),
            text,
            pointer,
            # When a result of which only the message is known came is not told.
            Acting(acting.agent, acting.parent),
            name=short_name(message.get("function")) or None,
            status=SpanStatus.ERROR if failed else SpanStatus.UNKNOWN,
            key=_message_id(message),
        )

    def _assistant(self, message: Fields, pointer: str, acting: Acting, key: str) -> str | None:
        last: str | None = None
        thought = message.get("reasoning")
        if isinstance(thought, str) and thought:
            text = self.attachments.text(thought)
            place = f"{pointer}/reasoning"
            last = self._say(SpanKind.REASONING, text, f"{key}/reasoning", place, acting)
        content = message.get("content")
        if isinstance(content, list):
            last = self._parts(content, pointer, acting, key) or last
        elif text := self.attachments.content(content):
            last = self._say(SpanKind.MESSAGE, text, key, pointer, acting)
        for number, call in enumerate(items_of(message.get("tool_calls"))):
            last = self.call(call, f"{pointer}/tool_calls/{number}", acting, acting.end)
        if last is None:
            last = self._say(SpanKind.MESSAGE, "", key, pointer, acting)
        return last

    def _parts(self, parts: list[object], pointer: str, acting: Acting, key: str) -> str | None:
        last: str | None = None
        texts: list[object] = []
        began = 0
        for number, part in enumerate([*parts, None]):
            kind = part.get("type") if isinstance(part, Mapping) else None
            if number < len(parts) and kind not in ("reasoning", "tool_use"):
                if not texts:
                    began = number
                texts.append(part)
                continue
            if text := self.attachments.content(texts):
                at = f"/content/{began}" if began else ""
                last = self._say(SpanKind.MESSAGE, text, key + at, pointer + at, acting)
            texts = []
            if not isinstance(part, Mapping):
                continue
            place = f"{pointer}/content/{number}"
            if kind == "reasoning":
                text = self._reasoning(part)
                last = self._say(SpanKind.REASONING, text, f"{key}/content/{number}", place, acting)
            else:
                last = self._server_tool(part, place, acting)
        return last

    def _reasoning(self, part: Fields) -> str:
        """A block's thoughts; of hidden ones the summary, else a note that they are hidden."""
        summary = as_text(part.get("summary"))
        if part.get("redacted") is True:
            return self.attachments.text(summary) if summary else "[reasoning hidden]"
        text = as_text(part.get("reasoning")) or summary
        return self.attachments.text(text) if text else ""

    def _server_tool(self, part: Fields, place: str, acting: Acting) -> str:
        """A tool that the model's provider ran: call and result stand in one part."""
        last = self.call(part, place, acting)
        if part.get("result") is None and part.get("error") is None:
            return last
        result = self.attachments.dumped(part.get("result"))
        text, failed = self.attachments.with_error(result, part.get("error"))
        call_id = as_text(part.get("id"))
        return self.result(
            call_id,
            text,
            place,
            Acting(acting.agent, acting.parent, acting.end, acting.end),
            name=short_name(part.get("name")) or None,
            status=SpanStatus.ERROR if failed else SpanStatus.UNKNOWN,
            key=f"{place}/result",
        )


def _message_id(message: object) -> str | None:
    return as_text(fields_of(message).get("id"))


def _is_of_a_call(identity: Hashable) -> bool:
    """Whether a message makes or answers tool calls, whose ids tell it from all others."""
    return isinstance(identity, tuple) and bool(identity[-1])


def _id_of(call: object) -> str:
    return json_text(call.get("id") if isinstance(call, Mapping) else call)


_MOST_LOOKUPS: Final = 300_000
_LAST_OF_AN_INPUT: Final = 50

Ranges = list[tuple[int, int]]
"""From, to (exclusive)."""


class MessagePool:
    """The pooled messages of one sample.

    Every call names its whole input, so that looking each up would cost the square of the run's
    length: what an input shares with the one before is passed over, and after many lookups only
    the last messages of an input are looked at.
    """

    def __init__(self, sample: Fields, spans: MessageSpans) -> None:
        self._pool: list[object] = []
        self._pointer = ""
        self._spans = spans
        self._identities: dict[int, Hashable] = {}
        self._told: set[str] = set()
        data = sample.get("events_data")
        if isinstance(data, Mapping) and isinstance(messages := data.get("messages"), list):
            self._pool, self._pointer = messages, "/events_data/messages"
        elif isinstance(messages := sample.get("message_pool"), list):
            self._pool, self._pointer = messages, "/message_pool"
        self._left = _MOST_LOOKUPS + len(self._pool)

    def new_in(
        self, refs: list[object], pointer: str, history: History
    ) -> Iterator[tuple[object, str]]:
        """The messages of an input that are to be shown, each with its pointer in the sample."""
        ranges = self._ranges(refs, pointer)
        begun = _continuation(history.ranges, ranges)
        if begun is None:
            history.counts = Counter()
            begun = ranges
        history.ranges = ranges
        for index in self._numbers(begun, pointer):
            message = self._pool[index]
            identity = self._identities.get(index)
            if identity is None:
                identity = self._identities[index] = self._spans.identity(message)
            if self._spans.is_new(message, identity, history):
                yield message, f"{self._pointer}/{index}"

    def messages(self, refs: list[object], pointer: str) -> list[object]:
        """All messages that these ranges name, as far as that is a sensible number."""
        return [self._pool[index] for index in self._numbers(self._ranges(refs, pointer), pointer)]

    def _numbers(self, ranges: Ranges, pointer: str) -> Iterator[int]:
        wanted = sum(last - first for first, last in ranges)
        if wanted > self._left:
            self._tell("inputs repeat too much; only the last messages are looked at", pointer)
            ranges = _last_of(ranges, _LAST_OF_AN_INPUT)
        else:
            self._left -= wanted
        for first, last in ranges:
            yield from range(first, last)

    def _ranges(self, refs: list[object], pointer: str) -> Ranges:
        ranges: Ranges = []
        for ref in refs:
            first, last = None, None
            if isinstance(ref, list) and len(ref) == 2:
                first, last = as_count(ref[0]), as_count(ref[1])
            if first is None or last is None or last > len(self._pool):
                self._tell("refers to messages that are not in the pool", pointer)
                last = min(last or 0, len(self._pool))
            if first is None or first >= last:
                continue
            if ranges and ranges[-1][1] == first:
                ranges[-1] = (ranges[-1][0], last)
            else:
                ranges.append((first, last))
        return ranges

    def _tell(self, message: str, pointer: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._spans.add_problem(pointer, message)


def _continuation(before: Ranges, now: Ranges) -> Ranges | None:
    """What ``now`` adds behind ``before``; None where it does not begin with it."""
    if not before:
        return None
    last = len(before) - 1
    if len(now) <= last or now[:last] != before[:last] or now[last][0] != before[last][0]:
        return None
    if now[last][1] < before[last][1]:
        return None
    return [(before[last][1], now[last][1]), *now[last + 1 :]]


def _last_of(ranges: Ranges, number: int) -> Ranges:
    kept: Ranges = []
    for first, last in reversed(ranges):
        if number <= 0:
            break
        kept.append((max(first, last - number), last))
        number -= last - kept[-1][0]
    return kept[::-1]

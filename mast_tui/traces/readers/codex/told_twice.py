"""What a Codex rollout tells twice, so that it is shown once.

An event repeats a response item. A fork repeats the parent's history at its beginning: it writes
its own ``session_meta`` and then the parent's records in one go, under the fork's time: all of
them, with the parent's ``session_meta``, or for a sub-agent only those of the last turns. None of
it is a step of the fork. Newer builds number their records and say with which number a sub-agent's
own begin, or leave the history in the parent's file (``history_base``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from mast_tui.traces.io.json_values import as_count, as_text
from mast_tui.traces.model import SpanKind
from mast_tui.traces.readers.codex.records import Entry, is_harness, path_of, payload_of, time_of
from mast_tui.traces.readers.json_fields import Fields

_REMEMBERED: Final = 4096

Marks = Collection[bytes]
"""What a message or thought is compared by: hashes of its text and of each part of it."""


def marks_of(entry: Entry) -> Marks:
    """What the step is compared by."""
    return marks_of_text(entry.kind is SpanKind.MESSAGE, entry.text, entry.parts)


def marks_of_text(message: bool, text: str, parts: Sequence[str] = ()) -> Marks:
    """What a text is compared by that is said in a message, or is a thought."""
    if not parts or (len(parts) == 1 and parts[0] == text):
        return (_mark(message, text),)
    return tuple({_mark(message, one): None for one in (text, *parts)})


@lru_cache(maxsize=4)
def _mark(message: bool, text: str) -> bytes:
    """A hash that is the same in every process, as one may go on where another has stopped.

    An item mostly comes right behind the event that says the same.
    """
    said = b"m" if message else b"t"
    return blake2b(said + text.strip().encode("utf-8", "surrogatepass"), digest_size=8).digest()


class TwiceTold:
    """Remembers what events and items have said since the last prompt.

    Of what was shown that is the last few thousand texts: an event and its item stand close
    together, and some agents work for days at one prompt, or write no events at all.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, bytes] = {}
        self._awaited: dict[bytes, list[int]] = {}
        self._items: OrderedDict[bytes, int] = OrderedDict()
        self._events: OrderedDict[bytes, int] = OrderedDict()
        self._shown: OrderedDict[bytes, int] = OrderedDict()

    @property
    def waiting(self) -> Iterable[tuple[int, bytes]]:
        """The events that wait for their items, by number and line, in order."""
        return self._waiting.items()

    def no_longer_waiting(self) -> Sequence[tuple[int, bytes]]:
        """The events that have waited, which will be shown now."""
        if not self._awaited:
            return ()
        waiting = tuple(self._waiting.items())
        self._waiting.clear()
        self._awaited.clear()
        return waiting

    def wait(self, number: int, line: bytes, marks: Marks) -> None:
        """Let the event on this line wait for its item."""
        self._waiting[number] = line
        for mark in marks:
            self._awaited.setdefault(mark, []).append(number)

    def was_announced(self, marks: Marks) -> bool:
        """Whether events that wait say what an item says; they wait no longer."""
        if not self._waiting:
            return False
        before = len(self._waiting)
        for mark in marks:
            for number in self._awaited.pop(mark, ()):
                self._waiting.pop(number, None)
        return len(self._waiting) < before

    def item_is_new(self, marks: Marks) -> bool:
        """Whether no event that was shown says what an item says; then events may repeat it."""
        if _use_up(self._events, marks):
            return False
        _mention(self._items, marks)
        return True

    def event_is_new(self, marks: Marks) -> bool:
        """Whether no item has said yet what an event says."""
        return not _use_up(self._items, marks)

    def event_shown(self, marks: Marks) -> None:
        """An event was shown: an item may repeat it."""
        _mention(self._events, marks)

    def message_shown(self, marks: Marks) -> None:
        """A message was shown, whatever has told of it."""
        _mention(self._shown, marks)

    def is_shown(self, marks: Marks) -> bool:
        """Whether such a message was shown since the last prompt."""
        return any(mark in self._shown for mark in marks)

    def prompted(self) -> None:
        """The user has said something new: what was said before is not repeated any more."""
        self._items.clear()
        self._events.clear()
        self._shown.clear()


def _mention(seen: OrderedDict[bytes, int], marks: Marks) -> None:
    for mark in marks:
        seen[mark] = seen.get(mark, 0) + 1
    while len(seen) > _REMEMBERED:
        seen.popitem(last=False)


def _use_up(seen: OrderedDict[bytes, int], marks: Marks) -> bool:
    """Take one mention of each mark from what was seen; false where there was none."""
    found = False
    for mark in marks if seen else ():
        times = seen.get(mark, 0)
        if times > 1:
            seen[mark] = times - 1
        elif times:  # One that is used up is not kept, or they would fill the memory.
            del seen[mark]
        found = found or times > 0
    return found


_BURST_SECONDS: Final = 1.0
"""Within which the history is written; a model's first answer takes longer."""

_GAP_SECONDS: Final = 0.25
"""Between two records of a history so long that it takes more than that."""


class ReplayFilter:
    """Holds back the records of a repeated history.

    It ends with the number that the file itself names, with the first message to this thread, or
    where the time moves on. In the last case a fork's own first prompt may have been written
    within the same burst: so the last prompt before the first later record counts as the fork's
    own, unless that record itself begins a turn.
    """

    def __init__(self) -> None:
        self.thread: str | None = None
        """The thread whose history is repeated with its ``session_meta``."""
        self.active = False
        """Whether the next record may belong to a history."""
        self._own: str | None = None
        self._path: str | None = None
        self._first_own: int | None = None
        self._since: float | None = None
        self._last: float | None = None
        self._expected = False
        self._within = False
        self._held: list[tuple[int, bytes]] = []

    def begins(self, record: Fields, payload: Fields) -> bool:
        """Whether the history of another thread begins with this ``session_meta``."""
        thread, time = as_text(payload.get("id")), time_of(record)
        if self._own is None:
            self._own, self._since, self._path = thread, time, path_of(payload)
            self._first_own = as_count(payload.get("subagent_history_start_ordinal"))
            self.active = self._expected = (
                as_text(payload.get("forked_from_id")) is not None
                and payload.get("history_base") is None
            )
            return False
        if self.thread is not None or thread is None or thread == self._own:
            return False
        if not self._is_early(record, time):
            return False
        self.thread, self._since, self._last = thread, time, time
        self.active = self._within = True
        self._expected = False
        return True

    def let_through(self, number: int, line: bytes, record: Fields) -> list[tuple[int, bytes]]:
        """The lines to show now that this one has come, on which the record stands."""
        if self._expected:
            self._expected = False
            self._within = self._is_early(record, time_of(record)) and (
                self._first_own is not None or _is_real_prompt(record)
            )
            self._last = self._since
        if not self._within:
            self.active = False
            return [(number, line)]
        ordinal = as_count(record.get("ordinal"))
        numbered = None not in (ordinal, self._first_own)
        if (numbered and (ordinal or 0) >= (self._first_own or 0)) or self._is_to_me(record):
            self._held.clear()
            return [*self.finish(), (number, line)]
        if self._goes_on(time_of(record)):
            if _is_prompt(record):
                self._held.clear()
            if self._held or _is_prompt(record):
                self._held.append((number, line))
            return []
        held = self.finish()
        return [(number, line)] if _begins_turn(record) else [*held, (number, line)]

    def finish(self) -> list[tuple[int, bytes]]:
        """The history is over: the lines from the last prompt on, which may be the fork's own."""
        held, self._held, self._within, self.active = self._held, [], False, False
        return held

    def _is_early(self, record: Fields, time: float | None) -> bool:
        """Whether a record comes so soon after the file's beginning that no model wrote it."""
        ordinal = as_count(record.get("ordinal"))
        if ordinal is not None and self._first_own is not None:
            return ordinal < self._first_own
        return (
            self._since is not None
            and time is not None
            and abs(time - self._since) <= _BURST_SECONDS
        )

    def _goes_on(self, time: float | None) -> bool:
        if time is None or self._since is None or self._last is None:
            return False
        last, self._last = self._last, time
        return time - self._since <= _BURST_SECONDS or time - last <= _GAP_SECONDS

    def _is_to_me(self, record: Fields) -> bool:
        """Whether another agent writes to this thread, which it could not before it began."""
        if self._path is None:
            return False
        kind, payload = payload_of(record)
        if kind == "inter_agent_communication" or payload.get("type") == "agent_message":
            return payload.get("recipient") == self._path
        return False


def _is_prompt(record: Fields) -> bool:
    kind, payload = payload_of(record)
    return (
        kind == "response_item"
        and payload.get("type") == "message"
        and payload.get("role") == "user"
    )


def _is_real_prompt(record: Fields) -> bool:
    return _is_prompt(record) and not is_harness(payload_of(record)[1])


def _begins_turn(record: Fields) -> bool:
    kind, payload = payload_of(record)
    if kind == "event_msg":
        return payload.get("type") in ("task_started", "turn_started", "user_message")
    return kind == "turn_context" or _is_prompt(record)

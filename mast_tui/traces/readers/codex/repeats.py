"""The records of a rollout that repeat others, so that each step is shown once.

An event repeats a response item. A fork repeats the parent's history: it writes its own
``session_meta`` and then, at once and with the time of the fork, the parent's records. These are
all records with the parent's ``session_meta``; a sub-agent has only those of the last turns. No
record of the history is a step of the fork. Newer builds number their records. They state the
number of a sub-agent's first own record, or leave the history in the parent's file
(``history_base``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from mast_tui.traces.io.json_values import as_count, as_text
from mast_tui.traces.model import Role, SpanKind
from mast_tui.traces.readers.codex.records import is_from_harness, payload_of
from mast_tui.traces.readers.json_fields import Fields
from mast_tui.traces.times import unix_seconds

Position = tuple[int, int]
"""The line of a record, and its number on that line."""

Marks = tuple[bytes, ...]
"""The hashes by which a message or a thought is compared: of its text and of each part of it."""

_MOST_MARKS: Final = 4096
_MESSAGE: Final = SpanKind.MESSAGE  # a member of an enum takes longer to look up


def marks_of(kind: SpanKind, text: str, parts: Sequence[str] = ()) -> Marks:
    """Return the marks of a text.

    Args:
        kind: The kind of the text: message or thought.
        text: The whole text.
        parts: The parts of the text that other records may repeat singly.
    """
    is_message = kind is _MESSAGE
    if not parts or (len(parts) == 1 and parts[0] == text):
        return (_mark(is_message, text),)
    return tuple({_mark(is_message, part): None for part in (text, *parts)})


@lru_cache(maxsize=4)  # An item mostly follows right after the event with the same text.
def _mark(is_message: bool, text: str) -> bytes:
    """Return a hash that is equal in every process, as another process may continue the file."""
    prefix = b"m" if is_message else b"t"
    data = prefix + text.strip().encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=8).digest()


class MarkCounts:
    """The counts of the marks of recent texts.

    The last few thousand marks are enough: an event and its item are close together, and some
    agents work for days at one prompt.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def add(self, marks: Marks) -> None:
        """Raise the count of each mark of a text by one."""
        for mark in marks:
            self._counts[mark] = self._counts.get(mark, 0) + 1
        while len(self._counts) > _MOST_MARKS:
            self._counts.popitem(last=False)

    def remove(self, marks: Marks) -> bool:
        """Lower the count of each mark of a text by one.

        Returns:
            True if at least one of the marks had a count.
        """
        removed = False
        for mark in marks if self._counts else ():
            count = self._counts.get(mark, 0)
            if count > 1:
                self._counts[mark] = count - 1
            elif count:
                del self._counts[mark]
            removed = removed or count > 0
        return removed

    def has_any(self, marks: Marks) -> bool:
        """Return whether one of the marks has a count."""
        return any(mark in self._counts for mark in marks)

    def clear(self) -> None:
        """Remove all texts."""
        self._counts.clear()


_BURST_SECONDS: Final = 1.0
"""The seconds in which a fork writes the history. A model's first answer takes longer."""

_GAP_SECONDS: Final = 0.25
"""The most seconds between two records of a history that takes longer than ``_BURST_SECONDS``."""


class ForkedHistory:
    """A filter that drops the parent's history, which a fork repeats at its beginning.

    The history ends with the number that the file states, with the first message to this thread,
    or at a gap in time. Before a gap, the fork's own first prompt may directly follow the history.
    So the last prompt before the gap counts as the fork's own, unless the record after the gap
    begins a turn.

    Attributes:
        thread: The thread whose history is repeated with its ``session_meta``.
        active: Whether the next record may belong to a history.
    """

    def __init__(self) -> None:
        self.thread: str | None = None
        self.active = False
        self._fork: str | None = None
        self._path: str | None = None
        self._first_own: int | None = None
        self._since: float | None = None
        self._last: float | None = None
        self._within = False
        self._held: list[tuple[Position, Fields]] = []

    def begins(self, record: Fields, meta: Fields, path: str | None) -> bool:
        """Return whether the history of another thread begins with a ``session_meta``.

        Args:
            record: The record.
            meta: Its payload.
            path: The path by which other agents address its thread.
        """
        thread = as_text(meta.get("id"))
        time = unix_seconds(record.get("timestamp"))
        if self._fork is None:
            self._fork = thread
            self._since = time
            self._path = path
            self._first_own = as_count(meta.get("subagent_history_start_ordinal"))
            is_fork = as_text(meta.get("forked_from_id")) is not None
            self.active = is_fork and meta.get("history_base") is None
            return False
        if self.thread or thread in (None, self._fork) or not self._is_early(record, time):
            return False
        self.thread = thread
        self._since = time
        self._last = time
        self.active = True
        self._within = True
        return True

    def released(self, position: Position, record: Fields) -> Iterable[tuple[Position, Fields]]:
        """Filter the next record: return the records to show now, with their positions.

        Args:
            position: The position of the record.
            record: The record.
        """
        time = unix_seconds(record.get("timestamp"))
        if not self._within:
            real_prompt = _is_prompt(record) and not is_from_harness(payload_of(record)[1])
            self._within = (self._first_own is not None or real_prompt) and self._is_early(
                record, time
            )
            self._last = self._since
        if not self._within:
            self.active = False
            return [(position, record)]
        if self._is_own(record):
            self._held = []
        elif self._is_in_burst(time):
            if _is_prompt(record):
                self._held = [(position, record)]
            elif self._held:
                self._held.append((position, record))
            return ()
        elif _begins_turn(record):
            self._held = []
        released = [*self._held, (position, record)]
        self._held = []
        self._within = False
        self.active = False
        return released

    def _is_early(self, record: Fields, time: float | None) -> bool:
        """Return whether a record comes so soon after the beginning that no model wrote it."""
        ordinal = as_count(record.get("ordinal"))
        if ordinal is not None and self._first_own is not None:
            return ordinal < self._first_own
        if self._since is None or time is None:
            return False
        return abs(time - self._since) <= _BURST_SECONDS

    def _is_in_burst(self, time: float | None) -> bool:
        """Set the time of the last record, and return whether it follows without a gap."""
        if time is None or self._since is None or self._last is None:
            return False
        gap = time - self._last
        self._last = time
        return time - self._since <= _BURST_SECONDS or gap <= _GAP_SECONDS

    def _is_own(self, record: Fields) -> bool:
        """Return whether a record is the fork's own: by its number, or as a message to the fork."""
        ordinal = as_count(record.get("ordinal"))
        if ordinal is not None and self._first_own is not None and ordinal >= self._first_own:
            return True
        kind, payload = payload_of(record)
        if kind == "inter_agent_communication" or payload.get("type") == "agent_message":
            return self._path is not None and payload.get("recipient") == self._path
        return False


def _is_prompt(record: Fields) -> bool:
    kind, payload = payload_of(record)
    is_message = kind == "response_item" and payload.get("type") == "message"
    return is_message and payload.get("role") == Role.USER.value


def _begins_turn(record: Fields) -> bool:
    kind, payload = payload_of(record)
    if kind == "event_msg":
        return payload.get("type") in ("task_started", "turn_started", "user_message")
    return kind == "turn_context" or _is_prompt(record)

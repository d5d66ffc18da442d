"""The repeated records of a rollout, which are found so that each step is shown once.

An event repeats a response item. A fork repeats the parent's history: it writes its own
``session_meta`` and then, at once and with the time of the fork, the parent's records with the
parent's ``session_meta``. A sub-agent writes only the records of the last turns. No record of the
history is a step of the fork. Newer builds number their records. They state the number of a
sub-agent's first own record, or leave the history in the parent's file (``history_base``).
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

TextHashes = tuple[bytes, ...]
"""The hashes of the text of a message or a thought, and of each of its parts."""

_MAX_TEXT_HASHES: Final = 4096
_MESSAGE: Final = SpanKind.MESSAGE  # a member of an enum takes longer to look up


def hashes_of_text(kind: SpanKind, text: str, parts: Sequence[str] = ()) -> TextHashes:
    """Return the hashes of a text and of its parts, by which repeated texts are recognised.

    Args:
        kind: The kind of the text: message or thought.
        text: The whole text.
        parts: The parts of the text, each of which another record may repeat alone.
    """
    is_message = kind is _MESSAGE
    hashes = (_hash_of_text(is_message, part) for part in (text, *parts))
    return tuple(dict.fromkeys(hashes))  # Each hash once, in order.


@lru_cache(maxsize=4)  # An item mostly follows right after the event with the same text.
def _hash_of_text(is_message: bool, text: str) -> bytes:
    """Return a hash that is equal in every process, as another process may continue the file."""
    prefix = b"m" if is_message else b"t"
    data = prefix + text.strip().encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=8).digest()


class TextHashCounts:
    """The number of times that each recent text is still expected to be repeated.

    The last few thousand hashes are enough: an event and its item are close together, and some
    agents work for days at one prompt.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def add(self, text_hashes: TextHashes) -> None:
        """Raise the count of each hash of a text by one; drop the oldest hashes over the limit."""
        for text_hash in text_hashes:
            self._counts[text_hash] = self._counts.get(text_hash, 0) + 1
        while len(self._counts) > _MAX_TEXT_HASHES:
            self._counts.popitem(last=False)

    def remove(self, text_hashes: TextHashes) -> bool:
        """Lower the count of each hash of a text by one.

        Returns:
            True if at least one of the hashes had a count.
        """
        was_any_removed = False
        for text_hash in text_hashes:
            count = self._counts.get(text_hash, 0)
            if count > 1:
                self._counts[text_hash] = count - 1
            elif count:
                del self._counts[text_hash]
            was_any_removed = was_any_removed or count > 0
        return was_any_removed

    def has_any(self, text_hashes: TextHashes) -> bool:
        """Return whether at least one of the hashes has a count."""
        return any(text_hash in self._counts for text_hash in text_hashes)

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
        copied_thread: The thread whose history the file repeats, with its ``session_meta``.
        may_continue: Whether the next record may belong to a history.
    """

    def __init__(self) -> None:
        self.copied_thread: str | None = None
        self.may_continue = False
        self._fork_thread: str | None = None
        """The thread of the fork itself."""
        self._fork_path: str | None = None
        """The path by which other agents address that thread."""
        self._first_own_number: int | None = None
        """The ordinal number of the fork's first own record, if the file states it."""
        self._start_time: float | None = None
        """The time of the first ``session_meta`` of the history, else of the file."""
        self._last_time: float | None = None
        self._is_within_history = False
        self._held_records: list[tuple[Position, Fields]] = []
        """The last prompt and the records after it, which may be the fork's own."""

    def note_session_meta(self, record: Fields, meta: Fields, path: str | None) -> bool:
        """Record a ``session_meta``; the first one of a file describes the fork itself.

        Args:
            record: The ``session_meta`` record.
            meta: Its payload.
            path: The path by which other agents address its thread.

        Returns:
            True if the copied history of another thread begins with this record.
        """
        thread = as_text(meta.get("id"))
        time = unix_seconds(record.get("timestamp"))
        if self._fork_thread is None:
            self._fork_thread = thread
            self._start_time = time
            self._fork_path = path
            self._first_own_number = as_count(meta.get("subagent_history_start_ordinal"))
            is_fork = as_text(meta.get("forked_from_id")) is not None
            # A fork with ``history_base`` leaves the history in the parent's file.
            self.may_continue = is_fork and meta.get("history_base") is None
            return False
        is_of_other_thread = thread is not None and thread != self._fork_thread
        # Only the first ``session_meta`` of a copied history begins it.
        if self.copied_thread or not is_of_other_thread or not self._is_early(record, time):
            return False
        self.copied_thread = thread
        self._start_time = time
        self._last_time = time
        self.may_continue = True
        self._is_within_history = True
        return True

    def released_records(
        self, position: Position, record: Fields
    ) -> Iterable[tuple[Position, Fields]]:
        """Read the next record; return the records that are now known to be the fork's own.

        Records of the history, which the fork copies in a burst, are dropped. The last prompt and
        the records after it are held, because they may be the fork's own.

        Args:
            position: The position of the record.
            record: The record.

        Returns:
            The fork's own records with their positions; empty while the history may continue.
        """
        time = unix_seconds(record.get("timestamp"))
        if not self._is_within_history:
            _, payload = payload_of(record)
            is_user_prompt = _is_prompt(record) and not is_from_harness(payload)
            may_begin_history = self._first_own_number is not None or is_user_prompt
            self._is_within_history = may_begin_history and self._is_early(record, time)
            self._last_time = self._start_time
        if not self._is_within_history:
            self.may_continue = False
            return [(position, record)]

        if self._is_own(record):
            self._held_records = []
        elif self._continues_burst(time):
            if _is_prompt(record):
                self._held_records = [(position, record)]
            elif self._held_records:
                self._held_records.append((position, record))
            return ()
        elif _begins_turn(record):
            # The fork's own turn begins here, so the held prompt is of the history.
            self._held_records = []

        own_records = [*self._held_records, (position, record)]
        self._held_records = []
        self._is_within_history = False
        self.may_continue = False
        return own_records

    def _is_early(self, record: Fields, time: float | None) -> bool:
        """Return whether a record is early enough to be of the copied history.

        The record's ordinal number decides if the file states the number of the first own record.
        Else its time decides: a fork writes the history in a burst when the file begins, and a
        model's answer takes longer than ``_BURST_SECONDS``.
        """
        ordinal = as_count(record.get("ordinal"))
        if ordinal is not None and self._first_own_number is not None:
            return ordinal < self._first_own_number
        if self._start_time is None or time is None:
            return False
        return abs(time - self._start_time) <= _BURST_SECONDS

    def _continues_burst(self, time: float | None) -> bool:
        """Return whether a record belongs to the burst in which the fork copied the history.

        It does if it comes early enough, or soon after the previous record. Its time is kept for
        the next call.
        """
        if time is None or self._start_time is None or self._last_time is None:
            return False
        gap = time - self._last_time
        self._last_time = time
        return time - self._start_time <= _BURST_SECONDS or gap <= _GAP_SECONDS

    def _is_own(self, record: Fields) -> bool:
        """Return whether a record's number or recipient shows that it is the fork's own."""
        ordinal = as_count(record.get("ordinal"))
        first_number = self._first_own_number
        if ordinal is not None and first_number is not None and ordinal >= first_number:
            return True
        kind, payload = payload_of(record)
        if kind == "inter_agent_communication" or payload.get("type") == "agent_message":
            return self._fork_path is not None and payload.get("recipient") == self._fork_path
        return False


def _is_prompt(record: Fields) -> bool:
    """Return whether a record is a message in the user's name."""
    kind, payload = payload_of(record)
    is_message = kind == "response_item" and payload.get("type") == "message"
    return is_message and payload.get("role") == Role.USER.value


def _begins_turn(record: Fields) -> bool:
    """Return whether a record begins a turn, as a prompt or the settings of a turn do."""
    kind, payload = payload_of(record)
    if kind == "event_msg":
        return payload.get("type") in ("task_started", "turn_started", "user_message")
    return kind == "turn_context" or _is_prompt(record)

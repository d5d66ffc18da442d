"""Inputs of model calls that refer to a pool of messages by ranges of its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Final

from mast_tui.traces.io.json_values import as_count
from mast_tui.traces.readers.inspect.messages import History, MessageSpans

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

    def __init__(self, sample: Mapping[str, object], spans: MessageSpans) -> None:
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
            self._spans.complain(pointer, message)


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

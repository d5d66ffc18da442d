"""Which event and which response item of a Codex rollout say the same, so that it is shown once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from mast_tui.traces.model import SpanKind
from mast_tui.traces.readers.codex.entry import Entry

_REMEMBERED: Final = 4096

Marks = Collection[int]
"""What a message or thought is compared by: hashes of its text and of each part of it."""


def marks_of(entry: Entry) -> Marks:
    """What the step is compared by."""
    return marks_of_text(entry.kind is SpanKind.MESSAGE, entry.text, entry.parts)


def marks_of_text(message: bool, text: str, parts: Sequence[str] = ()) -> Marks:
    """What a text is compared by that is said in a message, or is a thought."""
    if not parts or (len(parts) == 1 and parts[0] == text):
        return (hash((message, text.strip())),)
    return {hash((message, one.strip())) for one in (text, *parts)}


class Waiting(NamedTuple):
    """An event of which it is not known yet whether an item says the same."""

    line: int
    record: Mapping[str, object]


class TwiceTold:
    """Remembers what events and items have said since the last prompt.

    Of what was shown that is the last few thousand texts: an event and its item stand close
    together, and some agents work for days at one prompt, or write no events at all.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, Waiting] = {}
        self._awaited: dict[int, list[int]] = {}
        self._items: OrderedDict[int, int] = OrderedDict()
        self._events: OrderedDict[int, int] = OrderedDict()
        self._shown: OrderedDict[int, int] = OrderedDict()

    @property
    def waiting(self) -> Iterable[Waiting]:
        """The events that wait for their items, in order."""
        return self._waiting.values()

    def no_longer_waiting(self) -> Sequence[Waiting]:
        """The events that have waited, which will be shown now."""
        if not self._awaited:
            return ()
        waiting = tuple(self._waiting.values())
        self._waiting.clear()
        self._awaited.clear()
        return waiting

    def wait(self, line: int, record: Mapping[str, object], marks: Marks) -> None:
        """Let the event of this record wait for its item."""
        self._waiting[line] = Waiting(line, record)
        for mark in marks:
            self._awaited.setdefault(mark, []).append(line)

    def was_announced(self, marks: Marks) -> bool:
        """Whether events that wait say what an item says; they wait no longer."""
        if not self._waiting:
            return False
        before = len(self._waiting)
        for mark in marks:
            for line in self._awaited.pop(mark, ()):
                self._waiting.pop(line, None)
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


def _mention(seen: OrderedDict[int, int], marks: Marks) -> None:
    for mark in marks:
        seen[mark] = seen.get(mark, 0) + 1
    while len(seen) > _REMEMBERED:
        seen.popitem(last=False)


def _use_up(seen: OrderedDict[int, int], marks: Marks) -> bool:
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

"""What was made of spans a while ago, kept as long as there is room for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """Values by the index of their span; what was asked for longest ago goes first.

    ``room`` is how much is kept, in what ``size`` counts; without it each value counts as one. The
    last value is kept however big it is. Any thread may ask and add.
    """

    def __init__(self, room: int, size: Callable[[Value], int] = lambda _value: 1) -> None:
        self._room = room
        self._size = size
        self._taken = 0
        self._values: OrderedDict[int, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, index: int) -> Value | None:
        """The value, or None where it is not kept."""
        with self._lock:
            value = self._values.get(index)
            if value is not None:
                self._values.move_to_end(index)
            return value

    def add(self, index: int, value: Value) -> None:
        """Keep a value, and let go what there is no room for any more."""
        with self._lock:
            old = self._values.pop(index, None)
            self._taken += self._size(value) - (0 if old is None else self._size(old))
            self._values[index] = value
            while self._taken > self._room and len(self._values) > 1:
                _index, dropped = self._values.popitem(last=False)
                self._taken -= self._size(dropped)

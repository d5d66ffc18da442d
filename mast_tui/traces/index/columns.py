"""Columns of whole numbers that are no wider than what they hold: ``H``, ``I`` or ``Q``."""

from __future__ import annotations

from array import array


def wider(column: array[int], number: int) -> array[int]:
    """The column with ``number`` behind it, which it has no room for.

    Others may go on reading the old one. Raises ``OverflowError`` for more than 64 bits.
    """
    narrow = column.typecode == "H" and number >> 32 == 0
    room = array("I" if narrow else "Q", column)
    room.append(number)
    return room

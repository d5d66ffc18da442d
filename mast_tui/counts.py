"""Numbers with their nouns, for every sentence that counts something."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """Put a number before its noun: ``1 trace``, ``2 traces``.

    Args:
        count: The number.
        one: The noun for one.
        many: The noun for several, if it is not the other with an s.
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"

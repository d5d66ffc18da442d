"""Small parts of sentences: counted nouns, and names in a row."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, one: str, many: str | None = None) -> str:
    """Put a number before its noun: ``1 trace``, ``2 traces``.

    Args:
        count: How many.
        one: The noun for one.
        many: The noun for several, where an s does not make it.
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def joined(names: Sequence[str]) -> str:
    """Put names into a sentence: ``a``, ``a and b``, ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"

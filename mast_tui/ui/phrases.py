"""Small parts of sentences: counted nouns, names in a row, short figures."""

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


def short_count(number: int) -> str:
    """A number in at most five characters: ``812``, ``4.1k``, ``812k``, ``1.2M``."""
    if number < 1_000:
        return str(number)
    for size, unit in ((1_000, "k"), (1_000_000, "M"), (1_000_000_000, "G")):
        value = number / size
        if value < 999.5:
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return f"{number / 1e9:.0f}G"


def cost_words(cost: float) -> str:
    """Money, in whatever currency the prices were told."""
    return "<0.01" if 0 < cost < 0.01 else f"{cost:,.2f}"

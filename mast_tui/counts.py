"""Texts for numbers with nouns, lists of names, and lengths of time."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Put a number before its noun: ``1 trace``, ``2 traces``.

    Args:
        count: The number.
        singular: The noun for one.
        plural: The noun for several, if it is not the singular with an s.
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def joined_names(names: Sequence[str], last: str = "and") -> str:
    """Return names as a list in a sentence: ``a``, ``a and b``, ``a, b and c``.

    Args:
        names: The names.
        last: The word before the last name.
    """
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def offset(seconds: float) -> str:
    """Return the time since the start of a run: ``0:41``, ``12:05``, ``1:02:03``."""
    minutes, second = divmod(max(0, int(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minutes}:{second:02d}"


def duration(seconds: float) -> str:
    """Return a length of time: ``340ms``, ``4.2s``, ``6m12s``, ``2h05m``."""
    # Each unit is rounded before the comparison, so that 59.96 seconds are 1m00s and not 60.0s.
    milliseconds = round(max(0.0, seconds) * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    tenths = round(seconds * 10)
    if tenths < 10 * 60:
        return f"{tenths / 10:.1f}s"
    minutes, second = divmod(tenths // 10, 60)
    if minutes < 60:
        return f"{minutes}m{second:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"

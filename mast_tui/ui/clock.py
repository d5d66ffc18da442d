"""Times of a run as people read them."""

from __future__ import annotations


def offset(seconds: float) -> str:
    """Time since the start of a run: ``0:41``, ``12:05``, ``1:02:03``."""
    whole = max(0, int(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minutes}:{second:02d}"


def duration(seconds: float) -> str:
    """A length of time: ``340ms``, ``4.2s``, ``6m12s``, ``2h05m``."""
    # Rounded first, so that no unit is full: a second short of a minute is 59.9s or 1m00s.
    milliseconds = round(max(0.0, seconds) * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    tenths = round(seconds * 10)
    if tenths < 600:
        return f"{tenths / 10:.1f}s"
    minutes, second = divmod(tenths // 10, 60)
    if minutes < 60:
        return f"{minutes}m{second:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def time_bar(start: float, end: float, total: float, cells: int) -> str:
    """Where in a run of ``total`` seconds a step stands, ``cells`` wide.

    The step fills the cells it touches; a short one leaves one mark.
    """
    if total <= 0:
        return " " * cells
    first = min(cells - 1, max(0, int(start / total * cells)))
    last = min(cells - 1, max(first, int(end / total * cells)))
    if first == last:
        part = (end - start) / total * cells
        glyph = "▏" if part < 0.3 else "▌" if part < 0.75 else "█"
        return " " * first + glyph + " " * (cells - first - 1)
    return " " * first + "█" * (last - first + 1) + " " * (cells - last - 1)

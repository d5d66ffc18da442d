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
    if seconds < 0.9995:
        return f"{max(0.0, seconds) * 1000:.0f}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    if seconds < 3600:
        return f"{int(seconds // 60)}m{int(seconds % 60):02d}s"
    return f"{int(seconds // 3600)}h{int(seconds % 3600 // 60):02d}m"


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

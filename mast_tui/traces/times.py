"""Time stamps of foreign records as Unix seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from mast_tui.traces.io.json_values import as_number

_MILLISECONDS = 1e11
_MICROSECONDS = 1e14
_NANOSECONDS = 1e17
_from_iso: Final = datetime.fromisoformat


def unix_seconds(value: object) -> float | None:
    """Unix seconds of an ISO 8601 text or of a number of s, ms, µs or ns; None for anything else.

    A time without a zone is taken as UTC: spans of a trace are compared with each other only.
    """
    if isinstance(value, str):
        try:
            moment = _from_iso(value.strip())
            return moment.timestamp() if moment.tzinfo is UTC else _seconds(moment)
        except ValueError:
            return None
    number = as_number(value)
    if number is None or number <= 0:
        return None
    for unit, scale in ((_NANOSECONDS, 1e9), (_MICROSECONDS, 1e6), (_MILLISECONDS, 1e3)):
        if number >= unit:
            return number / scale
    return number


def iso_time(seconds: float) -> str | None:
    """The ISO 8601 text of Unix seconds, in UTC; None where no calendar has them."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def parse_time(text: str, pattern: str) -> float | None:
    """Unix seconds of a time written to a ``strptime`` pattern; None where it does not fit."""
    try:
        moment = datetime.strptime(text, pattern)
    except ValueError:
        return None
    return _seconds(moment)


def _seconds(moment: datetime) -> float | None:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.timestamp()
    except (OverflowError, ValueError):
        return None

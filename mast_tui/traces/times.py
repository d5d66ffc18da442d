"""Time stamps of foreign records as Unix seconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from mast_tui.traces.io.json_values import as_number

_MILLISECONDS = 1e11
_MICROSECONDS = 1e14
_NANOSECONDS = 1e17
_from_iso: Final = datetime.fromisoformat
_NUMBER: Final = re.compile(r"[0-9]{9,19}(?:\.[0-9]{1,12})?")
_RFC_1123: Final = re.compile(r"(?:[A-Z][a-z]{2}, )?[0-9]{1,2} [A-Z][a-z]{2} [0-9]{4} ")


def unix_seconds(value: object) -> float | None:
    """Return the Unix seconds of a time stamp; None for anything else.

    A time without a zone is taken as UTC.

    Args:
        value: An ISO 8601 text, a date of RFC 1123, or a number of s, ms, µs or ns since 1970. A
            text with a number needs at least nine digits before the point.
    """
    if isinstance(value, str):
        try:
            moment = _from_iso(value.strip())
            # Most times are in UTC and need no range check.
            return moment.timestamp() if moment.tzinfo is UTC else _timestamp(moment)
        except ValueError:
            return _seconds_of_plain_text(value.strip())
    number = as_number(value)
    return None if number is None else _seconds_by_size(number)


def _seconds_of_plain_text(text: str) -> float | None:
    """Return the seconds of a number or an RFC 1123 date; None for another text."""
    if _NUMBER.fullmatch(text):
        return _seconds_by_size(float(text))
    if not _RFC_1123.match(text):
        return None
    # This import takes 3 ms, and few files have such dates.
    from email.utils import parsedate_to_datetime

    try:
        return _timestamp(parsedate_to_datetime(text))
    except (ValueError, OverflowError):  # OverflowError: a number of more than nine digits
        return None


def _seconds_by_size(number: float) -> float | None:
    """Return the seconds of a number in s, ms, µs or ns; None if it is not positive.

    The size of the number shows its unit.
    """
    if number <= 0:
        return None
    for unit, scale in ((_NANOSECONDS, 1e9), (_MICROSECONDS, 1e6), (_MILLISECONDS, 1e3)):
        if number >= unit:
            return number / scale
    return number


def iso_time(seconds: float) -> str | None:
    """Return the ISO 8601 text of Unix seconds in UTC; None beyond the years 1 to 9999."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def parse_time(text: str, pattern: str) -> float | None:
    """Return the Unix seconds of a time; None if it does not fit the pattern.

    Args:
        text: The time.
        pattern: A pattern of ``strptime``.
    """
    try:
        moment = datetime.strptime(text, pattern)
    except ValueError:
        return None
    return _timestamp(moment)


def _timestamp(moment: datetime) -> float | None:
    """Return the Unix seconds of a moment (UTC without a zone); None if out of range."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.timestamp()
    except (OverflowError, ValueError):
        return None

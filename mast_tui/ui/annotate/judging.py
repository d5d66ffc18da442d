"""Where to look in a trace that is opened from another room."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where to look in a trace: at a suggestion, at the next of a judge, else at a span by its key
    or its ``index``."""

    trace_id: str
    suggestion: str | None = None
    judge: str | None = None
    key: str | None = None
    index: int | None = None

"""Traces of big documents, for which one may have to wait until another process has read them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from mast_tui.traces.model import Trace


@runtime_checkable
class Awaited(Protocol):
    """A trace that may have to be read by another process first."""

    @property
    def awaited(self) -> str | None: ...
    def stop_waiting(self) -> None: ...


def awaited_words(trace: Trace) -> str | None:
    """How far another process has come with a trace; None where none is reading it."""
    return trace.awaited if isinstance(trace, Awaited) else None


def stop_waiting(trace: Trace) -> None:
    """End what another process does for a trace; called by the thread that advances it."""
    if isinstance(trace, Awaited):
        trace.stop_waiting()

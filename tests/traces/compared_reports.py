"""Comparison of two readings of one file."""

from __future__ import annotations

from mast_tui.traces.library import read_fully
from mast_tui.traces.model import FileReport, Trace


def check_same_report(found: FileReport, known: FileReport) -> None:
    """Fail unless both tell the same of the file and of every trace in it."""
    assert found.path == known.path
    assert found.format == known.format
    assert found.problems == known.problems
    assert (found.skipped, found.failed) == (known.skipped, known.failed)
    assert found.thread == known.thread
    assert len(found.traces) == len(known.traces)
    for one, other in zip(found.traces, known.traces, strict=True):
        check_same_trace(one, other)


def check_same_trace(found: Trace, known: Trace) -> None:
    """Fail unless both tell the same of the run and of each of its spans."""
    read_fully(found)
    read_fully(known)
    assert found.identity == known.identity
    assert found.path == known.path
    assert found.record == known.record
    assert found.meta == known.meta
    assert list(found.problems) == list(known.problems)
    assert found.loaded == known.loaded
    assert found.spawned == known.spawned
    assert len(found) == len(known)
    for index in range(len(known)):
        span = known.span(index)
        assert found.span(index) == span
        assert found.text(index) == known.text(index)
        assert found.index_of(span.key) == index

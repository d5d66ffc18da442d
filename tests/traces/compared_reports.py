"""Comparison of two readings of one file."""

from __future__ import annotations

from mast_tui.traces.library import read_fully
from mast_tui.traces.model import FileReport, Trace


def check_same_report(actual: FileReport, expected: FileReport) -> None:
    """Fail unless two reports on a file and their traces are equal."""
    assert actual.path == expected.path
    assert actual.format == expected.format
    assert actual.problems == expected.problems
    assert (actual.skipped, actual.failed) == (expected.skipped, expected.failed)
    assert actual.thread == expected.thread
    assert len(actual.traces) == len(expected.traces)
    for actual_trace, expected_trace in zip(actual.traces, expected.traces, strict=True):
        check_same_trace(actual_trace, expected_trace)


def check_same_trace(actual: Trace, expected: Trace) -> None:
    """Fail unless two readings of a trace have the same facts and spans."""
    read_fully(actual)
    read_fully(expected)
    assert actual.identity == expected.identity
    assert actual.path == expected.path
    assert actual.record == expected.record
    assert actual.meta == expected.meta
    assert list(actual.problems) == list(expected.problems)
    assert actual.loaded == expected.loaded
    assert actual.spawned == expected.spawned
    assert len(actual) == len(expected)
    for index in range(len(expected)):
        span = expected.span(index)
        assert actual.span(index) == span
        assert actual.text(index) == expected.text(index)
        assert actual.index_of(span.key) == index

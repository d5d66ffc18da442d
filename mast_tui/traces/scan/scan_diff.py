"""What a walk has found the last time, and what the next one finds to be different."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson

from mast_tui.traces.index import cached_values
from mast_tui.traces.io.remote import trace_path
from mast_tui.traces.model import FileReport, Trace, TraceSummary
from mast_tui.traces.scan.unread import FileToRead, summary_from, unread_trace

Looked = tuple[Trace, Sequence[str]]
"""A trace that was found, with the files of its sub-agents."""

ReadAgain = Callable[[Path, Sequence[Path]], FileReport]
"""Reads a file, or the folder of one run, and the files of its sub-agents."""


def look_to_bytes(found: Sequence[Looked]) -> bytes:
    """The traces as bytes. Raises ``TypeError`` for what cannot be kept."""
    return orjson.dumps(
        [
            (
                trace.file,
                trace.record,
                members,
                trace.is_amended,
                tuple(trace.summary),
            )
            for trace, members in found
        ]
    )


def look_from_bytes(data: bytes, read: ReadAgain) -> tuple[Trace, ...] | None:
    """Tell the traces that the bytes hold, without their spans.

    Args:
        data: What ``look_to_bytes`` made.
        read: Reads a file and those of its sub-agents, when a trace of it is opened.

    Returns:
        The traces; None where the bytes hold none.
    """
    try:
        traces: list[Trace] = []
        file: FileToRead | None = None
        for path, record, members, amended, values in cached_values.sequence(orjson.loads(data)):
            if file is None or path != file.path:
                path = cached_values.path(path)
                members = tuple(map(cached_values.path, cached_values.sequence(members)))
                again = partial(read, trace_path(path), tuple(map(trace_path, members)))
                file = FileToRead(path, members, again)
            known = summary_from(values)
            trace = unread_trace(file, cached_values.count_or_none(record), known)
            traces.append(_amended(trace, known) if amended else trace)
    except (orjson.JSONDecodeError, TypeError, ValueError):
        return None
    return tuple(traces)


def _amended(trace: Trace, known: TraceSummary) -> Trace:
    """The trace under its settled id, with facts that other files have told of it."""
    return trace.with_id(known.trace_id).with_facts(replace(known.meta, task=None))


class Differences:
    """Holds what a walk finds against the last look, whose traces are shown already."""

    def __init__(self) -> None:
        self._unseen: dict[str, Trace] = {}
        self._at: dict[tuple[str, int | None], str] = {}
        self._gone: list[str] = []
        self.any = False

    def expect(self, traces: Sequence[Trace]) -> None:
        """The last look has found these too."""
        for trace in traces:
            trace_id = _id_of(trace)
            self._unseen[trace_id] = trace
            self._at[trace.file, trace.record] = trace_id

    def of(self, report: FileReport) -> FileReport | None:
        """The report without traces that are as they were; None where that is all it tells."""
        changed = [trace for trace in report.traces if self._is_news(trace)]
        if changed:
            self.any = True
        told = report.problems or report.skipped is not None or report.failed is not None
        if not changed and not told:
            return None
        return replace(report, traces=tuple(changed))

    def gone(self) -> list[str]:
        """Ids of traces that turned out to be no more, since this was asked before."""
        gone, self._gone = self._gone, []
        return gone

    def end(self) -> None:
        """The walk is over: what it has not met is gone."""
        self._gone += self._unseen
        self.any = self.any or bool(self._unseen)
        self._unseen = {}

    def _is_news(self, trace: Trace) -> bool:
        trace_id = _id_of(trace)
        was = self._unseen.pop(trace_id, None)
        if was is not None:
            return not _same(was, trace)
        before = self._at.get((trace.file, trace.record))
        if before is not None and self._unseen.pop(before, None) is not None:
            self._gone.append(before)
        return True


def _id_of(trace: Trace) -> str:
    return trace.summary.trace_id


def _same(was: Trace, trace: Trace) -> bool:
    """Whether all that is shown of the two is the same, and both are read in the same way."""
    if trace.as_told:
        return False
    return was.summary == trace.summary and was.record == trace.record and was.file == trace.file

"""What a walk finds to be different from what the last one has found."""

from __future__ import annotations

from collections.abc import Sequence

from mast_tui.traces.model import FileReport, Trace


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
        return report._replace(traces=tuple(changed))

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

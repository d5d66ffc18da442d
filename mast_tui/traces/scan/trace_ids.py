"""Trace ids that are unique over many files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mast_tui.traces.keys import UniqueKeys
from mast_tui.traces.model import FileReport, Problem, Trace


class TraceIds:
    """Keeps trace ids unique over many files."""

    def __init__(self) -> None:
        self._ids = UniqueKeys()
        self._contents: dict[str, dict[str, Path]] = {}

    def settle(self, report: FileReport) -> FileReport:
        """The report without traces that are known already, and with ids that are unique."""
        traces: list[Trace] = []
        problems = list(report.problems)
        twin: Path | None = None
        for trace in report.traces:
            identity = trace.identity
            known = self._contents.setdefault(identity.trace_id, {})
            twin = known.get(identity.content_hash)
            place = "whole file" if trace.record is None else f"record {trace.record}"
            if twin is not None:
                problems.append(Problem(place, f"the same trace as in {twin}; shown once"))
                continue
            trace_id = self._ids.take(identity.trace_id)
            if trace_id != identity.trace_id:
                other = next(iter(known.values()), None)
                where = f"a trace in {other}" if other else "another trace"
                message = f"has the id of {where}, but other content; shown as {trace_id}"
                problems.append(Problem(place, message))
                trace = trace.with_id(trace_id)
            known[identity.content_hash] = report.path
            traces.append(trace)
        if report.traces and not traces:
            return FileReport(report.path, skipped=f"the same trace as in {twin}")
        return replace(report, traces=tuple(traces), problems=tuple(problems))

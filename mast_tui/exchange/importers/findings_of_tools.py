"""``pisama`` and ``agentdebugx``: findings of these tools in traces that ``convert`` has written.

Pisama (0.7) reads ATIF and names its own spans by hashes, which are computed here again from the
ATIF file. AgentDebugX (0.5) names events, whose ids are the keys of spans in files that ``convert``
has written. So each finding belongs to a known span; findings in other files cannot be read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import (
    Gathered,
    ImportedWork,
    Incoming,
    imported_kind,
    shipped_taxonomy,
)
from mast_tui.exchange.trace_files import read_each, read_json
from mast_tui.labels import WHOLE_TRACE, Severity, Target

_OTHER: Final = "other"
_GENERATED_EVENT_ID: Final = re.compile(r"evt_[0-9a-f]{32}\Z")

Record = Mapping[str, Any]


def read_pisama(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read the output of ``pisama analyze --json``, with the ATIF files that were analyzed.

    For each piece of evidence of an issue there is a label from its first to its last span. An
    issue whose evidence names no spans is a label on the whole trace.

    Args:
        files: The files and folders.
        annotator: The annotator's name, None for the usual one.

    Raises:
        ExchangeError: No answer of Pisama is among the files.
    """
    batch = _ToolBatch("pisama", annotator)
    answers: list[tuple[Path, Record]] = []
    trajectories: dict[str, _Trajectory] = {}
    for file, record in batch.records_in(files, ".json", ".jsonl", ".pisama"):
        if isinstance(record.get("issues"), list) and "trace_id" in record:
            answers.append((file, record))
        elif str(record.get("schema_version", "")).startswith("ATIF-"):
            trajectory = _Trajectory.of(record)
            if trajectory is not None:
                trajectories[trajectory.id] = trajectory
    if not answers and not batch.problems:
        raise ExchangeError(f"{files[0]}: no answer of Pisama, which has 'issues' and 'trace_id'")
    for file, record in answers:
        trajectory = trajectories.get(str(record["trace_id"]))
        if trajectory is None:
            batch.wrong(
                file,
                f"trace {record['trace_id']}",
                "the file that was analyzed is not named; name the one that 'mast-tui convert "
                "--to atif' wrote",
            )
            continue
        draft = batch.work(file, trajectory.trace_id)
        for number, issue in enumerate(record["issues"]):
            try:
                for target in _targets_of_issue(issue, trajectory):
                    batch.add(
                        draft,
                        str(issue["type"]),
                        target,
                        [issue.get("summary"), f"Severity {issue.get('severity')} of 100"],
                        issue.get("confidence"),
                    )
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                batch.wrong(file, f"issue {number}", f"no issue of Pisama: {error}")
    return batch.done()


def read_agentdebugx(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read the output of ``agentdebug diagnose`` on files of ``convert --to agentdebugx``.

    A finding becomes a label on its event's span. The label on the decisive event is fatal; if that
    event has no finding, a label ``other`` is added.

    Args:
        files: The files and folders.
        annotator: The annotator's name, None for the usual one.

    Raises:
        ExchangeError: No report of AgentDebugX is among the files.
    """
    batch = _ToolBatch("agentdebugx", annotator)
    reports = [
        (file, record)
        for file, record in batch.records_in(files, ".json", ".jsonl")
        if isinstance(record.get("findings"), list) and "trace_id" in record
    ]
    if not reports and not batch.problems:
        raise ExchangeError(
            f"{files[0]}: no report of AgentDebugX, which has 'findings' and 'trace_id'"
        )
    for file, report in reports:
        draft = batch.work(file, str(report["trace_id"]))
        decisive_event = _decisive_event(report)
        has_decisive_finding = False
        for number, finding in enumerate(report["findings"]):
            try:
                mode = finding["failure_mode"]
                event = finding.get("event_id")
                is_decisive = event is not None and event == decisive_event
                has_decisive_finding = has_decisive_finding or is_decisive
                batch.add(
                    draft,
                    str(mode["mode_id"]),
                    _target_of_event(event),
                    [mode.get("name"), *finding.get("evidence", ()), finding.get("suggestion")],
                    finding.get("confidence"),
                    fatal=is_decisive,
                )
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                batch.wrong(file, f"finding {number}", f"no finding of AgentDebugX: {error}")
        if decisive_event is not None and not has_decisive_finding:
            try:
                batch.add(
                    draft,
                    _OTHER,
                    _target_of_event(decisive_event),
                    [report.get("summary")],
                    None,
                    fatal=True,
                )
            except ValueError as error:
                batch.wrong(file, "root cause", str(error))
    return batch.done()


def _decisive_event(report: Record) -> str | None:
    """Return the event id of the first hypothesis, else of the root cause; None without both."""
    attribution = report.get("attribution")
    hypotheses = attribution.get("hypotheses") if isinstance(attribution, Mapping) else None
    first = hypotheses[0] if isinstance(hypotheses, list) and hypotheses else None
    event = first.get("span_id") if isinstance(first, Mapping) else None
    event = event or report.get("root_cause_event_id")
    return None if event is None else str(event)


def _target_of_event(event: object) -> Target:
    """Return the target for the span with an event's id; None is the whole trace.

    Raises:
        ValueError: The tool has made up the event's id.
    """
    if event is None:
        return WHOLE_TRACE
    key = str(event)
    if _GENERATED_EVENT_ID.match(key):
        raise ValueError(
            f"event {key} is no span's key; have AgentDebugX read what 'mast-tui convert --to "
            "agentdebugx' wrote"
        )
    return Target(key, key)


@dataclass(frozen=True, slots=True)
class _Trajectory:
    """An ATIF trajectory that ``convert`` has written.

    Attributes:
        id: Pisama's id of the trajectory.
        trace_id: The id of the original trace.
        keys: The keys of the original spans by Pisama's ids of spans, in order.
    """

    id: str
    trace_id: str
    keys: Mapping[str, str]

    @classmethod
    def of(cls, record: Record) -> _Trajectory | None:
        """Return the trajectory of an ATIF document; None if ``convert`` has not written it."""
        extra = record.get("extra")
        agent = record.get("agent")
        if not isinstance(extra, Mapping) or not isinstance(agent, Mapping):
            return None
        trace_id = extra.get("trace")
        if not isinstance(trace_id, str):
            return None
        # As pisama/_atif.py has it: the trace by its session, a span by trace, document, agent,
        # step and, for a tool, its place among the step's calls.
        trace = hashlib.sha256(str(record["session_id"]).encode()).hexdigest()[:32]
        keys: dict[str, str] = {}
        for step in record.get("steps", ()):
            spans = step.get("extra", {}).get("spans") or [""]
            calls = step.get("tool_calls") or []
            call_keys = spans[len(spans) - len(calls) :] if calls else []
            for child, key in enumerate([spans[0], *call_keys]):
                parts = [trace, [record["trajectory_id"]], [agent["name"]], step["step_id"], child]
                hashed_text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
                keys[hashlib.sha256(hashed_text.encode()).hexdigest()[:16]] = key
        return cls(trace, trace_id, keys)


def _targets_of_issue(issue: Record, trajectory: _Trajectory) -> list[Target]:
    """Return the different ranges of spans in an issue's evidence, or the whole trace if none."""
    index_by_id = {span: index for index, span in enumerate(trajectory.keys)}
    targets: dict[Target, None] = {}
    for evidence in issue["evidence"]:
        span_ids = list(evidence.get("span_ids") or ())
        unknown_ids = [span for span in span_ids if span not in index_by_id]
        if unknown_ids:
            raise ValueError(f"span {unknown_ids[0]!r} is not in the file that was analyzed")
        if span_ids:
            first = min(span_ids, key=index_by_id.__getitem__)
            last = max(span_ids, key=index_by_id.__getitem__)
            targets[Target(trajectory.keys[first], trajectory.keys[last])] = None
    return list(targets) or [WHOLE_TRACE]


class _ToolBatch(Gathered):
    """The findings of one tool that were read so far."""

    def __init__(self, tool: str, annotator: str | None) -> None:
        self._taxonomy = shipped_taxonomy(tool)
        super().__init__({self._taxonomy.ref: self._taxonomy})
        self._name = annotator or f"judge:{tool}"
        self._modes = {
            name: mode.slug
            for mode in self._taxonomy.modes
            for name in (mode.slug, *(alias.name for alias in mode.aliases))
        }

    def records_in(self, files: Sequence[Path], *suffixes: str) -> Iterator[tuple[Path, Record]]:
        """Yield the objects of JSON files or of their lines; unreadable files become problems."""
        for file, document in read_each(files, self.problems, read_json, suffixes):
            for record in document if isinstance(document, list) else [document]:
                if isinstance(record, Mapping):
                    yield file, record

    def work(self, file: Path, trace_id: str) -> ImportedWork:
        """Return the finished work on a trace; a second answer replaces the first.

        Args:
            file: The file.
            trace_id: The trace's id.
        """
        kind = imported_kind(self._name)
        draft = ImportedWork(
            self._name, trace_id, self._taxonomy.ref, kind, finished_at="", file=file
        )
        self.keep(draft)
        return draft

    def add(
        self,
        draft: ImportedWork,
        mode: str,
        target: Target,
        notes: Sequence[object],
        confidence: object,
        *,
        fatal: bool = False,
    ) -> None:
        """Add a finding; an unknown mode becomes ``other``, with its name in the note.

        Args:
            draft: The work to which it is added.
            mode: The name of the failure mode.
            target: The target.
            notes: The lines of the note.
            confidence: The confidence as JSON.
            fatal: True if the failure decided the outcome.
        """
        slug = self._modes.get(mode, _OTHER)
        texts = [str(note) for note in notes if note]
        label = draft.label(
            slug,
            target,
            "\n".join(texts if mode in self._modes else [mode, *texts]),
            confidence=float(confidence) if isinstance(confidence, int | float) else None,
            severity=Severity.FATAL if fatal else None,
        )
        draft.join_label(label)

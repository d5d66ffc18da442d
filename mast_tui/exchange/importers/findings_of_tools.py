"""``pisama`` and ``agentdebugx``: what these tools find in traces that ``convert`` wrote for them.

Pisama (0.7) reads ATIF and names the spans that it makes of the steps: their ids are hashes, which
are worked out again here from the ATIF file. AgentDebugX (0.5) names events, whose ids ``convert``
has made the keys of the spans. So every finding comes back to the very span of the trace as it was
before; of anything else than what ``convert`` wrote nobody could tell which span is meant.
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
_MADE_BY_THE_TOOL: Final = re.compile(r"evt_[0-9a-f]{32}\Z")

Record = Mapping[str, Any]


def read_pisama(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read what ``pisama analyze --json`` printed, with the ATIF files that it was about.

    An issue is a label at each stretch of spans that its evidence names, from the first to the
    last; one that names none is about the whole trace.

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
                for target in _places(issue, trajectory):
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
    """Read what ``agentdebug diagnose`` wrote of trajectories from ``convert --to agentdebugx``.

    A finding is a label on its event's span. The step that the attribution names first, else the
    root cause, is decisive.

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
        decisive = _decisive_event(report)
        met = False
        for number, finding in enumerate(report["findings"]):
            try:
                mode = finding["failure_mode"]
                event = finding.get("event_id")
                met = met or (event == decisive and event is not None)
                batch.add(
                    draft,
                    str(mode["mode_id"]),
                    _target_of_event(event),
                    [mode.get("name"), *finding.get("evidence", ()), finding.get("suggestion")],
                    finding.get("confidence"),
                    fatal=event is not None and event == decisive,
                )
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                batch.wrong(file, f"finding {number}", f"no finding of AgentDebugX: {error}")
        if decisive is not None and not met:
            try:
                batch.add(
                    draft,
                    _OTHER,
                    _target_of_event(decisive),
                    [report.get("summary")],
                    None,
                    fatal=True,
                )
            except ValueError as error:
                batch.wrong(file, "root cause", str(error))
    return batch.done()


def _decisive_event(report: Record) -> str | None:
    """Return the event that the attribution blames first, else the root cause of the findings."""
    attribution = report.get("attribution")
    hypotheses = attribution.get("hypotheses") if isinstance(attribution, Mapping) else None
    first = hypotheses[0] if isinstance(hypotheses, list) and hypotheses else None
    event = first.get("span_id") if isinstance(first, Mapping) else None
    event = event or report.get("root_cause_event_id")
    return None if event is None else str(event)


def _target_of_event(event: object) -> Target:
    """Return the span of an event; the whole trace where there is none."""
    if event is None:
        return WHOLE_TRACE
    key = str(event)
    if _MADE_BY_THE_TOOL.match(key):
        raise ValueError(
            f"event {key} is no span's key; have AgentDebugX read what 'mast-tui convert --to "
            "agentdebugx' wrote"
        )
    return Target(key, key)


@dataclass(frozen=True, slots=True)
class _Trajectory:
    """An ATIF trajectory that ``convert`` wrote, as Pisama names it and its spans.

    ``keys`` are the keys of the original's spans by the ids that Pisama gives, in order.
    """

    id: str
    trace_id: str
    keys: Mapping[str, str]

    @classmethod
    def of(cls, record: Record) -> _Trajectory | None:
        """None where the keys of the spans do not stand in it."""
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
            of_calls = spans[len(spans) - len(calls) :] if calls else []
            for child, key in enumerate([spans[0], *of_calls]):
                named = [trace, [record["trajectory_id"]], [agent["name"]], step["step_id"], child]
                arguments = json.dumps(named, ensure_ascii=False, separators=(",", ":"))
                keys[hashlib.sha256(arguments.encode()).hexdigest()[:16]] = key
        return cls(trace, trace_id, keys)


def _places(issue: Record, trajectory: _Trajectory) -> list[Target]:
    """Return the ranges that an issue's evidence names, each once, or the whole trace."""
    order = {span: index for index, span in enumerate(trajectory.keys)}
    targets: dict[Target, None] = {}
    for evidence in issue["evidence"]:
        named = list(evidence.get("span_ids") or ())
        unknown = [span for span in named if span not in order]
        if unknown:
            raise ValueError(f"span {unknown[0]!r} is not in the file that was analyzed")
        if named:
            first = min(named, key=order.__getitem__)
            last = max(named, key=order.__getitem__)
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
        """Yield the objects of JSON files, or of their lines; what cannot be read is noted."""
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
        """Add a finding; one of a mode that is not known goes to ``other`` with its name.

        Args:
            draft: The work to which it is added.
            mode: The name of the failure mode.
            target: The target.
            notes: The lines of the note.
            confidence: The confidence as JSON.
            fatal: Whether the failure decided the outcome.
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

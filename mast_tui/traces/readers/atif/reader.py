"""ATIF, the Agent Trajectory Interchange Format, as Harbor, VS Code and others write it.

Versions 1.0 to 1.8 are read, and files that only resemble them. A file holds one trajectory, a list
or bundle of them, or one a line; a trajectory that another of the file refers to is its sub-agent.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Sequence
from typing import Final

from mast_tui.traces.index.document import Step, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import as_text, canonical_bytes
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import AnswerKey, FileReport, Problem, Trace, TraceMeta
from mast_tui.traces.readers.answer_keys import answer_key_of
from mast_tui.traces.readers.atif.steps import (
    Located,
    Scope,
    TrajectorySpans,
    agent_name,
    by_id,
    field,
    ids_of,
    is_trajectory,
    refers_to,
    results_of,
    steps_of,
)
from mast_tui.traces.readers.document_traces import (
    Record,
    records_by_line,
    records_listed,
    report_of,
    trace_of_steps,
)
from mast_tui.traces.readers.json_fields import Fields, fields_of, mostly
from mast_tui.traces.readers.run_facts import facts_of_record, task_of

_MARKS: Final = (b"ATIF", b'"steps"', b'"schema_version"', b'"schemaVersion"')
_LOOKED_AT: Final = 20
_PART: Final = "-cont-"
"""Stands in the id of a session which Terminus goes on with in another file."""


class AtifReader:
    """Reads ATIF; keys are JSON pointers within the trajectory, calls and results go by their id.

    The keys of a sub-agent's spans begin with its trajectory's id, or that of its session.
    """

    name: Final = "atif"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Whether the file holds trajectories of the format, most of its first records."""
        head = as_utf8(source.head)
        if head.lstrip()[:1] not in (b"{", b"[") or not any(mark in head for mark in _MARKS):
            return False
        lines = source.json_lines
        if len(lines) > 1 or source.json is None:
            return mostly(is_trajectory, lines)
        return mostly(is_trajectory, (one.value for one in _contained(source.json)))

    def read(self, source: Source) -> FileReport:
        """One trace per trajectory that no other refers to."""
        problems: list[Problem] = []
        records = _records(source, problems)
        scope = ChainMap(by_id(records))
        referred = {name for found in records for name in _referred(found.record)}
        shown: set[str] = set()
        traces: dict[int, Trace] = {}
        roots = [referred.isdisjoint(ids_of(found.record)) for found in records]
        for wanted in (True, False):  # those that only refer to each other are left for the end
            for place, found in enumerate(records):
                if roots[place] is wanted and found.place not in shown:
                    traces[place] = self._trace(source, found, scope, shown)
        return report_of(self, source, [traces[place] for place in sorted(traces)], problems)

    def _trace(self, source: Source, found: Located, scope: Scope, shown: set[str]) -> Trace:
        value, steps, problems = found.record, StepList(), list[Problem]()
        TrajectorySpans(found, scope, steps, problems, shown).read()
        return trace_of_steps(
            self,
            source.path,
            source.data if found.number is None else canonical_bytes(value),
            steps,
            meta=_facts(value, steps.steps),
            record=found.number,
            native=_own_id(value),
            problems=problems,
        )


READER: Final = AtifReader()


def _own_id(record: Fields) -> str | None:
    """The trajectory's own id; that of its session only where one file has the session.

    A file that begins with copied steps goes on with a session which another file began, unless
    the session's id says which part it is.
    """
    ids = ids_of(record)
    continues = field(record, "trajectory_id") is None and any(
        field(fields_of(step), "is_copied_context") is True for step in steps_of(record)
    )
    return None if not ids or (continues and _PART not in ids[0]) else ids[0]


def _contained(document: object) -> Iterator[Record]:
    """The trajectories of a document: itself, or those in a list."""
    bundle = fields_of(document).get("trajectories")
    if isinstance(document, list):
        yield from records_listed(document)
    elif isinstance(bundle, list) and not is_trajectory(document):
        yield from records_listed(bundle, "/trajectories")
    else:
        yield Record(document)


def _records(source: Source, problems: list[Problem]) -> list[Located]:
    """The trajectories of a file; what is none of them goes to ``problems``."""
    document = source.json if len(source.json_lines) < 2 else None
    found = records_by_line(source, problems) if document is None else _contained(document)
    records = []
    for record in found:
        if isinstance(record.value, dict) and is_trajectory(record.value):
            records.append(Located(record.value, record.prefix, record.number))
        else:
            place = record.prefix.strip() or "whole file"
            problems.append(Problem(place, "no trajectory, left out"))
    return records


def _referred(record: Fields) -> set[str]:
    """The ids of the sub-agents that a trajectory refers to, its own ids left out."""
    names = {
        name
        for step in steps_of(record)
        if isinstance(step, dict)
        for _place, result in results_of(step)
        if isinstance(result, dict)
        for ref in refers_to(result)
        for name in ref.ids
    }
    return names.difference(ids_of(record))


def _facts(record: Fields, steps: Sequence[Step]) -> TraceMeta:
    """What a trajectory and its ``extra`` tell about the run."""
    extra = record.get("extra")
    meta = facts_of_record(extra if isinstance(extra, dict) else record, steps)
    own = answer_key_of(record) if isinstance(extra, dict) else AnswerKey()
    return meta._replace(
        task=task_of(steps=steps),
        system=agent_name(record),
        model=_model(record),
        answer_key=own.with_all_of(meta.answer_key),
    )


def _model(record: Fields) -> str | None:
    """The model of the agent, or of the first step that names one."""
    for holder in map(fields_of, (record.get("agent"), *steps_of(record)[:_LOOKED_AT])):
        if name := as_text(field(holder, "model_name")) or as_text(holder.get("model")):
            return name
    return None

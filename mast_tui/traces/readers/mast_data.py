"""MAST-Data: records of a run's whole log as one text, with labels beside it.

The log goes to the reader of the framework that wrote it. Which one that is, the text tells: the
record's own fields are swapped in places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from mast_tui.traces.document import DocumentTrace
from mast_tui.traces.identity import identity_by_content
from mast_tui.traces.json_values import as_text, canonical_bytes, dump_text
from mast_tui.traces.model import FileReport, Problem, Role, TraceMeta
from mast_tui.traces.readers.frameworks import framework_of
from mast_tui.traces.readers.frameworks.base import Reading, Transcript, add_message, paragraphs
from mast_tui.traces.readers.json_documents import json_lines_head, read_document, read_lines
from mast_tui.traces.readers.messages import MessageMapper, is_message
from mast_tui.traces.readers.run_facts import facts_of_record
from mast_tui.traces.source import Source

_MARKS: Final = ("mas_name", "mast_annotation", "human_labels", "benchmark_name")
_LOOKED_AT: Final = 20


@dataclass(frozen=True, slots=True)
class MastDataReader:
    """Reads MAST-Data records: one, a list of them, or one a line.

    Span keys are those of the framework's reader, within the record's log.
    """

    name: ClassVar[str] = "mast-data"
    key_scheme: ClassVar[int] = 1

    def recognises(self, source: Source) -> bool:
        """Whether the file's first records have a log and a field of the study."""
        if head := json_lines_head(source):
            return any(map(_is_record, head))
        document = read_document(source)
        if isinstance(document, list):
            return any(map(_is_record, document[:_LOOKED_AT]))
        return _is_record(document)

    def read(self, source: Source) -> FileReport:
        """One trace per record; elements that are none are listed as problems."""
        problems: list[Problem] = []
        traces: list[DocumentTrace] = []
        if json_lines_head(source):
            for line in read_lines(source, problems):
                self._add(source, line.value, line.record, f"line {line.number}", traces, problems)
        else:
            document = read_document(source)
            if isinstance(document, list):
                for record, value in enumerate(document):
                    self._add(source, value, record, f"/{record}", traces, problems)
            else:
                self._add(source, document, None, "", traces, problems)
        return FileReport(
            source.path, format=self.name, traces=tuple(traces), problems=tuple(problems)
        )

    def _add(
        self,
        source: Source,
        value: object,
        record: int | None,
        place: str,
        traces: list[DocumentTrace],
        problems: list[Problem],
    ) -> None:
        if not isinstance(value, Mapping) or (found := _log(value)) is None:
            problems.append(Problem(place, "no record with a log of a run, left out"))
            return
        pointer, log = found
        content = source.data if record is None else canonical_bytes(value)
        reading, system = _read(log)
        identity = identity_by_content(
            source.path, record, content, reader=self.name, key_scheme=self.key_scheme
        )
        steps = [
            replace(step, place=_join(place, pointer, step.place)) for step in reading.steps.steps
        ]
        found_problems = [
            Problem(_join(place, pointer, problem.place), problem.message)
            for problem in reading.problems
        ]
        traces.append(
            DocumentTrace(
                identity,
                source.path,
                steps,
                record=record,
                meta=_facts(value, reading, system),
                problems=found_problems,
            )
        )


READER: Final = MastDataReader()


def _is_record(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and any(mark in value for mark in _MARKS)
        and _log(value) is not None
    )


def _log(record: Mapping[str, object]) -> tuple[str, object] | None:
    """The pointer to the record's log and the log itself."""
    trace = record.get("trace")
    if isinstance(trace, Mapping):
        log = trace.get("trajectory")
        if isinstance(log, str | list | Mapping):
            return "/trace/trajectory", log
    elif isinstance(trace, str | list):
        return "/trace", trace
    text = record.get("trace_text")
    return ("/trace_text", text) if isinstance(text, str) else None


def _read(log: object) -> tuple[Reading, str | None]:
    """The run in a log, and the framework that wrote it."""
    if isinstance(log, str):
        transcript = Transcript(log)
    else:
        transcript = Transcript(dump_text(log), log)
    framework = framework_of(transcript)
    if framework is not None:
        return framework.read_transcript(transcript), framework.system
    reading = Reading()
    messages = transcript.json
    if isinstance(messages, list) and any(map(is_message, messages[:_LOOKED_AT])):
        mapper = MessageMapper(reading.steps)
        for number, message in enumerate(messages):
            mapper.add(message, f"/{number}")
        reading.problems.extend(mapper.problems)
    else:
        for block in paragraphs(transcript.text):
            add_message(reading, block, "text", block.body, role=Role.LOG)
    return reading, None


def _facts(record: Mapping[str, object], reading: Reading, system: str | None) -> TraceMeta:
    """The record's facts and those of its log; the framework as the log tells it."""
    meta = facts_of_record(record, reading.steps.steps)
    of_log = reading.meta(system or meta.system or "")
    benchmark = meta.benchmark
    if system is not None and as_text(benchmark) and _same_name(benchmark, system):
        # The two fields are swapped in some records.
        benchmark = as_text(record.get("mas_name"))
    return TraceMeta(
        task=of_log.task,
        system=system or meta.system,
        model=meta.model or of_log.model,
        benchmark=benchmark,
        outcome=of_log.outcome if meta.outcome.value == "unknown" else meta.outcome,
        score=meta.score,
        hidden=meta.hidden + of_log.hidden,
    )


def _same_name(one: str | None, other: str) -> bool:
    """Whether two spellings mean one framework: ``Magentic`` is ``Magentic-One``."""
    left, right = _letters(one or ""), _letters(other)
    return bool(left) and (left.startswith(right) or right.startswith(left))


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _join(place: str, pointer: str, inner: str) -> str:
    """The place of a span in the file: the record, the log in it, the line in that."""
    separator = "" if inner.startswith("/") else " "
    if place.startswith("line "):
        place += " "
    return f"{place}{pointer}{separator}{inner}"

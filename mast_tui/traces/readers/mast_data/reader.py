"""MAST-Data: records of a run's whole log as one text, with labels beside it.

The log goes to the reader of the framework that wrote it. Which one that is, the text tells: the
record's own fields are swapped in places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

from mast_tui.traces.identity import identity_by_content
from mast_tui.traces.index.document import StepSpans
from mast_tui.traces.io.json_values import (
    InvalidJSON,
    as_text,
    canonical_bytes,
    dump_text,
    load_json,
)
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Role, Trace, TraceMeta
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.chat.pieces import is_message
from mast_tui.traces.readers.frameworks import framework_of
from mast_tui.traces.readers.frameworks.base import Reading, Transcript, add_message, paragraphs
from mast_tui.traces.readers.json_documents import read_lines
from mast_tui.traces.readers.json_fields import Fields
from mast_tui.traces.readers.run_facts import facts_of_record

_MARKS: Final = ("mas_name", "mast_annotation", "human_labels", "benchmark_name")
_WRAPPER: Final = frozenset({"key", "index"})
"""Fields beside a log's text, of which at least one stands in the object around it."""

_LOOKED_AT: Final = 20
_NO_LOG: Final = "no record with a log of a run, left out"


@dataclass(frozen=True, slots=True)
class MastDataReader:
    """Reads MAST-Data records: one, a list of them, or one a line.

    Span keys are those of the framework's reader, within the record's log.
    """

    name: ClassVar[str] = "mast-data"
    key_scheme: ClassVar[int] = 1

    def recognises(self, source: Source) -> bool:
        """Whether the file's first records have a log and a field of the study."""
        if head := source.json_lines:
            return any(map(is_record, head))
        document = source.json
        if isinstance(document, list):
            return any(map(is_record, document[:_LOOKED_AT]))
        return is_record(document)

    def read(self, source: Source) -> FileReport:
        """One trace per record; elements that are none are listed as problems."""
        problems: list[Problem] = []
        if source.json_lines:
            lines = read_lines(source, problems)
            records = ((line.record, f"line {line.number}", line.value) for line in lines)
            traces = traces_of_records(source.path, records, problems)
        else:
            document = source.json
            if isinstance(document, list):
                listed = ((number, f"/{number}", value) for number, value in enumerate(document))
                traces = traces_of_records(source.path, listed, problems)
            elif (trace := _trace(source.path, document, None, "", source.data)) is not None:
                traces = [trace]
            else:
                traces = []
                problems.append(Problem("/", _NO_LOG))
        return FileReport(
            source.path, format=self.name, traces=tuple(traces), problems=tuple(problems)
        )


READER: Final = MastDataReader()


def traces_of_records(
    path: Path, records: Iterable[tuple[int, str, object]], problems: list[Problem]
) -> list[Trace]:
    """One trace for each record, given with its number and its place in the file at ``path``.

    Records without a log are added to ``problems``.
    """
    traces = []
    for number, place, value in records:
        trace = _trace(path, value, number, place, None)
        if trace is None:
            problems.append(Problem(place, _NO_LOG))
        else:
            traces.append(trace)
    return traces


def is_record(value: object) -> bool:
    """Whether a JSON value is a record with a log and a field of the study."""
    return (
        isinstance(value, Mapping)
        and any(mark in value for mark in _MARKS)
        and _log(value) is not None
    )


def _trace(
    path: Path, value: object, record: int | None, place: str, content: bytes | None
) -> Trace | None:
    """The trace of a record; None where it holds no log."""
    if not isinstance(value, Mapping) or (found := _log(value)) is None:
        return None
    pointer, log = found
    reading, system = _read(log)
    identity = identity_by_content(
        path,
        record,
        canonical_bytes(value) if content is None else content,
        reader=MastDataReader.name,
        key_scheme=MastDataReader.key_scheme,
    )
    steps = [replace(step, place=_join(place, pointer, step.place)) for step in reading.steps.steps]
    problems = [
        Problem(_join(place, pointer, problem.place), problem.message)
        for problem in reading.problems
    ]
    meta = _facts(value, reading, system)
    return Trace(identity, path, StepSpans(steps), record=record, meta=meta, problems=problems)


def _log(record: Fields) -> tuple[str, object] | None:
    """The pointer to the record's log and the log itself."""
    trace = record.get("trace")
    if isinstance(trace, str) and trace.lstrip()[:1] == "{":
        trace = _unpacked(trace)
    if isinstance(trace, Mapping):
        log = trace.get("trajectory")
        if isinstance(log, str | list | Mapping):
            return "/trace/trajectory", log
    elif isinstance(trace, str | list):
        return "/trace", trace
    text = record.get("trace_text")
    return ("/trace_text", text) if isinstance(text, str) else None


def _unpacked(trace: str) -> object:
    """The object around a log that was written as a JSON text; a log that is JSON stays itself."""
    try:
        value = load_json(trace)
    except InvalidJSON:
        return trace
    is_wrapper = isinstance(value, Mapping) and "trajectory" in value and _WRAPPER & value.keys()
    return value if is_wrapper else trace


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


def _facts(record: Fields, reading: Reading, system: str | None) -> TraceMeta:
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
        answer_key=meta.answer_key.with_all_of(of_log.answer_key),
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
    if place.startswith(("line ", "row ")):
        place += " "
    return f"{place}{pointer}{separator}{inner}"

"""MAST-Data: records of a run's whole log as one text, with labels beside it.

The log goes to the reader of the framework that wrote it. The text decides which one that is: the
record's own fields are swapped in places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Role, SpanKind, Trace, TraceMeta
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.chat.turns import is_message
from mast_tui.traces.readers.document_traces import Record, records_in, report_of, trace_of_steps
from mast_tui.traces.readers.frameworks import framework_of
from mast_tui.traces.readers.frameworks.base import Reading, Transcript
from mast_tui.traces.readers.json_fields import Fields, fields_of, object_in
from mast_tui.traces.readers.run_facts import facts_of_record

_MARKS: Final = ("mas_name", "mast_annotation", "human_labels", "benchmark_name")
_WRAPPER: Final = frozenset({"key", "index"})
"""Fields beside a log's text, of which at least one is in the object around it."""

_LOOKED_AT: Final = 20


class MastDataReader:
    """Reads MAST-Data records: one, a list of them, or one a line.

    Span keys are those of the framework's reader, within the record's log.
    """

    name: Final = "mast-data"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return whether the file's first records have a log and a field of the study."""
        if head := source.json_lines:
            return any(map(is_record, head))
        document = source.json
        if isinstance(document, list):
            return any(map(is_record, document[:_LOOKED_AT]))
        return is_record(document)

    def read(self, source: Source) -> FileReport:
        """Return one trace per record; elements that are none are listed as problems."""
        problems: list[Problem] = []
        traces = traces_of_records(source, records_in(source, problems), problems)
        return report_of(self, source, traces, problems)


READER: Final = MastDataReader()


def traces_of_records(
    source: Source, records: Iterable[Record], problems: list[Problem]
) -> list[Trace]:
    """Return one trace for each record of a file.

    Args:
        source: The file.
        records: The records.
        problems: The list to which records without a log are added.
    """
    traces = []
    for record in records:
        trace = _trace(source, record)
        if trace is None:
            problems.append(Problem(record.location, "no record with a log of a run, left out"))
        else:
            traces.append(trace)
    return traces


def is_record(value: object) -> bool:
    """Return whether a JSON value is a record with a log and a field of the study."""
    return (
        isinstance(value, Mapping)
        and any(mark in value for mark in _MARKS)
        and _log(value) is not None
    )


def _trace(source: Source, record: Record) -> Trace | None:
    """Return the trace of a record; None where it holds no log."""
    value = record.value
    if not isinstance(value, Mapping) or (log_field := _log(value)) is None:
        return None
    pointer, log = log_field
    reading, system = _read(log)

    def location_in_file(inner: str) -> str:
        """Return a location in the file: the record, the log in it, the line in that."""
        return f"{record.prefix}{pointer}{'' if inner.startswith('/') else ' '}{inner}"

    for step in reading.steps.steps:
        step.place = location_in_file(step.place)
    return trace_of_steps(
        READER,
        source.path,
        record.content(source),
        reading.steps,
        record=record.number,
        meta=_facts(value, reading, system),
        problems=[
            Problem(location_in_file(problem.place), problem.message)
            for problem in reading.problems
        ],
    )


def _log(record: Fields) -> tuple[str, object] | None:
    """Return the pointer to the record's log and the log itself."""
    trace = record.get("trace")
    if isinstance(trace, str) and trace.lstrip()[:1] == "{":
        # The object around a log as a JSON text; a log that is JSON stays itself.
        value = fields_of(object_in(trace))
        trace = value if "trajectory" in value and _WRAPPER & value.keys() else trace
    if isinstance(trace, Mapping):
        log = trace.get("trajectory")
        if isinstance(log, str | list | Mapping):
            return "/trace/trajectory", log
    elif isinstance(trace, str | list):
        return "/trace", trace
    text = record.get("trace_text")
    return ("/trace_text", text) if isinstance(text, str) else None


def _read(log: object) -> tuple[Reading, str | None]:
    """Return the run in a log, and the framework that wrote it."""
    transcript = Transcript(log) if isinstance(log, str) else Transcript(dump_text(log), log)
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
        lines = enumerate(transcript.text.split("\n"), 1)
        for has_text, group in groupby(lines, key=lambda line: bool(line[1].strip())):
            if has_text:
                (first, _line), *_others = paragraph = list(group)
                text = "\n".join(line for _number, line in paragraph)
                reading.steps.add(f"line {first}", SpanKind.MESSAGE, Role.LOG, "text", text)
    return reading, None


def _facts(record: Fields, reading: Reading, system: str | None) -> TraceMeta:
    """Return the record's facts and those of its log, with the framework by the log."""
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


def _same_name(first: str | None, second: str) -> bool:
    """Return whether two spellings mean one framework: ``Magentic`` is ``Magentic-One``."""
    left = _letters(first or "")
    right = _letters(second)
    return bool(left) and (left.startswith(right) or right.startswith(left))


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()

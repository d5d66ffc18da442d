"""MAST-Data: records with the whole log of a run as one text, and with its labels.

The reader of the framework that wrote the log reads it. The framework is recognised by the text of
the log, because some records name it in another field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Outcome, Problem, Role, SpanKind, Trace, TraceMeta
from mast_tui.traces.readers.base import FormatReader
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.chat.turns import is_message
from mast_tui.traces.readers.document_traces import (
    Record,
    RunOrigin,
    records_in,
    report_of,
    trace_of_steps,
)
from mast_tui.traces.readers.frameworks import Reading, Transcript, framework_of
from mast_tui.traces.readers.json_fields import Fields, fields_of, object_in
from mast_tui.traces.readers.run_facts import facts_of_record

_WRAPPER_FIELDS: Final = frozenset({"key", "index"})
"""The fields of which an object around a log has at least one."""

_COMPARED_ITEMS: Final = 20


def _recognises(source: Source) -> bool:
    """Return whether the file's first records have a log and a field of MAST-Data."""
    if head := source.json_lines:
        return any(map(is_record, head))
    document = source.json
    if isinstance(document, list):
        return any(map(is_record, document[:_COMPARED_ITEMS]))
    return is_record(document)


def _read(source: Source) -> FileReport:
    """Return one trace for each record; other values become problems."""
    problems: list[Problem] = []
    traces = traces_of_records(source, records_in(source, problems), problems)
    return report_of(READER, source, traces, problems)


READER: Final = FormatReader("mast-data", _recognises, _read)
"""Reads MAST-Data records: a single record, a list of records, or one a line.

Span keys are those of the framework's reader, within the record's log.
"""


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
        trace = _trace_of_record(source, record)
        if trace is None:
            problems.append(Problem(record.location, "no record with a log of a run, left out"))
        else:
            traces.append(trace)
    return traces


def is_record(value: object) -> bool:
    """Return whether a JSON value is a record with a log and a field of MAST-Data."""
    return (
        isinstance(value, Mapping)
        and any(
            mark in value
            for mark in ("mas_name", "mast_annotation", "human_labels", "benchmark_name")
        )
        and _log_of_record(value) is not None
    )


def _trace_of_record(source: Source, record: Record) -> Trace | None:
    """Return the trace of a record, if the record has a log."""
    value = record.value
    if not isinstance(value, Mapping):
        return None
    located_log = _log_of_record(value)
    if located_log is None:
        return None
    pointer, log = located_log
    reading, system = _read_log(log)

    def location_in_file(location_in_log: str) -> str:
        """Return the location in the file of a location in the log."""
        # A JSON pointer continues the pointer of the log; other locations, such as lines, do not.
        separator = "" if location_in_log.startswith("/") else " "
        return f"{record.prefix}{pointer}{separator}{location_in_log}"

    for step in reading.steps.steps:
        step.place = location_in_file(step.place)
    return trace_of_steps(
        RunOrigin(READER, source.path, record.content(source), record.number),
        reading.steps,
        _facts_of_record(value, reading, system),
        [Problem(location_in_file(problem.place), problem.message) for problem in reading.problems],
    )


def _log_of_record(record: Fields) -> tuple[str, object] | None:
    """Return the JSON pointer to the record's log, and the log."""
    trace = record.get("trace")
    if isinstance(trace, str) and trace.lstrip()[:1] == "{":
        # The JSON text of an object around a log, or of the log itself.
        fields = fields_of(object_in(trace))
        if "trajectory" in fields and _WRAPPER_FIELDS & fields.keys():
            trace = fields
    if isinstance(trace, Mapping):
        log = trace.get("trajectory")
        if isinstance(log, str | list | Mapping):
            return "/trace/trajectory", log
    elif isinstance(trace, str | list):
        return "/trace", trace
    text = record.get("trace_text")
    return ("/trace_text", text) if isinstance(text, str) else None


def _read_log(log: object) -> tuple[Reading, str | None]:
    """Return the run in a log, and the framework that wrote it; None for an unknown framework.

    The log of an unknown framework is a list of chat messages, or a text of paragraphs.
    """
    transcript = Transcript(log) if isinstance(log, str) else Transcript(dump_text(log), log)
    framework = framework_of(transcript)
    if framework is not None:
        return framework.read_transcript(transcript), framework.system

    reading = Reading()
    messages = transcript.json
    if isinstance(messages, list) and any(map(is_message, messages[:_COMPARED_ITEMS])):
        mapper = MessageMapper(reading.steps)
        for message_index, message in enumerate(messages):
            mapper.add(message, f"/{message_index}")
        reading.problems.extend(mapper.problems)
    else:
        line_number = 1
        for is_paragraph, group in groupby(
            transcript.text.split("\n"), key=lambda line: bool(line.strip())
        ):
            lines = list(group)
            if is_paragraph:
                key = f"line {line_number}"
                reading.steps.add(key, SpanKind.MESSAGE, Role.LOG, "text", "\n".join(lines))
            line_number += len(lines)
    return reading, None


def _facts_of_record(record: Fields, reading: Reading, system: str | None) -> TraceMeta:
    """Return the facts of a record and of its log; ``system`` is the framework of the log."""
    record_meta = facts_of_record(record, reading.steps.steps)
    log_meta = reading.meta(system or record_meta.system or "")
    benchmark = record_meta.benchmark
    if system is not None and as_text(benchmark) and _is_same_framework(benchmark, system):
        # Some records have the names of benchmark and framework the wrong way round.
        benchmark = as_text(record.get("mas_name"))
    has_outcome = record_meta.outcome is not Outcome.UNKNOWN
    return TraceMeta(
        task=log_meta.task,
        system=system or record_meta.system,
        model=record_meta.model or log_meta.model,
        benchmark=benchmark,
        outcome=record_meta.outcome if has_outcome else log_meta.outcome,
        score=record_meta.score,
        answer_key=record_meta.answer_key.with_all_of(log_meta.answer_key),
    )


def _is_same_framework(first: str | None, second: str) -> bool:
    """Return whether two names mean one framework, such as ``Magentic`` and ``Magentic-One``.

    One name begins with the other if only letters and digits are compared.
    """
    first_letters = _letters_and_digits(first or "")
    second_letters = _letters_and_digits(second)
    if not first_letters:
        return False
    return first_letters.startswith(second_letters) or second_letters.startswith(first_letters)


def _letters_and_digits(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()

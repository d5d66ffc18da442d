"""Helpers of readers of whole documents: records of a file, and traces made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_lines import glued_records
from mast_tui.traces.io.json_repair import repair
from mast_tui.traces.io.json_values import InvalidJSON, canonical_bytes, load_json
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Trace, TraceMeta
from mast_tui.traces.readers.base import CUT_OFF, Reader, identity_of


@dataclass(frozen=True, slots=True)
class Record:
    """A JSON value that may be a run.

    ``number`` counts the records of a file from 0 and is None where the file is that record;
    ``prefix`` goes before a JSON pointer in the value to make a place in the file.
    """

    value: object
    number: int | None = None
    prefix: str = ""

    @property
    def location(self) -> str:
        """The location of the record in the file."""
        return self.prefix.strip() or "/"

    def content(self, source: Source) -> bytes:
        """Return the bytes by which the record is known again."""
        return source.data if self.number is None else canonical_bytes(self.value)


def records_in(source: Source, problems: list[Problem]) -> Iterator[Record]:
    """Yield the records of a JSON file: one a line, those of a list, or the one document.

    Args:
        source: The file.
        problems: The list to which problems are added.
    """
    if source.json_lines:
        yield from records_by_line(source, problems)
    elif isinstance(document := source.json, list):
        yield from records_listed(document)
    else:
        yield Record(document)


def records_by_line(source: Source, problems: list[Problem]) -> Iterator[Record]:
    r"""Yield the records of a JSONL file, split at ``\\n`` only.

    Lines that are not blank are counted, broken ones too, so that mending one moves no other.
    Records that have lost the line feed between them are read one by one. Of a broken line that
    holds a list of records those that are intact are read.

    Args:
        source: The file.
        problems: The list to which problems are added.
    """
    raw_lines = as_utf8(source.data).split(b"\n")
    record = -1
    for number, raw in enumerate(raw_lines, 1):
        text = raw.strip()
        if not text:
            continue
        record += 1
        location = f"line {number}"
        try:
            yield Record(load_json(text), record, f"{location} ")
            continue
        except InvalidJSON as error:
            reason = str(error)
        decoded = text.decode("utf-8", "replace")
        if values := glued_records(decoded):
            problems.append(Problem(location, f"{len(values)} records on one line"))
            for value in values:
                yield Record(value, record, f"{location} ")
                record += 1
            record -= 1
            continue
        salvaged = repair(decoded)
        if salvaged is not None and _holds_records(salvaged.value):
            messages = "; ".join(dict.fromkeys(problem.message for problem in salvaged.problems))
            problems.append(Problem(location, f"damaged, read as far as it goes: {messages}"))
            yield Record(salvaged.value, record, f"{location} ")
        elif number == len(raw_lines):
            problems.append(Problem(location, CUT_OFF))
        else:
            problems.append(Problem(location, f"not JSON, left out: {reason}"))


def _holds_records(value: dict[str, object] | list[object]) -> bool:
    """Return whether a record has a list of objects, so that some of them are worth having."""
    lists = [value] if isinstance(value, list) else list(value.values())
    return any(
        isinstance(values, list) and any(isinstance(r, dict) for r in values) for values in lists
    )


def records_listed(values: Iterable[object], pointer: str = "") -> Iterator[Record]:
    """Yield the records in a list.

    Args:
        values: The list.
        pointer: The JSON pointer to the list.
    """
    for number, value in enumerate(values):
        yield Record(value, number, f"{pointer}/{number}")


def trace_of_steps(
    reader: Reader,
    path: Path,
    content: bytes,
    steps: StepList,
    *,
    meta: TraceMeta,
    record: int | None = None,
    native: str | None = None,
    problems: Iterable[Problem] = (),
) -> Trace:
    """Make the trace of a run that was read whole.

    Args:
        reader: The reader.
        path: The file that it was read from.
        content: The bytes by which it is known again.
        steps: Its spans.
        meta: The facts of the run.
        record: Its number among the runs of the file; None for the only one.
        native: The id that it brings itself, if any.
        problems: Its problems.

    Returns:
        The trace; where it brings no id it goes by its content.
    """
    identity = identity_of(reader, path, content, record=record, native=native)
    spans = StepSpans(steps.steps)
    return Trace(identity, path, spans, record=record, meta=meta, problems=problems)


def report_of(
    reader: Reader,
    source: Source,
    traces: Iterable[Trace],
    problems: Iterable[Problem] = (),
    name: str | None = None,
) -> FileReport:
    """Return the report on a file.

    Args:
        reader: The reader.
        source: The file.
        traces: Its traces.
        problems: Its problems.
        name: The name of the format where it is not the reader's own.
    """
    return FileReport(source.path, name or reader.name, tuple(traces), tuple(problems))

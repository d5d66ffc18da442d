"""The traces of imported and exported labels: their texts, messages and steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

from mast_tui.adjudication import traces_from_files
from mast_tui.exchange.errors import RowProblem
from mast_tui.redaction.engine import Redacted
from mast_tui.redaction.masked_trace import Masks, RedactedOf, redacted_span
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A span with its whole text.

    ``author`` has the number, agent, kind and tool.
    """

    key: str
    text: str
    author: str = ""


TextsOf = Callable[[str], tuple[TextSpan, ...] | None]
"""Returns the spans of a trace by its id; None without a file."""


def texts_from_files(workspace: Workspace, masks: Masks | None = None) -> TextsOf:
    """Return a function that reads the texts of a trace from its file.

    Args:
        workspace: The workspace.
        masks: The masks of the texts; None for unchanged texts.

    Returns:
        The function. It returns None for an unreadable trace.
    """
    trace_of = traces_from_files(workspace)

    def texts(trace_id: str) -> tuple[TextSpan, ...] | None:
        trace = trace_of(trace_id)
        if trace is not None and masks is not None:
            trace = trace.with_masks(masks)
        return None if trace is None else tuple(_texts_of(trace))

    return texts


def redacted_from_files(workspace: Workspace, masks: Masks) -> RedactedOf:
    """Return a function that reads the masked text of a span from the file of its trace.

    Args:
        workspace: The workspace.
        masks: The masks.

    Returns:
        The function. It returns None for an unreadable trace.
    """
    trace_of = traces_from_files(workspace)

    @lru_cache(maxsize=1)
    def _read_masked(trace_id: str) -> Trace | None:
        trace = trace_of(trace_id)
        return None if trace is None else trace.with_masks(masks)

    def _read_redacted(trace_id: str, key: str) -> Redacted | None:
        trace = _read_masked(trace_id)
        return None if trace is None else redacted_span(trace, key)

    return _read_redacted


def _texts_of(trace: Trace) -> Iterator[TextSpan]:
    for index in range(len(trace)):
        span = trace.span(index)
        author = (f"#{index + 1}", span.agent, span.kind.value, span.name or "")
        yield TextSpan(span.key, trace.text(index), " ".join(filter(None, author)))


Read = TypeVar("Read")

_MESSAGE: Final = re.compile(
    r"(?:/(?:messages|history|traj|trajectory|conversations?|steps))?/([0-9]+)(?:/.*)?\Z"
)


def read_traces(path: Path) -> tuple[Trace, ...]:
    """Return the traces in a file, read to their ends."""
    traces = read_file(path, named=True).traces
    for trace in traces:
        read_fully(trace)
    return traces


def read_json(path: Path) -> object:
    """Read a file of JSON or JSON Lines.

    JSON Lines become a list.

    Raises:
        ValueError: The file has neither form.
        OSError: The file cannot be read.
    """
    data = path.read_bytes()
    try:
        return load_json(data)
    except InvalidJSON as error:
        lines = [line for line in data.split(b"\n") if line.strip()]
        if len(lines) < 2:
            raise ValueError(f"not JSON: {error}") from None
    try:
        return [load_json(line) for line in lines]
    except InvalidJSON as error:
        raise ValueError(f"neither JSON nor JSON Lines: {error}") from None


def read_each(
    paths: Iterable[Path],
    problems: list[RowProblem],
    read: Callable[[Path], Read],
    suffixes: tuple[str, ...] = (".json", ".jsonl"),
) -> Iterator[tuple[Path, Read]]:
    """Yield each file with its content; an unreadable file becomes a problem.

    Args:
        paths: The files and folders.
        problems: Receives the problems.
        read: Reads one file, as ``read_json`` does.
        suffixes: The suffixes of files to read in folders.
    """
    for file in files_under(paths, suffixes):
        try:
            content = read(file)
        except (ValueError, OSError) as error:
            problems.append(RowProblem(file, "file", str(error)))
            continue
        yield file, content


def read_records(
    paths: Iterable[Path],
    problems: list[RowProblem],
    suffixes: tuple[str, ...] = (".json", ".jsonl"),
) -> Iterator[tuple[Path, list[Any]]]:
    """Yield each JSON file with its list of records; an unreadable file becomes a problem.

    A document other than a list is a single record.

    Args:
        paths: The files and folders.
        problems: Receives the problems.
        suffixes: The suffixes of files to read in folders.
    """
    for file, document in read_each(paths, problems, read_json, suffixes):
        yield file, document if isinstance(document, list) else [document]


def files_under(paths: Iterable[Path], suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Yield the given files, and the files with given suffixes at any depth of folders.

    Args:
        paths: The files and folders.
        suffixes: The suffixes in lower case, with the dot.
    """
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix.lower() in suffixes)
        else:
            yield path


def message_spans(trace: Trace, number: int) -> tuple[str, str] | None:
    """Return the first and last span key of a message; None if it has no span.

    Args:
        trace: A trace with a list of messages.
        number: The index of the message, from 0.
    """
    keys = [
        span.key
        for span in (trace.span(index) for index in range(len(trace)))
        if _message_number(trace, span.place) == number
    ]
    return (keys[0], keys[-1]) if keys else None


def _message_number(trace: Trace, location: str) -> int | None:
    """Return the index of a message from a location in the file; None outside a message list.

    The location is a JSON pointer after the line (``line 3 /messages/0``) or the record
    (``/3/messages/0``).
    """
    pointer = re.sub(r"\Aline [0-9]+ ", "", location)
    has_line_number = pointer != location
    if not has_line_number and trace.record is not None:
        pointer = location.removeprefix(f"/{trace.record}")
    match = _MESSAGE.match(pointer)
    return int(match[1]) if match else None


def step_numbers(trace: Trace) -> dict[str, int]:
    """Return the step number of each span by key, from 0.

    If all spans are from a message list, each message is a step. Otherwise each span is a step.
    """
    spans = [trace.span(index) for index in range(len(trace))]
    numbers = {span.key: _message_number(trace, span.place) for span in spans}
    message_numbers = {key: number for key, number in numbers.items() if number is not None}
    all_have_messages = len(message_numbers) == len(numbers)
    return message_numbers if all_have_messages else {span.key: span.index for span in spans}


def step_of_key(key: str) -> int | None:
    """Return the index of a message from the key of its span; None for other keys."""
    match = _MESSAGE.match(key)
    return int(match[1]) if match else None

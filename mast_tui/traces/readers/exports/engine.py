"""The reader of exported documents: a format makes runs of a document, the reader makes traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mast_tui.traces.index.document import StepList
from mast_tui.traces.io.json_values import as_text, canonical_bytes
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Trace, TraceMeta
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.document_traces import records_by_line, report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import Fields, fields_at, fields_of
from mast_tui.traces.readers.run_facts import task_of

NO_FACTS: Final = TraceMeta()
_LOOKED_AT: Final = 40


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """One run as chat messages.

    Attributes:
        value: The JSON value of the run, by which it is known again.
        messages: Messages that ``chat.turns`` understands, each under its pointer in ``value``. A
            value that is no object becomes a log with a problem.
        pointer: The JSON pointer to ``value`` in the document.
        native_id: The id that the run has itself.
        meta: The facts beside the messages. Without a task it is the first message of a user.
        problems: Parts of the run that are left out.
    """

    value: object
    messages: Sequence[tuple[str, object]]
    pointer: str = ""
    native_id: str | None = None
    meta: TraceMeta = NO_FACTS
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format of exported documents.

    Attributes:
        name: The name that ``inspect`` shows.
        marks: Byte strings that every file of the format contains.
        runs: Makes the runs of a JSON document; no run means that it is of another format.
    """

    name: str
    marks: tuple[bytes, ...]
    runs: Callable[[object], Iterable[ExportedRun]]


class ExportReader:
    """Reads the documents of one export format; keys are those of message lists."""

    key_scheme: Final = 1

    def __init__(self, export_format: ExportFormat) -> None:
        self._format = export_format

    @property
    def name(self) -> str:
        """The name of the format."""
        return self._format.name

    def recognises(self, source: Source) -> bool:
        """Return whether the file has the marks of the format and holds a run of it."""
        if not all(mark in source.data for mark in self._format.marks):
            return False
        first_lines = source.json_lines
        runs = self._format.runs(list(first_lines) if first_lines else source.json)
        return next(iter(runs), None) is not None

    def read(self, source: Source) -> FileReport:
        """Return a trace for each run."""
        problems: list[Problem] = []
        runs = list(self._format.runs(_document(source, problems)))
        traces: list[Trace] = []
        for number, run in enumerate(runs):
            if run.messages:
                traces.append(self._trace(source, run, number if len(runs) > 1 else None))
            else:
                problems.append(Problem(run.pointer or "/", "no messages, left out"))
        return report_of(self, source, traces, problems)

    def _trace(self, source: Source, run: ExportedRun, record: int | None) -> Trace:
        steps = StepList()
        mapper = MessageMapper(steps, prefix=run.pointer)
        for pointer, message in run.messages:
            mapper.add(message, pointer)
        run_problems = [Problem(run.pointer or "/", message) for message in run.problems]
        meta = run.meta._replace(
            task=run.meta.task or task_of(steps=steps.steps),
            model=run.meta.model or mapper.model,
        )
        return trace_of_steps(
            self,
            source.path,
            source.data if record is None else canonical_bytes(run.value),
            steps,
            meta=meta,
            record=record,
            native=run.native_id,
            problems=[*mapper.problems, *run_problems],
        )


def objects_in(document: object) -> Iterator[tuple[str, Fields]]:
    """Yield the objects of a document under their pointers: the document, or those it lists.

    Some programs put ``conversations`` around the list.
    """
    wrapped = fields_of(document).get("conversations")
    listed = wrapped if isinstance(wrapped, list) else document
    prefix = "/conversations" if listed is wrapped else ""
    if isinstance(listed, list):
        for number, value in enumerate(listed):
            yield f"{prefix}/{number}", fields_of(value)
    else:
        yield "", fields_of(document)


class StepsOfRun(NamedTuple):
    """The list of steps in a run.

    Attributes:
        run_pointer: The JSON pointer to the run.
        run: The run.
        steps_pointer: The JSON pointer from the run to the list.
        steps: The list.
    """

    run_pointer: str
    run: object
    steps_pointer: str
    steps: Sequence[object]


def step_lists(
    document: object, lists: Sequence[str], is_step: Callable[[object], bool]
) -> Iterator[StepsOfRun]:
    """Yield the lists of steps in a document: its own, or one for each run that it lists.

    Args:
        document: A list of steps, an object that holds one, or a list of such values.
        lists: The dotted paths in an object to the list.
        is_step: Tells whether a value is a step; a list counts if one of its first values is.
    """
    runs = [("", document)]
    if isinstance(document, list) and not any(map(is_step, document[:_LOOKED_AT])):
        runs = [(f"/{number}", run) for number, run in enumerate(document)]
    for pointer, run in runs:
        holders: list[tuple[str, object]] = [("", run)]
        if not isinstance(run, list):
            for path in lists:
                *outer, last = path.split(".")
                listed = fields_at(run, *outer).get(last)
                holders.append((f"/{path.replace('.', '/')}", listed))
        for list_pointer, value in holders:
            if isinstance(value, list) and any(map(is_step, value[:_LOOKED_AT])):
                yield StepsOfRun(pointer, run, list_pointer, value)
                break


def join_distinct_texts(texts: Iterable[object]) -> str:
    """Join the texts among some values by line breaks, without texts that another one contains."""
    lines: list[str] = []
    for value in texts:
        text = as_text(value)
        if text and not any(text in line for line in lines):
            lines.append(text)
    return "\n".join(lines)


def _document(source: Source, problems: list[Problem]) -> object:
    """Return the document; the values of JSON Lines as a list."""
    if source.json_lines:
        return [record.value for record in records_by_line(source, problems)]
    return source.json

"""The engine of exported documents: a format finds the runs, and these become traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mast_tui.traces.index.document import StepList
from mast_tui.traces.io.json_values import as_text, canonical_bytes
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Trace, TraceMeta
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.document_traces import (
    RunOrigin,
    records_by_line,
    report_of,
    trace_of_steps,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    items_of,
    located_items,
    located_objects,
)
from mast_tui.traces.readers.run_facts import task_of

Messages = Iterator[tuple[str, object]]
"""Chat messages, as pairs of JSON pointer in the run and message."""

NO_FACTS: Final = TraceMeta()
_CHECKED_VALUES: Final = 40
"""The number of first values of a list that may contain a step."""


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """One run as chat messages.

    Attributes:
        value: The JSON value of the run, which identifies it.
        messages: Messages that ``chat.turns`` understands, with their JSON pointers in ``value``.
            A message has ``role``, ``content``, and if known ``name`` (the speaker), ``timestamp``
            and ``tool_calls`` of ``id``, ``name`` and ``arguments``; ``result_message`` makes that
            of a result. An object of another shape becomes a log span.
        pointer: The JSON pointer to ``value`` in the document.
        native_id: The id of the run in the document, if it has one.
        meta: The facts of the run. The default task is the first message of a user.
        problems: Messages about broken or omitted parts of the run.
    """

    value: object
    messages: Sequence[tuple[str, object]]
    pointer: str = ""
    native_id: str | None = None
    meta: TraceMeta = NO_FACTS
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """Reads the documents of one export format; keys are those of message lists.

    Attributes:
        name: The name that ``inspect`` shows.
        marks: Byte strings that every file of the format contains.
        system: The product that writes the files; None if each run names its system.
        runs: Returns the runs of a JSON document; none for a document of another format.
    """

    name: str
    marks: tuple[bytes, ...]
    system: str | None = None
    runs: Callable[[object], Iterable[ExportedRun]]
    key_scheme: int = 1

    def recognises(self, source: Source) -> bool:
        """Return whether the file has the marks of the format and holds a run of it."""
        data = source.utf8
        if not all(mark in data for mark in self.marks):
            return False
        first_records = source.json_lines  # empty if the file is one document
        runs = self.runs(list(first_records) if first_records else source.json)
        return next(iter(runs), None) is not None

    def read(self, source: Source) -> FileReport:
        """Return a trace for each run in the file; a run without messages is a problem."""
        problems: list[Problem] = []
        runs = list(self.runs(_json_document(source, problems)))
        traces: list[Trace] = []
        for run_index, run in enumerate(runs):
            if run.messages:
                traces.append(self._trace_of_run(source, run, run_index if len(runs) > 1 else None))
            else:
                problems.append(Problem(run.pointer or "/", "no messages, left out"))
        return report_of(self, source, traces, problems)

    def _trace_of_run(self, source: Source, run: ExportedRun, record: int | None) -> Trace:
        """Return the trace of a run; ``record`` is its number, None for a file's only run."""
        steps = StepList()
        mapper = MessageMapper(steps, prefix=run.pointer)
        for pointer, message in run.messages:
            mapper.add(message, pointer)
        run_problems = [Problem(run.pointer or "/", message) for message in run.problems]
        meta = run.meta._replace(
            task=run.meta.task or task_of(steps=steps.steps),
            system=run.meta.system or self.system,
            model=run.meta.model or mapper.model,
        )
        content = source.data if record is None else canonical_bytes(run.value)
        origin = RunOrigin(self, source.path, content, record, run.native_id)
        return trace_of_steps(origin, steps, meta, [*mapper.problems, *run_problems])


def objects_in(document: object) -> list[tuple[str, Fields]]:
    """Return the objects of a document, as pairs of JSON pointer and object.

    The document is a list of objects, has such a list under ``conversations``, or is the only
    object.
    """
    conversations = fields_of(document).get("conversations")
    values = conversations if isinstance(conversations, list) else document
    prefix = "/conversations" if values is conversations else ""
    if isinstance(values, list):
        return located_objects(values, prefix)
    return [("", fields_of(document))]


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
    document: object, list_paths: Sequence[str], is_step: Callable[[object], bool]
) -> Iterator[StepsOfRun]:
    """Yield the list of steps of each run in a document.

    Args:
        document: A run, or a list of runs. A run is a list of steps, or an object with such a list.
        list_paths: The dotted paths in an object that may lead to the list.
        is_step: Returns whether a value is a step.
    """

    def is_list_of_steps(value: object) -> bool:
        return isinstance(value, list) and any(map(is_step, value[:_CHECKED_VALUES]))

    is_one_run = is_list_of_steps(document) or not isinstance(document, list)
    for run_pointer, run in [("", document)] if is_one_run else located_items(document, ""):
        candidates: list[tuple[str, object]] = [("", run)]
        for path in list_paths:
            *object_names, list_name = path.split(".")
            candidate = fields_at(run, *object_names).get(list_name)
            candidates.append((f"/{path.replace('.', '/')}", candidate))
        for steps_pointer, steps in candidates:
            if is_list_of_steps(steps):
                yield StepsOfRun(run_pointer, run, steps_pointer, items_of(steps))
                break


def messages_of_each(
    values: Sequence[object], pointer: str, messages_of: Callable[[Fields, str], Messages]
) -> list[tuple[str, object]]:
    """Return the chat messages of the objects in a list; any other value is its own message.

    Args:
        values: The list.
        pointer: The JSON pointer to the list.
        messages_of: Yields the messages of an object, from the object and its JSON pointer.
    """
    return [
        message
        for location, value in located_items(values, pointer)
        for message in (
            messages_of(value, location) if isinstance(value, Mapping) else [(location, value)]
        )
    ]


def result_message(
    content: object, call_id: object, name: object, *, is_error: object = None
) -> dict[str, object]:
    """Return the chat message of a tool's result.

    Args:
        content: The output of the tool.
        call_id: The id of the call.
        name: The name of the tool.
        is_error: Whether the call failed; None if the file does not state it.
    """
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "name": name,
        "content": content,
        "is_error": is_error,
    }


def join_distinct_texts(texts: Iterable[object]) -> str:
    """Join texts by line breaks, without a text that an earlier text contains."""
    distinct_texts: list[str] = []
    for value in texts:
        text = as_text(value)
        if text and not any(text in earlier_text for earlier_text in distinct_texts):
            distinct_texts.append(text)
    return "\n".join(distinct_texts)


def _json_document(source: Source, problems: list[Problem]) -> object:
    """Return the document of a file, or the values of JSON Lines as a list."""
    if source.json_lines:
        return [record.value for record in records_by_line(source, problems)]
    return source.json

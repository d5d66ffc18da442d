"""OpenHands' runs: event streams of the old and the new format, and records of its benchmarks.

A file holds the events of one run, as a list or one a line, or records with the events under
``history``, such as ``output.jsonl``. The agent SDK may also write each event to a file of its own:
then the folder is one run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mast_tui.traces.index.document import StepSpans
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import (
    InvalidJSON,
    as_text,
    canonical_bytes,
    identifier,
    load_json,
)
from mast_tui.traces.io.regular_files import UnreadableFile, read_beside
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, SpanStatus, Trace, TraceIdentity, TraceMeta
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft
from mast_tui.traces.readers.base import identity_of
from mast_tui.traces.readers.document_traces import records_by_line, records_listed, report_of
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    flag_in,
    items_of,
    mostly,
    one_line,
)
from mast_tui.traces.readers.openhands.events import (
    EventMapper,
    OpenHandsEvent,
    is_old_event,
    is_sdk_event,
)
from mast_tui.traces.readers.run_facts import facts_of_record, outcome_of_flag, task_of

_EVENT_LIST_FIELDS: Final = ("history", "trajectory", "events")
_FIELD_BYTES: Final = (b'"observation"', b'"action"', b'"kind"', b'"history"', b'"instance_id"')
_CHECKED_FILE_COUNT: Final = 3
_MAX_EVENT_BYTES: Final = 64 << 20
_EVENT_FILE: Final = re.compile(r"(?:event-)?(?P<number>\d{1,12})(?:-[^/]*)?\.json")
_UUID: Final = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class OpenHandsRun:
    """The events of one run and the record around them."""

    events: Sequence[OpenHandsEvent]
    record: Fields


class OpenHandsReader:
    """Reads OpenHands' files; keys are the model's call ids, else the events' ids."""

    name: Final = "openhands"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return whether most elements of the file are events, or records with events."""
        head = as_utf8(source.head)
        lines = source.json_lines
        if head.lstrip()[:1] not in (b"{", b"["):
            return False
        if len(lines) > 1:
            return mostly(_is_listed_event, lines) or mostly(_is_record_with_run, lines)
        if not lines and not any(field_bytes in head for field_bytes in _FIELD_BYTES):
            return False
        document = source.json
        records = lines if document is None else items_of(document)
        return _run_in(document) is not None or mostly(_is_record_with_run, records)

    def read(self, source: Source) -> FileReport:
        """Return one trace per run; records without a run are problems."""
        problems: list[Problem] = []
        document = source.json if len(source.json_lines) < 2 else None
        if document is None:
            records = list(records_by_line(source, problems))
            events = [
                OpenHandsEvent(record.location, record.location, record.value) for record in records
            ]
            are_events = mostly(_is_listed_event, (record.value for record in records))
            run = OpenHandsRun(events, {}) if are_events else None
        else:
            records = list(records_listed(items_of(document)))
            run = _run_in(document)
        if run is not None:
            identity = identity_of(self, source.path, source.data)
            return report_of(self, source, [_trace_of_run(run, source.path, identity)], problems)
        traces = []
        for record in records:
            run = _run_in(record.value, record.prefix)
            if run is None:
                problems.append(Problem(record.location, "no run of OpenHands, left out"))
                continue
            content = canonical_bytes(run.record)
            identity = identity_of(self, source.path, content, record=record.number)
            traces.append(_trace_of_run(run, source.path, identity, record.number))
        return report_of(self, source, traces, problems)


READER: Final = OpenHandsReader()


def read_event_folder(folder: Path) -> FileReport | None:
    """Return the run whose events are files of a folder; None if it has no such files.

    The files are ``event-00001-<id>.json`` or ``1.json``, read in the order of their numbers. The
    run's id is in ``base_state.json``, beside the events or in the folder above ``events``. Without
    that file, the id is the name of that folder, if the name is a UUID.
    """
    problems: list[Problem] = []
    events = []
    contents = []
    for path in event_files(folder):
        data, value = _event_in_file(path, problems)
        contents.append(data)
        if value is not None:
            events.append(OpenHandsEvent(path.name, path.name, value))
    if not contents:
        return None
    conversation = folder.parent if folder.name == "events" else folder
    _, state_value = _event_in_file(conversation / "base_state.json", problems)
    state = fields_of(state_value)
    folder_id = conversation.name if _UUID.fullmatch(conversation.name) else None
    native = as_text(state.get("id")) or folder_id
    content = b"\n".join(contents)
    identity = identity_of(READER, Path(conversation.name), content, native=native)
    trace = _trace_of_run(OpenHandsRun(events, state), folder, identity)
    return FileReport(folder, format=READER.name, traces=(trace,), problems=tuple(problems))


def event_files(folder: Path) -> list[Path]:
    """Return the files of a folder that hold one event each, in the order of their numbers.

    The list is empty if the first files with such names hold no events, or if the folder cannot be
    read.
    """
    numbered_files = []
    try:
        for path in folder.iterdir():
            if (match := _EVENT_FILE.fullmatch(path.name)) and path.is_file():
                numbered_files.append((int(match["number"]), path.name, path))
    except OSError:
        return []
    files = [path for _number, _name, path in sorted(numbered_files)]
    for path in files[:_CHECKED_FILE_COUNT]:
        _, value = _event_in_file(path, problems=[])
        if _is_event(value):
            return files
    return []


def _event_in_file(path: Path, problems: list[Problem]) -> tuple[bytes, object]:
    """Return the bytes of a file and its JSON value.

    The value is None for a missing file, and for an unreadable file, which is added to the
    problems.
    """
    data = b""
    try:
        if (raw := read_beside(path, _MAX_EVENT_BYTES)) is not None:
            data = as_utf8(raw)
            return data, load_json(data)
    except UnreadableFile as error:
        problems.append(Problem(path.name, f"not read: {error.strerror}"))
    except InvalidJSON as error:
        problems.append(Problem(path.name, f"not JSON, left out: {error}"))
    return data, None


def _is_event(value: object) -> bool:
    return is_old_event(value) or is_sdk_event(value)


def _is_listed_event(value: object) -> bool:
    """Return whether an element of a list is an event; an old event needs an id and a source."""
    is_identified = {"id", "source"} <= fields_of(value).keys()
    return is_sdk_event(value) or (is_identified and is_old_event(value))


def _is_record_with_run(value: object) -> bool:
    """Return whether a value is a record with events."""
    return not isinstance(value, list) and _run_in(value) is not None


def _run_in(value: object, prefix: str = "") -> OpenHandsRun | None:
    """Return the run in a JSON value: a list of events, or a record with such a list; or None."""
    if mostly(_is_listed_event, items_of(value)):
        return OpenHandsRun(_located_events(items_of(value), "", prefix), {})
    record = fields_of(value)
    for list_field in _EVENT_LIST_FIELDS:
        values = items_of(record.get(list_field))
        if mostly(lambda member: all(map(_is_event, _pair_members(member))), values):
            return OpenHandsRun(_located_events(values, f"/{list_field}", prefix), record)
    return None


def _pair_members(value: object) -> Sequence[object]:
    """Return the action and the observation in a pair of an old history, else the value alone."""
    return value if isinstance(value, list) and len(value) == 2 else (value,)


def _located_events(values: Sequence[object], pointer: str, prefix: str) -> list[OpenHandsEvent]:
    """Return the values as events under their JSON pointers; a pair becomes two events."""
    events = []
    for number, value in enumerate(values):
        parts = _pair_members(value)
        for index, part in enumerate(parts):
            key = f"{pointer}/{number}" + (f"/{index}" if len(parts) > 1 else "")
            events.append(OpenHandsEvent(key, prefix + key, part))
    return events


def _trace_of_run(
    run: OpenHandsRun, path: Path, identity: TraceIdentity, number: int | None = None
) -> Trace:
    """Return the trace of a run; ``number`` is that of its record in the file, if it has one."""
    mapper = EventMapper(one_line(fields_at(run.record, "metadata").get("agent_class")))
    mapper.add_all(run.events)
    if error := as_text(run.record.get("error")):
        mapper.steps.log("/error", error, name="error", status=SpanStatus.ERROR)
    if instance := identifier(run.record.get("instance_id")):
        # Runs of several models share the instance, so the id needs the content's hash too.
        identity = identity._replace(trace_id=f"{instance}-{identity.content_hash[:8]}")
    return Trace(
        identity,
        path,
        StepSpans(mapper.steps.steps),
        record=number,
        meta=_meta_of_run(run.record, mapper),
        problems=mapper.problems,
    )


def _meta_of_run(record: Fields, mapper: EventMapper) -> TraceMeta:
    """Return the facts of a run; the benchmark's verdict is also part of the answer key."""
    steps = mapper.steps.steps
    facts = facts_of_record(record, steps)
    metadata = fields_of(record.get("metadata"))
    instance = fields_of(record.get("instance"))
    test_result = fields_of(record.get("test_result"))
    llms = (metadata.get("llm_config"), metadata.get("llm"), fields_at(record, "agent").get("llm"))
    models = (as_text(fields_of(llm).get("model")) for llm in llms)
    result_records = (
        record,
        fields_at(record, "report"),
        fields_at(test_result, "report"),
        test_result,
    )
    flags = (flag_in(fields, "resolved") for fields in result_records)
    resolved = next((flag for flag in flags if flag is not None), None)
    answers = AnswerKeyDraft()
    answers.add_value("git_patch", test_result.get("git_patch"), "patch")
    other_results = {name: value for name, value in test_result.items() if name != "git_patch"}
    answers.add_fields({**record, "test_result": other_results}, {"report": "tests"})
    answers.add_fields(
        instance,
        {
            "patch": "patch",
            "test_patch": "patch",
            "FAIL_TO_PASS": "tests",
            "PASS_TO_PASS": "tests",
        },
    )
    return facts._replace(
        task=task_of(instance.get("problem_statement"), record.get("instruction"), steps=steps),
        system="OpenHands",
        model=next(filter(None, models), None) or mapper.model or facts.model,
        benchmark=facts.benchmark or as_text(metadata.get("dataset")),
        outcome=facts.outcome if resolved is None else outcome_of_flag(resolved),
        answer_key=answers.key(),
    )

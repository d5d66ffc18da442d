"""OpenHands' runs: event streams of both generations, and the records of its benchmarks.

A file holds one run's events as a list or one a line, or records such as those of ``output.jsonl``
with the events under ``history``. The agent SDK also keeps each event in a file of its own; such a
folder is one run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
from mast_tui.traces.model import (
    AnswerKey,
    FileReport,
    Outcome,
    Problem,
    SpanStatus,
    Trace,
    TraceIdentity,
    TraceMeta,
)
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft, Section
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
    Event,
    EventSpans,
    is_identified_old_event,
    is_old_event,
    is_sdk_event,
)
from mast_tui.traces.readers.openhands.old import OldEvents
from mast_tui.traces.readers.openhands.sdk import SdkEvents
from mast_tui.traces.readers.run_facts import facts_of_record, outcome_of_flag, task_of

_CONTAINERS: Final = ("history", "trajectory", "events")
_MARKS: Final = (b'"observation"', b'"action"', b'"kind"', b'"history"', b'"instance_id"')
_PEEKED_AT: Final = 3
_MOST_EVENT_BYTES: Final = 64 << 20
_EVENT_FILE: Final = re.compile(r"(?:event-)?(?P<number>\d{1,12})(?:-[^/]*)?\.json")
_UUID: Final = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class _Run:
    """The events of one run and the record around them."""

    events: list[Event]
    record: Fields


class OpenHandsReader:
    """Reads OpenHands' files; calls and results go by the model's call id, the rest by event id."""

    name: Final = "openhands"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Whether the file holds events, or records with events, for the most part."""
        head = as_utf8(source.head)
        if head.lstrip()[:1] not in (b"{", b"["):
            return False
        lines = source.json_lines
        if len(lines) > 1:
            return _are_events(lines) or _are_records(lines)
        if not lines and not any(mark in head for mark in _MARKS):
            return False
        document = source.json
        if document is None:
            return _are_records(lines)
        return _run_of(document) is not None or _are_records(items_of(document))

    def read(self, source: Source) -> FileReport:
        """One trace per run; elements that are none are listed as problems."""
        problems: list[Problem] = []
        traces = []
        document = source.json if len(source.json_lines) < 2 else None
        if document is None:
            found = list(records_by_line(source, problems))
            events = [Event(one.place, one.place, one.value) for one in found]
            whole = _Run(events, {}) if _are_events([one.value for one in found]) else None
        else:
            found, whole = list(records_listed(items_of(document))), _run_of(document)
        if whole is not None:
            return report_of(self, source, [_trace_of(source, whole)], problems)
        for record in found:
            run = _run_of(record.value, record.prefix)
            if run is None:
                problems.append(Problem(record.place, "no run of OpenHands, left out"))
            else:
                traces.append(_trace_of(source, run, record.number))
        return report_of(self, source, traces, problems)


READER: Final = OpenHandsReader()


def read_event_folder(folder: Path) -> FileReport | None:
    """The run whose events lie in files of their own in ``folder``; None where there is none.

    The files are ``event-00001-<id>.json`` or ``1.json``, read in the order of their numbers. The
    conversation's id is that of ``base_state.json`` in the folder above, or that folder's name.
    What cannot be read becomes a problem with the file's name.
    """
    files = event_files(folder)
    if not files:
        return None
    problems: list[Problem] = []
    events, contents = [], []
    for path in files:
        data, value = _event_in(path, problems)
        contents.append(data)
        if value is not None:
            events.append(Event(path.name, path.name, value))
    above = folder.parent if folder.name == "events" else folder
    _data, state = _event_in(above / "base_state.json", problems)
    run = _Run(events, fields_of(state))
    native = as_text(run.record.get("id")) or (above.name if _UUID.fullmatch(above.name) else None)
    identity = identity_of(READER, Path(above.name), b"\n".join(contents), native=native)
    trace = _trace(run, identity, folder, None)
    return FileReport(folder, format=READER.name, traces=(trace,), problems=tuple(problems))


def event_files(folder: Path) -> list[Path]:
    """The files of a folder that hold one event each, in the order of their numbers.

    None are where the first of those that are named so hold no events.
    """
    numbered = []
    try:
        for path in folder.iterdir():
            if (match := _EVENT_FILE.fullmatch(path.name)) and path.is_file():
                numbered.append((int(match["number"]), path.name, path))
    except OSError:
        return []
    files = [path for _number, _name, path in sorted(numbered)]
    peeked_at = (_event_in(path, [])[1] for path in files[:_PEEKED_AT])
    return files if any(map(_is_event, peeked_at)) else []


def _event_in(path: Path, problems: list[Problem]) -> tuple[bytes, object]:
    """The bytes of a file and the value of its JSON, None where it is not there or unreadable."""
    data = b""
    try:
        if (raw := read_beside(path, _MOST_EVENT_BYTES)) is not None:
            data = as_utf8(raw)
            return data, load_json(data)
    except UnreadableFile as error:
        problems.append(Problem(path.name, f"not read: {error.strerror}"))
    except InvalidJSON as error:
        problems.append(Problem(path.name, f"not JSON, left out: {error}"))
    return data, None


def _trace_of(source: Source, run: _Run, number: int | None = None) -> Trace:
    content = source.data if number is None else canonical_bytes(run.record)
    identity = identity_of(READER, source.path, content, record=number)
    if instance := identifier(run.record.get("instance_id")):
        # Runs of several models share the instance, so that it alone is no id.
        identity = identity._replace(trace_id=f"{instance}-{identity.content_hash[:8]}")
    return _trace(run, identity, source.path, number)


def _trace(run: _Run, identity: TraceIdentity, path: Path, number: int | None) -> Trace:
    spans = EventSpans(one_line(fields_at(run.record, "metadata").get("agent_class")))
    sdk = sum(is_sdk_event(event.value) for event in run.events)
    (SdkEvents if 2 * sdk >= len(run.events) else OldEvents)(spans).run(run.events)
    if error := as_text(run.record.get("error")):
        spans.steps.log("/error", error, name="error", status=SpanStatus.ERROR)
    meta, steps = _facts(run.record, spans), StepSpans(spans.steps.steps)
    return Trace(identity, path, steps, record=number, meta=meta, problems=spans.problems)


def _is_event(value: object) -> bool:
    return is_old_event(value) or is_sdk_event(value)


def _are_events(values: Sequence[object]) -> bool:
    """Whether most of the first values of a bare list are events with an id and a source."""
    return mostly(lambda value: is_identified_old_event(value) or is_sdk_event(value), values)


def _are_records(values: Sequence[object]) -> bool:
    """Whether most of the first values are records with events."""
    return mostly(lambda one: isinstance(one, Mapping) and _run_of(one) is not None, values)


def _run_of(value: object, place: str = "") -> _Run | None:
    """The run in a JSON value: a list of events, or a record that holds one."""
    if isinstance(value, list):
        return _Run(_located(value, "", place), {}) if _are_events(value) else None
    if not isinstance(value, Mapping):
        return None
    for container in _CONTAINERS:
        events = value.get(container)
        # Of old histories each is a pair: an action, and what it led to.
        if mostly(lambda value: all(map(_is_event, _parts(value))), items_of(events)):
            return _Run(_located(items_of(events), f"/{container}", place), value)
    return None


def _parts(value: object) -> Sequence[object]:
    """Both events of an old history's pair, or the one value."""
    return value if isinstance(value, list) and len(value) == 2 else (value,)


def _located(values: Sequence[object], pointer: str, place: str) -> list[Event]:
    """The events under their JSON pointers; the old histories' pairs become two events."""
    events = []
    for number, value in enumerate(values):
        at, parts = f"{pointer}/{number}", _parts(value)
        for part, one in enumerate(parts):
            key = at if len(parts) == 1 else f"{at}/{part}"
            events.append(Event(key, place + key, one))
    return events


def _facts(record: Fields, spans: EventSpans) -> TraceMeta:
    """Task, model, benchmark and the benchmark's verdict; the latter is hidden as well."""
    metadata, instance = fields_of(record.get("metadata")), fields_of(record.get("instance"))
    told = facts_of_record(record, spans.steps.steps)
    llm = fields_of(metadata.get("llm_config")) or fields_of(metadata.get("llm"))
    agent = fields_at(record.get("agent"), "llm")
    return told._replace(
        task=task_of(
            instance.get("problem_statement"), record.get("instruction"), steps=spans.steps.steps
        ),
        system="OpenHands",
        model=as_text(llm.get("model")) or as_text(agent.get("model")) or spans.model or told.model,
        benchmark=told.benchmark or as_text(metadata.get("dataset")),
        outcome=_outcome(record, told.outcome),
        answer_key=_answer_key(record, instance),
    )


def _answer_key(record: Fields, instance: Fields) -> AnswerKey:
    """What the benchmark says of the run, the patch it made and the one that was wanted."""
    draft = AnswerKeyDraft()
    result = fields_of(record.get("test_result"))
    draft.take("git_patch", result.get("git_patch"), "patch")
    rest = {name: value for name, value in result.items() if name != "git_patch"}
    draft.fields({**record, "test_result": rest}, {"report": "tests"})
    tests: dict[str, Section] = {"FAIL_TO_PASS": "tests", "PASS_TO_PASS": "tests"}
    draft.fields(instance, {"patch": "patch", "test_patch": "patch", **tests})
    return draft.key()


def _outcome(record: Fields, told: Outcome) -> Outcome:
    """The verdict of the benchmark's own check; that a run was finished is none."""
    result = fields_of(record.get("test_result"))
    reports = fields_of(record.get("report")), fields_of(result.get("report"))
    flags = (flag_in(holder, "resolved") for holder in (record, *reports, result))
    resolved = next((flag for flag in flags if flag is not None), None)
    return told if resolved is None else outcome_of_flag(resolved)

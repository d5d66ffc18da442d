"""OpenHands runs with a file for each event, and new kinds of events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.readers.openhands import READER, is_sdk_event, read_event_folder
from tests.traces.checks import (
    check_sound,
    kinds_and_texts,
    read_one,
    spans_of,
    write_json,
)
from tests.traces.golden import golden_text

SDK_EVENTS = [
    json.loads(line) for line in golden_text("openhands", "a-stream-of-the-sdk").splitlines()
]


def write_folder(folder: Path) -> Path:
    """Write the events of a run to files of their own; return their folder."""
    events = folder / "a3f1c2d4e5b64788990011223344aabb" / "events"
    events.mkdir(parents=True)
    for number, event in enumerate(SDK_EVENTS):
        write_json(events / f"event-{number:05}-{event['id']}.json", event)
    return events


def test_a_folder_of_events_is_one_run(tmp_path: Path) -> None:
    events = write_folder(tmp_path)
    write_json(events.parent / "base_state.json", {"agent": {"llm": {"model": "from state"}}})
    (events / "event-00099-x.json").write_text("{broken", encoding="utf-8")
    report = read_event_folder(events)
    assert report is not None
    (trace,) = report.traces
    check_sound(trace)
    stream = read_one(READER, write_json(tmp_path / "same.json", SDK_EVENTS))
    assert kinds_and_texts(trace) == kinds_and_texts(stream)
    assert [(span.key, span.parent) for span in spans_of(trace)] == [
        (span.key, span.parent) for span in spans_of(stream)
    ]
    assert trace.identity.trace_id == "a3f1c2d4e5b64788990011223344aabb"
    assert trace.identity.native
    assert trace.meta.model == "from state"
    assert trace.span(0).place == "event-00000-s.json"
    assert [problem.place for problem in report.problems] == ["event-00099-x.json"]


def test_files_of_generation_0_are_read_by_number(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    for number in (10, 9):
        event: dict[str, object] = {
            "id": number,
            "timestamp": f"2025-03-01T10:00:{number:02}",
            "source": "user",
        }
        event |= {"action": "message", "args": {"content": str(number)}}
        write_json(events / f"{number}.json", event)
    report = read_event_folder(events)
    assert report is not None
    assert kinds_and_texts(report.traces[0]) == [("message", "9"), ("message", "10")]
    assert not report.traces[0].identity.native


def test_other_folders_are_no_run(tmp_path: Path) -> None:
    assert read_event_folder(tmp_path / "absent") is None
    assert read_event_folder(tmp_path) is None
    write_json(tmp_path / "1.json", {"history": [{"role": "user", "content": "x"}]})
    assert read_event_folder(tmp_path) is None


@pytest.mark.parametrize(
    ("kind", "source", "known"),
    [
        ("SomethingNewEvent", "agent", True),
        ("SomethingNewEvent", "cron", False),
        ("SomethingNew", "agent", False),
        ("MessageEvent", "agent", True),
    ],
)
def test_a_new_kind_of_event_is_recognised_by_ending_and_source(
    kind: str, source: str, known: bool
) -> None:
    assert is_sdk_event({**SDK_EVENTS[0], "kind": kind, "source": source}) is known

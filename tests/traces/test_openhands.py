"""OpenHands runs with a file for each event, and new kinds of events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.readers.openhands import is_sdk_event, read_event_folder
from tests.traces.checks import kinds_and_texts, write_json
from tests.traces.golden import golden_text

SDK_EVENTS = [
    json.loads(line) for line in golden_text("openhands", "a-stream-of-the-sdk").splitlines()
]


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
    ("kind", "source", "expected"),
    [
        ("SomethingNewEvent", "agent", True),
        ("SomethingNewEvent", "cron", False),
        ("SomethingNew", "agent", False),
        ("MessageEvent", "agent", True),
    ],
)
def test_a_new_kind_of_event_is_recognised_by_ending_and_source(
    kind: str, source: str, expected: bool
) -> None:
    assert is_sdk_event({**SDK_EVENTS[0], "kind": kind, "source": source}) is expected

"""Places of spans in the form that editors accept."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.file_places import place_in_file


@pytest.mark.parametrize(
    ("span_place", "expected"),
    [
        ("line 380", "runs/a.jsonl:380"),
        ("line 3 /messages/2", "runs/a.jsonl:3#/messages/2"),
        ("/history/12/content", "runs/a.jsonl#/history/12/content"),
        ("a/subagents/agent-7.jsonl line 9", "runs/a/subagents/agent-7.jsonl:9"),
        ("whole file", "runs/a.jsonl: whole file"),
        ("my line 4.log line 2", "runs/my line 4.log:2"),
        ("/0/trace/trajectory line 401", "runs/a.jsonl#/0/trace/trajectory:401"),
    ],
)
def test_places_are_shown_with_their_file(span_place: str, expected: str) -> None:
    assert str(place_in_file(Path("runs/a.jsonl"), span_place)) == expected


def test_only_places_that_are_lines_have_a_line_number() -> None:
    assert place_in_file(Path("a.json"), "/0/log line 4").line is None
    assert place_in_file(Path("a.jsonl"), "line 4 /messages/0").line == 4

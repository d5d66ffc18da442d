"""Golden records of every known layout of a trace file.

A change that is meant is recorded with ``python -m tests.traces.golden --write``; look at the
difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.traces.checks import needs_corpus
from tests.traces.golden import (
    describe_format,
    digest_rows,
    first_difference,
    formats,
    outside_files,
    recorded,
    recorded_digests,
)
from tests.traces.golden.damage import damage_rows, damaged_formats, recorded_damage


@pytest.mark.parametrize("name", formats())
def test_reading_gives_the_recorded_spans(name: str, tmp_path: Path) -> None:
    difference = first_difference(recorded(name), describe_format(name, tmp_path))
    assert difference is None, f"{name}: {difference}"


@pytest.mark.parametrize("name", damaged_formats())
def test_reading_damaged_files_gives_the_recorded_counts(name: str, tmp_path: Path) -> None:
    recorded_rows = recorded_damage()[name]
    for recorded_row, row in zip(recorded_rows, damage_rows(name, tmp_path), strict=True):
        assert row == recorded_row, f"{name}, {recorded_row[1]}: reader, traces, spans, problems"


@needs_corpus
@pytest.mark.slow
def test_traces_outside_the_repository_are_read_as_recorded() -> None:
    expected = recorded_digests()
    for name, path in outside_files():
        if name in expected:
            rows = digest_rows(name, path)
            assert rows == expected[name], f"{name}: {expected[name]} → {rows}"


def test_a_difference_names_file_trace_span_and_field() -> None:
    expected = ["file a", "trace t\treader=x", "span 0\tkey=k\tkind=tool_call"]
    actual = ["file a", "trace t\treader=x", "span 0\tkey=k\tkind=message"]
    assert first_difference(expected, expected) is None
    assert first_difference(expected, actual) == "a, trace t, span 0: kind tool_call → message"
    assert first_difference(expected, expected[:2]) == "a, trace t, span 0 → nothing"

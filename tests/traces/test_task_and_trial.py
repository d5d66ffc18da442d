"""The benchmark task and the trial of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.library import read_file, scan
from mast_tui.traces.readers.converted import line_of
from mast_tui.traces.readers.run_facts import task_id_of, trial_of
from mast_tui.traces.scan.library_cache import LibraryCache

STEPS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [((None, 7), "7"), (("a-1", 7), "a-1"), ((True, ""), None), (("a\nb",), None), (({},), None)],
)
def test_an_id_is_a_short_text_or_a_number(
    candidates: tuple[object, ...], expected: str | None
) -> None:
    assert task_id_of(*candidates) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 0), (3, 3), (-1, None), (True, None), ("1", None), (1.5, None)]
)
def test_a_trial_is_a_number_from_0(value: object, expected: int | None) -> None:
    assert trial_of(value) == expected


def test_task_and_trial_are_read_cached_and_converted(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    records = [{"task_id": 3, "trial": 1, "reward": 1, "info": {}, "traj": STEPS}]
    path = folder / "tau.json"
    path.write_text(json.dumps(records))
    (trace,) = read_file(path, named=True).traces
    assert (trace.meta.task_id, trace.meta.trial) == ("3", 1)
    for _ in range(2):  # the second scan uses the cache
        with LibraryCache(tmp_path / "library.db") as library:
            (cached,) = next(iter(scan([folder], library=library))).traces
            assert (cached.meta.task_id, cached.meta.trial) == ("3", 1)
            assert (cached.summary.task_id, cached.summary.trial) == ("3", 1)
    converted = tmp_path / "converted.jsonl"
    converted.write_bytes(line_of(trace))
    (converted_trace,) = read_file(converted, named=True).traces
    assert (converted_trace.meta.task_id, converted_trace.meta.trial) == ("3", 1)

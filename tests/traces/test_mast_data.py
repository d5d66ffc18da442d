"""Records of MAST-Data: the logs of frameworks within them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport
from mast_tui.traces.readers.mast_data import READER
from tests.traces.checks import (
    SAMPLES,
    read_file,
    write_json,
)
from tests.traces.golden import golden_text

FRAMEWORKS = ("appworld", "chatdev", "hyperagent", "magentic-one", "metagpt", "openmanus")
LOGS = {
    "ag2": golden_text("ag2", "001-ag2"),
    **{name: golden_text(name, "each-log-is-told-from-all-others") for name in FRAMEWORKS},
}


def record(log: object, **fields: object) -> dict[str, object]:
    return {
        "mas_name": "Some",
        "llm_name": "opal-2",
        "benchmark_name": "Shop",
        "trace_id": 7,
        "trace": {"key": "k", "index": 0, "trajectory": log},
        "mast_annotation": {"1.1": 1},
        **fields,
    }


def spans_of(report: FileReport) -> list[list[tuple[str, str]]]:
    return [
        [(trace.span(index).key, trace.text(index)) for index in range(len(trace))]
        for trace in report.traces
    ]


@pytest.mark.parametrize("name", LOGS)
def test_the_log_of_a_record_is_read_as_the_log_alone(name: str, tmp_path: Path) -> None:
    from mast_tui.traces.readers import recognise

    log = tmp_path / "run.log"
    log.write_text(LOGS[name], encoding="utf-8")
    reader = recognise(Source(log))
    assert reader is not None
    alone = read_file(reader, log)
    inside = read_file(READER, write_json(tmp_path / "run.json", record(LOGS[name])))
    assert spans_of(inside) == spans_of(alone)
    assert inside.traces[0].meta.system == alone.traces[0].meta.system


@pytest.mark.slow
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are absent")
def test_every_planted_failure_of_the_samples_is_at_its_place() -> None:
    from mast_tui.traces.readers import recognise

    for name in ("planted.jsonl", "clean.jsonl"):
        for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines():
            plant = json.loads(line)
            path = SAMPLES / plant["trace"]
            if path.suffix == ".jsonl":
                continue
            reader = recognise(Source(path))
            assert reader is not None
            report = read_file(reader, path)
            (trace,) = (t for t in report.traces if t.record == plant["record"])
            first, last = trace.index_of(plant["first"]), trace.index_of(plant["last"])
            assert first is not None, plant
            assert last is not None, plant
            assert first <= last, plant
            if plant["quote"] is not None:
                index = trace.index_of(plant["quote_span"])
                assert index is not None, plant
                assert plant["quote"] in trace.text(index), plant

"""Records of MAST-Data with the logs of frameworks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport
from mast_tui.traces.readers.mast_data import READER
from tests.traces.checks import SAMPLES, read_file, write_json
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


def keys_and_texts(report: FileReport) -> list[list[tuple[str, str]]]:
    return [
        [(trace.span(index).key, trace.text(index)) for index in range(len(trace))]
        for trace in report.traces
    ]


@pytest.mark.parametrize("name", LOGS)
def test_the_log_of_a_record_is_read_like_the_log_alone(name: str, tmp_path: Path) -> None:
    from mast_tui.traces.readers import recognise

    log = tmp_path / "run.log"
    log.write_text(LOGS[name], encoding="utf-8")
    reader = recognise(Source(log))
    assert reader is not None
    log_report = read_file(reader, log)
    record_report = read_file(READER, write_json(tmp_path / "run.json", record(LOGS[name])))
    assert keys_and_texts(record_report) == keys_and_texts(log_report)
    assert record_report.traces[0].meta.system == log_report.traces[0].meta.system


@pytest.mark.slow
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are absent")
def test_every_planted_failure_of_the_samples_is_at_its_place() -> None:
    from mast_tui.traces.readers import recognise

    for name in ("planted.jsonl", "clean.jsonl"):
        for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines():
            planted = json.loads(line)
            path = SAMPLES / planted["trace"]
            if path.suffix == ".jsonl":
                continue
            reader = recognise(Source(path))
            assert reader is not None
            report = read_file(reader, path)
            (trace,) = (trace for trace in report.traces if trace.record == planted["record"])
            first = trace.index_of(planted["first"])
            last = trace.index_of(planted["last"])
            assert first is not None, planted
            assert last is not None, planted
            assert first <= last, planted
            if planted["quote"] is not None:
                index = trace.index_of(planted["quote_span"])
                assert index is not None, planted
                assert planted["quote"] in trace.text(index), planted

"""Import and export of mast-data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.exchange.import_batch import Incoming
from mast_tui.exchange.mast_data import mast_data_records, read_mast_data
from mast_tui.labels import AnnotatorKind, TraceWork, VerdictValue
from mast_tui.workspace import TraceRecord
from tests.exchange.strategies import MAST, SLUGS

IDS = st.text(st.characters(exclude_categories=["Cs", "C", "Z"]), min_size=1, max_size=6)


def read(folder: Path, records: object, annotator: str | None = None) -> Incoming:
    file = folder / "records.json"
    file.write_text(json.dumps(records), encoding="utf-8")
    return read_mast_data([file], taxonomy=MAST, find_taxonomy=lambda _: None, annotator=annotator)


@settings(max_examples=settings().max_examples // 2)
@given(
    st.dictionaries(
        st.tuples(IDS, st.sampled_from(["alice", "Bö b", "judge:rules@1"])),
        st.dictionaries(st.sampled_from(SLUGS), st.sampled_from(VerdictValue)),
        max_size=4,
    ),
    st.sampled_from((None, "")),
)
def test_verdicts_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: dict[tuple[str, str], dict[str, VerdictValue]],
    finished_at: str | None,
) -> None:
    all_work = [
        TraceWork(name, trace, MAST.ref, verdicts=verdicts, finished_at=finished_at)
        for (trace, name), verdicts in drawn.items()
    ]
    records = {trace: TraceRecord(trace, system="crew") for trace, _ in drawn}
    written = mast_data_records(all_work, records, MAST)
    incoming = read(tmp_path_factory.mktemp("mast"), written)
    assert incoming.problems == ()
    read_works = {(work.trace_id, work.annotator): work for work in incoming.work}
    assert read_works.keys() == drawn.keys()
    for key, verdicts in drawn.items():
        work = read_works[key]
        assert {label.mode for label in work.labels.values()} == {
            mode for mode, value in verdicts.items() if value is VerdictValue.PRESENT
        }
        assert work.finished_at == finished_at
        assert work.verdicts == {
            mode: value for mode, value in verdicts.items() if value is not VerdictValue.PRESENT
        }
    assert {trace.system for trace in incoming.traces} <= {"crew"}


def test_records_of_the_study_have_an_imported_annotator(tmp_path: Path) -> None:
    record = {"mas_name": "AG2", "llm_name": "m", "benchmark_name": "b", "trace_id": 0}
    incoming = read(tmp_path, [record | {"mast_annotation": {"1.1": 1, "3.3": 0, "3.2": None}}])
    (work,) = incoming.work
    assert (work.annotator, work.author_kind) == ("mast-data", AnnotatorKind.IMPORTED)
    assert work.trace_id == "AG2/m/b/0"
    assert work.verdicts == {"incorrect_verification": VerdictValue.ABSENT}
    assert "by number" in incoming.notes[0]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"trace_id": "t"}, "record 1: has no 'mast_annotation'"),
        ({"mast_annotation": {}}, "record 1: has no 'trace_id'"),
        ({"trace_id": "t", "mast_annotation": {"9.9": 1}}, "mode '9.9' is not in mast@3"),
        ({"trace_id": "t", "mast_annotation": {"1.1": 2}}, "mode 1.1 is 2, not 1, 0 or null"),
        ({"trace_id": "t", "mast_annotation": {}, "unsure": 1}, "unsure is 1, not a list of codes"),
        (
            {"trace_id": "t", "taxonomy": "x@1", "mast_annotation": {}},
            "taxonomy 'x@1' is not in this workspace",
        ),
    ],
)
def test_a_bad_record_is_named(tmp_path: Path, record: object, message: str) -> None:
    incoming = read(tmp_path, [record])
    assert [message in str(problem) for problem in incoming.problems] == [True]

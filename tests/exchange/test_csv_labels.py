"""CSV files of labels: csv-long, csv-wide, and reading of any CSV."""

from __future__ import annotations

import csv
import io
import json
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.exchange.csv_files import CsvRow, stream_rows
from mast_tui.exchange.csv_labels import (
    COLUMNS,
    iso_time,
    read_csv_long,
    read_csv_wide,
    write_csv_long,
    write_csv_wide,
)
from mast_tui.exchange.errors import ExchangeError, RowProblem
from mast_tui.exchange.import_batch import Incoming, lasting_id, lasting_ids
from mast_tui.labels import AnnotatorKind, TraceWork, VerdictValue
from mast_tui.output_files import write_output
from mast_tui.reports.render.csv import csv_text
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.model import Outcome
from mast_tui.workspace.records import TraceRecord
from tests.exchange.strategies import traces, works

MAST = load_mast()


def read_long(tmp_path: Path, text: str, annotator: str | None = None) -> Incoming:
    file = tmp_path / "labels.csv"
    file.write_text(text, encoding="utf-8", newline="")
    return read_csv_long([file], taxonomy=MAST, find_taxonomy=lambda _: None, annotator=annotator)


def read_wide(tmp_path: Path, text: str, annotator: str | None = None) -> Incoming:
    file = tmp_path / "labels.csv"
    file.write_text(text, encoding="utf-8")
    return read_csv_wide([file], taxonomy=MAST, annotator=annotator)


@settings(max_examples=settings().max_examples // 2)
@given(st.data(), st.sets(st.sampled_from(["alice", "Bö b"])))
def test_long_rows_round_trip(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, names: set[str]
) -> None:
    spans = data.draw(traces())
    written = [data.draw(works(spans, name)) for name in sorted(names)]
    incoming = read_long(tmp_path_factory.mktemp("long"), write_csv_long(written, MAST))
    assert incoming.problems == ()
    read_works = {(work.annotator, work.trace_id): work for work in incoming.work}
    for work in written:
        if not work.labels and not work.verdicts and work.finished_at is None:
            assert (work.annotator, work.trace_id) not in read_works
            continue
        copy = read_works[work.annotator, work.trace_id]
        assert copy.labels == work.labels
        assert copy.verdicts == work.verdicts
        assert copy.finished_at == work.finished_at
        saw_suggestions = any(label.saw_suggestions for label in work.labels.values())
        assert copy.judge_seen is saw_suggestions


def long_row(**cells: str) -> str:
    row = dict.fromkeys(COLUMNS, "") | {"trace_id": "t", "annotator": "a"} | cells
    return ",".join(COLUMNS) + "\n" + ",".join(row[name] for name in COLUMNS) + "\n"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"mode": "9.9"}, "'9.9' is not in mast@"),
        ({"value": "yes"}, "present, absent, unsure, finished or note"),
        ({"value": "finished"}, "leave out the mode"),
        ({"mode": ""}, "'mode' is empty"),
        ({"value": "absent", "span_first": "k"}, "leave 'span_first' empty"),
        ({"quote": "q"}, "inside one span"),
        ({"span_last": "k"}, "without span_first"),
        ({"span_first": "k", "span_last": "l", "quote": "q"}, "inside one span"),
        ({"span_first": "k", "quote": "quo", "char_start": "4", "char_end": "9"},
         "the quote has 3 characters"),
        ({"confidence": "1.5"}, "expected 0 to 1"),
        ({"confidence": "nan"}, "expected 0 to 1"),
        ({"severity": "bad"}, "fatal, benign"),
        ({"saw_suggestion": "maybe"}, "true or false"),
        ({"created_at": "soon"}, "expected a time"),
        ({"taxonomy": "own@1"}, "--taxonomy"),
        ({"annotator": ""}, "--annotator"),
        ({"trace_id": " "}, "'trace_id' is empty"),
    ],
)  # fmt: skip
def test_a_bad_long_row_is_named(tmp_path: Path, cells: dict[str, str], message: str) -> None:
    incoming = read_long(tmp_path, long_row(**({"mode": "1.3", "value": "present"} | cells)))
    assert incoming.work == ()
    [problem] = incoming.problems
    assert problem.place == "line 2"
    assert message in problem.reason


def test_contradicting_rows_are_a_problem(tmp_path: Path) -> None:
    head = "trace_id,annotator,mode,value\n"
    for first, second in (("present", "absent"), ("absent", "unsure"), ("unsure", "present")):
        incoming = read_long(tmp_path, head + f"t,a,1.3,{first}\nt,a,step_repetition,{second}\n")
        assert [problem.place for problem in incoming.problems] == ["line 3"]
        assert "both" in incoming.problems[0].reason


def test_names_of_annotators_are_kept_or_replaced(tmp_path: Path) -> None:
    head = "trace_id,annotator,mode,value\n"
    renamed = read_long(tmp_path, head + "t,al,1.3,present\n", annotator="alice")
    assert [work.annotator for work in renamed.work] == ["alice"]
    with pytest.raises(ExchangeError, match="al, bo"):
        read_long(tmp_path, head + "t,al,1.3,present\nt,bo,1.3,present\n", annotator="alice")
    nameless = read_long(tmp_path, "trace_id,mode,value\nt,1.3,present\n", annotator="alice")
    assert [work.annotator for work in nameless.work] == ["alice"]
    text = "trace_id,annotator,mode,value\nt,judge:rules@1,1.3,present\n"
    assert [work.author_kind for work in read_long(tmp_path, text).work] == [AnnotatorKind.JUDGE]


def test_columns_are_checked_and_times_become_utc(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="'span_frist' is unknown"):
        read_long(tmp_path, "trace_id,annotator,mode,value,span_frist\n")
    with pytest.raises(ExchangeError, match="'value' is missing"):
        read_long(tmp_path, "trace_id,annotator,mode\n")
    with pytest.raises(ExchangeError, match=r"'4\.1' is unknown"):
        read_wide(tmp_path, "trace_id,annotator,4.1\n")
    assert iso_time("2026-05-04T12:20:30+02:00") == "2026-05-04T10:20:30Z"
    assert iso_time("2026-05-04T10:20:30") == "2026-05-04T10:20:30Z"


@settings(max_examples=settings().max_examples // 2)
@given(
    st.dictionaries(
        st.sampled_from([m.slug for m in MAST.modes]), st.sampled_from(VerdictValue), max_size=14
    ),
    st.sampled_from(Outcome),
    st.none() | st.floats(0, 1),
)
def test_wide_rows_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    verdicts: dict[str, VerdictValue],
    outcome: Outcome,
    score: float | None,
) -> None:
    trace = TraceRecord("t", system="crew, x", outcome=outcome, score=score, started=9e8 + 0.25)
    written = TraceWork("alice", "t", MAST.ref, verdicts=verdicts)
    text = write_csv_wide([written], {"t": trace}, MAST)
    assert ("score" in text.split("\n")[0]) is (score is not None)
    incoming = read_wide(tmp_path_factory.mktemp("wide"), text)
    assert incoming.problems == ()
    [work] = incoming.work
    present = dict.fromkeys((label.mode for label in work.labels.values()), VerdictValue.PRESENT)
    assert {**work.verdicts, **present} == verdicts
    assert all(label.target.is_whole for label in work.labels.values())
    assert work.finished_at is not None
    assert incoming.traces == (trace,)


def test_usual_spellings_of_wide_tables_are_read(tmp_path: Path) -> None:
    text = "trace_id,annotator,outcome,1.1,1.2,1.3\nt,a,success,1.0,0.0,\n"
    incoming = read_wide(tmp_path, text)
    assert incoming.traces[0].outcome is Outcome.SUCCEEDED
    assert [label.mode for label in incoming.work[0].labels.values()] == [MAST.modes[0].slug]
    assert incoming.work[0].verdicts == {MAST.modes[1].slug: VerdictValue.ABSENT}
    twice = read_wide(tmp_path, "trace_id,annotator,1.3\nt,a,1\nt,a,1\n")
    assert (twice.problems, len(twice.work)) == ((), 1)


def test_a_bad_wide_row_is_named(tmp_path: Path) -> None:
    for rows, message in [
        ("t,a,,2\n", "1, 0, ? or empty"),
        ("t,a,won,1\n", "failed, succeeded or empty"),
        (",a,,1\n", "'trace_id' is empty"),
        ("t,judge|x,,1\n", "separate names"),
        ("t,a,,1\nt,a,,0\n", "two different rows"),
        ("t,a,failed,1\nt,b,succeeded,0\n", "outcome is failed"),
    ]:
        incoming = read_wide(tmp_path, "trace_id,annotator,outcome,1.3\n" + rows)
        [problem] = incoming.problems
        assert problem.place == f"line {rows.count(chr(10)) + 1}"
        assert message in problem.reason


PART = st.none() | st.integers() | st.booleans() | st.text() | st.sampled_from(VerdictValue)


@given(st.text(), st.lists(PART, min_size=1), st.lists(PART))
def test_lasting_ids_are_stable(kind: str, subject: list[object], parts: list[object]) -> None:
    namespace = uuid.UUID("5f0d2a3c-6f0b-5c55-9a55-3a1f5d2f6c10")
    name = str(uuid.uuid5(namespace, json.dumps([kind, *subject, *parts])))
    assert lasting_id(kind, *subject, *parts) == lasting_ids(*subject)(kind, *parts) == name


# CSV files

CELL = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['a,"b"', "line\nbreak", "\r", "=1+1", "-", "@x", " lead", '"', "\r\n", "\ufeff"]
)
TABLE = st.lists(st.tuples(CELL, CELL, CELL), max_size=6)


def read_table(file: Path, *columns: str) -> tuple[list[CsvRow], list[RowProblem]]:
    """Return the sound rows of a file and the problems of the others."""
    problems: list[RowProblem] = []
    return list(stream_rows([file], problems, allowed=columns, needed=columns)), problems


@given(rows=TABLE)
def test_cells_round_trip(
    rows: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    columns = ("one", "two, with comma", "three")
    file = tmp_path_factory.mktemp("csv") / "t.csv"
    text = csv_text(columns, [dict(zip(columns, row, strict=True)) for row in rows])
    write_output(file, text)
    read_rows, problems = read_table(file, *columns)
    assert not problems
    assert all(row.columns == columns for row in read_rows)
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    assert [tuple(row.cells.values()) for row in read_rows] == filled
    # Python's csv module reads the same cells.
    standard_rows = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert [tuple(row) for row in standard_rows] == rows


def test_lines_are_counted_and_broken_rows_are_problems(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes('\ufeffa,b\n"x\ny",1\n\nz,2,3\nw,4\n'.encode())
    rows, problems = read_table(file, "a", "b")
    assert [(row.place, row.cells["b"]) for row in rows] == [("line 2", "1"), ("line 6", "4")]
    assert [problem.place for problem in problems] == ["line 5"]
    assert "3 cells under 2 headings" in problems[0].reason
    file = tmp_path / "t.csv"
    file.write_text('a,b\n1,2\n"open,3\n4,5\n')
    rows, problems = read_table(file, "a", "b")
    assert [row.cells["a"] for row in rows] == ["1"]
    assert [problem.place for problem in problems] == ["line 3"]


def test_separators_and_short_rows_of_spreadsheets_are_read(tmp_path: Path) -> None:
    for separator in [",", ";", "\t"]:
        file = tmp_path / "t.csv"
        file.write_text(f'a{separator}b\r\n"x;,y"{separator}1\r\n')
        (row,), problems = read_table(file, "a", "b")
        assert (row.texts, problems) == (["x;,y", "1"], [])
    file = tmp_path / "t.csv"
    file.write_text("a,b,c\n1\n")
    short, _ = read_table(file, "a", "b", "c")
    assert dict(short[0].cells) == {"a": "1", "b": "", "c": ""}


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    for data, message in [
        (b"", "no heading row"),
        (b"\n\n", "no heading row"),
        (b"a,a\n1,2\n", "appears twice"),
        (b"a\nb\n\xff\n", "line 3: not UTF-8"),
    ]:
        file = tmp_path / "t.csv"
        file.write_bytes(data)
        with pytest.raises(ExchangeError, match=message):
            read_table(file, "a")

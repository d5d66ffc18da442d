"""Parquet tables as data sets are published: MAST-Data, and message lists."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport
from mast_tui.traces.readers import mast_data, recognise
from mast_tui.traces.readers import mast_data_parquet as mast_parquet
from mast_tui.traces.readers.chat import reader as message_lists
from mast_tui.traces.readers.mast_data_parquet import READER
from mast_tui.traces.scan.file_reader import read_one as read_path
from tests.traces.checks import read_file, write_json_lines
from tests.traces.test_frameworks import APPWORLD, MAGENTIC
from tests.traces.test_mast_data import record, spans_of

pytest.importorskip("pyarrow")

CHAT: list[dict[str, object]] = [
    {"role": "user", "content": "please help"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "7"},
]


def write_parquet(path: Path, rows: list[dict[str, object]], **options: object) -> Path:
    """``rows`` as a Parquet table at ``path``."""
    table = import_module("pyarrow").Table.from_pylist(rows)
    import_module("pyarrow.parquet").write_table(table, str(path), **options)
    return path


def messages_of(report: FileReport) -> list[list[tuple[str, str, str]]]:
    return [
        [
            (span.key, span.place, trace.text(span.index))
            for span in map(trace.span, range(len(trace)))
        ]
        for trace in report.traces
    ]


def test_a_table_of_mast_data_reads_like_its_json_lines(tmp_path: Path) -> None:
    rows = [record(MAGENTIC), record(APPWORLD, mas_name="AppWorld")]
    on_lines = read_file(mast_data.READER, write_json_lines(tmp_path / "runs.jsonl", *rows))
    table = read_file(READER, write_parquet(tmp_path / "runs.parquet", rows))
    assert table.format == "mast-data"
    assert spans_of(table) == spans_of(on_lines)
    assert [t.identity for t in table.traces] == [t.identity for t in on_lines.traces]
    assert [t.meta for t in table.traces] == [t.meta for t in on_lines.traces]
    assert table.traces[1].span(0).place == "row 2 /trace/trajectory line 2"


def test_nested_columns_may_be_json_texts(tmp_path: Path) -> None:
    row = record(MAGENTIC)
    texts = {**row, **{name: json.dumps(row[name]) for name in ("trace", "mast_annotation")}}
    nested = read_file(READER, write_parquet(tmp_path / "a.parquet", [row]))
    written = read_file(READER, write_parquet(tmp_path / "b.parquet", [texts]))
    assert spans_of(nested) == spans_of(written) != [[]]
    assert written.traces[0].span(0).place == nested.traces[0].span(0).place
    assert dict(written.traces[0].meta.hidden)["mast_annotation"] == '{"1.1": 1}'


@pytest.mark.parametrize("as_text", [True, False])
def test_a_column_of_messages_is_one_run_a_row(tmp_path: Path, as_text: bool) -> None:
    rows: list[dict[str, object]] = [
        {"messages": json.dumps(chat) if as_text else chat, "model": f"opal-{number}"}
        for number, chat in enumerate((CHAT, CHAT[:2]))
    ]
    path = write_parquet(tmp_path / "train-00000.parquet", rows)
    report = read_file(READER, path)
    assert report.format == "message-list"
    assert recognise(Source(path)) is READER
    assert messages_of(report) == [
        [
            ("/messages/0", "row 1 /messages/0", "please help"),
            ("c1:call", "row 1 /messages/1/tool_calls/0", '{"a":1}'),
            ("c1:result", "row 1 /messages/2", "7"),
        ],
        [
            ("/messages/0", "row 2 /messages/0", "please help"),
            ("c1:call", "row 2 /messages/1/tool_calls/0", '{"a":1}'),
        ],
    ]
    assert [trace.meta.model for trace in report.traces] == ["opal-0", "opal-1"]
    assert [trace.record for trace in report.traces] == [0, 1]


def test_fields_that_a_table_fills_in_with_null_are_no_arguments(tmp_path: Path) -> None:
    calls = [
        {"role": "assistant", "content": "", "tool_calls": [{"name": "f", "arguments": arguments}]}
        for arguments in ({"a": 1}, {"b": 2})
    ]
    report = read_file(READER, write_parquet(tmp_path / "x.parquet", [{"messages": calls}]))
    assert [json.loads(text) for _key, _place, text in messages_of(report)[0]] == [
        {"a": 1},
        {"b": 2},
    ]


def test_rows_without_messages_are_named(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"messages": json.dumps(CHAT)}, {"messages": None}]
    report = read_file(READER, write_parquet(tmp_path / "x.parquet", rows * 20))
    assert len(report.traces) == 20
    assert [problem.place for problem in report.problems][:2] == ["row 2", "row 4"]


def test_a_packed_table_is_unpacked(tmp_path: Path) -> None:
    import gzip

    path = write_parquet(tmp_path / "x.parquet", [{"messages": CHAT}])
    packed = tmp_path / "y.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert len(read_file(READER, packed).traces) == 1


def test_a_table_of_something_else_is_skipped(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x.parquet", [{"question": "1+1", "answer": b"\xff\x00"}])
    report = READER.read(Source(path))
    assert (report.skipped, report.failed) == ("a Parquet table without traces", None)


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_parquet(tmp_path / "x.parquet", [{"messages": CHAT}])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert read_path(path, named=False).skipped == (
        "Parquet needs an extra: pip install 'mast-tui[parquet]'"
    )


def test_a_huge_table_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[dict[str, object]] = [
        {"messages": CHAT, "padding": f"{number}" + " " * 10_000} for number in range(300)
    ]
    path = write_parquet(tmp_path / "x.parquet", rows, compression="zstd")
    monkeypatch.setattr(mast_parquet, "MAX_BYTES", 2 << 20)
    assert path.stat().st_size < 2 << 20
    assert "tables of more than 2 MB are not read" in (READER.read(Source(path)).skipped or "")


def test_broken_tables_fail_with_the_reason(tmp_path: Path) -> None:
    whole = write_parquet(tmp_path / "x.parquet", [{"messages": CHAT}] * 40).read_bytes()
    path = tmp_path / "cut.parquet"
    for end in (4, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        report = READER.read(Source(path))
        assert "not readable as Parquet" in (report.failed or "")


def test_what_stands_before_a_broken_page_is_read(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"messages": json.dumps([{"role": "user", "content": f"number {n}"}])} for n in range(200)
    ]
    path = write_parquet(
        tmp_path / "x.parquet", rows, row_group_size=100, compression="zstd", use_dictionary=False
    )
    meta = import_module("pyarrow.parquet").ParquetFile(str(path)).metadata
    offset = meta.row_group(1).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[offset : offset + 60] = b"\xff" * 60
    path.write_bytes(bytes(data))
    report = READER.read(Source(path))
    assert 90 <= len(report.traces) <= 100
    assert [problem.place for problem in report.problems] == [f"row {len(report.traces) + 1}"]


def test_a_row_has_the_id_of_the_same_record_elsewhere(tmp_path: Path) -> None:
    chat = CHAT[:1]
    table = read_file(READER, write_parquet(tmp_path / "runs.parquet", [{"messages": chat}]))
    path = write_json_lines(tmp_path / "runs.jsonl", {"messages": chat}, {"messages": chat})
    lines = read_file(message_lists.READER, path)
    assert table.traces[0].identity == lines.traces[0].identity


def test_a_row_whose_text_is_no_text_is_left_out(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"messages": json.dumps([{"role": "user", "content": f"number {n}"}])} for n in range(30)
    ]
    path = write_parquet(tmp_path / "x.parquet", rows, compression="none", use_dictionary=False)
    data = path.read_bytes()
    assert data.count(b"number 17") == 1
    path.write_bytes(data.replace(b"number 17", b"n\xffmber 17"))
    report = READER.read(Source(path))
    assert [trace.record for trace in report.traces] == [n for n in range(30) if n != 17]
    assert [problem.place for problem in report.problems] == ["row 18"]

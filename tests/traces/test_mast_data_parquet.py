"""Parquet tables as data sets are published: MAST-Data, and message lists."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.readers import mast_data
from mast_tui.traces.readers import mast_data_parquet as mast_parquet
from mast_tui.traces.readers.mast_data_parquet import READER
from mast_tui.traces.scan.file_reader import read_one as read_path
from tests.traces.checks import read_file, write_json_lines
from tests.traces.test_mast_data import LOGS, record, spans_of

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


def test_a_table_of_mast_data_reads_like_its_json_lines(tmp_path: Path) -> None:
    rows = [record(LOGS["magentic-one"]), record(LOGS["appworld"], mas_name="AppWorld")]
    on_lines = read_file(mast_data.READER, write_json_lines(tmp_path / "runs.jsonl", *rows))
    table = read_file(READER, write_parquet(tmp_path / "runs.parquet", rows))
    assert table.format == "mast-data"
    assert spans_of(table) == spans_of(on_lines)
    assert [t.identity for t in table.traces] == [t.identity for t in on_lines.traces]
    assert [t.meta for t in table.traces] == [t.meta for t in on_lines.traces]
    assert table.traces[1].span(0).place == "row 2 /trace/trajectory line 2"


def test_nested_columns_may_be_json_texts(tmp_path: Path) -> None:
    row = record(LOGS["magentic-one"])
    texts = {**row, **{name: json.dumps(row[name]) for name in ("trace", "mast_annotation")}}
    nested = read_file(READER, write_parquet(tmp_path / "a.parquet", [row]))
    written = read_file(READER, write_parquet(tmp_path / "b.parquet", [texts]))
    assert spans_of(nested) == spans_of(written) != [[]]
    assert written.traces[0].span(0).place == nested.traces[0].span(0).place
    assert dict(written.traces[0].meta.hidden)["mast_annotation"] == '{"1.1": 1}'


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
        "Parquet needs more packages; install them with: pip install 'mast-tui[parquet]'"
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

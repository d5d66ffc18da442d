"""Published data sets in Parquet tables: MAST-Data and message lists."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.readers import mast_data_parquet as mast_parquet
from mast_tui.traces.readers.mast_data_parquet import READER
from mast_tui.traces.scan.file_reader import read_one as read_path

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
    """Write ``rows`` to ``path`` as a Parquet table; return the path."""
    table = import_module("pyarrow").Table.from_pylist(rows)
    import_module("pyarrow.parquet").write_table(table, str(path), **options)
    return path


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

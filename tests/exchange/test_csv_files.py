"""CSV survives whatever stands in its cells."""

from __future__ import annotations

import csv
import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.exchange.csv_files import CsvRow, stream_rows
from mast_tui.exchange.csv_labels import read_csv_long
from mast_tui.exchange.errors import ExchangeError, RowProblem
from mast_tui.output_files import write_output
from mast_tui.reports.render.csv import csv_text
from tests.exchange.words import MAST

CELL = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['a,"b"', "line\nbreak", "\r", "=1+1", "-", "@x", " lead", '"', "\r\n", "\ufeff"]
)
TABLE = st.lists(st.tuples(CELL, CELL, CELL), max_size=6)


def table_in(file: Path, *columns: str) -> tuple[list[CsvRow], list[RowProblem]]:
    """The sound rows of a file with these columns, and what is wrong with the others."""
    problems: list[RowProblem] = []
    return list(stream_rows([file], problems, allowed=columns, needed=columns)), problems


@given(rows=TABLE)
def test_cells_come_back_as_they_were(
    rows: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    columns = ("one", "two, with comma", "three")
    file = tmp_path_factory.mktemp("csv") / "t.csv"
    text = csv_text(columns, [dict(zip(columns, row, strict=True)) for row in rows])
    write_output(file, text)
    found, problems = table_in(file, *columns)
    assert not problems
    assert all(row.columns == columns for row in found)
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    assert [tuple(row.cells.values()) for row in found] == filled
    # What others read is the same.
    others = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert [tuple(row) for row in others] == rows


def test_a_byte_order_mark_is_read_and_rows_know_their_line(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes('\ufeffa,b\n"x\ny",1\n\nz,2,3\nw,4\n'.encode())
    rows, problems = table_in(file, "a", "b")
    assert [(row.place, row.cells["b"]) for row in rows] == [("line 2", "1"), ("line 6", "4")]
    assert [problem.place for problem in problems] == ["line 5"]
    assert "3 cells under 2 headings" in problems[0].reason


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separators_of_spreadsheets_are_read(separator: str, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(separator.join(("a", "b")) + "\r\n" + separator.join(('"x;,y"', "1")) + "\r\n")
    (row,), problems = table_in(file, "a", "b")
    assert (row.texts, problems) == (["x;,y", "1"], [])


def test_short_rows_are_filled(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b,c\n1\n")
    rows, _ = table_in(file, "a", "b", "c")
    assert dict(rows[0].cells) == {"a": "1", "b": "", "c": ""}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no heading row"),
        (b"\n\n", "no heading row"),
        (b"a,a\n1,2\n", "stands twice"),
        (b"a\nb\n\xff\n", "line 3: not UTF-8"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(data)
    with pytest.raises(ExchangeError, match=words):
        table_in(file, "a")


def test_an_open_quote_is_one_problem_and_loses_no_earlier_row(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('a,b\n1,2\n"open,3\n4,5\n')
    rows, problems = table_in(file, "a", "b")
    assert [row.cells["a"] for row in rows] == ["1"]
    assert [problem.place for problem in problems] == ["line 3"]


@pytest.mark.slow
def test_labels_are_read_without_holding_every_row(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    modes = [mode.code for mode in MAST.modes]
    with file.open("w", encoding="utf-8") as out:
        out.write("trace_id,annotator,mode,value\n")
        for trace in range(500):
            out.writelines(f"trace-{trace},alice,{mode},absent\n" for mode in modes)
    read_csv_long([file], taxonomy=MAST, find_taxonomy=lambda _: None)
    tracemalloc.start()
    try:
        incoming = read_csv_long([file], taxonomy=MAST, find_taxonomy=lambda _: None)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(incoming.work) == 500
    assert peak - held < 8 * file.stat().st_size

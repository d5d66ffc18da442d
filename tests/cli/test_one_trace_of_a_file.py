"""``FILE#2`` is the third trace of a file, in every command that reads traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_inspect import mast_tui
from tests.traces.checks import write_json_lines

TRACE_IDS_IN = {
    "inspect": lambda text: [
        trace["id"] for file in json.loads(text)["files"] for trace in file["traces"]
    ],
    "search": lambda text: [json.loads(line)["trace"] for line in text.splitlines()],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with three conversations."""
    chats = [{"messages": [{"role": "user", "content": f"zebra {n}"}]} for n in range(3)]
    return write_json_lines(tmp_path / "chats.jsonl", *chats)


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["here", "workers"])
@pytest.mark.parametrize(
    ("numbers", "expected"),
    [((2,), [2]), ((2, 0), [0, 2]), ((1, None), [0, 1, 2])],
    ids=["one", "two", "one-and-the-file"],
)
@pytest.mark.parametrize("command", ["inspect", "search"])
def test_a_number_behind_a_file_names_one_trace(
    command: str,
    numbers: tuple[int | None, ...],
    expected: list[int],
    workers: tuple[str, ...],
    file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Only the traces asked for are read; the file by itself is all of them."""
    paths = [str(file) if number is None else f"{file}#{number}" for number in numbers]
    query = ["zebra"] if command == "search" else []
    assert mast_tui(command, *query, *paths, "--json", *workers) == 0
    ids = TRACE_IDS_IN[command](capsys.readouterr().out)
    assert [identifier.partition(":")[2].partition("-")[0] for identifier in ids] == [
        str(number) for number in expected
    ]


def test_other_commands_take_one_trace(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Judging, converting and judging into shards read the one trace alone."""
    workspace = ("--workspace", tmp_path / "w.db")
    assert mast_tui("judge", f"{file}#1", "--judge", "rules", *workspace) == 0
    assert "1 trace judged" in capsys.readouterr().out
    for paths, judged in (((f"{file}#1",), 1), ((f"{file}#0", f"{file}#1"), 2)):
        assert mast_tui("judge", *paths, "--judge", "rules", "--out", tmp_path / "shards") == 0
        assert f"{judged} trace" in capsys.readouterr().out
    converted = tmp_path / "converted.jsonl"
    assert mast_tui("convert", f"{file}#1", "-o", converted) == 0
    (line,) = converted.read_text().splitlines()
    assert json.loads(line)["spans"][0]["text"] == "zebra 1"
    capsys.readouterr()
    assert mast_tui("compare", f"{file}#1", f"{file}#2") == 0


def test_a_number_without_a_trace_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says how many traces there are."""
    assert mast_tui("inspect", f"{file}#3") == 1
    assert "holds 3 traces, no #3" in capsys.readouterr().err


def test_a_file_whose_own_name_ends_in_a_number_is_that_file(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number means a trace only where no such file exists."""
    own = file.rename(file.with_name("chats.jsonl#2"))
    assert mast_tui("inspect", own, "--json") == 0
    assert len(TRACE_IDS_IN["inspect"](capsys.readouterr().out)) == 3


def test_a_judge_without_any_trace_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder without traces is a mistake in the command, not a run without suggestions."""
    (tmp_path / "empty").mkdir()
    workspace = ("--workspace", tmp_path / "w.db")
    assert mast_tui("judge", tmp_path / "empty", "--judge", "rules", *workspace) == 1
    assert "no traces under the paths" in capsys.readouterr().err

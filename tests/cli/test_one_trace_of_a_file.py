"""``FILE#2`` is the third trace of a file, in every command that reads traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
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
    cli: Cli,
) -> None:
    """Only the traces asked for are read; the file by itself is all of them."""
    paths = [str(file) if number is None else f"{file}#{number}" for number in numbers]
    query = ["zebra"] if command == "search" else []
    done = cli(command, *query, *paths, "--json", *workers)
    assert done.code == 0, done.err
    ids = TRACE_IDS_IN[command](done.out)
    assert [identifier.partition(":")[2].partition("-")[0] for identifier in ids] == [
        str(number) for number in expected
    ]


def test_other_commands_take_one_trace(file: Path, cli: Cli) -> None:
    """Judging, converting and judging into shards read the one trace alone."""
    done = cli("judge", f"{file}#1", "--judge", "rules")
    assert (done.code, "1 trace judged" in done.out) == (0, True)
    for paths, judged in (((f"{file}#1",), 1), ((f"{file}#0", f"{file}#1"), 2)):
        done = cli("judge", *paths, "--judge", "rules", "--out", "shards")
        assert (done.code, f"{judged} trace" in done.out) == (0, True)
    assert cli("convert", f"{file}#1", "-o", "converted.jsonl").code == 0
    (line,) = Path("converted.jsonl").read_text().splitlines()
    assert json.loads(line)["spans"][0]["text"] == "zebra 1"
    assert cli("compare", f"{file}#1", f"{file}#2").code == 0


def test_a_number_without_a_trace_is_refused(file: Path, cli: Cli) -> None:
    """The message says how many traces there are."""
    done = cli("inspect", f"{file}#3")
    assert (done.code, "holds 3 traces, no #3" in done.err) == (1, True)


def test_a_file_whose_own_name_ends_in_a_number_is_that_file(file: Path, cli: Cli) -> None:
    """The number means a trace only where no such file exists."""
    own = file.rename(file.with_name("chats.jsonl#2"))
    done = cli("inspect", own, "--json")
    assert (done.code, len(TRACE_IDS_IN["inspect"](done.out))) == (0, 3)


def test_a_judge_without_any_trace_fails(tmp_path: Path, cli: Cli) -> None:
    """A folder without traces is a mistake in the command, not a run without suggestions."""
    (tmp_path / "empty").mkdir()
    done = cli("judge", "empty", "--judge", "rules")
    assert (done.code, "no traces under the paths" in done.err) == (1, True)

"""Unreadable files beside a trace: pipes, devices, links and huge files."""

from __future__ import annotations

import gzip
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard

from mast_tui.traces.io import source
from mast_tui.traces.io.packed import TooBig, unpack
from mast_tui.traces.io.regular_files import UnreadableFile, open_regular, read_beside
from mast_tui.traces.library import scan
from mast_tui.traces.scan.big_documents import BigDocuments
from mast_tui.traces.scan.document_process import DocumentProcess
from mast_tui.traces.scan.file_reader import read_one
from mast_tui.traces.scan.scanning import Scan
from tests.traces.checks import write_json

pytestmark = pytest.mark.slow

MAX_SECONDS = 60
"""Seconds after which a process counts as endless."""

MAX_MEMORY = 2 << 30
CHAT = {"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "ok"}]}

Make = Callable[[Path], None]


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def itself(path: Path) -> None:
    path.symlink_to(path.name)


def folder(path: Path) -> None:
    path.mkdir()


def nameless(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(path))


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 3 << 30)


UNREADABLE: tuple[Make, ...] = (fifo, endless, itself, nameless, huge)


def run_inspect(path: Path) -> dict[str, Any]:
    """Run ``inspect`` for a path with little time and memory; return its output."""
    process = subprocess.run(
        [sys.executable, "-m", "mast_tui", "inspect", "--json", path],
        capture_output=True,
        timeout=MAX_SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY)),
        check=False,
    )
    assert process.returncode in (0, 1), process.stderr
    assert b"Traceback" not in process.stderr
    output: dict[str, Any] = json.loads(process.stdout)
    return output


def problems_of(output: dict[str, Any], folder: Path, name: str) -> list[str]:
    """Return the reasons and problems of a file with this name below a folder."""
    reasons = [
        entry["reason"]
        for kind in ("skipped", "failed")
        for entry in output[kind]
        if Path(entry["path"]).name == name and folder in Path(entry["path"]).parents
    ]
    problems = [
        problem
        for file in output["files"]
        if folder in [Path(file["path"]), *Path(file["path"]).parents]
        for problem in file["problems"]
    ]
    return reasons + [problem["message"] for problem in problems if problem["place"].endswith(name)]


def test_an_unreadable_outcomes_file_is_a_problem(tmp_path: Path) -> None:
    folders = []
    for make in UNREADABLE:
        subfolder = tmp_path / make.__name__
        write_json(subfolder / "chat.json", {**CHAT, "id": make.__name__})
        make(subfolder / "outcomes.csv")
        folders.append(subfolder)
    output = run_inspect(tmp_path)
    assert len(output["files"]) == len(UNREADABLE)
    for subfolder in folders:
        assert problems_of(output, subfolder, "outcomes.csv"), subfolder
    output = run_inspect(folders[0] / "chat.json")
    assert len(output["files"]) == 1
    assert problems_of(output, folders[0], "outcomes.csv")


@pytest.mark.parametrize("name", ["result.json", "results.json", "evaluation.json"])
def test_an_unreadable_file_of_a_trial_is_a_problem(name: str, tmp_path: Path) -> None:
    trials = []
    for make in UNREADABLE:
        trial = tmp_path / make.__name__
        write_json(trial / "agent" / "trajectory.json", {**CHAT, "id": make.__name__})
        if name == "evaluation.json":
            (trial / "traces").mkdir()
            (trial / "traces" / "stdout.log").write_text(f"one line of {make.__name__}\n")
        elif name == "results.json":
            (trial / "agent-logs").mkdir()
        make(trial / name)
        trials.append(trial)
    output = run_inspect(tmp_path)
    assert len(output["files"]) == len(UNREADABLE)
    for trial in trials:
        assert problems_of(output, trial, name), trial


@pytest.mark.parametrize("make", [fifo, endless, itself, folder])
def test_an_unreadable_event_file_is_skipped(make: Make, tmp_path: Path) -> None:
    events = tmp_path / "c" / "events"
    events.mkdir(parents=True)
    for number in range(2):
        event = {"id": number, "timestamp": "2026-01-01T00:00:00", "source": "user"}
        event |= {"message": "go", "action": "message", "args": {"content": "go"}}
        write_json(events / f"{number}.json", event)
    make(events / "2.json")
    make(tmp_path / "c" / "base_state.json")
    output = run_inspect(events)
    assert [file["traces"][0]["spans"] for file in output["files"]] == [2]
    assert make is folder or problems_of(output, tmp_path, "base_state.json"), output


def test_a_link_to_itself_does_not_hide_other_files(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    write_json(tmp_path / "chat.json", CHAT)
    write_json(tmp_path / "below" / "chat.json", {**CHAT, "id": "other"})
    itself(tmp_path / "self.json")
    itself(tmp_path / "below" / "self.jsonl")
    (tmp_path / "up").symlink_to(tmp_path)
    reports = list(scan([tmp_path]))
    assert sum(len(report.traces) for report in reports) == 2
    failed = {report.path.name: report.failed for report in reports if report.failed}
    assert failed.keys() == {"self.json", "self.jsonl"}
    assert "symbolic links" in str(failed["self.json"])


@pytest.mark.parametrize("big", [BigDocuments(), BigDocuments(0)], ids=["direct", "worker"])
@pytest.mark.parametrize("suffix", [".log.gz", ".jsonl.gz", ".log.zst", ".json.zst"])
def test_a_file_too_big_when_unpacked_is_a_problem(
    suffix: str, big: BigDocuments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "unpack", partial(unpack, most=1 << 20))
    text = b"2026-01-01 12:00:00 INFO request handled\n" * 100_000
    pack = gzip.compress if suffix.endswith("gz") else zstandard.ZstdCompressor().compress
    path = tmp_path / f"server{suffix}"
    path.write_bytes(pack(text))
    assert (
        read_one(path, True, big).failed == "contains more than 1 MB when unpacked; unpack it first"
    )
    write_json(tmp_path / "chat.json", CHAT)
    for reports in (list(scan([tmp_path])), list(Scan([tmp_path], wait=DocumentProcess.wait))):
        assert [report.path.name for report in reports if report.traces] == ["chat.json"]
        assert [report.path.name for report in reports if report.failed] == [path.name]


def test_a_file_too_big_when_unpacked_starts_no_process(tmp_path: Path) -> None:
    path = tmp_path / "server.log.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(9):
            file.write(b"2026-01-01 12:00:00 INFO request handled by worker\n" * 600_000)
    assert BigDocuments(folder=tmp_path / "kept").begin(path) is None
    with pytest.raises(TooBig):
        unpack(path)


@pytest.mark.parametrize("make", [fifo, endless, folder, nameless])
def test_only_regular_files_are_opened(make: Make, tmp_path: Path) -> None:
    make(tmp_path / "odd")
    with pytest.raises(UnreadableFile, match="odd: not a regular file"):
        open_regular(tmp_path / "odd")


def test_a_file_beside_a_trace_is_read_up_to_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "beside"
    assert read_beside(path) is None
    for size in (0, 1, 4096):
        path.write_bytes(b"x" * size)
        assert read_beside(path, 4096) == b"x" * size
    path.write_bytes(b"x" * 4097)
    with pytest.raises(UnreadableFile, match="beside: contains more than 4 kB"):
        read_beside(path, 4096)


def test_a_file_without_a_size_is_read_up_to_a_bound() -> None:
    data = read_beside(Path("/proc/self/status"))
    assert data is not None
    assert b"VmRSS" in data
    with pytest.raises(UnreadableFile, match="contains more"):
        read_beside(Path("/proc/self/status"), 100)

"""Big documents, which another process reads and caches."""

from __future__ import annotations

import gzip
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mast_tui import parallel
from mast_tui.traces.io.source import Source
from mast_tui.traces.scan import document_process
from mast_tui.traces.scan.big_documents import BIG_BYTES, BigDocuments
from mast_tui.traces.scan.document_cache import DocumentCache
from mast_tui.traces.scan.document_process import STOPPED, DocumentProcess
from mast_tui.traces.scan.file_reader import read_one
from tests import waiting
from tests.benchmarks.documents import LAYOUTS, write_document
from tests.traces import rollouts
from tests.traces.compared_reports import check_same_report
from tests.traces.test_cached_documents import chat

pytestmark = pytest.mark.slow

_MAX_SECONDS: int = 60
"""Seconds after which a process counts as endless."""


@pytest.fixture
def big(tmp_path: Path) -> BigDocuments:
    """Let another process read every document."""
    return BigDocuments(0, tmp_path / "kept")


def has_ended(pid: int) -> bool:
    """Wait until a process ends, which need not be a child of this one; return whether it ended."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], _MAX_SECONDS)[0])
    finally:
        os.close(pidfd)


def fail_if_called(*_: object) -> DocumentProcess:
    raise AssertionError("a process was begun")


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_a_document_is_read_the_same_in_a_process_of_its_own(
    tmp_path: Path, layout: str, big: BigDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.json"
    write_document(path, 300_000, layout, seed=3)
    expected = read_one(path, named=True)
    assert len(expected.traces[0]) >= 400
    check_same_report(read_one(path, named=True, big=big), expected)
    monkeypatch.setattr(document_process, "DocumentProcess", fail_if_called)
    check_same_report(read_one(path, named=False, big=big), expected)
    assert big.begin(path) is None


def test_a_damaged_file_is_read_the_same_in_a_process_of_its_own(
    tmp_path: Path, big: BigDocuments
) -> None:
    chats = [json.loads(chat(tmp_path, [f"{n}", "b"]).read_text()) for n in range(3)]
    text = json.dumps(chats, indent=1)
    path = tmp_path / "chats.json"
    for damaged in (
        text[:-40],
        text.replace('"b"', '"b', 1),
        text.encode("utf-16").decode("cp437"),
    ):
        path.write_text(damaged, encoding="utf-8")
        for named in (True, False):
            check_same_report(read_one(path, named, big), read_one(path, named))


@pytest.mark.parametrize(
    "content", ['{"a": 1}', "{", '[{"a": 1}]', '{"a": 1}\n{"b": 2}\n', "plain words\n", "{ no json"]
)
@pytest.mark.parametrize("name", ["a.json", "a.txt", "a"])
def test_a_document_that_is_no_trace_is_skipped_for_the_same_reason(
    tmp_path: Path, big: BigDocuments, content: str, name: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    for named in (True, False):
        check_same_report(read_one(path, named, big), read_one(path, named))


def test_a_compressed_document_counts_with_its_unpacked_size(tmp_path: Path) -> None:
    plain = tmp_path / "run.json"
    write_document(plain, 2 * BIG_BYTES, "atif", seed=1)
    path = tmp_path / "run.json.gz"
    path.write_bytes(gzip.compress(plain.read_bytes(), 1))
    assert path.stat().st_size < BIG_BYTES
    process = BigDocuments(folder=tmp_path / "kept").begin(path)
    assert process is not None
    process.stop()
    small = tmp_path / "small.json.gz"
    small.write_bytes(gzip.compress(plain.read_bytes()[: BIG_BYTES // 2], 1))
    assert BigDocuments(folder=tmp_path / "kept").begin(small) is None


def test_files_of_lines_are_read_in_this_process(
    tmp_path: Path, big: BigDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_process, "DocumentProcess", fail_if_called)
    rollout = rollouts.write(tmp_path, rollouts.meta())
    log = tmp_path / "server.log"
    log.write_text("[2026-01-02 10:00:00,123 INFO] begun\n[INFO] {\n" * 3)
    text_file = tmp_path / "words.txt"
    text_file.write_text("one\n\ntwo\n")
    for path in (rollout, log, text_file):
        (trace,) = read_one(path, True, big).traces
        assert trace.loaded.complete
        assert big.begin(path) is None


def test_only_the_head_of_a_log_in_brackets_is_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-01-02 10:00:00,123 INFO] begun\n" * 3)
    monkeypatch.setattr(Path, "read_bytes", fail_if_called)
    assert Source(log).json is None


def test_a_killed_process_is_a_problem_and_caches_nothing(
    tmp_path: Path, big: BigDocuments
) -> None:
    pipe = tmp_path / "never-there.json"
    os.mkfifo(pipe)
    documents = DocumentCache(tmp_path / "kept")
    documents.folder.mkdir()
    process = DocumentProcess(pipe, documents)
    assert not process.wait(0)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait()
    assert process.failed == (
        "the process that read it was killed (SIGKILL, perhaps as memory ran out); try again"
    )
    assert list(documents.folder.iterdir()) == []


def start_process(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> DocumentProcess:
    """Start a reading process that runs other code."""
    monkeypatch.setattr(parallel, "_WORKER_CODE", code)
    return DocumentProcess(chat(folder, ["one"]), DocumentCache(folder / "kept"))


ENDLESS_CODE = "import time\ntime.sleep(3600)"
ERROR_CODE = """import sys
from multiprocessing.connection import Connection
Connection(int(sys.argv[3])).send((None, ValueError("it is too much")))
"""


def test_stopping_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start_process(ENDLESS_CODE, tmp_path, monkeypatch)
    assert not process.wait(0)
    process.stop()
    assert process.wait()
    assert process.failed == STOPPED
    assert has_ended(process.pid)


@pytest.mark.parametrize(
    ("code", "reason"),
    [("raise SystemExit(3)", "exit code 3"), (ERROR_CODE, "ValueError: it is too much")],
)
def test_the_reason_of_a_failed_process_is_reported(
    code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start_process(code, tmp_path, monkeypatch)
    assert process.wait(_MAX_SECONDS)
    assert process.failed == f"the process that read it failed: {reason}"
    assert has_ended(process.pid)


def test_a_process_that_does_not_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_process, "_ENDING_SECONDS", 0.1)
    code = f"import os, sys\nos.close(int(sys.argv[3]))\n{ENDLESS_CODE}"
    process = start_process(code, tmp_path, monkeypatch)
    assert process.wait(_MAX_SECONDS)
    assert has_ended(process.pid)
    assert process.failed is not None


def test_a_pipe_in_place_of_a_document_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    process = DocumentProcess(tmp_path / "pipe.json", DocumentCache(tmp_path / "kept"))
    assert process.wait(_MAX_SECONDS)
    assert process.failed == "not a regular file"


def test_a_process_without_a_reference_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start_process(ENDLESS_CODE, tmp_path, monkeypatch)
    pid = process.pid
    del process
    assert has_ended(pid)


_PARENT_CODE = """import os, signal, sys
from pathlib import Path
from mast_tui.traces.scan.document_process import DocumentProcess
from mast_tui.traces.scan.document_cache import DocumentCache
process = DocumentProcess(Path(sys.argv[1]), DocumentCache(Path(sys.argv[2])))
while process.progress.total != process.progress.done:
    process.wait(0.1)
print(process.pid, flush=True)
os.kill(os.getpid(), int(sys.argv[3]))
"""


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_ends_with_its_parent(tmp_path: Path, signal_number: int) -> None:
    path = tmp_path / "run.json"
    write_document(path, 4 << 20, "atif", seed=1)
    (tmp_path / "kept").mkdir()
    parent = subprocess.run(
        [sys.executable, "-c", _PARENT_CODE, path, tmp_path / "kept", str(int(signal_number))],
        stdout=subprocess.PIPE,
        check=False,
        timeout=waiting.PATIENCE,
    )
    assert parent.returncode == -signal_number
    assert has_ended(int(parent.stdout))
    assert not list((tmp_path / "kept").glob("*.spans"))


def test_a_document_that_cannot_be_cached_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = chat(tmp_path, ["one", "two"])
    folder = tmp_path / "kept"
    folder.mkdir()
    cache_file = DocumentCache(folder).path_of(path)
    cache_file.mkdir()  # a folder in place of the cache file
    actual = read_one(path, True, BigDocuments(0, folder))
    assert actual.failed is not None
    assert "cannot be stored" in actual.failed
    assert [entry.name for entry in folder.iterdir()] == [cache_file.name]


def test_a_document_is_read_in_this_process_without_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = chat(tmp_path, ["one", "two"])
    (tmp_path / "file").write_text("")
    big = BigDocuments(0, tmp_path / "file" / "kept")
    check_same_report(read_one(path, True, big), read_one(path, True))
    monkeypatch.setattr("mast_tui.traces.scan.document_process.READ_HERE_AT_MOST", 10)
    failed = read_one(path, True, big).failed
    assert failed is not None
    assert "too big to read without storing it" in failed


def test_a_changed_document_is_read_again(tmp_path: Path, big: BigDocuments) -> None:
    read_one(chat(tmp_path, ["one"]), True, big)
    path = chat(tmp_path, ["one", "two"])
    (trace,) = read_one(path, True, big).traces
    assert trace.text(1) == "two"


def test_the_least_recently_used_document_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for use_time, name in enumerate(("first", "second", "third")):
        cache_file = tmp_path / f"{name}.spans"
        cache_file.write_bytes(bytes(100))
        os.utime(cache_file, ns=(use_time, use_time))
    monkeypatch.setattr("mast_tui.traces.scan.document_cache.MOST_BYTES", 250)
    DocumentCache(tmp_path).make_room()
    assert {cache_file.stem for cache_file in tmp_path.iterdir()} == {"second", "third"}


def test_opening_counts_as_use_and_partial_files_are_removed(
    tmp_path: Path, big: BigDocuments
) -> None:
    path = chat(tmp_path, ["one"])
    read_one(path, True, big)
    documents = DocumentCache(tmp_path / "kept")
    cache_file = documents.path_of(path)
    os.utime(cache_file, ns=(1, 1))
    documents.open(path)
    assert cache_file.stat().st_mtime_ns > 1
    old = documents.folder / "a.spans.1.part"
    new = documents.folder / "b.spans.2.part"
    old.write_bytes(b"")
    new.write_bytes(b"")
    os.utime(old, ns=(1, 1))
    documents.make_room()
    assert not old.exists()
    assert new.exists()

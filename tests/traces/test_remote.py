"""Traces named by URL: fetched once, and read as local files."""

from __future__ import annotations

import io
import json
import os
import pickle
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.errors import MastError
from mast_tui.traces.io.named_paths import paths_of
from mast_tui.traces.io.private_files import remove_least_used
from mast_tui.traces.io.regular_files import is_folder, read_beside
from mast_tui.traces.io.remote import RemotePath, fetch_all, trace_path
from mast_tui.traces.library import read_again, read_fully, scan
from mast_tui.traces.scan.folder import entries_under
from mast_tui.traces.search.file_search import FileToSearch, files_to_search
from tests.traces.s3_server import S3Server, s3_server


def run_of(task: str) -> bytes:
    messages = [{"role": "user", "content": task}, {"role": "assistant", "content": "Done."}]
    return json.dumps({"messages": messages}).encode()


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mast_tui.traces.io.remote._copies_folder", lambda: tmp_path / "fetched")


@pytest.fixture
def store() -> Iterator[str]:
    """Write two runs and other files to the store in memory; yield the URL of their folder."""
    url = f"memory://{uuid4().hex}"
    files = fsspec.filesystem("memory")
    contents = {
        "a.json": run_of("first"),
        "sub/b.json": run_of("second"),
        "sub/outcomes.csv": b"trace,outcome\nb.json,failed\n",
        "sub/notes.md": b"# nothing",
        ".hidden/c.json": run_of("third"),
    }
    for name, data in contents.items():
        files.pipe_file(f"{url}/{name}", data)
    yield url
    files.rm(url, recursive=True)


def read_traces(paths: list[Path]) -> list[tuple[str, str]]:
    """Return the path and the first text of each trace under paths."""
    actual = []
    for report in scan(paths):
        assert report.failed is None, report.failed
        for trace in report.traces:
            read_fully(trace)
            actual.append((str(trace.path), trace.text(0)))
    return actual


names = st.text("abcXY-_.~ %:é", min_size=1, max_size=8).filter(
    lambda word: word.strip(".") != "" and "::" not in word and not word.endswith(":")
)


@given(st.sampled_from(["s3", "gs", "memory", "https"]), st.lists(names, min_size=1, max_size=4))
def test_a_url_is_recognised(scheme: str, names: list[str]) -> None:
    plain = f"{scheme}://{'/'.join(names)}"
    for url in (plain, f"zip://runs/a.json::{plain}", f"tar://x::zip://y.tar::{plain}"):
        path = trace_path(url)
        assert str(path) == url
        assert str(path / "b" / "c") == str(trace_path(str(path / "b" / "c")))
        assert (path / "b").parent == path
        assert (path / "b" / "c").relative_to(path).as_posix() == "b/c"
        assert path.absolute() == path
        assert pickle.loads(pickle.dumps(path)) == path
        assert str(pickle.loads(pickle.dumps(path))) == url


def test_a_local_path_is_no_url() -> None:
    assert trace_path("runs/a.json") == Path("runs/a.json")
    assert not isinstance(trace_path("s3:/bucket"), RemotePath)
    member_url = f"zip://runs::{Path('runs.zip').absolute()}"
    assert str(trace_path("zip://runs::runs.zip")) == member_url


def test_a_store_is_a_folder(store: str) -> None:
    assert read_traces([trace_path(store)]) == [
        (f"{store}/a.json", "first"),
        (f"{store}/sub/b.json", "second"),
    ]
    reports = {report.path.name: report for report in scan([trace_path(store)])}
    assert reports["b.json"].traces[0].meta.outcome.value == "failed"
    assert (reports["notes.md"].skipped, reports[".hidden"].skipped) == (
        "document",
        "hidden folder",
    )
    path = trace_path(f"{store}/sub/b.json")
    assert (path.is_file(), path.is_dir(), is_folder(path.parent)) == (True, False, True)
    assert read_again(path, ()).traces[0].identity.trace_id
    files = files_to_search([trace_path(store)])
    searched_paths = [str(file.unit.path) for file in files if isinstance(file, FileToSearch)]
    assert searched_paths == [f"{store}/a.json", f"{store}/sub/b.json"]


def test_a_missing_url_is_an_error(store: str) -> None:
    missing = trace_path(f"{store}/none.json")
    (report,) = scan([missing])
    assert report.failed == "no such file or folder"
    assert read_beside(missing) is None
    (report,) = scan([trace_path("nothing://there/a.json")])
    assert "nothing" in (report.failed or "")
    with pytest.raises(FileNotFoundError):
        missing.stat()


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_to_import(_: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("mast_tui.traces.io.remote.import_module", fail_to_import)
    (report,) = scan([trace_path("s3://bucket/runs")])
    assert "pip install 'mast-tui[remote]' s3fs" in (report.failed or "")


def test_a_file_is_fetched_once_for_each_state(store: str, tmp_path: Path) -> None:
    url = f"{store}/a.json"
    read_traces([trace_path(url)])
    copies = set((tmp_path / "fetched").glob("*/*"))
    read_traces([trace_path(url)])
    assert set((tmp_path / "fetched").glob("*/*")) == copies
    fsspec.filesystem("memory").pipe_file(url, run_of("changed"))
    assert read_traces([trace_path(url)]) == [(url, "changed")]


def test_a_text_comes_from_the_state_that_was_read(store: str, tmp_path: Path) -> None:
    url = f"{store}/a.jsonl"
    lines = b"".join(json.dumps({"role": "user", "content": f"{n}"}).encode() + b"\n" for n in "ab")
    fsspec.filesystem("memory").pipe_file(url, lines)
    ((trace,),) = [report.traces for report in scan([trace_path(url)])]
    read_fully(trace)
    fsspec.filesystem("memory").pipe_file(url, b"{}")
    assert trace.text(1) == "b"


def test_several_files_are_fetched_ahead(store: str, tmp_path: Path) -> None:
    fetch_all(
        [trace_path(f"{store}/{name}") for name in ("a.json", "sub/b.json", "none.json", "sub")]
    )
    assert read_traces([trace_path(store)])
    assert len([*(tmp_path / "fetched").glob("*/*")]) == 3, "two runs, and outcomes.csv"


def test_the_least_recently_used_copy_is_removed_first(tmp_path: Path) -> None:
    copies = []
    for number in range(4):
        copy = tmp_path / "kept" / str(number) / "file"
        copy.parent.mkdir(parents=True)
        copy.write_bytes(b"x" * 10)
        os.utime(copy, ns=(number, 0))
        copies.append(copy)
    remove_least_used(copies, 20)
    assert [copy.exists() for copy in copies] == [False, False, True, True]


def test_interrupted_downloads_are_removed_and_running_ones_count(tmp_path: Path) -> None:
    folder = tmp_path / "kept" / "ab"
    folder.mkdir(parents=True)
    for name in ("copy", "copy.running.part", "copy.left.part"):
        (folder / name).write_bytes(b"x" * 10)
    os.utime(folder / "copy.left.part", (time.time() - 3600, time.time() - 3600))
    remove_least_used(folder.iterdir(), 20)
    assert sorted(path.name for path in folder.iterdir()) == ["copy", "copy.running.part"]
    remove_least_used(folder.iterdir(), 19)
    assert [path.name for path in folder.iterdir()] == ["copy.running.part"]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_archives_are_folders(tmp_path: Path, store: str, kind: str) -> None:
    archive_data = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(archive_data, "w") as archive:
            archive.writestr("runs/x.json", run_of("packed"))
    else:
        with tarfile.open(fileobj=archive_data, mode="w:gz") as tar:
            member = tarfile.TarInfo("runs/x.json")
            member.size = len(run_of("packed"))
            tar.addfile(member, io.BytesIO(run_of("packed")))
    name = "runs.zip" if kind == "zip" else "runs.tar.gz"
    (tmp_path / name).write_bytes(archive_data.getvalue())
    fsspec.filesystem("memory").pipe_file(f"{store}/{name}", archive_data.getvalue())
    for location in (f"{store}/{name}", tmp_path / name):
        for root in ("", "runs", "runs/x.json"):
            actual = read_traces([trace_path(f"{kind}://{root}::{location}")])
            assert actual == [(f"{kind}://runs/x.json::{location}", "packed")]


def test_a_table_is_a_folder_of_its_rows(tmp_path: Path, store: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    ids = [f"r{number}" for number in range(40)] + ["r1", None, "run/x.py"]
    table = pyarrow.table(
        {"id": ids, "content": [run_of(f"row {n}") for n in range(43)], "model": ["m"] * 43}
    )
    table_path = tmp_path / "runs.parquet"
    parquet.write_table(table, table_path, row_group_size=25)
    fsspec.filesystem("memory").pipe_file(f"{store}/t/runs.parquet", table_path.read_bytes())
    for location in (str(table_path), f"{store}/t"):
        ((folder),) = paths_of(location)
        actual = read_traces([folder])
        assert {text for _, text in actual} == {f"row {number}" for number in range(43)}
        texts = {path.removeprefix("parquet://").split("::")[0]: text for path, text in actual}
        assert (texts["r1"], texts["r1~2"], texts["row-42"]) == ("row 1", "row 40", "row 41")
        assert texts["run/x.py"] == "row 42"
    messages_path = tmp_path / "messages.parquet"
    parquet.write_table(table.append_column("role", [["user"] * 43]), messages_path)
    assert [*paths_of(str(messages_path))] == [messages_path], "the messages of one conversation"


def test_a_url_can_be_a_list_or_a_pattern(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    list_text = f"\ufeff# runs\n{store}/sub/*.json\n\nlocal.json\n"
    Path("list.txt").write_text(list_text)
    assert [*map(str, paths_of("@list.txt"))] == [f"{store}/sub/b.json", "local.json"]
    fsspec.filesystem("memory").pipe_file(f"{store}/list", b"x.json\r\n")
    assert [*map(str, paths_of(f"@{store}/list"))] == ["x.json"]
    Path("@own").touch()
    assert [*paths_of("@own")] == [Path("@own")]
    for argument, reason in ((f"{store}/*.none", "nothing matches"), ("@none.txt", "no such file")):
        with pytest.raises(MastError, match=reason):
            [*paths_of(argument)]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"y.json\n")))
    assert [*map(str, paths_of("@-"))] == ["y.json"]


def test_a_list_that_contains_itself_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_text("@own.txt\n")
    with pytest.raises(MastError, match=r"@own\.txt: the list names itself"):
        [*paths_of("@own.txt")]
    Path("a.txt").write_text("x.json\n@./b.txt\n")
    Path("b.txt").write_text("@a.txt\n")
    with pytest.raises(MastError, match=r"names itself .*a\.txt -> .*b\.txt -> .*a\.txt"):
        [*paths_of("@a.txt")]
    Path("twice.txt").write_text("@plain.txt\n@plain.txt\n")
    Path("plain.txt").write_text("x.json\n")
    assert [*map(str, paths_of("@twice.txt"))] == ["x.json", "x.json"]
    for number in range(30):
        Path(f"{number}.txt").write_text(f"@{number + 1}.txt\n@{number + 1}.txt\n")
    with pytest.raises(MastError, match="up to 20 deep"):
        [*paths_of("@0.txt")]
    Path("many.txt").write_text("@plain.txt\n" * 1001)
    with pytest.raises(MastError, match="1000 in all"):
        [*paths_of("@many.txt")]


def test_a_folder_that_cannot_be_listed_is_an_error(
    monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("Access Denied")

    with monkeypatch.context() as patched:
        patched.setattr("fsspec.implementations.memory.MemoryFileSystem.find", refuse)
        (entry,) = entries_under(trace_path(store))
    assert "Access Denied" in (entry.failed or "")
    assert "credentials" in (entry.failed or "")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """Run a server with six runs in a bucket."""
    pytest.importorskip("s3fs")
    with s3_server() as server:
        monkeypatch.setitem(fsspec.config.conf, "s3", server.options)
        for number in range(6):
            server.objects[f"bucket/runs/{number % 2}/{number}.json"] = run_of(f"run {number}")
        yield server


def test_object_storage_is_listed_once_and_each_object_fetched_once(s3: S3Server) -> None:
    urls = sorted(f"s3://bucket/runs/{number % 2}/{number}.json" for number in range(6))
    actual = read_traces([trace_path("s3://bucket/runs")])
    assert [path for path, _ in actual] == urls
    objects = [request for request in s3.requests if ".json" in request]
    assert len(objects) == len(set(objects)) == len(urls), s3.requests
    s3.requests.clear()
    assert read_traces([trace_path("s3://bucket/runs")]) == actual
    assert not [request for request in s3.requests if ".json" in request], "they are cached"
    s3.objects |= {f"bucket/more/{number}.json": run_of("more") for number in range(8)}
    paths = [trace_path(f"s3://bucket/more/{number}.json") for number in range(8)]
    assert len(read_traces(paths)) == len(paths)
    assert not any(request.startswith("HEAD /bucket/more/") for request in s3.requests), s3.requests


def test_slow_and_failing_reads_are_tried_again(s3: S3Server) -> None:
    s3.failures += ["busy", "cut", "slow"]
    actual = read_traces([trace_path(f"s3://bucket/runs/{n % 2}/{n}.json") for n in range(6)])
    assert [text for _, text in actual] == [f"run {number}" for number in range(6)]
    assert not s3.failures


def test_a_refusal_of_object_storage_is_an_error(s3: S3Server) -> None:
    s3.failures += ["refused"] * 20
    (report,) = scan([trace_path("s3://bucket/runs/0/0.json")])
    assert report.failed is not None
    assert "set up credentials for s3" in report.failed
    (report,) = scan([trace_path("s3://bucket/runs/none.json")])
    assert report.failed == "no such file or folder"


@pytest.fixture
def web(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """Return the server as a web server, with short waits between requests."""
    monkeypatch.setattr("mast_tui.traces.io.remote._RETRY_SECONDS", 0.0)
    monkeypatch.setattr("mast_tui.traces.io.remote._SILENCE_SECONDS", 0.3)
    return s3


def test_files_of_a_web_server_are_read(web: S3Server) -> None:
    url = f"http://127.0.0.1:{web.server_port}/bucket/runs/0/0.json"
    (report,) = scan([trace_path(url)])
    assert (report.failed, report.problems) == (None, ()), "a missing outcomes.csv is no problem"
    assert read_traces([trace_path(url)]) == [(url, "run 0")]
    assert len([request for request in web.requests if request == "GET /bucket/runs/0/0.json"]) == 1
    for ranges in (True, False):
        web.ranges = ranges
        assert trace_path(url).beginning(5) == run_of("run 0")[:5]  # type: ignore[attr-defined]


def test_requests_to_a_web_server_are_repeated(web: S3Server) -> None:
    url = f"http://127.0.0.1:{web.server_port}/bucket/runs/0/0.json"
    web.failures += ["slow", "cut"]
    assert read_traces([trace_path(url)]) == [(url, "run 0")]
    assert not web.failures


def test_a_refusal_of_a_web_server_is_an_error(web: S3Server) -> None:
    folder_url = f"http://127.0.0.1:{web.server_port}/bucket/runs"
    (report,) = scan([trace_path(f"{folder_url}/none.json")])
    assert report.failed == "no such file or folder"
    web.failures += ["refused"] * 20
    (report,) = scan([trace_path(f"{folder_url}/0/2.json")])
    assert "set up credentials for http" in (report.failed or "")
    web.failures[:] = ["cut"] * 20
    (report,) = scan([trace_path(f"{folder_url}/0/4.json")])
    assert "run the same command again" in (report.failed or "")

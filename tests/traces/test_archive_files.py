"""Archives at a URL: limits of their members and of the cache."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from mast_tui.traces.io.remote import trace_path
from mast_tui.traces.library import scan

MB = 1 << 20
GOOD = json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode()


@pytest.fixture(autouse=True)
def _small_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = "mast_tui.traces.io.archive_files"
    monkeypatch.setattr("mast_tui.traces.io.remote._copies_folder", lambda: tmp_path / "fetched")
    monkeypatch.setattr(f"{limits}.MOST_MEMBER_BYTES", 2 * MB)
    monkeypatch.setattr(f"{limits}.MOST_BYTES", 4 * MB)
    monkeypatch.setattr(f"{limits}.MOST_MEMBERS", 10)
    monkeypatch.setattr(f"{limits}._HEADER_BYTES", MB)


def archive_of(kind: str, members: Mapping[str, bytes]) -> bytes:
    """Return an archive; ``tar.gz`` is a compressed tar."""
    data = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return data.getvalue()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(data.getvalue()) if kind == "tar.gz" else data.getvalue()


def failures_by_name(url: str) -> dict[str, str]:
    """Return the reason why a file was not read, or an empty text, by the name of the file."""
    return {report.path.name: report.failed or "" for report in scan([trace_path(url)])}


def cached_bytes(tmp_path: Path) -> int:
    """Return the number of bytes in the cache."""
    return sum(path.stat().st_size for path in (tmp_path / "fetched").glob("*/*"))


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_a_member_over_the_limit_is_a_problem_and_skipped(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"runs.{kind}"
    path.write_bytes(archive_of(kind, {"bomb.json": b"A" * (3 * MB), "good.json": GOOD}))
    actual = failures_by_name(f"{kind[:3]}://::{path}")
    assert actual["bomb.json"] == "it contains more than 2 MB when unpacked; unpack it first"
    assert actual["good.json"] == ""
    assert cached_bytes(tmp_path) == len(GOOD)


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_an_archive_over_a_limit_is_refused(tmp_path: Path, kind: str) -> None:
    big = tmp_path / f"big.{kind}"
    big.write_bytes(archive_of(kind, {f"{n}.json": b"A" * (2 * MB - 1) for n in range(3)}))
    many = tmp_path / f"many.{kind}"
    many.write_bytes(archive_of(kind, {f"{n}.json": GOOD for n in range(11)}))
    (reason,) = failures_by_name(f"{kind[:3]}://::{big}").values()
    assert reason == "the archive contains more than 4 MB when unpacked; unpack it first"
    (reason,) = failures_by_name(f"{kind[:3]}://::{many}").values()
    assert reason == "the archive has more than 10 members; unpack it first"
    assert cached_bytes(tmp_path) == 0


@pytest.mark.parametrize("outer", ["zip", "tar", "tar.gz"])
@pytest.mark.parametrize("inner", ["zip", "tar", "tar.gz"])
def test_nested_archives_obey_the_limits(tmp_path: Path, outer: str, inner: str) -> None:
    inner_archive = archive_of(inner, {"bomb.json": b"A" * (3 * MB), "good.json": GOOD})
    if inner == "tar":  # a tar is as big as its members
        inner_archive = archive_of(inner, {"good.json": GOOD})
    outer_archive = archive_of(outer, {f"in.{inner}": inner_archive, "big.zip": b"A" * (3 * MB)})
    url = f"memory://{uuid4().hex}/out.{outer}"
    fsspec.filesystem("memory").pipe_file(url, outer_archive)
    actual = failures_by_name(f"{inner[:3]}://::{outer[:3]}://in.{inner}::{url}")
    assert actual.pop("good.json") == ""
    assert all("more than 2 MB" in reason for reason in actual.values())
    (reason,) = failures_by_name(f"zip://::{outer[:3]}://big.zip::{url}").values()
    assert reason == "the archive in it contains more than 2 MB when unpacked; unpack it first"
    assert cached_bytes(tmp_path) == len(GOOD)


def test_a_member_longer_than_its_stated_size_ends_there(tmp_path: Path) -> None:
    data = archive_of("zip", {"bomb.json": b"A" * (3 * MB)})
    path = tmp_path / "runs.zip"
    path.write_bytes(data.replace((3 * MB).to_bytes(4, "little"), (1000).to_bytes(4, "little")))
    failures_by_name(f"zip://::{path}")
    assert cached_bytes(tmp_path) <= 1000


def test_a_file_bigger_than_the_cache_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mast_tui.traces.io.remote.MOST_BYTES", 2 * MB)
    folder_url = f"memory://{uuid4().hex}"
    fsspec.filesystem("memory").pipe_file(f"{folder_url}/a.json", b"A" * (3 * MB))
    (reason,) = failures_by_name(f"{folder_url}/a.json").values()
    assert "is larger than 2 MB" in reason
    assert cached_bytes(tmp_path) == 0


def test_older_copies_make_room_while_a_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mast_tui.traces.io.remote.MOST_BYTES", 6 * MB)
    monkeypatch.setattr("mast_tui.traces.io.remote._SWEEP_BYTES", MB)
    folder_url = f"memory://{uuid4().hex}"
    files = fsspec.filesystem("memory")
    max_cached = 0
    for number, size in enumerate((2, 2, 5)):
        files.pipe_file(f"{folder_url}/{number}.json", GOOD + b" " * (size * MB))
        monkeypatch.setattr(type(files), "blocksize", MB)
        failures = failures_by_name(f"{folder_url}/{number}.json")
        assert failures == {f"{number}.json": ""}
        max_cached = max(max_cached, cached_bytes(tmp_path))
    assert max_cached <= 6 * MB
    assert cached_bytes(tmp_path) == len(GOOD) + 5 * MB


def test_a_download_that_grows_over_the_limit_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server states no size."""
    monkeypatch.setattr("mast_tui.traces.io.remote.MOST_BYTES", 2 * MB)
    files = fsspec.filesystem("memory")
    folder_url = f"memory://{uuid4().hex}"
    files.pipe_file(f"{folder_url}/a.json", b"A" * (3 * MB))
    info = type(files).info

    def without_size(self: object, path: str, **options: object) -> dict[str, object]:
        return {**info(self, path, **options), "size": None}

    monkeypatch.setattr(type(files), "info", without_size)
    (reason,) = failures_by_name(f"{folder_url}/a.json").values()
    assert "is larger than 2 MB" in reason
    assert cached_bytes(tmp_path) == 0

"""Zip archives: whole, cut off and hostile."""

from __future__ import annotations

import contextlib
import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.io import archive
from mast_tui.traces.io.archive import Archive, UnreadableMember, is_archive
from tests.traces.zips import DEFLATED, STORED, ZSTANDARD, Part, archive_of

METHODS = (STORED, DEFLATED, ZSTANDARD)
TEXT = b'{"text": "' + b"What a person says. " * 400 + b'"}'


def open_archive(data: bytes) -> Archive:
    return Archive(io.BytesIO(data))


def read_error(data: bytes, name: str = "a.json") -> str:
    with pytest.raises(UnreadableMember) as error:
        open_archive(data).read(name)
    return str(error.value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data_descriptors", [False, True])
def test_members_are_read_as_they_were_written(method: int, data_descriptors: bool) -> None:
    data = archive_of(
        Part("a.json", TEXT, method),
        Part("samples/größe.json", b"", method),
        data_descriptors=data_descriptors,
    )
    actual = open_archive(data)
    assert is_archive(data)
    assert actual.names == ["a.json", "samples/größe.json"]
    assert actual.read("a.json") == TEXT
    assert actual.read("samples/größe.json") == b""
    assert not actual.problems


def test_archives_of_the_standard_library_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zip_file:
        zip_file.comment = b"a comment that holds PK\x05\x06"
        with zip_file.open("wide.json", "w", force_zip64=True) as member:
            member.write(TEXT)
        zip_file.writestr("b.json", TEXT[::-1])
    with path.open("rb") as file:
        actual = Archive(file)
        assert [actual.read(name) for name in actual.names] == [TEXT, TEXT[::-1]]


def test_the_last_version_of_a_member_is_read() -> None:
    actual = open_archive(
        archive_of(Part("a.json", b"old"), Part("b", b""), Part("a.json", b"new"))
    )
    assert actual.names == ["a.json", "b"]
    assert actual.read("a.json") == b"new"


@pytest.mark.parametrize(
    ("method", "data_descriptors"),
    [(STORED, False), (DEFLATED, False), (ZSTANDARD, False), (DEFLATED, True), (ZSTANDARD, True)],
)
def test_members_are_found_without_the_directory(method: int, data_descriptors: bool) -> None:
    parts = [Part(f"{number}.json", TEXT + str(number).encode(), method) for number in range(3)]
    actual = open_archive(archive_of(*parts, directory=False, data_descriptors=data_descriptors))
    assert "no directory" in actual.problems[0].message
    assert len(actual.problems) == 1
    assert [actual.read(name) for name in actual.names] == [part.content for part in parts]


@pytest.mark.parametrize("eighth", range(1, 8))
def test_an_archive_that_is_cut_off_keeps_its_intact_members(eighth: int) -> None:
    parts = [Part(f"{number}.json", bytes(range(256)) * 8, STORED) for number in range(8)]
    data = archive_of(*parts)
    actual = open_archive(data[: len(data) * eighth // 8])
    assert len(actual.names) in (eighth - 1, eighth)
    assert all(actual.read(name) == parts[0].content for name in actual.names)
    assert actual.problems


def test_a_damaged_directory_is_not_needed() -> None:
    data = bytearray(archive_of(Part("a.json", TEXT), Part("b.json", TEXT)))
    second = data.rindex(b"PK\x01\x02")
    data[second : second + 4] = b"????"
    actual = open_archive(bytes(data))
    assert "no directory" in actual.problems[0].message
    assert actual.names == ["a.json", "b.json"]


def test_a_directory_beyond_the_file_is_not_needed() -> None:
    data = archive_of(Part("a.json", TEXT))
    end = data.rindex(b"PK\x05\x06")
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, 1 << 63, 1)
    damaged = data[:end] + locator + data[end : end + 16] + b"\xff" * 4 + data[end + 20 :]
    actual = open_archive(damaged)
    assert "no directory" in actual.problems[0].message
    assert actual.read("a.json") == TEXT


@pytest.mark.parametrize(
    "name", ["../a.json", "samples/../../a.json", "/etc/a.json", "C:\\a.json", "..\\a.json", "\\a"]
)
def test_members_with_paths_that_leave_the_archive_are_left_out(name: str) -> None:
    actual = open_archive(archive_of(Part("a.json", b"1"), Part(name, b"2"), Part("b..json", b"3")))
    assert actual.names == ["a.json", "b..json"]
    (problem,) = actual.problems
    assert repr(name) in problem.message
    assert problem.place == "member 1"


def test_a_member_with_a_false_header_is_refused() -> None:
    assert "bigger than the archive says" in read_error(
        archive_of(Part("a.json", TEXT, stated_size=10))
    )
    assert "cut off" in read_error(archive_of(Part("a.json", TEXT, stated_size=len(TEXT) + 1)))
    assert "checksum" in read_error(archive_of(Part("a.json", TEXT, stated_checksum=7)))
    assert "header" in read_error(archive_of(Part("a.json", TEXT, offset=3)))


@pytest.mark.parametrize("flag", [0x1, 0x40])
def test_encrypted_members_are_refused(flag: int) -> None:
    data = archive_of(Part("a.json", TEXT, flags=flag), Part("b.json", TEXT))
    assert read_error(data) == "it is encrypted"
    assert open_archive(data).read("b.json") == TEXT


def test_an_unknown_compression_is_refused() -> None:
    assert "unknown compression method (12)" in read_error(
        archive_of(Part("a.json", TEXT, method=12))
    )


@pytest.mark.parametrize("method", [DEFLATED, ZSTANDARD])
def test_damaged_data_is_a_problem(method: int) -> None:
    data = bytearray(archive_of(Part("a.json", TEXT, method)))
    begin = data.index(b"a.json") + len("a.json")
    data[begin : begin + 12] = b"\xff" * 12
    assert "damaged" in read_error(bytes(data))


@pytest.mark.slow
@pytest.mark.parametrize("method", [DEFLATED, ZSTANDARD])
@pytest.mark.parametrize("directory", [True, False])
def test_a_zip_bomb_is_stopped(method: int, directory: bool) -> None:
    bomb = Part("a.json", bytes(40 << 20), method, stated_size=100 if directory else None)
    data = archive_of(bomb, directory=directory, data_descriptors=not directory)
    tracemalloc.start()
    try:
        actual = Archive(io.BytesIO(data), most_member_bytes=2 << 20, most_bytes=64 << 20)
        with pytest.raises(UnreadableMember, match="bigger than"):
            actual.read("a.json")
        assert tracemalloc.get_traced_memory()[1] < 36 << 20
    finally:
        tracemalloc.stop()


def test_a_zip_bomb_with_its_size_in_the_header_is_not_opened() -> None:
    data = archive_of(Part("a.json", b"", stated_size=(256 << 20) + 1))
    assert read_error(data) == "it is bigger than 256 MB"


def test_the_limit_holds_for_all_members_together() -> None:
    parts = [Part(f"{number}", bytes(1 << 20)) for number in range(4)]
    actual = Archive(io.BytesIO(archive_of(*parts)), most_bytes=3 << 20)
    for number in range(3):
        actual.read(str(number))
    with pytest.raises(UnreadableMember, match="more than 3 MB"):
        actual.read("3")


def test_searching_the_end_of_a_zip_bomb_is_bounded() -> None:
    parts = [Part(f"{number}", bytes(1 << 20)) for number in range(4)]
    data = archive_of(*parts, directory=False, data_descriptors=True)
    actual = Archive(io.BytesIO(data), most_bytes=2 << 20)
    assert actual.names == ["0", "1"]
    assert actual.problems[-1].place == "2"


def test_members_beyond_the_limit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 3)
    actual = open_archive(archive_of(*(Part(f"{number}", b"x") for number in range(5))))
    assert actual.names == ["0", "1", "2"]
    assert "more than 3 members" in actual.problems[0].message


@given(st.data())
def test_only_documented_errors_are_raised(data: st.DataObject) -> None:
    parts = [
        Part(f"s/{number}.json", TEXT[: 40 * number], METHODS[number % 3]) for number in range(4)
    ]
    damaged = bytearray(archive_of(*parts, data_descriptors=data.draw(st.booleans())))
    for _ in range(data.draw(st.integers(0, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    actual = open_archive(bytes(damaged[:cut]))
    for name in actual.names:
        with contextlib.suppress(UnreadableMember):
            assert isinstance(actual.read(name), bytes)

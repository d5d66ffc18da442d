"""Zip archives: whole, cut off, and made to do harm."""

from __future__ import annotations

import contextlib
import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.traces.io import archive
from mast_tui.traces.io.archive import Archive, UnreadableMember, is_archive
from tests.traces.zips import DEFLATED, STORED, ZSTANDARD, Part, archive_of

METHODS = (STORED, DEFLATED, ZSTANDARD)
TEXT = b'{"text": "' + b"What a person says. " * 400 + b'"}'


def opened(data: bytes) -> Archive:
    return Archive(io.BytesIO(data))


def why_unreadable(data: bytes, name: str = "a.json") -> str:
    with pytest.raises(UnreadableMember) as caught:
        opened(data).read(name)
    return str(caught.value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sizes_follow", [False, True])
def test_members_are_read_as_they_were_written(method: int, sizes_follow: bool) -> None:
    data = archive_of(
        Part("a.json", TEXT, method),
        Part("samples/größe.json", b"", method),
        sizes_follow=sizes_follow,
    )
    found = opened(data)
    assert is_archive(data)
    assert found.names == ["a.json", "samples/größe.json"]
    assert found.read("a.json") == TEXT
    assert found.read("samples/größe.json") == b""
    assert not found.problems
    assert not found.rescued


def test_what_the_standard_library_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        written.comment = b"a comment that holds PK\x05\x06"
        with written.open("wide.json", "w", force_zip64=True) as member:
            member.write(TEXT)
        written.writestr("b.json", TEXT[::-1])
    with path.open("rb") as file:
        found = Archive(file)
        assert [found.read(name) for name in found.names] == [TEXT, TEXT[::-1]]


def test_a_member_that_was_written_again_counts_as_it_is_now() -> None:
    found = opened(archive_of(Part("a.json", b"old"), Part("b", b""), Part("a.json", b"new")))
    assert found.names == ["a.json", "b"]
    assert found.read("a.json") == b"new"


@pytest.mark.parametrize(
    ("method", "sizes_follow"),
    [(STORED, False), (DEFLATED, False), (ZSTANDARD, False), (DEFLATED, True), (ZSTANDARD, True)],
)
def test_members_are_found_without_the_directory(method: int, sizes_follow: bool) -> None:
    parts = [Part(f"{number}.json", TEXT + str(number).encode(), method) for number in range(3)]
    found = opened(archive_of(*parts, directory=False, sizes_follow=sizes_follow))
    assert found.rescued
    assert len(found.problems) == 1
    assert [found.read(name) for name in found.names] == [part.content for part in parts]


@pytest.mark.parametrize("eighth", range(1, 8))
def test_of_an_archive_that_is_cut_off_the_intact_members_are_read(eighth: int) -> None:
    parts = [Part(f"{number}.json", bytes(range(256)) * 8, STORED) for number in range(8)]
    data = archive_of(*parts)
    found = opened(data[: len(data) * eighth // 8])
    assert len(found.names) in (eighth - 1, eighth)
    assert all(found.read(name) == parts[0].content for name in found.names)
    assert found.problems


def test_a_damaged_directory_is_done_without() -> None:
    data = bytearray(archive_of(Part("a.json", TEXT), Part("b.json", TEXT)))
    second = data.rindex(b"PK\x01\x02")
    data[second : second + 4] = b"????"
    found = opened(bytes(data))
    assert found.rescued
    assert found.names == ["a.json", "b.json"]


def test_a_directory_that_lies_beyond_the_file_is_done_without() -> None:
    data = archive_of(Part("a.json", TEXT))
    end = data.rindex(b"PK\x05\x06")
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, 1 << 63, 1)
    lying = data[:end] + locator + data[end : end + 16] + b"\xff" * 4 + data[end + 20 :]
    found = opened(lying)
    assert found.rescued
    assert found.read("a.json") == TEXT


@pytest.mark.parametrize(
    "name", ["../a.json", "samples/../../a.json", "/etc/a.json", "C:\\a.json", "..\\a.json", "\\a"]
)
def test_names_that_lead_out_are_left_out_and_the_others_read(name: str) -> None:
    found = opened(archive_of(Part("a.json", b"1"), Part(name, b"2"), Part("b..json", b"3")))
    assert found.names == ["a.json", "b..json"]
    (problem,) = found.problems
    assert repr(name) in problem.message
    assert problem.place == "member 1"


def test_a_member_is_refused_where_the_archive_lies_about_it() -> None:
    assert "bigger than the archive says" in why_unreadable(
        archive_of(Part("a.json", TEXT, says_bytes=10))
    )
    assert "cut off" in why_unreadable(archive_of(Part("a.json", TEXT, says_bytes=len(TEXT) + 1)))
    assert "checksum" in why_unreadable(archive_of(Part("a.json", TEXT, says_checksum=7)))
    assert "header" in why_unreadable(archive_of(Part("a.json", TEXT, offset=3)))


@pytest.mark.parametrize("flag", [0x1, 0x40])
def test_encrypted_members_are_refused(flag: int) -> None:
    data = archive_of(Part("a.json", TEXT, flags=flag), Part("b.json", TEXT))
    assert why_unreadable(data) == "it is encrypted"
    assert opened(data).read("b.json") == TEXT


def test_an_unknown_packing_is_refused() -> None:
    assert "unknown way (12)" in why_unreadable(archive_of(Part("a.json", TEXT, method=12)))


@pytest.mark.parametrize("method", [DEFLATED, ZSTANDARD])
def test_damaged_data_is_told(method: int) -> None:
    data = bytearray(archive_of(Part("a.json", TEXT, method)))
    begin = data.index(b"a.json") + len("a.json")
    data[begin : begin + 12] = b"\xff" * 12
    assert "damaged" in why_unreadable(bytes(data))


@pytest.mark.slow
@pytest.mark.parametrize("method", [DEFLATED, ZSTANDARD])
@pytest.mark.parametrize("directory", [True, False])
def test_a_bomb_does_not_go_off(method: int, directory: bool) -> None:
    bomb = Part("a.json", bytes(40 << 20), method, says_bytes=100 if directory else None)
    data = archive_of(bomb, directory=directory, sizes_follow=not directory)
    tracemalloc.start()
    try:
        found = Archive(io.BytesIO(data), most_member_bytes=2 << 20, most_bytes=64 << 20)
        with pytest.raises(UnreadableMember, match="bigger than"):
            found.read("a.json")
        assert tracemalloc.get_traced_memory()[1] < 36 << 20
    finally:
        tracemalloc.stop()


def test_an_announced_bomb_is_not_even_opened() -> None:
    data = archive_of(Part("a.json", b"", says_bytes=(256 << 20) + 1))
    assert why_unreadable(data) == "it is bigger than 256 MB"


def test_many_members_do_not_add_up_to_a_bomb() -> None:
    parts = [Part(f"{number}", bytes(1 << 20)) for number in range(4)]
    found = Archive(io.BytesIO(archive_of(*parts)), most_bytes=3 << 20)
    for number in range(3):
        found.read(str(number))
    with pytest.raises(UnreadableMember, match="more than 3 MB"):
        found.read("3")


def test_finding_the_end_of_a_bomb_has_an_end() -> None:
    parts = [Part(f"{number}", bytes(1 << 20)) for number in range(4)]
    data = archive_of(*parts, directory=False, sizes_follow=True)
    found = Archive(io.BytesIO(data), most_bytes=2 << 20)
    assert found.names == ["0", "1"]
    assert found.problems[-1].place == "2"


def test_members_beyond_the_limit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 3)
    found = opened(archive_of(*(Part(f"{number}", b"x") for number in range(5))))
    assert found.names == ["0", "1", "2"]
    assert "more than 3 members" in found.problems[0].message


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_nothing_is_raised_but_what_is_promised(data: st.DataObject) -> None:
    parts = [
        Part(f"s/{number}.json", TEXT[: 40 * number], METHODS[number % 3]) for number in range(4)
    ]
    raw = bytearray(archive_of(*parts, sizes_follow=data.draw(st.booleans())))
    for _change in range(data.draw(st.integers(0, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    found = opened(bytes(raw[:cut]))
    for name in found.names:
        with contextlib.suppress(UnreadableMember):
            assert isinstance(found.read(name), bytes)

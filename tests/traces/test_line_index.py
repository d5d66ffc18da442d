"""The index of lines of a file that is read in slices."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.index.line_index import LineIndex, MemoryContent
from mast_tui.traces.io.source import Source
from tests.traces.counting_content import CountingContent

contents = st.lists(
    st.one_of(st.binary(max_size=30), st.sampled_from([b"\n", b"\r\n", b"\n\n", b"x" * 200]))
).map(b"".join)


@given(contents, st.integers(1, 50))
def test_all_lines_are_found_in_slices_of_any_size(data: bytes, slice_bytes: int) -> None:
    index = LineIndex(MemoryContent(data), len(data))
    lines: list[bytes] = []
    while not index.complete:
        actual = index.advance(slice_bytes)
        assert actual, "a slice without a line"
        lines += actual
    assert b"\n".join(lines) == data.removesuffix(b"\n")
    assert len(index) == len(lines)
    assert index.ends_open == (data[-1:] not in (b"", b"\n"))
    for number, line in enumerate(lines, 1):
        assert index.read(number, number) == line


@given(contents, st.data())
def test_consecutive_lines_are_read_unchanged(data: bytes, choices: st.DataObject) -> None:
    index = LineIndex(MemoryContent(data), len(data))
    lines = index.advance(1 << 20)
    if not lines:
        return
    first = choices.draw(st.integers(1, len(lines)))
    last = choices.draw(st.integers(first, len(lines)))
    assert index.read(first, last) == b"\n".join(lines[first - 1 : last])


@given(contents, st.lists(st.integers(0, 1 << 20), max_size=30))
def test_lines_are_the_same_in_any_order_of_reading(data: bytes, offsets: list[int]) -> None:
    index = LineIndex(MemoryContent(data), len(data))
    lines = index.advance(1 << 20)
    numbers = [offset % len(lines) + 1 for offset in offsets if lines]
    assert [index.read(n, n) for n in numbers] == [lines[n - 1] for n in numbers]


def test_lines_read_in_order_are_read_together() -> None:
    data = b"".join(b"line %d\n" % number for number in range(1, 50_001))
    content = CountingContent(data)
    index = LineIndex(content, len(data))
    index.advance(len(data))
    content.reads = 0
    assert [index.read(n, n) for n in range(1, 1001)] == data.split(b"\n")[:1000]
    assert content.reads < 10
    content.reads = 0
    for number in range(15_000, 50_001, 17_000):
        assert index.read(number, number) == b"line %d" % number
    assert content.reads == 3


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    path = tmp_path / "odd.txt"
    path.write_bytes("a\u2028b\u0085c\rd\x0be\nf".encode())
    assert len(LineIndex.of_source(Source(path)).advance(100)) == 2


def test_a_slice_stops_soon_after_its_size(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(b"0123456789\n" * 100_000)
    index = LineIndex.of_source(Source(path))
    index.advance(11_000)
    assert 11_000 <= index.done < 20_000


def test_a_slice_is_small_with_longer_lines() -> None:
    data = (b"x" * 9_999 + b"\n") * 1_000
    index = LineIndex(MemoryContent(data), len(data))
    line_counts = []
    while not index.complete:
        line_counts.append(len(index.advance(1_000)))
    assert line_counts == [1] * 1_000


@pytest.mark.parametrize("slice_bytes", [1_000, 32_000, 1 << 20])
def test_reads_are_few_and_bounded_for_any_size_of_slices(slice_bytes: int) -> None:
    content = CountingContent(b"0123456789\n" * 200_000)
    index = LineIndex(content, 2_200_000)
    while not index.complete:
        index.advance(slice_bytes)
    assert len(index) == 200_000
    assert content.reads == 9
    assert content.longest <= 256 * 1024


@given(contents, st.integers(1, 50))
def test_only_returned_lines_are_counted(data: bytes, slice_bytes: int) -> None:
    index = LineIndex(MemoryContent(data), len(data))
    done = 0
    while not index.complete:
        lines = index.advance(slice_bytes)
        done += sum(len(line) + 1 for line in lines)
        assert index.done == done - index.ends_open
        assert index.read(1, len(index)) == data[: index.done].removesuffix(b"\n")


class FailingContent(MemoryContent):
    """Content of which only the beginning can be read while it is broken."""

    broken = True

    def read(self, offset: int, length: int, /) -> bytes:
        if offset and self.broken:
            raise OSError("gone")
        return super().read(offset, length)


def test_lines_read_before_a_failure_are_returned_first() -> None:
    content = FailingContent(b"0123456789\n" * 100_000)
    index = LineIndex(content, 1_100_000)
    first = index.advance(1 << 20)
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            index.advance(1 << 20)
    assert 23_000 < len(first) == len(index) < 24_000
    content.broken = False
    assert len(index.advance(1 << 20)) + len(first) == len(index) == 100_000


def test_appended_lines_are_not_read_after_opening(tmp_path: Path) -> None:
    path = tmp_path / "live.txt"
    path.write_bytes(b"one\ntwo\n")
    source = Source(path)
    index = LineIndex.of_source(source)
    with path.open("ab") as file:
        file.write(b"three\n")
    assert list(index.advance(1 << 20)) == [b"one", b"two"]
    assert index.complete


def test_a_truncated_file_is_not_read_further(tmp_path: Path) -> None:
    path = tmp_path / "cut.txt"
    path.write_bytes(b"one\ntwo\nthree\n")
    source = Source(path)
    index = LineIndex.of_source(source)
    path.write_bytes(b"one\ntw")
    with pytest.raises(OSError, match="cut"):
        index.advance(1 << 20)
    assert source.opened.change_reason() == "the file has been cut"


def test_a_file_that_has_grown_is_read_to_its_known_size(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"one\ntwo\n" * 20_000)
    source = Source(path)
    index = LineIndex.of_source(source)
    with path.open("ab") as file:
        file.write(b"three\n")
    assert len(index.advance(1 << 20)) == 40_000
    assert index.complete
    assert source.opened.change_reason() is None
    path.write_bytes(b"one\nTWO\n" * 30_000)
    assert source.opened.change_reason() == "the file has changed"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_lines_in_other_encodings_are_found(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "wide.txt"
    path.write_bytes("Ångström\n漢字\n".encode(encoding))
    lines = LineIndex.of_source(Source(path)).advance(1 << 20)
    assert [line.decode("utf-8-sig") for line in lines] == ["Ångström", "漢字"]

"""Compressed files: what is in them, up to a bound that no bomb gets past."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from errno import EFBIG
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from mast_tui.traces.io.regular_files import UnreadableFile, open_regular

MOST_BYTES: Final = 256 << 20
"""The most unpacked bytes of a compressed file in memory."""

_PIECE: Final = 1 << 20
_MARK_BYTES: Final = 8
_MARKS: Final = {
    "zstd": b"\x28\xb5\x2f\xfd",
    "gzip": b"\x1f\x8b",
    "bzip2": b"BZh",
    "xz": b"\xfd7zXZ",
}


class TooBig(UnreadableFile):
    """A compressed file holds more than may be unpacked in memory."""

    def __init__(self, path: Path, most: int) -> None:
        size = f"{most >> 20} MB"
        super().__init__(path, f"holds more than {size} when unpacked; unpack it first", EFBIG)


class Unpacked(NamedTuple):
    """The content of a compressed file; ``broken`` is the reason why it ends early."""

    data: bytes
    broken: str | None


def packing_of(head: bytes) -> str | None:
    """Return the name of the compression of a file with these first bytes; None for none."""
    return next((name for name, mark in _MARKS.items() if head.startswith(mark)), None)


def unpack(path: Path, most: int = MOST_BYTES) -> Unpacked:
    """Return the unpacked content of a compressed file, as far as it is intact.

    Args:
        path: The file.
        most: The most bytes that the content may have.

    Raises:
        TooBig: It holds more than ``most`` bytes.
        OSError: from the file system.
    """
    pieces: list[bytes] = []
    broken = None
    with open_regular(path) as file:
        size = 0
        try:
            for piece in _pieces(file):
                size += len(piece)
                if size > most:
                    raise TooBig(path, most)
                pieces.append(piece)
        except _Broken as error:
            broken = f"the compressed data is broken: {error}"
    return Unpacked(b"".join(pieces), broken)


def beginning(path: Path, length: int) -> bytes:
    """Return the first bytes of the unpacked content of a compressed file, as far as it is intact.

    Args:
        path: The file.
        length: The number of bytes.

    Raises:
        OSError: from the file system.
    """
    data = b""
    with open_regular(path) as file:
        try:
            for piece in _pieces(file):
                data += piece
                if len(data) >= length:
                    break
        except _Broken:
            return data
    return data[:length]


def holds_more_than(path: Path, size: int) -> bool:
    """Return whether a compressed file holds more than ``size`` bytes; no more of it is unpacked.

    Args:
        path: The file.
        size: The number of bytes.
    """
    with open_regular(path) as file, suppress(_Broken):
        for piece in _pieces(file):
            size -= len(piece)
            if size < 0:
                return True
    return False


class _Broken(Exception):
    """The compressed data cannot be read on; the message says why."""


class _Reads(Protocol):
    def read1(self, size: int, /) -> bytes: ...


def _pieces(file: FileIO) -> Iterator[bytes]:
    head = file.read(_MARK_BYTES)
    file.seek(0)
    stream, broken = _unpacker(packing_of(head), file)
    try:
        while piece := stream.read1(_PIECE):
            yield piece
    except (EOFError, broken) as error:
        raise _Broken(str(error)) from error
    except OSError as error:
        if error.errno is not None:  # of the file system, not of the data
            raise
        raise _Broken(str(error)) from error


def _unpacker(packing: str | None, file: FileIO) -> tuple[_Reads, type[Exception]]:
    """Return the unpacker of a file, and the error that it raises where the data is broken."""
    match packing:
        case "zstd":
            import zstandard

            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            return reader, zstandard.ZstdError
        case "gzip":
            import gzip
            import zlib

            return gzip.GzipFile(fileobj=file), zlib.error
        case "bzip2":
            import bz2

            return bz2.BZ2File(file), EOFError
        case _:
            import lzma

            return lzma.LZMAFile(file), lzma.LZMAError

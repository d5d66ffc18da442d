"""The content of compressed files, up to a limit of its size."""

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
    """An error for a compressed file with more content than may be unpacked in memory."""

    def __init__(self, path: Path, most: int) -> None:
        size = f"{most >> 20} MB"
        super().__init__(path, f"contains more than {size} when unpacked; unpack it first", EFBIG)


class Unpacked(NamedTuple):
    """The content of a compressed file; ``broken`` is the reason why it ends early."""

    data: bytes
    broken: str | None


def packing_of(head: bytes) -> str | None:
    """Return the name of the compression by the first bytes of a file; None for no compression."""
    return next((name for name, mark in _MARKS.items() if head.startswith(mark)), None)


def unpack(path: Path, most: int = MOST_BYTES) -> Unpacked:
    """Return the unpacked content of a compressed file, up to the first damage.

    Args:
        path: The file.
        most: The most bytes of the content.

    Raises:
        TooBig: The content has more than ``most`` bytes.
        OSError: The file cannot be read.
    """
    pieces: list[bytes] = []
    broken = None
    with open_regular(path) as file:
        size = 0
        try:
            for piece in _unpacked_pieces(file):
                size += len(piece)
                if size > most:
                    raise TooBig(path, most)
                pieces.append(piece)
        except _BrokenDataError as error:
            broken = f"the compressed data is broken: {error}"
    return Unpacked(b"".join(pieces), broken)


def beginning(path: Path, length: int) -> bytes:
    """Return the first bytes of a compressed file's unpacked content, up to the first damage.

    Args:
        path: The file.
        length: The number of bytes.

    Raises:
        OSError: The file cannot be read.
    """
    data = bytearray()
    with open_regular(path) as file, suppress(_BrokenDataError):
        for piece in _unpacked_pieces(file):
            data += piece
            if len(data) >= length:
                break
    return bytes(data[:length])


class _BrokenDataError(Exception):
    """An error for damaged compressed data; the message has the reason."""


class _UnpackedReader(Protocol):
    def read1(self, size: int, /) -> bytes: ...


def _unpacked_pieces(file: FileIO) -> Iterator[bytes]:
    """Yield the unpacked content of a compressed file.

    Raises:
        _BrokenDataError: The compressed data is damaged.
    """
    head = file.read(_MARK_BYTES)
    file.seek(0)
    stream, damage_error = _unpacker_of(packing_of(head), file)
    try:
        while piece := stream.read1(_PIECE):
            yield piece
    except (EOFError, damage_error) as error:
        raise _BrokenDataError(str(error)) from error
    except OSError as error:
        if error.errno is not None:  # an error of the file system, not of the data
            raise
        raise _BrokenDataError(str(error)) from error


def _unpacker_of(packing: str | None, file: FileIO) -> tuple[_UnpackedReader, type[Exception]]:
    """Return the unpacker of a file, and its own error for damaged data.

    Damaged data may also raise ``EOFError``, or an ``OSError`` without a number.
    """
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
        case _:  # xz
            import lzma

            return lzma.LZMAFile(file), lzma.LZMAError

"""Archives that a URL names (``zip://``, ``tar://``), within the limits of archives in a folder.

Each archive, nested ones too, is opened here. A member may have ``MOST_MEMBER_BYTES``, all others
together ``MOST_BYTES``, and there may be ``MOST_MEMBERS``. A zip member is never read beyond the
size that its archive states.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from errno import EFBIG, ENOENT
from io import RawIOBase
from typing import IO, Any, Final, Self

from fsspec.callbacks import Callback
from fsspec.compression import compr
from fsspec.core import url_to_fs
from fsspec.implementations.tar import TarFileSystem
from fsspec.implementations.zip import ZipFileSystem
from fsspec.utils import infer_compression

from mast_tui.traces.io.archive import MOST_BYTES, MOST_MEMBER_BYTES, MOST_MEMBERS

_HEADER_BYTES: Final = 64 << 20
"""The most bytes of headers and padding in a tar archive."""

_MOST_AT_ONCE: Final = 32 << 20
"""The longest read. ``zipfile`` and ``tarfile`` would read a directory or header of any size."""


def file_system(address: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Args:
        address: A URL, or a chain of them such as ``zip://a.json::tar://b.zip::s3://bucket/c.tar``.

    Raises:
        OSError: An archive is over a limit (``EFBIG``), or cannot be read.
    """
    first, chained, container = address.partition("::")
    kind, _, name = first.partition("://")
    if not chained or kind not in _KINDS:
        files, path = url_to_fs(address)
        return files, path
    return open_archive(kind, container), name.strip("/")


def open_archive(kind: str, container: str) -> Any:
    """Open an archive as a file system.

    Args:
        kind: ``zip`` or ``tar``; other kinds are opened by fsspec alone.
        container: The file or archive that holds the archive.

    Raises:
        OSError: It is over a limit (``EFBIG``), or cannot be read.
    """
    opens = _KINDS.get(kind)
    if opens is None:
        return url_to_fs(f"{kind}://::{container}")[0]
    files, path = file_system(container)
    info = files.info(path)
    if info["type"] == "directory":
        raise OSError(ENOENT, "no such archive")
    if "::" in container and (info.get("size") or 0) > MOST_MEMBER_BYTES:
        raise too_big("the archive in it", MOST_MEMBER_BYTES)
    return opens(files.open(path, "rb"), path)


def too_big(subject: str, most: int) -> OSError:
    """Return the error of an archive or a file that is over a limit.

    Args:
        subject: The subject of the message.
        most: The limit in bytes.
    """
    return OSError(
        EFBIG, f"{subject} holds more than {most >> 20} MB when unpacked; unpack it first"
    )


class ByteLimit(Callback):  # type: ignore[misc] # fsspec has no types
    """The progress of a download, which ends with an error where it is over a limit."""

    def __init__(self, error: OSError, most: int, written: Callable[[int], None]) -> None:
        """Begin to count.

        Args:
            error: The error that is raised over the limit.
            most: The most bytes that the file may have.
            written: Called with each piece that is written.
        """
        super().__init__()
        self._error = error
        self._most = most
        self._written = written

    def set_size(self, size: int | None) -> None:
        """Refuse a file that is announced as too big."""
        if size is not None and size > self._most:
            raise self._error

    def relative_update(self, inc: int = 1) -> None:
        """Count a piece that was written."""
        self.value += inc
        if self.value > self._most:
            raise self._error
        self._written(inc)

    def absolute_update(self, value: int) -> None:
        """Count what was written from the beginning."""
        self.relative_update(value - self.value)


class _LimitedReader(RawIOBase):
    """An archive's file, in which no place beyond a limit is read or sought."""

    def __init__(self, file: IO[bytes], most: int | None) -> None:
        super().__init__()
        self._file = file
        self._most = most

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position within the limit.

        Args:
            offset: The distance in bytes.
            whence: The start of the distance, as in ``io``.
        """
        if whence == os.SEEK_SET:
            self._check(offset)
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_AT_ONCE:
            raise too_big("a header of the archive", _MOST_AT_ONCE)
        data = self._file.read(_MOST_AT_ONCE if size < 0 else size)
        self._check(self._file.tell())
        return data

    def close(self) -> None:
        self._file.close()
        super().close()

    def __enter__(self) -> Self:
        return self

    def _check(self, offset: int) -> None:
        if self._most is not None and offset > self._most:
            raise too_big("the archive", MOST_BYTES)


class _LimitedTar(TarFileSystem):  # type: ignore[misc] # fsspec has no types
    """A tar archive of which no more than the most members are listed."""

    def _index(self) -> None:
        for number, _ in enumerate(self.tar):
            _check_number(number + 1)
        super()._index()


def _open_zip(file: IO[bytes], _path: str) -> Any:
    files = ZipFileSystem(_LimitedReader(file, None))
    members = files.zip.infolist()
    _check_number(len(members))
    _check_sizes(member.file_size for member in members)
    return files


def _open_tar(file: IO[bytes], path: str) -> Any:
    compression = infer_compression(path)
    unpacked = file if compression is None else compr[compression](file)
    # The end of a big member has to be found before the member is known to be passed over.
    files = _LimitedTar(_LimitedReader(unpacked, MOST_BYTES + _HEADER_BYTES))
    _check_sizes(info["size"] for info, *_ in files.index.values())
    return files


def _check_number(number: int) -> None:
    if number > MOST_MEMBERS:
        message = f"the archive has more than {MOST_MEMBERS} members; unpack it first"
        raise OSError(EFBIG, message)


def _check_sizes(sizes: Iterable[int]) -> None:
    """Refuse an archive whose members together are too big; a too big one is refused alone."""
    if sum(size for size in sizes if size <= MOST_MEMBER_BYTES) > MOST_BYTES:
        raise too_big("the archive", MOST_BYTES)


_KINDS: Final[dict[str, Callable[[IO[bytes], str], Any]]] = {"zip": _open_zip, "tar": _open_tar}

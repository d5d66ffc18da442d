"""Archives in URLs (``zip://``, ``tar://``), with the same limits as archives in a folder.

Each archive, also a nested one, is opened here. Its limits are ``MOST_MEMBER_BYTES`` for a member,
``MOST_BYTES`` for all other members together, and ``MOST_MEMBERS``. A zip member is never read
beyond the size in the archive's directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from errno import EFBIG, ENOENT
from io import RawIOBase
from typing import IO, Any, Final

from fsspec.callbacks import Callback
from fsspec.compression import compr
from fsspec.core import url_to_fs
from fsspec.implementations.tar import TarFileSystem
from fsspec.implementations.zip import ZipFileSystem
from fsspec.utils import infer_compression

from mast_tui.traces.io.archive import MOST_BYTES, MOST_MEMBER_BYTES, MOST_MEMBERS

_HEADER_BYTES: Final = 64 << 20
"""The most bytes of headers and padding in a tar archive."""

_MOST_READ_BYTES: Final = 32 << 20
"""The longest read, because ``zipfile`` and ``tarfile`` would read a header of any size."""


def file_system(address: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Args:
        address: A URL, or a chain such as ``zip://a.json::tar://b.zip::s3://bucket/c.tar``.

    Raises:
        OSError: An archive is over a limit (``EFBIG``), or cannot be read.
    """
    member_url, chained, container = address.partition("::")
    kind, _, member_name = member_url.partition("://")
    if not chained or kind not in _OPENERS:  # fsspec opens these without limits
        files, path = url_to_fs(address)
        return files, path
    return open_archive(kind, container), member_name.strip("/")


def open_archive(kind: str, container: str) -> Any:
    """Open an archive as a file system.

    Args:
        kind: ``zip`` or ``tar``; fsspec opens other kinds without limits.
        container: The URL of the archive, perhaps a chain.

    Raises:
        OSError: The archive is over a limit (``EFBIG``), or cannot be read.
    """
    opener = _OPENERS.get(kind)
    if opener is None:
        return url_to_fs(f"{kind}://::{container}")[0]
    files, path = file_system(container)
    info = files.info(path)
    if info["type"] == "directory":
        raise OSError(ENOENT, "no such archive")
    is_nested = "::" in container  # the archive is a member of an archive
    if is_nested and (info.get("size") or 0) > MOST_MEMBER_BYTES:
        raise too_big("the archive in it", MOST_MEMBER_BYTES)
    return opener(files.open(path, "rb"), path)


def too_big(subject: str, most: int) -> OSError:
    """Return the error of an archive or a file that is over a limit.

    Args:
        subject: The archive or file in the words of the message.
        most: The limit in bytes.
    """
    return OSError(
        EFBIG, f"{subject} contains more than {most >> 20} MB when unpacked; unpack it first"
    )


class ByteLimit(Callback):  # type: ignore[misc] # fsspec has no types
    """A callback of a download, which raises an error if the file is over a limit."""

    def __init__(self, error: OSError, most: int, on_write: Callable[[int], None]) -> None:
        """Create the callback of one download.

        Args:
            error: The error to raise over the limit.
            most: The most bytes of the file.
            on_write: Receives the length of each piece that is written.
        """
        super().__init__()
        self._error = error
        self._most = most
        self._on_write = on_write

    def set_size(self, size: int | None) -> None:
        """Raise the error if the announced size is over the limit."""
        if size is not None and size > self._most:
            raise self._error

    def relative_update(self, inc: int = 1) -> None:
        """Count and report ``inc`` more bytes that were written; raise the error over the limit."""
        self.value += inc
        if self.value > self._most:
            raise self._error
        self._on_write(inc)

    def absolute_update(self, value: int) -> None:
        """Count a piece that was written, from the total of bytes written."""
        self.relative_update(value - self.value)


class _LimitedReader(RawIOBase):
    """A reader of an archive with limits for the offset and each read; None for no offset limit."""

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

        Raises:
            OSError: The position is beyond the limit.
        """
        if whence == os.SEEK_SET:  # ``read`` checks the other positions
            self._check_offset(offset)
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Read bytes; raise ``OSError`` if the size or the new position is over a limit."""
        if size > _MOST_READ_BYTES:
            raise too_big("a header of the archive", _MOST_READ_BYTES)
        data = self._file.read(_MOST_READ_BYTES if size < 0 else size)
        self._check_offset(self._file.tell())
        return data

    def close(self) -> None:
        self._file.close()
        super().close()

    def _check_offset(self, offset: int) -> None:
        if self._most is not None and offset > self._most:
            raise too_big("the archive", MOST_BYTES)


class _LimitedTar(TarFileSystem):  # type: ignore[misc] # fsspec has no types
    """A tar archive that refuses to list more than ``MOST_MEMBERS`` members."""

    def _index(self) -> None:
        for number, _ in enumerate(self.tar):
            _check_number(number + 1)
        super()._index()


def _open_zip(file: IO[bytes], _path: str) -> Any:
    """Open a zip archive; raise ``OSError`` if it is over a limit."""
    files = ZipFileSystem(_LimitedReader(file, None))
    members = files.zip.infolist()
    _check_number(len(members))
    _check_sizes(member.file_size for member in members)
    return files


def _open_tar(file: IO[bytes], path: str) -> Any:
    """Open a tar archive, perhaps compressed; raise ``OSError`` if it is over a limit."""
    compression = infer_compression(path)
    unpacked = file if compression is None else compr[compression](file)
    # ``tarfile`` lists the members by moving past all of them. So the limit is for the whole file,
    # contents and headers.
    files = _LimitedTar(_LimitedReader(unpacked, MOST_BYTES + _HEADER_BYTES))
    _check_sizes(info["size"] for info, *_ in files.index.values())
    return files


def _check_number(number: int) -> None:
    if number > MOST_MEMBERS:
        message = f"the archive has more than {MOST_MEMBERS} members; unpack it first"
        raise OSError(EFBIG, message)


def _check_sizes(sizes: Iterable[int]) -> None:
    """Raise ``OSError`` if all members together are too big.

    Members over their own limit do not count, because they are never read.
    """
    if sum(size for size in sizes if size <= MOST_MEMBER_BYTES) > MOST_BYTES:
        raise too_big("the archive", MOST_BYTES)


_OPENERS: Final[dict[str, Callable[[IO[bytes], str], Any]]] = {"zip": _open_zip, "tar": _open_tar}

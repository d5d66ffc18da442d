"""Zip archives, read member by member in memory, also from damaged archives.

``zipfile`` reads the directory. The members are unpacked here: before Python 3.14 it knows no zstd,
and of a file whose end is missing it reads nothing.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from struct import Struct
from typing import IO, Final, NamedTuple, Protocol

from mast_tui.traces.model import Problem

MOST_MEMBERS: Final = 20_000
"""The most members of an archive that are read."""

MOST_MEMBER_BYTES: Final = 256 << 20
"""The most unpacked bytes of one member."""

MOST_BYTES: Final = 512 << 20
"""The most unpacked bytes of one archive."""

_MOST_DIRECTORY_BYTES: Final = 16 << 20
"""The most bytes that ``zipfile`` reads at once: it keeps all that a directory claims."""

_LOCAL: Final = Struct("<4s5H3I2H")
_LOCAL_MARK: Final = b"PK\x03\x04"
_CENTRAL_MARK: Final = b"PK\x01\x02"
_DESCRIPTOR_MARK: Final = b"PK\x07\x08"
_IN_EXTRA: Final = 0xFFFFFFFF

_ENCRYPTED: Final = 0x1 | 0x40
_SIZES_FOLLOW: Final = 0x8
_UTF8: Final = 0x800
_DEFLATED: Final = 8
_ZSTANDARD: Final = 93

_PIECE: Final = 64 << 10
_FED: Final = {_DEFLATED: 4096, _ZSTANDARD: 512}
"""The packed bytes that are unpacked at once: they make at most 22 MB."""

_LISTED_PROBLEMS: Final = 20
_NO_DIRECTORY: Final = (
    "the archive has no directory, or a damaged one: it is cut off or still being written; its "
    "members were found one by one"
)


class UnreadableMember(ValueError):
    """An error for a member that cannot be unpacked; the message has the reason."""


class _Member(NamedTuple):
    """The location of a member; the sizes are None if only its data has them."""

    name: str
    offset: int
    method: int
    flags: int
    packed_bytes: int | None
    bytes: int | None
    checksum: int | None


class _Unpacks(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class _Bounded:
    """A file that limits the size of a read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.tell = file.tell

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a position.

        Args:
            offset: The distance in bytes.
            whence: The start of the distance, as in ``io``.

        Raises:
            ValueError: The position is before the beginning.
        """
        if whence == 0 and offset < 0:
            raise ValueError(f"no place in a file: {offset}")
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Read some; ``ValueError`` where that is too much."""
        if size > _MOST_DIRECTORY_BYTES:
            raise ValueError(f"too much to read: {size}")
        return self._file.read(_MOST_DIRECTORY_BYTES if size < 0 else size)


def is_archive(head: bytes) -> bool:
    """Return whether a file with this beginning is a zip archive with at least one member."""
    return head.startswith(_LOCAL_MARK)


class Archive:
    """The members of a zip archive by name; nothing is ever written to disk.

    ``names`` are in the order of the archive; of a name that is there twice the later member
    counts, as it does for whoever writes by appending. What is left out (unsafe names, members
    beyond ``MOST_MEMBERS``) is in ``problems``. Where the directory at the end of the file is
    missing or damaged, the members are found by their own headers, as far as these are intact.
    ``OSError`` of the file system comes through.
    """

    def __init__(
        self,
        file: IO[bytes],
        *,
        most_member_bytes: int = MOST_MEMBER_BYTES,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._size = file.seek(0, 2)
        self._most_member_bytes = most_member_bytes
        self._left = most_bytes
        self._left_for_rescue = most_bytes
        self._most_bytes = most_bytes
        self._members: dict[str, _Member] = {}
        directory = self._directory()
        self.rescued = directory is None
        """True if the directory was missing or damaged."""
        if directory is None:
            self.problems.append(Problem("whole file", _NO_DIRECTORY))
            self._add_members(self._members_by_headers())
        else:
            self._add_members(iter(directory))

    @property
    def names(self) -> list[str]:
        """The names of the members, in the order in which they were written."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """Read the whole content of a member.

        Raises:
            UnreadableMember: It is damaged, encrypted, too big, packed in an unknown way or other
                than the directory says.
            KeyError: There is no such member.
        """
        member = self._members[name]
        if member.flags & _ENCRYPTED:
            raise UnreadableMember("it is encrypted")
        too_big = UnreadableMember(f"it is bigger than {self._most_member_bytes >> 20} MB")
        if member.bytes is not None and member.bytes > self._most_member_bytes:
            raise too_big
        local = self._member_at(member.offset)
        if local is None:
            raise UnreadableMember("its header is damaged")
        begin = local[1]
        end = self._size if member.packed_bytes is None else begin + member.packed_bytes
        if end > self._size:
            raise UnreadableMember("it is cut off")
        pieces: list[bytes] = []
        size = 0
        for piece, _end in self._unpack(member.method, begin, end):
            size += len(piece)
            self._left -= len(piece)
            if size > self._most_member_bytes:
                raise too_big
            if member.bytes is not None and size > member.bytes:
                raise UnreadableMember("it is bigger than the archive says")
            if self._left < 0:
                raise UnreadableMember(
                    f"the archive holds more than {self._most_bytes >> 20} MB when unpacked"
                )
            pieces.append(piece)
        data = b"".join(pieces)
        if member.bytes is not None and size != member.bytes:
            raise UnreadableMember("it is cut off")
        if member.checksum is not None and zlib.crc32(data) != member.checksum:
            raise UnreadableMember("its checksum is wrong")
        return data

    def _add_members(self, members: Iterator[_Member]) -> None:
        """Record the members with safe names, up to the limit; the others are problems."""
        unsafe = 0
        for number, member in enumerate(members):
            if number == MOST_MEMBERS:
                message = f"there are more than {MOST_MEMBERS} members; the rest was left out"
                self.problems.append(Problem("whole file", message))
                break
            if _is_safe(member.name):
                self._members[member.name] = member
                continue
            unsafe += 1
            if unsafe <= _LISTED_PROBLEMS:
                message = f"its name {member.name[:100]!r} leads out of the archive; left out"
                self.problems.append(Problem(f"member {number}", message))

    def _bytes_at(self, offset: int, length: int) -> bytes:
        if not 0 <= offset <= self._size:  # a header may claim any number
            return b""
        self._file.seek(offset)
        return self._file.read(length)

    def _directory(self) -> list[_Member] | None:
        """Return the members that the directory at the end of the file lists; None without one."""
        try:
            with zipfile.ZipFile(_Bounded(self._file)) as archive:
                return [
                    _Member(
                        *(
                            entry.filename,
                            entry.header_offset,
                            entry.compress_type,
                            entry.flag_bits,
                        ),
                        *(entry.compress_size, entry.file_size, entry.CRC),
                    )
                    for entry in archive.infolist()
                ]
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, struct.error):
            return None

    def _members_by_headers(self) -> Iterator[_Member]:
        """Yield the members by their own headers, up to the first that is not intact."""
        offset = 0
        while (local := self._member_at(offset)) is not None:
            member, begin = local
            if member.packed_bytes is not None:
                offset = begin + member.packed_bytes
            elif (end := self._end_of_stream(member, begin)) is not None:
                offset = self._after_descriptor(end)
            else:
                location = member.name if _is_safe(member.name) else "whole file"
                message = "it is cut off, or its end cannot be found; nothing after it was read"
                self.problems.append(Problem(location, message))
                return
            if offset > self._size:
                location = member.name if _is_safe(member.name) else "whole file"
                self.problems.append(Problem(location, "it is cut off; left out"))
                return
            yield member

    def _member_at(self, offset: int) -> tuple[_Member, int] | None:
        """Return the member whose own header is at ``offset``, and where its data begins."""
        head = self._bytes_at(offset, _LOCAL.size)
        if len(head) < _LOCAL.size or not head.startswith(_LOCAL_MARK):
            return None
        _mark, _needs, flags, method, _time, _date, checksum, packed, plain, name, extra = (
            _LOCAL.unpack(head)
        )
        raw = self._bytes_at(offset + _LOCAL.size, name + extra)
        if len(raw) < name + extra:
            return None
        try:
            member_name = raw[:name].decode("utf-8" if flags & _UTF8 else "cp437")
        except UnicodeDecodeError:
            member_name = raw[:name].decode("utf-8", "replace")
        unknown = packed == _IN_EXTRA or (flags & _SIZES_FOLLOW and packed == 0)
        facts = (None, None, None) if unknown else (packed, plain, checksum)
        return _Member(
            member_name, offset, method, flags, *facts
        ), offset + _LOCAL.size + name + extra

    def _end_of_stream(self, member: _Member, begin: int) -> int | None:
        """Return the end of the packed data from ``begin`` on; None if it is not marked."""
        if member.method not in _FED or member.flags & _ENCRYPTED:
            return None
        end = begin
        try:
            for piece, packed_end in self._unpack(member.method, begin, self._size):
                end = packed_end
                self._left_for_rescue -= len(piece)
                if self._left_for_rescue < 0:
                    return None
        except UnreadableMember:
            return None
        return end

    def _after_descriptor(self, offset: int) -> int:
        """Return the offset after the sizes that may follow a member's data."""
        for length in (0, 16, 24, 12, 20):
            follows = self._bytes_at(offset, length + 4)
            if length in (16, 24) and not follows.startswith(_DESCRIPTOR_MARK):
                continue
            if follows[length:] in (_LOCAL_MARK, _CENTRAL_MARK, b""):
                return min(offset + length, self._size)
        return self._size

    def _unpack(self, method: int, begin: int, end: int) -> Iterator[tuple[bytes, int]]:
        """Unpack the data between two offsets.

        Yields:
            Some of the content, and the offset up to which that was packed.
        """
        if method == zipfile.ZIP_STORED:
            for offset in range(begin, end, _PIECE):
                yield self._bytes_at(offset, min(_PIECE, end - offset)), min(offset + _PIECE, end)
            return
        if method not in _FED:
            raise UnreadableMember(f"it is packed in an unknown way ({method})")
        unpacks, broken = _unpacker(method)
        fed = _FED[method]
        for offset in range(begin, end, _PIECE):
            read = self._bytes_at(offset, min(_PIECE, end - offset))
            for position in range(0, len(read), fed):
                try:
                    plain = unpacks.decompress(read[position : position + fed])
                except broken as error:
                    raise UnreadableMember(f"its data is damaged: {error}") from error
                packed_end = offset + min(position + fed, len(read)) - len(unpacks.unused_data)
                yield plain, packed_end
                if unpacks.eof:
                    return
        raise UnreadableMember("its data is damaged: it ends before its time")


def _unpacker(method: int) -> tuple[_Unpacks, type[Exception]]:
    if method == _DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS), zlib.error
    import zstandard  # few archives are packed so

    return zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj(), zstandard.ZstdError


def _is_safe(name: str) -> bool:
    """Return whether a member's name stays inside the archive on every system."""
    if not name or "\0" in name or name[0] in "/\\" or name[1:2] == ":":
        return False
    return ".." not in name.replace("\\", "/").split("/")

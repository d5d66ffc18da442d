"""Zip archives, also damaged ones, read member by member in memory.

``zipfile`` reads the directory. This module unpacks the members, because ``zipfile`` has no zstd
before Python 3.14, and reads nothing from a file without its end.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
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
"""The most bytes of a directory, which ``zipfile`` reads into memory."""

_LOCAL: Final = Struct("<4s5H3I2H")
_LOCAL_MARK: Final = b"PK\x03\x04"
_DIRECTORY_MARK: Final = b"PK\x01\x02"
_DESCRIPTOR_MARK: Final = b"PK\x07\x08"
_DESCRIPTOR_BYTES: Final = (0, 16, 24, 12, 20)
"""The possible lengths of a descriptor: none, with or without its mark, with 32 or 64 bits."""

_MARKED_DESCRIPTOR_BYTES: Final = (16, 24)
_SIZE_IN_EXTRA_FIELD: Final = 0xFFFFFFFF

_ENCRYPTED: Final = 0x1 | 0x40
_SIZES_FOLLOW: Final = 0x8
_UTF8: Final = 0x800
_DEFLATED: Final = 8
_ZSTANDARD: Final = 93

_PIECE_BYTES: Final = 64 << 10
_FEED_BYTES: Final = {_DEFLATED: 4096, _ZSTANDARD: 512}
"""The packed bytes that are unpacked in one step, by method; their content has at most 22 MB."""

_MOST_WINDOW_BYTES: Final = 1 << 27
"""The most memory of the zstd unpacker."""

_MOST_NAME_PROBLEMS: Final = 20
_NO_DIRECTORY: Final = (
    "the archive has no directory, or a damaged one: it is cut off or still being written; its "
    "members were found one by one"
)


class UnreadableMember(ValueError):
    """An error for a member that cannot be unpacked; the message has the reason."""


class _Member(NamedTuple):
    """The facts of a member; None for sizes and checksum that its header lacks."""

    name: str
    offset: int
    method: int
    flags: int
    packed_bytes: int | None
    unpacked_bytes: int | None
    checksum: int | None


class _Header(NamedTuple):
    """A member by its own header, and the offset of its packed data."""

    member: _Member
    data_begin: int


class _Piece(NamedTuple):
    """A piece of a member's content, and the offset after its packed data."""

    content: bytes
    packed_end: int


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class _BoundedFile:
    """A file with a limit for the size of a read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.tell = file.tell

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a position, as in other files.

        Args:
            offset: The distance in bytes.
            whence: The start of the distance, as in ``io``.

        Raises:
            ValueError: The position is before the beginning.
        """
        if whence == 0 and offset < 0:  # a damaged directory may have such an offset
            raise ValueError(f"no place in a file: {offset}")
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Read ``size`` bytes, or up to the limit if ``size`` is negative.

        Raises:
            ValueError: ``size`` is over the limit.
        """
        if size > _MOST_DIRECTORY_BYTES:
            raise ValueError(f"too much to read: {size}")
        return self._file.read(_MOST_DIRECTORY_BYTES if size < 0 else size)


def is_archive(head: bytes) -> bool:
    """Return whether a file with this beginning is a zip archive with at least one member."""
    return head.startswith(_LOCAL_MARK)


class Archive:
    """The members of a zip archive by name; nothing is ever written to disk.

    - Of two members with the same name the later one counts, because programs append new versions.
    - Members with unsafe names and members beyond ``MOST_MEMBERS`` are left out; ``problems`` lists
      them.
    - If the directory at the end of the file is missing or damaged, the members are found by their
      own headers, up to the first damaged header.

    Raises:
        OSError: The file cannot be read.
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
        self._bytes_left = most_bytes
        """The bytes of content that may still be unpacked."""
        self._search_bytes_left = most_bytes
        """The bytes that may still be unpacked in search of the ends of members."""
        self._most_bytes = most_bytes
        self._members: dict[str, _Member] = {}
        directory_members = self._members_in_directory()
        if directory_members is None:
            self.problems.append(Problem("whole file", _NO_DIRECTORY))
            self._add_members(self._members_by_headers())
        else:
            self._add_members(directory_members)

    @property
    def names(self) -> list[str]:
        """The names of the members, in the order in which they were written."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """Read the whole content of a member.

        Raises:
            UnreadableMember: The member is damaged, encrypted, too big, packed in an unknown way or
                different from its facts in the directory.
            KeyError: There is no member with this name.
        """
        member = self._members[name]
        data = b"".join(self._checked_pieces(member, *self._packed_range(member)))
        if member.unpacked_bytes is not None and len(data) != member.unpacked_bytes:
            raise UnreadableMember("it is cut off")
        if member.checksum is not None and zlib.crc32(data) != member.checksum:
            raise UnreadableMember("its checksum is wrong")
        return data

    def _packed_range(self, member: _Member) -> tuple[int, int]:
        """Return the offsets of the beginning and the end of a member's packed data.

        Raises:
            UnreadableMember: The member is encrypted, too big, damaged or cut off.
        """
        if member.flags & _ENCRYPTED:
            raise UnreadableMember("it is encrypted")
        if (member.unpacked_bytes or 0) > self._most_member_bytes:
            raise self._too_big_error()
        header = self._header_at(member.offset)
        if header is None:
            raise UnreadableMember("its header is damaged")
        begin = header.data_begin
        end = self._size if member.packed_bytes is None else begin + member.packed_bytes
        if end > self._size:
            raise UnreadableMember("it is cut off")
        return begin, end

    def _checked_pieces(self, member: _Member, begin: int, end: int) -> Iterator[bytes]:
        """Yield the content of the packed data between two offsets.

        Raises:
            UnreadableMember: The data is damaged, or the content is over a limit.
        """
        size = 0
        for piece in self._unpacked_pieces(member.method, begin, end):
            size += len(piece.content)
            self._bytes_left -= len(piece.content)
            if size > self._most_member_bytes:
                raise self._too_big_error()
            if member.unpacked_bytes is not None and size > member.unpacked_bytes:
                raise UnreadableMember("it is bigger than the archive says")
            if self._bytes_left < 0:
                raise UnreadableMember(
                    f"the archive contains more than {self._most_bytes >> 20} MB when unpacked"
                )
            yield piece.content

    def _too_big_error(self) -> UnreadableMember:
        return UnreadableMember(f"it is bigger than {self._most_member_bytes >> 20} MB")

    def _add_members(self, members: Iterable[_Member]) -> None:
        """Record the members with safe names, up to the limit; report the others as problems."""
        unsafe_count = 0
        for number, member in enumerate(members):
            if number == MOST_MEMBERS:
                message = f"there are more than {MOST_MEMBERS} members; the rest was left out"
                self.problems.append(Problem("whole file", message))
                break
            if _is_safe(member.name):
                self._members[member.name] = member
                continue
            unsafe_count += 1
            if unsafe_count <= _MOST_NAME_PROBLEMS:
                message = f"its name {member.name[:100]!r} points outside the archive; left out"
                self.problems.append(Problem(f"member {number}", message))

    def _read_at(self, offset: int, length: int) -> bytes:
        """Return the bytes at an offset; empty if the offset is outside the file."""
        if not 0 <= offset <= self._size:  # a header may have any number
            return b""
        self._file.seek(offset)
        return self._file.read(length)

    def _members_in_directory(self) -> list[_Member] | None:
        """Return the members in the directory of the archive; None if it is missing or damaged."""
        try:
            with zipfile.ZipFile(_BoundedFile(self._file)) as archive:
                return [
                    _Member(
                        name=entry.filename,
                        offset=entry.header_offset,
                        method=entry.compress_type,
                        flags=entry.flag_bits,
                        packed_bytes=entry.compress_size,
                        unpacked_bytes=entry.file_size,
                        checksum=entry.CRC,
                    )
                    for entry in archive.infolist()
                ]
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, struct.error):
            return None

    def _members_by_headers(self) -> Iterator[_Member]:
        """Yield the members by their own headers, up to the first damaged or cut off member.

        The damaged member becomes a problem.
        """
        offset = 0
        while (header := self._header_at(offset)) is not None:
            member = header.member
            # An unsafe name is not shown in messages.
            location = member.name if _is_safe(member.name) else "whole file"
            # Without a size in the header, the end of the data is found by unpacking it.
            if member.packed_bytes is not None:
                offset = header.data_begin + member.packed_bytes
            else:
                end = self._end_of_packed_data(header)
                if end is None:
                    message = "it is cut off, or its end cannot be found; nothing after it was read"
                    self.problems.append(Problem(location, message))
                    return
                offset = self._end_of_descriptor(end)
            if offset > self._size:
                self.problems.append(Problem(location, "it is cut off; left out"))
                return
            yield member

    def _header_at(self, offset: int) -> _Header | None:
        """Return the header of a member at ``offset``; None if there is no complete header."""
        head = self._read_at(offset, _LOCAL.size)
        if len(head) < _LOCAL.size or not head.startswith(_LOCAL_MARK):
            return None
        _mark, _version, flags, method, _time, _date, *numbers = _LOCAL.unpack(head)
        checksum, packed_bytes, unpacked_bytes, name_length, extra_length = numbers
        name_and_extra = self._read_at(offset + _LOCAL.size, name_length + extra_length)
        if len(name_and_extra) < name_length + extra_length:
            return None
        encoded_name = name_and_extra[:name_length]
        try:
            name = encoded_name.decode("utf-8" if flags & _UTF8 else "cp437")
        except UnicodeDecodeError:
            name = encoded_name.decode("utf-8", "replace")
        member = _Member(name, offset, method, flags, packed_bytes, unpacked_bytes, checksum)
        sizes_follow = flags & _SIZES_FOLLOW and packed_bytes == 0
        # The sizes are in the extra field or after the data.
        if packed_bytes == _SIZE_IN_EXTRA_FIELD or sizes_follow:
            member = member._replace(packed_bytes=None, unpacked_bytes=None, checksum=None)
        return _Header(member, offset + _LOCAL.size + len(name_and_extra))

    def _end_of_packed_data(self, header: _Header) -> int | None:
        """Return the end of the packed data of a member, found by unpacking it.

        Return None if the data has no mark at its end, is damaged, or is too big.
        """
        member = header.member
        if member.method not in _FEED_BYTES or member.flags & _ENCRYPTED:
            return None
        end = header.data_begin
        try:
            for piece in self._unpacked_pieces(member.method, end, self._size):
                end = piece.packed_end
                self._search_bytes_left -= len(piece.content)
                if self._search_bytes_left < 0:
                    return None
        except UnreadableMember:
            return None
        return end

    def _end_of_descriptor(self, offset: int) -> int:
        """Return the end of a member's data descriptor, an optional record of sizes after its data.

        Each possible length is tried: the next header or the end of the file must follow. If none
        fits, the end of the file is returned.
        """
        for length in _DESCRIPTOR_BYTES:
            data = self._read_at(offset, length + len(_LOCAL_MARK))
            needs_mark = length in _MARKED_DESCRIPTOR_BYTES
            if needs_mark and not data.startswith(_DESCRIPTOR_MARK):
                continue
            if data[length:] in (_LOCAL_MARK, _DIRECTORY_MARK, b""):
                return min(offset + length, self._size)
        return self._size

    def _unpacked_pieces(self, method: int, begin: int, end: int) -> Iterator[_Piece]:
        """Unpack the data between two offsets.

        Raises:
            UnreadableMember: The data is damaged, or packed in an unknown way.
        """
        if method == zipfile.ZIP_STORED:
            for offset in range(begin, end, _PIECE_BYTES):
                piece_end = min(offset + _PIECE_BYTES, end)
                yield _Piece(self._read_at(offset, piece_end - offset), piece_end)
            return
        if method not in _FEED_BYTES:
            raise UnreadableMember(f"unknown compression method ({method})")
        unpacker, damage_error = _unpacker_of(method)
        feed_bytes = _FEED_BYTES[method]  # few, because a few kB may unpack to many MB
        for offset in range(begin, end, _PIECE_BYTES):
            packed = self._read_at(offset, min(_PIECE_BYTES, end - offset))
            for position in range(0, len(packed), feed_bytes):
                try:
                    piece = unpacker.decompress(packed[position : position + feed_bytes])
                except damage_error as error:
                    raise UnreadableMember(f"its data is damaged: {error}") from error
                fed_end = offset + min(position + feed_bytes, len(packed))
                yield _Piece(piece, fed_end - len(unpacker.unused_data))
                if unpacker.eof:
                    return
        raise UnreadableMember("its data is damaged: it ends too early")


def _unpacker_of(method: int) -> tuple[_Unpacker, type[Exception]]:
    """Return the unpacker of a method, and its error for damaged data."""
    if method == _DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS), zlib.error
    import zstandard  # imported here because few archives need it

    unpacker = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES).decompressobj()
    return unpacker, zstandard.ZstdError


def _is_safe(name: str) -> bool:
    """Return whether a member's name stays inside the archive on every system."""
    if not name or "\0" in name or name[0] in "/\\" or name[1:2] == ":":
        return False
    return ".." not in name.replace("\\", "/").split("/")

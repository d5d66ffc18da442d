"""Zip archives, read member by member in memory, whatever state they are in.

Written by hand rather than with ``zipfile`` because that keeps an entry for every member a hostile
directory claims, knows no zstd before Python 3.14, and gives up on a file whose end is missing.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import IO, Final

from mast_tui.traces.io.archive_streams import DamagedData, stream_of
from mast_tui.traces.model import Problem

MOST_MEMBERS: Final = 20_000
"""How many members of an archive are looked at."""

MOST_MEMBER_BYTES: Final = 256 << 20
"""How big one member may be, unpacked."""

MOST_BYTES: Final = 512 << 20
"""How much is unpacked from one archive in all."""

_LOCAL: Final = Struct("<4s5H3I2H")
_FIELD: Final = Struct("<2H")
_CENTRAL: Final = Struct("<4s6H3I5H2I")
_END: Final = Struct("<4s4H2IH")
_END_64_LOCATOR: Final = Struct("<4sIQI")
_END_64: Final = Struct("<4sQ2H2I4Q")
_LOCAL_MARK: Final = b"PK\x03\x04"
_CENTRAL_MARK: Final = b"PK\x01\x02"
_END_MARK: Final = b"PK\x05\x06"
_DESCRIPTOR_MARK: Final = b"PK\x07\x08"
_LONGEST_COMMENT: Final = 65_535
_IN_EXTRA: Final = 0xFFFFFFFF
_ZIP64_FIELD: Final = 1

_ENCRYPTED: Final = 0x1 | 0x40
_SIZES_FOLLOW: Final = 0x8
_UTF8: Final = 0x800
_STORED: Final = 0

_PIECE: Final = 64 << 10
_LISTED_PROBLEMS: Final = 20


class UnreadableMember(ValueError):
    """A member cannot be unpacked; the message says why."""


@dataclass(frozen=True, slots=True)
class _Member:
    """Where a member lies; the sizes are None where only its data tells them."""

    name: str
    offset: int
    method: int
    flags: int
    packed_bytes: int | None
    bytes: int | None
    checksum: int | None


@dataclass(slots=True)
class _Entry:
    """The fields that a local and a central header share."""

    flags: int
    method: int
    checksum: int
    packed_bytes: int
    bytes: int


def is_archive(head: bytes) -> bool:
    """Whether a file that begins so is a zip archive with at least one member."""
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
        self.rescued = False
        """Whether the directory was missing or damaged."""
        self._file = file
        self._size = file.seek(0, 2)
        self._most_member_bytes = most_member_bytes
        self._left = most_bytes
        self._left_for_rescue = most_bytes
        self._most_bytes = most_bytes
        self._members: dict[str, _Member] = {}
        self._unsafe = 0
        try:
            self._take(self._directory())
        except _Damaged as damage:
            self._members.clear()
            self.problems.clear()
            self._unsafe = 0
            self.rescued = True
            self.problems.append(
                Problem("whole file", f"{damage}; its members were found one by one")
            )
            self._take(self._found_one_by_one())

    @property
    def names(self) -> list[str]:
        """The names of the members, in the order in which they were written."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """The whole content of a member.

        Raises ``UnreadableMember`` where it is damaged, encrypted, too big, packed in an unknown
        way or other than the directory says, and ``KeyError`` where there is no such member.
        """
        member = self._members[name]
        if member.flags & _ENCRYPTED:
            raise UnreadableMember("it is encrypted")
        if member.bytes is not None and member.bytes > self._most_member_bytes:
            raise UnreadableMember(f"it is bigger than {self._most_member_bytes >> 20} MB")
        pieces: list[bytes] = []
        size = 0
        for piece in self._pieces(member):
            size += len(piece)
            self._left -= len(piece)
            if size > self._most_member_bytes:
                raise UnreadableMember(f"it is bigger than {self._most_member_bytes >> 20} MB")
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

    def _take(self, members: Iterator[_Member]) -> None:
        for number, member in enumerate(members):
            if number == MOST_MEMBERS:
                message = f"there are more than {MOST_MEMBERS} members; the rest was left out"
                self.problems.append(Problem("whole file", message))
                break
            if _is_safe(member.name):
                self._members[member.name] = member
                continue
            self._unsafe += 1
            if self._unsafe <= _LISTED_PROBLEMS:
                self.problems.append(
                    Problem(
                        f"member {number}",
                        f"its name {member.name[:100]!r} leads out of the archive; left out",
                    )
                )

    def _at(self, offset: int, length: int) -> bytes:
        if not 0 <= offset <= self._size:  # a header may claim any number
            return b""
        self._file.seek(offset)
        return self._file.read(length)

    def _directory(self) -> Iterator[_Member]:
        """The members as the directory at the end of the file lists them."""
        offset, size = self._directory_place()
        end = offset + size
        while offset < end:
            head = self._at(offset, _CENTRAL.size)
            if len(head) < _CENTRAL.size or not head.startswith(_CENTRAL_MARK):
                raise _Damaged("the directory at the end of the archive is damaged")
            fields = _CENTRAL.unpack(head)
            _mark, _by, _needs, flags, method, _time, _date, checksum, packed, plain = fields[:10]
            name_bytes, extra_bytes, comment_bytes, place = *fields[10:13], fields[16]
            rest = self._at(offset + _CENTRAL.size, name_bytes + extra_bytes)
            if len(rest) < name_bytes + extra_bytes:
                raise _Damaged("the directory at the end of the archive is damaged")
            wide = _wide_sizes(rest[name_bytes:], (plain, packed, place))
            plain, packed, place = wide
            yield _Member(
                _name(rest[:name_bytes], flags), place, method, flags, packed, plain, checksum
            )
            offset += _CENTRAL.size + name_bytes + extra_bytes + comment_bytes

    def _directory_place(self) -> tuple[int, int]:
        tail_offset = max(0, self._size - _END.size - _LONGEST_COMMENT)
        tail = self._at(tail_offset, _END.size + _LONGEST_COMMENT)
        found = tail.rfind(_END_MARK)
        if found < 0 or len(tail) - found < _END.size:
            raise _Damaged("the archive has no directory: it is cut off or still being written")
        fields = _END.unpack_from(tail, found)
        count, size, offset = fields[4], fields[5], fields[6]
        at = tail_offset + found
        if _IN_EXTRA in (size, offset) or count == 0xFFFF:
            locator = self._at(max(0, at - _END_64_LOCATOR.size), _END_64_LOCATOR.size)
            if locator.startswith(b"PK\x06\x07"):
                end_64 = self._at(_END_64_LOCATOR.unpack(locator)[2], _END_64.size)
                if len(end_64) < _END_64.size or not end_64.startswith(b"PK\x06\x06"):
                    raise _Damaged("the directory at the end of the archive is damaged")
                size, offset = _END_64.unpack(end_64)[8:10]
        if offset + size > at:
            raise _Damaged("the directory at the end of the archive is damaged")
        return offset, size

    def _found_one_by_one(self) -> Iterator[_Member]:
        """The members as their own headers tell, up to the first that is not intact."""
        offset = 0
        while (found := self._local(offset)) is not None:
            name, entry, begin = found
            sizes_follow = bool(entry.flags & _SIZES_FOLLOW) and entry.packed_bytes == 0
            member = _Member(
                name,
                offset,
                entry.method,
                entry.flags,
                None if sizes_follow else entry.packed_bytes,
                None if sizes_follow else entry.bytes,
                None if sizes_follow else entry.checksum,
            )
            if not sizes_follow:
                offset = begin + entry.packed_bytes
            elif (end := self._end_of_stream(member, begin)) is not None:
                offset = self._after_descriptor(end)
            else:
                place = name if _is_safe(name) else "whole file"
                message = "it is cut off, or its end cannot be found; nothing after it was read"
                self.problems.append(Problem(place, message))
                return
            if offset > self._size:
                place = name if _is_safe(name) else "whole file"
                self.problems.append(Problem(place, "it is cut off; left out"))
                return
            yield member

    def _local(self, offset: int) -> tuple[str, _Entry, int] | None:
        """Name, fields and begin of the data of the member whose header is at ``offset``."""
        head = self._at(offset, _LOCAL.size)
        if len(head) < _LOCAL.size or not head.startswith(_LOCAL_MARK):
            return None
        fields = _LOCAL.unpack(head)
        flags, method, checksum, packed, plain = fields[2], fields[3], *fields[6:9]
        name_bytes, extra_bytes = fields[9:11]
        rest = self._at(offset + _LOCAL.size, name_bytes + extra_bytes)
        if len(rest) < name_bytes + extra_bytes:
            return None
        plain, packed, _place = _wide_sizes(rest[name_bytes:], (plain, packed, 0))
        begin = offset + _LOCAL.size + name_bytes + extra_bytes
        entry = _Entry(flags, method, checksum, packed, plain)
        return _name(rest[:name_bytes], flags), entry, begin

    def _end_of_stream(self, member: _Member, begin: int) -> int | None:
        """Where the packed data that begins at ``begin`` ends by itself; None where it does not."""
        stream = stream_of(member.method)
        if stream is None or member.flags & _ENCRYPTED:
            return None
        offset = begin
        try:
            while read := self._at(offset, _PIECE):
                offset += len(read)
                piece: bytes | memoryview = read
                while piece:
                    self._left_for_rescue -= len(stream.take(piece))
                    if self._left_for_rescue < 0:
                        return None
                    if stream.done:
                        return offset - stream.unused
                    piece = stream.waiting
        except DamagedData:
            return None
        return None

    def _after_descriptor(self, offset: int) -> int:
        """The offset behind the sizes that follow a member's data."""
        for length in (16, 24, 12, 20):
            follows = self._at(offset, length + 4)
            if length in (16, 24) and not follows.startswith(_DESCRIPTOR_MARK):
                continue
            if follows[length:] in (_LOCAL_MARK, _CENTRAL_MARK, b""):
                return min(offset + length, self._size)
        return self._size

    def _pieces(self, member: _Member) -> Iterator[bytes]:
        try:
            yield from self._unpacked(member)
        except DamagedData as error:
            raise UnreadableMember(f"its data is damaged: {error}") from error

    def _unpacked(self, member: _Member) -> Iterator[bytes]:
        found = self._local(member.offset)
        if found is None:
            raise UnreadableMember("its header is damaged")
        begin = found[2]
        end = self._size if member.packed_bytes is None else begin + member.packed_bytes
        if end > self._size:
            raise UnreadableMember("it is cut off")
        stream = None if member.method == _STORED else stream_of(member.method)
        if stream is None and member.method != _STORED:
            raise UnreadableMember(f"it is packed in an unknown way ({member.method})")
        offset = begin
        while offset < end:
            read = self._at(offset, min(_PIECE, end - offset))
            if not read:
                break
            offset += len(read)
            if stream is None:
                yield read
                continue
            piece: bytes | memoryview = read
            while piece and not stream.done:
                yield stream.take(piece)
                piece = stream.waiting
            if stream.done:
                return
        if stream is not None:
            yield stream.take(b"")  # what was held back when the last piece had been taken
            if not stream.done:
                raise DamagedData("it ends before its time")


class _Damaged(Exception):
    """The archive's directory cannot be used; the message says why."""


def _wide_sizes(extra: bytes, sizes: tuple[int, int, int]) -> tuple[int, int, int]:
    """The sizes and the offset, taken from the ZIP64 field where the header has no room."""
    wanted = [number for number, size in enumerate(sizes) if size == _IN_EXTRA]
    at = 0
    while wanted and at + 4 <= len(extra):
        kind, length = _FIELD.unpack_from(extra, at)
        if kind == _ZIP64_FIELD:
            found = list(sizes)
            data = extra[at + 4 : at + 4 + length]
            for place, number in enumerate(wanted):
                value = data[8 * place : 8 * place + 8]
                if len(value) == 8:
                    found[number] = int.from_bytes(value, "little")
            return found[0], found[1], found[2]
        at += 4 + length
    return sizes


def _name(raw: bytes, flags: int) -> str:
    if not flags & _UTF8:
        try:
            return raw.decode("ascii")
        except UnicodeDecodeError:
            return raw.decode("cp437")
    return raw.decode("utf-8", "replace")


def _is_safe(name: str) -> bool:
    """Whether a member's name stays inside the archive on every system."""
    if not name or "\0" in name or name[0] in "/\\" or name[1:2] == ":":
        return False
    return ".." not in name.replace("\\", "/").split("/")

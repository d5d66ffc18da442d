"""What an index file is made of: blocks of columns, each whole or not there.

A block has a few facts as JSON, and behind them columns of numbers and bytes as they lie in
memory. A file is read while another process writes it: a block counts once all of it is there and
its checksums are right.
"""

from __future__ import annotations

import json
import os
import sys
from array import array
from collections.abc import Iterator, Mapping
from struct import Struct
from typing import IO, Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import orjson

_HEAD: Final = Struct("=4sIQII")
"""The mark, how long the facts are, how long the columns, and the checksum of each."""

_MARK: Final = b"MTB2" if sys.byteorder == "little" else b"mtb2"
_BYTES: Final = "B"
_READ_BYTES: Final = 1 << 30
"""How much the system is asked for at once; it gives no more than 2 GB."""

Column: TypeAlias = "array[Any] | bytearray"
"""Numbers of one size, or bytes."""


class Block(NamedTuple):
    """What has come since the block before: facts by name, and columns by name."""

    facts: Mapping[str, Any]
    columns: Mapping[str, Any]


def from_json(data: bytes) -> Any:
    """The value of a line; texts that are no Unicode are read too."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def to_json(value: object) -> bytes:
    """The value on one line."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode()


def write_block(file: IO[bytes], block: Block) -> int:
    """Write the block; tell how many bytes it takes."""
    columns = [
        (name, _BYTES if isinstance(column, bytearray) else column.typecode, memoryview(column))
        for name, column in block.columns.items()
    ]
    facts = to_json((block.facts, [(name, code, data.nbytes) for name, code, data in columns]))
    check = 0
    size = 0
    for _name, _code, data in columns:
        check = crc32(data, check)
        size = size + data.nbytes
    file.write(_HEAD.pack(_MARK, len(facts), size, crc32(facts), check))
    file.write(facts)
    for _name, _code, data in columns:
        file.write(data)
    return _HEAD.size + len(facts) + size


def blocks_in(file: int, end: int | None = None) -> Iterator[Block | None]:
    """Read an index file from its beginning.

    Args:
        file: Its descriptor.
        end: Where its last block ends; None while it is being written.

    Yields:
        Its blocks, and None where the next one is not whole: it may be by the next time.
    """
    offset = 0
    while end is None or offset < end:
        found = block_at(file, offset)
        if found is None:
            yield None
        else:
            offset += found[1]
            yield found[0]


def block_at(file: int, offset: int) -> tuple[Block, int] | None:
    """The block that begins at this byte, and how many it takes; None where none is whole."""
    head = os.pread(file, _HEAD.size, offset)
    if len(head) < _HEAD.size:
        return None
    mark, facts_bytes, data_bytes, facts_check, data_check = _HEAD.unpack(head)
    size = _HEAD.size + facts_bytes + data_bytes
    if mark != _MARK or offset + size > os.fstat(file).st_size:
        return None
    facts = os.pread(file, facts_bytes, offset + _HEAD.size)
    if crc32(facts) != facts_check:
        return None
    known, told = from_json(facts)
    columns: dict[str, Column] = {}
    place = offset + _HEAD.size + facts_bytes
    check = 0
    for name, typecode, length in told:
        column = _room(typecode, length)
        check = _read(file, place, column, check)
        place += length
        columns[name] = column
    return (Block(known, columns), size) if check == data_check else None


def _room(typecode: str, length: int) -> Column:
    """A column of so many bytes."""
    if typecode == _BYTES:
        return bytearray(length)
    one = array(typecode, [0])
    return one * (length // one.itemsize)


def _read(file: int, place: int, column: Column, check: int) -> int:
    """Fill a column from this byte of the file on, where it stays; its checksum on top of
    ``check``. What the file does not have makes that a wrong one."""
    left = memoryview(column).cast(_BYTES)
    while len(left):
        taken = os.preadv(file, [left[:_READ_BYTES]], place)
        if not taken:
            return ~check & 0xFFFFFFFF
        check = crc32(left[:taken], check)
        place = place + taken
        left = left[taken:]
    return check


def joined(column: array[Any], more: array[Any]) -> array[Any]:
    """The column with ``more`` behind it: one of them itself where it can be.

    Others may go on reading the old one.
    """
    if not column and column.itemsize <= more.itemsize:
        return more
    if column.typecode == more.typecode:
        column.extend(more)
        return column
    wide = max(column, more, key=lambda one: one.itemsize).typecode
    return array(wide, column) + array(wide, more)

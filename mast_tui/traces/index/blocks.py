"""The parts of an index file: blocks of columns, each whole or not there.

A block has a few facts as JSON, followed by columns of numbers and bytes as they are in
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
"""The bytes that are read at once; the system reads no more than 2 GB."""

Column: TypeAlias = "array[Any] | bytearray"
"""Numbers of one size, or bytes."""


class Block(NamedTuple):
    """Facts by name and columns by name: all that has come since the block before."""

    facts: Mapping[str, Any]
    columns: Mapping[str, Any]


def from_json(data: bytes) -> Any:
    """Return the value of a line; texts that are no Unicode are read too."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def to_json(value: object) -> bytes:
    """Return the value on one line."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode()


def write_block(file: IO[bytes], block: Block) -> int:
    """Write a block to an index file.

    Args:
        file: The file, open for writing at its end.
        block: The block.

    Returns:
        The number of bytes written.
    """
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
        end: The offset after its last block; None while it is being written.

    Yields:
        Its blocks, and None if the next one is not whole: it may be by the next time.
    """
    offset = 0
    while end is None or offset < end:
        block = block_at(file, offset)
        if block is None:
            yield None
        else:
            offset += block[1]
            yield block[0]


def block_at(file: int, offset: int) -> tuple[Block, int] | None:
    """Read the block that begins at a byte of a file.

    Args:
        file: The descriptor of the file.
        offset: The first byte of the block.

    Returns:
        The block and its length in bytes; None if no whole block is.
    """
    head = os.pread(file, _HEAD.size, offset)
    if len(head) < _HEAD.size:
        return None
    mark, facts_bytes, data_bytes, facts_check, data_check = _HEAD.unpack(head)
    size = _HEAD.size + facts_bytes + data_bytes
    if mark != _MARK or offset + size > os.fstat(file).st_size:
        return None
    facts_json = os.pread(file, facts_bytes, offset + _HEAD.size)
    if crc32(facts_json) != facts_check:
        return None
    facts, column_heads = from_json(facts_json)
    columns: dict[str, Column] = {}
    position = offset + _HEAD.size + facts_bytes
    check = 0
    for name, typecode, length in column_heads:
        column = _empty_column(typecode, length)
        check = _read(file, position, column, check)
        position += length
        columns[name] = column
    return (Block(facts, columns), size) if check == data_check else None


def _empty_column(typecode: str, length: int) -> Column:
    """Return a column of this many bytes, all 0."""
    if typecode == _BYTES:
        return bytearray(length)
    item = array(typecode, [0])
    return item * (length // item.itemsize)


def _read(file: int, position: int, column: Column, checksum: int) -> int:
    """Fill a column with the bytes of a file from a position on.

    Return the checksum of the column on top of ``checksum``, or a wrong one where the file is
    shorter.
    """
    left = memoryview(column).cast(_BYTES)
    while len(left):
        length = os.preadv(file, [left[:_READ_BYTES]], position)
        if not length:
            return ~checksum & 0xFFFFFFFF
        checksum = crc32(left[:length], checksum)
        position = position + length
        left = left[length:]
    return checksum


def extended_column(column: array[Any], more: array[Any]) -> array[Any]:
    """Return a column with ``more`` at its end.

    Args:
        column: The column. It is extended where it has the type of ``more``; others who read it see
            no change in what they have.
        more: The numbers to append.

    Returns:
        One of the two arguments where possible, else a new column.
    """
    if not column and column.itemsize <= more.itemsize:
        return more
    if column.typecode == more.typecode:
        column.extend(more)
        return column
    wide = max(column, more, key=lambda array_: array_.itemsize).typecode
    return array(wide, column) + array(wide, more)

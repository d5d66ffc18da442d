"""The blocks of an index file, each with columns of numbers or bytes.

A block has a few facts as JSON, followed by columns of numbers and bytes as they are in memory. It
is valid if it is complete and its checksums are right.
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
"""The mark, the lengths of the facts and of the columns in bytes, and the checksums of both."""

_MARK: Final = b"MTB2" if sys.byteorder == "little" else b"mtb2"
_BYTES: Final = "B"
_CHECKSUM_BITS: Final = 0xFFFFFFFF
_READ_BYTES: Final = 1 << 30
"""The bytes that are read at once; the system reads no more than 2 GB."""

Column: TypeAlias = "array[Any] | bytearray"
"""The numbers or bytes of a column, all of one size."""


class Block(NamedTuple):
    """The facts and the columns of a part of an index, both by name."""

    facts: Mapping[str, Any]
    columns: Mapping[str, Any]


def from_json(data: bytes) -> Any:
    """Return the value of a line of JSON, also with lone surrogates or huge numbers."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def to_json(value: object) -> bytes:
    """Return a value as JSON on one line."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode()


def write_block(file: IO[bytes], block: Block) -> int:
    """Write a block to an index file, and return the number of bytes written.

    Args:
        file: The file, open for writing at its end.
        block: The block.
    """
    columns = [
        (name, _BYTES if isinstance(column, bytearray) else column.typecode, memoryview(column))
        for name, column in block.columns.items()
    ]
    column_heads = [(name, typecode, data.nbytes) for name, typecode, data in columns]
    facts = to_json((block.facts, column_heads))
    checksum = 0
    size = 0
    for _name, _typecode, data in columns:
        checksum = crc32(data, checksum)
        size += data.nbytes
    file.write(_HEAD.pack(_MARK, len(facts), size, crc32(facts), checksum))
    file.write(facts)
    for _name, _typecode, data in columns:
        file.write(data)
    return _HEAD.size + len(facts) + size


def blocks_in(file: int, end: int) -> Iterator[Block]:
    """Yield the blocks of an index file from its beginning, up to the first damaged one.

    Args:
        file: The descriptor of the file.
        end: The offset after the last block.
    """
    offset = 0
    while offset < end:
        block_and_size = block_at(file, offset)
        if block_and_size is None:
            return
        block, size = block_and_size
        offset += size
        yield block


def block_at(file: int, offset: int) -> tuple[Block, int] | None:
    """Read the block at an offset in a file.

    Args:
        file: The descriptor of the file.
        offset: The first byte of the block.

    Returns:
        The block and its length in bytes; None if there is no complete block.
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
    checksum = 0
    for name, typecode, length in column_heads:
        column = _empty_column(typecode, length)
        checksum = _fill_column(file, position, column, checksum)
        position += length
        columns[name] = column
    return (Block(facts, columns), size) if checksum == data_check else None


def _empty_column(typecode: str, length: int) -> Column:
    """Return a column of ``length`` bytes, all 0."""
    if typecode == _BYTES:
        return bytearray(length)
    item = array(typecode, [0])
    return item * (length // item.itemsize)


def _fill_column(file: int, position: int, column: Column, checksum: int) -> int:
    """Fill a column from a file, and return the checksum with this column added.

    If the file ends before the column is full, the returned checksum is wrong.
    """
    unfilled = memoryview(column).cast(_BYTES)
    while len(unfilled):
        length = os.preadv(file, [unfilled[:_READ_BYTES]], position)
        if not length:
            return ~checksum & _CHECKSUM_BITS  # every bit inverted, so that it is wrong
        checksum = crc32(unfilled[:length], checksum)
        position += length
        unfilled = unfilled[length:]
    return checksum


def extended_column(column: array[Any], tail: array[Any]) -> array[Any]:
    """Return a column with ``tail`` at its end.

    Args:
        column: The column. If it has the type of ``tail``, it is extended in place.
        tail: The numbers to append.

    Returns:
        ``tail`` itself for an empty column that is not wider, ``column`` itself for equal types,
        else a new column of the wider type.
    """
    if not column and column.itemsize <= tail.itemsize:
        return tail
    if column.typecode == tail.typecode:
        column.extend(tail)
        return column
    wider_type = (column if column.itemsize >= tail.itemsize else tail).typecode
    return array(wider_type, column) + array(wider_type, tail)

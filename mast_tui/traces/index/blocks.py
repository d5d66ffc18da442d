"""What an index file is made of: blocks of columns, each whole or not there.

A block has a few facts as JSON, and behind them columns of numbers and bytes as they lie in
memory. A file is read while another process writes it: a block counts once all of it is there and
its checksum is right.
"""

from __future__ import annotations

import json
import os
import sys
from array import array
from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import orjson

_HEAD: Final = Struct("=4sIQI")
"""The mark, how long the facts are, how long the columns, and the checksum of both."""

_MARK: Final = b"MTB1" if sys.byteorder == "little" else b"mtb1"

Column: TypeAlias = "array[Any]"
"""Numbers of one size, or bytes as an array of ``B``."""


class Block(NamedTuple):
    """What has come since the block before: facts by name, and columns by name."""

    facts: Mapping[str, Any]
    columns: Mapping[str, Column]


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


def block_to_bytes(block: Block) -> bytes:
    """The block as it lies in a file."""
    columns = [(name, column.typecode, column.tobytes()) for name, column in block.columns.items()]
    told = [(name, typecode, len(data)) for name, typecode, data in columns]
    facts = to_json((block.facts, told))
    data = b"".join(data for _name, _typecode, data in columns)
    check = crc32(data, crc32(facts))
    return b"".join((_HEAD.pack(_MARK, len(facts), len(data), check), facts, data))


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
    mark, facts_bytes, data_bytes, check = _HEAD.unpack(head)
    size = _HEAD.size + facts_bytes + data_bytes
    if mark != _MARK or offset + size > os.fstat(file).st_size:
        return None
    facts = os.pread(file, facts_bytes, offset + _HEAD.size)
    data = os.pread(file, data_bytes, offset + _HEAD.size + facts_bytes)
    if len(data) < data_bytes or crc32(data, crc32(facts)) != check:
        return None
    known, told = from_json(facts)
    columns, begin, whole = {}, 0, memoryview(data)
    for name, typecode, length in told:
        column: Column = array(typecode)
        column.frombytes(whole[begin : begin + length])
        columns[name] = column
        begin += length
    return Block(known, columns), size


def joined(column: Column, more: Column) -> Column:
    """The column with ``more`` behind it: itself where it has room for such numbers.

    Others may go on reading the old one.
    """
    if column.typecode == more.typecode:
        column.extend(more)
        return column
    wide = max(column, more, key=lambda one: one.itemsize).typecode
    return array(wide, column) + array(wide, more)

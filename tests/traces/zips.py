"""Zip archives with arbitrary headers."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import zstandard

STORED = 0
DEFLATED = 8
ZSTANDARD = 93


@dataclass(frozen=True)
class Part:
    """A member: its content, and the fields of its header; those that are None are correct."""

    name: str
    content: bytes
    method: int = DEFLATED
    flags: int = 0
    stated_size: int | None = None
    stated_checksum: int | None = None
    offset: int | None = None


def compressed(content: bytes, method: int) -> bytes:
    """Return ``content`` compressed as the data of a member."""
    if method == DEFLATED:
        deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        return deflater.compress(content) + deflater.flush()
    if method == ZSTANDARD:
        return zstandard.ZstdCompressor().compress(content)
    return content


def archive_of(*parts: Part, directory: bool = True, data_descriptors: bool = False) -> bytes:
    """Return an archive, perhaps without a directory or with the sizes of members after data."""
    body = bytearray()
    entries = bytearray()
    for part in parts:
        data = compressed(part.content, part.method)
        name = part.name.encode()
        size = len(part.content) if part.stated_size is None else part.stated_size
        checksum = part.stated_checksum
        if checksum is None:
            checksum = zlib.crc32(part.content)
        flags = part.flags | (0x8 if data_descriptors else 0) | (0 if name.isascii() else 0x800)
        sizes = (checksum, len(data), size)
        offset = len(body) if part.offset is None else part.offset
        local_sizes = (0, 0, 0) if data_descriptors else sizes
        body += struct.pack(
            "<4s5H3I2H", b"PK\x03\x04", 20, flags, part.method, 0, 0, *local_sizes, len(name), 0
        )
        body += name + data
        if data_descriptors:
            body += struct.pack("<4s3I", b"PK\x07\x08", *sizes)
        entries += struct.pack(
            "<4s6H3I5H2I",
            *(b"PK\x01\x02", 20, 20, flags, part.method, 0, 0, *sizes),
            *(len(name), 0, 0, 0, 0, 0, offset),
        )
        entries += name
    if not directory:
        return bytes(body)
    end = struct.pack(
        "<4s4H2IH", b"PK\x05\x06", 0, 0, len(parts) % 65_536, len(parts) % 65_536, len(entries),
        len(body), 0,
    )  # fmt: skip
    return bytes(body + entries + end)

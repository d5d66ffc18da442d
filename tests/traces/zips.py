"""Zip archives with arbitrary headers."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import zstandard

STORED, DEFLATED, ZSTANDARD = 0, 8, 93


@dataclass(frozen=True)
class Part:
    """A member: its content and what the archive says of it; None is the truth."""

    name: str
    content: bytes
    method: int = DEFLATED
    flags: int = 0
    says_bytes: int | None = None
    says_checksum: int | None = None
    offset: int | None = None


def packed(content: bytes, method: int) -> bytes:
    """``content`` as a member holds it."""
    if method == DEFLATED:
        deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        return deflater.compress(content) + deflater.flush()
    if method == ZSTANDARD:
        return zstandard.ZstdCompressor().compress(content)
    return content


def archive_of(*parts: Part, directory: bool = True, sizes_follow: bool = False) -> bytes:
    """An archive; without its directory, or with each member's sizes behind its data."""
    body = bytearray()
    entries = bytearray()
    for part in parts:
        data = packed(part.content, part.method)
        name = part.name.encode()
        size = len(part.content) if part.says_bytes is None else part.says_bytes
        checksum = zlib.crc32(part.content) if part.says_checksum is None else part.says_checksum
        flags = part.flags | (0x8 if sizes_follow else 0) | (0 if name.isascii() else 0x800)
        facts = (checksum, len(data), size)
        offset = len(body) if part.offset is None else part.offset
        local = (0, 0, 0) if sizes_follow else facts
        body += struct.pack(
            "<4s5H3I2H", b"PK\x03\x04", 20, flags, part.method, 0, 0, *local, len(name), 0
        )
        body += name + data
        if sizes_follow:
            body += struct.pack("<4s3I", b"PK\x07\x08", *facts)
        entries += struct.pack(
            "<4s6H3I5H2I",
            *(b"PK\x01\x02", 20, 20, flags, part.method, 0, 0, *facts),
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

"""Packed data of a zip archive, unpacked piece by piece so that no piece fills the memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Final

_DEFLATED: Final = 8
_ZSTANDARD: Final = 93
_MOST_AT_ONCE: Final = 1 << 20
_ZSTANDARD_PIECE: Final = 512


class DamagedData(ValueError):
    """Packed data cannot be unpacked; the message says why."""


class Stream:
    """Packed data taken piece by piece, unpacked a bounded amount at a time."""

    done = False
    unused = 0
    """How many bytes of the last piece lie behind the end of the packed data."""
    waiting: bytes | memoryview = b""
    """What of the last piece is to be given to ``take`` again."""

    def take(self, piece: bytes | memoryview) -> bytes:
        """Unpack some more; raises ``DamagedData`` where the data is damaged."""
        raise NotImplementedError


class _Deflated(Stream):
    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)

    def take(self, piece: bytes | memoryview) -> bytes:
        try:
            plain = self._inflater.decompress(piece, _MOST_AT_ONCE)
        except zlib.error as error:
            raise DamagedData(str(error)) from error
        self.waiting = self._inflater.unconsumed_tail
        self.done = self._inflater.eof
        self.unused = len(self._inflater.unused_data)
        return plain


class _Zstandard(Stream):
    def __init__(self) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._expander = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()

    def take(self, piece: bytes | memoryview) -> bytes:
        # Unlike zlib it cannot be told how much to give, so it gets little: no block has fewer
        # than 3 bytes or unpacks to more than 128 kB.
        view = memoryview(piece)
        try:
            plain = self._expander.decompress(view[:_ZSTANDARD_PIECE])
        except self._error as error:
            raise DamagedData(str(error)) from error
        self.waiting = view[_ZSTANDARD_PIECE:]
        self.done = self._expander.eof
        if self.done:
            self.unused = len(self._expander.unused_data) + len(self.waiting)
            self.waiting = b""
        return plain


_KINDS: Final[Mapping[int, Callable[[], Stream]]] = {
    _DEFLATED: _Deflated,
    _ZSTANDARD: _Zstandard,
}


def stream_of(method: int) -> Stream | None:
    """A fresh stream for a compression method of the zip format; None for one unknown here."""
    opener = _KINDS.get(method)
    return None if opener is None else opener()

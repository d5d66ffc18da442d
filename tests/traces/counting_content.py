"""Content in memory that counts how it is read."""

from __future__ import annotations

from mast_tui.traces.index.line_index import MemoryContent


class CountingContent(MemoryContent):
    """Content that counts its reads and the bytes read, and records the longest read."""

    reads = 0
    bytes_read = 0
    longest = 0

    def read(self, offset: int, length: int, /) -> bytes:
        data = super().read(offset, length)
        self.reads += 1
        self.bytes_read += len(data)
        self.longest = max(self.longest, length)
        return data

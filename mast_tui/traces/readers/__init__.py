"""The formats, one module each, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from mast_tui.traces.readers import codex, mast_data, message_lists, text
from mast_tui.traces.readers.base import Reader
from mast_tui.traces.readers.frameworks import FRAMEWORKS
from mast_tui.traces.source import Source

READERS: Final[tuple[Reader, ...]] = (
    codex.READER,
    mast_data.READER,
    message_lists.READER,
    *FRAMEWORKS,
)
"""Every reader that knows its format by content; the first that recognises a file reads it."""

PLAIN_TEXT: Final[Reader] = text.READER
"""The reader for text of no known format."""


def recognise(source: Source) -> Reader | None:
    """The reader for this file, or None where its content is of no known format."""
    return next((reader for reader in READERS if reader.recognises(source)), None)

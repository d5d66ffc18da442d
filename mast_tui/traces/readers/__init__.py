"""The formats, one module each, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Final

from mast_tui.traces.readers.base import Reader
from mast_tui.traces.source import Source

_MODULES: Final = ("codex", "converted", "mast_data")


def readers() -> Iterator[Reader]:
    """Every reader that knows its format by content, each imported when its turn has come.

    The first that recognises a file reads it. Plain text, which everything is in the end, has its
    reader in ``text``.
    """
    for module in _MODULES:
        reader: Reader = import_module(f"{__name__}.{module}").READER
        yield reader
    from mast_tui.traces.readers import message_lists
    from mast_tui.traces.readers.frameworks import FRAMEWORKS

    # A framework's record may hold a list of messages, too.
    yield from FRAMEWORKS
    yield message_lists.READER


def recognise(source: Source) -> Reader | None:
    """The reader for this file, or None where its content is of no known format."""
    return next((reader for reader in readers() if reader.recognises(source)), None)

"""What a path means that somebody has typed: files, URLs, patterns, tables, lists of these."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mast_tui.errors import MastError
from mast_tui.traces.io.regular_files import read_beside
from mast_tui.traces.io.remote import RemotePath, table_of, trace_path

_LIST_BYTES: Final = 4 << 30


def paths_of(typed: str) -> Iterator[Path]:
    """The files and folders that somebody means.

    Args:
        typed: A path or URL; a URL with ``*``; or ``@FILE`` with one of these a line, ``@-`` for
            stdin. A Parquet table of traces is the folder of its rows.

    Raises:
        MastError: A list cannot be read, or nothing matches a pattern.
    """
    try:
        if typed.startswith("@") and not Path(typed).exists():
            yield from _listed(typed)
            return
        path = trace_path(typed)
        if not isinstance(path, RemotePath) or "*" not in typed:
            yield table_of(path) or path
            return
        found = path.matches()
    except OSError as error:
        raise MastError(f"{typed}: {error.strerror or error}") from None
    if not found:
        raise MastError(f"{typed}: nothing matches")
    yield from (table_of(one) or one for one in found)


def _listed(typed: str) -> Iterator[Path]:
    name = typed[1:]
    data = sys.stdin.buffer.read() if name == "-" else read_beside(trace_path(name), _LIST_BYTES)
    if data is None:
        raise MastError(
            f"{typed}: no such file; after @ comes a file with a path or URL on each line"
        )
    for line in data.decode("utf-8-sig", "surrogateescape").splitlines():
        text = line.strip()
        if text and not text.startswith("#"):
            yield from paths_of(text)

"""The description of a folder that holds one trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from mast_tui.traces.io.regular_files import BESIDE_BYTES, UnreadableFile, read_beside
from mast_tui.traces.model import FileReport, Problem, TraceMeta
from mast_tui.traces.readers.json_fields import Fields, fields_of

NO_FACTS: Final = TraceMeta()


@dataclass(frozen=True, slots=True)
class Trial:
    """One run in a folder of files.

    Attributes:
        kind: The name of the kind of trial.
        folder: The folder.
        sources: Groups of files that may hold the run. Only the first group with a trace is read.
        facts: The facts of the run in ``fact_files``.
        fact_files: The other files of the trial.
        read: Reads a run that all of ``fact_files`` hold together, if no source has a trace.
        problems: The files that could not be read.
    """

    kind: str
    folder: Path
    sources: tuple[tuple[Path, ...], ...]
    facts: TraceMeta = NO_FACTS
    fact_files: tuple[Path, ...] = ()
    read: Callable[[], FileReport] | None = None
    problems: tuple[Problem, ...] = ()


def bytes_of(
    path: Path, location: str, problems: list[Problem], max_bytes: int = BESIDE_BYTES
) -> bytes | None:
    """Return the bytes of a file of a trial; None if it is missing or cannot be read.

    Args:
        path: The file.
        location: The name of the file in a problem.
        problems: The list to which an unreadable file is added.
        max_bytes: The largest number of bytes that are read.
    """
    try:
        return read_beside(path, max_bytes)
    except UnreadableFile as error:
        problems.append(Problem(location, f"not read: {error.strerror}"))
        return None


def json_object(path: Path, problems: list[Problem]) -> Fields:
    """Return the JSON object in a small file; empty if the file has none or is unreadable.

    Args:
        path: The file.
        problems: The list to which an unreadable file is added.
    """
    data = bytes_of(path, path.name, problems)
    try:
        return fields_of(None if data is None else orjson.loads(data))
    except orjson.JSONDecodeError:
        return {}

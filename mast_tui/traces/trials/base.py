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

    ``sources`` are files that hold the run, the best first: the first group with a trace in it is
    read, and all else in the folder is left out. ``facts`` are from ``fact_files``, the folder's
    other files; ``problems`` name those that could not be read. ``read`` makes the trace of a run
    that is in no single file but in all of ``fact_files``; it is called where no source holds a
    trace.
    """

    kind: str
    folder: Path
    sources: tuple[tuple[Path, ...], ...]
    facts: TraceMeta = NO_FACTS
    fact_files: tuple[Path, ...] = ()
    read: Callable[[], FileReport] | None = None
    problems: tuple[Problem, ...] = ()


def bytes_of(
    path: Path, location: str, problems: list[Problem], most: int = BESIDE_BYTES
) -> bytes | None:
    """Read a file of a trial; None where there is none, or one that cannot be read.

    Args:
        path: The file.
        location: The name of the file in a problem.
        problems: The list to which a problem is added.
        most: The most bytes that it may have.
    """
    try:
        return read_beside(path, most)
    except UnreadableFile as error:
        problems.append(Problem(location, f"not read: {error.strerror}"))
        return None


def json_object(path: Path, problems: list[Problem]) -> Fields:
    """Return the JSON object in a small file; empty where there is none, or it cannot be read.

    Args:
        path: The file.
        problems: The list to which a problem is added.
    """
    data = bytes_of(path, path.name, problems)
    try:
        return fields_of(None if data is None else orjson.loads(data))
    except orjson.JSONDecodeError:
        return {}

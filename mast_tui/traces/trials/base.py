"""What is known of a folder that holds one trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from mast_tui.traces.io.regular_files import UnreadableFile, read_beside
from mast_tui.traces.model import FileReport, Problem, TraceMeta

NO_FACTS: Final = TraceMeta()


@dataclass(frozen=True, slots=True)
class Trial:
    """One run in a folder of files.

    ``sources`` are files that tell the run, the best first: the first group with a trace in it is
    read, and all else in the folder is left out. ``facts`` are what the folder's other files say
    of the run, and ``told_by`` those files; ``problems`` name those that could not be read.
    ``read`` makes the trace of a run that lies in no single file but in all of ``told_by``; it is
    asked where no source holds a trace.
    """

    kind: str
    folder: Path
    sources: tuple[tuple[Path, ...], ...]
    facts: TraceMeta = NO_FACTS
    told_by: tuple[Path, ...] = ()
    read: Callable[[], FileReport] | None = None
    problems: tuple[Problem, ...] = ()


def json_object(path: Path, problems: list[Problem]) -> Mapping[str, object]:
    """The JSON object in a small file; empty where there is none, or one that cannot be read."""
    try:
        data = read_beside(path)
        value = None if data is None else orjson.loads(data)
    except UnreadableFile as error:
        problems.append(Problem(path.name, f"not read: {error.strerror}"))
        return {}
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, Mapping) else {}


def inner(value: object, *names: str) -> object:
    """What lies under these names, one in the other; None where one is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value

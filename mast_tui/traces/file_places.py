"""Names of traces by their files, locations of spans in files, and the files of the samples."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from mast_tui.traces.model import Trace

_LINE: Final = re.compile(r"(?:(?P<prefix>.+) )?line (?P<line>\d+)(?: (?P<rest>/.*))?", re.DOTALL)


class FilePlace(NamedTuple):
    """A location in a file, in the form that editors accept.

    Attributes:
        file: The path of the file.
        line: The number of the line; None for a file without lines.
        inside: The location within the line or file, a JSON pointer or the source's own name; empty
            for the whole line.
    """

    file: Path
    line: int | None
    inside: str

    def __str__(self) -> str:
        """Return ``file:line``, ``file:line#/pointer``, ``file#/pointer`` or ``file: name``."""
        if self.line is None:
            is_pointer = self.inside.startswith("/")
            return f"{self.file}#{self.inside}" if is_pointer else f"{self.file}: {self.inside}"
        return f"{self.file}:{self.line}" + (f"#{self.inside}" if self.inside else "")


def place_in_file(path: Path, location: str) -> FilePlace:
    """Return the place of a span in its file.

    - ``FILE line 3`` is in the file of a sub-agent.
    - ``/POINTER line 3`` is a line of a text in a JSON document, not a line of the file.

    Args:
        path: The file of the trace.
        location: The value of ``Span.place``.
    """
    match = _LINE.fullmatch(location)
    if match is None:
        return FilePlace(path, None, location)
    prefix = match["prefix"]
    if prefix is not None and prefix.startswith("/"):
        return FilePlace(path, None, f"{prefix}:{match['line']}")
    file = path.parent / prefix if prefix else path
    return FilePlace(file, int(match["line"]), match["rest"] or "")


def name_with_record(name: str, record: int | None) -> str:
    """Return the name of a file with the number of a record in it.

    Args:
        name: The name of the file.
        record: The record; None for the only trace of the file.
    """
    return name if record is None else f"{name}#{record}"


def distinct_name(trace: Trace, listed: Iterable[Trace]) -> str:
    """Return the shortest title of a trace: its file name, with folders until no other file has it.

    Args:
        trace: The trace.
        listed: All listed traces, which may include this one.
    """
    file = trace.file
    parts = trace.path.parts
    parts_of_same_name = [
        other.path.parts
        for other in listed
        if other.file != file and other.file.endswith(f"{os.sep}{parts[-1]}")
    ]
    part_count = 1
    while part_count < len(parts) and any(
        other_parts[-part_count:] == parts[-part_count:] for other_parts in parts_of_same_name
    ):
        part_count += 1
    name = str(Path(*parts[-part_count:]).with_suffix(""))
    return name_with_record(name, trace.record)


def samples_folder() -> Path:
    """Return the folder of the sample traces, in the package or beside it.

    Raises:
        FileNotFoundError: The installation has no sample traces.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "sample_traces", package.parent / "sample_traces"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        f"the sample traces are missing from {package}; reinstall mast-tui, or give a trace"
    )


def missing_file_text(path: Path) -> str:
    """Return a message about a missing file, with the sample trace of the same name, if any."""
    text = "no such file or folder"
    try:
        sample = samples_folder() / path.name
    except FileNotFoundError:
        return text
    return f"{text}; the sample trace of this name is {sample}" if sample.is_file() else text

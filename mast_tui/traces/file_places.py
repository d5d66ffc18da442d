"""The location of a span in a file, in the form that editors and other tools accept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

_LINE: Final = re.compile(r"(?:(?P<prefix>.+) )?line (?P<line>\d+)(?: (?P<rest>/.*))?", re.DOTALL)


class FilePlace(NamedTuple):
    """A location in a file.

    Attributes:
        file: The path of the file.
        line: The number of the line; None if the file has no lines.
        inside: The location within the line or file, a JSON pointer or the source's own name; empty
            if the location is the whole line.
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
        location: The location of a span, as it is in ``Span.place``.
    """
    match = _LINE.fullmatch(location)
    if match is None:
        return FilePlace(path, None, location)
    prefix = match["prefix"]
    if prefix is not None and prefix.startswith("/"):
        return FilePlace(path, None, f"{prefix}:{match['line']}")
    file = path.parent / prefix if prefix else path
    return FilePlace(file, int(match["line"]), match["rest"] or "")

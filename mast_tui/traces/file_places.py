"""The location of a span in a file, in the form that editors and other tools accept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

_LINE: Final = re.compile(r"(?:(?P<file>.+) )?line (?P<line>\d+)(?: (?P<rest>/.*))?", re.DOTALL)


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

    - A location that begins with the name of a file is in that file, of a sub-agent.
    - A location that begins with a pointer is a line of a text inside a document; it has no line
      of the file.

    Args:
        path: The file of the trace.
        location: The location of a span, as it is in ``Span.place``.

    """
    match = _LINE.fullmatch(location)
    if match is None:
        return FilePlace(path, None, location)
    name = match["file"]
    if name is not None and name.startswith("/"):
        return FilePlace(path, None, f"{name}:{match['line']}")
    file = path.parent / name if name else path
    return FilePlace(file, int(match["line"]), match["rest"] or "")

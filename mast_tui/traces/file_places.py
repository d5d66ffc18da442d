"""The location of a span in a file, in the form that editors and other tools accept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

_LINE: Final = re.compile(r"(?:(?P<file>.+) )?line (?P<line>\d+)(?: (?P<rest>/.*))?", re.DOTALL)


class FilePlace(NamedTuple):
    """A location in a file: a line, where the source has lines, and a location within its value.

    ``inside`` is a JSON pointer, or the source's own name for the location.
    """

    file: Path
    line: int | None
    inside: str

    def __str__(self) -> str:
        """Return ``file:line`` for a location on a line, ``file#/pointer`` for one in a document.

        The pointer into a JSON value on a line follows after a ``#``.
        """
        if self.line is None:
            pointer = self.inside.startswith("/")
            return f"{self.file}#{self.inside}" if pointer else f"{self.file}: {self.inside}"
        return f"{self.file}:{self.line}" + (f"#{self.inside}" if self.inside else "")


def place_in_file(path: Path, location: str) -> FilePlace:
    """Find the file and the line of a span.

    A location that begins with the name of a sub-agent's file is one in that file; one that begins
    with a pointer is on a line of a text inside a document, which is no line of the file.

    Args:
        path: The file of the trace.
        location: The location of a span, as it is in ``Span.place``.

    Returns:
        The file, the line and the rest of the location.
    """
    match = _LINE.fullmatch(location)
    if match is None:
        return FilePlace(path, None, location)
    name = match["file"]
    if name is not None and name.startswith("/"):
        return FilePlace(path, None, f"{name}:{match['line']}")
    file = path.parent / name if name else path
    return FilePlace(file, int(match["line"]), match["rest"] or "")

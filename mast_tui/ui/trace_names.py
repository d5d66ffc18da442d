"""What traces are called on screen."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mast_tui.traces.model import Trace
    from mast_tui.workspace import TraceRecord


def trace_names(records: Iterable[TraceRecord]) -> dict[str, str]:
    """What traces go by, by their ids: the file each was last seen in, and its place there."""
    return {
        record.trace_id: record.path.name
        if record.record is None
        else f"{record.path.name}#{record.record}"
        for record in records
        if record.path is not None
    }


def names_under(roots: Sequence[Path]) -> Callable[[Trace], str]:
    """Tells a trace's file as seen from the folder that was opened, with its record's number."""
    beginnings = ["" if str(root) == "." else str(root / "_")[:-1] for root in roots]

    def name_of(trace: Trace) -> str:
        path = trace.file
        inside = [
            path[len(beginning) :]
            for beginning in beginnings
            if path.startswith(beginning) and (beginning or not path.startswith(os.sep))
        ]
        name = min(inside, key=len, default="") or path.rpartition(os.sep)[2]
        return name if trace.record is None else f"{name}#{trace.record}"

    return name_of


def distinct_names(trace: Trace, others: Iterable[Trace]) -> str:
    """What a trace goes by in a title: its file's name without the ending, with as many of the
    folders before it as tell it from the other files of that name.

    Args:
        trace: The trace.
        others: All that are listed, whether it is among them or not.
    """
    path = trace.file
    parts = trace.path.parts
    alike = [
        other.path.parts
        for other in others
        if other.file != path and other.file.endswith(f"{os.sep}{parts[-1]}")
    ]
    length = 1
    while length < len(parts) and any(other[-length:] == parts[-length:] for other in alike):
        length += 1
    name = str(Path(*parts[-length:]).with_suffix(""))
    return name if trace.record is None else f"{name}#{trace.record}"


def natural(name: str) -> str:
    """A sorting key by which ``2.json`` comes before ``10.json``, and numbers before letters."""
    parts = _DIGITS.split(name.casefold())
    # Of two numbers without leading zeros the longer one is the greater.
    parts[1::2] = [f"\0{chr(len(digits))}{digits}" for digits in map(_plain, parts[1::2])]
    return "".join(parts)


_DIGITS: Final = re.compile(r"(\d+)")


def _plain(digits: str) -> str:
    ascii_digits = digits if digits.isascii() else "".join(str(int(one)) for one in digits)
    return ascii_digits.lstrip("0")

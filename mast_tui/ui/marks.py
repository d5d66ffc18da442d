"""What stands at the end of a timeline row: labels and suggestions on that span."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mast_tui.labels import Target

MAX_RANGE_MARKS: Final = 5000
"""Beyond this many spans a range is marked at its first and last span only."""


class MarkKind(StrEnum):
    """Whose mark it is; ``MORE`` stands for those that have no room."""

    OWN = "own"
    SUGGESTION = "suggestion"
    OTHER = "other"
    NOTE = "note"
    MORE = "more"


GLYPHS: Final[Mapping[MarkKind, str]] = {
    MarkKind.OWN: "●",
    MarkKind.SUGGESTION: "◌",
    MarkKind.OTHER: "○",
    MarkKind.NOTE: "✎",
    MarkKind.MORE: "",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A mode's code with a glyph that says whose it is."""

    code: str
    kind: MarkKind

    @property
    def shown(self) -> str:
        """The mark as it stands in the row."""
        return f"{self.code} {GLYPHS[self.kind]}".strip()


def marks_by_span(
    targets: Iterable[tuple[Target, Mark]], index_of: Callable[[str], int | None]
) -> dict[int, tuple[Mark, ...]]:
    """The marks of each span; labels on the whole trace stand in none.

    Own labels come first, then suggestions, then others'; equal marks are shown once.
    """
    found: defaultdict[int, list[Mark]] = defaultdict(list)
    for target, mark in targets:
        if target.first is None or target.last is None:
            continue
        first, last = index_of(target.first), index_of(target.last)
        if first is None and last is None:
            continue
        first = first if first is not None else last
        last = last if last is not None else first
        assert first is not None
        assert last is not None
        low, high = min(first, last), max(first, last)
        spans = range(low, high + 1) if high - low <= MAX_RANGE_MARKS else (low, high)
        for index in spans:
            if mark not in found[index]:
                found[index].append(mark)
    order = list(MarkKind)
    return {
        index: tuple(sorted(marks, key=lambda mark: order.index(mark.kind)))
        for index, marks in found.items()
    }

"""The rows of the library: what is known of each trace, filtered and sorted into a queue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from textual.fuzzy import Matcher


class State(StrEnum):
    """How far the annotator has come with a trace."""

    OPEN = "open"
    UNTOUCHED = "untouched"
    FINISHED = "finished"


GLYPHS: Final = {State.OPEN: "◐", State.UNTOUCHED: "○", State.FINISHED: "●"}


@dataclass(frozen=True, slots=True)
class LibraryRow:
    """One trace as the library shows it; what its annotator may not see is empty here."""

    trace_id: str
    name: str
    system: str = ""
    model: str = ""
    benchmark: str = ""
    outcome: str = ""
    spans: int = 0
    complete: bool = True
    state: State = State.UNTOUCHED
    finished_by: tuple[str, ...] = ()
    waiting: int = 0
    labels: int = 0

    @property
    def haystack(self) -> str:
        """What a filter looks at."""
        return " ".join(
            [self.name, self.system, self.model, self.benchmark, self.outcome, self.state,
             *self.finished_by]
        ).casefold()  # fmt: skip


class Sort(StrEnum):
    """Orders of the library; the first is the queue."""

    QUEUE = "queue"
    NAME = "name"
    MODEL = "model"
    OUTCOME = "outcome"
    SPANS = "spans"
    WAITING = "suggestions"

    def following(self) -> Sort:
        """The next order."""
        every = list(Sort)
        return every[(every.index(self) + 1) % len(every)]


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sorting key by which ``2.json`` comes before ``10.json``."""
    parts = re.split(r"(\d+)", name.casefold())
    return tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts if p)


_STATES: Final = list(State)


def _key(row: LibraryRow, sort: Sort) -> tuple[object, ...]:
    name = natural(row.name)
    if sort is Sort.QUEUE:
        return (_STATES.index(row.state), name)
    if sort is Sort.MODEL:
        return (row.model.casefold(), row.system.casefold(), name)
    if sort is Sort.OUTCOME:
        return (row.outcome or "~", name)
    if sort is Sort.SPANS:
        return (-row.spans, name)
    if sort is Sort.WAITING:
        return (-row.waiting, name)
    return (name,)


def arrange(rows: Sequence[LibraryRow], needle: str, sort: Sort) -> list[LibraryRow]:
    """The rows that match every word of ``needle``, sorted.

    Where no row holds all words as they stand, rows that hold their letters in order are taken.
    """
    words = needle.casefold().split()
    found = [row for row in rows if all(word in row.haystack for word in words)]
    if words and not found:
        matchers = [Matcher(word) for word in words]
        found = [row for row in rows if all(m.match(row.haystack) > 0 for m in matchers)]
    return sorted(found, key=lambda row: _key(row, sort))

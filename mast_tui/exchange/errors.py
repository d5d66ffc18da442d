"""What goes wrong when labels come in or go out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mast_tui.errors import MastError


class ExchangeError(MastError):
    """A file cannot be imported or written; the message says where, what and what to do."""


class UnorderedSpans(ExchangeError):
    """The order of labelled spans is not known, so the gold could miss that places overlap.

    ``found`` says how many there are, and where the files of their traces were looked for.
    """

    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(
            f"{found} Open the traces once, or run the command with --allow-unordered."
        )


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A row that cannot be imported: its file, its place in it (``row 12``) and why."""

    file: Path
    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.place}: {self.reason}"

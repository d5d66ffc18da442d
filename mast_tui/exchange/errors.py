"""The errors of imports and exports of labels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mast_tui.errors import MastError
from mast_tui.labels import InvalidName


class ExchangeError(MastError):
    """An error for a file that cannot be imported or written.

    The message has the location, the reason and the remedy.
    """


class Remedy(Enum):
    """The ways to import a refused row."""

    FIX_ROW = "fix the row"
    ALLOW_NEW = "accept the name as a new one"
    OTHER_NAME = "import under another name"


class UnorderedSpans(ExchangeError):
    """An error for labelled spans in unknown order, in which overlaps cannot be found.

    ``explanation`` has their number and the searched folders.
    """

    def __init__(self, explanation: str) -> None:
        self.explanation = explanation
        super().__init__(
            f"{explanation} Open the traces once, or run the command with --allow-unordered."
        )


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A row that cannot be imported: its file, its location such as ``row 12``, and the reason."""

    file: Path
    place: str
    reason: str
    remedy: Remedy = Remedy.FIX_ROW

    @classmethod
    def of(cls, file: Path, place: str, reason: object) -> RowProblem:
        """Return the problem for an error, with its remedy.

        Args:
            file: The file.
            place: The location in the file.
            reason: The error, or its text.
        """
        is_name = isinstance(reason, InvalidName)
        remedy = Remedy.OTHER_NAME if is_name else Remedy.FIX_ROW
        return cls(file, place, str(reason), remedy)

    def __str__(self) -> str:
        return f"{self.file}: {self.place}: {self.reason}"

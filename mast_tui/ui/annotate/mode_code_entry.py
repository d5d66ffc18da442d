"""Two digits name a mode: what has been typed so far, and what it is for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy


class Purpose(StrEnum):
    """What the mode that is being typed is for."""

    LABEL = "label"
    ABSENT = "absent"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class DigitEntry:
    """The state of typing a mode: nothing yet, a purpose, or a purpose and a first digit."""

    purpose: Purpose = Purpose.LABEL
    first: str | None = None
    begun: bool = False

    def candidates(self, taxonomy: Taxonomy) -> tuple[tuple[str, Mode], ...]:
        """The digits that may come next, each with the mode it would name."""
        if self.first is None:
            return ()
        found = ((digit, taxonomy.by_digits(self.first, digit)) for digit in "0123456789")
        return tuple((digit, mode) for digit, mode in found if mode is not None)

    def prompt(self, taxonomy: Taxonomy, cells: int) -> str:
        """What has been typed and what may follow, for a footer of ``cells``.

        Names give way so that all that may follow is shown.
        """
        verb = {"label": "label", "absent": "absent:", "unsure": "unsure:"}[self.purpose]
        if self.first is None:
            return f"{verb} two digits, such as {taxonomy.keys_of(taxonomy.modes[0])}"
        head = f"{verb} {self.first}▁"
        options = self.candidates(taxonomy)
        longest = max(len(mode.name) for _, mode in options)
        room = cells - len(head) - 4 * len(options)
        while longest > 3 and sum(min(longest, len(mode.name)) for _, mode in options) > room:
            longest -= 1
        return "  ".join(
            [head, *(f"{digit} {one_line(mode.name, longest)}" for digit, mode in options)]
        )


@dataclass(frozen=True, slots=True)
class Typed:
    """What came of one more digit: the new state, and the mode where one is complete."""

    entry: DigitEntry
    mode: Mode | None = None
    refused: str | None = None


def type_digit(entry: DigitEntry, digit: str, taxonomy: Taxonomy) -> Typed:
    """Take one more digit; a pair that names no mode is refused and forgotten."""
    if entry.first is None:
        begun = DigitEntry(entry.purpose, digit, True)
        if not begun.candidates(taxonomy):
            return Typed(DigitEntry(), refused=f"no mode begins with {digit}")
        return Typed(begun)
    mode = taxonomy.by_digits(entry.first, digit)
    if mode is None:
        return Typed(DigitEntry(), refused=f"there is no mode {entry.first}{digit}")
    return Typed(DigitEntry(entry.purpose), mode)

"""Figures in the cells of a table and in words: a value with its interval, or why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_tui.agreement.figure_table import WITHHELD, withheld_notes
from mast_tui.ui.widgets.column_table import TableRow

if TYPE_CHECKING:
    from mast_tui.figures.agreement.coefficients import CoefficientJson

NO_FIGURE: Final = "—"
NOT_YET: Final = "…"
PARADOX_MARK: Final = "*"
LOOK_MARK: Final = "!"

NO_INTERVAL: Final = "no interval"

WHY_UNDEFINED: Final[Mapping[str, str]] = {
    "no_variance": "undefined, since all verdicts are the same and cannot be told from chance",
    "no_overlap": "undefined, since no trace has a verdict on it by two people",
    "single_rater": "undefined, since only one person has given verdicts",
}
"""The reasons why there is no figure, in words."""


@dataclass(frozen=True, slots=True)
class PageRow:
    """One row of a page: what it shows, its name, and in words what the figures rest on.

    ``modes`` are the slugs of the modes whose traces stand behind the figures; a row without any
    cannot be opened.
    """

    shown: TableRow
    title: str
    words: str
    modes: tuple[str, ...] = ()


def figure_cell(figure: CoefficientJson) -> str:
    """A figure with two digits, or a dash."""
    return NO_FIGURE if figure["value"] is None else f"{figure['value']:.2f}"


def share_cell(share: float | None) -> str:
    """A share with two digits, or a dash."""
    return NO_FIGURE if share is None else f"{share:.2f}"


def interval_cell(figure: CoefficientJson, *, pending: bool) -> str:
    """The 95 % interval of a figure; dots while it is still being counted."""
    if figure["value"] is None:
        return ""
    if "ci_withheld" in figure:
        return WITHHELD
    ends = figure.get("ci")
    if ends is None:
        return NOT_YET if pending else NO_FIGURE
    return f"[{ends[0]:.2f}, {ends[1]:.2f}]"


def figure_words(name: str, figure: CoefficientJson, *, pending: bool) -> str:
    """A figure and its interval in a sentence: ``κ 0.40 [0.12, 0.63]``."""
    ends = interval_cell(figure, pending=pending)
    between = NO_INTERVAL if ends == NO_FIGURE else ends
    return f"{name} {figure_cell(figure)} {between}".strip()


def without_interval(figures: Iterable[CoefficientJson], *, pending: bool) -> list[str]:
    """Why some figures have no interval, where that is so."""
    bare = [one for one in figures if one["value"] is not None and one.get("ci") is None]
    if pending or not bare:
        return []
    notes = withheld_notes(dict(enumerate(bare)))
    if all("ci_withheld" in one for one in bare):
        return notes
    return [
        *notes,
        "No interval where the traces tell nothing of a spread: whichever of them are left out "
        "or resampled, the figure is the same, or mostly there is none.",
    ]


def why_undefined(
    figures: Iterable[tuple[str, CoefficientJson]],
    reasons: Mapping[str, str] = WHY_UNDEFINED,
    own: Mapping[str, str] | None = None,
) -> list[str]:
    """A sentence for each reason why some figures, given by their names, are undefined.

    ``own`` are reasons of single figures in place of ``no_variance``.
    """
    by_reason: dict[str, list[str]] = {}
    for name, figure in figures:
        reason = figure.get("undefined")
        if reason is None:
            continue
        why = reasons.get(reason, f"undefined ({reason.replace('_', ' ')})")
        if reason == "no_variance" and own is not None:
            why = own.get(name, why)
        by_reason.setdefault(why, []).append(name)
    return [f"{NO_FIGURE} {joined(names)}: {why}." for why, names in by_reason.items()]


def styled(cells: Mapping[str, str], quiet: Iterable[str] = ()) -> dict[str, str]:
    """Styles of cells: what is no figure, and the columns named, stands back."""
    low = set(quiet)
    return {
        name: "quiet"
        for name, text in cells.items()
        if name in low or text.strip() in (NO_FIGURE, NOT_YET, WITHHELD)
    }


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``1 trace``, ``2 traces``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def joined(names: Sequence[str]) -> str:
    """Names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"

"""How often modes really show where only a judge has looked, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mast_tui.ui.signature_bars import percent

if TYPE_CHECKING:
    from mast_tui.figures.signatures.modes import ModeJson

_WHY: Final[Mapping[str, str]] = {
    "no_unlabelled": "people have labelled all of the judge's traces here",
    "no_positives": "the gold calls it present nowhere that the judge has judged",
    "no_negatives": "the gold calls it absent nowhere that the judge has judged",
    "no_better_than_chance": "beside the gold the judge's word on it is no better than chance",
}


def corrected_words(mode: ModeJson) -> list[str]:
    """The corrected prevalence of a mode, or why there is none; nothing where none was computed."""
    found: Any = mode["corrected"]
    if found is None:
        return []
    value, ends = found["corrected"]["value"], found["corrected"].get("ci")
    if value is None:
        why = _WHY.get(found["corrected"].get("undefined", ""), "too little is known")
        return [f"Not corrected for the judge's errors: {why}."]
    between = "" if ends is None else f" ({percent(ends[0])} to {percent(ends[1])})"
    if "ci_withheld" in found["corrected"]:
        between = f" (too few traces for an interval, n < {found['corrected']['ci_needs']})"
    return [
        f"Corrected for the judge's errors: {percent(value)}{between}, where it says "
        f"{percent(found['apparent']['value'])}, on {found['n_unlabelled']:,} traces that nobody "
        "else has labelled."
    ]

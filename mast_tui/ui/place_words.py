"""Places in a trace in a few words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.labels import Target

IndexOf = Callable[[str], int | None]

QUOTE_CHARS: Final = 30
"""How much of a quote stands in a place's name, in code points."""


def place_words(target: Target, index_of: IndexOf, *, quoted: bool = True) -> str:
    """A target for people: ``#13``, ``#13 to #18``, ``“…” in #13``, ``the whole trace``.

    Spans that are not known go by their key. Fit for display.
    """
    if target.first is None or target.last is None:
        return "the whole trace"
    places = []
    for key in dict.fromkeys((target.first, target.last)):
        index = index_of(key)
        places.append(f"#{index + 1}" if index is not None else one_line(key, 24))
    words = " to ".join(places)
    if quoted and target.quote:
        return f"“{one_line(target.quote, QUOTE_CHARS)}” in {words}"
    return words

"""A text and what is shown of it: as it is, or as it is meant, set out as far as one has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mast_tui.safe_text import COLOUR_SEQUENCE
from mast_tui.ui.text.highlighting import Highlighter
from mast_tui.ui.text.json_view import PrettyText, pretty_json
from mast_tui.ui.text.layout import Readable, TextLayout

COUNTED_CHARS: Final = 1 << 20
"""The rows of texts up to this long are counted while nothing else is to be done; those of longer
ones only where one has been, so that the scroll bar's size is an estimate."""

COUNTED_JSON_CHARS: Final = 1 << 16
"""The same for JSON, which has to be set out for that."""

NEAR_CHARS: Final = 1 << 15
"""JSON is set out for what one goes to within so many code points behind what is set out; and
words are looked for as far."""


class ShownText:
    """Leads from the offsets of a text to those of what is shown of it, and back.

    Offsets are code points. JSON is set out as far as one has come; a layout of it is told what
    has changed by that. Whoever goes far beyond sees the text as it is.
    """

    def __init__(self, text: str, written: str | None) -> None:
        """Begin with the beginning of a text.

        Args:
            text: What is shown.
            written: How it is written (``highlighting``); None to show it as it is.
        """
        self.text = text
        self.rendered = written is not None
        self.pretty = None if written is None else pretty_json(text)
        self.highlighter: Highlighter | None = None
        if written:
            self.highlighter = Highlighter(self.readable, written, self.pretty)

    def lay_out(self, width: int) -> TextLayout:
        """Return what is shown, wrapped to a width in cells."""
        return TextLayout(self.readable, width, rendered=self.rendered)

    @property
    def readable(self) -> Readable:
        """What is shown."""
        return self.text if self.pretty is None else self.pretty

    def to_shown(self, offset: int) -> int:
        """Where the text's code point at ``offset`` is shown."""
        return offset if self.pretty is None else self.pretty.to_shown(offset)

    def to_source(self, offset: int) -> int:
        """The code point of the text that is shown at ``offset``."""
        return offset if self.pretty is None else self.pretty.to_source(offset)

    def range_to_shown(self, start: int, end: int) -> tuple[int, int]:
        """What is shown of the text's ``start`` to ``end`` (exclusive)."""
        return (start, end) if self.pretty is None else self.pretty.range_to_shown(start, end)

    def range_to_source(self, start: int, end: int) -> tuple[int, int]:
        """Return the code points that are shown from ``start`` to ``end`` (exclusive), whole."""
        return (start, end) if self.pretty is None else self.pretty.range_to_source(start, end)

    def found_near(
        self, offset: int, look: Callable[[str, int], tuple[int, int] | None]
    ) -> tuple[int, int] | None:
        """Return what ``look`` finds in what is shown around a place, as code points of the text.

        Args:
            offset: A code point of the text.
            look: Takes some of what is shown and a place in it; gives start and end of what is
                found there.
        """
        at = self.to_shown(offset)
        begin = max(0, at - NEAR_CHARS)
        around = self.readable[begin : at + NEAR_CHARS]
        if self.rendered:
            around = COLOUR_SEQUENCE.sub(lambda found: " " * len(found[0]), around)
        found = look(around, at - begin)
        return None if found is None else self.range_to_source(begin + found[0], begin + found[1])

    def set_out_on(self, layout: TextLayout, top: int, rows: int) -> bool:
        """Set out more where fewer than ``rows`` rows below ``top`` are; whether that was so."""
        pretty, more = self.pretty, False
        while pretty is not None and not pretty.complete and top < pretty.set_out:
            if layout.step(top, rows) < pretty.set_out:
                break
            more = self._extend(pretty, layout)
        return more

    def set_out_until(self, layout: TextLayout, end: int) -> bool:
        """Set out what comes before this code point of the text, where that is not far; whether
        there was any."""
        pretty, more = self.pretty, False
        if pretty is not None and end - pretty.read <= NEAR_CHARS:
            while not pretty.complete and pretty.read <= end:
                more = self._extend(pretty, layout)
        return more

    def is_counted(self, layout: TextLayout) -> bool:
        """Whether rows are still to be worked out while nothing else is to be done."""
        if self.pretty is not None and not self.pretty.complete:
            return len(self.text) <= COUNTED_JSON_CHARS
        return not layout.complete and len(self.text) <= COUNTED_CHARS

    def count_on(self, layout: TextLayout) -> None:
        """Work out some more, so that the number of rows becomes exact."""
        if self.pretty is not None and not self.pretty.complete:
            self._extend(self.pretty, layout)
        layout.work_out_next()

    def _extend(self, pretty: PrettyText, layout: TextLayout) -> bool:
        changed = pretty.set_out
        pretty.extend()
        layout.changed_from(changed)
        if self.highlighter is not None:
            self.highlighter.changed()
        return True

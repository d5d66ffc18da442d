"""A text as it is shown: as it was read, or set out in lines where it is JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_tui.ui.text.layout import TextLayout
from mast_tui.ui.text.rows import Readable

if TYPE_CHECKING:
    from mast_tui.ui.text.json_view import PrettyText

COUNTED_CHARS: Final = 1 << 20
"""The rows of texts up to this long are counted while nothing else is to be done; those of longer
ones only where one has been, so that the scroll bar's size is an estimate."""

COUNTED_JSON_CHARS: Final = 1 << 16
"""The same for JSON, which has to be set out for that."""

NEAR_CHARS: Final = 1 << 15
"""JSON is set out for what one goes to within so many code points behind what is set out."""


class ShownText:
    """Leads from the offsets of a text to those of what is shown of it, and back.

    Offsets are code points. JSON is set out as far as one has come; a layout of it is told what
    has changed by that. Whoever goes far beyond sees the text as it is.
    """

    def __init__(self, text: str, *, set_out: bool) -> None:
        self.text = text
        self.pretty = _set_out(text) if set_out else None

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

    def set_out_on(self, layout: TextLayout, top: int, rows: int) -> bool:
        """Set out more where fewer than ``rows`` rows below ``top`` are; whether that was so."""
        pretty, more = self.pretty, False
        while pretty is not None and not pretty.complete and top < pretty.set_out:
            if layout.step(top, rows) < pretty.set_out:
                break
            more = _extend(pretty, layout)
        return more

    def set_out_until(self, layout: TextLayout, end: int) -> bool:
        """Set out what comes before this code point of the text, where that is not far; whether
        there was any."""
        pretty, more = self.pretty, False
        if pretty is not None and end - pretty.read <= NEAR_CHARS:
            while not pretty.complete and pretty.read <= end:
                more = _extend(pretty, layout)
        return more

    def is_counted(self, layout: TextLayout) -> bool:
        """Whether rows are still to be worked out while nothing else is to be done."""
        if self.pretty is not None and not self.pretty.complete:
            return len(self.text) <= COUNTED_JSON_CHARS
        return not layout.complete and len(self.text) <= COUNTED_CHARS

    def count_on(self, layout: TextLayout) -> None:
        """Work out some more, so that the number of rows becomes exact."""
        if self.pretty is not None and not self.pretty.complete:
            _extend(self.pretty, layout)
        layout.work_out_next()


def _extend(pretty: PrettyText, layout: TextLayout) -> bool:
    changed = pretty.set_out
    pretty.extend()
    layout.changed_from(changed)
    return True


def _set_out(text: str) -> PrettyText | None:
    """The text to be set out in lines; None where it is no JSON."""
    if text[:64].lstrip()[:1] not in ("{", "["):
        return None  # the first text is seldom JSON, and is not to wait for what sets it out
    from mast_tui.ui.text.json_view import pretty_json

    return pretty_json(text)

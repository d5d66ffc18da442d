"""The one-line preview of a span's text.

Span keys are made unique in ``keys.py``; JSON values become text in ``json_values.py``.
"""

from __future__ import annotations

import re
from typing import Final

from mast_tui.traces.model import PREVIEW_CHARS

_LOOKED_AT: Final = 16 * PREVIEW_CHARS
_FIRST_VISIBLE: Final = re.compile(r"\S")


def preview(text: str, lead: int = 0) -> tuple[str, bool]:
    """The beginning of ``text`` on one line, and whether that is all of it.

    Each run of whitespace becomes one space, and the line is cut at ``PREVIEW_CHARS`` code
    points. The flag is true when nothing but whitespace was left out. The cost does not grow with
    the text: only its beginning is looked at (and leading whitespace is passed over). With
    ``lead`` the line begins that many code points into the text, unless nothing follows there.
    """
    first = _FIRST_VISIBLE.search(text, lead)
    if first is None:
        return preview(text) if lead else ("", True)
    begin = first.start()
    line = " ".join(text[begin : begin + _LOOKED_AT].split())
    whole = len(line) <= PREVIEW_CHARS and len(text) <= begin + _LOOKED_AT
    return line[:PREVIEW_CHARS], whole and not text[:lead].strip()

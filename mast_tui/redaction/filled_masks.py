"""Masks that are as long as their secrets, so that offsets stay valid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from mast_tui.traces.model import Trace, TraceMasks

FILLER: Final = "▒"
"""The character that fills a mask up to the length of its secret."""

_FILLED_MASK: Final = re.compile(rf"{FILLER}(?:[\w-]+·)?\w+{FILLER}+|{FILLER}+")
"""A mask of ``filled_mask`` within a line."""


def filled_mask(name: str, number: int | str, secret: str) -> str:
    """Return a mask that is as long as its secret, such as ``▒email·k3f9q▒▒▒``.

    A short mask has only the number or only fillers. Line breaks in a secret stay, so that the text
    has the same lines.

    Args:
        name: The name of the rule.
        number: The number or code of the secret.
        secret: The secret.
    """
    # The other parts are line breaks and further lines.
    first_line, *other_parts = re.split(r"(?<!\s)(\s*\n\s*)", secret)
    long_title = f"{name.replace(' ', '-')}·{number}"
    titles = (long_title, str(number), "")
    room = len(first_line) - 2 * len(FILLER)
    title = next((title for title in titles if len(title) <= room), "")
    mask = f"{FILLER}{title}".ljust(len(first_line), FILLER)[: len(first_line)]
    return mask + "".join(part if part.isspace() else FILLER * len(part) for part in other_parts)


def filled_mask_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each mask of ``filled_mask`` in a text."""
    return (match.span() for match in _FILLED_MASK.finditer(text))


def with_whole_masks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a range of a text, extended over the masks that it touches.

    Args:
        text: The masked text.
        start: The first code point of the range.
        end: The code point after the range.
    """
    for mask_start, mask_end in filled_mask_ranges(text):
        if mask_start < end and start < mask_end:
            start = min(start, mask_start)
            end = max(end, mask_end)
    return start, end


def is_masked_copy(text: str, original: str) -> bool:
    """Check whether a text is the original, except for masks of equal length.

    Args:
        text: The text, perhaps with masks.
        original: The text without masks.
    """
    if len(text) != len(original):
        return False
    checked_end = 0
    for start, end in filled_mask_ranges(text):
        if text[checked_end:start] != original[checked_end:start]:
            return False
        checked_end = end
    return text[checked_end:] == original[checked_end:]


def masked_quote(
    masks: TraceMasks,
    trace: Trace | None,
    quote: str,
    key: str | None,
    start: int | None,
    end: int | None,
) -> str:
    """Return a quote with masks of equal length.

    A part of a secret is not recognised by itself, so the quote is taken from the masked text of
    its span. If this text cannot be read or lacks the quote, the whole quote is masked.

    Args:
        masks: The masks.
        trace: The trace, with these masks; None if it is not on this machine.
        quote: The quote.
        key: The key of its span; None if it was not found in the trace.
        start: The first code point of the quote in the text of the span, if known.
        end: The code point after the quote, if known.
    """
    masked = masks.text(quote)
    if key is None:
        return masked
    index = None if trace is None else trace.index_of(key)
    text = ""
    if trace is not None and index is not None:
        with suppress(OSError):
            text = trace.text(index)
    if text and start is not None:
        return text[start:end]
    return masked if masked in text else FILLER * len(quote)

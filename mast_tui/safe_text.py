"""The conversion of any text into text that is safe to show in a terminal.

The result has no character that controls the terminal, reorders the text, or is invisible:

- C0 controls and DEL become their control pictures: ESC is ``␛``, NUL ``␀``, DEL ``␡``;
- C1 controls, bidi controls, zero-width and other invisible format characters, tag characters,
  line and paragraph separators, lone surrogates and noncharacters become ``⟨U+202E⟩``;
- variation selectors U+FE0E and U+FE0F, skin tones and a zero-width joiner before an emoji are
  dropped, and a flag becomes its two letters, because terminals disagree about the width of such
  sequences;
- elsewhere the zero-width joiner and non-joiner stay: Arabic and Indic scripts need them;
- a tab is four spaces in a line of text, and one space in ``one_line``.

All offsets and lengths are code points. Markup is not escaped: show the results as ``Text`` or
``Content``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LINE_BREAK: Final = "⏎"
"""The replacement of a line break in ``one_line``."""

ELLIPSIS: Final = "…"
"""The end of a text that ``one_line`` has cut."""

TAB: Final = "    "
"""The replacement of a tab in a line of text.

It does not depend on the column, so that a part of a line looks the same in the whole line.
"""

_CONTROL_PICTURES: Final = 0x2400

# The first and last code point of characters that must not reach a terminal, apart from C0 and DEL.
_HIDDEN: Final = (
    (0x80, 0x9F),  # C1
    (0xAD, 0xAD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark
    (0x115F, 0x1160),  # Hangul fillers: letters without a shape
    (0x180B, 0x180F),  # Mongolian variation selectors and vowel separator
    (0x200B, 0x200B),  # zero-width space
    (0x200E, 0x200F),  # direction marks
    (0x2028, 0x202E),  # line and paragraph separator, bidi embeddings and overrides
    (0x2060, 0x206F),  # word joiner, invisible operators, bidi isolates, deprecated controls
    (0x2800, 0x2800),  # the Braille pattern without a dot
    (0x3164, 0x3164),  # Hangul filler
    (0xD800, 0xDFFF),  # lone surrogates
    (0xFDD0, 0xFDEF),  # noncharacters
    (0xFE00, 0xFE0D),  # variation selectors other than those of emoji: they can carry hidden text
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFA0, 0xFFA0),  # half-width Hangul filler
    (0xFFF0, 0xFFFB),  # unassigned and interlinear annotation
    (0x13430, 0x1343F),  # hieroglyph format controls
    (0x1BCA0, 0x1BCA3),  # shorthand format controls
    (0x1D173, 0x1D17A),  # musical format controls
    (0xE0000, 0xE0FFF),  # tags, supplementary variation selectors
    *((plane | 0xFFFE, plane | 0xFFFF) for plane in range(0, 0x110000, 0x10000)),
)
_DROPPED: Final = "\ufe0e\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff\u200d"
_FIRST_FLAG_LETTER: Final = 0x1F1E6
_LAST_FLAG_LETTER: Final = 0x1F1FF
_EMOJI: Final = "\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_JOINER_BEFORE_EMOJI: Final = f"\u200d(?=[{_DROPPED}]*[{_EMOJI}])"

_CLASS: Final = "".join(
    [
        "\x00-\x1f\x7f",
        _DROPPED[:-1],
        "\U0001f1e6-\U0001f1ff",
        *(f"{chr(first)}-{chr(last)}" for first, last in _HIDDEN),
    ]
)
_UNSAFE: Final = re.compile(f"[{_CLASS}]|{_JOINER_BEFORE_EMOJI}")
COLOUR_SEQUENCE: Final = re.compile("\x1b\\[([0-9;:]*)m")
"""A sequence that only changes the colours of a terminal."""

_UNSAFE_OR_COLOUR: Final = f"{COLOUR_SEQUENCE.pattern}|{_UNSAFE.pattern}"
"""Compiled on first use, because compiling would delay the first screen."""
_INVISIBLE: Final = f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in _HIDDEN)}]"
_UNSAFE_OR_BREAK: Final = re.compile(f"\r\n|[{_CLASS}]|{_JOINER_BEFORE_EMOJI}")


def _visible_text(char: str) -> str:
    """Return the visible replacement of an unsafe character."""
    if char == "\t":
        return TAB
    if char in _DROPPED:
        return ""
    code = ord(char)
    if _FIRST_FLAG_LETTER <= code <= _LAST_FLAG_LETTER:
        return chr(ord("A") + code - _FIRST_FLAG_LETTER)
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    if code == 0x7F:
        return "␡"
    return f"⟨U+{code:04X}⟩"


def _visible_match(match: re.Match[str]) -> str:
    return _visible_text(match[0])


def _visible_match_in_one_line(match: re.Match[str]) -> str:
    char = match[0]
    if char in ("\n", "\r\n"):
        return LINE_BREAK
    return " " if char == "\t" else _visible_text(char)


def _is_plain(text: str) -> bool:
    """Return whether a text is printable ASCII, a fast test that most lines pass."""
    return text.isascii() and text.isprintable()


def invisible_in(text: str) -> str | None:
    """Return the first invisible character of a text as a code such as ``U+3164``, if any."""
    match = re.search(_INVISIBLE, text)
    return None if match is None else f"U+{ord(match[0]):04X}"


def safe_line(text: str) -> str:
    """Make a line fit for display; a line break in it becomes ``␊`` or ``␍``."""
    return text if _is_plain(text) else _UNSAFE.sub(_visible_match, text)


def safe_line_map(text: str, *, drops_colours: bool = False) -> tuple[str, list[int] | None]:
    """Make a line fit for display, and return the displayed offset of each code point.

    The list has ``len(text) + 1`` offsets: one for each code point, then the length of the
    displayed line. So the code points ``[start, end)`` are displayed at ``[offsets[start],
    offsets[end])``. The list is None if the displayed line equals the text.

    Args:
        text: One physical line.
        drops_colours: True to drop sequences of colours (``COLOUR_SEQUENCE``) instead of showing
            them.
    """
    unsafe = re.compile(_UNSAFE_OR_COLOUR) if drops_colours else _UNSAFE
    if _is_plain(text) or unsafe.search(text) is None:
        return text, None
    parts: list[str] = []
    offsets: list[int] = []
    position = 0
    displayed_length = 0
    for match in unsafe.finditer(text):
        start = match.start()
        offsets.extend(range(displayed_length, displayed_length + start - position + 1))
        sequence = match[0]
        symbol = _visible_text(sequence) if len(sequence) == 1 else ""
        parts += (text[position:start], symbol)
        displayed_length += start - position + len(symbol)
        offsets.extend([displayed_length] * (len(sequence) - 1))
        position = match.end()
    offsets.extend(range(displayed_length, displayed_length + len(text) - position + 1))
    parts.append(text[position:])
    return "".join(parts), offsets


def one_line(text: str, limit: int | None = None) -> str:
    """Return a text as one line that is fit for display.

    A line break (``\\n`` or ``\\r\\n``) becomes ``⏎``.

    Args:
        text: The text.
        limit: The most code points of the result; a text that is cut ends in ``…``. None for any
            number.
    """
    if limit is None:
        return _unlimited_line(text)
    if limit < 1:
        return ""
    beginning = text[: 2 * limit + 16]  # more than ``limit``, as some characters are dropped
    line = _unlimited_line(beginning)
    if len(line) <= limit and len(beginning) < len(text):
        # Characters were dropped, so that more of the text fits.
        line = _unlimited_line(text)
    return line if len(line) <= limit else line[: limit - 1] + ELLIPSIS


def quote_line(quote: str, limit: int) -> str:
    """Return a quote as one line that is fit for a message; white space becomes one space.

    Args:
        quote: The quote, whose indentation would fill the line.
        limit: The most code points of the result; a quote that is cut ends in ``…``.
    """
    return one_line(" ".join(quote.split()), limit)


def _unlimited_line(text: str) -> str:
    return text if _is_plain(text) else _UNSAFE_OR_BREAK.sub(_visible_match_in_one_line, text)


def line_ranges(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line of a text, without the line break.

    Lines end at ``\\n`` or ``\\r\\n``; a lone ``\\r`` and the separators of Unicode end no line. A
    break at the very end opens no further line. An empty text is one empty line.

    Args:
        text: The text.
        start: The offset of the first line.
    """
    while True:
        line_feed = text.find("\n", start)
        if line_feed < 0:
            yield start, len(text)
            return
        has_return = line_feed > start and text[line_feed - 1] == "\r"
        yield start, line_feed - 1 if has_return else line_feed
        start = line_feed + 1
        if start == len(text):
            return


def iter_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, each fit for display."""
    return (safe_line(text[start:end]) for start, end in line_ranges(text))


def display_lines(text: str) -> list[str]:
    """Return the lines of a text, each fit for display."""
    return list(iter_lines(text))

"""JSON formatted for reading, with a conversion between its offsets and those of the source.

It is formatted from the top on demand, so that a JSON text of 100 MB opens quickly.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final, Literal

from msgspec import Struct

from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.ui.text.highlighting import DIFF, JSON, LANGUAGES, MARKDOWN, OUTPUT, TextRegion

SLICE_CHARS: Final = 1 << 13
"""The code points of the source that are formatted at a time.

This takes a few milliseconds.
"""

CHECKED_CHARS: Final = 1 << 18
"""The longest text, in code points, that is parsed before it is formatted."""

SHORT_CHARS: Final = 60
"""The longest JSON, in code points, that stays on one line.

With line breaks in a string, it is always formatted.
"""

INDENT: Final = "  "
MOST_DEPTH: Final = 40
"""The depth from which values are not indented further."""

UNFOLDED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("cmd", "command", "script"), "bash"),
    **dict.fromkeys(("code", "source"), "python"),
    **dict.fromkeys(("diff", "patch"), DIFF),
    **dict.fromkeys(("content", "input", "message", "query", "text", "thought"), MARKDOWN),
    **dict.fromkeys(("arguments", "output", "stderr", "stdin", "stdout"), OUTPUT),
    **dict.fromkeys(("file_text", "new_str", "new_string", "old_str", "old_string"), OUTPUT),
}
"""The fields with strings that are shown unescaped, and the syntax of their text.

In some fields a file name before the field decides the syntax.
"""

_OF_FILES: Final = frozenset(
    ["content", "file_text", "new_str", "new_string", "old_str", "old_string"]
)
"""The fields with the content of a file. A file name before them decides their syntax."""

_FILE_NAMES: Final = frozenset(["file", "file_name", "file_path", "filename", "path"])

NESTED_CHARS: Final = 1 << 15
"""The longest string, in code points, in which JSON is formatted too."""

LONG_STRING: Final = 200
"""The longest string on one line, in code points, that is not searched for syntax."""

_LONGEST_KEY: Final = 64
_FLAT_CHARS: Final = 1 << 16
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_STRING_PART: Final = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_SCALAR: Final = re.compile(
    r"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|NaN|-?Infinity)"
    r"(?=[\s,\]}]|$)"
)
_FLAT: Final = re.compile(
    r'\[(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+\]', re.DOTALL
)  # no list or object in it
_ESCAPE: Final = re.compile(r'\\[nt"\\]|\\.', re.DOTALL)
_HEX: Final = "[0-9a-fA-F]"
_ESCAPED: Final = re.compile(
    rf"(?:\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}|\\u{_HEX}{{4}})|\\.", re.DOTALL
)
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_UNESCAPED: Final = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\\": "\\"}


class _Level(Struct, frozen=True):
    """An open object or list.

    Attributes:
        is_list: True for a list.
        flat: True if it stays on one line.
        key: The key of the field that contains it.
    """

    is_list: bool
    flat: bool
    key: str


class _Side:
    """The source or the shown text, divided into pieces as far as it is formatted.

    Both sides have the same number of pieces. In a piece of equal length, code points correspond
    one to one.
    """

    def __init__(self) -> None:
        """Begin without a piece."""
        self.end = 0
        """The number of formatted code points."""
        self.starts = array("Q")
        """The start of each piece."""
        self.lengths = array("Q")
        """The length of each piece."""

    def convert(self, offset: int, other: _Side) -> int:
        """Convert an offset to an offset in the other side.

        Between two pieces, the result is the start of the next piece. In a piece of different
        lengths, it is the start of that piece.

        Args:
            offset: The offset.
            other: The other side.
        """
        if offset >= self.end or not self.starts:
            return other.end + max(0, offset - self.end)
        piece = max(0, bisect_right(self.starts, offset) - 1)
        offset_in_piece = max(0, offset - self.starts[piece])
        if offset_in_piece < self.lengths[piece]:
            has_same_length = self.lengths[piece] == other.lengths[piece]
            return other.starts[piece] + (offset_in_piece if has_same_length else 0)
        if piece + 1 < len(self.starts):
            return other.starts[piece + 1]
        return other.starts[piece] + other.lengths[piece]

    def convert_range(self, start: int, end: int, other: _Side) -> tuple[int, int]:
        """Convert a range to a range in the other side.

        In a piece of different lengths, the range extends to the end of the piece.

        Args:
            start: The first code point.
            end: The code point after the range.
            other: The other side.
        """
        other_start = self.convert(start, other)
        last = end - 1
        if last < start:
            return other_start, other_start
        if last >= self.end:
            return other_start, self.convert(last, other) + 1
        piece = bisect_right(self.starts, last) - 1
        if piece < 0:  # the white space before the first piece
            return other_start, other_start
        length = other.lengths[piece]
        if length == self.lengths[piece]:
            length = min(end - self.starts[piece], length)
        return other_start, max(other_start, other.starts[piece] + length)


class PrettyText:
    """A formatted JSON text; the part after ``shown_end`` is shown unformatted.

    It can be sliced and searched like a string. Offsets are code points. An offset in white space
    that only one side has is converted to the next part that both sides have.
    """

    def __init__(self, source: str) -> None:
        """Begin with nothing formatted."""
        self.source = source
        self.broken = False
        """True if the source is no JSON. The remaining source is shown unchanged."""
        self._source_side = _Side()  # the source
        self._shown_side = _Side()  # the shown text
        self._new_texts: list[str] = []  # the shown texts that are not in a part yet
        self._shown_parts: list[str] = []  # the shown text
        self._part_starts = array("Q")  # the offset of each part
        # The state of the parser.
        self._levels: list[_Level] = []
        self._expected: Literal["value", "key", "colon", "comma"] = "value"
        self._is_level_empty = False  # True directly after an opening bracket
        self._string_start = -1  # the source offset of the open string; -1 outside of strings
        self._string_shown_start = 0  # the offset at which the content of that string is shown
        self._string_has_lines = False
        self._last_string = ""  # a possible key
        self._key = ""  # the key of the current value
        self._file_syntax = ""  # the syntax that follows from the last file name
        # Long strings and strings with line breaks are regions with their own syntax.
        self._string_regions: list[TextRegion] = []

    @property
    def complete(self) -> bool:
        """True if the whole source is formatted, or is no JSON."""
        return self.broken or self._source_side.end >= len(self.source)

    @property
    def shown_end(self) -> int:
        """The number of shown code points that are formatted."""
        return self._shown_side.end

    @property
    def source_end(self) -> int:
        """The number of code points of the source that are formatted."""
        return self._source_side.end

    def whole(self) -> str:
        """Format the whole source if it is JSON, and return the shown text."""
        while not self.complete:
            self.extend()
        return self[:]

    def extend(self, chars: int = SLICE_CHARS) -> None:
        """Format more of the source.

        Args:
            chars: The approximate number of code points.
        """
        stop = min(len(self.source), self._source_side.end + chars)
        while self._source_side.end < stop and not self.broken:
            if self._string_start >= 0:
                self._continue_string(stop)
            else:
                self._read_token(stop)
        if self._source_side.end >= len(self.source) and (self._levels or self._string_start >= 0):
            self.broken = True  # the source ends within an object, a list or a string
        if self._new_texts:
            part = "".join(self._new_texts)
            self._part_starts.append(self._shown_side.end - len(part))
            self._shown_parts.append(part)
            self._new_texts = []

    def __len__(self) -> int:
        return self._shown_side.end + len(self.source) - self._source_side.end

    def __getitem__(self, index: int | slice, /) -> str:
        """Return a character or a slice of the shown text."""
        if isinstance(index, int):
            return self[index : index + 1] if index >= 0 else self[len(self) + index :][:1]
        start, end, _step = index.indices(len(self))
        texts: list[str] = []
        # Begin with the last part that starts at or before ``start``.
        for number in range(
            max(0, bisect_right(self._part_starts, start) - 1), len(self._shown_parts)
        ):
            part_start = self._part_starts[number]
            if part_start >= end:
                break
            texts.append(self._shown_parts[number][max(0, start - part_start) : end - part_start])
        shown_end = self._shown_side.end
        # The rest is the unformatted source, at shifted offsets.
        if end > shown_end:
            shift = self._source_side.end - shown_end
            texts.append(self.source[max(start, shown_end) + shift : end + shift])
        return "".join(texts)

    def find(self, part: str, begin: int, end: int, /) -> int:
        """Return the first offset of ``part`` in a range, or -1."""
        index = self[begin:end].find(part)
        return index + begin if index >= 0 else -1

    def rfind(self, part: str, begin: int, end: int, /) -> int:
        """Return the last offset of ``part`` in a range, or -1."""
        index = self[begin:end].rfind(part)
        return index + begin if index >= 0 else -1

    def endswith(self, part: str, /) -> bool:
        """Check if the text ends with ``part``."""
        return self[len(self) - len(part) :] == part

    def region_at(self, offset: int) -> TextRegion:
        """Return the region of the string around an offset, or of the JSON between two strings.

        Short strings on one line belong to the JSON around them. Unformatted text is one region
        without a syntax.
        """
        if offset >= self._shown_side.end:
            return TextRegion(self._shown_side.end, len(self), "")
        next_number = bisect_right(self._string_regions, offset, key=attrgetter("start"))
        start = 0
        if next_number > 0:
            string_region = self._string_regions[next_number - 1]
            if offset < string_region.end:
                return string_region
            start = string_region.end
        end = self._shown_side.end
        if next_number < len(self._string_regions):
            end = self._string_regions[next_number].start
        return TextRegion(start, end, JSON)

    def _update_string_region(self) -> None:
        """Extend the region of the current string to the end of the formatted text.

        A string gets a region once it is long or has line breaks.
        """
        start = self._string_shown_start
        end = self._shown_side.end
        if self._string_regions and self._string_regions[-1].start == start:
            self._string_regions[-1] = self._string_regions[-1]._replace(end=end)
        elif end - start > LONG_STRING or self._string_has_lines:
            indent = len(INDENT) * min(len(self._levels), MOST_DEPTH)
            self._string_regions.append(TextRegion(start, end, self._string_syntax, indent))

    @property
    def _string_syntax(self) -> str:
        if self._key in _OF_FILES and self._file_syntax:
            return self._file_syntax
        return UNFOLDED.get(self._key, OUTPUT)

    def to_source(self, offset: int) -> int:
        """Return the code point of the source that is shown at an offset."""
        return self._shown_side.convert(offset, self._source_side)

    def to_shown(self, offset: int) -> int:
        """Return the offset at which a code point of the source is shown."""
        return self._source_side.convert(offset, self._shown_side)

    def range_to_shown(self, start: int, end: int) -> tuple[int, int]:
        """Return the range that shows a range of the source.

        Args:
            start: The first code point of the range.
            end: The code point after the range.
        """
        return self._source_side.convert_range(start, end, self._shown_side)

    def range_to_source(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the source that a shown range shows.

        Args:
            start: The first shown code point of the range.
            end: The shown code point after the range.
        """
        return self._shown_side.convert_range(start, end, self._source_side)

    def _add_text(self, text: str, source: int, length: int) -> None:
        """Show a text for a part of the source, and move on to the end of the part.

        Args:
            text: The text to show. If it is as long as the part, their code points correspond one
                to one.
            source: The offset of the part in the source.
            length: The number of code points of the part.
        """
        shown_side = self._shown_side
        source_side = self._source_side
        # Extend the last piece if this text continues it, and code points correspond in both.
        if (
            len(text) == length
            and shown_side.starts
            and shown_side.lengths[-1] == source_side.lengths[-1]
            and shown_side.starts[-1] + shown_side.lengths[-1] == shown_side.end
            and source_side.starts[-1] + source_side.lengths[-1] == source
        ):
            shown_side.lengths[-1] += length
            source_side.lengths[-1] += length
        else:
            shown_side.starts.append(shown_side.end)
            shown_side.lengths.append(len(text))
            source_side.starts.append(source)
            source_side.lengths.append(length)
        self._add_space(text)
        self._source_side.end = source + length

    def _add_space(self, text: str) -> None:
        """Show added white space, which has no counterpart in the source."""
        self._new_texts.append(text)
        self._shown_side.end += len(text)

    def _indent(self) -> str:
        """Return the white space before a line within the open levels."""
        return INDENT * min(len(self._levels), MOST_DEPTH)

    def _read_token(self, stop: int) -> None:
        """Format the next token, or the beginning of a string.

        Skip white space if there is nothing else before ``stop``. Set ``broken`` for an invalid
        token.
        """
        space = _SPACE.match(self.source, self._source_side.end, stop)
        offset = self._source_side.end if space is None else space.end()
        if offset == stop:
            self._source_side.end = offset
            return
        char = self.source[offset]
        if not self._is_expected(char):
            self.broken = True
        elif char in "}]":
            self._close_level(char, offset)
        elif char == ",":
            self._begin_item(offset)
        elif char == ":":
            self._add_text(char, offset, 1)
            self._add_space(" ")
            self._expected = "value"
            self._key = self._last_string
        else:
            self._begin_value(char, offset)

    def _is_expected(self, char: str) -> bool:
        """Check if a token with this first character is valid here."""
        if char in "}]":
            # "]" closes a list, and "}" closes an object.
            closes_level = bool(self._levels) and self._levels[-1].is_list == (char == "]")
            return closes_level and (self._is_level_empty or self._expected == "comma")
        if char in ",:":
            return bool(self._levels) and self._expected == ("comma" if char == "," else "colon")
        return self._expected == "value" or (self._expected == "key" and char == '"')

    def _begin_item(self, offset: int) -> None:
        """Format the comma at an offset, and expect the next item."""
        self._add_text(",", offset, 1)
        level = self._levels[-1]
        self._add_space(" " if level.flat else f"\n{self._indent()}")
        self._expected = "value" if level.is_list else "key"
        if not level.is_list:  # all values of a list have the key of the list
            self._key = ""

    def _close_level(self, char: str, offset: int) -> None:
        level = self._levels.pop()
        if not (self._is_level_empty or level.flat):  # else the bracket stays on its line
            self._add_space(f"\n{self._indent()}")
        self._is_level_empty = False
        self._key = level.key
        self._expected = "comma"
        self._add_text(char, offset, 1)

    def _begin_value(self, char: str, offset: int) -> None:
        """Format a scalar, or the beginning of a string, an object or a list.

        Set ``broken`` if there is none of these.
        """
        scalar = None
        if char not in '"{[':
            scalar = _SCALAR.match(self.source, offset)
            if scalar is None:
                self.broken = True
                return
        if self._is_level_empty and not self._levels[-1].flat:
            self._add_space(f"\n{self._indent()}")
        self._is_level_empty = False
        if scalar is not None:
            self._add_text(scalar[0], offset, len(scalar[0]))
            self._expected = "comma"
        elif char == '"':
            self._add_text(char, offset, 1)
            self._string_start = offset
            self._string_shown_start = self._shown_side.end
            self._string_has_lines = False
            self._format_json_in_string(offset + 1)
        else:
            self._open_level(char, offset)

    def _open_level(self, char: str, offset: int) -> None:
        end = offset + _FLAT_CHARS
        is_flat = char == "[" and _FLAT.match(self.source, offset, end) is not None
        self._levels.append(_Level(char == "[", is_flat, self._key))
        self._is_level_empty = True
        self._expected = "value" if char == "[" else "key"
        if char == "{":  # all values of a list have the key of the list
            self._key = ""
        self._add_text(char, offset, 1)

    def _continue_string(self, stop: int) -> None:
        """Format the open string up to about ``stop``, or to its end.

        Set ``broken`` if the source ends within the string.
        """
        start = self._source_side.end
        # An escape has two characters, so a shorter range may hold no complete part.
        match = _STRING_PART.match(self.source, start, max(stop, start + 2))
        end = start if match is None else match.end()
        if end > start:
            part = self.source[start:end]
            is_shown_unescaped = self._key in UNFOLDED and self._expected == "value"
            if is_shown_unescaped and "\\" in part:
                self._add_unescaped(part, start)
            else:
                self._add_text(part, start, end - start)
            self._update_string_region()
        if self.source[end : end + 1] == '"':
            self._end_string(end)
        elif end == start:
            self.broken = True

    def _end_string(self, end: int) -> None:
        """Format the closing quote at an offset.

        Remember the string as a possible key, or as the file name that gives later fields their
        syntax.
        """
        start = self._string_start + 1
        self._string_start = -1
        if self._expected == "value" and self._key in _FILE_NAMES:
            _, _, suffix = self.source[start:end].rpartition(".")
            self._file_syntax = LANGUAGES.get(suffix.lower(), "")
        self._last_string = self.source[start:end] if end - start <= _LONGEST_KEY else ""
        self._expected = "colon" if self._expected == "key" else "comma"
        self._add_text('"', end, 1)
        # The quote extends an existing region, but never begins one.
        has_region = bool(self._string_regions) and (
            self._string_regions[-1].start == self._string_shown_start
        )
        if has_region:
            self._update_string_region()

    def _add_unescaped(self, part: str, source: int) -> None:
        """Show a part of a string unescaped, with its lines indented.

        Args:
            part: The part as it is in the source.
            source: The offset of the part in the source.
        """
        shown_until = 0
        for match in _ESCAPE.finditer(part):
            char = _UNESCAPED.get(match[0])
            if char is None:
                continue
            if match.start() > shown_until:
                plain_text = part[shown_until : match.start()]
                self._add_text(plain_text, source + shown_until, len(plain_text))
            self._add_text(char, source + match.start(), 2)
            if char == "\n":
                self._string_has_lines = True
                self._add_space(self._indent())
            shown_until = match.end()
        if shown_until < len(part):
            self._add_text(part[shown_until:], source + shown_until, len(part) - shown_until)

    def _format_json_in_string(self, start: int) -> None:
        """Format the content of the string that begins at an offset, if the content is JSON."""
        if self._expected != "value" or self.source[start : start + 1] not in ("{", "["):
            return
        match = _STRING_PART.match(self.source, start, start + NESTED_CHARS)
        end = start if match is None else match.end()
        if self.source[end : end + 1] != '"':
            return
        content, offsets = _unescape_with_offsets(self.source, start, end)
        nested = pretty_json(content)
        if nested is None:
            return
        nested_text = nested.whole()
        if nested.broken:
            return
        indent = self._indent()
        self._add_nested_text(nested, nested_text, offsets, indent)
        for region in nested._string_regions:
            region_start = offsets[nested.to_source(region.start)]
            # The display may add white space after the last character; exclude it.
            region_end = offsets[nested.to_source(region.end - 1) + 1]
            shown_range = self.range_to_shown(region_start, region_end)
            nested_indent = region.indent + len(indent)
            self._string_regions.append(TextRegion(*shown_range, region.syntax, nested_indent))
        self._string_shown_start = self._shown_side.end  # only the closing quote is left

    def _add_nested_text(
        self, nested: PrettyText, nested_text: str, offsets: Sequence[int], indent: str
    ) -> None:
        """Show formatted JSON that is the content of a string.

        Args:
            nested: The formatted JSON.
            nested_text: Its whole text.
            offsets: For each code point of the source of ``nested``, its offset in this source.
            indent: The white space before each line except the first.
        """
        shown_until = 0
        pieces = zip(
            nested._shown_side.starts,
            nested._shown_side.lengths,
            nested._source_side.starts,
            nested._source_side.lengths,
            strict=True,
        )
        for shown_start, shown_length, source_start, source_length in pieces:
            self._add_space(nested_text[shown_until:shown_start].replace("\n", "\n" + indent))
            shown_until = shown_start + shown_length
            text = nested_text[shown_start:shown_until]
            piece_offsets = offsets[source_start : source_start + source_length + 1]
            if shown_length == source_length:
                self._add_mapped_text(text, piece_offsets)
            else:
                self._add_text(text, piece_offsets[0], piece_offsets[-1] - piece_offsets[0])
            if text == "\n":  # a string of the nested JSON continues on a new line
                self._add_space(indent)

    def _add_mapped_text(self, text: str, offsets: Sequence[int]) -> None:
        """Show a text that is partly escaped in the source.

        ``offsets`` are the offsets in the source of its code points and of its end. Unescaped code
        points are added together.
        """
        start = 0
        while start < len(text):
            end = start + 1
            is_unescaped = offsets[end] - offsets[start] == 1
            while is_unescaped and end < len(text) and offsets[end + 1] - offsets[end] == 1:
                end += 1
            self._add_text(text[start:end], offsets[start], offsets[end] - offsets[start])
            start = end


def _unescape_with_offsets(source: str, start: int, end: int) -> tuple[str, list[int]]:
    """Unescape the content of a string.

    Return it with the offsets in the source of its code points and of its end.
    """
    parts: list[str] = []
    offsets: list[int] = []
    copied_until = start
    for match in _ESCAPED.finditer(source, start, end):
        escape = match[0]
        char = escape[1:]
        if len(char) > 1:  # such as ``u00e9``
            char = str(load_json(f'"{escape}"'))
        parts += (source[copied_until : match.start()], _CONTROLS.get(char, char))
        offsets += range(copied_until, match.start() + 1)
        copied_until = match.end()
    parts.append(source[copied_until:end])
    offsets += range(copied_until, end + 1)
    return "".join(parts), offsets


def pretty_json(text: str) -> PrettyText | None:
    """Begin to format a JSON object or list, and return it.

    Return None for any other text, and for JSON that fits on a line.
    """
    # An empty object or list has two characters.
    if len(text) <= 2 or not _looks_like_json(text):
        return None
    # An escaped line break becomes a new line, so such a text does not fit on one line.
    if len(text) <= SHORT_CHARS and r"\n" not in text:
        return None
    # Parsing a longer text takes too long, so only its brackets are checked.
    if len(text) <= CHECKED_CHARS:
        try:
            load_json(text)
        except InvalidJSON:
            return None
    pretty = PrettyText(text)
    pretty.extend()
    return None if pretty.broken else pretty


def _looks_like_json(text: str) -> bool:
    """Check if a text begins and ends with matching brackets."""
    head = text[:64].lstrip()
    tail = text[-64:].rstrip()
    return f"{head[:1]}{tail[-1:]}" in ("{}", "[]")

"""JSON formatted for reading, with a conversion between its offsets and those of the source.

It is formatted from the top on demand, so that 100 MB cost as much as the part that is shown.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Literal

from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.ui.text.highlighting import DIFF, JSON, LANGUAGES, MARKDOWN, OUTPUT, TextRegion

SLICE_CHARS: Final = 1 << 13
"""The code points of the source that are formatted at a time, in a few milliseconds."""

CHECKED_CHARS: Final = 1 << 18
"""The most code points of a text that is parsed before it is formatted."""

SHORT_CHARS: Final = 60
"""The most code points of JSON that stays on its line, unless a string in it has line breaks."""

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
"""The fields whose strings are shown unescaped, with the syntax of their text.

If a file name comes before such a field, the name may give the syntax instead.
"""

_OF_FILES: Final = frozenset(
    ["content", "file_text", "new_str", "new_string", "old_str", "old_string"]
)
"""The fields with the content of a file, whose syntax follows from a file name before them."""

_FILE_NAMES: Final = frozenset(["file", "file_name", "file_path", "filename", "path"])

NESTED_CHARS: Final = 1 << 15
"""The most code points of JSON in a string that is formatted too."""

LONG_STRING: Final = 200
"""The most code points of a string on one line that is highlighted as a string only."""

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


@dataclass(frozen=True, slots=True)
class _Level:
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
    """The source or the shown text, as far as it is formatted, in pieces.

    The pieces of both have the same numbers. If they have the same length in both, each code point
    of one shows the code point at the same position of the other.
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
        """Convert an offset to one in the other side.

        An offset between two pieces is converted to the start of the next piece. An offset within a
        piece of different lengths is converted to the start of the piece.

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
        """Convert a range to one in the other side.

        A range that ends in a piece whose lengths differ between the sides includes all of it.

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
    """A formatted source; the part after ``shown_end`` is shown as it is.

    It is read like a string: slices and ``find`` cost as much as they read. Offsets are code
    points. An offset in added white space is converted to the begin of the next part of the source.
    An offset in white space of the source that is not shown is converted to the begin of the next
    shown part.
    """

    def __init__(self, source: str) -> None:
        """Begin with nothing formatted."""
        self.source = source
        self.broken = False
        """True if it is not JSON; the remaining source is shown as it is."""
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
        # The regions of long strings and of strings with line breaks; each has its own syntax.
        self._string_regions: list[TextRegion] = []

    # The formatted part

    @property
    def complete(self) -> bool:
        """True if the whole source is formatted, or turned out not to be JSON."""
        return self.broken or self._source_side.end >= len(self.source)

    @property
    def shown_end(self) -> int:
        """The number of shown code points that are formatted; the rest is as in the source."""
        return self._shown_side.end

    @property
    def source_end(self) -> int:
        """The number of code points of the source that are formatted."""
        return self._source_side.end

    def whole(self) -> str:
        """Format the whole source, as far as it is JSON, and return the shown text."""
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

    # Like a string

    def __len__(self) -> int:
        return self._shown_side.end + len(self.source) - self._source_side.end

    def __getitem__(self, index: int | slice, /) -> str:
        """Return a character or a slice of the shown text."""
        if isinstance(index, int):
            return self[index : index + 1] if index >= 0 else self[len(self) + index :][:1]
        start, end, _step = index.indices(len(self))
        texts: list[str] = []
        # The first part to use is the last one that begins at or before ``start``.
        for number in range(
            max(0, bisect_right(self._part_starts, start) - 1), len(self._shown_parts)
        ):
            part_start = self._part_starts[number]
            if part_start >= end:
                break
            part = self._shown_parts[number]
            texts.append(part[max(0, start - part_start) : end - part_start])
        shown_end = self._shown_side.end
        # The rest is not formatted yet: it is the source, at other offsets.
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

    # Regions with one syntax

    def region_at(self, offset: int) -> TextRegion:
        """Return the region of the string around an offset, or of the JSON between two strings.

        Short strings on one line belong to the JSON around them. Text that is not formatted is one
        region without a syntax.
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

        A string without a region gets one once it is long or has line breaks.
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
        """The syntax of the current string, from its key or from the last file name."""
        if self._key in _OF_FILES and self._file_syntax:
            return self._file_syntax
        return UNFOLDED.get(self._key, OUTPUT)

    # Conversion of offsets

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

        A part that is shown for several code points of the source counts for all of them.

        Args:
            start: The first shown code point of the range.
            end: The shown code point after the range.
        """
        return self._shown_side.convert_range(start, end, self._source_side)

    # Formatting

    def _add_text(self, text: str, source: int, length: int) -> None:
        """Show a text for a part of the source, and move on to the end of the part.

        Args:
            text: The text. If it is as long as the part, each of its code points shows the code
                point of the part at the same position.
            source: The offset of the part in the source.
            length: The number of code points of the part.
        """
        shown_side = self._shown_side
        source_side = self._source_side
        # Extend the last piece if it ends here, and its code points show one each too.
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
        """Show a text that has no part of the source."""
        self._new_texts.append(text)
        self._shown_side.end += len(text)

    def _begin_line(self, depth: int) -> None:
        """Add a line break and the indent of a depth."""
        self._add_space("\n" + INDENT * min(depth, MOST_DEPTH))

    def _read_token(self, stop: int) -> None:
        """Format the next token; of a string only its beginning.

        Only skip white space if nothing else comes before ``stop``. Set ``broken`` if the token is
        not valid here.
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
            # The innermost level is a list for "]", and an object for "}".
            closes_level = bool(self._levels) and self._levels[-1].is_list == (char == "]")
            return closes_level and (self._is_level_empty or self._expected == "comma")
        if char in ",:":
            return bool(self._levels) and self._expected == ("comma" if char == "," else "colon")
        return self._expected == "value" or (self._expected == "key" and char == '"')

    def _begin_item(self, offset: int) -> None:
        """Format the comma at an offset, after which the next item of the level follows."""
        self._add_text(",", offset, 1)
        level = self._levels[-1]
        if level.flat:
            self._add_space(" ")
        else:
            self._begin_line(len(self._levels))
        self._expected = "value" if level.is_list else "key"
        if not level.is_list:  # all values of a list have the key of the list
            self._key = ""

    def _close_level(self, char: str, offset: int) -> None:
        """End the innermost object or list with the bracket at an offset."""
        level = self._levels.pop()
        if not (self._is_level_empty or level.flat):  # else the bracket stays on its line
            self._begin_line(len(self._levels))
        self._is_level_empty = False
        self._key = level.key
        self._expected = "comma"
        self._add_text(char, offset, 1)

    def _begin_value(self, char: str, offset: int) -> None:
        """Format a scalar, or the beginning of a string (also of a key), an object or a list.

        Set ``broken`` if the source has none of these at the offset.
        """
        scalar = None
        if char not in '"{[':
            scalar = _SCALAR.match(self.source, offset)
            if scalar is None:
                self.broken = True
                return
        if self._is_level_empty and not self._levels[-1].flat:
            self._begin_line(len(self._levels))
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
        """Begin an object or a list with the bracket at an offset."""
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
        # An escape has two characters, so a shorter range might not hold any complete part.
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
        """Format the closing quote at an offset, and record the string if it may be needed later.

        A file name gives the syntax of the fields after it; a short string may be a key.
        """
        start = self._string_start + 1
        self._string_start = -1
        if self._expected == "value" and self._key in _FILE_NAMES:
            _, _, suffix = self.source[start:end].rpartition(".")
            self._file_syntax = LANGUAGES.get(suffix.lower(), "")
        self._last_string = self.source[start:end] if end - start <= _LONGEST_KEY else ""
        self._expected = "colon" if self._expected == "key" else "comma"
        self._add_text('"', end, 1)
        # The quote belongs to the region of this string, but is no reason to begin one.
        has_region = bool(self._string_regions) and (
            self._string_regions[-1].start == self._string_shown_start
        )
        if has_region:
            self._update_string_region()

    def _add_unescaped(self, part: str, source: int) -> None:
        """Show a part of a string unescaped, with aligned lines.

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
                self._add_space(INDENT * min(len(self._levels), MOST_DEPTH))
            shown_until = match.end()
        if shown_until < len(part):
            self._add_text(part[shown_until:], source + shown_until, len(part) - shown_until)

    # JSON in a string

    def _format_json_in_string(self, start: int) -> None:
        """Format the content of a string that begins at an offset, if the content is JSON.

        Otherwise change nothing.
        """
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
        indent = INDENT * min(len(self._levels), MOST_DEPTH)
        self._add_nested_text(nested, nested_text, offsets, indent)
        for region in nested._string_regions:
            region_start = offsets[nested.to_source(region.start)]
            # Exclude white space that the display adds after the last character.
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
            offsets: The offset in the source of this text of each code point of the source of
                ``nested``.
            indent: The white space before each line but the first.
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
            added_space = nested_text[shown_until:shown_start]
            self._add_space(added_space.replace("\n", "\n" + indent))
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
        """Show a text by the offsets of its code points in the source, and of the end.

        Code points that are not escaped in the source are added together.
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

    Return it with the offset in the source of each of its code points, and of the end.
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
    """Return a JSON object or list as a formatted text; only its first part is formatted yet.

    Return None for any other text, and for JSON that fits on a line.
    """
    # Two characters are an empty object or list.
    if len(text) <= 2 or not _looks_like_json(text):
        return None
    # An escaped line break becomes a new line, so that the text does not fit on one.
    if len(text) <= SHORT_CHARS and r"\n" not in text:
        return None
    # A longer text takes too long to check, and is taken for JSON by its brackets.
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

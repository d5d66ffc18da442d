"""JSON formatted for reading, with a conversion between its offsets and those of the source.

It is formatted from the top on demand, so that 100 MB cost as much as the part that is shown.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
"""The fields whose strings are shown unescaped, with the syntax of their text if no file name comes
before them."""

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
    """An open object or list; a ``flat`` one stays on one line. ``key`` is the key before it."""

    is_list: bool
    flat: bool
    key: str


class PrettyText:
    """A formatted source; the part after ``set_out`` is shown as it is.

    It is read like a string: slices and ``find`` cost as much as they read. Offsets are code
    points. An offset in added white space is converted to that of the next part with a source, and
    an offset in white space that is not shown to that of the next part that is.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.broken = False
        """True if it is not JSON; the remaining source is shown as it is."""
        self._at = 0  # the formatted code points of the source
        self._length = 0  # the code points that are shown for them
        self._new: list[str] = []
        self._parts: list[str] = []
        self._part_begins = array("Q")
        # Pieces: the begin and the length of each in the shown text and in the source.
        self._at_shown = array("Q")
        self._at_source = array("Q")
        self._shown_length = array("Q")
        self._source_length = array("Q")
        # The state of the parser.
        self._levels: list[_Level] = []
        self._expected: Literal["value", "key", "colon", "comma"] = "value"
        self._opened = False
        self._string_from = -1
        self._string_shown = 0  # the offset at which the content of that string is shown
        self._string_has_lines = False
        self._last_string = self._key = ""
        self._file_written = ""
        # Long strings, and those with line breaks, which have a syntax of their own.
        self._strings_begin = array("Q")
        self._strings: list[TextRegion] = []

    # What has been set out

    @property
    def complete(self) -> bool:
        """True if the whole source is formatted, or is not JSON."""
        return self.broken or self._at >= len(self.source)

    @property
    def set_out(self) -> int:
        """The shown code points that are formatted; those after them are as in the source."""
        return self._length

    @property
    def read(self) -> int:
        """The formatted code points of the source."""
        return self._at

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
        stop = min(len(self.source), self._at + chars)
        while self._at < stop and not self.broken:
            if self._string_from >= 0:
                self._continue_string(stop)
            else:
                self._read_token(stop)
        if self._at >= len(self.source) and (self._levels or self._string_from >= 0):
            self.broken = True
        if self._new:
            part = "".join(self._new)
            self._part_begins.append(self._length - len(part))
            self._parts.append(part)
            self._new = []

    # Like a string

    def __len__(self) -> int:
        return self._length + len(self.source) - self._at

    def __getitem__(self, index: int | slice, /) -> str:
        if isinstance(index, int):
            return self[index : index + 1] if index >= 0 else self[len(self) + index :][:1]
        begin, end, _step = index.indices(len(self))
        pieces: list[str] = []
        number = max(0, bisect_right(self._part_begins, begin) - 1)
        while number < len(self._parts) and (first := self._part_begins[number]) < end:
            pieces.append(self._parts[number][max(0, begin - first) : end - first])
            number += 1
        if end > self._length:
            shift = self._at - self._length
            pieces.append(self.source[max(begin, self._length) + shift : end + shift])
        return "".join(pieces)

    def find(self, part: str, begin: int, end: int, /) -> int:
        """Return the first offset of ``part`` in a range, or -1."""
        index = self[begin:end].find(part)
        return index + begin if index >= 0 else -1

    def rfind(self, part: str, begin: int, end: int, /) -> int:
        """Return the last offset of ``part`` in a range, or -1."""
        index = self[begin:end].rfind(part)
        return index + begin if index >= 0 else -1

    def endswith(self, part: str, /) -> bool:
        """Check whether the text ends with ``part``."""
        return self[len(self) - len(part) :] == part

    # Regions with one syntax

    def region_at(self, offset: int) -> TextRegion:
        """Return the string around an offset, or the JSON between two strings.

        Short strings on one line are not regions of their own.
        """
        if offset >= self._length:
            return TextRegion(self._length, len(self), "")
        number = bisect_right(self._strings_begin, offset) - 1
        begin = 0
        if number >= 0:
            string = self._strings[number]
            if offset < string.end:
                return string
            begin = string.end
        following = self._strings_begin[number + 1 : number + 2]
        return TextRegion(begin, following[0] if following else self._length, JSON)

    def _update_string_region(self) -> None:
        """Extend the region of the current string up to here, or begin one if it is long."""
        begin = self._string_shown
        end = self._length
        if self._strings and self._strings[-1].start == begin:
            self._strings[-1] = self._strings[-1]._replace(end=end)
        elif end - begin > LONG_STRING or self._string_has_lines:
            indent = len(INDENT) * min(len(self._levels), MOST_DEPTH)
            self._put_string(TextRegion(begin, end, self._syntax, indent))

    def _put_string(self, string: TextRegion) -> None:
        self._strings_begin.append(string.start)
        self._strings.append(string)

    @property
    def _syntax(self) -> str:
        """The syntax of the current string."""
        if self._key in _OF_FILES and self._file_written:
            return self._file_written
        return UNFOLDED.get(self._key, OUTPUT)

    # Conversion of offsets

    def to_source(self, offset: int) -> int:
        """Return the code point of the source that is shown at an offset."""
        if offset >= self._length or not self._at_shown:
            return self._at + max(0, offset - self._length)
        return _convert(
            offset, self._at_shown, self._shown_length, self._at_source, self._source_length
        )

    def to_shown(self, offset: int) -> int:
        """Return the offset at which a code point of the source is shown."""
        if offset >= self._at or not self._at_source:
            return self._length + max(0, offset - self._at)
        return _convert(
            offset, self._at_source, self._source_length, self._at_shown, self._shown_length
        )

    def range_to_shown(self, start: int, end: int) -> tuple[int, int]:
        """Return the shown range of a range of the source.

        Args:
            start: The first code point of the range.
            end: The code point after the range.
        """
        first = self.to_shown(start)
        if end <= start:
            return first, first
        if end > self._at:
            return first, self.to_shown(end)
        piece = bisect_right(self._at_source, end - 1) - 1
        if piece < 0:
            return first, first
        inside = end - self._at_source[piece]
        if self._shown_length[piece] == self._source_length[piece]:
            shown = min(inside, self._shown_length[piece])
        else:
            shown = self._shown_length[piece]
        return first, max(first, self._at_shown[piece] + shown)

    def range_to_source(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the source of a shown range.

        A part that is shown for several code points of the source counts for all of them.

        Args:
            start: The first shown code point of the range.
            end: The shown code point after the range.
        """
        first = self.to_source(start)
        if end <= start:
            return first, first
        last = end - 1
        if last >= self._length or not self._at_shown:
            return first, self.to_source(last) + 1
        piece = max(0, bisect_right(self._at_shown, last) - 1)
        inside = last - self._at_shown[piece]
        if inside >= self._shown_length[piece]:  # added white space
            return first, max(first, self._at_source[piece] + self._source_length[piece])
        if self._shown_length[piece] == self._source_length[piece]:
            return first, self._at_source[piece] + inside + 1
        return first, self._at_source[piece] + self._source_length[piece]

    # Formatting

    def _add(self, text: str, source: int, length: int) -> None:
        """Show a text for a part of the source.

        Args:
            text: The text; one of the same length shows each code point of the source by one.
            source: The first code point of the part.
            length: The code points of the part.
        """
        if (
            len(text) == length
            and self._at_shown
            and self._shown_length[-1] == self._source_length[-1]
            and self._at_shown[-1] + self._shown_length[-1] == self._length
            and self._at_source[-1] + self._source_length[-1] == source
        ):
            self._shown_length[-1] += length
            self._source_length[-1] += length
        else:
            self._at_shown.append(self._length)
            self._at_source.append(source)
            self._shown_length.append(len(text))
            self._source_length.append(length)
        self._space(text)
        self._at = source + length

    def _space(self, text: str) -> None:
        """Add white space."""
        self._new.append(text)
        self._length += len(text)

    def _line(self, depth: int) -> None:
        self._space("\n" + INDENT * min(depth, MOST_DEPTH))

    def _read_token(self, stop: int) -> None:
        space = _SPACE.match(self.source, self._at, stop)
        offset = self._at if space is None else space.end()
        if offset == stop:
            self._at = offset
            return
        char = self.source[offset]
        if not self._is_expected(char):
            self.broken = True
        elif char in "}]":
            self._close(char, offset)
        elif char == ",":
            self._add(char, offset, 1)
            level = self._levels[-1]
            if level.flat:
                self._space(" ")
            else:
                self._line(len(self._levels))
            self._expected = "value" if level.is_list else "key"
            self._key = self._key if level.is_list else ""
        elif char == ":":
            self._add(char, offset, 1)
            self._space(" ")
            self._expected = "value"
            self._key = self._last_string
        else:
            self._begin_value(char, offset)

    def _is_expected(self, char: str) -> bool:
        """Check whether a token with this first character is valid here."""
        if char in "}]":
            closes = bool(self._levels) and self._levels[-1].is_list == (char == "]")
            return closes and (self._opened or self._expected == "comma")
        if char in ",:":
            return bool(self._levels) and self._expected == ("comma" if char == "," else "colon")
        return self._expected == "value" or (self._expected == "key" and char == '"')

    def _close(self, char: str, offset: int) -> None:
        level = self._levels.pop()
        if not (self._opened or level.flat):
            self._line(len(self._levels))
        self._opened = False
        self._key = level.key
        self._expected = "comma"
        self._add(char, offset, 1)

    def _begin_value(self, char: str, offset: int) -> None:
        scalar = None
        if char not in '"{[' and (scalar := _SCALAR.match(self.source, offset)) is None:
            self.broken = True
            return
        if self._opened and not self._levels[-1].flat:
            self._line(len(self._levels))
        self._opened = False
        if scalar is not None:
            self._add(scalar[0], offset, len(scalar[0]))
            self._expected = "comma"
        elif char == '"':
            self._add(char, offset, 1)
            self._string_from = offset
            self._string_shown = self._length
            self._string_has_lines = False
            self._format_nested(offset + 1)
        else:
            end = offset + _FLAT_CHARS
            is_flat = char == "[" and _FLAT.match(self.source, offset, end) is not None
            self._levels.append(_Level(char == "[", is_flat, self._key))
            self._opened = True
            self._expected = "value" if char == "[" else "key"
            self._key = self._key if char == "[" else ""
            self._add(char, offset, 1)

    def _continue_string(self, stop: int) -> None:
        begin = self._at
        match = _STRING_PART.match(self.source, begin, max(stop, begin + 2))
        end = begin if match is None else match.end()
        if end > begin:
            part = self.source[begin:end]
            if self._key in UNFOLDED and self._expected == "value" and "\\" in part:
                self._add_unfolded(part, begin)
            else:
                self._add(part, begin, end - begin)
            self._update_string_region()
        if self.source[end : end + 1] == '"':
            first = self._string_from + 1
            self._string_from = -1
            if self._expected == "value" and self._key in _FILE_NAMES:
                suffix = self.source[first:end].rpartition(".")[2]
                self._file_written = LANGUAGES.get(suffix.lower(), "")
            self._last_string = self.source[first:end] if end - first <= _LONGEST_KEY else ""
            self._expected = "colon" if self._expected == "key" else "comma"
            self._add('"', end, 1)
            if self._strings and self._strings[-1].start == self._string_shown:
                self._update_string_region()
        elif end == begin:
            self.broken = True

    def _add_unfolded(self, part: str, begin: int) -> None:
        """Show a part of a string unescaped, with aligned lines."""
        done = 0
        for match in _ESCAPE.finditer(part):
            shown = _UNESCAPED.get(match[0])
            if shown is None:
                continue
            if match.start() > done:
                self._add(part[done : match.start()], begin + done, match.start() - done)
            self._add(shown, begin + match.start(), 2)
            if shown == "\n":
                self._string_has_lines = True
                self._space(INDENT * min(len(self._levels), MOST_DEPTH))
            done = match.end()
        if done < len(part):
            self._add(part[done:], begin + done, len(part) - done)

    # JSON in a string

    def _format_nested(self, begin: int) -> None:
        """Format the content of a string if it is JSON itself."""
        if self._expected != "value" or self.source[begin : begin + 1] not in ("{", "["):
            return
        match = _STRING_PART.match(self.source, begin, begin + NESTED_CHARS)
        end = begin if match is None else match.end()
        if self.source[end : end + 1] != '"':
            return
        inner, offsets = _unescaped(self.source, begin, end)
        nested = pretty_json(inner)
        if nested is None:
            return
        whole = nested.whole()
        if nested.broken:
            return
        indent = INDENT * min(len(self._levels), MOST_DEPTH)
        done = 0
        pieces = (nested._at_shown, nested._shown_length, nested._at_source, nested._source_length)
        for shown, length, first, count in zip(*pieces, strict=True):
            self._space(whole[done:shown].replace("\n", "\n" + indent))
            done = shown + length
            part = whole[shown:done]
            if length == count:
                self._add_mapped(part, offsets[first : first + count + 1])
            else:
                self._add(part, offsets[first], offsets[first + count] - offsets[first])
            if part == "\n":
                self._space(indent)
        for string in nested._strings:
            ends = (nested.to_source(string.start), nested.to_source(string.end - 1) + 1)
            shown_begin, shown_end = self.range_to_shown(offsets[ends[0]], offsets[ends[1]])
            deeper = string.indent + len(indent)
            self._put_string(TextRegion(shown_begin, shown_end, string.syntax, deeper))
        self._string_shown = self._length  # only the closing quote is left

    def _add_mapped(self, part: str, offsets: Sequence[int]) -> None:
        """Show a text whose code points begin at these offsets of the source."""
        begin = 0
        while begin < len(part):
            end = begin + 1
            is_plain = offsets[end] - offsets[begin] == 1
            while is_plain and end < len(part) and offsets[end + 1] - offsets[end] == 1:
                end += 1
            self._add(part[begin:end], offsets[begin], offsets[end] - offsets[begin])
            begin = end


def _unescaped(source: str, begin: int, end: int) -> tuple[str, list[int]]:
    """Unescape the content of a string; return it with the offsets of its code points."""
    parts: list[str] = []
    offsets: list[int] = []
    done = begin
    for match in _ESCAPED.finditer(source, begin, end):
        escape = match[0]
        char = escape[1:]
        if len(char) > 1:
            char = str(load_json(f'"{escape}"'))
        parts += (source[done : match.start()], _CONTROLS.get(char, char))
        offsets += range(done, match.start() + 1)
        done = match.end()
    parts.append(source[done:end])
    offsets += range(done, end + 1)
    return "".join(parts), offsets


def _convert(
    offset: int,
    begins: array[int],
    lengths: array[int],
    target_begins: array[int],
    target_lengths: array[int],
) -> int:
    piece = max(0, bisect_right(begins, offset) - 1)
    inside = max(0, offset - begins[piece])
    if inside >= lengths[piece] and piece + 1 < len(begins):
        return target_begins[piece + 1]
    if lengths[piece] == target_lengths[piece]:
        return target_begins[piece] + min(inside, lengths[piece])
    return target_begins[piece] + (target_lengths[piece] if inside >= lengths[piece] else 0)


def pretty_json(text: str) -> PrettyText | None:
    """Return the formatted text of a JSON object or list, of which the first part is formatted.

    None for any other text, and for JSON that fits on a line.
    """
    if len(text) <= 2 or not _looks_like_json(text):
        return None
    if len(text) <= SHORT_CHARS and r"\n" not in text:
        return None
    if len(text) <= CHECKED_CHARS:
        try:
            load_json(text)
        except InvalidJSON:
            return None
    pretty = PrettyText(text)
    pretty.extend()
    return None if pretty.broken else pretty


def _looks_like_json(text: str) -> bool:
    """Check the first and last character."""
    head = text[:64].lstrip()
    tail = text[-64:].rstrip()
    return bool(head and tail) and (head[0], tail[-1]) in (("{", "}"), ("[", "]"))

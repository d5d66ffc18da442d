"""JSON set out in lines for reading, with the way back from every character to its source.

It is set out from the top on, as far as it is looked at, so that 100 MB cost what a page costs.
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
"""How much of the source is set out at a time: a few milliseconds' worth."""

CHECKED_CHARS: Final = 1 << 18
"""Of longer texts it is only seen as they are set out whether they are JSON."""

SHORT_CHARS: Final = 60
"""JSON up to this long stays on its line where no string of it has line breaks."""

INDENT: Final = "  "
MOST_DEPTH: Final = 40
"""What is nested deeper is not moved further to the right."""

UNFOLDED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("cmd", "command", "script"), "bash"),
    **dict.fromkeys(("code", "source"), "python"),
    **dict.fromkeys(("diff", "patch"), DIFF),
    **dict.fromkeys(("content", "input", "message", "query", "text", "thought"), MARKDOWN),
    **dict.fromkeys(("arguments", "output", "stderr", "stdin", "stdout"), OUTPUT),
    **dict.fromkeys(("file_text", "new_str", "new_string", "old_str", "old_string"), OUTPUT),
}
"""Fields whose strings are shown with their line breaks, tabs, quotes and backslashes, and how
those are written where no file is named before them."""

_OF_FILES: Final = frozenset(
    ["content", "file_text", "new_str", "new_string", "old_str", "old_string"]
)
"""Those of them that are written as a file is, where it is named before them."""

_FILE_NAMES: Final = frozenset(["file", "file_name", "file_path", "filename", "path"])

NESTED_CHARS: Final = 1 << 15
"""JSON in a string is set out as well, up to this length."""

LONG_STRING: Final = 200
"""Shorter strings on one line are drawn as strings, whatever they hold."""

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
    """An object or a list that is open: whether it stays on its line, and the key before it."""

    is_list: bool
    flat: bool
    key: str


class PrettyText:
    """A source, of which what has been asked for is set out; what follows stands as it is.

    Read like a string: slices and ``find`` cost what is looked at. Offsets are code points. White
    space that has no source leads to the next part that has one; what is not shown (white space
    between tokens) to the next part that is.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.broken = False
        """Whether it has turned out to be no JSON; what follows stays as it is."""
        self._at = 0  # how much of the source is set out
        self._length = 0  # of what is shown of that
        self._new: list[str] = []
        self._parts: list[str] = []
        self._part_begins = array("Q")
        # Pieces: where each begins on both sides, and how long it is on both.
        self._at_shown = array("Q")
        self._at_source = array("Q")
        self._shown_length = array("Q")
        self._source_length = array("Q")
        # What stands open.
        self._levels: list[_Level] = []
        self._expected: Literal["value", "key", "colon", "comma"] = "value"
        self._opened = False
        self._string_from = -1
        self._string_shown = 0  # where the content of that string is shown
        self._string_has_lines = False
        self._last_string = self._key = ""
        self._file_written = ""
        # The strings of more than a line, which are written in a way of their own.
        self._strings_begin = array("Q")
        self._strings: list[TextRegion] = []

    # What has been set out

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be set out."""
        return self.broken or self._at >= len(self.source)

    @property
    def set_out(self) -> int:
        """How much of what is shown is set out; the rest stands as it is in the source."""
        return self._length

    @property
    def read(self) -> int:
        """How much of the source is set out."""
        return self._at

    def whole(self) -> str:
        """All of it, set out to the end, or as far as it is JSON."""
        while not self.complete:
            self.extend()
        return self[:]

    def extend(self, chars: int = SLICE_CHARS) -> None:
        """Set out about so many more code points of the source."""
        stop = min(len(self.source), self._at + chars)
        while self._at < stop and not self.broken:
            if self._string_from >= 0:
                self._go_on_with_string(stop)
            else:
                self._take_token(stop)
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

    def __getitem__(self, place: int | slice, /) -> str:
        if isinstance(place, int):
            return self[place : place + 1] if place >= 0 else self[len(self) + place :][:1]
        begin, end, _step = place.indices(len(self))
        found: list[str] = []
        number = max(0, bisect_right(self._part_begins, begin) - 1)
        while number < len(self._parts) and (first := self._part_begins[number]) < end:
            found.append(self._parts[number][max(0, begin - first) : end - first])
            number += 1
        if end > self._length:
            ahead = self._at - self._length
            found.append(self.source[max(begin, self._length) + ahead : end + ahead])
        return "".join(found)

    def find(self, part: str, begin: int, end: int, /) -> int:
        """Where ``part`` stands first between two places; -1 where it does not."""
        place = self[begin:end].find(part)
        return place + begin if place >= 0 else -1

    def rfind(self, part: str, begin: int, end: int, /) -> int:
        """Where ``part`` stands last between two places; -1 where it does not."""
        place = self[begin:end].rfind(part)
        return place + begin if place >= 0 else -1

    def endswith(self, part: str, /) -> bool:
        """Whether this is the end of it."""
        return self[len(self) - len(part) :] == part

    # What is written how

    def region_at(self, offset: int) -> TextRegion:
        """Return the string that is shown around a place, or what is between two of them.

        Strings that are short, and on one line, are no regions of their own.
        """
        if offset >= self._length:
            return TextRegion(self._length, len(self), "")
        place = bisect_right(self._strings_begin, offset) - 1
        begin = 0
        if place >= 0:
            string = self._strings[place]
            if offset < string.end:
                return string
            begin = string.end
        following = self._strings_begin[place + 1 : place + 2]
        return TextRegion(begin, following[0] if following else self._length, JSON)

    def _note_string(self) -> None:
        """Take what was shown of the string up to here for a region, where it is long."""
        begin, end = self._string_shown, self._length
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
        """How the string is written that is being shown."""
        if self._key in _OF_FILES and self._file_written:
            return self._file_written
        return UNFOLDED.get(self._key, OUTPUT)

    # From one side to the other

    def to_source(self, offset: int) -> int:
        """The code point of the source that is shown at ``offset``."""
        if offset >= self._length or not self._at_shown:
            return self._at + max(0, offset - self._length)
        return _across(
            offset, self._at_shown, self._shown_length, self._at_source, self._source_length
        )

    def to_shown(self, offset: int) -> int:
        """Where the source's code point at ``offset`` is shown."""
        if offset >= self._at or not self._at_source:
            return self._length + max(0, offset - self._at)
        return _across(
            offset, self._at_source, self._source_length, self._at_shown, self._shown_length
        )

    def range_to_shown(self, start: int, end: int) -> tuple[int, int]:
        """What is shown of the source's ``start`` to ``end`` (exclusive)."""
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
        """Return what of the source is shown from ``start`` to ``end`` (exclusive).

        Of what is shown for several code points of the source all of them are taken.
        """
        first = self.to_source(start)
        if end <= start:
            return first, first
        last = end - 1
        if last >= self._length or not self._at_shown:
            return first, self.to_source(last) + 1
        piece = max(0, bisect_right(self._at_shown, last) - 1)
        inside = last - self._at_shown[piece]
        if inside >= self._shown_length[piece]:  # white space that has no source
            return first, max(first, self._at_source[piece] + self._source_length[piece])
        if self._shown_length[piece] == self._source_length[piece]:
            return first, self._at_source[piece] + inside + 1
        return first, self._at_source[piece] + self._source_length[piece]

    # Setting out

    def _add(self, text: str, source: int, length: int) -> None:
        """Show ``text`` for the ``length`` code points of the source from ``source`` on.

        Where the two lengths are the same each code point stands for its own.
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
        """Show white space that has no source."""
        self._new.append(text)
        self._length += len(text)

    def _line(self, depth: int) -> None:
        self._space("\n" + INDENT * min(depth, MOST_DEPTH))

    def _take_token(self, stop: int) -> None:
        space = _SPACE.match(self.source, self._at, stop)
        at = self._at if space is None else space.end()
        if at == stop:
            self._at = at
            return
        char = self.source[at]
        if not self._may_come(char):
            self.broken = True
        elif char in "}]":
            self._close(char, at)
        elif char == ",":
            self._add(char, at, 1)
            level = self._levels[-1]
            if level.flat:
                self._space(" ")
            else:
                self._line(len(self._levels))
            self._expected = "value" if level.is_list else "key"
            self._key = self._key if level.is_list else ""
        elif char == ":":
            self._add(char, at, 1)
            self._space(" ")
            self._expected, self._key = "value", self._last_string
        else:
            self._begin_value(char, at)

    def _may_come(self, char: str) -> bool:
        """Whether what begins so may stand here."""
        if char in "}]":
            closes = bool(self._levels) and self._levels[-1].is_list == (char == "]")
            return closes and (self._opened or self._expected == "comma")
        if char in ",:":
            return bool(self._levels) and self._expected == ("comma" if char == "," else "colon")
        return self._expected == "value" or (self._expected == "key" and char == '"')

    def _close(self, char: str, at: int) -> None:
        level = self._levels.pop()
        if not (self._opened or level.flat):
            self._line(len(self._levels))
        self._opened = False
        self._key, self._expected = level.key, "comma"
        self._add(char, at, 1)

    def _begin_value(self, char: str, at: int) -> None:
        scalar = None
        if char not in '"{[' and (scalar := _SCALAR.match(self.source, at)) is None:
            self.broken = True
            return
        if self._opened and not self._levels[-1].flat:
            self._line(len(self._levels))
        self._opened = False
        if scalar is not None:
            self._add(scalar[0], at, len(scalar[0]))
            self._expected = "comma"
        elif char == '"':
            self._add(char, at, 1)
            self._string_from, self._string_shown = at, self._length
            self._string_has_lines = False
            self._set_out_nested(at + 1)
        else:
            flat = char == "[" and _FLAT.match(self.source, at, at + _FLAT_CHARS) is not None
            self._levels.append(_Level(char == "[", flat, self._key))
            self._opened = True
            self._expected = "value" if char == "[" else "key"
            self._key = self._key if char == "[" else ""
            self._add(char, at, 1)

    def _go_on_with_string(self, stop: int) -> None:
        at = self._at
        found = _STRING_PART.match(self.source, at, max(stop, at + 2))
        end = at if found is None else found.end()
        if end > at:
            part = self.source[at:end]
            if self._key in UNFOLDED and self._expected == "value" and "\\" in part:
                self._add_unfolded(part, at)
            else:
                self._add(part, at, end - at)
            self._note_string()
        if self.source[end : end + 1] == '"':
            first, self._string_from = self._string_from + 1, -1
            if self._expected == "value" and self._key in _FILE_NAMES:
                suffix = self.source[first:end].rpartition(".")[2]
                self._file_written = LANGUAGES.get(suffix.lower(), "")
            self._last_string = self.source[first:end] if end - first <= _LONGEST_KEY else ""
            self._expected = "colon" if self._expected == "key" else "comma"
            self._add('"', end, 1)
            if self._strings and self._strings[-1].start == self._string_shown:
                self._note_string()
        elif end == at:
            self.broken = True

    def _add_unfolded(self, part: str, at: int) -> None:
        """Some of a string with its line breaks, each line under the one before."""
        done = 0
        for match in _ESCAPE.finditer(part):
            shown = _UNESCAPED.get(match[0])
            if shown is None:
                continue
            if match.start() > done:
                self._add(part[done : match.start()], at + done, match.start() - done)
            self._add(shown, at + match.start(), 2)
            if shown == "\n":
                self._string_has_lines = True
                self._space(INDENT * min(len(self._levels), MOST_DEPTH))
            done = match.end()
        if done < len(part):
            self._add(part[done:], at + done, len(part) - done)

    # JSON in a string

    def _set_out_nested(self, begin: int) -> None:
        """Set out the string whose content begins here, where that is JSON itself."""
        if self._expected != "value" or self.source[begin : begin + 1] not in ("{", "["):
            return
        found = _STRING_PART.match(self.source, begin, begin + NESTED_CHARS)
        end = begin if found is None else found.end()
        if self.source[end : end + 1] != '"':
            return
        inner, places = _unescaped(self.source, begin, end)
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
                self._add_mapped(part, places[first : first + count + 1])
            else:
                self._add(part, places[first], places[first + count] - places[first])
            if part == "\n":
                self._space(indent)
        for string in nested._strings:
            ends = (nested.to_source(string.start), nested.to_source(string.end - 1) + 1)
            shown_begin, shown_end = self.range_to_shown(places[ends[0]], places[ends[1]])
            deeper = string.indent + len(indent)
            self._put_string(TextRegion(shown_begin, shown_end, string.syntax, deeper))
        self._string_shown = self._length  # nothing is left of it but the quote behind it

    def _add_mapped(self, part: str, places: Sequence[int]) -> None:
        """Show ``part``, each code point for what stands from its place to that of the next."""
        begin = 0
        while begin < len(part):
            end = begin + 1
            plain = places[end] - places[begin] == 1
            while plain and end < len(part) and places[end + 1] - places[end] == 1:
                end += 1
            self._add(part[begin:end], places[begin], places[end] - places[begin])
            begin = end


def _unescaped(source: str, begin: int, end: int) -> tuple[str, list[int]]:
    """What the content of a string stands for, and where each code point of it begins, with the
    end at the end."""
    parts: list[str] = []
    places: list[int] = []
    done = begin
    for match in _ESCAPED.finditer(source, begin, end):
        escape = match[0]
        char = escape[1:]
        if len(char) > 1:
            char = str(load_json(f'"{escape}"'))
        parts += (source[done : match.start()], _CONTROLS.get(char, char))
        places += range(done, match.start() + 1)
        done = match.end()
    parts.append(source[done:end])
    places += range(done, end + 1)
    return "".join(parts), places


def _across(
    offset: int,
    here: array[int],
    here_length: array[int],
    there: array[int],
    there_length: array[int],
) -> int:
    piece = max(0, bisect_right(here, offset) - 1)
    inside = max(0, offset - here[piece])
    if inside >= here_length[piece] and piece + 1 < len(here):
        return there[piece + 1]
    if here_length[piece] == there_length[piece]:
        return there[piece] + min(inside, here_length[piece])
    return there[piece] + (there_length[piece] if inside >= here_length[piece] else 0)


def pretty_json(text: str) -> PrettyText | None:
    """The text to be set out in lines where it is one JSON object or list.

    None for anything else, and for what fits on a line. The beginning is set out already.
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
    """A look at both ends, which most texts do not pass."""
    head, tail = text[:64].lstrip(), text[-64:].rstrip()
    return bool(head and tail) and (head[0], tail[-1]) in (("{", "}"), ("[", "]"))

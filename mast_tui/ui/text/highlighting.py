"""Highlighting of Markdown, code, JSON, diffs, tracebacks and the colours of a terminal.

Parts of the shown text get names, for each of which the drawing widget has a style; the text itself
does not change. The name of a part depends only on the text near it, so that any position of a long
text is highlighted without reading all text before it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from colorsys import rgb_to_hsv
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from mast_tui.safe_text import COLOUR_SEQUENCE
from mast_tui.ui.text.layout import Readable, block_at

if TYPE_CHECKING:
    from mast_tui.ui.text.json_view import PrettyText

PART_NAMES: Final = (
    *("markup", "heading", "strong", "emphasis", "code", "bullet", "cited", "link"),
    *("keyword", "name", "string", "number", "comment", "key"),
    *("added", "removed", "hunk", "error", "place"),
    *("red", "green", "yellow", "blue", "magenta", "cyan", "pale"),
)
"""The names of parts."""

MARKDOWN: Final = "markdown"
OUTPUT: Final = "output"
"""The output of a program: diffs, tracebacks and fences are highlighted, other text is plain."""
DIFF: Final = "diff"
JSON: Final = "json"

LANGUAGES: Final[Mapping[str, str]] = {
    **{name: name for name in ("c", "cpp", "css", "go", "html", "ini", "java", "json", "julia")},
    **{name: name for name in ("kotlin", "lua", "perl", "php", "r", "ruby", "scala", "sql")},
    **{name: name for name in ("swift", "toml", "typescript", "xml", "yaml", "javascript")},
    **dict.fromkeys(("bash", "sh", "shell", "zsh", "console", "mswea_bash_command"), "bash"),
    **dict.fromkeys(("python", "py", "python3", "pycon", "ipython", "tool_code"), "python"),
    "c++": "cpp",
    "cc": "cpp",
    "h": "c",
    "hpp": "cpp",
    "cs": "csharp",
    "csharp": "csharp",
    "js": "javascript",
    "jsx": "javascript",
    "ts": "typescript",
    "tsx": "typescript",
    "rs": "rust",
    "rust": "rust",
    "rb": "ruby",
    "yml": "yaml",
    "htm": "html",
    "cfg": "ini",
    "diff": DIFF,
    "patch": DIFF,
    "md": MARKDOWN,
    "markdown": MARKDOWN,
}
"""The lexers by the names of languages and the suffixes of files. Other names get none: they are
foreign text, and not every lexer is fast on every text."""

SEGMENT: Final = 1 << 15
"""The code points of a segment in which fences and hunks are searched, starting one segment before:
the end of a longer fence may be taken for a begin."""

LEXED: Final = 1 << 11
"""The code points of a program that are lexed at once, starting as many before."""

COLOUR_REACH: Final = 1 << 12
"""The code points before a position that are searched for a colour that is still set."""

_CACHE_SIZE: Final = 128


Key = TypeVar("Key")
Value = TypeVar("Value")


class TextPart(NamedTuple):
    """A part of a text, ``end`` exclusive, with its name, for which there is a style."""

    start: int
    end: int
    name: str


class TextRegion(NamedTuple):
    """A range of a text with one syntax, an unknown one if ``syntax`` is empty.

    All lines but the first are indented by ``indent`` columns.
    """

    start: int
    end: int
    syntax: str
    indent: int = 0


class Highlighter:
    """The highlighted parts of a text with one syntax, or of JSON and the strings in it."""

    def __init__(self, text: Readable, syntax: str, pretty: PrettyText | None = None) -> None:
        """Prepare a text; nothing of it is read yet.

        Args:
            text: The text as it is shown.
            syntax: ``MARKDOWN``, ``OUTPUT``, ``DIFF``, or a language.
            pretty: The same text if it is formatted JSON.
        """
        self._text = text
        self._syntax = syntax
        self._pretty = pretty
        self._segments: OrderedDict[int, list[TextRegion]] = OrderedDict()
        self._block_parts: OrderedDict[tuple[int, int], list[TextPart]] = OrderedDict()
        self._range_parts: OrderedDict[tuple[int, int], list[TextPart]] = OrderedDict()

    def changed(self) -> None:
        """Clear the caches, as the text has changed."""
        self._segments.clear()
        self._block_parts.clear()
        self._range_parts.clear()

    def parts(self, start: int, end: int) -> list[TextPart]:
        """Return the parts in a range; later ones are drawn over earlier ones.

        The parts of the last ranges are cached, as scrolling requests them again.

        Args:
            start: The first code point of the range.
            end: The code point after the range.
        """
        parts = self._range_parts.get((start, end))
        if parts is None:
            parts = list(self._parts(start, end))
            _cache(self._range_parts, (start, end), parts)
        return parts

    def _parts(self, start: int, end: int) -> Iterator[TextPart]:
        offset = start
        while offset < end:
            outer = self._region_at(offset)
            stop = min(end, outer.end)
            for region, first, last in self._regions(outer, offset, stop):
                if region.syntax in _LINE_PARTS:
                    yield from self._line_parts(region, first, last)
                elif region.syntax:
                    yield from self._code_parts(region, first, last)
            offset = max(stop, offset + 1)
        yield from _within(self._colours(start, end), start, end)

    def _region_at(self, offset: int) -> TextRegion:
        """Return the region around a position: the text, a string of JSON, or JSON between two."""
        if self._pretty is None:
            return TextRegion(0, len(self._text), self._syntax)
        return self._pretty.region_at(offset)

    def _regions(
        self, outer: TextRegion, start: int, end: int
    ) -> Iterator[tuple[TextRegion, int, int]]:
        """Yield fences, hunks and the regions between them, with their parts in a range."""
        if outer.syntax not in (MARKDOWN, OUTPUT):
            yield outer, start, end
            return
        first_segment = (start - outer.start) // SEGMENT
        last_segment = (end - 1 - outer.start) // SEGMENT
        for number in range(first_segment, last_segment + 1):
            begin = outer.start + number * SEGMENT
            first = max(start, begin)
            stop = min(end, begin + SEGMENT)
            regions = self._segment(outer, begin)
            index = bisect_right(regions, first, key=attrgetter("end"))
            while index < len(regions) and regions[index].start < stop:
                region = regions[index]
                yield region, max(first, region.start), min(stop, region.end)
                index += 1

    def _segment(self, outer: TextRegion, begin: int) -> list[TextRegion]:
        """Return the regions of the segment that begins here, and of the previous one."""
        regions = self._segments.get(begin)
        if regions is None:
            first = max(outer.start, begin - SEGMENT)
            stop = min(outer.end, begin + SEGMENT)
            regions = [
                region._replace(start=first + region.start, end=first + region.end)
                for region in split_regions(self._text[first:stop], outer.syntax, outer.indent)
            ]
            _cache(self._segments, begin, regions)
        return regions

    def _line_parts(self, region: TextRegion, start: int, end: int) -> Iterator[TextPart]:
        offset = start
        while offset < end:
            first, last = block_at(self._text, offset)
            first = max(first, region.start)
            last = min(last, region.end)
            parts = self._block_parts.get((first, last))
            if parts is None:
                begin = first
                if first > region.start and self._text[first - 1] == "\n":
                    begin = min(last, first + region.indent)
                parts = [
                    part._replace(start=begin + part.start, end=begin + part.end)
                    for part in _LINE_PARTS[region.syntax](self._text[begin:last])
                ]
                _cache(self._block_parts, (first, last), parts)
            yield from _within(parts, start, end)
            offset = max(last, offset + 1)

    def _code_parts(self, region: TextRegion, start: int, end: int) -> Iterator[TextPart]:
        lexer = _lexer(region.syntax)
        first_block = (start - region.start) // LEXED
        last_block = (end - 1 - region.start) // LEXED
        for number in range(first_block, last_block + 1):
            begin = region.start + number * LEXED
            stop = min(region.end, begin + LEXED)
            parts = self._block_parts.get((begin, stop))
            if parts is None:
                first = max(region.start, begin - LEXED)
                code = _code_parts(lexer, self._text[first:stop], first)
                parts = list(_within(code, begin, stop))
                _cache(self._block_parts, (begin, stop), parts)
            yield from _within(parts, start, end)

    def _colours(self, start: int, end: int) -> Iterator[TextPart]:
        """Yield the parts that a terminal would show in colour."""
        for begin in range(start // LEXED * LEXED, end, LEXED):
            parts = self._block_parts.get((begin, -1))
            if parts is None:
                parts = self._colours_from(begin, min(len(self._text), begin + LEXED))
                _cache(self._block_parts, (begin, -1), parts)
            yield from parts

    def _colours_from(self, begin: int, end: int) -> list[TextPart]:
        first = max(0, begin - COLOUR_REACH)
        text = self._text[first : end + COLOUR_REACH // 64]
        parts: list[TextPart] = []
        if "\x1b[" not in text:
            return parts
        pen = Pen()
        start = first
        for match in COLOUR_SEQUENCE.finditer(text):
            stop = first + match.start()
            parts += (TextPart(start, stop, name) for name in pen.names)
            pen = pen.after(match[1])
            start = first + match.end()
        parts += (TextPart(start, end, name) for name in pen.names)
        return list(_within(parts, begin, end))


def _within(parts: Iterable[TextPart], start: int, end: int) -> Iterator[TextPart]:
    for part in parts:
        first = max(part.start, start)
        last = min(part.end, end)
        if first < last:
            yield TextPart(first, last, part.name)


def _cache(cache: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    cache[key] = value
    if len(cache) > _CACHE_SIZE:
        cache.popitem(last=False)


# Fences and hunks

FENCE: Final = "fence"
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*\{?\.?([\w+#-]*)[^`\n]*$")
_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_DIFF_HEAD: Final = re.compile(
    r"diff --git |index [0-9a-f]{6,}\.\.|(?:---|\+\+\+) (?:[ab]/|/dev/null|\S+\.\w+)"
)
_OF_HUNK: Final = frozenset(["", " ", "+", "-", "\\"])
_BEFORE_DIFFS: Final = frozenset("@di-+")
_HEAD: Final = 200


def split_regions(text: str, syntax: str, indent: int = 0) -> list[TextRegion]:
    """Split a text into fences, hunks of diffs, and the regions between them.

    Args:
        text: The text; no fence is open before its first line.
        syntax: Its syntax outside of fences and hunks.
        indent: The columns by which all lines but the first are indented.
    """
    if not any(sign in text for sign in ("```", "~~~", "@@ -")):
        return [TextRegion(0, len(text), syntax, indent)]
    regions: list[TextRegion] = []
    region_start = 0
    region_syntax = syntax
    fence = ""
    fence_syntax = syntax
    old_lines = 0  # the remaining lines of the hunk in the old file
    new_lines = 0  # and in the new file
    for match in _LINE.finditer(text):
        start = match.start()
        begin = start + indent if start else 0
        line = text[begin : min(match.end(), begin + _HEAD)].rstrip("\r\n")
        line_syntax = fence_syntax
        if (old_lines or new_lines) and line[:1] in _OF_HUNK:
            line_syntax = DIFF
            old_lines -= line[:1] not in ("+", "\\") and old_lines > 0
            new_lines -= line[:1] not in ("-", "\\") and new_lines > 0
        else:
            old_lines = 0
            new_lines = 0
            sign = line.lstrip(" ")[:1]
            if sign in ("`", "~") and (opened := _FENCE.match(line)) is not None:
                if not fence:
                    fence = opened[1]
                    line_syntax = FENCE
                    fence_syntax = LANGUAGES.get(opened[2].lower(), OUTPUT)
                elif opened[1].startswith(fence) and not opened[2]:
                    fence = ""
                    line_syntax = FENCE
                    fence_syntax = syntax
            elif sign in _BEFORE_DIFFS and fence_syntax in (MARKDOWN, OUTPUT):
                hunk = _HUNK.match(line)
                if hunk is not None:
                    old_lines = int(hunk[1] or 1)
                    new_lines = int(hunk[2] or 1)
                if hunk is not None or _DIFF_HEAD.match(line) is not None:
                    line_syntax = DIFF
        if line_syntax != region_syntax or line_syntax == FENCE:
            if start > region_start:
                regions.append(TextRegion(region_start, start, region_syntax, indent))
            region_start = start
            region_syntax = line_syntax
    regions.append(TextRegion(region_start, len(text), region_syntax, indent))
    return regions


# Lines

_HEADING: Final = re.compile(r" {0,3}#{1,6} +(?=\S)")
_RULE: Final = re.compile(r" {0,3}(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$")
_CITED: Final = re.compile(r" {0,3}>+ ?")
_BULLET: Final = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]) +(?:\[[ xX]\] )?(?=\S)")
_TABLE: Final = re.compile(r"\s*\|.*\|\s*$")
_TABLE_RULE: Final = re.compile(r"\s*\|[-:| ]+\|\s*$")
_INLINE: Final = re.compile(
    r"(?<!`)(?P<tick>`{1,2})(?!`)(?P<code>[^`\n]{1,300})(?P=tick)(?!`)"
    r"|(?P<stars>\*\*)(?=[^\s*])(?P<strong>[^\n]{1,400}?)(?<=[^\s])\*\*"
    r"|(?<![\w*])\*(?=[^\s*])(?P<emphasis>[^*\n]{1,300})(?<=\S)\*(?![\w*])"
    r"|\[(?P<words>[^\]\n]{1,300})\]\((?P<goal>[^)\s]{1,500})\)"
    r"|(?P<link>https?://[^\s<>\"')\]]{1,500})"
)
_ERROR: Final = re.compile(
    r"\s*(?:Traceback \(most recent call last\):"
    r"|(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?::|\s*$))"
)
_FRAME: Final = re.compile(
    r'\s*(?:File "[^"\n]+", line \d+(?:, in \S+)?|at \S+ \([^)\n]+:\d+:\d+\))'
)
_JSON: Final = re.compile(
    r'(?P<string>"(?:[^"\\\n]|\\.)*")(?P<colon>\s*:)?'
    r"|(?P<number>-?\b\d[\d.]*(?:[eE][-+]?\d+)?\b|\b(?:true|false|null)\b)"
)


def _markdown_parts(line: str) -> Iterator[TextPart]:
    end = len(line.rstrip())
    if heading := _HEADING.match(line):
        yield TextPart(0, heading.end(), "markup")
        yield TextPart(heading.end(), end, "heading")
    elif _RULE.match(line) or _TABLE_RULE.match(line):
        yield TextPart(0, end, "markup")
        return
    elif cited := _CITED.match(line):
        yield TextPart(0, cited.end(), "markup")
        yield TextPart(cited.end(), end, "cited")
    elif bullet := _BULLET.match(line):
        yield TextPart(0, bullet.end(), "bullet")
    elif _TABLE.match(line):
        yield from (TextPart(at, at + 1, "markup") for at in range(end) if line[at] == "|")
    elif _ERROR.match(line):
        yield TextPart(0, end, "error")
        return
    yield from _inline_parts(line)


def _inline_parts(line: str) -> Iterator[TextPart]:
    for match in _INLINE.finditer(line):
        name = match.lastgroup or ""
        if name == "link":
            yield TextPart(*match.span(), "link")
            continue
        name = "link" if name == "goal" else name
        first, last = match.span("words" if name == "link" else name)
        yield TextPart(match.start(), first, "markup")
        yield TextPart(first, last, name)
        yield TextPart(last, match.end(), "markup")


def _output_parts(line: str) -> Iterator[TextPart]:
    if _ERROR.match(line):
        yield TextPart(0, len(line), "error")
    elif frame := _FRAME.match(line):
        yield TextPart(*frame.span(), "place")


def _diff_parts(line: str) -> Iterator[TextPart]:
    if line.startswith("@@"):
        yield TextPart(0, len(line), "hunk")
    elif _DIFF_HEAD.match(line):
        yield TextPart(0, len(line), "strong")
    elif line.startswith(("+", "-")):
        yield TextPart(0, len(line), "added" if line[0] == "+" else "removed")


def _json_parts(line: str) -> Iterator[TextPart]:
    for match in _JSON.finditer(line):
        if match["number"] is not None:
            yield TextPart(*match.span(), "number")
        else:
            name = "string" if match["colon"] is None else "key"
            yield TextPart(*match.span("string"), name)


def _fence_parts(line: str) -> Iterator[TextPart]:
    yield TextPart(0, len(line), "markup")


_LINE_PARTS: Final[Mapping[str, Callable[[str], Iterator[TextPart]]]] = {
    MARKDOWN: _markdown_parts,
    OUTPUT: _output_parts,
    DIFF: _diff_parts,
    JSON: _json_parts,
    FENCE: _fence_parts,
}


# Programs

_OF_TOKENS: Final = {
    "Token.Comment": "comment",
    "Token.Keyword": "keyword",
    "Token.Keyword.Constant": "number",
    "Token.Literal.Number": "number",
    "Token.Literal.String": "string",
    "Token.Literal.String.Escape": "number",
    "Token.Literal.String.Interpol": "number",
    "Token.Name.Attribute": "key",
    "Token.Name.Builtin": "name",
    "Token.Name.Class": "name",
    "Token.Name.Decorator": "name",
    "Token.Name.Function": "name",
    "Token.Name.Tag": "key",
    "Token.Operator.Word": "keyword",
}


@cache
def _lexer(language: str) -> Any:
    """Return the lexer of one of ``LANGUAGES``."""
    # Start-up: the import is slow, and few texts are programs.
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(language)


@cache
def _name_of(token: Any) -> str:
    """Return the name of the part for a token, empty for plain text."""
    while token is not None:
        if name := _OF_TOKENS.get(str(token)):
            return name
        token = token.parent
    return ""


def _code_parts(lexer: Any, code: str, begin: int) -> Iterator[TextPart]:
    for offset, token, value in lexer.get_tokens_unprocessed(code):
        if (name := _name_of(token)) and not value.isspace():
            yield TextPart(begin + offset, begin + offset + len(value), name)


# A terminal's colours

_HUES: Final = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")
_AROUND: Final = ("red", "yellow", "green", "cyan", "blue", "magenta")
"""The hues of the colour circle, 60 degrees apart."""


class Pen(NamedTuple):
    """The colours in which a terminal would continue to write.

    They are reduced to the names of six hues, which a theme draws legibly, so that no text is
    hidden by a background of its own colour.
    """

    hue: str = ""
    ground: str = ""
    strong: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the text that is written; a background counts if there is no hue."""
        hue = self.hue or self.ground
        return tuple(name for name in (hue, "strong" if self.strong else "") if name)

    def after(self, codes: str) -> Pen:
        """Return the pen after a sequence with these codes, such as ``1;31``."""
        pen = self
        numbers = iter([int(code[:4] or 0) for code in re.split("[;:]", codes)])
        for number in numbers:
            tens, ones = divmod(number, 10)
            if number == 0:
                pen = Pen()
            elif number in (1, 22):
                pen = pen._replace(strong=number == 1)
            elif number in (38, 48):
                hue = _mixed_hue(numbers)
                pen = pen._replace(hue=hue) if number == 38 else pen._replace(ground=hue)
            elif number == 90:
                pen = pen._replace(hue="pale")
            elif (tens in (3, 9) and ones < 8) or number == 39:
                pen = pen._replace(hue=_HUES[ones % 8] if ones < 8 else "")
            elif (tens in (4, 10) and ones < 8) or number == 49:
                pen = pen._replace(ground=_HUES[ones] if ones < 8 else "")
        return pen


def _mixed_hue(numbers: Iterator[int]) -> str:
    """Return the hue closest to one of 256 colours, or to one of red, green and blue."""
    how = next(numbers, 0)
    if how == 5:
        number = next(numbers, 0)
        if number < 16:
            return "pale" if number == 8 else _HUES[number % 8]
        if number >= 232:
            return "pale" if number < 246 else ""
        cube = number - 16
        mixed = [level / 5 for level in (cube // 36, cube // 6 % 6, cube % 6)]
    elif how == 2:
        mixed = [min(255, next(numbers, 0)) / 255 for _ in range(3)]
    else:
        return ""
    hue, saturation, value = rgb_to_hsv(*mixed)
    if saturation < 0.25 or value < 0.15:
        return "pale" if 0.15 <= value < 0.6 else ""
    return _AROUND[round(hue * 6) % 6]

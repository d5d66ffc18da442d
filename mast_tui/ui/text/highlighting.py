"""Highlighting of Markdown, code, JSON, diffs, tracebacks and the colours of a terminal.

Parts of a text get names. The drawing widget has a style for each name. The name of a part depends
only on nearby text, so any position of a long text is highlighted quickly.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from colorsys import rgb_to_hsv
from functools import cache, lru_cache
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
"""The output of a program. Diffs, tracebacks and fences are highlighted, other text is plain."""
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
"""The lexers by the names of languages and the suffixes of files.

Other names have no lexer, because not every lexer is fast on every text.
"""

SEGMENT_CHARS: Final = 1 << 15
"""The code points of a segment in which fences and hunks are searched.

The search starts one segment earlier. The end of a longer fence may therefore be taken for the
beginning of another fence.
"""

LEXED_CHARS: Final = 1 << 11
"""The code points of a program that are lexed at once.

The lexer starts as many code points earlier.
"""

COLOUR_REACH: Final = 1 << 12
"""The code points before a position that are searched for the colour set there."""

_MOST_SEQUENCE_CHARS: Final = COLOUR_REACH // 64
"""The most code points of a sequence that sets a colour."""

_CACHE_SIZE: Final = 128


class TextPart(NamedTuple):
    """A part of a text.

    Attributes:
        start: The first code point.
        end: The code point after the part.
        name: The name of the part's style.
    """

    start: int
    end: int
    name: str


class TextRegion(NamedTuple):
    """A range of a text with one syntax.

    Attributes:
        start: The first code point.
        end: The code point after the region.
        syntax: The syntax; empty if it is unknown.
        indent: The columns by which all lines except the first are indented.
    """

    start: int
    end: int
    syntax: str
    indent: int = 0


class Highlighter:
    """The highlighted parts of a text with one syntax, or of JSON and the strings in it."""

    def __init__(self, text: Readable, syntax: str, pretty: PrettyText | None = None) -> None:
        """Prepare a text, without reading it.

        Args:
            text: The text as it is shown.
            syntax: ``MARKDOWN``, ``OUTPUT``, ``DIFF``, or a language.
            pretty: The same text if it is formatted JSON.
        """
        self._text = text
        self._syntax = syntax
        self._pretty = pretty
        self.changed()

    def changed(self) -> None:
        """Empty the caches, because the text has changed."""
        cached = lru_cache(_CACHE_SIZE)
        self._cached_parts = cached(self._find_parts)
        self._cached_regions = cached(self._find_regions)
        self._cached_line_parts = cached(self._find_line_parts)
        self._cached_code_parts = cached(self._find_code_parts)
        self._cached_colours = cached(self._find_colours)

    def parts(self, start: int, end: int) -> list[TextPart]:
        """Return the parts in a range. Later parts are drawn over earlier parts.

        Args:
            start: The first code point of the range.
            end: The code point after the range.
        """
        return self._cached_parts(start, end)

    def _find_parts(self, start: int, end: int) -> list[TextPart]:
        return [*self._syntax_parts(start, end), *self._coloured_parts(start, end)]

    def _syntax_parts(self, start: int, end: int) -> Iterator[TextPart]:
        """Yield the parts in a range by the syntax of each region."""
        offset = start
        while offset < end:
            outer_region = self._region_at(offset)
            outer_end = min(end, outer_region.end)
            for region, part_start, part_end in self._inner_regions(
                outer_region, offset, outer_end
            ):
                if region.syntax in _LINE_PARTS:
                    yield from self._line_parts(region, part_start, part_end)
                elif region.syntax:
                    yield from self._code_parts(region, part_start, part_end)
            offset = max(outer_end, offset + 1)  # move on even after an empty region

    def _region_at(self, offset: int) -> TextRegion:
        """Return the whole text as a region; in formatted JSON, the region around an offset."""
        if self._pretty is None:
            return TextRegion(0, len(self._text), self._syntax)
        return self._pretty.region_at(offset)

    def _inner_regions(
        self, outer_region: TextRegion, start: int, end: int
    ) -> Iterator[tuple[TextRegion, int, int]]:
        """Yield fences, hunks and the regions between them, each with its range within ``start``
        and ``end``.

        A region with another syntax is yielded whole.
        """
        if outer_region.syntax not in (MARKDOWN, OUTPUT):
            yield outer_region, start, end
            return
        first_segment = (start - outer_region.start) // SEGMENT_CHARS
        last_segment = (end - 1 - outer_region.start) // SEGMENT_CHARS
        for segment in range(first_segment, last_segment + 1):
            segment_start = outer_region.start + segment * SEGMENT_CHARS
            range_start = max(start, segment_start)
            range_end = min(end, segment_start + SEGMENT_CHARS)
            regions = self._cached_regions(outer_region, segment_start)
            first_index = bisect_right(regions, range_start, key=attrgetter("end"))
            for region in islice(regions, first_index, None):
                if region.start >= range_end:
                    break
                yield region, max(range_start, region.start), min(range_end, region.end)

    def _find_regions(self, outer_region: TextRegion, segment_start: int) -> list[TextRegion]:
        """Return the regions of the segment that begins at an offset, and of the segment before.

        A fence may begin in the segment before.
        """
        start = max(outer_region.start, segment_start - SEGMENT_CHARS)
        end = min(outer_region.end, segment_start + SEGMENT_CHARS)
        return [
            region._replace(start=start + region.start, end=start + region.end)
            for region in split_regions(
                self._text[start:end], outer_region.syntax, outer_region.indent
            )
        ]

    def _line_parts(self, region: TextRegion, start: int, end: int) -> Iterator[TextPart]:
        """Yield the parts in a range of a region that is highlighted line by line."""
        offset = start
        while offset < end:
            block_start, block_end = block_at(self._text, offset)
            block_start = max(block_start, region.start)
            block_end = min(block_end, region.end)
            parts = self._cached_line_parts(region, block_start, block_end)
            yield from _cut_to_range(parts, start, end)
            offset = max(block_end, offset + 1)  # goes on even if the region has ended

    def _find_line_parts(self, region: TextRegion, start: int, end: int) -> list[TextPart]:
        """Return the parts of a line of a region, or of a piece of a very long line."""
        line_start = start
        # Every line of the region except the first is indented. The indent is not highlighted.
        if start > region.start and self._text[start - 1] == "\n":
            line_start = min(end, start + region.indent)
        return [
            part._replace(start=line_start + part.start, end=line_start + part.end)
            for part in _LINE_PARTS[region.syntax](self._text[line_start:end])
        ]

    def _code_parts(self, region: TextRegion, start: int, end: int) -> Iterator[TextPart]:
        first_block = (start - region.start) // LEXED_CHARS
        last_block = (end - 1 - region.start) // LEXED_CHARS
        for block in range(first_block, last_block + 1):
            yield from _cut_to_range(self._cached_code_parts(region, block), start, end)

    def _find_code_parts(self, region: TextRegion, block: int) -> list[TextPart]:
        """Return the parts of a numbered block of a region of code."""
        start = region.start + block * LEXED_CHARS
        end = min(region.end, start + LEXED_CHARS)
        # The lexer begins a block earlier, because a string or comment may begin there.
        lexed_start = max(region.start, start - LEXED_CHARS)
        code = self._text[lexed_start:end]
        lexed_parts = _lexed_parts(_lexer_for(region.syntax), code, lexed_start)
        return list(_cut_to_range(lexed_parts, start, end))

    def _coloured_parts(self, start: int, end: int) -> Iterator[TextPart]:
        """Yield the parts in a range that a terminal would colour."""
        for block_start in range(start // LEXED_CHARS * LEXED_CHARS, end, LEXED_CHARS):
            yield from _cut_to_range(self._cached_colours(block_start), start, end)

    def _find_colours(self, start: int) -> list[TextPart]:
        """Return the coloured parts of the block that begins at ``start``."""
        end = min(len(self._text), start + LEXED_CHARS)
        search_start = max(0, start - COLOUR_REACH)
        # The last sequence may reach beyond ``end``.
        text = self._text[search_start : end + _MOST_SEQUENCE_CHARS]
        parts: list[TextPart] = []
        if "\x1b[" not in text:
            return parts
        pen = Pen()
        part_start = search_start
        for match in COLOUR_SEQUENCE.finditer(text):
            part_end = search_start + match.start()
            parts += (TextPart(part_start, part_end, name) for name in pen.names)
            pen = pen.after(match[1])
            part_start = search_start + match.end()
        parts += (TextPart(part_start, end, name) for name in pen.names)
        return list(_cut_to_range(parts, start, end))


def _cut_to_range(parts: Iterable[TextPart], start: int, end: int) -> Iterator[TextPart]:
    """Yield the parts that overlap a range, cut to the range."""
    for part in parts:
        part_start = max(part.start, start)
        part_end = min(part.end, end)
        if part_start < part_end:
            yield TextPart(part_start, part_end, part.name)


FENCE: Final = "fence"
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*\{?\.?([\w+#-]*)[^`\n]*$")
_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_DIFF_HEAD: Final = re.compile(
    r"diff --git |index [0-9a-f]{6,}\.\.|(?:---|\+\+\+) (?:[ab]/|/dev/null|\S+\.\w+)"
)
_HUNK_SIGNS: Final = frozenset(["", " ", "+", "-", "\\"])
"""The first characters of lines in a hunk."""

_DIFF_SIGNS: Final = frozenset("@di-+")
"""The first characters of lines that may begin a hunk or the head of a diff."""

_LINE_HEAD_CHARS: Final = 200
"""The code points at the beginning of a line that decide its syntax."""


def split_regions(text: str, syntax: str, indent: int = 0) -> list[TextRegion]:
    """Split a text into fences, hunks of diffs, and the regions between them.

    Args:
        text: The text; no fence is open before its first line.
        syntax: The syntax outside of fences and hunks.
        indent: The columns by which all lines except the first are indented.
    """
    if not any(sign in text for sign in ("```", "~~~", "@@ -")):
        return [TextRegion(0, len(text), syntax, indent)]
    regions: list[TextRegion] = []
    region_start = 0
    region_syntax = syntax
    classifier = _LineClassifier(syntax)
    for match in _LINE.finditer(text):
        line_start = match.start()
        text_start = line_start + indent if line_start else 0
        line = text[text_start : min(match.end(), text_start + _LINE_HEAD_CHARS)].rstrip("\r\n")
        line_syntax = classifier.syntax_of(line)
        # A line that opens or closes a fence is a region of its own.
        if line_syntax != region_syntax or line_syntax == FENCE:
            if line_start > region_start:
                regions.append(TextRegion(region_start, line_start, region_syntax, indent))
            region_start = line_start
            region_syntax = line_syntax
    regions.append(TextRegion(region_start, len(text), region_syntax, indent))
    return regions


class _LineClassifier:
    """A classifier that finds the syntax of the lines of a text in order."""

    def __init__(self, syntax: str) -> None:
        """Begin outside of fences and hunks."""
        self._outer_syntax = syntax
        """The syntax outside of fences and hunks."""
        self._syntax = syntax
        """The syntax outside of hunks: that of the open fence or of the text."""
        self._fence = ""
        """The sign of the open fence, such as three backticks; empty outside of fences."""
        self._old_lines_left = 0
        """The lines of the hunk that are left in the old file."""
        self._new_lines_left = 0
        """The lines of the hunk that are left in the new file."""

    def syntax_of(self, line: str) -> str:
        """Return the syntax of the next line, and remember an open fence or hunk."""
        hunk_sign = line[:1]
        if (self._old_lines_left or self._new_lines_left) and hunk_sign in _HUNK_SIGNS:
            if self._old_lines_left and hunk_sign not in ("+", "\\"):
                self._old_lines_left -= 1
            if self._new_lines_left and hunk_sign not in ("-", "\\"):
                self._new_lines_left -= 1
            return DIFF
        self._old_lines_left = 0
        self._new_lines_left = 0
        sign = line.lstrip(" ")[:1]
        if sign in ("`", "~"):
            return FENCE if self._toggle_fence(line) else self._syntax
        if sign in _DIFF_SIGNS and self._syntax in (MARKDOWN, OUTPUT):
            hunk = _HUNK.match(line)
            if hunk is not None:
                self._old_lines_left = int(hunk[1] or 1)
                self._new_lines_left = int(hunk[2] or 1)
                return DIFF
            if _DIFF_HEAD.match(line) is not None:
                return DIFF
        return self._syntax

    def _toggle_fence(self, line: str) -> bool:
        """Open or close a fence. Return False if the line does neither."""
        match = _FENCE.match(line)
        if match is None:
            return False
        fence = match[1]
        language = match[2]
        if not self._fence:
            self._fence = fence
            self._syntax = LANGUAGES.get(language.lower(), OUTPUT)
            return True
        if fence.startswith(self._fence) and not language:
            self._fence = ""
            self._syntax = self._outer_syntax
            return True
        return False


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
    """Yield the parts of a line of Markdown: first the kind of line, then its inline markup."""
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
        for bar in re.finditer(r"\|", line[:end]):
            yield TextPart(*bar.span(), "markup")
    elif _ERROR.match(line):
        yield TextPart(0, end, "error")
        return
    yield from _inline_parts(line)


def _inline_parts(line: str) -> Iterator[TextPart]:
    """Yield the code, emphasis and links in a line, and the markup around them."""
    for match in _INLINE.finditer(line):
        group = match.lastgroup or ""
        if group == "link":
            yield TextPart(*match.span(), "link")
            continue
        if group == "goal":  # a link such as [words](goal)
            name = "link"
            start, end = match.span("words")
        else:
            name = group
            start, end = match.span(group)
        yield TextPart(match.start(), start, "markup")
        yield TextPart(start, end, name)
        yield TextPart(end, match.end(), "markup")


def _output_parts(line: str) -> Iterator[TextPart]:
    if _ERROR.match(line):
        yield TextPart(0, len(line), "error")
    elif frame := _FRAME.match(line):
        yield TextPart(*frame.span(), "place")


def _diff_parts(line: str) -> Iterator[TextPart]:
    """Yield a line of a diff as one part; nothing for an unchanged line."""
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
            yield TextPart(*match.span("string"), "string" if match["colon"] is None else "key")


def _fence_parts(line: str) -> Iterator[TextPart]:
    yield TextPart(0, len(line), "markup")


_LINE_PARTS: Final[Mapping[str, Callable[[str], Iterator[TextPart]]]] = {
    MARKDOWN: _markdown_parts,
    OUTPUT: _output_parts,
    DIFF: _diff_parts,
    JSON: _json_parts,
    FENCE: _fence_parts,
}


_NAMES_OF_TOKENS: Final = {
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
def _lexer_for(language: str) -> Any:
    # The import is slow and would delay start-up; few texts are programs.
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(language)


@cache
def _name_of(token: Any) -> str:
    """Return the style name for a token of Pygments; empty for plain text.

    Tokens inherit the style of their parents.
    """
    while token is not None:
        name = _NAMES_OF_TOKENS.get(str(token))
        if name is not None:
            return name
        token = token.parent
    return ""


def _lexed_parts(lexer: Any, code: str, code_start: int) -> Iterator[TextPart]:
    """Yield the parts of a piece of code that begins at offset ``code_start`` of the text."""
    for offset, token, value in lexer.get_tokens_unprocessed(code):
        name = _name_of(token)
        if name and not value.isspace():
            start = code_start + offset
            yield TextPart(start, start + len(value), name)


_HUES: Final = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")
"""The names of a terminal's eight colours; black and white have none."""

_HUE_CIRCLE: Final = ("red", "yellow", "green", "cyan", "blue", "magenta")
"""The hues of the colour circle, 60 degrees apart."""


class Pen(NamedTuple):
    """The colours in which a terminal would continue to write.

    Colours are reduced to six hues and ``pale``, which are legible in any theme.

    Attributes:
        hue: The name of the colour of the text; empty for the default colour.
        ground: The name of the colour of the background; empty for the default colour.
        strong: True for bold text.
    """

    hue: str = ""
    ground: str = ""
    strong: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The style names of text written with the pen.

        A background counts only without a hue.
        """
        hue = self.hue or self.ground
        return tuple(name for name in (hue, "strong" if self.strong else "") if name)

    def after(self, parameters: str) -> Pen:
        """Return the pen after a colour sequence (SGR) with parameters such as ``1;31``.

        Other parameters than colour and weight are ignored.
        """
        pen = self
        # ``int`` fails on thousands of digits, and valid codes have at most three.
        codes = iter([int(code[:4] or 0) for code in re.split("[;:]", parameters)])
        for code in codes:
            if code == 38:
                pen = pen._replace(hue=_mixed_hue(codes))
            elif code == 48:
                pen = pen._replace(ground=_mixed_hue(codes))
            else:
                pen = pen._replace(**_PEN_CHANGES.get(code, {}))
        return pen


_PEN_CHANGES: Final[Mapping[int, Mapping[str, Any]]] = {
    0: Pen()._asdict(),
    1: {"strong": True},
    22: {"strong": False},
    39: {"hue": ""},
    49: {"ground": ""},
    **{first + number: {"hue": hue} for first in (30, 90) for number, hue in enumerate(_HUES)},
    **{first + number: {"ground": hue} for first in (40, 100) for number, hue in enumerate(_HUES)},
    90: {"hue": "pale"},
}
"""The fields of a pen that each code (SGR) sets."""


def _mixed_hue(codes: Iterator[int]) -> str:
    """Return the hue closest to an extended colour; empty if unknown or bright grey.

    Args:
        codes: The codes after 38 or 48: ``5`` and one of 256 colours, or ``2`` and red, green and
            blue. They are consumed.
    """
    colour_space = next(codes, 0)
    if colour_space == 5:
        colour = next(codes, 0)
        if colour < 16:  # the usual colours, then a cube of colours, then greys
            return "pale" if colour == 8 else _HUES[colour % 8]
        if colour >= 232:
            return "pale" if colour < 246 else ""
        cube = colour - 16
        rgb = [level / 5 for level in (cube // 36, cube // 6 % 6, cube % 6)]
    elif colour_space == 2:
        rgb = [min(255, next(codes, 0)) / 255 for _ in range(3)]
    else:
        return ""
    hue, saturation, value = rgb_to_hsv(*rgb)
    if saturation < 0.25 or value < 0.15:
        return "pale" if 0.15 <= value < 0.6 else ""
    return _HUE_CIRCLE[round(hue * 6) % 6]

"""What the parts of a text are: Markdown, code, JSON, diffs, tracebacks, a terminal's colours.

Parts of the text as it is shown get names, and whoever draws it has a style for each name; nothing
is taken away or put in between. What a part is called follows from the text near it, so that any
place of a long text is found without looking at all that is before it.
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
"""What a part of a text may be."""

MARKDOWN: Final = "markdown"
OUTPUT: Final = "output"
"""What a program has printed: diffs, tracebacks and fences are told, all else stays plain."""
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
"""What languages call themselves, and files end in. No others are read: the name is foreign, and
not every lexer is quick on any text."""

SEGMENT: Final = 1 << 15
"""Fences and hunks of so many code points are looked for at a time, beginning as many before: of
a fence that is longer the end may be taken for a beginning."""

LEXED: Final = 1 << 11
"""So many code points of a program are read at a time, beginning as many before."""

COLOUR_REACH: Final = 1 << 12
"""How far back a colour is looked for that holds where a line begins."""

_KEPT: Final = 128


Key = TypeVar("Key")
Value = TypeVar("Value")


class TextPart(NamedTuple):
    """A part of a text, ``end`` exclusive, and what it is: a style of the same name shows it."""

    start: int
    end: int
    name: str


class Stretch(NamedTuple):
    """Where a text is written in one way; in no known way where ``written`` is empty.

    All lines but the first are moved to the right by ``indent``.
    """

    start: int
    end: int
    written: str
    indent: int = 0


class Highlighter:
    """Names the parts of a text that is written in one way, or of JSON and the strings in it."""

    def __init__(self, text: Readable, written: str, pretty: PrettyText | None = None) -> None:
        """Begin with a text of which nothing was looked at.

        Args:
            text: As it is shown.
            written: How: ``MARKDOWN``, ``OUTPUT``, ``DIFF``, or a language.
            pretty: The same text where it is JSON that is set out.
        """
        self._text = text
        self._written = written
        self._pretty = pretty
        self._segments: OrderedDict[int, list[Stretch]] = OrderedDict()
        self._named: OrderedDict[tuple[int, int], list[TextPart]] = OrderedDict()
        self._asked: OrderedDict[tuple[int, int], list[TextPart]] = OrderedDict()

    def changed(self) -> None:
        """Forget what was found: the text reads otherwise now."""
        self._segments.clear()
        self._named.clear()
        self._asked.clear()

    def parts(self, start: int, end: int) -> list[TextPart]:
        """Return the parts between two places, later ones to be drawn over earlier ones.

        Those of the places that were asked for last are kept: whoever scrolls asks again.
        """
        found = self._asked.get((start, end))
        if found is None:
            found = list(self._parts(start, end))
            _keep(self._asked, (start, end), found)
        return found

    def _parts(self, start: int, end: int) -> Iterator[TextPart]:
        at = start
        while at < end:
            region = self._region(at)
            stop = min(end, region.end)
            for stretch, first, last in self._stretches(region, at, stop):
                if stretch.written in _OF_LINES:
                    yield from self._of_lines(stretch, first, last)
                elif stretch.written:
                    yield from self._of_code(stretch, first, last)
            at = max(stop, at + 1)
        yield from _within(self._colours(start, end), start, end)

    def _region(self, at: int) -> Stretch:
        """What is around a place: all, or a string of JSON, or what is between two of them."""
        if self._pretty is None:
            return Stretch(0, len(self._text), self._written)
        return self._pretty.region_at(at)

    def _stretches(
        self, region: Stretch, start: int, end: int
    ) -> Iterator[tuple[Stretch, int, int]]:
        """Yield the fences, hunks and what is between them, each with the part of it that stands
        between two places."""
        if region.written not in (MARKDOWN, OUTPUT):
            yield region, start, end
            return
        first, last = (start - region.start) // SEGMENT, (end - 1 - region.start) // SEGMENT
        for number in range(first, last + 1):
            begin = region.start + number * SEGMENT
            at, stop = max(start, begin), min(end, begin + SEGMENT)
            found = self._segment(region, begin)
            place = bisect_right(found, at, key=attrgetter("end"))
            while place < len(found) and found[place].start < stop:
                stretch = found[place]
                yield stretch, max(at, stretch.start), min(stop, stretch.end)
                place += 1

    def _segment(self, region: Stretch, begin: int) -> list[Stretch]:
        """The stretches of the segment that begins here, and of the one before it."""
        found = self._segments.get(begin)
        if found is None:
            before, stop = max(region.start, begin - SEGMENT), min(region.end, begin + SEGMENT)
            found = [
                Stretch(before + one.start, before + one.end, one.written, one.indent)
                for one in stretches(self._text[before:stop], region.written, region.indent)
            ]
            _keep(self._segments, begin, found)
        return found

    def _of_lines(self, stretch: Stretch, start: int, end: int) -> Iterator[TextPart]:
        at = start
        while at < end:
            first, last = block_at(self._text, at)
            first, last = max(first, stretch.start), min(last, stretch.end)
            found = self._named.get((first, last))
            if found is None:
                begin = first
                if first > stretch.start and self._text[first - 1] == "\n":
                    begin = min(last, first + stretch.indent)
                found = [
                    TextPart(begin + one.start, begin + one.end, one.name)
                    for one in _OF_LINES[stretch.written](self._text[begin:last])
                ]
                _keep(self._named, (first, last), found)
            yield from _within(found, start, end)
            at = max(last, at + 1)

    def _of_code(self, stretch: Stretch, start: int, end: int) -> Iterator[TextPart]:
        lexer = _lexer(stretch.written)
        first, last = (start - stretch.start) // LEXED, (end - 1 - stretch.start) // LEXED
        for number in range(first, last + 1):
            begin = stretch.start + number * LEXED
            stop = min(stretch.end, begin + LEXED)
            found = self._named.get((begin, stop))
            if found is None:
                before = max(stretch.start, begin - LEXED)
                code = _code_parts(lexer, self._text[before:stop], before)
                found = list(_within(code, begin, stop))
                _keep(self._named, (begin, stop), found)
            yield from _within(found, start, end)

    def _colours(self, start: int, end: int) -> Iterator[TextPart]:
        """What a terminal would show in colour."""
        for begin in range(start // LEXED * LEXED, end, LEXED):
            found = self._named.get((begin, -1))
            if found is None:
                found = self._colours_from(begin, min(len(self._text), begin + LEXED))
                _keep(self._named, (begin, -1), found)
            yield from found

    def _colours_from(self, begin: int, end: int) -> list[TextPart]:
        before = max(0, begin - COLOUR_REACH)
        text = self._text[before : end + COLOUR_REACH // 64]
        pen, at, found = Pen(), before, list[TextPart]()
        if "\x1b[" not in text:
            return found
        for match in COLOUR_SEQUENCE.finditer(text):
            place = before + match.start()
            found += (TextPart(at, place, name) for name in pen.names)
            pen, at = pen.after(match[1]), before + match.end()
        found += (TextPart(at, end, name) for name in pen.names)
        return list(_within(found, begin, end))


def _within(parts: Iterable[TextPart], start: int, end: int) -> Iterator[TextPart]:
    for part in parts:
        first, last = max(part.start, start), min(part.end, end)
        if first < last:
            yield TextPart(first, last, part.name)


def _keep(kept: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    kept[key] = value
    if len(kept) > _KEPT:
        kept.popitem(last=False)


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


def stretches(text: str, written: str, indent: int = 0) -> list[Stretch]:
    """Return where fences and hunks of diffs begin and end, and what is between them.

    Args:
        text: What to look at; nothing is open before its first line.
        written: What it is outside of fences and hunks.
        indent: By how much all lines but the first are moved to the right.
    """
    if not any(sign in text for sign in ("```", "~~~", "@@ -")):
        return [Stretch(0, len(text), written, indent)]
    found: list[Stretch] = []
    first, last = 0, written  # of the stretch that goes on
    fence, inside = "", written
    old = new = 0  # how many lines of the hunk are to come
    for match in _LINE.finditer(text):
        start = match.start()
        begin = start + indent if start else 0
        line = text[begin : min(match.end(), begin + _HEAD)].rstrip("\r\n")
        what = inside
        if (old or new) and line[:1] in _OF_HUNK:
            what = DIFF
            old -= line[:1] != "+" and line[:1] != "\\" and old > 0
            new -= line[:1] != "-" and line[:1] != "\\" and new > 0
        else:
            old = new = 0
            sign = line.lstrip(" ")[:1]
            if sign in ("`", "~") and (opened := _FENCE.match(line)) is not None:
                if not fence:
                    fence, what = opened[1], FENCE
                    inside = LANGUAGES.get(opened[2].lower(), OUTPUT)
                elif opened[1].startswith(fence) and not opened[2]:
                    fence, what, inside = "", FENCE, written
            elif sign in _BEFORE_DIFFS and inside in (MARKDOWN, OUTPUT):
                hunk = _HUNK.match(line)
                if hunk is not None:
                    old, new = int(hunk[1] or 1), int(hunk[2] or 1)
                if hunk is not None or _DIFF_HEAD.match(line) is not None:
                    what = DIFF
        if what != last or what == FENCE:
            if start > first:
                found.append(Stretch(first, start, last, indent))
            first, last = start, what
    found.append(Stretch(first, len(text), last, indent))
    return found


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


_OF_LINES: Final[Mapping[str, Callable[[str], Iterator[TextPart]]]] = {
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
    """What reads a language, one of ``LANGUAGES``."""
    # Few texts hold programs, and the first is not to wait for this to be imported.
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(language)


@cache
def _name_of(token: Any) -> str:
    """What a token is drawn as; empty for what is drawn plainly."""
    while token is not None:
        if name := _OF_TOKENS.get(str(token)):
            return name
        token = token.parent
    return ""


def _code_parts(lexer: Any, code: str, begin: int) -> Iterator[TextPart]:
    for place, token, value in lexer.get_tokens_unprocessed(code):
        if (name := _name_of(token)) and not value.isspace():
            yield TextPart(begin + place, begin + place + len(value), name)


# A terminal's colours

_HUES: Final = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")
_AROUND: Final = ("red", "yellow", "green", "cyan", "blue", "magenta")
"""The hues in a circle, each 60 degrees from the next."""


class Pen(NamedTuple):
    """In which colours a terminal would write on.

    Only the six hues are told, as names: a theme draws each so that it can be read, and nothing
    can be hidden by a colour on the same ground.
    """

    hue: str = ""
    ground: str = ""
    strong: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What is written is called so; a ground colours what stands on it."""
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
    """The hue next to a colour of the 256, or to one mixed of red, green and blue."""
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

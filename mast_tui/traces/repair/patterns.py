"""By what the parts of broken JSON are known again: its containers, and where members begin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mast_tui.traces.io.json_values import replace_surrogates

_STRING_BODY: Final = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_KEY: Final = r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"\s*+:'

SPACE: Final = re.compile(r"\s*+")
STRING: Final = re.compile(f'"({_STRING_BODY})"', re.DOTALL)
KEY_AHEAD: Final = re.compile(_KEY)
BROKEN_KEY: Final = re.compile(
    r'"([^"\\\n:,{}\[\]]{1,200}):'  # no quote behind it
    r'|[^\s"{}\[\],:]?([^"\\\n:,{}\[\]]{1,200})"\s*:'  # none before it
    r'|"([^"\\\n:,{}\[\]]{1,200})"\s*[^\s",:{}\[\]]\s*(?=["{\[\dtfn-])'  # no colon
)
VALUE_ENDS: Final = re.compile(r"\s*+(?:[,}\]]|\Z)")
NO_COMMA: Final = re.compile(rf'[^\s"]?\s*+{_KEY}|[^\s"\w]?\s*+[}}\]]')
JUNK: Final = re.compile(r'[^,\[\]{}"\n]+')
WORD: Final = re.compile(r'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+')
DIGITS: Final = re.compile(r"-?\d[\d.eE+-]*+")
LITTER: Final = re.compile(r"[\s}\]]*+,")

BEGINNING: Final = re.compile(
    rf'\s*+(?:\{{\s*+{_KEY}|\[\s*+(?:\{{\s*+["}}]|\[\s*+["\[{{\]\d-]|"))', re.DOTALL
)
"""How a document with records in it begins; plain text that begins with a bracket does not."""

_CLOSED_TEXT: Final = r'(?<!\\)"\s*+[}\]]'
_NEXT_RECORD: Final = r'[}\]]\s*+,\s*+[{\[]\s*+"'
_ENDS_IN_OBJECT: Final = re.compile(rf",\s*+{_KEY}|{_CLOSED_TEXT}|{_NEXT_RECORD}")
_ENDS_IN_LIST: Final = re.compile(rf',\s*+"|{_CLOSED_TEXT}|{_NEXT_RECORD}')
_CLOSED: Final = re.compile(_CLOSED_TEXT)
_ANY_RECORD: Final = re.compile(r'[{\[]\s*+["{\[]')
_ANY_TEXT: Final = re.compile(r',\s*+(?=")')
_OPENING: Final = re.compile(rf"\{{\s*+{_KEY}")
_LINE: Final = re.compile(r"\n([ \t]*+)(?=[^\s])")
_CLOSING_LINE: Final = re.compile(r"[}\]][ \t\r,}\]]*+(?:\n|\Z)")
_BRACKET: Final = re.compile(r'["\[\]{}]')
_ESCAPE: Final = re.compile(
    r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])|\\u[0-9a-fA-F]{0,3}\Z|\\\Z|\\|"|[\x00-\x1f]'
)

_LOOKED_BACK: Final = 1 << 10
_MOST_OPENINGS: Final = 8
_MOST_BRACKETS: Final = 1 << 20
_FRAMES_LOOKED_AT: Final = 12
_LIST_STARTS: Final = frozenset('{["-0123456789tfn')


class Frame:
    """A container that is being read: what it holds so far, and what its members look like."""

    def __init__(self, value: dict[str, object] | list[object]) -> None:
        self.value = value
        self.is_list = isinstance(value, list)
        self.closer = "]" if self.is_list else "}"
        self.after = False
        """Whether a member was just read, so that a comma or the end must follow."""
        self.key = ""
        """The key of an object's last member."""
        self.indent: str | None = None
        """What stands before members on lines of their own; None where they share lines."""
        self.placed = False
        """Whether it is known how the members stand."""
        self.openings: tuple[str, ...] = ()
        """The first keys of the objects in a list."""

    def put(self, value: object) -> None:
        """Take in a member."""
        self.after = True
        if isinstance(self.value, list):
            self.value.append(value)
        else:
            self.value[self.key] = value
        if isinstance(value, dict) and value:
            self.learn(next(iter(value)))

    def learn(self, first_key: str) -> None:
        """An object in the list begins with this key."""
        if self.is_list and first_key not in self.openings:
            self.openings = (*self.openings, first_key)[-_MOST_OPENINGS:]

    def resume(self) -> None:
        """Go on with a container that was read without being entered."""
        if isinstance(self.value, dict):
            self.key = next(reversed(self.value), "")
            return
        for value in self.value:
            if isinstance(value, dict) and value:
                self.learn(next(iter(value)))

    def last(self) -> object:
        """The last member's value, None where there is none."""
        if isinstance(self.value, list):
            return self.value[-1] if self.value else None
        return self.value.get(self.key)

    def drop_last(self) -> None:
        """Forget the last member."""
        if isinstance(self.value, dict):
            self.value.pop(self.key, None)
        elif self.value:
            self.value.pop()

    def has_record_with(self, key: str) -> bool:
        """Whether one of a list's objects has this key."""
        some = [*self.value[:3], *self.value[-3:]] if isinstance(self.value, list) else []
        return any(isinstance(record, dict) and key in record for record in some)

    def may_begin(self, text: str, pos: int) -> bool:
        """Whether what stands here looks like a member."""
        if self.is_list:
            return text[pos] in '{["'
        return text[pos] == '"' and KEY_AHEAD.match(text, pos) is not None


class Place(NamedTuple):
    """Where reading goes on: in the container with this many around it, itself counted."""

    pos: int
    depth: int


@dataclass(frozen=True, slots=True)
class _Found:
    since: int
    at: int | None


class Marks:
    """Finds where members begin; remembers what it found ahead, so that search stays linear."""

    def __init__(self) -> None:
        self._found: dict[re.Pattern[str], _Found] = {}

    def shift(self) -> None:
        """The text has been cut: places that are remembered hold no longer."""
        self._found.clear()

    def end_of_text(self, frames: Sequence[Frame], text: str, start: int) -> int | None:
        """Where a string ends whose quotes cannot be trusted; None for the end of the text."""
        limit = _line_end(frames, text, start)
        if frames[-1].indent is not None:
            return limit if limit < len(text) else None
        ends = _ENDS_IN_LIST if frames[-1].is_list else _ENDS_IN_OBJECT
        end = ends.search(text, start, limit)
        if end is not None:
            return end.start()
        return limit if limit < len(text) else None

    def next_member(self, frames: Sequence[Frame], text: str, pos: int) -> Place | None:
        """The next place from ``pos`` on where a member of one of the containers begins or ends.

        Members on lines of their own are known by their indentation, others by their keys and
        by what the earlier elements of a list begin with.
        """
        limit = _line_end(frames, text, pos)
        best: Place | None = None
        for depth in range(len(frames), max(0, len(frames) - _FRAMES_LOOKED_AT), -1):
            frame = frames[depth - 1]
            if frame.indent is not None:
                break
            for pattern in _patterns(frame, innermost=depth == len(frames)):
                at = self._next(pattern, text, pos)
                if at is not None and at < limit and (best is None or at < best.pos):
                    best = Place(at, depth)
        return best or _next_line(frames, text, limit)

    def _next(self, pattern: re.Pattern[str], text: str, pos: int) -> int | None:
        known = self._found.get(pattern)
        if known is None or known.since > pos or (known.at is not None and known.at < pos):
            match = pattern.search(text, pos)
            at = None
            if match is not None:
                at = match.end() - 1 if pattern is _CLOSED else match.start()
            known = self._found[pattern] = _Found(pos, at)
        return known.at


def _patterns(frame: Frame, innermost: bool) -> list[re.Pattern[str]]:
    patterns = [_CLOSED] if innermost else []
    if not frame.is_list:
        return [*patterns, KEY_AHEAD]
    if frame.openings:
        keys = "|".join(map(re.escape, sorted(frame.openings)))
        return [*patterns, re.compile(rf'\{{\s*+"(?:{keys})"\s*+:')]
    return [*patterns, _ANY_TEXT if isinstance(frame.last(), str) else _ANY_RECORD]


def _line_end(frames: Sequence[Frame], text: str, pos: int) -> int:
    """Up to where to look for members that share a line."""
    if all(frame.indent is None for frame in frames):
        return len(text)
    end = text.find("\n", pos)
    return len(text) if end < 0 else end


def _next_line(frames: Sequence[Frame], text: str, pos: int) -> Place | None:
    for line in _LINE.finditer(text, pos):
        start = line.end()
        if depth := depth_of_line(frames, len(line[1]), text, start):
            return Place(start, depth)
    return None


def depth_of_line(frames: Sequence[Frame], indent: int, text: str, start: int) -> int:
    """How many containers are open around a line's member or closing bracket; 0 if unknown."""
    char = text[start]
    outermost = 0
    for depth in range(len(frames), 0, -1):
        frame = frames[depth - 1]
        if frame.indent is None:
            continue
        if indent == len(frame.indent) and _begins_line(frame, text, start):
            return depth
        deeper = indent < len(frame.indent) or not frame.indent
        if deeper and char == frame.closer and _CLOSING_LINE.match(text, start):
            outermost = depth
            if not frame.indent:
                break
    return outermost


def indent_at(text: str, pos: int) -> str | None:
    """What stands before a place on its line where that is space only, else None."""
    feed = text.rfind("\n", max(0, pos - _LOOKED_BACK), pos)
    between = text[feed + 1 : pos]
    return None if feed < 0 or between.strip(" \t") else between


def ends_in_place(frame: Frame, text: str, start: int, end: int) -> bool:
    """Whether a member on lines of its own has its closing bracket where it should be."""
    indent = indent_at(text, end - 1)
    return indent is None or len(indent) == len(frame.indent or "") or "\n" not in text[start:end]


def home_of_record(
    frames: Sequence[Frame], left: Iterable[Frame], text: str, pos: int
) -> Frame | None:
    """The list whose objects begin as the one here does: one around it, or one just left.

    None where the innermost container is that list, or none is.
    """
    opening = _OPENING.match(text, pos)
    if opening is None or opening[1] in frames[-1].openings:
        return None
    candidates = (*reversed(frames), *reversed(tuple(left)))
    return next((frame for frame in candidates if opening[1] in frame.openings), None)


def _begins_line(frame: Frame, text: str, start: int) -> bool:
    if not frame.is_list:
        return frame.may_begin(text, start)
    return text[start] in ("{" if frame.openings else _LIST_STARTS)


def end_of_container(text: str, pos: int) -> int | None:
    """Where the container that begins here ends, by its brackets alone; None if nowhere near."""
    depth = 0
    for _ in range(_MOST_BRACKETS):
        bracket = _BRACKET.search(text, pos)
        if bracket is None:
            return None
        pos = bracket.end()
        if bracket[0] == '"':
            string = STRING.match(text, bracket.start())
            if string is None:
                return None
            pos = string.end()
            continue
        depth += 1 if bracket[0] in "[{" else -1
        if depth == 0:
            return pos
    return None


def lenient_string(body: str) -> str:
    """The string that stands between two quotes; what is no escape stands for itself."""
    mended = _ESCAPE.sub(_mend, body)
    value: object = json.loads(f'"{mended}"')
    return replace_surrogates(value) if isinstance(value, str) else ""


def _mend(escape: re.Match[str]) -> str:
    found = escape[0]
    if found == '"':
        return '\\"'
    if found < " ":
        return f"\\u{ord(found):04x}"
    if found == "\\":
        return "" if escape.end() == len(escape.string) else "\\\\"
    if found.startswith("\\u") and len(found) < len("\\u0000"):
        return ""
    return found

"""What is intact in a JSON document that is broken: the records before and behind each damage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mast_tui.traces.io.json_lines import first_lines, holds_lines
from mast_tui.traces.model import Problem
from mast_tui.traces.repair.cursor import MISSING, Cursor
from mast_tui.traces.repair.patterns import (
    BEGINNING,
    BROKEN_KEY,
    DIGITS,
    JUNK,
    KEY_AHEAD,
    LITTER,
    NO_COMMA,
    STRING,
    VALUE_ENDS,
    WORD,
    Frame,
    depth_of_line,
    end_of_container,
    ends_in_place,
    home_of_record,
    indent_at,
    lenient_string,
)

MOST_CHARS: Final = 64 << 20
"""Length up to which a broken document is looked through, in code points."""

_MOST_DEPTH: Final = 200
_STUCK: Final = 16
_LEFT_KNOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Salvaged:
    """A broken document as far as it could be read, and what is missing from it."""

    value: dict[str, object] | list[object]
    problems: tuple[Problem, ...]


def salvage(text: str) -> Salvaged | None:
    """The intact parts of a JSON document in their places; None where there are none.

    Left out is only the member of an object or a list that is broken itself; a text that is cut
    off or damaged is kept as far as it goes. Also None for what is no single document: plain
    text, JSON lines, more than ``MOST_CHARS``.
    """
    if len(text) > MOST_CHARS or BEGINNING.match(text) is None:
        return None
    return None if holds_lines(first_lines(text)) else _Salvage(text).read()


class _Salvage(Cursor):
    """Goes through a text once, with a list of the containers that it is in.

    Whole values are left to the standard scanner; only a value that it refuses is entered.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.frames: list[Frame] = []
        self.root = Frame({} if text.lstrip()[0] == "{" else [])
        self._left: dict[Frame, Frame] = {}

    def read(self) -> Salvaged | None:
        """Everything that can be read."""
        self.skip_space()
        value = self.scan()
        if isinstance(value, dict | list):
            self.root.value = value
            self._look_behind()
            if not self.problems:
                self.pos = self.first_error()
                self.complain("control characters inside a text; read all the same")
        else:
            self._enter(self.root)
        stuck, seen = 0, -1
        while self.frames:
            stuck = stuck + 1 if self.pos == seen else 0
            seen = self.pos
            if stuck > _STUCK + len(self.frames):
                self.pos += 1
            self._step()
        if not self.root.value:
            return None
        if not self.problems:
            self.complain("damaged before here")
        return Salvaged(self.root.value, tuple(self.problems))

    def _step(self) -> None:
        """Read the next member, comma or end of the innermost container."""
        self.forget()
        self.skip_space()
        if self.budget <= 0 or len(self.frames) > 2 * _MOST_DEPTH:
            self.complain("damaged too much; from here on nothing is read")
            self.frames.clear()
            return
        if self.pos >= len(self.text):
            self._cut_off()
            return
        self._heed_indent()
        frame = self.frames[-1]
        char = self.text[self.pos]
        if char == frame.closer:
            self.pos += 1
            self._leave()
        elif char == ",":
            if not frame.after:
                self.complain("a comma too many")
            self.pos += 1
            frame.after = False
        elif frame.after and not frame.may_begin(self.text, self.pos):
            self._unexpected(frame, char)
        elif frame.is_list:
            self._element(frame, char)
        else:
            self._member(frame, char)

    def _member(self, frame: Frame, char: str) -> None:
        """Read a key and its value."""
        key = KEY_AHEAD.match(self.text, self.pos) if char == '"' else None
        if key is None:
            key = BROKEN_KEY.match(self.text, self.pos)
            if key is None:
                self._unexpected(frame, char)
                return
            self.complain("a key is damaged")
        elif frame.after:
            self.complain("a comma is missing")
        name = lenient_string(next(filter(None, key.groups()), ""))
        outer = self.frames[-2] if len(self.frames) > 1 else None
        if outer is not None and outer.is_list:
            if name == next(iter(frame.value), None):
                self.complain("the braces between two records are missing")
                self._leave()
                frame = Frame({})
                self._enter(frame, opened=False)
            elif not frame.value:
                outer.learn(name)
        self._note_indent(frame)
        self.pos = key.end()
        frame.key = name
        self._value(frame)

    def _element(self, frame: Frame, char: str) -> None:
        """Read an element of a list."""
        if char in "}:":
            self._unexpected(frame, char)
            return
        if char == '"' and (key := KEY_AHEAD.match(self.text, self.pos)):
            self._key_in_list(frame, key[1])
            return
        if char == "{" and frame.value and self._goes_home():
            return
        if frame.after:
            self.complain("a comma is missing")
        self._note_indent(frame)
        self._value(frame)

    def _key_in_list(self, frame: Frame, key: str) -> None:
        """A bracket before this key has gone, or there was one too many."""
        if not frame.value:
            self.complain("a bracket where a brace should be")
            self.frames.pop()
            if not self.frames:
                self.root = Frame({})
                self._enter(self.root, opened=False)
                return
            self.frames[-1].drop_last()
            self._enter(Frame({}), opened=False)
            return
        last = frame.last()
        inside = len(self.frames) > 1 and not self.frames[-2].is_list
        indent = indent_at(self.text, self.pos)
        deeper = None not in (indent, frame.indent) and len(indent or "") > len(frame.indent or "")
        known = deeper or frame.has_record_with(key)
        if isinstance(last, dict) and key not in last and known and key not in frame.openings:
            self.complain("a closing brace too many")
            self._enter(Frame(last), opened=False, attached=True)
        elif known or key in frame.openings or not (frame.openings and inside):
            self.complain("an opening brace is missing")
            if frame.openings and isinstance(last, str):
                frame.drop_last()  # a key's value, of the part that is lost
            self._enter(Frame({}), opened=False)
        else:
            self.complain("a closing bracket is missing")
            self._leave()
            self.frames[-1].after = False

    def _value(self, frame: Frame) -> None:
        """Read the value that begins here into the container."""
        self.skip_space()
        start = self.pos
        if start >= len(self.text):
            return
        char = self.text[start]
        value = self.scan()
        if isinstance(value, dict | list):
            if frame.indent is None or ends_in_place(frame, self.text, start, self.pos):
                frame.put(value)
            else:  # it has swallowed what stands behind it
                self.budget -= self.pos - start
                self.pos = start
                self._container(frame, char)
        elif value is not MISSING and VALUE_ENDS.match(self.text, self.pos):
            if isinstance(value, str) or self.pos < len(self.text):
                frame.put(value)  # of a number at the very end nobody knows how it went on
        elif value is not MISSING and self.text[self.pos] in " \n" and not isinstance(value, str):
            frame.put(value)  # what is wrong is behind it
        elif char in "{[":
            self._container(frame, char)
        elif char == '"':
            self.pos = start
            self._damaged_text(frame)
        else:
            self.pos = start
            self._damaged_word(frame)

    def _container(self, frame: Frame, char: str) -> None:
        """Enter a container that the scanner refuses, unless it lies too deep."""
        if len(self.frames) < _MOST_DEPTH:
            self._enter(Frame({} if char == "{" else []))
            return
        self.complain("nested too deeply; left out")
        end = end_of_container(self.text, self.pos)
        self.pos = len(self.text) if end is None else end
        frame.after = True

    def _damaged_text(self, frame: Frame) -> None:
        """Keep what there is of a string behind whose opening quote something is wrong."""
        if not frame.is_list and KEY_AHEAD.match(self.text, self.pos):
            self.complain("an opening brace is missing")
            self._enter(Frame({}), opened=False)
            return
        closed = STRING.match(self.text, self.pos)
        if closed and VALUE_ENDS.match(self.text, closed.end()):
            self.complain("an escape that is none inside a text; the text is shown with it")
            self.pos = closed.end()
            frame.put(lenient_string(closed[1]))
            return
        if closed and NO_COMMA.match(self.text, closed.end()):
            self.complain("a comma is missing")
            self.pos = closed.end()
            frame.put(lenient_string(closed[1]))
            return
        start = self.pos + 1
        end = self.marks.end_of_text(self.frames, self.text, start)
        if end is not None:
            self.complain("a text is damaged here; it is shown as far as it can be told")
        self.pos = len(self.text) if end is None else end
        kept = self.text[start : self.pos].rstrip()
        if frame.indent is not None and end is not None:
            kept = kept.removesuffix(",").rstrip()
        if self.text[self.pos : self.pos + 1] == '"':
            self.pos += 1
        elif end is not None:
            kept = kept.removesuffix('"')
        frame.put(lenient_string(kept))

    def _damaged_word(self, frame: Frame) -> None:
        """Pass over a value that is none; a text that lost its opening quote is kept."""
        frame.after = True
        digits = DIGITS.match(self.text, self.pos)
        if digits and VALUE_ENDS.match(self.text, digits.end()):
            if digits.end() < len(self.text):
                self.complain("a number that cannot be read; left out")
            self.pos = digits.end()
            return
        word = WORD.match(self.text, self.pos)
        end = self.pos if word is None else word.end()
        if end < len(self.text) and self.text[end] == '"' and VALUE_ENDS.match(self.text, end + 1):
            self.complain("a text has lost its opening quote")
            frame.put(lenient_string(self.text[self.pos : end]))
            self.pos = end + 1
            return
        mark = word[0].strip() if word else ""
        if len(mark) == 1 and not mark.isalnum() and KEY_AHEAD.match(self.text, end):
            self.complain("an opening brace is missing")
            self.pos = end
            self._enter(Frame({}), opened=False)
            return
        junk = JUNK.match(self.text, self.pos)
        if junk is None:
            self._unexpected(frame, self.text[self.pos])
            return
        self.pos = junk.end()
        if self.pos >= len(self.text):
            return
        self.complain("a value that cannot be read; left out")
        if len(junk[0].strip()) == 1 and self.text[self.pos] in "{[":
            self._value(frame)

    def _unexpected(self, frame: Frame, char: str) -> None:
        """Go on behind something that cannot stand in this container."""
        outer = self.frames[-2] if len(self.frames) > 1 else None
        if char in "{[" and not frame.is_list:
            last = frame.last()
            if self._goes_home():
                return
            if outer is not None and outer.is_list and not outer.openings:
                self.complain("a closing brace is missing")
                self._leave_to(len(self.frames) - 1)
                return
            if isinstance(last, dict | list) and last:
                # The list that these are elements of has lost a bracket.
                self.complain("a bracket is missing or too many")
                inner = Frame(last if isinstance(last, list) else [last])
                inner.resume()
                frame.put(inner.value)
                self._enter(inner, opened=False, attached=True)
                return
        closes = char in "]}" and VALUE_ENDS.match(self.text, self.pos + 1)
        if closes and outer is not None and outer.closer == char and frame.indent is None:
            self.complain("a closing bracket is missing")
            self._leave()
            return
        self.complain("what stands here cannot be read; left out")
        if junk := JUNK.match(self.text, self.pos):
            self.pos = junk.end()
        elif char in "]}":
            self.pos += 1
        else:
            self._resume()

    def _goes_home(self) -> bool:
        """Whether the object here belongs to another list, in which reading goes on then.

        That list is around this container, or it was left too early.
        """
        frame = home_of_record(self.frames, self._left, self.text, self.pos)
        if frame is None:
            return False
        if frame in self.frames:
            self.complain("closing brackets are missing")
            self._leave_to(self.frames.index(frame) + 1)
            return True
        outer = self._left[frame]
        if outer not in self.frames:
            return False
        self.complain("brackets are missing or too many")
        self._leave_to(self.frames.index(outer) + 1)
        frame.after = False
        self._enter(frame, opened=False, attached=True)
        return True

    def _resume(self) -> None:
        """Go to the next place where a member of this container, or of one around it, begins."""
        place = self.marks.next_member(self.frames, self.text, self.pos + 1)
        if place is None:
            self.pos = len(self.text)
            return
        self.pos = place.pos
        self._leave_to(place.depth)
        self.frames[-1].after = self.text[self.pos] in "]}"

    def _leave_to(self, depth: int) -> None:
        """Leave containers until so many are open; a member may follow."""
        while len(self.frames) > depth:
            self._leave()
        self.frames[-1].after = False

    def _heed_indent(self) -> None:
        """Leave the containers that have lost their brackets, by where the line begins."""
        frame = self.frames[-1]
        if frame.indent is None:
            return
        indent = indent_at(self.text, self.pos)
        if indent is None or len(indent) >= len(frame.indent):
            return
        depth = depth_of_line(self.frames, len(indent), self.text, self.pos)
        if 0 < depth < len(self.frames):
            self.complain("closing brackets are missing")
            self._leave_to(depth)

    def _enter(self, frame: Frame, opened: bool = True, attached: bool = False) -> None:
        """Go into a container, behind its bracket where it has one."""
        if self.frames and not attached:
            self.frames[-1].put(frame.value)
        self.frames.append(frame)
        if opened:
            self.pos += 1

    def _leave(self) -> None:
        """The innermost container is over; behind the outermost the rest is looked at."""
        frame = self.frames.pop()
        if not self.frames:
            self._look_behind()
            return
        self.frames[-1].after = True
        if isinstance(frame.value, dict) and frame.value:
            self.frames[-1].learn(next(iter(frame.value)))
        elif frame.openings:
            self._left[frame] = self.frames[-1]
            if len(self._left) > _LEFT_KNOWN:
                del self._left[next(iter(self._left))]

    def _look_behind(self) -> None:
        """What stands behind the document: more of it, or a problem."""
        self.skip_space()
        if self.pos >= len(self.text):
            return
        if more := LITTER.match(self.text, self.pos):
            self.complain("a closing bracket too many")
            self.pos = more.end() - 1
            self.frames.append(self.root)
            self.root.resume()
            return
        left = len(self.text) - self.pos
        self.complain(f"{left} characters behind the end of the document are left out")
        self.pos = len(self.text)

    def _cut_off(self) -> None:
        """The text ends within the document."""
        self.complain("cut off here; everything before it was read", again=True)
        while self.frames:
            frame = self.frames.pop()
            if not frame.value and self.frames:
                self.frames[-1].drop_last()

    def _note_indent(self, frame: Frame) -> None:
        """Remember how far members are indented that stand on lines of their own."""
        if frame.placed:
            return
        frame.placed = True
        frame.indent = indent_at(self.text, self.pos)

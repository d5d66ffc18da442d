"""The repair of broken JSON documents: the records before and after each damage.

The library json-repair, made for short answers of models, guesses at the structure after a damage.
In 442 documents with a list of 20 messages and one damage, it lost more than 3 messages in 276;
this module did in 6.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from msgspec import Struct

from mast_tui.traces.io.json_lines import TEXT_AFTER_DOCUMENT, first_lines, is_json_lines
from mast_tui.traces.io.json_values import INVALID_ESCAPE, replace_surrogates, without_surrogates
from mast_tui.traces.model import Problem

MOST_CHARS: Final = 64 << 20
"""The most code points of a broken document that is repaired."""

_NO_VALUE: Final = object()
_MOST_DEPTH: Final = 200
_MOST_OPEN_CONTAINERS: Final = 2 * _MOST_DEPTH  # repairs open some that the text does not
_MOST_PROBLEMS: Final = 200
_MOST_IDLE_STEPS: Final = 16
"""The steps without progress, besides one for each container, before a character is skipped."""
_MOST_FIRST_KEYS: Final = 8
_MOST_SEARCHED_CONTAINERS: Final = 12
_MOST_EARLIER_LISTS: Final = 8
_MOST_FAILED_SCANS: Final = 24
"""The most times that failed attempts may read the text, on average."""

_WINDOW: Final = 1 << 16
"""The least number of read characters that are cut off at a time."""
_LOOK_BEHIND_CHARS: Final = 1 << 10
_LEAST_FAILURE_COST: Final = 1 << 10

_KEY: Final = r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"\s*+:'
_KEY_AHEAD: Final = re.compile(_KEY)
_BROKEN_KEY: Final = re.compile(
    r'"([^"\\\n:,{}\[\]]{1,200}):'  # no quote after the key
    r'|[^\s"{}\[\],:]?([^"\\\n:,{}\[\]]{1,200})"\s*:'  # no quote before the key
    r'|"([^"\\\n:,{}\[\]]{1,200})"\s*[^\s",:{}\[\]]\s*(?=["{\[\dtfn-])'  # no colon
)
_STRING: Final = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_SPACE: Final = re.compile(r"\s*+")
_VALUE_END: Final = re.compile(r"\s*+(?:[,}\]]|\Z)")
_COMMA_MISSING: Final = re.compile(rf'[^\s"]?\s*+{_KEY}|[^\s"\w]?\s*+[}}\]]')
_JUNK: Final = re.compile(r'[^,\[\]{}"\n]+')
_LOST_QUOTE: Final = re.compile(r'([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"(?=\s*+(?:[,}\]]|\Z))')
_CLOSERS_AND_COMMA: Final = re.compile(r"[\s}\]]*+,")
_NEXT_DOCUMENT: Final = re.compile(rf",\s*+\{{\s*+{_KEY}")
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_BEGINNING: Final = re.compile(
    rf'\s*+(?:\{{\s*+{_KEY}|\[\s*+(?:\{{\s*+["}}]|\[\s*+["\[{{\]\d-]|"))', re.DOTALL
)
"""The beginning of a document with records; plain text after a bracket does not match."""

_CLOSED_TEXT: Final = r'(?<!\\)"\s*+[}\]]'
_NEXT_RECORD: Final = r'[}\]]\s*+,\s*+[{\[]\s*+"'
_ENDS_IN_OBJECT: Final = re.compile(rf",\s*+{_KEY}|{_CLOSED_TEXT}|{_NEXT_RECORD}")
_ENDS_IN_LIST: Final = re.compile(rf',\s*+"|{_CLOSED_TEXT}|{_NEXT_RECORD}')
_QUOTE_BEFORE_CLOSER: Final = re.compile(r'(?<!\\)"\s*+(?=[}\]])')
_ANY_RECORD: Final = re.compile(r'[{\[]\s*+["{\[]')
_ANY_TEXT: Final = re.compile(r',\s*+(?=")')
_OBJECT_WITH_KEY: Final = re.compile(rf"\{{\s*+{_KEY}")
_BRACKET_OR_QUOTE: Final = re.compile(r'["\[\]{}]')
_MOST_BRACKETS: Final = 1 << 20
_ESCAPE: Final = re.compile(
    r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])|\\u[0-9a-fA-F]{0,3}\Z|\\\Z|\\|"|[\x00-\x1f]'
)


class Repaired(Struct, frozen=True):
    """The readable parts of a broken document, and the problems in it."""

    value: dict[str, object] | list[object]
    problems: tuple[Problem, ...]


def repair(text: str) -> Repaired | None:
    """Return the intact parts of a broken JSON document, in its structure.

    Only broken members of objects and lists are left out, and only the unreadable part of a damaged
    string. The result is None

    - if nothing is intact,
    - if the text is plain text or JSON lines,
    - if it is longer than ``MOST_CHARS``.
    """
    if len(text) > MOST_CHARS or _BEGINNING.match(text) is None:
        return None
    if is_json_lines(first_lines(text)):
        return None
    return _Repair(text).read()


class _Container:
    """An object or list that is being read: its members so far, and first keys of its objects."""

    def __init__(self, value: dict[str, object] | list[object]) -> None:
        self.value = value
        self.is_list = isinstance(value, list)
        self.closer = "]" if self.is_list else "}"
        self.expects_comma = False
        """True if a member was just read, so that a comma or the end must follow."""
        self.key = next(reversed(value), "") if isinstance(value, dict) else ""
        """The key of an object's last member."""
        self.first_keys: tuple[str, ...] = ()
        """The different first keys of the objects in a list; new objects have one of them."""
        for member in value if isinstance(value, list) else ():
            self.learn_first_key(member)

    def add_member(self, value: object) -> None:
        """Add a member: an item of a list, or the value of ``key`` in an object."""
        self.expects_comma = True
        if isinstance(self.value, list):
            self.value.append(value)
        else:
            self.value[self.key] = value
        self.learn_first_key(value)

    def learn_first_key(self, member: object) -> None:
        """Add the first key of an object in this list to ``first_keys``, which keeps a few."""
        if not self.is_list or not isinstance(member, dict):
            return
        key = next(iter(member), None)
        if isinstance(key, str) and key not in self.first_keys:
            self.first_keys = (*self.first_keys, key)[-_MOST_FIRST_KEYS:]

    def last_value(self) -> object:
        """Return the last member's value; None if there is none."""
        if isinstance(self.value, list):
            return self.value[-1] if self.value else None
        return self.value.get(self.key)

    def drop_last_member(self) -> None:
        """Remove the last item of a list, or ``key`` with its value."""
        if isinstance(self.value, dict):
            self.value.pop(self.key, None)
        elif self.value:
            self.value.pop()

    def has_record_with(self, key: str) -> bool:
        """Return whether one of the first or last three objects of a list has this key."""
        samples = [*self.value[:3], *self.value[-3:]] if isinstance(self.value, list) else []
        return any(isinstance(record, dict) and key in record for record in samples)

    def resume_patterns(self, innermost: bool) -> list[re.Pattern[str]]:
        """Return patterns of the beginning of a member, at which reading can resume.

        The last string of the innermost container may be open, so there a closing quote matches,
        too.
        """
        patterns = [_QUOTE_BEFORE_CLOSER] if innermost else []
        if not self.is_list:
            return [*patterns, _KEY_AHEAD]
        if self.first_keys:  # the next object probably begins with one of these
            keys = "|".join(map(re.escape, sorted(self.first_keys)))
            return [*patterns, re.compile(rf'\{{\s*+"(?:{keys})"\s*+:')]
        return [*patterns, _ANY_TEXT if isinstance(self.last_value(), str) else _ANY_RECORD]


class _ClosedList(NamedTuple):
    """A list of objects that ended, perhaps by an error, with the container around it."""

    objects: _Container
    parent: _Container


class _Repair:
    """A reader that goes through a text once, with a stack of the open containers.

    The standard scanner reads whole values. Only a value that it refuses is read member by member.
    Text that was read is cut off now and then, because the scanner's errors count all lines before
    them.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._failure_budget = _MOST_FAILED_SCANS * len(text) + (1 << 20)
        """The number of characters that failed attempts may still read, to limit the time."""
        self._drop_size = max(_WINDOW, len(text) >> 8)
        """The number of read characters at which they are dropped."""
        self._has_surrogates = _SURROGATE_ESCAPE.search(text) is not None
        """True if the text may have lone surrogates."""
        self._decoder = json.JSONDecoder(strict=False)
        self._root = _Container({} if text.lstrip()[0] == "{" else [])
        self._open_containers: list[_Container] = []
        self._closed_lists: list[_ClosedList] = []
        """The lists of objects that ended most recently, the last one first."""
        self._next_matches: dict[re.Pattern[str], tuple[int, int | None]] = {}
        """The start of the last search for each pattern, and the position of the match."""
        self._problems: list[Problem] = []
        self._line = 1
        """The number of the line at ``_lines_counted_to``."""
        self._lines_counted_to = 0
        """The position up to which line feeds are counted."""
        self._last_problem_line = 0

    def read(self) -> Repaired | None:
        """Return the value with everything that can be read; None if nothing can be read."""
        self._skip_space()
        value = self._scan_value()
        if isinstance(value, dict | list):  # this decoder reads it, orjson does not
            self._root = _Container(value)
            self._read_after_document()
            if not self._problems:  # then orjson refuses only a control character
                self._pos = self._first_error()
                self._add_problem("control characters inside a text; read all the same")
        else:  # read member by member, into the empty root
            self._enter_container(self._root)

        steps_without_progress = 0
        previous_pos = -1
        while self._open_containers:
            steps_without_progress = steps_without_progress + 1 if self._pos == previous_pos else 0
            previous_pos = self._pos
            if steps_without_progress > _MOST_IDLE_STEPS + len(self._open_containers):
                self._pos += 1  # else the loop might not end
            self._read_next()

        if not self._root.value:
            return None
        if not self._problems:
            self._add_problem("damaged before here")
        return Repaired(self._root.value, tuple(self._problems))

    def _read_next(self) -> None:
        """Read the next member, comma or end of the innermost container."""
        self._drop_read_text()
        self._skip_space()
        if self._failure_budget <= 0 or len(self._open_containers) > _MOST_OPEN_CONTAINERS:
            self._add_problem("damaged too much; from here on nothing is read")
            self._open_containers.clear()
            return
        if self._pos >= len(self._text):
            self._end_cut_document()
            return

        container = self._open_containers[-1]
        char = self._text[self._pos]
        if char == container.closer:
            self._pos += 1
            self._leave_container()
        elif char == ",":
            if not container.expects_comma:
                self._add_problem("a comma too many")
            self._pos += 1
            container.expects_comma = False
        elif container.is_list:
            self._read_item(container, char)
        else:
            self._read_member(container, char)

    def _read_item(self, container: _Container, char: str) -> None:
        """Read an item, which begins with ``char``, into a list; repair what is missing."""
        key_match = _KEY_AHEAD.match(self._text, self._pos)
        # Without a comma before it, only a quote or an opening bracket begins an item.
        begins_item = char not in "}:" and (char in '{["' or not container.expects_comma)
        if key_match is not None:
            self._repair_key_in_list(container, key_match[1])
        elif not begins_item:
            self._skip_misplaced(container, char)
        # If closing brackets are missing, the object belongs to an outer list.
        elif char != "{" or not container.value or not self._continue_in_outer_list(container):
            if container.expects_comma:
                self._add_problem("a comma is missing")
            self._read_value(container)

    def _read_member(self, container: _Container, char: str) -> None:
        """Read a key and its value into an object; repair a damaged key and missing braces."""
        key_match = _KEY_AHEAD.match(self._text, self._pos)
        if key_match is not None and container.expects_comma:
            self._add_problem("a comma is missing")
        elif key_match is None:
            if not container.expects_comma:
                key_match = _BROKEN_KEY.match(self._text, self._pos)
            if key_match is None:
                self._skip_misplaced(container, char)
                return
            self._add_problem("a key is damaged")
        # The pattern of a broken key has a group for each kind of damage.
        key = _decode_string(next(filter(None, key_match.groups()), ""))
        container = self._object_for_key(container, key)
        self._pos = key_match.end()
        container.key = key
        self._read_value(container)

    def _object_for_key(self, container: _Container, key: str) -> _Container:
        """Return the object to which a key belongs: this one, or a new one after it in a list.

        The objects in a list usually begin with the same key. If that key comes again, the braces
        between two objects are missing.
        """
        parent = self._parent()
        if parent is not None and parent.is_list and key == next(iter(container.value), None):
            self._add_problem("the braces between two records are missing")
            self._leave_container()
            container = _Container({})
            self._enter_container(container, has_opening=False)
        elif parent is not None and not container.value:
            parent.learn_first_key({key: None})  # without the value, which follows
        return container

    def _repair_key_in_list(self, container: _Container, key: str) -> None:
        """Repair a key directly in a list: a bracket before it is wrong, missing or superfluous."""
        if not container.value:
            self._replace_list_by_object()
            return
        last_member = container.last_value()
        is_first_key = key in container.first_keys
        is_later_key = not is_first_key and container.has_record_with(key)
        parent = self._parent()
        is_list_in_object = parent is not None and not parent.is_list
        may_be_key_of_outer_object = bool(container.first_keys) and is_list_in_object
        if is_later_key and isinstance(last_member, dict) and key not in last_member:
            # The last object has ended too early.
            self._add_problem("a closing brace too many")
            self._enter_container(_Container(last_member), has_opening=False, is_attached=True)
        elif is_first_key or is_later_key or not may_be_key_of_outer_object:
            self._add_problem("an opening brace is missing")
            if container.first_keys and isinstance(last_member, str):
                container.drop_last_member()  # the value of a key in the lost part
            self._enter_container(_Container({}), has_opening=False)
        else:  # the key is one of the outer object
            self._add_problem("a closing bracket is missing")
            self._leave_container()
            self._open_containers[-1].expects_comma = False

    def _replace_list_by_object(self) -> None:
        """End the innermost list, which is empty, and begin an object in its place."""
        self._add_problem("a bracket where a brace should be")
        self._open_containers.pop()
        new_object = _Container({})
        if self._open_containers:
            self._open_containers[-1].drop_last_member()
        else:
            self._root = new_object
        self._enter_container(new_object, has_opening=False)

    def _read_value(self, container: _Container) -> None:
        """Read the value that begins here, damaged or not, into the container."""
        self._skip_space()
        start = self._pos
        if start >= len(self._text):
            return
        char = self._text[start]
        value = self._scan_value()
        has_value = value is not _NO_VALUE
        if isinstance(value, dict | list):
            container.add_member(value)
        elif has_value and _VALUE_END.match(self._text, self._pos):
            # A number at the very end of the text may have been cut off.
            if isinstance(value, str) or self._pos < len(self._text):
                container.add_member(value)
        elif has_value and char != '"' and self._text[self._pos].isspace():
            container.add_member(value)  # a number or word; the damage is after it
        elif char in "{[":
            self._read_container(container, char)
        else:
            self._pos = start
            if char == '"':
                self._read_damaged_string(container)
            else:
                self._read_damaged_word(container)

    def _read_container(self, outer: _Container, char: str) -> None:
        """Enter a container in ``outer`` that the scanner refuses; skip it if it is too deep."""
        if len(self._open_containers) < _MOST_DEPTH:
            self._enter_container(_Container({} if char == "{" else []))
            return
        self._add_problem("nested too deeply; left out")
        self._pos = _end_of_container(self._text, self._pos)
        outer.expects_comma = True

    def _read_damaged_string(self, container: _Container) -> None:
        """Add a string with damage in it or after it; enter an object if the string is its key."""
        if not container.is_list and _KEY_AHEAD.match(self._text, self._pos):
            # A key in place of a value begins an object without a brace.
            self._add_problem("an opening brace is missing")
            self._enter_container(_Container({}), has_opening=False)
            return
        string = _STRING.match(self._text, self._pos)
        if string and _VALUE_END.match(self._text, string.end()):
            self._add_problem(INVALID_ESCAPE)
        elif string and _COMMA_MISSING.match(self._text, string.end()):
            self._add_problem("a comma is missing")
        else:
            self._read_unclosed_string(container)
            return
        self._pos = string.end()
        container.add_member(_decode_string(string[1]))

    def _read_unclosed_string(self, container: _Container) -> None:
        """Add a string without a valid end, up to the next position that looks like an end."""
        start = self._pos + 1
        end_pattern = _ENDS_IN_LIST if container.is_list else _ENDS_IN_OBJECT
        end = end_pattern.search(self._text, start)
        if end is not None:
            self._add_problem("a text is damaged here; its readable part is shown")
        self._pos = len(self._text) if end is None else end.start()
        text = self._text[start : self._pos].rstrip()
        if self._text[self._pos : self._pos + 1] == '"':
            self._pos += 1
        elif end is not None:  # the end is a comma or bracket, with the closing quote before it
            text = text.removesuffix('"')
        container.add_member(_decode_string(text))

    def _read_damaged_word(self, container: _Container) -> None:
        """Add a string that has lost its opening quote, or skip a value that cannot be read."""
        container.expects_comma = True
        unopened_text = _LOST_QUOTE.match(self._text, self._pos)
        if unopened_text is not None:
            self._add_problem("a text has lost its opening quote")
            self._pos = unopened_text.end()
            container.add_member(_decode_string(unopened_text[1]))
            return
        junk = _JUNK.match(self._text, self._pos)
        if junk is None:
            self._skip_misplaced(container, self._text[self._pos])
            return
        self._pos = junk.end()
        if self._pos >= len(self._text):  # cut off, which is reported later
            return
        self._add_problem("a value that cannot be read; left out")
        # After a single wrong character, the following object or list is intact.
        if len(junk[0].strip()) == 1 and self._text[self._pos] in "{[":
            self._read_value(container)

    def _skip_misplaced(self, container: _Container, char: str) -> None:
        """Add the missing bracket before a misplaced character, or skip the text there."""
        if char in "{[" and not container.is_list and self._repair_missing_key(container):
            return
        ends_value = char in "]}" and _VALUE_END.match(self._text, self._pos + 1)
        parent = self._parent()
        if ends_value and parent is not None and parent.closer == char:
            self._add_problem("a closing bracket is missing")
            self._leave_container()
            return

        self._add_problem("unreadable text; left out")
        if junk := _JUNK.match(self._text, self._pos):
            self._pos = junk.end()
        elif char in "]}":
            self._pos += 1
        else:
            self._skip_to_next_member()

    def _repair_missing_key(self, container: _Container) -> bool:
        """Repair a bracket that is missing before an object or list without a key in an object.

        Return True if it is repaired, so that reading continues at the current position.
        """
        if self._continue_in_outer_list(container):
            return True
        parent = self._parent()
        # A list without a complete object cannot show how its objects begin.
        if parent is not None and parent.is_list and not parent.first_keys:
            self._add_problem("a closing brace is missing")
            self._leave_container()
            self._open_containers[-1].expects_comma = False
            return True
        last_value = container.last_value()
        if isinstance(last_value, dict | list) and last_value:
            # A list has lost its bracket; the last value and the next ones are its items.
            self._add_problem("a bracket is missing or too many")
            items = _Container(last_value if isinstance(last_value, list) else [last_value])
            container.add_member(items.value)
            self._enter_container(items, has_opening=False, is_attached=True)
            return True
        return False

    def _continue_in_outer_list(self, container: _Container) -> bool:
        """Leave this container for an outer list, if the next object is like those of that list.

        The list is still open around this container, or a wrong bracket has just ended the list.
        Return False without such a list.
        """
        match = _OBJECT_WITH_KEY.match(self._text, self._pos)
        first_key = None if match is None else match[1]
        if first_key is None or first_key in container.first_keys:
            return False
        for depth in range(len(self._open_containers) - 1, 0, -1):
            if first_key in self._open_containers[depth - 1].first_keys:
                self._add_problem("closing brackets are missing")
                self._leave_down_to(depth)
                return True
        for closed_list in self._closed_lists:
            objects = closed_list.objects
            if first_key in objects.first_keys and closed_list.parent in self._open_containers:
                self._add_problem("a closing bracket too many")
                self._leave_down_to(self._open_containers.index(closed_list.parent) + 1)
                objects.expects_comma = False
                self._enter_container(objects, has_opening=False, is_attached=True)
                return True
        return False

    def _skip_to_next_member(self) -> None:
        """Move to the nearest position at which a member of an open container begins or ends.

        Containers inside that container end. Without such a position, move to the end of the text.
        """
        nearest = len(self._text)
        nearest_depth: int | None = None
        innermost = len(self._open_containers)
        for depth in range(innermost, max(0, innermost - _MOST_SEARCHED_CONTAINERS), -1):
            for pattern in self._open_containers[depth - 1].resume_patterns(depth == innermost):
                position = self._next_position(pattern, self._pos + 1)
                if position is not None and (nearest_depth is None or position < nearest):
                    nearest = position
                    nearest_depth = depth
        self._pos = nearest
        if nearest_depth is not None:
            self._leave_down_to(nearest_depth)
            is_after_member = self._text[self._pos] in "]}"
            self._open_containers[-1].expects_comma = is_after_member

    def _next_position(self, pattern: re.Pattern[str], pos: int) -> int | None:
        """Return the next position from ``pos`` on that matches a pattern; None without a match.

        The position is stored, so that all searches together take linear time.
        """
        last_search = self._next_matches.get(pattern)
        if last_search is not None:
            searched_from, position = last_search
            if searched_from <= pos and (position is None or position >= pos):
                return position
        match = pattern.search(self._text, pos)
        position = None
        if match is not None:  # after a closing quote, reading resumes at the bracket
            position = match.end() if pattern is _QUOTE_BEFORE_CLOSER else match.start()
        self._next_matches[pattern] = (pos, position)
        return position

    def _enter_container(
        self, container: _Container, *, has_opening: bool = True, is_attached: bool = False
    ) -> None:
        """Make a container the innermost one.

        ``has_opening`` moves past its opening bracket. ``is_attached`` is True if the container is
        a member of its parent already.
        """
        if self._open_containers and not is_attached:
            self._open_containers[-1].add_member(container.value)
        self._open_containers.append(container)
        if has_opening:
            self._pos += 1

    def _parent(self) -> _Container | None:
        """Return the container around the innermost one; None if the innermost is the document."""
        return self._open_containers[-2] if len(self._open_containers) > 1 else None

    def _leave_container(self) -> None:
        """End the innermost container; if it was the whole document, read the text after it."""
        container = self._open_containers.pop()
        if self._open_containers:
            self._open_containers[-1].expects_comma = True
            self._open_containers[-1].learn_first_key(container.value)
            # The end of a list of objects may be an error; a later object may reopen it.
            if container.first_keys:
                closed_list = _ClosedList(container, self._open_containers[-1])
                self._closed_lists = [closed_list, *self._closed_lists[: _MOST_EARLIER_LISTS - 1]]
        else:
            self._read_after_document()

    def _leave_down_to(self, depth: int) -> None:
        """End containers until ``depth`` of them are open; a member may follow."""
        while len(self._open_containers) > depth:
            self._leave_container()
        self._open_containers[-1].expects_comma = False

    def _read_after_document(self) -> None:
        """Reopen the document if its end was wrong and a comma follows; else report the rest."""
        self._skip_space()
        if self._pos >= len(self._text):
            return
        closers = _CLOSERS_AND_COMMA.match(self._text, self._pos)
        if closers is not None and not self._is_before_next_document():
            self._add_problem("a closing bracket too many")
            self._pos = closers.end() - 1  # at the comma, which the match includes
            self._root.expects_comma = True
            self._open_containers.append(self._root)
            return
        rest_count = len(self._text) - self._pos
        self._add_problem(f"{rest_count} {TEXT_AFTER_DOCUMENT}")
        self._pos = len(self._text)

    def _is_before_next_document(self) -> bool:
        """Return whether a comma and another document follow, with the same first key."""
        next_document = _NEXT_DOCUMENT.match(self._text, self._pos)
        if next_document is None or not isinstance(self._root.value, dict):
            return False
        return next_document[1] == next(iter(self._root.value), None)

    def _end_cut_document(self) -> None:
        """End all containers at the end of a text that is cut off; drop empty containers."""
        self._add_problem("cut off here; everything before it was read", always=True)
        while self._open_containers:
            container = self._open_containers.pop()
            if not container.value and self._open_containers:
                self._open_containers[-1].drop_last_member()

    def _add_problem(self, message: str, always: bool = False) -> None:
        """Add a problem at the current position.

        ``always`` adds it even if its line has a problem, or there are too many problems.
        """
        self._count_lines(self._pos)
        if self._line == self._last_problem_line and not always:
            return
        self._last_problem_line = self._line
        if len(self._problems) == _MOST_PROBLEMS and not always:
            message = "further problems are not listed"
        if len(self._problems) <= _MOST_PROBLEMS or always:
            self._problems.append(Problem(f"line {self._line}", message))

    def _count_lines(self, pos: int) -> None:
        if pos > self._lines_counted_to:
            self._line += self._text.count("\n", self._lines_counted_to, pos)
            self._lines_counted_to = pos

    def _skip_space(self) -> None:
        if space := _SPACE.match(self._text, self._pos):
            self._pos = space.end()

    def _scan_value(self) -> object:
        """Return the value that begins here, and move to its end.

        If there is no intact value, do not move, lower the budget and return ``_NO_VALUE``.
        """
        start = self._pos
        try:
            value, self._pos = self._decoder.raw_decode(self._text, start)
            return without_surrogates(value) if self._has_surrogates else value
        except json.JSONDecodeError as error:
            # The error of an open string is at its quote, but the scanner read to the end.
            read_to = len(self._text) if error.msg.startswith("Unterminated") else error.pos
            self._failure_budget -= read_to - start
        except (ValueError, RecursionError):  # too many digits, nested too deeply
            pass
        # The decoder counts all lines before its error, which is faster than reading them.
        cost_of_error = start >> 3
        self._failure_budget -= _LEAST_FAILURE_COST + cost_of_error
        self._pos = start
        return _NO_VALUE

    def _first_error(self) -> int:
        """Return the position of a strict decoder's error, or the current position without one."""
        try:
            json.loads(self._text)
        except json.JSONDecodeError as error:
            return error.pos
        except (ValueError, RecursionError):
            pass
        return self._pos

    def _drop_read_text(self) -> None:
        """Drop the beginning of the text that was read, once it is longer than ``_drop_size``."""
        drop_count = self._pos - _LOOK_BEHIND_CHARS
        if drop_count < self._drop_size:
            return
        self._count_lines(drop_count)
        self._lines_counted_to = max(0, self._lines_counted_to - drop_count)
        self._next_matches.clear()  # its positions change
        self._text = self._text[drop_count:]
        self._pos -= drop_count


def _end_of_container(text: str, pos: int) -> int:
    """Return the end of the container that begins at ``pos``, found by counting brackets.

    Return the end of the text if a bracket or quote is missing, or there are too many brackets.
    """
    depth = 0
    for _ in range(_MOST_BRACKETS):
        match = _BRACKET_OR_QUOTE.search(text, pos)
        if match is None:
            break
        pos = match.end()
        if match[0] == '"':  # brackets in a string do not count
            string = _STRING.match(text, match.start())
            if string is None:
                break
            pos = string.end()
            continue
        depth += 1 if match[0] in "[{" else -1
        if depth == 0:
            return pos
    return len(text)


def _decode_string(body: str) -> str:
    """Return the value of the text between two quotes; invalid escapes stay unchanged."""
    value: object = json.loads(f'"{_ESCAPE.sub(_valid_escape, body)}"')
    return replace_surrogates(value) if isinstance(value, str) else ""


def _valid_escape(escape: re.Match[str]) -> str:
    """Return a valid escape for an escape or special character; empty if it is cut off."""
    text = escape[0]
    if text == '"':
        return '\\"'
    if text < " ":  # a control character
        return f"\\u{ord(text):04x}"
    if text == "\\":  # a backslash before no valid letter
        is_cut_off = escape.end() == len(escape.string)
        return "" if is_cut_off else "\\\\"
    if text.startswith("\\u") and len(text) < len("\\u0000"):
        return ""
    return text

"""The spans of a long trace as columns: what is known of each but its text, in a few bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from math import nan
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.blocks import Block, Column, joined
from mast_tui.traces.index.lazy_span import lazy_span
from mast_tui.traces.index.span_columns import ShapeNumbers
from mast_tui.traces.model import (
    STATUSES,
    Problem,
    Role,
    Shape,
    Span,
    SpanColumns,
    SpanKind,
    SpanStatus,
    Tokens,
)

if TYPE_CHECKING:
    from mast_tui.traces.index.document import Step

_NUMBER_BITS: Final = 32
_NUMBER: Final = (1 << _NUMBER_BITS) - 1
_TAG: Final = _NUMBER << _NUMBER_BITS
"""Where the hash of a key lies that a block tells, above the number of its span from 1 on."""
_LINE: Final = "line "
_MOST_DIGITS: Final = 12
_REMEMBERED: Final = 8
"""Repetitions of one key from which on the next free number is not looked for from the start."""


class KeyTable:
    """Hands out keys like ``UniqueKeys``, and says which span has which.

    A span without an id of its own goes by its first line, which ``lines`` knows already; other
    keys are kept as UTF-8 in one piece. One thread adds; others may ask meanwhile.
    """

    # Spans that go by their lines are not in the dictionary as long as their lines follow each
    # other. Neither are those that were taken in with a block, whose hashes come sorted and are the
    # same in all processes: so a window that shows a big file holds no key of it as a text.

    def __init__(self, lines: Sequence[int]) -> None:
        self._lines = lines
        self._own = bytearray()
        self._ends = array("I", [0])
        self._indices: dict[str, int] = {}
        self._by_line = array("I")
        self._last_line = 0
        self._looks_like_line = False  # whether some other key does
        self._free_numbers: dict[str, int] = {}
        self._taken_in: list[Column] = []  # for each block hashes with numbers, sorted
        self.repeats = 0
        """How many keys were taken when they were asked for."""

    @classmethod
    def of(cls, indices: dict[str, int], lines: Sequence[int]) -> KeyTable:
        """The table of spans that all have a key of their own, in the order of the spans."""
        found = cls(lines)
        own = [key.encode("utf-8", "surrogatepass") for key in indices]
        found._own = bytearray().join(own)
        size = len(found._own)
        found._ends = array("I" if size <= _NUMBER else "Q", accumulate(map(len, own), initial=0))
        found._indices = indices
        found._looks_like_line = any(key.startswith(_LINE) for key in indices)
        return found

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:
        """The key of the span at ``index``."""
        begin = self._ends[index]
        end = self._ends[index + 1]
        if begin == end:
            return f"{_LINE}{self._lines[index]}"
        return self._own[begin:end].decode("utf-8", "surrogatepass")

    def any_holds(self, part: bytes, first: int, end: int) -> bool:
        """Whether these bytes stand in a key of its own of the spans ``first`` to ``end``
        (exclusive)."""
        return self._own.find(part, self._ends[first], self._ends[end]) >= 0

    def find(self, key: str) -> int | None:
        """The index of the span with this key."""
        if key.startswith(_LINE) and (index := self._on_line(key)) is not None:
            return index
        return self._index(key)

    def add(self, own: str | None) -> None:
        """Give the next span its key: ``own`` or that of its line, with ``~2`` where it is taken.

        ``lines`` must know the span's line by now.
        """
        index = len(self._ends) - 1
        if own:
            wanted = own
            like_line = own.startswith(_LINE)
            self._looks_like_line |= like_line
        else:
            line = self._lines[index]
            if line > self._last_line and not self._looks_like_line:
                self._last_line = line
                self._ends.append(self._ends[-1])
                self._by_line.append(index)
                return
            wanted = f"{_LINE}{line}"
            like_line = True
        taken = wanted in self._indices or (self._taken_in and self._index(wanted) is not None)
        if taken or (like_line and self._on_line(wanted) is not None):
            self.repeats += 1
            own = wanted = self._free(wanted)
        if own:
            self._own += own.encode("utf-8", "surrogatepass")
        end = len(self._own)
        try:
            self._ends.append(end)  # From here on the span is known; its key is found last.
        except OverflowError:
            self._ends = wider(self._ends, end)
        self._indices[wanted] = index

    def _on_line(self, key: str) -> int | None:
        """The index of the span with this key among those that go by lines which follow."""
        digits = key[len(_LINE) :]
        if not (digits.isascii() and digits.isdecimal()) or digits[0] == "0":
            return None
        line = int(digits[:_MOST_DIGITS])
        spans = self._by_line
        position = bisect_left(spans, line, key=self._lines.__getitem__)
        if (
            position < len(spans)
            and self._lines[spans[position]] == line
            and len(digits) < _MOST_DIGITS
        ):
            return spans[position]
        return None

    def _free(self, wanted: str) -> str:
        number = self._free_numbers.get(wanted, 1) + 1
        while self._index(key := f"{wanted}~{number}") is not None:
            number += 1
        if number > _REMEMBERED:
            self._free_numbers[wanted] = number
        return key

    def _index(self, key: str) -> int | None:
        """The index of the span with this key, of those that do not go by lines that follow."""
        index = self._indices.get(key)
        if index is not None or not self._taken_in:
            return index
        code = crc32(key.encode("utf-8", "surrogatepass")) << _NUMBER_BITS
        for block in self._taken_in:
            for position in range(bisect_left(block, code), len(block)):
                if (block[position] ^ code) & _TAG:
                    break
                if self[(block[position] & _NUMBER) - 1] == key:
                    return int(block[position] & _NUMBER) - 1
        return None

    @property
    def by_line(self) -> int:
        """How many spans go by their lines, which follow each other."""
        return len(self._by_line)

    def since(self, spans: int, by_line: int) -> Block:
        """The keys of the spans from ``spans`` on, of which those from ``by_line`` on go by lines
        that follow each other."""
        ends = self._ends[spans:]
        begin = self._ends[spans]
        own = self._own[begin:]
        lined = self._by_line[by_line:]
        lined_too = frozenset(lined)
        hashes = array(
            "Q",
            sorted(
                crc32(own[low - begin : high - begin] or b"%s%d" % (b"line ", self._lines[index]))
                << _NUMBER_BITS
                | index + 1
                for index, (low, high) in enumerate(pairwise(ends), spans)
                if index not in lined_too
            ),
        )
        facts = {
            "repeats": self.repeats,
            "last_line": self._last_line,
            "looks_like_line": self._looks_like_line,
            "free_numbers": self._free_numbers,
        }
        columns = {"own": own, "ends": ends[1:], "by_line": lined, "hashes": hashes}
        return Block(facts, columns)

    def append_block(self, block: Block, lines: Sequence[int]) -> None:
        """Append the keys that ``since`` has told of another table that was like this one.

        Args:
            block: The keys.
            lines: The first line of each span, those of the block among them.
        """
        facts, columns = block
        self._lines = lines
        self.repeats = facts["repeats"]
        self._last_line = facts["last_line"]
        self._looks_like_line = facts["looks_like_line"]
        self._free_numbers.update(facts["free_numbers"])
        if self._own:
            self._own += columns["own"]
        else:
            self._own = columns["own"]
        self._by_line = joined(self._by_line, columns["by_line"])
        if columns["hashes"]:
            self._taken_in.append(columns["hashes"])
        self._ends = joined(self._ends, columns["ends"])  # from here on the spans are known


def wider(column: array[int], number: int) -> array[int]:
    """The column with ``number`` behind it, which it has no room for.

    Others may go on reading the old one. Raises ``OverflowError`` for more than 64 bits.
    """
    narrow = column.typecode == "H" and number >> 32 == 0
    room = array("I" if narrow else "Q", column)
    room.append(number)
    return room


def _narrow(numbers: Sequence[int]) -> array[int]:
    """The numbers as a column of as few bytes as most tables need."""
    try:
        return array("H", numbers)
    except OverflowError:
        return array("I", numbers)


_LISTED_PROBLEMS: Final = 200
_UNKNOWN: Final = SpanStatus.UNKNOWN
_MOST_COUNTED: Final = (1 << 32) - 1


def list_problem(problems: list[Problem], line: int, message: str) -> None:
    """Note a problem on a line of a file that may be broken all over: only the first are listed.

    Args:
        problems: Where it is noted.
        line: The line, counted from 1.
        message: What is wrong there.
    """
    if len(problems) < _LISTED_PROBLEMS:
        problems.append(Problem(f"line {line}", message))
    elif len(problems) == _LISTED_PROBLEMS:
        problems.append(Problem(f"line {line}", "from here on problems are not listed"))


class TableState(NamedTuple):
    """How much a table has been told: spans, what became known of them later, problems."""

    spans: int
    amended: int
    problems: int

    def differs(self, later: TableState) -> bool:
        """Whether more than problems has come until ``later``."""
        return self[:2] != later[:2]


class BlockStart(NamedTuple):
    """How much of a table was told by the blocks before."""

    spans: int = 0
    by_line: int = 0
    shapes: int = 0
    problems: int = 0
    spawned: int = 0


class SpanTable:
    """The spans found so far, each with the lines that hold its text.

    One thread adds and amends; others may ask meanwhile for spans below ``len``.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.prefix = ""
        """What every key begins with: ``<thread id>/``; set before there are any spans."""
        self.at_tail: TableState | None = None
        """What it was told before a last line that nothing ends."""
        self.amended = 0
        """How often something was told of a span that was there already."""
        self.spawned: dict[str, str] = {}
        """By thread id the key of the span before which a sub-agent's spans belong."""
        self._shapes = ShapeNumbers()
        self._first = array("I")
        self._last = self._first  # a column of its own once a span lies on several lines
        self._shape = array("H")
        self._status = bytearray()
        self._parent = array("H")  # so many spans before this one; 0 for none
        self._start = array("d")
        self._end = array("d")
        self._tokens = _TokenColumn()
        self._keys = KeyTable(self._first)
        self._block_start: BlockStart | None = None
        self._late: set[int] = set()  # spans told by now of which something became known since

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def repeats(self) -> int:
        """How many spans did not get the key they asked for, as it was taken."""
        return self._keys.repeats

    def add(
        self,
        first: int,
        last: int,
        shape: Shape,
        key: str | None = None,
        parent: int | None = None,
        start: float | None = None,
        status: SpanStatus = _UNKNOWN,
    ) -> int:
        """Append a span whose text lies on the lines ``first`` to ``last``; return its index.

        Without a ``key`` of its own it goes by its first line. ``parent`` is the index of an
        earlier span.
        """
        number = len(self._first)
        if last != first or self._last is not self._first:
            self._add_last(last)
        self._first.append(first)
        known = self._shapes[shape]
        try:
            self._shape.append(known)
        except OverflowError:
            self._shape = wider(self._shape, known)
        back = 0 if parent is None else number - parent
        try:
            self._parent.append(back)
        except OverflowError:
            self._parent = wider(self._parent, back)
        self._status.append(0 if status is _UNKNOWN else STATUSES.index(status))
        self._start.append(nan if start is None else start)
        self._end.append(nan)
        self._keys.add(key)  # the last, as it makes the span known
        return number

    def fill(self, spans: Sequence[Step | Span]) -> dict[int, str]:
        """Take in all spans of a document, of which each lies on a line of its own.

        Args:
            spans: What is known of each; their keys are all different. The table is empty.

        Returns:
            By index the parents that do not come before their children, which it cannot hold.
        """
        index_of = {span.key: index for index, span in enumerate(spans)}
        odd: dict[int, str] = {}
        backs = [0] * len(spans)
        for index, span in enumerate(spans):
            if span.parent is not None:
                before = index_of.get(span.parent, index)
                if before < index:
                    backs[index] = index - before
                else:
                    odd[index] = span.parent
            if span.tokens is not None:
                self.set_tokens(index, span.tokens)
        self._parent = _narrow(backs)
        numbers = self._shapes
        self._shape = _narrow(
            [numbers[span.kind, span.role, span.agent, span.name] for span in spans]
        )
        self._status = bytearray([STATUSES.index(span.status) for span in spans])
        self._start = array("d", [nan if span.start is None else span.start for span in spans])
        self._end = array("d", [nan if span.end is None else span.end for span in spans])
        self._first = self._last = array("I", range(1, len(spans) + 1))
        self._keys = KeyTable.of(index_of, self._first)
        return odd

    def _add_last(self, last: int) -> None:
        if self._last is self._first:
            self._last = self._first[:]
        self._last.append(last)

    def set_end(self, index: int, end: float | None) -> None:
        """Tell when the step at ``index`` was over."""
        if end is not None:
            self._end[index] = end
            self.amended += 1
            if self._block_start is not None:
                self._late.add(index)

    def set_status(self, index: int, status: SpanStatus) -> None:
        """Tell how the step at ``index`` went."""
        self._status[index] = STATUSES.index(status)
        self.amended += 1
        if self._block_start is not None:
            self._late.add(index)

    def set_tokens(self, index: int, tokens: Tokens) -> None:
        """Tell what the model call behind the step at ``index`` took and gave."""
        self.set_counts(index, tokens.input, tokens.output)

    def set_counts(self, index: int, taken: int | None, given: int | None) -> None:
        """Tell so many tokens of the model call behind the step at ``index``."""
        self._tokens.set(index, taken, given)
        self.amended += 1

    def begin_block(self) -> None:
        """Have the first block that is told begin behind what there is now."""
        self._block_start = self._now()
        self._late.clear()
        self._tokens.untold = len(self._tokens)

    def whole(self) -> Block:
        """All there is, for ``append_block`` of an empty table."""
        self._block_start = BlockStart()
        self._tokens.untold = 0
        self._late.clear()
        return self.block()

    def _now(self) -> BlockStart:
        return BlockStart(
            len(self),
            self._keys.by_line,
            len(self._shapes.told),
            len(self.problems),
            len(self.spawned),
        )

    def block(self) -> Block:
        """All that has come since the block before, for ``append_block`` of another table."""
        told = self._block_start
        if told is None:
            raise ValueError("nothing says where the block begins")
        first = told.spans
        late = array("I", sorted(index for index in self._late if index < first))
        tokens, huge = self._tokens.untold_columns()
        keys = self._keys.since(first, told.by_line)
        facts = {
            "amended": self.amended,
            "prefix": self.prefix,
            "shapes": self._shapes.told[told.shapes :],
            "problems": [(one.place, one.message) for one in self.problems[told.problems :]],
            "spawned": list(islice(self.spawned.items(), told.spawned, None)),
            "huge": huge,
            "keys": keys.facts,
        }
        columns: dict[str, Column] = {
            "first": self._first[first:],
            "shape": self._shape[first:],
            "status": self._status[first:],
            "parent": self._parent[first:],
            "start": self._start[first:],
            "end": self._end[first:],
            "late": late,
            "late_status": bytearray(map(self._status.__getitem__, late)),
            "late_end": array("d", map(self._end.__getitem__, late)),
            **tokens,
            **keys.columns,
        }
        if self._last is not self._first:
            columns["last"] = self._last[first:]
        self.begin_block()
        return Block(facts, columns)

    def append_block(self, block: Block) -> None:
        """Append what another table, which was like this one, has told as a block."""
        facts, columns = block
        for kind, role, agent, name in facts["shapes"]:
            self._shapes[SpanKind(kind), Role(role), agent, name]
        shared = self._last is self._first
        if "last" in columns:
            self._last = joined(self._first[:] if shared else self._last, columns["last"])
        self._first = joined(self._first, columns["first"])
        if shared and "last" not in columns:
            self._last = self._first
        self._shape = joined(self._shape, columns["shape"])
        self._parent = joined(self._parent, columns["parent"])
        self._status += columns["status"]
        self._start = joined(self._start, columns["start"])
        self._end = joined(self._end, columns["end"])
        for index, status, end in zip(
            columns["late"], columns["late_status"], columns["late_end"], strict=True
        ):
            self._status[index] = status
            self._end[index] = end
        self._tokens.append_block(columns, facts["huge"])
        self.amended = facts["amended"]
        self.prefix = facts["prefix"]
        self.problems += [Problem(place, message) for place, message in facts["problems"]]
        self.spawned.update(facts["spawned"])
        keys = Block(facts["keys"], columns)
        self._keys.append_block(keys, self._first)  # the last: it makes the spans known

    def add_problem(self, line: int, message: str) -> None:
        """Note a problem on this line."""
        list_problem(self.problems, line, message)

    def lines_of(self, index: int) -> tuple[int, int]:
        """The first and the last line that hold the text of the span at ``index``."""
        return self._first[index], self._last[index]

    @property
    def state(self) -> TableState:
        """How much was told so far."""
        return TableState(len(self), self.amended, len(self.problems))

    @property
    def lines(self) -> tuple[array[int], array[int]]:
        """The first and the last lines of all spans."""
        return self._first, self._last

    def rows_to_check(self, prefilter: Prefilter, first: int, end: int) -> Sequence[int]:
        """Return the spans whose rows must be checked though their lines cannot match.

        Args:
            prefilter: What a search looks for.
            first: The first span.
            end: The span after the last.

        Returns:
            Those whose rows may hold what is looked for beside the text in their lines.
        """
        shapes = self._shape[first:end]
        told = {
            number for number in set(shapes) if self._tells(self._shapes.told[number], prefilter)
        }
        if not told:
            return []
        return [index for index, number in enumerate(shapes, first) if number in told]

    def _tells(self, shape: Shape, prefilter: Prefilter) -> bool:
        """Whether rows of this shape may hold what the prefilter is for beside the text."""
        name = shape[3]
        return name is not None and prefilter.may_be_in(name)

    def key_of(self, index: int) -> str:
        """The key of the span at ``index``."""
        return self.prefix + self._keys[index]

    def kind_of(self, index: int) -> SpanKind:
        """What the step at ``index`` is."""
        return self._shapes.told[self._shape[index]][0]

    def name_of(self, index: int) -> str | None:
        """The tool's name of the call or result at ``index``."""
        return self._shapes.told[self._shape[index]][3]

    def status_of(self, index: int) -> SpanStatus:
        """How the step at ``index`` went, as far as it is known."""
        return STATUSES[self._status[index]]

    def one_thread(self, first: int, end: int) -> bool:
        """Whether the keys of these spans name no thread but that of the prefix, if any."""
        return not self._keys.any_holds(b"/", first, end)

    def find_own(self, key: str) -> int | None:
        """The index of the span that got this key, given without the prefix."""
        return self._keys.find(key)

    def index_of(self, key: str) -> int | None:
        """The index of the span with this key."""
        if not key.startswith(self.prefix):
            return None
        return self._keys.find(key[len(self.prefix) :])

    def columns(self, first: int, end: int) -> SpanColumns:
        """What is known of the spans from ``first`` up to ``end`` (exclusive)."""
        return SpanColumns(
            first,
            self._shape[first:end],
            self._shapes.told,
            bytes(self._status[first:end]),
            self._start[first:end],
            self._end[first:end],
        )

    def span(self, index: int, look: Callable[[], tuple[str, bool]]) -> Span:
        """The span at ``index``; ``look`` gives its preview and whether that is all of its text."""
        kind, role, agent, name = self._shapes.told[self._shape[index]]
        back = self._parent[index]
        start = self._start[index]
        end = self._end[index]
        return lazy_span(
            look,
            index,
            self.prefix + self._keys[index],
            kind,
            role,
            agent,
            name,
            self.prefix + self._keys[index - back] if back else None,
            start if start == start else None,
            end if end == end else None,
            STATUSES[self._status[index]],
            f"line {self._first[index]}",
            self._tokens.of(index),
        )


class _TokenColumn:
    """The tokens of those spans that have any, in the order of the spans."""

    def __init__(self) -> None:
        self._index = array("I")
        self._input = array("I")  # counted from 1; 0 where the source does not tell
        self._output = array("I")
        self._huge: dict[int, Tokens] = {}
        self.untold = 0
        """From which place on they are not what was told last."""

    def __len__(self) -> int:
        return len(self._index)

    def untold_columns(self) -> tuple[dict[str, array[int]], list[tuple[int, str, str]]]:
        """What is to be told, and those that are too many to be counted in 32 bits."""
        columns = {
            "token_from": array("I", [self.untold]),
            "token_index": self._index[self.untold :],
            "token_input": self._input[self.untold :],
            "token_output": self._output[self.untold :],
        }
        return columns, [
            (index, str(one.input), str(one.output)) for index, one in self._huge.items()
        ]

    def append_block(
        self, columns: Mapping[str, array[int]], huge: Iterable[tuple[int, str, str]]
    ) -> None:
        """Take what ``untold_columns`` has told."""
        (known,) = columns["token_from"]
        self._huge = {
            index: Tokens(*(None if one == "None" else int(one) for one in counts))
            for index, *counts in huge
        }
        # whoever asks meanwhile finds a place by the first of these
        self._input = _from(self._input, known, columns["token_input"])
        self._output = _from(self._output, known, columns["token_output"])
        self._index = _from(self._index, known, columns["token_index"])

    def of(self, index: int) -> Tokens | None:
        """The tokens of the span at ``index``, if it has any."""
        if self._huge and index in self._huge:
            return self._huge[index]
        position = bisect_left(self._index, index)
        if position == len(self._index) or self._index[position] != index:
            return None
        input_count = self._input[position]
        output_count = self._output[position]
        return Tokens(
            input_count - 1 if input_count else None, output_count - 1 if output_count else None
        )

    def set(self, index: int, input_tokens: int | None, output_tokens: int | None) -> None:
        """Give the span at ``index`` these tokens."""
        input_count = 0 if input_tokens is None else input_tokens + 1
        output_count = 0 if output_tokens is None else output_tokens + 1
        if input_count > _MOST_COUNTED or output_count > _MOST_COUNTED:
            self._huge[index] = Tokens(input_tokens, output_tokens)
            return
        self._huge.pop(index, None)
        if not self._index or self._index[-1] < index:  # as it nearly always is
            self._input.append(input_count)
            self._output.append(output_count)
            self._index.append(index)
            return
        position = bisect_left(self._index, index)
        self.untold = min(self.untold, position)
        if self._index[position] == index:
            self._input[position] = input_count
            self._output[position] = output_count
            return
        self._input.insert(position, input_count)
        self._output.insert(position, output_count)
        self._index.insert(position, index)


def _from(column: array[int], position: int, more: array[int]) -> array[int]:
    """A column with ``more`` from this place on; whoever reads the old one sees no change."""
    return joined(column, more) if position == len(column) else column[:position] + more

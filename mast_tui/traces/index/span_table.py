"""The spans of a long trace as columns: all fields of each but its text, in a few bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from math import nan
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.blocks import Block, Column, extended_column
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
"""The bits of a key's hash in a block, above the number of its span from 1 on."""
_LINE: Final = "line "
_MOST_DIGITS: Final = 12
_REMEMBERED: Final = 8
"""Repetitions of one key from which on the next free number is not looked for from the start."""


class KeyTable:
    """Assigns keys like ``UniqueKeys``, and finds the span of each.

    A span without an id of its own goes by its first line, which ``lines`` knows already; other
    keys are kept as UTF-8 in one piece. One thread adds; others may ask meanwhile.
    """

    # Spans that go by their lines are not in the dictionary as long as their lines follow each
    # other. Neither are those that were taken in with a block, whose hashes come sorted and are the
    # same in all processes: so a window that shows a big file holds no key of it as a text.

    def __init__(self, lines: Sequence[int]) -> None:
        self._lines = lines
        self._key_bytes = bytearray()
        self._ends = array("I", [0])
        self._indices: dict[str, int] = {}
        self._by_line = array("I")
        self._last_line = 0
        self._looks_like_line = False  # whether some other key does
        self._free_numbers: dict[str, int] = {}
        self._block_hashes: list[Column] = []  # for each block hashes with numbers, sorted
        self.repeats = 0
        """The number of keys that were in use when they were requested."""

    @classmethod
    def of_unique_keys(cls, indices: dict[str, int], lines: Sequence[int]) -> KeyTable:
        """Return the table of spans whose keys are all different.

        Args:
            indices: The index of each span by its key, in the order of the spans.
            lines: The first line of each span.
        """
        table = cls(lines)
        encoded_keys = [key.encode("utf-8", "surrogatepass") for key in indices]
        table._key_bytes = bytearray().join(encoded_keys)
        size = len(table._key_bytes)
        table._ends = array(
            "I" if size <= _NUMBER else "Q", accumulate(map(len, encoded_keys), initial=0)
        )
        table._indices = indices
        table._looks_like_line = any(key.startswith(_LINE) for key in indices)
        return table

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:
        """Return the key of the span at ``index``."""
        begin = self._ends[index]
        end = self._ends[index + 1]
        if begin == end:
            return f"{_LINE}{self._lines[index]}"
        return self._key_bytes[begin:end].decode("utf-8", "surrogatepass")

    def any_holds(self, part: bytes, first: int, end: int) -> bool:
        """Return whether bytes are in the keys of spans, but for keys made of line numbers.

        Args:
            part: The bytes.
            first: The first span.
            end: The span after the last.
        """
        return self._key_bytes.find(part, self._ends[first], self._ends[end]) >= 0

    def find(self, key: str) -> int | None:
        """Return the index of the span with this key."""
        if key.startswith(_LINE) and (index := self._on_line(key)) is not None:
            return index
        return self._index(key)

    def add(self, explicit_key: str | None) -> None:
        """Give the next span a key; one that is in use gets ``~2`` or a higher number.

        ``lines`` must know the span's line by now.

        Args:
            explicit_key: The key; None for one made of the number of the span's first line.
        """
        index = len(self._ends) - 1
        if explicit_key:
            key = explicit_key
            like_line = explicit_key.startswith(_LINE)
            self._looks_like_line |= like_line
        else:
            line = self._lines[index]
            if line > self._last_line and not self._looks_like_line:
                self._last_line = line
                self._ends.append(self._ends[-1])
                self._by_line.append(index)
                return
            key = f"{_LINE}{line}"
            like_line = True
        is_used = key in self._indices or (self._block_hashes and self._index(key) is not None)
        if is_used or (like_line and self._on_line(key) is not None):
            self.repeats += 1
            explicit_key = key = self._free(key)
        if explicit_key:
            self._key_bytes += explicit_key.encode("utf-8", "surrogatepass")
        end = len(self._key_bytes)
        try:
            self._ends.append(end)  # From here on the span is known; its key is found last.
        except OverflowError:
            self._ends = widened_column(self._ends, end)
        self._indices[key] = index

    def _on_line(self, key: str) -> int | None:
        """Return the index of the span with this key among those with keys of consecutive lines."""
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

    def _free(self, key: str) -> str:
        number = self._free_numbers.get(key, 1) + 1
        while self._index(free_key := f"{key}~{number}") is not None:
            number += 1
        if number > _REMEMBERED:
            self._free_numbers[key] = number
        return free_key

    def _index(self, key: str) -> int | None:
        """Return the index of the span with this key among those that are not in ``_by_line``."""
        index = self._indices.get(key)
        if index is not None or not self._block_hashes:
            return index
        code = crc32(key.encode("utf-8", "surrogatepass")) << _NUMBER_BITS
        for block in self._block_hashes:
            for position in range(bisect_left(block, code), len(block)):
                if (block[position] ^ code) & _TAG:
                    break
                if self[(block[position] & _NUMBER) - 1] == key:
                    return int(block[position] & _NUMBER) - 1
        return None

    @property
    def by_line(self) -> int:
        """The number of spans with keys made of line numbers, which grow from span to span."""
        return len(self._by_line)

    def block_since(self, spans: int, by_line: int) -> Block:
        """Return the keys of later spans as a block.

        Args:
            spans: The first span.
            by_line: The first of those with keys made of line numbers, counted among these alone.
        """
        ends = self._ends[spans:]
        begin = self._ends[spans]
        key_bytes = self._key_bytes[begin:]
        lined = self._by_line[by_line:]
        lined_too = frozenset(lined)
        hashes = array(
            "Q",
            sorted(
                crc32(
                    key_bytes[low - begin : high - begin]
                    or b"%s%d" % (b"line ", self._lines[index])
                )
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
        columns = {"own": key_bytes, "ends": ends[1:], "by_line": lined, "hashes": hashes}
        return Block(facts, columns)

    def append_block(self, block: Block, lines: Sequence[int]) -> None:
        """Append the keys of a block that ``block_since`` of another table returned.

        The other table was like this one before.

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
        if self._key_bytes:
            self._key_bytes += columns["own"]
        else:
            self._key_bytes = columns["own"]
        self._by_line = extended_column(self._by_line, columns["by_line"])
        if columns["hashes"]:
            self._block_hashes.append(columns["hashes"])
        self._ends = extended_column(
            self._ends, columns["ends"]
        )  # from here on the spans are known


def widened_column(column: array[int], number: int) -> array[int]:
    """Return a copy of a column with a number at its end that does not fit the column's type.

    Others may go on reading the old column.

    Args:
        column: The column.
        number: The number.

    Raises:
        OverflowError: The number has more than 64 bits.
    """
    narrow = column.typecode == "H" and number >> 32 == 0
    room = array("I" if narrow else "Q", column)
    room.append(number)
    return room


def _narrow_column(numbers: Sequence[int]) -> array[int]:
    """Return the numbers as a column of as few bytes as most tables need."""
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
        problems: The list to which it is added.
        line: The line, counted from 1.
        message: The problem in words.
    """
    if len(problems) < _LISTED_PROBLEMS:
        problems.append(Problem(f"line {line}", message))
    elif len(problems) == _LISTED_PROBLEMS:
        problems.append(Problem(f"line {line}", "from here on problems are not listed"))


class TableState(NamedTuple):
    """The size of a table: its spans, later changes of them, and problems."""

    spans: int
    amended: int
    problems: int

    def differs(self, later: TableState) -> bool:
        """Return whether more than problems was added until ``later``."""
        return self[:2] != later[:2]


class BlockStart(NamedTuple):
    """The sizes of a table's parts at the end of the block before."""

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
        """The beginning of every key: ``<thread id>/``; set before there are any spans."""
        self.at_tail: TableState | None = None
        """The state before a last line without a line feed."""
        self.amended = 0
        """The number of changes to spans that were there already."""
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
        self._late: set[int] = set()  # spans of earlier blocks that have changed since

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def repeats(self) -> int:
        """The number of spans whose key was in use, so that they have another."""
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
        """Append a span.

        Args:
            first: The first line of its text.
            last: The last line of its text.
            shape: Its kind, role, agent and name.
            key: Its key; None for one made of its first line.
            parent: The index of an earlier span that it belongs to.
            start: The time of its beginning in Unix seconds.
            status: Its result.

        Returns:
            The index of the span.
        """
        number = len(self._first)
        if last != first or self._last is not self._first:
            self._add_last(last)
        self._first.append(first)
        shape_number = self._shapes[shape]
        try:
            self._shape.append(shape_number)
        except OverflowError:
            self._shape = widened_column(self._shape, shape_number)
        back = 0 if parent is None else number - parent
        try:
            self._parent.append(back)
        except OverflowError:
            self._parent = widened_column(self._parent, back)
        self._status.append(0 if status is _UNKNOWN else STATUSES.index(status))
        self._start.append(nan if start is None else start)
        self._end.append(nan)
        self._keys.add(key)  # the last, as it makes the span known
        return number

    def fill(self, spans: Sequence[Step | Span]) -> dict[int, str]:
        """Add all spans of a document, each on a line of its own, to an empty table.

        Args:
            spans: The spans; their keys are all different.

        Returns:
            By index the parents that do not come before their children, which the table cannot
            hold.
        """
        index_of = {span.key: index for index, span in enumerate(spans)}
        odd_parents: dict[int, str] = {}
        backs = [0] * len(spans)
        for index, span in enumerate(spans):
            if span.parent is not None:
                parent_index = index_of.get(span.parent, index)
                if parent_index < index:
                    backs[index] = index - parent_index
                else:
                    odd_parents[index] = span.parent
            if span.tokens is not None:
                self.set_tokens(index, span.tokens)
        self._parent = _narrow_column(backs)
        numbers = self._shapes
        self._shape = _narrow_column(
            [numbers[span.kind, span.role, span.agent, span.name] for span in spans]
        )
        self._status = bytearray([STATUSES.index(span.status) for span in spans])
        self._start = array("d", [nan if span.start is None else span.start for span in spans])
        self._end = array("d", [nan if span.end is None else span.end for span in spans])
        self._first = self._last = array("I", range(1, len(spans) + 1))
        self._keys = KeyTable.of_unique_keys(index_of, self._first)
        return odd_parents

    def _add_last(self, last: int) -> None:
        if self._last is self._first:
            self._last = self._first[:]
        self._last.append(last)

    def set_end(self, index: int, end: float | None) -> None:
        """Set the end of a span.

        Args:
            index: The index of the span.
            end: The time in Unix seconds; None changes nothing.
        """
        if end is not None:
            self._end[index] = end
            self.amended += 1
            if self._block_start is not None:
                self._late.add(index)

    def set_status(self, index: int, status: SpanStatus) -> None:
        """Set the result of a span.

        Args:
            index: The index of the span.
            status: The result.
        """
        self._status[index] = STATUSES.index(status)
        self.amended += 1
        if self._block_start is not None:
            self._late.add(index)

    def set_tokens(self, index: int, tokens: Tokens) -> None:
        """Set the tokens of the model call that made a span.

        Args:
            index: The index of the span.
            tokens: The tokens.
        """
        self.set_counts(index, tokens.input, tokens.output)

    def set_counts(self, index: int, input_tokens: int | None, output_tokens: int | None) -> None:
        """Set the tokens of the model call that made a span, as two counts.

        Args:
            index: The index of the span.
            input_tokens: The tokens that the model read.
            output_tokens: The tokens that the model wrote.
        """
        self._tokens.set(index, input_tokens, output_tokens)
        self.amended += 1

    def begin_block(self) -> None:
        """Begin the first block after the spans that there are now."""
        self._block_start = self._now()
        self._late.clear()
        self._tokens.first_unsent = len(self._tokens)

    def whole(self) -> Block:
        """Return the whole table as a block, for ``append_block`` of an empty table."""
        self._block_start = BlockStart()
        self._tokens.first_unsent = 0
        self._late.clear()
        return self.block()

    def _now(self) -> BlockStart:
        return BlockStart(
            len(self),
            self._keys.by_line,
            len(self._shapes.shape_list),
            len(self.problems),
            len(self.spawned),
        )

    def block(self) -> Block:
        """Return all that was added since the last block, for ``append_block`` of another table."""
        block_start = self._block_start
        if block_start is None:
            raise ValueError("nothing says where the block begins")
        first = block_start.spans
        late = array("I", sorted(index for index in self._late if index < first))
        tokens, huge = self._tokens.unsent_columns()
        keys = self._keys.block_since(first, block_start.by_line)
        facts = {
            "amended": self.amended,
            "prefix": self.prefix,
            "shapes": self._shapes.shape_list[block_start.shapes :],
            "problems": [
                (problem.place, problem.message)
                for problem in self.problems[block_start.problems :]
            ],
            "spawned": list(islice(self.spawned.items(), block_start.spawned, None)),
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
        """Append a block of another table, which was like this one."""
        facts, columns = block
        for kind, role, agent, name in facts["shapes"]:
            self._shapes[SpanKind(kind), Role(role), agent, name]
        shared = self._last is self._first
        if "last" in columns:
            self._last = extended_column(self._first[:] if shared else self._last, columns["last"])
        self._first = extended_column(self._first, columns["first"])
        if shared and "last" not in columns:
            self._last = self._first
        self._shape = extended_column(self._shape, columns["shape"])
        self._parent = extended_column(self._parent, columns["parent"])
        self._status += columns["status"]
        self._start = extended_column(self._start, columns["start"])
        self._end = extended_column(self._end, columns["end"])
        for index, status, end in zip(
            columns["late"], columns["late_status"], columns["late_end"], strict=True
        ):
            self._status[index] = status
            self._end[index] = end
        self._tokens.append_block(columns, facts["huge"])
        self.amended = facts["amended"]
        self.prefix = facts["prefix"]
        self.problems += [Problem(location, message) for location, message in facts["problems"]]
        self.spawned.update(facts["spawned"])
        keys = Block(facts["keys"], columns)
        self._keys.append_block(keys, self._first)  # the last: it makes the spans known

    def add_problem(self, line: int, message: str) -> None:
        """Record a problem on a line.

        Args:
            line: The number of the line.
            message: The problem in words.
        """
        list_problem(self.problems, line, message)

    def lines_of(self, index: int) -> tuple[int, int]:
        """Return the first and the last line that hold the text of the span at ``index``."""
        return self._first[index], self._last[index]

    @property
    def state(self) -> TableState:
        """The size of the table by now."""
        return TableState(len(self), self.amended, len(self.problems))

    @property
    def lines(self) -> tuple[array[int], array[int]]:
        """The first and the last lines of all spans."""
        return self._first, self._last

    def rows_to_check(self, prefilter: Prefilter, first: int, end: int) -> Sequence[int]:
        """Return the spans whose rows must be checked though their lines cannot match.

        Args:
            prefilter: The filter for the needle.
            first: The first span.
            end: The span after the last.

        Returns:
            Those whose rows may hold what is looked for beside the text in their lines.
        """
        shapes = self._shape[first:end]
        matching = {
            number
            for number in set(shapes)
            if self._name_may_match(self._shapes.shape_list[number], prefilter)
        }
        if not matching:
            return []
        return [index for index, number in enumerate(shapes, first) if number in matching]

    def _name_may_match(self, shape: Shape, prefilter: Prefilter) -> bool:
        """Return whether the name in rows of this shape may hold the needle of the prefilter."""
        name = shape[3]
        return name is not None and prefilter.may_be_in(name)

    def key_of(self, index: int) -> str:
        """Return the key of the span at ``index``."""
        return self.prefix + self._keys[index]

    def kind_of(self, index: int) -> SpanKind:
        """Return the kind of the span at ``index``."""
        return self._shapes.shape_list[self._shape[index]][0]

    def name_of(self, index: int) -> str | None:
        """Return the tool's name of the call or result at ``index``."""
        return self._shapes.shape_list[self._shape[index]][3]

    def one_thread(self, first: int, end: int) -> bool:
        """Return whether the keys of the spans name no thread but that of the prefix, if any.

        Args:
            first: The first span.
            end: The span after the last.
        """
        return not self._keys.any_holds(b"/", first, end)

    def find_own(self, key: str) -> int | None:
        """Return the index of the span with this key, which is written without the prefix."""
        return self._keys.find(key)

    def index_of(self, key: str) -> int | None:
        """Return the index of the span with this key."""
        if not key.startswith(self.prefix):
            return None
        return self._keys.find(key[len(self.prefix) :])

    def columns(self, first: int, end: int) -> SpanColumns:
        """Return columns of spans.

        Args:
            first: The first span.
            end: The span after the last.
        """
        return SpanColumns(
            first,
            self._shape[first:end],
            self._shapes.shape_list,
            bytes(self._status[first:end]),
            self._start[first:end],
            self._end[first:end],
        )

    def span(self, index: int, look: Callable[[], tuple[str, bool]]) -> Span:
        """Return a span, whose preview is made when it is first read.

        Args:
            index: The index of the span.
            look: Returns the preview, and whether that is the entire text.
        """
        kind, role, agent, name = self._shapes.shape_list[self._shape[index]]
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
            self._tokens.tokens_of(index),
        )


class _TokenColumn:
    """The tokens of those spans that have any, in the order of the spans."""

    def __init__(self) -> None:
        self._index = array("I")
        self._input = array("I")  # counted from 1; 0 where the source has none
        self._output = array("I")
        self._huge: dict[int, Tokens] = {}
        self.first_unsent = 0
        """The position from which on they differ from the last block."""

    def __len__(self) -> int:
        return len(self._index)

    def unsent_columns(self) -> tuple[dict[str, array[int]], list[tuple[int, str, str]]]:
        """Return the columns that no block has yet, and the counts of more than 32 bits."""
        columns = {
            "token_from": array("I", [self.first_unsent]),
            "token_index": self._index[self.first_unsent :],
            "token_input": self._input[self.first_unsent :],
            "token_output": self._output[self.first_unsent :],
        }
        return columns, [
            (index, str(tokens.input), str(tokens.output)) for index, tokens in self._huge.items()
        ]

    def append_block(
        self, columns: Mapping[str, array[int]], huge: Iterable[tuple[int, str, str]]
    ) -> None:
        """Append what ``unsent_columns`` of another table returned.

        Args:
            columns: The columns.
            huge: The indices and counts of the spans with counts of more than 32 bits.
        """
        (first,) = columns["token_from"]
        self._huge = {
            index: Tokens(*(None if count == "None" else int(count) for count in counts))
            for index, *counts in huge
        }
        # The index last: another thread may look up a span in it meanwhile.
        self._input = _replaced_from(self._input, first, columns["token_input"])
        self._output = _replaced_from(self._output, first, columns["token_output"])
        self._index = _replaced_from(self._index, first, columns["token_index"])

    def tokens_of(self, index: int) -> Tokens | None:
        """Return the tokens of the span at ``index``, if it has any."""
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
        """Set the tokens of a span.

        Args:
            index: The index of the span.
            input_tokens: The tokens that the model read.
            output_tokens: The tokens that the model wrote.
        """
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
        self.first_unsent = min(self.first_unsent, position)
        if self._index[position] == index:
            self._input[position] = input_count
            self._output[position] = output_count
            return
        self._input.insert(position, input_count)
        self._output.insert(position, output_count)
        self._index.insert(position, index)


def _replaced_from(column: array[int], position: int, more: array[int]) -> array[int]:
    """Return a column with ``more`` from a position on; the old column stays as it was."""
    return extended_column(column, more) if position == len(column) else column[:position] + more

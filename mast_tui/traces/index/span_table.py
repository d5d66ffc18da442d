"""The spans of a long trace as columns: all fields but the text, in a few bytes each."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, pairwise
from math import nan
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

from mast_tui.traces.index.blocks import Block, Column, extended_column
from mast_tui.traces.index.lazy_span import lazy_span
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
    from mast_tui.traces.byte_prefilter import Prefilter

_NUMBER_BITS: Final = 32
_NUMBER_MASK: Final = (1 << _NUMBER_BITS) - 1
"""The bits of a number, which are also the greatest number."""
_HASH_MASK: Final = _NUMBER_MASK << _NUMBER_BITS
"""The bits of a key's hash in an entry, above the bits of the span's number from 1 on."""
_LINE: Final = "line "
_MOST_DIGITS: Final = 12
_MANY_REPEATS: Final = 8
"""The number of repetitions of a key after which its last number is stored."""


class KeyTable:
    """The unique keys of the spans of a trace; a repeated key gets ``~2``, ``~3`` and so on.

    The key of a span without an id is made of its first line, such as ``line 12``. One thread adds
    keys; other threads may read meanwhile.

    Keys are in one of three places, so that a big file needs little memory:

    - Keys of growing line numbers are not stored. ``_line_key_spans`` has the indices of their
      spans.
    - Other keys of ``add`` are in the dictionary ``_indices``.
    - Other keys of ``append_block`` are found by sorted hashes, equal in all processes.

    A block has the names of the attributes from which it is made.
    """

    def __init__(self, lines: Sequence[int]) -> None:
        self._lines = lines
        """The first line of each span."""
        self._key_bytes = bytearray()
        """The keys in UTF-8, without those in ``_line_key_spans``."""
        self._key_ends = array("I", [0])
        """The offset in ``_key_bytes`` at which the key of each span ends, after a 0."""
        self._indices: dict[str, int] = {}
        self._line_key_spans = array("I")
        """The spans whose keys are made of their lines, and not stored."""
        self._last_line = 0
        """The line of the last key in ``_line_key_spans``."""
        self._has_other_line_key = False
        """True if an explicit key begins like the key of a line, and so may be equal to one."""
        self._last_numbers: dict[str, int] = {}
        """The last number of each key with many repetitions, where the next search begins."""
        self._further_keys: dict[str, int] = {}
        """The index of a span by each of its keys from ``add_line_keys``."""
        self._block_hashes: list[Column] = []
        """For each block the sorted results of ``_hash_entry`` for its keys."""
        self.repeat_count = 0
        """The number of spans that got another key because their key was in use."""

    def __len__(self) -> int:
        return len(self._key_ends) - 1

    def __getitem__(self, index: int) -> str:
        """Return the key of the span at ``index``."""
        begin = self._key_ends[index]
        end = self._key_ends[index + 1]
        if begin == end:  # the span is in ``_line_key_spans``
            return f"{_LINE}{self._lines[index]}"
        return self._key_bytes[begin:end].decode("utf-8", "surrogatepass")

    def any_holds(self, part: bytes, first: int, end: int) -> bool:
        """Return whether the stored key of any span in a range contains these bytes.

        Args:
            part: The bytes.
            first: The index of the first span.
            end: The index after the last span.
        """
        return self._key_bytes.find(part, self._key_ends[first], self._key_ends[end]) >= 0

    def find(self, key: str) -> int | None:
        """Return the index of the span with this key; None if there is none."""
        index = self._index_of_own_key(key)
        return self._further_keys.get(key) if index is None else index

    def add(self, explicit_key: str | None) -> None:
        """Add the key of the next span; a key that is in use gets ``~2`` or a higher number.

        ``_lines`` must have the line of the span already.

        Args:
            explicit_key: The key; None for the key of the span's first line.
        """
        if explicit_key:
            if explicit_key.startswith(_LINE):
                self._has_other_line_key = True
            self._store_key(explicit_key)
            return
        index = len(self._key_ends) - 1
        line = self._lines[index]
        if line <= self._last_line or self._has_other_line_key:  # the key may be in use
            self._store_key(f"{_LINE}{line}")
            return
        self._last_line = line
        self._key_ends.append(self._key_ends[-1])
        self._line_key_spans.append(index)

    def _store_key(self, key: str) -> None:
        """Store the key of the next span, with a number if it is in use."""
        if self._index_of_own_key(key) is not None:
            self.repeat_count += 1
            key = self._free_key(key)
        index = len(self._key_ends) - 1
        self._key_bytes += key.encode("utf-8", "surrogatepass")
        end = len(self._key_bytes)
        try:
            self._key_ends.append(end)  # the span is known from here on, its key only at the end
        except OverflowError:
            self._key_ends = widened_column(self._key_ends, end)
        self._indices[key] = index

    def add_line_keys(self, index: int, lines: Iterable[int]) -> None:
        """Make the keys of further lines find a span, unless other spans have these keys.

        Args:
            index: The index of the span.
            lines: The numbers of the lines.
        """
        for line in lines:
            self._further_keys[f"{_LINE}{line}"] = index

    def _index_of_own_key(self, key: str) -> int | None:
        """Return the span that got this key from ``add``, if any."""
        index = self._index_of_stored_key(key)
        if index is None and key.startswith(_LINE):
            return self._index_of_line_key(key)
        return index

    def _index_of_line_key(self, key: str) -> int | None:
        """Return the span of a key in ``_line_key_spans``, if it is there."""
        digits = key.removeprefix(_LINE)
        is_number = digits.isascii() and digits.isdecimal() and not digits.startswith("0")
        if not is_number or len(digits) >= _MOST_DIGITS:
            return None
        line = int(digits)
        spans = self._line_key_spans
        position = bisect_left(spans, line, key=self._lines.__getitem__)
        if position < len(spans) and self._lines[spans[position]] == line:
            return spans[position]
        return None

    def _free_key(self, key: str) -> str:
        """Return the first unused ``key~N``.

        For a key with many repetitions, the next search begins at the stored N.
        """
        number = self._last_numbers.get(key, 1) + 1
        while self._index_of_stored_key(free_key := f"{key}~{number}") is not None:
            number += 1
        if number > _MANY_REPEATS:
            self._last_numbers[key] = number
        return free_key

    def _index_of_stored_key(self, key: str) -> int | None:
        """Return the span of a key in the dictionary or in a block, if it is there."""
        index = self._indices.get(key)
        if index is not None or not self._block_hashes:
            return index
        least_entry = _hash_entry(key.encode("utf-8", "surrogatepass"), -1)
        for entries in self._block_hashes:
            for position in range(bisect_left(entries, least_entry), len(entries)):
                entry = entries[position]
                if entry & _HASH_MASK != least_entry:
                    break
                index = int(entry & _NUMBER_MASK) - 1
                if self[index] == key:
                    return index
        return None

    @property
    def by_line(self) -> int:
        """The number of spans with unstored keys, made of growing line numbers."""
        return len(self._line_key_spans)

    def block_since(self, first_span: int, first_line_key: int) -> Block:
        """Return the keys of the spans from ``first_span`` on as a block.

        Args:
            first_span: The index of the first span.
            first_line_key: The position in ``_line_key_spans`` at which the block begins.
        """
        ends = self._key_ends[first_span:]
        entries = (
            _hash_entry(self._key_bytes[low:high], index)
            for index, (low, high) in enumerate(pairwise(ends), first_span)
            if low < high  # other keys are found by their lines
        )
        further_keys = {
            key: index for key, index in self._further_keys.items() if index >= first_span
        }
        facts = {
            "repeat_count": self.repeat_count,
            "last_line": self._last_line,
            "has_other_line_key": self._has_other_line_key,
            "last_numbers": self._last_numbers,
            "further_keys": further_keys,
        }
        columns = {
            "key_bytes": self._key_bytes[ends[0] :],
            "key_ends": ends[1:],
            "line_key_spans": self._line_key_spans[first_line_key:],
            "block_hashes": array("Q", sorted(entries)),
        }
        return Block(facts, columns)

    def append_block(self, block: Block, lines: Sequence[int]) -> None:
        """Append the keys of a block from ``block_since`` of another table.

        The block must begin at the end of this table.

        Args:
            block: The keys.
            lines: The first line of each span, including the spans of the block.
        """
        facts, columns = block
        self._lines = lines
        self.repeat_count = facts["repeat_count"]
        self._last_line = facts["last_line"]
        self._has_other_line_key = facts["has_other_line_key"]
        self._last_numbers.update(facts["last_numbers"])
        self._further_keys.update(facts["further_keys"])
        if self._key_bytes:  # an empty table needs no copy of the block's bytes
            self._key_bytes += columns["key_bytes"]
        else:
            self._key_bytes = columns["key_bytes"]
        self._line_key_spans = extended_column(self._line_key_spans, columns["line_key_spans"])
        if columns["block_hashes"]:
            self._block_hashes.append(columns["block_hashes"])
        # This comes last, because it makes the spans known.
        self._key_ends = extended_column(self._key_ends, columns["key_ends"])


def _hash_entry(key: bytes | bytearray, index: int) -> int:
    """Return the hash of a key in the high bits, and its span's number, from 1, in the low bits.

    The index -1 makes the least entry of the key.
    """
    return crc32(key) << _NUMBER_BITS | index + 1


def widened_column(column: array[int], number: int) -> array[int]:
    """Return a copy of a column of a wider type, with a number at its end.

    The old column stays unchanged, so that other threads can continue reading it.

    Args:
        column: The column.
        number: The number, which does not fit the type of the column.

    Raises:
        OverflowError: The number has more than 64 bits.
    """
    fits_32_bits = column.typecode == "H" and number >> 32 == 0
    wider_column = array("I" if fits_32_bits else "Q", column)
    wider_column.append(number)
    return wider_column


class ShapeNumbers(dict[Shape, int]):
    """The numbers of the shapes of one trace, in order of appearance; for one thread.

    A shape is a kind, role, agent and name, which many spans share.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shape_list: list[Shape] = []

    def __missing__(self, shape: Shape) -> int:
        """Add a new shape, and return its number, the next one."""
        number = self[shape] = len(self.shape_list)
        self.shape_list.append(shape)
        return number


_MOST_PROBLEMS: Final = 200
_UNKNOWN: Final = SpanStatus.UNKNOWN


def list_problem(problems: list[Problem], line: int, message: str) -> None:
    """Add a problem to a list; the 201st entry says that there are more.

    Args:
        problems: The list of problems.
        line: The line in the file, from 1.
        message: The problem in words.
    """
    if len(problems) < _MOST_PROBLEMS:
        problems.append(Problem(f"line {line}", message))
    elif len(problems) == _MOST_PROBLEMS:
        problems.append(Problem(f"line {line}", "further problems are not listed"))


class TableState(NamedTuple):
    """The size of a table: the numbers of its spans, of later changes to them, and of problems."""

    spans: int
    amendment_count: int
    problems: int

    def differs(self, later: TableState) -> bool:
        """Return whether a later state has other spans or changes, apart from problems."""
        return (self.spans, self.amendment_count) != (later.spans, later.amendment_count)


class BlockStart(NamedTuple):
    """The sizes of a table's parts at the end of the previous block."""

    spans: int = 0
    by_line: int = 0
    shapes: int = 0
    problems: int = 0
    spawned: int = 0


class SpanTable:
    """The spans of a trace as columns, with the lines of their texts.

    One thread adds and changes spans; other threads may read spans below ``len`` meanwhile.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.prefix = ""
        """The beginning of every key: ``<thread id>/``; set before there are any spans."""
        self.state_before_open_line: TableState | None = None
        """The state before a last line without a line feed."""
        self.amendment_count = 0
        """The number of changes to existing spans."""
        self.spawned: dict[str, str] = {}
        """By the thread id of each sub-agent, the key of the span before which its spans belong."""
        self._shapes = ShapeNumbers()
        self._first = array("I")
        self._last = self._first  # a column of its own once a span lies on several lines
        self._shape = array("H")
        self._status = bytearray()
        self._parent = array("H")
        """The distance of each span from its parent; 0 if it has none."""
        self._start = array("d")
        self._end = array("d")
        self._tokens = _TokenColumn()
        self._keys = KeyTable(self._first)
        self._block_start: BlockStart | None = None
        self._changed_spans: set[int] = set()
        """The spans of earlier blocks that have changed since the last block."""

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def repeats(self) -> int:
        """The number of spans that got another key because their key was in use."""
        return self._keys.repeat_count

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
        """Append a span, and return its index.

        Args:
            first: The first line of its text.
            last: The last line of its text.
            shape: Its kind, role, agent and name.
            key: Its key; None for the key of its first line.
            parent: The index of an earlier span above it.
            start: The start in Unix seconds.
            status: Its result.
        """
        index = len(self._first)
        # While every span is on one line, both columns are the same array.
        if last != first or self._last is not self._first:
            self._append_last_line(last)
        self._first.append(first)
        shape_number = self._shapes[shape]
        try:
            self._shape.append(shape_number)
        except OverflowError:
            self._shape = widened_column(self._shape, shape_number)
        distance = 0 if parent is None else index - parent
        try:
            self._parent.append(distance)
        except OverflowError:
            self._parent = widened_column(self._parent, distance)
        self._status.append(0 if status is _UNKNOWN else STATUSES.index(status))
        self._start.append(nan if start is None else start)
        self._end.append(nan)
        self._keys.add(key)  # last, because it makes the span known
        return index

    def add_line_keys(self, index: int, lines: Iterable[int]) -> None:
        """Make the keys of further lines find a span, unless other spans have these keys.

        Args:
            index: The index of the span.
            lines: The numbers of the lines.
        """
        self._keys.add_line_keys(index, lines)

    def _append_last_line(self, last: int) -> None:
        """Append the last line of a span."""
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
            self.amendment_count += 1
            if self._block_start is not None:
                self._changed_spans.add(index)

    def set_status(self, index: int, status: SpanStatus) -> None:
        """Set the status of a span.

        Args:
            index: The index of the span.
            status: The status.
        """
        self._status[index] = STATUSES.index(status)
        self.amendment_count += 1
        if self._block_start is not None:
            self._changed_spans.add(index)

    def set_counts(self, index: int, input_tokens: int | None, output_tokens: int | None) -> None:
        """Set the tokens of the model call that made a span.

        Args:
            index: The index of the span.
            input_tokens: The tokens that the model read.
            output_tokens: The tokens that the model wrote.
        """
        self._tokens.set(index, input_tokens, output_tokens)
        self.amendment_count += 1

    def begin_block(self) -> None:
        """Begin the next block after the current spans."""
        self._block_start = BlockStart(
            len(self),
            self._keys.by_line,
            len(self._shapes.shape_list),
            len(self.problems),
            len(self.spawned),
        )
        self._changed_spans.clear()
        self._tokens.first_unsent = len(self._tokens)

    def whole(self) -> Block:
        """Return the whole table as a block for an empty table, and begin the next block."""
        self._block_start = BlockStart()
        self._tokens.first_unsent = 0
        self._changed_spans.clear()
        return self.block()

    def block(self) -> Block:
        """Return everything that was added since the last block, and begin the next block.

        Raises:
            ValueError: ``begin_block`` was not called.
        """
        block_start = self._block_start
        if block_start is None:
            raise ValueError("nothing says where the block begins")
        keys = self._keys.block_since(block_start.spans, block_start.by_line)
        problems = self.problems[block_start.problems :]
        facts = {
            "amendment_count": self.amendment_count,
            "prefix": self.prefix,
            "shapes": self._shapes.shape_list[block_start.shapes :],
            "problems": [(problem.place, problem.message) for problem in problems],
            "spawned": list(islice(self.spawned.items(), block_start.spawned, None)),
            "keys": keys.facts,
        }
        columns = {
            **self._columns_since(block_start.spans),
            **self._changes_before(block_start.spans),
            **self._tokens.unsent_columns(),
            **keys.columns,
        }
        self.begin_block()
        return Block(facts, columns)

    def _columns_since(self, first: int) -> dict[str, Column]:
        """Return the fields of the spans from ``first`` on as columns, by the attributes' names."""
        columns: dict[str, Column] = {
            "first": self._first[first:],
            "shape": self._shape[first:],
            "status": self._status[first:],
            "parent": self._parent[first:],
            "start": self._start[first:],
            "end": self._end[first:],
        }
        if self._last is not self._first:  # some span is on several lines
            columns["last"] = self._last[first:]
        return columns

    def _changes_before(self, end: int) -> dict[str, Column]:
        """Return the status and end of the changed spans before ``end`` as columns."""
        changed_spans = array("I", sorted(index for index in self._changed_spans if index < end))
        return {
            "changed_spans": changed_spans,
            "changed_status": bytearray(map(self._status.__getitem__, changed_spans)),
            "changed_end": array("d", map(self._end.__getitem__, changed_spans)),
        }

    def append_block(self, block: Block) -> None:
        """Append the spans of a block of another table, and change earlier spans.

        The block must begin at the end of this table.
        """
        facts, columns = block
        for kind, role, agent, name in facts["shapes"]:
            self._shapes[SpanKind(kind), Role(role), agent, name]  # a look-up adds a new shape
        self._append_lines(columns["first"], columns.get("last"))
        self._shape = extended_column(self._shape, columns["shape"])
        self._parent = extended_column(self._parent, columns["parent"])
        self._status += columns["status"]
        self._start = extended_column(self._start, columns["start"])
        self._end = extended_column(self._end, columns["end"])
        for index, status, end in zip(
            columns["changed_spans"], columns["changed_status"], columns["changed_end"], strict=True
        ):
            self._status[index] = status
            self._end[index] = end
        self._tokens.append_block(columns)
        self.amendment_count = facts["amendment_count"]
        self.prefix = facts["prefix"]
        self.problems += [Problem(location, message) for location, message in facts["problems"]]
        self.spawned.update(facts["spawned"])
        keys = Block(facts["keys"], columns)
        self._keys.append_block(keys, self._first)  # last, because it makes the spans known

    def _append_lines(self, first: array[int], last: array[int] | None) -> None:
        """Append the first and last lines of spans.

        ``last`` is None if all spans so far are on one line.
        """
        if last is not None:
            earlier_last = self._first[:] if self._last is self._first else self._last
            self._last = extended_column(earlier_last, last)
            self._first = extended_column(self._first, first)
        else:
            self._first = extended_column(self._first, first)
            self._last = self._first

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
        """The current size of the table."""
        return TableState(len(self), self.amendment_count, len(self.problems))

    @property
    def lines(self) -> tuple[array[int], array[int]]:
        """The first and the last lines of all spans."""
        return self._first, self._last

    def rows_to_check(self, prefilter: Prefilter, first: int, end: int) -> Sequence[int]:
        """Return the spans that may match by their tool's name, even if their lines do not match.

        Args:
            prefilter: The filter for the searched text.
            first: The index of the first span.
            end: The index after the last span.
        """
        # A shape is the kind, role, agent and name of a span; a trace has few different ones.
        shape_numbers = self._shape[first:end]
        matching_numbers = {
            number
            for number in set(shape_numbers)
            if self._name_may_match(self._shapes.shape_list[number], prefilter)
        }
        if not matching_numbers:
            return []
        return [
            index for index, number in enumerate(shape_numbers, first) if number in matching_numbers
        ]

    def _name_may_match(self, shape: Shape, prefilter: Prefilter) -> bool:
        """Return whether the tool's name in a shape may hold the searched text."""
        _kind, _role, _agent, name = shape
        return name is not None and prefilter.may_be_in(name)

    def key_of(self, index: int) -> str:
        """Return the key of the span at ``index``."""
        return self.prefix + self._keys[index]

    def kind_of(self, index: int) -> SpanKind:
        """Return the kind of the span at ``index``."""
        kind, _role, _agent, _name = self._shapes.shape_list[self._shape[index]]
        return kind

    def name_of(self, index: int) -> str | None:
        """Return the tool's name of the call or result at ``index``."""
        _kind, _role, _agent, name = self._shapes.shape_list[self._shape[index]]
        return name

    def has_one_thread(self, first: int, end: int) -> bool:
        """Return whether all spans surely belong to one agent, the main agent or one sub-agent.

        Keys of other threads than the table's have a slash.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        return not self._keys.any_holds(b"/", first, end)

    def find_own(self, key: str) -> int | None:
        """Return the index of the span with this key without the prefix; None if there is none."""
        return self._keys.find(key)

    def index_of(self, key: str) -> int | None:
        """Return the index of the span with this key; None if there is none."""
        if not key.startswith(self.prefix):
            return None
        return self._keys.find(key[len(self.prefix) :])

    def columns(self, first: int, end: int) -> SpanColumns:
        """Return the shapes, statuses and times of a range of spans as columns.

        A shape is the kind, role, agent and name of a span.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        return SpanColumns(
            first,
            self._shape[first:end],
            self._shapes.shape_list,
            bytes(self._status[first:end]),
            self._start[first:end],
            self._end[first:end],
        )

    def span(self, index: int, make_preview: Callable[[], tuple[str, bool]]) -> Span:
        """Return a span with a preview that is made on first use.

        Args:
            index: The index of the span.
            make_preview: Returns the preview, and True if it is the entire text.
        """
        kind, role, agent, name = self._shapes.shape_list[self._shape[index]]
        distance_to_parent = self._parent[index]
        start = self._start[index]
        end = self._end[index]
        # An unknown time is NaN, which does not equal itself.
        return lazy_span(
            make_preview,
            index,
            self.prefix + self._keys[index],
            kind,
            role,
            agent,
            name,
            self.prefix + self._keys[index - distance_to_parent] if distance_to_parent else None,
            start if start == start else None,
            end if end == end else None,
            STATUSES[self._status[index]],
            f"line {self._first[index]}",
            self._tokens.tokens_of(index),
        )


class _TokenColumn:
    """The tokens of the spans that have any, in the order of the spans.

    The counts are floats, so that NaN can stand for an unknown count.
    """

    def __init__(self) -> None:
        self._indices = array("I")
        self._input_counts = array("d")
        self._output_counts = array("d")
        self.first_unsent = 0
        """The first position that no block has yet, or that has changed since its block."""

    def __len__(self) -> int:
        return len(self._indices)

    def unsent_columns(self) -> dict[str, Column]:
        """Return the tokens for the next block: all from position ``first_unsent`` on."""
        return {
            "first_token": array("I", [self.first_unsent]),
            "token_index": self._indices[self.first_unsent :],
            "token_input": self._input_counts[self.first_unsent :],
            "token_output": self._output_counts[self.first_unsent :],
        }

    def append_block(self, columns: Mapping[str, Any]) -> None:
        """Append the result of ``unsent_columns`` of another table."""
        (first,) = columns["first_token"]
        # The indices come last, because another thread may look up a span meanwhile.
        self._input_counts = _column_replaced_from(
            self._input_counts, first, columns["token_input"]
        )
        self._output_counts = _column_replaced_from(
            self._output_counts, first, columns["token_output"]
        )
        self._indices = _column_replaced_from(self._indices, first, columns["token_index"])

    def tokens_of(self, index: int) -> Tokens | None:
        """Return the tokens of the span at ``index``, if it has any."""
        position = bisect_left(self._indices, index)
        if position == len(self._indices) or self._indices[position] != index:
            return None
        counts = (self._input_counts[position], self._output_counts[position])
        # NaN, which differs from itself, is an unknown count.
        return Tokens(*(None if count != count else int(count) for count in counts))

    def set(self, index: int, input_tokens: int | None, output_tokens: int | None) -> None:
        """Set the tokens of a span.

        Args:
            index: The index of the span.
            input_tokens: The tokens that the model read.
            output_tokens: The tokens that the model wrote.
        """
        input_count = nan if input_tokens is None else input_tokens
        output_count = nan if output_tokens is None else output_tokens
        if not self._indices or self._indices[-1] < index:  # nearly always true
            self._input_counts.append(input_count)
            self._output_counts.append(output_count)
            self._indices.append(index)
            return
        position = bisect_left(self._indices, index)
        self.first_unsent = min(self.first_unsent, position)
        if self._indices[position] == index:
            self._input_counts[position] = input_count
            self._output_counts[position] = output_count
            return
        self._input_counts.insert(position, input_count)
        self._output_counts.insert(position, output_count)
        self._indices.insert(position, index)


def _column_replaced_from(column: array[Any], position: int, tail: array[Any]) -> array[Any]:
    """Return a column with ``tail`` from a position on, without a change of the old part."""
    return extended_column(column, tail) if position == len(column) else column[:position] + tail

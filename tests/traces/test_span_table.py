"""The table of spans of a long trace: values, keys and memory."""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.index.span_table import KeyTable, SpanTable, widened_column
from mast_tui.traces.io.source import Source
from mast_tui.traces.keys import UniqueKeys
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import (
    Role,
    Span,
    SpanKind,
    SpanStatus,
    Tokens,
)
from mast_tui.traces.readers.codex.reader import READER
from tests.traces.rollouts import call, event, message, meta, output, reasoning, tokens, write

MOST_BYTES = 125
"""What a span may take in memory that a block has told, all columns and the keys together; twice as
much where it was read here, as its key is held as a text besides."""


def preview_stub() -> tuple[str, bool]:
    return "a preview", True


@dataclass
class Added:
    """The values of a span when it was added, and later changes."""

    line: int
    key: str | None
    kind: SpanKind
    role: Role
    agent: str
    name: str | None
    parent: int | None
    start: float | None
    status: SpanStatus
    end: float | None = None
    tokens: Tokens | None = None


times = st.none() | st.floats(allow_nan=False)
counts = st.none() | st.integers(0, 1 << 53) | st.floats(0, 1e300).map(int)
adds = st.builds(
    Added,
    line=st.integers(1, 9),
    key=st.none()
    | st.sampled_from(["", "a", "b:call", "line 3", "line 3~2", "a~2", "漢", "\ud800"]),
    kind=st.sampled_from(SpanKind),
    role=st.sampled_from(Role),
    agent=st.sampled_from(["codex", "user"]),
    name=st.none() | st.sampled_from(["shell", ""]),
    parent=st.none() | st.integers(0, 30),
    start=times,
    status=st.sampled_from(SpanStatus),
)
amendments = st.tuples(
    st.integers(0, 30), times, st.none() | st.sampled_from(SpanStatus), counts, counts
)


@given(st.lists(adds, max_size=30), st.lists(amendments, max_size=20), st.sampled_from(["", "t/"]))
def test_stored_values_of_spans_are_returned(
    added: list[Added],
    amended: list[tuple[int, float | None, SpanStatus | None, int | None, int | None]],
    prefix: str,
) -> None:
    table, names, keys = SpanTable(), UniqueKeys(), []
    table.prefix = prefix
    for number, one in enumerate(added):
        one.parent = None if one.parent is None or one.parent >= number else one.parent
        index = table.add(
            one.line,
            one.line + 1,
            (one.kind, one.role, one.agent, one.name),
            key=one.key,
            parent=one.parent,
            start=one.start,
            status=one.status,
        )
        assert index == number == len(table) - 1
        keys.append(names.take(prefix + (one.key or f"line {one.line}")))
    for index, end, status, taken, given_out in amended:
        if index >= len(added):
            continue
        table.set_end(index, end)
        added[index].end = added[index].end if end is None else end
        if status is not None:
            table.set_status(index, status)
            added[index].status = status
        added[index].tokens = Tokens(taken, given_out)
        table.set_counts(index, taken, given_out)
    for index, one in enumerate(added):
        assert table.span(index, preview_stub) == Span(
            index=index,
            key=keys[index],
            kind=one.kind,
            role=one.role,
            agent=one.agent,
            name=one.name,
            parent=None if one.parent is None else keys[one.parent],
            start=one.start,
            end=one.end,
            status=one.status,
            place=f"line {one.line}",
            preview="a preview",
            preview_is_complete=True,
            tokens=one.tokens,
        )
        assert table.index_of(keys[index]) == index
        assert table.lines_of(index) == (one.line, one.line + 1)
    assert table.index_of("no such key") is None


def test_a_column_widens_when_a_number_does_not_fit() -> None:
    column = widened_column(array("H", [1, 65_535]), 65_536)
    assert (column.typecode, list(column)) == ("I", [1, 65_535, 65_536])
    column = widened_column(column, 1 << 32)
    assert (column.typecode, list(column)) == ("Q", [1, 65_535, 65_536, 1 << 32])
    assert list(widened_column(array("H"), 1 << 40)) == [1 << 40]
    with pytest.raises(OverflowError):
        widened_column(array("H"), 1 << 64)


@pytest.mark.slow
def test_many_shapes_and_distant_parents_are_stored() -> None:
    table = SpanTable()
    for number in range(70_000):
        parent = 0 if number > 65_530 else None
        name = f"tool {number}"
        line = number + 1
        table.add(line, line, (SpanKind.LOG, Role.LOG, "one", name), parent=parent)
    for index in (0, 65_530, 65_531, 65_535, 65_536, 69_999):
        span = table.span(index, preview_stub)
        assert (span.name, span.key) == (f"tool {index}", f"line {index + 1}")
        assert span.parent == ("line 1" if index > 65_530 else None)


def test_spans_of_several_lines_and_of_one_line_are_stored() -> None:
    table = SpanTable()
    lines = [(1, 1), (2, 2), (3, 7), (8, 8), (9, 12)]
    for first, last in lines:
        table.add(first, last, (SpanKind.LOG, Role.LOG, "one", None))
    assert [table.lines_of(index) for index in range(5)] == lines


@given(
    st.lists(
        st.none()
        | st.sampled_from(["a", "a~2", "line 2", "line 2~2", "line 02", "line "])
        | st.integers(1, 6),
        max_size=30,
    )
)
def test_only_exact_keys_are_found(
    expected: list[str | int | None],
) -> None:
    lines = [one if isinstance(one, int) else number + 1 for number, one in enumerate(expected)]
    keys, names = KeyTable(lines), UniqueKeys()
    for number, one in enumerate(expected):
        keys.add(one if isinstance(one, str) else None)
        assert keys[number] == names.take(one if isinstance(one, str) else f"line {lines[number]}")
    given_out = {keys[number]: number for number in range(len(expected))}
    assert len(given_out) == len(expected)
    some = ("line 0", "line 1", "line 01", "line 2", "line +1", "line ", "line ٣", "line 1 ", "a~2")
    for key in (*given_out, *some, "line " + "9" * 30):
        assert keys.find(key) == given_out.get(key)


def test_a_repeated_key_is_numbered_in_linear_time() -> None:
    keys = KeyTable([1] * 20_000)
    for _ in range(20_000):
        keys.add("same")
    assert (keys[0], keys[1], keys[19_999]) == ("same", "same~2", "same~20000")
    assert keys.repeat_count == 19_999


def held(value: object) -> int:
    """Return the bytes of memory of an object with all that it holds."""
    seen: set[int] = set()
    waiting, size = [value], 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        size += sys.getsizeof(one)
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set):
            waiting += one
        waiting += [vars(one)] if hasattr(one, "__dict__") else []
        waiting += [getattr(one, name, None) for name in getattr(one, "__slots__", ())]
    return size


@pytest.mark.slow
def test_an_indexed_span_takes_few_bytes() -> None:
    table = SpanTable()
    for number in range(0, 100_000, 2):
        call_id = f"call_{number:024d}"
        asked = table.add(
            number,
            number,
            (SpanKind.TOOL_CALL, Role.AGENT, "codex", "shell"),
            key=f"{call_id}:call",
            start=float(number),
        )
        table.set_counts(asked, 10_000, number)
        table.add(
            number + 1,
            number + 1,
            (SpanKind.TOOL_RESULT, Role.TOOL, "codex", None),
            key=f"{call_id}:result",
            parent=asked,
            start=float(number),
            status=SpanStatus.OK,
        )
        table.set_end(asked, float(number))
    taken = SpanTable()
    taken.append_block(table.whole())
    assert len(taken) == 100_000
    assert 40 <= held(taken) / len(taken) <= MOST_BYTES


@pytest.mark.slow
def test_the_memory_of_a_reader_grows_with_its_spans(tmp_path: Path) -> None:
    """Also of what events announce, of ids of calls and of counted tokens."""
    records = [meta(), message("user", "go")]
    for number in range(3000):
        thought = f"thought {number}"
        records += [
            event("agent_reasoning", text=thought),
            reasoning(thought),
            call(f"call_{number:024d}"),
            tokens(number, 1, number),
            output(f"call_{number:024d}"),
            message("assistant", f"{number} is done"),
            event("agent_message", message=f"{number} is done"),
        ]
    (trace,) = READER.read(Source(write(tmp_path, *records))).traces
    read_fully(trace)
    assert len(trace) == 12_001
    assert 40 <= held(trace) / len(trace) <= 2 * MOST_BYTES


@pytest.mark.slow
def test_the_memory_of_messages_without_events_is_bounded(
    tmp_path: Path,
) -> None:
    """An agent may work for days at one prompt."""
    taken = []
    for number in (6000, 12_000):
        records = [message("assistant", f"step {one}") for one in range(number)]
        name = f"{number}.jsonl"
        (trace,) = READER.read(Source(write(tmp_path, meta(), *records, name=name))).traces
        read_fully(trace)
        assert len(trace) == number
        taken.append(held(trace))
    assert 6000 * 20 < taken[1] - taken[0] < 6000 * 60

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
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.codex.reader import READER
from tests.traces.rollouts import call, event, message, meta, output, reasoning, tokens, write

MAX_SPAN_BYTES = 125
"""Memory of a span that is read from a block, with all columns and keys. A span that this process
reads may take twice as much, as its key is also stored as a text."""


def preview_stub() -> tuple[str, bool]:
    return "a preview", True


@dataclass
class AddedSpan:
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
spans = st.builds(
    AddedSpan,
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
changes = st.tuples(
    st.integers(0, 30), times, st.none() | st.sampled_from(SpanStatus), counts, counts
)


@given(st.lists(spans, max_size=30), st.lists(changes, max_size=20), st.sampled_from(["", "t/"]))
def test_stored_values_of_spans_are_returned(
    added: list[AddedSpan],
    changes: list[tuple[int, float | None, SpanStatus | None, int | None, int | None]],
    prefix: str,
) -> None:
    table = SpanTable()
    unique_keys = UniqueKeys()
    keys = []
    table.prefix = prefix

    # Add the spans.
    for number, span in enumerate(added):
        span.parent = None if span.parent is None or span.parent >= number else span.parent
        index = table.add(
            span.line,
            span.line + 1,
            (span.kind, span.role, span.agent, span.name),
            key=span.key,
            parent=span.parent,
            start=span.start,
            status=span.status,
        )
        assert index == number == len(table) - 1
        keys.append(unique_keys.take(prefix + (span.key or f"line {span.line}")))

    # Change some of them.
    for index, end, status, input_count, output_count in changes:
        if index >= len(added):
            continue
        table.set_end(index, end)
        added[index].end = added[index].end if end is None else end
        if status is not None:
            table.set_status(index, status)
            added[index].status = status
        added[index].tokens = Tokens(input_count, output_count)
        table.set_counts(index, input_count, output_count)

    # Compare all values.
    for index, span in enumerate(added):
        assert table.span(index, preview_stub) == Span(
            index=index,
            key=keys[index],
            kind=span.kind,
            role=span.role,
            agent=span.agent,
            name=span.name,
            parent=None if span.parent is None else keys[span.parent],
            start=span.start,
            end=span.end,
            status=span.status,
            place=f"line {span.line}",
            preview="a preview",
            preview_is_complete=True,
            tokens=span.tokens,
        )
        assert table.index_of(keys[index]) == index
        assert table.lines_of(index) == (span.line, span.line + 1)
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
def test_only_exact_keys_are_found(keys: list[str | int | None]) -> None:
    lines = [key if isinstance(key, int) else number + 1 for number, key in enumerate(keys)]
    table = KeyTable(lines)
    unique = UniqueKeys()
    for number, key in enumerate(keys):
        table.add(key if isinstance(key, str) else None)
        assert table[number] == unique.take(
            key if isinstance(key, str) else f"line {lines[number]}"
        )
    index_by_key = {table[number]: number for number in range(len(keys))}
    assert len(index_by_key) == len(keys)
    other_keys = ("line 0", "line 1", "line 01", "line 2", "line +1", "line ", "line ٣", "line 1 ")
    for key in (*index_by_key, *other_keys, "a~2", "line " + "9" * 30):
        assert table.find(key) == index_by_key.get(key)


def test_a_repeated_key_is_numbered_in_linear_time() -> None:
    keys = KeyTable([1] * 20_000)
    for _ in range(20_000):
        keys.add("same")
    assert (keys[0], keys[1], keys[19_999]) == ("same", "same~2", "same~20000")
    assert keys.repeat_count == 19_999


def memory_of(value: object) -> int:
    """Return the bytes of memory of an object and all objects that it refers to."""
    seen: set[int] = set()
    pending = [value]
    size = 0
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        size += sys.getsizeof(item)
        if isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set):
            pending += item
        pending += [vars(item)] if hasattr(item, "__dict__") else []
        pending += [getattr(item, name, None) for name in getattr(item, "__slots__", ())]
    return size


@pytest.mark.slow
def test_an_indexed_span_takes_few_bytes() -> None:
    table = SpanTable()
    for number in range(0, 100_000, 2):
        call_id = f"call_{number:024d}"
        call_index = table.add(
            number,
            number,
            (SpanKind.TOOL_CALL, Role.AGENT, "codex", "shell"),
            key=f"{call_id}:call",
            start=float(number),
        )
        table.set_counts(call_index, 10_000, number)
        table.add(
            number + 1,
            number + 1,
            (SpanKind.TOOL_RESULT, Role.TOOL, "codex", None),
            key=f"{call_id}:result",
            parent=call_index,
            start=float(number),
            status=SpanStatus.OK,
        )
        table.set_end(call_index, float(number))
    copy = SpanTable()
    copy.append_block(table.whole())
    assert len(copy) == 100_000
    assert 40 <= memory_of(copy) / len(copy) <= MAX_SPAN_BYTES


@pytest.mark.slow
def test_the_memory_of_a_reader_grows_with_its_spans(tmp_path: Path) -> None:
    """So does the memory of announced events, of ids of calls and of counted tokens."""
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
    assert 40 <= memory_of(trace) / len(trace) <= 2 * MAX_SPAN_BYTES


@pytest.mark.slow
def test_the_memory_of_messages_without_events_is_bounded(tmp_path: Path) -> None:
    """An agent may work at one prompt for days."""
    sizes = []
    for number in (6000, 12_000):
        records = [message("assistant", f"step {step}") for step in range(number)]
        name = f"{number}.jsonl"
        (trace,) = READER.read(Source(write(tmp_path, meta(), *records, name=name))).traces
        read_fully(trace)
        assert len(trace) == number
        sizes.append(memory_of(trace))
    assert 6000 * 20 < sizes[1] - sizes[0] < 6000 * 60

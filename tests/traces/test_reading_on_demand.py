"""Reading on demand: only the lines of the requested rows and texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mast_tui.traces.index.lazy_span import lazy_span, relocated_span
from mast_tui.traces.index.line_index import LineIndex, MemoryContent
from mast_tui.traces.index.lines import LineSpans, feed_lines
from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import (
    PREVIEW_CHARS,
    Role,
    SpanKind,
    SpanStatus,
    Trace,
    TraceIdentity,
    TraceMeta,
)
from mast_tui.traces.preview import call_preview, preview
from mast_tui.traces.readers.codex.reader import READER
from tests.traces.checks import SAMPLES

IDENTITY = TraceIdentity("some", "00", 0, "test", 1, native=False)


class CountingParser:
    """Makes a span of each line, and counts how often it is asked for a text."""

    def __init__(self) -> None:
        self.table = SpanTable()
        self.meta = TraceMeta()
        self.asked = 0

    def feed(self, number: int, _line: bytes, _cut_off: bool, /) -> None:
        self.table.add(number, number, (SpanKind.MESSAGE, Role.AGENT, "someone", None))

    def finish(self) -> None:
        pass

    def text(self, data: bytes, _kind: SpanKind, _index: int, /) -> str:
        self.asked += 1
        return data.decode()


class CountingContent(MemoryContent):
    """Counts what is read of it."""

    reads = 0
    bytes_read = 0

    def read(self, offset: int, length: int, /) -> bytes:
        self.reads += 1
        self.bytes_read += length
        return super().read(offset, length)


def trace_of(parser: CountingParser, data: bytes) -> tuple[Trace, CountingContent]:
    content = CountingContent(data)
    index = LineIndex(content, len(data))
    feed_lines(index, parser, len(data))
    content.reads = content.bytes_read = 0
    return Trace(IDENTITY, Path("some.txt"), LineSpans(index, parser)), content


def test_a_line_is_read_once_and_only_when_its_preview_is_looked_at() -> None:
    parser = CountingParser()
    trace, content = trace_of(parser, b"one\ntwo\nthree\n")
    spans = [trace.span(index) for index in range(3)]
    assert [span.place for span in spans] == ["line 1", "line 2", "line 3"]
    assert (parser.asked, content.bytes_read) == (0, 0)
    assert (spans[1].preview, spans[1].preview_is_complete) == ("two", True)
    assert (parser.asked, content.bytes_read) == (1, len(b"two\n"))
    assert (trace.span(1).preview, trace.text(1)) == ("two", "two")
    assert parser.asked == 1


def test_later_facts_of_a_span_are_returned() -> None:
    parser = CountingParser()
    trace, _content = trace_of(parser, b"one\n")
    assert (trace.span(0).preview, trace.span(0).end) == ("one", None)
    parser.table.set_end(0, 5.0)
    parser.table.set_status(0, SpanStatus.ERROR)
    assert (trace.span(0).end, trace.span(0).status) == (5.0, SpanStatus.ERROR)


class WholeParser(CountingParser):
    """Makes one span of all lines."""

    def feed(self, _number: int, _line: bytes, _cut_off: bool, /) -> None:
        pass

    def finish(self) -> None:
        self.table.add(1, 100_000, (SpanKind.LOG, Role.LOG, "someone", None))


@pytest.mark.parametrize(
    ("first", "most"),
    [(b"begin", 70_000), (b" " * 80_000 + b"begin", 900_000)],
    ids=["at-once", "after-much-space"],
)
def test_a_preview_of_many_lines_reads_only_their_beginning(first: bytes, most: int) -> None:
    trace, content = trace_of(WholeParser(), first + b"\nline" * 100_000)
    span = trace.span(0)
    assert span.preview == ("begin" + " line" * 100)[:PREVIEW_CHARS]
    assert not span.preview_is_complete
    assert content.bytes_read <= most


@pytest.mark.slow
def test_a_jump_into_a_long_trace_reads_only_its_line() -> None:
    read = []
    for lines in (1_000, 200_000):
        parser = CountingParser()
        trace, content = trace_of(parser, b"".join(b"%08d\n" % line for line in range(lines)))
        spans = [trace.span(lines * part // 7) for part in range(6, 0, -1)]
        assert (content.reads, parser.asked) == (0, 0)
        assert [trace.text(span.index) for span in spans] == [f"{span.index:08d}" for span in spans]
        assert parser.asked == 6
        read.append((content.reads, content.bytes_read))
    assert read == [(6, 6 * 9)] * 2


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_previews_equal_those_of_the_texts(path: Path) -> None:
    source = Source(path)
    if not READER.recognises(source):
        pytest.skip("not a rollout")
    (trace,) = READER.read(source).traces
    read_fully(trace)
    assert len(trace) > 0
    for span in map(trace.span, range(len(trace))):
        made = call_preview if span.kind is SpanKind.TOOL_CALL else preview
        assert (span.preview, span.preview_is_complete) == made(trace.text(span.index))


def test_a_lazy_span_can_be_replaced_and_relocated() -> None:
    looks: list[int] = []

    def look() -> tuple[str, bool]:
        looks.append(1)
        return "seen", False

    span = lazy_span(
        look,
        3,
        "key",
        SpanKind.LOG,
        Role.LOG,
        "someone",
        None,
        None,
        1.0,
        None,
        SpanStatus.OK,
        "line 4",
        None,
    )
    there = relocated_span(span, 7, "file line 4", "parent")
    assert (there.index, there.key, there.place, there.parent) == (
        7,
        "key",
        "file line 4",
        "parent",
    )
    assert not looks
    assert (there.preview, there.preview_is_complete) == ("seen", False)
    changed = replace(span, name="tool")
    assert (changed.name, changed.preview) == ("tool", "seen")
    assert changed != span
    assert replace(changed, name=None) == span
    assert relocated_span(changed, 3, "line 4", None) == changed
    with pytest.raises(AttributeError, match="no_such_field"):
        getattr(span, "no_such_" + "field")

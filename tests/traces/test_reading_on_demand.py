"""Reading on demand: only the lines of the requested rows and texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mast_tui.traces.index.lazy_span import lazy_span, relocated_span
from mast_tui.traces.index.line_index import LineIndex
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
from tests.traces.checks import SAMPLES, spans_of
from tests.traces.counting_content import CountingContent

IDENTITY = TraceIdentity("some", "00", 0, "test", 1, native=False)


class LineParser:
    """A parser that makes a span of each line, and counts the texts that it makes."""

    def __init__(self) -> None:
        self.table = SpanTable()
        self.meta = TraceMeta()
        self.texts_made = 0

    def feed(self, number: int, _line: bytes, _cut_off: bool, /) -> None:
        self.table.add(number, number, (SpanKind.MESSAGE, Role.AGENT, "someone", None))

    def finish(self) -> None:
        pass

    def text(self, data: bytes, _kind: SpanKind, _index: int, /) -> str:
        self.texts_made += 1
        return data.decode()


def trace_of(parser: LineParser, data: bytes) -> tuple[Trace, CountingContent]:
    content = CountingContent(data)
    index = LineIndex(content, len(data))
    feed_lines(index, parser, len(data))
    content.reads = 0
    content.bytes_read = 0
    return Trace(IDENTITY, Path("some.txt"), LineSpans(index, parser)), content


def test_a_line_is_read_once_and_only_when_its_preview_is_read() -> None:
    parser = LineParser()
    trace, content = trace_of(parser, b"one\ntwo\nthree\n")
    spans = [trace.span(index) for index in range(3)]
    assert [span.place for span in spans] == ["line 1", "line 2", "line 3"]
    assert (parser.texts_made, content.bytes_read) == (0, 0)
    assert (spans[1].preview, spans[1].preview_is_complete) == ("two", True)
    assert (parser.texts_made, content.bytes_read) == (1, len(b"two\n"))
    assert (trace.span(1).preview, trace.text(1)) == ("two", "two")
    assert parser.texts_made == 1


def test_later_facts_of_a_span_are_returned() -> None:
    parser = LineParser()
    trace, _content = trace_of(parser, b"one\n")
    assert (trace.span(0).preview, trace.span(0).end) == ("one", None)
    parser.table.set_end(0, 5.0)
    parser.table.set_status(0, SpanStatus.ERROR)
    assert (trace.span(0).end, trace.span(0).status) == (5.0, SpanStatus.ERROR)


class SingleSpanParser(LineParser):
    """A parser that makes one span of all lines."""

    def feed(self, _number: int, _line: bytes, _cut_off: bool, /) -> None:
        pass

    def finish(self) -> None:
        self.table.add(1, 100_000, (SpanKind.LOG, Role.LOG, "someone", None))


@pytest.mark.parametrize(
    ("beginning", "max_bytes"),
    [(b"begin", 70_000), (b" " * 80_000 + b"begin", 900_000)],
    ids=["at-once", "after-much-space"],
)
def test_a_preview_of_many_lines_reads_only_their_beginning(
    beginning: bytes, max_bytes: int
) -> None:
    trace, content = trace_of(SingleSpanParser(), beginning + b"\nline" * 100_000)
    span = trace.span(0)
    assert span.preview == ("begin" + " line" * 100)[:PREVIEW_CHARS]
    assert not span.preview_is_complete
    assert content.bytes_read <= max_bytes


@pytest.mark.slow
def test_a_jump_into_a_long_trace_reads_only_its_line() -> None:
    counts = []
    for lines in (1_000, 200_000):
        parser = LineParser()
        trace, content = trace_of(parser, b"".join(b"%08d\n" % line for line in range(lines)))
        spans = [trace.span(lines * part // 7) for part in range(6, 0, -1)]
        assert (content.reads, parser.texts_made) == (0, 0)
        assert [trace.text(span.index) for span in spans] == [f"{span.index:08d}" for span in spans]
        assert parser.texts_made == 6
        counts.append((content.reads, content.bytes_read))
    assert counts == [(6, 6 * 9)] * 2


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_previews_equal_those_of_the_texts(path: Path) -> None:
    source = Source(path)
    if not READER.recognises(source):
        pytest.skip("not a rollout")
    (trace,) = READER.read(source).traces
    read_fully(trace)
    assert len(trace) > 0
    for span in spans_of(trace):
        make_preview = call_preview if span.kind is SpanKind.TOOL_CALL else preview
        assert (span.preview, span.preview_is_complete) == make_preview(trace.text(span.index))


def test_a_lazy_span_can_be_replaced_and_relocated() -> None:
    reads: list[int] = []

    def read_preview() -> tuple[str, bool]:
        reads.append(1)
        return "seen", False

    span = lazy_span(
        read_preview,
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
    relocated = relocated_span(span, 7, "file line 4", "parent")
    assert (relocated.index, relocated.key, relocated.place, relocated.parent) == (
        7,
        "key",
        "file line 4",
        "parent",
    )
    assert not reads
    assert (relocated.preview, relocated.preview_is_complete) == ("seen", False)
    changed = replace(span, name="tool")
    assert (changed.name, changed.preview) == ("tool", "seen")
    assert changed != span
    assert replace(changed, name=None) == span
    assert relocated_span(changed, 3, "line 4", None) == changed
    with pytest.raises(AttributeError, match="no_such_field"):
        getattr(span, "no_such_" + "field")

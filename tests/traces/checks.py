"""Readers and writers of test files, checks of traces, and the folders of real traces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isnan
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    PREVIEW_CHARS,
    STATUSES,
    FileReport,
    Span,
    SpanKind,
    SpanStatus,
    Trace,
)
from mast_tui.traces.readers.base import Reader

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
SAMPLES = Path(__file__).parents[2] / "sample_traces"

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is absent")


def corpus_files(step: int = 1) -> list[Path]:
    """Return the files of the corpus, or only every third, fourth and so on."""
    return sorted(path for path in CORPUS.rglob("*") if path.is_file())[::step]


def read_one(reader: Reader, path: Path) -> Trace:
    """Return the only trace of a file that the reader recognises."""
    report = read_file(reader, path)
    (trace,) = report.traces
    return trace


def read_file(reader: Reader, path: Path) -> FileReport:
    """Return the report on a file that the reader recognises; fail unless its traces are sound."""
    source = Source(path)
    assert reader.recognises(source), path
    report = reader.read(source)
    for trace in report.traces:
        check_sound(trace)
    return report


def write_json(path: Path, value: object) -> Path:
    """Write ``value`` to ``path`` as a JSON document, make its folder, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_json_lines(path: Path, *values: object) -> Path:
    """Write ``values`` to ``path`` as JSONL; return the path."""
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def spans_of(trace: Trace) -> list[Span]:
    """Return the spans of a trace that are read."""
    return [trace.span(index) for index in range(len(trace))]


def keys_of(trace: Trace) -> list[str]:
    """Return the keys of the spans."""
    return [span.key for span in spans_of(trace)]


def texts_of(trace: Trace) -> list[str]:
    """Return the texts of the spans."""
    return [trace.text(index) for index in range(len(trace))]


def kinds_and_texts(trace: Trace) -> list[tuple[str, str]]:
    """Return the kind and the text of each span."""
    return [(span.kind.value, trace.text(span.index)) for span in spans_of(trace)]


def span_lines(trace: Trace) -> list[str]:
    """Return each span as ``kind agent [name] [status]: text``, without an unknown status."""
    lines = []
    for span in spans_of(trace):
        status = "" if span.status is SpanStatus.UNKNOWN else span.status.value
        fields = (span.kind.value, span.agent, span.name or "", status)
        text = " ".join(trace.text(span.index).split())
        lines.append(f"{' '.join(field for field in fields if field)}: {text}")
    return lines


def check_sound(trace: Trace) -> None:
    """Fail unless ``trace`` obeys the rules of a trace."""
    spans = spans_of(trace)
    keys = {span.key: span.index for span in spans}
    assert len(keys) == len(spans), "keys repeat"
    for index, span in enumerate(spans):
        text = trace.text(index)
        assert span.index == index
        assert trace.index_of(span.key) == index
        assert span.parent is None or keys[span.parent] < index
        assert len(span.preview) <= PREVIEW_CHARS
        assert "\n" not in span.preview
        if span.preview_is_complete and span.kind is not SpanKind.TOOL_CALL:
            assert span.preview == " ".join(text.split())
        text.encode("utf-8")
        assert span.place
        assert span.agent
    for outside in (-1, len(trace)):
        with pytest.raises(IndexError):
            trace.span(outside)
        with pytest.raises(IndexError):
            trace.text(outside)
    assert trace.index_of("no such key") is None
    check_columns(trace, spans)
    for problem in trace.problems:
        assert problem.place
        assert problem.message


def check_columns(trace: Trace, spans: Sequence[Span], first: int = 0) -> None:
    """Fail unless the columns from ``first`` on have the values of ``spans``."""
    values = trace.columns(first, first + len(spans))
    columns = (values.shapes, values.statuses, values.starts, values.ends)
    assert (values.first, *map(len, columns)) == (first, *[len(spans)] * 4)
    for span, shape, status, start, end in zip(spans, *columns, strict=True):
        assert values.shape_list[shape] == (span.kind, span.role, span.agent, span.name)
        assert STATUSES[status] is span.status
        assert (None if isnan(start) else start) == span.start
        assert (None if isnan(end) else end) == span.end

"""Readers of test files, checks of the promises of a trace, and the places of real traces."""

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
    """The only trace of a file that the reader must know."""
    report = read_file(reader, path)
    (trace,) = report.traces
    return trace


def read_file(reader: Reader, path: Path) -> FileReport:
    """The report on a file that the reader must know, with every trace found sound."""
    source = Source(path)
    assert reader.recognises(source), path
    report = reader.read(source)
    for trace in report.traces:
        check_sound(trace)
    return report


def write_json(path: Path, value: object) -> Path:
    """Write ``value`` as a JSON document to ``path``, whose folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_json_lines(path: Path, *values: object) -> Path:
    """``values`` as JSONL at ``path``."""
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def spans_of(trace: Trace) -> list[Span]:
    """All spans of a trace that was read."""
    return [trace.span(index) for index in range(len(trace))]


def keys_of(trace: Trace) -> list[str]:
    """The keys of all its spans."""
    return [span.key for span in spans_of(trace)]


def texts_of(trace: Trace) -> list[str]:
    """The texts of all its spans."""
    return [trace.text(index) for index in range(len(trace))]


def kinds_and_texts(trace: Trace) -> list[tuple[str, str]]:
    """The kind and the text of each span."""
    return [(trace.span(index).kind.value, trace.text(index)) for index in range(len(trace))]


def span_lines(trace: Trace) -> list[str]:
    """Each span as ``kind agent [name] [status]: text``; an unknown status is left out."""
    lines = []
    for span in spans_of(trace):
        status = "" if span.status is SpanStatus.UNKNOWN else span.status.value
        words = (span.kind.value, span.agent, span.name or "", status)
        text = " ".join(trace.text(span.index).split())
        lines.append(f"{' '.join(word for word in words if word)}: {text}")
    return lines


def check_sound(trace: Trace) -> None:
    """Fail unless ``trace`` keeps the promises of the trace protocol."""
    spans = [trace.span(index) for index in range(len(trace))]
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
    for beyond in (-1, len(trace)):
        with pytest.raises(IndexError):
            trace.span(beyond)
        with pytest.raises(IndexError):
            trace.text(beyond)
    assert trace.index_of("no such key") is None
    check_columns(trace, spans)
    for problem in trace.problems:
        assert problem.place
        assert problem.message


def check_columns(trace: Trace, spans: Sequence[Span], first: int = 0) -> None:
    """Fail unless the columns from ``first`` on say what ``spans`` do, which are there."""
    seen = trace.columns(first, first + len(spans))
    columns = (seen.shapes, seen.statuses, seen.starts, seen.ends)
    assert (seen.first, *map(len, columns)) == (first, *[len(spans)] * 4)
    for span, shape, status, start, end in zip(spans, *columns, strict=True):
        assert seen.shape_list[shape] == (span.kind, span.role, span.agent, span.name)
        assert STATUSES[status] is span.status
        assert (None if isnan(start) else start) == span.start
        assert (None if isnan(end) else end) == span.end

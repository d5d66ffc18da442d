"""Cached documents: files of spans whose texts are read on demand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.index.store import CachedDocument, open_cached, write_cached
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import (
    AnswerKey,
    FileReport,
    Outcome,
    Problem,
    Role,
    SpanKind,
    SpanStatus,
    Thread,
    Tokens,
    Trace,
    TraceIdentity,
    TraceMeta,
)
from mast_tui.traces.scan.file_reader import read_one
from tests.traces.checks import CORPUS, SAMPLES, check_sound, needs_corpus, write_json
from tests.traces.compared_reports import check_same_report

any_texts = st.text(max_size=8)
short_texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
times = st.none() | st.floats(0, 4e9)
counts = st.none() | st.integers(0, 1 << 53) | st.floats(0, 1e300).map(int)


@st.composite
def traces(
    draw: st.DrawFn,
    path: Path,
    record: int | None,
    texts: st.SearchStrategy[str] = short_texts,
    trace_ids: st.SearchStrategy[str] = any_texts,  # a file's name need not be Unicode
    lost_parents: Sequence[str] = ("a key of nobody",),
) -> Trace:
    optional_texts = st.none() | texts
    entries = st.lists(st.tuples(texts, texts), max_size=2).map(tuple)
    steps = StepList()
    for _ in range(draw(st.integers(0, 6))):
        keys = [step.key for step in steps.steps]
        steps.add(
            draw(texts),
            draw(st.sampled_from(SpanKind)),
            draw(st.sampled_from(Role)),
            draw(texts),
            draw(st.text(st.characters(codec="utf-8")) | st.just('x" ,"text":"\n' * 300)),
            place=draw(texts),
            name=draw(optional_texts),
            parent=draw(st.sampled_from([None, *keys, *lost_parents])),
            start=draw(times),
            end=draw(times),
            status=draw(st.sampled_from(SpanStatus)),
            lead=draw(st.integers(0, 3)),
            tokens=draw(st.none() | st.builds(Tokens, counts, counts)),
            shown=draw(optional_texts),
        )
    identity = TraceIdentity(
        draw(trace_ids),
        draw(st.text("0123456789abcdef", min_size=64, max_size=64)),
        draw(st.integers(0, 1 << 40)),
        draw(texts),
        draw(st.integers(1, 9)),
        draw(st.booleans()),
    )
    meta = TraceMeta(
        task=draw(optional_texts),
        system=draw(optional_texts),
        model=draw(optional_texts),
        benchmark=draw(optional_texts),
        outcome=draw(st.sampled_from(Outcome)),
        score=draw(st.none() | st.floats(0, 1)),
        answer_key=draw(st.builds(AnswerKey, *([entries] * len(AnswerKey._fields)))),
        version=draw(optional_texts),
        started=draw(times),
    )
    problems = draw(st.lists(st.builds(Problem, texts, texts), max_size=2))
    return Trace(
        identity, path, StepSpans(steps.steps), record=record, meta=meta, problems=tuple(problems)
    )


@st.composite
def reports(draw: st.DrawFn, path: Path) -> FileReport:
    number = draw(st.integers(0, 3))
    actual = [draw(traces(path, None if number == 1 else record)) for record in range(number)]
    return FileReport(
        path,
        format=draw(short_texts),
        traces=tuple(actual),
        problems=tuple(draw(st.lists(st.builds(Problem, short_texts, short_texts), max_size=2))),
        thread=draw(st.none() | st.builds(Thread, short_texts, st.none() | short_texts)),
    )


def write_cache(report: FileReport | None, cache_file: Path) -> Path:
    """Write a report to a file of spans; return its path."""
    with cache_file.open("wb") as file:
        assert all(0 <= percent <= 100 for percent in write_cached(file, report))
    return cache_file


def write_and_reopen(report: FileReport, cache_file: Path) -> FileReport:
    """Write a report to a cache file and read it again."""
    actual = open_cached(write_cache(report, cache_file), report.path)
    assert actual is not None
    assert actual.report is not None
    return actual.report


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_cached_trace_equals_the_trace(tmp_path: Path, data: st.DataObject) -> None:
    report = data.draw(reports(tmp_path / "a.json"))
    check_same_report(write_and_reopen(report, tmp_path / "a.spans"), report)


@pytest.mark.slow
@pytest.mark.parametrize("folder", [SAMPLES, pytest.param(CORPUS, marks=needs_corpus)])
def test_every_file_is_cached_without_loss(folder: Path, tmp_path: Path) -> None:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    for path in paths:
        report = read_one(path, named=True)
        for trace in report.traces:
            read_fully(trace)
        actual = write_and_reopen(report, tmp_path / "a.spans")
        check_same_report(actual, report)
        for trace in actual.traces:
            check_sound(trace)
    assert len(paths) > 10


def test_an_unrecognised_document_is_cached(tmp_path: Path) -> None:
    cache_file = write_cache(None, tmp_path / "a.spans")
    assert open_cached(cache_file, tmp_path / "a.json") == CachedDocument(None)


@pytest.mark.slow
def test_a_partly_written_cache_file_is_not_used(tmp_path: Path) -> None:
    path = chat(tmp_path, ["one", "two"])
    data = write_cache(read_one(path, named=True), tmp_path / "a.spans").read_bytes()
    part = tmp_path / "b.spans"
    for length in range(len(data)):
        part.write_bytes(data[:length])
        assert open_cached(part, path) is None, length
    part.write_bytes(data)
    assert open_cached(part, path) is not None


@pytest.fixture
def read_lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the length of each read of a cache file."""
    lengths: list[int] = []
    pread = os.pread

    def recording_pread(file: int, length: int, offset: int) -> bytes:
        lengths.append(length)
        return pread(file, length, offset)

    monkeypatch.setattr(os, "pread", recording_pread)
    return lengths


@pytest.mark.parametrize("needle", ["pear", "Zwölf", "bash", "12", "no such word"])
@pytest.mark.parametrize("max_bytes", [1, 400, 1 << 20])
def test_every_text_with_a_word_passes_its_filter(
    tmp_path: Path, needle: str, max_bytes: int
) -> None:
    texts = [f"line {n}\n" * n + ("a pear" if n % 5 == 0 else "ZWÖLF") for n in range(40)]
    report = read_one(chat(tmp_path, texts), named=True)
    (trace,) = write_and_reopen(report, tmp_path / "a.spans").traces
    read_fully(trace)
    prefilter = Prefilter.for_any(needle)
    actual: dict[int, str] = {}
    begin = 0
    while begin < len(trace):
        begin, candidates = trace.candidates(prefilter, begin, len(trace), max_bytes)
        actual.update(candidates)
    for index in range(len(trace)):
        text = trace.text(index)
        assert index not in actual or actual[index] == text
        if needle.lower() in text.lower():
            assert index in actual
    assert len(actual) <= len(trace)


def test_a_text_longer_than_a_piece_is_searched_piece_by_piece(
    tmp_path: Path, read_lengths: list[int]
) -> None:
    texts = ["a" * 10_000, "b" * 5_000 + "quagmire" + "b" * 5_000, "c" * 10_000]
    report = read_one(chat(tmp_path, texts), named=True)
    (trace,) = write_and_reopen(report, tmp_path / "a.spans").traces
    read_fully(trace)
    read_lengths.clear()
    actual = []
    for begin in range(len(trace)):
        end, candidates = trace.candidates(Prefilter.for_any("quagmire"), begin, begin + 1, 1024)
        assert end == begin + 1
        if begin != 1:  # the text with the word is read whole
            assert max(read_lengths) == 1024
        actual += [index for index, _text in candidates]
        read_lengths.clear()
    assert actual == [1]


def test_texts_are_read_only_on_demand(tmp_path: Path, read_lengths: list[int]) -> None:
    path = chat(tmp_path, ["x" * 100_000] * 30)
    cache_file = write_cache(read_one(path, named=True), tmp_path / "a.spans")
    read_lengths.clear()
    actual = open_cached(cache_file, path)
    assert actual is not None
    assert actual.report is not None
    (trace,) = actual.report.traces
    read_fully(trace)
    assert len(trace) == 30
    assert sum(read_lengths) < 20_000
    read_lengths.clear()
    assert trace.span(29).preview == "x" * 200
    assert sum(read_lengths) == 4096
    read_lengths.clear()
    assert len(trace.text(29)) == 100_000
    assert 100_000 < sum(read_lengths) < 101_000


def test_texts_stay_readable_after_the_file_is_removed(tmp_path: Path) -> None:
    path = chat(tmp_path, ["one", "two"])
    cache_file = write_cache(read_one(path, named=True), tmp_path / "a.spans")
    actual = open_cached(cache_file, path)
    cache_file.unlink()
    assert actual is not None
    assert actual.report is not None
    assert actual.report.traces[0].text(1) == "two"


def chat(folder: Path, texts: list[str]) -> Path:
    """Write a document of messages with these texts; return its path."""
    messages = [
        {"role": "user" if number % 2 == 0 else "assistant", "content": text}
        for number, text in enumerate(texts)
    ]
    return write_json(folder / "chat.json", {"messages": messages})


@given(st.lists(st.sampled_from(["a/1", "a/2", "b/1", "/steps/1", "call_9"]), min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_a_cached_trace_knows_whether_spans_are_of_one_thread(
    tmp_path: Path, keys: list[str]
) -> None:
    steps = StepList()
    for key in keys:
        steps.add(key, SpanKind.LOG, Role.LOG, "log", "text", place=key)
    identity = TraceIdentity("id", "0" * 64, 4, "test", 1, True)
    path = tmp_path / "a.json"
    report = FileReport(
        path, format="test", traces=(Trace(identity, path, StepSpans(steps.steps)),)
    )
    (trace,) = write_and_reopen(report, tmp_path / "a.spans").traces
    read_fully(trace)
    threads = [step.key.partition("/")[0] if "/" in step.key else "" for step in steps.steps]
    for first in range(len(trace)):
        for end in range(first + 1, len(trace) + 1):
            assert trace.has_one_thread(first, end) == (len(set(threads[first:end])) == 1)

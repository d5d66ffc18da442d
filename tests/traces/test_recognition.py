"""Recognition of formats: one reader for each trace, none for other files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_file, read_fully, scan
from mast_tui.traces.readers import recognising_readers
from tests.traces.checks import (
    CORPUS,
    SAMPLES,
    corpus_files,
    needs_corpus,
    span_lines,
    write_json_lines,
)
from tests.traces.golden import formats, golden_inputs

FORMATS: Final[Mapping[str, str]] = {
    "agentrx": "message-list",
    "agentrx-recorded": "agentrx",
    "claude-code": "claude-code",
    "codex": "codex",
    "inspect": "inspect",
    "mast-human": "mast-data",
    "mini-swe-agent": "mini-swe-agent",
    "otel-genai": "otel-spans",
    "otel-openinference": "otel-spans",
    "otlp-json": "otlp",
    "swe-agent": "swe-agent",
    "tau-bench": "tau-bench",
    "who-and-when": "who-and-when",
}
"""The format of the files in each folder of the corpus."""

NOT_TRACES: Final = frozenset(
    {"README.md", "LICENSE", "magentic_one_ground_truth.json", "annotations_rounds_1_2.json"}
)


def corpus_folder(path: Path) -> str:
    return path.relative_to(CORPUS).parts[0]


def is_trace(path: Path) -> bool:
    if corpus_folder(path) == "agentrx-recorded":
        return path.parent.name == "otel" or path.name == "trajectory_ir.json"
    return path.name not in NOT_TRACES


@pytest.mark.slow
@needs_corpus
def test_every_file_of_the_corpus_is_read_in_its_format() -> None:
    reports = list(scan([CORPUS]))
    assert not [report.path for report in reports if report.failed]
    reports_by_path = {report.path: report for report in reports if report.format is not None}
    assert {path for path in corpus_files() if is_trace(path)} == reports_by_path.keys()
    assert {corpus_folder(path) for path in reports_by_path} == FORMATS.keys()
    for path, report in reports_by_path.items():
        assert report.format == FORMATS[corpus_folder(path)], path
        assert report.traces, path
        for trace in report.traces:
            read_fully(trace)
            assert len(trace), (path, trace.identity.trace_id)


@pytest.mark.slow
@needs_corpus
def test_no_file_of_the_corpus_is_claimed_by_two_readers() -> None:
    for path in corpus_files():
        names = [reader.name for reader in recognising_readers(Source(path))]
        assert len(names) == int(is_trace(path)), (path, names)


CLAIMED_TWICE: Final = {
    ("claude-code", "claude-code-web"),
    ("codex-otel-logs", "otel"),
    # Logs of a framework that contain a part of another's.
    ("appworld", "magentic-one"),
    ("chatdev", "metagpt"),
    ("hyperagent", "ag2"),
}
"""Pairs of readers that claim the same files, which the first reads."""


def test_no_sample_and_no_golden_input_is_claimed_by_two_other_readers(tmp_path: Path) -> None:
    paths = sorted(SAMPLES.iterdir())
    for name in formats()[1:]:
        for golden_input in golden_inputs(name):
            paths.append(golden_input.write_to(tmp_path / name / golden_input.name))
    for path in paths:
        if path.is_file():
            names = [reader.name for reader in recognising_readers(Source(path))]
            assert len(names) <= 1 or tuple(names) in CLAIMED_TWICE, (path, names)


@pytest.mark.parametrize(
    "value",
    [
        {"name": "x", "version": "1.0.0", "scripts": {"test": "y"}, "dependencies": {"a": "^1"}},
        {"cells": [{"cell_type": "code", "source": ["1"]}], "metadata": {}, "nbformat": 4},
        {"openapi": "3.1.0", "info": {"title": "x"}, "paths": {}},
        {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}}]},
        {"$schema": "x", "type": "object", "properties": {"messages": {"type": "array"}}},
        {"compilerOptions": {"strict": True}, "include": ["src"]},
        [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        {"messages": {"greeting": "hello", "farewell": "bye"}},
        {"spans": [1, 2, 3]},
        {"steps": [{"uses": "actions/checkout"}], "name": "build"},
        {"runs": 3, "traces": []},
        {"working_dir": "/srv", "description": "a service", "input_tokens": 3},
        {"type": "session", "id": "7", "user": "x"},
        {"type": "metadata", "data": {"a": 1}, "message": "started"},
        {"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover", "params": {}},
        {"sessionId": "s", "messages": []},
        {"events": [{"type": "click", "time": 3}]},
        [],
        {},
        3,
        "text",
    ],
)
def test_other_json_is_claimed_by_no_reader(tmp_path: Path, value: object) -> None:
    for name, text in (
        ("one.json", json.dumps(value)),
        ("indented.json", json.dumps(value, indent=2)),
        ("lines.jsonl", json.dumps(value) + "\n" + json.dumps(value) + "\n"),
    ):
        path = tmp_path / name
        path.write_text(text)
        assert [reader.name for reader in recognising_readers(Source(path))] == [], name


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"PK\x03\x04\x14\0\0\0\0\0",
        b"SQLite format 3\0",
        b"\x7fELF\x02\x01\x01\0",
        b"a,b,c\n1,2,3\n",
        b"\0" * 1000,
        bytes(range(256)) * 8,
    ],
)
def test_other_bytes_are_claimed_by_no_reader(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "thing"
    path.write_bytes(data)
    assert [reader.name for reader in recognising_readers(Source(path))] == []


def test_a_reader_that_reads_no_record_yields_to_the_next(tmp_path: Path) -> None:
    """The records look like one format, but only the reader of another finds a trace."""
    path = write_json_lines(
        tmp_path / "session.jsonl",
        *(
            {"sessionId": "s", "uuid": f"u{n}", "parentUuid": None, "role": role, "content": text}
            for n, (role, text) in enumerate([("user", "Go."), ("assistant", "Gone.")])
        ),
    )
    assert [reader.name for reader in recognising_readers(Source(path))] == ["claude-code"]
    report = read_file(path, named=True)
    assert report.format == "message-list"
    assert span_lines(report.traces[0]) == ["message user: Go.", "message assistant: Gone."]


def test_documents_one_after_another_are_a_trace_each(tmp_path: Path) -> None:
    """Consecutive pretty-printed documents are all read."""
    documents = [
        json.dumps({"messages": [{"role": "user", "content": f"Task {number}"}]}, indent=2)
        for number in range(3)
    ]
    path = tmp_path / "runs.json"
    path.write_text("\n".join(documents))
    report = read_file(path, named=True)
    assert [span_lines(trace) for trace in report.traces] == [
        [f"message user: Task {number}"] for number in range(3)
    ]
    assert not report.problems


def test_conversations_with_candidates_are_no_events_of_one_stream(tmp_path: Path) -> None:
    messages: object = [{"role": "user", "content": "q1"}, {"role": "assistant", "content": "a1"}]
    prompt: object = {"prompt": "q2", "candidates": [{"content": {"parts": [{"text": "a2"}]}}]}
    conversation: object = {"messages": messages, "candidates": ["a", "b"]}
    for record in (conversation, prompt):
        file = tmp_path / "f.jsonl"
        file.write_text(f"{json.dumps(record)}\n" * 2)
        report = read_file(file, named=True)
        assert (len(report.traces), report.problems) == (2, ())

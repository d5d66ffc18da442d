"""The data of the benchmarks is what it is said to be, and the same for the same seed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import SpanKind, Trace
from tests.benchmarks.data import Data, Rollout
from tests.benchmarks.documents import LAYOUTS, write_document
from tests.benchmarks.rollouts import (
    FIRST_WORDS,
    RARE_WORD,
    RolloutFacts,
    is_one_line,
    small_traces,
    write_long,
    write_short,
)
from tests.benchmarks.workspaces import ANNOTATOR, write_workspace

BLOCK = 200_000
"""Bytes of a block in these tests."""


def long_one(path: Path, seed: int) -> RolloutFacts:
    return write_long(path, 4 * BLOCK, seed=seed, block_bytes=BLOCK)


def short_one(path: Path, seed: int) -> RolloutFacts:
    return write_short(path, 2000, seed=seed)


def read(path: Path) -> Trace:
    (trace,) = read_file(path, named=True).traces
    read_fully(trace)
    return trace


@pytest.mark.parametrize("write", [long_one, short_one])
def test_the_same_seed_gives_the_same_bytes(
    tmp_path: Path, write: Callable[[Path, int], RolloutFacts]
) -> None:
    facts = [write(tmp_path / name, seed) for name, seed in (("a", 7), ("b", 7), ("c", 8))]
    first, again, other = ((tmp_path / name).read_bytes() for name in "abc")
    assert first == again
    assert facts[0] == facts[1]
    assert first != other


@pytest.mark.parametrize("write", [long_one, short_one])
def test_a_rollout_has_the_spans_and_lines_that_are_promised(
    tmp_path: Path, write: Callable[[Path, int], RolloutFacts]
) -> None:
    path = tmp_path / "rollout.jsonl"
    facts = write(path, 7)
    trace = read(path)
    assert trace.identity.reader == "codex"
    assert not trace.problems
    assert len(trace) == facts.spans
    assert path.read_bytes().count(b"\n") == facts.lines
    assert b"@" not in path.read_bytes()


def test_a_long_rollout_holds_the_usual_mix(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    facts = long_one(path, 7)
    assert path.stat().st_size == pytest.approx(4 * BLOCK, rel=0.3)
    trace = read(path)
    spans = [trace.span(index) for index in range(len(trace))]
    kinds = {span.kind for span in spans}
    assert kinds == set(SpanKind) - {SpanKind.LOG}
    assert all(span.parent for span in spans if span.kind is SpanKind.TOOL_RESULT)
    assert any(span.tokens for span in spans)
    assert spans[0].preview.startswith(FIRST_WORDS)
    found = [index for index in range(len(trace)) if RARE_WORD in trace.text(index)]
    assert tuple(found) == facts.rare
    assert len(found) == 3


def test_rows_of_a_short_rollout_have_one_line_where_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    short_one(path, 7)
    trace = read(path)
    for index in range(len(trace)):
        assert is_one_line(index) == ("\n" not in trace.text(index)), index


def test_small_traces_are_traces_of_their_own(tmp_path: Path) -> None:
    made = dict(small_traces(3, seed=7))
    assert made == dict(small_traces(3, seed=7))
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    ids = {read(tmp_path / name).identity.trace_id for name in made}
    assert len(ids) == 3


def test_what_was_made_is_used_again(tmp_path: Path) -> None:
    made = Data(tmp_path).short_rollout(1000)
    made.path.write_bytes(b"changed")
    assert Data(tmp_path).short_rollout(1000) == made
    assert made.path.read_bytes() == b"changed"
    assert Data(tmp_path, seed=8).short_rollout(1000).path != made.path


def test_a_workspace_has_as_many_labels_as_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    rollout = Rollout(path, short_one(path, 7))
    write_workspace(tmp_path / "made.db", rollout.path, 400)
    with closing(sqlite3.connect(tmp_path / "made.db")) as database:
        rows = database.execute("SELECT trace_id, annotator FROM labels").fetchall()
    assert len(rows) == 400
    assert rows.count((read(path).identity.trace_id, ANNOTATOR)) == 100


@pytest.mark.slow
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_a_document_is_the_same_for_the_same_seed_and_has_a_span_for_each_step(
    tmp_path: Path, layout: str
) -> None:
    steps = [
        write_document(tmp_path / n, 300_000, layout, seed=seed)
        for n, seed in zip("abc", (7, 7, 8), strict=True)
    ]
    first, again, other = ((tmp_path / name).read_bytes() for name in "abc")
    assert first == again
    assert first != other
    trace = read(tmp_path / "a")
    assert len(trace) >= steps[0]
    assert not trace.problems

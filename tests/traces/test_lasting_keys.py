"""Keys that last: read twice, after conversion, and after lines were appended."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Span, Trace
from mast_tui.traces.readers.converted import line_of
from tests.traces.checks import CORPUS, SAMPLES, check_sound, needs_corpus

pytestmark = needs_corpus


def trace_files() -> list[Path]:
    """A file of each kind and size, but not every one of the many that are alike."""
    every = sorted(path for path in (*CORPUS.rglob("*.*"), *SAMPLES.iterdir()) if path.is_file())
    by_folder: dict[Path, list[Path]] = {}
    for path in every:
        if read_file(path, named=False).traces:
            by_folder.setdefault(path.parent, []).append(path)
    return [path for paths in by_folder.values() for path in paths[:6]]


FILES: Final = trace_files() if CORPUS.is_dir() else []
GROWING: Final = [
    path for path in FILES if path.suffix == ".jsonl" and path.read_bytes().count(b"\n") > 1
]


def read_all(path: Path) -> dict[str, Trace]:
    """The traces of a file by id, read to their ends."""
    traces = {}
    for trace in read_file(path, named=False).traces:
        read_fully(trace)
        traces[trace.identity.trace_id] = trace
    return traces


def spans(trace: Trace) -> list[Span]:
    return [trace.span(index) for index in range(len(trace))]


def texts(trace: Trace) -> list[str]:
    return [trace.text(index) for index in range(len(trace))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_read_twice_and_after_conversion_the_keys_are_the_same(path: Path, tmp_path: Path) -> None:
    first, second = read_all(path), read_all(path)
    converted = tmp_path / "converted.jsonl"
    converted.write_bytes(b"".join(line_of(trace) for trace in first.values()))
    third = read_all(converted)
    assert first.keys() == second.keys() == third.keys()
    for trace_id, trace in first.items():
        check_sound(trace)
        assert spans(trace) == spans(second[trace_id])
        assert spans(trace) == spans(third[trace_id])
        assert texts(trace) == texts(third[trace_id])
        assert trace.identity == third[trace_id].identity


@given(data=st.data())
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_lines_that_are_appended_change_no_key(data: st.DataObject, tmp_path: Path) -> None:
    path = data.draw(st.sampled_from(GROWING))
    content = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == 0x0A]
    end = data.draw(st.sampled_from(ends))
    grown = tmp_path / path.name
    grown.write_bytes(content[:end])
    before = spans_of_first(grown)
    grown.write_bytes(content)
    after = {span.key: text for span, text in spans_of_first(grown)}
    for span, text in before:
        assert after.get(span.key) == text, (path.name, end, span.key)


def spans_of_first(path: Path) -> list[tuple[Span, str]]:
    for trace in read_file(path, named=False).traces[:1]:
        read_fully(trace)
        return list(zip(spans(trace), texts(trace), strict=True))
    return []

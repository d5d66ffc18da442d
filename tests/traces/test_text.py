"""Plain text: paragraphs whose keys are their first lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.traces.readers.logs import PARAGRAPH_LINES, READER
from tests.traces.checks import check_sound, keys_of


def trace_of(folder: Path, content: bytes) -> Trace:
    path = folder / "run.log"
    path.write_bytes(content)
    (trace,) = READER.read(Source(path)).traces
    read_fully(trace)
    check_sound(trace)
    return trace


def paragraphs_of(trace: Trace) -> list[tuple[str, str]]:
    return [(trace.span(index).key, trace.text(index)) for index in range(len(trace))]


def test_paragraphs_have_the_keys_of_their_first_lines(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, b"\n\nstart\n  indented\n\n \t\nend")
    assert paragraphs_of(trace) == [("line 3", "start\n  indented"), ("line 7", "end")]


def test_windows_line_ends_are_no_part_of_the_text(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, b"one\r\ntwo\r\n\r\nthree\r\n")
    assert paragraphs_of(trace) == [("line 1", "one\ntwo"), ("line 4", "three")]


def test_a_log_without_blank_lines_is_cut_into_pieces(tmp_path: Path) -> None:
    lines = [f"line number {number}" for number in range(1, 2 * PARAGRAPH_LINES + 2)]
    trace = trace_of(tmp_path, "\n".join(lines).encode())
    assert keys_of(trace) == [
        "line 1",
        f"line {PARAGRAPH_LINES + 1}",
        f"line {2 * PARAGRAPH_LINES + 1}",
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_text_in_other_encodings_is_read(tmp_path: Path, encoding: str) -> None:
    trace = trace_of(tmp_path, "مرحبا 漢字\n\nзмея".encode(encoding))
    assert [text for _key, text in paragraphs_of(trace)] == ["مرحبا 漢字", "змея"]


def test_badly_encoded_lines_are_shown_and_are_problems(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, b"good\nb\xffd\n\nok")
    assert trace.text(0) == "good\nb\ufffdd"
    assert [problem.place for problem in trace.problems] == ["line 2"]


@pytest.mark.slow
def test_a_growing_log_keeps_its_id_and_its_keys(tmp_path: Path) -> None:
    beginning = b"a line of a log\n\n" * 10_000
    short = trace_of(tmp_path, beginning)
    longer = trace_of(tmp_path, beginning + b"and more\n")
    assert longer.identity == short.identity
    assert paragraphs_of(longer)[: len(short)] == paragraphs_of(short)


lines = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(lines | st.just(""), max_size=30))
def test_every_line_with_text_is_in_one_span(tmp_path: Path, content: list[str]) -> None:
    data = "\n".join(content).encode()
    actual = [
        line for _key, text in paragraphs_of(trace_of(tmp_path, data)) for line in text.split("\n")
    ]
    expected = [line.removesuffix("\r") for line in content if line.encode().strip()]
    assert [line.removeprefix("\ufeff") for line in actual] == [
        line.removeprefix("\ufeff") for line in expected
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes_are_read(tmp_path: Path, content: bytes) -> None:
    trace_of(tmp_path, content)

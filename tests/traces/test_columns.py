"""Columns of spans of any trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.library import read_file, read_fully, scan
from mast_tui.traces.model import Trace, TraceMeta
from mast_tui.traces.scan.unread import FileToRead, without_spans
from tests.traces.checks import SAMPLES, check_columns, spans_of
from tests.traces.nested_runs import write_run
from tests.traces.rollouts import Record, call, event, message, meta, output, record, write

TRACE_FILES = [path for path in sorted(SAMPLES.iterdir()) if read_file(path, named=False).traces]


def read_all(path: Path) -> list[Trace]:
    traces = list(read_file(path, named=False).traces)
    for trace in traces:
        read_fully(trace)
    return traces


def check_all(trace: Trace) -> None:
    """Fail unless the columns of all spans, of some, and of each are right."""
    spans = spans_of(trace)
    check_columns(trace, spans)
    third = len(spans) // 3
    check_columns(trace, spans[third : 2 * third], third)
    shape_lists = [trace.columns(first, first + 1).shape_list for first in range(len(spans))]
    assert all(shapes is shape_lists[0] for shapes in shape_lists)
    assert len(set(shape_lists[0])) == len(shape_lists[0])


@pytest.mark.parametrize("path", TRACE_FILES, ids=lambda path: path.stem)
def test_columns_equal_the_spans_of_a_sample(path: Path) -> None:
    for trace in read_all(path):
        check_all(trace)


def test_columns_of_a_run_of_several_files_equal_its_spans(tmp_path: Path) -> None:
    write_run(tmp_path)
    (trace,) = [trace for report in scan([tmp_path]) for trace in report.traces]
    read_fully(trace)
    assert len(trace.spawned) == 0
    assert {span.place.partition(" ")[0] for span in spans_of(trace)} - {"line"}
    assert len({shape[2] for shape in trace.columns(0, len(trace)).shape_list}) > 2
    check_all(trace)
    spans = spans_of(trace)
    for first in range(len(spans)):
        for end in range(first, len(spans)):
            check_columns(trace, spans[first:end], first)


def test_wrapped_and_cached_traces_have_columns(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), message("user", "go"), call("a"), output("a"))
    report = read_file(path, named=True)
    (unread,) = without_spans(report, FileToRead(str(path), lambda: report)).traces
    amended = unread.with_facts(TraceMeta(model="another"))
    assert len(amended.columns(0, 10)) == 0
    read_fully(amended)
    read_fully(unread)
    assert len(amended) == 3
    for trace in (unread, amended):
        check_all(trace)
    assert unread.columns(0, 1).shape_list is amended.columns(2, 3).shape_list


def test_columns_hold_only_known_spans(tmp_path: Path) -> None:
    (trace,) = read_all(write(tmp_path, meta(), message("user", "go"), call("a"), output("a")))
    assert len(trace.columns(1, 100)) == 2
    assert len(trace.columns(3, 100)) == len(trace.columns(100, 200)) == 0


records = st.one_of(
    st.builds(message, st.sampled_from(["user", "assistant"]), st.sampled_from(["a", "b"])),
    st.builds(call, st.sampled_from("xyz"), second=st.integers(0, 90)),
    st.builds(
        output,
        st.sampled_from("xyz"),
        st.sampled_from(["", "Exit code: 0\nfine", "Exit code: 7\nbad"]),
        second=st.integers(0, 90),
    ),
    st.builds(event, st.sampled_from(["turn_aborted", "warning"]), message=st.just("oh")),
    st.builds(record, st.just("compacted"), st.just({"message": "short"})),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(records, max_size=25), st.integers(0, 30), st.integers(0, 30))
def test_columns_of_any_part_of_a_rollout_equal_its_spans(
    tmp_path: Path, items: list[Record], first: int, end: int
) -> None:
    (trace,) = read_all(write(tmp_path, meta(), *items))
    selected = spans_of(trace)[first:end]
    if selected:
        check_columns(trace, selected, first)
    else:
        assert len(trace.columns(first, end)) == 0

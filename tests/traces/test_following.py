"""Files that grow while they are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mast_tui.traces.io.opened_file import SourceChanged
from mast_tui.traces.library import read_anew, read_file, read_fully
from mast_tui.traces.model import Growth, Trace
from mast_tui.traces.scan.scanning import Scan
from tests.traces.checks import keys_of
from tests.traces.claude_sessions import agent, user
from tests.traces.nested_runs import write_run
from tests.traces.rollouts import Record, call, event, message, meta, output, tokens


def trace_facts(trace: Trace) -> list[object]:
    """Return the facts and spans of a trace, without the id of its first content."""
    spans = [(trace.span(i), trace.text(i)) for i in range(len(trace))]
    return [trace.meta, list(trace.problems), trace.loaded, dict(trace.spawned), spans]


def follow(trace: Trace) -> Growth:
    """Follow the file to its end."""
    growth = trace.follow()
    if growth is Growth.ANEW:
        fresh = read_anew(trace)
        assert fresh is not None
        read_fully(fresh)
        trace.become(fresh)
    read_fully(trace)
    return growth


def grow(path: Path, pieces: Sequence[bytes]) -> list[Growth]:
    """Append the pieces to a file and follow it; fail unless a new reading gives the same trace."""
    path.write_bytes(pieces[0])
    (trace,) = read_file(path, named=True).traces
    read_fully(trace)
    keys = keys_of(trace)
    growths = []
    for piece in pieces[1:]:
        with path.open("ab") as file:
            file.write(piece)
        growths.append(follow(trace))
        (fresh,) = read_file(path, named=True).traces
        read_fully(fresh)
        assert trace_facts(trace) == trace_facts(fresh)
        assert [trace.span(i).key for i in range(len(keys))] == keys
        keys = keys_of(trace)
    return growths


def jsonl_lines(*records: object) -> list[bytes]:
    return [orjson.dumps(record) + b"\n" for record in records]


ROLLOUT: tuple[Record, ...] = (
    meta(),
    message("user", "go"),
    call("a"),
    output("a"),
    tokens(3, 4, 7),
    message("assistant", "half way; é 🙂"),
    event("agent_message", message="only told"),
    call("b", second=3),
    output("b", "Exit code: 1\nbad", second=4),
    message("user", "and now?", second=5),
    message("assistant", "done", second=6),
)


def test_a_growing_rollout_is_read_from_its_previous_end(tmp_path: Path) -> None:
    head, *later_lines = jsonl_lines(*ROLLOUT)
    second, *appended = later_lines
    growths = grow(tmp_path / "r.jsonl", [head + second, *appended])
    # An item may still repeat the event "only told", and would then replace its span.
    reread_lines = [
        later_lines.index(line)
        for line, growth in zip(appended, growths, strict=True)
        if growth is Growth.ANEW
    ]
    assert reread_lines == [6]


def test_a_partial_line_is_read_once_it_is_complete(tmp_path: Path) -> None:
    *lines, last = jsonl_lines(*ROLLOUT)
    actual = grow(tmp_path / "r.jsonl", [b"".join(lines) + last[:30], last[30:50], last[50:-1]])
    assert set(actual) == {Growth.MORE}
    actual = grow(tmp_path / "s.jsonl", [b"".join(lines) + last[:-1], b"\n", lines[1]])
    assert set(actual) == {Growth.MORE}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=5))
@example([0])
def test_a_rollout_that_grows_from_any_cut_is_the_same_in_the_end(
    tmp_path: Path, cuts: list[int]
) -> None:
    data = b"".join(jsonl_lines(*ROLLOUT))
    first_size = len(b"".join(jsonl_lines(*ROLLOUT[:2])))
    sizes = sorted({first_size + cut % (len(data) - first_size) for cut in cuts})
    ends = [*sizes, len(data)]
    grow(tmp_path / "r.jsonl", [data[: ends[0]], *(data[a:b] for a, b in pairwise(ends))])


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_a_paragraph_of_a_log_may_continue(tmp_path: Path, end: bytes) -> None:
    grow(tmp_path / "run.log", [b"begin\n\nstep 1" + end, b"step 2\n", b"\nstep 3\n\n", b"4"])


def test_a_log_that_ended_with_a_blank_line_is_continued(tmp_path: Path) -> None:
    assert grow(tmp_path / "run.log", [b"one\n\n", b"two\n\n"]) == [Growth.MORE]


def test_a_session_of_claude_code_is_read_again(tmp_path: Path) -> None:
    records = [
        user("u1", None, "go"),
        agent("u2", "u1", "first"),
        agent("u3", "u2", "second"),
        user("u4", "u3", "more"),
    ]
    lines = jsonl_lines(*records)
    assert grow(tmp_path / "s.jsonl", lines) == [Growth.ANEW] * (len(lines) - 1)


def test_a_run_of_several_files_is_followed_in_each(tmp_path: Path) -> None:
    write_run(tmp_path)
    (run,) = [trace for report in Scan([tmp_path], keep_spans=False) for trace in report.traces]
    read_fully(run)
    loaded_count = len(run)
    assert run.follow() is Growth.NONE
    files = sorted(path for path in tmp_path.rglob("*.jsonl"))
    assert len(files) > 1
    for path in files:
        with path.open("ab") as file:
            file.write(jsonl_lines(message("assistant", f"more in {path.name}"))[0])
        assert run.follow() is Growth.ANEW
        fresh = read_anew(run)
        assert fresh is not None
        read_fully(fresh)
        run.become(fresh)
        loaded_count += 1
        assert len(run) == loaded_count
        assert run.follow() is Growth.NONE


def test_a_trace_of_the_library_is_followed_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    lines = jsonl_lines(*ROLLOUT)
    path.write_bytes(b"".join(lines[:4]))
    (trace,) = [trace for report in Scan([tmp_path], keep_spans=False) for trace in report.traces]
    read_fully(trace)
    assert len(trace) == 3
    with path.open("ab") as file:
        file.write(b"".join(lines[4:]))
    assert follow(trace) is Growth.MORE
    fresh = read_anew(trace)
    assert fresh is not None
    read_fully(fresh)
    assert trace_facts(fresh) == trace_facts(trace)


def test_a_file_replaced_by_another_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    data = b"".join(jsonl_lines(*ROLLOUT))
    path.write_bytes(data)
    (trace,) = read_file(path, named=True).traces
    read_fully(trace)
    assert trace.follow() is Growth.NONE
    os.truncate(path, len(data) // 2)
    with pytest.raises(SourceChanged, match="cut"):
        trace.follow()
    path.write_bytes(data.replace(b"half way", b"HALF WAY") + b"\n")
    with pytest.raises(SourceChanged, match="changed"):
        trace.follow()
    (tmp_path / "other").write_bytes(data)
    path.unlink()
    with pytest.raises(SourceChanged, match="gone"):
        trace.follow()
    (tmp_path / "other").rename(path)
    with pytest.raises(SourceChanged, match="another file"):
        trace.follow()


def test_a_restored_file_is_followed_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    lines = jsonl_lines(*ROLLOUT)
    path.write_bytes(b"".join(lines[:4]))
    (trace,) = read_file(path, named=True).traces
    read_fully(trace)
    path.rename(tmp_path / "away")
    with pytest.raises(SourceChanged, match="gone"):
        trace.follow()
    with (tmp_path / "away").open("ab") as file:
        file.write(lines[4] + lines[5])
    (tmp_path / "away").rename(path)
    assert follow(trace) is Growth.MORE
    assert len(trace) == 4
    assert trace.text(0) == "go"

"""The format of converted traces: written, read, and recognised as copies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.io.json_values import dump_line
from mast_tui.traces.library import read_file, read_fully, scan
from mast_tui.traces.model import Role, SpanKind, Trace, TraceIdentity
from mast_tui.traces.readers.converted import line_of
from tests.traces.checks import SAMPLES, check_sound, corpus_files
from tests.traces.rollouts import call, message, meta, output, write
from tests.traces.test_cached_documents import traces

short_texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
originals = traces(Path("x.json"), None, short_texts, short_texts, lost_parents=())


def check_equal(actual: Trace, expected: Trace) -> None:
    assert actual.identity == expected.identity
    assert actual.meta == expected.meta
    assert list(actual.problems) == list(expected.problems)
    assert len(actual) == len(expected)
    for index in range(len(expected)):
        assert actual.span(index).key == expected.span(index).key
        assert actual.span(index).parent == expected.span(index).parent
        assert (actual.span(index).start, actual.span(index).end, actual.span(index).status) == (
            expected.span(index).start,
            expected.span(index).end,
            expected.span(index).status,
        )
        assert actual.text(index) == expected.text(index)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(originals, min_size=1, max_size=3))
def test_a_written_trace_is_read_without_loss(tmp_path: Path, written: list[Trace]) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"".join(map(line_of, written)))
    report = read_file(path, named=False)
    assert report.format == "mast-tui"
    assert not report.problems
    for actual, trace in zip(report.traces, written, strict=True):
        check_sound(actual)
        check_equal(actual, trace)


@pytest.mark.slow
def test_converted_real_traces_are_read_without_loss(tmp_path: Path) -> None:
    originals = [trace for report in scan([SAMPLES, *corpus_files(4)]) for trace in report.traces]
    for trace in originals:
        read_fully(trace)
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"".join(map(line_of, originals)))
    report = read_file(path, named=False)
    for actual, trace in zip(report.traces, originals, strict=True):
        check_equal(actual, trace)


def test_an_original_and_its_converted_copy_are_one_trace(tmp_path: Path) -> None:
    source = write(tmp_path, meta(), call("a"), output("a"), message("user", "x"), name="z.jsonl")
    (tmp_path / "a.jsonl").write_bytes(line_of(read_file(source, named=True).traces[0]))
    first, second = scan([tmp_path])
    assert (first.format, second.format) == ("mast-tui", None)
    assert second.skipped is not None
    assert "the same trace" in second.skipped


def test_a_lone_surrogate_can_be_written(tmp_path: Path) -> None:
    steps = StepList()
    steps.add("a", SpanKind.LOG, Role.LOG, "x", "half \ud83d pair", place="line 1")
    identity = TraceIdentity("t", "0" * 64, 1, "r", 1, native=False)
    line = line_of(Trace(identity, Path("x"), StepSpans(steps.steps)))
    assert json.loads(line)["spans"][0]["text"] == "half \ufffd pair"


@pytest.mark.parametrize(
    "change",
    [
        {"spans": None},
        {"spans": [1, {"key": 5, "kind": "dream", "start": "noon", "text": {"a": 1}}]},
        {"source": {"content_hash": 7}},
        {"source": None, "id": None},
        {"score": "high", "hidden": [], "outcome": "so so"},
        {"problems": [None, {}, {"place": "line 1"}]},
    ],
)
def test_wrong_types_raise_nothing(tmp_path: Path, change: dict[str, object]) -> None:
    source = write(tmp_path, meta(), call("a"), output("a"))
    line = json.loads(line_of(read_file(source, named=True).traces[0]))
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps({**line, **change}, separators=(",", ":")) + "\n")
    (trace,) = read_file(path, named=False).traces
    assert all(problem.place and problem.message for problem in trace.problems)
    for index in range(len(trace)):
        trace.span(index)
        trace.text(index)


def test_a_later_version_is_refused_with_a_hint(tmp_path: Path) -> None:
    source = write(tmp_path, meta(), call("a"))
    line = line_of(read_file(source, named=True).traces[0])
    path = tmp_path / "out.jsonl"
    path.write_bytes(line + line.replace(b'"version":1', b'"version":2') + b"{}\n{cut")
    report = read_file(path, named=False)
    assert len(report.traces) == 1
    messages = {problem.place: problem.message for problem in report.problems}
    assert messages.keys() == {"line 2", "line 3", "line 4"}
    assert "newer mast-tui" in messages["line 2"]


@pytest.mark.parametrize(
    "spelling",
    [{}, {"indent": 1}, {"sort_keys": True}, {"separators": (",", ":"), "sort_keys": True}],
    ids=["spaced", "indented", "sorted", "sorted-and-close"],
)
def test_the_format_is_recognised_in_any_json_spelling(
    spelling: dict[str, object], tmp_path: Path
) -> None:
    """Another program may parse a trace and write it again."""
    source = write(tmp_path, meta(), call("a"), output("a"), message("user", "x"))
    original = read_file(source, named=True).traces[0]
    path = tmp_path / "again.json"
    path.write_text(json.dumps(json.loads(line_of(original)), **spelling))  # type: ignore[arg-type]
    report = read_file(path, named=True)
    assert report.format == "mast-tui"
    check_equal(report.traces[0], original)


def test_numbers_of_many_digits_stay_numbers() -> None:
    """Other programs read the counts of tokens as numbers."""
    assert json.loads(dump_line({"input": 10**59, "text": "\ud800"})) == {
        "input": 10**59,
        "text": "\ufffd",
    }

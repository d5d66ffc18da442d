"""Files and folders: recognised traces, skipped files, ids and outcomes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mast_tui.traces.library import read_file, read_fully, scan
from mast_tui.traces.model import FileReport, Outcome
from tests.traces.checks import check_sound, write_json
from tests.traces.rollouts import SESSION, call, message, meta, output, write

CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def by_name(reports: list[FileReport]) -> dict[str, FileReport]:
    return {report.path.name: report for report in reports}


def has_one_result(report: FileReport) -> bool:
    """Return whether a report has exactly one of a format, a skip reason and a failure."""
    return [report.format, report.skipped, report.failed].count(None) == 2


def test_formats_are_recognised_by_content(tmp_path: Path) -> None:
    write(tmp_path, meta(), message("user", "go"), name="a.jsonl")
    write_json(tmp_path / "b.json", {"messages": CHAT})
    (tmp_path / "c.log").write_text("one\n\ntwo\n")
    (tmp_path / "d.txt").write_text("one\n")
    formats = [(report.path.name, report.format) for report in scan([tmp_path])]
    assert formats == [
        ("a.jsonl", "codex"),
        ("b.json", "message-list"),
        ("c.log", "text"),
        ("d.txt", "text"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (".hidden.json", b"[]", "hidden"),
        ("README.md", b"# Traces", "document"),
        ("LICENSE", b"MIT", "document"),
        ("notes.pdf", b"%PDF", "document"),
        ("run.py", b"print()", "code"),
        ("requirements.txt", b"orjson", "code"),
        ("shot.png", b"\x89PNG", "image"),
        ("scores.csv", b"a,b", "table"),
        ("empty.jsonl", b"", "empty"),
        ("model.json", b"\x00\x01\x02", "binary"),
        ("rollout.jsonl.zst", b"\x28\xb5\x2f\xfd\x00", "zstd"),
        ("rollout.jsonl.gz", b"\x1f\x8b\x08", "gzip"),
        ("config.json", b'{"a": 1}', "no known trace format"),
        ("list.json", b"[1, 2]", "no known trace format"),
        ("events.jsonl", b'{"a": 1}\n{"a": 2}\n', "no known trace format"),
        ("notes", b"just text", "plain text"),
        ("labels.json", b'[{"trajectory_id": "x", "failures": []}]', "labels"),
        ("labels.jsonl", b'{"trajectory_id": "x", "failures": []}\n' * 2, "labels"),
        ("study.json", b'[{"trace_id": "x", "hf_annotations": {}}]', "labels"),
        (
            "planted.jsonl",
            b'{"trace": "x", "mode": "1.1", "first": "a", "last": "b", "why": "c"}\n' * 2,
            "a list of planted failures",
        ),
    ],
)
def test_a_file_that_is_no_trace_is_skipped_with_a_reason(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    (report,) = scan([tmp_path])
    assert has_one_result(report)
    assert report.skipped is not None
    assert reason in report.skipped


@pytest.mark.parametrize("name", ["notes", "README.md", "run.py"])
def test_any_text_is_a_trace_when_it_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("one\n\ntwo\n")
    (report,) = scan([tmp_path / name])
    assert report.format == "text"
    assert len(report.traces[0]) == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("package.json", b'{"name": "x", "version": "1.0.0", "dependencies": {}}'),
        ("study.ipynb", b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'),
        ("scores.csv", b"a,b\n1,2\n"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("labels.json", b'[{"trajectory_id": "x", "failures": []}]'),
        ("nothing.log", b""),
    ],
)
def test_a_file_that_is_no_trace_is_refused_when_named(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    (report,) = scan([tmp_path])
    assert has_one_result(report)
    assert report.skipped is not None
    (named_report,) = scan([path])
    assert has_one_result(named_report)
    assert named_report.failed is not None
    assert "no trace" in named_report.failed
    assert "looked for" in named_report.failed


def test_a_trace_with_a_document_s_name_is_read_when_it_is_named(tmp_path: Path) -> None:
    path = write_json(tmp_path / "README.md", CHAT)
    assert read_file(path, named=True).format == "message-list"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"messages": [\n{"role": "us', "line 2"),
        (b"{\n\n]", "line 3"),
        (b"not json at all", "line 1"),
    ],
)
def test_json_that_is_broken_has_failed_with_its_place(
    tmp_path: Path, content: bytes, line: str
) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    report = read_file(path, named=False)
    assert has_one_result(report)
    assert report.failed is not None
    assert "not JSON" in report.failed
    assert line in report.failed


def test_missing_and_unreadable_files_have_failed(tmp_path: Path) -> None:
    assert read_file(tmp_path / "nothing.json", named=True).failed == "no such file or folder"
    assert read_file(tmp_path, named=True).failed == "a folder, not a file; give a file in it"
    (report,) = scan([tmp_path / "nothing"])
    assert report.failed == "no such file or folder"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (report,) = scan([tmp_path])
    assert report.skipped == "not a regular file"


def test_folders_are_read_in_order_and_hidden_ones_are_not_entered(tmp_path: Path) -> None:
    for name in ("b/2.json", "b/1.json", "a/3.json", "0.json", ".git/4.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_json(tmp_path / name, [*CHAT, {"role": "user", "content": name}])
    reports = list(scan([tmp_path]))
    order = [report.path.relative_to(tmp_path).as_posix() for report in reports]
    assert order == ["0.json", ".git", "a/3.json", "b/1.json", "b/2.json"]
    assert reports[1].skipped == "hidden folder"


def test_links_in_a_circle_are_followed_once(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", CHAT)
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "nowhere.json").symlink_to(tmp_path / "gone")
    reports = list(scan([tmp_path, tmp_path / "a.json"]))
    assert [report.path.name for report in reports] == ["a.json", "nowhere.json"]
    assert reports[1].failed is not None


def test_scanning_reads_one_file_at_a_time(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        write_json(tmp_path / name, [*CHAT, {"role": "user", "content": name}])
    reports = iter(scan([tmp_path]))
    next(reports)
    (tmp_path / "b.json").unlink()
    assert next(reports).failed == "no such file or folder"


def test_a_trace_in_two_files_is_listed_once(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), message("user", "go"), name="a.jsonl")
    shutil.copy(path, tmp_path / "b.jsonl")
    first, second = scan([tmp_path])
    assert len(first.traces) == 1
    assert second.skipped is not None
    assert "a.jsonl" in second.skipped


def test_two_traces_with_one_id_get_unique_ids(tmp_path: Path) -> None:
    for number, name in enumerate(("a.jsonl", "b.jsonl", "c.jsonl")):
        write(tmp_path, meta(), message("user", f"go {number}"), name=name)
    reports = list(scan([tmp_path]))
    ids = [trace.identity.trace_id for report in reports for trace in report.traces]
    assert ids == [SESSION, f"{SESSION}~2", f"{SESSION}~3"]
    assert not reports[0].problems
    assert "other content" in reports[1].problems[0].message
    check_sound(reports[1].traces[0])


def test_a_record_that_repeats_in_its_file_is_shown_once(tmp_path: Path) -> None:
    run = {"trace_id": "r", "messages": CHAT}
    (report,) = scan([write_json(tmp_path / "runs.json", [run, {"messages": CHAT[:1]}, run])])
    ids = [trace.identity.trace_id for trace in report.traces]
    assert len(set(ids)) == len(ids)


def test_an_outcomes_file_fills_missing_facts(tmp_path: Path) -> None:
    write(tmp_path, meta(), message("user", "go"), name="a.jsonl")
    write_json(tmp_path / "b.json", [{"messages": CHAT}, {"messages": CHAT[:1], "reward": 1.0}])
    (tmp_path / "outcomes.csv").write_text(
        "trace,outcome,score,system,benchmark\n"
        "a.jsonl,failed,0.25,mine,sre\n"
        "b.json#0,succeeded,,,\n"
        "b.json#1,failed,0,,\n"
        "gone.json,failed,,,\n"
    )
    reports = by_name(list(scan([tmp_path])))
    (a,) = reports["a.jsonl"].traces
    assert (a.meta.outcome, a.meta.score, a.meta.benchmark) == (Outcome.FAILED, 0.25, "sre")
    assert a.meta.system == "codex", "facts in the file are not overridden"
    first, second = reports["b.json"].traces
    assert [first.meta.outcome, second.meta.outcome] == [Outcome.SUCCEEDED, Outcome.SUCCEEDED]
    outcomes_report = reports["outcomes.csv"]
    assert outcomes_report.skipped is not None
    assert outcomes_report.skipped.startswith(
        "4 rows of outcomes, of which 3 match a trace; 1 problem,"
    )
    assert [problem.place for problem in outcomes_report.problems] == ["line 5"]
    assert "'gone.json'" in outcomes_report.problems[0].message
    named_trace = read_file(tmp_path / "a.jsonl", named=True).traces[0]
    assert named_trace.meta.outcome is Outcome.FAILED
    check_sound(named_trace)


def test_bad_rows_of_outcomes_are_problems(tmp_path: Path) -> None:
    write(tmp_path, meta(), message("user", "go"), name="a.jsonl")
    (tmp_path / "outcomes.csv").write_text(
        "trace,outcome,score\na.jsonl,FAILED,high\na.jsonl#0,perhaps,\n"
    )
    reports = by_name(list(scan([tmp_path])))
    assert reports["a.jsonl"].traces[0].meta.outcome is Outcome.FAILED
    reason = reports["outcomes.csv"].skipped
    assert reason is not None
    assert "problems, the first: line 2" in reason
    assert "line 2" in reason
    (tmp_path / "outcomes.csv").write_bytes(b'x,y\n"unfinished')
    reason = by_name(list(scan([tmp_path])))["outcomes.csv"].skipped
    assert reason is not None
    assert "no column named 'trace'" in reason


def test_outcomes_of_files_outside_the_scan_are_not_missing(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", {"messages": CHAT})
    write_json(tmp_path / "b.json", {"messages": CHAT[:1]})
    outcomes = tmp_path / "outcomes.csv"
    outcomes.write_text("trace,outcome\na.json,failed\nb.json,failed\n")
    assert by_name(list(scan([path, outcomes])))["outcomes.csv"].problems == ()
    assert by_name(list(scan([tmp_path], without=[path])))["outcomes.csv"].problems == ()


def test_a_rollout_in_a_folder_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), *(message("user", "x" * 1000) for _ in range(3000)))
    (report,) = scan([tmp_path])
    (trace,) = report.traces
    assert trace.loaded.done < path.stat().st_size / 2
    read_fully(trace)
    assert len(trace) == 3000


def test_opening_a_rollout_imports_no_slow_package(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), call("a"), output("a"))
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from mast_tui.traces.library import read_file\n"
        f"assert len(read_file(Path({str(path)!r}), named=True).traces[0]) == 2\n"
        "third = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(name for name in third if name in ('textual', 'rich', 'click', 'numpy',\n"
        "    'sqlalchemy', 'openai', 'rapidfuzz')))\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert process.stdout.strip() == "[]"

"""The cache of scanned files: used while nothing has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_fully, scan
from mast_tui.traces.model import FileReport, Trace, TraceSummary
from mast_tui.traces.scan import file_reader
from mast_tui.traces.scan.library_cache import LibraryCache
from tests.traces.checks import check_sound, keys_of, texts_of, write_json
from tests.traces.nested_runs import MAIN, write_run

CHAT = [{"role": "user", "content": "sum it up"}, {"role": "assistant", "content": "done"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a folder of a run of several files, conversations, and files that are no traces."""
    folder = tmp_path / "traces"
    write_run(folder)
    write_json(folder / "chat.json", {"messages": CHAT, "model": "m-1"})
    write_json(folder / "many.json", [{"messages": CHAT}, {"messages": CHAT[:1]}])
    write_json(folder / "package.json", {"name": "x"})
    (folder / "broken.json").write_text('{"messages": ')
    return folder


def scan_cached(folder: Path, library: Path) -> list[FileReport]:
    with LibraryCache(library) as cache:
        return list(scan([folder], library=cache))


def report_facts(reports: list[FileReport]) -> list[object]:
    return [
        (
            report.path,
            report.format,
            report.skipped,
            report.failed,
            *map(identity_of, report.traces),
        )
        for report in reports
    ]


def identity_of(trace: Trace) -> object:
    return trace.identity, trace.record, trace.meta.model


def traces_of(reports: list[FileReport]) -> list[Trace]:
    return [trace for report in reports for trace in report.traces]


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the names of files that are read instead of taken from the cache."""
    names: list[str] = []
    original = file_reader._read_by_recognition

    def recording_read(source: Source, named: bool) -> FileReport:
        names.append(source.path.name)
        return original(source, named)

    monkeypatch.setattr(file_reader, "_read_by_recognition", recording_read)
    return names


def test_a_second_scan_gives_the_same_from_the_cache(
    folder: Path, tmp_path: Path, files_read: list[str]
) -> None:
    library = tmp_path / "cache" / "library.db"
    first = scan_cached(folder, library)
    files_read.clear()
    second = scan_cached(folder, library)
    assert report_facts(second) == report_facts(first)
    assert files_read == ["broken.json"]


def test_a_cache_of_other_fields_is_not_used(
    folder: Path, tmp_path: Path, files_read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "library.db"
    first = scan_cached(folder, library)
    all_files = list(files_read)
    files_read.clear()
    monkeypatch.setattr(TraceSummary, "_fields", TraceSummary._fields[::-1])
    assert report_facts(scan_cached(folder, library)) == report_facts(first)
    assert sorted(files_read) == sorted(all_files)


def test_a_trace_from_the_cache_is_read_when_it_is_opened(folder: Path, tmp_path: Path) -> None:
    library = tmp_path / "library.db"
    scanned = {trace.identity.trace_id: trace for trace in traces_of(scan_cached(folder, library))}
    for trace in traces_of(scan_cached(folder, library)):
        expected = scanned[trace.identity.trace_id]
        assert (len(trace), trace.loaded.complete) == (0, False)
        assert trace.loaded.spans == len(expected)
        read_fully(trace)
        read_fully(expected)
        check_sound(trace)
        assert keys_of(trace) == keys_of(expected)
        assert trace.meta == expected.meta


@pytest.mark.parametrize(
    ("name", "old_text", "new_text"),
    [
        ("chat.json", "sum it up", "total it"),
        ("01/rollout-a.jsonl", "all done", "half done"),
        ("02/rollout-c.jsonl", "grandchild was here", "grandchild had gone"),
    ],
)
def test_changed_files_are_read_again(
    folder: Path, tmp_path: Path, name: str, old_text: str, new_text: str
) -> None:
    library = tmp_path / "library.db"
    scan_cached(folder, library)
    path = folder / name
    path.write_text(path.read_text().replace(old_text, new_text))
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1_000_000))
    texts = []
    for trace in traces_of(scan_cached(folder, library)):
        read_fully(trace)
        texts += texts_of(trace)
    assert new_text in texts


def test_a_new_sub_agent_joins_its_cached_run(folder: Path, tmp_path: Path) -> None:
    library = tmp_path / "library.db"
    path = folder / "02" / "rollout-c.jsonl"
    content = path.read_bytes()
    path.unlink()
    scan_cached(folder, library)
    path.write_bytes(content)
    traces = traces_of(scan_cached(folder, library))
    run = next(trace for trace in traces if trace.identity.trace_id == MAIN)
    read_fully(run)
    assert "grandchild was here" in [run.text(index) for index in range(len(run))]


def test_a_file_that_is_gone_when_its_trace_is_opened_is_a_problem(
    folder: Path, tmp_path: Path
) -> None:
    library = tmp_path / "library.db"
    scan_cached(folder, library)
    traces = traces_of(scan_cached(folder, library))
    trace = next(trace for trace in traces if trace.path.name == "chat.json")
    (folder / "chat.json").unlink()
    assert not trace.advance()
    assert trace.loaded.complete
    assert len(trace) == 0
    assert "no such file" in trace.problems[0].message


def test_all_files_are_read_without_a_library_cache(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    reports = scan_cached(folder, tmp_path / "file" / "library.db")
    assert len(traces_of(reports)) == 4

"""The cache of scanned files: used while nothing has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_fully, scan
from mast_tui.traces.model import FileReport, Trace, TraceSummary
from mast_tui.traces.scan import file_reader as one_file
from mast_tui.traces.scan.library_cache import LibraryCache
from tests.traces.checks import check_sound, write_json
from tests.traces.test_runs import MAIN, family, keys_of

CHAT = [{"role": "user", "content": "sum it up"}, {"role": "assistant", "content": "done"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a run of several files, a list of conversations, and what is no trace."""
    folder = tmp_path / "traces"
    family(folder)
    write_json(folder / "chat.json", {"messages": CHAT, "model": "m-1"})
    write_json(folder / "many.json", [{"messages": CHAT}, {"messages": CHAT[:1]}])
    write_json(folder / "package.json", {"name": "x"})
    (folder / "broken.json").write_text('{"messages": ')
    return folder


def look(folder: Path, library: Path) -> list[FileReport]:
    with LibraryCache(library) as kept:
        return list(scan([folder], library=kept))


def facts(reports: list[FileReport]) -> list[object]:
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
    """The names of the files that are read, not taken from the cache."""
    names: list[str] = []
    original = one_file._read_by_recognition

    def noted(source: Source, named: bool) -> FileReport:
        names.append(source.path.name)
        return original(source, named)

    monkeypatch.setattr(one_file, "_read_by_recognition", noted)
    return names


def test_a_second_scan_gives_the_same_from_the_cache(
    folder: Path, tmp_path: Path, files_read: list[str]
) -> None:
    library = tmp_path / "cache" / "library.db"
    first = look(folder, library)
    files_read.clear()
    second = look(folder, library)
    assert facts(second) == facts(first)
    assert files_read == ["broken.json"]


def test_a_cache_of_other_fields_is_not_used(
    folder: Path, tmp_path: Path, files_read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "library.db"
    first = look(folder, library)
    every = list(files_read)
    files_read.clear()
    monkeypatch.setattr(TraceSummary, "_fields", TraceSummary._fields[::-1])
    assert facts(look(folder, library)) == facts(first)
    assert sorted(files_read) == sorted(every)


def test_a_trace_from_the_cache_is_read_when_it_is_opened(folder: Path, tmp_path: Path) -> None:
    library = tmp_path / "library.db"
    at_first = {trace.identity.trace_id: trace for trace in traces_of(look(folder, library))}
    for trace in traces_of(look(folder, library)):
        known = at_first[trace.identity.trace_id]
        assert (len(trace), trace.loaded.complete) == (0, False)
        assert trace.loaded.spans == len(known)
        read_fully(trace)
        read_fully(known)
        check_sound(trace)
        assert keys_of(trace) == keys_of(known)
        assert trace.meta == known.meta


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("chat.json", "sum it up", "total it"),
        ("01/rollout-a.jsonl", "all done", "half done"),
        ("02/rollout-c.jsonl", "grandchild was here", "grandchild had gone"),
    ],
)
def test_changed_files_are_read_again(
    folder: Path, tmp_path: Path, name: str, before: str, after: str
) -> None:
    library = tmp_path / "library.db"
    look(folder, library)
    path = folder / name
    path.write_text(path.read_text().replace(before, after))
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1_000_000))
    texts = []
    for trace in traces_of(look(folder, library)):
        read_fully(trace)
        texts += [trace.text(index) for index in range(len(trace))]
    assert after in texts


def test_a_new_sub_agent_joins_its_cached_run(folder: Path, tmp_path: Path) -> None:
    library = tmp_path / "library.db"
    late = folder / "02" / "rollout-c.jsonl"
    content = late.read_bytes()
    late.unlink()
    look(folder, library)
    late.write_bytes(content)
    run = next(t for t in traces_of(look(folder, library)) if t.identity.trace_id == MAIN)
    read_fully(run)
    assert "grandchild was here" in [run.text(index) for index in range(len(run))]


def test_a_file_that_is_gone_when_its_trace_is_opened_is_a_problem(
    folder: Path, tmp_path: Path
) -> None:
    library = tmp_path / "library.db"
    look(folder, library)
    trace = next(t for t in traces_of(look(folder, library)) if t.path.name == "chat.json")
    (folder / "chat.json").unlink()
    assert not trace.advance()
    assert trace.loaded.complete
    assert len(trace) == 0
    assert "no such file" in trace.problems[0].message


def test_all_is_read_without_a_library_cache(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    reports = look(folder, tmp_path / "file" / "library.db")
    assert len(traces_of(reports)) == 4

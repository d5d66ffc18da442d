"""Traces from the cache of a scan, and their differences to the next scan."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.library import read_fully
from mast_tui.traces.model import FileReport, Outcome, Trace
from mast_tui.traces.scan.library_cache import LibraryCache
from mast_tui.traces.scan.scanning import Scan
from mast_tui.ui.services.folder_scan import Differences
from tests.traces.checks import check_sound, keys_of, write_json
from tests.traces.nested_runs import MAIN, write_run
from tests.traces.rollouts import message, meta, write
from tests.traces.test_trials import published_layout_openhands_events

CHAT = [{"role": "user", "content": "sum it up"}, {"role": "assistant", "content": "done"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a run of several files, a list, a trial, an outcomes file, and two traces of one id."""
    folder = tmp_path / "traces"
    write_run(folder)
    write_json(folder / "many.json", [{"messages": CHAT}, {"messages": CHAT[:1]}])
    published_layout_openhands_events(folder)
    for name in "xyz":
        (folder / name).mkdir()
    write_json(folder / "x" / "told.json", CHAT[1:])
    (folder / "x" / "outcomes.csv").write_text("trace,outcome,system\ntold.json,failed,shop\n")
    for subfolder, text in (("y", "one"), ("z", "two")):
        header = meta(id="the-same-id")
        write(folder / subfolder, header, message("user", text), name="rollout.jsonl")
    return folder


def scan_and_cache(folder: Path, library: LibraryCache) -> list[Trace]:
    scan = Scan([folder], library=library, keep_spans=False)
    traces_with_members = [
        (trace, scan.members.get(str(trace.path), ())) for report in scan for trace in report.traces
    ]
    library.keep_traces([folder], traces_with_members)
    return [trace for trace, _ in traces_with_members]


def cached_traces(folder: Path, library: LibraryCache) -> list[Trace]:
    return [trace for part in library.cached_traces([folder]) for trace in part]


def test_cached_traces_have_the_summaries_of_a_scan(folder: Path, tmp_path: Path) -> None:
    with LibraryCache(tmp_path / "library.db") as library:
        scanned = scan_and_cache(folder, library)
        cached = cached_traces(folder, library)
    assert [trace.summary for trace in cached] == [trace.summary for trace in scanned]
    assert [(trace.path, trace.record) for trace in cached] == [
        (trace.path, trace.record) for trace in scanned
    ]
    by_id = {trace.identity.trace_id: trace for trace in cached}
    assert len(by_id) == len(cached) == 7
    (with_outcome,) = [trace for trace in cached if trace.path.name == "told.json"]
    assert (with_outcome.meta.outcome, with_outcome.meta.system) == (Outcome.FAILED, "shop")


def test_a_cached_trace_is_read_as_that_of_a_scan(folder: Path, tmp_path: Path) -> None:
    with LibraryCache(tmp_path / "library.db") as library:
        scanned = scan_and_cache(folder, library)
        cached = cached_traces(folder, library)
    assert MAIN in [trace.identity.trace_id for trace in cached]
    for cached_trace, scanned_trace in zip(cached, scanned, strict=True):
        identity = scanned_trace.identity
        for trace in (cached_trace, scanned_trace):
            assert len(trace) == 0
            read_fully(trace)
        check_sound(cached_trace)
        assert keys_of(cached_trace) == keys_of(scanned_trace) != []
        assert cached_trace.identity == scanned_trace.identity == identity
        assert cached_trace.meta == scanned_trace.meta
        reread = cached_trace.anew()
        assert len(reread) == 0
        assert reread.summary == cached_trace.summary


def test_a_second_scan_of_the_same_files_has_no_differences(folder: Path, tmp_path: Path) -> None:
    for _ in range(2):
        with LibraryCache(tmp_path / "library.db") as library:
            differences = Differences()
            differences.add_cached(cached_traces(folder, library))
            scan = Scan([folder], library=library, keep_spans=False)
            new_reports = [differences.news_in(report) for report in scan]
            differences.finish()
            scan_and_cache(folder, library)
    assert not differences.has_differences
    assert differences.take_gone() == []
    assert [trace for report in new_reports if report is not None for trace in report.traces] == []


def test_a_changed_outcome_file_is_a_difference(folder: Path, tmp_path: Path) -> None:
    with LibraryCache(tmp_path / "library.db") as library:
        scan_and_cache(folder, library)
        (folder / "x" / "outcomes.csv").write_text("trace,outcome\ntold.json,succeeded\n")
        differences = Differences()
        differences.add_cached(cached_traces(folder, library))
        new_reports = [
            differences.news_in(report)
            for report in Scan([folder], library=library, keep_spans=False)
        ]
        differences.finish()
    changed = [trace for report in new_reports if report is not None for trace in report.traces]
    assert [trace.meta.outcome for trace in changed] == [Outcome.SUCCEEDED]
    assert differences.take_gone() == []


def test_a_changed_trace_replaces_the_old_one_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    write_json(folder / "a.json", CHAT)
    with LibraryCache(tmp_path / "library.db") as library:
        (old_trace,) = scan_and_cache(folder, library)
        differences = Differences()
        differences.add_cached(cached_traces(folder, library))
        write_json(folder / "a.json", [*CHAT, *CHAT])
        (report,) = map(differences.news_in, Scan([folder], library=library, keep_spans=False))
        assert isinstance(report, FileReport)
        assert differences.take_gone() == [old_trace.identity.trace_id]
        assert differences.take_gone() == []


def test_scans_of_other_paths_have_caches_of_their_own(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LibraryCache(tmp_path / "library.db") as library:
        scan_and_cache(folder, library)
        assert list(library.cached_traces([folder / "x"])) == []
        monkeypatch.chdir(folder)
        assert list(library.cached_traces([Path()])) == []

"""What the last walk has found, shown before the next: the same traces, read in the same way."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.library import read_again, read_fully
from mast_tui.traces.model import FileReport, Outcome, Trace
from mast_tui.traces.scan.library_cache import LibraryCache
from mast_tui.traces.scan.scanning import Scan
from mast_tui.ui.services.folder_scan import Differences
from tests.traces.checks import check_sound, write_json
from tests.traces.rollouts import message, meta, write
from tests.traces.test_runs import MAIN, family, keys_of
from tests.traces.test_trials import published_layout_openhands_events

CHAT = [{"role": "user", "content": "sum it up"}, {"role": "assistant", "content": "done"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of several files, a list, a trial, facts from beside, and an id that is there twice."""
    folder = tmp_path / "traces"
    family(folder)
    write_json(folder / "many.json", [{"messages": CHAT}, {"messages": CHAT[:1]}])
    published_layout_openhands_events(folder)
    for name in "xyz":
        (folder / name).mkdir()
    write_json(folder / "x" / "told.json", CHAT[1:])
    (folder / "x" / "outcomes.csv").write_text("trace,outcome,system\ntold.json,failed,shop\n")
    for place, words in (("y", "one"), ("z", "two")):
        own = meta(id="the-same-id")
        write(folder / place, own, message("user", words), name="rollout.jsonl")
    return folder


def walk(folder: Path, library: LibraryCache) -> list[Trace]:
    scan = Scan([folder], library=library, keep_spans=False)
    found = [
        (trace, scan.members.get(str(trace.path), ())) for report in scan for trace in report.traces
    ]
    library.keep_traces([folder], found)
    return [trace for trace, _ in found]


def cached_traces(folder: Path, library: LibraryCache) -> list[Trace]:
    return [trace for part in library.cached_traces([folder], read_again) for trace in part]


def test_the_last_look_tells_all_that_the_walk_told(folder: Path, tmp_path: Path) -> None:
    with LibraryCache(tmp_path / "library.db") as library:
        found = walk(folder, library)
        told = cached_traces(folder, library)
    assert [one.summary for one in told] == [one.summary for one in found]
    assert [(one.path, one.record) for one in told] == [(one.path, one.record) for one in found]
    by_id = {one.identity.trace_id: one for one in told}
    assert len(by_id) == len(told) == 7
    (with_outcome,) = [one for one in told if one.path.name == "told.json"]
    assert (with_outcome.meta.outcome, with_outcome.meta.system) == (Outcome.FAILED, "shop")


def test_a_trace_of_the_last_look_is_read_as_that_of_a_walk(folder: Path, tmp_path: Path) -> None:
    with LibraryCache(tmp_path / "library.db") as library:
        found = walk(folder, library)
        told = cached_traces(folder, library)
    assert MAIN in [one.identity.trace_id for one in told]
    for ours, theirs in zip(told, found, strict=True):
        identity = theirs.identity
        for trace in (ours, theirs):
            assert len(trace) == 0
            read_fully(trace)
        check_sound(ours)
        assert keys_of(ours) == keys_of(theirs) != []
        assert ours.identity == theirs.identity == identity
        assert ours.meta == theirs.meta
        again = ours.anew()
        assert len(again) == 0
        assert again.summary == ours.summary


def test_a_second_walk_over_the_same_files_is_no_news(folder: Path, tmp_path: Path) -> None:
    for _ in range(2):
        with LibraryCache(tmp_path / "library.db") as library:
            news = Differences()
            news.add_cached(cached_traces(folder, library))
            scan = Scan([folder], library=library, keep_spans=False)
            told = [news.news_in(report) for report in scan]
            news.finish()
            walk(folder, library)
    assert not news.any
    assert news.take_gone() == []
    assert [trace for one in told if one is not None for trace in one.traces] == []


def test_what_another_file_tells_of_a_trace_is_news(folder: Path, tmp_path: Path) -> None:
    with LibraryCache(tmp_path / "library.db") as library:
        walk(folder, library)
        (folder / "x" / "outcomes.csv").write_text("trace,outcome\ntold.json,succeeded\n")
        news = Differences()
        news.add_cached(cached_traces(folder, library))
        told = [
            news.news_in(report) for report in Scan([folder], library=library, keep_spans=False)
        ]
        news.finish()
    changed = [trace for one in told if one is not None for trace in one.traces]
    assert [trace.meta.outcome for trace in changed] == [Outcome.SUCCEEDED]
    assert news.take_gone() == []


def test_a_trace_whose_content_has_changed_takes_the_place_of_the_old_one_at_once(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    write_json(folder / "a.json", CHAT)
    with LibraryCache(tmp_path / "library.db") as library:
        (before,) = walk(folder, library)
        news = Differences()
        news.add_cached(cached_traces(folder, library))
        write_json(folder / "a.json", [*CHAT, *CHAT])
        (report,) = map(news.news_in, Scan([folder], library=library, keep_spans=False))
        assert isinstance(report, FileReport)
        assert news.take_gone() == [before.identity.trace_id]
        assert news.take_gone() == []


def test_looks_at_other_paths_are_kept_apart(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LibraryCache(tmp_path / "library.db") as library:
        walk(folder, library)
        assert list(library.cached_traces([folder / "x"], read_again)) == []
        monkeypatch.chdir(folder)
        assert list(library.cached_traces([Path()], read_again)) == []

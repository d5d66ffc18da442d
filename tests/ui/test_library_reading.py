"""The scan of many files: cached traces first, then what is new, and no spans in memory."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mast_tui.traces.index.document import StepSpans
from mast_tui.traces.model import FileReport
from mast_tui.traces.scan import file_reader as one_file
from mast_tui.traces.scan.library_cache import FIRST_PART, NEXT_PARTS
from mast_tui.ui.services.folder_scan import scan_paths
from mast_tui.ui.services.trace_catalog import Catalog, OneByOne
from mast_tui.ui.services.trace_scan import CachedTraces, FilesRead, ScanThread
from tests.ui.stage import SMALL, write_runs, write_trace


def scan(folder: Path) -> list[FilesRead | CachedTraces]:
    return list(scan_paths([folder], lambda: False, fail_on_reading))


def names(traces: object) -> list[str]:
    assert isinstance(traces, tuple | list)
    return [trace.path.stem for trace in traces]


def cached_names(messages: list[FilesRead | CachedTraces]) -> list[str]:
    return [name for m in messages if isinstance(m, CachedTraces) for name in names(m.traces)]


def scanned(messages: list[FilesRead | CachedTraces]) -> tuple[list[str], int, int]:
    reads = [message for message in messages if isinstance(message, FilesRead)]
    traces = [name for read in reads for report in read.reports for name in names(report.traces)]
    return sorted(traces), sum(len(read.gone) for read in reads), sum(read.same for read in reads)


def test_cached_traces_come_first_in_the_order_of_names(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_scan = scan(runs)
    assert (cached_names(first_scan), len(scanned(first_scan)[0])) == ([], 11)
    second = scan(runs)
    assert cached_names(second) == [f"run-{number}" for number in range(11)]
    assert scanned(second) == ([], 0, 11)
    monkeypatch.setattr("mast_tui.traces.scan.scanning.read_run", fail_on_reading)
    assert len(cached_names(scan(runs))) == 11


def test_new_changed_and_missing_files_are_reported(runs: Path) -> None:
    scan(runs)
    write_runs(runs, "run-3", "new")
    write_trace(runs / "run-4.json", SMALL[:3])
    (runs / "run-5.json").unlink()
    (runs / "run-6.json").write_text("{broken")
    messages = scan(runs)
    traces, gone, same = scanned(messages)
    assert (traces, gone, same) == (["new", "run-4"], 3, 8)
    assert sorted(cached_names(scan(runs))) == sorted(
        {f"run-{number}" for number in range(11)} - {"run-5", "run-6"} | {"new"}
    )


def test_cached_traces_come_first_and_in_parts(tmp_path: Path) -> None:
    many = [[{"role": "user", "content": str(number)}] for number in range(FIRST_PART + 5)]
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "many.jsonl").write_text("\n".join(json.dumps({"messages": m}) for m in many))
    scan(folder)
    sizes = [len(m.traces) for m in scan(folder) if isinstance(m, CachedTraces)]
    assert sizes == [FIRST_PART, 5]
    assert FIRST_PART < NEXT_PARTS


def fail_on_reading(*_: object, **__: object) -> FileReport:
    raise AssertionError("a file was read")


def test_a_stopped_scan_caches_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine a part would be told before.
    monkeypatch.setattr("mast_tui.ui.services.folder_scan.monotonic", lambda: 0.0)
    asked = iter([False, False, True])
    look = scan_paths([runs], lambda: next(asked, True), fail_on_reading)
    assert not any(isinstance(message, FilesRead) for message in look)
    assert cached_names(scan(runs)) == []


def documents() -> int:
    gc.collect()
    return sum(isinstance(instance, StepSpans) for instance in gc.get_objects())


def catalog_of(folder: Path) -> Catalog:
    catalog = Catalog()
    for message in scan(folder):
        if isinstance(message, FilesRead):
            for report in message.reports:
                catalog.add(report)
        else:
            catalog.add_traces(message.traces)
    return catalog


@pytest.mark.slow
def test_only_open_traces_keep_spans(runs: Path) -> None:
    # What other tests have left behind is not counted; looking it over takes many seconds.
    gc.freeze()
    previous = documents()
    catalog = catalog_of(runs)
    assert documents() == previous
    traces = list(catalog.traces.values())
    opened = catalog.opened(traces[0])
    assert len(opened) == len(SMALL)
    assert catalog.opened(traces[0]) is opened
    assert documents() == previous + 1
    for trace in traces:
        opened = catalog.opened(trace)
    assert documents() == previous + 1
    for trace in OneByOne(traces):
        trace.advance()
        assert len(trace) == len(SMALL)
    assert documents() <= previous + 2


def test_opening_reads_the_file_again(runs: Path) -> None:
    scan(runs)
    catalog = catalog_of(runs)
    write_trace(runs / "run-0.json", SMALL[:3])
    run_0 = next(trace for trace in catalog.traces.values() if trace.path.stem == "run-0")
    opened = catalog.opened(run_0)
    assert len(opened) == 3
    assert opened.identity.trace_id not in catalog.traces


def test_traces_of_one_file_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    chats = [[{"role": "user", "content": str(number)}] for number in range(4)]
    (folder / "many.jsonl").write_text("\n".join(json.dumps({"messages": chat}) for chat in chats))
    catalog = catalog_of(folder)
    read: list[Path] = []
    original = one_file.read_one

    def counted(path: Path, named: bool) -> FileReport:
        read.append(path)
        return original(path, named)

    monkeypatch.setattr(one_file, "read_one", counted)
    for trace in list(catalog.traces.values()):
        assert len(catalog.opened(trace)) == 1
    assert len(read) == 1


def test_an_error_of_a_scan_is_raised() -> None:
    def broken(stopped: Callable[[], bool]) -> Iterator[CachedTraces]:
        yield CachedTraces(())
        raise KeyError("broken")

    hooked = threading.excepthook
    threading.excepthook = lambda _: None
    try:
        looking = ScanThread(broken, lambda _: None)
        looking.go_on()
        with pytest.raises(KeyError, match="broken"):
            looking.has_ended.result(60)
    finally:
        threading.excepthook = hooked


def test_messages_of_a_scan_come_in_order() -> None:
    def three(stopped: Callable[[], bool]) -> Iterator[CachedTraces]:
        for _ in range(3):
            yield CachedTraces(())

    for asked in (False, True):
        posted: list[object] = []
        looking = ScanThread(three, posted.append)
        first = looking.first(60) if asked else None
        looking.go_on()
        looking.has_ended.result(60)
        assert len(posted) == (2 if asked else 3)
        assert not any(message is first for message in posted)


def test_problems_of_an_opened_trace_are_listed(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", "a")
    catalog = catalog_of(tmp_path / "runs")
    (trace,) = catalog.traces.values()
    seen = len(catalog.changes)
    catalog.learn()
    assert len(catalog.changes) == seen
    (tmp_path / "runs" / "a.json").unlink()
    assert len(catalog.opened(trace)) == 0
    catalog.learn()
    assert catalog.changes[seen:] == [trace.identity.trace_id]
    (updated,) = catalog.traces.values()
    assert updated.loaded.spans == 0
    assert "no such file" in updated.problems[0].message

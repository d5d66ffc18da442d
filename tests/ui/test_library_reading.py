"""Looking at many files: the last look first, then what is new, and no spans kept."""

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


def looks(folder: Path) -> list[FilesRead | CachedTraces]:
    return list(scan_paths([folder], lambda: False, forbidden))


def names(traces: object) -> list[str]:
    assert isinstance(traces, tuple | list)
    return [trace.path.stem for trace in traces]


def looked(messages: list[FilesRead | CachedTraces]) -> list[str]:
    """The traces of the last look, by name."""
    return [name for one in messages if isinstance(one, CachedTraces) for name in names(one.traces)]


def news(messages: list[FilesRead | CachedTraces]) -> tuple[list[str], int, int]:
    """What the walk told: the names of traces, how many are gone, how many files are as before."""
    walk = [one for one in messages if isinstance(one, FilesRead)]
    found = [name for one in walk for report in one.reports for name in names(report.traces)]
    return sorted(found), sum(len(one.gone) for one in walk), sum(one.same for one in walk)


def test_the_last_look_is_told_first_and_in_the_order_of_the_names(runs: Path) -> None:
    first = looks(runs)
    assert looked(first) == []
    assert len(news(first)[0]) == 11
    again = looks(runs)
    assert looked(again) == [f"run-{number}" for number in range(11)]
    assert news(again) == ([], 0, 11)


def test_the_walk_tells_only_what_has_come_changed_or_gone(runs: Path) -> None:
    looks(runs)
    write_runs(runs, "run-3", "new")
    write_trace(runs / "run-4.json", SMALL[:3])
    (runs / "run-5.json").unlink()
    (runs / "run-6.json").write_text("{broken")
    again = looks(runs)
    found, gone, same = news(again)
    assert found == ["new", "run-4"]
    assert gone == 3
    assert same == 8
    assert sorted(looked(looks(runs))) == sorted(
        {f"run-{number}" for number in range(11)} - {"run-5", "run-6"} | {"new"}
    )


def test_a_first_part_of_the_last_look_comes_before_the_rest_is_read(
    tmp_path: Path,
) -> None:
    many = [[{"role": "user", "content": str(number)}] for number in range(FIRST_PART + 5)]
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "many.jsonl").write_text("\n".join(json.dumps({"messages": one}) for one in many))
    looks(folder)
    again = [len(one.traces) for one in looks(folder) if isinstance(one, CachedTraces)]
    assert again == [FIRST_PART, 5]
    assert FIRST_PART < NEXT_PARTS


def test_nothing_is_read_when_a_known_folder_is_opened(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks(runs)
    monkeypatch.setattr("mast_tui.traces.scan.scanning.read_run", forbidden)
    assert len(looked(looks(runs))) == 11


def forbidden(*_: object, **__: object) -> FileReport:
    raise AssertionError("a file was read")


def test_a_look_that_is_told_to_stop_stops_and_keeps_no_half_of_it(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a part would be told before.
    monkeypatch.setattr("mast_tui.ui.services.folder_scan.monotonic", lambda: 0.0)
    asked = iter([False, False, True])
    look = scan_paths([runs], lambda: next(asked, True), forbidden)
    assert not any(isinstance(one, FilesRead) for one in look)
    assert looked(looks(runs)) == []


def documents() -> int:
    gc.collect()
    return sum(isinstance(one, StepSpans) for one in gc.get_objects())


def filled(folder: Path) -> Catalog:
    catalog = Catalog()
    for message in looks(folder):
        if isinstance(message, FilesRead):
            for report in message.reports:
                catalog.add(report)
        else:
            catalog.add_traces(message.traces)
    return catalog


@pytest.mark.slow
def test_only_traces_that_are_open_have_spans_in_memory(runs: Path) -> None:
    # What other tests have left behind is not counted; looking it over takes many seconds.
    gc.freeze()
    before = documents()
    catalog = filled(runs)
    assert documents() == before
    traces = list(catalog.traces.values())
    opened = catalog.opened(traces[0])
    assert len(opened) == len(SMALL)
    assert catalog.opened(traces[0]) is opened
    assert documents() == before + 1
    for trace in traces:
        opened = catalog.opened(trace)
    assert documents() == before + 1
    for trace in OneByOne(traces):
        trace.advance()
        assert len(trace) == len(SMALL)
    assert documents() <= before + 2


def test_what_a_file_holds_now_is_what_opening_its_trace_shows(runs: Path) -> None:
    looks(runs)
    catalog = filled(runs)
    write_trace(runs / "run-0.json", SMALL[:3])
    trace = next(one for one in catalog.traces.values() if one.path.stem == "run-0")
    opened = catalog.opened(trace)
    assert len(opened) == 3
    assert opened.identity.trace_id not in catalog.traces


def test_traces_of_one_file_that_are_open_together_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    chats = [[{"role": "user", "content": str(number)}] for number in range(4)]
    (folder / "many.jsonl").write_text("\n".join(json.dumps({"messages": one}) for one in chats))
    catalog = filled(folder)
    read: list[Path] = []
    original = one_file.read_one

    def counted(path: Path, named: bool) -> FileReport:
        read.append(path)
        return original(path, named)

    monkeypatch.setattr(one_file, "read_one", counted)
    for trace in list(catalog.traces.values()):
        assert len(catalog.opened(trace)) == 1
    assert len(read) == 1


def test_a_look_that_breaks_is_not_silent() -> None:
    def broken(stopped: Callable[[], bool]) -> Iterator[CachedTraces]:
        yield CachedTraces(())
        raise KeyError("broken")

    hooked = threading.excepthook
    threading.excepthook = lambda _: None
    try:
        looking = ScanThread(broken, lambda _: None)
        looking.go_on()
        with pytest.raises(KeyError, match="broken"):
            looking.over.result(60)
    finally:
        threading.excepthook = hooked


def test_messages_of_a_look_come_in_order_whether_the_first_was_asked_for_or_not() -> None:
    def three(stopped: Callable[[], bool]) -> Iterator[CachedTraces]:
        for _ in range(3):
            yield CachedTraces(())

    for asked in (False, True):
        posted: list[object] = []
        looking = ScanThread(three, posted.append)
        first = looking.first(60) if asked else None
        looking.go_on()
        looking.over.result(60)
        assert len(posted) == (2 if asked else 3)
        assert not any(one is first for one in posted)


def test_what_reading_has_told_of_a_trace_is_listed_when_it_is_left(
    tmp_path: Path,
) -> None:
    write_runs(tmp_path / "runs", "a")
    catalog = filled(tmp_path / "runs")
    (trace,) = catalog.traces.values()
    seen = len(catalog.changes)
    catalog.learn()
    assert len(catalog.changes) == seen
    (tmp_path / "runs" / "a.json").unlink()
    assert len(catalog.opened(trace)) == 0
    catalog.learn()
    assert catalog.changes[seen:] == [trace.identity.trace_id]
    (known,) = catalog.traces.values()
    assert known.loaded.spans == 0
    assert "no such file" in known.problems[0].message

"""Caches of traces: permissions, and damage."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.traces.index.store import END_BYTES
from mast_tui.traces.library import read_fully, scan
from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.scan.big_documents import BigDocuments
from mast_tui.traces.scan.document_cache import DocumentCache
from mast_tui.traces.scan.file_reader import read_one
from mast_tui.traces.scan.library_cache import LibraryCache
from mast_tui.traces.scan.scanning import Scan
from tests.traces.checks import write_json
from tests.traces.compared_reports import check_same_report
from tests.traces.rollouts import message, meta, write

pytestmark = pytest.mark.slow

CHAT = {"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "ok"}]}


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def any_umask(request: pytest.FixtureRequest) -> Iterator[None]:
    previous = os.umask(request.param)
    yield
    os.umask(previous)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a folder with a rollout and a chat."""
    folder = tmp_path / "traces"
    folder.mkdir()
    write(folder, meta("s1"), message("user", "one"), message("assistant", "two"), name="a.jsonl")
    write_json(folder / "chat.json", CHAT)
    return folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def read_folder(folder: Path, library: LibraryCache) -> list[FileReport]:
    """Read the cached traces of a folder and then all its files, like the app."""
    for traces in library.cached_traces([folder]):
        for trace in traces:
            use_trace(trace)
    reports = list(Scan([folder], library=library, keep_spans=False))
    for report in reports:
        for trace in report.traces:
            use_trace(trace)
    library.keep_traces([folder], [(trace, ()) for report in reports for trace in report.traces])
    return reports


def use_trace(trace: Trace) -> None:
    """Read all parts of a trace that the screens show."""
    summary = trace.summary
    texts = (summary.task, summary.system, summary.model, summary.benchmark, str(trace.path))
    assert "".join(text or "" for text in texts).isprintable()
    assert 0 <= trace.loaded.done <= trace.loaded.total + 1
    assert trace.identity.trace_id + trace.identity.reader
    assert (trace.meta.score or 0) + trace.loaded.spans >= 0
    assert all(problem.place + problem.message for problem in trace.problems)
    read_fully(trace)
    for index in range(len(trace)):
        span = trace.span(index)
        assert (span.preview + span.key + span.agent + (span.name or "")).isascii() in (True, False)
        assert trace.text(index) is not None


def report_facts(reports: list[FileReport]) -> list[object]:
    return [
        (report.path, report.format, report.skipped, *(trace.summary for trace in report.traces))
        for report in reports
    ]


# Permissions


@pytest.mark.usefixtures("any_umask")
def test_the_library_cache_is_private(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "cache" / "mast-tui" / "library.db"
    with LibraryCache(path) as library:
        read_folder(folder, library)
        database = library._database
        assert database is not None
        database.execute("BEGIN IMMEDIATE")
        database.execute("DELETE FROM files")
        names = sorted(file.name for file in path.parent.iterdir())
        assert names == ["library.db", "library.db-journal"]
        assert {mode(file) for file in path.parent.iterdir()} == {0o600}
        database.rollback()
    assert mode(path.parent) == mode(path.parent.parent) == 0o700


def test_permissions_of_an_older_version_are_corrected(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "mast-tui"
    with LibraryCache(cache / "library.db") as library:
        read_folder(folder, library)
    (cache / "documents").mkdir()
    (cache / "documents" / "a.spans").write_text("text")
    (cache / "outside").symlink_to(folder)
    for path, old_mode in ((cache, 0o755), (cache / "documents", 0o755)):
        path.chmod(old_mode)
    for path in (cache / "library.db", cache / "documents" / "a.spans"):
        path.chmod(0o644)
    folder_mode = mode(folder)
    with LibraryCache(cache / "library.db") as library:
        assert [len(traces) for traces in library.cached_traces([folder])] == [2]
    assert (mode(cache), mode(cache / "documents")) == (0o700, 0o700)
    assert (mode(cache / "library.db"), mode(cache / "documents" / "a.spans")) == (0o600, 0o600)
    assert mode(folder) == folder_mode


@pytest.mark.usefixtures("any_umask")
def test_a_cached_document_is_private(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    report = read_one(folder / "chat.json", True, BigDocuments(0, cache / "documents"))
    assert len(report.traces) == 1
    assert mode(cache / "documents") == 0o700
    assert [mode(path) for path in (cache / "documents").iterdir()] == [0o600]


def test_a_library_cache_that_is_no_file_is_not_used(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "library.db")
    with LibraryCache(tmp_path / "library.db") as library:
        assert len(read_folder(folder, library)) == 2


# Damage

Damage = Callable[[sqlite3.Connection], object]
VALUE_COLUMNS = {"files": ("value", "path"), "looks": ("traces", "part")}
"""The column of cached values and the key column of each table."""


def statement(sql: str, *values: object) -> Damage:
    return lambda connection: connection.execute(sql, values)


def flip_in_table(table: str, position: int) -> Damage:
    """Return a function that flips a bit of every value in a table."""
    column, key = VALUE_COLUMNS[table]

    def damage(connection: sqlite3.Connection) -> None:
        for row, value in connection.execute(f"SELECT {key}, {column} FROM {table}").fetchall():
            changed = bytearray(value)
            changed[position % len(changed)] ^= 0x10
            connection.execute(
                f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (bytes(changed), row)
            )

    return damage


def library_damages() -> Iterator[Damage]:
    for table, (column, key) in VALUE_COLUMNS.items():
        yield from (flip_in_table(table, position) for position in (0, 3, 4, 20, -2))
        for value in (b"", b"null", b"\0\0\0\0", b"[" * 100, 7, "text"):
            yield statement(f"UPDATE {table} SET {column} = ?", value)
        yield statement(f"DROP TABLE {table}")
        yield statement(
            f"CREATE TRIGGER t BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        yield statement(f"UPDATE {table} SET {key} = {key} || CAST(x'ff' AS TEXT)")
    yield statement("UPDATE files SET stamp = 5")
    yield statement("UPDATE files SET fact = CAST(x'ff' AS TEXT) WHERE fact = 'report'")


@pytest.mark.parametrize("damage", library_damages())
def test_a_damaged_library_cache_is_read_without_loss(
    damage: Damage, folder: Path, tmp_path: Path
) -> None:
    expected = report_facts(list(scan([folder])))
    database = tmp_path / "library.db"
    with LibraryCache(database) as library:
        read_folder(folder, library)
    with closing(sqlite3.connect(database)) as connection, connection:
        damage(connection)
    for _ in range(2):  # the first scan repairs the cache
        with LibraryCache(database) as library:
            assert report_facts(read_folder(folder, library)) == expected


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"SQLite format 3\0" + b"\xff" * 4096, b"\0" * 100_000],
    ids=["empty", "short", "header", "zeros"],
)
def test_a_library_cache_that_is_no_database_is_replaced(
    content: bytes, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "library.db").write_bytes(content)
    with LibraryCache(tmp_path / "library.db") as library:
        assert len(read_folder(folder, library)) == 2


def flip_in_document(position: int) -> Callable[[bytes], bytes]:
    """Return a function that changes a byte after the texts, at a position that may be negative."""

    def damage(data: bytes) -> bytes:
        metadata = json.loads(data[int(data[-END_BYTES:][:20]) : -END_BYTES])
        first = metadata["traces"][0]["columns"][0]
        changed = bytearray(data)
        changed[first + position % (len(data) - first)] ^= 0x55
        return bytes(changed)

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-END_BYTES] + b"9" * 20 + data[-END_BYTES + 20 :],
        lambda data: data[:-END_BYTES] + b"0" * 20 + data[-END_BYTES + 20 :],
        lambda data: b"x" * len(data),
        lambda data: data[: len(data) // 2] + data[len(data) // 2 + 1 :],
        *map(flip_in_document, (0, 1, 4, 12, 16, 20, 60, 300, -400, -60, -30, -20, -1)),
    ],
)
def test_a_damaged_document_is_read_again(
    damage: Callable[[bytes], bytes], folder: Path, tmp_path: Path
) -> None:
    path = folder / "chat.json"
    big = BigDocuments(0, tmp_path / "kept")
    expected = read_one(path, named=True)
    check_same_report(read_one(path, True, big), expected)
    cache_file = DocumentCache(tmp_path / "kept").path_of(path)
    cache_file.write_bytes(damage(cache_file.read_bytes()))
    reopened = DocumentCache(tmp_path / "kept").open(path)
    if reopened is not None and reopened.report is not None:  # found when spans are read
        trace = reopened.report.traces[0]
        read_fully(trace)
        assert trace.problems
        use_trace(trace)
        assert not cache_file.exists()


@pytest.mark.parametrize("line", [b"x", b'{"preview":"go","whole":true,"text":5}', b"[" * 40])
def test_a_damaged_text_of_a_cached_document_is_an_error(
    line: bytes, folder: Path, tmp_path: Path
) -> None:
    path = folder / "chat.json"
    read_one(path, True, BigDocuments(0, tmp_path / "kept"))
    documents = DocumentCache(tmp_path / "kept")
    cache_file = documents.path_of(path)
    data = cache_file.read_bytes()
    length = data.index(b"\n")
    cache_file.write_bytes(line.ljust(length)[:length] + data[length:])
    reopened = documents.open(path)
    assert reopened is not None
    assert reopened.report is not None
    trace = reopened.report.traces[0]
    if b'"text":"go"' in line:
        assert "damaged" in trace.span(0).preview
    else:
        with pytest.raises(OSError, match="damaged"):
            trace.text(0)
        assert not cache_file.exists()
    assert trace.text(1) == "ok"

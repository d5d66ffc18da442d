"""What is kept of traces is its owner's alone, and what is damaged in it is read anew."""

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
from mast_tui.traces.library import read_again, read_fully, scan
from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.scan.big_documents import BigDocuments
from mast_tui.traces.scan.document_cache import DocumentCache
from mast_tui.traces.scan.file_reader import read_one
from mast_tui.traces.scan.library_cache import LibraryCache
from mast_tui.traces.scan.scanning import Scan
from tests.traces.checks import write_json
from tests.traces.rollouts import message, meta, write
from tests.traces.same import check_same_report

pytestmark = pytest.mark.slow

CHAT = {"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "ok"}]}


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def any_umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a rollout and a chat."""
    folder = tmp_path / "traces"
    folder.mkdir()
    write(folder, meta("s1"), message("user", "one"), message("assistant", "two"), name="a.jsonl")
    write_json(folder / "chat.json", CHAT)
    return folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def walk(folder: Path, library: LibraryCache) -> list[FileReport]:
    """What the app does with a folder: what the last look told, and then all files."""
    for traces in library.cached_traces([folder], read_again):
        for trace in traces:
            used(trace)
    reports = list(Scan([folder], library=library, keep_spans=False))
    for report in reports:
        for trace in report.traces:
            used(trace)
    library.keep_traces([folder], [(trace, ()) for one in reports for trace in one.traces])
    return reports


def used(trace: Trace) -> None:
    """Ask a trace for all that the screens show of it."""
    known = trace.summary
    texts = (known.task, known.system, known.model, known.benchmark, str(trace.path))
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


def facts(reports: list[FileReport]) -> list[object]:
    return [
        (one.path, one.format, one.skipped, *(trace.summary for trace in one.traces))
        for one in reports
    ]


# Who may read them


@pytest.mark.usefixtures("any_umask")
def test_the_library_is_its_owners_alone(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache" / "mast-tui" / "library.db"
    with LibraryCache(place) as library:
        walk(folder, library)
        database = library._database
        assert database is not None
        database.execute("BEGIN IMMEDIATE")
        database.execute("DELETE FROM files")
        beside = sorted(path.name for path in place.parent.iterdir())
        assert beside == ["library.db", "library.db-journal"]
        assert {mode(path) for path in place.parent.iterdir()} == {0o600}
        database.rollback()
    assert mode(place.parent) == mode(place.parent.parent) == 0o700


def test_what_an_older_version_left_open_is_closed(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "mast-tui"
    with LibraryCache(cache / "library.db") as library:
        walk(folder, library)
    (cache / "documents").mkdir()
    (cache / "documents" / "a.spans").write_text("text")
    (cache / "outside").symlink_to(folder)
    for path, loose in ((cache, 0o755), (cache / "documents", 0o755)):
        path.chmod(loose)
    for path in (cache / "library.db", cache / "documents" / "a.spans"):
        path.chmod(0o644)
    before = mode(folder)
    with LibraryCache(cache / "library.db") as library:
        assert [len(traces) for traces in library.cached_traces([folder], read_again)] == [2]
    assert (mode(cache), mode(cache / "documents")) == (0o700, 0o700)
    assert (mode(cache / "library.db"), mode(cache / "documents" / "a.spans")) == (0o600, 0o600)
    assert mode(folder) == before


@pytest.mark.usefixtures("any_umask")
def test_a_document_is_kept_for_its_owner_alone(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    report = read_one(folder / "chat.json", True, BigDocuments(0, cache / "documents"))
    assert len(report.traces) == 1
    assert mode(cache / "documents") == 0o700
    assert [mode(path) for path in (cache / "documents").iterdir()] == [0o600]


def test_what_is_no_file_in_place_of_the_library_is_done_without(
    folder: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "library.db")
    with LibraryCache(tmp_path / "library.db") as library:
        assert len(walk(folder, library)) == 2


# What is damaged in them

Damage = Callable[[sqlite3.Connection], object]
VALUES = {"files": ("value", "path"), "looks": ("traces", "part")}
"""Where facts stand, and by what their rows are known."""


def statement(sql: str, *values: object) -> Damage:
    return lambda raw: raw.execute(sql, values)


def flipped(table: str, place: int) -> Damage:
    """One bit of every fact of a table is another."""
    column, key = VALUES[table]

    def damage(raw: sqlite3.Connection) -> None:
        for row, value in raw.execute(f"SELECT {key}, {column} FROM {table}").fetchall():
            changed = bytearray(value)
            changed[place % len(changed)] ^= 0x10
            raw.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (bytes(changed), row))

    return damage


def damages() -> Iterator[Damage]:
    for table, (column, key) in VALUES.items():
        yield from (flipped(table, place) for place in (0, 3, 4, 20, -2))
        for value in (b"", b"null", b"\0\0\0\0", b"[" * 100, 7, "text"):
            yield statement(f"UPDATE {table} SET {column} = ?", value)
        yield statement(f"DROP TABLE {table}")
        yield statement(
            f"CREATE TRIGGER t BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        yield statement(f"UPDATE {table} SET {key} = {key} || CAST(x'ff' AS TEXT)")
    yield statement("UPDATE files SET stamp = 5")
    yield statement("UPDATE files SET fact = CAST(x'ff' AS TEXT) WHERE fact = 'report'")


@pytest.mark.parametrize("damage", damages())
def test_a_damaged_library_costs_nothing_but_time(
    damage: Damage, folder: Path, tmp_path: Path
) -> None:
    known = facts(list(scan([folder])))
    place = tmp_path / "library.db"
    with LibraryCache(place) as library:
        walk(folder, library)
    with closing(sqlite3.connect(place)) as raw, raw:
        damage(raw)
    for _ in range(2):  # what was damaged is whole again
        with LibraryCache(place) as library:
            assert facts(walk(folder, library)) == known


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"SQLite format 3\0" + b"\xff" * 4096, b"\0" * 100_000],
    ids=["empty", "short", "header", "zeros"],
)
def test_a_library_that_is_no_database_is_begun_anew(
    content: bytes, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "library.db").write_bytes(content)
    with LibraryCache(tmp_path / "library.db") as library:
        assert len(walk(folder, library)) == 2


def flip(place: int) -> Callable[[bytes], bytes]:
    """A change of one byte of what stands behind the texts; negative places count from its end."""

    def damage(data: bytes) -> bytes:
        first = json.loads(data[int(data[-END_BYTES:][:20]) : -END_BYTES])["traces"][0]["rows"][0]
        changed = bytearray(data)
        changed[first + place % (len(data) - first)] ^= 0x55
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
        *map(flip, (0, 1, 4, 12, 16, 20, 60, 300, -400, -60, -30, -20, -1)),
    ],
)
def test_a_damaged_document_is_read_anew(
    damage: Callable[[bytes], bytes], folder: Path, tmp_path: Path
) -> None:
    path = folder / "chat.json"
    big = BigDocuments(0, tmp_path / "kept")
    known = read_one(path, named=True)
    check_same_report(read_one(path, True, big), known)
    place = DocumentCache(tmp_path / "kept").path_of(path)
    place.write_bytes(damage(place.read_bytes()))
    kept = DocumentCache(tmp_path / "kept").open(path)
    if kept is not None and kept.report is not None:  # found out only where it is looked at
        trace = kept.report.traces[0]
        read_fully(trace)
        assert trace.problems
        used(trace)
        assert not place.exists()


@pytest.mark.parametrize(
    "line",
    [
        b"x",
        b'{"preview":"go","whole":true,"text":5}',
        b"[" * 40,
    ],
)
def test_a_damaged_text_of_a_kept_document_is_told(
    line: bytes, folder: Path, tmp_path: Path
) -> None:
    path = folder / "chat.json"
    read_one(path, True, BigDocuments(0, tmp_path / "kept"))
    documents = DocumentCache(tmp_path / "kept")
    place = documents.path_of(path)
    data = place.read_bytes()
    length = data.index(b"\n")
    place.write_bytes(line.ljust(length)[:length] + data[length:])
    kept = documents.open(path)
    assert kept is not None
    assert kept.report is not None
    trace = kept.report.traces[0]
    if b'"text":"go"' in line:
        assert "damaged" in trace.span(0).preview
    else:
        with pytest.raises(OSError, match="damaged"):
            trace.text(0)
        assert not place.exists()
    assert trace.text(1) == "ok"

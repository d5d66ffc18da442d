"""What is kept of traces is its owner's alone, and what is damaged in it is read anew."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

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
    for traces in library.last_look([folder], read_again):
        for trace in traces:
            used(trace)
    reports = list(Scan([folder], library=library, keep_spans=False))
    for report in reports:
        for trace in report.traces:
            used(trace)
    library.keep_look([folder], [(trace, ()) for one in reports for trace in one.traces])
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
def test_the_shelf_is_its_owners_alone(folder: Path, tmp_path: Path) -> None:
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
        assert [len(traces) for traces in library.last_look([folder], read_again)] == [2]
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


def test_what_is_no_file_in_place_of_the_shelf_is_done_without(
    folder: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "library.db")
    with LibraryCache(tmp_path / "library.db") as library:
        assert len(walk(folder, library)) == 2


# What is damaged in them

NO_COUNTS: tuple[object, ...] = (-1, 1.5, "3", None, True, [1], {}, 10**15 * -1)
NO_TEXTS: tuple[object, ...] = (5, True, [], {}, 1.5, ["a"])
FACTS = {
    "trace_id": (0, (*NO_TEXTS, None)),
    "content_hash": (1, (*NO_TEXTS, None)),
    "content_bytes": (2, NO_COUNTS),
    "reader": (3, (*NO_TEXTS, None)),
    "key_scheme": (4, NO_COUNTS),
    "native": (5, (0, "yes", None, [])),
    "task": (6, NO_TEXTS),
    "system": (7, NO_TEXTS),
    "model": (8, NO_TEXTS),
    "benchmark": (9, NO_TEXTS),
    "outcome": (10, ("won", 1, None, True, [])),
    "score": (11, ("1", True, [], 1e308, -0.5)),
    "spans": (12, NO_COUNTS),
    "all_spans": (13, (0, "yes", None, [])),
    "total": (14, NO_COUNTS),
    "problems": (15, (5, "ab", [[1, 2]], [["a"]], [["a", "b", "c"]], {"a": "b"}, None, True)),
}
REPORT = {
    "format": (0, (*NO_TEXTS, None)),
    "skipped": (1, (5, True, "why")),
    "problems": (2, (5, [[1, 2]], [["a"]], None, {"a": 1})),
    "thread": (3, (5, "ab", ["a"], [1, None], ["a", 2], {}, True)),
    "traces": (4, (5, [[0]], [["x", []]], None, {}, True, [[-1, []]])),
}
LOOK = {
    "path": (0, (5, None, True, [], "", "a\0b")),
    "record": (1, ("x", -1, 1.5, True, [])),
    "members": (2, (5, None, [5], ["a\0b"], "ab", {"a": 1})),
}
WHOLE = (b"", b"null", b"5", b"[]", b"{}", b'"x"', b"[[]]", b"\xff\x00", b"[" * 100_000, 7, "text")

Damage = Callable[[sqlite3.Connection], object]


def rewrite(table: str, column: str, change: Callable[[Any], None]) -> Damage:
    """Change the values in a column of JSON."""

    def damage(raw: sqlite3.Connection) -> None:
        for rowid, data in raw.execute(f"SELECT {KEYS[table]}, {column} FROM {table}").fetchall():
            value = json.loads(data)
            change(value)
            row = (json.dumps(value).encode(), rowid)
            raw.execute(f"UPDATE {table} SET {column} = ? WHERE {KEYS[table]} = ?", row)

    return damage


KEYS = {"files": "path", "looks": "part", "threads": "path"}


def put(place: int, value: object) -> Callable[[Any], None]:
    return lambda values: values.__setitem__(place, value)


def in_traces(place: int, value: object) -> Callable[[Any], None]:
    """A change of the facts of each trace of a report, or of a look."""

    def change(values: Any) -> None:
        for one in values[4] if len(values) == 5 and isinstance(values[1], str | None) else values:
            one[-1][place] = value

    return change


def in_look(place: int, value: object) -> Callable[[Any], None]:
    def change(values: Any) -> None:
        for one in values:
            one[place] = value

    return change


def statement(sql: str, *values: object) -> Damage:
    return lambda raw: raw.execute(sql, values)


def damages() -> Iterator[tuple[str, Damage]]:
    for name, (place, values) in FACTS.items():
        for value in values:
            change = in_traces(place, value)
            yield f"report {name} {value!r}", rewrite("files", "report", change)
            yield f"look {name} {value!r}", rewrite("looks", "traces", change)
    for name, (place, values) in REPORT.items():
        for value in values:
            yield f"report {name} {value!r}", rewrite("files", "report", put(place, value))
    for name, (place, values) in LOOK.items():
        for value in values:
            yield f"look {name} {value!r}", rewrite("looks", "traces", in_look(place, value))
    for whole in WHOLE:
        for table, column in (("files", "report"), ("files", "stamp"), ("looks", "traces")):
            sql = f"UPDATE {table} SET {column} = ?"
            yield f"{table}.{column} {whole!r:.20}", statement(sql, whole)
    for own, parent in ((5, None), (b"\xff", None), ("a", 5), (None, "a"), ("a", b"x"), (1.5, 2)):
        sql = "UPDATE threads SET id = ?, parent = ?"
        yield f"thread {own!r} {parent!r}", statement(sql, own, parent)
    for table in KEYS:
        yield f"no {table}", statement(f"DROP TABLE {table}")
        view = f"CREATE TRIGGER t BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END"
        yield f"trigger on {table}", statement(view)
        odd = f"UPDATE {table} SET {KEYS[table]} = {KEYS[table]} || CAST(x'ff' AS TEXT)"
        yield f"bytes in {table}", statement(odd)


def kind_of(name: str) -> str:
    return " ".join(name.split()[:2])


KINDS = sorted({kind_of(name) for name, _damage in damages()})


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_shelf_costs_nothing_but_time(kind: str, folder: Path, tmp_path: Path) -> None:
    known = facts(list(scan([folder])))
    place = tmp_path / "library.db"
    for name, damage in damages():
        if kind_of(name) != kind:
            continue
        with LibraryCache(place) as library:
            walk(folder, library)
        with closing(sqlite3.connect(place)) as raw, raw:
            damage(raw)
        with LibraryCache(place) as library:
            assert facts(walk(folder, library)) == known, name
        with LibraryCache(place) as library:  # what was damaged is whole again
            assert facts(walk(folder, library)) == known, name
        place.unlink()


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"SQLite format 3\0" + b"\xff" * 4096, b"\0" * 100_000],
    ids=["empty", "short", "header", "zeros"],
)
def test_a_shelf_that_is_no_database_is_begun_anew(
    content: bytes, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "library.db").write_bytes(content)
    with LibraryCache(tmp_path / "library.db") as library:
        assert len(walk(folder, library)) == 2


def with_known(spans: bytes, known: Any) -> bytes:
    """A kept document of these spans, and what is known of them."""
    return spans + json.dumps(known).encode() + b"%020d end of mast-tui spans\n" % len(spans)


def parts_of(data: bytes) -> tuple[bytes, Any]:
    """The spans of a kept document, and what is known of them."""
    begin = int(data[-END_BYTES:][:20])
    return data[:begin], json.loads(data[begin:-END_BYTES])


def change_known(change: Callable[[Any], object]) -> Callable[[bytes], bytes]:
    """A change of what stands behind the spans of a kept document."""

    def damage(data: bytes) -> bytes:
        spans, known = parts_of(data)
        change(known)
        return with_known(spans, known)

    return damage


def in_head(*names: str, value: object) -> Callable[[bytes], bytes]:
    def change(known: Any) -> None:
        inner = known["traces"][0]
        for name in names[:-1]:
            inner = inner[name]
        inner[names[-1]] = value

    return change_known(change)


def in_rows(place: int) -> Callable[[bytes], bytes]:
    """A change of one byte of the columns; negative places count from their end."""

    def damage(data: bytes) -> bytes:
        first, length = parts_of(data)[1]["traces"][0]["rows"]
        changed = bytearray(data)
        changed[first + place % length] ^= 0x55
        return bytes(changed)

    return damage


def each(*values: object) -> tuple[object, ...]:
    """These values, whatever they are."""
    return values


KEPT: dict[str, list[Callable[[bytes], bytes]]] = {
    "end": [
        lambda data: b"",
        lambda data: data[:-END_BYTES] + b"9" * 20 + data[-END_BYTES + 20 :],
        lambda data: data[:-END_BYTES] + b"0" * 20 + data[-END_BYTES + 20 :],
        lambda data: b"x" * len(data),
    ],
    "known": [
        change_known(lambda known: known.pop("report")),
        change_known(lambda known: known.pop("traces")),
        change_known(lambda known: known.__setitem__("traces", 5)),
        change_known(lambda known: known.__setitem__("traces", [5])),
        change_known(lambda known: known.__setitem__("report", [])),
        change_known(lambda known: known["report"].__setitem__("format", 5)),
        change_known(lambda known: known["report"].__setitem__("problems", [[5, 6]])),
        change_known(lambda known: known["report"].__setitem__("thread", "abc")),
        change_known(lambda known: known["report"].__setitem__("skipped", [])),
    ],
    "head": [
        *(in_head("identity", "trace_id", value=value) for value in (*NO_TEXTS, None)),
        *(in_head("identity", "content_bytes", value=value) for value in NO_COUNTS),
        *(in_head("identity", value=value) for value in NO_TEXTS),
        *(in_head("meta", "task", value=value) for value in NO_TEXTS),
        *(in_head("meta", "answer_key", value=value) for value in each(5, [[1, 2]], {})),
        *(in_head("meta", "answer_key", "tests", value=value) for value in each(5, [[1, 2]])),
        *(in_head("meta", "outcome", value=value) for value in each("won", None, 5)),
        *(in_head("spawned", value=value) for value in each(5, {"a": 5}, [])),
        *(
            in_head("rows", value=value)
            for value in each(5, [0], [0, -1], [-1, 5], [0, 10**9], ["a", 1])
        ),
        *(in_head("texts", value=value) for value in each(5, [0], [0, -1], [0, 10**30], [0.5, 1])),
        *(in_head("record", value=value) for value in each("a", -1, 1.5)),
        *(in_head("spans", value=value) for value in NO_COUNTS),
        *(in_head("total", value=value) for value in NO_COUNTS),
    ],
    "row": [in_rows(place) for place in (0, 1, 4, 12, 16, 20, 60, 300, -400, -60, -9, -1)],
}


@pytest.mark.parametrize("kind", KEPT)
def test_a_damaged_document_is_read_anew(kind: str, folder: Path, tmp_path: Path) -> None:
    path = folder / "chat.json"
    big = BigDocuments(0, tmp_path / "kept")
    known = read_one(path, named=True)
    check_same_report(read_one(path, True, big), known)
    place = DocumentCache(tmp_path / "kept").place_of(path)
    whole = place.read_bytes()
    for number, damage in enumerate(KEPT[kind]):
        place.write_bytes(damage(whole))
        kept = DocumentCache(tmp_path / "kept").open(path)
        if kept is not None and kept.report is not None:  # found out only where it is looked at
            trace = kept.report.traces[0]
            read_fully(trace)
            assert trace.problems, number
            used(trace)
        if place.exists():
            assert kind == "end", number
            assert kept is None, number


@pytest.mark.parametrize(
    "line",
    [
        b"x",
        b'{"preview":"go","whole":true,"text":5}',
        b'{"preview":5,"whole":"x","text":"go"}',
        b"[" * 40,
    ],
)
def test_a_damaged_text_of_a_kept_document_is_told(
    line: bytes, folder: Path, tmp_path: Path
) -> None:
    path = folder / "chat.json"
    read_one(path, True, BigDocuments(0, tmp_path / "kept"))
    documents = DocumentCache(tmp_path / "kept")
    place = documents.place_of(path)
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

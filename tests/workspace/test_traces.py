"""A trace is known again by what it is, not by where it lies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace import TraceRecord, Workspace, WorkspaceError
from tests.workspace.build import TRACE, trace_of


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as opened:
        yield opened


def log(path: Path, content: bytes, *, native: bool = False, seen: int = 64 * 1024) -> TraceRecord:
    """The record of a line-based file with this content; its id rests on the head."""
    path.write_bytes(content)
    head = content[:seen]
    digest = hashlib.sha256(head).hexdigest()
    identity = TraceIdentity(
        trace_id="session-9" if native else f"{path.stem}-{digest[:8]}",
        content_hash=digest,
        content_bytes=len(head),
        reader="text",
        key_scheme=1,
        native=native,
    )
    return TraceRecord(identity.trace_id, identity, path, spans=content.count(b"\n"))


def test_a_trace_comes_back_with_all_that_was_said_of_it(workspace: Workspace) -> None:
    record = TraceRecord.from_trace(trace_of("one", "two"))
    assert workspace.register_trace(record) == TRACE
    assert workspace.traces() == (record,)
    assert workspace.trace(TRACE) == record
    assert (record.spans, record.model, record.outcome) == (2, "m-1", Outcome.FAILED)
    with pytest.raises(WorkspaceError, match="'other'"):
        workspace.trace("other")


def test_the_same_content_elsewhere_is_the_same_trace(workspace: Workspace) -> None:
    record = TraceRecord.from_trace(trace_of("one"))
    workspace.register_trace(record)
    moved = replace(record, path=Path("elsewhere.json"), task="fix it")
    assert workspace.register_trace(moved) == TRACE
    assert workspace.traces() == (moved,)


def test_what_is_not_known_any_more_is_not_forgotten(workspace: Workspace) -> None:
    record = TraceRecord.from_trace(trace_of("one"))
    workspace.register_trace(record)
    bare = TraceRecord(TRACE, record.identity)
    assert workspace.register_trace(bare) == TRACE
    assert workspace.traces() == (record,)


def test_the_same_id_with_other_content_is_another_trace(workspace: Workspace) -> None:
    texts = ("one", "two", "three")
    records = [TraceRecord.from_trace(trace_of(text)) for text in texts]
    assert [workspace.register_trace(r) for r in records] == [TRACE, f"{TRACE}~2", f"{TRACE}~3"]
    assert [workspace.register_trace(r) for r in records] == [TRACE, f"{TRACE}~2", f"{TRACE}~3"]
    assert len(workspace.traces()) == 3


def test_looking_for_a_trace_keeps_nothing(workspace: Workspace) -> None:
    record = TraceRecord.from_trace(trace_of("one"))
    assert workspace.find_trace(record) is None
    assert workspace.traces() == ()
    workspace.register_trace(record)
    assert workspace.find_trace(record) == record


def test_labels_can_name_a_trace_before_its_file_is_there(workspace: Workspace) -> None:
    assert workspace.register_trace(TraceRecord(TRACE, model="m-0")) == TRACE
    record = TraceRecord.from_trace(trace_of("one"))
    assert workspace.register_trace(record) == TRACE
    assert workspace.traces() == (record,)
    assert workspace.register_trace(TraceRecord(TRACE)) == TRACE


@pytest.mark.parametrize("native", [True, False])
def test_a_file_that_has_grown_is_the_same_trace(
    workspace: Workspace, tmp_path: Path, native: bool
) -> None:
    path = tmp_path / "run-a.log"
    first = log(path, b"one\n", native=native)
    name = workspace.register_trace(first)
    for content in (b"one\ntwo\n", b"one\ntwo\nthree\n"):
        grown = log(path, content, native=native)
        found = workspace.find_trace(grown)
        assert found is not None
        assert found.trace_id == name
        assert workspace.register_trace(grown) == name
    (kept,) = workspace.traces()
    assert kept.identity == first.identity
    assert kept.spans == 3


def test_a_file_that_was_changed_is_another_trace(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "run-a.log"
    name = workspace.register_trace(log(path, b"one\n", native=True))
    assert workspace.register_trace(log(path, b"ONE\ntwo\n", native=True)) == f"{name}~2"


def test_a_longer_file_of_another_name_is_another_trace(
    workspace: Workspace, tmp_path: Path
) -> None:
    first = log(tmp_path / "run.log", b"one\n")
    second = log(tmp_path / "run-a.log", b"one\ntwo\n")
    assert workspace.register_trace(first) != workspace.register_trace(second)


def test_beyond_its_head_a_file_may_grow_as_it_likes(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    first = log(path, b"line\n" * 20_000)
    second = log(path, b"line\n" * 20_000 + b"more\n")
    assert workspace.register_trace(first) == workspace.register_trace(second)
    assert len(workspace.traces()) == 1


def test_many_traces_are_kept_as_one_by_one(workspace: Workspace, tmp_path: Path) -> None:
    seen = log(tmp_path / "run.txt", b"one\n")
    workspace.register_trace(TraceRecord("known"))
    workspace.register_trace(seen)
    told = TraceRecord("known", outcome=Outcome.FAILED)
    of_seen = TraceRecord(seen.trace_id, system="s")
    whole = log(tmp_path / "other.txt", b"two\n")
    first, again = TraceRecord("new", model="m"), TraceRecord("new", system="s")
    plain = [TraceRecord(f"t{number}") for number in range(1200)]
    left = workspace.register_unknown_traces([told, first, again, of_seen, whole, *plain])
    assert left == (told, again, of_seen, whole)
    kept = {one.trace_id for one in workspace.traces()}
    assert kept == {"known", "new", seen.trace_id, *(one.trace_id for one in plain)}
    assert workspace.trace("new") == first

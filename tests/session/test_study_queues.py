"""Queues of traces, and the progress of annotators."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.labels import VerdictValue
from mast_tui.session import (
    QueueItem,
    QueueKind,
    progress,
    queue,
    register_open_trace,
    with_released_traces,
)
from mast_tui.study import retest_traces
from mast_tui.workspace import Workspace
from tests.session.build import finding, put, span
from tests.session.studies import Class, study_of
from tests.workspace.build import MAST, MODES, trace_of
from tests.workspace.listening import Listening

ONE, TWO, THREE = MODES[:3]


def ids(room: Class, kind: QueueKind = QueueKind.MINE, annotator: str = "alice") -> list[str]:
    return [item.trace_id for item in queue(room.workspace, MAST, annotator, kind)]


def test_open_traces_come_in_the_annotators_order() -> None:
    room = Class(8)
    with closing(Workspace.open(":memory:")) as workspace:
        for trace in room.traces.values():
            register_open_trace(workspace, trace)
        assert [x.trace_id for x in queue(workspace, MAST, "alice")] == list(room.traces)
    assert ids(room) == list(room.order())
    assert ids(room, annotator="bob") == list(room.order("bob")) != ids(room)
    first, second, third, *rest = room.order()
    room.finish(first, third)
    put(room.open(second), ONE, span(0))
    assert queue(room.workspace, MAST, "alice")[0] == QueueItem(second, begun=True)
    assert ids(room) == [second, *rest]
    put(room.open(first), ONE, span(0))  # a second look is not to do
    assert (ids(room), ids(room, annotator="carol")) == ([second, *rest], [])


def test_retests_are_mixed_in() -> None:
    room = Class(14, retests=0.2)
    order = room.order()
    room.finish(*order[:12])
    put(room.open(order[12]), ONE, span(0))
    due = [x for x in order[:2] if x in retest_traces(room.study, "alice")]
    assert due
    assert (ids(room), ids(room, QueueKind.RETESTS)) == ([order[12], *due, order[13]], due)
    put(room.open(due[0]), TWO, span(0))
    assert [(x.trace_id, x.begun, x.retest) for x in queue(room.workspace, MAST, "alice")] == [
        (order[12], True, False),
        (due[0], True, True),
        *((x, False, True) for x in due[1:]),
        (order[13], False, False),
    ]
    room.open(due[0]).finish(open_modes="absent")
    assert ids(room) == [order[12], *due[1:], order[13]]


def test_disagreements_on_finished_traces() -> None:
    room = Class(5)
    room.finish("t00", "t01", "t02", "t03", mode=ONE)
    room.finish("t00", "t04", annotator="bob", mode=TWO)
    room.finish("t01", annotator="bob", mode=ONE)
    room.finish("t02", annotator="bob")
    put(room.open("t03", "bob"), TWO, span(0))
    assert queue(room.workspace, MAST, "alice", QueueKind.DISAGREEMENTS) == (
        QueueItem("t00", (ONE, TWO)),
        QueueItem("t02", (ONE,)),
    )
    with pytest.raises(Exception, match="stands"):
        room.open("t01").undo()
    assert room.open("t04").current is None


def test_disagreements_on_retests_are_hidden() -> None:
    room = Class(12, retests=0.2)
    room.finish(*room.traces, mode=ONE)
    room.finish(*room.traces, annotator="bob", mode=TWO)
    back = set(retest_traces(room.study, "alice"))
    assert set(ids(room, QueueKind.DISAGREEMENTS)) == set(room.traces) - back
    assert set(ids(room, QueueKind.RETESTS)) == back
    for trace_id in back:
        room.finish(trace_id, mode=TWO)
    assert set(ids(room, QueueKind.DISAGREEMENTS)) == set(room.traces)


def test_traces_where_a_judge_differs() -> None:
    room = Class(4, withheld=1.0)
    room.judge("t00", "t01", "t02", findings=(finding(ONE, 0),))
    room.finish("t00", mode=ONE)
    room.finish("t01", "t03")
    assert queue(room.workspace, MAST, "alice", QueueKind.JUDGE) == (QueueItem("t01", (ONE,)),)
    assert room.open("t01").suggestions
    assert room.open("t02").suggestions == ()


def test_traces_with_unsure_modes() -> None:
    room = Class(4)
    session = room.open("t02")
    session.set_verdict(TWO, VerdictValue.UNSURE)
    session.set_verdict(ONE, VerdictValue.UNSURE)
    assert queue(room.workspace, MAST, "alice", QueueKind.UNSURE) == (
        QueueItem("t02", (ONE, TWO), begun=True),
    )
    assert ids(room, QueueKind.UNSURE, "bob") == []


def test_samples_are_of_own_traces() -> None:
    room = Class(10, overlap=0.0)
    found = queue(room.workspace, MAST, "alice", QueueKind.SAMPLE, n=3)
    assert {x.trace_id for x in found} < set(room.order())
    assert len(found) == 3
    assert found == queue(room.workspace, MAST, "alice", QueueKind.SAMPLE, n=3)
    samples = {
        queue(room.workspace, MAST, "alice", QueueKind.SAMPLE, n=3, seed=seed) for seed in range(9)
    }
    assert len(samples) > 1
    assert set(ids(room, QueueKind.SAMPLE, "carol")) == set(room.traces)


def test_queries_do_not_grow_with_the_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening = Listening(monkeypatch)

    def questions(count: int) -> dict[QueueKind, int]:
        room = Class(0)
        room.workspace = Workspace.open(tmp_path / f"{count}.db")
        room.traces = {f"t{i}": trace_of("one", trace_id=f"t{i}") for i in range(count)}
        room.set_up(study_of(tuple(room.traces), retests=0.5))
        room.judge(*room.traces)
        room.finish(*room.order(), mode=TWO)
        room.finish(*room.traces, annotator="bob", mode=ONE)
        asked = {}
        for kind in QueueKind:
            with listening.during() as statements:
                found = queue(room.workspace, MAST, "alice", kind)
            empty = kind in (QueueKind.UNSURE, QueueKind.CHANGED, QueueKind.WORTH)
            assert len(found) >= (0 if empty else count // 2)
            asked[kind] = sum(statement.startswith("SELECT") for statement in statements)
        return asked

    few, many = questions(2), questions(6)
    assert all(few.values())
    assert few == many


def test_progress_of_assigned_traces() -> None:
    room = Class(12, overlap=0.5, withheld=0.25, retests=0.25)
    alice, bob = progress(room.workspace, room.study)
    assert (alice.assigned + bob.assigned, (alice.shared, bob.shared)) == (12 + 6, (6, 6))
    assert alice.planned == alice.withheld == round(alice.assigned / 4)
    assert (alice.finished, alice.begun, alice.left) == (0, 0, alice.assigned)
    first, second, *_ = room.order()
    room.finish(first)
    put(room.open(second), ONE, span(0))
    not_hers = next(x for x in room.traces if x not in room.order())
    room.finish(not_hers)
    alice, bob = progress(room.workspace, room.study)
    assert (alice.finished, alice.begun, alice.left) == (1, 1, alice.assigned - 1)
    assert ((bob.finished, bob.begun), len(alice.retests.to_come)) == ((0, 0), alice.planned)
    released = with_released_traces(room.workspace, room.study, "alice")
    (release,) = released.releases
    assert (release.annotator, {*release.traces}) == ("alice", {*room.order()} - {first})
    room.finish(*release.traces)
    assert with_released_traces(room.workspace, room.study, "alice") == room.study

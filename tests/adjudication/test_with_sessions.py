"""Adjudication beside sessions on the same trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.adjudication import Adjudication
from mast_tui.adjudication.conflicts import choice_of_side
from mast_tui.labels import Target
from mast_tui.session import Session
from mast_tui.traces.library import read_file
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace
from tests.adjudication.annotated_workspace import TAXONOMY
from tests.gold.build import MODE


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    path = tmp_path / "run.json"
    turns = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": f"turn {i}"} for i in range(6)
    ]
    path.write_text(json.dumps({"messages": turns}), encoding="utf-8")
    (trace,) = read_file(path, named=True).traces
    return trace


@pytest.fixture
def workspace() -> Workspace:
    return Workspace.open(":memory:")


def session(workspace: Workspace, trace: Trace, name: str) -> Session:
    return Session.open(workspace, trace, TAXONOMY, name, blind=True)


def span_target(trace: Trace, index: int) -> Target:
    return Target(trace.span(index).key, trace.span(index).key)


def read_and_finish(workspace: Workspace, trace: Trace, name: str, *marks: int) -> Session:
    """Label these spans, read all, and finish with the other modes absent."""
    own_session = session(workspace, trace, name)
    own_session.mark_read([trace.span(i).key for i in range(len(trace))])
    for index in marks:
        own_session.toggle_label(MODE, span_target(trace, index), suggestions_on_screen=False)
    own_session.finish(open_modes="absent")
    return own_session


def adjudication(workspace: Workspace, trace_id: str, name: str, trace: Trace) -> Adjudication:
    return Adjudication(workspace, TAXONOMY, trace_id, name, order=trace.index_of)


def test_undo_in_sessions_and_in_adjudication_are_separate(
    workspace: Workspace, trace: Trace
) -> None:
    ann = read_and_finish(workspace, trace, "ann", 1)
    read_and_finish(workspace, trace, "bob")
    work = adjudication(workspace, ann.trace_id, "ann", trace)
    decision = work.decide(work.gold.conflicts[0], choice_of_side(work.gold.conflicts[0], "bob"))
    later = session(workspace, trace, "ann")
    later.toggle_label(MODE, span_target(trace, 3), suggestions_on_screen=False)
    later.undo()
    work.refresh()
    assert work.decisions == (decision,)
    later.toggle_label(MODE, span_target(trace, 4), suggestions_on_screen=False)
    labels = session(workspace, trace, "ann").labels
    work.undo()
    assert not work.decisions
    assert session(workspace, trace, "ann").labels == labels

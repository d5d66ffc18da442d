"""Agents as a kind of annotator: no people, no gold, listed apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from mast_tui.adjudication import Adjudication, read_work_by_trace
from mast_tui.adjudication.conflicts import choice_of_side
from mast_tui.adjudication.queue import take_on
from mast_tui.errors import MastError, WorkspaceError
from mast_tui.figures.agreement.report import agreement_figures, agreement_json
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.judge.input import judge_input_from_workspace
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.gold import no_orders
from mast_tui.labels import (
    AnnotatorKind,
    Finding,
    InvalidName,
    Target,
    VerdictValue,
    annotator_kind,
    checked_agent,
    checked_person,
    kind_fits_name,
)
from mast_tui.reports.agreement import agreement_report
from mast_tui.reports.render.text import render_text
from mast_tui.session import Session, status
from mast_tui.ui.adjudicate.cases import judge_views
from mast_tui.workspace import Workspace, store_judgement
from tests.agents.calls import AGENT, JUDGE, sample_traces
from tests.workspace.build import MAST, MODES


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    """A workspace in which alice, bob and an agent have finished two traces."""
    with closing(Workspace.open(":memory:")) as made:
        for trace in sample_traces(2):
            for name, mode in (("alice", MODES[2]), ("bob", MODES[3]), (AGENT, MODES[5])):
                session = Session.open(made, trace, MAST, name, blind=True)
                session.toggle_label(mode, Target("k0", "k0"), suggestions_on_screen=False)
                session.finish(open_modes="absent")
        yield made


def test_names_of_agents_and_people_are_told_apart() -> None:
    for kind, name, fits in [
        ("human", "alice", True), ("imported", "alice", True), ("agent", "alice", False),
        ("human", "agent:a", False), ("imported", "agent:a", False), ("agent", "agent:a", True),
        ("judge", "agent:a", False), ("agent", "judge:a", False), ("nobody", "alice", False),
    ]:  # fmt: skip
        assert kind_fits_name(kind, name) is fits
        with closing(Workspace.open(":memory:")) as workspace:
            if not fits and kind != "nobody":
                with pytest.raises(WorkspaceError, match="agents' names with 'agent:'"):
                    workspace.add_annotator(name, AnnotatorKind(kind))
    for name in ["agent:a", "Agent:a", "ＡＧＥＮＴ：a".replace("：", ":"), " agent:"]:
        with pytest.raises(InvalidName, match="agent's name"):
            checked_person(name)
    for name in ["a", "agent:", "agent:judge:x", "agent:agent:x", "agent:a|b"]:
        with pytest.raises(InvalidName):
            checked_agent(name)
        assert annotator_kind(checked_agent("agent:a")) is AnnotatorKind.AGENT


def test_an_agent_is_no_side_of_gold_and_no_member_of_a_study(workspace: Workspace) -> None:
    for trace_sides in read_work_by_trace(workspace, MAST).values():
        assert [side.annotator for side in trace_sides.sides] == ["alice", "bob"]
        gold = trace_sides.gold(MAST)
        assert gold.verdict(MODES[5]).value is VerdictValue.ABSENT
        assert not [label for label in gold.labels if label.mode == MODES[5]]
    assert workspace.outside_study(MAST.ref) == frozenset()
    kinds = {row.name: row.kind for row in status(workspace, MAST).annotators}
    assert kinds == {"alice": "human", "bob": "human", AGENT: "agent"}
    with pytest.raises(MastError, match="agents' names with 'agent:'"):
        workspace.add_annotator(AGENT, AnnotatorKind.HUMAN)


def test_adjudicators_see_agents_like_judges(workspace: Workspace) -> None:
    workspace.add_annotator("carol", AnnotatorKind.HUMAN)
    take_on(workspace, MAST, "carol", ["t0"])
    work = Adjudication(workspace, MAST, "t0", "carol")
    conflicts = {conflict.mode: conflict for conflict in work.gold.conflicts}
    assert MODES[2] in conflicts
    assert work.judge_answers(MODES[2]) == ()
    work.decide(conflicts[MODES[2]], choice_of_side(conflicts[MODES[2]], "alice"))
    (word,) = work.judge_answers(MODES[2])
    assert (word.judge, word.value) == (AGENT, VerdictValue.ABSENT)
    (shown,) = judge_views([word], lambda key: int(key[1:]))
    assert (shown.name, shown.remark, shown.verdict) == (AGENT, "agent", "absent")
    (agreed,) = work.judge_answers(MODES[5])
    assert agreed.value is VerdictValue.PRESENT
    assert work.judge_shown(MODES[5])


def test_agreement_lists_agents_apart(workspace: Workspace) -> None:
    study = study_from_workspace(workspace, MAST)
    assert study.annotators == ("alice", "bob")
    figures = agreement_figures(study, Resampling(0))
    document = agreement_json(figures)
    assert document["annotators"] == ["alice", "bob"]
    assert sorted(document["agents"]) == [f"{AGENT}|alice", f"{AGENT}|bob"]
    beside_alice = document["agents"][f"{AGENT}|alice"]
    # Of 2 × 14 verdicts they differ on two modes in each trace.
    assert (beside_alice["n_traces"], beside_alice["n"]) == (2, 2 * len(MODES))
    assert beside_alice["raw_agreement"]["value"] == pytest.approx(1 - 2 / len(MODES))
    text = "\n".join(render_text(agreement_report(figures), None))
    assert "Agreement of agents with people" in text
    named = study_from_workspace(workspace, MAST, annotators=["alice", AGENT])
    assert named.annotators == ("alice", AGENT)
    assert agreement_json(agreement_figures(named, Resampling(0)))["agents"] == {}
    beside = study_from_workspace(workspace, MAST, annotators=["alice"], with_agents=True)
    assert [table.annotators for table in beside.agents] == [(AGENT, "alice")]


def test_an_agent_is_no_reference_for_judges(workspace: Workspace) -> None:
    finding = Finding(MODES[5], "k1", "k1", "why", 0.9)
    workspace.add_annotator(JUDGE, AnnotatorKind.JUDGE)
    store_judgement(
        workspace, judge=JUDGE, taxonomy=MAST.ref, trace_id="t0", looks_at=MODES, findings=[finding]
    )
    with pytest.raises(WorkspaceError, match="cannot be the reference"):
        judge_input_from_workspace(workspace, MAST, JUDGE, AGENT, order_of=no_orders)
    of_alice = judge_input_from_workspace(workspace, MAST, JUDGE, "alice", order_of=no_orders)
    assert of_alice.unlabelled == frozenset()

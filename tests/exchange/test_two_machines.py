"""Two annotators on two machines, whose workspaces merge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.adjudication import words_by_trace
from mast_tui.exchange.jsonl import merge_content, read_jsonl, workspace_lines
from mast_tui.gold import Decision, Guideline, Said
from mast_tui.labels import Label, PassKind, Target, VerdictValue
from mast_tui.output_files import write_output
from mast_tui.study import Study
from mast_tui.workspace import NewEvent, TraceRecord, Workspace
from mast_tui.workspace.events.types import (
    Decided,
    Fact,
    GuidelineSet,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassFinished,
    PassStarted,
    StudySet,
    VerdictSet,
)
from mast_tui.workspace.records import MergeReport
from tests.exchange.words import MAST, SLUGS

TRACES = ("t1", "t2")
STUDY = Study(MAST.ref, ("alice", "bob"), ("alice",), batches=(TRACES,), seed=3)
NOTES = ("", "🚀 why", "שלום")

Step = tuple[str, str, str, int]
"""A kind of step, a trace, a mode, and a small number."""

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["label", "note", "remove", "verdict", "finish", "decide", "agree"]),
        st.sampled_from(TRACES),
        st.sampled_from(SLUGS[:3]),
        st.integers(0, 2),
    ),
    max_size=5,
)


class Machine:
    """An annotator's workspace."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.workspace = Workspace.open(":memory:")
        self.workspace.add_taxonomy(MAST)
        for trace in TRACES:
            self.workspace.register_trace(TraceRecord(trace))
            self.add(trace, PassStarted(PassKind.BLIND))

    def add(self, trace: str | None, fact: Fact) -> None:
        number = None if trace is None else 1
        self.workspace.append([NewEvent(self.name, trace, MAST.ref, number, fact)])

    def work(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._do(*step)

    def _do(self, kind: str, trace: str, mode: str, number: int) -> None:
        target = Target(f"k{number}", f"k{number}", "🚀x", 0, 2)
        name = f"{self.name}-{trace}-{mode}-{number}"
        label = Label(name, self.name, trace, MAST.ref, mode, target)
        own = {x.id: x for x in self.workspace.labels(annotator=self.name, trace_id=trace)}
        (reading,) = self.workspace.passes(annotator=self.name, trace_id=trace)
        if reading.finished and kind not in ("decide", "agree"):
            return  # it is frozen
        match kind:
            case "label" if name not in own:
                self.add(trace, LabelAdded(label))
            case "note" if name in own:
                self.add(trace, LabelChanged(own[name], replace(own[name], note=NOTES[number])))
            case "remove" if name in own:
                self.add(trace, LabelRemoved(own[name]))
            case "verdict":
                self.add(trace, VerdictSet(mode, None, VerdictValue.UNSURE))
            case "finish":
                self.add(trace, PassFinished(read=number, spans=3))
            case "decide":
                self.add(trace, Decided(mode, None, decision(self.name, mode)))
            case "agree":
                said = Guideline(f"g-{mode}", mode, NOTES[number], self.name, "2026-05-04")
                self.add(None, GuidelineSet(said.id, None, said))

    def export(self, folder: Path) -> Path:
        file = folder / f"{self.name}.jsonl"
        write_output(file, self.text())
        return file

    def text(self) -> str:
        return "".join(workspace_lines(self.workspace))

    def take(self, file: Path) -> MergeReport:
        return merge_content(read_jsonl(file), self.workspace, replacing=("alice", "bob"))

    def state(self) -> object:
        """Return all that both workspaces must agree on."""
        here = self.workspace
        words = words_by_trace(here, MAST)
        return (
            here.labels(pass_number=None),
            here.verdicts(pass_number=None),
            here.passes(),
            here.all_decisions(MAST.ref),
            here.study(MAST.ref),
            here.guidelines(MAST.ref),
            {trace: said.gold(MAST) for trace, said in words.items()},
        )


def decision(who: str, mode: str) -> Decision:
    return Decision(mode, mode, VerdictValue.ABSENT, (), ("alice",), (), who, "2026-05-04")


@settings(max_examples=3)
@given(STEPS, STEPS, STEPS, STEPS, st.booleans())
def test_exchange_in_any_order_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    of_alice: list[Step],
    of_bob: list[Step],
    later_alice: list[Step],
    later_bob: list[Step],
    both_at_once: bool,
) -> None:
    folder = tmp_path_factory.mktemp("machines")
    alice, bob = Machine("alice"), Machine("bob")
    alice.add(None, StudySet(None, STUDY))
    for theirs, ours in ((of_alice, of_bob), (later_alice, later_bob)):
        alice.work(theirs)
        bob.work(ours)
        files = alice.export(folder), bob.export(folder)
        bob.take(files[0])
        alice.take(files[1] if both_at_once else bob.export(folder))
        assert alice.text() == bob.text()
        assert alice.state() == bob.state()
    for machine in (alice, bob):
        for file in (alice.export(folder), bob.export(folder)):
            before = machine.text()
            report = machine.take(file)
            assert (report.added, report.altered, report.people) == (0, (), ())
            assert machine.text() == before
    copy = Workspace.open(":memory:")
    merge_content(read_jsonl(alice.export(folder)), copy)
    assert "".join(workspace_lines(copy)) == alice.text()
    assert copy.edited_histories() == alice.workspace.edited_histories() == ()
    assert alice.workspace.study(MAST.ref) == STUDY
    ids = [label.id for label in alice.workspace.labels(pass_number=None)]
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
def test_a_decision_stays_when_a_side_changes_later(tmp_path: Path) -> None:
    alice, bob = Machine("alice"), Machine("bob")
    mode = SLUGS[0]
    bob.work([("label", "t1", mode, 1), ("finish", "t1", mode, 1)])
    alice.take(bob.export(tmp_path))
    (label,) = alice.workspace.labels(annotator="bob")
    said = Said("bob", VerdictValue.PRESENT, (label.target,))
    decided = replace(decision("alice", mode), sides=(), said=(said,))
    alice.add("t1", Decided(mode, None, decided))
    before = words_by_trace(alice.workspace, MAST)["t1"].gold(MAST).verdict(mode)
    assert (before.value, before.changed) == (VerdictValue.ABSENT, False)
    second: list[Fact] = [
        PassStarted(PassKind.SECOND_LOOK),
        VerdictSet(mode, None, VerdictValue.UNSURE),
        PassFinished(read=3, spans=3),
    ]
    bob.workspace.append([NewEvent("bob", "t1", MAST.ref, 2, fact) for fact in second])
    alice.take(bob.export(tmp_path))
    assert alice.workspace.all_decisions(MAST.ref) == {"t1": (decided,)}
    after = words_by_trace(alice.workspace, MAST)["t1"].gold(MAST).verdict(mode)
    assert (after.value, after.decided_by, after.changed) == (VerdictValue.ABSENT, "alice", True)

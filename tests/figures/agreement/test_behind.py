"""The traces behind a figure."""

from __future__ import annotations

import pytest

from mast_tui.figures.agreement.drill_down import source_traces
from mast_tui.labels import VerdictValue
from tests.figures.agreement.tables import agreement_document
from tests.figures.agreement.test_study import study

MODE = "step_repetition"
SAID = study(
    {("ann", MODE): "0110?1", ("bob", MODE): "0100.1", ("cat", MODE): "00.1.0"}, finished={"cat": 5}
)


def test_disagreements_come_first_then_what_is_present() -> None:
    behind = source_traces(SAID, MODE)
    assert [trace.trace_id for trace in behind] == ["t2", "t1", "t3", "t5", "t0"]
    assert [trace.disagreement for trace in behind] == pytest.approx([1, 2 / 3, 2 / 3, 0, 0])
    assert len(behind) == agreement_document(SAID, rounds=0)["modes"]["1.3"]["n"]


def test_what_each_said_is_told_with_who_was_open_and_without_who_did_not_finish() -> None:
    behind = {trace.trace_id: trace.verdicts for trace in source_traces(SAID, MODE)}
    assert behind["t2"] == {"ann": VerdictValue.PRESENT, "bob": VerdictValue.ABSENT, "cat": None}
    assert set(behind["t5"]) == {"ann", "bob"}


def test_a_pair_has_the_traces_of_the_pair() -> None:
    behind = source_traces(SAID, MODE, ("cat", "bob"))
    assert [trace.trace_id for trace in behind] == ["t1", "t3", "t0"]
    assert set(behind[0].verdicts) == {"cat", "bob"}
    pair = agreement_document(SAID, rounds=0)["modes"]["1.3"]["pairs"]["bob|cat"]
    assert pair["n"] == len(behind)

"""When a mode counts as having decided a trace, and which labels stand as examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mast_tui.adjudication.for_signatures import gold_of
from mast_tui.cli.report import ReportRequest, signature_input
from mast_tui.exchange.apply import apply_incoming
from mast_tui.exchange.csv_labels import read_csv_long
from mast_tui.figures.signatures.model import OVERALL
from mast_tui.gold import no_order
from mast_tui.reports.examples import MOST_EXAMPLES, Extras, extras_from_workspace
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.model import Outcome
from mast_tui.workspace import TraceRecord, Workspace

HEAD = "trace_id,annotator,mode,value,span_first,span_last,quote,severity,note"
FAILED = ("t1", "t2", "t3", "t4")

ROWS = """
t1,ann,3.1,present,a,a,the words,fatal,stopped early
t1,bob,3.1,present,a,a,,fatal,
t2,ann,3.1,present,a,b,,fatal,
t2,bob,3.1,present,a,b,,benign,
t3,ann,3.1,present,,,,,
t3,bob,3.1,present,b,b,,fatal,
t4,ann,3.1,present,c,c,,,
t4,bob,3.1,present,c,c,,,
t5,ann,3.1,present,a,a,,fatal,
t5,bob,3.1,present,a,a,,fatal,
t1,ann,1.3,present,,,,,
t1,bob,1.3,present,,,,,
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """Two people on four failed traces and a successful one."""
    made = Workspace.open(tmp_path / "workspace.db")
    for trace in (*FAILED, "t5"):
        outcome = Outcome.FAILED if trace in FAILED else Outcome.SUCCEEDED
        made.register_trace(TraceRecord(trace, model="m", outcome=outcome))
    ends = [f"{trace},{who},,finished,,,,," for trace in (*FAILED, "t5") for who in ("ann", "bob")]
    file = tmp_path / "labels.csv"
    file.write_text("\n".join([HEAD, *ROWS.strip().splitlines(), *ends]) + "\n", "utf-8")
    incoming = read_csv_long([file], taxonomy=load_mast(), find_taxonomy=lambda _ref: None)
    assert not incoming.problems
    apply_incoming(incoming, made, source="csv-long")
    yield made
    made.close()


def no_text(_trace: str, _key: str) -> str:
    return ""


def extras(
    workspace: Workspace, labels: str, text_of: Callable[[str, str], str] = no_text
) -> Extras:
    """Return the extras of a report on the labels of the workspace."""
    taxonomy = load_mast()
    signatures = signature_input(
        workspace, taxonomy, ReportRequest(labels=labels, without_places=True)
    )
    return extras_from_workspace(
        workspace,
        taxonomy,
        signatures,
        gold_of=gold_of(workspace, taxonomy, lambda _: no_order),
        order_of=lambda _: no_order,
        text_of=text_of,
    )


def test_of_the_gold_all_who_gave_a_severity_must_call_it_fatal(workspace: Workspace) -> None:
    assert extras(workspace, "gold").decided == {OVERALL: {"3.1": 2}, "m": {"3.1": 2}}


def test_of_one_annotator_any_label_that_calls_it_fatal_will_do(workspace: Workspace) -> None:
    decided = {OVERALL: {"3.1": 2}, "m": {"3.1": 2}}
    assert extras(workspace, "ann").decided == decided
    assert extras(workspace, "bob").decided == decided


def test_few_labels_on_failed_traces_stand_as_examples_fatal_ones_first(
    workspace: Workspace,
) -> None:
    everything = extras(workspace, "ann").examples
    found = [one for one in everything if one.group == "m"]
    assert everything == (*(replace(one, group=OVERALL) for one in found), *found)
    # Nobody knows what the spans of t2 say, and no note is on it.
    assert [(one.trace, one.fatal) for one in found] == [("t1", True)]
    assert (found[0].text, found[0].note) == ("the words", "stopped early")
    assert extras(workspace, "bob").examples == ()
    spoken = [
        example
        for example in extras(workspace, "bob", lambda trace, key: f"{key} of {trace}").examples
        if example.group == "m"
    ]
    assert len(spoken) == MOST_EXAMPLES
    assert [one.text for one in spoken] == ["a of t1", "b of t3", "a of t2"]
    # Without the files nobody knows where the spans stand.
    assert {one.first for one in found} == {None}


def test_nobody_has_said_anything_of_traces_that_succeeded(workspace: Workspace) -> None:
    for labels in ("gold", "ann", "bob"):
        assert all(one.trace in FAILED for one in extras(workspace, labels).examples)

"""Modes that decided a trace, and labels that are shown as examples."""

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
from mast_tui.reports.examples import MOST_EXAMPLES, Extras, LabelPassage, extras_from_workspace
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
    """Labels of two people on four failed traces and a successful one."""
    workspace = Workspace.open(tmp_path / "workspace.db")
    for trace in (*FAILED, "t5"):
        outcome = Outcome.FAILED if trace in FAILED else Outcome.SUCCEEDED
        workspace.register_trace(TraceRecord(trace, model="m", outcome=outcome))
    ends = [f"{trace},{who},,finished,,,,," for trace in (*FAILED, "t5") for who in ("ann", "bob")]
    file = tmp_path / "labels.csv"
    file.write_text("\n".join([HEAD, *ROWS.strip().splitlines(), *ends]) + "\n", "utf-8")
    incoming = read_csv_long([file], taxonomy=load_mast(), find_taxonomy=lambda _ref: None)
    assert not incoming.problems
    apply_incoming(incoming, workspace, source="csv-long")
    yield workspace
    workspace.close()


def quote_of(_trace: str, passage: LabelPassage) -> str:
    return passage.quote


def extras(
    workspace: Workspace, labels: str, text_of: Callable[[str, LabelPassage], str] = quote_of
) -> Extras:
    taxonomy = load_mast()
    signatures = signature_input(
        workspace, taxonomy, ReportRequest(label_source=labels, without_places=True)
    )
    return extras_from_workspace(
        workspace,
        taxonomy,
        signatures,
        gold_of=gold_of(workspace, taxonomy, lambda _: no_order),
        order_of=lambda _: no_order,
        text_of=text_of,
    )


def test_mode_decided_a_trace_if_gold_raters_agree_or_one_annotator_calls_it_fatal(
    workspace: Workspace,
) -> None:
    for labels in ("gold", "ann", "bob"):
        assert extras(workspace, labels).fatal_counts == {OVERALL: {"3.1": 2}, "m": {"3.1": 2}}
        assert all(example.trace in FAILED for example in extras(workspace, labels).examples)


def test_examples_are_labels_with_words_fatal_ones_first(workspace: Workspace) -> None:
    examples = extras(workspace, "ann").examples
    of_model = [example for example in examples if example.group == "m"]
    assert examples == (*(replace(example, group=OVERALL) for example in of_model), *of_model)
    # The label on t2 has neither a quote, nor a note, nor a known text of its spans.
    assert [(example.trace, example.fatal) for example in of_model] == [("t1", True)]
    assert (of_model[0].text, of_model[0].note) == ("the words", "stopped early")
    assert of_model[0].first is None  # without files the places of spans are unknown
    assert extras(workspace, "bob").examples == ()
    with_texts = extras(
        workspace, "bob", lambda trace, passage: f"{passage.key} of {trace}" if passage.key else ""
    ).examples
    texts = [example.text for example in with_texts if example.group == "m"]
    assert len(texts) == MOST_EXAMPLES
    assert texts == ["a of t1", "b of t3", "a of t2"]

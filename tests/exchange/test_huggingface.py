"""The datasheet, and the folder for the ``datasets`` library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mast_tui.exchange.exporters.datasheet import datasheet
from mast_tui.exchange.exporters.gold_document import gold_document, with_set_facts
from mast_tui.exchange.exporters.huggingface import dataset_files
from mast_tui.exchange.selection import gold_entries
from mast_tui.figures.agreement.report import (
    Agreement,
    StudyInput,
    agreement_figures,
    agreement_json,
)
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.judge.report import JudgeReport, judge_report
from mast_tui.figures.spans.input import LabelRange, SharedTrace, SpanInput, TraceMarks
from mast_tui.figures.spans.report import span_figures
from mast_tui.gold import Guideline
from mast_tui.labels import AnnotatorKind, Label, PassKind, Target, VerdictValue
from mast_tui.study import Study
from mast_tui.workspace import NewEvent, TraceRecord, Workspace
from mast_tui.workspace.events.types import (
    Fact,
    GuidelineSet,
    LabelAdded,
    PassFinished,
    PassStarted,
    StudySet,
    VerdictSet,
)
from tests.exchange.strategies import MAST, SLUGS
from tests.figures.agreement.build_judge import judge_with, votes
from tests.figures.agreement.tables import verdict_table

pytestmark = pytest.mark.slow

NAMES = ("Bö b", "bö b")
HOSTILE = "<script>| `x` \u202e ---\n# not a heading"
LETTERS = {NAMES[0]: "1100100", NAMES[1]: "0011010"}
FINISHED = {name: frozenset(f"t{i}" for i in range(7)) for name in NAMES}
MODES = MAST.modes[:2]
VERDICTS = {
    (name, f"t{i}", SLUGS[0]): VerdictValue.PRESENT if letter == "1" else VerdictValue.ABSENT
    for name, letters in LETTERS.items()
    for i, letter in enumerate(letters)
}
TABLE = verdict_table(MODES, FINISHED, VERDICTS)
STUDY = StudyInput(MAST.ref, MODES, NAMES, "1", TABLE, FINISHED)
AGREEMENT = agreement_figures(STUDY, Resampling(20))
REPORT = agreement_json(AGREEMENT)
EVENTS = "0" * 64


def gold_of(workspace: Workspace, report: Mapping[str, Any]) -> Mapping[str, Any]:
    document = gold_document(workspace, MAST, report, gold_entries(workspace, MAST))
    return with_set_facts(document, None, EVENTS)


def sheet_of(
    workspace: Workspace,
    agreement: Agreement = AGREEMENT,
    judges: Mapping[str, JudgeReport] | None = None,
) -> str:
    return datasheet(gold_of(workspace, agreement_json(agreement)), agreement, judges)


@pytest.fixture
def filled() -> Workspace:
    """A workspace with two annotators, a study, a guideline, a begun trace and a retest."""
    workspace = Workspace.open(":memory:")
    workspace.add_taxonomy(MAST)
    # Annotators from an older file may differ only in capitals.
    workspace.add_annotators([(name, AnnotatorKind.HUMAN) for name in NAMES])
    workspace.register_trace(TraceRecord("t", system=HOSTILE, spans=3))
    target = Target("k1", "k1", "🚀 שלום", 0, 6)
    for name in NAMES:
        label = Label(f"x-{name}", name, "t", MAST.ref, SLUGS[0], target, note=HOSTILE)
        facts: list[Fact] = [
            PassStarted(PassKind.BLIND),
            LabelAdded(label),
            VerdictSet(SLUGS[1], None, VerdictValue.UNSURE),
            PassFinished(read=3, spans=3, at="2026-05-04T10:20:30Z"),
        ]
        workspace.append([NewEvent(name, "t", MAST.ref, 1, fact) for fact in facts])
    retest: list[Fact] = [PassStarted(PassKind.RETEST), PassFinished(read=3, spans=3)]
    workspace.append([NewEvent(NAMES[0], "t", MAST.ref, 2, fact) for fact in retest])
    workspace.append([NewEvent(NAMES[1], "u", MAST.ref, 1, PassStarted(PassKind.BLIND))])
    study = Study(MAST.ref, NAMES, batches=(("t", "u"),), overlap=0.5, seed=12)
    guideline = Guideline("g", SLUGS[0], HOSTILE, NAMES[0], "2026-05-04T10:20:30Z")
    protocol = (StudySet(None, study), GuidelineSet("g", None, guideline))
    workspace.append([NewEvent(NAMES[0], None, MAST.ref, None, fact) for fact in protocol])
    return workspace


def test_gold_defines_the_modes_and_its_origin(filled: Workspace) -> None:
    gold = gold_of(filled, REPORT)
    first = gold["taxonomy"]["modes"][0]
    mode = MAST.modes[0]
    assert (first["slug"], first["definition"]) == (mode.slug, mode.definition)
    assert first["category"] in {category.name for category in MAST.categories}
    files = dataset_files(gold, sheet_of(filled))
    rows = [json.loads(line) for line in files["data/modes.jsonl"].splitlines()]
    assert [row["mode"] for row in rows] == [mode.code for mode in MAST.modes]
    assert rows[0]["definition"] == mode.definition
    assert 'size_categories: ["n<1K"]' in files["README.md"]
    assert 'task_categories: ["text-classification"]' in files["README.md"]
    assert gold["agreement"] == REPORT
    assert gold["protocol"]["seed"] == 12
    assert gold["guidelines"]["1.1"]["guidelines"][0]["text"] == HOSTILE
    assert gold["left_out"] == {"unfinished": {NAMES[1]: 1}, "retests": {NAMES[0]: 1}, "judges": []}
    assert [len(trace["annotators"]) for trace in gold["traces"]] == [2]
    json.dumps(gold, allow_nan=False)


def test_the_datasheet_names_the_basis_of_its_figures(filled: Workspace) -> None:
    text = sheet_of(filled)
    assert "| 1.1 | Disobey task specification | 7 | 0.43/0.43 | 0.14 \\[–\\] |" in text
    caption = next(line for line in text.splitlines() if line.startswith("Table: Agreement"))
    for part in (f"Labels of {NAMES[0]} and {NAMES[1]} on 7 traces", "first finish", "jackknife"):
        assert part in caption
    assert "no interval: it needs" in text
    assert f"open modes in finished traces ({NAMES[0]} 7, {NAMES[1]} 7)" in text
    assert "2026-05-04 to 2026-05-04" in text
    assert "a share of 0.5, one for the others; seed 12" in text
    assert f"not finished, by annotator: {NAMES[1]} 1" in text
    assert f"not part of the gold: {NAMES[0]} 1" in text
    assert MAST.content_hash in text
    # Foreign text is no markup.
    assert "<script>" not in text
    assert "\u202e" not in text
    assert [line for line in text.split("\n") if line.startswith("# ")] == ["# Datasheet"]


def test_the_datasheet_reports_agreement_on_spans_and_judges(filled: Workspace) -> None:
    two = TraceMarks({SLUGS[0]: (LabelRange(1, 2),)}, None, frozenset())
    single = TraceMarks({SLUGS[0]: (LabelRange(1, 1),)}, None, frozenset())
    traces = tuple(SharedTrace(f"t{i}", 9, {NAMES[0]: two, NAMES[1]: single}) for i in range(3))
    span_input = SpanInput(
        MAST.ref, STUDY.modes, NAMES, "1", traces, dict.fromkeys(NAMES, 3), not_at_hand=2
    )
    spans = span_figures(span_input, Resampling(20))
    text = sheet_of(filled, replace(AGREEMENT, spans=spans))
    row = next(line for line in text.splitlines() if "| place and mode |" in line)
    assert row.split("|")[3:6] == [" 6 ", " 0.00 ", " 1.00 "]
    assert "2 traces with an unknown order of spans" in text
    judged = judge_with(
        votes("1" * 8 + "0" * 12 + "1" * 4),
        votes("1" * 6 + "0" * 2 + "1" * 3 + "0" * 9 + "1" * 4),
        seen=frozenset(votes("·" * 20 + "1" * 4)),
    )
    report = judge_report(judged, Resampling(20))
    text = sheet_of(filled, judges={"judge:a": report})
    row = next(line for line in text.splitlines() if line.startswith("| judge:a |"))
    assert row.startswith("| judge:a | 20 | 20 | 0.67 ")
    assert row.endswith("| 4 labelled with suggestions on screen (traces × modes) |")
    assert "No judge has judged" in sheet_of(filled)


def test_missing_figures_and_studies_are_stated() -> None:
    workspace = Workspace.open(":memory:")
    gold = gold_of(workspace, {})
    no_annotators = StudyInput(MAST.ref, (), (), "1", verdict_table((), {}, {}), {})
    text = datasheet(gold, agreement_figures(no_annotators, Resampling(0)))
    assert "No study was set up" in text
    assert "fewer than two annotators" in text


LOAD = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
folder = sys.argv[1]
found = {
    "names": get_dataset_config_names(folder),
    "gold": load_dataset(folder)["train"].to_list(),
    "labels": load_dataset(folder, "labels", split="train").to_list(),
}
for name in found["names"]:
    found["values of " + name] = load_dataset(folder, name, split="train").to_list()
print(json.dumps(found, default=str))
"""


def test_the_folder_loads_with_datasets(filled: Workspace, tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    files = dataset_files(gold_of(filled, REPORT), sheet_of(filled))
    for name, text in files.items():
        file = tmp_path / "set" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    # A separate process, whose environment forbids requests to servers.
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path / "set")],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env=os.environ | offline,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert [f"data/{name}.jsonl" for name in loaded["names"]] == [*files][:-1]
    assert len(loaded["gold"]) == len(MAST.modes)
    annotator_rows = [rows for name, rows in loaded.items() if "values of annotator_" in name]
    assert len(annotator_rows) == len(NAMES)
    for rows in annotator_rows:
        assert sorted(row["value"] for row in rows) == ["present", "unsure"]
    (verdict,) = [row for row in loaded["gold"] if row["slug"] == SLUGS[0]]
    assert (verdict["value"], verdict["decided_at"]) == ("present", None)
    assert {side["annotator"] for side in verdict["sides"]} == set(NAMES)
    assert [row["quote"] for row in loaded["labels"]] == ["🚀 שלום"] * 2
    assert loaded["labels"][0]["note"] == HOSTILE
    assert loaded["labels"][0]["finished_at"].startswith("2026-05-04 10:20:30")

"""Exports with pseudonyms: one letter for each person in all files, and no names."""

from __future__ import annotations

import json
import shutil
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.exchange.registry import EXPORT_FORMATS
from mast_tui.gold import Decision, Guideline, SideAnswer
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import VerdictValue
from mast_tui.study import Study
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import Decided, GuidelineSet, StudySet
from mast_tui.workspace.registers.pseudonyms import Pseudonyms, pseudonyms_of
from tests.cli.conftest import Cli, open_workspace
from tests.traces.golden import golden_text

MAST = load_mast()
PEOPLE = ("Abel Quill", "Bruno Oake", "Clara Brandt", "Dora Finch")
ABEL, BRUNO, CLARA, DORA = PEOPLE
TIME = "2026-05-04T10:20:30Z"
HEAD = "trace_id,annotator,mode,value,span_first,note\n"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with labels of three annotators, a study, a decision and a guideline."""
    folder = tmp_path_factory.mktemp("labelled")
    path, run_file, labels_file = (folder / name for name in ("w.db", "run.json", "labels.csv"))
    run_file.write_text(golden_text("langfuse", "004-one-run"), encoding="utf-8")
    (trace,) = read_file(run_file, named=True).traces
    read_fully(trace)
    trace_id = trace.identity.trace_id
    key = trace.span(0).key
    rows = []
    for name in PEOPLE[:3]:
        start = f"{trace_id},{name},"
        value = "absent," if name == CLARA else f"present,{key}"
        rows += [f"{start}1.3,{value},", f"{start}1.1,absent,,"]
        rows += [f"{start},note,{key},look", f"{start},finished,,"]
    rows += [f"elsewhere,{ABEL},1.1,absent,,"]
    labels_file.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    for command in (
        ("judge", str(run_file), "--judge", "rules", "--quiet"),
        ("import", str(labels_file), "--format", "csv-long", "--allow-new"),
    ):
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            assert run(split_command([*command, "--workspace", str(path)])) == 0
    mode = MAST.modes[0].slug
    sides = tuple(SideAnswer(name, VerdictValue.ABSENT, ()) for name in (ABEL, BRUNO))
    decision = Decision(
        mode, mode, VerdictValue.ABSENT, (), (ABEL,), sides, DORA, TIME, reason="clear enough"
    )
    database = Study(MAST.ref, PEOPLE[:3], (DORA,), batches=((trace_id,),), overlap=1, seed=1)
    guideline = GuidelineSet("g", None, Guideline("g", mode, "Ask twice.", CLARA, TIME))
    with closing(Workspace.open(path)) as workspace:
        workspace.append([NewEvent(ABEL, None, MAST.ref, None, StudySet(None, database))])
        workspace.append([NewEvent(CLARA, None, MAST.ref, None, guideline)])
        workspace.append([NewEvent(DORA, trace_id, MAST.ref, 1, Decided(mode, None, decision))])
    return path


@pytest.fixture
def database(labelled: Path, tmp_path: Path) -> Path:
    """A copy of that workspace and its trace in the current directory."""
    path = tmp_path / ".mast-tui" / "workspace.db"
    path.parent.mkdir()
    shutil.copy(labelled, path)
    shutil.copy(labelled.with_name("run.json"), tmp_path)
    return path


def current_pseudonyms() -> Pseudonyms:
    with open_workspace() as workspace:
        return pseudonyms_of(workspace)


def check_no_names(text: str) -> None:
    for name in PEOPLE:
        assert name not in text
        assert json.dumps(name)[1:-1].split()[1] not in text


def test_no_name_is_left_in_any_export(cli: Cli, tmp_path: Path, database: Path) -> None:
    without_judges = ("codebook", "inspect-scores", "phoenix", "langsmith")
    for file_format in (name for name in EXPORT_FORMATS if name != "jsonl"):
        out = tmp_path / f"out-{file_format}"
        out.mkdir()
        target = out / EXPORT_FORMATS[file_format].file_name
        options = ["--format", file_format, "-o", target, "--pseudonyms"]
        if file_format not in ("gold", "huggingface", "codebook"):
            options += ["--labels", "all"]
        cli.ok("export", *options)
        files = [path for path in out.rglob("*") if path.is_file()]
        written = "".join(path.read_text("utf-8") for path in files)
        check_no_names(written + "".join(path.name for path in files))
        names_judge = RulesJudge().name in written
        assert names_judge or file_format in without_judges, f"add {file_format}: no judge in it"


def test_each_person_has_the_same_letter_in_all_exports(cli: Cli, database: Path) -> None:
    gold = cli.gold("--pseudonyms")
    rows = cli.rows("--pseudonyms")
    values = {row["annotator"]: row["value"] for row in rows if row["mode"] == "1.3"}
    pseudonyms = current_pseudonyms()
    assert values[pseudonyms.name(CLARA)] == "absent"
    assert values[pseudonyms.name(ABEL)] == values[pseudonyms.name(BRUNO)] == "present"
    (trace,) = gold["traces"]
    sides = {k: v for k, v in trace["verdicts"]["1.3"]["sides"].items() if v is not None}
    assert sides == {name: values[name] for name in sides}
    assert set(sides) == {pseudonyms.name(name) for name in PEOPLE[:3]}
    assert trace["verdicts"]["1.1"]["decided_by"] == pseudonyms.name(DORA)
    assert gold["guidelines"]["1.1"]["guidelines"][0]["by"] == pseudonyms.name(CLARA)
    assert sorted(gold["protocol"]["annotators"]) == sorted(sides)
    assert gold["protocol"]["adjudicators"] == [pseudonyms.name(DORA)]
    # The rest is as with names, except ids that are made from names.
    named = cli.gold()
    assert gold["set"].pop("content_hash") != named["set"].pop("content_hash")
    assert gold == pseudonyms.in_document(named)
    ids, named_ids = (
        {label["id"] for side in document["traces"][0]["annotators"] for label in side["labels"]}
        for document in (gold, named)
    )
    assert len(ids) == len(named_ids) == 2
    assert ids.isdisjoint(named_ids)


def test_letters_stay_when_an_annotator_joins(cli: Cli, database: Path) -> None:
    previous = current_pseudonyms()
    assert sorted(previous.letters.values()) == ["A", "B", "C", "D"]
    with open_workspace() as workspace:
        trace = next(record.trace_id for record in workspace.traces() if record.path is not None)
    cli.label(f"{trace},Aaron Early,1.1,absent")
    current = current_pseudonyms()
    assert {name: current.letters[name] for name in PEOPLE} == dict(previous.letters)
    assert current.letters["Aaron Early"] == "E"
    assert current.name(RulesJudge().name) == RulesJudge().name
    whole = ("export", "--format", "jsonl", "-o", "w.jsonl", "--pseudonyms")
    cli.refused(*whole, says="does not accept --pseudonyms", code=2)


def test_no_name_is_left_in_agree_and_report(cli: Cli, tmp_path: Path, database: Path) -> None:
    files = ("--markdown", "a.md", "--html", "a.html", "--csv", "a.csv", "--latex", "a.tex")
    for command in (
        ("agree", "--judge", RulesJudge().name, "--against", ABEL, "--rounds", 0),
        ("report", "--labels", ABEL, "--rounds", 0),
        ("report", "--rounds", 0),
    ):
        result = cli.ok(*command, "--pseudonyms", *files, "--force")
        written = [(tmp_path / name).read_text("utf-8") for name in files[1::2]]
        document = cli.json(*command, "--pseudonyms")
        check_no_names("".join([result.out, json.dumps(document), *written]))


def test_only_tables_whose_keys_are_all_names_are_changed(database: Path) -> None:
    pseudonyms = Pseudonyms({"value": "A", "bob": "B"}, frozenset({"judge:x"}), b"key")
    document = {
        "value": "present",
        "who": "bob",
        "note": "bob",
        "sides": {"bob": 1, "value": 2, "judge:x": 3},
        "pairs": {"bob|value": 1},
        "order": ["bob", "value"],
    }
    assert pseudonyms.in_document(document) == {
        "value": "present",
        "who": "B",
        "note": "bob",
        "sides": {"A": 2, "B": 1, "judge:x": 3},
        "pairs": {"A|B": 1},
        "order": ["A", "B"],
    }

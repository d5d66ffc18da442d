"""Letters in place of names: the same person has the same one everywhere, and no name is left."""

from __future__ import annotations

import csv
import json
import shutil
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.exchange.registry import EXPORT_FORMATS
from mast_tui.gold import Decision, Guideline, Said
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import VerdictValue
from mast_tui.study import Study
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import Decided, GuidelineSet, StudySet
from mast_tui.workspace.registers.pseudonyms import Pseudonyms, pseudonyms_of
from tests.cli.conftest import Cli
from tests.traces import vendor_layouts

MAST = load_mast()
ABEL, BRUNO, CLARA, DORA = PEOPLE = ("Abel Quill", "Bruno Oake", "Clara Brandt", "Dora Finch")
AT = "2026-05-04T10:20:30Z"
HEAD = "trace_id,annotator,mode,value,span_first,note\n"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people on a trace that is at hand, a study, a decision of a fourth, and a guideline."""
    folder = tmp_path_factory.mktemp("labelled")
    path, run_file, labels_file = (folder / name for name in ("w.db", "run.json", "labels.csv"))
    run_file.write_text(json.dumps(vendor_layouts.langfuse()), encoding="utf-8")
    (trace,) = read_file(run_file, named=True).traces
    read_fully(trace)
    trace_id = trace.identity.trace_id
    key = trace.span(0).key
    rows = []
    for name in PEOPLE[:3]:
        start = f"{trace_id},{name},"
        value = "absent" if name == CLARA else "present"
        rows += [f"{start}1.3,{value},{key if value == 'present' else ''},"]
        rows += [f"{start}1.1,absent,,", f"{start},note,{key},look", f"{start},finished,,"]
    rows += [f"elsewhere,{ABEL},1.1,absent,,"]
    labels_file.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    for command in (
        ("judge", str(run_file), "--judge", "rules", "--quiet"),
        ("import", str(labels_file), "--format", "csv-long", "--allow-new"),
    ):
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            assert run(split_command([*command, "--workspace", str(path)])) == 0
    workspace = Workspace.open(path)
    mode = MAST.modes[0].slug
    said = tuple(Said(name, VerdictValue.ABSENT, ()) for name in (ABEL, BRUNO))
    decision = Decision(
        mode, mode, VerdictValue.ABSENT, (), (ABEL,), said, DORA, AT, reason="clear enough"
    )
    guideline = Guideline("g", mode, "Ask twice.", CLARA, AT)
    planned = Study(MAST.ref, PEOPLE[:3], (DORA,), batches=((trace_id,),), overlap=1, seed=1)
    workspace.append(
        [
            NewEvent(ABEL, None, MAST.ref, None, StudySet(None, planned)),
            NewEvent(CLARA, None, MAST.ref, None, GuidelineSet("g", None, guideline)),
        ]
    )
    workspace.append([NewEvent(DORA, trace_id, MAST.ref, 1, Decided(mode, None, decision))])
    workspace.close()
    return path


@pytest.fixture
def study(labelled: Path, tmp_path: Path) -> Path:
    """A copy of that workspace and its trace, in the folder in which commands run."""
    path = tmp_path / ".mast-tui" / "workspace.db"
    path.parent.mkdir()
    shutil.copy(labelled, path)
    shutil.copy(labelled.with_name("run.json"), tmp_path)
    return path


def letters(path: Path) -> Pseudonyms:
    workspace = Workspace.open(path)
    found = pseudonyms_of(workspace)
    workspace.close()
    return found


def without_names(text: str) -> None:
    for name in PEOPLE:
        assert name not in text
        assert json.dumps(name)[1:-1].split()[1] not in text


@pytest.mark.parametrize("file_format", [f for f in EXPORT_FORMATS if f != "jsonl"])
def test_no_name_is_left_in_any_export(
    cli: Cli, tmp_path: Path, study: Path, file_format: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    ending = {"codebook": "md", "csv-long": "csv", "csv-wide": "csv"}.get(file_format, "json")
    target = out if file_format == "huggingface" else out / f"labels.{ending}"
    args = ["export", "--format", file_format, "-o", target]
    if file_format not in ("gold", "huggingface", "codebook"):
        args += ["--labels", "all"]
    cli.ok(*args, "--pseudonyms")
    files = [path for path in out.rglob("*") if path.is_file()]
    written = "".join(path.read_text("utf-8") for path in files)
    without_names(written + "".join(path.name for path in files))
    if file_format not in ("codebook", "inspect-scores", "phoenix", "langsmith"):  # hold no judge
        assert RulesJudge().name in written


def test_the_same_person_has_the_same_letter(cli: Cli, tmp_path: Path, study: Path) -> None:
    cli.ok("export", "--format", "gold", "-o", "gold.json", "--pseudonyms")
    gold = json.loads((tmp_path / "gold.json").read_text("utf-8"))
    long = ("export", "--format", "csv-long", "--labels", "all", "-o", "l.csv", "--pseudonyms")
    cli.ok(*long)
    with (tmp_path / "l.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    said = {row["annotator"]: row["value"] for row in rows if row["mode"] == "1.3"}
    known = letters(study)
    assert said[known.name(CLARA)] == "absent"
    assert said[known.name(ABEL)] == said[known.name(BRUNO)] == "present"
    (trace,) = gold["traces"]
    sides = {k: v for k, v in trace["verdicts"]["1.3"]["sides"].items() if v is not None}
    assert sides == {name: said[name] for name in sides}
    assert set(sides) == {known.name(name) for name in PEOPLE[:3]}
    assert trace["verdicts"]["1.1"]["decided_by"] == known.name(DORA)
    assert gold["guidelines"]["1.1"]["guidelines"][0]["by"] == known.name(CLARA)
    assert sorted(gold["protocol"]["annotators"]) == sorted(sides)
    assert gold["protocol"]["adjudicators"] == [known.name(DORA)]
    # Nothing else has moved.
    cli.ok("export", "--format", "gold", "-o", "named.json")
    named = json.loads((tmp_path / "named.json").read_text("utf-8"))
    assert gold["set"].pop("content_hash") != named["set"].pop("content_hash")
    assert shape(gold) == shape(known.in_document(named))
    assert gold == known.in_document(named)


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else type(value)


def test_letters_stay_when_somebody_joins(cli: Cli, tmp_path: Path, study: Path) -> None:
    before = letters(study)
    assert sorted(before.letters.values()) == ["A", "B", "C", "D"]
    workspace = Workspace.open(study)
    trace = next(record.trace_id for record in workspace.traces() if record.path is not None)
    workspace.close()
    rows = f"{HEAD}{trace},Aaron Early,1.1,absent,,\n"
    (tmp_path / "more.csv").write_text(rows, encoding="utf-8")
    cli.ok("import", "more.csv", "--format", "csv-long", "--allow-new")
    after = letters(study)
    assert {name: after.letters[name] for name in PEOPLE} == dict(before.letters)
    assert after.letters["Aaron Early"] == "E"
    assert after.name(RulesJudge().name) == RulesJudge().name


@pytest.mark.parametrize(
    "words",
    [
        ("agree", "--judge", RulesJudge().name, "--against", ABEL, "--rounds", 0),
        ("report", "--labels", ABEL, "--rounds", 0),
        ("report", "--rounds", 0),
    ],
)
def test_no_name_is_left_in_agree_and_report(
    cli: Cli, tmp_path: Path, study: Path, words: tuple[object, ...]
) -> None:
    files = ("--markdown", "a.md", "--html", "a.html", "--csv", "a.csv", "--latex", "a.tex")
    done = cli.ok(*words, "--pseudonyms", *files)
    written = [(tmp_path / name).read_text("utf-8") for name in files[1::2]]
    document = cli.json(*words, "--pseudonyms")
    without_names("".join([done.out, json.dumps(document), *written]))


def test_ids_that_were_made_of_names_are_made_anew(cli: Cli, tmp_path: Path, study: Path) -> None:
    for name, more in (("named.json", ()), ("gold.json", ("--pseudonyms",))):
        cli.ok("export", "--format", "gold", "-o", name, *more)
    found = [
        {
            label["id"]
            for side in json.loads((tmp_path / name).read_text("utf-8"))["traces"][0]["annotators"]
            for label in side["labels"]
        }
        for name in ("named.json", "gold.json")
    ]
    assert len(found[0]) == len(found[1]) == 2
    assert found[0].isdisjoint(found[1])


def test_a_table_that_goes_by_other_words_stays(study: Path) -> None:
    known = Pseudonyms({"value": "A", "bob": "B"}, frozenset({"judge:x"}), b"key")
    document = {
        "value": "present",
        "who": "bob",
        "note": "bob",
        "sides": {"bob": 1, "value": 2, "judge:x": 3},
        "pairs": {"bob|value": 1},
        "order": ["bob", "value"],
    }
    assert known.in_document(document) == {
        "value": "present",
        "who": "B",
        "note": "bob",
        "sides": {"A": 2, "B": 1, "judge:x": 3},
        "pairs": {"A|B": 1},
        "order": ["A", "B"],
    }


def test_the_whole_workspace_is_refused(cli: Cli, study: Path) -> None:
    cli.refused(
        "export",
        "--format",
        "jsonl",
        "-o",
        "w.jsonl",
        "--pseudonyms",
        says="does not accept --pseudonyms",
        code=2,
    )

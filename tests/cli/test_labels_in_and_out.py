"""import, status, agree and export, as scripts use them."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.labels import AnnotatorKind
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import Workspace
from tests.cli.conftest import Cli

CODES = [mode.code for mode in load_mast().modes]


def wide(folder: Path, rows: dict[tuple[str, str], str], name: str = "labels.csv") -> Path:
    """A csv-wide file: a text of 14 cells (``-`` is empty) per trace and annotator."""
    lines = [",".join(["trace_id", "annotator", "system", "model", "benchmark", "outcome", *CODES])]
    for (trace, annotator), cells in rows.items():
        values = ["" if cell == "-" else cell for cell in cells]
        lines.append(",".join([trace, annotator, "crew", "m", "b", "failed", *values]))
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


TWO_PEOPLE = {
    ("t1", "alice"): "10000000000000",
    ("t1", "bob"): "10000000000000",
    ("t2", "alice"): "01?00000000001",
    ("t2", "bob"): "00000000000001",
    ("t3", "alice"): "----------0000",
}


def test_import_twice_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    file = wide(tmp_path, TWO_PEOPLE)
    first = cli("import", file, "--format", "csv-wide", "--json")
    assert first.code == 0
    assert first.json["annotators"] == ["alice", "bob"]
    assert (first.json["labels"], first.json["finished"]) == (5, 5)
    assert first.json["events"]["known"] == 0
    cli("export", "--format", "jsonl", "-o", "one.jsonl")
    second = cli("import", file, "--format", "csv-wide", "--json")
    assert second.json["events"] == {"new": 0, "known": first.json["events"]["new"]}
    cli("export", "--format", "jsonl", "-o", "two.jsonl")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_a_bad_row_keeps_everything_out_unless_it_is_skipped(cli: Cli, tmp_path: Path) -> None:
    file = wide(tmp_path, {("t1", "alice"): "1" * 14, ("t2", "alice"): "2" * 14})
    refused = cli("import", file, "--format", "csv-wide", "--json")
    assert refused.code == 1
    assert refused.json["written"] is False
    assert refused.json["problems"][0]["place"] == "line 3"
    assert "labels.csv: line 3: 1.1 is '2'" in refused.err
    assert cli("status", "--json").json["traces"] == 0
    taken = cli("import", file, "--format", "csv-wide", "--skip-errors", "--json")
    assert (taken.code, taken.json["written"]) == (0, True)
    assert len(taken.json["problems"]) == 1
    assert cli("status", "--json").json["annotators"] == [
        {"name": "alice", "kind": "human", "finished": 1, "open": 0, "conflicts": 0}
    ]


def test_a_finished_trace_is_not_changed_by_another_file(cli: Cli, tmp_path: Path) -> None:
    cli("import", wide(tmp_path, {("t1", "alice"): "1" + "0" * 13}), "--format", "csv-wide")
    other = wide(tmp_path, {("t1", "alice"): "0" * 14}, "other.csv")
    done = cli("import", other, "--format", "csv-wide", "--json")
    assert done.code == 1
    assert "has finished this trace here" in done.json["problems"][0]["reason"]
    assert done.json["problems"][0]["place"] == "alice on t1"


def test_rows_are_added_to_an_open_trace_unless_they_contradict(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    head = "trace_id,annotator,mode,value,span_first,note\n"
    file.write_text(head + "t,alice,1.3,present,k1,first\nt,alice,1.4,absent,,\n")
    assert cli("import", file, "--format", "csv-long").code == 0
    file.write_text(
        head + "t,alice,1.3,present,k1,other\nt,alice,1.3,present,k2,\nt,alice,,finished,,\n"
    )
    more = cli("import", file, "--format", "csv-long", "--json")
    assert more.code == 0
    assert any(
        "1 label is already in the workspace with other details" in n for n in more.json["notes"]
    )
    cli("export", "--format", "csv-long", "--labels", "alice", "-o", "out.csv")
    with (tmp_path / "out.csv").open(newline="") as out:
        rows = [(r["mode"], r["value"], r["span_first"], r["note"]) for r in csv.DictReader(out)]
    assert rows == [
        ("1.3", "present", "k1", "first"),
        ("1.3", "present", "k2", ""),
        ("1.4", "absent", "", ""),
        ("", "finished", "", ""),
    ]
    file.write_text(head + "u,alice,1.4,absent,,\n")
    cli("import", file, "--format", "csv-long", "--allow-new")
    file.write_text(head + "u,alice,1.4,present,,\n")
    done = cli("import", file, "--format", "csv-long")
    assert done.code == 1
    assert "absent here and present in the file" in done.err


def test_agree_compares_whom_one_names(cli: Cli, tmp_path: Path) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    assert cli("agree", "--annotators", "bob", "--json").json["annotators"] == ["bob"]
    unknown = cli("agree", "--annotators", "alice,carol")
    assert unknown.code == 1
    assert "carol" in unknown.err
    assert unknown.err.count("\n") == 1
    assert cli("agree", "--annotators", "bob,bob").code == 2
    assert cli("agree", "--annotators", ",").code == 2


def test_a_person_sees_figures_of_what_they_have_finished_only(cli: Cli, tmp_path: Path) -> None:
    rows = TWO_PEOPLE | {("t3", "bob"): "0" * 14, ("t4", "bob"): "1" * 14}
    cli("import", wide(tmp_path, rows), "--format", "csv-wide")
    file = tmp_path / "carol.csv"
    file.write_text("trace_id,annotator,mode,value\nt1,carol,1.1,absent\nt1,carol,,finished\n")
    cli("import", file, "--format", "csv-long", "--allow-new")
    seen = cli("agree", "--annotator", "carol", "--json").json
    assert seen["traces"] == {
        "finished_by_all": 1,
        "finished_by_two": 1,
        "only_seen_by": "carol",
    }
    assert cli("status", "--annotator", "carol", "--json").json["conflicts"]["left"] == 1
    nobody = cli("agree", "--annotator", "dave", "--json").json
    assert nobody["annotators"] == []


def test_the_status_of_an_adjudicator_who_labels_nothing(cli: Cli, tmp_path: Path) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide", "--allow-new")
    with closing(Workspace.open(tmp_path / ".mast-tui" / "workspace.db")) as place:
        place.add_annotator("dee", AnnotatorKind.HUMAN)
    cli("study", "set", "--annotators", "alice,bob", "--adjudicators", "dee")
    assert "dee" not in [
        annotator["name"] for annotator in cli("status", "--json").json["annotators"]
    ]
    (row,) = cli("status", "--annotator", "dee", "--json").json["annotators"]
    assert (row["name"], row["finished"], row["open"]) == ("dee", 0, 0)
    assert "no annotator 'eve'" in cli("status", "--annotator", "eve").err


def test_the_disputed_places_of_a_mode_count_as_one_conflict(cli: Cli, tmp_path: Path) -> None:
    places = {"alice": ("k1", "k4"), "bob": ("k2",), "carol": ("k1", "k2", "k3")}
    rows = [f"t,{name},1.3,present,{key}" for name, keys in places.items() for key in keys]
    rows += [f"t,{name},1.1,{'absent' if name == 'bob' else 'unsure'}," for name in places]
    rows += [f"t,{name},,finished," for name in places]
    file = tmp_path / "long.csv"
    file.write_text("trace_id,annotator,mode,value,span_first\n" + "\n".join(rows) + "\n")
    assert cli("import", file, "--format", "csv-long", "--allow-new").code == 0
    status = cli("status", "--json").json
    assert status["conflicts"] == {"left": 2, "verdicts": 1, "places": 1, "unordered": 0}
    assert [annotator["conflicts"] for annotator in status["annotators"]] == [2, 2, 2]
    assert "2 conflicts left" in cli("status").out
    document = cli("export", "--format", "gold", "-o", "gold.json", "--json").json
    assert document["unresolved"] == 2
    (trace,) = json.loads((tmp_path / "gold.json").read_text())["traces"]
    # In the file each place stands by itself, as each has a decision of its own.
    assert [conflict["kind"] for conflict in trace["unresolved"]] == ["verdict", *["place"] * 4]


def test_the_gold_document_holds_sources_sides_and_figures(cli: Cli, tmp_path: Path) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    done = cli("export", "--format", "gold", "-o", "gold.json", "--json")
    assert done.json["unresolved"] == 2
    gold = json.loads((tmp_path / "gold.json").read_text())
    assert [trace["trace_id"] for trace in gold["traces"]] == ["t1", "t2", "t3"]
    first, second, third = gold["traces"]
    assert first["verdicts"]["1.1"] | {"reason": ""} == {
        "slug": "disobey_task_specification",
        "value": "present",
        "source": "unanimous",
        "sides": {"alice": "present", "bob": "present"},
        "judge_seen": False,
        "decided_by": None,
        "decided_at": None,
        "reason": "",
        "changed": False,
    }
    assert [(x["mode"], x["target"]["whole_trace"]) for x in first["labels"]] == [("1.1", True)]
    assert second["verdicts"]["1.2"]["source"] == "unresolved"
    assert second["verdicts"]["1.2"]["value"] is None
    assert second["verdicts"]["1.3"]["sides"] == {"alice": "unsure", "bob": "absent"}
    assert {x["mode"] for x in second["unresolved"]} == {"1.2", "1.3"}
    assert third["verdicts"]["3.3"]["source"] == "single"
    assert (
        third["verdicts"]["1.1"] | {"value": None, "source": "unresolved"}
        == third["verdicts"]["1.1"]
    )
    assert [side["name"] for side in second["annotators"]] == ["alice", "bob"]
    assert second["annotators"][0]["verdicts"]["1.3"] == "unsure"
    report = cli("agree", "--json").json
    assert gold["taxonomy"]["revisions"] == report.pop("revisions")
    assert {**gold["agreement"], "spans": 0} == report | {"spans": 0}


def test_mast_data_has_no_made_up_zeros(cli: Cli, tmp_path: Path) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    cli("export", "--format", "mast-data", "-o", "data.json")
    records = {r["trace_id"]: r for r in json.loads((tmp_path / "data.json").read_text())}
    numbers = records["t2"]["mast_annotation"]
    assert (numbers["1.2"], numbers["1.3"], numbers["1.4"], numbers["3.3"]) == (None, None, 0, 1)
    assert records["t3"]["mast_annotation"]["1.1"] is None
    assert records["t1"]["mas_name"] == "crew"
    assert records["t1"]["llm_name"] == "m"


@pytest.mark.parametrize("file_format", ["csv-wide", "csv-long"])
def test_csv_comes_back_as_it_went_out(cli: Cli, tmp_path: Path, file_format: str) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    export = ("export", "--format", file_format, "--labels", "all")
    assert cli(*export, "-o", "one.csv").code == 0
    done = cli("--workspace", "new.db", "import", "one.csv", "--format", file_format)
    assert done.code == 0
    cli("--workspace", "new.db", *export, "-o", "two.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_a_crosswalk_makes_labels_of_mast(cli: Cli, tmp_path: Path) -> None:
    run = {
        "history": [{"role": "user", "content": "Do it."}, {"role": "Worker", "content": "No."}],
        "mistake_agent": "Worker",
        "mistake_step": "1",
        "mistake_reason": "It refused.",
    }
    (tmp_path / "run.json").write_text(json.dumps(run))
    (tmp_path / "links.csv").write_text("from,to\ndecisive_error,3.1\n")
    args = ("import", "run.json", "--format", "who-and-when", "--crosswalk", "links.csv")
    done = cli(*args, "--annotator", "experts", "--json")
    assert done.code == 0
    assert done.json["taxonomies"] == ["mast@3"]
    cli("export", "--format", "csv-long", "--labels", "experts", "-o", "out.csv")
    assert ",experts,3.1,present,/history/1,/history/1," in (tmp_path / "out.csv").read_text()
    missing = cli(*args[:-1], "nowhere.csv")
    assert missing.code == 1
    assert "nowhere.csv" in missing.err


def test_without_a_workspace_a_reader_makes_none(cli: Cli, tmp_path: Path) -> None:
    for command in (("status",), ("agree",), ("export", "--format", "gold", "-o", "x")):
        done = cli(*command)
        assert done.code == 1
        assert "there is no workspace" in done.err
        assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("export", "--format", "cake", "-o", "x"), 2),
        (("inspect",), 2),
        (("convert", "x"), 2),
        (("export", "--format", "gold"), 2),
        (("export", "--format", "huggingface", "--labels", "all", "-o", "x"), 2),
        (("export", "--format", "jsonl", "-o", "x", "--labels", "alice"), 2),
        (("export", "--format", "gold", "-o", "x", "--labels", "alice"), 2),
        (("export", "--format", "csv-long", "-o", "x", "--labels", "carol"), 1),
        (("export", "--format", "csv-long", "-o", "no/folder/x"), 1),
        (("import", "nowhere.csv", "--format", "csv-wide"), 1),
        (("import", "labels.csv"), 2),
        (("import", "labels.csv", "--format", "jsonl"), 1),
        (("import", "labels.csv", "--format", "csv-long"), 1),
        (("import", "labels.csv", "--format", "csv-wide", "--annotator", "a|b"), 1),
        (("import", "labels.csv", "--format", "csv-wide", "--taxonomy", "nowhere.toml"), 1),
        (("agree", "--taxonomy", "own@1"), 1),
        (("status", "--annotator", "carol"), 1),
        (("status", "--blind", "--assisted"), 2),
        (("status", "--workspace", "labels.csv"), 1),
        (("status", "--workspace", "mysql://host/db"), 1),
    ],
)
def test_exit_codes_and_errors_in_a_line(
    cli: Cli, tmp_path: Path, args: tuple[str, ...], code: int
) -> None:
    cli("import", wide(tmp_path, {("t1", "alice"): "1" * 14}), "--format", "csv-wide")
    done = cli(*args)
    assert done.code == code
    assert done.out == ""
    assert "Traceback" not in done.err
    if code == 1:
        assert done.err.startswith(f"mast-tui {args[0]}: ")
        assert len(done.err.splitlines()) == 1

"""Label Studio, doccano, the dataset folder and the datasheet, as scripts use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mast_tui.judges.rules import RulesJudge
from tests.cli.conftest import Cli

MESSAGES = [
    {"role": "user", "content": "Start the 🚀 now."},
    {"role": "assistant", "content": "שלום, it is done."},
]
LABELS = """trace_id,annotator,mode,value,span_first,span_last,quote,char_start,char_end,note
{id},alice,1.3,present,{first},{first},🚀,10,11,see it
{id},alice,2.3,present,{first},{last},,,,
{id},alice,3.1,present,,,,,,whole
{id},alice,1.1,absent,,,,,,
{id},alice,1.2,unsure,,,,,,
{id},alice,,finished,,,,,,
"""


@pytest.fixture
def labelled(cli: Cli, tmp_path: Path) -> str:
    """A trace that is at hand, with labels by alice; its id."""
    (tmp_path / "run.json").write_text(json.dumps(MESSAGES), encoding="utf-8")
    (trace,) = cli("inspect", "run.json", "--spans", "--json").json["files"][0]["traces"]
    keys = [span["key"] for span in trace["span_list"]]
    assert cli("judge", "run.json", "--judge", "rules").code == 0
    text = LABELS.format(id=trace["id"], first=keys[0], last=keys[-1])
    (tmp_path / "labels.csv").write_text(text, encoding="utf-8")
    done = cli("import", "labels.csv", "--format", "csv-long")
    assert done.code == 0, done.err
    return str(trace["id"])


def long_rows(cli: Cli, tmp_path: Path, *args: str) -> list[str]:
    cli(*args, "export", "--format", "csv-long", "--labels", "alice", "-o", "rows.csv")
    return (tmp_path / "rows.csv").read_text("utf-8").splitlines()


def test_label_studio_there_and_back(cli: Cli, tmp_path: Path, labelled: str) -> None:
    out = ("export", "--format", "label-studio", "--labels", "all", "-o", "tasks.json")
    done = cli(*out, "--json")
    assert (done.code, done.json["without_text"]) == (0, 0)
    assert done.json["beside"] == ["tasks.config.xml"]
    assert "<ParagraphLabels" in (tmp_path / "tasks.config.xml").read_text("utf-8")
    (task,) = json.loads((tmp_path / "tasks.json").read_text("utf-8"))
    assert [span["text"] for span in task["data"]["spans"]] == [m["content"] for m in MESSAGES]
    places = [
        (value["start"], value["startOffset"], value["endOffset"])
        for result in task["annotations"][0]["result"]
        if "startOffset" in (value := result["value"])
    ]
    assert ("0", 10, 12) in places

    same = cli("import", "tasks.json", "--format", "label-studio", "--json")
    assert same.json["events"] == {"new": 0, "known": 0}
    assert "came back unchanged" in same.json["notes"][0]
    other = ("--workspace", "other.db")
    fresh = cli(*other, "import", "tasks.json", "--format", "label-studio", "--json")
    assert (fresh.code, fresh.json["annotators"]) == (0, ["alice", RulesJudge().name])
    assert long_rows(cli, tmp_path, *other) == long_rows(cli, tmp_path)
    second_run = cli(*other, "import", "tasks.json", "--format", "label-studio", "--json")
    assert second_run.json["events"]["new"] == 0


def test_what_was_changed_in_label_studio_leaves_alices_own_alone(
    cli: Cli, tmp_path: Path, labelled: str
) -> None:
    before = long_rows(cli, tmp_path)
    cli("export", "--format", "label-studio", "--labels", "alice", "-o", "tasks.json")
    tasks: list[dict[str, Any]] = json.loads((tmp_path / "tasks.json").read_text("utf-8"))
    annotation = tasks[0]["annotations"][0]
    annotation["import_id"], annotation["id"] = annotation["id"], 1
    annotation["result"] = [r for r in annotation["result"] if r["type"] == "choices"]
    (tmp_path / "back.json").write_text(json.dumps(tasks), encoding="utf-8")
    done = cli("import", "back.json", "--format", "label-studio", "--json")
    assert done.json["annotators"] == ["alice (label-studio)"]
    assert long_rows(cli, tmp_path) == before
    second_run = cli("import", "back.json", "--format", "label-studio", "--json")
    assert second_run.json["events"]["new"] == 0
    people = {
        annotator["name"]: annotator["kind"]
        for annotator in cli("status", "--json").json["annotators"]
    }
    assert people["alice (label-studio)"] == "imported"


def test_gold_that_comes_back_does_not_become_a_side_of_itself(
    cli: Cli, tmp_path: Path, labelled: str
) -> None:
    cli("export", "--format", "label-studio", "-o", "gold.json")
    (task,) = json.loads((tmp_path / "gold.json").read_text("utf-8"))
    assert [annotation["ground_truth"] for annotation in task["annotations"]] == [True]
    done = cli("import", "gold.json", "--format", "label-studio", "--json")
    assert done.json["events"] == {"new": 0, "known": 0}
    elsewhere = ("--workspace", "o.db", "import", "gold.json", "--format", "label-studio")
    refused = cli(*elsewhere)
    assert (refused.code, refused.out) == (1, "")
    assert '"gold" is reserved' in refused.err
    other = cli(*elsewhere, "--annotator", "the experts", "--json")
    assert other.json["annotators"] == ["the experts"]
    status = cli("--workspace", "o.db", "status", "--json").json
    assert [annotator["kind"] for annotator in status["annotators"]] == ["imported"]


def test_doccano_lines_hold_the_words(cli: Cli, tmp_path: Path, labelled: str) -> None:
    cli("export", "--format", "doccano", "--labels", "alice", "-o", "lines.jsonl")
    (line,) = (tmp_path / "lines.jsonl").read_text("utf-8").splitlines()
    value = json.loads(line)
    words = {value["text"][start:end] for start, end, _ in value["label"]}
    assert "🚀" in words
    assert value["cats"] == ["3.1 Premature termination"]
    assert value["trace_id"] == labelled


def test_traces_that_are_not_at_hand_are_counted(cli: Cli, tmp_path: Path, labelled: str) -> None:
    (tmp_path / "run.json").unlink()
    out = ("export", "--format", "doccano", "--labels", "alice", "-o", "lines.jsonl")
    assert cli(*out, "--json").json["without_text"] == 1
    assert "1 trace is not at hand" in cli(*out).err
    assert (tmp_path / "lines.jsonl").read_text("utf-8") == ""


def test_gold_and_the_dataset_come_with_a_datasheet(
    cli: Cli, tmp_path: Path, labelled: str
) -> None:
    done = cli("export", "--format", "gold", "-o", "gold.json", "--json")
    assert done.json["beside"] == ["gold.datasheet.md"]
    sheet = (tmp_path / "gold.datasheet.md").read_text("utf-8")
    assert "| alice | human | 1 |" in sheet
    gold = json.loads((tmp_path / "gold.json").read_text("utf-8"))
    report = cli("agree", "--json").json
    assert gold["taxonomy"]["revisions"] == report.pop("revisions")
    assert {**gold["agreement"], "spans": 0} == report | {"spans": 0}
    assert gold["agreement"]["spans"] is not None
    assert gold["left_out"]["judges"] == [RulesJudge().name]
    assert gold["judges"][RulesJudge().name]["against"] == "gold"
    assert f"| {RulesJudge().name} | 1 |" in sheet
    cli("export", "--format", "huggingface", "-o", "set")
    card = (tmp_path / "set" / "README.md").read_text("utf-8")
    assert card.startswith("---\n")
    assert "## Datasheet" in card
    assert (tmp_path / "set" / "data" / "gold.jsonl").exists()


def test_two_copies_of_one_person_are_told_apart_in_words(cli: Cli, tmp_path: Path) -> None:
    head = "trace_id,annotator,mode,value\n"
    for name, mode in (("one", "1.3"), ("two", "2.1")):
        (tmp_path / f"{name}.csv").write_text(f"{head}t,alice,{mode},present\n")
        workspace_options = ("--workspace", f"{name}.db")
        cli(*workspace_options, "import", f"{name}.csv", "--format", "csv-long")
        cli(*workspace_options, "export", "--format", "jsonl", "-o", f"{name}.jsonl")
    both = ("--workspace", "both.db", "import", "--format", "jsonl")
    done = cli(*both, "one.jsonl", "two.jsonl")
    assert done.code == 0
    assert "alice worked in two copies at once: step 2 is" in done.err
    assert "'label step_repetition on t'" in done.err
    assert "'label conversation_reset on t'" in done.err
    quiet = cli(*both, "two.jsonl", "one.jsonl", "--json")
    assert (quiet.json["events"]["new"], quiet.json["notes"]) == (0, [])


def test_a_taxonomy_that_does_not_fit_names_the_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("trace_id,annotator,mode,value\nt,alice,1.3,present\n")
    cli("import", "a.csv", "--format", "csv-long")
    cli("export", "--format", "jsonl", "-o", "a.jsonl")
    text = (tmp_path / "a.jsonl").read_text("utf-8")
    (tmp_path / "b.jsonl").write_text(text.replace("step_repetition", "step_repeated"))
    done = cli("import", "b.jsonl", "--format", "jsonl")
    assert done.code == 1
    assert "b.jsonl: taxonomy mast@3 is in this workspace already with other modes" in done.err


def test_a_dataset_replaces_only_a_dataset_and_all_of_it(
    cli: Cli, tmp_path: Path, labelled: str
) -> None:
    rows = LABELS.format(id=labelled, first="", last="").replace("alice", "bob")
    short = [line for line in rows.splitlines() if "1.3" not in line]
    (tmp_path / "bob.csv").write_text("\n".join(short), encoding="utf-8")
    assert cli("import", "bob.csv", "--format", "csv-long", "--allow-new").code == 0
    out = ("export", "--format", "huggingface", "-o")
    assert cli(*out, "set").code == 0
    assert (tmp_path / "set" / "data" / "annotator_bob.jsonl").exists()
    assert cli(*out, "set", "--annotators", "alice").code == 0
    assert not (tmp_path / "set" / "data" / "annotator_bob.jsonl").exists()
    (tmp_path / "README.md").write_text("# My project", encoding="utf-8")
    done = cli(*out, ".")
    assert (done.code, "not written by mast-tui" in done.err) == (1, True)
    assert (tmp_path / "README.md").read_text("utf-8") == "# My project"


@pytest.mark.parametrize("file_format", ["gold", "huggingface"])
def test_an_export_without_gold_stops_and_says_what_to_do(
    cli: Cli, tmp_path: Path, file_format: str
) -> None:
    table = "trace_id,annotator,mode,value\nt,ann,1.3,present\n"
    export = ("export", "--format", file_format, "-o", "gold")

    def import_table(rows: str) -> None:
        (tmp_path / "a.csv").write_text(table + rows)
        assert cli("import", "a.csv", "--format", "csv-long", "--allow-new").code == 0

    import_table("")
    for options, words in [
        ((), "no one has finished a trace; finish one in the app"),
        (("--gold", "settled"), "no verdict of two annotators agrees"),
        (("--annotators", "ann"), "there is no gold of ann"),
    ]:
        done = cli(*export, *options)
        assert (done.code, words in done.err, done.out) == (1, True, "")
    assert not (tmp_path / "gold").exists()
    import_table("t,ann,,finished\n")
    assert cli(*export).code == 0
    hidden = cli(*export, "--force", "--annotator", "bob")
    assert (hidden.code, "hidden from bob" in hidden.err) == (1, True)

"""Imported labels lie on spans that exist, wherever the trace is at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.conftest import Cli, Done

HEAD: Final = "trace_id,annotator,mode,value,span_first,span_last,quote,char_start,char_end,note\n"
MESSAGES: Final = [
    {"role": "user", "content": "Restart the pod, please."},
    {"role": "assistant", "content": "I restart the 🚀 pod."},
    {"role": "user", "content": "Thank you."},
]


@pytest.fixture
def trace(cli: Cli, tmp_path: Path) -> dict[str, Any]:
    """A trace that the workspace knows, as ``inspect --spans`` tells of it."""
    (tmp_path / "run.json").write_text(json.dumps({"messages": MESSAGES}))
    cli("judge", "run.json", "--judge", "rules", "--quiet")
    (file,) = cli("inspect", "run.json", "--spans", "--json").json["files"]
    (found,) = file["traces"]
    return dict(found)


def imported(
    cli: Cli, tmp_path: Path, trace: str, *rows: str, options: tuple[str, ...] = ()
) -> Done:
    """Import rows that begin behind the annotator."""
    (tmp_path / "l.csv").write_text(HEAD + "".join(f"{trace},ada,{row}\n" for row in rows))
    return cli("import", "l.csv", "--format", "csv-long", "--allow-new", "--json", *options)


def exported(cli: Cli, tmp_path: Path) -> list[str]:
    cli("export", "--format", "csv-long", "--labels", "ada", "-o", "out.csv")
    return (tmp_path / "out.csv").read_text().splitlines()[1:]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1.1,present,82,,,,,", "span '82' is not in the trace, which has 3 spans, "),
        ("1.1,present,KEY,82,,,,", "span '82' is not in the trace"),
        ("1.1,present,#4,,,,,", "span '#4' is not in the trace, which has 3 spans"),
        ("1.1,present,#3,#1,,,,", "span_first '#3' comes after span_last '#1' in the trace"),
        ("1.1,present,#0,,,,,", "span '#0' is not in the trace"),
        (",note,82,,,,,why", "span '82' is not in the trace"),
        ("1.1,present,KEY,,I stop,,,", "the quote 'I stop' is not in the text of span"),
        (
            "1.1,present,KEY,,restart,0,7,",
            "the quote 'restart' is not at characters 0 to 7 of span KEY, but at 2 to 9",
        ),
        (
            "1.1,present,KEY,,pod,900,903,",
            "the quote 'pod' is not at characters 900 to 903 of span KEY, but at 16 to 19",
        ),
    ],
)
def test_what_is_not_in_the_trace_is_a_bad_row(
    cli: Cli, tmp_path: Path, trace: dict[str, Any], row: str, reason: str
) -> None:
    key = trace["span_list"][1]["key"]
    rows = ("1.2,present,KEY,,,,,".replace("KEY", key), row.replace("KEY", key))
    done = imported(cli, tmp_path, trace["id"], *rows)
    assert (done.code, done.json["written"]) == (1, False)
    (problem,) = done.json["problems"]
    assert problem["place"] == "line 3"
    assert reason.replace("KEY", repr(key)) in problem["reason"]
    if "is not in the trace" in reason:
        assert "mast-tui inspect PATH --spans" in problem["reason"]
    done = imported(cli, tmp_path, trace["id"], *rows, options=("--skip-errors",))
    assert (done.code, done.json["labels"]) == (0, 1)


def test_nothing_is_left_of_work_that_lies_nowhere(
    cli: Cli, tmp_path: Path, trace: dict[str, Any]
) -> None:
    row = "1.1,present,82,,,,,"
    done = imported(cli, tmp_path, trace["id"], row)
    assert (done.code, done.json["traces"]) == (1, 0)
    assert "--skip-errors" not in done.err
    done = imported(cli, tmp_path, trace["id"], row, options=("--skip-errors",))
    assert (done.code, done.json["events"]["new"]) == (0, 0)


def test_a_number_stands_for_the_key(cli: Cli, tmp_path: Path, trace: dict[str, Any]) -> None:
    keys = [span["key"] for span in trace["span_list"]]
    rows = (
        f"1.1,present,#1,#3,,,,\n{trace['id']},ada,1.1,present,{keys[0]},{keys[2]},,,,",
        "1.2,present,#2,,🚀,14,15,",
        "1.3,present,,,,,,",
        ",note,#3,,,,,thanks",
    )
    done = imported(cli, tmp_path, trace["id"], *rows)
    assert (done.code, done.json["labels"]) == (0, 3), done.json["problems"]
    places = [row.split(",")[2:6] for row in exported(cli, tmp_path)]
    assert ["1.1", "present", keys[0], keys[2]] in places
    assert ["1.2", "present", keys[1], keys[1]] in places
    assert ["", "note", keys[2], keys[2]] in places
    again = imported(cli, tmp_path, trace["id"], *rows)
    assert again.json["events"]["new"] == 0


def test_two_rows_that_name_one_span_may_not_contradict(
    cli: Cli, tmp_path: Path, trace: dict[str, Any]
) -> None:
    key = trace["span_list"][0]["key"]
    rows = ("1.1,present,#1,,,,,one", f"1.1,present,{key},,,,,other")
    (problem,) = imported(cli, tmp_path, trace["id"], *rows).json["problems"]
    assert problem["place"] == "line 3"
    assert "comes twice with other details" in problem["reason"]


@pytest.mark.parametrize("is_known", [False, True])
def test_without_the_file_any_key_is_taken_and_no_number(
    cli: Cli, tmp_path: Path, trace: dict[str, Any], is_known: bool
) -> None:
    (tmp_path / "run.json").unlink()
    name = trace["id"] if is_known else "elsewhere"
    assert imported(cli, tmp_path, name, "1.1,present,82,,,,,").code == 0
    (problem,) = imported(cli, tmp_path, name, "1.1,present,#2,,,,,").json["problems"]
    assert "span '#2' is a number, and the trace's file is not at hand" in problem["reason"]


def test_the_other_formats_are_checked_too(cli: Cli, tmp_path: Path, trace: dict[str, Any]) -> None:
    key = trace["span_list"][1]["key"]
    imported(cli, tmp_path, trace["id"], f"1.1,present,{key},,,,,")
    cli("export", "--format", "label-studio", "--labels", "ada", "-o", "tasks.json")
    (task,) = json.loads((tmp_path / "tasks.json").read_text())
    task["data"]["spans"][1]["key"] = "elsewhere"
    for annotation in task["annotations"]:
        annotation["id"] = annotation["import_id"] = 77
        for result in annotation["result"]:
            result.pop("meta", None)
    (tmp_path / "tasks.json").write_text(json.dumps([task]))
    arguments = ("import", "tasks.json", "--format", "label-studio", "--annotator", "zoe", "--json")
    done = cli(*arguments, "--allow-new")
    assert done.code == 1
    (problem,) = done.json["problems"]
    assert problem["place"] == "task 1, annotation 1, result 1"
    assert "span 'elsewhere' is not in the trace" in problem["reason"]


def test_labels_of_a_trace_that_only_the_workspace_knows_are_checked(
    cli: Cli, tmp_path: Path, trace: dict[str, Any]
) -> None:
    error = {"category": "Goal Deviation", "location": "0123456789abcdef"}
    (tmp_path / "labels").mkdir()
    labels = {"trace_id": trace["id"], "errors": [error]}
    (tmp_path / "labels" / "x.json").write_text(json.dumps(labels))
    done = cli("import", "labels/x.json", "--format", "trail", "--allow-new", "--json")
    (problem,) = done.json["problems"]
    assert problem["place"] == f"trail on {trace['id']}"
    assert "span '0123456789abcdef' is not in the trace" in problem["reason"]

"""Notes on spans without a label, and slugs, in the exports that hold people's words."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

MESSAGES = [
    {"role": "user", "content": "Start."},
    {"role": "assistant", "content": "It is done."},
]
HEAD = "trace_id,annotator,mode,value,span_first,note,slug\n"


@pytest.fixture
def noted(cli: Cli, tmp_path: Path) -> tuple[str, str]:
    """A trace with a note of alice's on its first span; its id and the span's key."""
    (tmp_path / "run.json").write_text(json.dumps(MESSAGES), encoding="utf-8")
    (trace,) = cli("inspect", "run.json", "--spans", "--json").json["files"][0]["traces"]
    key = trace["span_list"][0]["key"]
    assert cli("judge", "run.json", "--judge", "rules").code == 0
    start = f"{trace['id']},alice,"
    rows = [f"{start},note,{key},look here,", f"{start},present,,,step_repetition"]
    rows += [f"{start}1.1,absent,,,", f"{start},finished,,,"]
    (tmp_path / "labels.csv").write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    done = cli("import", "labels.csv", "--format", "csv-long")
    assert done.code == 0, done.err
    return trace["id"], key


def long_rows(cli: Cli, path: Path, *args: str) -> list[dict[str, str]]:
    done = cli(*args, "export", "--format", "csv-long", "--labels", "alice", "-o", path)
    assert done.code == 0, done.err
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_long_holds_slugs_and_notes_and_reads_them(
    cli: Cli, tmp_path: Path, noted: tuple[str, str]
) -> None:
    rows = long_rows(cli, tmp_path / "rows.csv")
    assert [(row["mode"], row["slug"]) for row in rows if row["mode"]] == [
        ("1.1", "disobey_task_specification"),
        ("1.3", "step_repetition"),
    ]
    (note,) = [row for row in rows if row["value"] == "note"]
    assert (note["span_first"], note["note"], note["mode"]) == (noted[1], "look here", "")
    second_run = cli("import", "rows.csv", "--format", "csv-long", "--json")
    assert second_run.json["events"]["new"] == 0
    other = ("--workspace", "other.db")
    assert cli(*other, "import", "rows.csv", "--format", "csv-long").code == 0
    assert long_rows(cli, tmp_path / "other.csv", *other) == rows
    undone = cli(*other, "import", "--undo")
    assert undone.code == 0, undone.err
    assert long_rows(cli, tmp_path / "undone.csv", *other) == []


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1.3,note,{key},words,", "a note on a span and has no mode"),
        (",note,,words,", "names one span in span_first"),
        (",note,{key},,", "has an empty note"),
        ("1.3,present,,,premature_termination", "is step_repetition, but the slug says"),
    ],
)
def test_a_bad_row_is_told(
    cli: Cli, tmp_path: Path, noted: tuple[str, str], row: str, reason: str
) -> None:
    text = f"{HEAD}{noted[0]},bob,{row.format(key=noted[1])}\n"
    (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
    done = cli("import", "bad.csv", "--format", "csv-long", "--allow-new")
    assert done.code == 1
    assert reason in done.err


def test_another_note_on_a_span_takes_no_ones_place(
    cli: Cli, tmp_path: Path, noted: tuple[str, str]
) -> None:
    trace, key = noted
    for text, code in (("first", 0), ("second", 1)):
        row = f"{HEAD}{trace},bob,,note,{key},{text},\n"
        (tmp_path / "bob.csv").write_text(row, encoding="utf-8")
        done = cli("import", "bob.csv", "--format", "csv-long", "--allow-new")
        assert done.code == code
    assert "the note on span" in done.err


def test_gold_and_label_studio_hold_the_notes(
    cli: Cli, tmp_path: Path, noted: tuple[str, str]
) -> None:
    assert cli("export", "--format", "gold", "-o", "gold.json").code == 0
    (trace,) = json.loads((tmp_path / "gold.json").read_text("utf-8"))["traces"]
    (alice,) = trace["annotators"]
    assert alice["span_notes"] == [{"key": noted[1], "index": 0, "note": "look here"}]

    out = ("export", "--format", "label-studio", "--labels", "alice", "-o", "tasks.json")
    assert cli(*out).code == 0
    (task,) = json.loads((tmp_path / "tasks.json").read_text("utf-8"))
    (kept,) = task["meta"]["mast_tui"]["by"].values()
    assert kept["span_notes"] == {noted[1]: "look here"}
    other = ("--workspace", "other.db")
    assert cli(*other, "import", "tasks.json", "--format", "label-studio").code == 0
    rows = long_rows(cli, tmp_path / "other.csv", *other)
    assert [row["note"] for row in rows if row["value"] == "note"] == ["look here"]

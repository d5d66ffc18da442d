"""A judge's label has an origin of its own, in every format and from every older file."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from mast_tui.judges.rules import RULES, RulesJudge
from mast_tui.labels import Origin
from mast_tui.traces.library import samples_folder
from mast_tui.workspace import Workspace
from tests.cli.conftest import Cli

SAMPLES: Final = samples_folder()
JUDGE: Final = RulesJudge(RULES).name
OLD_JUDGE: Final = "judge:rules@2+all"


def older_export(folder: Path, judge: str = OLD_JUDGE) -> Path:
    """Write an export in which labels of the judge say ``manual``."""
    text = (SAMPLES / "workspace.jsonl").read_text("utf-8")
    assert '"origin": "suggested"' in text
    text = text.replace('"origin": "suggested"', '"origin": "manual"').replace(JUDGE, judge)
    path = folder / "older.jsonl"
    path.write_text(text, "utf-8")
    return path


@pytest.fixture(params=["judged now", "older file"])
def judge(request: pytest.FixtureRequest, cli: Cli, tmp_path: Path) -> str:
    """The name of a judge that has labelled here."""
    if request.param == "judged now":
        done = cli("judge", SAMPLES, "--judge", "rules", "--rules", "all", "--quiet", "--json")
        return str(done.json["judge"])
    cli("import", older_export(tmp_path), "--format", "jsonl")
    with closing(sqlite3.connect(tmp_path / ".mast-tui" / "workspace.db")) as raw:
        query = "SELECT DISTINCT origin FROM labels WHERE annotator = ?"
        assert raw.execute(query, [OLD_JUDGE]).fetchall() == [("manual",)]
    return OLD_JUDGE


def origins(cli: Cli, tmp_path: Path, judge: str, file_format: str) -> set[str]:
    """The origins of the judge's labels in an export."""
    out = tmp_path / f"out-{file_format}"
    holds_gold = file_format in ("gold", "huggingface")
    options = ("--annotators", f"mira,{judge}") if holds_gold else ("--labels", judge)
    done = cli("export", "--format", file_format, *options, "-o", out)
    assert done.code == 0, done.err
    if file_format == "csv-long":
        with out.open() as file:
            rows = [row for row in csv.DictReader(file) if row["value"] == "present"]
        return {row["origin"] for row in rows}
    if file_format == "huggingface":
        text = (out / "data" / "labels.jsonl").read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        return {row["origin"] for row in rows if row["annotator"] == judge}
    return set(_origins_of(json.loads(out.read_text()), judge, ""))


def _origins_of(value: Any, judge: str, whose: str) -> list[str]:
    """Every origin beneath the judge's name."""
    if isinstance(value, list):
        return [one for inner in value for one in _origins_of(inner, judge, whose)]
    if not isinstance(value, dict):
        return []
    whose = str(value.get("name") or value.get("annotator") or whose)
    found = [str(value["origin"])] if "origin" in value and whose == judge else []
    return found + [one for inner in value.values() for one in _origins_of(inner, judge, whose)]


@pytest.mark.parametrize("file_format", ["csv-long", "label-studio"])
def test_every_format_says_suggested(
    cli: Cli, tmp_path: Path, judge: str, file_format: str
) -> None:
    assert origins(cli, tmp_path, judge, file_format) == {"suggested"}


@pytest.mark.parametrize("file_format", ["gold", "huggingface"])
def test_gold_says_so_of_a_judge_that_is_a_side(cli: Cli, tmp_path: Path, file_format: str) -> None:
    cli("import", older_export(tmp_path), "--format", "jsonl")
    assert origins(cli, tmp_path, OLD_JUDGE, file_format) == {"suggested"}


def test_new_events_say_so_and_older_ones_stay_as_they_were_written(
    cli: Cli, tmp_path: Path
) -> None:
    def exported(*options: str) -> list[dict[str, Any]]:
        cli("export", "--format", "jsonl", "-o", "all.jsonl", *options)
        lines = map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())
        return [line for line in lines if line.get("kind") == "label_added"]

    cli("import", older_export(tmp_path, JUDGE), "--format", "jsonl")
    before = exported()
    cli("judge", SAMPLES, "--judge", "rules", "--rules", "all", "--quiet")
    # The same judge again finds what it has found, whatever was written of its origin.
    assert exported() == before
    assert cli("workspace", "check").code == 0
    other = ("--workspace", "other.db")
    cli("judge", SAMPLES, "--judge", "rules", "--rules", "all", "--quiet", *other)
    new = exported(*other)
    assert {one["payload"]["label"]["origin"] for one in new} == {"suggested"}


def test_one_judge_under_two_versions_comes_together(cli: Cli, tmp_path: Path) -> None:
    """Another machine judged the same traces with the version before."""
    cli("judge", SAMPLES, "--judge", "rules", "--rules", "all", "--quiet")
    cli("export", "--format", "jsonl", "-o", "new.jsonl")
    text = (tmp_path / "new.jsonl").read_text()
    older = [
        json.dumps(json.loads(line) | {"id": f"older-{number}"}) if '"event"' in line else line
        for number, line in enumerate(text.replace('"suggested"', '"manual"').splitlines())
    ]
    (tmp_path / "older.jsonl").write_text("\n".join(older))
    done = cli("import", "older.jsonl", "--format", "jsonl")
    assert done.code == 0, done.err


@pytest.mark.parametrize("origin", ["manual", "suggested", ""])
def test_rows_of_a_judge_and_of_a_person(cli: Cli, tmp_path: Path, origin: str) -> None:
    rows = "trace_id,annotator,mode,value,origin\n"
    rows += f"t,judge:x,1.1,present,{origin}\nt,ada,1.1,present,{origin}\n"
    rows += "t,judge:x,1.2,absent,\nt,judge:x,,finished,\n"
    (tmp_path / "l.csv").write_text(rows)
    for _ in range(2):
        done = cli("import", "l.csv", "--format", "csv-long", "--json")
        assert (done.code, done.json["notes"]) == (0, [])
    with closing(Workspace.open(tmp_path / ".mast-tui" / "workspace.db")) as workspace:
        kept = {label.annotator: label.origin for label in workspace.labels()}
    assert kept == {
        "judge:x": Origin.SUGGESTED if origin else Origin.IMPORTED,
        "ada": Origin.MANUAL if origin == "manual" else Origin.IMPORTED,
    }

"""Commands with ``--workers``: the same results, and reports of the processes."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.judges.rules import RulesJudge
from mast_tui.traces.library import samples_folder
from tests.cli.conftest import Cli
from tests.cli.test_exam import write_set
from tests.cli.test_judge import write_run
from tests.pickled_workers import PickledWorkers


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A folder with sample traces, a broken file and a file that is no trace."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("ad-restart-loop.jsonl", "chatdev_routelat.json", "outcomes.csv"):
        shutil.copy(samples_folder() / name, folder)
    (folder / "broken.json").write_text("{")
    (folder / "notes.md").write_text("nothing")
    return folder


@pytest.fixture
def pickled_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mast_tui.cli.shared.workers.workers_of", lambda _wanted: PickledWorkers())


@pytest.mark.usefixtures("pickled_workers")
@pytest.mark.parametrize(
    "options", [("--json",), ("--json", "--spans"), ("--spans",), ("--blind",)]
)
def test_inspect_prints_the_same(cli: Cli, samples: Path, options: tuple[str, ...]) -> None:
    plain = cli("inspect", samples, *options)
    result = cli("inspect", samples, *options, "--workers", "2")
    assert (result.code, result.out) == (plain.code, plain.out)
    assert "2 traces" in result.err
    assert "by 1 process" in result.err


@pytest.mark.usefixtures("pickled_workers")
@pytest.mark.parametrize("target", ["mast-tui", "atif"])
def test_convert_writes_the_same(cli: Cli, samples: Path, tmp_path: Path, target: str) -> None:
    cli("convert", samples, "--to", target, "-o", "plain.jsonl")
    cli("convert", samples, "--to", target, "-o", "done.jsonl", "--workers", "2")
    assert (tmp_path / "done.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()


def labels_in(cli: Cli, workspace: str) -> list[dict[str, str]]:
    """Return the exported labels of a workspace in order, without times."""
    rows = [row | {"created_at": ""} for row in cli.rows("--workspace", workspace)]
    return sorted(rows, key=str)


@pytest.mark.usefixtures("pickled_workers")
def test_the_rules_suggest_the_same(
    cli: Cli, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("judge", samples, "--judge", "rules", "--rules", "all", "--json")
    plain = cli(*arguments, "--workspace", "plain.db").json
    document = cli(*arguments, "--workspace", "done.db", "--workers", "2").json
    assert document | {"run": None} == plain | {"run": None}
    assert document["suggestions"] > 0
    assert labels_in(cli, "done.db") == labels_in(cli, "plain.db")
    monkeypatch.delattr(RulesJudge, "judge")  # known traces are not judged again
    repeated = cli(*arguments, "--workspace", "done.db", "--workers", "2").json["traces"]
    assert (repeated["known"], repeated["judged"]) == (document["traces"]["judged"], 0)


@pytest.mark.slow
def test_a_local_process_judges(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    result = cli.ok("judge", "run.json", "--judge", "rules", "--workers", "1")
    assert "1 trace judged" in result.out
    assert "by 1 process" in result.err


def test_workers_that_cannot_be_used_are_refused(cli: Cli) -> None:
    cli.refused("inspect", ".", "--workers", "many", says="not a number of workers")
    model = ("judge", ".", "--judge", "llm", "--model", "m", "--workers", "2")
    cli.refused(*model, says="--concurrency", code=2)


def output_and_labels(cli: Cli, workspace: str, *args: object) -> tuple[str, list[dict[str, str]]]:
    result = cli.ok(*args, "--workspace", workspace, "--json")
    return result.out, labels_in(cli, workspace)


@pytest.mark.usefixtures("pickled_workers")
def test_shards_are_added_up_and_imported_with_workers(
    cli: Cli, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mast_tui.scale.figures._FILES_PER_BATCH", 1)
    shutil.copytree(samples, samples / "copies")
    arguments = ("judge", samples, "--judge", "rules", "--out", "shards", "--shard-files", "1")
    assert cli(*arguments, "--workers", "2").code == 1, "one file is broken"
    report = ("report", "shards", "--by", "model", "--json")
    assert cli(*report, "--workers", "2").out == cli(*report).out
    sample = ("import", "shards", "--sample", 1, "--where", "mode=1.3")
    result = output_and_labels(cli, "done.db", *sample, "--workers", "2")
    assert result == output_and_labels(cli, "plain.db", *sample)
    assert len(result[1]) > 1


@pytest.mark.usefixtures("pickled_workers")
def test_a_labelled_set_is_imported_and_examined_with_workers(cli: Cli, tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set")
    (folder / "broken.json").write_text("{")
    command: tuple[object, ...] = ("import", folder, "--format", "who-and-when", "--skip-errors")
    result = output_and_labels(cli, "done.db", *command, "--workers", "2")
    assert result == output_and_labels(cli, "plain.db", *command)
    assert len(result[1]) > 4
    report = ("report", "--workspace", "plain.db", "--labels", "who-and-when", "--json")
    # As in an older workspace, the order of the labelled spans is read from the files.
    with closing(sqlite3.connect("plain.db")) as raw, raw:
        raw.execute("DELETE FROM span_indices")
    with_workers = cli(*report, "--workers", "2")
    assert (with_workers.out, "4 traces" in with_workers.err) == (cli(*report).out, True)
    (folder / "broken.json").unlink()
    table = [f"{row['trace_id']},you,1.3,present" for row in result[1] if row["mode"]]
    Path("truth.csv").write_text("\n".join(["trace_id,annotator,mode,value", *table]))
    for name in ("who-and-when", "truth.csv"):
        command = ("exam", folder, "--set", name, "--judge", "rules", "--json")
        plain = cli(*command)
        with_workers = cli(*command, "--workers", "2")
        assert (plain.code, plain.out) == (with_workers.code, with_workers.out), plain.err
        assert "4 traces" in with_workers.err

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
    """Some of the sample traces, one that is broken and one that is none."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("ad-restart-loop.jsonl", "chatdev_routelat.json", "outcomes.csv"):
        shutil.copy(samples_folder() / name, folder)
    (folder / "broken.json").write_text("{")
    (folder / "notes.md").write_text("nothing")
    return folder


@pytest.fixture
def pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mast_tui.cli.shared.workers.workers_of", lambda _wanted: PickledWorkers())


@pytest.mark.usefixtures("pickled")
@pytest.mark.parametrize(
    "options", [("--json",), ("--json", "--spans"), ("--spans",), ("--blind",)]
)
def test_inspect_prints_the_same(cli: Cli, samples: Path, options: tuple[str, ...]) -> None:
    plain = cli("inspect", samples, *options)
    done = cli("inspect", samples, *options, "--workers", "2")
    assert (done.code, done.out) == (plain.code, plain.out)
    assert "2 traces" in done.err
    assert "by 1 process" in done.err


@pytest.mark.usefixtures("pickled")
@pytest.mark.parametrize("to", ["mast-tui", "atif"])
def test_convert_writes_the_same(cli: Cli, samples: Path, tmp_path: Path, to: str) -> None:
    cli("convert", samples, "--to", to, "-o", "plain.jsonl")
    cli("convert", samples, "--to", to, "-o", "done.jsonl", "--workers", "2")
    assert (tmp_path / "done.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()


def labels_in(cli: Cli, workspace: str) -> list[dict[str, str]]:
    """Return the exported labels of a workspace in order, without times."""
    rows = [row | {"created_at": ""} for row in cli.rows("--workspace", workspace)]
    return sorted(rows, key=str)


@pytest.mark.usefixtures("pickled")
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
    again = cli(*arguments, "--workspace", "done.db", "--workers", "2").json["traces"]
    assert (again["known"], again["judged"]) == (document["traces"]["judged"], 0)


@pytest.mark.slow
def test_a_local_process_judges(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    done = cli.ok("judge", "run.json", "--judge", "rules", "--workers", "1")
    assert "1 trace judged" in done.out
    assert "by 1 process" in done.err


def test_workers_that_cannot_be_used_are_refused(cli: Cli) -> None:
    cli.refused("inspect", ".", "--workers", "many", says="not a number of workers")
    model = ("judge", ".", "--judge", "llm", "--model", "m", "--workers", "2")
    cli.refused(*model, says="--concurrency", code=2)


def report_and_labels(cli: Cli, workspace: str, *words: object) -> tuple[str, list[dict[str, str]]]:
    done = cli.ok(*words, "--workspace", workspace, "--json")
    return done.out, labels_in(cli, workspace)


@pytest.mark.usefixtures("pickled")
def test_shards_are_added_up_and_imported_the_same(
    cli: Cli, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mast_tui.scale.figures._FILES_PER_BATCH", 1)
    shutil.copytree(samples, samples / "copies")
    arguments = ("judge", samples, "--judge", "rules", "--out", "shards", "--shard-files", "1")
    assert cli(*arguments, "--workers", "2").code == 1, "one file is broken"
    report = ("report", "shards", "--by", "model", "--json")
    assert cli(*report, "--workers", "2").out == cli(*report).out
    sample = ("import", "shards", "--sample", 1, "--where", "mode=1.3")
    done = report_and_labels(cli, "done.db", *sample, "--workers", "2")
    assert done == report_and_labels(cli, "plain.db", *sample)
    assert len(done[1]) > 1


@pytest.mark.usefixtures("pickled")
def test_a_labelled_set_is_imported_and_examined_the_same(cli: Cli, tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set")
    (folder / "broken.json").write_text("{")
    words: tuple[object, ...] = ("import", folder, "--format", "who-and-when", "--skip-errors")
    done = report_and_labels(cli, "done.db", *words, "--workers", "2")
    assert done == report_and_labels(cli, "plain.db", *words)
    assert len(done[1]) > 4
    report = ("report", "--workspace", "plain.db", "--labels", "who-and-when", "--json")
    # As an earlier version left it: where the labelled spans stand is read from the files.
    with closing(sqlite3.connect("plain.db")) as raw, raw:
        raw.execute("DELETE FROM span_indices")
    told = cli(*report, "--workers", "2")
    assert (told.out, "4 traces" in told.err) == (cli(*report).out, True)
    (folder / "broken.json").unlink()
    table = [f"{row['trace_id']},you,1.3,present" for row in done[1] if row["mode"]]
    Path("truth.csv").write_text("\n".join(["trace_id,annotator,mode,value", *table]))
    for name in ("who-and-when", "truth.csv"):
        words = ("exam", folder, "--set", name, "--judge", "rules", "--json")
        plain, done_too = cli(*words), cli(*words, "--workers", "2")
        assert (plain.code, plain.out) == (done_too.code, done_too.out), plain.err
        assert "4 traces" in done_too.err

"""``mast-tui experiment``: differences between runs of two versions."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

from mast_tui.taxonomy.loader import load_mast
from tests.cli.conftest import Cli

CODES = tuple(mode.code for mode in load_mast().modes)
RATES = {"1.3": 0.4, "2.6": 0.3, "3.3": 0.5}


def write_labels(file: Path, later: dict[str, float], *, tasks: int = 60, runs: int = 3) -> None:
    """Write the labels of two versions as csv-wide; the later one differs in some modes."""
    generator = random.Random(7)
    with file.open("w", newline="") as out:
        columns = ("trace_id", "annotator", "version", "task_id", "trial", "outcome", *CODES)
        writer = csv.DictWriter(out, columns)
        writer.writeheader()
        for version, rates in (("1.0", RATES), ("2.0", {**RATES, **later})):
            for task in range(tasks):
                ease = generator.gauss(0, 0.1)
                for trial in range(runs):
                    labels = {
                        code: int(generator.random() < rates.get(code, 0.1) + ease)
                        for code in CODES
                    }
                    row: dict[str, Any] = {
                        "trace_id": f"{version}-{task}-{trial}",
                        "annotator": "judge:made@1",
                        "version": version,
                        "task_id": f"T{task}",
                        "trial": trial,
                        "outcome": generator.choice(("failed", "succeeded")),
                    }
                    writer.writerow(row | labels)


def changed_modes(document: Any, arm: str) -> list[str]:
    modes = document["arms"][arm]["modes"]
    return [code for code in modes if modes[code]["difference"]["p_adjusted"] < 0.05]


def test_a_planted_gain_is_found_and_no_other(cli: Cli, tmp_path: Path) -> None:
    for name, later, expected in (("gain", {"1.3": 0.2}, ["1.3"]), ("same", {}, [])):
        write_labels(tmp_path / f"{name}.csv", later)
        workspace = ("--workspace", f"{name}.db")
        arguments = ("--format", "csv-wide", "--allow-new", *workspace)
        cli.ok("import", f"{name}.csv", *arguments)
        command = ("experiment", "--labels", "judge:made@1", "--without-power", *workspace)
        document = cli.json(*command, "--baseline", "1.0")
        assert document["power"] is None
        assert changed_modes(document, "2.0") == expected
        assert ("no significant change" in cli(*command, "--baseline", "1.0").out) == (not expected)
        cli.ok(*command, "--html", f"{name}.html")
    page = (tmp_path / "gain.html").read_text()
    assert "Modes in runs of 2.0 and 1.0" in page


def test_the_report_has_the_planned_power(cli: Cli, tmp_path: Path) -> None:
    write_labels(tmp_path / "gain.csv", {"1.3": 0.2})
    cli.ok("import", "gain.csv", "--format", "csv-wide", "--allow-new")
    arguments = ("experiment", "--labels", "judge:made@1", "--mode", "1.3", "--change", "15")
    power = cli.json(*arguments)["power"]
    assert power["change"] == 0.15
    assert list(power["modes"]) == ["1.3"]
    needed = power["modes"]["1.3"]["tasks_needed"]
    assert needed["1"] > needed["3"] > needed["5"] > 0
    assert 0 < power["modes"]["1.3"]["power"] < 1
    assert "Power and sample size" in cli(*arguments).out


def trace_line(name: str, version: int, **facts: Any) -> str:
    """Return a trace in the project's own format; the text of the task is always the same."""
    spans = [{"index": 0, "key": "k0", "kind": "message", "role": "agent", "text": "Done."}]
    record = {
        "format": "mast-tui trace", "version": 1, "task": "Find the root cause.",
        "id": f"{name}-{version}-{facts.get('trial', 0)}", "system": f"harness-{version}",
        "spans": spans,
    }  # fmt: skip
    return json.dumps(record | facts, separators=(",", ":")) + "\n"


def exported_trace(cli: Cli, workspace: str) -> Any:
    lines = map(json.loads, cli.export("jsonl", "--workspace", workspace).splitlines())
    [trace] = [line for line in lines if line["record"] == "trace"]
    return trace


def test_tasks_are_recognized_by_their_ids_and_not_by_their_text(cli: Cli) -> None:
    for version in (1, 2):
        folder = Path(f"runs-{version}")
        folder.mkdir()
        for task in range(8):
            for trial in range(2):
                text = trace_line(f"T{task}", version, task_id=f"T{task}", trial=trial)
                (folder / f"{task}-{trial}.jsonl").write_text(text)
    cli.ok("judge", "runs-1", "runs-2", "--judge", "rules")
    labels = ("--labels", "judge:rules@5", "--without-power")
    by_system = cli.json("experiment", "--arms", "system", *labels)
    first_arm = ("--arm", "before=runs-2/../runs-1")
    by_path = cli.json("experiment", *first_arm, "--arm", "after=runs-2", *labels)
    for document, arms in ((by_system, ["harness-1", "harness-2"]), (by_path, ["before", "after"])):
        assert document["tasks_by_words"] == 0
        assert list(document["arms"]) == arms
        assert document["baseline"] == arms[0]
        for arm in arms:
            figures = document["arms"][arm]
            assert (figures["tasks"], figures["runs"], figures["shared_tasks"]) == (8, 16, 8)
    message = "an experiment needs two arms or more; by system there is harness-1"
    cli.refused("experiment", "runs-1", "--arms", "system", *labels, says=message)
    copy = trace_line("T0", 1, task_id="T0", trial=0).replace("T0-1-0", "copy")
    Path("runs-1", "copy.jsonl").write_text(copy)
    cli.ok("judge", "runs-1", "--judge", "rules")
    with_copy = ("experiment", "--arm", "(unknown)=runs-1", "--arm", "after=runs-2", *labels)
    assert "1 run with the same arm, task and trial number as another run" in cli(*with_copy).out
    document = cli.json(*with_copy)
    assert document["repeated_trials"] == 1
    assert document["arms"]["(unknown)"]["runs"] == 17
    assert len(cli.json("report", "--by", "task", *labels[:2])["groups"]) == 8
    runs = csv.DictReader(cli.export("csv-wide", "--labels", "all").splitlines())
    rows = ["{0},ann,1.3,absent\n{0},ann,,finished".format(run["trace_id"]) for run in runs]
    Path("ann.csv").write_text("\n".join(("trace_id,annotator,mode,value", *rows)))
    cli.ok("import", "ann.csv", "--format", "csv-long", "--allow-new")
    two_runs = [f"--arm={version}=runs-{version}/0-0.jsonl" for version in (1, 2)]
    assert "(verdicts: 2 single); 2 runs" in cli("experiment", *two_runs, "--without-power").out


def test_tasks_without_an_id_are_recognized_by_their_text(cli: Cli) -> None:
    for version in (1, 2):
        for task in range(6):
            text = trace_line(f"w{task}", version, task=f"Task {task}")
            Path(f"{task}-{version}.jsonl").write_text(text)
    cli.ok("judge", ".", "--judge", "rules")
    arguments = ("experiment", "--arms", "system", "--labels", "judge:rules@5", "--without-power")
    assert cli.json(*arguments)["tasks_by_words"] == 12
    assert "12 runs without a task id" in cli(*arguments).out


def test_task_and_trial_are_read_from_tables_and_outcomes(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text(
        "trace_id,annotator,mode,value,task_id,trial\n"
        "a-1,ann,1.3,present,T1,1\na-1,ann,,finished,T1,1\na-2,ann,1.3,absent,T1,2.0\n"
        "a-2,ann,1.3,absent,T2,2\na-3,ann,1.3,absent,T1,x\n"
    )
    result = cli("import", "long.csv", "--format", "csv-long", "--allow-new", "--skip-errors")
    assert "task_id is 'T1' in one row and 'T2' in another" in result.err
    assert "trial is 'x'; expected a whole number from 0" in result.err
    [row] = csv.DictReader(cli.export("csv-wide", "--labels", "all").splitlines())
    assert (row["trace_id"], row["task_id"], row["trial"]) == ("a-1", "T1", "1")
    options = ("--format", "csv-wide", "--allow-new", "--workspace", "again.db")
    cli.ok("import", "exported", *options)
    trace = exported_trace(cli, "again.db")
    assert (trace["task_id"], trace["trial"]) == ("T1", 1)
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "r.jsonl").write_text(trace_line("r", 1))
    (runs / "outcomes.csv").write_text("trace,task_id,trial\nr.jsonl,T9,3\nother,T9,-1\n")
    inspected = cli("inspect", "runs", "--json")
    assert "trial is '-1'; expected a whole number from 0" in inspected.out
    cli.ok("judge", "runs", "--judge", "rules", "--workspace", "third.db")
    trace = exported_trace(cli, "third.db")
    assert (trace["task_id"], trace["trial"]) == ("T9", 3)


def test_arms_that_exclude_each_other_are_refused(cli: Cli, tmp_path: Path) -> None:
    for options, message in (
        (("--arm", "a"), "--arm a: write it as NAME=PATH"),
        (("--arm", "a=b", "--arms", "model"), "leave out --arms"),
        (("--judge", "j", "--labels", "me"), "leave out --labels"),
        (("--failed-below", "nan"), "--failed-below needs a score, not nan"),
    ):
        cli.refused("experiment", *options, says=message, code=2)
    path = tmp_path / "runs" / "one.json"
    path.parent.mkdir()
    path.write_text(json.dumps([{"role": "user", "content": "Go"}] * 2))
    cli.ok("judge", path, "--judge", "rules", "--quiet")
    arms = ("--arm", "a=runs", "--arm", "b=runs/one.json")
    cli.refused("experiment", *arms, says="have files in common")
    cli.refused("experiment", "--judge", "zoe", says="no judge 'zoe' in this workspace")

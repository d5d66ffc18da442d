"""Gold, conflicts and figures are the same from any directory, and without the files of traces."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mast_tui.adjudication import Adjudication, SpanOrders, queue, take_on
from mast_tui.gold.choice import Choice
from mast_tui.labels import Target, VerdictValue
from mast_tui.session import Session
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace
from mast_tui.workspace.records import SpanIndex
from tests.cli.conftest import Cli, Done, opened

MAST = load_mast()
MODES = {mode.code: mode.slug for mode in MAST.modes}
TURNS = 12
FEW = ("--rounds", 10)
UNDER = Path(".mast-tui", "workspace.db")


def write_run(folder: Path, name: str) -> Path:
    """Write a conversation of ``TURNS`` messages, other words in each file."""
    folder.mkdir(parents=True, exist_ok=True)
    turns = [
        {"role": ("user", "assistant")[turn % 2], "content": f"{name}: turn {turn} of the run"}
        for turn in range(TURNS)
    ]
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"messages": turns}), encoding="utf-8")
    return path


def read_run(path: Path) -> Trace:
    (trace,) = read_file(path, named=True).traces
    read_fully(trace)
    return trace


def spans(trace: Trace, first: int, last: int) -> Target:
    return Target(trace.span(first).key, trace.span(last).key)


def label(
    workspace: Workspace, path: Path, name: str, targets: dict[str, Callable[[Trace], Target]]
) -> None:
    """Have an annotator label a trace in a session and finish it."""
    trace = read_run(path)
    session = Session.open(workspace, trace, MAST, name, blind=True)
    session.mark_read([trace.span(index).key for index in range(0, TURNS, 2)], [])
    for code, target in targets.items():
        session.toggle_label(MODES[code], target(trace), suggestions_on_screen=False)
    session.finish(open_modes="absent")


def quoted(index: int, start: int, end: int) -> Callable[[Trace], Target]:
    """Return a function that makes a quote of a span of its trace."""

    def target(trace: Trace) -> Target:
        key = trace.span(index).key
        return Target(key, key, trace.text(index)[start:end], start, end)

    return target


def ada(trace: Trace) -> Target:
    return spans(trace, 2, 4)


def ben(trace: Trace) -> Target:
    return spans(trace, 3, 6)


def between(first: int, last: int) -> Callable[[Trace], Target]:
    return lambda trace: spans(trace, first, last)


def imported(cli: Cli, folder: Path) -> Path:
    """A workspace made by an import before its traces were ever read; then they are."""
    keys = {}
    for name in ("one", "two"):
        trace = read_run(write_run(folder / "runs", name))
        keys[trace.identity.trace_id] = [trace.span(index).key for index in range(TURNS)]
    rows = ["trace_id,annotator,mode,value,span_first,span_last"]
    for trace_id, key in keys.items():
        for who, first, last in (("ada", 2, 4), ("ben", 3, 6)):
            rows.append(f"{trace_id},{who},1.3,present,{key[first]},{key[last]}")
            rows.append(f"{trace_id},{who},,finished,,")
    file = folder / "labels.csv"
    file.write_text("\n".join(rows) + "\n")
    place = folder / UNDER
    where = ("--workspace", place)
    assert not cli("import", file, "--format", "csv-long", "--allow-new", *where).code
    cli.refused("export", "--format", "gold", "-o", folder / "no.json", *where)
    assert not (folder / "no.json").exists()
    cli.ok("judge", folder / "runs", "--judge", "rules", *where)
    return place


def labelled(cli: Cli, folder: Path) -> Path:
    """A workspace in which two people labelled in sessions, and somebody adjudicated."""
    place = folder / UNDER
    runs = [write_run(folder / "runs", name) for name in ("one", "two", "three")]
    with closing(Workspace.open(place)) as workspace:
        for run in runs:
            label(workspace, run, "ada", {"1.3": ada, "2.6": quoted(1, 0, 9)})
            label(workspace, run, "ben", {"1.3": ben, "2.6": between(1, 2)})
        label(workspace, runs[0], "cho", {"1.3": between(8, 9)})
        trace_id = read_run(runs[0]).identity.trace_id
        take_on(workspace, MAST, "dee", [trace_id])
        work = Adjudication(workspace, MAST, trace_id, "dee", order=SpanOrders(workspace)(trace_id))
        conflict = next(
            conflict for conflict in work.gold.conflicts if conflict.mode == MODES["1.3"]
        )
        place_of_all = (spans(read_run(runs[0]), 1, 7),)
        work.decide(conflict, Choice(VerdictValue.PRESENT, place_of_all, ()))
    return place


def merged(cli: Cli, folder: Path) -> Path:
    """A workspace merged from the exports of other machines, on which the traces are."""
    exports = []
    for name, target in (("ada", ada), ("ben", ben)):
        machine = folder.with_name(f"machine of {name}")
        with closing(Workspace.open(machine / UNDER)) as workspace:
            for run in ("one", "two"):
                path = write_run(machine / "runs", run)
                label(workspace, path, name, {"1.3": target, "2.6": quoted(5, 3, 11)})
        exports.append(folder.with_name(f"{name}.jsonl"))
        done = cli.ok(
            "export", "--format", "jsonl", "-o", exports[-1], "--workspace", machine / UNDER
        )
        shutil.rmtree(machine)
    folder.mkdir()
    place = folder / UNDER
    cli.ok("import", *exports, "--format", "jsonl", "--allow-new", "--workspace", place)
    return place


def results(cli: Cli, place: Path, output: Path) -> dict[str, Any]:
    """All that must not depend on the directory."""

    def run(*words: object) -> Done:
        return cli.ok(*words, "--workspace", place)

    run("export", "--format", "gold", "-o", output, "--force")
    with closing(Workspace.open(place, create=False)) as workspace:
        entries = queue(workspace, MAST, "dee", order_of=SpanOrders(workspace))
        left = [(entry.trace_id, entry.gold and entry.gold.conflicts) for entry in entries]
    return {
        "gold": output.read_bytes(),
        "datasheet": output.with_name("gold.datasheet.md").read_bytes(),
        "status": run("status", "--json").out,
        "agree": run("agree", *FEW, "--json").out,
        "report": run("report", "--by", "all", *FEW, "--json").out,
        "csv": run("export", "--format", "csv-long", "-o", "-").out,
        "queue": left,
    }


@pytest.mark.parametrize(
    ("make", "directories"),
    [
        (imported, {"deleted": ("elsewhere",)}),
        (merged, {"deleted": ("elsewhere",)}),
        (
            labelled,
            {
                "present": ("study/runs/deeper", "elsewhere"),
                "moved": ("study",),
                "deleted": ("elsewhere",),
            },
        ),
    ],
)
def test_all_is_the_same_from_any_directory_with_and_without_the_files(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Cli, Path], Path],
    directories: dict[str, tuple[str, ...]],
) -> None:
    folder = tmp_path / "study"
    place = make(cli, folder)
    (folder / "runs" / "deeper").mkdir(parents=True, exist_ok=True)
    (tmp_path / "elsewhere" / "runs").mkdir(parents=True)
    output = tmp_path / "gold.json"
    # Nothing has asked for an order yet: what was kept so far is enough.
    without_files = tmp_path / "copy"
    shutil.copytree(folder, without_files)
    shutil.rmtree(without_files / "runs")
    in_copy = results(cli, without_files / UNDER, output)
    first = results(cli, place, output)
    assert in_copy["status"].replace(str(without_files), str(folder)) == first["status"]
    for name in first.keys() - {"status"}:
        assert in_copy[name] == first[name], name
    gold = json.loads(first["gold"])
    assert gold["unordered"] == json.loads(first["status"])["conflicts"]["unordered"] == 0
    assert json.loads(first["agree"])["spans"]["traces"]["not_at_hand"] == 0
    merged_labels = [one for trace in gold["traces"] for one in trace["labels"] if one["merged"]]
    assert merged_labels
    for files, current in directories.items():
        if files == "moved":
            (folder / "runs").rename(folder / "moved")
            (folder / "runs").mkdir()
        if files == "deleted":
            for traces in (folder / "runs", folder / "moved"):
                shutil.rmtree(traces, ignore_errors=True)
        for directory in current:
            monkeypatch.chdir(tmp_path / directory)
            again = results(cli, place, output)
            for name, before in first.items():
                assert again[name] == before, (files, directory, name)


def test_export_says_how_many_places_have_no_order_and_where_their_files_were_looked_for(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "study"
    place = labelled(cli, folder)
    where = ("--workspace", place)
    with closing(Workspace.open(place)) as workspace, workspace._database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM span_indices")
    (folder / "runs").rename(folder / "moved")
    for file_format in ("gold", "csv-long", "huggingface", "doccano"):
        output = tmp_path / "out"
        done = cli.refused("export", "--format", file_format, "-o", output, *where)
        assert not output.exists()
        # Two people differ on two modes in each of three traces; cho's label is another.
        assert "13 labelled spans in 3 traces" in done.err
        assert str(folder / "runs" / "one.json") in done.err
        assert "--allow-unordered" in done.err
    status = cli("status", *where)
    assert "13 labelled spans of unknown order" in status.out
    assert cli.json("status", *where)["conflicts"]["unordered"] == 13
    assert "order of the spans of the 3 traces" in cli("agree", *FEW, *where).out
    cli.ok("export", "--format", "csv-wide", "-o", tmp_path / "wide.csv", *where)
    gold = tmp_path / "gold.json"
    forced = ("export", "--format", "gold", "-o", gold, "--allow-unordered", *where)
    cli.ok(*forced)
    assert json.loads(gold.read_text())["unordered"] == 13
    sheet = (tmp_path / "gold.datasheet.md").read_text()
    assert "order is not known, so that overlaps with others may be missed: 13" in sheet
    # Opening the traces again is enough, wherever they are now.
    cli.ok("judge", folder / "moved", "--judge", "rules", *where)
    shutil.rmtree(folder / "moved")
    cli.ok("export", "--format", "gold", "-o", gold, *where)
    assert cli.json("status", *where)["conflicts"]["unordered"] == 0


def test_spans_that_are_not_in_their_trace_are_told_apart(cli: Cli, tmp_path: Path) -> None:
    place = labelled(cli, tmp_path / "study")
    with closing(Workspace.open(place)) as workspace:
        (trace_id,) = (trace.trace_id for trace in workspace.traces() if "two" in trace.trace_id)
        key = read_run(tmp_path / "study" / "runs" / "two.json").span(4).key
        workspace.keep_span_indices({trace_id: {key: SpanIndex(None)}})
    done = cli.refused(
        "export",
        "--format",
        "gold",
        "-o",
        "gold.json",
        "--workspace",
        place,
        says=("2 labelled spans in 1 trace is unknown", "The spans are not in the traces there"),
    )
    assert "not found" not in done.err


def test_a_judge_keeps_where_its_suggestions_stand(cli: Cli, tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turns: list[dict[str, Any]] = [{"role": "user", "content": "look"}]
    for number in range(4):
        turns.append(
            {"role": "assistant", "content": "", "tool_calls": [call | {"id": f"c{number}"}]}
        )
        turns.append({"role": "tool", "tool_call_id": f"c{number}", "content": "the same"})
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "one.json").write_text(json.dumps({"messages": turns}))
    cli.ok("judge", "runs", "--judge", "rules", "--rules", "all")
    shutil.rmtree(runs)
    with opened() as workspace:
        keys = {
            key
            for label in workspace.labels()
            for key in (label.target.first, label.target.last)
            if key is not None
        }
        (kept,) = workspace.span_indices().values()
        assert keys
        assert keys <= kept.keys()


def test_from_elsewhere_a_trace_is_never_written_over_and_its_outcomes_are_found(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "study"
    place = folder / UNDER
    run = write_run(folder / "runs", "one")
    monkeypatch.chdir(folder)
    cli.ok("judge", "runs", "--judge", "rules", "--workspace", place)
    with closing(Workspace.open(place)) as workspace:
        label(workspace, run, "ada", {"1.3": ada})
    before = run.read_bytes()
    (folder / "runs" / "outcomes.csv").write_text("trace,outcome\none.json,failed\n")
    monkeypatch.chdir(tmp_path)
    where = ("--workspace", place)
    cli.refused(
        "export",
        "--format",
        "csv-long",
        "-o",
        run,
        "--force",
        *where,
        says="traces are never written to",
    )
    assert run.read_bytes() == before
    report = cli.json("report", "--by", "all", *FEW, *where)
    assert report["traces"]["failed"] == 1

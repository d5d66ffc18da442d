"""Gold, conflicts and figures do not depend on the directory or on the files of traces."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mast_tui.adjudication import Adjudication, SpanOrders, queue, take_on
from mast_tui.adjudication.conflicts import Choice
from mast_tui.labels import Target, VerdictValue
from mast_tui.session import Session
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace
from mast_tui.workspace.records import SpanIndex
from tests.cli.conftest import COLUMNS, Cli, open_workspace
from tests.cli.test_judge import write_run as write_repeated_calls

MAST = load_mast()
MODES = {mode.code: mode.slug for mode in MAST.modes}
TURNS = 12
FEW_ROUNDS = ("--rounds", 10)
DATABASE = Path(".mast-tui", "workspace.db")


def write_run(folder: Path, name: str) -> Path:
    """Write a conversation of ``TURNS`` messages, whose texts begin with the name."""
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
    """Return a function that quotes a span of its trace."""

    def target(trace: Trace) -> Target:
        key = trace.span(index).key
        return Target(key, key, trace.text(index)[start:end], start, end)

    return target


def between(first: int, last: int) -> Callable[[Trace], Target]:
    """Return a function that makes a range of spans of its trace."""
    return lambda trace: spans(trace, first, last)


ada_target = between(2, 4)


def ben_target(trace: Trace) -> Target:
    return spans(trace, 3, 6)


def imported_workspace(cli: Cli, folder: Path) -> Path:
    """Make a workspace by an import before its traces are read for the first time."""
    rows = []
    for name in ("one", "two"):
        trace = read_run(write_run(folder / "runs", name))
        for annotator, first, last in (("ada", 2, 4), ("ben", 3, 6)):
            start = f"{trace.identity.trace_id},{annotator},"
            keys = f"{trace.span(first).key},{trace.span(last).key}"
            rows += [f"{start}1.3,present,{keys}", f"{start},finished,,"]
    options = ("--workspace", folder / DATABASE)
    cli.label(*rows, columns=f"{COLUMNS},span_first,span_last", options=options)
    cli.refused("export", "--format", "gold", "-o", folder / "no.json", *options)
    assert not (folder / "no.json").exists()
    cli.ok("judge", folder / "runs", "--judge", "rules", *options)
    return folder / DATABASE


def labelled_workspace(cli: Cli, folder: Path) -> Path:
    """Make a workspace with labels of sessions and an adjudication."""
    database = folder / DATABASE
    runs = [write_run(folder / "runs", name) for name in ("one", "two", "three")]
    with closing(Workspace.open(database)) as workspace:
        for run in runs:
            label(workspace, run, "ada", {"1.3": ada_target, "2.6": quoted(1, 0, 9)})
            label(workspace, run, "ben", {"1.3": ben_target, "2.6": between(1, 2)})
        label(workspace, runs[0], "cho", {"1.3": between(8, 9)})
        trace_id = read_run(runs[0]).identity.trace_id
        take_on(workspace, MAST, "dee", [trace_id])
        work = Adjudication(workspace, MAST, trace_id, "dee", order=SpanOrders(workspace)(trace_id))
        conflict = next(item for item in work.gold.conflicts if item.mode == MODES["1.3"])
        whole_range = (spans(read_run(runs[0]), 1, 7),)
        work.decide(conflict, Choice(VerdictValue.PRESENT, whole_range, ()))
    return database


def merged_workspace(cli: Cli, folder: Path) -> Path:
    """Merge a workspace from the exports of other machines, which have the traces."""
    exports = []
    for name, target in (("ada", ada_target), ("ben", ben_target)):
        machine = folder.with_name(f"machine of {name}")
        with closing(Workspace.open(machine / DATABASE)) as workspace:
            for run in ("one", "two"):
                path = write_run(machine / "runs", run)
                label(workspace, path, name, {"1.3": target, "2.6": quoted(5, 3, 11)})
        exports.append(folder.with_name(f"{name}.jsonl"))
        source = ("--workspace", machine / DATABASE)
        cli.ok("export", "--format", "jsonl", "-o", exports[-1], *source)
        shutil.rmtree(machine)
    folder.mkdir()
    options = ("--format", "jsonl", "--allow-new", "--workspace", folder / DATABASE)
    cli.ok("import", *exports, *options)
    return folder / DATABASE


def results(cli: Cli, database: Path, output: Path) -> dict[str, Any]:
    """Return all results that must not depend on the directory."""
    options = ("--workspace", database)
    cli.ok("export", "--format", "gold", "-o", output, "--force", *options)
    with closing(Workspace.open(database, create=False)) as workspace:
        entries = queue(workspace, MAST, "dee", order_of=SpanOrders(workspace))
        left = [(entry.trace_id, entry.gold and entry.gold.conflicts) for entry in entries]
    return {
        "gold": output.read_bytes(),
        "datasheet": output.with_name("gold.datasheet.md").read_bytes(),
        "status": cli.ok("status", "--json", *options).out,
        "agree": cli.ok("agree", *FEW_ROUNDS, "--json", *options).out,
        "report": cli.ok("report", "--by", "all", *FEW_ROUNDS, "--json", *options).out,
        "csv": cli.ok("export", "--format", "csv-long", "-o", "-", *options).out,
        "queue": left,
    }


@pytest.mark.parametrize(
    ("make", "directories"),
    [
        (imported_workspace, {"deleted": ("elsewhere",)}),
        (merged_workspace, {"deleted": ("elsewhere",)}),
        (
            labelled_workspace,
            {"present": ("study/runs/deeper",), "moved": ("study",), "deleted": ("elsewhere",)},
        ),
    ],
)
def test_results_do_not_depend_on_the_directory_or_the_files(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Cli, Path], Path],
    directories: dict[str, tuple[str, ...]],
) -> None:
    folder = tmp_path / "study"
    database = make(cli, folder)
    (folder / "runs" / "deeper").mkdir(parents=True, exist_ok=True)
    (tmp_path / "elsewhere" / "runs").mkdir(parents=True)
    output = tmp_path / "gold.json"
    # No command has asked for the order of spans yet: the stored indices suffice.
    without_files = tmp_path / "copy"
    shutil.copytree(folder, without_files)
    shutil.rmtree(without_files / "runs")
    in_copy = results(cli, without_files / DATABASE, output)
    first = results(cli, database, output)
    assert in_copy["status"].replace(str(without_files), str(folder)) == first["status"]
    for name in first.keys() - {"status"}:
        assert in_copy[name] == first[name], name
    gold = json.loads(first["gold"])
    assert gold["unordered"] == json.loads(first["status"])["conflicts"]["unordered"] == 0
    assert json.loads(first["agree"])["spans"]["traces"]["not_at_hand"] == 0
    merged = [label for trace in gold["traces"] for label in trace["labels"] if label["merged"]]
    assert merged
    for files, current in directories.items():
        if files == "moved":
            (folder / "runs").rename(folder / "moved")
            (folder / "runs").mkdir()
        if files == "deleted":
            for traces in (folder / "runs", folder / "moved"):
                shutil.rmtree(traces, ignore_errors=True)
        for directory in current:
            monkeypatch.chdir(tmp_path / directory)
            repeated = results(cli, database, output)
            for name, expected in first.items():
                assert repeated[name] == expected, (files, directory, name)


def test_export_reports_spans_without_an_order_and_their_files(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    path = labelled_workspace(cli, folder)
    options = ("--workspace", path)
    with closing(Workspace.open(path)) as workspace, workspace._database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM span_indices")
    (folder / "runs").rename(folder / "moved")
    for file_format in ("gold", "csv-long", "huggingface", "doccano"):
        # Two annotators differ on two modes in each of three traces; cho's label is another.
        messages = ("13 labelled spans in 3 traces", str(folder / "runs" / "one.json"))
        export = ("export", "--format", file_format, "-o", "out", *options)
        cli.refused(*export, says=(*messages, "--allow-unordered"))
        assert not Path("out").exists()
    assert "13 labelled spans of unknown order" in cli("status", *options).out
    assert cli.json("status", *options)["conflicts"]["unordered"] == 13
    assert "files of the 3 traces" in cli("agree", *FEW_ROUNDS, *options).out
    cli.ok("export", "--format", "csv-wide", "-o", "wide.csv", *options)
    assert cli.gold("--allow-unordered", *options)["unordered"] == 13
    (sheet,) = tmp_path.glob("exported*.md")
    note = "spans of unknown order, whose overlaps may be missed: 13"
    assert note in sheet.read_text()
    # Reading the traces again is enough, wherever they are.
    cli.ok("judge", folder / "moved", "--judge", "rules", *options)
    shutil.rmtree(folder / "moved")
    cli.gold(*options)
    assert cli.json("status", *options)["conflicts"]["unordered"] == 0


def test_export_reports_spans_that_are_not_in_their_trace(cli: Cli, tmp_path: Path) -> None:
    database = labelled_workspace(cli, tmp_path / "study")
    with closing(Workspace.open(database)) as workspace:
        (trace_id,) = (trace.trace_id for trace in workspace.traces() if "two" in trace.trace_id)
        key = read_run(tmp_path / "study" / "runs" / "two.json").span(4).key
        workspace.keep_span_indices({trace_id: {key: SpanIndex(None)}})
    messages = ("2 labelled spans in 1 trace is unknown", "The spans are not in the traces of ")
    export = ("export", "--format", "gold", "-o", "gold.json", "--workspace", database)
    assert "not found" not in cli.refused(*export, says=messages).err


def test_a_judge_keeps_the_order_of_its_suggestions(cli: Cli, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    write_repeated_calls(runs)
    cli.ok("judge", "runs", "--judge", "rules", "--rules", "all")
    shutil.rmtree(runs)
    with open_workspace() as workspace:
        keys = {
            key
            for label in workspace.labels()
            for key in (label.target.first, label.target.last)
            if key is not None
        }
        (indices,) = workspace.span_indices().values()
        assert keys
        assert keys <= indices.keys()


def test_traces_are_protected_and_outcomes_found_from_another_directory(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "study"
    database = folder / DATABASE
    run = write_run(folder / "runs", "one")
    monkeypatch.chdir(folder)
    cli.ok("judge", "runs", "--judge", "rules", "--workspace", database)
    with closing(Workspace.open(database)) as workspace:
        label(workspace, run, "ada", {"1.3": ada_target})
    original = run.read_bytes()
    (folder / "runs" / "outcomes.csv").write_text("trace,outcome\none.json,failed\n")
    monkeypatch.chdir(tmp_path)
    options = ("--workspace", database)
    cli.refused(
        "export",
        "--format",
        "csv-long",
        "-o",
        run,
        "--force",
        *options,
        says="traces are never written to",
    )
    assert run.read_bytes() == original
    report = cli.json("report", "--by", "all", *FEW_ROUNDS, *options)
    assert report["traces"]["failed"] == 1

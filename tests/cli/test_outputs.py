"""Files that commands write, replace or refuse to replace."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from itertools import cycle, product
from pathlib import Path

import pytest

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.exchange.registry import EXPORT_FORMATS
from mast_tui.traces.library import read_file
from tests.cli.conftest import Cli
from tests.traces.claude_sessions import agent, user
from tests.traces.rollouts import message, meta, write

CHAT = [{"role": "user", "content": "Start it."}, {"role": "assistant", "content": "Done."}]
LABELS = """trace_id,annotator,mode,value
{id},alice,1.3,present
{id},alice,2.3,absent
{id},alice,,finished
{id},bob,1.3,absent
{id},bob,2.3,absent
{id},bob,,finished
"""
NO_FIGURES = ("--rounds", "0", "--no-spans")


@pytest.fixture(scope="module")
def source_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace and a run in it, labelled by two annotators."""
    folder = tmp_path_factory.mktemp("made")
    run_file = folder / "run.json"
    table = folder / "labels.csv"
    run_file.write_text(json.dumps(CHAT), encoding="utf-8")
    (trace,) = read_file(run_file, named=True).traces
    table.write_text(LABELS.format(id=trace.identity.trace_id), encoding="utf-8")
    workspace_options = ("--workspace", str(folder / ".mast-tui" / "workspace.db"))
    for arguments in (
        ("judge", str(run_file), "--judge", "rules", "--quiet"),
        ("import", str(table), "--format", "csv-long"),
    ):
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            assert run(split_command([*arguments, *workspace_options])) == 0
    return folder


@pytest.fixture
def labelled(cli: Cli, source_folder: Path, tmp_path: Path) -> Path:
    """A copy of that folder as the current directory."""
    shutil.copytree(source_folder, tmp_path, dirs_exist_ok=True)
    return tmp_path


def write_claude_run(folder: Path) -> None:
    """Write a session and the file of its sub-agent."""
    folder.mkdir()
    main = [user("u1", None, "go"), agent("a1", "u1", "I go")]
    side = [user("w0", None, "look"), agent("w1", "w0", "seen")]
    side = [{**record, "agentId": "x1", "isSidechain": True} for record in side]
    session = str(main[0]["sessionId"])
    for name, records in ((session, main), ("agent-x1", side)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def write_database(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE labels (words)")
    database.close()


def contents(folder: Path) -> dict[Path, bytes]:
    """Read every file below a folder except those of the workspace."""
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.parent != folder / ".mast-tui"
    }


@pytest.fixture
def folder(labelled: Path) -> Path:
    """That folder with files that the workspace does not know."""
    write_claude_run(labelled / "c2")
    (labelled / "runs").mkdir()
    write(labelled / "runs", meta(), message("user", "go"), name="new.jsonl")
    (labelled / "runs" / "sd.json").write_text(json.dumps({"messages": CHAT}))
    (labelled / "runs" / "cut.json").write_text(json.dumps({"messages": CHAT * 9})[:-30])
    (labelled / "runs" / "server.log").write_text("2026-01-01 12:00:00 INFO started\n" * 3)
    (labelled / "runs" / "outcomes.csv").write_text("trace,outcome\nsd.json,failed\n")
    write_database(labelled / "other" / "workspace.db")
    (labelled / "x.datasheet.md").write_text("# Datasheet\n\nof our flowers")
    (labelled / "x.config.xml").write_text("<View>mine</View>")
    (labelled / "figures").mkdir()
    (labelled / "set" / "data").mkdir(parents=True)
    (labelled / "set" / "data" / "gold.jsonl").write_text('{"mine": 1}\n')
    (labelled / "notes.md").write_text("# My notes")
    return labelled


@pytest.mark.parametrize(
    ("command", "file", "reason"),
    [
        ("export --format jsonl -o", "c2/agent-x1.jsonl", "a trace (claude-code)"),
        ("export --format jsonl -o", "runs/new.jsonl", "a trace (codex)"),
        ("report --rounds 0 --html", "runs/sd.json", "a trace (message-list)"),
        ("agree --rounds 0 --no-spans --csv", "runs/cut.json", "a trace (message-list)"),
        ("agree --rounds 0 --no-spans --markdown", "runs/server.log", "a trace (text)"),
        ("export --format csv-wide -o", "runs/outcomes.csv", "the outcomes of runs"),
        ("export --format jsonl -o", "other/workspace.db", "a database"),
        ("export --format jsonl -o", "other/workspace.db-wal", "the database workspace.db"),
        ("export --format gold -o x.json", "x.datasheet.md", "not written by mast-tui"),
        ("export --format label-studio -o x.json", "x.config.xml", "not written by mast-tui"),
        ("export --format huggingface -o set", "set/data/gold.jsonl", "not written by mast-tui"),
        ("convert run.json -o", "runs/new.jsonl", "not written by mast-tui"),
        ("convert run.json -o", "notes.md", "not written by mast-tui"),
    ],
)
def test_foreign_files_are_replaced_only_with_force(
    cli: Cli, folder: Path, command: str, file: str, reason: str
) -> None:
    previous = contents(folder)
    args = command.split()
    if args[-1].startswith("-"):
        args.append(file)
    refused = cli.refused(*args, says=(file, reason, "give another file, or use --force"))
    assert refused.err.count("\n") == 1
    assert contents(folder) == previous
    cli.ok(*args, "--force")
    assert (folder / file).read_bytes() != previous.get(folder / file)


def test_the_current_workspace_and_its_traces_are_never_replaced(cli: Cli, folder: Path) -> None:
    cli.ok("judge", "c2", "--judge", "rules")
    previous = contents(folder)
    (folder / "link.json").symlink_to("run.json")
    database = cli.json("status")["workspace"]
    outputs = (database, f"{database}-journal", "run.json", "link.json", "c2/agent-x1.jsonl")
    commands = (
        ("export", "--format", "gold", "-o"),
        ("report", "--rounds", "0", "--html"),
        ("agree", *NO_FIGURES, "--csv"),
        ("convert", "runs/sd.json", "-o"),
    )
    for command, output, force in product(commands, outputs, ((), ("--force",))):
        err = cli.refused(*command, output, *force, says="give another").err
        assert err.count("\n") == 1
        assert not force or "--force" not in err
    cli.ok("status")
    assert not Path(f"{database}-journal").exists()
    (folder / "link.json").unlink()
    # A trace to convert is not replaced by itself.
    itself = ("convert", "runs/sd.json", "runs/new.jsonl", "-o", "runs/new.jsonl", "--force")
    cli.refused(*itself, says="never overwritten")
    assert contents(folder) == previous


def test_files_of_mast_tui_are_replaced_whatever_their_names(cli: Cli, labelled: Path) -> None:
    for file_format, end in zip(EXPORT_FORMATS, cycle(("out", "txt", "log"))):
        (labelled / file_format).mkdir(exist_ok=True)
        for _ in range(2):
            cli.ok("export", "--format", file_format, "-o", f"{file_format}/mine.{end}")
    for _ in range(2):
        cli.ok("report", "--rounds", "0", "--html", "page.out", "--figures", "figures")
        cli.ok("agree", *NO_FIGURES, "--csv", "a.out", "--markdown", "b.out")
        cli.ok("convert", "run.json", "-o", "converted.out")
    assert not list(labelled.rglob(".*.part"))
    cli.refused("export", "--format", "jsonl", "-o", "converted.out", says="a trace (mast-tui)")


def test_a_converted_file_that_is_a_known_trace_is_replaced_by_convert_only(
    cli: Cli, labelled: Path
) -> None:
    cli.ok("convert", "run.json", "-o", "all.jsonl")
    (labelled / "run.json").rename(labelled / "was.json")
    cli.ok("judge", "all.jsonl", "--judge", "rules")
    cli.ok("convert", "was.json", "all.jsonl", "-o", "all.jsonl", "--force")
    cli.refused(
        "export",
        "--format",
        "jsonl",
        "-o",
        "all.jsonl",
        "--force",
        says="traces are never written to",
    )


def test_figures_replace_only_figures(cli: Cli, tmp_path: Path) -> None:
    rows = ["trace_id,annotator,model,outcome,1.1", "a,ann,m,failed,1", "b,ann,m,succeeded,0"]
    (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n", "utf-8")
    cli.ok("import", "labels.csv", "--format", "csv-wide")
    args = ("report", "--rounds", "0", "--by", "all", "--figures", "drawn")
    cli.ok(*args)
    drawn = sorted((tmp_path / "drawn").iterdir())
    assert drawn
    drawn[-1].write_text("<svg>mine</svg>", "utf-8")
    previous = contents(tmp_path)
    cli.refused(*args, "--html", "page.html", says="not written by mast-tui")
    assert contents(tmp_path) == previous
    cli.ok(*args, "--html", "page.html", "--force")
    assert "mine" not in drawn[-1].read_text("utf-8")


LIMITED_SCRIPT = """
import resource, sys
from mast_tui.cli.dispatch import run
from mast_tui.cli.command_line import split_command
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(run(split_command(sys.argv[2:])))
"""


def test_an_export_that_fails_leaves_the_older_gold_and_datasheet(cli: Cli, labelled: Path) -> None:
    cli.ok("export", "--format", "gold", "-o", "g.json")
    cli.label(*LABELS.format(id="another").replace("alice", "carol").splitlines()[1:])
    # The limit allows the files of the datasheet and of SQLite, but not the gold.
    cli.ok("export", "--format", "gold", "-o", "size.json")
    sheet, gold = (labelled / f"size.{end}" for end in ("datasheet.md", "json"))
    limit = (sheet.stat().st_size + gold.stat().st_size) // 2
    assert sheet.stat().st_size < limit < gold.stat().st_size
    sheet.unlink()
    gold.unlink()
    previous = contents(labelled)
    command = ("export", "--format", "gold", "-o", "g.json")
    args = [sys.executable, "-c", LIMITED_SCRIPT, str(limit), *command]
    result = subprocess.run(args, cwd=labelled, capture_output=True, timeout=120, check=False)
    assert result.returncode == 1
    assert b"g.json: cannot be written: File too large" in result.stderr
    assert contents(labelled) == previous
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.mark.parametrize("file_format", ["gold", "label-studio"])
def test_an_export_to_a_pipe_writes_no_file(cli: Cli, labelled: Path, file_format: str) -> None:
    pipe = labelled / "pipe"
    os.mkfifo(pipe)
    (labelled / "link").symlink_to("pipe")
    received: list[bytes] = []
    thread = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    thread.start()
    previous = contents(labelled)
    result = cli("export", "--format", file_format, "-o", "link")
    thread.join(60)
    assert (result.code, "nothing is written beside it" in result.err) == (0, True)
    assert json.loads(received[0])
    assert pipe.is_fifo()
    assert contents(labelled) == previous


def test_stdout_contains_only_the_export(cli: Cli, labelled: Path) -> None:
    (labelled / "stdout").symlink_to("/proc/self/fd/1")
    for command, beginning in (
        ("export --format gold -o stdout", b'{\n "format": "mast-tui-gold"'),
        ("convert run.json -o /dev/fd/1", b'{"format":"mast-tui trace"'),
        ("export --format gold -o -", b'{\n "format": "mast-tui-gold"'),
        ("guard build --labels alice -o -", b'format = "mast-tui guards"'),
    ):
        args = [sys.executable, "-m", "mast_tui", *command.split()]
        result = subprocess.run(args, cwd=labelled, capture_output=True, timeout=120, check=False)
        has_beginning = result.stdout.startswith(beginning)
        assert (result.returncode, has_beginning) == (0, True), (command, result)
        assert b"1 labelled trace" in result.stderr or b"1 trace" in result.stderr
    assert (labelled / "stdout").is_symlink()
    assert not (labelled / "-").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("export --format huggingface -o -", "several files are written; give a folder"),
        ("export --format gold -o - --json", "give a file for --output"),
    ],
)
def test_stdout_is_refused_for_several_outputs(
    cli: Cli, labelled: Path, command: str, message: str
) -> None:
    previous = contents(labelled)
    result = cli(*command.split())
    assert (result.code != 0, result.out) == (True, "")
    assert message in result.err
    assert contents(labelled) == previous

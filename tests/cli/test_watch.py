"""``mast-tui watch``: judging of running sessions, and one report of each finding."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.cli.lint.findings import PlacedFinding, read_gate
from mast_tui.cli.lint.watch import NotRead, RunningTraces
from mast_tui.judges.rules import RULES, RulesJudge
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import samples_folder
from tests.cli.conftest import Cli
from tests.traces.nested_runs import (
    CHILD,
    MAIN,
    run_message,
    run_record,
    spawn_call,
    write_rollout,
)
from tests.traces.rollouts import Record, call, message, meta, output
from tests.waiting import PATIENCE

MAST: Final = load_mast()
PODS: Final = '{"command": ["kubectl", "get", "pods"]}'


def watch(*paths: Path, every_rule: bool = False) -> RunningTraces:
    judge = RulesJudge(RULES) if every_rule else RulesJudge()
    return RunningTraces(paths, judge, read_gate("any", MAST))


def new_findings(traces: RunningTraces) -> list[str]:
    """Return the rule, file and span of each new finding, and the unreadable files."""
    return [
        f"unread {news.path.name}"
        if isinstance(news, NotRead)
        else f"{news.rule} {news.path.name} #{news.first}"
        for news in traces.new_findings()
    ]


def shell_call(name: str, arguments: str = PODS) -> tuple[Record, Record]:
    return call(name, arguments), output(name, "cart-0 CrashLoopBackOff")


def encode(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def add(path: Path, *records: object) -> None:
    with path.open("ab") as file:
        file.write(encode(*records))


BEGINNING: Final = (meta(), message("user", "find the failing pod"), *shell_call("a"))


def test_a_session_is_judged_each_time_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "one" / "r.jsonl"
    path.parent.mkdir()
    traces = watch(tmp_path)
    assert new_findings(traces) == []
    (tmp_path / "one" / "notes.md").write_text("nothing")
    path.write_bytes(encode(*BEGINNING))
    assert new_findings(traces) == []
    add(path, *shell_call("b"))
    (finding,) = watch(path).new_findings()
    assert isinstance(finding, PlacedFinding)
    assert (finding.place.file, finding.place.line, finding.number) == (path, 5, 4)
    assert new_findings(traces) == ["repeated-call r.jsonl #4"]
    assert new_findings(traces) == []
    add(path, *shell_call("c"))
    assert new_findings(traces) == [], "the same loop has become longer"
    add(path, message("assistant", "it is cart-0"))
    assert new_findings(traces) == []
    # Another run in the same file has separate findings.
    other = '{"command": ["helm", "list"]}'
    records = (*shell_call("a", other), *shell_call("b", other))
    path.write_bytes(encode(meta(), message("user", "and now?"), *records))
    assert new_findings(traces) == ["repeated-call r.jsonl #4"]
    path.write_bytes(path.read_bytes() + b"\n")
    assert new_findings(traces) == []
    path.unlink()
    assert new_findings(traces) == []


def test_a_half_written_line_is_judged_once_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    data = encode(*BEGINNING, *shell_call("b"))
    path.write_bytes(data[:-40])
    traces = watch(path)
    assert new_findings(traces) == []
    path.write_bytes(data[:-5])
    path.write_bytes(data)
    assert new_findings(traces) == ["repeated-call r.jsonl #4"]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 1 << 20), min_size=1, max_size=8))
def test_findings_are_reported_once_wherever_writing_paused(
    tmp_path: Path, pauses: list[int]
) -> None:
    content = (samples_folder() / "storefront-slow-west.jsonl").read_bytes()
    offsets = sorted({pause % len(content) for pause in pauses})
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"")
    traces = watch(tmp_path, every_rule=True)
    reported = []
    for begin, end in pairwise([0, *offsets, len(content)]):
        with path.open("ab") as file:
            file.write(content[begin:end])
        reported += new_findings(traces)
    # The rule early-end judges the end of a run, and every pause looks like one.
    reported = [finding for finding in reported if not finding.startswith("early-end")]
    assert len(reported) == len(set(reported))
    complete = new_findings(watch(path, every_rule=True))
    assert set(reported) == {f for f in complete if not f.startswith("early-end")}


def test_a_replaced_file_reports_only_new_findings(tmp_path: Path) -> None:
    samples = json.loads((samples_folder() / "support_desk_exchange.json").read_text("utf-8"))
    steps = samples["traj"]
    path = tmp_path / "exchange.json"
    traces = watch(tmp_path)
    reported = []
    for end in range(2, len(steps) + 1):
        fresh = tmp_path / "fresh.tmp"
        fresh.write_text(json.dumps({**samples, "traj": steps[:end]}))
        fresh.replace(path)
        reported += new_findings(traces)
    assert reported == ["repeated-call exchange.json #18"]


@pytest.mark.parametrize("named", [True, False])
def test_a_new_sub_agent_is_judged_in_its_run(tmp_path: Path, named: bool) -> None:
    run = write_rollout(
        tmp_path / "rollout-a.jsonl",
        MAIN,
        None,
        run_message(10, "user", "do it"),
        *spawn_call(11, "call_m", CHILD),
    )
    traces = watch(run if named else tmp_path)
    assert new_findings(traces) == []
    twice = [
        run_record(20 + number, "response_item", **item)
        for number, name in enumerate("xy")
        for item in (shell_call(name)[0]["payload"], shell_call(name)[1]["payload"])
        if isinstance(item, dict)
    ]
    child = tmp_path / "rollout-b.jsonl"
    write_rollout(child, CHILD, MAIN, run_message(19, "user", "look"), *twice[:2])
    assert new_findings(traces) == []
    add(child, *twice[2:])
    (finding,) = new_findings(traces)
    assert finding.startswith("repeated-call rollout-a.jsonl #")
    assert new_findings(traces) == []


def test_an_unreadable_file_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"messages": [')
    traces = watch(tmp_path)
    assert new_findings(traces) == [], "it may be half written"
    path.write_text('{"messages": [ ')
    assert new_findings(traces) == []
    assert new_findings(traces) == ["unread run.json"]
    path.write_text('{"messages": [  ')
    assert new_findings(traces) + new_findings(traces) == []
    shutil.copy(samples_folder() / "support_desk_exchange.json", path)
    assert new_findings(traces) == ["repeated-call run.json #18"]


@contextmanager
def watching(*args: object, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the command in another process, and yield it once it has started."""
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-m", "mast_tui", "watch", *map(str, args)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root), "HOME": str(folder), "SECRET": "kept"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert first.startswith("mast-tui watch: following "), first
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with a running session, and one that has ended with a finding."""
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "old.jsonl").write_bytes(
        encode(meta("01a2b3c4-0000-7000-8000-00000000000f"), *BEGINNING[1:], *shell_call("b"))
    )
    (folder / "r.jsonl").write_bytes(encode(*BEGINNING))
    return folder


def test_watch_ends_at_the_first_finding(runs: Path, tmp_path: Path) -> None:
    with watching("runs", "--exit", "--bell", folder=tmp_path) as process:
        add(runs / "r.jsonl", *shell_call("b"))
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d #4 runs/r\.jsonl:5: error: 1\.3 Step repetition \(repeated-call\): .+\n",
        out,
    )
    assert err == "\amast-tui watch: 1 finding in 2 traces; --fail-on any: 1\n"


@pytest.mark.parametrize(
    ("number", "fail_on", "failing"), [(signal.SIGINT, "any", 1), (signal.SIGTERM, "3.3", 0)]
)
def test_a_signal_ends_watch_with_a_summary(
    runs: Path, tmp_path: Path, number: signal.Signals, fail_on: str, failing: int
) -> None:
    options = ("--existing", "--exit") if failing == 0 else ("--existing",)
    with watching("runs", *options, "--json", "--fail-on", fail_on, folder=tmp_path) as process:
        assert process.stdout is not None
        first: dict[str, Any] = json.loads(process.stdout.readline())
        assert (first["file"], first["mode"]) == ("runs/old.jsonl", "1.3")
        assert first["fails"] is bool(failing), "only the named modes end it"
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (128 + number, "")
    summary = f"mast-tui watch: 1 finding in 2 traces; --fail-on {fail_on}: {failing}\n"
    assert err == summary


def test_a_command_gets_findings_in_its_environment_without_a_shell(
    runs: Path, tmp_path: Path
) -> None:
    script = tmp_path / "tell.py"
    script.write_text(
        "import json, os, sys\n"
        "values = {n: v for n, v in os.environ.items() if n.startswith('MAST_TUI_')}\n"
        "found = [sys.argv[1:], values, os.environ['SECRET']]\n"
        "open('finding.json', 'w').write(json.dumps(found))\n"
        "print('said by the command')\n"
        "sys.exit(7)\n"
    )
    hostile = json.dumps({"command": ["echo $(touch pwned); `touch pwned`\n\x1b]0;x\x07"]})
    command = f"{sys.executable} {script} 'two words'"
    with watching("runs", "--exit", "--run", command, folder=tmp_path) as process:
        name = runs / "$(touch pwned) ; x.jsonl"
        name.write_bytes(
            encode(meta("01a2b3c4-0000-7000-8000-0000000000aa"), *BEGINNING[1:2])
            + encode(*shell_call("a", hostile), *shell_call("b", hostile))
        )
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    arguments, environment, secret = json.loads((tmp_path / "finding.json").read_text())
    assert (arguments, secret) == (["two words"], "kept")
    assert environment["MAST_TUI_FILE"] == "runs/$(touch pwned) ; x.jsonl"
    assert environment["MAST_TUI_PLACE"] == "runs/$(touch pwned) ; x.jsonl:5"
    assert (environment["MAST_TUI_MODE"], environment["MAST_TUI_RULE"]) == ("1.3", "repeated-call")
    assert "touch pwned" in environment["MAST_TUI_QUOTE"]
    assert not any(re.search(r"[\x00-\x1f]", value) for value in environment.values())
    assert not list(tmp_path.rglob("pwned"))
    assert out.count("\n") == 1
    assert "\x1b" not in out
    assert "said by the command" in err
    assert "ended with exit code 7" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("nowhere",), "nowhere: no such file or folder; to wait for a file"),
        ((".", "--fail-on", "1.33"), "did you mean 1.3"),
        ((".", "--fail-on", "3.1"), "it shows only at the end of a run"),
        ((".", "--rules", "early-end"), "checks only the end of a run"),
        ((".", "--run", "no-such-program-here x"), "there is no program 'no-such-program-here'"),
        ((".", "--run", "'open"), "No closing quotation"),
        ((".", "--run", ""), "there is no program"),
        ((".", "--blind"), "shows nothing but a judge's findings"),
    ],
)
def test_options_that_cannot_work_are_refused(
    cli: Cli, options: tuple[str, ...], message: str
) -> None:
    cli.refused("watch", *options, says=message, code=2)

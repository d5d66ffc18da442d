"""``mast-tui guard``: guards made from labels, their findings, and the hooks of agents."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, redirect_stdout
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.judges.rules import GUARD_RULES, RulesJudge
from mast_tui.judges.rules.guards import Guard, GuardsFile, InvalidGuards, guards_text, read_guards
from mast_tui.labels import Target
from mast_tui.session import Session
from mast_tui.traces.library import read_file, read_fully, samples_folder
from mast_tui.workspace import Workspace
from tests.cli.conftest import Cli
from tests.workspace.build import MAST

UNCHECKED: Final = Guard(
    name="no-check", condition="unchecked-claim", mode="incorrect_verification", on=True
)
OPEN_PLAN: Final = Guard(name="plan", condition="open-plan", mode="premature_termination", on=True)
HURRY: Final = Guard(
    name="hurry",
    condition="phrases",
    mode="premature_termination",
    on=True,
    phrases=("should be fine now",),
)


def write_guards(path: Path, *guards: Guard) -> Path:
    file = GuardsFile(
        format="mast-tui guards", version=1, taxonomy=MAST.ref, labels="gold", guards=guards
    )
    path.write_text(guards_text(file), "utf-8")
    return path


class ScriptedAgent:
    """A session file of Claude Code that grows, and whose end a hook may block."""

    is_first_stop = True

    def __init__(self, path: Path, hook: str, task: str = "Repair the login") -> None:
        self.path = path
        self.hook = hook
        self._numbers = count(1)
        self._write("user", {"role": "user", "content": task})

    def says(self, text: str) -> None:
        self._content({"type": "text", "text": text})

    def does(self, tool: str, arguments: dict[str, Any], result: str) -> None:
        call = f"toolu_{next(self._numbers)}"
        self._content({"type": "tool_use", "id": call, "name": tool, "input": arguments})
        answer = {"type": "tool_result", "tool_use_id": call, "content": result}
        self._write("user", {"role": "user", "content": [answer]})

    def stops(self, *, active: bool = False, last: str | None = None) -> dict[str, Any] | None:
        """Run the hook as the agent does when it would end, and return its decision."""
        event = {
            "session_id": "s1",
            "transcript_path": str(self.path),
            "hook_event_name": "Stop",
            "stop_hook_active": active,
        }
        if last is not None:
            event["last_assistant_message"] = last
        if self.is_first_stop:
            self.is_first_stop = False
            process = subprocess.run(
                shlex.split(self.hook), input=json.dumps(event), text=True, capture_output=True,
                check=True,
            )  # fmt: skip
            return json.loads(process.stdout) if process.stdout else None
        # A process for every stop would take most of a test's time.
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patched, redirect_stdout(printed):
            stream = io.TextIOWrapper(io.BytesIO(json.dumps(event).encode()))
            patched.setattr(sys, "stdin", stream)
            arguments = shlex.split(self.hook)
            assert run(split_command(arguments[arguments.index("guard") :])) == 0
        return json.loads(printed.getvalue()) if printed.getvalue() else None

    def _content(self, part: dict[str, Any]) -> None:
        self._write(
            "assistant",
            {"id": f"m{next(self._numbers)}", "role": "assistant", "model": "m", "content": [part]},
        )

    def _write(self, kind: str, message: dict[str, Any]) -> None:
        """Append a record to the file of the session."""
        number = next(self._numbers)
        record = {
            "type": kind, "message": message, "uuid": f"u{number}", "sessionId": "s1",
            "version": "2.1.0", "cwd": "/x", "isSidechain": False, "userType": "external",
            "parentUuid": None if number == 1 else f"u{number - 1}",
            "timestamp": f"2026-11-01T10:00:{number % 60:02}Z",
        }  # fmt: skip
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


class ScriptedCodex(ScriptedAgent):
    """A session of Codex as a rollout."""

    def __init__(self, path: Path, hook: str) -> None:
        self.path = path
        self.hook = hook
        self._numbers = count(1)
        self._record("session_meta", {"id": "s1", "cwd": "/x", "cli_version": "0.154.0"})
        self._item("message", role="user", content=[{"type": "input_text", "text": "Repair it"}])

    def says(self, text: str) -> None:
        content = [{"type": "output_text", "text": text}]
        self._item("message", role="assistant", content=content)

    def does(self, tool: str, arguments: dict[str, Any], result: str) -> None:
        name = {"Edit": "apply_patch", "Bash": "shell"}.get(tool, "read_file")
        call = f"call_{next(self._numbers)}"
        self._item("function_call", name=name, arguments=json.dumps(arguments), call_id=call)
        self._item("function_call_output", call_id=call, output=result)

    def _item(self, kind: str, **values: Any) -> None:
        self._record("response_item", {"type": kind, **values})

    def _record(self, kind: str, payload: dict[str, Any]) -> None:
        time = f"2026-11-01T10:00:{next(self._numbers) % 60:02}.000Z"
        record = {"timestamp": time, "type": kind, "payload": payload}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


@pytest.mark.parametrize(
    ("agent", "settings", "script"),
    [
        ("claude-code", ".claude/settings.json", ScriptedAgent),
        ("codex", ".codex/hooks.json", ScriptedCodex),
    ],
)
def test_an_agent_that_claims_success_without_a_check_is_blocked_once(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    agent: str,
    settings: str,
    script: Callable[[Path, str], ScriptedAgent],
) -> None:
    program = tmp_path / "mast-tui"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mast_tui "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    write_guards(tmp_path / "guards.toml", UNCHECKED)
    cli.ok("guard", "hook", agent, "--guards", "guards.toml")
    (group,) = json.loads((tmp_path / settings).read_text())["hooks"]["Stop"]
    session = script(tmp_path / "session.jsonl", group["hooks"][0]["command"])
    session.does("Read", {"file_path": "/x/login.py"}, "def login(): return None")
    assert session.stops() is None, "nothing was claimed"
    edit = {"file_path": "/x/login.py", "old_string": "None", "new_string": "True"}
    session.does("Edit", edit, "The file was updated")
    # The last message is in the event before it is in the file.
    claim = "The login is fixed and everything is done."
    early = session.stops(last=claim)
    session.says(claim)
    decision = session.stops(last=claim)
    assert decision == early
    assert decision is not None
    assert decision["decision"] == "block"
    assert "nothing was checked after the last change" in decision["reason"]
    assert session.stops(active=True) is None, "a turn is blocked once"
    session.does("Bash", {"command": "make test && git commit -am x"}, "3 passed in 0.1s")
    session.does("Bash", {"command": "git push"}, "main -> main")
    session.says("All tests pass. The login is fixed and everything is done.")
    assert session.stops() is None


def test_open_plans_and_forbidden_phrases_block_the_end(cli: Cli, tmp_path: Path) -> None:
    guards = write_guards(tmp_path / "guards.toml", OPEN_PLAN, HURRY)
    hook = shlex.join([sys.executable, "-m", "mast_tui", "guard", "stop", "--guards", str(guards)])
    session = ScriptedAgent(tmp_path / "session.jsonl", hook)
    steps = [{"content": "edit", "status": "completed"}, {"content": "test", "status": "pending"}]
    session.does("TodoWrite", {"todos": steps}, "ok")
    session.says("That should be fine now.")
    decision = session.stops()
    assert decision is not None
    assert "1 of 2 steps of the plan" in decision["reason"]
    assert "says what hurry forbids. “That should be fine now.”" in decision["reason"]
    assert cli("lint", "session.jsonl", "--guards", "guards.toml").code == 3
    completed = [{**step, "status": "completed"} for step in steps]
    session.does("TodoWrite", {"todos": completed}, "ok")
    session.says("Both steps are there.")
    # Earlier findings stay in the report and block no further end.
    assert session.stops() is None
    assert cli("lint", "session.jsonl", "--guards", "guards.toml").code == 3


def test_a_hook_is_added_to_the_settings_of_an_agent(cli: Cli, tmp_path: Path) -> None:
    write_guards(tmp_path / "guards.toml", UNCHECKED)
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    mine = {"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}
    settings.write_text(json.dumps(mine))
    hook = ("guard", "hook", "claude-code", "--guards", "guards.toml")
    cli.ok(*hook)
    assert "already there" in cli(*hook).out
    written = json.loads(settings.read_text())
    assert written["model"] == "opus"
    assert len(written["hooks"]["Stop"]) == 2
    for broken in ("[]", "{", '{"hooks": []}', '{"hooks": {"Stop": 1}}'):
        settings.write_text(broken)
        cli.refused(*hook, says="settings.json")
        assert settings.read_text() == broken
    # Guards that do not work get no hook.
    path = tmp_path / 'odd "name" é.toml'
    head = 'format = "mast-tui guards"\nversion = 1\ntaxonomy = "mast@3"\nlabels = "gold"\n'
    guard = '[[guards]]\nname = "g"\nmode = "step-repetition"\ncondition = "nope"\non = true\n'
    for text, problem in ((head, "no guard is on"), (head + guard, "no condition")):
        path.write_text(text)
        cli.refused("guard", "hook", "codex", "--guards", path, says=(problem, str(path)))


@pytest.mark.parametrize(
    "event",
    [
        *("", "[]", "{}", "[" * 200_000, '{"transcript_path": "missing.jsonl"}'),
        *(f'{{"transcript_path": "a\\u{code}b"}}' for code in ("0000", "d800")),
    ],
)
def test_a_stop_event_without_a_session_is_an_error_that_blocks_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    write_guards(tmp_path / "guards.toml", UNCHECKED)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(event.encode())))
    result = cli.refused("guard", "stop", "--guards", "guards.toml")
    assert result.err.startswith("mast-tui guard:")
    assert "unexpected" not in result.err


def test_no_condition_fires_on_passages_without_a_failure() -> None:
    samples = samples_folder()
    clean = [json.loads(line) for line in (samples / "clean.jsonl").read_text().splitlines()]
    judge = RulesJudge(GUARD_RULES)
    for row in clean:
        for trace in read_file(samples / row["trace"], named=True).traces:
            if trace.record != row["record"] and row["record"] is not None:
                continue
            read_fully(trace)
            first = trace.index_of(row["first"])
            last = trace.index_of(row["last"])
            assert first is not None
            assert last is not None
            for _rule, finding in judge.findings(trace):
                begin = trace.index_of(finding.first or "") or 0
                end = trace.index_of(finding.last or "") or 0
                overlaps = begin <= last and first <= end
                assert not (finding.mode == row["slug"] and overlaps), row


def test_an_invalid_file_of_guards_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = write_guards(tmp_path / "guards.toml", UNCHECKED)
    valid = path.read_text()
    for old, new, message in (
        ("version = 1", "version = 2", "Invalid"),
        ('condition = "unchecked-claim"', 'condition = "nothing"', "no condition 'nothing'"),
        ('mode = "incorrect_verification"', 'mode = "step_repetition"', "is about"),
        ("on = true", "on = false", "no guard is on"),
        ("on = true", "on = true\nextra = 1", "unknown field"),
        ("format =", "format", "guards.toml"),
    ):
        path.write_text(valid.replace(old, new))
        cli.refused("lint", samples_folder(), "--guards", "guards.toml", says=message)

    path = write_guards(tmp_path / "guards.toml", UNCHECKED, HURRY)
    assert read_guards(path).guards == (UNCHECKED, HURRY)
    empty = read_guards(write_guards(path, Guard(name="x", condition="phrases", mode="y", on=True)))
    with pytest.raises(InvalidGuards, match="names no phrases"):
        empty.rules(["y"])
    for phrase in ("All done. I stop here", "...", "first line\nsecond line"):
        guard = Guard(name="x", condition="phrases", mode="y", on=True, phrases=(phrase,))
        with pytest.raises(InvalidGuards, match="never matches"):
            read_guards(write_guards(path, guard)).rules(["y"])
    by_code = Guard(name="x", condition="phrases", mode="1.3", on=True, phrases=("give up",))
    with pytest.raises(InvalidGuards, match=r"no mode has the slug '1\.3'; there are y"):
        read_guards(write_guards(path, by_code)).rules(["y"])


def write_labelled_runs(folder: Path, failed: int, clean: int) -> Path:
    """Write runs that claim success without a check, and runs that check, with their labels."""
    folder.mkdir()
    database = folder.parent / "workspace.db"
    quote = "I trust my change blindly here"
    edit = {"file_path": "/x/login.py", "old_string": "None", "new_string": "True"}
    with closing(Workspace.open(database, create=True)) as workspace:
        for number in range(failed + clean):
            # Each file is compared with its neighbours, which may be parts of the same run.
            path = folder / str(number % 20) / f"run-{number}.jsonl"
            path.parent.mkdir(exist_ok=True)
            session = ScriptedAgent(path, "", f"Repair login number {number}")
            session.does("Edit", edit, "The file was updated")
            if number >= failed:
                session.does("Bash", {"command": "pytest tests/test_login.py"}, "3 passed")
            session.says(f"{quote if number < failed else 'The tests pass'}. The login is fixed.")
            path.write_text(path.read_text().replace('"s1"', f'"s{number}"'))
            (trace,) = read_file(path, named=True).traces
            read_fully(trace)
            last = len(trace) - 1
            alice = Session.open(workspace, trace, MAST, "alice", blind=True)
            if number < failed:
                start = trace.text(last).index(quote)
                end = start + len(quote)
                key = trace.span(last).key
                target = Target(key, quote=quote, char_start=start, char_end=end)
                alice.toggle_label("incorrect_verification", target, suggestions_on_screen=False)
            alice.finish(open_modes="absent")
    return database


def test_guards_are_chosen_on_half_of_the_runs_and_tested_on_the_rest(
    cli: Cli, tmp_path: Path
) -> None:
    database = write_labelled_runs(tmp_path / "runs", failed=24, clean=176)
    cli.ok("guard", "build", "-o", "guards.toml", "--workspace", database, "--json")
    guards = {guard.name: guard for guard in read_guards(tmp_path / "guards.toml").guards}
    assert set(guards) == {"unchecked-claim", "phrases-3.3"}
    for guard in guards.values():
        assert guard.on
        rates = guard.tested
        assert rates is not None
        assert (rates.false_alarms, rates.hits) == (0, rates.failures)
        assert 73 <= rates.runs < 176
        assert rates.false_alarm_bound is not None
        assert rates.false_alarm_bound <= 0.05
    assert any("blindly" in phrase for phrase in guards["phrases-3.3"].phrases)
    linted = cli("lint", "runs", "--guards", "guards.toml", "--json")
    assert linted.code == 3
    findings = linted.json["findings"]
    assert {finding["mode"] for finding in findings} == {"3.3"}
    assert len({finding["trace"] for finding in findings}) == 24
    watched = cli("watch", "runs", "--guards", "guards.toml", "--exit", "--existing")
    assert watched.code == 3
    cli.ok("guard", "build", "-o", "other.toml", "--workspace", database, "--labels", "alice")
    assert len(read_guards(tmp_path / "other.toml").guards) == 2
    cli.refused("guard", "build", "-o", "x.toml", "--workspace", database, "--labels", "nobody")


def test_guards_from_few_runs_are_off_and_note_the_missing_number(cli: Cli, tmp_path: Path) -> None:
    database = write_labelled_runs(tmp_path / "runs", failed=6, clean=20)
    assert "0 are on" in cli.ok("guard", "build", "-o", "guards.toml", "--workspace", database).out
    (*_, guard) = read_guards(tmp_path / "guards.toml").guards
    assert not guard.on
    assert guard.note.endswith("with 0 false alarms, 73 such runs are needed")
    cli.refused("lint", "runs", "--guards", "guards.toml", says="no guard is on")

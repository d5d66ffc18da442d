"""``judge --record`` and ``--replay``: a run repeated by anybody, with no server and no key."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Done
from tests.judges.llm.made_answers import any_answer, write_runs
from tests.judges.llm.server import Action, ModelServer, answer, status

KEY = "sk-of-the-one-who-recorded"
Judge = Callable[..., Done]


@pytest.fixture
def judge(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """The command over six runs, in the workspace that is named."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_runs(tmp_path / "runs", 6)

    def call(workspace: str, *more: object) -> Done:
        arguments = ("--judge", "llm", "--model", "test-model", "--workspace", workspace)
        return cli("judge", "runs", *arguments, *more)

    return call


def right(body: dict[str, Any], _: int) -> Action:
    return answer(any_answer(body), tokens_in=len(str(body)) // 3, tokens_out=500)


def labels(cli: Cli, workspace: str, judge: str) -> list[dict[str, str]]:
    where = ("--workspace", workspace, "-o", f"{workspace}.csv", "--labels", judge)
    assert cli("export", "--format", "csv-long", *where).code == 0
    with Path(f"{workspace}.csv").open(encoding="utf-8", newline="") as file:
        return [{**row, "created_at": ""} for row in csv.DictReader(file)]


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--samples", "3"),
        ("--verify", "--samples", "2"),
        ("--decisive", "--window-tokens", "1000"),
        ("--step-by-step",),
    ],
)
def test_a_recorded_run_comes_out_the_same_with_no_server_and_no_key(
    judge: Judge, cli: Cli, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ModelServer(right) as server:
        where = ("--base-url", server.base_url)
        first = judge("one.db", *where, "--record", "run.jsonl", "--json", *more)
        asked = len(server.chats)
    assert first.code == 0, first.err
    assert len(Path("run.jsonl").read_bytes().splitlines()) == asked
    assert KEY not in Path("run.jsonl").read_text()
    assert server.base_url not in Path("run.jsonl").read_text()
    assert Path("run.jsonl").stat().st_mode & 0o77 == 0
    monkeypatch.delenv("OPENAI_API_KEY")
    where = ("--base-url", "https://models.invalid/v1")
    second_run = judge("two.db", *where, "--replay", "run.jsonl", "--json", *more)
    assert second_run.code == 0, second_run.err
    for name in ("judge", "suggestions", "modes", "quotes", "tokens", "traces"):
        assert second_run.json[name] == first.json[name], name
    name = first.json["judge"]
    assert labels(cli, "two.db", name) == labels(cli, "one.db", name)


def test_failures_are_repeated_too(judge: Judge) -> None:
    def script(body: dict[str, Any], n: int) -> Action:
        if "run 2 " in str(body):
            return answer("what?", tokens_in=3_000)
        if "run 3 " in str(body):
            return status(400, "messages: too odd")
        return right(body, n)

    with ModelServer(script) as server:
        where = ("--base-url", server.base_url)
        first = judge("one.db", *where, "--record", "run.jsonl", "--json")
    second_run = judge("two.db", "--replay", "run.jsonl", "--json")
    assert first.code == second_run.code == 1
    failed = [sorted(str(failure) for failure in run.json["failed"]) for run in (first, second_run)]
    assert failed[0] == failed[1]  # which of them ends first is chance
    assert len(second_run.json["failed"]) == 2
    assert second_run.json["suggestions"] == first.json["suggestions"] == 4


def test_what_was_not_asked_then_is_said_and_ends_the_run(judge: Judge) -> None:
    with ModelServer(right) as server:
        where = ("--base-url", server.base_url)
        assert judge("one.db", *where, "--record", "run.jsonl").code == 0
        asked = len(server.chats)
        done = judge("two.db", *where, "--replay", "run.jsonl", "--temperature", "0.5")
        assert done.code == 1
        assert "run.jsonl has no answer to what is asked about" in done.err
        assert len(server.chats) == asked
    lines = Path("run.jsonl").read_bytes().splitlines(keepends=True)
    Path("part.jsonl").write_bytes(b"".join(lines[:3]))
    done = judge("three.db", "--replay", "part.jsonl", "--json")
    assert done.code == 1
    assert done.json["traces"]["judged"] <= 3
    assert "has no answer" in done.json["stopped"]


def test_a_run_that_goes_on_is_recorded_behind_what_there_is(judge: Judge) -> None:
    with ModelServer(right) as server:
        where = ("--base-url", server.base_url)
        assert judge("one.db", *where, "--record", "run.jsonl").code == 0
        lines = Path("run.jsonl").read_bytes().splitlines(keepends=True)
        Path("run.jsonl").write_bytes(b"".join(lines[:4]) + lines[4][:40])
        assert judge("two.db", *where, "--record", "run.jsonl").code == 0
    found = [json.loads(line) for line in Path("run.jsonl").read_bytes().splitlines()]
    assert len(found) == 4 + 6
    assert judge("three.db", "--replay", "run.jsonl").code == 0


def test_no_other_file_is_written_to_or_taken_for_one(judge: Judge) -> None:
    before = Path("runs/run-0001.json").read_bytes()
    done = judge("one.db", "--base-url", "http://127.0.0.1:9/v1", "--record", "runs/run-0001.json")
    assert done.code == 1
    assert "no recorded answer" in done.err
    assert Path("runs/run-0001.json").read_bytes() == before
    assert "no recorded answer" in judge("one.db", "--replay", "runs/run-0001.json").err
    assert "cannot be read" in judge("one.db", "--replay", "none.jsonl").err
    assert judge("one.db", "--replay", "a", "--record", "b").code == 2

"""``judge --record`` and ``--replay``: a run is repeated without a server and a key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.judges.llm.made_answers import any_answer, write_runs
from tests.judges.llm.server import Action, ModelServer, answer, status

KEY = "sk-of-the-one-who-recorded"


@pytest.fixture
def judge(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command for six runs; its first argument is a workspace."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_runs(tmp_path / "runs", 6)
    model = ("judge", "runs", "--judge", "llm", "--model", "test-model", "--workspace")
    return Cli(lambda *more: cli(*model, *more))


def right_answer(body: dict[str, Any], _: int) -> Action:
    return answer(any_answer(body), tokens_in=len(str(body)) // 3, tokens_out=500)


def labels(cli: Cli, workspace: str, judge: str) -> list[dict[str, str]]:
    rows = cli.rows("--workspace", workspace, labels=judge)
    return [{**row, "created_at": ""} for row in rows]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--samples", "3"),
        ("--verify", "--samples", "2"),
        ("--decisive", "--window-tokens", "1000"),
        ("--step-by-step",),
    ],
)
def test_a_replay_has_the_results_of_the_recorded_run(
    judge: Cli, cli: Cli, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ModelServer(right_answer) as server:
        server_options = ("--base-url", server.base_url)
        first = judge("one.db", *server_options, "--record", "run.jsonl", "--json", *options)
        requests = len(server.chats)
    assert first.code == 0, first.err
    assert len(Path("run.jsonl").read_bytes().splitlines()) == requests
    assert KEY not in Path("run.jsonl").read_text()
    assert server.base_url not in Path("run.jsonl").read_text()
    assert Path("run.jsonl").stat().st_mode & 0o77 == 0
    monkeypatch.delenv("OPENAI_API_KEY")
    server_options = ("--base-url", "https://models.invalid/v1")
    second_run = judge.ok("two.db", *server_options, "--replay", "run.jsonl", "--json", *options)
    for name in ("judge", "suggestions", "modes", "quotes", "tokens", "traces"):
        assert second_run.json[name] == first.json[name], name
    name = first.json["judge"]
    assert labels(cli, "two.db", name) == labels(cli, "one.db", name)


def test_a_replay_repeats_failures(judge: Cli) -> None:
    def script(body: dict[str, Any], n: int) -> Action:
        if "run 2 " in str(body):
            return answer("what?", tokens_in=3_000)
        if "run 3 " in str(body):
            return status(400, "messages: too odd")
        return right_answer(body, n)

    with ModelServer(script) as server:
        server_options = ("--base-url", server.base_url)
        first = judge("one.db", *server_options, "--record", "run.jsonl", "--json")
    second_run = judge("two.db", "--replay", "run.jsonl", "--json")
    assert first.code == second_run.code == 1
    failed = [sorted(str(failure) for failure in run.json["failed"]) for run in (first, second_run)]
    assert failed[0] == failed[1]  # their order is not fixed
    assert len(second_run.json["failed"]) == 2
    assert second_run.json["suggestions"] == first.json["suggestions"] == 4


def test_a_request_without_a_recorded_answer_ends_the_replay(judge: Cli) -> None:
    with ModelServer(right_answer) as server:
        server_options = ("--base-url", server.base_url)
        judge.ok("one.db", *server_options, "--record", "run.jsonl")
        requests = len(server.chats)
        other = ("--replay", "run.jsonl", "--temperature", "0.5")
        result = judge("two.db", *server_options, *other)
        assert result.code == 1
        assert "run.jsonl has no answer to the request about" in result.err
        assert len(server.chats) == requests
    lines = Path("run.jsonl").read_bytes().splitlines(keepends=True)
    Path("part.jsonl").write_bytes(b"".join(lines[:3]))
    result = judge.refused("three.db", "--replay", "part.jsonl", "--json")
    assert result.json["traces"]["judged"] <= 3
    assert "has no answer" in result.json["stopped"]


def test_a_record_is_continued(judge: Cli) -> None:
    with ModelServer(right_answer) as server:
        server_options = ("--base-url", server.base_url)
        judge.ok("one.db", *server_options, "--record", "run.jsonl")
        lines = Path("run.jsonl").read_bytes().splitlines(keepends=True)
        Path("run.jsonl").write_bytes(b"".join(lines[:4]) + lines[4][:40])
        judge.ok("two.db", *server_options, "--record", "run.jsonl")
    answers = [json.loads(line) for line in Path("run.jsonl").read_bytes().splitlines()]
    assert len(answers) == 4 + 6
    judge.ok("three.db", "--replay", "run.jsonl")


def test_other_files_are_neither_overwritten_nor_replayed(judge: Cli) -> None:
    original = Path("runs/run-0001.json").read_bytes()
    judge.refused(
        "one.db",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--record",
        "runs/run-0001.json",
        says="not a recorded answer",
    )
    assert Path("runs/run-0001.json").read_bytes() == original
    assert "not a recorded answer" in judge("one.db", "--replay", "runs/run-0001.json").err
    assert "cannot be read" in judge("one.db", "--replay", "none.jsonl").err
    judge.refused("one.db", "--replay", "a", "--record", "b", code=2)

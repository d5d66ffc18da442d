"""A model judge that writes shards: one allowance, and no repeated request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mast_tui.configuration import Prices
from mast_tui.exchange.migration.mapping import taxonomy_toml
from mast_tui.judges.llm.client.budget import Allowance
from mast_tui.judges.llm.request import AllowanceSpent, RunStops
from mast_tui.scale.shards import ShardFolder, read_requests
from mast_tui.scale.shared_allowance import SharedAllowance, SharedAllowanceAddress, SharedBudget
from tests.cli.conftest import Cli, configure, right_answer
from tests.judges.llm.bench import write_long_runs
from tests.judges.llm.server import ModelServer, answer, status
from tests.judges.llm.test_small_contexts import FEW, ollama
from tests.pickled_workers import PickledWorkers

RUNS = 6
TOKENS_IN = 3_000
TOKENS_OUT = 500


@pytest.fixture
def judge(new_cli: Callable[..., Cli], server: ModelServer) -> Cli:
    """The command for some runs with two files in a shard, and the model of the server."""
    return new_cli(server, RUNS, "--out", "shards", "--shard-files", "2", "--json")


def test_shards_have_the_same_findings_as_a_workspace(
    judge: Cli, cli: Cli, server: ModelServer
) -> None:
    configure('[judge.prices."test-model"]\ninput = 1\noutput = 2\n')
    document = judge.ok().json
    assert (document["traces"]["judged"], document["modes"]) == (RUNS, {"1.3": RUNS})
    assert (document["requests"], document["tokens"]["in"]) == (RUNS, RUNS * TOKENS_IN)
    model = ("--model", "test-model", "--base-url", server.base_url)
    summary = cli.json("judge", "runs", "--judge", "llm", *model, "--quiet")
    for name in ("judge", "suggestions", "cost"):
        assert summary[name] == document[name]
    assert cli.json("import", "shards")["traces"] == {"known": RUNS}
    report = cli.json("report", "shards", "--by", "all")
    assert report["groups"]["all"]["modes"]["1.3"]["count"] == RUNS


def test_a_broken_run_continues_without_repeated_requests(
    judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    server.script = lambda body, n: status(401) if n >= 3 else right_answer(body, n)
    broken = judge.refused("--concurrency", "1")
    assert broken.json["stopped"] in broken.err
    requests = len(server.chats)
    server.script = right_answer
    result = judge("--concurrency", "1").json
    assert result["stopped"] is None
    assert result["shards"]["known"] + result["shards"]["written"] == result["shards"]["all"]
    assert len(server.chats) - requests == RUNS - 3, "three were answered before"
    for shard in (tmp_path / "shards").glob("traces-*"):
        shard.unlink()  # as if the process had been killed before it wrote them
    assert judge().json["traces"]["judged"] == RUNS
    assert len(server.chats) - requests == RUNS - 3


def test_the_request_of_an_unusable_answer_is_repeated(judge: Cli, server: ModelServer) -> None:
    server.script = lambda body, n: (
        answer("I would rather not.") if n < 3 else right_answer(body, n)
    )
    first = judge.refused("--concurrency", "1")
    assert first.json["failed"]
    assert judge().json["failed"] == []


def test_an_allowance_limits_all_requests(judge: Cli, server: ModelServer) -> None:
    allowed = 3 * (TOKENS_IN + TOKENS_OUT)
    spent = judge("--max-tokens-total", allowed, "--concurrency", "1")
    assert "the rest of the allowance is too small" in spent.json["stopped"]
    used = spent.json["tokens"]
    assert used["in"] + used["out"] <= allowed + TOKENS_IN + TOKENS_OUT
    requests = len(server.chats)
    assert 0 < requests < RUNS
    assert judge("--concurrency", "1").json["stopped"] is None
    assert len(server.chats) == RUNS


def test_worker_processes_share_the_allowance(
    judge: Cli, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mast_tui.cli.shared.workers.workers_of", lambda _wanted: PickledWorkers())
    allowed = 20 * (TOKENS_IN + TOKENS_OUT)
    result = judge.ok("--max-tokens-total", allowed, "--workers", "1")
    assert (result.json["traces"]["judged"], len(server.chats)) == (RUNS, RUNS)
    assert json.loads((tmp_path / "shards" / "spent.json").read_text()) == {}


@pytest.mark.parametrize(("files", "out"), [("1", "memory://truncated"), ("8", "shards")])
def test_traces_judged_on_truncated_requests_are_judged_again(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: str, out: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "few.toml").write_text(taxonomy_toml(FEW))
    write_long_runs(tmp_path / "runs", 1, word_count=120)
    with ModelServer(ollama(4_096)) as server:
        model = ("--model", "test-model", "--base-url", server.base_url, "--taxonomy", "few.toml")
        options = ("--out", out, "--shard-files", files, "--concurrency", "1", "--json")

        def judge() -> Any:
            result = cli.ok("judge", "runs", "--judge", "llm", *model, *options, "--quiet")
            return result.json

        assert judge()["traces"]["judged"] == 1
        assert len(server.chats) == 1, "the truncation is not noticed"
        write_long_runs(tmp_path / "runs" / "more", 2, word_count=300)
        second = judge()
        requests = len(server.chats)
        third = judge()
        assert len(server.chats) == requests
    assert second["traces"]["judged"] == 3
    assert second["shards"]["known"] == third["shards"]["written"] == 0
    assert third["shards"]["known"] == third["shards"]["all"]
    folder = ShardFolder(out)
    sizes = [size for shard in folder.manifest().shards for size in read_requests(folder, shard)]
    assert sizes
    assert all(size.counted < 4_096 for size in sizes)


def test_options_that_need_a_workspace_are_refused(judge: Cli, cli: Cli) -> None:
    for option in ("--batch", "--record=x", "--hold-out=0.5", "--few-shot=gold", "--again"):
        judge.refused(option, code=2)
    arguments = ("judge", "runs", "--judge", "llm", "--model", "m", "--workers", "2")
    cli.refused(*arguments, says="--out", code=2)
    assert judge("--dry-run").json["traces"]["to_judge"] == RUNS


async def spend(budget: SharedBudget, limit: int = 1_000) -> int:
    """Reserve tokens until none are left, and return the number of requests."""
    for count in range(limit):
        try:
            reserved = await budget.reserve(900, 400)
        except AllowanceSpent:
            return count
        budget.settle(reserved, 900, 100)
    return limit


@pytest.mark.parametrize(
    ("allowance", "requests"),
    [(Allowance(tokens=10_500), 10), (Allowance(tokens=99_000, cost=11.9), 11)],
)
async def test_parts_of_an_allowance_are_reserved_and_returned(
    allowance: Allowance, requests: int
) -> None:
    prices = Prices(input=1_000.0, output=1_000.0)  # the price of a million tokens
    amounts: list[float] = []
    with SharedAllowance("127.0.0.1", 0.0, amounts.append) as shared:
        first, second = (SharedBudget(shared.address, allowance, prices) for _ in range(2))
        count = await spend(first, 4)
        first.close()
        assert count + await spend(second) == requests
        assert shared.spent
        second.close()
        killed = SharedBudget(shared.address, allowance, prices)
        with pytest.raises(AllowanceSpent):
            await killed.reserve(900, 400)
    assert max(amounts) <= 1.0 + 1e-6


def test_a_worker_reports_that_the_command_is_unreachable() -> None:
    with pytest.raises(RunStops, match=r"at 127\.0\.0\.1:9 .* firewall"):
        SharedBudget(SharedAllowanceAddress(("127.0.0.1", 9), b"s"), Allowance(1), None)


@pytest.mark.parametrize("seed", range(3))
async def test_all_budgets_exceed_the_allowance_by_one_request_each(seed: int) -> None:
    random = Random(seed)
    allowed = 200_000
    longest = 6_000
    with SharedAllowance("127.0.0.1", 0.0, lambda _: None) as shared:
        budgets = [SharedBudget(shared.address, Allowance(allowed), None) for _ in range(3)]

        async def ask(budget: SharedBudget) -> None:
            while True:
                try:
                    reserved = await budget.reserve(random.randint(500, 4_000), 2_000)
                except AllowanceSpent:
                    return
                await asyncio.sleep(0)
                budget.settle(reserved, reserved.tokens_in, random.randint(0, 2_000))

        await asyncio.gather(*(ask(budget) for budget in budgets for _ in range(2)))
        for budget in budgets:
            budget.close()
    used = sum(budget.tokens for budget in budgets)
    assert allowed - longest <= used <= allowed + len(budgets) * longest

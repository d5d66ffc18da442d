"""``mast-tui judge --judge llm``: estimate, privacy, costs, examples and refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mast_tui.labels import PassKind, Target
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import scan
from mast_tui.workspace import TraceRecord
from mast_tui.workspace.events.types import LabelAdded, PassFinished, PassStarted
from mast_tui.workspace.registers.hold_out import held_out
from tests.cli.conftest import Cli, configure, opened, right
from tests.judges.llm.made_answers import judgement, write_runs
from tests.judges.llm.server import Action, ModelServer, answer, status
from tests.workspace.build import event
from tests.workspace.build import label as made_label

MAST = load_mast()


@pytest.fixture
def judge(judging: Callable[..., Cli], server: ModelServer) -> Cli:
    """The command over six runs, asked of the server."""
    return judging(server, 6)


def test_a_dry_run_reports_what_would_be_sent_and_changes_nothing(
    judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    document = judge.json("--dry-run")
    assert document["traces"] == {"all": 6, "known": 0, "unread": 0, "to_judge": 6}
    assert (document["windows"], document["requests"], document["cost"]) == (6, 6, None)
    assert 6 * 3_000 < document["tokens"]["in"] < 6 * 8_000
    assert "e-mail" in document["sent"]
    assert document["host"] in document["sent"]
    output = judge("--dry-run").out
    assert "6 requests" in output
    assert "e-mail" in output
    assert server.requests == []
    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_prints_an_estimate_and_a_summary_and_has_a_document(judge: Cli) -> None:
    done = judge.ok()
    lines = done.err.splitlines()
    assert "6 traces" in lines[0]
    assert "6 requests" in lines[1]
    assert sum("1 suggestion" in line for line in lines) == 6
    assert "6 traces judged" in done.out
    assert "quotes found in the traces: 6 of 6 (100%); 6 exact\n" in done.out
    assert "18 k tokens in" in done.out
    known = judge.json()
    assert (known["traces"]["known"], known["run"], known["requests"]["now"]) == (6, None, 0)
    assert judge.ok("--again", "--quiet").err == ""

    summary = judge.json("--workspace", "other.db")
    assert summary["judge"].startswith("judge:test-model@")
    assert summary["traces"] == {"judged": 6, "known": 0, "failed": 0, "left": 0}
    assert (summary["suggestions"], summary["modes"]) == (6, {"1.3": 6})
    kinds = dict.fromkeys(("spacing", "reworded", "in_parts", "altered", "not_found"), 0)
    assert summary["quotes"] == {"all": 6, "verified": 6, "share": 1.0, "exact": 6, **kinds}
    assert summary["tokens"] == {"in": 18_000, "out": 3_000, "cached": 0}
    assert summary["requests"] == {"run": 6, "now": 6}
    assert (summary["form"], summary["cost"], summary["ending"]) == ("json_schema", None, None)


def test_failures_are_listed_and_set_the_exit_code(
    judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    server.script = lambda _body, _n: status(401, "no", code="invalid_api_key")
    done = judge.refused("--json")
    assert done.json["stopped"]
    assert done.json["traces"]["left"] == 6
    assert "OPENAI_API_KEY" in done.err.splitlines()[-1]
    (tmp_path / "runs" / "broken.json").write_text("{")
    server.script = lambda body, n: (
        answer("what?", tokens_in=3_000) if "run 2 " in str(body) else right(body, n)
    )
    done = judge.refused("--json", says="run-0002.json")
    failed = {Path(item["path"]).name for item in done.json["failed"]}
    assert failed == {"broken.json", "run-0002.json"}


def test_another_machine_needs_a_key_and_an_address(cli: Cli, judge: Cli, tmp_path: Path) -> None:
    model = ("judge", "runs", "--judge", "llm", "--model", "m", "--base-url")
    cli.refused(*model, "ftp://x", says="not the address")
    done = cli.refused(*model, "https://models.invalid/v1", says="set OPENAI_API_KEY")
    assert done.err.count("\n") == 1
    assert not (tmp_path / ".mast-tui").exists()
    assert "models.invalid" in cli.ok(*model, "https://models.invalid/v1", "--dry-run").out


def test_what_is_sent_to_another_machine_is_reported_once(
    judge: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mast_tui.judges.llm.run.setup.is_this_machine", lambda _: False)
    first = judge("--quiet").err
    assert first.count("\n") == 1
    for word in ("texts of the traces", "127.0.0.1", "OPENAI_API_KEY", "e-mail"):
        assert word in first
    assert judge("--quiet", "--again").err == ""


def test_the_key_is_in_no_file_and_no_output(
    judge: Cli, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-not-a-real-key-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    write_runs(tmp_path / "runs", 1, first=7)
    path = tmp_path / "runs" / "run-0007.json"
    path.write_text(path.read_text().replace("line 1", f"line {key}"))
    server.script = lambda body, n: (
        status(400, f"bad key {key}") if "run 3 " in str(body) else right(body, n)
    )
    done = judge()
    assert server.chats[0].headers["authorization"] == f"Bearer {key}"
    assert all(key not in str(chat.body) for chat in server.chats), "a trace contains it too"
    assert key not in done.out + done.err
    kept = [file for file in (tmp_path / ".mast-tui").iterdir() if file.is_file()]
    assert kept
    assert all(key.encode() not in file.read_bytes() for file in kept)


def test_a_cost_limit_needs_prices_and_holds(
    judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    refusal = '[judge.prices."test-model"], then input = 0.25'
    judge.refused("--max-cost", "0.01", says=refusal)
    assert server.requests == []
    configure('[judge.prices."test-model"]\ninput = 1\noutput = 2\n')
    spent = judge.refused("--max-cost", "0.014", "--concurrency", "1", "--json").json
    assert (spent["ending"], spent["cost"] <= 0.014) == ("allowance spent", True)
    assert "of the 0.0140 allowed are spent" in spent["allowance"]
    judge.ok("--max-cost", "1")
    assert len(server.chats) == 6

    prices = "input = 10.0\noutput = 0.0\ncached = 1.0\n"
    configure(f'[judge.prices."test-model"]\n{prices}')
    server.script = lambda body, _: answer(
        judgement(body), tokens_in=3_000, tokens_out=5, tokens_cached=2_000
    )
    document = judge.json("--max-cost", "1.5", "--again")
    assert document["tokens"] == {"in": 18_000, "out": 30, "cached": 12_000}
    assert document["cost"] == pytest.approx((6_000 * 10 + 12_000 * 1) / 1e6)
    with opened() as workspace:
        (run,) = [run for run in workspace.runs() if run.id == document["run"]]
    assert run.usage.tokens_cached == 12_000
    assert run.cost == pytest.approx(document["cost"])
    assert "(12 k of them cached)" in judge("--again").out


@pytest.mark.parametrize(
    "options",
    [
        "--judge rules --model m",
        "--judge rules --dry-run",
        "--judge rules --samples 1",
        "--judge llm",
        "--judge llm --model m --examples 3",
        "--judge llm --model m --no-redact --redact f",
        "--judge llm --model m --samples 0",
        "--judge llm --model m --hold-out 1",
        "--judge llm --model m --max-cost 0",
    ],
)
def test_options_that_exclude_each_other_are_refused(cli: Cli, options: str) -> None:
    Path("runs").mkdir()
    cli.refused("judge", "runs", *options.split(), code=2)


def test_the_configuration_may_name_the_model(
    cli: Cli, judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    configure(f'[judge]\nmodel = "local"\nbase_url = "{server.base_url}"\n')
    assert cli.json("judge", "runs", "--judge", "llm")["judge"].startswith("judge:local@")
    assert server.chats[0].body["model"] == "local"
    configure('[judge]\nmodle = "local"\n')
    cli.refused("judge", "runs", "--judge", "llm", says="modle")


def test_own_patterns_are_redacted(judge: Cli, server: ModelServer, tmp_path: Path) -> None:
    (tmp_path / "patterns.txt").write_text("# names\nAlice\n(\n")
    judge.refused("--redact", "patterns.txt", says=("patterns.txt", "3"))
    (tmp_path / "patterns.txt").write_text("word = says line \\d\n")
    judge.ok("--redact", "patterns.txt", "--quiet")
    sent = [str(chat.body["messages"]) for chat in server.chats]
    assert sent
    assert not any("says line" in text for text in sent)


def settle(folder: Path, *names: str) -> list[str]:
    """Have two annotators label a step repetition in these runs; return the runs' ids."""
    ids = []
    with opened() as workspace:
        workspace.add_taxonomy(MAST)
        traces = [trace for report in scan([folder / "runs"]) for trace in report.traces]
        for trace in traces:
            if trace.path.name not in names:
                continue
            ids.append(workspace.register_trace(TraceRecord.from_trace(trace)))
            key = trace.span(1).key
            for who in ("alice", "bob"):
                mark = made_label(
                    workspace,
                    "step_repetition",
                    Target(key, key),
                    annotator=who,
                    trace_id=ids[-1],
                    note="it says so again",
                )
                begun = (PassStarted(PassKind.ASSISTED), LabelAdded(mark), PassFinished())
                workspace.append([event(f, annotator=who, trace_id=ids[-1]) for f in begun])
    return ids


def test_examples_come_from_gold_and_are_recorded(
    judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    judge.refused("--few-shot", "gold", says="no settled gold")
    plain = judge.json("--dry-run")["judge"]
    ids = settle(tmp_path, "run-0001.json", "run-0004.json")
    done = judge.json("--few-shot", "gold", "--examples", "2")
    assert done["judge"] != plain, "examples are a part of the prompt"
    assert sorted(done["examples"]) == sorted(ids)
    system = str(server.chats[0].body["messages"])
    assert "run 1 says line 1" in system
    assert "it says so again" in system
    with opened() as workspace:
        assert workspace.run_examples(done["judge"]) == frozenset(ids)


def test_a_broken_run_continues_with_its_own_examples(
    judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    settle(tmp_path, "run-0001.json")
    few_shot = ("--few-shot", "gold", "--json", "--concurrency", "1")
    server.script = lambda body, n: right(body, n) if n < 2 else status(401)
    stopped = judge(*few_shot)
    assert stopped.json["stopped"]
    settle(tmp_path, "run-0000.json", "run-0005.json")
    server.script = right
    done = judge.ok(*few_shot)
    assert done.json["judge"] == stopped.json["judge"]
    assert done.json["resumed"]
    assert len(server.chats) == 7
    fresh = judge(*few_shot).json
    assert fresh["judge"] != done.json["judge"], "the next run shows what is gold by now"


def test_traces_that_are_set_aside_are_in_no_prompt(judge: Cli, tmp_path: Path) -> None:
    ids = settle(tmp_path, *(f"run-000{n}.json" for n in range(6)))
    done = judge.ok("--few-shot", "gold", "--examples", "6", "--hold-out", "0.5", "--json")
    with opened() as workspace:
        kept_away = {trace_id for trace_id in ids if held_out(workspace, trace_id)}
    assert kept_away
    assert set(done.json["examples"]) == set(ids) - kept_away
    judge.refused("--hold-out", "0.25", says="set aside")


def test_built_in_examples_need_no_gold_and_are_recorded(judge: Cli, server: ModelServer) -> None:
    server.script = lambda body, _: answer(judgement(body), tokens_in=11_000)
    done = judge.json("--few-shot", "built-in")
    assert len(done["examples"]) > 8, "their traces are left out of figures"
    assert "# Examples" in str(server.chats[0].body["messages"])
    assert judge.json("--few-shot", "built-in")["traces"]["known"] == 6
    judge.refused("--few-shot", "built-in", "--examples", "2", code=2)


def second_looks(body: dict[str, Any], _: int) -> Action:
    """Right answers, and a second look in which no finding holds."""
    if "Does the finding hold?" in str(body["messages"]):
        text = '{"definition": "not met", "verdict": "fails", "confidence": 0.1}'
        return answer(text, tokens_in=1_000, tokens_out=100)
    return right(body, 0)


def test_verification_counts_against_the_allowance_and_continues(
    judge: Cli, server: ModelServer
) -> None:
    server.script = second_looks
    limit = ("--max-tokens-total", "16000")
    begun = judge("--verify", "--json", "--concurrency", "1", *limit).json
    assert begun["ending"] == "allowance spent"
    assert begun["tokens"]["in"] + begun["tokens"]["out"] <= 16_000
    done = judge.json("--verify")
    assert done["suggestions"] == 0
    assert done["remarks"]["1 finding did not hold on a second look"] >= 2
    assert len(server.chats) == 12, "each trace is asked about once, and each finding"
    assert done["judge"] != judge.json("--dry-run")["judge"]

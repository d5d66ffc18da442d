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
from tests.cli.conftest import Cli, configure, open_workspace, right_answer
from tests.judges.llm.made_answers import judgement, write_runs
from tests.judges.llm.server import Action, ModelServer, answer, status
from tests.workspace.build import event
from tests.workspace.build import label as build_label

MAST = load_mast()


@pytest.fixture
def judge(new_cli: Callable[..., Cli], server: ModelServer) -> Cli:
    """The command for six runs and the model of the server."""
    return new_cli(server, 6)


def test_a_dry_run_reports_its_requests_and_changes_nothing(
    judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    previous = sorted(tmp_path.rglob("*"))
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
    assert sorted(tmp_path.rglob("*")) == previous


def test_a_run_prints_an_estimate_and_a_summary_and_has_a_document(judge: Cli) -> None:
    result = judge.ok()
    lines = result.err.splitlines()
    assert "6 traces" in lines[0]
    assert "6 requests" in lines[1]
    assert sum("1 suggestion" in line for line in lines) == 6
    assert "6 traces judged" in result.out
    assert "quotes found in the traces: 6 of 6 (100%); 6 exact\n" in result.out
    assert "18 k tokens in" in result.out
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
    result = judge.refused("--json")
    assert result.json["stopped"]
    assert result.json["traces"]["left"] == 6
    assert "OPENAI_API_KEY" in result.err.splitlines()[-1]
    (tmp_path / "runs" / "broken.json").write_text("{")
    server.script = lambda body, n: (
        answer("what?", tokens_in=3_000) if "run 2 " in str(body) else right_answer(body, n)
    )
    result = judge.refused("--json", says="run-0002.json")
    failed = {Path(item["path"]).name for item in result.json["failed"]}
    assert failed == {"broken.json", "run-0002.json"}


def test_another_machine_needs_a_key_and_an_address(cli: Cli, judge: Cli, tmp_path: Path) -> None:
    model = ("judge", "runs", "--judge", "llm", "--model", "m", "--base-url")
    cli.refused(*model, "ftp://x", says="not the address")
    result = cli.refused(*model, "https://models.invalid/v1", says="set OPENAI_API_KEY")
    assert result.err.count("\n") == 1
    assert not (tmp_path / ".mast-tui").exists()
    assert "models.invalid" in cli.ok(*model, "https://models.invalid/v1", "--dry-run").out


def test_the_data_sent_to_another_machine_are_reported_once(
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
        status(400, f"bad key {key}") if "run 3 " in str(body) else right_answer(body, n)
    )
    result = judge()
    assert server.chats[0].headers["authorization"] == f"Bearer {key}"
    assert all(key not in str(chat.body) for chat in server.chats), "a trace contains it too"
    assert key not in result.out + result.err
    files = [file for file in (tmp_path / ".mast-tui").iterdir() if file.is_file()]
    assert files
    assert all(key.encode() not in file.read_bytes() for file in files)


def test_a_cost_limit_needs_prices_and_holds(
    judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    refusal = '[judge.prices."test-model"], then input = 0.25'
    judge.refused("--max-cost", "0.01", says=refusal)
    assert server.requests == []
    configure('[judge.prices."test-model"]\ninput = 1\noutput = 2\n')
    spent = judge.refused("--max-cost", "0.014", "--concurrency", "1", "--json").json
    assert (spent["ending"], spent["cost"] <= 0.014) == ("allowance spent", True)
    assert "would exceed the 0.0140 allowed" in spent["allowance"]
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
    with open_workspace() as workspace:
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


def test_the_users_patterns_are_redacted(judge: Cli, server: ModelServer, tmp_path: Path) -> None:
    (tmp_path / "patterns.txt").write_text("# names\nAlice\n(\n")
    judge.refused("--redact", "patterns.txt", says=("patterns.txt", "3"))
    (tmp_path / "patterns.txt").write_text("word = says line \\d\n")
    judge.ok("--redact", "patterns.txt", "--quiet")
    sent = [str(chat.body["messages"]) for chat in server.chats]
    assert sent
    assert not any("says line" in text for text in sent)


def label_gold(folder: Path, *names: str) -> list[str]:
    """Have two annotators label a step repetition in these runs, and return the runs' ids."""
    ids = []
    with open_workspace() as workspace:
        workspace.add_taxonomy(MAST)
        traces = [trace for report in scan([folder / "runs"]) for trace in report.traces]
        for trace in traces:
            if trace.path.name not in names:
                continue
            ids.append(workspace.register_trace(TraceRecord.from_trace(trace)))
            key = trace.span(1).key
            for name in ("alice", "bob"):
                label = build_label(
                    workspace,
                    "step_repetition",
                    Target(key, key),
                    annotator=name,
                    trace_id=ids[-1],
                    note="it says so again",
                )
                facts = (PassStarted(PassKind.ASSISTED), LabelAdded(label), PassFinished())
                workspace.append([event(fact, annotator=name, trace_id=ids[-1]) for fact in facts])
    return ids


def test_examples_come_from_gold_and_are_recorded(
    judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    judge.refused("--few-shot", "gold", says="no settled gold")
    plain = judge.json("--dry-run")["judge"]
    ids = label_gold(tmp_path, "run-0001.json", "run-0004.json")
    result = judge.json("--few-shot", "gold", "--examples", "2")
    assert result["judge"] != plain, "examples are a part of the prompt"
    assert sorted(result["examples"]) == sorted(ids)
    system = str(server.chats[0].body["messages"])
    assert "run 1 says line 1" in system
    assert "it says so again" in system
    with open_workspace() as workspace:
        assert workspace.run_examples(result["judge"]) == frozenset(ids)


def test_a_broken_run_continues_with_its_own_examples(
    judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    label_gold(tmp_path, "run-0001.json")
    few_shot = ("--few-shot", "gold", "--json", "--concurrency", "1")
    server.script = lambda body, n: right_answer(body, n) if n < 2 else status(401)
    stopped = judge(*few_shot)
    assert stopped.json["stopped"]
    label_gold(tmp_path, "run-0000.json", "run-0005.json")
    server.script = right_answer
    result = judge.ok(*few_shot)
    assert result.json["judge"] == stopped.json["judge"]
    assert result.json["resumed"]
    assert len(server.chats) == 7
    fresh = judge(*few_shot).json
    assert fresh["judge"] != result.json["judge"], "the next run shows what is gold by now"


def test_traces_that_are_set_aside_are_in_no_prompt(judge: Cli, tmp_path: Path) -> None:
    ids = label_gold(tmp_path, *(f"run-000{n}.json" for n in range(6)))
    result = judge.ok("--few-shot", "gold", "--examples", "6", "--hold-out", "0.5", "--json")
    with open_workspace() as workspace:
        set_aside = {trace_id for trace_id in ids if held_out(workspace, trace_id)}
    assert set_aside
    assert set(result.json["examples"]) == set(ids) - set_aside
    judge.refused("--hold-out", "0.25", says="set aside")


def test_built_in_examples_need_no_gold_and_are_recorded(judge: Cli, server: ModelServer) -> None:
    server.script = lambda body, _: answer(judgement(body), tokens_in=11_000)
    result = judge.json("--few-shot", "built-in")
    assert len(result["examples"]) > 8, "their traces are left out of figures"
    assert "# Examples" in str(server.chats[0].body["messages"])
    assert judge.json("--few-shot", "built-in")["traces"]["known"] == 6
    judge.refused("--few-shot", "built-in", "--examples", "2", code=2)


def reject_on_second_look(body: dict[str, Any], _: int) -> Action:
    """Return a right answer, or reject the finding of a second look."""
    if "Does the finding hold?" in str(body["messages"]):
        text = '{"definition": "not met", "verdict": "fails", "confidence": 0.1}'
        return answer(text, tokens_in=1_000, tokens_out=100)
    return right_answer(body, 0)


def test_verification_counts_against_the_allowance_and_continues(
    judge: Cli, server: ModelServer
) -> None:
    server.script = reject_on_second_look
    limit = ("--max-tokens-total", "16000")
    first = judge("--verify", "--json", "--concurrency", "1", *limit).json
    assert first["ending"] == "allowance spent"
    assert first["tokens"]["in"] + first["tokens"]["out"] <= 16_000
    result = judge.json("--verify")
    assert result["suggestions"] == 0
    assert result["remarks"]["1 finding did not hold on a second look"] >= 2
    assert len(server.chats) == 12, "each trace is asked about once, and each finding"
    assert result["judge"] != judge.json("--dry-run")["judge"]

"""``mast-tui judge --judge llm``: estimate, notice, run, summary, and what is wrong usage."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mast_tui.judges.llm.run import run_journal, setup
from mast_tui.judges.quote_anchoring import Locator
from mast_tui.labels import Match, PassKind, Target
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import scan
from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.workspace.events.types import LabelAdded, PassFinished, PassStarted
from mast_tui.workspace.registers.hold_out import held_out
from tests.cli.conftest import Cli, Judge, right
from tests.judges.llm.made_answers import said, write_runs
from tests.judges.llm.server import Action, ModelServer, answer, status
from tests.workspace.build import event
from tests.workspace.build import label as made_label

MAST = load_mast()


@pytest.fixture
def judge(judging: Callable[..., Judge], server: ModelServer) -> Judge:
    """The command over six runs, asked of the server."""
    return judging(server, 6)


def configure(folder: Path, text: str) -> None:
    path = folder / "config" / "mast-tui" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_dry_run_tells_what_would_be_sent_and_sends_and_writes_nothing(
    judge: Judge, server: ModelServer, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    done = judge("--dry-run", "--json")
    assert (done.code, server.requests) == (0, [])
    assert sorted(tmp_path.rglob("*")) == before
    document = done.json
    assert document["traces"] == {"all": 6, "known": 0, "unread": 0, "to_judge": 6}
    assert (document["windows"], document["requests"], document["cost"]) == (6, 6, None)
    assert 6 * 3_000 < document["tokens"]["in"] < 6 * 8_000
    assert "e-mail" in document["sent"]
    assert document["host"] in document["sent"]
    output = judge("--dry-run").out
    assert "6 requests" in output
    assert "e-mail" in output


def test_the_estimate_comes_first_and_the_summary_last(judge: Judge) -> None:
    done = judge()
    assert done.code == 0, done.err
    lines = done.err.splitlines()
    assert "6 traces" in lines[0]
    assert "6 requests" in lines[1]
    assert sum("1 suggestion" in line for line in lines) == 6
    assert "6 traces judged" in done.out
    assert "quotes found in the traces: 6 of 6 (100%); 6 exact\n" in done.out
    assert "18 k tokens in" in done.out


def test_the_document_holds_all_of_it_and_nothing_else_is_on_stdout(judge: Judge) -> None:
    summary = judge("--json").json
    assert summary["judge"].startswith("judge:test-model@")
    assert summary["traces"] == {"judged": 6, "known": 0, "failed": 0, "left": 0}
    assert (summary["suggestions"], summary["modes"]) == (6, {"1.3": 6})
    kinds = {"exact": 6, "spacing": 0, "reworded": 0, "in_parts": 0, "altered": 0, "not_found": 0}
    assert summary["quotes"] == {"all": 6, "verified": 6, "share": 1.0, **kinds}
    assert summary["tokens"] == {"in": 18_000, "out": 3_000, "cached": 0}
    assert summary["requests"] == {"run": 6, "now": 6}
    assert (summary["form"], summary["cost"], summary["ending"]) == ("json_schema", None, None)
    second_document = judge("--json").json
    assert second_document["traces"]["known"] == 6
    assert (second_document["run"], second_document["requests"]["now"]) == (None, 0)


def test_quiet_says_nothing(judge: Judge) -> None:
    done = judge("--quiet")
    assert (done.code, done.err) == (0, "")


def test_failures_are_listed_and_an_exit_code_tells(
    judge: Judge, server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "runs" / "broken.json").write_text("{")
    server.script = lambda body, n: (
        answer("what?", tokens_in=3_000) if "run 2 " in str(body) else right(body, n)
    )
    done = judge("--json")
    assert done.code == 1
    failed = {Path(item["path"]).name for item in done.json["failed"]}
    assert failed == {"broken.json", "run-0002.json"}
    assert "run-0002.json" in done.err


def test_a_wrong_key_stops_in_one_sentence(judge: Judge, server: ModelServer) -> None:
    server.script = lambda _body, _n: status(401, "no", code="invalid_api_key")
    done = judge("--json")
    assert done.code == 1
    assert done.json["stopped"]
    assert done.json["traces"]["left"] == 6
    assert "OPENAI_API_KEY" in done.err.splitlines()[-1]


def test_no_server_is_told_before_anything_is_asked_of_the_person(cli: Cli, judge: Judge) -> None:
    done = cli("judge", "runs", "--judge", "llm", "--model", "m", "--base-url", "ftp://x")
    assert done.code == 1
    assert "no address" in done.err


def test_a_key_is_wanted_for_another_machine(cli: Cli, judge: Judge, tmp_path: Path) -> None:
    where = ("--model", "m", "--base-url", "https://models.invalid/v1")
    done = cli("judge", "runs", "--judge", "llm", *where)
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "set OPENAI_API_KEY" in done.err
    assert not (tmp_path / ".mast-tui").exists()
    told = cli("judge", "runs", "--judge", "llm", *where, "--dry-run")
    assert told.code == 0
    assert "models.invalid" in told.out


def test_what_is_sent_to_another_machine_is_told_once(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mast_tui.judges.llm.run.setup.is_this_machine", lambda _: False)
    first = judge("--quiet").err
    assert first.count("\n") == 1
    for word in ("texts of the traces", "127.0.0.1", "OPENAI_API_KEY", "e-mail"):
        assert word in first
    assert judge("--quiet", "--again").err == ""


def test_the_key_is_in_no_file_and_no_output(
    judge: Judge, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    assert all(key not in str(chat.body) for chat in server.chats), "it stands in a trace as well"
    assert key not in done.out + done.err
    kept = [file for file in (tmp_path / ".mast-tui").iterdir() if file.is_file()]
    assert kept
    assert all(key.encode() not in file.read_bytes() for file in kept)


def test_money_needs_prices_and_is_kept(judge: Judge, server: ModelServer, tmp_path: Path) -> None:
    refused = judge("--max-cost", "0.01")
    assert refused.code == 1
    assert '[judge.prices."test-model"], then input = 0.25' in refused.err
    assert server.requests == []
    configure(tmp_path, '[judge.prices."test-model"]\ninput = 1\noutput = 2\n')
    done = judge("--max-cost", "0.014", "--concurrency", "1", "--json")
    assert done.code == 1
    assert done.json["ending"] == "allowance spent"
    assert done.json["cost"] <= 0.014
    assert "of the 0.0140 allowed are spent" in done.json["allowance"]
    done = judge("--max-cost", "1", "--json")
    assert done.code == 0
    assert len(server.chats) == 6


def test_the_model_may_stand_in_the_configuration(
    cli: Cli, judge: Judge, server: ModelServer, tmp_path: Path
) -> None:
    configure(tmp_path, f'[judge]\nmodel = "local"\nbase_url = "{server.base_url}"\n')
    done = cli("judge", "runs", "--judge", "llm", "--json")
    assert done.json["judge"].startswith("judge:local@")
    assert server.chats[0].body["model"] == "local"
    configure(tmp_path, '[judge]\nmodle = "local"\n')
    wrong = cli("judge", "runs", "--judge", "llm")
    assert wrong.code == 1
    assert "modle" in wrong.err


@pytest.mark.parametrize(
    "words",
    [
        ("--judge", "rules", "--model", "m"),
        ("--judge", "rules", "--dry-run"),
        ("--judge", "rules", "--samples", "1"),
        ("--judge", "llm"),
        ("--judge", "llm", "--model", "m", "--examples", "3"),
        ("--judge", "llm", "--model", "m", "--no-redact", "--redact", "f"),
        ("--judge", "llm", "--model", "m", "--samples", "0"),
        ("--judge", "llm", "--model", "m", "--hold-out", "1"),
        ("--judge", "llm", "--model", "m", "--max-cost", "0"),
    ],
)
def test_wrong_usage(cli: Cli, judge: Judge, words: tuple[str, ...]) -> None:
    done = cli("judge", "runs", *words)
    assert done.code == 2
    assert done.out == ""


def test_a_bad_pattern_is_named_with_its_line(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "patterns.txt").write_text("# names\nAlice\n(\n")
    done = judge("--redact", "patterns.txt")
    assert done.code == 1
    assert "patterns.txt" in done.err
    assert "3" in done.err


def test_own_patterns_are_taken_out(judge: Judge, server: ModelServer, tmp_path: Path) -> None:
    (tmp_path / "patterns.txt").write_text("word = says line \\d\n")
    assert judge("--redact", "patterns.txt", "--quiet").code == 0
    sent = [str(chat.body["messages"]) for chat in server.chats]
    assert sent
    assert not any("says line" in text for text in sent)


def settle(folder: Path, *names: str) -> list[str]:
    """Have two people agree that the second span of these runs repeats a step; their ids."""
    workspace = Workspace.open(folder / ".mast-tui" / "workspace.db")
    workspace.add_taxonomy(MAST)
    ids = []
    for report in scan([folder / "runs"]):
        for trace in report.traces:
            if trace.path.name not in names:
                continue
            trace_id = workspace.register_trace(TraceRecord.from_trace(trace))
            ids.append(trace_id)
            key = trace.span(1).key
            for who in ("alice", "bob"):
                mark = made_label(
                    workspace,
                    "step_repetition",
                    Target(key, key),
                    annotator=who,
                    trace_id=trace_id,
                    note="it says so again",
                )
                begun = (PassStarted(PassKind.ASSISTED), LabelAdded(mark), PassFinished())
                workspace.append([event(f, annotator=who, trace_id=trace_id) for f in begun])
    workspace.close()
    return ids


def test_examples_come_from_gold_and_are_recorded(
    judge: Judge, server: ModelServer, tmp_path: Path
) -> None:
    none_yet = judge("--few-shot", "gold")
    assert none_yet.code == 1
    assert "no settled gold" in none_yet.err
    plain = judge("--dry-run", "--json").json["judge"]
    ids = settle(tmp_path, "run-0001.json", "run-0004.json")
    done = judge("--few-shot", "gold", "--examples", "2", "--json").json
    assert done["judge"] != plain, "examples are a part of the prompt"
    assert sorted(done["examples"]) == sorted(ids)
    system = str(server.chats[0].body["messages"])
    assert "run 1 says line 1" in system
    assert "it says so again" in system
    with closing(Workspace.open(tmp_path / ".mast-tui" / "workspace.db")) as workspace:
        assert workspace.run_examples(done["judge"]) == frozenset(ids)


def test_a_run_that_was_broken_off_goes_on_with_its_own_examples(
    judge: Judge, server: ModelServer, tmp_path: Path
) -> None:
    settle(tmp_path, "run-0001.json")
    few_shot = ("--few-shot", "gold", "--json", "--concurrency", "1")
    server.script = lambda body, n: right(body, n) if n < 2 else status(401)
    stopped = judge(*few_shot)
    assert stopped.json["stopped"]
    settle(tmp_path, "run-0000.json", "run-0005.json")
    server.script = right
    done = judge(*few_shot)
    assert done.code == 0, done.err
    assert done.json["judge"] == stopped.json["judge"]
    assert done.json["resumed"]
    assert len(server.chats) == 7
    fresh = judge(*few_shot).json
    assert fresh["judge"] != done.json["judge"], "the next run shows what is gold by now"


def test_what_is_held_out_is_in_no_prompt_and_stays_so(judge: Judge, tmp_path: Path) -> None:
    ids = settle(tmp_path, *(f"run-000{n}.json" for n in range(6)))
    done = judge("--few-shot", "gold", "--examples", "6", "--hold-out", "0.5", "--json")
    assert done.code == 0, done.err
    with closing(Workspace.open(tmp_path / ".mast-tui" / "workspace.db")) as workspace:
        kept_away = {trace_id for trace_id in ids if held_out(workspace, trace_id)}
    assert kept_away
    assert set(done.json["examples"]) == set(ids) - kept_away
    other = judge("--hold-out", "0.25")
    assert other.code == 1
    assert "set aside" in other.err


def test_built_in_examples_need_no_gold_and_are_recorded(judge: Judge, server: ModelServer) -> None:
    server.script = lambda body, _: answer(said(body), tokens_in=11_000)
    done = judge("--few-shot", "built-in", "--json")
    assert done.code == 0, done.err
    assert len(done.json["examples"]) > 8, "their traces are left out of figures"
    system = str(server.chats[0].body["messages"])
    assert "# Examples" in system
    assert judge("--few-shot", "built-in", "--json").json["traces"]["known"] == 6
    wrong = judge("--few-shot", "built-in", "--examples", "2")
    assert wrong.code == 2


def second_looks(body: dict[str, Any], _: int) -> Action:
    """Right answers, and a second look in which no finding holds."""
    if "Does the finding hold?" in str(body["messages"]):
        text = '{"definition": "not met", "verdict": "fails", "confidence": 0.1}'
        return answer(text, tokens_in=1_000, tokens_out=100)
    return right(body, 0)


def test_a_second_look_counts_against_the_allowance_and_is_taken_up(
    judge: Judge, server: ModelServer
) -> None:
    server.script = second_looks
    begun = judge("--verify", "--json", "--concurrency", "1", "--max-tokens-total", "16000")
    assert begun.json["ending"] == "allowance spent"
    used = begun.json["tokens"]
    assert used["in"] + used["out"] <= 16_000
    done = judge("--verify", "--json")
    assert done.code == 0, done.err
    assert done.json["suggestions"] == 0
    assert done.json["remarks"]["1 finding did not hold on a second look"] >= 2
    assert len(server.chats) == 12, "each trace is asked about once, and each finding"
    assert done.json["judge"] != judge("--dry-run", "--json").json["judge"]


def test_cached_tokens_are_counted_and_have_a_price_of_their_own(
    judge: Judge, server: ModelServer, tmp_path: Path
) -> None:
    configure(tmp_path, '[judge.prices."test-model"]\ninput = 10.0\noutput = 0.0\ncached = 1.0\n')
    server.script = lambda body, _: answer(
        said(body), tokens_in=3_000, tokens_out=5, tokens_cached=2_000
    )
    document = judge("--json", "--max-cost", "1.5").json
    assert document["tokens"] == {"in": 18_000, "out": 30, "cached": 12_000}
    assert document["cost"] == pytest.approx((6_000 * 10 + 12_000 * 1) / 1e6)
    with closing(Workspace.open(tmp_path / ".mast-tui" / "workspace.db")) as workspace:
        [run] = workspace.runs()
    assert run.usage.tokens_cached == 12_000
    assert run.cost == pytest.approx(document["cost"])
    assert "(12 k of them cached)" in judge("--again").out


def test_kept_answers_are_checked_again_when_the_rules_of_checking_change(
    judge: Judge, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        # As of a version that found no quotes.
        before.setattr(setup, "CHECKING", "1")
        before.setattr(Locator, "locate", lambda *_, **__: None)
        assert judge("--json").json["quotes"]["not_found"] == 6
    again = judge("--json").json
    assert (again["traces"]["known"], again["requests"]["now"]) == (6, 0)
    assert again["remarks"] == {"kept answers were checked again, by the rules of today": 6}
    assert len(server.chats) == 6
    with closing(Workspace.open(tmp_path / ".mast-tui" / "workspace.db")) as workspace:
        matches = {label.evidence and label.evidence.match for label in workspace.labels()}
        assert matches == {Match.EXACT}
    assert judge("--json").json["run"] is None, "once is enough"


def test_answers_that_are_not_here_are_not_asked_for_to_check_them(
    judge: Judge, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge("--quiet")
    file = tmp_path / ".mast-tui" / "workspace.db"
    with closing(sqlite3.connect(file)) as raw, raw:
        raw.execute("DELETE FROM asked WHERE id > 2")
    monkeypatch.setattr(run_journal, "CHECKING", "99")
    monkeypatch.setattr(setup, "CHECKING", "99")
    second_document = judge("--json").json
    assert (second_document["traces"]["known"], len(server.chats)) == (6, 6)
    assert list(second_document["remarks"].values()) == [2]

"""``mast-tui judge``: from files to suggestions, decisive steps, paired runs, and progress."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mast_tui.cli.judge.output import (
    WAIT_SECONDS,
    BarProgress,
    LineProgress,
    elapsed_text,
    money,
    token_text,
)
from mast_tui.configuration import Prices
from mast_tui.judges.runner import Progress, TraceStatus
from mast_tui.workspace import Usage
from tests.cli.conftest import Cli, write_calls
from tests.cli.test_exam import write_set
from tests.judges.llm.made_answers import request_spans
from tests.judges.llm.server import Action, ModelServer, answer


def write_run(folder: Path) -> None:
    """Write a run of an agent that makes the same call three times."""
    commands = ["kubectl get pods -n shop"] * 3
    write_calls(folder / "run.json", commands, result="cart-0 CrashLoopBackOff")


def test_the_rules_judge_a_folder(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / "notes.md").write_text("nothing")
    (tmp_path / "broken.json").write_text("{")
    judge = ("judge", ".", "--judge", "rules")
    result = cli.refused(*judge, "--json", says="broken.json")
    summary = result.json
    name = summary["judge"]
    assert name.startswith("judge:rules@")
    assert summary["traces"] == {"judged": 1, "known": 0, "failed": 0}
    assert summary["modes"]["1.3"] >= 1
    assert [item["path"] for item in summary["failed"]] == ["broken.json"]
    assert "notes.md" in [item["path"] for item in summary["skipped"]]
    (tmp_path / "broken.json").unlink()
    second = cli.json(*judge)
    assert (second["traces"]["known"], second["run"]) == (1, None)
    repeated = cli.ok(*judge, "--again")
    assert "run-" in repeated.err
    assert "1 trace judged" in repeated.out
    assert "Step repetition" in repeated.out
    assert cli(*judge, "--again", "--quiet").err == ""
    # Judges are compared with annotators by name only.
    assert cli.json("agree")["annotators"] == []
    assert cli.json("agree", "--annotators", name)["annotators"] == [name]


def test_rules_are_chosen_by_name(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    judge = ("judge", "run.json", "--judge", "rules")
    few_rules = cli.json(*judge, "--rules", "limit,failed-check")
    assert few_rules["judge"].endswith("+limit+failed-check")
    assert (few_rules["traces"]["judged"], few_rules["suggestions"]) == (1, 0)
    all_rules = cli.json(*judge, "--rules", "all")
    assert all_rules["judge"].endswith("+all")
    assert all_rules["modes"]["1.3"] >= 1
    default_rules = cli.json(*judge)["traces"]
    assert default_rules == {"judged": 0, "known": 1, "failed": 0}, "all rules have judged it"
    wrong = cli(*judge, "--rules", "lmit")
    assert wrong.code != 0
    assert "no rule 'lmit'" in wrong.err
    assert "repeated-call" in wrong.err
    for options in (
        ("run.json", "--judge", "llm", "--model", "m", "--rules", "all"),
        ("run.json", "--judge", "llm"),
        ("--judge", "rules"),
    ):
        cli.refused("judge", *options, code=2)
    missing = cli("judge", "nowhere.json", "--judge", "rules")
    assert (missing.code, "nowhere.json" in missing.err) == (1, True)


def test_the_bar_shows_traces_findings_tokens_cost_and_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    with BarProgress(3, Prices(1.0, 2.0)) as bar:
        bar.on_use(Usage(1, 20_000, 1_000))
        bar.on_trace(Progress(1, "t1", Path("a.json"), TraceStatus.JUDGED, 2))
        bar.on_wait("asked to wait 34 s")
    out, err = capsys.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    for sentence in (
        "1 of 3 traces",
        "2 found",
        "21 k tokens",
        "cost 0.0220",
        "asked to wait 34 s",
    ):
        assert sentence in last


def test_the_text_of_a_wait_is_shown_for_a_while(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    for later, stays in ((WAIT_SECONDS / 2, True), (WAIT_SECONDS, False)):
        times = iter((1_000.0, 1_000.0 + later))
        with BarProgress(3, None, times.__next__) as bar:
            bar.on_wait("asked to wait 34 s")
            bar.on_use(Usage(1, 200, 10))
        last = capsys.readouterr().err.splitlines()[-1]
        assert ("asked to wait" in last) == stays


@pytest.mark.parametrize("kind", ["bar", "lines"])
def test_foreign_text_is_no_markup_and_no_escape(
    capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    with BarProgress(1, None) if kind == "bar" else LineProgress(quiet=False) as progress:
        hostile = "[bold]x[/] \x1b[31m\nnext"
        progress.on_trace(Progress(1, "t", Path("a.json"), TraceStatus.FAILED, 0, hostile))
        progress.on_wait(hostile)
    err = capsys.readouterr().err
    assert "[bold]x[/]" in err
    assert "\x1b[31m" not in err


def test_numbers_costs_and_times_are_rounded() -> None:
    counts = {0: "0", 9_999: "9,999", 10_000: "10 k", 999_600: "1.0 M", 12_345_678: "12 M"}
    assert [token_text(count) for count in counts] == [*counts.values()]
    assert [money(x) for x in (0.0, 0.0123, 0.5, 1234.5)] == ["0.00", "0.0123", "0.50", "1,234.50"]
    times = {0.4: "0 s", 59.4: "59 s", 60: "1m00s", 3_725: "1h02m"}
    assert [elapsed_text(seconds) for seconds in times] == [*times.values()]


def test_a_wait_shows_the_time_since_the_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter((1_000.0, 1_204.0))
    with LineProgress(quiet=False, clock=times.__next__) as lines:
        lines.on_wait("no complete answer within 200 s; it is asked once more")
    assert "asked once more (3m24s since the start)" in capsys.readouterr().err
    monkeypatch.setenv("COLUMNS", "120")
    with BarProgress(3, None) as bar:
        bar.on_wait("asked to wait 34 s")
    assert "0:00:00" in capsys.readouterr().err


def name_decisive_step(body: dict[str, Any], _: int) -> Action:
    """Name the fourth step of each run, but the second of the last run."""
    spans = request_spans(body)
    number, line = spans[1] if has_line_end(spans, "(3)") else spans[3]
    step = {
        "rationale": f"see #{number}",
        "quote": line,
        "first": number,
        "agent": "lead",
        "correction": "Book the train at ten",
        "then": "they would have arrived",
        "mode": "2.6",
        "fits": True,
        "confidence": 0.9,
    }
    return answer(json.dumps({"notes": "", "decisive": [step]}), tokens_in=3_000)


def has_line_end(spans: list[tuple[int, str]], mark: str) -> bool:
    return any(line.endswith(mark) for _, line in spans)


@pytest.fixture
def judged(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The summary of a judge for a set of runs."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_set(tmp_path / "set")
    with ModelServer(name_decisive_step) as server:
        model = ("--judge", "llm", "--model", "test-model", "--base-url", server.base_url)
        judge = ("judge", "set", *model, "--decisive")
        summary: dict[str, Any] = cli.json(*judge)
        assert cli.json(*judge)["traces"]["known"] == 4
        cli.refused(*judge, "--verify", code=2)
    return summary


def test_decisive_steps_are_scored_and_exported_with_their_remedy(
    cli: Cli, judged: dict[str, Any]
) -> None:
    assert (judged["suggestions"], judged["modes"]) == (4, {"2.6": 4})
    exam = ("exam", "set", "--set", "who-and-when", "--judge", judged["judge"])
    [scored] = cli.json(*exam)["judges"].values()
    decisive = scored["decisive"]
    assert (decisive["n"], decisive["named"]) == (4, 4)
    assert decisive["step"]["0"]["value"] == decisive["agent"]["value"] == 0.75
    remedy = '"remedy": "Book the train at ten. Then: they would have arrived."'
    assert cli.export("jsonl").count(remedy) >= 4
    table = cli.export("csv-long", "--labels", "all")
    assert table.count("fatal") == 4
    assert "Instead: Book the train at ten." in table


WRONG = "kubectl delete namespace shop"


def write_trials(folder: Path) -> None:
    """Write four failed and four successful runs of one task with an ``outcomes.csv``."""
    rows = ["trace,outcome"]
    for number in range(4):
        write_calls(folder / f"bad{number}.json", ("ls", WRONG, f"echo {number}"))
        write_calls(folder / f"good{number}.json", ("ls", "cat log", f"echo {number}"))
        rows += [f"bad{number}.json,failed", f"good{number}.json,succeeded"]
    (folder / "outcomes.csv").write_text("\n".join(rows) + "\n")


def test_failed_runs_alone_get_a_suggestion(cli: Cli, tmp_path: Path) -> None:
    write_trials(tmp_path)
    judge = ("judge", ".", "--judge", "twins")
    blind = cli.json(*judge, "--blind", "--annotator", "ann", "--workspace", "other.db")
    assert blind["suggestions"] is None
    cli.refused(*judge, "--rules", "all", code=2)
    assert "twins uses no model" in cli(*judge, "--model", "m").err
    result = cli.ok(*judge, "--json")
    assert "comparing 8 runs of 1 task" in result.err
    assert result.json["judge"] == "judge:twins@1"
    assert result.json["modes"] == {"2.3": 4}
    table = cli.export("csv-long", "--labels", "judge:twins@1")
    rows = [row for row in table.splitlines() if ",2.3," in row]
    assert len(rows) == 4
    assert all(row.startswith("bad") and ",present," in row and WRONG in row for row in rows)
    linted = cli("lint", "bad0.json", "--judge", "twins", "--fail-on", "2.3", "--json")
    assert linted.code == 3
    (finding,) = linted.json["findings"]
    assert (finding["span"], finding["mode"]) == (4, "2.3")
    # Another successful run with the call removes the suggestion.
    write_calls(tmp_path / "good4.json", ("ls", WRONG, "cat log"))
    with (tmp_path / "outcomes.csv").open("a") as outcomes:
        outcomes.write("good4.json,succeeded\n")
    quiet = cli.ok(*judge, "--quiet", "--json")
    assert (quiet.json["suggestions"], quiet.err) == (0, "")
    assert ",present," not in cli.export("csv-long", "--labels", "judge:twins@1")

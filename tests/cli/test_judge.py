"""``mast-tui judge``, from files to suggestions in a workspace."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli, write_calls


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

"""``mast-tui judge``, from files to suggestions in a workspace."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Cli


def write_run(folder: Path) -> None:
    """An agent that makes the same call three times."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Find the failing pod."}]
    for number in range(3):
        call = {"name": "shell", "arguments": json.dumps({"command": "kubectl get pods -n shop"})}
        messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{number}", "content": "cart-0 CrashLoopBackOff"},
        ]
    (folder / "run.json").write_text(json.dumps({"messages": messages}))


def test_the_rules_judge_a_folder(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / "notes.md").write_text("nothing")
    (tmp_path / "broken.json").write_text("{")
    done = cli.refused("judge", ".", "--judge", "rules", "--json")
    summary = done.json
    assert summary["judge"].startswith("judge:rules@")
    assert summary["traces"] == {"judged": 1, "known": 0, "failed": 0}
    assert summary["modes"]["1.3"] >= 1
    assert [item["path"] for item in summary["failed"]] == ["broken.json"]
    assert "broken.json" in done.err
    assert "notes.md" in [item["path"] for item in summary["skipped"]]
    (tmp_path / "broken.json").unlink()
    second_run = cli("judge", ".", "--judge", "rules", "--json")
    assert (second_run.code, second_run.json["traces"]["known"], second_run.json["run"]) == (
        0,
        1,
        None,
    )


def test_progress_goes_to_stderr_and_the_summary_to_stdout(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    done = cli.ok("judge", "run.json", "--judge", "rules")
    assert "run-" in done.err
    assert "1 trace judged" in done.out
    assert "Step repetition" in done.out
    quiet = cli("judge", "run.json", "--judge", "rules", "--again", "--quiet")
    assert quiet.err == ""


def test_a_judges_suggestions_are_compared_by_name(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    judge = cli.json("judge", "run.json", "--judge", "rules")["judge"]
    assert cli.json("agree")["annotators"] == []
    assert cli.json("agree", "--annotators", judge)["annotators"] == [judge]


def test_only_judges_that_there_are_can_be_named(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    cli.refused("judge", "run.json", "--judge", "llm", code=2)
    cli.refused("judge", "--judge", "rules", code=2)
    cli.refused("judge", "nowhere.json", "--judge", "rules", says="nowhere.json")


def test_rules_are_chosen_by_name(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    silent = cli("judge", "run.json", "--judge", "rules", "--rules", "limit,reset", "--json")
    assert silent.json["judge"].endswith("+limit+reset")
    assert (silent.json["traces"]["judged"], silent.json["suggestions"]) == (1, 0)
    every = cli("judge", "run.json", "--judge", "rules", "--rules", "all", "--json")
    assert every.json["judge"].endswith("+all")
    assert every.json["modes"]["1.3"] >= 1
    fewer = cli("judge", "run.json", "--judge", "rules", "--json")
    assert fewer.json["traces"] == {"judged": 0, "known": 1, "failed": 0}, "all rules have said it"
    wrong = cli("judge", "run.json", "--judge", "rules", "--rules", "lmit")
    assert wrong.code != 0
    assert "no rule 'lmit'" in wrong.err
    assert "repeated-call" in wrong.err
    cli.refused("judge", "run.json", "--judge", "llm", "--model", "m", "--rules", "all", code=2)

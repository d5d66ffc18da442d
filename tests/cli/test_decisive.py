"""``mast-tui judge --decisive`` from the model's answer to the exam, and out to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_exam import write_set
from tests.judges.llm.made_answers import shown
from tests.judges.llm.server import Action, ModelServer, answer


def named(body: dict[str, Any], _: int) -> Action:
    """The fourth step of each run but the last, whose second is named."""
    spans = shown(body)
    number, line = spans[1] if line_ends(spans, "(3)") else spans[3]
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


def line_ends(spans: list[tuple[int, str]], mark: str) -> bool:
    return any(line.endswith(mark) for _, line in spans)


@pytest.fixture
def judged(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Judge a set of runs once, and return the summary; a second run knows all of them."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_set(tmp_path / "set")
    with ModelServer(named) as server:
        server_options = ("--model", "test-model", "--base-url", server.base_url)
        done = cli.ok("judge", "set", "--judge", "llm", *server_options, "--decisive", "--json")
        summary: dict[str, Any] = done.json
        second_summary = cli.json("judge", "set", "--judge", "llm", *server_options, "--decisive")
        assert second_summary["traces"]["known"] == 4
        cli.refused(
            "judge", "set", "--judge", "llm", *server_options, "--decisive", "--verify", code=2
        )
    return summary


def test_it_sits_the_exam_of_decisive_steps(cli: Cli, judged: dict[str, Any]) -> None:
    assert (judged["suggestions"], judged["modes"]) == (4, {"2.6": 4})
    done = cli.ok("exam", "set", "--set", "who-and-when", "--judge", judged["judge"], "--json")
    [scored] = done.json["judges"].values()
    decisive = scored["decisive"]
    assert (decisive["n"], decisive["named"]) == (4, 4)
    assert decisive["step"]["0"]["value"] == 0.75
    assert decisive["agent"]["value"] == 0.75


def test_it_is_written_out_with_its_remedy(
    cli: Cli, judged: dict[str, Any], tmp_path: Path
) -> None:
    for name in ("jsonl", "csv-long"):
        cli.ok("export", "--format", name, "--labels", "all", "-o", name)
    lines = [json.loads(line) for line in (tmp_path / "jsonl").read_text().splitlines()]
    said = json.dumps(lines)
    assert said.count('"remedy": "Book the train at ten. Then: they would have arrived."') >= 4
    table = (tmp_path / "csv-long").read_text()
    assert table.count("fatal") == 4
    assert "Instead: Book the train at ten." in table

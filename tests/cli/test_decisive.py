"""``mast-tui judge --decisive``: from the model's answer to the exam and to exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_exam import write_set
from tests.judges.llm.made_answers import request_spans
from tests.judges.llm.server import Action, ModelServer, answer


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

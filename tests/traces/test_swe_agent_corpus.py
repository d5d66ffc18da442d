"""SWE-agent's real trajectories, held to their raw files."""

from __future__ import annotations

import json

import pytest

from mast_tui.traces.model import Outcome
from mast_tui.traces.readers.swe_agent import READER
from tests.traces.checks import CORPUS, needs_corpus, read_one

RUNS = ("marshmallow-1867", "pydicom-1458")


@needs_corpus
@pytest.mark.parametrize("run", RUNS)
def test_every_step_is_shown_once(run: str) -> None:
    path = CORPUS / "swe-agent" / f"{run}.traj"
    raw = json.loads(path.read_text(encoding="utf-8"))
    trace = read_one(READER, path)
    assert trace.meta.outcome is Outcome.UNKNOWN
    assert not trace.problems
    texts = [trace.text(index) for index in range(len(trace))]
    for number, step in enumerate(raw["trajectory"]):
        for field in ("thought", "action", "observation"):
            index = trace.index_of(f"/trajectory/{number}/{field}")
            assert index is not None
            assert texts[index] == step[field]
        result = trace.index_of(f"/trajectory/{number}/observation")
        assert result is not None
        assert trace.span(result).parent == f"/trajectory/{number}/action"
    prompts = [message for message in raw["history"] if message["role"] != "assistant"]
    shown_before = trace.index_of("/trajectory/0/thought")
    assert shown_before in (2, 3)
    assert texts[:shown_before] == [message["content"] for message in prompts[:shown_before]]
    assert texts[-1] == raw["info"]["exit_status"]
    patch = raw["info"]["submission"].strip()
    assert sum(text.strip() == patch for text in texts) == 1
    assert len(trace) == shown_before + 3 * len(raw["trajectory"]) + 1

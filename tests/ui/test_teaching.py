"""A judge that learns from people: comparison, teaching, measurement, and default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from mast_tui.configuration import read_judge_configuration
from mast_tui.judges.llm.run.running import run_model_judge
from mast_tui.judges.llm.run.setup import configured_setup
from mast_tui.judges.llm.teaching import default_judge, mistakes, versions
from mast_tui.ui.judge_runs import teaching
from mast_tui.ui.judge_runs.comparison import ComparisonScreen
from mast_tui.ui.judge_runs.teaching import TeachingScreen
from mast_tui.workspace.registers.hold_out import TracePart, set_split, trace_part
from scripts.practice_server import Errors, Handler
from tests.cli.conftest import configure
from tests.ui.stage import MAST, Stage, missing, stage
from tests.ui.team_dir import TeamDir, last_message
from tests.ui.test_runs import counts

NAMES = [f"run{number}" for number in range(16)]


@contextmanager
def practice_model(**errors: Any) -> Iterator[None]:
    """Configure a practice server that makes errors."""
    handler = type("Erring", (Handler,), {"errors": Errors(**errors)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/v1"
        configure(
            f'[judge]\nmodel = "practice"\nbase_url = "{address}"\nhints = false\n'
            "[judge.prices.practice]\ninput = 1.0\noutput = 2.0\n"
        )
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def team(team: TeamDir) -> TeamDir:
    """Sixteen traces on which two people agree that only a repetition shows."""
    for name in NAMES:
        for annotator in ("alice", "bob"):
            team.label(annotator, name, {"1.3": (3, 8)})
    with team.store() as workspace:
        set_split(workspace, 0, 0.5)
    return team


async def judge_all(team: TeamDir) -> None:
    """Judge all traces with the practice model."""
    setup = configured_setup(MAST, read_judge_configuration())
    traces = [team.trace(name) for name in NAMES]
    with team.store() as workspace:
        summary = await run_model_judge(setup, traces, workspace)
    assert not summary.failed


async def judge_ended(on: Stage) -> None:
    """Wait until the running judge has finished."""
    await on.until(lambda: on.app.judge_at_work is None)
    await on.press()


async def teach_by_guideline(on: Stage, text: str) -> None:
    codes = [mode.code for mode in MAST.modes]
    await on.press("g", *"j" * (codes.index("2.6") + 1))
    await on.press("m")
    await on.press(*text, "enter")
    await on.press("t")
    assert isinstance(on.app.screen, TeachingScreen)
    assert f"- {text}" in on.app.screen.detail.text
    await on.press("enter")
    await on.press("enter")
    await judge_ended(on)
    await on.press("R")
    await on.press("c")


async def test_a_judge_is_taught_by_an_example(team: TeamDir) -> None:
    with practice_model(false_alarms={"2.6": "I restart it"}):
        await judge_all(team)
        async with stage(team.folder, workspace=team.workspace) as on:
            await on.press("R")
            await on.press("c")
            screen = on.app.screen
            assert isinstance(screen, ComparisonScreen)
            assert "held out" in on.text
            earlier = counts(on)
            assert int(earlier["not in gold"]) == 5
            # The reason of the judge, and that people say the opposite.
            await on.press("tab")
            assert not missing(on.text, "judge: present “I restart it”: it says", "alice: absent")
            await on.press("x")
            await on.press(*"it was asked to", "enter")
            assert "Marked as wrong" in last_message(on)
            assert "marked as wrong: it was asked to" in on.text
            await on.press("t")
            teach = on.app.screen
            assert isinstance(teach, TeachingScreen)
            text = teach.detail.text
            assert "1 example" in text
            assert '"mode": "2.6", "verdict": "absent", "rationale": "it was asked to"' in text
            assert not missing(text, "cost", "tokens in")
            assert teach.detail.border_title is not None
            assert "tokens" in teach.detail.border_title
            await on.press("enter")
            assert "Ask practice about" in on.text
            await on.press("enter")
            await judge_ended(on)
            await on.press("R")
            await on.press("c")
            assert not missing(on.text, ": better (p = ", "2.6 better")
            later = counts(on)
            assert later["not in gold"] == "0"
            assert float(later["TNR"][:4]) > float(earlier["TNR"][:4])
            await on.press("v")
            assert "is the default judge now" in last_message(on)
            with team.store() as workspace:
                (version,) = versions(workspace, MAST.ref).values()
                assert default_judge(workspace, MAST.ref) == version.judge
                assert [m.reason for m in mistakes(workspace, MAST.ref)] == ["it was asked to"]
                assert {m.trace_id for m in version.examples} <= {
                    trace.trace_id
                    for trace in workspace.traces()
                    if trace_part(workspace, trace.trace_id) is TracePart.DEVELOPMENT
                }
            await on.press("L")
            await on.press("J")
            assert "as taught" in on.text
            await on.press("escape", "R")
            await on.press("c")
            await on.press("u")
            assert "The default judge is the judge of the configuration again" in last_message(on)


async def test_a_judge_is_taught_by_guidelines(
    team: TeamDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teaching, "SAMPLE_SIZE", 1)
    monkeypatch.setattr(teaching, "FIRST_CHOSEN", 0)
    monkeypatch.setattr(teaching, "wrong_traces", lambda it: sorted(it.work_by_trace)[:3])
    with practice_model(false_alarms={"2.6": "I restart it"}):
        await judge_all(team)
        async with stage(team.folder, workspace=team.workspace) as on:
            await on.press("R")
            await on.press("c")
            await teach_by_guideline(on, "A restart is no mismatch")
            assert ": better (p = " in on.text
            assert "had a test on some of these traces" not in on.text
            assert " chosen for earlier errors, not in TPR and TNR" in on.text
            await teach_by_guideline(on, "Not at all")
            assert ": no clear difference" in on.text
            assert "1 earlier version had a test on some of these traces" in on.text


async def test_a_correct_judge_has_nothing_to_learn(team: TeamDir) -> None:
    with practice_model():
        await judge_all(team)
        async with stage(team.folder, workspace=team.workspace) as on:
            await on.press("R")
            await on.press("c")
            await on.press("t")
            assert "Nothing changes" in on.text
            await on.press("enter")
            assert "Nothing changes" in last_message(on)
            await on.press("escape")
            await on.press("tab", "x")
            assert "agree that the mode is present" in last_message(on)

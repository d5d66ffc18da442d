"""Estimates of the requests, tokens and cost of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.configuration import Prices
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.windows import plan
from mast_tui.judges.llm.request import Parameters
from mast_tui.judges.llm.run.estimate import UNSHARED_FINDINGS, RunEstimate, estimate_run
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.redaction.engine import Redaction
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.model import Trace
from mast_tui.workspace import Asked, RunSettings, TraceRecord, Workspace, store_judgement
from tests.judges.llm.bench import traces
from tests.judges.llm.made_answers import write_runs
from tests.judges.memory_trace import MemoryTrace

MAST = load_mast()


def setup(window_tokens: int = 24_000, samples: int = 1, prices: Prices | None = None) -> Setup:
    parameters = Parameters("m", window_tokens=window_tokens, samples=samples)
    return Setup(MAST, parameters, "http://127.0.0.1:1/v1", prices=prices)


def asked_tokens(chosen: Setup, trace: Trace) -> int:
    """Return the tokens of all requests about a trace but second looks."""
    view = RedactedView(trace, Redaction.none())
    windows = plan(view, chosen.prompt, chosen.parameters)
    if len(windows) == 1:
        return chosen.prompt.request(view, windows[0], "").tokens
    story = "word " * 700
    budget = chosen.parameters.window_tokens
    summaries = [(window, "word " * 300) for window in windows]
    requests = [chosen.prompt.request(view, window, story) for window in windows]
    requests += [chosen.prompt.story.summary_request(view, window, budget) for window in windows]
    requests.append(chosen.prompt.story.story_request(view, summaries, budget))
    return sum(request.tokens for request in requests)


@pytest.mark.parametrize("window_tokens", [2_000, 24_000])
@pytest.mark.parametrize("chars", [40, 4_000])
def test_estimated_tokens_are_near_the_requests(window_tokens: int, chars: int) -> None:
    trace = MemoryTrace()
    for _ in range(60):
        trace.say("word " * (chars // 5))
    chosen = setup(window_tokens)
    estimate = estimate_run(chosen, [trace], None)
    actual = asked_tokens(chosen, trace)
    stories = estimate.windows + 1 if estimate.windows > 1 else 0
    looks = min(UNSHARED_FINDINGS, (estimate.windows - 1) // 2)
    assert estimate.story_requests == stories
    assert estimate.requests == estimate.windows + stories + looks
    # Stories multiply the tokens of the windows by at most this factor.
    alone = estimate.tokens_in - estimate.story_tokens
    assert estimate.tokens_in <= 2.2 * alone
    assert (estimate.windows > 1) == (window_tokens == 2_000 or chars == 4_000)
    assert 0.8 * actual <= estimate.tokens_in <= 1.6 * actual
    assert (estimate.shortened > 0) == (window_tokens == 2_000 and chars == 4_000)


def test_samples_and_prices_are_counted() -> None:
    trace = MemoryTrace().user("hello")
    once = estimate_run(setup(), [trace], None)
    thrice = estimate_run(setup(samples=3, prices=Prices(1.0, 10.0)), [trace], None)
    assert once.cost(setup()) is None
    assert (thrice.windows, thrice.requests) == (1, 3)
    assert thrice.tokens_in == 3 * once.tokens_in
    expected = (thrice.tokens_in + 10 * thrice.tokens_out) / 1e6
    assert thrice.cost(setup(prices=Prices(1.0, 10.0))) == pytest.approx(expected)


def test_judged_traces_are_free_unless_grown(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", 3)
    workspace = Workspace.open(":memory:")
    chosen = setup()
    workspace.add_taxonomy(MAST)
    for trace in traces(tmp_path / "runs"):
        store_judgement(
            workspace,
            judge=chosen.judge,
            taxonomy=MAST.ref,
            trace_id=workspace.register_trace(TraceRecord.from_trace(trace)),
            looks_at=chosen.prompt.modes,
            findings=(),
        )
    write_runs(tmp_path / "runs", 1, spans=9)
    events = list(workspace.events())
    progress: list[RunEstimate] = []
    total = estimate_run(chosen, traces(tmp_path / "runs"), workspace, on_trace=progress.append)
    assert [step.traces for step in progress] == [1, 2, 3]
    assert (total.traces, total.known, total.to_judge, total.requests) == (3, 2, 1, 1)
    assert estimate_run(chosen, traces(tmp_path / "runs"), workspace, again=True).to_judge == 3
    assert list(workspace.events()) == events


def test_earlier_answers_improve_the_estimate(tmp_path: Path) -> None:
    trace = MemoryTrace().user("hello")
    workspace = Workspace.open(":memory:")
    guess = estimate_run(setup(), [trace], workspace).tokens_out
    run = workspace.start_run("judge:m@1", MAST.ref, settings=RunSettings("m", "1", "here"))
    for number in range(10):
        workspace.record_asked(
            Asked(run, "t", f"k{number}", "{}", "stop", "text", 10, guess * 2, usable=True)
        )
    assert estimate_run(setup(), [trace], workspace).tokens_out == guess * 2
